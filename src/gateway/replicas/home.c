/* The way of a request to the replica that has what it needs. */
#include "replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/call.h"
#include "call/client_profile.h"
#include "call/request_state.h"
#include "carry.h"
#include "state/seen_table.h"
#include "state/session_table.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/store/homes.h"

/* ---- the needs of a call ---- */

static bool is_method(const struct call *call, const char *method)
{
    return str_equal(call->envelope.method, str_from(method));
}

/* A state that the client keeps. The process that handles the call judges whether the caller may
 * know the task. */
static bool read_state(const struct call *call, struct request_state *state)
{
    return !call->dialect->has_sessions && request_state_is_ours(call) &&
           request_state_peek(call, state);
}

/* ---- a task ---- */

/* A legacy client's tasks/cancel changes the state in the database, of which the home hears. */
static bool is_of_task(const struct call *call)
{
    switch (mcp_method_find(call->envelope.method, call->dialect->era)->treatment) {
    case MCP_TASKS_GET:
    case MCP_TASKS_UPDATE:
    case MCP_TASKS_RESULT:
        return true;
    case MCP_TASKS_CANCEL:
        return call->dialect->extends_tasks;
    default:
        return false;
    }
}

static bool copy_id(struct str text, char id[TASK_ID_BYTES])
{
    if (!text.bytes || !task_id_is_ours(text) || text.length >= TASK_ID_BYTES ||
        memchr(text.bytes, '\0', text.length) != NULL)
        return false;
    memcpy(id, text.bytes, text.length);
    id[text.length] = '\0';
    return true;
}

/* Of our tools, the one that lends the caller's credentials, and waits. The others read and change
 * what is in the database. */
static bool find_in_arguments(struct call *call, char id[TASK_ID_BYTES])
{
    OWNED_BUFFER(text);
    if (!is_method(call, "tools/call") ||
        client_own_tool_called(call) != PSEUDO_TOOL_GET_TASK_RESULT)
        return false;
    return json_decode_string(json_member(call->envelope.arguments.raw, "task_id"), &text) &&
           copy_id(buffer_str(&text), id);
}

/* Whether the request is about a task of the gateway's whose home has what it needs: the
 * credentials of the call, and what its server asks. */
static bool needs_task(struct call *call, char id[TASK_ID_BYTES])
{
    struct request_state state;
    if (is_of_task(call))
        return copy_id(call->envelope.task_id.text, id);
    if (read_state(call, &state))
        return copy_id(str_from(state.id), id);
    return find_in_arguments(call, id);
}

/* Whether its answer tells its client events, which the home of the session has. */
static bool needs_events(const struct call *call)
{
    return is_method(call, "tools/call");
}

/* ---- a process ---- */

static bool find_open_call(const struct call *call, struct session_home *home)
{
    const struct store *store = call->worker->gateway->store;
    struct request_state state;
    if (!read_state(call, &state) || !*state.replica)
        return false;
    *home = (struct session_home){.epoch = state.epoch};
    memcpy(home->replica, state.replica, sizeof home->replica);
    home->is_here = strcmp(state.replica, store_replica_id(store)) == 0;
    return true;
}

/* Whether it names a process: the one with an open call at a server, or with the question that it
 * answers. */
static bool needs_process(const struct call *call, struct session_home *home)
{
    if (call->envelope.kind == ENVELOPE_RESPONSE)
        return replicas_find_asker(call->worker->gateway->replicas, call->envelope.id, home);
    return find_open_call(call, home);
}

/* ---- a session ---- */

/* Notices of the client's own, and the question whether the server is there, need nothing that one
 * process has. Everything else does, or its server may ask the client something on the way. */
static bool needs_session(const struct call *call)
{
    if (!call->dialect->has_sessions ||
        http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID).length == 0)
        return false;
    if (!str_equal(http_method(call->exchange), STR("POST")))
        return true;
    return !is_method(call, "ping") && !is_method(call, "initialize") &&
           !is_method(call, MCP_INITIALIZED) && !is_method(call, MCP_ROOTS_CHANGED);
}

/* A session that another replica has opened a moment ago may not have been stored yet. */
static const int64_t unknown_again_ms[] = {50, 150};
#define UNKNOWN_AGAIN_COUNT (sizeof unknown_again_ms / sizeof *unknown_again_ms)
/* So many calls of a process wait for that at once. A client that invents ids costs one read of
 * each, and one more in SESSION_UNKNOWN_KEPT_MS. */
#define UNKNOWN_MOST 32

/* A call that waits to know where its session lives, or its task, or first the one and then the
 * other. */
struct settling {
    struct call_part part;
    uint32_t magic; /* SETTLING_MAGIC */
    struct call *call;
    call_step here;
    struct loop_timer again;
    size_t tries;
    bool is_waiting;          /* for a session to be stored */
    bool was_carried;         /* in vain: it is not tried again */
    bool stays;               /* it is handled here wherever its session lives */
    char task[TASK_ID_BYTES]; /* "": its session alone is looked for */
    bool asks_for_task;       /* now, else for the session */
    bool has_heir;            /* its session lives somewhere: */
    struct session_home heir; /* there, and so does the task if its home is gone */
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

static struct settling *settling_create(struct call *call, call_step here);
static void home_ask(struct settling *settling);
static void go_to_task(struct call *call, const char *task, call_step here, bool was_carried);

/* Returns the way on. */
static call_step finish(struct settling *settling)
{
    call_step here = settling->here;
    call_part_remove(&settling->part);
    drop(settling->call, settling);
    return here;
}

/* ---- what is remembered of sessions ---- */

static void home_remember(const struct call *call, const struct session_home *home)
{
    seen_table_put(call->worker->gateway->replicas->homes, str_from(call->source->id),
                   str_from(call->session), home, call->snapshot->config->limits.sessions);
}

/* No replica has opened it, so it is handled here, and not waited for again. Its commit may take
 * longer than that, so it is asked for again. */
static void remember_unknown(const struct call *call)
{
    const struct store *store = call->worker->gateway->store;
    struct session_home here = {.epoch = store_replica_epoch(store), .is_here = true};
    here.unknown_until_ms = clock_monotonic_ms() + SESSION_UNKNOWN_KEPT_MS;
    snprintf(here.replica, sizeof here.replica, "%s", store_replica_id(store));
    home_remember(call, &here);
}

/* Whether something is remembered; its home may be gone. After false, `unknown_until_ms` is not 0
 * for a session that was waited for before. */
static bool home_recall(struct call *call, struct session_home *home)
{
    call_identify(call);
    home->unknown_until_ms = 0;
    return seen_table_get(call->worker->gateway->replicas->homes, str_from(call->source->id),
                          str_from(call->session), home) &&
           (home->unknown_until_ms == 0 || clock_monotonic_ms() < home->unknown_until_ms);
}

static bool home_is_over(struct replicas *replicas, const struct session_home *home)
{
    if (home->is_here)
        return home->epoch != store_replica_epoch(replicas->store);
    return replicas_is_over(replicas, home->replica, home->epoch);
}

/* ---- the way ---- */

/* The store may know already that the home has said goodbye. */
static void on_untaken(struct call *call, call_step here)
{
    char task[TASK_ID_BYTES];
    struct session_home home;
    if (needs_task(call, task)) {
        go_to_task(call, task, here, true);
    } else if (call->envelope.kind == ENVELOPE_REQUEST && needs_process(call, &home)) {
        here(call); /* it says that the call was lost */
    } else {
        struct settling *settling = settling_create(call, here);
        settling->was_carried = true;
        home_ask(settling);
    }
}

/* A request that goes by a session may have effects. Any other request to another replica changes
 * nothing a second time: a poll, an answer to a question that is closed then, a round that is
 * over. */
enum way { BY_SESSION, BY_TASK, BY_PROCESS };

/* false: its replica is gone, or is in another life. */
static bool go(struct call *call, const struct session_home *home, enum way way, call_step here)
{
    struct replicas *replicas = call->worker->gateway->replicas;
    if (home->is_here) {
        if (home_is_over(replicas, home))
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
    if (home_recall(call, &home) && go(call, &home, BY_SESSION, here))
        return;
    struct settling *settling = settling_create(call, here);
    if (home.unknown_until_ms != 0)
        settling->tries = UNKNOWN_AGAIN_COUNT; /* it was waited for before */
    home_ask(settling);
}

/* ---- asking the store ---- */

static void tell_adoption(struct call *call, const struct store_reply *reply)
{
    log_info("A session was adopted: its replica is gone", LOG_TEXT("source", call->source->id),
             LOG_NUMBER("lost", (int64_t)reply->task_count));
    for (size_t i = 0; i < reply->task_count; i++)
        call->worker->gateway->task_lost(call->worker->gateway, reply->tasks[i]);
}

static void on_again(void *context)
{
    struct settling *settling = settling_from(context);
    stop_waiting(settling);
    home_ask(settling);
}

static void ask_for_task(struct settling *settling)
{
    settling->asks_for_task = true;
    home_ask(settling);
}

static void take_task_home(struct settling *settling, const struct session_home *home,
                           const struct store_reply *reply)
{
    struct call *call = settling->call;
    if (reply->home->is_adopted)
        log_info("A task was adopted: its replica is gone", LOG_TEXT("task", settling->task),
                 LOG_TEXT("replica", home->replica));
    bool was_carried = settling->was_carried;
    call_step here = finish(settling);
    if (was_carried || !go(call, home, BY_TASK, here))
        here(call);
}

static void take_session_home(struct settling *settling, const struct session_home *home,
                              const struct store_reply *reply)
{
    struct call *call = settling->call;
    home_remember(call, home);
    if (reply->home->is_adopted)
        tell_adoption(call, reply);
    if (*settling->task) {
        settling->has_heir = true;
        settling->heir = *home;
        call->is_away = !home->is_here;
        ask_for_task(settling);
        return;
    }
    bool stays = settling->stays || settling->was_carried;
    call->is_away = settling->stays && !home->is_here;
    call_step here = finish(settling);
    if (stays || !go(call, home, BY_SESSION, here))
        here(call);
}

static void take_home(struct settling *settling, const struct store_reply *reply)
{
    struct session_home home = {.epoch = reply->home->epoch, .is_here = reply->home->is_here};
    snprintf(home.replica, sizeof home.replica, "%s", reply->home->replica);
    if (!reply->home->is_adopted) /* else its address is not told */
        replicas_note(settling->call->worker->gateway->replicas, reply->home);
    if (settling->asks_for_task)
        take_task_home(settling, &home, reply);
    else
        take_session_home(settling, &home, reply);
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
static bool was_waited_for(const struct settling *settling)
{
    return settling->tries == UNKNOWN_AGAIN_COUNT ||
           !replicas_are_others(settling->call->worker->gateway->replicas);
}

/* It does not live anywhere, or the store does not say where. */
static void home_give_up(struct settling *settling, enum store_status status)
{
    struct call *call = settling->call;
    if (!settling->asks_for_task && *settling->task) {
        ask_for_task(settling);
        return;
    }
    if (!settling->asks_for_task && status == STORE_NOT_FOUND && was_waited_for(settling))
        remember_unknown(call);
    bool goes_on = settling->asks_for_task && !settling->was_carried;
    call_step here = finish(settling);
    if (goes_on)
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
    } else if (*settling->task || settling->stays || reply->status != STORE_NOT_FOUND ||
               !waits_again(settling)) {
        home_give_up(settling, reply->status);
    }
    call_unref(call);
}

static void home_ask(struct settling *settling)
{
    struct call *call = settling->call;
    struct store *store = call->worker->gateway->store;
    const struct store_heir heir = {settling->heir.replica, settling->heir.epoch};
    const struct store_call then = {call->worker->loop, on_settled, call_ref(call)};
    if (settling->asks_for_task)
        store_task_settle(store, str_from(settling->task), settling->has_heir ? &heir : NULL, then);
    else
        store_session_settle(store, str_from(call->source->id), str_from(call->session), then);
}

static struct settling *settling_create(struct call *call, call_step here)
{
    struct settling *settling = memory_alloc(sizeof *settling);
    MAGIC_SET(settling, SETTLING_MAGIC);
    settling->call = call;
    settling->here = here;
    loop_timer_init(&settling->again, call->worker->loop, on_again, settling);
    call_part_add(call, &settling->part, &settling_kind);
    return settling;
}

/* ---- the way of a call that is about a task ---- */

/* The session of the call comes first. If the task's home is gone, the task goes on where the
 * session does, so that its client finds there what its server asks. */
static void go_to_task(struct call *call, const char *task, call_step here, bool was_carried)
{
    struct settling *settling = settling_create(call, here);
    snprintf(settling->task, sizeof settling->task, "%s", task);
    settling->was_carried = was_carried;
    settling->asks_for_task = !needs_session(call);
    if (!settling->asks_for_task && home_recall(call, &settling->heir) &&
        !home_is_over(call->worker->gateway->replicas, &settling->heir)) {
        settling->asks_for_task = settling->has_heir = true;
        call->is_away = !settling->heir.is_here;
    }
    home_ask(settling);
}

static void find_way(struct call *call, call_step here)
{
    struct session_home home;
    char task[TASK_ID_BYTES];
    if (needs_task(call, task))
        go_to_task(call, task, here, false);
    else if (!needs_process(call, &home) || !go(call, &home, BY_PROCESS, here))
        go_by_session(call, here); /* a call that is lost has none, and is told so here */
}

/* A relayed call that came by its task: its session may live at yet another replica. */
static void find_session(struct call *call, call_step here)
{
    struct session_home home;
    char task[TASK_ID_BYTES];
    bool is_by_task = needs_events(call) && needs_task(call, task);
    if (!is_by_task || !needs_session(call)) {
        call->is_away = is_by_task;
        here(call);
    } else if (home_recall(call, &home) && !home_is_over(call->worker->gateway->replicas, &home)) {
        call->is_away = !home.is_here;
        here(call);
    } else {
        struct settling *settling = settling_create(call, here);
        settling->stays = true;
        home_ask(settling);
    }
}

enum gate_verdict home_then(struct call *call, call_step here)
{
    const struct gateway *gateway = call->worker->gateway;
    if (!gateway->replicas || atomic_load(&gateway->shutting_down))
        return GATE_PASSED;
    if (call->is_relayed)
        find_session(call, here);
    else
        find_way(call, here);
    return GATE_WAITS;
}
