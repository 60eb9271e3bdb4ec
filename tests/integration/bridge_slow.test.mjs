// Slow calls of legacy clients at a modern server: they become tasks where the same call at a legacy server would.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PARTY } from './lib/asking.mjs';
import { modernServer, PREFIX } from './lib/modern.mjs';
import { complete } from './lib/modern_upstream.mjs';
import { PLAIN, promoted, SENTENCE, stage as promotionStage } from './lib/promotion.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const stage = (t, { upstream = {}, ...options } = {}) => {
  const { handlers, ...server } = modernServer({ tools: [tool('slow'), tool('slow_list', { outputSchema: { type: 'array' } })], ...upstream });
  const { 'tools/call': _, ...others } = handlers; // the stage's own holds the calls
  return promotionStage(t, { source: { era: 'modern' }, upstream: { ...server, handlers: others }, ...options });
};
const ended = complete({ content: [{ type: 'text', text: 'at last' }], structuredContent: { n: 7 }, _meta: { [`${PREFIX}serverInfo`]: { name: 's', version: '1' } } });
const outcome = (agent, id) => agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });

test('a slow call becomes a task; the server goes on with it, and its result is that of the legacy era', async (t) => {
  const { upstream, admin, connect, held } = await stage(t);
  const agent = await connect({ ...PLAIN, token: 'mine' });
  const answer = await agent.send('tools/call', { name: 'slow', arguments: { n: 7 } });
  const { id, text, block } = promoted(answer.message.result);
  assert.match(text, SENTENCE(400, id));
  assert.deepEqual([block.proxy_task.status, block.proxy_task.tool], ['working', 'slow']);
  assert.equal((await admin.task(id)).state, 'executing');
  held[0].reply.result(ended);
  await admin.inState(id, 'completed');
  const { content, structuredContent, resultType } = await outcome(agent, id);
  assert.deepEqual([content[0].text, structuredContent, resultType], ['at last', { n: 7 }, undefined]);
  assert.equal(upstream.calls.length, 1);
  assert.equal(upstream.calls[0].headers['mcp-name'], 'slow');
});

test('the same on an event stream, after progress; a wrapped output stays wrapped; a fast answer is no task', async (t) => {
  const { admin, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  await agent.result('tools/list');
  const streaming = agent.stream('tools/call', { name: 'slow_list', arguments: {}, _meta: { progressToken: 'p' } });
  const theirs = (await until(() => held[0], 'the call')).reply.sse();
  const progress = (n) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: n } });
  theirs.event(progress(1));
  const stream = await streaming;
  assert.deepEqual(await stream.message(), progress(1));
  const { result } = await stream.message((m) => m.id === stream.id);
  const id = JSON.parse(result.content[1].text).proxy_task.task_id;
  theirs.event(progress(2));
  theirs.event({ jsonrpc: '2.0', id: held[0].id, result: complete({ content: [], structuredContent: [1] }) });
  theirs.end();
  await admin.inState(id, 'completed');
  assert.deepEqual((await outcome(agent, id)).structuredContent, { result: [1] });
  const fast = agent.result('tools/call', { name: 'slow', arguments: {} });
  (await until(() => held[1], 'the second call')).reply.result(ended);
  assert.deepEqual((await fast).structuredContent, { n: 7 });
});

test('a client that leaves: its call goes on, and the same call again gets the outcome', async (t) => {
  const { upstream, admin, connect, held } = await stage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '30s' } } });
  const agent = await connect({ ...PLAIN, token: 'mine' });
  const gone = agent.stream('tools/call', { name: 'slow', arguments: {}, _meta: { progressToken: 'p' } });
  const theirs = (await until(() => held[0], 'the call')).reply.sse();
  theirs.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } });
  await (await gone).message();
  agent.close();
  const task = await until(async () => (await admin.list()).tasks[0], 'the task');
  assert.equal(task.state, 'executing');
  const back = await connect({ ...PLAIN, token: 'mine' });
  back.session = agent.session;
  const again = back.result('tools/call', { name: 'slow', arguments: {}, _meta: { progressToken: 'p' } });
  theirs.event({ jsonrpc: '2.0', id: held[0].id, result: ended });
  theirs.end();
  assert.equal((await again).content[0].text, 'at last');
  assert.equal(upstream.calls.length, 1);
});

test('a task that is cancelled closes the stream of the server, which hears nothing else', async (t) => {
  const { upstream, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  await agent.result('tools/call', { name: 'cancel_task', arguments: { task_id: id } });
  await held[0].recorded.gone;
  assert.equal(held[0].recorded.left, true);
  assert.equal(upstream.of('notifications/cancelled').length, 0);
});

test('no task while the client is asked', async (t) => {
  const { admin, connect, held } = await stage(t);
  const agent = await connect({ capabilities: { elicitation: {} } });
  const streaming = agent.stream('tools/call', { name: 'slow', arguments: {} });
  const required = { resultType: 'input_required', inputRequests: { k: { method: 'elicitation/create', params: PARTY } }, requestState: 's' };
  (await until(() => held[0], 'the call')).reply.result(complete(required));
  const stream = await streaming;
  const { id } = await stream.message((m) => m.method === 'elicitation/create');
  const asked = Date.now();
  await until(() => Date.now() - asked > 600, 'longer than the wait', { deadline: 5000 });
  assert.deepEqual((await admin.list()).tasks, []);
  await agent.post({ jsonrpc: '2.0', id, result: { action: 'decline' } });
  const { id: task } = promoted((await stream.message((m) => m.id === stream.id)).result);
  assert.deepEqual(held[1].params.inputResponses, { k: { action: 'decline' } });
  held[1].reply.result(ended);
  await admin.inState(task, 'completed');
});

test('a client with tasks waits for its answer, and one that leaves has cancelled', async (t) => {
  const { admin, connect, held } = await stage(t);
  const agent = await connect();
  const answer = agent.result('tools/call', { name: 'slow', arguments: {} });
  const { reply } = await until(() => held[0], 'the call');
  const began = Date.now();
  await until(() => Date.now() - began > 600, 'longer than the wait', { deadline: 5000 });
  reply.result(ended);
  assert.equal((await answer).content[0].text, 'at last');
  assert.deepEqual((await admin.list()).tasks, []);
});
