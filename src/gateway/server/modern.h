/*
 * One request at a server of the modern era, from its first byte until its outcome. Whoever made
 * the link gets events, and gives commands. The server may answer that it requires input: then the
 * request goes up again with the answers.
 *
 * All on the worker's loop. Commands are allowed inside an event. Times are in milliseconds.
 */
#pragma once

#include "call/headers.h"
#include "http.h"
#include "taskgate/core/magic.h"

enum modern_event_kind {
    MODERN_NOTICE, /* `text`: a notification of the server's that belongs to the request */
    /* `text`: requests by the server's keys (JSON object with a member), in the place of earlier
     * ones; empty: the request is only to be sent once more. answer() is expected, or pause(). */
    MODERN_QUESTION,
    MODERN_AGAIN, /* the pause has passed: answer() is expected */
    /* From here on last events: exactly one. */
    MODERN_RESULT, /* `text`: the result as the server wrote it */
    MODERN_ERROR,  /* `text`: the error object */
    MODERN_LOST,   /* there is neither: `lost` */
};

enum modern_lost {
    MODERN_LOST_REPLY,      /* the reply has no JSON-RPC response: event.reply */
    MODERN_LOST_ROUND,      /* it requires input, and not as the protocol has it */
    MODERN_LOST_ROUNDS,     /* it required input too often */
    MODERN_LOST_AGAIN,      /* it wanted the request again for too long */
    MODERN_LOST_UNANSWERED, /* what it required has not come in time */
    MODERN_LOST_REASON_COUNT
};

struct modern_event { /* all borrowed until the receiver returns */
    enum modern_event_kind kind;
    enum modern_lost lost;
    bool is_complete; /* of MODERN_RESULT: it is of the kind that was asked for */
    struct str text;  /* JSON text */
    /* Of a question, and of a last event: NULL with any lost_reason but the first. */
    const struct exchange_reply *reply;
};

enum modern_link_state {
    MODERN_LINK_NEW,     /* nothing has been sent */
    MODERN_LINK_SENT,    /* the server works */
    MODERN_LINK_ASKED,   /* the server waits for answer() */
    MODERN_LINK_PAUSING, /* the server is to be asked again after a pause */
    MODERN_LINK_ENDED,   /* the last event has come */
};

struct modern_link;

/* What the maker of a link gives: one constant for each kind of maker. */
struct modern_maker {
    /* Writes the request without the answers of a round, and its headers, into what is empty.
     * `headers` own their items. A new id each time. */
    void (*write)(struct modern_link *link, struct headers *headers, struct buffer *body,
                  struct buffer *id);
    /* The options of what is sent, but for those three. */
    struct sending (*sending)(struct modern_link *link);
    /* May release the link. */
    void (*take)(struct modern_link *link, const struct modern_event *event);
};

struct modern_link {
    uint32_t magic; /* MODERN_LINK_MAGIC */
    const struct modern_maker *maker;
    struct gateway_worker *worker;
    struct exchange *exchange; /* exactly at MODERN_LINK_SENT */
    enum modern_link_state state;
    bool has_asked;                   /* the server has required input */
    int rounds;                       /* in which it required answers */
    struct buffer request_state;      /* of the server, JSON text; empty: it gave none */
    int64_t again_ms, again_until_ms; /* the next pause; monotonic, until when there are pauses */
    struct loop_timer timer;          /* the pause, or the wait for answer() */
};
#define MODERN_LINK_MAGIC 0x4757475c

static inline struct modern_link *modern_link_from(void *context)
{
    return MAGIC_CAST(struct modern_link, MODERN_LINK_MAGIC, context);
}

/* Zeroed memory becomes a link. */
void modern_link_init(struct modern_link *link, const struct modern_maker *maker,
                      struct gateway_worker *worker);
/* Sends the request. No event comes before it returns. */
void modern_begin(struct modern_link *link);
/* At MODERN_LINK_ASKED: sends the request again with these answers by the server's keys (JSON
 * object, or empty). */
void modern_answer(struct modern_link *link, struct str answers);
/* In MODERN_QUESTION: MODERN_AGAIN comes after a pause, and MODERN_LOST_AGAIN when the server has
 * wanted the request again for `limit_ms` (0: no limit) without a question. */
void modern_pause(struct modern_link *link, int64_t limit_ms);
/* At MODERN_LINK_ASKED: MODERN_LOST_UNANSWERED comes unless modern_answer() is called before. */
void modern_expect_answer(struct modern_link *link, int64_t limit_ms);
/* Ends what is under way; no event follows. The link is as new. */
void modern_release(struct modern_link *link);
