/*
 * Clients that wait for a task. A request is held until the task or the client's patience ends. A
 * client that accepts SSE gets signs of life meanwhile (behaviour 7.6).
 */
#pragma once

#include "call/call.h"

struct waiting_options {
    /* Answers the call when the task has ended. NULL: as tasks/result does. */
    void (*ended)(struct call *call, struct task *task);
    /* Answers it when its patience ends. NULL: it waits for as long as the task takes. */
    void (*timed_out)(struct call *call);
    bool opens_late; /* a response that comes soon is plain JSON */
};

/* Begins to wait; the call is answered when the task ends. Begin before the task is read, so that
 * no change is missed. */
void waiting_begin(struct call *call, struct str task_id, const struct waiting_options *options);
/* Calls `timed_out` after `patience_ms`. */
void waiting_set_patience(struct call *call, int64_t patience_ms);
/* Ends the wait without an answer. */
void waiting_end(struct call *call);
/* The task has been read. It is this client's and has not ended. From now on a client that accepts
 * SSE gets signs of life. The call is answered at once when the process ends. */
void waiting_open(struct call *call);
/* Keeps the task as it was read, for `timed_out`. */
void waiting_keep(struct call *call, struct task *task);
/* NULL where none is kept. Borrowed. */
const struct task *waiting_kept(const struct call *call);
/* The newest call of an owner's that waits for it on this worker; NULL without. Borrowed. */
const struct call *waiting_newest(struct gateway_worker *worker, const struct task *task);
/* The task has changed. If it has ended, the waiting calls are answered. */
void waiting_note_task(struct gateway_worker *worker, struct task *task);
/* Passes a progress message of the server's to the waiting calls that gave a progress token. */
void waiting_pass_progress(struct gateway_worker *worker, const struct task *task,
                           struct str message);
/* Sends a message on the event stream of one waiting call. false: this worker has none. */
bool waiting_pass_message(struct gateway_worker *worker, const struct task *task,
                          struct str message);
/* Sends the questions of the task's execution to the waiting clients that can answer. */
void waiting_offer(struct gateway_worker *worker, const struct task *task);
/* Sends a message on the stream with this number. false: this worker does not have it. */
bool waiting_send(struct gateway_worker *worker, const struct task *task, uint64_t claimant,
                  struct str message);
/* The task has ended: answers this call alone. */
void waiting_answer(struct call *call, struct task *task);
/* The process ends: each call that is held and does not wait for the server is answered as when its
 * patience ends, and with -32013 where that means nothing. */
void waiting_end_all(struct gateway_worker *worker);
