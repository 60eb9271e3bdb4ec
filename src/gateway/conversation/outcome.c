/* Makes the change of a task from the server's answer. */
#include "invocation.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/policy/gate.h"

#define STATUS_MESSAGE_BYTES 1024

void outcome_finish(struct outcome *outcome)
{
    buffer_finish(&outcome->text);
    buffer_finish(&outcome->message);
}

static void begin(struct outcome *outcome, const struct task_change *change)
{
    outcome->change = *change;
    buffer_clear(&outcome->text);
    buffer_clear(&outcome->message);
}

/* The first text of a result, at most 1 KB, cut between characters. */
static void write_first_text(struct buffer *out, struct str result)
{
    size_t position = 0;
    struct str element;
    while (json_next_element(json_member(result, "content"), &position, &element)) {
        struct str text = json_member(element, "text");
        if (json_type(text) != JSON_STRING || !json_decode_string(text, out))
            continue;
        if (out->length > STATUS_MESSAGE_BYTES) {
            size_t end = STATUS_MESSAGE_BYTES;
            while (end > 0 && ((unsigned char)out->bytes[end] & 0xC0) == 0x80)
                end--;
            out->length = end;
        }
        return;
    }
}

void outcome_of_result(struct outcome *outcome, struct str result)
{
    bool is_error = json_type(json_member(result, "isError")) == JSON_TRUE;
    begin(outcome, &(struct task_change){
                       .to = is_error ? TASK_FAILED : TASK_COMPLETED,
                       .failure = is_error ? TASK_FAILURE_UPSTREAM : TASK_FAILURE_NONE,
                       .outcome = TASK_OUTCOME_RESULT,
                   });
    buffer_append(&outcome->text, result);
    if (is_error)
        write_first_text(&outcome->message, result);
}

void outcome_of_error(struct outcome *outcome, struct str error)
{
    begin(outcome, &(struct task_change){.to = TASK_FAILED,
                                         .failure = TASK_FAILURE_UPSTREAM,
                                         .outcome = TASK_OUTCOME_ERROR});
    buffer_append(&outcome->text, error);
    json_decode_string(json_member(error, "message"), &outcome->message);
}

void outcome_of_failure(struct outcome *outcome, struct str tool, enum jsonrpc_error error,
                        const char *details)
{
    struct jsonrpc_error_data data = {.tool = tool, .details = str_from(details)};
    if (error == JSONRPC_TRANSFORM_DRIFT)
        data.gate = str_from(policy_gate_name(POLICY_GATE_POLICY));
    begin(outcome, &(struct task_change){.to = TASK_FAILED,
                                         .failure = TASK_FAILURE_GATEWAY,
                                         .outcome = TASK_OUTCOME_ERROR});
    jsonrpc_write_error_object(&outcome->text, error, STR_EMPTY, &data);
    buffer_append_text(&outcome->message, jsonrpc_error_message(error));
    if (details[0])
        buffer_append_format(&outcome->message, ": %s", details);
}

void outcome_of_no_answer(struct outcome *outcome, struct str tool,
                          const struct exchange_reply *reply)
{
    static const struct {
        enum jsonrpc_error error;
        const char *details;
    } failures[] = {
        [UPSTREAM_DONE] = {JSONRPC_UPSTREAM_ERROR, "the reply is no JSON-RPC response"},
        [UPSTREAM_CONNECT_FAILED] = {JSONRPC_UPSTREAM_FAILED, "nothing was sent"},
        [UPSTREAM_SILENT] = {JSONRPC_UPSTREAM_TIMEOUT, "the outcome of the call is unknown"},
        [UPSTREAM_GONE] = {JSONRPC_UPSTREAM_FAILED, "the outcome of the call is unknown"},
    };
    if (reply->too_large)
        outcome_of_failure(outcome, tool, JSONRPC_UPSTREAM_ERROR,
                           "the result is larger than allowed");
    else
        outcome_of_failure(outcome, tool, failures[reply->result].error,
                           failures[reply->result].details);
}

void outcome_mark_edited(struct outcome *outcome)
{
    OWNED_BUFFER(meta);
    if (outcome->change.outcome != TASK_OUTCOME_RESULT)
        return;
    json_write_with_member(&meta, json_member(buffer_str(&outcome->text), "_meta"),
                           "taskgate/arguments-changed", STR("true"));
    json_set_member(&outcome->text, "_meta", buffer_str(&meta));
}

const struct task_change *outcome_change(struct outcome *outcome)
{
    ASSERT(outcome->change.to != TASK_PENDING); /* zero: it is empty */
    outcome->change.outcome_text = buffer_str(&outcome->text);
    if (outcome->message.length > 0) {
        buffer_append_char(&outcome->message, '\0');
        outcome->message.length--;
        outcome->change.status_message = outcome->message.bytes;
    }
    return &outcome->change;
}
