/*
 * Upstream's own tasks that executions follow: which task of ours each is, so that what upstream
 * says of one on another stream of the session finds its way. Shared behind a short lock. Any
 * thread.
 */
#pragma once

#include "internal.h"

struct upstream_tasks;

struct upstream_tasks *upstream_tasks_create(void);
void upstream_tasks_destroy(struct upstream_tasks *tasks); /* NULL is allowed */
/* `session` is the client_key_of_session() of upstream's session, for two servers may name theirs
 * alike; "" without one, and then nothing is kept. */
void upstream_tasks_put(struct upstream_tasks *tasks, const char *session, const char *id,
                        struct task *task);
void upstream_tasks_remove(struct upstream_tasks *tasks, const char *session, const char *id);
/* Whether there is any: asked first, it costs nothing. */
bool upstream_tasks_any(const struct upstream_tasks *tasks);
/* The task that a message of upstream's is related to, by its _meta or as a status notification,
 * for the caller to unref; NULL when it is none of ours. */
struct task *upstream_tasks_find(struct upstream_tasks *tasks, const char *session,
                                 struct str message);
