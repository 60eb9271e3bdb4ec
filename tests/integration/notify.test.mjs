// Operators' endpoints: signed, retried, lost by no crash, and never in the way of a call.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { sample } from './lib/admin.mjs';
import { Child } from './lib/child.mjs';
import { temporaryFolder, workflow } from './lib/gateway.mjs';
import { exchange } from './lib/http.mjs';
import { defer } from './lib/lifetime.mjs';
import { freePort } from './lib/ports.mjs';
import { SECRET, startReceiver } from './lib/receiver.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const told = (receiver, more = {}) => ({ url: receiver.url, secret_env: 'NOTIFY_SECRET', ...more });

/** A gateway with a `write` that needs an approval, and with endpoints `notify`. */
const stage = (t, notify, { approval = workflow('10m'), ...more } = {}) =>
  scene(t, {
    rules: [['write', 'approve']],
    approval,
    upstream: { tools: [tool('read'), tool('write')] },
    env: { NOTIFY_SECRET: SECRET },
    config: { notify },
    ...more,
  });

const outcomes = async (admin) => {
  const samples = await admin.metrics();
  return (outcome) => sample(samples, 'thoughtgate_notifications_total', { outcome }) ?? 0;
};

test('created, decided and ended are told in order, signed, without the arguments', async (t) => {
  const receiver = await startReceiver(t);
  const { admin, connect } = await stage(t, [told(receiver)]);
  const client = await connect();
  const { taskId } = await client.createTask('write', { password: 'hunter2-argument' });
  const created = await receiver.received(1);
  const shown = await admin.task(taskId);
  await admin.approve(taskId, 'looks good');
  await admin.inState(taskId, 'completed');
  const decided = await receiver.received(2);
  const ended = await receiver.received(3);
  assert.deepEqual(receiver.heard(taskId), ['created:pending', 'decided:approved', 'ended:completed']);

  assert.equal(created.method, 'POST');
  assert.equal(created.path, '/hook');
  assert.equal(created.headers['content-type'], 'application/json');
  assert.match(created.headers['user-agent'], /^taskgate\//);
  assert.match(created.headers['x-taskgate-timestamp'], /^\d{10}$/);
  assert.match(created.id, /^[0-9a-f]{32}$/);
  assert.deepEqual(Object.keys(created.json), ['event', 'delivery', 'at', 'task']);
  assert.equal(created.json.event, 'created');
  assert.equal(created.json.delivery, created.id);
  const { id, state, source, tool: name, argumentsDigest, principal, principalBy, workflow: flow, createdAt, decideBy, decidedAt, decidedBy, reason, statusMessage } = shown;
  assert.deepEqual(created.json.task, { id, state, source, tool: name, argumentsDigest, principal, principalBy, workflow: flow, createdAt, decideBy, decidedAt, decidedBy, reason, statusMessage });
  assert.deepEqual([decided.json.task.decidedBy, decided.json.task.reason], ['admin', 'looks good']);
  assert.ok(Date.parse(decided.json.task.decidedAt) >= Date.parse(createdAt));
  assert.equal(ended.json.task.decidedAt, decided.json.task.decidedAt);
  assert.equal(new Set([created.id, decided.id, ended.id]).size, 3);
  for (const delivery of receiver.deliveries) assert.ok(!delivery.body.includes('hunter2-argument'), 'no arguments');
  await until(async () => (await outcomes(admin))('delivered') === 3, 'three delivered in the metrics');
});

test('each endpoint hears of a change once, under the first of its events that fits', async (t) => {
  const [all, ends, some] = [await startReceiver(t), await startReceiver(t, { path: '/ends' }), await startReceiver(t, { path: '/some' })];
  const { admin, connect } = await stage(t, [told(all), told(ends, { events: ['ended'] }), told(some, { events: ['expired', 'decided'] })], { approval: workflow('5s') });
  const client = await connect();
  const rejected = await client.createTask('write');
  const expired = await client.createTask('write', { n: 2 });
  const cancelled = await client.createTask('write', { n: 3 });
  await admin.reject(rejected.taskId, 'no');
  await client.result('tasks/cancel', { taskId: cancelled.taskId });
  await all.received(6);
  await ends.received(3);
  await some.received(2);
  assert.deepEqual(all.heard(rejected.taskId), ['created:pending', 'decided:rejected']);
  assert.deepEqual(all.heard(expired.taskId), ['created:pending', 'expired:expired']);
  assert.deepEqual(all.heard(cancelled.taskId), ['created:pending', 'ended:cancelled']);
  assert.deepEqual(ends.heard().sort(), ['ended:cancelled', 'ended:expired', 'ended:rejected']);
  assert.deepEqual(some.heard(), ['decided:rejected', 'expired:expired']);
});

test('arguments are told on demand, less what redact_fields hide', async (t) => {
  const receiver = await startReceiver(t);
  const { connect } = await stage(t, [told(receiver, { include_arguments: true })], { approval: workflow('10m', { redact_fields: ['user.password'] }) });
  const client = await connect();
  await client.createTask('write', { user: { name: 'ann', password: 'hunter2' }, n: [1.50, 'x'] });
  const { json, body } = await receiver.received(1);
  assert.deepEqual(json.task.arguments, { user: { name: 'ann', password: '[REDACTED]' }, n: [1.5, 'x'] });
  assert.ok(!body.includes('hunter2'));
});

test('a failing endpoint is asked again, later each time, with the same id; the same task waits, others do not', async (t) => {
  const receiver = await startReceiver(t);
  let failing; // the first notified task
  receiver.answer = ({ json }) => ((failing ??= json.task.id) === json.task.id && receiver.heard(failing).length < 4 ? 500 : 200);
  const { gateway, admin, connect } = await stage(t, [told(receiver)]);
  const client = await connect();
  const { taskId } = await client.createTask('write');
  await receiver.received(1);
  await admin.reject(taskId);
  const other = await client.createTask('write', { n: 2 });
  await until(() => receiver.heard(taskId).includes('decided:rejected'), 'the decision to be told');
  assert.deepEqual(receiver.heard(taskId), ['created:pending', 'created:pending', 'created:pending', 'created:pending', 'decided:rejected']);
  const tries = receiver.deliveries.filter((d) => d.json.task.id === taskId && d.event === 'created');
  assert.equal(new Set(tries.map((d) => d.id)).size, 1, 'one delivery');
  assert.equal(new Set(tries.map((d) => d.body.toString())).size, 1, 'one body');
  assert.ok(tries.every((d) => d.signed), 'each try is signed anew');
  const waits = tries.slice(1).map((d, i) => d.at - tries[i].at);
  for (const [i, low] of [700, 1_450, 2_950].entries()) assert.ok(waits[i] >= low && waits[i] < 3 * low + 1_000, `waits of ${waits} ms`);
  const early = receiver.deliveries.findIndex((d) => d.json.task.id === other.taskId);
  assert.ok(early >= 0 && early < receiver.deliveries.indexOf(tries[3]), 'another task does not wait');
  await until(async () => (await outcomes(admin))('retried') === 3, 'three failures in the metrics');
  await gateway.logged(/Notifications fail, and are tried again/);
  await gateway.logged(/Notifications arrive again/);
});

test('changes while the endpoint is down are told when it is back', async (t) => {
  const receiver = await startReceiver(t, { listening: false });
  const { admin, connect, gateway } = await stage(t, [told(receiver)]);
  const client = await connect();
  const ids = [];
  for (let n = 0; n < 10; n++) ids.push((await client.createTask('write', { n })).taskId);
  await admin.reject(ids[0]);
  await gateway.logged((entry) => /Notifications fail/.test(entry.msg) && entry.endpoint === `http://127.0.0.1:${receiver.port}`);
  await receiver.listen();
  await receiver.received(11, 20_000);
  assert.deepEqual(receiver.heard(ids[0]), ['created:pending', 'decided:rejected']);
  for (const id of ids.slice(1)) assert.deepEqual(receiver.heard(id), ['created:pending']);
});

test('kill -9 between commit and delivery loses none, and the id stays', async (t) => {
  const receiver = await startReceiver(t);
  receiver.answer = () => undefined; // the gateway never learns that it was delivered
  const { gateway, admin, connect } = await stage(t, [told(receiver)]);
  const client = await connect();
  const ids = [];
  for (let n = 0; n < 12; n++) ids.push((await client.createTask('write', { n })).taskId);
  await admin.reject(ids[0]);
  await receiver.received(4); // and eight and the decision wait behind these
  await gateway.kill9();
  const before = receiver.deliveries.splice(0);
  receiver.answer = () => 200;
  await gateway.launch();
  await receiver.received(13, 20_000);
  for (const id of ids) assert.deepEqual(receiver.heard(id), id === ids[0] ? ['created:pending', 'decided:rejected'] : ['created:pending']);
  for (const { id, body } of before) assert.ok(receiver.deliveries.some((d) => d.id === id && d.body.equals(body)), 'the same delivery again');
  await until(async () => (await outcomes(admin))('delivered') === 13, 'all delivered');
  await gateway.restart();
  const { taskId } = await client.createTask('write', { n: 99 });
  await receiver.received(14);
  assert.deepEqual(receiver.heard(taskId), ['created:pending'], 'nothing is told twice after all was settled');
});

test('calls that a crash interrupted are told as ended', async (t) => {
  const receiver = await startReceiver(t);
  const { gateway, upstream, admin, connect } = await stage(t, [told(receiver, { events: ['ended'] })]);
  const client = await connect();
  upstream.handlers['tools/call'] = () => {};
  const { taskId } = await client.createTask('write');
  await admin.approve(taskId);
  await admin.inState(taskId, 'executing');
  await gateway.kill9();
  await gateway.launch();
  const { json } = await receiver.received(1);
  assert.equal(json.task.id, taskId);
  assert.match(json.task.statusMessage, /outcome unknown/);
});

test('an endpoint that never answers delays no call, and few deliveries are under way at once', async (t) => {
  const receiver = await startReceiver(t);
  receiver.answer = () => undefined;
  const { connect } = await stage(t, [told(receiver)]);
  const client = await connect();
  const started = performance.now();
  for (let n = 0; n < 50; n++) {
    await client.createTask('write', { n });
    assert.ok((await client.call('tools/call', { name: 'read' })).result);
  }
  const each = (performance.now() - started) / 100;
  assert.ok(each < 1_000, `${each} ms for each call`);
  await receiver.received(4);
  assert.equal(receiver.mostOpen, 4);
});

test('an endpoint that falls silent is asked again', async (t) => {
  const receiver = await startReceiver(t);
  receiver.answer = () => (receiver.deliveries.length === 1 ? undefined : 200);
  const { admin, connect } = await stage(t, [told(receiver)]);
  const client = await connect();
  await client.createTask('write');
  const [first, second] = [await receiver.received(1), await receiver.received(2, 20_000)];
  assert.equal(second.id, first.id);
  await until(async () => (await outcomes(admin))('delivered') === 1, 'one delivered');
});

test('an endpoint that answers without end is as good as its status', async (t) => {
  const receiver = await startReceiver(t);
  receiver.answer = () => ({ status: 200, body: 'x'.repeat(1 << 20) });
  const { admin, connect } = await stage(t, [told(receiver)]);
  const client = await connect();
  for (let n = 0; n < 6; n++) await client.createTask('write', { n });
  await until(async () => (await outcomes(admin))('delivered') === 6, 'six delivered');
  assert.equal(receiver.deliveries.length, 6);
});

test('redirects are not followed; 410 ends the delivery', async (t) => {
  const [receiver, elsewhere] = [await startReceiver(t), await startReceiver(t)];
  const { gateway, admin, connect } = await stage(t, [told(receiver)]);
  receiver.answer = () => (receiver.deliveries.length < 2 ? { status: 307, headers: { location: elsewhere.url } } : 410);
  const client = await connect();
  const { taskId } = await client.createTask('write');
  await receiver.received(2);
  const entry = await gateway.logged(/endpoint is gone/);
  assert.equal(entry.notification, `created of ${taskId}`);
  assert.match(entry.reason, /HTTP 410$/);
  const count = await outcomes(admin);
  assert.deepEqual([count('retried'), count('dropped'), count('delivered')], [1, 1, 0]);
  assert.equal(elsewhere.deliveries.length, 0);
});

test('reload changes whom to tell; what waits for an endpoint that is gone is dropped and said', async (t) => {
  const [first, second] = [await startReceiver(t, { listening: false }), await startReceiver(t, { path: '/second' })];
  const { gateway, admin, connect } = await stage(t, [told(first)]);
  const client = await connect();
  await client.createTask('write', { n: 1 });
  await client.createTask('write', { n: 2 });
  gateway.writeConfig({ config: { notify: [told(second, { events: ['created', 'ended'] })] } });
  gateway.hangUp();
  const entry = await gateway.logged(/no longer configured were dropped/);
  assert.equal(entry.count, 2);
  assert.equal((await outcomes(admin))('dropped'), 2);
  await first.listen();
  const { taskId } = await client.createTask('write', { n: 3 });
  await second.received(1);
  await admin.approve(taskId);
  await second.received(2);
  assert.deepEqual(second.heard(), ['created:pending', 'ended:completed']);
  gateway.writeConfig({ config: { notify: [told(second), told(first)] } });
  gateway.hangUp();
  await gateway.logged((e) => e.msg === 'Endpoints are told of tasks' && e.endpoints === 2);
  const last = await client.createTask('write', { n: 4 });
  await first.received(1);
  await second.received(3);
  assert.deepEqual(first.heard(), ['created:pending']);
  assert.equal(second.deliveries[2].json.task.id, last.taskId);
});

test('a file without the secret is refused; one endpoint that is kept is not disturbed', async (t) => {
  const receiver = await startReceiver(t);
  const { gateway, admin, connect } = await stage(t, [told(receiver)]);
  const client = await connect();
  gateway.writeConfig({ config: { notify: [{ url: receiver.url, secret_env: 'NOT_SET' }] } });
  gateway.hangUp();
  const ready = await until(async () => (await admin.get('/ready')).json?.config_error, 'the error in /ready');
  assert.match(ready, /^[^\n]*config\.yaml:\d+:\d+: notify\[0\]\.secret_env$/, 'who has no token learns the place alone');
  await gateway.logged((e) => e.error?.includes('notify[0].secret_env: V-014 the environment variable NOT_SET is not set'));
  await client.createTask('write');
  await receiver.received(1);
});

test('neither secrets nor URLs are in the log or the store', async (t) => {
  const receiver = await startReceiver(t, { path: '/hook?key=url-credential-0001', listening: false });
  const { gateway, connect } = await stage(t, [{ url: receiver.url.replace('//', '//user:userinfo-credential@'), secret_env: 'NOTIFY_SECRET' }], { env: { NOTIFY_SECRET: SECRET, RUST_LOG: 'debug' } });
  const client = await connect();
  await client.createTask('write');
  await gateway.logged(/Notifications fail/);
  await gateway.stop();
  const files = fs.readdirSync(gateway.folder).filter((name) => name.startsWith('taskgate.db')).map((name) => fs.readFileSync(path.join(gateway.folder, name)));
  assert.ok(files.length > 0);
  for (const text of [SECRET, 'url-credential-0001', 'userinfo-credential']) {
    assert.ok(!gateway.child.output().includes(text), `${text} is in the log`);
    for (const file of files) assert.ok(!file.includes(text), `${text} is in the store`);
  }
});

test('the receiver in docs/notifications.md takes what is genuine, once, and nothing else', { skip: spawnSync('python3', ['--version']).error && 'python3 is not installed' }, async (t) => {
  const text = fs.readFileSync(fileURLToPath(new URL('../../docs/notifications.md', import.meta.url)), 'utf8');
  const script = path.join(temporaryFolder(t), 'receiver.py');
  fs.writeFileSync(script, /```python\n(.*?)```/s.exec(text)[1]);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/taskgate`;
  const receiver = new Child('python3', [script, String(port)], { env: { NOTIFY_SECRET: SECRET }, name: 'receiver.py' });
  defer(t, () => receiver.stop('SIGTERM'));
  const { admin, connect } = await stage(t, [{ url, secret_env: 'NOTIFY_SECRET' }]);
  const client = await connect();
  const { taskId } = await client.createTask('write');
  await admin.reject(taskId);
  const lines = [`created ${taskId} write\n`, `decided ${taskId} write\n`];
  await until(() => receiver.stdout === lines.join(''), () => `both lines\n${receiver.output()}`);

  const body = JSON.stringify({ event: 'created', delivery: 'd1', task: { id: 'tg_1', tool: 'forged' } });
  const post = (seconds, secret) => {
    const timestamp = String(Math.floor(Date.now() / 1000) - seconds);
    const signature = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
    return exchange(url, { method: 'POST', headers: { 'x-taskgate-timestamp': timestamp, 'x-taskgate-signature': `v1=${signature}`, 'x-taskgate-delivery': 'd1' }, body });
  };
  assert.equal((await post(0, 'another secret')).status, 403);
  assert.equal((await post(400, SECRET)).status, 403);
  assert.equal((await exchange(url, { method: 'POST', body })).status, 403);
  for (let times = 0; times < 2; times++) assert.equal((await post(0, SECRET)).status, 204);
  lines.push('created tg_1 forged\n');
  await until(() => receiver.stdout === lines.join(''), () => `one more line\n${receiver.output()}`);
});
