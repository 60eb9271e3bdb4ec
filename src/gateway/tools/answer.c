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

static void collect(struct pseudo_questions *inputs, const struct call *call, const char *key,
                    const char *owner)
{
    question_write_pending(call->worker->gateway, str_from(key), str_from(call->source->id),
                           str_from(owner), &inputs->elicitations, &inputs->samplings);
}

/* Of the call's client, and of the task, each unless it is NULL. */
static void questions_init(struct pseudo_questions *inputs, const struct call *call,
                           const struct call *client, const struct task *task)
{
    char key[CLIENT_KEY_BYTES] = "", task_key[CLIENT_KEY_BYTES];
    buffer_init(&inputs->elicitations);
    buffer_init(&inputs->samplings);
    buffer_append_char(&inputs->elicitations, '[');
    buffer_append_char(&inputs->samplings, '[');
    if (client) {
        client_key_of_call(client, key);
        collect(inputs, call, key, "");
    }
    if (task) {
        client_key_or_id_of_task(task, task_key);
        if (strcmp(key, task_key) != 0)
            collect(inputs, call, task_key, task->owner);
    }
    buffer_append_char(&inputs->elicitations, ']');
    buffer_append_char(&inputs->samplings, ']');
}

void pseudo_questions_init(struct pseudo_questions *inputs, const struct call *call)
{
    questions_init(inputs, call, call, NULL);
}

void pseudo_questions_init_of(struct pseudo_questions *inputs, const struct call *call,
                              const struct task *task)
{
    questions_init(inputs, call, NULL, task);
}

void pseudo_questions_finish(struct pseudo_questions *inputs)
{
    buffer_finish(&inputs->elicitations);
    buffer_finish(&inputs->samplings);
}

/* The events and the open questions that accompany a result: JSON objects, empty when there are
 * none. */
struct attached {
    struct buffer events, pending;
};

static void attached_init(struct attached *news, const struct call *call, bool takes_events,
                          struct str announced, const struct task *asks)
{
    char key[CLIENT_KEY_BYTES];
    struct gateway *gateway = call->worker->gateway;
    struct pseudo_questions inputs;
    OWNED_BUFFER(events);
    *news = (struct attached){{0}, {0}};
    inbox_key_of_call(call, key);
    takes_events = takes_events && !call->is_away; /* else they are told at the session's home */
    if (takes_events && inbox_take_events(gateway, str_from(key), announced, &events) > 0) {
        buffer_append_format(&news->events, "{\"events_since_last_response\":%.*s}",
                             STR_ARGS(buffer_str(&events)));
        repeated_news_forget_told(call, buffer_str(&events));
    }
    questions_init(&inputs, call, call, asks);
    if (inputs.elicitations.length > 2 || inputs.samplings.length > 2)
        buffer_append_format(
            &news->pending,
            "{\"pending_client_action\":{\"elicitations\":%.*s,\"sampling_requests\":%.*s}}",
            STR_ARGS(buffer_str(&inputs.elicitations)), STR_ARGS(buffer_str(&inputs.samplings)));
    pseudo_questions_finish(&inputs);
}

static void attached_finish(struct attached *news)
{
    buffer_finish(&news->events);
    buffer_finish(&news->pending);
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

static void append_attached(struct buffer *content, const struct attached *news)
{
    append_block(content, buffer_str(&news->events));
    append_block(content, buffer_str(&news->pending));
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

/* Some clients show a model structuredContent alone. Events are told only once, so they stand there
 * too. */
static void add_structured(struct buffer *out, struct str structured, const struct attached *news)
{
    if (structured.length == 0)
        return;
    json_add_value(out, "structuredContent", str_slice(structured.bytes, structured.length - 1));
    add_member_of(out, buffer_str(&news->events));
    add_member_of(out, buffer_str(&news->pending));
    buffer_append_char(out, '}');
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
    struct attached news = {{0}, {0}};
    OWNED_BUFFER(content);
    if (result->is_bare)
        forget_creation(call, result);
    else
        attached_init(&news, call, !result->tells_events, result->announces, result->asks);
    append_block(&content, result->text);
    append_block(&content, result->json);
    append_attached(&content, &news);
    buffer_append_format(out, "{\"content\":[%.*s]", STR_ARGS(buffer_str(&content)));
    add_structured(out, result->structured, &news);
    buffer_append_format(out, ",\"isError\":%s", result->is_error ? "true" : "false");
    if (result->meta.length > 0)
        buffer_append_format(out, ",\"_meta\":%.*s", STR_ARGS(result->meta));
    buffer_append_char(out, '}');
    attached_finish(&news);
}

void pseudo_write_around(const struct call *call, struct buffer *out, struct str result)
{
    struct attached news;
    OWNED_BUFFER(blocks);
    attached_init(&news, call, true, STR_EMPTY, NULL);
    append_attached(&blocks, &news);
    if (blocks.length > 0 && json_type(result) == JSON_OBJECT)
        mcp_list_append(out, result, "content", buffer_str(&blocks));
    else
        buffer_append(out, result);
    attached_finish(&news);
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
    struct pseudo_questions inputs;
    pseudo_questions_init(&inputs, call);
    buffer_append_text(out, "{\"proxy_task\":");
    task_summary_write_proxy(out, pending->task);
    if (pending->joined)
        buffer_append_format(out, ",\"joined\":%s", pending->joined);
    buffer_append_text(out, ",\"pending_on_server\":{\"tasks\":[");
    task_summary_write_working(out, pending->working);
    buffer_append_format(out, "],\"elicitations_for_server\":%.*s}}",
                         STR_ARGS(buffer_str(&inputs.elicitations)));
    pseudo_questions_finish(&inputs);
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
