/* The pages of a list, one after the other. */
#include "page_walk.h"

#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/json/text.h"

void page_walk_init(struct page_walk *walk, struct str cursor)
{
    *walk = (struct page_walk){.cursors = map_create()};
    buffer_append(&walk->cursor, cursor);
}

void page_walk_finish(struct page_walk *walk)
{
    map_destroy(walk->cursors, NULL);
    buffer_finish(&walk->cursor);
}

bool page_walk_repeats(struct page_walk *walk, const struct rpc_call_reply *reply)
{
    int status = reply->status;
    struct str code = json_member(json_member(reply->message, "error"), "code");
    bool repeats = !walk->is_again && reply->result != UPSTREAM_SILENT && status != 401 &&
                   status != 403 && status != 404 && !str_equal(code, STR("-32601"));
    walk->is_again = true;
    return repeats;
}

/* A cursor that comes again leads to the same pages for ever. */
static bool is_repeated(struct page_walk *walk, struct str cursor)
{
    char digest[DIGEST_HEX_BYTES];
    digest_sha256_hex(cursor, digest);
    return map_put(walk->cursors, str_from(digest), walk) != NULL;
}

bool page_walk_goes_on(struct page_walk *walk, struct catalog *catalog,
                       const struct snapshot *snapshot, const struct config_source *source,
                       struct str next)
{
    const char *fault = NULL;
    walk->pages++;
    walk->is_again = false;
    if (next.length == 0)
        return false;
    if (is_repeated(walk, next))
        fault = "Upstream's tools come with a cursor that came before: the list ends there";
    else if (walk->pages >= snapshot->config->times.tools_max_pages)
        fault = "Upstream's tools have more pages than THOUGHTGATE_TOOLS_MAX_PAGES allows";
    if (fault && catalog_fault_is_due(catalog, source, CATALOG_FAULT_PAGES, clock_monotonic_ms()))
        log_warn(fault, LOG_TEXT("source", source->id));
    buffer_clear(&walk->cursor);
    buffer_append(&walk->cursor, next);
    return !fault;
}
