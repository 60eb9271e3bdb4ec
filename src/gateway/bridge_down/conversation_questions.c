/* The questions of a legacy server in a call, and the answers of its modern client (MCP 2026-07-28,
 * patterns/mrtr). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#define GATHER_MS 50

static void server_question_destroy(struct conversation *conversation,
                                    struct server_question *question)
{
    list_remove(&question->node);
    conversation->question_count--;
    buffer_finish(&question->id);
    buffer_finish(&question->request);
    free(question);
}

static void refuse(struct conversation *conversation, struct str id, const char *error)
{
    legacy_session_respond(conversation->session, id, "error", str_from(error));
}

/* ---- nobody answers ---- */

static void refuse_all(struct conversation *conversation)
{
    LIST_FOR_EACH_SAFE (node, next, &conversation->questions) {
        struct server_question *question = LIST_ENTRY(node, struct server_question, node);
        bool is_elicitation =
            question->kind == LEGACY_QUESTION_FORM || question->kind == LEGACY_QUESTION_URL;
        if (is_elicitation)
            legacy_session_respond(conversation->session, buffer_str(&question->id), "result",
                                   STR("{\"action\":\"cancel\"}"));
        else
            refuse(conversation, buffer_str(&question->id),
                   "{\"code\":-32603,\"message\":\"The client has not answered\"}");
        server_question_destroy(conversation, question);
    }
}

/* ---- asking ---- */

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
    struct question_table *table = conversation->worker->gateway->questions;
    if (conversation->handle[0])
        return question_table_reopen(table, &conversation->asked);
    make_handle(conversation);
    if (question_table_add(table, &conversation->asked) == QUESTION_ADDED)
        return true;
    conversation->handle[0] = '\0';
    return false;
}

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

/* From now on the client has no request open. The server may be silent meanwhile. */
void conversation_ask(struct conversation *conversation)
{
    struct leg_event event = {.kind = LEG_ASK};
    struct buffer requests;
    loop_timer_stop(&conversation->gather);
    if (!open_round(conversation)) {
        refuse_all(conversation);
        return;
    }
    event.number = ++conversation->round;
    buffer_init(&requests);
    write_requests(conversation, &requests);
    memcpy(event.leg, conversation->leg, sizeof event.leg);
    memcpy(event.handle, conversation->handle, sizeof event.handle);
    event.text = buffer_str(&requests);
    conversation->leg[0] = '\0';
    conversation->numbered = 0;
    loop_timer_start(&conversation->patience,
                     conversation->snapshot->config->pseudo.elicitation_timeout_ms);
    exchange_set_silence(conversation->exchange, 0);
    log_info("A server asks the client of a bridged call",
             LOG_TEXT("source", conversation->session->source->id),
             LOG_NUMBER("round", conversation->round));
    leg_send(conversation->worker, &event);
    buffer_finish(&requests);
}

static void on_gathered(void *context)
{
    struct conversation *conversation = conversation_from(context);
    if (conversation->leg[0] && conversation->question_count > 0)
        conversation_ask(conversation);
}

static void add_question(struct conversation *conversation, struct str message,
                         enum legacy_question kind)
{
    struct server_question *question = memory_alloc(sizeof *question);
    snprintf(question->key, sizeof question->key, "r%" PRId64 ".%zu", conversation->round + 1,
             ++conversation->numbered);
    question->kind = kind;
    buffer_append(&question->id, json_member(message, "id"));
    legacy_server_write_question(&question->request, message);
    list_append(&conversation->questions, &question->node);
    conversation->question_count++;
    if (conversation->leg[0] && !loop_timer_is_running(&conversation->gather))
        loop_timer_start(&conversation->gather, GATHER_MS);
}

void conversation_take_request(struct conversation *conversation, struct str message)
{
    enum legacy_question kind = legacy_server_question(message);
    if (kind == LEGACY_QUESTION_NONE)
        legacy_session_answer_stray(conversation->session, message);
    else if (!server_budget_take(&conversation->session->budget, SERVER_REQUEST,
                                 clock_monotonic_ms()))
        log_warn("A server asks too much in a bridged call",
                 LOG_TEXT("source", conversation->session->source->id));
    else if (!legacy_server_may_ask(buffer_str(&conversation->declared), kind))
        refuse(conversation, json_member(message, "id"),
               "{\"code\":-32601,\"message\":\"Method not found\"}");
    else if (conversation->question_count == CONVERSATION_MOST_QUESTIONS ||
             conversation->round == CONVERSATION_MOST_ROUNDS)
        refuse(conversation, json_member(message, "id"),
               "{\"code\":-32603,\"message\":\"Too many questions in one call\"}");
    else
        add_question(conversation, message, kind);
}

void conversation_drop_question(struct conversation *conversation, struct str request_id)
{
    LIST_FOR_EACH_SAFE (node, next, &conversation->questions) {
        struct server_question *question = LIST_ENTRY(node, struct server_question, node);
        if (str_equal(buffer_str(&question->id), request_id))
            server_question_destroy(conversation, question);
    }
}

/* ---- answers ---- */

bool conversation_take_answers(struct conversation *conversation, struct str answers)
{
    bool is_complete = true;
    LIST_FOR_EACH_SAFE (node, next, &conversation->questions) {
        struct server_question *question = LIST_ENTRY(node, struct server_question, node);
        struct str answer = json_member(answers, question->key);
        if (question->is_asked && json_type(answer) == JSON_OBJECT) {
            legacy_session_respond(conversation->session, buffer_str(&question->id), "result",
                                   answer);
            server_question_destroy(conversation, question);
        } else {
            is_complete = false;
        }
    }
    return is_complete;
}

static void on_patience(void *context)
{
    struct conversation *conversation = conversation_from(context);
    log_warn("The client of a bridged call has not answered what the server asked",
             LOG_TEXT("source", conversation->session->source->id));
    refuse_all(conversation);
    conversation->unanswered(conversation);
}

void conversation_questions_init(struct conversation *conversation,
                                 void (*unanswered)(struct conversation *conversation))
{
    conversation->unanswered = unanswered;
    list_init(&conversation->questions);
    loop_timer_init(&conversation->gather, conversation->worker->loop, on_gathered, conversation);
    loop_timer_init(&conversation->patience, conversation->worker->loop, on_patience, conversation);
}

void conversation_questions_finish(struct conversation *conversation)
{
    loop_timer_stop(&conversation->gather);
    loop_timer_stop(&conversation->patience);
    LIST_FOR_EACH_SAFE (node, next, &conversation->questions) {
        server_question_destroy(conversation, LIST_ENTRY(node, struct server_question, node));
    }
}
