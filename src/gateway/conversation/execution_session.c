/* Calls of those that have no session at the server: of the control plane, with the source's static
 * headers; of modern clients at a legacy server, with the owner's; and of clients whose session is
 * not known here, or which the server has forgotten, with the owner's, too. Each call gets a
 * session of its own. */
#include <stdlib.h>

#include "execute_internal.h"
#include "server/own.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_server.h"
#include "taskgate/mcp/question.h"

#define STREAM_PATIENCE_MS 1000
#define LAST_WORD_MS 10000
#define LAST_WORD_BYTES 65536

/* ---- the stream on which the server may ask ---- */

/* It was opened, or there is none: its answer shows whether the server took the notification. */
static void send_after_stream(struct execution *execution)
{
    if (!execution->waits_for_stream)
        return;
    execution->waits_for_stream = false;
    loop_timer_stop(&execution->base.timer);
    execution_send(execution);
}

static void on_patience(void *context)
{
    send_after_stream(execution_from(context));
}

static void on_stream_head(void *context, const struct exchange_head *head)
{
    struct execution *execution = execution_from(context);
    const struct invocation *base = &execution->base;
    catalog_note_stream(base->worker->gateway->catalog, base->source, head->status,
                        loop_now_ms(base->worker->loop));
    send_after_stream(execution);
}

static void on_stream_end(void *context, const struct exchange_reply *reply)
{
    struct execution *execution = execution_from(context);
    (void)reply;
    execution->stream = NULL;
    send_after_stream(execution);
}

/* Notifications there belong to no call. */
static void on_stream_message(void *context, struct str message)
{
    struct execution *execution = execution_from(context);
    if (!execution_asks_take(execution, message) && json_member(message, "id").length > 0)
        execution_server_message(execution, message);
}

static bool may_be_asked(const struct execution *execution)
{
    const struct task *task = execution->base.task;
    struct envelope envelope;
    if (!execution->is_bridged_down)
        return false;
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    bool may = mcp_may_ask_any(envelope.reserved.client_capabilities);
    envelope_finish(&envelope);
    return may;
}

/* Servers built with the official SDK ask there, and not in the call. */
static void open_stream(struct execution *execution)
{
    static const struct exchange_events events = {
        .reply = on_stream_end, .head = on_stream_head, .server_message = on_stream_message};
    struct invocation *base = &execution->base;
    struct sending sending = invocation_sending(base);
    sending.method = "GET";
    sending.most_bytes = (size_t)base->snapshot->config->limits.result_bytes;
    execution->waits_for_stream = true;
    loop_timer_start_with(&base->timer, on_patience, execution, STREAM_PATIENCE_MS);
    execution->stream = exchange_send(base->worker, &sending, &events, execution);
}

/* ---- opening ---- */

static bool lacks_stream(const struct execution *execution)
{
    const struct invocation *base = &execution->base;
    return catalog_lacks_stream(base->worker->gateway->catalog, base->source,
                                loop_now_ms(base->worker->loop));
}

static void on_initialized(void *context, const struct exchange_reply *reply)
{
    struct execution *execution = execution_from(context);
    execution->base.exchange = NULL;
    if (may_be_asked(execution) && !lacks_stream(execution))
        open_stream(execution);
    else
        execution_send(execution); /* its answer shows whether the server took the notification */
}

/* Some servers refuse calls until they have read the notification, so the call waits for its
 * answer. */
static void say_initialized(struct execution *execution)
{
    static const struct exchange_events events = {.reply = on_initialized};
    execution_ask(execution, service_session_initialized(), STR_EMPTY, &events);
}

static void on_opened(void *context, const struct exchange_reply *reply)
{
    static const char not_sent[] =
        "the gateway's own session could not be opened; nothing was sent";
    struct execution *execution = execution_from(context);
    bool is_refusal = reply->status == 401 || reply->status == 403 || reply->status == 404;
    execution->base.exchange = NULL;
    if (json_member(reply->message, "result").length > 0) {
        service_session_opened(&execution->base.headers, reply);
        say_initialized(execution);
    } else if (is_refusal || json_member(reply->message, "error").length > 0) {
        execution_answered(execution, reply);
    } else if (reply->result == UPSTREAM_SILENT) {
        execution_fail(execution, JSONRPC_UPSTREAM_TIMEOUT, not_sent);
    } else if (reply->status > 0) {
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR, not_sent);
    } else {
        execution_fail(execution, JSONRPC_UPSTREAM_FAILED, not_sent);
    }
}

bool execution_session_is_needed(const struct execution *execution)
{
    bool is_modern = execution->base.task && execution_is_modern(execution);
    return (execution->own_session && !is_modern) || execution->is_bridged_down ||
           execution->lacks_session;
}

/* The client declares in each call what it can be asked. */
static void write_bridged_params(struct execution *execution, struct buffer *params)
{
    const struct task *task = execution->base.task;
    struct envelope envelope;
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    legacy_server_write_initialize(params, envelope.reserved.client_capabilities,
                                   envelope.reserved.client_info);
    envelope_finish(&envelope);
}

void execution_session_open(struct execution *execution)
{
    static const struct exchange_events events = {.reply = on_opened};
    struct buffer params = {0}, body = {0}, id = {0};
    if (execution->own_session) {
        headers_finish(&execution->base.headers);
        service_session_begin(&execution->base.headers, execution->base.source);
    } else {
        headers_set_session(&execution->base.headers, NULL);
    }
    if (execution->is_bridged_down)
        write_bridged_params(execution, &params);
    else
        buffer_append(&params, service_session_params());
    exchange_write_request(&body, &id, "initialize", buffer_str(&params));
    execution_ask(execution, buffer_str(&body), buffer_str(&id), &events);
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
}

/* The server's questions would come in a session that the client does not know: it is not declared
 * that any can be asked. A later request of the call, as of a task of the server's, belongs to the
 * session that has gone. */
bool execution_session_reopens(struct execution *execution, const struct exchange_reply *reply)
{
    struct invocation *base = &execution->base;
    bool is_first = conversation_where(base) == CONVERSATION_RUNNING && !base->server_task &&
                    !base->rounds.is_conversation;
    if (!is_first || execution_session_is_needed(execution) ||
        !exchange_reply_forgets_session(reply, &base->headers))
        return false;
    log_info("The server has forgotten the session of an approved call; it runs in a new one",
             LOG_TEXT("task", base->id));
    buffer_clear(&base->request_id);
    execution->lacks_session = true;
    execution_session_open(execution);
    return true;
}

void execution_session_close(struct execution *execution)
{
    exchange_abandon(execution->stream);
    execution->stream = NULL;
    execution->waits_for_stream = false;
    if (execution->base.source)
        service_session_end(execution->base.worker, execution->base.snapshot,
                            execution->base.source, &execution->base.headers);
    if (execution->own_session)
        headers_finish(&execution->base.headers);
    else
        headers_drop(&execution->base.headers, HTTP_NAME_OF_SESSION);
}

/* ---- a last message ---- */

/* The state that closes the session after the execution has been freed. */
struct farewell {
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source;
    struct headers headers;
};

static void drop_farewell(void *context)
{
    struct farewell *farewell = context;
    headers_finish(&farewell->headers);
    snapshot_unref(farewell->snapshot);
    free(farewell);
}

static void on_said(void *context, const struct exchange_reply *reply)
{
    struct farewell *farewell = context;
    service_session_end(farewell->worker, farewell->snapshot, farewell->source, &farewell->headers);
    drop_farewell(farewell);
}

void execution_session_say_last(struct execution *execution, const struct sending *sending)
{
    static const struct exchange_events events = {.reply = on_said, .dropped = drop_farewell};
    struct farewell *farewell = memory_alloc(sizeof *farewell);
    *farewell = (struct farewell){
        .worker = execution->base.worker,
        .snapshot = snapshot_ref(execution->base.snapshot),
        .source = execution->base.source,
        .headers = execution->base.headers,
    };
    headers_init(&execution->base.headers, true); /* given away */
    struct sending bounded = *sending;
    bounded.headers = &farewell->headers;
    bounded.total_ms = LAST_WORD_MS;
    bounded.most_bytes = LAST_WORD_BYTES;
    exchange_send(execution->base.worker, &bounded, &events, farewell);
}
