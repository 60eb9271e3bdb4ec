/* Takes HTTP requests apart: verb, origin, session, and the JSON-RPC message inside. */
#include "endpoint.h"

#include <string.h>

#include "methods.h"
#include "reply.h"
#include "rpc.h"
#include "server.h"

struct endpoint {
    h2o_handler_t super; /* first: the library hands this back */
    struct server *server;
};

static int on_request(h2o_handler_t *handler, h2o_req_t *request);
static void on_post(struct server *server, h2o_req_t *request);
static void on_get(struct server *server, h2o_req_t *request);
static void on_delete(struct server *server, h2o_req_t *request);

void endpoint_register(struct server *server, h2o_hostconf_t *host)
{
    h2o_pathconf_t *path = h2o_config_register_path(host, ENDPOINT_PATH, 0);
    struct endpoint *endpoint = (struct endpoint *)h2o_create_handler(path, sizeof(*endpoint));
    endpoint->super.on_req = on_request;
    endpoint->server = server;
}

static bool same(h2o_iovec_t value, const char *text)
{
    return h2o_memis(value.base, value.len, text, strlen(text));
}

static h2o_iovec_t header(h2o_req_t *request, const char *name)
{
    ssize_t at = h2o_find_header_by_str(&request->headers, name, strlen(name), -1);
    return at == -1 ? h2o_iovec_init(NULL, 0) : request->headers.entries[at].value;
}

static void refuse(h2o_req_t *request, int status, int code, const char *message)
{
    reply_json(request, status, rpc_error(NULL, code, message));
}

/* A page of some other site that a person visits must not reach a server on their machine. */
static bool is_loopback_origin(h2o_iovec_t origin)
{
    static const char *const allowed[] = {"http://localhost", "https://localhost",
                                          "http://127.0.0.1", "https://127.0.0.1",
                                          "http://[::1]",     "https://[::1]"};
    for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++) {
        size_t length = strlen(allowed[i]);
        if (origin.len >= length && memcmp(origin.base, allowed[i], length) == 0 &&
            (origin.len == length || origin.base[length] == ':'))
            return true;
    }
    return false;
}

static int on_request(h2o_handler_t *handler, h2o_req_t *request)
{
    struct server *server = H2O_STRUCT_FROM_MEMBER(struct endpoint, super, handler)->server;
    h2o_iovec_t origin = header(request, "origin");
    if (!same(request->path_normalized, ENDPOINT_PATH)) {
        refuse(request, 404, RPC_INVALID_REQUEST, "Not found: the endpoint is " ENDPOINT_PATH);
    } else if (origin.base != NULL && !is_loopback_origin(origin)) {
        refuse(request, 403, RPC_INVALID_REQUEST, "This Origin may not call this server");
    } else if (same(request->method, "POST")) {
        on_post(server, request);
    } else if (same(request->method, "GET")) {
        on_get(server, request);
    } else if (same(request->method, "DELETE")) {
        on_delete(server, request);
    } else {
        h2o_add_header(&request->pool, &request->res.headers, H2O_TOKEN_ALLOW, NULL,
                       H2O_STRLIT("GET, POST, DELETE"));
        refuse(request, 405, RPC_INVALID_REQUEST, "Use POST, GET or DELETE");
    }
    return 0;
}

/* The session the request names, or NULL after the refusal was sent. */
static struct session *need_session(struct server *server, h2o_req_t *request)
{
    h2o_iovec_t version = header(request, "mcp-protocol-version");
    if (version.base != NULL && !methods_know_version(version.base, version.len)) {
        refuse(request, 400, RPC_BAD_SESSION, "Unsupported MCP-Protocol-Version");
        return NULL;
    }
    h2o_iovec_t id = header(request, "mcp-session-id");
    if (id.base == NULL) {
        refuse(request, 400, RPC_BAD_SESSION, "Mcp-Session-Id is missing: initialize first");
        return NULL;
    }
    struct session *session = session_find(&server->sessions, id.base, id.len);
    if (session == NULL)
        refuse(request, 404, RPC_BAD_SESSION, "Unknown session: initialize again");
    return session;
}

static void on_get(struct server *server, h2o_req_t *request)
{
    if (!reply_accepts(request, "text/event-stream")) {
        refuse(request, 406, RPC_INVALID_REQUEST,
               "GET opens an event stream: accept text/event-stream");
        return;
    }
    struct session *session = need_session(server, request);
    if (session != NULL)
        session_listen(server, session, request);
}

static void on_delete(struct server *server, h2o_req_t *request)
{
    struct session *session = need_session(server, request);
    if (session == NULL)
        return;
    session_end(&server->sessions, session);
    reply_empty(request, 200);
}

static bool is_json(h2o_iovec_t type)
{
    static const char json[] = "application/json";
    size_t length = strlen(json);
    return type.len >= length && h2o_lcstris(type.base, length, json, length) &&
           (type.len == length || type.base[length] == ';' || type.base[length] == ' ');
}

/* The message in the body, or NULL after the refusal was sent. */
static json_t *read_message(h2o_req_t *request)
{
    if (!is_json(header(request, "content-type"))) {
        refuse(request, 415, RPC_INVALID_REQUEST, "Content-Type must be application/json");
        return NULL;
    }
    json_error_t error;
    json_t *message = json_loadb(request->entity.base != NULL ? request->entity.base : "",
                                 request->entity.len, JSON_REJECT_DUPLICATES, &error);
    if (message == NULL) {
        refuse(request, 400, RPC_PARSE_ERROR, error.text);
        return NULL;
    }
    const char *version = json_string_value(json_object_get(message, "jsonrpc"));
    json_t *id = json_object_get(message, "id");
    json_t *method = json_object_get(message, "method");
    if (version == NULL || strcmp(version, "2.0") != 0 ||
        (id != NULL && !json_is_string(id) && !json_is_number(id)) ||
        (method == NULL ? id == NULL : !json_is_string(method))) {
        refuse(request, 400, RPC_INVALID_REQUEST,
               "The body must be one JSON-RPC 2.0 message; there are no batches");
        json_decref(message);
        return NULL;
    }
    return message;
}

static void dispatch(struct server *server, h2o_req_t *request, json_t *message)
{
    const char *method = json_string_value(json_object_get(message, "method"));
    bool is_request = method != NULL && json_object_get(message, "id") != NULL;
    if (is_request && strcmp(method, "initialize") == 0) {
        methods_initialize(server, request, message);
        return;
    }
    /* Newer clients probe without a session, and fall back when the method is not known. */
    if (is_request && !methods_know(method)) {
        bool in_session = header(request, "mcp-session-id").base != NULL;
        reply_json(
            request, in_session ? 200 : 400,
            rpc_error(json_object_get(message, "id"), RPC_METHOD_NOT_FOUND, "Method not found"));
        return;
    }
    struct session *session = need_session(server, request);
    if (session == NULL)
        return;
    if (is_request)
        methods_answer(server, session, request, message);
    else
        methods_take(session, request, message);
}

static void on_post(struct server *server, h2o_req_t *request)
{
    json_t *message = read_message(request);
    if (message == NULL)
        return;
    dispatch(server, request, message);
    json_decref(message);
}
