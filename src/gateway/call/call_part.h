/*
 * The parts of a call: the objects that rooms have under way for it, such as a relay or a wait for
 * a task. A part is embedded in an object of a room, and only that room knows the object. A call
 * that is answered, or whose client has gone, drops its parts. On the call's loop.
 */
#pragma once

#include <stddef.h>

#include "taskgate/core/list.h"

struct call;

/* One constant for each kind of object. Its address tells the kind, so that a cast is checked. */
struct call_part_kind {
    size_t offset; /* of the struct call_part in the object */
    /* Ends and frees the object, which is off the call already. */
    void (*drop)(struct call *call, void *object);
    /* Called before the drop when the client has gone. The object may take itself off the call and
     * go on. NULL: it is dropped. */
    void (*gone)(struct call *call, void *object);
};
#define CALL_PART_KIND(type, drop_function)                                                        \
    {                                                                                              \
        .offset = offsetof(type, part), .drop = (drop_function)                                    \
    }

struct call_part {
    struct list node; /* of the call */
    const struct call_part_kind *kind;
};

void call_part_add(struct call *call, struct call_part *part, const struct call_part_kind *kind);
/* Its room goes on with the object, or ends it by itself. Allowed for a part of no call. */
void call_part_remove(struct call_part *part);
/* The call's object of this kind; NULL without one. A call has one of each kind at most. */
void *call_part_find(const struct call *call, const struct call_part_kind *kind);
/* The same, for a room that has added it: there must be one. */
void *call_part_get(const struct call *call, const struct call_part_kind *kind);
/* Calls `gone` of the one part that has it: the client has gone. */
void call_part_report_gone(struct call *call);
/* Drops all parts, the last one first: a later part may use an earlier one. */
void call_part_drop_all(struct call *call);
