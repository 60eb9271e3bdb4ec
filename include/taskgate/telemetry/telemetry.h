/*
 * Telemetry: spans go to a collector by OTLP over HTTP, from a thread of its own. The gateway never
 * waits for it: beyond the queue's room, or when the collector does not take them, spans are
 * dropped and counted (`telemetry_dropped_total`). Source: behaviour 18.2, the OTLP specification
 * 1.x "OTLP/HTTP".
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/error.h"

/* Starts the exporter if the configuration wants telemetry; before other threads are started. The
 * settings are those of this configuration until telemetry_stop(). false: `error` says why not. */
bool telemetry_start(const struct config *config, struct error *error);
/* Spans that wait are sent until that moment (monotonic); later ones are dropped and counted. From
 * now on no span may be started. Without telemetry it does nothing. */
void telemetry_stop(int64_t until_ms);
