/* Sessions and accepted (session, token) pairs in sharded tables. */
#include "session_table.h"

#include <pthread.h>
#include <stdlib.h>

#include "session_limits.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/list.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

#define SHARD_COUNT 16
/* A pair accepted again within this time is no news: the store need not hear of it. */
#define ACCEPT_NEWS_MS 60000

enum entry_kind { ENTRY_SESSION = 's', ENTRY_PAIR = 'p' };

struct entry {
    struct list node; /* in shard.recent, the longest unseen first */
    char *key;
    struct session_facts facts; /* ENTRY_SESSION */
    int64_t accepted_ms;        /* ENTRY_PAIR; monotonic */
};

struct shard {
    pthread_mutex_t lock;
    struct map *entries;
    struct list recent;
};

struct sessions {
    struct shard shards[SHARD_COUNT];
    struct session_holders *holders; /* of the pairs; its lock comes after a shard's */
};

struct sessions *sessions_create(void)
{
    struct sessions *sessions = memory_alloc(sizeof *sessions);
    sessions->holders = session_holders_create();
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        pthread_mutex_init(&sessions->shards[i].lock, NULL);
        sessions->shards[i].entries = map_create();
        list_init(&sessions->shards[i].recent);
    }
    return sessions;
}

static void entry_destroy(void *value)
{
    struct entry *entry = value;
    free(entry->key);
    free(entry);
}

void sessions_destroy(struct sessions *sessions)
{
    if (!sessions)
        return;
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        map_destroy(sessions->shards[i].entries, entry_destroy);
        pthread_mutex_destroy(&sessions->shards[i].lock);
    }
    session_holders_destroy(sessions->holders);
    free(sessions);
}

static void write_key(struct buffer *key, enum entry_kind kind, struct str source,
                      struct str session, struct str token)
{
    buffer_init(key);
    buffer_reserve(key, 256);
    buffer_append_char(key, (char)kind);
    buffer_append(key, source); /* source ids hold no '/' */
    buffer_append_char(key, '/');
    buffer_append(key, session);
    buffer_append_char(key, '/');
    buffer_append(key, token);
}

static struct shard *lock_shard(struct sessions *sessions, struct str key)
{
    struct shard *shard = &sessions->shards[str_hash(key) >> 32 & (SHARD_COUNT - 1)];
    pthread_mutex_lock(&shard->lock);
    return shard;
}

/* "p<source>/<session>/<token>" is a session of "<source>/<token>"; without one of the two it is
 * nobody's. */
static bool read_holder(const char *key, struct buffer *holder, struct str *session)
{
    struct str source, rest, token;
    str_cut(str_from(key + 1), '/', &source, &rest);
    str_cut(rest, '/', session, &token);
    if (key[0] != ENTRY_PAIR || session->length == 0 || token.length == 0)
        return false;
    buffer_append(holder, source);
    buffer_append_char(holder, '/');
    buffer_append(holder, token);
    return true;
}

/* Off the table, and nobody's any more. */
static void forget(struct sessions *sessions, struct shard *shard, struct entry *entry)
{
    struct buffer holder;
    struct str session;
    buffer_init(&holder);
    list_remove(&entry->node);
    map_remove(shard->entries, str_from(entry->key));
    if (read_holder(entry->key, &holder, &session))
        session_holders_leave(sessions->holders, buffer_str(&holder), session);
    entry_destroy(entry);
    buffer_finish(&holder);
}

/* The entry, moved to the end of the line: it has been seen now. NULL when there is none. */
static struct entry *find_seen(struct shard *shard, struct str key)
{
    struct entry *entry = map_get(shard->entries, key);
    if (entry) {
        list_remove(&entry->node);
        list_append(&shard->recent, &entry->node);
    }
    return entry;
}

/* The same, and makes the entry if need be. */
static struct entry *touch(struct sessions *sessions, struct shard *shard, struct str key,
                           int64_t limit)
{
    struct entry *entry = find_seen(shard, key);
    if (!entry) {
        /* Sessions and pairs share the bound: usually one pair per session. */
        size_t most = (size_t)(limit > 0 ? limit : 1) * 2 / SHARD_COUNT + 1;
        if (map_count(shard->entries) >= most) {
            forget(sessions, shard, LIST_ENTRY(shard->recent.next, struct entry, node));
            metrics_count(METRIC_LIMITS_REACHED, STR("sessions"));
        }
        entry = memory_alloc(sizeof *entry);
        entry->key = memory_copy_str(key);
        entry->accepted_ms = INT64_MIN;
        map_put(shard->entries, key, entry);
        list_append(&shard->recent, &entry->node);
    }
    return entry;
}

void sessions_put(struct sessions *sessions, struct str source, struct str session,
                  const struct session_facts *facts, int64_t limit)
{
    struct buffer key;
    write_key(&key, ENTRY_SESSION, source, session, STR_EMPTY);
    struct shard *shard = lock_shard(sessions, buffer_str(&key));
    touch(sessions, shard, buffer_str(&key), limit)->facts = *facts;
    pthread_mutex_unlock(&shard->lock);
    buffer_finish(&key);
}

bool sessions_get(struct sessions *sessions, struct str source, struct str session,
                  struct session_facts *facts)
{
    struct buffer key;
    write_key(&key, ENTRY_SESSION, source, session, STR_EMPTY);
    struct shard *shard = lock_shard(sessions, buffer_str(&key));
    struct entry *entry = find_seen(shard, buffer_str(&key));
    if (entry)
        *facts = entry->facts;
    pthread_mutex_unlock(&shard->lock);
    buffer_finish(&key);
    return entry != NULL;
}

static void remove_entry(struct sessions *sessions, enum entry_kind kind, struct str source,
                         struct str session, struct str token)
{
    struct buffer key;
    write_key(&key, kind, source, session, token);
    struct shard *shard = lock_shard(sessions, buffer_str(&key));
    struct entry *entry = map_get(shard->entries, buffer_str(&key));
    if (entry)
        forget(sessions, shard, entry);
    pthread_mutex_unlock(&shard->lock);
    buffer_finish(&key);
}

void sessions_remove(struct sessions *sessions, struct str source, struct str session,
                     struct str token)
{
    remove_entry(sessions, ENTRY_SESSION, source, session, STR_EMPTY);
    remove_entry(sessions, ENTRY_PAIR, source, session, token);
}

/* One principal's sessions make room for each other before those of others have to. */
static char *note_holder(struct sessions *sessions, const struct entry *entry, int64_t most)
{
    struct buffer holder;
    struct str session;
    char *oldest = NULL;
    buffer_init(&holder);
    if (read_holder(entry->key, &holder, &session))
        oldest = session_holders_see(sessions->holders, buffer_str(&holder), session, most);
    buffer_finish(&holder);
    return oldest;
}

bool sessions_accept(struct sessions *sessions, struct str source, struct str session,
                     struct str token, int64_t monotonic_ms, const struct config_limits *limits)
{
    char *oldest = NULL;
    struct buffer key;
    write_key(&key, ENTRY_PAIR, source, session, token);
    struct shard *shard = lock_shard(sessions, buffer_str(&key));
    struct entry *entry = touch(sessions, shard, buffer_str(&key), limits->sessions);
    bool is_news =
        entry->accepted_ms == INT64_MIN || monotonic_ms - entry->accepted_ms > ACCEPT_NEWS_MS;
    /* Kept as it was while it is no news, so that news comes once a minute. */
    if (is_news) {
        entry->accepted_ms = monotonic_ms;
        oldest = note_holder(sessions, entry, limits->sessions_per_principal);
    }
    pthread_mutex_unlock(&shard->lock);
    buffer_finish(&key);
    if (oldest) {
        metrics_count(METRIC_LIMITS_REACHED, STR("sessions_per_principal"));
        sessions_remove(sessions, source, str_from(oldest), token);
    }
    free(oldest);
    return is_news;
}

int64_t sessions_accepted_ago_ms(struct sessions *sessions, struct str source, struct str session,
                                 struct str token, int64_t monotonic_ms)
{
    struct buffer key;
    write_key(&key, ENTRY_PAIR, source, session, token);
    struct shard *shard = lock_shard(sessions, buffer_str(&key));
    struct entry *entry = find_seen(shard, buffer_str(&key));
    int64_t ago = entry ? monotonic_ms - entry->accepted_ms : INT64_MAX;
    pthread_mutex_unlock(&shard->lock);
    buffer_finish(&key);
    return ago;
}
