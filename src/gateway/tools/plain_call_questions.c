/* Questions of the server while it runs a held call. Its client has no task to look at: the held
 * call is answered with the requests, and repeated with the answers (MCP 2026-07-28,
 * patterns/mrtr). */
#include <string.h>

#include "plain_call.h"
#include "plain_call_internal.h"
#include "run/task_inputs.h"
#include "run/task_rounds.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

void plain_call_take_answers(struct call *call, const struct plain_call *plain)
{
    struct str answers = call->envelope.input_responses;
    if (plain->has_state && plain->state.kind == REQUEST_STATE_EXECUTE &&
        json_type(answers) == JSON_OBJECT)
        task_inputs_answer(call->worker, plain->task, answers);
}

bool plain_call_asks(struct call *call, const struct plain_call *plain)
{
    struct task_rounds *rounds = call->worker->gateway->task_rounds;
    struct buffer requests;
    int64_t changed_ms;
    buffer_init(&requests);
    bool asks = !call->dialect->has_sessions &&
                task_rounds_show(rounds, str_from(plain->id), &requests, &changed_ms) &&
                dialect_modern_declares_requests(call->envelope.reserved.client_capabilities,
                                                 buffer_str(&requests));
    if (asks)
        plain_call_answer_asking(call, plain, buffer_str(&requests), REQUEST_STATE_EXECUTE);
    buffer_finish(&requests);
    return asks;
}

void plain_call_note_requests(struct gateway_worker *worker, const struct task *task)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        const struct plain_call *plain = call_part_find(call, &plain_call_kind);
        if (plain && plain->is_waiting && strcmp(plain->id, task->id) == 0)
            plain_call_asks(call, plain);
    }
}
