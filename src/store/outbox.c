/* The notices that a change leads to, and a row for each target. */
#include "outbox.h"

#include "taskgate/config/config.h"

static bool note(struct batch *batch, enum outbox_whom whom, const struct task *task,
                 unsigned events)
{
    const struct outbox_rows *outbox = batch->backend->outbox;
    enum outbox_wanted wanted =
        events ? outbox->wanted(batch->database, whom, events) : OUTBOX_NOTHING;
    if (wanted == OUTBOX_FAILED || wanted == OUTBOX_NOTHING)
        return wanted == OUTBOX_NOTHING;
    const char *arguments = wanted == OUTBOX_WITH_ARGUMENTS ? task->arguments : "";
    return outbox->insert(batch->database, whom, task, events, arguments, batch->now_ms);
}

bool outbox_note_created(struct batch *batch, const struct task *task)
{
    return note(batch, OUTBOX_WANTING, task, NOTIFY_CREATED);
}

bool outbox_note_moved(struct batch *batch, const struct task *task, enum task_state from)
{
    unsigned events = 0;
    bool was_decided = task->state == TASK_APPROVED || task->state == TASK_REJECTED;
    if (from == TASK_PENDING && was_decided)
        events |= NOTIFY_DECIDED;
    if (task->state == TASK_EXPIRED)
        events |= NOTIFY_EXPIRED;
    if (task_state_is_terminal(task->state))
        events |= NOTIFY_ENDED;
    return note(batch, OUTBOX_WANTING, task, events);
}

bool outbox_note_emergency(struct batch *batch, const struct task *task)
{
    return note(batch, OUTBOX_OTHERS, task, NOTIFY_DECIDED);
}
