// One session through several replicas: what lives in one process alone is at one of them, and the others relay to it.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { asks, elicit, PARTY, responseTo } from './lib/asking.mjs';
import { connectedRaw } from './lib/client.mjs';
import { exchange } from './lib/http.mjs';
import { defer, wholeFile } from './lib/lifetime.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { callTool, kinds } from './lib/pseudo.mjs';
import { relayed, relaying, signature, through } from './lib/relaying.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const options = { skip: postgresMissing };
const file = wholeFile();
const PENDING = 'io.modelcontextprotocol/pending-elicitations';
const RESPONSE = 'io.modelcontextprotocol/elicitation-response';
const ASKABLE = { tasks: {}, elicitation: {} };
const SETTINGS = { rules: [['delete_*', 'approve'], ['book_*', 'approve']], config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms', wait_max: '200ms' } } };

let postgres, upstream, a, b;
const held = [];
let numbers = 0;

const database = () => postgres.createDatabase(`gate_${++numbers}`);

/** The events in an answer of await_activity. */
const told = (answer) => answer.structuredContent.events.flatMap(({ events }) => events);

const toolsCall = (call) => {
  const { name, arguments: args } = call.params;
  if (name === 'ask' || name === 'book_dinner') return asks(elicit(`e-${args.i}`))(call);
  if (name === 'slow') return void held.push(call);
  return call.reply.result({ content: [{ type: 'text', text: `did ${name}` }] });
};

before(async () => {
  if (postgresMissing) return;
  postgres = await startPostgres(file);
  upstream = await startUpstream(file, {
    tools: ['delete_user', 'read', 'ask', 'book_dinner', 'slow'].map((name) => tool(name)),
    capabilities: { tools: {}, notifications: { tasks: { status: true } } },
    handlers: { 'tools/call': toolsCall },
  });
  ({ a, b } = await relaying(file, upstream, database(), ['a', 'b'], SETTINGS));
  // A stopping gateway waits for its calls: they end with the tests.
  defer(file, () => held.forEach(({ reply }) => reply.response.writableEnded || reply.cut()));
});

/** A client whose session lives at `a`, and the same one through `b`. */
async function one(t, more = {}) {
  const atA = await connectedRaw(t, a.url, { token: 'the-owner', ...more });
  return { atA, atB: through(t, atA, b) };
}

test('a session opened at one works at the other, which relays to it', options, async (t) => {
  const { atA, atB } = await one(t);
  const before = await relayed(b);
  const { taskId } = await atB.createTask('delete_user', { id: 7 });
  assert.equal((await atA.result('tasks/get', { taskId })).status, 'input_required');
  const waiting = atB.result('tasks/result', { taskId });
  await b.admin.approve(taskId, 'fine');
  assert.match(JSON.stringify(await waiting), /did delete_user/);
  assert.equal((await atB.result('tasks/get', { taskId })).status, 'completed');
  assert.equal((await atB.result('tools/call', { name: 'read', arguments: {} })).content[0].text, 'did read');
  assert.equal((await relayed(b)) - before, 4);
  assert.equal(await relayed(a), 0);
});

test('the bytes are those of the client and of the server', options, async (t) => {
  const { atB } = await one(t);
  const body = ' { "jsonrpc" : "2.0","id": "x\\u0041",  "method":"tools/call","params":{"name":"read","arguments":{"n":1.0}}}';
  const answer = await atB.send('', undefined, { body, id: 'xA', headers: { 'x-odd': 'Kept As It Is' } });
  assert.equal(answer.status, 200);
  const got = upstream.calls.at(-1);
  assert.equal(got.text, body);
  assert.equal(got.headers['x-odd'], 'Kept As It Is');
  assert.ok(!Object.keys(got.headers).some((name) => name.startsWith('taskgate')), JSON.stringify(got.headers));
  assert.ok(!Object.keys(answer.headers).some((name) => name.startsWith('taskgate')), JSON.stringify(answer.headers));
});

test('a question on the stream of a call at one is answered through the other', options, async (t) => {
  const { atA, atB } = await one(t, { capabilities: ASKABLE });
  const stream = await atA.stream('tools/call', { name: 'ask', arguments: { i: 1 } });
  const question = await stream.next((event) => event.json?.method === 'elicitation/create');
  assert.equal((await atB.post({ jsonrpc: '2.0', id: question.json.id, result: { action: 'accept', content: { partySize: 2 } } })).status, 202);
  assert.deepEqual((await responseTo(upstream, 'e-1')).result.content, { partySize: 2 });
  const answered = await stream.next((event) => event.json?.result);
  assert.match(JSON.stringify(answered.json), /partySize/);
});

test('a question of an execution is seen and answered through the other', options, async (t) => {
  const { atA, atB } = await one(t, { capabilities: ASKABLE });
  const { taskId } = await atA.createTask('book_dinner', { i: 2 });
  await b.admin.approve(taskId);
  const asked = await until(async () => {
    const task = await atB.result('tasks/get', { taskId });
    return task._meta?.[PENDING]?.[0] && task;
  }, 'the question to be seen at b');
  const [{ elicitationId, id, ...rest }] = asked._meta[PENDING];
  assert.match(JSON.stringify(rest), new RegExp(PARTY.message.slice(0, 10)));
  await atB.call('tasks/get', { taskId, _meta: { [RESPONSE]: { elicitationId: elicitationId ?? id, action: 'accept', content: { partySize: 3 } } } });
  assert.deepEqual((await responseTo(upstream, 'e-2')).result.content, { partySize: 3 });
  assert.match(JSON.stringify(await atB.result('tasks/result', { taskId })), /partySize/);
});

test('a GET stream through the other brings what the server and the gateway send, as it comes', options, async (t) => {
  const { atA, atB } = await one(t);
  const stream = await atB.listen();
  await until(() => upstream.getStreams.size > 0, 'the stream at upstream');
  upstream.push({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a:1' } });
  await stream.next((event) => event.json?.params?.uri === 'a:1');
  const { taskId } = await atA.createTask('delete_user', { id: 8 });
  await b.admin.reject(taskId, 'no');
  await stream.next((event) => event.json?.params?.taskId === taskId && event.json.params.status === 'failed');
  const streams = upstream.getStreams.size;
  stream.abort();
  await until(() => upstream.getStreams.size < streams, 'upstream to learn that the client has left');
});

test('notifications/cancelled through the other ends a wait', options, async (t) => {
  const { atA, atB } = await one(t);
  const { taskId } = await atA.createTask('delete_user', { id: 9 });
  const stream = await atA.stream('tasks/result', { taskId }, { id: 77 });
  assert.equal((await atB.notify('notifications/cancelled', { requestId: 77 })).status, 202);
  await stream.end();
});

test('events for a client without tasks are told once, wherever it asks', options, async (t) => {
  const { atA, atB } = await one(t, kinds.old.client);
  const { proxy_task: task } = (await callTool(atB, 'delete_user', { id: 10 })).structuredContent;
  const waiting = callTool(atB, 'await_activity', { timeout_ms: 60_000 });
  await a.admin.reject(task.task_id, 'no');
  const types = (answer) => told(answer).map(({ type }) => type);
  assert.deepEqual(types(await waiting), ['task_failed']);
  assert.deepEqual(types(await callTool(atA, 'await_activity', { timeout_ms: 50 })), []);
});

test('DELETE through the other ends the session and cancels what it owns', options, async (t) => {
  const { atA, atB } = await one(t, { token: undefined });
  const { taskId } = await atA.createTask('delete_user', { id: 11 });
  assert.equal((await atB.delete()).status, 200);
  await a.admin.inState(taskId, 'cancelled');
  assert.ok(!upstream.liveSessions.has(atA.session));
});

test('a client that leaves one leaves the other', options, async (t) => {
  const { atB } = await one(t, { capabilities: { tasks: {} } });
  const count = held.length;
  const pending = atB.post({ jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'slow', arguments: {} } });
  await until(() => held.length > count, 'the call at upstream');
  const call = held.at(-1);
  atB.close();
  await pending.then((response) => response.abort(), () => {});
  call.reply.result({ content: [] });
});

test('the port for replicas takes what a replica has signed, once, and nothing else', options, async (t) => {
  const { atA } = await one(t);
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } });
  const headers = [['accept', 'application/json, text/event-stream'], ['content-type', 'application/json'], ['mcp-session-id', atA.session], ['authorization', 'Bearer the-owner']];
  const send = (change = {}, sent = {}) => {
    const request = { from: 'b', to: 'a', epoch: 1, method: 'POST', target: '/mcp', headers, body, ...change };
    const value = sent.value ?? signature(request);
    const { method = 'POST', target = '/mcp', body: bytes = body, headers: pairs = headers } = sent;
    return exchange(`http://127.0.0.1:${a.relayPort}${target}`, { method, body: bytes, headers: { ...Object.fromEntries(pairs), ...(value ? { 'taskgate-relay': value } : {}) } });
  };
  const good = await send();
  assert.equal(good.status, 200, await good.text());
  assert.match(await good.text(), /did read/);
  const count = upstream.calls.length;
  const value = signature({ from: 'b', to: 'a', method: 'POST', target: '/mcp', headers, body });
  assert.equal((await send({}, { value })).status, 200);
  const refused = {
    'a second time': await send({}, { value }),
    'without a signature': await send({}, { value: '' }),
    'another key': await send({ key: 'another' }),
    'too old': await send({ time: Date.now() - 31_000 }),
    'from the future': await send({ time: Date.now() + 31_000 }),
    'for another replica': await send({ to: 'c' }),
    'another body': await send({}, { body: body.replace('read', 'slow') }),
    'another target': await send({}, { target: '/mcp?x' }),
    'another method': await send({}, { method: 'DELETE' }),
    'another token': await send({}, { headers: headers.map(([name, text]) => [name, name === 'authorization' ? 'Bearer other' : text]) }),
    'one header more': await send({}, { headers: [...headers, ['x-more', '1']] }),
    'another session, unsigned': await send({}, { headers: headers.map(([name, text]) => [name, name === 'mcp-session-id' ? 'unknown' : text]) }),
    'a page of the admin port': await exchange(`http://127.0.0.1:${a.relayPort}/ready`),
  };
  for (const [what, answer] of Object.entries(refused)) assert.deepEqual([what, answer.status, await answer.text()], [what, 403, '']);
  assert.equal((await send({ epoch: 2 })).status, 421);
  assert.equal(upstream.calls.length, count + 1);
  assert.equal(await relayed(a, 'unsigned'), Object.keys(refused).length);
});

test("a client's text in the place of a signature goes nowhere", options, async (t) => {
  const { atB } = await one(t);
  const answer = await atB.send('tools/call', { name: 'read', arguments: {} }, { headers: { 'taskgate-relay': 'v1 b a 1 1 x y' } });
  assert.equal(answer.status, 200);
  assert.ok(!('taskgate-relay' in upstream.calls.at(-1).headers));
});

test('a session that nobody knows is handled where it arrives', options, async (t) => {
  const { atA } = await one(t);
  atA.session = 'nobody-knows-it';
  const before = await relayed(a);
  const answer = await atA.send('tools/call', { name: 'read', arguments: {} });
  assert.equal(answer.status, 404);
  assert.equal(await relayed(a), before);
});

test('an id that nobody knows is waited for only where another replica may have opened it', options, async (t) => {
  const url = database();
  const { k } = await relaying(t, upstream, url, ['k'], SETTINGS);
  let ids = 0;
  /** The least time that a call with a new id takes: what other processes do on the machine only adds to it. */
  const least = async (tries) => {
    const times = [];
    for (let i = 0; i < tries; i++) {
      const client = await connectedRaw(t, k.url, { token: 'the-owner' });
      client.session = `unknown-${++ids}`;
      const since = performance.now();
      assert.equal((await client.send('tools/call', { name: 'read', arguments: {} })).status, 404);
      times.push(performance.now() - since);
    }
    return Math.min(...times);
  };
  assert.ok((await least(8)) < 200, 'alone: not waited for');
  const { l } = await relaying(t, upstream, url, ['l'], SETTINGS);
  await until(async () => (await k.admin.get('/ready')).json.replica.peers.some(({ id, state }) => id === 'l' && state === 'alive'), 'k to know of l');
  assert.ok((await least(2)) >= 190, 'l may have opened it');
  await l.stop();
});

test('an id that was not waited for, since too many were, is waited for later', options, async (t) => {
  const url = database();
  // A busy machine may need longer for a call than SETTINGS has one wait.
  const { m, n } = await relaying(t, upstream, url, ['m', 'n'], { ...SETTINGS, config: {} });
  await until(async () => (await m.admin.get('/ready')).json.replica.peers.some(({ id, state }) => id === 'n' && state === 'alive'), 'm to know of n');
  const client = await connectedRaw(t, m.url, { token: 'the-owner' });
  /** The longest of many calls, each with an id of its own; what other processes do on the machine only adds to it. */
  const most = async () => Math.max(...(await Promise.all(Array.from({ length: 96 }, async (_, i) => {
    client.session = `crowd-${i}`;
    const since = performance.now();
    const answer = await client.send('tools/call', { name: 'read', arguments: {} });
    assert.equal(answer.status, 404, answer.text);
    return performance.now() - since;
  }))));
  const release = await postgres.holdTable(url.match(/gate_\d+/)[0], 'taskgate_session_home');
  const first = most();
  await until(async () => (await m.admin.metrics())['thoughtgate_active_requests'] >= 96, 'all of them at once');
  await release();
  await first;
  assert.ok((await most()) >= 190, 'n may have opened one that was not waited for');
});

test('home says goodbye after its drain, in which others handle what it refuses unread: the session is adopted at once, and stays where it is when the home comes back', options, async (t) => {
  const url = database();
  const { c, d } = await relaying(t, upstream, url, ['c', 'd'], SETTINGS);
  const atC = await connectedRaw(t, c.url, { token: 'the-owner' });
  const atD = through(t, atC, d);
  const { taskId } = await atD.createTask('delete_user', { id: 12 });
  assert.ok((await relayed(d)) > 0);
  const count = held.length;
  const running = atD.call('tools/call', { name: 'slow', arguments: {} });
  await until(() => held.length > count, 'the call at upstream');
  c.child.signal('SIGTERM');
  await c.logged(/Shutting down/);
  for (let i = 0; i < 3; i++) assert.equal((await atD.result('tools/call', { name: 'read', arguments: {} })).content[0].text, 'did read');
  held.at(-1).reply.result({ content: [{ type: 'text', text: 'did slow' }] });
  assert.equal((await running).result.content[0].text, 'did slow', 'it is relayed to its end');
  for (const outcome of ['unreachable', 'lost', 'repeated']) assert.equal(await relayed(d, outcome), 0, `${outcome}: what came to c was refused unread`);
  await c.stop();
  await d.admin.approve(taskId);
  assert.match(JSON.stringify(await atD.result('tasks/result', { taskId })), /did delete_user/);
  assert.equal((await atD.result('tools/call', { name: 'read', arguments: {} })).content[0].text, 'did read');
  assert.deepEqual(postgres.query('SELECT replica FROM taskgate_session_home', url.match(/gate_\d+/)[0]), [['d']]);
  await c.launch();
  const again = through(t, atD, c);
  assert.equal((await again.result('tasks/get', { taskId })).status, 'completed');
  assert.equal(await relayed(c), 1);
});

test('home is killed: what was lost with it is told once where the session goes on', options, async (t) => {
  const url = database();
  const { e, f } = await relaying(t, upstream, url, ['e', 'f'], SETTINGS);
  const atE = await connectedRaw(t, e.url, { token: 'the-owner', ...kinds.old.client });
  const atF = through(t, atE, f);
  const count = held.length;
  const answer = await callTool(atF, 'slow');
  const id = answer.structuredContent?.proxy_task?.task_id ?? JSON.parse(answer.content[1].text).proxy_task.task_id;
  await until(() => held.length > count, 'the call at upstream');
  await e.kill9();
  assert.equal((await callTool(atF, 'read')).content[0].text, 'did read'); // not reached, so handled here
  await until(async () => (await f.admin.task(id)).state === 'failed', 'the home to be taken for dead', { deadline: 40_000, every: 200 });
  const events = [];
  await until(async () => {
    events.push(...told(await callTool(atF, 'await_activity', { timeout_ms: 50 })));
    return events.length > 0;
  }, 'the loss to be told', { deadline: 15_000 });
  events.push(...told(await callTool(atF, 'await_activity', { timeout_ms: 50 })));
  assert.deepEqual(events.map(({ type, data }) => [type, data.taskId]), [['task_failed', id]]);
  assert.match(JSON.stringify(events), /upstream connection lost/);
});

test('a replica that stops ends the streams and waits that it relays, at once', options, async (t) => {
  const { a: home, b: other } = await relaying(t, upstream, database(), ['a', 'b'], SETTINGS);
  const atHome = await connectedRaw(t, home.url, { token: 'the-owner' });
  const atOther = through(t, atHome, other);
  const stream = await atOther.listen();
  const { taskId } = await atOther.createTask('delete_user', { id: 13 });
  const result = await atOther.stream('tasks/result', { taskId });
  await other.stop();
  await Promise.all([stream.end(), result.end()]);
  assert.equal(result.events.at(-1).json.error.code, -32013);
  assert.equal((await atHome.result('tasks/get', { taskId })).status, 'input_required');
});

test('a replica that stops: what it relays is answered as what it holds itself, at once, and what runs goes on', options, async (t) => {
  const waits = { pseudo_tools: { promote: 'wait', only: 'all', wait: '50m', wait_max: '50m' } };
  const drains = { THOUGHTGATE_DRAIN_TIMEOUT_SECS: '3600', THOUGHTGATE_SHUTDOWN_TIMEOUT_SECS: '3700' };
  const { a: home, b: other, c: third } = await relaying(t, upstream, database(), ['a', 'b', 'c'], { ...SETTINGS, config: waits, env: drains });
  const atHome = await connectedRaw(t, home.url, { token: 'the-owner', capabilities: {} });
  const [atOther, atThird] = [through(t, atHome, other), through(t, atHome, third)];
  const hold = async (client, n) => {
    const answer = callTool(client, 'delete_user', { n });
    return { answer, id: (await home.admin.pending((task) => task.arguments.n === n)).id };
  };
  const held = [await hold(atOther, 1), await hold(atThird, 2), await hold(atHome, 3)];
  const waiting = callTool(atOther, 'await_activity', { timeout_ms: 900_000 });
  const asked = callTool(atOther, 'get_task_result', { task_id: held[1].id });
  const count = upstream.calls.length;
  const running = atOther.call('tools/call', { name: 'slow', arguments: {} });
  await until(() => upstream.calls.length > count, 'the call at upstream');
  other.child.signal('SIGTERM');
  await other.logged(/Shutting down/);
  const { task_id, status } = (await held[0].answer).structuredContent.proxy_task;
  assert.deepEqual([task_id, status], [held[0].id, 'working']);
  assert.match((await asked).structuredContent.error, new RegExp(`'${held[1].id}' is still working`));
  assert.deepEqual((await waiting).structuredContent.triggers, [{ type: 'timeout' }]);
  upstream.calls.at(-1).reply.result({ content: [{ type: 'text', text: 'did slow' }] });
  assert.equal((await running).result.content[0].text, 'did slow');
  await other.stop();
  for (const { id } of held.slice(1)) await home.admin.approve(id);
  for (const { answer } of held.slice(1)) assert.equal((await answer).content[0].text, 'did delete_user', 'what others hold or relay goes on');
});

test('without replica.address nothing is relayed, and what another process has is not found', options, async (t) => {
  const url = database();
  const { g, h } = await relaying(t, upstream, url, ['g', 'h'], { ...SETTINGS, address: false });
  const atG = await connectedRaw(t, g.url, { token: 'the-owner', capabilities: ASKABLE });
  const atH = through(t, atG, h);
  const { taskId } = await atG.createTask('book_dinner', { i: 3 });
  await g.admin.approve(taskId);
  const asked = await until(async () => (await atG.result('tasks/get', { taskId }))._meta?.[PENDING]?.[0], 'the question at g');
  const answer = await atH.call('tasks/get', { taskId, _meta: { [RESPONSE]: { elicitationId: asked.elicitationId ?? asked.id, action: 'accept', content: { partySize: 3 } } } });
  assert.ok(answer.error, JSON.stringify(answer));
  assert.equal(await relayed(h), 0);
  await atG.call('tasks/get', { taskId, _meta: { [RESPONSE]: { elicitationId: asked.elicitationId ?? asked.id, action: 'accept', content: { partySize: 4 } } } });
  assert.deepEqual((await responseTo(upstream, 'e-3')).result.content, { partySize: 4 });
});
