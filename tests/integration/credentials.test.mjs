// With which headers and credentials an approved call is executed, and how often.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const stage = (t, more = {}) => scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), ...more.gateway, upstream: { tools: [tool('delete_user')], ...more.upstream } });
const poll = (client, taskId, headers) => client.result('tasks/get', { taskId }, { headers });
const ofCall = ({ headers }) => [headers['x-tenant'], headers.authorization, headers.cookie];

for (const workers of [1, 4]) {
  test(`execution sends the headers of the create, with the credentials of the last call (workers: ${workers})`, async (t) => {
    const { upstream, admin, connect } = await stage(t, { gateway: { config: { workers } } });
    const client = await connect({ token: 'old', headers: { 'x-tenant': 'a', cookie: 'c=1' } });
    const { taskId } = await client.createTask('delete_user');
    client.headers = { ...client.headers, 'x-tenant': 'b', 'x-more': '1', authorization: 'Bearer new', cookie: 'c=2' };
    client.close(); // later connections may be another worker's
    upstream.authorize = (r) => (r.rpc?.method === 'tools/call' && r.headers.authorization !== 'Bearer new' ? 401 : 0);
    for (let i = 0; i < 8; i++) await poll(client, taskId);
    await admin.approve(taskId);
    await until(async () => (await poll(client, taskId)).status === 'completed', 'the task to run');
    const run = upstream.calls.at(-1);
    assert.deepEqual(ofCall(run), ['a', 'Bearer new', 'c=2']);
    assert.equal(run.headers['x-more'], undefined);
  });
}

test('after a restart a call with other headers lends no credentials, and statusMessage says so', async (t) => {
  const { gateway, upstream, admin, connect } = await stage(t);
  const client = await connect({ token: 'a', headers: { 'x-tenant': 'a' } });
  const { taskId } = await client.createTask('delete_user');
  await gateway.restart();
  await poll(client, taskId, { 'x-tenant': 'b' });
  await admin.approve(taskId);
  const refused = await poll(client, taskId, { 'x-tenant': 'b' });
  assert.equal(refused.status, 'working');
  assert.match(refused.statusMessage, /headers of the last call differ/);
  await until(async () => /headers of the last call differ/.test((await admin.task(taskId)).statusMessage), 'operators to read it, too');
  assert.equal(upstream.calls.length, 0);
  // Headers that differ between calls of one client do not count.
  await poll(client, taskId, { 'user-agent': 'other', traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', accept: 'application/json' });
  await admin.inState(taskId, 'completed');
  assert.deepEqual(ofCall(upstream.calls[0]), ['a', 'Bearer a', undefined]);
  assert.equal(upstream.calls.length, 1);
});

for (const status of [401, 403, 404]) {
  test(`HTTP ${status} again and again: once for each credentials, three times in all, then failed`, async (t) => {
    const { upstream, admin, connect } = await stage(t, { upstream: { authorize: (r) => (r.rpc?.method === 'tools/call' ? status : 0) } });
    const each = status === 404 ? 2 : 1; // 404 may mean that the session has gone: the call is sent in a new one, too
    const client = await connect({ token: '1' });
    const { taskId } = await client.createTask('delete_user');
    await admin.approve(taskId);
    for (const [tries, token] of [[1, '1'], [2, '2']]) {
      client.headers.authorization = `Bearer ${token}`;
      await until(async () => (await poll(client, taskId), upstream.calls.length === tries * each), `try ${tries}`);
      await admin.inState(taskId, 'approved');
      for (let i = 0; i < 6; i++) assert.equal((await poll(client, taskId)).status, 'working');
      assert.equal(upstream.calls.length, tries * each, 'not again with the same credentials');
    }
    client.headers.authorization = 'Bearer 1';
    for (let i = 0; i < 3; i++) await poll(client, taskId);
    assert.equal(upstream.calls.length, 2 * each, 'nor with earlier ones');
    client.headers.authorization = 'Bearer 3';
    await until(async () => (await poll(client, taskId)).status === 'failed', 'the third try to be the last');
    client.headers.authorization = 'Bearer 4';
    const error = await client.error('tasks/result', { taskId });
    assert.deepEqual([error.code, error.data.error_type], [-32002, 'upstream_error']);
    assert.match((await admin.task(taskId)).statusMessage, /refused the credentials/);
    assert.deepEqual(upstream.calls.map((c) => c.headers.authorization), ['Bearer 1', 'Bearer 2', 'Bearer 3'].flatMap((one) => Array(each).fill(one)));
  });
}

test('refused credentials are known after a restart', async (t) => {
  const { gateway, upstream, admin, connect } = await stage(t, { upstream: { authorize: (r) => (r.rpc?.method === 'tools/call' ? 401 : 0) } });
  const client = await connect({ token: '1' });
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await until(async () => /refused/.test((await admin.task(taskId)).statusMessage), 'the first try');
  await gateway.restart();
  for (let i = 0; i < 5; i++) await poll(client, taskId);
  assert.equal(upstream.calls.length, 1);
  upstream.authorize = undefined;
  client.headers.authorization = 'Bearer 2';
  await until(async () => (await poll(client, taskId)).status === 'completed', 'the task to run');
  assert.equal(upstream.calls.length, 2);
});
