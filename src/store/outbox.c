/* The notices that a change leads to, and a row for each target. */
#include "outbox.h"

#include <stdio.h>

#include "taskgate/config/config.h"

enum wanted { WANTED_FAILED, WANTED_BY_NOBODY, WANTED, WANTED_WITH_ARGUMENTS };

/* Whom a notice is for: two statements, the first of which asks whether there is anybody. */
struct addressees {
    enum statement find, insert;
};
static const struct addressees wanting = {STATEMENT_OUTBOX_WANTED,
                                          STATEMENT_OUTBOX_DELIVERY_INSERT};
static const struct addressees others = {STATEMENT_OUTBOX_OTHERS, STATEMENT_OUTBOX_DELIVERY_OTHERS};

static enum wanted find_wanted(struct batch *batch, const struct addressees *whom, unsigned events)
{
    enum wanted wanted = WANTED_FAILED;
    sqlite3_stmt *row = database_statement(batch->database, whom->find);
    sqlite3_bind_int64(row, 1, events);
    if (sqlite3_step(row) == SQLITE_ROW) {
        wanted = sqlite3_column_int(row, 0) ? WANTED_WITH_ARGUMENTS : WANTED;
        if (sqlite3_column_type(row, 0) == SQLITE_NULL)
            wanted = WANTED_BY_NOBODY;
    }
    database_release(row);
    return wanted;
}

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

static bool insert_notice(struct batch *batch, const struct task *task, const char *arguments,
                          const char *anchor)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_OUTBOX_NOTICE_INSERT);
    const char *const texts[] = {task->id,         task->source,    task->tool,
                                 task->workflow,   task->principal, task->arguments_digest,
                                 task->decided_by, task->reason,    task->status_message,
                                 arguments};
    const int64_t numbers[] = {batch->now_ms,      task->state,      task->created_ms,
                               task->decide_by_ms, task->decided_ms, was_emergency(task)};
    int index = 1;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        database_bind_text(row, index++, texts[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sqlite3_bind_int64(row, index++, numbers[i]);
    database_bind_text(row, index, anchor);
    return database_run(row);
}

static bool insert_deliveries(struct batch *batch, const struct addressees *whom,
                              const struct task *task, unsigned events)
{
    int64_t notice = sqlite3_last_insert_rowid(batch->database->handle);
    sqlite3_stmt *row = database_statement(batch->database, whom->insert);
    sqlite3_bind_int64(row, 1, events);
    sqlite3_bind_int64(row, 2, notice);
    database_bind_text(row, 3, task->id);
    sqlite3_bind_int64(row, 4, batch->now_ms);
    batch->has_notices = true;
    return database_run(row);
}

static bool note(struct batch *batch, const struct addressees *whom, const struct task *task,
                 unsigned events)
{
    enum wanted wanted = events ? find_wanted(batch, whom, events) : WANTED_BY_NOBODY;
    if (wanted == WANTED_FAILED || wanted == WANTED_BY_NOBODY)
        return wanted == WANTED_BY_NOBODY;
    const char *arguments = wanted == WANTED_WITH_ARGUMENTS ? task->arguments : "";
    return insert_notice(batch, task, arguments, "") &&
           insert_deliveries(batch, whom, task, events);
}

bool outbox_note_created(struct batch *batch, const struct task *task)
{
    return note(batch, &wanting, task, NOTIFY_CREATED);
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
    return note(batch, &wanting, task, events);
}

bool outbox_note_emergency(struct batch *batch, const struct task *task)
{
    return note(batch, &others, task, NOTIFY_DECIDED);
}

bool outbox_note_waiting(struct batch *batch, const struct task *task, unsigned event)
{
    return note(batch, &wanting, task, event);
}

bool outbox_note_anchor(struct batch *batch, const char *anchor)
{
    enum wanted wanted = find_wanted(batch, &wanting, NOTIFY_ANCHORED);
    if (wanted == WANTED_FAILED || wanted == WANTED_BY_NOBODY)
        return wanted == WANTED_BY_NOBODY;
    /* Anchors wait for each other, as notices of one task do. */
    struct task *nothing = task_create(TASK_PENDING);
    snprintf(nothing->id, sizeof nothing->id, "audit");
    bool done = insert_notice(batch, nothing, "", anchor) &&
                insert_deliveries(batch, &wanting, nothing, NOTIFY_ANCHORED);
    task_unref(nothing);
    return done;
}
