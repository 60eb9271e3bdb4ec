/*
 * A person: somebody who decides, calls or votes, by whatever credentials. All that is known to be
 * one person's (the name and the credentials, and everything of the entry of admin.people that they
 * belong to) are keys, texts such as "token:NAME". Two are the same person when they have a key in
 * common; nothing else compares people. A value without I/O; any thread.
 */
#pragma once

#include "taskgate/approval/terms.h"
#include "taskgate/core/digest.h"

/* Texts are owned; NULL where there is nothing to say. */
struct person {
    char *name;       /* as decisions name them */
    bool is_named;    /* known as a person, and not as the bearer of a token alone */
    char *via;        /* "token", "oidc", "certificate" or "slack" */
    char *credential; /* name of the token, subject of the certificate, id in Slack */
    char *issuer, *subject;
    struct ballot_names emails; /* digests of addresses that their issuer has verified */
    struct ballot_names groups;
    struct ballot_names claimed; /* of the groups: by the word of the issuer alone */
    struct ballot_names keys;    /* further ones: those of their entry */
};
void person_finish(struct person *person);
void person_copy(struct person *copy, const struct person *person);
/* Whether both are one person. */
bool person_is(const struct person *left, const struct person *right);

/* The keys of somebody: of their credentials, and the further ones. ballot_names_finish() frees. */
void person_keys(const struct person *person, struct ballot_names *keys);
/* Adds one: of a name, of credentials by the way they are shown, of an issuer's subject, of the
 * digest of an address. */
void person_add_name(struct ballot_names *keys, const char *name);
void person_add_credential(struct ballot_names *keys, const char *via, const char *credential);
void person_add_subject(struct ballot_names *keys, const char *issuer, const char *subject);
void person_add_email(struct ballot_names *keys, const char *digest);

/* The maker of a call, as its task keeps them: the owner, the digest of the owner's verified
 * address or "", and a JSON array of the keys of an operator or "". */
struct person_maker {
    const char *owner, *email, *keys;
};
/* Whether the person has made the call. */
bool person_made(const struct person *person, const struct person_maker *maker);

/* The owner of the calls of a person at the control plane: this and their name. */
#define PERSON_OWNER "admin:"
/* "sub:" and SHA-256 in hex of issuer, NUL, subject: the owner of the calls of an agent with a
 * verified token. */
#define PERSON_SUBJECT_BYTES (4 + DIGEST_HEX_BYTES)
void person_subject_owner(const char *issuer, const char *subject,
                          char owner[PERSON_SUBJECT_BYTES]);
/* SHA-256 in hex of an address, which may differ in the case of ASCII letters; "" of NULL and of an
 * empty one. The store keeps this of a task's owner in place of the address. */
void person_email_digest(const char *email, char digest[DIGEST_HEX_BYTES]);
