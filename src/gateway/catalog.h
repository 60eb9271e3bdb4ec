/*
 * The catalogue: what is known of each source's upstream. Its tools (own annotation, digest of
 * the definition, what they are announced as), its last capabilities, and whether it answers
 * (seed 002 F-002, F-007). Shared by all workers behind one short lock. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/str.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/mcp/capabilities.h"
#include "taskgate/mcp/lists.h"
#include "taskgate/policy/policy.h"

struct catalog;

/* A copy of what is known of one tool. */
struct catalog_tool {
    bool known;
    bool has_own;
    enum policy_annotation own;
    bool has_output_schema; /* results must have structured content */
    struct policy_hints hints;
    char digest[DIGEST_HEX_BYTES]; /* of the definition, canonical; "" when unknown */
};

struct catalog *catalog_create(void);
void catalog_destroy(struct catalog *catalog); /* NULL is allowed */

void catalog_find_tool(struct catalog *catalog, struct str source, struct str name,
                       struct catalog_tool *tool);
/* Remembers one tool of a list that upstream has just given, and what it is announced as;
 * logs the seed's line when that is new or has changed, and the seed's warning for a tool
 * that was not there when the catalogue was first filled. */
void catalog_put_tool(struct catalog *catalog, const struct snapshot *snapshot,
                      const struct config_source *source, const struct mcp_tool *tool);
/* A list from its first page to its last, with tools put in between: what nobody has put meanwhile
 * is upstream's no longer, and not counted until it is put again. Of several who read at once the
 * one who began last is listened to. "" is the gateway itself. */
void catalog_begin_list(struct catalog *catalog, const struct config_source *source,
                        struct str reader);
void catalog_end_list(struct catalog *catalog, const struct config_source *source,
                      struct str reader);
/* The whole list of a source has been seen: tools that come later are discoveries. */
void catalog_filled(struct catalog *catalog, const struct config_source *source);
bool catalog_is_filled(struct catalog *catalog, struct str source);
/* What the gateway is to do about the source's list. It may be known; or is not, or upstream may
 * have another by now, and then one alone fetches it until catalog_end_fetch(). */
enum catalog_fetch { CATALOG_FETCH_NONE, CATALOG_FETCH_NOW, CATALOG_FETCH_LATER };
enum catalog_fetch catalog_begin_fetch(struct catalog *catalog, const struct config_source *source,
                                       int64_t now_ms);
void catalog_end_fetch(struct catalog *catalog, const struct config_source *source, bool complete);
/* Upstream may have other tools now. */
void catalog_set_stale(struct catalog *catalog, struct str source);
/* Whether a call of a tool that is not known may have the list fetched for its owner: not again at
 * once, for names can be made up. Times are monotonic. */
bool catalog_look_is_due(struct catalog *catalog, struct str source, struct str owner,
                         int64_t now_ms);
void catalog_looked(struct catalog *catalog, struct str source, struct str owner, int64_t now_ms);
/* The configuration in force: of a source that it lacks, or whose server is another one now,
 * nothing is known any more, and what the other server still answers is not taken. */
void catalog_reconfigure(struct catalog *catalog, const struct config *config);
/* Announces every known tool anew under `snapshot` (a reload, or new capabilities). */
void catalog_announce_all(struct catalog *catalog, const struct snapshot *snapshot);

/* Last detected capabilities of the source's upstream; false when never seen. */
bool catalog_capabilities(struct catalog *catalog, struct str source,
                          struct mcp_capabilities *capabilities);
/* True when they differ from the last ones (a reconnect with other capabilities). */
bool catalog_set_capabilities(struct catalog *catalog, const struct config_source *source,
                              const struct mcp_capabilities *capabilities);

/* How that changed what was known. */
enum catalog_change {
    CATALOG_UNCHANGED,
    CATALOG_CONNECTED,
    CATALOG_DISCONNECTED,
    CATALOG_RECONNECTED
};
enum catalog_change catalog_set_reachable(struct catalog *catalog, struct str source,
                                          bool reachable);
/* When last tried, true before; and since when, wall clock, 0 when that is not known. */
bool catalog_is_reachable(struct catalog *catalog, struct str source, int64_t *since_ms);
/* Whether every source was reachable when last tried; true before the first attempt is known
 * to have failed. */
bool catalog_all_reachable(struct catalog *catalog);
