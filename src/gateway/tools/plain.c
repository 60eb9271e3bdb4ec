/* Plain calls that wait for approval: they become tasks, or join one that an earlier call has
 * become, and their clients are answered; and the answers to slow calls. */
#include "plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "call/call.h"
#include "call/client_profile.h"
#include "call/deferred_response.h"
#include "call/refusal.h"
#include "call/request_parts.h"
#include "call/request_state.h"
#include "conversation/detach_internal.h"
#include "conversation/execute.h"
#include "conversation/relay.h"
#include "conversation/rounds.h"
#include "conversation/task_create.h"
#include "conversation/task_inputs.h"
#include "conversation/waiting.h"
#include "decision/task_binding.h"
#include "inbox/inbox.h"
#include "inbox/repeated_calls.h"
#include "inbox/task_summary.h"
#include "repeated_news.h"
#include "server/credential_check.h"
#include "server/own.h"
#include "server/server_refusal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/lists.h"
#include "taskgate/mcp/question.h"
#include "tools.h"

/* The call tries again when the task that it was to join has gone meanwhile. */
#define MOST_ATTEMPTS 3
#define MOST_CANDIDATES 100
/* A client that has waited for so long may have given up without a word. */
#define LONG_WAIT_MS 4000

struct plain_call {
    struct call_part part;
    struct gateway *gateway;
    struct policy_decision decision;
    struct catalog_tool tool;
    char *key;              /* call_memory.h: of the client; "": nobody can be told from another */
    struct task *task;      /* until the wait begins, and once it has ended without an outcome */
    int64_t began_ms;       /* by the loop's clock */
    int64_t decide_by_ms;   /* of it, when it was read last */
    char id[TASK_ID_BYTES]; /* of it; "" before there is one */
    char digest[DIGEST_HEX_BYTES];
    bool accelerated;
    bool is_held;    /* nothing is left to ask its user, or to be recorded of that */
    bool is_waiting; /* the body is forgotten */
    bool is_pending; /* the task was, when it was read last */
    bool is_joined;  /* an earlier call made it */
    bool is_late;    /* it had been decided when this call came */
    bool is_told;    /* the client has the outcome */
    bool has_state;  /* the client has sent back what it was given; `state` has it opened */
    int attempts;
    struct request_state state;
    call_step forward; /* of a call that is forwarded unless it joins: how it goes up; else NULL */
};

/* ---- the part of the call ---- */

/* As which it can be joined by the same call made again. */
static struct repeated_call plain_join_of(const struct plain_call *plain)
{
    return (struct repeated_call){str_from(plain->key), plain->digest, plain->id};
}

/* Takes a reference to the task as it is now. */
static void plain_set_task(struct plain_call *plain, struct task *task)
{
    task_unref(plain->task);
    plain->task = task_ref(task);
    plain->is_pending = task->state == TASK_PENDING;
    plain->decide_by_ms = task->decide_by_ms;
}

/* Its wait has ended without the outcome, which the same call made again gets. */
static void plain_leave(const struct call *call, const struct plain_call *plain)
{
    struct repeated_call join = plain_join_of(plain);
    if (repeated_call_set_undelivered(plain->gateway, &join))
        repeated_news_send(call->worker, &join, 0);
}

/* The next call of the kind gets the outcome that this one did not get. */
static void plain_drop(struct call *call, void *object)
{
    struct plain_call *plain = object;
    if (plain->id[0] && !plain->is_told)
        plain_leave(call, plain);
    task_unref(plain->task);
    call_memory_give(call, plain->key);
    call_memory_give(call, plain);
}

static const struct call_part_kind plain_kind = CALL_PART_KIND(struct plain_call, plain_drop);

static struct plain_call *plain_of(const struct call *call)
{
    return call_part_get(call, &plain_kind);
}

void plain_call_give_up(const struct call *call)
{
    const struct plain_call *plain = call_part_find(call, &plain_kind);
    if (plain && plain->id[0])
        store_task_leave(plain->gateway->store, str_from(plain->id),
                         (struct store_call){call->worker->loop, NULL, NULL});
}

static void plain_count_wait(const char *outcome)
{
    metrics_count(METRIC_PSEUDO_WAITS, STR("call"), str_from(outcome));
}

/* The client has no session, and no tools of the gateway's: what it is given is a state to send
 * back (modern era, patterns/mrtr). */
static bool sends_back_state(const struct call *call)
{
    return !call->dialect->has_sessions;
}

/* ---- the outcome ---- */

static bool has_result(const struct task *task)
{
    bool has_run = task->state == TASK_COMPLETED || task->state == TASK_FAILED;
    return has_run && task->outcome == TASK_OUTCOME_RESULT;
}

/* The client had gone when the outcome came, so the answer names the task. */
static void append_late(struct buffer *result, const struct task *task, struct str outcome)
{
    OWNED_BUFFER(text);
    OWNED_BUFFER(block);
    buffer_append_format(&text,
                         "This is the outcome of your earlier call, task %s. It was not run again "
                         "for this one.",
                         task->id);
    buffer_append_text(&block, "{\"type\":\"text\"");
    json_add_str(&block, "text", buffer_str(&text));
    buffer_append_char(&block, '}');
    mcp_list_append(result, outcome, "content", buffer_str(&block));
}

static void answer_late_error(struct call *call, const struct task *task, struct str message)
{
    struct str error = json_member(message, "error"), data = json_member(error, "data");
    OWNED_BUFFER(id);
    OWNED_BUFFER(whole);
    buffer_append_format(&id, "\"%s\"", task->id);
    if (data.length == 0 || json_type(data) == JSON_OBJECT)
        json_write_with_inner(&whole, error, "data", "taskId", buffer_str(&id));
    else
        buffer_append(&whole, error);
    call_answer_error_of_server(call, buffer_str(&whole));
}

static void answer_plain_outcome(struct call *call, const struct plain_call *plain,
                                 const struct task *task)
{
    struct str result = str_slice(task->outcome_text, task->outcome_length);
    bool is_late = plain->is_late, is_result = has_result(task);
    bool is_refusal = !is_result && refusal_is_due(call, refusal_of_task(task));
    OWNED_BUFFER(message);
    OWNED_BUFFER(refusal);
    OWNED_BUFFER(late);
    OWNED_BUFFER(whole);
    ASSERT(task_state_is_terminal(task->state));
    plain_count_wait(is_late ? "late" : "in_time");
    call->dialect->write_answer(&message, call->envelope.id, task);
    if (!is_result)
        call->outcome = "error";
    if (!is_result && !is_refusal) {
        if (is_late)
            answer_late_error(call, task, buffer_str(&message));
        else
            call_answer(call, buffer_str(&message));
        return;
    }
    if (is_refusal) {
        refusal_write_result(&refusal, call, refusal_of_task(task),
                             json_member(buffer_str(&message), "error"), task);
        result = buffer_str(&refusal);
    }
    if (is_late) {
        append_late(&late, task, is_result ? json_member(buffer_str(&message), "result") : result);
        result = buffer_str(&late);
    }
    if (call->is_executed) {
        pseudo_write_around(call, &whole, result);
        result = buffer_str(&whole);
    }
    if (is_refusal)
        call_answer_result(call, result);
    else
        call_answer_result_of_server(call, result);
}

/* ---- what is pending ---- */

#define UNDECIDED_GRACE_MS 60000 /* the client may come back for the expiry itself */
#define UNDER_WAY_MS 600000

static void answer_required(struct call *call, const struct plain_call *plain, struct str requests,
                            enum request_state_kind kind)
{
    static const char *const counted[] = {"state", "confirm", "questions"};
    struct request_state next = {.round = plain->state.round + (kind == REQUEST_STATE_HOLD),
                                 .kind = kind};
    OWNED_BUFFER(state);
    OWNED_BUFFER(result);
    memcpy(next.id, plain->id, sizeof next.id);
    next.until_ms = plain->is_pending && kind != REQUEST_STATE_EXECUTE
                        ? plain->decide_by_ms + UNDECIDED_GRACE_MS
                        : clock_now_ms() + UNDER_WAY_MS;
    plain_count_wait(counted[kind]);
    request_state_write(call, &next, &state);
    mcp_write_input_required(&result, requests, buffer_str(&state));
    call_answer_result(call, buffer_str(&result));
}

/* How its client gets the outcome: by a tool that it is offered, or by the call itself. */
static void write_advice(struct buffer *out, const struct call *call,
                         const struct plain_call *plain)
{
    struct tool_names names = pseudo_tools_names(call);
    struct str tool = call_tool(call);
    if (tool_names_offer(&names, PSEUDO_TOOL_GET_TASK_RESULT)) {
        buffer_append_text(out, " To get the outcome, call ");
        tool_names_write(&names, PSEUDO_TOOL_GET_TASK_RESULT, out);
        buffer_append_format(out, " with task_id \"%s\".", plain->id);
    }
    if (plain->key[0]) /* calls of other sessions may have another owner */
        buffer_append_format(out,
                             " Calling %.*s again with the same arguments%s asks for the same task "
                             "and does not run it twice.",
                             STR_ARGS(tool),
                             owner_is_session(call->owner) ? " in this session" : "");
}

static void write_sentence(struct buffer *out, const struct call *call,
                           const struct plain_call *plain, const struct task *task)
{
    struct str tool = call_tool(call);
    if (task->promoted) {
        bool hears = call->envelope.progress_token.length > 0 && deferred_response_may_stream(call);
        pseudo_write_promoted(call,
                              call->is_executed ? call->patience_ms : client_wait_ms(call, hears),
                              task->id, out);
        return;
    }
    buffer_append_format(out,
                         task->state == TASK_PENDING
                             ? "%.*s has not run yet: it waits for a person's approval (task %s)."
                             : "%.*s was approved and is running, but has no result yet (task %s).",
                         STR_ARGS(tool), task->id);
    write_advice(out, call, plain);
}

static const struct task *newest(const struct plain_call *plain, const struct store_reply *working)
{
    for (size_t i = 0; i < working->task_count; i++) {
        if (str_equal(str_from(working->tasks[i]->id), str_from(plain->id)))
            return working->tasks[i];
    }
    return plain->task;
}

/* The task has not ended. `working` holds the client's tasks that have not. */
static void answer_plain_pending(struct call *call, const struct store_reply *working)
{
    const struct plain_call *plain = plain_of(call);
    const struct task *task = newest(plain, working);
    bool promises_other = task->promoted && plain->tool.has_output_schema && !call->is_executed;
    OWNED_BUFFER(text);
    plain_count_wait("pending");
    write_sentence(&text, call, plain, task);
    pseudo_answer_pending(call,
                          &(struct pseudo_pending){.text = buffer_str(&text),
                                                   .task = task,
                                                   .joined = plain->is_joined ? "true" : "false",
                                                   .working = working,
                                                   .promises_other = promises_other});
}

/* ---- the user's confirmation (`approval.NAME.confirm`), of modern clients without tasks: the
 * client's side answers it, and an agent may control that side, so it never counts as an approval
 * ---- */

static void plain_hold(struct call *call);

#define KEY "confirm"
/* Nobody reads a question and answers it in less. */
#define PERSON_TAKES_MS 200

enum confirmation { ANSWER_MISSING, ANSWER_ACCEPTED, ANSWER_REFUSED };

/* ---- asking ---- */

#define MOST_ARGUMENT_BYTES 500

/* `more`: the members of the question beside its message. */
static void write_question(struct buffer *out, const char *mode, struct str message,
                           struct str more)
{
    buffer_append_text(out, "{\"" KEY "\":{\"method\":\"" MCP_ELICIT "\",\"params\":{");
    json_add_text(out, "mode", mode);
    json_add_str(out, "message", message);
    buffer_append(out, more);
    buffer_append_text(out, "}}}");
}

static void write_form(struct buffer *out, const struct call *call)
{
    struct str arguments = call->envelope.arguments.raw;
    OWNED_BUFFER(message);
    buffer_append_format(&message, "Shall %.*s be called", STR_ARGS(call_tool(call)));
    if (arguments.length > 0 && arguments.length <= MOST_ARGUMENT_BYTES)
        buffer_append_format(&message, " with %.*s", STR_ARGS(arguments));
    buffer_append_text(&message, "? The call then waits for an approval.");
    write_question(out, "form", buffer_str(&message),
                   STR(",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"" KEY
                       "\":{\"type\":\"boolean\",\"title\":\"Make this call\"}},"
                       "\"required\":[\"" KEY "\"]}"));
}

/* The link names the task and holds no credential: who may decide there is for the page to ask. */
static void write_confirm_link(struct buffer *out, const struct call *call,
                               const struct plain_call *plain)
{
    OWNED_BUFFER(message);
    OWNED_BUFFER(url);
    OWNED_BUFFER(more);
    buffer_append_format(&message, "The call of %.*s waits for an approval. It is shown here.",
                         STR_ARGS(call_tool(call)));
    buffer_append_format(&url, "%s/#task=%s", call->snapshot->config->public_url, plain->id);
    json_add_str(&more, "url", buffer_str(&url));
    write_question(out, "url", buffer_str(&message), buffer_str(&more));
}

static void ask_to_confirm(struct call *call, const struct plain_call *plain,
                           enum config_confirm how)
{
    OWNED_BUFFER(requests);
    if (how == CONFIRM_URL)
        write_confirm_link(&requests, call, plain);
    else
        write_form(&requests, call);
    answer_required(call, plain, buffer_str(&requests), REQUEST_STATE_CONFIRM);
}

/* ---- the answer ---- */

static enum config_confirm how_to_confirm(const struct call *call, const struct task *task)
{
    const struct config_workflow *workflow =
        config_workflow_find(call->snapshot->config, str_from(task->workflow));
    return !sends_back_state(call) || !workflow ? CONFIRM_OFF : workflow->confirm;
}

static enum confirmation read_answer(const struct call *call, enum config_confirm how)
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

/* Takes the task as the store has it now: it may have been decided meanwhile. false: the call is
 * answered. */
static bool take_noted(struct call *call, const struct store_reply *reply)
{
    if (reply->task)
        plain_set_task(plain_of(call), reply->task);
    else
        call_answer_no_store(call);
    return reply->task != NULL;
}

static void on_confirmed(struct call *call, const struct store_reply *reply)
{
    if (take_noted(call, reply))
        plain_hold(call);
}

/* The wait that has begun answers the call if the task has ended. */
static void on_asked(struct call *call, const struct store_reply *reply)
{
    if (!take_noted(call, reply))
        return;
    const struct plain_call *plain = plain_of(call);
    if (reply->status == STORE_CONFLICT)
        plain_hold(call);
    else
        ask_to_confirm(call, plain, how_to_confirm(call, plain->task));
}

static void note_then_ask(struct call *call, const struct plain_call *plain, const char *event,
                          const char *reason)
{
    static const struct store_actor actor = {"gateway", "taskgate"};
    store_task_note(call->worker->gateway->store, str_from(plain->id), event, &actor,
                    str_from(reason), call_to_store(call, on_asked));
}

/* A task that runs already is waited for; the end of one that was cancelled answers the call. */
static void plain_on_cancelled(struct call *call, const struct store_reply *reply)
{
    if (reply->status == STORE_CONFLICT)
        plain_hold(call);
    else if (reply->status != STORE_OK)
        call_answer_no_store(call);
}

static void record_confirmation(struct call *call, const struct plain_call *plain,
                                enum config_confirm how, enum confirmation answer)
{
    static const char *const reasons[] = {
        [CONFIRM_FORM] = "by a form that the client's side has answered; no approval",
        [CONFIRM_URL] = "by a link that the client's side has opened; no approval"};
    struct store *store = call->worker->gateway->store;
    const struct store_actor actor = {"client", call->owner};
    if (answer == ANSWER_REFUSED)
        call_cancel_task(call, plain->task, "the client's user has declined", plain_on_cancelled);
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

/* With the task that the call waits for. True: the user is asked and the call answered, or what the
 * user has said is being recorded, and the call is held or ends. */
static bool confirmation_takes(struct call *call, struct plain_call *plain)
{
    enum config_confirm how = how_to_confirm(call, plain->task);
    enum confirmation answer = ANSWER_MISSING;
    if (how == CONFIRM_OFF ||
        (plain->has_state
             ? plain->state.kind != REQUEST_STATE_CONFIRM
             : !mcp_may_ask(call->envelope.reserved.client_capabilities,
                            how == CONFIRM_URL ? MCP_QUESTION_URL : MCP_QUESTION_FORM)))
        return false;
    if (plain->has_state)
        answer = read_answer(call, how);
    if (!plain->has_state)
        note_then_ask(call, plain, STORE_EVENT_ASKED, "");
    else if (answer == ANSWER_MISSING)
        ask_to_confirm(call, plain, how);
    else if (is_by_program(call, plain))
        note_then_ask(call, plain, STORE_EVENT_UNANSWERED, STORE_UNANSWERED_REASON);
    else
        record_confirmation(call, plain, how, answer);
    return true;
}

/* ---- questions of the server while it runs a held call: its client has no task to look at, so the
 * call is answered with the requests, and repeated with the answers (MCP 2026-07-28, patterns/mrtr)
 * ---- */

/* Hands on what the repeated call answers to the server. */
static void take_answers_to_server(struct call *call, const struct plain_call *plain)
{
    struct str answers = call->envelope.input_responses;
    if (plain->has_state && plain->state.kind == REQUEST_STATE_EXECUTE &&
        json_type(answers) == JSON_OBJECT)
        task_inputs_answer(call->worker, plain->task, answers);
}

/* True: the call is answered with what the server asks now. */
static bool answer_with_questions(struct call *call, const struct plain_call *plain)
{
    struct question_table *rounds = call->worker->gateway->questions;
    OWNED_BUFFER(requests);
    int64_t changed_ms;
    bool asks = sends_back_state(call) &&
                rounds_show(rounds, str_from(plain->id), &requests, &changed_ms) &&
                mcp_may_ask_all(call->envelope.reserved.client_capabilities, buffer_str(&requests));
    if (asks)
        answer_required(call, plain, buffer_str(&requests), REQUEST_STATE_EXECUTE);
    return asks;
}

void plain_call_note_requests(struct gateway_worker *worker, const struct task *task)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        const struct plain_call *plain = call_part_find(call, &plain_kind);
        if (plain && plain->is_waiting && strcmp(plain->id, task->id) == 0)
            answer_with_questions(call, plain);
    }
}

/* ---- the wait ---- */

static void plain_on_ended(struct call *call, struct task *task)
{
    struct plain_call *plain = plain_of(call);
    struct repeated_call join = plain_join_of(plain);
    plain->is_told = true;
    if (loop_now_ms(call->worker->loop) - plain->began_ms < LONG_WAIT_MS) {
        if (repeated_call_forget(plain->gateway, &join))
            repeated_news_send_end(call->worker, &join);
    } else if (repeated_call_doubt(plain->gateway, &join)) {
        repeated_news_send(call->worker, &join, REPEATED_CALL_DOUBT_MS);
    }
    answer_plain_outcome(call, plain, task);
}

/* The answer shows the task as it is now. */
static void plain_on_promised(struct call *call, const struct store_reply *reply)
{
    if (take_noted(call, reply))
        task_summary_list(call, TASK_SUMMARY_WORKING, answer_plain_pending);
}

static void on_timed_out(struct call *call)
{
    const struct plain_call *plain = plain_of(call);
    plain_leave(call, plain);
    /* At the end of the process: nothing but the state must lead to the call, whose user is still
     * to be asked, if at all. */
    if (sends_back_state(call) && !plain->is_held)
        answer_required(call, plain, STR("{}"), REQUEST_STATE_CONFIRM);
    else if (sends_back_state(call) && plain->state.round < call->snapshot->config->pseudo.rounds)
        answer_required(call, plain, STR("{}"), REQUEST_STATE_HOLD);
    else
        store_task_promise(call->worker->gateway->store, str_from(plain->id),
                           call_to_store(call, plain_on_promised));
}

/* A client that hears of progress may be held for longer. A client that could never ask again waits
 * for as long as the task takes. */
static void set_patience(struct call *call, const struct plain_call *plain)
{
    bool hears = call->envelope.progress_token.length > 0 && deferred_response_may_stream(call);
    if (call->is_executed)
        waiting_set_patience(call, call->patience_ms);
    else if (plain->key[0] || client_is_shown_tools(call) || sends_back_state(call))
        waiting_set_patience(call, client_wait_ms(call, hears));
    waiting_open(call);
    if (hears && deferred_response_is(call))
        deferred_response_show_progress(call);
}

/* One of thousands, maybe: what is in the store is not kept beside. */
static void wait_lightly(struct call *call)
{
    struct plain_call *plain = plain_of(call);
    plain->is_waiting = true;
    task_unref(plain->task);
    plain->task = NULL;
    call_forget_body(call);
}

/* The task waits, and its client with it. */
static void plain_hold(struct call *call)
{
    struct plain_call *plain = plain_of(call);
    plain->is_held = true;
    if (plain->is_joined && !(plain->is_pending && plain->task->on_result))
        execution_offer(call, plain->task, true);
    take_answers_to_server(call, plain);
    if (answer_with_questions(call, plain))
        return;
    call_ref(call);
    set_patience(call, plain);
    if (call->exchange) /* the process does not end just now */
        wait_lightly(call);
    call_unref(call);
}

static void hold_or_confirm(struct call *call, struct plain_call *plain)
{
    if (!confirmation_takes(call, plain))
        plain_hold(call);
}

static void begin_wait(struct call *call, const struct plain_call *plain)
{
    const struct waiting_options options = {
        .ended = plain_on_ended, .timed_out = on_timed_out, .opens_late = !sends_back_state(call)};
    waiting_begin(call, str_from(plain->id), &options);
}

/* The task is not to be joined after all. */
static void plain_end_wait(struct call *call)
{
    struct plain_call *plain = plain_of(call);
    waiting_end(call);
    plain->id[0] = '\0';
    plain->is_joined = false;
    task_unref(plain->task);
    plain->task = NULL;
}

/* ---- a task of its own ---- */

static void plain_join(struct call *call, const char *id);

/* A task on its way to the store. It outlives the client's patience. */
struct commitment {
    struct call *call;
    struct task *task;
    char digest[DIGEST_HEX_BYTES], id[TASK_ID_BYTES];
    char key[]; /* of the client */
};

static void plain_on_created(void *context, const struct store_reply *reply)
{
    struct commitment *commitment = context;
    struct call *call = commitment->call;
    if (reply->status == STORE_OK) {
        task_binding_announce(reply->task);
        if (call->exchange) {
            struct plain_call *plain = plain_of(call);
            plain_set_task(plain, reply->task);
            hold_or_confirm(call, plain);
        }
    } else {
        struct repeated_call join = {str_from(commitment->key), commitment->digest, commitment->id};
        task_create_log_refused(call, reply->status);
        task_room_give_back(call->worker->gateway, commitment->id);
        repeated_call_forget(call->worker->gateway, &join);
        execution_forget(call->worker, str_from(commitment->id));
        if (call->exchange && reply->is_unsure && commitment->key[0])
            task_create_answer_unsure(call, commitment->id,
                                      "the same call made again joins it if it was");
        else if (call->exchange)
            task_create_answer_refused(call, reply->status);
    }
    call_unref(call);
    free(commitment);
}

static void plain_commit(void *context)
{
    struct commitment *commitment = context;
    struct call *call = commitment->call;
    const struct store_limits most = task_room_take(call, commitment->id);
    store_task_create(call->worker->gateway->store, commitment->task, &most,
                      (struct store_call){call->worker->loop, plain_on_created, commitment});
}

static struct commitment *commitment_of(struct call *call, struct task *task)
{
    const struct plain_call *plain = plain_of(call);
    size_t key_bytes = strlen(plain->key) + 1;
    struct commitment *commitment = memory_alloc(sizeof *commitment + key_bytes);
    commitment->call = call_ref(call);
    commitment->task = task;
    memcpy(commitment->digest, plain->digest, sizeof commitment->digest);
    memcpy(commitment->id, task->id, sizeof commitment->id);
    memcpy(commitment->key, plain->key, key_bytes);
    return commitment;
}

/* The outcome of the call that was left has been told: this is a new call. */
static void forward_after_all(struct call *call)
{
    struct plain_call *plain = plain_of(call);
    call_step forward = plain->forward;
    call_part_remove(&plain->part);
    plain_drop(call, plain);
    forward(call);
}

static void plain_create(struct call *call)
{
    struct plain_call *plain = plain_of(call);
    if (plain->forward) {
        forward_after_all(call);
        return;
    }
    struct task *task = task_create_bound(call, &plain->decision, &plain->tool, plain->accelerated);
    char other[TASK_ID_BYTES];
    bool may_ask = how_to_confirm(call, task) != CONFIRM_OFF;
    task->on_result |=
        sends_back_state(call); /* one that left has cancelled, until it comes back */
    memcpy(plain->id, task->id, sizeof plain->id);
    struct commitment *commitment = commitment_of(call, task);
    struct repeated_call claim = plain_join_of(plain);
    if (task->on_result)
        execution_keep_headers(call, task);
    else
        execution_hold(call, task);
    begin_wait(call, plain);
    if (repeated_call_claim(plain->gateway, &claim, plain_commit, commitment, other)) {
        if (!may_ask)
            call_forget_body(call); /* it is on its way to the store */
        return;
    }
    execution_forget(call->worker, str_from(task->id));
    task_unref(task);
    call_unref(call);
    free(commitment);
    plain_end_wait(call);
    plain_join(call, other);
}

/* ---- an earlier call's ---- */

/* A call joins a task that has not ended. Later the outcome goes once to a call whose earlier wait
 * ended without it, or too late for its client. */
static bool may_join(const struct call *call, const struct plain_call *plain,
                     const struct task *task)
{
    struct repeated_call join = plain_join_of(plain);
    bool was_shared;
    if (!task_state_is_terminal(task->state) || plain->has_state)
        return true;
    bool may = repeated_call_take(plain->gateway, &join, &was_shared);
    if (may && was_shared)
        repeated_news_send_end(call->worker, &join);
    return may;
}

/* Of the request as its client made it. */
static const char *asked_digest(const struct task *task)
{
    return *task->original_request_digest ? task->original_request_digest : task->request_digest;
}

static void join_task(struct call *call, struct task *task)
{
    struct plain_call *plain = plain_of(call);
    /* A modern call that comes back runs its task, or goes on with the state that it was given. */
    plain->is_late = sends_back_state(call)
                         ? task_state_is_terminal(task->state) && !plain->has_state
                         : task->state != TASK_PENDING;
    plain_set_task(plain, task);
    if (plain->has_state) /* the call that made it was the same but for the state */
        repeated_call_digest(task->definition_digest, asked_digest(task), plain->digest);
    if (task_state_is_terminal(task->state)) {
        plain_on_ended(call, task);
        return;
    }
    hold_or_confirm(call, plain);
}

static void plain_on_read(struct call *call, const struct store_reply *reply)
{
    struct plain_call *plain = plain_of(call);
    struct repeated_call earlier = plain_join_of(plain);
    if (reply->status == STORE_FAILED || plain->attempts >= MOST_ATTEMPTS) {
        call_answer_no_store(call);
    } else if (reply->task && call_owns(call, reply->task) && may_join(call, plain, reply->task)) {
        join_task(call, reply->task);
    } else if (plain->has_state) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR(REQUEST_STATE_REFUSAL), NULL);
    } else {
        repeated_call_forget(plain->gateway, &earlier);
        plain_end_wait(call);
        plain_create(call);
    }
}

/* The wait begins before the task is read, so that it does not miss an end in between. */
static void plain_join(struct call *call, const char *id)
{
    struct plain_call *plain = plain_of(call);
    snprintf(plain->id, sizeof plain->id, "%s", id);
    plain->is_joined = true;
    plain->attempts++;
    begin_wait(call, plain);
    store_task_get(call->worker->gateway->store, str_from(plain->id),
                   call_to_store(call, plain_on_read));
}

/* ---- after a restart the store alone knows of an earlier one ---- */

static bool plain_is_same(const struct call *call, const struct plain_call *plain,
                          const struct task *task)
{
    char digest[DIGEST_HEX_BYTES];
    repeated_call_digest(task->definition_digest, asked_digest(task), digest);
    return call_owns(call, task) && strcmp(digest, plain->digest) == 0;
}

static void plain_on_found(struct call *call, const struct store_reply *reply)
{
    struct plain_call *plain = plain_of(call);
    const struct task *found = NULL;
    char id[TASK_ID_BYTES];
    for (size_t i = 0; i < reply->task_count && !found; i++)
        found = plain_is_same(call, plain, reply->tasks[i]) ? reply->tasks[i] : NULL;
    if (found) {
        struct repeated_call earlier = {str_from(plain->key), plain->digest, found->id};
        memcpy(id, found->id, sizeof id);
        if (repeated_call_claim(plain->gateway, &earlier, NULL, NULL, id))
            repeated_call_set_undelivered(plain->gateway, &earlier);
        plain_join(call, id);
    } else {
        plain_create(call);
    }
}

static void look_in_store(struct call *call)
{
    const struct store_task_query query = {
        .owner = str_from(call->owner),
        .session = str_from(call->session),
        .source = str_from(call->source->id),
        .tool = call_tool(call),
        .states = 1U << TASK_PENDING | 1U << TASK_APPROVED | 1U << TASK_EXECUTING,
        .limit = MOST_CANDIDATES,
    };
    store_task_list(call->worker->gateway->store, &query, call_to_store(call, plain_on_found));
}

/* Upstream knows this client. */
static void plain_begin(struct call *call)
{
    struct plain_call *plain = plain_of(call);
    char id[TASK_ID_BYTES];
    bool is_undelivered;
    char key[CLIENT_KEY_BYTES];
    inbox_key_of_call(call, key);
    inbox_touch(plain->gateway, str_from(key));
    client_key_of_owner(call, key);
    plain->key = call_memory_copy(call, str_from(key));
    inbox_touch(plain->gateway, str_from(plain->key));
    if (plain->has_state)
        plain_join(call, plain->state.id);
    else if (!plain->key[0])
        plain_create(call);
    else if (repeated_call_find(plain->gateway, str_from(plain->key), plain->digest, id,
                                &is_undelivered))
        plain_join(call, id);
    else
        look_in_store(call);
}

static struct plain_call *plain_add(struct call *call)
{
    struct plain_call *plain = call_memory_take(call, sizeof *plain);
    plain->gateway = call->worker->gateway;
    plain->began_ms = loop_now_ms(call->worker->loop);
    call_part_add(call, &plain->part, &plain_kind);
    return plain;
}

void plain_call_become_task(struct call *call, const struct policy_decision *decision,
                            const struct catalog_tool *tool, bool accelerated)
{
    struct plain_call *plain = plain_add(call);
    char request_digest[DIGEST_HEX_BYTES];
    plain->decision = *decision;
    plain->tool = *tool;
    plain->accelerated = accelerated;
    if (call_gives_session(call))
        client_request_digest(call, request_digest);
    else
        request_parts_digest(&call->envelope, request_digest);
    repeated_call_digest(tool->digest, request_digest, plain->digest);
    credential_check_then(call, plain_begin);
}

void plain_call_go_on(struct call *call, const struct request_state *state)
{
    struct plain_call *plain = plain_add(call);
    plain->has_state = true;
    plain->state = *state;
    call_find_tool(call, call_tool(call), &plain->tool);
    credential_check_then(call, plain_begin);
}

/* ---- a forwarded call whose client left ---- */

/* Upstream knows this client. */
static void rejoin(struct call *call)
{
    struct plain_call *plain = plain_of(call);
    char id[TASK_ID_BYTES];
    bool is_undelivered;
    plain->is_late = true; /* the task may end before it is read */
    inbox_touch(plain->gateway, str_from(plain->key));
    if (repeated_call_find(plain->gateway, str_from(plain->key), plain->digest, id,
                           &is_undelivered))
        plain_join(call, id);
    else
        forward_after_all(call);
}

static void verify_and_rejoin(struct call *call)
{
    if (!call->is_executed && client_knows_tasks(call))
        forward_after_all(call); /* another client of the owner has left the same call */
    else
        credential_check_then(call, rejoin);
}

bool plain_call_rejoins(struct call *call, const struct policy_decision *decision,
                        call_step forward)
{
    struct gateway *gateway = call->worker->gateway;
    char key[CLIENT_KEY_BYTES], digest[DIGEST_HEX_BYTES], id[TASK_ID_BYTES];
    bool is_undelivered;
    if (!repeated_calls_any_left(gateway) || call->envelope.task.raw.length > 0 ||
        call->envelope.kind != ENVELOPE_REQUEST)
        return false;
    call_identify(call);
    client_key_of_owner(call, key);
    if (!repeated_calls_has(gateway, str_from(key)))
        return false;
    repeated_call_digest_left(&call->envelope, digest);
    if (!repeated_call_find(gateway, str_from(key), digest, id, &is_undelivered))
        return false;
    struct plain_call *plain = plain_add(call);
    plain->decision = *decision;
    plain->forward = forward;
    plain->key = call_memory_copy(call, str_from(key));
    memcpy(plain->digest, digest, sizeof plain->digest);
    call_find_tool(call, call_tool(call), &plain->tool);
    call_with_facts(call, verify_and_rejoin);
    return true;
}

/* ---- a forwarded call that is slow: the server's answer in time, or the task ---- */

static struct call *take_call(struct detached_call *detached)
{
    struct call *call = detached->call;
    detached->call = NULL;
    call_part_remove(&detached->part);
    return call;
}

static void answer_result(const struct detached_call *detached, struct call *call,
                          struct str result)
{
    if (detached->is_executed)
        pseudo_answer_result(call, result);
    else
        call_answer_result(call, result);
}

static void answer_reply(struct detached_call *detached, struct str result,
                         const struct exchange_reply *reply)
{
    struct call *call = take_call(detached);
    struct str error = json_member(reply->message, "error");
    bool is_whole = reply->result == UPSTREAM_DONE && !reply->too_large;
    if (result.length > 0)
        answer_result(detached, call, result);
    else if (reply->status >= 400 && is_whole && !deferred_response_is_stream(call))
        server_refusal_pass(call, reply);
    else if (error.length > 0)
        call_answer_error_of_server(call, error);
    else
        relay_answer_failure(call,
                             reply->too_large ? LOST_UNREADABLE : lost_reason_of(reply->result));
}

static void answer_outcome(struct detached_call *detached)
{
    struct call *call = take_call(detached);
    struct str text = outcome_change(&detached->base.outcome)->outcome_text;
    if (detached->base.outcome.change.outcome == TASK_OUTCOME_RESULT)
        answer_result(detached, call, text);
    else
        call_answer_error_of_server(call, text);
}

static void pass_message(struct detached_call *detached, struct str message)
{
    if (detached->is_executed && detached->call->envelope.progress_token.length > 0)
        deferred_response_open(detached->call);
    deferred_response_pass_progress(detached->call, message);
}

/* Clients refuse a result that does not fit the output schema of the tool, unless it is an
 * error. */
static bool promises_other(const struct detached_call *detached)
{
    struct catalog_tool tool;
    catalog_find_tool(detached->base.worker->gateway->catalog, str_from(detached->base.source->id),
                      str_from(detached->base.task->owner), str_from(detached->base.task->tool),
                      &tool);
    return tool.has_output_schema && !detached->is_executed;
}

static void detached_answer_answer_task(struct detached_call *detached,
                                        const struct store_reply *working)
{
    bool is_other = promises_other(detached);
    const struct task *task = detached->base.task;
    OWNED_BUFFER(text);
    pseudo_write_promoted(detached->call, detached->patience_ms, task->id, &text);
    pseudo_answer_pending(take_call(detached),
                          &(struct pseudo_pending){.text = buffer_str(&text),
                                                   .task = task,
                                                   .working = working,
                                                   .promises_other = is_other});
}

const struct detached_callbacks detached_answers = {
    .answered = answer_reply,
    .ended = answer_outcome,
    .became_task = detached_answer_answer_task,
    .message = pass_message,
    .joinable = repeated_news_send_left,
    .forgotten = repeated_news_send_end,
};
