/* Creating a task: its limits, its rows, and the grant that may decide it at once. */
#include "grants.h"
#include "outbox.h"
#include "reminders.h"
#include "task_operations.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"

static enum store_status refuse(enum store_status status, const char *limit)
{
    metrics_count(METRIC_LIMITS_REACHED, str_from(limit));
    return status;
}

/* false: the database failed. */
static bool check_limits(struct batch *batch, const struct operation *operation,
                         enum store_status *status)
{
    const struct store_limits *limits = &operation->limits;
    const struct task *task = operation->task;
    int64_t used = 0, more = (int64_t)task_rows_bytes(task);
    if (!database_used_bytes(batch->database, &used))
        return false;
    *status = STORE_OK;
    if (pending_of_owner(batch->pending, task->owner) >= limits->pending_per_principal)
        *status = refuse(STORE_LIMIT_PRINCIPAL, "pending_per_principal");
    else if (batch->pending->limited_total >= limits->pending_total)
        *status = refuse(STORE_LIMIT_TOTAL, "pending_total");
    else if (used > limits->store_bytes - more)
        *status = refuse(STORE_LIMIT_BYTES, "store_bytes");
    return true;
}

static bool run_create(struct batch *batch, struct operation *operation)
{
    struct task *task = operation->task;
    struct error error;
    if (!task_check(task, &error)) {
        log_error("A task was not stored", LOG_TEXT("reason", error.message));
        operation->reply.status = STORE_FAILED;
        return true;
    }
    if (!check_limits(batch, operation, &operation->reply.status))
        return false;
    if (operation->reply.status != STORE_OK)
        return true;
    bool is_granted;
    if (!task_rows_insert(batch->database, task) ||
        !audit_append(batch, task, "create", "", (struct audit_actor){"client", task->owner, NULL},
                      ""))
        return false;
    pending_note_created(batch->pending, task);
    /* Nobody is asked about a call that a grant decides. */
    if (!grants_apply(batch, task, &is_granted) ||
        (!is_granted &&
         (!outbox_note_created(batch, task) || !reminders_note_created(batch, task))))
        return false;
    batch_add_event(batch, task, true);
    operation->reply.task = task_ref(task);
    return true;
}

const struct operation_kind operation_task_create = {"create", true, run_create};
