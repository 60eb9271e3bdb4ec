/*
 * taskgate policy test: files of cases beside the rules and policies that they test.
 *
 * A file is read as a whole and checked against its target before any case runs. Every mistake goes
 * to stderr as FILE:LINE:COLUMN. docs/policy.md describes the format.
 */
#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"
#include "taskgate/policy/cedar.h"
#include "taskgate/policy/gate.h"

#include "consultation.h"
#include "distance.h"
#include "document.h"
#include "options.h"
#include "policy.h"
#include "terminal.h"

/* The outcome of a call. */
enum test_decision {
    TEST_FORWARD,
    TEST_APPROVE,
    TEST_DENY,    /* a rule says so */
    TEST_REJECT,  /* policies say so */
    TEST_HIDDEN,  /* by `expose` or `enabled` of the source */
    TEST_INVALID, /* for keys of its arguments that fold alike */
    TEST_DECISION_COUNT
};

/* Names of policies; not looked at unless the case gives them. */
struct test_names {
    bool is_given;
    struct config_strings names;
};

struct test_case {
    char *name;
    int line, column;
    /* the request */
    char *tool;
    char *arguments, *principal, *at, *annotations; /* as consultation_options has them, or NULL */
    const struct config_source *source;
    /* the expectation */
    enum test_decision decision;
    bool has_rule;
    const struct config_rule *rule;         /* NULL: the default action */
    const struct config_workflow *workflow; /* NULL: any */
    struct test_names policies, errors;
};

/* A variable of the configuration, as the file of cases gives it. */
struct test_variable {
    char *name, *value;
};

struct test_file {
    const char *path; /* borrowed */
    char *target;     /* of the configuration or the policies that are tested */
    bool has_rules;   /* it is a configuration */
    struct test_variable *variables;
    size_t variable_count;
    struct snapshot *snapshot;
    struct test_case *cases;
    size_t count;
    /* The rules, then the default action, and the policies that a case has reached. */
    bool *rules, *policies;
};

/* One expectation that was not met. */
struct test_difference {
    const char *what; /* "decision" … */
    char *expected, *actual;
};
#define TEST_DIFFERENCES_MAX 5
struct test_outcome {
    struct consultation consultation;
    struct policy_decision ruled; /* before policies were asked */
    enum test_decision decision;
    struct test_difference differences[TEST_DIFFERENCES_MAX];
    size_t difference_count; /* 0: passed */
};

/* ---- names of policies ---- */

/* Its @name, for policies that share an @id; else policy_name_of(). */
static struct str test_name_of(const struct cedar_policy *policy)
{
    struct str name;
    bool has_name = cedar_policy_annotation(policy, STR("name"), &name) && name.length;
    return has_name ? name : policy_name_of(policy);
}

/* Whether it is the policy's @name or @id, or "policy0" … by place. */
static bool test_names_fit(const char *name, const struct cedar_policy *policy)
{
    return str_equal(str_from(name), test_name_of(policy)) ||
           str_equal(str_from(name), policy_name_of(policy)) ||
           str_equal(str_from(name), cedar_policy_name(policy));
}

/* ---- keys of a file ---- */

/* Between the readers of a file of cases: mappings along tables of keys. Mappings of a file of
 * cases, read along tables; unknown and missing keys. */

/* The reader's place. */
struct reading {
    struct report report;
    struct test_file *file;
    const struct node *root;
    struct test_case *one; /* the case that is read */
};

/* A key of a mapping and the reader of its value; `path` is its full name. */
struct test_key {
    const char *name;
    bool is_required;
    void (*read)(struct reading *reading, const struct node *node, const char *path);
};

static void policy_test_keys_refuse_unknown(struct reading *reading, const struct node *key,
                                            const char *path, const struct test_key *keys,
                                            size_t count)
{
    OWNED const char **words = memory_alloc_array(count, sizeof *words);
    for (size_t i = 0; i < count; i++)
        words[i] = keys[i].name;
    OWNED char *full = document_join(path, key->text);
    OWNED char *hint = distance_suggest(key->text, words, count, "known here:");
    report_error(&reading->report, key, full, hint, "unknown key");
}

static bool has_key(const struct test_key *keys, size_t count, const char *name)
{
    bool is_there = false;
    for (size_t i = 0; i < count; i++)
        is_there = is_there || strcmp(keys[i].name, name) == 0;
    return is_there;
}

/* Reads a mapping, its keys in the order of the table. */
static void test_keys_read(struct reading *reading, const struct node *node, const char *path,
                           const struct test_key *keys, size_t count)
{
    if (node->kind != NODE_MAPPING) {
        report_error(&reading->report, node, path, NULL, "must be a mapping");
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        if (!has_key(keys, count, node->keys[i]->text))
            policy_test_keys_refuse_unknown(reading, node->keys[i], path, keys, count);
    }
    for (size_t i = 0; i < count; i++) {
        const struct node *value = node_get(node, keys[i].name);
        OWNED char *full = document_join(path, keys[i].name);
        if (!node_is_null(value))
            keys[i].read(reading, value, full);
        else if (keys[i].is_required)
            report_error(&reading->report, value ? value : node, full, NULL, "the key is missing");
    }
}

/* The text of a single value, or NULL after a report. */
static const char *test_text_of(struct reading *reading, const struct node *node, const char *path)
{
    if (node->kind == NODE_TEXT && *node->text)
        return node->text;
    report_error(&reading->report, node, path, NULL, "must be text");
    return NULL;
}

/* `"word" is not WHAT`, with the nearest of the words that are known. */
static void test_refuse_word(struct reading *reading, const struct node *node, const char *path,
                             const char *what, const char **words, size_t count)
{
    OWNED char *quoted = report_quote(&reading->report, node);
    OWNED char *hint = count ? distance_suggest(node->text, words, count, "known are:") : NULL;
    report_error(&reading->report, node, path, hint, "%s is not %s", quoted, what);
}

/* ---- the expectation of a case ---- */

/* Reads a case's expectations. The names in them must exist in the rules and policies under
 * test. */

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *const decision_names[TEST_DECISION_COUNT] = {
    [TEST_FORWARD] = "forward", [TEST_APPROVE] = "approve", [TEST_DENY] = "deny",
    [TEST_REJECT] = "reject",   [TEST_HIDDEN] = "hidden",   [TEST_INVALID] = "invalid",
};

/* "forward" … */
static const char *test_decision_name(enum test_decision decision)
{
    ASSERT_NUMBERS(decision, <, TEST_DECISION_COUNT);
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
    OWNED const char **words = memory_alloc_array(config->rule_count + 1, sizeof *words);
    for (size_t i = 0; i < config->rule_count; i++)
        words[i] = config->rules[i].match;
    words[config->rule_count] = "default";
    test_refuse_word(reading, node, path, "the pattern or number of a rule", words,
                     config->rule_count + 1);
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
    OWNED const char **words = memory_alloc_array(config->workflow_count, sizeof *words);
    for (size_t i = 0; i < config->workflow_count; i++)
        words[i] = config->workflows[i].name;
    test_refuse_word(reading, node, path, "a workflow", words, config->workflow_count);
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

static void test_read_expect(struct reading *reading, const struct node *node, const char *path)
{
    test_keys_read(reading, node, path, expect_keys, COUNT_OF(expect_keys));
}

/* ---- arguments ---- */

/* Arguments as people write them in YAML, made the JSON that would come over the wire. */

/* Whether JSON reads the plain text as something that is no string. */
static bool is_json_scalar(const struct node *node)
{
    return node->is_plain && json_check(str_from(node->text), NULL) &&
           json_type(str_from(node->text)) >= JSON_NUMBER;
}

/* Plain numbers, true, false and null have their JSON meaning, all else is text. */
static void test_value_write(struct buffer *out, const struct node *node)
{
    if (node->kind == NODE_TEXT) {
        if (node_is_null(node))
            buffer_append_text(out, "null");
        else if (is_json_scalar(node))
            buffer_append(out, str_trim(str_from(node->text)));
        else
            buffer_append_json_string(out, str_from(node->text));
        return;
    }
    bool is_list = node->kind == NODE_LIST;
    buffer_append_char(out, is_list ? '[' : '{');
    for (size_t i = 0; i < node->count; i++) {
        buffer_append_text(out, i > 0 ? "," : "");
        if (!is_list) {
            buffer_append_json_string(out, str_from(node->keys[i]->text));
            buffer_append_char(out, ':');
        }
        test_value_write(out, node->values[i]);
    }
    buffer_append_char(out, is_list ? ']' : '}');
}

/* ---- the request of a case ---- */

/* The call of a case: tool, source, arguments, caller, time, and the server's hints on the tool. */

static char *json_of(const struct node *node)
{
    OWNED_BUFFER(json);
    test_value_write(&json, node);
    return buffer_take(&json, NULL);
}

static void read_tool(struct reading *reading, const struct node *node, const char *path)
{
    reading->one->tool = memory_copy_text(test_text_of(reading, node, path));
}

static void read_source(struct reading *reading, const struct node *node, const char *path)
{
    const struct config *config = reading->file->snapshot->config;
    const char *id = test_text_of(reading, node, path);
    if (!id)
        return;
    reading->one->source = config_source_find(config, str_from(id));
    if (reading->one->source)
        return;
    OWNED const char **ids = memory_alloc_array(config->source_count, sizeof *ids);
    for (size_t i = 0; i < config->source_count; i++)
        ids[i] = config->sources[i].id;
    test_refuse_word(reading, node, path, "a source", ids, config->source_count);
}

/* A mapping, or the very JSON in quotes. */
static void policy_test_request_read_arguments(struct reading *reading, const struct node *node,
                                               const char *path)
{
    struct error error = {""};
    char *json = node->kind == NODE_TEXT ? memory_copy_text(node->text) : json_of(node);
    reading->one->arguments = json;
    if (!json_check(str_from(json), &error) && node->kind == NODE_TEXT)
        report_error(&reading->report, node, path, NULL, "must be a mapping or JSON: %s",
                     error.message);
    else if (json_type(str_from(json)) != JSON_OBJECT)
        report_error(&reading->report, node, path, NULL, "must be a mapping, or a JSON object");
}

static void check_list(struct reading *reading, const struct node *list, const char *path)
{
    if (list->kind != NODE_LIST)
        report_error(&reading->report, list, path, NULL, "must be a list of texts");
    for (size_t i = 0; list->kind == NODE_LIST && i < list->count; i++)
        test_text_of(reading, list->values[i], path);
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

/* A member of a principal: a text, or a list of them. */
static void policy_test_request_add_member(struct reading *reading, const struct node *key,
                                           const struct node *value, const char *path,
                                           struct buffer *json)
{
    static const char *names[] = {"name",   "client_name", "client_version", "subject",
                                  "issuer", "groups",      "scopes"};
    OWNED char *full = document_join(path, key->text);
    bool is_list = is_one_of(key->text, &names[COUNT_OF(names) - 2], 2);
    if (!is_one_of(key->text, names, COUNT_OF(names)))
        test_refuse_word(reading, key, path, "a key", names, COUNT_OF(names));
    buffer_append_text(json, json->length ? "," : "{");
    buffer_append_json_string(json, str_from(key->text));
    buffer_append_char(json, ':');
    if (is_list) {
        OWNED char *list = json_of(value);
        check_list(reading, value, full);
        buffer_append_text(json, list);
    } else {
        buffer_append_json_string(json, str_from(test_text_of(reading, value, full)));
    }
}

static void policy_test_request_read_principal(struct reading *reading, const struct node *node,
                                               const char *path)
{
    OWNED_BUFFER(json);
    bool is_owner = node->kind == NODE_TEXT && node->text[0] != '{';
    if (is_owner || node->kind != NODE_MAPPING) {
        if (is_owner)
            reading->one->principal = memory_copy_text(test_text_of(reading, node, path));
        else
            report_error(&reading->report, node, path, NULL, "must be text or a mapping");
        return;
    }
    for (size_t i = 0; i < node->count; i++)
        policy_test_request_add_member(reading, node->keys[i], node->values[i], path, &json);
    bool is_verified =
        node_get(node, "issuer") || node_get(node, "groups") || node_get(node, "scopes");
    if (is_verified && !node_get(node, "subject"))
        report_error(&reading->report, node, path, "add subject",
                     "issuer, groups and scopes are those of a token, which has a subject");
    buffer_append_text(&json, json.length ? "}" : "{}");
    reading->one->principal = buffer_take(&json, NULL);
}

static void read_at(struct reading *reading, const struct node *node, const char *path)
{
    int64_t ms;
    const char *text = test_text_of(reading, node, path);
    if (text && !consultation_read_time(text, &ms))
        test_refuse_word(reading, node, path, "a time such as " CONSULTATION_TIMES, NULL, 0);
    reading->one->at = memory_copy_text(text);
}

static void policy_test_request_read_annotations(struct reading *reading, const struct node *node,
                                                 const char *path)
{
    const char *names[HINT_COUNT];
    for (unsigned i = 0; i < HINT_COUNT; i++)
        names[i] = policy_hint_name((enum policy_hint)i);
    if (node->kind != NODE_MAPPING) {
        report_error(&reading->report, node, path, NULL, "must be a mapping");
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        const struct node *value = node->values[i];
        bool is_known = false, is_truth;
        for (size_t k = 0; k < HINT_COUNT; k++)
            is_known = is_known || strcmp(names[k], node->keys[i]->text) == 0;
        is_truth = value->kind == NODE_TEXT && value->is_plain &&
                   (strcmp(value->text, "true") == 0 || strcmp(value->text, "false") == 0);
        if (!is_known)
            test_refuse_word(reading, node->keys[i], path, "an annotation", names, HINT_COUNT);
        else if (!is_truth)
            report_error(&reading->report, value, path, NULL, "must be true or false");
    }
    reading->one->annotations = json_of(node);
}

static const struct test_key request_keys[] = {
    {"tool", true, read_tool},
    {"source", false, read_source},
    {"arguments", false, policy_test_request_read_arguments},
    {"principal", false, policy_test_request_read_principal},
    {"at", false, read_at},
    {"annotations", false, policy_test_request_read_annotations},
};

static void test_read_request(struct reading *reading, const struct node *node, const char *path)
{
    const struct config *config = reading->file->snapshot->config;
    if (node->kind == NODE_MAPPING && !node_get(node, "source")) {
        reading->one->source = &config->sources[0];
        if (reading->file->has_rules && config->source_count > 1)
            report_error(&reading->report, node, path, "say which by the key source",
                         "there are several sources");
    }
    test_keys_read(reading, node, path, request_keys, COUNT_OF(request_keys));
}

/* ---- the target ---- */

/* The target of a file of cases: a configuration, or Cedar policies alone behind one rule for
 * all. */

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
    OWNED_BUFFER(text);
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
    return config;
}

/* ---- either ---- */

static struct config *policy_test_target_parse(struct test_file *file, const struct node *root,
                                               struct config_problems *problems)
{
    struct config *config = NULL;
    OWNED_BUFFER(text);
    if (!file->has_rules)
        return parse_around(file->target, root, problems);
    if (policy_files_read(file->target, &text))
        config = config_parse_rules(buffer_str(&text), file->target, find_variable, problems);
    return config;
}

/* Loads the file `file->target`; `root` is the document of the cases. False after lines on
 * stderr. */
static bool test_target_load(struct test_file *file, const struct node *root)
{
    struct config_problems problems = {0};
    OWNED_BUFFER(said);
    file->has_rules = !str_ends_with(str_from(file->target), STR(".cedar"));
    loading = file;
    struct config *config = policy_test_target_parse(file, root, &problems);
    file->snapshot = config ? snapshot_create(config, &problems) : NULL;
    loading = NULL;
    config_problems_write(&problems, &said);
    policy_files_complain(&said);
    config_problems_finish(&problems);
    if (!file->snapshot)
        return false;
    file->rules = memory_alloc_array(file->snapshot->config->rule_count + 1, sizeof(bool));
    file->policies = memory_alloc_array(policy_count(file->snapshot->policy) + 1, sizeof(bool));
    return true;
}

/* ---- the file ---- */

/* Reads a file of cases: first its target, then the cases. */

#define ENDING ".test.yaml"
/* ---- cases ---- */

static void policy_test_read_read_name(struct reading *reading, const struct node *node,
                                       const char *path)
{
    reading->one->name = memory_copy_text(test_text_of(reading, node, path));
}

static const struct test_key case_keys[] = {
    {"name", true, policy_test_read_read_name},
    {"request", true, test_read_request},
    {"expect", true, test_read_expect},
};

/* The target must be known by now: names of rules and policies are looked up in it. */
static void read_cases(struct reading *reading, const struct node *node, const char *path)
{
    struct test_file *file = reading->file;
    if (node->kind != NODE_LIST || node->count == 0) {
        report_error(&reading->report, node, path, NULL, "must be a list of cases");
        return;
    }
    if (!file->target || !test_target_load(file, reading->root))
        return;
    file->cases = memory_alloc_array(node->count, sizeof *file->cases);
    for (size_t i = 0; i < node->count; i++) {
        OWNED char *full = memory_format("%s[%zu]", path, i);
        struct place place = source_text_place(reading->report.source, node->values[i]->start);
        reading->one = &file->cases[file->count++];
        reading->one->line = place.line;
        reading->one->column = place.column;
        test_keys_read(reading, node->values[i], full, case_keys, COUNT_OF(case_keys));
    }
}

/* ---- the file ---- */

static void policy_test_read_read_target(struct reading *reading, const struct node *node,
                                         const char *path)
{
    const char *name = test_text_of(reading, node, path);
    if (!name)
        return;
    free(reading->file->target);
    reading->file->target = config_path_beside(reading->file->path, name);
    if (access(reading->file->target, R_OK) == 0)
        return;
    report_error(&reading->report, node, path, NULL, "%s cannot be read", reading->file->target);
    free(reading->file->target);
    reading->file->target = NULL;
}

static void read_environment(struct reading *reading, const struct node *node, const char *path)
{
    struct test_file *file = reading->file;
    if (node->kind != NODE_MAPPING) {
        report_error(&reading->report, node, path, NULL, "must be a mapping of names to values");
        return;
    }
    file->variables = memory_alloc_array(node->count, sizeof *file->variables);
    for (size_t i = 0; i < node->count; i++) {
        if (node->values[i]->kind != NODE_TEXT) {
            report_error(&reading->report, node->values[i], path, NULL, "must be text");
            continue;
        }
        const char *name = node->keys[i]->text, *value = node->values[i]->text;
        bool is_path = *value && strcmp(name, "THOUGHTGATE_POLICY_FILE") == 0;
        file->variables[file->variable_count++] = (struct test_variable){
            memory_copy_text(name),
            is_path ? config_path_beside(file->path, value) : memory_copy_text(value)};
    }
}

static const struct test_key file_keys[] = {
    {"tests", false, policy_test_read_read_target},
    {"environment", false, read_environment},
    {"cases", true, read_cases},
};

/* X.yaml, else X.cedar beside X.test.yaml; NULL when neither is there. */
static char *policy_test_read_find_target(const char *path)
{
    static const char *const endings[] = {".yaml", ".yml", ".cedar"};
    struct str stem = str_from(path);
    char *target = NULL;
    if (str_ends_with(stem, STR(ENDING)))
        stem.length -= sizeof ENDING - 1;
    for (size_t i = 0; i < COUNT_OF(endings) && !target; i++) {
        target = memory_format("%.*s%s", STR_ARGS(stem), endings[i]);
        if (strcmp(target, path) == 0 || access(target, F_OK) != 0) {
            free(target);
            target = NULL;
        }
    }
    return target;
}

static void policy_test_read_read_file(struct reading *reading)
{
    struct test_file *file = reading->file;
    file->target = policy_test_read_find_target(file->path);
    if (!file->target && !node_get(reading->root, "tests"))
        report_error(&reading->report, reading->root, NULL, "name the file by the key tests",
                     "there is no configuration or policy of this name beside it");
    test_keys_read(reading, reading->root, "", file_keys, COUNT_OF(file_keys));
}

static bool policy_test_read_read_text(struct test_file *file, struct str text,
                                       struct config_problems *problems)
{
    struct source_text source;
    if (!str_is_utf8(text)) {
        config_problems_add(problems, false, file->path, 0, 0, "the file is not UTF-8");
        return false;
    }
    source_text_init(&source, text, file->path, NULL);
    struct reading reading = {
        .report = {.source = &source,
                   .problems = problems,
                   .beginning = "a file of cases holds the key \"cases\""},
        .file = file,
    };
    struct node *root = document_parse(&reading.report);
    reading.root = root;
    if (root)
        policy_test_read_read_file(&reading);
    node_destroy(root);
    source_text_finish(&source);
    return problems->errors == 0 && file->snapshot;
}

/* Reads the cases and their target. False after lines on stderr; test_file_finish() in any
 * case. */
static bool test_file_init(struct test_file *file, const char *path)
{
    struct config_problems problems = {0};
    OWNED_BUFFER(text);
    OWNED_BUFFER(said);
    *file = (struct test_file){.path = path};
    bool good = policy_files_read(path, &text) &&
                policy_test_read_read_text(file, buffer_str(&text), &problems);
    config_problems_write(&problems, &said);
    policy_files_complain(&said);
    config_problems_finish(&problems);
    return good;
}

static void names_finish(struct test_names *names)
{
    for (size_t i = 0; i < names->names.count; i++)
        free(names->names.items[i]);
    free(names->names.items);
}

static void case_finish(struct test_case *one)
{
    char *const texts[] = {one->name,      one->tool, one->arguments,
                           one->principal, one->at,   one->annotations};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        free(texts[i]);
    names_finish(&one->policies);
    names_finish(&one->errors);
}

static void test_file_finish(struct test_file *file)
{
    for (size_t i = 0; i < file->count; i++)
        case_finish(&file->cases[i]);
    for (size_t i = 0; i < file->variable_count; i++) {
        free(file->variables[i].name);
        free(file->variables[i].value);
    }
    free(file->cases);
    free(file->variables);
    free(file->rules);
    free(file->policies);
    free(file->target);
    snapshot_unref(file->snapshot);
}

/* ---- a run ---- */

/* One case: rules and policies judge the call, and the outcome is compared with the expectation. */

/* A case without a time has the same one every day: a Monday, at noon. */
#define USUAL_TIME "2026-01-05T12:00:00Z"

static enum test_decision policy_test_run_decision_of(const struct consultation *consultation)
{
    const struct policy_decision *decision = &consultation->decision;
    if (consultation->gate &&
        strcmp(consultation->gate, policy_gate_name(POLICY_GATE_VISIBILITY)) == 0)
        return TEST_HIDDEN;
    if (consultation_is_invalid(consultation))
        return TEST_INVALID;
    if (decision->action == ACTION_DENY)
        return decision->by_policies ? TEST_REJECT : TEST_DENY;
    return decision->action == ACTION_FORWARD ? TEST_FORWARD : TEST_APPROVE;
}

/* ---- coverage ---- */

static void note_reached(struct test_file *file, const struct test_outcome *outcome)
{
    const struct config *config = file->snapshot->config;
    const struct cedar_policies *policies = policy_cedar(file->snapshot->policy);
    const struct policy_trace *trace = &outcome->consultation.trace;
    if (outcome->decision == TEST_HIDDEN)
        return;
    const struct config_rule *rule = outcome->ruled.rule;
    file->rules[rule ? (size_t)(rule - config->rules) : config->rule_count] = true;
    for (size_t i = 0; i < cedar_policies_count(policies); i++) {
        for (size_t k = 0; k < trace->count; k++)
            file->policies[i] =
                file->policies[i] || trace->items[k].cedar == cedar_policies_at(policies, i);
    }
}

/* ---- comparison ---- */

static void policy_test_run_differ(struct test_outcome *outcome, const char *what, char *expected,
                                   char *actual)
{
    ASSERT_NUMBERS(outcome->difference_count, <, TEST_DIFFERENCES_MAX);
    outcome->differences[outcome->difference_count++] =
        (struct test_difference){what, expected, actual};
}

static char *policy_test_run_describe_rule(const struct test_file *file,
                                           const struct config_rule *rule)
{
    if (!rule)
        return memory_copy_text("the default action");
    return memory_format("%s (%s:%d)", rule->match, file->target, rule->line);
}

static void compare_rule(const struct test_file *file, const struct test_case *one,
                         struct test_outcome *outcome)
{
    bool is_same = outcome->decision != TEST_HIDDEN && outcome->ruled.rule == one->rule;
    if (one->has_rule && !is_same)
        policy_test_run_differ(outcome, "rule", policy_test_run_describe_rule(file, one->rule),
                               outcome->decision == TEST_HIDDEN
                                   ? memory_copy_text("none, it is hidden")
                                   : policy_test_run_describe_rule(file, outcome->ruled.rule));
}

static void compare_workflow(const struct test_case *one, struct test_outcome *outcome)
{
    const struct config_workflow *actual =
        outcome->decision == TEST_APPROVE ? outcome->consultation.decision.workflow : NULL;
    if (one->workflow && one->workflow != actual)
        policy_test_run_differ(outcome, "workflow", memory_copy_text(one->workflow->name),
                               memory_copy_text(actual ? actual->name : "none"));
}

/* Permits decide a call that passes, and forbids a rejected one. Errors have a key of their own. */
static bool counts(const struct test_outcome *outcome, const struct policy_finding *finding,
                   bool errors)
{
    if (errors || finding->kind == FINDING_ERROR)
        return errors && finding->kind == FINDING_ERROR;
    return (finding->kind == FINDING_FORBID) == (outcome->decision == TEST_REJECT);
}

/* Whether each name names a policy that counts, and each policy that counts has a name. */
static bool policy_test_run_fits(const struct test_outcome *outcome, const struct test_names *names,
                                 bool errors)
{
    const struct policy_trace *trace = &outcome->consultation.trace;
    for (size_t i = 0; i < names->names.count; i++) {
        bool is_there = false;
        for (size_t k = 0; k < trace->count; k++)
            is_there = is_there || (counts(outcome, &trace->items[k], errors) &&
                                    test_names_fit(names->names.items[i], trace->items[k].cedar));
        if (!is_there)
            return false;
    }
    for (size_t k = 0; k < trace->count; k++) {
        bool is_named = !counts(outcome, &trace->items[k], errors);
        for (size_t i = 0; i < names->names.count; i++)
            is_named = is_named || test_names_fit(names->names.items[i], trace->items[k].cedar);
        if (!is_named)
            return false;
    }
    return true;
}

/* A policy is asked once for each action, but named once. */
static char *list_findings(const struct test_outcome *outcome, bool errors)
{
    const struct policy_trace *trace = &outcome->consultation.trace;
    OWNED_BUFFER(text);
    for (size_t i = 0; i < trace->count; i++) {
        const struct policy_finding *finding = &trace->items[i];
        bool is_new = counts(outcome, finding, errors);
        for (size_t k = 0; k < i; k++)
            is_new = is_new && !(counts(outcome, &trace->items[k], errors) &&
                                 trace->items[k].cedar == finding->cedar);
        struct str name = test_name_of(finding->cedar);
        if (is_new)
            buffer_append_format(&text, "%s%.*s (%s:%u:%u)", text.length ? ", " : "",
                                 STR_ARGS(name), finding->file, finding->line, finding->column);
    }
    if (!text.length)
        buffer_append_text(&text, "none");
    return buffer_take(&text, NULL);
}

static char *list_names(const struct test_names *names)
{
    OWNED_BUFFER(text);
    for (size_t i = 0; i < names->names.count; i++)
        buffer_append_format(&text, "%s%s", i > 0 ? ", " : "", names->names.items[i]);
    if (!text.length)
        buffer_append_text(&text, "none");
    return buffer_take(&text, NULL);
}

static void compare_names(const struct test_names *names, const char *what, bool errors,
                          struct test_outcome *outcome)
{
    if (names->is_given && !policy_test_run_fits(outcome, names, errors))
        policy_test_run_differ(outcome, what, list_names(names), list_findings(outcome, errors));
}

/* ---- running ---- */

/* Runs one case and notes the rules and policies that it reaches; false after a line on stderr if
 * it cannot run. test_outcome_finish() in any case. */
static bool test_case_run(struct test_file *file, const struct test_case *one,
                          struct test_outcome *outcome)
{
    const struct consultation_options options = {
        .arguments = one->arguments,
        .principal = one->principal,
        .at = one->at ? one->at : USUAL_TIME,
        .annotations = one->annotations,
    };
    *outcome = (struct test_outcome){.difference_count = 0};
    if (!consultation_init(&outcome->consultation, &options))
        return false;
    struct policy_request request = {.source = one->source,
                                     .name = str_from(one->tool),
                                     .verified = outcome->consultation.request.verified};
    policy_decide(file->snapshot->policy, &request, &outcome->ruled);
    consultation_hold(&outcome->consultation, file->snapshot, one->source, request.name,
                      &outcome->ruled);
    outcome->decision = policy_test_run_decision_of(&outcome->consultation);
    note_reached(file, outcome);
    if (outcome->decision != one->decision)
        policy_test_run_differ(outcome, "decision",
                               memory_copy_text(test_decision_name(one->decision)),
                               memory_copy_text(test_decision_name(outcome->decision)));
    compare_rule(file, one, outcome);
    compare_workflow(one, outcome);
    compare_names(&one->policies, "policies", false, outcome);
    compare_names(&one->errors, "errors", true, outcome);
    return true;
}

static void test_outcome_finish(struct test_outcome *outcome)
{
    for (size_t i = 0; i < outcome->difference_count; i++) {
        free(outcome->differences[i].expected);
        free(outcome->differences[i].actual);
    }
    consultation_finish(&outcome->consultation);
}

/* ---- reports ---- */

/* Reports the results of cases, for people and as JSON: differences, and unreached rules. */

/* ---- a case ---- */

static void policy_test_report_append_line(struct buffer *out, const char *label, char sign,
                                           const char *text)
{
    buffer_append_format(out, "    %-10s%c ", label, sign);
    visible_append(out, str_from(text));
    buffer_append_char(out, '\n');
}

static void policy_test_report_append_call(struct buffer *out, const struct test_case *one)
{
    buffer_append_format(out, "    %-10s  ", "call");
    visible_append(out, str_from(one->tool));
    buffer_append_char(out, ' ');
    visible_append_json_for_people(out, one->arguments ? str_from(one->arguments) : STR("{}"));
    buffer_append_text(out, " of ");
    visible_append(out, str_from(one->source->id));
    buffer_append_char(out, '\n');
}

/* As `explain` shows it, further in. */
static void policy_test_report_append_explanation(struct buffer *out,
                                                  const struct consultation *consultation)
{
    OWNED_BUFFER(text);
    struct str rest, line;
    consultation_write_text(&text, consultation);
    rest = buffer_str(&text);
    while (rest.length) {
        str_cut(rest, '\n', &line, &rest);
        buffer_append_text(out, "      ");
        buffer_append(out, line);
        buffer_append_char(out, '\n');
    }
}

static void test_report_failure(struct buffer *out, const struct test_file *file,
                                const struct test_case *one, const struct test_outcome *outcome)
{
    buffer_append_format(out, "FAILED %s:%d:%d: ", file->path, one->line, one->column);
    visible_append(out, str_from(one->name));
    buffer_append_char(out, '\n');
    policy_test_report_append_call(out, one);
    for (size_t i = 0; i < outcome->difference_count; i++) {
        const struct test_difference *difference = &outcome->differences[i];
        policy_test_report_append_line(out, difference->what, '-', difference->expected);
        policy_test_report_append_line(out, "", '+', difference->actual);
    }
    policy_test_report_append_explanation(out, &outcome->consultation);
}

static void test_report_case_json(struct buffer *out, const struct test_case *one,
                                  const struct test_outcome *outcome)
{
    const struct config_rule *rule = outcome->ruled.rule;
    const struct policy_decision *decision = &outcome->consultation.decision;
    json_add_text(out, "name", one->name);
    json_add_number(out, "line", one->line);
    json_add_number(out, "column", one->column);
    json_add_bool(out, "passed", outcome->difference_count == 0);
    json_add_text(out, "outcome", test_decision_name(outcome->decision));
    json_add_text_or_null(out, "rule", rule ? rule->match : NULL);
    json_add_text_or_null(out, "workflow",
                          outcome->decision == TEST_APPROVE ? decision->workflow->name : NULL);
    consultation_write_json(out, &outcome->consultation);
    json_add_key(out, "differences");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < outcome->difference_count; i++) {
        const struct test_difference *difference = &outcome->differences[i];
        buffer_append_text(out, i > 0 ? ",{" : "{");
        json_add_text(out, "what", difference->what);
        json_add_text(out, "expected", difference->expected);
        json_add_text(out, "actual", difference->actual);
        buffer_append_char(out, '}');
    }
    buffer_append_char(out, ']');
}

/* ---- rules and policies that no case has reached ---- */

/* One thing that was not reached. */
struct unreached {
    const char *kind, *file;
    struct str name;
    int line, column;
};

/* The next one; start with *position 0. Rules, the default action, policies. */
static bool next_unreached(const struct test_file *file, size_t *position, struct unreached *item)
{
    const struct config *config = file->snapshot->config;
    const struct cedar_policies *policies = policy_cedar(file->snapshot->policy);
    /* A default that denies lets no unexpected call through. */
    bool has_default = config->default_action != ACTION_DENY;
    size_t rules = file->has_rules ? config->rule_count + has_default : 0;
    for (; *position < rules + cedar_policies_count(policies); (*position)++) {
        bool is_rule = *position < rules;
        if (is_rule ? file->rules[*position] : file->policies[*position - rules])
            continue;
        if (*position < config->rule_count && is_rule) {
            const struct config_rule *rule = &config->rules[*position];
            *item = (struct unreached){"rule", file->target, str_from(rule->match), rule->line,
                                       rule->column};
        } else if (is_rule) {
            *item = (struct unreached){"default", file->target, STR("the default action"), 0, 0};
        } else {
            const struct cedar_policy *policy = cedar_policies_at(policies, *position - rules);
            struct cedar_position place = cedar_policy_position(policy);
            *item = (struct unreached){"policy", place.source, test_name_of(policy),
                                       (int)place.line, (int)place.column};
        }
        (*position)++;
        return true;
    }
    return false;
}

/* One line for each rule and policy that no case has reached; how many there are. */
static size_t test_report_unreached(struct buffer *out, const struct test_file *file)
{
    struct unreached item;
    size_t count = 0;
    for (size_t position = 0; next_unreached(file, &position, &item); count++) {
        buffer_append_format(out, "  %s", item.file);
        if (item.line)
            buffer_append_format(out, ":%d:%d", item.line, item.column);
        buffer_append_format(out, ": %s%s", item.line ? item.kind : "", item.line ? " " : "");
        visible_append(out, item.name);
        buffer_append_char(out, '\n');
    }
    return count;
}

/* An array of the same. */
static void test_report_unreached_json(struct buffer *out, const struct test_file *file)
{
    struct unreached item;
    const char *between = "";
    buffer_append_char(out, '[');
    for (size_t position = 0; next_unreached(file, &position, &item); between = ",") {
        buffer_append_format(out, "%s{", between);
        json_add_text(out, "kind", item.kind);
        json_add_str(out, "name", item.name);
        json_add_text(out, "file", item.file);
        json_add_number(out, "line", item.line);
        json_add_number(out, "column", item.column);
        buffer_append_char(out, '}');
    }
    buffer_append_char(out, ']');
}

/* ---- the command ---- */

#define ENDING ".test.yaml"
#define OPEN_FOLDERS 16

/* ---- finding ---- */

/* nftw() passes no context, and commands have one thread. */
static struct config_strings found;

static void policy_test_add_file(const char *path)
{
    found.items = memory_grow_array(found.items, found.count + 1, sizeof *found.items);
    found.items[found.count++] = memory_copy_text(path);
}

/* Hidden folders are skipped: beside mounted files they hold the same files again. */
static int policy_test_visit(const char *path, const struct stat *status, int type,
                             struct FTW *place)
{
    (void)status;
    if (type == FTW_D && place->level > 0 && path[place->base] == '.')
        return FTW_SKIP_SUBTREE;
    if (type == FTW_F && str_ends_with(str_from(path), STR(ENDING)))
        policy_test_add_file(path);
    return FTW_CONTINUE;
}

static int compare_paths(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* All files of cases below `path`, or `path` itself if it is one; sorted. False after a message on
 * stderr. */
static bool find_files(const char *path)
{
    struct stat status;
    OWNED char *folder = memory_copy_text(path);
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        folder[--length] = '\0';
    bool good = stat(folder, &status) == 0;
    if (!good)
        options_complain("%s cannot be read: %s", path, strerror(errno));
    else if (!S_ISDIR(status.st_mode))
        policy_test_add_file(folder);
    else if (nftw(folder, policy_test_visit, OPEN_FOLDERS, FTW_ACTIONRETVAL) != 0)
        good = options_complain("%s cannot be searched: %s", path, strerror(errno)) == 0;
    if (good && found.count == 0)
        good = options_complain("there is no file *" ENDING " in %s", path) == 0;
    if (found.count > 0)
        qsort(found.items, found.count, sizeof *found.items, compare_paths);
    return good;
}

static void forget_files(void)
{
    for (size_t i = 0; i < found.count; i++)
        free(found.items[i]);
    free(found.items);
    found = (struct config_strings){NULL, 0};
}

/* ---- running ---- */

/* The totals over all files. */
struct tally {
    size_t files, cases, failed, unreached;
    struct buffer out, unreached_lines;
    bool json;
};

/* False when the case could not run at all. */
static bool run_case(struct tally *tally, struct test_file *file, size_t index)
{
    struct test_outcome outcome;
    const struct test_case *one = &file->cases[index];
    bool good = test_case_run(file, one, &outcome);
    if (good && tally->json) {
        buffer_append_text(&tally->out, index > 0 ? ",{" : "{");
        test_report_case_json(&tally->out, one, &outcome);
        buffer_append_char(&tally->out, '}');
    } else if (good && outcome.difference_count > 0) {
        test_report_failure(&tally->out, file, one, &outcome);
    }
    tally->failed += outcome.difference_count > 0;
    tally->cases++;
    test_outcome_finish(&outcome);
    return good;
}

static bool run_file(struct tally *tally, struct test_file *file)
{
    size_t failed_before = tally->failed;
    bool good = true;
    struct buffer *out = &tally->out;
    if (tally->json) {
        buffer_append_text(out, tally->files > 0 ? ",{" : "{");
        json_add_text(out, "file", file->path);
        json_add_text(out, "tests", file->target);
        buffer_append_text(out, ",\"cases\":[");
    }
    for (size_t i = 0; i < file->count; i++)
        good = run_case(tally, file, i) && good;
    tally->files++;
    tally->unreached += test_report_unreached(&tally->unreached_lines, file);
    if (tally->json) {
        buffer_append_text(out, "],\"unreached\":");
        test_report_unreached_json(out, file);
        buffer_append_char(out, '}');
    } else if (tally->failed == failed_before) {
        buffer_append_format(out, "passed %s: %zu %s of %s\n", file->path, file->count,
                             file->count == 1 ? "case" : "cases", file->target);
    }
    return good;
}

static void summarise(struct tally *tally)
{
    struct buffer *out = &tally->out;
    if (tally->json) {
        buffer_append_format(out, "],\"cases\":%zu,\"failed\":%zu,\"unreached\":%zu}\n",
                             tally->cases, tally->failed, tally->unreached);
        return;
    }
    if (tally->unreached > 0) {
        buffer_append_text(out, "\nNo case has reached:\n");
        buffer_append(out, buffer_str(&tally->unreached_lines));
    }
    buffer_append_format(out, "\n%zu %s: %zu passed, %zu failed. %s\n", tally->cases,
                         tally->cases == 1 ? "case" : "cases", tally->cases - tally->failed,
                         tally->failed,
                         tally->unreached > 0 ? "Not every rule and policy was reached."
                                              : "Every rule and policy was reached.");
}

static int run_files(struct test_file *files, bool strict, bool json)
{
    struct tally tally = {.json = json};
    bool good = true;
    buffer_init(&tally.out);
    buffer_init(&tally.unreached_lines);
    buffer_append_text(&tally.out, json ? "{\"files\":[" : "");
    for (size_t i = 0; i < found.count; i++)
        good = run_file(&tally, &files[i]) && good;
    summarise(&tally);
    int code = terminal_write(&tally.out) ? CLI_DONE : CLI_FAILURE;
    if (tally.failed > 0 || (strict && tally.unreached > 0))
        code = CLI_FAILURE;
    buffer_finish(&tally.unreached_lines);
    buffer_finish(&tally.out);
    return good ? code : CLI_USAGE;
}

/* All files are read before any case runs, so that one run reports all mistakes. */
static int test(const char *path, bool strict, bool json)
{
    int code = CLI_USAGE;
    bool good = find_files(path);
    OWNED struct test_file *files = memory_alloc_array(found.count, sizeof *files);
    for (size_t i = 0; i < found.count; i++)
        good = test_file_init(&files[i], found.items[i]) && good;
    if (good)
        code = run_files(files, strict, json);
    for (size_t i = 0; i < found.count; i++)
        test_file_finish(&files[i]);
    forget_files();
    return code;
}

int cli_policy_test(int argc, char **argv)
{
    const char *path = NULL;
    bool json = false, strict = false;
    const struct option options[] = {
        {"json", NULL, "print JSON", .flag = &json},
        {"strict", NULL, "fail also if no case reaches a rule or policy", .flag = &strict},
    };
    const struct command command = {
        .usage = "taskgate policy test DIR [--strict] [--json]",
        .synopsis =
            "Runs the cases in every *" ENDING " in DIR and below; X" ENDING " tests X.yaml,\n"
            "or X.cedar, beside it. A case is a call and its expected outcome:\n\n"
            "  cases:\n"
            "    - name: a small payment goes through\n"
            "      request: {tool: pay_invoice, arguments: {amount: 99}}\n"
            "      expect: {decision: forward, rule: \"pay_*\", policies: [small]}\n\n"
            "  request  tool, source, arguments, principal, at, annotations\n"
            "  expect   decision (forward, approve, deny, reject, hidden), rule, workflow,\n"
            "           policies, errors\n\n"
            "For a failed case, - marks the expectation and + the result. At the end come the\n"
            "rules and policies that no case has reached. Exit code 1 if a case fails, 2 if a\n"
            "file has a mistake.",
        COMMAND_OPTIONS(options),
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "DIR",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &path);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    return test(path, strict, json);
}
