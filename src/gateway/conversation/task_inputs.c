/* Answers of a client to what the server asks in its task, on their way to the call. The questions
 * of a modern server to a legacy client are requests to it, as a server of its own era would send
 * them: in its task, on its streams, in the gateway's tools. */
#include <stdlib.h>

#include "call/broadcast.h"
#include "invocation.h"
#include "rounds.h"
#include "task_inputs.h"
#include "taskgate/core/clock.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_text.h"
#include "taskgate/mcp/question.h"

static struct question_table *rounds_of(const struct gateway_worker *worker)
{
    return worker->gateway->questions;
}

/* ---- answers ---- */

static void deliver_answers(struct gateway_worker *worker, const void *broadcast)
{
    const struct task_broadcast *answered = broadcast;
    struct invocation *invocation = invocation_of_task(worker, str_from(answered->task->id));
    if (invocation)
        invocation->class->answered(invocation);
    worker->gateway->task_asks(worker, answered->task);
}

static const struct broadcast_kind answers_kind = TASK_BROADCAST_KIND(deliver_answers);

void task_inputs_answer(struct gateway_worker *worker, struct task *task, struct str answers)
{
    if (rounds_answer(rounds_of(worker), str_from(task->id), answers, clock_now_ms()))
        broadcast_send(worker->gateway, &answers_kind, &(struct task_broadcast){task, STR_EMPTY});
}

/* ---- an answer that is none ---- */

/* On the worker that runs the call. A person who does not answer has closed the form. Nothing can
 * be said in the place of a model. */
static void take_refusal(struct invocation *invocation, struct str id)
{
    struct buffer requests, answers;
    char *key = json_string_text(id, NULL);
    buffer_init(&requests);
    buffer_init(&answers);
    rounds_show(rounds_of(invocation->worker), str_from(invocation->id), &requests, &(int64_t){0});
    struct str method = json_path(buffer_str(&requests), key, "method");
    if (json_string_equals(method, STR(MCP_ELICIT))) {
        buffer_append_format(&answers, "{%.*s:{\"action\":\"cancel\"}}", STR_ARGS(id));
        task_inputs_answer(invocation->worker, invocation->task, buffer_str(&answers));
    } else if (method.length > 0) {
        invocation->class->give_up(invocation, JSONRPC_UPSTREAM_ERROR,
                                   "upstream requires what the client does not give");
    }
    free(key);
    buffer_finish(&answers);
    buffer_finish(&requests);
}

static void deliver_refusal(struct gateway_worker *worker, const void *broadcast)
{
    const struct task_broadcast *refused = broadcast;
    struct invocation *invocation = invocation_of_task(worker, str_from(refused->task->id));
    if (invocation && conversation_has_begun(invocation))
        take_refusal(invocation, refused->text);
}

static const struct broadcast_kind refusal_kind = TASK_BROADCAST_KIND(deliver_refusal);

/* ---- the client's responses ---- */

static void take_answer(struct gateway_worker *worker, const struct question_asked *asked,
                        const struct server_response *response)
{
    struct str id = asked->id;
    struct buffer text;
    buffer_init(&text);
    if (response->result.length > 0) {
        buffer_append_format(&text, "{%.*s:", STR_ARGS(id));
        buffer_append(&text, response->result);
        buffer_append_char(&text, '}');
        task_inputs_answer(worker, asked->task, buffer_str(&text));
    } else {
        const struct task_broadcast refused = {asked->task, id};
        broadcast_send(worker->gateway, &refusal_kind, &refused);
    }
    buffer_finish(&text);
}

/* ---- asking ---- */

static void ask(const struct invocation *base, struct str key, struct str request)
{
    const struct question_origin origin = {.worker = base->worker,
                                           .snapshot = base->snapshot,
                                           .source = base->source,
                                           .headers = &base->headers,
                                           .session = base->session,
                                           .audience = &base->audience,
                                           .task = base->task,
                                           .take_answer = take_answer};
    struct buffer message;
    buffer_init(&message);
    legacy_text_write_question(&message, key, request);
    question_take(&origin, buffer_str(&message));
    buffer_finish(&message);
}

void task_inputs_ask(const struct invocation *invocation)
{
    struct buffer requests;
    struct str key, request;
    buffer_init(&requests);
    rounds_show(rounds_of(invocation->worker), str_from(invocation->id), &requests, &(int64_t){0});
    for (size_t position = 0; json_next_member(buffer_str(&requests), &position, &key, &request);)
        ask(invocation, key, request);
    buffer_finish(&requests);
}
