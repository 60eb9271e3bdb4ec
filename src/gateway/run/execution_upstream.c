/* What an approved call sends to upstream, and what upstream says while it works. */
#include <inttypes.h>
#include <string.h>

#include "execution_internal.h"
#include "inbox/inbox.h"
#include "request/client_profile.h"
#include "server_messages.h"
#include "taskgate/core/random.h"
#include "taskgate/json/text.h"

void execution_interim(void *context, struct str message)
{
    struct execution *execution = context;
    char key[CLIENT_KEY_BYTES];
    inbox_key_of_task(execution->task, key);
    const struct interim_origin origin = {
        .key = key,
        .worker = execution->worker,
        .snapshot = execution->snapshot,
        .source = execution->source,
        .headers = &execution->credentials,
        .session = execution->session,
        .audience = &execution->audience,
        .task = execution->task,
        .budget = &execution->budget,
    };
    interim_take(&origin, message);
}

/* While a person thinks, upstream has nothing to say. */
static int64_t silence_limit_ms(const struct execution *execution)
{
    return questions_are_open(execution->worker->gateway, execution->task)
               ? 0
               : execution->snapshot->config->times.execution_timeout_ms;
}

void execution_ask(struct execution *execution, struct str body, struct str id,
                   const struct ask_callbacks *callbacks)
{
    const struct config *config = execution->snapshot->config;
    struct ask_options options = {
        .source = execution->source,
        .snapshot = execution->snapshot,
        .headers = &execution->credentials,
        .body = body,
        .id = id,
        .silence_ms = silence_limit_ms(execution),
        .most_bytes = (size_t)config->limits.result_bytes,
    };
    execution->ask = ask_start(execution->worker, &options, callbacks, execution);
}

static void on_reply(void *context, const struct ask_reply *reply)
{
    execution_answered(context, reply);
}

void execution_set_silence(struct execution *execution)
{
    ask_set_silence(execution->ask, silence_limit_ms(execution));
}

/* A client that knows no tasks sent none, and upstream runs the tool in no other way. */
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

static void write_body(struct buffer *body, const struct task *task, struct str id)
{
    struct envelope envelope;
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    envelope_write_executable(&envelope, id, task->keep_task, body);
    if (task->keep_task && envelope.task.raw.length == 0)
        add_task(body, task);
    envelope_finish(&envelope);
}

void execution_send(struct execution *execution)
{
    static const struct ask_callbacks callbacks = {.reply = on_reply, .interim = execution_interim};
    struct buffer body;
    char id[RANDOM_UUID_BYTES + 8] = "tg:", uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    memcpy(id + 3, uuid, sizeof uuid);
    buffer_clear(&execution->request_id);
    buffer_append_format(&execution->request_id, "\"%s\"", id);
    buffer_init(&body);
    write_body(&body, execution->task, str_from(id));
    execution_ask(execution, buffer_str(&body), buffer_str(&execution->request_id), &callbacks);
    buffer_finish(&body);
}

void execution_say_last(struct execution *execution, struct str body, struct str id)
{
    struct ask_options options = {.source = execution->source,
                                  .snapshot = execution->snapshot,
                                  .headers = &execution->credentials,
                                  .body = body,
                                  .id = id};
    if (execution->own_session)
        execution_session_say_last(execution, &options);
    else
        ask_tell(execution->worker, &options);
}
