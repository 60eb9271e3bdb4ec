/* The facts of sessions, by source and session. */
#include "session_table.h"

#include "seen_table.h"
#include "taskgate/core/buffer.h"
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
