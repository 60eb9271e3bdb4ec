/*
 * The policy: which action a tool, prompt or resource gets, and what a tool is announced as.
 *
 * Compiled once from a configuration, immutable, any thread. policy_decide() is the one place where
 * a rule decides, policy_consult() the one where Cedar policies do. Behaviour 5.4, 6.1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/config/config.h"
#include "taskgate/core/str.h"
#include "taskgate/policy/judgement.h"

/* `taskSupport`: what a tool is announced as, in both spellings of the protocol. */
enum policy_annotation { ANNOTATION_FORBIDDEN, ANNOTATION_OPTIONAL, ANNOTATION_REQUIRED };
/* "forbidden", "optional", "required". */
const char *policy_annotation_name(enum policy_annotation annotation);
bool policy_annotation_parse(struct str name, enum policy_annotation *annotation);

struct policy;

/* Holds a reference to `config`. NULL with errors in `problems` when a Cedar policy is wrong:
 * all of its errors, each with its place; warnings may be there in any case. Destroy takes
 * NULL. */
struct policy *policy_create(struct config *config, struct config_problems *problems);
void policy_destroy(struct policy *policy);
/* How many Cedar policies there are. */
size_t policy_count(const struct policy *policy);
struct cedar_policies;
const struct cedar_policies *policy_cedar(const struct policy *policy);
/* First matching rule of the source wins, else the default action. A rule with `principals` matches
 * the calls of verified callers alone. Costs no walk over all
 * rules: names are looked up in an index by literal prefix. Allocates nothing. */
void policy_decide(const struct policy *policy, const struct policy_request *request,
                   struct policy_decision *decision);

/* Whether the decision may be another one for another caller: `principals` stand in the first rule
 * for the name. */
bool policy_hangs_on_caller(const struct policy *policy, const struct policy_request *request);
/* The rules with `principals` are for the caller (NULL: nobody was verified), one bit each:
 * callers with equal bits get equal decisions of the rules. false: there are more than 64. */
bool policy_principal_bits(const struct policy *policy, const struct policy_verified *verified,
                           uint64_t *bits);

/* Whether a human or Cedar policies are to judge the call, and its arguments have keys beside one
 * another that fold alike (taskgate/json/fold.h) though its rule does not allow it: then two
 * readers could see two calls. `decision` is that of policy_decide(); `error` (may be NULL) says
 * where. Linear in the arguments. */
bool policy_refuses_arguments(const struct policy_request *request,
                              const struct policy_decision *decision, struct error *error);

struct policy_trace;
/* Asks the Cedar policies when `decision` is ACTION_POLICY, and makes it ACTION_FORWARD,
 * ACTION_APPROVE with the workflow that they or the rule name, or ACTION_DENY; any other
 * decision stays as it is. `trace` may be NULL. */
void policy_consult(const struct policy *policy, const struct policy_request *request,
                    const struct policy_facts *facts, struct policy_trace *trace,
                    struct policy_decision *decision);

/* As policy_consult(), but nothing is counted and nothing logged: it tells what would
 * be. 0 when it is decided; else what the decision hangs on of `unknown`, and `decision` is
 * still ACTION_POLICY. `request` and `facts` may lack the unknown. */
unsigned policy_rehearse(const struct policy *policy, const struct policy_request *request,
                         const struct policy_facts *facts, unsigned unknown,
                         struct policy_trace *trace, struct policy_decision *decision);

/* Whether `expose` and `enabled` of the source let clients see the name at all, and, of a tool, a
 * prompt or a skill, `hide_flagged`, `pin.prompts` and `pin.skills`. */
bool policy_is_exposed(const struct policy *policy, const struct config_source *source,
                       struct str name);
bool policy_is_visible(const struct policy *policy, const struct config_source *source,
                       struct str tool);
/* A definition that is on its way to a client: two servers' answers at once may define a name
 * differently, so it is judged by itself as well. NULL below: the last one alone. */
struct policy_entry {
    const char *digest;
    unsigned flags;
};
bool policy_is_prompt_visible(const struct policy *policy, const struct config_source *source,
                              struct str prompt, const struct policy_entry *entry);
/* Without `expose`, which judges URIs. */
bool policy_is_skill_visible(const struct policy *policy, const struct config_source *source,
                             struct str uri, const struct policy_entry *entry);

/* The same of a resource, whose URI may be spelled in several ways (taskgate/policy/uri.h): it is
 * looked at as it is written and as it is normalized, and the stricter outcome holds. From loose to
 * strict: forward; approve and policy; deny; hidden. */
bool policy_is_uri_visible(const struct policy *policy, const struct config_source *source,
                           struct str uri);
void policy_decide_uri(const struct policy *policy, const struct policy_request *request,
                       struct policy_decision *decision);

/* Whether the rule refuses clients that do not know tasks (`require_tasks`). */
bool policy_requires_tasks(const struct policy_decision *decision);

/* The matrix for announcements (behaviour 5.4): what a tool is announced as. `own` is upstream's
 * own value for the tool; `has_own` whether it gave one. */
enum policy_annotation policy_annotate(const struct policy_decision *decision, bool upstream_tasks,
                                       bool has_own, enum policy_annotation own);

/* The same for a client that knows no tasks, which may still send `task`: it makes plain calls, and
 * is announced `required` where the rule refuses those. ANNOTATION_FORBIDDEN: nothing. */
enum policy_annotation policy_annotate_plain(const struct policy_decision *decision,
                                             enum policy_annotation announced);

/* The outcome of a call: policy_route() has those of the matrix for calls (behaviour 5.4),
 * policy_outcome() any. */
enum policy_route {
    ROUTE_FORWARD,          /* the client's bytes go up as they are */
    ROUTE_DENIED,           /* -32014 */
    ROUTE_REJECTED,         /* -32003 */
    ROUTE_APPROVAL,         /* a task that waits for a human */
    ROUTE_ACCELERATED,      /* a task that starts approved */
    ROUTE_TASK_REQUIRED,    /* -32009 */
    ROUTE_TASK_FORBIDDEN,   /* -32010 */
    ROUTE_HELD,             /* plain, and held: its task waits for a human */
    ROUTE_HELD_ACCELERATED, /* plain, and held: its task starts approved */
    ROUTE_LACKS_EXTENSION,  /* -32021 */
    POLICY_ROUTE_COUNT
};
enum policy_route policy_route(const struct policy_decision *decision,
                               enum policy_annotation announced, bool has_task, bool has_own,
                               enum policy_annotation own);

/* The traits of a client that the outcome of its call depends on. */
struct policy_caller {
    bool is_modern;
    bool has_task;    /* legacy: the call has `task` */
    bool knows_tasks; /* modern: it declares the tasks extension */
    bool is_executed; /* legacy: execute_tool makes the call, and waits for it */
};

/* Whether policies are asked about the call. They are not where the call is refused before. */
bool policy_asks_policies(const struct policy_caller *caller,
                          const struct policy_decision *decision);

/* The outcome of the call in either era. The gateway acts by it, and `explain` shows it. */
enum policy_route policy_outcome(const struct policy_caller *caller,
                                 const struct policy_decision *decision,
                                 enum policy_annotation announced, bool has_own,
                                 enum policy_annotation own);

/* Whether a method beyond the closed table is allowed by `methods.allow`. */
bool policy_allows_method(const struct policy *policy, struct str method);

/* The word of the source's `extensions` on an extension of the protocol: deny wins. */
enum policy_extension {
    POLICY_EXTENSION_UNNAMED,
    POLICY_EXTENSION_ALLOWED,
    POLICY_EXTENSION_DENIED
};
enum policy_extension policy_extension(const struct policy *policy,
                                       const struct config_source *source, struct str name);
