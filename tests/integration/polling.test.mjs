// Servers that end an event stream before the answer and give the rest to a client that comes back for it (SEP-1699): if the gateway itself
// waits for the answer, it comes back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectedRaw } from './lib/client.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { startPollingServer } from './lib/polling_server.mjs';
import { promoted } from './lib/promotion.mjs';
import { blocks, callTool, kinds } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

/** An event that says nothing but where a stream goes on, and how soon to come back. */
const PLACE = (id, retry = 100) => `id: ${id}\nretry: ${retry}\ndata: \n\n`;
const answerTo = (call, text = 'the rest') => ({ jsonrpc: '2.0', id: call.id, result: { content: [{ type: 'text', text }] } });
const progressOf = (call, progress) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: call.params._meta.progressToken, progress } });

/**
 * A scene with an upstream that begins each call's stream with a place and then does `first(stream, call)`. `rests` answer the requests
 * for the rest, one after the other, the last of them again and again.
 */
async function stage(t, { first = (stream) => stream.end(), rests = [], ...options } = {}) {
  let call, come = 0;
  const set = await scene(t, {
    rules: [['write', 'approve']],
    approval: workflow('10m'),
    ...options,
    upstream: {
      tools: [tool('write'), tool('slow')],
      handlers: {
        'tools/call': (each) => {
          call = each;
          const stream = each.reply.sse();
          stream.raw(PLACE('e-1'));
          return first(stream, each);
        },
      },
    },
  });
  const comebacks = [];
  set.upstream.onHttp = (request, reply) => {
    if (request.method !== 'GET' || !request.headers['last-event-id']) return false;
    comebacks.push(request);
    rests[Math.min(come++, rests.length - 1)](reply, call);
    return true;
  };
  return { ...set, comebacks };
}

const giveAnswer = (reply, call) => {
  const stream = reply.sse();
  stream.event(answerTo(call), { id: 'e-9' });
  stream.end();
};
const giveNothing = (reply) => {
  const stream = reply.sse();
  stream.raw(PLACE('e-2'));
  stream.end();
};

async function approved(set, options = { token: 'A' }) {
  const client = await set.connect(options);
  const { taskId } = await client.createTask('write', {}, { ttl: 60_000 });
  await set.admin.approve(taskId);
  return { client, taskId };
}

for (const [how, first] of Object.entries({
  'ended in good order': (stream) => stream.end(),
  'broken off': (stream) => setTimeout(() => stream.cut(), 50),
  'broken off in the middle of an event': (stream) => (stream.raw('id: e-1b\ndata: {"jsonrpc"'), setTimeout(() => stream.cut(), 50)),
})) {
  test(`an executed call whose stream is ${how}: the rest is fetched as the owner, and the call is made once`, async (t) => {
    const set = await stage(t, { first, rests: [giveAnswer] });
    const { client, taskId } = await approved(set);
    const result = await client.result('tasks/result', { taskId });
    assert.equal(result.content[0].text, 'the rest');
    assert.equal((await client.result('tasks/get', { taskId })).status, 'completed');
    assert.equal(set.upstream.calls.length, 1);
    const [{ headers }] = set.comebacks;
    assert.deepEqual([headers['last-event-id'], headers.accept, headers.authorization, headers['mcp-session-id'], headers['content-type']], ['e-1', 'text/event-stream', 'Bearer A', client.session, undefined]);
  });
}

test('it comes back as often as the stream ends, from where each of them ended, and what comes meanwhile reaches who waits', async (t) => {
  const giveProgress = (reply, call) => {
    const stream = reply.sse();
    stream.event(progressOf(call, 1), { id: 'e-5' });
    stream.end();
  };
  const set = await stage(t, { rests: [giveNothing, giveProgress, giveAnswer] });
  const client = await set.connect();
  const { taskId } = await client.result('tools/call', { name: 'write', task: {}, _meta: { progressToken: 'create' } });
  const waiting = client.send('tasks/result', { taskId, _meta: { progressToken: 'wait' } });
  await set.admin.approve(taskId);
  const { message, others } = await waiting;
  assert.equal(message.result.content[0].text, 'the rest');
  assert.deepEqual(others.filter((x) => x.params?.progress === 1).map((x) => x.params.progressToken), ['wait']);
  assert.deepEqual(set.comebacks.map((x) => x.headers['last-event-id']), ['e-1', 'e-2', 'e-5']);
});

for (const [how, refuse] of Object.entries({
  'HTTP 404': (reply) => reply.http(404, { 'content-type': 'text/plain' }, 'no such stream'),
  'HTTP 401': (reply) => reply.http(401),
  'HTTP 405': (reply) => reply.http(405),
  'no event stream': (reply) => reply.http(200, { 'content-type': 'application/json' }, '{}'),
})) {
  test(`a rest that is refused with ${how}: the outcome is unknown, and the call is not made again`, async (t) => {
    const set = await stage(t, { rests: [refuse] });
    const { client, taskId } = await approved(set);
    const error = await client.error('tasks/result', { taskId });
    assert.deepEqual([error.code, error.data.details], [-32000, 'the outcome of the call is unknown']);
    assert.equal((await set.admin.task(taskId)).state, 'failed');
    assert.equal(set.comebacks.length, 1);
    assert.equal(set.upstream.calls.length, 1);
  });
}

test('an upstream that is busy is asked again, one that has gone is not for long', async (t) => {
  const busy = (reply) => reply.http(503);
  const set = await stage(t, { rests: [busy, busy, giveAnswer] });
  const { client, taskId } = await approved(set);
  assert.equal((await client.result('tasks/result', { taskId })).content[0].text, 'the rest');

  const other = await stage(t, { first: () => {}, rests: [giveAnswer] });
  const second = await approved(other);
  await other.upstream.received('tools/call');
  await other.upstream.stop();
  const error = await second.client.error('tasks/result', { taskId: second.taskId });
  assert.deepEqual([error.code, error.data.details], [-32000, 'the outcome of the call is unknown']);
});

test('coming back to nothing is silence', async (t) => {
  const set = await stage(t, { rests: [(reply) => reply.sse().end()], env: { THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '2' } });
  const { client, taskId } = await approved(set);
  assert.equal((await client.error('tasks/result', { taskId })).code, -32001);
  assert.ok(set.comebacks.length > 0);
});

test('a stream that never named a place has no rest', async (t) => {
  const set = await stage(t, { rests: [giveAnswer] });
  set.upstream.handlers['tools/call'] = ({ reply }) => reply.sse().end();
  const { client, taskId } = await approved(set);
  assert.equal((await client.error('tasks/result', { taskId })).code, -32002);
  assert.equal(set.comebacks.length, 0);
});

test('execute_tool comes back, too', async (t) => {
  const set = await stage(t, { rests: [giveNothing, giveAnswer], config: { pseudo_tools: { only: 'all' } } });
  const client = await set.connect(kinds.old.client);
  const result = await callTool(client, 'execute_tool', { server: 'up', tool: 'slow' });
  assert.equal(blocks(result)[0], 'the rest');
  assert.equal(set.upstream.calls.length, 1);
});

test('a call that became a task while its stream was open goes on where the stream ends', async (t) => {
  let stream;
  const set = await stage(t, { first: (opened) => (stream = opened), rests: [giveAnswer], config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '300ms', wait_max: '300ms' } } });
  const client = await set.connect(kinds.old.client);
  const { id } = promoted(await callTool(client, 'slow'));
  stream.end();
  assert.equal(blocks(await callTool(client, 'get_task_result', { task_id: id }))[0], 'the rest');
  assert.equal(set.comebacks[0].headers['last-event-id'], 'e-1');
  assert.equal(set.upstream.calls.length, 1);
});

test('a cancelled task does not come back', async (t) => {
  const set = await stage(t, { rests: [giveNothing] });
  const comebacksOf = (token) => set.comebacks.filter((x) => x.headers.authorization === `Bearer ${token}`).length;
  const { client, taskId } = await approved(set);
  await until(() => comebacksOf('A') >= 2, 'the first come-backs');
  assert.equal((await client.result('tasks/cancel', { taskId })).status, 'cancelled');
  await set.upstream.received((r) => r.rpc?.method === 'notifications/cancelled');
  const before = comebacksOf('A');
  const other = await approved(set, { token: 'B' });
  await until(() => comebacksOf('B') >= 4, 'come-backs of another call');
  assert.ok(comebacksOf('A') <= before + 1, 'but for one that was on its way');
  await other.client.result('tasks/cancel', { taskId: other.taskId });
});

test('a server of the official SDK that ends its stream: an approved call has its result', async (t) => {
  const server = await startPollingServer(t);
  const gateway = await startGateway(t, { upstream: server.url, rules: [['long', 'approve']], approval: workflow('10m') });
  const client = await connectedRaw(t, gateway.url);
  const { taskId } = await client.createTask('long');
  await gateway.admin.approve(taskId);
  assert.equal((await client.result('tasks/result', { taskId })).content[0].text, 'the rest');
});
