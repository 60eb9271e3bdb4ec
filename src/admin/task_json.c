/* The members of the operators' task, one row each where they are alike. */
#include "task_json.h"

#include <inttypes.h>

#include "taskgate/config/config.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/owned.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/notify/brief.h"
#include "taskgate/notify/redact.h"
#include "taskgate/notify/shown.h"
#include "taskgate/store/tally.h"
#include "taskgate/task/task.h"
#include "taskgate/telemetry/task_trace.h"
#include "taskgate/telemetry/trace_context.h"

#include "task_filter.h"
#include "vote_json.h"

/* The status that a client sees for each state; behaviour 7.4. */
static const char *const client_status[TASK_STATE_COUNT] = {
    [TASK_PENDING] = "input_required", [TASK_APPROVED] = "working", [TASK_EXECUTING] = "working",
    [TASK_COMPLETED] = "completed",    [TASK_FAILED] = "failed",    [TASK_CANCELLED] = "cancelled",
    [TASK_REJECTED] = "failed",        [TASK_EXPIRED] = "failed",
};

static bool task_json_redact(struct buffer *out, const char *json, const struct task *task,
                             const struct config *config)
{
    return redact_write(out, *json ? str_from(json) : STR("{}"), config, task->workflow);
}

/* The client's text without the values that operators must not see. Returns whether there are some.
 */
static bool add_redacted(struct buffer *out, const char *key, const char *json,
                         const struct task *task, const struct config *config)
{
    json_add_key(out, key);
    return task_json_redact(out, json, task, config);
}

static void add_strings(struct buffer *out, const struct config_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++) {
        if (out->bytes[out->length - 1] != '[')
            buffer_append_char(out, ',');
        buffer_append_json_string(out, str_from(strings->items[i]));
    }
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

/* The digest of a hidden value would tell it to somebody who tries all values. */
static void task_json_add_digest(struct buffer *out, const char *key, const char *digest,
                                 bool is_hidden)
{
    char keyed[DIGEST_HEX_BYTES];
    if (is_hidden && *digest)
        digest_keyed_hex(digest, keyed);
    json_add_text_or_null(out, key, is_hidden && *digest ? keyed : digest);
}

/* The client's own arguments, if an approver has changed them. */
static void add_original(struct buffer *out, const struct task *task, const struct config *config)
{
    bool is_hidden = false;
    if (*task->original_arguments) {
        is_hidden = add_redacted(out, "originalArguments", task->original_arguments, task, config);
    } else {
        json_add_key(out, "originalArguments");
        buffer_append_text(out, "null");
    }
    task_json_add_digest(out, "originalArgumentsDigest", task->original_digest, is_hidden);
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
    json_add_value(out, TASK_ANSWER_OF,
                   task_is_answer(task) && call.length > 0 ? call : STR("null"));
}

/* The server's words of now about the tool, if they are not those of the call. */
static bool add_definition(struct buffer *out, const struct task *task,
                           const struct task_view *view)
{
    OWNED_BUFFER(now);
    bool has_changed = view->worker && gateway_definition_changed(view->worker, task, &now);
    json_add_bool(out, "definitionChanged", has_changed);
    json_add_value(out, "toolNow", has_changed ? buffer_str(&now) : STR("null"));
    return has_changed;
}

static const char *execution_state(const struct task *task)
{
    if (task_state_is_terminal(task->state))
        return "done";
    return task->state == TASK_APPROVED ? "waiting_for_credentials" : "executing";
}

/* A call that was promoted runs from its begin on, and nobody approves it. */
static void add_execution(struct buffer *out, const struct task *task)
{
    int64_t started_ms = task->promoted ? task->created_ms : task->started_ms;
    bool has_run = started_ms > 0 && task->ended_ms > 0;
    struct task_trace trace;
    json_add_key(out, "execution");
    if (task->execute_by_ms == 0 && !task->promoted) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_append_format(out, "{\"state\":\"%s\"", execution_state(task));
    json_add_time(out, "until", task->state == TASK_APPROVED ? task->execute_by_ms : 0);
    json_add_time(out, "startedAt", started_ms);
    json_add_time(out, "endedAt", has_run ? task->ended_ms : 0);
    json_add_key(out, "durationMs");
    if (has_run)
        buffer_append_format(out, "%" PRId64, task->ended_ms - started_ms);
    else
        buffer_append_text(out, "null");
    char trace_id[2 * TRACE_ID_BYTES + 1] = "";
    if (task_trace_read(&trace, str_from(task->trace)))
        str_write_hex(trace.create.trace_id, TRACE_ID_BYTES, trace_id);
    json_add_text_or_null(out, "traceId", trace_id);
    buffer_append_char(out, '}');
}

/* ---- history ---- */

/* The outcomes of the other calls of a task's tool, as a member of it. */

static void add_counts(struct buffer *out, const struct store_tally_counts *counts)
{
    buffer_append_format(out,
                         "\"approved\":%" PRId64 ",\"rejected\":%" PRId64 ",\"expired\":%" PRId64
                         ",\"failed\":%" PRId64,
                         counts->approved, counts->rejected, counts->expired, counts->failed);
}

static void add_last(struct buffer *out, const struct store_tally *tally)
{
    if (!tally->has_last) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_append_format(out, "{\"outcome\":\"%s\"", task_state_name(tally->state));
    json_add_time(out, "at", tally->decided_ms);
    json_add_text(out, "person", tally->person);
    json_add_text_or_null(out, "reason", tally->reason);
    buffer_append_char(out, '}');
}

/* NULL: the person may not see the calls of others. */
static void history_json_add(struct buffer *out, const struct store_tally *tally)
{
    json_add_key(out, "history");
    if (!tally) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_append_format(out, "{\"days\":%d,", STORE_TALLY_DAYS);
    add_counts(out, &tally->all);
    buffer_append_text(out, ",\"caller\":{");
    add_counts(out, &tally->owner);
    buffer_append_text(out, "},\"last\":");
    add_last(out, tally);
    buffer_append_text(out, ",\"same\":");
    if (tally->same_approved > 0) {
        buffer_append_format(out, "{\"approved\":%" PRId64, tally->same_approved);
        json_add_time(out, "at", tally->same_ms);
        buffer_append_text(out, "}}");
    } else {
        buffer_append_text(out, "null}");
    }
}

/* ---- the words of the rule and of the server ---- */

/* The members of an operators' task about its rule and its tool (behaviour 10.2). */

/* `arguments`: the task's, as operators see them. */
static void shown_json_add(struct buffer *out, const struct task *task, const struct config *config,
                           struct str arguments)
{
    /* In the order in which they are written; without a value: its substitute. */
    static const char *const keys[] = {"ruleDescription", "highlight",      "toolDescription",
                                       "toolAnnotations", "toolDifference", "listed"};
    enum { COUNT = sizeof keys / sizeof *keys, HIGHLIGHT = 1 };
    struct str values[COUNT] = {STR_EMPTY};
    json_members(str_from(task->shown), keys, COUNT, values);
    brief_add_facts(out, task, config, arguments);
    for (size_t i = 0; i < COUNT; i++) {
        json_add_key(out, keys[i]);
        if (values[i].length > 0)
            buffer_append(out, values[i]);
        else
            buffer_append_text(out, i == HIGHLIGHT ? "[]" : "null");
    }
}

/* ---- the task ---- */

void task_json_write(struct buffer *out, const struct task *task, const struct task_view *view)
{
    const struct config *config = view->config;
    OWNED_BUFFER(arguments);
    bool is_hidden = task_json_redact(&arguments, task->arguments, task, config);
    buffer_append_format(out, "{\"id\":\"%s\"", task->id);
    json_add_text(out, "state", task_state_name(task->state));
    json_add_text(out, "status", client_status[task->state]);
    json_add_text(out, "source", task->source);
    json_add_text(out, "tool", task->tool);
    json_add_value(out, "arguments", buffer_str(&arguments));
    bool hides_meta = add_redacted(out, "meta", task->meta, task, config);
    bool hides_others = add_redacted(out, "otherParams", task->other_params, task, config);
    struct str headers = json_member(str_from(task->shown), "headers");
    json_add_key(out, "headers");
    redact_write(out, headers.length > 0 ? headers : STR("{}"), config, task->workflow);
    add_redact_fields(out, task, config);
    task_json_add_digest(out, "argumentsDigest", task->arguments_digest, is_hidden);
    add_original(out, task, config);
    task_json_add_digest(out, "requestDigest", task->request_digest,
                         is_hidden || hides_meta || hides_others);
    json_add_text(out, "principal", task->principal);
    json_add_text(out, "principalBy", shown_principal_by(task->owner));
    json_add_text_or_null(out, "workflow", task->workflow);
    json_add_time(out, "createdAt", task->created_ms);
    json_add_time(out, "decideBy", task->decide_by_ms);
    json_add_time(out, "executeBy", task->execute_by_ms);
    add_execution(out, task);
    json_add_time(out, "decidedAt", task->decided_ms);
    json_add_text_or_null(out, "decidedBy", task->decided_by);
    json_add_text_or_null(out, "reason", task->reason);
    json_add_text(out, "statusMessage", task->status_message);
    add_group(out, task);
    add_answer_of(out, task);
    json_add_text_or_null(out, "rule", task->rule);
    json_add_key(out, "grant");
    buffer_append_text(out, *task->grant ? task->grant : "null");
    shown_json_add(out, task, config, buffer_str(&arguments));
    bool has_changed = add_definition(out, task, view);
    vote_json_add(out, task, view, has_changed);
    if (view->with_history)
        history_json_add(out, view->tally);
    buffer_append_char(out, '}');
}
