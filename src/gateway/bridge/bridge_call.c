/* One bridged request: sending it, and what the server answers. */
#include "bridge_internal.h"
#include "call/deferred_response.h"
#include "conversation/question.h"
#include "server/catalogue.h"
#include "state/source_eras.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

/* ---- a call that goes on elsewhere ---- */

static void on_slow(void *context)
{
    struct bridge_call *bridge = bridge_call_from(context);
    bridge->options.slow(bridge->call);
}

bool bridge_call_is_under_way(const struct call *call)
{
    const struct bridge_call *bridge = bridge_call_of(call);
    return bridge && (bridge->exchange || bridge->required.length > 0);
}

bool bridge_call_asks_later(const struct call *call)
{
    const struct bridge_call *bridge = bridge_call_of(call);
    return bridge && bridge->required.length > 0;
}

int64_t bridge_call_age_ms(const struct call *call)
{
    return clock_monotonic_ms() - bridge_call_of(call)->started_ms;
}

void bridge_call_repeat_slow(struct call *call, int64_t in_ms)
{
    struct bridge_call *bridge = bridge_call_of(call);
    if (bridge)
        loop_timer_start(&bridge->slow, in_ms);
}

void bridge_call_set_silence(struct call *call, int64_t silence_ms)
{
    struct bridge_call *bridge = bridge_call_of(call);
    if (bridge->options.silence_ms == silence_ms)
        return;
    bridge->options.silence_ms = silence_ms;
    if (bridge->exchange)
        exchange_set_silence(bridge->exchange, silence_ms);
}

struct exchange *bridge_call_exchange(const struct call *call)
{
    return bridge_call_of(call)->exchange;
}

void bridge_call_take_required(struct call *call, struct buffer *required)
{
    struct bridge_call *bridge = bridge_call_of(call);
    buffer_append(required, buffer_str(&bridge->required));
    bridge_call_finish(bridge);
}

/* ---- the answer ---- */

static void answer_with(struct bridge_call *bridge, const char *member, struct str value)
{
    void (*answered)(struct call *, struct str) = bridge->options.answered;
    struct buffer message;
    buffer_init(&message);
    buffer_append_text(&message, "{\"jsonrpc\":\"2.0\",\"id\":");
    buffer_append(&message, bridge->call->envelope.id);
    buffer_append_format(&message, ",\"%s\":", member);
    buffer_append(&message, value);
    buffer_append_char(&message, '}');
    answered(bridge_call_finish(bridge), buffer_str(&message));
    buffer_finish(&message);
}

static void take_result(struct bridge_call *bridge, struct str result)
{
    struct str type = json_member(result, "resultType");
    if (type.length == 0 || json_string_equals(type, STR("complete")))
        answer_with(bridge, "result", result);
    else if (json_string_equals(type, STR("input_required")))
        bridge_rounds_begin(bridge, result);
    else
        bridge_call_give_up(bridge, "The server answered with a result that was not asked for");
}

static void send_anew(struct call *call)
{
    struct bridge_call *bridge = bridge_call_of(call);
    if (bridge)
        bridge_call_send(bridge, STR_EMPTY);
}

static bool calls_tool(const struct call *call)
{
    return call->method->treatment == MCP_TOOLS_CALL;
}

/* The tool repeats other arguments in headers than the list said that the owner was told. */
static bool looks_again(struct bridge_call *bridge)
{
    struct call *call = bridge->call;
    if (!calls_tool(call) || bridge->has_looked || bridge->rounds > 0)
        return false;
    bridge->has_looked = true;
    return tools_fetch_then(call, send_anew);
}

/* The gateway has made the request, so the client can mend nothing. */
static void answer_own_fault(struct bridge_call *bridge, struct str code)
{
    struct call *call = bridge_call_finish(bridge);
    log_error("The server does not take a request that was made for it",
              LOG_TEXT("source", call->source->id), LOG_STR("method", call->envelope.method),
              LOG_STR("code", code));
    call_answer_error(call, JSONRPC_INTERNAL,
                      STR("The server does not take the request that stands for this one"), NULL);
}

static void take_error(struct bridge_call *bridge, struct str error)
{
    struct str code = json_member(error, "code");
    bool is_mismatch = str_equal(code, STR("-32020"));
    if (is_mismatch && looks_again(bridge))
        return;
    if (is_mismatch || str_equal(code, STR("-32022")))
        answer_own_fault(bridge, code);
    else
        answer_with(bridge, "error", error);
}

static void on_reply(void *context, const struct exchange_reply *reply)
{
    struct bridge_call *bridge = bridge_call_from(context);
    struct call *call = bridge->call;
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
    bool is_login = reply->status == 401 || reply->status == 403;
    bridge->exchange = NULL;
    if (reply->status == 400 || reply->status == 404 || reply->status == 405)
        source_eras_doubt(call->worker->gateway->eras, call->source,
                          loop_now_ms(call->worker->loop));
    if (result.length > 0) {
        take_result(bridge, result);
    } else if (error.length > 0 && !is_login) {
        take_error(bridge, error);
    } else {
        void (*failed)(struct call *, const struct exchange_reply *) = bridge->options.failed;
        failed(bridge_call_finish(bridge), reply);
    }
}

/* ---- the beginning ---- */

void bridge_call_start(struct call *call, const struct bridge_call_options *options)
{
    struct bridge_call *bridge = memory_alloc(sizeof *bridge);
    MAGIC_SET(bridge, BRIDGE_CALL_MAGIC);
    bridge->call = call;
    bridge->options = *options;
    bridge->number = question_next_number();
    bridge->replied = on_reply;
    bridge->started_ms = clock_monotonic_ms();
    loop_timer_init(&bridge->timer, call->worker->loop, NULL, bridge);
    loop_timer_init(&bridge->slow, call->worker->loop, on_slow, bridge);
    if (options->slow_ms > 0)
        loop_timer_start(&bridge->slow, options->slow_ms);
    deferred_response_begin(call, "the server", STR_EMPTY);
    deferred_response_await_upstream(call);
    deferred_response_open_late(call);
    bridge_call_add(call, bridge);
    bridge_call_send(bridge, STR_EMPTY);
}
