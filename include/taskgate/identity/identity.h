/*
 * A person or program, as its issuer has it. Immutable and reference-counted; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/approval/person.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/str.h"

struct identity_list {
    char **items; /* NUL-terminated, without NUL inside */
    size_t count;
};

struct identity {
    unsigned references; /* identity_ref() and identity_unref() alone touch it */
    char *issuer, *subject;
    char *name;          /* the claim that the shape names, or NULL; the issuer's word */
    char *email;         /* or NULL */
    bool email_verified; /* `email_verified` is true */
    char verified_email[DIGEST_HEX_BYTES]; /* person_email_digest() of it, "" unless verified */
    char *client_id;                       /* `azp`, else `client_id`, or NULL */
    char *session;                         /* `sid`, or NULL */
    int64_t signed_in_ms;                  /* `auth_time`, wall clock; 0 when it is not said */
    struct identity_list groups, scopes;
    int64_t until_ms; /* wall clock: from then on the token is refused; see token_verify() */
    char owner[PERSON_SUBJECT_BYTES]; /* person_subject_owner() */
};

/* The places of the claims that issuers put in different places. A name that the object does not
 * have is tried as a path with dots ("realm_access.roles"). */
struct identity_shape {
    const char *groups_claim; /* a list of texts, or one text; NULL: "groups" */
    const char *name_claim;   /* NULL: "name" */
    size_t most_groups;       /* the others are left out; 0: all count */
};

/* From a JSON object that json_check() has accepted: the claims of a token, or userinfo. NULL when
 * `sub` is missing, empty, no text, has a NUL or more than 1,024 bytes. Of the other claims those
 * of another type count as absent. The caller owns one reference. */
struct identity *identity_create(struct str claims, const char *issuer,
                                 const struct identity_shape *shape, int64_t until_ms);
struct identity *identity_ref(struct identity *identity);
void identity_unref(struct identity *identity); /* NULL is allowed */

bool identity_has_group(const struct identity *identity, const char *group);
bool identity_has_scope(const struct identity *identity, const char *scope);
