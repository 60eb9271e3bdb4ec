/*
 * Tells clients what happens to their tasks and servers. Any thread.
 */
#pragma once

#include "request/call.h"
#include "state/tool_catalog.h"

/* A task was created or has moved; once for the process. */
void inbox_note_task(struct gateway *gateway, const struct task *task, bool created);
/* Whether the source's server answers has changed; not with CATALOG_UNCHANGED. */
void inbox_note_server(struct gateway *gateway, struct str source, enum catalog_change change);
