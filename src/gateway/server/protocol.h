/*
 * One request at a server, as the rest of the gateway sees it: what the server says comes as
 * events, what it is answered goes by the functions of its protocol. An era of servers is one
 * `struct server_protocol`; nothing here has the words of any, or knows who the client is.
 *
 * All on the loop of the link's worker. Events come in the order of the wire, and none from inside
 * a function of this header. One of the last events (EVENT_RESULT and those after it) comes, once,
 * and nothing after it; only inside of it, EVENT_OPENED and EVENT_FOLLOWED may the receiver release
 * the link.
 */
#pragma once

#include "call/call.h"
#include "http.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/magic.h"
#include "taskgate/mcp/question.h"
#include "taskgate/telemetry/task_trace.h"

enum event_kind {
    EVENT_PROGRESS, /* `text`: a notification, a whole message; as of the next two */
    EVENT_LOG,
    EVENT_NOTICE, /* any other */
    /* In the place of those three, of a link with a maker at a server whose messages its client
     * understands: any that is neither the next nor that after it; a request, too. */
    EVENT_MESSAGE,
    EVENT_QUESTION,
    EVENT_WITHDRAWN, /* the server does not want an answer to asked.id any more, or to any */
    /* The server answers the request once more with what it requires. `text`: requests by its keys
     * (JSON object with a member), in the place of earlier ones; empty: the request is only to be
     * sent again. answer_round() or pause() is expected. */
    EVENT_ROUND,
    EVENT_AGAIN,     /* the pause has passed: answer_round() is expected */
    EVENT_OPENED,    /* after open(): begin() is expected */
    EVENT_FOLLOWED,  /* `text`: the id of the server's own task, from which the rest comes */
    EVENT_RESULT,    /* `text`: an object. From here on last events */
    EVENT_ERROR,     /* `text`: a JSON-RPC error object */
    EVENT_REFUSED,   /* a refusal of HTTP: `reply`, and in `text` an error object or nothing */
    EVENT_CANCELLED, /* the server's own task was */
    EVENT_LOST,      /* `lost`; in `text` an error object or nothing */
    EVENT_UNOPENED,  /* after open(): there is no session; `reply`, and in `text` as before */
};

/* Borrowed until the receiver returns. Texts are JSON without what only the server's era has. */
struct event {
    enum event_kind kind;
    struct str text;
    bool is_complete; /* of a result: it is of the kind that was asked for */
    struct {
        struct str id;      /* JSON text; names it at the server */
        struct str request; /* of a question: an object with `method`, and `params` if it has any */
        enum mcp_question kind;
    } asked;
    /* Of an error: what the client is to be asked before the request is made anew, an object of
     * requests by keys; else empty. */
    struct str required;
    struct str server_info; /* of a result: the server's name, an object, or empty */
    enum lost_reason lost;
    const struct exchange_reply *reply; /* NULL where it comes of a timer, or a task */
};

/* What becomes of a question. */
struct answer {
    enum answer_kind {
        ANSWER_RESULT,   /* `result`, an object */
        ANSWER_NONE,     /* its client has not answered */
        ANSWER_UNABLE,   /* its client cannot be asked that */
        ANSWER_TOO_MANY, /* more is asked in one call than is allowed */
    } kind;
    enum mcp_question question;
    struct str result;
};

enum link_state {
    LINK_NEW,       /* nothing has been sent */
    LINK_OPENING,   /* a session is obtained */
    LINK_SENT,      /* the server works */
    LINK_ASKED,     /* the server waits for answer_round() */
    LINK_PAUSING,   /* the server is to be asked again after a pause */
    LINK_FOLLOWING, /* the server's own task is looked at in intervals */
    LINK_ENDED,     /* the last event has come */
};

struct server_link;

/* Of a request that may go up more than once: one constant for each kind of receiver. */
struct link_maker {
    /* Writes the request without the answers of a round, and its headers, into what is empty.
     * `headers` own their items. A new id each time. */
    void (*write)(struct server_link *link, struct headers *headers, struct buffer *body,
                  struct buffer *id);
    /* The options of what is sent, but for those three. They may point into `trace`. A maker that
     * follows tasks gives the headers of the looks at them. */
    struct sending (*sending)(struct server_link *link, struct task_trace *trace);
    /* The request as it is kept, for the looks at a task of the server's; valid until the link is
     * released. NULL: no such task is followed. */
    struct str (*request)(const struct server_link *link);
    void (*take)(void *context, const struct event *event);
};

struct server_link {
    uint32_t magic; /* SERVER_LINK_MAGIC */
    const struct server_protocol *protocol;
    struct gateway_worker *worker;
    struct snapshot *snapshot; /* a reference; so is the source's */
    const struct config_source *source;
    int64_t silence_ms; /* 0: no limit; as the next of a link without a maker */
    size_t most_bytes;  /* of the reply */
    void (*take)(void *context, const struct event *event);
    void *context;
    void *own; /* the protocol's, until release() */
    /* What the server gets beside the answers to its messages, once it has the request; NULL: the
     * maker's. */
    const struct headers *headers;
    struct exchange *exchange; /* at LINK_SENT, and at times at LINK_FOLLOWING */
    enum link_state state;

    /* Of a link with a maker: */
    const struct link_maker *maker;
    bool has_asked;                   /* the server has required input */
    int rounds;                       /* in which it required answers */
    struct buffer request_state;      /* of the server, JSON text; empty: it gave none */
    char *task;                       /* the id of the server's own; or NULL */
    int64_t again_ms, again_until_ms; /* the next pause; monotonic, until when there are pauses */
    struct loop_timer timer;          /* the pause, the wait for answer_round(), or the next look */
};
#define SERVER_LINK_MAGIC 0x4757475c

static inline struct server_link *server_link_from(void *context)
{
    return MAGIC_CAST(struct server_link, SERVER_LINK_MAGIC, context);
}

/* Zeroed memory becomes a link; `context` is for `take`. Without a maker the caller sets the rest.
 */
static inline void server_link_init(struct server_link *link,
                                    const struct server_protocol *protocol,
                                    const struct link_maker *maker, struct gateway_worker *worker,
                                    void *context)
{
    ASSERT(link->state == LINK_NEW && !link->own && !link->exchange);
    MAGIC_SET(link, SERVER_LINK_MAGIC);
    link->protocol = protocol;
    link->maker = maker;
    link->worker = worker;
    link->take = maker ? maker->take : NULL;
    link->context = context;
    loop_timer_init(&link->timer, worker->loop, NULL, link);
}

/* Whether the server works, or waits. */
static inline bool server_link_is_pending(const struct server_link *link)
{
    return link->state != LINK_NEW && link->state != LINK_ENDED;
}

/* ---- for the protocols ---- */
static inline void server_link_report(const struct server_link *link, const struct event *event)
{
    link->take(link->context, event);
}
/* The last event. */
void server_link_end(struct server_link *link, const struct event *event);
/* The same, of a reply whose result or error its client understands as it is. */
void server_link_end_with(struct server_link *link, const struct exchange_reply *reply);
/* Calls `look` when a task of the server's is to be looked at next: after `interval` (JSON text) in
 * bounds. */
void server_link_look_later(struct server_link *link, struct str interval, loop_callback look,
                            void *context);
/* The server has made a task of the request, with this id, which is taken. */
void server_link_follow(struct server_link *link, char *task, struct str interval,
                        loop_callback look, void *context);
/* Sends a message whose answer nobody waits for, with the source and snapshot of the request. */
void server_link_notify(struct server_link *link, const struct headers *headers, struct str body,
                        struct str id);
/* set_silence() of all. */
void server_link_set_silence(struct server_link *link, int64_t silence_ms);
/* Abandons what is under way, and makes the link as new, but for `own`. */
void server_link_clear(struct server_link *link);

struct server_protocol {
    const char *name;
    bool has_sessions; /* with streams, where the server may speak of its own tasks */
    /* Obtains what a request of the call needs at its server, then goes on, at once if it is there.
     * Answers the call itself where it is not to be had. */
    void (*obtain)(struct call *call, call_step next);
    /* Appends what the server says of itself, as the result of `server/discover`. After obtain().
     */
    void (*describe)(struct call *call, struct buffer *out);
    /* Takes what obtain() got off the call, and keeps the call's request: for begin(). */
    void (*attach)(struct server_link *link, struct call *call);
    /* Obtains a session for the one request of a link with a maker: in the name of the client of
     * that request, which is of another era, or in the gateway's, which can be asked nothing. */
    void (*open)(struct server_link *link, bool for_client);
    /* Writes a request of another era with this id (JSON text). NULL: what is kept is of this one.
     */
    void (*translate)(struct buffer *out, const struct envelope *envelope, struct str id);
    /* Sends the request, once: that of attach(), or what the maker writes. Of a legacy server it
     * may have gone out in `exchange` already, of which exchange_may_read_messages() is true. */
    void (*begin)(struct server_link *link);
    /* Answers a question of this link. */
    void (*answer)(struct server_link *link, struct str asked_id, const struct answer *answer);
    /* Another limit of silence from now on, while it is under way; 0: none. */
    void (*set_silence)(struct server_link *link, int64_t silence_ms);
    /* The server's work is given up: it is notified, unless its last event has come. Of a session
     * that nobody else has, this is the last word before its end. */
    void (*cancel)(struct server_link *link, const char *reason);
    /* Frees what the link has at the server. No event follows. */
    void (*release)(struct server_link *link);

    /* Of links with a maker. A released one is as new, and release() is always allowed. */

    /* Sends the request again with these answers by the server's keys (JSON object, or empty), at
     * LINK_ASKED; or gives them to the server's own task. */
    void (*answer_round)(struct server_link *link, struct str answers);
    /* In EVENT_ROUND: EVENT_AGAIN comes after a pause, and LOST_AGAIN when the server has wanted
     * the request again for `limit_ms` (0: no limit) without a question. */
    void (*pause)(struct server_link *link, int64_t limit_ms);
    /* At LINK_ASKED: LOST_UNANSWERED comes unless answer_round() is called before. 0: it does not
     * come any more. */
    void (*expect_answer)(struct server_link *link, int64_t limit_ms);
    /* What is under way, or asked, goes to another link, which is new; `from` is as new. Of an
     * exchange, exchange_may_read_messages() is true. */
    void (*move)(struct server_link *from, struct server_link *to);
};

/* Servers of the legacy era (MCP 2025-11-25), whose requests go in sessions. */
extern const struct server_protocol server_legacy;
/* Servers of the modern era (MCP 2026-07-28), which get a request again for each round of
 * questions, and may run it as a task of their own. */
extern const struct server_protocol server_modern;
/* The protocol of the call's server. */
const struct server_protocol *server_protocol_of_call(const struct call *call);
/* The protocol of a server, for a request that is kept; `repeats_body`: with headers that repeat
 * parts of it. */
const struct server_protocol *server_protocol_of(struct gateway_worker *worker,
                                                 const struct config_source *source,
                                                 bool repeats_body);
