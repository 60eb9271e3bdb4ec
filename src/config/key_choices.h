/* The words of keys that take one of several. For keys.c alone. */
#pragma once

#include "keys.h"

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
