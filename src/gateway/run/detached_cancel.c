/*
 * Clients that give up a call that the server runs: the server is notified, and a task that the
 * call has become ends. Once a pending answer has named the task, it is the task that the client
 * may cancel, not the request.
 */
#include <string.h>

#include "call/client_profile.h"
#include "detached_call_internal.h"
#include "inbox/inbox.h"
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

static void on_cancelled(void *context, const struct store_reply *reply)
{
    struct detached_call *detached = detached_call_from(context);
    if (reply->status == STORE_OK)
        detached_task_forget(detached);
    invocation_unref(&detached->base); /* the message's own reference */
}

static void cancel_task(struct detached_call *detached)
{
    const struct task *task = detached->base.task;
    const struct task_change change = {.to = TASK_CANCELLED, .unless_promised = true};
    const struct store_actor actor = {"client", task->owner};
    invocation_ref(&detached->base);
    store_task_change(detached->base.worker->gateway->store, str_from(task->id), &change, &actor,
                      (struct store_call){detached->base.worker->loop, on_cancelled, detached});
}

void detached_call_give_up(struct detached_call *detached)
{
    struct call *call = detached->call;
    if (call)
        call_part_remove(&detached->part);
    detached->call = NULL;
    detached_call_notify_server(detached, task_state_name(TASK_CANCELLED));
    detached_call_end(detached);
    if (call)
        call_answer_nothing(call);
}

/* The server is notified once the task's end is stored, or the task is refused. */
static void cancel(struct detached_call *detached)
{
    detached->is_given_up = invocation_where(&detached->base) == INVOCATION_COMMITTING;
    if (detached->base.task)
        cancel_task(detached);
    else
        detached_call_give_up(detached);
}

void detached_calls_cancel(struct gateway_worker *worker, struct str key, struct str request_id)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->detached) {
        struct detached_call *detached = LIST_ENTRY(node, struct detached_call, node);
        if (str_equal(str_from(detached->key), key) &&
            str_equal(buffer_str(&detached->base.request_id), request_id))
            cancel(detached);
    }
}

bool detached_call_takes_cancel(const struct call *call)
{
    struct str id = json_member(call->envelope.params, "requestId");
    char key[CLIENT_KEY_BYTES];
    struct buffer name;
    inbox_key_of_call(call, key);
    if (!key[0] || id.length == 0)
        return false;
    buffer_init(&name);
    write_name(&name, str_from(key), id);
    int64_t count = quota_count(call->worker->gateway->detached, buffer_str(&name));
    buffer_finish(&name);
    /* Without sessions, clients that share a token may use the same id for calls of their own. */
    return call->session[0] ? count > 0 : count == 1;
}
