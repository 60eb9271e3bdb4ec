// The answers of clients to the server's questions inside approved calls: recorded, shown, and decided again where the workflow says so.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asks, elicit, PARTY, responseTo, SAMPLE, sample } from './lib/asking.mjs';
import { run } from './lib/child.mjs';
import { ADMIN_TOKEN, BINARY, workflow } from './lib/gateway.mjs';
import { modernServer } from './lib/modern.mjs';
import { modernClient, WITH_TASKS } from './lib/modern_client.mjs';
import { answerOf, complete, taskMaker } from './lib/modern_upstream.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { callTool, kinds } from './lib/pseudo.mjs';
import { onDatabase } from './lib/replicas.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const PENDING = 'io.modelcontextprotocol/pending-elicitations';
const RESPONSE = 'io.modelcontextprotocol/elicitation-response';
const CAPABLE = { tasks: {}, elicitation: {}, sampling: {} };
const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const OWNER = { authorization: 'Bearer owner' };
const HIGH = { match: 'book_*', action: 'approve', show: { risk: 'high' } };
const LOW = { match: 'book_*', action: 'approve' };
const accept = (content = { partySize: 4 }) => ({ action: 'accept', content });
const form = { method: 'elicitation/create', params: { mode: 'form', ...PARTY } };

const stage = (t, { rounds, rule = HIGH, more = {}, upstream = {}, ...options } = {}) =>
  scene(t, {
    rules: [rule],
    approval: workflow('10m', { typed: 'off', ...(rounds && { rounds }), ...more }),
    upstream: { tools: [tool('book_dinner')], handlers: { 'tools/call': asks(elicit('e-1')) }, ...upstream },
    ...options,
  });

/** An approved task of a legacy client. */
async function approved(set, { capabilities = CAPABLE, ...options } = {}) {
  const client = await set.connect({ capabilities, ...options });
  const { taskId } = await client.createTask('book_dinner', { time: '19:00' });
  await set.admin.approve(taskId);
  return { ...set, client, taskId };
}
const asked = (client, taskId) => until(async () => (await client.result('tasks/get', { taskId }))._meta[PENDING]?.[0], 'a question');
const answers = async (admin, query = {}) => (await admin.list(query)).tasks.filter((task) => task.answerOf);
const waiting = (admin) => until(async () => (await answers(admin, { state: 'pending' }))[0], 'an answer that waits for people');
const sent = (upstream) => upstream.requests.filter((r) => r.rpc && r.rpc.method === undefined).map((r) => r.rpc.result ?? r.rpc.error);

test('an answer inside an approved call has rows in the audit trail and is shown to operators, and to no client', async (t) => {
  const set = await stage(t, { rule: LOW, more: { redact_fields: ['pin'] }, config: { audit: { keep_arguments: '1d' } }, upstream: { handlers: { 'tools/call': asks(elicit('e-1', { message: 'PIN?', requestedSchema: { type: 'object', properties: { pin: { type: 'string' } } } })) } } });
  const { client, taskId, admin, gateway } = await approved(set);
  const { elicitationId } = await asked(client, taskId);
  await client.result('tasks/get', { taskId, _meta: { [RESPONSE]: { elicitationId, ...accept({ pin: '4711', db: 'PRODUCTION' }) } } });
  await admin.inState(taskId, 'completed');
  const [answer] = await until(async () => (await answers(admin, { state: 'completed' })).length > 0 && answers(admin), 'the answer');
  assert.equal(answer.answerOf, taskId);
  assert.deepEqual(answer.arguments.answers[0].question, { method: 'elicitation/create', params: { message: 'PIN?', requestedSchema: { type: 'object', properties: { pin: { type: 'string' } } } } });
  assert.deepEqual(answer.arguments.answers[0].answer, accept({ pin: '[REDACTED]', db: 'PRODUCTION' }));
  const { json } = await admin.get('/api/v1/audit?after=0&limit=1000&arguments=true');
  const rows = json.entries.filter((row) => row.taskId === answer.id);
  assert.deepEqual(rows.map((row) => row.event), ['create', 'complete']);
  assert.equal(rows[0].tool, 'book_dinner');
  for (const name of ['argumentsDigest', 'requestDigest']) {
    assert.match(rows[0][name], /^[0-9a-f]{64}$/);
    assert.notEqual(rows[0][name], answer[name], 'a value is hidden there, so its digest has a key');
  }
  const kept = JSON.stringify(json.arguments[rows[0].sequence]);
  assert.match(kept, /PRODUCTION/);
  assert.doesNotMatch(kept, /4711/);
  const shown = await run(BINARY, ['tasks', 'show', answer.id], { env: { THOUGHTGATE_ADMIN_URL: gateway.admin.url, TASKGATE_TOKEN: ADMIN_TOKEN } });
  assert.match(shown.stdout, new RegExp(`^Answer in +${taskId}$`, 'm'));
  assert.match(shown.stdout, /PRODUCTION/);
  assert.deepEqual((await client.result('tasks/list')).tasks.map((task) => task.taskId), [taskId]);
  assert.equal((await client.call('tasks/get', { taskId: answer.id })).error.code, -32602);
  assert.equal((await admin.task(taskId)).answerOf, null);
});

// ---- every way that an answer goes ----

/** Each begins a call that asks, and gives: what says the answer, what the server has been told, and the call's task. */
const ways = {
  'a legacy client in tasks/get': async (t, options) => {
    const set = await approved(await stage(t, options));
    const { elicitationId } = await asked(set.client, set.taskId);
    const say = () => set.client.result('tasks/get', { taskId: set.taskId, _meta: { [RESPONSE]: { elicitationId, ...accept() } } });
    return { ...set, say, told: () => sent(set.upstream)[0] };
  },
  'a legacy client by its own response on a stream': async (t, options) => {
    const set = await stage(t, options);
    const client = await set.connect({ capabilities: CAPABLE });
    const { taskId } = await client.createTask('book_dinner', { time: '19:00' });
    const result = await client.stream('tasks/result', { taskId });
    await set.admin.approve(taskId);
    const question = await result.message((m) => m.method === 'elicitation/create');
    const say = async () => {
      assert.equal((await client.post({ jsonrpc: '2.0', id: question.id, result: accept() })).status, 202);
      assert.notEqual((await client.post({ jsonrpc: '2.0', id: question.id, result: accept({ partySize: 20 }) })).status, 202, 'the second time');
    };
    return { ...set, client, taskId, say, told: () => sent(set.upstream)[0] };
  },
  'a client without tasks by the gateway\'s tool': async (t, options) => {
    const set = await stage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '300ms', wait_max: '300ms' } }, ...options });
    const client = await set.connect(kinds.old.client);
    const { structuredContent } = await callTool(client, 'book_dinner', { time: '19:00' });
    const taskId = structuredContent.proxy_task.task_id;
    await set.admin.approve(taskId);
    await callTool(client, 'get_task_result', { task_id: taskId, timeout_ms: 100 });
    const { requestId } = await until(async () => (await callTool(client, 'get_elicitations')).structuredContent.elicitations?.[0], 'the question');
    const say = async () => assert.notEqual((await callTool(client, 'respond_to_elicitation', { request_id: requestId, ...accept() })).isError, true);
    return { ...set, client, taskId, say, told: () => sent(set.upstream)[0] };
  },
  'a modern client by tasks/update': async (t, options) => {
    const set = await stage(t, { source: { era: 'modern' }, ...options, upstream: rounds(form) });
    const client = modernClient(t, set.gateway.url, { capabilities: { ...ALL, ...WITH_TASKS }, headers: OWNER });
    const { taskId } = await client.create('book_dinner', { time: '19:00' });
    await set.admin.approve(taskId);
    return { ...set, client, taskId, ...byUpdate(client, taskId), told: () => set.upstream.calls[1]?.rpc.params.inputResponses.a };
  },
  'a modern client that repeats its held call': async (t, options) => {
    const set = await stage(t, { source: { era: 'modern' }, ...options, upstream: rounds(form) });
    const client = modernClient(t, set.gateway.url, { capabilities: ALL, headers: OWNER });
    const call = { name: 'book_dinner', arguments: { time: '19:00' } };
    const held = client.result('tools/call', call);
    const { id: taskId } = await set.admin.pending();
    await set.admin.approve(taskId);
    const { inputRequests, requestState } = await held;
    const [key] = Object.keys(inputRequests);
    const said = [];
    const say = async () => void said.push(client.result('tools/call', { ...call, requestState, inputResponses: { [key]: accept() } }));
    return { ...set, client, taskId, say, said, told: () => set.upstream.calls[1]?.rpc.params.inputResponses.a };
  },
  'a modern client at a legacy server': async (t, options) => {
    const set = await stage(t, { source: { bridge: 'modern' }, ...options });
    const client = modernClient(t, set.gateway.url, { capabilities: { ...ALL, ...WITH_TASKS }, headers: OWNER });
    const { taskId } = await client.create('book_dinner', { time: '19:00' });
    await set.admin.approve(taskId);
    return { ...set, client, taskId, ...byUpdate(client, taskId), told: () => sent(set.upstream)[0] };
  },
  'a legacy client at a modern server': async (t, options) => {
    const { handlers, ...server } = modernServer({ tools: [tool('book_dinner')], handlers: rounds(form).handlers });
    const set = await approved(await stage(t, { source: { era: 'modern' }, ...options, upstream: { ...server, handlers } }));
    const { elicitationId } = await asked(set.client, set.taskId);
    const say = () => set.client.result('tasks/get', { taskId: set.taskId, _meta: { [RESPONSE]: { elicitationId, ...accept() } } });
    return { ...set, say, told: () => set.upstream.calls[1]?.rpc.params.inputResponses.a };
  },
};

/** A modern server that asks once. */
const rounds = (request) => {
  let count = 0;
  return modernServer({
    tools: [tool('book_dinner')],
    handlers: {
      'tools/call': ({ reply, params }) => (count++ === 0 ? reply.result(complete({ resultType: 'input_required', inputRequests: { a: request }, requestState: 's' })) : reply.result(answerOf(params))),
    },
  });
};
function byUpdate(client, taskId) {
  return {
    say: async () => {
      const { inputRequests } = await until(async () => {
        const shown = await client.get(taskId);
        return shown.status === 'input_required' && shown;
      }, 'the question');
      await client.update(taskId, { [Object.keys(inputRequests)[0]]: accept() });
    },
  };
}

for (const [name, begin] of Object.entries(ways)) {
  test(`${name}: where the rule says high, the answer waits for the same votes, and then reaches the server once`, async (t) => {
    const { say, told, admin, taskId } = await begin(t, {});
    await say();
    const answer = await waiting(admin);
    assert.deepEqual([answer.answerOf, answer.tool, answer.risk, answer.arguments.answers[0].answer], [taskId, 'book_dinner', 'high', accept()]);
    assert.equal(told(), undefined, 'the server has no answer');
    assert.equal((await admin.task(taskId)).state, 'executing');
    await admin.approve(answer.id);
    await until(told, 'the answer at the server');
    assert.deepEqual(told(), accept());
    await admin.inState(taskId, 'completed');
    assert.equal((await admin.inState(answer.id, 'completed')).answerOf, taskId);
    assert.equal((await answers(admin)).length, 1);
  });

  test(`${name}: an answer that people reject does not reach the server, which is told that the form was declined`, async (t) => {
    const { say, told, admin, taskId } = await begin(t, { rounds: 'reapprove', rule: LOW });
    await say();
    await admin.reject((await waiting(admin)).id, 'not that one');
    await until(told, 'an answer at the server');
    assert.ok(['decline', 'cancel'].includes(told().action), JSON.stringify(told()));
    assert.equal(told().content, undefined);
    await admin.inState(taskId, 'completed');
  });
}

test('an answer that the database cannot take at once is kept, and reaches the server once it can', { skip: postgresMissing }, async (t) => {
  const postgres = await startPostgres(t);
  const { say, told, taskId, admin, upstream } = await ways['a legacy client by its own response on a stream'](t, { rule: LOW, ...onDatabase(postgres.url(), { id: 'p', config: {} }), rules: [LOW], approval: workflow('10m', { typed: 'off' }) });
  await postgres.stop('SIGQUIT');
  await say();
  assert.equal(sent(upstream).length, 0, 'nothing goes to the server before it is stored');
  await until(async () => (await admin.get('/ready')).json.checks.store === false, 'the gateway to find the database gone');
  await postgres.start();
  assert.deepEqual(await until(told, 'the answer at the server', { deadline: 30_000 }), accept());
  await admin.inState(taskId, 'completed');
  assert.deepEqual((await answers(admin)).map((answer) => [answer.answerOf, answer.state]), [[taskId, 'completed']]);
  assert.equal(sent(upstream).length, 1);
});

test('a risk that is high by the hints of the server alone makes no answer wait', async (t) => {
  const dinner = tool('book_dinner', { annotations: { destructiveHint: true, readOnlyHint: false } });
  const { say, told, admin, taskId } = await ways['a legacy client in tasks/get'](t, { rule: LOW, upstream: { tools: [dinner], handlers: { 'tools/call': asks(elicit('e-1')) } } });
  const { risk, riskBy } = await admin.task(taskId);
  assert.deepEqual([risk, riskBy], ['high', 'server']);
  await say();
  assert.deepEqual(await until(told, 'the answer at the server'), accept());
  await admin.inState(taskId, 'completed');
  const { json } = await admin.get('/api/v1/audit?after=0&limit=1000');
  const [answer] = await answers(admin);
  assert.deepEqual(json.entries.filter((row) => row.taskId === answer.id).map((row) => row.event), ['create', 'complete'], 'nobody decided it');
});

test('with rounds: deny nobody is asked: the server is told at once', async (t) => {
  const set = await approved(await stage(t, { rounds: 'deny', upstream: { handlers: { 'tools/call': asks(elicit('e-1'), sample('s-1')) } } }));
  await set.admin.inState(set.taskId, 'completed');
  const [first, second] = sent(set.upstream);
  assert.deepEqual([first.action, second.code], ['decline', -32601]);
  const modern = await stage(t, { rounds: 'deny', source: { era: 'modern' }, upstream: rounds(form) });
  const client = modernClient(t, modern.gateway.url, { capabilities: { ...ALL, ...WITH_TASKS }, headers: OWNER });
  const { taskId } = await client.create('book_dinner', { time: '19:00' });
  await modern.admin.approve(taskId);
  assert.equal((await modern.admin.inState(taskId, 'failed')).statusMessage.includes('cannot be asked'), true);
  assert.equal(modern.upstream.calls.length, 1);
});

test('a quorum of two decides about the answer, too; the caller\'s own no needs nobody', async (t) => {
  const people = [{ name: 'ann' }, { name: 'bob' }];
  const tokens = people.map(({ name }) => ({ name, person: name, token_env: name.toUpperCase(), roles: ['approver'] }));
  const env = { ANN: 'the-long-token-of-ann', BOB: 'the-long-token-of-bob' };
  const set = await stage(t, { more: { quorum: 2 }, env, config: { admin: { people, tokens } }, upstream: { handlers: { 'tools/call': asks(elicit('e-1'), elicit('e-2')) } } });
  const { admin, upstream } = set;
  const client = await set.connect({ capabilities: CAPABLE });
  const { taskId } = await client.createTask('book_dinner', {});
  const both = async (id) => {
    assert.equal((await admin.as(env.ANN).decide('approve', id)).status, 202);
    assert.deepEqual(sent(upstream).filter((x) => x.action === 'accept'), []);
    assert.equal((await admin.as(env.BOB).decide('approve', id)).status, 200);
  };
  await both(taskId);
  const say = async (response) => client.result('tasks/get', { taskId, _meta: { [RESPONSE]: { elicitationId: (await asked(client, taskId)).elicitationId, ...response } } });
  await say(accept());
  await both((await waiting(admin)).id);
  assert.deepEqual((await responseTo(upstream, 'e-1')).result, accept());
  await say({ action: 'decline' });
  assert.deepEqual((await responseTo(upstream, 'e-2')).result, { action: 'decline' });
  await admin.inState(taskId, 'completed');
});

test('an answer that waits ends with its call; its arguments cannot be edited', async (t) => {
  const set = await stage(t, { more: { allow_edit: ['answers'] } });
  const { client, taskId, admin, upstream } = await approved(set);
  const { elicitationId } = await asked(client, taskId);
  await client.result('tasks/get', { taskId, _meta: { [RESPONSE]: { elicitationId, ...accept() } } });
  const { id, arguments: given } = await waiting(admin);
  const edited = await admin.post(`/api/v1/tasks/${id}/approve`, { arguments: { answers: [{ ...given.answers[0], answer: accept({ partySize: 5 }) }] } });
  assert.equal(edited.status, 422, edited.text);
  await client.result('tasks/cancel', { taskId });
  assert.match((await admin.inState(id, 'cancelled')).statusMessage, /call has ended/);
  assert.equal((await admin.decide('approve', id)).status, 409);
  assert.deepEqual(sent(upstream), []);
});

test('a modern server\'s own task: the answer waits, the server is polled on, and then gets it', async (t) => {
  const asker = taskMaker();
  const set = await stage(t, { source: { era: 'modern' }, upstream: modernServer({ tools: [tool('book_dinner')], handlers: asker.handlers }) });
  const client = modernClient(t, set.gateway.url, { capabilities: { ...ALL, ...WITH_TASKS }, headers: OWNER });
  const { taskId } = await client.create('book_dinner', { time: '19:00' });
  await set.admin.approve(taskId);
  const own = await until(() => [...asker.tasks.values()][0], "the server's task");
  Object.assign(own, { status: 'input_required', inputRequests: { a: form } });
  await byUpdate(client, taskId).say();
  const { id } = await waiting(set.admin);
  const polls = set.upstream.of('tasks/get').length;
  await until(() => set.upstream.of('tasks/get').length > polls + 1, 'polls');
  assert.equal(set.upstream.of('tasks/update').length, 0);
  await set.admin.approve(id);
  const update = await set.upstream.received('tasks/update');
  assert.deepEqual(update.rpc.params.inputResponses, { a: accept() });
});
