/* The answer to a slow call: upstream's own in time, or the task. */
#include "answer.h"
#include "call/deferred_response.h"
#include "conversation/detach_internal.h"
#include "conversation/relay.h"
#include "plain.h"
#include "repeated_news.h"
#include "server/server_refusal.h"
#include "state/tool_catalog.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

static struct call *take_call(struct detached_call *detached)
{
    struct call *call = detached->call;
    detached->call = NULL;
    call_part_remove(&detached->part);
    return call;
}

/* ---- upstream's answer ---- */

static void answer_result(const struct detached_call *detached, struct call *call,
                          struct str result)
{
    if (detached->is_executed)
        pseudo_answer_result(call, result);
    else
        call_answer_result(call, result);
}

static void answer_reply(struct detached_call *detached, struct str result,
                         const struct exchange_reply *reply)
{
    struct call *call = take_call(detached);
    struct str error = json_member(reply->message, "error");
    bool is_whole = reply->result == UPSTREAM_DONE && !reply->too_large;
    if (result.length > 0)
        answer_result(detached, call, result);
    else if (reply->status >= 400 && is_whole && !deferred_response_is_stream(call))
        server_refusal_pass(call, reply);
    else if (error.length > 0)
        call_answer_error_of_server(call, error);
    else
        relay_answer_failure(call,
                             reply->too_large ? LOST_UNREADABLE : lost_reason_of(reply->result));
}

static void answer_outcome(struct detached_call *detached)
{
    struct call *call = take_call(detached);
    struct str text = outcome_change(&detached->base.outcome)->outcome_text;
    if (detached->base.outcome.change.outcome == TASK_OUTCOME_RESULT)
        answer_result(detached, call, text);
    else
        call_answer_error_of_server(call, text);
}

static void pass_message(struct detached_call *detached, struct str message)
{
    if (detached->is_executed && detached->call->envelope.progress_token.length > 0)
        deferred_response_open(detached->call);
    deferred_response_pass_progress(detached->call, message);
}

/* ---- the task ---- */

/* Clients refuse a result that does not fit the output schema of the tool, unless it is an
 * error. */
static bool promises_other(const struct detached_call *detached)
{
    struct catalog_tool tool;
    catalog_find_tool(detached->base.worker->gateway->catalog, str_from(detached->base.source->id),
                      str_from(detached->base.task->owner), str_from(detached->base.task->tool),
                      &tool);
    return tool.has_output_schema && !detached->is_executed;
}

static void detached_answer_answer_task(struct detached_call *detached,
                                        const struct store_reply *working)
{
    bool is_other = promises_other(detached);
    const struct task *task = detached->base.task;
    OWNED_BUFFER(text);
    pseudo_write_promoted(detached->call, detached->patience_ms, task->id, &text);
    pseudo_answer_pending(take_call(detached),
                          &(struct pseudo_pending){.text = buffer_str(&text),
                                                   .task = task,
                                                   .working = working,
                                                   .promises_other = is_other});
}

const struct detached_callbacks detached_answers = {
    .answered = answer_reply,
    .ended = answer_outcome,
    .became_task = detached_answer_answer_task,
    .message = pass_message,
    .joinable = repeated_news_send_left,
    .forgotten = repeated_news_send_end,
};
