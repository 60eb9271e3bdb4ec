/* Plain calls that become tasks, or join one that an earlier call has become. */
#include "plain_call.h"
#include "bridge/bridge_request.h"
#include "run/task_create.h"
#include "run/task_room.h"
#include "server/credential_check.h"
#include "state/tool_catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/call.h"
#include "call/client_profile.h"
#include "call/deferred_response.h"
#include "call/request_parts.h"
#include "confirmation.h"
#include "decision/task_binding.h"
#include "inbox/inbox.h"
#include "inbox/task_summary.h"
#include "plain_call_internal.h"
#include "repeated_news.h"
#include "run/execution.h"
#include "run/result_wait.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "tools.h"

/* The call tries again when the task that it was to join has gone meanwhile. */
#define MOST_ATTEMPTS 3
#define MOST_CANDIDATES 100
/* A client that has waited for so long may have given up without a word. */
#define LONG_WAIT_MS 4000

/* ---- the wait ---- */

static void on_ended(struct call *call, struct task *task)
{
    struct plain_call *plain = plain_call_of(call);
    struct repeated_call join = plain_call_join(plain);
    plain->is_told = true;
    if (loop_now_ms(call->worker->loop) - plain->began_ms < LONG_WAIT_MS) {
        if (repeated_call_forget(plain->gateway, &join))
            repeated_news_send_end(call->worker, &join);
    } else if (repeated_call_doubt(plain->gateway, &join)) {
        repeated_news_send(call->worker, &join, REPEATED_CALL_DOUBT_MS);
    }
    plain_call_answer_outcome(call, plain, task);
}

static void on_working(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    if (call->exchange)
        plain_call_answer_pending(call, plain_call_of(call), reply);
    call_unref(call);
}

/* The client has no session, and no tools of the gateway's: what it is given is a state to send
 * back (modern era, patterns/mrtr). */
static bool is_modern(const struct call *call)
{
    return !call->dialect->has_sessions;
}

/* The answer shows the task as it is now. */
static void on_promised(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    if (call->exchange && reply->task) {
        plain_call_set_task(plain_call_of(call), reply->task);
        task_summary_list(call, TASK_SUMMARY_WORKING, on_working);
    } else if (call->exchange) {
        task_create_answer_refused(call, STORE_FAILED);
    }
    call_unref(call);
}

static void on_timed_out(struct call *call)
{
    const struct plain_call *plain = plain_call_of(call);
    plain_call_leave(call, plain);
    /* At the end of the process: nothing but the state must lead to the call, whose user is still
     * to be asked, if at all. */
    if (is_modern(call) && !plain->is_held)
        plain_call_answer_asking(call, plain, STR("{}"), REQUEST_STATE_CONFIRM);
    else if (is_modern(call) && plain->state.round < call->snapshot->config->pseudo.rounds)
        plain_call_answer_state(call, plain);
    else
        store_task_promise(call->worker->gateway->store, str_from(plain->id),
                           call_to_store(call, on_promised));
}

/* A client that hears of progress may be held for longer. A client that could never ask again waits
 * for as long as the task takes. */
static void set_patience(struct call *call, const struct plain_call *plain)
{
    bool hears = call->envelope.progress_token.length > 0 && deferred_response_may_stream(call);
    if (call->is_executed)
        result_wait_set_patience(call, call->patience_ms);
    else if (plain->key[0] || client_is_shown_tools(call) || is_modern(call))
        result_wait_set_patience(call, client_wait_ms(call, hears));
    result_wait_open(call);
    if (hears && deferred_response_is(call))
        deferred_response_show_progress(call);
}

/* One of thousands, maybe: what is in the store is not kept beside. */
static void wait_lightly(struct call *call)
{
    struct plain_call *plain = plain_call_of(call);
    plain->is_waiting = true;
    task_unref(plain->task);
    plain->task = NULL;
    call_forget_body(call);
}

/* The task waits, and its client with it. */
static void hold(struct call *call)
{
    struct plain_call *plain = plain_call_of(call);
    plain->is_held = true;
    if (plain->is_joined && !(plain->is_pending && plain->task->on_result))
        execution_offer(call, plain->task, true);
    plain_call_take_answers(call, plain);
    if (plain_call_asks(call, plain))
        return;
    call_ref(call);
    set_patience(call, plain);
    if (call->exchange) /* the process does not end just now */
        wait_lightly(call);
    call_unref(call);
}

static void hold_or_confirm(struct call *call, struct plain_call *plain)
{
    if (!confirmation_takes(call, plain, hold))
        hold(call);
}

static void begin_wait(struct call *call, const struct plain_call *plain)
{
    const struct result_wait_options options = {
        .ended = on_ended, .timed_out = on_timed_out, .opens_late = !is_modern(call)};
    result_wait_begin_with(call, str_from(plain->id), &options);
}

/* The task is not to be joined after all. */
static void end_wait(struct call *call)
{
    struct plain_call *plain = plain_call_of(call);
    result_wait_end(call);
    plain->id[0] = '\0';
    plain->is_joined = false;
    task_unref(plain->task);
    plain->task = NULL;
}

/* ---- a task of its own ---- */

static void join(struct call *call, const char *id);

/* A task on its way to the store. It outlives the client's patience. */
struct commitment {
    struct call *call;
    struct task *task;
    char digest[DIGEST_HEX_BYTES], id[TASK_ID_BYTES];
    char key[]; /* of the client */
};

static void on_created(void *context, const struct store_reply *reply)
{
    struct commitment *commitment = context;
    struct call *call = commitment->call;
    if (reply->status == STORE_OK) {
        task_binding_announce(reply->task);
        if (call->exchange) {
            struct plain_call *plain = plain_call_of(call);
            plain_call_set_task(plain, reply->task);
            hold_or_confirm(call, plain);
        }
    } else {
        struct repeated_call join = {str_from(commitment->key), commitment->digest, commitment->id};
        task_create_log_refused(call, reply->status);
        task_room_give_back(call->worker->gateway, commitment->id);
        repeated_call_forget(call->worker->gateway, &join);
        execution_forget(call->worker, str_from(commitment->id));
        if (call->exchange && reply->is_unsure && commitment->key[0])
            task_create_answer_unsure(call, commitment->id,
                                      "the same call made again joins it if it was");
        else if (call->exchange)
            task_create_answer_refused(call, reply->status);
    }
    call_unref(call);
    free(commitment);
}

static void commit(void *context)
{
    struct commitment *commitment = context;
    struct call *call = commitment->call;
    const struct store_limits most = task_room_take(call, commitment->id);
    store_task_create(call->worker->gateway->store, commitment->task, &most,
                      (struct store_call){call->worker->loop, on_created, commitment});
}

static struct commitment *commitment_of(struct call *call, struct task *task)
{
    const struct plain_call *plain = plain_call_of(call);
    size_t key_bytes = strlen(plain->key) + 1;
    struct commitment *commitment = memory_alloc(sizeof *commitment + key_bytes);
    commitment->call = call_ref(call);
    commitment->task = task;
    memcpy(commitment->digest, plain->digest, sizeof commitment->digest);
    memcpy(commitment->id, task->id, sizeof commitment->id);
    memcpy(commitment->key, plain->key, key_bytes);
    return commitment;
}

/* The outcome of the call that was left has been told: this is a new call. */
static void forward_after_all(struct call *call)
{
    struct plain_call *plain = plain_call_of(call);
    call_step forward = plain->forward;
    call_part_remove(&plain->part);
    plain_call_kind.drop(call, plain);
    forward(call);
}

static void create(struct call *call)
{
    struct plain_call *plain = plain_call_of(call);
    if (plain->forward) {
        forward_after_all(call);
        return;
    }
    struct task *task = task_create_bound(call, &plain->decision, &plain->tool, plain->accelerated);
    char other[TASK_ID_BYTES];
    bool may_ask = confirmation_may_ask(call, task);
    task->on_result |= is_modern(call); /* one that left has cancelled, until it comes back */
    memcpy(plain->id, task->id, sizeof plain->id);
    struct commitment *commitment = commitment_of(call, task);
    struct repeated_call claim = plain_call_join(plain);
    if (task->on_result)
        execution_keep_headers(call, task);
    else
        execution_hold(call, task);
    begin_wait(call, plain);
    if (repeated_call_claim(plain->gateway, &claim, commit, commitment, other)) {
        if (!may_ask)
            call_forget_body(call); /* it is on its way to the store */
        return;
    }
    execution_forget(call->worker, str_from(task->id));
    task_unref(task);
    call_unref(call);
    free(commitment);
    end_wait(call);
    join(call, other);
}

/* ---- an earlier call's ---- */

/* A call joins a task that has not ended. Later the outcome goes once to a call whose earlier wait
 * ended without it, or too late for its client. */
static bool may_join(const struct call *call, const struct plain_call *plain,
                     const struct task *task)
{
    struct repeated_call join = plain_call_join(plain);
    bool was_shared;
    if (!task_state_is_terminal(task->state) || plain->has_state)
        return true;
    bool may = repeated_call_take(plain->gateway, &join, &was_shared);
    if (may && was_shared)
        repeated_news_send_end(call->worker, &join);
    return may;
}

/* Of the request as its client made it. */
static const char *asked_digest(const struct task *task)
{
    return *task->original_request_digest ? task->original_request_digest : task->request_digest;
}

static void join_task(struct call *call, struct task *task)
{
    struct plain_call *plain = plain_call_of(call);
    /* A modern call that comes back runs its task, or goes on with the state that it was given. */
    plain->is_late = is_modern(call) ? task_state_is_terminal(task->state) && !plain->has_state
                                     : task->state != TASK_PENDING;
    plain_call_set_task(plain, task);
    if (plain->has_state) /* the call that made it was the same but for the state */
        repeated_call_digest(task->definition_digest, asked_digest(task), plain->digest);
    if (task_state_is_terminal(task->state)) {
        on_ended(call, task);
        return;
    }
    hold_or_confirm(call, plain);
}

static void on_read(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    if (!call->exchange) {
        call_unref(call);
        return;
    }
    struct plain_call *plain = plain_call_of(call);
    struct repeated_call earlier = plain_call_join(plain);
    if (reply->status == STORE_FAILED || plain->attempts >= MOST_ATTEMPTS) {
        task_create_answer_refused(call, STORE_FAILED);
    } else if (reply->task && call_owns(call, reply->task) && may_join(call, plain, reply->task)) {
        join_task(call, reply->task);
    } else if (plain->has_state) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR(REQUEST_STATE_REFUSAL), NULL);
    } else {
        repeated_call_forget(plain->gateway, &earlier);
        end_wait(call);
        create(call);
    }
    call_unref(call);
}

/* The wait begins before the task is read, so that it does not miss an end in between. */
static void join(struct call *call, const char *id)
{
    struct plain_call *plain = plain_call_of(call);
    snprintf(plain->id, sizeof plain->id, "%s", id);
    plain->is_joined = true;
    plain->attempts++;
    begin_wait(call, plain);
    store_task_get(call->worker->gateway->store, str_from(plain->id), call_to_store(call, on_read));
}

/* ---- after a restart the store alone knows of an earlier one ---- */

static bool is_same(const struct call *call, const struct plain_call *plain,
                    const struct task *task)
{
    char digest[DIGEST_HEX_BYTES];
    repeated_call_digest(task->definition_digest, asked_digest(task), digest);
    return call_owns(call, task) && strcmp(digest, plain->digest) == 0;
}

static void on_found(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    if (!call->exchange) {
        call_unref(call);
        return;
    }
    struct plain_call *plain = plain_call_of(call);
    const struct task *found = NULL;
    char id[TASK_ID_BYTES];
    for (size_t i = 0; i < reply->task_count && !found; i++)
        found = is_same(call, plain, reply->tasks[i]) ? reply->tasks[i] : NULL;
    if (found) {
        struct repeated_call earlier = {str_from(plain->key), plain->digest, found->id};
        memcpy(id, found->id, sizeof id);
        if (repeated_call_claim(plain->gateway, &earlier, NULL, NULL, id))
            repeated_call_set_undelivered(plain->gateway, &earlier);
        join(call, id);
    } else {
        create(call);
    }
    call_unref(call);
}

static void look_in_store(struct call *call)
{
    const struct store_task_query query = {
        .owner = str_from(call->owner),
        .session = str_from(call->session),
        .source = str_from(call->source->id),
        .tool = call_tool(call),
        .states = 1U << TASK_PENDING | 1U << TASK_APPROVED | 1U << TASK_EXECUTING,
        .limit = MOST_CANDIDATES,
    };
    store_task_list(call->worker->gateway->store, &query, call_to_store(call, on_found));
}

/* Upstream knows this client. */
static void begin(struct call *call)
{
    struct plain_call *plain = plain_call_of(call);
    char id[TASK_ID_BYTES];
    bool is_undelivered;
    char key[CLIENT_KEY_BYTES];
    inbox_key_of_call(call, key);
    inbox_touch(plain->gateway, str_from(key));
    client_key_of_owner(call, key);
    plain->key = call_memory_copy(call, str_from(key));
    inbox_touch(plain->gateway, str_from(plain->key));
    if (plain->has_state)
        join(call, plain->state.id);
    else if (!plain->key[0])
        create(call);
    else if (repeated_call_find(plain->gateway, str_from(plain->key), plain->digest, id,
                                &is_undelivered))
        join(call, id);
    else
        look_in_store(call);
}

void plain_call_become_task(struct call *call, const struct policy_decision *decision,
                            const struct catalog_tool *tool, bool accelerated)
{
    struct plain_call *plain = call_memory_take(call, sizeof *plain);
    char request_digest[DIGEST_HEX_BYTES];
    plain->gateway = call->worker->gateway;
    plain->began_ms = loop_now_ms(call->worker->loop);
    plain->decision = *decision;
    plain->tool = *tool;
    plain->accelerated = accelerated;
    if (call->is_bridged)
        bridge_request_digest(call, request_digest);
    else
        request_parts_digest(&call->envelope, request_digest);
    repeated_call_digest(tool->digest, request_digest, plain->digest);
    call_part_add(call, &plain->part, &plain_call_kind);
    credential_check_then(call, begin);
}

void plain_call_go_on(struct call *call, const struct request_state *state)
{
    struct plain_call *plain = call_memory_take(call, sizeof *plain);
    plain->gateway = call->worker->gateway;
    plain->began_ms = loop_now_ms(call->worker->loop);
    plain->has_state = true;
    plain->state = *state;
    call_find_tool(call, call_tool(call), &plain->tool);
    call_part_add(call, &plain->part, &plain_call_kind);
    credential_check_then(call, begin);
}

/* ---- a forwarded call whose client left ---- */

/* Upstream knows this client. */
static void rejoin(struct call *call)
{
    struct plain_call *plain = plain_call_of(call);
    char id[TASK_ID_BYTES];
    bool is_undelivered;
    plain->is_late = true; /* the task may end before it is read */
    inbox_touch(plain->gateway, str_from(plain->key));
    if (repeated_call_find(plain->gateway, str_from(plain->key), plain->digest, id,
                           &is_undelivered))
        join(call, id);
    else
        forward_after_all(call);
}

static void verify_and_rejoin(struct call *call)
{
    if (!call->is_executed && client_knows_tasks(call))
        forward_after_all(call); /* another client of the owner has left the same call */
    else
        credential_check_then(call, rejoin);
}

bool plain_call_rejoins(struct call *call, const struct policy_decision *decision,
                        call_step forward)
{
    struct gateway *gateway = call->worker->gateway;
    char key[CLIENT_KEY_BYTES], digest[DIGEST_HEX_BYTES], id[TASK_ID_BYTES];
    bool is_undelivered;
    if (!repeated_calls_any_left(gateway) || call->envelope.task.raw.length > 0 ||
        call->envelope.kind != ENVELOPE_REQUEST)
        return false;
    call_identify(call);
    client_key_of_owner(call, key);
    if (!repeated_calls_has(gateway, str_from(key)))
        return false;
    repeated_call_digest_left(&call->envelope, digest);
    if (!repeated_call_find(gateway, str_from(key), digest, id, &is_undelivered))
        return false;
    struct plain_call *plain = call_memory_take(call, sizeof *plain);
    plain->gateway = gateway;
    plain->began_ms = loop_now_ms(call->worker->loop);
    plain->decision = *decision;
    plain->forward = forward;
    plain->key = call_memory_copy(call, str_from(key));
    memcpy(plain->digest, digest, sizeof plain->digest);
    call_find_tool(call, call_tool(call), &plain->tool);
    call_part_add(call, &plain->part, &plain_call_kind);
    call_with_facts(call, verify_and_rejoin);
    return true;
}
