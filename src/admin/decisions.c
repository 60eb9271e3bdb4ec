/*
 * Decisions: approve, reject, cancel. Each is one compare-and-set in the store; the answer
 * comes after its commit, and the store's observers do the rest. Nobody approves a call of their
 * own.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#include "body.h"
#include "pending_reply.h"
#include "reply.h"

#define REASON_MAX_BYTES 2000

struct decision {
    enum task_state to;
    const char *log_line;
};
static const struct decision approve = {TASK_APPROVED, "Task approved"};
static const struct decision reject = {TASK_REJECTED, "Task rejected"};
static const struct decision cancel = {TASK_CANCELLED, "Task cancelled"};

/* `reason`: owned by the caller, NULL without one. */
static bool read_reason(struct str value, char **reason, struct error *error)
{
    size_t length;
    if (json_type(value) == JSON_NULL)
        return true;
    *reason = json_string_text(value, &length);
    if (!*reason)
        return error_set(error, "reason must be a string");
    if (length > REASON_MAX_BYTES)
        return error_set(error, "reason is longer than %d bytes", REASON_MAX_BYTES);
    if (str_from(*reason).length != length)
        return error_set(error, "reason holds a NUL character");
    return true;
}

/* An unknown member is refused rather than skipped: under a wrong name the reason would be
 * missing from the audit trail for ever. */
static bool read_body(struct str body, char **reason, struct error *error)
{
    struct error cause;
    size_t position = 0;
    struct str key, value;
    *reason = NULL;
    if (str_trim(body).length == 0)
        return true;
    if (!json_check(body, &cause))
        return error_set(error, "the body is not JSON: %s", cause.message);
    if (json_type(body) != JSON_OBJECT)
        return error_set(error, "the body must be an object, such as {\"reason\": \"…\"}");
    while (json_next_member(body, &position, &key, &value)) {
        if (!body_key_is(key, "reason"))
            return error_set(error, "the body has an unknown member; it may have only \"reason\"");
        if (!read_reason(value, reason, error))
            return false;
    }
    return true;
}

static void answer_decision(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    struct http_exchange *exchange = pending_reply_take(pending);
    if (reply->status == STORE_OK)
        log_info(pending->decision->log_line, LOG_TEXT("task", reply->task->id),
                 LOG_TEXT("by", pending->who->person), LOG_TEXT("source", reply->task->source),
                 LOG_TEXT("tool", reply->task->tool), LOG_TEXT("reason", pending->reason));
    if (exchange)
        pending_reply_with_task(exchange, reply, pending->snapshot->config);
    pending_reply_destroy(pending);
}

/* Takes the request's decision to the store. `workflow` is the task's, for an approval. */
static void commit(struct pending_reply *pending, struct str id, struct str workflow)
{
    const struct decision *decision = pending->decision;
    const struct config *config = pending->snapshot->config;
    struct task_change change = {
        .to = decision->to, .by = pending->who->person, .reason = pending->reason};
    if (decision->to == TASK_APPROVED)
        change.execute_by_ms = clock_now_ms() + config_approval_valid_ms(config, workflow);
    struct store_actor actor = {"operator", pending->who->person};
    store_task_change(pending->admin->store, id, &change, &actor,
                      (struct store_call){pending->admin->loop, answer_decision, pending});
}

static void refuse_own(struct http_exchange *exchange, const struct operator_identity *who)
{
    bool is_known = strcmp(who->person, who->name) != 0;
    char *message =
        memory_format("the %s that made this call may not approve it; somebody else must",
                      is_known ? "person" : "token");
    reply_error(exchange, REPLY_FORBIDDEN, message, NULL);
    free(message);
}

/* A task's owner never changes, so the owner read here is still right at the decision. */
static void check_owner(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    const struct task *task = reply->task;
    bool is_own = task && operator_is_asker(pending->who, task);
    if (task && reply->status == STORE_OK && pending_reply_may_see(pending, reply) &&
        !(is_own && pending->decision->to == TASK_APPROVED)) {
        commit(pending, str_from(task->id), str_from(task->workflow));
        return;
    }
    struct http_exchange *exchange = pending_reply_take(pending);
    if (exchange && reply->status == STORE_OK && is_own)
        refuse_own(exchange, pending->who);
    else if (exchange && operator_sees_own_only(pending->who) && reply->status != STORE_FAILED)
        /* The same answer for a missing task, so that it does not reveal which tasks exist. */
        reply_error(exchange, REPLY_FORBIDDEN, "this token may only cancel its own calls", NULL);
    else if (exchange)
        pending_reply_with_task(exchange, reply, pending->snapshot->config);
    pending_reply_destroy(pending);
}

static void decide(const struct request *request, const struct decision *decision)
{
    struct error error = {""};
    char *reason = NULL;
    if (!body_is_json(request, true))
        return;
    if (!read_body(http_body(request->exchange), &reason, &error)) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
        free(reason);
        return;
    }
    struct pending_reply *pending = pending_reply_create(request);
    pending->decision = decision;
    pending->reason = reason;
    if (decision->to == TASK_APPROVED || operator_sees_own_only(pending->who))
        store_task_get(request->admin->store, request->id,
                       (struct store_call){request->admin->loop, check_owner, pending});
    else
        commit(pending, request->id, STR_EMPTY);
}

void decisions_approve(const struct request *request)
{
    decide(request, &approve);
}

void decisions_reject(const struct request *request)
{
    decide(request, &reject);
}

void decisions_cancel(const struct request *request)
{
    decide(request, &cancel);
}
