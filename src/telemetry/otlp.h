/*
 * The messages of OTLP's trace service (opentelemetry-proto 1.x): the request with ended spans, in
 * either encoding, and how many spans its response refuses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "span_internal.h"
#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"

/* The source of the spans: this process, its place, and its operator's words about it. */

struct resource {
    struct config_pair *items; /* owned, as their texts are */
    size_t count;
};

#define OTLP_SCOPE "taskgate"

/* `spans` are struct span.node. */
void otlp_write_protobuf(struct buffer *out, const struct resource *resource,
                         const struct list *spans);
void otlp_write_json(struct buffer *out, const struct resource *resource, const struct list *spans);

/* The rejected spans of an ExportTraceServiceResponse; 0 when it cannot be read, for then nothing
 * is known of any. `why` gets the server's message. */
int64_t otlp_read_rejected(struct str body, bool is_json, struct buffer *why);

#define OTLP_STATUS_ERROR 2

/*
 * Writing messages in the wire format of Protocol Buffers, field by field, and reading the few that
 * come back. Fields without presence that have their default value are left out, as others do it.
 */

enum protobuf_wire {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_LENGTH = 2,
    PROTOBUF_FIXED32 = 5
};

struct protobuf_field {
    unsigned number;
    enum protobuf_wire wire;
    uint64_t value;   /* of a number */
    struct str bytes; /* of PROTOBUF_LENGTH, borrowed */
};
