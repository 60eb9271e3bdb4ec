/* The facts of sessions by source and session, and pairs that were accepted in them. */
#include "session_table.h"

#include "seen_table.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

struct seen_table *sessions_create(void)
{
    static const struct seen_table_kind kind = {
        .entry_bytes = SEEN_VALUE_BYTES(struct session_facts), .limit = "sessions"};
    return seen_table_create(&kind);
}

void sessions_put(struct seen_table *sessions, struct str source, struct str session,
                  const struct session_facts *facts, int64_t limit)
{
    seen_table_put(sessions, source, session, facts, limit);
}

bool sessions_get(struct seen_table *sessions, struct str source, struct str session,
                  struct session_facts *facts)
{
    return seen_table_get(sessions, source, session, facts);
}

/* Texts by source and session. */

struct given_sessions_entry {
    struct seen_entry seen; /* first */
    struct buffer text;
};

static struct given_sessions_entry *session_table_entry_of(struct seen_entry *seen)
{
    return (struct given_sessions_entry *)seen; /* the table's entries are ours */
}

static void forgotten(struct seen_entry *seen)
{
    buffer_finish(&session_table_entry_of(seen)->text);
}

struct seen_table *given_sessions_create(void)
{
    static const struct seen_table_kind kind = {.entry_bytes = sizeof(struct given_sessions_entry),
                                                .limit = "sessions",
                                                .forgotten = forgotten};
    return seen_table_create(&kind);
}

void given_sessions_put(struct seen_table *sessions, struct str source, struct str session,
                        struct str text, int64_t limit)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(sessions, source, session, &key);
    struct given_sessions_entry *entry =
        session_table_entry_of(seen_shard_obtain(shard, buffer_str(&key), limit));
    buffer_clear(&entry->text);
    buffer_append(&entry->text, text);
    seen_shard_unlock_session(shard, &key);
}

bool given_sessions_get(struct seen_table *sessions, struct str source, struct str session,
                        struct buffer *text)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(sessions, source, session, &key);
    const struct given_sessions_entry *entry =
        session_table_entry_of(seen_shard_find(shard, buffer_str(&key)));
    if (entry)
        buffer_append(text, buffer_str(&entry->text));
    seen_shard_unlock_session(shard, &key);
    return entry != NULL;
}

/* ---- changes ---- */

struct change {
    const char *key;
    struct str value;
    bool is_wanted;
};

/* Writes the member's new value by the text so far. */
typedef void (*value_writer)(const struct change *change, struct str text, struct buffer *value);

static bool change_text(struct seen_table *sessions, struct str source, struct str session,
                        const struct change *change, value_writer write)
{
    struct buffer key, value, text;
    buffer_init(&value);
    buffer_init(&text);
    struct seen_shard *shard = seen_table_lock_session(sessions, source, session, &key);
    struct given_sessions_entry *entry =
        session_table_entry_of(seen_shard_find(shard, buffer_str(&key)));
    if (entry) {
        write(change, buffer_str(&entry->text), &value);
        json_write_with_member(&text, buffer_str(&entry->text), change->key, buffer_str(&value));
    }
    bool is_good = entry && text.length <= GIVEN_SESSION_BYTES;
    if (is_good) {
        buffer_finish(&entry->text);
        entry->text = text;
    } else {
        buffer_finish(&text);
    }
    seen_shard_unlock_session(shard, &key);
    buffer_finish(&value);
    return is_good;
}

static void write_value(const struct change *change, struct str text, struct buffer *value)
{
    (void)text;
    buffer_append(value, change->value);
}

bool given_sessions_set(struct seen_table *sessions, struct str source, struct str session,
                        const char *key, struct str value)
{
    const struct change change = {.key = key, .value = value};
    return change_text(sessions, source, session, &change, write_value);
}

static void write_uris(const struct change *change, struct str text, struct buffer *value)
{
    struct str uri;
    buffer_append_char(value, '[');
    for (size_t position = 0; json_next_element(json_member(text, "uris"), &position, &uri);) {
        if (!json_string_equals(uri, change->value))
            buffer_append_format(value, "%s%.*s", value->length > 1 ? "," : "", STR_ARGS(uri));
    }
    if (change->is_wanted) {
        buffer_append_text(value, value->length > 1 ? "," : "");
        buffer_append_json_string(value, change->value);
    }
    buffer_append_char(value, ']');
}

bool given_sessions_subscribe(struct seen_table *sessions, struct str source, struct str session,
                              struct str uri, bool is_wanted)
{
    const struct change change = {"uris", uri, is_wanted};
    return change_text(sessions, source, session, &change, write_uris);
}

/* Accepted pairs, by source, session and token. The pairs of a token in sessions have an owner. */

#define KEY_BYTES 256
/* A pair accepted again within this time is no news: the store need not hear of it. */
#define NEWS_MS 60000

struct accepted_pair {
    struct seen_entry seen; /* first */
    bool is_accepted;       /* once, at least */
    int64_t accepted_ms;    /* monotonic */
};

struct seen_table *accepted_pairs_create(void)
{
    static const struct seen_table_kind pairs_kind = {.entry_bytes = sizeof(struct accepted_pair),
                                                      .limit = "sessions"};
    return seen_table_create(&pairs_kind);
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
    struct accepted_pair *entry =
        (struct accepted_pair *)seen_shard_obtain(shard, buffer_str(&key), limits->sessions);
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
    const struct accepted_pair *entry =
        (const struct accepted_pair *)seen_shard_find(shard, buffer_str(&key));
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
