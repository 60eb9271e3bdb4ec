/*
 * Who an operator is: one value, whatever they have shown.
 *
 * Votes, self-approval, the audit trail and the log speak of the person. It is immutable, counted
 * by reference, and belongs to the loop of the operators' side.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/task/task.h"

struct admin;

enum operator_via { OPERATOR_VIA_TOKEN };

struct operator_identity {
    char *name;   /* of the token */
    char *person; /* of admin.people, else the name */
    /* Of the person as their issuer knows them; NULL where the configuration does not say. */
    char *issuer, *subject;
    struct config_strings groups; /* of the person and the token, each once */
    unsigned roles;               /* ROLE_… bits as configured */
    enum operator_via via;
    char sha256[65]; /* of the token */
    int references;
};

/* The holder of the token with this digest: the configured ones and the extra one are all
 * compared, in constant time. NULL when it is nobody's. */
struct operator_identity *operator_of_token(const struct admin *admin, const struct config *config,
                                            const char *sha256);
struct operator_identity *operator_ref(struct operator_identity *who);
void operator_unref(struct operator_identity *who); /* NULL is allowed */

/* Whether any of these roles, or one that includes it, is theirs. */
bool operator_may(const struct operator_identity *who, unsigned roles);
/* Whether they see their own tasks only: they may call, but not look. */
bool operator_sees_own_only(const struct operator_identity *who);
/* Whether the person has made the call, with whichever token. */
bool operator_owns(const struct operator_identity *who, const struct task *task);
/* Whether what they showed is still good under the configuration in force, for the same person,
 * with one of these roles: what goes on for long asks again. */
bool operator_still_may(const struct admin *admin, const struct operator_identity *who,
                        unsigned roles);
/* The answer of GET /api/v1/whoami. */
void operator_write(struct buffer *out, const struct operator_identity *who);
