/* A ring of the latest changes, filled by the store's observer. */
#include "feed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/store/replicas.h"
#include "taskgate/task/task.h"
#include "taskgate/telemetry/task_trace.h"

/* Calls and results may be large, so the kept changes are bounded in bytes as well. */
#define KEPT_EVENTS 512
#define KEPT_BYTES ((size_t)32 * 1024 * 1024)

struct feed {
    uint32_t magic;                      /* FEED_MAGIC while it lives */
    struct feed_event ring[KEPT_EVENTS]; /* an event's place is its index modulo the size */
    int64_t first, next;                 /* indexes: [first, next) are kept */
    int64_t last_number;                 /* of the last event */
    bool is_shared;                      /* its numbers are those of all replicas */
    size_t kept_bytes;
    struct list listeners;
};
#define FEED_MAGIC 0xfeed0c4b

static struct feed *feed_from(void *context)
{
    return MAGIC_CAST(struct feed, FEED_MAGIC, context);
}

static struct feed_event *event_at(const struct feed *feed, int64_t index)
{
    return (struct feed_event *)&feed->ring[index % KEPT_EVENTS];
}

static size_t feed_size_of(const struct task *task)
{
    return task->request_length + strlen(task->arguments) + strlen(task->meta) +
           strlen(task->other_params) + strlen(task->shown) + task->outcome_length;
}

static void drop_oldest(struct feed *feed)
{
    ASSERT_NUMBERS(feed->first, <, feed->next);
    struct task *task = event_at(feed, feed->first++)->task;
    ASSERT_NUMBERS(feed_size_of(task), <=, feed->kept_bytes);
    feed->kept_bytes -= feed_size_of(task);
    task_unref(task);
}

static void append_event(struct feed *feed, struct task *task, int64_t number)
{
    if (feed->next - feed->first == KEPT_EVENTS)
        drop_oldest(feed);
    *event_at(feed, feed->next++) = (struct feed_event){number, task_ref(task)};
    ASSERT_NUMBERS(feed->next - feed->first, <=, KEPT_EVENTS);
    feed->last_number = number;
    feed->kept_bytes += feed_size_of(task);
}

/* After the listeners have it: they also get a change that is too large to keep. */
static void drop_excess(struct feed *feed)
{
    while (feed->kept_bytes > KEPT_BYTES && feed->first < feed->next)
        drop_oldest(feed);
}

static void feed_add(struct feed *feed, struct task *task, int64_t number)
{
    append_event(feed, task, number);
    LIST_FOR_EACH_SAFE (node, next, &feed->listeners) {
        struct feed_listener *listener = LIST_ENTRY(node, struct feed_listener, node);
        listener->changed(listener);
    }
    drop_excess(feed);
}

/* ---- metrics of changes ---- */

/* Every decision comes over the admin endpoint, but those of grants. */
#define CHANNEL STR("admin")

/* Whether this change is the one that ended the waiting for a decision. A task that goes back
 * to approved, or ends after its approval, was changed later than it was decided. */
static bool has_just_left_pending(const struct task *task)
{
    switch (task->state) {
    case TASK_APPROVED:
    case TASK_REJECTED:
    case TASK_CANCELLED:
        return task->decided_ms != 0 && task->decided_ms == task->updated_ms;
    case TASK_EXPIRED:
    case TASK_FAILED:
        return task->decided_ms == 0;
    default:
        return false;
    }
}

/* How long a human took, by what was said. */
static void count_decision(const struct task *task)
{
    bool is_decision = task->state == TASK_APPROVED || task->state == TASK_REJECTED;
    if (is_decision)
        metrics_observe(
            METRIC_DECISION_SECONDS, (double)(task->decided_ms - task->created_ms) / 1000,
            METRIC_LABELS(str_from(task->workflow),
                          task->state == TASK_APPROVED ? STR("approve") : STR("reject")));
}

/* From the creation to the decision, whatever process has seen the first of them. */
static void write_span(const struct task *task)
{
    struct task_trace trace;
    OWNED_BUFFER(name);
    if (!task_trace_read(&trace, str_from(task->trace)))
        return;
    const struct span_parent parent = {.context = &trace.create, .state = str_from(trace.state)};
    buffer_append_format(&name, "approval %s", task->tool);
    struct span *span = span_start(SPAN_INTERNAL, buffer_str(&name), &parent);
    span_set_id(span, trace.wait.span_id);
    span_set_times(span, task->created_ms, task->updated_ms);
    span_add_link(span, &trace.create);
    span_set_text(span, ATTRIBUTE_TASK, str_from(task->id));
    span_set_text(span, ATTRIBUTE_TOOL, str_from(task->tool));
    span_set_text(span, ATTRIBUTE_SOURCE, str_from(task->source));
    span_set_text(span, ATTRIBUTE_RULE, str_from(*task->rule ? task->rule : "default"));
    span_set_text(span, ATTRIBUTE_WORKFLOW, str_from(task->workflow));
    span_set_text(span, ATTRIBUTE_OUTCOME, str_from(task_state_name(task->state)));
    span_end(span);
}

static void count_approval(const struct task *task, bool created)
{
    if (created && task->state == TASK_APPROVED) {
        metrics_count(METRIC_APPROVAL_REQUESTS, STR("grant"), STR("approved"));
    } else if (created) {
        metrics_count(METRIC_APPROVAL_REQUESTS, CHANNEL, STR("pending"));
    } else if (has_just_left_pending(task)) {
        count_decision(task);
        if (telemetry_is_on)
            write_span(task);
        struct str outcome = str_from(task_state_name(task->state));
        metrics_count(METRIC_APPROVAL_REQUESTS, CHANNEL, outcome);
        metrics_observe(METRIC_APPROVAL_WAIT, (double)(task->updated_ms - task->created_ms) / 1000,
                        METRIC_LABELS(CHANNEL, outcome));
    }
}

/* To be called once for every change that the store commits. */
static void task_metrics_count(const struct task *task, bool created)
{
    if (!task->accelerated && !task->promoted)
        count_approval(task, created);
    if (!created && task_state_is_terminal(task->state))
        metrics_count(METRIC_TASKS_COMPLETED, str_from(task_kind_name(task)),
                      str_from(task_state_name(task->state)));
}

/* ---- the changes of the store ---- */

static void feed_observe(void *context, struct task *task, bool created)
{
    struct feed *feed = feed_from(context);
    task_metrics_count(task, created);
    feed_add(feed, task, feed->last_number + 1);
}

/* Each change is counted by the replica that has made it. */
static void observe_shared(void *context, const struct store_feed_event *event)
{
    struct feed *feed = feed_from(context);
    if (event->is_own)
        task_metrics_count(event->task, event->created);
    feed_add(feed, event->task, event->sequence);
}

struct feed *feed_create(struct admin *admin)
{
    struct feed *feed = memory_alloc(sizeof *feed);
    MAGIC_SET(feed, FEED_MAGIC);
    list_init(&feed->listeners);
    feed->is_shared = store_is_shared(admin->store);
    if (feed->is_shared) {
        store_observe_feed(admin->store, admin->loop, observe_shared, feed);
        return feed;
    }
    /* Numbers go on rising over restarts, so that a Last-Event-ID of an earlier process is
     * older than everything kept, and below 2^53, where JavaScript counts. */
    feed->last_number = clock_now_ms() * 1000;
    store_observe(admin->store, admin->loop, feed_observe, feed);
    return feed;
}

void feed_destroy(struct feed *feed)
{
    if (!feed)
        return;
    while (feed->first < feed->next)
        drop_oldest(feed);
    MAGIC_CLEAR(feed);
    free(feed);
}

const struct feed_event *feed_after(const struct feed *feed, int64_t number)
{
    int64_t low = feed->first, high = feed->next;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (event_at(feed, middle)->number > number)
            high = middle;
        else
            low = middle + 1;
    }
    return low < feed->next ? event_at(feed, low) : NULL;
}

int64_t feed_last_number(const struct feed *feed)
{
    return feed->last_number;
}

/* The numbers of all replicas have gaps: what lies between two of them was never there. */
bool feed_reaches(const struct feed *feed, int64_t number)
{
    bool is_kept = feed->first < feed->next && number >= event_at(feed, feed->first)->number &&
                   number <= feed->last_number;
    return !feed->is_shared || is_kept;
}

void feed_listen(struct feed *feed, struct feed_listener *listener)
{
    list_append(&feed->listeners, &listener->node);
}
