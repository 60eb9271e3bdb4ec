/*
 * The parts of a tools/call that an approval covers: its name, its arguments, its _meta without the
 * progress token, and the other members of its params (behaviour 7.16).
 */
#pragma once

#include "taskgate/core/digest.h"
#include "taskgate/json/envelope.h"

struct request_parts {
    struct buffer meta;            /* JSON text of params._meta without progressToken, or {} */
    struct buffer other_params;    /* JSON object; the task field is not in it */
    char digest[DIGEST_HEX_BYTES]; /* SHA-256 over the canonical form of all four */
};

/* Copies; always call request_parts_finish() afterwards. */
void request_parts_read(struct request_parts *parts, const struct envelope *envelope);
void request_parts_finish(struct request_parts *parts);
/* The digest alone. */
void request_parts_digest(const struct envelope *envelope, char digest[DIGEST_HEX_BYTES]);
