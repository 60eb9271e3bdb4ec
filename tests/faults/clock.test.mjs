// The wall clock jumps: no approval outlives its time, none that has expired comes back, and nothing stops.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder, workflow } from '../integration/lib/gateway.mjs';
import { scene } from '../integration/lib/scene.mjs';
import { tool } from '../integration/lib/upstream.mjs';
import { until } from '../integration/lib/wait.mjs';
import { Clock, clocksMissing } from './lib/clock.mjs';

const HOUR = 3600;
const options = { skip: clocksMissing };

async function stage(t) {
  const clock = new Clock(temporaryFolder(t));
  const place = await scene(t, {
    rules: [['delete_*', 'approve'], { match: 'purge_*', action: 'approve', execution: 'on_result' }],
    approval: workflow('10m'),
    upstream: { tools: [tool('delete_user'), tool('purge_user'), tool('read')] },
    env: clock.environment,
  });
  // h2o closes connections that seem idle for an hour, and a request on a kept connection may meet that.
  const client = await place.connect({ token: 'A', keepAlive: false });
  return { ...place, clock, client };
}

const ran = ({ upstream }) => upstream.calls.filter((call) => call.rpc.params.name !== 'read').length;

async function goesOn(place) {
  assert.ok(await place.client.result('tools/call', { name: 'read' }));
  const before = ran(place);
  const { taskId } = await place.client.createTask('delete_user', {}, { ttl: 300_000 });
  await place.admin.approve(taskId);
  await place.admin.inState(taskId, 'completed');
  assert.equal(ran(place), before + 1);
}

test('forward by an hour: what waited is expired at once, for every asker', options, async (t) => {
  const place = await stage(t);
  const { clock, client, admin } = place;
  const [first, second, third] = [await client.createTask('delete_user'), await client.createTask('delete_user'), await client.createTask('delete_user')];
  clock.jumpTo(HOUR);
  assert.equal((await admin.decide('approve', first.taskId)).status, 409);
  assert.equal((await client.result('tasks/get', { taskId: second.taskId })).status, 'failed');
  assert.equal((await client.error('tasks/result', { taskId: third.taskId })).code, -32008);
  assert.equal(ran(place), 0);
  await goesOn(place);
});

test('forward by an hour: who waits for the result is told within the sweep’s ten seconds', options, async (t) => {
  const place = await stage(t);
  const { taskId } = await place.client.createTask('delete_user');
  const wait = place.client.error('tasks/result', { taskId });
  await until(async () => (await place.admin.task(taskId)).state === 'pending', 'the task');
  place.clock.jumpTo(HOUR);
  const began = performance.now();
  assert.equal((await wait).code, -32008);
  assert.ok(performance.now() - began < 12_000, `it took ${performance.now() - began} ms`);
});

test('forward past execute-by: an approval that was not used is void', options, async (t) => {
  const place = await stage(t);
  const { taskId } = await place.client.createTask('purge_user', {}, { ttl: 600_000 });
  await place.admin.approve(taskId);
  place.clock.jumpTo(301);
  const error = await place.client.error('tasks/result', { taskId });
  assert.equal(error.code, -32005);
  assert.equal(ran(place), 0);
  place.clock.jumpTo(0);
  assert.equal((await place.client.error('tasks/result', { taskId })).code, -32005, 'it does not come back with the clock');
  assert.equal(ran(place), 0);
});

test('forward and back: what has expired stays expired', options, async (t) => {
  const place = await stage(t);
  const { taskId } = await place.client.createTask('delete_user');
  place.clock.jumpTo(HOUR);
  assert.equal((await place.client.result('tasks/get', { taskId })).status, 'failed');
  place.clock.jumpTo(0);
  assert.equal((await place.admin.decide('approve', taskId)).status, 409);
  assert.equal((await place.admin.task(taskId)).state, 'expired');
  await goesOn(place);
});

test('back by an hour: what waits goes on waiting, can be approved, and runs once', options, async (t) => {
  const place = await stage(t);
  const { taskId } = await place.client.createTask('delete_user');
  place.clock.jumpTo(-HOUR);
  assert.equal((await place.client.result('tasks/get', { taskId })).status, 'input_required');
  await place.admin.approve(taskId);
  await place.admin.inState(taskId, 'completed');
  assert.ok((await place.client.result('tasks/result', { taskId })).content);
  assert.equal(ran(place), 1);
  await goesOn(place);
});

test('back and forth many times under load: nothing runs twice or unasked', options, async (t) => {
  const place = await stage(t);
  const { clock, client, admin } = place;
  const approved = new Set();
  for (let i = 0; i < 20; i++) {
    clock.jumpTo([HOUR, -HOUR, 0, 100 * 24 * HOUR, -30 * 24 * HOUR][i % 5]);
    const ids = await Promise.all(Array.from({ length: 5 }, async () => (await client.createTask('delete_user')).taskId));
    for (const id of ids.slice(0, 2)) if ((await admin.decide('approve', id)).status === 200) approved.add(id);
  }
  clock.jumpTo(0);
  await until(async () => (await admin.list({ state: 'executing' })).tasks.length === 0 && (await admin.list({ state: 'approved' })).tasks.length === 0, 'every approved task to end');
  assert.equal(approved.size, 40);
  assert.ok(ran(place) <= approved.size, `${ran(place)} calls of ${approved.size} approved`);
  const { tasks } = await admin.list({ limit: '100' });
  for (const task of tasks) assert.ok(approved.has(task.id) || ['pending', 'expired'].includes(task.state), `${task.id} is ${task.state}`);
  await goesOn(place);
});

test('a restart with a clock that is behind: what waited is there', options, async (t) => {
  const place = await stage(t);
  const { clock, client, gateway, admin } = place;
  const { taskId } = await client.createTask('delete_user');
  clock.jumpTo(-HOUR);
  client.close();
  await gateway.restart();
  assert.equal((await admin.task(taskId)).state, 'pending');
  await goesOn(place);
});
