/* The server's half of one request at a server of the modern era: it goes up once more for each
 * round in which the server requires input (MCP 2026-07-28, patterns/mrtr), and a task that the
 * server makes of it is followed (SEP-2663). */
#include <stdlib.h>

#include "own.h"
#include "protocol.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

#define MOST_ROUNDS 10
/* A server that only wants to be asked again is asked after this, then after twice as long … */
#define AGAIN_MS 250
#define AGAIN_MOST_MS 5000

/* ---- events ---- */

static void modern_lose(struct server_link *link, enum lost_reason reason,
                        const struct exchange_reply *reply)
{
    server_link_end(link, &(struct event){.kind = EVENT_LOST, .lost = reason, .reply = reply});
}

static void on_notice(void *context, struct str message)
{
    struct server_link *link = server_link_from(context);
    if (json_member(message, "id").length == 0) /* a modern server sends no requests */
        server_link_report(link, &(struct event){.kind = EVENT_NOTICE, .text = message});
}

static void take_round(struct server_link *link, const struct exchange_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    struct str requests = json_member(result, "inputRequests");
    struct str state = json_member(result, "requestState");
    bool asks = json_count(requests) > 0;
    link->has_asked = true;
    if (!dialect_modern_is_round(requests, state)) {
        modern_lose(link, LOST_ROUND, reply);
        return;
    }
    if (asks && link->rounds == MOST_ROUNDS) {
        modern_lose(link, LOST_ROUNDS, reply);
        return;
    }
    buffer_clear(&link->request_state);
    buffer_append(&link->request_state, state);
    link->state = LINK_ASKED;
    if (asks) {
        link->rounds++;
        link->again_ms = 0;
    }
    server_link_report(
        link,
        &(struct event){.kind = EVENT_ROUND, .text = asks ? requests : STR_EMPTY, .reply = reply});
}

/* ---- a task of the server's own ---- */

static void write_of_task(const struct server_link *link, const char *method, struct str more,
                          struct headers *headers, struct buffer *body, struct buffer *id)
{
    OWNED_BUFFER(members);
    buffer_append_text(&members, "\"taskId\":");
    buffer_append_json_string(&members, str_from(link->task));
    buffer_append(&members, more);
    const struct client_request request = {.method = method,
                                           .name = str_from(link->task),
                                           .members = buffer_str(&members),
                                           .kept = link->maker->request(link)};
    client_request_write(&request, headers, body, id);
}

/* Sends what is answered with an acknowledgement. */
static void notify_task(struct server_link *link, const char *method, struct str more)
{
    struct task_trace trace;
    OWNED_HEADERS(headers, true);
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    headers_add_all(&headers, link->maker->sending(link, &trace).headers);
    write_of_task(link, method, more, &headers, &body, &id);
    server_link_notify(link, &headers, buffer_str(&body), buffer_str(&id));
}

static void modern_cancel(struct server_link *link, const char *reason)
{
    if (link->task)
        notify_task(link, "tasks/cancel", STR_EMPTY);
}

static void on_poll(void *context);

/* The server's new questions take the place of the earlier ones; their keys are unique in the life
 * of their task. */
static void go_on_following(struct server_link *link, struct str task, bool is_asking)
{
    struct str requests = json_member(task, "inputRequests");
    struct event event = {.kind = is_asking ? EVENT_ROUND : EVENT_WITHDRAWN};
    if (is_asking && json_count(requests) > MODERN_MOST_REQUESTS) {
        modern_lose(link, LOST_TASK_ROUND, NULL);
        return;
    }
    if (is_asking && json_count(requests) > 0 && dialect_modern_is_round(requests, STR_EMPTY))
        event.text = requests;
    server_link_look_later(link, json_member(task, "pollIntervalMs"), on_poll, link);
    server_link_report(link, &event);
}

static void on_status(void *context, const struct exchange_reply *reply)
{
    struct server_link *link = server_link_from(context);
    struct str task = json_member(reply->message, "result");
    struct str status = json_member(task, "status");
    struct str result = json_member(task, "result"), error = json_member(task, "error");
    bool is_asking = json_string_equals(status, STR("input_required"));
    ASSERT(link->state == LINK_FOLLOWING);
    link->exchange = NULL;
    if (task.length == 0)
        server_link_end_with(link, reply); /* an error or no answer is the outcome */
    else if (json_string_equals(status, STR("completed")) && result.length > 0)
        server_link_end(link, &(struct event){.kind = EVENT_RESULT, .text = result});
    else if (json_string_equals(status, STR("failed")) && json_type(error) == JSON_OBJECT)
        server_link_end(link, &(struct event){.kind = EVENT_ERROR, .text = error});
    else if (json_string_equals(status, STR("cancelled")))
        server_link_end(link, &(struct event){.kind = EVENT_CANCELLED});
    else if (is_asking || json_string_equals(status, STR("working")))
        go_on_following(link, task, is_asking);
    else
        modern_lose(link, LOST_TASK_STATE, NULL);
}

static void on_poll(void *context)
{
    static const struct exchange_events events = {.reply = on_status};
    struct server_link *link = server_link_from(context);
    struct task_trace trace;
    struct sending sending = link->maker->sending(link, &trace);
    OWNED_HEADERS(headers, true);
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    ASSERT(link->state == LINK_FOLLOWING && !link->exchange);
    headers_add_all(&headers, sending.headers);
    write_of_task(link, "tasks/get", STR_EMPTY, &headers, &body, &id);
    sending.headers = &headers;
    sending.body = buffer_str(&body);
    sending.id = buffer_str(&id);
    link->exchange = exchange_send(link->worker, &sending, &events, link);
}

static void modern_follow(struct server_link *link, const struct exchange_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    size_t length = 0;
    char *task = json_string_text(json_member(result, "taskId"), &length);
    if (!task || length == 0) {
        free(task);
        modern_lose(link, LOST_TASK_ID, reply);
        return;
    }
    server_link_follow(link, task, json_member(result, "pollIntervalMs"), on_poll, link);
}

/* ---- the reply ---- */

static void on_reply(void *context, const struct exchange_reply *reply)
{
    struct server_link *link = server_link_from(context);
    struct str type = json_path(reply->message, "result", "resultType");
    ASSERT(link->state == LINK_SENT);
    link->exchange = NULL;
    if (json_string_equals(type, STR("input_required")))
        take_round(link, reply);
    else if (link->maker->request && json_string_equals(type, STR("task")))
        modern_follow(link, reply);
    else
        server_link_end_with(link, reply);
}

/* ---- sending ---- */

/* The answers and the server's state take the place of what the request itself had. */
static void put_round(const struct server_link *link, struct str answers, struct buffer *body)
{
    OWNED_BUFFER(params);
    buffer_append(&params, json_member(buffer_str(body), "params"));
    json_set_member(&params, "inputResponses", answers);
    json_set_member(&params, "requestState", buffer_str(&link->request_state));
    json_set_member(body, "params", buffer_str(&params));
}

static void on_released(void *context)
{
    struct server_link *link = server_link_from(context);
    link->exchange = NULL;
    link->state = LINK_ENDED;
}

static const struct exchange_events events_of_request = {
    .reply = on_reply, .server_message = on_notice, .released = on_released};

static void modern_send_request(struct server_link *link, struct str answers)
{
    struct task_trace trace;
    struct sending sending = link->maker->sending(link, &trace);
    OWNED_HEADERS(headers, true);
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    link->maker->write(link, &headers, &body, &id);
    if (link->has_asked)
        put_round(link, answers, &body);
    sending.headers = &headers;
    sending.body = buffer_str(&body);
    sending.id = buffer_str(&id);
    link->state = LINK_SENT;
    link->exchange = exchange_send(link->worker, &sending, &events_of_request, link);
}

static void modern_begin(struct server_link *link)
{
    ASSERT(link->state == LINK_NEW);
    modern_send_request(link, STR_EMPTY);
}

static void modern_answer(struct server_link *link, struct str answers)
{
    if (link->state == LINK_FOLLOWING) {
        OWNED_BUFFER(members);
        buffer_append_text(&members, ",\"inputResponses\":");
        buffer_append(&members, answers);
        notify_task(link, "tasks/update", buffer_str(&members));
        return;
    }
    ASSERT(link->state == LINK_ASKED && !link->exchange);
    loop_timer_stop(&link->timer);
    modern_send_request(link, answers);
}

/* ---- waiting ---- */

static void on_pause_ended(void *context)
{
    struct server_link *link = server_link_from(context);
    ASSERT(link->state == LINK_PAUSING);
    link->state = LINK_ASKED;
    server_link_report(link, &(struct event){.kind = EVENT_AGAIN});
}

static void modern_pause(struct server_link *link, int64_t limit_ms)
{
    int64_t now_ms = clock_monotonic_ms();
    ASSERT(link->state == LINK_ASKED);
    if (link->again_ms == 0) {
        link->again_ms = AGAIN_MS;
        link->again_until_ms = limit_ms > 0 ? now_ms + limit_ms : INT64_MAX;
    }
    if (now_ms >= link->again_until_ms) {
        modern_lose(link, LOST_AGAIN, NULL);
        return;
    }
    link->state = LINK_PAUSING;
    loop_timer_start_with(&link->timer, on_pause_ended, link, link->again_ms);
    link->again_ms = link->again_ms * 2 < AGAIN_MOST_MS ? link->again_ms * 2 : AGAIN_MOST_MS;
}

static void on_unanswered(void *context)
{
    modern_lose(server_link_from(context), LOST_UNANSWERED, NULL);
}

static void modern_expect_answer(struct server_link *link, int64_t limit_ms)
{
    ASSERT(link->state == LINK_ASKED);
    loop_timer_stop(&link->timer);
    if (limit_ms > 0)
        loop_timer_start_with(&link->timer, on_unanswered, link, limit_ms);
}

/* ---- another takes it over ---- */

static void modern_move(struct server_link *from, struct server_link *to)
{
    ASSERT(to->state == LINK_NEW);
    ASSERT(from->state == LINK_SENT || from->state == LINK_ASKED);
    to->state = from->state;
    if (from->exchange) {
        struct task_trace trace;
        const struct sending sending = to->maker->sending(to, &trace);
        to->exchange = from->exchange;
        exchange_read_messages(to->exchange, &sending, &events_of_request, to);
    } else {
        to->has_asked = true;
        to->rounds = 1;
        buffer_append(&to->request_state, buffer_str(&from->request_state));
    }
    ASSERT(!from->exchange);
    server_link_clear(from);
}

const struct server_protocol server_modern = {.name = "modern",
                                              .begin = modern_begin,
                                              .answer_round = modern_answer,
                                              .pause = modern_pause,
                                              .expect_answer = modern_expect_answer,
                                              .set_silence = server_link_set_silence,
                                              .cancel = modern_cancel,
                                              .release = server_link_clear,
                                              .move = modern_move};
