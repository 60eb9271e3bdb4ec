// The time that a human has, for every way of a call, and the time that an approval holds.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { run } from './lib/child.mjs';
import { BINARY, configuration, temporaryFolder, withoutAdvice } from './lib/gateway.mjs';
import { kinds } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { toYaml } from './lib/yaml.mjs';

const HOUR = 3_600_000;
const CI = 'clocks-ci-token-0000000000001';

const stage = (t, { approval = { default: { timeout: '2h', valid_for: '1h' } }, env, ...more } = {}) =>
  scene(t, {
    rules: [['delete_*', 'approve']],
    approval,
    upstream: { tools: [tool('delete_user')] },
    env: { CI_TOKEN: CI, ...env },
    config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '300ms' }, admin: { tokens: [{ name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] }] } },
    ...more,
  });

const lasts = (task, until, from = 'createdAt') => Date.parse(task[until]) - Date.parse(task[from]);
const [[, { client: plainClient }]] = Object.entries(kinds);

const ways = {
  'a call as a task': async ({ connect }) => void (await (await connect()).createTask('delete_user', {}, {})),
  'a plain call': async ({ connect }) => void (await (await connect(plainClient)).call('tools/call', { name: 'delete_user' })),
  execute_tool: async ({ connect }) => void (await (await connect(plainClient)).result('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'delete_user', args: {}, timeout_ms: 200 } })),
  'the control plane': async ({ admin }) => void (await admin.as(CI).post('/api/v1/calls', { tool: 'delete_user' })),
};

for (const [way, call] of Object.entries(ways)) {
  test(`${way} without a ttl: the workflow's timeout holds, and so does its valid_for`, async (t) => {
    const set = await stage(t);
    await call(set);
    const { id } = await set.admin.pending();
    assert.equal(lasts(await set.admin.task(id), 'decideBy'), 2 * HOUR);
    await set.admin.approve(id);
    const decided = await set.admin.task(id);
    assert.ok(Math.abs(lasts(decided, 'executeBy', 'decidedAt') - HOUR) < 1000, JSON.stringify(decided));
  });
}

test('a ttl of the client shortens the time to decide; without one the task lives for timeout and valid_for', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  const brief = await client.createTask('delete_user', {}, { ttl: 60_000 });
  assert.equal(brief.ttl, 60_000);
  assert.equal(lasts(await admin.task(brief.taskId), 'decideBy'), 60_000);
  assert.equal((await client.createTask('delete_user', {}, {})).ttl, 3 * HOUR);
});

test('timeout and valid_for beyond the maximum are cut to it', async (t) => {
  const { admin, connect } = await stage(t, { env: { THOUGHTGATE_TASK_MAX_TTL_MS: String(HOUR) } });
  const { taskId, ttl } = await (await connect()).createTask('delete_user', {}, {});
  assert.equal(ttl, HOUR);
  assert.equal(lasts(await admin.task(taskId), 'decideBy'), HOUR);
});

test('a default ttl that is longer stays', async (t) => {
  const { admin, connect } = await stage(t, { approval: { default: { timeout: '1m', valid_for: '1m' } } });
  const { taskId, ttl } = await (await connect()).createTask('delete_user', {}, {});
  assert.equal(ttl, 600_000);
  assert.equal(lasts(await admin.task(taskId), 'decideBy'), 60_000);
});

test('check warns of a timeout beyond the maximum, explain says the time that holds', async (t) => {
  const folder = temporaryFolder(t);
  const file = path.join(folder, 'config.yaml');
  const taskgate = (...args) => run(BINARY, [...args, '--config', file], { cwd: folder });
  const write = (timeout) => fs.writeFileSync(file, toYaml(configuration({ upstream: 'http://127.0.0.1:9/', store: path.join(folder, 'tasks.db'), rules: [['delete_*', 'approve']], approval: { default: { timeout, valid_for: '20m' } } })));
  write('48h');
  const checked = await taskgate('check');
  assert.match(checked.stderr, /config\.yaml:\d+:\d+: warning: approval\.default\.timeout: a task lives for 1d at most/);
  assert.match(checked.stdout, /default \(1d\)/);
  assert.equal(checked.code, 0);
  assert.equal((await taskgate('check', '--strict')).code, 2);
  const explained = (await taskgate('explain', 'delete_user')).stdout;
  assert.match(explained, /^Workflow +default \(1d to decide, then 20m to begin the call\)$/m);
  assert.match(explained, /whose timeout of 2d is cut to the longest life of a task, 1d/);
  write('2h');
  assert.equal(withoutAdvice((await taskgate('check', '--strict')).stderr), '');
  assert.match((await taskgate('explain', 'delete_user')).stdout, /default \(2h to decide, then 20m/);
});
