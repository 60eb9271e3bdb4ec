/* One request of a client, from the envelope to its answer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "authorization.h"
#include "state/session_table.h"
#include "state/tool_catalog.h"
#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/str.h"
#include "taskgate/http/server.h"
#include "taskgate/json/envelope.h"
#include "taskgate/mcp/dialect.h"
#include "taskgate/mcp/jsonrpc.h"
#include "taskgate/mcp/method.h"
#include "taskgate/policy/policy.h"
#include "taskgate/store/store.h"
#include "worker.h"

/*
 * How many requests of a server the gateway answers in one call or on one stream: each answer is a
 * request of the gateway's own. A burst is answered, and after it so many a second, so that a
 * server that asks now and then is answered for as long as its call lasts.
 */

enum server_request { SERVER_PING, SERVER_REQUEST };
#define SERVER_REQUEST_KINDS 2

#define SERVER_PING_BURST 1000
#define SERVER_REQUEST_BURST 100 /* of all others */
#define SERVER_REQUESTS_PER_SECOND 10

/* All zeros: nothing is spent yet. */
struct server_budget {
    struct server_spent {
        int64_t count;
        int64_t counted_ms; /* monotonic: up to when the refill has been counted */
    } spent[SERVER_REQUEST_KINDS];
};

/* Whether one more request of the kind is answered now; if so, it is counted. */
bool server_budget_take(struct server_budget *budget, enum server_request kind,
                        int64_t monotonic_ms);

struct span;

/*
 * One request, from the envelope to its answer. It lives as long as anyone holds a
 * reference: the exchange does until it ends, and so does every message under way to the
 * store. `exchange` is NULL once the client has its answer or has gone; then nothing that
 * points into the request (envelope, headers) may be read any more.
 */
struct call;
typedef void (*call_step)(struct call *call);

/* The word of a check about a call. */
enum gate_verdict {
    GATE_PASSED,
    GATE_ANSWERED, /* the check has answered the call, which may be gone */
    GATE_WAITS,    /* it goes on with the step that the check was given: later, or already */
};

/* The headers of a bridged call that name the session it goes up in. */
struct upstream_session {
    struct str id; /* empty: the server gave out none */
    struct str version;
};

/* Of the request's own memory, what nobody else needs (call_memory_take()). */
struct call_spare {
    char *bytes;
    size_t size, used;
    bool is_known; /* it has been asked for */
};

struct call {
    struct list node;
    uint32_t magic; /* CALL_MAGIC */
    struct gateway_worker *worker;
    struct http_exchange *exchange;
    int references;
    struct snapshot *snapshot;
    const struct config_source *source;
    char *made_body; /* call_memory_take(): the envelope's bytes if they are not the client's own;
                        else NULL */
    char *arguments_digest; /* call_memory_take(): canonical, of a body that was forgotten; else
                               NULL */
    char *agent_reason;     /* why the agent calls, in its own words; or NULL */
    struct call_spare spare;
    struct envelope envelope;      /* POST only: the message, and what a relay sends */
    const struct dialect *dialect; /* of its era; the legacy one until the envelope is read */
    const struct mcp_method *method;
    unsigned gate;    /* of gates.c: the next one that it is put to */
    bool is_post;     /* else it has no message */
    bool is_metadata; /* its path is that of a resource's metadata */
    bool is_relayed;  /* by the replica that the client is connected to */
    bool is_away;     /* it came by its task, and its session lives at another replica */
    /* Of a call whose server speaks only the era that its client does not (conversation/relay.h);
     * or NULL. */
    const struct call_carrier *carrier;
    struct buffer declared; /* the client's declarations in its session (state/session_table.h);
                              empty as long as they are not known */
    const struct upstream_session *upstream_session; /* if call_leases_session(), while it is */
    bool is_given_up; /* by notifications/cancelled, which has gone up: it becomes no task */
    bool is_executed; /* by execute_tool, with a patience of its own: */
    int64_t patience_ms;
    uint64_t tools_epoch;            /* of tools/list: catalog_epoch() when it was asked */
    bool identified;                 /* call_identify() has set the three below */
    char session[DIGEST_HEX_BYTES];  /* its digest, "" without */
    char token[DIGEST_HEX_BYTES];    /* digest of Authorization, "" without */
    char owner[OWNER_BYTES];         /* behaviour 4.2 */
    struct identity *identity;       /* by its verified token; NULL where the source has no auth */
    struct policy_verified verified; /* its words, for call_verified() */
    char *upstream_authorization;    /* in place of the client's token, if that is exchanged;
                                        else NULL */
    struct session_facts facts;      /* after call_with_facts() */
    bool facts_failed;               /* the store could not say them */
    struct list parts;               /* work under way for it: struct call_part.node */
    struct server_budget server_budget; /* for the requests of the server on its stream */
    bool upstream_broke;                /* the stream broke: neither side ended it */
    call_step next;                     /* the step after the store, the ping or the list */
    call_step in_session;               /* the step once the session that is given is known */
    const char *outcome;                /* "success" or "error", for the metric */
    struct span *span;                  /* call_span.h; NULL without telemetry */
};
#define CALL_MAGIC 0x47574301

static inline struct call *call_from(void *context)
{
    return MAGIC_CAST(struct call, CALL_MAGIC, context);
}

/* Takes the snapshot over. A call that has not begun is dropped by call_unref(), and its exchange
 * is the caller's to answer. `source` is NULL if there is none at the request's path. */
struct call *call_create(struct gateway_worker *worker, struct http_exchange *exchange,
                         struct snapshot *snapshot, const struct config_source *source);
/* From now on the call is counted, and ends with its exchange. */
void call_begin(struct call *call);
struct call *call_ref(struct call *call);
void call_unref(struct call *call);
/* Determines the session, token and owner of the request. Every call needs it, except one that is
 * plainly forwarded. */
void call_identify(struct call *call);
/* The digest of a session id of the call's client. */
void call_digest_session(const struct call *call, struct str id, char digest[DIGEST_HEX_BYTES]);
/* Whether the server is of the era with sessions, whose streams it opens at a GET. */
bool call_server_has_sessions(const struct call *call);
/* The server has no sessions, and the client has: the gateway gives the client its own. */
static inline bool call_gives_session(const struct call *call)
{
    return call->carrier && call->dialect->has_sessions;
}
/* The server has sessions, and the client none: the call goes up in one of the gateway's. */
static inline bool call_leases_session(const struct call *call)
{
    return call->carrier && !call->dialect->has_sessions;
}
/* The caller, for rules and policies; NULL where the source has no auth. */
const struct policy_verified *call_verified(const struct call *call);
/* A tool as its owner was told of it. Identifies the call. */
void call_find_tool(struct call *call, struct str name, struct catalog_tool *tool);
/* Loads what is known of the request's session (memory, else store), then goes on; not at
 * all if the client has gone meanwhile. */
void call_with_facts(struct call *call, call_step next);
/* Takes over what the client says of itself in JSON texts: what it can be asked, and its name and
 * version. */
void call_read_client(struct call *call, struct str capabilities, struct str info);
/* Takes over what the store has answered about the request's session. */
void call_take_facts(struct call *call, const struct store_reply *reply);
/* Stores call->facts under the session (a digest), with what a bridged client has said in it. */
void call_store_session(const struct call *call, const char *session, struct store_call then);
/* The same of the call's own session; then the call is answered by an empty result. */
void call_store_session_then_answer(struct call *call);
/* Upstream has accepted the session (a digest, or "") with the request's token; the store is told
 * when that is news. After call_identify(). */
void call_note_acceptance(struct call *call, struct str session);
/* The credentials are good: what the client's connection holds counts for the owner. */
void call_vouch(const struct call *call);
/* Whether the server has never accepted the request's token in its session: such a client answers
 * and ends nothing there, for it may only have seen the session's id. A verified token is its
 * owner's, and a session under it is that owner's alone: a refreshed one is no stranger's. After
 * call_identify(). */
bool call_is_stranger(const struct call *call);
/* Whether nobody has vouched for the client: it has no token, or one that was never accepted. Such
 * clients share what their address may have. After call_identify(). */
bool call_is_unknown(const struct call *call);
/* Whether the request's session or token owns the task; else it must look unknown. */
bool call_owns(const struct call *call, const struct task *task);
/* The task of the reply, if it is the one with the id and call_owns() it; else NULL. The store
 * reads an id up to its NUL. */
struct task *call_own_task(const struct call *call, const struct store_reply *reply, struct str id);
/* The answers; each ends the exchange. Errors travel with the HTTP status of the call's dialect. A
 * notification has no answer: 202. */
void call_answer(struct call *call, struct str message);
void call_answer_result(struct call *call, struct str result);
/* With a result that the server has made, or the error object of one. */
void call_answer_result_of_server(struct call *call, struct str result);
void call_answer_error_of_server(struct call *call, struct str error);
void call_answer_error(struct call *call, enum jsonrpc_error error, struct str message,
                       const struct jsonrpc_error_data *data);
void call_answer_status(struct call *call, int status, struct str body);
/* The store has failed, and with it the call. */
void call_answer_no_store(struct call *call);
/* Answers -32602 with HTTP 400, as for a request that is malformed. */
void call_refuse_params(struct call *call, const char *why);
/* 405, with the verbs that are allowed. */
void call_answer_wrong_verb(struct call *call, const char *allowed);
/* The same with headers of its own, which may point into the call. An error's status counts as one,
 * and the span is left as it is. */
void call_respond(struct call *call, int status, const struct http_header *headers, size_t count,
                  struct str body);
/* The client has given up the request, to which the protocol wants no answer then. */
void call_answer_nothing(struct call *call);
/* The exchange, which is returned, is answered by the caller, by other means, or has gone: the call
 * drops its parts. */
struct http_exchange *call_ended(struct call *call);
/* Ends the event stream that has begun, with a last message, which may be empty. `is_cut`: nothing
 * can be written on it, and its connection is cut. */
void call_end_stream(struct call *call, struct str message, bool is_cut);
/* A store_call that holds a reference to the call until the store has answered. `take` gets the
 * reply, unless the call has its answer by then or its client has gone. */
typedef void (*call_reply)(struct call *call, const struct store_reply *reply);
struct store_call call_to_store(struct call *call, call_reply take);
/* The client cancels a task of its own; `reason` may be NULL. */
void call_cancel_task(struct call *call, const struct task *task, const char *reason,
                      call_reply take);
struct str call_tool(const struct call *call);

/* Replaces the client's message by one of the gateway's, which is taken over, with the same id. Its
 * bytes are of the heap or of call_memory_take(). */
enum envelope_status call_replace_body(struct call *call, struct buffer *body, struct error *error);

/*
 * The parts of a call: the objects that rooms have under way for it, such as a relay or a wait for
 * a task. A part is embedded in an object of a room, and only that room knows the object. A call
 * that is answered, or whose client has gone, drops its parts. On the call's loop.
 */

/* One constant for each kind of object. Its address tells the kind, so that a cast is checked. */
struct call_part_kind {
    size_t offset; /* of the struct call_part in the object */
    /* Ends and frees the object, which is off the call already. */
    void (*drop)(struct call *call, void *object);
    /* Called before the drop when the client has gone. The object may take itself off the call and
     * go on. NULL: it is dropped. */
    void (*gone)(struct call *call, void *object);
};
#define CALL_PART_KIND(type, drop_function)                                                        \
    {                                                                                              \
        .offset = offsetof(type, part), .drop = (drop_function)                                    \
    }

struct call_part {
    struct list node; /* of the call */
    const struct call_part_kind *kind;
};

void call_part_add(struct call *call, struct call_part *part, const struct call_part_kind *kind);
/* Its room goes on with the object, or ends it by itself. Allowed for a part of no call. */
void call_part_remove(struct call_part *part);
/* The call's object of this kind; NULL without one. A call has one of each kind at most. */
void *call_part_find(const struct call *call, const struct call_part_kind *kind);
/* The same, for a room that has added it: there must be one. */
void *call_part_get(const struct call *call, const struct call_part_kind *kind);
/* Calls `gone` of the one part that has it: the client has gone. */
void call_part_report_gone(struct call *call);
/* Drops all parts, the last one first: a later part may use an earlier one. */
void call_part_drop_all(struct call *call);

/*
 * Memory for what a call has under way while it waits, in what its request has left over: thousands
 * of calls may wait, and the heap has only what does not fit there. On the call's loop.
 */

/* Cleared, and aligned for any object. To be given back, and not to be read any more, by the time
 * when the call's exchange ends: when its parts are dropped, at the latest. */
void *call_memory_take(struct call *call, size_t size);
/* A copy that ends with NUL. */
char *call_memory_copy(struct call *call, struct str text);
/* NULL is allowed. Of a call whose exchange has ended, too. */
void call_memory_give(struct call *call, void *memory);

/* ---- calls that wait for long: the store has the body of each already, so memory keeps only what
 * its answer needs ---- */
/* Moves the call's message, byte for byte, to memory of its size, and frees what held it. Nothing
 * that was taken of the body or the envelope before may be read. */
void call_own_body(struct call *call);
/* Replaces the call's message by one with its id, method, and of `params` the members name, uri,
 * taskId, task and _meta, and frees the client's bytes. Nothing that was taken of the body or the
 * envelope before may be read. The arguments are known by their digest alone. A call without an
 * exchange is left alone. */
void call_forget_body(struct call *call);
/* The canonical digest of the call's arguments, also of a forgotten body. */
void call_digest_arguments(const struct call *call, char digest[DIGEST_HEX_BYTES]);

/*
 * The counters of requests. Those of a tool and of a source are resolved once for each loop, so
 * that a call builds no labels and takes no lock. Each counts on the caller's loop.
 */

/* The tool that a call names; the name is empty but for tools/call. `is_listed` says whether a
 * server has listed it for somebody: one that a client invents is counted as "__unlisted__". It is
 * asked again until it says so. */
struct counted_tool {
    struct str name;
    bool (*is_listed)(void *context, struct str name);
    void *context;
};

/* A request has come, with a body of so many bytes. */
void call_counters_came(const struct mcp_method *method, size_t body_bytes);
/* It has its answer. `method` is NULL when there was none to be read, `outcome` is "success" or
 * "error". */
void call_counters_answered(const struct mcp_method *method, const struct counted_tool *tool,
                            const char *outcome, int64_t elapsed_ms);
/* The server of `source` has answered with this HTTP status; 0: with none. */
void call_counters_upstream(struct str source, int status, int64_t elapsed_ms);

/*
 * The handlers of the methods, by include/taskgate/mcp/method_table.h: in methods/, or in client/
 * where only one kind of clients has the method. Each answers its call, now or later.
 */

/* initialize_handle(), tools_list_handle() … */
#define MCP_TREATMENT_ROW(symbol, one, other)                                                      \
    void one(struct call *call);                                                                   \
    void other(struct call *call);
#include "taskgate/mcp/method_table.h"
#undef MCP_TREATMENT_ROW
