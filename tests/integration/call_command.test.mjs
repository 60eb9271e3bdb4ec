// The commands of the control plane: taskgate call and taskgate tasks result.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { called, stage, TOKENS } from './lib/control_plane.mjs';

/** `taskgate ARGS…` with the token of `name`. */
const cli = (gateway, name, args) => gateway.cli(args, { env: { THOUGHTGATE_ADMIN_TOKEN: TOKENS[`${name.toUpperCase()}_TOKEN`] } });

test('taskgate call: the task, or with --wait the result; exit codes', async (t) => {
  const { upstream, gateway, admin } = await stage(t);
  const plain = await cli(gateway, 'ci', ['call', 'delete_user', '{"id": 1.50}', '--source', 'up', '--ttl', '1m']);
  assert.deepEqual([plain.code, plain.stderr], [0, '']);
  const [, id] = /^(tg_\S+)  pending  delete_user\n$/.exec(plain.stdout) ?? assert.fail(plain.stdout);
  const task = await admin.task(id);
  assert.deepEqual([task.arguments, Date.parse(task.decideBy) - Date.parse(task.createdAt)], [{ id: 1.5 }, 60_000]);

  const json = await cli(gateway, 'ci', ['call', '--json', 'delete_user']);
  assert.deepEqual([json.code, JSON.parse(json.stdout).state, JSON.parse(json.stdout).arguments], [0, 'pending', {}]);

  const result = await cli(gateway, 'ci', ['call', 'read', '{"n":12345678901234567890}', '--wait', '20s']);
  assert.equal(result.code, 0);
  assert.match(result.stderr, /^taskgate: task tg_\S+\n$/);
  assert.equal(JSON.parse(result.stdout).content[0].text, 'did read');
  assert.match(upstream.calls[0].text, /"arguments":\{"n":12345678901234567890\}/);

  const open = await cli(gateway, 'ci', ['call', 'delete_user', '--wait', '100ms']);
  assert.deepEqual([open.code, open.stdout], [5, '']);
  assert.match(open.stderr, /there is no result yet, the task is pending; ask again: taskgate tasks result tg_/);

  upstream.handlers['tools/call'] = ({ reply }) => reply.result({ isError: true, content: [{ type: 'text', text: 'disk full' }] });
  const failed = await cli(gateway, 'ci', ['call', 'read', '--wait', '20s']);
  assert.deepEqual([failed.code, JSON.parse(failed.stdout).content[0].text], [1, 'disk full']);

  const refused = await cli(gateway, 'ci', ['call', 'drop_all']);
  assert.deepEqual([refused.code, refused.stderr], [3, 'taskgate: Denied by a governance rule\n']);
  assert.equal((await cli(gateway, 'eye', ['call', 'read'])).code, 3);
  assert.equal((await cli(gateway, 'ci', ['call', 'read', '--source', 'elsewhere'])).code, 2);
  for (const args of [[], ['read', '{'], ['read', '[]'], ['read', '{}', 'x'], ['read', '--ttl', 'x'], ['read', '--ttl', '0s'], ['read', '--wait', '-1s'], ['']]) {
    const { code, stdout, stderr } = await cli(gateway, 'ci', ['call', ...args]);
    assert.deepEqual([code, stdout], [2, ''], args.join(' '));
    assert.match(stderr, /^taskgate: /);
  }
});

test('taskgate tasks result: waits, and says what became of it', async (t) => {
  const { gateway, admin, ci } = await stage(t);
  const task = await called(ci, { tool: 'delete_user' });
  const now = await cli(gateway, 'ci', ['tasks', 'result', task.id]);
  assert.deepEqual([now.code, now.stdout], [5, '']);
  const nowJson = await cli(gateway, 'ci', ['tasks', 'result', task.id, '--json']);
  assert.deepEqual([nowJson.code, JSON.parse(nowJson.stdout)], [5, { id: task.id, state: 'pending' }]);
  const waiting = cli(gateway, 'ci', ['tasks', 'result', task.id, '--wait', '20s', '--json']);
  await admin.approve(task.id);
  const done = await waiting;
  assert.deepEqual([done.code, JSON.parse(done.stdout).state], [0, 'completed']);

  const second = await called(ci, { tool: 'delete_user' });
  await admin.reject(second.id, 'no\u001b[31m');
  const rejected = await cli(gateway, 'ci', ['tasks', 'result', second.id]);
  assert.deepEqual([rejected.code, rejected.stdout], [1, '']);
  assert.match(rejected.stderr, /^taskgate: the task is rejected: .*\(-32007\)\n$/);
  assert.equal((await cli(gateway, 'cron', ['tasks', 'result', second.id])).code, 4);
  assert.equal((await cli(gateway, 'ci', ['tasks', 'result', second.id, '--wait', 'soon'])).code, 2);
  assert.equal((await cli(gateway, 'ci', ['tasks', 'result'])).code, 2);
});
