/* The tool of ours that a call names. */
#include "pseudo_names.h"

#include "state/tool_catalog.h"

bool pseudo_names_has_upstream(const struct call *call, struct str name)
{
    struct catalog_tool tool;
    catalog_find_tool(call->worker->gateway->catalog, str_from(call->source->id),
                      str_from(call->owner), name, &tool);
    return tool.word == CATALOG_TOLD || (tool.word == CATALOG_GATEWAYS && !tool.has_list);
}

/* The modern era has other ways for all that the others do. */
bool pseudo_names_is_of_era(const struct call *call, enum config_pseudo_tool tool)
{
    return call->dialect->offers_all_tools || tool == PSEUDO_TOOL_GET_TASK_RESULT ||
           tool == PSEUDO_TOOL_AWAIT_ACTIVITY || tool == PSEUDO_TOOL_CANCEL_TASK;
}

static enum config_pseudo_tool find(const struct call *call, struct str name)
{
    enum config_pseudo_tool tool = config_pseudo_tool_find(name);
    bool is_offered = tool != PSEUDO_TOOL_COUNT && pseudo_names_is_of_era(call, tool) &&
                      config_pseudo_offers(&call->snapshot->config->pseudo, tool);
    return is_offered ? tool : PSEUDO_TOOL_COUNT;
}

enum config_pseudo_tool pseudo_names_find(struct call *call)
{
    const struct config_pseudo *pseudo = &call->snapshot->config->pseudo;
    struct str name = call->envelope.name.text, prefix = str_from(pseudo->prefix);
    enum config_pseudo_tool tool = find(call, name);
    if (tool != PSEUDO_TOOL_COUNT)
        call_identify(call);
    if (tool != PSEUDO_TOOL_COUNT && !pseudo_names_has_upstream(call, name))
        return tool;
    if ((tool == PSEUDO_TOOL_COUNT && prefix.length == 0) || !str_starts_with(name, prefix))
        return PSEUDO_TOOL_COUNT;
    return find(call, str_slice(name.bytes + prefix.length, name.length - prefix.length));
}
