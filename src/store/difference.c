/* The lines that one text has alone. */
#include "difference.h"

#include "taskgate/core/map.h"

#define AROUND 40 /* bytes that are shown beside what changed */

struct difference {
    struct buffer *out;
    struct map *before, *after; /* line -> any pointer */
    struct str rest_before, rest_after;
};

/* The next line of `rest` that `others` lacks; empty: there is none. */
static struct str next_alone(struct str *rest, struct map *others)
{
    struct str line;
    while (rest->length > 0) {
        str_cut(*rest, '\n', &line, rest);
        if (line.length > 0 && !map_get(others, line))
            return line;
    }
    return STR_EMPTY;
}

static void fill(struct map *map, struct str text)
{
    struct str line;
    while (text.length > 0) {
        str_cut(text, '\n', &line, &text);
        if (line.length > 0)
            map_put(map, line, map);
    }
}

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

static size_t common_start(struct str a, struct str b)
{
    size_t i = 0;
    while (i < a.length && i < b.length && a.bytes[i] == b.bytes[i])
        i++;
    return i;
}

static size_t common_end(struct str a, struct str b, size_t start)
{
    size_t i = 0;
    while (i < a.length - start && i < b.length - start &&
           a.bytes[a.length - 1 - i] == b.bytes[b.length - 1 - i])
        i++;
    return i;
}

static void append_line(struct buffer *out, char sign, struct str line, size_t start, size_t end)
{
    size_t from = start > AROUND ? start - AROUND : 0;
    size_t to = end > AROUND ? line.length - end + AROUND : line.length;
    while (from > 0 && !begins_character(line.bytes[from]))
        from--;
    while (to < line.length && !begins_character(line.bytes[to]))
        to++;
    buffer_append_char(out, sign);
    buffer_append_text(out, from > 0 ? "…" : "");
    buffer_append(out, str_slice(line.bytes + from, to - from));
    buffer_append_text(out, to < line.length ? "…" : "");
    buffer_append_char(out, '\n');
}

/* The line that went beside the one that came. */
static bool append_pair(struct difference *difference)
{
    struct str gone = next_alone(&difference->rest_before, difference->after);
    struct str come = next_alone(&difference->rest_after, difference->before);
    size_t start = 0, end = 0;
    if (gone.length > 0 && come.length > 0) {
        start = common_start(gone, come);
        end = common_end(gone, come, start);
    }
    if (gone.length > 0)
        append_line(difference->out, '-', gone, start, end);
    if (come.length > 0)
        append_line(difference->out, '+', come, start, end);
    return gone.length > 0 || come.length > 0;
}

void difference_write(struct buffer *out, struct str before, struct str after, size_t most)
{
    size_t begin = out->length;
    struct difference difference = {
        .out = out,
        .before = map_create(),
        .after = map_create(),
        .rest_before = before,
        .rest_after = after,
    };
    fill(difference.before, before);
    fill(difference.after, after);
    while (out->length - begin <= most && append_pair(&difference))
        ;
    if (out->length - begin > most) {
        static const char more[] = "…";
        struct str written = str_slice(out->bytes + begin, out->length - begin);
        out->length = begin + str_utf8_cut(written, most - (sizeof more - 1)).length;
        buffer_append_text(out, more);
    }
    map_destroy(difference.before, NULL);
    map_destroy(difference.after, NULL);
}
