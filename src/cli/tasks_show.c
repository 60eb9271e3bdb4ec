/* Tasks for people: a table, a page of details, a line per change. */
#include "tasks.h"

#include "taskgate/json/text.h"

#include "terminal.h"

#define CELL_BYTES 128

void tasks_append_member(struct buffer *out, struct str task, const char *name)
{
    struct buffer decoded;
    buffer_init(&decoded);
    json_decode_string(json_member(task, name), &decoded);
    terminal_append_text(out, buffer_str(&decoded));
    buffer_finish(&decoded);
}

/* "2026-01-12 22:30:00Z" of an RFC 3339 time: to the second, still in UTC. */
static void append_time(struct buffer *out, struct str task, const char *name)
{
    struct buffer time;
    buffer_init(&time);
    tasks_append_member(&time, task, name);
    if (time.length >= 20) {
        time.bytes[10] = ' ';
        time.length = 19;
        buffer_append_char(&time, 'Z');
    }
    buffer_append(out, buffer_str(&time));
    buffer_finish(&time);
}

/* A name may be as long as a body, and a column is as wide as its widest cell. So the table cuts
 * it; `show` has it whole. */
static void read_short(struct buffer *text, struct str task, const char *name)
{
    json_decode_string(json_member(task, name), text);
    if (text->length <= CELL_BYTES)
        return;
    text->length = CELL_BYTES;
    while (text->length > 0 && ((unsigned char)text->bytes[text->length] & 0xC0) == 0x80)
        text->length--; /* between two characters */
    buffer_append(text, STR("…"));
}

static void add_cell(struct table *table, struct str task, const char *name, bool is_time)
{
    struct buffer text;
    buffer_init(&text);
    if (is_time)
        append_time(&text, task, name);
    else
        read_short(&text, task, name);
    table_add(table, text.length ? buffer_str(&text) : STR("-"));
    buffer_finish(&text);
}

void tasks_append_table(struct buffer *out, struct str list)
{
    static const struct {
        const char *heading, *member;
        bool is_time;
    } columns[] = {
        {"ID", "id", false},
        {"STATE", "state", false},
        {"TOOL", "tool", false},
        {"SOURCE", "source", false},
        {"ASKED BY", "principal", false},
        {"CREATED", "createdAt", true},
        {"DECIDE BY", "decideBy", true},
    };
    enum { COLUMNS = sizeof columns / sizeof *columns };
    const char *headings[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++)
        headings[i] = columns[i].heading;
    struct table table;
    struct str task, tasks = json_member(list, "tasks");
    size_t position = 0;
    if (json_count(tasks) == 0) {
        buffer_append(out, STR("No tasks.\n"));
        return;
    }
    table_init(&table, COLUMNS, headings);
    while (json_next_element(tasks, &position, &task)) {
        for (size_t i = 0; i < COLUMNS; i++)
            add_cell(&table, task, columns[i].member, columns[i].is_time);
    }
    table_write(&table, out);
    table_finish(&table);
    if (json_type(json_member(list, "nextCursor")) == JSON_STRING) {
        buffer_append(out, STR("\nThere are older ones: --cursor "));
        tasks_append_member(out, list, "nextCursor");
        buffer_append_char(out, '\n');
    }
}

static void append_json(struct buffer *out, const char *label, struct str task, const char *member)
{
    buffer_append_format(out, "%-11s", label);
    terminal_append_pretty(out, json_member(task, member), json_member(task, "redactFields"));
    buffer_append_char(out, '\n');
}

void tasks_append_details(struct buffer *out, struct str task)
{
    static const struct {
        const char *label, *member;
        bool is_time;
    } rows[] = {
        {"Task", "id", false},
        {"State", "state", false},
        {"Message", "statusMessage", false},
        {"Tool", "tool", false},
        {"Source", "source", false},
        {"Asked by", "principal", false},
        {"Workflow", "workflow", false},
        {"Created", "createdAt", true},
        {"Decide by", "decideBy", true},
        {"Execute by", "executeBy", true},
        {"Decided", "decidedAt", true},
        {"Decided by", "decidedBy", false},
        {"Reason", "reason", false},
        {"Digest", "argumentsDigest", false},
        {"Request", "requestDigest", false},
    };
    struct buffer value;
    buffer_init(&value);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buffer_clear(&value);
        if (rows[i].is_time)
            append_time(&value, task, rows[i].member);
        else
            tasks_append_member(&value, task, rows[i].member);
        if (value.length > 0)
            buffer_append_format(out, "%-11s%.*s\n", rows[i].label, STR_ARGS(buffer_str(&value)));
    }
    buffer_finish(&value);
    append_json(out, "Arguments", task, "arguments");
    /* Most calls have neither. */
    if (json_count(json_member(task, "meta")) > 0)
        append_json(out, "Meta", task, "meta");
    if (json_count(json_member(task, "otherParams")) > 0)
        append_json(out, "Other", task, "otherParams");
}

/* Whether the present state is the decision's. An approved call goes on to other states, and
 * another person may cancel it. */
static bool is_decision(struct str task)
{
    struct str state = json_member(task, "state");
    return json_string_equals(state, STR("approved")) ||
           json_type(json_member(task, "executeBy")) != JSON_STRING;
}

void tasks_append_change(struct buffer *out, struct str task)
{
    struct buffer by, tool;
    buffer_init(&by);
    buffer_init(&tool);
    read_short(&tool, task, "tool");
    tasks_append_member(out, task, "id");
    buffer_append(out, STR("  "));
    tasks_append_member(out, task, "state");
    buffer_append(out, STR("  "));
    terminal_append_text(out, buffer_str(&tool));
    buffer_finish(&tool);
    tasks_append_member(&by, task, "decidedBy");
    if (by.length > 0)
        buffer_append_format(out, "  %sby %.*s", is_decision(task) ? "" : "approved ",
                             STR_ARGS(buffer_str(&by)));
    buffer_finish(&by);
    buffer_append_char(out, '\n');
}
