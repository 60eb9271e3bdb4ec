/* `initialize`: what upstream can do is noted, what the gateway adds is injected (behaviour 5.1,
 * 5.2). */
#include <stdio.h>
#include <stdlib.h>

#include "call/call.h"
#include "call/extensions.h"
#include "call/session_store.h"
#include "client/legacy.h"
#include "conversation/question.h"
#include "conversation/relay.h"
#include "doc_resources.h"
#include "inbox/inbox.h"
#include "initialize.h"
#include "methods.h"
#include "server/bridge_request.h"
#include "server/http.h"
#include "server/probe.h"
#include "state/session_table.h"
#include "state/source_eras.h"
#include "state/tool_catalog.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/capabilities.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/extension.h"
#include "taskgate/mcp/legacy_bridge.h"
#include "tools/tools.h"

/* A session keeps its kind, whatever its server becomes meanwhile. */
#define GIVEN_SESSION_PREFIX "tg-bridge-"

void bridge_check(struct call *call)
{
    if (!(call->source->bridge & BRIDGE_LEGACY))
        return;
    struct str session = http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID);
    call->is_bridged = str_starts_with(session, STR(GIVEN_SESSION_PREFIX)) ||
                       source_eras_is_modern_alone(call->worker->gateway->eras, call->source);
    call->carrier = call->is_bridged ? &legacy_client_carrier : NULL;
}

struct handshake {
    struct call_part part;
    char session[DIGEST_HEX_BYTES]; /* of the session upstream has just opened, or "" */
    struct envelope message;        /* to be sent, if it is not the client's */
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

static void on_head(struct call *call, int status, const struct headers *headers)
{
    struct handshake *handshake = handshake_of(call);
    struct str id = headers_find(headers, "mcp-session-id");
    if (status == 200 && id.length > 0)
        call_digest_session(call, id, handshake->session);
}

static void copy_text(char *to, size_t size, struct str json_string)
{
    char *text = json_string_text(json_string, NULL);
    snprintf(to, size, "%s", text ? text : "");
    free(text);
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
    struct str client = json_member(call->envelope.params, "clientInfo");
    struct session_facts facts = {
        .known = true,
        .server.has_tasks = upstream->tasks,
        .server.has_task_status = upstream->task_status,
        .server.lacks_resources = !upstream->resources,
        .client.declares_tasks = call->facts.client.declares_tasks,
        .client.declares_elicitation = call->facts.client.declares_elicitation,
        .client.declares_sampling = call->facts.client.declares_sampling,
        .server.injected_elicitation = call->facts.server.injected_elicitation,
        .server.injected_sampling = call->facts.server.injected_sampling,
    };
    int64_t limit = call->snapshot->config->limits.sessions;
    struct str source = str_from(call->source->id), session = str_from(digest);
    copy_text(facts.version, sizeof facts.version, json_member(result, "protocolVersion"));
    copy_text(facts.client.name, sizeof facts.client.name, json_member(client, "name"));
    copy_text(facts.client.version, sizeof facts.client.version, json_member(client, "version"));
    sessions_put(gateway->sessions, source, session, &facts, limit);
    call->facts = facts;
    keep_client(call, digest);
    session_store_put(call, digest, (struct store_call){call->worker->loop, NULL, NULL});
}

static void inject(struct call *call, struct str result, const struct mcp_capabilities *upstream,
                   struct buffer *out)
{
    struct buffer shown, injected;
    buffer_init(&shown);
    buffer_init(&injected);
    extensions_write_shown(call, result, &shown);
    mcp_capabilities_inject(&injected, buffer_str(&shown), upstream);
    if (!upstream->resources && doc_resources_are_offered(call))
        mcp_capabilities_offer_resources(out, buffer_str(&injected));
    else
        buffer_append(out, buffer_str(&injected));
    buffer_finish(&injected);
    buffer_finish(&shown);
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
    char *line =
        memory_format("Upstream capabilities: tasks=%s sse=%s", upstream.tasks ? "true" : "false",
                      upstream.task_status ? "true" : "false");
    log_info(line, LOG_TEXT("source", call->source->id));
    free(line);
    if (catalog_set_capabilities(catalog, call->source, &upstream))
        catalog_announce_all(catalog, call->snapshot);
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

static void rewrite(struct call *call, const struct relay_reply *reply, struct buffer *out)
{
    struct buffer changed;
    buffer_init(&changed);
    source_eras_note(call->worker->gateway->eras, call->source, CONFIG_ERA_LEGACY, true,
                     loop_now_ms(call->worker->loop));
    initialize_take_result(call, with_legacy_version(reply->result, &changed),
                           handshake_of(call)->session, out);
    buffer_finish(&changed);
}

/* Reads what the client says of itself, before upstream answers. */
static void initialize_read_declarations(struct call *call)
{
    struct str params = call->envelope.params;
    struct str capabilities = json_member(params, "capabilities");
    copy_text(call->facts.client.name, sizeof call->facts.client.name,
              json_path(params, "clientInfo", "name"));
    copy_text(call->facts.version, sizeof call->facts.version,
              json_member(params, "protocolVersion")); /* until the server has answered */
    call->facts.client.declares_tasks = mcp_client_declares_tasks(params);
    call->facts.client.declares_elicitation = json_member(capabilities, "elicitation").length > 0;
    call->facts.client.declares_sampling = json_member(capabilities, "sampling").length > 0;
}

/* Upstream is told that it may ask, exactly when our tools can answer for a client that cannot be
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

static void add_member(struct buffer *object, const char *key, struct str value)
{
    struct buffer changed;
    buffer_init(&changed);
    json_write_with_member(&changed, buffer_str(object), key, value);
    buffer_finish(object);
    *object = changed;
}

/* The client's own bytes but for what is added to its capabilities. */
static void write_message(const struct call *call, struct buffer *message)
{
    struct str params = call->envelope.params;
    struct buffer capabilities, changed;
    buffer_init(&capabilities);
    buffer_init(&changed);
    buffer_append(&capabilities, json_member(params, "capabilities"));
    if (call->facts.server.injected_elicitation)
        add_member(&capabilities, "elicitation", STR("{\"form\":{},\"url\":{}}"));
    if (call->facts.server.injected_sampling)
        add_member(&capabilities, "sampling", STR("{}"));
    json_write_with_member(&changed, params, "capabilities", buffer_str(&capabilities));
    json_write_with_member(message, call->envelope.body, "params", buffer_str(&changed));
    buffer_finish(&changed);
    buffer_finish(&capabilities);
}

/* Has the relay send `message` in place of the client's. */
static void add_capabilities(struct call *call, struct envelope *message,
                             struct relay_options *options)
{
    struct buffer text = {0};
    write_message(call, &text);
    if (envelope_read_own(message, &text, NULL) == ENVELOPE_OK) {
        options->message = message;
    } else { /* the server is told only what goes up */
        call->facts.server.injected_elicitation = false;
        call->facts.server.injected_sampling = false;
    }
}

static void start(struct call *call, bool (*refused)(struct call *call, int status))
{
    struct relay_options options = {.head = on_head, .rewrite = rewrite, .refused = refused};
    struct handshake *handshake = memory_alloc(sizeof *handshake);
    call_part_add(call, &handshake->part, &handshake_kind);
    decide_injection(call);
    if (call->facts.server.injected_elicitation || call->facts.server.injected_sampling)
        add_capabilities(call, &handshake->message, &options);
    relay_start(call, &options);
}

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
    if (call->is_bridged)
        given_session_open(call);
    else
        start(call, NULL);
}

static bool on_refused(struct call *call, int status)
{
    struct handshake *handshake = handshake_of(call);
    bool may_be_modern = status == 400 || status == 404 || status == 405;
    if (!may_be_modern || !(call->source->bridge & BRIDGE_LEGACY) ||
        call->source->eras != CONFIG_ERA_AUTO)
        return false;
    era_probe_then(call, begin_again);
    call_part_remove(&handshake->part);
    drop_handshake(call, handshake);
    return true;
}

/* The source is said to be of the modern era alone, and legacy clients are not bridged to it. Its
 * server may know better, but of a session there no client could listen to the streams. */
static void refuse(struct call *call)
{
    const struct jsonrpc_error_data data = {
        .supported = STR("[\"" MCP_VERSION_MODERN "\"]"),
        .requested = json_path(call->envelope.params, "protocolVersion")};
    call->dialect = &dialect_modern;
    call_answer_error(call, JSONRPC_UNSUPPORTED_VERSION, STR_EMPTY, &data);
}

void initialize_handle(struct call *call)
{
    if (call->source->eras == CONFIG_ERA_MODERN && !call->is_bridged) {
        refuse(call);
        return;
    }
    initialize_read_declarations(call);
    start(call, on_refused);
}

/* ---- a bridged client: `server/discover` up, the result of `initialize` down ---- */

#define DISCOVER_MOST_BYTES ((size_t)256 * 1024)

bool given_session_is_bound(const struct call *call)
{
    return !call->identity && call->source->identity != IDENTITY_SESSION;
}

struct discovery {
    struct call_part part;
    struct call *call;
    struct exchange *exchange;
};

static void drop_discovery(struct call *call, void *object)
{
    struct discovery *discovery = object;
    (void)call;
    exchange_abandon(discovery->exchange);
    free(discovery);
}

static const struct call_part_kind discovery_kind =
    CALL_PART_KIND(struct discovery, drop_discovery);

/* Keeps the capabilities that the session declares. False when they are larger than is kept. */
static bool read_client(struct call *call)
{
    struct str params = call->envelope.params, info = json_member(params, "clientInfo");
    struct buffer *said = &call->declared;
    buffer_clear(said);
    buffer_append_char(said, '{');
    json_add_key(said, "capabilities");
    legacy_bridge_write_capabilities(said, json_member(params, "capabilities"));
    if (json_type(info) == JSON_OBJECT) {
        json_add_key(said, "clientInfo");
        buffer_append(said, info);
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
    struct buffer message;
    buffer_init(&message);
    jsonrpc_write_result(&message, call->envelope.id, result);
    call_respond(call, 200, headers, 2, buffer_str(&message));
    buffer_finish(&message);
}

static void write_session(struct buffer *id)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_append_format(id, GIVEN_SESSION_PREFIX "%s", uuid);
}

static void open_session(struct call *call, struct str discovered)
{
    char digest[DIGEST_HEX_BYTES];
    struct buffer session, result, injected;
    buffer_init(&session);
    buffer_init(&result);
    buffer_init(&injected);
    write_session(&session);
    call_digest_session(call, buffer_str(&session), digest);
    given_sessions_put(call->worker->gateway->given_sessions, str_from(call->source->id),
                       str_from(digest), buffer_str(&call->declared),
                       call->snapshot->config->limits.sessions);
    legacy_bridge_write_initialize(&result, discovered,
                                   json_member(call->envelope.params, "protocolVersion"),
                                   call->source->id);
    initialize_take_result(call, buffer_str(&result), digest, &injected);
    log_info("A legacy client is bridged to a modern server", LOG_TEXT("source", call->source->id),
             LOG_TEXT("client", call->facts.client.name));
    answer_with_session(call, buffer_str(&session), buffer_str(&injected));
    buffer_finish(&injected);
    buffer_finish(&result);
    buffer_finish(&session);
}

/* It was a modern server, and is none now. */
static void go_on_as_legacy(struct call *call)
{
    source_eras_note(call->worker->gateway->eras, call->source, CONFIG_ERA_LEGACY, true,
                     loop_now_ms(call->worker->loop));
    call->is_bridged = false;
    call->carrier = NULL;
    initialize_handle(call);
}

static void on_discovered(void *context, const struct exchange_reply *reply)
{
    struct discovery *discovery = context;
    struct call *call = discovery->call;
    struct str result = json_member(reply->message, "result");
    unsigned served;
    call_part_remove(&discovery->part);
    free(discovery);
    bool is_shown = era_probe_note(call->worker->gateway, call->source, reply);
    source_eras_find(call->worker->gateway->eras, call->source, loop_now_ms(call->worker->loop),
                     &served);
    if (result.length > 0 && mcp_discover_lists(result, STR(MCP_VERSION_MODERN)))
        open_session(call, result);
    else if (is_shown && call->source->eras == CONFIG_ERA_AUTO && !(served & CONFIG_ERA_MODERN))
        go_on_as_legacy(call);
    else
        legacy_client_answer_failure(call, reply);
}

void given_session_open(struct call *call)
{
    static const struct exchange_events events = {.reply = on_discovered};
    int64_t limit_ms = call->snapshot->config->times.tools_fetch_timeout_ms;
    struct headers headers;
    struct buffer body = {0}, id = {0};
    call_identify(call);
    initialize_read_declarations(call);
    if (!read_client(call)) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS,
                          STR("params.capabilities and params.clientInfo are longer than is kept"),
                          NULL);
        return;
    }
    headers_init(&headers, true);
    bridge_request_write_own(call, "server/discover", STR_EMPTY, &headers, &body, &id);
    const struct exchange_question question = {&headers, buffer_str(&body), buffer_str(&id),
                                               limit_ms, DISCOVER_MOST_BYTES};
    struct discovery *discovery = memory_alloc(sizeof *discovery);
    discovery->call = call;
    call_part_add(call, &discovery->part, &discovery_kind);
    discovery->exchange = exchange_ask(call, &question, &events, discovery);
    buffer_finish(&id);
    buffer_finish(&body);
    headers_finish(&headers);
}
