// subscriptions/listen (MCP 2026-07-28) with the gateway's own tasks and lists, merged into the server's stream or alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { key, TASKS_EXTENSION, WITH_TASKS } from './lib/modern_client.mjs';
import { complete, form, refuse, taskMaker } from './lib/modern_upstream.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { assertSchema, assertTaskSchema } from './lib/schema.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const ACK = 'notifications/subscriptions/acknowledged';
const CHANGED = 'notifications/tools/list_changed';
const UNKNOWN = 'tg_00000000-0000-4000-8000-000000000000';
const OWNER = { token: 'owner' };

const stage = (t, { upstream, ...more } = {}) =>
  modernScene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    source: { era: 'modern' },
    upstream: { tools: [tool('delete_user'), tool('read')], ...upstream },
    ...more,
  });

/** A server that honours what `honours` says of the filter it is asked for; `up` is its end of the last stream. */
function listenable(honours = (filter) => filter) {
  const server = { requests: [] };
  server.handlers = {
    'subscriptions/listen': ({ reply, id, params }) => {
      server.requests.push(params.notifications);
      server.up = reply.sse();
      server.up.event({ jsonrpc: '2.0', method: ACK, params: { notifications: honours(params.notifications), _meta: { [key('subscriptionId')]: id } } });
    },
  };
  return server;
}

/** An open stream, with what its acknowledgement honours as `honoured`. */
async function listen(t, client, notifications, id) {
  const stream = await client.stream('subscriptions/listen', { notifications }, { id });
  const first = await stream.message();
  assert.equal(first.method, ACK, 'nothing comes before it');
  assertSchema(t, 'SubscriptionsAcknowledgedNotification', first, 'modern');
  assert.strictEqual(first.params._meta[key('subscriptionId')], id);
  stream.honoured = first.params.notifications;
  return stream;
}

/** The next change of a task on the stream, valid by the schema and of this subscription. */
async function change(t, stream, id, taskId) {
  const message = await stream.message((m) => m.method === 'notifications/tasks' && (!taskId || m.params.taskId === taskId));
  assertTaskSchema(t, 'TaskStatusNotification', message);
  assert.strictEqual(message.params._meta[key('subscriptionId')], id);
  assert.equal(message.params.resultType, undefined);
  return message.params;
}
/** Changes up to the first in this status; the statuses on the way. */
async function changesTo(t, stream, id, taskId, status) {
  const seen = [];
  for (;;) {
    const task = await change(t, stream, id, taskId);
    seen.push(task.status);
    if (task.status === status) return { seen, task };
  }
}

test('44. own tasks are taken out of the filter, merged into the acknowledgement, and told from where they stand', async (t) => {
  const server = listenable();
  const { modern, admin } = await stage(t, { upstream: { handlers: server.handlers } });
  const client = modern(OWNER);
  const { taskId } = await client.create('delete_user', { id: 7 });
  const foreign = await modern({ token: 'other' }).create('delete_user');
  const stream = await listen(t, client, { promptsListChanged: true, taskIds: [taskId, 'up-1', UNKNOWN, foreign.taskId, taskId] }, 'listen:0');
  assert.deepEqual(server.requests, [{ promptsListChanged: true, taskIds: ['up-1'] }], 'the server hears of its own alone');
  assert.deepEqual(stream.honoured, { promptsListChanged: true, taskIds: ['up-1', taskId] });
  const first = await change(t, stream, 'listen:0');
  assert.deepEqual([first.taskId, first.status], [taskId, 'working']);
  assert.match(first.statusMessage, /^Awaiting approval/);
  await admin.approve(foreign.taskId);
  await admin.approve(taskId);
  const { seen, task } = await changesTo(t, stream, 'listen:0', taskId, 'completed');
  assert.deepEqual([...new Set(seen)], ['working', 'completed']);
  assert.deepEqual(task.result.structuredContent, { tool: 'delete_user', arguments: { id: 7 } });
  server.up.event({ jsonrpc: '2.0', method: 'notifications/prompts/list_changed', params: { _meta: { [key('subscriptionId')]: 'listen:0' } } });
  await stream.message((m) => m.method === 'notifications/prompts/list_changed');
  assert.deepEqual(stream.events.filter((e) => e.json?.method === 'notifications/tasks' && e.json.params.taskId !== taskId), [], 'nobody hears of another\'s task');
});

test('44. a task that has ended is told as it is; rejected and cancelled ones end on the stream', async (t) => {
  const { modern, admin } = await stage(t);
  const client = modern(OWNER);
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push((await client.create('delete_user', { i })).taskId);
  await admin.reject(ids[0], 'no');
  await admin.inState(ids[0], 'rejected');
  const stream = await listen(t, client, { taskIds: ids }, 5);
  assert.deepEqual(stream.honoured, { taskIds: ids });
  const first = {};
  for (let i = 0; i < 3; i++) {
    const task = await change(t, stream, 5);
    first[task.taskId] = task;
  }
  assert.deepEqual(ids.map((id) => first[id].status), ['failed', 'working', 'working']);
  assert.equal(first[ids[0]].error.code, -32007);
  await client.cancel(ids[1]);
  assert.equal((await changesTo(t, stream, 5, ids[1], 'cancelled')).task.taskId, ids[1]);
  await admin.reject(ids[2], 'nor this');
  assert.equal((await changesTo(t, stream, 5, ids[2], 'failed')).task.error.code, -32007);
});

test('44. questions of the server during the execution come on the stream, and go with their answer', async (t) => {
  const handlers = {
    'tools/call': ({ reply, params }) =>
      params.inputResponses ? reply.result(complete({ content: [] })) : reply.result(complete({ resultType: 'input_required', inputRequests: { a: form('A?'), b: form('B?') }, requestState: 's' })),
  };
  const { modern, admin } = await stage(t, { upstream: { handlers } });
  const client = modern(OWNER);
  const { taskId } = await client.create('delete_user');
  const stream = await listen(t, client, { taskIds: [taskId] }, 'x');
  await admin.approve(taskId);
  const asked = (await changesTo(t, stream, 'x', taskId, 'input_required')).task;
  assert.deepEqual(Object.keys(asked.inputRequests).sort(), ['r1:a', 'r1:b']);
  await client.update(taskId, { 'r1:a': { action: 'accept', content: { answer: '1' } } });
  assert.deepEqual(Object.keys((await change(t, stream, 'x')).inputRequests), ['r1:b']);
  await client.update(taskId, { 'r1:b': { action: 'decline' } });
  assert.equal((await changesTo(t, stream, 'x', taskId, 'completed')).task.result.resultType, 'complete');
});

test("44. the questions of a task of the server's are told once, however often it is polled", async (t) => {
  const maker = taskMaker();
  const { modern, admin, upstream } = await stage(t, { upstream: { handlers: maker.handlers } });
  const client = modern(OWNER);
  const { taskId } = await client.create('delete_user');
  const stream = await listen(t, client, { taskIds: [taskId] }, 'x');
  await admin.approve(taskId);
  const theirs = await until(() => maker.tasks.get('up-1'), () => 'the task of the server');
  Object.assign(theirs, { status: 'input_required', inputRequests: { q: form('Q?') } });
  await changesTo(t, stream, 'x', taskId, 'input_required');
  const polls = upstream.of('tasks/get').length;
  await until(() => upstream.of('tasks/get').length > polls + 5, () => 'more polls');
  Object.assign(theirs, { status: 'completed', inputRequests: undefined, result: complete({ content: [] }) });
  await changesTo(t, stream, 'x', taskId, 'completed');
  assert.equal(stream.events.filter((e) => e.json?.params?.status === 'input_required').length, 1);
});

test('44. a listen with taskIds that does not declare the extension is -32021, before anything is opened', async (t) => {
  const server = listenable();
  const { modern } = await stage(t, { upstream: { handlers: server.handlers } });
  const client = modern(OWNER);
  const { taskId } = await client.create('delete_user');
  for (const capabilities of [{}, { extensions: {} }, { extensions: { [TASKS_EXTENSION]: true } }]) {
    for (const taskIds of [[taskId], ['up-1'], []]) {
      const { status, message } = await client.send('subscriptions/listen', { notifications: { taskIds, promptsListChanged: true } }, { meta: { [key('clientCapabilities')]: capabilities } });
      assert.deepEqual([status, message.error.code, message.error.data.requiredCapabilities], [400, -32021, WITH_TASKS]);
    }
  }
  assert.deepEqual(server.requests, []);
});

test('44. taskIds that is no list of strings, or is too long, is -32602; so is an Accept without streams', async (t) => {
  const server = listenable();
  const { modern } = await stage(t, { upstream: { handlers: server.handlers } });
  const client = modern(OWNER);
  for (const taskIds of ['tg_x', {}, [1], [null], [UNKNOWN, {}], Array.from({ length: 257 }, (_, i) => `tg_${i}`)]) {
    const { status, message } = await client.send('subscriptions/listen', { notifications: { taskIds } });
    assert.deepEqual([status, message.error.code], [400, -32602], JSON.stringify(taskIds).slice(0, 60));
  }
  const { status, message } = await client.send('subscriptions/listen', { notifications: { promptsListChanged: true } }, { headers: { accept: 'application/json' } });
  assert.deepEqual([status, message.error.code], [400, -32602]);
  assert.deepEqual(server.requests, []);
});

for (const [what, answer] of [
  ['404 with -32601', ({ reply }) => refuse(reply, 404, -32601, 'Method not found')],
  ['200 with -32601', ({ reply }) => reply.error(-32601, 'Method not found')],
  ['405 without JSON-RPC', ({ reply }) => reply.http(405, { 'content-type': 'text/plain' }, 'no')],
  ['a stream with -32601', ({ reply, id }) => {
    const up = reply.sse();
    up.event({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } });
    up.end();
  }],
]) {
  test(`44. before a server that knows no listen (${what}) the gateway acknowledges its own part alone`, async (t) => {
    const { modern, admin, upstream } = await stage(t, { upstream: { handlers: { 'subscriptions/listen': answer } } });
    const client = modern(OWNER);
    const { taskId } = await client.create('delete_user');
    const stream = await listen(t, client, { promptsListChanged: true, resourceSubscriptions: ['file:///a'], toolsListChanged: true, taskIds: [taskId] }, 1);
    assert.deepEqual(stream.honoured, { toolsListChanged: true, taskIds: [taskId] });
    await change(t, stream, 1);
    await admin.approve(taskId);
    await changesTo(t, stream, 1, taskId, 'completed');
    assert.equal(upstream.of('subscriptions/listen').length, 1);
    const other = await client.send('subscriptions/listen', { notifications: { promptsListChanged: true } });
    assert.notEqual(other.message?.result?.resultType, 'complete', 'what is the server\'s alone is refused by it');
  });
}

test('44. other refusals of the server go down as they are, with own tasks in the filter, too', async (t) => {
  const { modern, upstream } = await stage(t);
  const client = modern(OWNER);
  const { taskId } = await client.create('delete_user');
  for (const [status, code] of [[400, -32602], [401, -32600], [403, -32600], [200, -32603], [503, -32603]]) {
    upstream.handlers['subscriptions/listen'] = ({ reply }) => refuse(reply, status, code, 'theirs');
    const answer = await client.send('subscriptions/listen', { notifications: { promptsListChanged: true, taskIds: [taskId] } });
    assert.deepEqual([answer.status, answer.message.error.code, answer.message.error.message], [status, code, 'theirs']);
  }
});

test('44. a listen for own tasks alone does not go up; an approval from before the stream is told first', async (t) => {
  const server = listenable();
  const { modern, admin } = await stage(t, { upstream: { handlers: server.handlers } });
  const client = modern(OWNER);
  const { taskId } = await client.create('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  const stream = await listen(t, client, { taskIds: [taskId], promptsListChanged: false }, 0);
  assert.equal((await change(t, stream, 0)).status, 'completed');
  assert.deepEqual(server.requests, []);
});

test('44. with nothing to honour the stream is acknowledged and ends', async (t) => {
  const { modern } = await stage(t);
  const stream = await listen(t, modern(OWNER), { taskIds: [UNKNOWN] }, 'n');
  assert.deepEqual(stream.honoured, {});
  const last = await stream.message();
  assertSchema(t, 'SubscriptionsListenResult', last.result, 'modern');
  assert.deepEqual(last, { jsonrpc: '2.0', id: 'n', result: { resultType: 'complete', _meta: { [key('subscriptionId')]: 'n', [key('serverInfo')]: last.result._meta[key('serverInfo')] } } });
  assert.equal(last.result._meta[key('serverInfo')].name, 'taskgate');
  assert.equal(await stream.end(), 'end');
});

test('44. a server that honours nothing and ends its stream leaves the own part to the gateway', async (t) => {
  const { modern, admin } = await stage(t, {
    upstream: {
      handlers: {
        'subscriptions/listen': ({ reply, id }) => {
          const up = reply.sse();
          up.event({ jsonrpc: '2.0', method: ACK, params: { notifications: {}, _meta: { [key('subscriptionId')]: id } } });
          up.event({ jsonrpc: '2.0', id, result: { resultType: 'complete', _meta: { [key('subscriptionId')]: id } } });
          up.end();
        },
      },
    },
  });
  const client = modern(OWNER);
  const { taskId } = await client.create('delete_user');
  const stream = await listen(t, client, { promptsListChanged: true, taskIds: [taskId] }, 3);
  await change(t, stream, 3);
  await admin.approve(taskId);
  await changesTo(t, stream, 3, taskId, 'completed');
  assert.equal(stream.events.filter((e) => e.json?.id === 3).length, 0, 'its result is not the stream\'s');
});

test('44. toolsListChanged is honoured wherever the gateway tells of a reload', async (t) => {
  for (const honours of [() => ({}), null]) {
    const { modern, gateway } = await stage(t, { upstream: { handlers: honours ? listenable(honours).handlers : {} } });
    const stream = await listen(t, modern(), { toolsListChanged: true }, 'l');
    assert.deepEqual(stream.honoured, { toolsListChanged: true });
    gateway.hangUp();
    const told = await stream.message((m) => m.method === CHANGED);
    assertSchema(t, 'ToolListChangedNotification', told, 'modern');
    assert.deepEqual(told.params, { _meta: { [key('subscriptionId')]: 'l' } });
  }
});

test('44. a stop of the gateway ends each stream with its result', async (t) => {
  const server = listenable();
  const { modern, gateway } = await stage(t, { upstream: { handlers: server.handlers } });
  const client = modern(OWNER);
  const { taskId } = await client.create('delete_user');
  const streams = [await listen(t, client, { taskIds: [taskId] }, 'alone'), await listen(t, client, { taskIds: [taskId], promptsListChanged: true }, 9)];
  const stopped = gateway.stop();
  for (const [i, id] of ['alone', 9].entries()) {
    const last = await streams[i].message((m) => m.id === id);
    assert.deepEqual([last.result.resultType, last.result._meta[key('subscriptionId')], last.result._meta[key('serverInfo')].name], ['complete', id, 'taskgate']);
    assert.equal(await streams[i].end(), 'end');
  }
  await stopped;
});

test('44. comments keep both kinds of stream alive, and no progress is sent', async (t) => {
  const server = listenable();
  const { modern } = await stage(t, { upstream: { handlers: server.handlers } });
  const client = modern(OWNER);
  const { taskId } = await client.create('delete_user');
  const open = (filter, id) => client.stream('subscriptions/listen', { notifications: filter }, { id, meta: { progressToken: 'p' } });
  const streams = [await open({ taskIds: [taskId] }, 'alone'), await open({ promptsListChanged: true }, 'both')];
  for (const stream of streams) await stream.next((e) => e.comment !== undefined, 'a comment', 40_000);
  for (const stream of streams) assert.deepEqual(stream.events.filter((e) => e.json?.method === 'notifications/progress'), []);
});

test('44. made-up tokens share what their address may have, and leave the rest to those who are known', async (t) => {
  const server = listenable();
  const { modern } = await stage(t, { upstream: { handlers: server.handlers }, config: { limits: { listens: 8 } } });
  const open = (client, id) => listen(t, client, { promptsListChanged: true }, id);
  await open(modern({ token: 'made-up-1' }), 1);
  await open(modern({ token: 'made-up-2' }), 2);
  for (const token of ['made-up-3', undefined]) {
    const { message } = await modern({ token }).send('subscriptions/listen', { notifications: { promptsListChanged: true } });
    assert.equal(message.error?.code, -32603);
  }
  const owner = modern(OWNER);
  assert.ok(await owner.result('tools/list'));
  await open(owner, 1);
});

test('44. clients that share an owner have the room of their address, also when the server has accepted them', async (t) => {
  const server = listenable();
  const { modern } = await stage(t, { source: { era: 'modern', identity: 'anonymous' }, upstream: { handlers: server.handlers }, config: { limits: { listens: 8, listens_per_principal: 8 } } });
  const open = (client, id) => listen(t, client, { promptsListChanged: true }, id);
  assert.ok(await modern().result('tools/list'));
  await open(modern(), 1);
  await open(modern(), 2);
  const { message } = await modern().send('subscriptions/listen', { notifications: { promptsListChanged: true } });
  assert.equal(message.error?.code, -32603);
  const owner = modern(OWNER);
  assert.ok(await owner.result('tools/list'));
  await open(owner, 1);
});

test('44. the streams of one token, and of all, are bounded: -32603', async (t) => {
  const server = listenable();
  const { modern, admin } = await stage(t, { upstream: { handlers: server.handlers }, config: { limits: { listens: 3, listens_per_principal: 2, share_percent: 100 } } });
  const refused = async (client) => {
    const { status, message } = await client.send('subscriptions/listen', { notifications: { promptsListChanged: true } });
    assert.deepEqual([status, message.error.code], [200, -32603]);
  };
  const owner = modern(OWNER);
  const streams = [await listen(t, owner, { promptsListChanged: true }, 1), await listen(t, owner, { promptsListChanged: true }, 2)];
  await refused(owner);
  streams.push(await listen(t, modern(), { promptsListChanged: true }, 1));
  await refused(modern());
  await refused(modern({ token: 'other' }));
  assert.equal(server.requests.length, 3);
  assert.equal((await admin.metrics())['thoughtgate_limits_reached_total{limit="listens"}'], 3);
  streams[0].abort();
  await until(async () => {
    const answer = await owner.post(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params: { notifications: { promptsListChanged: true }, _meta: owner.envelope() } }), { headers: owner.mirror({ method: 'subscriptions/listen' }) });
    if (!/event-stream/.test(answer.headers['content-type'])) return false;
    answer.sse().abort();
    return true;
  }, () => 'room again');
});
