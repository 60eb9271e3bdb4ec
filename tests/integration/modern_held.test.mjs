// Approvals for modern clients (MCP 2026-07-28) that know no tasks: held, then repeated with a state, then answered with what is pending.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { answerOf } from './lib/modern_upstream.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { assertSchema } from './lib/schema.mjs';
import { tool } from './lib/upstream.mjs';

const REFUSAL = 'requestState is not valid for this call';
const stage = (t, { wait = '30s', rounds, upstream, ...more } = {}) =>
  modernScene(t, {
    rules: [['delete_*', 'approve'], ['drop_*', 'deny']],
    approval: workflow('10m'),
    source: { era: 'modern' },
    config: { pseudo_tools: { wait, ...(rounds === undefined ? {} : { rounds }) }, ...more.config },
    upstream: { tools: [tool('delete_user'), tool('delete_all'), tool('read')], ...upstream },
    ...more.gateway,
  });
const plain = { capabilities: {}, token: 'owner' };
const call = (client, args = {}, { state, ...options } = {}) => client.send('tools/call', { name: 'delete_user', arguments: args, ...(state === undefined ? {} : { requestState: state }) }, options);

/** A call that is held until it is answered with a state. */
async function stateOf(t, client, args, options) {
  const { message, status } = await call(client, args, options);
  assert.equal(status, 200);
  assertSchema(t, 'InputRequiredResult', message.result, 'modern');
  assert.deepEqual(Object.keys(message.result), ['resultType', 'inputRequests', 'requestState', '_meta']);
  assert.deepEqual([message.result.resultType, message.result.inputRequests], ['input_required', {}]);
  assert.match(message.result.requestState, /^tg1\.[\w-]+$/);
  assert.ok(message.result.requestState.length <= 2048);
  return message.result.requestState;
}

/** The outcome of a call whose task has been approved: on a busy machine it may be asked to come back once more. */
async function outcomeOf(client, args, state) {
  const { message } = await call(client, args, { state });
  return message.result?.resultType === 'input_required' ? outcomeOf(client, args, message.result.requestState) : message;
}

async function refused(client, args, state, options) {
  const { message, status } = await call(client, args, { state, ...options });
  assert.deepEqual([status, message.error?.code, message.error?.message], [200, -32602, REFUSAL]);
}

test('46. a call is held on a stream; decided in time, it is answered there', async (t) => {
  const { modern, admin, upstream } = await stage(t);
  const stream = await modern(plain).stream('tools/call', { name: 'delete_user', arguments: { id: 7 } }, { meta: { progressToken: 'p' } });
  assert.deepEqual([stream.response.status, stream.response.headers['x-accel-buffering']], [200, 'no']);
  const progress = await stream.message();
  assert.deepEqual([progress.method, progress.params.progressToken, progress.params._meta], ['notifications/progress', 'p', undefined]);
  const { id } = await admin.pending();
  assert.equal(upstream.calls.length, 0);
  await admin.approve(id);
  const { result } = await stream.message((message) => message.id === stream.id);
  assert.deepEqual(result, answerOf({ name: 'delete_user', arguments: { id: 7 } }));
  assert.equal(await stream.end(), 'end');
  assert.equal(upstream.calls.length, 1);
});

test('46. rejected while it is held: -32007, and nothing goes up', async (t) => {
  const { modern, admin, upstream } = await stage(t);
  const answer = call(modern(plain));
  await admin.reject((await admin.pending()).id, 'no');
  assert.equal((await answer).message.error.code, -32007);
  assert.equal(upstream.calls.length, 0);
});

test('47. past the wait the answer is a state; repeated with it, the call joins its approval', async (t) => {
  const { modern, admin, upstream } = await stage(t, { wait: '300ms', rounds: 9 });
  const client = modern(plain);
  const first = await stateOf(t, client, { id: 7 });
  const second = await stateOf(t, client, { id: 7 }, { state: first });
  assert.notEqual(second, first);
  const { tasks } = await admin.list();
  assert.equal(tasks.length, 1);
  await admin.approve(tasks[0].id);
  assert.equal(upstream.calls.length, 0, 'nobody waits for it');
  const message = await outcomeOf(client, { id: 7 }, second);
  assert.deepEqual(message.result, answerOf({ name: 'delete_user', arguments: { id: 7 } }));
  assert.equal(upstream.calls.length, 1);
  assert.equal(upstream.calls[0].rpc.params.requestState, undefined, 'the state is the gateway\'s alone');
});

test('47. a client without credentials joins by its state alone', async (t) => {
  const { modern, admin, upstream } = await stage(t, { wait: '300ms', rounds: 9 });
  const client = modern({ capabilities: {} });
  const state = await stateOf(t, client, {});
  await stateOf(t, client, {});
  assert.equal((await admin.list()).tasks.length, 2, 'the same call of a stranger is another one');
  for (const { id } of (await admin.list()).tasks) await admin.approve(id);
  assert.equal((await outcomeOf(client, {}, state)).result.resultType, 'complete');
  assert.equal(upstream.calls.length, 1);
});

test('48. the third answer is complete, and names the task', async (t) => {
  const { modern, admin } = await stage(t, { wait: '300ms' });
  const client = modern(plain);
  const second = await stateOf(t, client, {}, { state: await stateOf(t, client, {}) });
  const { message } = await call(client, {}, { state: second });
  const [{ id }] = (await admin.list()).tasks;
  assertSchema(t, 'CallToolResult', message.result, 'modern');
  assert.equal(message.result.resultType, 'complete');
  assert.ok(message.result.content[0].text.includes(id), message.result.content[0].text);
});

test('48. pseudo_tools.rounds: 0 tells what is pending at once', async (t) => {
  const { modern } = await stage(t, { wait: '300ms', rounds: 0 });
  assert.equal((await call(modern(plain))).message.result.resultType, 'complete');
});

test('49. a state that is tampered, of another token, tool, or arguments: one refusal, and the task stays', async (t) => {
  const { modern, admin, upstream } = await stage(t, { wait: '300ms' });
  const client = modern(plain);
  const state = await stateOf(t, client, { id: 7 });
  const [{ id }] = (await admin.list()).tasks;
  await admin.approve(id);
  const flip = (text, at) => text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);
  for (const bad of [flip(state, 4), flip(state, state.length >> 1), `${state}A`, state.slice(0, -1), `${state}=`, 'tg1.', 'tg1.AAAA', `tg1.${'A'.repeat(4000)}`]) await refused(client, { id: 7 }, bad);
  await refused(client, { id: 8 }, state);
  await refused(modern({ ...plain, token: 'other' }), { id: 7 }, state);
  await refused(modern({ capabilities: {} }), { id: 7 }, state);
  const other = await client.send('tools/call', { name: 'delete_all', arguments: { id: 7 }, requestState: state });
  assert.deepEqual([other.message.error.code, other.message.error.message], [-32602, REFUSAL]);
  for (const [method, params] of [['prompts/get', { name: 'delete_user' }], ['resources/read', { uri: 'file:///a' }]]) {
    const { message } = await client.send(method, { ...params, requestState: state });
    assert.deepEqual([message.error.code, message.error.message], [-32602, REFUSAL], method);
  }
  assert.equal(upstream.calls.length, 0);
  assert.equal((await admin.task(id)).state, 'approved');
  assert.equal((await outcomeOf(client, { id: 7 }, state)).result.resultType, 'complete');
});

test('49. a state that is given at the shutdown opens after a restart, and not with another key', async (t) => {
  const { modern, admin, gateway, upstream } = await stage(t);
  const held = stateOf(t, modern(plain), {});
  await admin.pending();
  await gateway.restart();
  const state = await held;
  const file = path.join(gateway.folder, 'state.key');
  const key = fs.readFileSync(file, 'utf8');
  assert.match(key, /^[0-9a-f]{64}\n$/);
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  fs.writeFileSync(file, `${'0'.repeat(64)}\n`);
  await gateway.restart();
  await refused(modern(plain), {}, state);
  fs.writeFileSync(file, `${'0'.repeat(64)}\n${key}`);
  await gateway.restart();
  const [{ id }] = (await admin.list()).tasks;
  await admin.approve(id);
  assert.equal((await outcomeOf(modern(plain), {}, state)).result.resultType, 'complete');
  assert.equal(upstream.calls.length, 1);
  fs.chmodSync(file, 0o644);
  await assert.rejects(gateway.restart(), /chmod 600/);
  gateway.child.checked = true;
});

test('50. the same state twice at once: one execution, the same answer', async (t) => {
  const { modern, admin, upstream } = await stage(t, { wait: '500ms' });
  const client = modern(plain);
  const state = await stateOf(t, client, {});
  await admin.approve((await admin.list()).tasks[0].id);
  const answers = await Promise.all([1, 2].map(() => call(client, {}, { state })));
  assert.deepEqual(answers[0].message.result, answers[1].message.result);
  assert.equal(answers[0].message.result.resultType, 'complete');
  assert.deepEqual((await call(client, {}, { state })).message.result, answers[0].message.result, 'later, too');
  assert.equal(upstream.calls.length, 1);
  const fresh = await stateOf(t, client, {});
  assert.equal((await admin.list({ state: 'pending' })).tasks.length, 1, 'a call without the state is a new one');
  assert.notEqual(fresh, state);
});

test('51. a client that left: approved meanwhile, the call runs only when it comes back, once', async (t) => {
  const { modern, admin, upstream } = await stage(t);
  const client = modern(plain);
  const stream = await client.stream('tools/call', { name: 'delete_user', arguments: {} }, { meta: { progressToken: 'p' } });
  await stream.message();
  const { id } = await admin.pending();
  stream.abort();
  await admin.approve(id);
  await client.result('tools/call', { name: 'read', arguments: {} });
  assert.deepEqual(upstream.calls.map(({ rpc }) => rpc.params.name), ['read']);
  assert.equal((await admin.task(id)).state, 'approved');
  const { message } = await call(client);
  assert.equal(message.result.resultType, 'complete');
  assert.deepEqual(upstream.calls.map(({ rpc }) => rpc.params.name), ['read', 'delete_user']);
});
