/*
 * The gateway as the OAuth resource server of a source: who a request is from, by its access token
 * (behaviour 13.1; RFC 6750, 9068, 9728). On the call's loop.
 */
#pragma once

#include "call/call.h"
#include "taskgate/identity/fetch.h"
#include "taskgate/identity/metadata.h"
#include "taskgate/identity/token.h"

#define METADATA_PATH "/.well-known/oauth-protected-resource"

/* Finds out whose the request is. It passes with `call->identity` set, or is answered 401, 403 or
 * 503. The source has `auth`. A token that was seen before costs a hash and a look-up; where keys
 * must be fetched first, the call waits for them, and passes by `next`. */
enum gate_verdict token_check_then(struct call *call, call_step next);
/* Ends the call: the refusal is logged, counted and answered, with a challenge (RFC 6750 §3). */
void token_check_refuse(struct call *call, enum token_error error);
/* Ends the call with the metadata of its source (RFC 9728). */
void token_answer_metadata(struct call *call);
/* The client toward issuers; NULL when its thread does not start. */
struct fetcher *token_check_fetcher(struct gateway_worker *worker);
/* The metadata of a source's issuer: a new reference, or NULL while none is known. */
struct issuer_metadata *token_check_metadata(struct gateway_worker *worker,
                                             const struct snapshot *snapshot,
                                             const struct config_source *source);
/* ---- the life of a gateway and its workers ---- */
struct token_check *token_check_create(void);
void token_check_destroy(struct token_check *check); /* NULL is allowed */
/* On the worker's thread. Closing the last worker of all waits for the thread that asks issuers, so
 * that it comes before any of their loops is destroyed. */
void token_check_worker_init(struct gateway_worker *worker);
void token_check_worker_close(struct gateway_worker *worker);
/* Has the keys of all issuers of the configuration in force fetched. */
void token_check_prepare(struct gateway_worker *worker);
