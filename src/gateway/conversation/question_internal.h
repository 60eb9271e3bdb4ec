/* A question on the loop that took it, for the files that answer and end questions. */
#pragma once

#include "question.h"
#include "taskgate/core/magic.h"

struct kept_question {
    uint32_t magic; /* KEPT_QUESTION_MAGIC */
    struct question question;
    struct gateway_worker *worker; /* the worker of its loop */
    struct snapshot *snapshot;
    const struct config_source *source;
    struct headers headers;            /* the headers of the answer to the server */
    struct task *task;                 /* or NULL */
    char owner[OWNER_BYTES];           /* of the call it is asked in */
    question_answer_taker take_answer; /* or NULL */
    bool is_in_call; /* the call has sent it itself, and keeps its clock (question_ask_in_call()) */
    struct loop_timer timer;
    bool is_settled; /* its loop's */
};
#define KEPT_QUESTION_MAGIC 0x47574b08

static inline struct kept_question *kept_question_from(void *context)
{
    return MAGIC_CAST(struct kept_question, KEPT_QUESTION_MAGIC, context);
}

/* ---- question.c ---- */
/* Whether a bridged legacy client can be asked for its roots. */
bool question_declares_roots(const struct call *call);
/* The id under which a client got the request, JSON text. */
void question_write_sent_id(const struct question *question, struct buffer *out);
/* A JSON-RPC error object. */
void question_write_error(struct buffer *error, int code, struct str message);
/* Sends the server the response, or gives it to the taker of answers. From any worker; `events` as
 * server_respond() has them, which a taker does not call. */
void question_respond(struct gateway_worker *worker, const struct kept_question *kept,
                      const struct server_response *response, const struct exchange_events *events,
                      void *context);
/* Closes the oldest open one that matches; as question_table_close(). */
struct kept_question *question_close(struct gateway *gateway, struct str key,
                                     const struct question_match *match,
                                     struct question_closing *closing);
/* The caller has closed it and could not deliver the answer. False when the request of upstream's
 * has ended meanwhile: then it is settled as rejected. The pointer may not be used any more. */
bool question_reopen(struct gateway_worker *worker, struct kept_question *kept);
/* Ends a question that the caller has closed, once the response is on its way. Clients that see the
 * task are told, and the loop of the question frees it. The pointer may not be used any more. */
void question_settle(struct gateway_worker *worker, struct kept_question *kept);
