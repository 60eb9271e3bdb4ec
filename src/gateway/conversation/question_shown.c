/* How open questions are shown: in a task, in lists, and on a stream of the client, which claims
 * them and releases them at its end. */
#include "question.h"

#include <stdlib.h>
#include <string.h>

#include "call/client_profile.h"
#include "question_internal.h"
#include "replicas/replicas.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"
#include "taskgate/mcp/sse.h"

static struct str params_of(const struct question *question)
{
    return json_member(str_from(question->message), "params");
}

/* A member as upstream wrote it; left out when it is not there. */
static void copy_member(struct buffer *out, struct str params, const char *key)
{
    struct str value = json_member(params, key);
    if (value.length == 0)
        return;
    json_add_value(out, key, value);
}

static void separate(struct buffer *array)
{
    if (array->length > 0 && array->bytes[array->length - 1] != '[')
        buffer_append_char(array, ',');
}

/* ---- in a task ---- */

static void write_pending_elicitation(struct buffer *out, const struct question *question)
{
    struct str params = params_of(question);
    bool is_url = elicitation_is_url(params);
    struct str own_id = json_member(params, "elicitationId");
    buffer_append_char(out, '{');
    json_add_key(out, "elicitationId");
    if (is_url && json_type(own_id) == JSON_STRING)
        buffer_append(out, own_id);
    else
        buffer_append_json_string(out, str_from(question->id));
    json_add_text(out, "mode", is_url ? "url" : "form");
    copy_member(out, params, "message");
    copy_member(out, params, is_url ? "url" : "requestedSchema");
    buffer_append_char(out, '}');
}

struct view_search {
    struct dialect_view *view;
    struct buffer *elicitations;
};

static void look_at_question(void *context, struct question *question)
{
    struct view_search *search = context;
    struct dialect_view *view = search->view;
    int64_t changed_ms =
        question->state == QUESTION_OPEN ? question->asked_ms : question->closed_ms;
    if (changed_ms > view->changed_ms)
        view->changed_ms = changed_ms;
    if (question->state != QUESTION_OPEN)
        return;
    view->is_asking = true;
    if (question->kind == QUESTION_ELICITATION) {
        separate(search->elicitations);
        write_pending_elicitation(search->elicitations, question);
    }
}

void question_view(struct gateway *gateway, const struct task *task, struct dialect_view *view,
                   struct buffer *elicitations)
{
    char key[QUESTION_KEY_BYTES];
    const struct question_match match = {.task = str_from(task->id)};
    struct view_search search = {view, elicitations};
    buffer_append_char(elicitations, '[');
    client_key_or_id_of_task(task, key);
    question_table_visit(gateway->questions, str_from(key), &match, look_at_question, &search);
    buffer_append_char(elicitations, ']');
    if (elicitations->length > 2)
        view->pending_elicitations = buffer_str(elicitations);
}

static void look_for_unsettled(void *context, struct question *question)
{
    bool *waits = context;
    const struct kept_question *kept = question->owner;
    *waits = *waits || !kept->is_settled;
}

bool question_keeps_server_waiting(struct gateway *gateway, const struct task *task)
{
    char key[QUESTION_KEY_BYTES];
    const struct question_match match = {.task = str_from(task->id)};
    bool waits = false;
    if (question_table_count(gateway->questions) == 0)
        return false;
    client_key_or_id_of_task(task, key);
    question_table_visit(gateway->questions, str_from(key), &match, look_for_unsettled, &waits);
    return waits;
}

/* ---- of a call's own stream ---- */

static void look_for_open(void *context, struct question *question)
{
    bool *is_open = context;
    *is_open = *is_open || (question->state == QUESTION_OPEN && !question->task[0]);
}

bool question_is_open_in(const struct call *call, uint64_t number)
{
    char key[QUESTION_KEY_BYTES];
    const struct question_match in_call = {.call = number}, on_stream = {.is_on_stream = true};
    bool is_open = false;
    if (question_table_count(call->worker->gateway->questions) == 0)
        return false;
    client_key_of_call(call, key);
    if (key[0] && number != 0)
        question_table_visit(call->worker->gateway->questions, str_from(key), &in_call,
                             look_for_open, &is_open);
    if (key[0])
        question_table_visit(call->worker->gateway->questions, str_from(key), &on_stream,
                             look_for_open, &is_open);
    return is_open;
}

/* The questions of one call share a number and end with the call. */
struct asked {
    struct call_part part;
    uint64_t number;
};

/* A client's GET stream may end and be opened again. Its questions stay open until the server has
 * gone. */
static void drop_asked(struct call *call, void *object)
{
    struct asked *asked = object;
    bool is_get_stream = !call->method;
    if (!is_get_stream || call->upstream_broke) {
        char key[CLIENT_KEY_BYTES];
        client_key_of_call(call, key);
        question_end_call(call->worker, str_from(key), asked->number);
    }
    free(asked);
}

static const struct call_part_kind asked_kind = CALL_PART_KIND(struct asked, drop_asked);

uint64_t question_number(struct call *call)
{
    struct asked *asked = call_part_find(call, &asked_kind);
    if (!asked) {
        asked = memory_alloc(sizeof *asked);
        asked->number = question_next_number();
        call_part_add(call, &asked->part, &asked_kind);
    }
    return asked->number;
}

uint64_t question_take_number(struct call *call)
{
    struct asked *asked = call_part_find(call, &asked_kind);
    if (!asked)
        return question_next_number();
    uint64_t number = asked->number;
    call_part_remove(&asked->part);
    free(asked);
    return number;
}

bool question_is_open_without_task(const struct call *call)
{
    const struct asked *asked = call_part_find(call, &asked_kind);
    return question_is_open_in(call, asked ? asked->number : 0);
}

/* ---- in the blocks of every tool's answer ---- */

struct pending_lists {
    struct str server, owner;
    struct buffer *elicitations, *samplings;
};

/* An empty `wanted` is not compared. */
static bool is_pending_wanted(struct str wanted, const char *is)
{
    return wanted.length == 0 || str_equal(wanted, str_from(is));
}

static void write_pending(void *context, struct question *question)
{
    struct pending_lists *lists = context;
    const struct kept_question *kept = question->owner;
    bool is_elicitation = question->kind == QUESTION_ELICITATION;
    struct buffer *out = is_elicitation ? lists->elicitations : lists->samplings;
    if (question->state != QUESTION_OPEN || question->kind == QUESTION_ROOTS ||
        !is_pending_wanted(lists->server, question->source) ||
        !is_pending_wanted(lists->owner, kept->owner))
        return;
    separate(out);
    buffer_append_char(out, '{');
    json_add_text(out, "requestId", question->id);
    json_add_text(out, "server", question->source);
    if (is_elicitation)
        copy_member(out, params_of(question), "message");
    buffer_append_char(out, '}');
}

void question_write_pending(struct gateway *gateway, struct str key, struct str server,
                            struct str owner, struct buffer *elicitations, struct buffer *samplings)
{
    struct pending_lists lists = {server, owner, elicitations, samplings};
    question_table_visit(gateway->questions, key, NULL, write_pending, &lists);
}

/* ---- in full ---- */

struct full_list {
    enum question_kind kind;
    struct buffer *out;
    size_t count;
};

static void write_full(void *context, struct question *question)
{
    static const char *const sampling_members[] = {
        "maxTokens", "systemPrompt",     "temperature", "stopSequences",
        "messages",  "modelPreferences", "tools",       "toolChoice"};
    struct full_list *list = context;
    struct str params = params_of(question);
    if (question->state != QUESTION_OPEN || question->kind != list->kind)
        return;
    list->count++;
    separate(list->out);
    ASSERT(question->owner);
    buffer_append_char(list->out, '{');
    json_add_text(list->out, "requestId", question->id);
    json_add_text(list->out, "server", question->source);
    json_add_time(list->out, "timestamp", question->asked_ms);
    if (list->kind == QUESTION_ELICITATION) {
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

size_t question_write_list(struct gateway *gateway, struct str key, enum question_kind kind,
                           struct buffer *out)
{
    struct full_list list = {kind, out, 0};
    buffer_append_char(out, '[');
    question_table_visit(gateway->questions, key, NULL, write_full, &list);
    buffer_append_char(out, ']');
    return list.count;
}

/* ---- on a stream ---- */

struct claiming {
    const struct call *call;
    uint64_t *claimant;
    struct buffer *events;
    bool any_task; /* a client with tasks gets the questions of its tasks in tasks/result */
};

static bool can_be_sent(const struct call *call, enum question_kind kind)
{
    if (kind == QUESTION_ROOTS)
        return question_declares_roots(call);
    return kind == QUESTION_ELICITATION ? call->facts.client.declares_elicitation
                                        : call->facts.client.declares_sampling;
}

/* The server's own id names the request only in the session that it was given in. The response is
 * looked up there, which may be another replica than the one that runs the task. */
static bool is_in_its_session(const struct call *call, const struct question *question)
{
    const struct kept_question *kept = question->owner;
    char key[QUESTION_KEY_BYTES];
    client_key_of_call(call, key);
    bool may_be_elsewhere = question->task[0] && kept->worker->gateway->replicas;
    return !kept->take_answer && !may_be_elsewhere && call->session[0] &&
           strcmp(call->session, question->session) == 0 && strcmp(key, question->key) == 0;
}

static void claim(void *context, struct question *question)
{
    struct claiming *claiming = context;
    const struct call *call = claiming->call;
    bool waits_elsewhere = claiming->any_task && question->task[0] && client_knows_tasks(call);
    if (question->state != QUESTION_OPEN || question->claimant != 0 || waits_elsewhere ||
        !can_be_sent(call, question->kind))
        return;
    if (*claiming->claimant == 0)
        *claiming->claimant = question_next_number();
    question->claimant = *claiming->claimant;
    question->sent_as_it_came = is_in_its_session(call, question);
    OWNED_BUFFER(id);
    OWNED_BUFFER(message);
    question_write_sent_id(question, &id);
    if (question->task[0])
        dialect_write_related_message(&message, str_from(question->message), buffer_str(&id),
                                      str_from(question->task));
    else
        json_write_with_member(&message, str_from(question->message), "id", buffer_str(&id));
    sse_write_event(claiming->events, STR_EMPTY, STR_EMPTY, buffer_str(&message));
}

void question_claim(const struct call *call, const struct task *task, uint64_t *claimant,
                    struct buffer *events)
{
    char key[QUESTION_KEY_BYTES];
    struct gateway *gateway = call->worker->gateway;
    const struct question_match match = {.task = str_from(task ? task->id : NULL)};
    struct claiming claiming = {call, claimant, events, !task};
    if (question_table_count(gateway->questions) == 0)
        return;
    if (task)
        client_key_or_id_of_task(task, key);
    else
        client_key_of_call(call, key);
    question_table_visit(gateway->questions, str_from(key), &match, claim, &claiming);
}

/* The open questions of a stream, and their tasks. */
struct releasing {
    uint64_t claimant;
    struct task **tasks;
    size_t count;
};

static void release(void *context, struct question *question)
{
    struct releasing *releasing = context;
    const struct kept_question *kept = question->owner;
    if (question->state != QUESTION_OPEN || question->claimant != releasing->claimant)
        return;
    question->claimant = 0;
    if (!kept->task)
        return; /* the next GET stream of the client gets it */
    releasing->tasks =
        memory_grow_array(releasing->tasks, releasing->count + 1, sizeof(struct task *));
    releasing->tasks[releasing->count++] = task_ref(kept->task);
}

void question_release(struct gateway_worker *worker, uint64_t claimant)
{
    struct releasing releasing = {.claimant = claimant};
    if (claimant == 0)
        return;
    question_table_visit_all(worker->gateway->questions, release, &releasing);
    for (size_t i = 0; i < releasing.count; i++) {
        question_offer(worker->gateway, releasing.tasks[i]);
        task_unref(releasing.tasks[i]);
    }
    free(releasing.tasks);
}
