/* A span from the inside, for the encoders and the exporter. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/list.h"
#include "taskgate/telemetry/span.h"

struct span_value {
    char *text; /* owned; NULL: it is the number, if it is set */
    size_t length;
    int64_t number;
    bool is_set;
};

struct span {
    struct list node; /* in the exporter's queue, once it has ended */
    struct trace_context context;
    unsigned char parent_id[SPAN_ID_BYTES];
    bool has_parent, is_parent_remote;
    bool is_failed;
    bool has_end; /* it was set */
    enum span_kind kind;
    char *state, *name, *message; /* owned; state and message may be NULL */
    uint64_t start_ns, end_ns;    /* since 1970 */
    int64_t started_us;           /* monotonic */
    struct span_value values[ATTRIBUTE_COUNT];
    struct trace_context links[SPAN_MOST_LINKS];
    size_t link_count;
};

void span_destroy(struct span *span);
/* A new id. */
void span_id_make(unsigned char id[SPAN_ID_BYTES]);

/* The exporter (exporter.h) takes over an ended span. Any thread; never waits for the network. */
void exporter_take(struct span *span);

/* The traces that are kept: decided at their head. */

void sampler_configure(enum config_sampler sampler, double ratio);
/* `trace_id` is the new span's. */
bool sampler_takes(const unsigned char trace_id[TRACE_ID_BYTES], const struct span_parent *parent);
