// The questions of a legacy server in the call of a modern client: rounds, and the call that stays open meanwhile.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asks, elicit, PARTY, responseTo, SAMPLE, sample } from './lib/asking.mjs';
import { accept, ALL, call, FORMS, stage } from './lib/bridged_stage.mjs';
import { key } from './lib/modern_client.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const ROUND = (result) => [result.resultType, Object.keys(result.inputRequests), typeof result.requestState];

test('a question in a call is a round; the answer goes to the call that is open, which is sent once', async (t) => {
  const { modern, upstream } = await stage(t, { upstream: { handlers: { 'tools/call': asks(elicit('q1'), elicit('q2')) } } });
  const client = modern({ capabilities: FORMS });
  const first = await client.result('tools/call', call);
  assert.deepEqual(ROUND(first), ['input_required', ['r1.1'], 'string']);
  assert.deepEqual(first.inputRequests['r1.1'], { method: 'elicitation/create', params: PARTY });
  const second = await client.result('tools/call', { ...call, requestState: first.requestState, inputResponses: { 'r1.1': accept(), 'r9.9': {} } });
  assert.deepEqual(ROUND(second), ['input_required', ['r2.1'], 'string']);
  const last = await client.result('tools/call', { ...call, requestState: second.requestState, inputResponses: { 'r2.1': { action: 'decline' } } });
  assert.deepEqual([last.resultType, last.structuredContent.answers], ['complete', [accept(), { action: 'decline' }]]);
  assert.equal(upstream.calls.length, 1);
});

test('several questions at once are one round; what is not answered is asked again with the same key', async (t) => {
  const both = async ({ upstream, reply, id }) => {
    const stream = reply.sse();
    for (const question of [elicit('a'), sample('b'), { id: 'c', method: 'roots/list' }]) stream.event({ jsonrpc: '2.0', ...question });
    const of = async (name) => (await upstream.received((r) => r.rpc?.id === name && !r.rpc.method)).rpc.result;
    stream.event({ jsonrpc: '2.0', id, result: { content: [], structuredContent: [await of('a'), await of('b'), await of('c')] } });
    stream.end();
  };
  const { modern, upstream } = await stage(t, { upstream: { handlers: { 'tools/call': both } } });
  const client = modern({ capabilities: ALL });
  const first = await client.result('tools/call', call);
  assert.deepEqual(Object.entries(first.inputRequests).map(([name, { method }]) => [name, method]), [['r1.1', 'elicitation/create'], ['r1.2', 'sampling/createMessage'], ['r1.3', 'roots/list']]);
  assert.deepEqual(first.inputRequests['r1.2'].params, SAMPLE);
  const second = await client.result('tools/call', { ...call, requestState: first.requestState, inputResponses: { 'r1.1': accept(), 'r1.3': { roots: [] } } });
  assert.deepEqual(ROUND(second), ['input_required', ['r1.2'], 'string']);
  assert.notEqual(second.requestState, first.requestState);
  const spoken = { role: 'assistant', model: 'm', content: { type: 'text', text: 'hello' } };
  const last = await client.result('tools/call', { ...call, requestState: second.requestState, inputResponses: { 'r1.2': spoken } });
  assert.deepEqual(last.structuredContent, [accept(), spoken, { roots: [] }]);
  assert.equal(upstream.calls.length, 1);
});

test('a question of a kind that the client did not declare is answered -32601 at once; a ping by the gateway', async (t) => {
  const { modern } = await stage(t, { upstream: { handlers: { 'tools/call': asks({ id: 'p', method: 'ping' }, sample('s'), elicit('e')) } } });
  const result = await modern({ capabilities: { sampling: {} } }).result('tools/call', call);
  assert.equal(result.resultType, 'input_required');
  assert.equal(result.inputRequests['r1.1'].method, 'sampling/createMessage');
  const none = await modern().result('tools/call', call);
  assert.deepEqual(none.structuredContent.answers, [{}, { error: { code: -32601, message: 'Method not found' } }, { error: { code: -32601, message: 'Method not found' } }]);
});

test('a client that names no mode of elicitation has forms', async (t) => {
  const { modern } = await stage(t, { upstream: { handlers: { 'tools/call': asks(elicit('e')) } } });
  assert.deepEqual(ROUND(await modern({ capabilities: { elicitation: { vendor: {} } } }).result('tools/call', call)), ['input_required', ['r1.1'], 'string']);
});

test('a question on the session\'s own stream belongs to the call that has the session', async (t) => {
  const handler = async ({ upstream, reply, id, session }) => {
    upstream.push({ jsonrpc: '2.0', ...elicit(`q-${session}`) });
    const { result } = (await upstream.received((r) => r.rpc?.id === `q-${session}` && !r.rpc.method)).rpc;
    reply.message({ jsonrpc: '2.0', id, result: { content: [], structuredContent: result } });
  };
  const { modern } = await stage(t, { upstream: { handlers: { 'tools/call': handler } } });
  const client = modern({ capabilities: FORMS });
  const first = await client.result('tools/call', call);
  assert.deepEqual(ROUND(first), ['input_required', ['r1.1'], 'string']);
  const last = await client.result('tools/call', { ...call, requestState: first.requestState, inputResponses: { 'r1.1': accept() } });
  assert.deepEqual(last.structuredContent, accept());
});

test('a state is good for one caller, tool, arguments and round; nobody else gets anywhere with it', async (t) => {
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  const held = async ({ upstream, reply, id }) => {
    const stream = reply.sse();
    stream.event({ jsonrpc: '2.0', ...elicit('q1') });
    await responseTo(upstream, 'q1');
    await finished;
    stream.event({ jsonrpc: '2.0', id, result: { content: [] } });
    stream.end();
  };
  const { modern, upstream } = await stage(t, { upstream: { handlers: { 'tools/call': held } } });
  const client = modern({ capabilities: FORMS });
  const { requestState } = await client.result('tools/call', call);
  const inputResponses = { 'r1.1': accept() };
  const refused = async (who, params) => {
    const error = await who.error('tools/call', { ...call, requestState, inputResponses, ...params });
    assert.deepEqual([error.code, error.message], [-32602, 'requestState is not valid for this call']);
  };
  await refused(modern({ capabilities: FORMS, headers: { authorization: 'Bearer stranger' } }));
  await refused(modern({ capabilities: FORMS, headers: {} }));
  await refused(client, { name: 'write' });
  await refused(client, { arguments: { n: 2 } });
  await refused(client, { requestState: `${requestState.slice(0, 20)}${requestState[20] === 'A' ? 'B' : 'A'}${requestState.slice(21)}` });
  await refused(client, { requestState: 'of-a-server' });
  assert.equal(upstream.requests.filter((r) => r.rpc?.id === 'q1').length, 0);
  // The tool answers after one of the two was refused: a state that comes after the end of its call is another case.
  const answering = [1, 2].map(() => client.call('tools/call', { ...call, requestState, inputResponses }));
  const refusal = await Promise.race(answering);
  finish();
  assert.equal(refusal.error?.message, 'requestState is not valid for this call');
  assert.equal((await Promise.all(answering)).filter((m) => m.result).length, 1);
  const late = await client.error('tools/call', { ...call, requestState, inputResponses });
  assert.deepEqual([late.code, late.message], [-32602, 'This conversation was lost; the tool may have run in part']);
  assert.equal(upstream.calls.length, 1);
});

test('59: after a restart in the middle of a question the call is lost, and is not sent again', async (t) => {
  const { modern, gateway, upstream } = await stage(t, { upstream: { handlers: { 'tools/call': asks(elicit('q1')) } } });
  const client = modern({ capabilities: FORMS });
  const { requestState } = await client.result('tools/call', call);
  await gateway.restart();
  const error = await client.error('tools/call', { ...call, requestState, inputResponses: { 'r1.1': accept() } });
  assert.deepEqual([error.code, error.message], [-32602, 'This conversation was lost; the tool may have run in part']);
  assert.equal(upstream.calls.length, 1);
});

test('a state of one resource opens no other, and what was asked ends with the gateway', async (t) => {
  const { modern, gateway, upstream } = await stage(t, { upstream: { capabilities: { tools: {}, resources: {} }, handlers: { 'resources/read': asks(elicit('q1')) } } });
  const client = modern({ capabilities: FORMS });
  const { requestState } = await client.result('resources/read', { uri: 'a:1' });
  const again = (uri) => client.call('resources/read', { uri, requestState, inputResponses: { 'r1.1': accept() } });
  assert.equal((await again('a:2')).error.message, 'requestState is not valid for this call');
  await gateway.restart();
  assert.equal((await upstream.received('notifications/cancelled')).rpc.params.requestId, upstream.of('resources/read')[0].rpc.id);
  assert.match((await again('a:1')).error.message, /^This conversation was lost/);
});

test('a client that does not come back: the question is cancelled, and so is the call', async (t) => {
  const { modern, upstream } = await stage(t, { upstream: { handlers: { 'tools/call': asks(elicit('q1')) } }, config: { pseudo_tasks: { elicitation_timeout: '300ms' } } });
  const client = modern({ capabilities: FORMS });
  await client.result('tools/call', call);
  const answer = await upstream.received((r) => r.rpc?.id === 'q1' && !r.rpc.method);
  assert.deepEqual(answer.rpc.result, { action: 'cancel' });
  const cancelled = await upstream.received('notifications/cancelled');
  assert.equal(cancelled.rpc.params.requestId, upstream.calls[0].rpc.id);
});

test('each round is judged: a rule that denies meanwhile ends the conversation', async (t) => {
  const { modern, gateway, upstream } = await stage(t, { upstream: { handlers: { 'tools/call': asks(elicit('q1')) } } });
  const client = modern({ capabilities: FORMS });
  const { requestState } = await client.result('tools/call', call);
  gateway.writeConfig({ rules: [['read', 'deny']] });
  gateway.hangUp();
  await until(async () => (await client.call('tools/call', { name: 'read' })).error?.code === -32014, 'the rule in force');
  const error = await client.error('tools/call', { ...call, requestState, inputResponses: { 'r1.1': accept() } });
  assert.equal(error.code, -32014);
  assert.equal(upstream.requests.filter((r) => r.rpc?.id === 'q1').length, 0);
});

test('a round that lands on another worker goes on with the same call', async (t) => {
  // The scripted server knows a response by its id alone, and these calls run at the same time.
  const handler = (request) => asks(...[1, 2, 3].map((n) => elicit(`q${n} of ${request.params.arguments.i}`)))(request);
  const { modern, upstream } = await stage(t, { upstream: { handlers: { 'tools/call': handler } }, config: { workers: 4 } });
  const calls = Array.from({ length: 4 }, async (_, i) => {
    const params = { name: 'read', arguments: { i } };
    let result = {};
    for (let round = 1; round < 5; round++) {
      // Each request has a connection of its own, and so a worker of its own.
      const client = modern({ capabilities: FORMS, keepAlive: false });
      result = await client.result('tools/call', { ...params, ...(result.requestState ? { requestState: result.requestState, inputResponses: { [`r${round - 1}.1`]: accept() } } : {}) });
    }
    return result;
  });
  for (const result of await Promise.all(calls)) {
    assert.equal(result.structuredContent.answers.length, 3);
    assert.equal(result._meta[key('serverInfo')].name, 'scripted-upstream');
  }
  assert.equal(upstream.calls.length, 4);
});

for (const [name, after] of [['late', ['answered', 'DELETE']], ['never', []]]) {
  test(`a shutdown gives up the call that is open, and ends its session once the server has answered (${name})`, async (t) => {
    const { modern, upstream, gateway } = await stage(t, { upstream: { handlers: { 'tools/call': asks(elicit('q1')) } }, env: { THOUGHTGATE_DRAIN_TIMEOUT_SECS: '600', THOUGHTGATE_SHUTDOWN_TIMEOUT_SECS: '900' } });
    await modern({ capabilities: FORMS }).result('tools/call', call);
    const session = upstream.calls[0].headers['mcp-session-id'];
    const order = [];
    const answer = (reply) => (order.push('answered'), reply.http(202));
    upstream.onHttp = ({ method, headers, rpc }, reply) => {
      if (headers['mcp-session-id'] === session) order.push(rpc?.method ?? method);
      if (rpc?.method !== 'notifications/cancelled') return false;
      if (name === 'late') setTimeout(answer, 100, reply);
      return true;
    };
    await gateway.stop();
    assert.deepEqual(order, ['notifications/cancelled', ...after]);
  });
}
