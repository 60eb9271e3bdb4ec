/*
 * The tokens that servers get in place of the clients' (`upstream: exchange`; RFC 8693). The
 * workers share them, by the client's token, until either ends; a reload keeps those whose settings
 * stay. On a worker's thread, but for the table's life.
 */
#pragma once

#include "call/call.h"
#include "taskgate/identity/exchanger.h"

/* Most tokens that are remembered for a set of settings. */
#define TOKEN_EXCHANGE_REMEMBERED 8192

/* The gateway's, made before its workers and destroyed after them. NULL is allowed. */
struct token_exchange_table;
struct token_exchange_table *token_exchange_table_create(void);
void token_exchange_table_destroy(struct token_exchange_table *table);

/* Whether the clients' tokens are exchanged for this source. */
bool token_exchange_is_due(const struct config_source *source);
/* The call passes with `call->upstream_authorization` set, after a wait by `next`; or it is
 * answered 401, 403 or 503. It is verified, and its source exchanges tokens. */
enum gate_verdict token_exchange_then(struct call *call, call_step next);
/* The server has refused a request with 401, whoever has sent it with this Authorization: if a
 * client's token was exchanged for that, the next request exchanges it anew. */
void token_exchange_note_refused(struct gateway_worker *worker, const struct snapshot *snapshot,
                                 const struct config_source *source, struct str authorization);

/* ---- for what runs without its client; `authorization` is the header that the client sent ---- */
struct token_request {
    struct gateway_worker *worker;
    const struct snapshot *snapshot;
    const struct config_source *source; /* of the snapshot; it exchanges tokens */
    struct str authorization;
    int64_t until_ms; /* the end of the client's token, wall clock */
};
/* The token that is known for it, the caller's to free; NULL when none is. */
char *token_exchange_find(const struct token_request *request);
/* Requests it, as exchanger_request(); NULL, with no callback, when nothing can be requested now.
 */
struct exchanger_wait *token_exchange_start(const struct token_request *request,
                                            exchanger_callback callback, void *context);

/* Before token_check_worker_close(), when no call and no execution is left. */
void token_exchange_worker_close(struct gateway_worker *worker);
