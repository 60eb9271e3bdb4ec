/*
 * Room for one more task: the store counts those of each owner and of all, and the process those of
 * each address whose clients nobody has verified. On the call's loop.
 */
#pragma once

#include "call/call.h"
#include "taskgate/store/store.h"

/* The limits for a task that the call becomes, which has its place from now on. They allow none in
 * all if its address has its share already. */
struct store_limits task_room_take(const struct call *call, const char *id);
/* The store has not taken the task. */
void task_room_give_back(struct gateway *gateway, const char *id);
/* A task has moved: one that runs as decided, or is over, needs no place. */
void task_room_note_task(struct gateway *gateway, const struct task *task);
