/* Everything that can be wrong with a file: each rule with its exact place, key and hint. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "suites.h"
#include "support.h"

#define HEAD "schema: 1\nsources:\n"
#define UP "  - {id: up, kind: mcp, url: 'http://h/mcp'}\n"
#define GOVERNANCE "governance:\n  defaults: {action: forward}\n"
#define DIGEST "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
#define AUTH(more) HEAD "  - {id: up, kind: mcp, url: 'http://h/', auth: {" more "}}\n" GOVERNANCE
#define RULES HEAD UP GOVERNANCE "  rules:\n"

static const struct finding {
    const char *text, *problems;
} findings[] = {
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
     "UNSET is not set; set it to the secret\n"
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
    /* what approvers are told */
    {RULES "    - match: a\n      action: approve\n      show:\n        summary: 'x {y'\n"
           "        highlight: [ok, a..b]\n        risk: hihg\n        colour: red\n",
     "t.yaml:10:18: governance.rules[0].show.summary: \"x {y\": a \"{\" has no \"}\"; write {{ for "
     "the brace itself\n"
     "t.yaml:11:25: governance.rules[0].show.highlight[1]: \"a..b\": a path is names joined by "
     "\".\", such as card.number\n"
     "t.yaml:12:15: governance.rules[0].show.risk: \"hihg\" is not a risk; did you mean \"high\"?\n"
     "t.yaml:13:9: governance.rules[0].show.colour: unknown key; known here: summary, highlight, "
     "risk\n"},
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
     "t.yaml:3:66: sources[0].headers.X-Key: V-014 the environment variable UNSET is not set; set "
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
    /* What the contract refuses or warns of */
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

/* The rest stands behind a minimal file, whose last line is the eighth. */
static const struct finding appended[] = {
    {"telemetry: {enabled: true, otlp: {endpoint: 'http://c:4318'}}\n", ""},
    {"telemetry:\n"
     "  otlp: {endpoint: c, protocol: http}\n"
     "  sampling: {strategy: all, success_sample_rate: 1.01}\n"
     "  batch:\n"
     "    max_queue_size: 0\n"
     "    max_export_batch_size: 0\n"
     "    scheduled_delay_ms: 99\n"
     "    export_timeout_ms: 99\n",
     "t.yaml:10:20: telemetry.otlp.endpoint: V-TEL-002 the URL must begin with http:// or "
     "https://\n"
     "t.yaml:10:33: telemetry.otlp.protocol: V-TEL-003 \"http\" is not a protocol; it may be "
     "http/protobuf, http/json, grpc\n"
     "t.yaml:11:24: telemetry.sampling.strategy: V-TEL-004 \"all\" is not a sampling strategy; it "
     "may be head, tail\n"
     "t.yaml:11:50: telemetry.sampling.success_sample_rate: V-TEL-001 \"1.01\": must be from 0 to "
     "1\n"
     "t.yaml:13:21: telemetry.batch.max_queue_size: V-TEL-005 \"0\": the minimum is 1\n"
     "t.yaml:14:28: telemetry.batch.max_export_batch_size: V-TEL-007 \"0\": the minimum is 1\n"
     "t.yaml:15:25: telemetry.batch.scheduled_delay_ms: V-TEL-006 \"99\": the minimum is 100\n"
     "t.yaml:16:24: telemetry.batch.export_timeout_ms: V-TEL-008 \"99\": the minimum is 100\n"},
    {"telemetry: {batch: {max_queue_size: 500}}\n",
     "t.yaml:9:37: telemetry.batch.max_export_batch_size: V-TEL-007 must not be above "
     "max_queue_size (500); lower it, or raise max_queue_size\n"},
    {"telemetry: {otlp: {endpoint: 'http://c:4318', protocol: grpc}, sampling: {strategy: tail}}\n",
     "t.yaml:9:57: warning: telemetry.otlp.protocol: grpc is not spoken; http/protobuf is used\n"
     "t.yaml:9:85: warning: telemetry.sampling.strategy: tail is left to the collector; head is "
     "used\n"},
    {"telemetry: {otlp: {endpoint: 'http://c:4318', headers: {'a b': c, d: \"e\\nf\", host: x}}}\n",
     "t.yaml:9:57: telemetry.otlp.headers.\"a b\": this is no name of an HTTP header\n"
     "t.yaml:9:67: telemetry.otlp.headers.d: the value holds a line break or another control "
     "character\n"
     "t.yaml:9:78: telemetry.otlp.headers.host: the gateway itself sets this header\n"},
    {"telemetry: {otlp: {endpoint: 'http://c:4318', tls: {ca: /nonexistent/ca.pem}}}\n",
     "t.yaml:9:52: telemetry.otlp.tls: the collector is not called by TLS: its url is not https; "
     "write an https url, or leave tls out\n"
     "t.yaml:9:57: telemetry.otlp.tls.ca: /nonexistent/ca.pem cannot be read: No such file or "
     "directory\n"},
    /* unknown keys, at every depth */
    {"limit: {}\n", "t.yaml:9:1: limit: unknown key; did you mean \"limits\"?\n"},
    {"limits: {body_byte: 1}\n",
     "t.yaml:9:10: limits.body_byte: unknown key; did you mean \"body_bytes\"?\n"},
    /* what is inside them is looked at, too */
    {"limts: {sessions: many}\n",
     "t.yaml:9:1: limts: unknown key; did you mean \"limits\"?\n"
     "t.yaml:9:19: limits.sessions: \"many\": must be a whole number\n"},
    {"limits: {sessions: 1}\nlimts: {sessions: many}\n",
     "t.yaml:10:1: limts: unknown key; did you mean \"limits\"?\n"},
    {"proxy: {http2: yes}\n", "t.yaml:9:9: proxy.http2: unknown key; known here: bind, "
                              "allowed_hosts, allowed_origins, tls\n"},
    {"proxy: {tls: {}}\n", "t.yaml:9:14: proxy.tls.cert: the key is missing\n"
                           "t.yaml:9:14: proxy.tls.key: the key is missing\n"},
    {"approval: {ops: {destination: {type: admin, chanel: x}}}\n",
     "t.yaml:9:45: approval.ops.destination.chanel: unknown key; did you mean \"channel\"?\n"},
    {"\"a\\nb\": 1\n",
     "t.yaml:9:1: \"a\\nb\": unknown key; known here: schema, sources, governance, approval, "
     "cedar, on_policy_error, "
     "task_annotation_overrides, telemetry, store, replica, state_key, workers, proxy, admin, "
     "execution, "
     "pending_status, clients, pseudo_tools, pseudo_tasks, methods, limits, audit, notify\n"},
    /* kinds of values */
    {"store: [x]\n", "t.yaml:9:8: store: must be a mapping\n"},
    {"workers: [1]\n", "t.yaml:9:10: workers: must be a whole number, but is a list\n"},
    {"clients: {}\n", "t.yaml:9:10: clients: must be a list of mappings, but is a mapping\n"},
    {"approval: []\n", "t.yaml:9:11: approval: must be a mapping of names, but is a list\n"},
    {"methods: {allow: x}\n",
     "t.yaml:9:18: methods.allow: V-009 must be a list of texts, but is a single value\n"},
    {"methods: {allow: [[x], ~]}\n", "t.yaml:9:19: methods.allow[0]: V-009 must be text\n"
                                     "t.yaml:9:24: methods.allow[1]: V-009 must be text\n"},
    {"execution: [on_result]\n",
     "t.yaml:9:12: execution: must be on_approval or on_result, but is a list\n"},
    {"execution: on_aproval\n",
     "t.yaml:9:12: execution: \"on_aproval\" is not a time of execution; did you mean "
     "\"on_approval\"?\n"},
    {"pending_status: waiting\n",
     "t.yaml:9:17: pending_status: \"waiting\" is not a status; it may be auto, "
     "input_required, working\n"},
    {"workers: 0\n", "t.yaml:9:10: workers: \"0\": the minimum is 1\n"},
    {"workers: 257\n", "t.yaml:9:10: workers: \"257\": the maximum is 256\n"},
    {"limits: {body_bytes: 4 parsecs}\n",
     "t.yaml:9:22: limits.body_bytes: \"4 parsecs\": the unit is none of kB, MB, GB, KiB, MiB, "
     "GiB\n"},
    {"limits: {body_bytes: 2GiB, result_bytes: 99999999999999999GB}\n",
     "t.yaml:9:22: limits.body_bytes: \"2GiB\": the maximum is 1073741824\n"
     "t.yaml:9:42: limits.result_bytes: \"99999999999999999GB\": the size is too large\n"},
    {"limits: {sessions: 1.5}\n",
     "t.yaml:9:20: limits.sessions: \"1.5\": must be a whole number\n"},
    {"store: {path: ' '}\n", "t.yaml:9:15: store.path: \" \": must not be empty\n"},
    {"proxy: {bind: localhost}\n",
     "t.yaml:9:15: proxy.bind: \"localhost\": this is no IP address to listen on, such as "
     "127.0.0.1, 0.0.0.0 or ::1\n"},
    {"proxy: {allowed_hosts: ['http://a'], allowed_origins: [a.example, 'https://a.example/']}\n",
     "t.yaml:9:25: proxy.allowed_hosts[0]: \"http://a\": this is no host as clients send it, such "
     "as gateway.example:7467\n"
     "t.yaml:9:56: proxy.allowed_origins[0]: \"a.example\": this is no origin, such as "
     "https://app.example\n"
     "t.yaml:9:67: proxy.allowed_origins[1]: \"https://a.example/\": this is no origin, such as "
     "https://app.example\n"},
    {"clients: [{match: '[', tasks: maybe}, {}]\n",
     "t.yaml:9:19: clients[0].match: V-009 \"[\": the class has no closing ]\n"
     "t.yaml:9:31: clients[0].tasks: \"maybe\" is not an answer; it may be auto, yes, no\n"
     "t.yaml:9:39: clients[1].match: V-009 the key is missing\n"},
    /* operators' tokens */
    {"admin: {tokens: [{name: a, roles: [viewer]}]}\n",
     "t.yaml:9:18: admin.tokens[0]: needs either token_env or token_sha256\n"},
    {"admin: {tokens: [{name: a, token_env: UNSET, roles: []}]}\n",
     "t.yaml:9:39: admin.tokens[0].token_env: V-014 the environment variable UNSET is not set; set "
     "it to the token\n"
     "t.yaml:9:53: admin.tokens[0].roles: the list is empty\n"},
    {"admin: {tokens: [{name: a, token_sha256: abc, roles: [vewer]}]}\n",
     "t.yaml:9:42: admin.tokens[0].token_sha256: a SHA-256 digest is 64 hexadecimal digits\n"
     "t.yaml:9:55: admin.tokens[0].roles[0]: \"vewer\" is not a role; did you mean \"viewer\"?\n"},
    /* operators by name */
    {"admin: {people: [{name: alice}, {name: alice}, {name: ' x'}, {groups: [a]}]}\n",
     "t.yaml:9:40: admin.people[1]: the name is that of admin.people[0] as well\n"
     "t.yaml:9:55: admin.people[2].name: \" x\": the name begins or ends with white space\n"
     "t.yaml:9:62: admin.people[3].name: the key is missing\n"},
    {"admin: {people: [{name: a, email: A@x, subject: s, issuer: 'https://i'}, {name: b, email: "
     "a@x, subject: s, issuer: 'https://i'}, {name: c, subject: s}]}\n",
     "t.yaml:9:91: admin.people[1]: the email is that of admin.people[0] as well\n"
     "t.yaml:9:105: admin.people[1]: the subject is that of admin.people[0] as well\n"},
    {"admin: {people: [{name: alice}], tokens: [{name: t, person: alcie, token_sha256: " DIGEST
     ", roles: "
     "[auditor]}]}\n",
     "t.yaml:9:61: admin.tokens[0]: there is no person alcie; add the person to admin.people\n"},
    {"admin: {people: [{name: alice}, {name: bob}], tokens: [{name: alice, token_sha256: " DIGEST
     ", roles: "
     "[viewer]}]}\n",
     "t.yaml:9:63: admin.tokens[0]: the token has the name of the person alice; say whose it is by "
     "person, or rename the token\n"},
    {"admin: {people: [{name: alice}, {name: bob}], tokens: [{name: alice, person: bob, "
     "token_sha256: " DIGEST ", roles: [viewer]}]}\n",
     "t.yaml:9:63: admin.tokens[0]: the token of bob has the name of another person; rename the "
     "token\n"},
    /* operators who sign in */
    {"admin: {oidc: {issuer: 'http://id.example', client_secret_env: UNSET, scopes: [email]}}\n",
     "t.yaml:9:15: admin.oidc.client_id: the key is missing\n"
     "t.yaml:9:15: admin.oidc: the sign-in returns to admin.public_url, which is missing; add it, "
     "such as public_url: https://gate.example\n"
     "t.yaml:9:15: warning: admin.oidc: no group has a role, so nobody can sign in; add roles: "
     "{approver: [GROUP]}\n"
     "t.yaml:9:24: admin.oidc.issuer: \"http://id.example\": plain http is for this machine alone; "
     "the URL needs https\n"
     "t.yaml:9:64: admin.oidc.client_secret_env: V-014 the environment variable UNSET is not set; "
     "set it to the secret\n"
     "t.yaml:9:79: admin.oidc.scopes: openid is missing\n"},
    /* those who are told */
    {"notify: [{secret_env: UNSET}, {url: 'ftp://u:pw@h/', secret_env: UNSET}, {url: "
     "'http://h/'}]\n",
     "t.yaml:9:10: notify[0].url: V-008 the key is missing\n"
     "t.yaml:9:23: notify[0].secret_env: V-014 the environment variable UNSET is not set; set it "
     "to the secret\n"
     "t.yaml:9:37: notify[1].url: V-008 the URL must begin with http:// or https://\n"
     "t.yaml:9:66: notify[1].secret_env: V-014 the environment variable UNSET is not set; set it "
     "to the secret\n"
     "t.yaml:9:74: notify[2].secret_env: the key is missing\n"},
    {"notify: [{url: 'http://h/', secret_env: 'a b', events: [create, decided], arguments: "
     "true}]\n",
     "t.yaml:9:41: notify[0].secret_env: \"a b\": this is no name of an environment variable\n"
     "t.yaml:9:57: notify[0].events[0]: \"create\" is not an event; did you mean \"created\"?\n"
     "t.yaml:9:75: notify[0].arguments: unknown key; known here: id, type, url, secret_env, "
     "token_env, signing_secret_env, channel, mention, routing_key_env, from, to, user, "
     "password_env, tls, workflows, events, include_arguments\n"},
    {"notify: [{url: 'http://h/', secret_env: UNSET, events: []}]\n",
     "t.yaml:9:41: notify[0].secret_env: V-014 the environment variable UNSET is not set; set it "
     "to the secret\n"
     "t.yaml:9:56: notify[0].events: the list is empty\n"},
    {"notify: {url: x}\n", "t.yaml:9:9: notify: must be a list of mappings, but is a mapping\n"},
    /* YAML itself */
    {"workers: 1\nworkers: 2\n",
     "t.yaml:10:1: workers: the key stands here twice, first in line 9; keep one of them\n"},
    {"clients: [{match: a, tasks: no, match: b}]\n",
     "t.yaml:9:33: clients[0].match: the key stands here twice, first in line 9; keep one of "
     "them\n"},
    {"store: &s {path: x}\nlimits: *s\n",
     "t.yaml:10:9: limits: YAML aliases (*name) are not supported; put a glob in quotes: \"*s\"; "
     "or write the value out\n"},
    {"methods: {allow: [*delete*]}\n",
     "t.yaml:9:19: methods.allow[0]: a value must not begin with * in YAML; put a glob in quotes: "
     "\"*delete*\"\n"},
    {"methods:\n  allow:\n    - *.secret\n",
     "t.yaml:11:7: methods.allow[0]: a value must not begin with * in YAML; put a glob in quotes: "
     "\"*.secret\"\n"},
    {"? [a]\n: 1\n", "t.yaml:9:3: a key must be text\n"},
    {"store: !include other.yaml\n",
     "t.yaml:9:8: store: YAML tags of one's own are not supported; write the value without the "
     "tag\n"},
    {"---\nschema: 1\n", "t.yaml:9:1: a second YAML document begins here; remove the \"---\"\n"},
    {"store: {path: \"x\n",
     "t.yaml:10:1: this is not YAML: found unexpected end of stream, while scanning a quoted "
     "scalar\n"},
    {"store: {path: \"a\\0b\"}\n", "t.yaml:9:15: store.path: the value holds a NUL character\n"},
    {"# \x01\n", "t.yaml:9:3: this is not YAML: control characters are not allowed\n"},
    {"# \xC3\xA9\nclients:\n\t- match: a\n",
     "t.yaml:11:1: this is not YAML: found character that cannot start any token, while scanning "
     "for the next token; indent with spaces: here is a tab\n"},
};

START_TEST(a_finding_behind_a_valid_file)
{
    test_environment(NULL);
    char *text = with(appended[_i].text);
    expect_problems(text, appended[_i].problems);
    free(text);
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
    tcase_add_loop_test(tests, a_finding_behind_a_valid_file, 0,
                        sizeof appended / sizeof *appended);
    tcase_add_loop_test(tests, a_file_that_is_no_configuration_is_refused, 0, 7);
    tcase_add_test(tests, nesting_is_bounded);
    return tests;
}
