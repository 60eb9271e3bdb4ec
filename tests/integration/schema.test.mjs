// Every message that the gateway makes itself is a valid message of the official schemas, 2025-11-25 and 2026-07-28.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { key, modernClient, OWN } from './lib/modern_client.mjs';
import { complete, form, modernUpstream } from './lib/modern_upstream.mjs';
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
  await new Promise((resolve) => setTimeout(resolve, 250)); // an answer within 200 ms is no person's
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

// ---- every method, in both eras ----

const table = (name) => fs.readFileSync(new URL(`../../include/taskgate/mcp/${name}_table.h`, import.meta.url), 'utf8');
const ROWS = [
  ...table('method').matchAll(/^MCP_METHOD_ROW\("?([\w/]+|MCP_\w+)"?, \w+, (LEGACY|MODERN|BOTH), /gm),
  ...table('extension').matchAll(/^MCP_EXTENSION_METHOD_ROW\(\w+, "([\w/]+)", (LEGACY|MODERN|BOTH), /gm),
];
const EVERY = ROWS.map(([, name, eras]) => ({ name, eras })).filter(({ name }) => !/^(?:notifications\/|MCP_)/.test(name));
const OWN_RESOURCE = 'taskgate://diagrams';
const CACHEABLE = new Set(['server/discover', 'tools/list', 'resources/list', 'resources/templates/list', 'prompts/list', 'resources/read', 'skills/list', 'skills/get']);
const SKILL = { uri: 'skill://a/SKILL.md', frontmatter: { name: 'a', description: 'd' }, resources: 'dynamic' };
/** A server's answers to methods that the scripted one does not have. */
const HANDLERS = (more) => ({
  'prompts/list': ({ reply }) => reply.result({ prompts: [{ name: 'p' }, { name: 'secret' }], ...more }),
  'prompts/get': ({ reply }) => reply.result({ messages: [], ...more }),
  'completion/complete': ({ reply }) => reply.result({ completion: { values: ['v'] }, ...more }),
  'skills/list': ({ reply }) => reply.result({ skills: [SKILL, { ...SKILL, uri: 'secret:1' }], ...more }),
  'skills/get': ({ reply }) => reply.result({ skill: SKILL, ...more }),
  'resources/directory/read': ({ reply }) => reply.result({ resources: [{ uri: 'skill://a/b', name: 'b' }], ...more }),
});
const SKILLS = { tools: {}, resources: {}, extensions: { [key('skills')]: { directoryRead: true } } };

/** The parameters of a request of each method, the definition of its result, and the schema that has it. */
const asked = (tasks) => ({
  'tools/call': [{ name: 'get_task_result', arguments: { task_id: 'tg_none', timeout_ms: 0 } }, 'CallToolResult'],
  'tools/list': [{}, 'ListToolsResult'],
  'tasks/get': [{ taskId: tasks[0] }, 'GetTaskResult', 'tasks'],
  'tasks/update': [{ taskId: tasks[0], inputResponses: {} }, 'UpdateTaskResult', 'tasks'],
  'tasks/cancel': [{ taskId: tasks[1] }, 'CancelTaskResult', 'tasks'],
  'tasks/result': [{ taskId: tasks[0] }, 'CallToolResult'],
  'tasks/list': [{}, 'ListTasksResult'],
  ping: [{}, 'EmptyResult'],
  initialize: [{ protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }, 'InitializeResult'],
  'resources/list': [{}, 'ListResourcesResult'],
  'resources/templates/list': [{}, 'ListResourceTemplatesResult'],
  'resources/read': [{ uri: OWN_RESOURCE }, 'ReadResourceResult'],
  'resources/subscribe': [{ uri: OWN_RESOURCE }, 'EmptyResult'],
  'resources/unsubscribe': [{ uri: OWN_RESOURCE }, 'EmptyResult'],
  'prompts/list': [{}, 'ListPromptsResult'],
  'prompts/get': [{ name: 'p' }, 'GetPromptResult'],
  'logging/setLevel': [{ level: 'info' }, 'EmptyResult'],
  'completion/complete': [{ ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } }, 'CompleteResult'],
  'server/discover': [{}, 'DiscoverResult'],
  'subscriptions/listen': [{ notifications: { toolsListChanged: true } }, 'SubscriptionsListenResult'],
  'skills/list': [{}, 'PaginatedResult'],
  'skills/get': [{ uri: SKILL.uri }, 'Result'],
  'resources/directory/read': [{ uri: 'skill://a' }, 'PaginatedResult'],
});

test('each method of the table, legacy: what the gateway answers is valid', options, async (t) => {
  const { admin, raw, connect } = await stage(t, { upstream: { handlers: HANDLERS({}), capabilities: { ...SKILLS, tasks: TASKS, notifications: { tasks: { status: true } } } } });
  const owner = await connect({ capabilities: { tasks: {} }, token: 'owner' });
  const ids = [(await owner.createTask('delete_user')).taskId, (await owner.createTask('delete_user', { n: 2 })).taskId];
  await admin.approve(ids[0]);
  await admin.inState(ids[0], 'completed');
  const plain = raw({ capabilities: {}, protocol: '2025-11-25', token: 'owner' });
  await plain.connect();
  const rows = EVERY.filter(({ eras }) => eras !== 'MODERN');
  assert.ok(rows.length >= 17, `only ${rows.length} methods`);
  let results = 0;
  for (const { name } of rows) {
    const [params, definition, schema] = asked(ids)[name];
    const { message } = await (schema || name.startsWith('tasks/') ? owner : plain).send(name, params);
    assertSchema(t, message.error ? 'JSONRPCErrorResponse' : 'JSONRPCResultResponse', message);
    if (!message.result) continue;
    results++;
    assertSchema(t, definition, message.result);
  }
  assert.ok(results >= 15, `only ${results} results`);
});

for (const [name, more] of [
  ['a modern server', { source: { era: 'modern' } }],
  ['a legacy server over the bridge', { source: { bridge: 'modern' }, legacy: true }],
]) {
  test(`each method of the table, modern, before ${name}: what the gateway answers is valid, and says for how long it may be kept`, modernOptions, async (t) => {
    const { legacy, source } = more;
    const upstream = { tools: [tool('delete_user'), tool('read')], handlers: HANDLERS(legacy ? {} : { resultType: 'complete' }), capabilities: SKILLS };
    const { gateway, admin } = await scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), source, upstream: legacy ? upstream : modernUpstream(upstream) });
    const owner = modernClient(t, gateway.url, { token: 'owner' });
    const plain = modernClient(t, gateway.url, { capabilities: {}, token: 'owner' });
    const ids = [(await owner.create('delete_user')).taskId, (await owner.create('delete_user', { n: 2 })).taskId];
    await admin.approve(ids[0]);
    await owner.get(ids[0]);
    await admin.inState(ids[0], 'completed');
    const rows = EVERY.filter(({ eras }) => eras !== 'LEGACY');
    assert.ok(rows.length >= 12, `only ${rows.length} methods`);
    const own = [];
    for (const { name: method } of rows) {
      const [params, definition, schema = 'modern'] = asked(ids)[method];
      const client = schema === 'tasks' ? owner : plain;
      if (method === 'subscriptions/listen') {
        const stream = await client.stream(method, params, { id: 'l' });
        assertSchema(t, 'SubscriptionsAcknowledgedNotification', await stream.message((m) => m.method), 'modern');
        stream.abort();
        continue;
      }
      const { message } = await client.send(method, params);
      assertSchema(t, message.error ? 'JSONRPCErrorResponse' : 'JSONRPCResultResponse', message, 'modern');
      if (!message.result) continue;
      own.push(method);
      assertSchema(t, definition, message.result, schema);
      assert.equal(message.result.resultType, 'complete', method);
      const { ttlMs, cacheScope } = message.result;
      if (CACHEABLE.has(method)) assert.ok(cacheScope === 'private' && ttlMs >= 0 && ttlMs <= 60_000, `${method}: ${ttlMs} ${cacheScope}`);
      else assert.deepEqual([cacheScope, schema === 'tasks' || ttlMs === undefined], [undefined, true], method);
    }
    for (const method of ['tools/call', 'tools/list', 'prompts/list', 'prompts/get', 'completion/complete', 'resources/list', 'resources/templates/list', 'resources/read', 'server/discover', 'tasks/get', 'tasks/update', 'tasks/cancel', ...(legacy ? [] : ['skills/list', 'skills/get', 'resources/directory/read'])]) assert.ok(own.includes(method), `no result of ${method}`);
  });
}
