/* A map of signatures, and a queue of when each can be forgotten. */
#include "replay.h"

#include <stdlib.h>

#include "taskgate/core/list.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

struct noted {
    struct list node; /* in replay.queue, the first to forget first */
    char *signature;
    int64_t until_ms;
};

struct replay {
    struct map *by_signature;
    struct list queue;
};

struct replay *replay_create(void)
{
    struct replay *replay = memory_alloc(sizeof *replay);
    replay->by_signature = map_create();
    list_init(&replay->queue);
    return replay;
}

static void forget(struct replay *replay, struct noted *noted)
{
    map_remove(replay->by_signature, str_from(noted->signature));
    list_remove(&noted->node);
    free(noted->signature);
    free(noted);
}

void replay_destroy(struct replay *replay)
{
    if (!replay)
        return;
    LIST_FOR_EACH_SAFE (node, next, &replay->queue)
        forget(replay, LIST_ENTRY(node, struct noted, node));
    map_destroy(replay->by_signature, NULL);
    free(replay);
}

static void forget_old(struct replay *replay, int64_t now_ms)
{
    LIST_FOR_EACH_SAFE (node, next, &replay->queue) {
        struct noted *noted = LIST_ENTRY(node, struct noted, node);
        if (noted->until_ms > now_ms)
            return;
        forget(replay, noted);
    }
}

bool replay_note(struct replay *replay, struct str signature, int64_t now_ms, int64_t keep_ms)
{
    forget_old(replay, now_ms);
    if (map_get(replay->by_signature, signature))
        return false;
    struct noted *noted = memory_alloc(sizeof *noted);
    noted->signature = memory_copy_str(signature);
    noted->until_ms = now_ms + keep_ms;
    list_append(&replay->queue, &noted->node);
    map_put(replay->by_signature, signature, noted);
    return true;
}
