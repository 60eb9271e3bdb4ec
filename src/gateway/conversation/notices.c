/* Sorts the server's messages by what becomes of them. */
#include "notices.h"

#include <stdlib.h>

#include "call/broadcast.h"
#include "inbox/inbox.h"
#include "server/catalogue.h"
#include "server/http.h"
#include "taskgate/json/text.h"
#include "waiting.h"

static struct question_origin question_of(const struct notice_origin *origin)
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

/* `result` is empty for a method that no client answers. */
static void respond(const struct notice_origin *origin, struct str id, struct str result)
{
    struct buffer body;
    buffer_init(&body);
    if (result.length > 0)
        jsonrpc_write_result(&body, id, result);
    else
        jsonrpc_write_error(&body, id, JSONRPC_METHOD_NOT_FOUND, STR_EMPTY, NULL);
    const struct sending sending = {.source = origin->source,
                                    .snapshot = origin->snapshot,
                                    .headers = origin->headers,
                                    .body = buffer_str(&body)};
    exchange_notify(origin->worker, &sending);
    buffer_finish(&body);
}

static void take_request(const struct notice_origin *origin, struct str method, struct str id,
                         struct str message)
{
    enum question_kind kind;
    if (question_is_asked_by(method, &kind)) {
        const struct question_origin input = question_of(origin);
        question_take(&input, message);
    } else {
        respond(origin, id, str_equal(method, STR("ping")) ? STR("{}") : STR_EMPTY);
    }
}

/* ---- notifications ---- */

static void deliver_progress(struct gateway_worker *worker, const void *broadcast)
{
    const struct task_broadcast *progress = broadcast;
    struct task *task = progress->task;
    struct str message = progress->text;
    waiting_pass_progress(worker, task, message);
    if (task->progress_token[0]) {
        struct buffer rewritten;
        buffer_init(&rewritten);
        dialect_rewrite_progress(&rewritten, message, str_from(task->progress_token),
                                 str_from(task->id));
        worker->gateway->task_message(worker, task, buffer_str(&rewritten));
        buffer_finish(&rewritten);
    }
}

static const struct broadcast_kind progress_kind = TASK_BROADCAST_KIND(deliver_progress);

/* Sends it to the calls that wait for the task here, or without one to the owner's GET streams. */
static void deliver_log(struct gateway_worker *worker, const void *broadcast)
{
    const struct task_broadcast *log = broadcast;
    if (!waiting_pass_message(worker, log->task, log->text))
        worker->gateway->task_message(worker, log->task, log->text);
}

static const struct broadcast_kind log_kind = TASK_BROADCAST_KIND(deliver_log);

static void deliver_notification(struct gateway_worker *worker, const void *broadcast)
{
    const struct task_broadcast *notification = broadcast;
    worker->gateway->task_message(worker, notification->task, notification->text);
}

static const struct broadcast_kind notification_kind = TASK_BROADCAST_KIND(deliver_notification);

static void send_of_task(const struct notice_origin *origin, const struct broadcast_kind *kind,
                         struct str message)
{
    const struct task_broadcast broadcast = {origin->task, message};
    broadcast_send(origin->worker->gateway, kind, &broadcast);
}

static void take_log(const struct notice_origin *origin, struct str message)
{
    struct gateway *gateway = origin->worker->gateway;
    struct buffer related;
    buffer_init(&related);
    if (origin->task) {
        dialect_write_related_message(&related, message, STR_EMPTY, str_from(origin->task->id));
        send_of_task(origin, &log_kind, buffer_str(&related));
    } else {
        buffer_append(&related, message);
    }
    inbox_add_log(gateway, str_from(origin->key), str_from(origin->source->id),
                  json_member(buffer_str(&related), "params"));
    buffer_finish(&related);
}

static void take_notification(const struct notice_origin *origin, struct str method,
                              struct str message)
{
    struct gateway *gateway = origin->worker->gateway;
    if (str_equal(method, STR("notifications/progress"))) {
        if (origin->task)
            send_of_task(origin, &progress_kind, message);
    } else if (str_equal(method, STR(MCP_CANCELLED))) {
        const struct question_origin input = question_of(origin);
        question_take_cancel(&input, message); /* other requests are answered at once */
    } else if (str_equal(method, STR("notifications/message"))) {
        take_log(origin, message);
    } else {
        if (str_equal(method, STR(MCP_TOOLS_CHANGED)))
            tools_fetch_changed(gateway, str_from(origin->source->id));
        if (origin->task)
            send_of_task(origin, &notification_kind, message);
        inbox_add_notification(gateway, str_from(origin->key), str_from(origin->source->id), method,
                               json_member(message, "params"));
    }
}

void notices_take(const struct notice_origin *origin, struct str message)
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
