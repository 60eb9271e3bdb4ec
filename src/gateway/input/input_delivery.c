/* An answer on its way to the server, until its arrival is known. */
#include <stdlib.h>

#include "input_internal.h"
#include "mcp_client/rpc_call.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

/* Upstream answers a response with 202 and no body. */
#define ARRIVAL_MS 10000
#define REPLY_BYTES ((size_t)65536)

struct delivery {
    struct gateway_worker *worker;
    struct kept_input
        *kept; /* closed by this answer, and not settled before its arrival is known */
    struct input_receiver receiver;
};

static void on_reply(void *context, const struct rpc_call_reply *reply)
{
    struct delivery *delivery = context;
    struct kept_input *kept = delivery->kept;
    struct input_delivery told = {.status = reply->status, .result = reply->result};
    told.has_arrived =
        reply->result == UPSTREAM_DONE && reply->status >= 200 && reply->status < 300;
    if (told.has_arrived) {
        input_settle(delivery->worker, kept);
    } else {
        log_warn("An answer has not reached upstream", LOG_TEXT("source", kept->input.source),
                 LOG_TEXT("question", kept->input.id), LOG_NUMBER("status", reply->status),
                 LOG_TEXT("detail", reply->detail));
        told.is_open = input_reopen(delivery->worker, kept);
    }
    delivery->receiver.delivered(delivery->receiver.context, &told);
    free(delivery);
}

/* The worker ends, and the question with it. */
static void on_dropped(void *context)
{
    struct delivery *delivery = context;
    delivery->receiver.dropped(delivery->receiver.context);
    free(delivery);
}

/* It is taken here, and told later, as the receiver expects. */
static void on_taken(void *context)
{
    struct delivery *delivery = context;
    delivery->receiver.delivered(delivery->receiver.context,
                                 &(struct input_delivery){.has_arrived = true});
    free(delivery);
}

static void hand_over(struct gateway_worker *worker, struct kept_input *kept,
                      const struct input_response *response, const struct input_receiver *receiver)
{
    input_respond(worker, kept, response);
    input_settle(worker, kept);
    if (!receiver)
        return;
    struct delivery *delivery = memory_alloc(sizeof *delivery);
    *delivery = (struct delivery){.worker = worker, .receiver = *receiver};
    loop_post(worker->loop, on_taken, delivery);
}

void input_deliver(struct gateway_worker *worker, struct kept_input *kept,
                   const struct input_response *response, const struct input_receiver *receiver)
{
    static const struct rpc_call_callbacks callbacks = {.reply = on_reply, .dropped = on_dropped};
    if (!receiver || kept->take_answer) {
        hand_over(worker, kept, response, receiver);
        return;
    }
    struct delivery *delivery = memory_alloc(sizeof *delivery);
    *delivery = (struct delivery){worker, kept, *receiver};
    struct buffer body;
    buffer_init(&body);
    input_write_response(&body, str_from(kept->input.upstream_id), response);
    const struct rpc_call_options options = {.source = kept->source,
                                             .snapshot = kept->snapshot,
                                             .headers = &kept->headers,
                                             .body = buffer_str(&body),
                                             .total_ms = ARRIVAL_MS,
                                             .most_bytes = REPLY_BYTES};
    rpc_call_start(worker, &options, &callbacks, delivery);
    buffer_finish(&body);
}
