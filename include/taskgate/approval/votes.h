/*
 * Votes on a call, and the persons who gave them. A task keeps its votes as JSON: with the groups
 * and the credentials of each person, from which it can be told later whether the vote still
 * stands. A value without I/O; any thread.
 */
#pragma once

#include "taskgate/approval/person.h"

enum ballot_verb { BALLOT_APPROVE, BALLOT_REJECT };
/* "approve", "reject". */
const char *ballot_verb_name(enum ballot_verb verb);

/* The same call again, so long and so often. Both are 0 where nothing is asked for. */
struct ballot_wish {
    int64_t for_ms, calls;
};

struct ballot_vote {
    struct person person;
    enum ballot_verb verb;
    int64_t at_ms;  /* wall clock */
    char *reason;   /* or NULL */
    char *reaction; /* mark of the message whose reaction it is; NULL: it is none */
    bool is_emergency;
    struct ballot_wish grant; /* the grant that an approval asks for */
    bool stands;              /* not stored: whether it counts now; true once it is read */
};
struct ballot_votes {
    struct ballot_vote *items; /* in the order in which they were given */
    size_t count;
};

void ballot_votes_finish(struct ballot_votes *votes);
/* Adds a vote, which stands; it copies what it is given. */
struct ballot_vote *ballot_votes_add(struct ballot_votes *votes, const struct person *person,
                                     enum ballot_verb verb);
void ballot_votes_remove(struct ballot_votes *votes, size_t index);
/* The vote of a person, or NULL. */
struct ballot_vote *ballot_votes_of(const struct ballot_votes *votes, const struct person *person);
/* As a JSON array; nothing where there are none. */
void ballot_votes_write(struct buffer *out, const struct ballot_votes *votes);
/* Reads what ballot_votes_write() wrote. False for other text; `votes` is empty then. */
bool ballot_votes_read(struct ballot_votes *votes, struct str text);
