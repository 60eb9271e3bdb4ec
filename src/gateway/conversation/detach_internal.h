/* The detached call itself, for the file that answers its client (tools/plain.c). */
#pragma once

#include "call/client_profile.h"
#include "detach.h"
#include "invocation.h"
#include "taskgate/core/magic.h"

struct detached_call {
    struct invocation base; /* first; `request_id` is the client's */
    uint32_t magic;         /* DETACHED_CALL_MAGIC */
    struct call_part part;  /* of `call` */
    struct list node;       /* in worker.detached */
    struct call *call;      /* waits for the answer; NULL when nobody does any more */
    char key[CLIENT_KEY_BYTES];
    bool is_executed; /* by execute_tool */
    bool is_given_up; /* by its client, while the store was taking its task */
    int64_t patience_ms;
    uint64_t number;                 /* of the call, for its questions */
    char repeated[DIGEST_HEX_BYTES]; /* repeated_call_digest_left(), once it is to be a task */

    /* Of a call across eras, whose server may require input, and then gets it again: */
    bool wraps_output;         /* of the tool */
    struct buffer body;        /* without the answers of a round */
    struct buffer asked;       /* what was required while the task was on its way to the store */
    struct identity *identity; /* of the client, by its verified token; or NULL */
};
#define DETACHED_CALL_MAGIC 0x4757450c

static inline struct detached_call *detached_call_from(void *context)
{
    return MAGIC_CAST(struct detached_call, DETACHED_CALL_MAGIC, context);
}
