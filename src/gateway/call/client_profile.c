/* The profile of a client: from its session, its token and the configuration. */
#include "client_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/identity/identity.h"

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
