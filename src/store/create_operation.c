/* Creating a task, within the limits; a grant may decide it at once. */
#include "grants.h"
#include "outbox.h"
#include "pending.h"
#include "reminders.h"
#include "replica.h"
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
    int64_t used = 0, more = (int64_t)operation_task_bytes(task);
    struct limited_counts counts;
    if (!batch->backend->used_bytes(batch->database, &used) ||
        !batch->backend->tasks->count_limited(batch->database, task->owner, &counts))
        return false;
    *status = STORE_OK;
    if (counts.of_owner >= limits->pending_per_principal)
        *status = refuse(STORE_LIMIT_PRINCIPAL, "pending_per_principal");
    else if (counts.of_all >= limits->pending_total)
        *status = refuse(STORE_LIMIT_TOTAL, "pending_total");
    else if (used > limits->store_bytes - more)
        *status = refuse(STORE_LIMIT_BYTES, "store_bytes");
    return true;
}

/* Its times are by the clock of this process; the deadlines are by that of the database. */
static void set_ahead(struct task *task, int64_t ahead_ms)
{
    int64_t *const times[] = {&task->created_ms, &task->updated_ms, &task->decide_by_ms,
                              &task->execute_by_ms, &task->decided_ms};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (*times[i] > 0)
            *times[i] += ahead_ms;
    }
}

static bool run_create(struct batch *batch, struct operation *operation)
{
    struct task *task = operation->task;
    struct error error;
    set_ahead(task, batch->backend->ahead_ms(batch->database));
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
    if (!batch->backend->tasks->insert(batch->database, task) ||
        !audit_append(batch, task, "create", "", (struct audit_actor){"client", task->owner, NULL},
                      ""))
        return false;
    if (!pending_note_created(batch, task) ||
        (task->state == TASK_EXECUTING && !replica_claim(batch, task)))
        return false;
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
