/* Creating a task, within the limits; a grant may decide it at once. */
#include "effects.h"
#include "queue.h"
#include "task_operations.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"

static enum store_status create_refuse(enum store_status status, const char *limit)
{
    metrics_count(METRIC_LIMITS_REACHED, str_from(limit));
    return status;
}

/* One create writes at most some pages of each table and index, its texts to the task, to the
 * outbox and beside the audit trail. */
#define CREATE_BYTES_MOST INT64_C(262144)
#define CREATE_COPIES_MOST 4

/* Asks the database again only where the bytes of what this batch has created may matter. */
static bool check_room(struct batch *batch, int64_t limit, int64_t more, bool *has_room)
{
    int64_t most = batch->used_bytes_most, used = most;
    if (most == 0 || most > limit - more)
        used = batch->backend->look(batch->database, LOOK_BYTES);
    if (used < 0)
        return false;
    batch->used_bytes_most = used + CREATE_BYTES_MOST + CREATE_COPIES_MOST * more;
    *has_room = used <= limit - more;
    return true;
}

/* false: the database failed. */
static bool check_limits(struct batch *batch, const struct operation *operation,
                         enum store_status *status)
{
    const struct store_limits *limits = &operation->create.limits;
    const struct task *task = operation->create.task;
    struct limited_counts counts;
    bool has_room;
    if (!check_room(batch, limits->store_bytes, (int64_t)operation_task_bytes(task), &has_room) ||
        !pending_count(batch, task->owner, &counts))
        return false;
    *status = STORE_OK;
    if (counts.of_owner >= limits->pending_per_principal)
        *status = create_refuse(STORE_LIMIT_PRINCIPAL, "pending_per_principal");
    else if ((int64_t)task->request_length > limits->pending_bytes_per_principal - counts.bytes)
        *status = create_refuse(STORE_LIMIT_PRINCIPAL_BYTES, "pending_bytes_per_principal");
    else if (counts.of_all >= limits->pending_total)
        *status = create_refuse(STORE_LIMIT_TOTAL, "pending_total");
    else if (!has_room)
        *status = create_refuse(STORE_LIMIT_BYTES, "store_bytes");
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

static void write_brief(const struct store_redaction *redaction, struct task *task)
{
    OWNED_BUFFER(brief);
    if (task->state != TASK_PENDING || !redaction->write_brief)
        return;
    redaction->write_brief(redaction->context, &brief, task);
    task_set_text(&task->brief, buffer_str(&brief));
}

static bool run_create_create(struct batch *batch, struct operation *operation)
{
    struct task *task = operation->create.task;
    struct error error;
    set_ahead(task, batch->backend->look(batch->database, LOOK_AHEAD_MS));
    if (!task_check(task, &error)) {
        log_error("A task was not stored", LOG_TEXT("reason", error.message));
        operation->reply.status = STORE_FAILED;
        return true;
    }
    if (!check_limits(batch, operation, &operation->reply.status))
        return false;
    if (operation->reply.status != STORE_OK)
        return true;
    write_brief(batch->redaction, task);
    bool is_granted = false, is_blocked, is_executing = task->state == TASK_EXECUTING;
    const struct keeper keeper = replica_keeper(batch);
    bool is_kept = batch->backend->is_shared && !is_executing;
    if (!task_rows_insert(batch->database, task, is_kept ? &keeper : NULL) ||
        !audit_append(batch, task, "create", "", (struct audit_actor){"client", task->owner, NULL},
                      ""))
        return false;
    if (!pending_note_created(batch, task) || (is_executing && !replica_claim(batch, task)))
        return false;
    /* Nobody is asked about a call that a block or a grant decides. */
    if (!blocks_apply(batch, task, &is_blocked) ||
        (!is_blocked && !grants_apply(batch, task, &is_granted)) ||
        (!is_granted && !is_blocked &&
         (!outbox_note_created(batch, task) || !reminders_note_created(batch, task))))
        return false;
    batch_add_event(batch, task, true);
    operation->reply.task = task_ref(task);
    return true;
}

static void create_finish(struct operation *operation)
{
    task_unref(operation->create.task);
}

const struct operation_kind operation_task_create = {"create", true, run_create_create,
                                                     create_finish};

void store_task_create(struct store *store, struct task *task, const struct store_limits *limits,
                       struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_create, call);
    operation->create.task = task;
    operation->create.limits = *limits;
    store_queue(store, operation);
}
