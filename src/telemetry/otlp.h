/*
 * The messages of OTLP's trace service (opentelemetry-proto 1.x): the request with ended spans, in
 * either encoding, and how many spans its response refuses.
 */
#pragma once

#include "resource.h"
#include "span_internal.h"
#include "taskgate/core/buffer.h"

#define OTLP_SCOPE "taskgate"

/* `spans` are struct span.node. */
void otlp_write_protobuf(struct buffer *out, const struct resource *resource,
                         const struct list *spans);
void otlp_write_json(struct buffer *out, const struct resource *resource, const struct list *spans);

/* The rejected spans of an ExportTraceServiceResponse; 0 when it cannot be read, for then nothing
 * is known of any. `why` gets the server's message. */
int64_t otlp_read_rejected(struct str body, bool is_json, struct buffer *why);

/* Bits of `flags` of a span: the W3C flags, and whether its parent is known to be remote. */
uint32_t otlp_flags(const struct span *span);
#define OTLP_STATUS_ERROR 2
