/* Which tools the gateway itself offers, under which names, and to whom. */
#include "tools.h"
#include "state/tool_catalog.h"

#include "inbox/inbox.h"
#include "taskgate/core/log.h"
#include "taskgate/json/members.h"

static const struct pseudo_tool tools[] = {
#define PARAMETER(parameter, kind, required, text, ...)                                            \
    {                                                                                              \
        .name = parameter, .type = PSEUDO_TOOL_##kind, .is_required = required,                    \
        .description = text, __VA_ARGS__                                                           \
    }
#define TOOL(symbol, title, effect, handler, description, ...)                                     \
    {PSEUDO_TOOL_##symbol, title, description, PSEUDO_TOOL_##effect, {__VA_ARGS__}},
#include "tools_table.h"
#undef PARAMETER
#undef TOOL
};
_Static_assert(sizeof tools / sizeof *tools == PSEUDO_TOOL_COUNT, "each tool has a row");

/* By what the client was told; what another was told changes nothing for it. */
static bool upstream_has(const struct call *call, struct str name)
{
    struct catalog_tool tool;
    catalog_find_tool(call->worker->gateway->catalog, str_from(call->source->id),
                      str_from(call->owner), name, &tool);
    return tool.word == CATALOG_TOLD || (tool.word == CATALOG_GATEWAYS && !tool.has_list);
}

static const struct pseudo_tool *find(const struct config_pseudo *pseudo, struct str name)
{
    for (size_t i = 0; i < PSEUDO_TOOL_COUNT; i++) {
        const char *own = config_pseudo_tool_name(tools[i].id);
        if (name.length > 0 && name.bytes[0] == own[0] && str_equal(name, str_from(own)) &&
            config_pseudo_offers(pseudo, tools[i].id))
            return &tools[i];
    }
    return NULL;
}

const struct pseudo_tool *pseudo_tool_called(struct call *call)
{
    const struct config_pseudo *pseudo = &call->snapshot->config->pseudo;
    struct str name = call->envelope.name.text, prefix = str_from(pseudo->prefix);
    const struct pseudo_tool *tool = find(pseudo, name);
    if (tool)
        call_identify(call);
    if (tool && !upstream_has(call, name))
        return tool;
    if (!str_starts_with(name, prefix))
        return NULL;
    return find(pseudo, str_slice(name.bytes + prefix.length, name.length - prefix.length));
}

/* ---- output schemas ---- */

static bool needs_human(const struct policy_decision *decision)
{
    return decision->by_policies || decision->action == ACTION_POLICY ||
           decision->action == ACTION_APPROVE || decision->force_required;
}

bool pseudo_tools_hide_output(const struct call *call, const struct policy_decision *decision)
{
    return needs_human(decision) && (client_is_shown_tools(call) || !client_knows_tasks(call));
}

bool pseudo_tools_promise_output(const struct call *call, const struct policy_decision *decision,
                                 const struct catalog_tool *tool)
{
    return tool->has_output_schema && !call->is_executed &&
           !pseudo_tools_hide_output(call, decision);
}

/* ---- listing ---- */

static void write_name(const struct call *call, const struct pseudo_tool *tool, struct buffer *out)
{
    const char *name = config_pseudo_tool_name(tool->id);
    if (upstream_has(call, str_from(name)))
        buffer_append_text(out, call->snapshot->config->pseudo.prefix);
    buffer_append_text(out, name);
}

bool pseudo_tool_write_name(const struct call *call, enum config_pseudo_tool id, struct buffer *out)
{
    for (size_t i = 0; i < PSEUDO_TOOL_COUNT; i++) {
        if (tools[i].id != id ||
            !config_pseudo_offers(&call->snapshot->config->pseudo, tools[i].id))
            continue;
        write_name(call, &tools[i], out);
        return true;
    }
    return false;
}

void pseudo_tools_write_alternative(const struct call *call, struct buffer *out)
{
    static const enum config_pseudo_tool others[] = {
        PSEUDO_TOOL_GET_TASK_RESULT, PSEUDO_TOOL_AWAIT_ACTIVITY, PSEUDO_TOOL_LIST_TASKS};
    struct buffer name;
    buffer_init(&name);
    if (pseudo_tool_write_name(call, PSEUDO_TOOL_EXECUTE_TOOL, &name)) {
        buffer_append_format(out, "{\"tool\":\"%.*s\",\"arguments\":{\"server\":\"%s\",\"tool\":",
                             STR_ARGS(buffer_str(&name)), call->source->id);
        buffer_append_json_string(out, call->envelope.name.text);
        buffer_append_text(out, "},\"then\":[");
        bool is_first = true;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            buffer_clear(&name);
            if (!pseudo_tool_write_name(call, others[i], &name))
                continue;
            buffer_append_format(out, "%s\"%.*s\"", is_first ? "" : ",",
                                 STR_ARGS(buffer_str(&name)));
            is_first = false;
        }
        buffer_append_text(out, "]}");
    }
    buffer_finish(&name);
}

static void write_tool(const struct call *call, const struct pseudo_tool *tool, struct buffer *out)
{
    const char *calls = tool->effect == PSEUDO_TOOL_CALLS ? "true" : "false";
    struct buffer name;
    buffer_init(&name);
    write_name(call, tool, &name);
    buffer_append_text(out, "{\"name\":");
    buffer_append_json_string(out, buffer_str(&name));
    json_add_text(out, "title", tool->title);
    json_add_text(out, "description", tool->description);
    json_add_key(out, "inputSchema");
    compat_write_schema(out, tool->parameters);
    buffer_append_format(out,
                         ",\"annotations\":{\"title\":\"%s\",\"readOnlyHint\":%s,"
                         "\"destructiveHint\":%s,\"openWorldHint\":%s,"
                         "\"taskSupport\":\"forbidden\"},"
                         "\"execution\":{\"taskSupport\":\"forbidden\"}}",
                         tool->title, tool->effect == PSEUDO_TOOL_READS ? "true" : "false", calls,
                         calls);
    buffer_finish(&name);
}

/* Once for a source: its names do not change with each list. */
static void warn_of_collisions(const struct call *call, struct str names)
{
    if (names.length > 0 &&
        inbox_table_warn_once(call->worker->gateway->inbox_table, str_from(call->source->id)))
        log_warn("Tools of the gateway's own are offered under another name: upstream has tools of "
                 "the same name",
                 LOG_TEXT("source", call->source->id), LOG_STR("tools", names),
                 LOG_TEXT("prefix", call->snapshot->config->pseudo.prefix));
}

void pseudo_tools_write(const struct call *call, struct buffer *out)
{
    struct buffer collisions;
    bool is_first = true;
    buffer_init(&collisions);
    for (size_t i = 0; i < PSEUDO_TOOL_COUNT; i++) {
        const char *name = config_pseudo_tool_name(tools[i].id);
        if (!config_pseudo_offers(&call->snapshot->config->pseudo, tools[i].id))
            continue;
        if (!is_first)
            buffer_append_char(out, ',');
        write_tool(call, &tools[i], out);
        is_first = false;
        if (upstream_has(call, str_from(name)))
            buffer_append_format(&collisions, "%s%s", collisions.length > 0 ? ", " : "", name);
    }
    warn_of_collisions(call, buffer_str(&collisions));
    buffer_finish(&collisions);
}
