/* The definition that a waiting call is bound to, and that of now. */
#include "taskgate/gateway/gateway.h"

#include <string.h>

#include "call/worker.h"
#include "decision/drift_check.h"
#include "state/tool_catalog.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

static void definition_now_add_member(struct buffer *out, const char *key, struct str value)
{
    json_add_value(out, key, value.length > 0 ? value : STR("null"));
}

/* Nulls, where the tool has gone. */
static void write_now(struct buffer *out, struct catalog *catalog, const struct task *task,
                      const struct catalog_tool *tool)
{
    const struct catalog_asked asked = {str_from(task->source), drift_check_owner(task),
                                        str_from(task->tool)};
    OWNED_BUFFER(words);
    buffer_append_char(&words, '{');
    if (tool->word == CATALOG_TOLD)
        catalog_describe_tool(catalog, &asked, tool->digest, &words);
    buffer_append_char(&words, '}');
    buffer_append_char(out, '{');
    definition_now_add_member(out, "description",
                              json_member(buffer_str(&words), "toolDescription"));
    definition_now_add_member(out, "annotations",
                              json_member(buffer_str(&words), "toolAnnotations"));
    buffer_append_char(out, '}');
}

bool gateway_definition_changed(const struct gateway_worker *worker, const struct task *task,
                                struct buffer *now)
{
    struct catalog *catalog = worker->gateway->catalog;
    struct catalog_tool tool;
    if (task->state != TASK_PENDING || !task->definition_digest[0])
        return false;
    catalog_find_tool(catalog, str_from(task->source), drift_check_owner(task),
                      str_from(task->tool), &tool);
    /* A list without the tool: the call may be bound to that of the gateway's own session. */
    bool is_told = tool.word == CATALOG_TOLD || tool.has_list;
    if (!is_told || strcmp(tool.digest, task->definition_digest) == 0)
        return false;
    if (now)
        write_now(now, catalog, task, &tool);
    return true;
}
