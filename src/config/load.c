/* From a file to a configuration: find, read, substitute, parse, check, compile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_private.h"
#include "environment.h"
#include "file.h"
#include "read.h"
#include "taskgate/core/memory.h"
#include "validate.h"

static const char *const search_path[] = {"/etc/thoughtgate/config.yaml", "./config.yaml"};

static const char *process_environment(const char *name)
{
    return getenv(name);
}

static int compare_problems(const void *left, const void *right)
{
    const struct config_problem *a = left, *b = right;
    /* Those without a place come last, in the order of the table they come from. */
    int a_line = a->line ? a->line : INT32_MAX, b_line = b->line ? b->line : INT32_MAX;
    if (a_line != b_line)
        return a_line < b_line ? -1 : 1;
    return a->column - b->column;
}

/* In the file's order. An insertion sort, for it keeps equal places as they were found. */
static void sort_problems(struct config_problems *problems)
{
    for (size_t i = 1; i < problems->count; i++) {
        struct config_problem problem = problems->items[i];
        size_t j = i;
        for (; j > 0 && compare_problems(&problems->items[j - 1], &problem) > 0; j--)
            problems->items[j] = problems->items[j - 1];
        problems->items[j] = problem;
    }
}

static void fill(const struct draft *draft)
{
    struct config *config = draft->config;
    config->store_path_is_default = node_is_null(node_get(node_get(draft->root, "store"), "path"));
    environment_apply(draft);
    validate_schema(draft);
    validate_sources(draft);
    validate_workflows(draft);
    validate_cedar(draft);
    validate_rules(draft);
    validate_tokens(draft);
    validate_notify(draft);
    validate_pseudo(draft);
    validate_telemetry(draft);
}

static struct config *parse(const struct source_text *source, config_getenv environment,
                            struct config_problems *problems)
{
    struct report report = {.source = source, .problems = problems};
    struct node *root = document_parse(&report);
    if (!root)
        return NULL;
    struct config *config = config_create();
    struct draft draft = {
        .report = report, .root = root, .config = config, .environment = environment};
    config->path = memory_copy_text(source->name);
    read_document(&report, root, config);
    if (root->kind == NODE_MAPPING)
        fill(&draft);
    node_destroy(root);
    return config;
}

struct config *config_parse(struct str text, const char *name, config_getenv environment,
                            struct config_problems *problems)
{
    struct source_text source;
    struct config *config = NULL;
    size_t errors_before = problems->errors;
    struct place place = {.file = name};
    if (!str_is_utf8(text)) {
        problems_error(problems, place, NULL, "save it as UTF-8", "the file is not UTF-8");
        return NULL;
    }
    if (!environment)
        environment = process_environment;
    source_text_init(&source, text, name, environment);
    config = parse(&source, environment, problems);
    source_text_finish(&source);
    sort_problems(problems);
    if (problems->errors == errors_before) {
        config_compile(config);
        return config;
    }
    config_unref(config);
    return NULL;
}

/* The name of the file to read; one that nobody named only if it exists. */
static const char *find_file(const char *path, config_getenv environment,
                             struct config_problems *problems)
{
    if (!path || !*path)
        path = environment("THOUGHTGATE_CONFIG");
    if (path && *path)
        return path;
    for (size_t i = 0; i < sizeof search_path / sizeof *search_path; i++) {
        if (access(search_path[i], F_OK) == 0)
            return search_path[i];
    }
    problems_error(
        problems, (struct place){0}, NULL, "name one with --config or THOUGHTGATE_CONFIG",
        "no configuration file was found; searched: %s, %s", search_path[0], search_path[1]);
    return NULL;
}

struct config *config_load(const char *path, config_getenv environment,
                           struct config_problems *problems)
{
    struct buffer text;
    struct config *config = NULL;
    if (!environment)
        environment = process_environment;
    path = find_file(path, environment, problems);
    if (!path)
        return NULL;
    struct config_file file;
    buffer_init(&text);
    if (file_read(path, &text, &file))
        config = config_parse(buffer_str(&text), path, environment, problems);
    else
        problems_error(problems, (struct place){.file = path}, NULL, NULL,
                       "the configuration file cannot be read: %s", strerror(errno));
    buffer_finish(&text);
    if (config)
        config_add_file(config, path, &file);
    return config;
}
