// The execution of an approved task: what the server answers, and what becomes of the task.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { until, within } from './lib/wait.mjs';

const RELATED = 'io.modelcontextprotocol/related-task';
const ID = /^tg_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const stage = (t, more = {}) =>
  scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), ...more, upstream: { tools: [tool('delete_user'), tool('read')], ...more.upstream } });

test('isError: failed, its first text as the message, and the result itself', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  const result = { content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }, { type: 'text', text: `no such user ${'é'.repeat(2000)}` }], isError: true };
  upstream.handlers['tools/call'] = ({ reply }) => reply.result(result);
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'failed');
  const task = await client.result('tasks/get', { taskId });
  assert.equal(task.status, 'failed');
  assert.ok(task.statusMessage.startsWith('no such user éé'));
  assert.ok(Buffer.byteLength(task.statusMessage) <= 1024 + 4, String(Buffer.byteLength(task.statusMessage)));
  assert.ok(!task.statusMessage.includes('\ufffd'));
  assert.deepEqual(await client.result('tasks/result', { taskId }), { ...result, _meta: { [RELATED]: { taskId } } });
});

test("upstream's JSON-RPC error reaches the client verbatim", async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  const error = { code: -32042, message: 'sign in first', data: { elicitations: [{ mode: 'url', elicitationId: 'e', url: 'https://x/', message: 'm' }] } };
  upstream.handlers['tools/call'] = ({ reply }) => reply.error(error.code, error.message, error.data);
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'failed');
  assert.match((await client.result('tasks/get', { taskId })).statusMessage, /sign in first/);
  for (let i = 0; i < 2; i++) assert.deepEqual(await client.error('tasks/result', { taskId }), error);
});

test('an upstream that is gone, silent or speaks no JSON during execution: failed with the matching code', async (t) => {
  const { upstream, admin, connect } = await stage(t, { env: { THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '1' } });
  const client = await connect();
  for (const [handler, code] of [
    [({ reply }) => reply.cut(), -32000],
    [() => {}, -32001],
    [({ reply }) => reply.http(200, { 'content-type': 'application/json' }, '{"jsonrpc":'), -32002],
    [({ reply }) => reply.http(500, { 'content-type': 'text/plain' }, 'oops'), -32002],
  ]) {
    upstream.handlers['tools/call'] = handler;
    const { taskId } = await client.createTask('delete_user');
    await admin.approve(taskId);
    await admin.inState(taskId, 'failed');
    assert.equal((await client.error('tasks/result', { taskId })).code, code);
  }
  assert.equal(upstream.calls.length, 4, 'nothing is tried twice');
});

test('an SSE reply to the execution is read to its answer', async (t) => {
  const { admin, connect } = await stage(t, { upstream: { replyAs: 'sse' } });
  const client = await connect();
  const { taskId } = await client.createTask('delete_user', { k: 1 });
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.deepEqual((await client.result('tasks/result', { taskId })).structuredContent.arguments, { k: 1 });
});

test('progress during execution reaches the waiting tasks/result on its token and the GET stream on the token of the create', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  let up;
  upstream.handlers['tools/call'] = ({ reply, params, id }) => {
    up = reply.sse();
    up.token = params._meta?.progressToken;
    up.finish = () => (up.event({ jsonrpc: '2.0', id, result: { content: [] } }), up.end());
  };
  const listening = await client.listen();
  const { taskId } = await client.result('tools/call', { name: 'delete_user', task: {}, _meta: { progressToken: 'create-token' } });
  const waiting = await client.stream('tasks/result', { taskId, _meta: { progressToken: 77 } });
  await admin.approve(taskId);
  await upstream.received('tools/call');
  assert.notEqual(up.token, undefined, 'upstream is given a token');
  up.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: up.token, progress: 500, total: 1000, message: 'half' } });
  for (const [stream, token] of [[waiting, 77], [listening, 'create-token']]) {
    const { params } = await stream.message((m) => m.method === 'notifications/progress' && m.params.total === 1000, 'upstream progress');
    assert.deepEqual(params, { progressToken: token, progress: 500, total: 1000, message: 'half', _meta: { [RELATED]: { taskId } } });
  }
  up.finish();
  assert.ok((await waiting.message((m) => m.id === waiting.id)).result);
});

test('server requests during execution are answered -32601', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  upstream.handlers['tools/call'] = async ({ reply, id }) => {
    const up = reply.sse();
    up.event({ jsonrpc: '2.0', id: 'ask-1', method: 'elicitation/create', params: { message: '?', requestedSchema: { type: 'object', properties: {} } } });
    await upstream.received((r) => r.rpc?.id === 'ask-1');
    up.event({ jsonrpc: '2.0', id, result: { content: [] } });
    up.end();
  };
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  const refusal = upstream.requests.find((r) => r.rpc?.id === 'ask-1');
  assert.equal(refusal.rpc.error.code, -32601);
  assert.equal(refusal.headers['mcp-session-id'], client.session);
});

test("a tool that upstream requires a task for: execution sends task, polls, fetches the result; cancel is relayed", async (t) => {
  const { upstream, admin, connect } = await stage(t, { upstream: { capabilities: { tools: {}, tasks: TASKS }, tools: [tool('delete_user', { support: 'required' })] } });
  const client = await connect();
  await client.result('tools/list');
  const { taskId } = await client.createTask('delete_user', { a: 1 }, { ttl: 60_000 });
  assert.match(taskId, ID);
  await admin.approve(taskId);
  const call = await upstream.received('tools/call');
  assert.equal(typeof call.rpc.params.task, 'object');
  await upstream.received('tasks/get', 2);
  assert.equal((await client.result('tasks/get', { taskId })).status, 'working');
  const [entry] = upstream.tasks.values();
  entry.task = { ...entry.task, status: 'completed' };
  await admin.inState(taskId, 'completed');
  const result = await client.result('tasks/result', { taskId });
  assert.deepEqual(result.structuredContent.arguments, { a: 1 });
  assert.deepEqual(result._meta[RELATED], { taskId }, 'the client knows only our id');

  const second = await client.createTask('delete_user');
  await admin.approve(second.taskId);
  await upstream.received('tools/call', 2);
  await upstream.received('tasks/get', 3);
  await client.result('tasks/cancel', { taskId: second.taskId });
  const cancel = await upstream.received('tasks/cancel');
  assert.match(cancel.rpc.params.taskId, /^up-/);
});

test('an accelerated task whose credentials upstream refuses does not say that anybody has approved it', async (t) => {
  const { upstream, admin, connect } = await stage(t, { upstream: { capabilities: { tools: {}, tasks: TASKS } } });
  const client = await connect({ token: 'old' });
  upstream.authorize = (r) => (r.rpc?.method === 'tools/call' ? 401 : 0);
  const { taskId } = await client.createTask('read');
  await upstream.received('tools/call');
  await admin.inState(taskId, 'approved');
  await until(async () => (await admin.task(taskId)).statusMessage === 'Upstream refused the credentials', 'the task to say why it waits');
  assert.equal((await client.result('tasks/get', { taskId })).statusMessage, 'Upstream refused the credentials');
});

test('HTTP 401 without a JSON-RPC answer puts the task back to approved; fresh credentials of the owner run it', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect({ token: 'old' });
  const { taskId } = await client.createTask('delete_user');
  upstream.authorize = (r) => (r.headers.authorization === 'Bearer new' ? 0 : 401);
  await admin.approve(taskId);
  await upstream.received('tools/call');
  await admin.inState(taskId, 'approved');
  client.headers.authorization = 'Bearer new';
  await until(async () => (await client.send('tasks/get', { taskId })).message?.result?.status === 'completed', 'the task to run with fresh credentials');
  const answered = upstream.calls.filter((c) => c.headers.authorization === 'Bearer new');
  assert.equal(answered.length, 1);
});

test('approved but never run within the approval\'s validity: -32005', async (t) => {
  const { upstream, admin, connect } = await stage(t, { env: { THOUGHTGATE_APPROVAL_VALIDITY_SECS: '2' } });
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  upstream.handlers['tools/call'] = ({ reply }) => reply.http(403, { 'content-type': 'text/plain' }, 'no');
  await admin.approve(taskId);
  await admin.inState(taskId, 'expired');
  const error = await client.error('tasks/result', { taskId });
  assert.deepEqual([error.code, error.data.error_type], [-32005, 'task_expired']);
  assert.equal((await client.result('tasks/get', { taskId })).status, 'failed');
});

for (const where of ['rule', 'file']) {
  test(`execution: on_result (${where}): the approved call waits for tasks/result`, async (t) => {
    const { upstream, admin, connect } = await stage(t, where === 'rule' ? { rules: [{ match: 'delete_*', action: 'approve', execution: 'on_result' }] } : { config: { execution: 'on_result' } });
    const client = await connect();
    const { taskId } = await client.createTask('delete_user', { x: 1 });
    await admin.approve(taskId);
    for (let i = 0; i < 3; i++) assert.equal((await client.result('tasks/get', { taskId })).status, 'working');
    assert.equal((await admin.task(taskId)).state, 'approved');
    assert.equal(upstream.calls.length, 0);
    const result = await client.result('tasks/result', { taskId });
    assert.deepEqual(result.structuredContent.arguments, { x: 1 });
    assert.equal(upstream.calls.length, 1);
    assert.equal((await client.result('tasks/get', { taskId })).status, 'completed');
  });
}
