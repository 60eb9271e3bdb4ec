/*
 * Values of the policy: the call that is judged, the decision, and why it was made. Borrowed unless
 * they say otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/config/config.h"
#include "taskgate/core/str.h"

struct cedar_policy;
/* Its name for people: its @id, else "policy0" … by place. */
struct str policy_name_of(const struct cedar_policy *policy);

/* A caller whose token was verified, in the words of the issuer. Borrowed. */
struct policy_verified {
    struct str issuer, subject;
    struct config_strings groups, scopes;
};

/* The caller. */
struct policy_principal {
    /* "auth:<hex>", "sub:<hex>", "session:<hex>", "admin:<name>", "anonymous" or
     * "anonymous:shared" */
    struct str owner;
    struct str client_name, client_version; /* as the client calls itself; nobody vouches for it */
};

/* Upstream's word on a tool; bits 1 << enum policy_hint. */
enum policy_hint { HINT_READ_ONLY, HINT_DESTRUCTIVE, HINT_IDEMPOTENT, HINT_OPEN_WORLD, HINT_COUNT };
struct policy_hints {
    unsigned given, truth;
};
/* "readOnlyHint" … */
const char *policy_hint_name(enum policy_hint hint);

/* Facts that Cedar policies may ask about beyond name and arguments. */
struct policy_facts {
    struct policy_principal principal;
    struct policy_hints hints;
    int64_t now_ms; /* wall clock, read once for the whole request */
};

/* The request that is judged. */
struct policy_request {
    const struct config_source *source;
    struct str name;      /* tool or prompt name, or resource URI */
    struct str arguments; /* JSON text that json_check() has accepted; empty counts as {} */
    const struct policy_verified *verified; /* the caller; NULL: no token was verified */
    const char *definition; /* digest of the tool as the caller knows it; NULL or "": not known */
    bool is_no_tool;        /* but a prompt or a resource */
};

struct policy_decision {
    enum config_action action;
    bool by_policies;                       /* Cedar policies made it of ACTION_POLICY */
    const struct config_rule *rule;         /* NULL: the default action */
    size_t rule_index;                      /* meaning only with a rule */
    const struct config_workflow *workflow; /* for ACTION_APPROVE and ACTION_POLICY; else NULL */
    bool force_required;                    /* the name is in force_required */
    enum config_execution execution;
    /* The tool is not the one that was accepted, and its source asks for approval then: what would
     * be forwarded waits for the rule's own workflow, or for `default`. */
    bool is_changed;
};

/* Facts that a rehearsal of a call may lack; bits. */
enum policy_unknown {
    UNKNOWN_ARGUMENTS = 1,
    UNKNOWN_CALLER = 2, /* the caller, the time, and upstream's word of the tool then */
};

/* Why policies decided as they did, for people; the texts live as long as the policy. */
enum policy_finding_kind {
    FINDING_PERMIT, /* it applied, and nothing forbade */
    FINDING_FORBID,
    FINDING_ERROR, /* it could not be evaluated */
};
struct policy_finding {
    enum policy_finding_kind kind;
    const char *action; /* that was asked about: "Forward", "Approve" or "tools/call" */
    const struct cedar_policy *cedar;
    struct str policy; /* policy_name_of() */
    bool is_forbid;
    const char *file;
    unsigned line, column;
    char *error; /* of FINDING_ERROR: a sentence without any value of the request; else NULL */
};
struct policy_trace {
    struct policy_finding *items;
    size_t count;
    const char *failure; /* why none could be asked, or NULL */
};
/* Zeroed before the first use. */
void policy_trace_finish(struct policy_trace *trace);
