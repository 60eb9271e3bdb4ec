/*
 * Notifications: signed POSTs about tasks to the operators' own endpoints (`notify` in the
 * configuration). They come from the store's outbox: at least once, in order for each task,
 * over restarts. docs/notifications.md is the receiver's side.
 *
 * A notifier belongs to one loop and has an HTTP client of its own; no call ever waits for it.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/loop/loop.h"
#include "taskgate/store/store.h"

struct notifier;

/* Before the loop runs; subscribes to the store. NULL on failure. */
struct notifier *notifier_create(struct loop *loop, struct store *store, struct error *error);
/* Whether there are endpoints, and whether the last attempt at one of them has failed. On the loop.
 */
bool notifier_has_endpoints(const struct notifier *notifier);
bool notifier_is_failing(const struct notifier *notifier);
/* The names of these, as a JSON array: an id, or "notify[2]". On the loop. */
void notifier_write_failing(const struct notifier *notifier, struct buffer *out);
/* Sets the endpoints from now on; takes a reference of its own. Notices for other endpoints are
 * dropped. On the loop, or before it runs. */
void notifier_configure(struct notifier *notifier, struct config *config);
/* After the loop has stopped: drops deliveries under way, so that the store may be closed. The next
 * process delivers them. The notifier stays until the loop has delivered the store's messages. NULL
 * is allowed. */
void notifier_close(struct notifier *notifier);
void notifier_destroy(struct notifier *notifier); /* closed; NULL is allowed */
