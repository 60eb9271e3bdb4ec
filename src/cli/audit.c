/* taskgate audit: list, show, export, verify, report. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"
#include "taskgate/store/trail.h"

#include "admin_client.h"
#include "audit_source.h"
#include "consultation.h"
#include "options.h"
#include "store_place.h"
#include "subcommands.h"
#include "terminal.h"

/* ---- rows for other programs ---- */

/* Rows of the audit trail as lines for other programs. */

enum audit_format { AUDIT_FORMAT_JSONL, AUDIT_FORMAT_CSV, AUDIT_FORMAT_CEF };

static const char *const columns[] = {
    "sequence",     "at",         "taskId", "event",           "from",          "to",
    "actorKind",    "actor",      "person", "reason",          "source",        "tool",
    "principal",    "workflow",   "rule",   "argumentsDigest", "requestDigest", "definitionDigest",
    "policyDigest", "keptDigest", "votes",  "decision",        "via",           "hash",
};
#define COLUMN_COUNT (sizeof columns / sizeof *columns)

/* "jsonl", "csv", "cef". */
static bool audit_format_parse(const char *text, enum audit_format *format)
{
    static const char *const names[] = {
        [AUDIT_FORMAT_JSONL] = "jsonl", [AUDIT_FORMAT_CSV] = "csv", [AUDIT_FORMAT_CEF] = "cef"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            *format = (enum audit_format)i;
            return true;
        }
    }
    return false;
}

/* A text decoded, any other value as JSON, and no character that a terminal obeys. Line breaks are
 * left to each format. */
static void audit_format_append_value(struct buffer *out, struct str value)
{
    OWNED_BUFFER(text);
    if (json_decode_string(value, &text))
        visible_append_lines(out, buffer_str(&text));
    else
        visible_append_json(out, value);
}

/* ---- CSV ---- */

static bool is_formula(struct str cell)
{
    return cell.length > 0 && strchr("=+-@\t\r", cell.bytes[0]) != NULL && cell.bytes[0] != '\0';
}

static void audit_format_append_cell(struct buffer *out, struct str cell)
{
    buffer_append_char(out, '"');
    if (is_formula(cell))
        buffer_append_char(out, '\'');
    for (size_t i = 0; i < cell.length; i++) {
        if (cell.bytes[i] == '"')
            buffer_append_char(out, '"');
        buffer_append_char(out, cell.bytes[i]);
    }
    buffer_append_char(out, '"');
}

static void append_csv(struct buffer *out, const struct str values[COLUMN_COUNT])
{
    OWNED_BUFFER(cell);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        buffer_clear(&cell);
        audit_format_append_value(&cell, values[i]);
        buffer_append_text(out, i > 0 ? "," : "");
        audit_format_append_cell(out, buffer_str(&cell));
    }
    buffer_append_text(out, "\r\n");
}

/* ---- CEF ---- */

/* The severity for a SIEM: a decision is more severe than what the gateway does by itself. */
static int severity_of(struct str event)
{
    static const struct {
        const char *event;
        int severity;
    } table[] = {
        {"approve", 5},
        {"reject", 6},
        {"fail", 6},
        {"expire", 4},
        {"notification_given_up", 6},
        {"late_outcome", 8},
        {"sign_in_refused", 6},
        {"operator_refused", 6},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (json_string_equals(event, str_from(table[i].event)))
            return table[i].severity;
    }
    return 3;
}

static void audit_format_append_escaped(struct buffer *out, struct str text, const char *special)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        if (c == '\n' || c == '\r') {
            buffer_append_text(out, c == '\n' ? "\\n" : "\\r");
            continue;
        }
        if (c != '\0' && strchr(special, c))
            buffer_append_char(out, '\\');
        buffer_append_char(out, c);
    }
}

static void append_cef(struct buffer *out, struct str row)
{
    static const struct {
        const char *name, *key, *label; /* label: of a custom string */
    } extensions[] = {
        {"rt", "at", NULL},           {"externalId", "sequence", NULL},
        {"suser", "actor", NULL},     {"reason", "reason", NULL},
        {"outcome", "to", NULL},      {"cs1", "taskId", "task"},
        {"cs2", "tool", "tool"},      {"cs3", "workflow", "workflow"},
        {"cs4", "rule", "rule"},      {"cs5", "argumentsDigest", "argumentsDigest"},
        {"cs6", "hash", "hash"},      {"sproc", "source", NULL},
        {"duser", "principal", NULL},
    };
    struct str event = json_member(row, "event");
    OWNED_BUFFER(value);
    audit_format_append_value(&value, event);
    buffer_append_text(out, "CEF:0|taskgate|taskgate|" TASKGATE_VERSION "|");
    audit_format_append_escaped(out, buffer_str(&value), "\\|");
    bool is_of_task = json_member(row, "taskId").length > 0;
    buffer_append_text(out, is_of_task ? "|task " : "|operator ");
    audit_format_append_escaped(out, buffer_str(&value), "\\|");
    buffer_append_format(out, "|%d|", severity_of(event));
    const char *blank = "";
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        struct str member = json_member(row, extensions[i].key);
        if (member.length == 0)
            continue;
        buffer_clear(&value);
        audit_format_append_value(&value, member);
        buffer_append_format(out, "%s%s=", blank, extensions[i].name);
        audit_format_append_escaped(out, buffer_str(&value), "\\=");
        if (extensions[i].label)
            buffer_append_format(out, " %sLabel=%s", extensions[i].name, extensions[i].label);
        blank = " ";
    }
    buffer_append_char(out, '\n');
}

/* ---- rows ---- */

/* The line above the rows: the names of the columns in CSV. */
static void audit_format_head(enum audit_format format, struct buffer *out)
{
    if (format != AUDIT_FORMAT_CSV)
        return;
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        buffer_append_format(out, "%s%s", i > 0 ? "," : "", columns[i]);
    buffer_append_text(out, "\r\n");
}

/* One row with its line end. In CSV a cell that a spreadsheet would take for a formula begins with
 * a quote. */
static void audit_format_row(enum audit_format format, struct str row, struct buffer *out)
{
    struct str values[COLUMN_COUNT];
    switch (format) {
    case AUDIT_FORMAT_JSONL:
        visible_append_json(out, row);
        buffer_append_char(out, '\n');
        break;
    case AUDIT_FORMAT_CSV:
        json_members(row, columns, COLUMN_COUNT, values);
        append_csv(out, values);
        break;
    case AUDIT_FORMAT_CEF:
        append_cef(out, row);
        break;
    }
}

/* ---- audit verify ---- */

/* taskgate audit verify. The chain of the audit trail, checked against itself and against
 * anchors kept elsewhere. */

struct anchors {
    struct store_anchor *items; /* by number, once they are read */
    size_t count, next;
};

struct check {
    struct anchors anchors;
    struct signature_key *key; /* or NULL: signatures are not looked at */
    struct store_chain place;
    int64_t rows;
    bool has_begun;
    struct error finding;
    struct buffer text;
};

/* ---- anchors ---- */

static int compare_anchors(const void *left, const void *right)
{
    const struct store_anchor *a = left, *b = right;
    return (a->place.sequence > b->place.sequence) - (a->place.sequence < b->place.sequence);
}

static void add_anchor(struct anchors *anchors, const struct store_anchor *anchor)
{
    anchors->items = memory_grow_array(anchors->items, anchors->count + 1, sizeof *anchor);
    anchors->items[anchors->count++] = *anchor;
}

/* A log may be given as it is: lines that are no anchors are passed over. */
static bool read_anchors(struct anchors *anchors, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length = 0;
    if (!file) {
        options_complain("%s cannot be read: %s", path, strerror(errno));
        return false;
    }
    while ((length = getline(&line, &capacity, file)) >= 0) {
        struct store_anchor anchor;
        struct str object = str_trim(str_slice(line, (size_t)length));
        if (json_type(object) == JSON_OBJECT && json_check(object, NULL) &&
            audit_read_anchor(object, &anchor))
            add_anchor(anchors, &anchor);
    }
    free(line);
    fclose(file);
    if (anchors->count == 0) {
        options_complain("%s has no anchor", path);
        return false;
    }
    qsort(anchors->items, anchors->count, sizeof *anchors->items, compare_anchors);
    return true;
}

static struct signature_key *audit_verify_read_key(const char *path)
{
    char text[4096];
    struct error error = {""};
    FILE *file = fopen(path, "re");
    if (!file) {
        options_complain("%s cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    struct signature_key *key = signature_key_read(str_slice(text, length), &error);
    explicit_bzero(text, sizeof text);
    if (!key)
        options_complain("%s %s", path, error.message);
    return key;
}

/* ---- places ---- */

static bool check_signature(const struct check *check, const struct store_anchor *anchor,
                            struct error *finding)
{
    return !check->key || store_anchor_verify(anchor, check->key) ||
           error_set(finding, "the anchor of row %" PRId64 " is not signed by the key",
                     anchor->place.sequence);
}

static bool audit_verify_check_place(void *context, const struct store_chain *place,
                                     struct error *finding)
{
    struct check *check = context;
    struct anchors *anchors = &check->anchors;
    while (anchors->next < anchors->count &&
           anchors->items[anchors->next].place.sequence <= place->sequence) {
        const struct store_anchor *anchor = &anchors->items[anchors->next++];
        /* Those of rows that `keep` has removed stand before the start. */
        if (anchor->place.sequence == place->sequence &&
            strcmp(anchor->place.hash, place->hash) != 0)
            return error_set(finding, "row %" PRId64 " is not the one that the anchor names",
                             place->sequence);
        if (!check_signature(check, anchor, finding))
            return false;
    }
    return true;
}

static bool check_all_reached(const struct check *check, struct error *finding)
{
    const struct anchors *anchors = &check->anchors;
    return anchors->next == anchors->count ||
           error_set(finding, "row %" PRId64 " is missing, which an anchor names",
                     anchors->items[anchors->next].place.sequence);
}

/* ---- rows that are JSON ---- */

/* An anchor of the row before makes a part of the trail one that can be checked. */
static bool audit_verify_begin(struct check *check, int64_t sequence)
{
    check->has_begun = true;
    for (size_t i = 0; i < check->anchors.count && sequence > 1; i++) {
        if (check->anchors.items[i].place.sequence == sequence - 1)
            check->place = check->anchors.items[i].place;
    }
    if (check->place.sequence == sequence - 1)
        return audit_verify_check_place(check, &check->place, &check->finding);
    return error_set(&check->finding,
                     "row %" PRId64 " cannot be checked: the rows before it are missing; give an "
                     "anchor of row %" PRId64 " with --anchor",
                     sequence, sequence - 1);
}

static bool audit_verify_visit(struct check *check, struct str row)
{
    uint64_t sequence;
    OWNED_BUFFER(rest);
    OWNED_BUFFER(hash);
    if (!str_to_u64(json_member(row, "sequence"), &sequence) || sequence == 0 ||
        sequence > INT64_MAX)
        return error_set(&check->finding, "the row behind row %" PRId64 " has no number",
                         check->place.sequence);
    if (!check->has_begun && !audit_verify_begin(check, (int64_t)sequence))
        return false;
    buffer_clear(&check->text);
    json_write_without_member(&rest, row, "hash");
    canonical_write(buffer_str(&rest), &check->text);
    json_decode_string(json_member(row, "hash"), &hash);
    bool good = store_chain_next(&check->place, (int64_t)sequence, buffer_str(&check->text),
                                 buffer_str(&hash), &check->finding) &&
                audit_verify_check_place(check, &check->place, &check->finding);
    check->rows += good;
    return good;
}

/* ---- the whole ---- */

/* The walk over rows of an endpoint, or of a file. */
struct rows {
    struct audit_source *source;
    struct check *check;
};

/* An endpoint says with its first page that older rows were removed, so the walk begins there. */
static bool audit_verify_visit_row(void *context, struct str row)
{
    const struct rows *rows = context;
    if (!rows->check->has_begun && rows->source->has_start)
        rows->check->place = rows->source->start.place;
    return audit_verify_visit(rows->check, row);
}

static int verify_rows(struct audit_source *source, struct check *check)
{
    struct rows rows = {source, check};
    int code = audit_source_read(source, INT64_MIN, audit_verify_visit_row, &rows);
    if (code == CLI_DONE && !*check->finding.message && source->has_start)
        check_signature(check, &source->start, &check->finding);
    return code;
}

static int verify_store(struct audit_source *source, struct check *check)
{
    struct store_trail_report report = {.rows = 0};
    struct error error = {""};
    const struct store_site site = store_place_site(source->path);
    if (!store_trail_verify(&site, audit_verify_check_place, check, &report, &error)) {
        options_complain("%s", error.message);
        return CLI_USAGE;
    }
    check->rows = report.rows;
    check->place = report.end;
    check->finding = report.finding;
    if (report.is_good && report.has_start)
        check_signature(check, &report.start, &check->finding);
    return CLI_DONE;
}

/* Anchors prove nothing unsigned: one who can write a trail can write those that fit it. */
static int audit_verify_say(const struct check *check, bool may_be_unsigned)
{
    if (*check->finding.message) {
        fprintf(stderr, "taskgate: the audit trail is not whole: %s\n", check->finding.message);
        return CLI_FAILURE;
    }
    printf("%" PRId64 " rows, up to row %" PRId64 ", hash %s\n", check->rows, check->place.sequence,
           check->place.hash);
    if (check->anchors.count > 0)
        printf("%zu anchors fit%s\n", check->anchors.count,
               check->key ? ", their signatures too" : "; their signatures were not checked");
    if (check->anchors.count > 0 && !check->key && !may_be_unsigned) {
        options_complain("the signatures of the anchors cannot be checked: name their key with "
                         "--key, or say --unsigned");
        return CLI_FAILURE;
    }
    return fflush(stdout) == 0 ? CLI_DONE : CLI_FAILURE;
}

/* Walks the chain of all rows. `anchors` names a file of anchor lines, `key` one with the public
 * key of their signatures; each may be NULL. Without `key` it is that of the source, if it has one.
 * Anchors without a key are a failure unless they may be unsigned. Returns an exit code:
 * CLI_FAILURE with the first bad row. */
static int audit_verify(struct audit_source *source, const char *anchors, const char *key,
                        bool may_be_unsigned)
{
    struct check check = {.rows = 0};
    int code = CLI_USAGE;
    store_chain_init(&check.place);
    buffer_init(&check.text);
    if (anchors && !read_anchors(&check.anchors, anchors))
        goto done;
    check.key = key           ? audit_verify_read_key(key)
                : source->key ? signature_key_ref(source->key)
                              : NULL;
    if (key && !check.key)
        goto done;
    code = source->kind == AUDIT_SOURCE_STORE ? verify_store(source, &check)
                                              : verify_rows(source, &check);
    if (code == CLI_DONE && !*check.finding.message)
        check_all_reached(&check, &check.finding);
    if (code == CLI_DONE)
        code = audit_verify_say(&check, may_be_unsigned);

done:
    signature_key_unref(check.key);
    free(check.anchors.items);
    buffer_finish(&check.text);
    return code;
}

/* ---- audit report ---- */

/* taskgate audit report: how people decide, tool by tool. Counts of calls and decisions, and
 * what they suggest. */

/* A human reads a call in more than this. */
#define QUICK_MS 5000
/* From so many decisions on they say something. */
#define ENOUGH 20

struct tool {
    char *name, *source;
    int64_t calls, approved, rejected, expired, cancelled, quick;
    int64_t *waits_ms; /* from creation to decision */
    size_t wait_count;
};

/* When each undecided call was made. */
struct open_call {
    int64_t at_ms;
};

struct entry {
    struct tool *tool;
};

struct report {
    struct map *tools; /* by source and name; owned by `list` */
    struct map *open;  /* by task id */
    struct entry *list;
    size_t count;
};

/* ---- reading ---- */

static char *audit_report_text_of(struct str row, const char *key)
{
    char *text = json_string_text(json_member(row, key), NULL);
    return text ? text : memory_copy_text("");
}

static struct tool *tool_of(struct report *report, const char *source, const char *name)
{
    OWNED char *key = memory_format("%s\n%s", source, name);
    struct tool *tool = map_get(report->tools, str_from(key));
    if (!tool) {
        tool = memory_alloc(sizeof *tool);
        tool->name = memory_copy_text(name);
        tool->source = memory_copy_text(source);
        map_put(report->tools, str_from(key), tool);
        report->list = memory_grow_array(report->list, report->count + 1, sizeof(struct entry));
        report->list[report->count++].tool = tool;
    }
    return tool;
}

static void note_decision(struct tool *tool, const struct open_call *call, int64_t at_ms)
{
    if (!call)
        return; /* it was made before the time of the report */
    int64_t wait_ms = at_ms - call->at_ms;
    tool->quick += wait_ms < QUICK_MS;
    tool->waits_ms =
        memory_grow_array(tool->waits_ms, tool->wait_count + 1, sizeof *tool->waits_ms);
    tool->waits_ms[tool->wait_count++] = wait_ms;
}

static bool audit_report_visit(void *context, struct str row)
{
    struct report *report = context;
    int64_t at_ms = 0;
    char *time = audit_report_text_of(row, "at"), *event = audit_report_text_of(row, "event"),
         *id = audit_report_text_of(row, "taskId");
    char *name = audit_report_text_of(row, "tool"), *source = audit_report_text_of(row, "source"),
         *kind = audit_report_text_of(row, "actorKind");
    struct open_call *call = map_get(report->open, str_from(id));
    bool is_decision = strcmp(kind, "operator") == 0;
    consultation_read_time(time, &at_ms);
    if (*name) {
        struct tool *tool = tool_of(report, source, name);
        bool approved = is_decision && strcmp(event, "approve") == 0;
        bool rejected = is_decision && strcmp(event, "reject") == 0;
        tool->approved += approved;
        tool->rejected += rejected;
        tool->expired += call && strcmp(event, "expire") == 0;
        tool->cancelled += strcmp(event, "cancel") == 0;
        if (approved || rejected)
            note_decision(tool, call, at_ms);
        if (strcmp(event, "create") == 0) {
            tool->calls++;
            call = memory_alloc(sizeof *call);
            call->at_ms = at_ms;
            map_put(report->open, str_from(id), call);
        } else if (call) {
            map_remove(report->open, str_from(id));
            free(call);
        }
    }
    free(time), free(event), free(id), free(name), free(source), free(kind);
    return true;
}

/* ---- what it comes to ---- */

static int compare_numbers(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static int64_t median_ms(struct tool *tool)
{
    if (tool->wait_count == 0)
        return -1;
    qsort(tool->waits_ms, tool->wait_count, sizeof *tool->waits_ms, compare_numbers);
    return tool->waits_ms[tool->wait_count / 2];
}

static const char *suggestion(const struct tool *tool)
{
    int64_t decided = tool->approved + tool->rejected;
    if (decided >= ENOUGH && tool->rejected == 0 && 2 * tool->quick > decided)
        return "approved every time, mostly at a glance: forward it, or narrow the rule";
    if (decided >= ENOUGH && tool->approved == 0)
        return "never approved: deny it";
    if (decided >= ENOUGH && tool->rejected == 0)
        return "approved every time: a policy on its arguments may decide most of them";
    if (tool->expired >= ENOUGH && 2 * tool->expired > tool->calls)
        return "most calls expire: more approvers, or a longer timeout";
    return "";
}

static int compare_tools(const void *left, const void *right)
{
    const struct tool *a = ((const struct entry *)left)->tool;
    const struct tool *b = ((const struct entry *)right)->tool;
    if (a->calls != b->calls)
        return a->calls > b->calls ? -1 : 1;
    int order = strcmp(a->source, b->source);
    return order ? order : strcmp(a->name, b->name);
}

/* ---- writing ---- */

static void write_json(struct buffer *out, const struct report *report)
{
    buffer_append_text(out, "{\"tools\":[");
    for (size_t i = 0; i < report->count; i++) {
        struct tool *tool = report->list[i].tool;
        int64_t decided = tool->approved + tool->rejected, median = median_ms(tool);
        buffer_append_text(out, i > 0 ? ",{" : "{");
        json_add_text(out, "tool", tool->name);
        json_add_text(out, "source", tool->source);
        buffer_append_format(out,
                             ",\"calls\":%" PRId64 ",\"decided\":%" PRId64 ",\"approved\":%" PRId64
                             ",\"rejected\":%" PRId64 ",\"expired\":%" PRId64
                             ",\"cancelled\":%" PRId64 ",\"underFiveSeconds\":%" PRId64,
                             tool->calls, decided, tool->approved, tool->rejected, tool->expired,
                             tool->cancelled, tool->quick);
        if (median >= 0)
            buffer_append_format(out, ",\"medianMs\":%" PRId64, median);
        else
            buffer_append_text(out, ",\"medianMs\":null");
        if (decided > 0)
            buffer_append_format(out, ",\"approvedShare\":%.3f",
                                 (double)tool->approved / (double)decided);
        else
            buffer_append_text(out, ",\"approvedShare\":null");
        json_add_text_or_null(out, "suggestion", suggestion(tool));
        buffer_append_char(out, '}');
    }
    buffer_append_text(out, "]}\n");
}

static void audit_report_add_number(struct table *table, int64_t number)
{
    OWNED char *text = memory_format("%" PRId64, number);
    table_add(table, str_from(text));
}

static void audit_report_add_tool(struct table *table, struct tool *tool)
{
    int64_t decided = tool->approved + tool->rejected, median = median_ms(tool);
    OWNED char *share =
        decided > 0 ? memory_format("%.0f %%", 100.0 * (double)tool->approved / (double)decided)
                    : memory_copy_text("-");
    OWNED char *wait =
        median >= 0 ? memory_format("%.1f s", (double)median / 1000) : memory_copy_text("-");
    table_add(table, str_from(tool->name));
    table_add(table, str_from(tool->source));
    audit_report_add_number(table, tool->calls);
    audit_report_add_number(table, decided);
    table_add(table, str_from(share));
    table_add(table, str_from(wait));
    audit_report_add_number(table, tool->quick);
    audit_report_add_number(table, tool->expired);
    table_add(table, str_from(suggestion(tool)));
}

static void audit_report_write_text(struct buffer *out, const struct report *report)
{
    static const char *const headings[] = {"TOOL",      "SOURCE",   "CALLS",
                                           "DECIDED",   "APPROVED", "MEDIAN",
                                           "UNDER 5 S", "EXPIRED",  "SUGGESTION"};
    struct table table;
    table_init(&table, sizeof headings / sizeof *headings, headings);
    for (size_t i = 0; i < report->count; i++)
        audit_report_add_tool(&table, report->list[i].tool);
    table_write(&table, out);
    table_finish(&table);
}

/* ---- the whole ---- */

static void audit_report_finish(struct report *report)
{
    map_destroy(report->tools, NULL);
    map_destroy(report->open, free);
    for (size_t i = 0; i < report->count; i++) {
        struct tool *tool = report->list[i].tool;
        free(tool->name);
        free(tool->source);
        free(tool->waits_ms);
        free(tool);
    }
    free(report->list);
}

/* Returns an exit code. */
static int audit_report(struct audit_source *source, int64_t since_ms, bool json)
{
    struct report report = {map_create(), map_create(), NULL, 0};
    int code = audit_source_read(source, since_ms, audit_report_visit, &report);
    if (code == CLI_DONE) {
        OWNED_BUFFER(text);
        if (report.count > 0)
            qsort(report.list, report.count, sizeof(struct entry), compare_tools);
        if (json)
            write_json(&text, &report);
        else
            audit_report_write_text(&text, &report);
        code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
    }
    audit_report_finish(&report);
    return code;
}

/* ---- the command ---- */

#define LIST_ROWS 50

/* The options of all subcommands, once read. */
struct arguments {
    struct audit_place place;
    const char *operand;
    const char *since, *format, *anchor, *key, *limit;
    int64_t since_ms;
    bool json, is_unsigned;
};

struct subcommand {
    struct subcommand_text text;
    int (*run)(struct audit_source *source, const struct arguments *arguments);
    enum { WITH_LIMIT, WITH_ID, WITH_FORMAT, WITH_ANCHOR, WITH_JSON } with;
};

/* ---- list ---- */

/* The last rows: those that a reader wants to see. */
struct last_rows {
    char **rows; /* a ring */
    size_t room, seen;
};

static bool keep_row(void *context, struct str row)
{
    struct last_rows *last = context;
    size_t at = last->seen++ % last->room;
    free(last->rows[at]);
    last->rows[at] = memory_copy_str(row);
    return true;
}

static void add_cell(struct table *table, struct str row, const char *key)
{
    OWNED char *text = json_string_text(json_member(row, key), NULL);
    table_add(table, text ? str_from(text) : json_member(row, key));
}

static void audit_write_list(struct buffer *out, const struct last_rows *last, bool json)
{
    static const char *const headings[] = {"ROW", "TIME", "EVENT", "TASK", "TOOL", "BY", "REASON"};
    static const char *const keys[] = {"sequence", "at",    "event", "taskId",
                                       "tool",     "actor", "reason"};
    size_t count = last->seen < last->room ? last->seen : last->room;
    struct table table;
    table_init(&table, sizeof headings / sizeof *headings, headings);
    for (size_t i = 0; i < count; i++) {
        struct str row = str_from(last->rows[(last->seen - count + i) % last->room]);
        if (json) {
            visible_append_json(out, row);
            buffer_append_char(out, '\n');
        }
        for (size_t k = 0; !json && k < sizeof keys / sizeof *keys; k++)
            add_cell(&table, row, keys[k]);
    }
    if (!json)
        table_write(&table, out);
    table_finish(&table);
}

static int audit_run_list(struct audit_source *source, const struct arguments *arguments)
{
    uint64_t limit = LIST_ROWS;
    if (arguments->limit &&
        (!str_to_u64(str_from(arguments->limit), &limit) || limit < 1 || limit > 100000))
        return options_complain("--limit %s is not a number from 1 to 100000", arguments->limit);
    struct last_rows last = {memory_alloc_array((size_t)limit, sizeof *last.rows), (size_t)limit,
                             0};
    int code = audit_source_read(source, arguments->since_ms, keep_row, &last);
    if (code == CLI_DONE) {
        OWNED_BUFFER(text);
        audit_write_list(&text, &last, arguments->json);
        code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
    }
    for (size_t i = 0; i < last.room; i++)
        free(last.rows[i]);
    free(last.rows);
    return code;
}

/* ---- show ---- */

struct wanted {
    struct audit_source *source;
    const char *operand; /* a task's id, or a row's number */
    struct buffer text;
    size_t found;
};

static bool audit_is_wanted(const struct wanted *wanted, struct str row)
{
    struct str sequence = json_member(row, "sequence");
    return str_equal(sequence, str_from(wanted->operand)) ||
           json_string_equals(json_member(row, "taskId"), str_from(wanted->operand));
}

/* NULL: there are none any more, or the rows are in a file. The caller frees. */
static char *find_arguments(const struct audit_source *source, struct str row)
{
    struct str number = json_member(row, "sequence");
    uint64_t sequence;
    char *arguments = NULL;
    struct error error = {""};
    if (json_member(row, "keptDigest").length == 0 || !str_to_u64(number, &sequence))
        return NULL;
    if (source->kind == AUDIT_SOURCE_STORE) {
        const struct store_site site = store_place_site(source->path);
        store_trail_arguments(&site, (int64_t)sequence, &arguments, &error);
    } else if (json_type(source->kept) == JSON_OBJECT) {
        OWNED char *key = memory_copy_str(number);
        struct str kept = json_member(source->kept, key);
        arguments = kept.length > 0 ? memory_copy_str(kept) : NULL;
    }
    return arguments;
}

static void audit_add_arguments(struct wanted *wanted, struct str row)
{
    OWNED char *arguments = find_arguments(wanted->source, row);
    if (arguments && json_check(str_from(arguments), NULL)) {
        buffer_append_text(&wanted->text, "kept arguments: ");
        terminal_append_pretty(&wanted->text, str_from(arguments), STR_EMPTY);
        buffer_append_char(&wanted->text, '\n');
    }
}

static bool show_row(void *context, struct str row)
{
    struct wanted *wanted = context;
    if (!audit_is_wanted(wanted, row))
        return true;
    wanted->found++;
    terminal_append_pretty(&wanted->text, row, STR_EMPTY);
    buffer_append_char(&wanted->text, '\n');
    audit_add_arguments(wanted, row);
    return true;
}

static int audit_run_show(struct audit_source *source, const struct arguments *arguments)
{
    struct wanted wanted = {.source = source, .operand = arguments->operand};
    buffer_init(&wanted.text);
    source->with_arguments = true;
    int code = audit_source_read(source, INT64_MIN, show_row, &wanted);
    if (code == CLI_DONE && wanted.found == 0) {
        options_complain("the audit trail has no row of %s", arguments->operand);
        code = CLI_NOT_FOUND;
    } else if (code == CLI_DONE) {
        code = terminal_write(&wanted.text) ? CLI_DONE : CLI_FAILURE;
    }
    buffer_finish(&wanted.text);
    return code;
}

/* ---- export, verify, report ---- */

struct writing {
    enum audit_format format;
    struct buffer line;
    bool failed;
};

static bool audit_write_row(void *context, struct str row)
{
    struct writing *writing = context;
    audit_format_row(writing->format, row, &writing->line);
    writing->failed =
        fwrite(writing->line.bytes, 1, writing->line.length, stdout) != writing->line.length;
    buffer_clear(&writing->line);
    return !writing->failed;
}

static int run_export(struct audit_source *source, const struct arguments *arguments)
{
    struct writing writing = {.format = AUDIT_FORMAT_JSONL};
    if (arguments->format && !audit_format_parse(arguments->format, &writing.format))
        return options_complain("--format %s is none of jsonl, csv and cef", arguments->format);
    buffer_init(&writing.line);
    audit_format_head(writing.format, &writing.line);
    int code = audit_source_read(source, arguments->since_ms, audit_write_row, &writing);
    /* Without a row the head is still written. */
    if (writing.line.length > 0)
        fwrite(writing.line.bytes, 1, writing.line.length, stdout);
    buffer_finish(&writing.line);
    if (code == CLI_DONE && (writing.failed || fflush(stdout) != 0)) {
        options_complain("the export cannot be written");
        code = CLI_FAILURE;
    }
    return code;
}

static int run_verify(struct audit_source *source, const struct arguments *arguments)
{
    return audit_verify(source, arguments->anchor, arguments->key, arguments->is_unsigned);
}

static int run_report(struct audit_source *source, const struct arguments *arguments)
{
    return audit_report(source, arguments->since_ms, arguments->json);
}

/* ---- which one ---- */

static const struct subcommand subcommands[] = {
    {{"list", "", "list the last rows"}, audit_run_list, WITH_LIMIT},
    {{"show", "ID", "show one row by its number, or all of a task"}, audit_run_show, WITH_ID},
    {{"export", "", "write all rows for another program"}, run_export, WITH_FORMAT},
    {{"verify", "[FILE]", "check that no row was changed or removed"}, run_verify, WITH_ANCHOR},
    {{"report", "", "say how people decide, tool by tool"}, run_report, WITH_JSON},
};

static int run_with(const struct subcommand *self, struct arguments *arguments)
{
    struct audit_source source;
    int code = CLI_USAGE;
    if (arguments->since && !consultation_read_since(arguments->since, &arguments->since_ms))
        return CLI_USAGE;
    if (self->with == WITH_ANCHOR)
        arguments->place.file = arguments->operand;
    if (audit_source_find(&source, &arguments->place))
        code = self->run(&source, arguments);
    audit_source_finish(&source);
    return code;
}

static int audit_run_subcommand(const void *row, int argc, char **argv)
{
    const struct subcommand *self = row;
    struct arguments arguments = {.since_ms = INT64_MIN};
    enum {
        LIMIT = 1U << WITH_LIMIT,
        FORMAT = 1U << WITH_FORMAT,
        ANCHOR = 1U << WITH_ANCHOR,
        JSON = 1U << WITH_JSON,
    };
    const struct option options[] = {
        {"config", "FILE", "the configuration that names the store", &arguments.place.config},
        {"store", "FILE", "the store itself, or a copy: a file, a URL, or {env: NAME}",
         &arguments.place.store},
        {"since", "TIME", "leave out older rows: a time, or an age as 7d", &arguments.since,
         .of = LIMIT | FORMAT | JSON},
        {"json", NULL, "print JSON", .flag = &arguments.json, .of = LIMIT | JSON},
        {"limit", "N", "how many (50)", &arguments.limit, .of = LIMIT},
        {"format", "NAME", "jsonl (default), csv or cef", &arguments.format, .of = FORMAT},
        {"anchor", "FILE", "anchors that were kept elsewhere, as logged", &arguments.anchor,
         .of = ANCHOR},
        {"key", "FILE", "the key of their signatures, in PEM", &arguments.key, .of = ANCHOR},
        {"unsigned", NULL, "take anchors whose signatures cannot be checked",
         .flag = &arguments.is_unsigned, .of = ANCHOR},
    };
    OWNED char *usage = memory_format("taskgate audit %s %s%s[OPTIONS]", self->text.name,
                                      self->text.operands, *self->text.operands ? " " : "");
    OWNED char *synopsis =
        memory_format("%c%s.", toupper((unsigned char)*self->text.help), self->text.help + 1);
    const struct command command = {
        .usage = usage,
        .synopsis = synopsis,
        COMMAND_OPTIONS(options),
        .self = 1U << self->with,
        .insecure = &admin_client_is_insecure,
        .operands_min = self->with == WITH_ID,
        .operands_max = self->with == WITH_ID || self->with == WITH_ANCHOR,
        .operand_name = "ID",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &arguments.operand);
    return outcome == OPTIONS_READ ? run_with(self, &arguments) : options_exit_code(outcome);
}

int cli_audit(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "audit",
        .head = "Usage: taskgate audit COMMAND [OPTIONS]\n\n",
        .foot = "\nReads a running gateway when TASKGATE_TOKEN is set, else the store that the\n"
                "configuration names. Each has --config, --store and its own --help.\n",
        SUBCOMMAND_ROWS(subcommands),
        .run = audit_run_subcommand,
    };
    return subcommands_run(&set, argc, argv);
}
