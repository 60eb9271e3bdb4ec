/* What a modern server asks in the call of a legacy client that was approved. To the client they
 * are requests, as a server of its own era would send them: in its task, on its streams, in the
 * gateway's tools. Its answers go up as those of a round. */
#include <stdlib.h>

#include "execution_internal.h"
#include "execution_modern.h"
#include "request/broadcast.h"
#include "task_rounds.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_bridge.h"

bool execution_has_legacy_client(const struct execution *execution)
{
    const struct task *task = execution->base.task;
    return *task->mirrored_headers && *task->session; /* modern clients have no sessions */
}

static struct task_rounds *rounds_of(const struct gateway_worker *worker)
{
    return worker->gateway->task_rounds;
}

/* ---- an answer that is none ---- */

/* On the worker that runs the call. A person who does not answer has closed the form. Nothing can
 * be said in the place of a model. */
static void take_refusal(struct execution *execution, struct str id)
{
    struct invocation *base = &execution->base;
    struct buffer requests, answers;
    char *key = json_string_text(id, NULL);
    buffer_init(&requests);
    buffer_init(&answers);
    task_rounds_show(rounds_of(base->worker), str_from(base->id), &requests, &(int64_t){0});
    struct str method = json_path(buffer_str(&requests), key, "method");
    if (json_string_equals(method, STR("elicitation/create"))) {
        buffer_append_format(&answers, "{%.*s:{\"action\":\"cancel\"}}", STR_ARGS(id));
        execution_modern_answer(base->worker, base->task, buffer_str(&answers));
    } else if (method.length > 0) {
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR,
                       "upstream requires what the client does not give");
    }
    free(key);
    buffer_finish(&answers);
    buffer_finish(&requests);
}

static void deliver_refusal(struct gateway_worker *worker, const void *broadcast)
{
    const struct task_broadcast *refused = broadcast;
    struct execution *execution = map_get(worker->executions, str_from(refused->task->id));
    if (execution && invocation_has_begun(&execution->base))
        take_refusal(execution, refused->text);
}

static const struct broadcast_kind refusal_kind = TASK_BROADCAST_KIND(deliver_refusal);

/* ---- answers ---- */

static void take_answer(struct gateway_worker *worker, struct task *task, struct str id,
                        const struct input_response *response)
{
    struct buffer text;
    buffer_init(&text);
    if (response->result.length > 0) {
        buffer_append_format(&text, "{%.*s:", STR_ARGS(id));
        buffer_append(&text, response->result);
        buffer_append_char(&text, '}');
        execution_modern_answer(worker, task, buffer_str(&text));
    } else {
        const struct task_broadcast refused = {task, id};
        broadcast_send(worker->gateway, &refusal_kind, &refused);
    }
    buffer_finish(&text);
}

/* ---- asking ---- */

static void ask(const struct execution *execution, struct str key, struct str request)
{
    const struct invocation *base = &execution->base;
    const struct input_origin origin = {.worker = base->worker,
                                        .snapshot = base->snapshot,
                                        .source = base->source,
                                        .headers = &base->headers,
                                        .session = base->session,
                                        .audience = &base->audience,
                                        .task = base->task,
                                        .take_answer = take_answer};
    struct buffer message;
    buffer_init(&message);
    legacy_bridge_write_request(&message, key, request);
    input_take(&origin, buffer_str(&message));
    buffer_finish(&message);
}

void execution_inputs_ask(const struct execution *execution)
{
    struct buffer requests;
    struct str key, request;
    struct str id = str_from(execution->base.id);
    buffer_init(&requests);
    task_rounds_show(rounds_of(execution->base.worker), id, &requests, &(int64_t){0});
    for (size_t position = 0; json_next_member(buffer_str(&requests), &position, &key, &request);)
        ask(execution, key, request);
    buffer_finish(&requests);
}
