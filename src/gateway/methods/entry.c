/* The way of a request on the proxy port: source, verb, envelope, then the method's file. */
#include "entry.h"

#include <stdlib.h>
#include <string.h>

#include "auth/token_answer.h"
#include "auth/token_check.h"
#include "auth/token_exchange.h"
#include "bridge_check.h"
#include "bridged.h"
#include "call/authorization.h"
#include "call/call.h"
#include "call/call_counters.h"
#include "call/call_span.h"
#include "call/header_check.h"
#include "era_check.h"
#include "input/input_request.h"
#include "methods.h"
#include "rate_limit.h"
#include "relay/relay.h"
#include "replicas/home.h"
#include "replicas/news.h"
#include "replicas/relayed.h"
#include "session_end.h"
#include "skill_contents.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/http/guard.h"
#include "taskgate/policy/gate.h"

/* ---- which source a path names ---- */

/* One source: /, /mcp, /mcp/v1 and /<id>/mcp. Several: only /<id>/mcp. */
static const struct config_source *source_of_path(const struct config *config, struct str path)
{
    if (config->source_count == 1 && (str_equal(path, STR("/")) || str_equal(path, STR("/mcp")) ||
                                      str_equal(path, STR("/mcp/v1"))))
        return &config->sources[0];
    if (path.length <= strlen("//mcp") || !str_ends_with(path, STR("/mcp")))
        return NULL;
    return config_source_find(config, str_slice(path.bytes + 1, path.length - strlen("//mcp")));
}

/* RFC 9728: the metadata of /<path> is at METADATA_PATH/<path>. */
static const struct config_source *source_of_metadata(const struct config *config, struct str path)
{
    struct str rest =
        str_slice(path.bytes + strlen(METADATA_PATH), path.length - strlen(METADATA_PATH));
    if (rest.length == 0)
        return config->source_count == 1 ? &config->sources[0] : NULL;
    return source_of_path(config, rest);
}

/* ---- refusals before there is a call ---- */

static void refuse(struct http_exchange *exchange, int status, const char *why)
{
    struct buffer body;
    buffer_init(&body);
    buffer_append_format(&body, "%s\n", why);
    http_respond_text(exchange, status, "text/plain; charset=utf-8", buffer_str(&body));
    buffer_finish(&body);
}

/* The request has not been read, so the refusal has no id. */
static void write_refusal(struct buffer *body, enum jsonrpc_error error, struct str message,
                          const struct jsonrpc_error_data *data)
{
    metrics_count(METRIC_ERRORS, str_from(jsonrpc_error_type(error)), STR_EMPTY);
    jsonrpc_write_error(body, STR_EMPTY, error, message, data);
}

void entry_write_refusal(int status, struct buffer *body)
{
    if (status == 413) {
        const struct jsonrpc_error_data data = {
            .hint = STR("Send less at once, or have limits.body_bytes raised.")};
        metrics_count(METRIC_LIMITS_REACHED, STR("body_bytes"));
        write_refusal(body, JSONRPC_TOO_LARGE, STR_EMPTY, &data);
    } else {
        write_refusal(
            body, JSONRPC_INVALID_REQUEST,
            STR("The HTTP request can be read in two ways: a header goes on in the next line, "
                "or the body's length is not clear"),
            NULL);
    }
}

static bool passes_guard(struct http_exchange *exchange, const struct config *config)
{
    if (!http_guard_allows_host(exchange, config->proxy_allowed_hosts.items,
                                config->proxy_allowed_hosts.count)) {
        refuse(exchange, 403, "This Host is not allowed here; see proxy.allowed_hosts.");
        return false;
    }
    if (!http_guard_allows_origin(exchange, config->proxy_allowed_origins.items,
                                  config->proxy_allowed_origins.count)) {
        refuse(exchange, 403, "This Origin is not allowed here; see proxy.allowed_origins.");
        return false;
    }
    return true;
}

static bool is_clear(struct http_exchange *exchange, const struct config_source *source)
{
    const char *repeated = header_check_repeated_header(exchange);
    bool is_message = str_equal(http_method(exchange), STR("POST"));
    /* The error for a repeated version depends on the body. Repeated tokens are refused as a bad
     * one is, where tokens are verified. */
    if (!repeated ||
        (source && source->auth.issuer &&
         http_header_repeated(exchange) == HTTP_NAME_AUTHORIZATION) ||
        (is_message && http_header_repeated(exchange) == HTTP_NAME_MCP_PROTOCOL_VERSION))
        return true;
    log_warn("Request refused: a header stands there twice", LOG_TEXT("header", repeated));
    refuse(exchange, 400, "A header that must be there once is there twice.");
    return false;
}

static void refuse_rate(struct http_exchange *exchange, const char *limit)
{
    const struct http_header headers[] = {{STR("retry-after"), STR("1")},
                                          {STR("content-type"), STR("application/json")}};
    const struct jsonrpc_error_data data = {.retry_after = 1};
    struct buffer body;
    buffer_init(&body);
    metrics_count(METRIC_LIMITS_REACHED, str_from(limit));
    write_refusal(&body, JSONRPC_RATE_LIMITED, STR_EMPTY, &data);
    http_respond(exchange, 429, headers, 2, buffer_str(&body));
    buffer_finish(&body);
}

static bool passes_rate(struct gateway *gateway, struct http_exchange *exchange,
                        const struct config *config)
{
    int64_t per_second = config->limits.requests_per_second;
    if (per_second <= 0 || rate_limit_allows(gateway->rate_limit, http_peer(exchange), per_second,
                                             http_received_ms(exchange)))
        return true;
    refuse_rate(exchange, "requests_per_second");
    return false;
}

/* A client with neither token nor session is known by its address alone. */
static bool passes_principal_rate(struct gateway *gateway, struct http_exchange *exchange,
                                  const struct config *config, const struct config_source *source)
{
    int64_t per_second = config->limits.requests_per_second_per_principal;
    if (per_second <= 0)
        return true;
    struct str token = STR_EMPTY, session = http_header(exchange, "mcp-session-id");
    if (source->identity != IDENTITY_SESSION)
        token = http_header(exchange, "authorization");
    char digest[DIGEST_HEX_BYTES];
    if (token.length > 0)
        authorization_digest(token, digest);
    else if (session.length > 0)
        digest_sha256_hex(session, digest);
    else
        return true;
    if (rate_limit_allows(gateway->principal_rate_limit, str_from(digest), per_second,
                          http_received_ms(exchange)))
        return true;
    refuse_rate(exchange, "requests_per_second_per_principal");
    return false;
}

/* ---- POST: one JSON-RPC message ---- */

static void answer_bad_request(struct call *call, enum jsonrpc_error error, struct str message)
{
    struct buffer text;
    buffer_init(&text);
    jsonrpc_write_error(&text, STR_EMPTY, error, message, NULL);
    call_answer_status(call, 400, buffer_str(&text));
    buffer_finish(&text);
}

/* Reads the envelope. False when it is bad: the call is answered then. */
static bool read_envelope(struct call *call)
{
    struct error error = {""};
    enum envelope_status status = envelope_read(&call->envelope, http_body(call->exchange), &error);
    enum jsonrpc_error code = JSONRPC_PARSE_ERROR;
    switch (status) {
    case ENVELOPE_OK:
        return true;
    case ENVELOPE_PARSE_ERROR:
        break;
    case ENVELOPE_INVALID_REQUEST:
        code = JSONRPC_INVALID_REQUEST;
        break;
    case ENVELOPE_INVALID_PARAMS:
        code = JSONRPC_INVALID_PARAMS;
        break;
    }
    log_warn("Request refused", LOG_TEXT("reason", error.message));
    if (call->envelope.id.length > 0 && status != ENVELOPE_PARSE_ERROR) {
        call->envelope.kind = ENVELOPE_REQUEST;
        call_answer_error(call, code, str_from(error.message), NULL);
    } else {
        answer_bad_request(call, code, str_from(error.message));
    }
    return false;
}

static void dispatch(struct call *call)
{
    static const struct {
        call_step legacy, modern;
    } handlers[] = {
#define MCP_TREATMENT_ROW(symbol, legacy, modern) [MCP_##symbol] = {legacy, modern},
#include "taskgate/mcp/method_table.h"
#undef MCP_TREATMENT_ROW
    };
    call->method = mcp_method_find(call->envelope.method, call->dialect->era);
    enum mcp_treatment treatment = call->method->treatment;
    call_counters_came(call->method, call->envelope.body.length);
    if (treatment != MCP_TOOLS_CALL)
        call_identify(call);
    bool may_be_silent =
        treatment == MCP_RELAY || treatment == MCP_UNKNOWN || treatment == MCP_TOOLS_CALL;
    if (call->envelope.kind == ENVELOPE_NOTIFICATION && !may_be_silent)
        call_answer(call, STR_EMPTY); /* nobody waits for the answer, so nothing is asked */
    else if (call->dialect->era == MCP_ERA_MODERN)
        handlers[treatment].modern(call);
    else if (call->is_bridged)
        bridged_handle(call, handlers[treatment].legacy);
    else
        handlers[treatment].legacy(call);
}

static void refuse_type(struct call *call)
{
    struct buffer body;
    buffer_init(&body);
    write_refusal(&body, JSONRPC_INVALID_REQUEST, STR("Content-Type must be application/json"),
                  NULL);
    call_answer_status(call, 415, buffer_str(&body));
    buffer_finish(&body);
}

static void handle_verb(struct call *call);

static void handle_message(struct call *call)
{
    if (!call->source->enabled) {
        struct jsonrpc_error_data data = {.gate =
                                              str_from(policy_gate_name(POLICY_GATE_VISIBILITY))};
        call_answer_error(call, JSONRPC_NOT_EXPOSED, STR_EMPTY, &data);
    } else if (call->envelope.kind == ENVELOPE_RESPONSE) {
        if (call->is_bridged)
            bridged_handle_response(call);
        else if (!input_take_response(call))
            relay_plainly_handle(call); /* to a request of upstream's, in this session */
    } else {
        dispatch(call);
    }
}

/* Its server sees no token of the client (`upstream: drop`), so only the gateway can tell that a
 * session is not this subject's. An unknown one gets the 404 on which clients begin anew. */
static void refuse_session(struct call *call)
{
    struct buffer text;
    buffer_init(&text);
    log_warn("Request refused: the session is not known as this subject's",
             LOG_TEXT("source", call->source->id));
    jsonrpc_write_error(&text, STR_EMPTY, JSONRPC_INVALID_REQUEST, STR("Session not found"), NULL);
    call_answer_status(call, 404, buffer_str(&text));
    buffer_finish(&text);
}

/* The owner of the session is unknown. */
static void answer_no_store(struct call *call)
{
    const struct jsonrpc_error_data data = {.details = STR("the session cannot be looked up"),
                                            .retry_after = 5};
    struct buffer text;
    buffer_init(&text);
    jsonrpc_write_error(&text, call->envelope.id, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
    call_answer_status(call, 503, buffer_str(&text));
    buffer_finish(&text);
}

static void handle_request(struct call *call)
{
    if (str_equal(http_method(call->exchange), STR("POST")))
        handle_message(call);
    else
        handle_verb(call);
}

static void handle_known(struct call *call)
{
    if (token_exchange_is_due(call->source))
        token_exchange_then(call, handle_request);
    else
        handle_request(call);
}

static void check_session(struct call *call)
{
    if (call->facts.known)
        handle_known(call);
    else if (call->facts_failed)
        answer_no_store(call);
    else
        refuse_session(call);
}

static bool needs_session_check(const struct call *call)
{
    return call->identity && call->dialect->has_sessions &&
           http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID).length > 0;
}

static void handle_read_here(struct call *call)
{
    if (needs_session_check(call)) {
        call_identify(call);
        call_with_facts(call, check_session);
    } else {
        handle_known(call);
    }
}

static void handle_read(struct call *call)
{
    home_then(call, handle_read_here);
}

static void handle_post(struct call *call)
{
    if (!header_check_is_plain_json(call->exchange)) {
        refuse_type(call);
    } else if (read_envelope(call)) {
        if (telemetry_is_on)
            call_span_start(call);
        era_check_then(call, handle_read);
    }
}

/* ---- GET, DELETE, metadata ---- */

static void answer_wrong_verb(struct call *call, const char *allowed)
{
    struct http_exchange *exchange = call->exchange;
    struct http_header allow = {STR("allow"), str_from(allowed)};
    call->outcome = "error";
    http_on_gone(exchange, NULL, NULL);
    call_ended(call);
    http_respond(exchange, 405, &allow, 1, STR_EMPTY);
}

static void note_stream(struct call *call, int status, const struct headers *headers)
{
    catalog_note_stream(call->worker->gateway->catalog, call->source, status,
                        loop_now_ms(call->worker->loop));
}

static void open_stream(struct call *call)
{
    struct relay_options options = {
        .open_stream = true, .take_message = input_take_from_stream, .head = note_stream};
    if (http_header(call->exchange, "last-event-id").length > 0) {
        options.rewrite = lists_rewrite_resumed;
        options.replace_result = skill_contents_refuse_late;
    }
    if (atomic_load(&call->worker->gateway->shutting_down))
        call_answer_status(call, 503, STR_EMPTY);
    else if (catalog_lacks_stream(call->worker->gateway->catalog, call->source,
                                  loop_now_ms(call->worker->loop)))
        answer_wrong_verb(call, "POST, DELETE");
    else
        relay_start(call, &options);
}

/* The metadata lives on upstream's own origin, whatever path its MCP endpoint has. */
static void relay_metadata(struct call *call)
{
    struct str url = str_from(call->source->url), scheme, rest, authority, path;
    str_cut(url, '/', &scheme, &rest);
    rest = str_slice(rest.bytes + 1, rest.length - 1); /* behind "//" */
    bool has_path = str_cut(rest, '/', &authority, &path);
    struct str asked = http_path(call->exchange);
    bool whole = asked.length > strlen(METADATA_PATH);
    char *target = memory_format("%.*s//%.*s%s%s%.*s", STR_ARGS(scheme), STR_ARGS(authority),
                                 METADATA_PATH, whole && has_path ? "/" : "",
                                 whole ? (int)path.length : 0, path.length ? path.bytes : "");
    struct relay_options options = {.url = target};
    relay_start(call, &options);
    free(target);
}

/* ---- the door ---- */

static void handle_verb(struct call *call)
{
    struct str method = http_method(call->exchange);
    call_identify(call);
    bridge_check(call);
    if (call->is_bridged)
        bridged_handle_verb(call);
    else if (!era_check_has_sessions(call))
        answer_wrong_verb(call, "POST");
    else if (str_equal(method, STR("GET")))
        call_with_facts(call, open_stream);
    else if (str_equal(method, STR("DELETE")))
        session_end_handle(call);
    else
        answer_wrong_verb(call, "GET, POST, DELETE");
}

static void handle(struct call *call)
{
    if (str_equal(http_method(call->exchange), STR("POST")))
        handle_post(call);
    else
        handle_read(call);
}

static void handle_metadata(struct call *call)
{
    if (!str_equal(http_method(call->exchange), STR("GET"))) {
        answer_wrong_verb(call, "GET");
    } else if (call->source->auth.issuer) {
        token_answer_metadata(call);
    } else {
        call_identify(call);
        relay_metadata(call);
    }
}

/* The checks that do not need the caller's identity. */
static bool passes_door(struct gateway *gateway, struct http_exchange *exchange,
                        const struct config *config, const struct config_source *source)
{
    bool post = str_equal(http_method(exchange), STR("POST"));
    if (!passes_guard(exchange, config) || !is_clear(exchange, source) ||
        !passes_rate(gateway, exchange, config))
        return false;
    if (!source || (!source->enabled && !post)) {
        refuse(exchange, 404, "No MCP server is behind this path.");
        return false;
    }
    if (!passes_principal_rate(gateway, exchange, config, source))
        return false;
    if (str_equal(http_method(exchange), STR("GET")) && atomic_load(&gateway->shutting_down)) {
        refuse(exchange, 503, "The gateway is shutting down.");
        return false;
    }
    return true;
}

static void begin(struct call *call, bool is_metadata)
{
    if (is_metadata)
        handle_metadata(call);
    else if (call->source->auth.issuer)
        token_check_then(call, handle);
    else
        handle(call);
}

void entry_handle(struct gateway_worker *worker, struct http_exchange *exchange)
{
    struct str path = http_path(exchange);
    struct snapshot *snapshot = snapshot_current();
    bool metadata =
        str_equal(path, STR(METADATA_PATH)) || str_starts_with(path, STR(METADATA_PATH "/"));
    const struct config_source *source = metadata ? source_of_metadata(snapshot->config, path)
                                                  : source_of_path(snapshot->config, path);
    if (!passes_door(worker->gateway, exchange, snapshot->config, source)) {
        snapshot_unref(snapshot);
        return;
    }
    begin(call_create(worker, exchange, snapshot, source), metadata);
}

/* The other replica has looked at Host, Origin and the rates of its client. */
void entry_handle_relayed(struct gateway_worker *worker, struct http_exchange *exchange)
{
    if (news_take(worker, exchange) || !relayed_is_good(worker, exchange))
        return;
    struct snapshot *snapshot = snapshot_current();
    const struct config_source *source = source_of_path(snapshot->config, http_path(exchange));
    if (!source)
        refuse(exchange, 404, "No MCP server is behind this path.");
    if (!source || !is_clear(exchange, source)) {
        snapshot_unref(snapshot);
        return;
    }
    struct call *call = call_create(worker, exchange, snapshot, source);
    call->is_relayed = true;
    begin(call, false);
}
