/* Makes the task of an answer, bound to the call that it is in. */
#include "answer_task.h"

#include <stdlib.h>
#include <string.h>

#include "call/request_parts.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#define POLL_INTERVAL_MS 1000

/* As arguments: what was asked and what was said, one after the other. */
static void write_arguments(struct buffer *out, const struct answer_gate_answers *given)
{
    struct str key, answer, asked_key, question = STR_EMPTY;
    size_t at = 0;
    buffer_append_text(out, "{\"answers\":[");
    for (size_t position = 0; json_next_member(given->answers, &position, &key, &answer);) {
        /* Both are in the order of the questions. */
        bool is_known = json_next_member(given->questions, &at, &asked_key, &question);
        if (out->bytes[out->length - 1] == '}')
            buffer_append_char(out, ',');
        buffer_append_format(out, "{\"key\":\"%.*s\",\"question\":", STR_ARGS(key));
        buffer_append(out, is_known ? question : STR("null"));
        buffer_append_text(out, ",\"answer\":");
        buffer_append(out, answer);
        buffer_append_char(out, '}');
    }
    buffer_append_text(out, "]}");
}

static void write_request(struct buffer *out, const struct task *call, struct str arguments)
{
    buffer_append_text(out, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
                            "{\"name\":");
    buffer_append_json_string(out, str_from(call->tool));
    buffer_append_text(out, ",\"arguments\":");
    buffer_append(out, arguments);
    json_add_text(out, TASK_ANSWER_OF, call->id);
    buffer_append_text(out, "}}");
}

/* The words for people: what it is, and how much is at stake by the call's rule. */
static void write_shown(struct buffer *out, const struct task *call)
{
    static const char *const copied[] = {"risk", "riskBy", "listed"};
    struct str shown = str_from(call->shown);
    char *summary = memory_format("The client's answer inside the call %s", call->id);
    buffer_append_char(out, '{');
    json_add_text(out, "summary", summary);
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
        struct str value = json_member(shown, copied[i]);
        if (value.length == 0)
            continue;
        json_add_key(out, copied[i]);
        buffer_append(out, value);
    }
    buffer_append_char(out, '}');
    free(summary);
}

/* False when it is no request that the gateway would take: nested too deep. */
static bool bind_request(struct task *task, const struct task *call, struct str arguments)
{
    struct buffer request = {0}, shown = {0};
    struct envelope envelope;
    struct request_parts parts;
    write_request(&request, call, arguments);
    write_shown(&shown, call);
    bool is_good = envelope_read(&envelope, buffer_str(&request), NULL) == ENVELOPE_OK;
    request_parts_read(&parts, &envelope);
    task_set_text(&task->arguments, arguments);
    canonical_digest(arguments, task->arguments_digest);
    task_set_text(&task->meta, buffer_str(&parts.meta));
    task_set_text(&task->other_params, buffer_str(&parts.other_params));
    memcpy(task->request_digest, parts.digest, sizeof task->request_digest);
    task_set_request(task, buffer_str(&request));
    task_set_text(&task->shown, buffer_str(&shown));
    request_parts_finish(&parts);
    envelope_finish(&envelope);
    buffer_finish(&request);
    buffer_finish(&shown);
    return is_good;
}

/* It belongs to the same caller, so that nobody decides on an answer of theirs. */
static void bind_call(struct task *task, const struct task *call)
{
    task_set_text(&task->source, str_from(call->source));
    task_set_text(&task->owner, str_from(call->owner));
    memcpy(task->owner_email, call->owner_email, sizeof task->owner_email);
    task_set_text(&task->session, str_from(call->session));
    task_set_text(&task->principal, str_from(call->principal));
    task_set_text(&task->client_name, str_from(call->client_name));
    task_set_text(&task->client_version, str_from(call->client_version));
    task_set_text(&task->tool, str_from(call->tool));
    task_set_text(&task->workflow, str_from(call->workflow));
    task_set_text(&task->terms, str_from(call->terms));
    task_set_text(&task->rule, str_from(call->rule));
    memcpy(task->policy_digest, call->policy_digest, sizeof task->policy_digest);
    memcpy(task->definition_digest, call->definition_digest, sizeof task->definition_digest);
    task_set_text(&task->action, STR(TASK_ACTION_ANSWER));
}

static void set_clocks(struct task *task, const struct task *call, const struct config *config)
{
    const struct config_workflow *workflow = config_workflow_find(config, str_from(call->workflow));
    int64_t within_ms = call->decide_by_ms - call->created_ms;
    task->created_ms = task->updated_ms = clock_now_ms();
    task->ttl_ms = call->ttl_ms;
    task->poll_interval_ms = POLL_INTERVAL_MS;
    if (task->state == TASK_PENDING) {
        task->decide_by_ms = task->created_ms + (within_ms > 0 ? within_ms : call->ttl_ms);
        task->remind_after_ms = workflow ? workflow->remind_after_ms : 0;
        task->escalate_after_ms = workflow ? workflow->escalate_after_ms : 0;
    } else {
        task->execute_by_ms = task->created_ms + call->ttl_ms;
    }
}

struct task *answer_task_create(const struct answer_gate_answers *given, bool waits,
                                const struct config *config)
{
    struct buffer arguments = {0};
    struct task *task = task_create(waits ? TASK_PENDING : TASK_EXECUTING);
    task->accelerated = !waits;
    write_arguments(&arguments, given);
    bind_call(task, given->task);
    bool is_good = bind_request(task, given->task, buffer_str(&arguments));
    set_clocks(task, given->task, config);
    buffer_finish(&arguments);
    if (is_good)
        return task;
    task_unref(task);
    return NULL;
}
