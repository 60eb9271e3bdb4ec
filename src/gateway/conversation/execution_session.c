/* Calls of those that have no session at the server: of the control plane, with the source's static
 * headers; of modern clients at a legacy server, with the owner's; and of clients whose session is
 * not known here, or which the server has forgotten, with the owner's, too. Each call gets a
 * session of its own. */
#include "answer_gate.h"
#include "execute_internal.h"
#include "invocation_rounds.h"
#include "rounds.h"
#include "server/own.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_server.h"
#include "taskgate/mcp/question.h"

/* That are open at once. */
#define MOST_ASKS 32
#define TOO_MANY "{\"code\":-32603,\"message\":\"Too many questions in one call\"}"

/* ---- what the server asks a modern client: rows of a round of the task ---- */

static struct question_table *rounds_of_session(const struct execution *execution)
{
    return execution->base.worker->gateway->questions;
}

bool execution_asks_is_open(const struct execution *execution)
{
    return execution->asked > 0 &&
           rounds_count(rounds_of_session(execution), str_from(execution->base.id), NULL) > 0;
}

static void respond(const struct execution *execution, struct str id, const char *member,
                    const char *value)
{
    ASSERT(execution->session);
    opened_session_respond(execution->session, id, member, str_from(value));
}

/* The client has not answered it. */
static void refuse_question(const struct execution *execution, const struct question *question)
{
    enum mcp_question kind = mcp_question_of(str_from(question->message));
    struct str id = str_from(question->asked_id);
    if (kind == MCP_QUESTION_FORM || kind == MCP_QUESTION_URL)
        respond(execution, id, "result", "{\"action\":\"cancel\"}");
    else
        respond(execution, id, "error",
                "{\"code\":-32603,\"message\":\"The client has not answered\"}");
}

static struct question *pull_question(const struct execution *execution, struct str raw_key,
                                      struct str id)
{
    struct question *question = rounds_pull(
        rounds_of_session(execution), str_from(execution->base.id), raw_key, id, clock_now_ms());
    ASSERT(!question || question->asked_id);
    return question;
}

static void note_questions(struct execution *execution)
{
    invocation_rounds_tell(&execution->base);
    if (execution->base.exchange)
        execution_set_silence(execution);
}

static void on_patience(void *context)
{
    struct execution *execution = execution_from(context);
    struct question *question;
    log_warn("The client of a task has not answered what the server asked",
             LOG_TEXT("task", execution->base.id));
    while ((question = pull_question(execution, STR_EMPTY, STR_EMPTY))) {
        refuse_question(execution, question);
        question_free_in_round(question);
    }
    note_questions(execution);
}

static void ask_client(struct execution *execution, struct str message, size_t others)
{
    OWNED_BUFFER(request);
    legacy_server_write_question(&request, message);
    if (!rounds_add(rounds_of_session(execution), str_from(execution->base.id), ++execution->asked,
                    json_member(message, "id"), buffer_str(&request), clock_now_ms())) {
        respond(execution, json_member(message, "id"), "error", TOO_MANY);
        return;
    }
    loop_timer_stop(&execution->patience);
    loop_timer_start_with(&execution->patience, on_patience, execution,
                          execution->base.snapshot->config->pseudo.elicitation_timeout_ms);
    log_info("Upstream asks the client of a task", LOG_TEXT("task", execution->base.id),
             LOG_NUMBER("requests", (int64_t)others + 1));
    note_questions(execution);
}

/* As the client has declared in the call itself. */
static bool may_ask(const struct execution *execution, enum mcp_question kind)
{
    const struct task *task = execution->base.task;
    struct envelope envelope;
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    bool may = mcp_may_ask(envelope.reserved.client_capabilities, kind);
    envelope_finish(&envelope);
    return may && !answer_gate_denies(task);
}

static void take_question(struct execution *execution, struct str message, enum mcp_question kind)
{
    struct str id = json_member(message, "id");
    size_t others = rounds_count(rounds_of_session(execution), str_from(execution->base.id), NULL);
    if (!server_budget_take(&execution->base.budget, SERVER_REQUEST, clock_monotonic_ms()))
        log_warn("A server asks too much in one call", LOG_TEXT("task", execution->base.id));
    else if (!may_ask(execution, kind))
        respond(execution, id, "error", "{\"code\":-32601,\"message\":\"Method not found\"}");
    else if (others >= MOST_ASKS)
        respond(execution, id, "error", TOO_MANY);
    else
        ask_client(execution, message, others);
}

static void withdraw(struct execution *execution, struct str request_id)
{
    bool has_changed = false;
    struct question *question;
    while (request_id.length > 0 && (question = pull_question(execution, STR_EMPTY, request_id))) {
        question_free_in_round(question);
        has_changed = true;
    }
    if (has_changed)
        note_questions(execution);
}

bool execution_asks_take(struct execution *execution, struct str message)
{
    bool is_request = json_member(message, "id").length > 0;
    enum mcp_question kind = is_request ? mcp_question_of(message) : MCP_QUESTION_NONE;
    bool is_withdrawal =
        !is_request && json_string_equals(json_member(message, "method"), STR(MCP_CANCELLED));
    if (kind != MCP_QUESTION_NONE)
        take_question(execution, message, kind);
    else if (is_withdrawal)
        withdraw(execution, json_path(message, "params", "requestId"));
    return kind != MCP_QUESTION_NONE || is_withdrawal;
}

void execution_asks_hold(struct execution *execution)
{
    size_t open;
    rounds_count(rounds_of_session(execution), str_from(execution->base.id), &open);
    if (open == 0)
        loop_timer_stop(&execution->patience);
}

void execution_asks_end(struct execution *execution, struct str answers, bool pass)
{
    struct str raw_key, answer;
    bool has_changed = false;
    for (size_t position = 0; json_next_member(answers, &position, &raw_key, &answer);) {
        struct question *question = pull_question(execution, raw_key, STR_EMPTY);
        if (!question)
            continue; /* the server does not want it any more */
        if (pass && json_type(answer) == JSON_OBJECT)
            opened_session_respond(execution->session, str_from(question->asked_id), "result",
                                   answer);
        else
            refuse_question(execution, question); /* or it is no answer that the protocol has */
        question_free_in_round(question);
        has_changed = true;
    }
    if (!execution_asks_is_open(execution))
        loop_timer_stop(&execution->patience);
    if (has_changed)
        note_questions(execution);
}

/* ---- the session ---- */

static void send_in_session(struct opened_session *session)
{
    execution_send(execution_from(session->listener_context));
}

/* Notifications there belong to no call. */
static void on_stream_message(void *context, struct str message)
{
    struct execution *execution = execution_from(context);
    if (!execution_asks_take(execution, message) && json_member(message, "id").length > 0)
        execution_server_message(execution, message);
}

static bool may_be_asked(const struct execution *execution)
{
    const struct task *task = execution->base.task;
    struct envelope envelope;
    if (!execution->leases_session)
        return false;
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    bool may = mcp_may_ask_any(envelope.reserved.client_capabilities);
    envelope_finish(&envelope);
    return may;
}

static void fail_opening(struct execution *execution, const struct exchange_reply *reply)
{
    static const char not_sent[] =
        "the gateway's own session could not be opened; nothing was sent";
    bool is_refusal = reply->status == 401 || reply->status == 403 || reply->status == 404;
    if (is_refusal || json_member(reply->message, "error").length > 0)
        execution_answered(execution, reply);
    else if (reply->result == UPSTREAM_SILENT)
        execution_fail(execution, JSONRPC_UPSTREAM_TIMEOUT, not_sent);
    else if (reply->status > 0)
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR, not_sent);
    else
        execution_fail(execution, JSONRPC_UPSTREAM_FAILED, not_sent);
}

/* Servers built with the official SDK ask on the session's stream, and not in the call. */
static void on_opened(struct opened_session *session, const struct exchange_reply *refusal)
{
    struct execution *execution = execution_from(session->listener_context);
    if (refusal) {
        fail_opening(execution, refusal);
        return;
    }
    session->listener = on_stream_message;
    headers_set_session(&execution->base.headers, &session->base);
    if (!may_be_asked(execution) || !opened_session_want_stream(session, send_in_session))
        execution_send(execution); /* its answer shows whether the server took the notification */
}

bool execution_session_is_needed(const struct execution *execution)
{
    bool is_modern = execution->base.task && execution_is_modern(execution);
    return (execution->own_session && !is_modern) || execution->leases_session ||
           execution->lacks_session;
}

/* The client declares in each call what it can be asked. */
static void write_bridged_params(struct execution *execution, struct buffer *params)
{
    const struct task *task = execution->base.task;
    struct envelope envelope;
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    legacy_server_write_initialize(params, envelope.reserved.client_capabilities,
                                   envelope.reserved.client_info);
    envelope_finish(&envelope);
}

void execution_session_open(struct execution *execution)
{
    struct task_trace trace;
    const struct sending sending = execution_sending(execution, &trace);
    OWNED_BUFFER(params);
    ASSERT(!execution->session);
    if (execution->own_session) {
        headers_finish(&execution->base.headers);
        service_session_begin(&execution->base.headers, execution->base.source);
    }
    if (execution->leases_session)
        write_bridged_params(execution, &params);
    else
        buffer_append(&params, service_session_params());
    const struct session_opening opening = {.worker = execution->base.worker,
                                            .snapshot = execution->base.snapshot,
                                            .source = execution->base.source,
                                            .headers = &execution->base.headers,
                                            .params = buffer_str(&params),
                                            .trace = sending.trace,
                                            .limit_ms = sending.silence_ms,
                                            .most_bytes = sending.most_bytes,
                                            .opened = on_opened,
                                            .context = execution};
    execution->session = opened_session_begin(&opening);
}

/* The server's questions would come in a session that the client does not know: it is not declared
 * that any can be asked. A later request of the call, as of a task of the server's, belongs to the
 * session that has gone. */
bool execution_session_reopens(struct execution *execution, const struct exchange_reply *reply)
{
    struct invocation *base = &execution->base;
    bool is_first = conversation_where(base) == CONVERSATION_RUNNING && !base->server_task &&
                    !base->up.has_asked;
    if (!is_first || execution_session_is_needed(execution) ||
        !exchange_reply_forgets_session(reply, &base->headers))
        return false;
    log_info("The server has forgotten the session of an approved call; it runs in a new one",
             LOG_TEXT("task", base->id));
    buffer_clear(&base->request_id);
    execution->lacks_session = true;
    execution_session_open(execution);
    return true;
}

void execution_session_close(struct execution *execution)
{
    if (execution->session)
        opened_session_destroy(execution->session);
    execution->session = NULL;
    if (execution->own_session)
        headers_finish(&execution->base.headers);
    else
        headers_drop(&execution->base.headers, HTTP_NAME_OF_SESSION);
}

void execution_say_last(struct execution *execution, struct str body, struct str id)
{
    struct sending sending = invocation_sending(&execution->base);
    sending.body = body;
    sending.id = id;
    if (execution->session)
        opened_session_leave(execution->session, body, id);
    else
        exchange_notify(execution->base.worker, &sending);
    execution->session = NULL;
}
