/* The era of a request, and whether its source serves that one. */
#include "era_check.h"

#include "bridge_check.h"
#include "mcp_client/era_probe.h"
#include "state/source_eras.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/era.h"
#include "taskgate/task/task.h"

/* The revisions that a legacy server may negotiate, newest first. */
#define LEGACY_VERSIONS "[\"2025-11-25\",\"2025-06-18\",\"2025-03-26\"]"

/* The eras that the source's server is known to speak. */
static unsigned served_by(const struct call *call)
{
    unsigned served;
    source_eras_find(call->worker->gateway->eras, call->source, loop_now_ms(call->worker->loop),
                     &served);
    return served;
}

/* Its server knows the legacy era alone, and modern clients are bridged to it. */
static bool is_bridged_down(const struct call *call)
{
    return source_eras_bridge_down(call->worker->gateway->eras, call->source,
                                   loop_now_ms(call->worker->loop));
}

bool era_check_serves_modern(const struct call *call)
{
    return (served_by(call) & CONFIG_ERA_MODERN) || is_bridged_down(call);
}

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
    struct buffer decoded = {0};
    if (!task_id_is_ours(envelope->task_id.text) ||
        mcp_method_find(envelope->method, MCP_ERA_MODERN)->mirrored != MCP_MIRRORED_TASK_ID ||
        !json_decode_string(name, &decoded)) {
        buffer_finish(&decoded);
        return false;
    }
    const struct config_client *client =
        config_client_find(call->snapshot->config, buffer_str(&decoded));
    buffer_finish(&decoded);
    return client && client->lenient_headers;
}

/* ---- refusals ---- */

static void refuse(struct call *call, const struct mcp_era_fault *fault)
{
    struct jsonrpc_error_data data = {.details = str_from(fault->message)};
    if (fault->header) {
        struct buffer text;
        buffer_init(&text);
        buffer_append_format(&text, "%s %s", fault->header, fault->message);
        metrics_count(METRIC_HEADER_MISMATCHES, str_from(fault->header));
        log_warn("Request refused: a header does not say what the body says",
                 LOG_TEXT("source", call->source->id), LOG_TEXT("header", fault->header),
                 LOG_TEXT("reason", fault->message));
        data.details = buffer_str(&text);
        call_answer_error(call, fault->error, STR_EMPTY, &data);
        buffer_finish(&text);
        return;
    }
    if (fault->error == JSONRPC_UNSUPPORTED_VERSION) {
        data.details = STR_EMPTY;
        data.supported = era_check_serves_modern(call) ? STR("[\"" MCP_VERSION_MODERN "\"]")
                                                       : STR(LEGACY_VERSIONS);
        data.requested = call->envelope.reserved.version;
    }
    call_answer_error(call, fault->error, STR_EMPTY, &data);
}

/* A client whose version stands there twice is understood in two ways, whatever its era. */
static void refuse_repeated_version(struct call *call)
{
    struct http_exchange *exchange = call->exchange;
    log_warn("Request refused: a header stands there twice",
             LOG_TEXT("header", "mcp-protocol-version"));
    call->outcome = "error";
    http_on_gone(exchange, NULL, NULL);
    call_ended(call);
    http_respond_text(exchange, 400, "text/plain; charset=utf-8",
                      STR("A header that must be there once is there twice.\n"));
}

/* ---- the eras ---- */

static bool passes_legacy(struct call *call)
{
    if (http_header_is_repeated(call->exchange, HTTP_NAME_MCP_PROTOCOL_VERSION)) {
        refuse_repeated_version(call);
        return false;
    }
    /* They were not compared with the body, and a load balancer might go by them. */
    http_headers_drop(call->exchange, HTTP_NAME_MIRRORS_BODY);
    return true;
}

/* The probe with which dual-era clients begin: on this very answer all of them become legacy. */
static void refuse_discover(struct call *call)
{
    call->dialect = &dialect_legacy;
    call->method = mcp_method_find(call->envelope.method, MCP_ERA_LEGACY);
    http_headers_drop(call->exchange, HTTP_NAME_MIRRORS_BODY);
}

/* The source speaks the modern era, or could not be asked: then its own answer will tell. */
static void check_modern(struct call *call, call_step next)
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
    if (!mcp_era_check(&call->envelope, &headers, &fault)) {
        refuse(call, &fault);
        return;
    }
    http_headers_drop(call->exchange, HTTP_NAME_OF_SESSION);
    next(call);
}

static void check_legacy_server(struct call *call, call_step next)
{
    const struct mcp_era_fault fault = {.error = JSONRPC_UNSUPPORTED_VERSION, .message = ""};
    if (is_bridged_down(call)) {
        call->is_bridged_down = true;
        check_modern(call, next);
        return;
    }
    if (!str_equal(call->envelope.method, STR("server/discover"))) {
        refuse(call, &fault);
        return;
    }
    refuse_discover(call);
    next(call);
}

static void check_asked(struct call *call, call_step next)
{
    unsigned served;
    bool is_known = source_eras_find(call->worker->gateway->eras, call->source,
                                     loop_now_ms(call->worker->loop), &served);
    if (is_known && !(served & CONFIG_ERA_MODERN))
        check_legacy_server(call, next);
    else
        check_modern(call, next);
}

static void check_claim(struct call *call, call_step next)
{
    unsigned served;
    call->dialect = &dialect_modern;
    if (call->envelope.kind == ENVELOPE_NOTIFICATION)
        call_answer(call, STR_EMPTY); /* the era has none of a client's over HTTP */
    else if (!source_eras_find(call->worker->gateway->eras, call->source,
                               loop_now_ms(call->worker->loop), &served))
        era_probe_then(call, check_asked, next);
    else if (served & CONFIG_ERA_MODERN)
        check_modern(call, next);
    else
        check_legacy_server(call, next);
}

void era_check_then(struct call *call, call_step next)
{
    struct str version = http_header_known(call->exchange, HTTP_NAME_MCP_PROTOCOL_VERSION);
    struct mcp_era_fault fault;
    switch (mcp_era_claim(&call->envelope, str_trim(version))) {
    case MCP_CLAIM_LEGACY:
        if (!passes_legacy(call))
            break;
        bridge_check(call);
        next(call);
        break;
    case MCP_CLAIM_MODERN:
        check_claim(call, next);
        break;
    case MCP_CLAIM_HALF:
        call->dialect = &dialect_modern;
        mcp_era_refuse_half(&call->envelope, &fault);
        refuse(call, &fault);
        break;
    }
}

bool era_check_has_sessions(const struct call *call)
{
    return served_by(call) & CONFIG_ERA_LEGACY;
}
