/* Inputs on the way to clients: each worker offers them to its clients, and takes them back. */
#include "call/broadcast.h"
#include "inbox/inbox.h"
#include "input_events.h"
#include "input_internal.h"
#include "taskgate/json/text.h"

/* ---- offering ---- */

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

void input_announce_change(struct gateway *gateway, const struct kept_input *kept)
{
    if (kept->task)
        broadcast_send(gateway, &change_kind, &(struct task_broadcast){.task = kept->task});
}

void input_note_change(const struct kept_input *kept)
{
    if (kept->task)
        events_of(kept->worker)->changed(kept->worker, kept->task);
}

/* ---- withdrawing ---- */

/* A stream shows a request that is closed now. */
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

void input_withdraw(struct gateway_worker *worker, const struct kept_input *kept)
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

/* ---- to clients that know no tasks ---- */

static void add_inbox_event(const struct kept_input *kept, enum inbox_event type, struct str params)
{
    const struct input_request *input = &kept->input;
    struct buffer data;
    if (input->kind == INPUT_ROOTS)
        return; /* no tool answers it */
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

void input_announce(const struct kept_input *kept)
{
    bool is_elicitation = kept->input.kind == INPUT_ELICITATION;
    add_inbox_event(kept, is_elicitation ? INBOX_ELICITATION_REQUEST : INBOX_SAMPLING_REQUEST,
                    json_member(str_from(kept->input.message), "params"));
    if (!kept->task) {
        const struct client_broadcast offer = {str_from(kept->input.key)};
        broadcast_send(kept->worker->gateway, &client_offer_kind, &offer);
        return;
    }
    input_note_change(kept);
    input_announce_change(kept->worker->gateway, kept);
}

void input_announce_expiry(const struct kept_input *kept)
{
    bool is_elicitation = kept->input.kind == INPUT_ELICITATION;
    add_inbox_event(kept, is_elicitation ? INBOX_ELICITATION_EXPIRED : INBOX_SAMPLING_EXPIRED,
                    STR_EMPTY);
}
