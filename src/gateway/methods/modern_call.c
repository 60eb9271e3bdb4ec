/* `tools/call` of a modern client: the gates of every call, then it goes up, or is refused. Each
 * round of a conversation with the server is a whole call, which is judged anew. `params.task`
 * means nothing in this era. */
#include "block_check.h"
#include "bridge_down/bridge_down.h"
#include "call/client_profile.h"
#include "call/request_state.h"
#include "decision/decision_log.h"
#include "decision/policy_check.h"
#include "methods.h"
#include "pseudo_tool_call.h"
#include "relay/relay.h"
#include "run/task_create.h"
#include "state/tool_catalog.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/gateway/blocks.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"
#include "taskgate/mcp/parameter_headers.h"
#include "tool_judgement.h"
#include "tools/plain.h"

void modern_refuse_params(struct call *call, const char *why)
{
    struct jsonrpc_error_data data = {.details = str_from(why)};
    struct buffer text;
    buffer_init(&text);
    jsonrpc_write_error(&text, call->envelope.id, JSONRPC_INVALID_PARAMS, STR_EMPTY, &data);
    call_answer_status(call, 400, buffer_str(&text));
    buffer_finish(&text);
}

bool modern_has_good_rounds(struct call *call)
{
    const struct envelope *envelope = &call->envelope;
    if (envelope->request_state.length > 0 && json_type(envelope->request_state) != JSON_STRING)
        modern_refuse_params(call, "params.requestState must be a string");
    else if (envelope->input_responses.length > 0 &&
             json_type(envelope->input_responses) != JSON_OBJECT)
        modern_refuse_params(call, "params.inputResponses must be an object");
    else if (request_state_is_ours(call) && call->method->treatment != MCP_TOOLS_CALL &&
             !call->is_bridged_down)
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR(REQUEST_STATE_REFUSAL), NULL);
    else
        return true;
    return false;
}

/* ---- the headers that repeat arguments ---- */

static struct mirrored_header find_parameter(void *request, struct str name)
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

static void refuse_parameter(struct call *call, struct str name, enum mirrored_verdict verdict)
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

static bool parameter_check_passes(struct call *call)
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
    enum mirrored_verdict verdict =
        parameter_headers_check(catalog_parameters(held), call->envelope.arguments.raw,
                                find_parameter, call->exchange, &name);
    if (verdict != MIRRORED_SAME)
        refuse_parameter(call, name, verdict);
    catalog_release_parameters(catalog, held);
    return verdict == MIRRORED_SAME;
}

/* A client that closes the stream has cancelled its call: nothing of it goes on. */
static void forward(struct call *call)
{
    const struct relay_options options = {
        .silence_ms = call->snapshot->config->times.sync_forward_timeout_ms};
    bridge_down_start(call, &options);
}

static void become_task(struct call *call, const struct tool_judgement *judgement, bool accelerated)
{
    if (!tool_judgement_is_shown_whole(call))
        return;
    tool_judgement_record(call, judgement, true);
    if (dialect_modern_declares_tasks(call->envelope.reserved.client_capabilities))
        task_create_from_call(call, &judgement->decision, &judgement->tool, accelerated);
    else
        plain_call_become_task(call, &judgement->decision, &judgement->tool, accelerated);
}

/* The call was held before. Its rule may be another one now, but what was begun is not begun anew:
 * its task says how it goes on. */
static void go_on(struct call *call)
{
    struct request_state state;
    if (request_state_open(call, &state))
        plain_call_go_on(call, &state);
    else
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR(REQUEST_STATE_REFUSAL), NULL);
}

/* A legacy server runs the tool as a task of its own only (SEP-1686), which its modern client could
 * not follow: the gateway does, in a task that nobody has to approve. */
static bool is_run_as_task(const struct call *call, const struct tool_judgement *judgement)
{
    return call->is_bridged_down && judgement->tool.has_own &&
           judgement->tool.own == ANNOTATION_REQUIRED;
}

/* Whether the server has such tools, so that it counts which one is called. */
static bool has_own_tasks(const struct call *call)
{
    struct mcp_capabilities last;
    return call->is_bridged_down &&
           catalog_capabilities(call->worker->gateway->catalog, str_from(call->source->id),
                                &last) &&
           last.tasks;
}

static void refuse_without_tasks(struct call *call)
{
    struct jsonrpc_error_data data = {.tool = call_tool(call),
                                      .required_capabilities = MODERN_REQUIRES_TASKS};
    metrics_count(METRIC_TASK_VALIDATION_ERRORS, STR("required"));
    call_answer_error(call, JSONRPC_MISSING_CAPABILITY, STR_EMPTY, &data);
}

static void answer_route(struct call *call, const struct tool_judgement *judgement,
                         enum policy_route route)
{
    switch (route) {
    case ROUTE_LACKS_EXTENSION: /* it waits for no human, and is answered at once */
        refuse_without_tasks(call);
        break;
    case ROUTE_APPROVAL:
    case ROUTE_HELD:
        become_task(call, judgement, false);
        break;
    case ROUTE_ACCELERATED:
        become_task(call, judgement, true);
        break;
    case ROUTE_FORWARD:
        tool_judgement_record(call, judgement, false);
        forward(call);
        break;
    default:
        tool_judgement_record(call, judgement, false);
        tool_judgement_refuse(call, JSONRPC_POLICY_DENIED, POLICY_GATE_POLICY);
        break;
    }
}

static void judge(struct call *call)
{
    struct tool_judgement judgement = {
        .request = {call->source, call->envelope.name.text, call->envelope.arguments.raw}};
    const struct policy_decision *decision = &judgement.decision;
    tool_judgement_begin(call, call->snapshot, &judgement);
    if (tool_judgement_waits_for_list(call, &judgement, judge))
        return;
    if (!tool_judgement_passes_gates(call, &judgement) ||
        !tool_judgement_passes_arguments(call, &judgement))
        return;
    bool is_open_upstream = bridge_down_goes_on(call);
    if (request_state_is_ours(call) && !is_open_upstream) {
        go_on(call);
        return;
    }
    const struct policy_caller caller = {
        .is_modern = true,
        .knows_tasks = dialect_modern_declares_tasks(call->envelope.reserved.client_capabilities)};
    if (policy_asks_policies(&caller, decision))
        policy_check(call->snapshot, &judgement.request, &judgement.facts, &judgement.decision);
    enum policy_route route =
        policy_outcome(&caller, decision, ANNOTATION_OPTIONAL, false, ANNOTATION_OPTIONAL);
    if (is_open_upstream && route != ROUTE_LACKS_EXTENSION && route != ROUTE_FORWARD) {
        tool_judgement_record(call, &judgement, false);
        bridge_down_refuse_to_go_on(call);
        return;
    }
    bool is_accelerated =
        route == ROUTE_FORWARD && !is_open_upstream && is_run_as_task(call, &judgement);
    answer_route(call, &judgement, is_accelerated ? ROUTE_ACCELERATED : route);
}

/* A client is served the tools that it is shown. Any other tool of this name is the server's. */
static void judge_or_run(struct call *call)
{
    const struct pseudo_tool *own = pseudo_tool_called(call);
    if (own && client_is_shown_tools(call))
        pseudo_tool_run(call, own);
    else
        judge(call);
}

/* The caller is not blocked. */
static void handle(struct call *call)
{
    struct policy_request request;
    struct policy_decision decision;
    if (!request_state_is_ours(call) && !has_own_tasks(call) &&
        tool_judgement_is_plain(call, &request, &decision) && !pseudo_tool_called(call)) {
        const struct decision_log_entry entry = {.snapshot = call->snapshot,
                                                 .request = &request,
                                                 .decision = &decision,
                                                 .identity = call->identity};
        tool_judgement_count(ACTION_FORWARD);
        decision_log_write_unidentified(call, &entry);
        forward(call);
        return;
    }
    call_identify(call);
    call_with_facts(call, judge_or_run);
}

static void check_and_handle(struct call *call)
{
    if (!block_check_refused(call))
        handle(call);
}

void modern_call_handle(struct call *call)
{
    if (!tool_judgement_is_well_formed(call) || !modern_has_good_rounds(call) ||
        !parameter_check_passes(call))
        return;
    if (!blocks_any()) {
        handle(call);
    } else {
        call_identify(call);
        call_with_facts(call, check_and_handle);
    }
}
