// The rewriting of `initialize`: the detected capabilities, the added ones, and unchanged other members.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { assertSchema } from './lib/schema.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

/** The capabilities.tasks for every client if upstream has none: both spellings at once. */
const SUPERSET = { list: {}, cancel: {}, requests: { 'tools/call': true, tools: { call: {} } } };

async function capabilitiesFor(t, capabilities, replyAs = 'json') {
  const stage = await scene(t, { upstream: { capabilities, replyAs } });
  const answer = await stage.raw().initialize();
  return { ...stage, answer, capabilities: answer.message.result.capabilities };
}

for (const replyAs of ['json', 'sse']) {
  test(`task support is added in both spellings where upstream has none (${replyAs})`, async (t) => {
    const { capabilities, answer } = await capabilitiesFor(t, {}, replyAs);
    assert.deepEqual(capabilities, { tasks: SUPERSET });
    assertSchema(t, 'InitializeResult', answer.message.result);
    assert.ok(answer.headers['mcp-session-id']);
    assert.match(answer.headers['content-type'], replyAs === 'sse' ? /^text\/event-stream/ : /^application\/json/);
  });
}

test('other capabilities stay, known or not', async (t) => {
  const own = { tools: { listChanged: true }, logging: {}, resources: { subscribe: true }, experimental: { 'x/y': { z: [1, null] } }, somethingNew: { a: 1 } };
  const { capabilities } = await capabilitiesFor(t, own);
  assert.deepEqual(capabilities, { ...own, tasks: SUPERSET });
});

for (const [spelling, requests] of Object.entries({
  'tools.call as objects': { tools: { call: {} } },
  '"tools/call": true': { 'tools/call': true },
  '"tools.call": true': { 'tools.call': true },
})) {
  test(`upstream task support is detected when spelled ${spelling}, and its own members are kept`, async (t) => {
    const { gateway, capabilities } = await capabilitiesFor(t, { tasks: { requests: { ...requests, 'sampling/other': { own: 1 } }, vendor: { v: 1 } } });
    await gateway.logged(/^Upstream capabilities: tasks=true sse=false$/);
    assert.equal(capabilities.tasks.requests['tools/call'], true);
    assert.deepEqual(capabilities.tasks.requests.tools, { call: {} });
    assert.deepEqual(capabilities.tasks.requests['sampling/other'], { own: 1 });
    assert.deepEqual(capabilities.tasks.vendor, { v: 1 });
    assert.deepEqual([capabilities.tasks.list, capabilities.tasks.cancel], [{}, {}]);
    for (const [key, value] of Object.entries(requests)) assert.deepEqual(capabilities.tasks.requests[key], value);
  });
}

test('no task support in sight is logged as tasks=false', async (t) => {
  for (const capabilities of [{ tools: {} }, { tasks: {} }, { tasks: { requests: {} } }, { tasks: { requests: { 'tools/call': false } } }]) {
    const { gateway, raw } = await scene(t, { upstream: { capabilities } });
    await raw().initialize();
    await gateway.logged(/^Upstream capabilities: tasks=false sse=false$/);
    assert.ok(!gateway.logs.some((entry) => /tasks=true/.test(entry.msg)));
  }
});

test('task status notifications are advertised exactly when upstream advertises them', async (t) => {
  for (const [own, advertised] of [
    [{ notifications: { tasks: { status: true } } }, { tasks: { status: true } }],
    [{ notifications: { tasks: { status: true }, other: { x: 1 } } }, { tasks: { status: true }, other: { x: 1 } }],
    [{ notifications: { other: { x: 1 } } }, { other: { x: 1 } }],
    [{}, undefined],
  ]) {
    const { gateway, capabilities } = await capabilitiesFor(t, own);
    assert.deepEqual(capabilities.notifications, advertised);
    await gateway.logged(new RegExp(`^Upstream capabilities: tasks=false sse=${Boolean(advertised?.tasks)}$`));
  }
  for (const status of [false, null]) {
    const { capabilities } = await capabilitiesFor(t, { notifications: { tasks: { status } } });
    assert.notEqual(capabilities.notifications?.tasks?.status, true);
  }
});

test('everything but the tasks capability is byte-true', async (t) => {
  const { upstream, raw } = await scene(t);
  const result = '{ "protocolVersion" : "2025-11-25",\n "capabilities":{"tools":{ "listChanged":true , "n":1.0},"x":12345678901234567890} ,"serverInfo":{"name":"caf\\u00e9 é \\/","version":"1"},"instructions":"line\\nline \\u2028","_meta":{"big":1E+400,"a":[ ]}}';
  upstream.handlers.initialize = ({ reply, rpc }) => reply.http(200, { 'content-type': 'application/json', 'x-kept': '1' }, `{"jsonrpc":"2.0", "id":${JSON.stringify(rpc.id)},"result":${result}}\n`);
  const answer = await raw().initialize();
  assert.equal(answer.headers['x-kept'], '1');
  for (const piece of ['"protocolVersion" : "2025-11-25"', '"tools":{ "listChanged":true , "n":1.0}', '"x":12345678901234567890', '"serverInfo":{"name":"caf\\u00e9 é \\/","version":"1"}', '"instructions":"line\\nline \\u2028"', '"_meta":{"big":1E+400,"a":[ ]}']) {
    assert.ok(answer.text.includes(piece), `${piece} in ${answer.text}`);
  }
  assert.deepEqual(answer.message.result.capabilities.tasks, SUPERSET);
  assert.equal(Number(answer.headers['content-length'] ?? answer.bytes.length), answer.bytes.length);
});

test('an SSE reply keeps its other events, ids and order', async (t) => {
  const { upstream, raw } = await scene(t);
  upstream.handlers.initialize = ({ reply, rpc, params }) => {
    const stream = reply.sse();
    stream.raw('id: prime\nretry: 300\ndata:\n\n');
    stream.event('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}', { id: 'a' });
    stream.event({ jsonrpc: '2.0', id: rpc.id, result: { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: 's', version: '1' } } }, { id: 'b', event: 'message' });
    stream.end();
  };
  const answer = await raw().initialize();
  assert.deepEqual(answer.message.result.capabilities.tasks, SUPERSET);
  const events = answer.events.filter((e) => e.comment === undefined);
  assert.deepEqual(events.map((e) => e.id), ['prime', 'a', 'b']);
  assert.equal(events[0].retry, '300');
  assert.equal(events[1].data, '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}');
});

test('an error of initialize, and an HTTP error, pass as they are', async (t) => {
  const { upstream, raw } = await scene(t);
  upstream.handlers.initialize = ({ reply, rpc }) => reply.http(200, { 'content-type': 'application/json' }, `{"jsonrpc":"2.0","id":${rpc.id},"error":{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2024-11-05"]}}}`);
  assert.deepEqual((await raw().initialize()).message.error, { code: -32602, message: 'Unsupported protocol version', data: { supported: ['2024-11-05'] } });
  upstream.handlers.initialize = ({ reply }) => reply.http(403, { 'content-type': 'text/plain' }, 'go away');
  const answer = await raw().initialize();
  assert.deepEqual([answer.status, answer.text], [403, 'go away']);
});

test("the initialize request of a client that can be asked reaches upstream byte for byte", async (t) => {
  const { upstream, raw } = await scene(t);
  const body = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{ },"sampling":{},"roots":{"listChanged":true}},"clientInfo":{"name":"c","version":"1"}}}';
  await raw().send('', undefined, { body, id: 0 });
  assert.ok(upstream.of('initialize').some((r) => r.text === body));
});

test('capabilities are kept per session: two sessions with different ones are served differently', async (t) => {
  const { upstream, connect } = await scene(t);
  const plain = await connect();
  upstream.capabilities = { tools: {}, tasks: TASKS };
  const capable = await connect();
  const support = async (client) => (await client.result('tools/list')).tools.find((x) => x.name === 'read').execution.taskSupport;
  assert.equal(await support(plain), 'forbidden');
  assert.equal(await support(capable), 'optional');
  assert.equal(await support(plain), 'forbidden');
});

test("sessionless clients are served by upstream's last capabilities", async (t) => {
  const { upstream, raw, connect } = await scene(t, { upstream: { sessions: false } });
  const sessionless = raw();
  const support = async () => (await sessionless.result('tools/list', undefined, { headers: { 'mcp-protocol-version': '2025-11-25' } })).tools[0].execution?.taskSupport;
  assert.equal(await support(), undefined);
  upstream.capabilities = { tools: {}, tasks: TASKS };
  await connect();
  await until(async () => (await support()) === 'optional', 'the new capabilities in force');
  upstream.capabilities = { tools: {} };
  await connect();
  await until(async () => (await support()) === undefined, 'the last capabilities in force');
});

test('of what a client declares, what is asked for later is known after a restart, and no more is kept', async (t) => {
  const { gateway, connect, raw } = await scene(t);
  const names = async (client) => (await client.result('tools/list')).tools.map((x) => x.name).sort();
  const clients = [];
  const written = () => ['', '-wal'].map((end) => fs.statSync(`${gateway.storePath}${end}`, { throwIfNoEntry: false })?.size ?? 0).reduce((a, b) => a + b);
  const empty = written();
  for (const capabilities of [{ tasks: {} }, { tasks: false }, { elicitation: {}, sampling: {} }, {}]) {
    clients.push(await connect({ capabilities: { experimental: { long: 'x'.repeat(300_000) }, ...capabilities } }));
  }
  const before = await Promise.all(clients.map(names));
  assert.ok(!before[0].includes('get_task_result') && before[1].includes('get_task_result'));
  assert.ok(written() - empty < 300_000, `${written()} bytes, and ${empty} before`);
  await gateway.restart();
  assert.deepEqual(await Promise.all(clients.map(names)), before);
});
