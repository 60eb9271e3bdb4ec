/*
 * The policy: which action a tool, prompt or resource gets, and what a tool is announced as.
 *
 * Compiled once from a configuration, immutable, any thread. policy_decide() is the one
 * place where a decision is made; what decides by attributes later stands behind it. Source:
 * seed 002 §5.3, F-005; reference §1.3, §2.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/config/config.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* `taskSupport`: what a tool is announced as, in both spellings of the protocol. */
enum policy_annotation { ANNOTATION_FORBIDDEN, ANNOTATION_OPTIONAL, ANNOTATION_REQUIRED };
/* "forbidden", "optional", "required". */
const char *policy_annotation_name(enum policy_annotation annotation);
bool policy_annotation_parse(struct str name, enum policy_annotation *annotation);

struct policy;

/* Holds a reference to `config`. NULL with `error` only for globs that config_load() would
 * have refused. Destroy takes NULL. */
struct policy *policy_create(struct config *config, struct error *error);
void policy_destroy(struct policy *policy);

/* What is asked for. */
struct policy_request {
    const struct config_source *source;
    struct str name;      /* tool or prompt name, or resource URI */
    struct str arguments; /* JSON text; for engines that look inside */
};

struct policy_decision {
    enum config_action action;
    const struct config_rule *rule;         /* NULL: the default action */
    size_t rule_index;                      /* meaning only with a rule */
    const struct config_workflow *workflow; /* for ACTION_APPROVE and ACTION_POLICY, else NULL */
    bool force_required;                    /* the name is in force_required */
    enum config_execution execution;
};

/* First matching rule of the source wins, else the default action. Costs no walk over all
 * rules: names are looked up in an index by literal prefix. Allocates nothing. */
void policy_decide(const struct policy *policy, const struct policy_request *request,
                   struct policy_decision *decision);

/* Whether `expose` and `enabled` of the source let clients see the name at all. */
bool policy_is_visible(const struct policy *policy, const struct config_source *source,
                       struct str name);

/* The decision matrix of seed 002 §5.3 with contract "tools/list": what a tool is announced
 * as. `own` is upstream's own value for the tool; `has_own` whether it gave one. */
enum policy_annotation policy_annotate(const struct policy_decision *decision, bool upstream_tasks,
                                       bool has_own, enum policy_annotation own);

/* What comes of a call, by the matrices of seed 002 F-004 and F-005. */
enum policy_route {
    ROUTE_FORWARD,        /* the client's bytes go up as they are */
    ROUTE_DENIED,         /* -32014 */
    ROUTE_APPROVAL,       /* a task that waits for a human */
    ROUTE_ACCELERATED,    /* a task that starts approved */
    ROUTE_TASK_REQUIRED,  /* -32009 */
    ROUTE_TASK_FORBIDDEN, /* -32010 */
};
enum policy_route policy_route(const struct policy_decision *decision,
                               enum policy_annotation announced, bool has_task, bool has_own,
                               enum policy_annotation own);

/* Whether a method beyond the closed table is allowed by `methods.allow`. */
bool policy_allows_method(const struct policy *policy, struct str method);
