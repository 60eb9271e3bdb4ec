/* `initialize`: what upstream can do is noted, what the gateway adds is injected (seed 002
 * F-001). */
#include <stdio.h>
#include <stdlib.h>

#include "bridge_check.h"
#include "bridged.h"
#include "call/call_part.h"
#include "call/extensions.h"
#include "call/session_store.h"
#include "compat/tools.h"
#include "doc_resources.h"
#include "inbox/inbox.h"
#include "initialize.h"
#include "input/input_request.h"
#include "methods.h"
#include "relay/relay.h"
#include "state/source_eras.h"
#include "state/tool_catalog.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/capabilities.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/extension.h"

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

void initialize_take_result(struct call *call, struct str result, const char *session,
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
void initialize_read_declarations(struct call *call)
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
        !facts->client.declares_elicitation && input_has_tools(call, INPUT_ELICITATION);
    facts->server.injected_sampling =
        !facts->client.declares_sampling && input_has_tools(call, INPUT_SAMPLING);
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

/* The server was asked whether it is modern. If not, it says again why it refuses. */
static void begin_again(struct call *call)
{
    if (call->is_bridged)
        bridged_initialize(call);
    else
        start(call, NULL);
}

static bool on_refused(struct call *call, int status)
{
    struct handshake *handshake = handshake_of(call);
    bool may_be_modern = status == 400 || status == 404 || status == 405;
    if (!may_be_modern || !bridge_check_refused(call, begin_again))
        return false;
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
