// A server may describe its tools differently to each user: the list of one user decides nothing about another's calls.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder, workflow } from '../lib/gateway.mjs';
import { PLAIN } from '../lib/promotion.mjs';
import { scene } from '../lib/scene.mjs';
import { TASKS, tool } from '../lib/upstream.mjs';

/** Forbids tools that the server calls destructive, and tools that it does not call read-only. */
function cautious(t) {
  const file = path.join(temporaryFolder(t), 'policies.cedar');
  const head = 'principal, action == ThoughtGate::Action::"Forward", resource';
  fs.writeFileSync(file, [
    `permit(${head});`,
    `forbid(${head}) when { context.annotations has destructiveHint && context.annotations.destructiveHint };`,
    `forbid(${head}) unless { context.annotations has readOnlyHint && context.annotations.readOnlyHint };`,
  ].join('\n'));
  return { rules: [{ match: '*', action: 'policy', policy_id: 'all' }], config: { cedar: { policies: [file] } } };
}

const MILD = { annotations: { readOnlyHint: true, destructiveHint: false } };
const WILD = { annotations: { readOnlyHint: false, destructiveHint: true } };

/**
 * The server's list by user, "A" or "B", and the list for the gateway's own session (`own`). A user without a list gets 403.
 * The test may change `lists`.
 */
async function users(t, lists, { upstream, ...more } = {}) {
  const userOf = (request) => request.headers.authorization?.replace('Bearer ', '') ?? 'own';
  const list = ({ recorded, reply }) => {
    const tools = lists[userOf(recorded)];
    return tools ? reply.result({ tools }) : reply.http(403, { 'content-type': 'text/plain' }, 'no list for you');
  };
  const stage = await scene(t, {
    approval: workflow('10m'),
    upstream: { sessions: false, handlers: { 'tools/list': list }, ...upstream },
    ...more,
  });
  if (lists.own.length) await stage.gateway.logged(new RegExp(`^Tool annotation: ${lists.own[0].name} ->`));
  const askedBy = (user) => stage.upstream.of('tools/list').filter((request) => userOf(request) === user).length;
  const [A, B] = [await stage.connect({ token: 'A', ...PLAIN, protocol: '2025-06-18' }), await stage.connect({ token: 'B', ...PLAIN, protocol: '2025-06-18' })];
  return { ...stage, lists, askedBy, A, B };
}

const denied = async (client) => assert.equal((await client.error('tools/call', { name: 'wipe' })).code, -32003);
const passes = async (client) => assert.ok((await client.result('tools/call', { name: 'wipe' })).content);

test('the list of another user makes no call of a dangerous tool harmless', async (t) => {
  const { upstream, A, B } = await users(t, { A: [tool('wipe', MILD)], B: [tool('wipe', WILD)], own: [] }, cautious(t));
  await B.result('tools/list');
  await denied(B);
  await A.result('tools/list');
  await denied(B);
  assert.equal(upstream.calls.length, 0);
  await passes(A);
});

test('the list of another user makes no call of a harmless tool dangerous', async (t) => {
  const { A, B } = await users(t, { A: [tool('wipe', WILD)], B: [tool('wipe', MILD)], own: [] }, cautious(t));
  await B.result('tools/list');
  await A.result('tools/list');
  await denied(A);
  await passes(B);
});

test('the list of another user does not say whether a tool runs as a task only', async (t) => {
  const { upstream, A, B } = await users(t, { A: [tool('wipe', { support: 'required' })], B: [tool('wipe')], own: [] }, { upstream: { capabilities: { tools: {}, tasks: TASKS } } });
  await B.result('tools/list');
  await A.result('tools/list');
  await passes(B);
  assert.equal(upstream.calls[0].rpc.params.task, undefined, 'it went up as it came');
});

test('the list of another user voids no approval, and the owner’s own does', async (t) => {
  const definition = (description) => [tool('delete_user', { description, inputSchema: { type: 'object', title: description } })];
  const { upstream, admin, lists, connect } = await users(t, { A: definition('A'), B: definition('B'), own: definition('own') }, { rules: [{ match: 'delete_*', action: 'approve', execution: 'on_result' }] });
  const [A, B] = [await connect({ token: 'A' }), await connect({ token: 'B' })];
  await B.result('tools/list');
  const [first, second] = [await B.createTask('delete_user', { n: 1 }), await B.createTask('delete_user', { n: 2 })];
  for (const { taskId } of [first, second]) await admin.approve(taskId);
  lists.A = definition('something else');
  await A.result('tools/list');
  assert.ok((await B.result('tasks/result', { taskId: first.taskId })).content);
  assert.deepEqual(upstream.calls.map((call) => call.rpc.params.arguments), [{ n: 1 }]);
  lists.B = definition('now it deletes everybody');
  await B.result('tools/list');
  const error = await B.error('tasks/result', { taskId: second.taskId });
  assert.deepEqual([error.code, error.data.error_type], [-32012, 'transform_drift']);
  assert.equal(upstream.calls.length, 1);
});

test('a user who was not told of a tool is asked for with its own credentials', async (t) => {
  const { upstream, askedBy, A, B } = await users(t, { A: [tool('wipe', MILD)], B: [tool('wipe', WILD)], own: [tool('wipe', MILD)] }, cautious(t));
  await A.result('tools/list');
  await denied(B);
  assert.equal(askedBy('B'), 1);
  assert.equal(upstream.calls.length, 0);
  await passes(A);
  assert.equal(askedBy('A'), 1, 'who was told is not asked for again');
});

test('a user to whom the server refuses its list is judged by the strictest that is known', async (t) => {
  const { upstream, askedBy, A, B } = await users(t, { A: [tool('wipe', WILD)], own: [tool('wipe', MILD)] }, cautious(t));
  await passes(B); // the gateway's own word
  assert.equal(askedBy('B'), 1);
  await A.result('tools/list');
  await denied(B);
  assert.equal(upstream.calls.length, 1);
});

test('a user to whom the server refuses its list has an approval that another’s list does not void', async (t) => {
  const definition = (description) => [tool('delete_user', { description })];
  const { upstream, admin, lists, connect } = await users(t, { A: definition('A'), own: definition('own') }, { rules: [{ match: 'delete_*', action: 'approve', execution: 'on_result' }] });
  const [A, B] = [await connect({ token: 'A' }), await connect({ token: 'B' })];
  await A.result('tools/list');
  const { taskId } = await B.createTask('delete_user', { n: 1 });
  await admin.approve(taskId);
  lists.A = definition('something else');
  await A.result('tools/list');
  assert.ok((await B.result('tasks/result', { taskId })).content);
  assert.equal(upstream.calls.length, 1);
});

test('a tool that only another user’s server has does not hide the gateway’s own of that name', async (t) => {
  const { B, A } = await users(t, { A: [tool('list_tasks')], B: [tool('other')], own: [tool('other')] });
  await B.result('tools/list');
  await A.result('tools/list');
  const names = async (client) => (await client.result('tools/list')).tools.map(({ name }) => name);
  assert.ok((await names(B)).includes('list_tasks'));
  assert.equal((await names(A)).filter((name) => name === 'list_tasks').length, 1);
  assert.ok((await B.result('tools/call', { name: 'list_tasks', arguments: {} })).content);
});
