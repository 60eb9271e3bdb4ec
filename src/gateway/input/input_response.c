/* Answers to inputs, in each way that they come. */
#include <stdlib.h>
#include <string.h>

#include "answer_gate.h"
#include "call/client_profile.h"
#include "input_internal.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"

/* ---- what is asked ---- */

static void copy_params(void *context, struct input_request *input)
{
    struct buffer *params = context;
    if (params->length == 0 && input->state == INPUT_OPEN)
        buffer_append(params, json_member(str_from(input->message), "params"));
}

/* Whether `content` answers the form. The check reads a copy, because the input may go
 * meanwhile. */
static bool check_content(struct gateway *gateway, struct str key, const struct input_match *match,
                          struct str content, struct error *error)
{
    struct buffer params;
    buffer_init(&params);
    input_table_visit(gateway->inputs, key, match, copy_params, &params);
    struct str asked = buffer_str(&params);
    bool good = asked.length == 0 || elicitation_is_url(asked) ||
                elicitation_check_content(json_member(asked, "requestedSchema"), content, error);
    buffer_finish(&params);
    return good;
}

/* ---- an elicitation ---- */

struct elicitation_answer {
    enum elicitation_action action;
    struct str content; /* JSON text; empty unless accepted, and then of a form only */
    enum input_state way;
    const struct input_receiver *receiver; /* or NULL */
};

static void write_result(struct buffer *out, const struct elicitation_answer *answer, bool is_url)
{
    buffer_append_format(out, "{\"action\":\"%s\"", elicitation_action_name(answer->action));
    if (answer->action == ELICITATION_ACCEPT && !is_url) {
        buffer_append_text(out, ",\"content\":");
        buffer_append(out, answer->content.length > 0 ? answer->content : STR("{}"));
    }
    buffer_append_char(out, '}');
}

static void digest_answer(const struct elicitation_answer *answer, char digest[])
{
    struct buffer text;
    buffer_init(&text);
    write_result(&text, answer, false);
    digest_sha256_hex(buffer_str(&text), digest);
    buffer_finish(&text);
}

/* A repeated answer, as after a lost connection, is not a second one. */
static bool is_repeated(const struct elicitation_answer *answer,
                        const struct input_closing *closing)
{
    return closing->was == answer->way && answer->way == INPUT_ANSWERED_IN_TASK &&
           strcmp(closing->was_answer, closing->answer) == 0;
}

static enum input_verdict answer_elicitation(struct gateway_worker *worker, struct str key,
                                             const struct input_match *match,
                                             const struct elicitation_answer *answer,
                                             struct error *error)
{
    char digest[DIGEST_HEX_BYTES];
    struct input_closing closing = {.state = answer->way, .answer = digest};
    if (answer->action == ELICITATION_ACCEPT &&
        !check_content(worker->gateway, key, match, answer->content, error))
        return INPUT_UNFIT;
    digest_answer(answer, digest);
    struct kept_input *kept = input_close(worker->gateway, key, match, &closing);
    if (!kept && is_repeated(answer, &closing))
        return INPUT_ANSWERED;
    if (!kept) {
        if (closing.was == INPUT_OPEN)
            error_set(error, "there is no such elicitation");
        else
            error_set(error, "the elicitation is no longer open: %s", input_end_name(closing.was));
        return INPUT_NOT_OPEN;
    }
    struct buffer result;
    buffer_init(&result);
    write_result(&result, answer,
                 elicitation_is_url(json_member(str_from(kept->input.message), "params")));
    input_deliver(worker, kept, &(struct input_response){.result = buffer_str(&result)},
                  answer->receiver);
    buffer_finish(&result);
    return INPUT_ANSWERED;
}

/* ---- in tasks/get ---- */

bool input_answer_in_task(struct gateway_worker *worker, const struct task *task,
                          struct str response, struct error *error)
{
    char key[INPUT_KEY_BYTES];
    struct elicitation_answer answer = {.content = json_member(response, "content"),
                                        .way = INPUT_ANSWERED_IN_TASK};
    if (json_type(response) != JSON_OBJECT)
        return error_set(error, "elicitation-response must be an object");
    if (!elicitation_action_parse(json_member(response, "action"), &answer.action))
        return error_set(error, "elicitation-response.action must be accept, decline or cancel");
    char *id = json_string_text(json_member(response, "elicitationId"), NULL);
    if (!id || !id[0]) {
        free(id);
        return error_set(error, "elicitation-response.elicitationId must be a string");
    }
    const struct input_match match = {
        .has_kind = true,
        .kind = INPUT_ELICITATION,
        .id = str_from(id),
        .task = str_from(task->id),
    };
    client_key_or_id_of_task(task, key);
    enum input_verdict verdict = answer_elicitation(worker, str_from(key), &match, &answer, error);
    free(id);
    return verdict == INPUT_ANSWERED;
}

/* ---- by the tools ---- */

enum input_verdict input_answer_elicitation(const struct input_tool_answer *by, struct str action,
                                            struct str content, struct error *error)
{
    struct elicitation_answer answer = {
        .content = content, .way = INPUT_ANSWERED_BY_TOOL, .receiver = &by->receiver};
    const struct input_match match = {.has_kind = true, .kind = INPUT_ELICITATION, .id = by->id};
    if (!elicitation_action_parse(action, &answer.action)) {
        error_set(error, "action must be accept, decline or cancel");
        return INPUT_UNFIT;
    }
    if (by->key.length == 0 || by->id.length == 0)
        return INPUT_NOT_OPEN;
    return answer_elicitation(by->worker, by->key, &match, &answer, error);
}

enum input_verdict input_answer_sampling(const struct input_tool_answer *by, struct str result,
                                         struct str reason)
{
    const struct input_match match = {.has_kind = true, .kind = INPUT_SAMPLING, .id = by->id};
    struct input_closing closing = {.state = INPUT_ANSWERED_BY_TOOL};
    if (by->key.length == 0 || by->id.length == 0)
        return INPUT_NOT_OPEN;
    struct kept_input *kept = input_close(by->worker->gateway, by->key, &match, &closing);
    if (!kept)
        return INPUT_NOT_OPEN;
    const struct input_response response = {
        .result = result,
        .error_code = -1, /* the protocol's example of a person who says no */
        .error_message = reason,
    };
    input_deliver(by->worker, kept, &response, &by->receiver);
    return INPUT_ANSWERED;
}

/* ---- the client's own JSON-RPC response ---- */

struct response_search {
    const struct call *call;
    char key[INPUT_KEY_BYTES];
    bool is_owned, is_response;
};

/* It has come in another session of the call's owner. */
static bool is_of_owner(const struct call *call, const struct kept_input *kept)
{
    return strcmp(call->owner, OWNER_ANONYMOUS) != 0 && strcmp(call->owner, kept->owner) == 0 &&
           strcmp(call->source->id, kept->input.source) == 0;
}

static bool is_of_session(const struct call *call, const struct input_request *input)
{
    return strcmp(call->session, input->session) == 0 &&
           strcmp(call->source->id, input->source) == 0;
}

static void note_owner(void *context, struct input_request *input)
{
    struct response_search *search = context;
    const struct kept_input *kept = input->owner;
    char own_key[INPUT_KEY_BYTES];
    client_key_of_call(search->call, own_key);
    if (kept->is_in_call)
        search->is_owned = search->is_response && is_of_session(search->call, input);
    else if (kept->task)
        search->is_owned = call_owns(search->call, kept->task);
    else
        search->is_owned = strcmp(own_key, input->key) == 0 || is_of_owner(search->call, kept);
    memcpy(search->key, input->key, sizeof search->key);
}

void input_find_key(const struct call *call, struct str id, char key[])
{
    struct response_search search = {.call = call};
    input_table_visit_id(call->worker->gateway->inputs, id, note_owner, &search);
    if (search.is_owned)
        memcpy(key, search.key, sizeof search.key);
    else
        client_key_of_call(call, key);
}

/* The input that the response's id names: the server's own id in the client's session, or the
 * gateway's. */
static bool find_question(struct call *call, char **our_id, struct response_search *search,
                          struct input_match *match)
{
    struct str id = call->envelope.id;
    *our_id = NULL;
    search->call = call;
    search->is_response = true;
    if (str_starts_with(id, STR("\"tg:"))) {
        char *text = json_string_text(id, NULL);
        *our_id = memory_copy_text(text + 3);
        (*our_id)[strcspn(*our_id, ".")] = '\0'; /* behind it: which replica has asked */
        free(text);
        match->id = str_from(*our_id);
        input_table_visit_id(call->worker->gateway->inputs, match->id, note_owner, search);
        return search->is_owned;
    }
    match->upstream_id = id;
    match->session = str_from(call->session);
    client_key_of_call(call, search->key);
    return search->key[0] && call->session[0];
}

static void answer_too_late(struct call *call, enum input_state was)
{
    struct buffer message, text;
    buffer_init(&message);
    buffer_init(&text);
    buffer_append_format(&text, "The request is no longer open: %s", input_end_name(was));
    jsonrpc_write_error(&message, STR_EMPTY, JSONRPC_INVALID_PARAMS, buffer_str(&text), NULL);
    call_answer_status(call, 400, buffer_str(&message));
    buffer_finish(&text);
    buffer_finish(&message);
}

static void respond_for(struct call *call, struct kept_input *kept)
{
    const struct input_response response = {
        .result = call->envelope.result,
        .error = call->envelope.error,
    };
    input_deliver(call->worker, kept, &response, NULL);
}

bool input_take_response(struct call *call)
{
    struct gateway_worker *worker = call->worker;
    struct gateway *gateway = worker->gateway;
    struct response_search search = {0};
    struct input_match match = {0};
    struct input_closing closing = {.state = INPUT_ANSWERED_ON_STREAM};
    char *our_id;
    bool is_taken = false;
    if (input_table_count(gateway->inputs) == 0)
        return false;
    call_identify(call);
    if (call_is_stranger(call))
        return false;
    if (find_question(call, &our_id, &search, &match)) {
        struct kept_input *kept = input_close(gateway, str_from(search.key), &match, &closing);
        if (kept && (our_id || answer_gate_applies(kept->task))) {
            respond_for(call, kept);
            call_answer_status(call, 202, STR_EMPTY);
            is_taken = true;
        } else if (!kept && closing.was != INPUT_OPEN) {
            answer_too_late(call, closing.was);
            is_taken = true;
        }
        if (kept && !is_taken)
            input_settle(worker, kept); /* the call may be gone */
    }
    free(our_id);
    return is_taken;
}
