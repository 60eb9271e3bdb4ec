/* Giving, using and ending grants. Each is part of one transaction with the task that it is about,
 * so a grant is never used oftener than it says. */
#include "effects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "queue.h"
#include "task_operations.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/json/members.h"
#include "taskgate/store/grants.h"

#define END_LIMIT 64
#define SHOWN_BYTES_MAX 65536

/* ---- telling ---- */

static void grants_note_change(struct batch *batch, const char *id)
{
    size_t count = batch->changed.count;
    if (count == 0 || strcmp(batch->changed.ids[count - 1], id) != 0)
        id_list_add(&batch->changed, str_from(id));
}

static bool grants_measure(struct batch *batch)
{
    int64_t count;
    if (!rows_number(batch->database, STATEMENT_GRANT_COUNT, NO_VALUES, &count))
        return false;
    metrics_set(METRIC_GRANTS_ACTIVE, (double)count, NULL);
    return true;
}

/* The facts of the grant that a task keeps. `use`: which one the task is; 0: it is the call that
 * was approved with the grant. */
static bool keep_facts(struct batch *batch, struct task *task, const struct store_grant *grant,
                       int64_t use)
{
    OWNED_BUFFER(text);
    ASSERT(use >= 0 && use <= grant->calls);
    buffer_append_char(&text, '{');
    json_add_text(&text, "id", grant->id);
    buffer_append_format(&text, ",\"calls\":%" PRId64, grant->calls);
    if (use > 0)
        buffer_append_format(&text, ",\"use\":%" PRId64, use);
    else
        buffer_append_text(&text, ",\"use\":null");
    json_add_time(&text, "until", grant->until_ms);
    buffer_append_char(&text, '}');
    task_set_text(&task->grant, buffer_str(&text));
    return task_rows_set_grant(batch->database, task);
}

/* ---- ending ---- */

/* The entry names the call that the grant was given with. */
static bool record_end(struct batch *batch, const struct store_grant *grant, const char *cause,
                       const char *person, const char *reason)
{
    OWNED char *text = memory_format("%s: %s; %" PRId64 " of %" PRId64 " calls used%s%s", grant->id,
                                     cause, grant->used, grant->calls,
                                     reason && *reason ? "; " : "", reason ? reason : "");
    const struct audit_actor actor = {person ? "operator" : "gateway",
                                      person ? person : "taskgate"};
    const char *event = person ? "grant_revoked" : "grant_ended";
    bool done = audit_append_grant(batch, grant, event, actor, text);
    log_info("Grant ended", LOG_TEXT("grant", grant->id), LOG_TEXT("cause", cause),
             LOG_TEXT("tool", grant->tool), LOG_NUMBER("used", grant->used),
             LOG_NUMBER("calls", grant->calls));
    return done;
}

static bool grants_end(struct batch *batch, const struct store_grant *grant, const char *cause,
                       const char *person, const char *reason)
{
    grants_note_change(batch, grant->id);
    return rows_write(batch->database, STATEMENT_GRANT_END,
                      VALUES(TEXT(grant->id), NUMBER(batch->now_ms), TEXT(cause), TEXT(person),
                             TEXT(reason))) &&
           record_end(batch, grant, cause, person, reason) && grants_measure(batch);
}

static bool end_by_itself(struct batch *batch, const struct store_grant *grant, const char *cause)
{
    return grants_end(batch, grant, cause, NULL, NULL);
}

/* A grant has no name of a client: its principal begins with it. One too many may end. */
static bool is_of_blocked(const struct store_grant *grant, const struct store_block *block)
{
    OWNED char *beginning = memory_format("%s (", block->client);
    struct str principal = str_from(grant->principal);
    bool is_client = str_starts_with(principal, str_from(beginning));
    const struct store_block_caller caller = {str_from(grant->owner), str_from(grant->source),
                                              is_client ? str_from(block->client) : principal};
    return store_block_fits(block, &caller);
}

bool grants_end_blocked(struct batch *batch, const struct store_block *block)
{
    struct record_list list = {&grant_list_record};
    bool done = rows_list(batch->database, STATEMENT_GRANT_ACTIVE, NO_VALUES, &list);
    const struct store_grant *grants = list.items;
    for (size_t i = 0; done && i < list.count; i++)
        done = !is_of_blocked(&grants[i], block) ||
               grants_end(batch, &grants[i], "blocked", block->person, block->reason);
    record_list_finish(&list);
    return done;
}

/* ---- whether one is still good ---- */

/* Behaviour 9.11: it ends when its giver may no longer vote there. Without a configuration nobody
 * may. */
static bool givers_may(const struct store_electorate *electorate, const struct store_grant *grant)
{
    struct ballot ballot;
    ballot_read(&ballot, str_from(grant->terms), str_from(grant->votes));
    bool may = electorate->renew && ballot.votes.count > 0;
    for (size_t i = 0; may && i < ballot.votes.count; i++) {
        struct ballot_vote *vote = &ballot.votes.items[i];
        electorate->renew(electorate->context, vote);
        may = vote->stands && ballot_may_grant(&ballot.terms, &vote->person);
    }
    ballot_finish(&ballot);
    return may;
}

/* Why the grant is not good for any call any more, as this one shows; NULL: it is good. */
static const char *cause_of_end(const struct batch *batch, const struct store_grant *grant,
                                const struct task *task)
{
    bool is_same_workflow = strcmp(grant->workflow, task->workflow) == 0;
    if (grant->until_ms <= batch->now_ms)
        return "time";
    if (*task->definition_digest && strcmp(grant->definition_digest, task->definition_digest) != 0)
        return "tool_changed";
    bool is_same_rule = !*task->rule_digest || strcmp(grant->rule_digest, task->rule_digest) == 0;
    if (!is_same_rule || (is_same_workflow && strcmp(grant->terms, task->terms) != 0))
        return "rule_changed";
    return givers_may(batch->electorate, grant) ? NULL : "giver_left";
}

bool grants_fit(const struct task *task)
{
    return *task->definition_digest && *task->bound_digest && *task->rule_digest &&
           !str_starts_with(str_from(task->owner), STR("anonymous"));
}

static bool grants_covers(const struct store_grant *grant, const struct task *task)
{
    return grants_fit(task) && strcmp(grant->workflow, task->workflow) == 0 &&
           strcmp(grant->definition_digest, task->definition_digest) == 0 &&
           strcmp(grant->bound_digest, task->bound_digest) == 0;
}

/* ---- using ---- */

static bool approve(struct batch *batch, struct task *task, const struct store_grant *grant)
{
    const struct store_electorate *electorate = batch->electorate;
    OWNED char *by = memory_format("grant:%s", grant->id);
    struct task_change change = {.to = TASK_APPROVED, .by = by};
    if (electorate->valid_for_ms)
        change.execute_by_ms =
            batch->now_ms + electorate->valid_for_ms(electorate->context, task->workflow);
    return task_operations_decide_new(batch, task, &change, (struct audit_actor){"grant", by});
}

static bool use(struct batch *batch, struct task *task, struct store_grant *grant)
{
    if (rows_change(batch->database, STATEMENT_GRANT_USE, VALUES(TEXT(grant->id))) != ROW_FOUND)
        return false; /* it was read in this very transaction */
    grant->used++;
    ASSERT_NUMBERS(grant->used, <=, grant->calls);
    grants_note_change(batch, grant->id);
    OWNED char *text =
        memory_format("%s: call %" PRId64 " of %" PRId64, grant->id, grant->used, grant->calls);
    const struct audit_actor actor = {"gateway", "taskgate"};
    bool done = keep_facts(batch, task, grant, grant->used) && approve(batch, task, grant) &&
                audit_append(batch, task, "grant_used", task_state_name(task->state), actor, text);
    return done && (grant->used < grant->calls || end_by_itself(batch, grant, "calls"));
}

bool grants_apply(struct batch *batch, struct task *task, bool *is_granted)
{
    struct record_list list = {&grant_list_record};
    *is_granted = false;
    if (task->state != TASK_PENDING || !batch->electorate->renew)
        return true;
    bool done = rows_list(batch->database, STATEMENT_GRANT_OF_TOOL,
                          VALUES(TEXT(task->owner), TEXT(task->source), TEXT(task->tool)), &list);
    struct store_grant *grants = list.items;
    for (size_t i = 0; done && i < list.count && !*is_granted; i++) {
        const char *cause = cause_of_end(batch, &grants[i], task);
        if (cause)
            done = end_by_itself(batch, &grants[i], cause);
        else if (grants_covers(&grants[i], task))
            *is_granted = done = use(batch, task, &grants[i]);
    }
    record_list_finish(&list);
    return done;
}

/* ---- giving ---- */

/* The votes of those who give it. */
static char *givers_of(const struct ballot *ballot)
{
    struct ballot_votes givers = {NULL, 0};
    OWNED_BUFFER(text);
    for (size_t i = 0; i < ballot->votes.count; i++) {
        const struct ballot_vote *vote = &ballot->votes.items[i];
        if (vote->verb == BALLOT_APPROVE && vote->stands &&
            ballot_may_grant(&ballot->terms, &vote->person)) {
            struct ballot_vote *giver = ballot_votes_add(&givers, &vote->person, vote->verb);
            giver->at_ms = vote->at_ms;
            giver->grant = vote->grant;
        }
    }
    ballot_votes_write(&text, &givers);
    ballot_votes_finish(&givers);
    return buffer_take(&text, NULL);
}

/* Long ones are left out: the task has them. */
static char *shown_arguments(const struct batch *batch, const struct task *task)
{
    OWNED_BUFFER(text);
    if (strlen(task->arguments) > SHOWN_BYTES_MAX)
        return memory_copy_text("");
    if (!batch->redaction->write)
        return memory_copy_text(task->arguments);
    batch->redaction->write(batch->redaction->context, &text, str_from(task->arguments),
                            task->workflow);
    return buffer_take(&text, NULL);
}

static bool grants_insert(struct batch *batch, struct task *task, struct store_grant *grant,
                          const char *person)
{
    const struct audit_actor actor = {"operator", person};
    char until[CLOCK_TEXT_BYTES];
    clock_format(grant->until_ms, until);
    OWNED char *text =
        memory_format("%s: %" PRId64 " more calls, until %s", grant->id, grant->calls, until);
    bool done =
        rows_insert(batch->database, STATEMENT_GRANT_INSERT, &grant_record, grant) &&
        keep_facts(batch, task, grant, 0) &&
        audit_append(batch, task, "grant_given", task_state_name(task->state), actor, text) &&
        grants_measure(batch);
    log_info("Grant given", LOG_TEXT("grant", grant->id), LOG_TEXT("task", task->id),
             LOG_TEXT("by", person), LOG_TEXT("tool", task->tool),
             LOG_NUMBER("calls", grant->calls));
    grants_note_change(batch, grant->id);
    return done;
}

bool grants_give(struct batch *batch, struct task *task, const struct ballot *ballot,
                 const struct store_vote *vote)
{
    struct ballot_wish wish;
    char id[STORE_GRANT_ID_BYTES], uuid[RANDOM_UUID_BYTES];
    ASSERT(task->state == TASK_APPROVED);
    if (vote->is_emergency || !ballot_grant(ballot, &wish) || !grants_fit(task))
        return true;
    random_uuid(uuid);
    snprintf(id, sizeof id, STORE_GRANT_ID_PREFIX "%s", uuid);
    struct store_grant grant = {
        .id = id,
        .task_id = task->id,
        .owner = task->owner,
        .principal = task->principal,
        .source = task->source,
        .tool = task->tool,
        .workflow = task->workflow,
        .rule = task->rule,
        .rule_digest = task->rule_digest,
        .definition_digest = task->definition_digest,
        .bound_digest = task->bound_digest,
        .terms = task->terms,
        .arguments = shown_arguments(batch, task),
        .votes = givers_of(ballot),
        .reason = (char *)(vote->reason ? vote->reason : ""),
        .calls = wish.calls,
        .for_ms = wish.for_ms,
        .created_ms = batch->now_ms,
        .until_ms = batch->now_ms + wish.for_ms,
    };
    bool done = grants_insert(batch, task, &grant, vote->voter.name);
    free(grant.arguments);
    free(grant.votes);
    return done;
}

/* ---- by themselves ---- */

static bool end_due(struct batch *batch)
{
    struct record_list list = {&grant_list_record};
    bool done = rows_list(batch->database, STATEMENT_GRANT_DUE,
                          VALUES(NUMBER(batch->now_ms), NUMBER(END_LIMIT)), &list);
    const struct store_grant *grants = list.items;
    for (size_t i = 0; done && i < list.count; i++)
        done = end_by_itself(batch, &grants[i], "time");
    record_list_finish(&list);
    return done;
}

bool grants_sweep(struct batch *batch)
{
    return end_due(batch) && grants_measure(batch);
}

bool grants_next_end(struct batch *batch, int64_t *at_ms)
{
    return rows_number(batch->database, STATEMENT_GRANT_NEXT_END, NO_VALUES, at_ms);
}

/* ---- operations ---- */

/* The terms of the grant's workflow now, and the givers that may still vote. */
static const char *cause_by_configuration(const struct store_electorate *electorate,
                                          const struct store_grant *grant)
{
    const char *terms =
        electorate->terms ? electorate->terms(electorate->context, grant->workflow) : grant->terms;
    if (!terms || strcmp(terms, grant->terms) != 0)
        return "rule_changed";
    return givers_may(electorate, grant) ? NULL : "giver_left";
}

/* The configuration counts from now on, also if the database fails. */
static bool run_grants_configure(struct batch *batch, struct operation *operation)
{
    struct store_electorate before = *batch->electorate;
    struct record_list list = {&grant_list_record};
    *batch->electorate = operation->electorate;
    operation->electorate = before; /* released with the operation */
    bool done = rows_list(batch->database, STATEMENT_GRANT_ACTIVE, NO_VALUES, &list);
    const struct store_grant *grants = list.items;
    for (size_t i = 0; done && i < list.count; i++) {
        const char *cause = cause_by_configuration(batch->electorate, &grants[i]);
        done = !cause || end_by_itself(batch, &grants[i], cause);
    }
    record_list_finish(&list);
    return done && grants_measure(batch);
}

static void grants_answer(struct operation *operation, const struct record_list *list)
{
    operation->reply.grants = list->items;
    operation->reply.grant_count = list->count;
}

/* A grant that is over by time and was not swept yet has ended, too. */
static bool run_grants_list(struct batch *batch, struct operation *operation)
{
    struct record_list list = {&grant_record};
    if (!end_due(batch))
        return false;
    bool done = rows_list(
        batch->database,
        operation->page.in_force_only ? STATEMENT_GRANT_PAGE_ACTIVE : STATEMENT_GRANT_PAGE,
        VALUES(NUMBER(operation->page.from > 0 ? operation->page.from : INT64_MAX),
               NUMBER((int64_t)operation->page.limit + 1)),
        &list);
    operation_end_page(operation, &list, operation->page.limit);
    grants_answer(operation, &list);
    return done;
}

/* Reads the grant into the reply. */
static bool grants_load(struct batch *batch, struct operation *operation)
{
    struct record_list list = {&grant_record};
    bool done = rows_list(batch->database, STATEMENT_GRANT_GET, VALUES(TEXT(operation->id)), &list);
    grants_answer(operation, &list);
    if (list.count == 0)
        operation->reply.status = STORE_NOT_FOUND;
    return done;
}

static bool run_revoke(struct batch *batch, struct operation *operation)
{
    struct store_reply *reply = &operation->reply;
    if (!end_due(batch) || !grants_load(batch, operation))
        return false;
    if (reply->grant_count == 0)
        return true;
    if (reply->grants[0].ended_ms > 0) {
        reply->status = STORE_CONFLICT;
        return true;
    }
    if (!grants_end(batch, &reply->grants[0], "revoked", operation->end.person,
                    operation->end.reason))
        return false;
    operation_clear_reply(operation);
    return grants_load(batch, operation);
}

/* ---- the calls ---- */

static void grants_finish(struct operation *operation)
{
    if (operation->electorate.release)
        operation->electorate.release(operation->electorate.context);
}

static const struct operation_kind operation_grants_configure = {
    "grants configure", true, run_grants_configure, grants_finish};
static const struct operation_kind operation_grant_list = {"grant list", true, run_grants_list,
                                                           NULL};
static const struct operation_kind operation_grant_get = {"grant get", false, grants_load, NULL};
static const struct operation_kind operation_grant_revoke = {"grant revoke", true, run_revoke,
                                                             NULL};

void store_grants_configure(struct store *store, const struct store_electorate *electorate)
{
    struct operation *operation =
        operation_create(&operation_grants_configure, (struct store_call){NULL, NULL, NULL});
    operation->electorate = *electorate;
    store_queue(store, operation);
}

void store_grant_list(struct store *store, bool in_force_only, int64_t before_sequence,
                      size_t limit, struct store_call call)
{
    store_queue_page(store, &operation_grant_list, in_force_only, before_sequence, limit, call);
}

void store_grant_get(struct store *store, struct str id, struct store_call call)
{
    store_queue_get(store, &operation_grant_get, id, call);
}

void store_grant_revoke(struct store *store, struct str id, const char *person, const char *reason,
                        struct store_call call)
{
    store_queue_end(store, &operation_grant_revoke, id, person, reason, call);
}
