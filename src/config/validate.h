/*
 * Rules over several values: names that must exist, be unique or fit together. The rules have the
 * ids of the messages. Each function reports all its findings, and accepts values that were refused
 * before.
 */
#pragma once

#include "document.h"
#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"

/* A configuration while it is being made. */
struct draft {
    struct report report;
    const struct node *root;
    struct config *config;
    config_getenv environment;
    const struct config_running *running;    /* of config_reload(); else NULL */
    bool is_shadow;                          /* of another configuration */
    bool needs_no_secrets;                   /* for its rules alone */
    struct config_problems *shadow_problems; /* of its own shadow: told after its own */
};

/* A mapping of the document while it is looked at, and what it gives, if it is one of these. */
struct view {
    const struct draft *draft;
    const struct node *node;
    const char *path; /* "approval.NAME" */
    struct config_workflow *workflow;
    const struct config_rule *rule; /* or NULL: the default action */
    const struct config_source *source;
    size_t index; /* in its list */
};
/* Reports about its `key`, which may be a path below it: at `node`; without one at the value of the
 * key, or at the mapping where the key is missing. */
void view_report(const struct view *view, const struct node *node, bool is_warning, const char *key,
                 const char *hint, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Characters of an operator's token. Shorter ones are warned of. */
#define CONFIG_TOKEN_MIN 16
#define CONFIG_TOKEN_HINT "make one with: openssl rand -hex 24"

/* The value of the variable. NULL where it is not set, or empty. */
static inline const char *draft_variable(const struct draft *draft, const char *name)
{
    const char *value = name ? draft->environment(name) : NULL;
    return value && *value ? value : NULL;
}

/* Makes the file's name one beside the configuration, and appends what it holds to `text`. NULL, or
 * why it cannot be read. The configuration is read again when the file changes. */
const char *validate_read_file(const struct draft *draft, char **name, struct buffer *text);

/* The secret in the environment variable that `variable` names, which the caller frees; NULL where
 * it names none, or with a finding where that holds none. */
char *validate_secret(const struct draft *draft, const struct node *variable, const char *path);
void validate_sources(const struct draft *draft);
/* Adds the workflow `default` where there is none. */
void validate_workflows(const struct draft *draft);
/* Reads the Cedar policies; before the rules are looked at. */
void validate_cedar(const struct draft *draft);
void validate_rules(const struct draft *draft);
void validate_operators(const struct draft *draft);
/* The approvers of each workflow; after the operators. */
void validate_ballots(const struct draft *draft);
/* Reads certificates and keys; after the variables have been applied. */
void validate_tls(const struct draft *draft);
/* Before the operators, who take the issuer over. */
void validate_oidc(const struct draft *draft);
/* The database of the store, and this process among those that share it. */
void validate_store(const struct draft *draft);
void validate_schema(const struct draft *draft);
/* Notes where each glob of `methods.allow` is. */
void validate_methods(const struct draft *draft);
/* Defaults of `limits` that the memory limit does not allow shrink. */
void validate_memory(const struct draft *draft);
/* Reads the key that signs anchors. */
void validate_audit(const struct draft *draft);
void validate_notify(const struct draft *draft);
/* Makes endpoints of destinations in Slack; after the notifiers and the operators. */
void validate_slack(const struct draft *draft);
/* Those who are told exist; after validate_notify(). */
void validate_recipients(const struct draft *draft);
/* Whether the configuration has a shadow that may be read: makes its path one beside the file. */
bool validate_shadow_path(const struct draft *draft);
/* Once it has been read, config->shadow, or has not, NULL; when all else has been looked at. */
void validate_shadow(const struct draft *draft);
/* Applies the variables of OpenTelemetry; before validate_tls(). */
void validate_telemetry(const struct draft *draft);
/* Warns of what is allowed, and hardly meant; after all else. */
void validate_advice(const struct draft *draft);
void validate_pseudo(const struct draft *draft);

/*
 * From a YAML tree to the structs of a configuration, as the table of keys says.
 */

/* Fills `config`, which is zeroed, with the values of the file and the defaults of missing keys.
 * Reports unknown and missing keys and bad values; their members stay zero. */
void read_document(const struct report *report, const struct node *root, struct config *config);
