/*
 * Clients that wait for a task: held open until it ends, or their patience does, as SSE with
 * signs of life when the client accepts it (contract "Tasks").
 */
#pragma once

#include "request/call.h"

struct result_wait_options {
    /* Answers the call when the task has ended. NULL: as tasks/result does. */
    void (*ended)(struct call *call, struct task *task);
    /* Answers it when its patience ends. NULL: it waits for as long as the task takes. */
    void (*timed_out)(struct call *call);
    bool opens_late; /* what is answered soon is plain JSON */
};

/* Begins to wait; the call is answered when the task ends. A change that comes after this is
 * not missed, so begin before the task is read. */
void result_wait_begin(struct call *call, struct str task_id);
void result_wait_begin_with(struct call *call, struct str task_id,
                            const struct result_wait_options *options);
/* The client's patience ends in so long, with `timed_out`. */
void result_wait_set_patience(struct call *call, int64_t patience_ms);
/* Ends the wait without an answer. */
void result_wait_end(struct call *call);
/* The task has been read: it is this client's, and has not ended. From now on the wait shows
 * signs of life, as SSE, if the client accepts it; or the call is answered at once, because the
 * process ends. */
void result_wait_open(struct call *call);
/* Whether an owner waits for the task on this worker. */
bool result_wait_exists(struct gateway_worker *worker, const struct task *task);
/* The task has changed: those who wait are answered if it has ended. */
void result_wait_note_task(struct gateway_worker *worker, struct task *task);
/* Upstream's progress, a whole message, goes to those who gave a progress token. */
void result_wait_pass_progress(struct gateway_worker *worker, const struct task *task,
                               struct str message);
/* Sends a message to one of those who wait as SSE; false: nobody does, on this worker. */
bool result_wait_pass_message(struct gateway_worker *worker, const struct task *task,
                              struct str message);
/* What the task's execution asks is sent to those who can be asked. */
void result_wait_offer(struct gateway_worker *worker, const struct task *task);
/* Sends a message on the stream of this number; false: it is not here. */
bool result_wait_send(struct gateway_worker *worker, const struct task *task, uint64_t claimant,
                      struct str message);
/* The task has ended: answers this call alone. */
void result_wait_answer(struct call *call, struct task *task);
/* Answers everyone who is held, but not by upstream, -32013: the process ends. */
void result_wait_end_all(struct gateway_worker *worker);
