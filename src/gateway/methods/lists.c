/* resources/list and prompts/list, rewritten for the client (seed 002 F-003). */
#include "client/modern.h"
#include "doc_resources.h"
#include "lists_internal.h"
#include "methods.h"
#include "state/definition_watch.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"

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

static void write_kept_resources(struct call *call, struct str result, struct buffer *out)
{
    write_resources(call, result, 0, out);
}

static bool answer_kept_resources(struct call *call, enum relay_failure failure)
{
    return lists_answer_kept(call, failure, write_kept_resources);
}

static void write_kept_prompts(struct call *call, struct str result, struct buffer *out)
{
    write_prompts(call, result, 0, out);
}

static bool answer_kept_prompts(struct call *call, enum relay_failure failure)
{
    return lists_answer_kept(call, failure, write_kept_prompts);
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
    struct relay_options options = lists_relay_options(call, answer_kept_resources);
    options.rewrite = rewrite_resources;
    options.replace_error = replace_resources;
    client_forward(call, &options);
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
    client_forward(call, &options);
}

void resources_templates_list_handle(struct call *call)
{
    call_with_facts(call, relay_templates);
}

void prompts_list_handle(struct call *call)
{
    struct relay_options options = lists_relay_options(call, answer_kept_prompts);
    options.rewrite = rewrite_prompts;
    client_forward(call, &options);
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
