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

void question_view(struct gateway *gateway, const struct task *task, struct dialect_view *view,
                   struct buffer *elicitations)
{
    char key[QUESTION_KEY_BYTES];
    const struct question_match match = {.task = str_from(task->id)};
    const struct question *question;
    buffer_append_char(elicitations, '[');
    client_key_or_id_of_task(task, key);
    struct question_walk walk = question_walk(gateway->questions, str_from(key), &match);
    while ((question = question_walk_next(&walk))) {
        bool is_open = question->state == QUESTION_OPEN;
        int64_t changed_ms = is_open ? question->asked_ms : question->closed_ms;
        if (changed_ms > view->changed_ms)
            view->changed_ms = changed_ms;
        view->is_asking = view->is_asking || is_open;
        if (is_open && question->kind == QUESTION_ELICITATION) {
            separate(elicitations);
            write_pending_elicitation(elicitations, question);
        }
    }
    buffer_append_char(elicitations, ']');
    if (elicitations->length > 2)
        view->pending_elicitations = buffer_str(elicitations);
}

bool question_keeps_server_waiting(struct gateway *gateway, const struct task *task)
{
    char key[QUESTION_KEY_BYTES];
    const struct question_match match = {.task = str_from(task->id)};
    const struct question *question;
    bool waits = false;
    if (question_table_count(gateway->questions) == 0)
        return false;
    client_key_or_id_of_task(task, key);
    struct question_walk walk = question_walk(gateway->questions, str_from(key), &match);
    while ((question = question_walk_next(&walk))) {
        const struct kept_question *kept = question->owner;
        waits = waits || !kept->is_settled;
    }
    return waits;
}

/* ---- of a call's own stream ---- */

bool question_is_open_in(const struct call *call, uint64_t number)
{
    struct question_table *table = call->worker->gateway->questions;
    char key[QUESTION_KEY_BYTES];
    const struct question *question;
    bool is_open = false;
    if (question_table_count(table) == 0)
        return false;
    client_key_of_call(call, key);
    struct question_walk walk = question_walk(table, str_from(key), NULL);
    while ((question = question_walk_next(&walk))) {
        bool is_meant = question->is_on_stream || (number != 0 && question->call == number);
        is_open = is_open || (is_meant && question->state == QUESTION_OPEN && !question->task[0]);
    }
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

/* An empty `wanted` is not compared. */
static bool is_pending_wanted(struct str wanted, const char *is)
{
    return wanted.length == 0 || str_equal(wanted, str_from(is));
}

void question_write_pending(struct gateway *gateway, struct str key, struct str server,
                            struct str owner, struct buffer *elicitations, struct buffer *samplings)
{
    struct question_walk walk = question_walk(gateway->questions, key, NULL);
    const struct question *question;
    while ((question = question_walk_next(&walk))) {
        const struct kept_question *kept = question->owner;
        bool is_elicitation = question->kind == QUESTION_ELICITATION;
        struct buffer *out = is_elicitation ? elicitations : samplings;
        if (question->state != QUESTION_OPEN || question->kind == QUESTION_ROOTS ||
            !is_pending_wanted(server, question->source) || !is_pending_wanted(owner, kept->owner))
            continue;
        separate(out);
        buffer_append_char(out, '{');
        json_add_text(out, "requestId", question->id);
        json_add_text(out, "server", question->source);
        if (is_elicitation)
            copy_member(out, params_of(question), "message");
        buffer_append_char(out, '}');
    }
}

/* ---- in full ---- */

static void write_full(struct buffer *out, const struct question *question)
{
    static const char *const sampling_members[] = {
        "maxTokens", "systemPrompt",     "temperature", "stopSequences",
        "messages",  "modelPreferences", "tools",       "toolChoice"};
    struct str params = params_of(question);
    ASSERT(question->owner);
    separate(out);
    buffer_append_char(out, '{');
    json_add_text(out, "requestId", question->id);
    json_add_text(out, "server", question->source);
    json_add_time(out, "timestamp", question->asked_ms);
    if (question->kind == QUESTION_ELICITATION) {
        json_add_text(out, "mode", elicitation_is_url(params) ? "url" : "form");
        copy_member(out, params, "message");
        copy_member(out, params, "requestedSchema");
        copy_member(out, params, "elicitationId");
        copy_member(out, params, "url");
    } else {
        for (size_t i = 0; i < sizeof sampling_members / sizeof *sampling_members; i++)
            copy_member(out, params, sampling_members[i]);
    }
    buffer_append_char(out, '}');
}

size_t question_write_list(struct gateway *gateway, struct str key, enum question_kind kind,
                           struct buffer *out)
{
    const struct question_match match = {.has_kind = true, .kind = kind};
    struct question_walk walk = question_walk(gateway->questions, key, &match);
    const struct question *question;
    size_t count = 0;
    buffer_append_char(out, '[');
    while ((question = question_walk_next(&walk))) {
        if (question->state != QUESTION_OPEN)
            continue;
        count++;
        write_full(out, question);
    }
    buffer_append_char(out, ']');
    return count;
}

/* ---- on a stream ---- */

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

/* From now on it belongs to the stream. */
static void claim(const struct call *call, struct question *question, uint64_t claimant,
                  struct buffer *events)
{
    OWNED_BUFFER(id);
    OWNED_BUFFER(message);
    question->claimant = claimant;
    question->sent_as_it_came = is_in_its_session(call, question);
    question_write_sent_id(question, &id);
    if (question->task[0])
        dialect_write_related_message(&message, str_from(question->message), buffer_str(&id),
                                      str_from(question->task));
    else
        json_write_with_member(&message, str_from(question->message), "id", buffer_str(&id));
    sse_write_event(events, STR_EMPTY, STR_EMPTY, buffer_str(&message));
}

void question_claim(const struct call *call, const struct task *task, uint64_t *claimant,
                    struct buffer *events)
{
    char key[QUESTION_KEY_BYTES];
    struct gateway *gateway = call->worker->gateway;
    const struct question_match match = {.task = str_from(task ? task->id : NULL)};
    struct question *question;
    if (question_table_count(gateway->questions) == 0)
        return;
    if (task)
        client_key_or_id_of_task(task, key);
    else
        client_key_of_call(call, key);
    struct question_walk walk = question_walk(gateway->questions, str_from(key), &match);
    while ((question = question_walk_next(&walk))) {
        /* A client with tasks gets the questions of its tasks in tasks/result. */
        bool waits_elsewhere = !task && question->task[0] && client_knows_tasks(call);
        if (question->state != QUESTION_OPEN || question->claimant != 0 || waits_elsewhere ||
            !can_be_sent(call, question->kind))
            continue;
        if (*claimant == 0)
            *claimant = question_next_number();
        claim(call, question, *claimant, events);
    }
}

void question_release(struct gateway_worker *worker, uint64_t claimant)
{
    struct task **tasks = NULL;
    size_t count = 0;
    struct question *question;
    if (claimant == 0)
        return;
    struct question_walk walk = question_walk_all(worker->gateway->questions);
    while ((question = question_walk_next(&walk))) {
        const struct kept_question *kept = question->owner;
        if (question->state != QUESTION_OPEN || question->claimant != claimant)
            continue;
        question->claimant = 0;
        if (!kept->task)
            continue; /* the next GET stream of the client gets it */
        tasks = memory_grow_array(tasks, count + 1, sizeof(struct task *));
        tasks[count++] = task_ref(kept->task);
    }
    for (size_t i = 0; i < count; i++) {
        question_offer(worker->gateway, tasks[i]);
        task_unref(tasks[i]);
    }
    free(tasks);
}
