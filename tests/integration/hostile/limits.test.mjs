// At each limit: a clear refusal, nothing of it upstream, and older work goes on.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { sample } from '../lib/admin.mjs';
import { call as callOfOperator, stage as controlPlane } from '../lib/control_plane.mjs';
import { workflow } from '../lib/gateway.mjs';
import { socketTo } from '../lib/http.mjs';
import { defer } from '../lib/lifetime.mjs';
import { scene } from '../lib/scene.mjs';
import { until } from '../lib/wait.mjs';
import { bytes, call, head, hostileScene, lives } from './stage.mjs';

const limited = (t, limits) => hostileScene(t, { config: { limits } });

/** How often a limit has been reached, by the metrics. */
const reached = async (stage, limit) => sample(await stage.admin.metrics(), 'thoughtgate_limits_reached_total', { limit }) ?? 0;

test('connections: one too many waits or is closed, the old ones go on, and room is made again', async (t) => {
  const stage = await limited(t, { connections: 20 });
  const client = await stage.connect();
  const sockets = await Promise.all(Array.from({ length: 60 }, () => socketTo(stage.gateway.port)));
  defer(t, () => sockets.forEach((socket) => socket.destroy()));
  for (let i = 0; i < 5; i++) assert.ok(await client.result('tools/call', { name: 'read' }));
  assert.equal((await stage.admin.get('/health')).status, 200, 'the operators are not shut out');
  assert.ok((await reached(stage, 'connections')) >= 1);
  sockets.forEach((socket) => socket.destroy());
  const late = await stage.connect();
  assert.ok(await late.result('tools/call', { name: 'read' }));
});

test('sessions: the one not seen for longest makes room, its tasks stay', async (t) => {
  const stage = await limited(t, { sessions: 8 });
  const client = await stage.connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  assert.equal(await reached(stage, 'sessions'), 0);
  for (let i = 0; i < 40; i++) await stage.connect({ token: `t${i}` });
  assert.ok((await reached(stage, 'sessions')) >= 40 - 2 * 8, 'some of them made room');
  assert.equal((await client.result('tasks/get', { taskId })).status, 'input_required');
  await stage.admin.approve(taskId);
  await until(async () => (await client.result('tasks/get', { taskId })).status === 'completed', 'the execution');
  assert.equal(stage.upstream.calls.length, 1);
});

test('sessions of a principal: they make room for each other, and nobody else\'s goes', async (t) => {
  const stage = await limited(t, { sessions_per_principal: 3 });
  const [greedy, modest] = [await stage.connect({ token: 'A' }), await stage.connect({ token: 'B' })];
  const tasks = [await greedy.createTask('delete_user'), await modest.createTask('delete_user')];
  assert.equal(await reached(stage, 'sessions_per_principal'), 0);
  for (let i = 0; i < 10; i++) await stage.connect({ token: 'A' });
  assert.equal(await reached(stage, 'sessions_per_principal'), 11 - 3);
  // Upstream is asked once more about a session that was forgotten, and about no other.
  const pings = () => stage.upstream.of('ping').length;
  const before = pings();
  assert.equal((await modest.result('tasks/get', { taskId: tasks[1].taskId })).status, 'input_required');
  assert.equal(pings(), before);
  assert.equal((await greedy.result('tasks/get', { taskId: tasks[0].taskId })).status, 'input_required');
  assert.equal(pings(), before + 1);
  await stage.admin.approve(tasks[0].taskId);
  await stage.admin.inState(tasks[0].taskId, 'completed');
  await lives(stage, greedy);
});

test('made-up tokens of one address share what it may have of pending_total, and leave the rest to those who are known', async (t) => {
  const { ci, connect, admin, ...stage } = await controlPlane(t, { config: { limits: { pending_total: 8, pending_per_principal: 1, share_percent: 25 }, admin: { tokens: [{ name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] }] } } });
  const create = async (token) => (await connect({ token })).send('tools/call', { name: 'delete_user', arguments: {}, task: {} });
  const [first] = [await create('made-up-1'), await create('made-up-2')];
  const refused = async (token) => {
    const { message } = await create(token);
    assert.deepEqual([message.error?.code, message.error?.data.details], [-32013, 'too many pending tasks']);
  };
  for (const token of ['made-up-3', 'made-up-4', undefined]) await refused(token);
  assert.equal(await reached({ admin }, 'pending_total'), 3);
  assert.equal((await callOfOperator(ci, { tool: 'delete_user' })).status, 201);
  const { taskId } = first.message.result.task;
  await admin.reject(taskId);
  await until(async () => (await create('made-up-5')).message.result, 'the place of the rejected one');
  await refused('made-up-6');
  assert.equal(stage.upstream.calls.length, 0);
});

for (const [limit, tokens] of [['pending_per_principal', ['A', 'A', 'A']], ['pending_total', ['A', 'B', 'C']]]) {
  test(`${limit}: -32013 with retry_after, counted, and the old tasks can be decided`, async (t) => {
    const stage = await limited(t, { [limit]: 2 });
    const clients = [];
    for (const token of tokens) clients.push(await stage.connect({ token }));
    const { taskId } = await clients[0].createTask('delete_user');
    await clients[1].createTask('delete_user');
    const error = await clients[2].error('tools/call', { name: 'delete_user', task: {} });
    assert.equal(error.code, -32013);
    assert.ok(error.data.retry_after > 0);
    assert.ok(sample(await stage.admin.metrics(), 'thoughtgate_errors_total', { error_type: error.data.error_type }) >= 1);
    assert.equal(await reached(stage, limit), 1);
    await stage.admin.approve(taskId);
    await stage.admin.inState(taskId, 'completed');
    await clients[2].createTask('delete_user');
    await lives(stage, clients[2]);
  });
}

test('bytes of a body and of headers: refused before upstream hears of them, on a connection of their own', async (t) => {
  const stage = await limited(t, { body_bytes: 1000 });
  const client = await stage.connect();
  const at = (length) => call(`{"name":"read","arguments":{"x":"${'x'.repeat(length - call('{"name":"read","arguments":{"x":""}}').length)}"}}`);
  assert.equal((await client.post(at(1000))).status, 200, 'exactly the limit passes');
  const before = stage.upstream.requests.length;
  for (const answer of [await client.post(at(1001)), await client.post(at(1002)), await client.post(at(5000)), await chunked(t, stage, at(5000))]) {
    assert.equal(answer.status, 413);
    assert.equal(answer.headers['content-type'], 'application/json');
    const { id, error } = JSON.parse(typeof answer.text === 'string' ? answer.text : await answer.text());
    assert.deepEqual([id, error.code, error.data.error_type], [undefined, -32600, 'request_too_large']);
    assert.match(error.data.hint, /limits\.body_bytes/);
  }
  assert.equal(await reached(stage, 'body_bytes'), 4);
  const huge = await bytes(t, stage.gateway.port, head([`X-A: ${'a'.repeat(300_000)}`, 'Content-Length: 2']) + '{}');
  assert.ok([0, 400, 413, 431].includes(huge.status));
  assert.equal(stage.upstream.requests.length, before);
  await lives(stage, client);
});

/** A connection that has sent so many bytes of a body of 200,000, and never sends the rest. */
async function half(t, stage, length) {
  const socket = await socketTo(stage.gateway.port);
  defer(t, () => socket.destroy());
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await new Promise((resolve) => socket.write(head(['Content-Length: 200000']) + 'x'.repeat(length), resolve));
  return { socket, closed, isOpen: () => !socket.received };
}

test('bodies that are half sent: bounded all together, the slowest goes, an honest one passes', async (t) => {
  const stage = await hostileScene(t, { config: { workers: 2, limits: { body_bytes: 200_000, bodies_bytes: 1_960_000, share_percent: 100 } } });
  const client = await stage.connect();
  const slow = await half(t, stage, 100_000);
  const others = [];
  for (let i = 0; i < 6; i++) {
    others.push(await half(t, stage, 150_000));
    await lives(stage, client);
  }
  assert.equal(await reached(stage, 'bodies_bytes'), 0, 'so much is allowed');
  assert.ok(slow.isOpen());
  others.push(await half(t, stage, 150_000));
  await slow.closed;
  assert.match(slow.socket.received, /^HTTP\/1\.1 503 /);
  assert.equal(await reached(stage, 'bodies_bytes'), 1);
  assert.deepEqual(others.map((other) => other.isOpen()), others.map(() => true), 'nobody else had to go');
  // A whole body comes fast, and takes the place of one that does not come.
  for (let i = 0; i < 3; i++) assert.equal((await client.post(call(`{"name":"read","arguments":{"x":"${'x'.repeat(190_000)}"}}`))).status, 200);
  // Many more: of all that was sent at most so much is kept.
  for (let i = 0; i < 20; i++) others.push(await half(t, stage, 150_000));
  await until(() => others.filter((other) => other.isOpen()).length <= 7, 'the slowest went');
  assert.ok(others.some((other) => other.isOpen()), 'not all of them');
  await lives(stage, client);
});

/** The same body in chunks, without a length in advance. */
async function chunked(t, stage, text) {
  const chunk = `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
  const { socket, status } = await bytes(t, stage.gateway.port, head(['Transfer-Encoding: chunked']) + chunk);
  await until(() => socket.received.includes('}}'), 'the whole answer');
  const [top, body] = socket.received.split('\r\n\r\n');
  return { status, text: body, headers: { 'content-type': /^content-type: (.*)$/im.exec(top)[1] } };
}

test('the operators\' port refuses a large body in words of its own', async (t) => {
  const { admin, connect } = await limited(t, {});
  const { taskId } = await (await connect()).createTask('delete_user');
  const answer = await admin.post(`/api/v1/tasks/${taskId}/approve`, { reason: 'x'.repeat(5_000_000) });
  assert.equal(answer.status, 413);
  assert.equal(answer.json.error.code, 'too_large');
  assert.equal((await admin.task(taskId)).state, 'pending');
});

test('bytes of a result: the task fails, and the gateway keeps none of it', async (t) => {
  const stage = await limited(t, { result_bytes: 65_536 });
  const client = await stage.connect();
  stage.upstream.handlers['tools/call'] = ({ reply, params }) => reply.result({ content: [{ type: 'text', text: 'x'.repeat(params.name === 'read' ? 10 : 5_000_000) }] });
  const { taskId } = await client.createTask('delete_user');
  await stage.admin.approve(taskId);
  assert.equal((await stage.admin.inState(taskId, 'failed', 'completed')).state, 'failed');
  assert.equal((await client.error('tasks/result', { taskId })).code, -32002);
  assert.equal(await reached(stage, 'result_bytes'), 1);
  await lives(stage, client);
});

test('request rate: 429 with Retry-After, and a peer that slows down is served again', async (t) => {
  const stage = await limited(t, { requests_per_second: 20 });
  const client = await stage.connect();
  const before = stage.upstream.calls.length;
  const answers = await Promise.all(Array.from({ length: 100 }, () => client.send('tools/call', { name: 'read' })));
  const refused = answers.filter((a) => a.status === 429);
  assert.ok(refused.length > 0 && refused.every((a) => Number(a.headers['retry-after']) > 0));
  for (const { message } of refused) assert.deepEqual([message.error.code, message.error.data.error_type, message.error.data.retry_after], [-32013, 'rate_limited', 1]);
  assert.ok((await reached(stage, 'requests_per_second')) >= refused.length);
  assert.equal(stage.upstream.calls.length - before + refused.length, 100);
  await until(async () => (await client.send('tools/call', { name: 'read' })).status === 200, 'to be served again');
});

test('request rate of a principal: others at the same address are not held up', async (t) => {
  const stage = await limited(t, { requests_per_second_per_principal: 20 });
  const [greedy, modest] = [await stage.connect({ token: 'A' }), await stage.connect({ token: 'B' })];
  const answers = await Promise.all(Array.from({ length: 100 }, () => greedy.send('tools/call', { name: 'read' })));
  const refused = answers.filter((a) => a.status === 429);
  assert.ok(refused.length > 0 && refused.every((a) => Number(a.headers['retry-after']) > 0 && a.message.error.code === -32013));
  assert.equal(stage.upstream.calls.length + refused.length, 100);
  assert.equal(await reached(stage, 'requests_per_second_per_principal'), refused.length);
  for (let i = 0; i < 5; i++) assert.ok(await modest.result('tools/call', { name: 'read' }));
  await until(async () => (await greedy.send('tools/call', { name: 'read' })).status === 200, 'to be served again');
});

test('lists of long calls, asked for by many at once, do not fill the memory', async (t) => {
  const { gateway, connect, admin } = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m') });
  const client = await connect({ token: 'A' });
  const text = 'x'.repeat(3_000_000);
  const ids = [];
  for (let i = 0; i < 20; i++) ids.unshift((await client.createTask('read', { text, i })).taskId);
  const most = () => Number(/VmHWM:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${gateway.child.pid}/status`, 'utf8'))[1]) * 1024;
  const before = most();
  const lists = await Promise.all(Array.from({ length: 30 }, () => client.result('tasks/list')));
  for (const { tasks } of lists) assert.deepEqual(tasks.map((x) => x.taskId), ids);
  assert.ok(most() - before < 300_000_000, `${most() - before} bytes more`); // 1.8 GB if each list loaded arguments that it does not show
  // Operators see the arguments, on pages that end before they are too long.
  const seen = [];
  for (let cursor = ''; cursor !== null; ) {
    const page = await admin.list({ ...(cursor && { cursor }) });
    assert.ok(page.tasks.length > 0 && page.tasks.length < 10, `${page.tasks.length} on a page`);
    for (const task of page.tasks) assert.equal(task.arguments.text.length, text.length);
    seen.push(...page.tasks.map((x) => x.id));
    cursor = page.nextCursor;
  }
  assert.deepEqual(seen, ids);
});
