/* The endpoints that workflows and anchors name. */
#include <stdlib.h>
#include <string.h>

#include "distance.h"
#include "taskgate/core/memory.h"
#include "validate.h"

static const struct config_notify *find(const struct config *config, const char *id)
{
    for (size_t i = 0; i < config->notify_count; i++) {
        if (config->notify[i].id && strcmp(config->notify[i].id, id) == 0)
            return &config->notify[i];
    }
    return NULL;
}

static void complain_of_id(const struct draft *draft, const struct node *node, const char *path)
{
    const struct config *config = draft->config;
    const char **ids = memory_alloc_array(config->notify_count, sizeof *ids);
    size_t count = 0;
    for (size_t i = 0; i < config->notify_count; i++) {
        if (config->notify[i].id)
            ids[count++] = config->notify[i].id;
    }
    char *hint = count > 0 ? distance_suggest(node->text, ids, count, "these are there: ")
                           : memory_copy_text("give an endpoint of notify this id");
    char *quoted = report_quote(&draft->report, node);
    report_error(&draft->report, node, path, hint, "no endpoint of notify has the id %s", quoted);
    free(quoted);
    free(hint);
    free((void *)ids);
}

/* `list` is the value of the key `path`. */
static void check_ids(const struct draft *draft, const struct node *list, const char *path)
{
    for (size_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
        const struct node *node = list->values[i];
        char *item = memory_format("%s[%zu]", path, i);
        if (node->kind == NODE_TEXT && !find(draft->config, node->text))
            complain_of_id(draft, node, item);
        free(item);
    }
}

/* A time that never comes while the call waits. */
static void check_time(const struct draft *draft, const struct node *node, const char *path,
                       int64_t after_ms, const struct config_workflow *workflow)
{
    if (after_ms > 0 && after_ms >= config_decide_within_ms(draft->config, workflow))
        report_warning(&draft->report, node, path, "shorten it, or lengthen timeout",
                       "nobody is told: the time to decide is over by then");
}

static void check_workflow(const struct draft *draft, const struct node *node,
                           const struct config_workflow *workflow)
{
    const struct node *escalate = node_get(node, "escalate");
    char *base = document_join("approval", workflow->name);
    const struct {
        const char *key;
        const struct node *list;
    } lists[] = {{"notify", node_get(node, "notify")},
                 {"escalate.notify", node_get(escalate, "notify")}};
    const struct {
        const char *key;
        const struct node *time;
        int64_t after_ms;
    } times[] = {{"remind_after", node_get(node, "remind_after"), workflow->remind_after_ms},
                 {"escalate.after", node_get(escalate, "after"), workflow->escalate_after_ms}};
    for (size_t i = 0; i < 2; i++) {
        char *path = memory_format("%s.%s", base, lists[i].key);
        check_ids(draft, lists[i].list, path);
        free(path);
        path = memory_format("%s.%s", base, times[i].key);
        check_time(draft, times[i].time, path, times[i].after_ms, workflow);
        free(path);
    }
    free(base);
}

/* A pager calls people, and an anchor is nobody's call. */
static void check_anchor(const struct draft *draft)
{
    const struct node *anchor = node_get(node_get(draft->root, "audit"), "anchor");
    const struct node *list = node_get(anchor, "notify");
    check_ids(draft, list, "audit.anchor.notify");
    for (size_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
        const struct node *node = list->values[i];
        const struct config_notify *notify =
            node->kind == NODE_TEXT ? find(draft->config, node->text) : NULL;
        char *path = memory_format("audit.anchor.notify[%zu]", i);
        if (notify && notify->type == NOTIFY_PAGERDUTY)
            report_error(&draft->report, node, path, "name an endpoint of another type",
                         "an anchor needs no person, and a pager would call one");
        free(path);
    }
}

void validate_recipients(const struct draft *draft)
{
    const struct node *approval = node_get(draft->root, "approval");
    for (size_t i = 0; approval && approval->kind == NODE_MAPPING && i < approval->count; i++) {
        if (i < draft->config->workflow_count)
            check_workflow(draft, approval->values[i], &draft->config->workflows[i]);
    }
    check_anchor(draft);
}
