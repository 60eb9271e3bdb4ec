/* The log's words about Cedar policies when they are loaded: mistakes and warnings. */
#include <check.h>
#include <string.h>

#include "engine_rules.h"
#include "suites.h"
#include "support.h"
#include "taskgate/core/buffer.h"

static const struct {
    const char *cedar, *problems;
} loads[] = {
    {"permit(principal, action, resource);", ""},
    {"permit(principal, action resource);\n\npermit(principal action, resource);",
     "THOUGHTGATE_POLICIES:1:26: unexpected \"resource\"; expected \",\", \"==\" or \"in\" behind "
     "action\n"
     "THOUGHTGATE_POLICIES:3:18: unexpected \"action\"; expected \",\", \"==\", \"in\" or \"is\" "
     "behind principal\n"},
    {"\n  @thoughtgate_approval(\"fin\")\n  permit(principal, action, resource);",
     "THOUGHTGATE_POLICIES:2:3: V-006 undefined workflow \"fin\" in @thoughtgate_approval; name "
     "one of the key approval\n"},
    {"permit(principal, action, resource); @thoughtgate_approval(\"ops\") forbid(principal, "
     "action, resource);",
     "THOUGHTGATE_POLICIES:1:38: warning: @thoughtgate_approval has no effect on a forbid; only a "
     "permit leads to approval\n"},
    {"@id(\"q\") permit(principal, action, resource);",
     "t.yaml:6:7: warning: governance.rules[0].policy_id: no permit has @id(\"p\"), and none is "
     "without an @id, so every call is rejected\n"
     "t.yaml:7:7: warning: governance.rules[1].policy_id: no permit has @id(\"p\"), and none is "
     "without an @id, so every call is rejected\n"},
    /* the vocabulary */
    {"permit(principal, action, resource);forbid(principal, " FORWARD ", resource);",
     "THOUGHTGATE_POLICIES:1:37: warning: a forbid on Forward alone does not reject: the call may "
     "still be approved; leave the action out to reject it\n"},
    {"permit(principal is User, action == Action::\"Forward\", resource == Tool::\"x\");",
     "THOUGHTGATE_POLICIES:1:1: warning: there are no entities of the type User; there are "
     "ThoughtGate::App, Role, ToolCall and Action\n"
     "THOUGHTGATE_POLICIES:1:1: warning: there are no entities of the type Action; there are "
     "ThoughtGate::App, Role, ToolCall and Action\n"
     "THOUGHTGATE_POLICIES:1:1: warning: there are no entities of the type Tool; there are "
     "ThoughtGate::App, Role, ToolCall and Action\n"},
    {"permit(principal, action == ThoughtGate::Action::\"forward\", resource);",
     "THOUGHTGATE_POLICIES:1:1: warning: there is no action \"forward\"; there are Forward, "
     "Approve and tools/call\n"},
    {"permit(principal, action, resource) when {\n  principal.namespace == \"x\" };",
     "THOUGHTGATE_POLICIES:2:13: warning: the principal has no attribute \"namespace\"; it has "
     "name, identity, client_name, client_version, issuer, subject, groups, scopes\n"},
    {"permit(principal, action, resource) when {resource.arguments.x.y && resource has args};",
     "THOUGHTGATE_POLICIES:1:78: warning: the resource has no attribute \"args\"; it has name, "
     "server, arguments\n"},
    {"permit(principal, action, resource) when {context.time.minute == 1 || context has "
     "annotations.readOnly};",
     "THOUGHTGATE_POLICIES:1:56: warning: context.time has no attribute \"minute\"; it has hour, "
     "day_of_week, timestamp, datetime\n"
     "THOUGHTGATE_POLICIES:1:79: warning: context.annotations has no attribute \"readOnly\"; it "
     "has readOnlyHint, destructiveHint, idempotentHint, openWorldHint\n"},
    {"permit(principal, action, resource) when {resource.name in [\"a\"]};",
     "THOUGHTGATE_POLICIES:1:57: warning: \"in\" on a string is an error each time; write [\"a\", "
     "\"b\"].contains(…)\n"},
    {"permit(principal, action, resource) when {resource.name.contains(\"a\")};",
     "THOUGHTGATE_POLICIES:1:57: warning: \"contains\" on a string is an error each time; write … "
     "like \"*part*\"\n"},
    {"permit(principal, action, resource is ThoughtGate::McpMethod) when {resource.method == "
     "\"x\"};",
     ""},
    {"permit(principal, action, resource) when {resource.arguments.to.country in [\"a\"]};",
     "THOUGHTGATE_POLICIES:1:73: warning: \"in\" on an argument is an error each time; write "
     "[\"a\", \"b\"].contains(…)\n"},
    {"permit(principal, action, resource) when {resource.arguments[\"x\"] is ThoughtGate::App || "
     "resource.name is ThoughtGate::App};",
     "THOUGHTGATE_POLICIES:1:67: warning: \"is\" on an argument is an error each time; only an "
     "entity is of a type\n"
     "THOUGHTGATE_POLICIES:1:104: warning: \"is\" on a string is an error each time; only an "
     "entity is of a type\n"},
    {"permit(principal, action, resource) when {resource.arguments has a.b && "
     "resource.arguments.a.b.contains(1) && [\"x\"].contains(resource.arguments.c)};",
     ""},
    {"permit(principal in ThoughtGate::Role::\"session\", action, resource) when {principal in "
     "ThoughtGate::Role::\"sessions\"};",
     "THOUGHTGATE_POLICIES:1:88: warning: there is no role \"sessions\"; there are authorization, "
     "session, admin and anonymous\n"},
    {"permit(principal, action, resource) when {[ThoughtGate::Role::\"admin\", "
     "Team::\"b\"].contains(principal)};",
     "THOUGHTGATE_POLICIES:1:43: warning: there are no entities of the type Team; there are "
     "ThoughtGate::App, Role, ToolCall and Action\n"},
};

START_TEST(loading_tells_the_faults_of_policies)
{
    struct buffer said;
    buffer_init(&said);
    bool loaded = load_policy(RULES_BEGIN, loads[_i].cedar, &said);
    buffer_append_char(&said, '\0');
    ck_assert_str_eq(said.bytes, loads[_i].problems);
    bool has_error = *loads[_i].problems && !strstr(loads[_i].problems, "warning: ");
    ck_assert(loaded == !has_error);
    buffer_finish(&said);
}
END_TEST

TCase *engine_load_case(void)
{
    TCase *tests = tcase_create("loading");
    tcase_add_loop_test(tests, loading_tells_the_faults_of_policies, 0,
                        sizeof loads / sizeof *loads);
    return tests;
}
