// taskgate policy simulate: calls that the gateway has recorded, put to changed rules.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { configuration, workflow } from './lib/gateway.mjs';
import { PLAIN, promoted, stage as promotionStage } from './lib/promotion.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';
import { toYaml } from './lib/yaml.mjs';

const action = (name) => `action == ThoughtGate::Action::"${name}"`;
const permit = (name, when = 'true') => `permit(principal, ${action(name)}, resource) when { ${when} };\n`;
const FINANCE = { ...workflow('10m'), finance: { destination: { type: 'admin' }, timeout: '1h' } };
const RULES = [['drop_*', 'deny'], { match: 'write_*', action: 'approve', approval: 'default' }, { match: 'pay', action: 'policy', policy_id: 'p' }];
const TOOLS = ['read_a', 'read_b', 'write_a', 'drop_a', 'pay', 'hidden'].map((name) => tool(name));

/** A gateway that has decided calls of every kind, and has been stopped; `simulate` puts them to other rules. */
async function stage(t, { stop = true, more } = {}) {
  const stage = await scene(t, {
    upstream: { tools: TOOLS, capabilities: { tools: {}, tasks: TASKS } },
    rules: RULES,
    approval: FINANCE,
    expose: { mode: 'blocklist', tools: ['hidden'] },
    env: { THOUGHTGATE_POLICIES: permit('Forward', 'resource.arguments.amount < 100') + permit('Approve', 'resource.arguments.amount < 1000') },
  });
  const { gateway, upstream } = stage;
  const client = await stage.connect();
  const call = (name, args = {}, task) => client.call('tools/call', { name, arguments: args, ...(task ? { task } : {}) });
  for (let i = 0; i < 5; i++) await call('read_a');
  await call('read_b');
  for (let i = 0; i < 2; i++) await call('drop_a', { secret: 'hush-hush' });
  await call('hidden');
  const write = (await call('write_a', { table: 'a', secret: 'hush-hush' }, {})).result.taskId;
  const forwarded = (await call('pay', { amount: 50 }, {})).result.taskId;
  const approved = (await call('pay', { amount: 500, secret: 'hush-hush' }, {})).result.taskId;
  assert.equal((await call('pay', { amount: 5000 }, {})).error.code, -32003);
  assert.equal((await call('pay', { amount: 1 })).error.code, -32009); // not decided
  await more?.({ client, call, ...stage });
  await stage.admin.inState(forwarded, 'completed');
  const log = path.join(gateway.folder, 'gateway.log');
  if (stop) await gateway.stop();
  fs.writeFileSync(log, gateway.child.stderr);
  const next = path.join(gateway.folder, 'next.yaml');
  const change = (options) => fs.writeFileSync(next, toYaml(configuration({ store: gateway.storePath, upstream: upstream.url, approval: FINANCE, expose: { mode: 'blocklist', tools: ['hidden'] }, ...options })));
  const run = async (...args) => gateway.cli(['policy', 'simulate', '--config', next, ...args], { env: { THOUGHTGATE_POLICIES: stage.policies ?? gateway.options.env.THOUGHTGATE_POLICIES } });
  const simulate = async (...args) => {
    const { code, stdout, stderr } = await run('--json', ...args);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  return { ...stage, log, next, change, run, simulate, tasks: { write, forwarded, approved }, withPolicies: (text) => (stage.policies = text) };
}

const brief = ({ tool, calls, was, would_be, undecidable_without }) => [tool, calls, was.outcome, was.rule, undecidable_without ? `?${undecidable_without}` : would_be.outcome, would_be.rule];

test('over a log: what would be different, by tool, and what cannot be said', async (t) => {
  const { log, change, simulate, tasks } = await stage(t);
  change({ rules: RULES });
  const unchanged = await simulate('--log', log);
  assert.deepEqual([unchanged.calls, unchanged.same, unchanged.different, unchanged.undecidable, unchanged.not_recorded], [13, 10, 0, 3, 0], 'the calls whose arguments policies look at');
  assert.deepEqual(unchanged.changes.map(brief).sort(), [
    ['pay', 1, 'approve', '2: pay', '?arguments', '2: pay'],
    ['pay', 1, 'forward', '2: pay', '?arguments', '2: pay'],
    ['pay', 1, 'reject', '2: pay', '?arguments', '2: pay'],
  ]);
  change({ expose: undefined, rules: [['read_a', 'deny'], { match: 'write_*', action: 'approve', approval: 'finance' }, ['drop_*', 'forward'], ['pay', 'forward']] });
  const changed = await simulate('--log', log);
  assert.deepEqual([changed.calls, changed.same, changed.different, changed.undecidable], [13, 2, 11, 0]);
  const rows = changed.changes.map(brief);
  assert.deepEqual(rows.filter(([name]) => name !== 'pay'), [
    ['drop_a', 2, 'deny', '0: drop_*', 'forward', '2: drop_*'],
    ['hidden', 1, 'hide', null, 'forward', 'default'],
    ['read_a', 5, 'forward', 'default', 'deny', '0: read_a'],
    ['write_a', 1, 'approve', '1: write_*', 'approve', '1: write_*'],
  ]);
  assert.deepEqual(rows.filter(([name]) => name === 'pay').map((row) => row[2]).sort(), ['approve', 'reject']);
  const of = (name) => changed.changes.find((x) => x.tool === name);
  assert.deepEqual([of('write_a').was.workflow, of('write_a').would_be.workflow, of('write_a').examples], ['default', 'finance', [tasks.write]]);
  assert.deepEqual([of('read_a').source, of('read_a').examples.length], ['up', 2]);
  const [first] = of('read_a').examples;
  assert.match(first, /^line \d+$/);
  const line = JSON.parse(fs.readFileSync(log, 'utf8').split('\n')[Number(first.slice(5)) - 1]);
  assert.deepEqual([line.msg, line.tool, line.outcome, line.calls], ['Calls decided', 'read_a', 'forward', 1]);
  assert.ok(!fs.readFileSync(log, 'utf8').includes('hush-hush'));
});

test('over a log: what policies make of calls whose caller is known, or not', async (t) => {
  const { log, change, simulate, withPolicies } = await stage(t);
  withPolicies(permit('Forward', 'resource.name == "pay" && principal.client_name == "raw-client" && context.time.timestamp > 1000000000') + permit('Forward', 'resource.name == "read_a"') + permit('Forward', 'resource.name == "read_b" && principal.client_name == "raw-client"'));
  change({ defaultAction: 'policy', rules: [] });
  const { changes, same, undecidable, different } = await simulate('--log', log);
  assert.deepEqual(changes.map(brief).sort(), [
    ['drop_a', 2, 'deny', '0: drop_*', 'reject', 'default'],
    ['pay', 1, 'approve', '2: pay', 'forward', 'default'],
    ['pay', 1, 'reject', '2: pay', 'forward', 'default'],
    ['read_b', 1, 'forward', 'default', '?caller', 'default'],
    ['write_a', 1, 'approve', '1: write_*', 'reject', 'default'],
  ]);
  assert.deepEqual([same, different, undecidable], [7, 5, 1]);
});

test('over a store, also beside the gateway that uses it: arguments are known as long as the task is', async (t) => {
  const { gateway, change, simulate, withPolicies, tasks } = await stage(t, { stop: false });
  change({ rules: RULES });
  const unchanged = await simulate('--store', gateway.storePath);
  assert.deepEqual([unchanged.calls, unchanged.same, unchanged.changes], [3, 3, []]);
  withPolicies(permit('Forward', 'resource.arguments.amount < 10') + permit('Approve', 'resource.arguments.amount < 1000') + `@thoughtgate_approval("finance") ${permit('Approve', 'resource.arguments.amount > 400')}`);
  const changed = await simulate('--store', gateway.storePath);
  assert.deepEqual(changed.changes.map((x) => [x.was.outcome, x.was.workflow, x.would_be.outcome, x.would_be.workflow, x.examples]).sort(), [
    ['approve', 'default', 'approve', 'finance', [tasks.approved]],
    ['forward', null, 'approve', 'default', [tasks.forwarded]],
  ]);
  await gateway.stop();
  assert.equal((await simulate('--store', gateway.storePath)).different, 2);
  assert.deepEqual(fs.readdirSync(gateway.folder).filter((name) => name.startsWith('taskgate.db')).sort(), ['taskgate.db'], 'nothing is left beside it');
});

test('policies that cannot be evaluated on the calls are named, with their place', async (t) => {
  const { gateway, log, change, run, simulate, withPolicies } = await stage(t);
  withPolicies(`permit(principal, action, resource);
@id("broken") forbid(principal, action, resource) when { principal.nothing };
permit(principal, action, resource) when { resource.arguments.nothing };`);
  change({ rules: [{ match: 'pay', action: 'policy', policy_id: 'broken' }, ...RULES.slice(0, 2)] });
  const overLog = await simulate('--log', log);
  const broken = { policy: 'broken', place: 'THOUGHTGATE_POLICIES:2:68', error: 'there is no attribute "nothing"' };
  assert.deepEqual(overLog.failures, [{ calls: 3, ...broken }], 'what hangs on arguments is no failure where they are not known');
  assert.deepEqual(overLog.changes.map(brief).filter(([name]) => name === 'pay').map((row) => row[4]), ['reject', 'reject']);
  const overStore = await simulate('--store', gateway.storePath);
  assert.deepEqual(overStore.failures.map((x) => [x.calls, x.policy]), [[2, 'broken'], [2, 'policy2']]);
  assert.match((await run('--store', gateway.storePath)).stdout, /^On 2 the policy broken \(THOUGHTGATE_POLICIES:2:68\) cannot be evaluated: there is no attribute "nothing"$/m);
});

test('the table, the exit codes, and what is said of bad input', async (t) => {
  const { gateway, log, next, change, run } = await stage(t);
  change({ rules: [...RULES.slice(1), ['read_a', 'deny']], defaultAction: 'forward' });
  const { code, stdout } = await run('--log', log);
  assert.equal(code, 0);
  assert.match(stdout, /^Of 13 calls 7 would be treated differently\.\n3 depend on facts that were not recorded\.\n\nTOOL +SOURCE +CALLS +WAS +RULE +WOULD BE +RULE +EXAMPLES\n/);
  assert.match(stdout, /^read_a +up +5 +forward +default +deny +2: read_a +line \d+, line \d+$/m);
  assert.match(stdout, /^pay +up +1 +approve \(default\) +2: pay +undecidable without arguments +1: pay +tg_[0-9a-f-]+$/m);
  assert.equal((await run('--log', log, '--fail-on-change')).code, 1);
  change({ rules: [] , defaultAction: 'deny', expose: { mode: 'allowlist', tools: ['nothing'] } });
  const hidden = JSON.parse((await run('--log', log, '--json', '--fail-on-change')).stdout);
  assert.deepEqual([hidden.same, hidden.different], [1, 12]);
  change({ upstream: { elsewhere: 'http://127.0.0.1:1/mcp' }, rules: [] });
  const gone = JSON.parse((await run('--log', log, '--json')).stdout);
  assert.ok(gone.changes.every((x) => x.would_be.outcome === 'hide'));
  change({ rules: [['pay', 'forward'], ...RULES] });
  assert.equal((await run('--log', log, '--since', '2000-01-01', '--fail-on-change')).code, 1);
  assert.match((await run('--log', log, '--since', '2999-01-01', '--fail-on-change')).stdout, /^Of 0 calls 0 would be treated differently\.\n$/);
  assert.match((await run('--log', log, '--since', '7d')).stdout, /^Of 13 calls/);
  const refused = async (pattern, ...args) => {
    const { code, stderr, stdout } = await run(...args);
    assert.deepEqual([code, stdout], [2, ''], args.join(' '));
    assert.match(stderr, pattern);
  };
  assert.equal((await run()).stdout, (await run('--store', gateway.storePath)).stdout, 'the store that the configuration names');
  const named = fs.readFileSync(next, 'utf8');
  fs.writeFileSync(next, named.replace(/^store:\n( .*\n)+/m, ''));
  await refused(/the configuration names no store: name either --log or --store/);
  fs.writeFileSync(next, named);
  await refused(/name either --log or --store/, '--log', log, '--store', gateway.storePath);
  await refused(/absent\.log cannot be read: No such file or directory/, '--log', 'absent.log');
  await refused(/next\.yaml has no line of the gateway's log/, '--log', next);
  await refused(/gateway\.log cannot be read as a task store: file is not a database/, '--store', log);
  await refused(/absent\.db cannot be read as a task store/, '--store', 'absent.db');
  await refused(/--since yesterday is neither a time/, '--log', log, '--since', 'yesterday');
  fs.writeFileSync(next, 'schema: 2\n');
  await refused(/next\.yaml:1:9: schema: schema version 2 is not supported/, '--log', log);
});

test('a log holds much that is no decision, and what an agent writes into it stays text', async (t) => {
  const name = 'read_"\\\n{"msg":"Calls decided","tool":"drop_a"}\u202e';
  const { log, change, run, simulate } = await stage(t, { more: async ({ call }) => {
    await call(name);
    await call('x'.repeat(5000));
  } });
  fs.writeFileSync(log, `/etc/thoughtgate/config.yaml: warning: x\nnot json\n{"msg":"Calls decided"}\n[1]\n${fs.readFileSync(log, 'utf8')}{"time":"2026-01-01T00:00:00.000Z","level":"info","msg":"Calls decided","tool":"x","source":"up","outcome":"perhaps","calls":4}\n{"time":"2026-01-01T00:00:00.000Z","cut`);
  change({ rules: [['read_*', 'deny'], ...RULES] });
  const { changes, calls, not_recorded } = await simulate('--log', log);
  assert.deepEqual([calls, not_recorded], [14, 5]);
  assert.ok(changes.some((x) => x.tool === name && x.calls === 1));
  const { stdout } = await run('--log', log);
  assert.ok(!stdout.includes('\u202e'));
  assert.match(stdout, /^5 more have no recorded tool\.$/m);
});

test('a call that was promoted is one call: forwarded in the log, with its arguments in the store', async (t) => {
  const { gateway, admin, connect } = await promotionStage(t, {});
  const agent = await connect(PLAIN);
  const { result } = await agent.call('tools/call', { name: 'slow', arguments: { n: 7 } });
  const { id } = promoted(result);
  assert.equal((await admin.task(id)).state, 'executing');
  const log = path.join(gateway.folder, 'gateway.log');
  fs.writeFileSync(log, gateway.child.stderr);
  const next = path.join(gateway.folder, 'next.yaml');
  fs.writeFileSync(next, toYaml(configuration({ store: gateway.storePath, upstream: gateway.options.upstream, defaultAction: 'policy' })));
  const simulate = async (...args) => {
    const { code, stdout, stderr } = await gateway.cli(['policy', 'simulate', '--config', next, '--json', ...args], { env: { THOUGHTGATE_POLICIES: permit('Forward', 'resource.arguments.n < 7') } });
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const told = await simulate('--log', log);
  assert.deepEqual([told.calls, told.not_recorded, told.changes.map((x) => [x.tool, x.was.outcome, x.undecidable_without])], [1, 0, [['slow', 'forward', 'arguments']]]);
  const kept = await simulate('--store', gateway.storePath);
  assert.deepEqual([kept.calls, kept.not_recorded, kept.changes.map((x) => [x.tool, x.was.outcome, x.would_be.outcome, x.examples])], [1, 0, [['slow', 'forward', 'reject', [id]]]]);
});

test('governance.record: false tells of tasks alone', async (t) => {
  const { gateway, connect } = await scene(t, { upstream: { tools: TOOLS, capabilities: { tools: {}, tasks: TASKS } }, rules: RULES, approval: workflow('10m'), env: { THOUGHTGATE_POLICIES: 'permit(principal, action, resource) when { false };' } });
  const silent = configuration({ upstream: gateway.options.upstream, store: gateway.storePath, rules: RULES, approval: workflow('10m') });
  silent.governance.record = false;
  gateway.replaceConfig(toYaml(silent));
  await gateway.restart();
  const client = await connect();
  for (const name of ['read_a', 'drop_a', 'write_a', 'pay']) await client.call('tools/call', { name, arguments: {}, task: {} });
  await until(() => gateway.logs.filter((line) => line.msg === 'Task created').length === 2, 'both tasks');
  await gateway.stop();
  assert.ok(gateway.logs.every((line) => !/^Calls? decided$/.test(line.msg)));
});
