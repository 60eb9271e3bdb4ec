/* From people and tokens to those who can vote. */
#include "taskgate/config/electorate.h"

#include <string.h>

static struct ballot_names names_of(const struct config_strings *strings)
{
    return (struct ballot_names){strings->items, strings->count};
}

static bool is_of(const struct config_token *token, const struct config_person *person)
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
        if (!is_of(token, person) || !may_approve(token->roles))
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
