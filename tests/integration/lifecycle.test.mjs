// The process: shutdown that loses nothing, one process per store, crashes in every state of a task.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { Agent } from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { Child } from './lib/child.mjs';
import { BINARY, configuration, temporaryFolder, workflow } from './lib/gateway.mjs';
import { exchange, socketTo } from './lib/http.mjs';
import { defer } from './lib/lifetime.mjs';
import { freePort } from './lib/ports.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until, within } from './lib/wait.mjs';
import { toYaml } from './lib/yaml.mjs';

const stage = (t, more = {}) => scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user'), tool('read')] }, ...more });

/** A call of which all but the last byte has been sent; `finish` sends it, and gives the answer with its head. */
async function halfSent(t, gateway, client, call) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'late', method: 'tools/call', params: call });
  const headers = { host: `127.0.0.1:${gateway.port}`, ...client.standardHeaders(), accept: 'application/json', 'content-length': Buffer.byteLength(body) };
  const socket = await socketTo(gateway.port);
  defer(t, () => socket.destroy());
  const text = `POST /mcp HTTP/1.1\r\n${Object.entries(headers).filter(([, value]) => value !== undefined).map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`;
  await new Promise((resolve) => socket.write(text.slice(0, -1), resolve));
  const ended = new Promise((resolve) => socket.once('close', resolve));
  return async () => {
    socket.write(text.slice(-1));
    assert.equal(await within(ended, 'the end of the connection'), false, 'no reset');
    return socket.received;
  };
}

test('SIGTERM: what is held is answered as pending, only tasks/result is -32013, what runs goes on, and a request on its way is served', async (t) => {
  const held = [];
  const { upstream, gateway, admin, connect } = await stage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '50s', wait_max: '50s' } } });
  upstream.handlers['tools/call'] = (call) => (call.params.arguments?.hold ? void held.push(call) : call.reply.result({ content: [{ type: 'text', text: 'did it' }] }));
  const [client, plain] = [await connect(), await connect({ capabilities: {} })];
  const { taskId } = await client.createTask('delete_user');
  const stream = await client.stream('tasks/result', { taskId });
  const waiting = client.send('tasks/result', { taskId }, { headers: { accept: 'application/json' } });
  const listening = await client.listen();
  const flying = client.call('tools/call', { name: 'read', arguments: { hold: true } });
  const deletes = (n) => ({ name: 'delete_user', arguments: { n } });
  const gated = [plain.call('tools/call', deletes(1)), plain.call('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'delete_user', args: { n: 2 } } })];
  await until(async () => (await admin.list()).tasks.length === 3 && held.length === 1, 'the calls to be held');
  const late = [await halfSent(t, gateway, plain, { name: 'read', arguments: {} }), await halfSent(t, gateway, plain, deletes(3))];
  gateway.child.signal('SIGTERM');
  await gateway.logged(/Shutting down/);
  for (const { error } of [await stream.message((m) => m.id === stream.id), (await waiting).message]) assert.deepEqual([error.code, error.data.retry_after], [-32013, 1]);
  for (const { result } of await Promise.all(gated)) assert.equal(result.structuredContent.proxy_task.status, 'working', JSON.stringify(result));
  await listening.end();
  const [read, pending] = await Promise.all(late.map((finish) => finish()));
  assert.match(read, /^HTTP\/1\.1 200 [^]*\r\nconnection: close\r\n[^]*did it/i);
  assert.match(pending, /"proxy_task":\{/);
  held[0].reply.result({ content: [{ type: 'text', text: 'done' }] });
  assert.equal((await flying).result.content[0].text, 'done');
  await gateway.stop();
  [client, plain].forEach((each) => each.close());
  await gateway.launch();
  assert.deepEqual((await admin.list()).tasks.map(({ state }) => state), Array(4).fill('pending'));
  await admin.approve(taskId);
});

test('SIGTERM with a linger: not ready, but served as before, each connection up to its next answer; a second SIGTERM ends it', async (t) => {
  const { gateway, admin, connect } = await stage(t, { env: { THOUGHTGATE_SHUTDOWN_LINGER_SECS: '3600' } });
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const agent = new Agent({ keepAlive: true });
  const post = () => exchange(gateway.url, { method: 'POST', agent, headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-session-id': client.session, 'mcp-protocol-version': '2025-11-25' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read' } }) });
  assert.equal((await post()).headers.connection, 'keep-alive');
  gateway.child.signal('SIGTERM');
  await until(async () => (await gateway.admin.get('/ready')).status === 503, 'the gateway to stop being ready');
  const last = await post();
  assert.deepEqual([last.status, last.headers.connection, Boolean((await last.json()).result.content)], [200, 'close', true]);
  await admin.approve(taskId);
  assert.ok((await client.result('tasks/result', { taskId })).content, 'on a new connection, too');
  assert.equal(gateway.child.exit, null);
  gateway.child.signal('SIGTERM');
  assert.equal((await within(gateway.child.exited, 'the end')).code, 0);
  agent.destroy();
});

test('/health/idle answers once nothing is in flight and no request came for a second; streams that listen do not count', async (t) => {
  const { upstream, gateway, connect } = await stage(t);
  const client = await connect();
  await client.listen();
  let release;
  upstream.handlers['tools/call'] = ({ reply }) => void (release = () => reply.result({ content: [] }));
  const flying = client.call('tools/call', { name: 'read' });
  await upstream.received('tools/call');
  const idle = (query) => exchange(`${gateway.adminUrl}/health/idle${query}`, { headers: { host: 'pod-7.cluster' } });
  assert.deepEqual(await (await idle('?wait=0')).json(), { idle: false }, 'at the latest after `wait`');
  let answered = 0;
  const waiting = Array.from({ length: 16 }, () => idle('?wait=3600').then((answer) => (answered++, answer)));
  await until(async () => (await idle('?wait=0')).status === 503, 'sixteen to wait');
  for (const query of ['?wait=x', '?wait=-1', '?wait=3601', '?for=1']) assert.equal((await idle(query)).status, 400, query);
  const during = await exchange(gateway.url, { method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }) });
  assert.equal(during.headers.connection, 'close');
  assert.equal(answered, 0);
  release();
  await flying;
  for (const answer of await Promise.all(waiting)) assert.deepEqual([answer.status, await answer.json()], [200, { idle: true }]);
  await until(async () => (await exchange(gateway.url, { method: 'POST', agent: new Agent({ keepAlive: true }), headers: { 'content-type': 'application/json', accept: 'application/json' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }) })).headers.connection === 'keep-alive', 'connections to stay open again');
});

test('calls that hang on every worker when the time to drain is over: cut, and exit 0', async (t) => {
  const { upstream, gateway, raw } = await scene(t, { upstream: { sessions: false }, config: { workers: 16 }, env: { THOUGHTGATE_DRAIN_TIMEOUT_SECS: '1' } });
  upstream.handlers['tools/call'] = () => {};
  const calls = Array.from({ length: 60 }, () => raw().call('tools/call', { name: 'read' }).catch((error) => error));
  await upstream.received('tools/call', calls.length);
  await gateway.stop();
  for (const outcome of await Promise.all(calls)) assert.ok(outcome instanceof Error, JSON.stringify(outcome));
});

test('SIGTERM ends open GET streams and exits 0 without waiting for them', async (t) => {
  const { gateway, connect } = await stage(t);
  const client = await connect();
  const stream = await client.listen();
  const events = await gateway.admin.events();
  const started = performance.now();
  await gateway.stop();
  await stream.end();
  await events.end();
  assert.ok(performance.now() - started < 10_000);
});

test('SIGTERM ends a GET stream, and serves the request that its client sends next on the same connection', async (t) => {
  const { gateway, connect } = await stage(t);
  const client = await connect();
  const head = (method, more = '') => `${method} /mcp HTTP/1.1\r\nhost: 127.0.0.1:${gateway.port}\r\naccept: application/json, text/event-stream\r\nmcp-session-id: ${client.session}\r\nmcp-protocol-version: 2025-11-25\r\n${more}\r\n`;
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'read' } });
  for (let i = 0; i < 3; i++) {
    const socket = await socketTo(gateway.port);
    defer(t, () => socket.destroy());
    const closed = new Promise((resolve) => socket.once('close', resolve));
    // In the same turn as the end of the stream.
    socket.on('data', () => socket.received.endsWith('0\r\n\r\n') && socket.write(head('POST', `content-type: application/json\r\ncontent-length: ${body.length}\r\n`) + body));
    socket.write(head('GET'));
    await until(() => socket.received.includes('text/event-stream'), 'the stream');
    gateway.child.signal('SIGTERM');
    await within(closed, 'the end of the connection');
    assert.match(socket.received, /0\r\n\r\nHTTP\/1\.1 200 OK\r\n[^]*connection: close[^]*"id":7/i);
    await gateway.child.exited;
    await gateway.launch();
  }
});

test('connections that are open but ask nothing do not hold up the shutdown', async (t) => {
  const { gateway, connect } = await stage(t);
  const client = await connect(); // keeps its connection alive
  assert.ok(await client.result('tools/call', { name: 'read' }));
  const sockets = [await socketTo(gateway.port), await socketTo(gateway.adminPort)]; // never send a byte
  defer(t, () => sockets.forEach((socket) => socket.destroy()));
  const started = performance.now();
  await gateway.stop();
  assert.ok(performance.now() - started < 10_000, `it took ${performance.now() - started} ms`);
});

// node has no datagrams of the local kind.
const MANAGER = `
import socket, sys
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(sys.argv[1])
print("bound", flush=True)
while True: print(manager.recv(4096).decode(), flush=True)
`;

test('the service manager is notified: ready, alive, waiting for the store, stopping', async (t) => {
  const socket = path.join(temporaryFolder(t), 'notify');
  const manager = new Child('python3', ['-c', MANAGER, socket], { name: 'service manager' });
  defer(t, () => manager.stop('SIGKILL'));
  await manager.ready(() => manager.stdout.includes('bound'), 'to be bound');
  const words = () => manager.stdout.trim().split('\n').slice(1);
  const { gateway } = await stage(t, { env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '100000' } });
  await until(() => words().filter((word) => word === 'WATCHDOG=1').length >= 3, 'three signs of life');
  assert.equal(words().filter((word) => word === 'READY=1').length, 1);
  const second = new Child(BINARY, ['serve', '--config', gateway.configPath], { env: { ...gateway.environment(), WATCHDOG_USEC: '' }, name: 'second taskgate' });
  await until(() => words().includes('EXTEND_TIMEOUT_USEC=90000000'), 'the second one to ask for time');
  await second.stop();
  assert.ok(!words().includes('STOPPING=1'));
  await gateway.child.stop();
  await until(() => words().includes('STOPPING=1'), 'the end to be announced');
});

/** The result of a failed start: exit 1, and the one error in the log. */
async function failedStart(gateway, name, { config = {}, port, adminPort, env = {} }) {
  const folder = path.join(gateway.folder, name);
  fs.mkdirSync(folder);
  const configPath = path.join(folder, 'config.yaml');
  fs.writeFileSync(configPath, toYaml(configuration({ upstream: gateway.options.upstream, store: path.join(folder, 'own.db'), config })));
  const child = new Child(BINARY, ['serve', '--config', configPath], {
    cwd: folder,
    env: { ...gateway.environment(), THOUGHTGATE_OUTBOUND_PORT: String(port ?? (await freePort())), THOUGHTGATE_ADMIN_PORT: String(adminPort ?? (await freePort())), ...env },
    name,
  });
  const exit = await within(child.exited, `${name} to give up`, 15_000);
  child.assertNoSanitizerReport();
  assert.equal(exit.code, 1, child.output());
  const errors = child.stderr.split('\n').filter(Boolean).map((line) => JSON.parse(line)).filter((entry) => entry.level === 'error');
  assert.equal(errors.length, 1, child.output());
  return errors[0].error;
}

test('a start that fails says in one sentence why and what to do, and exits 1', async (t) => {
  const { gateway } = await stage(t, { config: { workers: 2 } });
  const said = async (name, expected, options) => assert.match(await failedStart(gateway, name, options), expected);
  await said('port', new RegExp(`^cannot listen on 127\\.0\\.0\\.1 port ${gateway.port}: Address already in use; .*THOUGHTGATE_OUTBOUND_PORT$`), { port: gateway.port });
  await said('shared port', /Address already in use; .*THOUGHTGATE_OUTBOUND_PORT$/, { port: gateway.port, config: { workers: 2 } });
  await said('admin port', new RegExp(`port ${gateway.adminPort}: Address already in use; .*THOUGHTGATE_ADMIN_PORT$`), { adminPort: gateway.adminPort });
  for (const token of ['a-token-that-is-given-0000000001', '']) {
    await said(`no folder ${token}`, /^the store's folder \/nowhere\/at\/all cannot be used: No such file or directory; create it, .*store\.path$/, {
      config: { store: { path: '/nowhere/at/all/tasks.db' } },
      env: { THOUGHTGATE_ADMIN_TOKEN: token },
    });
  }
  assert.equal((await gateway.admin.get('/health')).status, 200);
});

test('restart: a pending task is still pending, approvable, and fetched by its owner', async (t) => {
  const { upstream, gateway, admin, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  const { taskId, createdAt, ttl } = await client.createTask('delete_user', { keep: 'me' }, { ttl: 120_000 });
  await gateway.restart();
  const task = await client.result('tasks/get', { taskId });
  assert.deepEqual([task.status, task.createdAt, task.ttl], ['input_required', createdAt, ttl]);
  assert.deepEqual((await admin.task(taskId)).arguments, { keep: 'me' });
  await admin.approve(taskId);
  await until(async () => (await client.result('tasks/get', { taskId })).status === 'completed', 'the execution');
  assert.deepEqual((await client.result('tasks/result', { taskId })).structuredContent.arguments, { keep: 'me' });
  assert.equal(upstream.calls.length, 1);
});

test('approved after a restart, before the owner is back: it runs with what the owner brings', async (t) => {
  const { upstream, gateway, admin, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  await gateway.restart();
  await admin.approve(taskId);
  assert.equal((await admin.task(taskId)).state, 'approved');
  assert.equal(upstream.calls.length, 0, 'credentials are not on disk');
  const result = await client.result('tasks/result', { taskId });
  assert.ok(result.content);
  assert.equal(upstream.calls[0].headers.authorization, 'Bearer A');
});

test('expiry goes on while the gateway is down', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect();
  const { taskId } = await client.createTask('delete_user', {}, { ttl: 1000 });
  const created = performance.now();
  await gateway.stop();
  await until(() => performance.now() - created > 1200, 'the ttl to pass');
  client.close();
  await gateway.launch();
  assert.equal((await admin.decide('approve', taskId)).status, 409);
  assert.equal((await client.result('tasks/get', { taskId })).status, 'failed');
  assert.equal((await client.error('tasks/result', { taskId })).code, -32008);
});

test('nothing secret is on disk', async (t) => {
  const { gateway, connect } = await stage(t);
  const client = await connect({ token: 'needle-credential' });
  await client.createTask('delete_user');
  await gateway.stop();
  for (const name of fs.readdirSync(gateway.folder)) {
    const bytes = fs.readFileSync(`${gateway.folder}/${name}`);
    assert.ok(!bytes.includes('needle-credential'), name);
    assert.ok(!bytes.includes(client.session), `${name} holds the session id in clear`);
  }
});

// kill -9 in each state, then a restart with the same store.
const crash = {
  async pending({ admin, client, taskId, upstream }) {
    assert.equal((await admin.task(taskId)).state, 'pending');
    await admin.approve(taskId);
    await until(async () => (await client.result('tasks/get', { taskId })).status === 'completed', 'the execution');
    assert.equal(upstream.calls.length, 1);
  },
  async approved({ admin, client, taskId, upstream }) {
    assert.equal((await admin.task(taskId)).state, 'approved');
    assert.equal(upstream.calls.length, 0);
    assert.ok((await client.result('tasks/result', { taskId })).content);
    assert.equal(upstream.calls.length, 1);
  },
  async executing({ admin, client, taskId, upstream }) {
    const task = await admin.inState(taskId, 'failed');
    assert.match(task.statusMessage, /outcome unknown/);
    const seen = await client.result('tasks/get', { taskId });
    assert.equal(seen.status, 'failed');
    assert.match(seen.statusMessage, /outcome unknown/);
    const error = await client.error('tasks/result', { taskId });
    assert.deepEqual([error.code, error.data.error_type], [-32603, 'outcome_unknown']);
    assert.equal((await admin.decide('approve', taskId)).status, 409);
    assert.equal(upstream.calls.length, 1, 'it is never run again by itself');
  },
  async completed({ client, taskId, upstream }) {
    assert.equal((await client.result('tasks/get', { taskId })).status, 'completed');
    assert.ok((await client.result('tasks/result', { taskId })).content);
    assert.equal(upstream.calls.length, 1);
  },
  async rejected({ client, taskId }) {
    assert.equal((await client.error('tasks/result', { taskId })).code, -32007);
    assert.match((await client.result('tasks/get', { taskId })).statusMessage, /because/);
  },
  async cancelled({ client, taskId }) {
    assert.equal((await client.result('tasks/get', { taskId })).status, 'cancelled');
    assert.equal((await client.error('tasks/result', { taskId })).code, -32006);
  },
  async expired({ client, taskId }) {
    assert.equal((await client.error('tasks/result', { taskId })).code, -32008);
  },
};

for (const [state, afterwards] of Object.entries(crash)) {
  test(`kill -9 while ${state}, then a restart`, async (t) => {
    const { upstream, gateway, admin, connect } = await stage(t, state === 'approved' ? { rules: [{ match: 'delete_*', action: 'approve', execution: 'on_result' }] } : {});
    const client = await connect({ token: 'A' });
    if (state === 'executing') upstream.handlers['tools/call'] = () => {};
    const { taskId } = await client.createTask('delete_user', {}, { ttl: state === 'expired' ? 1000 : 60_000 });
    if (['approved', 'executing', 'completed'].includes(state)) await admin.approve(taskId);
    if (state === 'rejected') await admin.reject(taskId, 'because');
    if (state === 'cancelled') await client.result('tasks/cancel', { taskId });
    if (state === 'executing') await upstream.received('tools/call');
    await admin.inState(taskId, state);
    await gateway.kill9();
    delete upstream.handlers['tools/call'];
    client.close();
    await gateway.launch();
    await afterwards({ upstream, admin, client, taskId });
  });
}

test('a create that was answered survives kill -9 at once after the answer', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  for (let round = 0; round < 4; round++) {
    const ids = (await Promise.all(Array.from({ length: 5 }, () => client.createTask('delete_user')))).map((x) => x.taskId);
    await gateway.kill9();
    client.close();
    await gateway.launch();
    for (const id of ids) assert.equal((await admin.task(id)).state, 'pending');
  }
});

test('a decision that was answered survives kill -9 at once after the answer', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  for (let round = 0; round < 3; round++) {
    const { taskId } = await client.createTask('delete_user');
    await admin.reject(taskId, 'no');
    await gateway.kill9();
    client.close();
    await gateway.launch();
    assert.equal((await admin.task(taskId)).state, 'rejected');
  }
});

test('SIGTERM while upstream is still being asked for its tools leaves nothing behind', async (t) => {
  const { upstream, gateway } = await scene(t, { awaitUpstream: false, upstream: { handlers: { 'tools/list': () => {} } } });
  await upstream.received('tools/list');
  await gateway.stop(); // with exit code 0, and without a sanitizer's report
});
