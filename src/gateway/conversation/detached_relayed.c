/* Calls that a relay has begun, and that become tasks because they are slow or their client has
 * left. */
#include "call/client_profile.h"
#include "call/deferred_response.h"
#include "call/token_clock.h"
#include "detach_internal.h"
#include "inbox/inbox.h"
#include "question.h"
#include "relay.h"
#include "state/quota.h"
#include "taskgate/core/owned.h"

/* The first look reads the call's session. It is needed when the client leaves, and before the
 * limit of silence of those who cannot wait as long. Later ones see that a question is answered. */
#define LOOK_MS 1000

/* ---- the call, relayed or carried across eras ---- */

static bool is_under_way(const struct call *call)
{
    return call->carrier ? call->carrier->is_under_way(call) : relay_is_under_way(call);
}

static void repeat_slow(struct call *call, int64_t in_ms)
{
    if (call->carrier)
        call->carrier->repeat_slow(call, in_ms);
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
           (call->carrier && call->carrier->asks_later(call)) ||
           question_is_open_without_task(call);
}

static void set_silence(struct call *call, int64_t limit_ms)
{
    if (call->carrier)
        call->carrier->set_silence(call, limit_ms);
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

/* NULL: the server requires input. */
static struct exchange *exchange_of(const struct call *call)
{
    return call->carrier ? call->carrier->exchange(call) : relay_exchange(call);
}

/* Reserves room for a task. false: there is no room, or what the server sends cannot be taken over
 * now; nothing was changed. */
static bool reserve_task(const struct call *call)
{
    char key[CLIENT_KEY_BYTES];
    const struct exchange *exchange = exchange_of(call);
    if (!detached_task_reserve(call, key))
        return false;
    if (!exchange || exchange_may_read_messages(exchange))
        return true;
    quota_give_back(call->worker->gateway->promoted, str_from(key));
    return false;
}

static void keep_rounds(struct detached_call *detached, struct call *call)
{
    struct catalog_tool tool;
    call_find_tool(call, call_tool(call), &tool);
    detached->wraps_output = tool.wraps_output;
    detached_rounds_keep(detached, call);
}

/* What the server sends goes to the detached call from now on. */
static void take_exchange_over(struct detached_call *detached, struct call *call)
{
    struct exchange *exchange = exchange_of(call);
    const struct sending sending = detached_call_sending(detached);
    if (call->carrier) {
        OWNED_BUFFER(asked);
        keep_rounds(detached, call);
        call->carrier->hand_over(call, &detached->base.up, &asked);
        detached_rounds_keep_asked(detached, buffer_str(&asked));
        return;
    }
    detached->base.exchange = exchange;
    exchange_read_messages(exchange, &sending, &detached_call_events, detached);
}

/* ---- it is slow ---- */

/* A carrier has deferred the response already. */
static void defer(struct call *call, const struct detached_call *detached)
{
    if (!call->carrier && exchange_is_stream(detached->base.exchange))
        deferred_response_take_stream(call, DETACHED_CALL_WAITS_FOR);
    else if (!call->carrier)
        deferred_response_begin(call, DETACHED_CALL_WAITS_FOR, STR_EMPTY);
    deferred_response_await_upstream(call);
}

static void promote(struct call *call)
{
    if (call->carrier && !is_under_way(call)) {
        repeat_slow(call, DETACHED_CALL_AGAIN_MS); /* its client is asked */
        return;
    }
    if (!is_under_way(call))
        return;
    if (!may_be_task(call)) {
        stay(call);
        return;
    }
    int64_t age_ms = call->carrier ? call->carrier->age_ms(call) : relay_age_ms(call);
    int64_t left_ms = patience_ms(call) - age_ms;
    if (call->is_executed)
        left_ms = token_clock_bound_ms(call, left_ms);
    if (left_ms > 0 || !is_to_be_promoted(call)) {
        be_patient(call, left_ms > 0 ? left_ms : patience_ms(call));
        return;
    }
    if (!reserve_task(call)) {
        repeat_slow(call, DETACHED_CALL_AGAIN_MS);
        return;
    }
    struct detached_call *detached = detached_call_create(call, patience_ms(call));
    detached->is_executed = call->is_executed;
    take_exchange_over(detached, call);
    defer(call, detached);
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

static void promote_left(struct call *call)
{
    struct detached_call *detached = detached_call_create(call, 0);
    call_part_remove(&detached->part);
    detached->call = NULL;
    take_exchange_over(detached, call);
    if (detached_task_create(detached, call))
        detached_task_remember(detached);
    else
        detached_call_end(detached);
}

void detached_call_of_left(struct call *call)
{
    char key[CLIENT_KEY_BYTES];
    if (!knows_client(call) || !is_under_way(call) || !may_be_task(call))
        return;
    inbox_key_of_call(call, key);
    if (key[0] && reserve_task(call))
        promote_left(call);
}
