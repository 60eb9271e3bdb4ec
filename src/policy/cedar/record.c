/* Records: members in one order, so that two equal records look alike. */
#include <stdlib.h>
#include <string.h>

#include "value.h"

const struct cedar_record record_empty = {.depth = 1};

static int compare_members(const void *left, const void *right)
{
    const struct cedar_member *a = left, *b = right;
    return record_compare_names(a->name, b->name);
}

bool record_build(struct arena *arena, struct cedar_member *members, size_t count,
                  struct cedar_value *record, struct str *twice)
{
    if (count > 1)
        qsort(members, count, sizeof *members, compare_members);
    uint64_t hash = count, weight = 0;
    unsigned depth = 0;
    bool has_names = false;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && record_compare_names(members[i - 1].name, members[i].name) == 0) {
            if (twice)
                *twice = members[i].name;
            return false;
        }
        hash = value_mix(hash + value_hash_text(members[i].name)) + value_hash(&members[i].value);
        weight += value_weight(&members[i].value);
        if (value_depth(&members[i].value) > depth)
            depth = value_depth(&members[i].value);
        has_names = has_names || value_has_names(&members[i].value);
    }
    if (depth >= CEDAR_MAX_VALUE_DEPTH)
        return false;
    struct cedar_record *made = arena_alloc(arena, sizeof *made);
    *made = (struct cedar_record){.count = count,
                                  .members = members,
                                  .hash = value_mix(hash),
                                  .weight = weight > UINT32_MAX ? UINT32_MAX : (uint32_t)weight,
                                  .depth = depth + 1,
                                  .has_names = has_names};
    *record = (struct cedar_value){.kind = CEDAR_RECORD, .record = made};
    return true;
}

bool cedar_record(struct cedar_heap *heap, const struct cedar_member *members, size_t count,
                  struct cedar_value *record)
{
    struct cedar_member *copy = arena_alloc_array(&heap->arena, count, sizeof *copy);
    if (count)
        memcpy(copy, members, count * sizeof *copy);
    return record_build(&heap->arena, copy, count, record, NULL);
}

const struct cedar_value *cedar_record_get(const struct cedar_record *record, struct str name)
{
    size_t low = 0, high = record->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = record_compare_names(name, record->members[middle].name);
        if (order == 0)
            return &record->members[middle].value;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
