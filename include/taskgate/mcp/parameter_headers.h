/*
 * Mcp-Param-NAME: arguments of a tool that a client repeats in headers, because the tool's
 * inputSchema has `x-mcp-header: NAME` at their property.
 *
 * A value is made of a schema once, when a list of tools is read, and is not changed after that.
 * Any thread. Source: MCP 2026-07-28, transports/streamable-http "Schema Extension"; SEP-2243.
 */
#pragma once

#include "taskgate/core/error.h"
#include "taskgate/mcp/mirrored_header.h"

#define PARAMETER_HEADER_PREFIX "mcp-param-"

struct parameter_headers;

enum parameter_headers_status {
    PARAMETER_HEADERS_NONE,    /* as most tools: nothing is made */
    PARAMETER_HEADERS_SOME,    /* `*headers` is the caller's to destroy */
    PARAMETER_HEADERS_INVALID, /* clients drop such a tool; `error` says why */
};

/* Reads a schema (checked JSON text). A name must be a token, and unique without case; its property
 * must be a string, an integer or a boolean, and reached through `properties` alone. */
enum parameter_headers_status parameter_headers_create(struct str input_schema,
                                                       struct parameter_headers **headers,
                                                       struct error *error);
void parameter_headers_destroy(struct parameter_headers *headers); /* NULL is allowed */

/* The header of a request whose name is PARAMETER_HEADER_PREFIX and `name`, without case. */
typedef struct mirrored_header (*parameter_header_find)(void *request, struct str name);

/* Compares the headers of a request with the arguments of its call (JSON text, or empty). An
 * argument that is absent or null must have no header, any other one must have one that says the
 * same; numbers are compared as numbers. Returns the first verdict that is not MIRRORED_SAME, with
 * the header's NAME in `name` (borrowed from `headers`). Headers of other names do not count: the
 * server judges these. */
enum mirrored_verdict parameter_headers_check(const struct parameter_headers *headers,
                                              struct str arguments, parameter_header_find find,
                                              void *request, struct str *name);

/* Gives each header that a call with these arguments must have, by its NAME and its value. */
typedef void (*parameter_header_put)(void *context, struct str name, struct str value);
void parameter_headers_write(const struct parameter_headers *headers, struct str arguments,
                             parameter_header_put put, void *context);
