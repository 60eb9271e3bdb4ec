/* Each call is judged anew; equal outcomes are one change. */
#include "simulation.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

void simulation_init(struct simulation *simulation, const struct snapshot *snapshot)
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

void simulation_finish(struct simulation *simulation)
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
    char *id = memory_copy_str(call->source);
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
    free(id);
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
    struct buffer key;
    buffer_init(&key);
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
    buffer_finish(&key);
    return kept;
}

static void add_example(struct simulated_change *change, const struct recorded_call *call)
{
    if (change->example_count == SIMULATION_EXAMPLES)
        return;
    change->examples[change->example_count++] =
        call->id.length ? memory_copy_str(call->id) : memory_format("line %zu", call->line);
}

void simulation_add(void *context, const struct recorded_call *call)
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

void simulation_sort(struct simulation *simulation)
{
    if (simulation->count > 1)
        qsort(simulation->changes, simulation->count, sizeof(struct simulated_change *),
              simulation_compare);
}
