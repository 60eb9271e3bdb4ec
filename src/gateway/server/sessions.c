/* Sessions at legacy servers for modern clients: each one, and the choice of the session of a call.
 */
#include "sessions.h"

#include <stdlib.h>
#include <string.h>

#include "call/broadcast.h"
#include "call/call.h"
#include "call/call_span.h"
#include "own.h"
#include "server_refusal.h"
#include "state/quota.h"
#include "state/source_eras.h"
#include "state/tool_catalog.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_text.h"
#include "taskgate/mcp/modern_text.h"
#include "taskgate/mcp/question.h"

#define IDLE_MS 600000 /* ten minutes */
#define OPENING_MS 10000
#define OPENING_MOST_BYTES ((size_t)256 * 1024)
#define STREAM_PATIENCE_MS 1000
#define LAST_WORD_MS 10000
#define LAST_WORD_BYTES 65536

/* ---- opening ---- */

static void on_idle(void *context)
{
    opened_session_destroy(opened_session_from(context));
}

static void conclude_opening(struct opened_session *session, const struct exchange_reply *refusal)
{
    session->exchange = NULL;
    session->opened(session, refusal);
}

/* Its answer does not matter: a server that did not take the notification refuses the calls. */
static void sessions_on_initialized(void *context, const struct exchange_reply *reply)
{
    (void)reply;
    conclude_opening(opened_session_from(context), NULL);
}

struct sending opened_session_sending(const struct opened_session *session)
{
    return (struct sending){.source = session->source,
                            .snapshot = session->snapshot,
                            .headers = &session->headers,
                            .silence_ms = session->limit_ms,
                            .total_ms = session->total_ms,
                            .most_bytes = session->most_bytes};
}

static void take_opened(struct opened_session *session, const struct exchange_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    struct str id = headers_find(reply->headers, "mcp-session-id");
    size_t length = 0;
    char *version = json_string_text(json_member(result, "protocolVersion"), &length);
    session->base.id = str_slice(memory_copy_str(id), id.length);
    session->base.version = str_slice(version, length);
    buffer_append(&session->initialized, result);
    headers_set_session(&session->headers, &session->base);
}

/* Some servers refuse calls until they have read the notification, so they wait for its answer. */
static void on_initialize_reply(void *context, const struct exchange_reply *reply)
{
    static const struct exchange_events events = {.reply = sessions_on_initialized};
    struct opened_session *session = opened_session_from(context);
    if (json_type(json_member(reply->message, "result")) != JSON_OBJECT) {
        conclude_opening(session, reply);
        return;
    }
    take_opened(session, reply);
    struct sending sending = opened_session_sending(session);
    sending.body = service_session_initialized();
    session->exchange = exchange_send(session->worker, &sending, &events, session);
}

static void sessions_on_patience(void *context);

struct opened_session *opened_session_begin(const struct session_opening *opening)
{
    static const struct exchange_events events = {.reply = on_initialize_reply};
    struct gateway_worker *worker = opening->worker;
    struct opened_session *session = memory_alloc(sizeof *session);
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    MAGIC_SET(session, OPENED_SESSION_MAGIC);
    session->worker = worker;
    session->snapshot = snapshot_ref(opening->snapshot);
    session->source = opening->source;
    session->limit_ms = opening->limit_ms;
    session->total_ms = opening->total_ms;
    session->most_bytes = opening->most_bytes;
    session->opened = opening->opened;
    session->listener_context = opening->context;
    session->users = 1;
    list_append(&worker->opened_sessions, &session->node); /* counted by the caller */
    loop_timer_init(&session->patience, worker->loop, sessions_on_patience, session);
    loop_timer_init(&session->idle, worker->loop, on_idle, session);
    headers_init(&session->headers, true);
    headers_add_all(&session->headers, opening->headers);
    headers_set_session(&session->headers, NULL);
    exchange_write_request(&body, &id, "initialize", opening->params);
    struct sending sending = opened_session_sending(session);
    sending.body = buffer_str(&body);
    sending.id = buffer_str(&id);
    sending.trace = opening->trace;
    session->exchange = exchange_send(worker, &sending, &events, session);
    return session;
}

/* ---- messages that belong to no call of the gateway's ---- */

void opened_session_notify(struct opened_session *session, struct str body)
{
    struct sending sending = opened_session_sending(session);
    sending.body = body;
    exchange_notify(session->worker, &sending);
}

static void on_last_word(void *context, const struct exchange_reply *reply)
{
    struct opened_session *session = opened_session_from(context);
    (void)reply;
    session->exchange = NULL;
    opened_session_destroy(session);
}

void opened_session_leave(struct opened_session *session, struct str body, struct str id)
{
    static const struct exchange_events events = {.reply = on_last_word};
    struct sending sending = opened_session_sending(session);
    ASSERT(session->is_alone && session->initialized.length > 0);
    session->listener = NULL;
    exchange_abandon(session->exchange);
    opened_session_close_stream(session);
    loop_timer_stop(&session->patience);
    sending.body = body;
    sending.id = id;
    sending.silence_ms = 0;
    sending.total_ms = LAST_WORD_MS;
    sending.most_bytes = LAST_WORD_BYTES;
    sending.is_parting = true;
    session->exchange = exchange_send(session->worker, &sending, &events, session);
}

void opened_session_respond(struct opened_session *session, struct str id, const char *member,
                            struct str value)
{
    OWNED_BUFFER(body);
    buffer_append_text(&body, "{\"jsonrpc\":\"2.0\",\"id\":");
    buffer_append(&body, id);
    buffer_append_format(&body, ",\"%s\":", member);
    buffer_append(&body, value);
    buffer_append_char(&body, '}');
    opened_session_notify(session, buffer_str(&body));
}

void opened_session_answer_stray(struct opened_session *session, struct str message)
{
    struct str id = json_member(message, "id"), method = json_member(message, "method");
    bool is_ping = json_string_equals(method, STR("ping"));
    if (json_string_equals(method, STR(MCP_TOOLS_CHANGED)))
        catalog_set_stale(session->worker->gateway->catalog, str_from(session->source->id));
    if (id.length == 0 ||
        !server_budget_take(&session->budget, is_ping ? SERVER_PING : SERVER_REQUEST,
                            clock_monotonic_ms()))
        return;
    if (is_ping) {
        opened_session_respond(session, id, "result", STR("{}"));
        return;
    }
    log_warn("A server has asked something outside of any call of a modern client",
             LOG_TEXT("source", session->source->id));
    opened_session_respond(session, id, "error",
                           STR("{\"code\":-32601,\"message\":\"Method not found\"}"));
}

/* ---- the GET stream ---- */

static void tell_stream(struct opened_session *session)
{
    void (*known)(struct opened_session *) = session->stream_known;
    loop_timer_stop(&session->patience);
    session->stream_known = NULL;
    if (known)
        known(session);
}

static void sessions_on_patience(void *context)
{
    tell_stream(opened_session_from(context));
}

static void on_stream_head(void *context, const struct exchange_head *head)
{
    struct opened_session *session = opened_session_from(context);
    bool is_open = head->status == 200 && head->is_stream;
    session->stream_state = is_open ? SESSION_STREAM_OPEN : SESSION_STREAM_REFUSED;
    catalog_note_stream(session->worker->gateway->catalog, session->source, head->status,
                        loop_now_ms(session->worker->loop));
    tell_stream(session);
}

static void sessions_on_stream_message(void *context, struct str message)
{
    struct opened_session *session = opened_session_from(context);
    if (session->listener)
        session->listener(session->listener_context, message);
    else
        opened_session_answer_stray(session, message);
}

static void on_stream_end(void *context, const struct exchange_reply *reply)
{
    struct opened_session *session = opened_session_from(context);
    session->stream = NULL;
    if (session->stream_state == SESSION_STREAM_ASKED)
        session->stream_state = reply->status > 0 ? SESSION_STREAM_REFUSED : SESSION_STREAM_UNTRIED;
    if (session->stream_known)
        tell_stream(session);
    else if (session->listener_ended)
        session->listener_ended(session->listener_context);
}

bool opened_session_want_stream(struct opened_session *session,
                                void (*known)(struct opened_session *session))
{
    static const struct exchange_events events = {.reply = on_stream_end,
                                                  .head = on_stream_head,
                                                  .server_message = sessions_on_stream_message};
    if (catalog_lacks_stream(session->worker->gateway->catalog, session->source,
                             loop_now_ms(session->worker->loop)))
        session->stream_state = SESSION_STREAM_REFUSED;
    if (session->stream || session->stream_state == SESSION_STREAM_REFUSED)
        return false;
    struct sending sending = opened_session_sending(session);
    sending.method = "GET";
    sending.silence_ms = sending.total_ms = 0;
    session->stream_state = SESSION_STREAM_ASKED;
    session->stream_known = known;
    session->stream = exchange_send(session->worker, &sending, &events, session);
    loop_timer_start(&session->patience, STREAM_PATIENCE_MS);
    return true;
}

void opened_session_close_stream(struct opened_session *session)
{
    exchange_abandon(session->stream);
    session->stream = NULL;
}

/* ---- the end ---- */

void opened_session_destroy(struct opened_session *session)
{
    list_remove(&session->node);
    if (session->holder)
        quota_give_back(session->worker->gateway->opened_sessions, str_from(session->holder));
    loop_timer_stop(&session->patience);
    loop_timer_stop(&session->idle);
    exchange_abandon(session->exchange);
    exchange_abandon(session->stream);
    if (session->initialized.length > 0 && !session->is_lost)
        service_session_end(session->worker, session->snapshot, session->source, &session->headers);
    headers_finish(&session->headers);
    buffer_finish(&session->initialized);
    buffer_finish(&session->level);
    free((char *)(uintptr_t)session->base.id.bytes);
    free((char *)(uintptr_t)session->base.version.bytes);
    free(session->key);
    free(session->holder);
    snapshot_unref(session->snapshot);
    MAGIC_CLEAR(session);
    free(session);
}

/* ---- the choice of the session of a call ---- */

/* A call's hold on its session. */
struct session_lease {
    struct call_part part;
    struct call *call;
    struct opened_session *session;
    call_step next; /* while it waits */
};

/* ---- whose a session is ---- */

static bool is_anonymous(const struct call *call)
{
    return owner_is_anybody(call->owner);
}

bool session_pool_may_be_asked(const struct call *call)
{
    enum mcp_treatment treatment = call->method->treatment;
    bool has_rounds = treatment == MCP_TOOLS_CALL || treatment == MCP_GATED_URI ||
                      str_equal(call->envelope.method, STR("prompts/get"));
    return has_rounds && mcp_may_ask_any(call->envelope.reserved.client_capabilities);
}

/* The answer to `server/discover` depends on whether there is a stream. */
static bool wants_stream(const struct call *call)
{
    enum mcp_treatment treatment = call->method->treatment;
    return session_pool_may_be_asked(call) || treatment == MCP_LISTEN ||
           treatment == MCP_SERVER_DISCOVER;
}

static bool wants_alone(const struct call *call)
{
    return wants_stream(call) || call->envelope.reserved.log_level.length > 0;
}

/* A source of another snapshot may be another server. */
static char *sessions_key_of(const struct call *call)
{
    char capabilities[DIGEST_HEX_BYTES], client[DIGEST_HEX_BYTES];
    canonical_digest(call->envelope.reserved.client_capabilities, capabilities);
    canonical_digest(call->envelope.reserved.client_info, client);
    return memory_format("%s\n%llu\n%s\n%s\n%s", call->source->id,
                         (unsigned long long)call->snapshot->number, call->owner, capabilities,
                         client);
}

/* ---- giving back ---- */

void session_pool_give_back(struct opened_session *session)
{
    ASSERT_NUMBERS(session->users, >, 0);
    ASSERT(!session->is_alone || session->users == 1);
    session->users--;
    session->is_alone = false;
    session->listener = NULL;
    session->listener_ended = NULL;
    if (session->users > 0)
        return;
    bool is_open = session->initialized.length > 0;
    if (is_open && (session->is_lost || !session->key))
        opened_session_destroy(session);
    else if (is_open)
        loop_timer_start(&session->idle, IDLE_MS);
    /* Else the answer to `initialize` is still to come, with the id that ends the session. */
}

void session_pool_retire(struct opened_session *session)
{
    free(session->key);
    session->key = NULL;
}

static void drop(struct call *call, void *object)
{
    struct session_lease *lease = object;
    call->upstream_session = NULL;
    if (lease->session->waiting == lease)
        lease->session->waiting = NULL;
    session_pool_give_back(lease->session);
    free(lease);
}

static const struct call_part_kind lease_kind = CALL_PART_KIND(struct session_lease, drop);

struct opened_session *session_pool_of(const struct call *call)
{
    const struct session_lease *lease = call_part_find(call, &lease_kind);
    return lease ? lease->session : NULL;
}

struct opened_session *session_pool_take(struct call *call)
{
    struct session_lease *lease = call_part_get(call, &lease_kind);
    struct opened_session *session = lease->session;
    call_part_remove(&lease->part);
    free(lease);
    return session;
}

/* ---- ready, or not to be had ---- */

static void go_on(struct opened_session *session)
{
    struct session_lease *lease = session->waiting;
    session->waiting = NULL;
    if (!lease)
        return;
    struct call *call = lease->call;
    const call_step next = lease->next;
    call->upstream_session = &session->base;
    next(call);
}

/* The call may be asked something on the session's own stream, which must be there before. */
static void sessions_open_stream(struct opened_session *session)
{
    bool needs_stream = session->waiting && wants_stream(session->waiting->call);
    if (!needs_stream || !opened_session_want_stream(session, go_on))
        go_on(session);
}

static void answer_refused(struct call *call, const struct exchange_reply *reply)
{
    struct str error = json_member(reply->message, "error");
    const struct jsonrpc_error_data data = {
        .details = STR("the server opens no session for modern clients; nothing was sent")};
    if (reply->status == 401 || reply->status == 403 || reply->status == 429) {
        server_refusal_pass(call, reply);
    } else if (json_type(error) == JSON_OBJECT) {
        OWNED_BUFFER(mapped);
        OWNED_BUFFER(message);
        modern_text_write_error(&mapped, error, false);
        jsonrpc_write_error_text(&message, call->envelope.id, buffer_str(&mapped));
        call->outcome = "error";
        call_answer(call, buffer_str(&message));
    } else if (reply->result == UPSTREAM_SILENT) {
        call_answer_error(call, JSONRPC_UPSTREAM_TIMEOUT, STR_EMPTY, &data);
    } else {
        call_answer_error(call,
                          reply->status > 0 ? JSONRPC_UPSTREAM_ERROR : JSONRPC_UPSTREAM_FAILED,
                          STR_EMPTY, &data);
    }
}

static void sessions_on_opened(struct opened_session *session, const struct exchange_reply *refusal)
{
    struct session_lease *lease = session->waiting;
    struct call *call = lease ? lease->call : NULL;
    if (refusal)
        log_warn("A session for modern clients could not be opened",
                 LOG_TEXT("source", session->source->id), LOG_NUMBER("status", refusal->status));
    else
        source_eras_note(session->worker->gateway->eras, session->source, CONFIG_ERA_LEGACY, true,
                         clock_monotonic_ms());
    if (!refusal && lease && !is_anonymous(lease->call))
        call_note_acceptance(lease->call, STR_EMPTY);
    if (!refusal && session->users > 0) {
        sessions_open_stream(session);
        return;
    }
    if (!refusal && session->key) {
        loop_timer_start(&session->idle, IDLE_MS);
        return;
    }
    if (lease) {
        call_part_remove(&lease->part);
        free(lease);
    }
    opened_session_destroy(session);
    if (call && refusal)
        answer_refused(call, refusal);
}

/* ---- checking out ---- */

static bool is_free(const struct opened_session *session, bool alone)
{
    return session->initialized.length > 0 && !session->exchange && !session->is_lost &&
           !session->waiting && !session->is_alone && (!alone || session->users == 0);
}

static struct opened_session *find(struct gateway_worker *worker, const char *key, bool alone)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->opened_sessions) {
        struct opened_session *session = LIST_ENTRY(node, struct opened_session, node);
        if (session->key && strcmp(session->key, key) == 0 && is_free(session, alone))
            return session;
    }
    return NULL;
}

static struct str holder_of(const struct call *call)
{
    return call_is_unknown(call) ? http_peer(call->exchange) : str_from(call->owner);
}

/* Counts one more, which opened_session_destroy() takes back. false: there are too many, or too
 * many of the holder's. */
static bool count_one(const struct call *call, struct str holder)
{
    return quota_take(call->worker->gateway->opened_sessions, holder,
                      quota_share(&call->snapshot->config->limits, SESSION_POOL_MOST),
                      SESSION_POOL_MOST);
}

/* The oldest of the holder's; without one, of anybody. */
static bool end_one_idle(struct gateway_worker *worker, struct str holder)
{
    struct opened_session *idle = NULL;
    bool is_own = false;
    LIST_FOR_EACH_SAFE (node, next, &worker->opened_sessions) {
        struct opened_session *session = LIST_ENTRY(node, struct opened_session, node);
        if (is_own || session->users > 0 || session->exchange)
            continue;
        is_own = str_equal(str_from(session->holder), holder);
        idle = is_own || !idle ? session : idle;
    }
    if (idle)
        opened_session_destroy(idle);
    return idle;
}

static void deliver_shortage(struct gateway_worker *worker, const void *message)
{
    (void)message;
    end_one_idle(worker, STR_EMPTY);
}

/* Whether there is room for one more, which is counted; an idle one goes for it. If only other
 * workers have idle ones, each ends one, and the client finds room when it comes again. */
static bool sessions_make_room(const struct call *call, struct str holder)
{
    static const struct broadcast_kind shortage = {.deliver = deliver_shortage};
    if (count_one(call, holder) || (end_one_idle(call->worker, holder) && count_one(call, holder)))
        return true;
    broadcast_send(call->worker->gateway, &shortage, NULL);
    return false;
}

static void refuse_for_room(struct call *call)
{
    const struct jsonrpc_error_data data = {
        .details = STR("too many sessions are open at the server"), .retry_after = 1};
    log_warn("Too many sessions are open for modern clients", LOG_TEXT("source", call->source->id));
    call_answer_error(call, JSONRPC_RATE_LIMITED, STR_EMPTY, &data);
}

static struct session_lease *lease_out(struct call *call, struct opened_session *session,
                                       call_step next)
{
    struct session_lease *lease = memory_alloc(sizeof *lease);
    ASSERT(!session->is_alone && !session->waiting && !session->is_lost);
    *lease = (struct session_lease){.call = call, .session = session, .next = next};
    session->users++;
    session->is_alone = wants_alone(call) || !session->key;
    session->waiting = lease;
    loop_timer_stop(&session->idle);
    call_part_add(call, &lease->part, &lease_kind);
    return lease;
}

static struct opened_session *open_for(struct call *call)
{
    struct session_opening opening = {.worker = call->worker,
                                      .snapshot = call->snapshot,
                                      .source = call->source,
                                      .trace.parent = call_span_parent(call),
                                      .limit_ms = OPENING_MS,
                                      .total_ms = OPENING_MS,
                                      .most_bytes = OPENING_MOST_BYTES,
                                      .opened = sessions_on_opened};
    OWNED_BUFFER(params);
    OWNED_HEADERS(headers, false);
    headers_from_call(&headers, call);
    legacy_text_write_initialize(&params, call->envelope.reserved.client_capabilities,
                                 call->envelope.reserved.client_info);
    opening.headers = &headers;
    opening.params = buffer_str(&params);
    struct opened_session *session = opened_session_begin(&opening);
    session->users = 0; /* lease_out() counts the call */
    return session;
}

/* Takes the credentials of a later call, for the requests of the session's own. */
static void sessions_renew(struct opened_session *session, const struct call *call)
{
    headers_finish(&session->headers);
    headers_init(&session->headers, true);
    headers_from_call(&session->headers, call);
    headers_set_session(&session->headers, &session->base);
}

void session_pool_then(struct call *call, call_step next)
{
    call_identify(call);
    if (call->upstream_session) {
        next(call);
        return;
    }
    char *key = is_anonymous(call) ? NULL : sessions_key_of(call);
    char *holder = memory_copy_str(holder_of(call));
    /* A listener gets a new one: on a stream nothing tells that the server has forgotten an
     * earlier one. */
    bool is_shared = key && call->method->treatment != MCP_LISTEN;
    struct opened_session *session = is_shared ? find(call->worker, key, wants_alone(call)) : NULL;
    if (session) {
        free(key);
        free(holder);
        sessions_renew(session, call);
        lease_out(call, session, next);
        sessions_open_stream(session);
    } else if (sessions_make_room(call, str_from(holder))) {
        session = open_for(call);
        session->holder = holder;
        session->key = key;
        lease_out(call, session, next);
    } else {
        free(key);
        free(holder);
        refuse_for_room(call);
    }
}

/* ---- the end ---- */

void session_pool_end_idle(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->opened_sessions) {
        struct opened_session *session = LIST_ENTRY(node, struct opened_session, node);
        if (session->users == 0)
            opened_session_destroy(session);
    }
}

void session_pool_close(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->opened_sessions) {
        struct opened_session *session = LIST_ENTRY(node, struct opened_session, node);
        opened_session_destroy(session);
    }
    exchange_abandon_all(worker);
}
