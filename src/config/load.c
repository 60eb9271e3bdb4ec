/* From a file to a configuration: find, read, substitute, parse, check, compile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_private.h"
#include "distance.h"
#include "environment.h"
#include "taskgate/config/memory_limit.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "validate.h"

static const char *const search_path[] = {"/etc/thoughtgate/config.yaml", "./config.yaml"};

static const char *load_process_environment(const char *name)
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
static void sort_problems(struct config_problems *problems, size_t first)
{
    for (size_t i = first + 1; i < problems->count; i++) {
        struct config_problem problem = problems->items[i];
        size_t j = i;
        for (; j > first && compare_problems(&problems->items[j - 1], &problem) > 0; j--)
            problems->items[j] = problems->items[j - 1];
        problems->items[j] = problem;
    }
}

static struct config *load_shadow(const struct draft *draft);

static void load_fill(const struct draft *draft)
{
    struct config *config = draft->config;
    config->store_path_is_default = !draft_variable(draft, "THOUGHTGATE_STORE_PATH") &&
                                    node_is_null(node_get(node_get(draft->root, "store"), "path"));
    environment_apply(draft);
    validate_schema(draft);
    validate_methods(draft);
    validate_store(draft);
    validate_sources(draft);
    validate_telemetry(draft);
    validate_tls(draft);
    validate_workflows(draft);
    validate_cedar(draft);
    validate_rules(draft);
    validate_oidc(draft);
    validate_operators(draft);
    validate_notify(draft);
    validate_slack(draft);
    validate_recipients(draft);
    validate_ballots(draft);
    validate_audit(draft);
    validate_memory(draft);
    validate_pseudo(draft);
    validate_advice(draft);
    if (validate_shadow_path(draft)) {
        draft->config->shadow = load_shadow(draft);
        validate_shadow(draft);
    }
}

/* ---- a shadow's findings, behind those of the configuration that names it ---- */

/* A mistake in the environment is found once with each of the two. */
static void append_problems(struct config_problems *problems, const struct config_problems *more)
{
    for (size_t i = 0; i < more->count; i++) {
        const struct config_problem *problem = &more->items[i];
        struct place place = {problem->file, problem->line, problem->column};
        if (problems_have(problems, problem->is_warning, place, problem->message))
            continue;
        if (problem->is_warning)
            problems_warning(problems, place, problem->key, problem->hint, "%s", problem->message);
        else
            problems_error(problems, place, problem->key, problem->hint, "%s", problem->message);
    }
}

/* ---- from text ---- */

/* The file of the text. */
struct origin {
    const char *name;
    config_getenv environment;
    bool is_shadow;
    bool needs_no_secrets;
    int64_t memory_bytes;                 /* as memory_limit_of() */
    const struct config_running *running; /* of config_reload(); else NULL */
};

static struct config *load_parse(const struct source_text *source, const struct origin *origin,
                                 struct config_problems *problems)
{
    struct report report = {.source = source,
                            .problems = problems,
                            .beginning = "a configuration begins with \"schema: 1\""};
    struct config_problems of_shadow = {0};
    size_t first = problems->count;
    struct node *root = document_parse(&report);
    struct config *config = root ? config_create() : NULL;
    if (root) {
        struct draft draft = {.report = report,
                              .root = root,
                              .config = config,
                              .environment = origin->environment,
                              .running = origin->running,
                              .is_shadow = origin->is_shadow,
                              .needs_no_secrets = origin->needs_no_secrets,
                              .shadow_problems = &of_shadow};
        config->path = memory_copy_text(source->name);
        config_set_memory_limit(config, origin->memory_bytes);
        spelling_normalize(root);
        read_document(&report, root, config);
        if (root->kind == NODE_MAPPING)
            load_fill(&draft);
        node_destroy(root);
    }
    sort_problems(problems, first);
    append_problems(problems, &of_shadow);
    config_problems_finish(&of_shadow);
    return config;
}

static struct place place_of_bad_byte(struct str text, const char *name)
{
    struct place place = {.file = name, .line = 1, .column = 1};
    size_t end = str_utf8_length(text);
    for (size_t i = 0; i < end; i++) {
        if (text.bytes[i] == '\n') {
            place.line++;
            place.column = 1;
        } else if (((unsigned char)text.bytes[i] & 0xC0) != 0x80) {
            place.column++;
        }
    }
    return place;
}

/* Some editors begin a file with it. */
static struct str without_byte_order_mark(struct str text)
{
    struct str mark = STR("\xEF\xBB\xBF");
    if (!str_starts_with(text, mark))
        return text;
    return str_slice(text.bytes + mark.length, text.length - mark.length);
}

/* The audit trail names the configuration by it. Values of the environment do not count. */
static void load_sum_up(struct config *config, struct str text)
{
    OWNED_BUFFER(all);
    buffer_append(&all, text);
    for (size_t i = 0; i < config->policy_count; i++) {
        buffer_append_char(&all, '\0');
        buffer_append(&all, str_slice(config->policies[i].text, config->policies[i].length));
    }
    digest_sha256_hex(buffer_str(&all), config->digest);
}

/* NULL when anything is wrong; `problems` then has the files that were read. */
static struct config *load_parse_text(struct str text, const struct origin *origin,
                                      struct config_problems *problems)
{
    struct source_text source;
    size_t errors_before = problems->errors;
    text = without_byte_order_mark(text);
    if (!str_is_utf8(text)) {
        problems_error(problems, place_of_bad_byte(text, origin->name), NULL, "save it as UTF-8",
                       "the file is not UTF-8");
        return NULL;
    }
    source_text_init(&source, text, origin->name, origin->environment);
    struct config *config = load_parse(&source, origin, problems);
    source_text_finish(&source);
    if (problems->errors == errors_before) {
        config_compile(config);
        load_sum_up(config, text);
        return config;
    }
    for (size_t i = 0; config && i < config->file_count; i++)
        config_add_failed_file(problems, config->files[i].path, &config->files[i]);
    config_unref(config);
    return NULL;
}

struct config *config_parse(struct str text, const char *name, config_getenv environment,
                            struct config_problems *problems)
{
    const struct origin origin = {
        .name = name, .environment = environment ? environment : load_process_environment};
    return load_parse_text(text, &origin, problems);
}

struct config *config_parse_rules(struct str text, const char *name, config_getenv environment,
                                  struct config_problems *problems)
{
    const struct origin origin = {.name = name,
                                  .environment =
                                      environment ? environment : load_process_environment,
                                  .needs_no_secrets = true};
    return load_parse_text(text, &origin, problems);
}

/* ---- from a file ---- */

static struct config *load_file(const struct origin *origin, struct config_problems *problems)
{
    OWNED_BUFFER(text);
    struct config *config = NULL;
    struct config_file file;
    if (file_read(origin->name, &text, &file))
        config = load_parse_text(buffer_str(&text), origin, problems);
    else
        problems_error(problems, (struct place){.file = origin->name}, NULL, NULL,
                       "the configuration file cannot be read: %s", strerror(errno));
    if (config)
        config_add_file(config, origin->name, &file);
    else
        config_add_failed_file(problems, origin->name, &file);
    return config;
}

/* NULL with errors in the draft's problems of the shadow; the files that were read are in the
 * result, or there. */
static struct config *load_shadow(const struct draft *draft)
{
    const struct origin origin = {.name = draft->config->shadow_path,
                                  .environment = draft->environment,
                                  .is_shadow = true,
                                  .needs_no_secrets = draft->needs_no_secrets};
    return load_file(&origin, draft->shadow_problems);
}

const char *config_find(const char *path, config_getenv environment)
{
    if (!environment)
        environment = load_process_environment;
    if (!path || !*path)
        path = environment("THOUGHTGATE_CONFIG");
    if (path && *path)
        return path;
    for (size_t i = 0; i < sizeof search_path / sizeof *search_path; i++) {
        if (access(search_path[i], F_OK) == 0)
            return search_path[i];
    }
    return NULL;
}

static struct config *load_found(const char *path, config_getenv environment,
                                 const struct config_running *running,
                                 struct config_problems *problems)
{
    path = config_find(path, environment);
    if (path)
        return load_file(&(struct origin){.name = path,
                                          .environment = environment,
                                          .memory_bytes = memory_limit_read(""),
                                          .running = running},
                         problems);
    problems_error(
        problems, (struct place){0}, NULL, "name one with --config or THOUGHTGATE_CONFIG",
        "no configuration file was found; searched: %s, %s", search_path[0], search_path[1]);
    return NULL;
}

struct config *config_load(const char *path, config_getenv environment,
                           struct config_problems *problems)
{
    return load_found(path, environment ? environment : load_process_environment, NULL, problems);
}

struct config *config_reload(const char *path, const struct config_running *running,
                             struct config_problems *problems)
{
    return load_found(path, load_process_environment, running, problems);
}
