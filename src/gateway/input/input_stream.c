/* Open inputs on a client's stream: the stream claims them, and releases them at its end. */
#include <stdlib.h>
#include <string.h>

#include "call/client_profile.h"
#include "input_internal.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/sse.h"

struct claiming {
    const struct call *call;
    uint64_t *claimant;
    struct buffer *events;
    bool any_task; /* a client with tasks gets the inputs of its tasks in tasks/result */
};

static bool can_be_sent(const struct call *call, enum input_kind kind)
{
    if (kind == INPUT_ROOTS)
        return input_declares_roots(call);
    return kind == INPUT_ELICITATION ? call->facts.client.declares_elicitation
                                     : call->facts.client.declares_sampling;
}

/* The server's own id names the request only in the session that it was given in. The response is
 * looked up there, which may be another replica than the one that runs the task. */
static bool is_in_its_session(const struct call *call, const struct input_request *input)
{
    const struct kept_input *kept = input->owner;
    char key[INPUT_KEY_BYTES];
    client_key_of_call(call, key);
    bool may_be_elsewhere = input->task[0] && kept->worker->gateway->replicas;
    return !kept->take_answer && !may_be_elsewhere && call->session[0] &&
           strcmp(call->session, input->session) == 0 && strcmp(key, input->key) == 0;
}

static void claim(void *context, struct input_request *input)
{
    struct claiming *claiming = context;
    const struct call *call = claiming->call;
    struct buffer id, message;
    bool waits_elsewhere = claiming->any_task && input->task[0] && client_knows_tasks(call);
    if (input->state != INPUT_OPEN || input->claimant != 0 || waits_elsewhere ||
        !can_be_sent(call, input->kind))
        return;
    if (*claiming->claimant == 0)
        *claiming->claimant = input_next_number();
    input->claimant = *claiming->claimant;
    input->sent_as_it_came = is_in_its_session(call, input);
    buffer_init(&id);
    buffer_init(&message);
    input_write_sent_id(input, &id);
    if (input->task[0])
        dialect_write_related_message(&message, str_from(input->message), buffer_str(&id),
                                      str_from(input->task));
    else
        json_write_with_member(&message, str_from(input->message), "id", buffer_str(&id));
    sse_write_event(claiming->events, STR_EMPTY, STR_EMPTY, buffer_str(&message));
    buffer_finish(&message);
    buffer_finish(&id);
}

void input_claim(const struct call *call, const struct task *task, uint64_t *claimant,
                 struct buffer *events)
{
    char key[INPUT_KEY_BYTES];
    struct gateway *gateway = call->worker->gateway;
    const struct input_match match = {.task = str_from(task ? task->id : NULL)};
    struct claiming claiming = {call, claimant, events, !task};
    if (input_table_count(gateway->inputs) == 0)
        return;
    if (task)
        client_key_or_id_of_task(task, key);
    else
        client_key_of_call(call, key);
    input_table_visit(gateway->inputs, str_from(key), &match, claim, &claiming);
}

/* The open inputs of a stream, and their tasks. */
struct releasing {
    uint64_t claimant;
    struct task **tasks;
    size_t count;
};

static void release(void *context, struct input_request *input)
{
    struct releasing *releasing = context;
    const struct kept_input *kept = input->owner;
    if (input->state != INPUT_OPEN || input->claimant != releasing->claimant)
        return;
    input->claimant = 0;
    if (!kept->task)
        return; /* the next GET stream of the client gets it */
    releasing->tasks =
        memory_grow_array(releasing->tasks, releasing->count + 1, sizeof(struct task *));
    releasing->tasks[releasing->count++] = task_ref(kept->task);
}

void input_release(struct gateway_worker *worker, uint64_t claimant)
{
    struct releasing releasing = {.claimant = claimant};
    if (claimant == 0)
        return;
    input_table_visit_all(worker->gateway->inputs, release, &releasing);
    for (size_t i = 0; i < releasing.count; i++) {
        input_offer(worker->gateway, releasing.tasks[i]);
        task_unref(releasing.tasks[i]);
    }
    free(releasing.tasks);
}
