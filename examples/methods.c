/* Answers MCP's methods. */
#include "methods.h"

#include <string.h>

#include "reply.h"
#include "rpc.h"
#include "server.h"
#include "tools.h"

/* Newest first: the answer to an unknown version is the newest. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

static void ping(struct session *session, h2o_req_t *request, json_t *message);
static void list_tools(struct session *session, h2o_req_t *request, json_t *message);
static void set_level(struct session *session, h2o_req_t *request, json_t *message);

static const struct method {
    const char *name;
    void (*answer)(struct session *session, h2o_req_t *request,
                   json_t *message); /* NULL: tools/call */
} methods[] = {
    {"ping", ping},
    {"tools/list", list_tools},
    {"tools/call", NULL},
    {"logging/setLevel", set_level},
};

static const struct method *find_method(const char *name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

bool methods_know(const char *method)
{
    return find_method(method) != NULL;
}

bool methods_know_version(const char *version, size_t length)
{
    for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
        if (h2o_memis(version, length, versions[i], strlen(versions[i])))
            return true;
    return false;
}

/* An empty capability means forms; one that names only other modes does not. */
static bool elicits_by_form(json_t *capabilities)
{
    json_t *elicitation = json_object_get(capabilities, "elicitation");
    return json_is_object(elicitation) &&
           (json_object_size(elicitation) == 0 || json_object_get(elicitation, "form") != NULL);
}

void methods_initialize(struct server *server, h2o_req_t *request, json_t *message)
{
    json_t *id = json_object_get(message, "id");
    json_t *params = json_object_get(message, "params");
    const char *wanted = json_string_value(json_object_get(params, "protocolVersion"));
    if (wanted == NULL) {
        reply_json(request, 200,
                   rpc_error(id, RPC_INVALID_PARAMS, "params.protocolVersion must be a string"));
        return;
    }
    const char *version = methods_know_version(wanted, strlen(wanted)) ? wanted : versions[0];
    json_t *capabilities = json_object_get(params, "capabilities");
    struct session *session =
        session_begin(&server->sessions, elicits_by_form(capabilities),
                      json_is_object(json_object_get(capabilities, "sampling")));
    if (session == NULL) {
        reply_empty(request, 503);
        return;
    }
    h2o_iovec_t session_id = h2o_strdup(&request->pool, session->id, SESSION_ID_LENGTH);
    h2o_add_header_by_str(&request->pool, &request->res.headers, H2O_STRLIT("mcp-session-id"), 0,
                          "Mcp-Session-Id", session_id.base, session_id.len);
    json_t *result =
        json_pack("{s:s, s:{s:{s:b}, s:{}}, s:{s:s, s:s, s:s}, s:s}", "protocolVersion", version,
                  "capabilities", "tools", "listChanged", 0, "logging", "serverInfo", "name",
                  "taskgate-example-server", "title", "taskgate example server", "version", "1.0.0",
                  "instructions", "Demo tools. delete_database cannot be undone.");
    reply_json(request, 200, rpc_result(id, rpc_need(result)));
}

void methods_answer(struct server *server, struct session *session, h2o_req_t *request,
                    json_t *message)
{
    const struct method *method =
        find_method(json_string_value(json_object_get(message, "method")));
    json_t *params = json_object_get(message, "params");
    if (params != NULL && !json_is_object(params)) {
        json_t *id = json_object_get(message, "id");
        reply_json(request, 200, rpc_error(id, RPC_INVALID_PARAMS, "params must be an object"));
    } else if (method->answer != NULL) {
        method->answer(session, request, message);
    } else {
        tools_call(server, session, request, message, request->entity);
    }
}

static void answer(h2o_req_t *request, json_t *message, json_t *result)
{
    reply_json(request, 200, rpc_result(json_object_get(message, "id"), rpc_need(result)));
}

static void ping(struct session *session, h2o_req_t *request, json_t *message)
{
    (void)session;
    answer(request, message, json_object());
}

static void list_tools(struct session *session, h2o_req_t *request, json_t *message)
{
    (void)session;
    /* There is one page, so no cursor was ever given out. */
    if (json_object_get(json_object_get(message, "params"), "cursor") != NULL) {
        json_t *id = json_object_get(message, "id");
        reply_json(request, 200, rpc_error(id, RPC_INVALID_PARAMS, "params.cursor is unknown"));
        return;
    }
    answer(request, message, tools_list());
}

static void set_level(struct session *session, h2o_req_t *request, json_t *message)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(message, "params"), "level"));
    enum log_level level = name != NULL ? session_level(name) : LOG_LEVEL_COUNT;
    if (level == LOG_LEVEL_COUNT) {
        json_t *id = json_object_get(message, "id");
        reply_json(request, 200,
                   rpc_error(id, RPC_INVALID_PARAMS,
                             "params.level must be debug, info, notice, warning, error, critical, "
                             "alert or emergency"));
        return;
    }
    session->least = level;
    answer(request, message, json_object());
}

void methods_take(struct session *session, h2o_req_t *request, json_t *message)
{
    const char *method = json_string_value(json_object_get(message, "method"));
    if (method == NULL)
        tools_answer(session, message);
    else if (strcmp(method, "notifications/cancelled") == 0)
        tools_cancel(session, json_object_get(json_object_get(message, "params"), "requestId"));
    reply_empty(request, 202);
}
