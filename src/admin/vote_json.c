/* Votes for operators. */
#include "vote_json.h"

#include <inttypes.h>

#include "taskgate/config/duration.h"
#include "taskgate/core/owned.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/json/members.h"

#include "rights.h"
#include "voter.h"

static void vote_json_add_duration(struct buffer *out, const char *key, int64_t ms)
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
    vote_json_add_duration(out, "for", wish->for_ms);
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
    vote_json_add_duration(out, "max", grants->max_ms);
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
    (void)task;
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

void vote_json_add(struct buffer *out, const struct task *task, const struct task_view *view,
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

void vote_json_add_row(struct buffer *out, const struct task *task, const struct task_view *view)
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
