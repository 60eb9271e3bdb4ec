/* The rows that a transaction writes once, with its end. */
#include "owed.h"

#include <stdlib.h>

#include "connection.h"
#include "taskgate/core/memory.h"

void owed_init(struct owed *owed)
{
    *owed = (struct owed){.feed_count = 0};
    buffer_init(&owed->feed_ids);
    buffer_init(&owed->feed_created);
}

void owed_finish(struct owed *owed)
{
    for (size_t i = 0; i < owed->owner_count; i++)
        free(owed->owners[i].owner);
    free(owed->owners);
    buffer_finish(&owed->feed_ids);
    buffer_finish(&owed->feed_created);
    free(owed->feed_replica);
    owed_init(owed);
}

/* ---- tasks that limits count ---- */

static struct owed_owner *find(const struct owed *owed, struct str owner)
{
    for (size_t i = 0; i < owed->owner_count; i++) {
        if (str_equal(str_from(owed->owners[i].owner), owner))
            return &owed->owners[i];
    }
    return NULL;
}

struct limited_change owed_of(const struct owed *owed, struct str owner)
{
    const struct owed_owner *found = find(owed, owner);
    return found ? found->change : (struct limited_change){0, 0, 0};
}

void owed_add(struct owed *owed, struct str owner, const struct limited_change *change)
{
    struct owed_owner *found = find(owed, owner);
    if (found) {
        found->change.tasks += change->tasks;
        found->change.bytes += change->bytes;
        return;
    }
    if (owed->owner_count == owed->owner_capacity) {
        owed->owner_capacity = owed->owner_capacity ? 2 * owed->owner_capacity : 16;
        owed->owners = memory_grow_array(owed->owners, owed->owner_capacity, sizeof *owed->owners);
    }
    owed->owners[owed->owner_count++] =
        (struct owed_owner){.owner = memory_copy_str(owner), .change = *change};
}

void owed_mark(struct owed *owed)
{
    for (size_t i = 0; i < owed->owner_count; i++)
        owed->owners[i].at_mark = owed->owners[i].change;
}

void owed_return_to_mark(struct owed *owed)
{
    for (size_t i = 0; i < owed->owner_count; i++)
        owed->owners[i].change = owed->owners[i].at_mark;
}

static bool write_owners(struct database *database)
{
    const struct owed *owed = &database->owed;
    for (size_t i = 0; i < owed->owner_count; i++) {
        const struct owed_owner *owner = &owed->owners[i];
        const struct limited_change *change = &owner->change;
        if ((change->tasks != 0 || change->bytes != 0) &&
            !connection_write(
                database, STATEMENT_LIMITED_ADD,
                VALUES(TEXT(owner->owner), NUMBER(change->tasks), NUMBER(change->bytes))))
            return false;
    }
    return true;
}

/* ---- the feed ---- */

void owed_add_change(struct owed *owed, const struct value *values)
{
    if (owed->feed_count++ > 0) {
        buffer_append_char(&owed->feed_ids, ',');
        buffer_append_char(&owed->feed_created, ',');
    } else {
        owed->feed_replica = memory_copy_str(values[1].text);
        owed->feed_at_ms = values[3].number;
    }
    buffer_append(&owed->feed_ids, values[0].text);
    buffer_append_char(&owed->feed_created, values[2].number ? '1' : '0');
}

static bool write_feed(struct database *database)
{
    const struct owed *owed = &database->owed;
    struct str ids = buffer_str(&owed->feed_ids), created = buffer_str(&owed->feed_created);
    if (owed->feed_count == 0)
        return true;
    if (owed->feed_count == 1)
        return connection_write(database, STATEMENT_FEED_ADD,
                                VALUES(STRING(ids), TEXT(owed->feed_replica),
                                       NUMBER(*created.bytes == '1'), NUMBER(owed->feed_at_ms)));
    return connection_write(
        database, STATEMENT_FEED_ADD_ALL,
        VALUES(STRING(ids), TEXT(owed->feed_replica), STRING(created), NUMBER(owed->feed_at_ms)));
}

/* ---- all of it ---- */

bool owed_is_any(const struct owed *owed)
{
    return owed->owner_count > 0 || owed->feed_count > 0;
}

bool owed_write(struct database *database)
{
    return write_owners(database) && write_feed(database);
}
