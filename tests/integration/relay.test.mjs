// The proxy as a relay: paths, methods, headers, statuses, streams and their ends.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { startGateway, temporaryFolder } from './lib/gateway.mjs';
import { exchange, open, socketTo } from './lib/http.mjs';
import { defer } from './lib/lifetime.mjs';
import { generator } from './lib/random.mjs';
import { scene } from './lib/scene.mjs';
import { until } from './lib/wait.mjs';

const CALL = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'read', arguments: {} } };
const JSON_TYPE = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

test('a forwarded call reaches upstream byte for byte, odd formatting included', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  const body = '\r\n{ "jsonrpc" : "2.0",\t"params":{"arguments":{"n":1.0,"e":1E+2,"big":123456789012345678901234567890,"u":"\\u00e9é😀","nested":{"a":[{"name":"x"},{"name":"x"}]}},"name":"read","_meta":{"progressToken":0}},"id":"a\\"b","method":"tools/call"}\n';
  const answer = await client.send('', undefined, { body, id: 'a"b' });
  assert.equal(upstream.calls[0].text, body);
  assert.equal(answer.message.result.content[0].text, 'did read');
});

test('request headers go up, hop-by-hop headers and Accept-Encoding do not', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  await client.send('tools/call', CALL.params, {
    headers: {
      authorization: 'Bearer client-secret',
      'last-event-id': 'evt-9',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      tracestate: 'vendor=1',
      'x-custom': 'kept',
      'accept-encoding': 'gzip, br',
      connection: 'keep-alive, x-hop',
      'x-hop': 'dropped',
      'keep-alive': 'timeout=5',
      te: 'trailers',
      'proxy-authorization': 'Basic abc',
    },
  });
  const { headers } = upstream.calls[0];
  assert.equal(headers.authorization, 'Bearer client-secret');
  assert.equal(headers['mcp-session-id'], client.session);
  assert.equal(headers['mcp-protocol-version'], '2025-11-25');
  assert.equal(headers['last-event-id'], 'evt-9');
  assert.equal(headers.accept, 'application/json, text/event-stream');
  assert.match(headers.traceparent, /^00-0af7651916cd43dd8448eb211c80319c-/);
  assert.match(headers.tracestate, /vendor=1/);
  assert.equal(headers['x-custom'], 'kept');
  assert.equal(headers['content-type'], 'application/json');
  assert.equal(headers.host, `127.0.0.1:${upstream.port}`);
  for (const name of ['accept-encoding', 'x-hop', 'keep-alive', 'te', 'proxy-authorization']) {
    assert.equal(headers[name], undefined, name);
  }
});

test('headers that a proxy alone may send are kept back, and a name with "_" is the one with "-"', async (t) => {
  const { upstream, connect } = await scene(t, { source: { headers: { 'X-Api-Key': { env: 'API_KEY' } } }, env: { API_KEY: 'of-the-operator' } });
  const client = await connect();
  const kept = {
    forwarded: 'for=1.2.3.4', 'X-Forwarded-User': 'root', 'x-forwarded-for': '1.2.3.4', 'x-forwarded-anything': 'x', 'X-Original-URL': '/admin',
    'X-Rewrite-URL': '/admin', 'X-HTTP-Method-Override': 'DELETE', 'x-http-method': 'DELETE', 'x-method-override': 'DELETE', 'x-real-ip': '1.2.3.4',
    'x_forwarded_user': 'root', 'X_Http-Method_Override': 'DELETE', 'X_Api_Key': 'of-the-agent', 'x-api_key': 'of-the-agent', 'Mcp_Session_Id': 'another', 'proxy_authorization': 'Basic abc', 'content_length': '1',
  };
  await client.send('tools/call', CALL.params, { headers: { ...kept, x_custom: 'goes up', 'x-forward': 'goes up' } });
  const { headers } = upstream.calls[0];
  for (const name of Object.keys(kept)) assert.equal(headers[name.toLowerCase()], undefined, name);
  assert.deepEqual([headers['x-api-key'], headers.x_custom, headers['x-forward'], headers['mcp-session-id']], ['of-the-operator', 'goes up', 'goes up', client.session]);
});

test('status, headers and body of the response come down', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  const body = '{"jsonrpc":"2.0","id":5,"result":{ "content":[] , "n":1.0}}\n';
  upstream.handlers['tools/call'] = ({ reply }) => reply.http(200, { 'content-type': 'application/json; charset=utf-8', 'x-upstream': 'yes', 'cache-control': 'no-store' }, body);
  const answer = await client.send('', undefined, { body: CALL, id: 5 });
  assert.equal(answer.status, 200);
  assert.equal(answer.text, body);
  assert.equal(answer.headers['x-upstream'], 'yes');
  assert.equal(answer.headers['cache-control'], 'no-store');
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
});

test("a forwarded call's reply that is not JSON-RPC is -32002", async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply }) => reply.http(200, { 'content-type': 'text/plain' }, 'surprise');
  const answer = await client.send('tools/call', CALL.params);
  assert.deepEqual([answer.status, answer.message.id, answer.message.error.code], [200, answer.id, -32002]);
  assert.ok(!answer.text.includes('surprise'));
});

test("upstream's session id is the client's session id", async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  assert.ok(upstream.liveSessions.has(client.session));
});

test('notifications and client responses pass to the right session with their bytes', async (t) => {
  const { upstream, connect } = await scene(t);
  const [one, two] = [await connect(), await connect()];
  const bodies = ['{"jsonrpc":"2.0","id":"srv-1","result":{"action":"accept","content":{"n":1.0}}}', '{"jsonrpc":"2.0","id":"srv-2","error":{"code":-1,"message":"no"}}', '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}'];
  for (const body of bodies) {
    const response = await two.post(body);
    assert.equal(response.status, 202);
    await response.bytes();
    const seen = upstream.requests.at(-1);
    assert.equal(seen.text, body);
    assert.equal(seen.headers['mcp-session-id'], two.session);
  }
  assert.notEqual(one.session, two.session);
});

test('a POST answered by SSE is flushed event by event and keeps ids, event names, comments and retry', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  let stream;
  upstream.handlers['tools/call'] = ({ reply }) => void (stream = reply.sse({ 'x-stream': '1' }));
  const reading = client.stream('tools/call', CALL.params);
  await upstream.received('tools/call');
  stream.raw(': hello\n\n');
  const down = await reading;
  assert.equal(down.response.headers['x-stream'], '1');
  assert.equal((await down.next()).comment, ' hello');
  // Each event is sent only after the one before has arrived: nothing is held back for more.
  for (const i of [1, 2, 3]) {
    stream.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: i } }, { id: `evt-${i}`, event: 'message' });
    const event = await down.next();
    assert.deepEqual([event.id, event.event, event.json.params.progress], [`evt-${i}`, 'message', i]);
  }
  stream.raw('id: prime\nretry: 250\ndata:\n\n');
  const primed = await down.next();
  assert.deepEqual([primed.id, primed.retry, primed.data], ['prime', '250', '']);
  stream.event({ jsonrpc: '2.0', id: down.id, result: { content: [] } }, { id: 'last' });
  stream.end();
  assert.equal((await down.next()).id, 'last');
  assert.equal(await down.end(), 'end');
});

test('the GET stream is relayed both ways: Last-Event-ID up, events one by one down', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  const stream = await client.listen({ headers: { 'last-event-id': 'resume-3' } });
  const get = await upstream.received((r) => r.method === 'GET');
  assert.equal(get.headers['last-event-id'], 'resume-3');
  assert.equal(get.headers['mcp-session-id'], client.session);
  assert.match(stream.response.headers['content-type'], /^text\/event-stream/);
  for (const i of [4, 5]) {
    upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: i } }, { id: `e${i}` });
    const event = await stream.next((e) => e.json?.method === 'notifications/message');
    assert.deepEqual([event.id, event.json.params.data], [`e${i}`, i]);
  }
});

test('DELETE is relayed with its status', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  upstream.onHttp = (r, reply) => r.method === 'DELETE' && (reply.http(204), true);
  assert.equal((await client.delete()).status, 204);
  assert.equal(upstream.requests.at(-1).headers['mcp-session-id'], client.session);
});

test("upstream's 405 to GET and DELETE comes down as it is", async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  upstream.onHttp = (r, reply) => r.method !== 'POST' && (reply.http(405, { allow: 'POST' }), true);
  assert.equal((await client.delete()).status, 405);
  const response = await open(client.url, { headers: { accept: 'text/event-stream', 'mcp-session-id': client.session } });
  assert.deepEqual([response.status, response.headers.allow], [405, 'POST']);
  await response.bytes();
});

test('a client that leaves aborts the upstream call', async (t) => {
  const { upstream, connect } = await scene(t, { upstream: { handlers: { 'tools/call': () => {} } } });
  const client = await connect();
  const pending = client.post(CALL);
  const call = await upstream.received('tools/call');
  pending.abort();
  await assert.rejects(pending);
  await call.gone;
  assert.equal(call.left, true);
});

test('a client that leaves its GET stream closes the upstream one', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  const stream = await client.listen();
  const get = await upstream.received((r) => r.method === 'GET');
  stream.abort();
  await get.gone;
  assert.equal(get.left, true);
});

test('a slow reader holds upstream back instead of filling memory', async (t) => {
  const { upstream, gateway, connect } = await scene(t);
  const client = await connect();
  let written = 0;
  let stalled = false;
  const chunk = `data: {"jsonrpc":"2.0","method":"notifications/message","params":"${'x'.repeat(65_460)}"}\n\n`;
  const LIMIT = 256 * 1024 * 1024;
  upstream.handlers['tools/call'] = async ({ reply, recorded }) => {
    const stream = reply.sse();
    while (written < LIMIT && !recorded.left) {
      written += chunk.length;
      if (!stream.raw(chunk)) {
        // No bytes are taken for two seconds: upstream is held back.
        stalled = !(await Promise.race([new Promise((r) => stream.response.once('drain', () => r(true))), recorded.gone.then(() => true), new Promise((r) => setTimeout(r, 2000, false))]));
        if (stalled) return;
      }
    }
  };
  const before = residentBytes(gateway.child.pid);
  const socket = await socketTo(gateway.port);
  socket.pause();
  const body = JSON.stringify(CALL);
  socket.write(`POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: ${client.session}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  await until(() => stalled || written >= LIMIT, 'the upstream to stall', { deadline: 30_000 });
  const growth = residentBytes(gateway.child.pid) - before;
  socket.destroy();
  assert.ok(stalled, `${written} bytes were taken from upstream while nobody read`);
  assert.ok(written < 64 * 1024 * 1024, `${written} bytes were taken`);
  assert.ok(growth < 64 * 1024 * 1024, `memory grew by ${growth}`);
});

function residentBytes(pid) {
  return Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;
}

test('an encoded reply that must be read is -32002', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  upstream.handlers['tools/list'] = ({ reply, id }) => {
    const body = zlib.gzipSync(JSON.stringify({ jsonrpc: '2.0', id, result: { tools: [] } }));
    reply.response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip', 'content-length': body.length });
    reply.response.end(body);
  };
  const answer = await client.send('tools/list');
  assert.deepEqual([answer.status, answer.message.error.code, answer.message.error.data.error_type], [200, -32002, 'upstream_error']);
});

test('the methods of the specification are relayed', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  const methods = { 'completion/complete': {}, 'logging/setLevel': { level: 'info' }, 'prompts/get': { name: 'p' }, 'prompts/list': {}, 'resources/list': {}, 'resources/templates/list': {}, 'resources/read': { uri: 'x://y' }, 'resources/subscribe': { uri: 'x://y' }, 'resources/unsubscribe': { uri: 'x://y' }, ping: undefined };
  for (const [method, params] of Object.entries(methods)) {
    const result = { 'prompts/list': { prompts: [] }, 'resources/list': { resources: [] } }[method] ?? { from: method };
    upstream.handlers[method] = ({ reply }) => reply.result(result);
    assert.deepEqual(await client.result(method, params), result, method);
    assert.equal(upstream.of(method, { own: false }).length, 1, method);
  }
});

test('methods beyond the table are -32601 and never reach upstream; methods.allow adds to it', async (t) => {
  const { upstream, connect } = await scene(t, { config: { methods: { allow: ['vendor/*'] } } });
  const client = await connect();
  for (const method of ['foo/bar', 'tools/Call', 'tools/call ', 'vendor', 'tasks/update', '']) {
    const answer = await client.send(method, {});
    assert.deepEqual([answer.status, answer.message.error.code, answer.message.id], [200, -32601, answer.id], method);
    assert.equal(upstream.of(method).length, 0, method);
  }
  await client.notify('notifications/unheard-of');
  assert.equal(upstream.of('notifications/unheard-of').length, 0);
  upstream.handlers['vendor/thing'] = ({ reply }) => reply.result({ ok: true });
  assert.deepEqual(await client.result('vendor/thing', {}), { ok: true });
});

test('server/discover is HTTP 400 with -32601 and the same id', async (t) => {
  const { upstream, raw } = await scene(t);
  const answer = await raw().send('server/discover', {}, { id: 'probe-1' });
  assert.deepEqual([answer.status, answer.message.error.code, answer.message.id], [400, -32601, 'probe-1']);
  assert.equal(upstream.of('server/discover', { own: false }).length, 0);
});

test('params that is not an object is -32602', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  for (const params of [[], ['read'], 'read', 5, null, true]) {
    const answer = await client.send('tools/call', params);
    assert.deepEqual([answer.status, answer.message.error.code, answer.message.id], [200, -32602, answer.id], JSON.stringify(params));
  }
  assert.equal(upstream.calls.length, 0);
});

test('a tools/call without id reaches upstream only when it is forwarded', async (t) => {
  const { upstream, connect } = await scene(t, { rules: [['delete_*', 'approve'], ['drop_*', 'deny']] });
  const client = await connect();
  for (const name of ['delete_user', 'drop_table']) {
    await client.notify('tools/call', { name, arguments: {} });
    await client.notify('tools/call', { name, arguments: {}, task: {} });
  }
  await client.notify('tools/call', { name: 'read', arguments: {} });
  assert.deepEqual(upstream.calls.map((c) => c.rpc.params.name), ['read']);
});

test('parallel calls each get their own answer', async (t) => {
  const random = generator();
  const { upstream, connect } = await scene(t);
  const clients = [await connect(), await connect()];
  upstream.handlers['tools/call'] = ({ reply, params }) => setTimeout(() => reply.result({ content: [{ type: 'text', text: params.arguments.tag }] }), random() * 50);
  await Promise.all(
    Array.from({ length: 200 }, async (_, i) => {
      const result = await clients[i % 2].result('tools/call', { name: 'read', arguments: { tag: `tag-${i}` } });
      assert.equal(result.content[0].text, `tag-${i}`);
    }),
  );
});

test('a body beyond the limit is refused and nothing reaches upstream', async (t) => {
  const { upstream, connect } = await scene(t, { config: { limits: { body_bytes: 8192 } }, env: { THOUGHTGATE_MAX_REQUEST_BODY_BYTES: '4096' } });
  const client = await connect();
  assert.ok(await client.result('tools/call', { name: 'read', arguments: { a: 'x'.repeat(3500) } }));
  const answer = await client.send('tools/call', { name: 'read', arguments: { a: 'x'.repeat(5000) } });
  assert.equal(answer.status, 413);
  assert.equal(upstream.calls.length, 1);
});

test('a chunked body beyond the limit is refused too', async (t) => {
  const { upstream, gateway, connect } = await scene(t, { config: { limits: { body_bytes: 4096 } } });
  const client = await connect();
  const socket = await socketTo(gateway.port);
  defer(t, () => socket.destroy());
  socket.write(`POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: ${client.session}\r\nTransfer-Encoding: chunked\r\n\r\n`);
  for (let i = 0; i < 8; i++) socket.write(`400\r\n${' '.repeat(1024)}\r\n`);
  const body = JSON.stringify(CALL);
  socket.write(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
  await until(() => /^HTTP\/1\.1 (400|413)/.test(socket.received), () => `a refusal; got ${socket.received}`);
  assert.equal(upstream.calls.length, 0);
});

test('an https upstream with a certificate that no system CA signed is refused', async (t) => {
  const folder = temporaryFolder(t);
  const [key, cert] = [path.join(folder, 'key.pem'), path.join(folder, 'cert.pem')];
  try {
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'], { stdio: 'pipe' });
  } catch {
    return t.skip('the openssl command is not installed');
  }
  let requests = 0;
  const server = https.createServer({ key: fs.readFileSync(key), cert: fs.readFileSync(cert) }, (_, response) => (requests++, response.end('{}')));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  defer(t, () => new Promise((resolve) => (server.closeAllConnections(), server.close(resolve))));
  const gateway = await startGateway(t, { upstream: `https://localhost:${server.address().port}/mcp` });
  const answer = await exchange(gateway.url, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(CALL) });
  assert.deepEqual([answer.status, (await answer.json()).error.code, requests], [200, -32000, 0]);
});
