/* The table of configuration keys. A new key is a new row. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "keys.h"
#include "taskgate/config/secure_url.h"
#include "taskgate/config/summary.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define CHOICES(variable, words, ...)                                                              \
    static const struct choice variable##_items[] = {__VA_ARGS__};                                 \
    static const struct choices variable = {words, variable##_items, COUNT_OF(variable##_items)}

CHOICES(actions, "an action", {"forward", ACTION_FORWARD}, {"approve", ACTION_APPROVE},
        {"deny", ACTION_DENY}, {"policy", ACTION_POLICY});
CHOICES(expose_modes, "a mode", {"all", EXPOSE_ALL}, {"allowlist", EXPOSE_ALLOWLIST},
        {"blocklist", EXPOSE_BLOCKLIST});
CHOICES(kinds, "a kind of source that is supported", {"mcp", 0});
CHOICES(identities, "an identity", {"authorization", IDENTITY_AUTHORIZATION},
        {"session", IDENTITY_SESSION}, {"bearer_task", IDENTITY_BEARER_TASK},
        {"anonymous", IDENTITY_ANONYMOUS});
CHOICES(pins, "an answer to a change", {"off", PIN_OFF}, {"warn", PIN_WARN},
        {"approve", PIN_APPROVE});
CHOICES(eras, "an era of the protocol", {"auto", CONFIG_ERA_AUTO}, {"legacy", CONFIG_ERA_LEGACY},
        {"modern", CONFIG_ERA_MODERN}, {"both", CONFIG_ERA_LEGACY | CONFIG_ERA_MODERN});
CHOICES(bridges, "a bridge", {"off", BRIDGE_OFF}, {"legacy", BRIDGE_LEGACY},
        {"modern", BRIDGE_MODERN}, {"both", BRIDGE_LEGACY | BRIDGE_MODERN});
CHOICES(connections, "a sharing of connections", {"shared", false}, {"per_owner", true});
CHOICES(auth_upstreams, "a way of the token", {"drop", AUTH_UPSTREAM_DROP},
        {"pass", AUTH_UPSTREAM_PASS}, {"exchange", AUTH_UPSTREAM_EXCHANGE});
CHOICES(destinations, "a destination that is supported", {"admin", true}, {"slack", false});
CHOICES(timeout_actions, "an action on time-out", {"deny", 0}, {"approve", 1});
CHOICES(executions, "a time of execution", {"on_approval", EXECUTION_ON_APPROVAL},
        {"on_result", EXECUTION_ON_RESULT});
CHOICES(case_variants, "an answer to variants", {"refuse", CASE_VARIANTS_REFUSE},
        {"allow", CASE_VARIANTS_ALLOW});
CHOICES(confirmations, "a kind of confirmation", {"off", CONFIRM_OFF}, {"form", CONFIRM_FORM},
        {"url", CONFIRM_URL});
CHOICES(rounds, "an answer", {"allow", ROUNDS_ALLOW}, {"reapprove", ROUNDS_REAPPROVE},
        {"deny", ROUNDS_DENY});
CHOICES(risks, "a risk", {"low", RISK_LOW}, {"medium", RISK_MEDIUM}, {"high", RISK_HIGH});
CHOICES(typings, "an answer", {"rule", BALLOT_TYPING_RULE}, {"high", BALLOT_TYPING_HIGH},
        {"off", BALLOT_TYPING_OFF});
CHOICES(agent_reasons, "an answer", {"off", AGENT_REASON_OFF}, {"optional", AGENT_REASON_OPTIONAL},
        {"required", AGENT_REASON_REQUIRED});
CHOICES(reasons, "an answer", {"required", true}, {"optional", false});
CHOICES(policy_errors, "an answer to an error", {"deny", ON_POLICY_ERROR_DENY},
        {"skip", ON_POLICY_ERROR_SKIP});
CHOICES(pending_statuses, "a status", {"auto", PENDING_STATUS_AUTO},
        {"input_required", PENDING_STATUS_INPUT_REQUIRED}, {"working", PENDING_STATUS_WORKING});
CHOICES(client_tasks, "an answer", {"auto", CLIENT_TASKS_AUTO}, {"yes", CLIENT_TASKS_YES},
        {"no", CLIENT_TASKS_NO});
CHOICES(client_refusals, "a form of refusals", {"auto", CLIENT_REFUSALS_AUTO},
        {"error", CLIENT_REFUSALS_ERROR}, {"result", CLIENT_REFUSALS_RESULT});
CHOICES(client_headers, "a way to check headers", {"strict", false}, {"lenient", true});
CHOICES(roles, "a role", {"viewer", ROLE_VIEWER}, {"approver", ROLE_APPROVER},
        {"caller", ROLE_CALLER}, {"auditor", ROLE_AUDITOR});
CHOICES(notify_events, "an event", {"created", NOTIFY_CREATED}, {"decided", NOTIFY_DECIDED},
        {"expired", NOTIFY_EXPIRED}, {"ended", NOTIFY_ENDED});
CHOICES(notify_types, "a type of notifier that is supported", {"webhook", NOTIFY_WEBHOOK},
        {"slack", NOTIFY_SLACK}, {"teams", NOTIFY_TEAMS}, {"pagerduty", NOTIFY_PAGERDUTY},
        {"smtp", NOTIFY_SMTP});
CHOICES(pseudo_modes, "a mode", {"auto", PSEUDO_AUTO}, {"always", PSEUDO_ALWAYS},
        {"never", PSEUDO_NEVER});
static const struct choice pseudo_tools_items[] = {
#define PSEUDO_TOOL_ROW(symbol, name) {name, 1U << PSEUDO_TOOL_##symbol},
#include "taskgate/config/pseudo_tools_table.h"
#undef PSEUDO_TOOL_ROW
    {"all", PSEUDO_TOOLS_ALL},
};
static const struct choices pseudo_tools = {"one of these tools", pseudo_tools_items,
                                            PSEUDO_TOOL_COUNT + 1};
CHOICES(pseudo_promotes, "a time", {"left", PROMOTE_LEFT}, {"wait", PROMOTE_WAIT},
        {"never", PROMOTE_NEVER});
CHOICES(tls_versions, "a version of TLS that is offered", {"1.2", TLS_VERSION_1_2},
        {"1.3", TLS_VERSION_1_3});
CHOICES(protocols, "a protocol", {"http/protobuf", OTLP_PROTOBUF}, {"http/json", OTLP_JSON},
        {"grpc", OTLP_GRPC});
CHOICES(strategies, "a sampling strategy", {"head", 0}, {"tail", 1});

/* The member that a value goes to: `type.member` of the mapping's own struct. */
#define AT(type, member)                                                                           \
    .offset = offsetof(struct type, member), .size = sizeof(((struct type *)NULL)->member)
#define FLAG(type, member) .has_flag = true, .flag = offsetof(struct type, member)
#define ITEMS(type, member, member_count, item_type)                                               \
    .offset = offsetof(struct type, member), .count = offsetof(struct type, member_count),         \
    .item = sizeof(struct item_type)
#define RANGE(low, high) .minimum = (low), .maximum = (high)
#define MS_MAX (INT64_C(365) * 24 * 3600 * 1000)
#define TEN_YEARS (10 * MS_MAX)
#define FIVE_SECONDS INT64_C(5000)
#define TEN_MINUTES INT64_C(600000)
#define MIB (INT64_C(1) << 20)

/* clang-format off */
const struct key config_keys[] = {
    {"", "schema", KEY_INTEGER, .is_required = true, RANGE(INT64_MIN, INT64_MAX),
     .help = "Version of this file's format. Must be `1`."},
    {"", "sources", KEY_LIST, .is_required = true, ITEMS(config, sources, source_count, config_source), .rule = "V-010",
     .help = "The MCP servers behind the gateway."},
    {"", "governance", KEY_MAPPING, .is_required = true,
     .help = "The rules for each call."},
    {"", "approval", KEY_NAMED, ITEMS(config, workflows, workflow_count, config_workflow),
     .help = "Approval workflows by name. Without any there is one, `default`, with a timeout of 10m."},
    {"", "cedar", KEY_MAPPING, .help = "Cedar policies, for `action: policy`."},
    {"", "on_policy_error", KEY_CHOICE, AT(config, on_policy_error), .choices = &policy_errors,
     .help = "As `cedar.on_policy_error`, for policies that come by a variable. It wins over that key."},
    {"", "task_annotation_overrides", KEY_MAPPING,
     .help = "Exceptions from the `taskSupport` that the rules give a tool."},
    {"", "telemetry", KEY_MAPPING, .needs_restart = true,
     .help = "Export of traces by OTLP. See docs/telemetry.md."},
    {"", "store", KEY_MAPPING, .needs_restart = true, .help = "The place of the tasks."},
    {"", "replica", KEY_MAPPING, .needs_restart = true, .help = "This process among those that share a PostgreSQL database."},
    {"", "state_key", KEY_MAPPING, .needs_restart = true,
     .help = "The keys that seal what modern clients without tasks keep for the gateway (`requestState`), and the sign-ins that operators have begun. Without it they are in the file `state.key` beside the database, which is made at the first start."},
    {"", "workers", KEY_INTEGER, .needs_restart = true, AT(config, workers), RANGE(1, 256), .default_text = "1",
     .help = "Event loops, each on a thread of its own."},
    {"", "proxy", KEY_MAPPING, .help = "The side that agents talk to."},
    {"", "admin", KEY_MAPPING, .help = "The side that operators talk to."},
    {"", "execution", KEY_CHOICE, AT(config, execution), .choices = &executions, .default_text = "on_approval",
     .help = "When an approved call is executed: at once, or when its owner asks for the result."},
    {"", "pending_status", KEY_CHOICE, AT(config, pending_status), .choices = &pending_statuses, .default_text = "auto",
     .help = "The status of a task that waits for a human. `auto` suits each client."},
    {"", "clients", KEY_LIST, ITEMS(config, clients, client_count, config_client),
     .help = "Exceptions for certain clients. The first entry that matches applies."},
    {"", "pseudo_tools", KEY_MAPPING, .help = "Tools of the gateway's own for clients that know no tasks."},
    {"", "pseudo_tasks", KEY_MAPPING, .help = "Limits on calls of such clients that become tasks, and on questions of servers."},
    {"", "methods", KEY_MAPPING, .help = "JSON-RPC methods beyond those of the protocol."},
    {"", "limits", KEY_MAPPING, .help = "How much is accepted."},
    {"", "audit", KEY_MAPPING, .help = "How long the audit trail is kept, and how it is anchored."},
    {"", "notify", KEY_LIST, ITEMS(config, notify, notify_count, config_notify),
     .help = "Endpoints of the operators that receive notifications about tasks."},

    {"sources[]", "id", KEY_TEXT, AT(config_source, id), .is_required = true, .check = check_source_id, .rule = "V-016",
     .help = "Name of the source, part of its path: `/ID/mcp`."},
    {"sources[]", "kind", KEY_CHOICE, .is_required = true, .choices = &kinds, .rule = "V-012",
     .help = "Kind of server."},
    {"sources[]", "url", KEY_TEXT, AT(config_source, url), .is_required = true, .check = check_url, .is_hidden = true, .rule = "V-008",
     .help = "Address of the server, used as it stands."},
    {"sources[]", "prefix", KEY_TEXT, AT(config_source, prefix),
     .help = "Must be unique. It never changes a name."},
    {"sources[]", "description", KEY_TEXT, AT(config_source, description), .help = "For people."},
    {"sources[]", "enabled", KEY_BOOL, AT(config_source, enabled), .default_text = "true",
     .help = "`false` hides everything of the source."},
    {"sources[]", "identity", KEY_CHOICE, AT(config_source, identity), FLAG(config_source, has_identity), .choices = &identities, .default_text = "authorization",
     .help = "The owner of a task: the holder of the `Authorization` header, or always the session. With `bearer_task` the holder; but a modern client (2026-07-28) also reaches a task by its id with any credentials that the server accepts, such as a token that took the place of the first. With `anonymous` the holder; but all requests without `Authorization` have one owner, in all sessions and without one: these clients share their tasks and results."},
    {"sources[]", "connections", KEY_CHOICE, AT(config_source, connections_per_owner), .choices = &connections, .default_text = "shared",
     .help = "With `shared` all clients' calls use the same connections to the server. With `per_owner` a connection carries the calls of one owner alone (see `identity`)."},
    {"sources[]", "era", KEY_CHOICE, AT(config_source, eras), .choices = &eras, .default_text = "auto",
     .help = "The protocol that the server speaks: `legacy` (up to 2025-11-25), `modern` (2026-07-28) or `both`. With `auto` the gateway asks the server."},
    {"sources[]", "bridge", KEY_CHOICE, AT(config_source, bridge), .choices = &bridges, .default_text = "legacy",
     .help = "The clients that are bridged to a server that does not speak their protocol. `legacy`: clients of up to 2025-11-25 in front of a server that speaks 2026-07-28 alone. `modern`: clients of 2026-07-28 in front of a server of up to 2025-11-25. With `off` such clients get the server's own refusal."},
    {"sources[]", "expose", KEY_MAPPING, .help = "The tools, prompts and resources that clients may see."},
    {"sources[]", "timeout", KEY_ANY, .help = "Accepted for old files; has no effect. `THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS` limits the silence of a forwarded call."},
    {"sources[]", "extensions", KEY_MAPPING, .help = "The extensions of the protocol that clients may see, beside those that the gateway knows."},
    {"sources[]", "headers", KEY_NAMED, ITEMS(config_source, headers, header_count, config_source_header), .check = check_header_name,
     .help = "Static credentials that are sent to the server, by header name."},

    {"sources[]", "auth", KEY_MAPPING, .help = "Access tokens that every request to the source must bring. The gateway verifies them."},
    {"sources[]", "tls", KEY_MAPPING,
     .help = "Certificates toward a server whose `url` is https. Without it the system's authorities count, and the gateway shows none."},

    {"sources[].tls", "ca", KEY_TEXT, AT(config_source, tls_ca), .check = check_not_empty,
     .help = "The authorities of the server's certificate, in PEM, in place of the system's."},
    {"sources[].tls", "cert", KEY_TEXT, AT(config_source, tls_cert), .check = check_not_empty,
     .help = "The certificate that the gateway shows, in PEM, then those that lead to its root."},
    {"sources[].tls", "key", KEY_TEXT, AT(config_source, tls_key), .check = check_not_empty,
     .help = "Its private key, in PEM, without a passphrase."},
    {"sources[].auth", "issuer", KEY_TEXT, AT(config_source, auth.issuer), .is_required = true, .check = check_issuer,
     .help = "The issuer of the tokens, exactly as their `iss` has it. An https URL; plain http only on this machine."},
    {"sources[].auth", "jwks_url", KEY_TEXT, AT(config_source, auth.jwks_url), .check = secure_url_check,
     .help = "Address of the issuer's keys. Without it: the address in the issuer's metadata (RFC 8414, then OpenID)."},
    {"sources[].auth", "audience", KEY_TEXT, AT(config_source, auth.audience), .is_required = true, .check = check_not_empty,
     .help = "The value that `aud` of a token must have. If it is a URL, it is also the `resource` of the metadata."},
    {"sources[].auth", "scopes", KEY_TEXTS, AT(config_source, auth.scopes), .check = check_scope,
     .help = "Scopes that a token must have, all of them."},
    {"sources[].auth", "groups_claim", KEY_TEXT, AT(config_source, auth.groups_claim), .check = check_not_empty, .default_text = "groups",
     .help = "The claim that holds the groups. A name that the token does not have is tried as a path, such as `realm_access.roles`."},
    {"sources[].auth", "leeway", KEY_DURATION, AT(config_source, auth.leeway_ms), RANGE(0, TEN_MINUTES), .default_text = "60s",
     .help = "How far the issuer's clock may differ."},
    {"sources[].auth", "upstream", KEY_CHOICE, AT(config_source, auth.upstream), .choices = &auth_upstreams, .default_text = "drop",
     .help = "The client's token toward the server: nothing, the token, or the one that it is exchanged for."},
    {"sources[].auth", "exchange", KEY_MAPPING,
     .help = "With `upstream: exchange`: where a client's token is exchanged for one of the server's (RFC 8693). `upstream: {exchange: {...}}` means the same."},

    {"sources[].auth.exchange", "token_url", KEY_TEXT, AT(config_source, auth.exchange.token_url), .check = secure_url_check,
     .help = "The token endpoint. An https URL; plain http only on this machine. Required, as `client_id` is."},
    {"sources[].auth.exchange", "client_id", KEY_TEXT, AT(config_source, auth.exchange.client_id), .check = check_not_empty,
     .help = "The gateway's client at that endpoint."},
    {"sources[].auth.exchange", "client_secret_env", KEY_TEXT, .check = check_variable_name,
     .help = "Environment variable that holds its secret. A public client has none."},
    {"sources[].auth.exchange", "audience", KEY_TEXT, AT(config_source, auth.exchange.audience), .check = check_not_empty,
     .help = "The `audience` that is asked for."},
    {"sources[].auth.exchange", "scope", KEY_TEXT, AT(config_source, auth.exchange.scope), .check = check_not_empty,
     .help = "The `scope` that is asked for: scopes with a blank between them."},

    {"sources[].headers.*", "env", KEY_TEXT, .is_required = true, .check = check_variable_name,
     .help = "Environment variable that holds the header's value."},

    {"sources[]", "pin", KEY_MAPPING,
     .help = "What becomes of a definition that the server gives and nobody has accepted. See docs/definitions.md."},
    {"sources[].pin", "tools", KEY_CHOICE, AT(config_source, pins[DEFINITION_TOOL]), .choices = &pins, .default_text = "warn",
     .help = "`warn` logs and counts a change. With `approve` calls of a changed tool also wait for approval until the change is accepted. With `off` nobody looks."},
    {"sources[].pin", "prompts", KEY_CHOICE, AT(config_source, pins[DEFINITION_PROMPT]), .choices = &pins, .default_text = "warn",
     .help = "The same for prompts. With `approve` a changed prompt is hidden until the change is accepted."},
    {"sources[].pin", "skills", KEY_CHOICE, AT(config_source, pins[DEFINITION_SKILL]), .choices = &pins, .default_text = "warn",
     .help = "The same for skills. With `approve` a changed skill is hidden until the change is accepted."},
    {"sources[]", "hide_flagged", KEY_BOOL, AT(config_source, hide_flagged), .default_text = "false",
     .help = "Whether definitions that look harmful are hidden, as `expose` hides."},
    {"sources[].expose", "mode", KEY_CHOICE, AT(config_source, expose_mode), .is_required = true, .choices = &expose_modes, .default_text = "all",
     .help = "`all`, only those of `tools`, or all but those. Without `expose`: all."},
    {"sources[].expose", "tools", KEY_TEXTS, AT(config_source, expose), .check = check_glob, .rule = "V-009",
     .help = "Globs for `allowlist` and `blocklist`."},
    {"sources[].extensions", "allow", KEY_TEXTS, AT(config_source, extensions_allow), .check = check_glob, .rule = "V-009",
     .help = "Globs of further extensions that clients see in what the server offers, such as `com.example/*`."},
    {"sources[].extensions", "deny", KEY_TEXTS, AT(config_source, extensions_deny), .check = check_glob, .rule = "V-009",
     .help = "Globs of extensions that are left out, whatever `allow` and the gateway's own list say. Their methods are unknown (-32601)."},

    {"governance", "defaults", KEY_MAPPING, .is_required = true, .help = "The action when no rule matches."},
    {"governance", "rules", KEY_LIST, ITEMS(config, rules, rule_count, config_rule),
     .help = "The first rule that matches applies."},
    {"governance", "shadow", KEY_TEXT, AT(config, shadow_path), .check = check_not_empty,
     .help = "A second configuration. Its rules and policies judge the same calls and decide nothing. A relative path starts at this file's folder."},
    {"governance", "record", KEY_BOOL, AT(config, record), .default_text = "true",
     .help = "Whether each decision on a call is logged. Arguments are never logged."},
    {"governance.defaults", "action", KEY_CHOICE, AT(config, default_action), .is_required = true, .choices = &actions,
     .help = "As in a rule."},

    {"governance.rules[]", "match", KEY_TEXT, AT(config_rule, match), .is_required = true, .check = check_glob, .rule = "V-009",
     .help = "Glob on the tool's name, the prompt's name or the resource's URI."},
    {"governance.rules[]", "action", KEY_CHOICE, AT(config_rule, action), .is_required = true, .choices = &actions,
     .help = "`forward` and `deny` decide the call. With `approve` a human decides, with `policy` Cedar policies do."},
    {"governance.rules[]", "source", KEY_TEXT_OR_TEXTS, AT(config_rule, sources),
     .help = "The sources the rule is for. Without it: all."},
    {"governance.rules[]", "principals", KEY_MAPPING, FLAG(config_rule, has_principals),
     .help = "The callers the rule is for, by their verified tokens (`sources[].auth`). With both keys, both must fit. Without `auth` the rule never matches."},
    {"governance.rules[]", "policy_id", KEY_TEXT, AT(config_rule, policy_id), .help = "Required with `action: policy`. Of the policies with an `@id`, only those with this one are asked."},
    {"governance.rules[]", "approval", KEY_TEXT, AT(config_rule, approval),
     .help = "The workflow that decides. May be left out while there is only one."},
    {"governance.rules[]", "description", KEY_TEXT, AT(config_rule, description), .help = "For people."},
    {"governance.rules[].principals", "subjects", KEY_TEXTS, AT(config_rule, subjects), .check = check_glob, .rule = "V-009",
     .help = "Globs on the token's `sub`. One must match."},
    {"governance.rules[].principals", "groups", KEY_TEXTS, AT(config_rule, groups), .check = check_glob, .rule = "V-009",
     .help = "Globs on its groups. One must match one of them."},
    {"governance.rules[]", "immediate_response", KEY_TEXT, AT(config_rule, immediate_response), .check = check_not_empty,
     .help = "The text that a model gets at once when its call becomes a task (`model-immediate-response`). Without it: a sentence on the state of the task."},
    {"governance.rules[]", "execution", KEY_CHOICE, AT(config_rule, execution), FLAG(config_rule, has_execution), .choices = &executions,
     .help = "As the key of the same name at the top, for this rule."},
    {"governance.rules[]", "case_variants", KEY_CHOICE, AT(config_rule, case_variants), .choices = &case_variants, .default_text = "refuse",
     .help = "For calls that policies or people judge. If two keys of one object in the arguments differ only by case or look, such as `path` and `Path`, the call is refused with -32602 (`refuse`) or allowed (`allow`)."},
    {"governance.rules[]", "require_tasks", KEY_BOOL, AT(config_rule, requires_tasks), .default_text = "false",
     .help = "Refuses at once, instead of holding it, a call whose client does not take part in tasks: -32021 for a client of 2026-07-28 that does not declare the extension `io.modelcontextprotocol/tasks`, -32009 for an older call without `task`."},
    {"governance.rules[]", "reason", KEY_CHOICE, AT(config_rule, agent_reason), .choices = &agent_reasons, .default_text = "off",
     .help = "Whether the agent says why it makes a call, for those who decide. The tools that the rule holds are listed with a property `taskgate_reason` of 10 to 500 characters, which is `required` or `optional`; the server does not get it. A tool that has such a property itself, or whose schema is not that of an object, stays as it is. Without effect with `forward` and `deny`."},
    {"governance.rules[]", "show", KEY_MAPPING,
     .help = "The context of a call for the people who decide, beside the call itself."},
    {"governance.rules[].show", "summary", KEY_TEXT, AT(config_rule, summary), .check = summary_check,
     .help = "A sentence with `{path}` for values of the arguments, such as `Drops {schema}.{table}`: a text as it is, another value as JSON, nothing for a value that is missing. A path looks into every element of an array on its way. `{{` is the brace itself. Values of `redact_fields` stay hidden."},
    {"governance.rules[].show", "highlight", KEY_TEXTS, AT(config_rule, highlight), .check = check_dot_path,
     .help = "Paths into the arguments. The values there are marked."},
    {"governance.rules[].show", "risk", KEY_CHOICE, AT(config_rule, risk), .choices = &risks,
     .help = "How much is at stake. Without it: `high` for a tool of which the server says `destructiveHint: true`, `low` for `readOnlyHint: true`, else `medium`."},
    {"governance.rules[].show", "confirm", KEY_TEXT, AT(config_rule, confirm), .check = check_dot_path,
     .help = "Path into the arguments. The value there is typed to approve a call of high risk. Without it: a value at `highlight`, else the tool's name."},
    {"governance.rules[]", "limits", KEY_ANY, .help = "Accepted for old files; has no effect."},
    {"governance.rules[]", "inspectors", KEY_ANY, .help = "Accepted for old files; has no effect."},

    {"approval.*", "destination", KEY_MAPPING, .help = "The place where humans approve. Without it: the admin endpoint."},
    {"approval.*", "timeout", KEY_DURATION, AT(config_workflow, timeout_ms), RANGE(FIVE_SECONDS, MS_MAX), .default_text = "10m", .rule = "V-015", .help = "The time that a human has to decide."},
    {"approval.*", "valid_for", KEY_DURATION, AT(config_workflow, valid_for_ms), RANGE(1000, MS_MAX), .help = "The time within which an approved call must be executed. Without it: `THOUGHTGATE_APPROVAL_VALIDITY_SECS`."},
    {"approval.*", "blocking_timeout", KEY_DURATION, RANGE(FIVE_SECONDS, MS_MAX), .rule = "V-015", .help = "Accepted for old files; has no effect."},
    {"approval.*", "on_timeout", KEY_CHOICE, .choices = &timeout_actions, .default_text = "deny", .help = "Always `deny`; `approve` is refused."},
    {"approval.*", "redact_fields", KEY_TEXTS, AT(config_workflow, redact_fields), .check = check_dot_path,
     .help = "Paths into the arguments. Operators do not see the values there."},
    {"approval.*", "confirm", KEY_CHOICE, AT(config_workflow, confirm), .choices = &confirmations, .default_text = "off",
     .help = "Asks the user of a client of 2026-07-28 without tasks, before the call is held: by a form (`form`), or by a link to the task on the operators' page (`url`, which needs `admin.public_url`). A user's confirmation is never an approval. A client that does not declare this kind of elicitation is not asked."},
    {"approval.*", "rounds", KEY_CHOICE, AT(config_workflow, rounds), .choices = &rounds,
     .help = "What becomes of the client's answers to questions that the server asks inside an approved call. `allow`: they are recorded and reach the server. `reapprove`: each waits for the same votes first. `deny`: the client is not asked. Without it: `reapprove` where the call's rule says `show.risk: high`, else `allow`."},
    {"approval.*", "typed", KEY_CHOICE, AT(config_workflow, typed), .choices = &typings, .default_text = "rule",
     .help = "The calls that are approved only with a typed value: those whose rule says `show.risk: high` (`rule`), also those of high risk by the server's word (`high`), or none (`off`)."},
    {"approval.*", "approvers", KEY_MAPPING, .help = "The people who may vote. Without it: everybody who has the role approver."},
    {"approval.*", "quorum", KEY_QUORUM, .default_text = "1",
     .help = "How many persons must approve; or, as `{GROUP: n}`, how many of each group. Each person counts once, and for one group."},
    {"approval.*", "reasons", KEY_MAPPING, .help = "The votes that need a reason."},
    {"approval.*", "allow_edit", KEY_TEXTS, AT(config_workflow, allow_edit), .check = check_dot_path,
     .help = "Paths into the arguments whose values an approver may change, where one person decides."},
    {"approval.*", "grants", KEY_MAPPING, .help = "Lets approvers allow the same call of the same caller for a while. Without it there are no grants."},
    {"approval.*", "emergency", KEY_MAPPING, .help = "The people who may approve a call alone, in an emergency and with a reason."},
    {"approval.*", "notify", KEY_TEXTS, AT(config_workflow, notify), FLAG(config_workflow, has_notify), .check = check_name,
     .help = "The endpoints that are told of the workflow's calls, by their ids in `notify`; `[]` is none. Without it: all whose `workflows` fit."},
    {"approval.*", "remind_after", KEY_DURATION, AT(config_workflow, remind_after_ms), RANGE(1000, MS_MAX),
     .help = "The time after which these endpoints are reminded, once, of a call that is undecided. Without it: never."},
    {"approval.*", "escalate", KEY_MAPPING, .help = "The endpoints that are told later of a call that is undecided."},
    {"approval.*.escalate", "after", KEY_DURATION, AT(config_workflow, escalate_after_ms), .is_required = true, RANGE(1000, MS_MAX),
     .help = "The time after which they are told, once."},
    {"approval.*.escalate", "notify", KEY_TEXTS, AT(config_workflow, escalate_notify), .is_required = true, .check = check_name,
     .help = "The endpoints, by their ids in `notify`. They also hear what becomes of the call."},
    {"approval.*.approvers", "groups", KEY_TEXTS, AT(config_workflow, approver_groups), .check = check_name,
     .help = "Groups whose members may vote."},
    {"approval.*.approvers", "people", KEY_TEXTS, AT(config_workflow, approver_people), .check = check_name,
     .help = "People who may vote, by the names of `admin.people`; a person without an entry is named by the subject."},
    {"approval.*.reasons", "approve", KEY_CHOICE, AT(config_workflow, approve_needs_reason), .choices = &reasons, .default_text = "optional",
     .help = "For an approval."},
    {"approval.*.reasons", "reject", KEY_CHOICE, AT(config_workflow, reject_needs_reason), .choices = &reasons, .default_text = "optional",
     .help = "For a rejection."},
    {"approval.*.grants", "max", KEY_DURATION, AT(config_workflow, grants_max_ms), RANGE(1000, MS_MAX), .default_text = "1h",
     .help = "The longest time that a grant may be given for."},
    {"approval.*.grants", "max_calls", KEY_INTEGER, AT(config_workflow, grants_max_calls), RANGE(1, 1000000), .default_text = "20",
     .help = "The most calls that a grant may be given for."},
    {"approval.*.grants", "vary", KEY_TEXTS, AT(config_workflow, grants_vary), .check = check_dot_path,
     .help = "Paths into the arguments whose values may differ from call to call, or be missing. All others must be those of the approved call."},
    {"approval.*.grants", "by", KEY_TEXTS, AT(config_workflow, grants_by), .check = check_name,
     .help = "Groups whose members may give grants. Without it: everybody who may vote."},
    {"approval.*.emergency", "groups", KEY_TEXTS, AT(config_workflow, emergency_groups), .is_required = true, .check = check_name,
     .help = "Groups of which one person suffices."},
    {"approval.*.destination", "type", KEY_CHOICE, AT(config_workflow, admin_only), .is_required = true, .choices = &destinations, .default_text = "admin",
     .help = "`slack`: the workflow's calls are told to a channel, as by an endpoint of `notify` with the type `slack` and `include_arguments`. The admin endpoint decides in both cases."},
    {"approval.*.destination", "channel", KEY_TEXT, .check = check_name, .help = "`slack`: id or name of the channel. Without it: `THOUGHTGATE_SLACK_CHANNEL`."},
    {"approval.*.destination", "token_env", KEY_TEXT, .check = check_variable_name, .help = "`slack`: environment variable with the bot's token. Without it: `THOUGHTGATE_SLACK_BOT_TOKEN`, else `SLACK_BOT_TOKEN`."},
    {"approval.*.destination", "signing_secret_env", KEY_TEXT, .check = check_variable_name, .help = "`slack`: as the key of `notify`."},
    {"approval.*.destination", "url", KEY_TEXT, .check = check_url, .is_hidden = true, .rule = "V-008", .help = "`slack`: base of the Web API, `https://slack.com/api` without it."},
    {"approval.*.destination", "mention", KEY_TEXTS, .help = "`slack`: ids of people (`U…`, `W…`) and groups (`S…`) who are mentioned. Anything else is left out, with a warning."},

    {"cedar", "policies", KEY_TEXTS, .is_required = true, .check = check_not_empty, .rule = "V-013", .help = "Policy files. A relative path starts at this file's folder. `THOUGHTGATE_POLICY_FILE` and `THOUGHTGATE_POLICIES` win over them."},
    {"cedar", "schema", KEY_TEXT, .check = check_not_empty, .rule = "V-013", .help = "Accepted for old files; has no effect."},
    {"cedar", "on_policy_error", KEY_CHOICE, AT(config, on_policy_error), .choices = &policy_errors, .default_text = "deny",
     .help = "The effect of a `forbid` that cannot be evaluated. With `deny` it applies. With `skip` it is left out, as the language says."},

    {"task_annotation_overrides", "force_required", KEY_TEXTS, AT(config, force_required), .check = check_not_empty,
     .help = "Tools that are announced as `required`, whatever else applies to them."},

    {"telemetry", "enabled", KEY_BOOL, AT(config, telemetry.is_on), .default_text = "false", .help = "Whether traces are exported."},
    {"telemetry", "otlp", KEY_MAPPING, .help = "The collector."},
    {"telemetry", "sampling", KEY_MAPPING, .help = "The traces that are kept."},
    {"telemetry", "batch", KEY_MAPPING, .help = "How spans are sent."},
    {"telemetry", "resource", KEY_TEXT_MAP, .help = "Resource attributes, such as `deployment.environment`."},
    {"telemetry", "stdio", KEY_MAPPING, .help = "For servers on standard input and output. They do not exist, so it has no effect."},
    {"telemetry.otlp", "endpoint", KEY_TEXT, AT(config, telemetry.url), .check = check_url, .is_hidden = true, .rule = "V-TEL-002", .default_text = "http://localhost:4318", .help = "URL of the collector. `/v1/traces` is added, unless the path ends so."},
    {"telemetry.otlp", "protocol", KEY_CHOICE, AT(config, telemetry.protocol), .choices = &protocols, .rule = "V-TEL-003", .default_text = "http/protobuf", .help = "The encoding of the spans. `grpc` falls back to the default, with a warning."},
    {"telemetry.otlp", "headers", KEY_TEXT_MAP, .help = "Headers of each request to the collector, such as credentials."},
    {"telemetry.otlp", "tls", KEY_MAPPING, .help = "The certificates that the collector may show. Without it the system's authorities count."},
    {"telemetry.otlp.tls", "ca", KEY_TEXT, AT(config, telemetry.tls_ca), .is_required = true, .check = check_not_empty, .help = "The authorities of the collector's certificate, in PEM, in place of the system's."},
    {"telemetry.sampling", "strategy", KEY_CHOICE, .choices = &strategies, .rule = "V-TEL-004", .default_text = "head", .help = "`tail` falls back to `head`, with a warning."},
    {"telemetry.sampling", "success_sample_rate", KEY_REAL, .rule = "V-TEL-001", RANGE(0, 1), .default_text = "1.0", .help = "Share of the traces that is kept, of those that begin here. The others follow the client's decision."},
    {"telemetry.batch", "max_queue_size", KEY_INTEGER, AT(config, telemetry.max_queue_size), .rule = "V-TEL-005", RANGE(1, INT32_MAX), .default_text = "2048", .help = "Spans that may wait. Beyond it spans are dropped."},
    {"telemetry.batch", "max_export_batch_size", KEY_INTEGER, AT(config, telemetry.max_export_batch_size), .rule = "V-TEL-007", RANGE(1, INT32_MAX), .default_text = "512", .help = "Spans sent at once, at most `max_queue_size`."},
    {"telemetry.batch", "scheduled_delay_ms", KEY_INTEGER, AT(config, telemetry.scheduled_delay_ms), .rule = "V-TEL-006", RANGE(100, MS_MAX), .default_text = "5000", .help = "Milliseconds that a span waits for others at most."},
    {"telemetry.batch", "export_timeout_ms", KEY_INTEGER, AT(config, telemetry.export_timeout_ms), .rule = "V-TEL-008", RANGE(100, MS_MAX), .default_text = "30000", .help = "Milliseconds that a request to the collector may take."},
    {"telemetry.stdio", "propagate_upstream", KEY_BOOL, .default_text = "false", .help = "Whether trace context goes up on standard input. It has no effect; by HTTP trace context goes up always."},

    {"store", "path", KEY_TEXT, AT(config, store_path), .check = check_not_empty, .default_text = "/var/lib/taskgate/taskgate.db",
     .help = "SQLite file, for one process. If the folder of the default is not writable, the default is `./taskgate.db`."},

    {"store", "lock_wait", KEY_DURATION, AT(config, store_lock_wait_ms), RANGE(0, MS_MAX), .default_text = "60s",
     .help = "The time that a start waits for another process to give the SQLite file free, its ports closed. `0s`: it ends at once."},

    {"store", "url", KEY_MAPPING, .is_hidden = true,
     .help = "A PostgreSQL database (version 15 or later) in place of the file. Any number of replicas may share it."},
    {"store.url", "env", KEY_TEXT, AT(config, store_url_env), .is_required = true, .check = check_variable_name,
     .help = "Variable with the URL: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with the parameters of libpq, such as `?sslmode=verify-full`."},

    {"replica", "id", KEY_TEXT, AT(config, replica.id), .check = check_replica_id,
     .help = "Its name among the replicas. No two that run may have the same. Without it: the variable `HOSTNAME`, else the system's host name."},
    {"replica", "address", KEY_TEXT, AT(config, replica.address), .check = check_replica_address,
     .help = "The address at which the other replicas reach it: `http://HOST:PORT`. Without it the replica gets no calls from others. The state in its memory alone, such as the open questions of a session, is then lost to requests that arrive at another."},
    {"replica", "bind", KEY_TEXT, AT(config, replica.bind), .check = check_listen_address,
     .help = "Address and port to listen on for them: `HOST:PORT`. Without it: those of `address`."},
    {"replica", "key_env", KEY_TEXT, .check = check_variable_name,
     .help = "Environment variable with the key that signs calls between replicas. All need the same. Required with `address`."},

    {"state_key", "env", KEY_TEXT, AT(config, state_key_env), .is_required = true, .check = check_variable_name,
     .help = "Variable with one or two keys of 64 hex digits: the first seals, both open. Replicas need the same."},

    {"proxy", "bind", KEY_TEXT, .needs_restart = true, AT(config, proxy_bind), .check = check_address, .default_text = "127.0.0.1", .help = "Address to listen on."},
    {"proxy", "allowed_hosts", KEY_TEXTS, AT(config, proxy_allowed_hosts), .check = check_host, .help = "Accepted `Host` values. Without any, a loopback connection accepts loopback names, and any other connection accepts all."},
    {"proxy", "allowed_origins", KEY_TEXTS, AT(config, proxy_allowed_origins), .check = check_origin, .help = "Accepted `Origin` values. Loopback ones are always accepted."},

    {"proxy", "tls", KEY_MAPPING, .help = "TLS on this port. Without it: plain HTTP. Files are read again when they change; a relative path is seen from this file's folder."},
    {"proxy.tls", "cert", KEY_TEXT, AT(config, proxy_tls.cert), .is_required = true, .check = check_not_empty,
     .help = "The certificate, in PEM, then those that lead to its root."},
    {"proxy.tls", "key", KEY_TEXT, AT(config, proxy_tls.key), .is_required = true, .check = check_not_empty,
     .help = "Its private key, in PEM, without a passphrase."},
    {"proxy.tls", "client_ca", KEY_TEXT, AT(config, proxy_tls.client_ca), .check = check_not_empty,
     .help = "Authorities, in PEM. With it every client must show a certificate that one of them has issued."},
    {"proxy.tls", "min_version", KEY_CHOICE, AT(config, proxy_tls.min_version), .choices = &tls_versions, .default_text = "1.2",
     .help = "The oldest version of TLS that is spoken."},

    {"admin", "people", KEY_LIST, ITEMS(config, people, person_count, config_person), .help = "The people who decide."},
    {"admin", "tokens", KEY_LIST, ITEMS(config, tokens, token_count, config_token), .help = "The tokens that the admin endpoint accepts."},
    {"admin", "allowed_hosts", KEY_TEXTS, AT(config, admin_allowed_hosts), .check = check_host, .help = "As `proxy.allowed_hosts`."},
    {"admin", "allowed_origins", KEY_TEXTS, AT(config, admin_allowed_origins), .check = check_origin, .help = "As `proxy.allowed_origins`."},
    {"admin", "tls", KEY_MAPPING, .help = "As `proxy.tls`, for this port."},
    {"admin.tls", "cert", KEY_TEXT, AT(config, admin_tls.cert), .is_required = true, .check = check_not_empty,
     .help = "The certificate, in PEM, then those that lead to its root."},
    {"admin.tls", "key", KEY_TEXT, AT(config, admin_tls.key), .is_required = true, .check = check_not_empty,
     .help = "Its private key, in PEM, without a passphrase."},
    {"admin.tls", "client_ca", KEY_TEXT, AT(config, admin_tls.client_ca), .check = check_not_empty,
     .help = "As `proxy.tls.client_ca`; but a client without a certificate reaches `/health` and `/ready`."},
    {"admin.tls", "min_version", KEY_CHOICE, AT(config, admin_tls.min_version), .choices = &tls_versions, .default_text = "1.2",
     .help = "The oldest version of TLS that is spoken."},
    {"admin", "public_url", KEY_TEXT, AT(config, public_url), .check = check_base_url, .help = "Address of the admin endpoint as browsers see it. Links and the return from the sign-in begin with it."},
    {"admin", "oidc", KEY_MAPPING, FLAG(config, oidc.is_on), .help = "Sign-in of operators at an OpenID provider."},
    {"admin.oidc", "issuer", KEY_TEXT, AT(config, oidc.issuer), .is_required = true, .check = check_issuer, .help = "Address of the provider, as its metadata has it."},
    {"admin.oidc", "client_id", KEY_TEXT, AT(config, oidc.client_id), .is_required = true, .check = check_name, .help = "Id of the gateway at the provider."},
    {"admin.oidc", "client_secret_env", KEY_TEXT, .check = check_variable_name, .help = "Environment variable that holds the secret of the gateway at the provider. A public client has none."},
    {"admin.oidc", "scopes", KEY_TEXTS, AT(config, oidc.scopes), .check = check_scope, .help = "Scopes that the sign-in asks for. Without any: openid, profile and email."},
    {"admin.oidc", "groups_claim", KEY_TEXT, AT(config, oidc.groups_claim), .check = check_name, .default_text = "groups", .help = "Claim that holds the groups. A path with dots leads into objects."},
    {"admin.oidc", "name_claim", KEY_TEXT, AT(config, oidc.name_claim), .check = check_name, .default_text = "email", .help = "Claim that holds the name."},
    {"admin.oidc", "roles", KEY_MAPPING, .help = "Groups that give a role. A person in none of them is refused."},
    {"admin.oidc", "max_age", KEY_DURATION, AT(config, oidc.max_age_ms), RANGE(60000, MS_MAX), .default_text = "8h", .help = "Longest life of a session."},
    {"admin.oidc.roles", "viewer", KEY_TEXTS, AT(config, oidc.viewers), .check = check_name, .help = "Groups whose members are viewers."},
    {"admin.oidc.roles", "approver", KEY_TEXTS, AT(config, oidc.approvers), .check = check_name, .help = "Groups whose members are approvers."},
    {"admin.oidc.roles", "caller", KEY_TEXTS, AT(config, oidc.callers), .check = check_name, .help = "Groups whose members are callers."},
    {"admin.oidc.roles", "auditor", KEY_TEXTS, AT(config, oidc.auditors), .check = check_name, .help = "Groups whose members are auditors."},
    {"admin.people[]", "name", KEY_TEXT, AT(config_person, name), .is_required = true, .check = check_name, .help = "Name of the person. Decisions are recorded under it."},
    {"admin.people[]", "groups", KEY_TEXTS, AT(config_person, groups), .check = check_name, .help = "Groups of the person."},
    {"admin.people[]", "subject", KEY_TEXT, AT(config_person, subject), .check = check_name, .help = "The person's subject at the issuer (`sub`). The person cannot approve an agent's call that has this subject."},
    {"admin.people[]", "issuer", KEY_TEXT, AT(config_person, issuer), .check = check_issuer, .help = "Issuer of the subject. Without it: `admin.oidc.issuer`."},
    {"admin.people[]", "email", KEY_TEXT, AT(config_person, email), .check = check_name, .help = "E-mail address of the person. It counts when the issuer has verified it."},
    {"admin.people[]", "slack", KEY_TEXT, AT(config_person, slack), .check = check_slack_user, .help = "Slack id of the person (`U…`, `W…`), whose reactions and buttons then are votes."},
    {"admin.people[]", "certificate", KEY_TEXT, AT(config_person, certificate), .check = check_certificate_subject, .help = "Subject of the person's client certificate, as RFC 4514 writes it: `CN=alice,O=Example`. With it the person needs no token. Needs `admin.tls.client_ca`."},
    {"admin.people[]", "roles", KEY_CHOICES, AT(config_person, roles), .choices = &roles, .help = "The rights of the person who shows the certificate. A person with roles, and without `approver` among them, does not vote in Slack either."},
    {"admin.tokens[]", "name", KEY_TEXT, AT(config_token, name), .is_required = true, .check = check_not_empty, .help = "Name of the token. Without `person` decisions are recorded under it."},
    {"admin.tokens[]", "person", KEY_TEXT, AT(config_token, person), .check = check_not_empty, .help = "The holder, by a name in `admin.people`. Decisions are recorded under it."},
    {"admin.tokens[]", "groups", KEY_TEXTS, AT(config_token, groups), .check = check_name, .help = "Groups of the holder, beside those of the person."},
    {"admin.tokens[]", "token_env", KEY_TEXT, .check = check_variable_name, .help = "Environment variable that holds the token. This or `token_sha256`."},
    {"admin.tokens[]", "token_sha256", KEY_TEXT, .check = check_sha256, .is_hidden = true, .help = "SHA-256 of the token, in hexadecimal."},
    {"admin.tokens[]", "roles", KEY_CHOICES, AT(config_token, roles), .is_required = true, .choices = &roles, .help = "The rights of the token. `approver` and `auditor` include `viewer`."},

    {"clients[]", "match", KEY_TEXT, AT(config_client, match), .is_required = true, .check = check_glob, .rule = "V-009", .help = "Glob on `clientInfo.name`."},
    {"clients[]", "tasks", KEY_CHOICE, AT(config_client, tasks), .choices = &client_tasks, .default_text = "auto", .help = "Whether a legacy client knows tasks. `auto`: it declares `capabilities.tasks` and negotiates 2025-11-25. Any other client is a plain client: its calls wait for the human. `{match: \"*\", tasks: yes}` refuses the plain calls of all (-32009)."},
    {"clients[]", "wait", KEY_DURATION, AT(config_client, wait_ms), RANGE(100, MS_MAX), .help = "In place of `pseudo_tools.wait` and `pseudo_tools.wait_max` for the client: below its own limit for a call, or long for a program that cannot act on a pending answer."},
    {"clients[]", "refusals", KEY_CHOICE, AT(config_client, refusals), .choices = &client_refusals, .default_text = "auto", .help = "How the client learns that a call was denied, rejected, not decided or not run: as the result of the tool, with `isError` and a sentence for its model, or as a JSON-RPC error. `auto`: a plain legacy client gets a result, any other client an error."},
    {"clients[]", "headers", KEY_CHOICE, AT(config_client, lenient_headers), .choices = &client_headers, .default_text = "strict", .help = "With `lenient` the client's `tasks/get`, `tasks/update` and `tasks/cancel` (2026-07-28) may lack `Mcp-Name` for tasks of the gateway's. A header that names another task is refused in any case."},
    {"clients[]", "pending_status", KEY_CHOICE, AT(config_client, pending_status), FLAG(config_client, has_pending_status), .choices = &pending_statuses, .help = "As the key of the same name at the top."},

    {"pseudo_tools", "mode", KEY_CHOICE, AT(config, pseudo.mode), .choices = &pseudo_modes, .default_text = "auto",
     .help = "The clients that see these tools. `auto`: plain clients, as `clients[].tasks` says."},
    {"pseudo_tools", "prefix", KEY_TEXT, AT(config, pseudo.prefix), .check = check_tool_prefix, .default_text = "taskgate_",
     .help = "Put before the name of a tool if the server has a tool of that name. At most 20 letters, digits, `_` and `-`."},
    {"pseudo_tools", "only", KEY_CHOICES, AT(config, pseudo.only), .choices = &pseudo_tools,
     .default_text = "list_tasks, get_task, get_task_result, cancel_task, await_activity, respond_to_elicitation",
     .help = "The tools that are offered. `all`, which needs no list, offers the sixteen."},
    {"pseudo_tools", "promote", KEY_CHOICE, AT(config, pseudo.promote), .choices = &pseudo_promotes, .default_text = "left",
     .help = "When a call that no rule holds becomes a task. `left`: when its plain legacy client closes the connection; and after `wait` when the server has asked what this client cannot be asked. Until then the call has THOUGHTGATE_EXECUTION_TIMEOUT_SECS as its limit of silence. `wait`: when it has taken longer than `wait`. `never`: not at all, and it is aborted when the client closes. A call by `execute_tool` becomes one after its `timeout_ms` in any case."},
    {"pseudo_tools", "wait", KEY_DURATION, AT(config, pseudo.wait_ms), RANGE(100, MS_MAX), .default_text = "45s",
     .help = "The time after which a held call of such a client is answered with a task. It must be shorter than the client's own limit."},
    {"pseudo_tools", "wait_max", KEY_DURATION, AT(config, pseudo.wait_max_ms), RANGE(100, MS_MAX), .default_text = "45s",
     .help = "The same for a call with a progress token if the client accepts event streams: the client gets progress events meanwhile. It must not be below `wait`; the default rises to `wait`."},

    {"pseudo_tools", "rounds", KEY_INTEGER, AT(config, pseudo.rounds), RANGE(0, 9), .default_text = "2",
     .help = "How often a held call of a modern client (2026-07-28) without tasks is answered with a `requestState`, on which the client repeats it at once. Then the answer says what is pending. Some clients give up at the third."},
    {"pseudo_tasks", "defaultTtlMs", KEY_INTEGER, AT(config, pseudo.default_ttl_ms), RANGE(100, MS_MAX), .default_text = "300000",
     .help = "Milliseconds that a call may still take after it became a task."},
    {"pseudo_tasks", "maxTtlMs", KEY_INTEGER, AT(config, pseudo.max_ttl_ms), RANGE(100, MS_MAX), .default_text = "1800000",
     .help = "Upper limit of `defaultTtlMs`."},
    {"pseudo_tasks", "cleanupIntervalMs", KEY_INTEGER, AT(config, pseudo.cleanup_interval_ms), RANGE(100, MS_MAX), .default_text = "60000",
     .help = "Milliseconds between two searches for entries that may be forgotten."},
    {"pseudo_tasks", "completedRetentionMs", KEY_INTEGER, AT(config, pseudo.completed_retention_ms), RANGE(100, MS_MAX), .default_text = "300000",
     .help = "Milliseconds that the result of such a task is kept after its end."},
    {"pseudo_tasks", "maxTasksPerSession", KEY_INTEGER, AT(config, pseudo.max_tasks_per_session), RANGE(1, 100000), .default_text = "100",
     .help = "Such tasks that one session may have under way."},
    {"pseudo_tasks", "elicitation_timeout", KEY_DURATION, AT(config, pseudo.elicitation_timeout_ms), RANGE(100, MS_MAX), .default_text = "10m",
     .help = "The time that a question of the server waits for its answer."},
    {"pseudo_tasks", "execute_timeout", KEY_DURATION, AT(config, pseudo.execute_timeout_ms), RANGE(100, MS_MAX), .default_text = "2m",
     .help = "The time that `execute_tool` waits if the call names none. Without a progress token it waits "
             "at most `pseudo_tools.wait`."},

    {"methods", "allow", KEY_TEXTS, AT(config, methods_allow), .check = check_glob, .rule = "V-009", .help = "Globs of methods outside the protocol and its known extensions that are relayed. Their `params.uri` is judged as a resource, their `params.name` as a tool or prompt."},

    {"notify[]", "id", KEY_TEXT, AT(config_notify, id), .check = check_name,
     .help = "Name of the endpoint, once. By it workflows and anchors name the endpoint, and `/ready` and the metrics do."},
    {"notify[]", "type", KEY_CHOICE, AT(config_notify, type), .choices = &notify_types, .default_text = "webhook",
     .help = "The kind of the endpoint. All but `webhook` need `admin.public_url`, for links to the task."},
    {"notify[]", "url", KEY_TEXT, AT(config_notify, url), .check = check_endpoint, .is_hidden = true, .rule = "V-008",
     .help = "Address that notifications are posted to. Each may occur once, but for Slack's and PagerDuty's: these need none, and are `https://slack.com/api` and `https://events.pagerduty.com/v2/enqueue` without one. That of `smtp` is `smtp://HOST:PORT`, or `smtps://HOST:PORT` for TLS from the first byte."},
    {"notify[]", "secret_env", KEY_TEXT, .check = check_variable_name,
     .help = "`webhook`: environment variable with the secret that signs the notifications."},
    {"notify[]", "token_env", KEY_TEXT, .check = check_variable_name,
     .help = "`slack`: environment variable with the bot's token (`xoxb-…`, with the scopes `chat:write` and `reactions:read`)."},
    {"notify[]", "signing_secret_env", KEY_TEXT, .check = check_variable_name,
     .help = "`slack`: environment variable with the app's signing secret. With it the messages have buttons, which Slack reports to `POST /slack/interactions`."},
    {"notify[]", "channel", KEY_TEXT, AT(config_notify, channel), .check = check_name,
     .help = "`slack`: id or name of the channel."},
    {"notify[]", "mention", KEY_TEXTS, AT(config_notify, mention), .check = check_slack_id,
     .help = "`slack`: ids of people (`U…`, `W…`) and groups (`S…`) who are mentioned."},
    {"notify[]", "routing_key_env", KEY_TEXT, .check = check_variable_name,
     .help = "`pagerduty`: environment variable with the routing key of an integration with the Events API v2."},
    {"notify[]", "from", KEY_TEXT, AT(config_notify, from), .check = check_mail_address,
     .help = "`smtp`: address that mails come from."},
    {"notify[]", "to", KEY_TEXTS, AT(config_notify, to), .check = check_mail_address,
     .help = "`smtp`: addresses that mails go to."},
    {"notify[]", "user", KEY_TEXT, AT(config_notify, user), .check = check_name,
     .help = "`smtp`: name to sign in with. Without it: nobody signs in."},
    {"notify[]", "password_env", KEY_TEXT, .check = check_variable_name,
     .help = "`smtp`: environment variable with the password of `user`. It is sent over TLS alone."},
    {"notify[]", "tls", KEY_MAPPING, .help = "The certificates that the endpoint may show. Without it the system's authorities count."},
    {"notify[].tls", "ca", KEY_TEXT, AT(config_notify, tls_ca), .is_required = true, .check = check_not_empty,
     .help = "The authorities of the endpoint's certificate, in PEM, in place of the system's. With it `smtp://` requires STARTTLS."},
    {"notify[]", "workflows", KEY_TEXTS, AT(config_notify, workflows), .check = check_glob, .rule = "V-009",
     .help = "Globs of the workflows whose tasks are told of. Without it: all tasks. Workflows with `notify` do not ask for it."},
    {"notify[]", "events", KEY_CHOICES, AT(config_notify, events), .choices = &notify_events,
     .help = "The events that are sent. Without it: all. Reminders go to endpoints with `created`."},
    {"notify[]", "include_arguments", KEY_BOOL, AT(config_notify, include_arguments), .default_text = "false",
     .help = "Whether the arguments of the call are sent, with `_meta` and further parameters where people read them. Values that `redact_fields` hides are left out."},
    {"notify[]", "blind_votes", KEY_BOOL, AT(config_notify, blind_votes), .default_text = "false",
     .help = "`slack`: whether buttons and reactions decide also under a message that does not show the whole request."},

    {"audit", "keep_arguments", KEY_DURATION, AT(config, audit.keep_arguments_ms), RANGE(1000, TEN_YEARS),
     .help = "How long the arguments of calls that became tasks are kept beside the audit trail, without the values that `redact_fields` hides. Without it: not at all."},
    {"audit", "keep", KEY_DURATION, AT(config, audit.keep_ms), RANGE(1000, TEN_YEARS),
     .help = "How long rows of the audit trail are kept. An anchor takes the place of the removed ones. Without it: for ever."},
    {"audit", "key_file", KEY_TEXT, AT(config, audit.key_file), .check = check_not_empty,
     .help = "Ed25519 private key in PEM that signs anchors. A relative path is seen from this file's folder."},
    {"audit", "anchor", KEY_MAPPING, .help = "Anchors: the newest row's number and hash, in the log."},
    {"audit.anchor", "every", KEY_DURATION, AT(config, audit.anchor_every_ms), .is_required = true, RANGE(1000, MS_MAX),
     .help = "How often an anchor is made, if there are new rows."},
    {"audit.anchor", "notify", KEY_TEXTS, AT(config, audit.anchor_notify), .check = check_name,
     .help = "Endpoints that get each anchor, by their ids in `notify`."},

    {"limits", "pending_per_principal", KEY_INTEGER, AT(config, limits.pending_per_principal), RANGE(1, INT32_MAX), .default_text = "100", .help = "Tasks of one owner that are undecided, or run without a decision."},
    {"limits", "pending_bytes_per_principal", KEY_BYTES, AT(config, limits.pending_bytes_per_principal), RANGE(1, INT64_MAX), .default_text = "64MiB", .help = "The size of the requests of these tasks together."},
    {"limits", "pending_total", KEY_INTEGER, AT(config, limits.pending_total), RANGE(1, INT32_MAX), .default_text = "10000", .help = "The same for all owners together. Of clients without `auth`, whose tokens can be made up, those of one address share `share_percent` of it, or twice `pending_per_principal` where that is more."},
    {"limits", "body_bytes", KEY_BYTES, AT(config, limits.body_bytes), RANGE(1, 1024 * MIB), .default_text = "4MiB", .help = "Size of a request."},
    {"limits", "bodies_bytes", KEY_BYTES, AT(config, limits.bodies_bytes), RANGE(1, INT64_MAX), .default_text = "256MiB", .help = "Memory for all that clients make the gateway hold: requests, and responses that they do not read. Beyond it the one who holds most loses a request, the slowest or the oldest. Without the key, less where the process's memory limit is small."},
    {"limits", "share_percent", KEY_INTEGER, AT(config, limits.share_percent), RANGE(1, 100), .default_text = "25", .help = "The most that one principal, or one address of clients that are not known yet, has of a limit that has no key for it, in percent."},
    {"limits", "result_bytes", KEY_BYTES, AT(config, limits.result_bytes), RANGE(1, 1024 * MIB), .default_text = "16MiB", .help = "Size of a stored result. Without the key, less where the process's memory limit is small."},
    {"limits", "reply_bytes", KEY_BYTES, AT(config, limits.reply_bytes), RANGE(0, INT64_MAX), .default_text = "64MiB", .help = "Size of a server's reply to a forwarded request; `0` means no limit. A larger one is refused, or cut off where its beginning has gone down."},
    {"limits", "store_bytes", KEY_BYTES, AT(config, limits.store_bytes), RANGE(MIB, INT64_C(1024) * 1024 * MIB), .default_text = "1GiB", .help = "Size of the store, the audit trail included. Beyond it no call becomes a task."},
    {"limits", "sessions", KEY_INTEGER, AT(config, limits.sessions), RANGE(1, INT32_MAX), .default_text = "10000", .help = "Sessions that the gateway remembers."},
    {"limits", "sessions_per_principal", KEY_INTEGER, AT(config, limits.sessions_per_principal), RANGE(1, INT32_MAX), .default_text = "1000", .help = "Sessions of one token that the gateway remembers."},
    {"limits", "listens", KEY_INTEGER, AT(config, limits.listens), RANGE(1, INT32_MAX), .default_text = "10000", .help = "Open streams of `subscriptions/listen` (2026-07-28)."},
    {"limits", "listens_per_principal", KEY_INTEGER, AT(config, limits.listens_per_principal), RANGE(1, INT32_MAX), .default_text = "100", .help = "The same of one token. Of clients without a token, or whose token the server has not accepted yet, all of one address share `share_percent` of `listens`."},
    {"limits", "connections", KEY_INTEGER, .needs_restart = true, AT(config, limits.connections), RANGE(1, INT32_MAX), .default_text = "10000", .help = "Open client connections. Without the key, fewer where the process's memory limit is small."},
    {"limits", "requests_per_second", KEY_INTEGER, AT(config, limits.requests_per_second), RANGE(0, INT32_MAX), .default_text = "0", .help = "Requests from one client address; `0` means no limit."},
    {"limits", "requests_per_second_per_principal", KEY_INTEGER, AT(config, limits.requests_per_second_per_principal), RANGE(0, INT32_MAX), .default_text = "0", .help = "Requests with one token, or of one session without a token; `0` means no limit."},
};
/* clang-format on */
const size_t config_key_count = COUNT_OF(config_keys);

/* The table of keys as its readers ask it: by name, and in words. */

const struct key *key_find(const char *pattern, const char *name)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const struct key *key = &config_keys[i];
        if (strcmp(key->parent, pattern) == 0 && strcmp(key->name, name) == 0)
            return key;
    }
    return NULL;
}

char *key_pattern(const struct key *key)
{
    const char *suffix = key->type == KEY_LIST ? "[]" : key->type == KEY_NAMED ? ".*" : "";
    return memory_format("%s%s%s%s", key->parent, *key->parent ? "." : "", key->name, suffix);
}

/* "a, b or c". */
static char *list_choices(const struct choices *choices)
{
    OWNED_BUFFER(text);
    for (size_t i = 0; i < choices->count; i++) {
        const char *joint = i == 0 ? "" : i + 1 == choices->count ? " or " : ", ";
        buffer_append_format(&text, "%s%s", joint, choices->items[i].name);
    }
    return buffer_take(&text, NULL);
}

char *key_type_text(const struct key *key)
{
    static const char *const names[] = {
        [KEY_TEXT] = "text",
        [KEY_BOOL] = "true or false",
        [KEY_INTEGER] = "a whole number",
        [KEY_REAL] = "a number",
        [KEY_BYTES] = "a size, such as 4MiB",
        [KEY_DURATION] = "a duration, such as 10m",
        [KEY_TEXTS] = "a list of texts",
        [KEY_TEXT_OR_TEXTS] = "a text or a list of texts",
        [KEY_TEXT_MAP] = "names with texts",
        [KEY_QUORUM] = "a whole number, or groups with whole numbers",
        [KEY_ANY] = "anything",
        [KEY_MAPPING] = "a mapping",
        [KEY_LIST] = "a list of mappings",
        [KEY_NAMED] = "a mapping of names",
    };
    if (key->type != KEY_CHOICE && key->type != KEY_CHOICES)
        return memory_copy_text(names[key->type]);
    OWNED char *choices = list_choices(key->choices);
    return memory_format(key->type == KEY_CHOICES ? "a list of %s" : "%s", choices);
}
