/*
 * The engine of `action: policy`: the Cedar policies of a configuration, and the order in which
 * they are asked. Immutable once made, any thread.
 */
#pragma once

#include "taskgate/policy/cedar.h"
#include "taskgate/policy/judgement.h"

/* How deep lists and objects of arguments may nest; deeper ones are rejected. */
#define ENGINE_MAX_ARGUMENT_DEPTH 64

struct engine;

/* One call, and the receiver of the reasons; `trace` may be NULL. */
struct inquiry {
    const struct policy_request *request;
    const struct policy_facts *facts;
    struct policy_trace *trace;
    bool is_rehearsal; /* nothing is counted or logged */
    unsigned unknown;  /* UNKNOWN_… bits */
};

/* Parses and checks the policies of `config`, which must outlive the engine. NULL with errors
 * in `problems`; warnings may be there in any case. */
struct engine *engine_create(const struct config *config, struct config_problems *problems);
void engine_destroy(struct engine *engine); /* NULL is allowed */
size_t engine_policy_count(const struct engine *engine);
const struct cedar_policies *engine_policies(const struct engine *engine);
/* `decision` is that of a rule with ACTION_POLICY, and becomes the decision of the policies.
 * Returns the UNKNOWN_… bits of missing facts that it depends on; it is then unchanged. */
unsigned engine_decide(const struct engine *engine, const struct inquiry *inquiry,
                       struct policy_decision *decision);

/* Makes a value of JSON text that json_check() has accepted: plain values only, for
 * keys of any names, never an entity or an extension value. Integers of 64 bits are numbers, all
 * other numbers the text they were written as; null is an empty record. False when it nests
 * deeper than ENGINE_MAX_ARGUMENT_DEPTH. Records are cedar_record_of_names(). Strings are borrowed
 * from `json` or live in `heap`. */
bool arguments_convert(struct cedar_heap *heap, struct str json, struct cedar_value *value);

/* ---- question.c: one request in the words of the policies ---- */
struct question {
    struct cedar_entities *entities;
    struct cedar_request request; /* all but the action */
};

/* NULL, or why no policy can be asked. question_finish() in any case. */
const char *question_init(struct question *question, const struct inquiry *inquiry,
                          const struct policy_decision *decision);
void question_finish(struct question *question);
/* ThoughtGate::Action::"name". */
struct cedar_uid question_action(const char *name);

/* Shared by the two files of the engine. */

struct engine {
    const struct config *config;
    struct cedar_policies *policies;
};

/* The workflow that a policy names, or NULL. */
const struct config_workflow *engine_workflow_of(const struct engine *engine,
                                                 const struct cedar_policy *policy);
/* Whether a rule with `policy_id` (NULL: the default action) asks the policy: those without an
 * @id are asked by every rule, the others by the rules that name them. */
bool engine_asks(const struct cedar_policy *policy, const char *policy_id);
