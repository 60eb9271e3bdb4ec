/*
 * The gateway's task for each followed task of a server's. A server may speak of its task on
 * another stream of the session, and the message then finds its owner. All workers share it behind
 * a short lock. Any thread.
 */
#pragma once

#include "taskgate/task/task.h"

struct task_aliases;

struct task_aliases *task_aliases_create(void);
void task_aliases_destroy(struct task_aliases *tasks); /* NULL is allowed */
/* `session` is the client_key_of_session() of upstream's session, for two servers may name theirs
 * alike; "" without one, and then nothing is kept. */
void task_aliases_put(struct task_aliases *tasks, const char *session, const char *id,
                      struct task *task);
void task_aliases_remove(struct task_aliases *tasks, const char *session, const char *id);
/* Whether there is any: asked first, it costs nothing. */
bool task_aliases_any(const struct task_aliases *tasks);
/* The task that a message of upstream's is related to, by its _meta or as a status notification,
 * for the caller to unref; NULL when it is none of ours. */
struct task *task_aliases_find(struct task_aliases *tasks, const char *session, struct str message);
