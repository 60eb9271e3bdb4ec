/* resources/list and prompts/list, rewritten for the client (behaviour 5.3). */
#include <string.h>

#include "call/client_profile.h"
#include "conversation/question.h"
#include "conversation/relay.h"
#include "decision/agent_reason.h"
#include "list_cache.h"
#include "methods.h"
#include "rewritten_lists.h"
#include "server/catalogue.h"
#include "server/probe.h"
#include "state/definition_watch.h"
#include "state/source_eras.h"
#include "state/tool_catalog.h"
#include "taskgate/core/log.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/extension.h"
#include "taskgate/mcp/lists.h"
#include "taskgate/policy/gate.h"
#include "taskgate/policy/pins.h"
#include "tools/doc_resources.h"
#include "tools/tools.h"

/* The methods of extensions that rules judge, by the table: the parameter, and the URIs that the
 * answer names. */

/* ---- the answer ---- */

struct judgement {
    const struct call *call;
    enum name_gate_verdict verdict; /* on the last URI */
    bool is_of_skills;
};

/* Before they are judged. */
static void pin_skills(const struct call *call, struct str result)
{
    static const char *const keys[] = {"skill", "skills", "nextCursor"};
    struct definition_watch *watch = call->worker->gateway->definitions;
    struct str found[3];
    struct buffer entry;
    if (call->source->pins[DEFINITION_SKILL] == PIN_OFF)
        return;
    json_members(result, keys, 3, found);
    bool has_more = found[2].length > 0 && json_type(found[2]) != JSON_NULL;
    definition_watch_see_entries(watch, call->source, DEFINITION_SKILL, found[1],
                                 call->envelope.cursor.raw.length == 0 && !has_more);
    if (found[0].length == 0)
        return;
    buffer_init(&entry);
    buffer_append_format(&entry, "[%.*s]", STR_ARGS(found[0]));
    definition_watch_see_entries(watch, call->source, DEFINITION_SKILL, buffer_str(&entry), false);
    buffer_finish(&entry);
}

/* Whether the answer has skills themselves; these are pinned. */
static bool has_skills(const struct call *call)
{
    return call->method->extension.of == MCP_EXTENSION_SKILLS &&
           str_starts_with(str_from(call->method->extension.member), STR("skill"));
}

/* A skill that has changed, or is flagged, may be there as if it were not. */
static bool judge(void *context, struct str uri, struct str entry)
{
    struct judgement *judgement = context;
    const struct call *call = judgement->call;
    judgement->verdict = name_gate_judge_uri(call, uri);
    if (judgement->is_of_skills && !lists_may_show(call, DEFINITION_SKILL, uri, entry))
        judgement->verdict = NAME_GATE_HIDDEN;
    return judgement->verdict == NAME_GATE_FORWARD;
}

static bool says_nothing_of_caches(struct str result)
{
    static const char *const keys[] = {"cacheScope", "ttlMs"};
    struct str found[2];
    json_members(result, keys, 2, found);
    return found[0].length == 0 && found[1].length == 0;
}

/* A list that says nothing of caches and of which nothing was left out passes in the legacy era,
 * which has no such members, as it is. */
static void write_cacheable(const struct call *call, struct str result, struct str shown,
                            struct buffer *out)
{
    int64_t most_ms = lists_most_ttl_ms(call);
    if (!call->dialect->has_sessions)
        mcp_cacheable_write(out, shown, most_ms);
    else if (str_equal(result, shown) && says_nothing_of_caches(result))
        buffer_append(out, shown);
    else
        mcp_cacheable_write_untyped(out, shown, most_ms);
}

static void extension_rewrite(struct call *call, const struct relay_reply *reply,
                              struct buffer *out)
{
    const struct mcp_method *method = call->method;
    struct judgement judgement = {.call = call, .is_of_skills = has_skills(call)};
    OWNED_BUFFER(list);
    size_t start = out->length;
    if (judgement.is_of_skills && method->extension.answer == MCP_ANSWER_LIST)
        pin_skills(call, reply->result);
    if (method->extension.answer == MCP_ANSWER_LIST)
        mcp_entries_filter(&list, reply->result, method->extension.member, judge, &judgement);
    else
        buffer_append(&list, reply->result);
    if (method->extension.is_cacheable)
        write_cacheable(call, reply->result, buffer_str(&list), out);
    else
        buffer_append(out, buffer_str(&list));
    if (method->extension.answer == MCP_ANSWER_LIST)
        mcp_cacheable_drop_tags(out, start, reply->result);
}

/* Of one entry: no part of it is left out. */
static bool refuse_entry(struct call *call, const struct relay_reply *reply, struct buffer *message)
{
    struct str result = reply->result;
    const struct jsonrpc_error_data unknown = {.details = call->envelope.uri.text},
                                    denied = {
                                        .gate = str_from(policy_gate_name(POLICY_GATE_GOVERNANCE))};
    struct judgement judgement = {
        .call = call, .verdict = NAME_GATE_HIDDEN, .is_of_skills = has_skills(call)};
    if (judgement.is_of_skills)
        pin_skills(call, result);
    if (mcp_entry_passes(json_member(result, call->method->extension.member), judge, &judgement))
        return false;
    bool is_denied = judgement.verdict == NAME_GATE_DENIED;
    dialect_write_error(call->dialect, message, call->envelope.id,
                        is_denied ? JSONRPC_RULE_DENIED : JSONRPC_RESOURCE_UNKNOWN, STR_EMPTY,
                        is_denied ? &denied : &unknown);
    call->outcome = "error";
    return true;
}

/* Writes a result with skills, or with one, for a client that gets it late. */
static void extension_write_late(struct call *call, struct str result, struct buffer *out)
{
    struct judgement judgement = {.call = call, .is_of_skills = true};
    struct str skill = json_member(result, "skill");
    pin_skills(call, result);
    if (skill.length == 0)
        mcp_entries_filter(out, result, "skills", judge, &judgement);
    else if (mcp_entry_passes(skill, judge, &judgement))
        buffer_append(out, result);
    else
        buffer_append_text(out, "{}"); /* the response has begun as one with a result */
}

/* ---- the call ---- */

static bool is_open(const struct call *call)
{
    const struct mcp_extension *extension = mcp_extension_get(call->method->extension.of);
    return policy_extension(call->snapshot->policy, call->source, str_from(extension->name)) !=
               POLICY_EXTENSION_DENIED &&
           (extension->crosses_eras || !call_leases_session(call));
}

static void relay(struct call *call)
{
    static const struct looks of_list = {.take_message = question_take_from_stream,
                                         .forbidden = name_gate_forbids_now,
                                         .rewrite = extension_rewrite};
    static const struct looks of_entry = {.take_message = question_take_from_stream,
                                          .forbidden = name_gate_forbids_now,
                                          .rewrite = extension_rewrite,
                                          .replace_result = refuse_entry};
    bool is_entry = call->method->extension.answer == MCP_ANSWER_ENTRY;
    if (name_gate_passes(call))
        relay_start(call, is_entry ? &of_entry : &of_list, NULL);
}

/* A server whose settings are not known is left to answer itself. */
static void relay_if_supported(struct call *call)
{
    bool reads;
    if (source_eras_find_directories(call->worker->gateway->eras, call->source, &reads) && !reads)
        methods_refuse_unknown(call);
    else
        relay(call);
}

static void check_setting(struct call *call)
{
    bool reads;
    if ((!call->dialect->has_sessions || call_gives_session(call)) &&
        !source_eras_find_directories(call->worker->gateway->eras, call->source, &reads))
        era_probe_then(call, relay_if_supported);
    else
        relay_if_supported(call);
}

void extension_handle(struct call *call)
{
    const struct mcp_method *method = call->method;
    if (!is_open(call))
        methods_refuse_unknown(call);
    else if (method->extension.parameter == MCP_PARAMETER_URI && !call->envelope.uri.text.bytes)
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("params.uri must be a string"), NULL);
    else if (method->extension.setting[0] != '\0')
        check_setting(call);
    else
        relay(call);
}

/* tools/list: read for the catalogue and rewritten for the client, at most once for the same bytes
 * (behaviour 5.1). */

/* A reply that is being read and written. */
struct tools_reply {
    struct call *call;
    struct mcp_list list;
    struct catalog_page *page;      /* NULL: the catalogue knows it */
    bool is_first, is_last;         /* of the owner's list, for the catalogue */
    bool is_learned;                /* it has read the page already */
    int64_t most_ttl_ms;            /* that the client may keep it */
    struct tool_names ours;         /* those that are written */
    enum config_agent_reason asked; /* for the tool that was judged last */
};

/* ---- reading ---- */

static bool judge_tool(void *context, const struct mcp_tool *tool, enum policy_annotation *announce)
{
    struct tools_reply *reply = context;
    const struct call *call = reply->call;
    const struct policy_request request = {call->source, tool->name, STR_EMPTY,
                                           call_verified(call)};
    struct policy_decision decision;
    if (reply->page && !reply->is_learned)
        catalog_page_add(reply->page, tool, announce);
    if (!policy_is_visible(call->snapshot->policy, call->source, tool->name))
        return false;
    policy_decide(call->snapshot->policy, &request, &decision);
    reply->asked = agent_reason_asked(&decision);
    *announce = policy_annotate(&decision, call->facts.server.has_tasks,
                                tool->has_own && !call_gives_session(call), tool->own);
    if (!client_knows_tasks(call))
        *announce = policy_annotate_plain(&decision, *announce);
    return true;
}

static bool hides_output(void *context, const struct mcp_tool *tool)
{
    const struct call *call = ((const struct tools_reply *)context)->call;
    const struct policy_request request = {call->source, tool->name, STR_EMPTY,
                                           call_verified(call)};
    struct policy_decision decision;
    policy_decide(call->snapshot->policy, &request, &decision);
    return pseudo_tools_hide_output(call, &decision);
}

static bool write_schema(void *context, const struct mcp_tool *tool, struct buffer *out)
{
    const struct tools_reply *reply = context;
    return agent_reason_write_schema(out, reply->asked, reply->call->source->id, tool);
}

/* Remembers for its owner what the page says. */
static void learn(const struct tools_reply *reply, const struct catalog_page *page)
{
    const struct call *call = reply->call;
    const struct catalog_reader reader = {call->snapshot, call->source, str_from(call->owner),
                                          call->tools_epoch};
    catalog_put_page(call->worker->gateway->catalog, &reader, page, reply->is_first,
                     reply->is_last);
}

static bool has_ours(const struct call *call, bool is_last_page)
{
    return is_last_page && client_is_shown_tools(call);
}

/* The gateway's own come behind upstream's, on the last page: under names that depend on what the
 * owner has just been told. */
static void write_ours(void *context, struct buffer *out)
{
    struct tools_reply *reply = context;
    if (reply->page && !reply->is_learned && json_type(reply->list.items) == JSON_ARRAY)
        learn(reply, reply->page);
    if (!has_ours(reply->call, mcp_list_is_last(&reply->list)))
        return;
    reply->ours = pseudo_tools_names(reply->call);
    pseudo_tools_write(reply->call, &reply->ours, out);
}

/* Whether what is pinned decides how tools are shown. */
static bool hangs_on_pins(const struct config_source *source)
{
    return source->pins[DEFINITION_TOOL] == PIN_APPROVE || source->hide_flagged;
}

/* Then the page is pinned before it is judged. */
static void learn_first(struct tools_reply *reply)
{
    if (!reply->page || !hangs_on_pins(reply->call->source) ||
        json_type(reply->list.items) != JSON_ARRAY)
        return;
    mcp_tools_read(reply->list.result, catalog_page_add, reply->page);
    learn(reply, reply->page);
    reply->is_learned = true;
}

static void write_tools(struct tools_reply *reply, struct buffer *out)
{
    learn_first(reply);
    const struct dialect *dialect = reply->call->dialect;
    const struct mcp_tools_rewriting rewriting = {.judge = judge_tool,
                                                  .hides = hides_output,
                                                  .schema = write_schema,
                                                  .more = write_ours,
                                                  .context = reply,
                                                  .announcing =
                                                      pseudo_tools_announcing(reply->call)};
    size_t start = out->length;
    struct buffer list;
    if (dialect->announces_tasks) {
        mcp_tools_rewrite_with(out, &reply->list, &rewriting);
    } else {
        buffer_init(&list);
        mcp_tools_rewrite_with(&list, &reply->list, &rewriting);
        dialect->write_list(out, buffer_str(&list), reply->most_ttl_ms);
        buffer_finish(&list);
    }
    mcp_cacheable_drop_tags(out, start, reply->list.result);
}

/* Writes a reply's result for the client. */
static void tools_list_write(struct call *call, struct str result, int64_t most_ms,
                             struct buffer *out)
{
    struct tools_reply reply = {
        .call = call, .list = mcp_list_find(result, "tools"), .most_ttl_ms = most_ms};
    write_tools(&reply, out);
}

/* Writes a reply's result for the client. It comes late, and its owner's catalogue learns from it.
 */
static void tools_list_write_late(struct call *call, struct str result, struct buffer *out)
{
    struct tools_reply reply = {.call = call, .list = mcp_list_find(result, "tools")};
    reply.page = catalog_page_create(call->worker->gateway->catalog);
    write_tools(&reply, out);
    catalog_page_destroy(reply.page);
}

/* ---- what is remembered ---- */

/* All that a client's list depends on besides the server's bytes and the configuration. */
static unsigned kind_of(const struct call *call)
{
    return (call->facts.server.has_tasks ? 1U : 0) | (client_knows_tasks(call) ? 2U : 0) |
           (client_is_shown_tools(call) ? 4U : 0) | (lists_most_ttl_ms(call) > 0 ? 8U : 0) |
           (unsigned)pseudo_tools_announcing(call) << 4;
}

static bool write_key(const struct call *call, struct str message, struct rewritten_key *key)
{
    *key = (struct rewritten_key){.source = str_from(call->source->id),
                                  .snapshot = call->snapshot->number,
                                  .client = kind_of(call),
                                  .pins = hangs_on_pins(call->source) ? pins_version() : 0};
    return policy_principal_bits(call->snapshot->policy, call_verified(call), &key->principals) &&
           reply_parts_find(&key->reply, message, call->envelope.id);
}

/* The place in the kept reply, which has no id, of a part of the message. */
static struct str lists_place_of(const struct rewritten_list *list,
                                 const struct relay_reply *message, struct str part)
{
    if (part.length == 0)
        return STR_EMPTY;
    size_t at = str_offset(message->message, part);
    if (at > list->id_at)
        at -= message->id.length;
    return str_slice(list->reply->bytes + at, part.length);
}

/* `rewritten` is the message up to the end of its new result. */
static void take_written(struct rewritten_list *list, const struct relay_reply *message,
                         struct str rewritten)
{
    struct str old = message->result;
    const char *behind = old.bytes + old.length;
    size_t at = list->id_at, length = message->id.length,
           tail = message->message.length - str_offset(message->message, old) - old.length;
    struct buffer text;
    buffer_init(&text);
    buffer_reserve(&text, rewritten.length + tail);
    buffer_append(&text, rewritten);
    buffer_append(&text, str_slice(behind, tail));
    if (message->id.bytes > old.bytes)
        at += text.length - message->message.length;
    memmove(text.bytes + at, text.bytes + at + length, text.length - at - length);
    text.length -= length;
    rewritten_list_set_written(list, &text, at);
}

/* Takes the page over. NULL when the reply cannot be told by its bytes. */
static struct rewritten_list *list_of(struct tools_reply *reply, const struct relay_reply *message,
                                      struct str rewritten)
{
    struct rewritten_key key;
    if (!write_key(reply->call, message->message, &key) ||
        key.reply.before.bytes + key.reply.before.length != message->id.bytes ||
        message->id.length != reply->call->envelope.id.length)
        return NULL;
    struct rewritten_list *list = rewritten_list_create(&key, reply->page);
    reply->page = NULL;
    list->result = lists_place_of(list, message, message->result);
    if (!mcp_list_is_last(&reply->list))
        list->next_cursor = lists_place_of(list, message, reply->list.next_cursor);
    list->offered = reply->ours.offered;
    list->prefixed = reply->ours.prefixed;
    take_written(list, message, rewritten);
    return list;
}

/* ---- a reply ---- */

static void lists_rewrite(struct call *call, const struct relay_reply *message, struct buffer *out)
{
    size_t before = str_offset(message->message, message->result), start = out->length - before;
    struct tools_reply reply = {
        .call = call,
        .list = {message->result, "tools", message->list, message->next_cursor},
        .most_ttl_ms = lists_most_ttl_ms(call)};
    struct rewritten_list *list = NULL;
    bool is_list = json_type(reply.list.items) == JSON_ARRAY;
    reply.page = catalog_page_create(call->worker->gateway->catalog);
    reply.is_first = call->envelope.cursor.raw.length == 0;
    reply.is_last = mcp_list_is_last(&reply.list);
    write_tools(&reply, out);
    if (is_list)
        list = list_of(&reply, message, str_slice(out->bytes + start, out->length - start));
    else
        log_warn("Upstream's tools/list has no list of tools",
                 LOG_TEXT("source", call->source->id));
    lists_keep(call, list ? list->reply : NULL, list ? list->result : message->result);
    if (list)
        rewritten_lists_put(call->worker->gateway->rewritten_lists, list);
    catalog_page_destroy(reply.page);
    if (!reply.is_last)
        tools_fetch_pages_after(call, reply.list.next_cursor);
}

/* The same bytes as before. */
static bool lists_recall(struct call *call, struct str message, struct buffer *out)
{
    struct rewritten_key key;
    if (!write_key(call, message, &key))
        return false;
    struct rewritten_list *list =
        rewritten_lists_find(call->worker->gateway->rewritten_lists, &key);
    if (!list)
        return false;
    bool is_last = list->next_cursor.length == 0;
    learn(&(struct tools_reply){.call = call,
                                .is_first = call->envelope.cursor.raw.length == 0,
                                .is_last = is_last},
          list->page);
    struct tool_names ours = {0};
    if (has_ours(call, is_last))
        ours = pseudo_tools_names(call);
    bool is_same = ours.offered == list->offered && ours.prefixed == list->prefixed;
    if (is_same) {
        lists_keep(call, list->reply, list->result);
        rewritten_list_write(list, call->envelope.id, out);
        tools_fetch_pages_after(call, list->next_cursor);
    }
    rewritten_list_unref(list);
    return is_same;
}

static bool tools_list_answer_kept(struct call *call, enum lost_reason reason)
{
    return lists_answer_kept(call, reason, tools_list_write);
}

static void relay_tools(struct call *call)
{
    static const struct looks looks = {.rewrite = lists_rewrite,
                                       .list = "tools",
                                       .recall = lists_recall,
                                       .stand_in = tools_list_answer_kept};
    call->tools_epoch = catalog_epoch(call->worker->gateway->catalog, str_from(call->source->id));
    lists_fetch(call, &looks);
}

void tools_list_handle(struct call *call)
{
    call_with_facts(call, relay_tools);
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

static bool judge_name(void *context, struct str name, struct str entry)
{
    return lists_may_show(call_from(context), DEFINITION_PROMPT, name, entry);
}

/* A resource of ours is ours even where upstream has one of the same URI. */
static bool lists_judge_resource(void *context, struct str uri, struct str entry)
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
    mcp_list_filter(&theirs, result, "resources", "uri", lists_judge_resource, call);
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
    lists_keep(call, NULL, reply->result);
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
    lists_keep(call, NULL, reply->result);
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

static bool answer_kept_resources(struct call *call, enum lost_reason reason)
{
    return lists_answer_kept(call, reason, write_resources);
}

static bool answer_kept_prompts(struct call *call, enum lost_reason reason)
{
    return lists_answer_kept(call, reason, write_prompts);
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
    static const struct looks looks = {.rewrite = rewrite_resources,
                                       .replace_error = replace_resources,
                                       .stand_in = answer_kept_resources};
    lists_fetch(call, &looks);
}

void resources_list_handle(struct call *call)
{
    call_with_facts(call, relay_resources);
}

static void relay_templates(struct call *call)
{
    static const struct looks none = {0}, of_none = {.replace_error = replace_templates};
    static const struct looks modern = {.rewrite = rewrite_templates,
                                        .replace_error = replace_templates};
    if (!call->dialect->has_sessions) /* a modern answer is read in any case */
        relay_start(call, &modern, NULL);
    else
        relay_start(call, call->facts.server.lacks_resources ? &of_none : &none, NULL);
}

void resources_templates_list_handle(struct call *call)
{
    call_with_facts(call, relay_templates);
}

void prompts_list_handle(struct call *call)
{
    static const struct looks looks = {.rewrite = rewrite_prompts, .stand_in = answer_kept_prompts};
    lists_fetch(call, &looks);
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
        mcp_list_filter(out, result, "resources", "uri", lists_judge_resource, call);
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
