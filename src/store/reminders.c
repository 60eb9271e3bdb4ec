/* The times of a new task. */
#include "reminders.h"

#include "taskgate/config/config.h"

static bool note(struct batch *batch, const struct task *task, unsigned event, int64_t after_ms)
{
    if (after_ms <= 0 || task->state != TASK_PENDING)
        return true;
    int64_t due_ms = task->created_ms + after_ms;
    if (due_ms < batch->sweep_again_ms)
        batch->sweep_again_ms = due_ms;
    return rows_write(batch->database, STATEMENT_REMINDER_INSERT,
                      VALUES(TEXT(task->id), NUMBER(event), NUMBER(due_ms)));
}

bool reminders_note_created(struct batch *batch, const struct task *task)
{
    return note(batch, task, NOTIFY_REMINDED, task->remind_after_ms) &&
           note(batch, task, NOTIFY_ESCALATED, task->escalate_after_ms);
}
