/* Refusals as results: which, their text, and who gets them so. */
#include "refusal.h"

#include <inttypes.h>
#include <string.h>

#include "client_profile.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#define AGAIN "The same call asks for approval again."
#define DRIFTED                                                                                    \
    {                                                                                              \
        "{tool} was not run: its rule, or its definition, changed after the approval.", AGAIN      \
    }

struct refusal {
    const char *sentence, *advice;
};

static const struct refusal refusals[JSONRPC_ERROR_COUNT] = {
    [JSONRPC_RULE_DENIED] = {"{tool} was not run: a rule denies it.",
                             "Calling it again will be denied again."},
    [JSONRPC_POLICY_DENIED] = {"{tool} was not run: a policy denies this call.",
                               "The same call will be denied again."},
    [JSONRPC_CALLER_BLOCKED] = {"{tool} was not run: this agent has been stopped{reason}.",
                                "Tell the user."},
    [JSONRPC_NOT_EXPOSED] = {"{tool} was not run: it is not available here.",
                             "Calling it again does not help."},
    [JSONRPC_APPROVAL_REJECTED] = {"{tool} was not run: {person} rejected it{reason}.",
                                   "Do not repeat the call unless the user asks for it."},
    [JSONRPC_APPROVAL_TIMEOUT] = {"{tool} was not run: nobody decided within {seconds} s.", AGAIN},
    [JSONRPC_TASK_EXPIRED] = {"{tool} was not run: it was approved, but nobody came back in time.",
                              AGAIN},
    [JSONRPC_TASK_CANCELLED] = {"{tool} was not run: the request was cancelled.", AGAIN},
    [JSONRPC_POLICY_DRIFT] = DRIFTED,
    [JSONRPC_TRANSFORM_DRIFT] = DRIFTED,
    [JSONRPC_TOO_MANY_WAITING] = {"{tool} was not run: too many calls wait for a decision.",
                                  "Try again in {seconds} s."},
    [JSONRPC_TASK_REQUIRED] = {"{tool} was not run: it must be called as a task.",
                               "Call {other} with server \"{server}\" and tool \"{tool}\"."},
    [JSONRPC_OUTCOME_UNKNOWN] = {"It is not known whether {tool} ran.",
                                 "Check its effect before you call it again."},
};

bool refusal_is_due(const struct call *call, enum jsonrpc_error error)
{
    const struct config_client *client =
        config_client_find(call->snapshot->config, str_from(call->facts.client.name));
    if (error == JSONRPC_ERROR_COUNT || !refusals[error].sentence || !call->method ||
        call->method->treatment != MCP_TOOLS_CALL || call->envelope.kind != ENVELOPE_REQUEST)
        return false;
    if (client && client->refusals != CLIENT_REFUSALS_AUTO)
        return client->refusals == CLIENT_REFUSALS_RESULT;
    return call->dialect->has_sessions && !client_knows_tasks(call);
}

/* An error that is stored is the server's, or that of a change since the approval. */
static enum jsonrpc_error stored_error(const struct task *task)
{
    static const enum jsonrpc_error drifts[] = {JSONRPC_POLICY_DRIFT, JSONRPC_TRANSFORM_DRIFT};
    struct str type =
        json_path(str_slice(task->outcome_text, task->outcome_length), "data", "error_type");
    for (size_t i = 0; i < sizeof drifts / sizeof *drifts; i++)
        if (task->failure == TASK_FAILURE_GATEWAY &&
            json_string_equals(type, str_from(jsonrpc_error_type(drifts[i]))))
            return drifts[i];
    return JSONRPC_ERROR_COUNT;
}

enum jsonrpc_error refusal_of_task(const struct task *task)
{
    if (task->promoted && task->state == TASK_EXPIRED)
        return JSONRPC_ERROR_COUNT; /* nobody was to decide: it ran for too long */
    if (task->state == TASK_COMPLETED || (task->state == TASK_FAILED && task->outcome_length > 0))
        return stored_error(task);
    return dialect_error_of(task);
}

/* ---- the text ---- */

static void write_text_of(struct buffer *out, struct str json)
{
    if (json_type(json) == JSON_STRING)
        json_decode_string(json, out);
}

static struct str alternative_of(struct str object)
{
    return json_path(object, "data", "alternative");
}

static void write_seconds(struct buffer *out, struct str object, const struct task *task)
{
    if (task)
        buffer_append_format(out, "%" PRId64, (task->decide_by_ms - task->created_ms) / 1000);
    else
        buffer_append(out, json_path(object, "data", "retry_after"));
}

static void write_reason(struct buffer *out, struct str reason)
{
    if (reason.length > 0) {
        buffer_append_text(out, ": ");
        write_text_of(out, reason);
    }
}

/* Of the error object only what the text names is looked up. */
static void write_named(struct buffer *out, const struct call *call, struct str name,
                        struct str object, const struct task *task)
{
    if (str_equal(name, STR("tool")))
        buffer_append(out, task ? str_from(task->tool) : call_tool(call));
    else if (str_equal(name, STR("person")))
        buffer_append_text(out, task && *task->decided_by ? task->decided_by : "an operator");
    else if (str_equal(name, STR("seconds")))
        write_seconds(out, object, task);
    else if (str_equal(name, STR("other")))
        write_text_of(out, json_member(alternative_of(object), "tool"));
    else if (str_equal(name, STR("server")))
        write_text_of(out, json_path(alternative_of(object), "arguments", "server"));
    else
        write_reason(out, json_path(object, "data", "reason"));
}

/* Fills in each name in braces in `template`. */
static void fill(struct buffer *out, const char *template, const struct call *call,
                 struct str object, const struct task *task)
{
    const char *open, *rest = template;
    while ((open = strchr(rest, '{'))) {
        const char *close = strchr(open, '}');
        buffer_append(out, str_slice(rest, (size_t)(open - rest)));
        write_named(out, call, str_slice(open + 1, (size_t)(close - open - 1)), object, task);
        rest = close + 1;
    }
    buffer_append_text(out, rest);
}

/* A call that was approved when it was cancelled may have run. */
static bool may_have_run(enum jsonrpc_error error, const struct task *task)
{
    return error == JSONRPC_TASK_CANCELLED && task &&
           (task->execute_by_ms > 0 || task->accelerated || task->promoted);
}

void refusal_write_text(struct buffer *out, const struct call *call, enum jsonrpc_error error,
                        struct str object, const struct task *task)
{
    const struct refusal *refusal =
        &refusals[may_have_run(error, task) ? JSONRPC_OUTCOME_UNKNOWN : error];
    fill(out, refusal->sentence, call, object, task);
    if (error == JSONRPC_TASK_REQUIRED && alternative_of(object).length == 0)
        return; /* no other way is offered */
    buffer_append_char(out, ' ');
    fill(out, refusal->advice, call, object, task);
}

void refusal_write_result(struct buffer *out, const struct call *call, enum jsonrpc_error error,
                          struct str object, const struct task *task)
{
    OWNED_BUFFER(text);
    buffer_reserve(out, 2 * object.length + 128);
    refusal_write_text(&text, call, error, object, task);
    buffer_append_text(out, "{\"content\":[{\"type\":\"text\"");
    json_add_str(out, "text", buffer_str(&text));
    buffer_append_text(out, "}],\"isError\":true,\"_meta\":{\"" REFUSAL_ERROR "\":");
    buffer_append(out, object);
    buffer_append_text(out, "}}");
}
