/* What the values and their text share. */
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

struct series {
    enum metric metric;
    char *key; /* one byte of metric, then the label values, each ended by KEY_SEPARATOR */
    size_t key_length;
    double value;     /* counter, gauge; sum of a histogram */
    uint64_t count;   /* of a histogram */
    uint64_t *bucket; /* of a histogram: per bound, not cumulative */
};

/* A copy of every series, taken under the locks and rendered outside them: a slow scrape holds
 * nobody up. */
struct scrape {
    struct series *copies; /* sorted: by metric, then labels */
    size_t count, capacity;
};

void metrics_scrape_take(struct scrape *scrape);
void metrics_scrape_finish(struct scrape *scrape);
