/*
 * Writing messages in the wire format of Protocol Buffers, field by field, and reading the few that
 * come back. Fields without presence that have their default value are left out, as others do it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"

enum protobuf_wire {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_LENGTH = 2,
    PROTOBUF_FIXED32 = 5
};

void protobuf_write_varint(struct buffer *out, unsigned field, uint64_t value);
void protobuf_write_fixed64(struct buffer *out, unsigned field, uint64_t value);
void protobuf_write_fixed32(struct buffer *out, unsigned field, uint32_t value);
/* Texts, too. */
void protobuf_write_bytes(struct buffer *out, unsigned field, struct str value);
/* A message inside: what is written between the two is its content. */
size_t protobuf_open(struct buffer *out, unsigned field);
void protobuf_close(struct buffer *out, size_t opened);

struct protobuf_field {
    unsigned number;
    enum protobuf_wire wire;
    uint64_t value;   /* of a number */
    struct str bytes; /* of PROTOBUF_LENGTH, borrowed */
};
/* Takes the first field off `rest`. false at the end, and where it cannot be read. */
bool protobuf_next(struct str *rest, struct protobuf_field *field);
