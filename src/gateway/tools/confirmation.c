/* Asks the user of a client to confirm a call, and takes the answer. */
#include "confirmation.h"

#include "run/task_create.h"
#include "taskgate/core/clock.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

#define KEY "confirm"
/* Nobody reads a question and answers it in less. */
#define PERSON_TAKES_MS 200

enum answer { ANSWER_MISSING, ANSWER_ACCEPTED, ANSWER_REFUSED };

/* ---- asking ---- */

static bool declares(const struct call *call, enum config_confirm how)
{
    return dialect_modern_declares_elicitation(call->envelope.reserved.client_capabilities,
                                               how == CONFIRM_URL);
}

#define MOST_ARGUMENT_BYTES 500

static void write_form(struct buffer *out, const struct call *call)
{
    struct str arguments = call->envelope.arguments.raw;
    struct buffer message;
    buffer_init(&message);
    buffer_append_format(&message, "Shall %.*s be called", STR_ARGS(call_tool(call)));
    if (arguments.length > 0 && arguments.length <= MOST_ARGUMENT_BYTES)
        buffer_append_format(&message, " with %.*s", STR_ARGS(arguments));
    buffer_append_text(&message, "? The call then waits for an approval.");
    buffer_append_text(out, "{\"" KEY "\":{\"method\":\"elicitation/create\",\"params\":{"
                            "\"mode\":\"form\",\"message\":");
    buffer_append_json_string(out, buffer_str(&message));
    buffer_append_text(out, ",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"" KEY
                            "\":{\"type\":\"boolean\",\"title\":\"Make this call\"}},"
                            "\"required\":[\"" KEY "\"]}}}}");
    buffer_finish(&message);
}

/* The link names the task and holds no credential: who may decide there is for the page to ask. */
static void write_link(struct buffer *out, const struct call *call, const struct plain_call *plain)
{
    struct buffer message, url;
    buffer_init(&message);
    buffer_init(&url);
    buffer_append_format(&message, "The call of %.*s waits for an approval. It is shown here.",
                         STR_ARGS(call_tool(call)));
    buffer_append_format(&url, "%s/#task=%s", call->snapshot->config->public_url, plain->id);
    buffer_append_text(out, "{\"" KEY "\":{\"method\":\"elicitation/create\",\"params\":{"
                            "\"mode\":\"url\",\"message\":");
    buffer_append_json_string(out, buffer_str(&message));
    buffer_append_text(out, ",\"url\":");
    buffer_append_json_string(out, buffer_str(&url));
    buffer_append_text(out, "}}}");
    buffer_finish(&url);
    buffer_finish(&message);
}

static void ask(struct call *call, const struct plain_call *plain, enum config_confirm how)
{
    struct buffer requests;
    buffer_init(&requests);
    if (how == CONFIRM_URL)
        write_link(&requests, call, plain);
    else
        write_form(&requests, call);
    plain_call_answer_asking(call, plain, buffer_str(&requests), REQUEST_STATE_CONFIRM);
    buffer_finish(&requests);
}

/* ---- the answer ---- */

static enum config_confirm how_to_confirm(const struct call *call, const struct task *task)
{
    const struct config_workflow *workflow =
        config_workflow_find(call->snapshot->config, str_from(task->workflow));
    return call->dialect->has_sessions || !workflow ? CONFIRM_OFF : workflow->confirm;
}

static enum answer read_answer(const struct call *call, enum config_confirm how)
{
    struct str response = json_member(call->envelope.input_responses, KEY);
    struct str action = json_member(response, "action");
    struct str said = json_path(response, "content", KEY);
    if (json_string_equals(action, STR("decline")) || json_string_equals(action, STR("cancel")))
        return ANSWER_REFUSED;
    if (!json_string_equals(action, STR("accept")))
        return ANSWER_MISSING;
    if (how == CONFIRM_URL || json_type(said) == JSON_TRUE)
        return ANSWER_ACCEPTED; /* of a link it says no more than that it was opened */
    return json_type(said) == JSON_FALSE ? ANSWER_REFUSED : ANSWER_MISSING;
}

/* false: the call has gone, or was answered. */
static bool take_noted(struct call *call, const struct store_reply *reply)
{
    struct plain_call *plain = call->exchange ? plain_call_of(call) : NULL;
    if (plain && reply->task)
        plain_call_set_task(plain, reply->task); /* it may have been decided meanwhile */
    else if (plain)
        task_create_answer_refused(call, STORE_FAILED);
    return plain && reply->task;
}

static void on_confirmed(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    if (take_noted(call, reply))
        plain_call_of(call)->confirmed(call);
    call_unref(call);
}

/* The wait that has begun answers the call if the task has ended. */
static void on_asked(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    if (take_noted(call, reply)) {
        const struct plain_call *plain = plain_call_of(call);
        if (reply->status == STORE_CONFLICT)
            plain->confirmed(call);
        else
            ask(call, plain, how_to_confirm(call, plain->task));
    }
    call_unref(call);
}

static void note_then_ask(struct call *call, const struct plain_call *plain, const char *event,
                          const char *reason)
{
    static const struct store_actor actor = {"gateway", "taskgate"};
    store_task_note(call->worker->gateway->store, str_from(plain->id), event, &actor,
                    str_from(reason), call_to_store(call, on_asked));
}

/* A task that runs already is waited for; the end of one that was cancelled answers the call. */
static void on_cancelled(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct plain_call *plain = call->exchange ? plain_call_of(call) : NULL;
    if (plain && reply->status == STORE_CONFLICT)
        plain->confirmed(call);
    else if (plain && reply->status != STORE_OK)
        task_create_answer_refused(call, STORE_FAILED);
    call_unref(call);
}

static void record(struct call *call, const struct plain_call *plain, enum config_confirm how,
                   enum answer answer)
{
    static const char *const reasons[] = {
        [CONFIRM_FORM] = "by a form that the client's side has answered; no approval",
        [CONFIRM_URL] = "by a link that the client's side has opened; no approval"};
    struct store *store = call->worker->gateway->store;
    const struct store_actor actor = {"client", call->owner};
    const struct task_change cancelled = {
        .to = TASK_CANCELLED, .by = "client", .reason = "the client's user has declined"};
    if (answer == ANSWER_REFUSED)
        store_task_change(store, str_from(plain->id), &cancelled, &actor,
                          call_to_store(call, on_cancelled));
    else
        store_task_note(store, str_from(plain->id), STORE_EVENT_CONFIRMED, &actor,
                        str_from(reasons[how]), call_to_store(call, on_confirmed));
}

/* By the client itself. It decides nothing. */
static bool is_by_program(const struct call *call, const struct plain_call *plain)
{
    int64_t ago_ms = loop_now_ms(call->worker->loop) - http_received_ms(call->exchange);
    return clock_now_ms() - ago_ms - plain->state.given_ms <= PERSON_TAKES_MS;
}

bool confirmation_may_ask(const struct call *call, const struct task *task)
{
    return how_to_confirm(call, task) != CONFIRM_OFF;
}

bool confirmation_takes(struct call *call, struct plain_call *plain, call_step hold)
{
    enum config_confirm how = how_to_confirm(call, plain->task);
    enum answer answer = ANSWER_MISSING;
    if (how == CONFIRM_OFF ||
        (plain->has_state ? plain->state.kind != REQUEST_STATE_CONFIRM : !declares(call, how)))
        return false;
    if (plain->has_state)
        answer = read_answer(call, how);
    plain->confirmed = hold;
    if (!plain->has_state)
        note_then_ask(call, plain, STORE_EVENT_ASKED, "");
    else if (answer == ANSWER_MISSING)
        ask(call, plain, how);
    else if (is_by_program(call, plain))
        note_then_ask(call, plain, STORE_EVENT_UNANSWERED, STORE_UNANSWERED_REASON);
    else
        record(call, plain, how, answer);
    return true;
}
