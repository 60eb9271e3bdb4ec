/* Rounds of questions: the server requires input, the client is asked on its stream, and the
 * request is sent again with the answers. */
#include <stdlib.h>
#include <string.h>

#include "bridge_internal.h"
#include "call/deferred_response.h"
#include "conversation/question.h"
#include "server/bridge_request.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_bridge.h"

#define MOST_ROUNDS 10
/* A server that only wants to be asked again is asked after this, then after twice as long … */
#define AGAIN_MS 250
#define AGAIN_MOST_MS 5000
/* In all, where calls have no limit of their own. */
#define AGAIN_UNTIL_MS 300000

#define CANCELLED "{\"action\":\"cancel\"}"

/* The client's capability that each question needs. */
static const char *const capabilities[QUESTION_KIND_COUNT] = {
    [QUESTION_ELICITATION] = "elicitation",
    [QUESTION_SAMPLING] = "sampling",
    [QUESTION_ROOTS] = "roots",
};

/* ---- the next try ---- */

static void start_timer(struct bridge_call *bridge, loop_callback callback, int64_t in_ms)
{
    loop_timer_start_with(&bridge->timer, callback, bridge, in_ms);
}

static void send_again(struct bridge_call *bridge)
{
    bool (*forbidden)(struct call *) = bridge->options.forbidden;
    struct buffer more;
    loop_timer_stop(&bridge->timer);
    if (forbidden && forbidden(bridge->call))
        return; /* the bridge went with the call */
    buffer_init(&more);
    if (bridge->answers.length > 0)
        buffer_append_format(&more, "\"inputResponses\":{%.*s}",
                             STR_ARGS(buffer_str(&bridge->answers)));
    if (bridge->state.length > 0)
        buffer_append_format(&more, "%s\"requestState\":%.*s", more.length > 0 ? "," : "",
                             STR_ARGS(buffer_str(&bridge->state)));
    buffer_clear(&bridge->answers);
    bridge_call_send(bridge, buffer_str(&more));
    buffer_finish(&more);
}

static void on_again(void *context)
{
    send_again(bridge_call_from(context));
}

static void wait_without_requests(struct bridge_call *bridge)
{
    int64_t now_ms = clock_monotonic_ms(), limit_ms = bridge->options.silence_ms;
    if (bridge->again_ms == 0) {
        bridge->again_ms = AGAIN_MS;
        bridge->again_until_ms = now_ms + (limit_ms > 0 ? limit_ms : AGAIN_UNTIL_MS);
    }
    if (now_ms >= bridge->again_until_ms) {
        bridge_call_give_up(bridge, "The server asked for the call again and again");
        return;
    }
    start_timer(bridge, on_again, bridge->again_ms);
    bridge->again_ms = bridge->again_ms * 2 < AGAIN_MOST_MS ? bridge->again_ms * 2 : AGAIN_MOST_MS;
}

/* ---- asking ---- */

static void add_answer(struct bridge_call *bridge, struct str key, struct str answer)
{
    buffer_append_format(&bridge->answers, "%s\"%.*s\":", bridge->answers.length > 0 ? "," : "",
                         STR_ARGS(key));
    buffer_append(&bridge->answers, answer);
}

/* A person who cannot be asked has closed the form. Nothing can be said in the place of a model, or
 * of a client's folders. False when the call was given up. */
static bool answer_without_client(struct bridge_call *bridge, enum question_kind kind,
                                  struct str key)
{
    if (kind == QUESTION_ELICITATION) {
        add_answer(bridge, key, STR(CANCELLED));
        return true;
    }
    bridge_call_give_up(bridge, kind == QUESTION_SAMPLING
                                    ? "The server requires a model's answer, which the client does "
                                      "not give"
                                    : "The server requires the client's roots, which it does not "
                                      "give");
    return false;
}

static bool can_be_asked(const struct bridge_call *bridge, enum question_kind kind)
{
    struct legacy_bridge_envelope envelope;
    bridge_request_envelope(bridge->call, &envelope);
    bool has_stream = deferred_response_is_stream(bridge->call) ||
                      deferred_response_may_stream(bridge->call); /* it is opened then */
    return has_stream && json_member(envelope.capabilities, capabilities[kind]).length > 0;
}

/* An answer on its way to the worker of the call. */
struct delivery {
    struct gateway_worker *worker;
    uint64_t call;
    enum question_kind kind;
    char *key, *answer; /* NULL: an error */
};

static void deliver(void *context)
{
    struct delivery *delivery = context;
    struct bridge_call *bridge = bridge_call_find(delivery->worker, delivery->call);
    struct str key = str_from(delivery->key);
    bool goes_on = bridge != NULL;
    if (bridge && delivery->answer)
        add_answer(bridge, key, str_from(delivery->answer));
    else if (bridge)
        goes_on = answer_without_client(bridge, delivery->kind, key);
    if (goes_on && --bridge->open == 0)
        send_again(bridge);
    free(delivery->key);
    free(delivery->answer);
    free(delivery);
}

static void take_answer(struct gateway_worker *worker, const struct question_asked *asked,
                        const struct question_response *response)
{
    struct delivery *delivery = memory_alloc(sizeof *delivery);
    struct str answer = response->result;
    delivery->worker = asked->asker;
    delivery->call = asked->call;
    delivery->kind = asked->kind;
    delivery->key = memory_copy_str(str_slice(asked->id.bytes + 1, asked->id.length - 2));
    delivery->answer = answer.length > 0 ? memory_copy_str(answer) : NULL;
    loop_post(asked->asker->loop, deliver, delivery);
}

/* False when the call was given up. */
static bool ask(struct bridge_call *bridge, struct str key, struct str request)
{
    struct call *call = bridge->call;
    struct question_audience audience;
    struct buffer id = {0}, message = {0};
    enum question_kind kind;
    question_audience(call, &audience);
    question_read_kind(request, &kind);
    const struct question_origin origin = {.worker = call->worker,
                                           .snapshot = call->snapshot,
                                           .source = call->source,
                                           .session = call->session,
                                           .audience = &audience,
                                           .call = bridge->number,
                                           .take_answer = take_answer};
    bool is_asked =
        can_be_asked(bridge, kind) &&
        question_ask_in_call(&origin, kind, str_slice(key.bytes - 1, key.length + 2), &id);
    if (is_asked) {
        legacy_bridge_write_request(&message, buffer_str(&id), request);
        bridge->open++;
        deferred_response_pass(call, buffer_str(&message));
    }
    buffer_finish(&message);
    buffer_finish(&id);
    return is_asked || answer_without_client(bridge, kind, key);
}

static void on_unanswered(void *context)
{
    bridge_call_give_up(bridge_call_from(context),
                        "The client has not answered what the server asked");
}

static void ask_client(struct bridge_call *bridge, struct str requests)
{
    const struct config *config = bridge->call->snapshot->config;
    struct str key, request;
    if (bridge->rounds == MOST_ROUNDS) {
        bridge_call_give_up(bridge, "The server still required input after 10 rounds");
        return;
    }
    bridge->rounds++;
    bridge->again_ms = 0;
    bridge->open = 0;
    deferred_response_open(bridge->call);
    for (size_t position = 0; json_next_member(requests, &position, &key, &request);) {
        if (!ask(bridge, key, request))
            return;
    }
    log_info("Upstream asks a bridged client", LOG_TEXT("source", bridge->call->source->id),
             LOG_NUMBER("round", bridge->rounds), LOG_NUMBER("requests", (int64_t)bridge->open));
    if (bridge->open > 0)
        start_timer(bridge, on_unanswered, config->pseudo.elicitation_timeout_ms);
    else
        send_again(bridge);
}

/* Whether something is asked that the client answers only where the call is a task. */
static bool is_for_task(const struct bridge_call *bridge, struct str requests)
{
    struct str key, request;
    enum question_kind kind;
    if (!bridge->options.asks_later || bridge->options.slow_ms == 0)
        return false;
    for (size_t position = 0; json_next_member(requests, &position, &key, &request);) {
        if (question_read_kind(request, &kind) && !can_be_asked(bridge, kind) &&
            bridge->options.asks_later(bridge->call, str_from(question_method(kind))))
            return true;
    }
    return false;
}

static void wait_for_task(struct bridge_call *bridge, struct str result)
{
    buffer_append(&bridge->required, result);
    start_timer(bridge, on_unanswered,
                bridge->call->snapshot->config->pseudo.elicitation_timeout_ms);
    loop_timer_start(&bridge->slow, 0); /* the wait may be over */
}

void bridge_rounds_begin(struct bridge_call *bridge, struct str result)
{
    struct str requests = json_member(result, "inputRequests");
    struct str state = json_member(result, "requestState");
    if (!question_round_is_well_formed(requests, state)) {
        bridge_call_give_up(
            bridge, "The server requires input, and does not say it as the protocol has it");
        return;
    }
    buffer_clear(&bridge->state);
    buffer_append(&bridge->state, state);
    if (is_for_task(bridge, requests))
        wait_for_task(bridge, result);
    else if (json_count(requests) > 0)
        ask_client(bridge, requests);
    else
        wait_without_requests(bridge);
}
