/* Globs on subjects and groups, by rule. */
#include "principals.h"

#include <stdlib.h>

#include "taskgate/config/glob.h"
#include "taskgate/core/memory.h"

struct globs {
    struct glob **items;
    size_t count;
};

struct rule_principals {
    bool is_set;
    struct globs subjects, groups;
};

struct principals {
    size_t count; /* of the configuration's rules */
    struct rule_principals *rules;
};

static bool globs_init(struct globs *globs, const struct config_strings *texts, struct error *error)
{
    globs->items = memory_alloc_array(texts->count, sizeof(struct glob *));
    for (; globs->count < texts->count; globs->count++) {
        const char *text = texts->items[globs->count];
        globs->items[globs->count] = glob_compile(str_from(text), error);
        if (!globs->items[globs->count])
            return error_prefix(error, text);
    }
    return true;
}

static void globs_finish(struct globs *globs)
{
    for (size_t i = 0; i < globs->count; i++)
        glob_destroy(globs->items[i]);
    free(globs->items);
}

struct principals *principals_create(const struct config *config, struct error *error)
{
    struct principals *principals = memory_alloc(sizeof *principals);
    bool good = true;
    principals->count = config->rule_count;
    principals->rules = memory_alloc_array(config->rule_count, sizeof *principals->rules);
    for (size_t i = 0; good && i < config->rule_count; i++) {
        const struct config_rule *rule = &config->rules[i];
        struct rule_principals *own = &principals->rules[i];
        own->is_set = rule->has_principals;
        good = globs_init(&own->subjects, &rule->subjects, error) &&
               globs_init(&own->groups, &rule->groups, error);
    }
    if (good)
        return principals;
    principals_destroy(principals);
    return NULL;
}

void principals_destroy(struct principals *principals)
{
    if (!principals)
        return;
    for (size_t i = 0; i < principals->count; i++) {
        globs_finish(&principals->rules[i].subjects);
        globs_finish(&principals->rules[i].groups);
    }
    free(principals->rules);
    free(principals);
}

static bool any_matches(const struct globs *globs, struct str text)
{
    for (size_t i = 0; i < globs->count; i++) {
        if (glob_matches(globs->items[i], text))
            return true;
    }
    return false;
}

static bool is_in_a_group(const struct globs *globs, const struct config_strings *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        if (any_matches(globs, str_from(groups->items[i])))
            return true;
    }
    return false;
}

bool principals_fit(const struct principals *principals, size_t rule,
                    const struct policy_verified *verified)
{
    const struct rule_principals *own = &principals->rules[rule];
    if (!own->is_set)
        return true;
    if (!verified)
        return false;
    return (own->subjects.count == 0 || any_matches(&own->subjects, verified->subject)) &&
           (own->groups.count == 0 || is_in_a_group(&own->groups, &verified->groups));
}

bool principals_bits(const struct principals *principals, const struct policy_verified *verified,
                     uint64_t *bits)
{
    unsigned next = 0;
    *bits = 0;
    for (size_t i = 0; i < principals->count; i++) {
        if (!principals->rules[i].is_set)
            continue;
        if (next == 64)
            return false;
        if (principals_fit(principals, i, verified))
            *bits |= UINT64_C(1) << next;
        next++;
    }
    return true;
}
