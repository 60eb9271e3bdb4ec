/* list_tools: upstream's tools as this client may see them, fetched with its own credentials. */
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "call/call.h"
#include "decision/agent_reason.h"
#include "name_pattern.h"
#include "server/catalogue.h"
#include "state/tool_catalog.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/lists.h"
#include "tools.h"

#define MOST_NAME_BYTES 1024

/* A walk over the pages. */
struct listing {
    uint32_t magic; /* LISTING_MAGIC */
    struct call_part part;
    struct call *call;
    struct name_pattern *server, *tool; /* NULL until they are compiled */
    struct exchange *exchange;
    struct page_walk walk;
    uint64_t epoch;            /* catalog_epoch() before the first */
    struct catalog_page *page; /* the one that is being read */
    struct buffer tools;       /* JSON objects with commas */
    size_t count;
};
#define LISTING_MAGIC 0x47574c05

static inline struct listing *listing_from(void *context)
{
    return MAGIC_CAST(struct listing, LISTING_MAGIC, context);
}

static void drop(struct call *call, void *object)
{
    struct listing *listing = object;
    exchange_abandon(listing->exchange);
    name_pattern_destroy(listing->server);
    name_pattern_destroy(listing->tool);
    buffer_finish(&listing->tools);
    page_walk_finish(&listing->walk);
    MAGIC_CLEAR(listing);
    free(listing);
}

static const struct call_part_kind listing_kind = CALL_PART_KIND(struct listing, drop);

static struct listing *listing_of(const struct call *call)
{
    return call_part_get(call, &listing_kind);
}

/* ---- patterns ---- */

/* False when the call has been answered. */
static bool compile(struct call *call, const char *name, struct name_pattern **pattern)
{
    struct buffer expression = {0}, text = {0};
    const char *fault;
    if (!pseudo_argument_text(call->envelope.arguments.raw, name, &expression))
        buffer_append_text(&expression, ".*");
    *pattern = name_pattern_create(buffer_str(&expression), &fault);
    bool is_good = *pattern != NULL; /* once it is answered, the call's state is gone */
    if (!is_good) {
        buffer_append_format(&text, "%s is no regular expression that can be used here: it %s",
                             name, fault);
        pseudo_answer_text(call, buffer_str(&text), true);
    }
    buffer_finish(&text);
    buffer_finish(&expression);
    return is_good;
}

/* No model could call a tool with a longer name. */
static bool matches(const struct name_pattern *pattern, struct str name)
{
    return name.length <= MOST_NAME_BYTES && name_pattern_matches(pattern, name);
}

/* ---- pages ---- */

static void answer(struct call *call)
{
    const struct listing *listing = listing_of(call);
    struct buffer list = {0}, structured = {0};
    buffer_append_format(&list, "[%.*s]", STR_ARGS(buffer_str(&listing->tools)));
    buffer_append_format(&structured, "{\"tools\":%.*s}", STR_ARGS(buffer_str(&list)));
    bool is_empty = listing->count == 0;
    pseudo_answer(call,
                  &(struct pseudo_result){.text = is_empty ? STR("No tools available") : STR_EMPTY,
                                          .json = is_empty ? STR_EMPTY : buffer_str(&list),
                                          .structured = buffer_str(&structured)});
    buffer_finish(&structured);
    buffer_finish(&list);
}

static void add_value(struct buffer *out, const char *key, struct str value)
{
    if (value.length == 0)
        return;
    json_add_key(out, key);
    buffer_append(out, value);
}

/* As tools/list shows it. */
static void add_schema(const struct call *call, const struct mcp_tool *tool, struct buffer *out)
{
    const struct policy_request request = {call->source, tool->name, STR_EMPTY,
                                           call_verified(call)};
    struct policy_decision decision;
    struct buffer schema;
    buffer_init(&schema);
    policy_decide(call->snapshot->policy, &request, &decision);
    bool changes =
        agent_reason_write_schema(&schema, agent_reason_asked(&decision), call->source->id, tool);
    add_value(out, "inputSchema",
              changes ? buffer_str(&schema) : json_member(tool->raw, "inputSchema"));
    buffer_finish(&schema);
}

static void add_tool(struct listing *listing, const struct mcp_tool *tool)
{
    struct buffer *out = &listing->tools;
    if (listing->count++ > 0)
        buffer_append_char(out, ',');
    buffer_append_char(out, '{');
    json_add_text(out, "server", listing->call->source->id);
    json_add_key(out, "name");
    buffer_append_json_string(out, tool->name);
    add_value(out, "description", json_member(tool->raw, "description"));
    add_schema(listing->call, tool, out);
    buffer_append_char(out, '}');
}

static bool judge(void *context, const struct mcp_tool *tool, enum policy_annotation *announce)
{
    struct listing *listing = listing_from(context);
    struct call *call = listing->call;
    catalog_page_add(listing->page, tool, announce);
    if (policy_is_visible(call->snapshot->policy, call->source, tool->name) &&
        matches(listing->tool, tool->name))
        add_tool(listing, tool);
    return true;
}

/* False when upstream has given no list. */
static bool read_page(struct call *call, struct str result)
{
    struct listing *listing = listing_of(call);
    struct catalog *catalog = call->worker->gateway->catalog;
    const struct catalog_reader reader = {call->snapshot, call->source, str_from(call->owner),
                                          listing->epoch};
    listing->page = catalog_page_create(catalog);
    bool is_list = mcp_tools_read(result, judge, listing);
    if (is_list)
        catalog_put_page(catalog, &reader, listing->page, listing->walk.pages == 0,
                         mcp_next_cursor(result).length == 0);
    else
        catalog_page_destroy(listing->page);
    listing->page = NULL;
    return is_list;
}

static void ask_page(struct call *call);

static void on_page(void *context, const struct exchange_reply *reply)
{
    struct call *call = call_from(context);
    struct listing *listing = listing_of(call);
    struct str result = json_member(reply->message, "result");
    listing->exchange = NULL;
    if (read_page(call, result)) {
        if (page_walk_goes_on(&listing->walk, call->worker->gateway->catalog, call->snapshot,
                              call->source, mcp_next_cursor(result)))
            ask_page(call);
        else
            answer(call);
    } else if (page_walk_repeats(&listing->walk, reply)) {
        ask_page(call);
    } else {
        pseudo_answer_text(call, STR("The server cannot be asked for its tools now"), true);
    }
}

static void ask_page(struct call *call)
{
    static const struct exchange_events events = {.reply = on_page};
    struct listing *listing = listing_of(call);
    size_t most_bytes = (size_t)call->snapshot->config->limits.result_bytes;
    listing->exchange = exchange_ask_page(call, "tools/list", buffer_str(&listing->walk.cursor),
                                          most_bytes, &events);
}

void pseudo_tool_list_tools(struct call *call, struct str arguments)
{
    struct listing *listing = memory_alloc(sizeof *listing);
    MAGIC_SET(listing, LISTING_MAGIC);
    listing->call = call;
    listing->epoch = catalog_epoch(call->worker->gateway->catalog, str_from(call->source->id));
    buffer_init(&listing->tools);
    page_walk_init(&listing->walk, STR_EMPTY);
    call_part_add(call, &listing->part, &listing_kind);
    if (!compile(call, "server", &listing->server) || !compile(call, "tool", &listing->tool))
        return;
    if (matches(listing->server, str_from(call->source->id)))
        ask_page(call);
    else
        answer(call);
}
