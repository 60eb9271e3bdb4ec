/* Tasks as a table. */
#include <stdint.h>

#include "tasks_show.h"
#include "tasks_table.h"

#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/text.h"

#include "colour.h"
#include "tasks_pages.h"
#include "terminal.h"

#define ID_SHOWN_MIN 11 /* "tg_" and eight digits */

static size_t common_length(struct str left, struct str right)
{
    size_t length = 0;
    while (length < left.length && length < right.length &&
           left.bytes[length] == right.bytes[length])
        length++;
    return length;
}

/* How much of the ids makes them differ among these tasks. */
static size_t id_length(const struct tasks_table *tasks)
{
    size_t length = ID_SHOWN_MIN;
    if (!tasks->for_terminal)
        return SIZE_MAX;
    for (size_t i = 0; i < tasks->count; i++) {
        for (size_t j = i + 1; j < tasks->count; j++) {
            size_t common = common_length(json_member(tasks->tasks[i], "id"),
                                          json_member(tasks->tasks[j], "id"));
            if (common > length) /* one character of it is the quote */
                length = common;
        }
    }
    return length;
}

static void tasks_table_add_asker(struct buffer *cell, struct str task, int64_t now_ms)
{
    tasks_append_asker(cell, task);
}

static void tasks_table_add_left(struct buffer *cell, struct str task, int64_t now_ms)
{
    bool waits = json_string_equals(json_member(task, "state"), STR("pending"));
    if (waits && tasks_time(task, "decideBy"))
        tasks_append_span(cell, tasks_time(task, "decideBy") - now_ms);
}

static void add_age(struct buffer *cell, struct str task, int64_t now_ms)
{
    if (!tasks_time(task, "createdAt"))
        return;
    tasks_append_span(cell, now_ms - tasks_time(task, "createdAt"));
    buffer_append(cell, STR(" ago"));
}

/* ---- the call ---- */

#define VALUES_CHARACTERS 160 /* of all values together, as in a row of the page */

static void tasks_table_append_value(struct buffer *out, struct str value)
{
    enum json_type type = json_type(value);
    bool is_array = type == JSON_ARRAY;
    if (type == JSON_STRING)
        json_decode_string(value, out);
    else if (!is_array && type != JSON_OBJECT)
        buffer_append(out, value);
    else if (json_count(value) == 0)
        buffer_append_text(out, is_array ? "[]" : "{}");
    else
        buffer_append_format(out, is_array ? "[%zu items]" : "{%zu members}", json_count(value));
}

/* The sentence of the rule, or else the values as far as a row of the page has them. */
static void add_call(struct buffer *cell, struct str task, int64_t now_ms)
{
    size_t position = 0;
    struct str key, value, arguments = json_member(task, "arguments");
    OWNED_BUFFER(text);
    if (json_type(json_member(task, "summary")) == JSON_STRING) {
        tasks_append_member(cell, task, "summary");
        return;
    }
    while (json_next_member(arguments, &position, &key, &value) &&
           text.length <= (size_t)4 * VALUES_CHARACTERS) {
        if (text.length > 0)
            buffer_append_text(&text, " · ");
        json_decode_string(str_slice(key.bytes - 1, key.length + 2), &text);
        buffer_append_text(&text, ": ");
        tasks_table_append_value(&text, value);
    }
    struct str beginning = visible_beginning(buffer_str(&text), VALUES_CHARACTERS);
    visible_append(cell, beginning);
    if (beginning.length < text.length)
        buffer_append_text(cell, "…");
}

/* A row takes one line of 80 columns; of the tool most is seen. */
static const struct {
    const char *heading, *member; /* member NULL: `add` writes it, as it is shown */
    void (*add)(struct buffer *cell, struct str task, int64_t now_ms);
    unsigned char least; /* of a terminal's columns, when it is cut; 0: it is not */
} columns[] = {
    {"ID", "id", NULL, 0},
    {"STATE", "state", NULL, 0},
    {"LEFT", NULL, tasks_table_add_left, 0},
    {"TOOL", "tool", NULL, 9},
    {"RISK", "risk", NULL, 0},
    {"CALL", NULL, add_call, 6},
    {"ASKED BY", NULL, tasks_table_add_asker, 6},
    {"SOURCE", "source", NULL, 6},
    {"ASKED", NULL, add_age, 0},
};
enum { COLUMNS = sizeof columns / sizeof *columns, ID_COLUMN = 0, STATE_COLUMN = 1 };

static const char *paint(size_t row, size_t column, struct str cell)
{
    if (row == 0)
        return colour_bold();
    return column == STATE_COLUMN ? colour_of_state(cell) : "";
}

void tasks_append_table(struct buffer *out, const struct tasks_table *tasks)
{
    const char *headings[COLUMNS];
    struct table table;
    size_t length = id_length(tasks);
    for (size_t i = 0; i < COLUMNS; i++)
        headings[i] = columns[i].heading;
    table_init(&table, COLUMNS, headings);
    for (size_t i = 0; i < COLUMNS; i++)
        table.least[i] = columns[i].least;
    table.paint = paint;
    for (size_t i = 0; i < tasks->count * COLUMNS; i++) {
        OWNED_BUFFER(cell);
        struct str task = tasks->tasks[i / COLUMNS];
        size_t column = i % COLUMNS;
        if (columns[column].member)
            tasks_read_short(&cell, task, columns[column].member);
        else
            columns[column].add(&cell, task, tasks->now_ms);
        if (column == ID_COLUMN && cell.length > length)
            cell.length = length;
        if (columns[column].member)
            table_add(&table, cell.length ? buffer_str(&cell) : STR("-"));
        else
            table_add_shown(&table, cell.length ? buffer_str(&cell) : STR("-"));
    }
    table_write(&table, out);
    table_finish(&table);
}
