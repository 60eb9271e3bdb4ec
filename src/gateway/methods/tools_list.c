/* tools/list: read for the catalogue and rewritten for the client, at most once for the same bytes
 * (seed 002 F-003). */
#include <string.h>

#include "call/client_profile.h"
#include "client/modern.h"
#include "decision/agent_reason.h"
#include "lists_internal.h"
#include "methods.h"
#include "rewritten_lists.h"
#include "server/catalogue.h"
#include "state/tool_catalog.h"
#include "taskgate/core/log.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/lists.h"
#include "taskgate/policy/pins.h"
#include "tools/tools.h"

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
                                tool->has_own && !call->is_bridged, tool->own);
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
    catalog_show_page(call->worker->gateway->catalog, &reader, page, reply->is_first,
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
static void tools_list_write(struct call *call, struct str result, struct buffer *out)
{
    struct tools_reply reply = {.call = call, .list = mcp_list_find(result, "tools")};
    write_tools(&reply, out);
}

void tools_list_write_late(struct call *call, struct str result, struct buffer *out)
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

/* For when upstream fails. */
static void keep(const struct call *call, struct list_text *text, struct str result)
{
    struct buffer key;
    lists_write_key(call, &key);
    if (text)
        list_cache_put_shared(call->worker->gateway->list_cache, buffer_str(&key), text, result);
    else
        list_cache_put(call->worker->gateway->list_cache, buffer_str(&key), result);
    buffer_finish(&key);
}

/* The place in the kept reply, which has no id, of a part of the message. */
static struct str place_of(const struct rewritten_list *list, const struct relay_reply *message,
                           struct str part)
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
    list->result = place_of(list, message, message->result);
    if (!mcp_list_is_last(&reply->list))
        list->next_cursor = place_of(list, message, reply->list.next_cursor);
    list->offered = reply->ours.offered;
    list->prefixed = reply->ours.prefixed;
    take_written(list, message, rewritten);
    return list;
}

/* ---- a reply ---- */

static void rewrite(struct call *call, const struct relay_reply *message, struct buffer *out)
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
    keep(call, list ? list->reply : NULL, list ? list->result : message->result);
    if (list)
        rewritten_lists_put(call->worker->gateway->rewritten_lists, list);
    catalog_page_destroy(reply.page);
    if (!reply.is_last)
        tools_fetch_pages_after(call, reply.list.next_cursor);
}

/* The same bytes as before. */
static bool recall(struct call *call, struct str message, struct buffer *out)
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
        keep(call, list->reply, list->result);
        rewritten_list_write(list, call->envelope.id, out);
        tools_fetch_pages_after(call, list->next_cursor);
    }
    rewritten_list_unref(list);
    return is_same;
}

static bool tools_list_answer_kept(struct call *call, enum relay_failure failure)
{
    return lists_answer_kept(call, failure, tools_list_write);
}

static void relay_tools(struct call *call)
{
    struct relay_options options = lists_relay_options(call, tools_list_answer_kept);
    options.rewrite = rewrite;
    options.list = "tools";
    options.recall = recall;
    call->tools_epoch = catalog_epoch(call->worker->gateway->catalog, str_from(call->source->id));
    client_forward(call, &options);
}

void tools_list_handle(struct call *call)
{
    call_with_facts(call, relay_tools);
}
