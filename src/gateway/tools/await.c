/* await_activity, which waits for events (behaviour 11.8); get_notifications, get_logs. */
#include <stdlib.h>

#include "answer.h"
#include "call/call.h"
#include "call/deferred_response.h"
#include "inbox/inbox.h"
#include "inbox/task_summary.h"
#include "repeated_news.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "tools.h"

#define DEFAULT_WAIT_MS 30000
#define MOST_WAIT_MS 900000
#define DEFAULT_LOGS 100

struct await {
    uint32_t magic; /* AWAIT_MAGIC */
    struct call_part part;
    struct call *call;
    struct inbox_waiter *waiter; /* NULL once the wait is over */
    struct loop_timer timer;
    struct buffer triggers; /* JSON array, once it is over */
};
#define AWAIT_MAGIC 0x47574104

static inline struct await *await_from(void *context)
{
    return MAGIC_CAST(struct await, AWAIT_MAGIC, context);
}

static void await_count_wait(const char *outcome)
{
    metrics_count(METRIC_PSEUDO_WAITS, STR("await_activity"), str_from(outcome));
}

static void await_end_wait(struct await *await)
{
    loop_timer_stop(&await->timer);
    if (await->waiter)
        inbox_waiter_end(await->waiter);
    await->waiter = NULL;
}

static void drop(struct call *call, void *object)
{
    struct await *await = object;
    if (await->waiter)
        await_count_wait("left");
    await_end_wait(await);
    buffer_finish(&await->triggers);
    MAGIC_CLEAR(await);
    free(await);
}

static const struct call_part_kind await_kind = CALL_PART_KIND(struct await, drop);

static struct await *await_of(const struct call *call)
{
    return call_part_get(call, &await_kind);
}

/* ---- the answer ---- */

/* A session reaches one server, so there is one entry at most; none where `list` is empty. */
static void add_by_server(struct buffer *out, const char *key, const struct call *call,
                          const char *member, struct str list)
{
    json_add_key(out, key);
    buffer_append_char(out, '[');
    if (list.length > 0) {
        buffer_append_char(out, '{');
        json_add_text(out, "server", call->source->id);
        json_add_value(out, member, list);
        buffer_append_char(out, '}');
    }
    buffer_append_char(out, ']');
}

static void add_events(struct buffer *out, const struct call *call)
{
    char key[CLIENT_KEY_BYTES];
    OWNED_BUFFER(events);
    inbox_key_of_call(call, key);
    if (inbox_take_events(call->worker->gateway, str_from(key), STR_EMPTY, &events) > 0)
        repeated_news_forget_told(call, buffer_str(&events));
    else
        buffer_clear(&events);
    add_by_server(out, "events", call, "events", buffer_str(&events));
}

static void add_working(struct buffer *out, const struct call *call,
                        const struct store_reply *reply)
{
    OWNED_BUFFER(tasks);
    if (reply->task_count > 0) {
        buffer_append_char(&tasks, '[');
        task_summary_write_working(&tasks, reply);
        buffer_append_char(&tasks, ']');
    }
    add_by_server(out, "pending_server", call, "working_tasks", buffer_str(&tasks));
}

static void answer(struct call *call, const struct store_reply *reply)
{
    const struct await *await = await_of(call);
    OWNED_BUFFER(elicitations);
    OWNED_BUFFER(samplings);
    OWNED_BUFFER(json);
    pseudo_write_questions(call, true, NULL, &elicitations, &samplings);
    buffer_append_format(&json, "{\"triggers\":%.*s", STR_ARGS(buffer_str(&await->triggers)));
    add_events(&json, call);
    add_working(&json, call, reply);
    buffer_append_format(&json,
                         ",\"pending_client\":{\"elicitations\":%.*s,\"sampling_requests\":%.*s}}",
                         STR_ARGS(buffer_str(&elicitations)), STR_ARGS(buffer_str(&samplings)));
    pseudo_answer(call, &(struct pseudo_result){.json = buffer_str(&json),
                                                .structured = buffer_str(&json),
                                                .tells_events = true});
}

static void on_working(struct call *call, const struct store_reply *reply)
{
    if (reply->status != STORE_OK)
        pseudo_answer_no_store(call);
    else
        answer(call, reply);
}

static void await_report(struct call *call)
{
    await_end_wait(await_of(call));
    task_summary_list(call, TASK_SUMMARY_WORKING, on_working);
}

/* ---- the wait ---- */

static void on_woken(void *context)
{
    struct await *await = await_from(context);
    struct call *call = await->call;
    if (inbox_waiter_client_ended(await->waiter)) {
        await_end_wait(await);
        await_count_wait("session_ended");
        pseudo_fail(call, "Session not found");
        return;
    }
    await_count_wait("event");
    inbox_waiter_write_triggers(await->waiter, str_from(call->source->id), &await->triggers);
    await_report(call);
}

static void on_timeout(void *context)
{
    struct await *await = await_from(context);
    await_count_wait("timeout");
    buffer_append_text(&await->triggers, "[{\"type\":\"timeout\"}]");
    await_report(await->call);
}

static void on_stopped(struct call *call)
{
    struct await *await = await_of(call);
    if (await->waiter)
        on_timeout(await);
}

static void begin(struct call *call, struct await *await, int64_t timeout_ms)
{
    static const struct deferred_options waiting = {.what = "Waiting for activity",
                                                    .stopped = on_stopped};
    char key[CLIENT_KEY_BYTES];
    OWNED_BUFFER(text);
    inbox_key_of_call(call, key);
    switch (inbox_waiter_begin(call->worker->gateway, str_from(key), call->worker->loop, on_woken,
                               await, &await->waiter)) {
    case INBOX_WAIT_BEGUN:
        deferred_response_begin(call, &waiting);
        deferred_response_open_late(call);
        /* A call that comes while the gateway stops does not hold its drain. */
        loop_timer_start(&await->timer, atomic_load(&call->worker->gateway->shutting_down)
                                            ? 0
                                            : token_clock_bound_ms(call, timeout_ms));
        break;
    case INBOX_WAIT_IMMEDIATE:
        await_count_wait("immediate");
        buffer_append_text(&await->triggers, "[{\"type\":\"immediate\"}]");
        await_report(call);
        break;
    case INBOX_WAIT_TOO_MANY:
        pseudo_fail(call, "Too many calls of this tool wait already");
        break;
    case INBOX_WAIT_NO_CLIENT:
        pseudo_tools_write_text(call,
                                "Nothing is kept for this client: it has no session and no token, "
                                "or there are too many clients[[. Use {get_task_result} instead]]",
                                &text);
        pseudo_fail(call, "%.*s", STR_ARGS(buffer_str(&text)));
        break;
    }
}

void pseudo_tool_await_activity(struct call *call, struct str arguments)
{
    struct await *await = memory_alloc(sizeof *await);
    MAGIC_SET(await, AWAIT_MAGIC);
    await->call = call;
    buffer_init(&await->triggers);
    loop_timer_init(&await->timer, call->worker->loop, on_timeout, await);
    call_part_add(call, &await->part, &await_kind);
    begin(call, await,
          pseudo_argument_number(arguments, "timeout_ms", MOST_WAIT_MS, DEFAULT_WAIT_MS));
}

/* ---- what has come without a wait ---- */

void pseudo_tool_get_notifications(struct call *call, struct str arguments)
{
    char key[CLIENT_KEY_BYTES];
    OWNED_BUFFER(list);
    inbox_key_of_call(call, key);
    size_t count = inbox_take_notifications(call->worker->gateway, str_from(key), &list);
    pseudo_answer_array(call, "notifications", buffer_str(&list), count, STR("No notifications"));
}

void pseudo_tool_get_logs(struct call *call, struct str arguments)
{
    char key[CLIENT_KEY_BYTES];
    OWNED_BUFFER(list);
    OWNED_BUFFER(server);
    OWNED_BUFFER(level);
    size_t limit =
        (size_t)pseudo_argument_number(arguments, "limit", INBOX_MOST_LOGS, DEFAULT_LOGS);
    bool is_other = pseudo_argument_text(arguments, "server", &server) &&
                    !str_equal(buffer_str(&server), str_from(call->source->id));
    pseudo_argument_text(arguments, "level", &level);
    inbox_key_of_call(call, key);
    size_t count = inbox_take_logs(call->worker->gateway, is_other ? STR_EMPTY : str_from(key),
                                   buffer_str(&level), limit, &list);
    pseudo_answer_array(call, "logs", buffer_str(&list), count, STR("No log messages"));
}
