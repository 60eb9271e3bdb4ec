/*
 * An operator: one value for every kind of credentials.
 *
 * Votes, self-approval, the audit trail and the log use the person. The value is immutable, has a
 * reference count, and belongs to the loop of the operators' side.
 */
#pragma once

#include "taskgate/config/people.h"
#include "taskgate/http/server.h"
#include "taskgate/identity/identity.h"
#include "taskgate/task/task.h"

enum operator_via {
    OPERATOR_VIA_TOKEN,
    OPERATOR_VIA_OIDC,
    OPERATOR_VIA_CERTIFICATE,
    OPERATOR_VIA_SLACK
};

struct operator_identity {
    char *name; /* of the token, the issuer's word, the subject of the certificate, or the id in
                   Slack */
    struct person person; /* and the credentials that were shown */
    unsigned roles;       /* ROLE_… bits as configured */
    enum operator_via via;
    char sha256[65];           /* of the token or of the session's cookie; "" of a certificate */
    struct identity *identity; /* that an issuer has told, or NULL */
    struct tls_server *port;   /* the settings that let the certificate in, or NULL */
    bool is_session;           /* known by a cookie */
    char *sealed_token;        /* of a session: see sessions_open_token(); or NULL */
    int64_t begun_ms;          /* wall clock; of a session */
    int64_t until_ms;          /* wall clock; INT64_MAX: without end */
    int references;
};

/* The holder of the token with this digest. All configured tokens and the extra one, by its digest,
 * are compared, in constant time. NULL for an unknown token. */
struct operator_identity *operator_of_token(const char *extra_sha256, const struct config *config,
                                            const char *sha256);
/* The operator of a token of the issuer of admin.oidc; takes a reference of its own. `roles` may be
 * 0. NULL when the issuer is not the one of the configuration. */
struct operator_identity *operator_of_identity(const struct config *config,
                                               struct identity *identity);
/* The person of admin.people who has the certificate with this subject (RFC 4514), which holds
 * until `until_ms`. NULL when it is nobody's. `roles` are those of the entry, and may be 0. */
struct operator_identity *operator_of_certificate(const struct config *config, struct str subject,
                                                  int64_t until_ms);
/* The person of admin.people with this Slack id, who votes there. NULL when it is nobody's, or of
 * somebody who may not vote. */
struct operator_identity *operator_of_slack(const struct config *config, const char *id);
struct operator_identity *operator_ref(struct operator_identity *who);
void operator_unref(struct operator_identity *who); /* NULL is allowed */

/* Whether the person made the call, with any token. */
bool operator_owns(const struct operator_identity *who, const struct task *task);
/* The same person by the same credentials, under the configuration in force: their roles and groups
 * as they are now. NULL when the credentials are no longer good, or are somebody else's. One
 * reference, the caller's. Long streams and waits ask again. */
struct operator_identity *operator_renew(const char *extra_sha256,
                                         const struct operator_identity *who);
/* `delay_ms`, or less if the credentials end before; 0 when they have. */
int64_t operator_delay_ms(const struct operator_identity *who, int64_t delay_ms);
/* "token", "oidc", "certificate", "slack". */
const char *operator_via_name(const struct operator_identity *who);

/* Whether the connection has the certificate that the configuration demands; true when it demands
 * none. OpenSSL lets in clients without a certificate, but none with a wrong one. */
bool client_certificate_suffices(const struct http_exchange *exchange, const struct config *config);
/* The person whose certificate the connection shows; NULL when it is nobody's here. One reference,
 * the caller's. */
struct operator_identity *client_certificate_find(const struct http_exchange *exchange,
                                                  const struct config *config);

struct gateway_worker;
struct store_tally;

/* How somebody sees tasks: the operator who looks, the configuration, and the gateway; borrowed. */
struct task_view {
    struct config *config;
    const struct operator_identity *who;
    const struct gateway_worker *worker; /* or NULL */
    bool with_history;
    const struct store_tally *tally; /* NULL: the history is null */
};
