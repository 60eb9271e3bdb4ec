/* The messages of an approved call to the server, and the server's while it works. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "call/client_profile.h"
#include "execute_internal.h"
#include "inbox/inbox.h"
#include "notices.h"
#include "state/task_aliases.h"
#include "taskgate/core/random.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_server.h"
#include "taskgate/telemetry/task_trace.h"

/* Between two looks at a task of the server's. */
#define POLL_INTERVAL_MS 1000
#define POLL_INTERVAL_MIN_MS 100
#define POLL_INTERVAL_MAX_MS 60000

void execution_server_message(void *context, struct str message)
{
    struct execution *execution = execution_from(context);
    char key[CLIENT_KEY_BYTES];
    if (execution->leases_session && execution_asks_take(execution, message))
        return;
    inbox_key_of_task(execution->base.task, key);
    struct notice_origin origin = invocation_origin(&execution->base);
    origin.key = key;
    origin.task = execution->base.task;
    notices_take(&origin, message);
}

/* The server may be silent while a person has its question. */
static int64_t silence_limit_ms(const struct execution *execution)
{
    return execution_asks_is_open(execution) ||
                   question_keeps_server_waiting(execution->base.worker->gateway,
                                                 execution->base.task)
               ? 0
               : execution->base.snapshot->config->times.execution_timeout_ms;
}

/* In the trace of the request that made the task, which has ended long ago; linked to it, and to
 * the wait for a person, if there was one. */
static void join_trace(struct sending *sending, const struct task *task,
                       const struct task_trace *trace)
{
    sending->trace = (struct upstream_trace){
        .parent = {.context = &trace->create, .state = str_from(trace->state)},
        .links = {&trace->create, task->accelerated ? NULL : &trace->wait},
        .task = task->id,
    };
}

struct sending execution_sending(const struct execution *execution, struct task_trace *trace)
{
    const struct invocation *base = &execution->base;
    struct sending sending = invocation_sending(base);
    sending.silence_ms = silence_limit_ms(execution);
    sending.most_bytes = (size_t)base->snapshot->config->limits.result_bytes;
    if (telemetry_is_on && task_trace_read(trace, str_from(base->task->trace)))
        join_trace(&sending, base->task, trace);
    return sending;
}

void execution_ask(struct execution *execution, struct str body, struct str id,
                   const struct exchange_events *events)
{
    struct task_trace trace;
    struct sending sending = execution_sending(execution, &trace);
    sending.body = body;
    sending.id = id;
    execution->base.exchange = exchange_send(execution->base.worker, &sending, events, execution);
}

static void on_reply(void *context, const struct exchange_reply *reply)
{
    execution_answered(execution_from(context), reply);
}

void execution_set_silence(struct execution *execution)
{
    exchange_set_silence(invocation_exchange(&execution->base), silence_limit_ms(execution));
}

/* Adds a `task` member, without which the server does not run the tool. A client that knows no
 * tasks sent none. */
static void add_task(struct buffer *body, const struct task *task)
{
    struct buffer asked, params, whole;
    buffer_init(&asked);
    buffer_init(&params);
    buffer_init(&whole);
    buffer_append_format(&asked, "{\"ttl\":%" PRId64 "}", task->ttl_ms);
    json_write_with_member(&params, json_member(buffer_str(body), "params"), "task",
                           buffer_str(&asked));
    json_write_with_member(&whole, buffer_str(body), "params", buffer_str(&params));
    buffer_finish(&params);
    buffer_finish(&asked);
    buffer_finish(body);
    *body = whole;
}

bool execution_is_modern(const struct execution *execution)
{
    return *execution->base.task->mirrored_headers && !execution->leases_session;
}

void execution_take_id(struct execution *execution)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_clear(&execution->base.request_id);
    buffer_append_format(&execution->base.request_id, "\"tg:%s\"", uuid);
}

/* Of a modern call the id alone is another one, so that its headers stay true. */
void execution_write(const struct execution *execution, struct buffer *body)
{
    const struct task *task = execution->base.task;
    struct str quoted = buffer_str(&execution->base.request_id);
    struct str id = str_slice(quoted.bytes + 1, quoted.length - 2);
    struct envelope envelope;
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    if (execution->leases_session)
        legacy_server_write_request(body, &envelope, quoted);
    else
        envelope_write_executable(&envelope, id, task->keep_task || execution_is_modern(execution),
                                  body);
    if (task->keep_task && (envelope.task.raw.length == 0 || execution->leases_session))
        add_task(body, task);
    envelope_finish(&envelope);
}

static void post(struct execution *execution)
{
    static const struct exchange_events events = {.reply = on_reply,
                                                  .server_message = execution_server_message};
    struct buffer body = {0};
    execution_write(execution, &body);
    execution_ask(execution, buffer_str(&body), buffer_str(&execution->base.request_id), &events);
    buffer_finish(&body);
}

void execution_send(struct execution *execution)
{
    execution_take_id(execution);
    /* At RUNNING it goes to a server that had forgotten its session. */
    if (conversation_where(&execution->base) != CONVERSATION_RUNNING &&
        !conversation_move(&execution->base, CONVERSATION_RUNNING))
        execution_end(execution);
    else if (execution_is_modern(execution))
        execution->base.up.protocol->begin(&execution->base.up, NULL);
    else
        post(execution);
}

/* ---- a task of the server's own ---- */

/* A tool that the server runs only so (behaviour 7.9: its annotation `required`): created, polled,
 * and its result fetched. */

static void write_task_params(struct buffer *params, const struct execution *execution)
{
    buffer_append_text(params, "{\"taskId\":");
    buffer_append_json_string(params, str_from(execution->base.server_task));
    buffer_append_char(params, '}');
}

static void execution_task_ask(struct execution *execution, const char *method,
                               const struct exchange_events *events)
{
    struct buffer params = {0}, body = {0}, id = {0};
    write_task_params(&params, execution);
    exchange_write_request(&body, &id, method, buffer_str(&params));
    execution_ask(execution, buffer_str(&body), buffer_str(&id), events);
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
}

static void on_task_result(void *context, const struct exchange_reply *reply)
{
    execution_answered(execution_from(context), reply);
}

static void fetch_task_result(struct execution *execution)
{
    static const struct exchange_events events = {.reply = on_task_result,
                                                  .server_message = execution_server_message};
    execution_task_ask(execution, "tasks/result", &events);
}

static int64_t task_interval_ms(struct str task)
{
    uint64_t interval;
    if (!str_to_u64(json_member(task, "pollInterval"), &interval))
        return POLL_INTERVAL_MS;
    if (interval < POLL_INTERVAL_MIN_MS)
        return POLL_INTERVAL_MIN_MS;
    return interval > POLL_INTERVAL_MAX_MS ? POLL_INTERVAL_MAX_MS : (int64_t)interval;
}

static void on_task_status(void *context, const struct exchange_reply *reply)
{
    struct execution *execution = execution_from(context);
    struct str task = json_member(reply->message, "result");
    struct str status = json_member(task, "status");
    execution->base.exchange = NULL;
    if (task.length == 0)
        execution_answered(execution, reply); /* an error or no answer is the call's outcome */
    else if (json_string_equals(status, STR("working")))
        loop_timer_start(&execution->base.timer, task_interval_ms(task));
    else /* the task has ended or asks something; tasks/result brings its answer */
        fetch_task_result(execution);
}

static void on_task_poll(void *context)
{
    static const struct exchange_events events = {.reply = on_task_status,
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
    if (!conversation_move(base, CONVERSATION_FOLLOWING)) {
        execution_end(execution);
        return true;
    }
    task_aliases_put(gateway->task_aliases, base->session[0] ? base->audience.key : "", id,
                     base->task);
    store_task_set_upstream(gateway->store, str_from(base->id), str_from(id),
                            (struct store_call){base->worker->loop, NULL, NULL});
    loop_timer_start_with(&base->timer, on_task_poll, execution, task_interval_ms(task));
    return true;
}

void execution_task_cancel(struct execution *execution)
{
    struct buffer params = {0}, body = {0}, id = {0};
    write_task_params(&params, execution);
    exchange_write_request(&body, &id, "tasks/cancel", buffer_str(&params));
    execution_say_last(execution, buffer_str(&body), buffer_str(&id));
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
}
