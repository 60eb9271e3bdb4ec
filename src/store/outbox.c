/* The notices that a change leads to, and a row for each target. */
#include "outbox.h"

#include <stdio.h>

#include "taskgate/config/config.h"

/* The targets of a notice: those that want one of its events, or those that want none. */
enum whom { WANTING, OTHERS };

/* A notice of a task as it is, or of an anchor, for which the task is an empty one. */
struct notice {
    const struct task *task;
    unsigned events;
    const char *arguments, *anchor; /* or "" */
    bool is_emergency;
};

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

struct asking {
    enum whom whom;
    unsigned events;
    enum wanted { NOTHING_WANTED, NOTICE, WITH_ARGUMENTS } wanted;
};

static bool ask_target(void *context, const struct value *row)
{
    struct asking *asking = context;
    bool wants = ((unsigned)row[0].number & asking->events) != 0;
    enum wanted wanted = row[1].number ? WITH_ARGUMENTS : NOTICE;
    if (wants == (asking->whom == WANTING) && wanted > asking->wanted)
        asking->wanted = wanted;
    return true;
}

/* What they want of the notice. */
static bool find_wanted(struct batch *batch, enum whom whom, unsigned events, enum wanted *wanted)
{
    struct asking asking = {whom, events, NOTHING_WANTED};
    bool done = !events || rows_read(batch->database, STATEMENT_OUTBOX_TARGETS, NO_VALUES,
                                     ask_target, &asking);
    *wanted = asking.wanted;
    return done;
}

/* And a delivery for each of them, with the first of the events that the target wants. */
static bool outbox_insert(struct batch *batch, enum whom whom, const struct notice *notice)
{
    const struct task *task = notice->task;
    batch->has_notices = true;
    return rows_write(
               batch->database, STATEMENT_OUTBOX_NOTICE_INSERT,
               VALUES(TEXT(task->id), TEXT(task->source), TEXT(task->tool), TEXT(task->workflow),
                      TEXT(task->principal), TEXT(task->arguments_digest), TEXT(task->decided_by),
                      TEXT(task->reason), TEXT(task->status_message), TEXT(notice->arguments),
                      NUMBER(batch->now_ms), NUMBER(task->state), NUMBER(task->created_ms),
                      NUMBER(task->decide_by_ms), NUMBER(task->decided_ms),
                      NUMBER(notice->is_emergency), TEXT(notice->anchor))) &&
           rows_write(batch->database,
                      whom == WANTING ? STATEMENT_OUTBOX_DELIVERY_INSERT
                                      : STATEMENT_OUTBOX_DELIVERY_TO_OTHERS,
                      VALUES(NUMBER(notice->events), TEXT(task->id), NUMBER(batch->now_ms)));
}

static bool outbox_note(struct batch *batch, enum whom whom, const struct task *task,
                        unsigned events)
{
    enum wanted wanted;
    if (!find_wanted(batch, whom, events, &wanted))
        return false;
    return wanted == NOTHING_WANTED ||
           outbox_insert(batch, whom,
                         &(struct notice){
                             .task = task,
                             .events = events,
                             .arguments = wanted == WITH_ARGUMENTS ? task->arguments : "",
                             .anchor = "",
                             .is_emergency = was_emergency(task),
                         });
}

bool outbox_note_created(struct batch *batch, const struct task *task)
{
    return outbox_note(batch, WANTING, task, NOTIFY_CREATED);
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
    return outbox_note(batch, WANTING, task, events);
}

bool outbox_note_voted(struct batch *batch, const struct task *task)
{
    return outbox_note(batch, WANTING, task, NOTIFY_VOTED);
}

bool outbox_note_emergency(struct batch *batch, const struct task *task)
{
    return outbox_note(batch, OTHERS, task, NOTIFY_DECIDED);
}

bool outbox_note_waiting(struct batch *batch, const struct task *task, unsigned event)
{
    return outbox_note(batch, WANTING, task, event);
}

bool outbox_note_anchor(struct batch *batch, const char *anchor)
{
    enum wanted wanted;
    if (!find_wanted(batch, WANTING, NOTIFY_ANCHORED, &wanted))
        return false;
    if (wanted == NOTHING_WANTED)
        return true;
    /* Anchors wait for each other, as notices of one task do. */
    struct task *nothing = task_create(TASK_PENDING);
    snprintf(nothing->id, sizeof nothing->id, "audit");
    bool done = outbox_insert(batch, WANTING,
                              &(struct notice){
                                  .task = nothing,
                                  .events = NOTIFY_ANCHORED,
                                  .arguments = "",
                                  .anchor = anchor,
                              });
    task_unref(nothing);
    return done;
}
