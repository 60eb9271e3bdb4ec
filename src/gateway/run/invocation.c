/* The shared part of all calls that the gateway runs: their messages to the server, and how an
 * outcome is stored. */
#include "invocation.h"

#include <stdlib.h>
#include <string.h>

#include "state/tool_catalog.h"
#include "taskgate/core/log.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_bridge.h"

#define STORE_RETRY_MS 1000

static const struct store_actor gateway_actor = {"gateway", "taskgate"};

void invocation_init(struct invocation *invocation, const struct invocation_class *class,
                     enum invocation_state state, struct gateway_worker *worker)
{
    MAGIC_SET(invocation, INVOCATION_MAGIC);
    invocation->class = class;
    invocation->state = state;
    invocation->worker = worker;
    invocation->references = 1;
    loop_timer_init(&invocation->timer, worker->loop, NULL, invocation);
    headers_init(&invocation->headers, true);
}

void invocation_ref(struct invocation *invocation)
{
    invocation->references++;
}

void invocation_unref(struct invocation *invocation)
{
    if (--invocation->references > 0)
        return;
    headers_finish(&invocation->headers);
    buffer_finish(&invocation->request_id);
    buffer_finish(&invocation->rounds.state);
    outcome_finish(&invocation->outcome);
    snapshot_unref(invocation->snapshot);
    task_unref(invocation->task);
    free(invocation->server_task);
    MAGIC_CLEAR(invocation);
    invocation->class->destroy(invocation);
}

struct invocation *invocation_of_task(const struct gateway_worker *worker, struct str id)
{
    void *found = map_get(worker->executions, id);
    found = found ? found : map_get(worker->detached_tasks, id);
    return found ? invocation_from(found) : NULL; /* the first member of either */
}

void invocation_set_task(struct invocation *invocation, struct task *task)
{
    if (task)
        task_ref(task);
    task_unref(invocation->task);
    invocation->task = task;
    if (task)
        memcpy(invocation->id, task->id, sizeof invocation->id);
    else
        invocation->id[0] = '\0';
}

struct sending invocation_sending(const struct invocation *invocation)
{
    return (struct sending){
        .source = invocation->source,
        .snapshot = invocation->snapshot,
        .headers = &invocation->headers,
    };
}

struct server_message_origin invocation_origin(struct invocation *invocation)
{
    return (struct server_message_origin){
        .worker = invocation->worker,
        .snapshot = invocation->snapshot,
        .source = invocation->source,
        .headers = &invocation->headers,
        .session = invocation->session,
        .audience = &invocation->audience,
        .budget = &invocation->budget,
    };
}

/* ---- the end ---- */

/* The client of a bridged task is a legacy one: it has a session, and its call was made a modern
 * one. */
void invocation_take_result(struct invocation *invocation, struct str result)
{
    const struct task *task = invocation->task;
    struct catalog_tool tool;
    struct buffer legacy;
    if (!*task->mirrored_headers || !*task->session) {
        outcome_of_result(&invocation->outcome, result);
        return;
    }
    buffer_init(&legacy);
    catalog_find_tool(invocation->worker->gateway->catalog, str_from(task->source),
                      str_from(task->owner), str_from(task->tool), &tool);
    legacy_bridge_write_call_result(&legacy, result, tool.wraps_output);
    outcome_of_result(&invocation->outcome, buffer_str(&legacy));
    buffer_finish(&legacy);
}

void invocation_take_reply(struct invocation *invocation, const struct exchange_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
    if (result.length > 0)
        invocation_take_result(invocation, result);
    else if (error.length > 0)
        outcome_of_error(&invocation->outcome, error);
    else
        outcome_of_no_answer(&invocation->outcome, str_from(invocation->task->tool), reply);
}

static void store_outcome(struct invocation *invocation);

static void on_retry(void *context)
{
    store_outcome(invocation_from(context));
}

static void on_stored(void *context, const struct store_reply *reply)
{
    struct invocation *invocation = invocation_from(context);
    if (reply->status == STORE_FAILED && invocation_where(invocation) != INVOCATION_ENDED) {
        /* The answer exists only in memory. It is kept until the disk takes it. */
        log_error("The outcome of a call could not be stored yet",
                  LOG_TEXT("task", invocation->id));
        loop_timer_start_with(&invocation->timer, on_retry, invocation, STORE_RETRY_MS);
    } else {
        invocation->class->end(invocation);
    }
    invocation_unref(invocation); /* the message's own reference */
}

static void store_outcome(struct invocation *invocation)
{
    struct gateway_worker *worker = invocation->worker;
    invocation->outcome.change.claim = task_claim(invocation->task);
    invocation_ref(invocation);
    store_task_change(worker->gateway->store, str_from(invocation->id),
                      outcome_change(&invocation->outcome), &gateway_actor,
                      (struct store_call){worker->loop, on_stored, invocation});
}

void invocation_store(struct invocation *invocation)
{
    if (invocation->task && *invocation->task->original_digest)
        outcome_mark_edited(&invocation->outcome);
    loop_timer_stop(&invocation->timer);
    store_outcome(invocation);
}

void invocation_write_cancelled(const struct invocation *invocation, const char *reason,
                                struct buffer *body)
{
    jsonrpc_write_cancelled(body, buffer_str(&invocation->request_id), reason);
}
