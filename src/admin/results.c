/*
 * The result of a task, waited for on request. A wait is a listener to the store's changes and
 * one timer: nothing is asked again meanwhile.
 */
#include "results.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/config/duration.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/gateway/control.h"

#include "feed.h"
#include "query.h"
#include "reply.h"

#define WAIT_MAX_MS 300000

struct wait {
    uint32_t magic;   /* WAIT_MAGIC while it lives */
    struct list node; /* in admin->waits */
    struct admin *admin;
    struct http_exchange *exchange; /* NULL once the client has gone while the store is asked */
    struct feed_listener listener;  /* from the read on */
    struct loop_timer timer;
    struct operator_identity *who;
    char id[TASK_ID_BYTES];
    int64_t wait_ms;
    int64_t seen;          /* number of the last event */
    enum task_state state; /* as last heard */
    bool is_own;           /* the call is their own */
    bool is_reading;
};
#define WAIT_MAGIC 0x3b8d60f5

static struct wait *results_wait_from(void *context)
{
    return MAGIC_CAST(struct wait, WAIT_MAGIC, context);
}

static void results_destroy(struct wait *wait)
{
    list_remove(&wait->node);
    list_remove(&wait->listener.node);
    loop_timer_stop(&wait->timer);
    operator_unref(wait->who);
    MAGIC_CLEAR(wait);
    free(wait);
}

static void results_client_gone(void *context)
{
    struct wait *wait = results_wait_from(context);
    wait->exchange = NULL;
    if (!wait->is_reading)
        results_destroy(wait);
}

/* ---- answers; each ends the wait ---- */

static void results_send(struct wait *wait, int status, struct buffer *body)
{
    http_on_gone(wait->exchange, NULL, NULL);
    reply_json(wait->exchange, status, body);
    buffer_finish(body);
    results_destroy(wait);
}

static void results_refuse(struct wait *wait, enum reply_error error, const char *message)
{
    http_on_gone(wait->exchange, NULL, NULL);
    reply_error(wait->exchange, error, message, NULL);
    results_destroy(wait);
}

static void answer_open(struct wait *wait)
{
    struct buffer body;
    buffer_init(&body);
    buffer_append_format(&body, "{\"id\":\"%s\",\"state\":\"%s\"}", wait->id,
                         task_state_name(wait->state));
    results_send(wait, 202, &body);
}

static void results_answer_ended(struct wait *wait, const struct task *task)
{
    struct buffer body;
    buffer_init(&body);
    buffer_append_format(&body, "{\"id\":\"%s\",\"state\":\"%s\",", task->id,
                         task_state_name(task->state));
    control_write_outcome(&body, task);
    buffer_append_char(&body, '}');
    results_send(wait, 200, &body);
}

/* ---- while it waits ---- */

/* Whether they may still see the task: by the same credentials, on this connection. */
static bool results_renew(struct wait *wait)
{
    struct snapshot *snapshot = snapshot_current();
    struct operator_identity *now = operator_renew(wait->admin->extra_token_sha256, wait->who);
    bool may_see = now && snapshot &&
                   client_certificate_suffices(wait->exchange, snapshot->config) &&
                   rights_of(now, ROUTE_results_get) >= (wait->is_own ? RIGHT_OWN : RIGHT_ALL);
    if (now) {
        operator_unref(wait->who);
        wait->who = now;
    }
    snapshot_unref(snapshot);
    return may_see;
}

static void refuse_gone(struct wait *wait)
{
    results_refuse(wait, REPLY_UNAUTHORIZED, "you may no longer see this task; sign in again");
}

/* Goes on with the task as it is now; false when the wait has ended with it. */
static bool results_take(struct wait *wait, struct task *task)
{
    wait->state = task->state;
    wait->is_own = operator_owns(wait->who, task);
    if (!results_renew(wait)) {
        refuse_gone(wait);
        return false;
    }
    if (task_state_is_terminal(task->state)) {
        results_answer_ended(wait, task);
        return false;
    }
    if (wait->admin->worker && wait->is_own && task->state == TASK_APPROVED)
        control_wants_result(wait->admin->worker, task);
    return true;
}

static void results_feed_changed(struct feed_listener *listener)
{
    struct wait *wait = LIST_ENTRY(listener, struct wait, listener);
    const struct feed_event *event;
    while ((event = feed_after(wait->admin->feed, wait->seen)) != NULL) {
        wait->seen = event->number;
        if (strcmp(event->task->id, wait->id) == 0 && !results_take(wait, event->task))
            return;
    }
}

static void time_is_up(void *context)
{
    struct wait *wait = results_wait_from(context);
    if (results_renew(wait))
        answer_open(wait);
    else
        refuse_gone(wait);
}

/* ---- from the request to the wait ---- */

static void results_begin(struct wait *wait)
{
    if (wait->wait_ms == 0 || wait->admin->shutting_down) {
        answer_open(wait);
        return;
    }
    /* On this loop the store's answer and its news come in order: none is missed. */
    wait->seen = feed_last_number(wait->admin->feed);
    feed_listen(wait->admin->feed, &wait->listener);
    loop_timer_start(&wait->timer, operator_delay_ms(wait->who, wait->wait_ms));
}

static void results_on_read(void *context, const struct store_reply *reply)
{
    struct wait *wait = results_wait_from(context);
    wait->is_reading = false;
    if (!wait->exchange)
        results_destroy(wait);
    else if (reply->status == STORE_NOT_FOUND ||
             (reply->status == STORE_OK && rights_of(wait->who, ROUTE_results_get) < RIGHT_ALL &&
              !operator_owns(wait->who, reply->task)))
        results_refuse(wait, REPLY_NOT_FOUND, "there is no task with this id");
    else if (reply->status != STORE_OK)
        results_refuse(wait, REPLY_UNAVAILABLE, "the database does not answer, see the log");
    else if (results_take(wait, reply->task))
        results_begin(wait);
}

static bool read_wait(struct str query, int64_t *wait_ms, struct error *error)
{
    OWNED_BUFFER(text);
    *wait_ms = 0;
    bool is_good = query_parse_single(&text, query, "wait", error) &&
                   (text.length == 0 || duration_parse(buffer_str(&text), wait_ms, error));
    if (is_good && *wait_ms > WAIT_MAX_MS)
        is_good = error_set(error, "wait is longer than 5m");
    return is_good;
}

void results_get(const struct request *request)
{
    struct admin *admin = request->admin;
    struct error error = {""};
    int64_t wait_ms;
    if (!read_wait(http_query(request->exchange), &wait_ms, &error)) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
        return;
    }
    if (request->id.length >= TASK_ID_BYTES) {
        reply_error(request->exchange, REPLY_NOT_FOUND, "there is no task with this id", NULL);
        return;
    }
    struct wait *wait = memory_alloc(sizeof *wait);
    MAGIC_SET(wait, WAIT_MAGIC);
    wait->admin = admin;
    wait->exchange = request->exchange;
    wait->who = operator_ref(request->who);
    wait->listener.changed = results_feed_changed;
    wait->wait_ms = wait_ms;
    wait->is_reading = true;
    memcpy(wait->id, request->id.bytes, request->id.length);
    list_append(&admin->waits, &wait->node);
    list_init(&wait->listener.node);
    loop_timer_init(&wait->timer, admin->loop, time_is_up, wait);
    http_on_gone(request->exchange, results_client_gone, wait);
    store_task_get(admin->store, request->id,
                   (struct store_call){admin->loop, results_on_read, wait});
}

void results_renew_all(struct admin *admin)
{
    LIST_FOR_EACH_SAFE (node, next, &admin->waits) {
        struct wait *wait = LIST_ENTRY(node, struct wait, node);
        if (!wait->is_reading && !results_renew(wait))
            refuse_gone(wait);
    }
}

void results_end_of(struct admin *admin, const char *sha256)
{
    LIST_FOR_EACH_SAFE (node, next, &admin->waits) {
        struct wait *wait = LIST_ENTRY(node, struct wait, node);
        if (!wait->is_reading && strcmp(wait->who->sha256, sha256) == 0)
            results_refuse(wait, REPLY_UNAUTHORIZED, "the session is over; sign in again");
    }
}

void results_visit_sessions(struct admin *admin,
                            void (*visit)(struct admin *admin, const char *sha256))
{
    LIST_FOR_EACH_SAFE (node, next, &admin->waits) {
        const struct wait *wait = LIST_ENTRY(node, struct wait, node);
        if (wait->who->is_session)
            visit(admin, wait->who->sha256);
    }
}

void results_end_all(struct admin *admin)
{
    LIST_FOR_EACH_SAFE (node, next, &admin->waits) {
        struct wait *wait = LIST_ENTRY(node, struct wait, node);
        if (!wait->is_reading)
            answer_open(wait);
    }
}
