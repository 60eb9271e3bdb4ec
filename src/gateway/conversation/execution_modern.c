/* Approved calls at a modern server: what it says of them, in rounds of questions or in a task of
 * its own. The gateway is the client of both (SEP-2663) for the client that declared them. */
#include "answer_gate.h"
#include "execute_internal.h"
#include "invocation_rounds.h"
#include "rounds.h"
#include "task_inputs.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

static struct str request_of_execution(const struct server_link *link)
{
    const struct task *task = invocation_from(link->context)->task;
    return str_slice(task->request, task->request_length);
}

static bool has_legacy_client(const struct invocation *invocation)
{
    const struct task *task = invocation->task;
    return *task->mirrored_headers && *task->session; /* modern clients have no sessions */
}

static void write_execution(struct server_link *link, struct headers *headers, struct buffer *body,
                            struct buffer *id)
{
    struct invocation *base = invocation_from(link->context);
    if (link->has_asked)
        execution_take_id(execution_from(link->context));
    execution_write(execution_from(link->context), body);
    buffer_append(id, buffer_str(&base->request_id));
    headers_add_all(headers, &base->headers);
}

static struct sending sending_of_execution(struct server_link *link, struct task_trace *trace)
{
    return execution_sending(execution_from(link->context), trace);
}

/* ---- what the server says ---- */

/* They need one round only: their keys are unique in the life of their task. */
static void take_questions_of_task(struct invocation *base, struct str requests)
{
    struct question_table *table = base->worker->gateway->questions;
    struct str id = str_from(base->id);
    bool has_changed = requests.length > 0 ? rounds_put(table, id, 1, requests, clock_now_ms())
                                           : rounds_forget(table, id);
    if (has_changed)
        invocation_rounds_tell(base);
    if (has_changed && has_legacy_client(base))
        task_inputs_ask(base);
}

static void take_question(struct invocation *base, struct str requests)
{
    if (conversation_where(base) != CONVERSATION_FOLLOWING)
        invocation_rounds_ask(base, requests, has_legacy_client(base));
    else if (answer_gate_denies(base->task))
        invocation_rounds_lost(base, LOST_TASK_ROUND);
    else
        take_questions_of_task(base, requests);
}

static void follow_task(struct invocation *base, struct str id)
{
    base->server_task = memory_copy_str(id);
    if (!conversation_move(base, CONVERSATION_FOLLOWING)) {
        execution_end(execution_from(base));
        return;
    }
    store_task_set_upstream(base->worker->gateway->store, str_from(base->id), id,
                            (struct store_call){base->worker->loop, NULL, NULL});
}

static void take_end_of_task(struct invocation *base, const struct event *event)
{
    if (event->kind == EVENT_RESULT)
        invocation_take_result(base, event->text);
    else if (event->kind == EVENT_ERROR)
        outcome_of_error(&base->outcome, event->text);
    else
        base->outcome.change =
            (struct task_change){.to = TASK_CANCELLED, .by = "upstream", .reason = "by upstream"};
    execution_store_outcome(execution_from(base));
}

static void take_event_of_execution(void *context, const struct event *event)
{
    struct invocation *base = invocation_from(context);
    switch (event->kind) {
    case EVENT_ROUND:
        take_question(base, event->text);
        break;
    case EVENT_WITHDRAWN:
        take_questions_of_task(base, STR_EMPTY);
        break;
    case EVENT_AGAIN:
        invocation_rounds_send(base, STR_EMPTY);
        break;
    case EVENT_FOLLOWED:
        follow_task(base, event->text);
        break;
    case EVENT_RESULT:
    case EVENT_ERROR:
    case EVENT_CANCELLED:
        if (event->reply)
            execution_answered(execution_from(base), event->reply);
        else
            take_end_of_task(base, event);
        break;
    case EVENT_LOST:
        if (event->lost == LOST_REPLY)
            execution_answered(execution_from(base), event->reply);
        else
            invocation_rounds_lost(base, event->lost);
        break;
    default: /* tasks have no progress and no log */
        break;
    }
}

const struct link_maker execution_maker = {.write = write_execution,
                                           .sending = sending_of_execution,
                                           .request = request_of_execution,
                                           .take = take_event_of_execution};
