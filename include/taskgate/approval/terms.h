/*
 * The terms of a workflow: who may vote on a call, and how many must approve it. A task keeps those
 * of its creation as JSON. A value without I/O; any thread. Behaviour 9.7.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* A set of texts that the holder owns. */
struct ballot_names {
    char **items;
    size_t count;
};
bool ballot_names_has(const struct ballot_names *names, const char *name);
/* Adds a copy, unless it is there. */
void ballot_names_add(struct ballot_names *names, const char *name);
void ballot_names_add_all(struct ballot_names *names, const struct ballot_names *more);
/* Whether any name is in both. */
bool ballot_names_meet(const struct ballot_names *left, const struct ballot_names *right);
/* Frees what it holds; it is empty afterwards. */
void ballot_names_finish(struct ballot_names *names);
/* As an array of JSON texts. */
void ballot_names_write(struct buffer *out, const struct ballot_names *names);
/* Adds the texts of a JSON array that json_check() has accepted. */
void ballot_names_read(struct ballot_names *names, struct str array);

/* A number of persons of a group; `group` is NULL where any group will do. */
struct ballot_need {
    char *group;
    int64_t count;
};

/* The most persons that a workflow may ask for, in all. */
#define BALLOT_MOST_PERSONS 100

/* Whether an approver may let the same call run again without being asked, and how far. */
struct ballot_grants {
    bool are_offered;
    int64_t max_ms, max_calls; /* the most that one may ask for */
    struct ballot_names vary;  /* dot paths into the arguments that need not be the same */
    struct ballot_names by;    /* groups who may; none: everybody who may vote */
};

/* The calls whose approval needs a typed value: those of high risk by the rule's word, by that of
 * the rule or the server, or none. The numbers are stored. */
enum ballot_typing { BALLOT_TYPING_RULE, BALLOT_TYPING_HIGH, BALLOT_TYPING_OFF };

struct ballot_terms {
    bool is_unreadable; /* of a damaged store: nobody may vote */
    /* A voter is in one of the groups, or one of the people. Without any: everybody. */
    struct ballot_names groups, people;
    int64_t quorum; /* distinct persons; 0: `needs` says how many of which group */
    struct ballot_need *needs;
    size_t need_count;
    bool approve_needs_reason, reject_needs_reason;
    struct ballot_names emergency; /* groups of whom one decides alone in an emergency */
    struct ballot_grants grants;
    enum ballot_typing typing;
    struct ballot_names allow_edit; /* dot paths into the arguments that an approver may change */
};

/* Those of a workflow without any of the keys: any one person. */
void ballot_terms_init(struct ballot_terms *terms);
void ballot_terms_finish(struct ballot_terms *terms);
/* Adds so many of a group. */
void ballot_terms_add_need(struct ballot_terms *terms, const char *group, int64_t count);
/* Whether any one person decides, with or without a reason. Grants, edits and typed values do not
 * matter. */
bool ballot_terms_are_plain(const struct ballot_terms *terms);
/* How many persons must approve. */
int64_t ballot_terms_persons(const struct ballot_terms *terms);

/* As JSON; nothing for those that ballot_terms_init() makes. */
void ballot_terms_write(struct buffer *out, const struct ballot_terms *terms);
/* Reads what ballot_terms_write() wrote, into terms that ballot_terms_finish() frees. Other text:
 * is_unreadable. */
void ballot_terms_read(struct ballot_terms *terms, struct str text);
