// `action: policy`: Cedar policies decide by the content of a call; the owner of the task; reload and drift.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { errorOf } from './lib/client.mjs';
import { sample } from './lib/admin.mjs';
import { temporaryFolder, workflow } from './lib/gateway.mjs';
import { generator } from './lib/random.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const action = (name) => `action == ThoughtGate::Action::"${name}"`;
const permit = (name, when = 'true', annotations = '') => `${annotations} permit(principal, ${action(name)}, resource) when { ${when} };\n`;

/** Below 100 goes through, below 10,000 is asked about, more is refused. */
const PAYMENTS = permit('Forward', 'resource.arguments.amount < 100') + permit('Approve', 'resource.arguments.amount < 10000', '@thoughtgate_approval("finance")');

const TOOLS = [tool('pay'), tool('pay_optional', { support: 'optional' }), tool('pay_required', { support: 'required' }), tool('pay_forbidden', { support: 'forbidden' })];

/** The gateway with `policies` in a file that `write` replaces. */
async function stage(t, policies, { config, admin, capable = true, tools = TOOLS, ...more } = {}) {
  const folder = temporaryFolder(t);
  const file = path.join(folder, 'policies.cedar');
  const write = (text) => {
    fs.writeFileSync(`${file}.new`, text);
    fs.renameSync(`${file}.new`, file);
  };
  write(policies);
  const stage = await scene(t, {
    rules: [{ match: 'pay*', action: 'policy', policy_id: 'payments' }],
    approval: { ...workflow('10m'), finance: { destination: { type: 'admin' }, timeout: '1h' } },
    upstream: { tools, capabilities: capable ? { tools: {}, tasks: TASKS } : { tools: {} } },
    config: { cedar: { policies: [file] }, ...(admin ? { admin } : {}), ...config },
    ...more,
  });
  return { ...stage, file, write };
}

const call = (client, name, args, task = {}) => client.call('tools/call', { name, arguments: args, ...(task === null ? {} : { task }) });

test('every tool of a policy rule is announced as required', async (t) => {
  const { connect, gateway } = await stage(t, PAYMENTS);
  const { tools } = await (await connect()).result('tools/list');
  assert.deepEqual(tools.map((x) => x.execution.taskSupport), TOOLS.map(() => 'required'));
  await gateway.logged(/^Tool annotation: pay -> required \(yaml_action=policy\)$/);
});

// ---- the matrix for calls (behaviour 5.4) ----

test('policy -> Forward with a task: upstream owns it when the tool is optional or required there', async (t) => {
  const { upstream, admin, connect } = await stage(t, PAYMENTS);
  const client = await connect();
  for (const name of ['pay_optional', 'pay_required']) {
    const { result } = await call(client, name, { amount: 99 });
    assert.match(result.task.taskId, /^up-/, name);
    assert.deepEqual(upstream.calls.at(-1).rpc.params.task, {});
  }
  assert.deepEqual((await admin.list()).tasks, []);
});

test('policy -> Forward with a task for a tool that upstream forbids tasks: accelerated', async (t) => {
  const { upstream, admin, connect } = await stage(t, PAYMENTS);
  const client = await connect();
  for (const name of ['pay', 'pay_forbidden']) {
    const { result } = await call(client, name, { amount: 99 });
    assert.match(result.taskId, /^tg_/, name);
    assert.equal(result.status, 'working');
    assert.deepEqual((await client.result('tasks/result', { taskId: result.taskId })).structuredContent, { tool: name, arguments: { amount: 99 } });
    assert.equal(upstream.calls.at(-1).rpc.params.task, undefined);
  }
  assert.ok((await admin.list()).tasks.every((task) => task.state === 'completed' && !task.workflow));
});

test('policy -> Approve: the gateway owns it, whatever upstream says, through the workflow that the permit names', async (t) => {
  const { upstream, admin, connect } = await stage(t, PAYMENTS);
  const client = await connect();
  for (const { name } of TOOLS.filter((x) => x.name !== 'pay_required')) {
    const { result } = await call(client, name, { amount: 100 });
    assert.match(result.taskId, /^tg_/, name);
    assert.equal(result.status, 'input_required');
    assert.equal((await admin.task(result.taskId)).workflow, 'finance');
    assert.equal(upstream.calls.filter((x) => x.rpc.params.name === name).length, 0);
    await admin.approve(result.taskId);
    assert.deepEqual((await client.result('tasks/result', { taskId: result.taskId })).structuredContent.arguments, { amount: 100 });
  }
});

test('policy -> Reject is -32003, and says nothing of the policy', async (t) => {
  const { upstream, admin, gateway, connect } = await stage(t, `@id("payments") ${PAYMENTS} @id("payments") forbid(principal, action, resource) when { resource.arguments.amount > 9999 };`);
  const client = await connect();
  const answer = await client.send('tools/call', { name: 'pay', arguments: { amount: 10000, note: 'hush-hush' }, task: {} });
  const { code, message, data } = answer.message.error;
  assert.deepEqual([answer.status, code, message, data.error_type, data.gate, data.tool], [200, -32003, 'Policy denied', 'policy_denied', 'policy', 'pay']);
  assert.doesNotMatch(answer.text, /payments|forbid|cedar/);
  assert.equal(upstream.calls.length, 0);
  assert.deepEqual((await admin.list()).tasks, []);
  const line = await gateway.logged(/^Policies rejected a call$/);
  assert.deepEqual([line.tool, line.policy_id], ['pay', 'payments']);
  assert.match(line.policies, /forbid payments/);
  assert.ok(gateway.logs.every((entry) => !JSON.stringify(entry).includes('hush-hush')));
});

test('policy without a task is -32009, and no policy is asked', async (t) => {
  const { upstream, admin, connect } = await stage(t, PAYMENTS);
  const client = await connect();
  for (const amount of [1, 100, 10000]) assert.equal((await call(client, 'pay', { amount }, null)).error.code, -32009);
  assert.equal(upstream.calls.length, 0);
  assert.equal(sample(await admin.metrics(), 'thoughtgate_cedar_evaluations_total'), undefined);
});

test('tools/call permitted, as older policies have it, is an approval by the workflow of the rule', async (t) => {
  const { admin, connect } = await stage(t, permit('tools/call', 'resource.server == "up" && resource.name like "pay*"'), { rules: [{ match: 'pay*', action: 'policy', policy_id: 'payments', approval: 'finance' }] });
  const { result } = await call(await connect(), 'pay', {});
  assert.equal((await admin.task(result.taskId)).workflow, 'finance');
});

test('a client that knows no tasks gets what comes of it', async (t) => {
  const { upstream, admin, connect } = await stage(t, PAYMENTS, { capable: false, tools: [tool('pay')] });
  const client = await connect({ protocol: '2025-06-18', capabilities: {} });
  assert.deepEqual((await call(client, 'pay', { amount: 5 }, null)).result.structuredContent.arguments, { amount: 5 });
  assert.deepEqual((await admin.list()).tasks, []);
  assert.equal(errorOf(await call(client, 'pay', { amount: 10000 }, null)).code, -32003);
  const waiting = call(client, 'pay', { amount: 500 }, null);
  await admin.approve((await admin.pending()).id);
  assert.deepEqual((await waiting).result.structuredContent.arguments, { amount: 500 });
  assert.equal(upstream.calls.length, 2);
});

test('a prompt or resource under a policy rule is -32014', async (t) => {
  const { connect } = await stage(t, 'permit(principal, action, resource);', { rules: [{ match: '*', action: 'policy', policy_id: 'p' }] });
  const client = await connect();
  for (const [method, params] of [['prompts/get', { name: 'p' }], ['resources/read', { uri: 'file:///x' }]]) assert.equal((await client.error(method, params)).code, -32014, method);
});

test('without any policies every call is rejected, and the log says so at the start', async (t) => {
  const { gateway, connect } = await stage(t, '', { config: { cedar: undefined } });
  assert.equal((await call(await connect(), 'pay', { amount: 1 })).error.code, -32003);
  const { stderr } = await gateway.cli(['check', '--config', gateway.configPath]);
  assert.match(stderr, /warning: governance\.rules\[0\]\.action: there are no Cedar policies/);
});

// ---- the facts for policies ----

test('policies see the caller, the annotations of the tool, and the time', async (t) => {
  const policies = [
    ['auth', 'principal in ThoughtGate::Role::"authorization" && principal.client_name == "raw-client" && principal.client_version == "1.0.0"'],
    ['session', 'principal.identity == "session" && principal.name like "session:*"'],
    ['safe', 'context.annotations has readOnlyHint && context.annotations.readOnlyHint && !(context.annotations has destructiveHint)'],
    ['context', 'context.policy_id == "payments" && context.source_id == "up" && context.time.datetime > datetime("2020-01-01") && context.time.hour < 24 && context.time.day_of_week < 7'],
  ];
  const { connect } = await stage(t, policies.map(([name, when]) => permit('Forward', `resource.name == "pay_${name}" && ${when}`)).join(''), {
    capable: false,
    tools: [...policies.map(([name]) => tool(`pay_${name}`, name === 'safe' ? { annotations: { readOnlyHint: true, destructiveHint: 'no' } } : {})), tool('pay_unsafe', { annotations: { readOnlyHint: false } })],
  });
  const [bearer, session] = [await connect({ token: 'x' }), await connect()];
  const outcome = async (client, name) => (await call(client, `pay_${name}`, {})).error?.code ?? 'forwarded';
  assert.deepEqual([await outcome(bearer, 'auth'), await outcome(session, 'auth')], ['forwarded', -32003]);
  assert.deepEqual([await outcome(bearer, 'session'), await outcome(session, 'session')], [-32003, 'forwarded']);
  assert.deepEqual([await outcome(session, 'safe'), await outcome(session, 'unsafe'), await outcome(session, 'context')], ['forwarded', -32003, 'forwarded']);
});

test('a call from the admin port is put to the same policies, with its token as the principal', async (t) => {
  const CI_TOKEN = 'policy-control-plane-token-0001';
  const { upstream, admin } = await stage(t, permit('Forward', 'principal == ThoughtGate::App::"admin:ci" && resource.arguments.amount < 100') + permit('Approve', 'principal in ThoughtGate::Role::"admin" && resource.arguments.amount < 10000', '@thoughtgate_approval("finance")'), {
    capable: false,
    env: { CI_TOKEN },
    source: { headers: { 'x-key': { env: 'CI_TOKEN' } } },
    admin: { tokens: [{ name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] }] },
  });
  const ask = (amount) => admin.as(CI_TOKEN).post('/api/v1/calls', { tool: 'pay', arguments: { amount } });
  const small = (await ask(99)).json;
  assert.equal(small.workflow, null);
  await admin.inState(small.id, 'completed');
  const large = (await ask(100)).json;
  assert.deepEqual([large.state, large.workflow], ['pending', 'finance']);
  await admin.approve(large.id);
  await admin.inState(large.id, 'completed');
  const refused = await ask(10000);
  assert.deepEqual([refused.status, refused.json.error.details], [403, -32003]);
  assert.equal(upstream.calls.length, 2);
});

test('policy_id chooses among policies with an @id', async (t) => {
  const { connect } = await stage(t, `@id("reads") ${permit('Forward')} @id("payments") ${permit('Approve')}`, {
    rules: [
      { match: 'pay_a', action: 'policy', policy_id: 'reads' },
      { match: 'pay*', action: 'policy', policy_id: 'payments' },
    ],
    tools: [tool('pay_a'), tool('pay_b')],
    capable: false,
  });
  const client = await connect();
  assert.equal((await call(client, 'pay_a', {})).result.status, 'working');
  assert.equal((await call(client, 'pay_b', {})).result.status, 'input_required');
});

// ---- attempts of an agent ----

test('arguments are plain values: no entity, no extension value, no way around a forbid', async (t) => {
  const { upstream, connect } = await stage(
    t,
    `permit(principal, action, resource) when { resource.arguments.who in ThoughtGate::Role::"admin" };
     permit(principal, action, resource) when { resource.arguments.who == ThoughtGate::Role::"admin" };
     permit(principal, action, resource) when { resource.arguments.who.isLoopback() };
     permit(principal, action, resource) when { resource.arguments.who.lessThan(decimal("2.0")) };
     permit(principal, ${action('Forward')}, resource) when { resource.arguments has free };
     forbid(principal, action, resource) when { resource.arguments.amount > 100 };`,
    { capable: false },
  );
  const client = await connect();
  const code = async (args) => (await call(client, 'pay', args)).error?.code ?? 'forwarded';
  for (const who of [
    { __entity: { type: 'ThoughtGate::Role', id: 'admin' } },
    { type: 'ThoughtGate::Role', id: 'admin' },
    { __extn: { fn: 'ip', arg: '127.0.0.1' } },
    { __extn: { fn: 'decimal', arg: '1.0' } },
    { fn: 'decimal', arg: '1.0' },
    { __expr: 'ThoughtGate::Role::"admin"' },
    'ThoughtGate::Role::"admin"',
    null,
  ]) assert.equal(await code({ who, amount: 1 }), -32003, JSON.stringify(who));
  assert.equal(await code({ free: 1, amount: 100 }), 'forwarded');
  for (const amount of [101, 1e300, 100.5, '1', null, [1], { amount: 1 }, { __extn: { fn: 'decimal', arg: '1.0' } }]) assert.equal(await code({ free: 1, amount }), -32003, JSON.stringify(amount));
  assert.equal(await code({ free: 1 }), -32003, 'what the forbid asks about is left out');
  const raw = (text) => client.call(null, null, { id: 77, body: `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"pay","arguments":${text},"task":{}}}` });
  for (const text of ['{"free":1,"amount":1.0}', '{"free":1,"amount":18446744073709551617}', '{"free":1,"amount":1e0}', '{"free":1,"amount":-9223372036854775809}']) assert.equal((await raw(text)).error.code, -32003, text);
  assert.equal((await raw('{"free":1,"\\u0061mount":101}')).error.code, -32003, 'an escaped key is the same key');
  assert.notEqual((await raw('{"free":1,"amount":101,"\\u0061mount":1}'))?.error, undefined, 'and stands once');
  await until(() => upstream.calls.length === 1, 'the one call that was permitted');
});

test('nesting is bounded, and a huge argument costs little', async (t) => {
  const { connect } = await stage(t, permit('Forward', 'resource.arguments.list.contains(99999)') + permit('Forward', 'resource.arguments has deep'), { capable: false });
  const client = await connect();
  const deep = (depth) => JSON.parse('['.repeat(depth) + ']'.repeat(depth));
  assert.ok((await call(client, 'pay', { deep: deep(63) })).result);
  assert.equal((await call(client, 'pay', { deep: deep(64) })).error.code, -32003);
  assert.equal((await call(client, 'pay', { deep: deep(110) })).error.code, -32003);
  assert.ok((await call(client, 'pay', { list: Array.from({ length: 100_000 }, (_, i) => i) })).result);
});

// ---- errors ----

const FAILING = `${permit('Forward')} @id("no-large") forbid(principal, action, resource) when { resource.arguments.amount > 100 };`;

test('a forbid that cannot be evaluated denies, with a metric and a log line that names it, never the arguments', async (t) => {
  const { admin, gateway, connect } = await stage(t, FAILING, { rules: [{ match: 'pay*', action: 'policy', policy_id: 'no-large' }] });
  assert.equal((await call(await connect(), 'pay', { amount: 'hush-hush' })).error.code, -32003);
  const line = await gateway.logged(/^A policy could not be evaluated$/);
  assert.deepEqual([line.level, line.policy, line.effect, line.tool, line.line], ['warn', 'no-large', 'forbid', 'pay', 2]);
  assert.match(line.error, /expected .*long.*found string/);
  assert.ok(gateway.logs.every((entry) => !JSON.stringify(entry).includes('hush-hush')));
  const samples = await admin.metrics();
  assert.ok(sample(samples, 'thoughtgate_cedar_policy_errors_total', { policy: 'no-large', effect: 'forbid' }) >= 1);
  assert.equal(sample(samples, 'thoughtgate_cedar_evaluations_total', { decision: 'reject', policy_id: 'no-large' }), 1);
  assert.equal(sample(samples, 'thoughtgate_cedar_evaluation_duration_ms_count', { decision: 'reject' }), 1);
});

for (const config of [{ on_policy_error: 'skip' }, { skip: true }]) {
  test(`on_policy_error: skip gives the language's own meaning (${JSON.stringify(config)})`, async (t) => {
    const { gateway, file, connect } = await stage(t, FAILING, { capable: false });
    gateway.writeConfig({ config: config.skip ? { cedar: { policies: [file], on_policy_error: 'skip' } } : { cedar: { policies: [file] }, ...config } });
    await gateway.restart();
    assert.ok((await call(await connect(), 'pay', { amount: 'x' })).result);
  });
}

// ---- loading ----

test('THOUGHTGATE_POLICY_FILE wins over THOUGHTGATE_POLICIES, which wins over the files of the configuration', async (t) => {
  const folder = temporaryFolder(t);
  const named = path.join(folder, 'named.cedar');
  fs.writeFileSync(named, permit('Approve'));
  const { gateway, connect } = await stage(t, 'forbid(principal, action, resource);', { capable: false });
  const outcome = async () => (await call(await connect(), 'pay', {})).result?.status ?? 'rejected';
  assert.equal(await outcome(), 'rejected');
  gateway.options.env = { THOUGHTGATE_POLICIES: permit('Forward') };
  await gateway.restart();
  assert.equal(await outcome(), 'working');
  gateway.options.env.THOUGHTGATE_POLICY_FILE = named;
  await gateway.restart();
  assert.equal(await outcome(), 'input_required');
});

test('an error in a policy is an error of the configuration: every one with its place, exit 2', async (t) => {
  const { gateway, write, file } = await stage(t, PAYMENTS);
  write('permit(principal, action, resource)\nwhen { resource.name = "x" };\n\nforbid(principl, action, resource);\n');
  for (const command of ['check', 'serve']) {
    const { code, stderr } = await gateway.cli([command, '--config', gateway.configPath]);
    assert.equal(code, 2, command);
    const lines = stderr.trimEnd().split('\n');
    assert.ok(lines.some((line) => line.startsWith(`${file}:2:22: `)), stderr);
    assert.ok(lines.some((line) => line.startsWith(`${file}:4:8: `)), stderr);
  }
  write('@thoughtgate_approval("finnance")\npermit(principal, action, resource);');
  const { code, stderr } = await gateway.cli(['check', '--config', gateway.configPath]);
  assert.deepEqual([code, stderr.includes(`${file}:1:1: V-006 undefined workflow "finnance"`)], [2, true], stderr);
});

test('an attribute that no call ever has is warned of, with its place; check --strict refuses it', async (t) => {
  const { gateway, file } = await stage(t, 'permit(principal, action, resource)\nwhen { resource.tool_name == "x" };');
  const lenient = await gateway.cli(['check', '--config', gateway.configPath]);
  assert.equal(lenient.code, 0);
  assert.match(lenient.stderr, new RegExp(`${file}:2:17: warning: .*"tool_name".*name, server, arguments`));
  const strict = await gateway.cli(['check', '--strict', '--config', gateway.configPath]);
  assert.equal(strict.code, 2);
});

// ---- reload and drift ----

test('a changed policy file is seen by itself; a bad one leaves the old policies in force and says why', async (t) => {
  const { admin, gateway, write, file, connect } = await stage(t, permit('Forward'), { capable: false });
  const client = await connect();
  const outcome = async () => (await call(client, 'pay', {})).result?.status ?? 'rejected';
  assert.equal(sample(await admin.metrics(), 'thoughtgate_cedar_policies_loaded'), 1);
  assert.equal(await outcome(), 'working');
  write(permit('Approve') + 'forbid(principal, action, resource) when { false };');
  await until(async () => (await outcome()) === 'input_required', 'the new policies', { deadline: 6_000 });
  write('permit(principal, action, resource) whn { true };');
  await until(async () => (await admin.get('/ready')).json.config_error, 'the error in /ready', { deadline: 6_000 });
  assert.equal((await admin.get('/ready')).json.config_error, `${file}:1:37: the log says why`);
  assert.equal(await outcome(), 'input_required', 'the old policies');
  await gateway.logged((entry) => entry.level === 'error' && entry.error?.includes(file));
  write('forbid(principal, action, resource);');
  await until(async () => (await outcome()) === 'rejected', 'the mended policies', { deadline: 6_000 });
  const samples = await admin.metrics();
  assert.equal(sample(samples, 'thoughtgate_cedar_policies_loaded'), 1);
  assert.equal(sample(samples, 'thoughtgate_cedar_reload_total', { status: 'success' }), 2);
  assert.equal(sample(samples, 'thoughtgate_cedar_reload_total', { status: 'error' }), 1);
});

test('a policy file that is gone leaves the old policies in force', async (t) => {
  const { admin, gateway, file, connect } = await stage(t, permit('Approve'), { capable: false });
  const client = await connect();
  fs.rmSync(file);
  gateway.hangUp();
  await until(async () => (await admin.get('/ready')).json.config_error, 'the error in /ready');
  assert.equal((await call(client, 'pay', {})).result.status, 'input_required');
});

test('reload under load: every call is decided by one set of policies, whole', async (t) => {
  // Either set says the same of both names; a mixture would not.
  const set = (name) => permit('Forward', `resource.name == "pay_${name}"`) + `forbid(principal, action, resource) unless { resource.name == "pay_${name}" };`;
  const { gateway, write, connect } = await stage(t, set('a'), { capable: false, tools: [tool('pay_a'), tool('pay_b')] });
  const client = await connect();
  const seen = new Set();
  const random = generator();
  let going = true;
  const load = Array.from({ length: 4 }, async () => {
    while (going) {
      const answer = await call(client, random() < 0.5 ? 'pay_a' : 'pay_b', {});
      seen.add(answer.error ? answer.error.code : answer.result.status);
    }
  });
  for (let i = 0; i < 12; i++) {
    write(set(i % 2 ? 'a' : 'b'));
    gateway.hangUp();
    const winner = `pay_${i % 2 ? 'a' : 'b'}`;
    await until(async () => (await call(client, winner, {})).result?.status === 'working', `${winner} to be forwarded`, { deadline: 6_000 });
  }
  going = false;
  await Promise.all(load);
  assert.deepEqual([...seen].sort(), [-32003, 'working'].sort());
});

test('policies are asked again before an approved call is run, with the same arguments and client, after a restart too', async (t) => {
  const asked = (more = '') => permit('Approve', `resource.arguments.amount == 7 && principal.client_name == "raw-client" && principal in ThoughtGate::Role::"authorization" ${more}`, '@thoughtgate_approval("finance")');
  const { upstream, admin, gateway, write, connect } = await stage(t, asked(), { capable: false });
  const client = await connect({ token: 'A' });
  let calls = 0;
  for (const [policies, drift] of [
    [asked('&& context.source_id == "up"'), false],
    [permit('Approve', 'resource.arguments.amount == 7'), true], // another workflow
    [permit('Forward', 'resource.arguments.amount == 7'), false],
    ['forbid(principal, action, resource);', true],
    [asked('&& resource.arguments.missing'), true],
  ]) {
    const { result } = await call(client, 'pay', { amount: 7 });
    assert.equal(result.status, 'input_required');
    write(policies);
    await gateway.restart();
    await admin.approve(result.taskId);
    // Credentials are not kept over a restart: the owner's next call brings them.
    const ended = await until(async () => {
      const task = await client.result('tasks/get', { taskId: result.taskId });
      return ['completed', 'failed'].includes(task.status) && task;
    }, 'the end of the task');
    assert.equal(ended.status, drift ? 'failed' : 'completed', policies);
    if (drift) assert.equal((await client.error('tasks/result', { taskId: result.taskId })).code, -32011);
    else calls += 1;
    assert.equal(upstream.calls.length, calls, policies);
    write(asked());
    await gateway.restart();
  }
});
