// The database's file under a running gateway: one process's, and still where it was.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { AdminClient } from './lib/admin.mjs';
import { Child } from './lib/child.mjs';
import { ADMIN_TOKEN, BINARY, configuration, temporaryFolder, workflow } from './lib/gateway.mjs';
import { freePort } from './lib/ports.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until, within } from './lib/wait.mjs';
import { toYaml } from './lib/yaml.mjs';

const stage = (t) => scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user'), tool('read')] } });
const ready = async (gateway) => (await gateway.admin.get('/ready')).status;

for (const part of ['', '-wal']) {
  test(`no id is told for a task that would be lost: taskgate.db${part} is moved away and comes back`, async (t) => {
    const { gateway, admin, connect } = await stage(t);
    const client = await connect();
    const { taskId } = await client.createTask('delete_user');
    const file = `${gateway.storePath}${part}`;
    fs.renameSync(file, `${file}.aside`);
    assert.equal((await client.error('tools/call', { name: 'delete_user', task: {} })).code, -32013);
    assert.equal(await ready(gateway), 503);
    assert.equal((await admin.decide('approve', taskId)).status, 503);
    assert.ok(await client.result('tools/call', { name: 'read' }), 'what needs no task goes on');
    fs.renameSync(`${file}.aside`, file);
    await until(async () => (await ready(gateway)) === 200, 'the store to work again');
    assert.equal((await client.createTask('delete_user')).status, 'input_required');
    await admin.approve(taskId);
  });
}

test('nobody asks, and the database is removed: /ready says so by itself', async (t) => {
  const { gateway } = await stage(t);
  assert.equal(await ready(gateway), 200);
  fs.rmSync(gateway.storePath);
  await until(async () => (await ready(gateway)) === 503, '/ready to notice');
  await gateway.logged((entry) => /removed or replaced/.test(entry.error));
});

/** A second process on the gateway's file, which waits for it so long. */
async function startSecond(t, gateway, lock_wait) {
  const folder = temporaryFolder(t);
  const file = path.join(folder, 'config.yaml');
  fs.writeFileSync(file, toYaml(configuration({ upstream: gateway.options.upstream, config: { store: { path: gateway.storePath, ...(lock_wait && { lock_wait }) } } })));
  const adminPort = await freePort();
  const second = new Child(BINARY, ['serve', '--config', file], { cwd: folder, env: { THOUGHTGATE_OUTBOUND_PORT: String(await freePort()), THOUGHTGATE_ADMIN_PORT: String(adminPort), THOUGHTGATE_ADMIN_TOKEN: ADMIN_TOKEN }, name: 'second' });
  t.after(() => second.stop());
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  return Object.assign(second, { adminUrl, health: () => fetch(`${adminUrl}/health`).then((answer) => answer.status, () => 0) });
}
const inUse = (gateway) => new RegExp(`in use by another taskgate process with id ${gateway.child.pid}`);

test('a second process is kept out though every file beside the database is removed', async (t) => {
  const { gateway } = await stage(t);
  for (const name of fs.readdirSync(gateway.folder)) if (/\.lock$/.test(name)) fs.rmSync(path.join(gateway.folder, name));
  const second = await startSecond(t, gateway, '0s');
  assert.equal((await within(second.exited, 'the second process to give up')).code, 1, second.stderr);
  assert.match(second.stderr, inUse(gateway));
  assert.match(second.stderr, /taskgate\.db/);
  second.assertNoSanitizerReport();
  assert.equal((await gateway.admin.get('/health')).status, 200);
});

test('a second process waits for the file with its ports closed, ends at SIGTERM, and serves once the first has ended', async (t) => {
  const { gateway, connect } = await stage(t);
  const { taskId } = await (await connect()).createTask('delete_user');
  const [ended, serves] = [await startSecond(t, gateway), await startSecond(t, gateway)];
  for (const second of [ended, serves]) {
    await until(() => inUse(gateway).test(second.stderr), 'the second process to say who has the file');
    assert.equal(await second.health(), 0);
  }
  ended.signal('SIGHUP'); // nothing is there to load again
  const { code, signal } = await ended.stop();
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, ended.stderr);
  assert.match(ended.stderr, /Stopped before the database was free/);
  assert.equal(ended.stderr.match(/Waiting for the database/g).length, 1, 'said once');
  await gateway.child.stop();
  await serves.ready(async () => (await serves.health()) === 200, 'the second process to serve');
  assert.equal((await new AdminClient(serves.adminUrl, ADMIN_TOKEN).task(taskId)).state, 'pending', 'with what the first one kept');
});
