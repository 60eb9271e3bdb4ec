// Progress, log messages and notifications of calls that the gateway runs: they reach the client, tied to the task.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { PLAIN, promoted, stage } from './lib/promotion.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const RELATED = 'io.modelcontextprotocol/related-task';
const log = (n) => ({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', logger: 'kitchen', data: { n } } });

/** A call that stands still until `finish()`. */
async function running(t, connectOptions) {
  const held = [];
  const s = await scene(t, {
    rules: [['slow', 'approve']],
    approval: workflow('10m'),
    config: { pseudo_tools: { only: 'all' } },
    upstream: { tools: [tool('slow')], handlers: { 'tools/call': ({ reply, id, params }) => {
      const stream = reply.sse();
      held.push({ ...stream, token: params._meta?.progressToken, finish: () => (stream.event({ jsonrpc: '2.0', id, result: { content: [] } }), stream.end()) });
    } } },
  });
  const client = await s.connect(connectOptions);
  return { ...s, client, held: () => until(() => held[0], 'the call upstream') };
}

test('log messages go to who waits in tasks/result, with related-task', async (t) => {
  const { client, admin, held } = await running(t);
  const { taskId } = await client.createTask('slow');
  const waiting = await client.stream('tasks/result', { taskId });
  await admin.approve(taskId);
  const call = await held();
  call.event(log(1));
  const seen = await waiting.message((m) => m.method === 'notifications/message', 'the log message');
  assert.deepEqual(seen, { ...log(1), params: { ...log(1).params, _meta: { [RELATED]: { taskId } } } });
  call.finish();
  await waiting.message((m) => m.id === waiting.id, 'the result');
});

test('if nobody waits they go to the GET stream, with related-task', async (t) => {
  const { client, admin, held } = await running(t);
  const listening = await client.listen();
  const { taskId } = await client.createTask('slow');
  await admin.approve(taskId);
  const call = await held();
  call.event(log(2));
  assert.deepEqual((await listening.message((m) => m.method === 'notifications/message', 'the log message')).params._meta, { [RELATED]: { taskId } });
  call.finish();
  await admin.inState(taskId, 'completed');
});

test('for a client that knows no tasks they are kept for get_logs and get_notifications', async (t) => {
  const { client, admin, held } = await running(t, { capabilities: {}, protocol: '2025-06-18' });
  const run = (name, args = {}) => client.result('tools/call', { name, arguments: args });
  await run('get_logs');
  const plain = client.send('tools/call', { name: 'slow', arguments: {} });
  const task = await admin.pending();
  await admin.approve(task.id);
  const call = await held();
  call.event(log(3));
  call.event({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'menu://today' } });
  const logs = await until(async () => (await run('get_logs')).structuredContent.logs[0], 'the log message');
  assert.deepEqual([logs.server, logs.level, logs.logger, logs.data], ['up', 'info', 'kitchen', { n: 3 }]);
  const notification = await until(async () => (await run('get_notifications')).structuredContent.notifications[0], 'the notification');
  assert.deepEqual([notification.method, notification.params], ['notifications/resources/updated', { uri: 'menu://today' }]);
  call.finish();
  assert.ok((await plain).message.result);
});

test('a message on its own GET stream is relayed as it is, and kept as well', async (t) => {
  const s = await scene(t, { upstream: { tools: [tool('slow')] }, config: { pseudo_tools: { only: 'all' } } });
  const client = await s.connect({ capabilities: {} });
  const run = (name, args = {}) => client.result('tools/call', { name, arguments: args });
  await run('get_logs');
  const listening = await client.listen();
  await until(() => s.upstream.getStreams.size === 1, 'the stream upstream');
  s.upstream.push(log(4), { id: 'event-4' });
  s.upstream.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  assert.deepEqual(await listening.message((m) => m.method === 'notifications/message', 'the log message'), log(4));
  assert.deepEqual(await listening.message((m) => m.method === 'notifications/tools/list_changed', 'the notification'), { jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  assert.deepEqual((await run('get_logs')).structuredContent.logs.map((x) => x.data), [{ n: 4 }]);
  assert.deepEqual((await run('get_notifications')).structuredContent.notifications.map((x) => x.method), ['notifications/tools/list_changed']);
});

const progress = (token, n) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: token, progress: n, total: 10 } });
const isProgress = (n) => (m) => m.method === 'notifications/progress' && m.params.progress === n;

for (const [how, params] of [
  ['a plain call', { name: 'slow', arguments: {} }],
  ['a call by execute_tool', { name: 'execute_tool', arguments: { server: 'up', tool: 'slow', args: {}, timeout_ms: 2000 } }],
]) {
  test(`${how} that becomes a task: until then its own stream has them, then the GET stream, on the same token, with related-task`, async (t) => {
    const { admin, connect, held } = await stage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '2s', wait_max: '2s' } } });
    const client = await connect(PLAIN);
    const listening = await client.listen();
    const streaming = client.stream('tools/call', { ...params, _meta: { progressToken: 'theirs' } });
    const call = await until(() => held[0], 'the call upstream');
    assert.equal(call.params._meta.progressToken, 'theirs');
    const up = call.reply.sse();
    up.event(progress('theirs', 1));
    const stream = await streaming;
    assert.deepEqual((await stream.message(isProgress(1), 'progress')).params, progress('theirs', 1).params);
    const { id: taskId } = promoted((await stream.message((m) => m.id === stream.id, 'the promotion')).result);
    up.event(progress('theirs', 2));
    assert.deepEqual((await listening.message(isProgress(2), 'progress of the task')).params, { ...progress('theirs', 2).params, _meta: { [RELATED]: { taskId } } });
    up.event(log(5));
    assert.deepEqual((await listening.message((m) => m.method === 'notifications/message', 'the log message')).params, { ...log(5).params, _meta: { [RELATED]: { taskId } } });
    // A request that waits for the result gets it with its own token.
    const waiting = await client.stream('tools/call', { name: 'get_task_result', arguments: { task_id: taskId }, _meta: { progressToken: 9 } });
    up.event(progress('theirs', 3));
    assert.deepEqual((await waiting.message(isProgress(3), 'progress for who waits')).params, { ...progress(9, 3).params, _meta: { [RELATED]: { taskId } } });
    up.event({ jsonrpc: '2.0', id: call.id, result: { content: [] } });
    up.end();
    assert.ok((await waiting.message((m) => m.id === waiting.id, 'the result')).result);
    await admin.inState(taskId, 'completed');
    const logs = await client.result('tools/call', { name: 'get_logs', arguments: {} });
    assert.deepEqual(logs.structuredContent.logs.map((x) => x.data), [{ n: 5 }]);
  });
}

test('a held call hears of its progress on its own token', async (t) => {
  const { client, admin, held } = await running(t, { capabilities: {}, protocol: '2025-06-18' });
  const stream = await client.stream('tools/call', { name: 'slow', arguments: {}, _meta: { progressToken: 'own' } });
  const { id: taskId } = await admin.pending();
  await admin.approve(taskId);
  const call = await held();
  call.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: call.token, progress: 4, total: 10 } });
  assert.deepEqual((await stream.message(isProgress(4), 'progress')).params, { ...progress('own', 4).params, _meta: { [RELATED]: { taskId } } });
  call.finish();
  assert.ok((await stream.message((m) => m.id === stream.id, 'the result')).result);
});

test('a server that pings 150 times in a call that the gateway runs has 150 answers', async (t) => {
  const { client, admin, held, upstream } = await running(t);
  const { taskId } = await client.createTask('slow');
  await admin.approve(taskId);
  const call = await held();
  for (let n = 0; n < 150; n++) call.event({ jsonrpc: '2.0', id: `p-${n}`, method: 'ping' });
  const answers = () => upstream.requests.filter((r) => r.rpc?.id?.startsWith?.('p-') && r.rpc.method === undefined);
  await until(() => answers().length === 150, () => `150 answers; there are ${answers().length}`);
  for (const { rpc } of answers()) assert.deepEqual(rpc.result, {});
  call.finish();
  await admin.inState(taskId, 'completed');
});
