/* The tool `ask`: asks the human at the client by elicitation, on the stream of its own call. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "reply.h"
#include "rpc.h"
#include "tools.h"

/* Random, so that an answer cannot be mistaken for that of an earlier question. */
static bool make_question_id(char *id, size_t size)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        return false;
    snprintf(id, size, "ask-%016" PRIx64, number);
    return true;
}

json_t *ask_begin(struct call *call, json_t *arguments)
{
    const char *question = json_string_value(json_object_get(arguments, "question"));
    if (!call->session->elicits)
        return tool_text(true,
                         "ask cannot ask: this client did not declare the elicitation capability.");
    if (!call->may_stream)
        return tool_text(true, "ask cannot ask: this client does not accept text/event-stream.");
    if (!make_question_id(call->question, sizeof(call->question)))
        return tool_text(true, "ask cannot ask: the system has no random bytes.");

    json_t *params = json_pack("{s:s, s:{s:s, s:{s:{s:s, s:s}}, s:[s]}}", "message",
                               question != NULL ? question : "What shall I tell the agent?",
                               "requestedSchema", "type", "object", "properties", "answer", "type",
                               "string", "title", "Your answer", "required", "answer");
    reply_start_stream(call->reply);
    reply_send(call->reply, rpc_request(call->question, "elicitation/create", rpc_need(params)));
    return NULL;
}

void ask_answered(struct call *call, json_t *message)
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
