/*
 * What happens to tasks and servers, told to the clients it concerns. Any thread.
 */
#pragma once

#include "internal.h"

/* A task was created or has moved; once for the process. */
void pseudo_tell(struct gateway *gateway, const struct task *task, bool created);
/* Whether upstream answers has just been seen. In place of catalog_set_reachable(), which it
 * calls. */
void pseudo_tell_reachable(struct gateway *gateway, struct str source, bool reachable);
