/* Requests of the server on a client's own stream. The gateway takes them out when its tools answer
 * them in the client's place. */
#include <stdlib.h>

#include "call/call.h"
#include "conversation/notices.h"
#include "conversation/question.h"
#include "inbox/inbox.h"
#include "relay/relay.h"
#include "server/catalogue.h"
#include "state/task_aliases.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

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

/* Takes a message about a server's own task that an execution follows. The client knows only the
 * gateway's task. */
static bool take_of_task(struct call *call, struct str method, struct str message)
{
    struct gateway *gateway = call->worker->gateway;
    struct str source = str_from(call->source->id), session = str_from(call->session);
    enum question_kind kind;
    bool is_request = json_member(message, "id").length > 0;
    if (is_request && !question_is_asked_by(method, &kind))
        return false;
    if (!call->facts.known && !sessions_get(gateway->sessions, source, session, &call->facts))
        return false;
    char key[CLIENT_KEY_BYTES];
    client_key_of_session(call->source, call->session, key); /* "" without a session */
    struct task *task = task_aliases_find(gateway->task_aliases, key, message);
    if (!task)
        return false;
    struct question_audience audience;
    struct headers headers;
    question_audience(call, &audience);
    headers_init(&headers, false);
    headers_from_call(&headers, call);
    inbox_key_of_task(task, key);
    const struct notice_origin origin = {
        .worker = call->worker,
        .snapshot = call->snapshot,
        .source = call->source,
        .task = task,
        .key = key,
        .headers = &headers,
        .session = call->session,
        .audience = &audience,
        .budget = &call->server_budget,
    };
    /* The gateway tells each change of its own task itself. */
    if (!str_equal(method, STR("notifications/tasks/status")))
        notices_take(&origin, message);
    headers_finish(&headers);
    task_unref(task);
    return true;
}

static void take(struct call *call, struct str message, bool is_cancel, bool *taken)
{
    struct question_audience audience;
    struct headers headers;
    question_audience(call, &audience);
    headers_init(&headers, false);
    headers_from_call(&headers, call);
    const struct question_origin origin = {
        .worker = call->worker,
        .snapshot = call->snapshot,
        .source = call->source,
        .headers = &headers,
        .session = call->session,
        .audience = &audience,
        .call = question_number(call),
        .is_on_stream = is_get_stream(call),
    };
    if (is_cancel) {
        *taken = question_take_cancel(&origin, message);
    } else {
        if (question_take(&origin, message))
            relay_wait_for_person(call);
        *taken = true;
    }
    headers_finish(&headers);
}

/* ---- a session that is not in memory ---- */

/* A message that waits until the store has read its session. */
struct late_message {
    struct call *call;
    enum question_kind kind;
    char *text;
};

static void on_facts(void *context, const struct store_reply *reply)
{
    struct late_message *late = context;
    struct call *call = late->call;
    bool taken;
    if (call->exchange) {
        call_take_facts(call, reply);
        if (is_answered_for(call, late->kind))
            take(call, str_from(late->text), false, &taken);
        else
            relay_pass(call, str_from(late->text));
    }
    call_unref(call);
    free(late->text);
    free(late);
}

/* Whether the session's facts are in memory. false: the message is held back until the store has
 * read them. */
static bool has_facts(struct call *call, enum question_kind kind, struct str message)
{
    struct gateway *gateway = call->worker->gateway;
    struct str source = str_from(call->source->id), session = str_from(call->session);
    if (call->facts.known || session.length == 0 ||
        sessions_get(gateway->sessions, source, session, &call->facts))
        return true;
    struct late_message *late = memory_alloc(sizeof *late);
    *late = (struct late_message){call_ref(call), kind, memory_copy_str(message)};
    store_session_get(gateway->store, source, session,
                      (struct store_call){call->worker->loop, on_facts, late});
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
        str_equal(method, STR("notifications/progress")))
        return;
    inbox_key_of_call(call, key);
    if (str_equal(method, STR("notifications/message")))
        inbox_add_log(gateway, str_from(key), source, params);
    else
        inbox_add_notification(gateway, str_from(key), source, method, params);
}

static bool take_request(struct call *call, enum question_kind kind, struct str message)
{
    bool taken = true;
    call_identify(call);
    if (!has_facts(call, kind, message))
        return true;
    if (!is_answered_for(call, kind) && !is_to_be_declined(call, kind))
        return false;
    take(call, message, false, &taken);
    return taken;
}

bool question_take_from_stream(struct call *call, struct str message)
{
    enum question_kind kind;
    bool taken = false, has_id = json_member(message, "id").length > 0;
    char *text = json_string_text(json_member(message, "method"), NULL);
    struct str method = str_from(text);
    if (task_aliases_any(call->worker->gateway->task_aliases)) {
        call_identify(call);
        taken = take_of_task(call, method, message);
    }
    if (taken) {
        /* it was a task's */
    } else if (has_id && question_is_asked_by(method, &kind)) {
        taken = take_request(call, kind, message);
    } else if (!has_id && str_equal(method, STR(MCP_CANCELLED)) &&
               question_table_count(call->worker->gateway->questions) > 0) {
        call_identify(call);
        take(call, message, true, &taken);
    } else if (!has_id) {
        keep_notification(call, method, message);
    }
    free(text);
    return taken;
}
