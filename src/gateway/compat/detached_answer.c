/* What the client of a slow call is told: upstream's answer in time, or its task. */
#include "detached_answer.h"

#include <inttypes.h>
#include <string.h>

#include "answer.h"
#include "inbox/task_summary.h"
#include "relay/relay.h"
#include "request/deferred_response.h"
#include "run/detached_call_internal.h"
#include "taskgate/json/text.h"
#include "tools.h"

static struct call *take_call(struct promotion *promotion)
{
    struct call *call = promotion->call;
    promotion->call = NULL;
    call_part_remove(&promotion->part);
    return call;
}

/* ---- upstream's answer ---- */

static void answer_result(const struct promotion *promotion, struct call *call, struct str result)
{
    if (promotion->is_executed)
        pseudo_answer_result(call, result);
    else
        call_answer_result(call, result);
}

static void answer_error(struct call *call, struct str error)
{
    struct buffer message;
    buffer_init(&message);
    call->outcome = "error";
    jsonrpc_write_error_text(&message, call->envelope.id, error);
    call_answer(call, buffer_str(&message));
    buffer_finish(&message);
}

/* What tells the client how to log in, for one. */
static void answer_as_it_came(struct call *call, const struct ask_reply *reply)
{
    struct http_exchange *exchange = call->exchange;
    call->outcome = "error";
    http_on_gone(exchange, NULL, NULL);
    call_ended(call);
    http_respond(exchange, reply->status, reply->headers->items, reply->headers->count,
                 reply->body);
}

static void answer_reply(struct promotion *promotion, const struct ask_reply *reply)
{
    struct call *call = take_call(promotion);
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
    bool is_whole = reply->result == UPSTREAM_DONE && !reply->too_large;
    if (result.length > 0)
        answer_result(promotion, call, result);
    else if (reply->status >= 300 && is_whole && !held_is_stream(call))
        answer_as_it_came(call, reply);
    else if (error.length > 0)
        answer_error(call, error);
    else
        relay_answer_failure(call,
                             reply->too_large ? RELAY_UNREADABLE : relay_failure_of(reply->result));
}

static void answer_outcome(struct promotion *promotion)
{
    struct call *call = take_call(promotion);
    struct str text = outcome_change(&promotion->outcome)->outcome_text;
    if (promotion->outcome.change.outcome == TASK_OUTCOME_RESULT)
        answer_result(promotion, call, text);
    else
        answer_error(call, text);
}

static void pass_message(struct promotion *promotion, struct str message)
{
    if (promotion->is_executed && promotion->call->envelope.progress_token.length > 0)
        held_open(promotion->call);
    held_pass_progress(promotion->call, message);
}

/* ---- the task ---- */

static void write_working(struct buffer *out, const struct store_reply *working)
{
    for (size_t i = 0; i < working->task_count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        pseudo_write_working_task(out, working->tasks[i]);
    }
}

static void write_block(struct buffer *out, const struct promotion *promotion,
                        const struct store_reply *working)
{
    struct pseudo_questions questions;
    pseudo_questions_init(&questions, promotion->call);
    buffer_append_text(out, "{\"proxy_task\":");
    pseudo_write_proxy_task(out, promotion->task);
    buffer_append_text(out, ",\"pending_on_server\":{\"tasks\":[");
    write_working(out, working);
    buffer_append_format(out, "],\"elicitations_for_server\":%.*s}}",
                         STR_ARGS(buffer_str(&questions.elicitations)));
    pseudo_questions_finish(&questions);
}

/* The seed's sentence; the tool may have another name here. */
static void write_sentence(struct buffer *out, const struct promotion *promotion)
{
    buffer_append_format(out, "Tool call exceeded timeout (%" PRId64 "ms). Promoted to task %s. ",
                         promotion->patience_ms, promotion->task->id);
    struct buffer name;
    buffer_init(&name);
    if (pseudo_tool_write_name(promotion->call, PSEUDO_TOOL_GET_TASK_RESULT, &name))
        buffer_append_format(out, "Use %.*s to retrieve the result when ready.",
                             STR_ARGS(buffer_str(&name)));
    else
        buffer_append_text(out, "The call goes on.");
    buffer_finish(&name);
}

/* Clients refuse what does not fit the output schema of the tool that they called, errors excepted.
 */
static bool promises_other(const struct promotion *promotion)
{
    struct catalog_tool tool;
    catalog_find_tool(promotion->worker->gateway->catalog, str_from(promotion->source->id),
                      str_from(promotion->task->owner), str_from(promotion->task->tool), &tool);
    return tool.has_output_schema && !promotion->is_executed;
}

static void answer_task(struct promotion *promotion, const struct store_reply *working)
{
    bool is_other = promises_other(promotion), is_given_up = promotion->is_given_up;
    struct buffer text, json;
    buffer_init(&text);
    buffer_init(&json);
    write_sentence(&text, promotion);
    write_block(&json, promotion, working);
    pseudo_answer(take_call(promotion), &(struct pseudo_result){
                                            .text = buffer_str(&text),
                                            .json = buffer_str(&json),
                                            .structured = is_other ? STR_EMPTY : buffer_str(&json),
                                            .is_error = is_other,
                                            .announces = str_from(promotion->task->id),
                                            .tells_events = is_given_up,
                                        });
    buffer_finish(&json);
    buffer_finish(&text);
}

const struct detached_callbacks detached_answers = {
    .answered = answer_reply,
    .ended = answer_outcome,
    .became_task = answer_task,
    .message = pass_message,
};
