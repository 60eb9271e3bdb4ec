/*
 * The envelope reader against jansson: for a second reader an accepted message has the values of
 * the spans, no key of it looks like a protocol key without being one, and the executed bytes are
 * the same message less its task.
 */
#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "fuzz.h"
#include "second_reader.h"
#include "taskgate/core/buffer.h"
#include "taskgate/json/envelope.h"

static json_t *load(struct str text)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    return json_loadb(text.length ? text.bytes : "", text.length, flags, NULL);
}

static bool is_inside(const struct envelope *envelope, struct str span)
{
    return span.length == 0 ||
           (span.bytes >= envelope->body.bytes &&
            span.bytes + span.length <= envelope->body.bytes + envelope->body.length);
}

/* The span is the JSON text of the member, and empty exactly when there is none. */
static void check_span(const struct envelope *envelope, struct str span, const json_t *object,
                       const char *key)
{
    json_t *expected = json_object_get(object, key);
    json_t *found = span.length ? load(span) : NULL;
    FUZZ_EXPECT(is_inside(envelope, span));
    FUZZ_EXPECT((expected != NULL) == (found != NULL));
    FUZZ_EXPECT(!expected || json_equal(expected, found));
    json_decref(found);
}

static void check_text(struct str text, const json_t *value)
{
    FUZZ_EXPECT((text.bytes != NULL) == json_is_string(value) || text.length == 0);
    if (json_is_string(value))
        FUZZ_EXPECT(
            str_equal(text, str_slice(json_string_value(value), json_string_length(value))));
}

static void check_member(const struct envelope *envelope, const struct envelope_member *member,
                         const json_t *params, const char *key)
{
    check_span(envelope, member->raw, params, key);
    /* The params of a response are not read. */
    if (envelope->kind != ENVELOPE_RESPONSE)
        check_text(member->text, json_object_get(params, key));
}

static void check_no_variant(json_t *object, const char *const *names)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        for (size_t i = 0; names[i]; i++)
            FUZZ_EXPECT(strcasecmp(key, names[i]) != 0 || strcmp(key, names[i]) == 0);
    }
}

static void check_keys(json_t *message, json_t *params)
{
    static const char *const outer[] = {"jsonrpc", "id",    "method", "params",
                                        "result",  "error", NULL};
    static const char *const inner[] = {"name",   "arguments", "task", "_meta",
                                        "taskId", "cursor",    "uri",  NULL};
    static const char *const task[] = {"ttl", NULL};
    static const char *const meta[] = {"progressToken", NULL};
    check_no_variant(message, outer);
    check_no_variant(params, inner);
    check_no_variant(json_object_get(params, "task"), task);
    check_no_variant(json_object_get(params, "_meta"), meta);
}

static void check_executable(const struct envelope *envelope, json_t *message)
{
    struct buffer out;
    struct envelope again;
    buffer_init(&out);
    envelope_write_executable(envelope, STR("tg:1"), false, &out);
    json_object_del(json_object_get(message, "params"), "task");
    if (envelope->id.length)
        json_object_set_new(message, "id", json_string("tg:1"));
    json_t *executed = load(buffer_str(&out));
    FUZZ_EXPECT(executed && json_equal(executed, message));
    FUZZ_EXPECT(envelope_read(&again, buffer_str(&out), NULL) == ENVELOPE_OK);
    envelope_finish(&again);
    json_decref(executed);
    buffer_finish(&out);
}

static void check_accepted(const struct envelope *envelope, json_t *message)
{
    json_t *params = json_object_get(message, "params");
    FUZZ_EXPECT(json_is_object(message));
    check_span(envelope, envelope->id, message, "id");
    check_span(envelope, envelope->params, message, "params");
    check_span(envelope, envelope->result, message, "result");
    check_span(envelope, envelope->error, message, "error");
    check_text(envelope->method, json_object_get(message, "method"));
    check_member(envelope, &envelope->name, params, "name");
    check_member(envelope, &envelope->uri, params, "uri");
    check_member(envelope, &envelope->task_id, params, "taskId");
    check_member(envelope, &envelope->cursor, params, "cursor");
    check_span(envelope, envelope->arguments.raw, params, "arguments");
    check_span(envelope, envelope->task.raw, params, "task");
    check_span(envelope, envelope->meta.raw, params, "_meta");
    check_span(envelope, envelope->task_ttl, json_object_get(params, "task"), "ttl");
    check_span(envelope, envelope->progress_token, json_object_get(params, "_meta"),
               "progressToken");
    check_keys(message, params);
    check_executable(envelope, message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = str_slice((const char *)data, size);
    struct envelope envelope;
    struct error error = {""};
    enum envelope_status status = envelope_read(&envelope, body, &error);
    json_t *message = load(body);
    FUZZ_EXPECT((status == ENVELOPE_OK) == (error.message[0] == '\0'));
    FUZZ_EXPECT(is_inside(&envelope, envelope.id));
    /* jansson cannot hold every good message (numbers beyond double, NUL in keys). */
    if (status == ENVELOPE_OK && message)
        check_accepted(&envelope, message);
    if (status == ENVELOPE_PARSE_ERROR)
        FUZZ_EXPECT(!message || strstr(error.message, "nested too deep") || second_overlooks(body));
    json_decref(message);
    envelope_finish(&envelope);
    return 0;
}
