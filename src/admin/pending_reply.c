/* Requests that wait for the store, and its answers as HTTP responses. */
#include "pending_reply.h"

#include <stdlib.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

#include "query.h"
#include "reply.h"

static void pending_reply_forget_exchange(void *context)
{
    struct pending_reply *pending = pending_reply_from(context);
    pending->exchange = NULL;
}

struct pending_reply *pending_reply_create(const struct request *request)
{
    struct pending_reply *pending = memory_alloc(sizeof *pending);
    MAGIC_SET(pending, PENDING_REPLY_MAGIC);
    pending->exchange = request->exchange;
    pending->snapshot = snapshot_ref(request->snapshot);
    pending->admin = request->admin;
    pending->who = request->who ? operator_ref(request->who) : NULL;
    pending->right = request->right;
    if (request->exchange)
        http_on_gone(request->exchange, pending_reply_forget_exchange, pending);
    return pending;
}

void pending_reply_destroy(struct pending_reply *pending)
{
    snapshot_unref(pending->snapshot);
    operator_unref(pending->who);
    free(pending->reason);
    free(pending->shown_digest);
    free(pending->typed);
    free(pending->reaction);
    free(pending->arguments);
    MAGIC_CLEAR(pending);
    free(pending);
}

struct http_exchange *pending_reply_take(struct pending_reply *pending)
{
    if (pending->exchange)
        http_on_gone(pending->exchange, NULL, NULL);
    return pending->exchange;
}

bool pending_reply_may_see(const struct pending_reply *pending, const struct store_reply *reply)
{
    return pending->right == RIGHT_ALL || !reply->task || operator_owns(pending->who, reply->task);
}

void pending_reply_unknown(struct http_exchange *exchange)
{
    reply_error(exchange, REPLY_NOT_FOUND, "there is no task with this id", NULL);
}

struct task_view pending_reply_view(const struct pending_reply *pending)
{
    return (struct task_view){.config = pending->snapshot->config,
                              .who = pending->who,
                              .worker = pending->admin->worker,
                              .with_history = pending->with_history};
}

void pending_reply_with_task(struct http_exchange *exchange, const struct store_reply *reply,
                             const struct pending_reply *pending)
{
    pending_reply_with_task_as(exchange, 200, reply, pending);
}

void pending_reply_with_task_as(struct http_exchange *exchange, int status,
                                const struct store_reply *reply,
                                const struct pending_reply *pending)
{
    struct task_view view = pending_reply_view(pending);
    struct buffer body;
    if (pending->right == RIGHT_ALL) /* it is about the calls of others, too */
        view.tally = reply->tally;
    switch (reply->status) {
    case STORE_OK:
        ASSERT(reply->task);
        buffer_init(&body);
        task_json_write(&body, reply->task, &view);
        reply_json(exchange, status, &body);
        buffer_finish(&body);
        break;
    case STORE_NOT_FOUND:
        pending_reply_unknown(exchange);
        break;
    case STORE_CONFLICT: {
        ASSERT(reply->task);
        const char *state = task_state_name(reply->task->state);
        OWNED char *message =
            memory_format("the task is %s%s%s and can no longer be decided that way", state,
                          *reply->task->decided_by ? ", decided by " : "", reply->task->decided_by);
        reply_error(exchange, REPLY_CONFLICT, message, state);
        break;
    }
    case STORE_REFUSED: /* a vote, which has answers of its own */
    case STORE_LIMIT_PRINCIPAL:
    case STORE_LIMIT_PRINCIPAL_BYTES:
    case STORE_LIMIT_TOTAL:
    case STORE_LIMIT_BYTES:
    case STORE_FAILED:
        reply_error(exchange, REPLY_UNAVAILABLE,
                    reply->is_unsure
                        ? "the database does not answer; it is not known whether the change was "
                          "stored, see the log"
                        : "the database does not answer; nothing was changed, see the log",
                    NULL);
        break;
    }
}

void pending_reply_with_page(struct pending_reply *pending, const struct store_reply *reply,
                             const struct pending_page *page)
{
    struct http_exchange *exchange = pending_reply_take(pending);
    OWNED_BUFFER(body);
    buffer_append_format(&body, "{\"%s\":[", page->name);
    for (size_t i = 0; i < page->count; i++) {
        if (i > 0)
            buffer_append_char(&body, ',');
        page->write(&body, reply, i, pending);
    }
    buffer_append_text(&body, "],\"nextCursor\":");
    if (reply->has_more) {
        char cursor[QUERY_CURSOR_BYTES];
        struct query_place last = {STORE_BY_CREATION, reply->last_sequence, 0};
        query_cursor(&last, cursor);
        buffer_append_format(&body, "\"%s\"}", cursor);
    } else {
        buffer_append_text(&body, "null}");
    }
    if (exchange && reply->status == STORE_OK)
        reply_json(exchange, 200, &body);
    else if (exchange)
        pending_reply_with_task(exchange, reply, pending);
    pending_reply_destroy(pending);
}

void pending_reply_list(const struct request *request, const char *what,
                        void (*list)(struct store *store, bool in_force_only,
                                     int64_t before_sequence, size_t limit, struct store_call call),
                        store_callback answer)
{
    struct query_lasting query = {.what = what};
    struct error error = {""};
    if (query_parse_lasting(&query, http_query(request->exchange), &error))
        list(request->admin->store, query.in_force_only, query.before_sequence, (size_t)query.limit,
             (struct store_call){request->admin->loop, answer, pending_reply_create(request)});
    else
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
}
