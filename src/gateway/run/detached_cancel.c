/*
 * Clients that give up a call that upstream runs. An SDK client that has waited for a minute sends
 * notifications/cancelled for it: upstream must not hear of it where the call goes on as a task,
 * whose end the client may still want. It cancels the task if it means that.
 */
#include "detached_call_internal.h"
#include "inbox/inbox.h"
#include "quota.h"
#include "request/client_profile.h"
#include "request/worker.h"
#include "taskgate/json/text.h"

/* One client's request: keys hold no space. */
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
    write_name(&name, str_from(detached->key), buffer_str(&detached->request_id));
    quota_take(detached->worker->gateway->detached, buffer_str(&name), INT64_MAX, INT64_MAX);
    list_append(&detached->worker->detached, &detached->node);
    buffer_finish(&name);
}

void detached_call_unregister(struct detached_call *detached)
{
    struct buffer name;
    buffer_init(&name);
    write_name(&name, str_from(detached->key), buffer_str(&detached->request_id));
    quota_give_back(detached->worker->gateway->detached, buffer_str(&name));
    list_remove(&detached->node);
    buffer_finish(&name);
}

/* A worker_callback; `name` is a request's. Its wait may be on any worker. */
static void stop_running(struct gateway_worker *worker, struct task *unused, struct str name)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->detached) {
        struct detached_call *detached = LIST_ENTRY(node, struct detached_call, node);
        struct buffer own;
        buffer_init(&own);
        write_name(&own, str_from(detached->key), buffer_str(&detached->request_id));
        if (str_equal(buffer_str(&own), name))
            detached_call_stop_running(detached);
        buffer_finish(&own);
    }
}

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
        workers_broadcast(gateway, stop_running, NULL, buffer_str(&name));
    buffer_finish(&name);
    return is_ours;
}
