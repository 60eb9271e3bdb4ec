/* The facts of a session that outlive a restart. */
#include "session_store.h"

#include <stdlib.h>

#include "state/session_table.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"

static void add_declared(struct buffer *out, const char *key, bool is_declared)
{
    if (!is_declared)
        return;
    json_add_key(out, key);
    buffer_append_text(out, "{}");
}

static void add_given(struct buffer *out, const struct call *call, const char *session)
{
    OWNED_BUFFER(said);
    if (call_gives_session(call) &&
        given_sessions_get(call->worker->gateway->given_sessions, str_from(call->source->id),
                           str_from(session), &said)) {
        json_add_value(out, SESSION_GIVEN, buffer_str(&said));
    }
}

/* The client's capabilities that are needed later, and those that were declared in its place. The
 * rest is not stored: it may be as long as a body, and would stay on the disk for a month. */
static char *stored_capabilities(const struct call *call, const char *session)
{
    const struct session_facts *facts = &call->facts;
    struct buffer text;
    buffer_init(&text);
    buffer_append_char(&text, '{');
    add_declared(&text, "tasks", facts->client.declares_tasks);
    add_declared(&text, "elicitation", facts->client.declares_elicitation);
    add_declared(&text, "sampling", facts->client.declares_sampling);
    json_add_key(&text, SESSION_INJECTED);
    buffer_append_format(&text, "{\"elicitation\":%s,\"sampling\":%s}",
                         facts->server.injected_elicitation ? "true" : "false",
                         facts->server.injected_sampling ? "true" : "false");
    add_given(&text, call, session);
    buffer_append_char(&text, '}');
    return buffer_take(&text, NULL);
}

void session_store_put(const struct call *call, const char *session, struct store_call then)
{
    const struct session_facts *facts = &call->facts;
    char *text = stored_capabilities(call, session);
    struct store_session stored = {
        .source = call->source->id,
        .id_digest = (char *)(uintptr_t)session,
        .version = (char *)(uintptr_t)facts->version,
        .client_name = (char *)(uintptr_t)facts->client.name,
        .client_version = (char *)(uintptr_t)facts->client.version,
        .client_capabilities = text,
        .owner = (char *)(uintptr_t)call->owner,
        .upstream_tasks = facts->server.has_tasks,
        .upstream_sse = facts->server.has_task_status,
        .seen_ms = clock_now_ms(),
    };
    store_session_put(call->worker->gateway->store, &stored, then);
    free(text);
}

static void session_store_on_stored(struct call *call, const struct store_reply *reply)
{
    const struct jsonrpc_error_data data = {.details = STR("the session cannot be kept"),
                                            .retry_after = 5};
    if (reply->status == STORE_FAILED)
        call_answer_error(call, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
    else
        call_answer_result(call, STR("{}"));
}

void session_store_put_and_answer(struct call *call)
{
    session_store_put(call, call->session, call_to_store(call, session_store_on_stored));
}
