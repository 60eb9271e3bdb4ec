/* The gates that look at the HTTP request: where it goes, where it is from, how often, and its
 * message. */
#include <stdlib.h>
#include <string.h>

#include "auth/token_check.h"
#include "call/authorization.h"
#include "call/call_span.h"
#include "call/headers.h"
#include "conversation/relay.h"
#include "gates.h"
#include "rate_limit.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/http/guard.h"

/* ---- refusals before the call arrives ---- */

static enum gate_verdict refuse(struct call *call, int status, const char *why)
{
    OWNED_BUFFER(body);
    buffer_append_format(&body, "%s\n", why);
    http_respond_text(call->exchange, status, "text/plain; charset=utf-8", buffer_str(&body));
    call_unref(call);
    return GATE_ANSWERED;
}

/* The message has not been read, so the refusal has no id. */
static void door_write_refusal(struct buffer *body, enum jsonrpc_error error, struct str message,
                               const struct jsonrpc_error_data *data)
{
    metrics_count(METRIC_ERRORS, str_from(jsonrpc_error_type(error)), STR_EMPTY);
    jsonrpc_write_error(body, STR_EMPTY, error, message, data);
}

void gates_write_refusal(int status, struct buffer *body)
{
    if (status == 413) {
        const struct jsonrpc_error_data data = {
            .hint = STR("Send less at once, or have limits.body_bytes raised.")};
        metrics_count(METRIC_LIMITS_REACHED, STR("body_bytes"));
        door_write_refusal(body, JSONRPC_TOO_LARGE, STR_EMPTY, &data);
    } else {
        door_write_refusal(
            body, JSONRPC_INVALID_REQUEST,
            STR("The HTTP request can be read in two ways: a header goes on in the next line, "
                "or the body's length is not clear"),
            NULL);
    }
}

enum gate_verdict gate_host(struct call *call)
{
    const struct config *config = call->snapshot->config;
    return http_guard_allows_host(call->exchange, config->proxy_allowed_hosts.items,
                                  config->proxy_allowed_hosts.count)
               ? GATE_PASSED
               : refuse(call, 403, "This Host is not allowed here; see proxy.allowed_hosts.");
}

enum gate_verdict gate_origin(struct call *call)
{
    const struct config *config = call->snapshot->config;
    return http_guard_allows_origin(call->exchange, config->proxy_allowed_origins.items,
                                    config->proxy_allowed_origins.count)
               ? GATE_PASSED
               : refuse(call, 403, "This Origin is not allowed here; see proxy.allowed_origins.");
}

/* The gateway judges a request by its first Authorization, session and type, and the server must
 * read the same (behaviour 1.1). */
enum gate_verdict gate_repeated_headers(struct call *call)
{
    enum http_name repeated = http_header_repeated(call->exchange);
    const char *name = http_name_text(repeated);
    /* The error for a repeated version depends on the body. Repeated tokens are refused as a bad
     * one is, where tokens are verified. */
    if (!name ||
        (call->source && call->source->auth.issuer && repeated == HTTP_NAME_AUTHORIZATION) ||
        (call->is_post && repeated == HTTP_NAME_MCP_PROTOCOL_VERSION))
        return GATE_PASSED;
    log_warn("Request refused: duplicate header", LOG_TEXT("header", name));
    return refuse(call, 400, "A header that must be there once is there twice.");
}

static enum gate_verdict limit_rate(struct call *call, struct seen_table *rate_limit,
                                    struct str whose, int64_t per_second, const char *limit)
{
    const struct http_header headers[] = {{STR("retry-after"), STR("1")},
                                          {STR("content-type"), STR("application/json")}};
    const struct jsonrpc_error_data data = {.retry_after = 1};
    struct buffer body;
    if (rate_limit_allows(rate_limit, whose, per_second, http_received_ms(call->exchange)))
        return GATE_PASSED;
    buffer_init(&body);
    metrics_count(METRIC_LIMITS_REACHED, str_from(limit));
    door_write_refusal(&body, JSONRPC_RATE_LIMITED, STR_EMPTY, &data);
    http_respond(call->exchange, 429, headers, 2, buffer_str(&body));
    buffer_finish(&body);
    call_unref(call);
    return GATE_ANSWERED;
}

enum gate_verdict gate_address_rate(struct call *call)
{
    int64_t per_second = call->snapshot->config->limits.requests_per_second;
    if (per_second <= 0)
        return GATE_PASSED;
    return limit_rate(call, call->worker->gateway->rate_limit, http_peer(call->exchange),
                      per_second, "requests_per_second");
}

enum gate_verdict gate_source(struct call *call)
{
    bool is_shown = call->source && (call->source->enabled || call->is_post || call->is_relayed);
    return is_shown ? GATE_PASSED : refuse(call, 404, "No MCP server is behind this path.");
}

/* A client with neither token nor session is known by its address alone. */
enum gate_verdict gate_principal_rate(struct call *call)
{
    int64_t per_second = call->snapshot->config->limits.requests_per_second_per_principal;
    struct str token = STR_EMPTY, session;
    char digest[DIGEST_HEX_BYTES];
    if (per_second <= 0)
        return GATE_PASSED;
    session = http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID);
    if (call->source->identity != IDENTITY_SESSION)
        token = http_header_known(call->exchange, HTTP_NAME_AUTHORIZATION);
    if (token.length > 0)
        authorization_digest(token, digest);
    else if (session.length > 0)
        digest_sha256_hex(session, digest);
    else
        return GATE_PASSED;
    return limit_rate(call, call->worker->gateway->principal_rate_limit, str_from(digest),
                      per_second, "requests_per_second_per_principal");
}

enum gate_verdict gate_arrival(struct call *call)
{
    bool is_stream = !call->is_relayed && str_equal(http_method(call->exchange), STR("GET"));
    if (is_stream && atomic_load(&call->worker->gateway->shutting_down))
        return refuse(call, 503, "The gateway is shutting down.");
    call_begin(call);
    return GATE_PASSED;
}

/* ---- the metadata of a protected resource ---- */

/* It lives on the server's own origin, whatever path its MCP endpoint has. */
static void relay_metadata(struct call *call)
{
    static const struct looks looks = {0};
    struct str url = str_from(call->source->url), scheme, rest, authority, path;
    str_cut(url, '/', &scheme, &rest);
    rest = str_slice(rest.bytes + 1, rest.length - 1); /* behind "//" */
    bool has_path = str_cut(rest, '/', &authority, &path);
    struct str asked = http_path(call->exchange);
    bool whole = asked.length > strlen(METADATA_PATH);
    char *target = memory_format("%.*s//%.*s%s%s%.*s", STR_ARGS(scheme), STR_ARGS(authority),
                                 METADATA_PATH, whole && has_path ? "/" : "",
                                 whole ? (int)path.length : 0, path.length ? path.bytes : "");
    call_identify(call);
    relay_start(call, &looks, &(struct carried){.url = target});
    free(target);
}

enum gate_verdict gate_metadata(struct call *call)
{
    if (!call->is_metadata)
        return GATE_PASSED;
    if (!str_equal(http_method(call->exchange), STR("GET")))
        call_answer_wrong_verb(call, "GET");
    else if (call->source->auth.issuer)
        token_answer_metadata(call);
    else
        relay_metadata(call);
    return GATE_ANSWERED;
}

/* ---- the message ---- */

static enum gate_verdict refuse_type(struct call *call)
{
    OWNED_BUFFER(body);
    door_write_refusal(&body, JSONRPC_INVALID_REQUEST, STR("Content-Type must be application/json"),
                       NULL);
    call_answer_status(call, 415, buffer_str(&body));
    return GATE_ANSWERED;
}

static enum gate_verdict refuse_message(struct call *call, enum envelope_status status,
                                        const struct error *error)
{
    enum jsonrpc_error code = status == ENVELOPE_INVALID_REQUEST  ? JSONRPC_INVALID_REQUEST
                              : status == ENVELOPE_INVALID_PARAMS ? JSONRPC_INVALID_PARAMS
                                                                  : JSONRPC_PARSE_ERROR;
    struct buffer text;
    log_warn("Request refused", LOG_TEXT("reason", error->message));
    if (call->envelope.id.length > 0 && status != ENVELOPE_PARSE_ERROR) {
        call->envelope.kind = ENVELOPE_REQUEST;
        call_answer_error(call, code, str_from(error->message), NULL);
        return GATE_ANSWERED;
    }
    buffer_init(&text);
    jsonrpc_write_error(&text, STR_EMPTY, code, str_from(error->message), NULL);
    call_answer_status(call, 400, buffer_str(&text));
    buffer_finish(&text);
    return GATE_ANSWERED;
}

enum gate_verdict gate_body(struct call *call)
{
    struct error error;
    error.message[0] = '\0'; /* the rest need not be cleared for each request */
    if (!headers_are_plain_json(call->exchange))
        return refuse_type(call);
    enum envelope_status status = envelope_read(&call->envelope, http_body(call->exchange), &error);
    if (status != ENVELOPE_OK)
        return refuse_message(call, status, &error);
    if (telemetry_is_on)
        call_span_start(call);
    return GATE_PASSED;
}
