// Clients of 2026-07-28 through several replicas: what lives in one process is found from any of them.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { asks, elicit } from './lib/asking.mjs';
import { accept as acceptParty, FORMS, OWNER } from './lib/bridged_stage.mjs';
import { BRIEF_DRAIN } from './lib/gateway.mjs';
import { wholeFile } from './lib/lifetime.mjs';
import { modernClient } from './lib/modern_client.mjs';
import { answerOf, complete, form, modernUpstream } from './lib/modern_upstream.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { relayed, relaying, STATE_KEY } from './lib/relaying.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const options = { skip: postgresMissing };
const file = wholeFile();
const SETTINGS = { rules: [['delete_*', 'approve'], ['ask_*', 'approve']], source: { era: 'modern' }, config: { ...STATE_KEY.config, pseudo_tools: { wait: '30s' } }, env: STATE_KEY.env };
const accept = (answer) => ({ action: 'accept', content: { answer } });
const rounds = [];
let postgres, upstream, a, b, c;
let numbers = 0;

const database = () => postgres.createDatabase(`gate_${++numbers}`);

/** `ask_*` wants one answer before it is done. */
const toolsCall = ({ reply, params }) => {
  rounds.push(params);
  if (params.name === 'ask_user' && !params.inputResponses) reply.result(complete({ resultType: 'input_required', inputRequests: { q: form('How many?') }, requestState: 'up-0' }));
  else reply.result(answerOf(params));
};

const sent = (id) => rounds.filter((params) => params.arguments.id === id);

before(async () => {
  if (postgresMissing) return;
  postgres = await startPostgres(file);
  upstream = await startUpstream(file, modernUpstream({ tools: ['delete_user', 'ask_user', 'read'].map((name) => tool(name)), handlers: { 'tools/call': toolsCall } }));
  ({ a, b, c } = await relaying(file, upstream, database(), ['a', 'b', 'c'], SETTINGS));
});

const at = (t, gateway, more) => modernClient(t, gateway.url, { token: 'the-owner', ...more });

/** How often `work` was relayed by `gateway`. */
async function relaysOf(gateway, work) {
  const count = await relayed(gateway);
  const result = await work();
  return [(await relayed(gateway)) - count, result];
}

/** The task once it asks its client something. */
const asking = (client, taskId) => until(async () => {
  const task = await client.get(taskId);
  return task.inputRequests && task;
}, 'the question to be seen');

test('an undecided task is asked for and cancelled at any replica, where its credentials are', options, async (t) => {
  const { taskId } = await at(t, a).create('delete_user', { id: 1 });
  const [polled, task] = await relaysOf(b, () => at(t, b).get(taskId));
  assert.deepEqual([polled, task.taskId, task.status], [1, taskId, 'working']);
  const [cancelled] = await relaysOf(c, () => at(t, c).cancel(taskId));
  assert.equal(cancelled, 1);
  await a.admin.inState(taskId, 'cancelled');
  const [after, ended] = await relaysOf(b, () => at(t, b).get(taskId));
  assert.deepEqual([after, ended.status], [0, 'cancelled'], 'what has ended is read anywhere');
});

test('a poll with other headers is relayed to the credentials of the create, with which the call runs once', options, async (t) => {
  const { taskId } = await at(t, a).create('delete_user', { id: 2 });
  const [polled, task] = await relaysOf(b, () => at(t, b, { headers: { 'x-tenant': 'other' } }).get(taskId));
  assert.deepEqual([polled, task.status], [1, 'working']);
  await b.admin.approve(taskId);
  await c.admin.inState(taskId, 'completed');
  assert.equal(sent(2).length, 1);
});

test('a question of a running call is seen and answered at any replica', options, async (t) => {
  const { taskId } = await at(t, a).create('ask_user', { id: 3 });
  await c.admin.approve(taskId);
  const task = await asking(at(t, b), taskId);
  assert.deepEqual([task.status, Object.keys(task.inputRequests)], ['input_required', ['r1:q']]);
  const [updates] = await relaysOf(c, () => at(t, c).update(taskId, { 'r1:q': accept('three') }));
  assert.equal(updates, 1);
  await until(async () => (await at(t, b).get(taskId)).status === 'completed', 'the end');
  assert.deepEqual(sent(3).map(({ inputResponses }) => inputResponses), [undefined, { q: accept('three') }]);
});

test('a task of another owner is unknown at every replica', options, async (t) => {
  const { taskId } = await at(t, a).create('delete_user', { id: 4 });
  for (const gateway of [a, b]) {
    const { message } = await at(t, gateway, { token: 'another' }).send('tasks/get', { taskId });
    assert.equal(message.error.code, -32602, JSON.stringify(message));
  }
  const { message } = await at(t, b).send('tasks/get', { taskId: 'tg_00000000-0000-4000-8000-000000000000' });
  assert.equal(message.error.code, -32602);
});

test('a held call goes on at any replica by its requestState', options, async (t) => {
  const plain = { capabilities: { elicitation: {} } };
  const call = (client, more = {}) => client.send('tools/call', { name: 'ask_user', arguments: { id: 5 }, ...more });
  const first = call(at(t, a, plain));
  const { id } = await a.admin.pending((task) => task.tool === 'ask_user');
  await b.admin.approve(id);
  const { result: asked } = (await first).message;
  assert.deepEqual(Object.keys(asked.inputRequests), ['r1:q']);
  const wrong = await call(at(t, b, { ...plain, token: 'another' }), { requestState: asked.requestState, inputResponses: { 'r1:q': accept('stolen') } });
  assert.equal(wrong.message.error.message, 'requestState is not valid for this call');
  const [relays, { message }] = await relaysOf(b, () => call(at(t, b, plain), { requestState: asked.requestState, inputResponses: { 'r1:q': accept('five') } }));
  assert.deepEqual([relays, message.result], [1, answerOf({ name: 'ask_user', arguments: { id: 5 } })]);
  assert.deepEqual(sent(5).at(-1).inputResponses, { q: accept('five') });
  assert.equal(sent(5).length, 2);
});

test('a replica that stops answers a held round that it relays with a state at once, and the next round goes on elsewhere', options, async (t) => {
  const waits = { pseudo_tools: { wait: '50m', wait_max: '50m' }, clients: [{ match: 'hasty', wait: '200ms' }] };
  const drains = { THOUGHTGATE_DRAIN_TIMEOUT_SECS: '3600', THOUGHTGATE_SHUTDOWN_TIMEOUT_SECS: '3700' };
  const { k: home, l: other, m: third } = await relaying(t, upstream, database(), ['k', 'l', 'm'], { ...SETTINGS, config: { ...SETTINGS.config, ...waits }, env: { ...SETTINGS.env, ...drains } });
  const plain = (gateway, name) => at(t, gateway, { capabilities: {}, info: { name, version: '1' } });
  const round = (requestState) => ({ name: 'delete_user', arguments: { id: 8 }, requestState });
  const first = (await plain(home, 'hasty').send('tools/call', round())).message.result;
  assert.deepEqual([first.resultType, first.inputRequests], ['input_required', {}]);
  const held = await plain(other, 'patient').stream('tools/call', round(first.requestState), { meta: { progressToken: 'p' } });
  assert.equal((await held.message()).method, 'notifications/progress');
  other.child.signal('SIGTERM');
  const { result: second } = await held.message((message) => message.id === held.id);
  assert.deepEqual([second.resultType, second.inputRequests], ['input_required', {}]);
  await other.stop();
  const last = plain(third, 'patient').send('tools/call', round(second.requestState));
  await home.admin.approve((await home.admin.pending()).id);
  assert.deepEqual((await last).message.result, answerOf({ name: 'delete_user', arguments: { id: 8 } }));
  assert.equal(sent(8).length, 1);
});

test('the home has gone: an undecided task is adopted once, and runs where it is asked for', options, async (t) => {
  const { d, e, f } = await relaying(t, upstream, database(), ['d', 'e', 'f'], SETTINGS);
  const { taskId } = await at(t, d).create('delete_user', { id: 6 });
  await d.stop();
  assert.equal((await at(t, e).get(taskId)).status, 'working');
  const [relays] = await relaysOf(f, () => at(t, f).get(taskId));
  assert.equal(relays, 1, 'e has it now');
  await f.admin.approve(taskId);
  await e.admin.inState(taskId, 'completed');
  assert.equal(sent(6).length, 1);
});

test('the home has gone: what ran there has ended, and whoever asks is told so at once', options, async (t) => {
  const { g, h } = await relaying(t, upstream, database(), ['g', 'h'], { ...SETTINGS, env: { ...SETTINGS.env, ...BRIEF_DRAIN } });
  const { taskId } = await at(t, g).create('ask_user', { id: 7 });
  await g.admin.approve(taskId);
  await asking(at(t, h), taskId);
  await g.stop();
  const task = await at(t, h).get(taskId);
  assert.equal(task.status, 'failed', JSON.stringify(task));
  assert.match(JSON.stringify(task), /outcome unknown/);
  await at(t, h).update(taskId, { 'r1:q': accept('late') });
  assert.equal(sent(7).length, 1, 'it is not run again');
});

test('a legacy server\'s open call: its next round goes to the replica that has it, and is lost with it', options, async (t) => {
  const legacy = await startUpstream(t, { tools: [tool('read')], handlers: { 'tools/call': asks(elicit('q1'), elicit('q2')) } });
  const { i, j } = await relaying(t, legacy, database(), ['i', 'j'], { ...SETTINGS, rules: [], source: { bridge: 'modern' } });
  const client = (gateway) => modernClient(t, gateway.url, { capabilities: FORMS, headers: OWNER });
  const call = (gateway, more = {}) => client(gateway).send('tools/call', { name: 'read', arguments: { n: 1 }, ...more });
  const begun = await call(i);
  assert.ok(begun.message.result, JSON.stringify(begun.message));
  const first = begun.message.result;
  assert.deepEqual(Object.keys(first.inputRequests), ['r1.1']);
  const [relays, { message }] = await relaysOf(j, () => call(j, { requestState: first.requestState, inputResponses: { 'r1.1': acceptParty() } }));
  assert.deepEqual([relays, Object.keys(message.result.inputRequests)], [1, ['r2.1']], JSON.stringify(message));
  assert.equal(legacy.calls.length, 1, 'it is one call at the server');
  await i.kill9();
  const lost = await call(j, { requestState: message.result.requestState, inputResponses: { 'r2.1': acceptParty() } });
  assert.equal(lost.message.error.message, 'This conversation was lost; the tool may have run in part');
  assert.equal(legacy.calls.length, 1);
});
