/* Fetches tools for the catalogue. */
#include "catalogue.h"

#include <stdlib.h>

#include "own.h"
#include "probe.h"
#include "sessions.h"
#include "state/source_eras.h"
#include "state/tool_catalog.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/capabilities.h"
#include "taskgate/mcp/lists.h"

/* ---- the pages of a list, one after the other ---- */

/* A walk over the pages of a server's list, by its cursors. A page that does not come is asked for
 * once more; a cursor that came before ends the walk, and what was read stays. */
struct page_walk {
    struct map *cursors;       /* the digests of those that were followed */
    struct buffer cursor;      /* of the page that was asked for last, as JSON; empty: the first */
    int64_t pages;             /* that have come */
    bool is_again;             /* that page was asked for twice */
    struct catalog_page *page; /* the one that is being read */
    struct call *call;         /* which sees each tool, if it walks itself */
    void (*see)(struct call *call, const struct mcp_tool *tool);
};

enum page_verdict { PAGE_ABSENT, PAGE_LAST, PAGE_NEXT };

static void page_walk_finish(struct page_walk *walk)
{
    map_destroy(walk->cursors, NULL);
    buffer_finish(&walk->cursor);
}

/* The page did not come. true: it is to be asked for again. Never where the server refused the
 * credentials or the session, has no such list, or kept silent for the time that a page has. */
static bool page_walk_repeats(struct page_walk *walk, const struct exchange_reply *reply)
{
    int status = reply->status;
    struct str code = json_member(json_member(reply->message, "error"), "code");
    bool repeats = !walk->is_again && reply->result != UPSTREAM_SILENT && status != 401 &&
                   status != 403 && status != 404 && !str_equal(code, STR("-32601"));
    walk->is_again = true;
    return repeats;
}

/* A cursor that comes again leads to the same pages for ever. */
static bool catalogue_is_repeated(struct page_walk *walk, struct str cursor)
{
    char digest[DIGEST_HEX_BYTES];
    digest_sha256_hex(cursor, digest);
    return map_put(walk->cursors, str_from(digest), walk) != NULL;
}

/* The page has come, with the cursor of the next one (as JSON, or empty). true: that one is
 * `walk->cursor`. The pages so far count as the whole list if more follow than are read. */
static bool page_walk_goes_on(struct page_walk *walk, struct catalog *catalog,
                              const struct snapshot *snapshot, const struct config_source *source,
                              struct str next)
{
    const char *fault = NULL;
    walk->pages++;
    walk->is_again = false;
    if (next.length == 0)
        return false;
    if (catalogue_is_repeated(walk, next))
        fault = "Upstream's tools come with a cursor that came before: the list ends there";
    else if (walk->pages >= snapshot->config->times.tools_max_pages)
        fault = "Upstream's tools have more pages than THOUGHTGATE_TOOLS_MAX_PAGES allows";
    if (fault && catalog_fault_is_due(catalog, source, CATALOG_FAULT_PAGES, clock_monotonic_ms()))
        log_warn(fault, LOG_TEXT("source", source->id));
    buffer_clear(&walk->cursor);
    buffer_append(&walk->cursor, next);
    return !fault;
}

static bool see_tool(void *context, const struct mcp_tool *tool, enum policy_annotation *announce)
{
    const struct page_walk *walk = context;
    catalog_page_add(walk->page, tool, announce);
    if (walk->see)
        walk->see(walk->call, tool);
    return true;
}

/* PAGE_ABSENT: the server has given no list. */
static enum page_verdict page_walk_read(struct page_walk *walk, struct catalog *catalog,
                                        const struct catalog_reader *reader, struct str result)
{
    enum page_verdict verdict = PAGE_ABSENT;
    bool is_first = walk->pages == 0;
    walk->page = catalog_page_create(catalog);
    if (mcp_tools_read(result, see_tool, walk)) {
        verdict = page_walk_goes_on(walk, catalog, reader->snapshot, reader->source,
                                    mcp_next_cursor(result))
                      ? PAGE_NEXT
                      : PAGE_LAST;
        catalog_put_page(catalog, reader, walk->page, is_first, verdict == PAGE_LAST);
    }
    catalog_page_destroy(walk->page);
    return verdict;
}

/* ---- all pages of the tools, for a call ---- */

struct tools_walk {
    struct call_part part;
    struct page_walk walk;
    uint64_t epoch; /* catalog_epoch() before the first */
    void (*done)(struct call *call, bool is_list);
};

static void tools_walk_drop(struct call *call, void *object)
{
    struct tools_walk *walk = object;
    page_walk_finish(&walk->walk);
    free(walk);
}

static const struct call_part_kind tools_walk_kind =
    CALL_PART_KIND(struct tools_walk, tools_walk_drop);

static void ask_tools_page(struct call *call, const struct tools_walk *walk);

static void take_tools_page(struct call *call, const struct exchange_reply *reply, call_step next)
{
    struct tools_walk *walk = call_part_get(call, &tools_walk_kind);
    const struct catalog_reader reader = {call->snapshot, call->source, str_from(call->owner),
                                          walk->epoch};
    enum page_verdict verdict = page_walk_read(&walk->walk, call->worker->gateway->catalog, &reader,
                                               json_member(reply->message, "result"));
    if (verdict == PAGE_NEXT || (verdict == PAGE_ABSENT && page_walk_repeats(&walk->walk, reply)))
        ask_tools_page(call, walk);
    else
        walk->done(call, verdict == PAGE_LAST);
}

static void ask_tools_page(struct call *call, const struct tools_walk *walk)
{
    server_ask_page(call, "tools/list", buffer_str(&walk->walk.cursor),
                    (size_t)call->snapshot->config->limits.result_bytes, take_tools_page);
}

void tools_walk(struct call *call, void (*see)(struct call *call, const struct mcp_tool *tool),
                void (*done)(struct call *call, bool is_list))
{
    struct tools_walk *walk = memory_alloc(sizeof *walk);
    walk->walk = (struct page_walk){.cursors = map_create(), .call = call, .see = see};
    walk->epoch = catalog_epoch(call->worker->gateway->catalog, str_from(call->source->id));
    walk->done = done;
    call_part_add(call, &walk->part, &tools_walk_kind);
    ask_tools_page(call, walk);
}

/* ---- a fetch ---- */

#define RETRY_MS 5000
#define CALL_WAITS_MS 5000 /* a call does not wait longer for its tool's definition */

/* One walk over the pages of one source. It lives as long as its exchange. */
struct fetch {
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source;
    struct headers headers;
    char *owner;        /* the owner whose list it is; "" for CATALOG_GATEWAY */
    uint64_t epoch;     /* catalog_epoch() before the first page */
    bool is_own;        /* the gateway's own; the catalogue knows that it has begun */
    bool is_modern;     /* its requests are: it has no session */
    bool own_session;   /* the session was opened here, and is closed here */
    bool was_parked;    /* by an earlier fetch; the server may have forgotten it */
    loop_callback done; /* tells the call that waits; may be NULL */
    void *context;
    struct page_walk walk;
    int64_t deadline_ms; /* monotonic */
};

static void tools_fetch_destroy(struct fetch *fetch)
{
    if (fetch->done)
        fetch->done(fetch->context);
    headers_finish(&fetch->headers);
    page_walk_finish(&fetch->walk);
    snapshot_unref(fetch->snapshot);
    free(fetch->owner);
    free(fetch);
}

static void drop(void *context)
{
    struct fetch *fetch = context;
    if (fetch->is_own)
        catalog_end_fetch(fetch->worker->gateway->catalog, fetch->source, false);
    tools_fetch_destroy(fetch);
}

static struct fetch *tools_fetch_create(struct gateway_worker *worker, struct snapshot *snapshot,
                                        const struct config_source *source, struct str owner)
{
    struct fetch *fetch = memory_alloc(sizeof *fetch);
    fetch->owner = memory_copy_str(owner);
    fetch->epoch = catalog_epoch(worker->gateway->catalog, str_from(source->id));
    fetch->worker = worker;
    fetch->snapshot = snapshot_ref(snapshot);
    fetch->source = source;
    fetch->deadline_ms = clock_monotonic_ms() + snapshot->config->times.tools_fetch_timeout_ms;
    headers_init(&fetch->headers, true);
    fetch->walk.cursors = map_create();
    return fetch;
}

static struct sending sending_of(const struct fetch *fetch, struct str body, struct str id)
{
    int64_t left_ms = fetch->deadline_ms - clock_monotonic_ms();
    return (struct sending){
        .source = fetch->source,
        .snapshot = fetch->snapshot,
        .headers = &fetch->headers,
        .body = body,
        .id = id,
        .silence_ms = left_ms > 0 ? left_ms : 1,
        .total_ms = left_ms > 0 ? left_ms : 1,
        .most_bytes = (size_t)fetch->snapshot->config->limits.result_bytes,
    };
}

/* `params` are its members, without braces, or empty. */
static void fetch_ask(struct fetch *fetch, const char *method, struct str params,
                      const struct exchange_events *events)
{
    struct buffer body = {0}, id = {0};
    if (fetch->is_modern) {
        modern_request_set_headers(&fetch->headers, method);
        modern_request_write(&body, &id, method, params);
    } else {
        OWNED_BUFFER(object);
        if (params.length > 0)
            buffer_append_format(&object, "{%.*s}", STR_ARGS(params));
        exchange_write_request(&body, &id, method, buffer_str(&object));
    }
    struct sending sending = sending_of(fetch, buffer_str(&body), buffer_str(&id));
    exchange_send(fetch->worker, &sending, events, fetch);
    buffer_finish(&body);
    buffer_finish(&id);
}

static void try_again_later(struct gateway_worker *worker)
{
    if (!loop_timer_is_running(&worker->fetch_timer))
        loop_timer_start(&worker->fetch_timer, RETRY_MS);
}

/* Ends the gateway's own session at the server. */
static void end(struct fetch *fetch, bool complete)
{
    struct catalog *catalog = fetch->worker->gateway->catalog;
    if (fetch->is_own)
        catalog_end_fetch(catalog, fetch->source, complete);
    if (fetch->own_session && *fetch->owner)
        service_session_end(fetch->worker, fetch->snapshot, fetch->source, &fetch->headers);
    else if (fetch->own_session)
        parked_sessions_end(fetch->worker, fetch->snapshot, fetch->source, &fetch->headers);
    tools_fetch_destroy(fetch);
}

/* ---- pages ---- */

static void fetch_page(struct fetch *fetch);

static void fetch_in_own_session(struct fetch *fetch);
static void fetch_with_own_session(struct fetch *fetch);

/* The credentials may be good, although their session has gone. */
static bool reopens(struct fetch *fetch, const struct exchange_reply *reply)
{
    if (fetch->walk.pages > 0 || fetch->is_modern)
        return false;
    if (fetch->was_parked && reply->status > 0) {
        headers_finish(&fetch->headers);
        fetch->was_parked = fetch->own_session = false;
        fetch_with_own_session(fetch);
        return true;
    }
    if (!fetch->done || fetch->own_session ||
        !exchange_reply_forgets_session(reply, &fetch->headers))
        return false;
    fetch_in_own_session(fetch);
    return true;
}

/* A server without tools is not asked again. */
static void catalogue_give_up(struct fetch *fetch, const struct exchange_reply *reply)
{
    log_warn("Upstream's tools could not be fetched", LOG_TEXT("source", fetch->source->id),
             LOG_NUMBER("status", reply->status));
    if (fetch->is_own && reply->message.length == 0)
        try_again_later(fetch->worker);
    end(fetch, false);
}

static void catalogue_on_page(void *context, const struct exchange_reply *reply)
{
    struct fetch *fetch = context;
    const struct catalog_reader reader = {fetch->snapshot, fetch->source, str_from(fetch->owner),
                                          fetch->epoch};
    switch (page_walk_read(&fetch->walk, fetch->worker->gateway->catalog, &reader,
                           json_member(reply->message, "result"))) {
    case PAGE_NEXT:
        fetch_page(fetch);
        break;
    case PAGE_LAST:
        end(fetch, true);
        break;
    case PAGE_ABSENT:
        if (reopens(fetch, reply))
            break;
        if (page_walk_repeats(&fetch->walk, reply))
            fetch_page(fetch);
        else
            catalogue_give_up(fetch, reply);
        break;
    }
}

static void fetch_page(struct fetch *fetch)
{
    static const struct exchange_events events = {.reply = catalogue_on_page, .dropped = drop};
    struct str cursor = buffer_str(&fetch->walk.cursor);
    OWNED_BUFFER(params);
    if (cursor.length > 0)
        buffer_append_format(&params, "\"cursor\":%.*s", STR_ARGS(cursor));
    fetch_ask(fetch, "tools/list", buffer_str(&params), &events);
}

/* ---- the gateway's own session ---- */

static void catalogue_open_session(struct fetch *fetch, const struct exchange_reply *reply)
{
    service_session_opened(&fetch->headers, reply);
    fetch->own_session = true;
    struct sending sending = sending_of(fetch, service_session_initialized(), STR_EMPTY);
    exchange_notify(fetch->worker, &sending);
}

/* A server that refuses `initialize`, and speaks the modern era, speaks that alone. */
static bool becomes_modern(struct fetch *fetch, const struct exchange_reply *reply)
{
    struct source_eras *eras = fetch->worker->gateway->eras;
    unsigned served;
    source_eras_find(eras, fetch->source, clock_monotonic_ms(), &served);
    bool is_refusal = reply->status >= 400 && reply->status < 500 && reply->status != 401 &&
                      reply->status != 403 && reply->status != 429;
    if (reply->result != UPSTREAM_DONE || !(served & CONFIG_ERA_MODERN) ||
        !(is_refusal || json_member(reply->message, "error").length > 0))
        return false;
    source_eras_note(eras, fetch->source, CONFIG_ERA_LEGACY, false, clock_monotonic_ms());
    fetch->is_modern = true;
    fetch_page(fetch);
    return true;
}

static void catalogue_on_initialized(void *context, const struct exchange_reply *reply)
{
    struct fetch *fetch = context;
    struct catalog *catalog = fetch->worker->gateway->catalog;
    struct str result = json_member(reply->message, "result");
    struct mcp_capabilities upstream;
    if (result.length == 0 && becomes_modern(fetch, reply))
        return;
    if (result.length == 0) {
        bool wants_login = reply->status == 401 || reply->status == 403;
        log_info(wants_login ? "Upstream wants a login: its tools come with the first client"
                             : "Upstream cannot be asked for its tools yet",
                 LOG_TEXT("source", fetch->source->id), LOG_NUMBER("status", reply->status),
                 LOG_TEXT("detail", reply->detail));
        if (fetch->is_own && !wants_login)
            try_again_later(fetch->worker);
        end(fetch, false);
        return;
    }
    source_eras_note(fetch->worker->gateway->eras, fetch->source, CONFIG_ERA_LEGACY, true,
                     clock_monotonic_ms());
    mcp_capabilities_detect(result, &upstream);
    upstream.lacks_sessions = headers_find(reply->headers, "mcp-session-id").length == 0;
    catalog_learn_capabilities(catalog, fetch->snapshot, fetch->source, &upstream);
    catalogue_open_session(fetch, reply);
    fetch_page(fetch);
}

static void initialize(struct fetch *fetch)
{
    static const struct exchange_events events = {.reply = catalogue_on_initialized,
                                                  .dropped = drop};
    struct str object = service_session_params();
    fetch_ask(fetch, "initialize", str_slice(object.bytes + 1, object.length - 2), &events);
}

/* For a modern call, for which a legacy server has no session, and a legacy one whose session is
 * not known, or which the server has forgotten. */
static void fetch_in_own_session(struct fetch *fetch)
{
    headers_set_session(&fetch->headers, NULL);
    fetch->is_modern = false;
    initialize(fetch);
}

static void catalogue_on_discovered(void *context, const struct exchange_reply *reply)
{
    struct fetch *fetch = context;
    era_probe_note(fetch->worker->gateway, fetch->source, reply);
    headers_drop(&fetch->headers, HTTP_NAME_MIRRORS_BODY);
    headers_remove(&fetch->headers, HTTP_NAME_MCP_PROTOCOL_VERSION);
    fetch->is_modern = false;
    initialize(fetch);
}

static void fetch_with_own_session(struct fetch *fetch)
{
    static const struct exchange_events events = {.reply = catalogue_on_discovered,
                                                  .dropped = drop};
    unsigned served;
    if (parked_sessions_take(fetch->worker, fetch->source, &fetch->headers)) {
        fetch->own_session = fetch->was_parked = true;
        fetch->is_modern = false;
        fetch_page(fetch);
        return;
    }
    service_session_begin(&fetch->headers, fetch->source);
    bool is_known = source_eras_find(fetch->worker->gateway->eras, fetch->source,
                                     clock_monotonic_ms(), &served);
    fetch->is_modern = !is_known || served == CONFIG_ERA_MODERN;
    if (!is_known)
        fetch_ask(fetch, "server/discover", STR_EMPTY, &events);
    else if (fetch->is_modern)
        fetch_page(fetch);
    else
        initialize(fetch);
}

void tools_fetch_missing(void *context)
{
    struct gateway_worker *worker = gateway_worker_from(context);
    struct snapshot *snapshot = snapshot_current();
    const struct config *config = snapshot->config;
    for (size_t i = 0; i < config->source_count; i++) {
        const struct config_source *source = &config->sources[i];
        if (!source->enabled)
            continue;
        enum catalog_fetch todo =
            catalog_begin_fetch(worker->gateway->catalog, source, clock_monotonic_ms());
        if (todo == CATALOG_FETCH_LATER)
            try_again_later(worker);
        if (todo != CATALOG_FETCH_NOW)
            continue;
        struct fetch *fetch = tools_fetch_create(worker, snapshot, source, CATALOG_GATEWAY);
        fetch->is_own = true;
        fetch_with_own_session(fetch);
    }
    snapshot_unref(snapshot);
}

void tools_fetch_pages_after(struct call *call, struct str next_cursor)
{
    struct catalog *catalog = call->worker->gateway->catalog;
    if (next_cursor.length == 0 || catalog_is_filled(catalog, str_from(call->source->id)))
        return;
    struct fetch *fetch =
        tools_fetch_create(call->worker, call->snapshot, call->source, str_from(call->owner));
    headers_from_call(&fetch->headers, call);
    fetch->epoch = call->tools_epoch;
    fetch->is_modern = modern_request_has_headers(&fetch->headers);
    fetch->walk.pages = 1;
    buffer_append(&fetch->walk.cursor, next_cursor);
    fetch_page(fetch);
}

bool tools_fetch_is_due(struct call *call)
{
    call_identify(call);
    return catalog_look_is_due(call->worker->gateway->catalog, str_from(call->source->id),
                               str_from(call->owner), clock_monotonic_ms());
}

/* Fetches the list for a call that waits. */
static struct fetch *create_for_call(struct gateway_worker *worker, struct snapshot *snapshot,
                                     const struct config_source *source, struct str owner,
                                     loop_callback done, void *context)
{
    struct fetch *fetch = tools_fetch_create(worker, snapshot, source, owner);
    int64_t latest_ms = clock_monotonic_ms() + CALL_WAITS_MS;
    if (fetch->deadline_ms > latest_ms)
        fetch->deadline_ms = latest_ms;
    fetch->done = done;
    fetch->context = context;
    return fetch;
}

void tools_fetch_for_gateway(struct gateway_worker *worker, struct snapshot *snapshot,
                             const struct config_source *source, loop_callback done, void *context)
{
    fetch_with_own_session(
        create_for_call(worker, snapshot, source, CATALOG_GATEWAY, done, context));
}

void tools_fetch_with(struct gateway_worker *worker, struct snapshot *snapshot,
                      const struct config_source *source, struct str owner,
                      const struct headers *headers, bool lacks_session, loop_callback done,
                      void *context)
{
    struct fetch *fetch = create_for_call(worker, snapshot, source, owner, done, context);
    headers_add_all(&fetch->headers, headers);
    fetch->is_modern = modern_request_has_headers(headers);
    if (lacks_session || (fetch->is_modern && source_eras_bridge_down(worker->gateway->eras, source,
                                                                      clock_monotonic_ms())))
        fetch_in_own_session(fetch);
    else
        fetch_page(fetch);
}

static void catalogue_on_looked(void *context)
{
    struct call *call = call_from(context);
    catalog_looked(call->worker->gateway->catalog, str_from(call->source->id),
                   str_from(call->owner), clock_monotonic_ms());
    if (call->exchange)
        call->next(call);
    call_unref(call);
}

static void fetch_for_call(struct call *call)
{
    struct headers headers;
    headers_init(&headers, false);
    headers_from_call(&headers, call);
    tools_fetch_with(call->worker, call->snapshot, call->source, str_from(call->owner), &headers,
                     false, catalogue_on_looked, call_ref(call));
    headers_finish(&headers);
}

bool tools_fetch_then(struct call *call, call_step next)
{
    if (!tools_fetch_is_due(call))
        return false;
    call->next = next;
    if (call_leases_session(call))
        session_pool_then(call, fetch_for_call);
    else
        fetch_for_call(call);
    return true;
}

void tools_fetch_soon(struct gateway *gateway)
{
    if (gateway->worker_count > 0 && !atomic_load(&gateway->shutting_down))
        loop_post(gateway->workers[0]->loop, tools_fetch_missing, gateway->workers[0]);
}

void tools_fetch_changed(struct gateway *gateway, struct str source)
{
    catalog_set_stale(gateway->catalog, source);
    tools_fetch_soon(gateway);
}

void tools_fetch_stop(struct gateway_worker *worker)
{
    loop_timer_stop(&worker->fetch_timer);
}
