/*
 * The configuration: ThoughtGate's schema 1 with taskgate's keys, read from YAML and the
 * environment, validated whole, then immutable and reference-counted.
 *
 * Every key is one row of the table in src/config/keys.c, every variable one of that in
 * src/config/environment.c: the reader, the unknown-key check and docs/configuration.md are made
 * from them. Loading reads files and belongs on no loop; the value itself may be read from any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "taskgate/approval/terms.h"
#include "taskgate/config/definitions.h"
#include "taskgate/config/problem.h"
#include "taskgate/config/telemetry.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/error.h"
#include "taskgate/core/signature.h"
#include "taskgate/core/str.h"
#include "taskgate/tls/client.h"
#include "taskgate/tls/server.h"

/* The action of a rule; behaviour 6.1. ACTION_POLICY: Cedar policies decide. */
enum config_action { ACTION_FORWARD, ACTION_APPROVE, ACTION_DENY, ACTION_POLICY };
#define CONFIG_ACTION_COUNT (ACTION_POLICY + 1)
/* "forward", "approve", "deny", "policy". */
const char *config_action_name(enum config_action action);

enum config_expose_mode { EXPOSE_ALL, EXPOSE_ALLOWLIST, EXPOSE_BLOCKLIST };
enum config_execution { EXECUTION_ON_APPROVAL, EXECUTION_ON_RESULT };
enum config_pending_status {
    PENDING_STATUS_AUTO,
    PENDING_STATUS_INPUT_REQUIRED,
    PENDING_STATUS_WORKING
};
/* A `forbid` that cannot be evaluated applies, or is left out. */
/* Keys of arguments that fold alike, in calls that policies or people judge. */
enum config_case_variants { CASE_VARIANTS_REFUSE, CASE_VARIANTS_ALLOW };
/* How the user of a client is asked to confirm a call that then waits for approval. */
enum config_confirm { CONFIRM_OFF, CONFIRM_FORM, CONFIRM_URL };
/* Whether the agent says why it makes a call. */
enum config_agent_reason { AGENT_REASON_OFF, AGENT_REASON_OPTIONAL, AGENT_REASON_REQUIRED };
/* The fate of an answer that the client of an approved call gives the server inside it: as the
 * risk says (high by the rule: the people decide again), passed on, decided again, or not asked
 * for. */
enum config_rounds { ROUNDS_BY_RISK, ROUNDS_ALLOW, ROUNDS_REAPPROVE, ROUNDS_DENY };
enum config_on_policy_error { ON_POLICY_ERROR_DENY, ON_POLICY_ERROR_SKIP };
enum config_client_refusals { CLIENT_REFUSALS_AUTO, CLIENT_REFUSALS_ERROR, CLIENT_REFUSALS_RESULT };
enum config_client_tasks { CLIENT_TASKS_AUTO, CLIENT_TASKS_YES, CLIENT_TASKS_NO };
enum config_role {
    ROLE_VIEWER = 1,
    ROLE_APPROVER = 2,
    ROLE_CALLER = 4,
    ROLE_AUDITOR = 8
}; /* bits */
/* "viewer" … */
const char *config_role_name(enum config_role role);

struct config_strings {
    char **items;
    size_t count;
};

struct config_source_header {
    char *name;
    char *value; /* resolved from the environment at load; a secret: never logged */
};

/* TLS on a port. Files are found from the configuration's folder. */
struct config_tls {
    char *cert, *key; /* NULL: plain HTTP */
    char *client_ca;  /* or NULL */
    enum tls_version min_version;
    struct tls_server *server; /* the settings made of them; NULL: plain HTTP */
};

/* The fate of a client's verified token on the way up. */
enum config_auth_upstream { AUTH_UPSTREAM_DROP, AUTH_UPSTREAM_PASS, AUTH_UPSTREAM_EXCHANGE };

/* The endpoint that trades a client's token for one of the server's (RFC 8693). */
struct config_exchange {
    char *token_url, *client_id;
    char *client_secret;    /* or NULL: a public client */
    char *audience, *scope; /* or NULL each */
};

/* The gateway as the OAuth resource server of a source. */
struct config_auth {
    char *issuer;   /* as `iss` has it; NULL: the source is open */
    char *jwks_url; /* or NULL: where the issuer's metadata says */
    char *audience;
    struct config_strings scopes; /* a token needs all of them */
    char *groups_claim;
    int64_t leeway_ms;
    enum config_auth_upstream upstream;
    struct config_exchange exchange; /* with AUTH_UPSTREAM_EXCHANGE */
};

/* The owner of a task: the holder of the Authorization header; the session; or that holder and, in
 * the modern era, any client that names the task with credentials that the server accepts. */
enum config_identity {
    IDENTITY_AUTHORIZATION,
    IDENTITY_SESSION,
    IDENTITY_BEARER_TASK,
    IDENTITY_ANONYMOUS,
};

/* The eras of the protocol that a source's server speaks: bits; none where it is to be found out.
 */
enum config_era { CONFIG_ERA_AUTO = 0, CONFIG_ERA_LEGACY = 1, CONFIG_ERA_MODERN = 2 };
/* Clients of which era are bridged to a server that does not speak it: bits. */
enum config_bridge { BRIDGE_OFF = 0, BRIDGE_LEGACY = 1, BRIDGE_MODERN = 2 };

struct config_source {
    char *id;
    char *url;         /* THOUGHTGATE_UPSTREAM already applied */
    char *prefix;      /* or NULL */
    char *description; /* or NULL */
    bool enabled, hide_flagged;
    enum config_identity identity;
    bool has_identity;                          /* it is written */
    int line, column;                           /* of the source in its file */
    bool connections_per_owner;                 /* `connections: per_owner` */
    unsigned eras;                              /* CONFIG_ERA_… bits */
    unsigned bridge;                            /* BRIDGE_… bits */
    enum definition_pin pins[DEFINITION_KINDS]; /* `pin` */
    enum config_expose_mode expose_mode;
    struct config_strings expose;                            /* globs */
    struct config_strings extensions_allow, extensions_deny; /* globs */
    struct config_source_header *headers; /* static credentials toward upstream */
    struct config_auth auth;
    size_t header_count;
    char *tls_ca, *tls_cert, *tls_key; /* files, or NULL each */
    struct tls_client *tls; /* the settings made of them; NULL: the system's authorities */
};

/* How much is at stake, as the author of a rule sees it. */
enum config_risk { RISK_UNSAID, RISK_LOW, RISK_MEDIUM, RISK_HIGH };
const char *config_risk_name(enum config_risk risk); /* "low" …; NULL for RISK_UNSAID */

struct config_rule {
    char *match;
    enum config_action action;
    struct config_strings sources; /* empty: all */
    bool has_principals;           /* it is for callers of these alone, by their verified tokens: */
    struct config_strings subjects, groups; /* globs; an empty one leaves all through */
    char *policy_id;                        /* or NULL */
    char *approval;                         /* workflow name, or NULL for the only one */
    char *description;                      /* or NULL */
    char *immediate_response; /* text for the model when its call becomes a task, or NULL */
    bool has_execution;
    enum config_execution execution;
    enum config_case_variants case_variants;
    enum config_agent_reason agent_reason;
    bool requires_tasks; /* a client that does not know tasks is refused at once */
    /* The call as the people who decide see it: */
    char *summary;                   /* a text with {path} (summary.h), or NULL */
    struct config_strings highlight; /* dot paths into the arguments */
    char *confirm;                   /* dot path into the arguments: its value is typed; or NULL */
    enum config_risk risk;
    int line, column; /* of the rule in its file */
};

struct config_workflow {
    char *name;
    int64_t timeout_ms;                  /* how long a human has to decide */
    int64_t valid_for_ms;                /* how long an approval may then wait to be executed */
    struct config_strings redact_fields; /* dot paths into the arguments */
    bool admin_only;                     /* destination {type: admin} or none */
    enum config_confirm confirm;
    enum config_rounds rounds;
    enum ballot_typing typed; /* of which calls a value is typed before an approval */
    /* The approvers, as they are written: */
    struct config_strings approver_groups, approver_people, emergency_groups;
    bool approve_needs_reason, reject_needs_reason;
    struct config_strings allow_edit; /* dot paths into the arguments */
    int64_t grants_max_ms, grants_max_calls;
    struct config_strings grants_vary, grants_by;
    /* The endpoints that are told of its calls, by the ids of `notify`: */
    bool has_notify; /* these alone; otherwise all whose `workflows` fit */
    struct config_strings notify;
    int64_t remind_after_ms; /* 0: never */
    int64_t escalate_after_ms;
    struct config_strings escalate_notify;
    struct ballot_terms ballot; /* and what it comes to, */
    char *terms;                /* the terms that a new task keeps: ballot_terms_write() of it */
};

/* A human. Decisions and the audit trail name the person, with every kind of credentials. */
struct config_person {
    char *name;
    struct config_strings groups;
    char *subject;     /* as their issuer names them, or NULL */
    char *issuer;      /* of the subject, or NULL */
    char *email;       /* or NULL */
    char *slack;       /* or NULL */
    char *certificate; /* subject of a client certificate, or NULL */
    unsigned roles;    /* ROLE_… bits of the holder of the certificate */
};

/* Operators who sign in at an OpenID provider. */
struct config_oidc {
    bool is_on;
    char *issuer, *client_id;
    char *client_secret; /* resolved from the environment at load; never logged; NULL: none */
    struct config_strings scopes;
    char *groups_claim, *name_claim;
    struct config_strings viewers, approvers, callers, auditors; /* groups that have the role */
    int64_t max_age_ms;                                          /* of a session */
};

struct config_token {
    char *name;
    char sha256[65]; /* lower-case hex of the token */
    unsigned roles;  /* ROLE_… bits as written; src/admin/routes_table.h says what each may */
    char *person;    /* name of one of `people`, or NULL */
    struct config_strings groups;
};

struct config_client {
    char *match; /* glob on clientInfo.name */
    enum config_client_tasks tasks;
    int64_t wait_ms; /* in place of those of pseudo_tools; 0: these hold */
    enum config_client_refusals refusals;
    bool lenient_headers;
    bool has_pending_status;
    enum config_pending_status pending_status;
};

/* Events of a task that endpoints get. The store keeps these bits: append only. */
enum config_notify_event {
    NOTIFY_CREATED = 1,
    NOTIFY_DECIDED = 2, /* approved or rejected by somebody */
    NOTIFY_EXPIRED = 4,
    NOTIFY_ENDED = 8, /* in any final state */
    /* Not among those that `events` may name: */
    NOTIFY_REMINDED = 16,  /* it still waits; told to whom its creation is told */
    NOTIFY_ESCALATED = 32, /* the same; told to those that the workflow names */
    NOTIFY_ANCHORED = 64,  /* an anchor of the audit trail; about no task */
    NOTIFY_VOTED = 128, /* votes have changed, and it waits on; told where a message is changed */
};
#define NOTIFY_ALL (NOTIFY_CREATED | NOTIFY_DECIDED | NOTIFY_EXPIRED | NOTIFY_ENDED)
/* "created" … */
const char *config_notify_event_name(enum config_notify_event event);

enum config_notify_type {
    NOTIFY_WEBHOOK,
    NOTIFY_SLACK,
    NOTIFY_TEAMS,
    NOTIFY_PAGERDUTY,
    NOTIFY_SMTP,
};

struct config_notify {
    enum config_notify_type type;
    char *id;      /* or NULL */
    char *url;     /* may hold credentials: never logged, never stored */
    char *secret;  /* signs a webhook, Slack's token, PagerDuty's routing key, SMTP's password or
                      NULL; NULL for Teams. Resolved from the environment at load; never logged */
    char *channel; /* of Slack; else NULL */
    char *signing_secret; /* Slack signs presses of buttons with it; NULL: there are no buttons */
    char *from;           /* of SMTP, as the two below; else NULL: an address */
    char *user;           /* or NULL */
    struct config_strings to;        /* addresses */
    char *tls_ca;                    /* file, or NULL */
    struct tls_client *tls;          /* the settings made of it; NULL: the system's authorities */
    struct config_strings mention;   /* Slack ids */
    struct config_strings workflows; /* globs; none: all */
    struct config_strings destination_of; /* workflows that name it as their `destination` */
    bool is_destination;                  /* of those alone */
    unsigned events;                      /* NOTIFY_… bits */
    bool include_arguments, blind_votes;  /* the latter: votes count without the whole request */
};

/* How people decide in Slack. */
struct config_slack {
    char *approve_reaction, *reject_reaction; /* names of emoji, as Slack tells them: "+1" */
    char *channel;                            /* of a destination that names none; or NULL */
    int64_t poll_ms;                          /* reactions are asked for so often */
    int64_t requests_per_second;              /* of these requests, at most */
};

/* The clients that see the gateway's own tools. */
enum config_pseudo_mode { PSEUDO_AUTO, PSEUDO_ALWAYS, PSEUDO_NEVER };
enum config_pseudo_tool {
#define PSEUDO_TOOL_ROW(symbol, name) PSEUDO_TOOL_##symbol,
#include "taskgate/config/pseudo_tools_table.h"
#undef PSEUDO_TOOL_ROW
    PSEUDO_TOOL_COUNT
};
#define PSEUDO_TOOLS_ALL ((1U << PSEUDO_TOOL_COUNT) - 1)
/* When a forwarded call of a plain client becomes a task: when its client closes the connection,
 * when its client has waited for so long, or never. */
enum config_promote { PROMOTE_LEFT, PROMOTE_WAIT, PROMOTE_NEVER };
/* "list_tasks" … */
const char *config_pseudo_tool_name(enum config_pseudo_tool tool);
/* PSEUDO_TOOL_COUNT: no tool has this name. */
enum config_pseudo_tool config_pseudo_tool_find(struct str name);

/* Times of the gateway's own tools, and related limits. Milliseconds. */
struct config_pseudo {
    enum config_pseudo_mode mode;
    char *prefix;
    unsigned only; /* bits of config_pseudo_tool */
    enum config_promote promote;
    int64_t wait_ms, wait_max_ms;
    int rounds; /* how often a modern client without tasks is asked to repeat a held call */
    int64_t default_ttl_ms, max_ttl_ms;
    int64_t cleanup_interval_ms, completed_retention_ms;
    int64_t max_tasks_per_session;
    int64_t elicitation_timeout_ms, execute_timeout_ms;
};
/* Whether any client is offered the tool. */
bool config_pseudo_offers(const struct config_pseudo *pseudo, enum config_pseudo_tool tool);

/* Cedar policies as they were read. */
struct config_policy_text {
    char *name; /* of the file, or of the variable that holds the text */
    char *text;
    size_t length;
};

/* A file that was read, and the facts that tell its version. */
struct config_file {
    char *path;
    dev_t device;
    ino_t inode; /* 0: it was not there */
    off_t size;
    struct timespec modified;
};

struct config_limits {
    int64_t pending_per_principal, pending_bytes_per_principal, pending_total;
    int64_t body_bytes, bodies_bytes, result_bytes, store_bytes;
    int64_t reply_bytes; /* 0: none */
    int64_t sessions, sessions_per_principal, connections;
    int64_t listens, listens_per_principal;
    int64_t share_percent; /* of one principal or unknown address, where no key says another */
    int64_t requests_per_second;               /* per peer address; 0 is off */
    int64_t requests_per_second_per_principal; /* 0 is off */
};

/* How long the audit trail is kept, and how it is anchored. */
struct config_audit {
    int64_t keep_arguments_ms;           /* 0: not at all */
    int64_t keep_ms;                     /* 0: for ever */
    int64_t anchor_every_ms;             /* 0: never */
    struct config_strings anchor_notify; /* ids of `notify` */
    char *key_file;                      /* or NULL */
    struct signature_key *key;           /* of that file, or NULL */
};

struct config_times {
    int64_t task_default_ttl_ms, task_max_ttl_ms;
    int64_t sync_forward_timeout_ms, execution_timeout_ms, connect_timeout_ms;
    int64_t approval_timeout_ms;  /* of workflows that set none; already applied to them */
    int64_t approval_validity_ms; /* of workflows that set none; already applied to them */
    int64_t tools_fetch_timeout_ms;
    int64_t tools_max_pages;
    int64_t shutdown_timeout_ms, drain_timeout_ms; /* drain < shutdown */
    int64_t linger_ms; /* after SIGTERM, in which all is served as before */
};

/* This process among those that share a database. Behaviour 16.1. */
struct config_replica {
    char *id;      /* its name among them; never NULL after a load */
    char *address; /* http://HOST:PORT for the others; NULL: it gets no calls from them */
    char *bind;    /* HOST:PORT to listen on for them; NULL: that of `address` */
    char *key;     /* signs these calls; resolved from the environment at load; never logged; NULL
                      without an address */
};

struct config {
    char *path;                    /* of the file it was read from */
    char digest[DIGEST_HEX_BYTES]; /* of its text and the texts of its policies */
    struct config_source *sources;
    size_t source_count;
    enum config_action default_action;
    struct config_rule *rules;
    size_t rule_count;
    struct config_workflow *workflows; /* at least one: `default` */
    size_t workflow_count;
    struct config_strings force_required; /* tool names, file and environment merged */
    char *store_path;
    char *store_url; /* postgres://…, from the environment; may hold a password: never logged. NULL:
                        the store is the SQLite file at store_path */
    char *store_url_env;        /* the variable that it came from, for messages; NULL without one */
    int64_t store_lock_wait_ms; /* how long a start waits for the file that another process has */
    struct config_replica replica;
    char *state_key_env; /* the variable with the state keys, or NULL: the file beside the store */
    bool store_path_is_default;
    bool has_own_token; /* THOUGHTGATE_ADMIN_TOKEN is set, or there are no tokens: one is made */
    int workers;
    char *proxy_bind, *admin_bind;
    uint16_t proxy_port, admin_port;
    struct config_strings proxy_allowed_hosts, proxy_allowed_origins;
    struct config_tls proxy_tls, admin_tls;
    struct config_person *people;
    size_t person_count;
    struct config_token *tokens;
    size_t token_count;
    struct config_strings admin_allowed_hosts, admin_allowed_origins;
    char *public_url; /* of the admin endpoint, without a slash at its end, or NULL */
    struct config_oidc oidc;
    enum config_execution execution;
    enum config_pending_status pending_status;
    struct config_client *clients;
    size_t client_count;
    struct config_strings methods_allow;   /* globs */
    struct config_place *methods_allow_at; /* of each, in its file */
    struct config_policy_text *policies;
    size_t policy_count;
    enum config_on_policy_error on_policy_error;
    bool record;           /* the log has each decision on a call */
    char *shadow_path;     /* of the second configuration, found from this one's folder, or NULL */
    struct config *shadow; /* it, or NULL; it has none of its own */
    struct config_file *files; /* all that were read, the shadow's too; not the text of
                                  config_parse() */
    size_t file_count;
    struct config_notify *notify;
    size_t notify_count;
    struct config_slack slack;
    struct config_pseudo pseudo;
    struct config_limits limits;
    struct config_times times;
    struct config_audit audit;
    struct config_telemetry telemetry;
};

/* Environment access, so that tests need not change the process's own. NULL: getenv(). */
typedef const char *(*config_getenv)(const char *name);

/* The file that config_load() would read, which may not be there where it is named; NULL: there is
 * none. */
const char *config_find(const char *path, config_getenv environment);

/* Finds and reads the file: `path`, else $THOUGHTGATE_CONFIG, else
 * /etc/thoughtgate/config.yaml, else ./config.yaml; one that is named must be there. On
 * failure NULL and every error in `problems`, which is zeroed before the first use, in the
 * order of the file; on success warnings may be there. The caller holds one reference. */
struct config *config_load(const char *path, config_getenv environment,
                           struct config_problems *problems);
/* What only a restart changes, of a process that runs, as far as it costs memory. */
struct config_running {
    int64_t connections;
    bool has_replica_port;
};
/* As config_load(), for a process that goes on with `running`: its limits must fit into the memory
 * with that, too. */
struct config *config_reload(const char *path, const struct config_running *running,
                             struct config_problems *problems);
/* As config_load() on text already in memory; `name` stands for the file. */
struct config *config_parse(struct str text, const char *name, config_getenv environment,
                            struct config_problems *problems);
/* As config_parse(), but no variable with a token, a secret or a header has to be set, and what
 * would come of it is missing: for tests of rules, which use none of them. */
struct config *config_parse_rules(struct str text, const char *name, config_getenv environment,
                                  struct config_problems *problems);
/* Fills all but the path from the present file; inode 0 if it is missing. */
void config_file_look(struct config_file *file);
/* A digest of what they are now: names, facts, content. */
void config_files_digest(const struct config_file *files, size_t count,
                         char digest[DIGEST_HEX_BYTES]);
struct config *config_ref(struct config *config);
void config_unref(struct config *config); /* NULL is allowed */

/* A file that another file names: a relative path is seen from the folder of that. The caller
 * frees. */
char *config_path_beside(const char *file, const char *named);

/* NULL when there is none of that name. */
const struct config_source *config_source_find(const struct config *config, struct str id);
const struct config_workflow *config_workflow_find(const struct config *config, struct str name);
/* The workflow an approve decision of `rule` (NULL: the default action) runs through: the
 * one it names, else the only one; among several the default action and a rule that asks
 * policies take `default`. NULL only
 * where config_load() would have refused (V-006, V-006b). */
const struct config_workflow *config_workflow_of(const struct config *config,
                                                 const struct config_rule *rule);
/* Behaviour 8.2. Lifetime of a task if the request names no ttl: enough to be decided and executed
 * through `workflow` (NULL: none decides), at most the maximum. */
int64_t config_default_ttl_ms(const struct config *config, const struct config_workflow *workflow);
/* How long a human has through `workflow` when the request names no ttl. */
int64_t config_decide_within_ms(const struct config *config,
                                const struct config_workflow *workflow);
/* How long an approval through the workflow of this name holds; a task may outlive its workflow,
 * and an accelerated one has none. */
int64_t config_approval_valid_ms(const struct config *config, struct str workflow);
/* NULL when there is none of that name. */
const struct config_person *config_person_find(const struct config *config, const char *name);
/* Whether `text` is one of them. NULL is none. */
bool config_strings_have(const struct config_strings *strings, const char *text);
/* The first `clients` entry whose glob matches, or NULL. */
const struct config_client *config_client_find(const struct config *config, struct str client_name);

/* Both tables as Markdown lists, for docs/configuration.md. */
void config_write_reference(struct buffer *out);
/* The keys that only a restart puts into force, by their order, as "proxy.bind". False: no more. */
#define CONFIG_RESTART_KEY_BYTES 64
bool config_restart_key(size_t index, char text[static CONFIG_RESTART_KEY_BYTES]);
