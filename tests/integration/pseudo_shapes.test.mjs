// The shape of every answer of the gateway's own tools: its blocks of text and its structuredContent (behaviour 11.7).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Ajv from 'ajv';
import addFormats from 'ajv-formats';
import { asks, elicit, PARTY, SAMPLE, sample } from './lib/asking.mjs';
import { workflow } from './lib/gateway.mjs';
import { blocks, callTool, kinds } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

/* ---- the shapes: closed, so that a member more or less is an error ---- */

const text = { type: 'string', minLength: 1 };
const number = { type: 'number' };
const time = { type: 'string', format: 'date-time' };
const ulid = { type: 'string', pattern: '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' };
const taskId = { type: 'string', pattern: '^(tg_[0-9a-f-]{36}|[0-7][0-9A-HJKMNP-TV-Z]{25})$' };
const status = { enum: ['working', 'completed', 'failed', 'cancelled', 'expired'] };
const any = {};
const list = (items) => ({ type: 'array', items });
const one = (items) => ({ type: 'array', items, minItems: 1 });
/** An object with exactly these members; a member with "?" at its end may be absent. */
function object(members) {
  const names = Object.keys(members);
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name.replace('?', ''), members[name]])),
    required: names.filter((name) => !name.endsWith('?')),
    additionalProperties: false,
  };
}

const event = object({ id: ulid, type: text, server: { const: 'up' }, data: { type: 'object' }, createdAt: time });
const askedShortly = object({ requestId: ulid, server: { const: 'up' }, message: text });
const sampledShortly = object({ requestId: ulid, server: { const: 'up' } });
const pendingAction = object({ elicitations: list(askedShortly), sampling_requests: list(sampledShortly) });
/** Members that every structuredContent may have, each also a block of its own. */
const news = { 'events_since_last_response?': one(event), 'pending_client_action?': pendingAction };

const task = { taskId, createdAt: time, lastUpdatedAt: time, server: { const: 'up' }, toolName: text, toolArgs: { type: 'object' }, status, 'statusMessage?': text, 'error?': text, hasResult: { type: 'boolean' }, ttl: number };
const proxyTask = object({ task_id: taskId, status, 'status_message?': text, created_at: time, last_updated_at: time, server: { const: 'up' }, tool: text, 'error?': text, ttl: number });
const workingTask = object({ taskId, toolName: text, status: { const: 'working' } });
const onServer = object({ tasks: one(workingTask), elicitations_for_server: list(askedShortly) });
const trigger = {
  oneOf: [object({ type: { const: 'timeout' } }), object({ type: { const: 'immediate' } }), object({ type: { const: 'event' }, server: text, eventType: text }), object({ type: { const: 'server_disconnected' }, server: text })],
};
const elicitation = object({ requestId: ulid, server: { const: 'up' }, timestamp: time, mode: { enum: ['form', 'url'] }, message: text, 'requestedSchema?': { type: 'object' }, 'elicitationId?': text, 'url?': text });
const sampling = object({ requestId: ulid, server: { const: 'up' }, timestamp: time, maxTokens: number, 'systemPrompt?': text, 'temperature?': number, messages: one(any), 'modelPreferences?': any, 'tools?': any });

const shapes = {
  list_tasks: { tasks: list(object(task)), has_more: { type: 'boolean' } },
  get_task: { task: proxyTask, pending_elicitations_for_server: list(askedShortly), pending_elicitations: list(askedShortly) },
  cancel_task: { success: { type: 'boolean' }, message: text },
  await_activity: { triggers: one(trigger), events: list(object({ server: { const: 'up' }, events: one(event) })), pending_server: list(object({ server: { const: 'up' }, working_tasks: one(workingTask) })), pending_client: pendingAction },
  get_elicitations: { elicitations: list(elicitation) },
  get_sampling_requests: { sampling_requests: list(sampling) },
  get_notifications: { notifications: list(object({ server: { const: 'up' }, method: text, timestamp: time, 'params?': any })) },
  get_logs: { logs: list(object({ server: { const: 'up' }, level: text, 'logger?': text, timestamp: time, data: any })) },
  list_servers: { servers: one(object({ name: { const: 'up' }, url: text, status: { enum: ['connected', 'disconnected'] }, connected: { type: 'boolean' }, 'connectedAt?': time, 'description?': text })) },
  list_tools: { tools: list(object({ server: { const: 'up' }, name: text, 'description?': text, inputSchema: { type: 'object' } })) },
};
const promotion = { message: text, proxy_task: proxyTask, pending_on_server: onServer };
const pending = { ...promotion, joined: { type: 'boolean' } };

const ajv = addFormats(new Ajv({ strict: false, allErrors: true, formats: {} }));

/**
 * Asserts that `result` has the fixed shape: blocks of text in their order, and `members` with the common ones as
 * structuredContent. `first` has the blocks before those of the events.
 */
function assertShape(result, members, first, others = news) {
  const validate = ajv.compile(object({ ...members, ...others }));
  assert.ok(validate(result.structuredContent), `${ajv.errorsText(validate.errors)}\n${JSON.stringify(result.structuredContent, null, 1)}`);
  assert.ok(result.content.every((block) => block.type === 'text' && Object.keys(block).length === 2));
  assert.equal(typeof result.isError, 'boolean');
  const { events_since_last_response, pending_client_action } = result.structuredContent;
  const expected = [
    ...first(result.structuredContent),
    ...(events_since_last_response ? [{ events_since_last_response }] : []),
    ...(pending_client_action ? [{ pending_client_action }] : []),
  ];
  assert.deepEqual(blocks(result), expected);
}

/** The members of the answer alone. */
const own = (members) => (structured) => [Object.fromEntries(Object.entries(structured).filter(([name]) => name in members))];
/** The array that is the answer; `words` in its place where it is empty. */
const array = (name, words) => (structured) => [structured[name].length === 0 && words ? words : structured[name]];
const firstBlocks = {
  list_tasks: array('tasks'),
  get_elicitations: array('elicitations', 'No pending elicitation requests'),
  get_sampling_requests: array('sampling_requests', 'No pending sampling requests'),
  get_notifications: array('notifications', 'No notifications'),
  get_logs: array('logs', 'No log messages'),
  list_servers: array('servers'),
  list_tools: array('tools', 'No tools available'),
};

async function checked(client, name, args = {}) {
  const result = await callTool(client, name, args);
  assertShape(result, shapes[name], firstBlocks[name] ?? own(shapes[name]));
  return result.structuredContent;
}

const stage = (t, handler, more = {}) =>
  scene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    upstream: { tools: [tool('delete_user'), tool('book'), tool('read')], handlers: handler ? { 'tools/call': handler } : {} },
    config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '300ms', wait_max: '300ms' } },
    ...more,
  });

test('with nothing to tell: empty lists, and words for them', async (t) => {
  const { connect } = await stage(t);
  const client = await connect(kinds.old.client);
  for (const name of ['list_tasks', 'get_elicitations', 'get_sampling_requests', 'get_notifications', 'get_logs', 'list_servers', 'list_tools']) {
    const structured = await checked(client, name);
    if (!['list_servers', 'list_tools'].includes(name)) assert.deepEqual(Object.values(structured)[0], [], name);
  }
  await checked(client, 'list_tools', { tool: 'none of them' });
  await checked(client, 'await_activity', { timeout_ms: 20 });
});

test('a call that waits for approval, and its task in each of its states', async (t) => {
  const { connect, admin } = await stage(t);
  const client = await connect(kinds.old.client);
  const make = async (n) => {
    const result = await callTool(client, 'delete_user', { n });
    assertShape(result, pending, ({ message, ...block }) => [message, block], {});
    return result.structuredContent.proxy_task.task_id;
  };
  const ids = { working: await make(1), completed: await make(2), failed: await make(3), cancelled: await make(4) };
  await admin.approve(ids.completed);
  await admin.reject(ids.failed, 'no');
  assert.equal((await checked(client, 'cancel_task', { task_id: ids.cancelled })).success, true);
  assert.equal((await checked(client, 'cancel_task', { task_id: ids.cancelled })).success, false);
  await admin.inState(ids.completed, 'completed');
  for (const [state, id] of Object.entries(ids)) assert.equal((await checked(client, 'get_task', { task_id: id })).task.status, state);
  assert.equal((await checked(client, 'list_tasks', { include_completed: true })).tasks.length, 4);
  assert.equal((await checked(client, 'await_activity', { timeout_ms: 20 })).pending_server[0].working_tasks.length, 1);
});

test('a promoted call that asks: the promotion, every list while it asks, and every answer', async (t) => {
  const { connect, upstream } = await stage(t, asks(elicit('e'), sample('s'), elicit('e-2'), sample('s-2')));
  const client = await connect(kinds.old.client);
  const done = async (name, outcome, args) => {
    const result = await callTool(client, name, args);
    assertShape(result, { requestId: { const: args.request_id }, outcome: { const: outcome } }, () => [`${/elicit/.test(name) ? 'Elicitation' : 'Sampling'} request '${args.request_id}': ${outcome}`]);
  };
  const first = (name, member) => until(async () => (await checked(client, name))[member][0], `something in ${name}`);
  await (await client.listen()).response;
  const result = await callTool(client, 'execute_tool', { server: 'up', tool: 'book', args: { x: 1 }, timeout_ms: 300 });
  assertShape(result, promotion, ({ message, proxy_task, pending_on_server }) => [message, { proxy_task, pending_on_server }]);
  assert.equal(result.isError, false);
  const { task_id: id } = result.structuredContent.proxy_task;
  assert.equal((await checked(client, 'get_task', { task_id: id })).pending_elicitations_for_server.length, 1);
  const [asked] = (await checked(client, 'get_elicitations')).elicitations;
  assert.deepEqual([asked.message, asked.requestedSchema], [PARTY.message, PARTY.requestedSchema]);
  assert.equal((await checked(client, 'await_activity', { timeout_ms: 20 })).pending_client.elicitations[0].requestId, asked.requestId);
  await done('respond_to_elicitation', 'accepted', { request_id: asked.requestId, action: 'accept', content: { partySize: 2 } });
  const sampled = await first('get_sampling_requests', 'sampling_requests');
  assert.deepEqual([sampled.messages, sampled.maxTokens], [SAMPLE.messages, SAMPLE.maxTokens]);
  await done('respond_to_sampling', 'completed', { request_id: sampled.requestId, role: 'assistant', content: 'hello', model: 'm' });
  await done('cancel_elicitation_request', 'cancelled', { request_id: (await first('get_elicitations', 'elicitations')).requestId });
  await done('cancel_sampling_request', 'rejected', { request_id: (await first('get_sampling_requests', 'sampling_requests')).requestId });
  const ended = await callTool(client, 'get_task_result', { task_id: id });
  assert.equal(ended.structuredContent.answers.length, 4, 'the tool’s own result');
  upstream.push({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'x://1' } });
  upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'a line' } });
  await until(async () => (await checked(client, 'get_logs')).logs.length > 0, 'the log message');
  assert.equal((await checked(client, 'get_notifications')).notifications.length, 1);
});

test('failures: isError, and one block of words or of {error}', async (t) => {
  const { connect } = await stage(t);
  const client = await connect(kinds.old.client);
  const refusals = {
    get_task: [{ task_id: 'x' }, "Task 'x' not found"],
    get_task_result: [{ task_id: 'x' }, { error: "Task 'x' not found" }],
    execute_tool: [{ server: 'other', tool: 'read' }, "Failed to execute tool: 'other' is no server that can be reached here; see list_servers"],
    respond_to_elicitation: [{ request_id: 'x', action: 'decline' }, "Elicitation request 'x' not found or already completed"],
    cancel_elicitation_request: [{ request_id: 'x' }, "Elicitation request 'x' not found or already completed"],
    respond_to_sampling: [{ request_id: 'x', role: 'assistant', content: 'c', model: 'm' }, "Failed to respond: Sampling request 'x' not found or already completed"],
    cancel_sampling_request: [{ request_id: 'x' }, "Sampling request 'x' not found or already completed"],
  };
  for (const [name, [args, words]] of Object.entries(refusals)) {
    const result = await callTool(client, name, args);
    assert.equal(result.isError, true, name);
    assert.deepEqual(blocks(result), [words], name);
  }
});
