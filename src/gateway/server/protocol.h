/*
 * One request at a server, as the rest of the gateway sees it: what the server says comes as
 * events, what it is answered goes by the functions of its protocol. An era of servers is one
 * `struct server_protocol`; nothing here has the words of any, or knows who the client is.
 *
 * All on the loop of the link's worker. Events come in the order of the wire, and none from inside
 * a function of this header. One of the last events (EVENT_RESULT and those after it) comes, once,
 * and nothing after it; only inside of it may the receiver release the link.
 */
#pragma once

#include "call/call.h"
#include "http.h"
#include "taskgate/mcp/question.h"

enum event_kind {
    EVENT_PROGRESS, /* `text`: a notification, a whole message; as of the next two */
    EVENT_LOG,
    EVENT_NOTICE, /* any other */
    EVENT_QUESTION,
    EVENT_WITHDRAWN, /* the server does not want an answer to asked.id any more */
    EVENT_RESULT,    /* `text`: an object. From here on last events */
    EVENT_ERROR,     /* `text`: a JSON-RPC error object */
    EVENT_REFUSED,   /* a refusal of HTTP: `reply`, and in `text` an error object or nothing */
    EVENT_LOST,      /* `lost`; in `text` an error object or nothing */
};

/* Borrowed until the receiver returns. Texts are JSON without what only the server's era has. */
struct event {
    enum event_kind kind;
    struct str text;
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
    const struct exchange_reply *reply;
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

struct server_link {
    const struct server_protocol *protocol;
    struct gateway_worker *worker;
    struct snapshot *snapshot; /* a reference; so is the source's */
    const struct config_source *source;
    int64_t silence_ms; /* 0: no limit */
    void (*take)(void *context, const struct event *event);
    void *context;
    void *own; /* the protocol's, from begin() to release() */
};

struct server_protocol {
    const char *name;
    /* Obtains what a request of the call needs at its server, then goes on, at once if it is there.
     * Answers the call itself where it is not to be had. */
    void (*obtain)(struct call *call, call_step next);
    /* Appends what the server says of itself, as the result of `server/discover`. After obtain().
     */
    void (*describe)(struct call *call, struct buffer *out);
    /* Sends the request of the call, and keeps what obtain() got for it. */
    void (*begin)(struct server_link *link, struct call *call);
    /* Answers a question of this link. */
    void (*answer)(struct server_link *link, struct str asked_id, const struct answer *answer);
    /* Another limit of silence from now on, while it is under way; 0: none. */
    void (*set_silence)(struct server_link *link, int64_t silence_ms);
    /* The server's work is given up: it is told so, unless its last event has come. */
    void (*cancel)(struct server_link *link, const char *reason);
    /* Frees what the link has at the server. No event follows. */
    void (*release)(struct server_link *link);
};
