/* Counts of the tasks that the limits are about. */
#include "pending.h"

#include <stdlib.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

void pending_init(struct pending *pending)
{
    *pending = (struct pending){.owners = map_create()};
}

void pending_finish(struct pending *pending)
{
    map_destroy(pending->owners, free);
    pending->owners = NULL;
}

/* A running call counts against its owner only if no human has approved it. */
static bool is_limited(const struct task *task, enum task_state state)
{
    bool runs_undecided = state == TASK_EXECUTING && (task->accelerated || task->promoted);
    return state == TASK_PENDING || state == TASK_APPROVED || runs_undecided;
}

static void add(struct pending *pending, struct str owner, int64_t amount)
{
    int64_t *count = map_get(pending->owners, owner);
    if (!count) {
        count = memory_alloc(sizeof *count);
        map_put(pending->owners, owner, count);
    }
    *count += amount;
    pending->limited_total += amount;
    if (*count == 0)
        free(map_remove(pending->owners, owner));
}

struct counting {
    struct pending *pending;
};

static void count(void *context, struct str owner, int64_t limited, int64_t pending)
{
    const struct counting *counting = context;
    add(counting->pending, owner, limited);
    counting->pending->pending_total += pending;
}

bool pending_load(struct pending *pending, const struct store_backend *backend,
                  struct database *database)
{
    pending_finish(pending);
    pending_init(pending);
    return backend->tasks->count_limited(database, count, &(struct counting){pending});
}

int64_t pending_of_owner(const struct pending *pending, const char *owner)
{
    const int64_t *count = map_get(pending->owners, str_from(owner));
    return count ? *count : 0;
}

void pending_note_created(struct pending *pending, const struct task *task)
{
    if (is_limited(task, task->state))
        add(pending, str_from(task->owner), 1);
    if (task->state == TASK_PENDING)
        pending->pending_total++;
}

void pending_note_moved(struct pending *pending, const struct task *task, enum task_state from)
{
    if (is_limited(task, from) != is_limited(task, task->state))
        add(pending, str_from(task->owner), is_limited(task, from) ? -1 : 1);
    pending->pending_total += (task->state == TASK_PENDING) - (from == TASK_PENDING);
}
