/*
 * Recorded calls, read from the gateway's log or from its store's audit trail.
 */
#pragma once

#include "taskgate/policy/verdict.h"

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

/* False after a word on stderr. "-" is standard input. */
bool recorded_calls_read_log(const char *path, struct recorded_calls *calls);
bool recorded_calls_read_store(const char *place, struct recorded_calls *calls);
