/* The members of what operators see, one row each where they are alike. */
#include "task_json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "taskgate/approval/ballot.h"
#include "taskgate/config/config.h"
#include "taskgate/config/duration.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/owned.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/notify/brief.h"
#include "taskgate/notify/redact.h"
#include "taskgate/notify/shown.h"
#include "taskgate/store/tally.h"
#include "taskgate/task/task.h"
#include "taskgate/telemetry/task_trace.h"
#include "taskgate/telemetry/trace_context.h"

#include "rights.h"
#include "task_filter.h"
#include "voter.h"

/* The status that a client sees for each state; behaviour 7.4. */
static const char *const client_status[TASK_STATE_COUNT] = {
    [TASK_PENDING] = "input_required", [TASK_APPROVED] = "working", [TASK_EXECUTING] = "working",
    [TASK_COMPLETED] = "completed",    [TASK_FAILED] = "failed",    [TASK_CANCELLED] = "cancelled",
    [TASK_REJECTED] = "failed",        [TASK_EXPIRED] = "failed",
};

static bool task_json_redact(struct buffer *out, const char *json, const struct task *task,
                             const struct config *config)
{
    return redact_write(out, *json ? str_from(json) : STR("{}"), config, task->workflow);
}

/* The client's text without the values that operators must not see. Returns whether there are some.
 */
static bool add_redacted(struct buffer *out, const char *key, const char *json,
                         const struct task *task, const struct config *config)
{
    json_add_key(out, key);
    return task_json_redact(out, json, task, config);
}

static void add_strings(struct buffer *out, const struct config_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++) {
        if (out->bytes[out->length - 1] != '[')
            buffer_append_char(out, ',');
        buffer_append_json_string(out, str_from(strings->items[i]));
    }
}

/* The paths that redact_write() hides, so that a reader can tell a hidden value from the same text
 * of a client. */
static void add_redact_fields(struct buffer *out, const struct task *task,
                              const struct config *config)
{
    const struct config_workflow *workflow = config_workflow_find(config, str_from(task->workflow));
    json_add_key(out, "redactFields");
    buffer_append_char(out, '[');
    if (workflow) {
        add_strings(out, &workflow->redact_fields);
    } else {
        for (size_t i = 0; i < config->workflow_count; i++)
            add_strings(out, &config->workflows[i].redact_fields);
    }
    buffer_append_char(out, ']');
}

/* The digest of a hidden value would tell it to somebody who tries all values. */
static void task_json_add_digest(struct buffer *out, const char *key, const char *digest,
                                 bool is_hidden)
{
    char keyed[DIGEST_HEX_BYTES];
    if (is_hidden && *digest)
        digest_keyed_hex(digest, keyed);
    json_add_text_or_null(out, key, is_hidden && *digest ? keyed : digest);
}

/* The client's own arguments, if an approver has changed them. */
static void add_original(struct buffer *out, const struct task *task, const struct config *config)
{
    bool is_hidden = false;
    if (*task->original_arguments) {
        is_hidden = add_redacted(out, "originalArguments", task->original_arguments, task, config);
    } else {
        json_add_key(out, "originalArguments");
        buffer_append_text(out, "null");
    }
    task_json_add_digest(out, "originalArgumentsDigest", task->original_digest, is_hidden);
}

static void add_group(struct buffer *out, const struct task *task)
{
    char digest[TASK_FILTER_DIGEST_BYTES];
    task_filter_digest(task, digest);
    json_add_text(out, "digest", digest);
}

/* The call that it is an answer in. */
static void add_answer_of(struct buffer *out, const struct task *task)
{
    struct str call = json_member(str_from(task->other_params), TASK_ANSWER_OF);
    json_add_value(out, TASK_ANSWER_OF,
                   task_is_answer(task) && call.length > 0 ? call : STR("null"));
}

/* The server's words of now about the tool, if they are not those of the call. */
static bool add_definition(struct buffer *out, const struct task *task,
                           const struct task_view *view)
{
    OWNED_BUFFER(now);
    bool has_changed = view->worker && gateway_definition_changed(view->worker, task, &now);
    json_add_bool(out, "definitionChanged", has_changed);
    json_add_value(out, "toolNow", has_changed ? buffer_str(&now) : STR("null"));
    return has_changed;
}

static const char *execution_state(const struct task *task)
{
    if (task_state_is_terminal(task->state))
        return "done";
    return task->state == TASK_APPROVED ? "waiting_for_credentials" : "executing";
}

/* A call that was promoted runs from its begin on, and nobody approves it. */
static void add_execution(struct buffer *out, const struct task *task)
{
    int64_t started_ms = task->promoted ? task->created_ms : task->started_ms;
    bool has_run = started_ms > 0 && task->ended_ms > 0;
    struct task_trace trace;
    json_add_key(out, "execution");
    if (task->execute_by_ms == 0 && !task->promoted) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_append_format(out, "{\"state\":\"%s\"", execution_state(task));
    json_add_time(out, "until", task->state == TASK_APPROVED ? task->execute_by_ms : 0);
    json_add_time(out, "startedAt", started_ms);
    json_add_time(out, "endedAt", has_run ? task->ended_ms : 0);
    json_add_key(out, "durationMs");
    if (has_run)
        buffer_append_format(out, "%" PRId64, task->ended_ms - started_ms);
    else
        buffer_append_text(out, "null");
    char trace_id[2 * TRACE_ID_BYTES + 1] = "";
    if (task_trace_read(&trace, str_from(task->trace)))
        str_write_hex(trace.create.trace_id, TRACE_ID_BYTES, trace_id);
    json_add_text_or_null(out, "traceId", trace_id);
    buffer_append_char(out, '}');
}

/* ---- history ---- */

/* The outcomes of the other calls of a task's tool, as a member of it. */

static void add_counts(struct buffer *out, const struct store_tally_counts *counts)
{
    buffer_append_format(out,
                         "\"approved\":%" PRId64 ",\"rejected\":%" PRId64 ",\"expired\":%" PRId64
                         ",\"failed\":%" PRId64,
                         counts->approved, counts->rejected, counts->expired, counts->failed);
}

static void add_last(struct buffer *out, const struct store_tally *tally)
{
    if (!tally->has_last) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_append_format(out, "{\"outcome\":\"%s\"", task_state_name(tally->state));
    json_add_time(out, "at", tally->decided_ms);
    json_add_text(out, "person", tally->person);
    json_add_text_or_null(out, "reason", tally->reason);
    buffer_append_char(out, '}');
}

/* NULL: the person may not see the calls of others. */
static void history_json_add(struct buffer *out, const struct store_tally *tally)
{
    json_add_key(out, "history");
    if (!tally) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_append_format(out, "{\"days\":%d,", STORE_TALLY_DAYS);
    add_counts(out, &tally->all);
    buffer_append_text(out, ",\"caller\":{");
    add_counts(out, &tally->owner);
    buffer_append_text(out, "},\"last\":");
    add_last(out, tally);
    buffer_append_text(out, ",\"same\":");
    if (tally->same_approved > 0) {
        buffer_append_format(out, "{\"approved\":%" PRId64, tally->same_approved);
        json_add_time(out, "at", tally->same_ms);
        buffer_append_text(out, "}}");
    } else {
        buffer_append_text(out, "null}");
    }
}

/* ---- the words of the rule and of the server ---- */

/* The members of an operators' task about its rule and its tool (behaviour 10.2). */

/* `arguments`: the task's, as operators see them. */
static void shown_json_add(struct buffer *out, const struct task *task, const struct config *config,
                           struct str arguments)
{
    /* In the order in which they are written; without a value: its substitute. */
    static const char *const keys[] = {"ruleDescription", "highlight",      "toolDescription",
                                       "toolAnnotations", "toolDifference", "listed"};
    enum { COUNT = sizeof keys / sizeof *keys, HIGHLIGHT = 1 };
    struct str values[COUNT] = {STR_EMPTY};
    json_members(str_from(task->shown), keys, COUNT, values);
    brief_add_facts(out, task, config, arguments);
    for (size_t i = 0; i < COUNT; i++) {
        json_add_key(out, keys[i]);
        if (values[i].length > 0)
            buffer_append(out, values[i]);
        else
            buffer_append_text(out, i == HIGHLIGHT ? "[]" : "null");
    }
}

/* ---- votes ---- */

/* The members of a task that tell of its votes: `votes`, `missing`, `quorum`, `reasons`,
 * `emergency`, and `you`: what the operator who looks may do (behaviour 9.1). */

static void add_duration(struct buffer *out, const char *key, int64_t ms)
{
    char text[64];
    duration_format(ms, text);
    json_add_text(out, key, text);
}

static void add_wish(struct buffer *out, const struct ballot_wish *wish)
{
    json_add_key(out, "grant");
    if (wish->calls == 0) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_append_char(out, '{');
    add_duration(out, "for", wish->for_ms);
    buffer_append_format(out, ",\"calls\":%" PRId64 "}", wish->calls);
}

static void vote_json_add_votes(struct buffer *out, const struct ballot_votes *votes)
{
    json_add_key(out, "votes");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < votes->count; i++) {
        const struct ballot_vote *vote = &votes->items[i];
        buffer_append_text(out, i > 0 ? ",{" : "{");
        json_add_text(out, "person", vote->person.name);
        json_add_text(out, "verb", ballot_verb_name(vote->verb));
        json_add_time(out, "at", vote->at_ms);
        json_add_text_or_null(out, "reason", vote->reason);
        add_wish(out, &vote->grant);
        buffer_append_char(out, '}');
    }
    buffer_append_char(out, ']');
}

static void add_missing(struct buffer *out, const struct ballot *ballot, bool is_pending)
{
    size_t count;
    OWNED struct ballot_need *missing = ballot_missing(ballot, &count);
    ballot_needs_write(out, "missing", missing, is_pending ? count : 0);
}

static void add_terms(struct buffer *out, const struct ballot_terms *terms)
{
    const struct ballot_need anybody = {NULL, terms->quorum};
    if (terms->need_count > 0)
        ballot_needs_write(out, "quorum", terms->needs, terms->need_count);
    else
        ballot_needs_write(out, "quorum", &anybody, 1);
    json_add_key(out, "reasons");
    buffer_append_char(out, '{');
    json_add_text(out, "approve", terms->approve_needs_reason ? "required" : "optional");
    json_add_text(out, "reject", terms->reject_needs_reason ? "required" : "optional");
    buffer_append_char(out, '}');
}

/* The most that an approver may ask for; null where there is nothing to ask for. */
static void add_offer(struct buffer *out, const struct ballot_grants *grants)
{
    json_add_key(out, "grantOffer");
    if (!grants->are_offered) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_append_char(out, '{');
    add_duration(out, "max", grants->max_ms);
    buffer_append_format(out, ",\"maxCalls\":%" PRId64, grants->max_calls);
    json_add_key(out, "vary");
    ballot_names_write(out, &grants->vary);
    buffer_append_char(out, '}');
}

/* The question, and what is known already of its answer. */
struct rights {
    const struct ballot *ballot;
    const struct task *task;
    const struct operator_identity *who;
    bool definition_changed;
};

static bool vote_json_definition_changed(void *context, const struct task *task)
{
    const struct rights *rights = context;
    return rights->definition_changed;
}

/* The ballot's answer to a vote with a reason. */
static enum ballot_refusal vote_json_judge(struct rights *rights, enum ballot_verb verb,
                                           bool is_emergency)
{
    const struct store_vote vote = {
        .voter = rights->who->person,
        .verb = verb,
        .reason = "given",
        .is_emergency = is_emergency,
        .electorate = {.definition_changed = vote_json_definition_changed, .context = rights},
    };
    return store_vote_judge(rights->ballot, &vote, rights->task);
}

/* Without the role nobody decides anything, whatever the ballot says. */
static void add_rights(struct buffer *out, struct rights *rights)
{
    const struct ballot *ballot = rights->ballot;
    const struct task *task = rights->task;
    const struct operator_identity *who = rights->who;
    bool has_role = rights_of(who, ROUTE_decisions_approve) == RIGHT_ALL;
    const struct ballot_vote *own = ballot_votes_of(&ballot->votes, &who->person);
    enum ballot_refusal approve = vote_json_judge(rights, BALLOT_APPROVE, false);
    enum ballot_refusal reject = vote_json_judge(rights, BALLOT_REJECT, false);
    enum ballot_refusal alone = vote_json_judge(rights, BALLOT_APPROVE, true);
    json_add_key(out, "you");
    buffer_append_char(out, '{');
    json_add_bool(out, "approve", has_role && approve == BALLOT_ACCEPTED);
    json_add_bool(out, "reject", has_role && reject == BALLOT_ACCEPTED);
    json_add_bool(out, "emergency", has_role && alone == BALLOT_ACCEPTED);
    json_add_bool(out, "grant",
                  has_role && approve == BALLOT_ACCEPTED &&
                      ballot_may_grant(&ballot->terms, &who->person));
    json_add_bool(out, "edit",
                  has_role && approve == BALLOT_ACCEPTED && ballot->terms.allow_edit.count > 0 &&
                      ballot_terms_persons(&ballot->terms) == 1);
    json_add_bool(out, "withdraw", has_role && own && task->state == TASK_PENDING);
    json_add_text_or_null(out, "code", has_role ? ballot_refusal_code(approve) : "forbidden");
    buffer_append_char(out, '}');
}

static bool vote_json_was_emergency(const struct ballot_votes *votes)
{
    for (size_t i = 0; i < votes->count; i++) {
        if (votes->items[i].is_emergency)
            return true;
    }
    return false;
}

static void vote_json_add(struct buffer *out, const struct task *task, const struct task_view *view,
                          bool definition_changed)
{
    struct ballot ballot;
    voter_read_ballot(view->config, task, &ballot);
    vote_json_add_votes(out, &ballot.votes);
    add_missing(out, &ballot, task->state == TASK_PENDING);
    add_terms(out, &ballot.terms);
    add_offer(out, &ballot.terms.grants);
    json_add_key(out, "allowEdit");
    ballot_names_write(out, &ballot.terms.allow_edit);
    struct rights rights = {&ballot, task, view->who, definition_changed};
    json_add_bool(out, "emergency", vote_json_was_emergency(&ballot.votes));
    add_rights(out, &rights);
    ballot_finish(&ballot);
}

/* `votes`, `missing` and `you` alone, for a row. */
static void vote_json_add_row(struct buffer *out, const struct task *task,
                              const struct task_view *view)
{
    struct ballot ballot;
    voter_read_ballot(view->config, task, &ballot);
    vote_json_add_votes(out, &ballot.votes);
    add_missing(out, &ballot, task->state == TASK_PENDING);
    bool has_changed = view->worker && gateway_definition_changed(view->worker, task, NULL);
    struct rights rights = {&ballot, task, view->who, has_changed};
    add_rights(out, &rights);
    ballot_finish(&ballot);
}

/* ---- the task ---- */

void task_json_write(struct buffer *out, const struct task *task, const struct task_view *view)
{
    const struct config *config = view->config;
    OWNED_BUFFER(arguments);
    bool is_hidden = task_json_redact(&arguments, task->arguments, task, config);
    buffer_append_format(out, "{\"id\":\"%s\"", task->id);
    json_add_text(out, "state", task_state_name(task->state));
    json_add_text(out, "status", client_status[task->state]);
    json_add_text(out, "source", task->source);
    json_add_text(out, "tool", task->tool);
    json_add_value(out, "arguments", buffer_str(&arguments));
    bool hides_meta = add_redacted(out, "meta", task->meta, task, config);
    bool hides_others = add_redacted(out, "otherParams", task->other_params, task, config);
    struct str headers = json_member(str_from(task->shown), "headers");
    json_add_key(out, "headers");
    redact_write(out, headers.length > 0 ? headers : STR("{}"), config, task->workflow);
    add_redact_fields(out, task, config);
    task_json_add_digest(out, "argumentsDigest", task->arguments_digest, is_hidden);
    add_original(out, task, config);
    task_json_add_digest(out, "requestDigest", task->request_digest,
                         is_hidden || hides_meta || hides_others);
    json_add_text(out, "principal", task->principal);
    json_add_text(out, "principalBy", shown_principal_by(task->owner));
    json_add_text_or_null(out, "workflow", task->workflow);
    json_add_time(out, "createdAt", task->created_ms);
    json_add_time(out, "decideBy", task->decide_by_ms);
    json_add_time(out, "executeBy", task->execute_by_ms);
    add_execution(out, task);
    json_add_time(out, "decidedAt", task->decided_ms);
    json_add_text_or_null(out, "decidedBy", task->decided_by);
    json_add_text_or_null(out, "reason", task->reason);
    json_add_text(out, "statusMessage", task->status_message);
    add_group(out, task);
    add_answer_of(out, task);
    json_add_text_or_null(out, "rule", task->rule);
    json_add_key(out, "grant");
    buffer_append_text(out, *task->grant ? task->grant : "null");
    shown_json_add(out, task, config, buffer_str(&arguments));
    bool has_changed = add_definition(out, task, view);
    vote_json_add(out, task, view, has_changed);
    if (view->with_history)
        history_json_add(out, view->tally);
    buffer_append_char(out, '}');
}

/* ---- rows of the inbox ---- */

void row_json_name(struct buffer *out, const struct task *task, struct str risk)
{
    const struct str parts[] = {str_from(task->owner), str_from(task->source), str_from(task->tool),
                                str_from(task->workflow), risk};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        buffer_append(out, parts[i]);
        buffer_append_char(out, '\0');
    }
}

void row_json_key(const struct task *task, char key[DIGEST_HEX_BYTES])
{
    char plain[DIGEST_HEX_BYTES];
    OWNED_BUFFER(name);
    row_json_name(&name, task, brief_risk(task).risk);
    digest_sha256_hex(buffer_str(&name), plain);
    digest_keyed_hex(plain, key);
}

/* All members, without the last bracket. */
static void add_members(struct buffer *out, const struct task *task, const struct row_stack *stack,
                        const struct task_view *view)
{
    OWNED_BUFFER(made);
    struct brief brief;
    bool is_current = brief_is_current(task, view->config);
    if (!is_current)
        brief_write(&made, task, view->config);
    brief_read(&brief, is_current ? str_from(task->brief) : buffer_str(&made));
    buffer_append_format(out, "{\"stack\":\"%s\",\"count\":%zu", stack->key, stack->count);
    json_add_text(out, "id", task->id);
    json_add_text(out, "source", task->source);
    json_add_text(out, "tool", task->tool);
    json_add_text(out, "principal", task->principal);
    json_add_text(out, "principalBy", shown_principal_by(task->owner));
    json_add_text_or_null(out, "workflow", task->workflow);
    buffer_append_char(out, ',');
    buffer_append(out, brief.members);
    task_json_add_digest(out, "requestDigest", task->request_digest, brief.has_hidden);
    json_add_time(out, "createdAt", task->created_ms);
    json_add_time(out, "decideBy", task->decide_by_ms);
    vote_json_add_row(out, task, view);
}

void row_json_write(struct buffer *out, const struct task *task, const struct row_stack *stack,
                    const struct task_view *view)
{
    add_members(out, task, stack, view);
    buffer_append_char(out, '}');
}

void row_json_write_event(struct buffer *out, const struct task *task, const struct task_view *view)
{
    struct row_stack stack = {.count = 1};
    row_json_key(task, stack.key);
    add_members(out, task, &stack, view);
    json_add_text(out, "state", task_state_name(task->state));
    json_add_text_or_null(out, "decidedBy", task->decided_by);
    json_add_time(out, "decidedAt", task->decided_ms);
    json_add_text_or_null(out, "reason", task->reason);
    json_add_text(out, "statusMessage", task->status_message);
    buffer_append_char(out, '}');
}

/* ---- grants ---- */

static void grant_json_add_arguments(struct buffer *out, const struct store_grant *grant,
                                     const struct config *config)
{
    json_add_key(out, "arguments");
    if (*grant->arguments)
        redact_write(out, str_from(grant->arguments), config, grant->workflow);
    else
        buffer_append_text(out, "null");
}

static void add_terms_and_givers(struct buffer *out, const struct store_grant *grant)
{
    struct ballot ballot;
    ballot_read(&ballot, str_from(grant->terms), str_from(grant->votes));
    json_add_key(out, "vary");
    ballot_names_write(out, &ballot.terms.grants.vary);
    json_add_key(out, "givers");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < ballot.votes.count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        buffer_append_json_string(out, str_from(ballot.votes.items[i].person.name));
    }
    buffer_append_char(out, ']');
    ballot_finish(&ballot);
}

void grant_json_write(struct buffer *out, const struct store_grant *grant,
                      const struct config *config)
{
    bool has_ended = grant->ended_ms > 0;
    buffer_append_char(out, '{');
    json_add_text(out, "id", grant->id);
    json_add_text(out, "state", has_ended ? "ended" : "active");
    json_add_text(out, "task", grant->task_id);
    json_add_text(out, "source", grant->source);
    json_add_text(out, "tool", grant->tool);
    json_add_text(out, "principal", grant->principal);
    json_add_text(out, "principalBy", shown_principal_by(grant->owner));
    json_add_text(out, "workflow", grant->workflow);
    json_add_text_or_null(out, "rule", grant->rule);
    grant_json_add_arguments(out, grant, config);
    add_terms_and_givers(out, grant);
    json_add_text_or_null(out, "reason", grant->reason);
    add_duration(out, "for", grant->for_ms);
    json_add_number(out, "calls", grant->calls);
    json_add_number(out, "used", grant->used);
    /* A row that somebody else wrote may have any numbers. */
    bool is_counted = grant->used >= 0 && grant->used <= grant->calls;
    json_add_number(out, "left", has_ended || !is_counted ? 0 : grant->calls - grant->used);
    json_add_time(out, "createdAt", grant->created_ms);
    json_add_time(out, "until", grant->until_ms);
    json_add_time(out, "endedAt", grant->ended_ms);
    json_add_text_or_null(out, "endCause", grant->end_cause);
    json_add_text_or_null(out, "endedBy", grant->ended_by);
    json_add_text_or_null(out, "endReason", grant->end_reason);
    buffer_append_char(out, '}');
}
