// Calls that no rule holds: by default a plain client gets what the server answers, and no task in its place.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asks, elicit, responseTo } from './lib/asking.mjs';
import { PLAIN, promoted, stage } from './lib/promotion.mjs';
import { until } from './lib/wait.mjs';

const TASKS_CLIENT = { capabilities: { tasks: {} } };
const SIX = ['list_tasks', 'get_task', 'get_task_result', 'cancel_task', 'await_activity', 'respond_to_elicitation'];
const slow = (n) => ({ name: 'slow', arguments: { n } });
const quick = (more = {}) => ({ config: { pseudo_tools: { wait: '300ms', ...more } } });
const odd = (id) => `{ "result" : {"content":[{"type":"text","text":"\\u0068i"}] , "x":1.50} ,"id":${id}, "jsonrpc":"2.0" }\n`;

test('a slow call stays one past its wait and the silence allowed to others, and its answer is the server’s byte for byte', async (t) => {
  const env = { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1', THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '4' };
  const { upstream, admin, connect, held } = await stage(t, { config: { ...quick({ only: 'all' }).config, clients: [{ match: 'patient', wait: '60s' }] }, env });
  const agent = await connect(PLAIN), other = await connect(TASKS_CLIENT), patient = await connect({ ...PLAIN, name: 'patient' });
  // A question that is refused, or has been answered, keeps no limit away.
  const keep = upstream.handlers['tools/call'];
  upstream.handlers['tools/call'] = (call) => {
    const question = { 4: elicit('bad', { message: 5 }), 5: elicit('good') }[call.params.arguments.n];
    if (question) call.reply.sse().event({ jsonrpc: '2.0', ...question });
    else keep(call);
  };
  const asked = [4, 5].map((n) => patient.error('tools/call', slow(n), { deadline: 15_000 }));
  const own = async (name, args) => (await patient.result('tools/call', { name, arguments: args })).structuredContent;
  const [{ requestId }] = await until(async () => { const { elicitations: [...open] } = await own('get_elicitations', {}); return open.length > 0 && open; }, 'the question');
  await own('respond_to_elicitation', { request_id: requestId, action: 'decline' });
  assert.equal((await responseTo(upstream, 'bad')).error.code, -32602);
  const answer = agent.send('tools/call', slow(1)), silent = agent.error('tools/call', slow(2));
  await upstream.received('tools/call', 4);
  const limited = await other.error('tools/call', slow(3)); // its limit ends after the wait of the two before
  assert.deepEqual([limited.code, limited.data.error_type], [-32001, 'upstream_timeout']);
  const first = held.find(({ params }) => params.arguments.n === 1);
  first.reply.http(200, { 'content-type': 'application/json' }, odd(first.id));
  const { text, id } = await answer;
  assert.equal(text, odd(id));
  for (const { code } of await Promise.all([silent, ...asked])) assert.equal(code, -32001);
  assert.deepEqual((await admin.list()).tasks, []);
});

test('a server asks what this client cannot be asked: the call is a task after its wait, whenever the question comes', async (t) => {
  const ask = asks(elicit('e-1')), other = [];
  const { upstream, admin, connect } = await stage(t, { ...quick(), upstream: { handlers: { 'tools/call': (call) => (call.params.arguments.n === 1 ? ask(call) : other.push(call)) } } });
  const agent = await connect(PLAIN);
  const answer = agent.send('tools/call', slow(2));
  await until(() => other.length > 0, 'a call that waits for nobody');
  const { id, block } = promoted(await agent.result('tools/call', slow(1)));
  assert.equal((await admin.list()).tasks.length, 1, 'the question of one call makes no task of another');
  other[0].reply.http(200, { 'content-type': 'application/json' }, odd(other[0].id));
  const { text, id: own } = await answer;
  assert.equal(text, odd(own));
  assert.equal(block.pending_on_server.elicitations_for_server.length, 1);
  const [{ requestId }] = block.pending_on_server.elicitations_for_server;
  const shown = JSON.stringify(await agent.result('tools/call', { name: 'get_task', arguments: { task_id: id } }));
  assert.ok(shown.includes(requestId), shown);
  await agent.result('tools/call', { name: 'respond_to_elicitation', arguments: { request_id: requestId, action: 'decline' } });
  assert.deepEqual((await responseTo(upstream, 'e-1')).result, { action: 'decline' });
  await admin.inState(id, 'completed');
});

for (const more of [{ promote: 'never' }, { mode: 'never' }]) {
  test(`${JSON.stringify(more)}: a client that closes takes the call with it`, async (t) => {
    const { upstream, admin, connect } = await stage(t, quick(more));
    const agent = await connect(PLAIN);
    agent.send('tools/call', slow(1)).catch(() => {});
    const call = await upstream.received('tools/call');
    agent.close();
    await call.gone;
    assert.deepEqual([call.left, (await admin.list()).tasks], [true, []]);
  });
}

test('six tools are listed in at most 4.5 KB, and sixteen with `only: all`; execute_tool makes a task at its timeout_ms', async (t) => {
  const { connect } = await stage(t, quick());
  const { tools } = await (await connect(PLAIN)).result('tools/list');
  const own = tools.filter(({ name }) => !['slow', 'read'].includes(name));
  assert.deepEqual(own.map(({ name }) => name), SIX);
  const bytes = own.reduce((sum, entry) => sum + Buffer.byteLength(JSON.stringify(entry)) + 1, 0);
  assert.ok(bytes <= 4608, `${bytes} bytes`);
  const whole = await stage(t, quick({ only: 'all' }));
  const agent = await whole.connect(PLAIN);
  assert.equal((await agent.result('tools/list')).tools.length, 18);
  promoted(await agent.result('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'slow', args: {}, timeout_ms: 200 } }));
});

test('notifications/cancelled ends the call at the server: open, left before, or left after it', async (t) => {
  const { upstream, admin, connect, held } = await stage(t, { ...quick(), config: { workers: 2, pseudo_tools: { wait: '30s' } } });
  const [agent, other] = [await connect(PLAIN), await connect({ ...PLAIN, keepAlive: false })];
  const leave = async (n) => {
    agent.send('tools/call', slow(n)).catch(() => {});
    return until(() => held.find(({ params }) => params.arguments.n === n), `call ${n}`);
  };
  const cancel = async (session, { id }) => {
    other.session = session;
    assert.equal((await other.notify('notifications/cancelled', { requestId: id, reason: 'given up' })).status, 202);
  };
  const told = () => upstream.of('notifications/cancelled').map((r) => r.rpc.params.requestId);
  const stranger = other.session;
  // Its client closes the connection first (go-sdk, mcp-go, rmcp).
  const left = await leave(1);
  agent.close();
  const task = await until(async () => (await admin.list()).tasks[0], 'the task');
  await cancel(stranger, left); // another session's request, which the server may know
  await until(() => told().length === 1, 'the stranger’s');
  await cancel(agent.session, left);
  await until(() => told().length === 2, 'the notification');
  await left.recorded.gone;
  assert.equal((await admin.inState(task.id, 'cancelled', 'completed', 'failed')).state, 'cancelled');
  // Its client knows of that end: the same call made again is a new one.
  other.session = agent.session;
  const anew = other.result('tools/call', slow(1));
  const { reply } = await until(() => held.filter(({ params }) => params.arguments.n === 1)[1], 'the call made anew');
  reply.result({ content: [{ type: 'text', text: 'anew' }] });
  assert.deepEqual((await anew).content, [{ type: 'text', text: 'anew' }]);
  // It sends the notification first, and leaves the call that the server goes on with.
  const open = await leave(2);
  await cancel(agent.session, open);
  await until(() => told().length === 3, 'the notification');
  // The worker of the call has the cancellation in its queue: each request is on a connection of its own, so one is that worker's.
  for (let i = 0; i < 16; i++) await other.send('ping');
  agent.close();
  await open.recorded.gone;
  assert.deepEqual(told(), [left.id, left.id, open.id]);
  assert.deepEqual((await admin.list()).tasks.map(({ id }) => id), [task.id]);
});

test('a tasks client of the same token joins no call that another client left: its own goes to the server', async (t) => {
  const { upstream, admin, connect, held } = await stage(t, { config: { pseudo_tools: { wait: '30s' } } });
  const agent = await connect({ ...PLAIN, token: 'A' }), tasks = await connect({ ...TASKS_CLIENT, token: 'A' });
  agent.send('tools/call', slow(1)).catch(() => {});
  await upstream.received('tools/call');
  agent.close();
  const task = await until(async () => (await admin.list()).tasks[0], 'the task of the call that was left');
  const own = tasks.send('tools/call', slow(1));
  await upstream.received('tools/call', 2);
  held[1].reply.http(200, { 'content-type': 'application/json' }, odd(held[1].id));
  const { text, id } = await own;
  assert.equal(text, odd(id));
  const same = (await connect({ ...PLAIN, token: 'A' })).result('tools/call', slow(1));
  held[0].reply.result({ content: [{ type: 'text', text: 'the first' }] });
  assert.deepEqual((await same).content.map((block) => block.text).slice(0, 1), ['the first']);
  assert.deepEqual((await admin.list()).tasks.map(({ id: one }) => one), [task.id]);
  assert.equal(upstream.calls.length, 2);
});

test('without sessions notifications/cancelled ends the one call of the token that has its id, and none where two have it', async (t) => {
  const { upstream, admin, connect, held } = await stage(t, { upstream: { sessions: false }, config: { workers: 2, pseudo_tools: { wait: '30s' } } });
  const client = (token) => connect({ ...PLAIN, token });
  const leave = async (token, n, id) => {
    const agent = await client(token);
    agent.send('tools/call', slow(n), { id }).catch(() => {});
    await until(() => held.some(({ params }) => params.arguments.n === n), `call ${n}`);
    agent.close();
    return until(async () => (await admin.list()).tasks.find((task) => task.arguments.n === n), `the task of call ${n}`);
  };
  const cancel = async (token, requestId) => {
    const { length } = upstream.of('notifications/cancelled');
    assert.equal((await (await client(token)).notify('notifications/cancelled', { requestId })).status, 202);
    return (await upstream.received('notifications/cancelled', length + 1)).rpc.params;
  };
  const task = await leave('A', 1, 7);
  assert.deepEqual(await cancel('B', 7), { requestId: 7 }); // as it came
  assert.equal((await admin.task(task.id)).state, 'executing');
  assert.deepEqual(await cancel('A', 7), { requestId: 7, reason: 'cancelled' });
  assert.equal((await admin.inState(task.id, 'cancelled', 'completed', 'failed')).state, 'cancelled');
  const two = [await leave('A', 2, 8), await leave('A', 3, 8)];
  assert.deepEqual(await cancel('A', 8), { requestId: 8 });
  for (const { id } of two) assert.equal((await admin.task(id)).state, 'executing');
});
