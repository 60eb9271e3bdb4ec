/*
 * A walk over the pages of a server's list, by its cursors. A page that does not come is asked for
 * once more; a cursor that came before ends the walk, and what was read stays. Belongs to the
 * walk's owner, on one loop.
 */
#pragma once

#include "rpc_call.h"
#include "state/tool_catalog.h"

struct page_walk {
    struct map *cursors;  /* the digests of those that were followed */
    struct buffer cursor; /* of the page that was asked for last, as JSON; empty: of the first */
    int64_t pages;        /* that have come */
    bool is_again;        /* that page was asked for twice */
};

void page_walk_init(struct page_walk *walk, struct str cursor);
void page_walk_finish(struct page_walk *walk);
/* The page did not come. true: it is to be asked for again. Never where the server refused the
 * credentials or the session, has no such list, or kept silent for the time that a page has. */
bool page_walk_repeats(struct page_walk *walk, const struct rpc_call_reply *reply);
/* The page has come, with the cursor of the next one (as JSON, or empty). true: that one is
 * `walk->cursor`. The pages so far count as the whole list if more follow than are read. */
bool page_walk_goes_on(struct page_walk *walk, struct catalog *catalog,
                       const struct snapshot *snapshot, const struct config_source *source,
                       struct str next);
