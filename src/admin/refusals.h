/*
 * Refused credentials and sign-ins of operators: each is counted, and each kind has a line in the
 * log at most every ten seconds, and a row in the audit trail at most every minute. Never the
 * credentials themselves.
 */
#pragma once

#include "internal.h"

struct refusal {
    const char *via;    /* "token", "oidc", "session", "certificate"; NULL: a sign-in */
    const char *reason; /* a word of the code's own: label of the metric */
    const char *detail; /* for the log alone, or NULL */
    const char *person; /* or NULL: not known */
    struct str client;  /* address of the peer; empty: not known any more */
};

struct refusals *refusals_create(void);
void refusals_destroy(struct refusals *refusals); /* NULL is allowed */
void refusals_note(struct admin *admin, const struct refusal *refusal);
