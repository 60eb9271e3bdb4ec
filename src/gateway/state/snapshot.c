/* The configuration in force, behind one lock that is held only to count a reference. */
#include "taskgate/gateway/snapshot.h"

#include <pthread.h>
#include <stdlib.h>

#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

static pthread_mutex_t current_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct snapshot *current; /* under current_mutex; holds one reference */

struct snapshot *snapshot_create(struct config *config, struct config_problems *problems)
{
    static uint64_t numbers; /* atomic */
    struct snapshot *snapshot = memory_alloc(sizeof *snapshot);
    *snapshot = (struct snapshot){.config = config, .references = 1};
    snapshot->number = __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED);
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

struct snapshot *snapshot_current(void)
{
    /* Reading the pointer and counting the reference must be one step: between the two an
     * install could free what was read. */
    pthread_mutex_lock(&current_mutex);
    struct snapshot *snapshot = current ? snapshot_ref(current) : NULL;
    pthread_mutex_unlock(&current_mutex);
    return snapshot;
}

void snapshot_install(struct snapshot *snapshot)
{
    pthread_mutex_lock(&current_mutex);
    struct snapshot *previous = current;
    current = snapshot;
    pthread_mutex_unlock(&current_mutex);
    if (snapshot)
        metrics_set(METRIC_CEDAR_POLICIES_LOADED, (double)policy_count(snapshot->policy), NULL);
    snapshot_unref(previous);
}
