/*
 * A task as operators see it (contract "Admin"): one line of JSON, with the values hidden
 * that the workflow's redact_fields name.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/task/task.h"

#include "operator.h"

/* The operator who looks, the configuration, and the gateway; borrowed. */
struct gateway_worker;
struct task_view {
    struct config *config;
    const struct operator_identity *who;
    const struct gateway_worker *worker; /* or NULL */
    bool with_history;
    const struct store_tally *tally; /* NULL: the history is null */
};

void task_json_write(struct buffer *out, const struct task *task, const struct task_view *view);
