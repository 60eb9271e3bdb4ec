/*
 * The answers that a client gives to the server's questions inside an approved call. People have
 * seen the call and not the answer, which may change what the call does. So each answer is a task
 * of its own (task_is_answer()): it is on disk, with its audit rows, before it reaches the server,
 * and operators see it wherever they see tasks. `approval.W.rounds` says whether it waits for the
 * same votes as the call.
 *
 * On the loop of the worker that has the answer.
 */
#pragma once

#include "call/worker.h"
#include "taskgate/core/str.h"

enum answer_verdict {
    ANSWER_PASSES,
    ANSWER_REFUSED,  /* people have, nobody has decided in time, or the store has failed */
    ANSWER_TOO_LATE, /* the call has ended, or has gone back: nothing is to be sent */
};
typedef void (*answer_gate_callback)(void *context, enum answer_verdict verdict);

/* Whether answers inside the call pass the gate: people have approved it, or a grant has. NULL is
 * allowed. */
bool answer_gate_applies(const struct task *task);
/* Whether the client of the call is not to be asked anything. */
bool answer_gate_denies(const struct task *task);

struct answer_gate_answers {
    struct task *task;    /* of the call; borrowed */
    struct str questions; /* JSON object: key -> {method, params} */
    struct str answers;   /* JSON object: key -> result */
};
enum answer_course {
    ANSWER_IS_RECORDED, /* the callback comes as soon as it is on disk */
    ANSWER_WAITS,       /* people are asked first */
};
/* Exactly one of `callback` and `dropped` is called, once and never before this returns; `dropped`
 * when the worker ends. */
enum answer_course answer_gate_pass(struct gateway_worker *worker,
                                    const struct answer_gate_answers *answers,
                                    answer_gate_callback callback, void (*dropped)(void *context),
                                    void *context);

/* A task has moved. */
void answer_gate_note_task(struct gateway_worker *worker, struct task *task);
void answer_gates_drop(struct gateway_worker *worker);
