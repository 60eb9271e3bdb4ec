/* Reads a case's expectations. The names in them must exist in the rules and policies under test.
 */
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

#include "policy_test_keys.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *const decision_names[TEST_DECISION_COUNT] = {
    [TEST_FORWARD] = "forward", [TEST_APPROVE] = "approve", [TEST_DENY] = "deny",
    [TEST_REJECT] = "reject",   [TEST_HIDDEN] = "hidden",   [TEST_INVALID] = "invalid",
};

const char *test_decision_name(enum test_decision decision)
{
    return decision_names[decision];
}

static void policy_test_expect_read_decision(struct reading *reading, const struct node *node,
                                             const char *path)
{
    const char *words[TEST_DECISION_COUNT], *text = test_text_of(reading, node, path);
    for (size_t i = 0; text && i < TEST_DECISION_COUNT; i++) {
        words[i] = decision_names[i];
        reading->one->decision = (enum test_decision)i;
        if (strcmp(text, decision_names[i]) == 0)
            return;
    }
    if (text)
        test_refuse_word(reading, node, path, "a decision", words, TEST_DECISION_COUNT);
}

/* A rule by its glob, or by its number where several have the same; or the default action. */
static void read_rule(struct reading *reading, const struct node *node, const char *path)
{
    const struct config *config = reading->file->snapshot->config;
    const char *text = test_text_of(reading, node, path);
    uint64_t number;
    if (!text)
        return;
    reading->one->has_rule = true;
    for (size_t i = 0; i < config->rule_count; i++) {
        if (strcmp(config->rules[i].match, text) != 0)
            continue;
        if (reading->one->rule)
            report_error(&reading->report, node, path, "give its number instead, from 0",
                         "several rules have this pattern");
        reading->one->rule = &config->rules[i];
    }
    if (reading->one->rule || strcmp(text, "default") == 0)
        return;
    if (str_to_u64(str_from(text), &number) && number < config->rule_count) {
        reading->one->rule = &config->rules[number];
        return;
    }
    const char **words = memory_alloc_array(config->rule_count + 1, sizeof *words);
    for (size_t i = 0; i < config->rule_count; i++)
        words[i] = config->rules[i].match;
    words[config->rule_count] = "default";
    test_refuse_word(reading, node, path, "the pattern or number of a rule", words,
                     config->rule_count + 1);
    free((void *)words);
}

static void read_workflow(struct reading *reading, const struct node *node, const char *path)
{
    const struct config *config = reading->file->snapshot->config;
    const char *name = test_text_of(reading, node, path);
    if (!name)
        return;
    reading->one->workflow = config_workflow_find(config, str_from(name));
    if (reading->one->workflow)
        return;
    const char **words = memory_alloc_array(config->workflow_count, sizeof *words);
    for (size_t i = 0; i < config->workflow_count; i++)
        words[i] = config->workflows[i].name;
    test_refuse_word(reading, node, path, "a workflow", words, config->workflow_count);
    free((void *)words);
}

static bool is_policy(const struct cedar_policies *policies, const char *name)
{
    bool is_there = false;
    for (size_t i = 0; i < cedar_policies_count(policies); i++)
        is_there = is_there || test_names_fit(name, cedar_policies_at(policies, i));
    return is_there;
}

static void read_names(struct reading *reading, const struct node *node, const char *path,
                       struct test_names *names)
{
    const struct cedar_policies *policies = policy_cedar(reading->file->snapshot->policy);
    names->is_given = true;
    if (node->kind != NODE_LIST) {
        report_error(&reading->report, node, path, NULL, "must be a list of names");
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        char *full = memory_format("%s[%zu]", path, i);
        const char *name = test_text_of(reading, node->values[i], full);
        if (name && !is_policy(policies, name))
            test_refuse_word(reading, node->values[i], full, "the @name or @id of a policy", NULL,
                             0);
        free(full);
        if (!name)
            continue;
        struct config_strings *strings = &names->names;
        strings->items =
            memory_grow_array(strings->items, strings->count + 1, sizeof *strings->items);
        strings->items[strings->count++] = memory_copy_text(name);
    }
}

static void policy_test_expect_read_policies(struct reading *reading, const struct node *node,
                                             const char *path)
{
    read_names(reading, node, path, &reading->one->policies);
}

static void read_errors(struct reading *reading, const struct node *node, const char *path)
{
    read_names(reading, node, path, &reading->one->errors);
}

static const struct test_key expect_keys[] = {
    {"decision", true, policy_test_expect_read_decision},
    {"rule", false, read_rule},
    {"workflow", false, read_workflow},
    {"policies", false, policy_test_expect_read_policies},
    {"errors", false, read_errors},
};

void test_read_expect(struct reading *reading, const struct node *node, const char *path)
{
    test_keys_read(reading, node, path, expect_keys, COUNT_OF(expect_keys));
}
