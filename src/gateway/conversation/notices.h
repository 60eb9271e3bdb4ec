/*
 * Messages of the server while a call runs whose client has only its task. Notifications are passed
 * on, with the task's id in related-task _meta. Requests become questions, which wait for an answer
 * (behaviour 7.8, 12.1).
 */
#pragma once

#include "call/call.h"
#include "question.h"

/* Takes a request or notification of a call that runs. */
void notices_take(const struct question_origin *origin, struct str message);
