/* Shared by the values of metrics and their text. */
#pragma once

#include "taskgate/core/metrics.h"

enum kind { COUNTER, GAUGE, HISTOGRAM };
struct family {
    enum kind kind;
    const char *name;   /* without the prefix */
    const char *labels; /* comma-separated */
    const char *help;
    const double *buckets; /* upper bounds, rising, without +Inf */
    size_t bucket_count;
};

extern const struct family metrics_families[METRIC_COUNT];

/* Ends each label value in a key; no byte of UTF-8, so no value can hold it. */
#define KEY_SEPARATOR '\xFF'

#define METRICS_LABEL_BYTES 128
#define METRICS_KEY_BYTES (2 + METRICS_MAX_LABELS * (METRICS_LABEL_BYTES + 1))

/* The key of a series, in `key`: one byte of metric, then the label values as they may be shown,
 * each ended by KEY_SEPARATOR. */
struct str metrics_key(enum metric metric, const struct str *values, char key[METRICS_KEY_BYTES]);
/* Puts "__other__" in place of each value of a capped label that is one too many; true when there
 * was one. */
bool metrics_cap_labels(enum metric metric, const struct str *values,
                        struct str capped[METRICS_MAX_LABELS]);
void metrics_labels_finish(void);

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

void metrics_scrape_take(struct scrape *scrape);
void metrics_scrape_finish(struct scrape *scrape);
