// Much at once: ten thousand deadlines in one second, signals and slow operators' endpoints under load.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { sample } from '../integration/lib/admin.mjs';
import { workflow } from '../integration/lib/gateway.mjs';
import { SECRET, startReceiver } from '../integration/lib/receiver.mjs';
import { scene } from '../integration/lib/scene.mjs';
import { tool } from '../integration/lib/upstream.mjs';
import { until, within } from '../integration/lib/wait.mjs';
import { allTasks, Ledger } from './lib/ledger.mjs';
import { generator } from '../integration/lib/random.mjs';
import { Traffic } from './lib/traffic.mjs';

const stage = (t, { config = {}, ...more } = {}) =>
  scene(t, {
    rules: [['delete_*', 'approve'], { match: 'purge_*', action: 'approve', execution: 'on_result' }, ['drop_*', 'deny']],
    approval: workflow('10m'),
    upstream: { tools: [tool('delete_user'), tool('purge_user'), tool('read'), tool('drop_table')] },
    config: { limits: { pending_per_principal: 100_000, pending_total: 100_000 }, ...config },
    ...more,
  });

/** Runs `work(i)` for 0 … count − 1, `width` at a time. */
async function inParallel(count, width, work) {
  let next = 0;
  await Promise.all(Array.from({ length: width }, async () => {
    while (next < count) await work(next++);
  }));
}

const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.floor(q * (values.length - 1))];

test('10,000 tasks that expire in one second: each has, nobody approves late, and forwarded calls do not notice', async (t) => {
  const COUNT = 10_000;
  const { upstream, admin, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  // As late as creating them takes here, and some spare time.
  const began = performance.now();
  await inParallel(500, 48, (i) => client.createTask('delete_user', { warm: i }, { ttl: 600_000 }));
  const deadline = Math.ceil(Date.now() + 2_000 + (1.5 * (performance.now() - began) * COUNT) / 500);
  const start = Date.now();
  const ids = [];
  await inParallel(COUNT, 48, async (i) => {
    const { taskId } = await client.createTask('delete_user', { i }, { ttl: deadline + (i % 1000) - Date.now() });
    ids.push(taskId);
  });
  const spare = deadline - Date.now();
  assert.ok(spare > 0, `creating took ${-spare} ms longer than it may`);
  const waits = ids.slice(0, 50).map((taskId) => client.error('tasks/result', { taskId }));
  const forwarder = await connect({ token: 'B' });
  const times = [];
  let over = false;
  t.diagnostic(`created in ${((deadline - spare - start) / 1000).toFixed(1)} s`);
  const forwarding = (async () => {
    while (!over) {
      const began = performance.now();
      await forwarder.result('tools/call', { name: 'read' });
      if (Date.now() > deadline) times.push(performance.now() - began);
      await pause(2);
    }
  })();
  await until(() => Date.now() > deadline, 'the deadline', { deadline: spare + 30_000 });
  const late = Date.now() - deadline;
  await until(async () => sample(await admin.metrics(), 'thoughtgate_tasks_pending') === 500, 'all of them to expire', { deadline: 20_000, every: 100 });
  const took = Date.now() - deadline - late;
  over = true;
  await forwarding;
  for (const error of await Promise.all(waits)) assert.equal(error.code, -32008);
  const tasks = await allTasks(admin);
  assert.deepEqual(new Ledger().counts(tasks), { pending: 500, expired: COUNT });
  assert.deepEqual((await Promise.all(ids.slice(-20).map((id) => admin.decide('approve', id)))).map(({ status }) => status), Array(20).fill(409));
  assert.equal(upstream.calls.filter((call) => call.rpc.params.name !== 'read').length, 0);
  t.diagnostic(`all had expired ${took} ms after the first deadline; forwarded calls meanwhile: median ${quantile(times, 0.5).toFixed(1)} ms, p99 ${quantile(times, 0.99).toFixed(1)} ms, longest ${Math.max(...times).toFixed(1)} ms`);
  assert.ok(quantile(times, 0.5) < 100, 'forwarded calls do not wait for the store');
});

/** Traffic of tasks and forwarded calls with everything written down, against an upstream that counts. */
async function busy(place) {
  const { upstream, connect, admin } = place;
  const ledger = new Ledger();
  const random = generator();
  const problems = [];
  upstream.handlers['tools/call'] = async ({ params, reply }) => {
    const { marker } = params.arguments;
    try {
      ledger.called(marker);
    } catch (error) {
      problems.push(error);
    }
    await pause(random() * 10);
    reply.result({ content: [{ type: 'text', text: `did ${marker}` }] });
  };
  const clients = await Promise.all(['A', 'B', 'C'].map((token) => connect({ token })));
  const traffic = new Traffic({ ledger, random, refusals: (error) => error.code === -32013 || error.code === 'shutting_down' || error.code === 'unavailable', survives: (error) => error.message.includes('the process ends') });
  const running = Promise.all([...clients.flatMap((client) => [traffic.client(client, { creates: Infinity, steps: Infinity }), traffic.waiter(client, { steps: Infinity })]), traffic.operator(admin, { rounds: Infinity }), traffic.operator(admin, { rounds: Infinity })]);
  return { ledger, traffic, running, clients, problems };
}

test('SIGTERM under load: it ends in time, and after the restart all is as everybody was told', async (t) => {
  const place = await stage(t);
  const { ledger, traffic, running, clients, problems } = await busy(place);
  await until(() => ledger.calls.size > 100 && ledger.tasks.size > 50, 'some traffic');
  const began = performance.now();
  await place.gateway.stop(); // asserts exit code 0
  const took = performance.now() - began;
  traffic.over = true;
  await within(running, 'everybody to notice', 10_000);
  assert.ok(took < 5000, `it took ${took} ms`);
  assert.deepEqual([...traffic.problems, ...problems], []);
  for (const client of clients) client.close();
  await place.gateway.launch();
  const tasks = await allTasks(place.admin);
  ledger.check(tasks);
  t.diagnostic(`ended after ${took.toFixed(0)} ms, with ${tasks.size} tasks: ${JSON.stringify(ledger.counts(tasks))}`);
  assert.deepEqual([...tasks.values()].filter((task) => /outcome unknown/.test(task.statusMessage ?? '')), [], 'what ran was waited for');
});

test('SIGTERM with calls that never end: exit 0 within the limit of 25 s, and their outcome is unknown', async (t) => {
  const { upstream, gateway, admin, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  upstream.handlers['tools/call'] = () => {};
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  const forwarded = client.send('tools/call', { name: 'read' }).then(() => 'answered', () => 'cut');
  await upstream.received('tools/call', 2);
  const began = performance.now();
  await gateway.stop();
  const took = performance.now() - began;
  await forwarded;
  t.diagnostic(`ended after ${(took / 1000).toFixed(1)} s`);
  assert.ok(took < 27_000, `it took ${took} ms`);
  client.close();
  await gateway.launch();
  assert.match((await admin.inState(taskId, 'failed')).statusMessage, /outcome unknown/i);
  assert.equal(upstream.calls.length, 2, 'it is not run again');
});

test('reload under load: 100 reloads, no request is dropped and none is judged by half a file', async (t) => {
  const place = await stage(t);
  const { gateway, connect } = place;
  let over = false;
  let count = 0;
  const clients = await Promise.all(Array.from({ length: 8 }, (_, i) => connect({ token: `t${i}` })));
  const load = Promise.all(
    clients.map(async (client) => {
      const stream = await client.listen();
      while (!over) {
        await client.result('tools/call', { name: 'read' });
        assert.equal((await client.error('tools/call', { name: 'drop_table' })).code, -32014);
        assert.equal((await client.createTask('delete_user')).status ?? 'input_required', 'input_required');
        assert.equal((await client.result('tools/list', {})).tools.length, 4);
        count += 4;
      }
      assert.equal(stream.over, null, 'an open stream stays open');
    }),
  );
  for (let i = 0; i < 100; i++) {
    const target = count + 8;
    const broken = i % 10 === 9;
    if (broken) gateway.replaceConfig('schema: 1\nsources: [');
    else gateway.writeConfig({ rules: [[`other_${i}`, 'forward'], ['delete_*', 'approve'], { match: 'purge_*', action: 'approve', execution: 'on_result' }, ['drop_*', 'deny']] });
    gateway.hangUp();
    await Promise.race([until(() => count >= target, 'more answers'), load]);
  }
  over = true;
  await load;
  gateway.writeConfig();
  t.diagnostic(`${count} requests over 100 reloads`);
});

test('a slow and a dead notifier under load: nobody waits for them, and what they missed is told', async (t) => {
  const slow = await startReceiver(t);
  slow.answer = async () => (await pause(300), 204);
  const dead = await startReceiver(t, { listening: false });
  const silent = await startReceiver(t);
  silent.answer = () => undefined;
  const notify = [slow, dead, silent].map((receiver) => ({ url: receiver.url, secret_env: 'NOTIFY_SECRET' }));
  const { admin, connect } = await stage(t, { config: { notify }, env: { NOTIFY_SECRET: SECRET } });
  const client = await connect({ token: 'A' });
  const times = [];
  await inParallel(300, 16, async (i) => {
    const began = performance.now();
    const { taskId } = await client.createTask('delete_user', { i });
    if (i % 2 === 0) await admin.approve(taskId);
    times.push(performance.now() - began);
  });
  t.diagnostic(`create and approve: median ${quantile(times, 0.5).toFixed(1)} ms, longest ${Math.max(...times).toFixed(1)} ms`);
  assert.ok(Math.max(...times) < 2000, 'nobody waits for an endpoint');
  await until(async () => (await admin.list({ state: 'approved' })).tasks.length === 0 && (await admin.list({ state: 'executing' })).tasks.length === 0, 'the executions');
  assert.ok(slow.mostOpen <= 16, `${slow.mostOpen} deliveries at once`);
  slow.answer = () => 204;
  const { tasks } = await admin.list({ state: 'completed', limit: '100' });
  const [{ id }] = tasks.slice(-1);
  await until(() => slow.heard(id).length === 3, () => `the slow endpoint to hear of ${id}; it heard ${slow.heard(id)}`, { deadline: 30_000 });
  assert.deepEqual(slow.heard(id).map((event) => event.split(':')[0]), ['created', 'decided', 'ended']);
});
