/* Lists and calls the tools of the example server. */
#include "tools.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reply.h"
#include "rpc.h"
#include "server.h"

/* One tool: exactly one of `answer` and `begin` is set. */
struct tool {
    const char *name;
    const char *definition; /* JSON: the rest of its entry in tools/list */
    json_t *(*answer)(struct server *server, json_t *arguments);
    json_t *(*begin)(struct call *call, json_t *arguments);
};

static json_t *get_time(struct server *server, json_t *arguments);
static json_t *delete_database(struct server *server, json_t *arguments);

static const struct tool tools[] = {
    {.name = "get_time",
     .answer = get_time,
     .definition =
         "{\"title\":\"Get the time\",\"description\":\"Tells the server's time in UTC.\","
         "\"inputSchema\":{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false},"
         "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}}"},
    {.name = "delete_database",
     .answer = delete_database,
     .definition =
         "{\"title\":\"Delete a database\",\"description\":\"Deletes one of the demo databases for "
         "good.\","
         "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","
         "\"description\":\"The database to delete, such as staging\"}},\"required\":[\"name\"]},"
         "\"annotations\":{\"readOnlyHint\":false,\"destructiveHint\":true,\"openWorldHint\":false}"
         "}"},
    {.name = "slow",
     .begin = slow_begin,
     .definition =
         "{\"title\":\"Take a while\",\"description\":\"Waits, and reports its progress "
         "meanwhile.\","
         "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"number\","
         "\"exclusiveMinimum\":0,\"maximum\":3600}},\"required\":[\"seconds\"]},"
         "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}}"},
    {.name = "ask",
     .begin = ask_begin,
     .definition = "{\"title\":\"Ask the human\",\"description\":\"Asks the human at the client a "
                   "question.\","
                   "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"question\":{\"type\":"
                   "\"string\"}}},"
                   "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":true}}"},
    {.name = "ask_model",
     .begin = ask_model_begin,
     .definition = "{\"title\":\"Ask the model\",\"description\":\"Asks the client's model.\","
                   "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"prompt\":{\"type\":"
                   "\"string\"}}},"
                   "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":true}}"},
};
#define TOOL_COUNT (sizeof(tools) / sizeof(*tools))

json_t *tools_list(void)
{
    json_t *list = rpc_need(json_array());
    for (size_t i = 0; i < TOOL_COUNT; i++) {
        json_t *entry = rpc_need(json_pack("{s:s}", "name", tools[i].name));
        json_t *definition = rpc_need(json_loads(tools[i].definition, 0, NULL));
        json_object_update(entry, definition);
        json_decref(definition);
        json_array_append_new(list, entry);
    }
    return rpc_need(json_pack("{s:o}", "tools", list));
}

static const struct tool *find_tool(const char *name)
{
    for (size_t i = 0; name != NULL && i < TOOL_COUNT; i++)
        if (strcmp(tools[i].name, name) == 0)
            return &tools[i];
    return NULL;
}

/* For tests that count and compare: a line for people, and the exact bytes. */
static void record(struct server *server, const struct tool *tool, json_t *arguments,
                   h2o_iovec_t body)
{
    char *text = json_dumps(arguments, JSON_COMPACT | JSON_ENSURE_ASCII);
    fprintf(stderr, "executed %s %s\n", tool->name, text != NULL ? text : "");
    free(text);
    if (server->journal != NULL) {
        fwrite(body.base, 1, body.len, server->journal);
        fputc('\n', server->journal);
        fflush(server->journal);
    }
}

static void call_free(struct call *call)
{
    h2o_linklist_unlink(&call->link);
    h2o_timeout_unlink(&call->tick);
    json_decref(call->id);
    json_decref(call->progress_token);
    free(call);
}

static void on_client_gone(void *holder)
{
    fputs("stopped: the client went away\n", stderr);
    call_free(holder);
}

static void begin_call(struct server *server, struct session *session, h2o_req_t *request,
                       json_t *message, const struct tool *tool, json_t *arguments)
{
    json_t *params = json_object_get(message, "params");
    struct call *call = h2o_mem_alloc(sizeof(*call));
    *call = (struct call){
        .server = server,
        .session = session,
        .may_stream = reply_accepts(request, "text/event-stream"),
        .id = json_incref(json_object_get(message, "id")),
        .progress_token =
            json_incref(json_object_get(json_object_get(params, "_meta"), "progressToken")),
    };
    h2o_linklist_insert(&session->calls, &call->link);
    call->reply = reply_hold(server, request, on_client_gone, call);
    json_t *result = tool->begin(call, arguments);
    if (result != NULL)
        call_finish(call, result);
}

void tools_call(struct server *server, struct session *session, h2o_req_t *request, json_t *message,
                h2o_iovec_t body)
{
    json_t *id = json_object_get(message, "id");
    json_t *params = json_object_get(message, "params");
    const struct tool *tool = find_tool(json_string_value(json_object_get(params, "name")));
    json_t *given = json_object_get(params, "arguments");
    if (tool == NULL || (given != NULL && !json_is_object(given))) {
        const char *wrong = tool == NULL
                                ? "Unknown tool: params.name must be one that tools/list names"
                                : "params.arguments must be an object";
        reply_json(request, 200, rpc_error(id, RPC_INVALID_PARAMS, wrong));
        return;
    }
    json_t *arguments = given != NULL ? json_incref(given) : rpc_need(json_object());
    record(server, tool, arguments, body);
    session_log(session, LOG_LEVEL_DEBUG, "tools", "called", tool->name);
    if (tool->answer != NULL)
        reply_json(request, 200, rpc_result(id, tool->answer(server, arguments)));
    else
        begin_call(server, session, request, message, tool, arguments);
    json_decref(arguments);
}

/* Ends a call that is owed no result. */
static void call_drop(struct call *call, const char *why)
{
    struct reply *reply = call->reply;
    /* A stream just ends; a held JSON answer must say something. */
    json_t *last = reply_is_stream(reply) ? NULL : rpc_error(call->id, RPC_BAD_SESSION, why);
    fprintf(stderr, "stopped: %s\n", why);
    call_free(call);
    reply_finish(reply, last);
}

void tools_cancel(struct session *session, json_t *id)
{
    for (h2o_linklist_t *link = session->calls.next; link != &session->calls; link = link->next) {
        struct call *call = H2O_STRUCT_FROM_MEMBER(struct call, link, link);
        if (json_equal(call->id, id)) {
            call_drop(call, "the client cancelled the call");
            return;
        }
    }
}

void tools_answer(struct session *session, json_t *message)
{
    const char *id = json_string_value(json_object_get(message, "id"));
    for (h2o_linklist_t *link = session->calls.next; id != NULL && link != &session->calls;
         link = link->next) {
        struct call *call = H2O_STRUCT_FROM_MEMBER(struct call, link, link);
        if (call->question[0] != '\0' && strcmp(call->question, id) == 0) {
            call->answered(call, message);
            return;
        }
    }
}

void tools_end_calls(struct session *session)
{
    for (h2o_linklist_t *link = session->calls.next; link != &session->calls;) {
        struct call *call = H2O_STRUCT_FROM_MEMBER(struct call, link, link);
        link = link->next;
        call_drop(call, "the session ended");
    }
}

void call_finish(struct call *call, json_t *result)
{
    struct reply *reply = call->reply;
    json_t *message = rpc_result(call->id, result);
    call_free(call);
    reply_finish(reply, message);
}

json_t *tool_text(bool is_error, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    json_t *text = rpc_need(json_vsprintf(format, values));
    va_end(values);
    json_t *result =
        rpc_need(json_pack("{s:[{s:s, s:o}]}", "content", "type", "text", "text", text));
    if (is_error)
        json_object_set_new(result, "isError", json_true());
    return result;
}

static json_t *get_time(struct server *server, json_t *arguments)
{
    (void)server;
    (void)arguments;
    char text[32];
    time_t now = time(NULL);
    struct tm parts;
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    return tool_text(false, "It is %s.", text);
}

static json_t *delete_database(struct server *server, json_t *arguments)
{
    const char *name = json_string_value(json_object_get(arguments, "name"));
    if (name == NULL)
        return tool_text(true, "delete_database needs \"name\", a string.");
    bool deleted = databases_delete(&server->databases, name);
    char *left = databases_list(&server->databases);
    json_t *result =
        deleted
            ? tool_text(false, "Deleted database \"%s\". Left: %s.", name, left)
            : tool_text(true, "There is no database \"%s\" to delete. There are: %s.", name, left);
    free(left);
    if (deleted)
        sessions_log(&server->sessions, LOG_LEVEL_WARNING, "databases", "deleted", name);
    return result;
}
