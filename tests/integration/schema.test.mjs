// Every message that the gateway makes itself is a valid message of the official schemas, 2025-11-25 and 2026-07-28.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { key, OWN } from './lib/modern_client.mjs';
import { complete, form } from './lib/modern_upstream.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { assertSchema, assertTaskSchema, methodsOf, modernSchemaMissing, schemaMissing } from './lib/schema.mjs';
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

test("the gateway's own requests to upstream", options, async (t) => {
  const { upstream, admin, connect } = await stage(t, { upstream: { capabilities: { tools: {}, tasks: TASKS }, tools: [tool('delete_user', { support: 'required' })] } });
  const client = await connect();
  await client.result('tools/list');
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await upstream.received('tasks/get');
  await client.result('tasks/cancel', { taskId });
  await upstream.received('tasks/cancel');
  const definitions = { initialize: 'InitializeRequest', 'tools/list': 'ListToolsRequest', 'tools/call': 'CallToolRequest', 'tasks/get': 'GetTaskRequest', 'tasks/result': 'GetTaskPayloadRequest', 'tasks/cancel': 'CancelTaskRequest', ping: 'PingRequest', 'tasks/list': 'ListTasksRequest', 'notifications/initialized': 'InitializedNotification', 'notifications/cancelled': 'CancelledNotification' };
  // The request that asks whether the server is modern is of another revision.
  const own = upstream.requests.filter((r) => r.rpc && (r.isGatewaysOwn || r.rpc.id === undefined) && r.rpc.method !== 'server/discover');
  assert.ok(own.length >= 3);
  for (const { rpc } of own) assertSchema(t, definitions[rpc.method], rpc);
});

// ---- 2026-07-28 ----

const modernOptions = { skip: modernSchemaMissing };
const modernStage = (t, more = {}) =>
  modernScene(t, {
    rules: [['delete_*', 'approve'], ['drop_*', 'deny'], { match: 'batch_*', action: 'approve', require_tasks: true }],
    approval: { default: { timeout: '10m', confirm: 'form' } },
    expose: { mode: 'blocklist', tools: ['hidden'] },
    source: { era: 'modern' },
    config: { pseudo_tools: { wait: '300ms', rounds: 1 } },
    upstream: { tools: ['delete_user', 'drop_table', 'batch_job', 'read', 'hidden'].map((name) => tool(name)), ...more.upstream },
  });
/** The result of the gateway's own, which says so. */
const own = (t, definition, message, schema = 'modern') => {
  assertSchema(t, 'JSONRPCResultResponse', message, 'modern');
  assertSchema(t, definition, message.result, schema);
  assert.deepEqual(message.result._meta?.[key('serverInfo')], OWN._meta[key('serverInfo')], JSON.stringify(message));
  return message.result;
};

test('modern: tasks, from the create to each end, and their notifications', modernOptions, async (t) => {
  const handlers = { 'tools/call': ({ reply, params }) => reply.result(params.inputResponses ? complete({ content: [] }) : complete({ resultType: 'input_required', inputRequests: { a: form('A?') } , requestState: 's' })) };
  const { modern, admin } = await modernStage(t, { upstream: { handlers } });
  const client = modern({ token: 'owner' });
  const create = async () => own(t, 'CreateTaskResult', (await client.send('tools/call', { name: 'delete_user', arguments: {} })).message, 'tasks').taskId;
  const get = async (taskId) => own(t, 'GetTaskResult', (await client.send('tasks/get', { taskId })).message, 'tasks');
  const ids = [await create(), await create(), await create()];
  const stream = await client.stream('subscriptions/listen', { notifications: { taskIds: ids, toolsListChanged: true } }, { id: 'l' });
  await admin.approve(ids[0]);
  await admin.reject(ids[1], 'no');
  await stream.message((m) => m.params?.status === 'input_required');
  assert.equal((await get(ids[0])).status, 'input_required');
  own(t, 'UpdateTaskResult', (await client.send('tasks/update', { taskId: ids[0], inputResponses: { 'r1:a': { action: 'decline' } } })).message, 'tasks');
  await stream.message((m) => m.params?.status === 'completed');
  own(t, 'CancelTaskResult', (await client.send('tasks/cancel', { taskId: ids[2] })).message, 'tasks');
  await stream.message((m) => m.params?.status === 'cancelled');
  for (const taskId of ids) await get(taskId);
  for (const { json } of stream.events.filter((e) => e.json)) {
    if (json.method === 'notifications/tasks') assertTaskSchema(t, 'TaskStatusNotification', json);
    else assertSchema(t, 'SubscriptionsAcknowledgedNotification', json, 'modern');
  }
  assert.deepEqual(new Set(stream.events.map((e) => e.json?.params?.status).filter(Boolean)), new Set(['working', 'input_required', 'failed', 'cancelled', 'completed']));
});

test('modern: a held call, from the question to its user to what is pending; the gateway\'s tools', modernOptions, async (t) => {
  const { modern, admin } = await modernStage(t);
  const client = modern({ capabilities: { elicitation: {} }, token: 'owner' });
  const call = async (more) => (await client.send('tools/call', { name: 'delete_user', arguments: {}, ...more })).message;
  const asked = own(t, 'InputRequiredResult', await call());
  assert.equal(asked.inputRequests.confirm.params.mode, 'form');
  const held = own(t, 'InputRequiredResult', await call({ requestState: asked.requestState, inputResponses: { confirm: { action: 'accept', content: { confirm: true } } } }));
  const pending = own(t, 'CallToolResult', await call({ requestState: held.requestState }));
  assert.equal(pending.resultType, 'complete');
  const [{ id }] = (await admin.list()).tasks;
  for (const [name, args] of [['get_task_result', { task_id: id, timeout_ms: 0 }], ['await_activity', { timeout_ms: 0 }], ['get_task_result', {}]]) own(t, 'CallToolResult', (await client.send('tools/call', { name, arguments: args })).message);
});

test('modern: lists, discover and the end of a listen', modernOptions, async (t) => {
  const { modern, upstream, gateway } = await modernStage(t);
  const client = modern({ capabilities: {}, token: 'owner' });
  for (const list of ['the server\'s', 'the kept one']) {
    for (const [method, definition] of [['server/discover', 'DiscoverResult'], ['tools/list', 'ListToolsResult']]) {
      const { message } = await client.send(method);
      assertSchema(t, 'JSONRPCResultResponse', message, 'modern');
      assertSchema(t, definition, message.result, 'modern');
      assert.equal(message.result._meta[key('serverInfo')].name, 'modern-upstream', `${list} ${method}: what it says of itself stays`);
    }
    if (list === 'the server\'s') await upstream.stop();
  }
  const open = await modern({ token: 'owner' }).create('delete_user');
  const stream = await modern({ token: 'owner' }).stream('subscriptions/listen', { notifications: { taskIds: [open.taskId] } }, { id: 3 });
  const stopped = gateway.stop();
  assertSchema(t, 'SubscriptionsListenResultResponse', await stream.message((m) => m.id === 3), 'modern');
  await stopped;
});

test('modern: errors', modernOptions, async (t) => {
  const { modern, upstream } = await modernStage(t);
  const client = modern({ token: 'owner' });
  const bare = modern({ capabilities: {}, token: 'owner' });
  const codes = new Set();
  const check = ({ message }, definition = 'JSONRPCErrorResponse') => {
    assertSchema(t, 'JSONRPCErrorResponse', message, 'modern');
    assertSchema(t, definition, message, 'modern');
    codes.add(message.error.code);
  };
  check(await bare.send('tools/call', { name: 'batch_job', arguments: {} }), 'MissingRequiredClientCapabilityError');
  check(await bare.send('subscriptions/listen', { notifications: { taskIds: [] } }), 'MissingRequiredClientCapabilityError');
  check(await client.send('tools/call', { name: 'read' }, { headers: { 'mcp-name': 'x' } }), 'HeaderMismatchError');
  check(await client.send('tools/call', { name: 'read' }, { meta: { [key('protocolVersion')]: '2099-01-01' }, headers: { 'mcp-protocol-version': '2099-01-01' } }), 'UnsupportedProtocolVersionError');
  for (const [method, params] of [['tools/call', { name: 'drop_table' }], ['tools/call', { name: 'hidden' }], ['tasks/get', { taskId: 'tg_x' }], ['tasks/list', {}], ['tools/call', { name: 'read', requestState: 'tg1.AAAA' }], ['subscriptions/listen', {}]]) check(await client.send(method, params));
  upstream.handlers['tools/call'] = ({ reply }) => reply.cut();
  check(await client.send('tools/call', { name: 'read', arguments: {} }));
  for (const body of ['{', '[]']) check(await client.send('', {}, { body }));
  assert.deepEqual([...codes].sort((a, b) => a - b), [-32700, -32602, -32601, -32600, -32022, -32021, -32020, -32015, -32014, -32000]);
});
