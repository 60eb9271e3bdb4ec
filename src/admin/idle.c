/* GET /health/idle?wait=SECONDS: answers once the agents' port has nothing to answer, so that a
 * server beside the gateway is stopped no earlier, and no later. */
#include "internal.h"

#include <stdlib.h>

#include "taskgate/admin/admin.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"

#include "query.h"
#include "reply.h"

#define WAITS_MOST 16
#define WAIT_MOST_S 3600
#define QUIET_MS 1000 /* without a new request: an agent's next one is on its way until then */
#define LOOK_MS 50

struct idle_wait {
    uint32_t magic;   /* IDLE_WAIT_MAGIC */
    struct list node; /* in admin->idle_waits */
    struct admin *admin;
    struct http_exchange *exchange;
    struct loop_timer timer;
    uint64_t arrived; /* requests when it looked last */
    int64_t quiet_since_ms, until_ms;
};
#define IDLE_WAIT_MAGIC 0x1d1e0a17

static struct idle_wait *idle_wait_from(void *context)
{
    return MAGIC_CAST(struct idle_wait, IDLE_WAIT_MAGIC, context);
}

/* Connections close with their answers while somebody waits: agents then come again by a new
 * connection, to another pod where there is one. */
static void say_whether_closing(const struct admin *admin)
{
    if (admin->close_after_answers)
        admin->close_after_answers(admin->context, admin->idle_wait_count > 0);
}

static void idle_destroy(struct idle_wait *wait)
{
    struct admin *admin = wait->admin;
    ASSERT_NUMBERS(admin->idle_wait_count, >, 0);
    list_remove(&wait->node);
    loop_timer_stop(&wait->timer);
    MAGIC_CLEAR(wait);
    free(wait);
    if (--admin->idle_wait_count == 0)
        say_whether_closing(admin);
}

static void idle_client_gone(void *context)
{
    idle_destroy(idle_wait_from(context));
}

static void idle_answer(struct idle_wait *wait, bool is_idle)
{
    struct buffer body;
    buffer_init(&body);
    buffer_append_format(&body, "{\"idle\":%s}", is_idle ? "true" : "false");
    http_on_gone(wait->exchange, NULL, NULL);
    reply_json(wait->exchange, 200, &body);
    buffer_finish(&body);
    idle_destroy(wait);
}

static void idle_look(void *context)
{
    struct idle_wait *wait = idle_wait_from(context);
    const struct admin *admin = wait->admin;
    int64_t now_ms = clock_monotonic_ms();
    struct admin_traffic traffic = {0};
    if (admin->traffic)
        traffic = admin->traffic(admin->context);
    if (traffic.answering > 0 || traffic.arrived != wait->arrived)
        wait->quiet_since_ms = now_ms;
    wait->arrived = traffic.arrived;
    bool is_idle = now_ms - wait->quiet_since_ms >= QUIET_MS;
    if (is_idle || now_ms >= wait->until_ms)
        idle_answer(wait, is_idle);
    else
        loop_timer_start(&wait->timer, LOOK_MS);
}

static bool idle_read_seconds(struct str query, uint64_t *seconds, struct error *error)
{
    struct buffer text;
    buffer_init(&text);
    *seconds = 0;
    bool is_good = query_parse_single(&text, query, "wait", error);
    if (is_good && text.length > 0 &&
        (!str_to_u64(buffer_str(&text), seconds) || *seconds > WAIT_MOST_S))
        is_good = error_set(error, "wait is not a number of seconds from 0 to %d", WAIT_MOST_S);
    buffer_finish(&text);
    return is_good;
}

void idle_wait(const struct request *request)
{
    struct admin *admin = request->admin;
    struct error error = {""};
    uint64_t seconds;
    if (!idle_read_seconds(http_query(request->exchange), &seconds, &error)) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
        return;
    }
    if (admin->idle_wait_count >= WAITS_MOST) {
        reply_error(request->exchange, REPLY_UNAVAILABLE, "too many wait here already", NULL);
        return;
    }
    struct idle_wait *wait = memory_alloc(sizeof *wait);
    MAGIC_SET(wait, IDLE_WAIT_MAGIC);
    wait->admin = admin;
    wait->exchange = request->exchange;
    wait->quiet_since_ms = clock_monotonic_ms();
    wait->until_ms = wait->quiet_since_ms + (int64_t)seconds * 1000;
    if (admin->traffic)
        wait->arrived = admin->traffic(admin->context).arrived;
    list_append(&admin->idle_waits, &wait->node);
    loop_timer_init(&wait->timer, admin->loop, idle_look, wait);
    http_on_gone(request->exchange, idle_client_gone, wait);
    if (++admin->idle_wait_count == 1)
        say_whether_closing(admin);
    idle_look(wait);
}
