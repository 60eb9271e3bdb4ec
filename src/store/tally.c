/* Counting what becomes of calls, and reading it for one of them. */
#include "tally.h"

#include <stdlib.h>

#include "taskgate/core/assert.h"
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

/* Calls of one tool: of one owner, or "": of all. The name of the tool is as the trail has it. */
struct key {
    const char *source;
    struct str tool;
    const char *owner;
};

/* To a day of `other`, and to that of the owner in the key, `times` times. */
static bool tally_add(struct batch *batch, const struct key *key, const char *other, int times,
                      int64_t at_ms, const struct store_tally_counts *counts)
{
    ASSERT(times == 1 || times == -1);
    return rows_write(batch->database, STATEMENT_TALLY_ADD,
                      VALUES(TEXT(key->source), STRING(key->tool), TEXT(key->owner),
                             NUMBER(day_of(at_ms)), NUMBER(counts->approved),
                             NUMBER(counts->rejected), NUMBER(counts->expired),
                             NUMBER(counts->failed), TEXT(other), NUMBER(times)));
}

bool tally_note_moved(struct batch *batch, const struct task *task, enum task_state from)
{
    struct store_tally_counts counts = {0, 0, 0, 0};
    char name[RECORDED_NAME_BYTES];
    counts.approved = from == TASK_PENDING && task->state == TASK_APPROVED;
    count_end(&counts, task->state);
    if (counts.approved + counts.rejected + counts.expired + counts.failed == 0)
        return true;
    const struct key key = {task->source, recorded_name(str_from(task->tool), name), task->owner};
    return tally_add(batch, &key, "", 1, task->updated_ms, &counts);
}

bool tally_hand_over(struct batch *batch, const char *source, const char *owner, const char *heir,
                     const struct ended_task *task)
{
    const struct store_tally_counts approval = {.approved = 1};
    struct store_tally_counts end = {0, 0, 0, 0};
    char name[RECORDED_NAME_BYTES];
    const struct key key = {source, recorded_name(task->tool, name), owner};
    count_end(&end, task->state);
    return (task->approved_ms == 0 ||
            tally_add(batch, &key, heir, -1, task->approved_ms, &approval)) &&
           (end.rejected + end.expired + end.failed == 0 ||
            tally_add(batch, &key, heir, -1, task->ended_ms, &end));
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

/* ---- reading ---- */

static bool read_counts(struct batch *batch, const struct key *key, int64_t since_ms,
                        struct store_tally_counts *counts)
{
    static const struct column columns[] = {
        {"approved", COLUMN_NUMBER, offsetof(struct store_tally_counts, approved)},
        {"rejected", COLUMN_NUMBER, offsetof(struct store_tally_counts, rejected)},
        {"expired", COLUMN_NUMBER, offsetof(struct store_tally_counts, expired)},
        {"failed", COLUMN_NUMBER, offsetof(struct store_tally_counts, failed)},
    };
    static const struct record record = {.columns = columns, .count = 4};
    return rows_find(
               batch->database, STATEMENT_TALLY_READ,
               VALUES(TEXT(key->source), STRING(key->tool), TEXT(key->owner), NUMBER(since_ms)),
               &record, counts) == ROW_FOUND;
}

struct reading {
    struct store_tally *tally;
};

static bool tally_take_last(void *context, const struct value *row)
{
    struct store_tally *tally = ((const struct reading *)context)->tally;
    tally->has_last = true;
    tally->state = str_equal(row[0].text, STR("approve")) ? TASK_APPROVED : TASK_REJECTED;
    tally->decided_ms = row[1].number;
    tally->person = memory_copy_str(row[2].text);
    tally->reason = memory_copy_str(row[3].text);
    return false;
}

static bool take_same(void *context, const struct value *row)
{
    struct store_tally *tally = ((const struct reading *)context)->tally;
    tally->same_approved = row[0].number;
    tally->same_ms = row[1].number;
    return false;
}

bool tally_read(struct batch *batch, const struct task *task, struct store_tally **read)
{
    struct store_tally *tally = *read = memory_alloc(sizeof *tally);
    char name[RECORDED_NAME_BYTES];
    struct str tool = recorded_name(str_from(task->tool), name);
    const struct key all = {task->source, tool, ""}, owner = {task->source, tool, task->owner};
    int64_t since_ms = day_of(batch->now_ms) - (STORE_TALLY_DAYS - 1) * DAY_MS;
    struct reading reading = {tally};
    bool done = read_counts(batch, &all, since_ms, &tally->all) &&
                read_counts(batch, &owner, since_ms, &tally->owner) &&
                rows_read(batch->database, STATEMENT_TALLY_LAST,
                          VALUES(TEXT(task->source), STRING(tool), TEXT(task->id)), tally_take_last,
                          &reading) &&
                rows_read(batch->database, STATEMENT_TALLY_SAME,
                          VALUES(TEXT(task->arguments_digest), TEXT(task->source), STRING(tool),
                                 NUMBER(since_ms), TEXT(task->id), NUMBER(STORE_TALLY_SAME_MOST)),
                          take_same, &reading);
    take_own(&tally->all, task, since_ms);
    take_own(&tally->owner, task, since_ms);
    return done;
}
