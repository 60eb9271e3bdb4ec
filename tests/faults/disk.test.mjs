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
  const upstream = await startUpstream(t, { tools: [tool('delete_user'), tool('purge_user'), tool('read')] });
  const disk = temporaryFolder(t, 'taskgate-disk-');
  const gateway = new Gateway(temporaryFolder(t), { upstream: upstream.url, rules: [['delete_*', 'approve'], { match: 'purge_*', action: 'approve', execution: 'on_result' }], approval: workflow('10m'), wrapper: wrap(disk), config: { store: { path: path.join(disk, 'taskgate.db') } } });
  defer(t, () => gateway.stop());
  await gateway.start();
  const client = await connectedRaw(t, gateway.url, { token: 'A' });
  return { upstream, gateway, admin: gateway.admin, client, disk };
}

/** While nothing can be written, a call that needs a human fails and says so, and other calls go on. */
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

/** Creates tasks until one is refused; the ids of the others. */
async function createUntilRefused(client, filler) {
  const ids = [];
  for (;;) {
    const { result, error } = await client.call('tools/call', { name: 'delete_user', arguments: { filler }, task: {} });
    if (error) return { ids, error };
    ids.push(result.task.taskId);
    assert.ok(ids.length < 100, 'the disk is full at last');
  }
}

// SQLite may still find room in its log when the disk has none: a small change may pass, or not, but never halfway.
test('disk full: no id is given that is not kept, no decision that is not, and it goes on when there is room', { skip: mountsMissing }, async (t) => {
  const { upstream, gateway, admin, client, disk } = await stage(t, (disk) => smallDisk(disk, '3m'));
  const executed = () => upstream.calls.filter((call) => call.rpc.params.name === 'delete_user').length;
  const { ids, error } = await createUntilRefused(client, 'x'.repeat(50_000));
  assert.deepEqual([error.code, error.data.error_type], [-32013, 'service_unavailable']);
  assert.ok(ids.length > 5, `${ids.length} tasks fit`);
  await gateway.logged(/store has failed/);
  const filler = seenBy(gateway.child.pid, path.join(disk, 'filler'));
  fill(filler);
  const more = await createUntilRefused(client, 'x'.repeat(50_000));
  assert.equal(more.error.code, -32013);
  ids.push(...more.ids);
  assert.ok(await client.result('tools/call', { name: 'read' }), 'what needs no human passes');
  assert.equal((await admin.get('/health')).status, 200);
  const decisions = await Promise.all(ids.slice(0, 5).map((id) => admin.decide('approve', id)));
  fs.rmSync(filler);
  enlarge(gateway.child.pid, disk, '64m');
  await until(async () => (await admin.get('/ready')).status === 200, 'the gateway to be ready again');
  const approved = ids.filter((_, i) => decisions[i]?.status === 200);
  for (const id of approved) await admin.inState(id, 'completed');
  assert.deepEqual(decisions.map(({ status }) => status).filter((status) => status !== 200 && status !== 503), []);
  assert.equal(executed(), approved.length, 'what was refused has not been executed');
  const tasks = await allTasks(admin);
  assert.deepEqual([...tasks.keys()].sort(), [...ids].sort(), 'exactly the tasks that were answered are there');
  for (const id of ids) assert.equal(tasks.get(id).state, approved.includes(id) ? 'completed' : 'pending');
  await admin.approve(ids[ids.length - 1]);
  await admin.inState(ids[ids.length - 1], 'completed');
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
  place.gateway.child.signal('SIGXFSZ'); // the kernel sends it to any writer, even of a line of the log
  await failsClosed(place, taskId);
  limitFiles(place.gateway.child.pid, 'unlimited');
  await worksAgain(place, taskId);
});

test('the disk is full when an approved call is to begin: it begins when there is room, and who waits for it is answered', async (t) => {
  const { upstream, gateway, admin, client } = await stage(t);
  const { taskId } = await client.createTask('purge_user');
  await admin.approve(taskId);
  limitFiles(gateway.child.pid, 0);
  const result = client.result('tasks/result', { taskId }, { deadline: 10_000 });
  await gateway.logged(/store has failed/);
  assert.equal(upstream.calls.length, 0, 'nothing is sent before it is on the disk that it will be');
  limitFiles(gateway.child.pid, 'unlimited');
  assert.ok((await result).content);
  assert.equal(upstream.calls.length, 1);
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
  assert.ok(child.stderr.includes(`the store's folder ${disk} `), child.stderr);
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
