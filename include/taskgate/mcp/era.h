/*
 * The two eras of the protocol. Legacy: revisions up to 2025-11-25, which open with `initialize`.
 * Modern: 2026-07-28, whose requests carry their version and the client's capabilities in
 * `params._meta`. The body of a request says its era; its headers are only compared. Source: MCP
 * 2026-07-28, basic "Requests", versioning "Backward Compatibility". Any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/json/envelope.h"
#include "taskgate/mcp/jsonrpc.h"
#include "taskgate/mcp/mirrored_header.h"
#include "taskgate/mcp/version.h"

enum mcp_claim {
    MCP_CLAIM_LEGACY,
    MCP_CLAIM_MODERN, /* the body names a version, or a header does of a notification */
    MCP_CLAIM_HALF,   /* a header names a modern version, and the body of the request does not */
};

/* `version` is the value of MCP-Protocol-Version, or empty. No other key of `_meta` is a claim:
 * legacy clients send some of them. */
enum mcp_claim mcp_era_claim(const struct envelope *envelope, struct str version);

/* Whether the text has the form of a version: a date, so that they compare as texts. */
bool mcp_is_version(struct str text);
/* Whether a version's JSON text is one of the modern era, be it served or not. */
bool mcp_era_is_modern_version(struct str json);

/* The headers of a modern request that repeat parts of its body. */
struct mcp_mirrored_headers {
    struct mirrored_header version, method, name;
};

/* Why a modern request is refused. */
struct mcp_era_fault {
    enum jsonrpc_error error;
    const char *header;  /* of HEADER_MISMATCH, else NULL */
    const char *message; /* a sentence */
};

/* A request that claims the modern era by halves: names the key that it lacks. */
void mcp_era_refuse_half(const struct envelope *envelope, struct mcp_era_fault *fault);
/* Whether a modern request, whose claim is in its body, is complete and agrees with its headers.
 * Of several faults the first counts, in this order: envelope, a version that differs, a version
 * that is not served, the other headers. */
bool mcp_era_check(const struct envelope *envelope, const struct mcp_mirrored_headers *headers,
                   struct mcp_era_fault *fault);

/* The prefix of the keys of `_meta` that only the modern era has. */
#define MCP_RESERVED "io.modelcontextprotocol/"
/* Adds the member `extensions` without that of tasks, unless nothing is left. */
void mcp_add_other_extensions(struct buffer *out, struct str extensions);
/* Writes params without the members `left_out` and without the reserved keys of `_meta`. */
void mcp_write_bare_params(struct buffer *out, struct str params, const char *const *left_out,
                           size_t count);
/* Writes a notification without the reserved keys of its `_meta`, which name the stream of one era.
 */
void mcp_write_bare_notification(struct buffer *out, struct str message);

/* The rank of a log level (JSON text), 0 for "debug"; -1: there is no such level. */
int mcp_log_level(struct str level);
