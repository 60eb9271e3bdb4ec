// Limits: an excess request is refused at once, with the time to come back, and costs no other client anything.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BRIEF_DRAIN, workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const stage = (t, more = {}) => scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user'), tool('read')] }, ...more });

function assertBusy(error) {
  assert.equal(error.code, -32013);
  assert.ok(Number.isInteger(error.data.retry_after) && error.data.retry_after > 0, JSON.stringify(error));
  assert.equal(typeof error.data.error_type, 'string');
}

test('pending_per_principal: the next create is -32013 with retry_after; others are not touched', async (t) => {
  const { gateway, admin, connect } = await stage(t, { config: { limits: { pending_per_principal: 2 } } });
  const [one, two] = [await connect({ token: 'A' }), await connect({ token: 'B' })];
  const first = await one.createTask('delete_user');
  await one.createTask('delete_user');
  assertBusy(await one.error('tools/call', { name: 'delete_user', task: {} }));
  const said = await gateway.logged(({ msg }) => msg === 'Task refused');
  assert.deepEqual([said.source, said.reason], ['up', 'limits.pending_per_principal']);
  await two.createTask('delete_user');
  assert.equal((await admin.list()).tasks.length, 3);
  await admin.reject(first.taskId);
  await one.createTask('delete_user');
  assert.ok(await one.result('tools/call', { name: 'read' }), 'forwarded calls are not limited');
});

test('pending_bytes_per_principal: requests of one owner beyond it are -32013; a decision makes room', async (t) => {
  const { gateway, admin, connect } = await stage(t, { config: { limits: { pending_bytes_per_principal: '10KiB' } } });
  const [one, two] = [await connect({ token: 'A' }), await connect({ token: 'B' })];
  const create = (client, size) => client.call('tools/call', { name: 'delete_user', arguments: { note: 'x'.repeat(size) }, task: {} });
  const first = (await create(one, 8000)).result;
  assertBusy((await create(one, 3000)).error);
  assert.equal((await gateway.logged(({ msg }) => msg === 'Task refused')).reason, 'limits.pending_bytes_per_principal');
  assert.ok((await create(two, 3000)).result);
  await admin.reject(first.task.taskId);
  assert.ok((await create(one, 8000)).result);
  assertBusy((await create(one, 3000)).error);
});

test('pending_total counts all owners', async (t) => {
  const { connect } = await stage(t, { config: { limits: { pending_total: 2 } } });
  const clients = [await connect({ token: 'A' }), await connect({ token: 'B' }), await connect({ token: 'C' })];
  await clients[0].createTask('delete_user');
  await clients[1].createTask('delete_user');
  assertBusy(await clients[2].error('tools/call', { name: 'delete_user', task: {} }));
});

test('store_bytes: beyond it a new task is -32013; the end of a task makes room; what needs no task goes on', async (t) => {
  const { gateway, admin, connect } = await stage(t, { config: { limits: { store_bytes: '6MiB' } } });
  const client = await connect();
  const create = () => client.call('tools/call', { name: 'delete_user', arguments: {}, task: {}, ...padding });
  const padding = { _meta: { note: 'x'.repeat(1_100_000) } };
  const [one, two] = [await create(), await create()];
  assert.ok(one.result && two.result);
  assertBusy((await create()).error);
  assert.deepEqual((await gateway.logged(({ msg }) => msg === 'Task refused')).reason, 'limits.store_bytes');
  assert.ok(await client.result('tools/call', { name: 'read' }));
  await admin.reject(one.result.task.taskId);
  assert.ok((await create()).result, 'the request of the rejected one is kept no longer');
});

test('store_bytes: what the audit trail has filled is opened again by a larger limit, without a restart', async (t) => {
  const { gateway, admin, connect } = await stage(t, { config: { limits: { store_bytes: '1MiB' } } });
  const client = await connect();
  const create = () => client.call('tools/call', { name: 'delete_user', arguments: {}, task: {} });
  const reason = 'r'.repeat(2000); // kept in the audit trail
  let answer;
  for (let i = 0; i < 1000 && !(answer = await create()).error; i++) await admin.reject(answer.result.task.taskId, reason);
  assertBusy(answer.error);
  assert.deepEqual((await gateway.logged(({ msg }) => msg === 'Task refused')).reason, 'limits.store_bytes');
  const used = Number(/^thoughtgate_store_bytes (\d+)$/m.exec((await admin.get('/metrics')).text)[1]);
  assert.ok(used > 0 && used % 512 === 0, `thoughtgate_store_bytes is ${used}`);
  gateway.writeConfig({ config: { limits: { store_bytes: '64MiB' } } });
  gateway.hangUp();
  await until(async () => (await create()).result, 'the larger limit to hold');
});

test('an accelerated task counts as a pending one does', async (t) => {
  const { upstream, connect } = await stage(t, { forceRequired: ['read'], config: { limits: { pending_per_principal: 1 } }, env: BRIEF_DRAIN });
  upstream.handlers['tools/call'] = () => {};
  const client = await connect();
  await client.createTask('read');
  await upstream.received('tools/call');
  assertBusy(await client.error('tools/call', { name: 'read', task: {} }));
  assert.equal(upstream.calls.length, 1);
});

test('the variables win over the keys', async (t) => {
  const { connect } = await stage(t, { config: { limits: { pending_per_principal: 50, pending_total: 50 } }, env: { THOUGHTGATE_TASK_MAX_PENDING_PER_PRINCIPAL: '1', THOUGHTGATE_TASK_MAX_PENDING_GLOBAL: '2' } });
  const [a, b, c] = [await connect({ token: 'A' }), await connect({ token: 'B' }), await connect({ token: 'C' })];
  await a.createTask('delete_user');
  assertBusy(await a.error('tools/call', { name: 'delete_user', task: {} }));
  await b.createTask('delete_user');
  assertBusy(await c.error('tools/call', { name: 'delete_user', task: {} }));
});

test('pending limits hold under creates that race each other', async (t) => {
  const { admin, connect } = await stage(t, { config: { limits: { pending_per_principal: 5 } } });
  const client = await connect({ token: 'A' });
  const answers = await Promise.all(Array.from({ length: 30 }, () => client.call('tools/call', { name: 'delete_user', task: {} })));
  assert.equal(answers.filter((a) => a.result).length, 5);
  for (const { error } of answers.filter((a) => a.error)) assertBusy(error);
  assert.equal((await admin.list({ limit: 50 })).tasks.length, 5);
});

test('a pending limit counts what the store holds, also after a restart', async (t) => {
  const { gateway, connect } = await stage(t, { config: { limits: { pending_per_principal: 1 } } });
  const client = await connect({ token: 'A' });
  await client.createTask('delete_user');
  await gateway.restart();
  assertBusy(await client.error('tools/call', { name: 'delete_user', task: {} }));
});

test('result_bytes: a larger result is failed with -32002, not cut and not kept', async (t) => {
  const { upstream, admin, connect } = await stage(t, { config: { limits: { result_bytes: 65536 } } });
  const client = await connect();
  for (const [size, state] of [[60_000, 'completed'], [70_000, 'failed'], [5_000_000, 'failed']]) {
    upstream.handlers['tools/call'] = ({ reply }) => reply.result({ content: [{ type: 'text', text: 'y'.repeat(size) }] });
    const { taskId } = await client.createTask('delete_user');
    await admin.approve(taskId);
    await admin.inState(taskId, state);
    if (state === 'failed') assert.equal((await client.error('tasks/result', { taskId })).code, -32002);
    else assert.equal((await client.result('tasks/result', { taskId })).content[0].text.length, size);
  }
});

for (const replyAs of ['json', 'sse']) {
  test(`result_bytes: a larger list is -32002 (${replyAs})`, async (t) => {
    const { upstream, connect } = await stage(t, { upstream: { replyAs, tools: [tool('read', { description: 'd'.repeat(3000) })] }, config: { limits: { result_bytes: 2000 } } });
    const client = await connect();
    assert.equal((await client.error('tools/list')).code, -32002);
    upstream.tools = [tool('read')];
    assert.ok((await client.result('tools/list')).tools.some(({ name }) => name === 'read'));
  });
}

test('reply_bytes: a longer answer to a forwarded call is -32002, or cut off where its beginning has gone down', async (t) => {
  const { upstream, admin, connect } = await stage(t, { config: { limits: { reply_bytes: 200_000 } } });
  const client = await connect();
  const text = (length) => ({ content: [{ type: 'text', text: 'y'.repeat(length) }] });
  const answers = {
    'announced': ({ reply }) => reply.result(text(300_000)),
    'an event stream': ({ reply, id }) => {
      const stream = reply.sse();
      for (let i = 0; i < 4; i++) stream.event({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'y'.repeat(80_000) } });
      stream.event({ jsonrpc: '2.0', id, result: text(1) });
      stream.end();
    },
  };
  for (const [what, answer] of Object.entries(answers)) {
    upstream.handlers['tools/call'] = answer;
    assert.equal((await client.error('tools/call', { name: 'read' })).code, -32002, what);
  }
  upstream.handlers['tools/call'] = ({ reply, id }) => {
    reply.response.writeHead(200, { 'content-type': 'application/json' });
    reply.response.end(JSON.stringify({ jsonrpc: '2.0', id, result: text(300_000) }));
  };
  await assert.rejects(client.send('tools/call', { name: 'read' }), 'the client sees no whole answer');
  assert.match((await admin.get('/metrics')).text, /^thoughtgate_limits_reached_total\{limit="reply_bytes"\} 3$/m);
  upstream.handlers['tools/call'] = ({ reply }) => reply.result(text(190_000));
  assert.equal((await client.result('tools/call', { name: 'read' })).content[0].text.length, 190_000);
});

test('reply_bytes: 0 is no limit', async (t) => {
  const { upstream, connect } = await stage(t, { config: { limits: { reply_bytes: 0 } } });
  upstream.handlers['tools/call'] = ({ reply }) => reply.result({ content: [{ type: 'text', text: 'y'.repeat(300_000) }] });
  assert.equal((await (await connect()).result('tools/call', { name: 'read' })).content[0].text.length, 300_000);
});

test('a large result within the limit is stored and returned whole', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  const text = 'é'.repeat(3_000_000);
  upstream.handlers['tools/call'] = ({ reply }) => reply.result({ content: [{ type: 'text', text }] });
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.ok((await client.result('tasks/result', { taskId })).content[0].text === text);
});

test('requests_per_second, when set, refuses the surplus before upstream hears of it', async (t) => {
  const { upstream, connect } = await stage(t, { config: { limits: { requests_per_second: 5 } } });
  const client = await connect();
  const answers = await Promise.all(Array.from({ length: 60 }, () => client.send('tools/call', { name: 'read' })));
  const refused = answers.filter((a) => a.status === 429 || a.message?.error?.code === -32013);
  assert.ok(refused.length > 0, 'nothing was refused');
  for (const answer of refused) assert.ok(answer.status === 429 ? Number(answer.headers['retry-after']) > 0 : answer.message.error.data.retry_after > 0, answer.text);
  assert.equal(upstream.calls.length + refused.length, 60);
});

test('per-IP limiting is off unless set', async (t) => {
  const { connect } = await stage(t);
  const client = await connect();
  const answers = await Promise.all(Array.from({ length: 300 }, () => client.send('tools/call', { name: 'read' })));
  assert.ok(answers.every((a) => a.message?.result));
});
