/* Results of the gateway's own tools, and the blocks that go with them. */
#include "answer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "conversation/question.h"
#include "inbox/inbox.h"
#include "inbox/task_summary.h"
#include "repeated_news.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/lists.h"
#include "tools.h"

static void collect(const struct call *call, const char *key, const char *owner,
                    struct buffer *elicitations, struct buffer *samplings)
{
    question_write_pending(call->worker->gateway, str_from(key), str_from(call->source->id),
                           str_from(owner), elicitations, samplings);
}

void pseudo_write_questions(const struct call *call, bool of_client, const struct task *task,
                            struct buffer *elicitations, struct buffer *samplings)
{
    char key[CLIENT_KEY_BYTES] = "", task_key[CLIENT_KEY_BYTES];
    buffer_append_char(elicitations, '[');
    buffer_append_char(samplings, '[');
    if (of_client) {
        client_key_of_call(call, key);
        collect(call, key, "", elicitations, samplings);
    }
    if (task) {
        client_key_or_id_of_task(task, task_key);
        if (strcmp(key, task_key) != 0)
            collect(call, task_key, task->owner, elicitations, samplings);
    }
    buffer_append_char(elicitations, ']');
    buffer_append_char(samplings, ']');
}

/* The events and the open questions that accompany a result: JSON objects, empty when there are
 * none. */
static void write_accompanying(const struct call *call, bool takes_events, struct str announced,
                               const struct task *asks, struct buffer *events,
                               struct buffer *pending)
{
    char key[CLIENT_KEY_BYTES];
    OWNED_BUFFER(taken);
    OWNED_BUFFER(elicitations);
    OWNED_BUFFER(samplings);
    inbox_key_of_call(call, key);
    takes_events = takes_events && !call->is_away; /* else they are told at the session's home */
    if (takes_events &&
        inbox_take_events(call->worker->gateway, str_from(key), announced, &taken) > 0) {
        buffer_append_format(events, "{\"events_since_last_response\":%.*s}",
                             STR_ARGS(buffer_str(&taken)));
        repeated_news_forget_told(call, buffer_str(&taken));
    }
    pseudo_write_questions(call, true, asks, &elicitations, &samplings);
    if (elicitations.length > 2 || samplings.length > 2)
        buffer_append_format(
            pending,
            "{\"pending_client_action\":{\"elicitations\":%.*s,\"sampling_requests\":%.*s}}",
            STR_ARGS(buffer_str(&elicitations)), STR_ARGS(buffer_str(&samplings)));
}

static void append_block(struct buffer *content, struct str text)
{
    if (text.length == 0)
        return;
    buffer_append_text(content, content->length > 0 ? "," : "");
    buffer_append_text(content, "{\"type\":\"text\",\"text\":");
    buffer_append_json_string(content, text);
    buffer_append_char(content, '}');
}

/* Adds the members of a JSON object. */
static void add_member_of(struct buffer *out, struct str object)
{
    if (object.length == 0)
        return;
    if (out->bytes[out->length - 1] != '{')
        buffer_append_char(out, ',');
    buffer_append(out, str_slice(object.bytes + 1, object.length - 2));
}

/* The answer itself names the task, unless nobody reads the answer. */
static void forget_creation(const struct call *call, const struct pseudo_result *result)
{
    char key[CLIENT_KEY_BYTES];
    inbox_key_of_call(call, key);
    if (!result->tells_events && !call->is_away)
        inbox_drop_creation(call->worker->gateway, str_from(key), result->announces);
}

/* Writes a CallToolResult. Events that it tells are not kept: call it only for a client that is
 * there. */
static void pseudo_write_result(const struct call *call, struct buffer *out,
                                const struct pseudo_result *result)
{
    struct str structured = result->structured;
    OWNED_BUFFER(events);
    OWNED_BUFFER(pending);
    OWNED_BUFFER(content);
    if (result->is_bare)
        forget_creation(call, result);
    else
        write_accompanying(call, !result->tells_events, result->announces, result->asks, &events,
                           &pending);
    append_block(&content, result->text);
    append_block(&content, result->json);
    append_block(&content, buffer_str(&events));
    append_block(&content, buffer_str(&pending));
    buffer_append_format(out, "{\"content\":[%.*s]", STR_ARGS(buffer_str(&content)));
    if (structured.length > 0) {
        /* Some clients show a model structuredContent alone. Events are told only once, so they are
         * in it, too. */
        json_add_value(out, "structuredContent",
                       str_slice(structured.bytes, structured.length - 1));
        add_member_of(out, buffer_str(&events));
        add_member_of(out, buffer_str(&pending));
        buffer_append_char(out, '}');
    }
    json_add_bool(out, "isError", result->is_error);
    json_add_value(out, "_meta", result->meta);
    buffer_append_char(out, '}');
}

void pseudo_write_around(const struct call *call, struct buffer *out, struct str result)
{
    OWNED_BUFFER(events);
    OWNED_BUFFER(pending);
    OWNED_BUFFER(blocks);
    write_accompanying(call, true, STR_EMPTY, NULL, &events, &pending);
    append_block(&blocks, buffer_str(&events));
    append_block(&blocks, buffer_str(&pending));
    if (blocks.length > 0 && json_type(result) == JSON_OBJECT)
        mcp_list_append(out, result, "content", buffer_str(&blocks));
    else
        buffer_append(out, result);
}

void pseudo_answer(struct call *call, const struct pseudo_result *result)
{
    OWNED_BUFFER(text);
    if (result->is_error)
        call->outcome = "error";
    pseudo_write_result(call, &text, result);
    call_answer_result(call, buffer_str(&text));
}

void pseudo_answer_json(struct call *call, struct str json, bool is_error)
{
    pseudo_answer(call,
                  &(struct pseudo_result){.json = json, .structured = json, .is_error = is_error});
}

void pseudo_fail(struct call *call, const char *format, ...)
{
    OWNED char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        memory_exhausted();
    va_end(arguments);
    pseudo_answer(call, &(struct pseudo_result){.text = str_from(text), .is_error = true});
}

void pseudo_answer_array(struct call *call, const char *key, struct str array, size_t count,
                         struct str words)
{
    OWNED_BUFFER(structured);
    buffer_append_format(&structured, "{\"%s\":%.*s}", key, STR_ARGS(array));
    pseudo_answer(call, &(struct pseudo_result){.text = count > 0 ? STR_EMPTY : words,
                                                .json = count > 0 ? array : STR_EMPTY,
                                                .structured = buffer_str(&structured)});
}

void pseudo_answer_no_store(struct call *call)
{
    pseudo_fail(call, "The task store is not available, try again in a moment");
}

void pseudo_answer_result(struct call *call, struct str result)
{
    OWNED_BUFFER(text);
    pseudo_write_around(call, &text, result);
    call_answer_result_of_server(call, buffer_str(&text));
}

/* ---- what is pending ---- */

void pseudo_write_promoted(const struct call *call, int64_t waited_ms, const char *task_id,
                           struct buffer *out)
{
    buffer_append_format(out, "Tool call exceeded timeout (%" PRId64 "ms). Promoted to task %s. ",
                         waited_ms, task_id);
    pseudo_tools_write_text(
        call, "[[Use {get_task_result} to retrieve the result when ready.||The call goes on.]]",
        out);
}

static void pseudo_write_pending(struct buffer *out, const struct call *call,
                                 const struct pseudo_pending *pending)
{
    OWNED_BUFFER(elicitations);
    OWNED_BUFFER(samplings);
    pseudo_write_questions(call, true, NULL, &elicitations, &samplings);
    buffer_append_text(out, "{\"proxy_task\":");
    task_summary_write_proxy(out, pending->task);
    if (pending->joined)
        buffer_append_format(out, ",\"joined\":%s", pending->joined);
    buffer_append_text(out, ",\"pending_on_server\":{\"tasks\":[");
    task_summary_write_working(out, pending->working);
    buffer_append_format(out, "],\"elicitations_for_server\":%.*s}}",
                         STR_ARGS(buffer_str(&elicitations)));
}

void pseudo_answer_pending(struct call *call, const struct pseudo_pending *pending)
{
    OWNED_BUFFER(json);
    OWNED_BUFFER(structured);
    pseudo_write_pending(&json, call, pending);
    buffer_append_char(&structured, '{');
    json_add_str(&structured, "message", pending->text);
    add_member_of(&structured, buffer_str(&json));
    buffer_append_char(&structured, '}');
    pseudo_answer(call, &(struct pseudo_result){.text = pending->text,
                                                .json = buffer_str(&json),
                                                .structured = pending->promises_other
                                                                  ? STR_EMPTY
                                                                  : buffer_str(&structured),
                                                .is_error = pending->promises_other,
                                                .announces = str_from(pending->task->id),
                                                .is_bare = !call->is_executed});
}
