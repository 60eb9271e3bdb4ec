// Answers to what a server asks that do not reach the server: the agent learns it, and the question is open again unless what asked has ended.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { elicit, sample } from './lib/asking.mjs';
import { blocks, callTool, kinds } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const isAnswer = (request) => request.rpc !== undefined && request.rpc.method === undefined;

/** A scene with a call of a tool that has asked; `refuse(reply)` answers the next answer in place of the upstream. */
async function asking(t, question, { begin = () => {}, config = {} } = {}) {
  const answers = [];
  let refuse, stream, call;
  const on = await scene(t, {
    config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms', wait_max: '200ms' }, ...config },
    upstream: {
      tools: [tool('book')],
      handlers: {
        'tools/call': (each) => {
          call = each;
          stream = each.reply.sse();
          begin(stream);
          stream.event({ jsonrpc: '2.0', ...question });
        },
      },
    },
  });
  on.upstream.onHttp = (request, reply) => {
    if (!isAnswer(request)) return false;
    if (!refuse) return void answers.push(request.rpc);
    const how = refuse;
    refuse = undefined;
    how(reply);
    return true;
  };
  const client = await on.connect(kinds.old.client);
  const promotion = await callTool(client, 'execute_tool', { server: 'up', tool: 'book', timeout_ms: 100 });
  const id = promotion.structuredContent.proxy_task.task_id;
  const isSampling = question.method.startsWith('sampling');
  const open = async () => {
    const { structuredContent } = await callTool(client, isSampling ? 'get_sampling_requests' : 'get_elicitations');
    return structuredContent.elicitations ?? structuredContent.sampling_requests;
  };
  const [{ requestId }] = await until(async () => ((await open()).length > 0 ? open() : undefined), 'the question');
  return {
    ...on,
    client,
    answers,
    open,
    id,
    requestId,
    refuseNext: (how) => (refuse = how),
    endCall: () => {
      stream.event({ jsonrpc: '2.0', id: call.id, result: { content: [{ type: 'text', text: 'done' }] } });
      stream.end();
    },
    stream: () => stream,
    call: () => call,
    result: () => callTool(client, 'get_task_result', { task_id: id, timeout_ms: 20_000 }),
  };
}

const WHAT = { elicitation: 'Elicitation request', sampling: 'Sampling request' };
const ways = {
  respond_to_elicitation: ['elicitation', { action: 'accept', content: { partySize: 2 } }, 'accepted', { result: { action: 'accept', content: { partySize: 2 } } }],
  cancel_elicitation_request: ['elicitation', {}, 'cancelled', { result: { action: 'cancel' } }],
  respond_to_sampling: ['sampling', { role: 'assistant', content: 'hi', model: 'm' }, 'completed', { result: { role: 'assistant', content: { type: 'text', text: 'hi' }, model: 'm' } }],
  cancel_sampling_request: ['sampling', {}, 'rejected', { error: { code: -1, message: 'User cancelled' } }],
};

/** The tool's words about an answer that has not arrived, in text and in structuredContent. */
function assertUndelivered(result, kind, requestId, why, outcome) {
  const rest = outcome === 'pending' ? 'The request is still pending: answer it again in a moment' : 'The request is closed: the call that asked has ended';
  assert.equal(result.isError, true);
  assert.equal(blocks(result)[0], `${WHAT[kind]} '${requestId}': the answer has not been delivered: ${why}. ${rest}`);
  const { requestId: id, outcome: said, delivered } = result.structuredContent;
  assert.deepEqual({ id, said, delivered }, { id: requestId, said: outcome, delivered: false });
}

for (const [name, [kind, args, outcome, response]] of Object.entries(ways)) {
  test(`${name}: an answer that the server refuses is pending again, and can be given again`, async (t) => {
    const on = await asking(t, kind === 'sampling' ? sample('q-1') : elicit('q-1'));
    const answer = () => callTool(on.client, name, { request_id: on.requestId, ...args });
    on.refuseNext((reply) => reply.http(503));
    assertUndelivered(await answer(), kind, on.requestId, 'the server answered HTTP 503', 'pending');
    assert.deepEqual((await on.open()).map((x) => x.requestId), [on.requestId]);
    const done = await answer();
    assert.equal(blocks(done)[0], `${WHAT[kind]} '${on.requestId}': ${outcome}`);
    assert.deepEqual(on.answers, [{ jsonrpc: '2.0', id: 'q-1', ...response }]);
    assert.deepEqual(await on.open(), []);
    on.endCall();
    assert.equal(blocks(await on.result())[0], 'done');
  });
}

test('a server that is down while its stream is to go on: not delivered, then delivered once it is back', async (t) => {
  const on = await asking(t, elicit('q-1'), { begin: (stream) => stream.raw('id: p-1\nretry: 2000\ndata: \n\n') });
  on.stream().end(); // SEP-1699: the rest is for whoever comes back
  await on.upstream.stop();
  const answer = () => callTool(on.client, 'respond_to_elicitation', { request_id: on.requestId, action: 'accept', content: { partySize: 2 } });
  assertUndelivered(await answer(), 'elicitation', on.requestId, 'the server cannot be reached', 'pending');
  const { onHttp } = on.upstream;
  on.upstream.onHttp = (request, reply) => {
    if (request.method !== 'GET' || request.headers['last-event-id'] !== 'p-1') return onHttp(request, reply);
    const stream = reply.sse();
    stream.event({ jsonrpc: '2.0', id: on.call().id, result: { content: [{ type: 'text', text: 'done' }] } }, { id: 'p-2' });
    stream.end();
    return true;
  };
  await on.upstream.listen();
  assert.equal(blocks(await answer())[0], `Elicitation request '${on.requestId}': accepted`);
  assert.equal(on.answers.length, 1);
  assert.equal(blocks(await on.result())[0], 'done');
});

test('a call that ends while its answer is under way: rejected, and open no more', async (t) => {
  const on = await asking(t, elicit('q-1'));
  let held;
  on.refuseNext((reply) => (held = reply));
  const answering = callTool(on.client, 'respond_to_elicitation', { request_id: on.requestId, action: 'decline' });
  await until(() => held, 'the answer at upstream');
  assert.deepEqual(await on.open(), [], 'an answer under way is nobody else’s to give');
  on.endCall();
  assert.equal(blocks(await on.result())[0], 'done');
  held.http(404);
  assertUndelivered(await answering, 'elicitation', on.requestId, 'the server answered HTTP 404', 'rejected');
  assert.deepEqual(await on.open(), []);
  const again = await callTool(on.client, 'respond_to_elicitation', { request_id: on.requestId, action: 'decline' });
  assert.equal(blocks(again)[0], `Elicitation request '${on.requestId}' not found or already completed`);
});

test('a request that is open again ends by its own clock', async (t) => {
  const on = await asking(t, elicit('q-1'), { config: { pseudo_tasks: { elicitation_timeout: '4s' } } });
  on.refuseNext((reply) => reply.http(500));
  const refused = await callTool(on.client, 'respond_to_elicitation', { request_id: on.requestId, action: 'decline' });
  assert.equal(refused.structuredContent.outcome, 'pending');
  const expired = await on.upstream.received((r) => isAnswer(r) && r.rpc.error?.code === -32001);
  assert.match(expired.rpc.error.message, /timed out after 4000ms/);
  assert.deepEqual(await on.open(), []);
  on.endCall();
  await on.result();
});
