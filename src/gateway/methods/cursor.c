/* Cursors: JSON in base64. */
#include "cursor.h"

#include <inttypes.h>
#include <openssl/evp.h>

#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

#define CURSOR_MAX_BYTES 8192

void cursor_init(struct cursor *cursor)
{
    *cursor = (struct cursor){0};
    buffer_init(&cursor->wrapped);
}

void cursor_finish(struct cursor *cursor)
{
    buffer_finish(&cursor->wrapped);
}

static void encode(struct str text, struct buffer *out)
{
    buffer_reserve(out, text.length / 3 * 4 + 8);
    int length = EVP_EncodeBlock((unsigned char *)out->bytes + out->length,
                                 (const unsigned char *)text.bytes, (int)text.length);
    out->length += (size_t)length;
}

void cursor_write(const struct cursor *cursor, struct buffer *out)
{
    OWNED_BUFFER(text);
    if (cursor->upstream) {
        buffer_append_text(&text, "{\"upstream\":");
        buffer_append(&text, cursor->wrapped.length ? buffer_str(&cursor->wrapped) : STR("null"));
        buffer_append_format(&text, ",\"skip\":%" PRIu64 "}", cursor->skip);
    } else {
        buffer_append_format(&text, "{\"before\":%" PRId64 "}", cursor->sequence);
    }
    buffer_append_char(out, '"');
    encode(buffer_str(&text), out);
    buffer_append_char(out, '"');
}

static bool decode(struct str text, struct buffer *out)
{
    if (text.length == 0 || text.length % 4 != 0 || text.length > CURSOR_MAX_BYTES)
        return false;
    buffer_reserve(out, text.length);
    int length = EVP_DecodeBlock((unsigned char *)out->bytes, (const unsigned char *)text.bytes,
                                 (int)text.length);
    if (length < 0)
        return false;
    out->length = (size_t)length;
    for (size_t i = 1; i <= 2 && text.bytes[text.length - i] == '='; i++)
        out->length--; /* padding decodes to zero bytes */
    return true;
}

/* A cursor of ours is written the same again. Base64 and JSON allow other spellings, which are
 * refused. */
static bool is_written_as(const struct cursor *cursor, struct str text)
{
    OWNED_BUFFER(again);
    cursor_write(cursor, &again);
    return str_equal(str_slice(again.bytes + 1, again.length - 2), text);
}

bool cursor_read(struct cursor *cursor, struct str text)
{
    OWNED_BUFFER(json);
    uint64_t number = 0;
    bool good = false;
    if (!decode(text, &json) || !json_check(buffer_str(&json), NULL))
        return false;
    struct str before = json_member(buffer_str(&json), "before");
    struct str upstream = json_member(buffer_str(&json), "upstream");
    if (before.length > 0) {
        good = str_to_u64(before, &number) && number > 0 && number <= INT64_MAX;
        cursor->sequence = (int64_t)number;
    } else if (upstream.length > 0) {
        cursor->upstream = true;
        good = str_to_u64(json_member(buffer_str(&json), "skip"), &cursor->skip) &&
               (json_type(upstream) == JSON_STRING || json_type(upstream) == JSON_NULL);
        if (good && json_type(upstream) == JSON_STRING)
            buffer_append(&cursor->wrapped, upstream);
    }
    return good && is_written_as(cursor, text);
}
