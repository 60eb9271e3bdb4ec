/* An answer on its way to the server, until its arrival is known. */
#include <stdlib.h>

#include "answer_gate.h"
#include "input_internal.h"
#include "server/http.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

/* Upstream answers a response with 202 and no body. */
#define ARRIVAL_MS 10000
#define REPLY_BYTES ((size_t)65536)

struct delivery {
    struct gateway_worker *worker;
    struct kept_input
        *kept; /* closed by this answer, and not settled before its arrival is known */
    struct input_receiver receiver;
};

static void on_reply(void *context, const struct exchange_reply *reply)
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

static void tell_taken(struct gateway_worker *worker, const struct input_receiver *receiver)
{
    struct delivery *delivery = memory_alloc(sizeof *delivery);
    *delivery = (struct delivery){.worker = worker, .receiver = *receiver};
    loop_post(worker->loop, on_taken, delivery);
}

static void hand_over(struct gateway_worker *worker, struct kept_input *kept,
                      const struct input_response *response, const struct input_receiver *receiver)
{
    input_respond(worker, kept, response);
    input_settle(worker, kept);
    if (receiver)
        tell_taken(worker, receiver);
}

static void send(struct gateway_worker *worker, struct kept_input *kept,
                 const struct input_response *response, const struct input_receiver *receiver)
{
    static const struct exchange_events events = {.reply = on_reply, .dropped = on_dropped};
    if (!receiver || kept->take_answer) {
        hand_over(worker, kept, response, receiver);
        return;
    }
    struct delivery *delivery = memory_alloc(sizeof *delivery);
    *delivery = (struct delivery){worker, kept, *receiver};
    struct buffer body;
    buffer_init(&body);
    input_write_response(&body, str_from(kept->input.upstream_id), response);
    const struct sending sending = {.source = kept->source,
                                    .snapshot = kept->snapshot,
                                    .headers = &kept->headers,
                                    .body = buffer_str(&body),
                                    .total_ms = ARRIVAL_MS,
                                    .most_bytes = REPLY_BYTES};
    exchange_send(worker, &sending, &events, delivery);
    buffer_finish(&body);
}

/* ---- inside an approved call ---- */

/* An answer that is on its way through the gate. */
struct gated {
    struct gateway_worker *worker;
    struct kept_input *kept; /* closed by this answer, and not settled */
    struct buffer result, error, message;
    int error_code;
    struct input_receiver receiver;
    bool has_receiver; /* that has not been told yet */
};

static void gated_destroy(struct gated *gated)
{
    buffer_finish(&gated->result);
    buffer_finish(&gated->error);
    buffer_finish(&gated->message);
    free(gated);
}

static void refuse(const struct gated *gated)
{
    struct input_response response = {.error_code = -1,
                                      .error_message = STR("The answer was refused")};
    if (gated->kept->input.kind == INPUT_ELICITATION)
        response.result = STR("{\"action\":\"decline\"}");
    input_respond(gated->worker, gated->kept, &response);
}

/* It could not be stored: the client may answer again. */
static void tell_failed(struct gated *gated)
{
    struct input_delivery told = {.result = UPSTREAM_SILENT};
    told.is_open = input_reopen(gated->worker, gated->kept);
    gated->receiver.delivered(gated->receiver.context, &told);
}

static void on_verdict(void *context, enum answer_verdict verdict)
{
    struct gated *gated = context;
    const struct input_response response = {
        .result = buffer_str(&gated->result),
        .error = buffer_str(&gated->error),
        .error_code = gated->error_code,
        .error_message = buffer_str(&gated->message),
    };
    if (verdict == ANSWER_PASSES) {
        send(gated->worker, gated->kept, &response, gated->has_receiver ? &gated->receiver : NULL);
    } else if (gated->has_receiver) {
        tell_failed(gated);
    } else {
        if (verdict == ANSWER_REFUSED)
            refuse(gated);
        input_settle(gated->worker, gated->kept);
    }
    gated_destroy(gated);
}

static void on_gate_dropped(void *context)
{
    struct gated *gated = context;
    if (gated->has_receiver)
        gated->receiver.dropped(gated->receiver.context);
    gated_destroy(gated);
}

static void write_question(struct buffer *out, const struct input_request *input)
{
    struct str message = str_from(input->message), params = json_member(message, "params");
    buffer_append_format(out, "{\"%s\":{\"method\":", input->id);
    buffer_append(out, json_member(message, "method"));
    if (params.length > 0) {
        buffer_append_text(out, ",\"params\":");
        buffer_append(out, params);
    }
    buffer_append_text(out, "}}");
}

static void write_answer(struct buffer *out, const struct gated *gated)
{
    buffer_append_format(out, "{\"%s\":", gated->kept->input.id);
    if (gated->result.length > 0) {
        buffer_append(out, buffer_str(&gated->result));
    } else if (gated->error.length > 0) {
        buffer_append_text(out, "{\"error\":");
        buffer_append(out, buffer_str(&gated->error));
        buffer_append_char(out, '}');
    } else {
        buffer_append_format(out, "{\"error\":{\"code\":%d,\"message\":", gated->error_code);
        buffer_append_json_string(out, buffer_str(&gated->message));
        buffer_append_text(out, "}}");
    }
    buffer_append_char(out, '}');
}

/* While people look at it the client is not kept waiting. */
static void pass_gate(struct gateway_worker *worker, struct kept_input *kept,
                      const struct input_response *response, const struct input_receiver *receiver)
{
    struct gated *gated = memory_alloc(sizeof *gated);
    struct buffer question = {0}, answer = {0};
    *gated = (struct gated){.worker = worker, .kept = kept, .error_code = response->error_code};
    buffer_append(&gated->result, response->result);
    buffer_append(&gated->error, response->error);
    buffer_append(&gated->message, response->error_message);
    gated->has_receiver = receiver != NULL;
    if (receiver)
        gated->receiver = *receiver;
    write_question(&question, &kept->input);
    write_answer(&answer, gated);
    const struct answer_gate_answers answers = {
        .task = kept->task, .questions = buffer_str(&question), .answers = buffer_str(&answer)};
    if (answer_gate_pass(worker, &answers, on_verdict, on_gate_dropped, gated) == ANSWER_WAITS &&
        receiver) {
        gated->has_receiver = false;
        tell_taken(worker, receiver);
    }
    buffer_finish(&question);
    buffer_finish(&answer);
}

void input_deliver(struct gateway_worker *worker, struct kept_input *kept,
                   const struct input_response *response, const struct input_receiver *receiver)
{
    if (!kept->take_answer && answer_gate_applies(kept->task))
        pass_gate(worker, kept, response, receiver);
    else
        send(worker, kept, response, receiver);
}
