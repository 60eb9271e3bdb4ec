/*
 * Waits that their client has given up. An SDK client whose own clock runs out sends
 * notifications/cancelled and leaves the exchange open, but reads no answer in it: what came there
 * would be lost. So the wait ends as if the client had gone, and what it waited for is told to
 * whoever asks next.
 */
#include "cancelled.h"

#include "request/deferred_response.h"
#include "request/worker.h"
#include "taskgate/json/text.h"

static bool is_abandoned(const struct call *call, struct str name)
{
    struct str source, session, owner, id;
    bool waits_here =
        call->exchange && deferred_response_is(call) && !deferred_response_awaits_upstream(call);
    str_cut(name, ' ', &source, &id);
    str_cut(id, ' ', &session, &id);
    str_cut(id, ' ', &owner, &id);
    return waits_here && str_equal(session, str_from(call->session)) &&
           str_equal(owner, str_from(call->owner)) &&
           str_equal(source, str_from(call->source->id)) && str_equal(id, call->envelope.id);
}

/* The protocol wants no answer to a request that was cancelled. */
static void end_wait(struct call *call)
{
    if (deferred_response_is_stream(call))
        call_answer(call, STR_EMPTY);
    else
        call_answer_status(call, 202, STR_EMPTY);
}

/* A worker_callback; `name` is a request's, which may wait on any worker: source, session, owner
 * and id, of which the last alone may hold a space. */
static void end_waits(struct gateway_worker *worker, struct task *unused, struct str name)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        if (is_abandoned(call, name))
            end_wait(call);
    }
}

void cancelled_notify(struct call *call)
{
    struct str id = json_member(call->envelope.params, "requestId");
    struct buffer name;
    call_identify(call);
    if (!call->session[0] || id.length == 0)
        return; /* without a session another client's request may have the same id */
    buffer_init(&name);
    buffer_append_format(&name, "%s %s %s %.*s", call->source->id, call->session, call->owner,
                         STR_ARGS(id));
    workers_broadcast(call->worker->gateway, end_waits, NULL, buffer_str(&name));
    buffer_finish(&name);
}
