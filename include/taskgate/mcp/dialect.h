/*
 * The differences between the eras of the protocol toward a client: a table for each era, which
 * each call has; and the form of a task on the wire in the legacy era (SEP-1686, up to 2025-11-25):
 * the older flat shapes and the published nested ones at once, as a superset that the official SDK
 * clients accept. Source: behaviour 7.5; the demands of those clients:
 * tests/unit/mcp/clients_test.c; MCP 2026-07-28.
 *
 * Writers append to a buffer of the caller's. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/jsonrpc.h"
#include "taskgate/task/task.h"

/* How an error is told. */
struct dialect_error {
    enum jsonrpc_error error; /* the row of the table that is written */
    int status;               /* of HTTP */
};

struct dialect_view;

/* One era toward a client. Immutable. */
struct dialect {
    enum mcp_era era;
    bool has_sessions;     /* and streams that can be resumed; else their headers mean nothing */
    bool server_may_ask;   /* with requests of its own on the stream of a response */
    bool offers_all_tools; /* of the gateway's own, to clients that know no tasks; else those alone
                            * that lead to a held call's outcome, where calls may be held */
    bool announces_tasks;  /* a listed tool says how it is called: `taskSupport` */
    bool extends_tasks;    /* tasks are an extension (SEP-2663): declared with each request; what a
                            * server asks is in the task, and cancelling is acknowledged */
    struct dialect_error (*error)(enum jsonrpc_error error);
    /* A whole JSON-RPC response with a result, which is a JSON object: of the server's, or of the
     * gateway's own, which may say so. */
    void (*write_result)(struct buffer *out, struct str id, struct str result);
    void (*write_own_result)(struct buffer *out, struct str id, struct str result);
    /* A list's result as it goes to a client, who may keep it for `most_ms`. */
    void (*write_list)(struct buffer *out, struct str result, int64_t most_ms);
    /* The result of tasks/get. */
    void (*write_task)(struct buffer *out, const struct task *task,
                       const struct dialect_view *view);
    /* The whole answer to a held call whose task has ended. */
    void (*write_answer)(struct buffer *out, struct str id, const struct task *task);
    /* The result of a call that became a task; `immediate` is a text for the model, or empty. */
    void (*write_create_result)(struct buffer *out, const struct task *task,
                                const struct dialect_view *view, struct str immediate);
};
extern const struct dialect dialect_legacy, dialect_modern;

/* A whole JSON-RPC error, as jsonrpc_write_error(), with the era's code. */
void dialect_write_error(const struct dialect *dialect, struct buffer *out, struct str id,
                         enum jsonrpc_error error, struct str message,
                         const struct jsonrpc_error_data *data);

/* The key of _meta that names the task of a message. */
#define RELATED_TASK "io.modelcontextprotocol/related-task"

/* Texts of -32009 and -32010: the first three are fixed (behaviour 3.10). The last is the
 * reason for a tool that is in force_required but needs no approval. */
#define DIALECT_REASON_REQUIRED                                                                    \
    "This operation requires approval and must be called with task metadata"
#define DIALECT_HINT_REQUIRED "Include task field: { \"task\": { \"ttl\": 600000 } }"
#define DIALECT_REASON_FORBIDDEN "This tool does not support task-augmented calls"
#define DIALECT_REASON_FORCED "This tool must be called as a task: include task metadata"
#define DIALECT_RESPONSES_REFUSAL "params.inputResponses must be an object"

/* Of tasks/get: the member of _meta that answers what the task's server asks. */
#define DIALECT_ELICITATION_RESPONSE "io.modelcontextprotocol/elicitation-response"

/* The status shown for `pending`; behaviour 7.4 says when it is which. */
enum dialect_pending { DIALECT_PENDING_INPUT_REQUIRED, DIALECT_PENDING_WORKING };

/* Facts shown of a task that its row does not hold. */
struct dialect_view {
    enum dialect_pending pending;
    bool is_asking;                  /* while it executes: upstream waits for the client's answer */
    int64_t changed_ms;              /* when that last changed; 0 for never */
    struct str pending_elicitations; /* JSON array of the server's open questions, or empty */
    /* Of the modern era alone. */
    int64_t now_ms;            /* wall clock: the poll interval grows while nobody decides */
    struct str input_requests; /* JSON object of what the server still asks the client; or empty */
};

/* "input_required", "working", "completed", "failed", "cancelled". */
const char *dialect_status(enum task_state state, enum dialect_pending pending);
/* The text of statusMessage: exactly "Awaiting approval" while pending; otherwise the stored
 * one, else the reason (rejected: by a person, with a reason; expired: which clock) or the stage.
 * At most 1 KB. Empty for a completed task that stored none, and then no shape has a statusMessage.
 * Appended raw (not as JSON). */
void dialect_status_message(const struct task *task, struct buffer *out);

/* One flat Task object: taskId, status, statusMessage?, createdAt, lastUpdatedAt, ttl,
 * pollInterval, and toolName (the older list entry). */
void dialect_write_task(struct buffer *out, const struct task *task,
                        const struct dialect_view *view);
/* The row in the table of errors of a task that ended without the server's word. */
enum jsonrpc_error dialect_error_of(const struct task *task);
/* The error object of a task that ended without the server's word: one for both eras. */
void dialect_write_own_error(struct buffer *out, const struct task *task);
/* A person's reason as an agent is given it: white space folded to single blanks, at most 1 KB. */
void dialect_append_reason(struct buffer *out, struct str reason);
/* The answer of tasks/result for a terminal task (asserted): upstream's result with related-task
 * _meta added (other bytes verbatim), upstream's error verbatim, or the gateway's error for
 * rejected, expired, cancelled, unknown outcome (behaviour 7.14). A whole JSON-RPC message. */
void dialect_write_task_answer(struct buffer *out, struct str id, const struct task *task);
/* The data of the older `event: task_status`. */
void dialect_write_status_event(struct buffer *out, const struct task *task,
                                const struct dialect_view *view, int64_t now_ms);
/* A JSON-RPC notifications/tasks/status message with a full Task as params, and _meta where
 * elicitations are open. */
void dialect_write_status_notification(struct buffer *out, const struct task *task,
                                       const struct dialect_view *view);
/* notifications/progress with `token` (JSON text), `progress` whole seconds, a message, and
 * related-task _meta unless `task_id` is empty. */
void dialect_write_progress(struct buffer *out, struct str token, int64_t progress,
                            struct str message, struct str task_id);
/* Upstream's message (whole, accepted by json_check()) with related-task _meta added to its params;
 * `id` (JSON text), unless empty, takes the place of its own. */
void dialect_write_related_message(struct buffer *out, struct str message, struct str id,
                                   struct str task_id);
/* Upstream's progress notification (a whole message that json_check() has accepted) with its token
 * replaced by `token` (JSON text) and related-task _meta added; the rest verbatim. */
void dialect_rewrite_progress(struct buffer *out, struct str message, struct str token,
                              struct str task_id);

/* params.task: an object with an optional positive integer ttl. Behaviour 7.3: `{}` takes the
 * default, null, string, fraction, 0, negative are refused, above the maximum is clamped (any
 * integer literal). */
enum dialect_ttl { DIALECT_TTL_OK, DIALECT_TTL_CLAMPED, DIALECT_TTL_INVALID };
enum dialect_ttl dialect_read_ttl(struct str task, int64_t default_ms, int64_t max_ms,
                                  int64_t *ttl_ms);
