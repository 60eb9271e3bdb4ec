/* The database of the store, and this process among those that share it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"
#include "taskgate/core/memory.h"
#include "validate.h"

#define URL_VARIABLE "THOUGHTGATE_STORE_URL"
#define PATH_VARIABLE "THOUGHTGATE_STORE_PATH"
#define NAME_VARIABLE "HOSTNAME"
#define HOST_NAME_BYTES 256
/* Shorter keys are warned of. */
#define KEY_MIN 32
#define KEY_HINT "make one with: openssl rand -hex 32"

/* A variable counts as set if its value is not empty. */
static const char *variable_of(const struct draft *draft, const char *name)
{
    const char *value = name ? draft->environment(name) : NULL;
    return value && *value ? value : NULL;
}

/* ---- the database ---- */

static bool is_postgres(const char *url)
{
    return str_starts_with(str_from(url), STR("postgres://")) ||
           str_starts_with(str_from(url), STR("postgresql://"));
}

/* The value is not shown: it may hold a password. */
static const char url_fault[] = "the value is no URL of a PostgreSQL database";
static const char url_hint[] = "write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE";

static bool check_variable(const struct draft *draft)
{
    const char *url = variable_of(draft, URL_VARIABLE);
    if (url && !is_postgres(url))
        problems_error(draft->report.problems, (struct place){.file = URL_VARIABLE}, "store.url",
                       url_hint, "%s", url_fault);
    return url != NULL;
}

static void take_url(const struct draft *draft, const char *variable)
{
    struct config *config = draft->config;
    char *name = memory_copy_text(variable);
    free(config->store_url_env);
    config->store_url_env = name;
    config->store_url = memory_copy_text(variable_of(draft, name));
}

static void check_key(const struct draft *draft, const struct node *store)
{
    const struct node *node = node_get(node_get(store, "url"), "env");
    char *url = validate_secret(draft, node, "store.url.env");
    if (url && !is_postgres(url))
        report_error(&draft->report, node, "store.url.env", url_hint,
                     "in the environment variable %s: %s", node->text, url_fault);
    else if (url)
        take_url(draft, node->text);
    free(url);
}

static void refuse_second_place(const struct draft *draft, const struct node *store)
{
    if (!node_is_null(node_get(store, "path")))
        report_error(&draft->report, node_get(store, "path"), "store.path",
                     "take one of the two out", "the store has one place, and url names another");
    if (variable_of(draft, PATH_VARIABLE))
        problems_error(draft->report.problems, (struct place){.file = PATH_VARIABLE}, "store.path",
                       "unset it, or take store.url out",
                       "the store has one place, and store.url names another");
}

static void validate_database(const struct draft *draft)
{
    const struct node *store = node_get(draft->root, "store");
    bool has_key = !node_is_null(node_get(store, "url"));
    if (check_variable(draft))
        take_url(draft, URL_VARIABLE);
    else if (has_key)
        check_key(draft, store);
    if (has_key)
        refuse_second_place(draft, store);
}

/* ---- this process ---- */

/* A name that nobody has chosen may have any form, such as a trailing line end. */
static char *system_name(const struct draft *draft)
{
    char host[HOST_NAME_BYTES] = "";
    struct error error;
    const char *name = variable_of(draft, NAME_VARIABLE);
    if (name && check_replica_id(str_from(name), &error))
        return memory_copy_text(name);
    gethostname(host, sizeof host - 1);
    return memory_copy_text(check_replica_id(str_from(host), &error) ? host : "taskgate");
}

static void validate_replica(const struct draft *draft)
{
    struct config_replica *replica = &draft->config->replica;
    const struct node *mapping = node_get(draft->root, "replica");
    const struct node *key_node = node_get(mapping, "key_env");
    const struct node *address_node = node_get(mapping, "address");
    if (!replica->id)
        replica->id = system_name(draft);
    replica->key = validate_secret(draft, key_node, "replica.key_env");
    if (replica->key && strlen(replica->key) < KEY_MIN)
        report_warning(&draft->report, key_node, "replica.key_env", KEY_HINT,
                       "the key has fewer than %d characters, so it may be guessed", KEY_MIN);
    if (replica->address && node_is_null(key_node))
        report_error(&draft->report, address_node, "replica.address",
                     "name a variable that holds it in replica.key_env",
                     "calls between replicas must be signed, and there is no key");
    if (replica->bind && !replica->address)
        report_error(&draft->report, node_get(mapping, "bind"), "replica.bind",
                     "add replica.address, or take the key out",
                     "no replica calls this one without its address");
    if (replica->address && !draft->config->store_url && !draft->needs_no_secrets)
        report_warning(&draft->report, address_node, "replica.address",
                       "name the database of all replicas in store.url",
                       "the key has no effect, because an SQLite file is one process's alone");
}

void validate_store(const struct draft *draft)
{
    validate_database(draft);
    validate_replica(draft);
}
