/* Approved calls of one worker: the credentials that are held for them, how each begins, what is
 * sent, what the server says and asks meanwhile, what comes of it, and what becomes of them when
 * their tasks change. */
#include "execute.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "answer_gate.h"
#include "auth/token_exchange.h"
#include "call/broadcast.h"
#include "call/client_profile.h"
#include "call/headers.h"
#include "call/request_headers.h"
#include "decision/drift_check.h"
#include "decision/task_binding.h"
#include "inbox/inbox.h"
#include "invocation.h"
#include "invocation_rounds.h"
#include "notices.h"
#include "rounds.h"
#include "server/catalogue.h"
#include "server/own.h"
#include "server/sessions.h"
#include "state/source_eras.h"
#include "state/task_aliases.h"
#include "task_inputs.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/gateway/conversation_claim.h"
#include "taskgate/identity/identity.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_text.h"
#include "taskgate/mcp/modern_text.h"
#include "taskgate/mcp/question.h"
#include "taskgate/telemetry/task_trace.h"
#include "waiting.h"

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
    struct opened_session *session;            /* opened for it; NULL: none */
    /* Of a modern call at a legacy server. */
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

static void execution_end(struct execution *execution);
static void execution_answered(struct execution *execution, const struct exchange_reply *reply);
static void execution_fail(struct execution *execution, enum jsonrpc_error error,
                           const char *details);
static void execution_store_outcome(struct execution *execution);
static bool execution_asks_take(struct execution *execution, struct str message);
static bool execution_asks_is_open(const struct execution *execution);
static void execution_say_last(struct execution *execution, struct str body, struct str id);

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
    char *token = execution->authorization ? token_exchange_find(&request) : NULL;
    if (!token)
        return false;
    char *value = memory_format("Bearer %s", token);
    free(token);
    headers_set(&execution->base.headers, STR("authorization"), str_from(value));
    free(value);
    return true;
}

/* Between two looks at a task of the server's. */
#define POLL_INTERVAL_MS 1000
#define POLL_INTERVAL_MIN_MS 100
#define POLL_INTERVAL_MAX_MS 60000

static void execution_server_message(void *context, struct str message)
{
    struct execution *execution = execution_from(context);
    char key[CLIENT_KEY_BYTES];
    if (execution->leases_session && execution_asks_take(execution, message))
        return;
    inbox_key_of_task(execution->base.task, key);
    struct notice_origin origin = invocation_origin(&execution->base);
    origin.key = key;
    origin.task = execution->base.task;
    notices_take(&origin, message);
}

/* The server may be silent while a person has its question. */
static int64_t silence_limit_ms(const struct execution *execution)
{
    return execution_asks_is_open(execution) ||
                   question_keeps_server_waiting(execution->base.worker->gateway,
                                                 execution->base.task)
               ? 0
               : execution->base.snapshot->config->times.execution_timeout_ms;
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

static struct sending execution_sending(const struct execution *execution, struct task_trace *trace)
{
    const struct invocation *base = &execution->base;
    struct sending sending = invocation_sending(base);
    sending.silence_ms = silence_limit_ms(execution);
    sending.most_bytes = (size_t)base->snapshot->config->limits.result_bytes;
    if (telemetry_is_on && task_trace_read(trace, str_from(base->task->trace)))
        join_trace(&sending, base->task, trace);
    return sending;
}

static void execution_ask(struct execution *execution, struct str body, struct str id,
                          const struct exchange_events *events)
{
    struct task_trace trace;
    struct sending sending = execution_sending(execution, &trace);
    sending.body = body;
    sending.id = id;
    execution->base.exchange = exchange_send(execution->base.worker, &sending, events, execution);
}

static void on_reply(void *context, const struct exchange_reply *reply)
{
    execution_answered(execution_from(context), reply);
}

static void execution_set_silence(struct execution *execution)
{
    exchange_set_silence(invocation_exchange(&execution->base), silence_limit_ms(execution));
}

/* Adds a `task` member, without which the server does not run the tool. A client that knows no
 * tasks sent none. */
static void add_task(struct buffer *body, const struct task *task)
{
    struct buffer asked, params, whole;
    buffer_init(&asked);
    buffer_init(&params);
    buffer_init(&whole);
    buffer_append_format(&asked, "{\"ttl\":%" PRId64 "}", task->ttl_ms);
    json_write_with_member(&params, json_member(buffer_str(body), "params"), "task",
                           buffer_str(&asked));
    json_write_with_member(&whole, buffer_str(body), "params", buffer_str(&params));
    buffer_finish(&params);
    buffer_finish(&asked);
    buffer_finish(body);
    *body = whole;
}

static bool execution_is_modern(const struct execution *execution)
{
    return *execution->base.task->mirrored_headers && !execution->leases_session;
}

static void execution_take_id(struct execution *execution)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_clear(&execution->base.request_id);
    buffer_append_format(&execution->base.request_id, "\"tg:%s\"", uuid);
}

/* Of a modern call the id alone is another one, so that its headers stay true. */
static void execution_write(const struct execution *execution, struct buffer *body)
{
    const struct task *task = execution->base.task;
    struct str quoted = buffer_str(&execution->base.request_id);
    struct str id = str_slice(quoted.bytes + 1, quoted.length - 2);
    struct envelope envelope;
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    if (execution->leases_session)
        legacy_text_write_request(body, &envelope, quoted);
    else
        envelope_write_executable(&envelope, id, task->keep_task || execution_is_modern(execution),
                                  body);
    if (task->keep_task && (envelope.task.raw.length == 0 || execution->leases_session))
        add_task(body, task);
    envelope_finish(&envelope);
}

static void post(struct execution *execution)
{
    static const struct exchange_events events = {.reply = on_reply,
                                                  .server_message = execution_server_message};
    struct buffer body = {0};
    execution_write(execution, &body);
    execution_ask(execution, buffer_str(&body), buffer_str(&execution->base.request_id), &events);
    buffer_finish(&body);
}

static void execution_send(struct execution *execution)
{
    execution_take_id(execution);
    /* At RUNNING it goes to a server that had forgotten its session. */
    if (conversation_where(&execution->base) != CONVERSATION_RUNNING &&
        !conversation_move(&execution->base, CONVERSATION_RUNNING))
        execution_end(execution);
    else if (execution_is_modern(execution))
        execution->base.up.protocol->begin(&execution->base.up, NULL);
    else
        post(execution);
}

/* ---- a task of the server's own ---- */

/* A tool that the server runs only so (behaviour 7.9: its annotation `required`): created, polled,
 * and its result fetched. */

static void write_task_params(struct buffer *params, const struct execution *execution)
{
    buffer_append_text(params, "{\"taskId\":");
    buffer_append_json_string(params, str_from(execution->base.server_task));
    buffer_append_char(params, '}');
}

static void execution_task_ask(struct execution *execution, const char *method,
                               const struct exchange_events *events)
{
    struct buffer params = {0}, body = {0}, id = {0};
    write_task_params(&params, execution);
    exchange_write_request(&body, &id, method, buffer_str(&params));
    execution_ask(execution, buffer_str(&body), buffer_str(&id), events);
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
}

static void on_task_result(void *context, const struct exchange_reply *reply)
{
    execution_answered(execution_from(context), reply);
}

static void fetch_task_result(struct execution *execution)
{
    static const struct exchange_events events = {.reply = on_task_result,
                                                  .server_message = execution_server_message};
    execution_task_ask(execution, "tasks/result", &events);
}

static int64_t task_interval_ms(struct str task)
{
    uint64_t interval;
    if (!str_to_u64(json_member(task, "pollInterval"), &interval))
        return POLL_INTERVAL_MS;
    if (interval < POLL_INTERVAL_MIN_MS)
        return POLL_INTERVAL_MIN_MS;
    return interval > POLL_INTERVAL_MAX_MS ? POLL_INTERVAL_MAX_MS : (int64_t)interval;
}

static void on_task_status(void *context, const struct exchange_reply *reply)
{
    struct execution *execution = execution_from(context);
    struct str task = json_member(reply->message, "result");
    struct str status = json_member(task, "status");
    execution->base.exchange = NULL;
    if (task.length == 0)
        execution_answered(execution, reply); /* an error or no answer is the call's outcome */
    else if (json_string_equals(status, STR("working")))
        loop_timer_start(&execution->base.timer, task_interval_ms(task));
    else /* the task has ended or asks something; tasks/result brings its answer */
        fetch_task_result(execution);
}

static void on_task_poll(void *context)
{
    static const struct exchange_events events = {.reply = on_task_status,
                                                  .server_message = execution_server_message};
    execution_task_ask(execution_from(context), "tasks/get", &events);
}

static bool execution_task_follow(struct execution *execution, struct str result)
{
    struct invocation *base = &execution->base;
    struct gateway *gateway = base->worker->gateway;
    struct str task = json_member(result, "task");
    char *id = json_string_text(json_member(task, "taskId"), NULL);
    if (!id)
        return false; /* an immediate result is acceptable too */
    base->server_task = id;
    if (!conversation_move(base, CONVERSATION_FOLLOWING)) {
        execution_end(execution);
        return true;
    }
    task_aliases_put(gateway->task_aliases, base->session[0] ? base->audience.key : "", id,
                     base->task);
    store_task_set_upstream(gateway->store, str_from(base->id), str_from(id),
                            (struct store_call){base->worker->loop, NULL, NULL});
    loop_timer_start_with(&base->timer, on_task_poll, execution, task_interval_ms(task));
    return true;
}

static void execution_task_cancel(struct execution *execution)
{
    struct buffer params = {0}, body = {0}, id = {0};
    write_task_params(&params, execution);
    exchange_write_request(&body, &id, "tasks/cancel", buffer_str(&params));
    execution_say_last(execution, buffer_str(&body), buffer_str(&id));
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
}

/* That are open at once. */
#define MOST_ASKS 32
#define TOO_MANY "{\"code\":-32603,\"message\":\"Too many questions in one call\"}"

/* ---- what the server asks a modern client: rows of a round of the task ---- */

static struct question_table *rounds_of_session(const struct execution *execution)
{
    return execution->base.worker->gateway->questions;
}

static bool execution_asks_is_open(const struct execution *execution)
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
    modern_text_write_question(&request, message);
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

static bool execution_asks_take(struct execution *execution, struct str message)
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

static void execution_asks_hold(struct execution *execution)
{
    size_t open;
    rounds_count(rounds_of_session(execution), str_from(execution->base.id), &open);
    if (open == 0)
        loop_timer_stop(&execution->patience);
}

static void execution_asks_end(struct execution *execution, struct str answers, bool pass)
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

static bool execution_session_is_needed(const struct execution *execution)
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
    legacy_text_write_initialize(params, envelope.reserved.client_capabilities,
                                 envelope.reserved.client_info);
    envelope_finish(&envelope);
}

static void execution_session_open(struct execution *execution)
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
static bool execution_session_reopens(struct execution *execution,
                                      const struct exchange_reply *reply)
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

static void execution_session_close(struct execution *execution)
{
    if (execution->session)
        opened_session_destroy(execution->session);
    execution->session = NULL;
    if (execution->own_session)
        headers_finish(&execution->base.headers);
    else
        headers_drop(&execution->base.headers, HTTP_NAME_OF_SESSION);
}

static void execution_say_last(struct execution *execution, struct str body, struct str id)
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

static struct str request_of_execution(const struct server_link *link)
{
    const struct task *task = invocation_from(link->context)->task;
    return str_slice(task->request, task->request_length);
}

static bool has_legacy_client(const struct invocation *invocation)
{
    const struct task *task = invocation->task;
    return *task->mirrored_headers && *task->session; /* modern clients have no sessions */
}

static void write_execution(struct server_link *link, struct headers *headers, struct buffer *body,
                            struct buffer *id)
{
    struct invocation *base = invocation_from(link->context);
    if (link->has_asked)
        execution_take_id(execution_from(link->context));
    execution_write(execution_from(link->context), body);
    buffer_append(id, buffer_str(&base->request_id));
    headers_add_all(headers, &base->headers);
}

static struct sending sending_of_execution(struct server_link *link, struct task_trace *trace)
{
    return execution_sending(execution_from(link->context), trace);
}

/* ---- what the server says ---- */

/* They need one round only: their keys are unique in the life of their task. */
static void take_questions_of_task(struct invocation *base, struct str requests)
{
    struct question_table *table = base->worker->gateway->questions;
    struct str id = str_from(base->id);
    bool has_changed = requests.length > 0 ? rounds_put(table, id, 1, requests, clock_now_ms())
                                           : rounds_forget(table, id);
    if (has_changed)
        invocation_rounds_tell(base);
    if (has_changed && has_legacy_client(base))
        task_inputs_ask(base);
}

static void take_round(struct invocation *base, struct str requests)
{
    if (conversation_where(base) != CONVERSATION_FOLLOWING)
        invocation_rounds_ask(base, requests, has_legacy_client(base));
    else if (answer_gate_denies(base->task))
        invocation_rounds_lost(base, LOST_TASK_ROUND);
    else
        take_questions_of_task(base, requests);
}

static void follow_task(struct invocation *base, struct str id)
{
    base->server_task = memory_copy_str(id);
    if (!conversation_move(base, CONVERSATION_FOLLOWING)) {
        execution_end(execution_from(base));
        return;
    }
    store_task_set_upstream(base->worker->gateway->store, str_from(base->id), id,
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
    execution_store_outcome(execution_from(base));
}

static void take_event_of_execution(void *context, const struct event *event)
{
    struct invocation *base = invocation_from(context);
    switch (event->kind) {
    case EVENT_ROUND:
        take_round(base, event->text);
        break;
    case EVENT_WITHDRAWN:
        take_questions_of_task(base, STR_EMPTY);
        break;
    case EVENT_AGAIN:
        invocation_rounds_send(base, STR_EMPTY);
        break;
    case EVENT_FOLLOWED:
        follow_task(base, event->text);
        break;
    case EVENT_RESULT:
    case EVENT_ERROR:
    case EVENT_CANCELLED:
        if (event->reply)
            execution_answered(execution_from(base), event->reply);
        else
            take_end_of_task(base, event);
        break;
    case EVENT_LOST:
        if (event->lost == LOST_REPLY)
            execution_answered(execution_from(base), event->reply);
        else
            invocation_rounds_lost(base, event->lost);
        break;
    default: /* tasks have no progress and no log */
        break;
    }
}

static const struct link_maker execution_maker = {.write = write_execution,
                                                  .sending = sending_of_execution,
                                                  .request = request_of_execution,
                                                  .take = take_event_of_execution};

/* ---- leaving a state ---- */

/* Ends what is under way. Only the worker that runs a task may end the questions of that task. */
static bool leave(struct execution *execution, enum conversation_state to)
{
    struct invocation *base = &execution->base;
    struct gateway *gateway = base->worker->gateway;
    bool was_under_way = conversation_is_under_way(base), had_begun = conversation_has_begun(base);
    exchange_abandon(base->exchange);
    base->exchange = NULL;
    base->up.protocol->release(&base->up);
    loop_timer_stop(&base->timer);
    if (!conversation_move(base, to))
        return false;
    if (was_under_way)
        atomic_fetch_sub(&gateway->in_flight, 1);
    if (base->server_task)
        task_aliases_remove(gateway->task_aliases, base->audience.key, base->server_task);
    if (had_begun) {
        question_end_task(base->worker, base->task);
        rounds_forget(gateway->questions, str_from(base->id));
    }
    loop_timer_stop(&execution->patience);
    if (execution->session || execution_session_is_needed(execution))
        execution_session_close(execution);
    return true;
}

static void wait_for_call(struct execution *execution)
{
    if (!leave(execution, CONVERSATION_OFFERED))
        execution_end(execution);
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

/* ---- how it ends: an answer, a refusal of the credentials, an error of the gateway's own ---- */

static void store_as(struct execution *execution, enum conversation_state state)
{
    struct invocation *base = &execution->base;
    base->exchange = NULL;
    base->up.protocol->release(&base->up);
    if (conversation_has_begun(base)) {
        question_end_task(base->worker, base->task);
        rounds_forget(base->worker->gateway->questions, str_from(base->id));
        loop_timer_stop(&execution->patience);
    }
    if (!conversation_move(base, state)) {
        execution_end(execution);
        return;
    }
    log_info("Call executed", LOG_TEXT("task", base->id),
             LOG_TEXT("state", task_state_name(base->outcome.change.to)));
    invocation_store(base);
}

static void execution_store_outcome(struct execution *execution)
{
    store_as(execution, CONVERSATION_STORING);
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

/* The error of a legacy server, as its modern client knows errors. */
static void take_answer_of_server(struct execution *execution, const struct exchange_reply *reply)
{
    struct str error = json_member(reply->message, "error");
    struct buffer mapped;
    buffer_init(&mapped);
    if (execution->leases_session && json_type(error) == JSON_OBJECT) {
        modern_text_write_error(&mapped, error, false);
        outcome_of_error(&execution->base.outcome, buffer_str(&mapped));
    } else {
        invocation_take_reply(&execution->base, reply);
    }
    buffer_finish(&mapped);
}

static void execution_answered(struct execution *execution, const struct exchange_reply *reply)
{
    struct invocation *base = &execution->base;
    bool may_be_task = base->task->keep_task && conversation_where(base) == CONVERSATION_RUNNING;
    bool is_answer = json_member(reply->message, "result").length > 0 ||
                     json_member(reply->message, "error").length > 0;
    bool was_not_let_in = is_refusal(reply->status) || reply->result == UPSTREAM_CONNECT_FAILED;
    base->exchange = NULL;
    if (reply->too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    if (execution_session_reopens(execution, reply))
        return;
    if (may_be_task && execution_task_follow(execution, json_member(reply->message, "result")))
        return;
    if (!is_answer && is_refusal(reply->status) && !base->server_task && !base->up.has_asked) {
        back_to_approved(execution);
        return;
    }
    if (!is_answer && was_not_let_in && base->server_task)
        outcome_of_failure(&base->outcome, str_from(base->task->tool), JSONRPC_UPSTREAM_ERROR,
                           "upstream runs the call, and no longer says what becomes of it");
    else
        take_answer_of_server(execution, reply);
    store_as(execution, CONVERSATION_STORING);
}

/* ---- the client's answers inside the call: past the gate that records them, and perhaps asks
 * people ---- */

struct passing {
    struct execution *execution; /* a reference */
    struct rounds_taken taken;
    struct buffer request_id; /* of the call as it was sent when the server asked */
};

static struct question_table *questions_of(const struct execution *execution)
{
    return execution->base.worker->gateway->questions;
}

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
        execution_asks_end(execution, answers, true);
    else if (conversation_where(&execution->base) == CONVERSATION_FOLLOWING)
        execution->base.up.protocol->answer_round(&execution->base.up, answers);
    else
        invocation_rounds_send(&execution->base, answers);
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
    struct buffer declined = {0};
    if (execution->leases_session) {
        execution_asks_end(execution, buffer_str(&passing->taken.answers), false);
    } else if (write_declined(&declined, buffer_str(&passing->taken.questions))) {
        send_answers(execution, buffer_str(&declined));
    } else {
        execution->base.up.protocol->cancel(&execution->base.up, "");
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR,
                       "the client's answer to what upstream asked was refused");
    }
    buffer_finish(&declined);
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
        execution_asks_hold(execution);
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
                                : invocation_rounds_take(base, &passing->taken);
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
    struct task *task = task_ref(execution->base.task);
    begin_call(execution, task);
    task_unref(task);
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
static void say_not_exchanged(struct execution *execution)
{
    struct task *task = execution->base.task;
    log_warn("An approved call waits: the client's token cannot be exchanged",
             LOG_TEXT("task", execution->base.id));
    if (strcmp(task->status_message, NOT_EXCHANGED) != 0)
        store_task_set_message(execution->base.worker->gateway->store, str_from(task->id),
                               STR(NOT_EXCHANGED),
                               (struct store_call){execution->base.worker->loop, NULL, NULL});
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

/* The rules in force may have changed while `executing` was on its way to the disk, and so may the
 * tool. A list that is out of date by now says nothing of it: a current one was compared right
 * before, and the call cannot wait for the next any more. */
static bool is_still_allowed(struct execution *execution, enum jsonrpc_error *error)
{
    struct invocation *base = &execution->base;
    snapshot_unref(base->snapshot);
    base->snapshot = snapshot_current();
    base->source = config_source_find(base->snapshot->config, str_from(base->task->source));
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
    if (execution_session_is_needed(execution))
        execution_session_open(execution);
    else
        execution_send(execution);
}

static void on_executing(void *context, const struct store_reply *reply)
{
    struct execution *execution = execution_from(context);
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

/* A modern server has no sessions, so these are what the call is sent with. */
static void set_own_headers(struct execution *execution)
{
    struct invocation *base = &execution->base;
    headers_finish(&base->headers);
    service_session_begin(&base->headers, base->source);
    mirrored_headers_restore(&base->headers, str_from(base->task->mirrored_headers));
}

static bool take_rules(struct execution *execution)
{
    snapshot_unref(execution->base.snapshot);
    execution->base.snapshot = snapshot_current();
    execution->base.source = config_source_find(execution->base.snapshot->config,
                                                str_from(execution->base.task->source));
    if (execution->base.source && !execution->own_session)
        headers_set_static(&execution->base.headers, execution->base.source);
    execution->leases_session =
        *execution->base.task->mirrored_headers && execution->base.source &&
        source_eras_bridge_down(execution->base.worker->gateway->eras, execution->base.source,
                                clock_monotonic_ms());
    if (execution->own_session && execution->base.source && execution_is_modern(execution))
        set_own_headers(execution);
    execution->lacks_session =
        execution->lacks_session ||
        (!execution->own_session && !*execution->base.task->mirrored_headers &&
         execution->base.source &&
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
    else if (execution->lacks_session)
        tools_fetch_in_session_with(base->worker, base->snapshot, base->source,
                                    str_from(base->task->owner), &base->headers, on_looked,
                                    execution);
    else
        tools_fetch_with(base->worker, base->snapshot, base->source, str_from(base->task->owner),
                         &base->headers, on_looked, execution);
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
    struct question_audience audience;
    question_audience(call, &audience);
    request_headers_keep(call->worker->gateway->request_headers,
                         str_slice(task->id, strlen(task->id)), str_from(audience.key),
                         call->exchange);
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

static void deliver_session_end(struct gateway_worker *worker, const void *message)
{
    struct str key = ((const struct client_broadcast *)message)->key;
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

static const struct broadcast_kind session_end_kind = CLIENT_BROADCAST_KIND(deliver_session_end);

void execution_forget_session(struct gateway *gateway, struct str key)
{
    broadcast_send(gateway, &session_end_kind, &(struct client_broadcast){key});
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

/* The owner and operators read why the approved task does not run. */
static void say_headers_differ(const struct call *call, const struct task *task)
{
    log_warn("A call lends no credentials: its headers differ from those of the approved one",
             LOG_TEXT("task", task->id));
    if (task->state == TASK_APPROVED && strcmp(task->status_message, EXECUTION_OTHER_HEADERS) != 0)
        store_task_set_message(call->worker->gateway->store, str_from(task->id),
                               STR(EXECUTION_OTHER_HEADERS),
                               (struct store_call){call->worker->loop, NULL, NULL});
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
    if (execution->base.task && execution_is_modern(execution)) {
        execution->base.up.protocol->cancel(&execution->base.up, "");
    } else if (execution->base.server_task) {
        execution_task_cancel(execution);
    } else if (execution->base.exchange && execution->base.request_id.length > 0) {
        struct buffer body;
        buffer_init(&body);
        invocation_write_cancelled(&execution->base, "cancelled", &body);
        execution_say_last(execution, buffer_str(&body), STR_EMPTY);
        buffer_finish(&body);
    }
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
    if (execution && invocation_exchange(&execution->base))
        execution_set_silence(execution);
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
    bool may_run = !task->on_result || waiting_exists(worker, task);
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
           (!task->on_result || waiting_exists(worker, task));
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
