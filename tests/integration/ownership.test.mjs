// The owner of a task: no other client can see it, guess it, list it or end it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { callTool, kinds, pendingText } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const stage = (t, more = {}) => scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), ...more, upstream: { tools: [tool('delete_user')], ...more.upstream } });

async function seesNothing(stranger, owner, taskId) {
  const unknown = 'tg_00000000-0000-4000-8000-000000000000';
  for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
    const [theirs, nobodys] = [await stranger.send(method, { taskId }, { id: 'same' }), await stranger.send(method, { taskId: unknown }, { id: 'same' })];
    const comparable = (answer) => answer.text.replaceAll(taskId, '<id>').replaceAll(unknown, '<id>').replace(/"correlation_id":"[^"]*"/, '');
    assert.equal(comparable(theirs), comparable(nobodys), `${method} answers exactly as for an unknown task`);
    assert.equal(theirs.message.error.code, -32602);
    assert.equal(theirs.status, nobodys.status);
  }
  assert.deepEqual((await stranger.result('tasks/list')).tasks, []);
  assert.equal((await owner.result('tasks/get', { taskId })).status, 'input_required', 'and the task is as it was');
}

test('with Authorization the token is the owner: its other sessions see the task, other tokens do not', async (t) => {
  const { admin, connect } = await stage(t);
  const [one, two, other, none] = [await connect({ token: 'A' }), await connect({ token: 'A' }), await connect({ token: 'B' }), await connect()];
  const { taskId } = await one.createTask('delete_user');
  assert.deepEqual((await two.result('tasks/list')).tasks.map((x) => x.taskId), [taskId]);
  await seesNothing(other, one, taskId);
  await seesNothing(none, one, taskId);
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.ok((await two.result('tasks/result', { taskId })).content);
  assert.equal((await other.error('tasks/result', { taskId })).code, -32602);
});

test('without Authorization the session is the owner', async (t) => {
  const { connect } = await stage(t);
  const [one, two] = [await connect(), await connect()];
  const { taskId } = await one.createTask('delete_user');
  assert.deepEqual((await one.result('tasks/list')).tasks.map((x) => x.taskId), [taskId]);
  await seesNothing(two, one, taskId);
});

test('identity: session makes the session the owner although there is a token', async (t) => {
  const { connect } = await stage(t, { source: { identity: 'session' } });
  const [one, two] = [await connect({ token: 'shared' }), await connect({ token: 'shared' })];
  const { taskId } = await one.createTask('delete_user');
  await seesNothing(two, one, taskId);
});

test('neither token nor session: reachable by its id only, in no list', async (t) => {
  const { raw } = await stage(t, { upstream: { sessions: false } });
  const [one, two] = [raw(), raw()];
  const { taskId } = await one.createTask('delete_user');
  assert.equal((await two.result('tasks/get', { taskId })).taskId, taskId);
  assert.deepEqual((await one.result('tasks/list')).tasks, []);
});

test('no unverified claim is read: JWTs with the same subject are different owners', async (t) => {
  const { connect } = await stage(t);
  const jwt = (signature) => `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{"sub":"admin"}').toString('base64url')}.${signature}`;
  const [one, two] = [await connect({ token: jwt('x') }), await connect({ token: jwt('y') })];
  const { taskId } = await one.createTask('delete_user');
  await seesNothing(two, one, taskId);
});

test('a rotated token in the task\'s own session owns it too, once upstream has accepted it there', async (t) => {
  const { upstream, connect } = await stage(t, { upstream: { authorize: (r) => (r.headers.authorization === 'Bearer stolen-guess' ? 401 : 0) } });
  const client = await connect({ token: 'first' });
  const { taskId } = await client.createTask('delete_user');
  const guess = await client.send('tasks/get', { taskId }, { headers: { authorization: 'Bearer stolen-guess' } });
  assert.equal(guess.status, 401);
  client.headers.authorization = 'Bearer second';
  assert.equal((await client.result('tasks/get', { taskId })).taskId, taskId);
  assert.ok(upstream.of('ping').some((r) => r.headers.authorization === 'Bearer second' && r.headers['mcp-session-id'] === client.session && r.isGatewaysOwn));
});

test('a session that upstream does not know gets no task and no answer for one: its 404 comes down', async (t) => {
  const { upstream, admin, connect, raw } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const forged = raw();
  forged.session = 'no-such-session';
  forged.initialized = true;
  for (const [method, params] of [['tools/call', { name: 'delete_user', task: {} }], ['tasks/get', { taskId }], ['tasks/list', {}]]) {
    const answer = await forged.send(method, params);
    assert.equal(answer.status, 404, method);
  }
  assert.equal((await admin.list()).tasks.length, 1);
  assert.ok(upstream.of('ping').every((r) => r.isGatewaysOwn));
});

for (const status of [401, 403]) {
  test(`a token that upstream refuses with ${status} creates no task`, async (t) => {
    const { admin, connect } = await stage(t, { upstream: { authorize: (r) => (r.headers.authorization === 'Bearer bad' ? status : 0) } });
    const client = await connect({ token: 'good' });
    const answer = await client.send('tools/call', { name: 'delete_user', task: {} }, { headers: { authorization: 'Bearer bad' } });
    assert.deepEqual([answer.status, answer.text], [status, `refused with ${status}`]);
    assert.deepEqual((await admin.list()).tasks, []);
  });
}

test('a pair that upstream has just accepted is not asked about again', async (t) => {
  const { upstream, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  for (let i = 0; i < 5; i++) await client.result('tasks/get', { taskId });
  assert.equal(upstream.of('ping').length, 0);
});

test('with upstream down a pair known from before suffices, an unknown one does not', async (t) => {
  const { upstream, connect, raw } = await stage(t);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  await upstream.stop();
  assert.equal((await client.result('tasks/get', { taskId })).status, 'input_required');
  assert.match((await client.createTask('delete_user')).taskId, /^tg_/);
  const stranger = raw({ token: 'never-seen' });
  stranger.session = client.session;
  assert.equal((await stranger.error('tasks/get', { taskId })).code, -32000);
});

test('after a restart the owner is asked about once with a ping, and has its task', async (t) => {
  const { upstream, gateway, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  await gateway.restart();
  assert.equal((await client.result('tasks/get', { taskId })).status, 'input_required');
  const pings = upstream.of('ping').filter((r) => r.headers['mcp-session-id'] === client.session);
  assert.equal(pings.length, 1);
  assert.match(pings[0].rpc.id, /^tg:/);
  assert.equal(pings[0].headers.authorization, 'Bearer A');
});

test('DELETE of a session cancels its undecided tasks', async (t) => {
  const { admin, connect } = await stage(t);
  const [client, bystander] = [await connect(), await connect()];
  const { taskId } = await client.createTask('delete_user');
  const kept = (await bystander.createTask('delete_user')).taskId;
  assert.equal((await client.delete()).status, 200);
  await admin.inState(taskId, 'cancelled');
  assert.equal((await admin.task(kept)).state, 'pending');
});

test('DELETE of a session leaves the tasks that Authorization owns', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  await client.delete();
  const again = await connect({ token: 'A' });
  assert.equal((await again.result('tasks/get', { taskId })).status, 'input_required');
  assert.equal((await admin.task(taskId)).state, 'pending');
});

test('a DELETE that upstream refuses cancels nothing', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  upstream.onHttp = (r, reply) => r.method === 'DELETE' && (reply.http(405), true);
  await client.delete();
  assert.equal((await admin.task(taskId)).state, 'pending');
  assert.equal((await client.result('tasks/get', { taskId })).status, 'input_required');
});

test('credentials are dropped on DELETE: an approval afterwards waits for fresh ones', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  await client.delete();
  await admin.approve(taskId);
  assert.equal((await admin.task(taskId)).state, 'approved');
  assert.equal(upstream.calls.length, 0);
  const again = await connect({ token: 'A' });
  await until(async () => (await again.result('tasks/get', { taskId })).status === 'completed', 'the execution with fresh credentials');
  assert.equal(upstream.calls.length, 1);
  assert.equal(upstream.calls[0].headers['mcp-session-id'], again.session);
});

test('task ids are not guessable', async (t) => {
  const { connect } = await stage(t);
  const client = await connect();
  const ids = [];
  for (let i = 0; i < 20; i++) ids.push((await client.createTask('delete_user')).taskId);
  assert.equal(new Set(ids).size, ids.length);
  const nibbles = ids.map((id) => id.replace(/tg_|-/g, ''));
  for (const at of [0, 5, 15, 20, 31]) assert.ok(new Set(nibbles.map((n) => n[at])).size > 1, `digit ${at} never changes`);
});

test('identity: anonymous makes one owner of all sessions without a token, and of none that has one', async (t) => {
  const { upstream, admin, connect } = await stage(t, { source: { identity: 'anonymous' }, config: { pseudo_tools: { wait: '200ms', wait_max: '200ms' } } });
  const plain = (options) => connect({ ...kinds.old.client, ...options });
  const [one, holder] = [await plain(), await plain({ token: 'A' })];
  const ask = async (client) => (await callTool(client, 'delete_user')).structuredContent;
  const first = await ask(one);
  const id = first.proxy_task.task_id;
  assert.equal(first.message, pendingText('delete_user', id, { token: true }));
  const held = await ask(holder);
  assert.deepEqual([held.joined, held.proxy_task.task_id === id], [false, false]);
  assert.equal((await callTool(holder, 'get_task', { task_id: id })).isError, true);
  assert.equal((await callTool(one, 'get_task', { task_id: held.proxy_task.task_id })).isError, true);
  // The end of its session ends nothing of it.
  await one.delete();
  assert.equal((await admin.task(id)).state, 'pending');
  const two = await plain();
  const again = await ask(two);
  assert.deepEqual([again.joined, again.proxy_task.task_id], [true, id]);
  const three = await plain();
  await two.delete();
  await admin.approve(id);
  assert.equal((await admin.task(id)).state, 'approved'); // no credentials are there
  assert.equal((await callTool(three, 'get_task_result', { task_id: id, timeout_ms: 20_000 })).content[0].text, 'did delete_user');
  assert.equal((await callTool(await plain(), 'get_task_result', { task_id: id })).content[0].text, 'did delete_user');
  assert.equal(upstream.calls.length, 1);
  assert.match((await admin.task(id)).principal, /\(anonymous shared\)$/);
});
