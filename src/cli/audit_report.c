/* Counts of calls and decisions, and what they suggest. */
#include "audit_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#include "consultation.h"
#include "terminal.h"

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
    char *key = memory_format("%s\n%s", source, name);
    struct tool *tool = map_get(report->tools, str_from(key));
    if (!tool) {
        tool = memory_alloc(sizeof *tool);
        tool->name = memory_copy_text(name);
        tool->source = memory_copy_text(source);
        map_put(report->tools, str_from(key), tool);
        report->list = memory_grow_array(report->list, report->count + 1, sizeof(struct entry));
        report->list[report->count++].tool = tool;
    }
    free(key);
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
    char *text = memory_format("%" PRId64, number);
    table_add(table, str_from(text));
    free(text);
}

static void audit_report_add_tool(struct table *table, struct tool *tool)
{
    int64_t decided = tool->approved + tool->rejected, median = median_ms(tool);
    char *share = decided > 0
                      ? memory_format("%.0f %%", 100.0 * (double)tool->approved / (double)decided)
                      : memory_copy_text("-");
    char *wait =
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
    free(share);
    free(wait);
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

int audit_report(struct audit_source *source, int64_t since_ms, bool json)
{
    struct report report = {map_create(), map_create(), NULL, 0};
    int code = audit_source_read(source, since_ms, audit_report_visit, &report);
    if (code == CLI_DONE) {
        struct buffer text;
        buffer_init(&text);
        if (report.count > 0)
            qsort(report.list, report.count, sizeof(struct entry), compare_tools);
        if (json)
            write_json(&text, &report);
        else
            audit_report_write_text(&text, &report);
        code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
        buffer_finish(&text);
    }
    audit_report_finish(&report);
    return code;
}
