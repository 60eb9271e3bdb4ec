// `action: policy`, case by case: the whole ownership table decided by arguments, explain on one
// call, early warnings of mistakes, and the bound on the work of a decision.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { errorOf } from './lib/client.mjs';
import { sample } from './lib/admin.mjs';
import { configuration, temporaryFolder, workflow, BINARY } from './lib/gateway.mjs';
import { run } from './lib/child.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';
import { toYaml } from './lib/yaml.mjs';

const WORKFLOWS = { ...workflow('10m'), finance: { destination: { type: 'admin' }, timeout: '1h' } };
const POLICIES = `permit(principal, action == ThoughtGate::Action::"Forward", resource)
when { resource.arguments.amount < 100 };
@id("ask")
@thoughtgate_approval("finance")
permit(principal, action == ThoughtGate::Action::"Approve", resource)
when { resource.arguments.amount < 1000 };
@id("never")
forbid(principal, action, resource)
when { resource.arguments has country && resource.arguments.country == "XX" };
`;
const RULES = [
  { match: 'pay*', action: 'policy', policy_id: 'ask' },
  { match: 'guarded*', action: 'policy', policy_id: 'never' },
];

async function stage(t, options = {}) {
  const TOOLS = [tool('pay_none'), ...['optional', 'required', 'forbidden'].map((support) => tool(`pay_${support}`, { support }))];
  return scene(t, {
    rules: RULES,
    approval: WORKFLOWS,
    upstream: { tools: TOOLS, capabilities: options.capable === false ? { tools: {} } : { tools: {}, tasks: TASKS } },
    env: { THOUGHTGATE_POLICIES: POLICIES },
    ...options,
  });
}

const call = (client, name, args, task) => client.call('tools/call', { name, arguments: args, ...(task ? { task } : {}) });

// ---- the ownership table ----

const NONE = ['none', 'forbidden'], OWN = ['optional', 'required'];
const OWNERSHIP = [
  // amount, with a task?, upstream's own value; the outcome
  { amount: 99, task: true, own: OWN, comes: 'upstream owns' },
  { amount: 99, task: true, own: NONE, comes: 'accelerated' },
  { amount: 100, task: true, own: [...OWN, ...NONE], comes: 'waits' },
  { amount: 1000, task: true, own: [...OWN, ...NONE], comes: -32003 },
  { amount: 99, task: false, own: [...OWN, ...NONE], comes: -32009 },
  { amount: 100, task: false, own: [...OWN, ...NONE], comes: -32009 },
  { amount: 1000, task: false, own: [...OWN, ...NONE], comes: -32009 },
];

test('each row of the ownership table, chosen by the arguments alone', async (t) => {
  const { admin, upstream, connect } = await stage(t);
  const client = await connect();
  for (const { amount, task, own, comes } of OWNERSHIP) {
    for (const word of own) {
      const name = `pay_${word}`, where = `${name}, ${amount}, task: ${task}`;
      const before = upstream.calls.length;
      const { result, error } = await call(client, name, { amount }, task ? {} : undefined);
      if (typeof comes === 'number') {
        assert.equal(error?.code, comes, where);
        assert.equal(upstream.calls.length, before, where);
      } else if (comes === 'upstream owns') {
        assert.match(result.task.taskId, /^up-/, where);
        assert.deepEqual(upstream.calls.at(-1).rpc.params.task, {}, where);
      } else if (comes === 'accelerated') {
        assert.equal(result.status, 'working', where);
        assert.deepEqual((await client.result('tasks/result', { taskId: result.taskId })).structuredContent.arguments, { amount }, where);
        assert.equal(upstream.calls.at(-1).rpc.params.task, undefined, where);
        assert.equal((await admin.task(result.taskId)).workflow, null, where);
      } else {
        assert.equal(result.status, 'input_required', where);
        assert.equal((await admin.task(result.taskId)).workflow, 'finance', where);
        assert.equal(upstream.calls.length, before, where);
        await admin.approve(result.taskId);
        const executed = await until(() => upstream.calls[before], `${where}: the call at upstream`);
        assert.deepEqual(executed.rpc.params.arguments, { amount }, where);
        assert.equal(executed.rpc.params.task !== undefined, word === 'required', where);
        for (const { task } of upstream.tasks.values()) task.status = 'completed';
        await admin.inState(result.taskId, 'completed');
      }
    }
  }
});

test('the same rows for a client that knows no tasks: forwarded, waited for, rejected', async (t) => {
  const { admin, upstream, connect } = await stage(t, { capable: false });
  const client = await connect({ protocol: '2025-06-18', capabilities: {} });
  assert.deepEqual((await call(client, 'pay_none', { amount: 99 })).result.structuredContent.arguments, { amount: 99 });
  const waiting = call(client, 'pay_none', { amount: 100 });
  const pending = await admin.pending();
  assert.equal(pending.workflow, 'finance');
  await admin.approve(pending.id);
  assert.deepEqual((await waiting).result.structuredContent.arguments, { amount: 100 });
  assert.equal(errorOf(await call(client, 'pay_none', { amount: 1000 })).code, -32003);
  assert.equal((await call(client, 'pay_none', { amount: 99, country: 'XX' })).result.structuredContent.arguments.country, 'XX', 'another rule asks that forbid');
  assert.equal(errorOf(await call(client, 'guarded', { amount: 99, country: 'XX' })).code, -32003);
  assert.equal((await call(client, 'guarded', { amount: 99, country: 'YY' })).result.structuredContent.arguments.country, 'YY');
  assert.equal(errorOf(await call(client, 'guarded', { amount: 100, country: 'YY' })).code, -32003, 'nor is the permit of the other rule asked');
  assert.equal(upstream.calls.length, 4);
});

// ---- explain ----

function offline(t, policies, more = {}) {
  const folder = temporaryFolder(t);
  const file = path.join(folder, 'p.cedar'), config = path.join(folder, 'c.yaml');
  fs.writeFileSync(file, policies);
  fs.writeFileSync(config, toYaml(configuration({ store: path.join(folder, 'x.db'), upstream: 'http://127.0.0.1:1/mcp', rules: RULES, approval: WORKFLOWS, config: { cedar: { policies: [file] } }, ...more })));
  return { file, config, taskgate: (...args) => run(BINARY, [...args, '--config', config], { cwd: folder, env: {} }) };
}

test('explain of one call: decision, gate, rule, every determining policy and every error with file and line', async (t) => {
  const { file, config, taskgate } = offline(t, `permit(principal, action, resource) when { resource.arguments.amount < 1000 };
@id("night") forbid(principal, action == ThoughtGate::Action::"Forward", resource) when { context.time.hour < 6 };
forbid(principal, action, resource) when { principal.name == "auth:evil" };
permit(principal in ThoughtGate::Role::"session", action == ThoughtGate::Action::"Approve", resource);
permit(principal, action, resource) when { resource.arguments.missing };
@id("never") forbid(principal, action, resource);
`, { rules: [{ match: 'pay*', action: 'policy', policy_id: 'night' }] });
  const explain = async (...args) => {
    const { code, stdout, stderr } = await taskgate('explain', 'pay_x', '--json', ...args);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const finding = (x) => [x.policy, x.effect, x.action, x.line, x.column, x.error];
  const MISSING = ['policy4', 'permit', undefined, 5, 1, 'there is no attribute "missing"'];
  const night = await explain('--args', '{"amount": 5}', '--principal', 'session:1', '--at', '2026-01-31T05:59:59Z');
  assert.deepEqual([night.decision, night.gate, night.workflow, night.rule.index, night.rule.match], ['approve', 'approval', 'default', 0, 'pay*']);
  assert.ok(night.rule.line > 0 && fs.readFileSync(config, 'utf8').split('\n')[night.rule.line - 1].includes('pay*'));
  assert.ok(night.policies.every((x) => x.file === file));
  const decided = (trace) => trace.policies.filter((x) => x.error === null).map(finding);
  const failed = (trace) => trace.policies.filter((x) => x.error !== null);
  assert.deepEqual(decided(night), [
    ['night', 'forbid', 'Forward', 2, 1, null],
    ['policy0', 'permit', 'Approve', 1, 1, null],
    ['policy3', 'permit', 'Approve', 4, 1, null],
  ]);
  assert.deepEqual(failed(night).map((x) => [x.policy, x.effect, x.action, x.line, x.error]), [
    ['policy4', 'permit', 'Forward', 5, MISSING[5]],
    ['policy4', 'permit', 'Approve', 5, MISSING[5]],
  ]);
  const day = await explain('--args', '{"amount": 5}', '--principal', 'session:1', '--at', '2026-01-31T06:00:00Z');
  assert.deepEqual([day.decision, day.gate, decided(day)], ['forward', null, [['policy0', 'permit', 'Forward', 1, 1, null]]]);
  const evil = await explain('--args', '{"amount": 5}', '--principal', '{"name": "auth:evil", "client_name": "x"}', '--at', '2026-01-31');
  assert.deepEqual([evil.decision, evil.gate], ['reject', 'policy']);
  assert.deepEqual(decided(evil).map((x) => x.slice(0, 4)), [['night', 'forbid', 'Forward', 2], ['policy2', 'forbid', 'Forward', 3], ['policy2', 'forbid', 'Approve', 3], ['policy2', 'forbid', 'tools/call', 3]]);
  const { stdout } = await taskgate('explain', 'pay_x', '--args', '{"amount": "hush-hush"}', '--principal', 'auth:1', '--at', '2026-01-31T12:00:00Z');
  assert.match(stdout, /^Decision +reject, by the gate policy$/m);
  assert.ok(stdout.includes(`policy0 fails Forward (${file}:1:`), stdout);
  assert.ok(stdout.includes(': type error: expected long, found string'), stdout);
  assert.ok(!stdout.includes('hush-hush'));
});

test('a number that is written otherwise is no way around a list of what is allowed', async (t) => {
  const { taskgate } = offline(t, `permit(principal, action == ThoughtGate::Action::"Forward", resource);
forbid(principal, action, resource) unless { [1, 2].contains(resource.arguments.level) };
`);
  for (const [level, decision] of [['1', 'forward'], ['2', 'forward'], ['3', 'reject'], ['1.0', 'reject'], ['2e0', 'reject'], ['-1', 'reject'], ['"1"', 'reject'], ['[1]', 'reject'], ['null', 'reject'], ['18446744073709551617', 'reject']]) {
    const { code, stdout, stderr } = await taskgate('explain', 'pay_x', '--json', '--args', `{"level": ${level}}`);
    assert.equal(code, 0, stderr);
    assert.equal(JSON.parse(stdout).decision, decision, level);
  }
});

// ---- mistakes ----

test('check warns of each mistake with its place, and check --strict refuses it', async (t) => {
  for (const [policy, place, what] of [
    ['permit(principal is ThoughtGate::Apps, action, resource);', '1:1', 'there are no entities of the type ThoughtGate::Apps'],
    ['permit(principal, action == ThoughtGate::Action::"forward", resource);', '1:1', 'there is no action "forward"'],
    ['permit(principal, action, resource) when { resource.args.amount < 1 };', '1:53', 'the resource has no attribute "args"'],
    ['permit(principal, action, resource) when { context.hour < 6 };', '1:52', 'the context has no attribute "hour"'],
    ['permit(principal, action, resource) when { resource.name in ["a"] };', '1:58', '"in" on a string is an error each time'],
    ['permit(principal, action, resource) when { resource.arguments.country in ["CH"] };', '1:71', '"in" on an argument is an error each time'],
    ['permit(principal, action, resource) when { resource.arguments.who is ThoughtGate::App };', '1:67', '"is" on an argument is an error each time'],
    ['permit(principal in ThoughtGate::Role::"authorisation", action, resource);', '1:1', 'there is no role "authorisation"'],
    ['permit(principal, action, resource) when { principal.roles == [] };', '1:54', 'the principal has no attribute "roles"'],
    ['permit(principal, action, resource) when { context has time.minute };', '1:52', 'context.time has no attribute "minute"'],
    ['permit(principal, action, resource) when { resource.name.contains("a") };', '1:58', '"contains" on a string is an error each time'],
    ['permit(principal, action, resource); forbid(principal, action == ThoughtGate::Action::"Forward", resource);', '1:38', 'a forbid on Forward alone does not reject'],
  ]) {
    const { file, taskgate } = offline(t, policy);
    const lenient = await taskgate('check');
    assert.equal(lenient.code, 0, policy);
    const line = lenient.stderr.split('\n').find((x) => x.includes(what));
    assert.ok(line, `${policy}\n${lenient.stderr}`);
    assert.ok(line.startsWith(`${file}:${place}: warning: `), `${place}: ${line}`);
    const strict = await taskgate('check', '--strict');
    assert.equal(strict.code, 2, policy);
    assert.ok(strict.stderr.includes(what), policy);
    assert.equal(strict.stdout, '', policy);
  }
});

test('on_policy_error: both answers are told with the policy and its place, never with arguments', async (t) => {
  for (const [answer, outcome] of [['deny', -32003], ['skip', 'forwarded']]) {
    const { admin, gateway, connect } = await stage(t, { capable: false, config: { on_policy_error: answer }, env: { THOUGHTGATE_POLICIES: 'permit(principal, action, resource);\n@id("ask") forbid(principal, action, resource)\nwhen { resource.arguments.amount > 100 };' } });
    const client = await connect({ protocol: '2025-06-18', capabilities: {} });
    const error = errorOf(await call(client, 'pay_none', { amount: 'hush-hush' }));
    assert.equal(error?.code ?? 'forwarded', outcome);
    const line = await gateway.logged(/^A policy could not be evaluated$/);
    assert.deepEqual([line.level, line.policy, line.effect, line.action, line.tool, line.file, line.line], ['warn', 'ask', 'forbid', 'Forward', 'pay_none', 'THOUGHTGATE_POLICIES', 3], answer);
    const asked = outcome === 'forwarded' ? 1 : 3; // a denied call is asked for each action
    assert.equal(sample(await admin.metrics(), 'thoughtgate_cedar_policy_errors_total', { policy: 'ask', effect: 'forbid' }), asked, answer);
    const decided = await gateway.logged(/^Call decided$/);
    assert.deepEqual([decided.outcome, decided.rule, decided.rule_index, decided.client_name], [outcome === 'forwarded' ? 'forward' : 'reject', 'pay*', 0, 'raw-client'], answer);
    assert.ok(!gateway.child.stderr.includes('hush-hush'), answer);
  }
});

// ---- too much ----

test('huge sets and many members are decided or rejected in time, and the gateway goes on', async (t) => {
  const { admin, connect } = await stage(t, {
    capable: false,
    env: { THOUGHTGATE_POLICIES: `permit(principal, action, resource) when { resource.arguments.list.containsAll(resource.arguments.other) };
      permit(principal, action, resource) when { resource.arguments.object has z };` },
    rules: [{ match: 'pay*', action: 'policy', policy_id: 'p' }],
  });
  const client = await connect({ protocol: '2025-06-18', capabilities: {} });
  const numbers = (count, from = 0) => Array.from({ length: count }, (_, i) => from + i);
  const outcome = async (args) => errorOf(await call(client, 'pay_none', args))?.code ?? 'forwarded';
  assert.equal(await outcome({ list: numbers(50_000), other: numbers(50_000) }), 'forwarded');
  assert.equal(await outcome({ list: numbers(50_000), other: numbers(50_000, 1) }), -32003);
  assert.equal(await outcome({ list: [], other: [], object: Object.fromEntries(numbers(20_000).map((i) => [`k${i}`, [i, [i]]])) }), 'forwarded');
  assert.equal(await outcome({ object: { ...Object.fromEntries(numbers(20_000).map((i) => [`k${i}`, 'x'])), z: 1 } }), 'forwarded');
  const nested = numbers(200).map((i) => numbers(200, i));
  assert.equal(await outcome({ list: nested, other: nested }), 'forwarded');
  assert.equal((await admin.get('/ready')).status, 200);
});
