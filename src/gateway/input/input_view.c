/* How open questions are shown: in a task, in lists, on a client's stream. */
#include <stdlib.h>
#include <string.h>

#include "input_internal.h"
#include "request/client_profile.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"
#include "taskgate/mcp/sse.h"

static struct str params_of(const struct input_request *input)
{
    return json_member(str_from(input->message), "params");
}

/* A member as upstream wrote it; left out when it is not there. */
static void copy_member(struct buffer *out, struct str params, const char *key)
{
    struct str value = json_member(params, key);
    if (value.length == 0)
        return;
    json_add_key(out, key);
    buffer_append(out, value);
}

static void separate(struct buffer *array)
{
    if (array->length > 0 && array->bytes[array->length - 1] != '[')
        buffer_append_char(array, ',');
}

/* ---- in a task ---- */

static void write_pending_elicitation(struct buffer *out, const struct input_request *input)
{
    struct str params = params_of(input);
    bool is_url = elicitation_is_url(params);
    struct str own_id = json_member(params, "elicitationId");
    buffer_append_char(out, '{');
    json_add_key(out, "elicitationId");
    if (is_url && json_type(own_id) == JSON_STRING)
        buffer_append(out, own_id);
    else
        buffer_append_json_string(out, str_from(input->id));
    json_add_text(out, "mode", is_url ? "url" : "form");
    copy_member(out, params, "message");
    copy_member(out, params, is_url ? "url" : "requestedSchema");
    buffer_append_char(out, '}');
}

struct view_search {
    struct dialect_view *view;
    struct buffer *elicitations; /* may be NULL */
};

static void look_at(void *context, struct input_request *input)
{
    struct view_search *search = context;
    struct dialect_view *view = search->view;
    int64_t changed_ms = input->state == INPUT_OPEN ? input->asked_ms : input->closed_ms;
    if (changed_ms > view->changed_ms)
        view->changed_ms = changed_ms;
    if (input->state != INPUT_OPEN)
        return;
    view->is_asking = true;
    if (input->kind == INPUT_ELICITATION && search->elicitations) {
        separate(search->elicitations);
        write_pending_elicitation(search->elicitations, input);
    }
}

static void look_at_task(struct gateway *gateway, const struct task *task,
                         struct view_search *search)
{
    char key[INPUT_KEY_BYTES];
    const struct input_match match = {.task = str_from(task->id)};
    if (input_table_count(gateway->inputs) == 0)
        return;
    client_key_or_id_of_task(task, key);
    input_table_visit(gateway->inputs, str_from(key), &match, look_at, search);
}

void input_view(struct gateway *gateway, const struct task *task, struct dialect_view *view,
                struct buffer *elicitations)
{
    struct view_search search = {view, elicitations};
    buffer_append_char(elicitations, '[');
    look_at_task(gateway, task, &search);
    buffer_append_char(elicitations, ']');
    if (elicitations->length > 2)
        view->pending_elicitations = buffer_str(elicitations);
}

bool input_is_open(struct gateway *gateway, const struct task *task)
{
    struct dialect_view view = {0};
    struct view_search search = {&view, NULL};
    look_at_task(gateway, task, &search);
    return view.is_asking;
}

/* ---- in the blocks of every tool's answer ---- */

struct pending_lists {
    struct str server;
    struct buffer *elicitations, *samplings;
    size_t count;
};

static void write_pending(void *context, struct input_request *input)
{
    struct pending_lists *lists = context;
    bool is_elicitation = input->kind == INPUT_ELICITATION;
    struct buffer *out = is_elicitation ? lists->elicitations : lists->samplings;
    if (input->state != INPUT_OPEN ||
        (lists->server.length > 0 && !str_equal(lists->server, str_from(input->source))))
        return;
    lists->count++;
    separate(out);
    buffer_append_char(out, '{');
    json_add_text(out, "requestId", input->id);
    json_add_text(out, "server", input->source);
    if (is_elicitation)
        copy_member(out, params_of(input), "message");
    buffer_append_char(out, '}');
}

size_t input_write_pending(struct gateway *gateway, struct str key, struct str server,
                           struct buffer *elicitations, struct buffer *samplings)
{
    struct pending_lists lists = {server, elicitations, samplings, 0};
    buffer_append_char(elicitations, '[');
    buffer_append_char(samplings, '[');
    input_table_visit(gateway->inputs, key, NULL, write_pending, &lists);
    buffer_append_char(elicitations, ']');
    buffer_append_char(samplings, ']');
    return lists.count;
}

/* ---- in full ---- */

struct full_list {
    enum input_kind kind;
    struct buffer *out;
    size_t count;
};

static void write_full(void *context, struct input_request *input)
{
    static const char *const sampling_members[] = {
        "maxTokens", "systemPrompt",     "temperature", "stopSequences",
        "messages",  "modelPreferences", "tools",       "toolChoice"};
    struct full_list *list = context;
    struct str params = params_of(input);
    if (input->state != INPUT_OPEN || input->kind != list->kind)
        return;
    list->count++;
    separate(list->out);
    buffer_append_char(list->out, '{');
    json_add_text(list->out, "requestId", input->id);
    json_add_text(list->out, "server", input->source);
    json_add_time(list->out, "timestamp", input->asked_ms);
    if (list->kind == INPUT_ELICITATION) {
        json_add_text(list->out, "mode", elicitation_is_url(params) ? "url" : "form");
        copy_member(list->out, params, "message");
        copy_member(list->out, params, "requestedSchema");
        copy_member(list->out, params, "elicitationId");
        copy_member(list->out, params, "url");
    } else {
        for (size_t i = 0; i < sizeof sampling_members / sizeof *sampling_members; i++)
            copy_member(list->out, params, sampling_members[i]);
    }
    buffer_append_char(list->out, '}');
}

size_t input_write_list(struct gateway *gateway, struct str key, enum input_kind kind,
                        struct buffer *out)
{
    struct full_list list = {kind, out, 0};
    buffer_append_char(out, '[');
    input_table_visit(gateway->inputs, key, NULL, write_full, &list);
    buffer_append_char(out, ']');
    return list.count;
}

const char *input_end_name(enum input_state state)
{
    static const char *const names[] = {
        [INPUT_OPEN] = "",
        [INPUT_ANSWERED_ON_STREAM] = "answered by the client's response",
        [INPUT_ANSWERED_IN_TASK] = "answered in tasks/get",
        [INPUT_ANSWERED_BY_TOOL] = "answered by a tool",
        [INPUT_EXPIRED] = "not answered in time",
        [INPUT_WITHDRAWN] = "withdrawn by the server",
        [INPUT_REJECTED] = "the call has ended",
    };
    return names[state];
}

/* ---- on a client's stream ---- */

void input_write_sent_id(const struct input_request *input, struct buffer *out)
{
    if (input->sent_as_it_came)
        buffer_append_text(out, input->upstream_id);
    else
        buffer_append_format(out, "\"tg:%s\"", input->id);
}

struct claiming {
    const struct call *call;
    uint64_t *claimant;
    struct buffer *events;
    bool any_task; /* a client that knows tasks waits in tasks/result for what its tasks ask */
};

static bool can_be_sent(const struct call *call, enum input_kind kind)
{
    return kind == INPUT_ELICITATION ? call->facts.client.declares_elicitation
                                     : call->facts.client.declares_sampling;
}

/* Upstream's own id means the request only in the session that upstream gave it in, and where
 * the response will be looked for. */
static bool is_in_its_session(const struct call *call, const struct input_request *input)
{
    char key[INPUT_KEY_BYTES];
    client_key_of_call(call, key);
    return call->session[0] && strcmp(call->session, input->session) == 0 &&
           strcmp(key, input->key) == 0;
}

static void claim(void *context, struct input_request *input)
{
    struct claiming *claiming = context;
    const struct call *call = claiming->call;
    struct buffer id, message;
    bool waits_elsewhere =
        claiming->any_task && input->task[0] && call->facts.client.declares_tasks;
    if (input->state != INPUT_OPEN || input->claimant != 0 || waits_elsewhere ||
        !can_be_sent(call, input->kind))
        return;
    if (*claiming->claimant == 0)
        *claiming->claimant = inputs_number();
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

/* The open questions that a stream had, and the tasks that they are of. */
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
