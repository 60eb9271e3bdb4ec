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

static void refuse(const struct draft *draft, enum memory_limit_key key, const char *hint)
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

static void fit_memory(const struct draft *draft, unsigned written, unsigned kept, const char *hint)
{
    struct config *config = draft->config;
    char limit[MEMORY_LIMIT_TEXT_BYTES], worst[MEMORY_LIMIT_TEXT_BYTES];
    if (memory_limit_fit(config, memory_limit_of(config), written | kept))
        return;
    enum memory_limit_key key = memory_limit_costliest(config, written & ~kept);
    if (key != MEMORY_LIMIT_KEY_COUNT) {
        refuse(draft, key, hint);
        return;
    }
    memory_limit_format(memory_limit_of(config), limit);
    memory_limit_format(memory_limit_worst(config), worst);
    problems_warning(draft->report.problems, (struct place){.file = config->path}, "limits",
                     "raise the memory limit",
                     "at their least they may need %s, more than %d %% of the memory limit of %s",
                     worst, MEMORY_LIMIT_PERCENT, limit);
}

/* As the process runs until its restart, with the connections of its start. */
static void fit_running(const struct draft *draft, unsigned written)
{
    static char somewhere[] = "";
    struct config *config = draft->config;
    int64_t connections = config->limits.connections;
    char *address = config->replica.address;
    config->limits.connections = draft->running->connections;
    config->replica.address = draft->running->has_replica_port ? somewhere : NULL;
    fit_memory(draft, written, 1U << MEMORY_LIMIT_CONNECTIONS,
               "write less, or restart: limits.connections takes effect then");
    config->replica.address = address;
    config->limits.connections = connections;
}

void validate_memory(const struct draft *draft)
{
    struct config_limits *limits = &draft->config->limits;
    const struct config_limits full = *limits;
    const unsigned written = find_written(draft);
    const size_t errors = draft->report.problems->errors;
    fit_memory(draft, written, 0, "write less, or raise the memory limit");
    if (!draft->running || draft->report.problems->errors > errors)
        return;
    limits->bodies_bytes = full.bodies_bytes;
    limits->result_bytes = full.result_bytes;
    fit_running(draft, written);
}
