// The database's file under a running gateway: one process's, and still where it was.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { run } from './lib/child.mjs';
import { BINARY, configuration, temporaryFolder, workflow } from './lib/gateway.mjs';
import { freePort } from './lib/ports.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';
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

test('a second process is kept out though every file beside the database is removed', async (t) => {
  const { gateway } = await stage(t);
  for (const name of fs.readdirSync(gateway.folder)) if (/\.lock$/.test(name)) fs.rmSync(path.join(gateway.folder, name));
  const folder = temporaryFolder(t);
  const file = path.join(folder, 'config.yaml');
  fs.writeFileSync(file, toYaml(configuration({ upstream: 'http://127.0.0.1:9/', store: gateway.storePath })));
  const env = { THOUGHTGATE_OUTBOUND_PORT: String(await freePort()), THOUGHTGATE_ADMIN_PORT: String(await freePort()) };
  const second = await run('timeout', ['10', BINARY, 'serve', '--config', file], { cwd: folder, env });
  assert.equal(second.code, 1, second.stderr);
  assert.match(second.stderr, new RegExp(`in use by another taskgate process with id ${gateway.child.pid}`));
});
