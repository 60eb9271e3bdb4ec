/*
 * The servers' questions to the clients of modern tasks while their calls run: the open requests of
 * each task, under keys of the gateway's own, and the answers so far. A key names its round and is
 * never used again.
 *
 * All workers share the table behind a short lock, because the client may ask on any of them. Any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

struct task_rounds;

struct task_rounds *task_rounds_create(void);
void task_rounds_destroy(struct task_rounds *rounds); /* NULL is allowed */

/* The requests of one round (JSON object, at least one member, at most QUESTIONS_PER_ROUND) take
 * the place of earlier ones. Those of a number that is there already keep their keys and answers,
 * and lose what is asked no more. false: they are the same as before. */
bool task_rounds_put(struct task_rounds *rounds, struct str task, int64_t number,
                     struct str requests, int64_t now_ms);
/* Appends the open requests, a JSON object. false: nothing is asked. */
bool task_rounds_show(struct task_rounds *rounds, struct str task, struct buffer *requests,
                      int64_t *changed_ms);
/* Takes the answers (JSON object) to open requests; other keys count for nothing. true: it was the
 * answer to one at least. */
bool task_rounds_answer(struct task_rounds *rounds, struct str task, struct str answers,
                        int64_t now_ms);
/* JSON objects by the server's keys, in one order; empty at first. */
struct task_rounds_taken {
    struct buffer answers, questions;
};
void task_rounds_taken_finish(struct task_rounds_taken *taken);
/* Takes all the answers, each once. false: some are still missing, or nothing was asked. */
bool task_rounds_take(struct task_rounds *rounds, struct str task, struct task_rounds_taken *taken);
/* The same with the answers that there are. false: there is none. */
bool task_rounds_take_some(struct task_rounds *rounds, struct str task,
                           struct task_rounds_taken *taken);
/* false: there were none. */
bool task_rounds_forget(struct task_rounds *rounds, struct str task);
