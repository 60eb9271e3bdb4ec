/* The client's answers inside an approved call on their way to the server: past the gate that
 * records them, and perhaps asks people. */
#include <stdlib.h>
#include <string.h>

#include "conversation/answer_gate.h"
#include "conversation/rounds.h"
#include "execution_internal.h"
#include "invocation_rounds.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

struct passing {
    struct execution *execution; /* a reference */
    struct rounds_taken taken;
    struct buffer request_id; /* of the call as it was sent when the server asked */
};

static struct question_table *rounds_of(const struct execution *execution)
{
    return execution->base.worker->gateway->questions;
}

static void passing_destroy(void *context)
{
    struct passing *passing = context;
    invocation_unref(&passing->execution->base);
    rounds_taken_finish(&passing->taken);
    buffer_finish(&passing->request_id);
    free(passing);
}

/* ---- to the server ---- */

static void send(struct execution *execution, struct str answers)
{
    if (execution->is_bridged_down)
        execution_asks_answer(execution, answers);
    else if (invocation_where(&execution->base) == INVOCATION_POLLING)
        execution_modern_update(execution, answers);
    else
        invocation_rounds_send(&execution->base, answers);
}

/* Somebody who says no to a form declines it. There is nothing like that for a model or for
 * folders. false: something else was asked. */
static bool write_declined(struct buffer *out, struct str questions)
{
    struct str key, question;
    for (size_t position = 0; json_next_member(questions, &position, &key, &question);) {
        if (!json_string_equals(json_member(question, "method"), STR("elicitation/create")))
            return false;
        buffer_append_format(out, "%c\"%.*s\":{\"action\":\"decline\"}",
                             out->length > 0 ? ',' : '{', STR_ARGS(key));
    }
    buffer_append_char(out, '}');
    return true;
}

static void refuse(struct execution *execution, const struct passing *passing)
{
    struct buffer declined = {0};
    if (execution->is_bridged_down) {
        execution_asks_refuse(execution, buffer_str(&passing->taken.answers));
    } else if (write_declined(&declined, buffer_str(&passing->taken.questions))) {
        send(execution, buffer_str(&declined));
    } else {
        execution_modern_cancel(execution);
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR,
                       "the client's answer to what upstream asked was refused");
    }
    buffer_finish(&declined);
}

/* The call may have ended meanwhile, or have been sent anew. */
static bool is_same_call(const struct passing *passing)
{
    const struct invocation *base = &passing->execution->base;
    enum invocation_state where = invocation_where(base);
    return (where == INVOCATION_RUNNING || where == INVOCATION_POLLING) &&
           str_equal(buffer_str(&passing->request_id), buffer_str(&base->request_id));
}

static void on_verdict(void *context, enum answer_verdict verdict)
{
    struct passing *passing = context;
    struct execution *execution = passing->execution;
    if (is_same_call(passing) && verdict == ANSWER_PASSES)
        send(execution, buffer_str(&passing->taken.answers));
    else if (is_same_call(passing) && verdict == ANSWER_REFUSED)
        refuse(execution, passing);
    passing_destroy(passing);
}

/* ---- from the client ---- */

static void pass(struct execution *execution, struct passing *passing)
{
    const struct answer_gate_answers answers = {
        .task = execution->base.task,
        .questions = buffer_str(&passing->taken.questions),
        .answers = buffer_str(&passing->taken.answers),
    };
    buffer_append(&passing->request_id, buffer_str(&execution->base.request_id));
    if (execution->is_bridged_down)
        execution_asks_hold(execution, answers.answers);
    answer_gate_pass(execution->base.worker, &answers, on_verdict, passing_destroy, passing);
}

void execution_answered_by_client(struct execution *execution)
{
    struct invocation *base = &execution->base;
    struct str id = str_from(base->id);
    bool takes_some = execution->is_bridged_down || invocation_where(base) == INVOCATION_POLLING;
    struct passing *passing = memory_alloc(sizeof *passing);
    *passing = (struct passing){.execution = execution};
    invocation_ref(base);
    bool has_taken = takes_some ? rounds_take_some(rounds_of(execution), id, &passing->taken)
                                : invocation_rounds_take(base, &passing->taken);
    if (has_taken && answer_gate_applies(base->task)) {
        pass(execution, passing);
        return;
    }
    if (has_taken)
        send(execution, buffer_str(&passing->taken.answers));
    passing_destroy(passing);
}
