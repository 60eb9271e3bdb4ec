/* Makes a task of a call. The task is durable before anybody knows its id (behaviour 1.2). */
#include <stdlib.h>
#include <string.h>

#include "call/call.h"
#include "call/client_profile.h"
#include "call/headers.h"
#include "decision/task_binding.h"
#include "execute.h"
#include "inbox/inbox.h"
#include "inbox/repeated_calls.h"
#include "server/credential_check.h"
#include "server/own.h"
#include "state/quota.h"
#include "task_create.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

#define LIMIT_RETRY_AFTER_S 60

/* ---- room for one more task ---- */

/* The share of an address has room for two principals at least. */
static int64_t most_of_address(const struct config_limits *limits)
{
    int64_t share = quota_share(limits, limits->pending_total);
    int64_t least = 2 * limits->pending_per_principal;
    return share > least ? share : least;
}

/* A token that the server accepts may be one of many that its holder has made up. */
static bool has_room(const struct call *call, const char *id)
{
    return call->identity || !call->exchange ||
           quota_take_for(call->worker->gateway->task_places, str_from(id),
                          http_peer(call->exchange),
                          most_of_address(&call->snapshot->config->limits));
}

struct store_limits task_room_take(const struct call *call, const char *id)
{
    const struct config_limits *limits = &call->snapshot->config->limits;
    return (struct store_limits){
        .pending_per_principal = limits->pending_per_principal,
        .pending_total = has_room(call, id) ? limits->pending_total : 0,
        .store_bytes = limits->store_bytes,
        .pending_bytes_per_principal = limits->pending_bytes_per_principal,
    };
}

void task_room_give_back(struct gateway *gateway, const char *id)
{
    quota_give_back_for(gateway->task_places, str_from(id));
}

void task_room_note_task(struct gateway *gateway, const struct task *task)
{
    bool runs_as_decided = task->state == TASK_EXECUTING && !task->accelerated && !task->promoted;
    if (runs_as_decided || task_state_is_terminal(task->state))
        quota_give_back_for(gateway->task_places, str_from(task->id));
}

/* ---- a task that is answered at once ---- */

/* The decision, kept until the server has accepted the client's credentials. */
struct creation {
    struct call_part part;
    struct policy_decision decision;
    struct catalog_tool tool;
    bool accelerated;
};

static void drop(struct call *call, void *object)
{
    free(object);
}

static const struct call_part_kind creation_kind = CALL_PART_KIND(struct creation, drop);

static void answer_limit(struct call *call, const char *which)
{
    struct jsonrpc_error_data data = {
        .tool = call_tool(call), .details = str_from(which), .retry_after = LIMIT_RETRY_AFTER_S};
    call_answer_error(call, JSONRPC_TOO_MANY_WAITING, STR_EMPTY, &data);
}

static void answer_created(struct call *call, struct task *task, const struct config_rule *rule)
{
    const struct dialect_view view = {.pending = client_pending_look(call),
                                      .now_ms = clock_now_ms()};
    OWNED_BUFFER(result);
    call->dialect->write_create_result(&result, task, &view,
                                       str_from(rule ? rule->immediate_response : NULL));
    call_answer_result(call, buffer_str(&result));
}

/* A create on its way to the store, which goes on when the client leaves. */
struct pending_create {
    struct call *call;
    const struct config_rule *rule; /* of the call's snapshot; NULL: the default action */
    struct task *task;              /* until the store has it; else NULL */
    char id[TASK_ID_BYTES];
    char key[CLIENT_KEY_BYTES]; /* of its owner; "" of one without a name */
    char digest[DIGEST_HEX_BYTES];
};

void task_create_answer_refused(struct call *call, enum store_status status)
{
    if (status == STORE_LIMIT_PRINCIPAL)
        answer_limit(call, "too many pending tasks of this client");
    else if (status == STORE_LIMIT_PRINCIPAL_BYTES)
        answer_limit(call, "the pending tasks of this client are too large");
    else if (status == STORE_LIMIT_TOTAL)
        answer_limit(call, "too many pending tasks");
    else if (status == STORE_LIMIT_BYTES)
        answer_limit(call, "the task store is full");
    else
        call_answer_no_store(call);
}

void task_create_answer_unsure(struct call *call, const char *id, const char *advice)
{
    char *details = memory_format("the task store does not answer; it is not known whether the "
                                  "task %s was stored: %s",
                                  id, advice);
    struct jsonrpc_error_data data = {.details = str_from(details), .retry_after = 5};
    call_answer_error(call, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
    free(details);
}

void task_create_log_refused(const struct call *call, enum store_status status)
{
    static const char *const limits[] = {
        [STORE_LIMIT_PRINCIPAL] = "limits.pending_per_principal",
        [STORE_LIMIT_PRINCIPAL_BYTES] = "limits.pending_bytes_per_principal",
        [STORE_LIMIT_TOTAL] = "limits.pending_total",
        [STORE_LIMIT_BYTES] = "limits.store_bytes",
    };
    const char *limit = status < sizeof limits / sizeof *limits ? limits[status] : NULL;
    const char *reason = limit ? limit : "the store has failed";
    log_warn("Task refused", LOG_TEXT("source", call->source->id), LOG_TEXT("reason", reason));
}

static void answer_failed(struct call *call, const struct pending_create *create,
                          const struct store_reply *reply)
{
    if (reply->is_unsure && create->key[0])
        task_create_answer_unsure(
            call, create->id, "ask for it by this id; the same call made again joins it if it was");
    else if (reply->is_unsure)
        task_create_answer_unsure(call, create->id, "ask for it by this id");
    else
        task_create_answer_refused(call, reply->status);
}

static void pending_create_destroy(struct pending_create *create)
{
    call_unref(create->call);
    task_unref(create->task);
    free(create);
}

static struct repeated_call unsure_join_of(const struct pending_create *create)
{
    return (struct repeated_call){str_from(create->key), create->digest, create->id};
}

/* The commit may have landed: the same call made again is not to be a second task. */
static void remember_unsure(const struct pending_create *create)
{
    ASSERT(create->id[0] && create->digest[0]);
    struct gateway *gateway = create->call->worker->gateway;
    const struct repeated_call join = unsure_join_of(create);
    char other[TASK_ID_BYTES];
    inbox_touch(gateway, join.key);
    repeated_call_claim(gateway, &join, NULL, NULL, other);
}

static void on_created(void *context, const struct store_reply *reply)
{
    struct pending_create *create = context;
    struct call *call = create->call;
    if (reply->status == STORE_OK) {
        struct task *task = reply->task;
        task_binding_announce(task);
        if (call->exchange)
            answer_created(call, task, create->rule);
    } else {
        task_create_log_refused(call, reply->status);
        task_room_give_back(call->worker->gateway, create->id);
        execution_forget(call->worker, str_from(create->id));
        if (reply->is_unsure)
            remember_unsure(create);
        if (call->exchange)
            answer_failed(call, create, reply);
    }
    pending_create_destroy(create);
}

static void store_create(struct pending_create *create)
{
    struct call *call = create->call;
    struct task *task = create->task;
    ASSERT(task && strcmp(task->id, create->id) == 0);
    create->task = NULL;
    execution_hold(call, task);
    struct store_limits pending = task_room_take(call, task->id);
    store_task_create(call->worker->gateway->store, task, &pending,
                      (struct store_call){call->worker->loop, on_created, create});
}

/* ---- the same call made again, when it is not known whether it was stored ---- */

/* Its outcome counts, too: the call must not run twice. */
static void on_unsure_read(void *context, const struct store_reply *reply)
{
    struct pending_create *create = context;
    ASSERT(create->task);
    struct call *call = create->call;
    if (reply->status == STORE_FAILED) {
        remember_unsure(create);
        if (call->exchange)
            call_answer_no_store(call);
    } else if (reply->task && call_owns(call, reply->task)) {
        execution_offer(call, reply->task, false);
        if (call->exchange)
            answer_created(call, reply->task, create->rule);
    } else {
        memcpy(create->id, create->task->id, sizeof create->id);
        store_create(create);
        return;
    }
    pending_create_destroy(create);
}

/* Once: a further call of the kind is a new one. */
static bool joins_unsure(struct pending_create *create)
{
    struct gateway *gateway = create->call->worker->gateway;
    const struct repeated_call join = unsure_join_of(create);
    bool is_undelivered;
    if (!repeated_call_find(gateway, join.key, join.digest, create->id, &is_undelivered))
        return false;
    repeated_call_forget(gateway, &join);
    store_task_get(gateway->store, str_from(create->id),
                   (struct store_call){create->call->worker->loop, on_unsure_read, create});
    return true;
}

static void keep_mirrored_headers(struct task *task, const struct call *call)
{
    OWNED_BUFFER(lines);
    if (call_gives_session(call))
        client_request_keep(call, task);
    if (call->dialect->has_sessions)
        return;
    mirrored_headers_write(call->exchange, &lines);
    task_set_text(&task->mirrored_headers, buffer_str(&lines));
}

struct task *task_create_bound(const struct call *call, const struct policy_decision *decision,
                               const struct catalog_tool *tool, bool accelerated)
{
    struct task *task = task_binding_create_of_call(call, decision, tool, accelerated);
    keep_mirrored_headers(task, call);
    return task;
}

/* The server has accepted the client's credentials, so the task is made. */
static void create(struct call *call)
{
    struct creation *creation = call_part_get(call, &creation_kind);
    struct task *task =
        task_create_bound(call, &creation->decision, &creation->tool, creation->accelerated);
    struct pending_create *pending_create = memory_alloc(sizeof *pending_create);
    char call_digest[DIGEST_HEX_BYTES];
    pending_create->call = call_ref(call);
    pending_create->rule = creation->decision.rule;
    pending_create->task = task;
    call_part_remove(&creation->part);
    free(creation);
    memcpy(pending_create->id, task->id, sizeof pending_create->id);
    client_key_of_owner(call, pending_create->key);
    /* Apart from plain calls, which join their tasks in any case. */
    repeated_call_digest(task->definition_digest, task->request_digest, call_digest);
    repeated_call_digest("unsure", call_digest, pending_create->digest);
    if (!joins_unsure(pending_create))
        store_create(pending_create);
}

void task_create_from_call(struct call *call, const struct policy_decision *decision,
                           const struct catalog_tool *tool, bool accelerated)
{
    struct creation *creation = memory_alloc(sizeof *creation);
    creation->decision = *decision;
    creation->tool = *tool;
    creation->accelerated = accelerated;
    call_part_add(call, &creation->part, &creation_kind);
    credential_check_then(call, create);
}
