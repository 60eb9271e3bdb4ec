/* One piece of spare memory for each call, taken from its front to its end; then the heap. */
#include "call_memory.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/canonical.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

/* A held call needs less, but for a long `_meta`. */
#define WANTED_BYTES 1280

static size_t round_up(size_t size)
{
    return (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
}

static void find_spare(struct call *call)
{
    struct call_spare *spare = &call->spare;
    size_t size = WANTED_BYTES;
    if (spare->is_known || !call->exchange)
        return;
    spare->is_known = true;
    spare->bytes = http_take_spare(call->exchange, &size);
    spare->size = spare->bytes ? size : 0;
}

void *call_memory_take(struct call *call, size_t size)
{
    struct call_spare *spare = &call->spare;
    size_t rounded = round_up(size);
    find_spare(call);
    if (rounded > spare->size - spare->used)
        return memory_alloc(size);
    void *memory = spare->bytes + spare->used;
    spare->used += rounded;
    return memset(memory, 0, size);
}

char *call_memory_copy(struct call *call, struct str text)
{
    char *copy = call_memory_take(call, text.length + 1);
    if (text.length > 0)
        memcpy(copy, text.bytes, text.length);
    return copy;
}

static bool is_spare(const struct call *call, const void *memory)
{
    uintptr_t at = (uintptr_t)memory, begin = (uintptr_t)call->spare.bytes;
    return at >= begin && at - begin < call->spare.size;
}

void call_memory_give(struct call *call, void *memory)
{
    if (!is_spare(call, memory))
        free(memory);
#ifdef __SANITIZE_ADDRESS__
    else
        ASAN_POISON_MEMORY_REGION(memory, _Alignof(max_align_t)); /* the least that it was */
#endif
}

/* ---- the message of a call that waits ---- */

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

enum envelope_status call_replace_body(struct call *call, struct buffer *body, struct error *error)
{
    size_t length;
    char *made = buffer_take(body, &length);
    envelope_finish(&call->envelope);
    call_memory_give(call, call->made_body);
    call->made_body = made;
    return envelope_read(&call->envelope, str_slice(made, length), error);
}

static void replace_message(struct call *call, struct str message)
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
    replace_message(call, call->envelope.body);
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
    replace_message(call, buffer_str(&rest));
    buffer_finish(&rest);
}
