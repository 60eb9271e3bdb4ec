/*
 * The exporter: a bounded queue of ended spans, and the thread that sends them in batches.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "otlp.h"
#include "span_internal.h"
#include "taskgate/core/error.h"

struct exporter;

/* The configuration must outlive it. NULL on failure. There is one at a time. */
struct exporter *exporter_create(const struct config_telemetry *telemetry, struct error *error);
/* Sends what waits until that moment (monotonic), then ends. NULL is allowed. */
void exporter_destroy(struct exporter *exporter, int64_t until_ms);

/* When a batch that the collector has not taken is sent again. */

/* Whether another attempt may succeed (OTLP/HTTP, "Retryable Response Codes"). Status 0: there was
 * no response. */
bool retry_is_useful(int status);
/* The pause after so many failures in a row: what the collector asks for (0: nothing), else a time
 * that doubles, with some chance in it. */
int64_t retry_pause_ms(unsigned failures, int64_t asked_ms);
