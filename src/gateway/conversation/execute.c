/* Approved calls of one worker: the credentials that are held for them, how each begins, what is
 * sent, what the server says and asks meanwhile, what comes of it, and what becomes of them when
 * their tasks change. */
#include "execute.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer_gate.h"
#include "auth/token_exchange.h"
#include "call/broadcast.h"
#include "call/client_profile.h"
#include "call/headers.h"
#include "call/request_headers.h"
#include "decision/drift_check.h"
#include "inbox/inbox.h"
#include "invocation.h"
#include "rounds.h"
#include "server/catalogue.h"
#include "server/own.h"
#include "state/task_aliases.h"
#include "task_inputs.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/gateway/conversation_claim.h"
#include "taskgate/identity/identity.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/question.h"
#include "taskgate/telemetry/task_trace.h"
#include "waiting.h"

/* Questions of the server that are open at once. */
#define MOST_ASKS 32
#define STORE_RETRY_MS 1000
#define LIST_RETRY_MS 5000
#define TOKEN_RETRY_MS 5000
#define LOOK_AGAIN_MS 1000
#define NOT_EXCHANGED "Approved; the client's token cannot be exchanged"

struct execution {
    struct invocation base; /* first; its request's credentials are `headers` */
    uint32_t magic;         /* EXECUTION_MAGIC */
    bool own_session;       /* the gateway's own, for the control plane */
    bool leases_session;    /* its server has sessions, and its client none: likewise one of the
                               gateway's */
    bool lacks_session; /* the client's is not known here, or the server has forgotten it: likewise
                         */
    struct identity *identity; /* the holder of the credentials, by a verified token; or NULL */
    char *authorization;       /* of the client, where it is exchanged for the server's; or NULL */
    int64_t authorization_until_ms; /* its end, wall clock */
    struct exchanger_wait *trade;   /* while it is being exchanged; only at OFFERED */
    bool has_all_headers;           /* `headers` are what is sent; else the credentials alone */
    char credentials_digest[DIGEST_HEX_BYTES]; /* of what would be sent; set by each beginning */
    /* Of one that leases a session: */
    uint64_t asked;             /* questions of the server so far */
    struct loop_timer patience; /* with its client, which is asked them */
};
#define EXECUTION_MAGIC 0x4757580d

static struct execution *execution_from(void *context)
{
    return MAGIC_CAST(struct execution, EXECUTION_MAGIC, context);
}

static const struct store_actor gateway_actor = {"gateway", "taskgate"};

static struct execution *find_execution(const struct gateway_worker *worker, struct str id)
{
    return map_get(worker->executions, id);
}

/* ---- the token that the server gets ---- */

/* Of a source that exchanges tokens. The client's is held, and exchanged when the call begins: the
 * other one may have ended while a human decided. */
static void finish_token(struct execution *execution)
{
    exchanger_wait_cancel(execution->trade);
    execution->trade = NULL;
    if (execution->authorization)
        explicit_bzero(execution->authorization, strlen(execution->authorization));
    free(execution->authorization);
    execution->authorization = NULL;
    identity_unref(execution->identity);
    execution->identity = NULL;
}

static void take_token(struct execution *execution, const struct call *call)
{
    struct str value = headers_known(&execution->base.headers, HTTP_NAME_AUTHORIZATION);
    finish_token(execution);
    if (call->identity)
        execution->identity = identity_ref(call->identity);
    if (!token_exchange_is_due(call->source) || !call->identity || value.length == 0)
        return;
    execution->authorization = memory_copy_str(value);
    execution->authorization_until_ms = call->identity->until_ms;
    headers_remove(&execution->base.headers, HTTP_NAME_AUTHORIZATION);
}

static struct token_request token_request_of(const struct execution *execution)
{
    return (struct token_request){
        .worker = execution->base.worker,
        .snapshot = execution->base.snapshot,
        .source = execution->base.source,
        .authorization = str_from(execution->authorization),
        .until_ms = execution->authorization_until_ms,
    };
}

/* The gateway's own session has the source's static credentials. */
static bool wants_token(const struct execution *execution)
{
    return execution->base.source && !execution->own_session &&
           token_exchange_is_due(execution->base.source);
}

static bool find_token(struct execution *execution)
{
    if (!wants_token(execution))
        return true;
    struct token_request request = token_request_of(execution);
    OWNED char *token = execution->authorization ? token_exchange_find(&request) : NULL;
    if (!token)
        return false;
    OWNED char *value = memory_format("Bearer %s", token);
    headers_set(&execution->base.headers, STR("authorization"), str_from(value));
    return true;
}

/* ---- what is sent ---- */

static struct question_table *questions_of(const struct execution *execution)
{
    return execution->base.worker->gateway->questions;
}

/* Whether the client has something to answer. */
static bool execution_is_asking(const struct execution *execution)
{
    return execution->asked > 0 &&
           rounds_count(questions_of(execution), str_from(execution->base.id), NULL) > 0;
}

/* The server may be silent while a person has its question. */
static int64_t silence_limit_ms(const struct execution *execution)
{
    return execution_is_asking(execution) ||
                   question_keeps_server_waiting(execution->base.worker->gateway,
                                                 execution->base.task)
               ? 0
               : execution->base.snapshot->config->times.execution_timeout_ms;
}

static void set_silence(struct execution *execution)
{
    struct server_link *up = &execution->base.up;
    if (up->exchange)
        up->protocol->set_silence(up, silence_limit_ms(execution));
}

/* In the trace of the request that made the task, which has ended long ago; linked to it, and to
 * the wait for a person, if there was one. */
static void join_trace(struct sending *sending, const struct task *task,
                       const struct task_trace *trace)
{
    sending->trace = (struct upstream_trace){
        .parent = {.context = &trace->create, .state = str_from(trace->state)},
        .links = {&trace->create, task->accelerated ? NULL : &trace->wait},
        .task = task->id,
    };
}

static struct sending sending_of_execution(struct server_link *link, struct task_trace *trace)
{
    const struct execution *execution = execution_from(link->context);
    const struct invocation *base = &execution->base;
    struct sending sending = invocation_sending(base);
    sending.silence_ms = silence_limit_ms(execution);
    sending.most_bytes = (size_t)base->snapshot->config->limits.result_bytes;
    if (telemetry_is_on && task_trace_read(trace, str_from(base->task->trace)))
        join_trace(&sending, base->task, trace);
    return sending;
}

/* Adds a `task` member, without which the server does not run the tool. A client that knows no
 * tasks sent none. */
static void add_task(struct buffer *body, const struct task *task)
{
    OWNED_BUFFER(asked);
    OWNED_BUFFER(params);
    buffer_append_format(&asked, "{\"ttl\":%" PRId64 "}", task->ttl_ms);
    json_write_with_member(&params, json_member(buffer_str(body), "params"), "task",
                           buffer_str(&asked));
    json_set_member(body, "params", buffer_str(&params));
}

static void execution_take_id(struct execution *execution)
{
    buffer_clear(&execution->base.request_id);
    server_write_id(&execution->base.request_id);
}

/* Where the server has the era of the request, only its id is another one, so that its headers stay
 * true. */
static void write_execution(struct server_link *link, struct headers *headers, struct buffer *body,
                            struct buffer *id)
{
    struct execution *execution = execution_from(link->context);
    const struct task *task = execution->base.task;
    OWNED_ENVELOPE(envelope);
    if (link->has_asked)
        execution_take_id(execution);
    buffer_append(id, buffer_str(&execution->base.request_id));
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    if (execution->leases_session)
        link->protocol->translate(body, &envelope, buffer_str(id));
    else
        envelope_write_executable(&envelope, str_slice(id->bytes + 1, id->length - 2),
                                  task->keep_task || !link->protocol->has_sessions, body);
    if (task->keep_task && (envelope.task.raw.length == 0 || execution->leases_session))
        add_task(body, task);
    headers_add_all(headers, &execution->base.headers);
}

static struct str request_of_execution(const struct server_link *link)
{
    const struct task *task = invocation_from(link->context)->task;
    return str_slice(task->request, task->request_length);
}

/* Whether it runs in a session of the gateway's. */
static bool execution_needs_session(const struct execution *execution)
{
    return execution->base.up.protocol->has_sessions &&
           (execution->own_session || execution->leases_session || execution->lacks_session);
}

/* ---- what the server asks a client that leases a session: rows of a round of the task ---- */

static void note_questions(struct execution *execution)
{
    task_inputs_tell(&execution->base);
    set_silence(execution);
}

static void on_patience(void *context)
{
    struct execution *execution = execution_from(context);
    log_warn("The client of a task has not answered what the server asked",
             LOG_TEXT("task", execution->base.id));
    rounds_refuse(&execution->base.up, str_from(execution->base.id));
    note_questions(execution);
}

/* As the client has declared in the call itself. */
static bool may_ask(const struct execution *execution, enum mcp_question kind)
{
    const struct task *task = execution->base.task;
    OWNED_ENVELOPE(envelope);
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    return mcp_may_ask(envelope.reserved.client_capabilities, kind) && !answer_gate_denies(task);
}

/* false: too many are open. */
static bool ask_client(struct execution *execution, const struct event *event)
{
    struct question_table *table = questions_of(execution);
    struct str id = str_from(execution->base.id);
    size_t others = rounds_count(table, id, NULL);
    char name[32];
    if (others >= MOST_ASKS)
        return false;
    snprintf(name, sizeof name, "r1:%" PRIu64, ++execution->asked);
    const struct round_request added = {1, name, name + strlen("r1:"), event->asked.id,
                                        event->asked.request};
    if (!rounds_add(table, id, &added))
        return false;
    loop_timer_start_with(&execution->patience, on_patience, execution,
                          execution->base.snapshot->config->pseudo.elicitation_timeout_ms);
    log_info("Upstream asks the client of a task", LOG_TEXT("task", execution->base.id),
             LOG_NUMBER("requests", (int64_t)others + 1));
    note_questions(execution);
    return true;
}

static void execution_take_question(struct execution *execution, const struct event *event)
{
    struct server_link *up = &execution->base.up;
    bool may = may_ask(execution, event->asked.kind);
    ASSERT(execution->leases_session && up->state != LINK_NEW);
    if (!may || !ask_client(execution, event))
        up->protocol->answer(up, event->asked.id,
                             &(struct answer){.kind = may ? ANSWER_TOO_MANY : ANSWER_UNABLE,
                                              .question = event->asked.kind});
}

/* Answers have come and do not go up yet: their questions end by no clock. */
static void hold_questions(struct execution *execution)
{
    size_t open;
    rounds_count(questions_of(execution), str_from(execution->base.id), &open);
    if (open == 0)
        loop_timer_stop(&execution->patience);
}

/* Gives the answers (JSON object, by the keys that the client has) to the server, or says that
 * there is none. */
static void answer_questions(struct execution *execution, struct str answers, bool pass)
{
    struct str raw_key, answer;
    bool has_changed = false;
    for (size_t position = 0; json_next_member(answers, &position, &raw_key, &answer);) {
        struct question *question =
            rounds_pull(questions_of(execution), str_from(execution->base.id), raw_key);
        /* Neither refused, nor none that the protocol has. */
        bool is_answer = pass && json_type(answer) == JSON_OBJECT;
        if (!question)
            continue; /* the server does not want it any more */
        rounds_respond(&execution->base.up, question, is_answer ? answer : STR_EMPTY);
        has_changed = true;
    }
    if (!execution_is_asking(execution))
        loop_timer_stop(&execution->patience);
    if (has_changed)
        note_questions(execution);
}

/* ---- leaving a state ---- */

/* Ends what is under way, and what is asked. Only the worker that runs a task may end the questions
 * of that task. */
static void leave_server(struct execution *execution)
{
    struct invocation *base = &execution->base;
    if (conversation_has_begun(base)) {
        question_end_task(base->worker, base->task);
        rounds_forget(questions_of(execution), str_from(base->id));
    }
    loop_timer_stop(&execution->patience);
    base->up.protocol->release(&base->up);
}

static bool leave(struct execution *execution, enum conversation_state to)
{
    struct invocation *base = &execution->base;
    struct gateway *gateway = base->worker->gateway;
    bool was_under_way = conversation_is_under_way(base);
    leave_server(execution);
    loop_timer_stop(&base->timer);
    if (!conversation_move(base, to))
        return false;
    if (was_under_way)
        atomic_fetch_sub(&gateway->in_flight, 1);
    if (base->server_task)
        task_aliases_remove(gateway->task_aliases, base->audience.key, base->server_task);
    if (execution_needs_session(execution) && execution->own_session)
        headers_finish(&base->headers);
    else if (execution_needs_session(execution))
        headers_drop(&base->headers, HTTP_NAME_OF_SESSION);
    return true;
}

static void execution_end(struct execution *execution)
{
    if (conversation_where(&execution->base) == CONVERSATION_ENDED)
        return;
    leave(execution, CONVERSATION_ENDED);
    finish_token(execution);
    map_remove(execution->base.worker->executions, str_from(execution->base.id));
    invocation_unref(&execution->base);
}

static void wait_for_call(struct execution *execution)
{
    if (!leave(execution, CONVERSATION_OFFERED))
        execution_end(execution);
}

/* ---- how it ends: an answer, a refusal of the credentials, an error of the gateway's own ---- */

static void store_as(struct execution *execution, enum conversation_state state)
{
    struct invocation *base = &execution->base;
    leave_server(execution);
    if (!conversation_move(base, state)) {
        execution_end(execution);
        return;
    }
    log_info("Call executed", LOG_TEXT("task", base->id),
             LOG_TEXT("state", task_state_name(base->outcome.change.to)));
    invocation_store(base);
}

static void execution_fail(struct execution *execution, enum jsonrpc_error error,
                           const char *details)
{
    outcome_of_failure(&execution->base.outcome, str_from(execution->base.task->tool), error,
                       details);
    store_as(execution, CONVERSATION_STORING);
}

/* Another worker may have checked the same call a moment ago and run it. `unless_begun` makes the
 * store drop this refusal then. */
static void refuse_call(struct execution *execution, enum jsonrpc_error error)
{
    ASSERT(conversation_where(&execution->base) == CONVERSATION_CHECKING);
    log_warn("An approved call is not run: what was approved has changed",
             LOG_TEXT("task", execution->base.id), LOG_TEXT("error", jsonrpc_error_type(error)));
    outcome_of_failure(&execution->base.outcome, str_from(execution->base.task->tool), error, "");
    execution->base.outcome.change.unless_begun = true;
    store_as(execution, CONVERSATION_REFUSED);
}

/* The server refused the credentials. The approval stands until execute-by, and the owner's next
 * call brings fresh credentials (behaviour 7.10). */
static void back_to_approved(struct execution *execution)
{
    static const char refused_too_often[] =
        "upstream has refused the credentials of each of three tries";
    ASSERT(!execution->base.server_task && !execution->base.up.has_asked);
    if (task_refusal_count(execution->base.task) + 1 >= TASK_MOST_TRIES) {
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR, refused_too_often);
        return;
    }
    execution->base.outcome.change =
        (struct task_change){.to = TASK_APPROVED,
                             .credentials = execution->credentials_digest,
                             .status_message = execution->base.task->accelerated
                                                   ? "Upstream refused the credentials"
                                                   : "Approved; upstream refused the credentials"};
    log_warn("Upstream refused the credentials of an approved call",
             LOG_TEXT("task", execution->base.id));
    store_as(execution, CONVERSATION_STORING);
}

static bool is_refusal(int status)
{
    return status == 401 || status == 403 || status == 404;
}

/* The call's answer has come, or there is none. */
static void execution_answered(struct execution *execution, const struct event *event)
{
    struct invocation *base = &execution->base;
    const struct exchange_reply *reply = event->reply;
    bool is_answer = json_member(reply->message, "result").length > 0 ||
                     json_member(reply->message, "error").length > 0;
    bool was_not_let_in = is_refusal(reply->status) || reply->result == UPSTREAM_CONNECT_FAILED;
    if (reply->too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    if (!is_answer && is_refusal(reply->status) && !base->server_task && !base->up.has_asked) {
        back_to_approved(execution);
        return;
    }
    if (!is_answer && was_not_let_in && base->server_task)
        outcome_of_failure(&base->outcome, str_from(base->task->tool), JSONRPC_UPSTREAM_ERROR,
                           "upstream runs the call, and no longer says what becomes of it");
    else if (event->kind != EVENT_RESULT && event->text.length > 0)
        outcome_of_error(&base->outcome, event->text);
    else
        invocation_take_reply(base, reply);
    store_as(execution, CONVERSATION_STORING);
}

/* ---- what the server says ---- */

static void execution_pass_message(struct execution *execution, struct str message)
{
    char key[CLIENT_KEY_BYTES];
    struct question_origin origin = invocation_origin(&execution->base);
    inbox_key_of_task(execution->base.task, key);
    origin.key = key;
    origin.task = execution->base.task;
    notices_take(&origin, message);
}

/* Whether the questions of a round are requests to it. */
static bool client_has_session(const struct invocation *invocation)
{
    const struct task *task = invocation->task;
    return *task->mirrored_headers && *task->session;
}

/* They need one round only: their keys are unique in the life of their task. */
static void take_questions_of_task(struct invocation *base, struct str requests)
{
    struct question_table *table = base->worker->gateway->questions;
    struct str id = str_from(base->id);
    bool has_changed = requests.length > 0 ? rounds_put(table, id, 1, requests, clock_now_ms())
                                           : rounds_forget(table, id);
    if (has_changed)
        task_inputs_tell(base);
    if (has_changed && client_has_session(base))
        task_inputs_ask(base);
}

static void execution_take_round(struct invocation *base, struct str requests)
{
    if (conversation_where(base) != CONVERSATION_FOLLOWING)
        task_inputs_take_round(base, requests, client_has_session(base));
    else if (answer_gate_denies(base->task))
        task_inputs_lost(base, LOST_TASK_ROUND);
    else
        take_questions_of_task(base, requests);
}

static void follow_task(struct invocation *base, struct str id)
{
    struct gateway *gateway = base->worker->gateway;
    ASSERT(!base->server_task);
    base->server_task = memory_copy_str(id);
    if (!conversation_move(base, CONVERSATION_FOLLOWING)) {
        execution_end(execution_from(base));
        return;
    }
    if (base->up.protocol->has_sessions)
        task_aliases_put(gateway->task_aliases, base->session[0] ? base->audience.key : "",
                         base->server_task, base->task);
    store_task_set_upstream(gateway->store, str_from(base->id), id,
                            (struct store_call){base->worker->loop, NULL, NULL});
}

static void take_end_of_task(struct invocation *base, const struct event *event)
{
    if (event->kind == EVENT_RESULT)
        invocation_take_result(base, event->text);
    else if (event->kind == EVENT_ERROR)
        outcome_of_error(&base->outcome, event->text);
    else
        base->outcome.change =
            (struct task_change){.to = TASK_CANCELLED, .by = "upstream", .reason = "by upstream"};
    store_as(execution_from(base), CONVERSATION_STORING);
}

/* Sends the call itself. At RUNNING it goes to a server that had forgotten its session. */
static void execution_send(struct execution *execution)
{
    struct invocation *base = &execution->base;
    execution_take_id(execution);
    if (conversation_where(base) != CONVERSATION_RUNNING &&
        !conversation_move(base, CONVERSATION_RUNNING))
        execution_end(execution);
    else
        base->up.protocol->begin(&base->up);
}

/* A call of the control plane is one of the gateway's own. */
static void open_session(struct execution *execution)
{
    struct invocation *base = &execution->base;
    ASSERT(execution_needs_session(execution));
    if (execution->own_session) {
        headers_finish(&base->headers);
        service_session_begin(&base->headers, base->source);
    }
    base->up.protocol->open(&base->up, execution->leases_session);
}

static void fail_opening(struct execution *execution, const struct event *event)
{
    static const char not_sent[] =
        "the gateway's own session could not be opened; nothing was sent";
    const struct exchange_reply *reply = event->reply;
    if (is_refusal(reply->status) || event->text.length > 0)
        execution_answered(execution, event);
    else if (reply->result == UPSTREAM_SILENT)
        execution_fail(execution, JSONRPC_UPSTREAM_TIMEOUT, not_sent);
    else if (reply->status > 0)
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR, not_sent);
    else
        execution_fail(execution, JSONRPC_UPSTREAM_FAILED, not_sent);
}

/* The server has not looked at the call, because it has forgotten the client's session. The call is
 * sent once more, with the same credentials in a session of its own. The server's questions would
 * come in a session that the client does not know: it is not declared that any can be asked. */
static void run_in_new_session(struct execution *execution)
{
    struct invocation *base = &execution->base;
    ASSERT(conversation_where(base) == CONVERSATION_RUNNING && !base->server_task);
    log_info("The server has forgotten the session of an approved call; it runs in a new one",
             LOG_TEXT("task", base->id));
    base->up.protocol->release(&base->up);
    buffer_clear(&base->request_id);
    execution->lacks_session = true;
    open_session(execution);
}

static void take_event_of_execution(void *context, const struct event *event)
{
    struct invocation *base = invocation_from(context);
    struct execution *execution = execution_from(base);
    switch (event->kind) {
    case EVENT_MESSAGE:
        execution_pass_message(execution, event->text);
        break;
    case EVENT_QUESTION:
        execution_take_question(execution, event);
        break;
    case EVENT_ROUND:
        execution_take_round(base, event->text);
        break;
    case EVENT_WITHDRAWN:
        if (!execution->leases_session)
            take_questions_of_task(base, STR_EMPTY);
        else if (rounds_withdraw(questions_of(execution), str_from(base->id), event->asked.id))
            note_questions(execution);
        break;
    case EVENT_AGAIN:
        task_inputs_send(base, STR_EMPTY);
        break;
    case EVENT_OPENED:
        execution_send(execution);
        break;
    case EVENT_FOLLOWED:
        follow_task(base, event->text);
        break;
    case EVENT_RESULT:
    case EVENT_ERROR:
    case EVENT_REFUSED:
    case EVENT_CANCELLED:
        if (event->reply)
            execution_answered(execution, event);
        else
            take_end_of_task(base, event);
        break;
    case EVENT_LOST:
        if (event->lost > LOST_REPLY)
            task_inputs_lost(base, event->lost);
        else if (event->lost == LOST_FORGOTTEN && !execution_needs_session(execution))
            run_in_new_session(execution);
        else
            execution_answered(execution, event);
        break;
    case EVENT_UNOPENED:
        fail_opening(execution, event);
        break;
    default: /* tasks have no progress and no log */
        break;
    }
}

static const struct link_maker execution_maker = {.write = write_execution,
                                                  .sending = sending_of_execution,
                                                  .request = request_of_execution,
                                                  .take = take_event_of_execution};

/* ---- the client's answers inside the call: past the gate that records them, and perhaps asks
 * people ---- */

struct passing {
    struct execution *execution; /* a reference */
    struct rounds_taken taken;
    struct buffer request_id; /* of the call as it was sent when the server asked */
};

static void passing_destroy(void *context)
{
    struct passing *passing = context;
    invocation_unref(&passing->execution->base);
    rounds_taken_finish(&passing->taken);
    buffer_finish(&passing->request_id);
    free(passing);
}

/* ---- to the server ---- */

static void send_answers(struct execution *execution, struct str answers)
{
    if (execution->leases_session)
        answer_questions(execution, answers, true);
    else if (conversation_where(&execution->base) == CONVERSATION_FOLLOWING)
        execution->base.up.protocol->answer_round(&execution->base.up, answers);
    else
        task_inputs_send(&execution->base, answers);
}

/* Somebody who says no to a form declines it. There is nothing like that for a model or for
 * folders. false: something else was asked. */
static bool write_declined(struct buffer *out, struct str questions)
{
    struct str key, question;
    for (size_t position = 0; json_next_member(questions, &position, &key, &question);) {
        if (!json_string_equals(json_member(question, "method"), STR(MCP_ELICIT)))
            return false;
        buffer_append_format(out, "%c\"%.*s\":{\"action\":\"decline\"}",
                             out->length > 0 ? ',' : '{', STR_ARGS(key));
    }
    buffer_append_char(out, '}');
    return true;
}

static void refuse_answers(struct execution *execution, const struct passing *passing)
{
    OWNED_BUFFER(declined);
    if (execution->leases_session) {
        answer_questions(execution, buffer_str(&passing->taken.answers), false);
    } else if (write_declined(&declined, buffer_str(&passing->taken.questions))) {
        send_answers(execution, buffer_str(&declined));
    } else {
        execution->base.up.protocol->cancel(&execution->base.up, "");
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR,
                       "the client's answer to what upstream asked was refused");
    }
}

/* The call may have ended meanwhile, or have been sent anew. */
static bool is_same_call(const struct passing *passing)
{
    const struct invocation *base = &passing->execution->base;
    enum conversation_state where = conversation_where(base);
    return (where == CONVERSATION_RUNNING || where == CONVERSATION_FOLLOWING) &&
           str_equal(buffer_str(&passing->request_id), buffer_str(&base->request_id));
}

static void on_answers_judged(void *context, enum answer_verdict verdict)
{
    struct passing *passing = context;
    struct execution *execution = passing->execution;
    if (is_same_call(passing) && verdict == ANSWER_PASSES)
        send_answers(execution, buffer_str(&passing->taken.answers));
    else if (is_same_call(passing) && verdict == ANSWER_REFUSED)
        refuse_answers(execution, passing);
    passing_destroy(passing);
}

/* ---- from the client ---- */

static void pass_gate_of_answers(struct execution *execution, struct passing *passing)
{
    const struct answer_gate_answers answers = {
        .task = execution->base.task,
        .questions = buffer_str(&passing->taken.questions),
        .answers = buffer_str(&passing->taken.answers),
    };
    buffer_append(&passing->request_id, buffer_str(&execution->base.request_id));
    if (execution->leases_session)
        hold_questions(execution);
    answer_gate_pass(execution->base.worker, &answers, on_answers_judged, passing_destroy, passing);
}

static void on_client_answered(struct invocation *base)
{
    struct execution *execution = execution_from(base);
    struct str id = str_from(base->id);
    bool takes_some =
        execution->leases_session || conversation_where(base) == CONVERSATION_FOLLOWING;
    struct passing *passing = memory_alloc(sizeof *passing);
    *passing = (struct passing){.execution = execution};
    invocation_ref(base);
    bool has_taken = takes_some ? rounds_take_some(questions_of(execution), id, &passing->taken)
                                : task_inputs_take(base, &passing->taken);
    if (has_taken && answer_gate_applies(base->task)) {
        pass_gate_of_answers(execution, passing);
        return;
    }
    if (has_taken)
        send_answers(execution, buffer_str(&passing->taken.answers));
    passing_destroy(passing);
}

/* ---- how it begins: compared with what was approved, `executing` committed, then the first byte
 * ---- */

/* Puts the headers of the create to the credentials, which alone are held while the task waits.
 * false: they are not known any more, so nothing may be sent. */
static bool complete_headers(struct execution *execution, const struct task *task)
{
    struct headers *headers = &execution->base.headers;
    if (execution->own_session || execution->has_all_headers)
        return true;
    execution->has_all_headers = request_headers_complete(
        execution->base.worker->gateway->request_headers, str_from(execution->base.id), headers);
    if (*task->mirrored_headers) {
        mirrored_headers_restore(headers, str_from(task->mirrored_headers));
        headers_drop(headers, HTTP_NAME_OF_SESSION); /* a bridged client's, given out here */
    }
    return execution->has_all_headers;
}

static void begin_call(struct execution *execution, struct task *task);

static void on_retry(void *context)
{
    struct execution *execution = execution_from(context);
    begin_call(execution, execution->base.task);
}

static void start_timer(struct execution *execution, int64_t in_ms)
{
    loop_timer_start_with(&execution->base.timer, on_retry, execution, in_ms);
}

static void try_later(struct execution *execution, int64_t in_ms)
{
    wait_for_call(execution);
    start_timer(execution, in_ms);
}

/* ---- the token of the server ---- */

/* The owner and operators read why the approved task does not run. */
static void set_message(struct gateway_worker *worker, const struct task *task, const char *message)
{
    if (strcmp(task->status_message, message) != 0)
        store_task_set_message(worker->gateway->store, str_from(task->id), str_from(message),
                               (struct store_call){worker->loop, NULL, NULL});
}

static void say_not_exchanged(struct execution *execution)
{
    log_warn("An approved call waits: the client's token cannot be exchanged",
             LOG_TEXT("task", execution->base.id));
    set_message(execution->base.worker, execution->base.task, NOT_EXCHANGED);
}

static void on_exchanged(void *context, enum exchanger_result result, struct str token)
{
    struct execution *execution = execution_from(context);
    execution->trade = NULL;
    if (result == EXCHANGER_DONE)
        on_retry(execution);
    else if (result == EXCHANGER_UNAVAILABLE)
        start_timer(execution, TOKEN_RETRY_MS);
    else
        say_not_exchanged(execution);
}

/* At OFFERED: begins anew with the token, or later. Does neither when only another token of the
 * client's helps: its next call brings that. */
static void obtain_token(struct execution *execution)
{
    struct token_request request = token_request_of(execution);
    ASSERT(conversation_where(&execution->base) == CONVERSATION_OFFERED);
    if (execution->trade)
        return;
    if (!execution->authorization || clock_now_ms() >= execution->authorization_until_ms) {
        say_not_exchanged(execution);
        return;
    }
    execution->trade = token_exchange_start(&request, on_exchanged, execution);
    if (!execution->trade)
        start_timer(execution, TOKEN_RETRY_MS);
}

/* ---- committing ---- */

static struct drift_check drift_of(const struct execution *execution)
{
    const struct invocation *base = &execution->base;
    return (struct drift_check){.identity = execution->identity,
                                .catalog = base->worker->gateway->catalog,
                                .snapshot = base->snapshot,
                                .source = base->source,
                                .task = base->task};
}

static void take_snapshot(struct invocation *base)
{
    snapshot_unref(base->snapshot);
    base->snapshot = snapshot_current();
    base->source = config_source_find(base->snapshot->config, str_from(base->task->source));
}

/* The rules in force may have changed while `executing` was on its way to the disk, and so may the
 * tool. A list that is out of date by now says nothing of it: a current one was compared right
 * before, and the call cannot wait for the next any more. */
static bool is_still_allowed(struct execution *execution, enum jsonrpc_error *error)
{
    take_snapshot(&execution->base);
    struct drift_check drift = drift_of(execution);
    drift.was_compared = true;
    return drift_check_passes(&drift, error);
}

/* `executing` is on disk, so the outcome is this execution's to tell. No byte has gone to the
 * server before. */
static void run_call(struct execution *execution, struct task *task)
{
    enum jsonrpc_error error;
    ASSERT(task->state == TASK_EXECUTING);
    ASSERT(execution->base.up.state == LINK_NEW); /* so nothing of it has been sent */
    invocation_set_task(&execution->base, task);
    bool is_allowed = is_still_allowed(execution, &error);
    if (!conversation_move(&execution->base, CONVERSATION_OPENING)) {
        execution_end(execution);
        return;
    }
    if (!is_allowed) {
        log_warn("An approved call is not run: what was approved has changed",
                 LOG_TEXT("task", task->id), LOG_TEXT("error", jsonrpc_error_type(error)));
        execution_fail(execution, error, "");
        return;
    }
    log_info("Executing", LOG_TEXT("task", task->id), LOG_TEXT("tool", task->tool));
    if (execution_needs_session(execution))
        open_session(execution);
    else
        execution_send(execution);
}

static void on_executing(void *context, const struct store_reply *reply)
{
    struct execution *execution = execution_from(context);
    ASSERT(conversation_where(&execution->base) == CONVERSATION_COMMITTING ||
           conversation_where(&execution->base) == CONVERSATION_ENDED);
    if (conversation_where(&execution->base) == CONVERSATION_ENDED)
        ; /* the answer comes too late */
    else if (reply->status == STORE_OK)
        run_call(execution, reply->task);
    else if (reply->status == STORE_FAILED)
        try_later(execution, STORE_RETRY_MS); /* a waiting client does not ask again */
    else
        execution_end(execution);       /* another worker was first */
    invocation_unref(&execution->base); /* the message's own reference */
}

static void commit_call(struct execution *execution)
{
    struct invocation *base = &execution->base;
    struct task_change change = {.to = TASK_EXECUTING,
                                 .credentials = execution->credentials_digest};
    if (!conversation_move(base, CONVERSATION_COMMITTING)) {
        execution_end(execution);
        return;
    }
    invocation_ref(base);
    store_task_change(base->worker->gateway->store, str_from(base->id), &change, &gateway_actor,
                      (struct store_call){base->worker->loop, on_executing, execution});
}

/* ---- checking ---- */

/* The call cannot be compared without the server's list of tools, and a call that was not compared
 * does not run. The approval stands until execute-by. The owner's next call tries again at once. */
static void wait_for_list(struct execution *execution)
{
    log_warn("An approved call waits: upstream does not say what its tools are now",
             LOG_TEXT("task", execution->base.id),
             LOG_TEXT("source", execution->base.task->source));
    try_later(execution, LIST_RETRY_MS);
}

static void check_call(struct execution *execution)
{
    enum jsonrpc_error error;
    const struct drift_check drift = drift_of(execution);
    if (!drift_check_can_compare(&drift))
        wait_for_list(execution);
    else if (!drift_check_passes(&drift, &error))
        refuse_call(execution, error);
    else
        commit_call(execution);
}

/* The server has no sessions, so these are what the call is sent with. */
static void set_own_headers(struct execution *execution)
{
    struct invocation *base = &execution->base;
    headers_finish(&base->headers);
    service_session_begin(&base->headers, base->source);
    mirrored_headers_restore(&base->headers, str_from(base->task->mirrored_headers));
}

static bool take_rules(struct execution *execution)
{
    bool repeats_body = *execution->base.task->mirrored_headers;
    take_snapshot(&execution->base);
    if (execution->base.source && !execution->own_session)
        headers_set_static(&execution->base.headers, execution->base.source);
    ASSERT(execution->base.up.state == LINK_NEW);
    execution->base.up.protocol =
        server_protocol_of(execution->base.worker, execution->base.source, repeats_body);
    execution->leases_session = repeats_body && execution->base.up.protocol->has_sessions;
    if (execution->own_session && execution->base.source &&
        !execution->base.up.protocol->has_sessions)
        set_own_headers(execution);
    execution->lacks_session =
        execution->lacks_session ||
        (!execution->own_session && !repeats_body && execution->base.source &&
         service_session_is_wanted(execution->base.worker, execution->base.source,
                                   &execution->base.headers));
    bool has_token = find_token(execution);
    request_headers_digest_credentials(&execution->base.headers, execution->base.source,
                                       execution->credentials_digest);
    return has_token;
}

static void on_looked(void *context)
{
    struct execution *execution = execution_from(context);
    struct invocation *base = &execution->base;
    if (conversation_where(base) == CONVERSATION_CHECKING) {
        if (atomic_load(&base->worker->gateway->shutting_down)) {
            wait_for_call(execution);
        } else if (take_rules(execution)) {
            check_call(execution);
        } else {
            wait_for_call(execution);
            obtain_token(execution);
        }
    }
    invocation_unref(base); /* the fetch's own reference */
}

/* Asks the server what the tool is now: as the gateway itself, or with the owner's credentials. */
static void look_at_tool(struct execution *execution)
{
    struct invocation *base = &execution->base;
    invocation_ref(base);
    if (execution->own_session)
        tools_fetch_for_gateway(base->worker, base->snapshot, base->source, on_looked, execution);
    else
        tools_fetch_with(base->worker, base->snapshot, base->source, str_from(base->task->owner),
                         &base->headers, execution->lacks_session, on_looked, execution);
}

static void begin_call(struct execution *execution, struct task *task)
{
    ASSERT(strcmp(execution->base.id, task->id) == 0);
    struct invocation *base = &execution->base;
    struct gateway *gateway = base->worker->gateway;
    if (conversation_where(base) != CONVERSATION_OFFERED || atomic_load(&gateway->shutting_down))
        return;
    loop_timer_stop(&base->timer);
    invocation_set_task(base, task);
    if (!complete_headers(execution, task)) {
        execution_end(execution); /* the owner's next call offers its own */
        return;
    }
    if (!take_rules(execution)) {
        obtain_token(execution);
        return;
    }
    /* The same credentials would only be refused again. */
    if (task_has_refused(task, execution->credentials_digest))
        return;
    if (!conversation_move(base, CONVERSATION_CHECKING))
        return;
    atomic_fetch_add(&gateway->in_flight, 1);
    const struct drift_check drift = drift_of(execution);
    if (drift_check_must_look(&drift))
        look_at_tool(execution);
    else
        check_call(execution);
}

/* ---- holding ---- */

static void on_outcome_stored(struct invocation *invocation)
{
    execution_end(execution_from(invocation));
}

static void execution_destroy(struct invocation *invocation)
{
    struct execution *execution = execution_from(invocation);
    finish_token(execution);
    MAGIC_CLEAR(execution);
    free(execution);
}

static void fail_round(struct invocation *invocation, enum jsonrpc_error error, const char *why)
{
    execution_fail(execution_from(invocation), error, why);
}

static const struct invocation_class execution_class = {.kind = CONVERSATION_APPROVED,
                                                        .end = on_outcome_stored,
                                                        .destroy = execution_destroy,
                                                        .answered = on_client_answered,
                                                        .give_up = fail_round,
                                                        .maker = &execution_maker};

static struct execution *obtain_execution(struct gateway_worker *worker, const struct task *task)
{
    const struct str id = str_slice(task->id, strlen(task->id));
    struct execution *execution = find_execution(worker, id);
    if (execution)
        return execution;
    execution = memory_alloc(sizeof *execution);
    MAGIC_SET(execution, EXECUTION_MAGIC);
    invocation_init(&execution->base, &execution_class, CONVERSATION_OFFERED, worker);
    loop_timer_init(&execution->patience, worker->loop, NULL, execution);
    memcpy(execution->base.id, task->id, sizeof execution->base.id);
    map_put(worker->executions, id, execution);
    return execution;
}

/* An owner by token may omit the session, in which the call is to run all the same. */
static bool keep_session_header(struct headers *headers, const struct execution *execution)
{
    struct str session = headers_find(&execution->base.headers, "mcp-session-id");
    if (session.length == 0)
        return false;
    headers_add(headers, STR("mcp-session-id"), session);
    return true;
}

/* NULL: the call's headers differ from those of the approved call, so its credentials are not used.
 */
static struct execution *hold_credentials(const struct call *call, const struct task *task)
{
    const struct str id = str_slice(task->id, strlen(task->id));
    struct execution *execution = find_execution(call->worker, id);
    struct question_audience audience;
    struct headers headers;
    if (execution && conversation_is_under_way(&execution->base))
        return execution;
    question_audience(call, &audience);
    headers_init(&headers, true);
    if (!request_headers_take(call->worker->gateway->request_headers, id, str_from(audience.key),
                              task->headers_digest, call->exchange, &headers))
        return NULL;
    bool keeps_session = execution && headers_find(&headers, "mcp-session-id").length == 0 &&
                         keep_session_header(&headers, execution);
    headers_fit(&headers);
    execution = obtain_execution(call->worker, task);
    headers_finish(&execution->base.headers);
    execution->base.headers = headers;
    execution->has_all_headers = execution->lacks_session = false;
    take_token(execution, call);
    /* The questions of the call go to those who can be asked in its session. */
    if (!keeps_session) {
        execution->base.audience = audience;
        memcpy(execution->base.session, call->session, sizeof execution->base.session);
    }
    return execution;
}

void execution_keep_headers(const struct call *call, const struct task *task)
{
    char key[CLIENT_KEY_BYTES];
    client_key_of_call(call, key);
    request_headers_keep(call->worker->gateway->request_headers,
                         str_slice(task->id, strlen(task->id)), str_from(key), call->exchange);
}

void execution_hold(const struct call *call, const struct task *task)
{
    execution_keep_headers(call, task);
    hold_credentials(call, task);
}

void execution_forget(struct gateway_worker *worker, struct str id)
{
    struct execution *execution = find_execution(worker, id);
    request_headers_forget(worker->gateway->request_headers, id);
    if (execution && !conversation_is_under_way(&execution->base))
        execution_end(execution);
}

static void deliver_session_end(struct gateway_worker *worker, struct str key)
{
    request_headers_forget_session(worker->gateway->request_headers, key);
    /* Removal moves entries about, so the walk starts again after each. */
    size_t position = 0;
    void *value;
    while (map_next(worker->executions, &position, NULL, &value)) {
        struct execution *execution = value;
        if (conversation_is_under_way(&execution->base) ||
            !str_equal(str_from(execution->base.audience.key), key))
            continue;
        execution_end(execution);
        position = 0;
    }
}

void execution_forget_session(struct gateway *gateway, struct str key)
{
    broadcast_client(gateway, key, deliver_session_end);
}

void executions_drop(struct gateway_worker *worker)
{
    size_t position = 0;
    void *value;
    while (map_next(worker->executions, &position, NULL, &value)) {
        execution_end(value);
        position = 0;
    }
}

/* ---- offered ---- */

static void say_headers_differ(const struct call *call, const struct task *task)
{
    log_warn("A call lends no credentials: its headers differ from those of the approved one",
             LOG_TEXT("task", task->id));
    if (task->state == TASK_APPROVED)
        set_message(call->worker, task, EXECUTION_OTHER_HEADERS);
}

bool execution_offer(const struct call *call, struct task *task, bool wants_result)
{
    if (task_state_is_terminal(task->state) || task->state == TASK_EXECUTING)
        return true;
    struct execution *execution = hold_credentials(call, task);
    if (!execution) {
        say_headers_differ(call, task);
        return false;
    }
    if (task->state == TASK_APPROVED && (wants_result || !task->on_result))
        begin_call(execution, task);
    return true;
}

struct task *execution_offer_shown(const struct call *call, struct task *task, bool wants_result)
{
    if (execution_offer(call, task, wants_result))
        return task_ref(task);
    struct task *shown = task_copy(task);
    if (shown->state == TASK_APPROVED)
        task_set_text(&shown->status_message, STR(EXECUTION_OTHER_HEADERS));
    return shown;
}

void execution_offer_own(struct gateway_worker *worker, struct task *task, bool wants_result)
{
    if (task->state != TASK_APPROVED || (task->on_result && !wants_result) ||
        atomic_load(&worker->gateway->shutting_down))
        return;
    struct execution *execution = obtain_execution(worker, task);
    execution->own_session = true;
    execution->base.audience.is_closed = true; /* there is no client */
    begin_call(execution, task);
}

/* ---- the task has changed ---- */

/* The owner or an operator has cancelled the task. The server is notified. */
static void stop_call(struct execution *execution)
{
    execution->base.up.protocol->cancel(&execution->base.up, "cancelled");
    execution_end(execution);
}

const struct identity *execution_identity(const struct gateway_worker *worker, struct str id)
{
    const struct execution *execution = map_get(worker->executions, id);
    return execution ? execution->identity : NULL;
}

void execution_input_changed(struct gateway_worker *worker, const struct task *task)
{
    struct execution *execution = find_execution(worker, str_from(task->id));
    if (execution)
        set_silence(execution);
}

/* Nothing is held for the task here. It may be the control plane's, whose calls only the first
 * worker runs, so that no two workers begin one; or a call waits for it that has them. */
static void obtain_credentials(struct gateway_worker *worker, struct task *task)
{
    const struct call *waiting =
        task->state == TASK_APPROVED && task->on_result ? waiting_newest(worker, task) : NULL;
    if (waiting)
        execution_offer(waiting, task, true);
    else if (worker == worker->gateway->workers[0] &&
             str_starts_with(str_from(task->owner), STR(PERSON_OWNER)))
        execution_offer_own(worker, task, false);
}

void execution_note_task(struct gateway_worker *worker, struct task *task)
{
    struct execution *execution = find_execution(worker, str_from(task->id));
    if (task_state_is_terminal(task->state))
        request_headers_forget(worker->gateway->request_headers, str_from(task->id));
    if (!execution) {
        obtain_credentials(worker, task);
        return;
    }
    bool runs_elsewhere = task->state == TASK_EXECUTING &&
                          conversation_where(&execution->base) == CONVERSATION_OFFERED;
    bool may_run = !task->on_result || waiting_newest(worker, task);
    if (task->state == TASK_CANCELLED)
        stop_call(execution);
    else if (task_state_is_terminal(task->state) || runs_elsewhere)
        execution_end(execution);
    else if (task->state == TASK_APPROVED && may_run)
        begin_call(execution, task);
}

/* ---- a claim that is queued behind the vote that may approve the task ---- */

/* Whether this worker holds what the call needs, and nothing of it is under way. */
static bool is_possible(const struct gateway_worker *worker, struct str id)
{
    const struct execution *execution = find_execution(worker, id);
    return execution && conversation_where(&execution->base) == CONVERSATION_OFFERED &&
           !atomic_load(&worker->gateway->shutting_down);
}

bool claim_may_be_possible(const struct gateway_worker *worker, struct str id)
{
    return worker->gateway->worker_count > 1 || is_possible(worker, id);
}

/* ---- the store's answer ---- */

static void look_again(void *context);

static void look_again_soon(struct execution *execution)
{
    loop_timer_start_with(&execution->base.timer, look_again, execution, LOOK_AGAIN_MS);
}

static void on_looked_again(void *context, const struct store_reply *reply)
{
    struct execution *execution = execution_from(context);
    struct invocation *base = &execution->base;
    bool is_waiting = conversation_where(base) == CONVERSATION_OFFERED;
    if (is_waiting && reply->status == STORE_OK)
        execution_note_task(base->worker, reply->task);
    else if (is_waiting && reply->status == STORE_FAILED)
        look_again_soon(execution);
    else if (is_waiting)
        execution_end(execution);
    invocation_unref(base); /* the message's own reference */
}

/* The vote may be on disk, and the claim is not. */
static void look_again(void *context)
{
    struct execution *execution = execution_from(context);
    struct invocation *base = &execution->base;
    invocation_ref(base);
    store_task_get(base->worker->gateway->store, str_from(base->id),
                   (struct store_call){base->worker->loop, on_looked_again, execution});
}

static void on_claim(void *context, const struct store_reply *reply)
{
    struct execution *execution = execution_from(context);
    struct invocation *base = &execution->base;
    bool is_here = conversation_where(base) == CONVERSATION_CLAIMING; /* else it comes too late */
    if (is_here && reply->status == STORE_OK) {
        run_call(execution, reply->task);
    } else if (is_here) {
        wait_for_call(execution);
        if (reply->status == STORE_CONFLICT) /* not approved, or not as it was */
            execution_note_task(base->worker, reply->task);
        else if (reply->status == STORE_FAILED)
            look_again_soon(execution);
        else
            execution_end(execution);
    }
    invocation_unref(base); /* the message's own reference */
}

/* ---- the claim ---- */

/* "Which worker holds the call, and may it run as soon as it is approved?" */
struct claim_inquiry {
    struct inquiry base; /* first */
    uint32_t magic;      /* CLAIM_INQUIRY_MAGIC */
    struct task *task;
    claim_callback done;
    void *context;
    /* The answer: copies, because the execution belongs to another thread. */
    bool is_claimed;
    char credentials[DIGEST_HEX_BYTES], request_digest[DIGEST_HEX_BYTES];
    struct store_call call;
};
#define CLAIM_INQUIRY_MAGIC 0x47576172

static struct claim_inquiry *claim_inquiry_from(void *context)
{
    return MAGIC_CAST(struct claim_inquiry, CLAIM_INQUIRY_MAGIC, context);
}

static bool holds_call(struct gateway_worker *worker, struct inquiry *base)
{
    const struct task *task = claim_inquiry_from(base)->task;
    return task->state == TASK_PENDING && is_possible(worker, str_from(task->id)) &&
           (!task->on_result || waiting_newest(worker, task));
}

static bool may_run_at_once(struct execution *execution)
{
    enum jsonrpc_error error;
    if (!complete_headers(execution, execution->base.task) || !take_rules(execution))
        return false;
    const struct drift_check drift = drift_of(execution);
    return !drift_check_must_look(&drift) && drift_check_can_compare(&drift) &&
           drift_check_passes(&drift, &error);
}

static void answer_claim(struct gateway_worker *worker, struct inquiry *asked)
{
    struct claim_inquiry *inquiry = claim_inquiry_from(asked);
    struct execution *execution = find_execution(worker, str_from(inquiry->task->id));
    ASSERT(execution); /* this worker has said so in holds_call() */
    struct invocation *base = &execution->base;
    invocation_set_task(base, inquiry->task);
    if (!may_run_at_once(execution) || !conversation_move(base, CONVERSATION_CLAIMING))
        return;
    loop_timer_stop(&base->timer);
    atomic_fetch_add(&worker->gateway->in_flight, 1);
    invocation_ref(base);
    inquiry->is_claimed = true;
    memcpy(inquiry->credentials, execution->credentials_digest, sizeof inquiry->credentials);
    memcpy(inquiry->request_digest, base->task->request_digest, sizeof inquiry->request_digest);
    inquiry->call = (struct store_call){worker->loop, on_claim, execution};
}

static void claim_done(struct inquiry *asked, enum inquiry_end end)
{
    const struct claim_inquiry *inquiry = claim_inquiry_from(asked);
    const struct store_claim claim = {
        .change = {.to = TASK_EXECUTING,
                   .credentials = inquiry->credentials,
                   .request_digest = inquiry->request_digest},
        .actor = {"gateway", "taskgate"},
        .call = inquiry->call,
    };
    bool is_claimed = end == INQUIRY_ANSWERED && inquiry->is_claimed;
    inquiry->done(inquiry->context, inquiry->task, is_claimed ? &claim : NULL);
}

static void claim_inquiry_destroy(struct inquiry *asked)
{
    struct claim_inquiry *inquiry = claim_inquiry_from(asked);
    task_unref(inquiry->task);
    MAGIC_CLEAR(inquiry);
    free(inquiry);
}

static const struct inquiry_kind claim_inquiry_kind = {holds_call, answer_claim, claim_done,
                                                       claim_inquiry_destroy};

void claim_ask(struct gateway_worker *worker, struct task *task, claim_callback callback,
               void *context)
{
    struct claim_inquiry *inquiry = memory_alloc(sizeof *inquiry);
    MAGIC_SET(inquiry, CLAIM_INQUIRY_MAGIC);
    inquiry->task = task_ref(task);
    inquiry->done = callback;
    inquiry->context = context;
    inquiry_begin(&inquiry->base, &claim_inquiry_kind, worker);
}
