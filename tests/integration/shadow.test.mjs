// governance.shadow: a second configuration looks at the same calls, and decides nothing.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { configuration, workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';
import { toYaml } from './lib/yaml.mjs';

const DIFFERENT = 'The shadow decides differently';
const RULES = [['drop_*', 'deny'], ['write_*', 'approve']];
const TOOLS = ['read_a', 'write_a', 'drop_a', 'pay'].map((name) => tool(name));

/** The gateway with a shadow; `write` replaces the shadow's configuration, `shadow` has its options. */
async function stage(t, { shadow = {}, policies, rules = RULES, config = {}, ...more } = {}) {
  const upstream = { tools: TOOLS, capabilities: { tools: {}, tasks: TASKS } };
  const files = {};
  const put = (name, text) => {
    fs.writeFileSync(`${files.folder}/${name}.new`, text);
    fs.renameSync(`${files.folder}/${name}.new`, `${files.folder}/${name}`);
  };
  const stage = await scene(t, { upstream, rules, approval: workflow('10m'), config, ...more });
  files.folder = stage.gateway.folder;
  const text = (options) => toYaml(configuration({ store: stage.gateway.storePath, upstream: stage.upstream.url, rules, approval: workflow('10m'), ...options, config: { ...(policies === undefined ? {} : { cedar: { policies: [path.join(files.folder, 'shadow.cedar')] } }), ...options.config } }));
  const write = (options) => put('shadow.yaml', typeof options === 'string' ? options : text(options));
  const writePolicies = (source) => put('shadow.cedar', source);
  if (policies !== undefined) writePolicies(policies);
  write(shadow);
  const main = configuration({ store: stage.gateway.storePath, upstream: stage.upstream.url, rules, approval: workflow('10m'), ...more, config });
  main.governance.shadow = 'shadow.yaml';
  stage.gateway.replaceConfig(toYaml(main));
  await stage.gateway.restart();
  const calls = async (outcome) => sample(await stage.admin.metrics(), 'thoughtgate_shadow_calls_total', { outcome }) ?? 0;
  const differences = async (outcome, other) => sample(await stage.admin.metrics(), 'thoughtgate_shadow_differences_total', { outcome, shadow_outcome: other }) ?? 0;
  return { ...stage, write, writePolicies, calls, differences, main };
}

const call = (client, name, args = {}, task) => client.call('tools/call', { name, arguments: args, ...(task ? { task } : {}) });

test('the same decision is counted and not told; another is both, and decides nothing', async (t) => {
  const { gateway, upstream, calls, differences, connect } = await stage(t, { shadow: { rules: [['read_*', 'deny'], ['write_*', 'forward'], ['drop_*', 'deny']] } });
  const client = await connect();
  assert.equal((await call(client, 'drop_a')).error.code, -32014);
  assert.deepEqual((await call(client, 'read_a', { secret: 'hush-hush' })).result.structuredContent.arguments, { secret: 'hush-hush' });
  assert.equal((await call(client, 'write_a', {}, {})).result.status, 'input_required');
  assert.equal(upstream.calls.length, 1);
  assert.deepEqual([await calls('same'), await calls('different'), await calls('error'), await calls('skipped')], [1, 2, 0, 0]);
  assert.deepEqual([await differences('forward', 'deny'), await differences('approve', 'forward')], [1, 1]);
  const { time: _, ...line } = await gateway.logged((entry) => entry.msg === DIFFERENT && entry.tool === 'read_a');
  assert.deepEqual(line, {
    level: 'info', msg: DIFFERENT, tool: 'read_a', source: 'up',
    outcome: 'forward', rule: '', rule_index: -1, workflow: '',
    shadow_outcome: 'deny', shadow_rule: 'read_*', shadow_rule_index: 0, shadow_workflow: '', calls: 1,
  });
  const write = await gateway.logged((entry) => entry.msg === DIFFERENT && entry.tool === 'write_a');
  assert.deepEqual([write.outcome, write.rule, write.rule_index, write.workflow, write.shadow_outcome, write.shadow_rule], ['approve', 'write_*', 1, 'default', 'forward', 'write_*']);
  assert.ok(!gateway.logs.some((entry) => entry.msg === DIFFERENT && entry.tool === 'drop_a'));
  assert.ok(!gateway.child.stderr.includes('hush-hush'));
});

test('without a shadow nothing is counted', async (t) => {
  const { admin, connect } = await scene(t, { rules: RULES });
  await call(await connect(), 'drop_a');
  assert.equal(sample(await admin.metrics(), 'thoughtgate_shadow_calls_total'), undefined);
});

test('another workflow is another decision, and so is what the shadow hides', async (t) => {
  const both = { ...workflow('10m'), careful: { destination: { type: 'admin' }, timeout: '1h' } };
  const rules = [{ match: 'write_*', action: 'approve', approval: 'default' }];
  const { gateway, differences, connect } = await stage(t, { rules, approval: both, shadow: { rules: [{ match: 'write_*', action: 'approve', approval: 'careful' }], approval: both, expose: { mode: 'blocklist', tools: ['read_*'] } } });
  const client = await connect();
  await call(client, 'write_a', {}, {});
  await call(client, 'read_a');
  assert.deepEqual([await differences('approve', 'approve'), await differences('forward', 'hide')], [1, 1]);
  const line = await gateway.logged((entry) => entry.msg === DIFFERENT && entry.tool === 'write_a');
  assert.deepEqual([line.workflow, line.shadow_workflow], ['default', 'careful']);
});

test('a call that is told to come again is not decided, and not compared', async (t) => {
  const { calls, connect } = await stage(t, { shadow: { rules: [['*', 'deny']] } });
  const client = await connect();
  assert.equal((await call(client, 'write_a')).error.code, -32009);
  assert.deepEqual([await calls('same'), await calls('different')], [0, 0]);
  await call(client, 'write_a', {}, {});
  assert.equal(await calls('different'), 1);
});

const POLICIES = `permit(principal, action == ThoughtGate::Action::"Forward", resource) when { resource.arguments.amount < 100 };
@id("who") permit(principal, action == ThoughtGate::Action::"Forward", resource) when { principal.client_name == "raw-client" && principal.identity == "session" && context.time.hour < 24 && resource.arguments has free };`;

test('the policies of a shadow see the same arguments, caller and time; their errors are told, never the arguments', async (t) => {
  const { admin, gateway, upstream, calls, differences, connect } = await stage(t, { policies: POLICIES, shadow: { rules: [{ match: 'pay', action: 'policy', policy_id: 'p' }, ...RULES] } });
  const client = await connect();
  const pay = async (args) => assert.deepEqual((await call(client, 'pay', args)).result.structuredContent.arguments, args);
  await pay({ amount: 99 });
  await until(async () => (await calls('same')) === 1, 'the first call to be compared');
  await pay({ amount: 100 });
  await until(async () => (await calls('different')) === 1, 'the second call to be compared');
  assert.equal(await differences('forward', 'reject'), 1);
  await pay({ amount: 'hush-hush' });
  await until(async () => (await calls('error')) === 1, 'the third call to be compared');
  const line = await gateway.logged(/^A policy of the shadow could not be evaluated$/);
  assert.deepEqual([line.level, line.tool, line.source, line.policy, line.action, path.basename(line.file), line.line, line.calls], ['warn', 'pay', 'up', 'policy0', 'Forward', 'shadow.cedar', 1, 1]);
  assert.match(line.error, /^type error: expected long, found string$/);
  assert.ok(!gateway.child.stderr.includes('hush-hush'));
  assert.equal(upstream.calls.length, 3);
  const samples = await admin.metrics();
  for (const name of ['thoughtgate_cedar_evaluations_total', 'thoughtgate_cedar_policy_errors_total']) assert.equal(sample(samples, name), undefined, name);
  assert.equal(sample(samples, 'thoughtgate_cedar_policies_loaded'), 0, 'those in force');
});

test('the shadow knows the caller, also when only the store knows the session', async (t) => {
  const { gateway, calls, connect } = await stage(t, { policies: `@id("p") ${POLICIES.split('@id("who")')[1]}`, shadow: { rules: [{ match: 'pay', action: 'policy', policy_id: 'p' }, ...RULES] } });
  const client = await connect();
  await call(client, 'pay', { free: true });
  await until(async () => (await calls('same')) === 1, 'the call to be compared');
  await gateway.restart();
  await call(client, 'pay', { free: true });
  await until(async () => (await calls('same')) === 1, 'the call after the restart to be compared');
  assert.deepEqual([await calls('different'), await calls('error')], [0, 0]);
});

test('calls from the admin port are compared, too', async (t) => {
  const CI_TOKEN = 'shadow-control-plane-token-00001';
  const { admin, calls, differences } = await stage(t, {
    env: { CI_TOKEN },
    config: { admin: { tokens: [{ name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] }] } },
    shadow: { rules: [['read_*', 'deny'], ['drop_*', 'forward']] },
  });
  const ask = (name) => admin.as(CI_TOKEN).post('/api/v1/calls', { tool: name, arguments: {} });
  await ask('read_a');
  assert.equal((await ask('drop_a')).status, 403);
  assert.equal(await calls('different'), 2);
  assert.deepEqual([await differences('forward', 'deny'), await differences('deny', 'forward')], [1, 1]);
});

test('an agent cannot flood the log: repeated differences are summed up', async (t) => {
  const { gateway, calls, connect } = await stage(t, { defaultAction: 'deny', rules: [], shadow: { defaultAction: 'forward', rules: [] } });
  const client = await connect();
  for (let i = 0; i < 50; i++) await call(client, 'read_a');
  assert.equal(await calls('different'), 50);
  for (let i = 0; i < 600; i++) await call(client, `made_up_${i}\u202e`);
  await gateway.stop();
  const told = gateway.logs.filter((entry) => entry.msg === DIFFERENT);
  assert.deepEqual(told.filter((entry) => entry.tool === 'read_a').map((entry) => entry.calls), [1, 49]);
  assert.equal(told.length, 2 + 499, 'one line for each of the first 500 kinds, one for the sum');
  assert.ok(gateway.logs.some((entry) => entry.msg === 'Calls of too many kinds to be told one by one' && entry.calls === 101));
  assert.ok(!gateway.child.stderr.includes('\u202e'));
});

// ---- the file ----

test('a shadow is part of the configuration: its errors stand with their place, exit 2', async (t) => {
  const { gateway, write, writePolicies } = await stage(t, { policies: 'permit(principal, action, resource);', shadow: { rules: [{ match: 'pay', action: 'policy', policy_id: 'p' }] } });
  const check = async (...more) => gateway.cli(['check', '--config', gateway.configPath, ...more]);
  assert.equal((await check()).code, 0);
  const file = path.join(gateway.folder, 'shadow.yaml');
  const good = fs.readFileSync(file, 'utf8');
  write('schema: 1\nsources: []\ngovernance: {defaults: {action: aprove}}\n');
  for (const command of ['check', 'serve']) {
    const { code, stderr } = await gateway.cli([command, '--config', gateway.configPath]);
    assert.equal(code, 2, command);
    assert.ok(stderr.includes(`${file}:3:33: governance.defaults.action: "aprove" is not an action; did you mean "approve"?`), stderr);
  }
  write(good.replace('governance:', 'governance:\n  shadow: other.yaml'));
  let { code, stderr } = await check();
  assert.equal(code, 2);
  assert.match(stderr, /shadow\.yaml:\d+:\d+: governance\.shadow: this file is itself a shadow, and a shadow has none of its own/);
  write(good);
  writePolicies('permit(principl, action, resource);');
  ({ code, stderr } = await check());
  assert.deepEqual([code, stderr.includes('shadow.cedar:1:8: ')], [2, true], stderr);
  writePolicies('permit(principal, action, resource) when { resource.tool_name == "x" };');
  assert.equal((await check()).code, 0);
  assert.equal((await check('--strict')).code, 2, 'what no call ever has, in the shadow');
  const shared = await gateway.cli(['check', '--config', gateway.configPath], { env: { THOUGHTGATE_POLICY_FILE: path.join(gateway.folder, 'shadow.cedar') } });
  assert.equal(shared.stderr.split('"tool_name"').length, 2, 'what both share is told of once');
  fs.rmSync(file);
  ({ code, stderr } = await check());
  assert.equal(code, 2);
  assert.ok(stderr.includes(`${file}: the configuration file cannot be read: No such file or directory`), stderr);
});

test('a shadow without one of the sources is warned of', async (t) => {
  const { gateway, write, differences, connect } = await stage(t, {});
  write({ upstream: { elsewhere: 'http://127.0.0.1:1/mcp' } });
  const { code, stderr } = await gateway.cli(['check', '--config', gateway.configPath]);
  assert.equal(code, 0);
  assert.match(stderr, /config\.yaml:\d+:\d+: warning: governance\.shadow: the shadow has no source up, so it hides every call of it/);
  gateway.hangUp();
  await gateway.logged(/^Configuration reloaded$/);
  await call(await connect(), 'read_a');
  assert.equal(await differences('forward', 'hide'), 1);
});

test('check and explain tell of the shadow', async (t) => {
  const { gateway } = await stage(t, { policies: POLICIES, shadow: { rules: [{ match: 'pay', action: 'policy', policy_id: 'p' }, ['read_*', 'deny']] } });
  const cli = async (...args) => {
    const { code, stdout, stderr } = await gateway.cli([...args, '--config', gateway.configPath]);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const file = path.join(gateway.folder, 'shadow.yaml');
  assert.ok((await cli('check')).includes(`The shadow ${file} judges calls as well, and decides nothing.`));
  assert.equal(JSON.parse(await cli('check', '--json')).shadow, file);
  assert.match(await cli('explain', 'read_a'), /^Shadow +deny, by rule 1: read_\* \(.*shadow\.yaml:\d+\)$/m);
  assert.match(await cli('explain', 'pay'), /^Shadow +depends on the call: give --args and --principal$/m);
  assert.match(await cli('explain', 'pay', '--args', '{"amount": 100}'), /^Shadow +reject, by rule 0: pay /m);
  assert.match(await cli('explain', 'other'), /^Shadow +forward, by the default action$/m);
  const json = JSON.parse(await cli('explain', 'pay', '--args', '{"amount": 99}', '--json'));
  assert.deepEqual([json.action, json.decision, json.shadow.decision, json.shadow.rule.index, json.shadow.workflow], ['forward', 'forward', 'forward', 0, null]);
  assert.equal(JSON.parse(await cli('explain', 'pay', '--json')).shadow.decision, null);
});

// ---- reload ----

test('a changed shadow is seen by itself, its policies, too; a bad one leaves the old one, and mending it is seen', async (t) => {
  const { admin, gateway, write, writePolicies, calls, connect } = await stage(t, { policies: 'permit(principal, action, resource);', shadow: { rules: [] } });
  const client = await connect();
  await call(client, 'read_a');
  assert.equal(await calls('same'), 1);
  const reloads = (status) => async () => sample(await admin.metrics(), 'thoughtgate_config_load_total', { status }) ?? 0;
  const loaded = async (status, count) => until(async () => (await reloads(status)()) >= count, `${count} reloads: ${status}`, { deadline: 10_000 });
  write({ rules: [['read_*', 'deny']] });
  await loaded('success', 2);
  await call(client, 'read_a');
  assert.equal(await calls('different'), 1);
  write('schema: 1\n');
  await loaded('error', 1);
  assert.match((await admin.get('/ready')).json.config_error, /shadow\.yaml/);
  await call(client, 'read_a');
  assert.equal(await calls('different'), 2, 'the old shadow');
  write({ rules: [{ match: 'read_*', action: 'policy', policy_id: 'p' }] });
  await loaded('success', 3);
  await call(client, 'read_a');
  await until(async () => (await calls('same')) === 2, 'the mended shadow to be asked');
  writePolicies('forbid(principal, action, resource);');
  await loaded('success', 4);
  await call(client, 'read_a');
  await until(async () => (await calls('different')) === 3, 'the new policies of the shadow to be asked');
  gateway.replaceConfig(fs.readFileSync(gateway.configPath, 'utf8').replace('shadow: ', 'shadow: absent/'));
  await loaded('error', 2);
  fs.mkdirSync(path.join(gateway.folder, 'absent'));
  fs.copyFileSync(path.join(gateway.folder, 'shadow.yaml'), path.join(gateway.folder, 'absent/shadow.yaml'));
  await loaded('success', 5);
});

test("a shadow's own policy files come before the variables that those in force come from", async (t) => {
  const { gateway, connect, calls } = await stage(t, {
    env: { THOUGHTGATE_POLICIES: 'permit(principal, action, resource);' },
    rules: [{ match: 'pay', action: 'policy', policy_id: 'p' }],
    policies: 'permit(principal, action, resource) when { false };',
    shadow: {},
  });
  await call(await connect(), 'pay', {}, {});
  await until(async () => (await calls('different')) === 1, 'the call to be compared');
  const line = await gateway.logged((entry) => entry.msg === DIFFERENT);
  assert.deepEqual([line.outcome, line.shadow_outcome], ['forward', 'reject']);
});
