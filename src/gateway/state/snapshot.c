/* The configuration in force, behind one lock that is held only to count a reference. */
#include "taskgate/gateway/snapshot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "taskgate/config/glob.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/mcp/method.h"

static pthread_mutex_t current_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct snapshot *current; /* under current_mutex; holds one reference */

/* Whether one of the known methods matches, whose own gates hold whatever `methods.allow` says. */
static const char *known_method_of(const char *text)
{
    struct error error;
    struct glob *glob = glob_compile(str_from(text), &error);
    const char *name = NULL;
    for (size_t position = 0; glob && (name = mcp_method_next(&position));) {
        if (glob_matches(glob, str_from(name)))
            break;
    }
    glob_destroy(glob);
    return name;
}

static void warn_of_methods(const struct config *config, struct config_problems *problems)
{
    for (size_t i = 0; i < config->methods_allow.count; i++) {
        const char *name = known_method_of(config->methods_allow.items[i]);
        if (!name)
            continue;
        char *message = memory_format("methods.allow[%zu]: the glob has no effect on %s: the "
                                      "gateway knows this method",
                                      i, name);
        config_problems_add(problems, true, config->path, config->methods_allow_at[i].line,
                            config->methods_allow_at[i].column, message);
        free(message);
    }
}

struct snapshot *snapshot_create(struct config *config, struct config_problems *problems)
{
    static uint64_t numbers; /* atomic */
    struct snapshot *snapshot = memory_alloc(sizeof *snapshot);
    *snapshot = (struct snapshot){.config = config, .references = 1};
    snapshot->number = __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED);
    warn_of_methods(config, problems);
    snapshot->policy = policy_create(config, problems);
    if (config->shadow)
        snapshot->shadow = policy_create(config->shadow, problems);
    if (snapshot->policy && (snapshot->shadow || !config->shadow))
        return snapshot;
    snapshot_unref(snapshot);
    return NULL;
}

struct snapshot *snapshot_ref(struct snapshot *snapshot)
{
    __atomic_add_fetch(&snapshot->references, 1, __ATOMIC_RELAXED);
    return snapshot;
}

void snapshot_unref(struct snapshot *snapshot)
{
    if (!snapshot || __atomic_sub_fetch(&snapshot->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    policy_destroy(snapshot->shadow);
    policy_destroy(snapshot->policy);
    config_unref(snapshot->config);
    free(snapshot);
}

/* ---- what a thread has seen ---- */

/* Each thread keeps a reference to the snapshot that it saw last, so a request takes no lock that
 * all loops share. */
static _Atomic(uint64_t) current_number; /* rises with each that is installed, NULL too */
static _Thread_local struct seen {
    struct snapshot *snapshot; /* a reference of the thread's own */
    uint64_t number;
} seen;
static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

static void forget_seen(void *context)
{
    struct seen *ending = context;
    snapshot_unref(ending->snapshot);
    *ending = (struct seen){NULL, 0};
}

static void snapshot_watch_thread_ends(void)
{
    if (pthread_key_create(&thread_end, forget_seen) != 0)
        abort();
}

static struct snapshot *snapshot_look_again(void)
{
    pthread_once(&thread_end_once, snapshot_watch_thread_ends);
    pthread_setspecific(thread_end, &seen);
    snapshot_unref(seen.snapshot);
    /* Reading the pointer and counting the reference are one step. Between them an install could
     * free the snapshot. */
    pthread_mutex_lock(&current_mutex);
    seen.snapshot = current ? snapshot_ref(current) : NULL;
    seen.number = atomic_load(&current_number);
    pthread_mutex_unlock(&current_mutex);
    return seen.snapshot;
}

struct snapshot *snapshot_current(void)
{
    bool is_same = seen.number == atomic_load_explicit(&current_number, memory_order_acquire);
    struct snapshot *snapshot = is_same ? seen.snapshot : snapshot_look_again();
    return snapshot ? snapshot_ref(snapshot) : NULL;
}

void snapshot_install(struct snapshot *snapshot)
{
    pthread_mutex_lock(&current_mutex);
    struct snapshot *previous = current;
    current = snapshot;
    atomic_fetch_add(&current_number, 1);
    if (snapshot) /* once the lock is given up, another install may free it */
        metrics_set(METRIC_CEDAR_POLICIES_LOADED, (double)policy_count(snapshot->policy), NULL);
    pthread_mutex_unlock(&current_mutex);
    forget_seen(&seen); /* other threads let go of it at their next request */
    snapshot_unref(previous);
}
