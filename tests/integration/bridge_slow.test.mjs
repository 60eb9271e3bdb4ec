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

// ---- execute_tool ----

const execute = (agent, name, args, timeout_ms, more) => agent.send('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: name, args, ...(timeout_ms === undefined ? {} : { timeout_ms }) }, ...more }).then(({ message }) => message.result);

test('execute_tool waits for timeout_ms, or for pseudo_tools.wait; then the call is a task, which its server goes on with', async (t) => {
  const { upstream, admin, connect, held } = await stage(t);
  const agent = await connect({ ...PLAIN, token: 'mine' });
  for (const [i, timeout] of [0, 300, undefined].entries()) {
    const result = await execute(agent, 'slow', { i }, timeout);
    const { id, text, block } = promoted(result);
    assert.match(text, SENTENCE(timeout ?? 400, id));
    assert.equal(block.proxy_task.status, 'working');
    held[i].reply.result(ended);
    await admin.inState(id, 'completed');
    const { content, structuredContent: { n } } = await outcome(agent, id);
    assert.deepEqual([content[0].text, n], ['at last', 7]);
  }
  assert.equal(upstream.calls.length, 3);
});

test('an answer in time has the events of the client beside it, as any of the own tools', async (t) => {
  const { admin, connect, held } = await stage(t);
  const agent = await connect({ ...PLAIN, token: 'mine' });
  const { id } = promoted((await agent.send('tools/call', { name: 'slow', arguments: {} })).message.result);
  held[0].reply.result(ended);
  await admin.inState(id, 'completed');
  const answer = execute(agent, 'slow_list', {}, 10_000);
  (await until(() => held[1], 'the call')).reply.result(complete({ content: [{ type: 'text', text: 'soon' }], structuredContent: [1] }));
  const { content, structuredContent, resultType } = await answer;
  assert.deepEqual([content[0].text, resultType], ['soon', undefined]);
  assert.deepEqual(JSON.parse(content[1].text).events_since_last_response.map(({ type, data }) => [type, data.taskId]), [['task_completed', id]]);
});

test('the limit of silence of forwarded calls does not end execute_tool', async (t) => {
  const { connect, upstream, held } = await stage(t, { env: { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1', THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '1' } });
  const agent = await connect(PLAIN);
  const result = await execute(agent, 'slow', {}, 2500);
  const { id, text } = promoted(result);
  assert.match(text, SENTENCE(2500, id));
  assert.equal(upstream.calls.length, 1);
  held[0].reply.result(ended);
  assert.equal((await outcome(agent, id)).content[0].text, 'at last');
});

test('execute_tool of a client that leaves goes on as a task of its list', async (t) => {
  const { admin, connect, held } = await stage(t);
  const agent = await connect({ ...PLAIN, token: 'mine' });
  const gone = agent.stream('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'slow', timeout_ms: 60_000 }, _meta: { progressToken: 'p' } });
  const theirs = (await until(() => held[0], 'the call')).reply.sse();
  theirs.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } });
  await (await gone).message();
  agent.close();
  const { id } = await until(async () => (await admin.list()).tasks[0], 'the task');
  theirs.event({ jsonrpc: '2.0', id: held[0].id, result: ended });
  theirs.end();
  await admin.inState(id, 'completed');
  const back = await connect({ ...PLAIN, token: 'mine' });
  assert.equal((await outcome(back, id)).content[0].text, 'at last');
});
