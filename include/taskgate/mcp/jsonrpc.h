/*
 * JSON-RPC answers of the gateway's own. Writers append to a buffer; ids are JSON text as
 * envelope_read() gave them. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

enum jsonrpc_error {
#define ERROR_ROW(symbol, ...) JSONRPC_##symbol,
#include "taskgate/mcp/error_table.h"
#undef ERROR_ROW
    JSONRPC_ERROR_COUNT
};

/* The one length limit for texts that the gateway writes for people. */
#define MCP_TEXT_MAX_BYTES 1024
/* The first MCP_TEXT_MAX_BYTES of `text`, cut before a UTF-8 character that would not fit. */
struct str mcp_text_cut(struct str text);

/* Either side sends it when it wants no answer to a request any more. */
#define MCP_CANCELLED "notifications/cancelled"

int jsonrpc_error_code(enum jsonrpc_error error);
const char *jsonrpc_error_type(enum jsonrpc_error error);
const char *jsonrpc_error_message(enum jsonrpc_error error);
/* The table as a Markdown list, for docs/errors.md. */
void jsonrpc_write_error_reference(struct buffer *out);

/* The members of `error.data`, in this order; empty ones are left out. `error_type` and a
 * random `correlation_id` are always added at the end. */
struct jsonrpc_error_data {
    struct str tool, reason, hint; /* first, as behaviour 3.10 has them */
    struct str alternative;        /* JSON text: what else the client can do */
    struct str gate;               /* policy_gate_name() */
    struct str details;
    struct str required_capabilities; /* JSON object, of -32021 */
    struct str supported, requested;  /* JSON texts, of -32022: an array, a string */
    int64_t retry_after;              /* seconds; 0: left out */
    bool is_retryable;                /* "retryable": true; else left out */
};

/* {"code", "message", "data"}: `message` empty takes the table's; it is cut at 1 KB, between
 * UTF-8 characters. `data` may be NULL. */
void jsonrpc_write_error_object(struct buffer *out, enum jsonrpc_error error, struct str message,
                                const struct jsonrpc_error_data *data);
/* The whole response; without `id` the member is left out (clients reject null). */
void jsonrpc_write_error(struct buffer *out, struct str id, enum jsonrpc_error error,
                         struct str message, const struct jsonrpc_error_data *data);
/* {"jsonrpc":"2.0","id":…,"result":…}; `result` is JSON text, as is `error`. */
void jsonrpc_write_result(struct buffer *out, struct str id, struct str result);
void jsonrpc_write_error_text(struct buffer *out, struct str id, struct str error);
/* A notifications/cancelled; `reason` needs no escapes. */
void jsonrpc_write_cancelled(struct buffer *out, struct str request_id, const char *reason);
