/* One request at a server of the legacy era: in a session that the gateway has leased or opened, or
 * in its client's; and the task that the server makes of it. */
#include <stdlib.h>
#include <string.h>

#include "own.h"
#include "protocol.h"
#include "sessions.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/legacy_text.h"
#include "taskgate/mcp/modern_text.h"

struct legacy_link {
    uint32_t magic; /* LEGACY_LINK_MAGIC */
    struct server_link *link;
    struct opened_session *session; /* NULL: the request has its client's */
    bool is_translated; /* its client is of the other era, and is asked what the server asks */
    bool asks_for_task; /* the server may make a task of it */
    struct buffer body; /* of the request, until it is sent */
    struct buffer request_id;   /* JSON text of the id that the server sees */
    struct headers headers;     /* that the request is sent with */
    struct trace_context trace; /* of a call; with has_trace, as the next */
    struct buffer trace_state;
    struct buffer level; /* JSON text of the log level that the request wants, or empty */
    bool has_trace;
    bool is_read; /* of a resource */
};
#define LEGACY_LINK_MAGIC 0x47574255

static struct legacy_link *legacy_link_from(void *context)
{
    return MAGIC_CAST(struct legacy_link, LEGACY_LINK_MAGIC, context);
}

static struct legacy_link *legacy_own(struct server_link *link)
{
    struct legacy_link *own = link->own;
    if (own)
        return legacy_link_from(own);
    own = memory_alloc(sizeof *own);
    MAGIC_SET(own, LEGACY_LINK_MAGIC);
    own->link = link;
    link->own = own;
    headers_init(&own->headers, true);
    return own;
}

/* ---- what the server says ---- */

static void legacy_take_question(struct legacy_link *own, struct str message,
                                 enum mcp_question kind)
{
    struct event event = {.kind = EVENT_QUESTION, .asked.kind = kind};
    OWNED_BUFFER(request);
    if (!server_budget_take(&own->session->budget, SERVER_REQUEST, clock_monotonic_ms())) {
        log_warn("A server asks too much in one call",
                 LOG_TEXT("source", own->session->source->id));
        return;
    }
    modern_text_write_question(&request, message);
    event.asked.id = json_member(message, "id");
    event.asked.request = buffer_str(&request);
    server_link_report(own->link, &event);
}

/* What belongs to the request on whichever stream it comes. false: something else. */
static bool take_asked(struct legacy_link *own, struct str message)
{
    struct event withdrawn = {.kind = EVENT_WITHDRAWN};
    bool is_request = json_member(message, "id").length > 0;
    enum mcp_question kind = is_request ? mcp_question_of(message) : MCP_QUESTION_NONE;
    if (!own->is_translated)
        return false;
    if (kind != MCP_QUESTION_NONE) {
        legacy_take_question(own, message, kind);
        return true;
    }
    if (is_request || !json_string_equals(json_member(message, "method"), STR(MCP_CANCELLED)))
        return false;
    withdrawn.asked.id = json_path(message, "params", "requestId");
    server_link_report(own->link, &withdrawn);
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
    if (own->link->maker) {
        server_link_report(own->link, &(struct event){.kind = EVENT_MESSAGE, .text = message});
        return;
    }
    if (json_member(message, "id").length > 0 ||
        json_string_equals(method, STR(MCP_TOOLS_CHANGED))) {
        opened_session_answer_stray(own->session, message);
        return;
    }
    if (json_string_equals(method, STR(MCP_PROGRESS)))
        event.kind = EVENT_PROGRESS;
    else if (json_string_equals(method, STR(MCP_LOG_MESSAGE)))
        event.kind = EVENT_LOG;
    mcp_write_bare_notification(&text, message);
    event.text = buffer_str(&text);
    server_link_report(own->link, &event);
}

/* On the session's own stream. A question there belongs to the one request that has the session;
 * notifications there belong to none. */
static void on_stray(void *context, struct str message)
{
    struct legacy_link *own = legacy_link_from(context);
    if (take_asked(own, message))
        return;
    if (!own->link->maker)
        opened_session_answer_stray(own->session, message);
    else if (json_member(message, "id").length > 0)
        server_link_report(own->link, &(struct event){.kind = EVENT_MESSAGE, .text = message});
}

/* ---- its last answer ---- */

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

static enum event_kind link_kind_of(const struct exchange_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
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

/* The client of the request is of the other era. */
static void end_translated(struct legacy_link *own, enum event_kind kind,
                           const struct exchange_reply *reply)
{
    struct str error = json_member(reply->message, "error");
    struct event event = {.kind = kind, .reply = reply};
    OWNED_BUFFER(mapped);
    OWNED_BUFFER(required);
    if (event.kind == EVENT_RESULT) {
        event.text = json_member(reply->message, "result");
        event.server_info = json_member(buffer_str(&own->session->initialized), "serverInfo");
    } else if (json_type(error) == JSON_OBJECT) {
        modern_text_write_error(&mapped, error, own->is_read);
        modern_text_write_urls(&required, error);
        event.text = buffer_str(&mapped);
        event.required = buffer_str(&required);
    }
    if (event.kind == EVENT_LOST)
        event.lost = why_lost(reply);
    if (event.kind == EVENT_LOST && event.lost == LOST_FORGOTTEN && !own->link->maker) {
        ASSERT(own->session);
        log_info("A server has forgotten a session of modern clients",
                 LOG_TEXT("source", own->link->source->id));
        own->session->is_lost = true;
    }
    server_link_end(own->link, &event);
}

static void link_end_with(struct legacy_link *own, const struct exchange_reply *reply)
{
    own->link->exchange = NULL;
    if (own->is_translated)
        end_translated(own, link_kind_of(reply), reply);
    else
        server_link_end_with(own->link, reply);
}

static bool legacy_follow(struct legacy_link *own, struct str task);

static void link_on_reply(void *context, const struct exchange_reply *reply)
{
    struct legacy_link *own = legacy_link_from(context);
    struct server_link *link = own->link;
    ASSERT(link->state == LINK_SENT);
    link->exchange = NULL;
    if (!link->maker && reply->too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    if (!own->session && exchange_reply_forgets_session(reply, &own->headers))
        server_link_end(
            link, &(struct event){.kind = EVENT_LOST, .lost = LOST_FORGOTTEN, .reply = reply});
    else if (!own->asks_for_task ||
             !legacy_follow(own, json_path(reply->message, "result", "task")))
        link_end_with(own, reply);
}

/* ---- sending ---- */

/* Of a link without a maker. */
static struct sending sending_of_call(const struct legacy_link *own)
{
    struct sending sending = opened_session_sending(own->session);
    sending.silence_ms = own->link->silence_ms;
    sending.total_ms = 0;
    if (own->has_trace)
        sending.trace.parent =
            (struct span_parent){.context = &own->trace, .state = buffer_str(&own->trace_state)};
    sending.most_bytes = own->link->most_bytes;
    return sending;
}

static void send_message(struct legacy_link *own, struct str body, struct str id,
                         void (*on_reply)(void *context, const struct exchange_reply *reply))
{
    const struct exchange_events events = {.reply = on_reply, .server_message = link_on_message};
    struct server_link *link = own->link;
    struct task_trace trace;
    struct sending sending =
        link->maker ? link->maker->sending(link, &trace) : sending_of_call(own);
    sending.headers = &own->headers;
    sending.body = body;
    sending.id = id;
    if (link->exchange)
        exchange_read_messages(link->exchange, &sending, &events, own);
    else
        link->exchange = exchange_send(link->worker, &sending, &events, own);
}

static void link_send_request(struct legacy_link *own)
{
    send_message(own, buffer_str(&own->body), buffer_str(&own->request_id), link_on_reply);
    buffer_finish(&own->body);
}

static void on_level(void *context, const struct exchange_reply *reply)
{
    struct legacy_link *own = legacy_link_from(context);
    own->link->exchange = NULL;
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
    own->link->exchange = exchange_send(own->link->worker, &sending, &events, own);
}

static bool needs_level(const struct opened_session *session, struct str level)
{
    struct str logging = json_path(buffer_str(&session->initialized), "capabilities", "logging");
    return level.length > 0 && json_type(logging) == JSON_OBJECT &&
           !str_equal(buffer_str(&session->level), level);
}

/* A new id: two clients of one session may use the same. */
static void link_write_request(struct legacy_link *own, const struct call *call)
{
    server_write_id(&own->request_id);
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

static void legacy_attach(struct server_link *link, struct call *call)
{
    ASSERT(!link->own && !link->maker);
    struct legacy_link *own = legacy_own(link);
    headers_from_call(&own->headers, call);
    take_trace(own, call);
    link_write_request(own, call);
    own->is_translated = true;
    own->is_read = call->method->treatment == MCP_GATED_URI;
    buffer_append(&own->level, call->envelope.reserved.log_level);
    own->session = session_pool_take(call);
    if (own->session->is_alone) {
        own->session->listener = on_stray;
        own->session->listener_context = own;
    }
}

/* What the maker writes, with the headers of the session that was opened for it. */
static void legacy_write_kept(struct legacy_link *own)
{
    struct server_link *link = own->link;
    ASSERT(own->request_id.length == 0 && own->headers.count == 0);
    link->maker->write(link, &own->headers, &own->body, &own->request_id);
    if (own->session)
        headers_set_session(&own->headers, &own->session->base);
    own->asks_for_task =
        link->maker->request && json_path(buffer_str(&own->body), "params", "task").length > 0;
    link->headers = &own->headers;
}

static void legacy_begin(struct server_link *link)
{
    struct legacy_link *own = legacy_own(link);
    ASSERT(link->state == LINK_NEW);
    ASSERT(own->session || !own->is_translated);
    ASSERT(!link->exchange || link->maker);
    if (link->maker)
        legacy_write_kept(own);
    link->state = LINK_SENT;
    if (own->session && needs_level(own->session, buffer_str(&own->level)))
        link_set_level(own, buffer_str(&own->level));
    else
        link_send_request(own);
}

/* ---- a session for one request ---- */

static void report_opened(struct opened_session *session)
{
    const struct legacy_link *own = legacy_link_from(session->listener_context);
    ASSERT(own->link->state == LINK_OPENING);
    own->link->state = LINK_NEW;
    server_link_report(own->link, &(struct event){.kind = EVENT_OPENED});
}

/* The client declares in each request what it can be asked. */
static bool may_be_asked(const struct legacy_link *own)
{
    OWNED_ENVELOPE(envelope);
    if (!own->is_translated)
        return false;
    envelope_read(&envelope, own->link->maker->request(own->link), NULL);
    return mcp_may_ask_any(envelope.reserved.client_capabilities);
}

/* Servers built with the official SDK ask on the session's stream, and not in the call. */
static void link_on_opened(struct opened_session *session, const struct exchange_reply *refusal)
{
    struct legacy_link *own = legacy_link_from(session->listener_context);
    ASSERT(session == own->session);
    if (refusal) {
        own->session = NULL;
        opened_session_destroy(session);
        if (own->is_translated)
            end_translated(own, EVENT_UNOPENED, refusal);
        else
            server_link_end(own->link,
                            &(struct event){.kind = EVENT_UNOPENED,
                                            .text = json_member(refusal->message, "error"),
                                            .reply = refusal});
        return;
    }
    session->listener = on_stray;
    if (!may_be_asked(own) || !opened_session_want_stream(session, report_opened))
        report_opened(session);
}

static void write_opening(const struct legacy_link *own, struct buffer *params)
{
    OWNED_ENVELOPE(envelope);
    if (!own->is_translated) {
        buffer_append(params, service_session_params());
        return;
    }
    envelope_read(&envelope, own->link->maker->request(own->link), NULL);
    legacy_text_write_initialize(params, envelope.reserved.client_capabilities,
                                 envelope.reserved.client_info);
}

static void legacy_open(struct server_link *link, bool for_client)
{
    struct task_trace trace;
    const struct sending sending = link->maker->sending(link, &trace);
    OWNED_BUFFER(params);
    ASSERT(link->state == LINK_NEW && !link->own);
    struct legacy_link *own = legacy_own(link);
    own->is_translated = for_client;
    write_opening(own, &params);
    const struct session_opening opening = {.worker = link->worker,
                                            .snapshot = sending.snapshot,
                                            .source = sending.source,
                                            .headers = sending.headers,
                                            .params = buffer_str(&params),
                                            .trace = sending.trace,
                                            .limit_ms = sending.silence_ms,
                                            .most_bytes = sending.most_bytes,
                                            .opened = link_on_opened,
                                            .context = own};
    own->session = opened_session_begin(&opening);
    own->session->is_alone = true;
    link->state = LINK_OPENING;
}

/* ---- a task of the server's own: created, looked at, and its result fetched ---- */

static void legacy_write_of_task(const struct legacy_link *own, const char *method,
                                 struct buffer *body, struct buffer *id)
{
    OWNED_BUFFER(params);
    buffer_append_text(&params, "{\"taskId\":");
    buffer_append_json_string(&params, str_from(own->link->task));
    buffer_append_char(&params, '}');
    exchange_write_request(body, id, method, buffer_str(&params));
}

static void ask_of_task(struct legacy_link *own, const char *method,
                        void (*on_reply)(void *context, const struct exchange_reply *reply))
{
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    ASSERT(own->link->state == LINK_FOLLOWING && !own->link->exchange);
    legacy_write_of_task(own, method, &body, &id);
    send_message(own, buffer_str(&body), buffer_str(&id), on_reply);
}

static void on_task_result(void *context, const struct exchange_reply *reply)
{
    link_end_with(legacy_link_from(context), reply);
}

static void on_task_poll(void *context);

static void on_task_status(void *context, const struct exchange_reply *reply)
{
    struct legacy_link *own = legacy_link_from(context);
    struct str task = json_member(reply->message, "result");
    own->link->exchange = NULL;
    if (task.length == 0)
        link_end_with(own, reply); /* an error or no answer is the call's outcome */
    else if (json_string_equals(json_member(task, "status"), STR("working")))
        server_link_look_later(own->link, json_member(task, "pollInterval"), on_task_poll, own);
    else /* the task has ended or asks something; tasks/result brings its answer */
        ask_of_task(own, "tasks/result", on_task_result);
}

static void on_task_poll(void *context)
{
    ask_of_task(legacy_link_from(context), "tasks/get", on_task_status);
}

/* false: there is none; an immediate result is acceptable, too. */
static bool legacy_follow(struct legacy_link *own, struct str task)
{
    char *id = json_string_text(json_member(task, "taskId"), NULL);
    if (id)
        server_link_follow(own->link, id, json_member(task, "pollInterval"), on_task_poll, own);
    return id;
}

/* ---- answers, and the end ---- */

static void legacy_answer(struct server_link *link, struct str asked_id,
                          const struct answer *answer)
{
    static const char *const errors[] = {
        [ANSWER_NONE] = "{\"code\":-32603,\"message\":\"The client has not answered\"}",
        [ANSWER_UNABLE] = "{\"code\":-32601,\"message\":\"Method not found\"}",
        [ANSWER_TOO_MANY] = "{\"code\":-32603,\"message\":\"Too many questions in one call\"}",
    };
    struct opened_session *session = legacy_link_from(link->own)->session;
    bool is_elicitation =
        answer->question == MCP_QUESTION_FORM || answer->question == MCP_QUESTION_URL;
    if (answer->kind == ANSWER_RESULT)
        opened_session_respond(session, asked_id, "result", answer->result);
    else if (answer->kind == ANSWER_NONE && is_elicitation)
        opened_session_respond(session, asked_id, "result", STR("{\"action\":\"cancel\"}"));
    else
        opened_session_respond(session, asked_id, "error", str_from(errors[answer->kind]));
}

/* The server may go on with the call for a while, and ask something: nobody else gets its session.
 */
static void say_last(struct legacy_link *own, struct str body, struct str id)
{
    if (own->session && own->session->is_alone) {
        opened_session_leave(own->session, body, id);
        own->session = NULL;
    } else if (own->session) {
        opened_session_notify(own->session, body);
    } else {
        server_link_notify(own->link, &own->headers, body, id);
    }
}

static void legacy_cancel(struct server_link *link, const char *reason)
{
    struct legacy_link *own = link->own;
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    if (link->state == LINK_FOLLOWING)
        legacy_write_of_task(own, "tasks/cancel", &body, &id);
    else if (link->state == LINK_SENT)
        jsonrpc_write_cancelled(&body, buffer_str(&own->request_id), reason);
    else
        return;
    say_last(own, buffer_str(&body), buffer_str(&id));
}

static void legacy_release(struct server_link *link)
{
    struct legacy_link *own = link->own;
    bool was_opening = link->state == LINK_OPENING;
    server_link_clear(link);
    link->own = NULL;
    if (!own)
        return;
    struct opened_session *session = legacy_link_from(own)->session;
    buffer_finish(&own->body);
    buffer_finish(&own->request_id);
    buffer_finish(&own->trace_state);
    buffer_finish(&own->level);
    headers_finish(&own->headers);
    MAGIC_CLEAR(own);
    free(own);
    if (session && was_opening)
        opened_session_destroy(session);
    else if (session)
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
    .has_sessions = true,
    .obtain = session_pool_then,
    .describe = legacy_describe,
    .attach = legacy_attach,
    .open = legacy_open,
    .translate = legacy_text_write_request,
    .begin = legacy_begin,
    .answer = legacy_answer,
    .set_silence = server_link_set_silence,
    .cancel = legacy_cancel,
    .release = legacy_release,
};
