/* The handling of each kind of news. */
#include "replica_news.h"

#include <stdio.h>
#include <stdlib.h>

#include "call/broadcast.h"
#include "client/legacy_stream.h"
#include "client/listen.h"
#include "conversation/question.h"
#include "conversation/rounds.h"
#include "methods/cancelled.h"
#include "taskgate/core/memory.h"
#include "taskgate/mcp/dialect.h"
#include "taskgate/store/store.h"
#include "tools/repeated_news.h"

/* Replicas are given a new configuration one after the other: clients are told once for those that
 * tell of it within this time. */
#define GATHER_MS 1000

/* Every worker hears of what happens in the process. One tells it to others. */
static bool is_first(const struct gateway_worker *worker)
{
    return worker == worker->gateway->workers[0];
}

/* ---- from here ---- */

void replica_news_send_tools(struct gateway_worker *worker)
{
    if (is_first(worker))
        news_send(worker, &(struct news){.kind = NEWS_TOOLS_CHANGED});
}

void replica_news_send_asks(struct gateway_worker *worker, const struct task *task)
{
    struct news news = {.kind = NEWS_TASK_ASKS};
    struct dialect_view view = {.is_asking = false};
    struct buffer requests, questions;
    if (!is_first(worker) || !worker->gateway->replicas)
        return;
    buffer_init(&requests);
    buffer_init(&questions);
    question_view(worker->gateway, task, &view, &questions);
    rounds_show(worker->gateway->questions, str_from(task->id), &requests, &view.changed_ms);
    snprintf(news.task, sizeof news.task, "%s", task->id);
    news.requests = buffer_str(&requests);
    news.questions = view.pending_elicitations;
    news.is_asking = view.is_asking;
    news.changed_ms = view.changed_ms;
    news_send(worker, &news);
    buffer_finish(&requests);
    buffer_finish(&questions);
}

/* ---- from others ---- */

static void tell_of_tools(void *context)
{
    struct gateway_worker *worker = gateway_worker_from(context);
    legacy_streams_send_list_changed(worker);
    listens_send_list_changed(worker);
}

static void take_tools(struct gateway_worker *worker, const struct news *news)
{
    (void)news;
    if (!loop_timer_is_running(&worker->tools_changed_timer))
        loop_timer_start(&worker->tools_changed_timer, GATHER_MS);
}

/* A task of which another replica has told, while it is read. */
struct told_task {
    struct gateway_worker *worker;
    struct news news; /* its texts are owned */
};

static void told_destroy(struct told_task *told)
{
    broadcast_release(told->news.questions);
    free(told);
}

/* The change to executing is in the feed as well, and may come later. */
static void on_told_task(void *context, const struct store_reply *reply)
{
    struct told_task *told = context;
    if (reply->status == STORE_OK && reply->task->state == TASK_EXECUTING) {
        const struct dialect_view view = {.is_asking = told->news.is_asking,
                                          .changed_ms = told->news.changed_ms,
                                          .pending_elicitations = told->news.questions};
        legacy_streams_send_view(told->worker, reply->task, &view);
    }
    told_destroy(told);
}

static void take_asks(struct gateway_worker *worker, const struct news *news)
{
    listens_note_news(worker, news);
    if (list_is_empty(&worker->streams) || atomic_load(&worker->gateway->shutting_down))
        return;
    struct told_task *told = memory_alloc(sizeof *told);
    told->worker = worker;
    told->news = *news;
    told->news.requests = told->news.wait = told->news.call = STR_EMPTY;
    told->news.questions = broadcast_copy(news->questions);
    store_task_get(worker->gateway->store, str_from(told->news.task),
                   (struct store_call){worker->loop, on_told_task, told});
}

static void take_wanted(struct gateway_worker *worker, const struct news *news)
{
    struct news asks = {.kind = NEWS_TASK_ASKS};
    struct buffer requests;
    if (!is_first(worker))
        return;
    buffer_init(&requests);
    snprintf(asks.task, sizeof asks.task, "%s", news->task);
    if (rounds_show(worker->gateway->questions, str_from(news->task), &requests,
                    &asks.changed_ms)) {
        asks.requests = buffer_str(&requests);
        news_send(worker, &asks);
    }
    buffer_finish(&requests);
}

void replica_news_take(struct gateway_worker *worker, const struct news *news)
{
    static void (*const takers[NEWS_COUNT])(struct gateway_worker * worker,
                                            const struct news *news) = {
        [NEWS_TOOLS_CHANGED] = take_tools,         [NEWS_TASK_ASKS] = take_asks,
        [NEWS_TASK_WANTED] = take_wanted,          [NEWS_WAIT_OVER] = cancelled_take_news,
        [NEWS_REPEATED_CALL] = repeated_news_take,
    };
    takers[news->kind](worker, news);
}

/* ---- the worker ---- */

void replica_news_worker_init(struct gateway_worker *worker)
{
    list_init(&worker->news);
    list_init(&worker->pulses);
    loop_timer_init(&worker->tools_changed_timer, worker->loop, tell_of_tools, worker);
}

void replica_news_worker_close(struct gateway_worker *worker)
{
    loop_timer_stop(&worker->tools_changed_timer);
    news_drop(worker);
}
