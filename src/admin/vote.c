/* Votes on their way to the store and back. */
#include "vote.h"

#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/notify/redact.h"
#include "taskgate/notify/typed.h"

#include "voter.h"

const struct decision vote_approve = {BALLOT_APPROVE, false, "Task approved"};
const struct decision vote_reject = {BALLOT_REJECT, false, "Task rejected"};
const struct decision vote_withdraw = {BALLOT_APPROVE, true, "Vote withdrawn"};

/* Without the electorate, which whoever casts it adds. */
static struct store_vote vote_of(const struct pending_reply *pending)
{
    return (struct store_vote){
        .voter = pending->who->person,
        .verb = pending->decision->verb,
        .reason = pending->reason,
        .is_emergency = pending->is_emergency,
        .grant = pending->grant,
        .edit = pending->edit,
        .withdraws = pending->decision->withdraws,
        .reaction = pending->reaction,
        .typed = pending->typed,
        .shown_digest = pending->shown_digest,
        .claim = pending->claim,
    };
}

enum ballot_refusal vote_judge(const struct pending_reply *pending, const struct task *task)
{
    struct ballot ballot;
    voter_read_ballot(pending->snapshot->config, task, &ballot);
    struct store_edit raw = {.arguments = pending->arguments};
    struct store_vote vote = vote_of(pending);
    struct store_electorate electorate =
        voter_electorate(pending->snapshot->config, pending->admin->worker);
    vote.electorate = electorate;
    if (pending->arguments && !vote.edit)
        vote.edit = &raw;
    enum ballot_refusal refusal = store_vote_judge(&ballot, &vote, task);
    electorate.release(electorate.context);
    ballot_finish(&ballot);
    return refusal;
}

bool vote_may_decide(const struct pending_reply *pending, const struct task *task)
{
    struct ballot ballot;
    size_t count;
    int64_t left = 0;
    if (vote_judge(pending, task) != BALLOT_ACCEPTED)
        return false;
    voter_read_ballot(pending->snapshot->config, task, &ballot);
    OWNED struct ballot_need *missing = ballot_missing(&ballot, &count);
    for (size_t i = 0; i < count; i++)
        left += missing[i].count;
    ballot_finish(&ballot);
    return left <= 1 || pending->is_emergency;
}

void vote_cast(const struct pending_reply *pending, struct str id, struct store_call call)
{
    struct store_vote vote = vote_of(pending);
    vote.electorate = voter_electorate(pending->snapshot->config, pending->admin->worker);
    store_task_vote(pending->admin->store, id, &vote, call);
}

char *vote_typed_path(const struct pending_reply *pending, const struct store_reply *reply)
{
    struct typed_value asked;
    OWNED_BUFFER(arguments);
    const char *own = pending->arguments ? pending->arguments : reply->task->arguments;
    if (reply->refusal != BALLOT_TYPED_REQUIRED && reply->refusal != BALLOT_TYPED_WRONG)
        return NULL;
    redact_write(&arguments, str_from(*own ? own : "{}"), pending->snapshot->config,
                 reply->task->workflow);
    typed_find(&asked, reply->task, buffer_str(&arguments));
    char *path = memory_copy_str(buffer_str(&asked.path));
    typed_finish(&asked);
    return path;
}

void vote_note(const struct pending_reply *pending, const struct task *task)
{
    const struct decision *decision = pending->decision;
    bool is_open = task->state == TASK_PENDING && !decision->withdraws;
    const char *verb = decision->withdraws ? "withdraw" : ballot_verb_name(decision->verb);
    metrics_count(METRIC_VOTES, str_from(task->workflow), str_from(verb));
    log_info(is_open ? "Vote counted" : decision->log_line, LOG_TEXT("task", task->id),
             LOG_TEXT("by", pending->who->person.name), LOG_TEXT("source", task->source),
             LOG_TEXT("tool", task->tool), LOG_TEXT("reason", pending->reason));
    if (!pending->is_emergency)
        return;
    metrics_add(METRIC_EMERGENCY_APPROVALS, 1, NULL);
    log_warn("Approved in an emergency, by one person alone", LOG_TEXT("task", task->id),
             LOG_TEXT("by", pending->who->person.name), LOG_TEXT("workflow", task->workflow));
}

int vote_status(const struct pending_reply *pending, const struct store_reply *reply)
{
    return reply->task->state == TASK_PENDING && !pending->decision->withdraws ? 202 : 200;
}

enum reply_error vote_error(enum ballot_refusal refusal)
{
    static const enum reply_error errors[] = {
        [BALLOT_OWN_CALL] = REPLY_OWN_CALL,
        [BALLOT_NOT_AN_APPROVER] = REPLY_NOT_AN_APPROVER,
        [BALLOT_NOT_PENDING] = REPLY_CONFLICT,
        [BALLOT_CHANGED] = REPLY_CHANGED,
        [BALLOT_DEFINITION_CHANGED] = REPLY_DEFINITION_CHANGED,
        [BALLOT_REASON_REQUIRED] = REPLY_REASON_REQUIRED,
        [BALLOT_ALREADY_VOTED] = REPLY_ALREADY_VOTED,
        [BALLOT_TYPED_REQUIRED] = REPLY_TYPED_REQUIRED,
        [BALLOT_TYPED_WRONG] = REPLY_TYPED_WRONG,
        [BALLOT_NO_VOTE] = REPLY_NO_VOTE,
        [BALLOT_NOT_A_GRANTER] = REPLY_NOT_A_GRANTER,
        [BALLOT_GRANT_NOT_ALLOWED] = REPLY_GRANT_NOT_ALLOWED,
        [BALLOT_EDIT_NOT_ALLOWED] = REPLY_EDIT_NOT_ALLOWED,
        [BALLOT_GRANT_TOO_LARGE] = REPLY_GRANT_TOO_LARGE,
    };
    ASSERT_NUMBERS(refusal, <, sizeof errors / sizeof *errors);
    return errors[refusal];
}
