/* The execution itself, for the files that run it. */
#pragma once

#include "auth/token_exchange.h"
#include "execute.h"
#include "invocation.h"
#include "server/sessions.h"
#include "taskgate/core/magic.h"
#include "taskgate/telemetry/task_trace.h"

struct execution {
    struct invocation base; /* first; its request's credentials are `headers` */
    uint32_t magic;         /* EXECUTION_MAGIC */
    bool own_session;       /* the gateway's own, for the control plane */
    bool leases_session;    /* its server has sessions, and its client none: likewise one of the
                               gateway's */
    bool lacks_session; /* the client's is not known here, or the server has forgotten it: likewise
                         */
    struct identity *identity; /* the holder of the credentials, by a verified token; or NULL */
    char *authorization;       /* of the client, where it is exchanged for the server's; or NULL */
    int64_t authorization_until_ms; /* its end, wall clock */
    struct exchanger_wait *trade;   /* while it is being exchanged; only at OFFERED */
    bool has_all_headers;           /* `headers` are what is sent; else the credentials alone */
    char credentials_digest[DIGEST_HEX_BYTES]; /* of what would be sent; set by each beginning */
    struct opened_session *session;            /* opened for it; NULL: none */
    /* Of a modern call at a legacy server. */
    uint64_t asked;             /* questions of the server so far */
    struct loop_timer patience; /* with its client, which is asked them */
};
#define EXECUTION_MAGIC 0x4757580d

static inline struct execution *execution_from(void *context)
{
    return MAGIC_CAST(struct execution, EXECUTION_MAGIC, context);
}

/* ---- execute.c ---- */
/* Ends it on this side: nothing more is sent, credentials are gone with the last reference. */
void execution_end(struct execution *execution);
/* The call's answer has come: stores it and ends. Also takes the answer of tasks/result. */
void execution_answered(struct execution *execution, const struct exchange_reply *reply);
/* Fails with an error of the gateway's own. */
void execution_fail(struct execution *execution, enum jsonrpc_error error, const char *details);
/* Stores what base.outcome says, and ends. */
void execution_store_outcome(struct execution *execution);

/* ---- execution_modern.c: rounds of questions, and tasks of a modern server's own ---- */
extern const struct link_maker execution_maker;

/* ---- execution_upstream.c: what is sent, and what upstream says meanwhile ---- */
/* Sends the call itself. */
void execution_send(struct execution *execution);
/* Sets base.request_id: each request has an id of its own. */
void execution_take_id(struct execution *execution);
/* Writes the call with this id. */
void execution_write(const struct execution *execution, struct buffer *body);
/* What is sent, but for body and id: with the held credentials. It points into `trace`. */
struct sending execution_sending(const struct execution *execution, struct task_trace *trace);
void execution_ask(struct execution *execution, struct str body, struct str id,
                   const struct exchange_events *events);
/* How long upstream may be silent now, for what is being asked. */
void execution_set_silence(struct execution *execution);
/* A message of upstream's while it works. */
void execution_server_message(void *context, struct str message);

/* Whether it is sent as a modern call. */
bool execution_is_modern(const struct execution *execution);

/* ---- execution_session.c: there is no client whose session could be used ---- */
/* Whether it is run in a session of its own. */
bool execution_session_is_needed(const struct execution *execution);
/* Opens a session, then sends the call: with the source's static headers, or with the owner's in
 * the name of a modern client. */
void execution_session_open(struct execution *execution);
/* A message of a legacy server's to a modern client. true: it asks something, or withdraws that,
 * and is taken care of. */
bool execution_asks_take(struct execution *execution, struct str message);
/* Whether the client has something to answer. */
bool execution_asks_is_open(const struct execution *execution);
/* Answers have come and do not go up yet: their questions end by no clock. */
void execution_asks_hold(struct execution *execution);
/* Gives the answers (JSON object, by the keys that the client has) to the server, or says that
 * there is none. */
void execution_asks_end(struct execution *execution, struct str answers, bool pass);
/* True when the server has not looked at the call because it has forgotten the client's session:
 * the call is sent once more, with the same credentials in a session of its own. */
bool execution_session_reopens(struct execution *execution, const struct exchange_reply *reply);
void execution_session_close(struct execution *execution);
/* A last message to the server, after which the session is closed, if there is one. */
void execution_say_last(struct execution *execution, struct str body, struct str id);

/* ---- execution_upstream.c: a tool that upstream itself runs as a task only ---- */
/* True when the answer was a CreateTaskResult, which is now being followed. */
bool execution_task_follow(struct execution *execution, struct str result);
/* Relays a cancel to upstream's task. */
void execution_task_cancel(struct execution *execution);
