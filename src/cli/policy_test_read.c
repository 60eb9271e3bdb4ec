/* Reads a file of cases: first its target, then the cases. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/core/memory.h"

#include "policy.h"
#include "policy_test_keys.h"

#define ENDING ".test.yaml"
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

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
        char *full = memory_format("%s[%zu]", path, i);
        struct place place = source_text_place(reading->report.source, node->values[i]->start);
        reading->one = &file->cases[file->count++];
        reading->one->line = place.line;
        reading->one->column = place.column;
        test_keys_read(reading, node->values[i], full, case_keys, COUNT_OF(case_keys));
        free(full);
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

bool test_file_init(struct test_file *file, const char *path)
{
    struct config_problems problems = {0};
    struct buffer text, said;
    *file = (struct test_file){.path = path};
    buffer_init(&text);
    buffer_init(&said);
    bool good = policy_files_read(path, &text) &&
                policy_test_read_read_text(file, buffer_str(&text), &problems);
    config_problems_write(&problems, &said);
    policy_files_complain(&said);
    config_problems_finish(&problems);
    buffer_finish(&said);
    buffer_finish(&text);
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

void test_file_finish(struct test_file *file)
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
