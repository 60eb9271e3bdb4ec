// The limits of a call whose server has asked something, and the end of one that is given up.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { elicit, PARTY, responseTo } from './lib/asking.mjs';
import { Child } from './lib/child.mjs';
import { defer } from './lib/lifetime.mjs';
import { modernServer } from './lib/modern.mjs';
import { complete } from './lib/modern_upstream.mjs';
import { PLAIN, promoted, stage } from './lib/promotion.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const noSqlite = spawnSync('sqlite3', ['--version']).status === 0 ? false : 'sqlite3 is not here: apt-get install sqlite3';
const passed = (ms, what) => {
  const at = performance.now();
  return until(() => performance.now() - at > ms, what, { deadline: 30_000 });
};

for (const [pseudo_tools, capabilities] of [[{ mode: 'always' }, { tasks: {} }], [{ promote: 'never' }, {}]]) {
  test(`a call that becomes no task has its limit of silence again once its question is answered: ${JSON.stringify(pseudo_tools)}`, async (t) => {
    const env = { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1' };
    const { upstream, admin, connect } = await stage(t, {
      env,
      config: { pseudo_tools: { only: 'all', wait: '300ms', ...pseudo_tools }, governance: { defaults: { action: 'forward' }, rules: [{ match: 'held_*', action: 'approve' }] } },
      upstream: { handlers: { 'tools/call': (call) => call.reply.sse().event({ jsonrpc: '2.0', ...elicit('q') }) } },
    });
    const agent = await connect({ capabilities });
    const answer = agent.error('tools/call', { name: 'slow', arguments: {} }, { deadline: 15_000 });
    const own = async (name, args) => (await agent.result('tools/call', { name, arguments: args })).structuredContent;
    const [{ requestId }] = await until(async () => {
      const { elicitations } = await own('get_elicitations', {});
      return elicitations?.length > 0 && elicitations;
    }, 'the question');
    await passed(2500, 'longer than the limit, while a person has the question');
    await own('respond_to_elicitation', { request_id: requestId, action: 'decline' });
    assert.deepEqual((await responseTo(upstream, 'q')).result, { action: 'decline' });
    const { code, data } = await answer;
    assert.deepEqual([code, data.error_type], [-32001, 'upstream_timeout']);
    assert.deepEqual((await admin.list()).tasks, []);
  });
}

test('a modern server asks after the wait: the call is a task at once, not when its question has run out', async (t) => {
  const { handlers, ...server } = modernServer({ tools: [tool('slow')] });
  const { 'tools/call': _, ...others } = handlers; // the stage's own holds the calls
  const { connect, held } = await stage(t, { source: { era: 'modern' }, upstream: { ...server, handlers: others }, config: { pseudo_tools: { only: 'all', wait: '6s' }, pseudo_tasks: { elicitation_timeout: '1s' } } });
  const agent = await connect(PLAIN);
  const answer = agent.result('tools/call', { name: 'slow', arguments: {} }, { deadline: 20_000 });
  const call = await until(() => held[0], 'the call');
  await passed(6500, 'longer than the wait');
  call.reply.result(complete({ resultType: 'input_required', inputRequests: { a: { method: 'elicitation/create', params: { mode: 'form', ...PARTY } } } }));
  const { id } = promoted(await answer);
  await agent.result('tools/call', { name: 'cancel_task', arguments: { task_id: id } });
});

test('a call given up while its task is on its way to a store that refuses it ends at the server', { skip: noSqlite }, async (t) => {
  const { gateway, upstream, admin, connect, held } = await stage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '3s', wait_max: '3s' } } });
  const agent = await connect(PLAIN), other = await connect({ ...PLAIN, keepAlive: false });
  const lock = new Child('sqlite3', [gateway.storePath], { stdin: 'pipe' });
  defer(t, () => lock.stop('SIGKILL').catch(() => {}));
  const answer = agent.send('tools/call', { name: 'slow', arguments: {} }, { deadline: 20_000 });
  await until(() => held[0], 'the call');
  lock.process.stdin.write("BEGIN IMMEDIATE;\nSELECT 'locked';\n");
  await lock.ready(() => lock.stdout.includes('locked'), 'locked');
  await passed(4000, 'longer than the wait, so that the store is asked for the task');
  other.session = agent.session;
  assert.equal((await other.notify('notifications/cancelled', { requestId: held[0].id })).status, 202);
  await gateway.logged((entry) => entry.msg === 'A slow call could not be made a task: its client waits on', 20_000);
  await upstream.received('notifications/cancelled');
  await held[0].recorded.gone;
  assert.equal(held[0].recorded.left, true);
  assert.equal((await answer).status, 202);
  lock.process.stdin.end('ROLLBACK;\n');
  assert.deepEqual((await admin.list()).tasks, []);
});
