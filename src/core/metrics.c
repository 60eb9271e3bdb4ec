/* Metric values in sharded maps. */
#include "metrics_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

#define METRIC_ROW(symbol, kind, name, labels, help, ...)                                          \
    static const double buckets_of_##symbol[] = {0, ##__VA_ARGS__};
#include "taskgate/core/metrics_table.h"
#undef METRIC_ROW

const struct family metrics_families[METRIC_COUNT] = {
#define METRIC_ROW(symbol, kind, name, labels, help, ...)                                          \
    [METRIC_##symbol] = {kind,                                                                     \
                         name,                                                                     \
                         labels,                                                                   \
                         help,                                                                     \
                         buckets_of_##symbol + 1,                                                  \
                         sizeof buckets_of_##symbol / sizeof(double) - 1},
#include "taskgate/core/metrics_table.h"
#undef METRIC_ROW
};

/* ---- series ---- */

#define LABEL_MAX_BYTES 128
#define KEY_MAX_BYTES (2 + METRICS_MAX_LABELS * (LABEL_MAX_BYTES + 1))

_Static_assert(METRIC_COUNT < 256, "a key has one byte for the metric");

/* Many threads count at once, mostly different series: a lock per shard keeps them apart. */
struct shard {
    pthread_mutex_t mutex;
    struct map *series; /* by key; NULL until the first */
};
#define EMPTY_SHARD                                                                                \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                                         \
    }
static struct shard shards[] = {EMPTY_SHARD, EMPTY_SHARD, EMPTY_SHARD, EMPTY_SHARD,
                                EMPTY_SHARD, EMPTY_SHARD, EMPTY_SHARD, EMPTY_SHARD};
#define SHARD_COUNT (sizeof shards / sizeof *shards)

/* Labels whose values clients choose: only so many are told apart, or an agent that makes
 * names up would fill the memory and the monitoring system's. Reference §7.2. */
struct capped_label {
    const char *name;
    size_t cap;
    pthread_mutex_t mutex;
    struct map *values; /* those admitted */
};
static struct capped_label capped_labels[] = {
    {"tool_name", 200, PTHREAD_MUTEX_INITIALIZER, NULL},
    {"method", 100, PTHREAD_MUTEX_INITIALIZER, NULL},
};
#define CAPPED_LABEL_COUNT (sizeof capped_labels / sizeof *capped_labels)
#define OVERFLOW_VALUE STR("__other__")

static void destroy_series(void *value)
{
    struct series *series = value;
    free(series->key);
    free(series->bucket);
    free(series);
}

/* Controls (but LF, which is escaped) and what turns the direction of text: people read metrics
 * on terminals, too. In UTF-8, U+0080 to U+009F begin with C2, U+061C is D8 9C, the others
 * begin with E2 or EF. */
static bool misleads(struct str value)
{
    for (size_t i = 0; i < value.length; i++) {
        const unsigned char *at = (const unsigned char *)value.bytes + i;
        if ((at[0] < 0x20 && at[0] != '\n') || at[0] == 0x7F || (at[0] == 0xC2 && at[1] < 0xA0) ||
            (at[0] == 0xD8 && at[1] == 0x9C) || (at[0] == 0xEF && at[1] == 0xBB && at[2] == 0xBF) ||
            (at[0] == 0xE2 && at[1] == 0x81 && at[2] >= 0xA6 && at[2] <= 0xA9) ||
            (at[0] == 0xE2 && at[1] == 0x80 &&
             (at[2] == 0x8E || at[2] == 0x8F || (at[2] >= 0xA8 && at[2] <= 0xAE))))
            return true;
    }
    return false;
}

/* A value that may stand in the text: UTF-8 of bounded length. */
static struct str presentable(struct str value)
{
    if (!str_is_utf8(value) || misleads(value))
        return STR("__invalid__");
    if (value.length <= LABEL_MAX_BYTES)
        return value;
    size_t length = LABEL_MAX_BYTES;
    while (((unsigned char)value.bytes[length] & 0xC0) == 0x80)
        length--;
    return str_slice(value.bytes, length);
}

static struct str build_key(enum metric metric, const struct str *values, char key[KEY_MAX_BYTES])
{
    size_t length = 0;
    key[length++] = (char)metric;
    struct str name, rest = str_from(metrics_families[metric].labels);
    for (size_t i = 0; rest.length > 0; i++) {
        str_cut(rest, ',', &name, &rest);
        struct str value = values ? presentable(values[i]) : STR_EMPTY;
        if (value.length)
            memcpy(key + length, value.bytes, value.length);
        length += value.length;
        key[length++] = KEY_SEPARATOR;
    }
    return str_slice(key, length);
}

static struct shard *shard_of(struct str key)
{
    return &shards[str_hash(key) % SHARD_COUNT];
}

static bool is_admitted(struct capped_label *label, struct str value)
{
    static char present;
    pthread_mutex_lock(&label->mutex);
    if (!label->values)
        label->values = map_create();
    bool admitted = map_get(label->values, value) != NULL;
    if (!admitted && map_count(label->values) < label->cap) {
        map_put(label->values, value, &present);
        admitted = true;
    }
    pthread_mutex_unlock(&label->mutex);
    return admitted;
}

/* Puts OVERFLOW_VALUE in place of each value of a capped label that is one too many. */
static bool cap_labels(enum metric metric, const struct str *values,
                       struct str capped[METRICS_MAX_LABELS])
{
    bool changed = false;
    struct str name, rest = str_from(metrics_families[metric].labels);
    for (size_t i = 0; values && rest.length > 0; i++) {
        str_cut(rest, ',', &name, &rest);
        capped[i] = values[i];
        for (size_t c = 0; c < CAPPED_LABEL_COUNT; c++) {
            if (str_equal(name, str_from(capped_labels[c].name)) &&
                !is_admitted(&capped_labels[c], presentable(values[i]))) {
                capped[i] = OVERFLOW_VALUE;
                changed = true;
            }
        }
    }
    return changed;
}

static struct series *create_series(struct shard *shard, enum metric metric, struct str key)
{
    struct series *series = memory_alloc(sizeof *series);
    series->metric = metric;
    series->key = memory_copy_str(key);
    series->key_length = key.length;
    series->bucket =
        memory_alloc_array(metrics_families[metric].bucket_count, sizeof *series->bucket);
    if (!shard->series)
        shard->series = map_create();
    map_put(shard->series, key, series);
    return series;
}

/* ---- what a thread counted lately ---- */

/* A request counts the same few series each time: they are remembered per thread by their
 * labels as given, so that no key is built. */
struct recent {
    struct series *series;
    struct shard *shard;
    unsigned generation; /* 0: empty */
    enum metric metric;
    size_t lengths[METRICS_MAX_LABELS];
    char labels[96]; /* one after the other */
};
static _Thread_local struct recent recents[64];
/* Changes when series are freed. Read again under the shard's lock: who frees takes that lock
 * after the change. */
static atomic_uint generation = 1;

static struct recent *recent_slot(enum metric metric, const struct str *values)
{
    size_t mixed = (size_t)metric * 31, total = 0;
    for (size_t i = 0; values && i < METRICS_MAX_LABELS; i++) {
        total += values[i].length;
        mixed = mixed * 7 + values[i].length;
        if (values[i].length)
            mixed += (unsigned char)values[i].bytes[values[i].length - 1] * 3u +
                     (unsigned char)values[i].bytes[0];
    }
    size_t slot = mixed % (sizeof recents / sizeof *recents);
    return total <= sizeof recents[0].labels ? &recents[slot] : NULL;
}

static bool recent_is(const struct recent *recent, enum metric metric, const struct str *values)
{
    const char *at = recent->labels;
    if (recent->metric != metric)
        return false;
    for (size_t i = 0; i < METRICS_MAX_LABELS; i++) {
        struct str value = values ? values[i] : STR_EMPTY;
        if (!str_equal(value, str_slice(at, recent->lengths[i])))
            return false;
        at += value.length;
    }
    return true;
}

static void recent_keep(struct recent *recent, enum metric metric, const struct str *values,
                        struct series *series, struct shard *shard)
{
    char *at = recent->labels;
    recent->generation = atomic_load(&generation);
    recent->metric = metric;
    recent->series = series;
    recent->shard = shard;
    for (size_t i = 0; i < METRICS_MAX_LABELS; i++) {
        struct str value = values ? values[i] : STR_EMPTY;
        recent->lengths[i] = value.length;
        if (value.length)
            memcpy(at, value.bytes, value.length);
        at += value.length;
    }
}

/* The series, made if need be, with its shard locked. */
static struct series *find_series(enum metric metric, const struct str *values,
                                  struct shard **locked)
{
    char bytes[KEY_MAX_BYTES];
    struct str capped[METRICS_MAX_LABELS];
    struct str key = build_key(metric, values, bytes);
    struct shard *shard = *locked = shard_of(key);
    pthread_mutex_lock(&shard->mutex);
    struct series *series = shard->series ? map_get(shard->series, key) : NULL;
    if (series)
        return series;
    pthread_mutex_unlock(&shard->mutex);

    if (cap_labels(metric, values, capped))
        key = build_key(metric, capped, bytes);
    shard = *locked = shard_of(key);
    pthread_mutex_lock(&shard->mutex);
    series = shard->series ? map_get(shard->series, key) : NULL;
    return series ? series : create_series(shard, metric, key);
}

static struct series *lock_series(enum metric metric, const struct str *values,
                                  struct shard **locked)
{
    struct recent *recent = recent_slot(metric, values);
    if (recent && recent->generation == atomic_load(&generation) &&
        recent_is(recent, metric, values)) {
        pthread_mutex_lock(&recent->shard->mutex);
        *locked = recent->shard;
        if (recent->generation == atomic_load(&generation))
            return recent->series;
        pthread_mutex_unlock(&recent->shard->mutex);
    }
    struct series *series = find_series(metric, values, locked);
    if (recent)
        recent_keep(recent, metric, values, series, *locked);
    return series;
}

void metrics_add(enum metric metric, double amount, const struct str *labels)
{
    struct shard *shard;
    lock_series(metric, labels, &shard)->value += amount;
    pthread_mutex_unlock(&shard->mutex);
}

void metrics_set(enum metric metric, double value, const struct str *labels)
{
    struct shard *shard;
    lock_series(metric, labels, &shard)->value = value;
    pthread_mutex_unlock(&shard->mutex);
}

void metrics_observe(enum metric metric, double value, const struct str *labels)
{
    const struct family *family = &metrics_families[metric];
    struct shard *shard;
    struct series *series = lock_series(metric, labels, &shard);
    series->value += value;
    series->count++;
    for (size_t i = 0; i < family->bucket_count; i++) {
        if (value <= family->buckets[i]) {
            series->bucket[i]++;
            break;
        }
    }
    pthread_mutex_unlock(&shard->mutex);
}

/* No thread uses what it remembers from before. Called with the lock of the shard that is about to
 * lose series: whoever remembered one of them under that lock did so in an older generation. */
static void forget_recents(void)
{
    atomic_fetch_add(&generation, 1);
}

void metrics_reset(enum metric metric)
{
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        pthread_mutex_lock(&shards[i].mutex);
        forget_recents();
        struct map *kept = map_create();
        struct str key;
        void *value;
        size_t position = 0;
        while (shards[i].series && map_next(shards[i].series, &position, &key, &value)) {
            if (((struct series *)value)->metric == metric)
                destroy_series(value);
            else
                map_put(kept, key, value);
        }
        map_destroy(shards[i].series, NULL);
        shards[i].series = kept;
        pthread_mutex_unlock(&shards[i].mutex);
    }
}

void metrics_finish(void)
{
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        pthread_mutex_lock(&shards[i].mutex);
        forget_recents();
        map_destroy(shards[i].series, destroy_series);
        shards[i].series = NULL;
        pthread_mutex_unlock(&shards[i].mutex);
    }
    for (size_t i = 0; i < CAPPED_LABEL_COUNT; i++) {
        pthread_mutex_lock(&capped_labels[i].mutex);
        map_destroy(capped_labels[i].values, NULL);
        capped_labels[i].values = NULL;
        pthread_mutex_unlock(&capped_labels[i].mutex);
    }
}

/* ---- what a scrape sees ---- */

static void copy_series(struct scrape *scrape, const struct series *series)
{
    if (scrape->count == scrape->capacity) {
        scrape->capacity = scrape->capacity ? scrape->capacity * 2 : 64;
        scrape->copies =
            memory_grow_array(scrape->copies, scrape->capacity, sizeof *scrape->copies);
    }
    struct series *copy = &scrape->copies[scrape->count++];
    size_t buckets = metrics_families[series->metric].bucket_count;
    *copy = *series;
    copy->key = memory_copy_str(str_slice(series->key, series->key_length));
    copy->bucket = memory_alloc_array(buckets, sizeof *copy->bucket);
    for (size_t i = 0; i < buckets; i++)
        copy->bucket[i] = series->bucket[i];
}

static int compare_series(const void *left, const void *right)
{
    const struct series *a = left, *b = right;
    return str_compare(str_slice(a->key, a->key_length), str_slice(b->key, b->key_length));
}

void metrics_scrape_take(struct scrape *scrape)
{
    *scrape = (struct scrape){NULL, 0, 0};
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        void *value;
        size_t position = 0;
        pthread_mutex_lock(&shards[i].mutex);
        while (shards[i].series && map_next(shards[i].series, &position, NULL, &value))
            copy_series(scrape, value);
        pthread_mutex_unlock(&shards[i].mutex);
    }
    if (scrape->count)
        qsort(scrape->copies, scrape->count, sizeof *scrape->copies, compare_series);
}

void metrics_scrape_finish(struct scrape *scrape)
{
    for (size_t i = 0; i < scrape->count; i++) {
        free(scrape->copies[i].key);
        free(scrape->copies[i].bucket);
    }
    free(scrape->copies);
}
