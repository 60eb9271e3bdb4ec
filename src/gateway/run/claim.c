/* An execution whose claim is queued behind the vote that may approve its task. */
#include "taskgate/gateway/claim.h"

#include <stdlib.h>
#include <string.h>

#include "call/broadcast.h"
#include "execution_internal.h"
#include "result_wait.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

#define LOOK_AGAIN_MS 1000

static struct execution *find(const struct gateway_worker *worker, struct str id)
{
    return map_get(worker->executions, id);
}

/* Whether this worker holds what the call needs, and nothing of it is under way. */
static bool is_possible(const struct gateway_worker *worker, struct str id)
{
    const struct execution *execution = find(worker, id);
    return execution && invocation_where(&execution->base) == INVOCATION_OFFERED &&
           !atomic_load(&worker->gateway->shutting_down);
}

bool claim_may_be_possible(const struct gateway_worker *worker, struct str id)
{
    return worker->gateway->worker_count > 1 || is_possible(worker, id);
}

/* ---- the store's answer ---- */

static void look_again(void *context);

static void look_again_soon(struct execution *execution)
{
    loop_timer_start_with(&execution->base.timer, look_again, execution, LOOK_AGAIN_MS);
}

static void on_look(void *context, const struct store_reply *reply)
{
    struct execution *execution = execution_from(context);
    struct invocation *base = &execution->base;
    bool is_waiting = invocation_where(base) == INVOCATION_OFFERED;
    if (is_waiting && reply->status == STORE_OK)
        execution_note_task(base->worker, reply->task);
    else if (is_waiting && reply->status == STORE_FAILED)
        look_again_soon(execution);
    else if (is_waiting)
        execution_end(execution);
    invocation_unref(base); /* the message's own reference */
}

/* The vote may be on disk, and the claim is not. */
static void look_again(void *context)
{
    struct execution *execution = execution_from(context);
    struct invocation *base = &execution->base;
    invocation_ref(base);
    store_task_get(base->worker->gateway->store, str_from(base->id),
                   (struct store_call){base->worker->loop, on_look, execution});
}

static void on_claim(void *context, const struct store_reply *reply)
{
    struct execution *execution = execution_from(context);
    struct invocation *base = &execution->base;
    bool is_here = invocation_where(base) == INVOCATION_CLAIMING; /* else it comes too late */
    if (is_here && reply->status == STORE_OK) {
        execution_run(execution, reply->task);
    } else if (is_here) {
        execution_wait(execution);
        if (reply->status == STORE_CONFLICT) /* not approved, or not as it was */
            execution_note_task(base->worker, reply->task);
        else if (reply->status == STORE_FAILED)
            look_again_soon(execution);
        else
            execution_end(execution);
    }
    invocation_unref(base); /* the message's own reference */
}

/* ---- the claim ---- */

/* "Which worker holds the call, and may it run as soon as it is approved?" */
struct claim_inquiry {
    struct inquiry base; /* first */
    uint32_t magic;      /* CLAIM_INQUIRY_MAGIC */
    struct task *task;
    claim_callback done;
    void *context;
    /* The answer: copies, because the execution belongs to another thread. */
    bool is_claimed;
    char credentials[DIGEST_HEX_BYTES], request_digest[DIGEST_HEX_BYTES];
    struct store_call call;
};
#define CLAIM_INQUIRY_MAGIC 0x47576172

static struct claim_inquiry *claim_inquiry_from(void *context)
{
    return MAGIC_CAST(struct claim_inquiry, CLAIM_INQUIRY_MAGIC, context);
}

static bool knows(struct gateway_worker *worker, struct inquiry *base)
{
    const struct task *task = claim_inquiry_from(base)->task;
    return task->state == TASK_PENDING && is_possible(worker, str_from(task->id)) &&
           (!task->on_result || result_wait_exists(worker, task));
}

static bool may_run(struct execution *execution)
{
    enum jsonrpc_error error;
    if (!execution_complete_headers(execution, execution->base.task) ||
        !execution_take_rules(execution))
        return false;
    const struct drift_check drift = execution_drift(execution);
    return !drift_check_must_look(&drift) && drift_check_can_compare(&drift) &&
           drift_check_passes(&drift, &error);
}

static void answer(struct gateway_worker *worker, struct inquiry *asked)
{
    struct claim_inquiry *inquiry = claim_inquiry_from(asked);
    struct execution *execution = find(worker, str_from(inquiry->task->id));
    struct invocation *base = &execution->base;
    invocation_set_task(base, inquiry->task);
    if (!may_run(execution) || !invocation_move(base, INVOCATION_CLAIMING))
        return;
    loop_timer_stop(&base->timer);
    atomic_fetch_add(&worker->gateway->in_flight, 1);
    invocation_ref(base);
    inquiry->is_claimed = true;
    memcpy(inquiry->credentials, execution->credentials_digest, sizeof inquiry->credentials);
    memcpy(inquiry->request_digest, base->task->request_digest, sizeof inquiry->request_digest);
    inquiry->call = (struct store_call){worker->loop, on_claim, execution};
}

static void done(struct inquiry *asked, enum inquiry_end end)
{
    const struct claim_inquiry *inquiry = claim_inquiry_from(asked);
    const struct store_claim claim = {
        .change = {.to = TASK_EXECUTING,
                   .credentials = inquiry->credentials,
                   .request_digest = inquiry->request_digest},
        .actor = {"gateway", "taskgate"},
        .call = inquiry->call,
    };
    bool is_claimed = end == INQUIRY_ANSWERED && inquiry->is_claimed;
    inquiry->done(inquiry->context, inquiry->task, is_claimed ? &claim : NULL);
}

static void destroy(struct inquiry *asked)
{
    struct claim_inquiry *inquiry = claim_inquiry_from(asked);
    task_unref(inquiry->task);
    MAGIC_CLEAR(inquiry);
    free(inquiry);
}

static const struct inquiry_kind claim_inquiry_kind = {knows, answer, done, destroy};

void claim_ask(struct gateway_worker *worker, struct task *task, claim_callback callback,
               void *context)
{
    struct claim_inquiry *inquiry = memory_alloc(sizeof *inquiry);
    MAGIC_SET(inquiry, CLAIM_INQUIRY_MAGIC);
    inquiry->task = task_ref(task);
    inquiry->done = callback;
    inquiry->context = context;
    inquiry_begin(&inquiry->base, &claim_inquiry_kind, worker);
}
