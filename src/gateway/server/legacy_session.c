/* One session of the gateway's at a legacy server, for modern clients. */
#include "legacy_session.h"

#include <stdlib.h>

#include "call/call_span.h"
#include "service_session.h"
#include "state/quota.h"
#include "state/source_eras.h"
#include "state/tool_catalog.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_server.h"

#define OPENING_MS 10000
#define OPENING_MOST_BYTES ((size_t)256 * 1024)
#define STREAM_PATIENCE_MS 1000

/* ---- opening ---- */

static void conclude_opening(struct legacy_session *session, const struct rpc_call_reply *refusal)
{
    session->rpc = NULL;
    session->opened(session, refusal);
}

/* Its answer does not matter: a server that did not take the notification refuses the calls. */
static void on_initialized(void *context, const struct rpc_call_reply *reply)
{
    (void)reply;
    conclude_opening(legacy_session_from(context), NULL);
}

struct rpc_call_options legacy_session_options(const struct legacy_session *session)
{
    return (struct rpc_call_options){.source = session->source,
                                     .snapshot = session->snapshot,
                                     .headers = &session->headers,
                                     .silence_ms = OPENING_MS,
                                     .total_ms = OPENING_MS,
                                     .most_bytes = OPENING_MOST_BYTES};
}

static void take_opened(struct legacy_session *session, const struct rpc_call_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    struct str id = headers_find(reply->headers, "mcp-session-id");
    size_t length = 0;
    char *version = json_string_text(json_member(result, "protocolVersion"), &length);
    session->base.id = str_slice(memory_copy_str(id), id.length);
    session->base.version = str_slice(version, length);
    buffer_append(&session->initialized, result);
    headers_set_session(&session->headers, &session->base);
    source_eras_note(session->worker->gateway->eras, session->source, CONFIG_ERA_LEGACY, true,
                     clock_monotonic_ms());
}

/* Some servers refuse calls until they have read the notification, so they wait for its answer. */
static void on_opened(void *context, const struct rpc_call_reply *reply)
{
    static const struct rpc_call_callbacks callbacks = {.reply = on_initialized};
    struct legacy_session *session = legacy_session_from(context);
    if (json_type(json_member(reply->message, "result")) != JSON_OBJECT) {
        log_warn("A session for modern clients could not be opened",
                 LOG_TEXT("source", session->source->id), LOG_NUMBER("status", reply->status));
        conclude_opening(session, reply);
        return;
    }
    take_opened(session, reply);
    struct rpc_call_options options = legacy_session_options(session);
    options.body = service_session_initialized();
    session->rpc = rpc_call_start(session->worker, &options, &callbacks, session);
}

static void take_headers(struct legacy_session *session, const struct call *call)
{
    struct headers borrowed;
    headers_init(&borrowed, false);
    headers_from_call(&borrowed, call);
    headers_finish(&session->headers);
    headers_init(&session->headers, true);
    headers_add_all(&session->headers, &borrowed);
    headers_set_session(&session->headers, &session->base);
    headers_finish(&borrowed);
}

static void on_patience(void *context);

struct legacy_session *legacy_session_open(struct call *call,
                                           void (*opened)(struct legacy_session *session,
                                                          const struct rpc_call_reply *refusal))
{
    static const struct rpc_call_callbacks callbacks = {.reply = on_opened};
    struct legacy_session *session = memory_alloc(sizeof *session);
    struct buffer params = {0}, body = {0}, id = {0};
    MAGIC_SET(session, LEGACY_SESSION_MAGIC);
    session->worker = call->worker;
    session->snapshot = snapshot_ref(call->snapshot);
    session->source = call->source;
    session->opened = opened;
    list_append(&call->worker->legacy_sessions, &session->node); /* counted by the caller */
    loop_timer_init(&session->patience, call->worker->loop, on_patience, session);
    headers_init(&session->headers, true);
    take_headers(session, call);
    legacy_server_write_initialize(&params, call->envelope.reserved.client_capabilities,
                                   call->envelope.reserved.client_info);
    rpc_call_write_request(&body, &id, "initialize", buffer_str(&params));
    struct rpc_call_options options = legacy_session_options(session);
    options.body = buffer_str(&body);
    options.id = buffer_str(&id);
    options.trace.parent = call_span_parent(call);
    session->rpc = rpc_call_start(call->worker, &options, &callbacks, session);
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
    return session;
}

void legacy_session_renew(struct legacy_session *session, const struct call *call)
{
    take_headers(session, call);
}

/* ---- messages that belong to no call of the gateway's ---- */

void legacy_session_notify(struct legacy_session *session, struct str body)
{
    struct rpc_call_options options = legacy_session_options(session);
    options.body = body;
    rpc_call_notify(session->worker, &options);
}

void legacy_session_respond(struct legacy_session *session, struct str id, const char *member,
                            struct str value)
{
    struct buffer body;
    buffer_init(&body);
    buffer_append_text(&body, "{\"jsonrpc\":\"2.0\",\"id\":");
    buffer_append(&body, id);
    buffer_append_format(&body, ",\"%s\":", member);
    buffer_append(&body, value);
    buffer_append_char(&body, '}');
    legacy_session_notify(session, buffer_str(&body));
    buffer_finish(&body);
}

void legacy_session_answer_stray(struct legacy_session *session, struct str message)
{
    struct str id = json_member(message, "id"), method = json_member(message, "method");
    bool is_ping = json_string_equals(method, STR("ping"));
    if (json_string_equals(method, STR(MCP_TOOLS_CHANGED)))
        catalog_set_stale(session->worker->gateway->catalog, str_from(session->source->id));
    if (id.length == 0 ||
        !server_budget_take(&session->budget, is_ping ? SERVER_PING : SERVER_REQUEST,
                            clock_monotonic_ms()))
        return;
    if (is_ping) {
        legacy_session_respond(session, id, "result", STR("{}"));
        return;
    }
    log_warn("A server has asked something outside of any call of a modern client",
             LOG_TEXT("source", session->source->id));
    legacy_session_respond(session, id, "error",
                           STR("{\"code\":-32601,\"message\":\"Method not found\"}"));
}

/* ---- the GET stream ---- */

static void tell_stream(struct legacy_session *session)
{
    void (*known)(struct legacy_session *) = session->stream_known;
    loop_timer_stop(&session->patience);
    session->stream_known = NULL;
    if (known)
        known(session);
}

static void on_patience(void *context)
{
    tell_stream(legacy_session_from(context));
}

static void on_stream_head(void *context, int status, const struct headers *headers)
{
    struct legacy_session *session = legacy_session_from(context);
    bool is_open = status == 200 && headers_name_event_stream(headers);
    session->stream_state = is_open ? LEGACY_STREAM_OPEN : LEGACY_STREAM_REFUSED;
    catalog_note_stream(session->worker->gateway->catalog, session->source, status,
                        loop_now_ms(session->worker->loop));
    tell_stream(session);
}

static void on_stream_message(void *context, struct str message)
{
    struct legacy_session *session = legacy_session_from(context);
    if (session->listener)
        session->listener(session->listener_context, message);
    else
        legacy_session_answer_stray(session, message);
}

static void on_stream_end(void *context, const struct rpc_call_reply *reply)
{
    struct legacy_session *session = legacy_session_from(context);
    session->stream = NULL;
    if (session->stream_state == LEGACY_STREAM_ASKED)
        session->stream_state = reply->status > 0 ? LEGACY_STREAM_REFUSED : LEGACY_STREAM_UNTRIED;
    if (session->stream_known)
        tell_stream(session);
    else if (session->listener_ended)
        session->listener_ended(session->listener_context);
}

bool legacy_session_want_stream(struct legacy_session *session,
                                void (*known)(struct legacy_session *session))
{
    static const struct rpc_call_callbacks callbacks = {
        .reply = on_stream_end, .head = on_stream_head, .server_message = on_stream_message};
    if (catalog_lacks_stream(session->worker->gateway->catalog, session->source,
                             loop_now_ms(session->worker->loop)))
        session->stream_state = LEGACY_STREAM_REFUSED;
    if (session->stream || session->stream_state == LEGACY_STREAM_REFUSED)
        return false;
    struct rpc_call_options options = legacy_session_options(session);
    options.method = "GET";
    options.silence_ms = options.total_ms = 0;
    session->stream_state = LEGACY_STREAM_ASKED;
    session->stream_known = known;
    session->stream = rpc_call_start(session->worker, &options, &callbacks, session);
    loop_timer_start(&session->patience, STREAM_PATIENCE_MS);
    return true;
}

void legacy_session_close_stream(struct legacy_session *session)
{
    rpc_call_cancel(session->stream);
    session->stream = NULL;
}

/* ---- the end ---- */

void legacy_session_destroy(struct legacy_session *session)
{
    list_remove(&session->node);
    quota_give_back(session->worker->gateway->legacy_sessions, str_from(session->holder));
    loop_timer_stop(&session->patience);
    loop_timer_stop(&session->idle);
    rpc_call_cancel(session->rpc);
    rpc_call_cancel(session->stream);
    if (session->initialized.length > 0 && !session->is_lost)
        service_session_end(session->worker, session->snapshot, session->source, &session->headers);
    headers_finish(&session->headers);
    buffer_finish(&session->initialized);
    buffer_finish(&session->level);
    free((char *)(uintptr_t)session->base.id.bytes);
    free((char *)(uintptr_t)session->base.version.bytes);
    free(session->key);
    free(session->holder);
    snapshot_unref(session->snapshot);
    MAGIC_CLEAR(session);
    free(session);
}
