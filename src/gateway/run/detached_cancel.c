/*
 * Clients that give up a call that the server runs. An SDK client sends notifications/cancelled
 * when it has waited for a minute. The call goes on as a task, whose result the client may still
 * want, so the server does not hear of it. A client that wants to stop the call cancels the task.
 */
#include "detached_call_internal.h"
#include "inbox/inbox.h"
#include "request/broadcast.h"
#include "request/client_profile.h"
#include "state/quota.h"
#include "taskgate/json/text.h"

/* Names one client's request. A key has no space. */
static void write_name(struct buffer *out, struct str key, struct str request_id)
{
    buffer_append(out, key);
    buffer_append_char(out, ' ');
    buffer_append(out, request_id);
}

void detached_call_register(struct detached_call *detached)
{
    struct buffer name;
    buffer_init(&name);
    write_name(&name, str_from(detached->key), buffer_str(&detached->base.request_id));
    quota_take(detached->base.worker->gateway->detached, buffer_str(&name), INT64_MAX, INT64_MAX);
    list_append(&detached->base.worker->detached, &detached->node);
    buffer_finish(&name);
}

void detached_call_unregister(struct detached_call *detached)
{
    struct buffer name;
    buffer_init(&name);
    write_name(&name, str_from(detached->key), buffer_str(&detached->base.request_id));
    quota_give_back(detached->base.worker->gateway->detached, buffer_str(&name));
    list_remove(&detached->node);
    buffer_finish(&name);
}

/* A client's request, whose wait may be on any worker. */
struct cancellation {
    struct str key, request_id;
};

static void own_cancellation(void *message)
{
    struct cancellation *cancellation = message;
    cancellation->key = broadcast_copy(cancellation->key);
    cancellation->request_id = broadcast_copy(cancellation->request_id);
}

static void finish_cancellation(void *message)
{
    struct cancellation *cancellation = message;
    broadcast_release(cancellation->key);
    broadcast_release(cancellation->request_id);
}

static void deliver_cancellation(struct gateway_worker *worker, const void *message)
{
    const struct cancellation *cancellation = message;
    LIST_FOR_EACH_SAFE (node, next, &worker->detached) {
        struct detached_call *detached = LIST_ENTRY(node, struct detached_call, node);
        if (str_equal(str_from(detached->key), cancellation->key) &&
            str_equal(buffer_str(&detached->base.request_id), cancellation->request_id))
            detached_call_stop_running(detached);
    }
}

static const struct broadcast_kind cancellation_kind = {.bytes = sizeof(struct cancellation),
                                                        .own = own_cancellation,
                                                        .finish = finish_cancellation,
                                                        .deliver = deliver_cancellation};

bool detached_call_takes_cancel(struct call *call)
{
    struct gateway *gateway = call->worker->gateway;
    struct str id = json_member(call->envelope.params, "requestId");
    char key[CLIENT_KEY_BYTES];
    struct buffer name;
    inbox_key_of_call(call, key);
    if (!key[0] || id.length == 0)
        return false;
    buffer_init(&name);
    write_name(&name, str_from(key), id);
    bool is_ours = quota_has(gateway->detached, buffer_str(&name));
    if (is_ours)
        broadcast_send(gateway, &cancellation_kind, &(struct cancellation){str_from(key), id});
    buffer_finish(&name);
    return is_ours;
}
