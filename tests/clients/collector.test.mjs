// The receiver of OpenTelemetry's collector takes the gateway's spans, in both encodings, and reads in them what was meant.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Child } from '../integration/lib/child.mjs';
import { CLIENT, ERROR, fromJson, INTERNAL, SERVER } from '../integration/lib/collector.mjs';
import { workflow } from '../integration/lib/gateway.mjs';
import { defer } from '../integration/lib/lifetime.mjs';
import { freePort } from '../integration/lib/ports.mjs';
import { scene } from '../integration/lib/scene.mjs';
import { tool } from '../integration/lib/upstream.mjs';
import { until } from '../integration/lib/wait.mjs';

const PROGRAM = path.join(path.dirname(fileURLToPath(import.meta.url)), 'build/collector');
const skip = fs.existsSync(PROGRAM) ? false : 'build/collector was not made: tests/clients/run says why';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

/** The collector; `resources()` is what it has taken so far. */
async function startCollector(t) {
  const endpoint = `127.0.0.1:${await freePort()}`;
  const child = new Child(PROGRAM, [endpoint], { name: 'collector' });
  defer(t, async () => assert.deepEqual(await child.stop('SIGTERM'), { code: 0, signal: null }));
  await child.ready(() => child.stdout.startsWith('listening\n'), 'listening');
  const resources = () => child.stdout.split('\n').slice(1, -1).flatMap((line) => fromJson(JSON.parse(line)));
  return { endpoint: `http://${endpoint}`, resources };
}

for (const protocol of ['http/protobuf', 'http/json']) {
  test(`${protocol}: a forwarded, a denied and an approved call arrive whole`, { skip }, async (t) => {
    const { endpoint, resources } = await startCollector(t);
    const { admin, connect } = await scene(t, {
      rules: [['delete_*', 'approve'], ['secret_*', 'deny']],
      approval: workflow('10m'),
      upstream: { tools: [tool('read'), tool('delete_user'), tool('secret_thing')] },
      config: { telemetry: { enabled: true, otlp: { endpoint, protocol }, batch: { scheduled_delay_ms: 100 }, resource: { team: 'a "b" ü' } } },
    });
    const client = await connect();
    const headers = { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: 'vendor=1' };
    await client.send('tools/call', { name: 'read', arguments: {} }, { headers, id: 'an "id"' });
    await client.send('tools/call', { name: 'secret_thing', arguments: {} }, { headers });
    const { message } = await client.send('tools/call', { name: 'delete_user', arguments: {}, task: {} }, { headers });
    const { taskId } = message.result;
    await admin.approve(taskId);
    await admin.inState(taskId, 'completed');
    const names = () => resources().flatMap(({ spans }) => spans).filter(({ traceId }) => traceId === TRACE);
    const spans = await until(() => names().length >= 6 && names(), () => `six spans; there are ${names().map(({ name, kind }) => `${name} (${kind})`).join(', ')}`);
    const one = (kind, name) => {
      const [span, ...others] = spans.filter((item) => item.kind === kind && item.name === name);
      assert.ok(span && others.length === 0, `one span ${name} (${kind})`);
      return span;
    };
    const read = one(SERVER, 'tools/call read');
    assert.deepEqual([read.parentId, read.state, read.attributes['jsonrpc.request.id'], read.attributes['thoughtgate.decision']], [PARENT, 'vendor=1', 'an "id"', 'forward']);
    const up = one(CLIENT, 'tools/call read');
    assert.deepEqual([up.parentId, up.attributes['http.response.status_code']], [read.spanId, 200]);
    assert.ok(read.start <= up.start && up.end <= read.end && read.start > 1_700_000_000_000_000_000n, 'times are in nanoseconds since 1970');
    const denied = one(SERVER, 'tools/call secret_thing');
    assert.deepEqual([denied.status.code, denied.attributes['error.type']], [ERROR, '-32014']);
    const [create, wait, run] = [one(SERVER, 'tools/call delete_user'), one(INTERNAL, 'approval delete_user'), one(CLIENT, 'tools/call delete_user')];
    assert.deepEqual([wait.parentId, run.parentId, wait.attributes['thoughtgate.outcome']], [create.spanId, create.spanId, 'approved']);
    assert.deepEqual(run.links.map(({ spanId }) => spanId).sort(), [create.spanId, wait.spanId].sort());
    for (const { attributes } of resources()) assert.deepEqual([attributes['service.name'], attributes.team], ['taskgate', 'a "b" ü']);
    assert.match((await admin.get('/metrics')).text, /^thoughtgate_telemetry_dropped_total\{signal="traces"\} 0$/m);
  });
}
