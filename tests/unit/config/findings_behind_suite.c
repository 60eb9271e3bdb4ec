/* The faults in the parts of a file behind its sources: each rule with its place, key and hint. */
#include <check.h>
#include <stdlib.h>

#include "suites.h"
#include "support.h"

#define DIGEST "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

/* The rest stands behind a minimal file, whose last line is the eighth. */
static const struct finding {
    const char *text, *problems;
} appended[] = {
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
    /* the keys inside them are looked at, too */
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
    {"limits: {reply_bytes: -1}\n",
     "t.yaml:9:23: limits.reply_bytes: \"-1\": a size is a number with or without a unit, such as "
     "4MiB\n"},
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
    {"clients: [{match: a, wait: 3, refusals: resut}, {match: b, wait: 3ms, refusals: [x]}]\n",
     "t.yaml:9:28: clients[0].wait: \"3\": the number has no unit, such as the m of 10m\n"
     "t.yaml:9:41: clients[0].refusals: \"resut\" is not a form of refusals; did you mean "
     "\"result\"?\n"
     "t.yaml:9:66: clients[1].wait: \"3ms\": the minimum is 100ms\n"
     "t.yaml:9:81: clients[1].refusals: must be auto, error or result, but is a list\n"},
    {"clients: [{match: a, wait: [1s], header: strict}, {match: b, headers: [x], rounds: 2}]\n",
     "t.yaml:9:28: clients[0].wait: must be a duration, such as 10m, but is a list\n"
     "t.yaml:9:34: clients[0].header: unknown key; did you mean \"headers\"?\n"
     "t.yaml:9:71: clients[1].headers: must be strict or lenient, but is a list\n"
     "t.yaml:9:76: clients[1].rounds: unknown key; known here: match, tasks, wait, refusals, "
     "headers, pending_status\n"},
    {"limits: {reply_bytes: [3], reply_byte: 3}\n",
     "t.yaml:9:23: limits.reply_bytes: must be a size, such as 4MiB, but is a list\n"
     "t.yaml:9:28: limits.reply_byte: unknown key; did you mean \"reply_bytes\"?\n"},
    {"pseudo_tools: {promote: lef, only: [get_tasks], wait_max: 0s}\n",
     "t.yaml:9:25: pseudo_tools.promote: \"lef\" is not a time; did you mean \"left\"?\n"
     "t.yaml:9:37: pseudo_tools.only[0]: \"get_tasks\" is not one of these tools; did you mean "
     "\"get_task\"?\n"
     "t.yaml:9:59: pseudo_tools.wait_max: \"0s\": the minimum is 100ms\n"},
    {"clients: [{match: a, headers: lax}]\n",
     "t.yaml:9:31: clients[0].headers: \"lax\" is not a way to check headers; it may be strict, "
     "lenient\n"},
    /* operators' tokens */
    {"admin: {tokens: [{name: a, roles: [viewer]}]}\n",
     "t.yaml:9:18: admin.tokens[0]: needs either token_env or token_sha256\n"},
    {"admin: {tokens: [{name: a, token_env: UNSET, roles: []}]}\n",
     "t.yaml:9:39: admin.tokens[0].token_env: V-014 the environment variable named here is not "
     "set; set "
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
     "t.yaml:9:60: warning: admin.people[0]: no agent and no operator shows a token of https://i, "
     "the subject has no effect; name that of admin.oidc or of the auth of a source\n"
     "t.yaml:9:91: admin.people[1]: the email is that of admin.people[0] as well\n"
     "t.yaml:9:105: admin.people[1]: the subject is that of admin.people[0] as well\n"
     "t.yaml:9:116: warning: admin.people[1]: no agent and no operator shows a token of https://i, "
     "the subject has no effect; name that of admin.oidc or of the auth of a source\n"
     "t.yaml:9:149: warning: admin.people[2]: it is not said which issuer gives the subject, it "
     "has "
     "no effect; add issuer\n"},
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
     "t.yaml:9:64: admin.oidc.client_secret_env: V-014 the environment variable named here is not "
     "set; "
     "set it to the secret\n"
     "t.yaml:9:79: admin.oidc.scopes: openid is missing\n"},
    /* those who are told */
    {"notify: [{secret_env: UNSET}, {url: 'ftp://u:pw@h/', secret_env: UNSET}, {url: "
     "'http://h/'}]\n",
     "t.yaml:9:10: notify[0].url: V-008 the key is missing\n"
     "t.yaml:9:23: notify[0].secret_env: V-014 the environment variable named here is not set; set "
     "it "
     "to the secret\n"
     "t.yaml:9:37: notify[1].url: V-008 the URL must begin with http:// or https://\n"
     "t.yaml:9:66: notify[1].secret_env: V-014 the environment variable named here is not set; set "
     "it "
     "to the secret\n"
     "t.yaml:9:74: notify[2].secret_env: the key is missing\n"},
    {"notify: [{url: 'http://h/', secret_env: 'a b', events: [create, decided], arguments: "
     "true}]\n",
     "t.yaml:9:41: notify[0].secret_env: this is no name of an environment variable\n"
     "t.yaml:9:57: notify[0].events[0]: \"create\" is not an event; did you mean \"created\"?\n"
     "t.yaml:9:75: notify[0].arguments: unknown key; known here: id, type, url, secret_env, "
     "token_env, signing_secret_env, channel, mention, routing_key_env, from, to, user, "
     "password_env, tls, workflows, events, include_arguments, blind_votes\n"},
    {"notify: [{url: 'http://h/', secret_env: UNSET, events: []}]\n",
     "t.yaml:9:41: notify[0].secret_env: V-014 the environment variable named here is not set; set "
     "it "
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

TCase *findings_behind_case(void)
{
    TCase *tests = tcase_create("findings behind");
    tcase_add_loop_test(tests, a_finding_behind_a_valid_file, 0,
                        sizeof appended / sizeof *appended);
    return tests;
}
