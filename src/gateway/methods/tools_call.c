/* `tools/call`: its gates in their order. Then the call is forwarded, or becomes a task, or is
 * refused (behaviour 6.3). */
#include <assert.h>
#include <stdlib.h>

#include "call/client_profile.h"
#include "call/request_headers.h"
#include "call/request_state.h"
#include "client/control.h"
#include "client/modern.h"
#include "conversation/detach.h"
#include "conversation/question.h"
#include "conversation/relay.h"
#include "conversation/task_create.h"
#include "decision/agent_reason.h"
#include "decision/decision_log.h"
#include "inbox/inbox.h"
#include "methods.h"
#include "server/catalogue.h"
#include "server/credential_check.h"
#include "state/source_eras.h"
#include "state/tool_catalog.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/gateway/blocks.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"
#include "taskgate/mcp/parameter_headers.h"
#include "taskgate/policy/gate.h"
#include "taskgate/policy/policy.h"
#include "tools/answer.h"
#include "tools/plain.h"
#include "tools/tools.h"

/* G(name, whom). CLIENT: not for calls of the control plane; TASK: of a client that may send
 * `task`, in a session; ROUND: of one that sends the call again with what it was asked. A gate that
 * waits says so. */
#define CALL_GATES(G)                                                                              \
    G(form, CLIENT)      /* name and arguments have the right types */                             \
    G(round_form, ROUND) /* and so has what an earlier round left */                               \
    G(parameters, ROUND) /* the headers say what the arguments say */                              \
    G(blocked, CLIENT)   /* waits for the client's name, if anybody is blocked */                  \
    G(silent, TASK)      /* a notification: answered */                                            \
    G(plain, CLIENT)     /* the hot path: forwarded by its rule for everybody */                   \
    G(facts, CLIENT)     /* waits for the store */                                                 \
    G(own_tool, CLIENT)  /* a call of the gateway's own tools: answered */                         \
    G(list, ALL)         /* waits for what the server says of the tool */                          \
    G(visible, ALL)                                                                                \
    G(rules, ALL)                                                                                  \
    G(task_field, TASK)                                                                            \
    G(arguments, ALL)       /* without the agent's reason, and read by all in one way */           \
    G(earlier_round, ROUND) /* it goes on with its task, or at its server */                       \
    G(policy, ALL)                                                                                 \
    G(route, ALL) /* answers each call */

enum call_gate {
#define CALL_GATE_NUMBER(name, whom) CALL_GATE_##name,
    CALL_GATES(CALL_GATE_NUMBER)
#undef CALL_GATE_NUMBER
        CALL_GATE_COUNT
};

/* The call as it is decided, with all that is known of it. */
struct tool_judgement {
    struct policy_request request;
    struct policy_decision decision; /* of the rules; then of the policies */
    bool is_hidden;                  /* `expose` does not show the tool: no rule counts */
    struct catalog_tool tool;
    struct policy_facts facts;
};

/* A call at its gates. `judgement` is filled in at the gate `list`, behind which no gate waits. */
struct tool_call {
    struct call *call;       /* NULL: */
    struct control *control; /* of the control plane */
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source;
    const struct envelope *envelope;
    struct tool_judgement judgement;
    bool goes_on; /* with a call that is open at its server */
    struct policy_caller caller;
    enum policy_route route;
};

static void pass_from(struct call *call, enum call_gate from);
static void pass_control_from(struct control *control, enum call_gate from);

/* ---- what several gates do ---- */

/* The rest is filled in at the gates. */
static void begin_tool_call(struct tool_call *tool, struct call *call)
{
    ASSERT(call);
    tool->call = call;
    tool->control = NULL;
    tool->worker = call->worker;
    tool->snapshot = call->snapshot;
    tool->source = call->source;
    tool->envelope = &call->envelope;
    tool->goes_on = false;
}

/* Answers with the error of a gate. */
static void refuse_by_gate(struct call *call, enum jsonrpc_error error, enum policy_gate gate)
{
    struct jsonrpc_error_data data = {.tool = call_tool(call),
                                      .gate = str_from(policy_gate_name(gate))};
    call_answer_error(call, error, STR_EMPTY, &data);
}

static void refuse_tool_call(const struct tool_call *tool, enum jsonrpc_error error,
                             enum policy_gate gate)
{
    if (!tool->call)
        control_refuse(tool->control, error, NULL);
    else
        refuse_by_gate(tool->call, error, gate);
}

static void count_action(enum config_action action)
{
    static _Thread_local struct {
        struct metrics_handle decisions, matches;
    } counters[CONFIG_ACTION_COUNT];
    const char *name = config_action_name(action);
    metrics_add_by(&counters[action].decisions, METRIC_DECISIONS, 1,
                   METRIC_LABELS(policy_gate_label(POLICY_GATE_GOVERNANCE), str_from(name)));
    metrics_add_by(&counters[action].matches, METRIC_RULE_MATCHES, 1,
                   METRIC_LABELS(str_from(name)));
}

/* The record of the decision. */
static void record_judgement(const struct tool_call *tool, bool becomes_task)
{
    const struct call *call = tool->call;
    const struct tool_judgement *judgement = &tool->judgement;
    const struct decision_log_entry entry = {
        .snapshot = tool->snapshot,
        .request = &judgement->request,
        .decision = judgement->is_hidden ? NULL : &judgement->decision,
        .facts = &judgement->facts,
        .identity = call ? call->identity : NULL,
        .becomes_task = becomes_task,
        .span = call ? call->span : tool->control->span,
    };
    decision_log_write(tool->worker, &entry);
}

/* What the server says of its tools to who asks: its client, or the gateway's own session. */
static void look_up_tool(const struct tool_call *tool, struct tool_judgement *judgement)
{
    struct gateway *gateway = tool->worker->gateway;
    struct str source = str_from(judgement->request.source->id);
    struct mcp_capabilities server = {0};
    bool has_tasks;
    if (tool->call) {
        call_find_tool(tool->call, judgement->request.name, &judgement->tool);
        has_tasks = tool->call->facts.server.has_tasks && !call_gives_session(tool->call);
    } else {
        catalog_find_tool(gateway->catalog, source, CATALOG_GATEWAY, judgement->request.name,
                          &judgement->tool);
        catalog_capabilities(gateway->catalog, source, &server);
        has_tasks = server.tasks && !source_eras_lacks_sessions(gateway->eras, tool->source);
    }
    judgement->tool.has_own &= has_tasks; /* else its word about tasks means nothing */
    judgement->request.definition = judgement->tool.definition;
}

/* Fills in what is known of the tool and of who asks, and what the rules of `snapshot` say. */
static void begin_judgement(const struct tool_call *tool, const struct snapshot *snapshot,
                            const struct config_source *source, struct tool_judgement *judgement)
{
    const struct call *call = tool->call;
    *judgement = (struct tool_judgement){
        .request = {source, tool->envelope->name.text, tool->envelope->arguments.raw}};
    look_up_tool(tool, judgement);
    judgement->facts =
        (struct policy_facts){.hints = judgement->tool.hints, .now_ms = clock_now_ms()};
    if (call) {
        judgement->request.verified = call_verified(call);
        judgement->facts.principal =
            (struct policy_principal){str_from(call->owner), str_from(call->facts.client.name),
                                      str_from(call->facts.client.version)};
    } else {
        judgement->facts.principal.owner = str_from(tool->control->owner);
    }
    judgement->is_hidden = !policy_is_visible(snapshot->policy, source, judgement->request.name);
    if (!judgement->is_hidden)
        policy_decide(snapshot->policy, &judgement->request, &judgement->decision);
}

/* ---- forwarding ---- */

static enum config_action action_now(struct call *call, const struct snapshot *now)
{
    struct tool_judgement judgement;
    const struct config_source *source =
        config_source_find(now->config, str_from(call->source->id));
    if (!source)
        return ACTION_DENY;
    struct tool_call tool;
    begin_tool_call(&tool, call);
    begin_judgement(&tool, now, source, &judgement);
    if (judgement.is_hidden)
        return ACTION_DENY;
    policy_check(now, &judgement.request, &judgement.facts, &judgement.decision);
    return judgement.decision.action;
}

/* Whether the rules have changed, and do not forward the call any more. Then it is answered. */
static bool is_forbidden_now(struct call *call)
{
    struct snapshot *now = snapshot_current();
    bool is_forbidden =
        now->number != call->snapshot->number && action_now(call, now) != ACTION_FORWARD;
    snapshot_unref(now);
    if (is_forbidden)
        refuse_by_gate(call, JSONRPC_RULE_DENIED, POLICY_GATE_GOVERNANCE);
    return is_forbidden;
}

/* As if nobody had made the same call before. A client that sends its call again with what it was
 * asked is promised no task: when it closes the stream, it has cancelled the call. */
static void forward_anew(struct call *call)
{
    const struct config *config = call->snapshot->config;
    bool is_kept_from_it =
        config->pseudo.mode == PSEUDO_NEVER || config->pseudo.promote == PROMOTE_NEVER;
    bool may_be_promoted = call->dialect->has_sessions && call->envelope.kind == ENVELOPE_REQUEST &&
                           (call->is_executed || !is_kept_from_it);
    static const struct looks looks = {.forbidden = is_forbidden_now,
                                       .slow = detached_call_of_slow,
                                       .left = detached_call_of_left,
                                       .take_message = question_take_from_stream};
    const struct carried carried = {
        .silence_ms = call->is_executed ? 0 : config->times.sync_forward_timeout_ms,
        .slow_ms = may_be_promoted ? detached_call_first_look_ms(call) : 0,
    };
    if (call->is_executed && !call_gives_session(call))
        detached_call_run(call, call->patience_ms);
    else
        relay_start(call, &looks, &carried);
}

static void forward(struct call *call, const struct policy_decision *decision)
{
    if (!call->dialect->has_sessions || !plain_call_rejoins(call, decision, forward_anew))
        forward_anew(call);
}

/* The call goes up by its rule alone. The client was not looked at. */
static void forward_plainly(struct call *call, const struct policy_request *request,
                            const struct policy_decision *decision)
{
    const struct decision_log_entry entry = {.snapshot = call->snapshot,
                                             .request = request,
                                             .decision = decision,
                                             .identity = call->identity,
                                             .span = call->span};
    decision_log_write_unidentified(call, &entry);
    forward(call, decision);
}

/* ---- the form of the call ---- */

static enum gate_verdict call_gate_form(struct tool_call *tool)
{
    struct call *call = tool->call;
    struct str arguments = call->envelope.arguments.raw;
    if (!call->envelope.name.text.bytes)
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("params.name must be a string"), NULL);
    else if (arguments.length > 0 && json_type(arguments) != JSON_OBJECT)
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("params.arguments must be an object"),
                          NULL);
    else
        return GATE_PASSED;
    return GATE_ANSWERED;
}

static enum gate_verdict call_gate_round_form(struct tool_call *tool)
{
    return methods_have_good_rounds(tool->call) ? GATE_PASSED : GATE_ANSWERED;
}

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
    OWNED_BUFFER(text);
    buffer_append_format(&text, "Mcp-Param-%.*s %s", STR_ARGS(name),
                         mirrored_verdict_text(verdict));
    struct jsonrpc_error_data data = {.tool = call_tool(call), .details = buffer_str(&text)};
    metrics_count(METRIC_HEADER_MISMATCHES, STR("Mcp-Param"));
    log_warn("Request refused: a header does not say what the body says",
             LOG_TEXT("source", call->source->id), LOG_STR("header", name),
             LOG_TEXT("reason", mirrored_verdict_text(verdict)));
    call_answer_error(call, JSONRPC_HEADER_MISMATCH, STR_EMPTY, &data);
}

static enum gate_verdict call_gate_parameters(struct tool_call *tool)
{
    struct call *call = tool->call;
    struct catalog *catalog = call->worker->gateway->catalog;
    struct str name = STR_EMPTY;
    if (!known_tools_have_parameters())
        return GATE_PASSED;
    call_identify(call);
    struct known_tool *held = catalog_hold_parameters(
        catalog, str_from(call->source->id), str_from(call->owner), call->envelope.name.text);
    if (!held)
        return GATE_PASSED;
    enum mirrored_verdict verdict =
        parameter_headers_check(catalog_parameters(held), call->envelope.arguments.raw,
                                find_parameter, call->exchange, &name);
    if (verdict != MIRRORED_SAME)
        refuse_parameter(call, name, verdict);
    catalog_release_parameters(catalog, held);
    return verdict == MIRRORED_SAME ? GATE_PASSED : GATE_ANSWERED;
}

/* ---- blocked callers ---- */

static void refuse_blocked(struct call *call, struct str reason)
{
    OWNED_BUFFER(shown);
    dialect_append_reason(&shown, reason);
    const struct jsonrpc_error_data data = {.tool = call_tool(call), .reason = buffer_str(&shown)};
    log_info("A call of a blocked caller was refused", LOG_STR("tool", call_tool(call)),
             LOG_TEXT("source", call->source->id));
    if (call->envelope.kind == ENVELOPE_NOTIFICATION)
        call_answer(call, STR_EMPTY);
    else
        call_answer_error(call, JSONRPC_CALLER_BLOCKED, STR_EMPTY, &data);
}

/* True: the call is answered. */
static bool tools_call_is_blocked(struct call *call)
{
    const struct store_block_caller caller = {str_from(call->owner), str_from(call->source->id),
                                              str_from(call->facts.client.name)};
    OWNED_BUFFER(reason);
    enum blocks_verdict verdict = blocks_judge(&caller, &reason);
    /* The name of the client is not known, and may be that of a block. */
    if (verdict == BLOCKS_FREE && call->facts_failed)
        verdict = BLOCKS_UNKNOWN;
    if (verdict == BLOCKS_BLOCKED)
        refuse_blocked(call, buffer_str(&reason));
    else if (verdict == BLOCKS_UNKNOWN)
        call_answer_error(call, JSONRPC_UNAVAILABLE,
                          STR("it is not known yet whether the caller is blocked"), NULL);
    return verdict != BLOCKS_FREE;
}

static void check_block(struct call *call)
{
    if (!tools_call_is_blocked(call))
        pass_from(call, CALL_GATE_blocked + 1);
}

static enum gate_verdict call_gate_blocked(struct tool_call *tool)
{
    if (!blocks_any())
        return GATE_PASSED;
    call_identify(tool->call);
    call_with_facts(tool->call, check_block);
    return GATE_WAITS;
}

/* ---- a call that no client is looked at for ---- */

/* Whether its rule alone forwards the call: the tool is shown, nobody must be asked, and it need
 * not be called as a task. */
static bool is_forwarded_by_rule(const struct call *call, struct policy_request *request,
                                 struct policy_decision *decision)
{
    const struct policy *policy = call->snapshot->policy;
    *request = (struct policy_request){call->source, call->envelope.name.text,
                                       call->envelope.arguments.raw, call_verified(call)};
    if (!policy_is_visible(policy, call->source, request->name))
        return false;
    policy_decide(policy, request, decision);
    return decision->action == ACTION_FORWARD && !decision->force_required &&
           !policy_requires_tasks(decision);
}

/* A call without an id has nobody to answer. It goes up only if no gate stands against it;
 * otherwise it is dropped, and the log says so. */
static enum gate_verdict call_gate_silent(struct tool_call *tool)
{
    struct call *call = tool->call;
    struct policy_request request;
    struct policy_decision decision;
    if (call->envelope.kind != ENVELOPE_NOTIFICATION)
        return GATE_PASSED;
    if (call->envelope.task.raw.length == 0 && is_forwarded_by_rule(call, &request, &decision) &&
        !pseudo_tool_called(call)) {
        forward_plainly(call, &request, &decision);
    } else {
        log_warn("A tools/call without id was dropped", LOG_STR("tool", call_tool(call)));
        call_answer(call, STR_EMPTY);
    }
    return GATE_ANSWERED;
}

/* Whether upstream says, or may say when it is asked, that it runs the tool as a task only. */
static bool may_need_task(struct call *call, struct str name)
{
    struct catalog *catalog = call->worker->gateway->catalog;
    struct catalog_tool tool;
    if (!catalog_has_seen_tasks(catalog, str_from(call->source->id)))
        return false;
    call_find_tool(call, name, &tool);
    return (tool.has_own && tool.own == ANNOTATION_REQUIRED) ||
           (tool.word != CATALOG_TOLD && tools_fetch_is_due(call));
}

/* Whether the server has such tools, so that it counts which one is called. */
static bool has_own_tasks(const struct call *call)
{
    struct mcp_capabilities last;
    return call_leases_session(call) &&
           catalog_capabilities(call->worker->gateway->catalog, str_from(call->source->id),
                                &last) &&
           last.tasks;
}

/* Whether the call itself says how it is to be answered. */
static bool asks_for_more(const struct call *call)
{
    return call->dialect->has_sessions ? call->envelope.task.raw.length > 0
                                       : request_state_is_ours(call) || has_own_tasks(call);
}

/* Such a call is forwarded for every client and every session, so neither is looked up. */
static enum gate_verdict call_gate_plain(struct tool_call *tool)
{
    struct call *call = tool->call;
    struct policy_request request;
    struct policy_decision decision;
    if (asks_for_more(call) || call->source->pins[DEFINITION_TOOL] == PIN_APPROVE ||
        !is_forwarded_by_rule(call, &request, &decision) || pseudo_tool_called(call) ||
        (call->dialect->has_sessions && may_need_task(call, request.name)))
        return GATE_PASSED;
    count_action(ACTION_FORWARD);
    forward_plainly(call, &request, &decision);
    return GATE_ANSWERED;
}

/* ---- whose call it is, and whether the gateway's own tool is called ---- */

static void go_on_with_facts(struct call *call)
{
    pass_from(call, CALL_GATE_facts + 1);
}

static enum gate_verdict call_gate_facts(struct tool_call *tool)
{
    call_identify(tool->call);
    call_with_facts(tool->call, go_on_with_facts);
    return GATE_WAITS;
}

/* A client that cannot do as the error says can still have the tool called for it. */
static void refuse_task(struct call *call, enum jsonrpc_error error, const char *which,
                        struct jsonrpc_error_data *data)
{
    OWNED_BUFFER(alternative);
    pseudo_tools_write_alternative(call, &alternative);
    data->alternative = buffer_str(&alternative);
    metrics_count(METRIC_TASK_VALIDATION_ERRORS, str_from(which));
    call_answer_error(call, error, STR_EMPTY, data);
}

static void refuse_task_forbidden(struct call *call)
{
    struct jsonrpc_error_data data = {
        .tool = call_tool(call),
        .reason = str_from(DIALECT_REASON_FORBIDDEN),
    };
    refuse_task(call, JSONRPC_TASK_FORBIDDEN, "forbidden", &data);
}

/* execute_tool: any tool of a server, called with a patience of the caller's own. */

/* Puts the call to the gates of a server's tool, as if the client had called it plainly. */
static void execute_call(struct call *call, int64_t patience_ms)
{
    call->is_executed = true;
    call->patience_ms = patience_ms;
    pass_from(call, CALL_GATE_list);
}

#define MOST_PATIENCE_MS INT64_C(900000)

/* Names of tools are in `why` as in tools/tools.h. */
static void fail_execution(struct call *call, struct str what, const char *why)
{
    OWNED_BUFFER(text);
    buffer_append_format(&text, "Failed to execute tool: '%.*s' ", STR_ARGS(what));
    pseudo_tools_write_text(call, why, &text);
    pseudo_fail(call, "%.*s", STR_ARGS(buffer_str(&text)));
}

/* Writes the plain call that the client would have sent: with its own id, and with its own _meta,
 * which holds the progress token. */
static void write_plain_call(struct buffer *body, const struct call *call, struct str arguments)
{
    const struct envelope *envelope = &call->envelope;
    struct str args = json_member(arguments, "args");
    buffer_append_format(body,
                         "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"method\":\"tools/call\","
                         "\"params\":{\"name\":%.*s",
                         STR_ARGS(envelope->id), STR_ARGS(json_member(arguments, "tool")));
    if (json_type(args) == JSON_OBJECT)
        buffer_append_format(body, ",\"arguments\":%.*s", STR_ARGS(args));
    if (envelope->meta.raw.length > 0)
        buffer_append_format(body, ",\"_meta\":%.*s", STR_ARGS(envelope->meta.raw));
    buffer_append_text(body, "}}");
}

/* A client that hears of progress waits for longer than one that does not, unless it has a limit of
 * its own. */
static int64_t asked_patience_ms(const struct call *call, struct str arguments)
{
    const struct config_pseudo *pseudo = &call->snapshot->config->pseudo;
    bool hears = call->envelope.progress_token.length > 0;
    bool is_bounded = !hears || client_own_wait_ms(call) > 0;
    int64_t wait_ms = client_wait_ms(call, hears), usual_ms = pseudo->execute_timeout_ms;
    if (is_bounded && wait_ms < usual_ms)
        usual_ms = wait_ms;
    return pseudo_argument_number(arguments, "timeout_ms", MOST_PATIENCE_MS, usual_ms);
}

/* The arguments have become the call itself. */
static void execute_tool(struct call *call, struct str arguments)
{
    struct error error = {""};
    struct buffer body = {0};
    OWNED_BUFFER(tool);
    int64_t wait_ms = asked_patience_ms(call, arguments);
    pseudo_argument_text(arguments, "tool", &tool);
    write_plain_call(&body, call, arguments);
    if (call_replace_body(call, &body, &error) != ENVELOPE_OK)
        fail_execution(call, buffer_str(&tool), "cannot be called with these arguments");
    else if (pseudo_tool_called(call))
        fail_execution(call, buffer_str(&tool), "is no server's tool: call it by itself");
    else
        execute_call(call, wait_ms);
}

void pseudo_tool_execute_tool(struct call *call, struct str arguments)
{
    OWNED_BUFFER(server);
    pseudo_argument_text(arguments, "server", &server);
    if (!str_equal(buffer_str(&server), str_from(call->source->id)))
        fail_execution(call, buffer_str(&server),
                       "is no server that can be reached here[[; see {list_servers}]]");
    else
        execute_tool(call, arguments);
}

static void (*const own_tools[PSEUDO_TOOL_COUNT])(struct call *call, struct str arguments) = {
#define TOOL(symbol, title, effect, handler, description, ...) [PSEUDO_TOOL_##symbol] = (handler),
#include "tools/tools_table.h"
#undef TOOL
};

/* Upstream knows this client. */
static void run_own_tool(struct call *call)
{
    const struct pseudo_tool *tool = pseudo_tool_called(call);
    struct str arguments = call->envelope.arguments.raw;
    char key[CLIENT_KEY_BYTES];
    OWNED_BUFFER(problem);
    inbox_key_of_call(call, key);
    if (!call->is_away)
        inbox_touch(call->worker->gateway, str_from(key));
    if (!tool) /* its list has come meanwhile */
        pseudo_fail(call, "This tool is now the server's own: list the tools again");
    else if (pseudo_check_arguments(arguments, tool->parameters, &problem))
        own_tools[tool->id](call, arguments);
    else
        pseudo_fail(call, "Invalid arguments for %.*s: %.*s", STR_ARGS(call->envelope.name.text),
                    STR_ARGS(buffer_str(&problem)));
}

static void pseudo_tool_run(struct call *call, const struct pseudo_tool *tool)
{
    metrics_count(METRIC_PSEUDO_CALLS, str_from(config_pseudo_tool_name(tool->id)));
    if (tool->id == PSEUDO_TOOL_EXECUTE_TOOL)
        credential_check_then(call, run_own_tool);
    else
        credential_check_owner_then(call, run_own_tool);
}

/* The gateway's own tools are no server's, so no rule is for them. A client without sessions is
 * served those that it is shown; any other tool of such a name is the server's. */
static enum gate_verdict call_gate_own_tool(struct tool_call *tool)
{
    struct call *call = tool->call;
    const struct pseudo_tool *own = pseudo_tool_called(call);
    bool has_sessions = call->dialect->has_sessions;
    if (!own || (!has_sessions && !client_is_shown_tools(call)))
        return GATE_PASSED;
    if (has_sessions && call->envelope.task.raw.length > 0)
        refuse_task_forbidden(call);
    else
        pseudo_tool_run(call, own);
    return GATE_ANSWERED;
}

/* ---- the tool, and the rules ---- */

static void go_on_with_list(struct call *call)
{
    pass_from(call, CALL_GATE_list);
}

static void on_list_for_control(void *context)
{
    struct control *control = MAGIC_CAST(struct control, CONTROL_MAGIC, context);
    struct gateway *gateway = control->worker->gateway;
    catalog_looked(gateway->catalog, str_from(control->source->id), CATALOG_GATEWAY,
                   clock_monotonic_ms());
    if (atomic_load(&gateway->shutting_down))
        control_refuse(control, JSONRPC_UNAVAILABLE, "the gateway is shutting down");
    else
        pass_control_from(control, CALL_GATE_list);
}

static bool fetch_for_control(struct control *control)
{
    if (!catalog_look_is_due(control->worker->gateway->catalog, str_from(control->source->id),
                             CATALOG_GATEWAY, clock_monotonic_ms()))
        return false;
    tools_fetch_for_gateway(control->worker, control->snapshot, control->source,
                            on_list_for_control, control);
    return true;
}

/* The owner was not told of the tool yet, or it may have changed, and what upstream says of it to
 * this owner counts: that it runs as a task only, and what policies are to know. */
static enum gate_verdict call_gate_list(struct tool_call *tool)
{
    struct tool_judgement *judgement = &tool->judgement;
    begin_judgement(tool, tool->snapshot, tool->source, judgement);
    bool is_told = judgement->tool.word == CATALOG_TOLD && judgement->tool.is_current;
    if (is_told || judgement->is_hidden || judgement->decision.action == ACTION_DENY)
        return GATE_PASSED;
    bool waits = tool->call ? tools_fetch_then(tool->call, go_on_with_list)
                            : fetch_for_control(tool->control);
    return waits ? GATE_WAITS : GATE_PASSED;
}

static enum gate_verdict call_gate_visible(struct tool_call *tool)
{
    if (!tool->judgement.is_hidden)
        return GATE_PASSED;
    metrics_count(METRIC_DECISIONS, policy_gate_label(POLICY_GATE_VISIBILITY), STR("block"));
    record_judgement(tool, false);
    refuse_tool_call(tool, JSONRPC_NOT_EXPOSED, POLICY_GATE_VISIBILITY);
    return GATE_ANSWERED;
}

static enum gate_verdict call_gate_rules(struct tool_call *tool)
{
    count_action(tool->judgement.decision.action);
    if (tool->judgement.decision.action != ACTION_DENY)
        return GATE_PASSED;
    record_judgement(tool, false);
    refuse_tool_call(tool, JSONRPC_RULE_DENIED, POLICY_GATE_GOVERNANCE);
    return GATE_ANSWERED;
}

static enum gate_verdict call_gate_task_field(struct tool_call *tool)
{
    struct str task = tool->call->envelope.task.raw;
    int64_t ttl_ms;
    if (task.length == 0 || dialect_read_ttl(task, 1, INT64_MAX, &ttl_ms) != DIALECT_TTL_INVALID)
        return GATE_PASSED;
    call_answer_error(tool->call, JSONRPC_INVALID_PARAMS,
                      STR("params.task must be an object, and its ttl a positive integer of "
                          "milliseconds"),
                      NULL);
    return GATE_ANSWERED;
}

/* ---- the arguments ---- */

static bool replace_body_of_call(struct call *call, struct buffer *body, struct buffer *reason)
{
    struct error error = {""};
    free(call->agent_reason);
    call->agent_reason = buffer_take(reason, NULL);
    if (call_replace_body(call, body, &error) == ENVELOPE_OK)
        return true;
    call_answer_error(call, JSONRPC_INTERNAL, STR_EMPTY, NULL);
    return false;
}

static bool replace_body_of_control(struct control *control, struct buffer *body,
                                    struct buffer *reason)
{
    struct error error = {""};
    buffer_append_char(reason, '\0');
    buffer_finish(&control->reason);
    control->reason = *reason;
    buffer_init(reason);
    envelope_finish(&control->envelope);
    buffer_finish(&control->body);
    control->body = *body;
    buffer_init(body);
    if (envelope_read(&control->envelope, buffer_str(&control->body), &error) == ENVELOPE_OK)
        return true;
    control_refuse(control, JSONRPC_REASON_REQUIRED, error.message);
    return false;
}

/* The bytes of the call are others afterwards. */
static bool take_without_reason(struct tool_call *tool, struct buffer *body, struct buffer *reason)
{
    if (tool->call ? !replace_body_of_call(tool->call, body, reason)
                   : !replace_body_of_control(tool->control, body, reason))
        return false;
    tool->judgement.request.name = tool->envelope->name.text;
    tool->judgement.request.arguments = tool->envelope->arguments.raw;
    return true;
}

static void refuse_arguments(const struct tool_call *tool, enum jsonrpc_error error,
                             const char *message)
{
    if (!tool->call)
        control_refuse(tool->control, error, message);
    else
        call_answer_error(tool->call, error, str_from(message), NULL);
}

static bool passes_reason(struct tool_call *tool)
{
    struct error error = {""};
    OWNED_BUFFER(body);
    OWNED_BUFFER(reason);
    const struct agent_reason_call asked = {
        .catalog = tool->worker->gateway->catalog,
        .source = tool->source->id,
        .owner = tool->call ? tool->call->owner : "", /* CATALOG_GATEWAY */
        .tool = &tool->judgement.tool,
        .decision = &tool->judgement.decision,
        .envelope = tool->envelope,
    };
    switch (agent_reason_take(&asked, &body, &reason, &error)) {
    case AGENT_REASON_NONE:
        return true;
    case AGENT_REASON_TAKEN:
        return take_without_reason(tool, &body, &reason);
    case AGENT_REASON_REFUSED:
        break;
    }
    refuse_arguments(tool, JSONRPC_REASON_REQUIRED, error.message);
    return false;
}

/* Takes the agent's reason out of the call, so that judgement and call have the arguments of the
 * server alone; then looks for arguments that two readers could see differently. */
static enum gate_verdict call_gate_arguments(struct tool_call *tool)
{
    struct error error = {""};
    if (!passes_reason(tool))
        return GATE_ANSWERED;
    if (!policy_refuses_arguments(&tool->judgement.request, &tool->judgement.decision, &error))
        return GATE_PASSED;
    error_prefix(&error, tool->call ? "params.arguments" : "arguments");
    refuse_arguments(tool, JSONRPC_INVALID_PARAMS, error.message);
    return GATE_ANSWERED;
}

/* ---- the earlier round ---- */

/* The call was held before. Its rule may be another one now, but what was begun is not begun anew:
 * its task says how it goes on. */
static enum gate_verdict call_gate_earlier_round(struct tool_call *tool)
{
    struct call *call = tool->call;
    struct request_state state;
    tool->goes_on = client_goes_on(call);
    if (tool->goes_on || !request_state_is_ours(call))
        return GATE_PASSED;
    if (request_state_open(call, &state))
        plain_call_go_on(call, &state);
    else
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR(REQUEST_STATE_REFUSAL), NULL);
    return GATE_ANSWERED;
}

/* ---- the policies ---- */

/* Calls of the control plane always become tasks, as those with `task` do that a client makes to
 * whom nothing was announced. */
static struct policy_caller caller_of(const struct call *call)
{
    if (!call)
        return (struct policy_caller){.has_task = true};
    bool has_sessions = call->dialect->has_sessions;
    return (struct policy_caller){.is_modern = !has_sessions,
                                  .has_task = has_sessions && call->envelope.task.raw.length > 0,
                                  .knows_tasks = client_knows_tasks(call),
                                  .is_executed = call->is_executed};
}

/* A client that knows tasks is told that the task field is missing before any policy is asked
 * (behaviour 6.4). */
static enum gate_verdict call_gate_policy(struct tool_call *tool)
{
    const struct call *call = tool->call;
    struct tool_judgement *judgement = &tool->judgement;
    struct policy_decision *decision = &judgement->decision;
    const struct catalog_tool *known = &judgement->tool;
    bool upstream_tasks = call && call->facts.server.has_tasks;
    tool->caller = caller_of(call);
    enum policy_annotation announced =
        policy_annotate(decision, upstream_tasks, known->has_own, known->own);
    if (policy_asks_policies(&tool->caller, decision))
        policy_check(tool->snapshot, &judgement->request, &judgement->facts, decision);
    if (decision->by_policies && !tool->caller.has_task) /* the client knows of no announcement */
        announced = policy_annotate(decision, upstream_tasks, known->has_own, known->own);
    tool->route = policy_outcome(&tool->caller, decision, announced, known->has_own, known->own);
    return GATE_PASSED;
}

/* ---- the route ---- */

static void refuse_task_required(struct call *call, const struct policy_decision *decision)
{
    bool needs_approval = decision->action != ACTION_FORWARD;
    struct jsonrpc_error_data data = {
        .tool = call_tool(call),
        .reason = str_from(needs_approval ? DIALECT_REASON_REQUIRED : DIALECT_REASON_FORCED),
        .hint = str_from(DIALECT_HINT_REQUIRED),
    };
    refuse_task(call, JSONRPC_TASK_REQUIRED, "required", &data);
}

static void refuse_without_tasks(struct call *call)
{
    struct jsonrpc_error_data data = {.tool = call_tool(call),
                                      .required_capabilities = DIALECT_REQUIRES_TASKS};
    metrics_count(METRIC_TASK_VALIDATION_ERRORS, STR("required"));
    call_answer_error(call, JSONRPC_MISSING_CAPABILITY, STR_EMPTY, &data);
}

/* A longer one is not repeated in the answer. */
#define MOST_KEY_BYTES 64

/* Approvers are shown params. They would never see a member beside it. */
static void refuse_unknown_member(struct call *call)
{
    OWNED_BUFFER(key);
    OWNED_BUFFER(details);
    json_decode_string(call->envelope.unknown_member, &key);
    buffer_append_text(&details, "a call that becomes a task has no members beside jsonrpc, id, "
                                 "method and params");
    if (key.length <= MOST_KEY_BYTES)
        buffer_append_format(&details, "; this one has \"%.*s\"", STR_ARGS(buffer_str(&key)));
    struct jsonrpc_error_data data = {.tool = call_tool(call), .details = buffer_str(&details)};
    call_answer_error(call, JSONRPC_INVALID_REQUEST, STR_EMPTY, &data);
}

/* Whether the message has nothing that approvers are not shown. False when the call is answered. */
static bool is_shown_whole(struct call *call)
{
    const struct jsonrpc_error_data too_long = {
        .tool = call_tool(call),
        .details = STR("the headers of a call that becomes a task have 16 KiB at most")};
    if (call->envelope.unknown_member.length > 0)
        refuse_unknown_member(call);
    else if (!request_headers_fit(call->exchange))
        call_answer_error(call, JSONRPC_INVALID_REQUEST, STR_EMPTY, &too_long);
    else
        return true;
    return false;
}

static void become_task(const struct tool_call *tool)
{
    struct call *call = tool->call;
    const struct tool_judgement *judgement = &tool->judgement;
    bool is_plain = tool->route == ROUTE_HELD || tool->route == ROUTE_HELD_ACCELERATED;
    bool accelerated = tool->route == ROUTE_ACCELERATED || tool->route == ROUTE_HELD_ACCELERATED;
    if (call && !is_shown_whole(call))
        return;
    record_judgement(tool, true);
    if (!call)
        control_create(tool->control, &judgement->decision, &judgement->tool, accelerated);
    else if (is_plain)
        plain_call_become_task(call, &judgement->decision, &judgement->tool, accelerated);
    else
        task_create_from_call(call, &judgement->decision, &judgement->tool, accelerated);
}

/* Nobody has a connection to which the answer to a call of the control plane could be forwarded.
 * And a server with sessions runs the tool as a task of its own only (SEP-1686), which its client
 * without one could not follow: the gateway does. Nobody has to approve either task. */
static bool is_run_as_task(const struct tool_call *tool)
{
    const struct catalog_tool *known = &tool->judgement.tool;
    if (tool->route != ROUTE_FORWARD || tool->goes_on)
        return false;
    return !tool->call ||
           (call_leases_session(tool->call) && known->has_own && known->own == ANNOTATION_REQUIRED);
}

/* Each round of a conversation with the server is a whole call, which is judged anew. */
static bool may_go_on(const struct tool_call *tool)
{
    return !tool->goes_on || tool->route == ROUTE_FORWARD || tool->route == ROUTE_LACKS_EXTENSION;
}

static void answer_route(struct tool_call *tool)
{
    struct call *call = tool->call;
    const struct tool_judgement *judgement = &tool->judgement;
    switch (tool->route) {
    case ROUTE_FORWARD:
        record_judgement(tool, false);
        forward(call, &judgement->decision);
        break;
    case ROUTE_DENIED:
        refuse_tool_call(tool, JSONRPC_RULE_DENIED, POLICY_GATE_GOVERNANCE);
        break;
    case ROUTE_REJECTED:
        record_judgement(tool, false);
        refuse_tool_call(tool, JSONRPC_POLICY_DENIED, POLICY_GATE_POLICY);
        break;
    case ROUTE_APPROVAL:
    case ROUTE_ACCELERATED:
    case ROUTE_HELD:
    case ROUTE_HELD_ACCELERATED:
        become_task(tool);
        break;
    case ROUTE_TASK_REQUIRED:
        refuse_task_required(call, &judgement->decision);
        break;
    case ROUTE_TASK_FORBIDDEN:
        refuse_task_forbidden(call);
        break;
    case ROUTE_LACKS_EXTENSION: /* it waits for no human, and is answered at once */
        refuse_without_tasks(call);
        break;
    case POLICY_ROUTE_COUNT:
        abort();
    }
}

static enum gate_verdict call_gate_route(struct tool_call *tool)
{
    if (is_run_as_task(tool))
        tool->route = tool->caller.knows_tasks ? ROUTE_ACCELERATED : ROUTE_HELD_ACCELERATED;
    if (may_go_on(tool)) {
        answer_route(tool);
    } else {
        record_judgement(tool, false);
        client_refuse_to_go_on(tool->call);
    }
    return GATE_ANSWERED;
}

/* ---- the way through the gates ---- */

#define IS_FOR_ALL(call) true
#define IS_FOR_CLIENT(call) ((call) != NULL)
#define IS_FOR_TASK(call) ((call) && (call)->dialect->has_sessions)
#define IS_FOR_ROUND(call) ((call) && !(call)->dialect->has_sessions)

static void pass_gates(struct tool_call *tool, enum call_gate from)
{
    switch (from) {
#define PASS(name, whom)                                                                           \
    case CALL_GATE_##name:                                                                         \
        if (IS_FOR_##whom(tool->call) && call_gate_##name(tool) != GATE_PASSED)                    \
            return; /* the call may be gone */                                                     \
        __attribute__((fallthrough));
        CALL_GATES(PASS)
#undef PASS
    case CALL_GATE_COUNT:
        assert(!"the route answers each call");
    }
}

static void pass_from(struct call *call, enum call_gate from)
{
    struct tool_call tool;
    begin_tool_call(&tool, call);
    pass_gates(&tool, from);
}

static void pass_control_from(struct control *control, enum call_gate from)
{
    struct tool_call tool;
    tool.call = NULL;
    tool.control = control;
    tool.worker = control->worker;
    tool.snapshot = control->snapshot;
    tool.source = control->source;
    tool.envelope = &control->envelope;
    tool.goes_on = false;
    pass_gates(&tool, from);
}

void control_call(struct gateway_worker *worker, const struct control_call *call,
                  control_callback callback, void *context)
{
    struct control *control = control_begin(worker, call, callback, context);
    if (control)
        pass_control_from(control, CALL_GATE_form);
}

void tools_call_handle(struct call *call)
{
    pass_from(call, CALL_GATE_form);
}
