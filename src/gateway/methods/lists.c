/* tools/list, resources/list, prompts/list: read for the catalogue, rewritten for the client,
 * answered from what the owner fetched before when upstream fails (seed 002 F-003, NF-002.2). */
#include <stdlib.h>

#include "compat/tools.h"
#include "doc_resources.h"
#include "list_cache.h"
#include "mcp_client/tools_fetch.h"
#include "methods.h"
#include "relay/relay.h"
#include "request/client_profile.h"
#include "state/tool_catalog.h"
#include "taskgate/core/log.h"
#include "taskgate/json/text.h"

/* ---- tools ---- */

static bool judge_tool(void *context, const struct mcp_tool *tool, enum policy_annotation *announce)
{
    struct call *call = context;
    struct policy_request request = {call->source, tool->name, STR_EMPTY};
    struct policy_decision decision;
    if (!policy_is_visible(call->snapshot->policy, call->source, tool->name))
        return false;
    policy_decide(call->snapshot->policy, &request, &decision);
    *announce = policy_annotate(&decision, call->facts.server.has_tasks, tool->has_own, tool->own);
    if (*announce == ANNOTATION_REQUIRED && !client_knows_tasks(call))
        *announce = ANNOTATION_OPTIONAL; /* it calls as it always has, and waits */
    return true;
}

static bool hides_output(void *context, const struct mcp_tool *tool)
{
    const struct call *call = context;
    const struct policy_request request = {call->source, tool->name, STR_EMPTY};
    struct policy_decision decision;
    policy_decide(call->snapshot->policy, &request, &decision);
    return pseudo_tools_hide_output(call, &decision);
}

/* Remembers for its owner what a page says. False when it has no list. */
static bool learn_page(struct call *call, struct str result, bool is_first, bool is_last)
{
    struct catalog *catalog = call->worker->gateway->catalog;
    struct catalog_page *page = catalog_page_create(catalog);
    const struct catalog_reader reader = {call->snapshot, call->source, str_from(call->owner),
                                          call->tools_epoch};
    bool is_list = mcp_tools_read(result, catalog_page_add, page);
    if (is_list)
        catalog_put_page(catalog, &reader, page, is_first, is_last);
    else
        catalog_page_destroy(page);
    return is_list;
}

/* Who may be answered from what was fetched before: the one who fetched it. */
static void write_key(const struct call *call, struct buffer *key)
{
    buffer_init(key);
    buffer_append_format(key, "%s/%s/%s/%s/", call->source->id, call->owner, call->method->name,
                         call->source->url);
    buffer_append(key, call->envelope.cursor.raw);
}

static void keep(const struct call *call, struct str result)
{
    struct buffer key;
    write_key(call, &key);
    list_cache_put(call->worker->gateway->list_cache, buffer_str(&key), result);
    buffer_finish(&key);
}

static void learn_list(struct call *call, struct str result)
{
    bool is_first_page = call->envelope.cursor.raw.length == 0;
    if (!learn_page(call, result, is_first_page, mcp_next_cursor(result).length == 0))
        log_warn("Upstream's tools/list has no list of tools",
                 LOG_TEXT("source", call->source->id));
}

/* The gateway's own come behind upstream's, on the last page. */
static void write_tools(struct call *call, struct str result, struct buffer *out)
{
    struct buffer theirs, ours;
    buffer_init(&theirs);
    buffer_init(&ours);
    mcp_tools_rewrite_hiding(&theirs, result, judge_tool, hides_output, call);
    if (client_is_shown_tools(call) && mcp_next_cursor(result).length == 0)
        pseudo_tools_write(call, &ours);
    if (ours.length > 0)
        mcp_list_append(out, buffer_str(&theirs), "tools", buffer_str(&ours));
    else
        buffer_append(out, buffer_str(&theirs));
    buffer_finish(&ours);
    buffer_finish(&theirs);
}

static void rewrite_tools(struct call *call, struct str result, struct buffer *out)
{
    keep(call, result);
    learn_list(call, result);
    write_tools(call, result, out);
    tools_fetch_pages_after(call, mcp_next_cursor(result));
}

/* ---- resources and prompts ---- */

static bool judge_name(void *context, struct str name)
{
    struct call *call = context;
    return policy_is_visible(call->snapshot->policy, call->source, name);
}

/* A resource of ours is ours even where upstream has one of the same URI. */
static bool judge_resource(void *context, struct str uri)
{
    struct call *call = context;
    return policy_is_uri_visible(call->snapshot->policy, call->source, uri) &&
           !(doc_resources_are_offered(call) && doc_resources_have(uri));
}

/* Ours come behind upstream's, on the first page. */
static void write_resources(struct call *call, struct str result, struct buffer *out)
{
    struct buffer theirs, ours;
    buffer_init(&theirs);
    buffer_init(&ours);
    mcp_list_filter(&theirs, result, "resources", "uri", judge_resource, call);
    doc_resources_write_entries(&ours);
    if (doc_resources_are_offered(call) && call->envelope.cursor.raw.length == 0)
        mcp_list_append(out, buffer_str(&theirs), "resources", buffer_str(&ours));
    else
        buffer_append(out, buffer_str(&theirs));
    buffer_finish(&ours);
    buffer_finish(&theirs);
}

static void rewrite_resources(struct call *call, struct str result, struct buffer *out)
{
    keep(call, result);
    write_resources(call, result, out);
}

static void rewrite_prompts(struct call *call, struct str result, struct buffer *out)
{
    keep(call, result);
    mcp_list_filter(out, result, "prompts", "name", judge_name, call);
}

/* ---- when upstream fails ---- */

static bool answer_kept(struct call *call, enum relay_failure failure)
{
    struct buffer key, kept, result;
    if (failure == RELAY_UNREADABLE)
        return false;
    write_key(call, &key);
    buffer_init(&kept);
    buffer_init(&result);
    bool found = list_cache_get(call->worker->gateway->list_cache, buffer_str(&key), &kept);
    if (found) {
        log_warn("Upstream failed, the list is the one fetched before",
                 LOG_TEXT("source", call->source->id), LOG_TEXT("method", call->method->name));
        struct str list = buffer_str(&kept);
        if (call->method->treatment == MCP_TOOLS_LIST)
            write_tools(call, list, &result);
        else if (call->method->treatment == MCP_RESOURCES_LIST)
            write_resources(call, list, &result);
        else
            mcp_list_filter(&result, list, "prompts", "name", judge_name, call);
        call_answer_result(call, buffer_str(&result));
    }
    buffer_finish(&result);
    buffer_finish(&kept);
    buffer_finish(&key);
    return found;
}

static struct relay_options
list_options(const struct call *call, void (*rewrite)(struct call *, struct str, struct buffer *))
{
    return (struct relay_options){
        .silence_ms = call->snapshot->config->times.tools_fetch_timeout_ms,
        .rewrite = rewrite,
        .failed = answer_kept,
    };
}

static void relay_list(struct call *call,
                       void (*rewrite)(struct call *, struct str, struct buffer *))
{
    struct relay_options options = list_options(call, rewrite);
    relay_start(call, &options);
}

static void relay_tools(struct call *call)
{
    call->tools_epoch = catalog_epoch(call->worker->gateway->catalog, str_from(call->source->id));
    relay_list(call, rewrite_tools);
}

void tools_list_handle(struct call *call)
{
    call_with_facts(call, relay_tools);
}

/* Where upstream does not know the method, there are ours alone. */
static bool replace_resources(struct call *call, struct str error, struct buffer *message)
{
    struct buffer result;
    if (!doc_resources_replace(call, error))
        return false;
    buffer_init(&result);
    write_resources(call, STR("{\"resources\":[]}"), &result);
    jsonrpc_write_result(message, call->envelope.id, buffer_str(&result));
    buffer_finish(&result);
    return true;
}

static bool replace_templates(struct call *call, struct str error, struct buffer *message)
{
    if (!doc_resources_replace(call, error))
        return false;
    jsonrpc_write_result(message, call->envelope.id, STR("{\"resourceTemplates\":[]}"));
    return true;
}

static void relay_resources(struct call *call)
{
    struct relay_options options = list_options(call, rewrite_resources);
    options.replace_error = replace_resources;
    relay_start(call, &options);
}

void resources_list_handle(struct call *call)
{
    call_with_facts(call, relay_resources);
}

static void relay_templates(struct call *call)
{
    struct relay_options options = {0};
    if (call->facts.server.lacks_resources)
        options.replace_error = replace_templates;
    relay_start(call, &options);
}

void resources_templates_list_handle(struct call *call)
{
    call_with_facts(call, relay_templates);
}

void prompts_list_handle(struct call *call)
{
    relay_list(call, rewrite_prompts);
}

/* ---- a list that comes late ---- */

static bool has_list(struct str result, const char *member)
{
    return json_type(json_member(result, member)) == JSON_ARRAY;
}

/* Which list it is only its member tells: the request was another exchange's. */
void lists_rewrite_resumed(struct call *call, struct str result, struct buffer *out)
{
    if (has_list(result, "tools")) {
        learn_page(call, result, false, false);
        write_tools(call, result, out);
    } else if (has_list(result, "resources")) {
        mcp_list_filter(out, result, "resources", "uri", judge_resource, call);
    } else if (has_list(result, "prompts")) {
        mcp_list_filter(out, result, "prompts", "name", judge_name, call);
    } else {
        buffer_append(out, result);
    }
}
