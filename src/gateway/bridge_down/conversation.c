/* One call at a legacy server, for a modern client. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation_internal.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/text.h"

/* ---- the end ---- */

void conversation_end(struct conversation *conversation)
{
    struct legacy_session *session = conversation->session;
    list_remove(&conversation->node);
    conversation_questions_finish(conversation);
    if (conversation->handle[0])
        question_table_remove(conversation->worker->gateway->questions, &conversation->asked);
    LIST_FOR_EACH_SAFE (node, next, &conversation->held) {
        struct held_message *held = LIST_ENTRY(node, struct held_message, node);
        list_remove(&held->node);
        buffer_finish(&held->text);
        free(held);
    }
    exchange_abandon(conversation->exchange);
    buffer_finish(&conversation->body);
    buffer_finish(&conversation->request_id);
    buffer_finish(&conversation->declared);
    buffer_finish(&conversation->trace_state);
    buffer_finish(&conversation->answer);
    headers_finish(&conversation->headers);
    snapshot_unref(conversation->snapshot);
    MAGIC_CLEAR(conversation);
    free(conversation);
    session_pool_give_back(session);
}

/* The server may go on with the call for a while, and ask something: nobody else gets its session.
 */
void conversation_cancel(struct conversation *conversation, const char *reason)
{
    struct buffer body;
    buffer_init(&body);
    if (!conversation->is_answered) {
        jsonrpc_write_cancelled(&body, buffer_str(&conversation->request_id), reason);
        legacy_session_notify(conversation->session, buffer_str(&body));
        if (conversation->session->is_alone)
            session_pool_retire(conversation->session);
    }
    buffer_finish(&body);
    conversation_end(conversation);
}

/* ---- what the server says ---- */

static struct leg_event event_of(const struct conversation *conversation, enum leg_event_kind kind)
{
    struct leg_event event = {.kind = kind};
    memcpy(event.leg, conversation->leg, sizeof event.leg);
    return event;
}

void conversation_pass(struct conversation *conversation, struct str message)
{
    struct leg_event event = event_of(conversation, LEG_PASS);
    event.text = message;
    leg_send(conversation->worker, &event);
}

/* A message beyond the limit is lost: it was progress, or a log. */
static void hold(struct conversation *conversation, struct str message)
{
    if (conversation->held_bytes + message.length > CONVERSATION_HELD_BYTES)
        return;
    struct held_message *held = memory_alloc(sizeof *held);
    buffer_append(&held->text, message);
    list_append(&conversation->held, &held->node);
    conversation->held_bytes += message.length;
}

static void on_server_message(void *context, struct str message)
{
    struct conversation *conversation = conversation_from(context);
    struct str method = json_member(message, "method");
    if (json_member(message, "id").length > 0)
        conversation_take_request(conversation, message);
    else if (json_string_equals(method, STR(MCP_CANCELLED)))
        conversation_drop_question(conversation, json_path(message, "params", "requestId"));
    else if (json_string_equals(method, STR(MCP_TOOLS_CHANGED)))
        legacy_session_answer_stray(conversation->session, message);
    else if (conversation->leg[0])
        conversation_pass(conversation, message);
    else
        hold(conversation, message);
}

/* On the session's own stream. A question there belongs to the one call that has the session;
 * notifications there belong to no call. */
static void on_stray(void *context, struct str message)
{
    struct conversation *conversation = conversation_from(context);
    if (json_member(message, "id").length > 0)
        conversation_take_request(conversation, message);
    else if (json_string_equals(json_member(message, "method"), STR(MCP_CANCELLED)))
        conversation_drop_question(conversation, json_path(message, "params", "requestId"));
    else
        legacy_session_answer_stray(conversation->session, message);
}

void conversation_send_outcome(struct conversation *conversation)
{
    struct leg_event event =
        event_of(conversation, conversation->answer.length > 0 ? LEG_ANSWER : LEG_FAILED);
    event.text = buffer_str(&conversation->answer);
    event.number = conversation->failure;
    event.server_info = json_member(buffer_str(&conversation->session->initialized), "serverInfo");
    leg_send(conversation->worker, &event);
    conversation_end(conversation);
}

/* The answer to a request of a session that the server does not know (MCP 2025-11-25, transports:
 * 404; some say 400). It has no id of ours: the call was not looked at. */
static bool says_session_is_gone(const struct exchange_reply *reply)
{
    struct str id = json_member(reply->message, "id");
    if (json_type(id) == JSON_STRING || (reply->status != 404 && reply->status != 400))
        return false;
    return reply->status == 404 || memmem(reply->body.bytes, reply->body.length, "ession", 6);
}

static enum relay_failure failure_of(const struct exchange_reply *reply)
{
    if (reply->result != UPSTREAM_DONE)
        return relay_failure_of(reply->result);
    return reply->status >= 500 ? RELAY_STATUS_5XX : RELAY_UNREADABLE;
}

static bool is_refusal(const struct exchange_reply *reply)
{
    return reply->result == UPSTREAM_DONE && reply->status >= 400 && reply->status < 500 &&
           json_type(json_member(reply->message, "id")) != JSON_STRING;
}

static void expire(struct conversation *conversation)
{
    struct gateway_worker *worker = conversation->worker;
    const struct leg_event event = event_of(conversation, LEG_EXPIRED);
    log_info("A server has forgotten a session of modern clients",
             LOG_TEXT("source", conversation->session->source->id));
    conversation->session->is_lost = true;
    conversation_end(conversation);
    leg_send(worker, &event);
}

static void on_reply(void *context, const struct exchange_reply *reply)
{
    struct conversation *conversation = conversation_from(context);
    conversation->exchange = NULL;
    conversation->is_answered = true;
    if (reply->too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    if (conversation->leg[0] && says_session_is_gone(reply)) {
        expire(conversation);
        return;
    }
    if (conversation->leg[0] && is_refusal(reply)) {
        leg_send_http(conversation->worker, conversation->leg, reply);
        conversation_end(conversation);
        return;
    }
    buffer_append(&conversation->answer, reply->message);
    conversation->failure = failure_of(reply);
    if (conversation->leg[0])
        conversation_send_outcome(conversation);
}

/* ---- sending ---- */

static void send_call(struct conversation *conversation)
{
    static const struct exchange_events events = {.reply = on_reply,
                                                  .server_message = on_server_message};
    struct sending sending = legacy_session_sending(conversation->session);
    sending.headers = &conversation->headers;
    sending.body = buffer_str(&conversation->body);
    sending.id = buffer_str(&conversation->request_id);
    sending.silence_ms = conversation->silence_ms;
    sending.total_ms = 0;
    if (conversation->has_trace)
        sending.trace.parent = (struct span_parent){
            .context = &conversation->trace, .state = buffer_str(&conversation->trace_state)};
    sending.most_bytes = (size_t)conversation->snapshot->config->limits.result_bytes;
    conversation->exchange = exchange_send(conversation->worker, &sending, &events, conversation);
    buffer_finish(&conversation->body);
}

static void on_level(void *context, const struct exchange_reply *reply)
{
    struct conversation *conversation = conversation_from(context);
    conversation->exchange = NULL;
    if (json_member(reply->message, "result").length == 0)
        buffer_clear(&conversation->session->level); /* the next call tries again */
    send_call(conversation);
}

/* The level holds for the session, which the call has alone. */
static void set_level(struct conversation *conversation, struct str level)
{
    static const struct exchange_events events = {.reply = on_level};
    struct buffer params = {0}, body = {0}, id = {0};
    struct sending sending = legacy_session_sending(conversation->session);
    buffer_clear(&conversation->session->level);
    buffer_append(&conversation->session->level, level);
    buffer_append_format(&params, "{\"level\":%.*s}", STR_ARGS(level));
    exchange_write_request(&body, &id, "logging/setLevel", buffer_str(&params));
    sending.body = buffer_str(&body);
    sending.id = buffer_str(&id);
    conversation->exchange = exchange_send(conversation->worker, &sending, &events, conversation);
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
}

static bool needs_level(const struct legacy_session *session, struct str level)
{
    struct str logging = json_path(buffer_str(&session->initialized), "capabilities", "logging");
    return level.length > 0 && json_type(logging) == JSON_OBJECT &&
           !str_equal(buffer_str(&session->level), level);
}

static void take_headers(struct conversation *conversation, const struct call *call)
{
    struct headers borrowed;
    headers_init(&borrowed, false);
    headers_from_call(&borrowed, call);
    headers_init(&conversation->headers, true);
    headers_add_all(&conversation->headers, &borrowed);
    headers_finish(&borrowed);
}

/* A new id: two clients of one session may use the same. */
static void write_call(struct conversation *conversation, const struct call *call)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_append_format(&conversation->request_id, "\"tg:%s\"", uuid);
    legacy_server_write_request(&conversation->body, &call->envelope,
                                buffer_str(&conversation->request_id));
}

/* The call may be answered before it is sent. */
static void take_trace(struct conversation *conversation, const struct call *call)
{
    conversation->has_trace = call->span != NULL;
    if (!call->span)
        return;
    conversation->trace = *span_context(call->span);
    buffer_append(&conversation->trace_state, span_state(call->span));
}

static void on_unanswered(struct conversation *conversation)
{
    conversation_cancel(conversation, "the client has not answered");
}

void conversation_begin(struct call *call)
{
    struct conversation *conversation = memory_alloc(sizeof *conversation);
    struct str level = call->envelope.reserved.log_level;
    MAGIC_SET(conversation, CONVERSATION_MAGIC);
    conversation->worker = call->worker;
    conversation->snapshot = snapshot_ref(call->snapshot);
    conversation->session = session_pool_take(call);
    conversation->silence_ms = leg_options(call)->silence_ms;
    list_init(&conversation->held);
    conversation_questions_init(conversation, on_unanswered);
    list_append(&call->worker->conversations, &conversation->node);
    snprintf(conversation->leg, sizeof conversation->leg, "%s", leg_id(call));
    take_headers(conversation, call);
    take_trace(conversation, call);
    write_call(conversation, call);
    if (session_pool_may_be_asked(call))
        buffer_append(&conversation->declared, call->envelope.reserved.client_capabilities);
    if (conversation->session->is_alone) {
        conversation->session->listener = on_stray;
        conversation->session->listener_context = conversation;
    }
    if (needs_level(conversation->session, level))
        set_level(conversation, level);
    else
        send_call(conversation);
}
