/* An input begins with a request of the server, and ends with what it belongs to. */
#include "input_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer_gate.h"
#include "call/client_profile.h"
#include "input_internal.h"
#include "taskgate/core/log.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"

/* A form is checked and shown on a loop, so it is smaller. A conversation is only passed on. */
#define ELICITATION_BYTES ((size_t)64 * 1024)
#define SAMPLING_BYTES ((size_t)1024 * 1024)

static const char *const methods[INPUT_KIND_COUNT] = {"elicitation/create",
                                                      "sampling/createMessage", "roots/list"};

static bool find_kind(struct str method, enum input_kind *kind)
{
    for (size_t i = 0; i < INPUT_KIND_COUNT; i++) {
        if (str_equal(method, str_from(methods[i]))) {
            *kind = (enum input_kind)i;
            return true;
        }
    }
    return false;
}

bool input_is_asked_by(struct str method, enum input_kind *kind)
{
    return find_kind(method, kind) && *kind != INPUT_ROOTS;
}

bool input_read_kind(struct str request, enum input_kind *kind)
{
    struct str method = json_member(request, "method");
    for (size_t i = 0; i < INPUT_KIND_COUNT; i++) {
        *kind = (enum input_kind)i;
        if (json_string_equals(method, str_from(methods[i])))
            return true;
    }
    return false;
}

const char *input_method(enum input_kind kind)
{
    return methods[kind];
}

bool input_round_is_well_formed(struct str requests, struct str state)
{
    enum input_kind kind;
    struct str key, request;
    bool has_requests = json_type(requests) == JSON_OBJECT, has_state = state.length > 0;
    if ((requests.length > 0 && !has_requests) || (has_state && json_type(state) != JSON_STRING) ||
        json_count(requests) > INPUTS_PER_ROUND)
        return false;
    for (size_t position = 0; json_next_member(requests, &position, &key, &request);) {
        if (!input_read_kind(request, &kind))
            return false;
    }
    return has_state || json_count(requests) > 0;
}

/* ---- the client that can answer ---- */

bool input_has_tools(const struct call *call, enum input_kind kind)
{
    /* A tool that answers, and those of which one shows what is to be answered. */
    static const struct {
        enum config_pseudo_tool answers, shows[3];
    } needed[] = {
        [INPUT_ELICITATION] = {PSEUDO_TOOL_RESPOND_TO_ELICITATION,
                               {PSEUDO_TOOL_GET_ELICITATIONS, PSEUDO_TOOL_GET_TASK,
                                PSEUDO_TOOL_GET_TASK_RESULT}},
        [INPUT_SAMPLING] = {PSEUDO_TOOL_RESPOND_TO_SAMPLING,
                            {PSEUDO_TOOL_GET_SAMPLING_REQUESTS, PSEUDO_TOOL_GET_SAMPLING_REQUESTS,
                             PSEUDO_TOOL_GET_SAMPLING_REQUESTS}},
    };
    const struct config_pseudo *pseudo = &call->snapshot->config->pseudo;
    bool is_shown = false;
    for (size_t i = 0; i < 3; i++)
        is_shown = is_shown || config_pseudo_offers(pseudo, needed[kind].shows[i]);
    return client_is_shown_tools(call) && is_shown &&
           config_pseudo_offers(pseudo, needed[kind].answers);
}

bool input_declares_roots(const struct call *call)
{
    return call->is_bridged &&
           json_type(json_path(buffer_str(&call->bridged), "capabilities", "roots")) == JSON_OBJECT;
}

void input_audience(const struct call *call, struct input_audience *audience)
{
    const struct session_facts *facts = &call->facts;
    bool can_any = false;
    client_key_of_call(call, audience->key);
    memcpy(audience->owner, call->owner, sizeof audience->owner);
    audience->can[INPUT_ELICITATION] = facts->client.declares_elicitation;
    audience->can[INPUT_SAMPLING] = facts->client.declares_sampling;
    audience->can[INPUT_ROOTS] = input_declares_roots(call);
    for (size_t i = 0; i < INPUT_ROOTS; i++) {
        if (!audience->can[i])
            audience->can[i] = call->session[0] && input_has_tools(call, (enum input_kind)i);
        can_any = can_any || audience->can[i];
    }
    audience->is_closed = facts->known && client_knows_tasks(call) && !can_any;
}

/* ---- where nobody can answer ---- */

/* The server must not hang. An absent person declines. An absent model is an error, and so is a
 * request for a capability that the client was never said to have. */
static void decline(const struct input_origin *origin, enum input_kind kind, struct str id)
{
    struct input_response response = {.error_code = -32601,
                                      .error_message = STR("Method not found")};
    if (kind == INPUT_ELICITATION && !origin->audience->is_closed)
        response.result = STR("{\"action\":\"decline\"}");
    else if (kind == INPUT_SAMPLING)
        response.error_message = STR("Method not found: nobody can sample for this client");
    log_info("A question of upstream's is declined: nobody can answer it",
             LOG_TEXT("source", origin->source->id), LOG_TEXT("method", methods[kind]));
    input_respond_to(origin, id, &response);
}

/* ---- taking ---- */

static bool take(const struct input_origin *origin, enum input_kind kind, struct str message)
{
    struct kept_input *kept = kept_input_create(origin, kind, message);
    enum input_added added = input_table_add(origin->worker->gateway->inputs, &kept->input);
    switch (added) {
    case INPUT_ADDED:
        log_info("Upstream asks", LOG_TEXT("source", origin->source->id),
                 LOG_TEXT("method", methods[kind]), LOG_TEXT("question", kept->input.id),
                 LOG_TEXT("task", kept->input.task));
        loop_timer_start(&kept->timer, origin->snapshot->config->pseudo.elicitation_timeout_ms);
        input_announce(kept);
        return true;
    case INPUT_TOO_MANY:
        input_respond(origin->worker, kept,
                      &(struct input_response){
                          .error_code = jsonrpc_error_code(JSONRPC_RATE_LIMITED),
                          .error_message = STR("Too many requests wait for this client")});
        break;
    case INPUT_REPEATED: /* a stream was opened again: the first still waits */
        break;
    }
    kept_input_destroy(kept);
    return added == INPUT_REPEATED;
}

void input_key_of_call(uint64_t call, char key[])
{
    snprintf(key, INPUT_KEY_BYTES, "call:%llu", (unsigned long long)call);
}

bool input_ask_in_call(const struct input_origin *origin, enum input_kind kind, struct str id,
                       struct buffer *own_id)
{
    struct buffer message = {0};
    buffer_append_format(&message, "{\"id\":%.*s}", STR_ARGS(id));
    struct kept_input *kept = kept_input_create(origin, kind, buffer_str(&message));
    buffer_finish(&message);
    kept->is_in_call = true;
    random_uuid(kept->input.id);
    input_key_of_call(origin->call, kept->input.key);
    if (input_table_add(origin->worker->gateway->inputs, &kept->input) != INPUT_ADDED) {
        kept_input_destroy(kept);
        return false;
    }
    buffer_append_format(own_id, "tg:%s", kept->input.id);
    return true;
}

static bool is_well_formed(enum input_kind kind, struct str params, struct error *error)
{
    if (kind == INPUT_ROOTS)
        return true;
    return kind == INPUT_ELICITATION ? elicitation_check_request(params, error)
                                     : sampling_check_request(params, error);
}

static void refuse(const struct input_origin *origin, struct str id, struct str why)
{
    input_respond_to(
        origin, id,
        &(struct input_response){.error_code = jsonrpc_error_code(JSONRPC_INVALID_PARAMS),
                                 .error_message = why});
}

bool input_take(const struct input_origin *origin, struct str message)
{
    struct error error = {""};
    enum input_kind kind = INPUT_ELICITATION;
    struct str id = json_member(message, "id");
    char *method = json_string_text(json_member(message, "method"), NULL);
    find_kind(str_from(method), &kind);
    free(method);
    size_t most = kind == INPUT_ELICITATION ? ELICITATION_BYTES : SAMPLING_BYTES;
    bool has_key = origin->task || origin->audience->key[0];
    if (!origin->audience->can[kind] || !has_key || answer_gate_denies(origin->task))
        decline(origin, kind, id);
    else if (message.length > most)
        refuse(origin, id, STR("The request is larger than the gateway keeps"));
    else if (!is_well_formed(kind, json_member(message, "params"), &error))
        refuse(origin, id, str_from(error.message));
    else
        return take(origin, kind, message);
    return false;
}

/* ---- ends ---- */

/* Closes all that match. */
static void close_all(struct gateway_worker *worker, struct str key,
                      const struct input_match *match, enum input_state state)
{
    struct kept_input *kept;
    struct input_closing closing = {.state = state};
    if (input_table_count(worker->gateway->inputs) == 0)
        return;
    while ((kept = input_close(worker->gateway, key, match, &closing)))
        input_settle(worker, kept);
    input_table_end(worker->gateway->inputs, key, match);
}

bool input_take_cancel(const struct input_origin *origin, struct str message)
{
    char key[INPUT_KEY_BYTES];
    struct gateway *gateway = origin->worker->gateway;
    const struct input_match match = {
        .upstream_id = json_path(message, "params", "requestId"),
        .session = str_from(origin->session),
    };
    struct input_closing closing = {.state = INPUT_WITHDRAWN};
    if (match.upstream_id.length == 0 || input_table_count(gateway->inputs) == 0)
        return false;
    if (origin->task)
        client_key_or_id_of_task(origin->task, key);
    else
        memcpy(key, origin->audience->key, sizeof key);
    struct kept_input *kept = input_close(gateway, str_from(key), &match, &closing);
    if (kept)
        input_settle(origin->worker, kept);
    else
        input_table_end(gateway->inputs, str_from(key), &match);
    return kept || closing.was != INPUT_OPEN;
}

void input_end_task(struct gateway_worker *worker, const struct task *task)
{
    char key[INPUT_KEY_BYTES];
    const struct input_match match = {.task = str_from(task->id)};
    client_key_or_id_of_task(task, key);
    close_all(worker, str_from(key), &match, INPUT_REJECTED);
}

void input_end_call(struct gateway_worker *worker, struct str key, uint64_t call)
{
    const struct input_match match = {.call = call};
    if (call != 0)
        close_all(worker, key, &match, INPUT_REJECTED);
}

/* A call that goes on without its client must not hang. */
static void cancel(struct gateway_worker *worker, const struct kept_input *kept)
{
    struct input_response response = {.error_code = -1,
                                      .error_message = STR("The client has ended its session")};
    if (kept->input.kind == INPUT_ELICITATION)
        response.result = STR("{\"action\":\"cancel\"}");
    if (!kept->input.is_on_stream)
        input_respond(worker, kept, &response);
}

void input_end_session(struct gateway_worker *worker, struct str key)
{
    const struct input_match meant = {.ends_with_session = true};
    struct input_closing closing = {.state = INPUT_REJECTED};
    struct kept_input *kept;
    if (key.length == 0 || input_table_count(worker->gateway->inputs) == 0)
        return;
    while ((kept = input_close(worker->gateway, key, &meant, &closing))) {
        cancel(worker, kept);
        input_settle(worker, kept);
    }
    input_table_end(worker->gateway->inputs, key, &meant);
}
