// The store's disk: full, read-only, too small a limit. Nothing that needs a human passes, and all is there again afterwards.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { BINARY, Gateway, temporaryFolder, workflow } from '../integration/lib/gateway.mjs';
import { connectedRaw } from '../integration/lib/client.mjs';
import { Child } from '../integration/lib/child.mjs';
import { defer } from '../integration/lib/lifetime.mjs';
import { startUpstream, tool } from '../integration/lib/upstream.mjs';
import { signal, until, within } from '../integration/lib/wait.mjs';
import { enlarge, fill, limitFiles, mountsMissing, readOnly, seenBy, smallDisk } from './lib/disk.mjs';
import { allTasks } from './lib/ledger.mjs';

/** A gateway with its store in a folder of its own, and one client. `wrap(folder)` says how it is run. */
async function stage(t, wrap = () => []) {
  const upstream = await startUpstream(t, { tools: [tool('delete_user'), tool('read')] });
  const disk = temporaryFolder(t, 'taskgate-disk-');
  const gateway = new Gateway(temporaryFolder(t), { upstream: upstream.url, rules: [['delete_*', 'approve']], approval: workflow('10m'), wrapper: wrap(disk), config: { store: { path: path.join(disk, 'taskgate.db') } } });
  defer(t, () => gateway.stop());
  await gateway.start();
  const client = await connectedRaw(t, gateway.url, { token: 'A' });
  return { upstream, gateway, admin: gateway.admin, client, disk };
}

/** While nothing can be written: what needs a human fails and says so, the rest goes on. */
async function failsClosed({ upstream, gateway, admin, client }, taskId) {
  const before = upstream.calls.length;
  const refusal = await client.error('tools/call', { name: 'delete_user', arguments: { who: 'x'.repeat(20_000) }, task: {} });
  assert.deepEqual([refusal.code, refusal.data.error_type], [-32013, 'service_unavailable']);
  const decision = await admin.decide('approve', taskId);
  assert.equal(decision.status, 503, decision.text);
  assert.equal(upstream.calls.length, before, 'nothing was executed');
  assert.ok(await client.result('tools/call', { name: 'read' }), 'what needs no human passes');
  assert.equal((await admin.get('/health')).status, 200);
  const ready = await admin.get('/ready');
  assert.deepEqual([ready.status, ready.json.checks.store], [503, false]);
  await gateway.logged(/store has failed/);
}

async function worksAgain({ upstream, gateway, admin, client }, taskId) {
  await until(async () => (await admin.get('/ready')).status === 200, 'the gateway to be ready again');
  await gateway.logged(/store works again/);
  assert.equal((await admin.task(taskId)).state, 'pending', 'the approval that failed has left no trace');
  const before = upstream.calls.filter((call) => call.rpc.params.name === 'delete_user').length;
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.ok((await client.result('tasks/result', { taskId })).content);
  assert.equal(upstream.calls.filter((call) => call.rpc.params.name === 'delete_user').length, before + 1);
}

test('disk full: no id is given that is not kept, nothing is executed, and it goes on when there is room', { skip: mountsMissing }, async (t) => {
  const place = await stage(t, (disk) => smallDisk(disk, '3m'));
  const { gateway, admin, client, disk } = place;
  const ids = [];
  let refusal;
  while (!refusal) {
    const answer = await client.call('tools/call', { name: 'delete_user', arguments: { who: 'x'.repeat(50_000) }, task: {} });
    if (answer.result) ids.push(answer.result.task.taskId);
    else refusal = answer.error;
    assert.ok(ids.length < 100, 'the disk is full at last');
  }
  assert.equal(refusal.code, -32013);
  assert.ok(ids.length > 5, `${ids.length} tasks fit`);
  const filler = seenBy(gateway.child.pid, path.join(disk, 'filler'));
  fill(filler);
  await failsClosed(place, ids[0]);
  assert.deepEqual([...(await allTasks(admin)).keys()].sort(), [...ids].sort(), 'exactly the tasks that were answered are there');
  fs.rmSync(filler);
  enlarge(gateway.child.pid, disk, '64m');
  await worksAgain(place, ids[0]);
});

test('the disk is full when upstream answers: the result waits for room, and is not lost', { skip: mountsMissing }, async (t) => {
  const { upstream, gateway, admin, client, disk } = await stage(t, (disk) => smallDisk(disk, '4m'));
  const answered = signal();
  upstream.handlers['tools/call'] = async ({ reply }) => {
    await answered.promise;
    reply.result({ content: [{ type: 'text', text: 'the only copy'.padEnd(50_000, '.') }] });
  };
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await upstream.received('tools/call');
  const filler = seenBy(gateway.child.pid, path.join(disk, 'filler'));
  fill(filler);
  answered.fire();
  await gateway.logged(/could not be stored yet/);
  assert.equal((await client.result('tasks/get', { taskId })).status, 'working');
  fs.rmSync(filler);
  await admin.inState(taskId, 'completed');
  assert.match((await client.result('tasks/result', { taskId })).content[0].text, /^the only copy/);
  assert.equal(upstream.calls.length, 1);
});

test('no file may grow (RLIMIT_FSIZE): the process lives, fails closed, and goes on when the limit is lifted', async (t) => {
  const place = await stage(t);
  const { taskId } = await place.client.createTask('delete_user');
  limitFiles(place.gateway.child.pid, 0);
  place.gateway.child.signal('SIGXFSZ'); // what the kernel sends to whoever writes, were it only a line of the log
  await failsClosed(place, taskId);
  limitFiles(place.gateway.child.pid, 'unlimited');
  await worksAgain(place, taskId);
});

test('a read-only disk: it does not start, says why, and has changed nothing', { skip: mountsMissing }, async (t) => {
  const { gateway, admin, client, disk } = await stage(t);
  const { taskId } = await client.createTask('delete_user');
  client.close();
  await gateway.stop();
  const [command, ...args] = [...readOnly(disk), BINARY, 'serve', '--config', gateway.configPath];
  const child = new Child(command, args, { env: gateway.environment(), cwd: gateway.folder, name: 'taskgate on a read-only disk' });
  const exit = await within(child.exited, 'it to give up', 15_000);
  assert.deepEqual(exit, { code: 1, signal: null }, child.output());
  assert.match(child.stderr, /taskgate\.db/);
  assert.match(child.stderr, /[Rr]ead-only file system/);
  await gateway.launch();
  assert.equal((await admin.task(taskId)).state, 'pending');
});

test('a read-only database file', { skip: process.getuid() === 0 && mountsMissing ? 'root may write to any file' : false }, async (t) => {
  const { gateway, admin, client, disk } = await stage(t);
  const { taskId } = await client.createTask('delete_user');
  client.close();
  await gateway.stop();
  const file = path.join(disk, 'taskgate.db');
  const wrapper = process.getuid() === 0 ? readOnly(file) : [];
  fs.chmodSync(file, 0o400);
  const [command, ...args] = [...wrapper, BINARY, 'serve', '--config', gateway.configPath];
  const child = new Child(command, args, { env: gateway.environment(), cwd: gateway.folder, name: 'taskgate with a read-only database' });
  const exit = await within(child.exited, 'it to give up', 15_000);
  assert.deepEqual(exit, { code: 1, signal: null }, child.output());
  assert.match(child.stderr, /taskgate\.db/);
  fs.chmodSync(file, 0o600);
  await gateway.launch();
  assert.equal((await admin.task(taskId)).state, 'pending');
});
