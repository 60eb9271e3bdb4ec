/* The source of Cedar policies: a variable, or the files of the configuration (reference §6.2). An
 * unreadable file is an error, because it may have held a forbid. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_private.h"
#include "file.h"
#include "taskgate/core/memory.h"
#include "validate.h"

#define FILE_VARIABLE "THOUGHTGATE_POLICY_FILE"
#define TEXT_VARIABLE "THOUGHTGATE_POLICIES"
/* The default file of ThoughtGate. */
#define USUAL_FILE "/etc/thoughtgate/policies.cedar"

static void add(const struct draft *draft, const char *name, struct str text)
{
    struct config *config = draft->config;
    config->policies =
        memory_grow_array(config->policies, config->policy_count + 1, sizeof *config->policies);
    config->policies[config->policy_count++] = (struct config_policy_text){
        .name = memory_copy_text(name), .text = memory_copy_str(text), .length = text.length};
}

/* NULL, or why the file cannot be read. */
static const char *add_file(const struct draft *draft, const char *path)
{
    struct buffer text;
    struct config_file file;
    buffer_init(&text);
    const char *failure = file_read(path, &text, &file) ? NULL : strerror(errno);
    add(draft, path, buffer_str(&text));
    config_add_file(draft->config, path, &file);
    buffer_finish(&text);
    return failure;
}

static void add_file_of_variable(const struct draft *draft, const char *variable, const char *path)
{
    const char *failure = add_file(draft, path);
    if (failure)
        problems_error(draft->report.problems, (struct place){.file = variable}, NULL, NULL,
                       "V-013 the policy file %s cannot be read: %s", path, failure);
}

static const char *look(const char *path)
{
    return access(path, R_OK) == 0 ? NULL : strerror(errno);
}

/* The files of the list must be there even where others win over them, and are not read then. */
static void name_files(const struct draft *draft, const struct node *list, bool others_win)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct node *item = list->values[i];
        if (item->kind != NODE_TEXT || !*item->text)
            continue; /* reported where it was read */
        char *path = config_path_beside(draft->config->path, item->text);
        const char *failure = others_win ? look(path) : add_file(draft, path);
        char *key = memory_format("cedar.policies[%zu]", i);
        if (failure)
            report_error(&draft->report, item, key, NULL,
                         "V-013 the policy file %s cannot be read: %s", path, failure);
        free(key);
        free(path);
    }
}

/* It says nothing to the gateway, but the file that names it shall be whole. */
static void check_schema(const struct draft *draft, const struct node *node)
{
    if (!node || node->kind != NODE_TEXT || !*node->text)
        return;
    char *path = config_path_beside(draft->config->path, node->text);
    const char *failure = look(path);
    if (failure)
        report_error(&draft->report, node, "cedar.schema", NULL, "V-013 %s cannot be read: %s",
                     path, failure);
    report_warning(&draft->report, node, "cedar.schema", NULL,
                   "the schema is not read: policies are checked against the entities and "
                   "attributes that the gateway itself makes");
    free(path);
}

static const char *variable(const struct draft *draft, const char *name)
{
    const char *value = draft->environment(name);
    return value && *value ? value : NULL;
}

/* Only the first existing source counts. A shadow's own files come before the variables, because
 * the variables hold the policies in force, and a shadow is meant to differ. */
void validate_cedar(const struct draft *draft)
{
    const struct node *cedar = node_get(draft->root, "cedar");
    const struct node *list = node_get(cedar, "policies");
    bool has_list = list && list->kind == NODE_LIST && list->count > 0;
    bool is_own = draft->is_shadow && has_list;
    const char *file = is_own ? NULL : variable(draft, FILE_VARIABLE);
    const char *text = is_own ? NULL : variable(draft, TEXT_VARIABLE);
    if (file)
        add_file_of_variable(draft, FILE_VARIABLE, file);
    else if (text)
        add(draft, TEXT_VARIABLE, str_from(text));
    else if (!has_list && access(USUAL_FILE, F_OK) == 0)
        add_file_of_variable(draft, USUAL_FILE, USUAL_FILE);
    if (has_list)
        name_files(draft, list, file || text);
    if (has_list && (file || text))
        report_warning(&draft->report, list, "cedar.policies", NULL,
                       "the files are not read: %s is set and wins",
                       file ? FILE_VARIABLE : TEXT_VARIABLE);
    if (file && text)
        problems_warning(draft->report.problems, (struct place){.file = TEXT_VARIABLE}, NULL, NULL,
                         FILE_VARIABLE " is set as well and wins");
    check_schema(draft, node_get(cedar, "schema"));
}
