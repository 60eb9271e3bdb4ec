// governance.rules[].require_tasks: a client that takes no part in tasks is refused at once, in both eras.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { errorOf } from './lib/client.mjs';
import { run } from './lib/child.mjs';
import { BINARY, temporaryFolder, workflow } from './lib/gateway.mjs';
import { key, TASKS_EXTENSION, WITH_TASKS } from './lib/modern_client.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { scene } from './lib/scene.mjs';
import { assertSchema } from './lib/schema.mjs';
import { tool } from './lib/upstream.mjs';

const rules = [
  { match: 'delete_*', action: 'approve', require_tasks: true },
  { match: 'slow_*', action: 'forward', require_tasks: true },
];
const tools = [tool('delete_user'), tool('slow_job'), tool('read')];

test('52. a modern call that does not declare tasks is -32021 at once, and nothing goes up or is kept', async (t) => {
  const { modern, admin, upstream } = await modernScene(t, { rules, approval: workflow('10m'), source: { era: 'modern' }, upstream: { tools } });
  const client = modern({ token: 'owner' });
  for (const name of ['delete_user', 'slow_job']) {
    for (const capabilities of [{}, { elicitation: {} }, { extensions: {} }, { extensions: { [TASKS_EXTENSION]: true } }, { tasks: {} }]) {
      const { status, message } = await client.send('tools/call', { name, arguments: {}, task: {} }, { meta: { [key('clientCapabilities')]: capabilities } });
      assert.deepEqual([status, message.error.code, message.error.data.requiredCapabilities], [400, -32021, WITH_TASKS], `${name} ${JSON.stringify(capabilities)}`);
      assertSchema(t, 'MissingRequiredClientCapabilityError', message, 'modern');
    }
  }
  assert.equal(upstream.calls.length, 0);
  assert.deepEqual((await admin.list()).tasks, []);
  const { taskId } = await client.create('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.equal((await client.result('tools/call', { name: 'slow_job', arguments: {} })).resultType, 'complete');
  const held = modern({ capabilities: {} });
  assert.equal((await held.result('tools/call', { name: 'read', arguments: {} })).resultType, 'complete', 'other rules are as before');
  assert.deepEqual(upstream.calls.map(({ rpc }) => rpc.params.name), ['delete_user', 'slow_job', 'read']);
});

test('52. a legacy call without `task` is -32009, whatever its client knows; with `task` it is a task', async (t) => {
  const { raw, upstream } = await scene(t, { rules, approval: workflow('10m'), upstream: { tools } });
  for (const capabilities of [{}, { tasks: {} }]) {
    const client = raw({ capabilities });
    await client.connect();
    for (const name of ['delete_user', 'slow_job']) {
      assert.equal(errorOf(await client.call('tools/call', { name, arguments: {} })).code, -32009, `${name} ${JSON.stringify(capabilities)}`);
      assert.match((await client.result('tools/call', { name, arguments: {}, task: {} })).task.taskId, /^tg_/);
    }
    assert.equal((await client.call('tools/call', { name: 'read', arguments: {} })).error, undefined);
  }
  assert.ok(upstream.of('tools/call').every(({ rpc }) => rpc.params.name !== 'delete_user'));
});

test('52. check refuses it with deny, and explain tells of it', async (t) => {
  const folder = temporaryFolder(t);
  const write = (action) => {
    const file = path.join(folder, `${action}.yaml`);
    fs.writeFileSync(file, `schema: 1\nsources:\n  - {id: up, kind: mcp, url: "http://127.0.0.1:9/mcp"}\ngovernance:\n  defaults: {action: forward}\n  rules:\n    - {match: "delete_*", action: ${action}, require_tasks: true}\n`);
    return file;
  };
  const taskgate = (...args) => run(BINARY, args, { cwd: folder, env: { THOUGHTGATE_CONFIG: undefined } });
  const refused = await taskgate('check', '--config', write('deny'));
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /deny\.yaml:7:\d+: governance\.rules\[0\]\.require_tasks: the key has no meaning with action: deny/);
  assert.equal((await taskgate('check', '--config', write('approve'))).code, 0);
  assert.match((await taskgate('explain', 'delete_user', '--config', write('approve'))).stdout, /require_tasks refuses clients without tasks/);
});
