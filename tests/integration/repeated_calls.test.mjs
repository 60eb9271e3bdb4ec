// The plain calls that count as the same call made again: those whose whole request is the same but for the progress token.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fastClockMissing, LeapingClock } from './lib/fast_clock.mjs';
import { temporaryFolder, workflow } from './lib/gateway.mjs';
import { modernClient } from './lib/modern_client.mjs';
import { PLAIN, promoted, stage as promotionStage } from './lib/promotion.mjs';
import { callTool, kinds } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const ARGUMENTS = { user: 7 };
/** Members of params beside name and arguments: each is another call than `{ _meta: { tenant: 'a' } }`. */
const others = {
  'another _meta': { _meta: { tenant: 'b' } },
  'more in _meta': { _meta: { tenant: 'a', region: 1 } },
  'no _meta': {},
  'another member of params': { _meta: { tenant: 'a' }, dryRun: true },
};
const FIRST = { _meta: { tenant: 'a' } };
const SAME = { _meta: { progressToken: 'p-2', tenant: 'a' } };

const stage = (t) =>
  scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] }, config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms', wait_max: '200ms' } } });
const taskOf = ({ structuredContent }) => structuredContent.proxy_task.task_id;
const joined = async (client, more) => (await callTool(client, 'delete_user', ARGUMENTS, more)).structuredContent;

test('a call that waits for approval is joined by the same request alone', async (t) => {
  const { connect, admin } = await stage(t);
  const client = await connect(kinds.old.client);
  const first = await joined(client, FIRST);
  assert.equal(first.joined, false);
  const seen = new Set([first.proxy_task.task_id]);
  for (const [what, more] of Object.entries(others)) {
    const other = await joined(client, more);
    assert.equal(other.joined, false, what);
    assert.equal(seen.has(other.proxy_task.task_id), false, what);
    seen.add(other.proxy_task.task_id);
  }
  const same = await joined(client, SAME);
  assert.deepEqual([same.joined, same.proxy_task.task_id], [true, first.proxy_task.task_id]);
  // The approved call is the one that runs.
  const tasks = (await admin.list()).tasks;
  assert.deepEqual(tasks.map((task) => task.meta?.tenant ?? null).sort(), ['a', 'a', 'a', 'b', null].sort());
});

test('a call of a tool whose definition has changed since is another call', async (t) => {
  const { connect, admin, upstream } = await stage(t);
  const client = await connect(kinds.old.client);
  const call = async () => (await client.result('tools/list'), joined(client, FIRST));
  const first = await call();
  upstream.tools = [tool('delete_user', { description: 'Now deletes everybody' })];
  const other = await call();
  assert.deepEqual([other.joined, (await call()).joined], [false, true]);
  upstream.tools = [tool('delete_user')];
  const same = await call();
  assert.deepEqual([same.joined, same.proxy_task.task_id], [true, first.proxy_task.task_id]);
  assert.equal((await admin.list()).tasks.length, 2);
});

test('after a restart, too, where the store alone knows of the first', async (t) => {
  const { connect, gateway, upstream } = await stage(t);
  const client = await connect(kinds.old.client);
  const first = await joined(client, FIRST);
  await gateway.restart();
  client.agent.destroy();
  const other = await joined(client, { _meta: { tenant: 'b' } });
  assert.equal(other.joined, false);
  const same = await joined(client, SAME);
  assert.deepEqual([same.joined, same.proxy_task.task_id], [true, first.proxy_task.task_id]);
  assert.equal(upstream.calls.length, 0);
});

test('an outcome that the client has read as an event goes to no equal call: that is a new one', async (t) => {
  const { connect, admin } = await stage(t);
  const client = await connect(kinds.old.client);
  const told = ({ events }) => events.flatMap(({ events: of }) => of ?? []).find(({ data }) => data.result);
  const ways = {
    await_activity: (taskId) => until(async () => {
      const event = told((await callTool(client, 'await_activity', { timeout_ms: 5000 })).structuredContent);
      return event?.data.taskId === taskId && event.type === 'task_completed';
    }, 'the event'),
    'another answer': async (taskId) => {
      const { structuredContent } = await callTool(client, 'list_tasks', {});
      assert.ok(structuredContent.events_since_last_response.some(({ data }) => data.taskId === taskId && data.result));
    },
  };
  const seen = new Set();
  for (const [how, read] of Object.entries(ways)) {
    const first = await joined(client, FIRST);
    assert.deepEqual([first.joined, seen.has(first.proxy_task.task_id)], [false, false], how);
    seen.add(first.proxy_task.task_id);
    await admin.approve(first.proxy_task.task_id);
    await admin.inState(first.proxy_task.task_id, 'completed');
    await read(first.proxy_task.task_id);
  }
  assert.equal((await joined(client, FIRST)).joined, false);
});

test('a forwarded call that was left is joined by the same request alone', async (t) => {
  const { upstream, admin, connect, held } = await promotionStage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '30s', wait_max: '30s' } } });
  const agent = await connect(PLAIN);
  agent.send('tools/call', { name: 'slow', arguments: ARGUMENTS, ...FIRST }).catch(() => {});
  await upstream.received('tools/call');
  agent.close();
  const task = await until(async () => (await admin.list()).tasks[0], 'the task of the call that was left');
  const again = await connect({ ...PLAIN });
  again.session = agent.session;
  let count = 1;
  for (const [what, more] of Object.entries(others)) {
    const other = again.result('tools/call', { name: 'slow', arguments: ARGUMENTS, ...more });
    await upstream.received('tools/call', ++count);
    held[count - 1].reply.result({ content: [{ type: 'text', text: what }] });
    assert.deepEqual((await other).content.map((x) => x.text), [what]);
  }
  const same = again.result('tools/call', { name: 'slow', arguments: ARGUMENTS, ...SAME });
  held[0].reply.result({ content: [{ type: 'text', text: 'at last' }] });
  assert.deepEqual((await same).content.map((x) => x.text).slice(0, 1), ['at last']);
  assert.match((await same).content.at(-1).text, new RegExp(task.id));
  assert.equal(upstream.calls.length, count);
});

test('a promoted call that was answered as pending is joined, also when it has ended; one that its client has cancelled is not', async (t) => {
  const { upstream, connect, held } = await promotionStage(t);
  const agent = await connect(PLAIN);
  const call = () => agent.result('tools/call', { name: 'slow', arguments: ARGUMENTS, ...SAME });
  const { id } = promoted(await call());
  assert.equal(taskOf(await call()), id);
  held[0].reply.result({ content: [{ type: 'text', text: 'at last' }] });
  assert.deepEqual((await call()).content.map(({ text }) => text), ['at last', `This is the outcome of your earlier call, task ${id}. It was not run again for this one.`]);
  assert.equal(upstream.calls.length, 1);
  const { id: other } = promoted(await call());
  assert.notEqual(other, id);
  assert.equal((await agent.result('tools/call', { name: 'cancel_task', arguments: { task_id: other } })).structuredContent.success, true);
  const { id: last } = promoted(await call());
  assert.notEqual(last, other);
  assert.equal(upstream.calls.length, 3);
});

test('a forwarded call that hangs is joined by no call while its client waits', async (t) => {
  const { upstream, connect, held } = await promotionStage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '30s', wait_max: '30s' } } });
  const agent = await connect(PLAIN);
  const first = agent.send('tools/call', { name: 'slow', arguments: ARGUMENTS });
  await until(() => held.length === 1, 'the first call');
  const second = agent.send('tools/call', { name: 'slow', arguments: ARGUMENTS });
  await until(() => held.length === 2, 'the same call again at the server');
  held[1].reply.result({ content: [{ type: 'text', text: 'second' }] });
  assert.equal((await second).message.result.content[0].text, 'second');
  held[0].reply.result({ content: [{ type: 'text', text: 'first' }] });
  assert.equal((await first).message.result.content[0].text, 'first');
  assert.equal(upstream.calls.length, 2);
});

test('with a token the same call joins across sessions, also when it was approved meanwhile, and after a restart', async (t) => {
  const { connect, gateway, admin, upstream } = await stage(t);
  upstream.handlers['tools/call'] = () => {};
  const session = (token) => connect({ ...kinds.old.client, token });
  const first = await joined(await session('A'), FIRST);
  const again = await joined(await session('A'), SAME);
  assert.deepEqual([again.joined, again.proxy_task.task_id], [true, first.proxy_task.task_id]);
  assert.equal((await joined(await session('B'), FIRST)).joined, false);
  await gateway.restart();
  await admin.approve(first.proxy_task.task_id); // nobody's credentials are there
  const late = await joined(await session('A'), SAME);
  assert.deepEqual([late.joined, late.proxy_task.task_id], [true, first.proxy_task.task_id]);
  await upstream.received('tools/call');
  const running = await joined(await session('A'), SAME);
  assert.deepEqual([running.joined, running.proxy_task.task_id], [true, first.proxy_task.task_id]);
  assert.equal((await admin.list()).tasks.length, 2);
  assert.equal(upstream.calls.length, 1);
});

test('an outcome that came after four seconds goes once more to the next equal call, unless it was fetched', async (t) => {
  const { connect, admin, gateway, upstream } = await scene(t, { rules: [['delete_*', 'approve']], source: { bridge: 'modern' }, approval: workflow('10m'), upstream: { tools: [tool('delete_user')] } });
  const session = () => connect({ ...kinds.old.client, token: 'A' });
  const texts = async (waiting) => (await waiting).content.map(({ text }) => text);
  const ask = async (user, client) => callTool(client ?? (await session()), 'delete_user', { user });
  const calls = [0, 1, 2].map((user) => ask(user));
  const modern = (user) => modernClient(t, gateway.url, { capabilities: {}, token: 'A' }).send('tools/call', { name: 'delete_user', arguments: { user } });
  const modernCalls = ['modern', 'rejected'].map((user) => modern(user));
  await until(async () => (await admin.list()).tasks.length === 5, 'five tasks');
  await new Promise((resolve) => setTimeout(resolve, 4100)); // the time after which a client gives up
  for (const task of (await admin.list()).tasks) await (task.arguments.user === 'rejected' ? admin.reject(task.id, 'no') : admin.approve(task.id));
  for (const call of calls) assert.equal((await texts(call))[0], 'did delete_user');
  const tasks = (await admin.list()).tasks;
  const id = (user) => tasks.find((task) => task.arguments.user === user).id;
  assert.deepEqual(await texts(ask(0)), ['did delete_user', `This is the outcome of your earlier call, task ${id(0)}. It was not run again for this one.`]);
  const [done, rejected] = (await Promise.all(modernCalls)).map(({ message }) => message), again = [await modern('modern'), await modern('rejected')].map(({ message }) => message);
  assert.deepEqual([done.result.resultType, done.result.content.map(({ text }) => text)], ['complete', ['did delete_user']]);
  assert.deepEqual(again[0].result, { ...done.result, content: [...done.result.content, { type: 'text', text: `This is the outcome of your earlier call, task ${id('modern')}. It was not run again for this one.` }] });
  assert.deepEqual([again[1].error.code, again[1].error.message, again[1].error.data.taskId], [-32007, rejected.error.message, id('rejected')]);
  await callTool(await session(), 'get_task_result', { task_id: id(1) });
  assert.equal(upstream.calls.length, 4);
  const fresh = [ask(0), ask(1)];
  await until(async () => (await admin.list()).tasks.length === 7, 'two new tasks');
  for (const { id: task, state } of (await admin.list()).tasks) if (state === 'pending') await admin.approve(task);
  for (const call of fresh) assert.equal((await texts(call)).length, 1);
  assert.equal(upstream.calls.length, 6);
});

test('an outcome that nobody has fetched for 60 s goes to no call', { skip: fastClockMissing }, async (t) => {
  const clock = new LeapingClock(temporaryFolder(t));
  const { connect, admin, upstream } = await scene(t, { rules: [['delete_*', 'approve']], approval: workflow('1h'), env: clock.environment, upstream: { tools: [tool('delete_user')] }, config: { pseudo_tools: { wait: '30m' } } });
  const client = await connect({ ...kinds.old.client, token: 'A', keepAlive: false });
  const outcomes = {};
  for (const [user, seconds] of [['soon', 58], ['late', 61]]) {
    const call = () => callTool(client, 'delete_user', { user });
    const first = call();
    const { id } = await admin.pending();
    clock.leap(5);
    await admin.approve(id);
    await first;
    clock.leap(seconds);
    const again = call();
    if (user === 'late') await admin.approve((await admin.pending()).id);
    outcomes[user] = (await again).content.length;
  }
  assert.deepEqual([outcomes, upstream.calls.length], [{ soon: 2, late: 1 }, 3]);
});
