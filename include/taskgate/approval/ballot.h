/*
 * The ballot on a call: whether somebody may vote, and what is missing then. It knows no clock, no
 * store and no configuration: terms, votes and the person who asks come in, an answer goes out.
 *
 * Votes of distinct persons count, one of each; a person fills one place. Nobody votes on a call of
 * their own. Any thread. Behaviour 9.1 to 9.7.
 */
#pragma once

#include "taskgate/approval/terms.h"
#include "taskgate/approval/votes.h"

struct ballot {
    struct ballot_terms terms;
    struct ballot_votes votes;
};

/* Reads both from what a task keeps. Votes that cannot be read make the terms unreadable, too. */
void ballot_read(struct ballot *ballot, struct str terms, struct str votes);
void ballot_finish(struct ballot *ballot);

/* Why a vote is refused, in the order in which it is asked. */
enum ballot_refusal {
    BALLOT_ACCEPTED,
    BALLOT_OWN_CALL,
    BALLOT_NOT_AN_APPROVER,
    BALLOT_NOT_PENDING,
    BALLOT_CHANGED,            /* another request was shown to the voter */
    BALLOT_DEFINITION_CHANGED, /* the tool is another one than that of the call */
    BALLOT_REASON_REQUIRED,
    BALLOT_ALREADY_VOTED,
    BALLOT_TYPED_REQUIRED,
    BALLOT_TYPED_WRONG,
    BALLOT_NO_VOTE,           /* there is none to withdraw */
    BALLOT_NOT_A_GRANTER,     /* the voter may approve, but give no grants */
    BALLOT_GRANT_NOT_ALLOWED, /* calls of this kind get none */
    BALLOT_EDIT_NOT_ALLOWED,  /* not this one, or not here */
    BALLOT_GRANT_TOO_LARGE,   /* longer or oftener than the terms say */
};
/* "own_call", "not_an_approver" …; NULL for BALLOT_ACCEPTED. */
const char *ballot_refusal_code(enum ballot_refusal refusal);

/* Whether the voter has typed the value that this approval needs. */
enum ballot_typed {
    BALLOT_TYPED_NOT_ASKED,
    BALLOT_TYPED_FITS,
    BALLOT_TYPED_MISSING,
    BALLOT_TYPED_OTHER,
};

/* A vote that a person asks for, and the call that it is about. */
struct ballot_question {
    const struct person *voter;
    bool is_own;     /* the voter made the call */
    bool is_pending; /* the call waits for a decision */
    /* Digests of the request, and of that which the voter was shown. Nothing is compared where one
     * is not known: "" or NULL. */
    const char *request_digest, *shown_digest;
    enum ballot_verb verb;
    bool definition_changed; /* an approval would fail; meaningless for other votes */
    bool has_reason;
    bool is_emergency; /* an approval by one alone */
    enum ballot_typed typed;
    struct ballot_wish grant;
};
enum ballot_refusal ballot_judge(const struct ballot *ballot,
                                 const struct ballot_question *question);
/* The same for taking a vote back; the verb and the reason do not matter. */
enum ballot_refusal ballot_judge_withdrawal(const struct ballot *ballot,
                                            const struct ballot_question *question);
/* Whether the terms let this person vote, on whatever call; and decide alone in an emergency. */
bool ballot_may_vote(const struct ballot_terms *terms, const struct person *person);
bool ballot_may_in_emergency(const struct ballot_terms *terms, const struct person *person);

/* The approvals that count: they stand, and the terms let their persons vote. */
int64_t ballot_approvals(const struct ballot *ballot);
/* The votes that are missing for an approval, as many needs as the terms have, at least one; each
 * may be 0. The caller frees the array; the groups are those of the terms. The fewest are missing
 * that any way of giving out the places leaves; where several ways do, groups that stand first are
 * filled first. */
struct ballot_need *ballot_missing(const struct ballot *ballot, size_t *count);
/* Whether nothing is missing. */
bool ballot_is_filled(const struct ballot *ballot);
/* As a member of an object: {"count": n}, or {GROUP: n} without groups of which nobody is missing.
 */
void ballot_needs_write(struct buffer *out, const char *key, const struct ballot_need *needs,
                        size_t count);

/* The grant that all approvals that count ask for alike. False when they ask for nothing, or
 * differ. */
bool ballot_grant(const struct ballot *ballot, struct ballot_wish *wish);
/* Whether the terms let this person give grants. */
bool ballot_may_grant(const struct ballot_terms *terms, const struct person *person);
