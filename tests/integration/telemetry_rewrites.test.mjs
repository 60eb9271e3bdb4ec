// Messages that name a trace and are written anew on their way: no span of one message is looked for in the bytes of another.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLIENT, parseTraceparent, SERVER, startCollector } from './lib/collector.mjs';
import { called, result, stage as controlPlane } from './lib/control_plane.mjs';
import { workflow } from './lib/gateway.mjs';
import { modernServer } from './lib/modern.mjs';
import { modernClient, WITH_TASKS } from './lib/modern_client.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`;
/** Before the trace in one message, behind it in the next: the text moves either way when it is written anew. */
const METAS = [
  { traceparent: TRACEPARENT, padding: 'p'.repeat(5000) },
  { padding: 'p'.repeat(5000), traceparent: TRACEPARENT },
];
const ARGUMENTS = { text: 'x' };

async function stage(t, options = {}) {
  const collector = await startCollector(t);
  const telemetry = { enabled: true, otlp: { endpoint: collector.url }, batch: { scheduled_delay_ms: 100 } };
  const all = await scene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m', { allow_edit: ['text'] }),
    upstream: { tools: [tool('delete_user'), tool('read')] },
    ...options,
    config: { telemetry, ...options.config },
  });
  const span = (kind, name) => collector.span((s) => s.traceId === TRACE && s.kind === kind && s.name === name);
  return { ...all, collector, span };
}

/** The request went up with its own span in the header, and in `_meta` where that goes up. */
async function assertSent({ span, upstream }, method, name, meta) {
  const request = upstream.of(method).filter(({ headers }) => headers.traceparent?.includes(TRACE)).at(-1);
  assert.ok(request, `${method} went up in the trace`);
  await span(CLIENT, name);
  assert.equal(parseTraceparent(request.headers.traceparent).traceId, TRACE);
  const sent = request.rpc.params._meta;
  if (meta) assert.deepEqual({ ...sent, traceparent: undefined }, { ...meta, traceparent: undefined });
  if (sent?.traceparent) assert.equal(parseTraceparent(sent.traceparent).traceId, TRACE);
  return request;
}

for (const [index, meta] of METAS.entries()) {
  const where = index === 0 ? 'before the padding' : 'behind the padding';

  test(`\`initialize\` with capabilities of the gateway's own names its span in _meta: ${where}`, async (t) => {
    const s = await stage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', mode: 'always' } } });
    const client = s.raw({ capabilities: {} });
    const { status, message } = await client.initialize({ _meta: meta });
    assert.equal(status, 200);
    assert.equal(message.result.serverInfo.name, 'scripted-upstream');
    const up = await s.span(CLIENT, 'initialize');
    const sent = s.upstream.of('initialize', { own: false }).at(-1).rpc.params;
    assert.deepEqual(sent, {
      protocolVersion: '2025-11-25', capabilities: { elicitation: { form: {}, url: {} }, sampling: {} }, clientInfo: { name: 'raw-client', version: '1.0.0' },
      _meta: { ...meta, traceparent: `00-${TRACE}-${up.spanId}-01` },
    });
    assert.equal((await s.raw().initialize()).status, 200, 'the loop goes on');
  });

  test(`lists, forwarded and executed calls, as tasks and by execute_tool: ${where}`, async (t) => {
    const s = await stage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', mode: 'always' } } });
    const client = await s.connect({ capabilities: { tasks: {} } });
    const { tools } = await client.result('tools/list', { _meta: meta });
    assert.ok(tools.length > 2, 'the gateway has added its own');
    await assertSent(s, 'tools/list', 'tools/list', meta);
    await client.result('tools/call', { name: 'read', arguments: ARGUMENTS, _meta: meta });
    await assertSent(s, 'tools/call', 'tools/call read', meta);

    await client.result('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'read', args: { text: 'executed' } }, _meta: meta });
    assert.deepEqual((await assertSent(s, 'tools/call', 'tools/call read', meta)).rpc.params.arguments, { text: 'executed' });

    const { task } = await client.result('tools/call', { name: 'delete_user', arguments: ARGUMENTS, task: { ttl: 60_000 }, _meta: meta });
    await s.admin.approve(task.taskId);
    await s.admin.inState(task.taskId, 'completed');
    const run = await assertSent(s, 'tools/call', 'tools/call delete_user', meta);
    assert.equal(run.rpc.params.task, undefined);

    const { task: second } = await client.result('tools/call', { name: 'delete_user', arguments: ARGUMENTS, _meta: meta, task: {} });
    await s.admin.post(`/api/v1/tasks/${second.taskId}/approve`, { arguments: { text: `edited ${'e'.repeat(300)}` } });
    await s.admin.inState(second.taskId, 'completed');
    assert.match(s.upstream.calls.at(-1).rpc.params.arguments.text, /^edited e+$/);
    assert.deepEqual({ ...s.upstream.calls.at(-1).rpc.params._meta, traceparent: '' }, { ...meta, traceparent: '' });
  });

  test(`the bridges, both ways: ${where}`, async (t) => {
    const up = await stage(t, { upstream: modernServer(), source: { era: 'modern' } });
    const legacy = up.raw({ token: 'mine', capabilities: {} });
    assert.equal((await legacy.initialize({ _meta: meta })).status, 200);
    await legacy.notify('notifications/initialized');
    for (const [method, name, params] of [['tools/list', 'tools/list', {}], ['tools/call', 'tools/call read', { name: 'read', arguments: ARGUMENTS }]]) {
      await legacy.result(method, { ...params, _meta: meta });
      await assertSent(up, method, name);
    }
    const direct = modernClient(t, up.gateway.url, { capabilities: WITH_TASKS, token: 'mine' });
    await direct.result('tools/call', { name: 'read', arguments: ARGUMENTS }, { meta });
    await assertSent(up, 'tools/call', 'tools/call read');

    const down = await stage(t, { source: { bridge: 'modern' } });
    const modern = modernClient(t, down.gateway.url, { capabilities: {}, token: 'mine' });
    for (const [method, name, params] of [['tools/list', 'tools/list', {}], ['tools/call', 'tools/call read', { name: 'read', arguments: ARGUMENTS }]]) {
      await modern.result(method, params, { meta });
      await assertSent(down, method, name);
    }
    await down.span(SERVER, 'tools/call read');
  });
}

test('the control plane: a call that is forwarded and one that a person decides', async (t) => {
  const collector = await startCollector(t);
  const telemetry = { enabled: true, otlp: { endpoint: collector.url }, batch: { scheduled_delay_ms: 100 } };
  const tokens = [{ name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] }];
  const { ci, admin, upstream } = await controlPlane(t, { config: { telemetry, admin: { tokens } } });
  const args = { text: '"traceparent":"x"', traceparent: TRACEPARENT };
  const { id } = await called(ci, { tool: 'read', arguments: args });
  assert.equal((await result(ci, id, '10s')).status, 200);
  assert.deepEqual(upstream.of('tools/call').at(-1).rpc.params.arguments, args);
  const { id: held } = await called(ci, { tool: 'delete_user', arguments: args });
  await admin.approve(held);
  await admin.inState(held, 'completed');
  assert.deepEqual(upstream.of('tools/call').at(-1).rpc.params.arguments, args);
});
