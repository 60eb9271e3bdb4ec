/*
 * Messages of the server while a call runs whose client has only its task. Notifications are passed
 * on, with the task's id in related-task _meta. Requests become questions, which wait for an answer
 * (behaviour 7.8, 12.1).
 */
#pragma once

#include "call/call.h"
#include "question.h"

/* The call that runs; all borrowed. */
struct notice_origin {
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source; /* of it */
    struct task *task;                  /* NULL while its client waits for the answer itself */
    const char *key;                    /* of the client (inbox/inbox.h), or "" */
    const struct headers *headers; /* that an answer to upstream needs: session and credentials */
    const char *session;           /* digest of the session in them, or "" */
    const struct question_audience *audience; /* the clients that answer */
    uint64_t
        call; /* a number of question_next_number() that its questions end with; 0: the task does */
    struct server_budget *budget; /* for the requests of the server */
};

/* Takes a request or notification. */
void notices_take(const struct notice_origin *origin, struct str message);
