/* Reports the differences that a simulation found, as a table and as JSON. */
#include <inttypes.h>

#include "simulation.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/visible.h"

#include "terminal.h"

/* The report's words for facts that a recorded call lacks. */
static const char *missing(unsigned hangs_on)
{
    static const char *const words[] = {
        [0] = "",
        [UNKNOWN_ARGUMENTS] = "arguments",
        [UNKNOWN_CALLER] = "caller",
        [UNKNOWN_ARGUMENTS | UNKNOWN_CALLER] = "arguments and caller",
    };
    return words[hangs_on & (UNKNOWN_ARGUMENTS | UNKNOWN_CALLER)];
}

/* ---- the table ---- */

static void add_outcome(struct table *table, const struct simulated *simulated, unsigned hangs_on)
{
    struct buffer text;
    buffer_init(&text);
    if (hangs_on)
        buffer_append_format(&text, "undecidable without %s", missing(hangs_on));
    else
        buffer_append_text(&text, verdict_outcome_name(simulated->outcome));
    if (!hangs_on && simulated->outcome == VERDICT_APPROVE && *simulated->workflow)
        buffer_append_format(&text, " (%s)", simulated->workflow);
    table_add(table, buffer_str(&text));
    table_add(table, str_from(*simulated->rule ? simulated->rule : "-"));
    buffer_finish(&text);
}

static void simulation_report_add_change(struct table *table, const struct simulated_change *change)
{
    struct buffer text;
    buffer_init(&text);
    table_add(table, str_from(change->tool));
    table_add(table, str_from(change->source));
    buffer_append_format(&text, "%" PRId64, change->calls);
    table_add(table, buffer_str(&text));
    add_outcome(table, &change->was, 0);
    add_outcome(table, &change->would_be, change->hangs_on);
    buffer_clear(&text);
    for (size_t i = 0; i < change->example_count; i++)
        buffer_append_format(&text, "%s%s", i > 0 ? ", " : "", change->examples[i]);
    table_add(table, buffer_str(&text));
    buffer_finish(&text);
}

void simulation_write_text(struct buffer *out, const struct simulation *simulation, int64_t unnamed)
{
    static const char *const headings[] = {"TOOL", "SOURCE",   "CALLS", "WAS",
                                           "RULE", "WOULD BE", "RULE",  "EXAMPLES"};
    struct table table;
    buffer_append_format(out, "Of %" PRId64 " calls %" PRId64 " would be treated differently.\n",
                         simulation->calls, simulation->different);
    if (simulation->undecidable > 0)
        buffer_append_format(out, "%" PRId64 " depend on facts that were not recorded.\n",
                             simulation->undecidable);
    if (unnamed > 0)
        buffer_append_format(out, "%" PRId64 " more have no recorded tool.\n", unnamed);
    for (size_t i = 0; i < simulation->failure_count; i++) {
        const struct simulated_failure *failure = &simulation->failures[i];
        buffer_append_format(out, "On %" PRId64 " ", failure->calls);
        if (*failure->place) {
            buffer_append_text(out, "the policy ");
            visible_append(out, str_from(failure->policy));
            buffer_append_text(out, " (");
            visible_append(out, str_from(failure->place));
            buffer_append_text(out, ") cannot be evaluated: ");
        } else {
            buffer_append_text(out, "no policy can be asked: ");
        }
        visible_append(out, str_from(failure->error));
        buffer_append_char(out, '\n');
    }
    if (simulation->count == 0)
        return;
    buffer_append_char(out, '\n');
    table_init(&table, sizeof headings / sizeof *headings, headings);
    for (size_t i = 0; i < simulation->count; i++)
        simulation_report_add_change(&table, simulation->changes[i]);
    table_write(&table, out);
    table_finish(&table);
}

/* ---- JSON ---- */

static void simulation_report_append_text(struct buffer *out, const char *key, const char *text)
{
    buffer_append_format(out, ",\"%s\":", key);
    if (*text)
        buffer_append_json_string(out, str_from(text));
    else
        buffer_append_text(out, "null");
}

static void append_simulated(struct buffer *out, const char *key, const struct simulated *simulated,
                             bool is_known)
{
    buffer_append_format(out, ",\"%s\":{\"outcome\":", key);
    buffer_append_format(out, is_known ? "\"%s\"" : "null",
                         verdict_outcome_name(simulated->outcome));
    simulation_report_append_text(out, "workflow", simulated->workflow);
    simulation_report_append_text(out, "rule", simulated->rule);
    buffer_append_char(out, '}');
}

static void append_failure(struct buffer *out, const struct simulated_failure *failure)
{
    buffer_append_format(out, "{\"calls\":%" PRId64, failure->calls);
    simulation_report_append_text(out, "policy", failure->policy);
    simulation_report_append_text(out, "place", failure->place);
    simulation_report_append_text(out, "error", failure->error);
    buffer_append_char(out, '}');
}

static void append_change(struct buffer *out, const struct simulated_change *change)
{
    buffer_append_text(out, "{\"tool\":");
    buffer_append_json_string(out, str_from(change->tool));
    simulation_report_append_text(out, "source", change->source);
    buffer_append_format(out, ",\"calls\":%" PRId64, change->calls);
    append_simulated(out, "was", &change->was, true);
    append_simulated(out, "would_be", &change->would_be, change->hangs_on == 0);
    simulation_report_append_text(out, "undecidable_without", missing(change->hangs_on));
    buffer_append_text(out, ",\"examples\":[");
    for (size_t i = 0; i < change->example_count; i++) {
        buffer_append_text(out, i > 0 ? "," : "");
        buffer_append_json_string(out, str_from(change->examples[i]));
    }
    buffer_append_text(out, "]}");
}

void simulation_write_json(struct buffer *out, const struct simulation *simulation, int64_t unnamed)
{
    buffer_append_format(out,
                         "{\"calls\":%" PRId64 ",\"same\":%" PRId64 ",\"different\":%" PRId64
                         ",\"undecidable\":%" PRId64 ",\"not_recorded\":%" PRId64 ",\"changes\":[",
                         simulation->calls, simulation->same, simulation->different,
                         simulation->undecidable, unnamed);
    for (size_t i = 0; i < simulation->count; i++) {
        buffer_append_text(out, i > 0 ? "," : "");
        append_change(out, simulation->changes[i]);
    }
    buffer_append_text(out, "],\"failures\":[");
    for (size_t i = 0; i < simulation->failure_count; i++) {
        buffer_append_text(out, i > 0 ? "," : "");
        append_failure(out, &simulation->failures[i]);
    }
    buffer_append_text(out, "]}\n");
}
