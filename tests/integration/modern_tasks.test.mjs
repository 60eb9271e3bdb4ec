// Approvals as tasks of the extension io.modelcontextprotocol/tasks (SEP-2663), for clients of MCP 2026-07-28.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { key, MODERN, mirrored, OWN, TASKS_EXTENSION, WITH_TASKS } from './lib/modern_client.mjs';
import { answerOf, complete, form, refuse, taskMaker } from './lib/modern_upstream.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { assertTaskSchema } from './lib/schema.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const stage = (t, { upstream, ...more } = {}) =>
  modernScene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    source: { era: 'modern', ...more.source },
    upstream: { tools: [tool('delete_user'), tool('read')], ...upstream },
    ...more.gateway,
  });

/** The task once `fits` says so of what tasks/get shows; each answer is valid by the schema. */
async function shown(t, client, taskId, fits) {
  let last;
  return until(
    async () => {
      last = await client.get(taskId);
      assertTaskSchema(t, 'GetTaskResult', last);
      return fits(last) && last;
    },
    () => `task ${taskId}; it is ${JSON.stringify(last)}`,
    { deadline: 15_000 },
  );
}
const inStatus = (t, client, taskId, status) => shown(t, client, taskId, (task) => task.status === status);
const ended = (t, client, taskId) => shown(t, client, taskId, (task) => !['working', 'input_required'].includes(task.status));
/** The calls of the tool that have reached the server. */
const executed = (upstream) => upstream.calls.map(({ rpc }) => rpc.params.name);

test('31. an approve rule answers a declaring client with a flat task, which is there at once and after kill -9', async (t) => {
  const { modern, gateway, upstream } = await stage(t);
  const client = modern();
  const answer = await client.send('tools/call', { name: 'delete_user', arguments: { id: 7 } });
  const created = answer.message.result;
  assert.equal(answer.status, 200);
  assertTaskSchema(t, 'CreateTaskResult', created);
  assert.deepEqual(Object.keys(created).sort(), ['_meta', 'createdAt', 'lastUpdatedAt', 'pollIntervalMs', 'resultType', 'status', 'statusMessage', 'taskId', 'ttlMs']);
  assert.equal(created.resultType, 'task');
  assert.deepEqual(created._meta, OWN._meta);
  assert.equal(created.status, 'working');
  assert.match(created.taskId, /^tg_/);
  assert.match(created.statusMessage, /^Awaiting approval: workflow default decides until 2/);
  assert.equal(created.pollIntervalMs, 1000);
  assert.ok(Number.isInteger(created.ttlMs) && created.ttlMs >= 600_000, String(created.ttlMs));
  const first = await client.get(created.taskId);
  assertTaskSchema(t, 'GetTaskResult', first);
  assert.deepEqual({ ...first, resultType: 'task' }, created);
  await gateway.kill9();
  await gateway.launch();
  const again = await modern().get(created.taskId);
  assert.deepEqual(again, first);
  assert.deepEqual(executed(upstream), []);
});

test('31. params.task of a modern call asks for nothing, goes up, and is shown to approvers', async (t) => {
  const { modern, admin, upstream } = await stage(t);
  const client = modern();
  for (const task of [5, { ttl: 1 }]) {
    const { taskId } = await client.result('tools/call', { name: 'delete_user', arguments: {}, task });
    assert.deepEqual((await admin.task(taskId)).otherParams, { task });
    await admin.approve(taskId);
    assert.equal((await ended(t, client, taskId)).status, 'completed');
    assert.deepEqual(upstream.calls.at(-1).rpc.params.task, task);
  }
});

test('32. another token and an unknown id get the same error', async (t) => {
  const { modern, admin } = await stage(t);
  const owner = modern({ token: 'owner' });
  const { taskId } = await owner.create('delete_user');
  const told = async (client, id) => {
    const answers = [];
    for (const [method, more] of [['tasks/get', {}], ['tasks/update', { inputResponses: {} }], ['tasks/cancel', {}]]) {
      const { status, message } = await client.send(method, { taskId: id, ...more });
      delete message.error.data.correlation_id;
      answers.push([status, message.error]);
    }
    return answers;
  };
  const foreign = await told(modern({ token: 'other' }), taskId);
  assert.deepEqual(foreign.map(([status, { code }]) => [status, code]), Array(3).fill([200, -32602]));
  assert.deepEqual(foreign, await told(owner, 'tg_00000000-0000-4000-8000-000000000000'));
  assert.deepEqual(foreign, await told(modern(), taskId), 'without a token');
  assert.equal((await admin.task(taskId)).state, 'pending');
  assert.equal((await owner.get(taskId)).status, 'working');
});

test('32. a task made without credentials is reached by its id alone', async (t) => {
  const { modern, admin } = await stage(t);
  const { taskId } = await modern().create('delete_user');
  await admin.approve(taskId);
  assert.equal((await ended(t, modern(), taskId)).status, 'completed');
});

test('33. get, update and cancel of a request that does not declare the extension: 400 and -32021', async (t) => {
  const { modern, admin } = await stage(t);
  const client = modern();
  const { taskId } = await client.create('delete_user');
  for (const capabilities of [{}, { extensions: {} }, { extensions: { [TASKS_EXTENSION]: true } }, { tasks: {} }]) {
    for (const [method, more] of [['tasks/get', {}], ['tasks/update', { inputResponses: {} }], ['tasks/cancel', {}]]) {
      for (const id of [taskId, 'tg_none', 'up-1']) {
        const { status, message } = await client.send(method, { taskId: id, ...more }, { meta: { [key('clientCapabilities')]: capabilities } });
        assert.deepEqual([status, message.error.code, message.error.data.requiredCapabilities], [400, -32021, WITH_TASKS], `${method} ${id}`);
      }
    }
  }
  assert.equal((await admin.task(taskId)).state, 'pending');
});

test('33. with `identity: bearer_task` the id and any credentials that the server accepts reach a task', async (t) => {
  const { modern, admin, upstream } = await stage(t, { source: { identity: 'bearer_task' }, upstream: { authorize: ({ headers }) => headers.authorization === 'Bearer bad' && 401 } });
  const { taskId } = await modern({ token: 'old' }).create('delete_user');
  const refused = await modern({ token: 'bad' }).send('tasks/get', { taskId });
  assert.equal(refused.status, 401);
  const fresh = modern({ token: 'new' });
  assert.equal((await fresh.error('tasks/get', { taskId: 'tg_00000000-0000-4000-8000-000000000000' })).code, -32602);
  await admin.approve(taskId);
  assert.equal((await ended(t, fresh, taskId)).status, 'completed');
  assert.equal(upstream.calls.length, 1);
});

test('with `identity: anonymous` the requests without a token have one owner, in both eras and without a session', async (t) => {
  const { modern, connect, admin, upstream } = await stage(t, { source: { identity: 'anonymous' } });
  const legacy = await connect();
  const { taskId } = await legacy.createTask('delete_user');
  const [one, two, holder] = [modern(), modern(), modern({ token: 'owner' })];
  assert.equal((await one.get(taskId)).status, 'working');
  assert.equal((await holder.error('tasks/get', { taskId })).code, -32602);
  const created = await one.create('delete_user', { user: 2 });
  assert.deepEqual((await legacy.result('tasks/list', {})).tasks.map((task) => task.taskId).sort(), [taskId, created.taskId].sort());
  await legacy.delete();
  await admin.approve(taskId);
  assert.equal((await ended(t, two, taskId)).status, 'completed');
  assert.equal((await two.get(created.taskId)).status, 'working');
  assert.equal(upstream.calls.length, 1);
});

test('33. with `identity: session` the holder of a token owns a modern task, for there is no session', async (t) => {
  const { modern } = await stage(t, { source: { identity: 'session' } });
  const { taskId } = await modern({ token: 'owner' }).create('delete_user');
  assert.equal((await modern({ token: 'owner' }).get(taskId)).status, 'working');
  assert.equal((await modern({ token: 'other' }).error('tasks/get', { taskId })).code, -32602);
  assert.equal((await modern().error('tasks/get', { taskId })).code, -32602);
});

test('34. approved: the server gets the body with the stored headers, once', async (t) => {
  const { modern, admin, upstream } = await stage(t);
  const client = modern({ token: 'owner', headers: { 'x-tenant': 'a' } });
  const params = { name: 'delete_user', arguments: { id: 1.5 }, extra: [1], _meta: { ...client.envelope({ progressToken: 'p' }), 'example.com/x': 2.5 } };
  const body = `{"jsonrpc":"2.0", "id":"mine",  "method":"tools/call","params":${JSON.stringify(params)}}`;
  const headers = { 'mcp-method': 'tools/call', 'mcp-name': `=?base64?${Buffer.from('delete_user').toString('base64')}?=`, 'mcp-param-region': 'eu', 'mcp-protocol-version': MODERN };
  const { message } = await client.send('tools/call', {}, { id: 'mine', body, headers });
  const { taskId } = message.result;
  await client.get(taskId);
  await admin.approve(taskId);
  const done = await ended(t, client, taskId);
  assert.equal(done.status, 'completed');
  assert.deepEqual(done.result, answerOf(params));
  assert.equal(done.resultType, 'complete');
  assert.deepEqual(await client.get(taskId), done);
  assert.equal(upstream.calls.length, 1);
  const [call] = upstream.calls;
  assert.equal(call.text, body.replace('"mine"', JSON.stringify(call.rpc.id)));
  assert.match(call.rpc.id, /^tg:/);
  for (const [name, value] of Object.entries({ ...headers, authorization: 'Bearer owner', 'x-tenant': 'a' })) assert.equal(call.headers[name], value, name);
  assert.equal(call.headers['mcp-session-id'], undefined);
});

test('34. the stored headers outlast a restart of the gateway', async (t) => {
  const { modern, admin, gateway, upstream } = await stage(t);
  const client = modern({ token: 'owner' });
  const { message } = await client.send('tools/call', { name: 'delete_user', arguments: { region: 'eu' } }, { headers: { 'mcp-param-region': 'eu' } });
  const { taskId } = message.result;
  await gateway.restart();
  await admin.approve(taskId);
  const later = modern({ token: 'owner' });
  assert.equal((await ended(t, later, taskId)).status, 'completed');
  const [call] = upstream.calls;
  assert.equal(upstream.calls.length, 1);
  assert.deepEqual([call.headers['mcp-method'], call.headers['mcp-name'], call.headers['mcp-param-region'], call.headers['mcp-protocol-version']], ['tools/call', 'delete_user', 'eu', MODERN]);
});

test('34. the gateway asks a modern server in its own era, with the client\'s credentials', async (t) => {
  const { modern, upstream } = await stage(t);
  const client = modern({ token: 'owner' });
  await client.create('delete_user');
  const asked = await upstream.received((r) => r.rpc?.method === 'tools/list' && r.isGatewaysOwn && r.headers.authorization === 'Bearer owner');
  assert.equal(asked.rpc.params._meta[key('protocolVersion')], MODERN);
  assert.deepEqual([asked.headers['mcp-method'], asked.headers['mcp-name'], asked.headers['mcp-protocol-version']], ['tools/list', undefined, MODERN]);
  assert.equal(upstream.of('ping').length, 0);
});

test('35. a result with isError is completed', async (t) => {
  const bad = complete({ isError: true, content: [{ type: 'text', text: 'no such user' }] });
  const { modern, admin } = await stage(t, { upstream: { handlers: { 'tools/call': ({ reply }) => reply.result(bad) } } });
  const client = modern();
  const { taskId } = await client.create('delete_user');
  await admin.approve(taskId);
  const done = await ended(t, client, taskId);
  assert.equal(done.status, 'completed');
  assert.deepEqual(done.result, bad);
  assert.equal((await admin.task(taskId)).state, 'failed', 'for operators it has failed');
});

test('32. an id of nobody, before a server that announces tasks and has none, is unknown and no unknown method', async (t) => {
  const { modern, upstream } = await stage(t, { upstream: { capabilities: { tools: {}, extensions: { [TASKS_EXTENSION]: {} } }, handlers: { 'tasks/get': ({ reply }) => refuse(reply, 404, -32601, 'Method not found') } } });
  const { status, message } = await modern({ token: 'owner' }).send('tasks/get', { taskId: 'theirs' });
  assert.deepEqual([status, message.error.code, message.error.message], [200, -32602, 'Task not found']);
  assert.equal(upstream.of('tasks/get').length, 1);
});

test("36. the server's error is the task's, verbatim, whatever its HTTP status", async (t) => {
  const errors = [[200, -32050, 'disc full', { n: 1.5 }], [400, -32021, 'needs roots', { requiredCapabilities: { roots: {} } }], [404, -32601, 'gone', undefined]];
  const { modern, admin } = await stage(t, { upstream: { handlers: { 'tools/call': ({ reply, params }) => refuse(reply, ...errors[params.arguments.which]) } } });
  const client = modern();
  for (const [which, [, code, message, data]] of errors.entries()) {
    const { taskId } = await client.create('delete_user', { which });
    await admin.approve(taskId);
    const done = await ended(t, client, taskId);
    assert.equal(done.status, 'failed');
    assert.deepEqual(done.error, { code, message, ...(data ? { data } : {}) });
  }
});

test('37. rejected is failed with -32007 and the reason, undecided past its time with -32008', async (t) => {
  const { modern, admin, upstream } = await stage(t, { gateway: { approval: workflow('5s') } });
  const client = modern();
  const late = await client.create('delete_user');
  const { taskId } = await client.create('delete_user');
  await admin.reject(taskId, 'not on a Friday');
  const rejected = await ended(t, client, taskId);
  assert.equal(rejected.status, 'failed');
  assert.equal(rejected.error.code, -32007);
  assert.match(rejected.error.message, /not on a Friday/);
  assert.match(rejected.statusMessage, /not on a Friday/);
  const expired = await ended(t, client, late.taskId);
  assert.equal(expired.status, 'failed');
  assert.equal(expired.error.code, -32008);
  assert.deepEqual(executed(upstream), []);
});

test('38. a cancel is acknowledged, also the second; an unknown one is -32602', async (t) => {
  const { modern, admin, upstream } = await stage(t);
  const client = modern();
  const { taskId } = await client.create('delete_user');
  const ack = { resultType: 'complete', ...OWN };
  assert.deepEqual(await client.cancel(taskId), ack);
  assert.deepEqual(await client.cancel(taskId), ack);
  assertTaskSchema(t, 'CancelTaskResult', ack);
  assert.equal((await client.get(taskId)).status, 'cancelled');
  assert.equal((await client.error('tasks/cancel', { taskId: 'tg_unknown' })).code, -32602);
  const done = await client.create('delete_user');
  await admin.approve(done.taskId);
  await ended(t, client, done.taskId);
  assert.deepEqual(await client.cancel(done.taskId), ack);
  assert.equal((await client.get(done.taskId)).status, 'completed');
  assert.equal(upstream.calls.length, 1);
});

test("38. a cancel while it executes closes the server's stream, and posts nothing", async (t) => {
  const { modern, admin, upstream } = await stage(t, { upstream: { handlers: { 'tools/call': ({ reply }) => reply.sse().raw(': here\n\n') } } });
  const client = modern();
  const { taskId } = await client.create('delete_user');
  await admin.approve(taskId);
  const call = await upstream.received('tools/call');
  await client.cancel(taskId);
  await call.gone;
  assert.ok(call.left);
  assert.equal((await client.get(taskId)).status, 'cancelled');
  assert.equal(upstream.of('notifications/cancelled').length, 0);
});

test("39. the server's questions become the task's; answered in parts, then whole, it goes on with its own keys and state", async (t) => {
  const rounds = [
    { inputRequests: { name: form('Name?'), 'a "b"': form('Why?') }, requestState: 'state-1' },
    { inputRequests: { name: form('Sure?') }, requestState: 'state-2' },
  ];
  const { modern, admin, upstream, gateway } = await stage(t, {
    upstream: { handlers: { 'tools/call': ({ upstream: up, reply, params }) => reply.result(rounds[up.calls.length - 1] ? { resultType: 'input_required', ...rounds[up.calls.length - 1] } : answerOf(params)) } },
  });
  const client = modern({ capabilities: { ...WITH_TASKS, elicitation: {} } });
  const { taskId } = await client.create('delete_user', { id: 7 });
  await admin.approve(taskId);
  const first = await inStatus(t, client, taskId, 'input_required');
  assert.deepEqual(first.inputRequests, { 'r1:name': form('Name?'), 'r1:a "b"': form('Why?') });
  const said = { action: 'accept', content: { answer: 'x' } };
  assert.deepEqual(await client.update(taskId, { 'r1:name': said }), { resultType: 'complete', ...OWN });
  assert.deepEqual(Object.keys((await inStatus(t, client, taskId, 'input_required')).inputRequests), ['r1:a "b"']);
  assert.equal(upstream.calls.length, 1, 'one answer is missing');
  await client.update(taskId, { 'r1:a "b"': { action: 'decline' } });
  const second = await shown(t, client, taskId, (task) => task.inputRequests?.['r2:name']);
  assert.deepEqual(second.inputRequests, { 'r2:name': form('Sure?') });
  const [once, again] = upstream.calls;
  assert.deepEqual(again.rpc.params, { ...once.rpc.params, inputResponses: { name: said, 'a "b"': { action: 'decline' } }, requestState: 'state-1' });
  assert.notEqual(again.rpc.id, once.rpc.id);
  assert.equal(again.headers['mcp-name'], 'delete_user');
  await client.update(taskId, { 'r2:name': said });
  const done = await ended(t, client, taskId);
  assert.equal(done.status, 'completed');
  assert.deepEqual(upstream.calls[2].rpc.params, { ...once.rpc.params, inputResponses: { name: said }, requestState: 'state-2' });
  assert.equal(upstream.calls.length, 3);
  await until(() => gateway.logs.filter(({ msg }) => msg === 'Executing').length === 1, 'one execution in the log');
});

test('39. a round with a state alone is repeated without asking anybody; 10 rounds are the most', async (t) => {
  const answers = { wait: ({ upstream, reply, params }) => reply.result(upstream.calls.length < 3 ? { resultType: 'input_required', inputRequests: {}, requestState: `s${upstream.calls.length}` } : answerOf(params)), ask: ({ reply }) => reply.result({ resultType: 'input_required', inputRequests: { q: form('Again?') } }) };
  const { modern, admin, upstream } = await stage(t, { upstream: { handlers: { 'tools/call': (call) => answers[call.params.arguments.how](call) } } });
  const client = modern({ capabilities: { ...WITH_TASKS, elicitation: {} } });
  const waits = await client.create('delete_user', { how: 'wait' });
  await admin.approve(waits.taskId);
  assert.equal((await ended(t, client, waits.taskId)).status, 'completed');
  assert.deepEqual(upstream.calls.map(({ rpc }) => rpc.params.requestState), [undefined, 's1', 's2']);
  assert.ok(upstream.calls.every(({ rpc }) => rpc.params.inputResponses === undefined));
  const asks = await client.create('delete_user', { how: 'ask' });
  await admin.approve(asks.taskId);
  for (let round = 1; round <= 10; round++) {
    await shown(t, client, asks.taskId, (task) => task.inputRequests?.[`r${round}:q`]);
    await client.update(asks.taskId, { [`r${round}:q`]: { action: 'accept', content: {} } });
  }
  const failed = await ended(t, client, asks.taskId);
  assert.equal(failed.status, 'failed');
  assert.match(failed.error.data.details, /10 rounds/);
  assert.equal(upstream.calls.length, 3 + 11);
});

test('39. kill -9 between rounds: the outcome is unknown, and nothing runs again', async (t) => {
  const { modern, admin, gateway, upstream } = await stage(t, { upstream: { handlers: { 'tools/call': ({ reply }) => reply.result({ resultType: 'input_required', inputRequests: { q: form('Sure?') } }) } } });
  const capabilities = { ...WITH_TASKS, elicitation: {} };
  const { taskId } = await modern({ capabilities }).create('delete_user');
  await admin.approve(taskId);
  await inStatus(t, modern({ capabilities }), taskId, 'input_required');
  await gateway.kill9();
  await gateway.launch();
  const client = modern({ capabilities });
  const failed = await ended(t, client, taskId);
  assert.deepEqual([failed.status, failed.error.code, failed.error.data.error_type], ['failed', -32603, 'outcome_unknown']);
  await client.update(taskId, { 'r1:q': { action: 'accept' } });
  assert.equal(upstream.calls.length, 1);
});

test('40. an update with unknown and answered keys is acknowledged, and changes nothing', async (t) => {
  const { modern, admin, upstream } = await stage(t, {
    upstream: { handlers: { 'tools/call': ({ reply, params }) => reply.result(params.inputResponses ? answerOf(params) : { resultType: 'input_required', inputRequests: { a: form('A?'), b: form('B?') } }) } },
  });
  const client = modern({ capabilities: { ...WITH_TASKS, elicitation: {} } });
  const { taskId } = await client.create('delete_user');
  await client.update(taskId, { 'r1:a': { action: 'accept' } }); // nothing is asked yet
  await admin.approve(taskId);
  await inStatus(t, client, taskId, 'input_required');
  await client.update(taskId, { 'r1:a': { action: 'accept', content: { answer: 'first' } }, a: {}, 'r2:a': {}, x: 1 });
  await client.update(taskId, { 'r1:a': { action: 'accept', content: { answer: 'second' } } });
  assert.deepEqual(Object.keys((await client.get(taskId)).inputRequests), ['r1:b']);
  await client.update(taskId, { 'r1:b': { action: 'cancel' } });
  await ended(t, client, taskId);
  assert.deepEqual(upstream.calls[1].rpc.params.inputResponses, { a: { action: 'accept', content: { answer: 'first' } }, b: { action: 'cancel' } });
  await client.update(taskId, { 'r1:b': { action: 'accept' } });
  for (const inputResponses of [undefined, [], 'x', null]) {
    const { status, message } = await client.send('tasks/update', { taskId, inputResponses });
    assert.deepEqual([status, message.error.code], [400, -32602], JSON.stringify(inputResponses));
  }
  assert.equal(upstream.calls.length, 2);
});

test("41. a task of the server's is wrapped: its questions, its end and a cancel", async (t) => {
  const maker = taskMaker();
  const { modern, admin, upstream } = await stage(t, { upstream: { makesTasks: true, handlers: maker.handlers } });
  const client = modern({ capabilities: { ...WITH_TASKS, elicitation: {} } });
  const begin = async () => {
    const { taskId } = await client.create('delete_user');
    await admin.approve(taskId);
    const own = await until(() => [...maker.tasks.values()].at(-1), 'the server\'s task');
    maker.tasks.delete(own.taskId);
    maker.tasks.set(own.taskId, own);
    return { taskId, own };
  };
  const { taskId, own } = await begin();
  Object.assign(own, { status: 'input_required', inputRequests: { q: form('Sure?'), p: form('Why?') } });
  const asked = await inStatus(t, client, taskId, 'input_required');
  assert.deepEqual(asked.inputRequests, { 'r1:q': form('Sure?'), 'r1:p': form('Why?') });
  const said = { action: 'accept', content: { answer: 'y' } };
  await client.update(taskId, { 'r1:q': said });
  await until(() => own.updates.length === 1, 'the update upstream');
  assert.deepEqual(own.updates, [{ q: said }]);
  assert.deepEqual(Object.keys((await client.get(taskId)).inputRequests), ['r1:p']);
  const result = complete({ content: [{ type: 'text', text: 'done' }] });
  Object.assign(own, { status: 'completed', inputRequests: undefined, result });
  const done = await ended(t, client, taskId);
  assert.deepEqual([done.status, done.result], ['completed', result]);
  const [poll] = upstream.of('tasks/get');
  assert.deepEqual([poll.headers['mcp-method'], poll.headers['mcp-name'], poll.rpc.params._meta], ['tasks/get', own.taskId, client.envelope()]);
  assert.equal(upstream.calls.length, 1);
});

test("41. a task of the server's that fails or is cancelled ends so, and a cancel of ours reaches it", async (t) => {
  const maker = taskMaker();
  const { modern, admin } = await stage(t, { upstream: { makesTasks: true, handlers: maker.handlers } });
  const client = modern();
  const begin = async (id) => {
    const { taskId } = await client.create('delete_user');
    await admin.approve(taskId);
    return { taskId, own: await until(() => maker.tasks.get(id), 'the server\'s task') };
  };
  const fails = await begin('up-1');
  Object.assign(fails.own, { status: 'failed', error: { code: -32050, message: 'disc full', data: { n: 1 } } });
  assert.deepEqual((await ended(t, client, fails.taskId)).error, { code: -32050, message: 'disc full', data: { n: 1 } });
  const stops = await begin('up-2');
  stops.own.status = 'cancelled';
  assert.equal((await ended(t, client, stops.taskId)).status, 'cancelled');
  const given = await begin('up-3');
  await client.cancel(given.taskId);
  await until(() => given.own.isCancelled, 'the cancel upstream');
  assert.equal((await client.get(given.taskId)).status, 'cancelled');
});

test('42. approvals and polls that race each other execute once', async (t) => {
  const { modern, admin, upstream } = await stage(t, { gateway: { config: { execution: 'on_result' } } });
  const client = modern({ token: 'owner' });
  const { taskId } = await client.create('delete_user');
  const answers = await Promise.all([1, 2, 3].map(() => admin.decide('approve', taskId)));
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  await Promise.all([1, 2, 3, 4].map(() => client.get(taskId)));
  assert.equal((await ended(t, client, taskId)).status, 'completed');
  assert.deepEqual(executed(upstream), ['delete_user']);
});

test('43. tasks/get with a wrong, doubled or missing Mcp-Name: 400 and -32020', async (t) => {
  const { modern } = await stage(t);
  const client = modern();
  const { taskId } = await client.create('delete_user');
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    for (const name of ['tg_other', undefined, [taskId, taskId], taskId.toUpperCase(), '=?base64?!?=']) {
      const { status, message } = await client.send(method, { taskId, inputResponses: {} }, { headers: { 'mcp-name': name } });
      assert.deepEqual([status, message.error.code], [400, -32020], `${method} ${name}`);
    }
  }
  const encoded = await client.send('tasks/get', { taskId }, { headers: { 'mcp-name': `=?base64?${Buffer.from(taskId).toString('base64')}?=` } });
  assert.equal(encoded.message.result.taskId, taskId);
  assert.equal(mirrored(taskId), taskId);
});
