/* Pretty JSON, columns. */
#include "terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"

#include "colour.h"

/* The raw text between a key's quotes, with them. */
static struct str with_quotes(struct str key)
{
    return str_slice(key.bytes - 1, key.length + 2);
}

static void terminal_append_line(struct buffer *out, unsigned indent)
{
    buffer_append_format(out, "\n%*s", (int)indent, "");
}

/* The paths that are still to be walked, each from the value at hand. */
struct paths {
    struct str *items;
    size_t count;
};

static void terminal_append_value(struct buffer *out, struct str json, unsigned indent,
                                  const struct paths *hidden);

/* The member `key` of an object; `raw` has its quotes. */
static void terminal_append_member(struct buffer *out, struct str raw, struct str value,
                                   unsigned indent, const struct paths *hidden)
{
    OWNED_BUFFER(key);
    struct str first, rest;
    bool is_hidden = false;
    struct paths below = {memory_alloc_array(hidden->count, sizeof *below.items), 0};
    json_decode_string(raw, &key);
    for (size_t i = 0; i < hidden->count; i++) {
        bool goes_on = str_cut(hidden->items[i], '.', &first, &rest);
        if (!str_equal(first, buffer_str(&key)))
            continue;
        is_hidden |= !goes_on;
        below.items[below.count++] = rest;
    }
    visible_append_json_for_people(out, raw);
    buffer_append(out, STR(": "));
    if (is_hidden)
        buffer_append(out, STR("[REDACTED]"));
    else
        terminal_append_value(out, value, indent, &below);
    free(below.items);
}

static void append_object(struct buffer *out, struct str json, unsigned indent,
                          const struct paths *hidden)
{
    size_t position = 0;
    struct str key, value;
    const char *before = "{";
    while (json_next_member(json, &position, &key, &value)) {
        buffer_append_text(out, before);
        before = ",";
        terminal_append_line(out, indent + 2);
        terminal_append_member(out, with_quotes(key), value, indent + 2, hidden);
    }
    terminal_append_line(out, indent);
    buffer_append_char(out, '}');
}

static void append_array(struct buffer *out, struct str json, unsigned indent,
                         const struct paths *hidden)
{
    size_t position = 0;
    struct str element;
    const char *before = "[";
    while (json_next_element(json, &position, &element)) {
        buffer_append_text(out, before);
        before = ",";
        terminal_append_line(out, indent + 2);
        terminal_append_value(out, element, indent + 2, hidden);
    }
    terminal_append_line(out, indent);
    buffer_append_char(out, ']');
}

static void terminal_append_value(struct buffer *out, struct str json, unsigned indent,
                                  const struct paths *hidden)
{
    enum json_type type = json_type(json);
    if (type == JSON_OBJECT)
        json_count(json) ? append_object(out, json, indent, hidden) : buffer_append(out, STR("{}"));
    else if (type == JSON_ARRAY)
        json_count(json) ? append_array(out, json, indent, hidden) : buffer_append(out, STR("[]"));
    else
        visible_append_json_for_people(out, str_trim(json));
}

void terminal_append_pretty(struct buffer *out, struct str json, struct str hidden)
{
    struct paths paths = {memory_alloc_array(json_count(hidden), sizeof *paths.items), 0};
    OWNED struct buffer *texts = memory_alloc_array(json_count(hidden), sizeof *texts);
    size_t position = 0;
    struct str path;
    while (json_next_element(hidden, &position, &path)) {
        buffer_init(&texts[paths.count]);
        json_decode_string(path, &texts[paths.count]);
        paths.items[paths.count] = buffer_str(&texts[paths.count]);
        paths.count++;
    }
    terminal_append_value(out, json, 0, &paths);
    while (paths.count > 0)
        buffer_finish(&texts[--paths.count]);
    free(paths.items);
}

bool terminal_write(const struct buffer *text)
{
    bool written =
        fwrite(text->bytes ? text->bytes : "", 1, text->length, stdout) == text->length &&
        fflush(stdout) == 0;
    if (!written)
        fprintf(stderr, "taskgate: cannot write the output: %s\n", strerror(errno));
    return written;
}

/* ---- tables ---- */

#define COLUMN_GAP 2
#define INDENT 1 /* of the second line of a row and those behind it */

static size_t width_of_terminal(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void table_init(struct table *table, size_t columns, const char *const *headings)
{
    ASSERT_NUMBERS(columns, <=, TABLE_COLUMNS_MAX);
    *table = (struct table){.columns = columns, .room = width_of_terminal()};
    for (size_t i = 0; i < columns; i++)
        table_add(table, str_from(headings[i]));
}

static struct buffer *new_cell(struct table *table)
{
    table->cells = memory_grow_array(table->cells, table->count + 1, sizeof *table->cells);
    buffer_init(&table->cells[table->count]);
    return &table->cells[table->count++];
}

void table_add(struct table *table, struct str text)
{
    visible_append(new_cell(table), text);
}

void table_add_shown(struct table *table, struct str text)
{
    buffer_append(new_cell(table), text);
}

/* The bytes of the character at `i`, and whether it takes a column: an isolate takes none. */
static size_t character_at(const struct buffer *cell, size_t i, bool *has_width)
{
    size_t length = 1;
    while (i + length < cell->length && ((unsigned char)cell->bytes[i + length] & 0xC0) == 0x80)
        length++;
    struct str character = str_slice(cell->bytes + i, length);
    *has_width = !str_equal(character, STR(VISIBLE_ISOLATE)) &&
                 !str_equal(character, STR(VISIBLE_ISOLATE_END));
    return length;
}

/* In characters, which is near enough to columns of a terminal. */
static size_t width_of(const struct buffer *cell)
{
    size_t width = 0;
    bool has_width;
    for (size_t i = 0; i < cell->length; width += has_width)
        i += character_at(cell, i, &has_width);
    return width;
}

/* The place and width of a column. */
struct place {
    size_t line, start, width;
};

/* Takes from the widest of the columns that may be cut, until a row fits or nothing is left to
 * take. */
static void shrink(const struct table *table, struct place *places)
{
    size_t total = COLUMN_GAP * (table->columns - 1);
    for (size_t i = 0; i < table->columns; i++)
        total += places[i].width;
    while (total > table->room) {
        struct place *widest = NULL;
        for (size_t i = 0; i < table->columns; i++) {
            bool may = table->least[i] > 0 && places[i].width > table->least[i];
            if (may && (!widest || places[i].width > widest->width))
                widest = &places[i];
        }
        if (!widest)
            return;
        widest->width--;
        total--;
    }
}

static struct place *lay_out(const struct table *table)
{
    struct place *places = memory_alloc_array(table->columns, sizeof *places);
    for (size_t i = 0; i < table->count; i++) {
        size_t width = width_of(&table->cells[i]);
        if (width > places[i % table->columns].width)
            places[i % table->columns].width = width;
    }
    if (table->room > 0)
        shrink(table, places);
    for (size_t i = 1; i < table->columns; i++) {
        places[i].line = places[i - 1].line;
        places[i].start = places[i - 1].start + places[i - 1].width + COLUMN_GAP;
        if (table->room > 0 && places[i].start + places[i].width > table->room) {
            places[i].line++;
            places[i].start = INDENT;
        }
    }
    return places;
}

/* The part of a cell that fits into so many columns; "…" stands for the rest. Returns the columns
 * it takes. */
static size_t terminal_append_cell(struct buffer *out, const struct buffer *cell, size_t room)
{
    bool is_cut = width_of(cell) > room, is_isolated = false, has_width;
    size_t most = room - (is_cut && room > 0), width = 0, i = 0;
    for (size_t next; i < cell->length; i = next) {
        next = i + character_at(cell, i, &has_width);
        if (has_width && width == most)
            break;
        width += has_width;
        is_isolated = has_width ? is_isolated : !is_isolated;
    }
    buffer_append(out, str_slice(cell->bytes, i));
    if (is_cut)
        buffer_append(out, STR("…"));
    if (is_isolated)
        buffer_append(out, STR(VISIBLE_ISOLATE_END));
    return width + is_cut;
}

/* A line of a row without anything in it is left out, and no line ends in spaces. */
static void terminal_write_row(const struct table *table, size_t row, const struct place *places,
                               struct buffer *out)
{
    const struct buffer *cells = &table->cells[row * table->columns];
    size_t line = 0, at = 0;
    for (size_t i = 0; i < table->columns; i++) {
        if (cells[i].length == 0)
            continue;
        if (places[i].line != line) {
            buffer_append_char(out, '\n');
            line = places[i].line;
            at = 0;
        }
        const char *colour = table->paint ? table->paint(row, i, buffer_str(&cells[i])) : "";
        buffer_append_format(out, "%*s%s", (int)(places[i].start - at), "", colour);
        at = places[i].start + terminal_append_cell(out, &cells[i], places[i].width);
        buffer_append_text(out, *colour ? colour_end() : "");
    }
    buffer_append_char(out, '\n');
}

void table_write(const struct table *table, struct buffer *out)
{
    OWNED struct place *places = lay_out(table);
    for (size_t i = 0; i * table->columns < table->count; i++)
        terminal_write_row(table, i, places, out);
}

void table_finish(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        buffer_finish(&table->cells[i]);
    free(table->cells);
}
