/* The gateway's own tasks on a listen stream: where each stands, and each change of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "listen.h"
#include "listen_internal.h"
#include "own_task.h"
#include "relay/relay.h"
#include "replicas/news.h"
#include "run/execution.h"
#include "run/task_rounds.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

static struct listened_task *find(struct listening *listening, struct str id)
{
    for (size_t i = 0; i < listening->task_count; i++) {
        if (str_equal(str_from(listening->tasks[i].id), id))
            return &listening->tasks[i];
    }
    return NULL;
}

/* ---- what is asked for ---- */

static void add(struct listening *listening, struct str id)
{
    if (!task_id_is_ours(id) || id.length >= TASK_ID_BYTES ||
        memchr(id.bytes, '\0', id.length) != NULL || find(listening, id))
        return;
    listening->tasks =
        memory_grow_array(listening->tasks, listening->task_count + 1, sizeof *listening->tasks);
    struct listened_task *listened = &listening->tasks[listening->task_count++];
    memset(listened, 0, sizeof *listened);
    memcpy(listened->id, id.bytes, id.length);
}

void listen_tasks_init(struct listening *listening, struct str task_ids)
{
    struct str element;
    struct buffer id;
    buffer_init(&id);
    for (size_t position = 0; json_next_element(task_ids, &position, &element);) {
        buffer_clear(&id);
        json_decode_string(element, &id);
        add(listening, buffer_str(&id));
    }
    buffer_finish(&id);
}

/* ---- reading ---- */

static void read_next(struct call *call);

static void leave_out(struct listening *listening, size_t at)
{
    memmove(&listening->tasks[at], &listening->tasks[at + 1],
            (listening->task_count - at - 1) * sizeof *listening->tasks);
    listening->task_count--;
}

/* Another replica may run it, and knows what its server has asked before. */
static void ask_others(const struct call *call, const struct task *task)
{
    struct news news = {.kind = NEWS_TASK_WANTED};
    snprintf(news.task, sizeof news.task, "%s", task->id);
    news_send(call->worker, &news);
}

/* A client that listens waits for the result. Its credentials are fresh. */
static void take(struct call *call, struct listened_task *listened, struct task *task)
{
    if (task->state == TASK_EXECUTING)
        ask_others(call, task);
    if (execution_offer(call, task, true))
        listened->task = task_ref(task);
    else
        listened->task = own_task_not_run(task);
}

static void on_read(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct listening *listening = call->exchange ? listening_find(call) : NULL;
    if (listening && reply->status == STORE_FAILED) {
        own_task_answer_no_store(call);
    } else if (listening) {
        struct listened_task *listened = &listening->tasks[listening->read_count];
        bool is_clients = reply->task && strcmp(reply->task->id, listened->id) == 0 &&
                          call_owns(call, reply->task);
        if (is_clients) {
            take(call, listened, reply->task);
            listening->read_count++;
        } else {
            leave_out(listening, listening->read_count);
        }
        read_next(call);
    }
    call_unref(call);
}

/* One after the other. A change comes behind the answer that does not have it. */
static void read_next(struct call *call)
{
    struct listening *listening = listening_find(call);
    if (listening->read_count == listening->task_count)
        listening->tasks_read(call);
    else
        store_task_get(call->worker->gateway->store,
                       str_from(listening->tasks[listening->read_count].id),
                       call_to_store(call, on_read));
}

void listen_tasks_read(struct call *call, call_step next)
{
    listening_find(call)->tasks_read = next;
    read_next(call);
}

/* ---- telling ---- */

void listen_tasks_write_ids(const struct listening *listening, struct buffer *out)
{
    for (size_t i = 0; i < listening->task_count; i++)
        buffer_append_format(out, "%s\"%s\"", i > 0 ? "," : "", listening->tasks[i].id);
}

/* The same news are told once. */
static bool is_news(struct listened_task *listened, struct str message)
{
    char digest[DIGEST_HEX_BYTES];
    digest_sha256_hex(message, digest);
    if (strcmp(digest, listened->told) == 0)
        return false;
    memcpy(listened->told, digest, sizeof digest);
    return true;
}

/* The server's questions: of a call that runs here, or else as another replica has told. */
static void look_at_requests(const struct listening *listening,
                             const struct listened_task *listened, struct dialect_view *view,
                             struct buffer *requests)
{
    struct task_rounds *rounds = listening->call->worker->gateway->task_rounds;
    if (listened->task->state != TASK_EXECUTING)
        return;
    if (task_rounds_show(rounds, str_from(listened->id), requests, &view->changed_ms)) {
        view->input_requests = buffer_str(requests);
    } else if (listened->asked_sequence > 0) {
        view->input_requests = buffer_str(&listened->asked);
        view->changed_ms = listened->asked_ms;
    }
}

static void tell(struct listening *listening, struct listened_task *listened)
{
    struct call *call = listening->call;
    struct dialect_view view = {.now_ms = clock_now_ms()};
    struct buffer message, requests;
    buffer_init(&message);
    buffer_init(&requests);
    look_at_requests(listening, listened, &view, &requests);
    dialect_modern_write_notification(&message, listened->task, &view, call->envelope.id);
    if (is_news(listened, buffer_str(&message)))
        relay_pass(call, buffer_str(&message));
    buffer_finish(&requests);
    buffer_finish(&message);
}

void listen_tasks_tell(struct listening *listening)
{
    for (size_t i = 0; i < listening->task_count; i++)
        tell(listening, &listening->tasks[i]);
}

/* ---- changes ---- */

static void note(struct listening *listening, struct task *task)
{
    struct listened_task *listened = find(listening, str_from(task->id));
    if (!listened || !listened->task)
        return;
    task_unref(listened->task);
    listened->task = task_ref(task);
    if (listening->is_open)
        tell(listening, listened);
    if (task->state == TASK_APPROVED && task->on_result)
        execution_offer(listening->call, task, true);
}

void listen_note_task(struct gateway_worker *worker, struct task *task)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->listens) {
        note(LIST_ENTRY(node, struct listening, node), task);
    }
}

void listen_note_requests(struct gateway_worker *worker, const struct task *task)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->listens) {
        struct listening *listening = LIST_ENTRY(node, struct listening, node);
        struct listened_task *listened = find(listening, str_from(task->id));
        if (listened && listened->task && listening->is_open)
            tell(listening, listened);
    }
}

static void note_news(struct listening *listening, const struct news *news)
{
    struct listened_task *listened = find(listening, str_from(news->task));
    if (!listened || news->sequence <= listened->asked_sequence)
        return;
    buffer_clear(&listened->asked);
    buffer_append(&listened->asked, news->requests);
    listened->asked_ms = news->changed_ms;
    listened->asked_sequence = news->sequence;
    if (listened->task && listening->is_open)
        tell(listening, listened);
}

void listen_note_news(struct gateway_worker *worker, const struct news *news)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->listens) {
        note_news(LIST_ENTRY(node, struct listening, node), news);
    }
}
