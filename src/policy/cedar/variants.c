/* Members of a record that a reader without case could take for one another. */
#include "variants.h"

#include <stdlib.h>

#include "taskgate/json/fold.h"

static int compare_folds(const void *left, const void *right)
{
    const struct folded_name *a = left, *b = right;
    return str_compare(a->folded, b->folded);
}

static struct str fold_into(struct arena *arena, struct str name)
{
    struct buffer folded;
    buffer_init(&folded);
    fold_append(&folded, name);
    struct str copy = arena_copy(arena, buffer_str(&folded));
    buffer_finish(&folded);
    return copy;
}

bool cedar_record_of_names(struct cedar_heap *heap, const struct cedar_member *members,
                           size_t count, struct cedar_value *record)
{
    size_t unfolded_count = 0;
    if (!cedar_record(heap, members, count, record))
        return false;
    struct cedar_record *made = arena_alloc(&heap->arena, sizeof *made);
    *made = *record->record;
    made->warns_of_variants = made->has_names = true;
    for (size_t i = 0; i < count; i++)
        unfolded_count += !fold_is_folded(members[i].name);
    struct folded_name *unfolded =
        arena_alloc_array(&heap->arena, unfolded_count, sizeof *unfolded);
    for (size_t i = 0; i < count; i++) {
        struct str name = members[i].name;
        if (!fold_is_folded(name))
            unfolded[made->unfolded_count++] =
                (struct folded_name){fold_into(&heap->arena, name), name};
    }
    if (unfolded_count > 1)
        qsort(unfolded, unfolded_count, sizeof *unfolded, compare_folds);
    made->unfolded = unfolded;
    record->record = made;
    return true;
}

bool record_has_variant(const struct cedar_record *record, struct arena *scratch, struct str name)
{
    struct str folded = name;
    if (!record->warns_of_variants)
        return false;
    if (!fold_is_folded(name)) {
        folded = fold_into(scratch, name);
        if (cedar_record_get(record, folded))
            return true;
    }
    size_t low = 0, high = record->unfolded_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_compare(record->unfolded[middle].folded, folded) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < record->unfolded_count && str_equal(record->unfolded[low].folded, folded); low++) {
        if (!str_equal(record->unfolded[low].name, name))
            return true;
    }
    return false;
}
