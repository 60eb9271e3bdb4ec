// Slow calls of legacy clients at a modern server that have become tasks, and whose server then requires input.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorOf } from './lib/client.mjs';
import { PARTY, SAMPLE } from './lib/asking.mjs';
import { modernServer } from './lib/modern.mjs';
import { complete } from './lib/modern_upstream.mjs';
import { PLAIN, promoted, stage as promotionStage } from './lib/promotion.mjs';
import { callTool } from './lib/pseudo.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const stage = (t, { upstream = {}, ...options } = {}) => {
  const { handlers, ...server } = modernServer({ tools: [tool('slow')], ...upstream });
  const { 'tools/call': _, ...others } = handlers; // the stage's own holds the calls
  return promotionStage(t, { source: { era: 'modern' }, upstream: { ...server, handlers: others }, ...options });
};
const form = { method: 'elicitation/create', params: { mode: 'form', ...PARTY } };
const model = { method: 'sampling/createMessage', params: SAMPLE };
const requires = (inputRequests, requestState) => complete({ resultType: 'input_required', ...(inputRequests && { inputRequests }), ...(requestState && { requestState }) });
const ended = complete({ content: [{ type: 'text', text: 'at last' }], structuredContent: { n: 7 } });
const outcome = (agent, id) => callTool(agent, 'get_task_result', { task_id: id });

/** A call that is a task, with its client. */
async function slow(set, client = PLAIN) {
  const agent = await set.connect({ ...client, token: 'mine' });
  const { id } = promoted(await callTool(agent, 'slow', { n: 7 }));
  return { agent, id };
}

/** The open question to the client, in the gateway's tools. */
const asked = (agent, name = 'get_elicitations') => until(async () => {
  const { structuredContent } = await callTool(agent, name);
  return (structuredContent.elicitations ?? structuredContent.sampling_requests)[0];
}, `a question in ${name}`);
const nothingAsked = async (agent) => assert.equal((await callTool(agent, 'get_elicitations')).content[0].text, 'No pending elicitation requests');
const accept = (agent, { requestId }, partySize = 4) => callTool(agent, 'respond_to_elicitation', { request_id: requestId, action: 'accept', content: { partySize } });

test('the task asks its client, the server gets the call again with the answers, round by round, and the task goes on', async (t) => {
  const set = await stage(t);
  const { upstream, admin, held } = set;
  const { agent, id } = await slow(set);
  held[0].reply.result(requires({ a: form, b: model }, 'state-0'));
  const question = await asked(agent);
  assert.deepEqual([question.message, question.requestedSchema], [PARTY.message, PARTY.requestedSchema]);
  assert.equal((await admin.task(id)).state, 'executing');
  assert.notEqual((await accept(agent, question)).isError, true);
  const { requestId } = await asked(agent, 'get_sampling_requests');
  assert.equal(held.length, 1, 'not before all is answered');
  await callTool(agent, 'respond_to_sampling', { request_id: requestId, role: 'assistant', content: 'hello', model: 'm' });
  const second = await until(() => held[1], 'the second round');
  assert.deepEqual(second.params.inputResponses, { a: { action: 'accept', content: { partySize: 4 } }, b: { role: 'assistant', content: { type: 'text', text: 'hello' }, model: 'm' } });
  assert.deepEqual([second.params.requestState, second.params.name, second.params.arguments], ['state-0', 'slow', { n: 7 }]);
  assert.deepEqual(second.params._meta, held[0].params._meta);
  assert.notEqual(second.id, held[0].id);
  const [first, again] = upstream.calls;
  for (const name of ['authorization', 'mcp-method', 'mcp-name', 'mcp-protocol-version']) assert.equal(again.headers[name], first.headers[name], name);
  assert.equal((await accept(agent, question)).isError, true, 'an answer counts once');

  second.reply.result(requires({ a: form })); // the same key, in another round, and no state
  await accept(agent, await asked(agent), 5);
  const third = await until(() => held[2], 'the third round');
  assert.deepEqual([third.params.inputResponses, third.params.requestState], [{ a: { action: 'accept', content: { partySize: 5 } } }, undefined]);
  third.reply.result(ended);
  await admin.inState(id, 'completed');
  const { content, structuredContent, resultType } = await outcome(agent, id);
  assert.deepEqual([content[0].text, structuredContent, resultType], ['at last', { n: 7 }, undefined]);
  assert.equal(held.length, 3);
});

test('a question that comes before the wait: the call is a task after it, or when its client leaves, and asks there', async (t) => {
  const set = await stage(t, { config: { pseudo_tools: { only: 'all', wait: '600ms' } } });
  const { admin, held } = set;
  const agent = await set.connect({ ...PLAIN, token: 'mine' });
  const waiting = callTool(agent, 'slow', { n: 7 }), leaver = await set.connect({ ...PLAIN, token: 'other' });
  (await until(() => held[0], 'the call')).reply.result(requires({ a: form }, 's'));
  const { id } = promoted(await waiting);
  await accept(agent, await asked(agent));
  const second = await until(() => held[1], 'the second round');
  assert.deepEqual([second.params.inputResponses, second.params.requestState], [{ a: { action: 'accept', content: { partySize: 4 } } }, 's']);
  second.reply.result(ended);
  await admin.inState(id, 'completed');
  assert.equal((await outcome(agent, id)).content[0].text, 'at last');

  callTool(leaver, 'slow', { n: 8 }).catch(() => {});
  const third = await until(() => held[2], 'the call that is left');
  third.reply.result(requires({ b: model, a: form }, 't'));
  await third.recorded.gone;
  leaver.close();
  const left = await until(async () => (await admin.list()).tasks.find((task) => task.arguments.n === 8), 'its task');
  const back = await set.connect({ ...PLAIN, token: 'other' });
  back.session = leaver.session;
  await accept(back, await asked(back));
  await callTool(back, 'cancel_task', { task_id: left.id });
  assert.equal(held.length, 3);
});

test('a client that declares elicitation is asked on its stream', async (t) => {
  const set = await stage(t);
  const { admin, held } = set;
  const { agent, id } = await slow(set, { capabilities: { elicitation: {} } });
  const stream = await agent.listen();
  held[0].reply.result(requires({ a: form }, 's'));
  const question = await stream.message((m) => m.method === 'elicitation/create');
  assert.equal(question.params.message, PARTY.message);
  assert.equal((await agent.post({ jsonrpc: '2.0', id: question.id, result: { action: 'decline' } })).status, 202);
  const second = await until(() => held[1], 'the second round');
  assert.deepEqual(second.params.inputResponses, { a: { action: 'decline' } });
  second.reply.result(ended);
  await admin.inState(id, 'completed');
});

test('a server that wants only to be asked again is asked again; what no client can read ends the task', async (t) => {
  const set = await stage(t);
  const { admin, held } = set;
  const { agent, id } = await slow(set);
  held[0].reply.result(requires(undefined, 'later'));
  const second = await until(() => held[1], 'the call again');
  assert.deepEqual([second.params.requestState, second.params.inputResponses], ['later', undefined]);
  second.reply.result(requires({ a: { method: 'tools/list' } }));
  await admin.inState(id, 'failed');
  assert.equal((await outcome(agent, id)).isError, true);
  assert.equal(held.length, 2);
});

test('a task that is cancelled while its client is asked: nothing is sent again, and an answer comes too late', async (t) => {
  const set = await stage(t);
  const { upstream, admin, held } = set;
  const { agent, id } = await slow(set);
  held[0].reply.result(requires({ a: form }, 's'));
  const question = await asked(agent);
  await callTool(agent, 'cancel_task', { task_id: id });
  await admin.inState(id, 'cancelled');
  await until(async () => (await callTool(agent, 'get_elicitations')).content[0].text === 'No pending elicitation requests', 'no question');
  assert.equal((await accept(agent, question)).isError, true);
  await callTool(agent, 'slow', { n: 8 });
  assert.deepEqual(upstream.calls.map(({ rpc }) => rpc.params.arguments.n), [7, 8]);
  assert.equal(held.length, 2);
});

test('nobody answers: a form is cancelled and the call goes on; a model that is refused ends it', async (t) => {
  const set = await stage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '400ms', wait_max: '400ms' }, pseudo_tasks: { elicitation_timeout: '600ms' } } });
  const { admin, held } = set;
  const { agent, id } = await slow(set);
  held[0].reply.result(requires({ a: form }, 's'));
  const second = await until(() => held[1], 'the second round');
  assert.deepEqual(second.params.inputResponses, { a: { action: 'cancel' } });
  second.reply.result(requires({ b: model }, 's'));
  await admin.inState(id, 'failed');
  assert.match(JSON.stringify(await outcome(agent, id)), /does not give/);
  assert.equal(held.length, 2);
});

test('a task whose time is over while its client is asked ends, and asks nothing any more', async (t) => {
  const set = await stage(t, { pseudoTasks: { defaultTtlMs: 1500, maxTtlMs: 1500 } });
  const { admin, held } = set;
  const { agent, id } = await slow(set);
  held[0].reply.result(requires({ a: form }, 's'));
  const question = await asked(agent);
  await admin.inState(id, 'expired');
  await until(async () => (await accept(agent, question)).isError, 'the question is gone');
  await nothingAsked(agent);
  assert.equal(held.length, 1);
});

test('a restart in the middle: the task has failed, and nothing is sent again', async (t) => {
  const set = await stage(t);
  const { gateway, admin, held } = set;
  const { agent, id } = await slow(set);
  held[0].reply.result(requires({ a: form }, 's'));
  const question = await asked(agent);
  await gateway.kill9();
  await gateway.restart();
  assert.equal((await admin.inState(id, 'failed')).statusMessage, 'upstream connection lost');
  assert.equal((await accept(agent, question)).isError, true);
  assert.equal(held.length, 1);
});

test('each round is judged: a rule that forbids the call now ends the task', async (t) => {
  const set = await stage(t);
  const { gateway, admin, held } = set;
  const { agent, id } = await slow(set);
  held[0].reply.result(requires({ a: form }, 's'));
  const question = await asked(agent);
  gateway.writeConfig({ rules: [['slow', 'deny'], ['read', 'deny']] });
  gateway.hangUp();
  await until(async () => errorOf((await agent.send('tools/call', { name: 'read', arguments: {} })).message)?.code === -32014, 'the new rule');
  await accept(agent, question);
  await admin.inState(id, 'failed');
  assert.match(JSON.stringify(await outcome(agent, id)), /failed: Denied by a governance rule/);
  assert.equal(held.length, 1);
});
