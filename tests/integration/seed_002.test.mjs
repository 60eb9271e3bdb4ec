// Tasks of the legacy era, row by row (behaviour 7.1 to 7.20). Exact objects mean "contains"; deferred rows run with
// `execution: on_result`; rows that speak of Cedar are shown by `approve` or force_required.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { open } from './lib/http.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const WITH_TASKS = { tools: {}, tasks: TASKS };
const SEED_TASKS = { tools: {}, tasks: { requests: { 'tools/call': true } } };
const NO_TASKS = { tools: {} };
const WITH_SSE = { tools: {}, notifications: { tasks: { status: true } } };

const stage = (t, { capabilities = NO_TASKS, tools = [tool('delete_user'), tool('read_file')], rules = [['delete_*', 'approve']], ...more } = {}) =>
  scene(t, { rules, approval: workflow('10m'), upstream: { capabilities, tools }, ...more });

async function advertised(t, capabilities) {
  const s = await stage(t, { capabilities });
  return { ...s, capabilities: (await s.raw().initialize()).message.result.capabilities };
}

/** The annotation of one tool, in the older spelling. */
const annotation = async (client, name) => (await client.result('tools/list')).tools.find((x) => x.name === name).annotations.taskSupport;

const annotationOf = async (t, name, options) => annotation(await (await stage(t, options)).connect(), name);

// §9.1 Unit tests

test('9.1 Capability injection (upstream has none)', async (t) => {
  const { capabilities } = await advertised(t, {});
  assert.equal(capabilities.tasks.requests['tools/call'], true);
});

test('9.1 Capability injection (upstream has tasks)', async (t) => {
  const own = { requests: { 'tools/call': true, vendor: { x: 1 } }, list: { own: 1 } };
  const { capabilities } = await advertised(t, { tasks: own });
  assert.equal(capabilities.tasks.requests['tools/call'], true);
  assert.deepEqual(capabilities.tasks.requests.vendor, { x: 1 });
  assert.deepEqual(capabilities.tasks.list, { own: 1 });
});

test('9.1 Upstream capability detection (has tasks)', async (t) => {
  const { gateway } = await advertised(t, SEED_TASKS);
  await gateway.logged(/^Upstream capabilities: tasks=true sse=false$/);
});

test('9.1 Upstream capability detection (no tasks)', async (t) => {
  const { gateway } = await advertised(t, {});
  await gateway.logged(/^Upstream capabilities: tasks=false sse=false$/);
});

test('9.1 SSE capability detection (has SSE)', async (t) => {
  const { gateway } = await advertised(t, WITH_SSE);
  await gateway.logged(/^Upstream capabilities: tasks=false sse=true$/);
});

test('9.1 SSE capability detection (no SSE)', async (t) => {
  const { gateway } = await advertised(t, {});
  await gateway.logged(/^Upstream capabilities: tasks=false sse=false$/);
});

test('9.1 SSE conditional advertisement (upstream has SSE)', async (t) => {
  assert.equal((await advertised(t, WITH_SSE)).capabilities.notifications.tasks.status, true);
});

test('9.1 SSE conditional advertisement (upstream no SSE)', async (t) => {
  assert.ok(!('notifications' in (await advertised(t, NO_TASKS)).capabilities));
});

test('9.1 Annotation: upstream no tasks + no approval', async (t) => {
  assert.equal(await annotationOf(t, 'read_file'), 'forbidden');
});

test('9.1 Annotation: upstream no tasks + approval possible', async (t) => {
  assert.equal(await annotationOf(t, 'delete_user'), 'required');
});

test('9.1 Annotation: upstream has tasks + no approval', async (t) => {
  for (const support of ['optional', 'required']) {
    const tools = [tool('read_file', { annotations: { taskSupport: support } })];
    assert.equal(await annotationOf(t, 'read_file', { capabilities: SEED_TASKS, tools }), support);
  }
});

test('9.1 Annotation: forbidden + no approval', async (t) => {
  const tools = [tool('read_file', { annotations: { taskSupport: 'forbidden' } })];
  assert.equal(await annotationOf(t, 'read_file', { tools }), 'forbidden');
});

test('9.1 Annotation: forbidden + approval possible', async (t) => {
  const tools = [tool('delete_user', { annotations: { taskSupport: 'forbidden' } })];
  assert.equal(await annotationOf(t, 'delete_user', { tools }), 'required');
});

test('9.1 Annotation: force_required override', async (t) => {
  assert.equal(await annotationOf(t, 'read_file', { forceRequired: ['read_file'] }), 'required');
  assert.equal(await annotationOf(t, 'read_file', { env: { THOUGHTGATE_TASK_FORCE_REQUIRED: 'read_file' } }), 'required');
});

test('9.1 Validation: required + no task', async (t) => {
  const client = await (await stage(t)).connect();
  const error = await client.error('tools/call', { name: 'delete_user', arguments: { user_id: '123' } });
  assert.deepEqual([error.code, error.message], [-32009, 'TaskRequired']);
});

test('9.1 Validation: forbidden + task present', async (t) => {
  const client = await (await stage(t)).connect();
  const error = await client.error('tools/call', { name: 'read_file', arguments: {}, task: { ttl: 600000 } });
  assert.deepEqual([error.code, error.message], [-32010, 'TaskForbidden']);
});

test('9.1 Task ID routing: tg_ prefix', async (t) => {
  const { upstream, connect } = await stage(t, { capabilities: WITH_TASKS });
  assert.equal((await (await connect()).error('tasks/get', { taskId: 'tg_abc123' })).code, -32602);
  assert.equal(upstream.of('tasks/get').length, 0);
});

test('9.1 Task ID routing: other', async (t) => {
  const { upstream, connect } = await stage(t, { capabilities: WITH_TASKS });
  assert.equal((await (await connect()).error('tasks/get', { taskId: 'abc123' })).message, 'upstream knows no such task');
  assert.equal(upstream.of('tasks/get').length, 1);
});

// §9.2 Integration tests

test('9.2 Full handshake', async (t) => {
  const { raw, admin } = await stage(t);
  const client = raw();
  const { capabilities } = await client.connect();
  assert.equal(capabilities.tasks.requests['tools/call'], true);
  assert.deepEqual([await annotation(client, 'delete_user'), await annotation(client, 'read_file')], ['required', 'forbidden']);
  const created = await client.createTask('delete_user', { user_id: '123' }, { ttl: 600000 });
  assert.match(created.taskId, /^tg_/);
  assert.equal((await admin.task(created.taskId)).tool, 'delete_user');
});

test('9.2 Policy reload', async (t) => {
  const { gateway, connect } = await stage(t);
  const client = await connect();
  assert.equal(await annotation(client, 'read_file'), 'forbidden');
  gateway.writeConfig({ rules: [['read_*', 'approve']] });
  gateway.hangUp();
  await until(async () => (await annotation(client, 'read_file')) === 'required', 'the new annotation');
  assert.equal(await annotation(client, 'delete_user'), 'forbidden');
});

test('9.2 Mixed ownership', async (t) => {
  const { connect } = await stage(t, { capabilities: WITH_TASKS, tools: [tool('delete_user'), tool('research', { support: 'optional' })] });
  const client = await connect();
  const ours = await client.createTask('delete_user');
  const theirs = (await client.createTask('research')).task;
  assert.match(ours.taskId, /^tg_/);
  assert.match(theirs.taskId, /^up-/);
  assert.equal((await client.result('tasks/get', { taskId: ours.taskId })).status, 'input_required');
  assert.equal((await client.result('tasks/get', { taskId: theirs.taskId })).status, 'working');
});

test('9.2 Upstream no tasks + approval tool', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  assert.equal(await annotation(client, 'delete_user'), 'required');
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  assert.equal((await client.result('tasks/result', { taskId })).content[0].text, 'did delete_user');
  assert.equal(upstream.calls[0].rpc.params.task, undefined);
});

test('9.2 Upstream no tasks + forward tool', async (t) => {
  const client = await (await stage(t)).connect();
  assert.equal(await annotation(client, 'read_file'), 'forbidden');
  assert.equal((await client.error('tools/call', { name: 'read_file', task: {} })).code, -32010);
  assert.ok(await client.result('tools/call', { name: 'read_file' }));
});

test('9.2 Forward + task + forbidden', async (t) => {
  const { upstream, admin, connect } = await stage(t, { capabilities: WITH_TASKS, config: { execution: 'on_result' } });
  const client = await connect();
  const created = await client.createTask('read_file');
  assert.match(created.taskId, /^tg_/);
  assert.equal(created.status, 'working');
  assert.equal((await admin.task(created.taskId)).state, 'approved');
  assert.equal(upstream.calls.length, 0);
});

test('9.2 Forward + task + optional', async (t) => {
  const { upstream, connect } = await stage(t, { capabilities: WITH_TASKS, tools: [tool('read_file', { support: 'optional' })] });
  const client = await connect();
  const { task } = await client.createTask('read_file', {}, { ttl: 5000 });
  assert.match(task.taskId, /^up-/);
  assert.deepEqual(upstream.calls[0].rpc.params.task, { ttl: 5000 });
});

test('9.2 Accelerated approve flow', async (t) => {
  const { upstream, connect } = await stage(t, { capabilities: WITH_TASKS, config: { execution: 'on_result' } });
  const client = await connect();
  const { taskId } = await client.createTask('read_file', { path: '/a' });
  assert.equal((await client.result('tasks/get', { taskId })).status, 'working');
  assert.equal(upstream.calls.length, 0, 'deferred until tasks/result');
  const result = await client.result('tasks/result', { taskId });
  assert.deepEqual(result.structuredContent.arguments, { path: '/a' });
  assert.equal(upstream.calls.length, 1);
  assert.equal((await client.result('tasks/get', { taskId })).status, 'completed');
});

test('9.2 tasks/list merge', async (t) => {
  const { connect } = await stage(t, { capabilities: WITH_TASKS, tools: [tool('delete_user'), tool('research', { support: 'optional' })] });
  const client = await connect();
  const theirs = (await client.createTask('research')).task.taskId;
  const ours = (await client.createTask('delete_user')).taskId;
  const { tasks } = await client.result('tasks/list');
  assert.deepEqual(tasks.map((x) => x.taskId), [ours, theirs]);
  assert.deepEqual([tasks[0].status, tasks[0].toolName], ['input_required', 'delete_user']);
});

test('9.2 tasks/list TG only', async (t) => {
  const { upstream, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  assert.deepEqual((await client.result('tasks/list')).tasks.map((x) => x.taskId), [taskId]);
  assert.equal(upstream.of('tasks/list').length, 0);
});

async function reconnects(t, before, after, look) {
  const s = await stage(t, { capabilities: before });
  const first = await look(s);
  await s.upstream.stop();
  s.upstream.liveSessions.clear();
  s.upstream.capabilities = after;
  await s.upstream.listen();
  return [first, await look(s)];
}

test('9.2 Upstream reconnect', async (t) => {
  const seen = await reconnects(t, NO_TASKS, WITH_TASKS, async ({ connect }) => annotation(await connect(), 'read_file'));
  assert.deepEqual(seen, ['forbidden', 'optional']);
});

test('9.2 Upstream with SSE', async (t) => {
  const { admin, connect } = await stage(t, { capabilities: WITH_SSE });
  const client = await connect();
  const stream = await client.listen();
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  const event = await stream.next((e) => e.event === 'task_status' && e.json.status === 'completed');
  assert.equal(event.json.taskId, taskId);
  assert.match(event.json.timestamp, /^\d{4}-\d\d-\d\dT/);
});

test('9.2 Upstream without SSE', async (t) => {
  assert.equal((await advertised(t, NO_TASKS)).capabilities.notifications?.tasks, undefined);
});

test('9.2 Upstream SSE changes on reconnect', async (t) => {
  const look = async ({ raw }) => (await raw().initialize()).message.result.capabilities.notifications?.tasks?.status ?? false;
  assert.deepEqual(await reconnects(t, NO_TASKS, WITH_SSE, look), [false, true]);
});

// §9.3 Compliance tests

test('9.3 Capability advertisement', async (t) => {
  for (const capabilities of [{}, NO_TASKS, SEED_TASKS, WITH_TASKS]) {
    assert.equal((await advertised(t, capabilities)).capabilities.tasks.requests['tools/call'], true);
  }
});

test('9.3 Conditional SSE advertisement', async (t) => {
  assert.equal((await advertised(t, WITH_SSE)).capabilities.notifications.tasks.status, true);
  assert.equal((await advertised(t, {})).capabilities.notifications, undefined);
});

test('9.3 Tool annotation presence', async (t) => {
  const { connect } = await stage(t, { tools: ['a', 'b', 'delete_x'].map((name) => tool(name)), rules: [['delete_*', 'approve'], ['b', 'deny']] });
  const { tools } = await (await connect()).result('tools/list');
  assert.deepEqual(tools.map((x) => x.annotations.taskSupport), ['forbidden', 'forbidden', 'required']);
});

test('9.3 Task metadata handling', async (t) => {
  const client = await (await stage(t)).connect();
  const created = await client.createTask('delete_user', {}, { ttl: 600000 });
  assert.match(created.taskId, /^tg_[0-9a-f-]{36}$/);
  assert.deepEqual([created.status, created.statusMessage, typeof created.pollInterval], ['input_required', 'Awaiting approval', 'number']);
});

test('9.3 Task method routing', async (t) => {
  const { connect } = await stage(t, { capabilities: WITH_TASKS, tools: [tool('delete_user'), tool('research', { support: 'optional' })] });
  const client = await connect();
  for (const taskId of [(await client.createTask('delete_user')).taskId, (await client.createTask('research')).task.taskId]) {
    assert.equal((await client.result('tasks/get', { taskId })).taskId, taskId);
    assert.ok((await client.result('tasks/list')).tasks.some((x) => x.taskId === taskId));
    assert.equal((await client.result('tasks/cancel', { taskId })).status, 'cancelled');
  }
});

// §9.4 SSE edge cases

test('9.4 Client subscribes SSE when advertised', async (t) => {
  const { connect } = await stage(t, { capabilities: WITH_SSE });
  const stream = await (await connect()).listen();
  assert.equal(stream.response.status, 200);
  assert.match(stream.response.headers['content-type'], /^text\/event-stream/);
});

test('9.4 Client subscribes SSE when not advertised: nothing invites it to', async (t) => {
  assert.ok(!('notifications' in (await advertised(t, NO_TASKS)).capabilities));
});

test('9.4 Client ignores capability, attempts SSE: an upstream without streams says so, and no task status is made up', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  const stream = await client.listen();
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'fence' } });
  await stream.message((m) => m.params?.data === 'fence');
  assert.ok(!stream.events.some((e) => e.event === 'task_status'));
  upstream.onHttp = (r, reply) => r.method === 'GET' && (reply.http(405, { allow: 'POST, DELETE' }, 'SSE not supported'), true);
  const response = await open(client.url, { headers: { accept: 'text/event-stream', 'mcp-session-id': client.session } });
  assert.deepEqual([response.status, await response.text()], [405, 'SSE not supported']);
});

const advertisesSse = async ({ raw }) => (await raw().initialize()).message.result.capabilities.notifications?.tasks?.status === true;

test('9.4 Upstream loses SSE on reconnect', async (t) => {
  assert.deepEqual(await reconnects(t, WITH_SSE, NO_TASKS, advertisesSse), [true, false]);
});

test('9.4 Upstream gains SSE on reconnect', async (t) => {
  assert.deepEqual(await reconnects(t, NO_TASKS, WITH_SSE, advertisesSse), [false, true]);
});

// §9.5 Task API edge cases

test('9.5 EC-SEP-001 malformed task metadata', async (t) => {
  const client = await (await stage(t)).connect();
  for (const task of ['soon', 5, [], null, true]) assert.equal((await client.error('tools/call', { name: 'delete_user', task })).code, -32602, JSON.stringify(task));
});

test('9.5 EC-SEP-002 task TTL = 0', async (t) => {
  const { admin, connect } = await stage(t);
  assert.equal((await (await connect()).error('tools/call', { name: 'delete_user', task: { ttl: 0 } })).code, -32602);
  assert.deepEqual((await admin.list()).tasks, []);
});

test('9.5 EC-SEP-003 task TTL exceeds max allowed', async (t) => {
  const { gateway, connect } = await stage(t);
  assert.equal((await (await connect()).createTask('delete_user', {}, { ttl: 86_400_001 })).ttl, 86_400_000);
  await gateway.logged((entry) => /^warn/i.test(entry.level) && /ttl/i.test(JSON.stringify(entry)));
});

test('9.5 EC-SEP-004 empty tools/list from upstream', async (t) => {
  const client = await (await stage(t, { tools: [] })).connect();
  assert.deepEqual((await client.result('tools/list')).tools, []);
});

for (const [row, method] of [['EC-SEP-005', 'tasks/get'], ['EC-SEP-006', 'tasks/result'], ['EC-SEP-007', 'tasks/cancel']]) {
  test(`9.5 ${row} ${method} for non-existent task`, async (t) => {
    const client = await (await stage(t)).connect();
    assert.equal((await client.error(method, { taskId: 'tg_550e8400-e29b-41d4-a716-446655440000' })).code, -32602);
  });
}

test('9.5 EC-SEP-008 tasks/cancel for terminal task', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.equal((await client.error('tasks/cancel', { taskId })).code, -32602);
});

test('9.5 EC-SEP-009 tasks/result called while still working blocks until terminal', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  let release;
  upstream.handlers['tools/call'] = ({ reply }) => void (release = () => reply.result({ content: [{ type: 'text', text: 'at last' }] }));
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await upstream.received('tools/call');
  assert.equal((await client.result('tasks/get', { taskId })).status, 'working');
  const waiting = client.result('tasks/result', { taskId });
  assert.equal((await client.result('tasks/get', { taskId })).status, 'working');
  release();
  assert.equal((await waiting).content[0].text, 'at last');
});

test('9.5 EC-SEP-010 upstream changes capabilities on reconnect', async (t) => {
  const seen = await reconnects(t, WITH_TASKS, NO_TASKS, async ({ connect }) => {
    const client = await connect();
    return [await annotation(client, 'read_file'), await annotation(client, 'delete_user')];
  });
  assert.deepEqual(seen, [['optional', 'required'], ['forbidden', 'required']]);
});
