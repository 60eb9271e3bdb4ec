/* The entry of a source, for the files of the catalogue. */
#pragma once

#include <pthread.h>

#include "server_status.h"
#include "taskgate/core/list.h"
#include "taskgate/core/map.h"
#include "tool_catalog.h"
#include "tool_lists.h"

#define LOOKS 64

/* When an owner's call last fetched the list, by the owner's hash. Each owner fetches for itself,
 * because a server may tell a stranger nothing. Past the bound the oldest entry is forgotten, and
 * its owner fetches again. */
struct look {
    uint64_t owner;
    int64_t at_ms; /* monotonic; 0: never */
};

/* The list of one owner. */
struct told {
    struct list node; /* in catalog.recent; of the gateway's own in none */
    struct source_entry *source;
    struct tool_list *list;        /* NULL: nothing yet */
    struct catalog_page *building; /* the pages so far of a list that goes on; NULL */
    uint64_t epoch;                /* of the last whole list; 0: there was none */
    size_t owner_length;
    char owner[];
};

struct source_entry {
    char *url;         /* of the server that all this is of; NULL when the configuration lacks it */
    struct map *told;  /* owner -> struct told, but for the gateway's own */
    struct told *own;  /* the gateway's own; NULL until it was told */
    struct map *lists; /* the different ones of them all */
    struct map *views; /* name -> struct tool_view, of the tools of them all */
    struct tool_list *whole; /* the last whole list of anybody, for what is counted; or NULL */
    uint64_t epoch;          /* catalog_epoch() */
    bool filled;
    bool stale;                            /* filled, and upstream may have other tools now */
    bool fetching;                         /* the gateway itself fetches it now */
    int64_t fetched_ms;                    /* monotonic: when that last began */
    int64_t fault_ms[CATALOG_FAULT_COUNT]; /* monotonic: when it was last complained of; 0: never */
    int64_t no_stream_ms; /* monotonic: when GET was last answered with 405; 0: never */
    struct look looks[LOOKS];
    unsigned next_look;
    bool has_capabilities, has_seen_tasks;
    struct mcp_capabilities capabilities;
    bool reachable; /* when last tried */
    bool tried;
    bool was_reachable;   /* at some time */
    int64_t connected_ms; /* wall clock: since when it is reachable */
    bool is_said_away;    /* the log's last word on it */
    int64_t away_said_ms; /* monotonic; 0: never */
};

struct catalog {
    pthread_mutex_t lock;
    struct map *sources;
    struct known_tools *tools;
    struct server_observer observer;
    struct definition_watch *watch; /* or NULL */
    struct list recent;             /* struct told.node, the longest unseen first */
    size_t told_count, told_bytes;
    long counts[3]; /* visible tools by annotation */
};

/* All of these under the lock. */

/* ---- catalog_sources.c ---- */
/* An entry of which nothing is known yet. */
void catalog_source_init(struct source_entry *entry, uint64_t epoch);
struct source_entry *catalog_source(struct catalog *catalog, struct str source);
/* NULL for an answer of the source's server before a reload. */
struct source_entry *catalog_present_source(struct catalog *catalog,
                                            const struct config_source *source);
/* ---- tool_catalog.c ---- */
/* The server may have other tools now. */
void catalog_source_changed(struct source_entry *entry);

/* ---- tools_by_owner.c: what owners were told ---- */
/* NULL when that was nothing. */
struct told *told_find(const struct source_entry *entry, struct str owner);
/* Forgets the lists of all owners at the source. */
void told_forget_all(struct catalog *catalog, struct source_entry *entry);

/* ---- tools_over_owners.c: all that is known of each tool of a source, of all owners ---- */
/* The first owner has got this list, or the last owner has lost it. */
void views_add_list(struct source_entry *entry, const struct tool_list *list);
void views_remove_list(struct catalog *catalog, struct source_entry *entry,
                       const struct tool_list *list);
/* The tool for an owner that got no list; UNKNOWN when nobody got the tool. */
void views_find(const struct source_entry *entry, struct str name, struct catalog_tool *tool);
/* Logs and counts the announcements of the list's tools, if they are new. */
void views_announce(struct catalog *catalog, const struct snapshot *snapshot,
                    const struct config_source *source, struct source_entry *entry,
                    const struct tool_list *list);
void views_announce_all(struct catalog *catalog, const struct snapshot *snapshot,
                        const struct config_source *source, struct source_entry *entry);
/* For the gauge: the tool is there; of a whole list its tools alone are. */
void views_see(struct catalog *catalog, struct source_entry *entry, const struct known_tool *tool);
void views_see_whole(struct catalog *catalog, struct source_entry *entry,
                     const struct tool_list *list);
void views_publish_counts(const struct catalog *catalog);
