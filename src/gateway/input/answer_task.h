/*
 * An answer as a task (answer_gate.h): its arguments are what was asked and what was said, and its
 * caller, terms and risk are those of the call. It is not stored yet.
 */
#pragma once

#include "answer_gate.h"
#include "taskgate/config/config.h"

/* Pending if it waits for people, else executing. NULL: it cannot be kept. */
struct task *answer_task_create(const struct answer_gate_answers *given, bool waits,
                                const struct config *config);
