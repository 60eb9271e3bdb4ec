/* Cancelling a task: one compare-and-set in the store, by an approver or by the caller. */
#include "internal.h"

#include "taskgate/core/log.h"

#include "body.h"
#include "pending_reply.h"
#include "reply.h"

static void cancel_answer(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    struct http_exchange *exchange = pending_reply_take(pending);
    if (reply->status == STORE_OK)
        log_info("Task cancelled", LOG_TEXT("task", reply->task->id),
                 LOG_TEXT("by", pending->who->person.name), LOG_TEXT("source", reply->task->source),
                 LOG_TEXT("tool", reply->task->tool), LOG_TEXT("reason", pending->reason));
    if (exchange)
        pending_reply_with_task(exchange, reply, pending);
    pending_reply_destroy(pending);
}

static void cancel_commit(struct pending_reply *pending, struct str id)
{
    const struct task_change change = {
        .to = TASK_CANCELLED, .by = pending->who->person.name, .reason = pending->reason};
    const struct store_actor actor = {"operator", pending->who->person.name};
    store_task_change(pending->admin->store, id, &change, &actor,
                      (struct store_call){pending->admin->loop, cancel_answer, pending});
}

/* A task's owner never changes, so the owner read here is still right at the decision. */
static void check_owner(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    if (reply->status == STORE_OK && pending_reply_may_see(pending, reply)) {
        cancel_commit(pending, str_from(reply->task->id));
        return;
    }
    struct http_exchange *exchange = pending_reply_take(pending);
    if (exchange && reply->status != STORE_FAILED)
        /* The same answer for a missing task, so that it does not reveal which tasks exist. */
        reply_error(exchange, REPLY_FORBIDDEN, "this token may only cancel its own calls", NULL);
    else if (exchange)
        pending_reply_with_task(exchange, reply, pending);
    pending_reply_destroy(pending);
}

void cancel_task(const struct request *request)
{
    struct decision_body body;
    if (!decision_body_read(request, false, &body))
        return;
    struct pending_reply *pending = pending_reply_create(request);
    pending->reason = body.reason;
    if (pending->right < RIGHT_ALL)
        store_task_get(request->admin->store, request->id,
                       (struct store_call){request->admin->loop, check_owner, pending});
    else
        cancel_commit(pending, request->id);
}
