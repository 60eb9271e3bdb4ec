// Approvals as the official clients of 2026-07-28 see them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { workflow } from './lib/gateway.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { modernSdkClient, taskSession } from './lib/modern_sdk.mjs';
import { complete } from './lib/modern_upstream.mjs';
import { tool } from './lib/upstream.mjs';

const stage = (t, { wait = '45s', ...upstream } = {}) =>
  modernScene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    source: { era: 'modern' },
    config: { pseudo_tools: { wait } },
    upstream: { makesTasks: true, tools: [tool('delete_user'), tool('read')], ...upstream },
  });

test('45. ext-tasks: a call is a task, is approved, and has its result', async (t) => {
  const { gateway, admin, upstream } = await stage(t);
  const session = await taskSession(t, gateway.url);
  const execution = await session.callTool('delete_user', { id: 7 });
  await admin.approve((await admin.pending()).id);
  const { outcome } = await execution.settle();
  const result = resultFromTaskOutcome(outcome);
  assert.deepEqual([result.content, result.structuredContent], [[{ type: 'text', text: 'did delete_user' }], { tool: 'delete_user', arguments: { id: 7 } }]);
  assert.equal(upstream.calls.length, 1);
});

test('45. ext-tasks: a rejection is the error -32007, isError is a result', async (t) => {
  const { gateway, admin } = await stage(t, { handlers: { 'tools/call': ({ reply }) => reply.result(complete({ isError: true, content: [{ type: 'text', text: 'no such user' }] })) } });
  const session = await taskSession(t, gateway.url);
  const rejected = await session.callTool('delete_user', {});
  await admin.reject((await admin.pending()).id, 'no');
  const { outcome } = await rejected.settle();
  assert.throws(() => resultFromTaskOutcome(outcome), (error) => JSON.stringify([error.code, error.message, error.cause]).includes('32007') || /Rejected by/.test(error.message));
  const failing = await session.callTool('delete_user', {});
  await admin.approve((await admin.pending()).id);
  const result = resultFromTaskOutcome((await failing.settle()).outcome);
  assert.deepEqual([result.isError, result.content[0].text], [true, 'no such user']);
});

test('45. ext-tasks: a plain call in between is answered plainly', async (t) => {
  const { gateway } = await stage(t);
  const session = await taskSession(t, gateway.url);
  const result = resultFromTaskOutcome((await (await session.callTool('read', {})).settle()).outcome);
  assert.equal(result.content[0].text, 'did read');
});

test('47. SDK 2.4 without tasks: callTool repeats by itself, and gets the outcome of a late approval', async (t) => {
  const { gateway, admin, upstream } = await stage(t, { wait: '700ms' });
  const client = await modernSdkClient(t, gateway.url, { headers: { authorization: 'Bearer owner' } });
  const answer = client.callTool({ name: 'delete_user', arguments: { id: 7 } });
  const { id } = await admin.pending();
  await gateway.logged(() => upstream.of('tools/list').length > 0);
  const waits = async () => (await admin.metrics())['thoughtgate_pseudo_waits_total{kind="call",outcome="state"}'] ?? 0;
  while ((await waits()) < 1) await client.listTools();
  await admin.approve(id);
  const result = await answer;
  assert.equal(result.content[0].text, 'did delete_user');
  assert.equal(upstream.calls.length, 1);
});
