/*
 * The exporter: a bounded queue of ended spans, and the thread that sends them in batches.
 */
#pragma once

#include "resource.h"
#include "span_internal.h"
#include "taskgate/core/error.h"

struct exporter;

/* The configuration must outlive it. NULL on failure. There is one at a time. */
struct exporter *exporter_create(const struct config_telemetry *telemetry, struct error *error);
/* Sends what waits until that moment (monotonic), then ends. NULL is allowed. */
void exporter_destroy(struct exporter *exporter, int64_t until_ms);
/* Takes over an ended span. Any thread; never waits for the network. */
void exporter_take(struct span *span);
