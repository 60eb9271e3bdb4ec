/* What the catalogue keeps of a source, for the files that keep it. */
#pragma once

#include <pthread.h>

#include "catalog.h"
#include "taskgate/core/map.h"

#define LOOKS 64

/* When a call of whom last had the list fetched, by the owner's hash. One's look is none of
 * another's: to a stranger upstream may say nothing. Where there are too many the oldest is
 * forgotten, and its owner looks again. */
struct look {
    uint64_t owner;
    int64_t at_ms; /* monotonic; 0: never */
};

struct source_entry {
    char *url; /* of the server that all this is of; NULL when the configuration lacks it */
    struct map *tools;
    bool filled;
    bool stale;         /* filled, and upstream may have other tools now */
    bool fetching;      /* the gateway itself is at it */
    int64_t fetched_ms; /* monotonic: when that last began */
    uint64_t seen;      /* how many tools lists have had */
    uint64_t reader;    /* the hash of who began to read a list from its first page, … */
    uint64_t read_from; /* … and `seen` then */
    struct look looks[LOOKS];
    unsigned next_look;
    bool has_capabilities;
    struct mcp_capabilities capabilities;
    bool reachable; /* when last tried */
    bool tried;
    bool was_reachable;   /* at some time */
    int64_t connected_ms; /* wall clock: since when it is reachable */
};

struct catalog {
    pthread_mutex_t lock;
    struct map *sources;
    long counts[3]; /* visible tools by annotation */
};

/* Both under the lock. */
struct source_entry *catalog_source(struct catalog *catalog, struct str source);
/* NULL for what another server has answered, which the source had before a reload. */
struct source_entry *catalog_present_source(struct catalog *catalog,
                                            const struct config_source *source);
