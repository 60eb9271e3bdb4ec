/* Rules about operators: distinct people, and tokens that each belong to one of them. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "taskgate/config/people.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "validate.h"

#define OWN_TOKEN_VARIABLE "THOUGHTGATE_ADMIN_TOKEN"

static bool is_text(const struct node *node)
{
    return node && node->kind == NODE_TEXT && !node_is_null(node);
}

/* ---- people ---- */

static bool are_equal(const char *left, const char *right)
{
    return left && right && strcmp(left, right) == 0;
}

static bool are_same_subject(const struct config_person *left, const struct config_person *right)
{
    bool have_same_issuer =
        are_equal(left->issuer, right->issuer) || (!left->issuer && !right->issuer);
    return have_same_issuer && are_equal(left->subject, right->subject);
}

/* A key that identifies a person identifies only one. */
static void check_alone(const struct draft *draft, const struct node *node, size_t index)
{
    const struct config_person *people = draft->config->people, *person = &people[index];
    char *path = memory_format("admin.people[%zu]", index);
    for (size_t i = 0; i < index; i++) {
        const struct config_person *other = &people[i];
        const struct {
            const char *key;
            bool is_taken;
        } keys[] = {
            {"name", are_equal(person->name, other->name)},
            {"subject", are_same_subject(person, other)},
            {"email", person->email && other->email &&
                          str_equal_ignore_case(str_from(person->email), str_from(other->email))},
            {"slack", are_equal(person->slack, other->slack)},
            {"certificate", are_equal(person->certificate, other->certificate)},
        };
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            if (keys[k].is_taken)
                report_error(&draft->report, node_get(node, keys[k].key), path, NULL,
                             "the %s is that of admin.people[%zu] as well", keys[k].key, i);
        }
    }
    free(path);
}

static void check_certificate_of(const struct draft *draft, const struct node *node,
                                 const char *path, const struct config_person *person)
{
    if (person->certificate && !draft->config->admin_tls.client_ca)
        report_warning(&draft->report, node_get(node, "certificate"), path,
                       "add admin.tls.client_ca",
                       "no client is asked for a certificate, the key has no effect");
    else if (person->certificate && person->roles == 0)
        report_warning(&draft->report, node_get(node, "certificate"), path, "add roles",
                       "with the certificate alone the person may do nothing");
    if (!person->certificate && !person->slack && person->roles != 0)
        report_warning(&draft->report, node_get(node, "roles"), path, NULL,
                       "the roles are those of a certificate, which is missing");
}

/* Nobody has a subject of no issuer, or of one that vouches for nobody here. */
static void check_subject_of(const struct draft *draft, const struct node *node, const char *path,
                             const struct config_person *person)
{
    const struct config *config = draft->config;
    bool is_given = config->oidc.is_on && are_equal(config->oidc.issuer, person->issuer);
    for (size_t i = 0; i < config->source_count; i++)
        is_given = is_given || are_equal(config->sources[i].auth.issuer, person->issuer);
    if (!person->subject || is_given)
        return;
    if (person->issuer)
        report_warning(&draft->report, node_get(node, "issuer"), path,
                       "name that of admin.oidc or of the auth of a source",
                       "no agent and no operator shows a token of %s, the subject has no effect",
                       person->issuer);
    else
        report_warning(&draft->report, node_get(node, "subject"), path, "add issuer",
                       "it is not said which issuer gives the subject, it has no effect");
}

static void validate_person(const struct draft *draft, const struct node *node, size_t index)
{
    const struct config_person *person = &draft->config->people[index];
    char *path = memory_format("admin.people[%zu]", index);
    check_alone(draft, node, index);
    check_certificate_of(draft, node, path, person);
    check_subject_of(draft, node, path, person);
    if (are_equal(person->name, PEOPLE_OWN_NAME))
        report_warning(&draft->report, node_get(node, "name"), path, "choose another name",
                       "decisions by THOUGHTGATE_ADMIN_TOKEN are recorded under this name, too");
    free(path);
}

/* ---- tokens ---- */

/* The secret of `token_env` as the digest that is compared with later. */
static void resolve_token(const struct draft *draft, const struct node *variable, const char *path,
                          struct config_token *token)
{
    const char *secret = draft->environment(variable->text);
    struct error error;
    if ((!secret || !*secret) && draft->needs_no_secrets)
        return;
    if (!secret || !*secret) {
        report_error(&draft->report, variable, path, "set it to the token",
                     "V-014 the environment variable %s is not set",
                     check_shown_variable(variable->text));
    } else if (!check_header_value(str_from(secret), &error) || strchr(secret, ' ')) {
        report_error(&draft->report, variable, path, NULL,
                     "the token in %s holds white space or control characters", variable->text);
    } else {
        if (strlen(secret) < CONFIG_TOKEN_MIN)
            report_warning(&draft->report, variable, path, CONFIG_TOKEN_HINT,
                           "the token in %s is so short that it can be guessed", variable->text);
        digest_sha256_hex(str_from(secret), token->sha256);
    }
}

/* The name alone must identify the holder, because a decision is recorded under one name. */
static void check_person_of(const struct draft *draft, const struct node *node, const char *path,
                            const struct config_token *token)
{
    const struct config *config = draft->config;
    if (token->person && !config_person_find(config, token->person))
        report_error(&draft->report, node_get(node, "person"), path,
                     "add the person to admin.people", "there is no person %s", token->person);
    else if (!token->person && config_person_find(config, token->name))
        report_error(&draft->report, node_get(node, "name"), path,
                     "say whose it is by person, or rename the token",
                     "the token has the name of the person %s", token->name);
    const struct config_person *namesake = config_person_find(config, token->name);
    if (token->person && namesake && strcmp(namesake->name, token->person) != 0)
        report_error(&draft->report, node_get(node, "name"), path, "rename the token",
                     "the token of %s has the name of another person", token->person);
}

/* Two names for one token would give it two kinds of rights. */
static void warn_of_own(const struct draft *draft, const struct node *node, const char *path,
                        const struct config_token *token)
{
    const char *own = draft->environment(OWN_TOKEN_VARIABLE);
    char digest[DIGEST_HEX_BYTES];
    if (!own || !*own)
        return;
    digest_sha256_hex(str_from(own), digest);
    if (strcmp(digest, token->sha256) == 0)
        report_warning(&draft->report, node, path, "give each a token of its own",
                       "this is the token of " OWN_TOKEN_VARIABLE
                       ", which has the rights that stand here");
}

static void validate_token(const struct draft *draft, const struct node *node, size_t index)
{
    struct config_token *tokens = draft->config->tokens, *token = &tokens[index];
    const struct node *variable = node_get(node, "token_env");
    const struct node *digest = node_get(node, "token_sha256");
    struct error error;
    char *path = memory_format("admin.tokens[%zu]", index);
    char *variable_path = memory_format("%s.token_env", path);
    if (is_text(variable) == is_text(digest))
        report_error(&draft->report, node, path, NULL, "needs either token_env or token_sha256");
    else if (is_text(variable) && check_variable_name(str_from(variable->text), &error))
        resolve_token(draft, variable, variable_path, token);
    else if (is_text(digest) && check_sha256(str_from(digest->text), &error)) {
        for (size_t i = 0; digest->text[i]; i++)
            token->sha256[i] = (char)(digest->text[i] | 0x20); /* to lower case */
    }
    for (size_t i = 0; i < index; i++) {
        if (tokens[i].name && token->name && strcmp(tokens[i].name, token->name) == 0)
            report_error(&draft->report, node_get(node, "name"), path,
                         "decisions are recorded under it", "the name is taken by another token");
        if (*token->sha256 && strcmp(tokens[i].sha256, token->sha256) == 0)
            report_error(&draft->report, node, path, "each needs a token of its own",
                         "this is the token of admin.tokens[%zu] as well", i);
    }
    check_person_of(draft, node, path, token);
    warn_of_own(draft, node, path, token);
    free(variable_path);
    free(path);
}

static const struct node *list_of(const struct draft *draft, const char *key)
{
    return node_get(node_get(draft->root, "admin"), key);
}

void validate_operators(const struct draft *draft)
{
    const char *own = draft->environment(OWN_TOKEN_VARIABLE);
    const struct node *people = list_of(draft, "people");
    draft->config->has_own_token = (own && *own) || draft->config->token_count == 0;
    for (size_t i = 0; i < draft->config->person_count; i++)
        validate_person(draft, people->values[i], i);
    const struct node *tokens = list_of(draft, "tokens");
    for (size_t i = 0; i < draft->config->token_count; i++)
        validate_token(draft, tokens->values[i], i);
}
