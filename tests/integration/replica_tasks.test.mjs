// Two sessions of one owner at two replicas: what one of them does with a task happens where the task lives.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { asks, elicit, responseTo } from './lib/asking.mjs';
import { connectedRaw } from './lib/client.mjs';
import { fastClockMissing, LeapingClock } from './lib/fast_clock.mjs';
import { temporaryFolder } from './lib/gateway.mjs';
import { defer, wholeFile } from './lib/lifetime.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { callTool, eventsOf, kinds } from './lib/pseudo.mjs';
import { meet, relayed, relaying, startReplica, through } from './lib/relaying.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const options = { skip: postgresMissing };
const file = wholeFile();
const ASKABLE = { tasks: {}, elicitation: {} };
const SETTINGS = { rules: [['*_approved', 'approve']], config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms', wait_max: '200ms' } } };
const OWN_ID = /^tg:[0-9A-Z]{26}\.[0-9a-f]{16}$/; // names the question and the replica that has asked
const held = [];
let postgres, upstream, shared, a, b;
let numbers = 0;

const database = () => postgres.createDatabase(`gate_${++numbers}`);

const toolsCall = (call) => {
  const { name, arguments: args } = call.params;
  if (name === 'ask_approved') return asks(elicit(`e-${args.i}`))(call);
  if (name === 'slow_approved') return void held.push(call);
  return call.reply.result({ content: [{ type: 'text', text: `did ${name}` }] });
};

before(async () => {
  if (postgresMissing) return;
  postgres = await startPostgres(file);
  upstream = await startUpstream(file, { tools: ['ask_approved', 'slow_approved', 'read'].map((name) => tool(name)), handlers: { 'tools/call': toolsCall } });
  ({ a, b } = await relaying(file, upstream, (shared = database()), ['a', 'b'], SETTINGS));
  await meet([a, b]);
  // A stopping gateway waits for its calls: they end with the tests.
  defer(file, () => held.forEach(({ reply }) => reply.response.writableEnded || reply.cut()));
});

/** Two sessions of one owner, the first at `a`, the second at `b`. */
async function two(t, more = {}) {
  const atA = await connectedRaw(t, a.url, { token: 'the-owner', ...more });
  const atB = await connectedRaw(t, b.url, { token: 'the-owner', ...more });
  await atA.result('tools/list');
  await atB.result('tools/list');
  return { atA, atB };
}

/** The replica that has the task. */
const homeOf = (taskId, url = shared) =>
  postgres.query(`SELECT claim.replica FROM taskgate_task_claim AS claim JOIN taskgate_task AS task ON task.sequence = claim.task WHERE task.id = '${taskId}'`, url.match(/gate_\d+/)[0])[0]?.[0];

const accept = (client, question, content) => client.post({ jsonrpc: '2.0', id: question.json.id, result: { action: 'accept', content } });
const isQuestion = (event) => event.json?.method === 'elicitation/create';
const createPlain = async (client, name, args) => (await callTool(client, name, args)).structuredContent.proxy_task.task_id;

test('tasks/result of another session asks its client what the running call asks, and takes the answer at any replica', options, async (t) => {
  const { atA, atB } = await two(t, { capabilities: ASKABLE });
  const { taskId } = await atA.createTask('ask_approved', { i: 1 });
  await a.admin.approve(taskId);
  await until(async () => (await atB.result('tasks/get', { taskId })).status === 'input_required', 'the question to be seen');
  const stream = await atB.stream('tasks/result', { taskId });
  const question = await stream.next(isQuestion);
  assert.match(question.json.id, OWN_ID);
  assert.equal((await accept(atB, question, { partySize: 2 })).status, 202);
  assert.deepEqual((await responseTo(upstream, 'e-1')).result.content, { partySize: 2 });
  const { json } = await stream.next((event) => event.json?.result);
  assert.deepEqual(json.result.structuredContent.answers[0].content, { partySize: 2 });
  assert.equal((await accept(atB, question, { partySize: 3 })).status, 400, 'it is answered');
});

test('a wait elsewhere does not take the call from its home, and another owner answers nothing', options, async (t) => {
  const { atA, atB } = await two(t, { capabilities: ASKABLE });
  const { taskId } = await atA.createTask('ask_approved', { i: 2 });
  const waiting = atB.stream('tasks/result', { taskId });
  const stream = await waiting;
  await b.admin.approve(taskId);
  const question = await stream.next(isQuestion);
  assert.equal(homeOf(taskId), 'a');
  const other = await connectedRaw(t, b.url, { token: 'another', capabilities: ASKABLE });
  await accept(other, question, { partySize: 9 });
  await accept(through(t, atB, a), question, { partySize: 4 });
  assert.deepEqual((await responseTo(upstream, 'e-2')).result.content, { partySize: 4 });
  const { json } = await stream.next((event) => event.json?.result);
  assert.deepEqual(json.result.structuredContent.answers[0].content, { partySize: 4 });
});

test('tasks/cancel of another session ends the call at the server', options, async (t) => {
  const { atA, atB } = await two(t);
  const count = held.length;
  const { taskId } = await atA.createTask('slow_approved');
  await a.admin.approve(taskId);
  await until(() => held.length > count, 'the call at upstream');
  assert.equal((await atB.result('tasks/cancel', { taskId })).status, 'cancelled');
  const { rpc } = await upstream.received((r) => r.rpc?.method === 'notifications/cancelled' && r.rpc.params.requestId === held[count].id);
  assert.ok(rpc);
  assert.equal(homeOf(taskId), 'a');
});

test('notifications/cancelled ends a wait at the home of the task', options, async (t) => {
  const { atA, atB } = await two(t);
  const { taskId } = await atA.createTask('slow_approved');
  const stream = await atB.stream('tasks/result', { taskId }, { id: 77 });
  assert.equal((await atB.notify('notifications/cancelled', { requestId: 77 })).status, 202);
  await stream.end();
  assert.equal((await atB.result('tasks/get', { taskId })).status, 'input_required');
});

test('get_task_result of another session leaves the call, its question and its events where they belong', options, async (t) => {
  const { atA, atB } = await two(t, kinds.old.client);
  const id = await createPlain(atA, 'ask_approved', { i: 3 });
  const own = await createPlain(atB, 'slow_approved', { i: 4 });
  const count = await relayed(b);
  const waiting = callTool(atB, 'get_task_result', { task_id: id });
  await until(async () => (await a.admin.metrics())['thoughtgate_pseudo_tool_calls_total{tool="get_task_result"}'] === 1, 'the wait to begin');
  await b.admin.approve(id);
  const asked = await until(async () => (await callTool(atA, 'get_elicitations')).structuredContent.elicitations[0], 'the question');
  assert.equal(homeOf(id), 'a');
  await b.admin.reject(own, 'no'); // an event of the session that waits
  await callTool(atA, 'respond_to_elicitation', { request_id: asked.requestId, action: 'accept', content: { partySize: 5 } });
  const result = await waiting;
  assert.deepEqual(result.structuredContent.answers[0].content, { partySize: 5 });
  assert.equal((await relayed(b)) - count, 1);
  assert.deepEqual(eventsOf(result), [], 'they are told where the session lives');
  const again = await callTool(atB, 'get_task_result', { task_id: id });
  assert.deepEqual([...eventsOf(again), ...eventsOf(await callTool(atB, 'list_tasks'))].map(({ type, data }) => [type, data.taskId]), [['task_failed', own]]);
});

test('the home of a task is gone: it goes on where its session does, whichever replica is asked', options, async (t) => {
  const url = database();
  const { c, d, e } = await relaying(t, upstream, url, ['c', 'd', 'e'], SETTINGS);
  const atC = await connectedRaw(t, c.url, { token: 'the-owner', capabilities: ASKABLE });
  const { taskId } = await atC.createTask('ask_approved', { i: 5 });
  await c.stop();
  const [atD, atE] = [through(t, atC, d), through(t, atC, e)];
  await atD.result('tools/call', { name: 'read', arguments: {} }); // d adopts the session
  assert.equal((await atE.result('tasks/get', { taskId })).status, 'input_required');
  assert.equal(homeOf(taskId, url), 'd');
  const waiting = await atE.stream('tasks/result', { taskId });
  await e.admin.approve(taskId);
  const question = await waiting.next(isQuestion);
  assert.match(question.json.id, OWN_ID, 'its session may live at another replica than the task');
  await accept(atE, question, { partySize: 6 });
  assert.deepEqual((await responseTo(upstream, 'e-5')).result.content, { partySize: 6 });
  await waiting.next((event) => event.json?.result);
});

test('the home dies under a wait for a result: its client is told to ask again, and is then told of the end', options, async (t) => {
  const { f, g } = await relaying(t, upstream, database(), ['f', 'g'], SETTINGS);
  const atF = await connectedRaw(t, f.url, { token: 'the-owner' });
  const atG = await connectedRaw(t, g.url, { token: 'the-owner' });
  const count = held.length;
  const { taskId } = await atF.createTask('slow_approved');
  await f.admin.approve(taskId);
  await until(() => held.length > count, 'the call at upstream');
  const stream = await atG.stream('tasks/result', { taskId });
  await f.kill9();
  const { json } = await stream.next((event) => event.json?.error);
  assert.equal(json.error.code, -32013, JSON.stringify(json));
  const task = await until(async () => {
    const now = await atG.result('tasks/get', { taskId });
    return now.status === 'failed' && now;
  }, 'the home to be taken for dead', { deadline: 40_000, every: 500 });
  assert.match(task.statusMessage, /outcome unknown/);
});

test('a replica whose clock is more than 30 s ahead answers polls and runs the task itself, and its log says so', { skip: postgresMissing || fastClockMissing }, async (t) => {
  const url = database();
  const clock = new LeapingClock(temporaryFolder(t));
  clock.leap(61);
  const { near } = await relaying(t, upstream, url, ['near'], { rules: [['read', 'approve']] });
  const far = await startReplica(t, upstream, url, 'far', { rules: [['read', 'approve']], env: clock.environment });
  const atNear = await connectedRaw(t, near.url, { token: 'the-owner' });
  const atFar = through(t, atNear, far);
  const { taskId } = await atNear.createTask('read');
  const states = [];
  for (const client of [atFar, atNear]) states.push(await client.result('tasks/get', { taskId }));
  assert.equal(states[0].status, 'input_required');
  assert.deepEqual(states[0], states[1], 'the same at both');
  assert.deepEqual([await relayed(far, 'refused'), await relayed(far), await relayed(near, 'unsigned')], [1, 0, 1]);
  const line = await far.logged(/^A replica refuses the signature of this one; look at the key .* and at the clocks, of both$/);
  assert.deepEqual([line.level, line.replica], ['error', 'near']);
  await near.admin.approve(taskId);
  assert.deepEqual((await atFar.result('tasks/result', { taskId })).content, [{ type: 'text', text: 'did read' }]);
  assert.equal((await atNear.result('tasks/get', { taskId })).status, 'completed');
  assert.equal(await relayed(far), 0);
});
