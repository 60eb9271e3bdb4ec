/*
 * The news from one replica to the others, for their clients: small typed messages on the port for
 * replicas, signed as relayed requests are. Each is a courtesy: one that is lost is not sent again,
 * and the client can ask. Behaviour 16.1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "call/worker.h"
#include "taskgate/core/buffer.h"
#include "taskgate/http/server.h"
#include "taskgate/task/task.h"

/* The target of a message: no source has this path. */
#define NEWS_TARGET "/replicas/news"

/* NEWS_ROW(symbol, name) */
#define NEWS_TABLE(NEWS_ROW)                                                                       \
    NEWS_ROW(TOOLS_CHANGED, "tools_changed") /* the lists are others, with the configuration */    \
    NEWS_ROW(TASK_ASKS, "task_asks")         /* the server's questions in a call there */          \
    NEWS_ROW(TASK_WANTED, "task_wanted")     /* somebody listens to a task: asks for TASK_ASKS */  \
    NEWS_ROW(WAIT_OVER, "wait_over")         /* a client has given up a wait */                    \
    NEWS_ROW(REPEATED_CALL, "repeated_call") /* an outcome that the same call made again gets */

enum news_kind {
#define NEWS_ROW(symbol, name) NEWS_##symbol,
    NEWS_TABLE(NEWS_ROW)
#undef NEWS_ROW
        NEWS_COUNT
};

struct news {
    struct str wait; /* of WAIT_OVER: its owner and id (client/cancelled.c); JSON object */
    struct str call; /* of REPEATED_CALL (tools/repeated_news.c); JSON object */
    /* Of TASK_ASKS, as the numbers below; all texts are borrowed, and the first members. */
    struct str requests;  /* the open requests to a modern client: JSON object, or empty */
    struct str questions; /* pending elicitations: JSON array, or empty */
    enum news_kind kind;
    char task[TASK_ID_BYTES]; /* "" for news of no task */
    bool is_asking;           /* a legacy client */
    int64_t changed_ms;       /* wall clock, or 0 */
    int64_t sequence;         /* rises with each that one replica sends; set by news_send() */
};

/* Sends it to all the others that live. Does nothing where nothing is relayed. On the worker's
 * loop.
 */
void news_send(struct gateway_worker *worker, const struct news *news);
/* Whether the request on the port for replicas is one of these. Then it is answered, and each
 * worker is notified by gateway->news. A GET asks only whether the replica answers. */
bool news_take(struct gateway_worker *worker, struct http_exchange *exchange);
/* Gives up what is under way. On the worker's loop. */
void news_drop(struct gateway_worker *worker);

/* ---- requests to other replicas ---- */

/* A request to another replica; all is borrowed. */
struct replica_request {
    const char *replica, *address;
    int64_t epoch; /* of the replica */
    struct str method, target, body;
    int64_t silence_ms; /* 0: no limit */
};
/* Sends it with these headers, and the signature of this replica over all of it. The body must live
 * as long as the call. */
struct headers;
struct upstream_call *replicas_send(struct gateway_worker *worker,
                                    const struct replica_request *request, struct headers *headers,
                                    const struct upstream_callbacks *callbacks, void *context);

/* ---- requests that other replicas relay to this one: nothing else is served on the port for them
 * ---- */

/* The refusals, in a header of RELAY_SIGNATURE_HEADER. Either way the request was not looked at. */
#define RELAYED_REFUSED "refused"   /* nothing that a replica has signed, or for the second time */
#define RELAYED_NOT_HERE "not-here" /* it is for another life of this replica, or this one ends */

/* The query of a pulse's question (carry.c) from a replica that ends. */
#define RELAYED_LEAVING "leaving"

/* Whether the request was signed by another replica for this one, just now and once. Else it is
 * refused. */
bool relayed_is_good(struct gateway_worker *worker, struct http_exchange *exchange);

/* News of replicas as JSON. Any thread. */

void news_write(struct buffer *out, const struct news *news);
/* The texts are views of `text`. false: it is of a kind that this version does not know, or has
 * another form. */
bool news_read(struct str text, struct news *news);
