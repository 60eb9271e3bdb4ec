/* A timer, and a question to the store for each session that has something open. */
#include "session_watch.h"

#include <stdio.h>
#include <stdlib.h>

#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/replicas.h"

#include "events.h"
#include "internal.h"
#include "results.h"

#define LOOK_EVERY_MS 5000

struct session_watch {
    uint32_t magic; /* SESSION_WATCH_MAGIC while it lives */
    struct admin *admin;
    struct loop_timer timer;
};
#define SESSION_WATCH_MAGIC 0x5e55a3c7

static struct session_watch *session_watch_from(void *context)
{
    return MAGIC_CAST(struct session_watch, SESSION_WATCH_MAGIC, context);
}

/* One question. The admin lives until the store has answered all. */
struct look {
    struct admin *admin;
    char sha256[65]; /* of the cookie */
};

static void session_watch_on_row(void *context, const struct store_reply *reply)
{
    struct look *look = context;
    if (reply->status == STORE_NOT_FOUND && !look->admin->closed) {
        events_end_of(look->admin, look->sha256);
        results_end_of(look->admin, look->sha256);
    }
    free(look);
}

static void session_watch_look_up(struct admin *admin, const char *sha256)
{
    struct look *look = memory_alloc(sizeof *look);
    look->admin = admin;
    snprintf(look->sha256, sizeof look->sha256, "%s", sha256);
    store_sign_in_get(admin->store, str_from(look->sha256),
                      (struct store_call){admin->loop, session_watch_on_row, look});
}

static void session_watch_look_at_all(void *context)
{
    struct session_watch *watch = session_watch_from(context);
    struct admin *admin = watch->admin;
    if (!admin->closed) {
        events_visit_sessions(admin, session_watch_look_up);
        results_visit_sessions(admin, session_watch_look_up);
    }
    loop_timer_start(&watch->timer, LOOK_EVERY_MS);
}

struct session_watch *session_watch_create(struct admin *admin)
{
    struct session_watch *watch = memory_alloc(sizeof *watch);
    MAGIC_SET(watch, SESSION_WATCH_MAGIC);
    watch->admin = admin;
    loop_timer_init(&watch->timer, admin->loop, session_watch_look_at_all, watch);
    if (store_is_shared(admin->store))
        loop_timer_start(&watch->timer, LOOK_EVERY_MS);
    return watch;
}

void session_watch_destroy(struct session_watch *watch)
{
    if (!watch)
        return;
    loop_timer_stop(&watch->timer);
    MAGIC_CLEAR(watch);
    free(watch);
}
