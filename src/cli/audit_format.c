/* JSON lines, CSV (RFC 4180) and ArcSight's Common Event Format. */
#include "audit_format.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"

static const char *const columns[] = {
    "sequence",     "at",         "taskId", "event",           "from",          "to",
    "actorKind",    "actor",      "person", "reason",          "source",        "tool",
    "principal",    "workflow",   "rule",   "argumentsDigest", "requestDigest", "definitionDigest",
    "policyDigest", "keptDigest", "votes",  "decision",        "via",           "hash",
};
#define COLUMN_COUNT (sizeof columns / sizeof *columns)

bool audit_format_parse(const char *text, enum audit_format *format)
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
    struct buffer text;
    buffer_init(&text);
    if (json_decode_string(value, &text))
        visible_append_lines(out, buffer_str(&text));
    else
        visible_append_json(out, value);
    buffer_finish(&text);
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
    struct buffer cell;
    buffer_init(&cell);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        buffer_clear(&cell);
        audit_format_append_value(&cell, values[i]);
        buffer_append_text(out, i > 0 ? "," : "");
        audit_format_append_cell(out, buffer_str(&cell));
    }
    buffer_append_text(out, "\r\n");
    buffer_finish(&cell);
}

/* ---- CEF ---- */

/* The severity for a SIEM: a decision stands above what the gateway does by itself. */
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
    struct buffer value;
    buffer_init(&value);
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
    buffer_finish(&value);
}

/* ---- rows ---- */

void audit_format_head(enum audit_format format, struct buffer *out)
{
    if (format != AUDIT_FORMAT_CSV)
        return;
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        buffer_append_format(out, "%s%s", i > 0 ? "," : "", columns[i]);
    buffer_append_text(out, "\r\n");
}

void audit_format_row(enum audit_format format, struct str row, struct buffer *out)
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
