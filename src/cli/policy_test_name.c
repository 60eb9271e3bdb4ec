/* The names of policies in their tests. */
#include "policy_test.h"

struct str test_name_of(const struct cedar_policy *policy)
{
    struct str name;
    bool has_name = cedar_policy_annotation(policy, STR("name"), &name) && name.length;
    return has_name ? name : policy_name_of(policy);
}

bool test_names_fit(const char *name, const struct cedar_policy *policy)
{
    return str_equal(str_from(name), test_name_of(policy)) ||
           str_equal(str_from(name), policy_name_of(policy)) ||
           str_equal(str_from(name), cedar_policy_name(policy));
}
