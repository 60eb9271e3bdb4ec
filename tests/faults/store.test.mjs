// The database itself: locked by another program, or with overwritten pages.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { Child } from '../integration/lib/child.mjs';
import { BINARY, workflow } from '../integration/lib/gateway.mjs';
import { defer } from '../integration/lib/lifetime.mjs';
import { scene } from '../integration/lib/scene.mjs';
import { tool } from '../integration/lib/upstream.mjs';
import { until } from '../integration/lib/wait.mjs';
import { holdLock, sqliteMissing } from './lib/lock.mjs';
import { generator, seed } from '../integration/lib/random.mjs';

const stage = (t, more = {}) => scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user'), tool('read')] }, ...more });

test('a database that another program holds for a moment: who creates and who decides waits, no loop does', { skip: sqliteMissing }, async (t) => {
  const { upstream, gateway, admin, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  const lock = await holdLock(t, gateway.storePath);
  let answered = 0;
  const create = client.createTask('delete_user').finally(() => answered++);
  const decision = admin.approve(taskId).finally(() => answered++);
  const longest = await slowestForward(client, 40);
  assert.ok(longest < 1000, `a forwarded call took ${longest} ms`);
  assert.equal(answered, 0, 'nobody is answered before the commit');
  assert.equal(upstream.calls.filter((call) => call.rpc.params.name === 'delete_user').length, 0);
  await lock.release();
  await Promise.all([create, decision]);
  await admin.inState(taskId, 'completed');
});

test('a database that another program keeps: what needs a human is refused, and all goes on when it lets go', { skip: sqliteMissing }, async (t) => {
  const { upstream, gateway, admin, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  const lock = await holdLock(t, gateway.storePath);
  const refusal = client.error('tools/call', { name: 'delete_user', task: {} });
  const decision = admin.decide('approve', taskId);
  assert.ok((await slowestForward(client, 40)) < 1000);
  assert.equal((await refusal).code, -32013);
  assert.equal((await decision).status, 503);
  assert.equal((await admin.get('/ready')).status, 503);
  await lock.release();
  await until(async () => (await admin.get('/ready')).status === 200, 'the gateway to be ready again');
  assert.equal((await admin.task(taskId)).state, 'pending');
  assert.equal((await admin.list()).tasks.length, 1, 'the refused create has left nothing');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.equal(upstream.calls.filter((call) => call.rpc.params.name === 'delete_user').length, 1);
});

async function slowestForward(client, count) {
  let longest = 0;
  for (let i = 0; i < count; i++) {
    const began = performance.now();
    await client.result('tools/call', { name: 'read' });
    longest = Math.max(longest, performance.now() - began);
  }
  return longest;
}

/** Writes noise over `pages` random pages of the database, never its first: SQLite refuses that one itself. */
function corrupt(file, random, pages) {
  const descriptor = fs.openSync(file, 'r+');
  const head = Buffer.alloc(100);
  fs.readSync(descriptor, head, 0, 100, 0);
  const size = head.readUInt16BE(16) === 1 ? 65_536 : head.readUInt16BE(16);
  const count = fs.fstatSync(descriptor).size / size;
  for (let i = 0; i < pages; i++) {
    const noise = Buffer.from(Array.from({ length: size }, () => Math.floor(random() * 256)));
    fs.writeSync(descriptor, noise, 0, size, size * (1 + Math.floor(random() * (count - 1))));
  }
  fs.closeSync(descriptor);
}

/** Everything that can be asked of it is answered somehow, and nothing is executed. */
async function askEverything({ upstream, gateway, admin }, client, ids) {
  for (const taskId of ids.slice(0, 5)) {
    for (const method of ['tasks/get', 'tasks/cancel']) assert.ok((await client.send(method, { taskId })).message, method);
    assert.ok((await admin.get(`/api/v1/tasks/${taskId}`)).status >= 200);
  }
  assert.ok((await client.send('tasks/list', {})).message);
  assert.ok((await client.send('tools/call', { name: 'delete_user', task: {} })).message);
  assert.ok((await admin.get('/api/v1/tasks')).status >= 200);
  assert.ok(await client.result('tools/call', { name: 'read' }), 'what needs no human passes');
  assert.deepEqual(upstream.calls.map((call) => call.rpc.params.name).filter((name) => name !== 'read'), [], 'nothing approves itself');
  assert.equal(gateway.child.exit, null, gateway.child.output());
}

for (const pages of [1, 2, 4, 8, 16, 32]) {
  test(`${pages} overwritten pages of the database: a start that fails says why, one that succeeds executes nothing unasked (TASKGATE_SEED=${seed})`, async (t) => {
    const random = generator(seed + pages);
    const { upstream, gateway, admin, connect } = await stage(t);
    const client = await connect({ token: 'A' });
    const ids = [];
    for (let i = 0; i < 60; i++) ids.push((await client.createTask('delete_user', { filler: 'x'.repeat(500) })).taskId);
    client.close();
    await gateway.stop();
    corrupt(gateway.storePath, random, pages);
    const child = new Child(BINARY, ['serve', '--config', gateway.configPath], { env: gateway.environment(), cwd: gateway.folder, name: 'taskgate on a broken database' });
    defer(t, () => child.stop('SIGKILL'));
    const started = await until(async () => child.exit || (await admin.get('/health').then(() => 'up', () => false)), 'it to start or to give up');
    if (started !== 'up') {
      t.diagnostic(`it gave up: ${child.stderr.trim().slice(-200)}`);
      assert.deepEqual(child.exit, { code: 1, signal: null }, child.output());
      assert.match(child.stderr, /taskgate\.db: .*(malformed|corrupt|not a database)/);
      assert.equal(upstream.calls.length, 0);
      return;
    }
    await askEverything({ upstream, gateway: { child }, admin }, client, ids);
    client.close();
    assert.deepEqual(await child.stop('SIGTERM'), { code: 0, signal: null }, child.output());
    child.assertNoSanitizerReport();
  });
}

test(`pages overwritten under a running gateway (TASKGATE_SEED=${seed})`, async (t) => {
  const place = await stage(t, { config: { limits: { pending_per_principal: 1000 } } });
  const client = await place.connect({ token: 'A' });
  const ids = await Promise.all(Array.from({ length: 300 }, async () => (await client.createTask('delete_user', { filler: 'x'.repeat(2000) })).taskId));
  // The content of the log is not yet in the file: wait for the idle moment that moves it.
  await until(() => fs.statSync(place.gateway.storePath).size > 500_000, 'a checkpoint');
  corrupt(place.gateway.storePath, generator(), 200);
  await askEverything(place, client, ids);
});
