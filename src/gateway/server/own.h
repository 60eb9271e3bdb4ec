/*
 * The gateway's own requests to servers: the messages of its sessions at legacy servers, and the
 * envelope of its requests to modern ones. On the worker's loop, but for what only writes texts.
 */
#pragma once

#include "call/call.h"
#include "call/headers.h"
#include "http.h"
#include "taskgate/json/envelope.h"

/* ---- a session of the gateway's own, opened with the source's static headers when no client's
 * session can be used; the opener keeps its headers, and ends it ---- */

/* The params of its `initialize`. */
struct str service_session_params(void);
/* The message that follows the server's answer. */
struct str service_session_initialized(void);
/* Whether a request of a legacy client needs one: its headers name no session, as a client with a
 * token may leave it out, and it is not known that the server has none. */
bool service_session_is_wanted(struct gateway_worker *worker, const struct config_source *source,
                               const struct headers *headers);
/* Sets the source's static headers, which every request of the session has. */
void service_session_begin(struct headers *headers, const struct config_source *source);
/* The server has answered `initialize` with a result: takes the session's id and version from it.
 */
void service_session_opened(struct headers *headers, const struct exchange_reply *reply);
/* Sends DELETE if the server gave out a session. */
void service_session_end(struct gateway_worker *worker, struct snapshot *snapshot,
                         const struct config_source *source, const struct headers *headers);

/* ---- such sessions that the server refuses to end (MCP 2025-11-25, transports: 405): the next
 * fetch takes one of them, instead of one more ---- */

/* Ends the session of these headers, which are copied. If the server refuses, it is kept. */
void parked_sessions_end(struct gateway_worker *worker, struct snapshot *snapshot,
                         const struct config_source *source, const struct headers *headers);
/* Takes one that was kept for this server and these static headers, with all its headers. The
 * server may have forgotten it. false: there is none. */
bool parked_sessions_take(struct gateway_worker *worker, const struct config_source *source,
                          struct headers *headers);
/* Forgets all of the worker's. */
void parked_sessions_finish(struct gateway_worker *worker);

/* ---- modern requests: their envelope, and the headers that repeat parts of it ---- */

/* {"jsonrpc":"2.0","id":"tg:<uuid>","method":…,"params":{…,"_meta":…}}. `members` are the other
 * members of params, as JSON text without braces, or empty; `id` gets the JSON text of the id. The
 * gateway declares no capabilities. */
void modern_request_write(struct buffer *body, struct buffer *id, const char *method,
                          struct str members);
/* Puts the headers of such a request, for a method without Mcp-Name, in the place of a client's. */
void modern_request_set_headers(struct headers *headers, const char *method);
/* Whether these headers, which a client has sent, are of a modern request. */
bool modern_request_has_headers(const struct headers *headers);

/* ---- modern requests for a client: they say what that client has said of itself, and nothing of
 * the gateway's ---- */

struct client_request {
    const char *method;
    struct str name;    /* the value of Mcp-Name */
    struct str members; /* of params, JSON text without braces */
    struct str kept; /* the client's own request, which says its version, name and capabilities */
};
/* Writes body and id, as exchange_write_request(), and sets the headers that repeat them. `headers`
 * owns its items. */
void client_request_write(const struct client_request *request, struct headers *headers,
                          struct buffer *body, struct buffer *id);

/* ---- the request in the place of one of a client of the other era: its name, arguments and other
 * params are copied as bytes; the envelope has what the client said in its session; the headers
 * repeat it. Policy has judged the client's own bytes. On the call's loop. ---- */

struct modern_envelope;
/* What it has declared in its session: call->declared. */
void client_request_declared(const struct call *call, struct modern_envelope *envelope);

/* Writes the request into empty buffers, and what goes up beside it into `headers` (owning). */
void client_request_write_call(const struct call *call, struct headers *headers,
                               struct buffer *body, struct buffer *id);
/* The same for a request of the gateway's own, in the client's place. `members` are those of
 * params, as JSON object; empty: none. The name is that of Mcp-Name, or empty. */
void client_request_write_own(const struct call *call, const char *method, struct str members,
                              struct headers *headers, struct buffer *body, struct buffer *id);

/* Puts the modern request in the place of the one that a task keeps, with its headers: it is what
 * operators are shown, and what they approve. */
void client_request_keep(const struct call *call, struct task *task);
/* The same of a call of the control plane, whose client is the gateway. */
void client_request_keep_own(struct catalog *catalog, const struct config_source *source,
                             const struct envelope *envelope, struct task *task);
/* The digest that such a task has (request_parts_digest()). */
void client_request_digest(const struct call *call, char digest[DIGEST_HEX_BYTES]);
