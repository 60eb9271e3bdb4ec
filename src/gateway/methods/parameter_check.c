/* Comparing arguments with the headers that repeat them. */
#include "parameter_check.h"

#include "state/tool_catalog.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/mcp/parameter_headers.h"

static struct mirrored_header find(void *request, struct str name)
{
    const struct http_exchange *exchange = request;
    const size_t prefix = sizeof PARAMETER_HEADER_PREFIX - 1;
    struct mirrored_header found = {.count = 0};
    size_t count = http_header_count(exchange);
    for (size_t i = 0; i < count; i++) {
        struct http_header header = http_header_at(exchange, i);
        if (header.known == HTTP_NAME_MCP_PARAM &&
            str_equal_ignore_case(
                str_slice(header.name.bytes + prefix, header.name.length - prefix), name))
            mirrored_header_add(&found, header.value);
    }
    return found;
}

static void refuse(struct call *call, struct str name, enum mirrored_verdict verdict)
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_format(&text, "Mcp-Param-%.*s %s", STR_ARGS(name),
                         mirrored_verdict_text(verdict));
    struct jsonrpc_error_data data = {.tool = call_tool(call), .details = buffer_str(&text)};
    metrics_count(METRIC_HEADER_MISMATCHES, STR("Mcp-Param"));
    log_warn("Request refused: a header does not say what the body says",
             LOG_TEXT("source", call->source->id), LOG_STR("header", name),
             LOG_TEXT("reason", mirrored_verdict_text(verdict)));
    call_answer_error(call, JSONRPC_HEADER_MISMATCH, STR_EMPTY, &data);
    buffer_finish(&text);
}

bool parameter_check_passes(struct call *call)
{
    struct catalog *catalog = call->worker->gateway->catalog;
    struct str name = STR_EMPTY;
    if (!catalog_has_parameters())
        return true;
    call_identify(call);
    struct known_tool *held = catalog_hold_parameters(
        catalog, str_from(call->source->id), str_from(call->owner), call->envelope.name.text);
    if (!held)
        return true;
    enum mirrored_verdict verdict = parameter_headers_check(
        catalog_parameters(held), call->envelope.arguments.raw, find, call->exchange, &name);
    if (verdict != MIRRORED_SAME)
        refuse(call, name, verdict);
    catalog_release_parameters(catalog, held);
    return verdict == MIRRORED_SAME;
}
