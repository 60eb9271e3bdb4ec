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
    link->take(link->context, event);
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

int64_t server_link_poll_ms(struct str interval)
{
    uint64_t in_ms;
    if (!str_to_u64(interval, &in_ms))
        return POLL_MS;
    if (in_ms < POLL_LEAST_MS)
        return POLL_LEAST_MS;
    return in_ms > POLL_MOST_MS ? POLL_MOST_MS : (int64_t)in_ms;
}
