/* A catalogue in a test: a configuration, lists for owners, and look-ups. */
#pragma once

#include "state/tool_catalog.h"
#include "taskgate/gateway/snapshot.h"

/* One owner gets a page, or a list, of `count` tools. */
struct telling {
    struct str owner;
    bool is_first, is_last;
    uint64_t epoch;
};

#define WHOLE(who)                                                                                 \
    (struct telling)                                                                               \
    {                                                                                              \
        .owner = (who), .is_first = true, .is_last = true, .epoch = 1                              \
    }

/* The snapshot of a configuration with the source "up" and these rules. The caller releases it. */
struct snapshot *test_snapshot_of(const char *rules);
void test_put_tools(struct catalog *catalog, const struct snapshot *snapshot,
                    struct telling telling, const struct mcp_tool *tools, size_t count);
/* A whole list of one tool. */
void test_put_for(struct catalog *catalog, const struct snapshot *snapshot, struct str owner,
                  struct mcp_tool tool);
struct catalog_tool test_look_up(struct catalog *catalog, struct str owner, struct str name);
/* Two definitions of the tool "wipe". */
extern const struct mcp_tool test_mild, test_strict;
