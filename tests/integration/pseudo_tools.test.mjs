// The gateway's own tools: the clients that see them, their names, arguments and answers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Ajv from 'ajv';
import { workflow } from './lib/gateway.mjs';
import { blocks, callTool, kinds } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const stage = (t, { tools = [tool('delete_user'), tool('read')], pseudo, clients, ...more } = {}) =>
  scene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    upstream: { tools, ...more.upstream },
    config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms', ...pseudo }, ...(clients ? { clients } : {}), ...more.config },
  });

const client = kinds.old.client;
const NAMES = ['list_tasks', 'get_task', 'get_task_result', 'cancel_task', 'await_activity', 'execute_tool', 'get_elicitations', 'respond_to_elicitation', 'cancel_elicitation_request', 'get_sampling_requests', 'respond_to_sampling', 'cancel_sampling_request', 'get_notifications', 'get_logs', 'list_servers', 'list_tools'];
const OFFERED_FIRST = ['list_tasks', 'get_task', 'get_task_result', 'cancel_task', 'await_activity', 'execute_tool'];
const namesSeenBy = async (c) => (await c.result('tools/list')).tools.map((x) => x.name);
const ours = (names) => names.filter((name) => NAMES.includes(name));

test('they are listed behind upstream\'s own, for clients that did not declare tasks', async (t) => {
  const { connect } = await stage(t);
  const names = await namesSeenBy(await connect(client));
  assert.deepEqual(names.slice(0, 2), ['delete_user', 'read']);
  assert.deepEqual(names.slice(2, 2 + OFFERED_FIRST.length), OFFERED_FIRST);
  assert.deepEqual(ours(await namesSeenBy(await connect({ capabilities: {} }))), ours(names));
  assert.deepEqual(ours(await namesSeenBy(await connect())), []);
});

test('they stand on the last page only', async (t) => {
  const { connect } = await stage(t, { upstream: { pageSize: 1 } });
  const c = await connect(client);
  const first = await c.result('tools/list');
  assert.deepEqual(first.tools.map((x) => x.name), ['delete_user']);
  const last = await c.result('tools/list', { cursor: first.nextCursor });
  assert.deepEqual(last.tools.slice(0, 2).map((x) => x.name), ['read', 'list_tasks']);
  assert.equal(last.nextCursor, undefined);
});

const modes = {
  'mode always shows them to clients with tasks': [{ pseudo: { mode: 'always' } }, {}, true],
  'mode never shows them to nobody': [{ pseudo: { mode: 'never' } }, client, false],
  'clients: tasks: yes hides them from a client that declared nothing': [{ clients: [{ match: 'raw-*', tasks: 'yes' }] }, client, false],
  'clients: tasks: no shows them to a client that declared tasks': [{ clients: [{ match: 'raw-*', tasks: 'no' }] }, {}, true],
};
for (const [name, [options, who, shown]] of Object.entries(modes)) {
  test(name, async (t) => {
    const { connect } = await stage(t, options);
    assert.equal(ours(await namesSeenBy(await connect(who))).length > 0, shown);
  });
}

test('mode never: their names are upstream\'s to answer', async (t) => {
  const { connect, upstream } = await stage(t, { pseudo: { mode: 'never' } });
  await callTool(await connect(client), 'list_tasks');
  assert.deepEqual(upstream.calls.map((call) => call.rpc.params.name), ['list_tasks']);
});

test('only: those alone are listed and answered', async (t) => {
  const { connect, upstream } = await stage(t, { pseudo: { only: ['get_task_result', 'list_tasks'] } });
  const c = await connect(client);
  assert.deepEqual(ours(await namesSeenBy(c)), ['list_tasks', 'get_task_result']);
  await callTool(c, 'get_task', { task_id: 'x' });
  assert.equal(upstream.calls.length, 1);
});

test('a name that upstream has stays upstream\'s; ours gets the prefix, and the log says so once', async (t) => {
  const { connect, upstream, gateway } = await stage(t, { tools: [tool('get_logs'), tool('list_tasks')], pseudo: { prefix: 'tg-' } });
  const c = await connect(client), second = await connect(client);
  const names = await namesSeenBy(c);
  await namesSeenBy(second);
  assert.deepEqual(names.slice(0, 2), ['get_logs', 'list_tasks']);
  assert.ok(names.includes('tg-get_logs') && names.includes('tg-list_tasks') && names.includes('get_task'));
  assert.equal((await callTool(c, 'list_tasks')).content[0].text, 'did list_tasks');
  assert.deepEqual((await callTool(c, 'tg-list_tasks')).structuredContent, { tasks: [], has_more: false });
  assert.deepEqual((await callTool(c, 'tg-get_task', { task_id: 'x' })).content[0].text, "Task 'x' not found");
  assert.equal(upstream.calls.length, 1);
  assert.equal(gateway.child.stderr.split('\n').filter((line) => line.includes('offered under another name')).length, 1);
});

test('rules and expose are not for them', async (t) => {
  const { connect } = await scene(t, { defaultAction: 'deny', expose: { mode: 'allowlist', tools: ['read'] }, upstream: { tools: [tool('read')] } });
  assert.deepEqual((await callTool(await connect(client), 'list_tasks')).structuredContent.tasks, []);
});

test('every definition is one that clients accept, and its schema says what the seed does', async (t) => {
  const { connect } = await stage(t);
  const { tools } = await (await connect(client)).result('tools/list');
  const ajv = new Ajv({ strict: false });
  for (const definition of tools.filter((x) => NAMES.includes(x.name))) {
    assert.equal(definition.inputSchema.type, 'object', definition.name);
    assert.ok(ajv.validateSchema(definition.inputSchema), definition.name);
    assert.ok(definition.description.length > 20, definition.name);
    for (const [key, value] of Object.entries(definition.inputSchema.properties)) assert.ok(value.description, `${definition.name}.${key}`);
    assert.deepEqual([definition.execution, definition.annotations.taskSupport], [undefined, undefined]);
  }
  const keysOf = (name) => {
    const { properties, required = [] } = tools.find((x) => x.name === name).inputSchema;
    return Object.entries(properties).map(([key, { type }]) => `${key}${required.includes(key) ? '' : '?'}: ${type}`);
  };
  const parameters = {
    list_tasks: ['server?: string', 'status?: string', 'include_completed?: boolean'],
    get_task: ['task_id: string'],
    get_task_result: ['task_id: string', 'timeout_ms?: number'],
    cancel_task: ['task_id: string'],
    await_activity: ['timeout_ms?: number'],
    execute_tool: ['server: string', 'tool: string', 'args?: object', 'timeout_ms?: number'],
    get_elicitations: [],
    respond_to_elicitation: ['request_id: string', 'action: string', 'content?: object'],
    cancel_elicitation_request: ['request_id: string', 'reason?: string'],
    get_sampling_requests: [],
    respond_to_sampling: ['request_id: string', 'role: string', 'content: string', 'model: string', 'stop_reason?: string'],
    cancel_sampling_request: ['request_id: string', 'reason?: string'],
    get_notifications: [],
    get_logs: ['server?: string', 'level?: string', 'limit?: number'],
    list_servers: [],
    list_tools: ['server?: string', 'tool?: string'],
  };
  assert.deepEqual(Object.fromEntries(NAMES.map((name) => [name, keysOf(name)])), parameters);
  const property = (name, key) => tools.find((x) => x.name === name).inputSchema.properties[key];
  assert.equal(property('await_activity', 'timeout_ms').default, 30_000);
  assert.equal(property('execute_tool', 'timeout_ms').default, undefined, 'the wait depends on whether progress is asked for');
  assert.equal(property('list_tasks', 'include_completed').default, false);
  assert.equal(property('cancel_elicitation_request', 'reason').default, 'User cancelled');
  assert.deepEqual(property('list_tasks', 'status').enum, ['working', 'completed', 'failed', 'cancelled', 'expired']);
  assert.deepEqual(property('respond_to_elicitation', 'action').enum, ['accept', 'decline', 'cancel']);
  assert.deepEqual(property('respond_to_sampling', 'role').enum, ['user', 'assistant']);
  assert.deepEqual(property('respond_to_sampling', 'stop_reason').enum, ['endTurn', 'maxTokens', 'stopSequence', 'toolUse']);
  // The hints that a host may read before it asks its human.
  const hinting = (hint) => tools.filter((x) => NAMES.includes(x.name) && x.annotations[hint]).map((x) => x.name);
  assert.deepEqual(hinting('destructiveHint'), ['execute_tool'], 'it does whatever the tools of upstream do');
  assert.deepEqual(hinting('openWorldHint'), ['execute_tool']);
  assert.deepEqual(hinting('readOnlyHint').filter((name) => !/^(get|list|await)_/.test(name)), []);
});

const refusals = [
  ['get_task', {}, 'task_id (string) is required'],
  ['get_task', { task_id: null }, 'task_id (string) is required'],
  ['get_task', { task_id: 7 }, 'task_id must be of type string'],
  ['get_task_result', { task_id: 'x', timeout_ms: '5' }, 'timeout_ms must be of type number'],
  ['get_task_result', { task_id: 'x', timeout_ms: -1 }, 'timeout_ms must not be below 0'],
  ['list_tasks', { status: 'pending' }, 'status must be one of working, completed, failed, cancelled, expired'],
  ['list_tasks', { include_completed: 'yes' }, 'include_completed must be of type boolean'],
  ['get_logs', { limit: 0 }, 'limit must not be below 1'],
  ['execute_tool', { server: 'up', tool: 'read', args: [] }, 'args must be of type object'],
];
test('arguments that do not fit the schema are refused in words', async (t) => {
  const { connect } = await stage(t);
  const c = await connect(client);
  for (const [name, args, words] of refusals) {
    const answer = await callTool(c, name, args);
    assert.equal(answer.isError, true, words);
    assert.equal(answer.content[0].text, `Invalid arguments for ${name}: ${words}`);
  }
  assert.equal((await callTool(c, 'list_tasks', { status: null, unknown: 1 })).isError, false);
});

test('list_tasks: by status, by server, ended ones only when asked for', async (t) => {
  const { connect, admin } = await stage(t);
  const c = await connect(client);
  const make = async (n) => (await callTool(c, 'delete_user', { n })).structuredContent.proxy_task.task_id;
  const [working, completed, failed, cancelled] = [await make(1), await make(2), await make(3), await make(4)];
  await admin.approve(completed);
  await admin.reject(failed, 'no');
  await callTool(c, 'cancel_task', { task_id: cancelled });
  await admin.inState(completed, 'completed');
  const list = async (args) => (await callTool(c, 'list_tasks', args)).structuredContent.tasks;
  const ids = async (args) => (await list(args)).map((task) => task.taskId);
  assert.deepEqual(await ids({}), [working]);
  assert.deepEqual(await ids({ include_completed: true }), [cancelled, failed, completed, working]);
  for (const [status, id] of Object.entries({ working, completed, failed, cancelled })) assert.deepEqual(await ids({ status }), [id], status);
  assert.deepEqual(await ids({ status: 'expired' }), []);
  assert.deepEqual(await ids({ server: 'up' }), [working]);
  assert.deepEqual(await ids({ server: 'down' }), []);
  const [task] = await list({ status: 'failed' });
  assert.deepEqual(Object.keys(task), ['taskId', 'createdAt', 'lastUpdatedAt', 'server', 'toolName', 'toolArgs', 'status', 'statusMessage', 'error', 'hasResult', 'ttl']);
  assert.deepEqual([task.server, task.toolName, task.toolArgs, task.hasResult, task.ttl], ['up', 'delete_user', { n: 3 }, false, 900_000]);
  assert.match(task.error, /no$/);
  assert.equal((await list({ status: 'completed' }))[0].hasResult, true);
  const answer = await callTool(c, 'list_tasks', {});
  assert.deepEqual(blocks(answer)[0], answer.structuredContent.tasks);
});

test('get_task: the task, and the questions of its server under both of the seed\'s names', async (t) => {
  const { connect } = await stage(t);
  const c = await connect(client);
  const { task_id: id } = (await callTool(c, 'delete_user')).structuredContent.proxy_task;
  const answer = await callTool(c, 'get_task', { task_id: id });
  assert.deepEqual(Object.keys(answer.structuredContent), ['task', 'pending_elicitations_for_server', 'pending_elicitations']);
  assert.deepEqual(blocks(answer)[0], answer.structuredContent);
  assert.equal(answer.structuredContent.task.status, 'working');
});

test('get_task_result: what cannot be given is an error in words', async (t) => {
  const { connect, admin } = await stage(t);
  const c = await connect(client);
  const make = async (n) => (await callTool(c, 'delete_user', { n })).structuredContent.proxy_task.task_id;
  const [working, cancelled] = [await make(1), await make(2)];
  await callTool(c, 'cancel_task', { task_id: cancelled });
  const errorOf = async (id) => {
    const answer = await callTool(c, 'get_task_result', { task_id: id, timeout_ms: 50 });
    assert.equal(answer.isError, true);
    assert.deepEqual(blocks(answer)[0], { error: answer.structuredContent.error });
    return answer.structuredContent.error;
  };
  assert.match(await errorOf(working), new RegExp(`^Task '${working}' is still working`));
  assert.equal(await errorOf('tg_none'), "Task 'tg_none' not found");
  await admin.reject(working);
  const saying = async (id) => (await callTool(c, 'get_task_result', { task_id: id })).content[0].text;
  assert.match(await saying(cancelled), /^delete_user was not run: the request was cancelled\. /);
  assert.match(await saying(working), /^delete_user was not run: admin rejected it\. /);
});

test('get_task_result: an error that asks for a URL stays an error of the protocol', async (t) => {
  const { connect, admin } = await stage(t, { upstream: { handlers: { 'tools/call': ({ reply }) => reply.error(-32042, 'Visit the page', { elicitations: [{ mode: 'url', url: 'https://x.example', elicitationId: 'e', message: 'm' }] }) } } });
  const c = await connect(client);
  const { task_id: id } = (await callTool(c, 'delete_user')).structuredContent.proxy_task;
  await admin.approve(id);
  await admin.inState(id, 'failed');
  const error = await c.error('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  assert.equal(error.code, -32042);
  assert.equal(error.data.elicitations[0].url, 'https://x.example');
});

test('cancel_task: once', async (t) => {
  const { connect } = await stage(t);
  const c = await connect(client);
  const { task_id: id } = (await callTool(c, 'delete_user')).structuredContent.proxy_task;
  const answer = await callTool(c, 'cancel_task', { task_id: id });
  assert.deepEqual(answer.structuredContent, { ...answer.structuredContent, success: true, message: `Task '${id}' cancelled` });
  const again = await callTool(c, 'cancel_task', { task_id: id });
  assert.equal(again.isError, true);
  assert.deepEqual(again.structuredContent.success, false);
  assert.match(again.structuredContent.message, /not found or not in working state/);
});

test('list_servers tells of the server of this path, and not its address', async (t) => {
  const { connect, upstream } = await stage(t);
  const answer = await callTool(await connect(client), 'list_servers');
  const [server] = answer.structuredContent.servers;
  assert.deepEqual({ ...server, connectedAt: 0 }, { name: 'up', url: '/up/mcp', status: 'connected', connected: true, connectedAt: 0 });
  assert.ok(!JSON.stringify(answer).includes(String(upstream.port)));
});

test('list_tools: all pages, what this client may see, by regular expressions', async (t) => {
  const { connect } = await scene(t, { config: { pseudo_tools: { only: 'all' } }, expose: { mode: 'blocklist', tools: ['hidden'] }, upstream: { pageSize: 1, tools: [tool('read_a'), tool('hidden'), tool('read_b'), tool('write')] } });
  const c = await connect(client);
  const names = async (args) => (await callTool(c, 'list_tools', args)).structuredContent.tools.map((x) => x.name);
  assert.deepEqual(await names({}), ['read_a', 'read_b', 'write']);
  assert.deepEqual(await names({ tool: '^read_' }), ['read_a', 'read_b']);
  assert.deepEqual(await names({ server: '^nothing' }), []);
  const [first] = blocks(await callTool(c, 'list_tools', { tool: '_a$' }))[0];
  assert.deepEqual(first, { server: 'up', name: 'read_a', description: 'The tool read_a', inputSchema: { type: 'object' } });
  assert.deepEqual(blocks(await callTool(c, 'list_tools', { tool: 'none' })), ['No tools available']);
  for (const tool of ['(', 'a{9}', '(a)\\1', 'x'.repeat(300)]) assert.match((await callTool(c, 'list_tools', { tool })).content[0].text, /^tool is no regular expression that can be used here/);
});

test('list_tools: an expression that a backtracking or table-making matcher never ends with is answered at once', async (t) => {
  let random = 7;
  const bit = () => ((random = (Math.imul(random, 1103515245) + 12345) >>> 0) >>> 16) & 1;
  const names = Array.from({ length: 50 }, () => Array.from({ length: 900 }, () => 'ab'[bit()]).join(''));
  const { connect } = await scene(t, { config: { pseudo_tools: { only: 'all' } }, upstream: { tools: [...names.map((name) => tool(name)), tool('last')] } });
  const c = await connect(client);
  const started = process.hrtime.bigint();
  assert.deepEqual(blocks(await callTool(c, 'list_tools', { tool: `(a|b)*a${'(a|b)'.repeat(25)}c` })), ['No tools available']);
  assert.ok(process.hrtime.bigint() - started < 20_000_000_000n, 'it took more than 20 s');
});

test('calls are counted by name, waits by how they ended', async (t) => {
  const { connect, admin } = await stage(t);
  const c = await connect(client);
  await callTool(c, 'delete_user');
  await callTool(c, 'list_tasks');
  await callTool(c, 'await_activity', { timeout_ms: 10 });
  const samples = await admin.metrics();
  assert.equal(samples['thoughtgate_pseudo_tool_calls_total{tool="list_tasks"}'], 1);
  assert.equal(samples['thoughtgate_pseudo_waits_total{kind="call",outcome="pending"}'], 1);
  assert.equal(samples['thoughtgate_pseudo_waits_total{kind="await_activity",outcome="timeout"}'], 1);
});

test('the official client lists and calls them', async (t) => {
  const { sdk, admin } = await stage(t);
  const c = await sdk({ name: 'plain-sdk' });
  const { tools } = await c.listTools();
  assert.ok(tools.some((x) => x.name === 'get_task_result'));
  const held = c.callTool({ name: 'execute_tool', arguments: { server: 'up', tool: 'delete_user', args: { n: 1 }, timeout_ms: 100 } });
  const pending = await held;
  const id = pending.structuredContent.proxy_task.task_id;
  const waiting = c.callTool({ name: 'await_activity', arguments: { timeout_ms: 30_000 } });
  await admin.approve(id);
  assert.equal((await waiting).isError, false);
  const result = await c.callTool({ name: 'get_task_result', arguments: { task_id: id } });
  assert.deepEqual(result.structuredContent, { tool: 'delete_user', arguments: { n: 1 } });
});
