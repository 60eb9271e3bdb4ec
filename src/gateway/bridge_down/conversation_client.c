/* The client's side of a call at a legacy server: it comes back with answers, or goes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/broadcast.h"
#include "conversation_internal.h"

/* ---- the client comes back, or goes ---- */

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
    char handle[TASK_ID_BYTES];
    char leg[RANDOM_UUID_BYTES]; /* its next leg; "": the client does not come back */
    struct str answers;
};

static void own_word(void *message)
{
    struct client_word *word = message;
    word->answers = broadcast_copy(word->answers);
}

static void finish_word(void *message)
{
    broadcast_release(((struct client_word *)message)->answers);
}

static void flush_held(struct conversation *conversation)
{
    LIST_FOR_EACH_SAFE (node, next, &conversation->held) {
        struct held_message *held = LIST_ENTRY(node, struct held_message, node);
        conversation_pass(conversation, buffer_str(&held->text));
        list_remove(&held->node);
        buffer_finish(&held->text);
        free(held);
    }
    conversation->held_bytes = 0;
}

static void go_on(struct conversation *conversation, const struct client_word *word)
{
    bool is_complete;
    loop_timer_stop(&conversation->patience);
    memcpy(conversation->leg, word->leg, sizeof conversation->leg);
    is_complete = conversation_take_answers(conversation, word->answers);
    flush_held(conversation);
    if (conversation->is_answered)
        conversation_send_outcome(conversation);
    else if (!is_complete)
        conversation_ask(conversation);
    else
        exchange_set_silence(conversation->exchange, conversation->silence_ms);
}

static void deliver_word(struct gateway_worker *worker, const void *message)
{
    const struct client_word *word = message;
    struct conversation *conversation = find_by_handle(worker, word->handle);
    if (conversation && word->leg[0])
        go_on(conversation, word);
    else if (conversation)
        conversation_cancel(conversation, "the client does not go on with it");
}

static const struct broadcast_kind word_kind = {.bytes = sizeof(struct client_word),
                                                .own = own_word,
                                                .finish = finish_word,
                                                .deliver = deliver_word};

void conversation_answer(struct call *call, const char *handle, struct str answers)
{
    struct client_word word = {.answers = answers};
    snprintf(word.handle, sizeof word.handle, "%s", handle);
    snprintf(word.leg, sizeof word.leg, "%s", leg_id(call));
    broadcast_send(call->worker->gateway, &word_kind, &word);
}

void conversation_abandon(struct gateway_worker *worker, const char *handle)
{
    struct client_word word = {.answers = STR_EMPTY};
    snprintf(word.handle, sizeof word.handle, "%s", handle);
    broadcast_send(worker->gateway, &word_kind, &word);
}

/* A leg's end, on all workers but the leg's own, where it is told at once. */
struct leg_end {
    char leg[RANDOM_UUID_BYTES];
};

static bool end_leg(struct gateway_worker *worker, const char *leg)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->conversations) {
        struct conversation *conversation = LIST_ENTRY(node, struct conversation, node);
        if (strcmp(conversation->leg, leg) != 0)
            continue;
        conversation->leg[0] = '\0';
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
