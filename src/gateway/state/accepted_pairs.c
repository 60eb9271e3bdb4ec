/* Accepted pairs, by source, session and token. The pairs of a token in sessions have an owner. */
#include "accepted_pairs.h"

#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"

#define KEY_BYTES 256
/* A pair accepted again within this time is no news: the store need not hear of it. */
#define NEWS_MS 60000

struct entry {
    struct seen_entry seen; /* first */
    bool is_accepted;       /* once, at least */
    int64_t accepted_ms;    /* monotonic */
};

struct seen_table *accepted_pairs_create(void)
{
    static const struct seen_table_kind kind = {.entry_bytes = sizeof(struct entry),
                                                .limit = "sessions"};
    return seen_table_create(&kind);
}

/* `key` is "<source>/<session>/<token>": source ids hold no '/'. The pairs of a token share a
 * shard. */
static struct seen_shard *lock_pair(struct seen_table *pairs, struct str source, struct str session,
                                    struct str token, struct buffer *key)
{
    buffer_init(key);
    buffer_reserve(key, KEY_BYTES);
    buffer_append(key, source);
    buffer_append_char(key, '/');
    buffer_append(key, session);
    buffer_append_char(key, '/');
    buffer_append(key, token);
    return seen_table_lock(pairs, token.length > 0 ? token : session);
}

static void write_owner(struct buffer *owner, struct str source, struct str token)
{
    buffer_append_format(owner, "%.*s/%.*s", STR_ARGS(source), STR_ARGS(token));
}

/* The sessions of one principal make room for each other before those of others have to. A pair
 * without one of the two is nobody's. */
static char *give_pair(struct seen_shard *shard, struct seen_entry *pair, struct str owner,
                       int64_t most, int64_t monotonic_ms)
{
    struct seen_entry *oldest = seen_shard_give(shard, pair, owner, most, monotonic_ms);
    struct str source, session, token;
    if (!oldest)
        return NULL;
    metrics_count(METRIC_LIMITS_REACHED, STR("sessions_per_principal"));
    str_cut(oldest->key, '/', &source, &session);
    str_cut(session, '/', &session, &token);
    char *forgotten = memory_copy_str(session);
    seen_shard_forget(shard, oldest->key);
    return forgotten;
}

bool accepted_pairs_note(struct seen_table *pairs, struct str source, struct str session,
                         struct str token, int64_t monotonic_ms, const struct config_limits *limits,
                         char **forgotten)
{
    OWNED_BUFFER(owner);
    struct buffer key;
    *forgotten = NULL;
    struct seen_shard *shard = lock_pair(pairs, source, session, token, &key);
    struct entry *entry =
        (struct entry *)seen_shard_obtain(shard, buffer_str(&key), limits->sessions);
    bool is_news = !entry->is_accepted || monotonic_ms - entry->accepted_ms > NEWS_MS;
    /* The time stays as it is without news, so that news comes once a minute. */
    if (is_news) {
        entry->is_accepted = true;
        entry->accepted_ms = monotonic_ms;
    }
    if (is_news && session.length > 0 && token.length > 0) {
        write_owner(&owner, source, token);
        *forgotten = give_pair(shard, &entry->seen, buffer_str(&owner),
                               limits->sessions_per_principal, monotonic_ms);
    }
    seen_shard_unlock_session(shard, &key);
    return is_news;
}

int64_t accepted_pairs_ago_ms(struct seen_table *pairs, struct str source, struct str session,
                              struct str token, int64_t monotonic_ms)
{
    struct buffer key;
    struct seen_shard *shard = lock_pair(pairs, source, session, token, &key);
    const struct entry *entry = (const struct entry *)seen_shard_find(shard, buffer_str(&key));
    int64_t ago_ms = entry ? monotonic_ms - entry->accepted_ms : INT64_MAX;
    seen_shard_unlock_session(shard, &key);
    return ago_ms;
}

int64_t accepted_pairs_token_ago_ms(struct seen_table *pairs, struct str source, struct str token,
                                    int64_t monotonic_ms)
{
    OWNED_BUFFER(owner);
    int64_t given_ms;
    write_owner(&owner, source, token);
    struct seen_shard *shard = seen_table_lock(pairs, token);
    bool is_known = seen_shard_find_owner(shard, buffer_str(&owner), &given_ms);
    seen_shard_unlock(shard);
    return is_known ? monotonic_ms - given_ms : INT64_MAX;
}

void accepted_pairs_remove(struct seen_table *pairs, struct str source, struct str session,
                           struct str token)
{
    struct buffer key;
    struct seen_shard *shard = lock_pair(pairs, source, session, token, &key);
    seen_shard_forget(shard, buffer_str(&key));
    seen_shard_unlock_session(shard, &key);
}
