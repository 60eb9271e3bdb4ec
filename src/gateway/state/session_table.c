/* The facts of sessions, by source and session. */
#include "session_table.h"

#include <stdlib.h>

#include "seen_table.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

struct entry {
    struct seen_entry seen; /* first */
    struct session_facts facts;
};

struct sessions {
    struct seen_table *table;
};

struct sessions *sessions_create(void)
{
    struct sessions *sessions = memory_alloc(sizeof *sessions);
    sessions->table = seen_table_create(sizeof(struct entry), NULL, NULL);
    return sessions;
}

void sessions_destroy(struct sessions *sessions)
{
    if (!sessions)
        return;
    seen_table_destroy(sessions->table);
    free(sessions);
}

void sessions_put(struct sessions *sessions, struct str source, struct str session,
                  const struct session_facts *facts, int64_t limit)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(sessions->table, source, session, &key);
    struct entry *entry = (struct entry *)seen_shard_obtain(shard, buffer_str(&key), limit);
    entry->facts = *facts;
    seen_shard_unlock_session(shard, &key);
}

bool sessions_get(struct sessions *sessions, struct str source, struct str session,
                  struct session_facts *facts)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(sessions->table, source, session, &key);
    const struct entry *entry = (const struct entry *)seen_shard_find(shard, buffer_str(&key));
    if (entry)
        *facts = entry->facts;
    seen_shard_unlock_session(shard, &key);
    return entry != NULL;
}

void sessions_remove(struct sessions *sessions, struct str source, struct str session)
{
    seen_table_forget_session(sessions->table, source, session);
}

/* Texts by source and session. */

struct given_sessions_entry {
    struct seen_entry seen; /* first */
    struct buffer text;
};

struct given_sessions {
    struct seen_table *table;
};

static struct given_sessions_entry *session_table_entry_of(struct seen_entry *seen)
{
    return (struct given_sessions_entry *)seen; /* the table's entries are ours */
}

static void forgotten(void *context, const struct seen_entry *seen)
{
    (void)context;
    buffer_finish(&((struct given_sessions_entry *)(uintptr_t)seen)->text);
}

struct given_sessions *given_sessions_create(void)
{
    struct given_sessions *sessions = memory_alloc(sizeof *sessions);
    sessions->table = seen_table_create(sizeof(struct given_sessions_entry), forgotten, NULL);
    return sessions;
}

void given_sessions_destroy(struct given_sessions *sessions)
{
    if (!sessions)
        return;
    seen_table_clear(sessions->table);
    seen_table_destroy(sessions->table);
    free(sessions);
}

void given_sessions_put(struct given_sessions *sessions, struct str source, struct str session,
                        struct str text, int64_t limit)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(sessions->table, source, session, &key);
    struct given_sessions_entry *entry =
        session_table_entry_of(seen_shard_obtain(shard, buffer_str(&key), limit));
    buffer_clear(&entry->text);
    buffer_append(&entry->text, text);
    seen_shard_unlock_session(shard, &key);
}

bool given_sessions_get(struct given_sessions *sessions, struct str source, struct str session,
                        struct buffer *text)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(sessions->table, source, session, &key);
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

static bool change_text(struct given_sessions *sessions, struct str source, struct str session,
                        const struct change *change, value_writer write)
{
    struct buffer key, value, text;
    buffer_init(&value);
    buffer_init(&text);
    struct seen_shard *shard = seen_table_lock_session(sessions->table, source, session, &key);
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

bool given_sessions_set(struct given_sessions *sessions, struct str source, struct str session,
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

bool given_sessions_subscribe(struct given_sessions *sessions, struct str source,
                              struct str session, struct str uri, bool is_wanted)
{
    const struct change change = {"uris", uri, is_wanted};
    return change_text(sessions, source, session, &change, write_uris);
}

void given_sessions_remove(struct given_sessions *sessions, struct str source, struct str session)
{
    seen_table_forget_session(sessions->table, source, session);
}
