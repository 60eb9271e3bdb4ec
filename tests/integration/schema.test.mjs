// Every message that the gateway makes itself is a valid message of the official 2025-11-25 schema.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { assertSchema, methodsOf, schemaMissing } from './lib/schema.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';

const options = { skip: schemaMissing };
const stage = (t, more = {}) =>
  scene(t, {
    rules: [['delete_*', 'approve'], ['drop_*', 'deny']],
    approval: workflow('10m'),
    expose: { mode: 'blocklist', tools: ['hidden'] },
    upstream: { capabilities: { tools: {}, tasks: TASKS, notifications: { tasks: { status: true } } }, tools: [tool('delete_user'), tool('drop_table'), tool('read', { support: 'optional' })], ...more.upstream },
    ...more.gateway,
  });

test('a client may send what the schema says, and nothing that is a server\'s', options, async (t) => {
  const { admin, raw } = await stage(t);
  const client = raw();
  await client.connect();
  const theirs = [...methodsOf('ClientRequest'), ...methodsOf('ClientNotification')];
  assert.ok(theirs.length >= 20, `only ${theirs.length} methods`);
  const refused = async (method) => (await client.send(method, {})).message.error?.data?.error_type === 'method_not_found';
  for (const method of methodsOf('ClientRequest')) assert.equal(await refused(method), false, method);
  for (const method of methodsOf('ClientNotification')) await client.post(JSON.stringify({ jsonrpc: '2.0', method, params: {} }));
  assert.equal(Object.keys(await admin.metrics()).filter((name) => name.includes('method_not_found')).length, 0, 'none of them is unknown');
  for (const method of [...methodsOf('ServerRequest'), ...methodsOf('ServerNotification')].filter((name) => !theirs.includes(name))) assert.equal(await refused(method), true, method);
});

test('results', options, async (t) => {
  const { admin, raw } = await stage(t);
  const client = raw();
  const check = async (definition, method, params) => {
    const answer = await client.send(method, params);
    assertSchema(t, 'JSONRPCResultResponse', answer.message);
    assertSchema(t, definition, answer.message.result);
    return answer.message.result;
  };
  assertSchema(t, 'InitializeResult', await client.connect());
  await check('ListToolsResult', 'tools/list');
  const { taskId } = await check('CreateTaskResult', 'tools/call', { name: 'delete_user', task: {} });
  await check('GetTaskResult', 'tasks/get', { taskId });
  await check('ListTasksResult', 'tasks/list');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  await check('GetTaskResult', 'tasks/get', { taskId });
  await check('CallToolResult', 'tasks/result', { taskId });
  const second = await client.createTask('delete_user');
  await check('CancelTaskResult', 'tasks/cancel', { taskId: second.taskId });
  const third = await client.createTask('delete_user');
  await admin.reject(third.taskId, 'no');
  await check('GetTaskResult', 'tasks/get', { taskId: third.taskId });
  for (const status of ['input_required', 'failed', 'cancelled', 'completed']) {
    const { tasks } = await client.result('tasks/list');
    if (status !== 'input_required') assert.ok(tasks.some((x) => x.status === status), status);
  }
});

test('errors, with an id and without', options, async (t) => {
  const { upstream, connect } = await stage(t);
  const client = await connect();
  const codes = new Set();
  const check = (message) => {
    assertSchema(t, 'JSONRPCErrorResponse', message);
    codes.add(message.error.code);
  };
  for (const [method, params] of [['tools/call', { name: 'delete_user' }], ['tools/call', { name: 'drop_table' }], ['tools/call', { name: 'hidden' }], ['tools/call', { name: 'delete_user', task: 5 }], ['tasks/get', { taskId: 'tg_x' }], ['no/such', {}], ['server/discover', {}]]) check(await client.call(method, params));
  for (const body of ['{', '[]', '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}']) check((await client.send('', undefined, { body })).message);
  upstream.handlers['tools/call'] = ({ reply }) => reply.cut();
  check(await client.call('tools/call', { name: 'read' }));
  assert.deepEqual([...codes].sort((a, b) => a - b), [-32700, -32602, -32601, -32600, -32015, -32014, -32009, -32000].sort((a, b) => a - b));
});

test('notifications on the GET stream and on a waiting tasks/result', options, async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  const listening = await client.listen();
  let up;
  upstream.handlers['tools/call'] = ({ reply, id, params }) => {
    up = reply.sse();
    up.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: 1, total: 2 } });
    up.event({ jsonrpc: '2.0', id, result: { content: [] } });
    up.end();
  };
  const { taskId } = await client.result('tools/call', { name: 'delete_user', task: {}, _meta: { progressToken: 'p' } });
  const waiting = await client.stream('tasks/result', { taskId, _meta: { progressToken: 1 } });
  await admin.approve(taskId);
  await waiting.message((m) => m.id === waiting.id);
  await listening.message((m) => m.method === 'notifications/tasks/status' && m.params.status === 'completed');
  const messages = [...waiting.events, ...listening.events].filter((e) => e.json?.jsonrpc).map((e) => e.json);
  const definition = { 'notifications/progress': 'ProgressNotification', 'notifications/tasks/status': 'TaskStatusNotification' };
  assert.ok(messages.some((m) => m.method === 'notifications/progress'));
  for (const message of messages) assertSchema(t, message.method ? definition[message.method] : 'JSONRPCResultResponse', message);
});

test('what the gateway sends upstream of its own', options, async (t) => {
  const { upstream, admin, connect } = await stage(t, { upstream: { capabilities: { tools: {}, tasks: TASKS }, tools: [tool('delete_user', { support: 'required' })] } });
  const client = await connect();
  await client.result('tools/list');
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await upstream.received('tasks/get');
  await client.result('tasks/cancel', { taskId });
  await upstream.received('tasks/cancel');
  const definitions = { initialize: 'InitializeRequest', 'tools/list': 'ListToolsRequest', 'tools/call': 'CallToolRequest', 'tasks/get': 'GetTaskRequest', 'tasks/result': 'GetTaskPayloadRequest', 'tasks/cancel': 'CancelTaskRequest', ping: 'PingRequest', 'tasks/list': 'ListTasksRequest', 'notifications/initialized': 'InitializedNotification', 'notifications/cancelled': 'CancelledNotification' };
  // What asks whether the server is modern is of another revision.
  const own = upstream.requests.filter((r) => r.rpc && (r.isGatewaysOwn || r.rpc.id === undefined) && r.rpc.method !== 'server/discover');
  assert.ok(own.length >= 3);
  for (const { rpc } of own) assertSchema(t, definitions[rpc.method], rpc);
});
