/* From operators to voters, and from votes back to those who gave them. */
#include "voter.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/config/electorate.h"
#include "taskgate/core/memory.h"
#include "taskgate/gateway/control.h"

/* ---- an operator ---- */

static struct ballot_names names_of(const struct config_strings *strings)
{
    return (struct ballot_names){strings->items, strings->count};
}

static void add_owner(struct ballot_names *owners, const char *name)
{
    char *owner = control_owner(name);
    ballot_names_add(owners, owner);
    free(owner);
}

static void add_email(struct ballot_names *emails, const char *digest)
{
    if (*digest)
        ballot_names_add(emails, digest);
}

void voter_init(struct voter *voter, const struct operator_identity *who)
{
    bool has_token = who->via == OPERATOR_VIA_TOKEN;
    const struct ballot_person person = {
        .name = who->person,
        .is_named = who->is_person,
        .via = (char *)operator_via_name(who),
        .credential = who->via == OPERATOR_VIA_OIDC ? NULL : who->name,
        .issuer = who->issuer,
        .subject = who->subject,
        .groups = names_of(&who->groups),
        .claimed = names_of(&who->claimed),
    };
    ballot_person_copy(&voter->person, &person);
    /* The entry's address counts beside the issuer's: the file's author vouches for it. */
    add_email(&voter->person.emails, who->email);
    add_email(&voter->person.emails, operator_email(who));
    voter->owners = (struct ballot_names){NULL, 0};
    add_owner(&voter->owners, who->person);
    if (has_token) /* a call of before the token had a person */
        add_owner(&voter->owners, who->name);
    if (who->issuer && who->subject) {
        char owner[IDENTITY_OWNER_BYTES];
        identity_owner(who->issuer, who->subject, owner);
        ballot_names_add(&voter->owners, owner);
    }
}

void voter_finish(struct voter *voter)
{
    ballot_person_finish(&voter->person);
    ballot_names_finish(&voter->owners);
}

/* ---- a vote of before ---- */

static bool are_equal(const char *left, const char *right)
{
    return left && right && strcmp(left, right) == 0;
}

static bool may_approve(unsigned roles)
{
    return (roles & (unsigned)ROLE_APPROVER) != 0;
}

static void add_groups(struct ballot_names *groups, const struct config_strings *more)
{
    const struct ballot_names names = names_of(more);
    ballot_names_add_all(groups, &names);
}

/* The token that the environment or the first start has made is in no file. */
static bool renew_bearer(const struct config *config, struct ballot_person *person)
{
    const struct config_token *token = NULL;
    for (size_t i = 0; i < config->token_count; i++) {
        if (are_equal(config->tokens[i].name, person->credential))
            token = &config->tokens[i];
    }
    if (!token)
        return !person->is_named && are_equal(person->credential, person->name);
    const struct config_person *entry = config_person_find(config, token->person);
    add_groups(&person->groups, &token->groups);
    if (entry)
        add_groups(&person->groups, &entry->groups);
    return may_approve(token->roles) && person->is_named == (entry != NULL) &&
           are_equal(entry ? entry->name : token->name, person->name);
}

static bool renew_holder(const struct config *config, struct ballot_person *person)
{
    const struct config_person *entry = config_person_find(config, person->name);
    if (!entry || !config->admin_tls.client_ca)
        return false;
    add_groups(&person->groups, &entry->groups);
    return may_approve(entry->roles) && are_equal(entry->certificate, person->credential);
}

static bool renew_in_slack(const struct config *config, struct ballot_person *person)
{
    const struct config_person *entry = config_person_find(config, person->name);
    if (!entry || !electorate_may_in_slack(config, entry))
        return false;
    add_groups(&person->groups, &entry->groups);
    return are_equal(entry->slack, person->credential);
}

/* As operator_of_identity() would find it; of the address only the digest is known. */
static const struct config_person *entry_of(const struct config *config,
                                            const struct ballot_person *person)
{
    const struct config_person *found = NULL;
    for (size_t i = 0; i < config->person_count; i++) {
        const struct config_person *entry = &config->people[i];
        char digest[DIGEST_HEX_BYTES];
        identity_email_digest(entry->email, digest);
        if (are_equal(entry->issuer, person->issuer) && are_equal(entry->subject, person->subject))
            return entry;
        if (!entry->subject && *digest && ballot_names_has(&person->emails, digest))
            found = entry;
    }
    return found;
}

static bool renew_signed_in(const struct config *config, struct ballot_person *person)
{
    const struct ballot_names approvers = names_of(&config->oidc.approvers);
    const struct config_person *entry = entry_of(config, person);
    if (!config->oidc.is_on || !are_equal(config->oidc.issuer, person->issuer))
        return false;
    ballot_names_add_all(&person->groups, &person->claimed);
    if (entry)
        add_groups(&person->groups, &entry->groups);
    bool is_same = entry ? are_equal(entry->name, person->name)
                         : config_person_find(config, person->name) == NULL;
    return is_same && ballot_names_meet(&person->groups, &approvers);
}

void voter_renew(const struct config *config, struct ballot_vote *vote)
{
    static const struct {
        const char *via;
        bool (*renew)(const struct config *config, struct ballot_person *person);
    } ways[] = {{"token", renew_bearer},
                {"certificate", renew_holder},
                {"oidc", renew_signed_in},
                {"slack", renew_in_slack}};
    struct ballot_person *person = &vote->person;
    ballot_names_finish(&person->groups);
    vote->stands = false;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (are_equal(ways[i].via, person->via))
            vote->stands = ways[i].renew(config, person);
    }
}

void voter_read_ballot(const struct config *config, const struct task *task, struct ballot *ballot)
{
    ballot_read(ballot, str_from(task->terms), str_from(task->votes));
    for (size_t i = 0; i < ballot->votes.count; i++)
        voter_renew(config, &ballot->votes.items[i]);
}

/* ---- for the store ---- */

static void renew(void *context, struct ballot_vote *vote)
{
    voter_renew(context, vote);
}

static int64_t valid_for_ms(void *context, const char *workflow)
{
    return config_approval_valid_ms(context, str_from(workflow));
}

static const char *terms(void *context, const char *workflow)
{
    const struct config_workflow *found = config_workflow_find(context, str_from(workflow));
    return found ? found->terms : NULL;
}

static void release(void *context)
{
    config_unref(context);
}

struct store_electorate voter_electorate(struct config *config)
{
    return (struct store_electorate){
        .renew = renew,
        .terms = terms,
        .valid_for_ms = valid_for_ms,
        .release = release,
        .context = config_ref(config),
    };
}
