/* Requests in a session that the gateway has given out, and serves as a legacy server. */
#include "legacy_session.h"

#include "call/call.h"
#include "cancelled.h"
#include "conversation/question.h"
#include "legacy_stream.h"
#include "server/credential_check.h"
#include "state/session_table.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_text.h"
#include "taskgate/mcp/modern_text.h"

#include <stdlib.h>

#include "conversation/detach.h"
#include "conversation/execute.h"
#include "conversation/relay.h"
#include "inbox/inbox.h"
#include "legacy.h"
#include "server/http.h"
#include "server/own.h"
#include "server/probe.h"
#include "state/source_eras.h"
#include "state/tool_catalog.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/random.h"
#include "taskgate/json/members.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/capabilities.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/extension.h"
#include "tools/doc_resources.h"
#include "tools/tools.h"

/* `initialize`, of a client in front of a modern server. */

struct handshake {
    struct call_part part;
    char session[DIGEST_HEX_BYTES]; /* of the session upstream has just opened, or "" */
    struct envelope message;        /* to be sent, if it is not the client's */
    bool is_again;                  /* the server has refused it, and is not modern */
};

static void drop_handshake(struct call *call, void *object)
{
    struct handshake *handshake = object;
    envelope_finish(&handshake->message);
    free(handshake);
}

static const struct call_part_kind handshake_kind =
    CALL_PART_KIND(struct handshake, drop_handshake);

static struct handshake *handshake_of(const struct call *call)
{
    return call_part_get(call, &handshake_kind);
}

static void legacy_initialize_on_head(struct call *call, int status, const struct headers *headers)
{
    struct handshake *handshake = handshake_of(call);
    struct str id = headers_find(headers, "mcp-session-id");
    if (status == 200 && id.length > 0)
        call_digest_session(call, id, handshake->session);
}

/* Opens the inbox of a client that is shown the tools. */
static void keep_client(struct call *call, const char *session)
{
    char key[CLIENT_KEY_BYTES];
    inbox_key_of_session(call, session, key);
    if (client_is_shown_tools(call))
        inbox_touch(call->worker->gateway, str_from(key));
}

static void keep_session(struct call *call, struct str result, const char *digest,
                         const struct mcp_capabilities *upstream)
{
    struct gateway *gateway = call->worker->gateway;
    struct session_facts *facts = &call->facts;
    facts->known = true;
    facts->server.has_tasks = upstream->tasks;
    facts->server.has_task_status = upstream->task_status;
    facts->server.lacks_resources = !upstream->resources;
    json_copy_text(facts->version, sizeof facts->version, json_member(result, "protocolVersion"));
    sessions_put(gateway->sessions, str_from(call->source->id), str_from(digest), facts,
                 call->snapshot->config->limits.sessions);
    keep_client(call, digest);
    call_store_session(call, digest, (struct store_call){call->worker->loop, NULL, NULL});
}

static void inject(struct call *call, struct str result, const struct mcp_capabilities *upstream,
                   struct buffer *out)
{
    OWNED_BUFFER(shown);
    OWNED_BUFFER(injected);
    client_write_extensions(call, result, &shown);
    mcp_capabilities_inject(&injected, buffer_str(&shown), upstream);
    if (!upstream->resources && doc_resources_are_offered(call))
        mcp_capabilities_offer_resources(out, buffer_str(&injected));
    else
        buffer_append(out, buffer_str(&injected));
}

/* Some servers echo whatever version they are asked for. One of the modern era has no session, and
 * is not what the gateway speaks after `initialize`. */
static struct str with_legacy_version(struct str result, struct buffer *changed)
{
    if (!mcp_era_is_modern_version(json_member(result, "protocolVersion")))
        return result;
    json_write_with_member(changed, result, "protocolVersion", STR("\"" MCP_VERSION_LEGACY "\""));
    return buffer_str(changed);
}

/* Notes what the result shows of the server, keeps the session (a digest, or ""), and writes the
 * result for the client. */
static void initialize_take_result(struct call *call, struct str result, const char *session,
                                   struct buffer *out)
{
    struct catalog *catalog = call->worker->gateway->catalog;
    struct mcp_capabilities upstream;
    mcp_capabilities_detect(result, &upstream);
    upstream.lacks_sessions = session[0] == '\0';
    catalog_learn_capabilities(catalog, call->snapshot, call->source, &upstream);
    source_eras_note_directories(
        call->worker->gateway->eras, call->source,
        mcp_extension_has_setting(result, MCP_EXTENSION_SKILLS, MCP_DIRECTORY_READ));
    call_identify(call);
    if (session[0])
        keep_session(call, result, session, &upstream);
    else
        client_remember_without_session(call);
    /* Upstream has opened this session for this token, or serves it without one. */
    if (session[0] || !call->session[0])
        call_note_acceptance(call, str_from(session));
    inject(call, result, &upstream, out);
}

static void legacy_session_rewrite(struct call *call, const struct relay_reply *reply,
                                   struct buffer *out)
{
    OWNED_BUFFER(changed);
    source_eras_note(call->worker->gateway->eras, call->source, CONFIG_ERA_LEGACY, true,
                     loop_now_ms(call->worker->loop));
    initialize_take_result(call, with_legacy_version(reply->result, &changed),
                           handshake_of(call)->session, out);
}

/* Reads what the client says of itself, before upstream answers. */
static void initialize_read_declarations(struct call *call)
{
    struct str params = call->envelope.params;
    call_read_client(call, json_member(params, "capabilities"), json_member(params, "clientInfo"));
    call->facts.client.declares_tasks = mcp_client_declares_tasks(params);
    json_copy_text(call->facts.version, sizeof call->facts.version,
                   json_member(params, "protocolVersion")); /* until the server has answered */
}

/* The server may ask exactly when our tools can answer for a client that cannot be
 * asked itself. They cannot on a server without sessions: nothing says which client it asks. */
static void decide_injection(struct call *call)
{
    struct session_facts *facts = &call->facts;
    struct mcp_capabilities upstream;
    catalog_capabilities(call->worker->gateway->catalog, str_from(call->source->id), &upstream);
    if (upstream.lacks_sessions)
        return;
    facts->server.injected_elicitation =
        !facts->client.declares_elicitation && question_has_tools(call, QUESTION_ELICITATION);
    facts->server.injected_sampling =
        !facts->client.declares_sampling && question_has_tools(call, QUESTION_SAMPLING);
}

/* The client's own bytes but for what is added to its capabilities. */
static void legacy_session_write_message(const struct call *call, struct buffer *message)
{
    OWNED_BUFFER(capabilities);
    buffer_append(&capabilities, json_member(call->envelope.params, "capabilities"));
    if (call->facts.server.injected_elicitation)
        json_set_member(&capabilities, "elicitation", STR("{\"form\":{},\"url\":{}}"));
    if (call->facts.server.injected_sampling)
        json_set_member(&capabilities, "sampling", STR("{}"));
    json_write_with_inner(message, call->envelope.body, "params", "capabilities",
                          buffer_str(&capabilities));
}

/* Whether `message` is to be sent in place of the client's. */
static bool add_capabilities(struct call *call, struct envelope *message)
{
    struct buffer text = {0};
    if (!call->facts.server.injected_elicitation && !call->facts.server.injected_sampling)
        return false;
    legacy_session_write_message(call, &text);
    if (envelope_read_own(message, &text, NULL) == ENVELOPE_OK)
        return true;
    call->facts.server.injected_elicitation = false; /* the server knows only what goes up */
    call->facts.server.injected_sampling = false;
    return false;
}

static bool on_refused(struct call *call, int status);

static void legacy_session_start(struct call *call, bool is_again)
{
    static const struct looks looks = {.head = legacy_initialize_on_head,
                                       .rewrite = legacy_session_rewrite,
                                       .refused = on_refused};
    struct handshake *handshake = memory_alloc(sizeof *handshake);
    struct carried carried = {0};
    handshake->is_again = is_again;
    call_part_add(call, &handshake->part, &handshake_kind);
    decide_injection(call);
    if (add_capabilities(call, &handshake->message))
        carried.message = &handshake->message;
    relay_start(call, &looks, &carried);
}

static void given_session_open(struct call *call);

/* The server was asked whether it is modern. If so, it speaks that era alone. If not, it says again
 * why it refuses. */
static void begin_again(struct call *call)
{
    struct source_eras *eras = call->worker->gateway->eras;
    int64_t now_ms = loop_now_ms(call->worker->loop);
    unsigned served;
    source_eras_find(eras, call->source, now_ms, &served);
    if (served & CONFIG_ERA_MODERN)
        source_eras_note(eras, call->source, CONFIG_ERA_LEGACY, false, now_ms);
    bridge_check(call);
    if (call_gives_session(call))
        given_session_open(call);
    else
        legacy_session_start(call, true);
}

static bool on_refused(struct call *call, int status)
{
    struct handshake *handshake = handshake_of(call);
    bool may_be_modern = status == 400 || status == 404 || status == 405;
    if (handshake->is_again || !may_be_modern || !(call->source->bridge & BRIDGE_LEGACY) ||
        call->source->eras != CONFIG_ERA_AUTO)
        return false;
    era_probe_then(call, begin_again);
    call_part_remove(&handshake->part);
    drop_handshake(call, handshake);
    return true;
}

/* The source is said to be of the modern era alone, and legacy clients are not bridged to it. Its
 * server may know better, but of a session there no client could listen to the streams. */
static void legacy_initialize_refuse(struct call *call)
{
    const struct jsonrpc_error_data data = {
        .supported = STR("[\"" MCP_VERSION_MODERN "\"]"),
        .requested = json_path(call->envelope.params, "protocolVersion")};
    call->dialect = &dialect_modern;
    call_answer_error(call, JSONRPC_UNSUPPORTED_VERSION, STR_EMPTY, &data);
}

void initialize_handle(struct call *call)
{
    if (call->source->eras == CONFIG_ERA_MODERN && !call_gives_session(call)) {
        legacy_initialize_refuse(call);
        return;
    }
    initialize_read_declarations(call);
    legacy_session_start(call, false);
}

/* ---- a bridged client: `server/discover` up, the result of `initialize` down ---- */

#define DISCOVER_MOST_BYTES ((size_t)256 * 1024)

/* Whether a session is used only with the token that opened it. A verified token names its subject,
 * to whom the session belongs; and where sessions are owners, tokens are not asked. */
static bool given_session_is_bound(const struct call *call)
{
    return !call->identity && call->source->identity != IDENTITY_SESSION;
}

/* Keeps the capabilities that the session declares. False when they are larger than is kept. */
static bool read_client(struct call *call)
{
    struct str params = call->envelope.params, info = json_member(params, "clientInfo");
    struct buffer *said = &call->declared;
    buffer_clear(said);
    buffer_append_char(said, '{');
    json_add_key(said, "capabilities");
    modern_text_write_capabilities(said, json_member(params, "capabilities"));
    if (json_type(info) == JSON_OBJECT) {
        json_add_value(said, "clientInfo", info);
    }
    if (call->token[0] && given_session_is_bound(call))
        json_add_text(said, GIVEN_SESSION_TOKEN, call->token);
    buffer_append_char(said, '}');
    return said->length <= GIVEN_SESSION_BYTES / 2;
}

static void answer_with_session(struct call *call, struct str session, struct str result)
{
    const struct http_header headers[] = {{STR("content-type"), STR("application/json")},
                                          {STR("mcp-session-id"), session}};
    OWNED_BUFFER(message);
    jsonrpc_write_result(&message, call->envelope.id, result);
    call_respond(call, 200, headers, 2, buffer_str(&message));
}

static void legacy_session_open_session(struct call *call, struct str discovered)
{
    char digest[DIGEST_HEX_BYTES], uuid[RANDOM_UUID_BYTES];
    OWNED_BUFFER(session);
    OWNED_BUFFER(result);
    OWNED_BUFFER(injected);
    random_uuid(uuid);
    buffer_append_format(&session, GIVEN_SESSION_PREFIX "%s", uuid);
    call_digest_session(call, buffer_str(&session), digest);
    given_sessions_put(call->worker->gateway->given_sessions, str_from(call->source->id),
                       str_from(digest), buffer_str(&call->declared),
                       call->snapshot->config->limits.sessions);
    legacy_text_write_initialized(&result, discovered,
                                  json_member(call->envelope.params, "protocolVersion"),
                                  call->source->id);
    initialize_take_result(call, buffer_str(&result), digest, &injected);
    log_info("A legacy client is bridged to a modern server", LOG_TEXT("source", call->source->id),
             LOG_TEXT("client", call->facts.client.name));
    answer_with_session(call, buffer_str(&session), buffer_str(&injected));
}

/* It was a modern server, and is none now. */
static void go_on_as_legacy(struct call *call)
{
    source_eras_note(call->worker->gateway->eras, call->source, CONFIG_ERA_LEGACY, true,
                     loop_now_ms(call->worker->loop));
    call->carrier = NULL;
    initialize_handle(call);
}

static void legacy_session_on_discovered(struct call *call, const struct exchange_reply *reply,
                                         call_step next)
{
    struct str result = json_member(reply->message, "result");
    unsigned served;
    bool is_shown = era_probe_note(call->worker->gateway, call->source, reply);
    source_eras_find(call->worker->gateway->eras, call->source, loop_now_ms(call->worker->loop),
                     &served);
    if (result.length > 0 && mcp_discover_lists(result, STR(MCP_VERSION_MODERN)))
        legacy_session_open_session(call, result);
    else if (is_shown && call->source->eras == CONFIG_ERA_AUTO && !(served & CONFIG_ERA_MODERN))
        go_on_as_legacy(call);
    else
        legacy_client_answer_failure(call, reply);
}

/* Opens a session of a bridged client by asking the server what it is. */
static void given_session_open(struct call *call)
{
    struct headers headers;
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    call_identify(call);
    initialize_read_declarations(call);
    if (!read_client(call)) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS,
                          STR("params.capabilities and params.clientInfo are longer than is kept"),
                          NULL);
        return;
    }
    headers_init(&headers, true);
    client_request_write_own(call, "server/discover", STR_EMPTY, &headers, &body, &id);
    server_ask(call, &(struct exchange_question){
                         .headers = &headers,
                         .body = buffer_str(&body),
                         .id = buffer_str(&id),
                         .limit_ms = call->snapshot->config->times.tools_fetch_timeout_ms,
                         .most_bytes = DISCOVER_MOST_BYTES,
                         .answered = legacy_session_on_discovered});
    headers_finish(&headers);
}

/* The end of a session. */

/* "No such session" ends one only for a client that upstream has known in it: to a stranger a
 * server may say so of a session that lives. */
static bool has_ended(const struct call *call, int status)
{
    if (status != 404)
        return status >= 200 && status < 300;
    return !call_is_stranger(call);
}

/* A library that opens a session for each call loses its tasks from sight so. */
static void legacy_session_on_cancelled(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    if (reply->status == STORE_OK && reply->has_promised &&
        catalog_fault_is_due(call->worker->gateway->catalog, call->source, CATALOG_FAULT_SESSIONS,
                             clock_monotonic_ms()))
        log_warn("A session without a token has ended before its tasks: they are reached by their "
                 "ids alone, and what waits for approval runs only when it is fetched; "
                 "identity: anonymous in the source makes one owner of all its sessions",
                 LOG_TEXT("source", call->source->id));
    call_unref(call);
}

/* The session of the call has ended: its undecided tasks are cancelled, except those that an
 * Authorization owns, and credentials are dropped. */
static void session_end_forget(struct call *call)
{
    struct gateway *gateway = call->worker->gateway;
    struct str source = str_from(call->source->id), session = str_from(call->session);
    struct store_call nobody = {call->worker->loop, NULL, NULL};
    char key[CLIENT_KEY_BYTES];
    seen_table_forget_session(gateway->sessions, source, session);
    seen_table_forget_session(gateway->given_sessions, source, session);
    accepted_pairs_remove(gateway->accepted_pairs, source, session, str_from(call->token));
    store_session_delete(gateway->store, source, session, nobody);
    store_task_cancel_session(
        gateway->store, source, session, STR(OWNER_ANONYMOUS),
        (struct store_call){call->worker->loop, legacy_session_on_cancelled, call_ref(call)});
    client_key_of_session(call->source, call->session, key);
    execution_forget_session(gateway, str_from(key));
    question_end_session(call->worker, str_from(key));
    detached_calls_end_session(call, str_from(key));
    inbox_end_session(gateway, str_from(key));
}

static void legacy_session_on_head(struct call *call, int status, const struct headers *headers)
{
    if (call->session[0] && has_ended(call, status))
        session_end_forget(call);
}

void session_end_handle(struct call *call)
{
    static const struct looks looks = {.head = legacy_session_on_head};
    if (!detached_calls_hold_session(call)) {
        relay_start(call, &looks, NULL);
        return;
    }
    if (!call_is_stranger(call))
        session_end_forget(call);
    call_answer_status(call, 204, STR_EMPTY);
}

/* ---- refusals ---- */

static void refuse(struct call *call, int status, enum jsonrpc_error error, struct str why)
{
    OWNED_BUFFER(text);
    struct str id = call->envelope.kind == ENVELOPE_REQUEST ? call->envelope.id : STR_EMPTY;
    jsonrpc_write_error(&text, id, error, why, NULL);
    call_answer_status(call, status, buffer_str(&text));
}

/* The server knows no session, so the gateway alone can refuse one to a stranger. */
static bool is_bound_to_another(const struct call *call)
{
    struct str token = json_member(buffer_str(&call->declared), GIVEN_SESSION_TOKEN);
    if (token.length == 0 || !given_session_is_bound(call) ||
        json_string_equals(token, str_from(call->token)))
        return false;
    log_warn("Request refused: its session was opened with another token",
             LOG_TEXT("source", call->source->id));
    return true;
}

/* The session is loaded. False when the call is answered: on 404 clients begin anew. */
static bool has_session(struct call *call)
{
    buffer_clear(&call->declared);
    bool is_there =
        call->facts.known &&
        given_sessions_get(call->worker->gateway->given_sessions, str_from(call->source->id),
                           str_from(call->session), &call->declared);
    bool is_anothers = is_there && is_bound_to_another(call);
    if (is_there && !is_anothers)
        return true;
    if (call->facts_failed)
        refuse(call, 503, JSONRPC_INVALID_REQUEST, STR("The session cannot be looked up"));
    else
        refuse(call, is_anothers && call->envelope.kind == ENVELOPE_RESPONSE ? 400 : 404,
               JSONRPC_INVALID_REQUEST, STR("Session not found"));
    return false;
}

/* ---- what the gateway answers ---- */

/* Declared with the session's next requests, also after a restart. */
static void set_level(struct call *call)
{
    struct str level = json_member(call->envelope.params, "level");
    if (mcp_log_level(level) < 0) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS,
                          STR("params.level must be one of the levels of syslog"), NULL);
        return;
    }
    given_sessions_set(call->worker->gateway->given_sessions, str_from(call->source->id),
                       str_from(call->session), "logLevel", level);
    call_store_session_then_answer(call);
}

static void answer_ping(struct call *call)
{
    call_answer_result(call, STR("{}"));
}

/* The methods that no modern server has; NULL: the method's own handler judges. */
static call_step own_handler(const struct call *call)
{
    static const struct {
        const char *method;
        call_step handle;
    } own[] = {{"ping", answer_ping}, {"logging/setLevel", set_level}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (str_equal(call->envelope.method, str_from(own[i].method)))
            return own[i].handle;
    }
    return NULL;
}

/* ---- a message ---- */

static void handle_in_session(struct call *call)
{
    if (has_session(call))
        call->in_session(call);
}

static void handle_with(struct call *call, call_step handler)
{
    call_identify(call);
    if (!call->session[0]) {
        refuse(call, 400, JSONRPC_INVALID_REQUEST,
               STR("Mcp-Session-Id is missing: begin with initialize"));
        return;
    }
    call->in_session = handler;
    call_with_facts(call, handle_in_session);
}

void given_session_handle(struct call *call, call_step handler)
{
    const call_step own = own_handler(call);
    if (call->envelope.kind == ENVELOPE_NOTIFICATION) {
        /* The modern era has none of a client's: closing a stream is the cancellation. */
        if (str_equal(call->envelope.method, STR(MCP_CANCELLED)))
            cancelled_notify(call);
        call_answer(call, STR_EMPTY);
    } else if (call->method->treatment == MCP_INITIALIZE) {
        given_session_open(call);
    } else if (call->method->treatment == MCP_SERVER_DISCOVER) {
        handler(call); /* refuses it: the envelope is missing */
    } else {
        handle_with(call, own ? own : handler);
    }
}

/* To what is asked in a task, or in a call that is under way. */
static void take_response(struct call *call)
{
    struct str result = call->envelope.result;
    if (result.length > 0 && json_type(result) != JSON_OBJECT) {
        refuse(call, 400, JSONRPC_INVALID_PARAMS, STR("The result of a request must be an object"));
    } else if (!question_take_response(call)) {
        log_warn("A response is refused: it answers no request that is open in its session",
                 LOG_TEXT("source", call->source->id));
        refuse(call, 400, JSONRPC_INVALID_PARAMS,
               STR("No request of this id is open in this session"));
    }
}

void given_session_handle_response(struct call *call)
{
    handle_with(call, take_response);
}

/* ---- GET and DELETE ---- */

static void end_session(struct call *call)
{
    if (call_is_stranger(call)) {
        refuse(call, 404, JSONRPC_INVALID_REQUEST, STR("Session not found"));
        return;
    }
    log_info("A bridged session ends", LOG_TEXT("source", call->source->id));
    session_end_forget(call);
    legacy_stream_end_session(call);
    cancelled_notify_all(call);
    call_answer_status(call, 200, STR_EMPTY);
}

static void legacy_session_open_stream(struct call *call)
{
    if (atomic_load(&call->worker->gateway->shutting_down))
        call_answer_status(call, 503, STR_EMPTY);
    else
        legacy_stream_open(call);
}

/* After a restart the server is asked again whether it accepts the client. */
static void check_stream(struct call *call)
{
    credential_check_then(call, legacy_session_open_stream);
}

static void refuse_verb(struct call *call)
{
    call_answer_status(call, 405, STR_EMPTY);
}

void given_session_handle_verb(struct call *call)
{
    struct str verb = http_method(call->exchange);
    handle_with(call, str_equal(verb, STR("GET"))      ? check_stream
                      : str_equal(verb, STR("DELETE")) ? end_session
                                                       : refuse_verb);
}
