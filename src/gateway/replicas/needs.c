/* The needs of each method. */
#include "needs.h"

#include <string.h>

#include "call/pseudo_names.h"
#include "call/request_state.h"
#include "replicas.h"
#include "taskgate/core/buffer.h"
#include "taskgate/json/text.h"

static bool is_modern(const struct call *call)
{
    return call->dialect->era == MCP_ERA_MODERN;
}

static bool is_method(const struct call *call, const char *method)
{
    return str_equal(call->envelope.method, str_from(method));
}

/* A state that the client keeps. The process that handles the call judges whether the caller may
 * know the task. */
static bool read_state(const struct call *call, struct request_state *state)
{
    return is_modern(call) && request_state_is_ours(call) && request_state_peek(call, state);
}

/* ---- a task ---- */

/* A legacy client's tasks/cancel changes the state in the database, of which the home hears. */
static bool is_of_task(const struct call *call)
{
    return is_method(call, "tasks/get") ||
           (is_modern(call) ? is_method(call, "tasks/update") || is_method(call, "tasks/cancel")
                            : is_method(call, "tasks/result"));
}

static bool copy_id(struct str text, char id[TASK_ID_BYTES])
{
    if (!text.bytes || !task_id_is_ours(text) || text.length >= TASK_ID_BYTES ||
        memchr(text.bytes, '\0', text.length) != NULL)
        return false;
    memcpy(id, text.bytes, text.length);
    id[text.length] = '\0';
    return true;
}

/* Of our tools, the one that lends the caller's credentials, and waits. The others read and change
 * what is in the database. */
static bool find_in_arguments(struct call *call, char id[TASK_ID_BYTES])
{
    struct buffer text;
    if (!is_method(call, "tools/call") || pseudo_names_find(call) != PSEUDO_TOOL_GET_TASK_RESULT)
        return false;
    buffer_init(&text);
    bool is_found =
        json_decode_string(json_member(call->envelope.arguments.raw, "task_id"), &text) &&
        copy_id(buffer_str(&text), id);
    buffer_finish(&text);
    return is_found;
}

bool needs_task(struct call *call, char id[TASK_ID_BYTES])
{
    struct request_state state;
    if (is_of_task(call))
        return copy_id(call->envelope.task_id.text, id);
    if (read_state(call, &state))
        return copy_id(str_from(state.id), id);
    return find_in_arguments(call, id);
}

bool needs_events(const struct call *call)
{
    return is_method(call, "tools/call");
}

/* ---- a process ---- */

static bool find_open_call(const struct call *call, struct session_home *home)
{
    const struct store *store = call->worker->gateway->store;
    struct request_state state;
    if (!read_state(call, &state) || !*state.replica)
        return false;
    *home = (struct session_home){.epoch = state.epoch};
    memcpy(home->replica, state.replica, sizeof home->replica);
    home->is_here = strcmp(state.replica, store_replica_id(store)) == 0;
    return true;
}

bool needs_process(const struct call *call, struct session_home *home)
{
    if (call->envelope.kind == ENVELOPE_RESPONSE)
        return replicas_find_asker(call->worker->gateway->replicas, call->envelope.id, home);
    return find_open_call(call, home);
}

/* ---- a session ---- */

/* Notices of the client's own, and the question whether the server is there, need nothing that one
 * process has. Everything else does, or its server may ask the client something on the way. */
bool needs_session(const struct call *call)
{
    if (!call->dialect->has_sessions ||
        http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID).length == 0)
        return false;
    if (!str_equal(http_method(call->exchange), STR("POST")))
        return true;
    return !is_method(call, "ping") && !is_method(call, "initialize") &&
           !is_method(call, "notifications/initialized") &&
           !is_method(call, "notifications/roots/list_changed");
}
