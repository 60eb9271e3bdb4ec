// The clients of the other replicas hear the news of one: lists that changed, and questions of a running task.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { asks, elicit, PARTY, responseTo } from './lib/asking.mjs';
import { connectedRaw } from './lib/client.mjs';
import { exchange } from './lib/http.mjs';
import { wholeFile } from './lib/lifetime.mjs';
import { modernClient } from './lib/modern_client.mjs';
import { complete, form, modernUpstream, answerOf } from './lib/modern_upstream.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { meet, news, relaying, signature, STATE_KEY } from './lib/relaying.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const options = { skip: postgresMissing };
const file = wholeFile();
const RULES = [['ask_*', 'approve'], ['book_*', 'approve']];
const CHANGED = 'notifications/tools/list_changed';
const PENDING = 'io.modelcontextprotocol/pending-elicitations';
const RESPONSE = 'io.modelcontextprotocol/elicitation-response';
const accept = (answer) => ({ action: 'accept', content: { answer } });
const slow = []; // calls that the test answers
let postgres, a, b, c, upstream, x, y;

/** `ask_*` of the modern server wants one answer before it is done. */
const askOnce = ({ reply, params }) => {
  if (params.name === 'ask_user' && !params.inputResponses) reply.result(complete({ resultType: 'input_required', inputRequests: { q: form('How many?') }, requestState: 'up-0' }));
  else reply.result(answerOf(params));
};

before(async () => {
  if (postgresMissing) return;
  postgres = await startPostgres(file);
  const modern = await startUpstream(file, modernUpstream({ tools: ['ask_user', 'read'].map((name) => tool(name)), handlers: { 'tools/call': askOnce } }));
  ({ a, b, c } = await relaying(file, modern, postgres.createDatabase('modern'), ['a', 'b', 'c'], { rules: RULES, source: { era: 'modern' }, ...STATE_KEY }));
  upstream = await startUpstream(file, {
    tools: ['book_dinner', 'read', 'slow'].map((name) => tool(name)),
    capabilities: { tools: { listChanged: true }, notifications: { tasks: { status: true } } },
    handlers: { 'tools/call': (call) => (call.params.name === 'slow' ? slow.push(call) : asks(elicit(`q-${call.params.arguments.i}`))(call)) },
  });
  ({ x, y } = await relaying(file, upstream, postgres.createDatabase('legacy'), ['x', 'y'], { rules: RULES, source: { era: 'legacy' } }));
  await meet([a, b, c]);
  await meet([x, y]);
});

const at = (t, gateway, more) => modernClient(t, gateway.url, { token: 'the-owner', ...more });
const listen = async (client, notifications) => {
  const stream = await client.stream('subscriptions/listen', { notifications });
  await stream.message((message) => message.method === 'notifications/subscriptions/acknowledged');
  return stream;
};
const inputs = (stream, taskId, keys) => stream.message((m) => m.method === 'notifications/tasks' && m.params.taskId === taskId && String(Object.keys(m.params.inputRequests ?? {})) === keys);

test('tools changed at one: clients that listen at another are told, once for all that came together', options, async (t) => {
  const stream = await listen(at(t, a), { toolsListChanged: true });
  const deaf = await listen(at(t, a), { toolsListChanged: true, taskIds: [] });
  const count = await news(a, 'tools_changed', 'taken');
  b.hangUp();
  c.hangUp();
  await until(async () => (await news(a, 'tools_changed', 'taken')) >= count + 2, 'both to have told');
  const { params } = await stream.message((message) => message.method === CHANGED);
  assert.equal(params._meta['io.modelcontextprotocol/subscriptionId'], stream.id);
  await deaf.message((message) => message.method === CHANGED);
  a.hangUp();
  await stream.message((message) => message.method === CHANGED);
  assert.ok(stream.events.filter((event) => event.json?.method === CHANGED).length <= 3);
});

test('tools changed at one: a GET stream at another is told', options, async (t) => {
  const client = await connectedRaw(t, x.url, { token: 'the-owner' });
  const stream = await client.listen();
  await until(() => upstream.getStreams.size > 0, 'the stream at upstream');
  y.hangUp();
  await stream.next((event) => event.json?.method === CHANGED);
});

test('subscriptions/listen at one hears what a task asks that runs at another, and what is answered at a third', options, async (t) => {
  const { taskId } = await at(t, a).create('ask_user', { id: 1 });
  const before = await listen(at(t, b), { taskIds: [taskId] });
  await a.admin.approve(taskId);
  const { params } = await inputs(before, taskId, 'r1:q');
  assert.deepEqual([params.status, params.inputRequests['r1:q'].params.message], ['input_required', 'How many?']);
  const after = await listen(at(t, c), { taskIds: [taskId] });
  await inputs(after, taskId, 'r1:q');
  await at(t, c).update(taskId, { 'r1:q': accept('one') });
  for (const stream of [before, after]) {
    const { params: ended } = await stream.message((m) => m.method === 'notifications/tasks' && m.params.status === 'completed');
    assert.deepEqual([ended.taskId, ended.inputRequests], [taskId, undefined]);
  }
});

test('a task of one session asks: a session of the same owner at another replica is told, sees it, and answers', options, async (t) => {
  const client = await connectedRaw(t, x.url, { token: 'the-owner', capabilities: { tasks: {}, elicitation: {} } });
  const other = await connectedRaw(t, y.url, { token: 'the-owner', capabilities: { tasks: {}, elicitation: {} } });
  const stranger = await connectedRaw(t, y.url, { token: 'another', capabilities: { tasks: {}, elicitation: {} } });
  const stream = await other.listen();
  const strange = await stranger.listen();
  await until(() => upstream.getStreams.size >= 2, 'the streams at upstream');
  const { taskId } = await client.createTask('book_dinner', { i: 1 });
  await y.admin.approve(taskId);
  const told = await stream.next((event) => event.json?.method === 'notifications/tasks/status' && event.json.params._meta?.[PENDING]);
  assert.deepEqual([told.json.params.taskId, told.json.params.status], [taskId, 'input_required']);
  assert.equal(told.json.params._meta[PENDING][0].message, PARTY.message);
  const seen = await other.result('tasks/get', { taskId });
  assert.deepEqual([seen.status, seen._meta[PENDING]], ['input_required', told.json.params._meta[PENDING]]);
  const [{ elicitationId }] = seen._meta[PENDING];
  await other.call('tasks/get', { taskId, _meta: { [RESPONSE]: { elicitationId, action: 'accept', content: { partySize: 5 } } } });
  assert.deepEqual((await responseTo(upstream, 'q-1')).result.content, { partySize: 5 });
  assert.match(JSON.stringify(await other.result('tasks/result', { taskId })), /partySize/);
  assert.deepEqual(strange.events.filter((event) => event.json?.params?.taskId === taskId), [], 'nobody hears of another\'s task');
});

test('an outcome that nobody got at one goes to the same call made again at another, once', options, async (t) => {
  const plain = { capabilities: {} };
  const call = (gateway) => at(t, gateway, plain).send('tools/call', { name: 'ask_user', arguments: { id: 9 } });
  const counts = () => Promise.all([a, b].map((gateway) => news(gateway, 'repeated_call', 'taken')));
  const [fromB, fromA] = await counts();
  const stream = await at(t, a, plain).stream('tools/call', { name: 'ask_user', arguments: { id: 9 } }, { meta: { progressToken: 'p' } });
  await stream.message();
  const { id } = await a.admin.pending((task) => task.arguments.id === 9);
  stream.abort();
  await until(async () => (await counts())[1] > fromA, 'the other to know of the call that was given up');
  await a.admin.reject(id, 'no');
  await b.admin.inState(id, 'rejected');
  const { error } = (await call(b)).message;
  assert.deepEqual([error.code, error.data.taskId], [-32007, id]);
  await until(async () => (await counts())[0] > fromB, 'the first to know that it was told');
  const fresh = call(a);
  const next = await a.admin.pending((task) => task.arguments.id === 9);
  assert.notEqual(next.id, id, 'a new call');
  await a.admin.reject(next.id, 'no');
  assert.equal((await fresh).message.error.data?.taskId, undefined);
});

test('a forwarded call that was left at one is joined by the same call made again at another', options, async (t) => {
  const connect = (gateway) => connectedRaw(t, gateway.url, { token: 'the-leaver', capabilities: {} });
  const call = (client) => client.result('tools/call', { name: 'slow', arguments: { i: 1 } });
  const count = await news(y, 'repeated_call', 'taken');
  const client = await connect(x);
  call(client).catch(() => {});
  await until(() => slow.length === 1, 'the call');
  client.close();
  const task = await until(async () => (await x.admin.list()).tasks.find(({ tool: name }) => name === 'slow'), 'its task');
  await until(async () => (await news(y, 'repeated_call', 'taken')) > count, 'the other to know of it');
  const again = call(await connect(y));
  slow[0].reply.result({ content: [{ type: 'text', text: 'once' }] });
  await x.admin.inState(task.id, 'completed');
  for (const second of slow.slice(1)) second.reply.result({ content: [{ type: 'text', text: 'twice' }] });
  assert.deepEqual((await again).content.map(({ text }) => text), ['once', `This is the outcome of your earlier call, task ${task.id}. It was not run again for this one.`]);
  assert.equal(slow.length, 1);
});

test('news are taken from replicas alone, and only those that are understood', options, async () => {
  const send = (body, change = {}) => {
    const headers = [['content-type', 'application/json']];
    const value = signature({ from: 'b', to: 'a', method: 'POST', target: '/replicas/news', headers, body, ...change });
    return exchange(`http://127.0.0.1:${a.relayPort}/replicas/news`, { method: 'POST', body, headers: { ...Object.fromEntries(headers), 'taskgate-relay': value } });
  };
  const text = (value) => JSON.stringify({ kind: 'tools_changed', sequence: 1, ...value });
  const count = await news(a, 'tools_changed', 'taken');
  assert.equal((await send(text())).status, 204);
  assert.equal((await send(text(), { key: 'another' })).status, 403);
  assert.equal((await send(text(), { epoch: 9 })).status, 421);
  const task = 'tg_00000000-0000-4000-8000-000000000000';
  const bad = ['', '[]', '{', text({ kind: 'gossip' }), text({ sequence: -1 }), text({ kind: 'task_wanted' }), text({ kind: 'task_wanted', task: 'x' }), text({ kind: 'task_asks', task, changedMs: 1, requests: [] }), text({ kind: 'task_asks', task })];
  for (const body of bad) assert.deepEqual([body, (await send(body)).status], [body, 400]);
  assert.equal((await send(text({ kind: 'task_asks', task, changedMs: 1, requests: { q: {} }, questions: [], isAsking: true }))).status, 204);
  assert.equal(await news(a, 'tools_changed', 'taken'), count + 1);
  const open = await exchange(`${a.origin}/replicas/news`, { method: 'POST', body: text(), headers: { 'content-type': 'application/json' } });
  assert.equal(open.status, 404, 'it is no path of the clients');
});
