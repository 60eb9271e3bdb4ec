// A third protocol of servers (tests/third) that answers from a script: the middle and the edges of clients know nothing of a server's era.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { elicit, PARTY } from './lib/asking.mjs';
import { accept, ALL, FORMS } from './lib/bridged_stage.mjs';
import { BINARY, workflow } from './lib/gateway.mjs';
import { modernClient, WITH_TASKS } from './lib/modern_client.mjs';
import { modernUpstream } from './lib/modern_upstream.mjs';
import { PLAIN, promoted } from './lib/promotion.mjs';
import { callTool } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const binary = path.join(path.dirname(BINARY), 'tests/third/taskgate-third');
const skip = fs.existsSync(binary) ? false : `${binary} is not built`;

const TOOLS = [tool('read'), tool('delete_user')];
const content = (text) => ({ content: [{ type: 'text', text }] });
const progress = (progressToken, value) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: value } });
const note = (data) => ({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data } });
const form = { method: 'elicitation/create', params: { mode: 'form', ...PARTY } };

/** The stage. Its server lists tools, and gets no call. */
async function stage(t, upstream, options = { source: { bridge: 'modern' } }) {
  const staged = await scene(t, { binary, upstream, ...options });
  const told = (what) => staged.gateway.logged((entry) => entry.msg === 'The third server is told' && entry.what.startsWith(what));
  const modern = (more = {}) => modernClient(t, staged.gateway.url, { token: 'owner', capabilities: {}, ...more });
  return { ...staged, told, modern, nothingSent: () => assert.deepEqual(staged.upstream.calls, []) };
}

// ---- a modern client: the conversation between them, and the client's edge ----

test('a modern client: a result, an error, and what is lost', { skip }, async (t) => {
  const { modern, nothingSent } = await stage(t, { tools: TOOLS });
  const client = modern();
  const call = (script) => client.send('tools/call', { name: 'read', arguments: { script } });
  const { result } = (await call([{ event: 'result', text: { ...content('third'), structuredContent: { n: 1 } } }])).message;
  assert.deepEqual([result.resultType, result.content, result.structuredContent], ['complete', content('third').content, { n: 1 }]);
  assert.deepEqual((await call([{ event: 'error', text: { code: -32050, message: 'own', data: [1] } }])).message.error, { code: -32050, message: 'own', data: [1] });
  const lost = [];
  for (const reason of [0, 1, 2, 3, 5]) lost.push((await call([{ event: 'lost', lost: reason }])).message.error.code);
  assert.deepEqual(lost, [-32000, -32000, -32001, -32603, -32000]);
  nothingSent();
});

test('a modern client: progress and logs by what it asked for, and no other notice', { skip }, async (t) => {
  const { modern } = await stage(t, { tools: TOOLS });
  const script = [{ event: 'progress', text: progress('first', 1) }, { event: 'log', text: note('hello') }, { event: 'notice', text: { jsonrpc: '2.0', method: 'notifications/other' } }, { event: 'result' }];
  const meta = { progressToken: 'mine', 'io.modelcontextprotocol/logLevel': 'info' };
  const answer = await modern().send('tools/call', { name: 'read', arguments: { script } }, { meta });
  assert.deepEqual(answer.others, [progress('mine', 1), note('hello')]);
  assert.deepEqual(answer.message.result.structuredContent, { told: [] });
});

test('a modern client: questions are a round; one that cannot be asked, one that is withdrawn, answers, and the rest', { skip }, async (t) => {
  const { modern, nothingSent } = await stage(t, { tools: TOOLS });
  const client = modern({ capabilities: FORMS });
  const question = (id, request) => ({ event: 'question', id, request });
  const script = [question('a', form), question('b', { method: 'roots/list' }), 'told', question('c', form), { event: 'withdrawn', id: 'c' }, 'told', { event: 'progress', text: progress('first', 2) }, { event: 'result' }];
  const call = (more) => client.send('tools/call', { name: 'read', arguments: { script }, ...more }, { meta: { progressToken: 'mine' } });
  const asked = (await call()).message.result;
  assert.deepEqual([asked.resultType, asked.inputRequests], ['input_required', { 'r1.1': form }]);
  const answer = await call({ requestState: asked.requestState, inputResponses: { 'r1.1': accept({ n: 1 }) } });
  assert.deepEqual(answer.message.result.structuredContent, { told: ['cannot be asked "b" ', 'answered "a" {"action":"accept","content":{"n":1}}'] });
  assert.deepEqual(answer.others, [progress('mine', 2)]);
  nothingSent();
});

test('a modern client: one that leaves, and one that does not come back', { skip }, async (t) => {
  const { modern, gateway, told } = await stage(t, { tools: TOOLS }, { source: { bridge: 'modern' }, config: { pseudo_tasks: { elicitation_timeout: '300ms' } } });
  const client = modern({ capabilities: FORMS });
  const leaving = await client.stream('tools/call', { name: 'read', arguments: { script: [{ event: 'progress', text: progress('p', 1) }, 'told'] } }, { meta: { progressToken: 'p' } });
  leaving.abort();
  await told('cancel the client has closed the stream');
  await client.result('tools/call', { name: 'read', arguments: { script: [{ event: 'question', id: 'a', request: form }] } });
  await told('not answered "a"');
  await told('cancel the client has not answered');
  assert.deepEqual((await client.result('tools/call', { name: 'read', arguments: { script: [{ event: 'result' }] } })).structuredContent, { told: [] });
  await gateway.stop();
});

// ---- a legacy client: its edge takes the link itself ----

const MODERN = { source: { era: 'modern' } };

test('a legacy client: a result, an error, progress, logs, and what is lost', { skip }, async (t) => {
  const { connect, nothingSent } = await stage(t, modernUpstream({ tools: TOOLS }), MODERN);
  const client = await connect();
  const call = (script) => client.send('tools/call', { name: 'read', arguments: { script }, _meta: { progressToken: 'p' } });
  const answer = await call([{ event: 'progress', text: progress('p', 1) }, { event: 'log', text: note('hello') }, { event: 'notice', text: { jsonrpc: '2.0', method: 'notifications/other' } }, { event: 'result', text: content('third') }]);
  assert.deepEqual([answer.others, answer.message.result], [[progress('p', 1), note('hello')], content('third')]);
  assert.deepEqual((await call([{ event: 'error', text: { code: -32050, message: 'own', data: [1] } }])).message.error, { code: -32050, message: 'own', data: [1] });
  const codes = [];
  for (const reason of [0, 1, 2, 3]) codes.push((await call([{ event: 'lost', lost: reason }])).message.error.code);
  assert.deepEqual(codes, [-32000, -32000, -32001, -32002]);
  const lost = [];
  for (const reason of [7, 8, 9, 10]) {
    const { result } = (await call([{ event: 'lost', lost: reason }])).message;
    assert.equal(result.isError, true);
    lost.push(result.content[0].text.split(' ').slice(0, 5).join(' '));
  }
  assert.deepEqual(lost, ['The server requires input, and', 'The server still required input', 'The server asked for the', 'The client has not answered']);
  nothingSent();
});

test('a legacy client: a round is asked on its stream; a server that wants the request again gets it', { skip }, async (t) => {
  const { connect, nothingSent } = await stage(t, modernUpstream({ tools: TOOLS }), MODERN);
  const client = await connect({ capabilities: ALL });
  const script = [{ event: 'round' }, 'told', { event: 'again' }, 'told', { event: 'round', text: { key: form } }, 'told', { event: 'result' }];
  const stream = await client.stream('tools/call', { name: 'read', arguments: { script } });
  const question = await stream.message(({ method }) => method === 'elicitation/create');
  assert.equal(question.params.message, PARTY.message);
  await client.post({ jsonrpc: '2.0', id: question.id, result: accept({ n: 1 }) });
  const { result } = await stream.message(({ id }) => id === stream.id);
  assert.deepEqual(result.structuredContent.told, ['pause ', 'round ', 'round {"key":{"action":"accept","content":{"n":1}}}']);
  nothingSent();
});

test('a legacy client that is asked by tools: its call becomes a task, with its answer and result, or its cancel', { skip }, async (t) => {
  const wait = { promote: 'wait', only: 'all', wait: '100ms', wait_max: '100ms' };
  const { connect, told, nothingSent } = await stage(t, modernUpstream({ tools: TOOLS }), { ...MODERN, config: { pseudo_tools: wait } });
  const client = await connect(PLAIN);
  const call = async (...script) => promoted(await callTool(client, 'read', { script: [{ event: 'round', text: { key: form } }, 'told', ...script] })).id;
  const done = await call('told', { event: 'result', reply: true });
  const [{ requestId }] = await until(async () => (await callTool(client, 'get_elicitations')).structuredContent?.elicitations, 'the question');
  await callTool(client, 'respond_to_elicitation', { request_id: requestId, action: 'accept', content: { partySize: 4 } });
  const result = await until(async () => (await callTool(client, 'get_task_result', { task_id: done })).structuredContent?.told, 'the result');
  assert.deepEqual(result, ['moved ', 'round {"key":{"action":"accept","content":{"partySize":4}}}']);
  await callTool(client, 'cancel_task', { task_id: await call('told') });
  await told('cancel cancelled');
  nothingSent();
});

// ---- approved calls: nobody is attached ----

/** The task once the server has asked something. */
const asked = (client, taskId) =>
  until(async () => {
    const task = await client.get(taskId);
    return task.status === 'input_required' && task;
  }, 'the question');

/** A modern client with tasks, and a call that somebody has approved; the task once it has ended, as the client sees it. */
async function approved(t, script, while_ = async () => {}, [upstream, source] = [modernUpstream({ tools: TOOLS }), { era: 'modern' }]) {
  const staged = await stage(t, upstream, { source, rules: [['delete_*', 'approve']], approval: workflow('10m') });
  const client = staged.modern({ capabilities: { ...WITH_TASKS, ...FORMS } });
  const { taskId } = await client.create('delete_user', { script });
  await staged.admin.approve(taskId);
  await while_({ ...staged, client, taskId });
  await staged.admin.inState(taskId, 'completed', 'failed', 'cancelled');
  const task = await client.get(taskId);
  staged.nothingSent();
  return task;
}

test('an approved call: its result, and its error', { skip }, async (t) => {
  const done = await approved(t, [{ event: 'progress', text: progress('p', 1) }, { event: 'result', text: { ...content('third'), resultType: 'complete' } }]);
  assert.deepEqual([done.status, done.result.content], ['completed', content('third').content]);
  const failed = await approved(t, [{ event: 'error', text: { code: -32050, message: 'own' } }]);
  assert.deepEqual([failed.status, failed.error.message], ['failed', 'own']);
});

test("an approved call that the server runs as a task of its own: its question, the answer, and its end", { skip }, async (t) => {
  const task = await approved(t, [{ event: 'followed', text: 'theirs' }, { event: 'round', text: { key: form } }, 'told', { event: 'withdrawn' }, { event: 'result' }], async ({ client, taskId, admin }) => {
    const asking = await asked(client, taskId);
    const [key] = Object.keys(asking.inputRequests);
    assert.equal((await admin.task(taskId)).state, 'executing');
    await client.update(taskId, { [key]: accept({ n: 1 }) });
  });
  assert.deepEqual([task.status, task.result.structuredContent], ['completed', { told: ['round {"key":{"action":"accept","content":{"n":1}}}'] }]);
});

test('an approved call: a round of the call itself, and a cancel while the server works', { skip }, async (t) => {
  const task = await approved(t, [{ event: 'round', text: { key: form } }, 'told', { event: 'result' }], async ({ client, taskId }) => {
    const asking = await asked(client, taskId);
    await client.update(taskId, { [Object.keys(asking.inputRequests)[0]]: accept({ n: 1 }) });
  });
  assert.deepEqual(task.result.structuredContent, { told: ['round {"key":{"action":"accept","content":{"n":1}}}'] });
  const cancelled = await approved(t, [{ event: 'followed', text: 'theirs' }, { event: 'round', text: { key: form } }, 'told'], async ({ client, taskId, told }) => {
    await asked(client, taskId);
    await client.cancel(taskId);
    await told('cancel');
  });
  assert.equal(cancelled.status, 'cancelled');
});

const LEGACY = [{ tools: TOOLS }, { era: 'legacy', bridge: 'modern' }];

test('an approved call in a session of its own: questions of the task, one withdrawn, an answer, a cancel', { skip }, async (t) => {
  const question = (id) => ({ event: 'question', id, request: form });
  const task = await approved(t, [question('a'), question('b'), { event: 'withdrawn', id: 'b' }, 'told', { event: 'result' }], async ({ client, taskId }) => {
    const shown = await until(async () => {
      const asking = await asked(client, taskId);
      return Object.keys(asking.inputRequests).length === 1 && asking;
    }, 'the question that is left');
    await client.update(taskId, { [Object.keys(shown.inputRequests)[0]]: accept({ n: 1 }) });
  }, LEGACY);
  assert.deepEqual([task.status, task.result.structuredContent], ['completed', { told: ['answered "a" {"action":"accept","content":{"n":1}}'] }]);
  const cancelled = await approved(t, [question('a'), 'told'], async ({ client, taskId, told }) => {
    await asked(client, taskId);
    await client.cancel(taskId);
    await told('cancel');
  }, LEGACY);
  assert.equal(cancelled.status, 'cancelled');
});

test("an approved call in its client's own session: its result, and its error", { skip }, async (t) => {
  const { connect, admin, nothingSent } = await stage(t, { tools: TOOLS }, { source: { era: 'legacy' }, rules: [['delete_*', 'approve']], approval: workflow('10m') });
  const client = await connect();
  const outcome = async (script) => {
    const { taskId } = await client.createTask('delete_user', { script });
    await admin.approve(taskId);
    await admin.inState(taskId, 'completed', 'failed');
    return (await client.send('tasks/result', { taskId })).message;
  };
  assert.deepEqual((await outcome([{ event: 'message', text: progress('p', 1) }, { event: 'result', text: content('third') }])).result.content, content('third').content);
  assert.equal((await outcome([{ event: 'error', text: { code: -32050, message: 'own' } }])).error.message, 'own');
  nothingSent();
});
