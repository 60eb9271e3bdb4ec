/* The target of a file of cases: a configuration, or Cedar policies alone behind one rule for all.
 */
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

#include "policy.h"
#include "policy_test.h"

/* ---- variables: config_getenv has no room for data, and commands have one thread ---- */

static const struct test_file *loading;

/* Stands in for the environment, so that a test gives the same result on every machine. */
static const char *find_variable(const char *name)
{
    for (size_t i = 0; i < loading->variable_count; i++) {
        if (strcmp(loading->variables[i].name, name) == 0)
            return loading->variables[i].value;
    }
    return strncmp(name, "THOUGHTGATE_", 12) == 0 ? NULL : getenv(name);
}

/* ---- policies alone ---- */

static void policy_test_target_append_name(struct buffer *out, struct map *seen, struct str name,
                                           const char *before, const char *behind)
{
    if (map_put(seen, name, out))
        return;
    buffer_append_text(out, before);
    buffer_append_json_string(out, name);
    buffer_append_text(out, behind);
}

/* The sources that requests name, so that `server` and `source_id` can be tested. */
static void policy_test_target_append_sources(struct buffer *out, const struct node *root)
{
    static const char behind[] = ", kind: mcp, url: 'http://127.0.0.1/mcp'}\n";
    const struct node *cases = node_get(root, "cases");
    struct map *seen = map_create();
    policy_test_target_append_name(out, seen, STR("main"), "  - {id: ", behind);
    for (size_t i = 0; cases && cases->kind == NODE_LIST && i < cases->count; i++) {
        const struct node *id = node_get(node_get(cases->values[i], "request"), "source");
        if (id && id->kind == NODE_TEXT)
            policy_test_target_append_name(out, seen, str_from(id->text), "  - {id: ", behind);
    }
    map_destroy(seen, NULL);
}

/* The workflows that policies name. */
static void append_workflows(struct buffer *out, const struct cedar_policies *policies)
{
    struct map *seen = map_create();
    policy_test_target_append_name(out, seen, STR("default"), "  ", ": {}\n");
    for (size_t i = 0; i < cedar_policies_count(policies); i++) {
        struct str name;
        if (cedar_policy_annotation(cedar_policies_at(policies, i), STR("thoughtgate_approval"),
                                    &name))
            policy_test_target_append_name(out, seen, name, "  ", ": {}\n");
    }
    map_destroy(seen, NULL);
}

/* A configuration whose one rule puts every call to the policies. */
static struct config *parse_around(const char *path, const struct node *root,
                                   struct config_problems *problems)
{
    struct config *config = NULL;
    struct cedar_policies *policies = policy_files_policies(path);
    const char *slash = strrchr(path, '/');
    struct buffer text;
    buffer_init(&text);
    if (policies) {
        buffer_append_text(&text, "schema: 1\nsources:\n");
        policy_test_target_append_sources(&text, root);
        buffer_append_text(&text, "governance: {defaults: {action: policy}}\napproval:\n");
        append_workflows(&text, policies);
        buffer_append_text(&text, "cedar: {policies: [");
        buffer_append_json_string(&text, str_from(slash ? slash + 1 : path));
        buffer_append_text(&text, "]}\n");
        config = config_parse(buffer_str(&text), path, find_variable, problems);
    }
    cedar_policies_destroy(policies);
    buffer_finish(&text);
    return config;
}

/* ---- either ---- */

static struct config *policy_test_target_parse(struct test_file *file, const struct node *root,
                                               struct config_problems *problems)
{
    struct config *config = NULL;
    struct buffer text;
    if (!file->has_rules)
        return parse_around(file->target, root, problems);
    buffer_init(&text);
    if (policy_files_read(file->target, &text))
        config = config_parse_rules(buffer_str(&text), file->target, find_variable, problems);
    buffer_finish(&text);
    return config;
}

bool test_target_load(struct test_file *file, const struct node *root)
{
    struct config_problems problems = {0};
    struct buffer said;
    file->has_rules = !str_ends_with(str_from(file->target), STR(".cedar"));
    loading = file;
    struct config *config = policy_test_target_parse(file, root, &problems);
    file->snapshot = config ? snapshot_create(config, &problems) : NULL;
    loading = NULL;
    buffer_init(&said);
    config_problems_write(&problems, &said);
    policy_files_complain(&said);
    buffer_finish(&said);
    config_problems_finish(&problems);
    if (!file->snapshot)
        return false;
    file->rules = memory_alloc_array(file->snapshot->config->rule_count + 1, sizeof(bool));
    file->policies = memory_alloc_array(policy_count(file->snapshot->policy) + 1, sizeof(bool));
    return true;
}
