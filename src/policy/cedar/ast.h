/*
 * Parsed policies, which the evaluator reads: a tree in one arena that never changes afterwards.
 */
#pragma once

#include "value.h"

/*
 * The extension functions as one table, and the values they read from text.
 */

#define EXTENSION_MAX_ARITY 2

struct extension {
    struct str name;
    bool method;    /* called as receiver.name(…) */
    unsigned arity; /* with the receiver */
    enum cedar_kind takes[EXTENSION_MAX_ARITY];
    /* The arguments have the kinds above. False when they are refused. */
    bool (*call)(const struct extension *own, struct arena *arena,
                 const struct cedar_value *arguments, struct cedar_value *result);
    /* Of a number that is read from text. */
    bool (*parse)(struct str text, int64_t *number);
    enum cedar_kind gives;
    int64_t unit;              /* that a duration is counted in, in ms */
    bool less, equal, greater; /* of a comparison: when it holds */
};

/* NULL when there is no such function. */
const struct extension *extension_find(struct str name);
/* Checks number and kinds of the arguments, then calls. On failure `failure` has code and
 * detail, not policy and offset. */
bool extension_call(const struct extension *extension, struct arena *arena,
                    const struct cedar_value *arguments, size_t count, struct cedar_value *result,
                    struct cedar_failure *failure);

/* Adds `digit` behind `*number`; false beyond 64 bits. */
bool digits_append(uint64_t *number, char digit);

/* How high a tree may grow: chains of operators and of attributes count, too. */
#define NODE_MAX_HEIGHT 1000
/* How often ! or - may stand in front of an operand. */
#define SIGNS_MAX 4

enum node_kind {
    NODE_CONSTANT,
    NODE_VARIABLE,
    NODE_IF,
    NODE_AND, /* of any number of operands, as are OR, SET and CALL */
    NODE_OR,
    NODE_NOT,
    NODE_NEGATE,
    NODE_EQUAL,
    NODE_NOT_EQUAL,
    NODE_LESS,
    NODE_LESS_OR_EQUAL,
    NODE_GREATER,
    NODE_GREATER_OR_EQUAL,
    NODE_IN,
    NODE_ADD,
    NODE_SUBTRACT,
    NODE_MULTIPLY,
    NODE_CONTAINS,
    NODE_CONTAINS_ALL,
    NODE_CONTAINS_ANY,
    NODE_IS_EMPTY,
    NODE_GET_TAG,
    NODE_HAS_TAG,
    NODE_GET,
    NODE_HAS,
    NODE_LIKE,
    NODE_IS, /* with a second operand: is … in */
    NODE_SET,
    NODE_RECORD,
    NODE_CALL,
    NODE_KIND_COUNT
};

enum variable { VARIABLE_PRINCIPAL, VARIABLE_ACTION, VARIABLE_RESOURCE, VARIABLE_CONTEXT };

/* A piece of a pattern between two stars. */
struct pattern {
    const struct str *pieces; /* count of stars + 1 of them, possibly empty */
    size_t count;
    uint64_t weight; /* the cost of reading all pieces, in steps of the budget */
};

struct node {
    enum node_kind kind;
    uint32_t offset; /* of its operator or first token, in the source */
    uint32_t height; /* 1 for a leaf */
    uint32_t count;  /* of operands */
    const struct node *const *operands;
    union {
        struct cedar_value constant;
        enum variable variable;
        struct str name;         /* GET; IS: the type */
        const struct str *names; /* HAS: name_count of them; RECORD: one per operand */
        struct pattern pattern;
        const struct extension *extension;
    };
    uint32_t name_count;
    /* CONSTANT: the set, record or call that it was worked out from; NULL for a literal. */
    const struct node *written;
};

enum scope_kind { SCOPE_ANY, SCOPE_EQUAL, SCOPE_IN, SCOPE_IS, SCOPE_IS_IN };

/* The condition in the head of a policy on its principal, action or resource. */
struct scope {
    enum scope_kind kind;
    struct str type;                         /* IS, IS_IN */
    const struct cedar_uid *const *entities; /* EQUAL, IN, IS_IN; several for an action */
    size_t count;
};

struct annotation {
    struct str name, value;
};

struct source {
    const char *name;
    struct str text;
};

struct cedar_policy {
    struct str name;
    enum cedar_effect effect;
    const struct source *source;
    uint32_t start, end; /* offsets in the source */
    const struct annotation *annotations;
    size_t annotation_count;
    struct scope principal, action, resource;
    const struct node *condition; /* NULL when there is none */
};

struct policy_index;
struct guards;

struct cedar_policies {
    struct arena arena;
    struct source *sources;
    size_t source_count;
    struct cedar_policy **items;
    size_t count;
    struct policy_index *index;
    struct guards *guards;
};

/* A call receiver.name(…) that is not an extension. */
struct method {
    struct str name;
    enum node_kind kind;
    uint32_t operands; /* with the receiver */
};

const struct method *method_of(enum node_kind kind);

/* Whether `word` is one of the words that never name anything. */
bool name_is_reserved(struct str word);
/* Whether `word` is a name that needs no quotes, reserved or not. */
bool name_is_identifier(struct str word);
/* Whether `type` is Action, in any namespace. */
bool type_is_action(struct str type);
/* Line and column of a place in a source. */
struct cedar_position source_position(const struct source *source, size_t offset);
