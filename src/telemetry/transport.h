/*
 * Posting to the collector, on a loop that the exporter's thread has for that alone. All on that
 * thread, but for transport_interrupt().
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"

struct transport;

struct transport_reply {
    int status;             /* 0: there is no response */
    int64_t retry_after_ms; /* 0: the collector names none */
    struct buffer body;     /* cut at a bound */
    char problem[ERROR_MESSAGE_BYTES];
};

/* NULL on failure. The configuration must outlive it. */
struct transport *transport_create(const struct config_telemetry *telemetry, struct error *error);
void transport_destroy(struct transport *transport); /* NULL is allowed */
/* Waits for the response until that moment (monotonic), which `until_ms` may bring forward while it
 * waits. Always call buffer_finish() on the reply's body. */
void transport_post(struct transport *transport, struct str body, int64_t (*until_ms)(void *),
                    void *context, struct transport_reply *reply);
/* Has a post look at its time again. Any thread. */
void transport_interrupt(struct transport *transport);
