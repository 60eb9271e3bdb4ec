// Telemetry by OTLP: spans of requests, of calls to servers, of the wait for a person, and their way to a collector.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { Authority } from './lib/certificates.mjs';
import { CLIENT, ERROR, INTERNAL, parseTraceparent, SERVER, startCollector } from './lib/collector.mjs';
import { startGateway, temporaryFolder, workflow } from './lib/gateway.mjs';
import { exchange } from './lib/http.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const TRACEPARENT = `00-${TRACE}-${PARENT}-01`;
const OTHER = '00-11111111111111111111111111111111-2222222222222222-01';
const NEEDLE = 'needle-in-the-arguments';
const RULES = [['delete_*', 'approve'], ['secret_*', 'deny'], ['read', 'forward']];
const BATCH = { scheduled_delay_ms: 100 };

/** A gateway that exports to a collector of the test's own. `telemetry` is laid over the block. */
async function stage(t, { telemetry = {}, collector: options, ...more } = {}) {
  const collector = await startCollector(t, options);
  const { otlp, ...rest } = telemetry;
  const block = { enabled: true, otlp: { endpoint: collector.url, ...otlp }, batch: BATCH, ...rest };
  const all = await scene(t, {
    rules: RULES, approval: workflow('10m'), ...more, config: { ...more.config, telemetry: block },
    upstream: { tools: [tool('read'), tool('delete_user'), tool('secret_thing')], sessions: false, ...more.upstream },
  });
  return { collector, ...all };
}

const spanOf = (collector, traceId, kind) => collector.span((span) => span.traceId === traceId && span.kind === kind);
const post = (gateway, body, headers = {}) => exchange(gateway.url, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers } });
const callOf = (name, params = {}) => ({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name, arguments: { text: NEEDLE }, ...params } });
const dropped = async (admin) => Number(/^thoughtgate_telemetry_dropped_total\{signal="traces"\} (\d+)/m.exec((await admin.get('/metrics')).text)?.[1] ?? assert.fail('the series is missing'));

test('a forwarded call is a SERVER span with a CLIENT span below it, in the trace of the client', async (t) => {
  const { collector, upstream, gateway, connect } = await stage(t, { upstream: { sessions: true }, telemetry: { resource: { 'deployment.environment': 'test' }, otlp: { headers: { 'x-api-key': 'collector-secret' } } } });
  const client = await connect();
  await client.send('tools/call', callOf('read').params, { headers: { traceparent: TRACEPARENT, tracestate: 'vendor=1' } });
  const server = await spanOf(collector, TRACE, SERVER);
  const up = await spanOf(collector, TRACE, CLIENT);
  assert.equal(server.name, 'tools/call read');
  assert.equal(server.parentId, PARENT);
  assert.equal(server.state, 'vendor=1');
  assert.equal(server.flags & 0x300, 0x300, 'its parent is remote');
  assert.equal(server.status.code, 0);
  const { attributes } = server;
  assert.equal(attributes['mcp.method.name'], 'tools/call');
  assert.equal(attributes['mcp.tool.name'], 'read');
  assert.equal(attributes['gen_ai.tool.name'], 'read');
  assert.equal(attributes['mcp.session.id'], createHash('sha256').update(client.session).digest('hex'));
  assert.equal(attributes['mcp.protocol.version'], '2025-11-25');
  assert.equal(attributes['thoughtgate.decision'], 'forward');
  assert.equal(attributes['thoughtgate.rule'], 'read');
  assert.equal(attributes['thoughtgate.source'], 'up');
  assert.ok(server.start <= up.start && up.start <= up.end && up.end <= server.end, 'one is within the other');
  assert.equal(up.parentId, server.spanId);
  assert.equal(up.name, 'tools/call read');
  assert.equal(up.attributes['server.port'], upstream.port);
  assert.equal(up.attributes['http.response.status_code'], 200);
  assert.deepEqual(parseTraceparent(upstream.calls[0].headers.traceparent), { traceId: TRACE, spanId: up.spanId, flags: '01' });
  assert.equal(upstream.calls[0].headers.tracestate, 'vendor=1');
  // Other methods have spans by their names.
  assert.equal((await collector.span(({ name, kind }) => name === 'initialize' && kind === SERVER)).attributes['mcp.method.name'], 'initialize');
  await collector.span('notifications/initialized');
  // The request to the collector, and the texts that it must not have.
  const [request] = collector.requests;
  assert.equal(request.path, '/v1/traces');
  assert.equal(request.headers['content-type'], 'application/x-protobuf');
  assert.equal(request.headers['x-api-key'], 'collector-secret');
  assert.equal(request.resources[0].attributes['service.name'], 'taskgate');
  assert.equal(request.resources[0].attributes['deployment.environment'], 'test');
  assert.deepEqual(request.resources[0].scopes.map(({ name }) => name), ['taskgate']);
  for (const { body } of collector.requests) for (const secret of [NEEDLE, client.session, 'collector-secret']) assert.ok(!body.includes(secret), secret);
  assert.ok(!gateway.child.output().includes('collector-secret'), 'no header is logged');
});

test('trace context in the message counts before the header, and goes up where it came', async (t) => {
  const { collector, upstream, connect } = await stage(t);
  const client = await connect();
  const body = `{"jsonrpc": "2.0","id":5,"method":"tools/call","params":{"name":"read","_meta":{"tracestate":"m=1", "traceparent" : "${TRACEPARENT}","progressToken":1},"arguments":{"a":1.50,"traceparent":"${TRACEPARENT}"}}}`;
  await client.send('', undefined, { body, id: 5, headers: { traceparent: OTHER, tracestate: 'h=1' } });
  const server = await spanOf(collector, TRACE, SERVER);
  const up = await spanOf(collector, TRACE, CLIENT);
  assert.equal(server.parentId, PARENT);
  assert.equal(server.state, 'm=1');
  assert.deepEqual(server.links, [{ traceId: '1'.repeat(32), spanId: '2'.repeat(16), parentId: '' }], 'the header is a link');
  // No byte differs but those of the span's id in _meta.
  assert.equal(upstream.calls[0].text, body.replace(`"traceparent" : "${TRACEPARENT}"`, `"traceparent" : "00-${TRACE}-${up.spanId}-01"`));
  assert.equal(upstream.calls[0].headers['content-length'], String(body.length));
  assert.equal(parseTraceparent(upstream.calls[0].headers.traceparent).spanId, up.spanId);
  assert.equal(upstream.calls[0].headers.tracestate, 'm=1');
  // A message that names no trace stays as it is.
  const plain = body.replace(`"traceparent" : "${TRACEPARENT}",`, '');
  await client.send('', undefined, { body: plain, id: 5 });
  assert.equal(upstream.calls[1].text, plain);
  parseTraceparent(upstream.calls[1].headers.traceparent);
});

test('trace context that is none begins a new trace, and does not go up', async (t) => {
  const { collector, upstream, gateway } = await stage(t);
  const hostile = [
    ['upper case', TRACEPARENT.toUpperCase()], ['too short', TRACEPARENT.slice(0, -1)], ['too long', `${TRACEPARENT}0`],
    ['more behind it', `${TRACEPARENT}-x`], ['very long', `${TRACEPARENT}${'-a'.repeat(4000)}`], ['bad hex', TRACEPARENT.replace('b7', 'g7')],
    ['no trace', `00-${'0'.repeat(32)}-${PARENT}-01`], ['no parent', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['forbidden version', TRACEPARENT.replace(/^00/, 'ff')], ['empty', ''], ['two in one', `${TRACEPARENT},${OTHER}`],
    ['two headers', [TRACEPARENT, OTHER]], ['the same twice', [TRACEPARENT, TRACEPARENT]],
  ];
  for (const [what, traceparent] of hostile) {
    const { status } = await post(gateway, callOf('read'), { traceparent, tracestate: 'vendor=1' });
    assert.equal(status, 200, what);
    const sent = upstream.calls.at(-1);
    const { traceId } = parseTraceparent(sent.headers.traceparent);
    assert.notEqual(traceId, TRACE, what);
    assert.equal(sent.headers.tracestate, undefined, `${what}: the state of another trace`);
    assert.equal((await spanOf(collector, traceId, SERVER)).parentId, '', what);
  }
  for (const [what, traceparent] of [['a number', 5], ['an object', { a: 1 }], ['bad hex', TRACEPARENT.replace('b7', 'zz')], ['escapes', 'u'], ['all zero', `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01`]]) {
    const body = JSON.stringify(callOf('read', { _meta: { traceparent } }));
    await exchange(gateway.url, { method: 'POST', body, headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' } });
    assert.equal(upstream.calls.at(-1).text, body, `${what}: such a message stays as it is`);
    assert.notEqual(parseTraceparent(upstream.calls.at(-1).headers.traceparent).traceId, TRACE, what);
  }
  // A later version may say more: what is known of it counts.
  await post(gateway, callOf('read'), { traceparent: `01-${TRACE}-${PARENT}-01-more` });
  assert.equal(parseTraceparent(upstream.calls.at(-1).headers.traceparent).traceId, TRACE);
  // A state that is too long is dropped, and so is one of bytes that are no text.
  for (const tracestate of [`a=${'x'.repeat(600)}`, 'a=\u00e9']) {
    await post(gateway, callOf('read'), { traceparent: TRACEPARENT, tracestate });
    assert.equal(upstream.calls.at(-1).headers.tracestate, undefined);
  }
  // Several headers of a state are one list.
  await post(gateway, callOf('read'), { traceparent: TRACEPARENT, tracestate: ['a=1', 'b=2'] });
  assert.equal(upstream.calls.at(-1).headers.tracestate, 'a=1,b=2');
});

test('refusals are errors of their spans; a server that fails is one of both', async (t) => {
  const { collector, upstream, gateway } = await stage(t);
  const trace = (n) => `00-${String(n).repeat(32)}-${PARENT}-01`;
  await post(gateway, callOf('secret_thing'), { traceparent: trace(1) });
  const denied = await spanOf(collector, '1'.repeat(32), SERVER);
  assert.deepEqual([denied.status.code, denied.attributes['thoughtgate.decision'], denied.attributes['thoughtgate.rule']], [ERROR, 'deny', 'secret_*']);
  assert.deepEqual([denied.attributes['error.type'], denied.attributes['rpc.response.status_code']], ['-32014', '-32014']);
  await post(gateway, { jsonrpc: '2.0', id: 1, method: 'no/such' }, { traceparent: trace(2) });
  assert.equal((await spanOf(collector, '2'.repeat(32), SERVER)).status.code, ERROR);
  upstream.handlers['tools/call'] = ({ reply }) => reply.http(503, {}, 'no');
  await post(gateway, callOf('read'), { traceparent: trace(3) });
  for (const kind of [SERVER, CLIENT]) {
    const failed = await spanOf(collector, '3'.repeat(32), kind);
    assert.deepEqual([failed.status.code, failed.attributes['error.type'], failed.attributes['http.response.status_code']], [ERROR, '503', 503], String(kind));
  }
  await upstream.stop();
  await post(gateway, callOf('read'), { traceparent: trace(4) });
  assert.equal((await spanOf(collector, '4'.repeat(32), CLIENT)).attributes['error.type'], 'connect_failed');
  assert.equal((await spanOf(collector, '4'.repeat(32), SERVER)).status.code, ERROR);
});

test('the wait for a person is one span from the creation to the decision, across a restart; the execution is linked', async (t) => {
  const { collector, upstream, gateway, admin, connect } = await stage(t);
  const client = await connect();
  const headers = { traceparent: TRACEPARENT, tracestate: 'vendor=1' };
  const before = BigInt(Date.now()) * 1_000_000n;
  const { message } = await client.send('tools/call', { ...callOf('delete_user').params, task: { ttl: 600_000 } }, { headers });
  const { taskId } = message.result;
  const create = await spanOf(collector, TRACE, SERVER);
  assert.deepEqual([create.attributes['thoughtgate.decision'], create.attributes['thoughtgate.rule'], create.attributes['thoughtgate.task.id']], ['approve', 'delete_*', taskId]);
  assert.equal(create.attributes['thoughtgate.workflow'], 'default');
  await gateway.restart();
  await client.send('tools/get', {}).catch(() => {});
  await admin.approve(taskId);
  const wait = await collector.span('approval delete_user');
  assert.deepEqual([wait.traceId, wait.parentId, wait.kind, wait.state], [TRACE, create.spanId, INTERNAL, 'vendor=1']);
  assert.deepEqual(wait.links.map(({ spanId }) => spanId), [create.spanId]);
  assert.deepEqual([wait.attributes['thoughtgate.task.id'], wait.attributes['thoughtgate.outcome'], wait.attributes['mcp.tool.name']], [taskId, 'approved', 'delete_user']);
  assert.ok(wait.start >= before - 1_000_000n && wait.end > wait.start && wait.end > create.end, 'it ends with the decision');
  // The owner's next request brings the credentials, and with them the execution.
  await client.send('tasks/result', { taskId });
  const run = await collector.span((span) => span.kind === CLIENT && span.attributes['thoughtgate.task.id'] === taskId && span.name === 'tools/call delete_user');
  assert.deepEqual([run.traceId, run.parentId], [TRACE, create.spanId]);
  assert.deepEqual(run.links.map(({ spanId }) => spanId).sort(), [create.spanId, wait.spanId].sort());
  const sent = upstream.calls.find(({ rpc }) => rpc.params.name === 'delete_user');
  assert.equal(parseTraceparent(sent.headers.traceparent).spanId, run.spanId);
  assert.equal(sent.headers.tracestate, 'vendor=1');
  assert.equal((await collector.span('tasks/result')).attributes['thoughtgate.task.id'], taskId);
  for (const { body } of collector.requests) assert.ok(!body.includes(NEEDLE));
});

test('a call that an operator rejects, and nobody sends, has spans as well', async (t) => {
  const { collector, admin, connect } = await stage(t, { config: { admin: { tokens: [] } } });
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  await admin.reject(taskId);
  const wait = await collector.span('approval delete_user');
  assert.equal(wait.attributes['thoughtgate.outcome'], 'rejected');
  assert.match(wait.traceId, /^(?!0{32})[0-9a-f]{32}$/);
});

test('sampling: the client decides, else the ratio; what is not sampled says so upstream', async (t) => {
  const { collector, upstream, gateway } = await stage(t, { telemetry: { sampling: { strategy: 'head', success_sample_rate: 0 } } });
  await post(gateway, callOf('read'));
  assert.equal(parseTraceparent(upstream.calls[0].headers.traceparent).flags, '00');
  await post(gateway, callOf('read'), { traceparent: TRACEPARENT.replace(/01$/, '00') });
  assert.equal(parseTraceparent(upstream.calls[1].headers.traceparent).flags, '00');
  await post(gateway, callOf('read'), { traceparent: TRACEPARENT });
  const spans = [await spanOf(collector, TRACE, SERVER), await spanOf(collector, TRACE, CLIENT)];
  assert.deepEqual(collector.spans.map(({ spanId }) => spanId).sort(), spans.map(({ spanId }) => spanId).sort(), 'nothing else was kept');
});

test("OpenTelemetry's variables win over the file, and JSON is spoken", async (t) => {
  const collector = await startCollector(t);
  const { upstream, gateway } = await scene(t, {
    upstream: { sessions: false },
    config: { telemetry: { enabled: false, otlp: { endpoint: 'http://127.0.0.1:9', headers: { 'x-from': 'file' } }, batch: BATCH, resource: { 'service.name': 'file' } } },
    env: {
      THOUGHTGATE_TELEMETRY_ENABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_EXPORTER_OTLP_HEADERS: 'x-from=variable%2C%20x,authorization=Bearer%20t',
      OTEL_SERVICE_NAME: 'gate', OTEL_TRACES_SAMPLER: 'always_on', K8S_NAMESPACE: 'tools', POD_NAME: 'gate-1', NODE_NAME: 'node-1', HOSTNAME: 'host-1',
    },
  });
  await post(gateway, callOf('read', { _meta: { traceparent: TRACEPARENT.replace(/01$/, '00') } }));
  const server = await spanOf(collector, TRACE, SERVER);
  assert.equal(server.attributes['mcp.tool.name'], 'read');
  assert.equal(parseTraceparent(upstream.calls[0].headers.traceparent).flags, '01', 'always_on asks no client');
  const [request] = collector.requests;
  assert.ok(request.isJson);
  assert.deepEqual([request.path, request.headers['x-from'], request.headers.authorization], ['/v1/traces', 'variable, x', 'Bearer t']);
  const { 'service.instance.id': instance, 'service.version': version, ...resource } = request.resources[0].attributes;
  assert.ok(instance && version);
  assert.deepEqual(resource, { 'service.name': 'gate', 'k8s.namespace.name': 'tools', 'k8s.pod.name': 'gate-1', 'k8s.node.name': 'node-1', 'host.name': 'host-1' });
});

test("OpenTelemetry's variables for traces alone, for the resource and for a certificate", async (t) => {
  const authority = new Authority(temporaryFolder(t));
  const { cert, key } = authority.issue('collector');
  const collector = await startCollector(t, { tls: { cert, key } });
  const { gateway } = await scene(t, {
    upstream: { sessions: false },
    config: { telemetry: { enabled: true, otlp: { endpoint: 'http://127.0.0.1:9' }, resource: { team: 'file', kept: 'yes' } } },
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own/path`, OTEL_EXPORTER_OTLP_CERTIFICATE: authority.file,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-a=1', OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-b=2', OTEL_BSP_SCHEDULE_DELAY: '100',
      OTEL_RESOURCE_ATTRIBUTES: 'team=a%20b,service.name=lost,deployment.environment=test', OTEL_SERVICE_NAME: 'gate',
    },
  });
  await post(gateway, callOf('read'), { traceparent: TRACEPARENT });
  await spanOf(collector, TRACE, SERVER);
  const [request] = collector.requests;
  assert.deepEqual([request.path, request.headers['x-a'], request.headers['x-b']], ['/own/path', undefined, '2']);
  const { 'service.name': service, team, kept, 'deployment.environment': environment } = request.resources[0].attributes;
  assert.deepEqual({ service, team, kept, environment }, { service: 'gate', team: 'a b', kept: 'yes', environment: 'test' });
});

test('OTEL_SDK_DISABLED and OTEL_TRACES_EXPORTER=none switch telemetry off', async (t) => {
  for (const env of [{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }]) {
    const { collector, gateway, upstream } = await stage(t, { env });
    await post(gateway, callOf('read'), { traceparent: TRACEPARENT });
    assert.equal(upstream.calls[0].headers.traceparent, TRACEPARENT, 'it passes as it is');
    await gateway.stop(); // sends the waiting spans
    assert.equal(collector.requests.length, 0);
  }
});

test('a collector that is down, refuses, or asks for patience: calls go on, and what is lost is counted', async (t) => {
  const { collector, gateway, admin } = await stage(t);
  assert.equal(await dropped(admin), 0);
  // It asks for patience, and gets the same batch again.
  let asked = 0;
  collector.answer = () => (asked++ === 0 ? { status: 503, headers: { 'retry-after': '1' } } : { status: 200 });
  await post(gateway, callOf('read'), { traceparent: TRACEPARENT });
  const twice = await until(() => collector.requests.length >= 2 && collector.requests, 'a second attempt');
  assert.deepEqual(twice[0].body, twice[1].body);
  await gateway.logged(/^The collector takes telemetry again$/);
  assert.equal(await dropped(admin), 0);
  // It takes a part. The spans of a call may come in two batches.
  let told = 0;
  collector.answer = () => (told++ === 0 ? { status: 200, rejected: 1, message: 'too old' } : { status: 200 });
  await post(gateway, callOf('read'), { traceparent: OTHER });
  assert.equal((await gateway.logged(/^The collector has rejected spans$/)).reason, 'too old');
  for (const kind of [SERVER, CLIENT]) await spanOf(collector, '1'.repeat(32), kind);
  await until(async () => (await dropped(admin)) === 1, 'the rejected span to be counted');
  // It refuses for good: no second attempt.
  const before = collector.requests.length;
  collector.answer = () => ({ status: 400 });
  await post(gateway, callOf('read'));
  await until(async () => (await dropped(admin)) === 3, 'both spans to be counted');
  const refused = collector.requests.slice(before).map(({ body }) => body.toString('hex'));
  assert.equal(new Set(refused).size, refused.length, 'no batch came twice');
  // It is gone.
  await collector.stop();
  const answers = await Promise.all(Array.from({ length: 5 }, () => post(gateway, callOf('read'))));
  assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200, 200, 200]);
  await until(async () => (await dropped(admin)) > 3, 'lost spans to be counted');
});

test('the queue is bounded, and a collector that hangs does not hold the end of the process', async (t) => {
  const { collector, gateway, admin } = await stage(t, { telemetry: { batch: { max_queue_size: 3, max_export_batch_size: 3, scheduled_delay_ms: 60_000 } }, env: { THOUGHTGATE_DRAIN_TIMEOUT_SECS: '1' } });
  collector.answer = () => undefined; // the first batch hangs there until the process ends
  await Promise.all(Array.from({ length: 2 }, () => post(gateway, callOf('read'))));
  await until(() => collector.requests.length === 1, 'the first batch');
  await Promise.all(Array.from({ length: 3 }, () => post(gateway, callOf('read'))));
  await until(async () => (await dropped(admin)) > 0, 'spans beyond the queue');
  const started = performance.now();
  await gateway.stop();
  assert.ok(performance.now() - started < 15_000, 'the collector does not hold the process');
  assert.ok(gateway.logs.some(({ msg }) => msg === 'Spans were dropped at the end of the process'));
});

test('spans that wait are sent within the shutdown', async (t) => {
  const { collector, gateway } = await stage(t, { telemetry: { batch: { scheduled_delay_ms: 600_000 } } });
  await post(gateway, callOf('read'), { traceparent: TRACEPARENT });
  assert.equal(collector.requests.length, 0);
  await gateway.stop();
  assert.deepEqual(collector.spans.filter(({ traceId }) => traceId === TRACE).map(({ kind }) => kind).sort(), [SERVER, CLIENT]);
});

test('a collector behind TLS is called by the authority that the file names', async (t) => {
  const authority = new Authority(temporaryFolder(t));
  const { cert, key } = authority.issue('collector');
  const { collector, gateway } = await stage(t, { collector: { tls: { cert, key } }, telemetry: { otlp: { tls: { ca: authority.file } } } });
  await post(gateway, callOf('read'), { traceparent: TRACEPARENT });
  await spanOf(collector, TRACE, SERVER);
  const stranger = await startGateway(t, { upstream: 'http://127.0.0.1:9/mcp', awaitUpstream: false, config: { telemetry: { enabled: true, otlp: { endpoint: collector.url }, batch: BATCH } } });
  await post(stranger, callOf('read'));
  await stranger.logged(/^The collector does not take telemetry$/);
});

test('without telemetry, trace context passes through untouched', async (t) => {
  const { upstream, gateway } = await scene(t, { upstream: { sessions: false } });
  const body = callOf('read', { _meta: { traceparent: TRACEPARENT } });
  await post(gateway, body, { traceparent: OTHER, tracestate: 'vendor=1' });
  assert.equal(upstream.calls[0].text, JSON.stringify(body));
  assert.deepEqual([upstream.calls[0].headers.traceparent, upstream.calls[0].headers.tracestate], [OTHER, 'vendor=1']);
  // A reload cannot switch it on, and says so.
  gateway.writeConfig({ config: { telemetry: { enabled: true, sampling: { strategy: 'head' } } } });
  gateway.hangUp();
  await gateway.logged(({ msg, key }) => /^This key takes effect after a restart only$/.test(msg) && key === 'telemetry');
});
