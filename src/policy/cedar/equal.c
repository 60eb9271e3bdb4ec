/* Equality of values, of which sets and records are made, and the search in a set by it. */
#include <string.h>

#include "value.h"

static bool ip_equal(const struct cedar_ip *a, const struct cedar_ip *b)
{
    return a->v6 == b->v6 && a->prefix == b->prefix &&
           memcmp(a->bytes, b->bytes, a->v6 ? 16 : 4) == 0;
}

bool cedar_value_equal(const struct cedar_value *a, const struct cedar_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case CEDAR_BOOL:
        return a->boolean == b->boolean;
    case CEDAR_STRING:
        return str_equal(a->text, b->text);
    case CEDAR_ENTITY:
        return cedar_uid_equal(a->entity, b->entity);
    case CEDAR_SET:
        return set_equal(a->set, b->set);
    case CEDAR_RECORD:
        return record_equal(a->record, b->record);
    case CEDAR_IP:
        return ip_equal(a->ip, b->ip);
    default:
        return a->number == b->number;
    }
}

int record_compare_names(struct str a, struct str b)
{
    if (a.length != b.length)
        return a.length < b.length ? -1 : 1;
    return a.length ? memcmp(a.bytes, b.bytes, a.length) : 0;
}

bool record_equal(const struct cedar_record *a, const struct cedar_record *b)
{
    if (a == b)
        return true;
    if (a->count != b->count || (a->count && a->hash != b->hash))
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (record_compare_names(a->members[i].name, b->members[i].name) != 0 ||
            !cedar_value_equal(&a->members[i].value, &b->members[i].value))
            return false;
    return true;
}

size_t set_find(const struct cedar_set *set, const struct cedar_value *value, uint64_t hash,
                size_t *free_slot)
{
    if (!set->slots) {
        for (size_t i = 0; i < set->count; i++)
            if (set->hashes[i] == hash && cedar_value_equal(&set->items[i], value))
                return i;
        return set->count;
    }
    size_t slot = hash & set->slot_mask;
    for (; set->slots[slot]; slot = (slot + 1) & set->slot_mask) {
        size_t i = set->slots[slot] - 1;
        if (set->hashes[i] == hash && cedar_value_equal(&set->items[i], value))
            return i;
    }
    *free_slot = slot;
    return set->count;
}

bool set_contains_hashed(const struct cedar_set *set, const struct cedar_value *value,
                         uint64_t hash)
{
    size_t unused;
    return set_find(set, value, hash, &unused) < set->count;
}

bool set_is_subset(const struct cedar_set *part, const struct cedar_set *whole)
{
    if (part->count > whole->count)
        return false;
    for (size_t i = 0; i < part->count; i++)
        if (!set_contains_hashed(whole, &part->items[i], part->hashes[i]))
            return false;
    return true;
}

bool set_equal(const struct cedar_set *a, const struct cedar_set *b)
{
    return a == b || (a->count == b->count && a->hash == b->hash && set_is_subset(a, b));
}
