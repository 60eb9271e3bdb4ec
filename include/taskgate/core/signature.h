/*
 * Ed25519 signatures (RFC 8032), by OpenSSL. A key never changes; any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

struct signature_key;

/* A signature as base64url without padding, NUL-terminated. */
#define SIGNATURE_TEXT_BYTES 87

/* Reads a private or a public key in PEM, without a passphrase. NULL with what is wrong with the
 * text, never what stands in it. The caller holds one reference. */
struct signature_key *signature_key_read(struct str pem, struct error *error);
struct signature_key *signature_key_ref(struct signature_key *key);
void signature_key_unref(struct signature_key *key); /* NULL is allowed */
/* Whether the key can sign. */
bool signature_key_is_private(const struct signature_key *key);

/* `key` must be private. */
void signature_sign(const struct signature_key *key, struct str data,
                    char text[SIGNATURE_TEXT_BYTES]);
bool signature_verify(const struct signature_key *key, struct str data, struct str text);
