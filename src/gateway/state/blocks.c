/* The blocks in force, in memory. */
#include "taskgate/gateway/blocks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

#define PAGE 100
#define LOADING_ROUND_MS 100
#define LOADING_MOST_MS 2000
#define RETRY_MS 1000

atomic_bool blocks_flag;

static struct {
    struct store *store;
    struct loop *loop;
    struct loop_timer retry;
    bool is_started, is_closed, has_failed;
    int64_t loaded_before; /* the last sequence that was read */
    pthread_rwlock_t lock; /* guards what is below */
    bool is_unknown;
    struct store_block *items; /* at most STORE_BLOCKS_MOST */
    size_t count;
} table = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static void finish(struct store_block *block)
{
    char *const texts[] = {block->id,     block->scope,  block->owner,
                           block->source, block->client, block->reason};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
}

/* Under the lock. */
static void note_change(void)
{
    atomic_store(&blocks_flag, table.is_unknown || table.count > 0);
    metrics_set(METRIC_BLOCKS_ACTIVE, (double)table.count, NULL);
}

/* Under the lock. */
static void drop(const char *id)
{
    for (size_t i = 0; i < table.count; i++) {
        if (strcmp(table.items[i].id, id) != 0)
            continue;
        finish(&table.items[i]);
        table.items[i] = table.items[--table.count];
        return;
    }
}

void blocks_put(const struct store_block *block)
{
    pthread_rwlock_wrlock(&table.lock);
    drop(block->id);
    if (block->ended_ms == 0) {
        table.items = memory_grow_array(table.items, table.count + 1, sizeof *table.items);
        table.items[table.count++] = (struct store_block){
            .id = memory_copy_text(block->id),
            .scope = memory_copy_text(block->scope),
            .owner = memory_copy_text(block->owner),
            .source = memory_copy_text(block->source),
            .client = memory_copy_text(block->client),
            .reason = memory_copy_text(block->reason),
            .until_ms = block->until_ms,
        };
    }
    note_change();
    pthread_rwlock_unlock(&table.lock);
}

enum blocks_verdict blocks_judge(const struct store_block_caller *caller, struct buffer *reason)
{
    int64_t now_ms = clock_now_ms();
    pthread_rwlock_rdlock(&table.lock);
    enum blocks_verdict verdict = table.is_unknown ? BLOCKS_UNKNOWN : BLOCKS_FREE;
    for (size_t i = 0; i < table.count; i++) {
        const struct store_block *block = &table.items[i];
        if (block->until_ms <= now_ms || !store_block_fits(block, caller))
            continue;
        buffer_append_text(reason, block->reason);
        verdict = BLOCKS_BLOCKED;
        break;
    }
    pthread_rwlock_unlock(&table.lock);
    return verdict;
}

/* ---- from the store ---- */

static void load(void *context);

static void blocks_on_page(void *context, const struct store_reply *reply)
{
    if (reply->status != STORE_OK) {
        if (!table.has_failed)
            log_error("The blocks could not be read; no tool is called until they were");
        table.has_failed = true;
        if (!table.is_closed)
            loop_timer_start(&table.retry, RETRY_MS);
        return;
    }
    for (size_t i = 0; i < reply->block_count; i++)
        blocks_put(&reply->blocks[i]);
    table.loaded_before = reply->last_sequence;
    if (reply->has_more) {
        load(NULL);
        return;
    }
    pthread_rwlock_wrlock(&table.lock);
    table.is_unknown = false;
    note_change();
    pthread_rwlock_unlock(&table.lock);
}

static void load(void *context)
{
    (void)context;
    store_block_list(table.store, true, table.loaded_before, PAGE,
                     (struct store_call){table.loop, blocks_on_page, NULL});
}

/* A change is not announced again, so all of them are read anew. */
static void blocks_lose(void)
{
    log_error("Changes of the blocks could not be read; no tool is called until all were read");
    pthread_rwlock_wrlock(&table.lock);
    while (table.count > 0)
        finish(&table.items[--table.count]);
    table.is_unknown = true;
    note_change();
    pthread_rwlock_unlock(&table.lock);
    table.has_failed = true;
    table.loaded_before = 0;
    if (!table.is_closed)
        loop_timer_start(&table.retry, RETRY_MS);
}

static void on_block(void *context, const struct store_reply *reply)
{
    (void)context;
    if (!table.is_started)
        return;
    if (reply->status == STORE_OK)
        blocks_put(&reply->blocks[0]);
    else if (reply->status == STORE_FAILED)
        blocks_lose();
}

static void blocks_on_change(void *context, struct str id)
{
    (void)context;
    if (table.is_started && str_equal(id, STR(STORE_BLOCK_ID_PREFIX)))
        blocks_lose();
    else if (table.is_started)
        store_block_get(table.store, id, (struct store_call){table.loop, on_block, NULL});
}

/* The first call is to find them. A database that hangs does not keep the process from its other
 * work. */
static void blocks_wait_for_load(void)
{
    int64_t until_ms = clock_monotonic_ms() + LOADING_MOST_MS;
    while (table.is_unknown && !table.has_failed && clock_monotonic_ms() < until_ms)
        loop_run_once(table.loop, LOADING_ROUND_MS);
    if (table.is_unknown && !table.has_failed)
        log_error("The blocks are not read yet; no tool is called until they are");
}

void blocks_start(struct store *store, struct loop *loop)
{
    table.store = store;
    table.loop = loop;
    table.is_started = table.is_unknown = true;
    note_change();
    loop_timer_init(&table.retry, loop, load, NULL);
    store_observe_ids(store, STORE_BLOCK, loop, blocks_on_change, NULL);
    load(NULL);
    blocks_wait_for_load();
}

void blocks_close(void)
{
    table.is_closed = true;
    if (table.is_started)
        loop_timer_stop(&table.retry);
}

void blocks_end(void)
{
    if (!table.is_started)
        return;
    while (table.count > 0)
        finish(&table.items[--table.count]);
    free(table.items);
    table.items = NULL;
    table.is_started = table.is_closed = table.is_unknown = table.has_failed = false;
    table.loaded_before = 0;
    note_change();
}
