/*
 * Metric values. A series is one metric with one set of labels; its value is in cells, one for
 * each thread that counts in it, so that counting takes no lock: a thread alone writes to its
 * cells, and a scrape adds them up. A lock is taken when a thread meets a series for the first
 * time.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/map.h"
#include "taskgate/core/markdown.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"

enum kind { COUNTER, GAUGE, HISTOGRAM };
struct family {
    enum kind kind;
    const char *name;   /* without the prefix */
    const char *labels; /* comma-separated */
    const char *help;
    const double *buckets; /* upper bounds, rising, without +Inf */
    size_t bucket_count;
};

/* Ends each label value in a key; no byte of UTF-8, so no value can hold it. */
#define KEY_SEPARATOR '\xFF'

#define METRICS_LABEL_BYTES 128
#define METRICS_KEY_BYTES (2 + METRICS_MAX_LABELS * (METRICS_LABEL_BYTES + 1))

struct series {
    enum metric metric;
    char *key; /* metrics_key() */
    size_t key_length;
    struct metrics_cell *cells; /* one for each thread that counts in it; not in a copy */
    double value;               /* the value of metrics_set(); in a copy all of it */
    /* In a copy only: of a histogram, per bound and above all of them, not cumulative. */
    uint64_t *bucket;
    uint64_t count;
};

/* A copy of every series, taken under the lock and rendered outside it, so that a slow scrape
 * delays no other thread. */
struct scrape {
    struct series *copies; /* sorted: by metric, then labels */
    size_t count, capacity;
};

/* The table of metrics as values. */

#define METRIC_ROW(symbol, kind, name, labels, help, ...)                                          \
    static const double buckets_of_##symbol[] = {0, ##__VA_ARGS__};
#include "taskgate/core/metrics_table.h"
#undef METRIC_ROW

static const struct family metrics_families[METRIC_COUNT] = {
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

/* Label values: the permitted characters, and the number of values that clients choose. */

_Static_assert(METRIC_COUNT < 256, "a key has one byte for the metric");

/* Clients choose the values of these labels. Their number is capped, or an agent with invented
 * names would fill the memory of the gateway and of the monitoring system. Behaviour 18.4. */
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

/* Hidden characters but LF, which is escaped: people read metrics on terminals, too. */
static bool misleads(struct str value)
{
    unsigned c;
    for (size_t i = 0, length; i < value.length; i += length) {
        length = str_code_point(str_slice(value.bytes + i, value.length - i), &c);
        if (length == 0 || (c != '\n' && visible_is_hidden(c)))
            return true;
    }
    return false;
}

/* A value that may stand in the text: UTF-8 of bounded length. */
static struct str presentable(struct str value)
{
    if (misleads(value))
        return STR("__invalid__");
    if (value.length <= METRICS_LABEL_BYTES)
        return value;
    size_t length = METRICS_LABEL_BYTES;
    while (((unsigned char)value.bytes[length] & 0xC0) == 0x80)
        length--;
    return str_slice(value.bytes, length);
}

/* The key of a series, in `key`: one byte of metric, then the label values as they may be shown,
 * each ended by KEY_SEPARATOR. */
static struct str metrics_key(enum metric metric, const struct str *values,
                              char key[METRICS_KEY_BYTES])
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

/* Puts "__other__" in place of each value of a capped label that is one too many; true when there
 * was one. */
static bool metrics_cap_labels(enum metric metric, const struct str *values,
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

static void metrics_labels_finish(void)
{
    for (size_t i = 0; i < CAPPED_LABEL_COUNT; i++) {
        pthread_mutex_lock(&capped_labels[i].mutex);
        map_destroy(capped_labels[i].values, NULL);
        capped_labels[i].values = NULL;
        pthread_mutex_unlock(&capped_labels[i].mutex);
    }
}

/* ---- cells ---- */

#define CACHE_LINE_BYTES 64

/* Of one series and one thread. The thread writes, any thread reads: relaxed, because the values
 * are independent. */
struct metrics_cell {
    struct series *series;
    struct metrics_cell *next;           /* of the series; under the lock */
    struct metrics_cell *next_of_thread; /* the owner's own */
    const struct thread_cells *owner;    /* NULL: its thread has ended; under the lock */
    _Atomic(double) value;               /* counter, gauge; sum of a histogram */
    _Atomic(uint64_t) bucket[];          /* of a histogram: one for each bound, then the rest */
};

static double read_double(const _Atomic(double) *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void count_up(_Atomic(uint64_t) *value)
{
    uint64_t old = atomic_load_explicit(value, memory_order_relaxed);
    atomic_store_explicit(value, old + 1, memory_order_relaxed);
}

void metrics_cell_add(struct metrics_cell *cell, double amount)
{
    atomic_store_explicit(&cell->value, read_double(&cell->value) + amount, memory_order_relaxed);
}

void metrics_cell_observe(struct metrics_cell *cell, double value)
{
    const struct family *family = &metrics_families[cell->series->metric];
    size_t i = 0;
    while (i < family->bucket_count && value > family->buckets[i])
        i++;
    metrics_cell_add(cell, value);
    count_up(&cell->bucket[i]);
}

static void *take_lines(size_t size)
{
    void *lines = aligned_alloc(CACHE_LINE_BYTES, size);
    if (!lines)
        memory_exhausted();
    return lines;
}

/* A line of its own, so that two threads do not write to one. */
static struct metrics_cell *create_cell(struct series *series)
{
    size_t buckets = metrics_families[series->metric].bucket_count;
    size_t size = sizeof(struct metrics_cell) + (buckets + 1) * sizeof(_Atomic(uint64_t));
    size = (size + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    struct metrics_cell *cell = take_lines(size);
    memset(cell, 0, size);
    cell->series = series;
    cell->next = series->cells;
    series->cells = cell;
    return cell;
}

/* ---- series ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map *all_series; /* by key; NULL until the first; under the lock */
/* Changes when cells are freed, so that no thread uses an older pointer. Changed under the lock. */
static atomic_uint generation = 1;

static void destroy_series(void *value)
{
    struct series *series = value;
    while (series->cells) {
        struct metrics_cell *cell = series->cells;
        series->cells = cell->next;
        free(cell);
    }
    free(series->key);
    free(series);
}

static struct series *create_series(enum metric metric, struct str key)
{
    struct series *series = memory_alloc(sizeof *series);
    series->metric = metric;
    series->key = memory_copy_str(key);
    series->key_length = key.length;
    if (!all_series)
        all_series = map_create();
    map_put(all_series, key, series);
    return series;
}

/* The series, made if need be. Under the lock. */
static struct series *find_series(enum metric metric, const struct str *values)
{
    char bytes[METRICS_KEY_BYTES];
    struct str capped[METRICS_MAX_LABELS];
    struct str key = metrics_key(metric, values, bytes);
    struct series *series = all_series ? map_get(all_series, key) : NULL;
    if (series)
        return series;
    if (metrics_cap_labels(metric, values, capped)) {
        key = metrics_key(metric, capped, bytes);
        series = all_series ? map_get(all_series, key) : NULL;
    }
    return series ? series : create_series(metric, key);
}

/* ---- the cells of a thread ---- */

/* A thread counts in the same few series each time: they are remembered by their labels as
 * given, so that no key is built. */
struct recent {
    struct metrics_cell *cell; /* NULL: empty */
    enum metric metric;
    size_t lengths[METRICS_MAX_LABELS];
    char labels[96]; /* one after the other */
};

static _Thread_local struct thread_cells {
    unsigned generation; /* of all that follows */
    struct metrics_cell *cells;
    struct recent recents[64];
} own;

/* The cells of an ended thread keep its counts and serve the next thread. */
static void release_cells(void *context)
{
    struct thread_cells *ending = context;
    pthread_mutex_lock(&lock);
    if (ending->generation == atomic_load_explicit(&generation, memory_order_relaxed)) {
        for (struct metrics_cell *cell = ending->cells; cell; cell = cell->next_of_thread)
            cell->owner = NULL;
    }
    ending->generation = 0;
    pthread_mutex_unlock(&lock);
}

static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

static void metrics_watch_thread_ends(void)
{
    if (pthread_key_create(&thread_end, release_cells) != 0)
        abort();
}

/* Forgets the pointers of this thread if they are of an earlier generation. */
static void renew_own(void)
{
    unsigned now = atomic_load_explicit(&generation, memory_order_relaxed);
    if (own.generation == now)
        return;
    memset(&own, 0, sizeof own);
    own.generation = now;
    pthread_once(&thread_end_once, metrics_watch_thread_ends);
    pthread_setspecific(thread_end, &own);
}

/* This thread's cell of a series: there are as many as threads that have counted in it at once,
 * and a thread may count in thousands of series. Under the lock. */
static struct metrics_cell *take_cell(struct series *series)
{
    struct metrics_cell *free_cell = NULL, *cell = series->cells;
    for (; cell && cell->owner != &own; cell = cell->next) {
        if (!cell->owner)
            free_cell = cell;
    }
    if (cell)
        return cell;
    cell = free_cell ? free_cell : create_cell(series);
    cell->owner = &own;
    cell->next_of_thread = own.cells;
    own.cells = cell;
    return cell;
}

static struct metrics_cell *find_cell(enum metric metric, const struct str *values)
{
    pthread_mutex_lock(&lock);
    struct metrics_cell *cell = take_cell(find_series(metric, values));
    pthread_mutex_unlock(&lock);
    return cell;
}

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
    size_t slot = mixed % (sizeof own.recents / sizeof *own.recents);
    return total <= sizeof own.recents[0].labels ? &own.recents[slot] : NULL;
}

static bool recent_is(const struct recent *recent, enum metric metric, const struct str *values)
{
    const char *at = recent->labels;
    if (!recent->cell || recent->metric != metric)
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
                        struct metrics_cell *cell)
{
    char *at = recent->labels;
    recent->metric = metric;
    recent->cell = cell;
    for (size_t i = 0; i < METRICS_MAX_LABELS; i++) {
        struct str value = values ? values[i] : STR_EMPTY;
        recent->lengths[i] = value.length;
        if (value.length)
            memcpy(at, value.bytes, value.length);
        at += value.length;
    }
}

static struct metrics_cell *cell_of(enum metric metric, const struct str *values)
{
    renew_own();
    struct recent *recent = recent_slot(metric, values);
    if (recent && recent_is(recent, metric, values))
        return recent->cell;
    struct metrics_cell *cell = find_cell(metric, values);
    if (recent)
        recent_keep(recent, metric, values, cell);
    return cell;
}

/* ---- counting ---- */

void metrics_add(enum metric metric, double amount, const struct str *labels)
{
    metrics_cell_add(cell_of(metric, labels), amount);
}

void metrics_observe(enum metric metric, double value, const struct str *labels)
{
    metrics_cell_observe(cell_of(metric, labels), value);
}

void metrics_set(enum metric metric, double value, const struct str *labels)
{
    pthread_mutex_lock(&lock);
    find_series(metric, labels)->value = value;
    pthread_mutex_unlock(&lock);
}

bool metrics_is_found(const struct metrics_handle *handle)
{
    return handle->generation == atomic_load_explicit(&generation, memory_order_relaxed);
}

struct metrics_cell *metrics_find(struct metrics_handle *handle, enum metric metric,
                                  const struct str *labels)
{
    handle->cell = cell_of(metric, labels);
    handle->generation = own.generation;
    return handle->cell;
}

void metrics_reset(enum metric metric)
{
    pthread_mutex_lock(&lock);
    struct map *kept = map_create();
    struct str key;
    void *value;
    size_t position = 0;
    while (all_series && map_next(all_series, &position, &key, &value)) {
        struct series *series = value;
        if (series->metric == metric && !series->cells)
            destroy_series(series);
        else
            map_put(kept, key, series);
    }
    map_destroy(all_series, NULL);
    all_series = kept;
    pthread_mutex_unlock(&lock);
}

void metrics_finish(void)
{
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&generation, 1);
    map_destroy(all_series, destroy_series);
    all_series = NULL;
    pthread_mutex_unlock(&lock);
    metrics_labels_finish();
}

/* ---- a scrape ---- */

/* The sum over all threads. Under the lock. */
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
    copy->cells = NULL;
    copy->key = memory_copy_str(str_slice(series->key, series->key_length));
    copy->bucket = memory_alloc_array(buckets + 1, sizeof *copy->bucket);
    for (struct metrics_cell *cell = series->cells; cell; cell = cell->next) {
        copy->value += read_double(&cell->value);
        for (size_t i = 0; i <= buckets; i++) {
            uint64_t count = atomic_load_explicit(&cell->bucket[i], memory_order_relaxed);
            copy->bucket[i] += count;
            copy->count += count; /* read once, so that it is never below a bucket's */
        }
    }
}

static int compare_series(const void *left, const void *right)
{
    const struct series *a = left, *b = right;
    return str_compare(str_slice(a->key, a->key_length), str_slice(b->key, b->key_length));
}

static void metrics_scrape_take(struct scrape *scrape)
{
    *scrape = (struct scrape){NULL, 0, 0};
    void *value;
    size_t position = 0;
    pthread_mutex_lock(&lock);
    while (all_series && map_next(all_series, &position, NULL, &value))
        copy_series(scrape, value);
    pthread_mutex_unlock(&lock);
    if (scrape->count)
        qsort(scrape->copies, scrape->count, sizeof *scrape->copies, compare_series);
}

static void metrics_scrape_finish(struct scrape *scrape)
{
    for (size_t i = 0; i < scrape->count; i++) {
        free(scrape->copies[i].key);
        free(scrape->copies[i].bucket);
    }
    free(scrape->copies);
}

/* The text of metrics for Prometheus, and the table as Markdown. */

#define PREFIX "thoughtgate_"

static const char *const kind_names[] = {"counter", "gauge", "histogram"};

static void metrics_append_escaped(struct buffer *out, struct str value, bool in_quotes)
{
    for (size_t i = 0; i < value.length; i++) {
        char c = value.bytes[i];
        if (c == '\n')
            buffer_append(out, STR("\\n"));
        else if (c == '\\' || (c == '"' && in_quotes))
            buffer_append_format(out, "\\%c", c);
        else
            buffer_append_char(out, c);
    }
}

static void append_number(struct buffer *out, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.15g", value);
    if (isnan(value))
        buffer_append(out, STR("NaN"));
    else if (isinf(value))
        buffer_append_text(out, value > 0 ? "+Inf" : "-Inf");
    else if (value > -1e15 && value < 1e15 && value == (double)(int64_t)value)
        buffer_append_format(out, "%.0f", value);
    else if (strtod(text, NULL) == value)
        buffer_append_text(out, text); /* 0.1 and not 0.10000000000000001 */
    else
        buffer_append_format(out, "%.17g", value);
}

/* "{a="1",b="2"}", with `le` as one more label when it is not NULL; nothing without labels. */
static void append_labels(struct buffer *out, const struct series *series, const char *le)
{
    struct str name, value;
    struct str names = str_from(metrics_families[series->metric].labels);
    struct str values = str_slice(series->key + 1, series->key_length - 1);
    char before = '{';
    while (names.length > 0) {
        str_cut(names, ',', &name, &names);
        str_cut(values, KEY_SEPARATOR, &value, &values);
        buffer_append_format(out, "%c%.*s=\"", before, STR_ARGS(name));
        metrics_append_escaped(out, value, true);
        buffer_append_char(out, '"');
        before = ',';
    }
    if (le) {
        buffer_append_format(out, "%cle=\"%s\"", before, le);
        before = ',';
    }
    if (before == ',')
        buffer_append_char(out, '}');
}

static void append_sample(struct buffer *out, const struct series *series, const char *suffix,
                          const char *le, double value)
{
    buffer_append_format(out, PREFIX "%s%s", metrics_families[series->metric].name, suffix);
    append_labels(out, series, le);
    buffer_append_char(out, ' ');
    append_number(out, value);
    buffer_append_char(out, '\n');
}

static void append_histogram(struct buffer *out, const struct series *series, bool open_metrics)
{
    const struct family *family = &metrics_families[series->metric];
    uint64_t below = 0;
    for (size_t i = 0; i < family->bucket_count; i++) {
        struct buffer bound;
        buffer_init(&bound);
        append_number(&bound, family->buckets[i]);
        bool is_whole = !memchr(bound.bytes, '.', bound.length);
        if (open_metrics && is_whole) /* it wants a bound to look like a float */
            buffer_append(&bound, STR(".0"));
        char *le = buffer_take(&bound, NULL);
        below += series->bucket[i];
        append_sample(out, series, "_bucket", le, (double)below);
        free(le);
    }
    append_sample(out, series, "_bucket", "+Inf", (double)series->count);
    append_sample(out, series, "_sum", NULL, series->value);
    append_sample(out, series, "_count", NULL, (double)series->count);
}

/* In OpenMetrics a counter's family goes without the `_total` that its samples end in. */
static struct str family_name(const struct family *family, bool open_metrics)
{
    struct str name = str_from(family->name);
    if (open_metrics && family->kind == COUNTER)
        name.length -= sizeof "_total" - 1;
    return name;
}

static void append_heading(struct buffer *out, const struct family *family, bool open_metrics)
{
    struct str name = family_name(family, open_metrics);
    buffer_append_format(out, "# HELP " PREFIX "%.*s ", STR_ARGS(name));
    metrics_append_escaped(out, str_from(family->help), open_metrics);
    buffer_append_format(out, "\n# TYPE " PREFIX "%.*s %s\n", STR_ARGS(name),
                         kind_names[family->kind]);
}

void metrics_write(struct buffer *out, bool open_metrics)
{
    struct scrape scrape;
    metrics_scrape_take(&scrape);
    size_t next = 0;
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        append_heading(out, &metrics_families[metric], open_metrics);
        for (; next < scrape.count && (int)scrape.copies[next].metric == metric; next++) {
            if (metrics_families[metric].kind == HISTOGRAM)
                append_histogram(out, &scrape.copies[next], open_metrics);
            else
                append_sample(out, &scrape.copies[next], "", NULL, scrape.copies[next].value);
        }
    }
    if (open_metrics)
        buffer_append(out, STR("# EOF\n"));
    metrics_scrape_finish(&scrape);
}

void metrics_write_reference(struct buffer *out)
{
    OWNED_BUFFER(item);
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const struct family *family = &metrics_families[metric];
        buffer_clear(&item);
        buffer_append_format(&item, "`" PREFIX "%s` (%s", family->name, kind_names[family->kind]);
        struct str name, rest = str_from(family->labels);
        for (const char *before = "; "; rest.length > 0; before = ", ") {
            str_cut(rest, ',', &name, &rest);
            buffer_append_format(&item, "%s`%.*s`", before, STR_ARGS(name));
        }
        buffer_append_format(&item, "): %s", family->help);
        for (size_t i = 0; i < family->bucket_count; i++) {
            buffer_append_text(&item, i == 0 ? " Buckets: " : ", ");
            append_number(&item, family->buckets[i]);
        }
        markdown_append_item(out, buffer_str(&item));
    }
}
