/*
 * Sealed texts: what a client keeps for the gateway and can neither read nor change (AES-256-GCM,
 * by OpenSSL). A seal proves that the gateway made the text; what it may be used for is in the
 * text.
 *
 * Of two generations of keys the first seals, and both open, so that a key can be changed while
 * texts of the earlier one are under way. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

#define STATE_KEY_BYTES 32
#define STATE_MOST_BYTES 2048 /* of a sealed text with its prefix */

struct state_keys {
    unsigned char keys[2][STATE_KEY_BYTES];
    int count; /* 1 or 2 */
};

/* Reads one or two keys of 64 hex digits each, with white space or a comma between; the first one
 * seals. */
bool state_keys_read(struct state_keys *keys, struct str text, struct error *error);
/* Overwrites them. */
void state_keys_clear(struct state_keys *keys);

/* Appends `prefix` and the sealed payload as base64url. `bound` is authenticated and not sent: only
 * who knows it opens the text. false: it would be longer than STATE_MOST_BYTES. */
bool state_seal(const struct state_keys *keys, struct str prefix, struct str bound,
                struct str payload, struct buffer *out);
/* Appends the payload. false: no text of these keys for this prefix and `bound`. */
bool state_unseal(const struct state_keys *keys, struct str prefix, struct str bound,
                  struct str text, struct buffer *payload);
