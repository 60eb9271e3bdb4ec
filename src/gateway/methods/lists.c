/* resources/list and prompts/list, rewritten for the client; and every list as the owner fetched it
 * before, for when upstream fails (seed 002 F-003, NF-002.2). */
#include "bridge_down/bridge_down.h"
#include "doc_resources.h"
#include "list_cache.h"
#include "lists_internal.h"
#include "methods.h"
#include "state/definition_watch.h"
#include "taskgate/core/log.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/definition.h"
#include "taskgate/mcp/legacy_bridge.h"

/* ---- what owners have fetched ---- */

void lists_write_key(const struct call *call, struct buffer *key)
{
    buffer_init(key);
    buffer_append_format(key, "%s/%s/%s/%s/%d/", call->source->id, call->owner, call->method->name,
                         call->source->url, (int)call->dialect->era);
    buffer_append(key, call->envelope.cursor.raw);
}

void lists_keep(const struct call *call, struct str result)
{
    struct buffer key;
    lists_write_key(call, &key);
    list_cache_put(call->worker->gateway->list_cache, buffer_str(&key), result);
    buffer_finish(&key);
}

/* ---- what clients may keep ---- */

#define RELOADED_FOR_MS 60000

int64_t lists_most_ttl_ms(const struct call *call)
{
    int64_t reloaded_ms = call->worker->gateway->reloaded_ms;
    bool is_fresh =
        reloaded_ms > 0 && loop_now_ms(call->worker->loop) - reloaded_ms < RELOADED_FOR_MS;
    return is_fresh ? 0 : MCP_CACHEABLE_MOST_MS;
}

/* Writes a list that `list` has been made of, the server's, and finishes it. */
static void write_list(const struct call *call, struct str servers, struct buffer *list,
                       int64_t most_ms, struct buffer *out)
{
    size_t start = out->length;
    call->dialect->write_list(out, buffer_str(list), most_ms);
    mcp_cacheable_drop_tags(out, start, servers);
    buffer_finish(list);
}

/* ---- resources and prompts ---- */

bool lists_may_show(const struct call *call, enum definition_kind kind, struct str name,
                    struct str entry)
{
    const struct policy *policy = call->snapshot->policy;
    const struct config_source *source = call->source;
    bool is_judged = source->hide_flagged || source->pins[kind] == PIN_APPROVE;
    struct policy_entry seen = {NULL};
    struct mcp_definition definition;
    if (is_judged && entry.length > 0) {
        mcp_definition_read(&definition, kind, entry);
        seen = (struct policy_entry){definition.digest, definition.flags};
    }
    bool may = kind == DEFINITION_PROMPT ? policy_is_prompt_visible(policy, source, name, &seen)
                                         : policy_is_skill_visible(policy, source, name, &seen);
    if (seen.digest)
        mcp_definition_finish(&definition);
    return may;
}

static bool judge_name(void *context, struct str name, struct str entry)
{
    return lists_may_show(call_from(context), DEFINITION_PROMPT, name, entry);
}

/* A resource of ours is ours even where upstream has one of the same URI. */
static bool judge_resource(void *context, struct str uri, struct str entry)
{
    struct call *call = call_from(context);
    return policy_is_uri_visible(call->snapshot->policy, call->source, uri) &&
           !(doc_resources_are_offered(call) && doc_resources_have(uri));
}

/* Ours come behind upstream's, on the first page. */
static void write_resources(struct call *call, struct str result, int64_t most_ms,
                            struct buffer *out)
{
    struct buffer theirs, ours, all;
    buffer_init(&theirs);
    buffer_init(&ours);
    buffer_init(&all);
    mcp_list_filter(&theirs, result, "resources", "uri", judge_resource, call);
    doc_resources_write_entries(&ours);
    if (doc_resources_are_offered(call) && call->envelope.cursor.raw.length == 0)
        mcp_list_append(&all, buffer_str(&theirs), "resources", buffer_str(&ours));
    else
        buffer_append(&all, buffer_str(&theirs));
    buffer_finish(&ours);
    buffer_finish(&theirs);
    write_list(call, result, &all, most_ms, out);
}

static void write_prompts(struct call *call, struct str result, int64_t most_ms, struct buffer *out)
{
    struct buffer list;
    buffer_init(&list);
    mcp_list_filter(&list, result, "prompts", "name", judge_name, call);
    write_list(call, result, &list, most_ms, out);
}

static void rewrite_resources(struct call *call, const struct relay_reply *reply,
                              struct buffer *out)
{
    lists_keep(call, reply->result);
    write_resources(call, reply->result, lists_most_ttl_ms(call), out);
}

static void pin_prompts(struct call *call, struct str result)
{
    bool is_whole = call->envelope.cursor.raw.length == 0 && mcp_next_cursor(result).length == 0;
    definition_watch_see_entries(call->worker->gateway->definitions, call->source,
                                 DEFINITION_PROMPT, json_member(result, "prompts"), is_whole);
}

static void rewrite_prompts(struct call *call, const struct relay_reply *reply, struct buffer *out)
{
    lists_keep(call, reply->result);
    pin_prompts(call, reply->result);
    write_prompts(call, reply->result, lists_most_ttl_ms(call), out);
}

/* Templates name no resource, so all are shown. */
static void rewrite_templates(struct call *call, const struct relay_reply *reply,
                              struct buffer *out)
{
    size_t start = out->length;
    call->dialect->write_list(out, reply->result, lists_most_ttl_ms(call));
    mcp_cacheable_drop_tags(out, start, reply->result);
}

/* ---- when upstream fails ---- */

/* Of a bridged client's the server's own words were kept. */
static void answer_list(struct call *call, struct str result)
{
    struct buffer legacy;
    if (!call->is_bridged) {
        call_answer_result_of_server(call, result);
        return;
    }
    buffer_init(&legacy);
    if (call->method->treatment == MCP_TOOLS_LIST)
        legacy_bridge_write_tools(&legacy, result);
    else
        legacy_bridge_write_result(&legacy, result);
    call_answer_result_of_server(call, buffer_str(&legacy));
    buffer_finish(&legacy);
}

static bool answer_kept(struct call *call, enum relay_failure failure)
{
    struct buffer key, kept, result;
    if (failure == RELAY_UNREADABLE)
        return false;
    lists_write_key(call, &key);
    buffer_init(&kept);
    buffer_init(&result);
    bool found = list_cache_get(call->worker->gateway->list_cache, buffer_str(&key), &kept);
    if (found) {
        log_warn("Upstream failed, the list is the one fetched before",
                 LOG_TEXT("source", call->source->id), LOG_TEXT("method", call->method->name));
        struct str list = buffer_str(&kept);
        if (call->method->treatment == MCP_TOOLS_LIST)
            tools_list_write(call, list, &result);
        else if (call->method->treatment == MCP_RESOURCES_LIST)
            write_resources(call, list, 0, &result);
        else if (call->method->treatment == MCP_SERVER_DISCOVER)
            discover_write(call, list, 0, &result);
        else
            write_prompts(call, list, 0, &result);
        answer_list(call, buffer_str(&result));
    }
    buffer_finish(&result);
    buffer_finish(&kept);
    buffer_finish(&key);
    return found;
}

struct relay_options lists_relay_options(const struct call *call)
{
    return (struct relay_options){
        .silence_ms = call->snapshot->config->times.tools_fetch_timeout_ms,
        .failed = answer_kept,
    };
}

/* The list has our resources alone when upstream does not know the method. */
static bool replace_resources(struct call *call, struct str error, struct buffer *message)
{
    struct buffer result;
    if (!doc_resources_replace(call, error))
        return false;
    buffer_init(&result);
    write_resources(call, STR("{\"resources\":[]}"), 0, &result);
    call->dialect->write_own_result(message, call->envelope.id, buffer_str(&result));
    buffer_finish(&result);
    return true;
}

static bool replace_templates(struct call *call, struct str error, struct buffer *message)
{
    struct buffer result;
    if (!doc_resources_replace(call, error))
        return false;
    buffer_init(&result);
    call->dialect->write_list(&result, STR("{\"resourceTemplates\":[]}"), 0);
    call->dialect->write_own_result(message, call->envelope.id, buffer_str(&result));
    buffer_finish(&result);
    return true;
}

static void relay_resources(struct call *call)
{
    struct relay_options options = lists_relay_options(call);
    options.rewrite = rewrite_resources;
    options.replace_error = replace_resources;
    bridge_down_start(call, &options);
}

void resources_list_handle(struct call *call)
{
    call_with_facts(call, relay_resources);
}

static void relay_templates(struct call *call)
{
    struct relay_options options = {0};
    bool is_modern = !call->dialect->has_sessions;
    if (call->facts.server.lacks_resources || is_modern) /* a modern answer is read in any case */
        options.replace_error = replace_templates;
    if (is_modern)
        options.rewrite = rewrite_templates;
    bridge_down_start(call, &options);
}

void resources_templates_list_handle(struct call *call)
{
    call_with_facts(call, relay_templates);
}

void prompts_list_handle(struct call *call)
{
    struct relay_options options = lists_relay_options(call);
    options.rewrite = rewrite_prompts;
    bridge_down_start(call, &options);
}

/* ---- a list that comes late ---- */

static bool has_list(struct str result, const char *member)
{
    return json_type(json_member(result, member)) == JSON_ARRAY;
}

/* Only the member of the result tells which list it is: the request was another exchange's. */
void lists_rewrite_resumed(struct call *call, const struct relay_reply *reply, struct buffer *out)
{
    struct str result = reply->result;
    size_t start = out->length;
    if (has_list(result, "tools")) {
        tools_list_write_late(call, result, out);
    } else if (has_list(result, "resources")) {
        mcp_list_filter(out, result, "resources", "uri", judge_resource, call);
    } else if (has_list(result, "prompts")) {
        pin_prompts(call, result);
        mcp_list_filter(out, result, "prompts", "name", judge_name, call);
    } else if (has_list(result, "skills") || json_member(result, "skill").length > 0) {
        extension_write_late(call, result, out);
    } else {
        buffer_append(out, result);
    }
    mcp_cacheable_drop_tags(out, start, result);
}
