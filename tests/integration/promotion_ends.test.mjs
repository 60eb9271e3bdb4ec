// How a promoted call ends: by its client, its session, the process, its size or the silence of its server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BRIEF_DRAIN } from './lib/gateway.mjs';
import { PLAIN, promoted, stage } from './lib/promotion.mjs';
import { until } from './lib/wait.mjs';

test('cancel_task stops the call at upstream', async (t) => {
  const { upstream, admin, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  const { content } = await agent.result('tools/call', { name: 'cancel_task', arguments: { task_id: id } });
  assert.equal(JSON.parse(content[0].text).success, true);
  assert.deepEqual((await upstream.received('notifications/cancelled')).rpc.params.requestId, held[0].id);
  assert.equal((await admin.task(id)).state, 'cancelled');
});

test('the end of the session leaves a promised task to whoever has its id and no token, and cancels any other', async (t) => {
  const { admin, connect, held } = await stage(t, { config: { pseudo_tools: { promote: 'left', only: 'all', wait: '30s', wait_max: '30s' } } });
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'slow', args: {}, timeout_ms: 200 } }));
  agent.send('tools/call', { name: 'slow', arguments: { n: 2 } }).catch(() => {});
  await until(() => held.length === 2, 'the call that is left');
  agent.close();
  const left = await until(async () => (await admin.list()).tasks.find((task) => task.id !== id), 'its task');
  const back = await connect(PLAIN), bearer = await connect({ ...PLAIN, token: 'another' });
  back.session = agent.session;
  assert.ok([200, 204].includes((await back.delete()).status));
  assert.equal((await admin.inState(left.id, 'cancelled', 'completed', 'failed')).state, 'cancelled');
  held[0].reply.result({ content: [{ type: 'text', text: 'kept' }] });
  assert.equal((await admin.inState(id, 'completed', 'cancelled', 'failed')).state, 'completed');
  const fetch = async (client) => (await client.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } })).content[0].text;
  assert.match(await fetch(bearer), /not found/);
  assert.equal(await fetch(await connect(PLAIN)), 'kept');
});

test('kill -9: the task has failed, and says why', async (t) => {
  const { gateway, connect } = await stage(t);
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  await gateway.kill9();
  await gateway.restart();
  const task = await gateway.admin.task(id);
  assert.deepEqual([task.state, task.statusMessage], ['failed', 'upstream connection lost']);
  const { content, isError } = await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  assert.deepEqual([isError, content[0].text], [true, 'It is not known whether slow ran. Check its effect before you call it again.']);
});

test('SIGTERM waits for the call, as for every call that runs, and keeps its result', async (t) => {
  const { gateway, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  const stopped = gateway.stop();
  await gateway.logged(/shutting down|stopping|Shutting/i);
  held[0].reply.result({ content: [{ type: 'text', text: 'in time' }] });
  await stopped;
  await gateway.restart();
  assert.equal((await gateway.admin.task(id)).state, 'completed');
  const { content } = await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  assert.equal(content[0].text, 'in time');
});

test('a call that is not answered before the process ends has failed after the start', async (t) => {
  const { gateway, connect } = await stage(t, { env: BRIEF_DRAIN });
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  await gateway.restart(); // after the time that calls have to end
  assert.equal((await gateway.admin.task(id)).statusMessage, 'upstream connection lost');
});

test('a result of five megabytes comes back as it was', async (t) => {
  const { admin, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  const text = 'é…'.repeat(1_000_000);
  held[0].reply.result({ content: [{ type: 'text', text }] });
  await admin.inState(id, 'completed');
  const { content } = await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  assert.ok(content[0].text === text);
});

test('a result that is larger than allowed fails the task, not the gateway', async (t) => {
  const { admin, connect, held } = await stage(t, { config: { limits: { result_bytes: 65536 } } });
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  held[0].reply.result({ content: [{ type: 'text', text: 'x'.repeat(100_000) }] });
  assert.match((await admin.inState(id, 'failed', 'completed')).statusMessage, /larger than allowed/);
});

test('the silence limit ends with the promotion', async (t) => {
  const { admin, connect, held } = await stage(t, { env: { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1' } });
  const agent = await connect(PLAIN);
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  const at = performance.now();
  await until(() => performance.now() - at > 2500, 'silence', { deadline: 20_000 });
  held[0].reply.result({ content: [] });
  assert.equal((await admin.inState(id, 'completed', 'failed')).state, 'completed');
});
