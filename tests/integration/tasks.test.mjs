// A gateway-owned task from its creation to its result, as the agent sees it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectedRaw } from './lib/client.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { assertSchema } from './lib/schema.mjs';
import { scene } from './lib/scene.mjs';
import { startUpstream, TASKS, tool } from './lib/upstream.mjs';
import { until, within } from './lib/wait.mjs';

const RELATED = 'io.modelcontextprotocol/related-task';
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const ID = /^tg_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const stage = (t, more = {}) =>
  scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), ...more, upstream: { tools: [tool('delete_user'), tool('read')], ...more.upstream } });

test('create answers at once with the seed\'s flat fields and the nested task, durable and schema-valid', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  const created = await client.createTask('delete_user', { user_id: '123' }, { ttl: 600_000 });
  assert.match(created.taskId, ID);
  assert.equal(created.status, 'input_required');
  assert.equal(created.statusMessage, 'Awaiting approval');
  assert.equal(created.ttl, 600_000);
  assert.ok(Number.isInteger(created.pollInterval) && created.pollInterval > 0);
  assert.match(created.createdAt, RFC3339);
  assert.match(created.lastUpdatedAt, RFC3339);
  for (const key of ['taskId', 'status', 'statusMessage', 'ttl', 'pollInterval', 'createdAt', 'lastUpdatedAt']) assert.deepEqual(created.task[key], created[key], key);
  assertSchema(t, 'CreateTaskResult', created);
  assert.equal((await admin.task(created.taskId)).state, 'pending');
  assert.equal(upstream.calls.length, 0, 'nothing is sent before a decision');
});

test('tasks/get is a flat task; only an answer to params.task says working', async (t) => {
  const { connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const plain = await client.result('tasks/get', { taskId });
  assert.deepEqual([plain.taskId, plain.status, plain.statusMessage], [taskId, 'input_required', 'Awaiting approval']);
  assertSchema(t, 'GetTaskResult', plain);
  const loop = await client.result('tasks/get', { taskId, task: {} });
  assert.equal(loop.status, 'working');
  assertSchema(t, 'GetTaskResult', loop);
  assert.equal((await client.result('tasks/get', { taskId })).status, 'input_required');
});

for (const [pending_status, statuses] of [['working', ['working', 'working', 'working']], ['input_required', ['input_required', 'input_required', 'input_required']], ['auto', ['input_required', 'input_required', 'working']]]) {
  test(`pending_status ${pending_status}, for all and for one client`, async (t) => {
    const other = pending_status === 'working' ? 'input_required' : 'working';
    for (const config of [{ pending_status }, { pending_status: other, clients: [{ match: 'raw-*', pending_status }] }]) {
      const { connect } = await stage(t, { config });
      const client = await connect();
      const created = await client.createTask('delete_user');
      const seen = [created.status, (await client.result('tasks/get', { taskId: created.taskId })).status, (await client.result('tasks/get', { taskId: created.taskId, task: {} })).status];
      assert.deepEqual(seen, statuses, JSON.stringify(config));
    }
  });
}

test('approved: executed once, with the client\'s bytes less `task` and with an id of the gateway\'s own', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect({ token: 'agent' });
  const variants = [
    ['{"jsonrpc":"2.0","id":41,"method":"tools/call","params":{"name":"delete_user","arguments":{"n":1.0,"s":"\\u0041é"},"task":{"ttl":60000}}}', '{"jsonrpc":"2.0","id":@,"method":"tools/call","params":{"name":"delete_user","arguments":{"n":1.0,"s":"\\u0041é"}}}'],
    ['{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"task":{"ttl":60000},"name":"delete_user","arguments":{"task":{"ttl":1}}}}', '{"jsonrpc":"2.0","id":@,"method":"tools/call","params":{"name":"delete_user","arguments":{"task":{"ttl":1}}}}'],
    ['{"params":{"name":"delete_user","task":{},"arguments":{"big":12345678901234567890123}},"method":"tools/call","id":43,"jsonrpc":"2.0"}', '{"params":{"name":"delete_user","arguments":{"big":12345678901234567890123}},"method":"tools/call","id":@,"jsonrpc":"2.0"}'],
  ];
  for (const [n, [body, sent]] of variants.entries()) {
    const { taskId } = (await client.send('', undefined, { body, id: 41 + n })).message.result;
    const answer = await admin.approve(taskId);
    assert.ok(['approved', 'executing', 'completed'].includes(answer.state), answer.state);
    await admin.inState(taskId, 'completed');
    const call = upstream.calls.at(-1);
    assert.equal(upstream.calls.length, n + 1);
    assert.match(call.rpc.id, /^tg:[0-9a-f-]{36}$/);
    assert.equal(call.text, sent.replace('@', JSON.stringify(call.rpc.id)));
    assert.equal(call.headers['mcp-session-id'], client.session);
    assert.equal(call.headers.authorization, 'Bearer agent');
    assert.equal(call.headers['mcp-protocol-version'], '2025-11-25');
    assert.equal(call.headers['accept-encoding'], undefined);
  }
});

test('white space around `task` goes with it and leaves valid JSON with the same meaning', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  for (const body of ['{ "jsonrpc" : "2.0", "id" : 51, "method" : "tools/call",\n "params" : {\n  "task" : { "ttl" : 60000 } ,\n  "name" : "delete_user" ,\n  "arguments" : { "x" : 1.50 }\n }\n}', '{"jsonrpc":"2.0","id":51,"method":"tools/call","params":{ "name":"delete_user", "arguments":{"x":1.50} , "task":{} }}', '{"jsonrpc":"2.0","id":51,"method":"tools/call","params":{"name":"delete_user","ta\\u0073k":{},"arguments":{"x":1.50}}}']) {
    const { taskId } = (await client.send('', undefined, { body, id: 51 })).message.result;
    await admin.approve(taskId);
    await admin.inState(taskId, 'completed');
    const call = upstream.calls.at(-1);
    assert.deepEqual(call.rpc, { jsonrpc: '2.0', id: call.rpc.id, method: 'tools/call', params: { name: 'delete_user', arguments: { x: 1.5 } } });
    assert.match(call.text, /1\.50/);
  }
});

test('the result is upstream\'s, verbatim but for the id and the related-task _meta, and repeatable', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply, id }) => reply.http(200, { 'content-type': 'application/json' }, `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[{"type":"text","text":"caf\\u00e9"}],"structuredContent":{ "n":1.0,"big":12345678901234567890 },"_meta":{"own":[ 1 ]}}}`);
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  const got = await client.result('tasks/get', { taskId });
  assert.equal(got.status, 'completed');
  assertSchema(t, 'GetTaskResult', got);
  for (let i = 0; i < 3; i++) {
    const answer = await client.send('tasks/result', { taskId }, { headers: { accept: i === 2 ? 'application/json' : 'application/json, text/event-stream' } });
    assert.ok(answer.text.includes('"structuredContent":{ "n":1.0,"big":12345678901234567890 }'), answer.text);
    assert.ok(answer.text.includes('caf\\u00e9'));
    assert.deepEqual(answer.message.result._meta, { own: [1], [RELATED]: { taskId } });
    assert.equal(answer.message.id, answer.id);
    assertSchema(t, 'GetTaskPayloadResult', answer.message.result);
  }
  assert.equal(upstream.calls.length, 1);
});

test('EC-SEP-009 tasks/result blocks until the decision; every waiter gets the same stored result', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user', { who: 'x' });
  const waiters = [];
  for (const accept of ['application/json, text/event-stream', 'application/json, text/event-stream', 'application/json']) {
    const response = client.send('tasks/result', { taskId }, { headers: { accept } });
    waiters.push(response);
  }
  let settled = 0;
  for (const waiter of waiters) waiter.then(() => settled++, () => settled++);
  assert.equal((await client.result('tasks/get', { taskId })).status, 'input_required');
  assert.equal(settled, 0);
  await admin.approve(taskId);
  const answers = await Promise.all(waiters);
  assert.match(answers[0].headers['content-type'], /^text\/event-stream/);
  assert.match(answers[2].headers['content-type'], /^application\/json/);
  for (const answer of answers) {
    assert.equal(answer.message.id, answer.id);
    assert.deepEqual(answer.message.result, answers[0].message.result);
    assert.deepEqual(answer.message.result.structuredContent.arguments, { who: 'x' });
  }
  assert.equal(upstream.calls.length, 1);
});

test('a waiting tasks/result with a progress token hears whole, rising seconds', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const stream = await client.stream('tasks/result', { taskId, _meta: { progressToken: 'tok' } });
  const seen = [];
  while (seen.length < 2) {
    const { params } = await stream.message((m) => m.method === 'notifications/progress', 'progress', 40_000);
    assert.equal(params.progressToken, 'tok');
    assert.ok(Number.isInteger(params.progress), String(params.progress));
    seen.push(params.progress);
  }
  assert.ok(seen[1] > seen[0], seen.join());
  assert.ok(seen[1] <= 60);
  await admin.approve(taskId);
  assert.ok((await stream.message((m) => m.id === stream.id)).result);
});

test('a waiting tasks/result without a token is kept alive by comments only', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const stream = await client.stream('tasks/result', { taskId });
  await stream.next((e) => e.comment !== undefined && !e.json, 'a comment', 20_000);
  assert.deepEqual(stream.events.filter((e) => e.json), []);
  await admin.approve(taskId);
  assert.ok((await stream.message((m) => m.id === stream.id)).result);
});

test('a waiter that leaves changes nothing', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const stream = await client.stream('tasks/result', { taskId });
  stream.abort();
  assert.equal((await client.result('tasks/get', { taskId })).status, 'input_required');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.ok((await client.result('tasks/result', { taskId })).content);
});

test('rejected: failed with the reason where the SDK looks, and -32007', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const waiter = client.error('tasks/result', { taskId });
  await admin.reject(taskId, 'not on a Friday');
  const task = await client.result('tasks/get', { taskId });
  assert.equal(task.status, 'failed');
  assert.match(task.statusMessage, /not on a Friday/);
  for (const error of [await waiter, await client.error('tasks/result', { taskId })]) {
    assert.deepEqual([error.code, error.message, error.data.error_type, error.data.reason], [-32007, 'Rejected by: admin: not on a Friday', 'approval_rejected', 'not on a Friday']);
  }
  assert.equal(upstream.calls.length, 0);
});

test('undecided past decide-by: failed, -32008, and an approval that comes late is refused', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user', {}, { ttl: 1500 });
  const waiter = client.error('tasks/result', { taskId });
  await until(async () => (await client.result('tasks/get', { taskId })).status === 'failed', 'the task to expire');
  const task = await client.result('tasks/get', { taskId });
  assert.equal(typeof task.statusMessage, 'string');
  assert.notEqual(task.statusMessage, 'Awaiting approval');
  assert.equal((await admin.task(taskId)).state, 'expired');
  const late = await admin.decide('approve', taskId);
  assert.deepEqual([late.status, late.json.error.state], [409, 'expired']);
  const error = await client.error('tasks/result', { taskId });
  assert.deepEqual([error.code, error.data.error_type], [-32008, 'approval_timeout']);
  assert.equal((await within(waiter, 'the waiter to hear of it', 15_000)).code, -32008);
  assert.equal(upstream.calls.length, 0);
});

test("decide-by is the workflow's timeout where that is shorter than the ttl; the ttl shown stays the client's", async (t) => {
  const { admin, connect } = await stage(t, { approval: workflow('5s') });
  const client = await connect();
  const created = await client.createTask('delete_user', {}, { ttl: 600_000 });
  assert.equal(created.ttl, 600_000);
  const task = await admin.task(created.taskId);
  assert.equal(Date.parse(task.decideBy) - Date.parse(task.createdAt), 5000);
  await admin.inState(created.taskId, 'expired');
  assert.equal((await client.error('tasks/result', { taskId: created.taskId })).code, -32008);
});

test('cancel while undecided; a second cancel, and the result, say so', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const waiter = client.error('tasks/result', { taskId });
  const cancelled = await client.result('tasks/cancel', { taskId });
  assert.deepEqual([cancelled.taskId, cancelled.status], [taskId, 'cancelled']);
  assertSchema(t, 'CancelTaskResult', cancelled);
  assert.equal((await client.error('tasks/cancel', { taskId })).code, -32602);
  for (const error of [await waiter, await client.error('tasks/result', { taskId })]) assert.deepEqual([error.code, error.data.error_type], [-32006, 'task_cancelled']);
  assert.equal((await admin.decide('approve', taskId)).status, 409);
  assert.equal(upstream.calls.length, 0);
});

test('EC-SEP-008 cancel of every terminal state is -32602', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  const make = async () => (await client.createTask('delete_user')).taskId;
  const [completed, rejected, cancelled] = [await make(), await make(), await make()];
  await admin.approve(completed);
  await admin.inState(completed, 'completed');
  await admin.reject(rejected);
  await admin.cancel(cancelled);
  for (const taskId of [completed, rejected, cancelled]) assert.equal((await client.error('tasks/cancel', { taskId })).code, -32602);
});

test('cancel while executing: cancelled for the client, best effort upstream', async (t) => {
  const { upstream, admin, connect } = await stage(t, { upstream: { handlers: { 'tools/call': () => {} } } });
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  const call = await upstream.received('tools/call');
  assert.equal((await client.result('tasks/get', { taskId })).status, 'working');
  assert.equal((await client.result('tasks/cancel', { taskId })).status, 'cancelled');
  await Promise.race([call.gone, upstream.received((r) => r.rpc?.method === 'notifications/cancelled' && r.rpc.params.requestId === call.rpc.id)]);
  assert.equal((await client.error('tasks/result', { taskId })).code, -32006);
  assert.equal((await admin.task(taskId)).state, 'cancelled');
});

for (const [what, taskId] of [['unknown', 'tg_00000000-0000-4000-8000-000000000000'], ['short', 'tg_abc123'], ['a name', 'tg_'], ['long', `tg_${'x'.repeat(5000)}`]]) {
  test(`EC-SEP-005, 006, 007: get, result and cancel of a non-existent task (${what}) are -32602 and stay here`, async (t) => {
    const { upstream, connect } = await stage(t);
    const client = await connect();
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
      const answer = await client.send(method, { taskId });
      assert.deepEqual([answer.status, answer.message.error.code, answer.message.error.data.error_type], [200, -32602, 'task_not_found'], method);
      assert.equal(upstream.of(method).length, 0);
    }
  });
}

test('tasks methods without a usable taskId are -32602', async (t) => {
  const { connect } = await stage(t);
  const client = await connect();
  for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
    for (const params of [undefined, {}, { taskId: 5 }, { taskId: null }]) assert.equal((await client.error(method, params)).code, -32602, `${method} ${JSON.stringify(params)}`);
  }
});

test('ids of others go upstream unchanged', async (t) => {
  const { upstream, connect } = await stage(t, { upstream: { capabilities: { tools: {}, tasks: TASKS }, tools: [tool('opt', { support: 'optional' })] } });
  const client = await connect();
  const { task } = await client.createTask('opt');
  assert.equal((await client.result('tasks/get', { taskId: task.taskId })).taskId, task.taskId);
  assert.ok((await client.result('tasks/result', { taskId: task.taskId })).content);
  assert.equal((await client.result('tasks/cancel', { taskId: task.taskId })).status, 'cancelled');
  assert.equal((await client.error('tasks/get', { taskId: 'abc123' })).message, 'upstream knows no such task');
  assert.equal(upstream.of('tasks/get').at(-1).rpc.params.taskId, 'abc123');
});

test('policy that changed before the approval: deny or another workflow is -32011, forward and the same workflow pass', async (t) => {
  const { upstream, gateway, admin, connect } = await stage(t, { approval: { ...workflow('10m'), other: { destination: { type: 'admin' } } }, rules: [{ match: 'delete_*', action: 'approve', approval: 'default' }] });
  const client = await connect();
  let calls = 0;
  for (const [rule, drift] of [
    [{ action: 'deny' }, true],
    [{ action: 'approve', approval: 'other' }, true],
    [{ action: 'forward' }, false],
    [{ action: 'approve', approval: 'default', description: 'the same' }, false],
  ]) {
    const { taskId } = await client.createTask('delete_user');
    gateway.writeConfig({ rules: [{ match: 'marker', action: 'forward' }, { match: 'delete_*', ...rule }] });
    await reload(gateway, client);
    await admin.decide('approve', taskId);
    await admin.inState(taskId, drift ? 'failed' : 'completed');
    if (drift) {
      const error = await client.error('tasks/result', { taskId });
      assert.deepEqual([error.code, error.data.error_type], [-32011, 'policy_drift'], JSON.stringify(rule));
    } else calls += 1;
    assert.equal(upstream.calls.length, calls, JSON.stringify(rule));
    gateway.writeConfig({ rules: [{ match: 'delete_*', action: 'approve', approval: 'default' }] });
    await reload(gateway, client);
  }
});

async function reload(gateway, client) {
  const stream = await client.listen();
  gateway.hangUp();
  await stream.message((m) => m.method === 'notifications/tools/list_changed', 'the reload');
  stream.abort();
}

test('a definition of the tool that changes between the approval and the execution is -32012', async (t) => {
  const { upstream, admin, connect } = await stage(t, { config: { execution: 'on_result' } });
  const client = await connect();
  await client.result('tools/list');
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  upstream.tools[0] = tool('delete_user', { description: 'Now deletes everybody' });
  await client.result('tools/list');
  const error = await client.error('tasks/result', { taskId });
  assert.equal((await admin.task(taskId)).state, 'failed');
  assert.deepEqual([error.code, error.data.error_type, error.data.gate], [-32012, 'transform_drift', 'policy']);
  assert.equal(upstream.calls.length, 0);
});

test('tasks/list: ours first, newest first, upstream\'s behind, every entry a full task with its tool', async (t) => {
  const { upstream, connect } = await stage(t, { upstream: { capabilities: { tools: {}, tasks: TASKS }, tools: [tool('delete_user'), tool('opt', { support: 'optional' })] } });
  const client = await connect();
  const theirs = [(await client.createTask('opt')).task.taskId, (await client.createTask('opt')).task.taskId];
  const ours = [(await client.createTask('delete_user')).taskId, (await client.createTask('delete_user')).taskId];
  const result = await client.result('tasks/list');
  assert.deepEqual(result.tasks.map((x) => x.taskId), [...ours.reverse(), ...theirs.reverse()]);
  assert.deepEqual([result.tasks[0].toolName, result.tasks[0].status], ['delete_user', 'input_required']);
  assertSchema(t, 'ListTasksResult', result);
  assert.ok(!('nextCursor' in result));
  upstream.handlers['tasks/list'] = ({ reply }) => reply.http(500, {}, 'broken');
  assert.deepEqual((await client.result('tasks/list')).tasks.map((x) => x.taskId), ours);
  upstream.handlers['tasks/list'] = ({ reply }) => reply.error(-32603, 'broken');
  assert.deepEqual((await client.result('tasks/list')).tasks.map((x) => x.taskId), ours);
});

test('tasks/list without upstream tasks asks nobody', async (t) => {
  const { upstream, connect } = await stage(t);
  const client = await connect();
  assert.deepEqual(await client.result('tasks/list'), { tasks: [] });
  await client.createTask('delete_user');
  assert.equal((await client.result('tasks/list')).tasks.length, 1);
  assert.equal(upstream.of('tasks/list').length, 0);
});

test('tasks/list pages over the merge: twenty a page, nothing lost, nothing twice, cursors of our own', async (t) => {
  const { upstream, connect } = await stage(t, { upstream: { pageSize: 3, capabilities: { tools: {}, tasks: TASKS }, tools: [tool('delete_user'), tool('opt', { support: 'optional' })] } });
  const client = await connect();
  const ours = [];
  for (let i = 0; i < 25; i++) ours.unshift((await client.createTask('delete_user', { i })).taskId);
  const theirs = [];
  for (let i = 0; i < 7; i++) theirs.unshift((await client.createTask('opt')).task.taskId);
  const seen = [];
  let cursor;
  let pages = 0;
  do {
    const page = await client.result('tasks/list', cursor === undefined ? undefined : { cursor });
    assertSchema(t, 'ListTasksResult', page);
    assert.ok(page.tasks.length <= 20);
    if (pages === 0) assert.equal(page.tasks.length, 20);
    seen.push(...page.tasks.map((x) => x.taskId));
    cursor = page.nextCursor;
    if (cursor !== undefined) {
      assert.ok(typeof cursor === 'string' && cursor.length > 0);
      assert.doesNotMatch(cursor, /^page-/);
    }
    assert.ok(++pages < 20);
  } while (cursor !== undefined);
  assert.deepEqual(seen, [...ours, ...theirs]);
  const wrapped = (text) => Buffer.from(text).toString('base64');
  for (const bad of ['', 'page-3', 'nonsense', 'eyJvZmZzZXQiOjk5OTk5OTk5OX0=', wrapped('{"before":5 }'), wrapped('{"before":5,"x":1}'), '\u0000', 'A'.repeat(10_000)]) {
    assert.equal((await client.error('tasks/list', { cursor: bad })).code, -32602, JSON.stringify(bad).slice(0, 40));
  }
  assert.equal((await client.error('tasks/list', { cursor: 5 })).code, -32602);
});

test('terminal tasks stay readable beyond their ttl', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user', {}, { ttl: 1500 });
  const created = performance.now();
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  await until(() => performance.now() - created > 2000, 'the ttl to pass');
  assert.equal((await client.result('tasks/get', { taskId })).status, 'completed');
  assert.ok((await client.result('tasks/result', { taskId })).content);
});

test('the ttl never cuts an execution', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply }) => setTimeout(() => reply.result({ content: [{ type: 'text', text: 'late but whole' }] }), 2500);
  const { taskId } = await client.createTask('delete_user', {}, { ttl: 1500 });
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.equal((await client.result('tasks/result', { taskId })).content[0].text, 'late but whole');
});

test('approvals of one task that race each other run it once', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect();
  for (let round = 0; round < 5; round++) {
    const { taskId } = await client.createTask('delete_user');
    const answers = await Promise.all([...Array.from({ length: 6 }, () => admin.decide('approve', taskId)), admin.decide('reject', taskId), client.send('tasks/cancel', { taskId })]);
    const won = answers.slice(0, 7).filter((a) => a.status === 200).length;
    assert.ok(won <= 1, `${won} decisions were accepted`);
    assert.ok(answers.slice(0, 7).every((a) => [200, 409].includes(a.status)));
    await admin.inState(taskId, 'completed', 'rejected', 'cancelled');
  }
  assert.ok(upstream.calls.length <= 5);
  assert.equal(new Set(upstream.calls.map((c) => c.rpc.id)).size, upstream.calls.length);
});

test('tasks of one source are unknown on another\'s path', async (t) => {
  const [a, b] = [await startUpstream(t), await startUpstream(t)];
  const gateway = await startGateway(t, { upstream: { a: a.url, b: b.url }, rules: [['write', 'approve']] });
  const one = await connectedRaw(t, `${gateway.origin}/a/mcp`, { token: 'same' });
  const two = await connectedRaw(t, `${gateway.origin}/b/mcp`, { token: 'same' });
  const { taskId } = await one.createTask('write');
  assert.equal((await two.error('tasks/get', { taskId })).code, -32602);
  assert.deepEqual((await two.result('tasks/list')).tasks, []);
  assert.equal((await one.result('tasks/get', { taskId })).taskId, taskId);
  assert.equal((await gateway.admin.task(taskId)).source, 'a');
});
