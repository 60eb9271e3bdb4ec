/*
 * Decisions: approve, reject, and taking one's vote back. Each is one vote in the store, which
 * knows what it comes to; the answer comes after its commit, and the store's observers do the
 * rest. Nobody votes on a call of their own.
 */
#include "internal.h"

#include <stdlib.h>

#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

#include "decision_body.h"
#include "pending_reply.h"
#include "reply.h"
#include "voter.h"

struct decision {
    enum ballot_verb verb;
    bool withdraws;
    const char *log_line; /* when it decides */
};
static const struct decision approve = {BALLOT_APPROVE, false, "Task approved"};
static const struct decision reject = {BALLOT_REJECT, false, "Task rejected"};
static const struct decision withdraw = {BALLOT_APPROVE, true, "Vote withdrawn"};

/* ---- refusals ---- */

static char *say_own(const struct pending_reply *pending)
{
    return memory_format("the %s that made this call may not %s it; somebody else must",
                         pending->who->is_person ? "person" : "token",
                         ballot_verb_name(pending->decision->verb));
}

static char *say_not_approver(const struct pending_reply *pending, const struct task *task)
{
    if (!pending->who->is_person)
        return memory_format("the workflow %s counts persons, and this token names none",
                             task->workflow);
    if (pending->is_emergency)
        return memory_format("%s is in none of the groups that decide alone in an emergency of "
                             "the workflow %s",
                             pending->who->person, task->workflow);
    return memory_format("%s may not vote in the workflow %s", pending->who->person,
                         task->workflow);
}

static void refuse(struct http_exchange *exchange, const struct store_reply *reply,
                   const struct pending_reply *pending)
{
    static const enum reply_error errors[] = {
        [BALLOT_OWN_CALL] = REPLY_OWN_CALL,
        [BALLOT_NOT_AN_APPROVER] = REPLY_NOT_AN_APPROVER,
        [BALLOT_REASON_REQUIRED] = REPLY_REASON_REQUIRED,
        [BALLOT_ALREADY_VOTED] = REPLY_ALREADY_VOTED,
        [BALLOT_NO_VOTE] = REPLY_NO_VOTE,
    };
    const char *person = pending->who->person;
    char *message = NULL;
    if (reply->refusal == BALLOT_OWN_CALL)
        message = say_own(pending);
    else if (reply->refusal == BALLOT_NOT_AN_APPROVER)
        message = say_not_approver(pending, reply->task);
    else if (reply->refusal == BALLOT_REASON_REQUIRED)
        message = memory_format("this vote needs a reason");
    else if (reply->refusal == BALLOT_ALREADY_VOTED)
        message = memory_format("%s has voted already; withdraw that vote first", person);
    else
        message = memory_format("%s has no vote here to take back", person);
    reply_error(exchange, errors[reply->refusal], message, NULL);
    free(message);
}

/* ---- the answer ---- */

static void log_vote(const struct pending_reply *pending, const struct task *task)
{
    bool is_open = task->state == TASK_PENDING && !pending->decision->withdraws;
    log_info(is_open ? "Vote counted" : pending->decision->log_line, LOG_TEXT("task", task->id),
             LOG_TEXT("by", pending->who->person), LOG_TEXT("source", task->source),
             LOG_TEXT("tool", task->tool), LOG_TEXT("reason", pending->reason));
    if (pending->is_emergency)
        log_warn("Approved in an emergency, by one person alone", LOG_TEXT("task", task->id),
                 LOG_TEXT("by", pending->who->person), LOG_TEXT("workflow", task->workflow));
}

static void answer(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    struct http_exchange *exchange = pending_reply_take(pending);
    bool is_open = reply->status == STORE_OK && reply->task->state == TASK_PENDING;
    int status = is_open && !pending->decision->withdraws ? 202 : 200;
    if (reply->status == STORE_OK)
        log_vote(pending, reply->task);
    if (exchange && reply->status == STORE_REFUSED)
        refuse(exchange, reply, pending);
    else if (exchange)
        pending_reply_with_task_as(exchange, status, reply, pending);
    pending_reply_destroy(pending);
}

static void decide(const struct request *request, const struct decision *decision)
{
    struct decision_body body;
    struct voter voter;
    bool is_approval = decision->verb == BALLOT_APPROVE && !decision->withdraws;
    if (!decision_body_read(request, is_approval, &body))
        return;
    struct pending_reply *pending = pending_reply_create(request);
    pending->decision = decision;
    pending->reason = body.reason;
    pending->is_emergency = body.is_emergency;
    voter_init(&voter, pending->who);
    const struct store_vote vote = {
        .voter = voter.person,
        .owners = voter.owners,
        .verb = decision->verb,
        .reason = pending->reason,
        .is_emergency = pending->is_emergency,
        .withdraws = decision->withdraws,
        .electorate = voter_electorate(pending->snapshot->config),
    };
    store_task_vote(request->admin->store, request->id, &vote,
                    (struct store_call){request->admin->loop, answer, pending});
    voter_finish(&voter);
}

void decisions_approve(const struct request *request)
{
    decide(request, &approve);
}

void decisions_reject(const struct request *request)
{
    decide(request, &reject);
}

void decisions_withdraw(const struct request *request)
{
    decide(request, &withdraw);
}
