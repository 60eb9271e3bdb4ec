/* String by string. Between them is ASCII, in which white space is shown as blanks. */
#include "taskgate/json/visible.h"

#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

static void append_json_text(struct buffer *out, struct str json, bool is_for_people)
{
    OWNED_BUFFER(text);
    for (size_t i = 0; i < json.length; i++) {
        if (json.bytes[i] != '"') {
            bool is_space = (unsigned char)json.bytes[i] < ' ';
            buffer_append(out, is_space ? STR(" ") : str_slice(json.bytes + i, 1));
            continue;
        }
        size_t start = i++;
        while (i < json.length && json.bytes[i] != '"')
            i += json.bytes[i] == '\\' ? 2 : 1;
        buffer_clear(&text);
        json_decode_string(str_slice(json.bytes + start, i + 1 - start), &text);
        if (is_for_people)
            visible_append_quoted(out, buffer_str(&text), 0);
        else
            visible_append_json_string(out, buffer_str(&text));
    }
}

void visible_append_json(struct buffer *out, struct str json)
{
    append_json_text(out, json, false);
}

void visible_append_json_for_people(struct buffer *out, struct str json)
{
    append_json_text(out, json, true);
}
