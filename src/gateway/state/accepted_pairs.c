/* Accepted pairs, by source, session and token. */
#include "accepted_pairs.h"

#include <stdlib.h>

#include "seen_table.h"
#include "session_limits.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

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
    struct buffer holder = {0};
    struct str session;
    if (read_holder(entry->key, &holder, &session))
        session_holders_leave(holders, buffer_str(&holder), session);
    buffer_finish(&holder);
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

static void write_key(struct buffer *key, struct str source, struct str session, struct str token)
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
    struct buffer holder = {0};
    struct str session;
    char *oldest = NULL;
    if (read_holder(key, &holder, &session))
        oldest =
            session_holders_see(pairs->holders, buffer_str(&holder), session, most, monotonic_ms);
    buffer_finish(&holder);
    return oldest;
}

bool accepted_pairs_note(struct accepted_pairs *pairs, struct str source, struct str session,
                         struct str token, int64_t monotonic_ms, const struct config_limits *limits,
                         char **forgotten)
{
    struct buffer key;
    *forgotten = NULL;
    write_key(&key, source, session, token);
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
    write_key(&key, source, session, token);
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
    struct buffer holder = {0};
    write_holder(&holder, source, token);
    int64_t ago_ms = session_holders_ago_ms(pairs->holders, buffer_str(&holder), monotonic_ms);
    buffer_finish(&holder);
    return ago_ms;
}

void accepted_pairs_remove(struct accepted_pairs *pairs, struct str source, struct str session,
                           struct str token)
{
    struct buffer key;
    write_key(&key, source, session, token);
    struct seen_shard *shard = seen_table_lock(pairs->table, buffer_str(&key));
    seen_shard_forget(shard, buffer_str(&key));
    seen_shard_unlock(shard);
    buffer_finish(&key);
}
