/*
 * The JSON body of a POST; and that of a decision: {"reason", "requestDigest", "typed",
 * "emergency", "grant", "arguments"}, each may be missing.
 */
#pragma once

#include "taskgate/approval/votes.h"
#include "taskgate/core/error.h"

#include "internal.h"

/* Whether it is announced as JSON; else answers 415. `may_be_missing`: one of no bytes and no
 * type will do. */
bool body_is_json(const struct request *request, bool may_be_missing);
/* Whether the raw key between quotes, as json_next_member() gives it, reads `name`. */
bool body_key_is(struct str key, const char *name);

/* ---- that of a decision ---- */

struct decision_body {
    char *reason;       /* owned by the caller; NULL without one */
    char *typed;        /* owned by the caller; or NULL */
    char *shown_digest; /* requestDigest, owned by the caller; or NULL */
    char *arguments;    /* the whole object of an edit, JSON text, owned by the caller; or NULL */
    bool is_emergency;
    struct ballot_wish grant;
};

/* Answers the request with an error and returns false when the body is not good; then nothing is
 * owned. `is_approval`: it may have more than a reason and a digest. */
bool decision_body_read(const struct request *request, bool is_approval,
                        struct decision_body *body);
/* The same of a typed value. */
bool decision_body_read_typed(struct str value, char **typed, struct error *error);
/* Reads the JSON value of a requestDigest, null included, into a text that the caller frees. */
bool decision_body_read_digest(struct str value, char **digest, struct error *error);
/* Reads the JSON value of a reason, null included, into a text that the caller frees. */
bool decision_body_read_reason(struct str value, char **reason, struct error *error);
