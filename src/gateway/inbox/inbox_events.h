/*
 * What happens to tasks and servers, told to the clients it concerns. Any thread.
 */
#pragma once

#include "internal.h"

/* A task was created or has moved; once for the process. */
void pseudo_tell(struct gateway *gateway, const struct task *task, bool created);
/* Whether the source's server answers has changed; not with CATALOG_UNCHANGED. */
void pseudo_tell_server(struct gateway *gateway, struct str source, enum catalog_change change);
