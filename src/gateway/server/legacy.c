/* One request at a server of the legacy era, in a session that the gateway has opened. */
#include "legacy.h"

#include <stdlib.h>
#include <string.h>

#include "sessions.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/legacy_text.h"
#include "taskgate/mcp/modern_text.h"

struct legacy_link {
    uint32_t magic; /* LEGACY_LINK_MAGIC */
    struct server_link *link;
    struct opened_session *session;
    struct exchange *exchange;  /* first the log level's, then the request's; NULL: has ended */
    struct buffer body;         /* of the request, until it is sent */
    struct buffer request_id;   /* JSON text of the id that the server sees */
    struct headers headers;     /* that the request is sent with */
    struct trace_context trace; /* of the call; with has_trace, as the next */
    struct buffer trace_state;
    bool has_trace;
    bool is_read; /* of a resource */
};
#define LEGACY_LINK_MAGIC 0x47574255

static struct legacy_link *legacy_link_from(void *context)
{
    return MAGIC_CAST(struct legacy_link, LEGACY_LINK_MAGIC, context);
}

static void emit(const struct legacy_link *own, const struct event *event)
{
    own->link->take(own->link->context, event);
}

/* ---- what the server says ---- */

static void link_take_request(struct legacy_link *own, struct str message)
{
    struct event event = {.kind = EVENT_QUESTION};
    OWNED_BUFFER(request);
    event.asked.kind = mcp_question_of(message);
    if (event.asked.kind == MCP_QUESTION_NONE) {
        opened_session_answer_stray(own->session, message);
        return;
    }
    if (!server_budget_take(&own->session->budget, SERVER_REQUEST, clock_monotonic_ms())) {
        log_warn("A server asks too much in a bridged call",
                 LOG_TEXT("source", own->link->source->id));
        return;
    }
    modern_text_write_question(&request, message);
    event.asked.id = json_member(message, "id");
    event.asked.request = buffer_str(&request);
    emit(own, &event);
}

/* What belongs to the request on whichever stream it comes. false: a notification. */
static bool take_asked(struct legacy_link *own, struct str message)
{
    struct event withdrawn = {.kind = EVENT_WITHDRAWN};
    if (json_member(message, "id").length > 0) {
        link_take_request(own, message);
        return true;
    }
    if (!json_string_equals(json_member(message, "method"), STR(MCP_CANCELLED)))
        return false;
    withdrawn.asked.id = json_path(message, "params", "requestId");
    emit(own, &withdrawn);
    return true;
}

static void link_on_message(void *context, struct str message)
{
    struct legacy_link *own = legacy_link_from(context);
    struct str method = json_member(message, "method");
    struct event event = {.kind = EVENT_NOTICE};
    OWNED_BUFFER(text);
    if (take_asked(own, message))
        return;
    if (json_string_equals(method, STR(MCP_TOOLS_CHANGED))) {
        opened_session_answer_stray(own->session, message);
        return;
    }
    if (json_string_equals(method, STR(MCP_PROGRESS)))
        event.kind = EVENT_PROGRESS;
    else if (json_string_equals(method, STR(MCP_LOG_MESSAGE)))
        event.kind = EVENT_LOG;
    mcp_write_bare_notification(&text, message);
    event.text = buffer_str(&text);
    emit(own, &event);
}

/* On the session's own stream. A question there belongs to the one request that has the session;
 * notifications there belong to none. */
static void on_stray(void *context, struct str message)
{
    struct legacy_link *own = legacy_link_from(context);
    if (!take_asked(own, message))
        opened_session_answer_stray(own->session, message);
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

static bool link_is_refusal(const struct exchange_reply *reply)
{
    return reply->result == UPSTREAM_DONE && reply->status >= 400 && reply->status < 500 &&
           json_type(json_member(reply->message, "id")) != JSON_STRING;
}

static enum event_kind link_kind_of(const struct exchange_reply *reply, struct str result,
                                    struct str error)
{
    if (says_session_is_gone(reply))
        return EVENT_LOST;
    if (link_is_refusal(reply))
        return EVENT_REFUSED;
    if (json_type(result) == JSON_OBJECT)
        return EVENT_RESULT;
    return result.length == 0 && json_type(error) == JSON_OBJECT ? EVENT_ERROR : EVENT_LOST;
}

static enum lost_reason why_lost(const struct exchange_reply *reply)
{
    if (says_session_is_gone(reply))
        return LOST_FORGOTTEN;
    if (reply->message.length > 0)
        return LOST_UNREADABLE; /* it is neither a result nor an error */
    if (reply->result != UPSTREAM_DONE)
        return lost_reason_of(reply->result);
    return reply->status >= 500 ? LOST_STATUS_5XX : LOST_UNREADABLE;
}

static void link_on_reply(void *context, const struct exchange_reply *reply)
{
    struct legacy_link *own = legacy_link_from(context);
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
    struct event event = {.kind = link_kind_of(reply, result, error), .reply = reply};
    OWNED_BUFFER(mapped);
    OWNED_BUFFER(required);
    own->exchange = NULL;
    if (reply->too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    if (event.kind == EVENT_RESULT) {
        event.text = result;
        event.server_info = json_member(buffer_str(&own->session->initialized), "serverInfo");
    } else if (json_type(error) == JSON_OBJECT) {
        modern_text_write_error(&mapped, error, own->is_read);
        modern_text_write_urls(&required, error);
        event.text = buffer_str(&mapped);
        event.required = buffer_str(&required);
    }
    if (event.kind == EVENT_LOST)
        event.lost = why_lost(reply);
    if (event.kind == EVENT_LOST && event.lost == LOST_FORGOTTEN) {
        log_info("A server has forgotten a session of modern clients",
                 LOG_TEXT("source", own->link->source->id));
        own->session->is_lost = true;
    }
    emit(own, &event);
}

/* ---- sending ---- */

static void link_send_request(struct legacy_link *own)
{
    static const struct exchange_events events = {.reply = link_on_reply,
                                                  .server_message = link_on_message};
    const struct server_link *link = own->link;
    struct sending sending = opened_session_sending(own->session);
    sending.headers = &own->headers;
    sending.body = buffer_str(&own->body);
    sending.id = buffer_str(&own->request_id);
    sending.silence_ms = link->silence_ms;
    sending.total_ms = 0;
    if (own->has_trace)
        sending.trace.parent =
            (struct span_parent){.context = &own->trace, .state = buffer_str(&own->trace_state)};
    sending.most_bytes = link->most_bytes;
    own->exchange = exchange_send(link->worker, &sending, &events, own);
    buffer_finish(&own->body);
}

static void on_level(void *context, const struct exchange_reply *reply)
{
    struct legacy_link *own = legacy_link_from(context);
    own->exchange = NULL;
    if (json_member(reply->message, "result").length == 0)
        buffer_clear(&own->session->level); /* the next call tries again */
    link_send_request(own);
}

/* The level holds for the session, which the call has alone. */
static void link_set_level(struct legacy_link *own, struct str level)
{
    static const struct exchange_events events = {.reply = on_level};
    OWNED_BUFFER(params);
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    struct sending sending = opened_session_sending(own->session);
    ASSERT(own->session->is_alone);
    buffer_clear(&own->session->level);
    buffer_append(&own->session->level, level);
    buffer_append_format(&params, "{\"level\":%.*s}", STR_ARGS(level));
    exchange_write_request(&body, &id, "logging/setLevel", buffer_str(&params));
    sending.body = buffer_str(&body);
    sending.id = buffer_str(&id);
    own->exchange = exchange_send(own->link->worker, &sending, &events, own);
}

static bool needs_level(const struct opened_session *session, struct str level)
{
    struct str logging = json_path(buffer_str(&session->initialized), "capabilities", "logging");
    return level.length > 0 && json_type(logging) == JSON_OBJECT &&
           !str_equal(buffer_str(&session->level), level);
}

static void link_take_headers(struct legacy_link *own, const struct call *call)
{
    struct headers borrowed;
    headers_init(&borrowed, false);
    headers_from_call(&borrowed, call);
    headers_init(&own->headers, true);
    headers_add_all(&own->headers, &borrowed);
    headers_finish(&borrowed);
}

/* A new id: two clients of one session may use the same. */
static void link_write_request(struct legacy_link *own, const struct call *call)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_append_format(&own->request_id, "\"tg:%s\"", uuid);
    legacy_text_write_request(&own->body, &call->envelope, buffer_str(&own->request_id));
}

/* The call may be answered before it is sent. */
static void take_trace(struct legacy_link *own, const struct call *call)
{
    own->has_trace = call->span != NULL;
    if (!call->span)
        return;
    own->trace = *span_context(call->span);
    buffer_append(&own->trace_state, span_state(call->span));
}

static void legacy_begin(struct server_link *link, struct call *call)
{
    struct str level = call->envelope.reserved.log_level;
    struct legacy_link *own = memory_alloc(sizeof *own);
    ASSERT(!link->own);
    MAGIC_SET(own, LEGACY_LINK_MAGIC);
    own->link = link;
    link->own = own;
    link_take_headers(own, call);
    take_trace(own, call);
    link_write_request(own, call);
    own->is_read = call->method->treatment == MCP_GATED_URI;
    own->session = session_pool_take(call);
    if (own->session->is_alone) {
        own->session->listener = on_stray;
        own->session->listener_context = own;
    }
    if (needs_level(own->session, level))
        link_set_level(own, level);
    else
        link_send_request(own);
}

/* ---- answers, and the end ---- */

static void legacy_answer(struct server_link *link, struct str asked_id,
                          const struct answer *answer)
{
    struct opened_session *session = legacy_link_from(link->own)->session;
    bool is_elicitation =
        answer->question == MCP_QUESTION_FORM || answer->question == MCP_QUESTION_URL;
    if (answer->kind == ANSWER_RESULT)
        opened_session_respond(session, asked_id, "result", answer->result);
    else if (answer->kind == ANSWER_UNABLE)
        opened_session_respond(session, asked_id, "error",
                               STR("{\"code\":-32601,\"message\":\"Method not found\"}"));
    else if (answer->kind == ANSWER_TOO_MANY)
        opened_session_respond(
            session, asked_id, "error",
            STR("{\"code\":-32603,\"message\":\"Too many questions in one call\"}"));
    else if (is_elicitation)
        opened_session_respond(session, asked_id, "result", STR("{\"action\":\"cancel\"}"));
    else
        opened_session_respond(
            session, asked_id, "error",
            STR("{\"code\":-32603,\"message\":\"The client has not answered\"}"));
}

static void legacy_server_set_silence(struct server_link *link, int64_t silence_ms)
{
    const struct legacy_link *own = legacy_link_from(link->own);
    ASSERT(own->exchange);
    exchange_set_silence(own->exchange, silence_ms);
}

/* The server may go on with the call for a while, and ask something: nobody else gets its session.
 */
static void legacy_cancel(struct server_link *link, const char *reason)
{
    struct legacy_link *own = legacy_link_from(link->own);
    OWNED_BUFFER(body);
    if (!own->exchange)
        return;
    jsonrpc_write_cancelled(&body, buffer_str(&own->request_id), reason);
    opened_session_notify(own->session, buffer_str(&body));
    if (own->session->is_alone)
        session_pool_retire(own->session);
}

static void legacy_release(struct server_link *link)
{
    struct legacy_link *own = legacy_link_from(link->own);
    struct opened_session *session = own->session;
    link->own = NULL;
    exchange_abandon(own->exchange);
    buffer_finish(&own->body);
    buffer_finish(&own->request_id);
    buffer_finish(&own->trace_state);
    headers_finish(&own->headers);
    MAGIC_CLEAR(own);
    free(own);
    session_pool_give_back(session);
}

static void legacy_describe(struct call *call, struct buffer *out)
{
    struct opened_session *session = session_pool_of(call);
    modern_text_write_discover(out, buffer_str(&session->initialized),
                               session->stream_state == SESSION_STREAM_OPEN);
    opened_session_close_stream(session);
}

const struct server_protocol server_legacy = {
    .name = "legacy",
    .obtain = session_pool_then,
    .describe = legacy_describe,
    .begin = legacy_begin,
    .answer = legacy_answer,
    .set_silence = legacy_server_set_silence,
    .cancel = legacy_cancel,
    .release = legacy_release,
};
