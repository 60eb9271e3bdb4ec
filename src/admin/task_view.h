/* Who looks at a task, and by which configuration. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/task/task.h"

#include "operator.h"

struct gateway_worker;
struct store_tally;

/* The operator who looks, the configuration, and the gateway; borrowed. */
struct task_view {
    struct config *config;
    const struct operator_identity *who;
    const struct gateway_worker *worker; /* or NULL */
    bool with_history;
    const struct store_tally *tally; /* NULL: the history is null */
};
