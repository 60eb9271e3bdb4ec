/* The token of an approved call for a source that exchanges tokens. The client's is held, and
 * exchanged when the call begins: the other one may have ended while a human decided. */
#include <stdlib.h>
#include <string.h>

#include "execution_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/identity/identity.h"

#define NOT_EXCHANGED "Approved; the client's token cannot be exchanged"

void execution_token_finish(struct execution *execution)
{
    exchanger_wait_cancel(execution->trade);
    execution->trade = NULL;
    if (execution->authorization)
        explicit_bzero(execution->authorization, strlen(execution->authorization));
    free(execution->authorization);
    execution->authorization = NULL;
    identity_unref(execution->identity);
    execution->identity = NULL;
}

void execution_token_take(struct execution *execution, const struct call *call)
{
    struct str value = headers_known(&execution->base.headers, HTTP_NAME_AUTHORIZATION);
    execution_token_finish(execution);
    if (call->identity)
        execution->identity = identity_ref(call->identity);
    if (!token_exchange_is_due(call->source) || !call->identity || value.length == 0)
        return;
    execution->authorization = memory_copy_str(value);
    execution->authorization_until_ms = call->identity->until_ms;
    headers_remove(&execution->base.headers, HTTP_NAME_AUTHORIZATION);
}

static struct token_request request_of(const struct execution *execution)
{
    return (struct token_request){
        .worker = execution->base.worker,
        .snapshot = execution->base.snapshot,
        .source = execution->base.source,
        .authorization = str_from(execution->authorization),
        .until_ms = execution->authorization_until_ms,
    };
}

/* The gateway's own session has the source's static credentials. */
static bool wants_token(const struct execution *execution)
{
    return execution->base.source && !execution->own_session &&
           token_exchange_is_due(execution->base.source);
}

bool execution_token_find(struct execution *execution)
{
    if (!wants_token(execution))
        return true;
    struct token_request request = request_of(execution);
    char *token = execution->authorization ? token_exchange_find(&request) : NULL;
    if (!token)
        return false;
    char *value = memory_format("Bearer %s", token);
    free(token);
    headers_set(&execution->base.headers, STR("authorization"), str_from(value));
    free(value);
    return true;
}

/* The owner and operators read why the approved task does not run. */
static void say_not_exchanged(struct execution *execution)
{
    struct task *task = execution->base.task;
    log_warn("An approved call waits: the client's token cannot be exchanged",
             LOG_TEXT("task", execution->base.id));
    if (strcmp(task->status_message, NOT_EXCHANGED) != 0)
        store_task_set_message(execution->base.worker->gateway->store, str_from(task->id),
                               STR(NOT_EXCHANGED),
                               (struct store_call){execution->base.worker->loop, NULL, NULL});
}

static void on_token(void *context, enum exchanger_result result, struct str token)
{
    struct execution *execution = execution_from(context);
    execution->trade = NULL;
    if (result == EXCHANGER_DONE)
        execution->token_ready(execution);
    else if (result == EXCHANGER_UNAVAILABLE)
        execution->token_later(execution);
    else
        say_not_exchanged(execution);
}

void execution_token_obtain(struct execution *execution, void (*ready)(struct execution *execution),
                            void (*later)(struct execution *execution))
{
    struct token_request request = request_of(execution);
    if (execution->trade)
        return;
    if (!execution->authorization || clock_now_ms() >= execution->authorization_until_ms) {
        say_not_exchanged(execution);
        return;
    }
    execution->token_ready = ready;
    execution->token_later = later;
    execution->trade = token_exchange_start(&request, on_token, execution);
    if (!execution->trade)
        later(execution);
}
