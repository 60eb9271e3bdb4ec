/* Reading tasks: one, or a page of them. */
#include "internal.h"

#include "taskgate/core/owned.h"
#include "taskgate/store/tally.h"

#include "pending_reply.h"
#include "query.h"
#include "reply.h"
#include "task_filter.h"
#include "task_json.h"

#define TAIL_BYTES 128 /* behind the tasks of a page */

static void tasks_answer_task(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    struct http_exchange *exchange = pending_reply_take(pending);
    if (exchange && !pending_reply_may_see(pending, reply))
        pending_reply_unknown(exchange);
    else if (exchange)
        pending_reply_with_task(exchange, reply, pending);
    pending_reply_destroy(pending);
}

void tasks_get(const struct request *request)
{
    struct pending_reply *pending = pending_reply_create(request);
    pending->with_history = true;
    store_task_get_with_tally(
        request->admin->store, request->id,
        (struct store_call){request->admin->loop, tasks_answer_task, pending});
}

/* The tasks that fit. Returns how many these are. */
static size_t write_tasks(struct buffer *body, const struct store_reply *reply,
                          const struct task_view *view)
{
    size_t count = 0;
    for (; count < reply->task_count; count++) {
        size_t start = body->length;
        if (count > 0)
            buffer_append_char(body, ',');
        task_json_write(body, reply->tasks[count], view);
        if (count > 0 && body->length + TAIL_BYTES > QUERY_PAGE_BYTES_MAX) {
            body->length = start;
            break;
        }
    }
    return count;
}

static struct query_place tasks_place_of(const struct store_reply *reply, size_t i)
{
    int64_t decide_by_ms = reply->tasks[i]->decide_by_ms;
    return (struct query_place){.sequence = reply->sequences[i],
                                .decide_by_ms = decide_by_ms > 0 ? decide_by_ms : INT64_MAX};
}

static void tasks_write_list(struct buffer *body, const struct store_reply *reply,
                             const struct task_view *view, enum store_task_order order)
{
    buffer_append(body, STR("{\"tasks\":["));
    size_t count = write_tasks(body, reply, view);
    buffer_append(body, STR("],\"nextCursor\":"));
    bool is_cut = count < reply->task_count;
    if (reply->has_more || is_cut) {
        char cursor[QUERY_CURSOR_BYTES];
        struct query_place last = {.sequence = reply->last_sequence,
                                   .decide_by_ms = reply->last_decide_by_ms};
        if (is_cut)
            last = tasks_place_of(reply, count - 1);
        last.order = order;
        query_cursor(&last, cursor);
        buffer_append_format(body, "\"%s\"}", cursor);
    } else {
        buffer_append(body, STR("null}"));
    }
}

static void tasks_answer_list(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    struct http_exchange *exchange = pending_reply_take(pending);
    if (exchange && reply->status == STORE_OK) {
        const struct task_view view = pending_reply_view(pending);
        OWNED_BUFFER(body);
        tasks_write_list(&body, reply, &view, pending->order);
        reply_json(exchange, 200, &body);
    } else if (exchange) {
        pending_reply_with_task(exchange, reply, pending);
    }
    pending_reply_destroy(pending);
}

void tasks_list(const struct request *request)
{
    struct task_list_query query;
    struct error error = {""};
    if (query_parse(&query, http_query(request->exchange), &error)) {
        struct pending_reply *pending = pending_reply_create(request);
        const struct task_view view = pending_reply_view(pending);
        task_filter_add(&query, &view);
        pending->order = query.filter.order;
        store_task_list(request->admin->store, &query.filter,
                        (struct store_call){request->admin->loop, tasks_answer_list, pending});
    } else {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
    }
    query_finish(&query);
}
