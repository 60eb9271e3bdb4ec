/* One request of a legacy client at a modern server: what the server says of it, the rounds in
 * which the client is asked on its stream, and the answer in the client's words. */
#include "legacy.h"

#include <stdlib.h>

#include "call/call_span.h"
#include "call/deferred_response.h"
#include "conversation/detach.h"
#include "conversation/question.h"
#include "server/catalogue.h"
#include "server/own.h"
#include "server/protocol.h"
#include "server/server_refusal.h"
#include "state/source_eras.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/legacy_text.h"
#include "taskgate/mcp/modern_text.h"
#include "tools/answer.h"

/* A server that only wants to be asked again is asked for so long in all, where calls have no limit
 * of their own. */
#define AGAIN_UNTIL_MS 300000

#define CANCELLED "{\"action\":\"cancel\"}"

/* The client's capability that each question needs. */
static const char *const legacy_capabilities[QUESTION_KIND_COUNT] = {
    [QUESTION_ELICITATION] = "elicitation",
    [QUESTION_SAMPLING] = "sampling",
    [QUESTION_ROOTS] = "roots",
};

static const char *const lost_words[LOST_REASON_COUNT] = {
    [LOST_ROUND] = "The server requires input, and does not say it as the protocol has it",
    [LOST_ROUNDS] = "The server still required input after 10 rounds",
    [LOST_AGAIN] = "The server asked for the call again and again",
    [LOST_UNANSWERED] = "The client has not answered what the server asked",
};

struct legacy_call {
    uint32_t magic; /* LEGACY_CALL_MAGIC */
    struct call_part part;
    struct call *call;
    const struct looks *looks;
    int64_t silence_ms;
    bool may_become_task;
    struct server_link up;
    bool has_looked;        /* the list of tools was fetched for it, for its headers */
    uint64_t number;        /* of its questions */
    size_t open;            /* questions that are not answered */
    struct buffer answers;  /* members of inputResponses, with commas between them */
    struct buffer required; /* what a task is to ask, JSON object; empty: nothing */
    struct loop_timer slow;
    int64_t started_ms; /* monotonic */
};
#define LEGACY_CALL_MAGIC 0x47574211

static struct legacy_call *legacy_call_from(void *context)
{
    return MAGIC_CAST(struct legacy_call, LEGACY_CALL_MAGIC, context);
}

/* ---- the part of a call ---- */

static void drop_legacy(struct call *call, void *object)
{
    struct legacy_call *legacy = legacy_call_from(object);
    (void)call;
    legacy->up.protocol->release(&legacy->up);
    loop_timer_stop(&legacy->slow);
    if (legacy->open > 0) {
        char key[QUESTION_KEY_BYTES];
        question_key_of_call(legacy->number, key);
        question_end_call(legacy->call->worker, str_from(key), legacy->number);
    }
    buffer_finish(&legacy->answers);
    buffer_finish(&legacy->required);
    MAGIC_CLEAR(legacy);
    free(legacy);
}

static void on_legacy_left(struct call *call, void *object)
{
    const struct legacy_call *legacy = legacy_call_from(object);
    if (legacy->looks->left)
        legacy->looks->left(call);
}

static const struct call_part_kind legacy_call_kind = {
    .offset = offsetof(struct legacy_call, part), .drop = drop_legacy, .gone = on_legacy_left};

/* NULL without one. */
static struct legacy_call *legacy_call_of(const struct call *call)
{
    return call_part_find(call, &legacy_call_kind);
}

/* Takes it off its call, which is about to be answered. */
static struct call *finish_legacy(struct legacy_call *legacy)
{
    struct call *call = legacy->call;
    call_part_remove(&legacy->part);
    drop_legacy(call, legacy);
    return call;
}

/* ---- answers ---- */

static bool calls_tool(const struct call *call)
{
    return call->method->treatment == MCP_TOOLS_CALL;
}

/* The server does not get what it needs: the call of a tool gets a result that says so, any other
 * an error. */
static void give_up_legacy(struct legacy_call *legacy, const char *why)
{
    struct call *call = finish_legacy(legacy);
    OWNED_BUFFER(result);
    log_warn("A bridged call is given up", LOG_TEXT("source", call->source->id),
             LOG_TEXT("reason", why));
    if (!calls_tool(call)) {
        call_answer_error(call, JSONRPC_INTERNAL, str_from(why), NULL);
        return;
    }
    buffer_append_text(&result, "{\"content\":[{\"type\":\"text\"");
    json_add_text(&result, "text", why);
    buffer_append_text(&result, "}],\"isError\":true}");
    call_answer_result(call, buffer_str(&result));
}

static void legacy_write_result(struct call *call, struct str result, struct buffer *out)
{
    struct catalog_tool tool = {0};
    size_t start = out->length;
    if (call->method->treatment == MCP_TOOLS_LIST) {
        legacy_text_write_tools(out, result);
    } else if (calls_tool(call)) {
        call_find_tool(call, call->envelope.name.text, &tool);
        legacy_text_write_call_result(out, result, tool.wraps_output);
    } else {
        legacy_text_write_result(out, result);
    }
    if (mcp_method_is_list(call->method))
        mcp_cacheable_drop_tags(out, start, result);
}

/* The catalogue learns from the server's own words, so they are rewritten first. */
static void answer_with(struct legacy_call *legacy, const struct event *event)
{
    const struct looks *looks = legacy->looks;
    struct call *call = legacy->call;
    OWNED_BUFFER(message);
    OWNED_BUFFER(rewritten);
    OWNED_BUFFER(written);
    OWNED_BUFFER(whole);
    if (event->kind == EVENT_RESULT)
        jsonrpc_write_result(&message, call->envelope.id, event->text);
    else
        jsonrpc_write_error_text(&message, call->envelope.id, event->text);
    finish_legacy(legacy);
    struct str text = looks_rewrite(looks, call, buffer_str(&message), &rewritten)
                          ? buffer_str(&rewritten)
                          : buffer_str(&message);
    struct str result = json_member(text, "result");
    if (result.length == 0) {
        call->outcome = "error";
        call_answer(call, text);
        return;
    }
    legacy_write_result(call, result, &written);
    buffer_append_replaced(&whole, text, result, buffer_str(&written));
    if (call->is_executed)
        pseudo_answer_result(call, buffer_str(&written));
    else
        call_answer(call, buffer_str(&whole));
}

static void send_anew(struct call *call)
{
    struct legacy_call *legacy = legacy_call_of(call);
    if (legacy)
        legacy->up.protocol->begin(&legacy->up);
}

/* The tool repeats other arguments in headers than the list of its owner says. */
static bool looks_again(struct legacy_call *legacy)
{
    if (!calls_tool(legacy->call) || legacy->has_looked || legacy->up.rounds > 0)
        return false;
    legacy->has_looked = true;
    legacy->up.protocol->release(&legacy->up);
    return tools_fetch_then(legacy->call, send_anew);
}

/* The gateway has made the request, so the client can mend nothing. */
static void answer_own_fault(struct legacy_call *legacy, struct str code)
{
    struct call *call = finish_legacy(legacy);
    log_error("The server does not take a request that was made for it",
              LOG_TEXT("source", call->source->id), LOG_STR("method", call->envelope.method),
              LOG_STR("code", code));
    call_answer_error(call, JSONRPC_INTERNAL,
                      STR("The server does not take the request that stands for this one"), NULL);
}

static void take_error(struct legacy_call *legacy, const struct event *event)
{
    struct str code = json_member(event->text, "code");
    bool is_mismatch = str_equal(code, STR("-32020"));
    if (is_mismatch && looks_again(legacy))
        return;
    if (is_mismatch || str_equal(code, STR("-32022")))
        answer_own_fault(legacy, code);
    else
        answer_with(legacy, event);
}

/* ---- no answer ---- */

static enum lost_reason reason_of_reply(const struct exchange_reply *reply)
{
    return reply->result == UPSTREAM_DONE && reply->status >= 500 ? LOST_STATUS_5XX
                                                                  : lost_reason_of(reply->result);
}

/* Its headers tell the client how to log in, or when to come again. */
static bool goes_down_as_it_is(const struct call *call, const struct exchange_reply *reply)
{
    int status = reply->status;
    return reply->result == UPSTREAM_DONE && !reply->too_large &&
           (status == 401 || status == 403 || status == 429 || status >= 500) &&
           !deferred_response_is_stream(call);
}

void legacy_client_answer_failure(struct call *call, const struct exchange_reply *reply)
{
    log_warn("Upstream failed", LOG_TEXT("source", call->source->id),
             LOG_NUMBER("status", reply->status), LOG_TEXT("detail", reply->detail));
    if (reply->too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    if (goes_down_as_it_is(call, reply))
        server_refusal_pass(call, reply);
    else
        relay_answer_failure(call, reason_of_reply(reply));
}

static bool is_login(const struct exchange_reply *reply)
{
    return reply && (reply->status == 401 || reply->status == 403);
}

static void take_no_answer(struct legacy_call *legacy, const struct exchange_reply *reply)
{
    const struct looks *looks = legacy->looks;
    struct call *call = finish_legacy(legacy);
    ASSERT(reply);
    if (is_login(reply) || !looks->stand_in || !looks->stand_in(call, reason_of_reply(reply)))
        legacy_client_answer_failure(call, reply);
}

static void take_lost(struct legacy_call *legacy, enum lost_reason lost)
{
    const struct looks *looks = legacy->looks;
    if (lost_words[lost]) {
        give_up_legacy(legacy, lost_words[lost]);
        return;
    }
    struct call *call = finish_legacy(legacy);
    if (!looks->stand_in || !looks->stand_in(call, lost))
        relay_answer_failure(call, lost);
}

/* ---- rounds ---- */

static void send_round(struct legacy_call *legacy)
{
    OWNED_BUFFER(answers);
    if (legacy->looks->forbidden && legacy->looks->forbidden(legacy->call))
        return; /* it went with the call */
    if (legacy->answers.length > 0)
        buffer_append_format(&answers, "{%.*s}", STR_ARGS(buffer_str(&legacy->answers)));
    buffer_clear(&legacy->answers);
    legacy->up.protocol->answer_round(&legacy->up, buffer_str(&answers));
}

static void add_answer(struct legacy_call *legacy, struct str key, struct str answer)
{
    buffer_append_format(&legacy->answers, "%s\"%.*s\":", legacy->answers.length > 0 ? "," : "",
                         STR_ARGS(key));
    buffer_append(&legacy->answers, answer);
}

/* A person who cannot be asked has closed the form. Nothing can be said in the place of a model, or
 * of a client's folders. False when the call was given up. */
static bool answer_without_client(struct legacy_call *legacy, enum question_kind kind,
                                  struct str key)
{
    if (kind == QUESTION_ELICITATION) {
        add_answer(legacy, key, STR(CANCELLED));
        return true;
    }
    give_up_legacy(legacy, kind == QUESTION_SAMPLING
                               ? "The server requires a model's answer, which the client does not "
                                 "give"
                               : "The server requires the client's roots, which it does not give");
    return false;
}

static bool takes_questions(const struct call *call, enum question_kind kind)
{
    struct modern_envelope envelope;
    client_request_declared(call, &envelope);
    bool has_stream = deferred_response_is_stream(call) ||
                      deferred_response_may_stream(call); /* it is opened then */
    return has_stream && json_member(envelope.capabilities, legacy_capabilities[kind]).length > 0;
}

/* An answer on its way to the worker of the call. */
struct delivery {
    struct gateway_worker *worker;
    uint64_t call;
    enum question_kind kind;
    char *key, *answer; /* NULL: an error */
};

static struct legacy_call *find_legacy(const struct gateway_worker *worker, uint64_t number)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct legacy_call *legacy = legacy_call_of(LIST_ENTRY(node, struct call, node));
        if (legacy && legacy->number == number)
            return legacy;
    }
    return NULL;
}

static void legacy_deliver_answer(void *context)
{
    struct delivery *delivery = context;
    struct legacy_call *legacy = find_legacy(delivery->worker, delivery->call);
    struct str key = str_from(delivery->key);
    bool goes_on = legacy != NULL;
    if (legacy && delivery->answer)
        add_answer(legacy, key, str_from(delivery->answer));
    else if (legacy)
        goes_on = answer_without_client(legacy, delivery->kind, key);
    if (goes_on && --legacy->open == 0)
        send_round(legacy);
    free(delivery->key);
    free(delivery->answer);
    free(delivery);
}

static void take_legacy_answer(struct gateway_worker *worker, const struct question_asked *asked,
                               const struct server_response *response)
{
    struct delivery *delivery = memory_alloc(sizeof *delivery);
    struct str answer = response->result;
    delivery->worker = asked->asker;
    delivery->call = asked->call;
    delivery->kind = asked->kind;
    delivery->key = memory_copy_str(str_slice(asked->id.bytes + 1, asked->id.length - 2));
    delivery->answer = answer.length > 0 ? memory_copy_str(answer) : NULL;
    loop_post(asked->asker->loop, legacy_deliver_answer, delivery);
}

/* False when the call was given up. */
static bool ask_on_stream(struct legacy_call *legacy, struct str key, struct str request)
{
    struct call *call = legacy->call;
    struct question_audience audience;
    OWNED_BUFFER(id);
    OWNED_BUFFER(message);
    enum question_kind kind;
    question_audience(call, &audience);
    question_read_kind(request, &kind);
    const struct question_origin origin = {.worker = call->worker,
                                           .snapshot = call->snapshot,
                                           .source = call->source,
                                           .session = call->session,
                                           .audience = &audience,
                                           .call = legacy->number,
                                           .take_answer = take_legacy_answer};
    if (!takes_questions(call, kind) ||
        !question_ask_in_call(&origin, kind, str_slice(key.bytes - 1, key.length + 2), &id))
        return answer_without_client(legacy, kind, key);
    legacy_text_write_question(&message, buffer_str(&id), request);
    legacy->open++;
    deferred_response_pass(call, buffer_str(&message));
    return true;
}

static void ask_legacy_client(struct legacy_call *legacy, struct str requests)
{
    const struct call *call = legacy->call;
    struct str key, request;
    ASSERT(legacy->open == 0 && legacy->answers.length == 0);
    deferred_response_open(legacy->call);
    for (size_t position = 0; json_next_member(requests, &position, &key, &request);) {
        if (!ask_on_stream(legacy, key, request))
            return;
    }
    log_info("Upstream asks a bridged client", LOG_TEXT("source", call->source->id),
             LOG_NUMBER("round", legacy->up.rounds), LOG_NUMBER("requests", (int64_t)legacy->open));
    if (legacy->open > 0)
        legacy->up.protocol->expect_answer(&legacy->up,
                                           call->snapshot->config->pseudo.elicitation_timeout_ms);
    else
        send_round(legacy);
}

/* Whether something is asked that the client answers only where the call is a task. */
static bool is_for_task(const struct legacy_call *legacy, struct str requests)
{
    struct str key, request;
    enum question_kind kind;
    if (!legacy->may_become_task)
        return false;
    for (size_t position = 0; json_next_member(requests, &position, &key, &request);) {
        if (question_read_kind(request, &kind) && !takes_questions(legacy->call, kind) &&
            detached_call_asks_later(legacy->call, kind))
            return true;
    }
    return false;
}

static void wait_for_task(struct legacy_call *legacy, struct str requests)
{
    buffer_append(&legacy->required, requests);
    legacy->up.protocol->expect_answer(
        &legacy->up, legacy->call->snapshot->config->pseudo.elicitation_timeout_ms);
    loop_timer_start(&legacy->slow, 0); /* the wait may be over */
}

static void take_requests(struct legacy_call *legacy, const struct event *event)
{
    int64_t limit_ms = legacy->silence_ms;
    if (is_for_task(legacy, event->text))
        wait_for_task(legacy, event->text);
    else if (event->text.length > 0)
        ask_legacy_client(legacy, event->text);
    else
        legacy->up.protocol->pause(&legacy->up, limit_ms > 0 ? limit_ms : AGAIN_UNTIL_MS);
}

/* ---- what the server says ---- */

static void legacy_pass_notice(struct call *call, struct str message)
{
    struct str method = json_member(message, "method");
    bool is_progress = json_string_equals(method, STR(MCP_PROGRESS));
    OWNED_BUFFER(translated);
    if (!is_progress && !json_string_equals(method, STR(MCP_LOG_MESSAGE)))
        return; /* it is not about this request, and may not be here */
    mcp_write_bare_notification(&translated, message);
    deferred_response_open(call);
    if (is_progress)
        deferred_response_pass_progress(call, buffer_str(&translated));
    else
        deferred_response_pass(call, buffer_str(&translated));
}

static void take_last(struct legacy_call *legacy, const struct event *event)
{
    const struct exchange_reply *reply = event->reply;
    struct call *call = legacy->call;
    if (event->kind == EVENT_LOST && event->lost != LOST_REPLY) {
        take_lost(legacy, event->lost);
        return;
    }
    if (reply && (reply->status == 400 || reply->status == 404 || reply->status == 405))
        source_eras_doubt(call->worker->gateway->eras, call->source,
                          loop_now_ms(call->worker->loop));
    if (event->kind == EVENT_RESULT && event->is_complete)
        answer_with(legacy, event);
    else if (event->kind == EVENT_RESULT)
        give_up_legacy(legacy, "The server answered with a result that was not asked for");
    else if (event->kind == EVENT_ERROR && !is_login(reply))
        take_error(legacy, event);
    else
        take_no_answer(legacy, reply);
}

static void take_event(void *context, const struct event *event)
{
    struct legacy_call *legacy = legacy_call_from(context);
    switch (event->kind) {
    case EVENT_PROGRESS:
    case EVENT_LOG:
    case EVENT_NOTICE:
        legacy_pass_notice(legacy->call, event->text);
        break;
    case EVENT_ROUND:
        take_requests(legacy, event);
        break;
    case EVENT_AGAIN:
        send_round(legacy);
        break;
    case EVENT_RESULT:
    case EVENT_ERROR:
    case EVENT_LOST:
        take_last(legacy, event);
        break;
    default:
        ASSERT(!"no task of the server's is followed");
        break;
    }
}

/* ---- the request ---- */

static void write_modern(struct server_link *link, struct headers *headers, struct buffer *body,
                         struct buffer *id)
{
    client_request_write_call(legacy_call_from(link->context)->call, headers, body, id);
}

static struct sending legacy_sending(struct server_link *link, struct task_trace *trace)
{
    const struct legacy_call *legacy = legacy_call_from(link->context);
    const struct call *call = legacy->call;
    return (struct sending){
        .source = call->source,
        .snapshot = call->snapshot,
        .silence_ms = legacy->silence_ms,
        .most_bytes = looks_most_held(legacy->looks, call),
        .trace.parent = call_span_parent(call),
    };
}

static const struct link_maker legacy_maker = {
    .write = write_modern, .sending = legacy_sending, .take = take_event};

/* A method goes into a header. */
static bool is_plain(struct str method)
{
    for (size_t i = 0; i < method.length; i++) {
        char c = method.bytes[i];
        if (c <= ' ' || c >= 0x7f)
            return false;
    }
    return method.length > 0;
}

/* A modern server is not asked for what its era lacks. All tasks here are the gateway's own. */
static bool server_can_be_asked(struct call *call)
{
    struct str method = call->envelope.method;
    bool is_of_tasks = str_starts_with(method, STR("tasks/"));
    bool is_legacy_alone = call->method->treatment != MCP_UNKNOWN &&
                           mcp_method_find(method, MCP_ERA_MODERN)->treatment == MCP_UNKNOWN;
    if (is_of_tasks)
        call_answer_error(call, JSONRPC_TASK_NOT_FOUND, STR_EMPTY, NULL);
    else if (is_legacy_alone || !is_plain(method))
        call_answer_error(call, JSONRPC_METHOD_NOT_FOUND, STR_EMPTY, NULL);
    return !is_of_tasks && !is_legacy_alone && is_plain(method);
}

static void on_legacy_slow(void *context)
{
    struct legacy_call *legacy = legacy_call_from(context);
    legacy->looks->slow(legacy->call);
}

static void legacy_start(struct call *call, const struct looks *looks,
                         const struct carried *carried)
{
    ASSERT(looks_cross_eras(looks) && !carried->url && !carried->message);
    if (!server_can_be_asked(call))
        return;
    struct legacy_call *legacy = memory_alloc(sizeof *legacy);
    MAGIC_SET(legacy, LEGACY_CALL_MAGIC);
    legacy->call = call;
    legacy->looks = looks;
    legacy->silence_ms = carried->silence_ms;
    legacy->may_become_task = carried->slow_ms > 0;
    legacy->number = question_next_number();
    legacy->started_ms = clock_monotonic_ms();
    server_link_init(&legacy->up, &server_modern, &legacy_maker, call->worker, legacy);
    loop_timer_init(&legacy->slow, call->worker->loop, on_legacy_slow, legacy);
    if (carried->slow_ms > 0)
        loop_timer_start(&legacy->slow, carried->slow_ms);
    deferred_response_begin(
        call, &(struct deferred_options){.what = "the server", .awaits_upstream = true});
    deferred_response_open_late(call);
    call_part_add(call, &legacy->part, &legacy_call_kind);
    legacy->up.protocol->begin(&legacy->up);
}

/* ---- a call that goes on elsewhere ---- */

/* It is not under way while its client is asked. */
static bool legacy_is_under_way(const struct call *call)
{
    const struct legacy_call *legacy = legacy_call_of(call);
    return legacy && (legacy->up.exchange || legacy->required.length > 0);
}

static int64_t legacy_age_ms(const struct call *call)
{
    return clock_monotonic_ms() - legacy_call_of(call)->started_ms;
}

static void legacy_repeat_slow(struct call *call, int64_t in_ms)
{
    struct legacy_call *legacy = legacy_call_of(call);
    if (legacy)
        loop_timer_start(&legacy->slow, in_ms);
}

static void legacy_client_set_silence(struct call *call, int64_t silence_ms)
{
    struct legacy_call *legacy = legacy_call_of(call);
    if (legacy->silence_ms == silence_ms)
        return;
    legacy->silence_ms = silence_ms;
    legacy->up.protocol->set_silence(&legacy->up, silence_ms);
}

static struct exchange *legacy_exchange(const struct call *call)
{
    return legacy_call_of(call)->up.exchange;
}

static void legacy_hand_over(struct call *call, struct server_link *to, struct buffer *asked)
{
    struct legacy_call *legacy = legacy_call_of(call);
    legacy->up.protocol->move(&legacy->up, to);
    buffer_append(asked, buffer_str(&legacy->required));
    finish_legacy(legacy);
}

const struct call_carrier legacy_client_carrier = {.start = legacy_start,
                                                   .write_result = legacy_write_result,
                                                   .is_under_way = legacy_is_under_way,
                                                   .age_ms = legacy_age_ms,
                                                   .repeat_slow = legacy_repeat_slow,
                                                   .set_silence = legacy_client_set_silence,
                                                   .exchange = legacy_exchange,
                                                   .hand_over = legacy_hand_over};

void bridge_check(struct call *call)
{
    if (!(call->source->bridge & BRIDGE_LEGACY))
        return;
    struct str session = http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID);
    if (str_starts_with(session, STR(GIVEN_SESSION_PREFIX)) ||
        source_eras_lacks_sessions(call->worker->gateway->eras, call->source))
        call->carrier = &legacy_client_carrier;
}
