/*
 * The block `telemetry` of the configuration, with OpenTelemetry's variables applied.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/tls/client.h"

/* Two texts that belong together. */
struct config_pair {
    char *name, *value;
};

/* The traces that are kept, as OTEL_TRACES_SAMPLER has them. The last three follow the decision of
 * the client that has begun the trace. */
enum config_sampler {
    SAMPLER_ON,
    SAMPLER_OFF,
    SAMPLER_RATIO,
    SAMPLER_PARENT_ON,
    SAMPLER_PARENT_OFF,
    SAMPLER_PARENT_RATIO
};
enum config_otlp_protocol { OTLP_PROTOBUF, OTLP_JSON, OTLP_GRPC /* read as the first */ };

/* Export of traces. */
struct config_telemetry {
    bool is_on;
    char *url;    /* the collector; may hold credentials: never logged */
    char *origin; /* of it, without them: "https://collector:4318" */
    enum config_otlp_protocol protocol;
    struct config_pair *headers; /* values are secrets: never logged */
    size_t header_count;
    struct config_pair *resource; /* attributes of all spans */
    size_t resource_count;
    enum config_sampler sampler;
    double sample_rate; /* of the samplers by ratio */
    int64_t max_queue_size, max_export_batch_size;
    int64_t scheduled_delay_ms, export_timeout_ms;
    char *tls_ca;                /* file, or NULL */
    const char *tls_ca_variable; /* the variable that names it; NULL: the configuration file does */
    struct tls_client *tls;      /* the settings made of it; NULL: the system's authorities */
};
