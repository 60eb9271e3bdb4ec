/*
 * The plain calls of a client that are tasks: the same call made again joins its task instead of
 * making a second one, and an outcome nobody was there for is told to the next. In memory, with the
 * client (inbox.h): for one that is not there all this is passed over. Any thread.
 */
#pragma once

#include "call/call.h"

struct repeated_call {
    struct str key;     /* of the client */
    const char *digest; /* of the call */
    const char *id;     /* of the task */
};

/* Two calls are the same when the tool has the same definition (its digest) and the requests are
 * the same: their name, arguments, other params, and _meta but for the progress token, in canonical
 * form, in which numbers stay as they were written (call/request_parts.h). */
void repeated_call_digest(const char *definition_digest, const char *request_digest,
                          char digest[DIGEST_HEX_BYTES]);
/* The same of a forwarded call that became a task, which is bound to no definition. */
void repeated_call_digest_left(const struct envelope *envelope, char digest[DIGEST_HEX_BYTES]);
/* Whether there is any such call, of anybody; needs no lock. */
bool repeated_calls_any_left(const struct gateway *gateway);
/* Whether this client has made any call that the same call would join; needs no digest. */
bool repeated_calls_has(struct gateway *gateway, struct str key);
/* As repeated_call_claim() for such a call; its outcome is told to the next one. */
void repeated_call_leave(struct gateway *gateway, const struct repeated_call *join);
/* The task of such a call; false when there is none. */
bool repeated_call_find(struct gateway *gateway, struct str key, const char *digest,
                        char id[TASK_ID_BYTES], bool *is_undelivered);
/* Calls of this kind join the task from now on. If another task has them already, its id goes to
 * `other`, and false is returned. Otherwise `commit` (may be NULL) runs under the lock, so that a
 * call that finds the task here finds it in the store. */
bool repeated_call_claim(struct gateway *gateway, const struct repeated_call *join,
                         loop_callback commit, void *context, char other[TASK_ID_BYTES]);

/* Each of these does nothing when the call is another task's meanwhile. Those that return a bool
 * say whether other replicas are to be notified (tools/repeated_news.h). */
bool repeated_call_forget(struct gateway *gateway, const struct repeated_call *join);
/* A wait has ended without the outcome. */
bool repeated_call_set_undelivered(struct gateway *gateway, const struct repeated_call *join);
/* The outcome was given out, but only to calls that had waited for so long that their clients may
 * have given up. It is undelivered for so long: a client that asks again asks soon. */
#define REPEATED_CALL_DOUBT_MS 60000
bool repeated_call_doubt(struct gateway *gateway, const struct repeated_call *join);
/* Another replica has such an outcome, or will have; 0 ms: for as long as it takes. `is_left`: of
 * repeated_call_leave(). */
void repeated_call_learn(struct gateway *gateway, const struct repeated_call *join, int64_t for_ms,
                         bool is_left);
/* True when the caller may give out an outcome that the client has not got. Such a call is a new
 * one from then on. */
bool repeated_call_take(struct gateway *gateway, const struct repeated_call *join,
                        bool *was_shared);
/* The client has got the outcome by other means. Writes the digest of the call where it
 * returns true. */
bool repeated_call_forget_task(struct gateway *gateway, struct str key, const char *id,
                               char digest[DIGEST_HEX_BYTES]);
