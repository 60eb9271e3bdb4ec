/*
 * The gates that a call passes, in their order: by what name errors, answers of `taskgate explain`
 * and metrics know each (behaviour 6.3; docs/metrics.md). Any thread.
 */
#pragma once

#include "taskgate/core/str.h"

enum policy_gate {
    POLICY_GATE_VISIBILITY, /* `expose` */
    POLICY_GATE_GOVERNANCE, /* the rules */
    POLICY_GATE_POLICY,     /* `action: policy` */
    POLICY_GATE_APPROVAL,   /* a human */
};

/* "visibility" … */
const char *policy_gate_name(enum policy_gate gate);
/* The value of the label `gate` of metrics: "gate1" … */
struct str policy_gate_label(enum policy_gate gate);
