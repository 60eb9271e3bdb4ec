/* Calls of a tool that the server runs only as a task of its own: create it, poll it, fetch its
 * result (contract "Tasks": the server's annotation `required`). */
#include <stdlib.h>

#include "execution_internal.h"
#include "task_aliases.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#define POLL_INTERVAL_MS 1000
#define POLL_INTERVAL_MIN_MS 100
#define POLL_INTERVAL_MAX_MS 60000

static void write_params(struct buffer *params, const struct execution *execution)
{
    buffer_append_text(params, "{\"taskId\":");
    buffer_append_json_string(params, str_from(execution->base.server_task));
    buffer_append_char(params, '}');
}

static void execution_task_ask(struct execution *execution, const char *method,
                               const struct exchange_events *events)
{
    struct buffer params = {0}, body = {0}, id = {0};
    write_params(&params, execution);
    exchange_write_request(&body, &id, method, buffer_str(&params));
    execution_ask(execution, buffer_str(&body), buffer_str(&id), events);
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
}

static void on_result(void *context, const struct exchange_reply *reply)
{
    execution_answered(execution_from(context), reply);
}

static void fetch_result(struct execution *execution)
{
    static const struct exchange_events events = {.reply = on_result,
                                                  .server_message = execution_server_message};
    execution_task_ask(execution, "tasks/result", &events);
}

static int64_t poll_interval_ms(struct str task)
{
    uint64_t interval;
    if (!str_to_u64(json_member(task, "pollInterval"), &interval))
        return POLL_INTERVAL_MS;
    if (interval < POLL_INTERVAL_MIN_MS)
        return POLL_INTERVAL_MIN_MS;
    return interval > POLL_INTERVAL_MAX_MS ? POLL_INTERVAL_MAX_MS : (int64_t)interval;
}

static void on_status(void *context, const struct exchange_reply *reply)
{
    struct execution *execution = execution_from(context);
    struct str task = json_member(reply->message, "result");
    struct str status = json_member(task, "status");
    execution->base.exchange = NULL;
    if (task.length == 0)
        execution_answered(execution, reply); /* an error or no answer is the call's outcome */
    else if (json_string_equals(status, STR("working")))
        loop_timer_start(&execution->base.timer, poll_interval_ms(task));
    else /* the task has ended or asks something; tasks/result brings its answer */
        fetch_result(execution);
}

static void on_poll(void *context)
{
    static const struct exchange_events events = {.reply = on_status,
                                                  .server_message = execution_server_message};
    execution_task_ask(execution_from(context), "tasks/get", &events);
}

bool execution_task_follow(struct execution *execution, struct str result)
{
    struct invocation *base = &execution->base;
    struct gateway *gateway = base->worker->gateway;
    struct str task = json_member(result, "task");
    char *id = json_string_text(json_member(task, "taskId"), NULL);
    if (!id)
        return false; /* an immediate result is acceptable too */
    base->server_task = id;
    if (!invocation_move(base, INVOCATION_POLLING)) {
        execution_end(execution);
        return true;
    }
    task_aliases_put(gateway->task_aliases, base->session[0] ? base->audience.key : "", id,
                     base->task);
    store_task_set_upstream(gateway->store, str_from(base->id), str_from(id),
                            (struct store_call){base->worker->loop, NULL, NULL});
    loop_timer_start_with(&base->timer, on_poll, execution, poll_interval_ms(task));
    return true;
}

void execution_task_cancel(struct execution *execution)
{
    struct buffer params = {0}, body = {0}, id = {0};
    write_params(&params, execution);
    exchange_write_request(&body, &id, "tasks/cancel", buffer_str(&params));
    execution_say_last(execution, buffer_str(&body), buffer_str(&id));
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
}
