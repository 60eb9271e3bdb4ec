/* Puts the names of the gateway's own tools into texts. */
#include "tool_names.h"

#include <string.h>

static const char choice_begin[] = "[[", choice_next[] = "||", choice_end[] = "]]";

bool tool_names_write(const struct tool_names *names, enum config_pseudo_tool tool,
                      struct buffer *out)
{
    if (!tool_names_offer(names, tool))
        return false;
    if (names->prefixed & 1U << tool)
        buffer_append_text(out, names->prefix);
    buffer_append_text(out, config_pseudo_tool_name(tool));
    return true;
}

static struct str rest_after(struct str text, size_t length)
{
    return str_slice(text.bytes + length, text.length - length);
}

/* The place of `mark`, or the end of `text`. */
static size_t find(struct str text, const char *mark)
{
    const char *at = memmem(text.bytes, text.length, mark, strlen(mark));
    return at ? (size_t)(at - text.bytes) : text.length;
}

/* The length of the "{name}" that `text` begins with; 0 when it begins with no tool's. */
static size_t read_name(struct str text, enum config_pseudo_tool *tool)
{
    for (unsigned i = 0; i < PSEUDO_TOOL_COUNT; i++) {
        struct str name = str_from(config_pseudo_tool_name((enum config_pseudo_tool)i));
        *tool = (enum config_pseudo_tool)i;
        if (text.length >= name.length + 2 && text.bytes[name.length + 1] == '}' &&
            str_equal(name, str_slice(text.bytes + 1, name.length)))
            return name.length + 2;
    }
    return 0;
}

/* A text without choices. False when it names a tool that is not offered. */
static bool fill_piece(const struct tool_names *names, struct str text, struct buffer *out)
{
    bool is_whole = true;
    while (text.length > 0) {
        enum config_pseudo_tool tool;
        size_t plain = find(text, "{");
        buffer_append(out, str_slice(text.bytes, plain));
        text = rest_after(text, plain);
        size_t length = text.length > 0 ? read_name(text, &tool) : 0;
        if (length > 0) {
            is_whole = tool_names_write(names, tool, out) && is_whole;
        } else if (text.length > 0) {
            buffer_append_char(out, '{');
            length = 1;
        }
        text = rest_after(text, length);
    }
    return is_whole;
}

static void fill_choice(const struct tool_names *names, struct str choice, struct buffer *out)
{
    size_t before = out->length;
    while (choice.length > 0) {
        size_t length = find(choice, choice_next);
        if (fill_piece(names, str_slice(choice.bytes, length), out))
            return;
        out->length = before;
        bool is_last = length == choice.length;
        choice = rest_after(choice, is_last ? length : length + strlen(choice_next));
    }
}

void tool_names_fill(const struct tool_names *names, struct str text, struct buffer *out)
{
    while (text.length > 0) {
        size_t begin = find(text, choice_begin);
        fill_piece(names, str_slice(text.bytes, begin), out);
        if (begin == text.length)
            return;
        text = rest_after(text, begin + strlen(choice_begin));
        size_t end = find(text, choice_end);
        fill_choice(names, str_slice(text.bytes, end), out);
        text = rest_after(text, end == text.length ? end : end + strlen(choice_end));
    }
}
