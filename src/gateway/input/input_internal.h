/* An input on the loop that took it, for the files that answer and end inputs. */
#pragma once

#include "input_request.h"
#include "taskgate/core/magic.h"

struct kept_input {
    uint32_t magic; /* KEPT_INPUT_MAGIC */
    struct input_request input;
    struct gateway_worker *worker; /* the worker of its loop */
    struct snapshot *snapshot;
    const struct config_source *source;
    struct headers headers;         /* the headers of the answer to the server */
    struct task *task;              /* or NULL */
    char owner[OWNER_BYTES];        /* of the call it is asked in */
    input_answer_taker take_answer; /* or NULL */
    bool is_in_call; /* the call has sent it itself, and keeps its clock (input_ask_in_call()) */
    struct loop_timer timer;
    bool is_settled; /* its loop's */
};
#define KEPT_INPUT_MAGIC 0x47574b08

static inline struct kept_input *kept_input_from(void *context)
{
    return MAGIC_CAST(struct kept_input, KEPT_INPUT_MAGIC, context);
}

/* Each file below calls only those above it, and input_table.h. */

/* ---- input_request.c ---- */
/* Whether a bridged legacy client can be asked for its roots. */
bool input_declares_roots(const struct call *call);

/* ---- input_view.c ---- */
/* The id under which a client got the request, JSON text. */
void input_write_sent_id(const struct input_request *input, struct buffer *out);

/* ---- input_announce.c; each on any worker ---- */
/* A new input: clients that may answer it are told. */
void input_announce(const struct kept_input *kept);
/* Clients that see its task are told on all workers. Nothing happens without a task. */
void input_announce_change(struct gateway *gateway, const struct kept_input *kept);
/* Its execution alone is told, on the input's own loop. Nothing happens without a task. */
void input_note_change(const struct kept_input *kept);
/* It has expired: tells a client without tasks. */
void input_announce_expiry(const struct kept_input *kept);
/* It is closed, so a stream that has claimed it takes it back: the client may show a form for it.
 */
void input_withdraw(struct gateway_worker *worker, const struct kept_input *kept);

/* ---- input_respond.c ---- */
/* The response to upstream's request `id`; from any worker. */
void input_write_response(struct buffer *body, struct str id,
                          const struct input_response *response);
void input_respond(struct gateway_worker *worker, const struct kept_input *kept,
                   const struct input_response *response);
/* The same to a request that is not kept. */
void input_respond_to(const struct input_origin *origin, struct str id,
                      const struct input_response *response);

/* ---- kept_input.c ---- */
/* An open input of the origin's worker, in no table yet. */
struct kept_input *kept_input_create(const struct input_origin *origin, enum input_kind kind,
                                     struct str message);
/* It is in no table, or the worker ends. */
void kept_input_destroy(struct kept_input *kept);
/* Closes the oldest open one that matches; as input_table_close(). */
struct kept_input *input_close(struct gateway *gateway, struct str key,
                               const struct input_match *match, struct input_closing *closing);
/* The caller has closed it and could not deliver the answer. False when the request of upstream's
 * has ended meanwhile: then it is settled as rejected. The pointer may not be used any more. */
bool input_reopen(struct gateway_worker *worker, struct kept_input *kept);
/* Ends an input that the caller has closed, once the response is on its way. Clients that see the
 * task are told, and the loop of the input frees it. The pointer may not be used any more. */
void input_settle(struct gateway_worker *worker, struct kept_input *kept);

/* ---- input_delivery.c ---- */
/* Sends the answer that has closed the input. With a receiver it is settled once upstream has the
 * answer, and open again when the answer has not arrived; without one it is settled at once. */
void input_deliver(struct gateway_worker *worker, struct kept_input *kept,
                   const struct input_response *response, const struct input_receiver *receiver);
