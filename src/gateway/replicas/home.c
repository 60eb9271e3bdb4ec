/* The way of a request to the replica that has what it needs. */
#include "home.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "carry.h"
#include "replicas.h"
#include "request/call_part.h"
#include "request/request_state.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/homes.h"

/* A session that another replica has opened a moment ago may not have been stored yet. */
static const int64_t unknown_again_ms[] = {50, 150};
#define UNKNOWN_AGAIN_COUNT (sizeof unknown_again_ms / sizeof *unknown_again_ms)
/* So many calls of a process wait for that at once. A client that invents ids costs one read
 * each. */
#define UNKNOWN_MOST 32

/* A call that waits to know where its task or session lives. */
struct settling {
    struct call_part part;
    uint32_t magic; /* SETTLING_MAGIC */
    struct call *call;
    call_step here;
    struct loop_timer again;
    size_t tries;
    bool is_waiting;          /* for a session to be stored */
    bool was_carried;         /* in vain: it is not tried again */
    char task[TASK_ID_BYTES]; /* "": its session is looked for */
};
#define SETTLING_MAGIC 0x4757534c

static struct settling *settling_from(void *context)
{
    return MAGIC_CAST(struct settling, SETTLING_MAGIC, context);
}

static void stop_waiting(struct settling *settling)
{
    if (settling->is_waiting)
        atomic_fetch_sub(&settling->call->worker->gateway->replicas->waiting, 1);
    settling->is_waiting = false;
}

static void drop(struct call *call, void *object)
{
    struct settling *settling = object;
    stop_waiting(settling);
    loop_timer_stop(&settling->again);
    MAGIC_CLEAR(settling);
    free(settling);
}

static const struct call_part_kind settling_kind = CALL_PART_KIND(struct settling, drop);

static void settle(struct call *call, const char *task, call_step here, bool was_carried);

/* Returns the way on. */
static call_step finish(struct settling *settling)
{
    call_step here = settling->here;
    call_part_remove(&settling->part);
    drop(settling->call, settling);
    return here;
}

/* ---- what a request needs ---- */

static bool is_modern(const struct call *call)
{
    return call->dialect->era == MCP_ERA_MODERN;
}

/* A state that the client keeps. The process that handles the call judges whether the caller may
 * know the task. */
static bool read_state(const struct call *call, struct request_state *state)
{
    return is_modern(call) && request_state_is_ours(call) && request_state_peek(call, state);
}

/* A legacy client's request about its task needs the session as well, but for a poll. */
static bool is_of_task(const struct call *call)
{
    struct str method = call->envelope.method;
    return str_equal(method, STR("tasks/get")) ||
           (is_modern(call) &&
            (str_equal(method, STR("tasks/update")) || str_equal(method, STR("tasks/cancel"))));
}

static bool find_task(const struct call *call, char id[TASK_ID_BYTES])
{
    struct request_state state;
    struct str text = STR_EMPTY;
    if (is_of_task(call))
        text = call->envelope.task_id.text;
    else if (read_state(call, &state))
        text = str_from(state.id);
    if (!text.bytes || !task_id_is_ours(text) || text.length >= TASK_ID_BYTES ||
        memchr(text.bytes, '\0', text.length) != NULL)
        return false;
    memcpy(id, text.bytes, text.length);
    id[text.length] = '\0';
    return true;
}

/* An open call at a server, which the process has that gave the state. */
static bool find_open_call(const struct call *call, struct session_home *home)
{
    const struct store *store = call->worker->gateway->store;
    struct request_state state;
    if (!read_state(call, &state) || !*state.replica)
        return false;
    memcpy(home->replica, state.replica, sizeof home->replica);
    home->epoch = state.epoch;
    home->is_here = strcmp(state.replica, store_replica_id(store)) == 0;
    return true;
}

/* Notices of the client's own, and the question whether the server is there, need nothing that one
 * process has. Everything else does, or its server may ask the client something on the way. */
static bool needs_session(const struct call *call)
{
    struct str method = call->envelope.method;
    if (!call->dialect->has_sessions ||
        http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID).length == 0)
        return false;
    if (!str_equal(http_method(call->exchange), STR("POST")))
        return true;
    return !str_equal(method, STR("ping")) && !str_equal(method, STR("initialize")) &&
           !str_equal(method, STR("notifications/initialized")) &&
           !str_equal(method, STR("notifications/roots/list_changed"));
}

/* ---- what is remembered of sessions ---- */

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

/* ---- the way ---- */

/* The store may know already that the home has said goodbye. */
static void on_untaken(struct call *call, call_step here)
{
    char task[TASK_ID_BYTES] = "";
    struct session_home home;
    if (!find_task(call, task) && find_open_call(call, &home))
        here(call); /* it says that the call was lost */
    else
        settle(call, task, here, true);
}

/* A request that goes by a session may have effects. Any other request to another replica changes
 * nothing a second time: a poll, an answer to a question that is closed then, a round that is
 * over. */
enum way { BY_SESSION, BY_TASK, BY_OPEN_CALL };

/* false: its replica is gone, or is in another life. */
static bool go(struct call *call, const struct session_home *home, enum way way, call_step here)
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
        carry_start(call, home, peer.address, way != BY_SESSION, on_untaken, here);
    else if (!peer.is_over)
        here(call);
    free(peer.address);
    return !peer.is_over;
}

static void go_by_session(struct call *call, call_step here)
{
    struct session_home home;
    if (!needs_session(call)) {
        here(call);
        return;
    }
    call_identify(call);
    if (!session_homes_get(call->worker->gateway->replicas->homes, str_from(call->source->id),
                           str_from(call->session), &home) ||
        !go(call, &home, BY_SESSION, here))
        settle(call, "", here, false);
}

/* ---- asking the store ---- */

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
    struct settling *settling = settling_from(context);
    stop_waiting(settling);
    ask(settling);
}

static void take_home(struct settling *settling, const struct store_reply *reply)
{
    struct call *call = settling->call;
    struct session_home home = {.epoch = reply->home->epoch, .is_here = reply->home->is_here};
    enum way way = *settling->task ? BY_TASK : BY_SESSION;
    snprintf(home.replica, sizeof home.replica, "%s", reply->home->replica);
    replicas_note(call->worker->gateway->replicas, reply->home);
    if (way == BY_SESSION)
        remember(call, call->session, reply->home);
    if (reply->home->is_adopted && way == BY_SESSION)
        tell_adoption(call, reply);
    else if (reply->home->is_adopted)
        log_info("A task was adopted: its replica is gone", LOG_TEXT("task", settling->task));
    bool was_carried = settling->was_carried;
    call_step here = finish(settling);
    if (was_carried || !go(call, &home, way, here))
        here(call);
}

static bool waits_again(struct settling *settling)
{
    struct replicas *replicas = settling->call->worker->gateway->replicas;
    if (settling->tries == UNKNOWN_AGAIN_COUNT || !replicas_are_others(replicas))
        return false;
    settling->is_waiting = true;
    if (atomic_fetch_add(&replicas->waiting, 1) >= UNKNOWN_MOST) {
        stop_waiting(settling);
        return false;
    }
    loop_timer_start(&settling->again, unknown_again_ms[settling->tries++]);
    return true;
}

/* One that was not waited for, because too many were, may be stored in a moment. */
static bool nobody_can_have_opened_it(const struct settling *settling)
{
    return settling->tries == UNKNOWN_AGAIN_COUNT ||
           !replicas_are_others(settling->call->worker->gateway->replicas);
}

static void give_up(struct settling *settling, enum store_status status)
{
    struct call *call = settling->call;
    bool is_task = *settling->task;
    if (!is_task && status == STORE_NOT_FOUND && nobody_can_have_opened_it(settling))
        remember_unknown(call);
    call_step here = finish(settling);
    if (is_task)
        go_by_session(call, here);
    else
        here(call);
}

static void on_settled(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct settling *settling = call->exchange ? call_part_find(call, &settling_kind) : NULL;
    if (!settling) {
        /* its client has gone; a session that was adopted is told of all the same */
        if (reply->status == STORE_OK && reply->home->is_adopted && reply->task_count > 0)
            tell_adoption(call, reply);
    } else if (reply->status == STORE_OK) {
        take_home(settling, reply);
    } else if (*settling->task || reply->status != STORE_NOT_FOUND || !waits_again(settling)) {
        give_up(settling, reply->status);
    }
    call_unref(call);
}

static void ask(struct settling *settling)
{
    struct call *call = settling->call;
    struct store *store = call->worker->gateway->store;
    if (*settling->task)
        store_task_settle(store, str_from(settling->task), call_to_store(call, on_settled));
    else
        store_session_settle(store, str_from(call->source->id), str_from(call->session),
                             call_to_store(call, on_settled));
}

static void settle(struct call *call, const char *task, call_step here, bool was_carried)
{
    struct settling *settling = memory_alloc(sizeof *settling);
    MAGIC_SET(settling, SETTLING_MAGIC);
    settling->call = call;
    settling->here = here;
    settling->was_carried = was_carried;
    snprintf(settling->task, sizeof settling->task, "%s", task);
    loop_timer_init(&settling->again, call->worker->loop, on_again, settling);
    call_part_add(call, &settling->part, &settling_kind);
    ask(settling);
}

static void find_way(struct call *call, call_step here)
{
    struct session_home home;
    char task[TASK_ID_BYTES];
    if (find_task(call, task))
        settle(call, task, here, false);
    else if (!find_open_call(call, &home))
        go_by_session(call, here);
    else if (!go(call, &home, BY_OPEN_CALL, here))
        here(call); /* it says that the call was lost */
}

void home_then(struct call *call, call_step here)
{
    const struct gateway *gateway = call->worker->gateway;
    if (gateway->replicas && !call->is_relayed && !atomic_load(&gateway->shutting_down))
        find_way(call, here);
    else
        here(call);
}
