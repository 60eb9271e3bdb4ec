/* Calls that a relay has begun, and that become tasks because they are slow or their client has
 * left. */
#include "bridge/bridge_call.h"
#include "call/client_profile.h"
#include "call/deferred_response.h"
#include "call/token_clock.h"
#include "conversation/question.h"
#include "detached_call_internal.h"
#include "inbox/inbox.h"
#include "relay/relay.h"
#include "state/quota.h"

/* The first look reads the call's session. It is needed when the client leaves, and before the
 * limit of silence of those who cannot wait as long. Later ones see that a question is answered. */
#define LOOK_MS 1000

/* ---- the call, relayed or bridged ---- */

static bool is_under_way(const struct call *call)
{
    return call->is_bridged ? bridge_call_is_under_way(call) : relay_is_under_way(call);
}

static void repeat_slow(struct call *call, int64_t in_ms)
{
    if (call->is_bridged)
        bridge_call_repeat_slow(call, in_ms);
    else
        relay_repeat_slow(call, in_ms);
}

static bool may_be_task(const struct call *call)
{
    bool has_asked_for_task = call->envelope.task.raw.length > 0;
    return !has_asked_for_task && !call->is_given_up &&
           (call->is_executed || client_may_be_promoted(call));
}

/* Its client's wait: of execute_tool, or of any other call. */
static int64_t patience_ms(const struct call *call)
{
    bool hears = call->envelope.progress_token.length > 0 && deferred_response_may_stream(call);
    return call->is_executed ? call->patience_ms : client_wait_ms(call, hears);
}

/* A call that its client would get byte for byte stays what it is, unless the server waits for an
 * answer that the client can give by the tools alone. */
static bool is_to_be_promoted(const struct call *call)
{
    return call->is_executed || call->snapshot->config->pseudo.promote == PROMOTE_WAIT ||
           bridge_call_asks_later(call) || question_is_open_without_task(call);
}

static void set_silence(struct call *call, int64_t limit_ms)
{
    if (call->is_bridged)
        bridge_call_set_silence(call, limit_ms);
    else
        relay_set_silence(call, limit_ms);
}

/* Its client waits, and ends the call by closing the connection. The server may be silent while a
 * person has its question, and for as long as a call by execute_tool is to wait. */
static void be_patient(struct call *call, int64_t next_ms)
{
    bool is_open = question_is_open_without_task(call);
    if (!call->is_executed)
        set_silence(call, is_open ? 0 : call->snapshot->config->times.execution_timeout_ms);
    repeat_slow(call, is_open && next_ms > LOOK_MS ? LOOK_MS : next_ms);
}

/* The call never becomes a task, so no later look is needed than those for the end of a question.
 */
static void stay(struct call *call)
{
    bool is_open = question_is_open_without_task(call);
    set_silence(call, is_open ? 0 : call->snapshot->config->times.sync_forward_timeout_ms);
    if (is_open)
        repeat_slow(call, LOOK_MS);
}

/* The server's side, taken off the call: one of the two. */
struct taken {
    struct exchange_begun begun;
    struct exchange *bridged;
    struct buffer required; /* of a bridged call without one: detached_rounds_require() */
};

/* Reserves room for a task and takes the server's side. false: there is no room, or the server's
 * side cannot be taken now; nothing was changed. */
static bool take(struct call *call, struct taken *taken)
{
    char key[CLIENT_KEY_BYTES];
    if (!detached_task_reserve(call, key))
        return false;
    taken->bridged = call->is_bridged ? bridge_call_take(call, &taken->required) : NULL;
    if (call->is_bridged || relay_detach(call, &taken->begun))
        return true;
    quota_give_back(call->worker->gateway->promoted, str_from(key));
    return false;
}

/* The server's messages go to the detached call from now on. */
static void adopt(struct detached_call *detached, struct call *call, struct taken *taken)
{
    struct sending sending = detached_call_sending(detached);
    struct catalog_tool tool;
    if (!call->is_bridged) {
        detached->base.exchange =
            exchange_adopt(call->worker, &taken->begun, &sending, &detached_call_events, detached);
        return;
    }
    call_find_tool(call, call_tool(call), &tool);
    detached->is_bridged = true;
    detached->wraps_output = tool.wraps_output;
    detached_rounds_keep(detached, call);
    if (!taken->bridged) {
        detached_rounds_require(detached, buffer_str(&taken->required));
        buffer_finish(&taken->required);
        return;
    }
    detached->base.exchange = taken->bridged;
    exchange_hand_over(taken->bridged, &detached_call_events, detached);
    exchange_set_silence(taken->bridged, 0);
}

/* ---- it is slow ---- */

/* A bridged call has deferred its response already. */
static void defer(struct call *call, const struct taken *taken)
{
    if (!call->is_bridged && taken->begun.is_stream)
        deferred_response_take_stream(call, DETACHED_CALL_WAITS_FOR);
    else if (!call->is_bridged)
        deferred_response_begin(call, DETACHED_CALL_WAITS_FOR, STR_EMPTY);
    deferred_response_await_upstream(call);
}

static void promote(struct call *call)
{
    struct taken taken;
    if (call->is_bridged && !is_under_way(call)) {
        repeat_slow(call, DETACHED_CALL_AGAIN_MS); /* its client is asked */
        return;
    }
    if (!is_under_way(call))
        return;
    if (!may_be_task(call)) {
        stay(call);
        return;
    }
    int64_t age_ms = call->is_bridged ? bridge_call_age_ms(call) : relay_age_ms(call);
    int64_t left_ms = patience_ms(call) - age_ms;
    if (call->is_executed)
        left_ms = token_clock_bound_ms(call, left_ms);
    if (left_ms > 0 || !is_to_be_promoted(call)) {
        be_patient(call, left_ms > 0 ? left_ms : patience_ms(call));
        return;
    }
    if (!take(call, &taken)) {
        repeat_slow(call, DETACHED_CALL_AGAIN_MS);
        return;
    }
    struct detached_call *detached = detached_call_create(call, patience_ms(call));
    detached->is_executed = call->is_executed;
    defer(call, &taken);
    adopt(detached, call, &taken);
    detached_task_create(detached, call);
}

int64_t detached_call_first_look_ms(const struct call *call)
{
    int64_t wait_ms = patience_ms(call);
    int64_t soon_ms = call->snapshot->config->times.sync_forward_timeout_ms / 2;
    if (soon_ms > LOOK_MS)
        soon_ms = LOOK_MS;
    int64_t first_ms = wait_ms < soon_ms ? wait_ms : soon_ms;
    return call->is_executed && first_ms == 0 ? 1 : first_ms; /* 0 would be never */
}

void detached_call_of_slow(struct call *call)
{
    call_identify(call);
    call_with_facts(call, promote);
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

bool detached_call_asks_later(struct call *call, struct str method)
{
    enum question_kind kind;
    return question_is_asked_by(method, &kind) && knows_client(call) && may_be_task(call) &&
           question_has_tools(call, kind);
}

static void promote_left(struct call *call, struct taken *taken)
{
    struct detached_call *detached = detached_call_create(call, 0);
    call_part_remove(&detached->part);
    detached->call = NULL;
    adopt(detached, call, taken);
    if (detached_task_create(detached, call))
        detached_task_remember(detached);
    else
        detached_call_end(detached);
}

void detached_call_of_left(struct call *call)
{
    char key[CLIENT_KEY_BYTES];
    struct taken taken;
    if (!knows_client(call) || !is_under_way(call) || !may_be_task(call))
        return;
    inbox_key_of_call(call, key);
    if (key[0] && take(call, &taken))
        promote_left(call, &taken);
}
