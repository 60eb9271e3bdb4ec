/* Rules about endpoints: each occurs once, each has a secret (V-014). */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "taskgate/core/memory.h"
#include "validate.h"

static void resolve_secret(const struct draft *draft, const struct node *node, size_t index,
                           struct config_notify *notify)
{
    char *path = memory_format("notify[%zu].secret_env", index);
    notify->secret = validate_secret(draft, node_get(node, "secret_env"), path);
    free(path);
}

/* Only its URL identifies an endpoint over restarts and reloads. */
static void check_once(const struct draft *draft, const struct node *node, size_t index)
{
    const struct config_notify *notify = draft->config->notify;
    for (size_t i = 0; i < index; i++) {
        if (!notify[i].url || !notify[index].url || strcmp(notify[i].url, notify[index].url) != 0)
            continue;
        char *path = memory_format("notify[%zu].url", index);
        report_error(&draft->report, node_get(node, "url"), path, "join their events in one",
                     "this is the URL of notify[%zu] as well", i);
        free(path);
    }
}

void validate_notify(const struct draft *draft)
{
    const struct node *list = node_get(draft->root, "notify");
    for (size_t i = 0; i < draft->config->notify_count; i++) {
        struct config_notify *notify = &draft->config->notify[i];
        resolve_secret(draft, list->values[i], i, notify);
        check_once(draft, list->values[i], i);
        if (node_is_null(node_get(list->values[i], "events")))
            notify->events = NOTIFY_ALL;
    }
}
