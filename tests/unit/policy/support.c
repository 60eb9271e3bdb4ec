/* Shared by the tests of the policy. */
#include "support.h"

#include <check.h>
#include <string.h>

static const char *policies; /* the value of THOUGHTGATE_POLICIES */

static const char *environment(const char *name)
{
    return strcmp(name, "THOUGHTGATE_POLICIES") == 0 ? policies : NULL;
}

static struct policy *load(const char *text, const char *cedar, const struct config **config,
                           struct config_problems *problems)
{
    policies = cedar;
    struct config *loaded = config_parse(str_from(text), "t.yaml", environment, problems);
    struct policy *policy = loaded ? policy_create(loaded, problems) : NULL;
    *config = loaded;
    config_unref(loaded); /* the policy holds its own reference */
    return policy;
}

struct policy *policy_with(const char *text, const char *cedar, const struct config **config)
{
    struct config_problems problems = {0};
    struct policy *policy = load(text, cedar, config, &problems);
    ck_assert_msg(policy != NULL, "%s", problems.count ? problems.items[0].message : "");
    config_problems_finish(&problems);
    return policy;
}

struct policy *policy_of(const char *text, const struct config **config)
{
    return policy_with(text, NULL, config);
}

bool load_policy(const char *text, const char *cedar, struct buffer *said)
{
    struct config_problems problems = {0};
    const struct config *config;
    struct policy *policy = load(text, cedar, &config, &problems);
    config_problems_write(&problems, said);
    config_problems_finish(&problems);
    policy_destroy(policy);
    return policy != NULL;
}

struct policy_decision decide(const struct policy *policy, const struct config *config,
                              const char *source, const char *name)
{
    struct policy_decision decision;
    struct policy_request request = {.source = config_source_find(config, str_from(source)),
                                     .name = str_from(name)};
    policy_decide(policy, &request, &decision);
    return decision;
}
