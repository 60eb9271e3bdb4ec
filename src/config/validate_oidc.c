/* Rules about the operators' sign-in: what it needs, and what would keep everybody out. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "taskgate/core/memory.h"
#include "validate.h"

#define KEY "admin.oidc"

static void add(struct config_strings *strings, const char *text)
{
    strings->items = memory_grow_array(strings->items, strings->count + 1, sizeof *strings->items);
    strings->items[strings->count++] = memory_copy_text(text);
}

static bool has(const struct config_strings *strings, const char *text)
{
    for (size_t i = 0; i < strings->count; i++) {
        if (strcmp(strings->items[i], text) == 0)
            return true;
    }
    return false;
}

static void check_scopes(const struct draft *draft, const struct node *oidc)
{
    struct config_strings *scopes = &draft->config->oidc.scopes;
    const struct node *node = node_get(oidc, "scopes");
    if (node_is_null(node)) {
        add(scopes, "openid");
        add(scopes, "profile");
        add(scopes, "email");
    } else if (!has(scopes, "openid")) {
        report_error(&draft->report, node, KEY ".scopes", NULL, "openid is missing");
    }
}

static void trim_slashes(char *url)
{
    for (size_t length = url ? strlen(url) : 0; length > 0 && url[length - 1] == '/'; length--)
        url[length - 1] = '\0';
}

/* The subjects of people are their issuer's; without another it is the one of the sign-in. */
static void complete_people(struct config *config)
{
    for (size_t i = 0; i < config->person_count; i++) {
        struct config_person *person = &config->people[i];
        if (person->subject && !person->issuer)
            person->issuer = memory_copy_text(config->oidc.issuer);
    }
}

void validate_oidc(const struct draft *draft)
{
    struct config *config = draft->config;
    const struct config_oidc *roles = &config->oidc;
    const struct node *oidc = node_get(node_get(draft->root, "admin"), "oidc");
    trim_slashes(config->public_url);
    complete_people(config);
    if (!config->oidc.is_on)
        return;
    config->oidc.client_secret =
        validate_secret(draft, node_get(oidc, "client_secret_env"), KEY ".client_secret_env");
    check_scopes(draft, oidc);
    if (!config->public_url)
        report_error(&draft->report, oidc, KEY, "add it, such as public_url: https://gate.example",
                     "the sign-in returns to admin.public_url, which is missing");
    if (roles->viewers.count + roles->approvers.count + roles->callers.count +
            roles->auditors.count ==
        0)
        report_warning(&draft->report, oidc, KEY, "add roles: {approver: [GROUP]}",
                       "no group has a role, so nobody can sign in");
}
