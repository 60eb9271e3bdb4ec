// taskgate tasks watch: changes as they happen, over a restart of the gateway, and its end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Child } from './lib/child.mjs';
import { ADMIN_TOKEN, BINARY, workflow } from './lib/gateway.mjs';
import { defer } from './lib/lifetime.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

function watch(t, gateway, args = [], token = ADMIN_TOKEN) {
  const child = new Child(BINARY, ['tasks', 'watch', ...args], {
    env: { THOUGHTGATE_ADMIN_URL: gateway.adminUrl, THOUGHTGATE_ADMIN_TOKEN: token },
    cwd: gateway.folder,
    name: 'taskgate tasks watch',
  });
  defer(t, () => child.stop('SIGTERM'));
  return child;
}

const stage = (t) => scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('pay')] } });

/** A task that `child` is seen to tell of: the stream is open from here on. */
async function firstSeen(child, client) {
  return until(async () => {
    const { taskId } = await client.createTask('pay');
    return (await until(() => child.stdout.includes(taskId), taskId, { deadline: 500 }).catch(() => false)) && taskId;
  }, 'the first change');
}

test('each change is a line; what happens while the gateway restarts is not lost for ever', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const child = watch(t, gateway);
  const client = await connect();
  const taskId = await firstSeen(child, client);
  await admin.reject(taskId, 'no');
  const rejection = new RegExp(`^\\d{4}-\\d\\d-\\d\\dT[\\d:]{8}Z {2}${taskId} {2}rejected {2}pay {2}by admin {2}for .*: no$`, 'm');
  await until(() => rejection.test(child.stdout), 'the rejection');
  await gateway.restart();
  await until(() => child.stderr.includes('trying again'), 'the loss being said');
  const again = await connect();
  const next = await firstSeen(child, again);
  assert.match(child.stdout, new RegExp(`Z {2}${next} {2}pending {2}pay {2}for `));
  assert.equal(child.exit, null);
});

test('--json prints one object a line, with nothing that misleads a terminal', async (t) => {
  const { gateway, connect } = await stage(t);
  const child = watch(t, gateway, ['--json']);
  const client = await connect();
  await firstSeen(child, client);
  const { taskId } = await client.createTask('pay', { to: 'bob\u202e\u009b' });
  await until(() => child.stdout.includes(taskId), 'the change');
  const lines = child.stdout.trimEnd().split('\n').map((line) => JSON.parse(line));
  assert.equal(lines.find((task) => task.id === taskId).arguments.to, 'bob\u202e\u009b');
  assert.doesNotMatch(child.stdout, /[\u202e\u009b]/);
});

test('a refused token ends it with exit 3', async (t) => {
  const { gateway } = await stage(t);
  const child = watch(t, gateway, [], 'wrong');
  await until(() => child.exit, 'the end');
  assert.equal(child.exit.code, 3);
  assert.match(child.stderr, /THOUGHTGATE_ADMIN_TOKEN was refused/);
});
