/*
 * The headers of the modern era that repeat a part of the body: Mcp-Method, Mcp-Name and
 * Mcp-Param-*. The gateway judges the body alone and refuses a request whose headers say anything
 * else, because a load balancer behind it may route by them.
 *
 * A value is the text itself, or `=?base64?PAYLOAD?=` around the text's bytes. Source: MCP
 * 2026-07-28, transports/streamable-http "Value Encoding", "Server Validation"; SEP-2243.
 *
 * Nothing here allocates unless it says so. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* The order is that of the texts of mirrored_verdict_text(). */
enum mirrored_verdict {
    MIRRORED_SAME,
    MIRRORED_MISSING,     /* the body has a value, and no header repeats it */
    MIRRORED_REPEATED,    /* the header is there twice: readers differ in which of them they take */
    MIRRORED_UNDECODABLE, /* broken base64, or bytes that no header may have */
    MIRRORED_DIFFERENT,
    MIRRORED_UNEXPECTED, /* the header is there, and the body has no such value */
};

/* A sentence for errors and logs, without the values: "differs from the body". */
const char *mirrored_verdict_text(enum mirrored_verdict verdict);

/* A request's values under one header name. Zeroed: none. */
struct mirrored_header {
    struct str value; /* of the first one */
    size_t count;
};

/* Counts one more header of that name. */
void mirrored_header_add(struct mirrored_header *header, struct str value);

/* Compares with a text of the body, decoded. White space around the header's value does not count,
 * case does. `text` must be UTF-8, so that a payload which equals it is UTF-8, too. */
enum mirrored_verdict mirrored_header_compare(const struct mirrored_header *header,
                                              struct str text);
/* The same with the JSON text of a string. It is compared where it stands, and copied only when it
 * has escapes. */
enum mirrored_verdict mirrored_header_compare_json(const struct mirrored_header *header,
                                                   struct str json);

/* The text that a header's value stands for: a part of `value` itself, or the decoded payload,
 * which is appended to `room` and is valid until its next change. false: the value cannot be
 * decoded, or the payload is not UTF-8. */
bool mirrored_header_decode(struct str value, struct buffer *room, struct str *text);
/* Appends `text` as a header's value: as it is where a header can carry it, else as base64. The
 * empty text is encoded, because some servers take an empty header for none. */
void mirrored_header_encode(struct str text, struct buffer *out);
