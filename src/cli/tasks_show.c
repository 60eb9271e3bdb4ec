/* Tasks for people: a page of details, a line per change. */
#include <string.h>

#include "tasks_show.h"

#include <stdint.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/marks.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/text.h"
#include "taskgate/notify/shown.h"

#include "colour.h"
#include "tasks_pages.h"
#include "terminal.h"

#define SHORT_BYTES 128

void tasks_append_member(struct buffer *out, struct str task, const char *name)
{
    OWNED_BUFFER(decoded);
    json_decode_string(json_member(task, name), &decoded);
    visible_append(out, buffer_str(&decoded));
}

void tasks_append_asker(struct buffer *out, struct str task)
{
    OWNED_BUFFER(name);
    OWNED_BUFFER(by);
    json_decode_string(json_member(task, "principalBy"), &by);
    if (json_decode_string(json_member(task, "principal"), &name))
        shown_append_asker(out, buffer_str(&name), buffer_str(&by));
}

/* "2026-01-12 22:30:00Z" of an RFC 3339 time: to the second, still in UTC. */
static void append_time(struct buffer *out, struct str task, const char *name)
{
    OWNED_BUFFER(time);
    tasks_append_member(&time, task, name);
    if (time.length >= 20) {
        time.bytes[10] = ' ';
        time.length = 19;
        buffer_append_char(&time, 'Z');
    }
    buffer_append(out, buffer_str(&time));
}

void tasks_read_short(struct buffer *text, struct str task, const char *name)
{
    json_decode_string(json_member(task, name), text);
    if (text->length <= SHORT_BYTES)
        return;
    text->length = SHORT_BYTES;
    while (text->length > 0 && ((unsigned char)text->bytes[text->length] & 0xC0) == 0x80)
        text->length--; /* between two characters */
    buffer_append(text, STR("…"));
}

void tasks_append_span(struct buffer *out, int64_t ms)
{
    int64_t seconds = ms > 0 ? ms / 1000 : 0;
    const struct {
        int64_t count;
        char unit;
    } parts[] = {{seconds / 86400, 'd'},
                 {seconds / 3600 % 24, 'h'},
                 {seconds / 60 % 60, 'm'},
                 {seconds % 60, 's'}};
    size_t first = 0;
    while (first < 3 && parts[first].count == 0)
        first++;
    buffer_append_format(out, "%lld%c", (long long)parts[first].count, parts[first].unit);
    if (first < 3)
        buffer_append_format(out, " %lld%c", (long long)parts[first + 1].count,
                             parts[first + 1].unit);
}

/* The votes that are missing for an approval: "1", or "1 of dba, 2 of security". */
static void tasks_append_missing(struct buffer *out, struct str task)
{
    size_t position = 0;
    struct str key, value, needs = json_member(task, "missing");
    bool has_groups = json_type(json_member(json_member(task, "quorum"), "count")) == JSON_NONE;
    const char *joint = "";
    while (json_next_member(needs, &position, &key, &value)) {
        OWNED_BUFFER(group);
        json_decode_string(str_slice(key.bytes - 1, key.length + 2), &group);
        buffer_append_format(out, "%s%.*s", joint, STR_ARGS(value));
        if (has_groups) {
            buffer_append_text(out, " of ");
            visible_append(out, buffer_str(&group));
        }
        joint = ", ";
    }
}

static void tasks_show_append_json(struct buffer *out, const char *label, struct str task,
                                   const char *member)
{
    buffer_append_format(out, "%-11s", label);
    terminal_append_pretty(out, json_member(task, member), json_member(task, "redactFields"));
    buffer_append_char(out, '\n');
}

/* "alice approved, 2026-01-12 22:30:00Z: the reason", each on a line of its own. */
static void append_votes(struct buffer *out, struct str task)
{
    size_t position = 0;
    struct str vote;
    const char *label = "Votes";
    while (json_next_element(json_member(task, "votes"), &position, &vote)) {
        bool is_approval = json_string_equals(json_member(vote, "verb"), STR("approve"));
        buffer_append_format(out, "%-11s", label);
        tasks_append_member(out, vote, "person");
        buffer_append_text(out, is_approval ? " approved, " : " rejected, ");
        append_time(out, vote, "at");
        if (json_type(json_member(vote, "reason")) == JSON_STRING) {
            buffer_append_text(out, ": ");
            tasks_append_member(out, vote, "reason");
        }
        buffer_append_char(out, '\n');
        label = "";
    }
    if (json_type(json_member(task, "emergency")) == JSON_TRUE)
        buffer_append_format(out, "%-11sdecided by one person alone\n", "Emergency");
    if (json_count(json_member(task, "missing")) > 0) {
        buffer_append_format(out, "%-11s", "Missing");
        tasks_append_missing(out, task);
        buffer_append_char(out, '\n');
    }
}

/* The server's words about the tool, and the paths that the rule marks. */
static void append_hints(struct buffer *out, struct str task)
{
    size_t position = 0;
    struct str path, paths = json_member(task, "highlight");
    if (json_count(json_member(task, "toolAnnotations")) > 0)
        tasks_show_append_json(out, "Hints", task, "toolAnnotations");
    if (json_type(json_member(task, "listed")) == JSON_FALSE)
        buffer_append_format(out, "%-11sthe server does not list this tool for the caller\n",
                             "Unlisted");
    if (json_count(paths) == 0)
        return;
    buffer_append_format(out, "%-11s", "Look at");
    for (const char *joint = ""; json_next_element(paths, &position, &path); joint = ", ") {
        OWNED_BUFFER(text);
        json_decode_string(path, &text);
        buffer_append_text(out, joint);
        visible_append(out, buffer_str(&text));
    }
    buffer_append_char(out, '\n');
}

/* The tool is another one than that of the call. */
static void tasks_show_append_definition(struct buffer *out, struct str task)
{
    struct str now = json_member(task, "toolNow");
    if (json_type(json_member(task, "definitionChanged")) != JSON_TRUE)
        return;
    buffer_append_format(out, "%-11sthe server has changed the tool since: reject this call\n",
                         "Outdated");
    if (json_type(json_member(now, "description")) == JSON_STRING) {
        buffer_append_format(out, "%-11s", "Tool now");
        tasks_append_member(out, now, "description");
        buffer_append_char(out, '\n');
    }
    if (json_count(json_member(now, "annotations")) > 0)
        tasks_show_append_json(out, "Hints now", now, "annotations");
}

static void append_tool(struct buffer *out, struct str task)
{
    append_hints(out, task);
    tasks_show_append_definition(out, task);
}

/* Names and texts that may be read as something else. */
static void append_marks(struct buffer *out, struct str task)
{
    size_t position = 0;
    struct str one, marks = json_member(task, "marks");
    const char *label = "Look out";
    while (json_next_element(marks, &position, &one)) {
        OWNED_BUFFER(what);
        json_decode_string(json_member(one, "what"), &what);
        enum mark mark = mark_of_name(buffer_str(&what));
        buffer_append_format(out, "%-11s", label);
        tasks_append_member(out, one, "where");
        buffer_append_text(out, ": ");
        if (mark < MARK_COUNT)
            buffer_append_text(out, mark_words(mark));
        else
            visible_append(out, buffer_str(&what)); /* of a later version */
        buffer_append_char(out, '\n');
        label = "";
    }
}

/* High risk always, another one where the rule says it. */
static bool shows_risk(struct str task)
{
    return json_string_equals(json_member(task, "risk"), STR("high")) ||
           json_string_equals(json_member(task, "riskBy"), STR("rule"));
}

/* "done: 2026-…, 128 ms"; nothing before an approval. */
static void append_execution(struct buffer *out, struct str task)
{
    struct str execution = json_member(task, "execution");
    OWNED_BUFFER(state);
    if (json_type(execution) != JSON_OBJECT)
        return;
    bool waits =
        json_string_equals(json_member(execution, "state"), STR("waiting_for_credentials"));
    bool has_begun = json_type(json_member(execution, "startedAt")) == JSON_STRING;
    bool has_run = json_type(json_member(execution, "durationMs")) == JSON_NUMBER;
    tasks_append_member(&state, execution, "state");
    buffer_append_format(out, "%-11s", "Execution");
    if (waits)
        buffer_append_text(out, "waits for the caller's credentials, until ");
    else if (has_begun)
        buffer_append_format(out, "%.*s, begun ", STR_ARGS(buffer_str(&state)));
    else
        buffer_append_text(out, "never begun");
    if (waits || has_begun)
        append_time(out, execution, waits ? "until" : "startedAt");
    if (has_run)
        buffer_append_format(out, ", took %.*s ms", STR_ARGS(json_member(execution, "durationMs")));
    if (json_type(json_member(execution, "traceId")) == JSON_STRING) {
        buffer_append_text(out, ", trace ");
        tasks_append_member(out, execution, "traceId");
    }
    buffer_append_char(out, '\n');
}

static void append_counts(struct buffer *out, struct str counts)
{
    static const char *const keys[] = {"approved", "rejected", "expired", "failed"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        buffer_append_format(out, "%s%.*s %s", i > 0 ? ", " : "",
                             STR_ARGS(json_member(counts, keys[i])), keys[i]);
}

/* The outcomes of the other calls of the tool; a list does not have it. */
static void append_history(struct buffer *out, struct str task)
{
    struct str history = json_member(task, "history");
    struct str last = json_member(history, "last"), same = json_member(history, "same");
    if (json_type(history) != JSON_OBJECT)
        return;
    buffer_append_format(out, "%-11s%.*s days: ", "History",
                         STR_ARGS(json_member(history, "days")));
    append_counts(out, history);
    buffer_append_text(out, "; this caller: ");
    append_counts(out, json_member(history, "caller"));
    buffer_append_char(out, '\n');
    if (json_type(same) == JSON_OBJECT) {
        buffer_append_format(out, "%-11sapprovals with these arguments: %.*s, last ", "",
                             STR_ARGS(json_member(same, "approved")));
        append_time(out, same, "at");
        buffer_append_char(out, '\n');
    }
    if (json_type(last) != JSON_OBJECT)
        return;
    buffer_append_format(out, "%-11slast ", "");
    tasks_append_member(out, last, "outcome");
    buffer_append_text(out, " by ");
    tasks_append_member(out, last, "person");
    buffer_append_text(out, ", ");
    append_time(out, last, "at");
    if (json_type(json_member(last, "reason")) == JSON_STRING) {
        buffer_append_text(out, ": ");
        tasks_append_member(out, last, "reason");
    }
    buffer_append_char(out, '\n');
}

static void append_decision(struct buffer *out, struct str task)
{
    append_history(out, task);
    append_votes(out, task);
    append_execution(out, task);
}

static const struct {
    const char *label, *key;
} further_parts[] = {{"Meta", "meta"}, {"Other", "otherParams"}, {"Headers", "headers"}};

static void tasks_show_append_call(struct buffer *out, struct str task)
{
    if (json_type(json_member(task, "reasonOfAgent")) == JSON_STRING) {
        buffer_append_format(out, "%-11s", "Agent says");
        tasks_append_member(out, task, "reasonOfAgent");
        buffer_append_char(out, '\n');
    }
    tasks_show_append_json(out, "Arguments", task, "arguments");
    /* Most calls have none of these. */
    if (json_type(json_member(task, "originalArguments")) == JSON_OBJECT)
        tasks_show_append_json(out, "Original", task, "originalArguments");
    if (json_type(json_member(task, "grant")) == JSON_OBJECT)
        tasks_show_append_json(out, "Grant", task, "grant");
    for (size_t i = 0; i < sizeof further_parts / sizeof *further_parts; i++) {
        if (json_count(json_member(task, further_parts[i].key)) > 0)
            tasks_show_append_json(out, further_parts[i].label, task, further_parts[i].key);
    }
}

void tasks_append_details(struct buffer *out, struct str task)
{
    static const struct {
        const char *label, *member;
        bool is_time;
    } rows[] = {
        {"Task", "id", false},
        {"State", "state", false},
        {"Answer in", "answerOf", false},
        {"Message", "statusMessage", false},
        {"Summary", "summary", false},
        {"Risk", "risk", false},
        {"Tool", "tool", false},
        {"Tool says", "toolDescription", false},
        {"Changed", "toolDifference", false},
        {"Source", "source", false},
        {"Asked by", NULL, false},
        {"Rule", "rule", false},
        {"Rule says", "ruleDescription", false},
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
    OWNED_BUFFER(value);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buffer_clear(&value);
        bool is_risk = rows[i].member && strcmp(rows[i].member, "risk") == 0;
        if (is_risk && !shows_risk(task))
            continue;
        if (!rows[i].member)
            tasks_append_asker(&value, task);
        else if (rows[i].is_time)
            append_time(&value, task, rows[i].member);
        else
            tasks_append_member(&value, task, rows[i].member);
        if (value.length > 0)
            buffer_append_format(out, "%-11s%.*s\n", rows[i].label, STR_ARGS(buffer_str(&value)));
    }
    append_decision(out, task);
    append_tool(out, task);
    append_marks(out, task);
    tasks_show_append_call(out, task);
}

/* Whether the present state is the decision's. An approved call goes on to other states, and
 * another person may cancel it. */
static bool tasks_show_is_decision(struct str task)
{
    struct str state = json_member(task, "state");
    return json_string_equals(state, STR("approved")) ||
           json_type(json_member(task, "executeBy")) != JSON_STRING;
}

static void append_state(struct buffer *out, struct str task)
{
    OWNED_BUFFER(state);
    tasks_append_member(&state, task, "state");
    const char *colour = colour_of_state(buffer_str(&state));
    buffer_append_format(out, "%s%.*s%s", colour, STR_ARGS(buffer_str(&state)),
                         *colour ? colour_end() : "");
}

void tasks_append_change(struct buffer *out, struct str task)
{
    OWNED_BUFFER(by);
    OWNED_BUFFER(tool);
    tasks_read_short(&tool, task, "tool");
    tasks_append_member(out, task, "id");
    buffer_append(out, STR("  "));
    append_state(out, task);
    buffer_append(out, STR("  "));
    visible_append(out, buffer_str(&tool));
    if (json_string_equals(json_member(task, "state"), STR("pending")) &&
        json_count(json_member(task, "votes")) > 0) {
        buffer_append_text(out, "  missing: ");
        tasks_append_missing(out, task);
    }
    tasks_append_member(&by, task, "decidedBy");
    if (by.length > 0)
        buffer_append_format(out, "  %sby %.*s", tasks_show_is_decision(task) ? "" : "approved ",
                             STR_ARGS(buffer_str(&by)));
    buffer_append_char(out, '\n');
}

/* A failure says why in statusMessage, a refusal in the operator's reason. */
static void append_cause(struct buffer *out, struct str task)
{
    OWNED_BUFFER(cause);
    tasks_append_member(&cause, task, "reason");
    if (cause.length == 0 || json_string_equals(json_member(task, "state"), STR("failed"))) {
        buffer_clear(&cause);
        tasks_read_short(&cause, task, "statusMessage");
    }
    if (cause.length > 0) {
        buffer_append(out, STR(": "));
        visible_append(out, buffer_str(&cause));
    }
}

void tasks_append_event(struct buffer *out, struct str task, int64_t now_ms)
{
    char time[CLOCK_TEXT_BYTES];
    OWNED_BUFFER(line);
    clock_format(now_ms, time);
    buffer_append_format(out, "%s%.19sZ%s  ", colour_dim(), time, colour_end());
    tasks_append_change(&line, task);
    if (line.length > 0)
        line.length--; /* its end */
    buffer_append(out, buffer_str(&line));
    if (json_type(json_member(task, "principal")) == JSON_STRING) {
        buffer_append(out, STR("  for "));
        tasks_append_asker(out, task);
    }
    append_cause(out, task);
    buffer_append_char(out, '\n');
}

/* ---- a table ---- */

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
