/*
 * Decisions: approve, reject, and taking one's vote back. Each is one vote in the store, which
 * knows what it comes to; the answer comes after its commit, and the store's observers do the
 * rest. Nobody votes on a call of their own.
 */
#include "internal.h"

#include <inttypes.h>

#include "taskgate/config/duration.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/gateway/conversation_claim.h"
#include "taskgate/gateway/edit.h"

#include "body.h"
#include "pending_reply.h"
#include "reply.h"
#include "vote.h"

/* ---- refusals ---- */

static char *say_own(const struct pending_reply *pending)
{
    return memory_format("the %s that made this call may not %s it; somebody else must",
                         pending->who->person.is_named ? "person" : "token",
                         ballot_verb_name(pending->decision->verb));
}

static char *say_not_approver(const struct pending_reply *pending, const struct task *task)
{
    if (!pending->who->person.is_named)
        return memory_format("the workflow %s counts persons, and this token names none",
                             task->workflow);
    if (pending->is_emergency)
        return memory_format("%s is in none of the groups that decide alone in an emergency of "
                             "the workflow %s",
                             pending->who->person.name, task->workflow);
    return memory_format("%s may not vote in the workflow %s", pending->who->person.name,
                         task->workflow);
}

static char *say_no_grant(const struct pending_reply *pending, const struct task *task)
{
    if (pending->is_emergency)
        return memory_format("an approval in an emergency gives no grant");
    return memory_format("calls of this kind get no grant: the workflow %s offers none, the "
                         "caller is anonymous, or the tool's definition is not known",
                         task->workflow);
}

static char *say_too_large(const struct task *task)
{
    struct ballot_terms terms;
    char most[64];
    ballot_terms_read(&terms, str_from(task->terms));
    duration_format(terms.grants.max_ms, most);
    char *message =
        memory_format("a grant of the workflow %s is for %s and %" PRId64 " calls at most",
                      task->workflow, most, terms.grants.max_calls);
    ballot_terms_finish(&terms);
    return message;
}

static void decisions_refuse(struct http_exchange *exchange, const struct store_reply *reply,
                             const struct pending_reply *pending)
{
    const char *person = pending->who->person.name;
    OWNED char *message = NULL;
    if (reply->refusal == BALLOT_OWN_CALL)
        message = say_own(pending);
    else if (reply->refusal == BALLOT_NOT_AN_APPROVER)
        message = say_not_approver(pending, reply->task);
    else if (reply->refusal == BALLOT_CHANGED)
        message = memory_format("the request is not the one with this requestDigest; look at it "
                                "again");
    else if (reply->refusal == BALLOT_DEFINITION_CHANGED)
        message = memory_format("the server has changed the tool since the call was made; the "
                                "call can be rejected, and the agent has to make it again");
    else if (reply->refusal == BALLOT_REASON_REQUIRED)
        message = memory_format("this vote needs a reason");
    else if (reply->refusal == BALLOT_TYPED_REQUIRED)
        message = memory_format("this approval needs the value at path, typed");
    else if (reply->refusal == BALLOT_TYPED_WRONG)
        message = memory_format("another value was typed than the one at path");
    else if (reply->refusal == BALLOT_ALREADY_VOTED)
        message = memory_format("%s has voted already; withdraw that vote first", person);
    else if (reply->refusal == BALLOT_NOT_A_GRANTER)
        message = memory_format("%s may approve, but give no grants in the workflow %s", person,
                                reply->task->workflow);
    else if (reply->refusal == BALLOT_GRANT_NOT_ALLOWED)
        message = say_no_grant(pending, reply->task);
    else if (reply->refusal == BALLOT_GRANT_TOO_LARGE)
        message = say_too_large(reply->task);
    else if (reply->refusal == BALLOT_EDIT_NOT_ALLOWED)
        message = memory_format("arguments are changed by an approval of one person alone, without "
                                "a grant and without an emergency, where the workflow allows it");
    else
        message = memory_format("%s has no vote here to take back", person);
    OWNED char *path = vote_typed_path(pending, reply);
    reply_error_at(exchange, vote_error(reply->refusal), message, path);
}

/* ---- the answer ---- */

static void decisions_answer(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    struct http_exchange *exchange = pending_reply_take(pending);
    if (reply->status == STORE_OK)
        vote_note(pending, reply->task);
    if (exchange && reply->status == STORE_REFUSED)
        decisions_refuse(exchange, reply, pending);
    else if (exchange && reply->status == STORE_OK)
        pending_reply_with_task_as(exchange, vote_status(pending, reply), reply, pending);
    else if (exchange)
        pending_reply_with_task(exchange, reply, pending);
    pending_reply_destroy(pending);
}

/* ---- other arguments ---- */

static const enum reply_error edit_errors[] = {
    [EDIT_NOT_ALLOWED] = REPLY_EDIT_NOT_ALLOWED,
    [EDIT_CHANGES_ROUTE] = REPLY_EDIT_CHANGES_ROUTE,
    [EDIT_CALLER_UNKNOWN] = REPLY_EDIT_CHANGES_ROUTE,
    [EDIT_LATE] = REPLY_UNAVAILABLE,
};

/* A person who may not vote gets that answer first. */
static void refuse_edit(struct pending_reply *pending, struct task *task, enum reply_error error,
                        const char *message)
{
    struct http_exchange *exchange = pending_reply_take(pending);
    const struct store_reply refused = {
        .status = STORE_REFUSED, .task = task, .refusal = vote_judge(pending, task)};
    const struct store_reply conflict = {.status = STORE_CONFLICT, .task = task};
    if (exchange && refused.refusal == BALLOT_NOT_PENDING)
        pending_reply_with_task(exchange, &conflict, pending);
    else if (exchange && refused.refusal != BALLOT_ACCEPTED)
        decisions_refuse(exchange, &refused, pending);
    else if (exchange)
        reply_error(exchange, error, message, NULL);
    pending_reply_destroy(pending);
}

/* The store takes them only for the request that was read here. */
static void on_edit(void *context, struct task *task, const struct edit_answer *edit)
{
    struct pending_reply *pending = pending_reply_from(context);
    if (edit->status != EDIT_MADE && edit->status != EDIT_NOTHING_CHANGED) {
        refuse_edit(pending, task, edit_errors[edit->status], edit->why.message);
        return;
    }
    pending->edit = edit->status == EDIT_MADE ? &edit->edit : NULL;
    vote_cast(pending, str_from(task->id),
              (struct store_call){pending->admin->loop, decisions_answer, pending});
    pending->edit = NULL;
}

/* ---- a call that can run at once ---- */

/* The claim comes right behind the vote, so that one commit holds both. It comes also when the
 * process ends meanwhile: then the store refuses both. */
static void cast_with_claim(void *context, struct task *task, const struct store_claim *claim)
{
    struct pending_reply *pending = pending_reply_from(context);
    pending->claim = claim;
    vote_cast(pending, str_from(task->id),
              (struct store_call){pending->admin->loop, decisions_answer, pending});
    pending->claim = NULL;
}

/* ---- the vote ---- */

static void decisions_on_read(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    const struct store_reply failed = {.status = STORE_FAILED};
    if (reply->status != STORE_OK || !pending->admin->worker || pending->admin->closed)
        decisions_answer(pending, reply->status == STORE_OK ? &failed : reply);
    else if (pending->arguments)
        edit_ask(pending->admin->worker, pending->snapshot, reply->task,
                 str_from(pending->arguments), on_edit, pending);
    else if (vote_may_decide(pending, reply->task))
        claim_ask(pending->admin->worker, reply->task, cast_with_claim, pending);
    else
        cast_with_claim(pending, reply->task, NULL);
}

/* Whether the task must be looked at before the vote is cast. */
static bool must_read(const struct request *request, const struct pending_reply *pending,
                      bool is_approval)
{
    const struct gateway_worker *worker = request->admin->worker;
    return pending->arguments ||
           (is_approval && worker && claim_may_be_possible(worker, request->id));
}

static void decisions_decide(const struct request *request, const struct decision *decision)
{
    struct decision_body body;
    bool is_approval = decision->verb == BALLOT_APPROVE && !decision->withdraws;
    if (!decision_body_read(request, is_approval, &body))
        return;
    struct pending_reply *pending = pending_reply_create(request);
    pending->decision = decision;
    pending->reason = body.reason;
    pending->shown_digest = body.shown_digest;
    pending->typed = body.typed;
    pending->is_emergency = body.is_emergency;
    pending->grant = body.grant;
    pending->arguments = body.arguments;
    if (must_read(request, pending, is_approval))
        store_task_get(request->admin->store, request->id,
                       (struct store_call){request->admin->loop, decisions_on_read, pending});
    else
        vote_cast(pending, request->id,
                  (struct store_call){request->admin->loop, decisions_answer, pending});
}

void decisions_approve(const struct request *request)
{
    decisions_decide(request, &vote_approve);
}

void decisions_reject(const struct request *request)
{
    decisions_decide(request, &vote_reject);
}

void decisions_withdraw(const struct request *request)
{
    decisions_decide(request, &vote_withdraw);
}
