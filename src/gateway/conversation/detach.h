/*
 * Calls that take longer than their client can wait. They go on as tasks, and the client is told
 * the id under which it finds the result (behaviour 11.4, 11.10). A relay has a forwarded call
 * until then. A call by execute_tool runs here from the start.
 */
#pragma once

#include "question.h"

struct detached_call;
struct repeated_call;
struct exchange_reply;
struct store_reply;

/* How the client of a call is told. One table serves all calls: gateway.detached_callbacks. Each of
 * the first three takes the client's call off the detached one. */
struct detached_callbacks {
    /* The server's answer came before the call was a task. `result`: of it, in the client's words;
     * empty: it is none. */
    void (*answered)(struct detached_call *detached, struct str result,
                     const struct exchange_reply *reply);
    /* The same, but the store did not take the task. The outcome has the answer. */
    void (*ended)(struct detached_call *detached);
    /* The call is a task. `working` holds those of the client at this server. */
    void (*became_task)(struct detached_call *detached, const struct store_reply *working);
    /* A notification of the server's while the client waits. */
    void (*message)(struct detached_call *detached, struct str message);
    /* The store has the task: the same call made again joins it from now on. */
    void (*joinable)(struct gateway_worker *worker, const struct repeated_call *join);
    /* It joins the task no more. */
    void (*forgotten)(struct gateway_worker *worker, const struct repeated_call *join);
};

/* When detached_call_of_slow() is to be called first. */
int64_t detached_call_first_look_ms(const struct call *call);
/* For looks.slow: makes a task of the call when its client has waited for
 * `pseudo_tools.wait` and `pseudo_tools.promote` says so. Else the relay keeps the call. */
void detached_call_of_slow(struct call *call);
/* For looks.left: makes a task of the call if client_may_be_promoted() and its client can
 * find it again by its session or token. The same call made again joins that task
 * (inbox/repeated_calls.h). */
void detached_call_of_left(struct call *call);
/* Whether the call may become a task, and its client answers such a
 * question by the gateway's tools. */
bool detached_call_asks_later(struct call *call, enum question_kind kind);
/* Sends the call's body and answers it: with upstream's answer, or after `patience_ms` with the
 * task that it has become. When the client leaves before, only the wait ends. */
void detached_call_run(struct call *call, int64_t patience_ms);
/* Whether a client's notifications/cancelled is about such a call, so that the gateway itself
 * notifies the server. Without a session only the one call of the owner that has this id is. After
 * call_identify(). */
bool detached_call_takes_cancel(const struct call *call);
/* The client of this inbox_key_of_call() has given up the request: its calls on this worker end at
 * the server. A task ends as cancelled, unless a pending answer has named it. */
void detached_calls_cancel(struct gateway_worker *worker, struct str key, struct str request_id);
/* The call is a DELETE of its session. true: promoted calls run in it, after the last of which the
 * server gets a DELETE; now it gets none. */
bool detached_calls_hold_session(const struct call *call);
/* The call has ended the session with this client_key_of_session(). Of the calls that it owns,
 * nobody is asked any more. */
void detached_calls_end_session(const struct call *call, struct str key);
/* The task has changed. If it was cancelled or has expired, the server is told. */
void detached_call_note_task(struct gateway_worker *worker, struct task *task);
/* Ends the worker's calls that are tasks: the process ends. */
void detached_calls_drop(struct gateway_worker *worker);
