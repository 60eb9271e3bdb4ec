/* taskgate audit: list, show, export, verify, report. */
#include "taskgate/cli/cli.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"
#include "taskgate/store/trail.h"

#include "admin_client.h"
#include "audit_format.h"
#include "audit_report.h"
#include "audit_source.h"
#include "audit_verify.h"
#include "consultation.h"
#include "options.h"
#include "store_place.h"
#include "subcommands.h"
#include "terminal.h"

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
    char *text = json_string_text(json_member(row, key), NULL);
    table_add(table, text ? str_from(text) : json_member(row, key));
    free(text);
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
        struct buffer text;
        buffer_init(&text);
        audit_write_list(&text, &last, arguments->json);
        code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
        buffer_finish(&text);
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
        char *key = memory_copy_str(number);
        struct str kept = json_member(source->kept, key);
        arguments = kept.length > 0 ? memory_copy_str(kept) : NULL;
        free(key);
    }
    return arguments;
}

static void audit_add_arguments(struct wanted *wanted, struct str row)
{
    char *arguments = find_arguments(wanted->source, row);
    if (arguments && json_check(str_from(arguments), NULL)) {
        buffer_append_text(&wanted->text, "kept arguments: ");
        terminal_append_pretty(&wanted->text, str_from(arguments), STR_EMPTY);
        buffer_append_char(&wanted->text, '\n');
    }
    free(arguments);
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
    /* Without a row the head still stands there. */
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

static int audit_run_subcommand(const struct subcommand *self, int argc, char **argv)
{
    struct arguments arguments = {.since_ms = INT64_MIN};
    const struct option config = {"config", "FILE", "the configuration that names the store",
                                  &arguments.place.config, NULL};
    const struct option store = {"store", "FILE",
                                 "the store itself, or a copy: a file, a URL, or {env: NAME}",
                                 &arguments.place.store, NULL};
    const struct option since = {"since", "TIME", "leave out older rows: a time, or an age as 7d",
                                 &arguments.since, NULL};
    const struct option json = {"json", NULL, "print JSON", NULL, &arguments.json};
    const struct option options[][5] = {
        [WITH_LIMIT] =
            {config, store, since, json, {"limit", "N", "how many (50)", &arguments.limit, NULL}},
        [WITH_ID] = {config, store},
        [WITH_FORMAT] = {config,
                         store,
                         since,
                         {"format", "NAME", "jsonl (default), csv or cef", &arguments.format,
                          NULL}},
        [WITH_ANCHOR] = {config,
                         store,
                         {"anchor", "FILE", "anchors that were kept elsewhere, as logged",
                          &arguments.anchor, NULL},
                         {"key", "FILE", "the key of their signatures, in PEM", &arguments.key,
                          NULL},
                         {"unsigned", NULL, "take anchors whose signatures cannot be checked", NULL,
                          &arguments.is_unsigned}},
        [WITH_JSON] = {config, store, since, json},
    };
    static const size_t counts[] = {
        [WITH_LIMIT] = 5, [WITH_ID] = 2, [WITH_FORMAT] = 4, [WITH_ANCHOR] = 5, [WITH_JSON] = 4};
    char *usage = memory_format("taskgate audit %s %s%s[OPTIONS]", self->text.name,
                                self->text.operands, *self->text.operands ? " " : "");
    char *synopsis =
        memory_format("%c%s.", toupper((unsigned char)*self->text.help), self->text.help + 1);
    const struct command command = {
        .usage = usage,
        .synopsis = synopsis,
        .options = options[self->with],
        .option_count = counts[self->with],
        .insecure = &admin_client_is_insecure,
        .operands_min = self->with == WITH_ID,
        .operands_max = self->with == WITH_ID || self->with == WITH_ANCHOR,
        .operand_name = "ID",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &arguments.operand);
    free(synopsis);
    free(usage);
    return outcome == OPTIONS_READ ? run_with(self, &arguments) : options_exit_code(outcome);
}

int cli_audit(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "audit",
        .head = "Usage: taskgate audit COMMAND [OPTIONS]\n\n",
        .foot = "\nReads a running gateway when TASKGATE_TOKEN is set, else the store that the\n"
                "configuration names. Each has --config, --store and its own --help.\n",
        .rows = subcommands,
        .row_bytes = sizeof *subcommands,
        .count = sizeof subcommands / sizeof *subcommands,
    };
    int code;
    const struct subcommand *chosen = subcommands_choose(&set, argc, argv, &code);
    return chosen ? audit_run_subcommand(chosen, argc - 1, argv + 1) : code;
}
