/*
 * Recorded calls judged by another configuration: the differences, by tool.
 */
#pragma once

#include "recorded_call.h"
#include "taskgate/gateway/snapshot.h"

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

void simulation_init(struct simulation *simulation, const struct snapshot *snapshot);
void simulation_finish(struct simulation *simulation);
/* For recorded_calls. */
void simulation_add(void *simulation, const struct recorded_call *call);
/* By tool and source, the most frequent first. */
void simulation_sort(struct simulation *simulation);

/* ---- simulation_report.c ---- */
/* `unnamed`: calls of which nothing was recorded. */
void simulation_write_text(struct buffer *out, const struct simulation *simulation,
                           int64_t unnamed);
void simulation_write_json(struct buffer *out, const struct simulation *simulation,
                           int64_t unnamed);
