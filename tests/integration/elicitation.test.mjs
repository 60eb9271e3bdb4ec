// Questions of upstream while the gateway runs a call: the client that gets them, the way, and the answer that counts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ElicitRequestSchema, CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { asks, elicit, PARTY, responseTo, SAMPLE, sample } from './lib/asking.mjs';
import { collectStream, toolStream } from './lib/client.mjs';
import { workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { startExample, exampleMissing } from './lib/example_server.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const RELATED = 'io.modelcontextprotocol/related-task';
const PENDING = 'io.modelcontextprotocol/pending-elicitations';
const RESPONSE = 'io.modelcontextprotocol/elicitation-response';
const ASKABLE = { tasks: {}, elicitation: {}, sampling: {} };
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

const stage = (t, handler, more = {}) =>
  scene(t, {
    rules: [['book_*', 'approve']],
    approval: workflow('10m'),
    ...more,
    upstream: { tools: [tool('book_dinner')], capabilities: { tools: {}, notifications: { tasks: { status: true } } }, handlers: { 'tools/call': handler }, ...more.upstream },
  });

/** An approved task with a question during its execution. */
async function asking(t, handler, { capabilities = ASKABLE, ...more } = {}) {
  const stageOf = await stage(t, handler, more);
  const client = await stageOf.connect({ capabilities });
  const { taskId } = await client.createTask('book_dinner', { time: '19:00' });
  await stageOf.admin.approve(taskId);
  return { ...stageOf, client, taskId };
}

const open = (client, taskId) =>
  until(async () => {
    const task = await client.result('tasks/get', { taskId });
    return task.status === 'input_required' && task.statusMessage !== 'Awaiting approval' && task;
  }, 'an execution that waits for its client');

const answer = (client, taskId, response, options) => client.call('tasks/get', { taskId, _meta: { [RESPONSE]: response } }, options);

test('a question of upstream stays asked on four workers, of which all would run the call and one does', async (t) => {
  const { admin, upstream, connect } = await stage(t, asks(elicit('e-1')), { config: { workers: 4 } });
  const client = await connect({ capabilities: ASKABLE });
  for (let i = 1; i <= 40; i++) {
    const { taskId } = await client.createTask('book_dinner', { i });
    // Each connection is some worker's, which keeps the credentials that came on it.
    await Promise.all(Array.from({ length: 8 }, () => client.send('tasks/get', { taskId }, { headers: { connection: 'close' } })));
    await admin.approve(taskId);
    await upstream.received('tools/call', i);
    await open(client, taskId);
    const task = await client.result('tasks/get', { taskId });
    assert.equal(task._meta[PENDING]?.length, 1, JSON.stringify(task));
    await client.result('tasks/cancel', { taskId });
  }
  assert.equal(upstream.calls.length, 40);
});

test('while upstream asks, the task is input_required in tasks/get, tasks/list and status notifications, and working again after the answer', async (t) => {
  const { client, admin, connect, upstream } = await stage(t, asks(elicit('e-1'))).then(async (s) => ({ ...s, client: await s.connect({ capabilities: ASKABLE }) }));
  const listening = await client.listen();
  const { taskId } = await client.createTask('book_dinner');
  await admin.approve(taskId);
  const task = await open(client, taskId);
  assert.equal(task.statusMessage, "Waiting for the client's answer");
  const [pending] = task._meta[PENDING];
  assert.match(pending.elicitationId, ULID);
  assert.deepEqual(task._meta, { [RELATED]: { taskId }, [PENDING]: [{ elicitationId: pending.elicitationId, mode: 'form', ...PARTY }] });
  assert.equal((await client.result('tasks/get', { taskId, task: {} })).status, 'input_required', 'the SDK must go and wait for the request');
  assert.deepEqual((await client.result('tasks/list')).tasks.map((x) => x.status), ['input_required']);
  const told = await listening.message((m) => m.method === 'notifications/tasks/status' && m.params._meta?.[PENDING], 'a status notification with the elicitation');
  assert.equal(told.params.status, 'input_required');
  assert.deepEqual(told.params._meta, task._meta);
  assert.equal((await admin.task(taskId)).state, 'executing');
  // Another owner sees nothing of it.
  const other = await connect({ capabilities: ASKABLE });
  assert.equal((await answer(other, taskId, { elicitationId: pending.elicitationId, action: 'accept', content: { partySize: 4 } })).error.code, -32602);
  const after = await answer(client, taskId, { elicitationId: pending.elicitationId, action: 'accept', content: { partySize: 4 } });
  assert.ok(['working', 'completed'].includes(after.result.status), after.result.status);
  assert.equal(after.result._meta[PENDING], undefined);
  assert.deepEqual(await responseTo(upstream, 'e-1'), { jsonrpc: '2.0', id: 'e-1', result: { action: 'accept', content: { partySize: 4 } } });
  assert.equal(upstream.requests.find((r) => r.rpc?.id === 'e-1').headers['mcp-session-id'], client.session);
  await admin.inState(taskId, 'completed');
  assert.deepEqual((await client.result('tasks/result', { taskId })).structuredContent, { answers: [{ action: 'accept', content: { partySize: 4 } }] });
});

for (const [name, response, problem] of [
  ['no object', 'yes', /must be an object/],
  ['no id', { action: 'accept', content: { partySize: 4 } }, /elicitationId/],
  ['an unknown id', { elicitationId: 'elicit-1', action: 'accept', content: { partySize: 4 } }, /no such elicitation/],
  ['no action', { content: { partySize: 4 } }, /action/],
  ['another action', { action: 'agree', content: { partySize: 4 } }, /action/],
  ['nothing that is required', { action: 'accept' }, /partySize is required/],
  ['another type', { action: 'accept', content: { partySize: '4' } }, /partySize must be a number/],
  ['a value out of range', { action: 'accept', content: { partySize: 21 } }, /partySize is out of range/],
  ['content that is no object', { action: 'accept', content: [4] }, /content must be an object/],
]) {
  test(`an elicitation-response with ${name} is -32602, and the question stays open`, async (t) => {
    const { client, taskId, upstream } = await asking(t, asks(elicit('e-1')));
    const { elicitationId } = (await open(client, taskId))._meta[PENDING][0];
    const keepsId = typeof response === 'object' && !('elicitationId' in response) && name !== 'no id';
    const { error } = await answer(client, taskId, keepsId ? { elicitationId, ...response } : response);
    assert.equal(error.code, -32602);
    assert.match(error.message, problem);
    assert.equal((await client.result('tasks/get', { taskId })).status, 'input_required');
    assert.equal(upstream.requests.some((r) => r.rpc?.id === 'e-1'), false);
    assert.ok((await answer(client, taskId, { elicitationId, action: 'decline' })).result);
    assert.deepEqual((await responseTo(upstream, 'e-1')).result, { action: 'decline' });
  });
}

test('the request comes on the open tasks/result stream, under its own id and tied to the task; its values are relayed as they are', async (t) => {
  const { client, admin, upstream, connect } = await stage(t, asks(elicit(7), sample('s-1'))).then(async (s) => ({ ...s, client: await s.connect({ capabilities: ASKABLE }) }));
  const { taskId } = await client.createTask('book_dinner');
  const waiting = await client.stream('tasks/result', { taskId });
  await admin.approve(taskId);
  const asked = await waiting.message((m) => m.method === 'elicitation/create', 'the elicitation');
  assert.deepEqual(asked, { jsonrpc: '2.0', id: 7, method: 'elicitation/create', params: { ...PARTY, _meta: { [RELATED]: { taskId } } } });
  const posted = await client.post('{"jsonrpc":"2.0", "id":7, "result":{"action":"accept","content":{"partySize":2.0}}}');
  assert.equal(posted.status, 202);
  assert.equal((await upstream.received((r) => r.rpc?.id === 7 && !r.rpc.method)).text, '{"jsonrpc":"2.0","id":7,"result":{"action":"accept","content":{"partySize":2.0}}}');
  const sampling = await waiting.message((m) => m.method === 'sampling/createMessage', 'the sampling request');
  assert.deepEqual(sampling, { jsonrpc: '2.0', id: 's-1', method: 'sampling/createMessage', params: { ...SAMPLE, _meta: { [RELATED]: { taskId } } } });
  const task = await client.result('tasks/get', { taskId });
  assert.equal(task.status, 'input_required');
  assert.equal(task._meta[PENDING], undefined, 'a sampling request is no elicitation');
  await client.post({ jsonrpc: '2.0', id: 's-1', result: { role: 'assistant', content: { type: 'text', text: 'hello' }, model: 'm' } });
  const last = await waiting.message((m) => m.id === waiting.id, 'the result');
  assert.deepEqual(last.result.structuredContent.answers, [{ action: 'accept', content: { partySize: 2 } }, { role: 'assistant', content: { type: 'text', text: 'hello' }, model: 'm' }]);
  void connect;
});

test('a client that begins to wait while the question is open gets it; one that leaves does not keep it', async (t) => {
  const { client, taskId, upstream } = await asking(t, asks(elicit('e-1')));
  await open(client, taskId);
  const first = await client.stream('tasks/result', { taskId });
  await first.message((m) => m.id === 'e-1', 'the request');
  const second = await client.stream('tasks/result', { taskId });
  first.abort();
  assert.equal((await second.message((m) => m.id === 'e-1', 'the request, now on the second stream')).method, 'elicitation/create');
  assert.equal((await client.post({ jsonrpc: '2.0', id: 'e-1', result: { action: 'cancel' } })).status, 202);
  assert.deepEqual((await responseTo(upstream, 'e-1')).result, { action: 'cancel' });
  assert.ok((await second.message((m) => m.id === second.id, 'the result')).result);
});

test('answered in tasks/get first: the stream is told, and a response that comes after all is refused', async (t) => {
  const { client, taskId, upstream } = await asking(t, asks(elicit('e-1')));
  const waiting = await client.stream('tasks/result', { taskId });
  await waiting.message((m) => m.id === 'e-1', 'the request');
  const { elicitationId } = (await open(client, taskId))._meta[PENDING][0];
  const accepted = { elicitationId, action: 'accept', content: { partySize: 4 } };
  assert.ok((await answer(client, taskId, accepted)).result);
  const withdrawn = await waiting.message((m) => m.method === 'notifications/cancelled', 'the withdrawal');
  assert.deepEqual(withdrawn.params, { requestId: 'e-1', reason: 'answered in tasks/get', _meta: { [RELATED]: { taskId } } });
  assert.deepEqual((await waiting.message((m) => m.id === waiting.id, 'the result')).result.structuredContent.answers, [{ action: 'accept', content: { partySize: 4 } }]);
  const late = await client.post({ jsonrpc: '2.0', id: 'e-1', result: { action: 'decline' } });
  assert.equal(late.status, 400);
  const { error, id } = JSON.parse(await late.text());
  assert.deepEqual([error.code, id], [-32602, undefined]);
  assert.match(error.message, /no longer open: answered in tasks\/get/);
  assert.equal(upstream.requests.filter((r) => r.rpc?.id === 'e-1').length, 1);
  assert.ok((await answer(client, taskId, accepted)).result, 'the same poll again is no second answer');
  assert.equal((await answer(client, taskId, { elicitationId, action: 'decline' })).error.code, -32602);
});

test('answered on the stream first: an elicitation-response is told so', async (t) => {
  const { client, taskId, upstream } = await asking(t, asks(elicit('e-1')));
  const { elicitationId } = (await open(client, taskId))._meta[PENDING][0];
  await client.post({ jsonrpc: '2.0', id: 'e-1', result: { action: 'accept', content: { partySize: 4 } } });
  const { error } = await answer(client, taskId, { elicitationId, action: 'accept', content: { partySize: 5 } });
  assert.equal(error.code, -32602);
  assert.match(error.message, /no longer open: answered by the client's response/);
  await responseTo(upstream, 'e-1');
  assert.equal(upstream.requests.filter((r) => r.rpc?.id === 'e-1').length, 1);
});

test('answers of both ways at once: exactly one reaches upstream', async (t) => {
  const many = Array.from({ length: 10 }, (_, n) => elicit(`race-${n}`));
  const { client, taskId, upstream, admin } = await asking(t, asks(...many), { config: { workers: 3 } });
  for (const { id } of many) {
    const { elicitationId } = (await open(client, taskId))._meta[PENDING][0];
    const [inTask, posted] = await Promise.all([
      answer(client, taskId, { elicitationId, action: 'accept', content: { partySize: 1 } }),
      client.post({ jsonrpc: '2.0', id, result: { action: 'accept', content: { partySize: 2 } } }),
    ]);
    const won = (await responseTo(upstream, id)).result.content.partySize;
    assert.deepEqual([inTask.error?.code, posted.status], won === 1 ? [undefined, 400] : [-32602, 202], `${id}: ${won}`);
  }
  await admin.inState(taskId, 'completed');
  for (const { id } of many) assert.equal(upstream.requests.filter((r) => r.rpc?.id === id).length, 1, id);
});

test('nobody answers: the server gets an error at the end of its time, and the task goes on', async (t) => {
  const { client, taskId, upstream, admin } = await asking(t, asks(elicit('e-1')), { config: { pseudo_tasks: { elicitation_timeout: '1s' } } });
  const waiting = await client.stream('tasks/result', { taskId });
  await waiting.message((m) => m.id === 'e-1', 'the request');
  const { elicitationId } = (await open(client, taskId))._meta[PENDING][0];
  const { error } = await responseTo(upstream, 'e-1');
  assert.deepEqual(error, { code: -32001, message: 'Elicitation request timed out after 1000ms' });
  assert.equal((await waiting.message((m) => m.method === 'notifications/cancelled', 'the withdrawal')).params.reason, 'not answered in time');
  await admin.inState(taskId, 'completed');
  assert.match((await answer(client, taskId, { elicitationId, action: 'decline' })).error.message, /not answered in time/);
});

test('upstream withdraws what it asked', async (t) => {
  let stream;
  const { client, taskId, upstream, admin } = await asking(t, async ({ reply, id }) => {
    stream = reply.sse();
    stream.event({ jsonrpc: '2.0', ...elicit('e-1') });
    stream.finish = () => (stream.event({ jsonrpc: '2.0', id, result: { content: [] } }), stream.end());
  });
  const { elicitationId } = (await open(client, taskId))._meta[PENDING][0];
  const waiting = await client.stream('tasks/result', { taskId });
  await waiting.message((m) => m.id === 'e-1', 'the request');
  stream.event({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'e-1', reason: 'timeout' } });
  assert.equal((await waiting.message((m) => m.method === 'notifications/cancelled', 'the withdrawal')).params.requestId, 'e-1');
  assert.equal((await client.result('tasks/get', { taskId })).status, 'working');
  assert.match((await answer(client, taskId, { elicitationId, action: 'decline' })).error.message, /withdrawn by the server/);
  stream.finish();
  await admin.inState(taskId, 'completed');
  assert.equal(upstream.requests.some((r) => r.rpc?.id === 'e-1'), false);
});

test('the server goes while it asks: the task fails, and the question with it', async (t) => {
  let stream;
  const { client, taskId, admin } = await asking(t, ({ reply }) => {
    stream = reply.sse();
    stream.event({ jsonrpc: '2.0', ...elicit('e-1') });
  });
  const { elicitationId } = (await open(client, taskId))._meta[PENDING][0];
  stream.cut();
  await admin.inState(taskId, 'failed');
  const task = await client.result('tasks/get', { taskId });
  assert.deepEqual([task.status, task._meta[PENDING]], ['failed', undefined]);
  assert.match((await answer(client, taskId, { elicitationId, action: 'decline' })).error.message, /the call has ended/);
});

test('a cancelled task asks no more', async (t) => {
  const { client, taskId, upstream } = await asking(t, asks(elicit('e-1')));
  await open(client, taskId);
  assert.equal((await client.result('tasks/cancel', { taskId })).status, 'cancelled');
  await upstream.received('notifications/cancelled');
  assert.equal((await client.result('tasks/get', { taskId }))._meta[PENDING], undefined);
});

test('a person who thinks for longer than the silence limit is no silence', async (t) => {
  const { client, taskId, admin, upstream } = await asking(t, asks(elicit('e-1')), { env: { THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '1' } });
  const { elicitationId } = (await open(client, taskId))._meta[PENDING][0];
  const until_ = performance.now() + 2500;
  await until(async () => ((await client.result('tasks/get', { taskId })).status === 'input_required' ? performance.now() > until_ : assert.fail('it ended')), 'time to pass');
  await answer(client, taskId, { elicitationId, action: 'accept', content: { partySize: 3 } });
  assert.deepEqual((await responseTo(upstream, 'e-1')).result.content, { partySize: 3 });
  await admin.inState(taskId, 'completed');
});

test('a form that is a URL is shown with it, and accepted without content', async (t) => {
  const params = { mode: 'url', message: 'Sign in', url: 'https://example.com/connect', elicitationId: 'visit-1' };
  const { client, taskId, upstream } = await asking(t, asks(elicit('e-1', params)));
  assert.deepEqual((await open(client, taskId))._meta[PENDING], [{ elicitationId: 'visit-1', mode: 'url', message: 'Sign in', url: 'https://example.com/connect' }]);
  assert.ok((await answer(client, taskId, { elicitationId: 'visit-1', action: 'accept' })).result);
  assert.deepEqual((await responseTo(upstream, 'e-1')).result, { action: 'accept' });
});

test('a client that cannot be asked is not: the server has its answer at once', async (t) => {
  for (const [capabilities, expected] of [[{ tasks: {} }, { error: -32601 }], [{}, { result: { action: 'decline' } }]]) {
    const { client, upstream, admin, connect } = await stage(t, asks(elicit('e-1'), sample('s-1'), { id: 'p-1', method: 'ping' }, { id: 'r-1', method: 'roots/list' }), { config: { pseudo_tools: { mode: 'never' }, execution: 'on_approval' } }).then(async (s) => ({ ...s, client: await s.connect({ capabilities }) }));
    const { taskId } = await client.createTask('book_dinner');
    await admin.approve(taskId);
    await admin.inState(taskId, 'completed');
    const elicited = await responseTo(upstream, 'e-1');
    assert.deepEqual(expected.result ?? expected.error, elicited.result ?? elicited.error.code);
    assert.equal((await responseTo(upstream, 's-1')).error.code, -32601);
    assert.deepEqual((await responseTo(upstream, 'p-1')).result, {});
    assert.equal((await responseTo(upstream, 'r-1')).error.code, -32601);
    void connect;
  }
});

test('another session of the same token is asked under an id of the gateway\'s own, and answers in the right session', async (t) => {
  const { connect, admin, upstream } = await stage(t, asks(elicit(1)));
  const one = await connect({ capabilities: ASKABLE, token: 'agent' });
  const two = await connect({ capabilities: ASKABLE, token: 'agent' });
  const { taskId } = await one.createTask('book_dinner');
  const waiting = await two.stream('tasks/result', { taskId });
  await two.result('ping');
  await one.result('tasks/get', { taskId });
  await admin.approve(taskId);
  const asked = await waiting.message((m) => m.method === 'elicitation/create', 'the request');
  const sent = await upstream.received('tools/call');
  if (sent.headers['mcp-session-id'] === two.session) return; // it runs with the other session's credentials
  assert.match(asked.id, /^tg:/);
  assert.equal((await two.post({ jsonrpc: '2.0', id: asked.id, result: { action: 'accept', content: { partySize: 6 } } })).status, 202);
  assert.deepEqual(await responseTo(upstream, 1), { jsonrpc: '2.0', id: 1, result: { action: 'accept', content: { partySize: 6 } } });
  assert.equal(upstream.requests.find((r) => r.rpc?.id === 1 && !r.rpc.method).headers['mcp-session-id'], one.session);
});

test('an anonymous owner is asked in the task alone', async (t) => {
  const { connect, admin, upstream } = await stage(t, asks(elicit('e-1')), { upstream: { sessions: false } });
  const client = await connect({ capabilities: ASKABLE });
  const { taskId } = await client.createTask('book_dinner');
  await admin.approve(taskId);
  const task = await until(async () => {
    const now = await client.result('tasks/get', { taskId });
    return (now._meta[PENDING] || now.status === 'completed') && now;
  }, 'the question, or its end');
  if (task.status === 'completed') {
    assert.deepEqual((await responseTo(upstream, 'e-1')).result, { action: 'decline' }, 'what it declared is not known without a session');
    return;
  }
  assert.ok((await answer(client, taskId, { elicitationId: task._meta[PENDING][0].elicitationId, action: 'decline' })).result);
});

/** A tool that is a task at upstream, too, which asks on the session's GET stream once its result is waited for. */
const asksElsewhere = {
  capabilities: { tools: {}, tasks: TASKS, notifications: { tasks: { status: true } } },
  tools: [tool('book_dinner', { support: 'required' })],
  handlers: {
    'tasks/get': ({ upstream, params, reply }) => reply.result({ ...upstream.tasks.get(params.taskId).task, status: 'input_required' }),
    'tasks/result': async ({ upstream, params: { taskId }, reply }) => {
      const _meta = { [RELATED]: { taskId } };
      upstream.push({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: { ...upstream.tasks.get(taskId).task, status: 'input_required' } });
      upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'asking', _meta } });
      upstream.push({ jsonrpc: '2.0', ...elicit('e-1', { ...PARTY, _meta }) });
      const response = await responseTo(upstream, 'e-1').catch(() => undefined);
      if (response) reply.result({ content: [], structuredContent: response.result, _meta });
    },
  },
};

for (const workers of [1, 3]) {
  test(`a question of upstream for its own task on the GET stream is the question of ours (${workers} workers)`, async (t) => {
    const { connect, admin, upstream } = await stage(t, undefined, { upstream: { ...asksElsewhere }, config: { workers }, env: { THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '1' } });
    const client = await connect({ capabilities: ASKABLE, keepAlive: false });
    await client.result('tools/list');
    const listening = await client.listen();
    await until(() => upstream.getStreams.size === 1, 'the stream upstream');
    const { taskId } = await client.createTask('book_dinner');
    await admin.approve(taskId);
    const [{ elicitationId }] = (await open(client, taskId))._meta[PENDING];
    const until_ = performance.now() + 2500; // longer than the silence limit
    await until(async () => ((await client.result('tasks/get', { taskId })).status === 'input_required' ? performance.now() > until_ : assert.fail('it ended')), 'time to pass');
    const waiting = await client.stream('tasks/result', { taskId });
    const asked = await waiting.message((m) => m.method === 'elicitation/create', 'the request');
    assert.deepEqual(asked, { jsonrpc: '2.0', ...elicit('e-1', { ...PARTY, _meta: { [RELATED]: { taskId } } }) });
    assert.ok((await answer(client, taskId, { elicitationId, action: 'accept', content: { partySize: 2 } })).result);
    const { result } = await waiting.message((m) => m.id === waiting.id, 'the result');
    assert.deepEqual(result, { content: [], structuredContent: { action: 'accept', content: { partySize: 2 } }, _meta: { [RELATED]: { taskId } } });
    assert.equal(upstream.requests.find((r) => r.rpc?.id === 'e-1').headers['mcp-session-id'], client.session);
    const told = await listening.message((m) => m.method === 'notifications/message', 'the log message');
    assert.deepEqual(told.params._meta, { [RELATED]: { taskId } });
    assert.equal(listening.raw.includes('"up-'), false, 'the client hears nothing of a task that it does not know');
    assert.equal(listening.raw.includes('elicitation/create'), false);
  });
}

test("a task of upstream's own that is not ours stays between the client and upstream", async (t) => {
  const { connect, upstream } = await stage(t, undefined, { rules: [], upstream: { ...asksElsewhere } });
  const client = await connect({ capabilities: ASKABLE });
  await client.result('tools/list');
  const listening = await client.listen();
  await until(() => upstream.getStreams.size === 1, 'the stream upstream');
  const { task } = await client.createTask('book_dinner');
  const result = client.result('tasks/result', { taskId: task.taskId });
  const asked = await listening.message((m) => m.method === 'elicitation/create', 'the request');
  assert.deepEqual(asked.params._meta, { [RELATED]: { taskId: task.taskId } });
  await client.post({ jsonrpc: '2.0', id: 'e-1', result: { action: 'decline' } });
  assert.equal((await result).structuredContent.action, 'decline');
});

test('the official SDK client is asked by callToolStream, and the tool has its answers', async (t) => {
  const { sdk, admin } = await stage(t, asks(elicit('e-1'), sample('s-1')));
  const asked = [];
  const client = await sdk({
    capabilities: { elicitation: { form: {} }, sampling: {}, tasks: {} },
    prepare: (c) => {
      c.setRequestHandler(ElicitRequestSchema, (request) => (asked.push(request.params), { action: 'accept', content: { partySize: 5 } }));
      c.setRequestHandler(CreateMessageRequestSchema, (request) => (asked.push(request.params), { role: 'assistant', content: { type: 'text', text: 'hello' }, model: 'm' }));
    },
  });
  await client.listTools();
  const seen = await collectStream(toolStream(client, 'book_dinner', {}), (m) => m.type === 'taskCreated' && admin.approve(m.task.taskId));
  assert.equal(seen.error, undefined);
  assert.deepEqual(seen.result.structuredContent.answers, [{ action: 'accept', content: { partySize: 5 } }, { role: 'assistant', content: { type: 'text', text: 'hello' }, model: 'm' }]);
  assert.deepEqual(asked.map((p) => p._meta[RELATED]), [{ taskId: seen.taskId }, { taskId: seen.taskId }]);
  assert.ok(seen.statuses.includes('input_required'), seen.statuses.join());
});
