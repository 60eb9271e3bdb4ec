/* Sorts the server's messages by what becomes of them. */
#include <stdlib.h>

#include "call/broadcast.h"
#include "call/call.h"
#include "inbox/inbox.h"
#include "question.h"
#include "relay.h"
#include "server/catalogue.h"
#include "state/task_aliases.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "waiting.h"

/* ---- requests ---- */

/* No client answers another method than `ping`. */
static void respond(const struct question_origin *origin, struct str id, bool is_ping)
{
    const struct sending sending = {
        .source = origin->source, .snapshot = origin->snapshot, .headers = origin->headers};
    struct server_response response = {.result = is_ping ? STR("{}") : STR_EMPTY};
    OWNED_BUFFER(error);
    if (!is_ping)
        jsonrpc_write_error_object(&error, JSONRPC_METHOD_NOT_FOUND, STR_EMPTY, NULL);
    response.error = buffer_str(&error);
    server_respond(origin->worker, &sending, id, &response, NULL, NULL);
}

static void take_request(const struct question_origin *origin, struct str id, bool is_ping,
                         struct str message)
{
    enum question_kind kind;
    if (question_read_kind(message, &kind) && kind != QUESTION_ROOTS)
        question_take(origin, message);
    else
        respond(origin, id, is_ping);
}

/* ---- notifications ---- */

static void deliver_progress(struct gateway_worker *worker, struct task *task, struct str message)
{
    waiting_pass_progress(worker, task, message);
    if (task->progress_token[0]) {
        OWNED_BUFFER(rewritten);
        dialect_rewrite_progress(&rewritten, message, str_from(task->progress_token),
                                 str_from(task->id));
        worker->gateway->task_message(worker, task, buffer_str(&rewritten));
    }
}

/* Sends it to the calls that wait for the task here, or without one to the owner's GET streams. */
static void deliver_log(struct gateway_worker *worker, struct task *task, struct str message)
{
    if (!waiting_pass_message(worker, task, message))
        worker->gateway->task_message(worker, task, message);
}

static void take_log(const struct question_origin *origin, struct str message)
{
    struct gateway *gateway = origin->worker->gateway;
    OWNED_BUFFER(related);
    if (origin->task) {
        dialect_write_related_message(&related, message, STR_EMPTY, str_from(origin->task->id));
        broadcast_task(gateway, origin->task, buffer_str(&related), deliver_log);
    } else {
        buffer_append(&related, message);
    }
    inbox_add_log(gateway, str_from(origin->key), str_from(origin->source->id),
                  json_member(buffer_str(&related), "params"));
}

static void take_notification(const struct question_origin *origin, struct str method,
                              struct str message)
{
    struct gateway *gateway = origin->worker->gateway;
    if (str_equal(method, STR(MCP_PROGRESS))) {
        if (origin->task)
            broadcast_task(gateway, origin->task, message, deliver_progress);
    } else if (str_equal(method, STR(MCP_CANCELLED))) {
        question_take_cancel(origin, message); /* other requests are answered at once */
    } else if (str_equal(method, STR(MCP_LOG_MESSAGE))) {
        take_log(origin, message);
    } else {
        if (str_equal(method, STR(MCP_TOOLS_CHANGED)))
            tools_fetch_changed(gateway, str_from(origin->source->id));
        if (origin->task)
            broadcast_task(gateway, origin->task, message, gateway->task_message);
        inbox_add_notification(gateway, str_from(origin->key), str_from(origin->source->id), method,
                               json_member(message, "params"));
    }
}

void notices_take(const struct question_origin *origin, struct str message)
{
    ASSERT(origin->budget && origin->headers);
    struct str id = json_member(message, "id");
    OWNED char *text = json_string_text(json_member(message, "method"), NULL);
    struct str method = str_from(text);
    bool is_ping = str_equal(method, STR("ping"));
    if (id.length == 0)
        take_notification(origin, method, message);
    else if (server_budget_take(origin->budget, is_ping ? SERVER_PING : SERVER_REQUEST,
                                loop_now_ms(origin->worker->loop)))
        take_request(origin, id, is_ping, message);
}

/* ---- on a client's own stream ---- */

/* Requests of the server there. The gateway takes them out when its tools answer them in the
 * client's place. */
static bool is_answered_for(const struct call *call, enum question_kind kind)
{
    return kind == QUESTION_ELICITATION ? call->facts.server.injected_elicitation
                                        : call->facts.server.injected_sampling;
}

/* A client without a session never said that it can be asked: upstream must not wait for it. */
static bool is_to_be_declined(const struct call *call, enum question_kind kind)
{
    struct session_facts facts;
    if (!client_find_without_session(call, &facts))
        return false;
    return kind == QUESTION_ELICITATION ? !facts.client.declares_elicitation
                                        : !facts.client.declares_sampling;
}

static bool is_get_stream(const struct call *call)
{
    return !call->method;
}

/* ---- taking ---- */

/* Of a message on a stream of the call. */
static struct question_origin
origin_on_stream(struct call *call, struct question_audience *audience, struct headers *headers)
{
    question_audience(call, audience);
    headers_from_call(headers, call);
    return (struct question_origin){.worker = call->worker,
                                    .snapshot = call->snapshot,
                                    .source = call->source,
                                    .headers = headers,
                                    .session = call->session,
                                    .audience = audience};
}

/* Takes a message about a server's own task that an execution follows. The client knows only the
 * gateway's task. */
static bool take_of_task(struct call *call, struct str method, struct str message)
{
    struct gateway *gateway = call->worker->gateway;
    struct str source = str_from(call->source->id), session = str_from(call->session);
    enum question_kind kind;
    bool is_request = json_member(message, "id").length > 0;
    if (is_request && (!question_read_kind(message, &kind) || kind == QUESTION_ROOTS))
        return false;
    if (!call->facts.known && !sessions_get(gateway->sessions, source, session, &call->facts))
        return false;
    char key[CLIENT_KEY_BYTES];
    client_key_of_session(call->source, call->session, key); /* "" without a session */
    struct task *task = task_aliases_find(gateway->task_aliases, key, message);
    if (!task)
        return false;
    struct question_audience audience;
    OWNED_HEADERS(headers, false);
    struct question_origin origin = origin_on_stream(call, &audience, &headers);
    inbox_key_of_task(task, key);
    origin.task = task;
    origin.key = key;
    origin.budget = &call->server_budget;
    /* The gateway tells each change of its own task itself. */
    if (!str_equal(method, STR(MCP_TASK_STATUS)))
        notices_take(&origin, message);
    task_unref(task);
    return true;
}

/* Whether it was taken out of the stream. */
static bool take_of_stream(struct call *call, struct str message, bool is_cancel)
{
    bool is_taken = true;
    struct question_audience audience;
    OWNED_HEADERS(headers, false);
    struct question_origin origin = origin_on_stream(call, &audience, &headers);
    origin.call = question_number(call);
    origin.is_on_stream = is_get_stream(call);
    if (is_cancel)
        is_taken = question_take_cancel(&origin, message);
    else if (question_take(&origin, message))
        relay_wait_for_person(call);
    return is_taken;
}

/* ---- a session that is not in memory ---- */

/* A message that waits until the store has read its session. */
struct late_message {
    struct call *call;
    enum question_kind kind;
    char *text;
};

static void on_facts_of_stream(void *context, const struct store_reply *reply)
{
    struct late_message *late = context;
    struct call *call = late->call;
    if (call->exchange) {
        call_take_facts(call, reply);
        if (is_answered_for(call, late->kind))
            take_of_stream(call, str_from(late->text), false);
        else
            relay_pass(call, str_from(late->text));
    }
    call_unref(call);
    free(late->text);
    free(late);
}

/* Whether the session's facts are in memory. false: the message is held back until the store has
 * read them. */
static bool has_facts_of_session(struct call *call, enum question_kind kind, struct str message)
{
    struct gateway *gateway = call->worker->gateway;
    struct str source = str_from(call->source->id), session = str_from(call->session);
    if (call->facts.known || session.length == 0 ||
        sessions_get(gateway->sessions, source, session, &call->facts))
        return true;
    struct late_message *late = memory_alloc(sizeof *late);
    *late = (struct late_message){call_ref(call), kind, memory_copy_str(message)};
    store_session_get(gateway->store, source, session,
                      (struct store_call){call->worker->loop, on_facts_of_stream, late});
    return false;
}

/* ---- the stream ---- */

/* Notes what a client without tasks may also read by get_notifications and get_logs. */
static void keep_notification(struct call *call, struct str method, struct str message)
{
    char key[CLIENT_KEY_BYTES];
    struct gateway *gateway = call->worker->gateway;
    struct str source = str_from(call->source->id), params = json_member(message, "params");
    if (str_equal(method, STR(MCP_TOOLS_CHANGED)))
        tools_fetch_changed(gateway, source);
    if (!is_get_stream(call) || !client_is_shown_tools(call) ||
        str_equal(method, STR(MCP_PROGRESS)))
        return;
    inbox_key_of_call(call, key);
    if (str_equal(method, STR(MCP_LOG_MESSAGE)))
        inbox_add_log(gateway, str_from(key), source, params);
    else
        inbox_add_notification(gateway, str_from(key), source, method, params);
}

static bool take_request_of_stream(struct call *call, enum question_kind kind, struct str message)
{
    call_identify(call);
    if (!has_facts_of_session(call, kind, message))
        return true;
    if (!is_answered_for(call, kind) && !is_to_be_declined(call, kind))
        return false;
    return take_of_stream(call, message, false);
}

bool question_take_from_stream(struct call *call, struct str message)
{
    enum question_kind kind;
    bool taken = false, has_id = json_member(message, "id").length > 0;
    OWNED char *text = json_string_text(json_member(message, "method"), NULL);
    struct str method = str_from(text);
    if (task_aliases_any(call->worker->gateway->task_aliases)) {
        call_identify(call);
        taken = take_of_task(call, method, message);
    }
    if (taken) {
        /* it was a task's */
    } else if (has_id && question_read_kind(message, &kind) && kind != QUESTION_ROOTS) {
        taken = take_request_of_stream(call, kind, message);
    } else if (!has_id && str_equal(method, STR(MCP_CANCELLED)) &&
               question_table_count(call->worker->gateway->questions) > 0) {
        call_identify(call);
        taken = take_of_stream(call, message, true);
    } else if (!has_id) {
        keep_notification(call, method, message);
    }
    return taken;
}
