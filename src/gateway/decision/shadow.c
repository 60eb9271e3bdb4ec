/* The shadow: a bounded queue, a thread, and the record of differences. */
#include "shadow.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "call/authorization.h"
#include "log_aggregate.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/list.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

#define QUEUE_CALLS_MAX 1000
#define QUEUE_BYTES_MAX ((size_t)16 << 20)

struct job {
    struct list node;
    struct shadow_call call; /* its texts point into `texts`, its snapshot is a reference */
    struct policy_verified verified;
    char *texts;
    size_t size;
};

struct shadow {
    uint32_t magic; /* SHADOW_MAGIC */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool is_started, has_thread, stopping;
    struct list queue; /* struct job.node */
    size_t queued, queued_bytes;
    struct log_aggregate *aggregate; /* of the thread and of all workers */
};
#define SHADOW_MAGIC 0x47575306

static inline struct shadow *shadow_from(void *context)
{
    return MAGIC_CAST(struct shadow, SHADOW_MAGIC, context);
}

/* ---- what is said ---- */

static void count_line(struct shadow *shadow, enum log_level level, const char *message,
                       const struct log_field *fields, unsigned count)
{
    pthread_mutex_lock(&shadow->lock);
    log_aggregate_count(shadow->aggregate, level, message, fields, count);
    pthread_mutex_unlock(&shadow->lock);
}

static void log_difference(struct shadow *shadow, const struct shadow_call *call,
                           const struct verdict *other)
{
    const struct policy_decision *real = &call->decision, *rehearsed = &other->decision;
    const struct log_field fields[] = {
        LOG_STR("tool", call->request.name),
        LOG_TEXT("source", call->request.source->id),
        LOG_TEXT("outcome", verdict_outcome_name(call->outcome)),
        LOG_TEXT("rule", real->rule ? real->rule->match : ""),
        LOG_NUMBER("rule_index", real->rule ? (int64_t)real->rule_index : -1),
        LOG_STR("workflow", verdict_workflow(call->outcome, real)),
        LOG_TEXT("shadow_outcome", verdict_outcome_name(other->outcome)),
        LOG_TEXT("shadow_rule", rehearsed->rule ? rehearsed->rule->match : ""),
        LOG_NUMBER("shadow_rule_index", rehearsed->rule ? (int64_t)rehearsed->rule_index : -1),
        LOG_STR("shadow_workflow", verdict_workflow(other->outcome, rehearsed)),
    };
    metrics_count(METRIC_SHADOW_DIFFERENCES, str_from(verdict_outcome_name(call->outcome)),
                  str_from(verdict_outcome_name(other->outcome)));
    count_line(shadow, LOG_LEVEL_INFO, "The shadow decides differently", fields,
               sizeof fields / sizeof *fields);
}

/* Logs the policy and the place, and of the call only its tool. */
static void log_policy_error(struct shadow *shadow, const struct shadow_call *call,
                             const struct policy_finding *finding, const char *failure)
{
    const struct log_field fields[] = {
        LOG_STR("tool", call->request.name),
        LOG_TEXT("source", call->request.source->id),
        LOG_STR("policy", finding ? finding->policy : STR_EMPTY),
        LOG_TEXT("action", finding ? finding->action : ""),
        LOG_TEXT("file", finding ? finding->file : ""),
        LOG_NUMBER("line", finding ? finding->line : 0),
        LOG_NUMBER("column", finding ? finding->column : 0),
        LOG_TEXT("error", finding ? finding->error : failure),
    };
    count_line(shadow, LOG_LEVEL_WARN, "A policy of the shadow could not be evaluated", fields,
               sizeof fields / sizeof *fields);
}

static bool log_policy_errors(struct shadow *shadow, const struct shadow_call *call,
                              const struct policy_trace *trace)
{
    bool any = trace->failure != NULL;
    if (any)
        log_policy_error(shadow, call, NULL, trace->failure);
    for (size_t i = 0; i < trace->count; i++) {
        if (trace->items[i].kind != FINDING_ERROR)
            continue;
        log_policy_error(shadow, call, &trace->items[i], NULL);
        any = true;
    }
    return any;
}

static void shadow_compare(struct shadow *shadow, const struct shadow_call *call,
                           const struct verdict *other, bool failed)
{
    bool same = verdict_is_same(call->outcome, verdict_workflow(call->outcome, &call->decision),
                                other->outcome, verdict_workflow(other->outcome, &other->decision));
    metrics_count(METRIC_SHADOW_CALLS, failed ? STR("error")
                                       : same ? STR("same")
                                              : STR("different"));
    if (!same)
        log_difference(shadow, call, other);
}

static void compare_whole(struct shadow *shadow, const struct shadow_call *call)
{
    struct policy_trace trace = {0};
    struct verdict other;
    verdict_of(call->snapshot->shadow, &call->request, &call->facts, 0, &trace, &other);
    shadow_compare(shadow, call, &other, log_policy_errors(shadow, call, &trace));
    policy_trace_finish(&trace);
}

/* ---- the queue ---- */

/* Moves `text` behind `*end`, where there is room. */
static void move_text(struct str *text, char **end)
{
    if (text->length)
        memcpy(*end, text->bytes, text->length);
    text->bytes = *end;
    *end += text->length;
}

static struct job *copy_call(const struct shadow_call *call)
{
    struct job *job = memory_alloc(sizeof *job);
    job->call = *call;
    struct policy_request *request = &job->call.request;
    struct policy_principal *principal = &job->call.facts.principal;
    job->size = request->name.length + request->arguments.length + principal->owner.length +
                principal->client_name.length + principal->client_version.length;
    job->texts = memory_alloc(job->size + 1);
    char *end = job->texts;
    move_text(&request->name, &end);
    move_text(&request->arguments, &end);
    move_text(&principal->owner, &end);
    move_text(&principal->client_name, &end);
    move_text(&principal->client_version, &end);
    snapshot_ref(call->snapshot);
    if (call->identity)
        identity_ref(call->identity);
    request->verified = verified_from(call->identity, &job->verified);
    return job;
}

static void destroy_job(struct job *job)
{
    snapshot_unref(job->call.snapshot);
    identity_unref(job->call.identity);
    free(job->texts);
    free(job);
}

static struct job *take_job(struct shadow *shadow)
{
    struct job *job = LIST_ENTRY(shadow->queue.next, struct job, node);
    list_remove(&job->node);
    shadow->queued--;
    shadow->queued_bytes -= job->size;
    return job;
}

/* The sums are logged every minute, however busy the queue is. */
static void flush_in_time(struct shadow *shadow, int64_t *flushed_ms)
{
    if (clock_monotonic_ms() - *flushed_ms < LOG_AGGREGATE_FLUSH_MS)
        return;
    pthread_mutex_lock(&shadow->lock);
    struct log_aggregate *full = shadow->aggregate;
    shadow->aggregate = log_aggregate_create();
    pthread_mutex_unlock(&shadow->lock);
    log_aggregate_destroy(full); /* writes its sums */
    *flushed_ms = clock_monotonic_ms();
}

/* Under the lock; NULL when it is time to flush, or to stop. */
static struct job *await_job(struct shadow *shadow)
{
    struct timespec until = clock_monotonic_until(clock_monotonic_ms() + LOG_AGGREGATE_FLUSH_MS);
    int code = 0;
    while (list_is_empty(&shadow->queue) && !shadow->stopping && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&shadow->wake, &shadow->lock, &until);
    return list_is_empty(&shadow->queue) || shadow->stopping ? NULL : take_job(shadow);
}

static void *shadow_run(void *context)
{
    struct shadow *shadow = shadow_from(context);
    int64_t flushed_ms = clock_monotonic_ms();
    pthread_mutex_lock(&shadow->lock);
    while (!shadow->stopping) {
        struct job *job = await_job(shadow);
        pthread_mutex_unlock(&shadow->lock);
        if (job) {
            compare_whole(shadow, &job->call);
            destroy_job(job);
        }
        flush_in_time(shadow, &flushed_ms);
        pthread_mutex_lock(&shadow->lock);
    }
    pthread_mutex_unlock(&shadow->lock);
    return NULL;
}

/* Under the lock: there is none before the first call of a configuration with a shadow. */
static void start_thread(struct shadow *shadow)
{
    if (shadow->is_started)
        return;
    shadow->is_started = true;
    int failure = pthread_create(&shadow->thread, NULL, shadow_run, shadow);
    shadow->has_thread = failure == 0;
    if (failure)
        log_warn("The shadow's thread could not be started: its policies are not asked",
                 LOG_TEXT("error", strerror(failure)));
}

bool shadow_compare_rules(struct shadow *shadow, const struct shadow_call *call)
{
    struct verdict other;
    if (!verdict_of_rules(call->snapshot->shadow, &call->request, &other))
        return false;
    pthread_mutex_lock(&shadow->lock);
    start_thread(shadow);
    pthread_mutex_unlock(&shadow->lock);
    shadow_compare(shadow, call, &other, false);
    return true;
}

void shadow_compare_later(struct shadow *shadow, const struct shadow_call *call)
{
    struct job *job = copy_call(call);
    pthread_mutex_lock(&shadow->lock);
    start_thread(shadow);
    bool fits = shadow->has_thread && shadow->queued < QUEUE_CALLS_MAX &&
                shadow->queued_bytes + job->size <= QUEUE_BYTES_MAX;
    if (fits) {
        list_append(&shadow->queue, &job->node);
        shadow->queued++;
        shadow->queued_bytes += job->size;
        pthread_cond_signal(&shadow->wake);
    }
    pthread_mutex_unlock(&shadow->lock);
    if (fits)
        return;
    metrics_count(METRIC_SHADOW_CALLS, STR("skipped"));
    destroy_job(job);
}

struct shadow *shadow_create(void)
{
    struct shadow *shadow = memory_alloc(sizeof *shadow);
    MAGIC_SET(shadow, SHADOW_MAGIC);
    pthread_mutex_init(&shadow->lock, NULL);
    clock_condition_init(&shadow->wake);
    list_init(&shadow->queue);
    shadow->aggregate = log_aggregate_create();
    return shadow;
}

void shadow_destroy(struct shadow *shadow)
{
    if (!shadow)
        return;
    pthread_mutex_lock(&shadow->lock);
    shadow->stopping = true;
    pthread_cond_signal(&shadow->wake);
    pthread_mutex_unlock(&shadow->lock);
    if (shadow->has_thread)
        pthread_join(shadow->thread, NULL);
    LIST_FOR_EACH_SAFE (node, next, &shadow->queue)
        destroy_job(LIST_ENTRY(node, struct job, node));
    log_aggregate_destroy(shadow->aggregate);
    pthread_cond_destroy(&shadow->wake);
    pthread_mutex_destroy(&shadow->lock);
    MAGIC_CLEAR(shadow);
    free(shadow);
}
