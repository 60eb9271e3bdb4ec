/* Rules about clients that know no tasks: which of their clocks may be longer than which. */
#include <stdlib.h>

#include "validate.h"

/* A default gives way to a written value. */
static void order(const struct draft *draft, const char *mapping, const char *low_key,
                  int64_t *low_ms, const char *high_key, int64_t *high_ms)
{
    const struct node *keys = node_get(draft->root, mapping);
    const struct node *low = node_get(keys, low_key), *high = node_get(keys, high_key);
    if (*low_ms <= *high_ms)
        return;
    if (node_is_null(high)) {
        *high_ms = *low_ms;
    } else if (node_is_null(low)) {
        *low_ms = *high_ms;
    } else {
        char *path = document_join(mapping, high_key);
        report_error(&draft->report, high, path, NULL, "must not be below %s", low_key);
        free(path);
    }
}

void validate_pseudo(const struct draft *draft)
{
    struct config_pseudo *pseudo = &draft->config->pseudo;
    order(draft, "pseudo_tools", "wait", &pseudo->wait_ms, "wait_max", &pseudo->wait_max_ms);
    order(draft, "pseudo_tasks", "defaultTtlMs", &pseudo->default_ttl_ms, "maxTtlMs",
          &pseudo->max_ttl_ms);
}
