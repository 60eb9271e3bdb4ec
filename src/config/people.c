/* From credentials to their person: one way for each kind of credentials. */
#include <stdlib.h>
#include <string.h>

#include "taskgate/config/electorate.h"
#include "taskgate/config/people.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/* From people and tokens to those who can vote. */

static struct ballot_names names_of(const struct config_strings *strings)
{
    return (struct ballot_names){strings->items, strings->count};
}

static bool people_is_of(const struct config_token *token, const struct config_person *person)
{
    return token->person && person->name && strcmp(token->person, person->name) == 0;
}

static bool may_approve(unsigned roles)
{
    return (roles & (unsigned)ROLE_APPROVER) != 0;
}

bool electorate_may_in_slack(const struct config *config, const struct config_person *person)
{
    bool is_told = false;
    for (size_t i = 0; i < config->notify_count; i++)
        is_told = is_told || config->notify[i].type == NOTIFY_SLACK;
    return is_told && person->slack && (person->roles == 0 || may_approve(person->roles));
}

/* In Slack, by a certificate, or by groups of the entry itself. Groups of the issuer are not in the
 * file. */
static bool may_without_token(const struct config *config, const struct config_person *person)
{
    const struct ballot_names own = names_of(&person->groups);
    const struct ballot_names approvers = names_of(&config->oidc.approvers);
    bool has_certificate = person->certificate && config->admin_tls.client_ca;
    bool can_sign_in = config->oidc.is_on && (person->subject || person->email);
    return electorate_may_in_slack(config, person) ||
           (has_certificate && may_approve(person->roles)) ||
           (can_sign_in && ballot_names_meet(&own, &approvers));
}

static void add_person(const struct config *config, const struct config_person *person,
                       struct ballot_votes *votes)
{
    const struct ballot_names own = names_of(&person->groups);
    struct person known = {.name = person->name, .is_named = true};
    bool may = may_without_token(config, person);
    ballot_names_add_all(&known.groups, &own);
    for (size_t i = 0; i < config->token_count; i++) {
        const struct config_token *token = &config->tokens[i];
        const struct ballot_names more = names_of(&token->groups);
        if (!people_is_of(token, person) || !may_approve(token->roles))
            continue;
        ballot_names_add_all(&known.groups, &more);
        may = true;
    }
    if (may)
        ballot_votes_add(votes, &known, BALLOT_APPROVE);
    ballot_names_finish(&known.groups);
}

void electorate_add(const struct config *config, struct ballot_votes *votes)
{
    for (size_t i = 0; i < config->person_count; i++) {
        if (config->people[i].name)
            add_person(config, &config->people[i], votes);
    }
    for (size_t i = 0; i < config->token_count; i++) {
        const struct config_token *token = &config->tokens[i];
        struct person bearer = {.name = token->name, .groups = names_of(&token->groups)};
        if (!token->person && token->name && may_approve(token->roles))
            ballot_votes_add(votes, &bearer, BALLOT_APPROVE);
    }
}

bool electorate_is_open(const struct config *config)
{
    return config->oidc.is_on;
}

static bool people_are_equal(const char *left, const char *right)
{
    return left && right && strcmp(left, right) == 0;
}

static void add_groups(struct person *person, const struct config_strings *more)
{
    const struct ballot_names names = {more->items, more->count};
    ballot_names_add_all(&person->groups, &names);
}

static void set_name(struct person *person, const char *name, bool is_named)
{
    free(person->name);
    person->name = memory_copy_text(name);
    person->is_named = is_named;
}

/* Everything of the entry is theirs, however they are known now. */
static void take_entry(const struct config *config, struct person *person,
                       const struct config_person *entry)
{
    struct ballot_names *keys = &person->keys;
    char digest[DIGEST_HEX_BYTES];
    set_name(person, entry->name, true);
    add_groups(person, &entry->groups);
    person_email_digest(entry->email, digest);
    person_add_name(keys, entry->name);
    person_add_subject(keys, entry->issuer, entry->subject);
    person_add_email(keys, digest);
    person_add_credential(keys, PEOPLE_VIA_CERTIFICATE, entry->certificate);
    person_add_credential(keys, PEOPLE_VIA_SLACK, entry->slack);
    for (size_t i = 0; i < config->token_count; i++) {
        if (people_are_equal(config->tokens[i].person, entry->name))
            person_add_credential(keys, PEOPLE_VIA_TOKEN, config->tokens[i].name);
    }
}

/* ---- a token ---- */

static bool know_bearer(const struct config *config, struct person *person, unsigned *roles)
{
    const struct config_token *token = NULL;
    for (size_t i = 0; i < config->token_count; i++) {
        if (people_are_equal(config->tokens[i].name, person->credential))
            token = &config->tokens[i];
    }
    if (!token && config->has_own_token &&
        people_are_equal(person->credential, PEOPLE_OWN_CREDENTIAL)) {
        set_name(person, PEOPLE_OWN_NAME, false);
        *roles = ROLE_APPROVER | ROLE_AUDITOR;
        return true;
    }
    if (!token)
        return false;
    const struct config_person *entry = config_person_find(config, token->person);
    *roles = token->roles;
    if (entry)
        take_entry(config, person, entry);
    else
        set_name(person, token->name, false);
    add_groups(person, &token->groups);
    return true;
}

/* ---- a certificate ---- */

static bool know_holder(const struct config *config, struct person *person, unsigned *roles)
{
    for (size_t i = 0; config->admin_tls.client_ca && i < config->person_count; i++) {
        const struct config_person *entry = &config->people[i];
        if (!people_are_equal(entry->certificate, person->credential))
            continue;
        take_entry(config, person, entry);
        *roles = entry->roles;
        return true;
    }
    return false;
}

/* ---- an id in Slack ---- */

static bool know_in_slack(const struct config *config, struct person *person, unsigned *roles)
{
    for (size_t i = 0; i < config->person_count; i++) {
        const struct config_person *entry = &config->people[i];
        if (!people_are_equal(entry->slack, person->credential) ||
            !electorate_may_in_slack(config, entry))
            continue;
        take_entry(config, person, entry);
        *roles = ROLE_APPROVER;
        return true;
    }
    return false;
}

/* ---- the word of the issuer ---- */

/* The entry of the subject goes before the one of an address. */
static const struct config_person *find_entry(const struct config *config,
                                              const struct person *person)
{
    const struct config_person *found = NULL;
    for (size_t i = 0; i < config->person_count; i++) {
        const struct config_person *entry = &config->people[i];
        char digest[DIGEST_HEX_BYTES];
        person_email_digest(entry->email, digest);
        if (people_are_equal(entry->issuer, person->issuer) &&
            people_are_equal(entry->subject, person->subject))
            return entry;
        if (*digest && ballot_names_has(&person->emails, digest))
            found = entry;
    }
    return found;
}

/* A stranger's subject may read like the name of somebody else here. */
static void name_stranger(const struct config *config, struct person *person)
{
    const char *subject = person->subject;
    bool is_taken =
        people_are_equal(subject, PEOPLE_OWN_NAME) || config_person_find(config, subject);
    for (size_t i = 0; i < config->token_count; i++)
        is_taken = is_taken || people_are_equal(config->tokens[i].name, subject);
    OWNED char *name =
        is_taken ? memory_format("%s (%s)", subject, person->issuer) : memory_copy_text(subject);
    set_name(person, name, true);
}

static unsigned people_roles_of(const struct config_oidc *oidc, const struct ballot_names *groups)
{
    const struct {
        enum config_role role;
        const struct config_strings *groups;
    } rows[] = {
        {ROLE_VIEWER, &oidc->viewers},
        {ROLE_APPROVER, &oidc->approvers},
        {ROLE_CALLER, &oidc->callers},
        {ROLE_AUDITOR, &oidc->auditors},
    };
    unsigned roles = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ballot_names named = {rows[i].groups->items, rows[i].groups->count};
        if (ballot_names_meet(&named, groups))
            roles |= (unsigned)rows[i].role;
    }
    return roles;
}

static bool know_signed_in(const struct config *config, struct person *person, unsigned *roles)
{
    if (!config->oidc.is_on || !person->subject ||
        !people_are_equal(config->oidc.issuer, person->issuer))
        return false;
    const struct config_person *entry = find_entry(config, person);
    if (entry)
        take_entry(config, person, entry);
    else
        name_stranger(config, person);
    ballot_names_add_all(&person->groups, &person->claimed);
    *roles = people_roles_of(&config->oidc, &person->groups);
    return true;
}

bool people_know(const struct config *config, struct person *person, unsigned *roles)
{
    static const struct {
        const char *via;
        bool (*know)(const struct config *config, struct person *person, unsigned *roles);
    } ways[] = {{PEOPLE_VIA_TOKEN, know_bearer},
                {PEOPLE_VIA_CERTIFICATE, know_holder},
                {PEOPLE_VIA_OIDC, know_signed_in},
                {PEOPLE_VIA_SLACK, know_in_slack}};
    ballot_names_finish(&person->groups);
    *roles = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (people_are_equal(ways[i].via, person->via))
            return ways[i].know(config, person, roles);
    }
    return false;
}
