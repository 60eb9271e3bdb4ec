/* Rounds of questions inside one call. */
#include "invocation_rounds.h"

#include "answer_gate.h"
#include "call/broadcast.h"
#include "question.h"
#include "rounds.h"
#include "task_inputs.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

#define MOST_ROUNDS 10
/* A server that only wants to be asked again is asked after this, then after twice as long … */
#define AGAIN_MS 250
#define AGAIN_MOST_MS 5000

static struct question_table *rounds_of(const struct invocation *invocation)
{
    return invocation->worker->gateway->questions;
}

static void start_timer(struct invocation *invocation, loop_callback callback, int64_t in_ms)
{
    loop_timer_start_with(&invocation->timer, callback, invocation, in_ms);
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

static void send_again(struct invocation *invocation, struct str answers)
{
    loop_timer_stop(&invocation->timer);
    rounds_forget(rounds_of(invocation), str_from(invocation->id));
    invocation->class->send_round(invocation, answers, buffer_str(&invocation->rounds.state));
}

static void on_again(void *context)
{
    send_again(invocation_from(context), STR_EMPTY);
}

static void on_unanswered(void *context)
{
    give_up(invocation_from(context), JSONRPC_UPSTREAM_TIMEOUT,
            "the client has not answered what upstream asked");
}

bool invocation_rounds_take(struct invocation *invocation, struct rounds_taken *taken)
{
    if (conversation_where(invocation) != CONVERSATION_RUNNING || !invocation->rounds.is_between ||
        !rounds_take(rounds_of(invocation), str_from(invocation->id), taken))
        return false;
    loop_timer_stop(&invocation->timer); /* the client has done what it can */
    return true;
}

void invocation_rounds_send(struct invocation *invocation, struct str answers)
{
    send_again(invocation, answers);
}

void invocation_rounds_answered(struct invocation *invocation)
{
    struct rounds_taken taken = {0};
    if (invocation_rounds_take(invocation, &taken))
        send_again(invocation, buffer_str(&taken.answers));
    rounds_taken_finish(&taken);
}

/* ---- what the server requires ---- */

static void wait_without_requests(struct invocation *invocation)
{
    struct invocation_rounds *rounds = &invocation->rounds;
    int64_t now_ms = clock_monotonic_ms();
    int64_t limit_ms = invocation->snapshot->config->times.execution_timeout_ms;
    if (rounds->again_ms == 0) {
        rounds->again_ms = AGAIN_MS;
        rounds->again_until_ms = limit_ms > 0 ? now_ms + limit_ms : INT64_MAX;
    }
    if (now_ms >= rounds->again_until_ms) {
        give_up(invocation, JSONRPC_UPSTREAM_TIMEOUT,
                "upstream asked for the call again and again");
        return;
    }
    start_timer(invocation, on_again, rounds->again_ms);
    rounds->again_ms = rounds->again_ms * 2 < AGAIN_MOST_MS ? rounds->again_ms * 2 : AGAIN_MOST_MS;
}

static void require_input(struct invocation *invocation, struct str requests,
                          bool has_legacy_client)
{
    struct invocation_rounds *rounds = &invocation->rounds;
    if (rounds->count == MOST_ROUNDS) {
        give_up(invocation, JSONRPC_UPSTREAM_ERROR,
                "upstream still required input after 10 rounds");
        return;
    }
    rounds->count++;
    rounds->again_ms = 0;
    rounds_put(rounds_of(invocation), str_from(invocation->id), rounds->count, requests,
               clock_now_ms());
    invocation_rounds_tell(invocation);
    log_info("Upstream asks the client of a task", LOG_TEXT("task", invocation->id),
             LOG_NUMBER("round", rounds->count),
             LOG_NUMBER("requests", (int64_t)json_count(requests)));
    if (has_legacy_client) /* each question has a clock of its own */
        task_inputs_ask(invocation);
    else
        start_timer(invocation, on_unanswered,
                    invocation->snapshot->config->pseudo.elicitation_timeout_ms);
}

/* A client of the extension reads what its task asks, and any other gets it in answer to its held
 * call, where it has declared all of it. */
static bool can_be_asked(const struct task *task, struct str requests)
{
    struct envelope envelope;
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    struct str declared = envelope.reserved.client_capabilities;
    bool declares = dialect_modern_declares_tasks(declared) ||
                    dialect_modern_declares_requests(declared, requests);
    envelope_finish(&envelope);
    return declares && !answer_gate_denies(task);
}

void invocation_rounds_begin(struct invocation *invocation, struct str result,
                             bool has_legacy_client)
{
    struct str requests = json_member(result, "inputRequests");
    struct str state = json_member(result, "requestState");
    invocation->rounds.is_conversation = invocation->rounds.is_between = true;
    if (!dialect_modern_is_round(requests, state)) {
        give_up(invocation, JSONRPC_UPSTREAM_ERROR,
                "upstream requires input, and does not say it as the protocol has it, or asks "
                "more than 100 questions at once");
        return;
    }
    buffer_clear(&invocation->rounds.state);
    buffer_append(&invocation->rounds.state, state);
    if (json_count(requests) > 0 && !has_legacy_client && !can_be_asked(invocation->task, requests))
        give_up(invocation, JSONRPC_UPSTREAM_ERROR,
                "upstream requires input for which the client cannot be asked");
    else if (json_count(requests) > 0)
        require_input(invocation, requests, has_legacy_client);
    else
        wait_without_requests(invocation);
}
