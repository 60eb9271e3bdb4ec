/* Reminders and escalations: the times of a new task, and what is due. */
#include "effects.h"

#include <stdlib.h>

#include "audit.h"
#include "task_operations.h"
#include "taskgate/config/config.h"

/* ---- a new task ---- */

static bool note_time(struct batch *batch, const struct task *task, unsigned event,
                      int64_t after_ms)
{
    if (after_ms <= 0 || task->state != TASK_PENDING)
        return true;
    int64_t due_ms = task->created_ms + after_ms;
    batch_sweep_no_later_than(batch, due_ms);
    return rows_write(batch->database, STATEMENT_REMINDER_INSERT,
                      VALUES(TEXT(task->id), NUMBER(event), NUMBER(due_ms)));
}

bool reminders_note_created(struct batch *batch, const struct task *task)
{
    return note_time(batch, task, NOTIFY_REMINDED, task->remind_after_ms) &&
           note_time(batch, task, NOTIFY_ESCALATED, task->escalate_after_ms);
}

/* ---- what is due ---- */

static const struct {
    unsigned event;
    const char *name; /* in the audit trail */
} kinds[] = {{NOTIFY_REMINDED, "remind"}, {NOTIFY_ESCALATED, "escalate"}};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

static bool reminders_tell(struct batch *batch, struct task *task, size_t kind)
{
    return audit_append_now(batch, task, kinds[kind].name, AUDIT_GATEWAY, "") &&
           outbox_note_waiting(batch, task, kinds[kind].event);
}

static bool reminder_send(struct batch *batch, const char *id, size_t kind)
{
    struct task *task = NULL;
    enum row_result result = task_operations_load(batch, str_from(id), &task);
    bool done = result != ROW_FAILED;
    if (result == ROW_FOUND && task->state == TASK_PENDING)
        done = reminders_tell(batch, task, kind);
    task_unref(task);
    return rows_write(batch->database, STATEMENT_REMINDER_DELETE,
                      VALUES(TEXT(id), NUMBER(kinds[kind].event))) &&
           done;
}

static bool reminders_plan(struct batch *batch, size_t kind)
{
    int64_t due_ms = INT64_MAX;
    bool read = rows_number(batch->database, STATEMENT_REMINDER_NEXT,
                            VALUES(NUMBER(kinds[kind].event), NUMBER(batch->now_ms)), &due_ms);
    batch_sweep_no_later_than(batch, due_ms);
    return read;
}

static bool send_kind(struct batch *batch, size_t limit, size_t kind)
{
    struct id_list list = {.count = 0};
    bool done = rows_ids(
        batch->database, STATEMENT_REMINDER_DUE,
        VALUES(NUMBER(kinds[kind].event), NUMBER(batch->now_ms), NUMBER((int64_t)limit)), &list);
    for (size_t i = 0; done && i < list.count; i++)
        done = reminder_send(batch, list.ids[i], kind);
    if (list.count == limit)
        batch_sweep_no_later_than(batch, batch->now_ms);
    free(list.ids);
    return done && reminders_plan(batch, kind);
}

bool reminders_send(struct batch *batch, size_t limit)
{
    bool done = true;
    for (size_t i = 0; done && i < KIND_COUNT; i++)
        done = send_kind(batch, limit, i);
    return done;
}
