/* Lists of sessions by principal. A principal without sessions is forgotten. */
#include "session_limits.h"

#include <pthread.h>
#include <stdlib.h>

#include "taskgate/core/list.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

struct held_session {
    struct list node;
    char *name;
};

struct holder {
    struct list sessions; /* the one not seen for longest first */
    int64_t count;
    int64_t seen_ms; /* monotonic, in any of them */
};

struct session_holders {
    pthread_mutex_t lock;
    struct map *by_name;
};

struct session_holders *session_holders_create(void)
{
    struct session_holders *holders = memory_alloc(sizeof *holders);
    pthread_mutex_init(&holders->lock, NULL);
    holders->by_name = map_create();
    return holders;
}

/* Its name is the caller's to free. */
static char *drop(struct holder *holder, struct held_session *session)
{
    char *name = session->name;
    list_remove(&session->node);
    holder->count--;
    free(session);
    return name;
}

static void holder_destroy(void *value)
{
    struct holder *holder = value;
    LIST_FOR_EACH_SAFE (node, next, &holder->sessions) {
        free(drop(holder, LIST_ENTRY(node, struct held_session, node)));
    }
    free(holder);
}

void session_holders_destroy(struct session_holders *holders)
{
    if (!holders)
        return;
    map_destroy(holders->by_name, holder_destroy);
    pthread_mutex_destroy(&holders->lock);
    free(holders);
}

static struct held_session *find(const struct holder *holder, struct str name)
{
    LIST_FOR_EACH_SAFE (node, next, &holder->sessions) {
        struct held_session *session = LIST_ENTRY(node, struct held_session, node);
        if (str_equal(str_from(session->name), name))
            return session;
    }
    return NULL;
}

static struct holder *obtain(struct session_holders *holders, struct str name)
{
    struct holder *holder = map_get(holders->by_name, name);
    if (holder)
        return holder;
    holder = memory_alloc(sizeof *holder);
    list_init(&holder->sessions);
    map_put(holders->by_name, name, holder);
    return holder;
}

static void see(struct holder *holder, struct str name)
{
    struct held_session *session = find(holder, name);
    if (session) {
        list_remove(&session->node);
    } else {
        session = memory_alloc(sizeof *session);
        session->name = memory_copy_str(name);
        holder->count++;
    }
    list_append(&holder->sessions, &session->node);
}

char *session_holders_see(struct session_holders *holders, struct str holder_name,
                          struct str session, int64_t most, int64_t monotonic_ms)
{
    char *oldest = NULL;
    pthread_mutex_lock(&holders->lock);
    struct holder *holder = obtain(holders, holder_name);
    see(holder, session);
    holder->seen_ms = monotonic_ms;
    if (most > 0 && holder->count > most)
        oldest = drop(holder, LIST_ENTRY(holder->sessions.next, struct held_session, node));
    pthread_mutex_unlock(&holders->lock);
    return oldest;
}

int64_t session_holders_ago_ms(struct session_holders *holders, struct str holder_name,
                               int64_t monotonic_ms)
{
    pthread_mutex_lock(&holders->lock);
    const struct holder *holder = map_get(holders->by_name, holder_name);
    int64_t ago_ms = holder ? monotonic_ms - holder->seen_ms : INT64_MAX;
    pthread_mutex_unlock(&holders->lock);
    return ago_ms;
}

void session_holders_leave(struct session_holders *holders, struct str holder_name,
                           struct str session)
{
    pthread_mutex_lock(&holders->lock);
    struct holder *holder = map_get(holders->by_name, holder_name);
    struct held_session *found = holder ? find(holder, session) : NULL;
    if (found)
        free(drop(holder, found));
    if (holder && holder->count == 0)
        holder_destroy(map_remove(holders->by_name, holder_name));
    pthread_mutex_unlock(&holders->lock);
}
