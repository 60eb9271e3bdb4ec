/* `initialize`: what upstream can do is noted, what the gateway adds is injected (seed 002
 * F-001). */
#include <stdio.h>
#include <stdlib.h>

#include "diagrams.h"
#include "pseudo/client.h"
#include "pseudo/tools.h"
#include "relay.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/capabilities.h"

struct handshake {
    char session[DIGEST_HEX_BYTES]; /* of the session upstream has just opened, or "" */
};

static void on_head(struct call *call, int status, const struct headers *headers)
{
    struct handshake *handshake = call->state;
    struct str id = headers_find(headers, "mcp-session-id");
    if (status == 200 && id.length > 0)
        digest_sha256_hex(id, handshake->session);
}

static void copy_text(char *to, size_t size, struct str json_string)
{
    char *text = json_string_text(json_string, NULL);
    snprintf(to, size, "%s", text ? text : "");
    free(text);
}

/* What it is to be told is kept from now on, when it is one to be told by tools. */
static void keep_client(struct call *call, const char *session)
{
    char key[PSEUDO_KEY_BYTES];
    pseudo_key_of_session(call->source, session, key);
    if (pseudo_serves(call))
        pseudo_client_touch(call->worker->gateway, str_from(key));
}

static void keep_session(struct call *call, struct str result,
                         const struct mcp_capabilities *upstream)
{
    struct handshake *handshake = call->state;
    struct gateway *gateway = call->worker->gateway;
    struct str params = call->envelope.params;
    struct str client = json_member(params, "clientInfo");
    struct str capabilities = json_member(params, "capabilities");
    struct session_facts facts = {
        .known = true,
        .upstream_tasks = upstream->tasks,
        .upstream_task_status = upstream->task_status,
        .upstream_lacks_resources = !upstream->resources,
        .declares_tasks = call->facts.declares_tasks,
        .declares_elicitation = call->facts.declares_elicitation,
        .declares_sampling = call->facts.declares_sampling,
    };
    int64_t limit = call->snapshot->config->limits.sessions;
    struct str source = str_from(call->source->id), session = str_from(handshake->session);
    copy_text(facts.version, sizeof facts.version, json_member(result, "protocolVersion"));
    copy_text(facts.client_name, sizeof facts.client_name, json_member(client, "name"));
    copy_text(facts.client_version, sizeof facts.client_version, json_member(client, "version"));
    sessions_put(gateway->sessions, source, session, &facts, limit);
    call->facts = facts;
    keep_client(call, handshake->session);
    char *text = memory_copy_str(capabilities.length > 0 ? capabilities : STR("{}"));
    struct store_session stored = {
        .source = call->source->id,
        .id_digest = handshake->session,
        .version = facts.version,
        .client_name = facts.client_name,
        .client_version = facts.client_version,
        .client_capabilities = text,
        .upstream_tasks = upstream->tasks,
        .upstream_sse = upstream->task_status,
        .seen_ms = clock_now_ms(),
    };
    store_session_put(gateway->store, &stored, (struct store_call){call->worker->loop, NULL, NULL});
    free(text);
    /* Upstream opened this session for this token: that is an acceptance of the pair. */
    struct str token = str_from(call->token);
    if (sessions_accept(gateway->sessions, source, session, token, clock_monotonic_ms(), limit))
        store_pair_put(gateway->store, source, session, token, clock_now_ms(),
                       (struct store_call){call->worker->loop, NULL, NULL});
}

static void inject(struct call *call, struct str result, const struct mcp_capabilities *upstream,
                   struct buffer *out)
{
    struct buffer injected;
    buffer_init(&injected);
    mcp_capabilities_inject(&injected, result, upstream);
    if (!upstream->resources && diagrams_are_offered(call))
        mcp_capabilities_offer_resources(out, buffer_str(&injected));
    else
        buffer_append(out, buffer_str(&injected));
    buffer_finish(&injected);
}

static void rewrite(struct call *call, struct str result, struct buffer *out)
{
    struct handshake *handshake = call->state;
    struct catalog *catalog = call->worker->gateway->catalog;
    struct mcp_capabilities upstream;
    mcp_capabilities_detect(result, &upstream);
    char *line =
        memory_format("Upstream capabilities: tasks=%s sse=%s", upstream.tasks ? "true" : "false",
                      upstream.task_status ? "true" : "false");
    log_info(line, LOG_TEXT("source", call->source->id));
    free(line);
    if (catalog_set_capabilities(catalog, str_from(call->source->id), &upstream))
        catalog_announce_all(catalog, call->snapshot);
    if (handshake->session[0])
        keep_session(call, result, &upstream);
    inject(call, result, &upstream, out);
}

static void drop_handshake(struct call *call)
{
    free(call->state);
    call->state = NULL;
}

/* What the client says of itself is known before upstream answers. */
static void read_declarations(struct call *call)
{
    struct str params = call->envelope.params;
    struct str capabilities = json_member(params, "capabilities");
    call->facts.declares_tasks = mcp_client_declares_tasks(params);
    call->facts.declares_elicitation = json_member(capabilities, "elicitation").length > 0;
    call->facts.declares_sampling = json_member(capabilities, "sampling").length > 0;
}

void initialize_handle(struct call *call)
{
    read_declarations(call);
    struct relay_options options = {.head = on_head, .rewrite = rewrite};
    call->state = memory_alloc(sizeof(struct handshake));
    call->abandoned = drop_handshake;
    relay_start(call, &options);
}
