/*
 * Events about a client's tasks and servers. Any thread.
 */
#pragma once

#include "call/call.h"
#include "state/tool_catalog.h"

/* A task was created or has moved; once for the process. */
void inbox_note_task(struct gateway *gateway, const struct task *task, bool created);
/* The same of a task that has failed with the replica where its client was before: the client has
 * an inbox here from now on, and is told unless it was told already. */
void inbox_note_lost_task(struct gateway *gateway, const struct task *task);
/* The source's server answers now, or no longer; not with CATALOG_UNCHANGED. */
void inbox_note_server(struct gateway *gateway, struct str source, enum catalog_change change);
