/* Questions of a legacy server in an approved call of a modern client. The client hears of them as
 * of a modern server's: in its task, or in answer to its held call. Its answers go up as
 * responses. */
#include <stdio.h>
#include <stdlib.h>

#include "answer_gate.h"
#include "execute_internal.h"
#include "invocation_rounds.h"
#include "rounds.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_server.h"
#include "taskgate/mcp/question.h"

/* That are open at once. */
#define MOST_ASKS 32

/* A request of the server's that waits for the client's answer. */
struct ask {
    struct list node;
    char key[24];
    struct buffer id;      /* the server's, JSON text */
    struct buffer request; /* a value of inputRequests */
    enum mcp_question kind;
    bool is_held; /* its answer has come, and does not go up yet */
};

struct execution_asks {
    struct list open;
    size_t count;
    uint64_t numbered;
    struct loop_timer patience;
};

static struct question_table *rounds_of(const struct execution *execution)
{
    return execution->base.worker->gateway->questions;
}

static void ask_destroy(struct execution_asks *asks, struct ask *ask)
{
    list_remove(&ask->node);
    asks->count--;
    buffer_finish(&ask->id);
    buffer_finish(&ask->request);
    free(ask);
}

void execution_asks_end(struct execution *execution)
{
    struct execution_asks *asks = execution->asks;
    if (!asks)
        return;
    loop_timer_stop(&asks->patience);
    LIST_FOR_EACH_SAFE (node, next, &asks->open) {
        ask_destroy(asks, LIST_ENTRY(node, struct ask, node));
    }
    free(asks);
    execution->asks = NULL;
}

bool execution_asks_is_open(const struct execution *execution)
{
    return execution->asks && execution->asks->count > 0;
}

/* ---- to the server ---- */

static void respond(const struct execution *execution, struct str id, struct str result,
                    const char *error)
{
    struct sending sending = invocation_sending(&execution->base);
    struct buffer body;
    buffer_init(&body);
    if (result.length > 0)
        jsonrpc_write_result(&body, id, result);
    else
        jsonrpc_write_error_text(&body, id, str_from(error));
    sending.body = buffer_str(&body);
    exchange_notify(execution->base.worker, &sending);
    buffer_finish(&body);
}

/* The client has not answered it. */
static void refuse(const struct execution *execution, const struct ask *ask)
{
    bool is_elicitation = ask->kind == MCP_QUESTION_FORM || ask->kind == MCP_QUESTION_URL;
    respond(execution, buffer_str(&ask->id),
            is_elicitation ? STR("{\"action\":\"cancel\"}") : STR_EMPTY,
            "{\"code\":-32603,\"message\":\"The client has not answered\"}");
}

/* ---- to the client ---- */

/* All that is open, under the keys that the client knows. */
static void show(struct execution *execution)
{
    const struct execution_asks *asks = execution->asks;
    struct str id = str_from(execution->base.id);
    struct buffer requests;
    buffer_init(&requests);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was destroyed is in no list */
    LIST_FOR_EACH_SAFE (node, next, &asks->open) {
        const struct ask *ask = LIST_ENTRY(node, struct ask, node);
        buffer_append_format(&requests, "%c\"%s\":", requests.length > 0 ? ',' : '{', ask->key);
        buffer_append(&requests, buffer_str(&ask->request));
    }
    buffer_append_char(&requests, '}');
    bool has_changed = asks->count > 0 ? rounds_put(rounds_of(execution), id, 1,
                                                    buffer_str(&requests), clock_now_ms())
                                       : rounds_forget(rounds_of(execution), id);
    if (has_changed)
        invocation_rounds_tell(&execution->base);
    if (execution->base.exchange)
        execution_set_silence(execution);
    buffer_finish(&requests);
}

/* ---- asking ---- */

static void on_patience(void *context)
{
    struct execution *execution = execution_from(context);
    struct execution_asks *asks = execution->asks;
    log_warn("The client of a task has not answered what the server asked",
             LOG_TEXT("task", execution->base.id));
    LIST_FOR_EACH_SAFE (node, next, &asks->open) {
        struct ask *ask = LIST_ENTRY(node, struct ask, node);
        if (ask->is_held)
            continue;
        refuse(execution, ask);
        ask_destroy(asks, ask);
    }
    show(execution);
}

static struct execution_asks *asks_of(struct execution *execution)
{
    if (!execution->asks) {
        execution->asks = memory_alloc(sizeof *execution->asks);
        list_init(&execution->asks->open);
        loop_timer_init(&execution->asks->patience, execution->base.worker->loop, on_patience,
                        execution);
    }
    return execution->asks;
}

static void ask_client(struct execution *execution, struct str message, enum mcp_question kind)
{
    struct execution_asks *asks = asks_of(execution);
    struct ask *ask = memory_alloc(sizeof *ask);
    snprintf(ask->key, sizeof ask->key, "%llu", (unsigned long long)++asks->numbered);
    ask->kind = kind;
    buffer_append(&ask->id, json_member(message, "id"));
    legacy_server_write_question(&ask->request, message);
    list_append(&asks->open, &ask->node);
    asks->count++;
    loop_timer_stop(&asks->patience);
    loop_timer_start(&asks->patience,
                     execution->base.snapshot->config->pseudo.elicitation_timeout_ms);
    log_info("Upstream asks the client of a task", LOG_TEXT("task", execution->base.id),
             LOG_NUMBER("requests", (int64_t)asks->count));
    show(execution);
}

/* As the client has declared in the call itself. */
static bool may_ask(const struct execution *execution, enum mcp_question kind)
{
    const struct task *task = execution->base.task;
    struct envelope envelope;
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    bool may = mcp_may_ask(envelope.reserved.client_capabilities, kind);
    envelope_finish(&envelope);
    return may && !answer_gate_denies(task);
}

static void take_question(struct execution *execution, struct str message, enum mcp_question kind)
{
    struct str id = json_member(message, "id");
    if (!server_budget_take(&execution->base.budget, SERVER_REQUEST, clock_monotonic_ms()))
        log_warn("A server asks too much in one call", LOG_TEXT("task", execution->base.id));
    else if (!may_ask(execution, kind))
        respond(execution, id, STR_EMPTY, "{\"code\":-32601,\"message\":\"Method not found\"}");
    else if (execution_asks_is_open(execution) && execution->asks->count == MOST_ASKS)
        respond(execution, id, STR_EMPTY,
                "{\"code\":-32603,\"message\":\"Too many questions in one call\"}");
    else
        ask_client(execution, message, kind);
}

static void withdraw(struct execution *execution, struct str request_id)
{
    struct execution_asks *asks = execution->asks;
    bool has_changed = false;
    if (!asks)
        return;
    LIST_FOR_EACH_SAFE (node, next, &asks->open) {
        struct ask *ask = LIST_ENTRY(node, struct ask, node);
        if (!str_equal(buffer_str(&ask->id), request_id))
            continue;
        ask_destroy(asks, ask);
        has_changed = true;
    }
    if (has_changed)
        show(execution);
}

bool execution_asks_take(struct execution *execution, struct str message)
{
    bool is_request = json_member(message, "id").length > 0;
    enum mcp_question kind = is_request ? mcp_question_of(message) : MCP_QUESTION_NONE;
    bool is_withdrawal =
        !is_request && json_string_equals(json_member(message, "method"), STR(MCP_CANCELLED));
    if (kind != MCP_QUESTION_NONE)
        take_question(execution, message, kind);
    else if (is_withdrawal)
        withdraw(execution, json_path(message, "params", "requestId"));
    return kind != MCP_QUESTION_NONE || is_withdrawal;
}

/* ---- answers ---- */

void execution_asks_hold(struct execution *execution, struct str answers)
{
    struct execution_asks *asks = execution->asks;
    bool all_are_held = true;
    if (!asks)
        return;
    LIST_FOR_EACH_SAFE (node, next, &asks->open) {
        struct ask *ask = LIST_ENTRY(node, struct ask, node);
        ask->is_held = ask->is_held || json_member(answers, ask->key).length > 0;
        all_are_held = all_are_held && ask->is_held;
    }
    if (all_are_held)
        loop_timer_stop(&asks->patience);
}

static void end(struct execution *execution, struct str answers, bool pass)
{
    struct execution_asks *asks = execution->asks;
    if (!asks)
        return; /* the server does not want them any more */
    LIST_FOR_EACH_SAFE (node, next, &asks->open) {
        struct ask *ask = LIST_ENTRY(node, struct ask, node);
        struct str answer = json_member(answers, ask->key);
        if (answer.length == 0)
            continue;
        if (pass && json_type(answer) == JSON_OBJECT)
            respond(execution, buffer_str(&ask->id), answer, NULL);
        else
            refuse(execution, ask); /* or it is no answer that the protocol has */
        ask_destroy(asks, ask);
    }
    if (asks->count == 0)
        loop_timer_stop(&asks->patience);
    show(execution);
}

void execution_asks_answer(struct execution *execution, struct str answers)
{
    end(execution, answers, true);
}

void execution_asks_refuse(struct execution *execution, struct str answers)
{
    end(execution, answers, false);
}
