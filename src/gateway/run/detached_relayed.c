/* Calls that a relay has begun, and that become tasks because they are slow or their client has
 * left. */
#include "detached_call_internal.h"
#include "inbox/inbox.h"
#include "quota.h"
#include "relay/relay.h"
#include "request/client_profile.h"
#include "request/deferred_response.h"

/* The first look reads the call's session. It is needed when the client leaves. */
#define FIRST_LOOK_MS 1000

static bool may_promote(const struct call *call)
{
    bool has_asked_for_task = call->envelope.task.raw.length > 0;
    return relay_is_under_way(call) && !has_asked_for_task && client_is_shown_tools(call);
}

/* Reserves room for a task and takes the server's side off the relay. false: there is no room, or
 * the server's side cannot be taken now; nothing was changed. */
static bool take_relayed(struct call *call, struct rpc_call_begun *taken)
{
    char key[CLIENT_KEY_BYTES];
    if (!detached_task_reserve(call, key))
        return false;
    if (relay_detach(call, taken))
        return true;
    quota_give_back(call->worker->gateway->promoted, str_from(key));
    return false;
}

static void promote_relayed(struct call *call)
{
    struct rpc_call_begun taken;
    if (!may_promote(call))
        return;
    int64_t left_ms = call->snapshot->config->pseudo.wait_ms - relay_age_ms(call);
    if (left_ms > 0) {
        relay_repeat_slow(call, left_ms);
        return;
    }
    if (!take_relayed(call, &taken)) {
        relay_repeat_slow(call, DETACHED_CALL_AGAIN_MS);
        return;
    }
    struct detached_call *detached =
        detached_call_create(call, call->snapshot->config->pseudo.wait_ms);
    struct rpc_call_options options = detached_call_options(detached);
    if (taken.is_stream)
        deferred_response_take_stream(call, DETACHED_CALL_WAITS_FOR);
    else
        deferred_response_begin(call, DETACHED_CALL_WAITS_FOR, STR_EMPTY);
    deferred_response_await_upstream(call);
    detached->base.rpc =
        rpc_call_adopt(call->worker, &taken, &options, &detached_call_rpc_callbacks, detached);
    detached_task_create(detached, call);
}

int64_t detached_call_first_look_ms(const struct call *call)
{
    int64_t wait_ms = call->snapshot->config->pseudo.wait_ms;
    return wait_ms < FIRST_LOOK_MS ? wait_ms : FIRST_LOOK_MS;
}

void detached_call_of_slow(struct call *call)
{
    call_identify(call);
    call_with_facts(call, promote_relayed);
}

/* ---- its client has left ---- */

/* Whether the client is known without asking the store. The client has left, so the store would
 * answer too late. A call without a session needs no answer. */
static bool knows_client(struct call *call)
{
    call_identify(call);
    return !call->session[0] || call->facts.known ||
           sessions_get(call->worker->gateway->sessions, str_from(call->source->id),
                        str_from(call->session), &call->facts);
}

static void promote_left(struct call *call, struct rpc_call_begun *taken)
{
    struct detached_call *detached = detached_call_create(call, 0);
    struct rpc_call_options options = detached_call_options(detached);
    call_part_remove(&detached->part);
    detached->call = NULL;
    detached->base.rpc =
        rpc_call_adopt(call->worker, taken, &options, &detached_call_rpc_callbacks, detached);
    if (detached_task_create(detached, call))
        detached_task_remember(detached, call);
    else
        detached_call_end(detached);
}

void detached_call_of_left(struct call *call)
{
    char key[CLIENT_KEY_BYTES];
    struct rpc_call_begun taken;
    if (!knows_client(call) || !may_promote(call))
        return;
    inbox_key_of_call(call, key);
    if (key[0] && take_relayed(call, &taken))
        promote_left(call, &taken);
}
