// Spans of calls that the gateway makes itself: over a bridge between the eras, for the control plane, and as executions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLIENT, INTERNAL, parseTraceparent, SERVER, startCollector } from './lib/collector.mjs';
import { call, called, result, stage as controlPlane, TOKENS } from './lib/control_plane.mjs';
import { workflow } from './lib/gateway.mjs';
import { modernServer } from './lib/modern.mjs';
import { modernClient, WITH_TASKS } from './lib/modern_client.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`;
const NEEDLE = 'needle-in-the-arguments';
const ARGUMENTS = { text: NEEDLE };

/** The block `telemetry`, for a collector of the test's own. */
async function withCollector(t) {
  const collector = await startCollector(t);
  return { collector, telemetry: { enabled: true, otlp: { endpoint: collector.url }, batch: { scheduled_delay_ms: 100 } } };
}

const inTrace = (collector, kind, name, traceId = TRACE) => collector.span((span) => span.traceId === traceId && span.kind === kind && span.name === name);
const sentBy = (upstream, method) => upstream.of(method).find(({ headers }) => headers.traceparent?.includes(TRACE));

/** The server was told the id of this span, and is where the span says. */
function assertReached(span, request, upstream) {
  assert.equal(parseTraceparent(request.headers.traceparent).spanId, span.spanId);
  assert.deepEqual([span.attributes['server.address'], span.attributes['server.port'], span.attributes['http.response.status_code']], ['127.0.0.1', upstream.port, 200]);
  assert.equal(span.status.code, 0);
}

function assertSecret(collector) {
  for (const { body } of collector.requests) for (const secret of [NEEDLE, ...Object.values(TOKENS)]) assert.ok(!body.includes(secret), secret);
}

test('a legacy client before a modern server: a CLIENT span below the SERVER span', async (t) => {
  const { collector, telemetry } = await withCollector(t);
  const { connect, upstream } = await scene(t, { upstream: modernServer(), source: { era: 'modern' }, config: { telemetry } });
  const client = await connect({ token: 'mine' });
  await client.result('tools/call', { name: 'read', arguments: ARGUMENTS }, { headers: { traceparent: TRACEPARENT } });
  const server = await inTrace(collector, SERVER, 'tools/call read');
  const up = await inTrace(collector, CLIENT, 'tools/call read');
  assert.equal(up.parentId, server.spanId);
  assert.ok(server.start <= up.start && up.start <= up.end && up.end <= server.end, 'one is within the other');
  assert.deepEqual([server.attributes['mcp.protocol.version'], up.attributes['mcp.tool.name'], up.attributes['gen_ai.operation.name']], ['2025-11-25', 'read', 'execute_tool']);
  assertReached(up, sentBy(upstream, 'tools/call'), upstream);
  assertSecret(collector);
});

test("a modern client before a legacy server: the call and the session's `initialize` are CLIENT spans below the SERVER span", async (t) => {
  const { collector, telemetry } = await withCollector(t);
  const { gateway, upstream } = await scene(t, { source: { bridge: 'modern' }, config: { telemetry } });
  const client = modernClient(t, gateway.url, { capabilities: {}, token: 'mine' });
  await client.result('tools/call', { name: 'read', arguments: ARGUMENTS }, { meta: { traceparent: TRACEPARENT } });
  const server = await inTrace(collector, SERVER, 'tools/call read');
  assert.equal(server.attributes['mcp.protocol.version'], '2026-07-28');
  assert.deepEqual([server.attributes['thoughtgate.decision'], server.attributes['thoughtgate.rule']], ['forward', 'default']);
  for (const [method, name] of [['initialize', 'initialize'], ['tools/call', 'tools/call read']]) {
    const up = await inTrace(collector, CLIENT, name);
    assert.equal(up.parentId, server.spanId, name);
    assert.equal(up.attributes['mcp.method.name'], method);
    assertReached(up, sentBy(upstream, method), upstream);
  }
  assertSecret(collector);
});

test("a task's execution names the trace of its call, in each state, also after a restart", async (t) => {
  const { collector, telemetry } = await withCollector(t);
  const { admin, connect, gateway, upstream } = await scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] }, config: { telemetry, execution: 'on_result' } });
  let answer;
  upstream.handlers['tools/call'] = ({ reply }) => void (answer = reply);
  const client = await connect({ token: 'A' });
  const create = (headers) => client.send('tools/call', { name: 'delete_user', arguments: {}, task: {} }, { headers });
  const created = async (headers) => (await create(headers)).message.result.task.taskId;
  const [given, own, stopped] = [await created({ traceparent: TRACEPARENT }), await created({}), await created({ traceparent: TRACEPARENT })];
  const shown = async (id) => {
    const { execution } = await admin.task(id);
    return [execution?.state, execution?.traceId];
  };
  assert.deepEqual(await shown(given), [undefined, undefined], 'before the approval');
  for (const id of [given, own, stopped]) await admin.approve(id);
  assert.deepEqual(await shown(given), ['waiting_for_credentials', TRACE]);
  const fetched = client.call('tasks/result', { taskId: given });
  await upstream.received('tools/call');
  await admin.inState(given, 'executing');
  assert.deepEqual(await shown(given), ['executing', TRACE]);
  answer.result({ content: [] });
  await fetched;
  await admin.inState(given, 'completed');
  assert.deepEqual(await shown(given), ['done', TRACE]);
  const failing = client.call('tasks/result', { taskId: own });
  await upstream.received('tools/call', 2);
  answer.error(-32000, 'no');
  await failing;
  await admin.inState(own, 'failed');
  const [, traceId] = await shown(own);
  assert.match(traceId, /^[0-9a-f]{32}$/);
  await inTrace(collector, CLIENT, 'tools/call delete_user', traceId); // the call of the server
  await admin.cancel(stopped, 'never mind');
  assert.deepEqual(await shown(stopped), ['done', TRACE]);
  await gateway.restart();
  assert.deepEqual([await shown(given), await shown(own)], [['done', TRACE], ['done', traceId]]);
});

test('an approved call of a modern client is executed at a legacy server in the same trace, linked to the wait', async (t) => {
  const { collector, telemetry } = await withCollector(t);
  const { gateway, upstream, admin } = await scene(t, { source: { bridge: 'modern' }, rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] }, config: { telemetry } });
  const client = modernClient(t, gateway.url, { capabilities: WITH_TASKS, token: 'mine' });
  const { taskId } = await client.create('delete_user', ARGUMENTS, { headers: { traceparent: TRACEPARENT } });
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  const create = await inTrace(collector, SERVER, 'tools/call delete_user');
  const wait = await inTrace(collector, INTERNAL, 'approval delete_user');
  const run = await inTrace(collector, CLIENT, 'tools/call delete_user');
  assert.deepEqual([wait.parentId, run.parentId], [create.spanId, create.spanId]);
  assert.deepEqual(run.links.map(({ spanId }) => spanId).sort(), [create.spanId, wait.spanId].sort());
  assert.deepEqual([create, wait, run].map(({ attributes }) => attributes['thoughtgate.task.id']), [taskId, taskId, taskId]);
  assertReached(run, sentBy(upstream, 'tools/call'), upstream);
  assertSecret(collector);
});

test('a call of the control plane is an INTERNAL span with the CLIENT span of its execution below it', async (t) => {
  const { collector, telemetry } = await withCollector(t);
  const { ci, upstream } = await controlPlane(t, { config: { telemetry, admin: { tokens: [{ name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] }] } } });
  const { id } = await called(ci, { tool: 'read', arguments: ARGUMENTS });
  assert.equal((await result(ci, id, '10s')).status, 200);
  const made = await collector.span((span) => span.kind === INTERNAL && span.name === 'tools/call read');
  const run = await inTrace(collector, CLIENT, 'tools/call read', made.traceId);
  assert.equal(run.parentId, made.spanId);
  assert.deepEqual([made.attributes['thoughtgate.decision'], made.attributes['thoughtgate.task.id'], run.attributes['thoughtgate.task.id']], ['forward', id, id]);
  assertReached(run, upstream.of('tools/call').at(-1), upstream);
  assertSecret(collector);
});

test('a call of the control plane that a person decides: the wait and the execution are linked; a denied one has an error', async (t) => {
  const { collector, telemetry } = await withCollector(t);
  const tokens = [{ name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] }];
  const { ci, admin, upstream } = await controlPlane(t, { config: { telemetry, admin: { tokens } } });
  const { id } = await called(ci, { tool: 'delete_user', arguments: ARGUMENTS });
  await admin.approve(id);
  await admin.inState(id, 'completed');
  const made = await collector.span((span) => span.kind === INTERNAL && span.name === 'tools/call delete_user');
  const wait = await inTrace(collector, INTERNAL, 'approval delete_user', made.traceId);
  const run = await inTrace(collector, CLIENT, 'tools/call delete_user', made.traceId);
  assert.deepEqual([wait.parentId, run.parentId], [made.spanId, made.spanId]);
  assert.deepEqual(run.links.map(({ spanId }) => spanId).sort(), [made.spanId, wait.spanId].sort());
  assertReached(run, upstream.of('tools/call').at(-1), upstream);
  assert.equal((await call(ci, { tool: 'drop_all', arguments: {} })).status, 403);
  const denied = await collector.span((span) => span.kind === INTERNAL && span.name === 'tools/call drop_all');
  assert.deepEqual([denied.attributes['thoughtgate.decision'], denied.attributes['thoughtgate.rule'], denied.status.code], ['deny', 'drop_*', 2]);
});
