/* The table of metrics as values. */
#include "metrics_internal.h"

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
