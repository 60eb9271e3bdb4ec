// await_activity: the events that end the wait, the clients that get them, and the answers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { blocks, callTool, eventsOf, kinds } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const stage = (t, { approval = workflow('10m'), config, ...more } = {}) =>
  scene(t, {
    rules: [['delete_*', 'approve']],
    approval,
    upstream: { tools: [tool('delete_user'), tool('read')] },
    config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms' }, ...config },
    ...more,
  });

const client = kinds.old.client;
const MINUTE = 60_000;

/** A call that becomes a task; its id. The answer takes its events. */
const pendingTask = async (c, args = {}) => (await callTool(c, 'delete_user', args)).structuredContent.proxy_task.task_id;
const awaitActivity = async (c, timeout = MINUTE) => (await callTool(c, 'await_activity', { timeout_ms: timeout })).structuredContent;
/** Resolves once `count` calls are held. */
const held = (admin, count) => until(async () => (await admin.metrics())['thoughtgate_active_requests'] === count, `${count} held calls`);
const event = (eventType) => [{ type: 'event', server: 'up', eventType }];
const note = (uri) => ({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } });

test('nothing happens: after timeout_ms it says so, with empty lists and not without them', async (t) => {
  const { connect } = await stage(t);
  const c = await connect(client);
  const answer = await callTool(c, 'await_activity', { timeout_ms: 50 });
  assert.deepEqual(answer.structuredContent, { triggers: [{ type: 'timeout' }], events: [], pending_server: [], pending_client: { elicitations: [], sampling_requests: [] } });
  assert.deepEqual(blocks(answer), [answer.structuredContent]);
});

test('on time-out the tasks that still work are told', async (t) => {
  const { connect } = await stage(t);
  const c = await connect(client);
  const id = await pendingTask(c);
  await callTool(c, 'list_servers'); // takes the events
  const { triggers, pending_server } = await awaitActivity(c, 50);
  assert.deepEqual(triggers, [{ type: 'timeout' }]);
  assert.deepEqual(pending_server, [{ server: 'up', working_tasks: [{ taskId: id, toolName: 'delete_user', status: 'working' }] }]);
});

const endings = {
  task_completed: (admin, id) => admin.approve(id),
  task_failed: (admin, id) => admin.reject(id, 'no'),
  task_cancelled: (admin, id) => admin.cancel(id),
};
for (const [type, end] of Object.entries(endings)) {
  test(`${type} wakes it at once`, async (t) => {
    const { connect, admin } = await stage(t);
    const c = await connect(client);
    const id = await pendingTask(c, { n: 1 });
    const waiting = awaitActivity(c);
    await held(admin, 1);
    await end(admin, id);
    const { triggers, events, pending_server } = await waiting;
    assert.deepEqual(triggers, event(type));
    assert.equal(events[0].server, 'up');
    const told = events[0].events.find((e) => e.type === type);
    assert.match(told.id, /^[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.ok(!Number.isNaN(Date.parse(told.createdAt)));
    assert.equal(told.server, 'up');
    assert.equal(told.data.taskId, id);
    assert.equal(told.data.toolName, 'delete_user');
    if (type === 'task_completed') assert.equal(told.data.result.content[0].text, 'did delete_user');
    if (type === 'task_failed') assert.match(told.data.error, /no$/);
    assert.deepEqual(pending_server, []);
  });
}

test('task_expired wakes it, with the time that the task had', async (t) => {
  const { connect } = await stage(t, { approval: workflow('5s') });
  const c = await connect(client);
  const id = await pendingTask(c);
  const { triggers, events } = await awaitActivity(c);
  assert.deepEqual(triggers, event('task_expired'));
  const told = events[0].events.find((e) => e.type === 'task_expired');
  assert.equal(told.data.taskId, id);
  assert.equal(told.data.ttl, 600_000);
});

test('a notification wakes it, and get_notifications returns it, once', async (t) => {
  const { connect, upstream, admin } = await stage(t);
  const c = await connect(client);
  const stream = await c.listen();
  const waiting = awaitActivity(c);
  await held(admin, 2);
  upstream.push(note('x://1'));
  const { triggers, events } = await waiting;
  assert.deepEqual(triggers, event('notification'));
  assert.deepEqual(events[0].events.map((e) => e.data), [{ method: 'notifications/resources/updated', params: { uri: 'x://1' } }]);
  assert.deepEqual(await stream.message((m) => m.method === 'notifications/resources/updated'), note('x://1'));
  const [kept] = blocks(await callTool(c, 'get_notifications'))[0];
  assert.deepEqual({ ...kept, timestamp: 0 }, { server: 'up', method: 'notifications/resources/updated', timestamp: 0, params: { uri: 'x://1' } });
  assert.deepEqual(blocks(await callTool(c, 'get_notifications')), ['No notifications']);
});

test('a log message wakes nobody; get_logs returns it, by level and number, once', async (t) => {
  const { connect, upstream } = await stage(t);
  const c = await connect(client);
  const stream = await c.listen();
  for (const [level, data] of [['debug', 1], ['error', { code: 2 }], ['warning', 'three'], ['error', 4]]) upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level, logger: 'db', data } });
  await stream.message((m) => m.params?.data === 4);
  assert.deepEqual((await awaitActivity(c, 50)).triggers, [{ type: 'timeout' }]);
  assert.deepEqual(blocks(await callTool(c, 'get_logs', { server: 'other' })), ['No log messages']);
  const logs = async (args) => (await callTool(c, 'get_logs', args)).structuredContent.logs.map(({ timestamp, ...rest }) => (assert.ok(Date.parse(timestamp) > 0), rest));
  assert.deepEqual(await logs({ level: 'error', limit: 1 }), [{ server: 'up', level: 'error', logger: 'db', data: 4 }]);
  assert.deepEqual((await logs({ level: 'warning' })).map((l) => l.data), [{ code: 2 }, 'three']);
  assert.deepEqual((await logs({})).map((l) => l.data), [1]);
  assert.deepEqual(await logs({}), []);
});

test('a server that cannot be reached wakes it, and its return as well', async (t) => {
  const { connect, upstream, admin } = await stage(t);
  const c = await connect(client), other = await connect(client);
  const waiting = awaitActivity(c);
  await held(admin, 1);
  await upstream.stop();
  await other.call('tools/call', { name: 'read' });
  const { triggers, events } = await waiting;
  assert.deepEqual(triggers, [{ type: 'server_disconnected', server: 'up' }]);
  assert.deepEqual(events[0].events.map((e) => e.type), ['server_disconnected']);
  assert.equal((await callTool(c, 'list_servers')).structuredContent.servers[0].status, 'disconnected');
  const again = awaitActivity(c);
  await held(admin, 1);
  await upstream.listen();
  await other.call('tools/call', { name: 'read' });
  assert.deepEqual((await again).triggers, event('server_reconnected'));
});

test('a server that goes while nothing is asked wakes whoever has a GET stream open; a stream that ends for less does not', async (t) => {
  const { connect, upstream, admin } = await stage(t);
  const c = await connect(client);
  await c.listen();
  const waiting = awaitActivity(c);
  await held(admin, 2);
  for (const stream of upstream.getStreams) stream.cut();
  await upstream.received((r) => r.isGatewaysOwn && r.rpc?.method === 'ping');
  await c.listen();
  await held(admin, 2);
  await upstream.stop();
  assert.deepEqual((await waiting).triggers, [{ type: 'server_disconnected', server: 'up' }]);
});

test('an event from before the call is told at once', async (t) => {
  const { connect, admin } = await stage(t);
  const c = await connect(client);
  const id = await pendingTask(c);
  await admin.reject(id);
  await admin.inState(id, 'rejected');
  const { triggers, events } = await awaitActivity(c);
  assert.deepEqual(triggers, [{ type: 'immediate' }]);
  assert.deepEqual(events[0].events.at(-1).type, 'task_failed');
});

test('a task that was only created is told, but wakes nobody', async (t) => {
  const { connect, admin } = await stage(t);
  const c = await connect(client);
  const waiting = awaitActivity(c, 3000);
  await held(admin, 1);
  const id = await pendingTask(c);
  const { triggers, pending_server } = await waiting;
  assert.deepEqual(triggers, [{ type: 'timeout' }]);
  assert.equal(pending_server[0].working_tasks[0].taskId, id);
});

test('every answer of the tools tells what has happened, and each event once', async (t) => {
  const { connect, admin } = await stage(t);
  const c = await connect(client);
  const ids = [];
  for (let n = 0; n < 3; n++) {
    ids.push(await pendingTask(c, { n }));
    await admin.reject(ids.at(-1));
    await admin.inState(ids.at(-1), 'rejected');
  }
  const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => callTool(c, ['list_servers', 'list_tasks', 'get_notifications', 'list_tools'][n % 4])));
  const told = answers.flatMap(eventsOf);
  assert.ok(told.filter((e) => e.type === 'task_failed').length >= 1);
  assert.equal(new Set(told.map((e) => e.id)).size, told.length);
  assert.deepEqual(eventsOf(await callTool(c, 'list_servers')), []);
});

for (const workers of [1, 3]) {
  test(`concurrent calls all wake by the same event, one of them tells it (${workers} workers)`, async (t) => {
    const { connect, admin } = await stage(t, { config: { workers } });
    const c = await connect(client);
    const id = await pendingTask(c);
    await callTool(c, 'list_servers');
    const waiting = Array.from({ length: 12 }, () => awaitActivity(c));
    await held(admin, 12);
    await admin.approve(id);
    const answers = await Promise.all(waiting);
    for (const { triggers, pending_server } of answers) {
      assert.deepEqual(triggers, event('task_completed'));
      assert.deepEqual(pending_server, []);
    }
    assert.equal(answers.filter(({ events }) => events.length > 0).length, 1);
    const later = await awaitActivity(c, 50);
    assert.deepEqual(later.triggers, [{ type: 'timeout' }]);
  });
}

test('a call that its client has given up takes no events with it', async (t) => {
  const { sdk, admin } = await stage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms' }, clients: [{ match: 'listed-*', tasks: 'no' }] } });
  const client = await sdk({ name: 'listed-agent' });
  const { task_id: id } = (await client.callTool({ name: 'delete_user', arguments: {} })).structuredContent.proxy_task;
  await client.callTool({ name: 'list_servers', arguments: {} });
  await assert.rejects(client.callTool({ name: 'await_activity', arguments: { timeout_ms: MINUTE } }, undefined, { timeout: 300 }), { code: -32001 });
  await held(admin, 1); // the GET stream
  await admin.reject(id);
  await admin.inState(id, 'rejected');
  const { structuredContent } = await client.callTool({ name: 'await_activity', arguments: { timeout_ms: MINUTE } });
  assert.deepEqual(structuredContent.events[0].events.map((e) => [e.type, e.data.taskId]), [['task_failed', id]]);
});

test('more than 32 open calls of one client are refused', async (t) => {
  const { connect, admin } = await stage(t);
  const c = await connect(client);
  const waiting = Array.from({ length: 32 }, () => awaitActivity(c));
  await held(admin, 32);
  const answer = await callTool(c, 'await_activity', {});
  assert.equal(answer.isError, true);
  const id = await pendingTask(c);
  await admin.reject(id);
  for (const { triggers } of await Promise.all(waiting)) assert.deepEqual(triggers, event('task_failed'));
});

test('another session hears of nothing', async (t) => {
  const { connect, admin, upstream } = await stage(t);
  const c = await connect(client), other = await connect(client);
  const id = await pendingTask(c);
  await admin.reject(id);
  await admin.inState(id, 'rejected');
  await (await c.listen()).response;
  await upstream.received((r) => r.method === 'GET');
  upstream.push(note('x://2'));
  await until(async () => (await callTool(c, 'get_notifications')).structuredContent.notifications.length > 0, 'the notification');
  assert.deepEqual((await awaitActivity(other, 50)).triggers, [{ type: 'timeout' }]);
  assert.deepEqual(blocks(await callTool(other, 'get_notifications')), ['No notifications']);
  assert.deepEqual((await callTool(other, 'list_tasks', { include_completed: true })).structuredContent.tasks, []);
  for (const name of ['get_task', 'get_task_result', 'cancel_task']) assert.match((await callTool(other, name, { task_id: id })).content[0].text, new RegExp(`Task '${id}' not found`));
});

test('the end of the session ends its waits, and nothing of it stays', async (t) => {
  const { connect, admin } = await stage(t);
  const c = await connect(client);
  const waiting = callTool(c, 'await_activity', { timeout_ms: MINUTE });
  await held(admin, 1);
  assert.equal((await admin.metrics())['thoughtgate_pseudo_clients'], 1);
  await c.delete();
  const answer = await waiting;
  assert.equal(answer.isError, true);
  assert.equal(answer.content[0].text, 'Session not found');
  await until(async () => (await admin.metrics())['thoughtgate_pseudo_clients'] === 0, 'nothing is kept');
});

test('the end of the process answers those who wait', async (t) => {
  const { connect, admin, gateway } = await stage(t);
  const c = await connect(client);
  const waiting = c.call('tools/call', { name: 'await_activity', arguments: { timeout_ms: MINUTE } });
  await held(admin, 1);
  gateway.child.process.kill('SIGTERM');
  assert.deepEqual((await waiting).result.structuredContent.triggers, [{ type: 'timeout' }]);
});

test('a client without session or token is told that nothing is kept for it', async (t) => {
  const { connect } = await stage(t, { upstream: { sessions: false, tools: [tool('read')] } });
  const answer = await callTool(await connect(client), 'await_activity', {});
  assert.equal(answer.isError, true);
  assert.match(answer.content[0].text, /no session and no token/);
});
