/* How an approved call ends: with the server's answer, with its refusal of the credentials, or with
 * an error of the gateway's own. */
#include "conversation/rounds.h"
#include "execution_internal.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_server.h"

static void store(struct execution *execution, enum invocation_state state)
{
    struct invocation *base = &execution->base;
    base->exchange = NULL;
    if (invocation_has_begun(base)) {
        question_end_task(base->worker, base->task);
        rounds_forget(base->worker->gateway->questions, str_from(base->id));
        execution_asks_end(execution);
    }
    if (!invocation_move(base, state)) {
        execution_end(execution);
        return;
    }
    log_info("Call executed", LOG_TEXT("task", base->id),
             LOG_TEXT("state", task_state_name(base->outcome.change.to)));
    invocation_store(base);
}

void execution_store_outcome(struct execution *execution)
{
    store(execution, INVOCATION_STORING);
}

void execution_fail(struct execution *execution, enum jsonrpc_error error, const char *details)
{
    outcome_of_failure(&execution->base.outcome, str_from(execution->base.task->tool), error,
                       details);
    store(execution, INVOCATION_STORING);
}

/* Another worker may have checked the same call a moment ago and run it. `unless_begun` makes the
 * store drop this refusal then. */
void execution_refuse(struct execution *execution, enum jsonrpc_error error)
{
    log_warn("An approved call is not run: what was approved has changed",
             LOG_TEXT("task", execution->base.id), LOG_TEXT("error", jsonrpc_error_type(error)));
    outcome_of_failure(&execution->base.outcome, str_from(execution->base.task->tool), error, "");
    execution->base.outcome.change.unless_begun = true;
    store(execution, INVOCATION_REFUSED);
}

/* The server refused the credentials. The approval stands until execute-by, and the owner's next
 * call brings fresh credentials (contract "Tasks"). */
static void back_to_approved(struct execution *execution)
{
    static const char refused_too_often[] =
        "upstream has refused the credentials of each of three tries";
    if (task_refusal_count(execution->base.task) + 1 >= TASK_MOST_TRIES) {
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR, refused_too_often);
        return;
    }
    execution->base.outcome.change =
        (struct task_change){.to = TASK_APPROVED,
                             .credentials = execution->credentials_digest,
                             .status_message = execution->base.task->accelerated
                                                   ? "Upstream refused the credentials"
                                                   : "Approved; upstream refused the credentials"};
    log_warn("Upstream refused the credentials of an approved call",
             LOG_TEXT("task", execution->base.id));
    store(execution, INVOCATION_STORING);
}

static bool is_refusal(int status)
{
    return status == 401 || status == 403 || status == 404;
}

/* The error of a legacy server, as its modern client knows errors. */
static void take_reply(struct execution *execution, const struct exchange_reply *reply)
{
    struct str error = json_member(reply->message, "error");
    struct buffer mapped;
    buffer_init(&mapped);
    if (execution->is_bridged_down && json_type(error) == JSON_OBJECT) {
        legacy_server_write_error(&mapped, error, false);
        outcome_of_error(&execution->base.outcome, buffer_str(&mapped));
    } else {
        invocation_take_reply(&execution->base, reply);
    }
    buffer_finish(&mapped);
}

void execution_answered(struct execution *execution, const struct exchange_reply *reply)
{
    struct invocation *base = &execution->base;
    bool may_be_task = base->task->keep_task && invocation_where(base) == INVOCATION_RUNNING;
    bool is_answer = json_member(reply->message, "result").length > 0 ||
                     json_member(reply->message, "error").length > 0;
    bool was_not_let_in = is_refusal(reply->status) || reply->result == UPSTREAM_CONNECT_FAILED;
    base->exchange = NULL;
    if (reply->too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    if (execution_modern_takes(execution, reply) || execution_session_reopens(execution, reply))
        return;
    if (may_be_task && execution_task_follow(execution, json_member(reply->message, "result")))
        return;
    if (!is_answer && is_refusal(reply->status) && !base->server_task &&
        !base->rounds.is_conversation) {
        back_to_approved(execution);
        return;
    }
    if (!is_answer && was_not_let_in && base->server_task)
        outcome_of_failure(&base->outcome, str_from(base->task->tool), JSONRPC_UPSTREAM_ERROR,
                           "upstream runs the call, and no longer says what becomes of it");
    else
        take_reply(execution, reply);
    store(execution, INVOCATION_STORING);
}
