/* Members of an object that is being written. */
#include "taskgate/json/members.h"

#include "taskgate/core/clock.h"

void json_add_key(struct buffer *out, const char *key)
{
    bool is_first = out->length > 0 && out->bytes[out->length - 1] == '{';
    buffer_append_format(out, "%s\"%s\":", is_first ? "" : ",", key);
}

void json_add_text(struct buffer *out, const char *key, const char *text)
{
    json_add_key(out, key);
    buffer_append_json_string(out, str_from(text));
}

void json_add_text_or_null(struct buffer *out, const char *key, const char *text)
{
    if (text && *text) {
        json_add_text(out, key, text);
    } else {
        json_add_key(out, key);
        buffer_append(out, STR("null"));
    }
}

void json_add_time(struct buffer *out, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_BYTES];
    json_add_text_or_null(out, key, wall_ms ? clock_format(wall_ms, text) : NULL);
}
