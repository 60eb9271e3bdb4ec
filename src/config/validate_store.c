/* The database of the store, and this process among those that share it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"
#include "config_private.h"
#include "taskgate/config/memory_limit.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/signature.h"
#include "validate.h"

/* The audit trail: its clocks fit together, and its key can sign. */

static void validate_store_complain(const struct draft *draft, const struct node *node,
                                    const char *what)
{
    OWNED char *message = memory_format("%s %s", draft->config->audit.key_file, what);
    report_error(&draft->report, node, "audit.key_file",
                 "make one with: openssl genpkey -algorithm ed25519", "%s", message);
}

static void validate_store_read_key(const struct draft *draft, const struct node *node,
                                    const struct buffer *text)
{
    struct config_audit *audit = &draft->config->audit;
    struct error error = {""};
    audit->key = signature_key_read(buffer_str(text), &error);
    if (!audit->key)
        validate_store_complain(draft, node, error.message);
    else if (!signature_key_is_private(audit->key))
        validate_store_complain(draft, node, "holds a public key, which cannot sign");
}

static void read_key_file(const struct draft *draft, const struct node *node)
{
    OWNED_BUFFER(text);
    const char *failure = validate_read_file(draft, &draft->config->audit.key_file, &text);
    if (!failure) {
        validate_store_read_key(draft, node, &text);
    } else {
        OWNED char *what = memory_format("cannot be read: %s", failure);
        validate_store_complain(draft, node, what);
    }
    if (text.bytes)
        explicit_bzero(text.bytes, text.length);
}

void validate_audit(const struct draft *draft)
{
    const struct config_audit *audit = &draft->config->audit;
    const struct node *node = node_get(draft->root, "audit");
    if (audit->keep_ms > 0 && audit->keep_arguments_ms > audit->keep_ms)
        report_error(&draft->report, node_get(node, "keep_arguments"), "audit.keep_arguments",
                     "shorten it, or lengthen keep",
                     "arguments cannot be kept longer than the rows that they belong to");
    if (audit->key_file)
        read_key_file(draft, node_get(node, "key_file"));
}

/* The limits against the memory that the process may use. */

static const struct {
    const char *name, *path;
    const char *variable; /* or NULL */
} keys[MEMORY_LIMIT_KEY_COUNT] = {
    [MEMORY_LIMIT_BODIES] = {"bodies_bytes", "limits.bodies_bytes", NULL},
    [MEMORY_LIMIT_RESULT] = {"result_bytes", "limits.result_bytes", NULL},
    [MEMORY_LIMIT_CONNECTIONS] = {"connections", "limits.connections", NULL},
    [MEMORY_LIMIT_BODY] = {"body_bytes", "limits.body_bytes", "THOUGHTGATE_MAX_REQUEST_BODY_BYTES"},
};

static const struct node *node_of(const struct draft *draft, enum memory_limit_key key)
{
    return node_get(node_get(draft->root, "limits"), keys[key].name);
}

static unsigned find_written(const struct draft *draft)
{
    unsigned written = 0;
    for (enum memory_limit_key key = 0; key < MEMORY_LIMIT_KEY_COUNT; key++) {
        if (!node_is_null(node_of(draft, key)) || draft_variable(draft, keys[key].variable))
            written |= 1U << key;
    }
    return written;
}

static void validate_store_refuse(const struct draft *draft, enum memory_limit_key key,
                                  const char *hint)
{
    static const char fault[] = "%s is too much: with it the process may need %s, and %d %% of its "
                                "memory limit of %s are %s";
    const struct config *config = draft->config;
    char limit[MEMORY_LIMIT_TEXT_BYTES], worst[MEMORY_LIMIT_TEXT_BYTES];
    char share[MEMORY_LIMIT_TEXT_BYTES];
    const char *variable = draft_variable(draft, keys[key].variable);
    memory_limit_format(memory_limit_of(config), limit);
    memory_limit_format(memory_limit_worst(config), worst);
    memory_limit_format(memory_limit_share(memory_limit_of(config)), share);
    if (variable)
        problems_error(draft->report.problems, (struct place){.file = keys[key].variable},
                       keys[key].path, hint, fault, variable, worst, MEMORY_LIMIT_PERCENT, limit,
                       share);
    else
        report_error(&draft->report, node_of(draft, key), keys[key].path, hint, fault,
                     node_of(draft, key)->text, worst, MEMORY_LIMIT_PERCENT, limit, share);
}

static void fit_memory(const struct draft *draft, unsigned written, unsigned kept, const char *hint)
{
    struct config *config = draft->config;
    char limit[MEMORY_LIMIT_TEXT_BYTES], worst[MEMORY_LIMIT_TEXT_BYTES];
    if (memory_limit_fit(config, memory_limit_of(config), written | kept))
        return;
    enum memory_limit_key key = memory_limit_costliest(config, written & ~kept);
    if (key != MEMORY_LIMIT_KEY_COUNT) {
        validate_store_refuse(draft, key, hint);
        return;
    }
    memory_limit_format(memory_limit_of(config), limit);
    memory_limit_format(memory_limit_worst(config), worst);
    problems_warning(draft->report.problems, (struct place){.file = config->path}, "limits",
                     "raise the memory limit",
                     "at their least they may need %s, more than %d %% of the memory limit of %s",
                     worst, MEMORY_LIMIT_PERCENT, limit);
}

/* As the process runs until its restart, with the connections of its start. */
static void fit_running(const struct draft *draft, unsigned written)
{
    static char somewhere[] = "";
    struct config *config = draft->config;
    int64_t connections = config->limits.connections;
    char *address = config->replica.address;
    config->limits.connections = draft->running->connections;
    config->replica.address = draft->running->has_replica_port ? somewhere : NULL;
    fit_memory(draft, written, 1U << MEMORY_LIMIT_CONNECTIONS,
               "write less, or restart: limits.connections takes effect then");
    config->replica.address = address;
    config->limits.connections = connections;
}

void validate_memory(const struct draft *draft)
{
    struct config_limits *limits = &draft->config->limits;
    const struct config_limits full = *limits;
    const unsigned written = find_written(draft);
    const size_t errors = draft->report.problems->errors;
    fit_memory(draft, written, 0, "write less, or raise the memory limit");
    if (!draft->running || draft->report.problems->errors > errors)
        return;
    limits->bodies_bytes = full.bodies_bytes;
    limits->result_bytes = full.result_bytes;
    fit_running(draft, written);
}

#define URL_VARIABLE "THOUGHTGATE_STORE_URL"
#define PATH_VARIABLE "THOUGHTGATE_STORE_PATH"
#define NAME_VARIABLE "HOSTNAME"
#define HOST_NAME_BYTES 256
/* Shorter keys are warned of. */
#define KEY_MIN 32
#define KEY_HINT "make one with: openssl rand -hex 32"

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
    const char *url = draft_variable(draft, URL_VARIABLE);
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
    config->store_url = memory_copy_text(draft_variable(draft, name));
}

static void check_key(const struct draft *draft, const struct node *store)
{
    const struct node *node = node_get(node_get(store, "url"), "env");
    OWNED char *url = validate_secret(draft, node, "store.url.env");
    if (url && !is_postgres(url))
        report_error(&draft->report, node, "store.url.env", url_hint,
                     "in the environment variable %s: %s", node->text, url_fault);
    else if (url)
        take_url(draft, node->text);
}

static void refuse_second_place(const struct draft *draft, const struct node *store)
{
    if (!node_is_null(node_get(store, "path")))
        report_error(&draft->report, node_get(store, "path"), "store.path",
                     "take one of the two out", "the store has one place, and url names another");
    if (draft_variable(draft, PATH_VARIABLE))
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
    const char *name = draft_variable(draft, NAME_VARIABLE);
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
