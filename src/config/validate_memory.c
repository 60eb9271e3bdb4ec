/* The limits against the memory that the process may use. */
#include "taskgate/config/memory_limit.h"
#include "validate.h"

static const struct {
    const char *name, *path;
    const char *variable; /* or NULL */
} keys[MEMORY_LIMIT_KEY_COUNT] = {
    [MEMORY_LIMIT_BODIES] = {"bodies_bytes", "limits.bodies_bytes", NULL},
    [MEMORY_LIMIT_RESULT] = {"result_bytes", "limits.result_bytes", NULL},
    [MEMORY_LIMIT_CONNECTIONS] = {"connections", "limits.connections", NULL},
    [MEMORY_LIMIT_BODY] = {"body_bytes", "limits.body_bytes", "THOUGHTGATE_MAX_REQUEST_BODY_BYTES"},
};

static const char *variable_of(const struct draft *draft, enum memory_limit_key key)
{
    const char *value = keys[key].variable ? draft->environment(keys[key].variable) : NULL;
    return value && *value ? value : NULL;
}

static const struct node *node_of(const struct draft *draft, enum memory_limit_key key)
{
    return node_get(node_get(draft->root, "limits"), keys[key].name);
}

static unsigned find_written(const struct draft *draft)
{
    unsigned written = 0;
    for (enum memory_limit_key key = 0; key < MEMORY_LIMIT_KEY_COUNT; key++) {
        if (!node_is_null(node_of(draft, key)) || variable_of(draft, key))
            written |= 1U << key;
    }
    return written;
}

static const char hint[] = "write less, or raise the memory limit";

static void refuse(const struct draft *draft, enum memory_limit_key key)
{
    static const char fault[] = "%s is too much: with it the process may need %s, and %d %% of its "
                                "memory limit of %s are %s";
    const struct config *config = draft->config;
    char limit[MEMORY_LIMIT_TEXT_BYTES], worst[MEMORY_LIMIT_TEXT_BYTES];
    char share[MEMORY_LIMIT_TEXT_BYTES];
    const char *variable = variable_of(draft, key);
    memory_limit_format(memory_limit_of(config), limit);
    memory_limit_format(memory_limit_worst(config), worst);
    memory_limit_format(memory_limit_share(memory_limit_of(config)), share);
    if (variable)
        problems_error(draft->report.problems, (struct place){.file = keys[key].variable},
                       keys[key].path, hint, fault, variable, worst, MEMORY_LIMIT_PERCENT, limit,
                       share);
    else
        report_error(&draft->report, node_of(draft, key), keys[key].path, hint, fault,
                     node_of(draft, key)->text, worst, MEMORY_LIMIT_PERCENT, limit, share);
}

void validate_memory(const struct draft *draft)
{
    struct config *config = draft->config;
    enum memory_limit_key key;
    char limit[MEMORY_LIMIT_TEXT_BYTES], worst[MEMORY_LIMIT_TEXT_BYTES];
    if (memory_limit_fit(config, memory_limit_of(config), find_written(draft), &key))
        return;
    if (key != MEMORY_LIMIT_KEY_COUNT) {
        refuse(draft, key);
        return;
    }
    memory_limit_format(memory_limit_of(config), limit);
    memory_limit_format(memory_limit_worst(config), worst);
    problems_warning(draft->report.problems, (struct place){.file = config->path}, "limits",
                     "raise the memory limit",
                     "at their least they may need %s, more than %d %% of the memory limit of %s",
                     worst, MEMORY_LIMIT_PERCENT, limit);
}
