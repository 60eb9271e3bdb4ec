/* taskgate policy simulate: recorded calls put to a changed configuration. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/policy/verdict.h"
#include "taskgate/store/history.h"
#include "taskgate/task/recorded_name.h"

#include "consultation.h"
#include "judgement.h"
#include "options.h"
#include "policy.h"
#include "store_place.h"
#include "terminal.h"
#include "verified_caller.h"

/* ---- recorded calls ---- */

/* Recorded calls, read from the gateway's log or from its store's audit trail. From lines and
 * rows to calls. */

/* One call, or several that were summed up; texts are borrowed for as long as it is visited. */
struct recorded_call {
    struct str id; /* of the task; empty where it became none */
    size_t line;   /* of the log, from 1; 0 in a store */
    int64_t calls;
    int64_t at_ms; /* of a sum, when it was written */
    struct str tool, source;
    enum verdict_outcome outcome;
    struct str workflow;
    struct str rule;    /* its glob; meaning only with an index */
    int64_t rule_index; /* -1: the default action */
    struct str arguments;
    struct policy_principal principal;
    const struct policy_verified *verified; /* NULL: no token was verified */
    struct policy_hints hints;
    unsigned unknown; /* UNKNOWN_… bits of facts that were not recorded */
};

struct recorded_calls {
    void (*visit)(void *context, const struct recorded_call *call);
    void *context;
    int64_t since_ms;
    int64_t unnamed; /* calls that are recorded without their facts */
};

/* ---- common to the log and the trail ---- */

/* Decoded texts of one call; the next call overwrites them. */
struct texts {
    char *items[8];
    size_t count;
};

static void recorded_call_finish_texts(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->items[i]);
    texts->count = 0;
}

static struct str recorded_call_text_of(struct texts *texts, struct str object, const char *key)
{
    size_t length = 0;
    char *text = json_string_text(json_member(object, key), &length);
    if (!text)
        return STR_EMPTY;
    texts->items[texts->count++] = text;
    return str_slice(text, length);
}

static int64_t recorded_call_number_of(struct str object, const char *key, int64_t otherwise)
{
    uint64_t number;
    bool good = str_to_u64(json_member(object, key), &number) && number <= INT64_MAX;
    return good ? (int64_t)number : otherwise;
}

static struct policy_hints hints_of(struct str annotations)
{
    struct policy_hints hints = {0};
    for (unsigned i = 0; i < HINT_COUNT; i++) {
        enum json_type type =
            json_type(json_member(annotations, policy_hint_name((enum policy_hint)i)));
        if (type == JSON_TRUE || type == JSON_FALSE)
            hints.given |= 1U << i;
        if (type == JSON_TRUE)
            hints.truth |= 1U << i;
    }
    return hints;
}

/* False if the object has no decision or no tool. */
static bool recorded_call_read_decision(struct recorded_call *call, struct texts *texts,
                                        struct verified_caller *caller, struct str object)
{
    struct str outcome = recorded_call_text_of(texts, object, "outcome");
    call->tool = recorded_call_text_of(texts, object, "tool");
    call->source = recorded_call_text_of(texts, object, "source");
    call->workflow = recorded_call_text_of(texts, object, "workflow");
    call->rule = recorded_call_text_of(texts, object, "rule");
    call->rule_index = recorded_call_number_of(object, "rule_index", -1);
    call->unknown = UNKNOWN_ARGUMENTS;
    if (json_type(json_member(object, "principal")) == JSON_STRING) {
        call->principal.owner = recorded_call_text_of(texts, object, "principal");
        call->principal.client_name = recorded_call_text_of(texts, object, "client_name");
        call->principal.client_version = recorded_call_text_of(texts, object, "client_version");
        call->hints = hints_of(json_member(object, "annotations"));
        call->verified = verified_caller_read(caller, object);
    } else {
        call->unknown |= UNKNOWN_CALLER;
    }
    bool is_named = call->tool.length && call->tool.length <= RECORDED_NAME_BYTES_MAX;
    return is_named && call->source.length && verdict_outcome_parse(outcome, &call->outcome);
}

static void recorded_call_pass_on(struct recorded_calls *calls, struct recorded_call *call,
                                  struct str decision)
{
    struct texts texts = {.count = 0};
    struct verified_caller caller = {.subject = NULL};
    struct str arguments = call->arguments;
    if (!recorded_call_read_decision(call, &texts, &caller, decision)) {
        calls->unnamed += call->calls;
    } else {
        if (arguments.length)
            call->unknown &= ~(unsigned)UNKNOWN_ARGUMENTS;
        calls->visit(calls->context, call);
    }
    recorded_call_finish_texts(&texts);
    verified_caller_finish(&caller);
}

/* ---- the log ---- */

static const struct {
    struct str message;
    const char *decision; /* member that has it; NULL: the line itself */
} lines[] = {
    {STR(RECORDED_CALLS), NULL},
    {STR(RECORDED_CALL), NULL},
    {STR(RECORDED_TASK), "decision"},
};

static bool recorded_call_read_time(struct str line, int64_t *at_ms)
{
    OWNED char *text = json_string_text(json_member(line, "time"), NULL);
    return text && consultation_read_time(text, at_ms);
}

/* Whether the gateway wrote the line. Other lines may stand between: output before the log is open,
 * and lines of a collector. */
static bool read_line(struct recorded_calls *calls, struct str line, size_t number)
{
    struct recorded_call call = {.line = number};
    if (json_type(line) != JSON_OBJECT || !json_check(line, NULL) ||
        !recorded_call_read_time(line, &call.at_ms))
        return false;
    struct str message = json_member(line, "msg");
    if (call.at_ms < calls->since_ms)
        return true;
    call.calls = recorded_call_number_of(line, "calls", 1);
    if (json_string_equals(message, STR(RECORDED_OTHERS)))
        calls->unnamed += call.calls;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct str decision = lines[i].decision ? json_member(line, lines[i].decision) : line;
        if (!json_string_equals(message, lines[i].message) || json_type(decision) != JSON_OBJECT)
            continue; /* a task without a decision: another line has its call */
        OWNED char *id = json_string_text(json_member(line, "task"), NULL);
        call.id = str_from(id);
        recorded_call_pass_on(calls, &call, decision);
    }
    return true;
}

/* False after a word on stderr. "-" is standard input. */
static bool recorded_calls_read_log(const char *path, struct recorded_calls *calls)
{
    bool is_input = strcmp(path, "-") == 0, any = false;
    FILE *file = is_input ? stdin : fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0, number = 0;
    ssize_t length = 0;
    if (!file) {
        options_complain("%s cannot be read: %s", path, strerror(errno));
        return false;
    }
    errno = 0;
    while ((length = getline(&line, &capacity, file)) >= 0)
        any = read_line(calls, str_trim(str_slice(line, (size_t)length)), ++number) || any;
    bool failed = ferror(file);
    if (failed)
        options_complain("%s cannot be read: %s", path, strerror(errno));
    else if (!any)
        options_complain("%s has no line of the gateway's log", path);
    free(line);
    if (!is_input)
        fclose(file);
    return any && !failed;
}

/* ---- the store ---- */

static bool recorded_call_visit_row(void *context, const struct store_history_call *row)
{
    struct recorded_call call = {.id = row->task_id, .calls = 1, .at_ms = row->at_ms};
    if (row->has_arguments && json_check(row->arguments, NULL))
        call.arguments = row->arguments;
    recorded_call_pass_on(context, &call,
                          json_check(row->decision, NULL) ? row->decision : STR_EMPTY);
    return true;
}

static bool recorded_calls_read_store(const char *place, struct recorded_calls *calls)
{
    struct error error = {""};
    const struct store_site site = store_place_site(place);
    if (store_history_read(&site, calls->since_ms, recorded_call_visit_row, calls, &error))
        return true;
    options_complain("%s", error.message);
    return false;
}

/* ---- the differences ---- */

/* Recorded calls judged by another configuration: the differences, by tool. Each call is judged
 * anew; equal outcomes are one change. */

#define SIMULATION_EXAMPLES 3

/* A decision, recorded or simulated. */
struct simulated {
    enum verdict_outcome outcome;
    char *workflow; /* or "" */
    char *rule;     /* "2: pay_*", or "default"; "" where none was asked */
};

/* Calls of one tool with the same recorded and the same simulated outcome. */
struct simulated_change {
    char *tool, *source;
    int64_t calls;
    struct simulated was, would_be;
    unsigned hangs_on; /* UNKNOWN_… bits of missing facts that the decision depends on */
    char *examples[SIMULATION_EXAMPLES]; /* ids of tasks, else "line N" of the log */
    size_t example_count;
};

/* A policy of the changed configuration that could not be evaluated, and why. */
struct simulated_failure {
    char *policy, *place, *error; /* "FILE:LINE:COLUMN" */
    int64_t calls;
};

struct simulation {
    uint32_t magic; /* SIMULATION_MAGIC */
    const struct snapshot *snapshot;
    int64_t calls, same, different, undecidable;
    struct map *kinds; /* from the key of a change to the change */
    struct simulated_change **changes;
    size_t count;
    struct simulated_failure *failures;
    size_t failure_count;
};

#define SIMULATION_MAGIC 0x434c5301

static void simulation_init(struct simulation *simulation, const struct snapshot *snapshot)
{
    *simulation =
        (struct simulation){.magic = SIMULATION_MAGIC, .snapshot = snapshot, .kinds = map_create()};
}

static void destroy_change(struct simulated_change *change)
{
    for (size_t i = 0; i < change->example_count; i++)
        free(change->examples[i]);
    free(change->tool);
    free(change->source);
    free(change->was.workflow);
    free(change->was.rule);
    free(change->would_be.workflow);
    free(change->would_be.rule);
    free(change);
}

static void simulation_finish(struct simulation *simulation)
{
    for (size_t i = 0; i < simulation->count; i++)
        destroy_change(simulation->changes[i]);
    for (size_t i = 0; i < simulation->failure_count; i++) {
        free(simulation->failures[i].policy);
        free(simulation->failures[i].place);
        free(simulation->failures[i].error);
    }
    free(simulation->failures);
    free(simulation->changes);
    map_destroy(simulation->kinds, NULL);
}

/* ---- one call ---- */

static void note_failure(struct simulation *simulation, char *policy, char *place, char *error,
                         int64_t calls)
{
    for (size_t i = 0; i < simulation->failure_count; i++) {
        struct simulated_failure *failure = &simulation->failures[i];
        if (strcmp(failure->place, place) != 0 || strcmp(failure->error, error) != 0)
            continue;
        failure->calls += calls;
        free(policy);
        free(place);
        free(error);
        return;
    }
    simulation->failures = memory_grow_array(simulation->failures, simulation->failure_count + 1,
                                             sizeof *simulation->failures);
    simulation->failures[simulation->failure_count++] =
        (struct simulated_failure){policy, place, error, calls};
}

/* A policy is asked for each action in turn, and counts once for a call. */
static void note_failures(struct simulation *simulation, const struct policy_trace *trace,
                          int64_t calls)
{
    for (size_t i = 0; i < trace->count; i++) {
        const struct policy_finding *finding = &trace->items[i];
        bool is_told = finding->kind != FINDING_ERROR;
        for (size_t j = 0; j < i && !is_told; j++)
            is_told =
                trace->items[j].kind == FINDING_ERROR && trace->items[j].line == finding->line &&
                trace->items[j].column == finding->column && trace->items[j].file == finding->file;
        if (!is_told)
            note_failure(simulation, memory_copy_str(finding->policy),
                         memory_format("%s:%u:%u", finding->file, finding->line, finding->column),
                         memory_copy_text(finding->error), calls);
    }
    if (trace->failure)
        note_failure(simulation, memory_copy_text(""), memory_copy_text(""),
                     memory_copy_text(trace->failure), calls);
}

static struct verdict simulation_judge(struct simulation *simulation,
                                       const struct recorded_call *call)
{
    /* A source that the configuration lacks shows nothing. */
    OWNED char *id = memory_copy_str(call->source);
    const struct config_source gone = {.id = id};
    const struct config_source *source =
        config_source_find(simulation->snapshot->config, call->source);
    const struct policy_request request = {source ? source : &gone, call->tool, call->arguments,
                                           call->verified};
    const struct policy_facts facts = {call->principal, call->hints, call->at_ms};
    struct policy_trace trace = {0};
    struct verdict verdict;
    verdict_of(simulation->snapshot->policy, &request, &facts, call->unknown, &trace, &verdict);
    note_failures(simulation, &trace, call->calls);
    policy_trace_finish(&trace);
    return verdict;
}

static char *simulation_describe_rule(enum verdict_outcome outcome, struct str match, int64_t index)
{
    if (index >= 0)
        return memory_format("%lld: %.*s", (long long)index, STR_ARGS(match));
    return memory_copy_text(outcome == VERDICT_HIDE ? "" : "default");
}

static struct simulated was_of(const struct recorded_call *call)
{
    return (struct simulated){
        .outcome = call->outcome,
        .workflow = memory_copy_str(call->workflow),
        .rule = simulation_describe_rule(call->outcome, call->rule, call->rule_index),
    };
}

static struct simulated would_be_of(const struct verdict *verdict)
{
    const struct policy_decision *decision = &verdict->decision;
    const struct config_rule *rule = decision->rule;
    return (struct simulated){
        .outcome = verdict->outcome,
        .workflow = memory_copy_str(
            verdict->hangs_on ? STR_EMPTY : verdict_workflow(verdict->outcome, decision)),
        .rule = simulation_describe_rule(verdict->outcome, str_from(rule ? rule->match : NULL),
                                         rule ? (int64_t)decision->rule_index : -1),
    };
}

/* ---- equal outcomes ---- */

static void simulation_write_key(struct buffer *key, const struct simulated_change *change)
{
    const char *const texts[] = {change->tool,          change->source,
                                 change->was.rule,      change->was.workflow,
                                 change->would_be.rule, change->would_be.workflow};
    buffer_append_format(key, "%d %d %u", (int)change->was.outcome, (int)change->would_be.outcome,
                         change->hangs_on);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        buffer_append_format(key, " %zu %s", strlen(texts[i]), texts[i]);
}

/* The change as it is kept; `change` is taken over. */
static struct simulated_change *simulation_keep(struct simulation *simulation,
                                                struct simulated_change *change)
{
    OWNED_BUFFER(key);
    simulation_write_key(&key, change);
    struct simulated_change *kept = map_get(simulation->kinds, buffer_str(&key));
    if (kept) {
        destroy_change(change);
    } else {
        kept = change;
        map_put(simulation->kinds, buffer_str(&key), kept);
        simulation->changes = memory_grow_array(simulation->changes, simulation->count + 1,
                                                sizeof(struct simulated_change *));
        simulation->changes[simulation->count++] = kept;
    }
    return kept;
}

static void add_example(struct simulated_change *change, const struct recorded_call *call)
{
    if (change->example_count == SIMULATION_EXAMPLES)
        return;
    ASSERT_NUMBERS(change->example_count, <, SIMULATION_EXAMPLES);
    change->examples[change->example_count++] =
        call->id.length ? memory_copy_str(call->id) : memory_format("line %zu", call->line);
}

/* For recorded_calls. */
static void simulation_add(void *context, const struct recorded_call *call)
{
    struct simulation *simulation = MAGIC_CAST(struct simulation, SIMULATION_MAGIC, context);
    struct verdict verdict = simulation_judge(simulation, call);
    simulation->calls += call->calls;
    if (!verdict.hangs_on &&
        verdict_is_same(call->outcome, call->workflow, verdict.outcome,
                        verdict_workflow(verdict.outcome, &verdict.decision))) {
        simulation->same += call->calls;
        return;
    }
    *(verdict.hangs_on ? &simulation->undecidable : &simulation->different) += call->calls;
    struct simulated_change *change = memory_alloc(sizeof *change);
    *change = (struct simulated_change){
        .tool = memory_copy_str(call->tool),
        .source = memory_copy_str(call->source),
        .was = was_of(call),
        .would_be = would_be_of(&verdict),
        .hangs_on = verdict.hangs_on,
    };
    change = simulation_keep(simulation, change);
    change->calls += call->calls;
    add_example(change, call);
}

/* ---- the order ---- */

static int simulation_compare(const void *left, const void *right)
{
    const struct simulated_change *a = *(struct simulated_change *const *)left;
    const struct simulated_change *b = *(struct simulated_change *const *)right;
    int order = strcmp(a->tool, b->tool);
    if (order == 0)
        order = strcmp(a->source, b->source);
    if (order == 0)
        order = (a->calls < b->calls) - (a->calls > b->calls);
    return order;
}

/* By tool and source, the most frequent first. */
static void simulation_sort(struct simulation *simulation)
{
    if (simulation->count > 1)
        qsort(simulation->changes, simulation->count, sizeof(struct simulated_change *),
              simulation_compare);
}

/* ---- reports ---- */

/* Reports the differences that a simulation found, as a table and as JSON. */

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
    OWNED_BUFFER(text);
    if (hangs_on)
        buffer_append_format(&text, "undecidable without %s", missing(hangs_on));
    else
        buffer_append_text(&text, verdict_outcome_name(simulated->outcome));
    if (!hangs_on && simulated->outcome == VERDICT_APPROVE && *simulated->workflow)
        buffer_append_format(&text, " (%s)", simulated->workflow);
    table_add(table, buffer_str(&text));
    table_add(table, str_from(*simulated->rule ? simulated->rule : "-"));
}

static void simulation_report_add_change(struct table *table, const struct simulated_change *change)
{
    OWNED_BUFFER(text);
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
}

/* `unnamed`: calls of which nothing was recorded. */
static void simulation_write_text(struct buffer *out, const struct simulation *simulation,
                                  int64_t unnamed)
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

static void append_simulated(struct buffer *out, const char *key, const struct simulated *simulated,
                             bool is_known)
{
    json_add_key(out, key);
    buffer_append_char(out, '{');
    json_add_text_or_null(out, "outcome",
                          is_known ? verdict_outcome_name(simulated->outcome) : NULL);
    json_add_text_or_null(out, "workflow", simulated->workflow);
    json_add_text_or_null(out, "rule", simulated->rule);
    buffer_append_char(out, '}');
}

static void append_failure(struct buffer *out, const struct simulated_failure *failure)
{
    buffer_append_char(out, '{');
    json_add_number(out, "calls", failure->calls);
    json_add_text_or_null(out, "policy", failure->policy);
    json_add_text_or_null(out, "place", failure->place);
    json_add_text_or_null(out, "error", failure->error);
    buffer_append_char(out, '}');
}

static void append_change(struct buffer *out, const struct simulated_change *change)
{
    buffer_append_char(out, '{');
    json_add_text(out, "tool", change->tool);
    json_add_text_or_null(out, "source", change->source);
    json_add_number(out, "calls", change->calls);
    append_simulated(out, "was", &change->was, true);
    append_simulated(out, "would_be", &change->would_be, change->hangs_on == 0);
    json_add_text_or_null(out, "undecidable_without", missing(change->hangs_on));
    json_add_texts(out, "examples", change->examples, change->example_count);
    buffer_append_char(out, '}');
}

static void simulation_write_json(struct buffer *out, const struct simulation *simulation,
                                  int64_t unnamed)
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

/* ---- the command ---- */

struct choice {
    const char *config, *log, *store, *since;
    bool json, fail_on_change;
};

static int policy_simulate_report(struct simulation *simulation, int64_t unnamed,
                                  const struct choice *choice)
{
    OWNED_BUFFER(text);
    simulation_sort(simulation);
    if (choice->json)
        simulation_write_json(&text, simulation, unnamed);
    else
        simulation_write_text(&text, simulation, unnamed);
    bool written = terminal_write(&text);
    bool fails = choice->fail_on_change && simulation->different > 0;
    return written && !fails ? CLI_DONE : CLI_FAILURE;
}

static bool read_store(const struct config *config, const struct choice *choice,
                       struct recorded_calls *calls)
{
    char *place = choice->store ? store_place_given("store", choice->store, "--store '{env: NAME}'")
                                : store_place_of_configuration(config);
    bool read = place && recorded_calls_read_store(place, calls);
    memory_forget_text(place);
    return read;
}

static int simulate(const struct snapshot *snapshot, int64_t since_ms, const struct choice *choice)
{
    struct simulation simulation;
    simulation_init(&simulation, snapshot);
    struct recorded_calls calls = {
        .visit = simulation_add, .context = &simulation, .since_ms = since_ms};
    bool read = choice->log ? recorded_calls_read_log(choice->log, &calls)
                            : read_store(snapshot->config, choice, &calls);
    int code = read ? policy_simulate_report(&simulation, calls.unnamed, choice) : CLI_USAGE;
    simulation_finish(&simulation);
    return code;
}

static bool names_store(const struct config *config)
{
    return config->store_url || !config->store_path_is_default;
}

int cli_policy_simulate(int argc, char **argv)
{
    struct choice choice = {0};
    int64_t since_ms = 0;
    const struct option options[] = {
        {"log", "FILE", "the gateway's log; - is standard input", &choice.log},
        {"store", "FILE", "the calls that became tasks: a file, a URL, or {env: NAME}",
         &choice.store},
        {"config", "FILE", "the changed one; by default one of the usual places", &choice.config},
        {"since", "TIME", "leave out older calls: a time, or an age such as 7d", &choice.since},
        {"json", NULL, "print JSON", .flag = &choice.json},
        {"fail-on-change", NULL, "exit with 1 if any call would be treated differently",
         .flag = &choice.fail_on_change},
    };
    const struct command command = {
        .usage = "taskgate policy simulate [--log FILE | --store FILE] [--config FILE]\n"
                 "       [--since TIME] [--json] [--fail-on-change]",
        .synopsis =
            "Judges past calls by a changed configuration, and lists the tools that it would\n"
            "treat differently, with the old and the new rule. Says so if a decision\n"
            "depends on facts that were not recorded, such as arguments. Without --log and\n"
            "--store it reads the store that the configuration names. Changes nothing, and\n"
            "needs no running gateway.",
        COMMAND_OPTIONS(options),
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    if (choice.log && choice.store)
        return options_complain("name either --log or --store; usage: %s", command.usage);
    if (choice.since && !consultation_read_since(choice.since, &since_ms))
        return CLI_USAGE;
    struct snapshot *snapshot = judgement_load(choice.config, NULL);
    if (!snapshot)
        return CLI_USAGE;
    bool names_calls = choice.log || choice.store || names_store(snapshot->config);
    int code = names_calls
                   ? simulate(snapshot, since_ms, &choice)
                   : options_complain("the configuration names no store: name either --log or "
                                      "--store; usage: %s",
                                      command.usage);
    snapshot_unref(snapshot);
    return code;
}
