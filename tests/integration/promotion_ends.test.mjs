// How a promoted call ends: by its client, its session, the process, its size or the silence of its server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { elicit, responseTo } from './lib/asking.mjs';
import { rawClient } from './lib/client.mjs';
import { BRIEF_DRAIN, workflow } from './lib/gateway.mjs';
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

test('the end of the session leaves promised tasks to whoever has their ids and no token, cancels any other, and reaches the server after the last', async (t) => {
  const config = { pseudo_tools: { promote: 'left', only: 'all', wait: '300ms', wait_max: '300ms' } };
  const { upstream, admin, gateway, connect, held } = await stage(t, { config, rules: [['read', 'approve']], approval: workflow('10m') });
  const agent = await connect(PLAIN);
  const execute = { name: 'execute_tool', arguments: { server: 'up', tool: 'slow', args: {}, timeout_ms: 200 } };
  const { id } = promoted(await agent.result('tools/call', execute));
  const stream = held[0].reply.sse();
  stream.event({ jsonrpc: '2.0', ...elicit('e-1') });
  await gateway.logged((entry) => entry.msg === 'Upstream asks');
  const waits = (await agent.result('tools/call', { name: 'read', arguments: {} })).structuredContent.proxy_task.task_id;
  agent.send('tools/call', { name: 'slow', arguments: { n: 2 } }).catch(() => {});
  await until(() => held.length === 2, 'the call that is left');
  agent.close();
  const left = await until(async () => (await admin.list({ state: 'executing' })).tasks.find((task) => task.id !== id), 'its task');
  const back = await connect(PLAIN), bearer = await connect({ ...PLAIN, token: 'another' });
  const next = await connect(PLAIN), sessions = [agent, bearer, next].map((client) => client.session);
  const ended = () => upstream.requests.filter((r) => r.method === 'DELETE').map((r) => r.headers['mcp-session-id']).filter((session) => sessions.includes(session));
  back.session = agent.session;
  assert.equal((await back.delete()).status, 204);
  assert.equal((await admin.inState(left.id, 'cancelled', 'completed', 'failed')).state, 'cancelled');
  // Its question is cancelled, and nobody is asked the next one.
  assert.deepEqual((await responseTo(upstream, 'e-1')).result, { action: 'cancel' });
  stream.event({ jsonrpc: '2.0', ...elicit('e-2') });
  assert.deepEqual((await responseTo(upstream, 'e-2')).result, { action: 'decline' });
  assert.deepEqual(ended(), []);
  stream.event({ jsonrpc: '2.0', id: held[0].id, result: { content: [{ type: 'text', text: 'kept' }] } });
  stream.end();
  assert.equal((await admin.inState(id, 'completed', 'cancelled', 'failed')).state, 'completed');
  await until(() => ended().length === 1, 'the DELETE');
  assert.deepEqual(ended(), [agent.session]);
  // A call that waits for approval runs once it is fetched.
  await admin.approve(waits);
  assert.deepEqual([(await admin.task(waits)).state, upstream.calls.length], ['approved', 2]);
  const fetch = async (client, task) => (await client.result('tools/call', { name: 'get_task_result', arguments: { task_id: task } })).content[0].text;
  for (const task of [id, waits]) assert.match(await fetch(bearer, task), /not found/);
  assert.deepEqual([await fetch(next, id), await fetch(next, waits)], ['kept', 'did read']);
  // With a token nothing ends, and its owner's next session has it.
  const own = promoted(await bearer.result('tools/call', execute)).id;
  assert.equal((await bearer.delete()).status, 204);
  held[2].reply.result({ content: [{ type: 'text', text: 'mine' }] });
  assert.equal(await fetch(await connect({ ...PLAIN, token: 'another' }), own), 'mine');
  assert.match(await fetch(next, own), /not found/);
  await until(() => ended().length === 2, 'the second DELETE');
  assert.equal((await next.delete()).status, 200); // no promoted call runs in it
  assert.deepEqual(ended(), sessions);
  assert.equal(gateway.logs.filter(({ msg }) => /identity: anonymous/.test(msg)).length, 1);
});

test('with a token, what runs outlives its session, and its questions are answered in the next one; what waits is without credentials', async (t) => {
  const config = { pseudo_tools: { promote: 'left', only: 'all', wait: '300ms', wait_max: '300ms' } };
  const { upstream, admin, gateway, connect, held } = await stage(t, { config, rules: [['read', 'approve']], approval: workflow('10m') });
  const agent = await connect({ ...PLAIN, token: 'mine' });
  const own = async (client, name, args) => (await client.result('tools/call', { name, arguments: args })).structuredContent;
  const waits = (await own(agent, 'read', {})).proxy_task.task_id;
  const { id } = promoted(await agent.result('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'slow', args: {}, timeout_ms: 200 } }));
  const stream = held[0].reply.sse();
  stream.event({ jsonrpc: '2.0', ...elicit('e-1') });
  await gateway.logged((entry) => entry.msg === 'Upstream asks');
  assert.equal((await agent.delete()).status, 204);
  await admin.approve(waits);
  assert.deepEqual([(await admin.task(waits)).state, upstream.calls.length], ['approved', 1]);
  // Another session of its owner is shown the question, and answers it; another owner does neither.
  const next = await connect({ ...PLAIN, token: 'mine' }), other = await connect({ ...PLAIN, token: 'another' });
  const asked = () => until(async () => (await own(next, 'get_task', { task_id: id })).pending_elicitations[0]?.requestId, 'the question');
  const answer = (client, response) => client.result('tools/call', { name: 'respond_to_elicitation', arguments: response });
  const accept = { request_id: await asked(), action: 'accept', content: { partySize: 4 } };
  assert.match((await answer(other, accept)).content[0].text, /not found/);
  await answer(next, accept);
  assert.deepEqual((await responseTo(upstream, 'e-1')).result, { action: 'accept', content: { partySize: 4 } });
  stream.event({ jsonrpc: '2.0', ...elicit('e-2') }); // it is asked the next one, too
  await answer(next, { request_id: await asked(), action: 'decline' });
  assert.deepEqual((await responseTo(upstream, 'e-2')).result, { action: 'decline' });
});

test('a session that is ended twice while its promoted call runs ends once at the server, after it, with the newest token', async (t) => {
  const { upstream, connect, held } = await stage(t);
  const agent = await connect({ ...PLAIN, token: 'first' });
  const { id } = promoted(await agent.result('tools/call', { name: 'slow', arguments: {} }));
  agent.headers = { authorization: 'Bearer second' };
  await agent.result('tools/list'); // the server knows it
  const ended = () => upstream.requests.filter((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === agent.session);
  for (let i = 0; i < 2; i++) assert.equal((await agent.delete()).status, 204);
  assert.deepEqual(ended(), []);
  held[0].reply.result({ content: [{ type: 'text', text: 'kept' }] });
  await until(() => ended().length > 0, 'the DELETE');
  const next = await connect({ ...PLAIN, token: 'first' });
  assert.equal((await next.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } })).content[0].text, 'kept');
  assert.deepEqual(ended().map(({ headers }) => headers.authorization), ['Bearer second']);
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

test('a cancel, and the end of the connection of the call, by two connections at three workers: in any order the call ends, and no task runs on', async (t) => {
  const config = { workers: 3, pseudo_tools: { promote: 'left', only: 'all', wait: '30s', wait_max: '30s' } };
  const { upstream, admin, gateway, connect, held } = await stage(t, { env: BRIEF_DRAIN, config });
  const agent = await connect(PLAIN);
  // No two are equal: an equal call may be given the outcome of the one before.
  const ways = [(args) => ({ name: 'slow', arguments: args }), (args) => ({ name: 'execute_tool', arguments: { server: 'up', tool: 'slow', args, timeout_ms: 20_000 } })];
  for (let n = 0; n < 24; n++) {
    const [one, two] = [1, 2].map(() => Object.assign(rawClient(t, gateway.url, { keepAlive: false }), { session: agent.session, initialized: true }));
    const id = 1000 + n;
    let early = 'no answer';
    const call = one.send('tools/call', ways[n % 2]({ n }), { id }).then(({ text }) => { early = text; }, (error) => { early = error; });
    await until(() => held.length === n + 1, () => `call ${n} at the server; its client has ${early}`);
    const steps = [() => two.notify('notifications/cancelled', { requestId: id }), () => one.close()];
    await Promise.all((n % 4 < 2 ? steps : steps.toReversed()).map((step) => step()));
    await call;
    const isCancelled = ({ rpc }) => rpc?.method === 'notifications/cancelled' && [id, held[n].id].includes(rpc.params.requestId);
    await until(() => held[n].recorded.left || upstream.requests.some(isCancelled), () => `the end of call ${n} at the server`);
  }
  await until(async () => (await admin.list({ state: 'executing' })).tasks.length === 0, 'the end of the tasks');
});
