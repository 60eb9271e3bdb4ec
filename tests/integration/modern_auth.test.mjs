// Tasks of 2026-07-28 where the gateway verifies the tokens of a source (`sources[].auth`).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PARTY } from './lib/asking.mjs';
import { rawClient } from './lib/client.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { modernClient } from './lib/modern_client.mjs';
import { answerOf, complete, modernUpstream } from './lib/modern_upstream.mjs';
import { startIssuer } from './lib/token_issuer.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const AUDIENCE = 'https://gate.example/mcp';
const ACK = 'notifications/subscriptions/acknowledged';

async function stage(t, more = {}) {
  const issuer = await startIssuer(t);
  const upstream = await startUpstream(t, modernUpstream({ tools: [tool('delete_user'), tool('read')], ...more.upstream }));
  const gateway = await startGateway(t, { upstream: upstream.url, source: { era: 'modern', auth: { issuer: issuer.url, audience: AUDIENCE, ...more.auth } }, rules: [['delete_*', 'approve']], approval: workflow('10m'), ...more.gateway });
  const as = (claims, options) => modernClient(t, gateway.url, { token: issuer.token(AUDIENCE, claims), ...options });
  return { issuer, upstream, gateway, admin: gateway.admin, as };
}
const inStatus = (client, taskId, status) => until(async () => {
  const task = await client.get(taskId);
  return task.status === status && task;
}, () => `${taskId} to be ${status}`);

test('a refreshed token keeps its tasks, another subject sees nothing of them', async (t) => {
  const { as, admin, upstream } = await stage(t);
  const first = as({ sub: 'agent', jti: 'a' });
  const { taskId } = await first.create('delete_user', { id: 7 });
  const refreshed = as({ sub: 'agent', jti: 'b' });
  assert.equal((await refreshed.get(taskId)).status, 'working');
  assert.equal((await admin.task(taskId)).principal.includes('agent'), true);
  const other = as({ sub: 'other' });
  for (const [method, more] of [['tasks/get', {}], ['tasks/update', { inputResponses: {} }], ['tasks/cancel', {}]]) {
    const { status, message } = await other.send(method, { taskId, ...more });
    assert.deepEqual([status, message.error.code], [200, -32602], method);
  }
  assert.equal((await admin.task(taskId)).state, 'pending');
  await admin.approve(taskId);
  const done = await inStatus(refreshed, taskId, 'completed');
  assert.deepEqual(done.result.structuredContent, { tool: 'delete_user', arguments: { id: 7 } });
  assert.equal(upstream.calls.length, 1);
  assert.equal(upstream.calls[0].headers.authorization, undefined, 'the token is not the server\'s');
});

test('cancel by a refreshed token; a token that is over, bad or missing is 401 before anything is said', async (t) => {
  const { as, admin, gateway, issuer } = await stage(t);
  const { taskId } = await as({ sub: 'agent' }).create('delete_user');
  const now = Math.floor(Date.now() / 1000);
  const bad = [as({ sub: 'agent', exp: now - 3600 }), as({ sub: 'agent', aud: 'https://else.example' }), modernClient(t, gateway.url, { token: 'x.y.z' }), modernClient(t, gateway.url)];
  for (const client of bad) {
    for (const id of [taskId, 'tg_00000000-0000-4000-8000-000000000000']) {
      const { status, headers } = await client.send('tasks/cancel', { taskId: id });
      assert.equal(status, 401);
      assert.match(headers['www-authenticate'], /^Bearer /);
    }
  }
  assert.equal((await admin.task(taskId)).state, 'pending');
  assert.deepEqual(await as({ sub: 'agent', jti: '2' }).cancel(taskId).then(({ resultType }) => resultType), 'complete');
  assert.equal((await admin.task(taskId)).state, 'cancelled');
  assert.ok(issuer.asked.includes('/keys'));
});

test('a listen hears of its subject\'s tasks alone, and ends with its token', async (t) => {
  const { as, admin } = await stage(t);
  const mine = (await as({ sub: 'agent' }).create('delete_user')).taskId;
  const theirs = (await as({ sub: 'other' }).create('delete_user')).taskId;
  const now = Math.floor(Date.now() / 1000);
  const stream = await as({ sub: 'agent', jti: 'n', exp: now + 4 }, {}).stream('subscriptions/listen', { notifications: { taskIds: [theirs, mine] } }, { id: 1 });
  const ack = await stream.message();
  assert.deepEqual([ack.method, ack.params.notifications], [ACK, { taskIds: [mine] }]);
  await admin.approve(theirs);
  await admin.approve(mine);
  await stream.message((m) => m.params?.taskId === mine && m.params.status === 'completed');
  assert.equal(await stream.end(90_000), 'end');
  assert.deepEqual(stream.events.filter((e) => e.json?.params?.taskId === theirs), []);
});

test('a held call is repeated with a refreshed token; its state is no good for another subject', async (t) => {
  const { as, admin } = await stage(t, { gateway: { config: { pseudo_tools: { wait: '300ms' } } } });
  const plain = { capabilities: {} };
  const call = (client, state) => client.send('tools/call', { name: 'delete_user', arguments: {}, ...(state ? { requestState: state } : {}) });
  const { message } = await call(as({ sub: 'agent', jti: 'a' }, plain));
  const state = message.result.requestState;
  const stolen = await call(as({ sub: 'other' }, plain), state);
  assert.equal(stolen.message.error.code, -32602);
  await admin.approve((await admin.list()).tasks[0].id);
  assert.equal((await call(as({ sub: 'agent', jti: 'b' }, plain), state)).message.result.resultType, 'complete');
});

test('a held call is answered with a state two seconds before its token ends, and at once where less is left', async (t) => {
  const { as, admin } = await stage(t, { auth: { leeway: '0s' } });
  const end = Math.floor(Date.now() / 1000) + 6;
  const call = (more) => as({ sub: 'agent', exp: end }, { capabilities: {} }).result('tools/call', { name: 'delete_user', arguments: {}, ...more });
  const { resultType, requestState } = await call();
  assert.equal(resultType, 'input_required');
  assert.equal((await call({ requestState })).resultType, 'input_required');
  assert.deepEqual((await admin.list()).tasks.map(({ state }) => state), ['pending']);
});

test('a bridged session goes on with a refreshed token of its subject, and is unknown to another subject', async (t) => {
  const form = { method: 'elicitation/create', params: { mode: 'form', ...PARTY } };
  const handlers = { 'tools/call': ({ reply, params }) => reply.result(params.inputResponses ? answerOf(params) : complete({ resultType: 'input_required', inputRequests: { a: form }, requestState: 's' })) };
  const { issuer, gateway, upstream } = await stage(t, { upstream: { tools: [tool('read')], handlers } });
  const holder = (claims) => rawClient(t, gateway.url, { token: issuer.token(AUDIENCE, claims), capabilities: { elicitation: {} } });
  const [client, renewed, other] = [holder({ sub: 'agent', jti: 'a' }), holder({ sub: 'agent', jti: 'b' }), holder({ sub: 'other' })];
  await client.connect();
  renewed.session = other.session = client.session;
  const streaming = await client.stream('tools/call', { name: 'read', arguments: {} });
  const { id } = await streaming.message((m) => m.method === 'elicitation/create');
  const answer = { jsonrpc: '2.0', id, result: { action: 'decline' } };
  assert.equal((await other.post(answer)).status, 404);
  assert.equal(upstream.calls.length, 1);
  assert.equal((await renewed.post(answer)).status, 202);
  assert.ok((await streaming.message((m) => m.id === streaming.id)).result);
  assert.deepEqual(upstream.calls.at(-1).rpc.params.inputResponses, { a: { action: 'decline' } });
  assert.equal((await renewed.result('tools/list')).tools[0].name, 'read');
  assert.equal((await other.send('tools/list', {})).status, 404);
  assert.equal((await other.delete()).status, 404);
  assert.deepEqual((await client.result('ping')), {});
  assert.ok((await renewed.delete()).status < 300);
  assert.equal((await renewed.send('tools/list', {})).status, 404);
});
