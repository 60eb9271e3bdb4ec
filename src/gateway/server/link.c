/* What the links of all protocols share. */
#include <stdlib.h>

#include "protocol.h"
#include "taskgate/core/assert.h"
#include "taskgate/json/text.h"

/* Between two looks at a task of the server's. */
#define POLL_MS 1000
#define POLL_LEAST_MS 100
#define POLL_MOST_MS 60000

void server_link_end(struct server_link *link, const struct event *event)
{
    ASSERT(event->kind >= EVENT_RESULT);
    ASSERT(!link->exchange && server_link_is_pending(link));
    loop_timer_stop(&link->timer);
    link->state = LINK_ENDED;
    server_link_report(link, event);
}

void server_link_end_with(struct server_link *link, const struct exchange_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
    struct str type = json_member(result, "resultType");
    struct event event = {.kind = EVENT_LOST,
                          .lost = LOST_REPLY,
                          .is_complete =
                              type.length == 0 || json_string_equals(type, STR("complete")),
                          .reply = reply};
    if (result.length > 0) {
        event.kind = EVENT_RESULT;
        event.text = result;
    } else if (error.length > 0) {
        event.kind = EVENT_ERROR;
        event.text = error;
    }
    server_link_end(link, &event);
}

static int64_t poll_ms(struct str interval)
{
    uint64_t in_ms;
    if (!str_to_u64(interval, &in_ms))
        return POLL_MS;
    if (in_ms < POLL_LEAST_MS)
        return POLL_LEAST_MS;
    return in_ms > POLL_MOST_MS ? POLL_MOST_MS : (int64_t)in_ms;
}

void server_link_look_later(struct server_link *link, struct str interval, loop_callback look,
                            void *context)
{
    ASSERT(link->state == LINK_FOLLOWING && !link->exchange);
    loop_timer_start_with(&link->timer, look, context, poll_ms(interval));
}

void server_link_follow(struct server_link *link, char *task, struct str interval,
                        loop_callback look, void *context)
{
    ASSERT(task && !link->task);
    link->task = task;
    link->state = LINK_FOLLOWING;
    server_link_look_later(link, interval, look, context);
    server_link_report(link, &(struct event){.kind = EVENT_FOLLOWED, .text = str_from(task)});
}

void server_link_notify(struct server_link *link, const struct headers *headers, struct str body,
                        struct str id)
{
    struct task_trace trace;
    const struct sending whole = link->maker->sending(link, &trace);
    exchange_notify(link->worker, &(struct sending){.source = whole.source,
                                                    .snapshot = whole.snapshot,
                                                    .headers = headers,
                                                    .body = body,
                                                    .id = id});
}

void server_link_set_silence(struct server_link *link, int64_t silence_ms)
{
    if (link->exchange)
        exchange_set_silence(link->exchange, silence_ms);
}

void server_link_clear(struct server_link *link)
{
    exchange_abandon(link->exchange);
    link->exchange = NULL;
    loop_timer_stop(&link->timer);
    buffer_finish(&link->request_state);
    free(link->task);
    link->task = NULL;
    link->headers = NULL;
    link->state = LINK_NEW;
    link->has_asked = false;
    link->rounds = 0;
    link->again_ms = 0;
}
