/* The life of an input: it is taken, told, and closed by the first who answers or ends it. */
#include "input_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inbox/inbox.h"
#include "input_events.h"
#include "input_internal.h"
#include "mcp_client/rpc_call.h"
#include "request/broadcast.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"
#include "taskgate/mcp/sampling.h"

/* A form is checked and shown on a loop; a conversation is only passed on. */
#define ELICITATION_BYTES ((size_t)64 * 1024)
#define SAMPLING_BYTES ((size_t)1024 * 1024)
/* A closed input is remembered for so long: a late answer is then told that it is late. */
#define CLOSED_KEPT_MS 60000
/* An input that is open again stays so for at least this long. */
#define REOPENED_LEAST_MS 1000

static const char *const methods[INPUT_KIND_COUNT] = {"elicitation/create",
                                                      "sampling/createMessage"};

bool input_is_asked_by(struct str method, enum input_kind *kind)
{
    for (size_t i = 0; i < INPUT_KIND_COUNT; i++) {
        if (str_equal(method, str_from(methods[i]))) {
            *kind = (enum input_kind)i;
            return true;
        }
    }
    return false;
}

uint64_t inputs_number(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

/* ---- whose they are ---- */

bool input_has_tools(const struct call *call, enum input_kind kind)
{
    static const enum config_pseudo_tool needed[INPUT_KIND_COUNT][2] = {
        [INPUT_ELICITATION] = {PSEUDO_TOOL_GET_ELICITATIONS, PSEUDO_TOOL_RESPOND_TO_ELICITATION},
        [INPUT_SAMPLING] = {PSEUDO_TOOL_GET_SAMPLING_REQUESTS, PSEUDO_TOOL_RESPOND_TO_SAMPLING},
    };
    const struct config_pseudo *pseudo = &call->snapshot->config->pseudo;
    return client_is_shown_tools(call) && config_pseudo_offers(pseudo, needed[kind][0]) &&
           config_pseudo_offers(pseudo, needed[kind][1]);
}

void input_audience(const struct call *call, struct input_audience *audience)
{
    const struct session_facts *facts = &call->facts;
    bool can_any = false;
    client_key_of_call(call, audience->key);
    audience->can[INPUT_ELICITATION] = facts->client.declares_elicitation;
    audience->can[INPUT_SAMPLING] = facts->client.declares_sampling;
    for (size_t i = 0; i < INPUT_KIND_COUNT; i++) {
        if (!audience->can[i])
            audience->can[i] = call->session[0] && input_has_tools(call, (enum input_kind)i);
        can_any = can_any || audience->can[i];
    }
    audience->is_closed = facts->known && facts->client.declares_tasks && !can_any;
}

/* ---- where nobody can answer ---- */

/* Upstream must not hang: a person who is not there declines, a model that is not there is an
 * error, and so is everything where the capability was never offered. */
static void decline(const struct input_origin *origin, enum input_kind kind, struct str id)
{
    struct input_response response = {.error_code = -32601,
                                      .error_message = STR("Method not found")};
    if (kind == INPUT_ELICITATION && !origin->audience->is_closed)
        response.result = STR("{\"action\":\"decline\"}");
    else if (kind == INPUT_SAMPLING)
        response.error_message = STR("Method not found: nobody can sample for this client");
    log_info("A question of upstream's is declined: nobody can answer it",
             LOG_TEXT("source", origin->source->id), LOG_TEXT("method", methods[kind]));
    input_respond_to(origin, id, &response);
}

/* ---- freeing ---- */

static void destroy(struct kept_input *kept)
{
    loop_timer_stop(&kept->timer);
    headers_finish(&kept->headers);
    snapshot_unref(kept->snapshot);
    task_unref(kept->task);
    free(kept->input.source);
    free(kept->input.task);
    free(kept->input.upstream_id);
    free(kept->input.message);
    MAGIC_CLEAR(kept);
    free(kept);
}

static void forget(struct kept_input *kept)
{
    input_table_remove(kept->worker->gateway->inputs, &kept->input);
    destroy(kept);
}

static bool is_of_worker(const void *worker, const struct input_request *input)
{
    const struct kept_input *kept = input->owner;
    return kept->worker == worker;
}

void input_drop(struct gateway_worker *worker)
{
    struct input_request *input;
    while ((input = input_table_take(worker->gateway->inputs, is_of_worker, worker)))
        destroy(input->owner);
}

/* ---- telling ---- */

static const struct input_events *events_of(const struct gateway_worker *worker)
{
    return worker->gateway->input_events;
}

static void offer_task(struct gateway_worker *worker, const struct task *task)
{
    if (input_is_open(worker->gateway, task))
        events_of(worker)->offer(worker, task);
}

static void deliver_offer(struct gateway_worker *worker, const void *message)
{
    const struct task_broadcast *offer = message;
    offer_task(worker, offer->task);
}

static const struct broadcast_kind offer_kind = TASK_BROADCAST_KIND(deliver_offer);

void input_offer(struct gateway *gateway, struct task *task)
{
    broadcast_send(gateway, &offer_kind, &(struct task_broadcast){.task = task});
}

static void deliver_client_offer(struct gateway_worker *worker, const void *message)
{
    const struct client_broadcast *offer = message;
    events_of(worker)->offer_client(worker, offer->key);
}

static const struct broadcast_kind client_offer_kind = CLIENT_BROADCAST_KIND(deliver_client_offer);

/* The task looks different now, and may have something to ask. */
static void deliver_change(struct gateway_worker *worker, const void *message)
{
    const struct task_broadcast *change = message;
    events_of(worker)->changed(worker, change->task);
    events_of(worker)->status(worker, change->task);
    offer_task(worker, change->task);
}

static const struct broadcast_kind change_kind = TASK_BROADCAST_KIND(deliver_change);

/* A stream has a request that is answered now. */
struct withdrawal {
    struct task *task; /* or NULL */
    uint64_t claimant; /* the stream's number */
    struct str message;
};

static void own_withdrawal(void *message)
{
    struct withdrawal *withdrawal = message;
    if (withdrawal->task)
        task_ref(withdrawal->task);
    withdrawal->message = broadcast_copy(withdrawal->message);
}

static void finish_withdrawal(void *message)
{
    struct withdrawal *withdrawal = message;
    task_unref(withdrawal->task);
    broadcast_release(withdrawal->message);
}

static void deliver_withdrawal(struct gateway_worker *worker, const void *message)
{
    const struct withdrawal *withdrawal = message;
    events_of(worker)->send(worker, withdrawal->task, withdrawal->claimant, withdrawal->message);
}

static const struct broadcast_kind withdrawal_kind = {.bytes = sizeof(struct withdrawal),
                                                      .own = own_withdrawal,
                                                      .finish = finish_withdrawal,
                                                      .deliver = deliver_withdrawal};

/* The client may be showing a form for what is answered already. */
static void withdraw(struct gateway_worker *worker, struct kept_input *kept)
{
    const struct input_request *input = &kept->input;
    if (input->claimant == 0 || input->state == INPUT_ANSWERED_ON_STREAM)
        return;
    struct buffer id, message, related;
    buffer_init(&id);
    buffer_init(&message);
    buffer_init(&related);
    input_write_sent_id(input, &id);
    jsonrpc_write_cancelled(&message, buffer_str(&id), input_end_name(input->state));
    if (input->task[0])
        dialect_write_related_message(&related, buffer_str(&message), STR_EMPTY,
                                      str_from(input->task));
    else
        buffer_append(&related, buffer_str(&message));
    const struct withdrawal withdrawal = {kept->task, input->claimant, buffer_str(&related)};
    broadcast_send(worker->gateway, &withdrawal_kind, &withdrawal);
    buffer_finish(&related);
    buffer_finish(&message);
    buffer_finish(&id);
}

/* ---- closing ---- */

struct kept_input *input_close(struct gateway *gateway, struct str key,
                               const struct input_match *match, struct input_closing *closing)
{
    closing->now_ms = clock_now_ms();
    struct input_request *input = input_table_close(gateway->inputs, key, match, closing);
    return input ? input->owner : NULL;
}

/* On its own loop. A client that has seen the request, in a task or on a stream, may answer
 * late. */
static void on_settled(void *context)
{
    struct kept_input *kept = kept_input_from(context);
    kept->is_settled = true;
    if (kept->task)
        events_of(kept->worker)->changed(kept->worker, kept->task);
    if (kept->task || kept->input.claimant != 0)
        loop_timer_start(&kept->timer, CLOSED_KEPT_MS);
    else
        forget(kept);
}

void input_settle(struct gateway_worker *worker, struct kept_input *kept)
{
    log_info("A question of upstream's is closed", LOG_TEXT("source", kept->input.source),
             LOG_TEXT("question", kept->input.id),
             LOG_TEXT("outcome", input_end_name(kept->input.state)));
    withdraw(worker, kept);
    if (kept->task && kept->input.state != INPUT_REJECTED)
        broadcast_send(worker->gateway, &change_kind, &(struct task_broadcast){.task = kept->task});
    loop_post(kept->worker->loop, on_settled, kept);
}

/* On its own loop. The wait for an answer goes on where it was. */
static void on_reopened(void *context)
{
    struct kept_input *kept = kept_input_from(context);
    int64_t timeout_ms = kept->snapshot->config->pseudo.elicitation_timeout_ms;
    int64_t left_ms = kept->input.asked_ms + timeout_ms - clock_now_ms();
    loop_timer_start(&kept->timer, left_ms > REOPENED_LEAST_MS ? left_ms : REOPENED_LEAST_MS);
    if (kept->task)
        broadcast_send(kept->worker->gateway, &change_kind,
                       &(struct task_broadcast){.task = kept->task});
}

bool input_reopen(struct gateway_worker *worker, struct kept_input *kept)
{
    /* Posted before anybody else can close it and have its loop free it. */
    loop_post(kept->worker->loop, on_reopened, kept);
    if (input_table_reopen(worker->gateway->inputs, &kept->input))
        return true;
    input_settle(worker, kept);
    return false;
}

/* Tells a client that knows no tasks. */
static void tell_event(const struct kept_input *kept, enum inbox_event type, struct str params)
{
    const struct input_request *input = &kept->input;
    struct buffer data;
    buffer_init(&data);
    buffer_append_format(&data, "{\"requestId\":\"%s\"", input->id);
    if (params.length > 0) {
        buffer_append_text(&data, ",\"params\":");
        buffer_append(&data, params);
    }
    buffer_append_char(&data, '}');
    inbox_add_session_event(kept->worker->gateway, str_from(input->key), type,
                            str_from(input->source), buffer_str(&data));
    buffer_finish(&data);
}

static void expire(struct kept_input *kept)
{
    struct input_closing closing = {.state = INPUT_EXPIRED};
    const struct input_match self = {.id = str_from(kept->input.id)};
    struct str key = str_from(kept->input.key);
    int64_t timeout_ms = kept->snapshot->config->pseudo.elicitation_timeout_ms;
    if (input_close(kept->worker->gateway, key, &self, &closing) != kept)
        return; /* somebody was faster, and settles it */
    struct buffer text;
    bool is_elicitation = kept->input.kind == INPUT_ELICITATION;
    buffer_init(&text);
    buffer_append_format(&text, "%s request timed out after %lldms",
                         is_elicitation ? "Elicitation" : "Sampling", (long long)timeout_ms);
    input_respond(
        kept->worker, kept,
        &(struct input_response){.error_code = -32001, .error_message = buffer_str(&text)});
    buffer_finish(&text);
    tell_event(kept, is_elicitation ? INBOX_ELICITATION_EXPIRED : INBOX_SAMPLING_EXPIRED,
               STR_EMPTY);
    input_settle(kept->worker, kept);
}

static void on_time(void *context)
{
    struct kept_input *kept = kept_input_from(context);
    if (kept->is_settled)
        forget(kept);
    else
        expire(kept);
}

/* ---- taking ---- */

/* Upstream may ask the client to run the request as a task. It cannot poll such a task through the
 * gateway. The client is asked for the answer itself, which the protocol makes upstream accept as
 * well. */
static char *copy_without_task(struct str message)
{
    struct str params = json_member(message, "params");
    struct buffer plain = {0}, whole = {0};
    if (json_member(params, "task").length == 0)
        return memory_copy_str(message);
    json_write_without_member(&plain, params, "task");
    json_write_with_member(&whole, message, "params", buffer_str(&plain));
    buffer_finish(&plain);
    return buffer_take(&whole, NULL);
}

static struct kept_input *keep(const struct input_origin *origin, enum input_kind kind,
                               struct str message)
{
    struct kept_input *kept = memory_alloc(sizeof *kept);
    MAGIC_SET(kept, KEPT_INPUT_MAGIC);
    struct input_request *input = &kept->input;
    kept->worker = origin->worker;
    kept->snapshot = snapshot_ref(origin->snapshot);
    kept->source = origin->source;
    kept->task = origin->task ? task_ref(origin->task) : NULL;
    headers_init(&kept->headers, true);
    headers_add_all(&kept->headers, origin->headers);
    loop_timer_init(&kept->timer, origin->worker->loop, on_time, kept);
    list_init(&input->node);
    random_ulid(input->id);
    input->owner = kept;
    input->kind = kind;
    if (origin->task)
        client_key_or_id_of_task(origin->task, input->key);
    else
        memcpy(input->key, origin->audience->key, sizeof input->key);
    snprintf(input->session, sizeof input->session, "%s", origin->session);
    input->source = memory_copy_text(origin->source->id);
    input->task = memory_copy_text(origin->task ? origin->task->id : "");
    input->upstream_id = memory_copy_str(json_member(message, "id"));
    input->message = copy_without_task(message);
    input->call = origin->call;
    input->asked_ms = clock_now_ms();
    return kept;
}

static void announce(struct kept_input *kept)
{
    bool is_elicitation = kept->input.kind == INPUT_ELICITATION;
    tell_event(kept, is_elicitation ? INBOX_ELICITATION_REQUEST : INBOX_SAMPLING_REQUEST,
               json_member(str_from(kept->input.message), "params"));
    if (!kept->task) {
        const struct client_broadcast offer = {str_from(kept->input.key)};
        broadcast_send(kept->worker->gateway, &client_offer_kind, &offer);
        return;
    }
    events_of(kept->worker)->changed(kept->worker, kept->task);
    broadcast_send(kept->worker->gateway, &change_kind,
                   &(struct task_broadcast){.task = kept->task});
}

static void take(const struct input_origin *origin, enum input_kind kind, struct str message)
{
    struct kept_input *kept = keep(origin, kind, message);
    switch (input_table_add(origin->worker->gateway->inputs, &kept->input)) {
    case INPUT_ADDED:
        log_info("Upstream asks", LOG_TEXT("source", origin->source->id),
                 LOG_TEXT("method", methods[kind]), LOG_TEXT("question", kept->input.id),
                 LOG_TEXT("task", kept->input.task));
        loop_timer_start(&kept->timer, origin->snapshot->config->pseudo.elicitation_timeout_ms);
        announce(kept);
        return;
    case INPUT_TOO_MANY:
        input_respond(origin->worker, kept,
                      &(struct input_response){
                          .error_code = jsonrpc_error_code(JSONRPC_RATE_LIMITED),
                          .error_message = STR("Too many requests wait for this client")});
        break;
    case INPUT_REPEATED: /* a stream was opened again: the first still waits */
        break;
    }
    destroy(kept);
}

static bool is_well_formed(enum input_kind kind, struct str params, struct error *error)
{
    return kind == INPUT_ELICITATION ? elicitation_check_request(params, error)
                                     : sampling_check_request(params, error);
}

static void refuse(const struct input_origin *origin, struct str id, struct str why)
{
    input_respond_to(
        origin, id,
        &(struct input_response){.error_code = jsonrpc_error_code(JSONRPC_INVALID_PARAMS),
                                 .error_message = why});
}

void input_take(const struct input_origin *origin, struct str message)
{
    struct error error = {""};
    enum input_kind kind = INPUT_ELICITATION;
    struct str id = json_member(message, "id");
    char *method = json_string_text(json_member(message, "method"), NULL);
    input_is_asked_by(str_from(method), &kind);
    free(method);
    size_t most = kind == INPUT_ELICITATION ? ELICITATION_BYTES : SAMPLING_BYTES;
    bool has_key = origin->task || origin->audience->key[0];
    if (!origin->audience->can[kind] || !has_key)
        decline(origin, kind, id);
    else if (message.length > most)
        refuse(origin, id, STR("The request is larger than the gateway keeps"));
    else if (!is_well_formed(kind, json_member(message, "params"), &error))
        refuse(origin, id, str_from(error.message));
    else
        take(origin, kind, message);
}

/* ---- ends ---- */

/* Closes all that match. */
static void close_all(struct gateway_worker *worker, struct str key,
                      const struct input_match *match, enum input_state state)
{
    struct kept_input *kept;
    struct input_closing closing = {.state = state};
    if (input_table_count(worker->gateway->inputs) == 0)
        return;
    while ((kept = input_close(worker->gateway, key, match, &closing)))
        input_settle(worker, kept);
    input_table_end(worker->gateway->inputs, key, match);
}

bool input_take_cancel(const struct input_origin *origin, struct str message)
{
    char key[INPUT_KEY_BYTES];
    struct gateway *gateway = origin->worker->gateway;
    const struct input_match match = {
        .upstream_id = json_path(message, "params", "requestId"),
        .session = str_from(origin->session),
    };
    struct input_closing closing = {.state = INPUT_WITHDRAWN};
    if (match.upstream_id.length == 0 || input_table_count(gateway->inputs) == 0)
        return false;
    if (origin->task)
        client_key_or_id_of_task(origin->task, key);
    else
        memcpy(key, origin->audience->key, sizeof key);
    struct kept_input *kept = input_close(gateway, str_from(key), &match, &closing);
    if (kept)
        input_settle(origin->worker, kept);
    else
        input_table_end(gateway->inputs, str_from(key), &match);
    return kept || closing.was != INPUT_OPEN;
}

void input_end_task(struct gateway_worker *worker, const struct task *task)
{
    char key[INPUT_KEY_BYTES];
    const struct input_match match = {.task = str_from(task->id)};
    client_key_or_id_of_task(task, key);
    close_all(worker, str_from(key), &match, INPUT_REJECTED);
}

void input_end_call(struct gateway_worker *worker, struct str key, uint64_t call)
{
    const struct input_match match = {.call = call};
    if (call != 0)
        close_all(worker, key, &match, INPUT_REJECTED);
}

void input_end_key(struct gateway_worker *worker, struct str key)
{
    const struct input_match any = {0};
    if (key.length > 0)
        close_all(worker, key, &any, INPUT_REJECTED);
}
