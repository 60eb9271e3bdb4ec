/* What a server requires in the call of a task: its rounds, in which the client of the task is
 * asked and the server gets the call again, and the client's answers on their way. The questions of
 * a modern server to a legacy client are requests to it, as a server of its own era would send
 * them: in its task, on its streams, in the gateway's tools. */
#include "task_inputs.h"

#include "answer_gate.h"
#include "call/broadcast.h"
#include "invocation.h"
#include "question.h"
#include "rounds.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"
#include "taskgate/mcp/legacy_text.h"
#include "taskgate/mcp/question.h"

static struct question_table *rounds_of(const struct gateway_worker *worker)
{
    return worker->gateway->questions;
}

/* ---- answers ---- */

static void deliver_answers(struct gateway_worker *worker, struct task *task, struct str none)
{
    struct invocation *invocation = invocation_of_task(worker, str_from(task->id));
    if (invocation)
        invocation->class->answered(invocation);
    worker->gateway->task_asks(worker, task);
}

void task_inputs_answer(struct gateway_worker *worker, struct task *task, struct str answers)
{
    if (rounds_answer(rounds_of(worker), str_from(task->id), answers, clock_now_ms()))
        broadcast_task(worker->gateway, task, STR_EMPTY, deliver_answers);
}

/* ---- an answer that is none ---- */

/* On the worker that runs the call. A person who does not answer has closed the form. Nothing can
 * be said in the place of a model. */
static void take_refusal(struct invocation *invocation, struct str id)
{
    OWNED_BUFFER(requests);
    OWNED_BUFFER(answers);
    OWNED char *key = json_string_text(id, NULL);
    rounds_show(rounds_of(invocation->worker), str_from(invocation->id), &requests, &(int64_t){0});
    struct str method = json_path(buffer_str(&requests), key, "method");
    if (json_string_equals(method, STR(MCP_ELICIT))) {
        buffer_append_format(&answers, "{%.*s:{\"action\":\"cancel\"}}", STR_ARGS(id));
        task_inputs_answer(invocation->worker, invocation->task, buffer_str(&answers));
    } else if (method.length > 0) {
        invocation->class->give_up(invocation, JSONRPC_UPSTREAM_ERROR,
                                   "upstream requires what the client does not give");
    }
}

static void deliver_refusal(struct gateway_worker *worker, struct task *task, struct str id)
{
    struct invocation *invocation = invocation_of_task(worker, str_from(task->id));
    if (invocation && conversation_has_begun(invocation))
        take_refusal(invocation, id);
}

/* ---- the client's responses ---- */

static void take_answer(struct gateway_worker *worker, const struct question_asked *asked,
                        const struct server_response *response)
{
    struct str id = asked->id;
    OWNED_BUFFER(text);
    if (response->result.length > 0) {
        buffer_append_format(&text, "{%.*s:", STR_ARGS(id));
        buffer_append(&text, response->result);
        buffer_append_char(&text, '}');
        task_inputs_answer(worker, asked->task, buffer_str(&text));
    } else {
        broadcast_task(worker->gateway, asked->task, id, deliver_refusal);
    }
}

/* ---- asking ---- */

void task_inputs_ask(struct invocation *invocation)
{
    struct question_origin origin = invocation_origin(invocation);
    OWNED_BUFFER(requests);
    struct str key, request;
    origin.task = invocation->task;
    origin.take_answer = take_answer;
    rounds_show(rounds_of(invocation->worker), str_from(invocation->id), &requests, &(int64_t){0});
    for (size_t position = 0; json_next_member(buffer_str(&requests), &position, &key, &request);) {
        OWNED_BUFFER(message);
        legacy_text_write_question(&message, key, request);
        question_take(&origin, buffer_str(&message));
    }
}

/* ---- rounds ---- */

static const struct {
    enum jsonrpc_error error;
    const char *why;
} lost[LOST_REASON_COUNT] = {
    [LOST_ROUND] = {JSONRPC_UPSTREAM_ERROR,
                    "upstream requires input, and does not say it as the protocol has it, or "
                    "asks more than 100 questions at once"},
    [LOST_ROUNDS] = {JSONRPC_UPSTREAM_ERROR, "upstream still required input after 10 rounds"},
    [LOST_AGAIN] = {JSONRPC_UPSTREAM_TIMEOUT, "upstream asked for the call again and again"},
    [LOST_UNANSWERED] = {JSONRPC_UPSTREAM_TIMEOUT,
                         "the client has not answered what upstream asked"},
    [LOST_TASK_ID] = {JSONRPC_UPSTREAM_ERROR, "upstream made a task without an id"},
    [LOST_TASK_STATE] = {JSONRPC_UPSTREAM_ERROR,
                         "upstream's task is in a state that the protocol does not have"},
    [LOST_TASK_ROUND] = {JSONRPC_UPSTREAM_ERROR,
                         "upstream requires input for which the client cannot be asked"},
};

/* ---- telling ---- */

static void deliver_change(struct gateway_worker *worker, struct task *task, struct str none)
{
    worker->gateway->task_asks(worker, task);
}

void task_inputs_tell(const struct invocation *invocation)
{
    broadcast_task(invocation->worker->gateway, invocation->task, STR_EMPTY, deliver_change);
}

/* ---- the next round ---- */

bool task_inputs_take(struct invocation *invocation, struct rounds_taken *taken)
{
    if (conversation_where(invocation) != CONVERSATION_RUNNING ||
        invocation->up.state != LINK_ASKED ||
        !rounds_take(rounds_of(invocation->worker), str_from(invocation->id), taken))
        return false;
    invocation->up.protocol->expect_answer(&invocation->up,
                                           0); /* the client has done what it can */
    return true;
}

void task_inputs_send(struct invocation *invocation, struct str answers)
{
    bool (*is_forwarded)(const struct invocation *) = invocation->class->is_forwarded;
    rounds_forget(rounds_of(invocation->worker), str_from(invocation->id));
    if (is_forwarded && !is_forwarded(invocation)) {
        log_warn("A call is not sent again: the rules do not forward it any more",
                 LOG_TEXT("task", invocation->id));
        invocation->class->give_up(invocation, JSONRPC_RULE_DENIED, "");
        return;
    }
    invocation->up.protocol->answer_round(&invocation->up, answers);
}

void task_inputs_answered(struct invocation *invocation)
{
    struct rounds_taken taken = {0};
    if (task_inputs_take(invocation, &taken))
        task_inputs_send(invocation, buffer_str(&taken.answers));
    rounds_taken_finish(&taken);
}

/* ---- what the server requires ---- */

static void ask_round(struct invocation *invocation, struct str requests, bool has_legacy_client)
{
    rounds_put(rounds_of(invocation->worker), str_from(invocation->id), invocation->up.rounds,
               requests, clock_now_ms());
    task_inputs_tell(invocation);
    log_info("Upstream asks the client of a task", LOG_TEXT("task", invocation->id),
             LOG_NUMBER("round", invocation->up.rounds),
             LOG_NUMBER("requests", (int64_t)json_count(requests)));
    if (has_legacy_client) /* each question has a clock of its own */
        task_inputs_ask(invocation);
    if (!has_legacy_client ||
        rounds_count(rounds_of(invocation->worker), str_from(invocation->id), NULL) == 0)
        invocation->up.protocol->expect_answer(
            &invocation->up, invocation->snapshot->config->pseudo.elicitation_timeout_ms);
}

/* A client of the extension reads what its task asks, and any other gets it in answer to its held
 * call, where it has declared all of it. */
static bool can_be_asked(const struct task *task, struct str requests)
{
    OWNED_ENVELOPE(envelope);
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    struct str declared = envelope.reserved.client_capabilities;
    return (mcp_declares_task_extension(declared) || mcp_may_ask_all(declared, requests)) &&
           !answer_gate_denies(task);
}

void task_inputs_take_round(struct invocation *invocation, struct str requests,
                            bool has_legacy_client)
{
    ASSERT(invocation->up.state == LINK_ASKED);
    if (requests.length == 0)
        invocation->up.protocol->pause(&invocation->up,
                                       invocation->snapshot->config->times.execution_timeout_ms);
    else if (has_legacy_client || can_be_asked(invocation->task, requests))
        ask_round(invocation, requests, has_legacy_client);
    else
        invocation->class->give_up(invocation, JSONRPC_UPSTREAM_ERROR,
                                   "upstream requires input for which the client cannot be asked");
}

void task_inputs_lost(struct invocation *invocation, enum lost_reason reason)
{
    ASSERT_NUMBERS(reason, <, LOST_REASON_COUNT);
    ASSERT(lost[reason].why);
    if (reason == LOST_TASK_ROUND)
        invocation->up.protocol->cancel(&invocation->up, "");
    invocation->class->give_up(invocation, lost[reason].error, lost[reason].why);
}
