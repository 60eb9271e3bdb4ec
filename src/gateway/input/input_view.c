/* How open questions are shown: in a task, in lists, on a client's stream. */
#include <stdlib.h>

#include "call/client_profile.h"
#include "input_internal.h"
#include "replicas/replicas.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"

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

static void look_for_open(void *context, struct input_request *input)
{
    bool *is_open = context;
    *is_open = *is_open || (input->state == INPUT_OPEN && !input->task[0]);
}

bool input_is_open_in(const struct call *call, uint64_t number)
{
    char key[INPUT_KEY_BYTES];
    const struct input_match in_call = {.call = number}, on_stream = {.is_on_stream = true};
    bool is_open = false;
    if (input_table_count(call->worker->gateway->inputs) == 0)
        return false;
    client_key_of_call(call, key);
    if (key[0] && number != 0)
        input_table_visit(call->worker->gateway->inputs, str_from(key), &in_call, look_for_open,
                          &is_open);
    if (key[0])
        input_table_visit(call->worker->gateway->inputs, str_from(key), &on_stream, look_for_open,
                          &is_open);
    return is_open;
}

static void look_for_unsettled(void *context, struct input_request *input)
{
    bool *waits = context;
    const struct kept_input *kept = input->owner;
    *waits = *waits || !kept->is_settled;
}

bool input_keeps_server_waiting(struct gateway *gateway, const struct task *task)
{
    char key[INPUT_KEY_BYTES];
    const struct input_match match = {.task = str_from(task->id)};
    bool waits = false;
    if (input_table_count(gateway->inputs) == 0)
        return false;
    client_key_or_id_of_task(task, key);
    input_table_visit(gateway->inputs, str_from(key), &match, look_for_unsettled, &waits);
    return waits;
}

/* ---- in the blocks of every tool's answer ---- */

struct pending_lists {
    struct str server, owner;
    struct buffer *elicitations, *samplings;
};

/* An empty `wanted` is not compared. */
static bool is_wanted(struct str wanted, const char *is)
{
    return wanted.length == 0 || str_equal(wanted, str_from(is));
}

static void write_pending(void *context, struct input_request *input)
{
    struct pending_lists *lists = context;
    const struct kept_input *kept = input->owner;
    bool is_elicitation = input->kind == INPUT_ELICITATION;
    struct buffer *out = is_elicitation ? lists->elicitations : lists->samplings;
    if (input->state != INPUT_OPEN || input->kind == INPUT_ROOTS ||
        !is_wanted(lists->server, input->source) || !is_wanted(lists->owner, kept->owner))
        return;
    separate(out);
    buffer_append_char(out, '{');
    json_add_text(out, "requestId", input->id);
    json_add_text(out, "server", input->source);
    if (is_elicitation)
        copy_member(out, params_of(input), "message");
    buffer_append_char(out, '}');
}

void input_write_pending(struct gateway *gateway, struct str key, struct str server,
                         struct str owner, struct buffer *elicitations, struct buffer *samplings)
{
    struct pending_lists lists = {server, owner, elicitations, samplings};
    input_table_visit(gateway->inputs, key, NULL, write_pending, &lists);
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
    const struct kept_input *kept = input->owner;
    if (input->sent_as_it_came)
        buffer_append_text(out, input->upstream_id);
    else
        replicas_write_question_id(kept->worker->gateway->replicas, input->id, out);
}
