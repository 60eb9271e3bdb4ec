// A modern client without tasks, after its call was approved: the server's questions, and the gateway's tools for the task's id.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { key, WITH_TASKS } from './lib/modern_client.mjs';
import { answerOf, complete, form } from './lib/modern_upstream.mjs';
import { modernSdkClient } from './lib/modern_sdk.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { assertSchema } from './lib/schema.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const REFUSAL = 'requestState is not valid for this call';
const OWNER = { capabilities: { elicitation: {} }, token: 'owner' };
const stage = (t, { wait = '30s', rules = [['delete_*', 'approve']], rounds, ...more } = {}) =>
  modernScene(t, {
    rules,
    approval: workflow('10m'),
    source: { era: 'modern' },
    config: { pseudo_tools: { promote: 'wait', only: 'all', wait, ...(rounds === undefined ? {} : { rounds }) }, ...more.config },
    upstream: { tools: [tool('delete_user'), tool('read')], ...more.upstream },
  });
const call = (client, args = {}, more = {}, options) => client.send('tools/call', { name: 'delete_user', arguments: args, ...more }, options);

/** A server that asks `questions`, round by round, before it answers; what it was sent is in `rounds`. */
function asking(...questions) {
  const server = { rounds: [] };
  server.handlers = {
    'tools/call': ({ reply, params }) => {
      server.rounds.push({ inputResponses: params.inputResponses, requestState: params.requestState, arguments: params.arguments });
      const round = server.rounds.length - 1;
      if (round < questions.length) reply.result(complete({ resultType: 'input_required', inputRequests: questions[round], requestState: `up-${round}` }));
      else reply.result(answerOf(params));
    },
  };
  return server;
}
const accept = (answer) => ({ action: 'accept', content: { answer } });

/** An answer with questions: their keys and the state. */
async function asked(t, pending, keys) {
  const { status, message } = await pending;
  assert.equal(status, 200);
  assertSchema(t, 'InputRequiredResult', message.result, 'modern');
  assert.deepEqual(Object.keys(message.result.inputRequests), keys, JSON.stringify(message));
  return message.result.requestState;
}

test('the server asks twice during the execution; the held call is answered with it, and repeated', async (t) => {
  const server = asking({ a: form('A?'), b: form('B?') }, { a: form('A again?') });
  const { modern, admin } = await stage(t, { upstream: { handlers: server.handlers } });
  const client = modern(OWNER);
  const first = call(client, { id: 7 });
  await admin.approve((await admin.pending()).id);
  let state = await asked(t, first, ['r1:a', 'r1:b']);
  const answers = { 'r1:b': accept('2'), 'r9:x': accept('no'), a: accept('no') };
  state = await asked(t, call(client, { id: 7 }, { requestState: state, inputResponses: answers }), ['r1:a']);
  assert.equal(server.rounds.length, 1, 'not before all is answered');
  const foreign = await call(modern({ ...OWNER, token: 'other' }), { id: 7 }, { requestState: state, inputResponses: { 'r1:a': accept('stolen') } });
  assert.deepEqual([foreign.message.error.code, foreign.message.error.message], [-32602, REFUSAL]);
  const others = await call(client, { id: 8 }, { requestState: state, inputResponses: { 'r1:a': accept('8') } });
  assert.equal(others.message.error.code, -32602, 'the approved arguments alone');
  const used = state;
  state = await asked(t, call(client, { id: 7 }, { requestState: state, inputResponses: { 'r1:a': accept('1') } }), ['r2:a']);
  assert.deepEqual(server.rounds[1], { inputResponses: { a: accept('1'), b: accept('2') }, requestState: 'up-0', arguments: { id: 7 } });
  const [done, again] = await Promise.all([
    call(client, { id: 7 }, { requestState: state, inputResponses: { 'r2:a': accept('3') } }),
    call(client, { id: 7 }, { requestState: used, inputResponses: { 'r1:a': accept('late') } }),
  ]);
  assert.deepEqual(done.message.result, answerOf({ name: 'delete_user', arguments: { id: 7 } }));
  if (again.message.result.resultType === 'complete') assert.deepEqual(again.message.result, done.message.result);
  else assert.deepEqual(Object.keys(again.message.result.inputRequests), ['r2:a'], 'an old state tells what is asked now');
  assert.deepEqual(server.rounds[2], { inputResponses: { a: accept('3') }, requestState: 'up-1', arguments: { id: 7 } });
  assert.equal(server.rounds.length, 3, 'one execution');
});

test('a client that was away when the server asked is asked when it comes back', async (t) => {
  const server = asking({ a: form('A?') });
  const { modern, admin } = await stage(t, { wait: '300ms', upstream: { handlers: server.handlers } });
  const client = modern(OWNER);
  const { message } = await call(client);
  const [{ id }] = (await admin.list()).tasks;
  await admin.approve(id);
  const stream = await client.stream('tools/call', { name: 'delete_user', arguments: {}, requestState: message.result.requestState }, { meta: { progressToken: 'p' } });
  const question = await stream.message((m) => m.id === stream.id);
  assert.deepEqual(Object.keys(question.result.inputRequests), ['r1:a']);
  await asked(t, call(client), ['r1:a']);
  const state = await asked(t, call(client, {}, { requestState: message.result.requestState }), ['r1:a']);
  const done = await call(client, {}, { requestState: state, inputResponses: { 'r1:a': accept('x') } });
  assert.equal(done.message.result.resultType, 'complete');
  assert.equal(server.rounds.length, 2);
});

test('a client is not asked for an undeclared capability: the call fails, and nothing is sent again', async (t) => {
  for (const [capabilities, request] of [[{}, form('A?')], [{ elicitation: { url: {} } }, form('A?')], [{ elicitation: {} }, { method: 'elicitation/create', params: { mode: 'url', url: 'https://x.example', message: 'm' } }], [{ elicitation: {} }, { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }], [{ sampling: {} }, { method: 'roots/list' }]]) {
    const server = asking({ a: request });
    const { modern, admin } = await stage(t, { upstream: { handlers: server.handlers } });
    const answer = call(modern({ capabilities, token: 'owner' }));
    await admin.approve((await admin.pending()).id);
    const { message } = await answer;
    assert.deepEqual([message.error?.code, message.error?.data.error_type], [-32603, 'upstream_error'], JSON.stringify([capabilities, message]));
    assert.equal(server.rounds.length, 1);
  }
});

test('sampling and roots are asked of a client that declares them', async (t) => {
  const sampling = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } };
  const server = asking({ s: sampling, r: { method: 'roots/list' } });
  const { modern, admin } = await stage(t, { upstream: { handlers: server.handlers } });
  const client = modern({ capabilities: { sampling: {}, roots: {} }, token: 'owner' });
  const answer = call(client);
  await admin.approve((await admin.pending()).id);
  const state = await asked(t, answer, ['r1:s', 'r1:r']);
  const said = { 'r1:s': { role: 'assistant', content: { type: 'text', text: 't' }, model: 'm' }, 'r1:r': { roots: [] } };
  assert.equal((await call(client, {}, { requestState: state, inputResponses: said })).message.result.resultType, 'complete');
  assert.deepEqual(server.rounds[1].inputResponses, { s: said['r1:s'], r: said['r1:r'] });
});

test('SDK 2.4 without tasks answers the questions of an approved call by itself', async (t) => {
  const server = asking({ a: form('Name?') });
  const { gateway, admin } = await stage(t, { upstream: { handlers: server.handlers } });
  const client = await modernSdkClient(t, gateway.url, {
    capabilities: { elicitation: { form: {} } },
    headers: { authorization: 'Bearer owner' },
    prepare: (sdk) => sdk.setRequestHandler('elicitation/create', () => accept('Ada')),
  });
  const result = client.callTool({ name: 'delete_user', arguments: {} });
  await admin.approve((await admin.pending()).id);
  assert.equal((await result).structuredContent.tool, 'delete_user');
  assert.deepEqual(server.rounds[1].inputResponses, { a: accept('Ada') });
});

// ---- the gateway's own tools ----

const names = async (client, options) => (await client.result('tools/list', {}, options)).tools.map(({ name }) => name);

test('48. a client without tasks is shown the tools for the id that the third answer names, and they lead to the outcome', async (t) => {
  const { modern, admin, upstream } = await stage(t, { wait: '300ms', rounds: 0 });
  const client = modern({ capabilities: {}, token: 'owner' });
  const list = await client.result('tools/list');
  assertSchema(t, 'ListToolsResult', list, 'modern');
  assert.deepEqual(list.tools.map(({ name }) => name), ['delete_user', 'read', 'get_task_result', 'cancel_task', 'await_activity']);
  for (const { execution, annotations, name } of list.tools) assert.deepEqual([execution, annotations?.taskSupport], [undefined, undefined], name);
  const { message } = await call(client);
  const [{ id }] = (await admin.list()).tasks;
  const text = message.result.content[0].text;
  assert.ok(text.includes(id) && text.includes('get_task_result'), text);
  const own = (name, args) => client.send('tools/call', { name, arguments: args });
  const early = (await own('get_task_result', { task_id: id, timeout_ms: 0 })).message.result;
  assertSchema(t, 'CallToolResult', early, 'modern');
  assert.deepEqual([early.resultType, early.isError], ['complete', true]);
  const foreign = await modern({ capabilities: {}, token: 'other' }).send('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  assert.match(foreign.message.result.content[0].text, /not found/);
  await admin.approve(id);
  assert.equal(upstream.calls.length, 0, 'nobody has come back for it');
  const result = (await own('get_task_result', { task_id: id })).message.result;
  assert.deepEqual(result.structuredContent, answerOf({ name: 'delete_user', arguments: {} }).structuredContent);
  assert.equal(result.resultType, 'complete');
  const activity = (await own('await_activity', { timeout_ms: 0 })).message.result;
  assertSchema(t, 'CallToolResult', activity, 'modern');
  assert.equal(activity.resultType, 'complete');
  assert.equal(upstream.calls.length, 1);
  assert.ok(upstream.requests.every(({ rpc }) => !['get_task_result', 'await_activity'].includes(rpc?.params?.name)), 'they are no server\'s');
});

test('48. without credentials the id alone leads to the outcome', async (t) => {
  const { modern, admin } = await stage(t, { wait: '300ms', rounds: 0 });
  const client = modern({ capabilities: {} });
  assert.deepEqual(await names(client), ['delete_user', 'read', 'get_task_result', 'cancel_task']);
  await call(client);
  const [{ id }] = (await admin.list()).tasks;
  await admin.approve(id);
  assert.equal((await client.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } })).structuredContent.tool, 'delete_user');
});

test('48. the tools are shown to those alone who need them', async (t) => {
  const { modern, upstream } = await stage(t);
  assert.deepEqual(await names(modern({ token: 'owner' })), ['delete_user', 'read'], 'a client with tasks');
  const one = modern({ capabilities: {}, token: 'owner' });
  assert.equal((await names(one)).length, 5);
  assert.deepEqual(await names(one, { meta: { [key('clientCapabilities')]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } } }), ['delete_user', 'read'], 'each request declares anew');
  const theirs = await modern({ token: 'owner' }).result('tools/call', { name: 'get_task_result', arguments: {} });
  assert.deepEqual(theirs.structuredContent.tool, 'get_task_result', 'a client with tasks means the server\'s');
  assert.equal((await one.result('tools/call', { name: 'execute_tool', arguments: {} })).structuredContent.tool, 'execute_tool', 'others of the legacy era are not served');
  assert.equal(upstream.calls.length, 2);
  const open = await stage(t, { rules: [['delete_*', 'deny']] });
  assert.deepEqual(await names(open.modern({ capabilities: {} })), ['delete_user', 'read'], 'nothing is ever held');
  const never = await modernScene(t, { rules: [['delete_*', 'approve']], source: { era: 'modern' }, config: { pseudo_tools: { promote: 'wait', only: 'all', mode: 'never' } }, upstream: { tools: [tool('read')] } });
  assert.deepEqual(await names(never.modern({ capabilities: {} })), ['read']);
  const taken = await stage(t, { upstream: { tools: [tool('get_task_result')] } });
  const client = taken.modern({ capabilities: {}, token: 'owner' });
  assert.deepEqual((await names(client)).sort(), ['await_activity', 'cancel_task', 'get_task_result', 'taskgate_get_task_result'].sort());
});

test('a round has 100 questions at most: a server that asks more ends its call, which a poll costs nothing', async (t) => {
  const many = (count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`q${i}`, form(`${i}?`)]));
  for (const [count, state] of [[100, 'completed'], [101, 'failed']]) {
    const server = asking(many(count));
    const { modern, admin } = await stage(t, { upstream: { handlers: server.handlers } });
    const client = modern({ capabilities: { elicitation: {}, ...WITH_TASKS }, token: 'owner' });
    const { taskId } = await client.create('delete_user', {});
    await admin.approve(taskId);
    if (state === 'completed') {
      const { inputRequests } = await until(async () => {
        const shown = await client.get(taskId);
        return shown.inputRequests && shown;
      }, 'the questions');
      const keys = Object.keys(inputRequests);
      assert.equal(keys.length, count);
      await client.update(taskId, Object.fromEntries(keys.map((key) => [key, accept('x')])));
    }
    const task = await admin.inState(taskId, state);
    if (state === 'failed') assert.match(task.statusMessage, /more than 100 questions/);
    assert.equal(server.rounds.length, state === 'failed' ? 1 : 2);
  }
});

test('a client without tasks cancels the call that its answer names', async (t) => {
  const { modern, admin, upstream } = await stage(t, { wait: '300ms', rounds: 0 });
  const client = modern({ capabilities: {}, token: 'owner' });
  await call(client);
  const [{ id }] = (await admin.list()).tasks;
  const done = (await client.send('tools/call', { name: 'cancel_task', arguments: { task_id: id } })).message.result;
  assertSchema(t, 'CallToolResult', done, 'modern');
  assert.deepEqual([done.resultType, done.isError], ['complete', false]);
  await admin.inState(id, 'cancelled');
  assert.equal(upstream.calls.length, 0);
});

test('clients[].wait holds for modern clients of that name, too', async (t) => {
  const { modern } = await stage(t, { wait: '40s', config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '40s', rounds: 1 }, clients: [{ match: 'hasty*', wait: '300ms' }] } });
  const client = modern({ capabilities: {}, token: 'owner', info: { name: 'hasty', version: '1' } });
  const held = (await call(client)).message.result;
  assert.deepEqual([held.resultType, held.inputRequests], ['input_required', {}]);
});
