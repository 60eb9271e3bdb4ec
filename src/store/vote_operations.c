/* Votes: each is one transaction, with the move that it leads to. */
#include <stdlib.h>
#include <string.h>

#include "effects.h"
#include "queue.h"
#include "task_operations.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"

/* A reaction that has gone takes back the vote that it was, and none that was given elsewhere. */
static bool is_by_reaction(const struct ballot *ballot, const struct store_vote *vote)
{
    const struct ballot_vote *own = ballot_votes_of(&ballot->votes, &vote->voter);
    return !vote->reaction || (own->reaction && strcmp(own->reaction, vote->reaction) == 0);
}

enum ballot_refusal store_vote_judge(const struct ballot *ballot, const struct store_vote *vote,
                                     const struct task *task)
{
    const struct person_maker maker = {task->owner, task->owner_email, task->maker};
    const struct ballot_question question = {
        .voter = &vote->voter,
        .is_own = person_made(&vote->voter, &maker),
        .is_pending = task->state == TASK_PENDING,
        .request_digest = task->request_digest,
        .shown_digest = vote->shown_digest,
        .verb = vote->verb,
        .definition_changed = vote->electorate.definition_changed &&
                              vote->electorate.definition_changed(vote->electorate.context, task),
        .has_reason = visible_has_content(str_from(vote->reason)),
        .is_emergency = vote->is_emergency,
        .typed = vote->electorate.typed
                     ? vote->electorate.typed(vote->electorate.context, vote, task)
                     : BALLOT_TYPED_NOT_ASKED,
        .grant = vote->grant,
    };
    if (!vote->withdraws)
        return ballot_judge(ballot, &question);
    enum ballot_refusal refusal = ballot_judge_withdrawal(ballot, &question);
    return refusal == BALLOT_ACCEPTED && !is_by_reaction(ballot, vote) ? BALLOT_NO_VOTE : refusal;
}

/* Puts the votes that there are now into the task and its row. */
static bool keep_votes(struct batch *batch, struct task *task, const struct ballot *ballot)
{
    OWNED_BUFFER(text);
    ballot_votes_write(&text, &ballot->votes);
    task_set_text(&task->votes, buffer_str(&text));
    return task_rows_set_votes(batch->database, task);
}

static bool vote_decide(struct batch *batch, struct task *task, const struct store_vote *vote)
{
    struct error error;
    struct task_change change = {
        .to = vote->verb == BALLOT_APPROVE ? TASK_APPROVED : TASK_REJECTED,
        .by = vote->voter.name,
        .reason = vote->reason,
    };
    if (change.to == TASK_APPROVED && vote->electorate.valid_for_ms)
        change.execute_by_ms =
            batch->now_ms + vote->electorate.valid_for_ms(vote->electorate.context, task->workflow);
    const struct audit_actor actor = {"operator", vote->voter.name, vote->voter.via};
    return task_operations_move(batch, task, &change, actor, &error) == ROW_FOUND &&
           (!vote->is_emergency || outbox_note_emergency(batch, task));
}

/* The votes have changed, and the task goes on waiting. */
static bool vote_note_waiting(struct batch *batch, struct task *task, const struct store_vote *vote)
{
    const struct audit_actor actor = {"operator", vote->voter.name, vote->voter.via};
    const char *event = vote->withdraws ? "withdraw" : "vote";
    if (!audit_append(batch, task, event, task_state_name(task->state), actor,
                      vote->withdraws ? NULL : vote->reason) ||
        !outbox_note_voted(batch, task))
        return false;
    batch_add_event(batch, task, false);
    return true;
}

static bool fills_alone(const struct ballot *ballot, const struct store_vote *vote)
{
    struct ballot alone = {.terms = ballot->terms};
    ballot_votes_add(&alone.votes, &vote->voter, vote->verb);
    bool is_filled = ballot_is_filled(&alone);
    ballot_votes_finish(&alone.votes);
    return is_filled;
}

/* Behaviour 9.9: alone under a quorum of 1, which this vote fills by itself, and of the very
 * request that was looked at. */
static bool may_edit(const struct ballot *ballot, const struct store_vote *vote,
                     const struct task *task)
{
    bool is_plain = vote->verb == BALLOT_APPROVE && !vote->is_emergency && !vote->withdraws &&
                    vote->grant.calls == 0;
    return is_plain && ballot->terms.allow_edit.count > 0 &&
           ballot_terms_persons(&ballot->terms) == 1 && fills_alone(ballot, vote) &&
           *task->request_digest && strcmp(task->request_digest, vote->edit->before_digest) == 0;
}

/* The task is still pending. Its rows and the trail have both digests from here on. */
static bool edit(struct batch *batch, struct task *task, const struct store_vote *vote)
{
    const struct store_edit *made = vote->edit;
    const struct audit_actor actor = {"operator", vote->voter.name};
    size_t bytes_before = task->request_length;
    ASSERT(task->state == TASK_PENDING);
    task_set_text(&task->original_arguments, str_from(task->arguments));
    memcpy(task->original_digest, task->arguments_digest, sizeof task->original_digest);
    memcpy(task->original_request_digest, task->request_digest,
           sizeof task->original_request_digest);
    task_set_text(&task->arguments, str_from(made->arguments));
    task_set_request(task, str_slice(made->request, made->request_length));
    memcpy(task->arguments_digest, made->arguments_digest, sizeof task->arguments_digest);
    memcpy(task->request_digest, made->request_digest, sizeof task->request_digest);
    OWNED char *reason =
        memory_format("the arguments were those of digest %s", task->original_digest);
    return task_rows_edit(batch->database, task) &&
           pending_note_edited(batch, task, bytes_before) &&
           audit_append(batch, task, AUDIT_EDIT, task_state_name(task->state), actor, reason);
}

static void add_vote(const struct task *task, struct ballot *ballot, const struct store_vote *vote)
{
    struct ballot_vote *added = ballot_votes_add(&ballot->votes, &vote->voter, vote->verb);
    added->at_ms = task->updated_ms;
    added->reason = memory_copy_text(vote->reason);
    added->reaction = memory_copy_text(vote->reaction);
    added->is_emergency = vote->is_emergency;
    added->grant = vote->grant;
}

/* The vote is accepted. */
static bool cast(struct batch *batch, struct task *task, struct ballot *ballot,
                 const struct store_vote *vote)
{
    bool is_decided = false;
    ASSERT(task->state == TASK_PENDING);
    /* The clock may be set back; the order of a task's own times stays. */
    if (task->updated_ms < batch->now_ms)
        task->updated_ms = batch->now_ms;
    if (vote->withdraws) {
        const struct ballot_vote *own = ballot_votes_of(&ballot->votes, &vote->voter);
        ASSERT(own); /* else there is nothing to withdraw, which was judged */
        ballot_votes_remove(&ballot->votes, (size_t)(own - ballot->votes.items));
    } else {
        while (vote->edit && ballot->votes.count > 0) /* they are about other arguments */
            ballot_votes_remove(&ballot->votes, 0);
        add_vote(task, ballot, vote);
        is_decided = vote->verb == BALLOT_REJECT || vote->is_emergency || ballot_is_filled(ballot);
    }
    if (!keep_votes(batch, task, ballot))
        return false;
    if (!is_decided)
        return vote_note_waiting(batch, task, vote);
    if (vote->edit && !edit(batch, task, vote))
        return false;
    return vote_decide(batch, task, vote) &&
           (task->state != TASK_APPROVED || grants_give(batch, task, ballot, vote));
}

static bool run_vote(struct batch *batch, struct operation *operation)
{
    const struct store_vote *vote = operation->vote;
    struct store_reply *reply = &operation->reply;
    if (batch->replica->is_held) {
        reply->status = STORE_FAILED;
        return true;
    }
    enum row_result result = task_operations_load(batch, str_from(operation->id), &reply->task);
    if (result != ROW_FOUND) {
        reply->status = STORE_NOT_FOUND;
        return result == ROW_ABSENT;
    }
    struct ballot ballot;
    ballot_read(&ballot, str_from(reply->task->terms), str_from(reply->task->votes));
    for (size_t i = 0; vote->electorate.renew && i < ballot.votes.count; i++)
        vote->electorate.renew(vote->electorate.context, &ballot.votes.items[i]);
    reply->refusal = store_vote_judge(&ballot, vote, reply->task);
    if (reply->refusal == BALLOT_ACCEPTED && vote->grant.calls > 0 && !grants_fit(reply->task))
        reply->refusal = BALLOT_GRANT_NOT_ALLOWED;
    if (reply->refusal == BALLOT_ACCEPTED && vote->edit && !may_edit(&ballot, vote, reply->task))
        reply->refusal = BALLOT_EDIT_NOT_ALLOWED;
    bool done = true;
    if (reply->refusal == BALLOT_NOT_PENDING)
        reply->status = STORE_CONFLICT;
    else if (reply->refusal != BALLOT_ACCEPTED)
        reply->status = STORE_REFUSED;
    else
        done = cast(batch, reply->task, &ballot, vote);
    ballot_finish(&ballot);
    return done;
}

/* ---- the call ---- */

static struct store_vote *vote_copy(const struct store_vote *vote)
{
    struct store_vote *copy = memory_alloc(sizeof *copy);
    *copy = *vote;
    person_copy(&copy->voter, &vote->voter);
    copy->reason = memory_copy_text(vote->reason);
    copy->reaction = memory_copy_text(vote->reaction);
    copy->typed = memory_copy_text(vote->typed);
    copy->shown_digest = memory_copy_text(vote->shown_digest);
    copy->claim = NULL; /* an operation of its own */
    if (vote->edit) {
        struct store_edit *edit = memory_alloc(sizeof *edit);
        *edit = *vote->edit;
        edit->arguments = memory_copy_text(vote->edit->arguments);
        edit->request = memory_copy_str(str_slice(vote->edit->request, vote->edit->request_length));
        copy->edit = edit;
    }
    return copy;
}

static void vote_finish(struct operation *operation)
{
    struct store_vote *vote = operation->vote;
    if (vote->electorate.release)
        vote->electorate.release(vote->electorate.context);
    person_finish(&vote->voter);
    free((char *)vote->reason);
    free((char *)vote->reaction);
    free((char *)vote->shown_digest);
    free((char *)vote->typed);
    if (vote->edit) {
        free(vote->edit->arguments);
        free(vote->edit->request);
        free((void *)vote->edit);
    }
    free(vote);
}

static const struct operation_kind operation_task_vote = {"vote", true, run_vote, vote_finish};

void store_task_vote(struct store *store, struct str id, const struct store_vote *vote,
                     struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_vote, call);
    operation->id = operation_keep(operation, id);
    operation->vote = vote_copy(vote);
    if (vote->claim)
        operation->next = task_operations_change(id, &vote->claim->change, &vote->claim->actor,
                                                 vote->claim->call);
    store_queue(store, operation);
}
