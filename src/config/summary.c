/* From "Drops {schema}.{table}" to the sentence of one call. */
#include "taskgate/config/summary.h"

#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"

#include "checks.h"

/* The next piece of the text: bytes as they are, or a path. */
struct piece {
    struct str text;
    bool is_path;
};

/* Takes a piece off the text; false at its end. A fault goes to `error`, if it is given. */
static bool next_piece(struct str *text, struct piece *piece, struct error *error)
{
    if (text->length == 0)
        return false;
    size_t length = 0;
    while (length < text->length && text->bytes[length] != '{' && text->bytes[length] != '}')
        length++;
    *piece = (struct piece){str_slice(text->bytes, length), false};
    struct str rest = str_slice(text->bytes + length, text->length - length);
    if (length == 0 && rest.bytes[0] == '{' && !str_starts_with(rest, STR("{{"))) {
        piece->is_path = true;
        bool is_closed =
            str_cut(str_slice(rest.bytes + 1, rest.length - 1), '}', &piece->text, text);
        piece->text = str_trim(piece->text);
        return is_closed || error_set(error, "a \"{\" has no \"}\"; write {{ for the brace itself");
    }
    if (length == 0) { /* a brace that stands for itself, once or doubled */
        piece->text = str_slice(rest.bytes, 1);
        size_t count = rest.length > 1 && rest.bytes[1] == rest.bytes[0] ? 2 : 1;
        rest = str_slice(rest.bytes + count, rest.length - count);
    }
    *text = rest;
    return true;
}

bool summary_check(struct str text, struct error *error)
{
    struct piece piece;
    struct error wrong = {""};
    if (!check_not_empty(text, error))
        return false;
    while (next_piece(&text, &piece, &wrong)) {
        if (piece.is_path && !check_dot_path(piece.text, error))
            return false;
    }
    return !*wrong.message || error_set(error, "%s", wrong.message);
}

/* ---- filling ---- */

struct filling {
    struct buffer *out;
    size_t start; /* of the sentence in `out` */
    bool is_full; /* the sentence is as long as it may be */
};

/* Appends at most `most` bytes of the text, cut between two characters. */
static void append_cut(struct filling *filling, struct str text, size_t most)
{
    size_t used = filling->out->length - filling->start;
    size_t room = SUMMARY_BYTES > used ? SUMMARY_BYTES - used : 0;
    filling->is_full = text.length > room && room <= most;
    most = room < most ? room : most;
    bool is_cut = text.length > most;
    if (is_cut)
        text = str_utf8_cut(text, most);
    buffer_append(filling->out, text);
    if (is_cut)
        buffer_append_text(filling->out, "…");
}

/* A text is quoted, so that nobody takes it for words of the rule. */
static void summary_add_value(struct filling *filling, struct str value)
{
    OWNED_BUFFER(text);
    OWNED_BUFFER(shown);
    bool is_text = json_decode_string(value, &text);
    if (is_text && str_equal(buffer_str(&text), STR("[REDACTED]")))
        buffer_append(&shown, buffer_str(&text));
    else if (is_text)
        visible_append_value(&shown, buffer_str(&text), VISIBLE_QUOTED_MAX);
    else
        visible_append_json(&shown, value);
    append_cut(filling, buffer_str(&shown), SUMMARY_VALUE_BYTES);
}

/* The values that the path leads to from here; `count` have been found before. */
static void add_values(struct filling *filling, struct str value, struct str path, size_t *count)
{
    struct str segment, element;
    size_t position = 0;
    if (path.length == 0) {
        if ((*count)++ > 0)
            append_cut(filling, STR(", "), SUMMARY_VALUE_BYTES);
        if (!filling->is_full)
            summary_add_value(filling, value);
        return;
    }
    if (json_type(value) == JSON_ARRAY) {
        while (!filling->is_full && json_next_element(value, &position, &element))
            add_values(filling, element, path, count);
        return;
    }
    str_cut(path, '.', &segment, &path);
    OWNED char *key = memory_copy_str(segment);
    struct str member = json_member(value, key);
    if (member.length > 0)
        add_values(filling, member, path, count);
}

void summary_write(struct buffer *out, struct str text, struct str arguments)
{
    struct filling filling = {out, out->length, false};
    struct piece piece;
    while (!filling.is_full && next_piece(&text, &piece, NULL)) {
        size_t count = 0;
        if (piece.is_path)
            add_values(&filling, arguments, piece.text, &count);
        else
            append_cut(&filling, piece.text, SUMMARY_BYTES);
    }
}
