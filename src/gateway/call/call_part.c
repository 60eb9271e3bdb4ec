/* The list of a call's parts. */
#include "call_part.h"

#include <assert.h>

#include "call.h"

static void *object_of(const struct call_part *part)
{
    return (char *)part - part->kind->offset;
}

void call_part_add(struct call *call, struct call_part *part, const struct call_part_kind *kind)
{
    assert(!call_part_find(call, kind));
    part->kind = kind;
    list_append(&call->parts, &part->node);
}

void call_part_remove(struct call_part *part)
{
    if (part->kind)
        list_remove(&part->node);
    part->kind = NULL;
}

void *call_part_find(const struct call *call, const struct call_part_kind *kind)
{
    LIST_FOR_EACH_SAFE (node, next, &call->parts) {
        const struct call_part *part = LIST_ENTRY(node, struct call_part, node);
        if (part->kind == kind)
            return object_of(part);
    }
    return NULL;
}

void *call_part_get(const struct call *call, const struct call_part_kind *kind)
{
    void *object = call_part_find(call, kind);
    assert(object);
    return object;
}

void call_part_report_gone(struct call *call)
{
    LIST_FOR_EACH_SAFE (node, next, &call->parts) {
        struct call_part *part = LIST_ENTRY(node, struct call_part, node);
        if (!part->kind->gone)
            continue;
        part->kind->gone(call, object_of(part)); /* other parts may go, too */
        return;
    }
}

void call_part_drop_all(struct call *call)
{
    while (!list_is_empty(&call->parts)) {
        struct call_part *part = LIST_ENTRY(call->parts.previous, struct call_part, node);
        const struct call_part_kind *kind = part->kind;
        void *object = object_of(part);
        call_part_remove(part);
        kind->drop(call, object);
    }
}
