/* Counting what becomes of calls, and reading it for one of them. */
#include "tally.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"
#include "taskgate/task/recorded_name.h"

#define DAY_MS INT64_C(86400000)

static int64_t day_of(int64_t at_ms)
{
    return at_ms - at_ms % DAY_MS;
}

static void count_end(struct store_tally_counts *counts, enum task_state state)
{
    counts->rejected = state == TASK_REJECTED;
    counts->expired = state == TASK_EXPIRED;
    counts->failed = state == TASK_FAILED;
}

bool tally_note_moved(struct batch *batch, const struct task *task, enum task_state from)
{
    struct store_tally_counts counts = {0, 0, 0, 0};
    char name[RECORDED_NAME_BYTES];
    counts.approved = from == TASK_PENDING && task->state == TASK_APPROVED;
    count_end(&counts, task->state);
    if (counts.approved + counts.rejected + counts.expired + counts.failed == 0)
        return true;
    const struct tally_key key = {task->source, recorded_name(str_from(task->tool), name),
                                  task->owner};
    return batch->backend->tally->add(batch->database, &key, day_of(task->updated_ms), &counts);
}

static bool give(struct batch *batch, const struct tally_key *key, const char *heir, int64_t at_ms,
                 const struct store_tally_counts *counts)
{
    return batch->backend->tally->give(batch->database, key, heir, day_of(at_ms), counts);
}

bool tally_hand_over(struct batch *batch, const char *source, const char *owner, const char *heir,
                     const struct ended_task *task)
{
    const struct store_tally_counts approval = {.approved = 1};
    struct store_tally_counts end = {0, 0, 0, 0};
    char name[RECORDED_NAME_BYTES];
    const struct tally_key key = {source, recorded_name(task->tool, name), owner};
    count_end(&end, task->state);
    return (task->approved_ms == 0 || give(batch, &key, heir, task->approved_ms, &approval)) &&
           (end.rejected + end.expired + end.failed == 0 ||
            give(batch, &key, heir, task->ended_ms, &end));
}

/* The others: without what the task itself was counted for. */
static void take_own(struct store_tally_counts *counts, const struct task *task, int64_t since_ms)
{
    struct store_tally_counts own = {0, 0, 0, 0};
    if (task->ended_ms >= since_ms)
        count_end(&own, task->state);
    /* Nobody decides a call that was made approved. */
    own.approved = task->execute_by_ms > 0 && task->decided_ms >= since_ms;
    int64_t *const fields[] = {&counts->approved, &counts->rejected, &counts->expired,
                               &counts->failed};
    const int64_t taken[] = {own.approved, own.rejected, own.expired, own.failed};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        *fields[i] -= taken[i] < *fields[i] ? taken[i] : *fields[i];
}

struct store_tally *tally_read(struct batch *batch, const struct task *task)
{
    const struct tally_rows *rows = batch->backend->tally;
    struct database *database = batch->database;
    struct store_tally *tally = memory_alloc(sizeof *tally);
    char name[RECORDED_NAME_BYTES];
    struct str tool = recorded_name(str_from(task->tool), name);
    const struct tally_key all = {task->source, tool, ""},
                           owner = {task->source, tool, task->owner};
    int64_t since_ms = day_of(batch->now_ms) - (STORE_TALLY_DAYS - 1) * DAY_MS;
    bool done = rows->read(database, &all, since_ms, &tally->all) &&
                rows->read(database, &owner, since_ms, &tally->owner) &&
                rows->last(database, &all, task->id, tally) &&
                rows->same(database, &all, task, since_ms, tally);
    take_own(&tally->all, task, since_ms);
    take_own(&tally->owner, task, since_ms);
    if (done)
        return tally;
    tally_destroy(tally);
    return NULL;
}

void tally_destroy(struct store_tally *tally)
{
    if (!tally)
        return;
    free(tally->person);
    free(tally->reason);
    free(tally);
}
