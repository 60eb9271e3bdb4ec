/* Requests at servers whose clients may be asked in between: rounds of questions, and what waits
 * for the client's next request (MCP 2026-07-28, patterns/mrtr). */
#include "conversation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/broadcast.h"
#include "rounds.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/* So many questions of one call may be open, and so many bytes wait for its client. */
#define MOST_QUESTIONS 32
#define HELD_BYTES ((size_t)1024 * 1024)
/* Rounds in which one call asks its client: clients give up after so many. */
#define MOST_ROUNDS 50
#define GATHER_MS 50

/* An event that waits for the next leg. */
struct held_event {
    struct list node;
    struct event event; /* its texts are owned */
};

struct conversation {
    uint32_t magic;   /* CONVERSATION_MAGIC */
    struct list node; /* of those that are ended together */
    struct server_link up;
    const struct client_protocol *client;
    struct buffer declared;      /* of the first leg */
    char leg[RANDOM_UUID_BYTES]; /* "" while the client has no request open */
    char handle[TASK_ID_BYTES];  /* in worker.conversations; what is asked are rows of it */
    int64_t round;
    struct question asked; /* the round, in the table of questions with the first one */
    size_t numbered;       /* requests of the next round */
    struct list held;
    size_t held_bytes;
    struct loop_timer gather;   /* servers ask several things at once */
    struct loop_timer patience; /* with a client that was asked */
    bool is_answered;           /* the last event is in `held` */
};
#define CONVERSATION_MAGIC 0x47574256

static struct conversation *conversation_from(void *context)
{
    return MAGIC_CAST(struct conversation, CONVERSATION_MAGIC, context);
}

/* ---- the end ---- */

static struct question_table *questions_of_conversation(const struct conversation *conversation)
{
    return conversation->up.worker->gateway->questions;
}

static size_t count_questions(const struct conversation *conversation)
{
    return rounds_count(questions_of_conversation(conversation), str_from(conversation->handle),
                        NULL);
}

static void event_own(struct event *event)
{
    ASSERT(event->asked.id.length == 0 && event->asked.request.length == 0);
    event->text = broadcast_copy(event->text);
    event->required = broadcast_copy(event->required);
    event->server_info = broadcast_copy(event->server_info);
    event->reply = NULL;
}

static void event_finish(const struct event *event)
{
    broadcast_release(event->text);
    broadcast_release(event->required);
    broadcast_release(event->server_info);
}

static void conversation_end(struct conversation *conversation)
{
    struct server_link *up = &conversation->up;
    void *known = map_remove(up->worker->conversations, str_from(conversation->handle));
    ASSERT(known == conversation);
    list_remove(&conversation->node);
    loop_timer_stop(&conversation->gather);
    loop_timer_stop(&conversation->patience);
    rounds_forget(questions_of_conversation(conversation), str_from(conversation->handle));
    if (conversation->round > 0)
        question_table_remove(questions_of_conversation(conversation), &conversation->asked);
    LIST_FOR_EACH_SAFE (node, next, &conversation->held) {
        struct held_event *held = LIST_ENTRY(node, struct held_event, node);
        list_remove(&held->node);
        event_finish(&held->event);
        free(held);
    }
    buffer_finish(&conversation->declared);
    up->protocol->release(up);
    snapshot_unref(up->snapshot);
    MAGIC_CLEAR(conversation);
    free(conversation);
}

static void conversation_cancel(struct conversation *conversation, const char *reason)
{
    conversation->up.protocol->cancel(&conversation->up, reason);
    conversation_end(conversation);
}

/* ---- to the client ---- */

/* From the worker of a conversation to that of its leg. */
struct client_message {
    const struct client_protocol *client;
    struct client_event event;
};

static void own_event(void *message)
{
    event_own(&((struct client_message *)message)->event.event);
}

static void finish_event(void *message)
{
    event_finish(&((const struct client_message *)message)->event.event);
}

static void deliver_event(struct gateway_worker *worker, const void *message)
{
    const struct client_message *sent = message;
    sent->client->take(worker, &sent->event);
}

static void send_to_leg(struct gateway_worker *worker, const struct client_message *message)
{
    static const struct broadcast_kind kind = {.bytes = sizeof(struct client_message),
                                               .own = own_event,
                                               .finish = finish_event,
                                               .deliver = deliver_event};
    ASSERT(message->event.leg[0]);
    if (!message->client->take(worker, &message->event))
        broadcast_send(worker->gateway, &kind, message);
}

static struct client_message addressed(const struct conversation *conversation,
                                       const struct event *event)
{
    struct client_message message = {.client = conversation->client, .event.event = *event};
    memcpy(message.event.leg, conversation->leg, sizeof message.event.leg);
    return message;
}

static void conversation_pass(struct conversation *conversation, const struct event *event)
{
    const struct client_message message = addressed(conversation, event);
    send_to_leg(conversation->up.worker, &message);
}

static bool is_last(const struct event *event)
{
    return event->kind >= EVENT_RESULT;
}

static bool has_forgotten(const struct event *event)
{
    return event->kind == EVENT_LOST && event->lost == LOST_FORGOTTEN;
}

/* A client that sends its request once more gets another session, for which this one makes room. */
static void conversation_conclude(struct conversation *conversation, const struct event *event)
{
    struct gateway_worker *worker = conversation->up.worker;
    const struct client_message message = addressed(conversation, event);
    bool ends_before = has_forgotten(event);
    if (ends_before)
        conversation_end(conversation);
    send_to_leg(worker, &message);
    if (!ends_before)
        conversation_end(conversation);
}

/* A notification beyond the limit is lost. A later leg can neither be refused by HTTP nor send the
 * request once more. */
static void conversation_hold(struct conversation *conversation, const struct event *event)
{
    size_t bytes = event->text.length;
    struct held_event *held;
    ASSERT(!conversation->is_answered);
    if (!is_last(event) && conversation->held_bytes + bytes > HELD_BYTES)
        return;
    held = memory_alloc(sizeof *held);
    held->event = *event;
    if (event->kind == EVENT_REFUSED || has_forgotten(event)) {
        held->event.kind = bytes > 0 ? EVENT_ERROR : EVENT_LOST;
        held->event.lost = LOST_UNREADABLE;
    }
    event_own(&held->event);
    list_append(&conversation->held, &held->node);
    conversation->held_bytes += bytes;
    conversation->is_answered = is_last(event);
}

/* ---- questions ---- */

static void refuse_all(struct conversation *conversation)
{
    rounds_refuse(&conversation->up, str_from(conversation->handle));
}

/* The client may answer the next round once. false: too many questions are open. */
static bool open_round(struct conversation *conversation)
{
    struct question_table *table = questions_of_conversation(conversation);
    struct question *asked = &conversation->asked;
    if (conversation->round > 0)
        return question_table_reopen(table, asked);
    *asked = (struct question){.kind = QUESTION_ROUND,
                               .source = "",
                               .task = "",
                               .upstream_id = "",
                               .message = "",
                               .call = 1};
    random_uuid(asked->id);
    snprintf(asked->key, sizeof asked->key, "%s", conversation->handle);
    list_init(&asked->node);
    return question_table_add(table, asked) == QUESTION_ADDED;
}

/* From now on the client has no request open. The server may be silent meanwhile. */
static void conversation_ask(struct conversation *conversation)
{
    struct server_link *up = &conversation->up;
    struct event round = {.kind = EVENT_QUESTION};
    int64_t changed_ms;
    OWNED_BUFFER(requests);
    ASSERT(!conversation->is_answered && conversation->leg[0]);
    loop_timer_stop(&conversation->gather);
    if (!open_round(conversation)) {
        refuse_all(conversation);
        return;
    }
    rounds_show(questions_of_conversation(conversation), str_from(conversation->handle), &requests,
                &changed_ms);
    round.text = buffer_str(&requests);
    struct client_message message = addressed(conversation, &round);
    message.event.round = ++conversation->round;
    memcpy(message.event.handle, conversation->handle, sizeof message.event.handle);
    conversation->leg[0] = '\0';
    conversation->numbered = 0;
    loop_timer_start(&conversation->patience, up->snapshot->config->pseudo.elicitation_timeout_ms);
    up->protocol->set_silence(up, 0);
    log_info("A server asks the client of a bridged call", LOG_TEXT("source", up->source->id),
             LOG_NUMBER("round", conversation->round));
    send_to_leg(up->worker, &message);
}

static void on_gathered(void *context)
{
    struct conversation *conversation = conversation_from(context);
    if (conversation->leg[0] && count_questions(conversation) > 0)
        conversation_ask(conversation);
}

static void conversation_on_patience(void *context)
{
    struct conversation *conversation = conversation_from(context);
    log_warn("The client of a bridged call has not answered what the server asked",
             LOG_TEXT("source", conversation->up.source->id));
    refuse_all(conversation);
    conversation_cancel(conversation, "the client has not answered");
}

/* false: there is no room. */
static bool add_question(struct conversation *conversation, const struct event *event)
{
    char name[48];
    int64_t round = conversation->round + 1;
    snprintf(name, sizeof name, "r%" PRId64 ".%zu", round, ++conversation->numbered);
    const struct round_request added = {.round = (uint64_t)round,
                                        .name = name,
                                        .raw_key = name,
                                        .id = event->asked.id,
                                        .request = event->asked.request};
    if (!rounds_add(questions_of_conversation(conversation), str_from(conversation->handle),
                    &added))
        return false;
    if (conversation->leg[0] && !loop_timer_is_running(&conversation->gather))
        loop_timer_start(&conversation->gather, GATHER_MS);
    return true;
}

static void conversation_take_question(struct conversation *conversation, const struct event *event)
{
    struct server_link *up = &conversation->up;
    struct answer refusal = {.kind = ANSWER_TOO_MANY, .question = event->asked.kind};
    size_t others = count_questions(conversation);
    ASSERT_NUMBERS(others, <=, MOST_QUESTIONS);
    ASSERT_NUMBERS(conversation->round, <=, MOST_ROUNDS);
    if (!mcp_may_ask(buffer_str(&conversation->declared), event->asked.kind))
        refusal.kind = ANSWER_UNABLE;
    else if (others < MOST_QUESTIONS && conversation->round < MOST_ROUNDS &&
             add_question(conversation, event))
        return;
    up->protocol->answer(up, event->asked.id, &refusal);
}

/* ---- from the server ---- */

static void on_event(void *context, const struct event *event)
{
    struct conversation *conversation = conversation_from(context);
    if (event->kind == EVENT_QUESTION)
        conversation_take_question(conversation, event);
    else if (event->kind == EVENT_WITHDRAWN)
        rounds_withdraw(questions_of_conversation(conversation), str_from(conversation->handle),
                        event->asked.id);
    else if (!conversation->leg[0])
        conversation_hold(conversation, event);
    else if (is_last(event))
        conversation_conclude(conversation, event);
    else
        conversation_pass(conversation, event);
}

void conversation_begin(struct call *call, const struct conversation_start *start)
{
    struct conversation *conversation = memory_alloc(sizeof *conversation);
    MAGIC_SET(conversation, CONVERSATION_MAGIC);
    conversation->client = start->client;
    server_link_init(&conversation->up, start->server, NULL, call->worker, conversation);
    conversation->up.snapshot = snapshot_ref(call->snapshot);
    conversation->up.source = call->source;
    conversation->up.silence_ms = start->silence_ms;
    conversation->up.most_bytes = start->most_bytes;
    conversation->up.take = on_event;
    list_init(&conversation->node);
    list_init(&conversation->held);
    loop_timer_init(&conversation->gather, call->worker->loop, on_gathered, conversation);
    loop_timer_init(&conversation->patience, call->worker->loop, conversation_on_patience,
                    conversation);
    snprintf(conversation->leg, sizeof conversation->leg, "%s", start->leg);
    snprintf(conversation->handle, sizeof conversation->handle, "%s", start->handle);
    void *other =
        map_put(call->worker->conversations, str_from(conversation->handle), conversation);
    ASSERT(!other);
    buffer_append(&conversation->declared, start->declared);
    start->server->attach(&conversation->up, call);
    start->server->begin(&conversation->up);
}

/* ---- the client comes back, or goes ---- */

enum conversation_claim conversation_claim(struct gateway *gateway, const char *handle,
                                           int64_t round)
{
    const struct question_match match = {.call = (uint64_t)round};
    struct question_closing closing = {.state = QUESTION_ANSWERED_IN_TASK};
    enum conversation_claim claim = CONVERSATION_LOST;
    if (question_table_close(gateway->questions, str_from(handle), &match, &closing))
        return CONVERSATION_CLAIMED;
    struct question_walk walk = question_walk(gateway->questions, str_from(handle), NULL);
    while (question_walk_next(&walk))
        claim = CONVERSATION_ANSWERED;
    return claim;
}

/* From one worker to all: what a client says of a conversation, wherever that is. */
struct client_word {
    struct str answers;
    char handle[TASK_ID_BYTES];
    char leg[RANDOM_UUID_BYTES]; /* the next if it goes on, else the present one */
    bool goes_on;
};

/* Whether all that was asked is answered now. */
static bool take_answers(struct conversation *conversation, struct str answers)
{
    struct str answer;
    struct question *question;
    while ((question = rounds_pull_answered(questions_of_conversation(conversation),
                                            str_from(conversation->handle),
                                            (uint64_t)conversation->round, answers, &answer)))
        rounds_respond(&conversation->up, question, answer);
    return count_questions(conversation) == 0;
}

static void flush_held(struct conversation *conversation)
{
    LIST_FOR_EACH_SAFE (node, next, &conversation->held) {
        struct held_event *held = LIST_ENTRY(node, struct held_event, node);
        conversation_pass(conversation, &held->event);
        list_remove(&held->node);
        event_finish(&held->event);
        free(held);
    }
    conversation->held_bytes = 0;
}

static void conversation_go_on(struct conversation *conversation, const struct client_word *word)
{
    struct server_link *up = &conversation->up;
    ASSERT(!conversation->leg[0]);
    loop_timer_stop(&conversation->patience);
    memcpy(conversation->leg, word->leg, sizeof conversation->leg);
    bool is_complete = take_answers(conversation, word->answers);
    flush_held(conversation);
    if (conversation->is_answered)
        conversation_end(conversation);
    else if (!is_complete)
        conversation_ask(conversation);
    else
        up->protocol->set_silence(up, up->silence_ms);
}

/* false: it is not here, or does not know the leg yet. */
static bool take_word(struct gateway_worker *worker, const struct client_word *word)
{
    void *known = map_get(worker->conversations, str_from(word->handle));
    if (!known)
        return false;
    struct conversation *conversation = conversation_from(known);
    if (!word->goes_on && strcmp(conversation->leg, word->leg) != 0)
        return false;
    if (word->goes_on)
        conversation_go_on(conversation, word);
    else
        conversation_cancel(conversation, word->leg[0] ? "the client has closed the stream"
                                                       : "the client does not go on with it");
    return true;
}

static void deliver_word(struct gateway_worker *worker, const void *message)
{
    take_word(worker, message);
}

static const struct broadcast_kind word_kind = {
    .bytes = sizeof(struct client_word), .texts = 1, .deliver = deliver_word};

static struct client_word word_about(const char *handle, const char *leg)
{
    struct client_word word = {.goes_on = false};
    snprintf(word.handle, sizeof word.handle, "%s", handle);
    snprintf(word.leg, sizeof word.leg, "%s", leg);
    return word;
}

void conversation_answer(struct gateway_worker *worker, const char *handle, const char *leg,
                         struct str answers)
{
    struct client_word word = word_about(handle, leg);
    word.goes_on = true;
    word.answers = answers;
    broadcast_send(worker->gateway, &word_kind, &word);
}

void conversation_abandon(struct gateway_worker *worker, const char *handle)
{
    const struct client_word word = word_about(handle, "");
    broadcast_send(worker->gateway, &word_kind, &word);
}

void conversation_leg_gone(struct gateway_worker *worker, const char *handle, const char *leg)
{
    const struct client_word word = word_about(handle, leg);
    if (!take_word(worker, &word))
        broadcast_send(worker->gateway, &word_kind, &word);
}

/* Takes them together, because an end changes the map. */
static void collect_conversations(struct gateway_worker *worker, struct list *all)
{
    size_t position = 0;
    void *value;
    list_init(all);
    while (map_next(worker->conversations, &position, NULL, &value))
        list_append(all, &conversation_from(value)->node);
}

void conversations_end_waiting(struct gateway_worker *worker)
{
    struct list all;
    collect_conversations(worker, &all);
    LIST_FOR_EACH_SAFE (node, next, &all) {
        struct conversation *conversation = LIST_ENTRY(node, struct conversation, node);
        list_remove(node);
        if (!conversation->leg[0])
            conversation_cancel(conversation, "the gateway is shutting down");
    }
}

void conversations_drop(struct gateway_worker *worker)
{
    struct list all;
    collect_conversations(worker, &all);
    LIST_FOR_EACH_SAFE (node, next, &all) {
        conversation_end(LIST_ENTRY(node, struct conversation, node));
    }
}
