/* Rounds of questions: the server requires input, the client is asked on its stream, and the
 * request is sent again with the answers. */
#include <stdlib.h>
#include <string.h>

#include "bridge_internal.h"
#include "bridge_questions.h"
#include "bridge_request.h"
#include "call/deferred_response.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_bridge.h"

#define MOST_ROUNDS 10
#define MOST_REQUESTS 100 /* of one round */
/* A server that only wants to be asked again is asked after this, then after twice as long … */
#define AGAIN_MS 250
#define AGAIN_MOST_MS 5000
/* In all, where calls have no limit of their own. */
#define AGAIN_UNTIL_MS 300000

#define CANCELLED "{\"action\":\"cancel\"}"

/* The questions that a server may ask, and the client's capability that each needs. */
static const struct {
    const char *method, *capability;
} kinds[BRIDGE_QUESTION_KIND_COUNT] = {
    [BRIDGE_ELICITATION] = {"elicitation/create", "elicitation"},
    [BRIDGE_SAMPLING] = {"sampling/createMessage", "sampling"},
    [BRIDGE_ROOTS] = {"roots/list", "roots"},
};

static bool read_kind(struct str request, enum bridge_question_kind *kind)
{
    struct str method = json_member(request, "method");
    for (size_t i = 0; i < BRIDGE_QUESTION_KIND_COUNT; i++) {
        *kind = (enum bridge_question_kind)i;
        if (json_string_equals(method, str_from(kinds[i].method)))
            return true;
    }
    return false;
}

static bool is_well_formed(struct str requests, struct str state)
{
    enum bridge_question_kind kind;
    struct str key, request;
    bool has_state = state.length > 0;
    if ((requests.length > 0 && json_type(requests) != JSON_OBJECT) ||
        (has_state && json_type(state) != JSON_STRING) || json_count(requests) > MOST_REQUESTS)
        return false;
    for (size_t position = 0; json_next_member(requests, &position, &key, &request);) {
        if (!read_kind(request, &kind))
            return false;
    }
    return has_state || json_count(requests) > 0;
}

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
static bool answer_without_client(struct bridge_call *bridge, enum bridge_question_kind kind,
                                  struct str key)
{
    if (kind == BRIDGE_ELICITATION) {
        add_answer(bridge, key, STR(CANCELLED));
        return true;
    }
    bridge_call_give_up(bridge, kind == BRIDGE_SAMPLING
                                    ? "The server requires a model's answer, which the client does "
                                      "not give"
                                    : "The server requires the client's roots, which it does not "
                                      "give");
    return false;
}

static bool can_be_asked(const struct bridge_call *bridge, enum bridge_question_kind kind)
{
    struct legacy_bridge_envelope envelope;
    bridge_request_envelope(bridge->call, &envelope);
    bool has_stream = deferred_response_is_stream(bridge->call) ||
                      deferred_response_may_stream(bridge->call); /* it is opened then */
    return has_stream && json_member(envelope.capabilities, kinds[kind].capability).length > 0;
}

/* False when the call was given up. */
static bool ask(struct bridge_call *bridge, struct str key, struct str request)
{
    struct call *call = bridge->call;
    struct bridge_question question = {.worker = call->worker,
                                       .call = bridge->number,
                                       .source = str_from(call->source->id),
                                       .session = str_from(call->session),
                                       .key = key};
    struct buffer id, message;
    read_kind(request, &question.kind);
    buffer_init(&id);
    buffer_init(&message);
    bool is_asked = can_be_asked(bridge, question.kind) &&
                    bridge_questions_add(call->worker->gateway->bridge_questions, &question, &id);
    if (is_asked) {
        legacy_bridge_write_request(&message, buffer_str(&id), request);
        bridge->open++;
        deferred_response_pass(call, buffer_str(&message));
    }
    buffer_finish(&message);
    buffer_finish(&id);
    return is_asked || answer_without_client(bridge, question.kind, key);
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
    enum bridge_question_kind kind;
    if (!bridge->options.asks_later || bridge->options.slow_ms == 0)
        return false;
    for (size_t position = 0; json_next_member(requests, &position, &key, &request);) {
        if (read_kind(request, &kind) && !can_be_asked(bridge, kind) &&
            bridge->options.asks_later(bridge->call, str_from(kinds[kind].method)))
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
    if (!is_well_formed(requests, state)) {
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

/* ---- answers ---- */

/* An answer on its way to the worker of the call. */
struct delivery {
    struct gateway_worker *worker;
    uint64_t call;
    enum bridge_question_kind kind;
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

static void pass_on(const struct bridge_question *taken, struct str answer)
{
    struct delivery *delivery = memory_alloc(sizeof *delivery);
    delivery->worker = taken->worker;
    delivery->call = taken->call;
    delivery->kind = taken->kind;
    delivery->key = memory_copy_str(taken->key);
    delivery->answer = answer.length > 0 ? memory_copy_str(answer) : NULL;
    loop_post(taken->worker->loop, deliver, delivery);
}

static void refuse(struct call *call, struct str why)
{
    struct buffer message;
    buffer_init(&message);
    jsonrpc_write_error(&message, STR_EMPTY, JSONRPC_INVALID_PARAMS, why, NULL);
    call_answer_status(call, 400, buffer_str(&message));
    buffer_finish(&message);
}

void bridge_call_take_response(struct call *call)
{
    const struct bridge_question by = {.source = str_from(call->source->id),
                                       .session = str_from(call->session)};
    struct str result = call->envelope.result;
    struct bridge_question taken;
    struct buffer id, key;
    if (result.length > 0 && json_type(result) != JSON_OBJECT) {
        refuse(call, STR("The result of a request must be an object"));
        return;
    }
    buffer_init(&id);
    buffer_init(&key);
    json_decode_string(call->envelope.id, &id);
    if (!call_is_stranger(call) && bridge_questions_take(call->worker->gateway->bridge_questions,
                                                         buffer_str(&id), &by, &taken, &key)) {
        pass_on(&taken, result);
        call_answer_status(call, 202, STR_EMPTY);
    } else {
        log_warn("A response is refused: it answers no request that is open in its session",
                 LOG_TEXT("source", call->source->id));
        refuse(call, STR("No request of this id is open in this session"));
    }
    buffer_finish(&key);
    buffer_finish(&id);
}
