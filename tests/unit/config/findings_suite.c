/* Everything that can be wrong with a file: each rule with its exact place, key and hint. */
#include <check.h>
#include <string.h>

#include "suites.h"
#include "support.h"

#define HEAD "schema: 1\nsources:\n"
#define UP "  - {id: up, kind: mcp, url: 'http://h/mcp'}\n"
#define GOVERNANCE "governance:\n  defaults: {action: forward}\n"
#define AUTH(more) HEAD "  - {id: up, kind: mcp, url: 'http://h/', auth: {" more "}}\n" GOVERNANCE
#define RULES HEAD UP GOVERNANCE "  rules:\n"

static const struct finding {
    const char *text, *problems;
} findings[] = {
    /* extensions of a source */
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/', extensions: {alow: [x], deny: ['[', y]}}\n"
          "  - {id: of, kind: mcp, url: 'http://h/', extensions: [x]}\n" GOVERNANCE,
     "t.yaml:3:56: sources[0].extensions.alow: unknown key; did you mean \"allow\"?\n"
     "t.yaml:3:74: sources[0].extensions.deny[0]: V-009 \"[\": the class has no closing ]\n"
     "t.yaml:4:55: sources[1].extensions: must be a mapping\n"},
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/',\n"
          "     extensions: {allow: ['*'], deny: [x, io.modelcontextprotocol/tasks]}}\n" GOVERNANCE,
     "t.yaml:4:43: warning: sources[0].extensions.deny: the glob has no effect: the gateway itself "
     "offers tasks; take it out\n"},
    /* V-001 … V-003, V-016: names of sources */
    {HEAD UP "  - {id: up, kind: mcp, url: 'http://i/mcp'}\n" GOVERNANCE,
     "t.yaml:4:10: sources[1].id: V-001 duplicate source ID: \"up\"; each source needs an ID of "
     "its own\n"},
    {HEAD "  - {id: _up, kind: mcp, url: 'http://h/mcp'}\n" GOVERNANCE,
     "t.yaml:3:10: sources[0].id: V-002 reserved prefix \"_\" in source ID: \"_up\"; begin it with "
     "a letter or a digit\n"},
    {HEAD "  - {id: a, kind: mcp, url: 'http://h/', prefix: p}\n"
          "  - {id: b, kind: mcp, url: 'http://h/', prefix: p}\n" GOVERNANCE,
     "t.yaml:4:50: sources[1].prefix: V-003 duplicate prefix: \"p\"; each source needs a prefix of "
     "its own\n"},
    {HEAD "  - {id: 'a b', kind: mcp, url: 'http://h/mcp'}\n" GOVERNANCE,
     "t.yaml:3:10: sources[0].id: V-016 \"a b\": a source ID is letters, digits, \".\", \"_\" and "
     "\"-\"\n"},
    {HEAD "  - {id: .., kind: mcp, url: 'http://h/mcp'}\n" GOVERNANCE,
     "t.yaml:3:10: sources[0].id: V-016 \"..\": a source ID is letters, digits, \".\", \"_\" and "
     "\"-\"\n"},
    {HEAD "  - {kind: mcp, url: 'http://h/mcp'}\n" GOVERNANCE,
     "t.yaml:3:5: sources[0].id: V-016 the key is missing\n"},
    /* grants and edits */
    {HEAD UP GOVERNANCE "approval:\n  a: {confirm: form, grants: {max: 1h}}\n",
     "t.yaml:7:30: approval.a.grants: confirm asks the user about each call, and a grant decides "
     "before the answer; take confirm or grants out\n"},
    {HEAD UP GOVERNANCE "approval:\n  a: {grants: {max_calls: 0}}\n",
     "t.yaml:7:27: approval.a.grants.max_calls: \"0\": the minimum is 1\n"},
    {HEAD UP GOVERNANCE "approval:\n  a: {grants: {vary: [a..b]}}\n",
     "t.yaml:7:23: approval.a.grants.vary[0]: \"a..b\": a path is names joined by "
     "\".\", such as card.number\n"},
    {HEAD UP GOVERNANCE "approval:\n  a: {grants: {by: []}}\n",
     "t.yaml:7:20: approval.a.grants.by: the list is empty; name somebody, or take the key out\n"},
    /* auth */
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/', auth: {}}\n" GOVERNANCE,
     "t.yaml:3:49: sources[0].auth.issuer: the key is missing\n"
     "t.yaml:3:49: sources[0].auth.audience: the key is missing\n"},
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/', auth: }\n" GOVERNANCE,
     "t.yaml:3:49: sources[0].auth: the mapping is empty; name issuer and audience, or take the "
     "key out\n"},
    {AUTH("issuer: 'http://i.example', audience: a"),
     "t.yaml:3:58: sources[0].auth.issuer: \"http://i.example\": plain http is for this machine "
     "alone; the URL needs https\n"},
    {AUTH("issuer: 'https://i.example/?x', audience: ''"),
     "t.yaml:3:58: sources[0].auth.issuer: \"https://i.example/?x\": an issuer has no query\n"
     "t.yaml:3:92: sources[0].auth.audience: \"\": must not be empty\n"},
    {AUTH("issuer: 'https://i', audience: a, jwks_url: 'ftp://i', leeway: 11m, upstream: keep"),
     "t.yaml:3:94: sources[0].auth.jwks_url: \"ftp://i\": the URL does not begin with https://\n"
     "t.yaml:3:113: sources[0].auth.leeway: \"11m\": the maximum is 10m\n"
     "t.yaml:3:128: sources[0].auth.upstream: \"keep\" is not a way of the token; it may be drop, "
     "pass, exchange\n"},
    {AUTH("issuer: 'https://i', audience: a, upstream: exchange"),
     "t.yaml:3:94: sources[0].auth.exchange.token_url: the key is missing\n"
     "t.yaml:3:94: sources[0].auth.exchange.client_id: the key is missing\n"},
    {AUTH("issuer: 'https://i', audience: a, exchange: {token_url: 'https://i/t', client_id: c}"),
     "t.yaml:3:94: sources[0].auth.exchange: the mapping has no effect without `upstream: "
     "exchange`; add "
     "it, or take the mapping out\n"},
    {AUTH("issuer: 'https://i', audience: a, upstream: {exchange: {token_url: 'http://i/t', "
          "client_id: c, client_secret_env: UNSET, scopes: x}}"),
     "t.yaml:3:117: sources[0].auth.exchange.token_url: \"http://i/t\": plain http is for this "
     "machine alone; the URL needs https\n"
     "t.yaml:3:164: sources[0].auth.exchange.client_secret_env: V-014 the environment variable "
     "named here is not set; set it to the secret\n"
     "t.yaml:3:171: sources[0].auth.exchange.scopes: unknown key; did you mean \"scope\"?\n"},
    {AUTH("issuer: 'https://i', audience: a, upstream: {exchange: {token_url: 'https://i/t', "
          "client_id: c}, more: x}"),
     "t.yaml:3:94: sources[0].auth.upstream: must be drop, pass or exchange, but is a mapping\n"},
    {AUTH("issuer: 'https://i', audience: a, scopes: ['a b', '', x], groups_claim: ''"),
     "t.yaml:3:93: sources[0].auth.scopes[0]: \"a b\": a scope has no white space, quotes or "
     "backslashes\n"
     "t.yaml:3:100: sources[0].auth.scopes[1]: \"\": must not be empty\n"
     "t.yaml:3:122: sources[0].auth.groups_claim: \"\": must not be empty\n"},
    {AUTH("issuer: 'https://i', audience: a, upstream: pass}, identity: session, expose: {mode: "
          "all"),
     "t.yaml:3:94: warning: sources[0].auth.upstream: the specification forbids to pass tokens on "
     "unless they are meant for that server; write drop\n"
     "t.yaml:3:111: warning: sources[0].auth: with auth the token's subject owns, not the session; "
     "take `identity` out\n"},
    /* pin and hide_flagged */
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/', pin: {tools: ask, prompt: warn, skills: "
          "[warn]}, hide_flagged: 1}\n"
          "  - {id: of, kind: mcp, url: 'http://h/', pin: approve, hide_flagged: [x]}\n" GOVERNANCE,
     "t.yaml:3:56: sources[0].pin.tools: \"ask\" is not an answer to a change; it may be off, "
     "warn, "
     "approve\n"
     "t.yaml:3:61: sources[0].pin.prompt: unknown key; did you mean \"prompts\"?\n"
     "t.yaml:3:83: sources[0].pin.skills: must be off, warn or approve, but is a list\n"
     "t.yaml:3:106: sources[0].hide_flagged: \"1\": must be true or false\n"
     "t.yaml:4:48: sources[1].pin: must be a mapping\n"
     "t.yaml:4:71: sources[1].hide_flagged: must be true or false, but is a list\n"},
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/', pin: {tools: approve}}\n" GOVERNANCE
          "approval: {one: {timeout: 10m}, two: {timeout: 10m}}\n",
     "t.yaml:3:56: sources[0].pin.tools: there are several workflows, and a change has none that "
     "decides; name one of them default\n"},
    /* identity */
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/', identity: anonymus}\n"
          "  - {id: of, kind: mcp, url: 'http://h/', identity: [anonymous]}\n"
          "  - {id: an, kind: mcp, url: 'http://h/', identity: anonymous}\n" GOVERNANCE,
     "t.yaml:3:53: sources[0].identity: \"anonymus\" is not an identity; did you mean "
     "\"anonymous\"?\n"
     "t.yaml:4:53: sources[1].identity: must be authorization, session, bearer_task or anonymous, "
     "but is a list\n"
     "t.yaml:5:53: warning: sources[2].identity: all clients without credentials share tasks and "
     "results\n"},
    /* principals */
    {RULES "    - {match: a, action: deny, principals: {}}\n",
     "t.yaml:7:44: governance.rules[0].principals: the mapping names nobody; name subjects or "
     "groups, or take the key out\n"
     "t.yaml:7:44: warning: governance.rules[0].principals: no source of the rule has auth, so it "
     "never matches; add auth to a source\n"},
    {RULES "    - {match: a, action: deny, principals: }\n",
     "t.yaml:7:44: governance.rules[0].principals: the mapping names nobody; name subjects or "
     "groups, or take the key out\n"
     "t.yaml:7:44: warning: governance.rules[0].principals: no source of the rule has auth, so it "
     "never matches; add auth to a source\n"},
    {AUTH(
         "issuer: 'https://i', audience: a") "  rules:\n    - {match: a, action: deny, principals: "
                                             "{subjects: [], groups: ['[', x]}}\n",
     "t.yaml:7:55: governance.rules[0].principals.subjects: the list is empty; list globs, or take "
     "the key out\n"
     "t.yaml:7:68: governance.rules[0].principals.groups[0]: V-009 \"[\": the class has no closing "
     "]\n"},
    {AUTH(
         "issuer: 'https://i', audience: a") "  rules:\n    - {match: a, action: deny, principals: "
                                             "{groups: [x]}}\n",
     ""},
    /* V-004, V-005 and rules that ask policies which nobody wrote */
    /* the words for approvers */
    {RULES "    - match: a\n      action: approve\n      show:\n        summary: 'x {y'\n"
           "        highlight: [ok, a..b]\n        risk: hihg\n        colour: red\n",
     "t.yaml:10:18: governance.rules[0].show.summary: \"x {y\": a \"{\" has no \"}\"; write {{ for "
     "the brace itself\n"
     "t.yaml:11:25: governance.rules[0].show.highlight[1]: \"a..b\": a path is names joined by "
     "\".\", such as card.number\n"
     "t.yaml:12:15: governance.rules[0].show.risk: \"hihg\" is not a risk; did you mean \"high\"?\n"
     "t.yaml:13:9: governance.rules[0].show.colour: unknown key; known here: summary, highlight, "
     "risk, confirm\n"},
    {RULES "    - {match: a, action: deny, show: {risk: low}}\n",
     "t.yaml:7:38: warning: governance.rules[0].show: the key has no effect with action: deny, "
     "which nobody decides\n"},
    {RULES "    - {match: a, action: deny, policy_id: p}\n",
     "t.yaml:7:43: warning: governance.rules[0].policy_id: V-004 the key has no effect without "
     "action: policy\n"},
    {RULES "    - {match: a, action: policy}\n",
     "t.yaml:7:7: governance.rules[0].policy_id: V-005 missing policy_id for action: policy; add "
     "it\n"
     "t.yaml:7:26: warning: governance.rules[0].action: there are no Cedar policies, so every call "
     "is rejected; name policy files in cedar.policies\n"},
    {RULES "    - {match: a, action: policy, policy_id: p}\n",
     "t.yaml:7:26: warning: governance.rules[0].action: there are no Cedar policies, so every call "
     "is rejected; name policy files in cedar.policies\n"},
    {HEAD UP "governance: {defaults: {action: policy}}\n",
     "t.yaml:4:33: warning: governance.defaults.action: there are no Cedar policies, so every call "
     "is rejected; name policy files in cedar.policies\n"},
    /* V-006, V-006b: workflows */
    {RULES "    - {match: a, action: approve, approval: opps}\n"
           "approval: {ops: {}}\n",
     "t.yaml:7:45: governance.rules[0].approval: V-006 undefined workflow \"opps\"; did you mean "
     "\"ops\"?\n"},
    {RULES "    - {match: a, action: approve}\n"
           "approval: {ops: {}, security: {}}\n",
     "t.yaml:7:26: governance.rules[0].action: V-006b there are several workflows and none is "
     "named; name one as approval: NAME\n"},
    {RULES "    - {match: a, action: approve}\n"
           "approval: {ops: {}, default: {}}\n",
     "t.yaml:7:26: governance.rules[0].action: V-006b there are several workflows and none is "
     "named; name one as approval: NAME\n"},
    {HEAD UP "governance: {defaults: {action: approve}}\n"
             "approval: {ops: {}, security: {}}\n",
     "t.yaml:4:33: governance.defaults.action: V-006b there are several workflows and none is "
     "named; call the one that is meant \"default\"\n"},
    {HEAD UP "governance: {defaults: {action: approve}}\n"
             "approval: {ops: {}, default: {}}\n",
     ""},
    {RULES "    - {match: a, action: policy, policy_id: p}\n"
           "approval: {ops: {}, default: {}}\ncedar: {policies: [/dev/null]}\n",
     ""},
    {RULES "    - {match: a, action: policy, policy_id: p}\n"
           "approval: {ops: {}, security: {}}\ncedar: {policies: [/dev/null]}\n",
     "t.yaml:7:26: governance.rules[0].action: V-006b there are several workflows and none is "
     "named; name one as approval: NAME\n"},
    {RULES "    - {match: a, action: approve}\n"
           "approval: {ops: {}}\n",
     ""},
    {RULES "    - {match: a, action: approve}\n", ""},
    {RULES "    - {match: a, action: deny, approval: unused}\n", ""},
    /* V-007 */
    {RULES "    - {match: a, action: deny, source: [up, upp]}\n",
     "t.yaml:7:45: governance.rules[0].source[1]: V-007 undefined source \"upp\"; did you mean "
     "\"up\"?\n"},
    {RULES "    - {match: a, action: deny, source: elsewhere}\n",
     "t.yaml:7:40: governance.rules[0].source: V-007 undefined source \"elsewhere\"\n"},
    {RULES "    - {match: a, action: deny, source: []}\n",
     "t.yaml:7:40: governance.rules[0].source: the list is empty; leave the key out to match all "
     "sources\n"},
    /* V-008: never the value, for it may hold credentials */
    {HEAD "  - {id: up, kind: mcp, url: 'ftp://user:secret@h/'}\n" GOVERNANCE,
     "t.yaml:3:30: sources[0].url: V-008 the URL must begin with http:// or https://\n"},
    {HEAD "  - {id: up, kind: mcp, url: 'http://h:70000/'}\n" GOVERNANCE,
     "t.yaml:3:30: sources[0].url: V-008 the URL has no valid host and port\n"},
    {HEAD "  - {id: up, kind: mcp, url: 'http:///mcp'}\n" GOVERNANCE,
     "t.yaml:3:30: sources[0].url: V-008 the URL has no valid host and port\n"},
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/a b'}\n" GOVERNANCE,
     "t.yaml:3:30: sources[0].url: V-008 the URL holds white space or a control character\n"},
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/#x'}\n" GOVERNANCE,
     "t.yaml:3:30: sources[0].url: V-008 the URL has a fragment (\"#…\"), which no server gets\n"},
    {HEAD "  - {id: up, kind: mcp, url: 'https://u:p@[::1]:8443/mcp?x=1'}\n" GOVERNANCE, ""},
    /* V-009: globs, wherever they stand */
    {RULES "    - {match: 'a**', action: deny}\n",
     "t.yaml:7:15: governance.rules[0].match: V-009 \"a**\": ** must be a whole path component, "
     "such as a/**/b\n"},
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/', expose: {mode: blocklist, tools: [ok, "
          "'[x']}}\n" GOVERNANCE,
     "t.yaml:3:81: sources[0].expose.tools[1]: V-009 \"[x\": the class has no closing ]\n"},
    /* V-010 */
    {"schema: 1\nsources: []\n" GOVERNANCE,
     "t.yaml:2:10: sources: V-010 no sources are defined; add one with id, kind and url\n"},
    {"schema: 1\n" GOVERNANCE, "t.yaml:1:1: sources: V-010 the key is missing\n"},
    /* V-011 is retired */
    {HEAD UP "  - {id: down, kind: mcp, url: 'http://i/mcp'}\n" GOVERNANCE, ""},
    /* V-012 */
    {HEAD "  - {id: up, kind: openapi, url: 'http://h/'}\n" GOVERNANCE,
     "t.yaml:3:20: sources[0].kind: V-012 \"openapi\" is not a kind of source that is supported; "
     "it may be mcp\n"},
    /* V-013 */
    {HEAD UP GOVERNANCE "cedar:\n  policies: [/nonexistent/a.cedar]\n  schema: /nonexistent/s\n",
     "t.yaml:7:14: cedar.policies[0]: V-013 the policy file /nonexistent/a.cedar cannot be read: "
     "No "
     "such file or directory\n"
     "t.yaml:8:11: cedar.schema: V-013 /nonexistent/s cannot be read: No such file or directory\n"
     "t.yaml:8:11: warning: cedar.schema: the schema is not read: policies are checked against the "
     "entities and attributes that the gateway itself makes\n"},
    {HEAD UP GOVERNANCE "cedar: {policies: [/dev/null]}\n", ""},
    {HEAD UP "governance: {defaults: {action: policy}}\ncedar: {policies: [/dev/null]}\n", ""},
    {HEAD UP GOVERNANCE "cedar: {policies: [/dev]}\n",
     "t.yaml:6:20: cedar.policies[0]: V-013 the policy file /dev cannot be read: Is a directory\n"},
    {HEAD UP GOVERNANCE "cedar: {policies: [/dev/null], on_policy_error: alow}\n",
     "t.yaml:6:49: cedar.on_policy_error: \"alow\" is not an answer to an error; it may be deny, "
     "skip\n"},
    {HEAD UP GOVERNANCE "cedar: {}\n", "t.yaml:6:8: cedar.policies: V-013 the key is missing\n"},
    /* V-014: comments too, as the text is replaced before it is YAML */
    {HEAD "  - {id: up, kind: mcp, url: '${UNSET}/mcp'} # ${ALSO_UNSET}\n" GOVERNANCE,
     "t.yaml:3:31: sources[0].url: V-014 the environment variable UNSET is not set; set it, or "
     "write a default as ${NAME:-default}\n"
     "t.yaml:3:48: V-014 the environment variable ALSO_UNSET is not set; set it, or write a "
     "default as ${NAME:-default}\n"},
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/', headers: {X-Key: {env: UNSET}}}\n" GOVERNANCE,
     "t.yaml:3:66: sources[0].headers.X-Key: V-014 the environment variable named here is not set; "
     "set "
     "it to the header's value\n"},
    /* V-015 */
    {HEAD UP GOVERNANCE "approval: {ops: {timeout: 4999ms}}\n",
     "t.yaml:6:27: approval.ops.timeout: V-015 \"4999ms\": the minimum is 5s\n"},
    {HEAD UP GOVERNANCE "approval: {ops: {timeout: 5s, blocking_timeout: PT1S}}\n",
     "t.yaml:6:49: approval.ops.blocking_timeout: V-015 \"PT1S\": the minimum is 5s\n"
     "t.yaml:6:49: warning: approval.ops.blocking_timeout: the key has no effect\n"},
    {HEAD UP GOVERNANCE "approval: {ops: {timeout: 10}}\n",
     "t.yaml:6:27: approval.ops.timeout: V-015 \"10\": the number has no unit, such as the m of "
     "10m\n"},
    /* Other refusals and warnings */
    {HEAD UP GOVERNANCE "approval: {ops: {on_timeout: approve}}\n",
     "t.yaml:6:30: approval.ops.on_timeout: \"approve\" is refused: a call that nobody decided is "
     "never executed; write deny, or a longer timeout\n"},
    {HEAD UP GOVERNANCE "approval: {ops: {destination: {type: slack, channel: '#a'}}}\n",
     "t.yaml:6:31: warning: approval.ops.destination.token_env: V-014 the environment variable "
     "THOUGHTGATE_SLACK_BOT_TOKEN is not set, so nothing is sent to Slack; the admin endpoint "
     "decides; set it to the token of the bot\n"},
    {HEAD UP GOVERNANCE "approval: {ops: {destination: {type: slack}}}\n",
     "t.yaml:6:31: approval.ops.destination.channel: the key is missing; add it, such as "
     "channel: \"#approvals\"\n"},
    {HEAD UP GOVERNANCE "approval: {ops: {destination: {type: approval_service}}}\n",
     "t.yaml:6:38: approval.ops.destination.type: \"approval_service\" is not a destination that "
     "is supported; it may be admin, slack\n"},
    {HEAD UP GOVERNANCE "approval: {ops: {redact_fields: [card.number, a..b]}}\n",
     "t.yaml:6:47: approval.ops.redact_fields[1]: \"a..b\": a path is names joined by \".\", such "
     "as card.number\n"},
    {"schema: 2\nsources:\n" UP GOVERNANCE,
     "t.yaml:1:9: schema: schema version 2 is not supported; write schema: 1\n"},
    {"sources:\n" UP GOVERNANCE, "t.yaml:1:1: schema: the key is missing\n"},
    {"schema: one\nsources:\n" UP GOVERNANCE,
     "t.yaml:1:9: schema: \"one\": must be a whole number\n"},
    {HEAD UP, "t.yaml:1:1: governance: the key is missing\n"},
    {HEAD UP "governance: {defaults: {}}\n",
     "t.yaml:4:24: governance.defaults.action: the key is missing\n"},
    {HEAD UP "governance: {defaults: {action: aprove}}\n",
     "t.yaml:4:33: governance.defaults.action: \"aprove\" is not an action; did you mean "
     "\"approve\"?\n"},
    {RULES "    - {action: deny}\n    - {match: a}\n    - text\n",
     "t.yaml:7:7: governance.rules[0].match: V-009 the key is missing\n"
     "t.yaml:8:7: governance.rules[1].action: the key is missing\n"
     "t.yaml:9:7: governance.rules[2]: must be a mapping\n"},
    /* expose */
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/', expose: {mode: allowlist}}\n" GOVERNANCE,
     "t.yaml:3:51: sources[0].expose.tools: the key is missing; list globs, or write mode: all\n"},
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/', expose: {tools: [a]}}\n" GOVERNANCE,
     "t.yaml:3:51: sources[0].expose.mode: the key is missing\n"},
    {HEAD "  - {id: up, kind: mcp, url: 'http://h/', expose: {mode: all, tools: [a]}}\n" GOVERNANCE,
     "t.yaml:3:70: warning: sources[0].expose.tools: the list has no effect with mode: all; write "
     "mode: allowlist or blocklist\n"},
};

START_TEST(a_finding_has_its_place_key_and_hint)
{
    test_environment(NULL);
    expect_problems(findings[_i].text, findings[_i].problems);
}
END_TEST

START_TEST(a_file_that_is_no_configuration_is_refused)
{
    static const struct finding files[] = {
        {"", "t.yaml:1:1: the file is empty; a configuration begins with \"schema: 1\"\n"},
        {"# nothing\n\n",
         "t.yaml:3:1: the file is empty; a configuration begins with \"schema: 1\"\n"},
        {"- a\n", "t.yaml:1:1: must be a mapping\n"},
        {"text\n", "t.yaml:1:1: must be a mapping\n"},
        {"~\n", "t.yaml:1:1: schema: the key is missing\n"
                "t.yaml:1:1: sources: V-010 the key is missing\n"
                "t.yaml:1:1: governance: the key is missing\n"},
        {"a: \xFF\n", "t.yaml:1:4: the file is not UTF-8; save it as UTF-8\n"},
        {"a: \xC3\xA4\n# \xC3\xA4\xE4\n", "t.yaml:2:4: the file is not UTF-8; save it as UTF-8\n"},
    };
    expect_problems(files[_i].text, files[_i].problems);
}
END_TEST

START_TEST(nesting_is_bounded)
{
    char text[4096];
    int used = 0;
    for (int i = 0; i < 1000; i++)
        text[used++] = '[';
    text[used] = '\0';
    char expected[256] = "t.yaml:1:33: ";
    for (int i = 0; i < 32; i++)
        strcat(expected, "[0]");
    expect_problems(text, strcat(expected, ": this is nested too deeply\n"));
}
END_TEST

TCase *findings_case(void)
{
    TCase *tests = tcase_create("findings");
    tcase_add_loop_test(tests, a_finding_has_its_place_key_and_hint, 0,
                        sizeof findings / sizeof *findings);
    tcase_add_loop_test(tests, a_file_that_is_no_configuration_is_refused, 0, 7);
    tcase_add_test(tests, nesting_is_bounded);
    return tests;
}
