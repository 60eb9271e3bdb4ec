/* Lists of tasks, a page at a time. */
#include <stdlib.h>

#include "task_operations.h"
#include "taskgate/core/memory.h"

/* More than can ever be due at once under the default limits. */
#define EXPIRE_BEFORE_LIST 100000
#define MOST_BYTES ((size_t)1024 * 1024)
/* Rows that are looked at for one page, when not all of them are listed. */
#define MOST_ROWS 5000

struct page {
    const struct store_task_query *query;
    struct store_reply *reply;
    size_t bytes, looked_at;
};

/* Takes the task onto the page, if it is listed. false: the page is full. */
static bool look(void *context, struct task *task, int64_t sequence)
{
    struct page *page = context;
    const struct store_task_query *query = page->query;
    struct store_reply *reply = page->reply;
    size_t most_bytes = query->most_bytes > 0 ? query->most_bytes : MOST_BYTES;
    if (reply->task_count == query->limit || page->bytes > most_bytes) {
        reply->has_more = true;
        task_unref(task);
        return false;
    }
    page->bytes += operation_task_bytes(task);
    page->looked_at++;
    reply->last_sequence = sequence;
    reply->last_decide_by_ms = task->decide_by_ms > 0 ? task->decide_by_ms : INT64_MAX;
    if (query->accepts && !query->accepts(query->context, task)) {
        task_unref(task);
        return true;
    }
    reply->sequences[reply->task_count] = sequence;
    reply->tasks[reply->task_count++] = task;
    return true;
}

static bool run_list(struct batch *batch, struct operation *operation)
{
    const struct store_task_query *query = operation->query;
    struct store_reply *reply = &operation->reply;
    struct page page = {.query = query, .reply = reply};
    bool has_more;
    if (!task_operations_expire(batch, EXPIRE_BEFORE_LIST, INT64_MAX, &has_more))
        return false;
    reply->tasks = memory_alloc_array(query->limit + 1, sizeof(struct task *));
    reply->sequences = memory_alloc_array(query->limit + 1, sizeof *reply->sequences);
    /* One more: has_more. */
    size_t limit = query->accepts ? MOST_ROWS : query->limit + 1;
    if (!batch->backend->tasks->list(batch->database, query, limit, look, &page))
        return false;
    reply->has_more = reply->has_more || (query->accepts && page.looked_at == MOST_ROWS);
    return true;
}

const struct operation_kind operation_task_list = {"list", false, run_list};
