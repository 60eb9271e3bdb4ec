/* From reactions and presses to votes, on the same way as those of the API. */
#include "slack_votes.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/notify/channel_key.h"
#include "taskgate/notify/redact.h"
#include "taskgate/notify/slack_posted.h"
#include "taskgate/notify/typed.h"

#include "internal.h"
#include "pending_reply.h"
#include "reply.h"
#include "vote.h"

static const struct decision *slack_votes_decision(enum ballot_verb verb)
{
    return verb == BALLOT_APPROVE ? &vote_approve : &vote_reject;
}

/* ---- reactions ---- */

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

/* ---- presses ---- */

/*
 * POST /slack/interactions: a button under a message, or the dialog that asked for a reason. A
 * press counts with a good signature, of the workspace and the app of the token, under the very
 * message of the task, and of a person of the configuration. Everything else that Slack
 * has signed is answered 200, because Slack shows any other status as a failure.
 */

#define MOST_BODY_BYTES ((size_t)512 * 1024) /* of Slack's; the signature is over all of it */

/* A press that waits for the store. */
struct pressed {
    uint32_t magic; /* PRESSED_MAGIC */
    struct pending_reply *pending;
    struct slack_press press;
    char key[DIGEST_HEX_BYTES];         /* of its signature: a copy of the request has the same */
    const char *secret;                 /* that has signed it; of the snapshot */
    const struct config_notify *notify; /* of the snapshot */
};
#define PRESSED_MAGIC 0xad315518

static struct pressed *pressed_from(void *context)
{
    return MAGIC_CAST(struct pressed, PRESSED_MAGIC, context);
}

static void slack_interactions_destroy(struct pressed *pressed)
{
    pending_reply_destroy(pressed->pending);
    slack_press_finish(&pressed->press);
    MAGIC_CLEAR(pressed);
    free(pressed);
}

/* ---- answers ---- */

static void slack_interactions_answer_done(struct http_exchange *exchange)
{
    reply_text(exchange, 200, "text/plain; charset=utf-8", STR_EMPTY);
}

/* The answer to the person: beside the input of the dialog, or in a line under the message. */
static void answer_line(struct pressed *pressed, struct http_exchange *exchange, bool is_typed,
                        const char *text)
{
    /* An error belongs to an input that the dialog has. */
    bool beside_typed = pressed->press.typed && (is_typed || !pressed->pending->reason);
    if (pressed->press.kind == SLACK_PRESS_BUTTON) {
        slack_tell(pressed->pending->admin->slack, pressed->notify, &pressed->press, text);
        if (exchange)
            slack_interactions_answer_done(exchange);
    } else if (exchange) {
        OWNED_BUFFER(body);
        buffer_append_text(&body, "{\"response_action\":\"errors\",\"errors\":{");
        json_add_text(&body, beside_typed ? "typed" : "reason", text);
        buffer_append_text(&body, "}}");
        reply_json(exchange, 200, &body);
    }
}

static const char *line_of(enum ballot_refusal refusal)
{
    static const char *const lines[] = {
        [BALLOT_OWN_CALL] = "This call is your own. Somebody else must decide it.",
        [BALLOT_NOT_AN_APPROVER] = "You may not vote in this workflow.",
        [BALLOT_NOT_PENDING] = "This call does not wait for a decision any more.",
        [BALLOT_CHANGED] = "This call has changed since this message. Open the call to decide.",
        [BALLOT_DEFINITION_CHANGED] =
            "The server has changed this tool since. The agent must call again.",
        [BALLOT_REASON_REQUIRED] = "This vote needs a reason.",
        [BALLOT_TYPED_REQUIRED] = "This approval needs a typed value.",
        [BALLOT_TYPED_WRONG] = "This is not the value that is asked for.",
        [BALLOT_ALREADY_VOTED] = "You have voted already. Take that vote back first.",
    };
    bool is_known = refusal < sizeof lines / sizeof *lines && lines[refusal];
    return is_known ? lines[refusal] : "This vote is not possible here.";
}

/* ---- the vote ---- */

static char *slack_interactions_label_of(const struct task *task, const struct config *config)
{
    struct typed_value asked;
    OWNED_BUFFER(arguments);
    char *label;
    redact_write(&arguments, str_from(*task->arguments ? task->arguments : "{}"), config,
                 task->workflow);
    typed_find(&asked, task, buffer_str(&arguments));
    struct str path = buffer_str(&asked.path);
    if (str_equal(path, STR("$tool")))
        label = memory_format("Type the name of the tool");
    else if (str_equal(path, STR("$digest")))
        label = memory_format("Type %.*s", STR_ARGS(buffer_str(&asked.value)));
    else
        label = memory_format("Type the value of %.*s", STR_ARGS(path));
    typed_finish(&asked);
    return label;
}

/* All that the vote lacks, in one dialog. */
static void slack_interactions_ask(const struct pressed *pressed, const struct task *task)
{
    const struct pending_reply *pending = pressed->pending;
    bool is_approval = pressed->press.verb == BALLOT_APPROVE;
    struct ballot_terms terms;
    ballot_terms_read(&terms, str_from(task->terms));
    OWNED char *label = is_approval && typed_is_asked(task)
                            ? slack_interactions_label_of(task, pending->snapshot->config)
                            : NULL;
    const struct slack_asked asked = {
        .reason = is_approval ? terms.approve_needs_reason : terms.reject_needs_reason,
        .typed = label,
    };
    slack_ask(pending->admin->slack, pressed->notify, &pressed->press, &asked);
    ballot_terms_finish(&terms);
}

static void slack_interactions_on_vote(void *context, const struct store_reply *reply)
{
    struct pressed *pressed = pressed_from(context);
    struct pending_reply *pending = pressed->pending;
    struct http_exchange *exchange = pending_reply_take(pending);
    bool is_refused = reply->status == STORE_REFUSED || reply->status == STORE_CONFLICT;
    bool is_typed = reply->refusal == BALLOT_TYPED_REQUIRED || reply->refusal == BALLOT_TYPED_WRONG;
    bool asks = is_refused && (reply->refusal == BALLOT_REASON_REQUIRED || is_typed) &&
                pressed->press.kind == SLACK_PRESS_BUTTON;
    if (reply->status == STORE_OK)
        vote_note(pending, reply->task);
    if (asks)
        slack_interactions_ask(pressed, reply->task);
    if (is_refused && !asks)
        answer_line(pressed, exchange, is_typed, line_of(reply->refusal));
    else if (exchange && (reply->status == STORE_OK || asks))
        slack_interactions_answer_done(exchange);
    else if (exchange)
        pending_reply_with_task(exchange, reply, pending);
    slack_interactions_destroy(pressed);
}

static bool is_message(const struct slack_press *press, const char *reference,
                       struct slack_posted *posted)
{
    return slack_posted_read(reference, posted) &&
           str_equal(posted->channel, str_from(press->channel)) &&
           str_equal(posted->ts, str_from(press->ts)) &&
           (posted->app.length == 0 || !press->app || str_equal(posted->app, str_from(press->app)));
}

/* The endpoint that has posted the message to which the button belongs. */
static const struct config_notify *find_endpoint(const struct pressed *pressed,
                                                 const struct store_message *message)
{
    const struct config *config = pressed->pending->snapshot->config;
    for (size_t i = 0; i < config->notify_count; i++) {
        const struct config_notify *notify = &config->notify[i];
        char key[DIGEST_HEX_BYTES];
        if (!notify->signing_secret || strcmp(notify->signing_secret, pressed->secret) != 0)
            continue;
        channel_key(notify, key);
        if (strcmp(key, message->target) == 0)
            return notify;
    }
    return NULL;
}

static void slack_interactions_on_messages(void *context, const struct store_reply *reply)
{
    struct pressed *pressed = pressed_from(context);
    struct pending_reply *pending = pressed->pending;
    const struct config_notify *endpoint = NULL;
    struct slack_posted posted;
    for (size_t i = 0; i < reply->message_count && !endpoint; i++) {
        if (is_message(&pressed->press, reply->messages[i].reference, &posted))
            endpoint = find_endpoint(pressed, &reply->messages[i]);
    }
    bool counts = endpoint && slack_posted_counts(&posted, endpoint);
    if (counts && !pending->admin->closed) {
        pressed->notify = endpoint;
        vote_cast(pending, str_from(pressed->press.task_id),
                  (struct store_call){pending->admin->loop, slack_interactions_on_vote, pressed});
        return;
    }
    struct http_exchange *exchange = pending_reply_take(pending);
    if (reply->status == STORE_OK && !pending->admin->closed)
        answer_line(pressed, exchange, false,
                    endpoint ? "This message does not show the whole call. Open the call to decide."
                             : "This message is not, or no longer, that of a call.");
    else if (exchange)
        reply_error(exchange, REPLY_UNAVAILABLE, "the store does not answer", NULL);
    slack_interactions_destroy(pressed);
}

/* A vote that was taken back is not given again by a copy of the request, at whichever replica. */
static void on_noted(void *context, const struct store_reply *reply)
{
    struct pressed *pressed = pressed_from(context);
    struct admin *admin = pressed->pending->admin;
    if (reply->status == STORE_OK && !admin->closed) {
        store_outbox_messages_of(
            admin->store, str_from(pressed->press.task_id),
            (struct store_call){admin->loop, slack_interactions_on_messages, pressed});
        return;
    }
    struct http_exchange *exchange = pending_reply_take(pressed->pending);
    if (reply->status == STORE_CONFLICT)
        log_warn("A press in Slack came twice, and counts once",
                 LOG_TEXT("task", pressed->press.task_id), LOG_TEXT("user", pressed->press.user));
    if (exchange && reply->status == STORE_CONFLICT)
        slack_interactions_answer_done(exchange);
    else if (exchange)
        reply_error(exchange, REPLY_UNAVAILABLE, "the store does not answer", NULL);
    slack_interactions_destroy(pressed);
}

/* ---- the request ---- */

/* The secret of the app that has signed the request; NULL: none. */
static const char *find_secret(const struct request *request)
{
    const struct config *config = request->snapshot->config;
    struct str timestamp = http_header(request->exchange, "x-slack-request-timestamp");
    struct str signature = http_header(request->exchange, "x-slack-signature");
    bool is_too_long = http_body(request->exchange).length > MOST_BODY_BYTES;
    for (size_t i = 0; i < config->notify_count && !is_too_long; i++) {
        const char *secret = config->notify[i].signing_secret;
        if (secret && slack_press_is_signed(str_from(secret), timestamp, signature,
                                            http_body(request->exchange), clock_now_ms()))
            return secret;
    }
    return NULL;
}

/* An endpoint of this app in the workspace of the press. */
static enum slack_origin find_origin(struct pressed *pressed, const struct request *request)
{
    const struct config *config = request->snapshot->config;
    enum slack_origin best = SLACK_ORIGIN_FOREIGN;
    for (size_t i = 0; i < config->notify_count; i++) {
        const struct config_notify *notify = &config->notify[i];
        if (!notify->signing_secret || strcmp(notify->signing_secret, pressed->secret) != 0)
            continue;
        enum slack_origin origin = slack_origin_of(request->admin->slack, notify, &pressed->press);
        if (origin == SLACK_ORIGIN_OWN) {
            pressed->notify = notify;
            return origin;
        }
        if (origin == SLACK_ORIGIN_UNKNOWN)
            best = origin;
    }
    return best;
}

/* Answers a press that can be no vote; `pressed` stays the caller's. */
static bool is_out(struct pressed *pressed, const struct request *request)
{
    enum slack_origin origin = find_origin(pressed, request);
    if (origin == SLACK_ORIGIN_UNKNOWN) {
        reply_error(request->exchange, REPLY_UNAVAILABLE,
                    "Slack has not told yet what the token is of", NULL);
    } else if (origin == SLACK_ORIGIN_FOREIGN) {
        log_warn("A press in Slack is of another workspace or another app",
                 LOG_TEXT("team", pressed->press.team), LOG_TEXT("app", pressed->press.app));
        slack_interactions_answer_done(request->exchange);
    } else if (!request->who) {
        log_info("A press in Slack is of nobody whom the configuration knows",
                 LOG_TEXT("user", pressed->press.user));
        slack_tell(request->admin->slack, pressed->notify, &pressed->press,
                   "You are not known here as somebody who votes.");
        slack_interactions_answer_done(request->exchange);
    } else {
        return false;
    }
    return true;
}

static void slack_interactions_begin(struct pressed *pressed, const struct request *request)
{
    struct admin *admin = request->admin;
    pressed->pending = pending_reply_create(request);
    pressed->pending->decision = slack_votes_decision(pressed->press.verb);
    pressed->pending->reason = pressed->press.reason;
    pressed->press.reason = NULL;
    pressed->pending->typed = memory_copy_text(pressed->press.typed);
    pressed->pending->shown_digest = memory_copy_text(pressed->press.shown_digest);
    store_note_once(admin->store, str_from(pressed->key), 2 * SLACK_PRESS_WINDOW_MS,
                    (struct store_call){admin->loop, on_noted, pressed});
}

static void digest_signature(const struct request *request, char key[DIGEST_HEX_BYTES])
{
    struct str signature = http_header(request->exchange, "x-slack-signature");
    OWNED char *text = memory_format("slack press %.*s", STR_ARGS(signature));
    digest_sha256_hex(str_from(text), key);
}

void slack_interactions_take(const struct request *request)
{
    struct error error = {""};
    struct slack_press press;
    const char *secret = find_secret(request);
    if (!secret) {
        reply_error(request->exchange, REPLY_UNAUTHORIZED,
                    "this needs Slack's signature, of no more than five minutes ago", NULL);
        return;
    }
    if (!slack_press_read(&press, http_body(request->exchange), &error)) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
        return;
    }
    if (press.kind == SLACK_PRESS_OTHER) {
        slack_press_finish(&press);
        slack_interactions_answer_done(request->exchange);
        return;
    }
    struct request own = *request;
    struct pressed *pressed = memory_alloc(sizeof *pressed);
    MAGIC_SET(pressed, PRESSED_MAGIC);
    pressed->press = press;
    pressed->secret = secret;
    digest_signature(request, pressed->key);
    own.who = operator_of_slack(request->snapshot->config, press.user);
    if (is_out(pressed, &own)) {
        slack_press_finish(&pressed->press);
        MAGIC_CLEAR(pressed);
        free(pressed);
    } else {
        slack_interactions_begin(pressed, &own);
    }
    operator_unref(own.who);
}
