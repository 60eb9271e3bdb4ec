// A server without sessions that asks: who declared that it can be asked is asked, nobody else, and no question hangs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asks, elicit, responseTo, sample } from './lib/asking.mjs';
import { workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const BOTH = asks(elicit('e-1'), sample('s-1'));
const stage = (t, { handler = BOTH, ...more } = {}) => scene(t, { config: { pseudo_tools: { promote: 'wait', only: 'all' } }, ...more, upstream: { sessions: false, tools: [tool('book_dinner')], handlers: { 'tools/call': handler }, ...more.upstream } });
const declaredUpstream = (upstream, n = 1) => upstream.of('initialize', { own: false })[n - 1].rpc.params.capabilities;
const DECLINED = [{ action: 'decline' }, -32601];
const answersOf = (answer) => answer.message.result.structuredContent.answers.map((x) => x.error?.code ?? x);

test('a client that declared nothing: nothing is declared for it, and what is asked is declined at once', async (t) => {
  for (const who of [{}, { token: 'agent' }]) {
    const { connect, upstream } = await stage(t);
    const client = await connect({ capabilities: {}, ...who });
    assert.deepEqual(declaredUpstream(upstream), {});
    const answer = await client.send('tools/call', { name: 'book_dinner', arguments: {} });
    assert.deepEqual(answersOf(answer), DECLINED);
    assert.deepEqual(answer.others, [], 'the client sees nothing of the requests');
  }
});

test('the same for a call by execute_tool, and for one that was approved', async (t) => {
  for (const who of [{}, { token: 'agent' }]) {
    const { connect, admin } = await stage(t, { rules: [['book_*', 'approve']], approval: workflow('10m') });
    const client = await connect({ capabilities: {}, ...who });
    const call = client.send('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'book_dinner', timeout_ms: 30_000 } });
    await admin.approve((await admin.pending()).id);
    assert.deepEqual(answersOf(await call), DECLINED);
  }
});

test('a client that declared one of the two is asked for that, and for nothing else', async (t) => {
  const { connect, upstream } = await stage(t);
  const client = await connect({ capabilities: { elicitation: {} } });
  assert.deepEqual(declaredUpstream(upstream), { elicitation: {} });
  const stream = await client.stream('tools/call', { name: 'book_dinner', arguments: {} });
  const asked = await stream.message((m) => m.method === 'elicitation/create', 'the question');
  await client.post({ jsonrpc: '2.0', id: asked.id, result: { action: 'accept', content: { partySize: 2 } } });
  const { result } = await stream.message((m) => m.id === stream.id, 'the result');
  assert.deepEqual(result.structuredContent.answers.map((x) => x.error?.code ?? x), [{ action: 'accept', content: { partySize: 2 } }, -32601]);
});

test("one token's declaration is nothing to another; of one owner any client that declared it is enough", async (t) => {
  const { connect, upstream } = await stage(t, { handler: asks(elicit('e-1')) });
  await connect({ capabilities: { elicitation: {} }, token: 'B' });
  const plain = await connect({ capabilities: {}, token: 'A' });
  const answer = await plain.send('tools/call', { name: 'book_dinner', arguments: {} });
  assert.deepEqual(answersOf(answer), [{ action: 'decline' }]);
  const second = await connect({ capabilities: {}, token: 'B' });
  upstream.requests.length = 0; // the next answer to e-1 is the next question's
  const stream = await second.stream('tools/call', { name: 'book_dinner', arguments: {} });
  const asked = await stream.message((m) => m.method === 'elicitation/create', 'the question');
  await second.post({ jsonrpc: '2.0', id: asked.id, result: { action: 'cancel' } });
  assert.deepEqual((await responseTo(upstream, 'e-1')).result, { action: 'cancel' });
});

test('with sessions the tools answer, and are declared, as before', async (t) => {
  const { connect, upstream } = await stage(t, { upstream: { sessions: true } });
  await connect({ capabilities: {} });
  assert.deepEqual(declaredUpstream(upstream), { elicitation: { form: {}, url: {} }, sampling: {} });
});

test('the first client shows that the server has no sessions, if the gateway itself may not ask', async (t) => {
  const { connect, upstream } = await stage(t, { handler: asks(elicit('e-1')), upstream: { authorize: (recorded) => (recorded.headers.authorization ? undefined : 401) } });
  const first = await connect({ capabilities: {}, token: 'A' });
  assert.deepEqual(declaredUpstream(upstream).elicitation, { form: {}, url: {} }, 'nobody knows yet that it has no sessions');
  assert.deepEqual(answersOf(await first.send('tools/call', { name: 'book_dinner', arguments: {} })), [{ action: 'decline' }]);
  await connect({ capabilities: {}, token: 'A' });
  assert.deepEqual(declaredUpstream(upstream, 2), {});
});
