/*
 * The catalogue: what is known of each source's server. A tool's definition is kept by owner, for a
 * server may say other things to other users; beside it are the server's last capabilities and
 * whether it answers (behaviour 5.6). Shared by all workers behind one short lock. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/mcp/capabilities.h"
#include "taskgate/mcp/lists.h"
#include "taskgate/policy/policy.h"
#include "tool_lists.h"

struct catalog;

/* The owner of the list that the gateway's own session got. Calls of the control plane are judged
 * by that list. */
#define CATALOG_GATEWAY STR_EMPTY

struct catalog *catalog_create(void);
/* Before there are lists: what is new in them is pinned (definition_watch.h). */
struct definition_watch;
void catalog_set_watch(struct catalog *catalog, struct definition_watch *watch);
/* Gives the source's tools to it once more. */
void catalog_pin_again(struct catalog *catalog, struct str source);
void catalog_destroy(struct catalog *catalog); /* NULL is allowed */

/* Allocates nothing. */
void catalog_find_tool(struct catalog *catalog, struct str source, struct str owner,
                       struct str name, struct catalog_tool *tool);

/* A tool, and the owner of the list that is asked for it. */
struct catalog_asked {
    struct str source, owner, name;
};
/* Appends what the owner's own list says of the tool to people, as members of an object:
 * `,"toolDescription":"…"`, cut at CATALOG_DESCRIPTION_BYTES, and `,"toolAnnotations":{…}` in
 * canonical form, left out when it is longer. Nothing when the list has another definition of the
 * tool than that of `digest`. Returns whether the owner's list has the tool. */
bool catalog_describe_tool(struct catalog *catalog, const struct catalog_asked *asked,
                           const char *digest, struct buffer *out);
/* The inputSchema of the tool's definition of this digest, as its owner or the gateway's own
 * session was told of it. The caller frees it; NULL when it is not known. */
char *catalog_copy_input_schema(struct catalog *catalog, struct str source, struct str owner,
                                struct str name, const char *digest);

/* The arguments of a tool that headers repeat, as its owner was told of the tool. NULL when the
 * owner was not told of it, or it has none. A result other than NULL is held until it is
 * released. */
struct known_tool;
struct known_tool *catalog_hold_parameters(struct catalog *catalog, struct str source,
                                           struct str owner, struct str name);
const struct parameter_headers *catalog_parameters(const struct known_tool *held);
void catalog_release_parameters(struct catalog *catalog, struct known_tool *held);

/* One page of a list that a server has just given. */
struct catalog_page;
struct catalog_page *catalog_page_create(struct catalog *catalog);
void catalog_page_destroy(struct catalog_page *page); /* NULL is allowed */
/* A mcp_tool_judge: `page` is a struct catalog_page. */
bool catalog_page_add(void *page, const struct mcp_tool *tool, enum policy_annotation *announce);

/* Its memory with its definitions, nearly. */
size_t catalog_page_bytes(const struct catalog_page *page);

/* The owner of the list that a page is of. */
struct catalog_reader {
    const struct snapshot *snapshot;
    const struct config_source *source; /* of the snapshot */
    struct str owner;
    uint64_t epoch; /* catalog_epoch() before the server was asked */
};
/* Remembers the page, which stays the caller's and may be shown again, also for other owners. Of a
 * first page that goes on the rest is waited for: with the last one the owner's list is whole, and
 * what is not in it is gone: known, for the server may still run it, but not counted. Logs the
 * fixed line for a tool that is new to the source or is announced as something else now, and the
 * fixed warning for one that came after the source's first whole list. Owners beyond
 * `limits.sessions` make room, the longest unseen first. */
void catalog_put_page(struct catalog *catalog, const struct catalog_reader *reader,
                      const struct catalog_page *page, bool is_first, bool is_last);
/* Counts how often the server may have got other tools. */
uint64_t catalog_epoch(struct catalog *catalog, struct str source);
/* Of all catalogues together: as long as it is the same, each finds what it has found. Never 0. */
uint64_t catalog_version(void);
/* An owner's whole list of the source has been seen: tools that come later are discoveries. */
bool catalog_is_filled(struct catalog *catalog, struct str source);
/* The memory that the lists of all owners take, nearly. */
size_t catalog_bytes(struct catalog *catalog);
/* Tells whether to fetch the source's list: it may be known, unknown, or out of date. After
 * CATALOG_FETCH_NOW no other caller fetches it before catalog_end_fetch(). */
enum catalog_fetch { CATALOG_FETCH_NONE, CATALOG_FETCH_NOW, CATALOG_FETCH_LATER };
enum catalog_fetch catalog_begin_fetch(struct catalog *catalog, const struct config_source *source,
                                       int64_t now_ms);
void catalog_end_fetch(struct catalog *catalog, const struct config_source *source, bool complete);
/* Whether such a fault of the source is to be logged: once an hour at most. */
enum catalog_fault { CATALOG_FAULT_PAGES, CATALOG_FAULT_SESSIONS };
#define CATALOG_FAULT_COUNT 2
bool catalog_fault_is_due(struct catalog *catalog, const struct config_source *source,
                          enum catalog_fault fault, int64_t now_ms);
/* A GET for the notification stream of a session was answered with this status. */
void catalog_note_stream(struct catalog *catalog, const struct config_source *source, int status,
                         int64_t now_ms);
/* Whether the server said within a minute that it has no such stream (405). */
bool catalog_lacks_stream(struct catalog *catalog, const struct config_source *source,
                          int64_t now_ms);
/* The server may have other tools now, so the lists of all owners are out of date. */
void catalog_set_stale(struct catalog *catalog, struct str source);
/* Whether a call of an unknown tool may fetch the list for its owner. Not twice in a short time,
 * because clients can make names up. Times are monotonic. */
bool catalog_look_is_due(struct catalog *catalog, struct str source, struct str owner,
                         int64_t now_ms);
void catalog_looked(struct catalog *catalog, struct str source, struct str owner, int64_t now_ms);
/* The configuration in force. A source that it lacks, or whose server has changed, is forgotten.
 * Later answers of the earlier server are not taken. */
void catalog_reconfigure(struct catalog *catalog, const struct config *config);
/* Announces every known tool anew under `snapshot` (a reload, or new capabilities). */
void catalog_announce_all(struct catalog *catalog, const struct snapshot *snapshot);

/* Last detected capabilities of the source's upstream; false when never seen. */
bool catalog_capabilities(struct catalog *catalog, struct str source,
                          struct mcp_capabilities *capabilities);
/* Whether the source's server has ever said that it runs calls as tasks. */
bool catalog_has_seen_tasks(struct catalog *catalog, struct str source);
/* True when they differ from the last ones (a reconnect with other capabilities). */
bool catalog_set_capabilities(struct catalog *catalog, const struct config_source *source,
                              const struct mcp_capabilities *capabilities);
/* Logs what a server has just announced, and sets it. Tools are announced anew where it differs. */
void catalog_learn_capabilities(struct catalog *catalog, const struct snapshot *snapshot,
                                const struct config_source *source,
                                const struct mcp_capabilities *capabilities);

/* How a note changed what was known. */
enum catalog_change {
    CATALOG_UNCHANGED,
    CATALOG_CONNECTED,
    CATALOG_DISCONNECTED,
    CATALOG_RECONNECTED
};
/* Whether the server was reachable at the last try, true before the first; and since when, wall
 * clock, 0 when that is not known. */
bool catalog_is_reachable(struct catalog *catalog, struct str source, int64_t *since_ms);
/* Whether every source was reachable at its last try; true before the first try has failed. */
bool catalog_all_reachable(struct catalog *catalog);

/* ---- whether servers answer: rooms that see it note it, and one observer learns of changes ----
 */

/* `changed` runs on the thread that noted it, without a lock; never with CATALOG_UNCHANGED. */
struct server_observer {
    void (*changed)(void *context, struct str source, enum catalog_change change);
    void *context;
};

/* Set once, before the first note. */
void server_status_observe(struct catalog *catalog, const struct server_observer *observer);
/* Sets the gauge of every source of the configuration that was tried. */
void server_status_show(struct catalog *catalog);
/* A room has just seen whether the server answers. */
void server_status_note(struct catalog *catalog, struct str source, bool reachable);
