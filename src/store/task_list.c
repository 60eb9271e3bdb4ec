/* Lists of tasks, a page at a time. */

#include "queue.h"
#include "task_operations.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

#define MOST_BYTES ((size_t)1024 * 1024)
/* Rows that are looked at for one page, when not all of them are listed. */
#define MOST_ROWS 5000

struct page {
    const struct store_task_query *query;
    struct store_reply *reply;
    size_t bytes, looked_at;
};

/* Takes the task onto the page, if it is listed. false: the page is full. */
static bool task_list_look(void *context, struct task *task, int64_t sequence)
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
    ASSERT_NUMBERS(reply->task_count, <, query->limit);
    reply->sequences[reply->task_count] = sequence;
    reply->tasks[reply->task_count++] = task;
    return true;
}

/* A sweep has not come to some of what is due: on the page it has ended as well. */
static bool expire_listed(struct batch *batch, const struct store_task_query *query,
                          struct store_reply *reply)
{
    size_t kept = 0;
    bool done = true;
    for (size_t i = 0; i < reply->task_count; i++) {
        struct task *listed = reply->tasks[i], *task = NULL;
        struct task_change change;
        struct error error;
        if (done && task_due(listed, batch->now_ms, &change)) {
            done = task_operations_load(batch, str_from(listed->id), &task) != ROW_FAILED;
            task_transition(listed, &change, batch->now_ms, &error);
        }
        task_unref(task);
        if (query->states != 0 && !(query->states & (1U << listed->state))) {
            task_unref(listed);
            continue;
        }
        reply->sequences[kept] = reply->sequences[i];
        reply->tasks[kept++] = listed;
    }
    ASSERT_NUMBERS(kept, <=, reply->task_count);
    reply->task_count = kept;
    return done;
}

static bool run_task_list_list(struct batch *batch, struct operation *operation)
{
    const struct store_task_query *query = &operation->query;
    struct store_reply *reply = &operation->reply;
    struct page page = {.query = query, .reply = reply};
    bool has_more;
    if (query->accepts)
        query->accepts(query->context, NULL);
    if (!task_operations_expire(batch, &has_more))
        return false;
    reply->tasks = memory_alloc_array(query->limit + 1, sizeof(struct task *));
    reply->sequences = memory_alloc_array(query->limit + 1, sizeof *reply->sequences);
    if (query->is_of_waiting)
        return rows_number(batch->database, STATEMENT_TASK_WAITING_COUNT,
                           VALUES(NUMBER(batch->now_ms)), &reply->waiting) &&
               task_rows_list_waiting(batch->database, query, task_list_look, &page);
    /* One more: has_more. */
    size_t limit = query->accepts ? MOST_ROWS : query->limit + 1;
    if (!task_rows_list(batch->database, query, limit, task_list_look, &page) ||
        !expire_listed(batch, query, reply))
        return false;
    reply->has_more = reply->has_more || (query->accepts && page.looked_at == MOST_ROWS);
    return true;
}

static void task_list_finish(struct operation *operation)
{
    if (operation->query.release)
        operation->query.release(operation->query.context);
}

static const struct operation_kind operation_task_list = {"list", false, run_task_list_list,
                                                          task_list_finish};

static struct str task_list_keep(struct operation *operation, struct str text)
{
    return str_slice(operation_keep(operation, text), text.length);
}

void store_task_list(struct store *store, const struct store_task_query *query,
                     struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_list, call);
    struct store_task_query *copy = &operation->query;
    *copy = *query;
    copy->owner = task_list_keep(operation, query->owner);
    copy->session = task_list_keep(operation, query->session);
    copy->source = task_list_keep(operation, query->source);
    copy->tool = task_list_keep(operation, query->tool);
    copy->workflow = task_list_keep(operation, query->workflow);
    copy->principal = task_list_keep(operation, query->principal);
    store_queue(store, operation);
}
