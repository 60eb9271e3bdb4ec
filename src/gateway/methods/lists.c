/* The lists of servers, rewritten for the client (behaviour 5.3), and `server/discover`, with which
 * a client of both eras finds out which of them a source serves. */
#include <string.h>

#include "call/client_profile.h"
#include "conversation/question.h"
#include "conversation/relay.h"
#include "decision/agent_reason.h"
#include "list_cache.h"
#include "methods.h"
#include "server/catalogue.h"
#include "server/probe.h"
#include "server/protocol.h"
#include "state/definition_watch.h"
#include "state/source_eras.h"
#include "state/tool_catalog.h"
#include "taskgate/core/log.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/definition.h"
#include "taskgate/mcp/extension.h"
#include "taskgate/mcp/lists.h"
#include "taskgate/policy/gate.h"
#include "taskgate/policy/pins.h"
#include "taskgate/policy/policy.h"
#include "tools/doc_resources.h"
#include "tools/tools.h"

/* ---- the list of a call ---- */

/* Who may be answered from what was fetched before is the one who fetched it. */
static void lists_write_key(const struct call *call, struct buffer *key)
{
    buffer_append_format(key, "%s/%s/%s/%s/%d/", call->source->id, call->owner, call->method->name,
                         call->source->url, (int)call->dialect->era);
    buffer_append(key, call->envelope.cursor.raw);
}

/* Keeps a list's result, or that of `server/discover`, for its owner. `text`, which holds it, may
 * be NULL. */
static void lists_keep(const struct call *call, struct list_text *text, struct str result)
{
    OWNED_BUFFER(key);
    lists_write_key(call, &key);
    list_cache_put(call->worker->gateway->list_cache, buffer_str(&key), text, result);
}

/* ---- what clients may keep ---- */

#define RELOADED_FOR_MS 60000

/* How long a client may keep a list that is made now: not at all for a minute after a reload. */
static int64_t lists_most_ttl_ms(const struct call *call)
{
    int64_t reloaded_ms = call->worker->gateway->reloaded_ms;
    bool is_fresh =
        reloaded_ms > 0 && loop_now_ms(call->worker->loop) - reloaded_ms < RELOADED_FOR_MS;
    return is_fresh ? 0 : MCP_CACHEABLE_MOST_MS;
}

/* Whether a client may see the prompt or skill, by its last definition and by that of `entry`,
 * which may be empty: two answers at once may define it differently. */
static bool lists_may_show(const struct call *call, enum definition_kind kind, struct str name,
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

/* ---- when upstream fails ---- */

/* Writes a result of the server's for the client, who may keep it for `most_ms`. */
typedef void (*list_writer)(struct call *call, struct str result, int64_t most_ms,
                            struct buffer *out);

/* Answers with what the owner fetched before, as `write` writes it for the client. false: nothing
 * is kept, or the failure is no reason. */
static bool lists_answer_kept(struct call *call, enum lost_reason reason, list_writer write)
{
    const struct call_carrier *carrier = call_carrier_of(call);
    OWNED_BUFFER(key);
    OWNED_BUFFER(kept);
    OWNED_BUFFER(result);
    OWNED_BUFFER(of_client);
    if (reason == LOST_UNREADABLE)
        return false;
    lists_write_key(call, &key);
    bool found = list_cache_get(call->worker->gateway->list_cache, buffer_str(&key), &kept);
    if (found) {
        log_warn("Upstream failed, the list is the one fetched before",
                 LOG_TEXT("source", call->source->id), LOG_TEXT("method", call->method->name));
        write(call, buffer_str(&kept), 0, &result);
        if (carrier->write_result) /* the server's own words were kept */
            carrier->write_result(call, buffer_str(&result), &of_client);
        call_answer_result_of_server(call,
                                     buffer_str(carrier->write_result ? &of_client : &result));
    }
    return found;
}

/* Sends for a list. */
static void lists_fetch(struct call *call, const struct looks *looks)
{
    relay_start(
        call, looks,
        &(struct carried){.silence_ms = call->snapshot->config->times.tools_fetch_timeout_ms});
}

static bool is_first_page(const struct call *call)
{
    return call->envelope.cursor.raw.length == 0;
}

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
    OWNED_BUFFER(entry);
    if (call->source->pins[DEFINITION_SKILL] == PIN_OFF)
        return;
    json_members(result, keys, 3, found);
    bool has_more = found[2].length > 0 && json_type(found[2]) != JSON_NULL;
    definition_watch_see_entries(watch, call->source, DEFINITION_SKILL, found[1],
                                 is_first_page(call) && !has_more);
    if (found[0].length == 0)
        return;
    buffer_append_format(&entry, "[%.*s]", STR_ARGS(found[0]));
    definition_watch_see_entries(watch, call->source, DEFINITION_SKILL, buffer_str(&entry), false);
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
    reply.is_first = is_first_page(call);
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
    learn(&(struct tools_reply){.call = call, .is_first = is_first_page(call), .is_last = is_last},
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

/* ---- resources, their templates, and prompts ---- */

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

/* Templates name no resource, so all are shown. */
static const struct named_list {
    const char *member, *key;
    mcp_name_judge judge; /* NULL: all entries are shown */
} resources = {"resources", "uri", lists_judge_resource},
  templates = {"resourceTemplates", "", NULL}, prompts = {"prompts", "name", judge_name};

static const struct named_list *named_list_of(const struct call *call)
{
    enum mcp_treatment treatment = call->method->treatment;
    return treatment == MCP_RESOURCES_LIST             ? &resources
           : treatment == MCP_RESOURCES_TEMPLATES_LIST ? &templates
                                                       : &prompts;
}

static void lists_write_shown(struct call *call, const struct named_list *list, struct str result,
                              struct buffer *out)
{
    if (list->judge)
        mcp_list_filter(out, result, list->member, list->key, list->judge, call);
    else
        buffer_append(out, result);
}

/* Writes a result of the server's for the client. Our resources come after the server's, on the
 * first page. */
static void write_named_list(struct call *call, struct str result, int64_t most_ms,
                             struct buffer *out)
{
    const struct named_list *list = named_list_of(call);
    size_t start = out->length;
    OWNED_BUFFER(theirs);
    OWNED_BUFFER(ours);
    OWNED_BUFFER(all);
    lists_write_shown(call, list, result, &theirs);
    if (list == &resources && doc_resources_are_offered(call) && is_first_page(call)) {
        doc_resources_write_entries(&ours);
        mcp_list_append(&all, buffer_str(&theirs), list->member, buffer_str(&ours));
    }
    call->dialect->write_list(out, buffer_str(all.length > 0 ? &all : &theirs), most_ms);
    mcp_cacheable_drop_tags(out, start, result);
}

static void rewrite_named(struct call *call, const struct relay_reply *reply, struct buffer *out)
{
    write_named_list(call, reply->result, lists_most_ttl_ms(call), out);
}

static void pin_prompts(struct call *call, struct str result)
{
    bool is_whole = is_first_page(call) && mcp_next_cursor(result).length == 0;
    definition_watch_see_entries(call->worker->gateway->definitions, call->source,
                                 DEFINITION_PROMPT, json_member(result, "prompts"), is_whole);
}

static void keep_and_rewrite(struct call *call, const struct relay_reply *reply, struct buffer *out)
{
    lists_keep(call, NULL, reply->result);
    if (named_list_of(call) == &prompts)
        pin_prompts(call, reply->result);
    rewrite_named(call, reply, out);
}

/* ---- when upstream fails ---- */

static bool answer_kept_named(struct call *call, enum lost_reason reason)
{
    return lists_answer_kept(call, reason, write_named_list);
}

/* The list has our resources alone when upstream does not know the method. */
static bool replace_with_ours(struct call *call, struct str error, struct buffer *message)
{
    OWNED_BUFFER(empty);
    OWNED_BUFFER(result);
    if (!doc_resources_replace(call, error))
        return false;
    buffer_append_format(&empty, "{\"%s\":[]}", named_list_of(call)->member);
    write_named_list(call, buffer_str(&empty), 0, &result);
    call->dialect->write_own_result(message, call->envelope.id, buffer_str(&result));
    return true;
}

static void relay_resources(struct call *call)
{
    static const struct looks looks = {.rewrite = keep_and_rewrite,
                                       .replace_error = replace_with_ours,
                                       .stand_in = answer_kept_named};
    lists_fetch(call, &looks);
}

void resources_list_handle(struct call *call)
{
    call_with_facts(call, relay_resources);
}

static void relay_templates(struct call *call)
{
    static const struct looks none = {0}, of_none = {.replace_error = replace_with_ours};
    static const struct looks modern = {.rewrite = rewrite_named,
                                        .replace_error = replace_with_ours};
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
    static const struct looks looks = {.rewrite = keep_and_rewrite, .stand_in = answer_kept_named};
    lists_fetch(call, &looks);
}

/* ---- server/discover ---- */

/* A legacy source: the clients of both eras fall back to `initialize` on this. Or a modern one, and
 * a request that is not. */
void discover_refuse_handle(struct call *call)
{
    bool is_incomplete = source_eras_serves_modern(call->worker->gateway->eras, call->source,
                                                   loop_now_ms(call->worker->loop));
    OWNED_BUFFER(text);
    jsonrpc_write_error(&text, call->envelope.id,
                        is_incomplete ? JSONRPC_INCOMPLETE_ENVELOPE : JSONRPC_METHOD_NOT_FOUND,
                        STR_EMPTY, NULL);
    call_answer_status(call, 400, buffer_str(&text));
}

/* A rule may make a task of any call, so the extension is offered whatever the server has. */
static void discover_write(struct call *call, struct str result, int64_t most_ms,
                           struct buffer *out)
{
    size_t start = out->length;
    OWNED_BUFFER(shown);
    client_write_extensions(call, result, &shown);
    mcp_discover_write(out, buffer_str(&shown), true, most_ms);
    mcp_cacheable_drop_tags(out, start, result);
}

static void discover_rewrite(struct call *call, const struct relay_reply *reply, struct buffer *out)
{
    era_probe_note_result(call->worker->gateway, call->source, reply->result);
    lists_keep(call, NULL, reply->result);
    discover_write(call, reply->result, lists_most_ttl_ms(call), out);
}

static bool discover_answer_kept(struct call *call, enum lost_reason reason)
{
    return lists_answer_kept(call, reason, discover_write);
}

/* In the place of a server that has no such method. */
static void discover_answer_described(struct call *call)
{
    OWNED_BUFFER(described);
    OWNED_BUFFER(shown);
    server_legacy.describe(call, &described);
    client_write_extensions(call, buffer_str(&described), &shown);
    call_answer_result(call, buffer_str(&shown));
}

void discover_handle(struct call *call)
{
    static const struct looks looks = {.rewrite = discover_rewrite,
                                       .stand_in = discover_answer_kept};
    call_identify(call);
    if (call_leases_session(call))
        server_legacy.obtain(call, discover_answer_described);
    else
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
        lists_write_shown(call, &resources, result, out);
    } else if (has_list(result, "prompts")) {
        pin_prompts(call, result);
        lists_write_shown(call, &prompts, result, out);
    } else if (has_list(result, "skills") || json_member(result, "skill").length > 0) {
        extension_write_late(call, result, out);
    } else {
        buffer_append(out, result);
    }
    mcp_cacheable_drop_tags(out, start, result);
}
