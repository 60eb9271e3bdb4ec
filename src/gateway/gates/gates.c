/* The way of a request through the gates, and the source that its path names. */
#include "gates.h"

#include <assert.h>
#include <string.h>

#include "auth/token_check.h"
#include "client/legacy_session.h"
#include "conversation/question.h"
#include "methods/methods.h"
#include "replicas/news.h"
#include "taskgate/core/assert.h"
#include "taskgate/policy/gate.h"

enum gate {
#define GATE_NUMBER(name, whom) GATE_##name,
    GATES(GATE_NUMBER)
#undef GATE_NUMBER
        GATE_COUNT
};

#define IS_FOR_ALL(call) true
#define IS_FOR_CLIENT(call) (!(call)->is_relayed)
#define IS_FOR_POST(call) ((call)->is_post)
#define IS_FOR_SUBJECT(call) ((call)->identity != NULL)

/* A wait may be over before its gate returns, so the call goes to the next gate beforehand. A call
 * that waits for nothing passes straight through. */
void gates_go_on(struct call *call)
{
    assert(call->exchange && call->gate < GATE_COUNT);
    switch ((enum gate)call->gate) {
#define PASS(name, whom)                                                                           \
    case GATE_##name:                                                                              \
        call->gate = GATE_##name + 1;                                                              \
        if (IS_FOR_##whom(call) && gate_##name(call) != GATE_PASSED)                               \
            return; /* the call may be gone */                                                     \
        __attribute__((fallthrough));
        GATES(PASS)
#undef PASS
    case GATE_COUNT:
        assert(!"a method answers each call");
    }
}

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

static void begin(struct gateway_worker *worker, struct http_exchange *exchange, bool is_relayed)
{
    struct str path = http_path(exchange);
    struct snapshot *snapshot = snapshot_current();
    bool is_metadata = !is_relayed && (str_equal(path, STR(METADATA_PATH)) ||
                                       str_starts_with(path, STR(METADATA_PATH "/")));
    struct call *call = call_create(worker, exchange, snapshot,
                                    is_metadata ? source_of_metadata(snapshot->config, path)
                                                : source_of_path(snapshot->config, path));
    call->is_relayed = is_relayed;
    call->is_metadata = is_metadata;
    call->is_post = str_equal(http_method(exchange), STR("POST"));
    gates_go_on(call);
}

void gates_handle(struct gateway_worker *worker, struct http_exchange *exchange)
{
    begin(worker, exchange, false);
}

void gates_handle_relayed(struct gateway_worker *worker, struct http_exchange *exchange)
{
    if (!news_take(worker, exchange) && relayed_is_good(worker, exchange))
        begin(worker, exchange, true);
}

/* The last gates: the source serves messages, and the method answers. */

enum gate_verdict gate_serving(struct call *call)
{
    if (call->source->enabled)
        return GATE_PASSED;
    struct jsonrpc_error_data data = {.gate = str_from(policy_gate_name(POLICY_GATE_VISIBILITY))};
    call_answer_error(call, JSONRPC_NOT_EXPOSED, STR_EMPTY, &data);
    return GATE_ANSWERED;
}

static void dispatch(struct call *call)
{
    static const call_step handlers[][2] = {
#define MCP_TREATMENT_ROW(symbol, ...) [MCP_##symbol] = {__VA_ARGS__},
#include "taskgate/mcp/method_table.h"
#undef MCP_TREATMENT_ROW
    };
    call->method = mcp_method_find(call->envelope.method, call->dialect->era);
    enum mcp_treatment treatment = call->method->treatment;
    ASSERT_NUMBERS(treatment, <, sizeof handlers / sizeof *handlers);
    call_step handle = handlers[treatment][call->dialect->era - 1]; /* eras are 1 and 2 */
    call_counters_came(call->method, call->envelope.body.length);
    if (treatment != MCP_TOOLS_CALL)
        call_identify(call);
    bool may_be_silent =
        treatment == MCP_RELAY || treatment == MCP_UNKNOWN || treatment == MCP_TOOLS_CALL;
    if (call->envelope.kind == ENVELOPE_NOTIFICATION && !may_be_silent)
        call_answer(call, STR_EMPTY); /* nobody waits for the answer, so nothing is asked */
    else if (call_gives_session(call))
        given_session_handle(call, handle);
    else
        handle(call);
}

enum gate_verdict gate_method(struct call *call)
{
    if (!call->is_post)
        verb_handle(call);
    else if (call->envelope.kind != ENVELOPE_RESPONSE)
        dispatch(call);
    else if (call_gives_session(call))
        given_session_handle_response(call);
    else if (!question_take_response(call))
        relay_plainly_handle(call); /* to a request of upstream's, in this session */
    return GATE_ANSWERED;
}
