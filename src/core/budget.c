/* Claims by holder. One lock guards all counts; it is taken for large claims alone (intake.c). */
#include "taskgate/core/budget.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

/* A request that is received counts as slow only after this time. */
#define SETTLED_MS 1000

struct budget_share {
    struct list claims; /* struct budget_claim.node, the oldest first */
    size_t bytes;
    size_t holder_length;
    char holder[];
};

struct budget {
    pthread_mutex_t lock;
    size_t limit_bytes, share_bytes;
    size_t total_bytes;
    struct map *shares; /* holder -> struct budget_share with at least one claim */
    struct list chosen;
};

static void set_limits(struct budget *budget, const struct budget_limits *limits)
{
    size_t share = limits->bytes / 100 * (size_t)limits->percent;
    budget->limit_bytes = limits->bytes;
    budget->share_bytes = share > limits->least_bytes ? share : limits->least_bytes;
}

struct budget *budget_create(const struct budget_limits *limits)
{
    struct budget *budget = memory_alloc(sizeof *budget);
    pthread_mutex_init(&budget->lock, NULL);
    set_limits(budget, limits);
    budget->shares = map_create();
    list_init(&budget->chosen);
    return budget;
}

void budget_set_limits(struct budget *budget, const struct budget_limits *limits)
{
    pthread_mutex_lock(&budget->lock);
    set_limits(budget, limits);
    pthread_mutex_unlock(&budget->lock);
}

void budget_destroy(struct budget *budget)
{
    if (!budget)
        return;
    map_destroy(budget->shares, free);
    pthread_mutex_destroy(&budget->lock);
    free(budget);
}

/* ---- the next to go; under the lock ---- */

/* The slower one has fewer bytes a second since its first byte. */
static bool is_slower(const struct budget_claim *a, const struct budget_claim *b, int64_t now_ms)
{
    int64_t age_a = now_ms - a->since_ms, age_b = now_ms - b->since_ms;
    bool is_settled_a = age_a >= SETTLED_MS, is_settled_b = age_b >= SETTLED_MS;
    if (is_settled_a != is_settled_b)
        return is_settled_a;
    return (double)a->bytes * (double)(age_b + 1) < (double)b->bytes * (double)(age_a + 1);
}

static bool goes_before(const struct budget_claim *a, const struct budget_claim *b, int64_t now_ms)
{
    if (a->kind != b->kind)
        return a->kind == BUDGET_RECEIVED;
    return a->kind == BUDGET_RECEIVED ? is_slower(a, b, now_ms) : a->since_ms < b->since_ms;
}

static struct budget_claim *first_to_go(const struct budget_share *share, int64_t now_ms)
{
    struct budget_claim *first = NULL;
    LIST_FOR_EACH_SAFE (node, next, &share->claims) {
        struct budget_claim *claim = LIST_ENTRY(node, struct budget_claim, node);
        if (claim->kind != BUDGET_NEEDED && (!first || goes_before(claim, first, now_ms)))
            first = claim;
    }
    return first;
}

/* The holder of most gives first, so nobody can push out those who hold little. */
static struct budget_claim *first_of_all(const struct budget *budget, int64_t now_ms)
{
    const struct budget_share *most = NULL;
    struct budget_claim *first = NULL;
    size_t position = 0;
    struct str holder;
    void *value;
    while (map_next(budget->shares, &position, &holder, &value)) {
        const struct budget_share *share = value;
        struct budget_claim *claim;
        if ((most && share->bytes <= most->bytes) || !(claim = first_to_go(share, now_ms)))
            continue;
        most = share;
        first = claim;
    }
    return first;
}

static struct budget_claim *find_excess(const struct budget *budget,
                                        const struct budget_share *share)
{
    int64_t now_ms = clock_monotonic_ms();
    struct budget_claim *claim = NULL;
    if (share && share->bytes > budget->share_bytes)
        claim = first_to_go(share, now_ms);
    if (!claim && budget->total_bytes > budget->limit_bytes)
        claim = first_of_all(budget, now_ms);
    return claim;
}

/* ---- shares; under the lock ---- */

static void leave_share(struct budget *budget, struct budget_claim *claim)
{
    struct budget_share *share = claim->share;
    list_remove(&claim->node);
    claim->share = NULL;
    ASSERT_NUMBERS(claim->bytes, <=, share->bytes);
    ASSERT_NUMBERS(share->bytes, <=, budget->total_bytes);
    share->bytes -= claim->bytes;
    budget->total_bytes -= claim->bytes;
    if (!list_is_empty(&share->claims))
        return;
    ASSERT_NUMBERS(share->bytes, ==, 0);
    void *removed = map_remove(budget->shares, str_slice(share->holder, share->holder_length));
    ASSERT(removed == share);
    free(share);
}

static void join_share(struct budget *budget, struct budget_claim *claim, struct str holder)
{
    struct budget_share *share = map_get(budget->shares, holder);
    if (!share) {
        share = memory_alloc(sizeof *share + holder.length);
        list_init(&share->claims);
        share->holder_length = holder.length;
        if (holder.length > 0)
            memcpy(share->holder, holder.bytes, holder.length);
        map_put(budget->shares, holder, share);
    }
    ASSERT(claim->share == NULL && !claim->is_chosen);
    claim->share = share;
    share->bytes += claim->bytes;
    budget->total_bytes += claim->bytes;
    list_append(&share->claims, &claim->node);
}

static void choose(struct budget *budget, struct budget_claim *claim)
{
    ASSERT(claim->kind != BUDGET_NEEDED);
    leave_share(budget, claim);
    claim->is_chosen = true;
    list_append(&budget->chosen, &claim->node);
    metrics_count(METRIC_LIMITS_REACHED, STR("bodies_bytes"));
    claim->owner->chosen(claim);
}

/* ---- what is held ---- */

static bool budget_is_of(const struct budget_share *share, struct str holder)
{
    return share && str_equal(str_slice(share->holder, share->holder_length), holder);
}

void budget_hold(struct budget *budget, struct budget_claim *claim,
                 const struct budget_owner *owner, struct str holder, enum budget_kind kind,
                 size_t bytes)
{
    struct budget_claim *excess;
    pthread_mutex_lock(&budget->lock);
    if (claim->is_chosen) {
        pthread_mutex_unlock(&budget->lock);
        return;
    }
    if (!claim->share) {
        claim->owner = owner;
        claim->since_ms = clock_monotonic_ms();
    } else if (!budget_is_of(claim->share, holder)) {
        leave_share(budget, claim);
    }
    claim->kind = kind;
    if (!claim->share) {
        claim->bytes = bytes;
        join_share(budget, claim, holder);
    } else {
        claim->share->bytes += bytes - claim->bytes;
        budget->total_bytes += bytes - claim->bytes;
        claim->bytes = bytes;
    }
    while ((excess = find_excess(budget, claim->share)) != NULL)
        choose(budget, excess);
    pthread_mutex_unlock(&budget->lock);
}

void budget_release(struct budget *budget, struct budget_claim *claim)
{
    pthread_mutex_lock(&budget->lock);
    if (claim->share)
        leave_share(budget, claim);
    else if (claim->is_chosen)
        list_remove(&claim->node);
    *claim = (struct budget_claim){.bytes = 0};
    pthread_mutex_unlock(&budget->lock);
}

struct budget_claim *budget_find_chosen(struct budget *budget,
                                        bool (*is_wanted)(const struct budget_claim *claim,
                                                          const void *context),
                                        const void *context)
{
    struct budget_claim *found = NULL;
    pthread_mutex_lock(&budget->lock);
    LIST_FOR_EACH_SAFE (node, next, &budget->chosen) {
        struct budget_claim *claim = LIST_ENTRY(node, struct budget_claim, node);
        if (!found && is_wanted(claim, context))
            found = claim;
    }
    pthread_mutex_unlock(&budget->lock);
    return found;
}
