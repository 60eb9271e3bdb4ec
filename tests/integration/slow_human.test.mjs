// The default client against a really slow human: 60 s is its own request time-out, and nothing here changes it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectStream, sdkClient, toolStream } from './lib/client.mjs';
import { workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const stage = (t, more = {}) => scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] }, ...more });

test('a client with default settings lives through a human who takes longer than its 60 s time-out', { concurrency: true, timeout: 120_000 }, async (t) => {
  const { gateway, admin } = await stage(t);
  const client = await sdkClient(t, gateway.url);
  await client.listTools();
  const started = performance.now();
  // Only default options: no task ttl, no time-out, no progress handler; the tool is known to be a task tool from the list.
  const seen = await collectStream(toolStream(client, 'delete_user', {}, { task: undefined }), async (message) => {
    if (message.type !== 'taskStatus' || performance.now() - started < 62_000) return;
    const task = await admin.task(message.task.taskId);
    if (task.state === 'pending') await admin.approve(task.id);
  });
  assert.equal(seen.error, undefined);
  assert.equal(seen.result.content[0].text, 'did delete_user');
  assert.ok(performance.now() - started > 62_000);
});
