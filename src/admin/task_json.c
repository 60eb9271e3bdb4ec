/* The members of the operators' task, one row each where they are alike. */
#include "task_json.h"

#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/notify/redact.h"

#include "shown_json.h"
#include "task_filter.h"
#include "vote_json.h"

/* The status that a client sees for each state; design §5. */
static const char *const client_status[TASK_STATE_COUNT] = {
    [TASK_PENDING] = "input_required", [TASK_APPROVED] = "working", [TASK_EXECUTING] = "working",
    [TASK_COMPLETED] = "completed",    [TASK_FAILED] = "failed",    [TASK_CANCELLED] = "cancelled",
    [TASK_REJECTED] = "failed",        [TASK_EXPIRED] = "failed",
};

static void redact(struct buffer *out, const char *json, const struct task *task,
                   const struct config *config)
{
    redact_write(out, *json ? str_from(json) : STR("{}"), config, task->workflow);
}

/* The client's text without the values that operators must not see. */
static void add_redacted(struct buffer *out, const char *key, const char *json,
                         const struct task *task, const struct config *config)
{
    json_add_key(out, key);
    redact(out, json, task, config);
}

static void add_strings(struct buffer *out, const struct config_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++) {
        if (out->bytes[out->length - 1] != '[')
            buffer_append_char(out, ',');
        buffer_append_json_string(out, str_from(strings->items[i]));
    }
}

/* The witness of `principal`. Only an issuer and this gateway's own tokens are believed. */
static const char *witness(const struct task *task)
{
    struct str owner = str_from(task->owner);
    if (str_starts_with(owner, STR("sub:")))
        return "issuer";
    return str_starts_with(owner, STR("admin:")) ? "gateway" : "client";
}

/* The paths that redact_write() hides, so that a reader can tell a hidden value from the same text
 * of a client. */
static void add_redact_fields(struct buffer *out, const struct task *task,
                              const struct config *config)
{
    const struct config_workflow *workflow = config_workflow_find(config, str_from(task->workflow));
    json_add_key(out, "redactFields");
    buffer_append_char(out, '[');
    if (workflow) {
        add_strings(out, &workflow->redact_fields);
    } else {
        for (size_t i = 0; i < config->workflow_count; i++)
            add_strings(out, &config->workflows[i].redact_fields);
    }
    buffer_append_char(out, ']');
}

/* The client's own arguments, if an approver has changed them. */
static void add_original(struct buffer *out, const struct task *task, const struct config *config)
{
    if (*task->original_arguments) {
        add_redacted(out, "originalArguments", task->original_arguments, task, config);
    } else {
        json_add_key(out, "originalArguments");
        buffer_append_text(out, "null");
    }
    json_add_text_or_null(out, "originalArgumentsDigest", task->original_digest);
}

static void add_group(struct buffer *out, const struct task *task)
{
    char digest[TASK_FILTER_DIGEST_BYTES];
    task_filter_digest(task, digest);
    json_add_text(out, "digest", digest);
}

/* The call that it is an answer in. */
static void add_answer_of(struct buffer *out, const struct task *task)
{
    struct str call = json_member(str_from(task->other_params), TASK_ANSWER_OF);
    json_add_key(out, TASK_ANSWER_OF);
    buffer_append(out, task_is_answer(task) && call.length > 0 ? call : STR("null"));
}

void task_json_write(struct buffer *out, const struct task *task, const struct task_view *view)
{
    const struct config *config = view->config;
    struct buffer arguments;
    buffer_init(&arguments);
    redact(&arguments, task->arguments, task, config);
    buffer_append_format(out, "{\"id\":\"%s\"", task->id);
    json_add_text(out, "state", task_state_name(task->state));
    json_add_text(out, "status", client_status[task->state]);
    json_add_text(out, "source", task->source);
    json_add_text(out, "tool", task->tool);
    json_add_key(out, "arguments");
    buffer_append(out, buffer_str(&arguments));
    add_redacted(out, "meta", task->meta, task, config);
    add_redacted(out, "otherParams", task->other_params, task, config);
    add_redact_fields(out, task, config);
    json_add_text(out, "argumentsDigest", task->arguments_digest);
    add_original(out, task, config);
    json_add_text_or_null(out, "requestDigest", task->request_digest);
    json_add_text(out, "principal", task->principal);
    json_add_text(out, "principalBy", witness(task));
    json_add_text_or_null(out, "workflow", task->workflow);
    json_add_time(out, "createdAt", task->created_ms);
    json_add_time(out, "decideBy", task->decide_by_ms);
    json_add_time(out, "executeBy", task->execute_by_ms);
    json_add_time(out, "decidedAt", task->decided_ms);
    json_add_text_or_null(out, "decidedBy", task->decided_by);
    json_add_text_or_null(out, "reason", task->reason);
    json_add_text(out, "statusMessage", task->status_message);
    add_group(out, task);
    add_answer_of(out, task);
    json_add_text_or_null(out, "rule", task->rule);
    json_add_key(out, "grant");
    buffer_append_text(out, *task->grant ? task->grant : "null");
    shown_json_add(out, task, buffer_str(&arguments));
    buffer_finish(&arguments);
    vote_json_add(out, task, view);
    buffer_append_char(out, '}');
}
