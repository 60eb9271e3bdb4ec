// Elicitations that do not block a task: their flow message by message, and the fallback (behaviour 12.1).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asks, elicit, PARTY, responseTo } from './lib/asking.mjs';
import { workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const KEY = (name) => `io.modelcontextprotocol/${name}`;
const BOOKED = { content: [{ type: 'text', text: 'Reservation confirmed for 4 people' }] };
const call = { name: 'book_dinner', arguments: { date: '2025-11-22', time: '19:00' }, task: {} };

/** book_dinner asks how many people come, then books. */
const book = async ({ upstream, reply, id }) => {
  const stream = reply.sse();
  stream.event({ jsonrpc: '2.0', ...elicit('upstream-1') });
  const response = await responseTo(upstream, 'upstream-1').catch(() => undefined);
  if (response?.result.action === 'accept') stream.event({ jsonrpc: '2.0', id, result: BOOKED });
  else stream.event({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'Nothing is booked' }], isError: true } });
  stream.end();
};

const stage = (t, more = {}) =>
  scene(t, {
    rules: [{ match: 'book_*', action: 'approve', immediate_response: 'Checking availability for your reservation...' }],
    approval: workflow('10m'),
    ...more,
    upstream: { tools: [tool('book_dinner')], handlers: { 'tools/call': book } },
  }).then(async (s) => ({ ...s, client: await s.connect({ capabilities: { tasks: {}, elicitation: {} } }) }));

const waitsForClient = (client, taskId) =>
  until(async () => {
    const task = await client.result('tasks/get', { taskId });
    return task._meta[KEY('pending-elicitations')] && task;
  }, 'the elicitation in tasks/get');

test('the flow: called as a task, asked in tasks/get, answered in tasks/get', async (t) => {
  const { client, admin, upstream } = await stage(t);
  // 1, 2: the call is answered at once, flat, with a text for the model.
  const created = await client.result('tools/call', call);
  const { taskId } = created;
  assert.equal(created.status, 'input_required');
  assert.deepEqual(created._meta[KEY('related-task')], { taskId });
  assert.equal(created._meta[KEY('model-immediate-response')], 'Checking availability for your reservation...');
  await admin.approve(taskId);
  // 3: the elicitation is embedded, nothing blocks.
  const asking = await waitsForClient(client, taskId);
  assert.equal(asking.status, 'input_required');
  const [{ elicitationId, ...form }] = asking._meta[KEY('pending-elicitations')];
  assert.deepEqual(form, { mode: 'form', ...PARTY });
  // 4, 5: one round trip submits the answer and gets the status.
  const after = await client.result('tasks/get', { taskId, _meta: { [KEY('elicitation-response')]: { elicitationId, action: 'accept', content: { partySize: 4 } } } });
  assert.ok(['working', 'completed'].includes(after.status), after.status);
  assert.deepEqual(after._meta, { [KEY('related-task')]: { taskId } });
  assert.deepEqual((await responseTo(upstream, 'upstream-1')).result, { action: 'accept', content: { partySize: 4 } });
  // 6, 7: the result.
  await until(async () => (await client.result('tasks/get', { taskId })).status === 'completed', 'the end');
  assert.deepEqual((await client.result('tasks/result', { taskId })).content, BOOKED.content);
});

test('declined and cancelled answers go to the server as they are', async (t) => {
  for (const action of ['decline', 'cancel']) {
    const { client, admin, upstream } = await stage(t);
    const { taskId } = await client.result('tools/call', call);
    await admin.approve(taskId);
    const [{ elicitationId }] = (await waitsForClient(client, taskId))._meta[KEY('pending-elicitations')];
    await client.result('tasks/get', { taskId, _meta: { [KEY('elicitation-response')]: { elicitationId, action, content: { ignored: true } } } });
    assert.deepEqual((await responseTo(upstream, 'upstream-1')).result, { action });
    await until(async () => (await client.result('tasks/get', { taskId })).status === 'failed', 'the end');
  }
});

test('fallback: a client that knows none of the keys polls, then waits in tasks/result and is asked there', async (t) => {
  const { client, admin } = await stage(t);
  const { taskId } = await client.result('tools/call', call);
  await admin.approve(taskId);
  await until(async () => {
    const { status, statusMessage } = await client.result('tasks/get', { taskId });
    return status === 'input_required' && statusMessage !== 'Awaiting approval';
  }, 'input_required');
  const waiting = await client.stream('tasks/result', { taskId });
  const asked = await waiting.message((m) => m.method === 'elicitation/create', 'the request');
  assert.deepEqual(asked.params._meta[KEY('related-task')], { taskId });
  await client.post({ jsonrpc: '2.0', id: asked.id, result: { action: 'accept', content: { partySize: 4 } } });
  assert.deepEqual((await waiting.message((m) => m.id === waiting.id, 'the result')).result.content, BOOKED.content);
});

test('model-immediate-response is in every create result, worded by the rule or by the state', async (t) => {
  const words = 'One moment, please';
  const { connect, admin } = await scene(t, {
    rules: [
      { match: 'a_*', action: 'approve', immediate_response: words },
      ['b_*', 'approve'],
      { match: 'c_*', action: 'forward', immediate_response: words },
      ['d_*', 'forward'],
    ],
    defaultAction: 'approve',
    approval: workflow('10m'),
    upstream: {
      capabilities: { tools: {}, tasks: TASKS },
      tools: ['a_one', 'b_one', 'c_one', 'd_one', 'e_one'].map((name) => tool(name, { support: 'forbidden' })),
    },
  });
  const client = await connect();
  const said = async (name) => {
    const created = await client.createTask(name);
    return [created._meta[KEY('model-immediate-response')], created.taskId];
  };
  const waits = (name, id) => `The call of ${name} waits for a person's approval. It has not run yet; what comes of it will be the result of task ${id}.`;
  const runs = (name, id) => `The call of ${name} runs as task ${id}, and what comes of it will be its result.`;
  for (const [name, sentence] of [['a_one', () => words], ['b_one', waits], ['c_one', () => words], ['d_one', runs], ['e_one', waits]]) {
    const [text, id] = await said(name);
    assert.equal(text, sentence(name, id), name);
    if (sentence === waits) await admin.reject(id);
    const later = await client.result('tasks/get', { taskId: id });
    assert.equal(later._meta[KEY('model-immediate-response')], undefined, 'it is said once');
  }
});

test('several elicitations of one call, one after the other, on several workers', async (t) => {
  const sizes = [1, 5, 20];
  const { client, admin, upstream } = await scene(t, {
    rules: [['book_*', 'approve']],
    approval: workflow('10m'),
    config: { workers: 3 },
    upstream: { tools: [tool('book_dinner')], handlers: { 'tools/call': asks(...sizes.map((n) => elicit(`e-${n}`))) } },
  }).then(async (s) => ({ ...s, client: await s.connect({ capabilities: { tasks: {}, elicitation: {} } }) }));
  const { taskId } = await client.createTask('book_dinner');
  await admin.approve(taskId);
  for (const partySize of sizes) {
    const [{ elicitationId }] = (await waitsForClient(client, taskId))._meta[KEY('pending-elicitations')];
    await client.result('tasks/get', { taskId, _meta: { [KEY('elicitation-response')]: { elicitationId, action: 'accept', content: { partySize } } } });
    assert.deepEqual((await responseTo(upstream, `e-${partySize}`)).result.content, { partySize });
  }
  await admin.inState(taskId, 'completed');
});
