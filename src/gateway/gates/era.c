/*
 * The gate of the era: which dialect the call gets, and the refusal of a modern request that is
 * incomplete or disagrees with its headers (MCP 2026-07-28, basic "Requests",
 * transports/streamable-http "Server Validation").
 */
#include "taskgate/mcp/era.h"
#include "client/legacy.h"
#include "client/modern.h"
#include "gates.h"
#include "server/probe.h"
#include "state/source_eras.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/task/task.h"

/* The revisions that a legacy server may negotiate, newest first. */
#define LEGACY_VERSIONS "[\"2025-11-25\",\"2025-06-18\",\"2025-03-26\"]"

static struct mirrored_header header_of(const struct http_exchange *exchange, enum http_name name)
{
    struct str value = http_header_known(exchange, name);
    if (!value.bytes)
        return (struct mirrored_header){.count = 0};
    return (struct mirrored_header){value, http_header_is_repeated(exchange, name) ? 2 : 1};
}

/* Some clients of tasks never send Mcp-Name. The gateway itself answers these requests, so no load
 * balancer behind it goes by the header. */
static bool may_lack_name(const struct call *call)
{
    const struct envelope *envelope = &call->envelope;
    struct str name = json_member(envelope->reserved.client_info, "name");
    OWNED_BUFFER(decoded);
    if (!task_id_is_ours(envelope->task_id.text) ||
        mcp_method_find(envelope->method, MCP_ERA_MODERN)->mirrored != MCP_MIRRORED_TASK_ID ||
        !json_decode_string(name, &decoded)) {
        return false;
    }
    const struct config_client *client =
        config_client_find(call->snapshot->config, buffer_str(&decoded));
    return client && client->lenient_headers;
}

/* ---- refusals ---- */

static enum gate_verdict refuse(struct call *call, const struct mcp_era_fault *fault)
{
    struct jsonrpc_error_data data = {.details = str_from(fault->message)};
    if (fault->header) {
        OWNED_BUFFER(text);
        buffer_append_format(&text, "%s %s", fault->header, fault->message);
        metrics_count(METRIC_HEADER_MISMATCHES, str_from(fault->header));
        log_warn("Request refused: a header does not say what the body says",
                 LOG_TEXT("source", call->source->id), LOG_TEXT("header", fault->header),
                 LOG_TEXT("reason", fault->message));
        data.details = buffer_str(&text);
        call_answer_error(call, fault->error, STR_EMPTY, &data);
        return GATE_ANSWERED;
    }
    if (fault->error == JSONRPC_UNSUPPORTED_VERSION) {
        data.details = STR_EMPTY;
        data.supported = source_eras_serves_modern(call->worker->gateway->eras, call->source,
                                                   loop_now_ms(call->worker->loop))
                             ? STR("[\"" MCP_VERSION_MODERN "\"]")
                             : STR(LEGACY_VERSIONS);
        data.requested = call->envelope.reserved.version;
    }
    call_answer_error(call, fault->error, STR_EMPTY, &data);
    return GATE_ANSWERED;
}

/* A client that sends two versions is understood in two ways, whatever its era. */
static enum gate_verdict refuse_repeated_version(struct call *call)
{
    const struct http_header type = {STR("content-type"), STR("text/plain; charset=utf-8")};
    log_warn("Request refused: duplicate header", LOG_TEXT("header", "mcp-protocol-version"));
    call_respond(call, 400, &type, 1, STR("A header that must be there once is there twice.\n"));
    return GATE_ANSWERED;
}

/* ---- the eras ---- */

static enum gate_verdict check_legacy(struct call *call)
{
    if (http_header_is_repeated(call->exchange, HTTP_NAME_MCP_PROTOCOL_VERSION))
        return refuse_repeated_version(call);
    /* They were not compared with the body, and a load balancer might go by them. */
    http_headers_drop(call->exchange, HTTP_NAME_MIRRORS_BODY);
    bridge_check(call);
    return GATE_PASSED;
}

/* The source speaks the modern era, or could not be asked: then its own answer will tell. */
static enum gate_verdict check_modern(struct call *call)
{
    struct mcp_era_fault fault;
    const struct http_exchange *exchange = call->exchange;
    struct mcp_mirrored_headers headers = {
        .version = header_of(exchange, HTTP_NAME_MCP_PROTOCOL_VERSION),
        .method = header_of(exchange, HTTP_NAME_MCP_METHOD),
        .name = header_of(exchange, HTTP_NAME_MCP_NAME),
    };
    if (headers.name.count == 0 && may_lack_name(call))
        headers.name = (struct mirrored_header){call->envelope.task_id.text, 1};
    if (!mcp_era_check(&call->envelope, &headers, &fault))
        return refuse(call, &fault);
    http_headers_drop(call->exchange, HTTP_NAME_OF_SESSION);
    return GATE_PASSED;
}

static enum gate_verdict check_modern_at_legacy_server(struct call *call)
{
    const struct mcp_era_fault fault = {.error = JSONRPC_UNSUPPORTED_VERSION, .message = ""};
    if (source_eras_bridge_down(call->worker->gateway->eras, call->source,
                                loop_now_ms(call->worker->loop))) {
        call->carrier = &modern_client_carrier;
        return check_modern(call);
    }
    if (!str_equal(call->envelope.method, STR("server/discover")))
        return refuse(call, &fault);
    /* The probe with which dual-era clients begin: on its answer all of them become legacy. */
    call->dialect = &dialect_legacy;
    call->method = mcp_method_find(call->envelope.method, MCP_ERA_LEGACY);
    http_headers_drop(call->exchange, HTTP_NAME_MIRRORS_BODY);
    return GATE_PASSED;
}

static void on_probed(struct call *call)
{
    unsigned served;
    bool is_known = source_eras_find(call->worker->gateway->eras, call->source,
                                     loop_now_ms(call->worker->loop), &served);
    bool is_legacy = is_known && !(served & CONFIG_ERA_MODERN);
    if ((is_legacy ? check_modern_at_legacy_server(call) : check_modern(call)) == GATE_PASSED)
        gates_go_on(call);
}

static enum gate_verdict check_claim(struct call *call)
{
    unsigned served;
    call->dialect = &dialect_modern;
    if (call->envelope.kind == ENVELOPE_NOTIFICATION) {
        call_answer(call, STR_EMPTY); /* the era has none of a client's over HTTP */
        return GATE_ANSWERED;
    }
    if (!source_eras_find(call->worker->gateway->eras, call->source,
                          loop_now_ms(call->worker->loop), &served)) {
        era_probe_then(call, on_probed);
        return GATE_WAITS;
    }
    return served & CONFIG_ERA_MODERN ? check_modern(call) : check_modern_at_legacy_server(call);
}

/* Only the legacy era has other requests than messages. */
enum gate_verdict gate_era(struct call *call)
{
    struct str version = http_header_known(call->exchange, HTTP_NAME_MCP_PROTOCOL_VERSION);
    struct mcp_era_fault fault;
    if (!call->is_post) {
        bridge_check(call);
        return GATE_PASSED;
    }
    switch (mcp_era_claim(&call->envelope, version)) {
    case MCP_CLAIM_LEGACY:
        return check_legacy(call);
    case MCP_CLAIM_MODERN:
        return check_claim(call);
    case MCP_CLAIM_HALF:
        break;
    }
    call->dialect = &dialect_modern;
    mcp_era_refuse_half(&call->envelope, &fault);
    return refuse(call, &fault);
}
