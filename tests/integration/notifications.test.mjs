// Task status on the owner's GET stream: both forms, and only where upstream advertises them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { assertSchema } from './lib/schema.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const SSE = { tools: {}, notifications: { tasks: { status: true } } };
const stage = (t, capabilities) => scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { capabilities, tools: [tool('delete_user')] } });

const isStatus = (event) => event.event === 'task_status' || event.json?.method === 'notifications/tasks/status';

for (const end of ['completed', 'failed', 'cancelled']) {
  test(`advertised: the owner hears of ${end} as the seed's event and as a JSON-RPC notification, both without id`, async (t) => {
    const { admin, connect } = await stage(t, SSE);
    const client = await connect();
    const stream = await client.listen();
    const { taskId } = await client.createTask('delete_user');
    if (end === 'completed') await admin.approve(taskId);
    if (end === 'failed') await admin.reject(taskId, 'no way');
    if (end === 'cancelled') await client.result('tasks/cancel', { taskId });
    const event = await stream.next((e) => e.event === 'task_status' && e.json.status === end, `task_status ${end}`);
    assert.equal(event.json.taskId, taskId);
    assert.match(event.json.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
    if (end === 'failed') assert.match(event.json.statusMessage, /no way/);
    const message = await stream.next(isStatus, 'the JSON-RPC notification right behind it');
    assert.equal(message.json.method, 'notifications/tasks/status');
    assert.ok(message.event === undefined || message.event === 'message');
    assert.deepEqual([message.json.params.taskId, message.json.params.status], [taskId, end]);
    assertSchema(t, 'TaskStatusNotification', message.json);
    for (const e of stream.events.filter(isStatus)) assert.equal(e.id, undefined);
  });
}

test('not advertised: the stream carries no task status', async (t) => {
  const { upstream, admin, connect } = await stage(t, { tools: {} });
  const client = await connect();
  const stream = await client.listen();
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'fence' } });
  await stream.message((m) => m.params?.data === 'fence');
  assert.deepEqual(stream.events.filter(isStatus), []);
});

test('nobody else hears of it', async (t) => {
  const { upstream, admin, connect } = await stage(t, SSE);
  const [owner, other] = [await connect(), await connect()];
  const [own, foreign] = [await owner.listen(), await other.listen()];
  const { taskId } = await owner.createTask('delete_user');
  await admin.approve(taskId);
  await own.next((e) => e.event === 'task_status' && e.json.status === 'completed');
  await until(() => upstream.getStreams.size >= 2, 'both streams upstream');
  upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'fence' } });
  await foreign.message((m) => m.params?.data === 'fence');
  assert.deepEqual(foreign.events.filter(isStatus), []);
});

test('our events never break into one of upstream that is only half there', async (t) => {
  const { upstream, admin, connect } = await stage(t, SSE);
  const client = await connect();
  const stream = await client.listen();
  const { taskId } = await client.createTask('delete_user');
  await until(() => upstream.getStreams.size >= 1, 'the stream upstream');
  const half = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info",';
  for (const up of upstream.getStreams) up.raw(`data: ${half}`);
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  for (const up of upstream.getStreams) up.raw('"data":"whole"}}\n\n');
  await stream.message((m) => m.params?.data === 'whole');
  await stream.next((e) => e.event === 'task_status' && e.json?.status === 'completed').catch(() => {});
  assert.ok(stream.events.some((e) => e.event === 'task_status' && e.json.status === 'completed'));
  assert.ok(stream.events.every((e) => e.data === undefined || e.data === '' || e.json !== undefined), stream.raw);
});

test("upstream's own task notifications pass as they are", async (t) => {
  const { upstream, connect } = await stage(t, SSE);
  const client = await connect();
  const stream = await client.listen();
  await until(() => upstream.getStreams.size >= 1, 'the stream upstream');
  const own = { jsonrpc: '2.0', method: 'notifications/tasks/status', params: { taskId: 'up-1', status: 'working', createdAt: 'x', lastUpdatedAt: 'y', ttl: null } };
  upstream.push(own, { id: 'own-1' });
  const event = await stream.next(isStatus);
  assert.deepEqual([event.id, event.json], ['own-1', own]);
});
