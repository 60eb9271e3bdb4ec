/* The profile of a client: from its session, its token and the configuration. */
#include "client_profile.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "state/tool_catalog.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/identity/identity.h"
#include "taskgate/mcp/extension.h"

/* ---- keys ---- */

/* Source ids hold no '/', so no two clients share a key. A long id stands as its digest. */
static void client_profile_write_key(const char *source, const char *kind, const char *name,
                                     char key[])
{
    char digest[DIGEST_HEX_BYTES];
    if (strlen(source) > 100) {
        digest_sha256_hex(str_from(source), digest);
        source = digest;
    }
    char kind_and_name[CLIENT_KEY_BYTES];
    str_join(kind_and_name, sizeof kind_and_name, str_from(kind), str_from(name));
    str_join(key, CLIENT_KEY_BYTES, str_from(source), str_from(kind_and_name));
}

static void write_key_of(const char *source, const char *session, const char *owner, char key[])
{
    if (session[0])
        client_profile_write_key(source, "/session:", session, key);
    else if (strcmp(owner, OWNER_ANONYMOUS) != 0)
        client_profile_write_key(source, "/", owner, key);
    else
        key[0] = '\0';
}

void client_key_prefix(const char *source, char prefix[])
{
    client_profile_write_key(source, "/", "", prefix);
}

void client_key_of_session(const struct config_source *source, const char *session, char key[])
{
    write_key_of(source->id, session, OWNER_ANONYMOUS, key);
}

void client_key_of_call(const struct call *call, char key[])
{
    write_key_of(call->source->id, call->session, call->owner, key);
}

void client_key_of_owner(const struct call *call, char key[])
{
    write_key_of(call->source->id, "", call->owner, key);
}

void client_key_of_task(const struct task *task, char key[])
{
    write_key_of(task->source, task->session, task->owner, key);
}

void client_key_of_task_owner(const struct task *task, char key[])
{
    write_key_of(task->source, "", task->owner, key);
}

/* Only the task leads to the inputs of an anonymous owner. */
void client_key_or_id_of_task(const struct task *task, char key[])
{
    client_key_of_task(task, key);
    if (!key[0])
        snprintf(key, CLIENT_KEY_BYTES, "%s", task->id);
}

/* ---- what it knows ---- */

static bool is_for(const struct config_rule *rule, const struct config_source *source)
{
    bool is_for = rule->sources.count == 0;
    for (size_t i = 0; !is_for && i < rule->sources.count; i++)
        is_for = strcmp(rule->sources.items[i], source->id) == 0;
    return is_for;
}

static bool client_profile_needs_human(enum config_action action)
{
    return action == ACTION_APPROVE || action == ACTION_POLICY;
}

/* Whether a call to this source may have to wait for a human. */
static bool may_be_held(const struct call *call)
{
    const struct config *config = call->snapshot->config;
    bool may_be = client_profile_needs_human(config->default_action);
    for (size_t i = 0; !may_be && i < config->rule_count; i++)
        may_be = client_profile_needs_human(config->rules[i].action) &&
                 is_for(&config->rules[i], call->source);
    return may_be;
}

bool client_has_version(const struct call *call, const char *version)
{
    return strcmp(call->facts.version, version) >= 0;
}

bool client_knows_tasks(const struct call *call)
{
    const struct config_client *client =
        config_client_find(call->snapshot->config, str_from(call->facts.client.name));
    if (call->dialect->has_sessions && client && client->tasks != CLIENT_TASKS_AUTO)
        return client->tasks == CLIENT_TASKS_YES;
    return call->facts.client.declares_tasks && client_has_version(call, "2025-11-25");
}

bool client_is_shown_tools(const struct call *call)
{
    const struct config *config = call->snapshot->config;
    if (!call->dialect->offers_all_tools && !may_be_held(call))
        return false;
    if (config->pseudo.mode != PSEUDO_AUTO)
        return config->pseudo.mode == PSEUDO_ALWAYS;
    return !client_knows_tasks(call);
}

bool client_may_be_promoted(const struct call *call)
{
    const struct config_pseudo *pseudo = &call->snapshot->config->pseudo;
    return pseudo->mode != PSEUDO_NEVER && pseudo->promote != PROMOTE_NEVER &&
           call->dialect->has_sessions && !client_knows_tasks(call);
}

/* In the place of a session's digest, which holds no ':'. */
static struct str owner_as_session(const struct call *call, char name[CLIENT_KEY_BYTES])
{
    str_join(name, CLIENT_KEY_BYTES, STR("owner:"), str_from(call->owner));
    return str_from(name);
}

void client_remember_without_session(struct call *call)
{
    struct seen_table *sessions = call->worker->gateway->sessions;
    struct str source = str_from(call->source->id);
    struct session_facts facts = {0};
    char name[CLIENT_KEY_BYTES];
    struct str session = owner_as_session(call, name);
    sessions_get(sessions, source, session, &facts);
    facts.client.declares_elicitation |= call->facts.client.declares_elicitation;
    facts.client.declares_sampling |= call->facts.client.declares_sampling;
    sessions_put(sessions, source, session, &facts, call->snapshot->config->limits.sessions);
}

bool client_find_without_session(const struct call *call, struct session_facts *facts)
{
    char name[CLIENT_KEY_BYTES];
    return !call->session[0] &&
           sessions_get(call->worker->gateway->sessions, str_from(call->source->id),
                        owner_as_session(call, name), facts);
}

int64_t client_own_wait_ms(const struct call *call)
{
    const struct config_client *client =
        config_client_find(call->snapshot->config, str_from(call->facts.client.name));
    return client ? client->wait_ms : 0;
}

int64_t client_wait_ms(const struct call *call, bool hears)
{
    const struct config_pseudo *pseudo = &call->snapshot->config->pseudo;
    int64_t own_ms = client_own_wait_ms(call);
    if (own_ms > 0)
        return own_ms;
    return hears ? pseudo->wait_max_ms : pseudo->wait_ms;
}

enum dialect_pending client_pending_look(const struct call *call)
{
    const struct config *config = call->snapshot->config;
    enum config_pending_status look = config->pending_status;
    const struct config_client *client =
        config_client_find(config, str_from(call->facts.client.name));
    if (client && client->has_pending_status)
        look = client->pending_status;
    if (look == PENDING_STATUS_WORKING)
        return DIALECT_PENDING_WORKING;
    if (look == PENDING_STATUS_INPUT_REQUIRED)
        return DIALECT_PENDING_INPUT_REQUIRED;
    /* auto: only the SDK's stream loop polls with `task` in tasks/get, and it would stop polling
     * and give up after 60 s if it saw input_required (behaviour 7.4). */
    bool polls_with_task = call->method && call->method->treatment == MCP_TASKS_GET &&
                           call->envelope.task.raw.length > 0;
    return polls_with_task ? DIALECT_PENDING_WORKING : DIALECT_PENDING_INPUT_REQUIRED;
}

/* ---- the gateway's own tools ---- */

bool client_server_has_tool(const struct call *call, struct str name)
{
    struct catalog_tool tool;
    catalog_find_tool(call->worker->gateway->catalog, str_from(call->source->id),
                      str_from(call->owner), name, &tool);
    return tool.word == CATALOG_TOLD || (tool.word == CATALOG_GATEWAYS && !tool.has_list);
}

/* The modern era has other ways for all that the others do. */
bool client_era_has_tool(const struct call *call, enum config_pseudo_tool tool)
{
    return call->dialect->offers_all_tools || tool == PSEUDO_TOOL_GET_TASK_RESULT ||
           tool == PSEUDO_TOOL_AWAIT_ACTIVITY || tool == PSEUDO_TOOL_CANCEL_TASK;
}

static enum config_pseudo_tool find_own_tool(const struct call *call, struct str name)
{
    enum config_pseudo_tool tool = config_pseudo_tool_find(name);
    bool is_offered = tool != PSEUDO_TOOL_COUNT && client_era_has_tool(call, tool) &&
                      config_pseudo_offers(&call->snapshot->config->pseudo, tool);
    return is_offered ? tool : PSEUDO_TOOL_COUNT;
}

enum config_pseudo_tool client_own_tool_called(struct call *call)
{
    const struct config_pseudo *pseudo = &call->snapshot->config->pseudo;
    struct str name = call->envelope.name.text, prefix = str_from(pseudo->prefix);
    enum config_pseudo_tool tool = find_own_tool(call, name);
    if (tool != PSEUDO_TOOL_COUNT)
        call_identify(call);
    if (tool != PSEUDO_TOOL_COUNT && !client_server_has_tool(call, name))
        return tool;
    if ((tool == PSEUDO_TOOL_COUNT && prefix.length == 0) || !str_starts_with(name, prefix))
        return PSEUDO_TOOL_COUNT;
    return find_own_tool(call, str_slice(name.bytes + prefix.length, name.length - prefix.length));
}

/* ---- the extensions of its server ---- */

/* Servers may make names up: past these no further one is logged. */
#define LOGGED_MOST 256

static bool extension_is_logged(struct str source, struct str name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t logged[LOGGED_MOST];
    static size_t count;
    OWNED_BUFFER(key);
    size_t i = 0;
    buffer_append(&key, source);
    buffer_append_char(&key, '/'); /* a source's id has none */
    buffer_append(&key, name);
    uint64_t hash = str_hash(buffer_str(&key));
    pthread_mutex_lock(&lock);
    while (i < count && logged[i] != hash)
        i++;
    bool is_known = i < count || count == LOGGED_MOST;
    if (!is_known)
        logged[count++] = hash;
    pthread_mutex_unlock(&lock);
    return is_known;
}

static void note_hidden(const struct call *call, struct str name)
{
    struct str source = str_from(call->source->id);
    metrics_count(METRIC_EXTENSIONS_HIDDEN, source);
    if (!extension_is_logged(source, name))
        log_info("An extension of the server is left out", LOG_STR("source", source),
                 LOG_STR("extension", name));
}

static bool extension_is_shown(void *context, struct str name, struct str entry)
{
    const struct call *call = call_from(context);
    const struct mcp_extension *known = mcp_extension_find(name);
    enum policy_extension said = policy_extension(call->snapshot->policy, call->source, name);
    if (said == POLICY_EXTENSION_DENIED || (said == POLICY_EXTENSION_UNNAMED && !known)) {
        note_hidden(call, name);
        return false;
    }
    return !known || known->crosses_eras || !call_leases_session(call);
}

void client_write_extensions(struct call *call, struct str result, struct buffer *out)
{
    mcp_extensions_filter(out, result, extension_is_shown, call);
}

/* ---- for people ---- */

char *client_describe(const struct call *call)
{
    const char *name = call->facts.client.name[0] ? call->facts.client.name : "unknown client";
    if (call->identity) {
        const char *called = call->identity->name ? call->identity->name : call->identity->email;
        if (!called)
            return memory_copy_text(call->identity->subject);
        return memory_format("%s (%s, says the issuer)", call->identity->subject, called);
    }
    const char *digest = strchr(call->owner, ':');
    if (!digest)
        return memory_format("%s (anonymous)", name);
    return memory_format("%s (%.*s %.12s)", name, (int)(digest - call->owner), call->owner,
                         digest + 1);
}
