/* Accepted pairs, by source, session and token. */
#include "accepted_pairs.h"

#include <pthread.h>
#include <stdlib.h>

#include "seen_table.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/list.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"

/*
 * The sessions of each principal, the longest unseen first, so that one principal cannot use up all
 * sessions that are remembered (`limits.sessions_per_principal`). All workers share it behind a
 * short lock. Any thread.
 */

struct session_holders;

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

static struct session_holders *session_holders_create(void)
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
    ASSERT_NUMBERS(holder->count, >, 0);
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

static void session_holders_destroy(struct session_holders *holders)
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

static struct holder *accepted_pairs_obtain(struct session_holders *holders, struct str name)
{
    struct holder *holder = map_get(holders->by_name, name);
    if (holder)
        return holder;
    holder = memory_alloc(sizeof *holder);
    list_init(&holder->sessions);
    map_put(holders->by_name, name, holder);
    return holder;
}

static void accepted_pairs_see(struct holder *holder, struct str name)
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

/* `holder` was seen in `session` now (`monotonic_ms`). If it has more than `most` sessions then (0:
 * no limit), it loses the longest unseen one: returns that name, which the caller frees. Else NULL.
 */
static char *session_holders_see(struct session_holders *holders, struct str holder_name,
                                 struct str session, int64_t most, int64_t monotonic_ms)
{
    char *oldest = NULL;
    pthread_mutex_lock(&holders->lock);
    struct holder *holder = accepted_pairs_obtain(holders, holder_name);
    accepted_pairs_see(holder, session);
    holder->seen_ms = monotonic_ms;
    if (most > 0 && holder->count > most)
        oldest = drop(holder, LIST_ENTRY(holder->sessions.next, struct held_session, node));
    pthread_mutex_unlock(&holders->lock);
    return oldest;
}

/* How long ago it was last seen in any session; INT64_MAX: it has none. */
static int64_t session_holders_ago_ms(struct session_holders *holders, struct str holder_name,
                                      int64_t monotonic_ms)
{
    pthread_mutex_lock(&holders->lock);
    const struct holder *holder = map_get(holders->by_name, holder_name);
    int64_t ago_ms = holder ? monotonic_ms - holder->seen_ms : INT64_MAX;
    pthread_mutex_unlock(&holders->lock);
    return ago_ms;
}

/* The holder has lost the session. */
static void session_holders_leave(struct session_holders *holders, struct str holder_name,
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

#define KEY_BYTES 256
/* A pair accepted again within this time is no news: the store need not hear of it. */
#define NEWS_MS 60000

struct entry {
    struct seen_entry seen; /* first */
    bool is_accepted;       /* once, at least */
    int64_t accepted_ms;    /* monotonic */
};

struct accepted_pairs {
    struct seen_table *table;
    struct session_holders *holders; /* its lock comes after a shard's */
};

static void write_holder(struct buffer *holder, struct str source, struct str token)
{
    buffer_append(holder, source);
    buffer_append_char(holder, '/');
    buffer_append(holder, token);
}

/* "<source>/<session>/<token>" is a session of "<source>/<token>"; without one of the two it is
 * nobody's. */
static bool read_holder(const char *key, struct buffer *holder, struct str *session)
{
    struct str source, rest, token;
    str_cut(str_from(key), '/', &source, &rest);
    str_cut(rest, '/', session, &token);
    if (session->length == 0 || token.length == 0)
        return false;
    write_holder(holder, source, token);
    return true;
}

static void on_forgotten(void *context, const struct seen_entry *entry)
{
    struct session_holders *holders = context;
    OWNED_BUFFER(holder);
    struct str session;
    if (read_holder(entry->key, &holder, &session))
        session_holders_leave(holders, buffer_str(&holder), session);
}

struct accepted_pairs *accepted_pairs_create(void)
{
    struct accepted_pairs *pairs = memory_alloc(sizeof *pairs);
    pairs->holders = session_holders_create();
    pairs->table = seen_table_create(sizeof(struct entry), on_forgotten, pairs->holders);
    return pairs;
}

void accepted_pairs_destroy(struct accepted_pairs *pairs)
{
    if (!pairs)
        return;
    seen_table_destroy(pairs->table);
    session_holders_destroy(pairs->holders);
    free(pairs);
}

static void accepted_pairs_write_key(struct buffer *key, struct str source, struct str session,
                                     struct str token)
{
    buffer_init(key);
    buffer_reserve(key, KEY_BYTES);
    buffer_append(key, source); /* source ids hold no '/' */
    buffer_append_char(key, '/');
    buffer_append(key, session);
    buffer_append_char(key, '/');
    buffer_append(key, token);
}

/* The sessions of one principal make room for each other before those of others have to. */
static char *note_holder(struct accepted_pairs *pairs, const char *key, int64_t most,
                         int64_t monotonic_ms)
{
    OWNED_BUFFER(holder);
    struct str session;
    char *oldest = NULL;
    if (read_holder(key, &holder, &session))
        oldest =
            session_holders_see(pairs->holders, buffer_str(&holder), session, most, monotonic_ms);
    return oldest;
}

bool accepted_pairs_note(struct accepted_pairs *pairs, struct str source, struct str session,
                         struct str token, int64_t monotonic_ms, const struct config_limits *limits,
                         char **forgotten)
{
    struct buffer key;
    *forgotten = NULL;
    accepted_pairs_write_key(&key, source, session, token);
    struct seen_shard *shard = seen_table_lock(pairs->table, buffer_str(&key));
    struct entry *entry =
        (struct entry *)seen_shard_obtain(shard, buffer_str(&key), limits->sessions);
    bool is_news = !entry->is_accepted || monotonic_ms - entry->accepted_ms > NEWS_MS;
    /* The time stays as it is without news, so that news comes once a minute. */
    if (is_news) {
        entry->is_accepted = true;
        entry->accepted_ms = monotonic_ms;
        *forgotten =
            note_holder(pairs, entry->seen.key, limits->sessions_per_principal, monotonic_ms);
    }
    seen_shard_unlock(shard);
    buffer_finish(&key);
    if (*forgotten) {
        metrics_count(METRIC_LIMITS_REACHED, STR("sessions_per_principal"));
        accepted_pairs_remove(pairs, source, str_from(*forgotten), token);
    }
    return is_news;
}

int64_t accepted_pairs_ago_ms(struct accepted_pairs *pairs, struct str source, struct str session,
                              struct str token, int64_t monotonic_ms)
{
    struct buffer key;
    accepted_pairs_write_key(&key, source, session, token);
    struct seen_shard *shard = seen_table_lock(pairs->table, buffer_str(&key));
    const struct entry *entry = (const struct entry *)seen_shard_find(shard, buffer_str(&key));
    int64_t ago_ms = entry ? monotonic_ms - entry->accepted_ms : INT64_MAX;
    seen_shard_unlock(shard);
    buffer_finish(&key);
    return ago_ms;
}

int64_t accepted_pairs_token_ago_ms(struct accepted_pairs *pairs, struct str source,
                                    struct str token, int64_t monotonic_ms)
{
    OWNED_BUFFER(holder);
    write_holder(&holder, source, token);
    return session_holders_ago_ms(pairs->holders, buffer_str(&holder), monotonic_ms);
}

void accepted_pairs_remove(struct accepted_pairs *pairs, struct str source, struct str session,
                           struct str token)
{
    struct buffer key;
    accepted_pairs_write_key(&key, source, session, token);
    struct seen_shard *shard = seen_table_lock(pairs->table, buffer_str(&key));
    seen_shard_forget(shard, buffer_str(&key));
    seen_shard_unlock(shard);
    buffer_finish(&key);
}
