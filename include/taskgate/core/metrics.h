/*
 * Metrics: one table of names, labels and buckets (include/taskgate/core/metrics_table.h), values
 * that any thread may change, text for Prometheus. Behaviour 18.4.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

enum metric {
#define METRIC_ROW(symbol, ...) METRIC_##symbol,
#include "taskgate/core/metrics_table.h"
#undef METRIC_ROW
    METRIC_COUNT
};

#define METRICS_MAX_LABELS 3

/* Label values in the table's order, NULL for a metric without labels; copied when first seen, cut
 * at 128 bytes. tool_name beyond 200 values and method beyond 100 become "__other__"
 * (behaviour 18.4). */
#define METRIC_LABELS(...) ((const struct str[METRICS_MAX_LABELS]){__VA_ARGS__})

/* Each thread counts in cells of its own, which a scrape adds up: no lock is taken but when a
 * thread meets a series for the first time. */
void metrics_add(enum metric metric, double amount, const struct str *labels);
/* The value set is added to the sums of all threads. Takes a lock. */
void metrics_set(enum metric metric, double value, const struct str *labels);
void metrics_observe(enum metric metric, double value, const struct str *labels);
/* Drops every series of a gauge that was only set, so that what is gone is not reported for ever.
 */
void metrics_reset(enum metric metric);
#define metrics_count(metric, ...) metrics_add(metric, 1, METRIC_LABELS(__VA_ARGS__))

/* One thread's cell of one metric with labels that never change: the series is looked up at
 * the first use alone. Zeroed memory of that thread's own; nothing to free. */
struct metrics_cell;
struct metrics_handle {
    struct metrics_cell *cell;
    unsigned generation;
};
bool metrics_is_found(const struct metrics_handle *handle);
struct metrics_cell *metrics_find(struct metrics_handle *handle, enum metric metric,
                                  const struct str *labels);
void metrics_cell_add(struct metrics_cell *cell, double amount);
void metrics_cell_observe(struct metrics_cell *cell, double value);
/* `labels` are evaluated at the first use alone, `handle` more than once. */
#define metrics_cell_of(handle, metric, labels)                                                    \
    (metrics_is_found(handle) ? (handle)->cell : metrics_find(handle, metric, labels))
#define metrics_add_by(handle, metric, amount, labels)                                             \
    metrics_cell_add(metrics_cell_of(handle, metric, labels), amount)
#define metrics_observe_by(handle, metric, value, labels)                                          \
    metrics_cell_observe(metrics_cell_of(handle, metric, labels), value)

/* Prometheus text 0.0.4, or OpenMetrics 1.0.0 with its "# EOF". */
void metrics_write(struct buffer *out, bool open_metrics);
/* The table as a Markdown list, for docs/metrics.md. */
void metrics_write_reference(struct buffer *out);
/* Frees everything, for a leak-free end: no other thread counts any more. */
void metrics_finish(void);
