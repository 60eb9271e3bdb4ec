/* The server's half of one request at a server of the modern era: it goes up once more for each
 * round in which the server requires input (MCP 2026-07-28, patterns/mrtr). */
#include "modern.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

#define MOST_ROUNDS 10
/* A server that only wants to be asked again is asked after this, then after twice as long … */
#define AGAIN_MS 250
#define AGAIN_MOST_MS 5000

void modern_link_init(struct modern_link *link, const struct modern_maker *maker,
                      struct gateway_worker *worker)
{
    MAGIC_SET(link, MODERN_LINK_MAGIC);
    link->maker = maker;
    link->worker = worker;
    loop_timer_init(&link->timer, worker->loop, NULL, link);
}

void modern_release(struct modern_link *link)
{
    exchange_abandon(link->exchange);
    link->exchange = NULL;
    loop_timer_stop(&link->timer);
    buffer_finish(&link->request_state);
    link->state = MODERN_LINK_NEW;
    link->has_asked = false;
    link->rounds = 0;
    link->again_ms = 0;
}

/* ---- events ---- */

static void end_with(struct modern_link *link, const struct modern_event *event)
{
    ASSERT(!link->exchange && link->state != MODERN_LINK_ENDED);
    loop_timer_stop(&link->timer);
    link->state = MODERN_LINK_ENDED;
    link->maker->take(link, event);
}

static void lose(struct modern_link *link, enum modern_lost reason)
{
    end_with(link, &(struct modern_event){.kind = MODERN_LOST, .lost = reason});
}

static void on_notice(void *context, struct str message)
{
    struct modern_link *link = modern_link_from(context);
    if (json_member(message, "id").length == 0) /* a modern server sends no requests */
        link->maker->take(link, &(struct modern_event){.kind = MODERN_NOTICE, .text = message});
}

static void take_round(struct modern_link *link, const struct exchange_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    struct str requests = json_member(result, "inputRequests");
    struct str state = json_member(result, "requestState");
    bool asks = json_count(requests) > 0;
    link->has_asked = true;
    if (!dialect_modern_is_round(requests, state)) {
        lose(link, MODERN_LOST_ROUND);
        return;
    }
    if (asks && link->rounds == MOST_ROUNDS) {
        lose(link, MODERN_LOST_ROUNDS);
        return;
    }
    buffer_clear(&link->request_state);
    buffer_append(&link->request_state, state);
    link->state = MODERN_LINK_ASKED;
    if (asks) {
        link->rounds++;
        link->again_ms = 0;
    }
    link->maker->take(link, &(struct modern_event){.kind = MODERN_QUESTION,
                                                   .text = asks ? requests : STR_EMPTY,
                                                   .reply = reply});
}

static void on_reply(void *context, const struct exchange_reply *reply)
{
    struct modern_link *link = modern_link_from(context);
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
    struct str type = json_member(result, "resultType");
    ASSERT(link->state == MODERN_LINK_SENT);
    link->exchange = NULL;
    if (json_string_equals(type, STR("input_required"))) {
        take_round(link, reply);
        return;
    }
    end_with(link, &(struct modern_event){.kind = result.length > 0  ? MODERN_RESULT
                                                  : error.length > 0 ? MODERN_ERROR
                                                                     : MODERN_LOST,
                                          .is_complete = type.length == 0 ||
                                                         json_string_equals(type, STR("complete")),
                                          .text = result.length > 0 ? result : error,
                                          .reply = reply});
}

/* ---- sending ---- */

/* Sets the member, or takes it out when there is no value. */
static void put_member(struct buffer *object, const char *key, struct str value)
{
    struct buffer changed = {0};
    if (value.length > 0)
        json_write_with_member(&changed, buffer_str(object), key, value);
    else
        json_write_without_member(&changed, buffer_str(object), key);
    buffer_finish(object);
    *object = changed;
}

/* The answers and the server's state take the place of what the request itself had. */
static void put_round(const struct modern_link *link, struct str answers, struct buffer *body)
{
    OWNED_BUFFER(params);
    buffer_append(&params, json_member(buffer_str(body), "params"));
    put_member(&params, "inputResponses", answers);
    put_member(&params, "requestState", buffer_str(&link->request_state));
    put_member(body, "params", buffer_str(&params));
}

static void on_released(void *context)
{
    struct modern_link *link = modern_link_from(context);
    link->exchange = NULL;
    link->state = MODERN_LINK_ENDED;
}

static void send_request(struct modern_link *link, struct str answers)
{
    static const struct exchange_events events = {
        .reply = on_reply, .server_message = on_notice, .released = on_released};
    struct sending sending = link->maker->sending(link);
    struct headers headers;
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    headers_init(&headers, true);
    link->maker->write(link, &headers, &body, &id);
    if (link->has_asked)
        put_round(link, answers, &body);
    sending.headers = &headers;
    sending.body = buffer_str(&body);
    sending.id = buffer_str(&id);
    link->state = MODERN_LINK_SENT;
    link->exchange = exchange_send(link->worker, &sending, &events, link);
    headers_finish(&headers);
}

void modern_begin(struct modern_link *link)
{
    ASSERT(link->state == MODERN_LINK_NEW);
    send_request(link, STR_EMPTY);
}

void modern_answer(struct modern_link *link, struct str answers)
{
    ASSERT(link->state == MODERN_LINK_ASKED && !link->exchange);
    loop_timer_stop(&link->timer);
    send_request(link, answers);
}

/* ---- waiting ---- */

static void on_pause_ended(void *context)
{
    struct modern_link *link = modern_link_from(context);
    ASSERT(link->state == MODERN_LINK_PAUSING);
    link->state = MODERN_LINK_ASKED;
    link->maker->take(link, &(struct modern_event){.kind = MODERN_AGAIN});
}

void modern_pause(struct modern_link *link, int64_t limit_ms)
{
    int64_t now_ms = clock_monotonic_ms();
    ASSERT(link->state == MODERN_LINK_ASKED);
    if (link->again_ms == 0) {
        link->again_ms = AGAIN_MS;
        link->again_until_ms = limit_ms > 0 ? now_ms + limit_ms : INT64_MAX;
    }
    if (now_ms >= link->again_until_ms) {
        lose(link, MODERN_LOST_AGAIN);
        return;
    }
    link->state = MODERN_LINK_PAUSING;
    loop_timer_start_with(&link->timer, on_pause_ended, link, link->again_ms);
    link->again_ms = link->again_ms * 2 < AGAIN_MOST_MS ? link->again_ms * 2 : AGAIN_MOST_MS;
}

static void on_unanswered(void *context)
{
    lose(modern_link_from(context), MODERN_LOST_UNANSWERED);
}

void modern_expect_answer(struct modern_link *link, int64_t limit_ms)
{
    ASSERT(link->state == MODERN_LINK_ASKED);
    loop_timer_start_with(&link->timer, on_unanswered, link, limit_ms);
}
