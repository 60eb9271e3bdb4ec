/* The notices that a change leads to, and a row for each target. */
#include "outbox.h"

#include <stdio.h>

#include "taskgate/config/config.h"

static bool was_emergency(const struct task *task)
{
    struct ballot_votes votes = {NULL, 0};
    bool is_emergency = false;
    if (*task->votes && ballot_votes_read(&votes, str_from(task->votes))) {
        for (size_t i = 0; i < votes.count; i++)
            is_emergency |= votes.items[i].is_emergency;
    }
    ballot_votes_finish(&votes);
    return is_emergency;
}

static bool insert(struct batch *batch, enum outbox_whom whom, const struct outbox_note *note)
{
    batch->has_notices = true;
    return batch->backend->outbox->insert(batch->database, whom, note);
}

static bool note(struct batch *batch, enum outbox_whom whom, const struct task *task,
                 unsigned events)
{
    enum outbox_wanted wanted =
        events ? batch->backend->outbox->wanted(batch->database, whom, events) : OUTBOX_NOTHING;
    if (wanted == OUTBOX_FAILED || wanted == OUTBOX_NOTHING)
        return wanted == OUTBOX_NOTHING;
    return insert(batch, whom,
                  &(struct outbox_note){
                      .task = task,
                      .events = events,
                      .arguments = wanted == OUTBOX_WITH_ARGUMENTS ? task->arguments : "",
                      .anchor = "",
                      .is_emergency = was_emergency(task),
                      .at_ms = batch->now_ms,
                  });
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

bool outbox_note_voted(struct batch *batch, const struct task *task)
{
    return note(batch, OUTBOX_WANTING, task, NOTIFY_VOTED);
}

bool outbox_note_emergency(struct batch *batch, const struct task *task)
{
    return note(batch, OUTBOX_OTHERS, task, NOTIFY_DECIDED);
}

bool outbox_note_waiting(struct batch *batch, const struct task *task, unsigned event)
{
    return note(batch, OUTBOX_WANTING, task, event);
}

bool outbox_note_anchor(struct batch *batch, const char *anchor)
{
    enum outbox_wanted wanted =
        batch->backend->outbox->wanted(batch->database, OUTBOX_WANTING, NOTIFY_ANCHORED);
    if (wanted == OUTBOX_FAILED || wanted == OUTBOX_NOTHING)
        return wanted == OUTBOX_NOTHING;
    /* Anchors wait for each other, as notices of one task do. */
    struct task *nothing = task_create(TASK_PENDING);
    snprintf(nothing->id, sizeof nothing->id, "audit");
    bool done = insert(batch, OUTBOX_WANTING,
                       &(struct outbox_note){
                           .task = nothing,
                           .events = NOTIFY_ANCHORED,
                           .arguments = "",
                           .anchor = anchor,
                           .at_ms = batch->now_ms,
                       });
    task_unref(nothing);
    return done;
}
