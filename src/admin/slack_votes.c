/* From reactions to votes, on the same way as those of the API. */
#include "slack_votes.h"

#include <stdlib.h>

#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

#include "pending_reply.h"
#include "vote.h"

struct reaction_vote {
    uint32_t magic; /* REACTION_VOTE_MAGIC */
    struct pending_reply *pending;
    char *user, *channel, *ts; /* the person and the message of the reaction */
    slack_wish_done done;
    void *done_context;
};
#define REACTION_VOTE_MAGIC 0xad315517

static struct reaction_vote *vote_from(void *context)
{
    return MAGIC_CAST(struct reaction_vote, REACTION_VOTE_MAGIC, context);
}

const struct decision *slack_votes_decision(enum ballot_verb verb)
{
    return verb == BALLOT_APPROVE ? &vote_approve : &vote_reject;
}

static const struct decision *slack_votes_decision_of(enum slack_want want)
{
    if (want == SLACK_WITHDRAW)
        return &vote_withdraw;
    return slack_votes_decision(want == SLACK_APPROVE ? BALLOT_APPROVE : BALLOT_REJECT);
}

/* A reaction that was no vote may go without a word. */
static void note_refusal(const struct pending_reply *pending, const struct store_reply *reply)
{
    const char *code = ballot_refusal_code(reply->refusal);
    bool is_refused = reply->status == STORE_REFUSED || reply->status == STORE_CONFLICT;
    if (is_refused && !pending->decision->withdraws)
        log_info("A reaction in Slack is no vote", LOG_TEXT("task", reply->task->id),
                 LOG_TEXT("by", pending->who->person.name), LOG_TEXT("reason", code));
}

static void slack_votes_tell(const struct reaction_vote *vote)
{
    const struct slack_wish wish = {.user = vote->user,
                                    .channel = vote->channel,
                                    .ts = vote->ts,
                                    .reaction = vote->pending->reaction};
    slack_tell_reaction(vote->pending->admin->slack, &wish,
                        "This approval needs a typed value, so a reaction does not count.");
}

static void slack_votes_on_vote(void *context, const struct store_reply *reply)
{
    OWNED struct reaction_vote *vote = vote_from(context);
    if (reply->status == STORE_OK)
        vote_note(vote->pending, reply->task);
    else
        note_refusal(vote->pending, reply);
    if (reply->status == STORE_REFUSED && reply->refusal == BALLOT_TYPED_REQUIRED &&
        !vote->pending->admin->closed)
        slack_votes_tell(vote);
    vote->done(vote->done_context, reply->status != STORE_FAILED);
    pending_reply_destroy(vote->pending);
    free(vote->user);
    free(vote->channel);
    free(vote->ts);
    MAGIC_CLEAR(vote);
}

void slack_votes_decide(void *context, const struct slack_wish *wish, slack_wish_done done,
                        void *done_context)
{
    struct admin *admin = admin_from(context);
    struct snapshot *snapshot = snapshot_current();
    struct operator_identity *who =
        snapshot && !admin->closed ? operator_of_slack(snapshot->config, wish->user) : NULL;
    if (!who) {
        done(done_context, !admin->closed);
    } else {
        const struct request request = {.admin = admin, .snapshot = snapshot, .who = who};
        struct reaction_vote *vote = memory_alloc(sizeof *vote);
        MAGIC_SET(vote, REACTION_VOTE_MAGIC);
        vote->pending = pending_reply_create(&request);
        vote->pending->decision = slack_votes_decision_of(wish->want);
        vote->pending->reaction = memory_copy_text(wish->reaction);
        vote->pending->shown_digest = memory_copy_text(wish->shown_digest);
        vote->user = memory_copy_text(wish->user);
        vote->channel = memory_copy_text(wish->channel);
        vote->ts = memory_copy_text(wish->ts);
        vote->done = done;
        vote->done_context = done_context;
        vote_cast(vote->pending, str_from(wish->task_id),
                  (struct store_call){admin->loop, slack_votes_on_vote, vote});
    }
    operator_unref(who);
    snapshot_unref(snapshot);
}
