/*
 * What servers require in the calls of tasks, and the answers of the tasks' clients. All rounds are
 * one call: it is sent anew only when the server has said that it is to be. On the loop of the
 * invocation, unless said otherwise.
 */
#pragma once

#include "server/http.h"

struct invocation;
struct rounds_taken;

/* Takes answers (JSON object) of the task's owner to what the server asks, and tells the worker
 * that runs the call. Any worker's loop. */
void task_inputs_answer(struct gateway_worker *worker, struct task *task, struct str answers);
/* Asks a legacy client what is open in the round and was not asked before. */
void task_inputs_ask(struct invocation *invocation);

/* EVENT_ROUND. A legacy client is asked as its era has it, and each question has a clock of its
 * own. */
void task_inputs_take_round(struct invocation *invocation, struct str requests,
                            bool has_legacy_client);
/* EVENT_LOST, with another reason than the reply. */
void task_inputs_lost(struct invocation *invocation, enum lost_reason reason);
/* The client has answered something: sends the call again if that was all. */
void task_inputs_answered(struct invocation *invocation);
/* The same in two steps. false: it was not all. */
bool task_inputs_take(struct invocation *invocation, struct rounds_taken *taken);
/* Sends the call again, unless the rules in force forbid it. */
void task_inputs_send(struct invocation *invocation, struct str answers);
/* Notifies the clients of the task that what is asked of them has changed. */
void task_inputs_tell(const struct invocation *invocation);
