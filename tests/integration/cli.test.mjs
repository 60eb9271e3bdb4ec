// The command line: exit codes, configuration errors with their places, explain, tasks.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { AdminClient } from './lib/admin.mjs';
import { Child, run } from './lib/child.mjs';
import { rawClient } from './lib/client.mjs';
import { fastClockMissing, LeapingClock } from './lib/fast_clock.mjs';
import { BINARY, startGateway, temporaryFolder, withoutAdvice, workflow } from './lib/gateway.mjs';
import { freePort } from './lib/ports.mjs';
import { scene } from './lib/scene.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const GOOD = `schema: 1
sources:
  - id: up
    kind: mcp
    url: http://127.0.0.1:9/mcp
governance:
  defaults:
    action: forward
  rules:
    - match: "delete_*"
      action: approve
    - match: "drop_*"
      action: deny
      description: nobody drops
task_annotation_overrides:
  force_required: [special]
`;

function configured(t, text = GOOD, name = 'config.yaml') {
  const folder = temporaryFolder(t);
  const file = path.join(folder, name);
  fs.writeFileSync(file, text);
  const taskgate = (args, options = {}) => run(BINARY, args, { cwd: folder, ...options, env: { THOUGHTGATE_CONFIG: undefined, ...options.env } });
  return { folder, file, taskgate };
}

test('--version and --help, for the whole and for each command: exit 0, on stdout', async (t) => {
  const { taskgate } = configured(t);
  for (const args of [['--version'], ['serve', '--version'], ['check', '--version'], ['explain', '--version'], ['tasks', '--version'], ['tasks', 'list', '--version'], ['policy', '--version'], ['policy', 'parse', '--version'], ['call', '--version']]) {
    const version = await taskgate(args);
    assert.deepEqual([version.code, version.stderr], [0, ''], args.join(' '));
    assert.match(version.stdout, /^taskgate \d+\.\d+\.\d+\n$/, args.join(' '));
  }
  for (const args of [['--help'], ['serve', '--help'], ['check', '--help'], ['explain', '--help'], ['tasks', '--help']]) {
    const help = await taskgate(args);
    assert.deepEqual([help.code, help.stderr], [0, ''], args.join(' '));
    assert.match(help.stdout, /usage/i);
  }
  for (const command of ['serve', 'check', 'explain', 'tasks']) assert.match((await taskgate(['--help'])).stdout, new RegExp(command));
});

test('wrong usage is exit 2, on stderr', async (t) => {
  const { taskgate } = configured(t);
  for (const args of [[], ['sreve'], ['check', '--nope'], ['explain'], ['tasks'], ['tasks', 'frob'], ['tasks', 'approve'], ['--config']]) {
    const { code, stdout, stderr } = await taskgate(args);
    assert.equal(code, 2, args.join(' '));
    assert.equal(stdout, '', args.join(' '));
    assert.notEqual(stderr, '', args.join(' '));
  }
});

test('check of a good file: exit 0 and a table of the rules', async (t) => {
  const { file, taskgate } = configured(t);
  const { code, stdout, stderr } = await taskgate(['check', '--config', file]);
  assert.deepEqual([code, withoutAdvice(stderr)], [0, '']);
  assert.match(stderr, /config\.yaml:3:\d+: warning: sources\[0\]: a task outlives its owner's token, and a client with a new token does not find it; add auth, or write `identity: authorization`\n/);
  const owned = configured(t, GOOD.replace('kind: mcp', 'kind: mcp\n    identity: authorization'));
  assert.equal((await owned.taskgate(['check', '--config', owned.file])).stderr, '');
  assert.equal((await taskgate(['check', '--strict', '--config', file])).code, 0);
  assert.match(stdout, /delete_\*.*approve/);
  assert.match(stdout, /drop_\*.*deny/);
});

test('check --json is JSON', async (t) => {
  const { file, taskgate } = configured(t);
  const { code, stdout } = await taskgate(['check', '--json', '--config', file]);
  assert.equal(code, 0);
  assert.ok(JSON.stringify(JSON.parse(stdout)).includes('delete_*'));
});

test('every error at once, each FILE:LINE:COLUMN: key.path: what; hint', async (t) => {
  const { file, taskgate } = configured(t, `schema: 1
sources:
  - id: _up
    kind: mcp
    url: ftp://x
    colour: red
governance:
  defaults:
    action: forward
  rules:
    - match: "a***"
      action: aprove
    - match: "b"
      action: approve
      approval: nobody
      source: nowhere
`);
  for (const command of ['check', 'serve']) {
    const { code, stderr } = await taskgate([command, '--config', file]);
    assert.equal(code, 2, command);
    const lines = stderr.trimEnd().split('\n');
    for (const line of lines) assert.match(line, new RegExp(`^${file.replaceAll('.', '\\.')}:\\d+:\\d+: \\S+: .+`), line);
    const at = (place, what) => assert.ok(lines.some((line) => line.startsWith(`${file}:${place}:`) && what.test(line)), `${place} ${what}\n${stderr}`);
    at('3:9', /sources\[0\]\.id/);
    at('5:10', /sources\[0\]\.url/);
    at('6:5', /colour/);
    at('11:14', /governance\.rules\[0\]\.match/);
    at('12:15', /governance\.rules\[0\]\.action.*aprove.*did you mean "?approve/);
    at('15:17', /governance\.rules\[1\]\.approval.*nobody/);
    at('16:15', /governance\.rules\[1\]\.source.*nowhere/);
    assert.equal(lines.length, 7, stderr);
  }
});

const bad = {
  'an empty file': ['', null],
  'no YAML': ['schema: [1\n', null],
  'another schema': ['schema: 2\n' + GOOD.slice(10), /schema/],
  'no sources (V-010)': ['schema: 1\nsources: []\ngovernance:\n  defaults:\n    action: forward\n', /sources/],
  'a source id twice (V-001)': [GOOD.replace('governance:', '  - id: up\n    kind: mcp\n    url: http://h/\ngovernance:'), /duplicate|up/],
  'another kind (V-012)': [GOOD.replace('kind: mcp', 'kind: a2a'), /kind/],
  'a missing environment variable (V-014)': [GOOD.replace('http://127.0.0.1:9/mcp', '${TASKGATE_TEST_NOT_SET}'), /TASKGATE_TEST_NOT_SET/],
  'a workflow under 5 s (V-015)': [`${GOOD}approval:\n  default:\n    timeout: 4s\n`, /timeout.*5/],
  'approve without a name among several workflows (V-006b)': [`${GOOD}approval:\n  a: {timeout: 10m}\n  b: {timeout: 10m}\n`, /approval|workflow/],
  'an unknown top-level key': [`${GOOD}governence: {}\n`, /did you mean "?governance/],
  'action: policy without a policy_id (V-005)': [GOOD.replace('action: deny', 'action: policy'), /policy_id/],
  'a policy file that is not there (V-013)': [`${GOOD}cedar:\n  policies: [/nonexistent/x.cedar]\n`, /V-013/],
  'on_timeout: approve': [`${GOOD}approval:\n  default:\n    on_timeout: approve\n`, /on_timeout/],
  'a key twice': [GOOD.replace('governance:', 'schema: 1\ngovernance:'), /schema/],
};
for (const [what, [text, pattern]] of Object.entries(bad)) {
  test(`refused with exit 2 and a place: ${what}`, async (t) => {
    const { file, taskgate } = configured(t, text);
    const { code, stderr } = await taskgate(['check', '--config', file]);
    assert.equal(code, 2, stderr);
    assert.ok(stderr.startsWith(`${file}:`), stderr);
    if (text) assert.match(stderr.split('\n')[0], /:\d+:\d+: /);
    if (pattern) assert.match(stderr, pattern);
  });
}

test('a glob without quotes is no YAML: the place, the key, and the glob in quotes', async (t) => {
  for (const [glob, column] of [['*delete*', 14], ['*_all', 14], ['*', 14], ['*.secret', 14]]) {
    const { file, taskgate } = configured(t, GOOD.replace('"drop_*"', glob));
    const { code, stderr } = await taskgate(['check', '--config', file]);
    assert.equal(code, 2);
    const [line, ...more] = stderr.trimEnd().split('\n');
    assert.deepEqual(more, []);
    assert.ok(line.startsWith(`${file}:12:${column}: governance.rules[1].match: `), line);
    assert.ok(line.includes(`put a glob in quotes: "${glob}"`), line);
  }
});

test('a misspelt key hides none of the mistakes inside', async (t) => {
  const { file, taskgate } = configured(t, GOOD.replace('governance:', 'goverance:').replace('action: deny', 'action: dney'));
  const { code, stderr } = await taskgate(['check', '--config', file]);
  assert.equal(code, 2);
  assert.deepEqual(stderr.trimEnd().split('\n'), [
    `${file}:6:1: goverance: unknown key; did you mean "governance"?`,
    `${file}:13:15: governance.rules[1].action: "dney" is not an action; did you mean "deny"?`,
  ]);
});

const warned = {
  'a rule behind one for every tool': [GOOD.replace('    - match: "drop_*"', '    - {match: "*", action: forward}\n    - match: "drop_*"'), /:13:14: warning: governance\.rules\[2\]\.match: the rule is never asked: governance\.rules\[1\] \("\*", line 12\) comes first/],
  'a rule behind the same glob': [GOOD.replace('"drop_*"', '"delete_*"'), /governance\.rules\[1\]\.match: the rule is never asked: governance\.rules\[0\] \("delete_\*", line 10\)/],
  'a token of one letter': [`${GOOD}admin: {tokens: [{name: a, token_env: ONE_LETTER, roles: [approver]}]}\n`, /:17:39: warning: admin\.tokens\[0\]\.token_env: the token in ONE_LETTER is so short that it can be guessed/],
  'nobody who may approve': [`${GOOD}admin: {tokens: [{name: a, token_env: LONG, roles: [viewer]}]}\n`, /:17:17: warning: admin\.tokens: nobody may approve, so every call that needs a human expires/],
};
for (const [what, [text, pattern]] of Object.entries(warned)) {
  test(`check warns of ${what}, and check --strict refuses it`, async (t) => {
    const { file, taskgate } = configured(t, text);
    const env = { ONE_LETTER: 'x', LONG: 'a-token-of-some-length', THOUGHTGATE_ADMIN_TOKEN: undefined };
    const { code, stderr } = await taskgate(['check', '--config', file], { env });
    assert.equal(code, 0, stderr);
    assert.match(stderr, pattern);
    assert.equal(withoutAdvice(stderr).trimEnd().split('\n').length, 1, stderr);
    assert.equal((await taskgate(['check', '--strict', '--config', file], { env })).code, 2);
  });
}

test('rules that are asked are not warned of: some callers, some servers, another order', async (t) => {
  const rules = `    - {match: "*", action: deny, source: two}
    - {match: "*", action: deny, principals: {groups: [x]}}
    - {match: "drop_*", action: forward, source: up}
    - match: "drop_*"`;
  const { file, taskgate } = configured(t, GOOD.replace('    - match: "drop_*"', rules).replace('governance:', "  - {id: two, kind: mcp, url: 'http://127.0.0.1:9/', auth: {issuer: 'https://i.example', audience: a}}\ngovernance:"));
  const { code, stderr } = await taskgate(['check', '--config', file]);
  assert.deepEqual([code, withoutAdvice(stderr)], [0, '']);
});

test('policy test needs no token, secret or header of the environment', async (t) => {
  const { file, folder, taskgate } = configured(t, `${GOOD.replace('url: http', 'headers: {X-Key: {env: X_KEY}}\n    url: http')}admin: {tokens: [{name: a, token_env: TOKEN_A, roles: [approver]}]}
notify: [{url: 'http://127.0.0.1:9/', secret_env: HOOK_SECRET}]
`);
  fs.writeFileSync(path.join(folder, 'config.test.yaml'), 'cases:\n  - {name: x, request: {tool: drop_x}, expect: {decision: deny}}\n');
  const { code, stdout, stderr } = await taskgate(['policy', 'test', path.join(folder, 'config.test.yaml')]);
  assert.deepEqual([code, stderr], [0, ''], stdout);
  const checked = await taskgate(['check', '--config', file]);
  assert.equal(checked.code, 2);
  for (const name of ['X_KEY', 'TOKEN_A', 'HOOK_SECRET']) assert.match(checked.stderr, new RegExp(`V-014 the environment variable ${name} is not set`));
});

test('THOUGHTGATE_STORE_PATH wins over store.path', async (t) => {
  const { file, folder, taskgate } = configured(t, `${GOOD}store: {path: /nowhere/taskgate.db}\n`);
  const store = path.join(folder, 'here.db');
  const { code, stderr } = await taskgate(['backup', path.join(folder, 'copy.db'), '--config', file], { env: { THOUGHTGATE_STORE_PATH: store } });
  assert.equal(code, 1);
  assert.ok(stderr.includes(store), stderr);
});

test('accepted files: a ThoughtGate file with slack (warned of) and telemetry, durations, substitution with defaults', async (t) => {
  const { file, taskgate } = configured(t, `schema: 1
sources:
  - id: up
    kind: mcp
    url: \${UPSTREAM:-http://127.0.0.1:9/mcp}
    prefix: up
    description: \${NAME}
governance:
  defaults:
    action: deny
  rules:
    - {match: "a", action: approve, approval: slow}
    - {match: "b", action: approve, approval: iso}
approval:
  slow:
    destination: {type: slack, channel: "#ops", token_env: X, mention: ["@a"]}
    timeout: 1h 30m
    on_timeout: deny
    redact_fields: [a.b]
  iso:
    timeout: PT10M
telemetry:
  enabled: false
`);
  const { code, stdout, stderr } = await taskgate(['check', '--config', file], { env: { NAME: 'x' } });
  assert.equal(code, 0, stderr);
  assert.match(stdout + stderr, /slack/i);
});

test('no file found: exit 2 with the paths searched', async (t) => {
  const folder = temporaryFolder(t);
  const { code, stderr } = await run(BINARY, ['check'], { cwd: folder, env: { THOUGHTGATE_CONFIG: undefined } });
  assert.equal(code, 2);
  assert.match(stderr, /\/etc\/thoughtgate\/config\.yaml/);
  assert.match(stderr, /config\.yaml/);
  assert.equal((await run(BINARY, ['check', '--config', '/no/such/file.yaml'], { cwd: folder })).code, 2);
});

test('the search path: THOUGHTGATE_CONFIG, then ./config.yaml', async (t) => {
  const { folder, file, taskgate } = configured(t);
  assert.equal((await taskgate(['check'])).code, 0);
  fs.writeFileSync(path.join(folder, 'broken.yaml'), 'schema: 2\n');
  const { code, stderr } = await taskgate(['check'], { env: { THOUGHTGATE_CONFIG: path.join(folder, 'broken.yaml') } });
  assert.equal(code, 2);
  assert.match(stderr, /broken\.yaml:1:/);
  assert.equal((await taskgate(['check', '--config', file], { env: { THOUGHTGATE_CONFIG: '/no/such' } })).code, 0);
});

for (const [name, value] of [['THOUGHTGATE_DEV_MODE', 'true'], ['THOUGHTGATE_PROFILE', 'development'], ['THOUGHTGATE_APPROVAL_ADAPTER', 'mock'], ['THOUGHTGATE_ON_TIMEOUT', 'approve']]) {
  test(`nothing in the environment switches approval off: ${name}=${value} is exit 2 at serve`, async (t) => {
    const { file, taskgate } = configured(t);
    const { code, stderr } = await taskgate(['serve', '--config', file], { env: { [name]: value, THOUGHTGATE_OUTBOUND_PORT: String(await freePort()), THOUGHTGATE_ADMIN_PORT: String(await freePort()) } });
    assert.equal(code, 2, stderr);
    assert.match(stderr, new RegExp(name));
  });
}

test('THOUGHTGATE_UPSTREAM with several sources is exit 2', async (t) => {
  const { file, taskgate } = configured(t, GOOD.replace('governance:', '  - id: two\n    kind: mcp\n    url: http://127.0.0.1:9/\ngovernance:'));
  assert.equal((await taskgate(['check', '--config', file])).code, 0);
  assert.equal((await taskgate(['serve', '--config', file], { env: { THOUGHTGATE_UPSTREAM: 'http://127.0.0.1:9/' } })).code, 2);
});

test('explain --json: rule, action, workflow, both annotations, reason', async (t) => {
  const { file, taskgate } = configured(t);
  const explain = async (tool) => {
    const { code, stdout, stderr } = await taskgate(['explain', tool, '--json', '--config', file]);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const approve = await explain('delete_user');
  assert.deepEqual([approve.tool, approve.source, approve.action, approve.workflow], ['delete_user', 'up', 'approve', 'default']);
  assert.deepEqual(approve.annotation, { upstream_tasks: 'required', no_upstream_tasks: 'required', plain: 'optional' });
  assert.match(JSON.stringify(approve.rule), /delete_\*/);
  assert.equal(typeof approve.reason, 'string');
  const deny = await explain('drop_table');
  assert.deepEqual([deny.action, deny.annotation], ['deny', { upstream_tasks: 'forbidden', no_upstream_tasks: 'forbidden', plain: 'forbidden' }]);
  const forward = await explain('read');
  assert.deepEqual([forward.action, forward.annotation], ['forward', { upstream_tasks: 'optional', no_upstream_tasks: 'forbidden', plain: 'forbidden' }]);
  assert.ok(forward.rule === null || forward.rule === undefined || /default/.test(JSON.stringify(forward.rule)));
  assert.deepEqual((await explain('special')).annotation, { upstream_tasks: 'required', no_upstream_tasks: 'required', plain: 'optional' });
});

test('explain for people names the rule and the annotations; an unknown source is refused', async (t) => {
  const { file, taskgate } = configured(t);
  const { code, stdout } = await taskgate(['explain', 'delete_user', '--config', file]);
  assert.equal(code, 0);
  for (const word of ['delete_*', 'approve', 'required', 'default']) assert.ok(stdout.includes(word), stdout);
  assert.match(stdout, /^Bridge {5}legacy clients, where the server speaks modern alone$/m);
  assert.equal((await taskgate(['explain', 'x', '--source', 'up', '--config', file])).code, 0);
  assert.ok([2, 4].includes((await taskgate(['explain', 'x', '--source', 'nope', '--config', file])).code));
});

test('tasks list, show, approve, reject, cancel against the admin endpoint', async (t) => {
  const { gateway, admin, connect } = await scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] } });
  const client = await connect();
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push((await client.createTask('delete_user', { i, evil: '\u001b[31m\u202eevil' })).taskId);
  const list = await gateway.cli(['tasks', 'list', '--json']);
  assert.equal(list.code, 0, list.stderr);
  assert.deepEqual(JSON.parse(list.stdout).tasks.map((x) => x.id), [...ids].reverse());
  const show = await gateway.cli(['tasks', 'show', ids[0], '--json']);
  assert.deepEqual([JSON.parse(show.stdout).id, JSON.parse(show.stdout).arguments.i], [ids[0], 0]);
  const table = await gateway.cli(['tasks', 'list']);
  for (const id of ids) assert.ok(table.stdout.includes(id), table.stdout);
  for (const shown of [table, await gateway.cli(['tasks', 'show', ids[0]])]) assert.doesNotMatch(shown.stdout, /\u001b\[31m|\u202e/, 'nothing from an agent reaches a terminal unescaped');
  assert.equal((await gateway.cli(['tasks', 'approve', ids[0], '--reason', 'fine by me'])).code, 0);
  assert.equal((await admin.inState(ids[0], 'completed')).reason, 'fine by me');
  assert.equal((await gateway.cli(['tasks', 'reject', ids[1], '--reason', 'no'])).code, 0);
  assert.equal((await admin.task(ids[1])).state, 'rejected');
  const cancelled = await gateway.cli(['tasks', 'cancel', ids[2], '--json']);
  assert.deepEqual([cancelled.code, JSON.parse(cancelled.stdout).state], [0, 'cancelled']);
});

test('the admin endpoint of this machine is asked past every proxy of the environment', async (t) => {
  const { gateway } = await scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m') });
  const asked = [];
  const proxy = http.createServer((request, response) => (asked.push(request.url), response.writeHead(502).end())).listen(0, '127.0.0.1');
  t.after(() => proxy.close());
  await once(proxy, 'listening');
  const env = { http_proxy: `http://127.0.0.1:${proxy.address().port}`, no_proxy: 'example.org' };
  for (const host of ['127.0.0.1', 'localhost']) {
    const list = await gateway.cli(['tasks', 'list', '--json'], { env: { ...env, THOUGHTGATE_ADMIN_URL: `http://${host}:${new URL(gateway.adminUrl).port}` } });
    assert.deepEqual([list.code, list.stderr], [0, ''], host);
  }
  const elsewhere = (...args) => gateway.cli(['tasks', 'list', ...args], { env: { ...env, THOUGHTGATE_ADMIN_URL: 'http://gateway.invalid:7469' } });
  const refused = await elsewhere();
  assert.deepEqual([refused.code, refused.stderr], [2, 'taskgate: THOUGHTGATE_ADMIN_URL: http://gateway.invalid:7469: plain http is for this machine alone; the URL needs https, or --insecure\n']);
  assert.equal((await elsewhere('--insecure')).code, 3, 'nobody is there');
  assert.deepEqual(asked, [], 'the token goes to no proxy over plain http');
});

test('exit codes of tasks: 3 unreachable or refused, 4 not found, 5 conflict', async (t) => {
  const { gateway, admin, connect } = await scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] } });
  const { taskId } = await (await connect()).createTask('delete_user');
  const unknown = 'tg_00000000-0000-4000-8000-000000000000';
  assert.equal((await gateway.cli(['tasks', 'show', unknown])).code, 4);
  assert.equal((await gateway.cli(['tasks', 'approve', unknown])).code, 4);
  await admin.reject(taskId);
  const conflict = await gateway.cli(['tasks', 'approve', taskId]);
  assert.equal(conflict.code, 5);
  assert.match(conflict.stderr, /rejected/);
  assert.equal((await gateway.cli(['tasks', 'list'], { env: { THOUGHTGATE_ADMIN_TOKEN: 'wrong' } })).code, 3);
  const dead = await gateway.cli(['tasks', 'list'], { env: { THOUGHTGATE_ADMIN_URL: `http://127.0.0.1:${await freePort()}` } });
  assert.equal(dead.code, 3);
  assert.notEqual(dead.stderr, '');
});

test('a server that cannot be reached is said at once, and once more when it is reached', async (t) => {
  const upstream = await startUpstream(t, { tools: [tool('get_time')] });
  await upstream.stop();
  const yaml = 'schema: 1\nsources: [{id: late, kind: mcp, url: "${THOUGHTGATE_UPSTREAM}"}]\ngovernance: {defaults: {action: forward}}\n';
  const gateway = await startGateway(t, { yaml, args: ['--upstream', upstream.url], awaitUpstream: false });
  const said = () => gateway.child.stderr.split('\n').filter((line) => /"The server (cannot be|is) reached"/.test(line)).map((line) => JSON.parse(line));
  await gateway.child.ready(() => said().length > 0, 'it to say that the server cannot be reached');
  assert.deepEqual(said().map(({ level, msg, source }) => [level, msg, source]), [['warn', 'The server cannot be reached', 'late']]);
  await gateway.child.ready(() => /"Upstream cannot be asked for its tools yet","source":"late","status":0,"detail":"[^"]+"/.test(gateway.child.stderr), 'it to say why');
  await pause(3000);
  assert.equal(said().length, 1, 'a server that stays away is no news');
  await upstream.listen();
  await gateway.child.ready(() => said().length > 1, 'it to say that the server is reached');
  assert.deepEqual(said().slice(1).map(({ level, msg, source }) => [level, msg, source]), [['info', 'The server is reached', 'late']]);
});

test('a server that comes and goes is said to be away once a minute', { skip: fastClockMissing }, async (t) => {
  const clock = new LeapingClock(temporaryFolder(t));
  const { connect, gateway, upstream } = await scene(t, { env: clock.environment, upstream: { tools: [tool('get_time')] } });
  const client = await connect({ keepAlive: false });
  const said = () => gateway.logs.filter(({ msg }) => /^The server (cannot be|is) reached$/.test(msg)).map(({ msg }) => msg);
  const away = async () => (await upstream.stop(), client.send('ping'));
  const back = async () => (await upstream.listen(), client.result('ping'));
  const pair = ['The server cannot be reached', 'The server is reached'];
  for (let i = 0; i < 5; i++) {
    await away();
    await back();
  }
  assert.deepEqual(said(), pair);
  await away();
  clock.leap(61);
  await client.send('ping');
  assert.deepEqual(said(), [...pair, pair[0]], 'still away, as the log says now');
  await back();
  assert.deepEqual(said(), [...pair, ...pair]);
});

test('serve --upstream needs nothing else: a default configuration, state of the user, the page’s address; a server that comes late is noticed', { skip: fs.existsSync('/etc/thoughtgate/config.yaml') && '/etc/thoughtgate/config.yaml is there' }, async (t) => {
  const folder = temporaryFolder(t), state = path.join(folder, 'state/taskgate');
  const [port, adminPort] = [await freePort(), await freePort()];
  const upstream = await startUpstream(t, { tools: [tool('get_time'), tool('delete_user')], sessions: false });
  await upstream.stop();
  const env = { THOUGHTGATE_CONFIG: undefined, THOUGHTGATE_ADMIN_URL: undefined, THOUGHTGATE_ADMIN_TOKEN: undefined, TASKGATE_TOKEN: undefined, XDG_STATE_HOME: path.join(folder, 'state'), THOUGHTGATE_OUTBOUND_PORT: String(port), THOUGHTGATE_ADMIN_PORT: String(adminPort) };
  const taskgate = (...words) => run(BINARY, words, { cwd: folder, env });
  const start = () => new Child(BINARY, ['serve', '--upstream', upstream.url], { cwd: folder, env, name: 'taskgate' });

  const early = start();
  t.after(() => early.stop());
  await early.ready(() => /cannot be asked for its tools yet/.test(early.stderr), 'it to say that the server is not there');
  await upstream.listen();
  await early.ready(() => /Upstream capabilities/.test(early.stderr), 'it to say that the server is there now');
  assert.match(early.stdout, new RegExp(`http://127\\.0\\.0\\.1:${adminPort}/\\n`));
  await early.stop();

  fs.appendFileSync(path.join(state, 'config.yaml'), '# mine\n');
  const gateway = start();
  t.after(() => gateway.stop());
  await gateway.ready(() => /Upstream capabilities/.test(gateway.stderr), 'it to have the tools');
  assert.match(fs.readFileSync(path.join(state, 'config.yaml'), 'utf8'), /# mine\n$/, 'a changed file stays');
  assert.deepEqual(fs.readdirSync(state).filter((name) => !/-(wal|shm)$/.test(name)).sort(), ['admin-token', 'config.yaml', 'state.key', 'taskgate.db']);
  for (const name of ['config.yaml', 'taskgate.db']) assert.equal(fs.statSync(path.join(state, name)).mode & 0o777, 0o600);
  const client = rawClient(t, `http://127.0.0.1:${port}/mcp`);
  await client.connect();
  assert.ok((await client.result('tools/call', { name: 'get_time' })).content);
  const { taskId } = await client.createTask('delete_user');
  const page = (await taskgate('page')).stdout.trim();
  const [, token] = page.split('#token=');
  assert.ok(page.startsWith(`http://127.0.0.1:${adminPort}/#token=`) && !gateway.stdout.includes(token), 'the token is for terminals alone');
  assert.equal((await new AdminClient(`http://127.0.0.1:${adminPort}`, token).task(taskId)).state, 'pending');
  assert.equal((await taskgate('tasks', 'reject', taskId, '--yes')).code, 0);
});
