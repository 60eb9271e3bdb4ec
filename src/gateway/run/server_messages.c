/* Sorting upstream's messages by what is to become of them. */
#include "server_messages.h"

#include <stdlib.h>

#include "inbox/inbox.h"
#include "mcp_client/rpc_call.h"
#include "mcp_client/tools_fetch.h"
#include "relay/notification_stream.h"
#include "request/worker.h"
#include "result_wait.h"
#include "taskgate/json/text.h"

static struct question_origin question_of(const struct interim_origin *origin)
{
    return (struct question_origin){
        .worker = origin->worker,
        .snapshot = origin->snapshot,
        .source = origin->source,
        .headers = origin->headers,
        .session = origin->session,
        .audience = origin->audience,
        .task = origin->call ? NULL : origin->task,
        .call = origin->call,
    };
}

/* ---- requests ---- */

/* `result` empty: the method is none that a client of ours answers. */
static void respond(const struct interim_origin *origin, struct str id, struct str result)
{
    struct buffer body;
    buffer_init(&body);
    if (result.length > 0)
        jsonrpc_write_result(&body, id, result);
    else
        jsonrpc_write_error(&body, id, JSONRPC_METHOD_NOT_FOUND, STR_EMPTY, NULL);
    const struct ask_options options = {.source = origin->source,
                                        .snapshot = origin->snapshot,
                                        .headers = origin->headers,
                                        .body = buffer_str(&body)};
    ask_tell(origin->worker, &options);
    buffer_finish(&body);
}

static void take_request(const struct interim_origin *origin, struct str method, struct str id,
                         struct str message)
{
    enum question_kind kind;
    if (questions_are_asked_by(method, &kind)) {
        const struct question_origin question = question_of(origin);
        questions_take(&question, message);
    } else {
        respond(origin, id, str_equal(method, STR("ping")) ? STR("{}") : STR_EMPTY);
    }
}

/* ---- notifications ---- */

static void pass_progress(struct gateway_worker *worker, struct task *task, struct str message)
{
    waiting_tell_progress(worker, task, message);
    if (task->progress_token[0]) {
        struct buffer rewritten;
        buffer_init(&rewritten);
        dialect_rewrite_progress(&rewritten, message, str_from(task->progress_token),
                                 str_from(task->id));
        stream_tell_owner(worker, task, buffer_str(&rewritten));
        buffer_finish(&rewritten);
    }
}

/* To those who wait for the task here, else to the owner's GET streams. */
static void pass_log(struct gateway_worker *worker, struct task *task, struct str message)
{
    if (!waiting_tell_message(worker, task, message))
        stream_tell_owner(worker, task, message);
}

static void take_log(const struct interim_origin *origin, struct str message)
{
    struct gateway *gateway = origin->worker->gateway;
    struct buffer related;
    buffer_init(&related);
    if (origin->task) {
        dialect_write_related_message(&related, message, STR_EMPTY, str_from(origin->task->id));
        workers_broadcast(gateway, pass_log, origin->task, buffer_str(&related));
    } else {
        buffer_append(&related, message);
    }
    pseudo_client_log(gateway, str_from(origin->key), str_from(origin->source->id),
                      json_member(buffer_str(&related), "params"));
    buffer_finish(&related);
}

static void take_notification(const struct interim_origin *origin, struct str method,
                              struct str message)
{
    struct gateway *gateway = origin->worker->gateway;
    if (str_equal(method, STR("notifications/progress"))) {
        if (origin->task)
            workers_broadcast(gateway, pass_progress, origin->task, message);
    } else if (str_equal(method, STR("notifications/cancelled"))) {
        const struct question_origin question = question_of(origin);
        questions_take_cancel(&question, message); /* other requests are answered at once */
    } else if (str_equal(method, STR("notifications/message"))) {
        take_log(origin, message);
    } else {
        if (str_equal(method, STR(MCP_TOOLS_CHANGED)))
            fetch_changed(gateway, str_from(origin->source->id));
        if (origin->task)
            workers_broadcast(gateway, stream_tell_owner, origin->task, message);
        pseudo_client_notification(gateway, str_from(origin->key), str_from(origin->source->id),
                                   method, json_member(message, "params"));
    }
}

void interim_take(const struct interim_origin *origin, struct str message)
{
    struct str id = json_member(message, "id");
    char *text = json_string_text(json_member(message, "method"), NULL);
    struct str method = str_from(text);
    bool is_ping = str_equal(method, STR("ping"));
    if (id.length == 0)
        take_notification(origin, method, message);
    else if (server_budget_take(origin->budget, is_ping ? SERVER_PING : SERVER_REQUEST,
                                loop_now_ms(origin->worker->loop)))
        take_request(origin, method, id, message);
    free(text);
}
