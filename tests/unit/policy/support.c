/* What the tests of the policy share. */
#include "support.h"

#include <check.h>

static const char *no_environment(const char *name)
{
    return NULL;
}

struct policy *policy_of(const char *text, const struct config **config)
{
    struct config_problems problems = {0};
    struct config *loaded = config_parse(str_from(text), "t.yaml", no_environment, &problems);
    ck_assert_msg(loaded != NULL, "%s", problems.count ? problems.items[0].message : "");
    config_problems_finish(&problems);
    struct error error = {""};
    struct policy *policy = policy_create(loaded, &error);
    ck_assert_msg(policy != NULL, "%s", error.message);
    *config = loaded;
    config_unref(loaded); /* the policy holds its own reference */
    return policy;
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
