/*
 * Whether the server of a source answers. Rooms that see it note it here, and one observer is told
 * of each change. Any thread.
 */
#pragma once

#include "tool_catalog.h"

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
