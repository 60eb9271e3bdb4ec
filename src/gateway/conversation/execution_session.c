/* Calls of those that have no session at the server: of the control plane, with the source's static
 * headers; of modern clients at a legacy server, with the owner's; and of clients whose session is
 * not known here, or which the server has forgotten, with the owner's, too. Each call gets a
 * session of its own. */
#include "execute_internal.h"
#include "server/own.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_server.h"
#include "taskgate/mcp/question.h"

static void send_in_session(struct opened_session *session)
{
    execution_send(execution_from(session->listener_context));
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

static void fail_opening(struct execution *execution, const struct exchange_reply *reply)
{
    static const char not_sent[] =
        "the gateway's own session could not be opened; nothing was sent";
    bool is_refusal = reply->status == 401 || reply->status == 403 || reply->status == 404;
    if (is_refusal || json_member(reply->message, "error").length > 0)
        execution_answered(execution, reply);
    else if (reply->result == UPSTREAM_SILENT)
        execution_fail(execution, JSONRPC_UPSTREAM_TIMEOUT, not_sent);
    else if (reply->status > 0)
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR, not_sent);
    else
        execution_fail(execution, JSONRPC_UPSTREAM_FAILED, not_sent);
}

/* Servers built with the official SDK ask on the session's stream, and not in the call. */
static void on_opened(struct opened_session *session, const struct exchange_reply *refusal)
{
    struct execution *execution = execution_from(session->listener_context);
    if (refusal) {
        fail_opening(execution, refusal);
        return;
    }
    session->listener = on_stream_message;
    headers_set_session(&execution->base.headers, &session->base);
    if (!may_be_asked(execution) || !opened_session_want_stream(session, send_in_session))
        execution_send(execution); /* its answer shows whether the server took the notification */
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
    struct task_trace trace;
    const struct sending sending = execution_sending(execution, &trace);
    OWNED_BUFFER(params);
    ASSERT(!execution->session);
    if (execution->own_session) {
        headers_finish(&execution->base.headers);
        service_session_begin(&execution->base.headers, execution->base.source);
    }
    if (execution->is_bridged_down)
        write_bridged_params(execution, &params);
    else
        buffer_append(&params, service_session_params());
    const struct session_opening opening = {.worker = execution->base.worker,
                                            .snapshot = execution->base.snapshot,
                                            .source = execution->base.source,
                                            .headers = &execution->base.headers,
                                            .params = buffer_str(&params),
                                            .trace = sending.trace,
                                            .limit_ms = sending.silence_ms,
                                            .most_bytes = sending.most_bytes,
                                            .opened = on_opened,
                                            .context = execution};
    execution->session = opened_session_begin(&opening);
}

/* The server's questions would come in a session that the client does not know: it is not declared
 * that any can be asked. A later request of the call, as of a task of the server's, belongs to the
 * session that has gone. */
bool execution_session_reopens(struct execution *execution, const struct exchange_reply *reply)
{
    struct invocation *base = &execution->base;
    bool is_first = conversation_where(base) == CONVERSATION_RUNNING && !base->server_task &&
                    !base->up.has_asked;
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
    if (execution->session)
        opened_session_destroy(execution->session);
    execution->session = NULL;
    if (execution->own_session)
        headers_finish(&execution->base.headers);
    else
        headers_drop(&execution->base.headers, HTTP_NAME_OF_SESSION);
}

void execution_say_last(struct execution *execution, struct str body, struct str id)
{
    struct sending sending = invocation_sending(&execution->base);
    sending.body = body;
    sending.id = id;
    if (execution->session)
        opened_session_leave(execution->session, body, id);
    else
        exchange_notify(execution->base.worker, &sending);
    execution->session = NULL;
}
