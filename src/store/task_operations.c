/* Reading and changing single tasks. */
#include "task_operations.h"

#include <stdlib.h>

#include "effects.h"
#include "queue.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/task/recorded_name.h"

static bool is_gateway(struct audit_actor actor)
{
    return str_equal(str_from(actor.kind), STR("gateway"));
}

static bool redact(const struct store_redaction *redaction, char **value, const char *workflow)
{
    OWNED_BUFFER(kept);
    bool is_redacted = redaction->write(redaction->context, &kept, str_from(*value), workflow);
    task_set_text(value, buffer_str(&kept));
    return is_redacted;
}

/* Behaviour 8.5: an ended task keeps digest, result and redacted arguments. */
static bool end_request(struct batch *batch, struct task *task)
{
    char **const values[] = {&task->arguments, &task->meta, &task->other_params,
                             &task->original_arguments};
    bool is_redacted = false;
    ASSERT(task_state_is_terminal(task->state));
    for (size_t i = 0; batch->redaction->write && i < sizeof values / sizeof *values; i++) {
        if (**values[i])
            is_redacted |= redact(batch->redaction, values[i], task->workflow);
    }
    return task_rows_end_request(batch->database, task, is_redacted);
}

/* A call whose client's user was asked to confirm it, and never did, ends unconfirmed. Only a call
 * that waits for its client can have been asked about. */
static bool note_unanswered(struct batch *batch, const struct task *task, struct audit_actor actor)
{
    bool asked, confirmed = false, noted = false;
    bool by_client =
        task->state == TASK_CANCELLED && str_equal(str_from(actor.kind), STR("client"));
    if (!task_state_is_terminal(task->state) || !task->on_result || by_client)
        return true;
    if (!audit_has(batch, task, STORE_EVENT_ASKED, &asked) ||
        (asked && (!audit_has(batch, task, STORE_EVENT_CONFIRMED, &confirmed) ||
                   !audit_has(batch, task, STORE_EVENT_UNANSWERED, &noted))))
        return false;
    return !asked || confirmed || noted ||
           audit_append(batch, task, STORE_EVENT_UNANSWERED, task_state_name(task->state),
                        AUDIT_GATEWAY, STORE_UNANSWERED_REASON);
}

/* All of a move but the event. */
static enum row_result move(struct batch *batch, struct task *task,
                            const struct task_change *change, struct audit_actor actor,
                            struct error *error)
{
    enum task_state from = task->state;
    if (!task_transition(task, change, batch->now_ms, error))
        return ROW_ABSENT;
    enum row_result moved =
        task_rows_move(batch->database, task, from, change->outcome != TASK_OUTCOME_NONE);
    task_set_text(&task->brief, STR_EMPTY); /* as in its row; an edit may have made it untrue */
    if (moved == ROW_FOUND && !pending_note_moved(batch, task, from))
        return ROW_FAILED;
    if (moved == ROW_FOUND && task_state_is_terminal(task->state))
        moved = end_request(batch, task) ? ROW_FOUND : ROW_FAILED;
    if (moved != ROW_FOUND)
        return ROW_FAILED; /* read in this very transaction, so it cannot have moved */
    const char *reason = change->reason;
    if (!reason && is_gateway(actor))
        reason = task->status_message;
    if (!audit_append(batch, task, task_move_name(from, task->state), task_state_name(from), actor,
                      reason) ||
        !note_unanswered(batch, task, actor) || !outbox_note_moved(batch, task, from) ||
        !tally_note_moved(batch, task, from))
        return ROW_FAILED;
    return task->state == TASK_EXECUTING && !replica_claim(batch, task) ? ROW_FAILED : ROW_FOUND;
}

enum row_result task_operations_move(struct batch *batch, struct task *task,
                                     const struct task_change *change, struct audit_actor actor,
                                     struct error *error)
{
    enum row_result moved = move(batch, task, change, actor, error);
    if (moved == ROW_FOUND)
        batch_add_event(batch, task, false);
    return moved;
}

bool task_operations_decide_new(struct batch *batch, struct task *task,
                                const struct task_change *change, struct audit_actor actor)
{
    struct error error;
    return move(batch, task, change, actor, &error) == ROW_FOUND;
}

enum row_result task_operations_load(struct batch *batch, struct str id, struct task **task)
{
    enum row_result result = task_rows_get(batch->database, id, task);
    struct task_change change;
    if (result != ROW_FOUND || !task_due(*task, batch->now_ms, &change))
        return result;
    batch->must_write = !batch->may_write;
    if (batch->must_write)
        return ROW_FAILED;
    struct error error;
    return task_operations_move(batch, *task, &change, AUDIT_GATEWAY, &error) == ROW_FOUND
               ? ROW_FOUND
               : ROW_FAILED;
}

/* ---- get ---- */

/* Reads the task that the operation is about, into the reply. false: there is nothing to change,
 * and
 * `*done` is what the operation returns. */
static bool task_operations_load_named(struct batch *batch, struct operation *operation, bool *done)
{
    enum row_result result =
        task_operations_load(batch, str_from(operation->id), &operation->reply.task);
    if (result == ROW_ABSENT)
        operation->reply.status = STORE_NOT_FOUND;
    *done = result != ROW_FAILED;
    return result == ROW_FOUND;
}

static bool run_task_operations_get(struct batch *batch, struct operation *operation)
{
    bool done;
    task_operations_load_named(batch, operation, &done);
    return done;
}

static bool run_get_with_tally(struct batch *batch, struct operation *operation)
{
    struct store_reply *reply = &operation->reply;
    enum row_result result = task_operations_load(batch, str_from(operation->id), &reply->task);
    if (result == ROW_ABSENT)
        reply->status = STORE_NOT_FOUND;
    struct store_tally *tally = NULL;
    bool done =
        result == ROW_ABSENT || (result == ROW_FOUND && tally_read(batch, reply->task, &tally));
    reply->tally = tally;
    return done;
}

/* ---- change ---- */

/* The outcome of an execution, which only the worker that has claimed it can say. A refusal to
 * begin is none, and neither is what an operator says. */
static bool is_outcome(const struct task *task, const struct task_change *change)
{
    bool has_begun = task->state == TASK_EXECUTING || task_state_is_terminal(task->state);
    return has_begun && !change->unless_begun && !change->by &&
           (change->to == TASK_COMPLETED || change->to == TASK_FAILED ||
            (change->to == TASK_APPROVED && task->state == TASK_EXECUTING));
}

/* The claim is over: the outcome is not stored, but the trail says that there was one. */
static bool refuse_late(struct batch *batch, struct operation *operation)
{
    struct task *task = operation->reply.task;
    OWNED char *reason =
        memory_format("%s, of a claim of replica %s that does not hold the task",
                      task_state_name(operation->change.to.to), batch->replica->id);
    operation->reply.status = STORE_CONFLICT;
    return audit_append_now(batch, task, "late_outcome", AUDIT_GATEWAY, reason);
}

/* The moves that nobody may make while the database lacks commits. */
static bool is_decision(enum task_state to)
{
    return to == TASK_APPROVED || to == TASK_REJECTED || to == TASK_EXECUTING;
}

static bool run_change(struct batch *batch, struct operation *operation)
{
    bool done;
    if (batch->replica->is_held && is_decision(operation->change.to.to)) {
        operation->reply.status = STORE_FAILED;
        return true;
    }
    if (!task_operations_load_named(batch, operation, &done))
        return done;
    struct task *task = operation->reply.task;
    bool is_late = false;
    if (is_outcome(task, &operation->change.to) &&
        !replica_is_late(batch, task, operation->change.to.claim, &is_late))
        return false;
    if (is_late)
        return refuse_late(batch, operation);
    if (!task_can_change(task, &operation->change.to)) {
        operation->reply.status = STORE_CONFLICT;
        return true;
    }
    struct error error;
    struct audit_actor actor = {operation->change.actor.kind, operation->change.actor.name, NULL};
    enum row_result result =
        task_operations_move(batch, task, &operation->change.to, actor, &error);
    if (result == ROW_ABSENT) { /* the caller's mistake: the change lacks something */
        log_error("A change was not stored", LOG_TEXT("reason", error.message));
        operation->reply.status = STORE_FAILED;
        return true;
    }
    return result == ROW_FOUND;
}

/* ---- one text of a task that is in `state` ---- */

static bool
task_operations_set_text(struct batch *batch, struct operation *operation, enum task_state state,
                         char **(*field)(struct task *task), const char *text,
                         bool (*write)(struct database *database, const struct task *task))
{
    bool done;
    if (!task_operations_load_named(batch, operation, &done))
        return done;
    struct task *task = operation->reply.task;
    if (task->state != state) {
        operation->reply.status = STORE_CONFLICT;
        return true;
    }
    task_set_text(field(task), str_from(text));
    return write(batch->database, task);
}

static char **upstream_task_of(struct task *task)
{
    return &task->upstream_task;
}

static bool run_set_upstream(struct batch *batch, struct operation *operation)
{
    return task_operations_set_text(batch, operation, TASK_EXECUTING, upstream_task_of,
                                    operation->text, task_rows_set_upstream);
}

static char **status_message_of(struct task *task)
{
    return &task->status_message;
}

/* Why an approved task does not run. */
static bool run_set_message(struct batch *batch, struct operation *operation)
{
    if (!task_operations_set_text(batch, operation, TASK_APPROVED, status_message_of,
                                  operation->text, task_rows_set_message))
        return false;
    if (operation->reply.status == STORE_OK)
        batch_add_event(batch, operation->reply.task, false);
    return true;
}

/* ---- what moves it nowhere ---- */

static bool run_task_operations_note(struct batch *batch, struct operation *operation)
{
    bool done, has;
    if (!task_operations_load_named(batch, operation, &done))
        return done;
    struct task *task = operation->reply.task;
    const struct audit_actor actor = {operation->note.actor.kind, operation->note.actor.name, NULL};
    if (task->state != TASK_PENDING && task->state != TASK_APPROVED) {
        operation->reply.status = STORE_CONFLICT;
        return true;
    }
    if (!audit_has(batch, task, operation->note.event, &has) || has)
        return has;
    return audit_append_now(batch, task, operation->note.event, actor, operation->note.reason);
}

/* ---- whom it reaches, and when it runs ---- */

static bool run_promise(struct batch *batch, struct operation *operation)
{
    bool done;
    if (!task_operations_load_named(batch, operation, &done))
        return done;
    struct task *task = operation->reply.task;
    if (task->promised)
        return true;
    task->promised = true;
    return task_rows_set_reach(batch->database, task);
}

static bool run_task_operations_leave(struct batch *batch, struct operation *operation)
{
    bool done;
    if (!task_operations_load_named(batch, operation, &done))
        return done;
    struct task *task = operation->reply.task;
    if (task->state != TASK_PENDING)
        operation->reply.status = STORE_CONFLICT;
    if (task->state != TASK_PENDING || task->on_result)
        return true;
    task->on_result = true;
    return task_rows_set_reach(batch->database, task);
}

/* ---- the end of a session ---- */

#define MOST_ENDED 1000 /* that one session hands over */

/* Its limits count for the heir, too. */
static bool task_operations_hand_over(struct batch *batch, struct task *task, const char *heir)
{
    const struct ended_task counted = {
        .tool = str_from(task->tool),
        .state = task->state,
        .approved_ms = task->execute_by_ms > 0 ? task->decided_ms : 0,
        .ended_ms = task->ended_ms,
    };
    ASSERT(task->promised);
    if (!pending_note_left(batch, task) ||
        !tally_hand_over(batch, task->source, task->owner, heir, &counted))
        return false;
    task_set_text(&task->owner, str_from(heir));
    task->on_result |= task->state == TASK_PENDING || task->state == TASK_APPROVED;
    return pending_note_created(batch, task) && task_rows_set_reach(batch->database, task);
}

static enum row_result task_operations_cancel(struct batch *batch, struct task *task,
                                              const char *owner)
{
    const struct audit_actor actor = {"client", owner, NULL};
    const struct task_change change = {.to = TASK_CANCELLED,
                                       .status_message = "Cancelled: the session has ended"};
    struct error error;
    return task_operations_move(batch, task, &change, actor, &error);
}

static bool end_with_session(struct batch *batch, struct operation *operation, const char *id)
{
    struct task *task = NULL;
    enum row_result result = task_operations_load(batch, str_from(id), &task);
    if (result == ROW_FOUND && task->promised) {
        operation->reply.has_promised = true;
        result =
            task_operations_hand_over(batch, task, operation->ended.heir) ? ROW_FOUND : ROW_FAILED;
    } else if (result == ROW_FOUND && task_can_move(task->state, TASK_CANCELLED)) {
        /* One that has just expired stays so. */
        result = task_operations_cancel(batch, task, operation->ended.owner);
    }
    task_unref(task);
    return result != ROW_FAILED;
}

struct handing {
    struct batch *batch;
    const struct operation *operation;
};

static bool hand_over_ended(void *context, const struct ended_task *task)
{
    const struct handing *handing = context;
    const struct operation *operation = handing->operation;
    return tally_hand_over(handing->batch, operation->ended.source, operation->ended.owner,
                           operation->ended.heir, task);
}

static bool run_cancel_session(struct batch *batch, struct operation *operation)
{
    struct id_list list = {.count = 0};
    bool done =
        rows_ids(batch->database, STATEMENT_TASK_OF_SESSION,
                 VALUES(TEXT(operation->ended.owner), TEXT(operation->ended.source)), &list);
    for (size_t i = 0; done && i < list.count; i++)
        done = end_with_session(batch, operation, list.ids[i]);
    free(list.ids);
    enum row_result ended =
        done ? task_rows_hand_over_ended(batch->database, operation->ended.owner,
                                         operation->ended.source, operation->ended.heir, MOST_ENDED,
                                         hand_over_ended, &(struct handing){batch, operation})
             : ROW_FAILED;
    operation->reply.has_promised |= ended == ROW_FOUND;
    return ended != ROW_FAILED;
}

/* ---- the calls ---- */

static const struct operation_kind operation_task_get = {"get", false, run_task_operations_get,
                                                         NULL};
static const struct operation_kind operation_task_tally = {"get with tally", false,
                                                           run_get_with_tally, NULL};
static const struct operation_kind operation_task_change = {"change", true, run_change, NULL};
static const struct operation_kind operation_task_set_upstream = {"set upstream", true,
                                                                  run_set_upstream, NULL};
static const struct operation_kind operation_task_set_message = {"set message", true,
                                                                 run_set_message, NULL};
static const struct operation_kind operation_task_promise = {"promise", true, run_promise, NULL};
static const struct operation_kind operation_task_leave = {"leave", true, run_task_operations_leave,
                                                           NULL};
static const struct operation_kind operation_task_note = {"note", true, run_task_operations_note,
                                                          NULL};
static const struct operation_kind operation_task_cancel_session = {"cancel session", true,
                                                                    run_cancel_session, NULL};

static struct operation *create_of_task(const struct operation_kind *kind, struct str id,
                                        struct store_call call)
{
    struct operation *operation = operation_create(kind, call);
    operation->id = operation_keep(operation, id);
    return operation;
}

static struct store_actor keep_actor(struct operation *operation, const struct store_actor *actor)
{
    return (struct store_actor){operation_keep_text(operation, actor->kind),
                                operation_keep_text(operation, actor->name)};
}

void store_task_get(struct store *store, struct str id, struct store_call call)
{
    store_queue(store, create_of_task(&operation_task_get, id, call));
}

void store_task_get_with_tally(struct store *store, struct str id, struct store_call call)
{
    store_queue(store, create_of_task(&operation_task_tally, id, call));
}

struct operation *task_operations_change(struct str id, const struct task_change *change,
                                         const struct store_actor *actor, struct store_call call)
{
    struct operation *operation = create_of_task(&operation_task_change, id, call);
    struct task_change *kept = &operation->change.to;
    *kept = *change;
    kept->by = operation_keep_text(operation, change->by);
    kept->reason = operation_keep_text(operation, change->reason);
    kept->status_message = operation_keep_text(operation, change->status_message);
    kept->upstream_task = operation_keep_text(operation, change->upstream_task);
    kept->credentials = operation_keep_text(operation, change->credentials);
    kept->request_digest = operation_keep_text(operation, change->request_digest);
    kept->outcome_text.bytes = operation_keep(operation, change->outcome_text);
    operation->change.actor = keep_actor(operation, actor);
    return operation;
}

void store_task_change(struct store *store, struct str id, const struct task_change *change,
                       const struct store_actor *actor, struct store_call call)
{
    store_queue(store, task_operations_change(id, change, actor, call));
}

void store_task_set_upstream(struct store *store, struct str id, struct str upstream_task,
                             struct store_call call)
{
    struct operation *operation = create_of_task(&operation_task_set_upstream, id, call);
    operation->text = operation_keep(operation, upstream_task);
    store_queue(store, operation);
}

void store_task_set_message(struct store *store, struct str id, struct str message,
                            struct store_call call)
{
    struct operation *operation = create_of_task(&operation_task_set_message, id, call);
    operation->text = operation_keep(operation, message);
    store_queue(store, operation);
}

void store_task_note(struct store *store, struct str id, const char *event,
                     const struct store_actor *actor, struct str reason, struct store_call call)
{
    struct operation *operation = create_of_task(&operation_task_note, id, call);
    operation->note.event = event;
    operation->note.actor = keep_actor(operation, actor);
    operation->note.reason = operation_keep(operation, reason);
    store_queue(store, operation);
}

void store_task_promise(struct store *store, struct str id, struct store_call call)
{
    store_queue(store, create_of_task(&operation_task_promise, id, call));
}

void store_task_leave(struct store *store, struct str id, struct store_call call)
{
    store_queue(store, create_of_task(&operation_task_leave, id, call));
}

void store_task_cancel_session(struct store *store, struct str source, struct str session,
                               struct str heir, struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_cancel_session, call);
    OWNED char *owner = memory_format("session:%.*s", STR_ARGS(session));
    operation->ended.heir = operation_keep(operation, heir);
    operation->ended.source = operation_keep(operation, source);
    operation->ended.owner = operation_keep_text(operation, owner);
    store_queue(store, operation);
}

/* ---- counting what becomes of calls ---- */

#define DAY_MS INT64_C(86400000)

static int64_t day_of(int64_t at_ms)
{
    return at_ms - at_ms % DAY_MS;
}

static void count_end(struct store_tally_counts *counts, enum task_state state)
{
    counts->rejected = state == TASK_REJECTED;
    counts->expired = state == TASK_EXPIRED;
    counts->failed = state == TASK_FAILED;
}

/* Calls of one tool: of one owner, or "": of all. The name of the tool is as the trail has it. */
struct key {
    const char *source;
    struct str tool;
    const char *owner;
};

/* To a day of `other`, and to that of the owner in the key, `times` times. */
static bool tally_add(struct batch *batch, const struct key *key, const char *other, int times,
                      int64_t at_ms, const struct store_tally_counts *counts)
{
    ASSERT(times == 1 || times == -1);
    return rows_write(batch->database, STATEMENT_TALLY_ADD,
                      VALUES(TEXT(key->source), STRING(key->tool), TEXT(key->owner),
                             NUMBER(day_of(at_ms)), NUMBER(counts->approved),
                             NUMBER(counts->rejected), NUMBER(counts->expired),
                             NUMBER(counts->failed), TEXT(other), NUMBER(times)));
}

bool tally_note_moved(struct batch *batch, const struct task *task, enum task_state from)
{
    struct store_tally_counts counts = {0, 0, 0, 0};
    char name[RECORDED_NAME_BYTES];
    counts.approved = from == TASK_PENDING && task->state == TASK_APPROVED;
    count_end(&counts, task->state);
    if (counts.approved + counts.rejected + counts.expired + counts.failed == 0)
        return true;
    const struct key key = {task->source, recorded_name(str_from(task->tool), name), task->owner};
    return tally_add(batch, &key, "", 1, task->updated_ms, &counts);
}

bool tally_hand_over(struct batch *batch, const char *source, const char *owner, const char *heir,
                     const struct ended_task *task)
{
    const struct store_tally_counts approval = {.approved = 1};
    struct store_tally_counts end = {0, 0, 0, 0};
    char name[RECORDED_NAME_BYTES];
    const struct key key = {source, recorded_name(task->tool, name), owner};
    count_end(&end, task->state);
    return (task->approved_ms == 0 ||
            tally_add(batch, &key, heir, -1, task->approved_ms, &approval)) &&
           (end.rejected + end.expired + end.failed == 0 ||
            tally_add(batch, &key, heir, -1, task->ended_ms, &end));
}

/* The others: without what the task itself was counted for. */
static void take_own(struct store_tally_counts *counts, const struct task *task, int64_t since_ms)
{
    struct store_tally_counts own = {0, 0, 0, 0};
    if (task->ended_ms >= since_ms)
        count_end(&own, task->state);
    /* Nobody decides a call that was made approved. */
    own.approved = task->execute_by_ms > 0 && task->decided_ms >= since_ms;
    int64_t *const fields[] = {&counts->approved, &counts->rejected, &counts->expired,
                               &counts->failed};
    const int64_t taken[] = {own.approved, own.rejected, own.expired, own.failed};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        *fields[i] -= taken[i] < *fields[i] ? taken[i] : *fields[i];
}

/* ---- reading ---- */

static bool read_counts(struct batch *batch, const struct key *key, int64_t since_ms,
                        struct store_tally_counts *counts)
{
    static const struct column columns[] = {
        {"approved", COLUMN_NUMBER, offsetof(struct store_tally_counts, approved)},
        {"rejected", COLUMN_NUMBER, offsetof(struct store_tally_counts, rejected)},
        {"expired", COLUMN_NUMBER, offsetof(struct store_tally_counts, expired)},
        {"failed", COLUMN_NUMBER, offsetof(struct store_tally_counts, failed)},
    };
    static const struct record record = {.columns = columns, .count = 4};
    return rows_find(
               batch->database, STATEMENT_TALLY_READ,
               VALUES(TEXT(key->source), STRING(key->tool), TEXT(key->owner), NUMBER(since_ms)),
               &record, counts) == ROW_FOUND;
}

struct reading {
    struct store_tally *tally;
};

static bool tally_take_last(void *context, const struct value *row)
{
    struct store_tally *tally = ((const struct reading *)context)->tally;
    tally->has_last = true;
    tally->state = str_equal(row[0].text, STR("approve")) ? TASK_APPROVED : TASK_REJECTED;
    tally->decided_ms = row[1].number;
    tally->person = memory_copy_str(row[2].text);
    tally->reason = memory_copy_str(row[3].text);
    return false;
}

bool tally_read(struct batch *batch, const struct task *task, struct store_tally **read)
{
    struct store_tally *tally = *read = memory_alloc(sizeof *tally);
    char name[RECORDED_NAME_BYTES];
    struct str tool = recorded_name(str_from(task->tool), name);
    const struct key all = {task->source, tool, ""}, owner = {task->source, tool, task->owner};
    int64_t since_ms = day_of(batch->now_ms) - (STORE_TALLY_DAYS - 1) * DAY_MS;
    static const struct column columns[] = {
        {"same", COLUMN_NUMBER, offsetof(struct store_tally, same_approved)},
        {"at_ms", COLUMN_NUMBER, offsetof(struct store_tally, same_ms)},
    };
    static const struct record same = {.columns = columns, .count = 2};
    bool done = read_counts(batch, &all, since_ms, &tally->all) &&
                read_counts(batch, &owner, since_ms, &tally->owner) &&
                rows_read(batch->database, STATEMENT_TALLY_LAST,
                          VALUES(TEXT(task->source), STRING(tool), TEXT(task->id)), tally_take_last,
                          &(struct reading){tally}) &&
                rows_find(batch->database, STATEMENT_TALLY_SAME,
                          VALUES(TEXT(task->arguments_digest), TEXT(task->source), STRING(tool),
                                 NUMBER(since_ms), TEXT(task->id), NUMBER(STORE_TALLY_SAME_MOST)),
                          &same, tally) != ROW_FAILED;
    take_own(&tally->all, task, since_ms);
    take_own(&tally->owner, task, since_ms);
    return done;
}
