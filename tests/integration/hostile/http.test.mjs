// Below the messages: framing, headers, slow and strange connections, and pages of other sites that speak to loopback.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { connectedRaw } from '../lib/client.mjs';
import { ADMIN_TOKEN } from '../lib/gateway.mjs';
import { exchange, open, socketTo } from '../lib/http.mjs';
import { defer, wholeFile } from '../lib/lifetime.mjs';
import { until } from '../lib/wait.mjs';
import { bytes, call, head, hostileScene, lives, shielded } from './stage.mjs';

const file = wholeFile();
let stage, client, port;
before(async () => {
  stage = await hostileScene(file);
  client = await connectedRaw(file, stage.gateway.url);
  ({ port } = stage.gateway);
});

const READ = call('{"name":"read"}');
const DROP = call('{"name":"drop_table"}');
const session = () => `Mcp-Session-Id: ${client.session}`;

test('Content-Type other than JSON', async () => {
  await shielded(stage, client, async () => {
    for (const type of [undefined, 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'text/json', 'application/jsonx', 'application/json-rpc', 'application/json, text/plain', 'application/json\ttext/plain']) {
      const answer = await client.post(READ, { headers: { 'content-type': type } });
      assert.equal(answer.status, 415, `${type}: ${await answer.text()}`);
    }
  });
});

test('duplicate and conflicting Content-Length and Transfer-Encoding: what arrives upstream is framed once and is what was judged', async (t) => {
  const chunk = (text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n0\r\n\r\n`;
  const hidden = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${DROP.length}\r\n\r\n${DROP}`;
  const length = Buffer.byteLength(READ);
  const attacks = {
    'two equal lengths': [[`Content-Length: ${length}`, `Content-Length: ${length}`], READ],
    'a short and a long length': [[`Content-Length: ${length}`, `Content-Length: ${length + hidden.length}`], READ + hidden],
    'a long and a short length': [[`Content-Length: ${length + hidden.length}`, `Content-Length: ${length}`], READ + hidden],
    'a list of lengths': [[`Content-Length: ${length}, ${length + 1}`], READ],
    'a length with a sign': [[`Content-Length: +${length}`], READ],
    'a length in hex': [[`Content-Length: 0x${length.toString(16)}`], READ],
    'a negative length': [['Content-Length: -1'], READ],
    'a length beyond 64 bits': [[`Content-Length: ${2n ** 64n + BigInt(length)}`], READ],
    'chunked beside a length': [['Transfer-Encoding: chunked', `Content-Length: ${length}`], chunk(READ) + hidden],
    'a length beside chunked': [['Content-Length: 5', 'Transfer-Encoding: chunked'], chunk(READ) + hidden],
    'chunked twice': [['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], chunk(READ)],
    'chunked that is not the last coding': [['Transfer-Encoding: chunked, identity', `Content-Length: ${length}`], chunk(READ) + hidden],
    'another coding': [['Transfer-Encoding: xchunked', `Content-Length: ${length}`], READ + hidden],
    'chunked behind a tab': [['Transfer-Encoding:\tchunked', `Content-Length: ${length}`], chunk(READ) + hidden],
    'white space before the colon': [['Transfer-Encoding : chunked', `Content-Length: ${length}`], READ + hidden],
    'a chunk size that wraps': [['Transfer-Encoding: chunked'], `${'f'.repeat(16)}\r\n${READ}\r\n0\r\n\r\n${hidden}`],
    'a negative chunk size': [['Transfer-Encoding: chunked'], `-1\r\n${READ}\r\n0\r\n\r\n`],
    'a chunk extension': [['Transfer-Encoding: chunked'], `${length.toString(16)};a="\n0\r\n\r\n"\r\n${READ}\r\n0\r\n\r\n`],
    'trailers': [['Transfer-Encoding: chunked', 'Trailer: x-user'], `${length.toString(16)}\r\n${READ}\r\n0\r\nx-user: root\r\ncontent-length: 1\r\n\r\n`],
  };
  const first = stage.upstream.requests.length;
  for (const [what, [lines, body]] of Object.entries(attacks)) {
    const before = stage.upstream.requests.length;
    const peer = await bytes(t, port, head([session(), ...lines]) + body, { mayWait: true });
    peer.socket.destroy();
    const seen = stage.upstream.requests.slice(before);
    assert.ok(seen.length <= 1, `${what}: ${seen.length} requests upstream`);
    for (const request of seen) {
      assert.equal(request.text, READ, what);
      const raw = request.rawHeaders.map((h) => h.toLowerCase()).filter((_, i) => i % 2 === 0);
      assert.equal(raw.filter((name) => name === 'content-length' || name === 'transfer-encoding').length, 1, `${what}: ${raw}`);
      assert.ok(!raw.includes('x-user') && !raw.includes('trailer'), what);
    }
  }
  assert.ok(stage.upstream.requests.slice(first).every((r) => !r.text.includes('drop_table')), 'a hidden request reached upstream');
  await lives(stage, client);
});

test('a head that two readers read in two ways: 400 to its sender, and nothing else', async (t) => {
  const length = READ.length;
  const heads = {
    'a folded header': [[`Content-Length: ${length}`, 'X-A: b\r\n c'], READ],
    'a header folded with a tab': [['X-A: b\r\n\tc', `Content-Length: ${length}`], READ],
    'a folded length': [[`Content-Length:\r\n ${length}`], READ],
    'a short and a long length': [[`Content-Length: ${length}`, `content-length: ${length + 20}`], `${READ}${' '.repeat(20)}`],
    'a long and a short length': [[`Content-Length: ${length + 20}`, `Content-Length: ${length}`], `${READ}${' '.repeat(20)}`],
    'no length and a length': [['Content-Length: 0', `Content-Length: ${length}`], READ],
  };
  const other = await connectedRaw(t, stage.gateway.url, { capabilities: {} });
  await shielded(stage, client, async () => {
    for (const [what, [lines, body]] of Object.entries(heads)) {
      const peer = await bytes(t, port, head([session(), ...lines]) + body);
      assert.equal(peer.status, 400, `${what}: ${peer.socket.received}`);
      await until(() => peer.closed(), `${what}: the end of the connection`);
    }
    const ready = await stage.admin.get('/ready');
    assert.equal(ready.json.checks.upstream_reachable, true, ready.text);
  });
  assert.ok(!stage.gateway.child.output().includes('Upstream failed'), 'no server is blamed');
  const { content } = await other.result('tools/call', { name: 'list_tasks', arguments: {} });
  assert.ok(!JSON.stringify(content).includes('server_disconnected'), JSON.stringify(content));
});

test('requests behind one another on one connection are each judged', async (t) => {
  await shielded(stage, client, async () => {
    const one = head([session(), `Content-Length: ${DROP.length}`]) + DROP;
    const { socket } = await bytes(t, port, one.repeat(20));
    await until(() => socket.received.split('"code":-32014').length === 21, () => `twenty refusals; it sent ${socket.received.length} bytes`);
  });
});

test('header injection through every field that becomes a header', async (t) => {
  // From the client: line breaks and NULs in relayed headers.
  const before = stage.upstream.requests.length;
  for (const line of [`X-A: 1\rX-Injected: 1`, `X-A: 1\nX-Injected: 1`, `X-A: 1\0X-Injected: 1`, `X-A: 1\r\n X-Injected: 1`, `X-A\r: 1`, `Mcp-Session-Id: a\rX-Injected: 1`, `Authorization: Bearer a\nX-Injected: 1`, `X\u00c4: 1`, ': 1']) {
    const peer = await bytes(t, port, head([session(), line, `Content-Length: ${READ.length}`]) + READ);
    peer.socket.destroy();
  }
  for (const request of stage.upstream.requests.slice(before)) {
    // A line feed ends a line for h2o: the rest is a header of the client's own, as any that it may send.
    for (const value of Object.values(request.headers)) assert.doesNotMatch(String(value), /[\r\n\0]/);
    for (const name of request.rawHeaders.filter((_, i) => i % 2 === 0)) assert.match(name, /^[\w!#$%&'*+.^`|~-]+$/, 'a name that is no token');
  }
  // From the message: nothing of a body becomes a header.
  const names = ['x\r\nX-Injected: 1', 'x\nX-Injected: 1', 'x\u0085X-Injected: 1'];
  for (const name of names) {
    const answer = await client.send('tools/call', { name, _meta: { progressToken: name } }, { id: name });
    assert.equal(answer.headers['x-injected'], undefined);
    await client.send('tasks/get', { taskId: `tg_${name}` }, { id: name });
  }
  const fresh = await stage.connect({ name: 'a\r\nX-Injected: 1', capabilities: { tasks: {}, 'x\r\nX-Injected: 1': {} } });
  await fresh.send('tools/call', { name: 'read' });
  assert.ok(stage.upstream.requests.slice(before).filter((r) => r.rpc?.params?._meta || r.rpc?.method === 'initialize').every((r) => r.headers['x-injected'] === undefined));
  // From upstream: a header that is none ends the reply, and is not handed on.
  stage.upstream.onHttp = (r, reply) => r.rpc?.id === 'split' && (reply.response.socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: a\rX-Injected: 1\r\nX-B: a\0b\r\nContent-Length: 2\r\n\r\n{}'), true);
  const answer = await client.send('tools/call', { name: 'read' }, { id: 'split' });
  stage.upstream.onHttp = null;
  assert.equal(answer.headers['x-injected'], undefined);
  for (const value of Object.values(answer.headers)) assert.doesNotMatch(String(value), /[\r\n\0]/);
  await lives(stage, client);
});

test('oversized headers', async (t) => {
  await shielded(stage, client, async () => {
    for (const lines of [[`X-A: ${'a'.repeat(1_000_000)}`], Array.from({ length: 5000 }, (_, i) => `X-${i}: 1`), [`${'X'.repeat(500_000)}: 1`]]) {
      const peer = await bytes(t, port, head([session(), ...lines, `Content-Length: ${READ.length}`]) + READ);
      assert.ok([0, 400, 413, 431].includes(peer.status), `HTTP ${peer.status}`);
    }
    const long = await bytes(t, port, `POST /${'m'.repeat(200_000)} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`);
    assert.ok([0, 400, 404, 413, 414, 431].includes(long.status), `HTTP ${long.status}`);
  });
});

/** Many connections that send `begin` and then a byte now and then; honest calls go on meanwhile, nothing reaches upstream. */
async function slowloris(t, target, begin) {
  const sockets = await Promise.all(Array.from({ length: 200 }, () => socketTo(target)));
  defer(t, () => sockets.forEach((socket) => socket.destroy()));
  sockets.forEach((socket) => socket.write(begin));
  await shielded(stage, client, async () => {
    for (let i = 0; i < 10; i++) {
      sockets.forEach((socket) => socket.write('x'));
      assert.equal((await exchange(`${stage.gateway.adminUrl}/health`, { deadline: 2000 })).status, 200);
    }
  });
  const began = performance.now();
  for (let i = 0; i < 20; i++) await client.result('tools/call', { name: 'read' });
  assert.ok(performance.now() - began < 5000, 'honest calls wait for slow ones');
}

test('slowloris on headers', (t) => slowloris(t, port, 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: '));
test('slowloris on the body', (t) => slowloris(t, port, head([`Content-Length: ${1_000_000}`]) + READ.slice(0, 10)));
test('slowloris on the operators\' port', (t) => slowloris(t, stage.gateway.adminPort, 'GET /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nX-Slow: '));

test('half-closed clients', async (t) => {
  // In the middle of a request: nothing is judged, nothing is sent.
  await shielded(stage, client, async () => {
    for (const text of ['', 'POST /mcp', head([session(), 'Content-Length: 1000']) + READ, head([session(), 'Transfer-Encoding: chunked'])]) {
      const socket = await socketTo(port);
      t.after(() => socket.destroy());
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.end(text);
      await closed;
    }
  });
  // After a whole request: it is answered or cut, once at most.
  const before = stage.upstream.calls.length;
  const socket = await socketTo(port);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.end(head([session(), `Content-Length: ${READ.length}`]) + READ);
  await closed;
  assert.ok(stage.upstream.calls.length - before <= 1);
  await lives(stage, client);
});

test('DNS rebinding: Host and Origin on both ports', async () => {
  const { adminUrl, url } = stage.gateway;
  const foreign = [{ host: 'evil.example' }, { host: `evil.example:${port}` }, { host: '127.0.0.1.evil.example' }, { host: 'localhost.' + 'evil.example' }, { host: '169.254.169.254' }, { host: '0.0.0.0' }, { origin: 'https://evil.example' }, { origin: 'null' }, { origin: 'http://127.0.0.1.evil.example' }, { origin: 'http://localhost@evil.example' }, { origin: 'file://' }];
  await shielded(stage, client, async () => {
    for (const headers of foreign) {
      assert.equal((await client.post(READ, { headers })).status, 403, JSON.stringify(headers));
      assert.equal((await exchange(url, { headers: { accept: 'text/event-stream', 'mcp-session-id': client.session, ...headers } })).status, 403, JSON.stringify(headers));
      assert.equal((await exchange(url, { method: 'DELETE', headers: { 'mcp-session-id': client.session, ...headers } })).status, 403, JSON.stringify(headers));
      const operator = { authorization: `Bearer ${ADMIN_TOKEN}`, ...headers };
      for (const path of ['/', '/api/v1/tasks', '/api/v1/events']) assert.equal((await exchange(adminUrl + path, { headers: operator })).status, 403, `${path} ${JSON.stringify(headers)}`);
    }
  });
});

test('admin cross-site requests', async (t) => {
  const { admin, gateway } = stage;
  const { taskId } = await client.createTask('delete_user');
  const url = `${gateway.adminUrl}/api/v1/tasks/${taskId}/approve`;
  await shielded(stage, client, async () => {
    const send = async (method, headers, body) => exchange(url, { method, headers, body });
    // Requests that a form or a simple fetch of another site can send, with and without a token that a browser would not have.
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', undefined]) {
      const headers = { ...(type ? { 'content-type': type } : {}), authorization: `Bearer ${ADMIN_TOKEN}` };
      assert.ok([415, 400].includes((await send('POST', headers, '{}')).status), type);
    }
    assert.equal((await send('POST', { 'content-type': 'application/json' }, '{}')).status, 401);
    assert.equal((await send('POST', { 'content-type': 'application/json', origin: 'https://evil.example', authorization: `Bearer ${ADMIN_TOKEN}` }, '{}')).status, 403);
    assert.equal((await send('POST', { 'content-type': 'application/json', cookie: `token=${ADMIN_TOKEN}` }, '{}')).status, 401);
    assert.ok((await send('GET', { authorization: `Bearer ${ADMIN_TOKEN}` })).status >= 400, 'a GET decides nothing');
    const preflight = await send('OPTIONS', { origin: 'https://evil.example', 'access-control-request-method': 'POST' });
    assert.ok(preflight.status >= 400);
    for (const answer of [preflight, await exchange(`${gateway.adminUrl}/`), await exchange(`${gateway.adminUrl}/health`)]) assert.equal(answer.headers['access-control-allow-origin'], undefined);
    const page = await exchange(`${gateway.adminUrl}/`);
    assert.match(page.headers['content-security-policy'], /frame-ancestors 'none'/);
  });
  assert.equal((await admin.task(taskId)).state, 'pending');
});

test('a token in a query', async () => {
  const { admin, gateway } = stage;
  const anonymous = admin.as(undefined);
  await shielded(stage, client, async () => {
    for (const name of ['token', 'access_token', 'authorization', 'api_key']) assert.equal((await anonymous.get(`/api/v1/tasks?${name}=${ADMIN_TOKEN}`)).status, 401, name);
    assert.equal((await anonymous.get(`/api/v1/events?token=${ADMIN_TOKEN}`)).status, 401);
  });
  // On the agents' port a query is none of the gateway's business and never an identity.
  const { taskId } = await (await stage.connect({ token: 'A' })).createTask('delete_user');
  const answer = await client.send('tasks/get', { taskId }, { url: `${gateway.url}?access_token=A&authorization=Bearer%20A` });
  assert.notEqual(answer.message?.result?.taskId, taskId, answer.text);
  assert.ok(!gateway.child.stderr.includes(ADMIN_TOKEN));
});

test('token comparison time: a token that is nearly right is answered like one that is not at all', async () => {
  const wrong = { first: `X${ADMIN_TOKEN.slice(1)}`, last: `${ADMIN_TOKEN.slice(0, -1)}X`, short: ADMIN_TOKEN.slice(0, -1), long: `${ADMIN_TOKEN}1`, other: 'X'.repeat(ADMIN_TOKEN.length), case: ADMIN_TOKEN.toUpperCase() };
  const times = Object.fromEntries(Object.keys(wrong).map((name) => [name, []]));
  const answers = new Set();
  // In turns, so that other load of the machine meets all of them.
  for (let round = 0; round < 60; round++) {
    for (const [name, token] of Object.entries(wrong)) {
      const began = performance.now();
      const { status, text } = await stage.admin.as(token).get('/api/v1/tasks');
      times[name].push(performance.now() - began);
      answers.add(`${status} ${text}`);
    }
  }
  assert.equal(answers.size, 1, [...answers].join('\n'));
  const medians = Object.values(times).map((list) => list.sort((a, b) => a - b)[list.length / 2]);
  assert.ok(Math.max(...medians) < 3 * Math.min(...medians), JSON.stringify(medians));
});

test('strange request lines and verbs', async (t) => {
  await shielded(stage, client, async () => {
    for (const line of ['GET /mcp HTTP/0.9', 'POST http://evil.example/mcp HTTP/1.1', 'CONNECT 127.0.0.1:1 HTTP/1.1', 'TRACE /mcp HTTP/1.1', 'PUT /mcp HTTP/1.1', 'POST /../mcp HTTP/1.1', 'POST /mcp%00 HTTP/1.1', 'POST //mcp HTTP/1.1', 'POST /up/../../mcp HTTP/1.1', 'PRI * HTTP/2.0', '\x16\x03\x01\x02']) {
      const peer = await bytes(t, port, `${line}\r\nHost: evil.example\r\nContent-Type: application/json\r\nContent-Length: ${READ.length}\r\nConnection: close\r\n\r\n${READ}`);
      assert.ok(peer.status === 0 || peer.status >= 400, `${JSON.stringify(line)}: ${peer.status}`);
    }
  });
});

test('a client that opens streams and never reads', async (t) => {
  const lazy = [];
  for (let i = 0; i < 20; i++) {
    const response = await open(stage.gateway.url, { headers: { accept: 'text/event-stream', 'mcp-session-id': client.session } });
    response.message.pause();
    lazy.push(response);
  }
  defer(t, () => lazy.forEach((response) => response.abort()));
  for (let i = 0; i < 200; i++) stage.upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x'.repeat(2000) } });
  await lives(stage, client);
});
