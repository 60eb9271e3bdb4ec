/* The way of a request to the home of its session. */
#include "home.h"

#include <stdio.h>
#include <stdlib.h>

#include "carry.h"
#include "replicas.h"
#include "request/call_part.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/homes.h"

/* A session that another replica has opened a moment ago may not have been stored yet. */
#define UNKNOWN_AGAIN_MS 50
#define UNKNOWN_TRIES 5

/* A call that waits to know where its session lives. */
struct settling {
    struct call_part part;
    struct call *call;
    call_step here;
    struct loop_timer again;
    int tries;
    bool was_carried; /* in vain: it is not tried again */
};

static void drop(struct call *call, void *object)
{
    struct settling *settling = object;
    loop_timer_stop(&settling->again);
    free(settling);
}

static const struct call_part_kind settling_kind = CALL_PART_KIND(struct settling, drop);

static void settle(struct call *call, call_step here, bool was_carried);

/* The store may know already that the home has said goodbye. */
static void on_untaken(struct call *call, call_step here)
{
    settle(call, here, true);
}

/* Returns the way on. */
static call_step finish(struct settling *settling)
{
    call_step here = settling->here;
    call_part_remove(&settling->part);
    drop(settling->call, settling);
    return here;
}

/* Notices of the client's own, and the question whether the server is there, need nothing that one
 * process has. Everything else does, or its server may ask the client something on the way. */
static bool needs_home(const struct call *call)
{
    struct str method = call->envelope.method;
    if (!str_equal(http_method(call->exchange), STR("POST")))
        return true;
    return !str_equal(method, STR("ping")) && !str_equal(method, STR("initialize")) &&
           !str_equal(method, STR("notifications/initialized")) &&
           !str_equal(method, STR("notifications/roots/list_changed"));
}

static void remember(const struct call *call, const char *session, const struct store_home *home)
{
    struct session_home known = {.epoch = home->epoch, .is_here = home->is_here};
    snprintf(known.replica, sizeof known.replica, "%s", home->replica);
    session_homes_put(call->worker->gateway->replicas->homes, str_from(call->source->id),
                      str_from(session), &known, call->snapshot->config->limits.sessions);
}

/* No replica has opened it, so it is not waited for again. */
static void remember_unknown(const struct call *call)
{
    const struct store *store = call->worker->gateway->store;
    const struct store_home here = {
        .replica = store_replica_id(store), .epoch = store_replica_epoch(store), .is_here = true};
    remember(call, call->session, &here);
}

/* false: its replica is gone, or is in another life. */
static bool go(struct call *call, const struct session_home *home, call_step here)
{
    struct replicas *replicas = call->worker->gateway->replicas;
    if (home->is_here) {
        if (home->epoch != store_replica_epoch(replicas->store))
            return false;
        here(call);
        return true;
    }
    struct peer peer = replicas_find_peer(replicas, home->replica, home->epoch);
    if (peer.address)
        carry_start(call, home, peer.address, on_untaken, here);
    else if (!peer.is_over)
        here(call);
    free(peer.address);
    return !peer.is_over;
}

static void tell_adoption(struct call *call, const struct store_reply *reply)
{
    log_info("A session was adopted: its replica is gone", LOG_TEXT("source", call->source->id),
             LOG_NUMBER("lost", (int64_t)reply->task_count));
    for (size_t i = 0; i < reply->task_count; i++)
        call->worker->gateway->task_lost(call->worker->gateway, reply->tasks[i]);
}

static void ask(struct settling *settling);

static void on_again(void *context)
{
    ask(context);
}

static void take_home(struct settling *settling, const struct store_reply *reply)
{
    struct call *call = settling->call;
    struct session_home home = {.epoch = reply->home->epoch, .is_here = reply->home->is_here};
    snprintf(home.replica, sizeof home.replica, "%s", reply->home->replica);
    remember(call, call->session, reply->home);
    replicas_note(call->worker->gateway->replicas, reply->home);
    if (reply->home->is_adopted)
        tell_adoption(call, reply);
    bool was_carried = settling->was_carried;
    call_step here = finish(settling);
    if (was_carried || !go(call, &home, here))
        here(call);
}

static void on_settled(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct settling *settling = call->exchange ? call_part_find(call, &settling_kind) : NULL;
    if (!settling) {
        /* its client has gone; a session that was adopted is told of all the same */
        if (reply->status == STORE_OK && reply->home->is_adopted)
            tell_adoption(call, reply);
    } else if (reply->status == STORE_OK) {
        take_home(settling, reply);
    } else if (reply->status == STORE_NOT_FOUND && ++settling->tries < UNKNOWN_TRIES) {
        loop_timer_start(&settling->again, UNKNOWN_AGAIN_MS);
    } else {
        if (reply->status == STORE_NOT_FOUND)
            remember_unknown(call);
        finish(settling)(call);
    }
    call_unref(call);
}

static void ask(struct settling *settling)
{
    struct call *call = settling->call;
    store_session_settle(call->worker->gateway->store, str_from(call->source->id),
                         str_from(call->session), call_to_store(call, on_settled));
}

static void settle(struct call *call, call_step here, bool was_carried)
{
    struct settling *settling = memory_alloc(sizeof *settling);
    settling->call = call;
    settling->here = here;
    settling->was_carried = was_carried;
    loop_timer_init(&settling->again, call->worker->loop, on_again, settling);
    call_part_add(call, &settling->part, &settling_kind);
    ask(settling);
}

void home_then(struct call *call, call_step here)
{
    struct replicas *replicas = call->worker->gateway->replicas;
    struct session_home home;
    if (!replicas || call->is_relayed || atomic_load(&call->worker->gateway->shutting_down) ||
        !call->dialect->has_sessions ||
        http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID).length == 0 ||
        !needs_home(call)) {
        here(call);
        return;
    }
    call_identify(call);
    if (session_homes_get(replicas->homes, str_from(call->source->id), str_from(call->session),
                          &home) &&
        go(call, &home, here))
        return;
    settle(call, here, false);
}
