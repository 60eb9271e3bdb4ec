/*
 * The changes of tasks, as the store commits them: numbered, the latest kept, counted for the
 * metrics, and sent to every open event stream.
 */
#pragma once

#include "internal.h"
#include "taskgate/core/list.h"

/* One change. */
struct feed_event {
    int64_t number;
    struct task *task; /* one reference */
};

struct feed *feed_create(struct admin *admin);
void feed_destroy(struct feed *feed); /* NULL is allowed */
/* The next change after `number` that is still kept; NULL when there is none. */
const struct feed_event *feed_after(const struct feed *feed, int64_t number);
int64_t feed_last_number(const struct feed *feed);
/* Whether all changes after `number` that are worth telling are kept here. Otherwise the store has
 * them: the number is of another replica, or of a time before this one began. */
bool feed_reaches(const struct feed *feed, int64_t number);
/* A listener is called for each new change. It may leave during the call. */
struct feed_listener {
    struct list node;
    void (*changed)(struct feed_listener *listener);
};
void feed_listen(struct feed *feed, struct feed_listener *listener);
