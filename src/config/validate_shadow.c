/* The second configuration, which decides nothing: where it is, and how it fits the first. */
#include <stdlib.h>

#include "config_private.h"
#include "validate.h"

#define KEY "governance.shadow"

static void add_files(struct config *config, const struct config_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        config_add_file(config, files[i].path, &files[i]);
}

/* A source that the shadow does not have permits nothing. */
static void compare_sources(const struct draft *draft, const struct node *node)
{
    const struct config *config = draft->config;
    for (size_t i = 0; i < config->source_count; i++) {
        const char *id = config->sources[i].id;
        if (id && !config_source_find(config->shadow, str_from(id)))
            report_warning(&draft->report, node, KEY, "add the source to the shadow",
                           "the shadow has no source %s, so it hides every call of it", id);
    }
}

static const struct node *shadow_node(const struct draft *draft)
{
    return node_get(node_get(draft->root, "governance"), "shadow");
}

bool validate_shadow_path(const struct draft *draft)
{
    struct config *config = draft->config;
    if (!config->shadow_path)
        return false;
    if (draft->is_shadow) {
        report_error(&draft->report, shadow_node(draft), KEY, "remove the key from this file",
                     "this file is itself a shadow, and a shadow has none of its own");
        return false;
    }
    char *path = config_path_beside(config->path, config->shadow_path);
    free(config->shadow_path);
    config->shadow_path = path;
    return true;
}

void validate_shadow(const struct draft *draft)
{
    struct config *config = draft->config;
    if (config->shadow) {
        add_files(config, config->shadow->files, config->shadow->file_count);
        compare_sources(draft, shadow_node(draft));
    } else {
        add_files(config, draft->shadow_problems->files, draft->shadow_problems->file_count);
    }
}
