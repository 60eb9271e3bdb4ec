// The servers' questions in approved calls over the bridges, and tasks of the server's own there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asks, elicit, PARTY, SAMPLE, sample } from './lib/asking.mjs';
import { workflow } from './lib/gateway.mjs';
import { modernServer, PREFIX, TASKS_EXTENSION } from './lib/modern.mjs';
import { modernClient, WITH_TASKS } from './lib/modern_client.mjs';
import { answerOf, complete, taskMaker } from './lib/modern_upstream.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const OWNER = { authorization: 'Bearer owner' };
const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const TASK_CLIENT = { ...ALL, ...WITH_TASKS };
const approving = { rules: [['delete_*', 'approve']], approval: workflow('10m') };
const accept = (content = { partySize: 4 }) => ({ action: 'accept', content });

// ---- modern client, legacy server ----

/** A legacy-only server with a tool that needs approval, and modern clients that are bridged to it. */
async function modernStage(t, { upstream = {}, ...options } = {}) {
  const staged = await scene(t, { source: { bridge: 'modern' }, ...approving, upstream: { tools: [tool('delete_user'), tool('read')], ...upstream }, ...options });
  return { ...staged, modern: (more) => modernClient(t, staged.gateway.url, { capabilities: TASK_CLIENT, headers: OWNER, ...more }) };
}

/** The task of an approved call, once it has this status. */
const task = (client, taskId, status) => until(async () => {
  const shown = await client.get(taskId);
  return shown.status === status && shown;
}, `the status ${status}`);

async function approved({ modern, admin }, options) {
  const client = modern(options);
  const { taskId } = await client.create('delete_user', { id: 7 });
  await admin.approve(taskId);
  return { client, taskId };
}

test('an approved call of a modern client: a legacy server is told what the client can be asked, and asks it in its task', async (t) => {
  const questions = [elicit('q1'), sample('q2'), { id: 3, method: 'roots/list' }];
  const stage = await modernStage(t, { upstream: { handlers: { 'tools/call': asks(...questions) } } });
  const { client, taskId } = await approved(stage);
  const answers = [accept(), { role: 'assistant', content: { type: 'text', text: 't' }, model: 'm' }, { roots: [] }];
  const asked = [];
  for (const answer of answers) {
    const { inputRequests } = await task(client, taskId, 'input_required');
    const [[key, request]] = Object.entries(inputRequests);
    asked.push(request);
    await client.update(taskId, { [key]: answer, unknown: {} });
    await client.update(taskId, { [key]: { action: 'decline' } });
  }
  assert.deepEqual(asked, [{ method: 'elicitation/create', params: PARTY }, { method: 'sampling/createMessage', params: SAMPLE }, { method: 'roots/list' }]);
  const { result } = await task(client, taskId, 'completed');
  assert.deepEqual([result.resultType, result.structuredContent.answers], ['complete', answers]);
  const { upstream } = stage;
  assert.equal(upstream.calls.length, 1);
  const session = upstream.calls[0].headers['mcp-session-id'];
  const opened = upstream.of('initialize').filter((r) => r.rpc.params.clientInfo.name === 'modern-client');
  assert.deepEqual(opened.at(-1).rpc.params.capabilities, ALL);
  for (const answer of upstream.requests.filter((r) => r.rpc?.result)) assert.deepEqual([answer.headers['mcp-session-id'], answer.headers.authorization], [session, OWNER.authorization]);
  await upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === session);
});

test('an approved call of a modern client: several questions at once, on the stream of the session as well; one is withdrawn', async (t) => {
  const both = async ({ upstream, reply, id }) => {
    const stream = reply.sse();
    stream.event({ jsonrpc: '2.0', ...elicit('a') });
    [...upstream.getStreams].at(-1).event({ jsonrpc: '2.0', ...sample('b') }); // of this call's session
    stream.event({ jsonrpc: '2.0', ...elicit('c') });
    const of = async (name) => (await upstream.received((r) => r.rpc?.id === name && !r.rpc.method)).rpc.result;
    const first = await of('a');
    stream.event({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'c' } });
    stream.event({ jsonrpc: '2.0', id, result: { content: [], structuredContent: [first, await of('b')] } });
    stream.end();
  };
  const stage = await modernStage(t, { upstream: { handlers: { 'tools/call': both } } });
  const { client, taskId } = await approved(stage);
  const { inputRequests } = await until(async () => {
    const shown = await client.get(taskId);
    return Object.keys(shown.inputRequests ?? {}).length === 3 && shown;
  }, 'three questions');
  const keyOf = (method) => Object.keys(inputRequests).filter((name) => inputRequests[name].method === method);
  const [a] = keyOf('elicitation/create');
  const [b] = keyOf('sampling/createMessage');
  await client.update(taskId, { [a]: accept() });
  await until(async () => Object.keys((await client.get(taskId)).inputRequests ?? {}).join() === b, 'what is still asked');
  await client.update(taskId, { [b]: { model: 'm' } });
  assert.deepEqual((await task(client, taskId, 'completed')).result.structuredContent, [accept(), { model: 'm' }]);
});

test('an approved call of a modern client: answers that wait for people count among what waits of their owner', async (t) => {
  const three = async ({ upstream, reply, id }) => {
    const stream = reply.sse();
    for (const name of ['a', 'b', 'c']) stream.event({ jsonrpc: '2.0', ...elicit(name) });
    stream.event({ jsonrpc: '2.0', id, result: { content: [], structuredContent: (await upstream.received((r) => r.rpc?.id === 'c' && !r.rpc.method)).rpc.result } });
    stream.end();
  };
  const limits = { approval: workflow('10m', { rounds: 'reapprove' }), config: { limits: { pending_per_principal: 2 } } };
  const stage = await modernStage(t, { ...limits, upstream: { handlers: { 'tools/call': three } } });
  const { client, taskId } = await approved(stage);
  const keys = await until(async () => {
    const asked = Object.keys((await client.get(taskId)).inputRequests ?? {});
    return asked.length === 3 && asked;
  }, 'three questions');
  for (const key of keys) await client.update(taskId, { [key]: accept() });
  assert.deepEqual((await task(client, taskId, 'completed')).result.structuredContent, { action: 'cancel' }, 'the third has no room');
  await until(async () => (await stage.admin.list({ state: 'cancelled' })).tasks.length === 2, 'the two that waited to end with their call');
});

test('an approved call of a modern client: what it did not declare is refused to the server, what it does not answer is cancelled, and its cancel goes up', async (t) => {
  const stage = await modernStage(t, { upstream: { handlers: { 'tools/call': asks(elicit('q1'), sample('q2')) } }, config: { pseudo_tasks: { elicitation_timeout: '500ms' } } });
  const { client, taskId } = await approved(stage, { capabilities: { elicitation: {}, ...WITH_TASKS } });
  await task(client, taskId, 'input_required');
  const { result } = await task(client, taskId, 'completed');
  const [first, second] = result.structuredContent.answers;
  assert.deepEqual([first, second.error.code], [{ action: 'cancel' }, -32601]);
  const other = await modernStage(t, { upstream: { handlers: { 'tools/call': asks(elicit('q1')) } } });
  const asked = await approved(other);
  await task(asked.client, asked.taskId, 'input_required');
  await asked.client.cancel(asked.taskId);
  await other.upstream.received('notifications/cancelled');
  assert.equal((await asked.client.get(asked.taskId)).status, 'cancelled');
});

test('an approved call of a modern client without tasks: a question answers the held call, and its repeat goes on', async (t) => {
  const { modern, admin, upstream } = await modernStage(t, { upstream: { handlers: { 'tools/call': asks(elicit('q1')) } } });
  const client = modern({ capabilities: ALL });
  const call = { name: 'delete_user', arguments: { id: 7 } };
  const held = client.result('tools/call', call);
  await admin.approve((await admin.pending()).id);
  const { inputRequests, requestState } = await held;
  const [key] = Object.keys(inputRequests);
  const done = await client.result('tools/call', { ...call, requestState, inputResponses: { [key]: accept() } });
  assert.deepEqual(done.structuredContent.answers, [accept()]);
  assert.equal(upstream.calls.length, 1);
});

test('a task of a legacy server\'s own that asks: its questions are those of the gateway\'s task', async (t) => {
  const handlers = {
    'tasks/get': ({ upstream, reply, params }) => reply.result({ ...upstream.tasks.get(params.taskId).task, status: 'input_required' }),
    'tasks/result': asks(elicit('q1')),
  };
  const { modern, upstream } = await modernStage(t, { upstream: { capabilities: { tools: {}, tasks: TASKS }, tools: [tool('long', { support: 'required' })], handlers } });
  const client = modern();
  const { taskId } = await client.create('long', { n: 1 });
  const { inputRequests } = await task(client, taskId, 'input_required');
  await client.update(taskId, { [Object.keys(inputRequests)[0]]: accept() });
  assert.deepEqual((await task(client, taskId, 'completed')).result.structuredContent.answers, [accept()]);
  assert.equal(upstream.of('tasks/result').length, 1);
});

test("the result of a legacy server's own task is tied to no task in the modern era", async (t) => {
  const RELATED = `${PREFIX}related-task`;
  const handlers = { 'tasks/get': ({ upstream, reply, params }) => reply.result({ ...upstream.tasks.get(params.taskId).task, status: 'completed' }), 'tasks/result': ({ reply, params }) => reply.result({ content: [], _meta: { [RELATED]: { taskId: params.taskId }, 'example.org/kept': 1 } }) };
  const { modern, admin } = await modernStage(t, { upstream: { capabilities: { tools: {}, tasks: TASKS }, tools: [tool('delete_user', { support: 'required' })], handlers } });
  const client = modern();
  const { taskId } = await client.create('delete_user', { n: 1 });
  await admin.approve(taskId);
  assert.deepEqual((await task(client, taskId, 'completed')).result._meta, { 'example.org/kept': 1 });
  const plain = modern({ capabilities: ALL });
  const held = plain.result('tools/call', { name: 'delete_user', arguments: { n: 2 } });
  await admin.approve((await admin.pending()).id);
  assert.equal((await held)._meta[RELATED], undefined);
});

// ---- legacy client, modern server ----

/** A modern-only server with a tool that needs approval, and legacy clients that are bridged to it. */
const legacyStage = (t, { upstream = {}, ...options } = {}) =>
  scene(t, { source: { era: 'modern' }, ...approving, upstream: modernServer({ tools: [tool('delete_user'), tool('read')], ...upstream }), ...options });

/** A modern server that asks `questions`, round by round. */
function asking(...questions) {
  const rounds = [];
  return {
    rounds,
    'tools/call': ({ reply, params }) => {
      rounds.push({ inputResponses: params.inputResponses, requestState: params.requestState, arguments: params.arguments });
      const round = rounds.length - 1;
      if (round < questions.length) reply.result(complete({ resultType: 'input_required', inputRequests: questions[round], requestState: `up-${round}` }));
      else reply.result(answerOf(params));
    },
  };
}

const form = { method: 'elicitation/create', params: { mode: 'form', ...PARTY } };
const LEGACY = { elicitation: {}, sampling: {}, tasks: {} };

test('an approved call of a legacy client: a modern server asks it in tasks/result, and its responses go up as a round', async (t) => {
  const server = asking({ a: form, b: { method: 'sampling/createMessage', params: SAMPLE } }, { a: { method: 'elicitation/create', params: { mode: 'url', url: 'https://a.example/', message: 'open' } } });
  const { connect, admin } = await legacyStage(t, { upstream: { handlers: { 'tools/call': server['tools/call'] } } });
  const client = await connect({ token: 'mine', capabilities: { ...LEGACY, elicitation: { form: {}, url: {} } } });
  const { task: made } = await client.createTask('delete_user', { id: 7 });
  await admin.approve(made.taskId);
  const stream = await client.stream('tasks/result', { taskId: made.taskId });
  const asked = (method, nth = 0) => until(() => stream.events.map(({ json }) => json).filter((m) => m?.method === method)[nth], method);
  const elicitation = await asked('elicitation/create');
  const sampling = await asked('sampling/createMessage');
  assert.deepEqual([elicitation.params.message, sampling.params.messages], [PARTY.message, SAMPLE.messages]);
  assert.equal((await client.result('tasks/get', { taskId: made.taskId })).status, 'input_required');
  const model = { role: 'assistant', content: { type: 'text', text: 't' }, model: 'm' };
  assert.equal((await client.post({ jsonrpc: '2.0', id: elicitation.id, result: accept() })).status, 202);
  assert.equal((await client.post({ jsonrpc: '2.0', id: sampling.id, result: model })).status, 202);
  const link = await asked('elicitation/create', 1);
  assert.match(link.params.elicitationId, /^[0-9a-f-]{36}$/);
  assert.equal((await client.post({ jsonrpc: '2.0', id: link.id, result: { action: 'accept' } })).status, 202);
  const { result } = await stream.message((m) => m.id === stream.id);
  assert.deepEqual(result.structuredContent, { tool: 'delete_user', arguments: { id: 7 } });
  assert.deepEqual(server.rounds.slice(1), [
    { inputResponses: { a: accept(), b: model }, requestState: 'up-0', arguments: { id: 7 } },
    { inputResponses: { a: { action: 'accept' } }, requestState: 'up-1', arguments: { id: 7 } },
  ]);
  assert.equal(server.rounds.length, 3);
});

test('an approved call of a legacy client: it answers in tasks/get as well; a refused model or roots end the call', async (t) => {
  const server = asking({ a: form });
  const { connect, admin } = await legacyStage(t, { upstream: { handlers: { 'tools/call': server['tools/call'] } } });
  const client = await connect({ token: 'mine', capabilities: LEGACY });
  const { task: made } = await client.createTask('delete_user');
  await admin.approve(made.taskId);
  const shown = await until(async () => {
    const now = await client.result('tasks/get', { taskId: made.taskId });
    return JSON.stringify(now).includes('elicitationId') && now;
  }, 'the question');
  const [, elicitationId] = /"elicitationId":"([^"]+)"/.exec(JSON.stringify(shown));
  await client.result('tasks/get', { taskId: made.taskId, _meta: { [`${PREFIX}elicitation-response`]: { elicitationId, ...accept() } } });
  await client.result('tasks/result', { taskId: made.taskId });
  assert.deepEqual(server.rounds[1].inputResponses, { a: accept() });

  for (const [request, refusal] of [[{ method: 'sampling/createMessage', params: SAMPLE }, { code: -1, message: 'no' }], [{ method: 'roots/list' }, { code: -32601, message: 'no' }]]) {
    const other = asking({ a: request });
    const stage = await legacyStage(t, { upstream: { handlers: { 'tools/call': other['tools/call'] } } });
    const asked = await stage.connect({ capabilities: { ...LEGACY, roots: {} } });
    const { task: second } = await asked.createTask('delete_user');
    await stage.admin.approve(second.taskId);
    const stream = await asked.stream('tasks/result', { taskId: second.taskId });
    const { id } = await stream.message((m) => m.method === request.method);
    await asked.post({ jsonrpc: '2.0', id, error: refusal });
    const { error } = await stream.message((m) => m.id === stream.id);
    assert.equal(error.data.error_type, 'upstream_error');
    assert.equal(other.rounds.length, 1, 'nothing is sent again');
  }
});

test('an approved call of a legacy client: its roots are asked for if it declares them, else the call ends', async (t) => {
  for (const declares of [true, false]) {
    const server = asking({ a: { method: 'roots/list' } });
    const { connect, admin } = await legacyStage(t, { upstream: { handlers: { 'tools/call': server['tools/call'] } } });
    const client = await connect({ token: 'mine', capabilities: { ...LEGACY, ...(declares ? { roots: { listChanged: true } } : {}) } });
    const { task: made } = await client.createTask('delete_user');
    await admin.approve(made.taskId);
    const stream = await client.stream('tasks/result', { taskId: made.taskId });
    const roots = { roots: [{ uri: 'file:///a' }] };
    if (declares) await client.post({ jsonrpc: '2.0', id: (await stream.message((m) => m.method === 'roots/list')).id, result: roots });
    const answer = await stream.message((m) => m.id === stream.id);
    assert.equal(answer.error === undefined, declares);
    assert.deepEqual(server.rounds.slice(1).map(({ inputResponses }) => inputResponses), declares ? [{ a: roots }] : []);
  }
});

test('two calls of a legacy client that ask under one key at once: each is asked, and has its own answer', async (t) => {
  const handlers = { 'tools/call': ({ reply, params }) => reply.result(params.inputResponses ? answerOf({ ...params, arguments: { ...params.arguments, ...params.inputResponses.a.content } }) : complete({ resultType: 'input_required', inputRequests: { a: form } })) };
  const { connect, admin } = await legacyStage(t, { upstream: { handlers } });
  const client = await connect({ token: 'mine', capabilities: LEGACY });
  const streams = [];
  for (const id of [1, 2]) {
    const { taskId } = (await client.createTask('delete_user', { id })).task;
    await admin.approve(taskId);
    streams.push(await client.stream('tasks/result', { taskId }));
  }
  const asked = await Promise.all(streams.map((stream) => stream.message((m) => m.method === 'elicitation/create')));
  for (const [at, { id }] of asked.entries()) assert.equal((await client.post({ jsonrpc: '2.0', id, result: accept({ partySize: at + 3 }) })).status, 202);
  for (const [at, stream] of streams.entries()) assert.deepEqual((await stream.message((m) => m.id === stream.id)).result.structuredContent.arguments, { id: at + 1, partySize: at + 3 });
});

test('a call of a legacy client whose questions have no room among those that are open ends, as one whose questions are not answered', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`q${n}`, form]));
  const handlers = { 'tools/call': ({ reply }) => reply.result(complete({ resultType: 'input_required', inputRequests: many })) };
  const pseudo = (timeout) => ({ config: { limits: { pending_per_principal: 1000, pending_total: 1000 }, pseudo_tasks: { elicitation_timeout: timeout } } });
  const { connect, gateway, admin } = await legacyStage(t, { ...pseudo('10m'), upstream: { handlers } });
  const filler = modernClient(t, gateway.url, { capabilities: TASK_CLIENT, headers: OWNER });
  const ids = await Promise.all(Array.from({ length: 100 }, (_, n) => filler.create('delete_user', { n }).then(({ taskId }) => taskId)));
  await Promise.all(ids.map((id) => admin.approve(id)));
  for (const id of ids) await task(filler, id, 'input_required');
  gateway.writeConfig(pseudo('300ms'));
  gateway.hangUp();
  await gateway.logged(/^Configuration reloaded$/);
  const client = await connect({ token: 'mine', capabilities: LEGACY });
  const { taskId } = (await client.createTask('delete_user')).task;
  await admin.approve(taskId);
  assert.equal((await client.error('tasks/result', { taskId })).data.error_type, 'upstream_timeout');
  await gateway.logged(/too many are open/);
});

test('an approved call of a legacy client that does not answer: the form is cancelled, and the call goes on', async (t) => {
  const server = asking({ a: form });
  const { connect, admin } = await legacyStage(t, { upstream: { handlers: { 'tools/call': server['tools/call'] } }, config: { pseudo_tasks: { elicitation_timeout: '400ms' } } });
  const client = await connect({ capabilities: LEGACY });
  const { task: made } = await client.createTask('delete_user');
  await admin.approve(made.taskId);
  await client.result('tasks/result', { taskId: made.taskId });
  assert.deepEqual(server.rounds[1].inputResponses, { a: { action: 'cancel' } });
});

test('a held call of a legacy client without tasks: the question comes on its stream', async (t) => {
  const server = asking({ a: form });
  const { connect, admin } = await legacyStage(t, { upstream: { handlers: { 'tools/call': server['tools/call'] } } });
  const client = await connect({ capabilities: { elicitation: {} }, protocol: '2025-06-18' });
  const held = client.stream('tools/call', { name: 'delete_user' });
  await admin.approve((await admin.pending()).id);
  const stream = await held;
  const { id } = await stream.message((m) => m.method === 'elicitation/create');
  await client.post({ jsonrpc: '2.0', id, result: accept() });
  await stream.message((m) => m.id === stream.id && m.result);
  assert.deepEqual(server.rounds[1].inputResponses, { a: accept() });
});

test('hostile: what a modern server asks in a task is answered by its own client alone, once, and by an object', async (t) => {
  const server = asking({ a: form });
  const { connect, raw, admin } = await legacyStage(t, { upstream: { handlers: { 'tools/call': server['tools/call'] } } });
  const client = await connect({ token: 'mine', capabilities: LEGACY });
  const other = await connect({ token: 'theirs', capabilities: LEGACY });
  const { task: made } = await client.createTask('delete_user');
  await admin.approve(made.taskId);
  const stream = await client.stream('tasks/result', { taskId: made.taskId });
  const { id } = await stream.message((m) => m.method === 'elicitation/create');
  assert.match(id, /^tg:/);
  const respond = async (by, response) => (await by.post({ jsonrpc: '2.0', id, ...response })).status;
  const thief = raw({ token: 'theirs' });
  thief.session = client.session;
  for (const by of [other, thief]) assert.equal(await respond(by, { result: accept() }), 400);
  assert.equal(await respond(client, { result: 'text' }), 400);
  assert.equal(server.rounds.length, 1);
  assert.equal(await respond(client, { result: accept() }), 202);
  assert.equal(await respond(client, { result: { action: 'decline' } }), 400);
  await stream.message((m) => m.id === stream.id);
  assert.deepEqual(server.rounds[1].inputResponses, { a: accept() });
});

test('several workers: a question finds its task and its answer the execution, on whatever worker they are', async (t) => {
  const config = { workers: 4 };
  const legacy = await modernStage(t, { config, upstream: { handlers: { 'tools/call': (call) => asks(elicit(`q${call.params.arguments.id}`))(call) } } });
  await Promise.all([1, 2, 3, 4, 5].map(async (id) => {
    const client = legacy.modern();
    const { taskId } = await client.create('delete_user', { id });
    await legacy.admin.approve(taskId);
    const { inputRequests } = await task(legacy.modern(), taskId, 'input_required');
    await legacy.modern().update(taskId, { [Object.keys(inputRequests)[0]]: accept({ partySize: id }) });
    assert.deepEqual((await task(client, taskId, 'completed')).result.structuredContent.answers, [accept({ partySize: id })]);
  }));
  const handler = ({ reply, params }) => reply.result(params.inputResponses ? complete({ content: [], structuredContent: params.inputResponses.a }) : complete({ resultType: 'input_required', inputRequests: { a: form }, requestState: 's' }));
  const modern = await legacyStage(t, { config, upstream: { handlers: { 'tools/call': handler } } });
  await Promise.all([1, 2, 3, 4, 5].map(async (partySize) => {
    const client = await modern.connect({ token: `t${partySize}`, capabilities: LEGACY });
    const { task: made } = await client.createTask('delete_user', { partySize });
    await modern.admin.approve(made.taskId);
    const stream = await client.stream('tasks/result', { taskId: made.taskId });
    const { id } = await stream.message((m) => m.method === 'elicitation/create');
    assert.equal((await client.post({ jsonrpc: '2.0', id, result: accept({ partySize }) })).status, 202);
    assert.deepEqual((await stream.message((m) => m.id === stream.id)).result.structuredContent, accept({ partySize }));
  }));
});

// ---- tasks of a modern server's own ----

const makesTasks = { capabilities: { tools: {}, extensions: { [TASKS_EXTENSION]: {} } } };

test('a legacy client with `task`: the extension is declared on that call alone, and the server\'s task is followed under an id of the gateway\'s', async (t) => {
  const maker = taskMaker();
  const plain = ({ reply, params }) => reply.result(answerOf(params));
  const makes = (call) => (call.params._meta[`${PREFIX}clientCapabilities`].extensions ? maker.handlers['tools/call'](call) : plain(call));
  const { connect, upstream } = await legacyStage(t, { upstream: { ...makesTasks, handlers: { ...maker.handlers, 'tools/call': makes } } });
  const client = await connect({ token: 'mine', capabilities: LEGACY });
  assert.equal((await client.result('tools/list')).tools.find(({ name }) => name === 'read').execution.taskSupport, 'optional');
  assert.equal((await client.result('tools/call', { name: 'read' })).structuredContent.tool, 'read');
  const news = await client.listen();
  const told = (status) => news.message(({ method, params }) => method === 'notifications/tasks/status' && params.status === status && params.taskId === taskId);
  const created = await client.createTask('read', { n: 1 });
  const { taskId } = created.task;
  assert.match(taskId, /^tg_/);
  assert.equal(created.taskId, taskId);
  const own = await until(() => maker.tasks.get('up-1'), 'the server\'s task');
  assert.equal((await client.result('tasks/get', { taskId })).status, 'working');
  Object.assign(own, { status: 'input_required', inputRequests: { k: form } });
  const stream = await client.stream('tasks/result', { taskId });
  const { id } = await stream.message((m) => m.method === 'elicitation/create');
  assert.equal((await client.result('tasks/get', { taskId })).status, 'input_required');
  await told('input_required'); // the gateway polls the server's task
  await client.post({ jsonrpc: '2.0', id, result: accept() });
  await until(() => own.updates.length === 1, 'the update');
  assert.deepEqual(own.updates, [{ k: accept() }]);
  delete own.inputRequests;
  Object.assign(own, { status: 'completed', result: complete({ content: [{ type: 'text', text: 'ended' }] }) });
  const { result } = await stream.message((m) => m.id === stream.id);
  assert.equal(result.content[0].text, 'ended');
  await told('completed');
  assert.deepEqual([result.resultType, Object.keys(result._meta)], [undefined, [`${PREFIX}related-task`]]);
  assert.ok((await client.result('tasks/list')).tasks.some((t) => t.taskId === taskId));
  assert.equal(upstream.of('tasks/list').length, 0);
  const declared = upstream.calls.map(({ rpc }) => rpc.params._meta[`${PREFIX}clientCapabilities`]);
  assert.deepEqual(declared, [{ elicitation: { form: {} }, sampling: {} }, { elicitation: { form: {} }, sampling: {}, extensions: { [TASKS_EXTENSION]: {} } }]);
  assert.equal(upstream.calls[1].rpc.params.task, undefined);

  const second = (await client.createTask('read', { n: 2 })).task.taskId;
  await until(() => maker.tasks.get('up-2'), 'the second task');
  assert.equal((await client.result('tasks/cancel', { taskId: second })).status, 'cancelled');
  await until(() => maker.tasks.get('up-2').isCancelled, 'the cancel upstream');
  assert.equal((await client.error('tasks/get', { taskId: 'up-1' })).code, -32602);
});

test('a legacy client with `task`: a server that answers at once makes a task that has ended; one without the extension forbids it', async (t) => {
  const { connect } = await legacyStage(t, { upstream: makesTasks });
  const client = await connect({ capabilities: LEGACY });
  const { taskId } = (await client.createTask('read')).task;
  assert.equal((await client.result('tasks/result', { taskId })).content[0].text, 'did read');
  assert.equal((await client.result('tasks/get', { taskId })).status, 'completed');
  const without = await legacyStage(t);
  const other = await without.connect({ capabilities: LEGACY });
  assert.equal((await other.error('tools/call', { name: 'read', task: { ttl: 60_000 } })).code, -32010);
  assert.deepEqual(without.upstream.calls.length, 0);
});
