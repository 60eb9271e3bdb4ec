/* The times of a new task. */
#include "reminders.h"

#include "taskgate/config/config.h"

static bool note(struct batch *batch, const struct task *task, unsigned event, int64_t after_ms)
{
    if (after_ms <= 0 || task->state != TASK_PENDING)
        return true;
    int64_t due_ms = task->created_ms + after_ms;
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_REMINDER_INSERT);
    database_bind_text(row, 1, task->id);
    sqlite3_bind_int64(row, 2, event);
    sqlite3_bind_int64(row, 3, due_ms);
    if (due_ms < batch->sweep_again_ms)
        batch->sweep_again_ms = due_ms;
    return database_run(row);
}

bool reminders_note_created(struct batch *batch, const struct task *task)
{
    return note(batch, task, NOTIFY_REMINDED, task->remind_after_ms) &&
           note(batch, task, NOTIFY_ESCALATED, task->escalate_after_ms);
}
