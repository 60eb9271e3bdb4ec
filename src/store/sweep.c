/* Work of the store that nobody asks for: deadlines, purging. */
#include <stdlib.h>

#include "grants.h"
#include "reminders.h"
#include "replica.h"
#include "task_operations.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"

/* Per batch, so that callers never wait behind a long one; the rest follows at once. Each task asks
 * the database, which may be far away or busy: hence the time. */
#define EXPIRE_LIMIT 64
#define EXPIRE_MOST_MS 20
#define PURGE_LIMIT 64
#define REMIND_LIMIT 64
/* How long sessions that nobody uses are remembered. */
#define SESSION_RETENTION_MS INT64_C(2592000000)

static bool expire(struct batch *batch, const char *id)
{
    struct task *task = NULL;
    enum row_result result = task_operations_load(batch, str_from(id), &task);
    task_unref(task);
    return result != ROW_FAILED;
}

bool task_operations_expire(struct batch *batch, size_t limit, int64_t most_ms, bool *has_more)
{
    struct id_list list = {.count = 0};
    int64_t begun_ms = clock_monotonic_ms();
    bool done = batch->backend->tasks->find_due(batch->database, batch->now_ms, limit, &list);
    size_t expired = 0;
    while (done && expired < list.count && clock_monotonic_ms() - begun_ms <= most_ms)
        done = expire(batch, list.ids[expired++]);
    *has_more = list.count == limit || expired < list.count;
    free(list.ids);
    return done;
}

/* A gauge, for an alarm: the number of waiting tasks says nothing of a busy queue. */
struct measuring {
    int64_t now_ms;
};

static void measure(void *context, struct str workflow, int64_t created_ms)
{
    const struct measuring *measuring = context;
    int64_t waited_ms = measuring->now_ms - created_ms;
    metrics_set(METRIC_TASKS_OLDEST_PENDING, (double)waited_ms / 1000, METRIC_LABELS(workflow));
}

/* It looks at every task that waits. So where one sweep follows another, as long as a backlog
 * lasts, not each of them measures. */
#define MEASURE_INTERVAL_MS 5000

static bool measure_oldest(struct batch *batch, bool is_backlog)
{
    int64_t *measured_ms = &batch->replica->oldest_measured_ms;
    if (is_backlog && batch->now_ms - *measured_ms < MEASURE_INTERVAL_MS)
        return true;
    *measured_ms = batch->now_ms;
    metrics_reset(METRIC_TASKS_OLDEST_PENDING);
    return batch->backend->tasks->find_oldest(batch->database, measure,
                                              &(struct measuring){batch->now_ms});
}

static bool run_sweep(struct batch *batch, struct operation *operation)
{
    (void)operation;
    const struct store_backend *backend = batch->backend;
    int64_t before_ms = batch->now_ms - SESSION_RETENTION_MS;
    size_t events_before = batch->event_count, purged = 0;
    int64_t used_bytes;
    if (backend->used_bytes(batch->database, &used_bytes))
        metrics_set(METRIC_STORE_BYTES, (double)used_bytes, NULL);
    if (!replica_holds(batch, LEASE_SWEEP))
        return measure_oldest(batch, false);
    bool has_more = false;
    bool done = task_operations_expire(batch, EXPIRE_LIMIT, EXPIRE_MOST_MS, &has_more) &&
                backend->tasks->purge(batch->database, batch->now_ms, PURGE_LIMIT, &purged);
    bool has_expired = batch->event_count > events_before;
    bool is_backlog = (has_more && has_expired) || purged == PURGE_LIMIT;
    done = done && backend->sessions->purge(batch->database, before_ms) &&
           (!backend->is_shared || backend->replicas->home_purge(batch->database, before_ms)) &&
           backend->sessions->sign_in_purge(batch->database, batch->now_ms) &&
           backend->sessions->attempt_purge(batch->database, batch->now_ms) &&
           grants_sweep(batch) && audit_purge(batch) && audit_anchor(batch) &&
           measure_oldest(batch, is_backlog);
    if (is_backlog)
        batch->sweep_again_ms = batch->now_ms;
    else
        done = done && backend->tasks->next_deadline(batch->database, batch->now_ms,
                                                     &batch->sweep_again_ms);
    int64_t grant_ms = INT64_MAX;
    done = done && grants_next_end(batch, &grant_ms);
    if (grant_ms < batch->sweep_again_ms)
        batch->sweep_again_ms = grant_ms;
    done = done && reminders_send(batch, REMIND_LIMIT);
    int64_t audit_ms = audit_sweep_again_ms(batch);
    if (audit_ms < batch->sweep_again_ms)
        batch->sweep_again_ms = audit_ms;
    return done;
}

/* A write for its own sake: tells whether a database that has failed works again. */
static bool run_probe(struct batch *batch, struct operation *operation)
{
    (void)operation;
    return batch->backend->probe(batch->database, batch->now_ms);
}

const struct operation_kind operation_sweep = {"sweep", true, run_sweep};
const struct operation_kind operation_probe = {"probe", true, run_probe};
