/* The notices that a change leads to, a row for each target, and their delivery. */
#include "effects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "queue.h"
#include "taskgate/config/config.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

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

/* ---- operations ---- */

/* After those of DELIVERY_COLUMNS. */
#define REFERENCE_COLUMN 28

/* From now on these; deliveries to others go with STRAY_DELIVERIES_PURGE. */
static bool run_outbox_configure(struct batch *batch, struct operation *operation)
{
    batch->sweep_again_ms = batch->now_ms;
    bool done = rows_write(batch->database, STATEMENT_OUTBOX_TARGET_CLEAR, NO_VALUES);
    for (size_t i = 0; done && i < operation->targets.count; i++) {
        const struct store_outbox_target *target = &operation->targets.items[i];
        done = rows_write(
            batch->database, STATEMENT_OUTBOX_TARGET_INSERT,
            VALUES(TEXT(target->key), NUMBER(target->events), NUMBER(target->with_arguments)));
    }
    return done;
}

/* ---- what is due ---- */

static void copy_fixed(char *field, size_t size, const struct value *value)
{
    snprintf(field, size, "%.*s", STR_ARGS(value->text));
}

/* DELIVERY_COLUMNS, and the reference or NULL. */
static struct store_delivery read_delivery(const struct value *row)
{
    struct task *task = task_create((enum task_state)row[6].number);
    struct store_delivery delivery = {
        .sequence = row[0].number,
        .event = (unsigned)row[2].number,
        .attempts = row[3].number,
        .at_ms = row[4].number,
        .task = task,
        .is_emergency = row[19].number != 0,
        .anchor = row[20].text.length > 0 ? memory_copy_str(row[20].text) : NULL,
    };
    const struct {
        char **field;
        int column;
    } texts[] = {
        {&task->source, 7},          {&task->tool, 8},        {&task->workflow, 9},
        {&task->principal, 10},      {&task->decided_by, 12}, {&task->reason, 13},
        {&task->status_message, 14}, {&task->arguments, 15},  {&task->shown, 21},
        {&task->terms, 22},          {&task->votes, 23},      {&task->meta, 24},
        {&task->other_params, 25},   {&task->owner, 27},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        task_set_text(texts[i].field, row[texts[i].column].text);
    copy_fixed(delivery.id, sizeof delivery.id, &row[1]);
    copy_fixed(task->id, sizeof task->id, &row[5]);
    copy_fixed(task->arguments_digest, sizeof task->arguments_digest, &row[11]);
    copy_fixed(task->request_digest, sizeof task->request_digest, &row[26]);
    task->created_ms = row[16].number;
    task->decide_by_ms = row[17].number;
    task->decided_ms = row[18].number;
    if (row[REFERENCE_COLUMN].kind != VALUE_NOTHING)
        delivery.reference = memory_copy_str(row[REFERENCE_COLUMN].text);
    return delivery;
}

struct listing {
    struct store_delivery *deliveries;
    size_t count, most;
};

static bool add_delivery(void *context, const struct value *row)
{
    struct listing *listing = context;
    ASSERT_NUMBERS(listing->count, <, listing->most);
    listing->deliveries[listing->count++] = read_delivery(row);
    return true;
}

static bool run_due(struct batch *batch, struct operation *operation)
{
    struct store_reply *reply = &operation->reply;
    struct listing listing = {memory_alloc_array(operation->page.limit, sizeof *listing.deliveries),
                              0, operation->page.limit};
    reply->deliveries = listing.deliveries;
    reply->next_due_ms = batch->now_ms + REPLICA_HEARTBEAT_MS;
    if (!replica_holds(batch, LEASE_OUTBOX))
        return true;
    bool done = rows_read(
        batch->database, STATEMENT_OUTBOX_DUE,
        VALUES(TEXT(operation->id), NUMBER(batch->now_ms), NUMBER((int64_t)operation->page.limit)),
        add_delivery, &listing);
    reply->delivery_count = listing.count;
    return done &&
           rows_number(batch->database, STATEMENT_OUTBOX_NEXT,
                       VALUES(TEXT(operation->id), NUMBER(batch->now_ms)), &reply->next_due_ms);
}

/* ---- how an attempt went ---- */

/* And the reference, where it tells the end of its task. */
static bool remove_delivery(struct batch *batch, int64_t sequence)
{
    return rows_write(batch->database, STATEMENT_OUTBOX_THREAD_END, VALUES(NUMBER(sequence))) &&
           rows_write(batch->database, STATEMENT_OUTBOX_DELETE, VALUES(NUMBER(sequence)));
}

/* A delivery is gone already if its target is no longer configured. */
static bool run_delivered(struct batch *batch, struct operation *operation)
{
    /* The reference is kept for the later deliveries of its task to its target. */
    if (operation->delivery.text &&
        !rows_write(batch->database, STATEMENT_OUTBOX_THREAD_PUT,
                    VALUES(NUMBER(operation->delivery.sequence), TEXT(operation->delivery.text))))
        return false;
    return remove_delivery(batch, operation->delivery.sequence);
}

static bool run_postpone(struct batch *batch, struct operation *operation)
{
    return rows_write(
        batch->database, STATEMENT_OUTBOX_POSTPONE,
        VALUES(NUMBER(operation->delivery.sequence), NUMBER(operation->delivery.due_ms)));
}

/* An anchor that did not arrive is about no task. */
static bool note_given_up(struct batch *batch, const struct store_delivery *delivery,
                          const char *reason)
{
    struct task *task = delivery->task;
    task->updated_ms = batch->now_ms; /* the entry's time */
    if (delivery->anchor)
        *task->id = '\0';
    const char *state = delivery->anchor ? "" : task_state_name(task->state);
    return audit_append(batch, task, "notification_given_up", state, AUDIT_GATEWAY, reason);
}

static bool outbox_give_up(struct batch *batch, int64_t sequence, const char *reason)
{
    struct store_delivery delivery = {.task = NULL};
    struct listing listing = {&delivery, 0, 1};
    if (!rows_read(batch->database, STATEMENT_OUTBOX_GET, VALUES(NUMBER(sequence)), add_delivery,
                   &listing))
        return false;
    if (listing.count == 0)
        return true;
    bool done = note_given_up(batch, &delivery, reason) && remove_delivery(batch, sequence);
    free(delivery.anchor);
    task_unref(delivery.task);
    free(delivery.reference);
    return done;
}

static bool run_give_up(struct batch *batch, struct operation *operation)
{
    return outbox_give_up(batch, operation->delivery.sequence, operation->delivery.text);
}

struct overdue {
    int64_t *sequences;
    size_t count, most;
};

static bool add_sequence(void *context, const struct value *row)
{
    struct overdue *overdue = context;
    ASSERT_NUMBERS(overdue->count, <, overdue->most);
    overdue->sequences[overdue->count++] = row[0].number;
    return true;
}

bool outbox_give_up_overdue(struct batch *batch, int64_t age_ms, size_t limit, bool *has_more)
{
    struct overdue overdue = {memory_alloc_array(limit, sizeof *overdue.sequences), 0, limit};
    size_t given_up = 0;
    bool done = rows_read(batch->database, STATEMENT_OUTBOX_OVERDUE,
                          VALUES(NUMBER(batch->now_ms - age_ms), NUMBER((int64_t)limit)),
                          add_sequence, &overdue);
    while (done && given_up < overdue.count)
        done = outbox_give_up(batch, overdue.sequences[given_up++],
                              "its endpoint did not take it in time");
    free(overdue.sequences);
    *has_more = *has_more || overdue.count == limit;
    if (done && overdue.count > 0)
        metrics_add(METRIC_NOTIFICATIONS, (double)overdue.count, METRIC_LABELS(STR("given_up")));
    return done;
}

/* ---- messages that endpoints keep of tasks, as those who look at them there see them ---- */

#define MOST_OF_TASK 100

static bool outbox_give(struct operation *operation, const struct record_list *list, bool done)
{
    operation->reply.messages = list->items;
    operation->reply.message_count = list->count;
    return done;
}

/* Of waiting tasks, the newest first. */
static bool run_messages(struct batch *batch, struct operation *operation)
{
    struct record_list list = {&message_record};
    bool done =
        rows_list(batch->database, STATEMENT_OUTBOX_MESSAGES,
                  VALUES(TEXT(operation->id), NUMBER((int64_t)operation->page.limit)), &list);
    return outbox_give(operation, &list, done);
}

static bool run_messages_of(struct batch *batch, struct operation *operation)
{
    struct record_list list = {&message_record};
    bool done = rows_list(batch->database, STATEMENT_OUTBOX_MESSAGES_OF,
                          VALUES(TEXT(operation->id), NUMBER(MOST_OF_TASK)), &list);
    return outbox_give(operation, &list, done);
}

static bool run_outbox_see(struct batch *batch, struct operation *operation)
{
    return rows_write(batch->database, STATEMENT_OUTBOX_SEE,
                      VALUES(TEXT(operation->id), TEXT(operation->message.target),
                             TEXT(operation->message.seen)));
}

/* ---- the calls ---- */

static void outbox_finish(struct operation *operation)
{
    free(operation->targets.items);
}

static const struct operation_kind operation_outbox_configure = {
    "outbox configure", true, run_outbox_configure, outbox_finish};
static const struct operation_kind operation_outbox_due = {"outbox due", false, run_due, NULL};
static const struct operation_kind operation_outbox_delivered = {"outbox delivered", true,
                                                                 run_delivered, NULL};
static const struct operation_kind operation_outbox_postpone = {"outbox postpone", true,
                                                                run_postpone, NULL};
static const struct operation_kind operation_outbox_give_up = {"outbox give up", true, run_give_up,
                                                               NULL};
static const struct operation_kind operation_outbox_messages = {"outbox messages", false,
                                                                run_messages, NULL};
static const struct operation_kind operation_outbox_messages_of = {"outbox messages of a task",
                                                                   false, run_messages_of, NULL};
static const struct operation_kind operation_outbox_see = {"outbox see", true, run_outbox_see,
                                                           NULL};

void store_outbox_configure(struct store *store, const struct store_outbox_target *targets,
                            size_t count, struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_configure, call);
    operation->targets.items = memory_alloc_array(count, sizeof *targets);
    operation->targets.count = count;
    if (count > 0)
        memcpy(operation->targets.items, targets, count * sizeof *targets);
    store_queue(store, operation);
}

void store_outbox_due(struct store *store, struct str target, size_t limit, struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_due, call);
    operation->id = operation_keep(operation, target);
    operation->page.limit = limit;
    store_queue(store, operation);
}

static struct operation *create_of_delivery(const struct operation_kind *kind, int64_t sequence,
                                            struct store_call call)
{
    struct operation *operation = operation_create(kind, call);
    operation->delivery.sequence = sequence;
    return operation;
}

void store_outbox_delivered(struct store *store, int64_t sequence, struct store_call call)
{
    store_queue(store, create_of_delivery(&operation_outbox_delivered, sequence, call));
}

void store_outbox_posted(struct store *store, int64_t sequence, const char *reference,
                         struct store_call call)
{
    struct operation *operation = create_of_delivery(&operation_outbox_delivered, sequence, call);
    operation->delivery.text = operation_keep_text(operation, reference);
    store_queue(store, operation);
}

void store_outbox_messages(struct store *store, struct str target, size_t limit,
                           struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_messages, call);
    operation->id = operation_keep(operation, target);
    operation->page.limit = limit;
    store_queue(store, operation);
}

void store_outbox_messages_of(struct store *store, struct str task_id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_messages_of, call);
    operation->id = operation_keep(operation, task_id);
    store_queue(store, operation);
}

void store_outbox_see(struct store *store, struct str target, struct str task_id, struct str seen,
                      struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_see, call);
    operation->id = operation_keep(operation, task_id);
    operation->message.target = operation_keep(operation, target);
    operation->message.seen = operation_keep(operation, seen);
    store_queue(store, operation);
}

void store_outbox_postpone(struct store *store, int64_t sequence, int64_t due_ms,
                           struct store_call call)
{
    struct operation *operation = create_of_delivery(&operation_outbox_postpone, sequence, call);
    operation->delivery.due_ms = due_ms;
    store_queue(store, operation);
}

void store_outbox_give_up(struct store *store, int64_t sequence, const char *reason,
                          struct store_call call)
{
    struct operation *operation = create_of_delivery(&operation_outbox_give_up, sequence, call);
    operation->delivery.text = operation_keep_text(operation, reason);
    store_queue(store, operation);
}
