/*
 * An embedded engine for the Cedar policy language, version 4.5: policies from text,
 * entities, one decision per request.
 *
 * Authorization alone: no validator, no templates, no partial evaluation, no policies in
 * JSON. Policies and sealed entities never change and may be used by any thread; a heap, a
 * response and entities under construction belong to one thread at a time. Nothing here
 * blocks. Strings carry lengths and may hold NUL; they are UTF-8, which is the caller's duty
 * where values are built by hand. Source: docs.cedarpolicy.com, "Policy syntax".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* ---- Values ---------------------------------------------------------------------------- */

/* How deep sets and records may nest in a value, and expressions in a policy. */
#define CEDAR_MAX_VALUE_DEPTH 128
#define CEDAR_MAX_NESTING 200

enum cedar_kind {
    CEDAR_BOOL,
    CEDAR_LONG,
    CEDAR_STRING,
    CEDAR_ENTITY,
    CEDAR_SET,
    CEDAR_RECORD,
    CEDAR_DECIMAL,
    CEDAR_DATETIME,
    CEDAR_DURATION,
    CEDAR_IP,
    CEDAR_UNKNOWN, /* see cedar_unknown() */
    CEDAR_KIND_COUNT
};

/* The name of an entity: User::"alice". Made by cedar_uid(), which fills `hash`. */
struct cedar_uid {
    struct str type; /* "User", "ThoughtGate::App" */
    struct str id;
    uint64_t hash;
};

struct cedar_set;
struct cedar_record;
struct cedar_ip;

/* The memory behind its pointers lives in a heap, in policies or in entities; none of it changes.
 */
struct cedar_value {
    enum cedar_kind kind;
    union {
        bool boolean;
        int64_t number; /* Long; decimal in ten-thousandths; datetime and duration in ms */
        struct str text;
        const struct cedar_uid *entity;
        const struct cedar_set *set;
        const struct cedar_record *record;
        const struct cedar_ip *ip;
    };
};

/* Memory for values, given back all at once. */
struct cedar_heap;
struct cedar_heap *cedar_heap_create(void);
void cedar_heap_destroy(struct cedar_heap *heap);
/* Empties it and keeps its first block: for one heap per thread. */
void cedar_heap_reset(struct cedar_heap *heap);
struct str cedar_heap_copy(struct cedar_heap *heap, struct str s);

struct cedar_member {
    struct str name;
    struct cedar_value value;
};

/* Borrows `type` and `id`. */
struct cedar_uid cedar_uid(struct str type, struct str id);
bool cedar_uid_equal(const struct cedar_uid *a, const struct cedar_uid *b);
/* Whether `type` is a path of identifiers joined by "::", none of them reserved. */
bool cedar_type_is_valid(struct str type);
/* Reads `Type::"id"`, as written in policies, into `heap`. */
bool cedar_uid_parse(struct cedar_heap *heap, struct str text, struct cedar_uid *uid,
                     struct error *error);

struct cedar_value cedar_bool(bool value);
struct cedar_value cedar_long(int64_t value);
struct cedar_value cedar_string(struct str borrowed);
/* Milliseconds since 1970-01-01T00:00:00Z. */
struct cedar_value cedar_datetime(int64_t ms);
/* An attribute that exists with an unknown value; only as a member of a record. A policy that
 * reads it fails with CEDAR_FAILURE_UNKNOWN. Other policies are not affected. */
struct cedar_value cedar_unknown(void);
/* Copies the uid and its texts. */
struct cedar_value cedar_entity(struct cedar_heap *heap, const struct cedar_uid *uid);
/* Equal elements count once. False when it would nest deeper than CEDAR_MAX_VALUE_DEPTH. */
bool cedar_set(struct cedar_heap *heap, const struct cedar_value *elements, size_t count,
               struct cedar_value *set);
/* Names are borrowed. False on a name twice or too deep a nesting. */
bool cedar_record(struct cedar_heap *heap, const struct cedar_member *members, size_t count,
                  struct cedar_value *record);
/* As cedar_record(), for names that another program may read without case (taskgate/json/fold.h).
 * If a policy asks for a name, and a member with another name has the same folded name, the policy
 * fails with CEDAR_FAILURE_VARIANT. */
bool cedar_record_of_names(struct cedar_heap *heap, const struct cedar_member *members,
                           size_t count, struct cedar_value *record);
/* Calls an extension function: ip, decimal, datetime, duration or one of their methods.
 * False, with a sentence, when there is none of that name or it refuses. */
bool cedar_call(struct cedar_heap *heap, struct str function, const struct cedar_value *arguments,
                size_t count, struct cedar_value *result, struct error *error);

bool cedar_value_equal(const struct cedar_value *a, const struct cedar_value *b);
const char *cedar_kind_name(enum cedar_kind kind);
/* NULL when `record` has no such member. */
const struct cedar_value *cedar_record_get(const struct cedar_record *record, struct str name);

/* Reads Cedar's JSON form of a value, with its escapes __entity and __extn. Text of an
 * agent never passes through here: it could name entities. */
bool cedar_value_read_json(struct cedar_heap *heap, struct str json, struct cedar_value *value,
                           struct error *error);
/* Reads {"type": …, "id": …}, the same inside {"__entity": …}, or the string `Type::"id"`. */
bool cedar_uid_read_json(struct cedar_heap *heap, struct str json, struct cedar_uid *uid,
                         struct error *error);

/* ---- Policies -------------------------------------------------------------------------- */

struct cedar_policies;
struct cedar_policy;

enum cedar_effect { CEDAR_PERMIT, CEDAR_FORBID };

struct cedar_source {
    const char *name; /* as shown in messages */
    struct str text;
};

struct cedar_position {
    const char *source;
    unsigned line, column; /* from 1; columns count characters */
};

/* Parses all sources into one set. NULL when any text is wrong; `problems` then holds one
 * line for each mistake, `NAME:LINE:COLUMN: MISTAKE; EXPECTATION`, at most 100. */
struct cedar_policies *cedar_policies_parse(const struct cedar_source *sources, size_t count,
                                            struct buffer *problems);
void cedar_policies_destroy(struct cedar_policies *policies);
size_t cedar_policies_count(const struct cedar_policies *policies);
/* In the order of the sources. */
const struct cedar_policy *cedar_policies_at(const struct cedar_policies *policies, size_t index);

/* "policy0", "policy1", … by place, without regard to @id. */
struct str cedar_policy_name(const struct cedar_policy *policy);
enum cedar_effect cedar_policy_effect(const struct cedar_policy *policy);
/* False when it has no such annotation; an annotation without a value has the value "". */
bool cedar_policy_annotation(const struct cedar_policy *policy, struct str name, struct str *value);
struct cedar_position cedar_policy_position(const struct cedar_policy *policy);
/* From the first annotation or the effect to the semicolon. */
struct str cedar_policy_text(const struct cedar_policy *policy);

/* ---- Entities -------------------------------------------------------------------------- */

struct cedar_entities;

struct cedar_entities *cedar_entities_create(void);
void cedar_entities_destroy(struct cedar_entities *entities);
/* The arena of its entities' values. */
struct cedar_heap *cedar_entities_heap(struct cedar_entities *entities);
/* `attributes` and `tags` are records, or NULL for none; the uids are copied. The same entity
 * may be added again only with the same content. */
bool cedar_entities_add(struct cedar_entities *entities, const struct cedar_uid *uid,
                        const struct cedar_record *attributes, const struct cedar_record *tags,
                        const struct cedar_uid *parents, size_t parent_count, struct error *error);
/* Adds an array of {"uid", "attrs", "parents", "tags"?}. */
bool cedar_entities_read_json(struct cedar_entities *entities, struct str json,
                              struct error *error);
/* Computes the ancestors of all entities. Required before the first decision; no entity is added
 * after it.
 * False when an entity would be its own ancestor, or there are too many ancestors. */
bool cedar_entities_seal(struct cedar_entities *entities, struct error *error);

/* The same of a file, sealed. NULL when anything is wrong; `problems` then holds one line for
 * each thing, as those of cedar_policies_parse(). */
struct cedar_entities *cedar_entities_parse(const struct cedar_source *source,
                                            struct buffer *problems);

/* ---- Decisions ------------------------------------------------------------------------- */

struct cedar_request {
    struct cedar_uid principal, action, resource;
    const struct cedar_record *context; /* NULL counts as {} */
    uint64_t budget;                    /* steps of evaluation; 0 for CEDAR_DEFAULT_BUDGET */
    /* The policies that are asked; NULL for all. */
    bool (*asks)(const struct cedar_policy *policy, void *data);
    void *asks_data;
    /* A policy that reads the principal fails with CEDAR_FAILURE_UNKNOWN. */
    bool principal_is_unknown;
    /* Every policy is evaluated, in place of those alone that the index and the first comparisons
     * leave. The outcome is the same, which the tests show with it. */
    bool without_shortcuts;
};

/* Reads {"principal", "action", "resource", "context"?} into `request`. */
bool cedar_request_read_json(struct cedar_heap *heap, struct str json,
                             struct cedar_request *request, struct error *error);

/* All requests of a file: an array, or an object with such an array as "requests"; other members
 * are ignored. NULL when anything is wrong, as cedar_entities_parse(). */
struct cedar_requests;
struct cedar_requests *cedar_requests_parse(const struct cedar_source *source,
                                            struct buffer *problems);
void cedar_requests_destroy(struct cedar_requests *requests);
size_t cedar_requests_count(const struct cedar_requests *requests);
/* Lives as long as `requests`. */
const struct cedar_request *cedar_requests_at(const struct cedar_requests *requests, size_t index);

/* A few hundred milliseconds on one core at worst; a thousand policies take some 10000. */
#define CEDAR_DEFAULT_BUDGET UINT64_C(5000000)

enum cedar_decision { CEDAR_DENY, CEDAR_ALLOW };

enum cedar_failure_code {
    CEDAR_FAILURE_TYPE,      /* a value of another type than the operator takes */
    CEDAR_FAILURE_ATTRIBUTE, /* no such attribute */
    CEDAR_FAILURE_VARIANT,   /* another attribute could be taken for it */
    CEDAR_FAILURE_TAG,
    CEDAR_FAILURE_ENTITY,   /* an attribute or tag of an entity that is not there */
    CEDAR_FAILURE_OVERFLOW, /* beyond 64 bits */
    CEDAR_FAILURE_CALL,     /* an extension function refused its argument */
    CEDAR_FAILURE_ARITY,
    CEDAR_FAILURE_BUDGET,
    CEDAR_FAILURE_DEPTH,   /* a value that it makes would nest deeper than CEDAR_MAX_VALUE_DEPTH */
    CEDAR_FAILURE_UNKNOWN, /* it depends on an unknown value */
};

/* A policy that could not be evaluated and was skipped. It holds nothing of the request. */
struct cedar_failure {
    const struct cedar_policy *policy;
    enum cedar_failure_code code;
    uint32_t offset;   /* of the expression, in the policy's source */
    unsigned expected; /* CEDAR_FAILURE_TYPE: bits 1 << enum cedar_kind */
    enum cedar_kind found;
    struct str name; /* the attribute's or the function's, from the policy's text; or "principal" */
};

/* Reused from one decision to the next so that most of them allocate nothing. */
struct cedar_response {
    enum cedar_decision decision;
    /* A policy ran into a limit of this engine, CEDAR_FAILURE_BUDGET or _DEPTH. It might forbid, so
     * the decision is deny, for any reasons. The last failure tells the limit. */
    bool exhausted;
    const struct cedar_policy **reasons; /* determining policies, in order */
    size_t reason_count;
    struct cedar_failure *failures; /* in order */
    size_t failure_count;
    /* Private. */
    size_t reason_capacity, failure_capacity;
    struct cedar_heap *scratch;
};

void cedar_response_init(struct cedar_response *response);
void cedar_response_finish(struct cedar_response *response);

/* Any satisfied forbid denies, else any satisfied permit allows, else deny. The reasons are
 * the satisfied forbids or, when there are none, the satisfied permits. */
void cedar_authorize(const struct cedar_policies *policies, const struct cedar_entities *entities,
                     const struct cedar_request *request, struct cedar_response *response);

/* "type error: expected bool, found string", in a sentence without any value. */
void cedar_failure_write(const struct cedar_failure *failure, struct buffer *out);
struct cedar_position cedar_failure_position(const struct cedar_failure *failure);

/* ---- Back to text, in one layout -------------------------------------------------------- */

/*
 * The output reads back as policies that decide alike: the same conditions, sets in their written
 * order, calls in their written form. White space, comments, unnecessary parentheses and the
 * spelling of strings are lost. Printing a printed text changes nothing.
 */
/* All of them, an empty line between two. */
void cedar_policies_print(const struct cedar_policies *policies, struct buffer *out);
/* From the first annotation or the effect to the semicolon and a line end. */
void cedar_policy_print(const struct cedar_policy *policy, struct buffer *out);
