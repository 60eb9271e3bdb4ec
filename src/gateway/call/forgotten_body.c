/* The message that stays of a call that waits. */
#include "forgotten_body.h"

#include <string.h>

#include "call_memory.h"
#include "taskgate/json/canonical.h"

void call_digest_arguments(const struct call *call, char digest[DIGEST_HEX_BYTES])
{
    if (call->arguments_digest)
        memcpy(digest, call->arguments_digest, DIGEST_HEX_BYTES);
    else
        canonical_digest(call->envelope.arguments.raw, digest);
}

static void write_rest(const struct envelope *envelope, struct buffer *out)
{
    const struct {
        const char *name;
        struct str value;
    } kept[] = {
        {"name", envelope->name.raw},      {"uri", envelope->uri.raw},
        {"taskId", envelope->task_id.raw}, {"task", envelope->task.raw},
        {"_meta", envelope->meta.raw},
    };
    char before = '{';
    buffer_append_text(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buffer_append(out, envelope->id);
    buffer_append_text(out, ",\"method\":");
    buffer_append_json_string(out, envelope->method);
    buffer_append_text(out, ",\"params\":");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (kept[i].value.length == 0)
            continue;
        buffer_append_format(out, "%c\"%s\":", before, kept[i].name);
        buffer_append(out, kept[i].value);
        before = ',';
    }
    buffer_append_text(out, before == '{' ? "{}}" : "}}");
}

static void replace(struct call *call, struct str message)
{
    struct error error = {""};
    struct buffer exact = {call_memory_copy(call, message), message.length, message.length + 1};
    if (call_replace_body(call, &exact, &error) == ENVELOPE_OK)
        http_forget_body(call->exchange);
}

void call_own_body(struct call *call)
{
    if (!call->exchange || call->made_body)
        return;
    http_charge(call->exchange, call->envelope.body.length);
    replace(call, call->envelope.body);
}

void call_forget_body(struct call *call)
{
    struct buffer rest = {0};
    if (!call->exchange)
        return;
    bool is_forgotten = call->made_body && http_body(call->exchange).length == 0;
    if (is_forgotten || call->envelope.kind != ENVELOPE_REQUEST)
        return;
    if (!call->arguments_digest && call->envelope.arguments.raw.length > 0) {
        call->arguments_digest = call_memory_take(call, DIGEST_HEX_BYTES);
        canonical_digest(call->envelope.arguments.raw, call->arguments_digest);
    }
    write_rest(&call->envelope, &rest);
    replace(call, buffer_str(&rest));
    buffer_finish(&rest);
}
