/* A notification: its body, its signature, and the time of the next attempt. Any thread; pure. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/store/store.h"

/* {"event", "delivery", "at", "link", "task": {…}}, or with "anchor" in place of the last two;
 * arguments as redact_fields leave them, and only
 * where `include_arguments` is set and the store has them. */
void message_write(struct buffer *out, const struct store_delivery *delivery,
                   const struct config *config, bool include_arguments);

#define MESSAGE_SIGNATURE_BYTES 68
/* "v1=" and, in lower-case hex, HMAC-SHA256 with `secret` over "TIMESTAMP.BODY". */
void message_sign(struct str secret, struct str timestamp, struct str body,
                  char signature[MESSAGE_SIGNATURE_BYTES]);

/* How long to wait after the n-th failed attempt (from 1): 1 s, doubled each time, at most ten
 * minutes; of that between three quarters and all, by `random`, so that what failed together
 * does not come back together. */
int64_t message_retry_delay_ms(int64_t failures, unsigned random);

/* "https://host:8443" of a URL: all that may be logged of it. The caller frees. */
char *message_origin(struct str url);
