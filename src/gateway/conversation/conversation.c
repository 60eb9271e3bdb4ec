/* Requests at servers whose clients may be asked in between: rounds of questions, and what waits
 * for the client's next request (MCP 2026-07-28, patterns/mrtr). */
#include "conversation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/broadcast.h"
#include "question_table.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

/* So many questions of one call may be open, and so many bytes wait for its client. */
#define MOST_QUESTIONS 32
#define HELD_BYTES ((size_t)1024 * 1024)
/* Rounds in which one call asks its client: clients give up after so many. */
#define MOST_ROUNDS 50
#define GATHER_MS 50

/* A request of the server's that waits for the client's answer. */
struct server_question {
    struct list node;
    char key[32];          /* "r<round>.<number>" */
    struct buffer id;      /* the server's, JSON text */
    struct buffer request; /* as struct event has it */
    enum mcp_question kind;
    bool is_asked; /* the client has been shown it */
};

/* An event that waits for the next leg. */
struct held_event {
    struct list node;
    struct event event; /* its texts are owned */
};

struct conversation {
    uint32_t magic;   /* CONVERSATION_MAGIC */
    struct list node; /* in worker.conversations */
    struct server_link up;
    const struct client_protocol *client;
    struct buffer declared;      /* of the first leg */
    char leg[RANDOM_UUID_BYTES]; /* "" while the client has no request open */
    char handle[TASK_ID_BYTES];  /* "" before the first round */
    int64_t round;
    struct question asked; /* the round, in the table of questions with the first one */
    struct list questions;
    size_t question_count, numbered;
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

static void question_destroy(struct conversation *conversation, struct server_question *question)
{
    ASSERT_NUMBERS(conversation->question_count, >, 0);
    list_remove(&question->node);
    conversation->question_count--;
    buffer_finish(&question->id);
    buffer_finish(&question->request);
    free(question);
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
    list_remove(&conversation->node);
    loop_timer_stop(&conversation->gather);
    loop_timer_stop(&conversation->patience);
    LIST_FOR_EACH_SAFE (node, next, &conversation->questions) {
        question_destroy(conversation, LIST_ENTRY(node, struct server_question, node));
    }
    if (conversation->handle[0])
        question_table_remove(up->worker->gateway->questions, &conversation->asked);
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

static void conversation_respond(struct conversation *conversation,
                                 const struct server_question *question, enum answer_kind kind,
                                 struct str result)
{
    const struct answer answer = {.kind = kind, .question = question->kind, .result = result};
    conversation->up.protocol->answer(&conversation->up, buffer_str(&question->id), &answer);
}

static void refuse_all(struct conversation *conversation)
{
    LIST_FOR_EACH_SAFE (node, next, &conversation->questions) {
        struct server_question *question = LIST_ENTRY(node, struct server_question, node);
        conversation_respond(conversation, question, ANSWER_NONE, STR_EMPTY);
        question_destroy(conversation, question);
    }
}

static void write_requests(struct conversation *conversation, struct buffer *out)
{
    char before = '{';
    LIST_FOR_EACH_SAFE (node, next, &conversation->questions) {
        struct server_question *question = LIST_ENTRY(node, struct server_question, node);
        question->is_asked = true;
        buffer_append_format(out, "%c\"%s\":", before, question->key);
        buffer_append(out, buffer_str(&question->request));
        before = ',';
    }
    buffer_append_char(out, '}');
}

/* The key of its rounds, whose state the client gets. */
static void make_handle(struct conversation *conversation)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    snprintf(conversation->handle, sizeof conversation->handle, CONVERSATION_HANDLE_PREFIX "%s",
             uuid);
    conversation->asked = (struct question){.kind = QUESTION_ROUND,
                                            .source = "",
                                            .task = "",
                                            .upstream_id = "",
                                            .message = "",
                                            .call = 1};
    random_uuid(conversation->asked.id);
    snprintf(conversation->asked.key, sizeof conversation->asked.key, "%s", conversation->handle);
    list_init(&conversation->asked.node);
}

/* The client may answer the next round once. false: too many questions are open. */
static bool open_round(struct conversation *conversation)
{
    struct question_table *table = conversation->up.worker->gateway->questions;
    if (conversation->handle[0])
        return question_table_reopen(table, &conversation->asked);
    make_handle(conversation);
    if (question_table_add(table, &conversation->asked) == QUESTION_ADDED)
        return true;
    conversation->handle[0] = '\0';
    return false;
}

/* From now on the client has no request open. The server may be silent meanwhile. */
static void conversation_ask(struct conversation *conversation)
{
    struct server_link *up = &conversation->up;
    struct event round = {.kind = EVENT_QUESTION};
    OWNED_BUFFER(requests);
    ASSERT(!conversation->is_answered);
    loop_timer_stop(&conversation->gather);
    if (!open_round(conversation)) {
        refuse_all(conversation);
        return;
    }
    write_requests(conversation, &requests);
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
    if (conversation->leg[0] && conversation->question_count > 0)
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

static void add_question(struct conversation *conversation, const struct event *event)
{
    struct server_question *question = memory_alloc(sizeof *question);
    snprintf(question->key, sizeof question->key, "r%" PRId64 ".%zu", conversation->round + 1,
             ++conversation->numbered);
    question->kind = event->asked.kind;
    buffer_append(&question->id, event->asked.id);
    buffer_append(&question->request, event->asked.request);
    list_append(&conversation->questions, &question->node);
    conversation->question_count++;
    ASSERT_NUMBERS(conversation->question_count, <=, MOST_QUESTIONS);
    if (conversation->leg[0] && !loop_timer_is_running(&conversation->gather))
        loop_timer_start(&conversation->gather, GATHER_MS);
}

static void conversation_take_question(struct conversation *conversation, const struct event *event)
{
    struct server_link *up = &conversation->up;
    struct answer refusal = {.question = event->asked.kind};
    if (!mcp_may_ask(buffer_str(&conversation->declared), event->asked.kind)) {
        refusal.kind = ANSWER_UNABLE;
        up->protocol->answer(up, event->asked.id, &refusal);
    } else if (conversation->question_count == MOST_QUESTIONS ||
               conversation->round == MOST_ROUNDS) {
        refusal.kind = ANSWER_TOO_MANY;
        up->protocol->answer(up, event->asked.id, &refusal);
    } else {
        add_question(conversation, event);
    }
}

static void conversation_withdraw(struct conversation *conversation, struct str asked_id)
{
    LIST_FOR_EACH_SAFE (node, next, &conversation->questions) {
        struct server_question *question = LIST_ENTRY(node, struct server_question, node);
        if (str_equal(buffer_str(&question->id), asked_id))
            question_destroy(conversation, question);
    }
}

/* ---- from the server ---- */

static void on_event(void *context, const struct event *event)
{
    struct conversation *conversation = conversation_from(context);
    if (event->kind == EVENT_QUESTION)
        conversation_take_question(conversation, event);
    else if (event->kind == EVENT_WITHDRAWN)
        conversation_withdraw(conversation, event->asked.id);
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
    list_init(&conversation->questions);
    list_init(&conversation->held);
    loop_timer_init(&conversation->gather, call->worker->loop, on_gathered, conversation);
    loop_timer_init(&conversation->patience, call->worker->loop, conversation_on_patience,
                    conversation);
    list_append(&call->worker->conversations, &conversation->node);
    snprintf(conversation->leg, sizeof conversation->leg, "%s", start->leg);
    buffer_append(&conversation->declared, start->declared);
    start->server->attach(&conversation->up, call);
    start->server->begin(&conversation->up);
}

/* ---- the client comes back, or goes ---- */

static void note_known(void *context, struct question *round)
{
    *(bool *)context = true;
}

enum conversation_claim conversation_claim(struct gateway *gateway, const char *handle,
                                           int64_t round)
{
    const struct question_match match = {.call = (uint64_t)round};
    struct question_closing closing = {.state = QUESTION_ANSWERED_IN_TASK};
    bool is_known = false;
    if (question_table_close(gateway->questions, str_from(handle), &match, &closing))
        return CONVERSATION_CLAIMED;
    question_table_visit(gateway->questions, str_from(handle), NULL, note_known, &is_known);
    return is_known ? CONVERSATION_ANSWERED : CONVERSATION_LOST;
}

static struct conversation *find_by_handle(struct gateway_worker *worker, const char *handle)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->conversations) {
        struct conversation *conversation = LIST_ENTRY(node, struct conversation, node);
        if (strcmp(conversation->handle, handle) == 0)
            return conversation;
    }
    return NULL;
}

/* From one worker to all: what a client says of a conversation, wherever that is. */
struct client_word {
    struct str answers;
    char handle[TASK_ID_BYTES];
    char leg[RANDOM_UUID_BYTES]; /* its next leg; "": the client does not come back */
};

/* Whether all that was asked is answered now. */
static bool take_answers(struct conversation *conversation, struct str answers)
{
    bool is_complete = true;
    LIST_FOR_EACH_SAFE (node, next, &conversation->questions) {
        struct server_question *question = LIST_ENTRY(node, struct server_question, node);
        struct str value = json_member(answers, question->key);
        if (question->is_asked && json_type(value) == JSON_OBJECT) {
            conversation_respond(conversation, question, ANSWER_RESULT, value);
            question_destroy(conversation, question);
        } else {
            is_complete = false;
        }
    }
    return is_complete;
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

static void deliver_word(struct gateway_worker *worker, const void *message)
{
    const struct client_word *word = message;
    struct conversation *conversation = find_by_handle(worker, word->handle);
    if (conversation && word->leg[0])
        conversation_go_on(conversation, word);
    else if (conversation)
        conversation_cancel(conversation, "the client does not go on with it");
}

static const struct broadcast_kind word_kind = {
    .bytes = sizeof(struct client_word), .texts = 1, .deliver = deliver_word};

void conversation_answer(struct gateway_worker *worker, const char *handle, const char *leg,
                         struct str answers)
{
    struct client_word word = {.answers = answers};
    snprintf(word.handle, sizeof word.handle, "%s", handle);
    snprintf(word.leg, sizeof word.leg, "%s", leg);
    broadcast_send(worker->gateway, &word_kind, &word);
}

void conversation_abandon(struct gateway_worker *worker, const char *handle)
{
    conversation_answer(worker, handle, "", STR_EMPTY);
}

/* A leg's end, on all workers but the leg's own, where it is known at once. */
struct leg_end {
    char leg[RANDOM_UUID_BYTES];
};

static bool end_leg(struct gateway_worker *worker, const char *leg)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->conversations) {
        struct conversation *conversation = LIST_ENTRY(node, struct conversation, node);
        if (strcmp(conversation->leg, leg) != 0)
            continue;
        conversation_cancel(conversation, "the client has closed the stream");
        return true;
    }
    return false;
}

static void deliver_leg_end(struct gateway_worker *worker, const void *message)
{
    end_leg(worker, ((const struct leg_end *)message)->leg);
}

static const struct broadcast_kind leg_end_kind = {.bytes = sizeof(struct leg_end),
                                                   .deliver = deliver_leg_end};

void conversation_leg_gone(struct gateway_worker *worker, const char *leg)
{
    struct leg_end end;
    snprintf(end.leg, sizeof end.leg, "%s", leg);
    if (!end_leg(worker, leg))
        broadcast_send(worker->gateway, &leg_end_kind, &end);
}

void conversations_end_waiting(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->conversations) {
        struct conversation *conversation = LIST_ENTRY(node, struct conversation, node);
        if (!conversation->leg[0])
            conversation_cancel(conversation, "the gateway is shutting down");
    }
}

void conversations_drop(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->conversations) {
        conversation_end(LIST_ENTRY(node, struct conversation, node));
    }
}
