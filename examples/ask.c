/* The tools `ask` and `ask_model`: ask the client's human by elicitation, or its model by
 * sampling, on the stream of their own call. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "reply.h"
#include "rpc.h"
#include "tools.h"

#define MOST_TOKENS 200

/* Random, so that an answer cannot be mistaken for that of an earlier question. */
static bool make_question_id(char *id, size_t size)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        return false;
    snprintf(id, size, "ask-%016" PRIx64, number);
    return true;
}

/* Sends the request, whose params are taken. */
static json_t *send_question(struct call *call, const char *method, json_t *params)
{
    if (!call->may_stream || !make_question_id(call->question, sizeof(call->question))) {
        json_decref(params);
        return tool_text(true, "Cannot ask: %s.",
                         call->may_stream ? "the system has no random bytes"
                                          : "this client does not accept text/event-stream");
    }
    reply_start_stream(call->reply);
    reply_send(call->reply, rpc_request(call->question, method, params));
    return NULL;
}

/* ---- ask ---- */

static void human_answered(struct call *call, json_t *message)
{
    json_t *result = json_object_get(message, "result");
    const char *action = json_string_value(json_object_get(result, "action"));
    const char *answer =
        json_string_value(json_object_get(json_object_get(result, "content"), "answer"));
    if (action == NULL)
        call_finish(call, tool_text(true, "The client could not ask."));
    else if (strcmp(action, "accept") != 0)
        call_finish(call, tool_text(false, "The human chose to %s.", action));
    else
        call_finish(call, tool_text(false, "The human answered: %s",
                                    answer != NULL ? answer : "(nothing)"));
}

json_t *ask_begin(struct call *call, json_t *arguments)
{
    const char *question = json_string_value(json_object_get(arguments, "question"));
    if (!call->session->elicits)
        return tool_text(true,
                         "ask cannot ask: this client did not declare the elicitation capability.");
    json_t *params = json_pack("{s:s, s:{s:s, s:{s:{s:s, s:s}}, s:[s]}}", "message",
                               question != NULL ? question : "What shall I tell the agent?",
                               "requestedSchema", "type", "object", "properties", "answer", "type",
                               "string", "title", "Your answer", "required", "answer");
    call->answered = human_answered;
    return send_question(call, "elicitation/create", rpc_need(params));
}

/* ---- ask_model ---- */

static void model_answered(struct call *call, json_t *message)
{
    json_t *result = json_object_get(message, "result");
    const char *model = json_string_value(json_object_get(result, "model"));
    const char *text =
        json_string_value(json_object_get(json_object_get(result, "content"), "text"));
    if (text == NULL)
        call_finish(call, tool_text(true, "The client's model did not answer."));
    else
        call_finish(call,
                    tool_text(false, "%s answered: %s", model != NULL ? model : "The model", text));
}

json_t *ask_model_begin(struct call *call, json_t *arguments)
{
    const char *prompt = json_string_value(json_object_get(arguments, "prompt"));
    if (!call->session->samples)
        return tool_text(
            true, "ask_model cannot ask: this client did not declare the sampling capability.");
    json_t *params =
        json_pack("{s:[{s:s, s:{s:s, s:s}}], s:i}", "messages", "role", "user", "content", "type",
                  "text", "text", prompt != NULL ? prompt : "Say hello.", "maxTokens", MOST_TOKENS);
    call->answered = model_answered;
    return send_question(call, "sampling/createMessage", rpc_need(params));
}
