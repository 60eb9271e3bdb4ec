/* What a transaction knows, and forgets. */
#include "known.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

void known_forget(struct known *known)
{
    for (size_t i = 0; i < known->owner_count; i++)
        free(known->owners[i].owner);
    free(known->owners);
    free(known->targets);
    free(known->ids.ids);
    *known = (struct known){.has_totals = false};
}

const struct known_owner *known_find_owner(const struct known *known, struct str owner)
{
    for (size_t i = 0; i < known->owner_count; i++) {
        if (str_equal(str_from(known->owners[i].owner), owner))
            return &known->owners[i];
    }
    return NULL;
}

static void known_add_owner(struct known *known, struct str owner, int64_t tasks, int64_t bytes)
{
    if (known_find_owner(known, owner))
        return;
    if (known->owner_count == known->owner_capacity) {
        known->owner_capacity = known->owner_capacity ? 2 * known->owner_capacity : 16;
        known->owners =
            memory_grow_array(known->owners, known->owner_capacity, sizeof *known->owners);
    }
    known->owners[known->owner_count++] =
        (struct known_owner){memory_copy_str(owner), tasks, bytes};
}

bool known_has_id(const struct known *known, struct str id)
{
    for (size_t i = 0; i < known->ids.count; i++) {
        if (str_equal(str_from(known->ids.ids[i]), id))
            return true;
    }
    return false;
}

static void take_owner(struct known *known, const PGresult *rows)
{
    known_add_owner(known, row_bytes(rows, 0, 0), row_number(rows, 0, 1), row_number(rows, 0, 2));
    struct str ids = row_bytes(rows, 0, 3);
    while (ids.length > 0) {
        const char *comma = memchr(ids.bytes, ',', ids.length);
        size_t length = comma ? (size_t)(comma - ids.bytes) : ids.length;
        id_list_add(&known->ids, str_slice(ids.bytes, length));
        length += comma != NULL;
        ids = str_slice(ids.bytes + length, ids.length - length);
    }
}

/* "EVENTS:WITH_ARGUMENTS,…"; NULL: there is none. */
static void take_target_list(struct known *known, struct str list)
{
    free(known->targets);
    known->target_count = 0;
    known->targets = memory_alloc_array(list.length / 4 + 2, sizeof *known->targets);
    for (const char *next = list.bytes, *end = next + list.length; next < end; next++) {
        char *rest;
        struct known_target *target = &known->targets[known->target_count++];
        target->events = (unsigned)strtoul(next, &rest, 10);
        target->with_arguments = strtol(rest + 1, &rest, 10) != 0;
        next = rest;
    }
    known->has_targets = true;
}

static void take_targets(struct known *known, const PGresult *rows)
{
    free(known->targets);
    known->target_count = (size_t)PQntuples(rows);
    known->targets = memory_alloc_array(known->target_count + 1, sizeof *known->targets);
    for (int i = 0; i < PQntuples(rows); i++)
        known->targets[i] =
            (struct known_target){(unsigned)row_number(rows, i, 0), row_number(rows, i, 1) != 0};
    known->has_targets = true;
}

static void known_take_end(struct known *known, const PGresult *rows, int column)
{
    store_chain_init(&known->end);
    known->has_end = true;
    struct str hash = rows_any(rows) == ROW_FOUND ? row_bytes(rows, 0, column + 1) : STR_EMPTY;
    if (hash.length != sizeof known->end.hash - 1)
        return;
    known->end.sequence = row_number(rows, 0, column);
    memcpy(known->end.hash, hash.bytes, hash.length);
}

static void take_totals(struct known *known, const PGresult *rows, int column)
{
    known->has_totals = true;
    known->totals = (struct totals){row_number(rows, 0, column), row_number(rows, 0, column + 1),
                                    row_number(rows, 0, column + 2)};
}

/* Columns of STATEMENT_LOOK and STATEMENT_LOOK_WRITE. */
enum { LOOK_CLOCK, LOOK_TOTALS, LOOK_GRANTS = LOOK_TOTALS + 3, LOOK_TARGETS, LOOK_END };

static void take_look(struct known *known, const PGresult *rows)
{
    take_totals(known, rows, LOOK_TOTALS);
    if (PQnfields(rows) <= LOOK_GRANTS)
        return;
    known->has_looked_for_grants = true;
    known->has_grants = row_number(rows, 0, LOOK_GRANTS) != 0;
    take_target_list(known, row_bytes(rows, 0, LOOK_TARGETS));
    if (!PQgetisnull(rows, 0, LOOK_END))
        known_take_end(known, rows, LOOK_END);
}

void known_take(struct known *known, enum sent_kind kind, const PGresult *rows)
{
    bool has_row = rows_any(rows) == ROW_FOUND;
    if (kind == SENT_TARGETS)
        take_targets(known, rows);
    else if (kind == SENT_END)
        known_take_end(known, rows, 0);
    else if (kind == SENT_LOOK && has_row)
        take_look(known, rows);
    else if (kind == SENT_OWNER && has_row)
        take_owner(known, rows);
    else if (kind == SENT_GRANTS)
        known->has_looked_for_grants = true, known->has_grants = row_number(rows, 0, 0) != 0;
    else if (kind == SENT_TOTALS && has_row)
        take_totals(known, rows, 0);
}
