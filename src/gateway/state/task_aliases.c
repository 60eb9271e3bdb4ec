/* The servers' own tasks by session and id. */
#include "task_aliases.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

struct task_aliases {
    pthread_mutex_t lock;
    struct map *by_id; /* "<session> <id>" -> struct task, with a reference */
    atomic_size_t count;
};

struct task_aliases *task_aliases_create(void)
{
    struct task_aliases *tasks = memory_alloc(sizeof *tasks);
    pthread_mutex_init(&tasks->lock, NULL);
    tasks->by_id = map_create();
    return tasks;
}

static void task_aliases_unref(void *task)
{
    task_unref(task);
}

void task_aliases_destroy(struct task_aliases *tasks)
{
    if (!tasks)
        return;
    map_destroy(tasks->by_id, task_aliases_unref);
    pthread_mutex_destroy(&tasks->lock);
    free(tasks);
}

/* Leaves `key` to the caller, to be freed. */
static char *task_aliases_key_of(const char *session, const char *id)
{
    return memory_format("%s %s", session, id);
}

void task_aliases_put(struct task_aliases *tasks, const char *session, const char *id,
                      struct task *task)
{
    if (!session[0])
        return;
    char *key = task_aliases_key_of(session, id);
    pthread_mutex_lock(&tasks->lock);
    struct task *earlier = map_put(tasks->by_id, str_from(key), task_ref(task));
    atomic_store(&tasks->count, map_count(tasks->by_id));
    pthread_mutex_unlock(&tasks->lock);
    task_unref(earlier);
    free(key);
}

void task_aliases_remove(struct task_aliases *tasks, const char *session, const char *id)
{
    char *key = task_aliases_key_of(session, id);
    pthread_mutex_lock(&tasks->lock);
    struct task *removed = map_remove(tasks->by_id, str_from(key));
    atomic_store(&tasks->count, map_count(tasks->by_id));
    pthread_mutex_unlock(&tasks->lock);
    task_unref(removed);
    free(key);
}

bool task_aliases_any(const struct task_aliases *tasks)
{
    return atomic_load(&tasks->count) > 0;
}

struct task *task_aliases_find(struct task_aliases *tasks, const char *session, struct str message)
{
    struct str meta = json_path(message, "params", "_meta");
    struct str related = json_member(meta, "io.modelcontextprotocol/related-task");
    struct str named = json_member(related, "taskId");
    char *id =
        json_string_text(named.length > 0 ? named : json_path(message, "params", "taskId"), NULL);
    if (!id)
        return NULL;
    char *key = task_aliases_key_of(session, id);
    pthread_mutex_lock(&tasks->lock);
    struct task *found = map_get(tasks->by_id, str_from(key));
    if (found)
        task_ref(found);
    pthread_mutex_unlock(&tasks->lock);
    free(key);
    free(id);
    return found;
}
