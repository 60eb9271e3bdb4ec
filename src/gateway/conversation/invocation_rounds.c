/* Rounds of questions inside one call. */
#include "invocation_rounds.h"

#include "answer_gate.h"
#include "call/broadcast.h"
#include "question.h"
#include "rounds.h"
#include "task_inputs.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

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

static struct question_table *rounds_of(const struct invocation *invocation)
{
    return invocation->worker->gateway->questions;
}

static void give_up(struct invocation *invocation, enum jsonrpc_error error, const char *why)
{
    invocation->class->give_up(invocation, error, why);
}

/* ---- telling ---- */

static void deliver_change(struct gateway_worker *worker, const void *broadcast)
{
    const struct task_broadcast *changed = broadcast;
    worker->gateway->task_asks(worker, changed->task);
}

static const struct broadcast_kind change_kind = TASK_BROADCAST_KIND(deliver_change);

void invocation_rounds_tell(const struct invocation *invocation)
{
    broadcast_send(invocation->worker->gateway, &change_kind,
                   &(struct task_broadcast){invocation->task, STR_EMPTY});
}

/* ---- the next round ---- */

bool invocation_rounds_take(struct invocation *invocation, struct rounds_taken *taken)
{
    if (conversation_where(invocation) != CONVERSATION_RUNNING ||
        invocation->up.state != LINK_ASKED ||
        !rounds_take(rounds_of(invocation), str_from(invocation->id), taken))
        return false;
    invocation->up.protocol->expect_answer(&invocation->up,
                                           0); /* the client has done what it can */
    return true;
}

void invocation_rounds_send(struct invocation *invocation, struct str answers)
{
    bool (*is_forwarded)(const struct invocation *) = invocation->class->is_forwarded;
    rounds_forget(rounds_of(invocation), str_from(invocation->id));
    if (is_forwarded && !is_forwarded(invocation)) {
        log_warn("A call is not sent again: the rules do not forward it any more",
                 LOG_TEXT("task", invocation->id));
        give_up(invocation, JSONRPC_RULE_DENIED, "");
        return;
    }
    invocation->up.protocol->answer_round(&invocation->up, answers);
}

void invocation_rounds_answered(struct invocation *invocation)
{
    struct rounds_taken taken = {0};
    if (invocation_rounds_take(invocation, &taken))
        invocation_rounds_send(invocation, buffer_str(&taken.answers));
    rounds_taken_finish(&taken);
}

/* ---- what the server requires ---- */

static void ask(struct invocation *invocation, struct str requests, bool has_legacy_client)
{
    rounds_put(rounds_of(invocation), str_from(invocation->id), invocation->up.rounds, requests,
               clock_now_ms());
    invocation_rounds_tell(invocation);
    log_info("Upstream asks the client of a task", LOG_TEXT("task", invocation->id),
             LOG_NUMBER("round", invocation->up.rounds),
             LOG_NUMBER("requests", (int64_t)json_count(requests)));
    if (has_legacy_client) /* each question has a clock of its own */
        task_inputs_ask(invocation);
    else
        invocation->up.protocol->expect_answer(
            &invocation->up, invocation->snapshot->config->pseudo.elicitation_timeout_ms);
}

/* A client of the extension reads what its task asks, and any other gets it in answer to its held
 * call, where it has declared all of it. */
static bool can_be_asked(const struct task *task, struct str requests)
{
    struct envelope envelope;
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    struct str declared = envelope.reserved.client_capabilities;
    bool declares = mcp_declares_task_extension(declared) ||
                    dialect_modern_declares_requests(declared, requests);
    envelope_finish(&envelope);
    return declares && !answer_gate_denies(task);
}

void invocation_rounds_ask(struct invocation *invocation, struct str requests,
                           bool has_legacy_client)
{
    ASSERT(invocation->up.state == LINK_ASKED);
    if (requests.length == 0)
        invocation->up.protocol->pause(&invocation->up,
                                       invocation->snapshot->config->times.execution_timeout_ms);
    else if (has_legacy_client || can_be_asked(invocation->task, requests))
        ask(invocation, requests, has_legacy_client);
    else
        give_up(invocation, JSONRPC_UPSTREAM_ERROR,
                "upstream requires input for which the client cannot be asked");
}

void invocation_rounds_lost(struct invocation *invocation, enum lost_reason reason)
{
    ASSERT(lost[reason].why);
    if (reason == LOST_TASK_ROUND)
        invocation->up.protocol->cancel(&invocation->up, "");
    give_up(invocation, lost[reason].error, lost[reason].why);
}
