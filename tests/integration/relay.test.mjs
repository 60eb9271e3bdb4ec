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
import { startUpstream } from './lib/upstream.mjs';
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

test("a forwarded call's reply that is not JSON-RPC is relayed as it is", async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply }) => reply.http(200, { 'content-type': 'text/plain' }, 'surprise');
  const answer = await client.send('tools/call', CALL.params);
  assert.deepEqual([answer.status, answer.headers['content-type'], answer.text], [200, 'text/plain', 'surprise']);
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

test('one source is served on /, /mcp, /mcp/v1 and /<source-id>/mcp, and nowhere else', async (t) => {
  const { upstream, gateway } = await scene(t);
  for (const route of ['/', '/mcp', '/mcp/v1', '/up/mcp']) {
    const answer = await exchange(gateway.origin + route, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ jsonrpc: '2.0', id: route, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } } }) });
    assert.equal(answer.status, 200, route);
    assert.equal((await answer.json()).id, route);
  }
  const before = upstream.requests.length;
  for (const route of ['/mcp2', '/mcp/v2', '/other/mcp', '/up', '/up/mcp/x', '/mcp/../secret', '//mcp', '/MCP', '/up/MCP', '/metrics', '/.well-known/other']) {
    const answer = await exchange(gateway.origin + route, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(CALL) });
    assert.equal(answer.status, 404, route);
  }
  assert.equal(upstream.requests.length, before);
});

test('several sources are served only on /<source-id>/mcp, each by its own upstream', async (t) => {
  const [a, b] = [await startUpstream(t), await startUpstream(t)];
  const gateway = await startGateway(t, { upstream: { alpha: a.url, 'beta.2': b.url } });
  for (const [id, own, other] of [['alpha', a, b], ['beta.2', b, a]]) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { marker: id } });
    a.sessions = b.sessions = false;
    const answer = await exchange(`${gateway.origin}/${id}/mcp`, { method: 'POST', headers: JSON_TYPE, body });
    assert.equal(answer.status, 200);
    assert.ok(own.requests.some((r) => r.text === body));
    assert.ok(!other.requests.some((r) => r.text === body));
  }
  for (const route of ['/', '/mcp', '/mcp/v1', '/gamma/mcp']) {
    assert.equal((await exchange(gateway.origin + route, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(CALL) })).status, 404, route);
  }
});

test('a source whose id begins with that of another, as far as 63 bytes go, is seen for itself', async (t) => {
  const [a, b] = [await startUpstream(t, { sessions: false }), await startUpstream(t, { sessions: false })];
  const id = 's'.repeat(63), longer = `${id}${'x'.repeat(20)}`, gateway = await startGateway(t, { upstream: { [id]: a.url, [longer]: b.url } });
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
  const ping = async (source) => (await exchange(`${gateway.origin}/${source}/mcp`, { method: 'POST', headers: JSON_TYPE, body })).text();
  const isReachable = async () => (await gateway.admin.get('/ready')).json.checks.upstream_reachable;
  for (const upstream of [a, b]) await (await upstream.received('tools/list')).gone;
  await a.stop();
  assert.match(await ping(id), /-32000/);
  await until(async () => !(await isReachable()), 'the one to be missed');
  await a.listen();
  assert.match(await ping(longer), /"result"/);
  assert.match(await ping(id), /"result"/);
  assert.equal(await isReachable(), true, 'the answer of the one counts, though that of the other came just before');
});

test('protected-resource metadata is relayed from the source it names', async (t) => {
  const [a, b] = [await startUpstream(t), await startUpstream(t)];
  for (const [name, up] of [['a', a], ['b', b]]) {
    up.onHttp = (r, reply) => r.path.startsWith('/.well-known/oauth-protected-resource') && (reply.http(200, { 'content-type': 'application/json' }, `{"from":"${name}"}`), true);
  }
  const single = await startGateway(t, { upstream: a.url });
  for (const route of ['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource/up/mcp']) {
    const answer = await exchange(single.origin + route);
    assert.deepEqual([answer.status, await answer.text()], [200, '{"from":"a"}'], route);
  }
  const several = await startGateway(t, { upstream: { a: a.url, b: b.url } });
  const answer = await exchange(`${several.origin}/.well-known/oauth-protected-resource/b/mcp`);
  assert.deepEqual([answer.status, await answer.text()], [200, '{"from":"b"}']);
});

test('verbs other than POST, GET and DELETE are 405', async (t) => {
  const { upstream, gateway } = await scene(t);
  await upstream.received((r) => r.method === 'DELETE'); // the gateway's own session is over
  const before = upstream.requests.length;
  for (const method of ['PUT', 'PATCH', 'OPTIONS', 'HEAD']) {
    const answer = await exchange(gateway.url, { method, headers: JSON_TYPE });
    assert.equal(answer.status, 405, method);
  }
  assert.equal(upstream.requests.length, before);
});

test('a content type other than JSON is 415', async (t) => {
  const { upstream, gateway, connect } = await scene(t);
  const client = await connect();
  const before = upstream.requests.length;
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'text/json', undefined]) {
    const answer = await exchange(gateway.url, { method: 'POST', headers: { accept: '*/*', ...(type ? { 'content-type': type } : {}) }, body: JSON.stringify(CALL) });
    assert.equal(answer.status, 415, type);
    assert.equal((await answer.json()).error.message, 'Content-Type must be application/json', type);
  }
  assert.equal(upstream.requests.length, before);
  for (const type of ['application/json; charset=utf-8', 'Application/JSON']) {
    assert.ok((await client.send('tools/call', CALL.params, { headers: { 'content-type': type } })).message.result, type);
  }
});

test('a foreign Host on a loopback connection is 403, loopback names are not', async (t) => {
  const { upstream, gateway, connect } = await scene(t);
  const client = await connect();
  const before = upstream.requests.length;
  for (const host of ['evil.example', 'evil.example:80', '127.0.0.1.evil.example', 'localhost.evil.example', '10.0.0.1']) {
    const answer = await client.send('tools/call', CALL.params, { headers: { host } });
    assert.equal(answer.status, 403, host);
  }
  assert.equal(upstream.requests.length, before);
  for (const host of ['localhost', `localhost:${gateway.port}`, '127.0.0.1', `[::1]:${gateway.port}`]) {
    assert.equal((await client.send('tools/call', CALL.params, { headers: { host } })).status, 200, host);
  }
});

test('a present Origin must be loopback or allowed', async (t) => {
  const { connect } = await scene(t, { config: { proxy: { allowed_origins: ['https://app.example'] } } });
  const client = await connect();
  for (const [origin, status] of [['https://evil.example', 403], ['null', 403], ['http://localhost.evil.example', 403], ['http://localhost:3000', 200], ['http://127.0.0.1:8080', 200], ['https://app.example', 200], ['https://app.example.evil.example', 403]]) {
    assert.equal((await client.send('tools/call', CALL.params, { headers: { origin } })).status, status, origin);
  }
});

test('allowed_hosts admits the names it lists', async (t) => {
  const { connect } = await scene(t, { config: { proxy: { allowed_hosts: ['gw.example'] } } });
  const client = await connect({ headers: { host: 'gw.example' } });
  assert.equal((await client.send('tools/call', CALL.params)).status, 200);
  assert.equal((await client.send('tools/call', CALL.params, { headers: { host: 'other.example' } })).status, 403);
});

for (const status of [400, 401, 403, 404, 429, 500, 503]) {
  test(`upstream's HTTP ${status} comes down as it is`, async (t) => {
    const { upstream, connect } = await scene(t);
    const client = await connect();
    upstream.handlers['tools/call'] = ({ reply }) => reply.http(status, { 'content-type': 'text/plain', 'www-authenticate': 'Bearer resource_metadata="https://x/y"', 'retry-after': '7' }, `body of ${status}`);
    const answer = await client.send('tools/call', CALL.params);
    assert.equal(answer.status, status);
    assert.equal(answer.text, `body of ${status}`);
    assert.equal(answer.headers['www-authenticate'], 'Bearer resource_metadata="https://x/y"');
    assert.equal(answer.headers['retry-after'], '7');
  });
}

test('an upstream that refuses connections: requests get -32000 in HTTP 200; GET, DELETE and notifications get 502', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  await upstream.stop();
  const answer = await client.send('tools/call', CALL.params);
  assert.equal(answer.status, 200);
  assert.equal(answer.message.error.code, -32000);
  assert.equal(answer.message.error.data.error_type, 'upstream_connection_failed');
  assert.equal(answer.message.id, answer.id);
  assert.doesNotMatch(answer.text, new RegExp(`:${upstream.port}`));
  assert.equal((await client.send('prompts/list')).message.error.code, -32000);
  assert.equal((await client.notify('notifications/initialized')).status, 502);
  assert.equal((await client.delete()).status, 502);
  const stream = await open(client.url, { headers: { accept: 'text/event-stream', 'mcp-session-id': client.session } });
  assert.equal(stream.status, 502);
  await stream.bytes();
});

test('the gateway serves again as soon as upstream is back', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  await upstream.stop();
  assert.equal((await client.error('tools/call', CALL.params)).code, -32000);
  await upstream.listen();
  assert.ok(await client.result('tools/call', CALL.params));
});

test('an upstream that goes before any byte of its answer: -32000', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply }) => reply.cut();
  const answer = await client.send('tools/call', CALL.params);
  assert.deepEqual([answer.status, answer.message.error.code, answer.message.id], [200, -32000, answer.id]);
  assert.equal(upstream.calls.length, 1, 'a request that may have been seen is not sent again');
});

test('an upstream that goes in the middle of an SSE reply: a last event with -32000 and the id', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  let up;
  upstream.handlers['tools/call'] = ({ reply }) => {
    up = reply.sse();
    up.event({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'first' } }, { id: '1' });
  };
  const down = await client.stream('tools/call', CALL.params);
  await down.next((e) => e.json?.method === 'notifications/message');
  up.raw('data: {"jsonrpc":"2.0","id":'); // half an event, then nothing
  up.cut();
  const last = await down.message((m) => m.error);
  assert.deepEqual([last.id, last.error.code, last.error.data.error_type], [down.id, -32000, 'upstream_connection_failed']);
  await down.end();
});

test('an upstream that goes after the answer on its SSE reply is no error', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply, id }) => {
    const up = reply.sse();
    up.event({ jsonrpc: '2.0', id, result: { content: [] } });
    up.response.write('', () => up.cut());
  };
  const down = await client.stream('tools/call', CALL.params);
  await down.end();
  assert.deepEqual(down.events.filter((e) => e.json).map((e) => Object.keys(e.json).includes('error')), [false]);
});

test('a stream that upstream ends in good order before its answer is no error: the client comes back for the rest (SEP-1699)', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply }) => {
    const up = reply.sse();
    up.raw('id: s1_0\nretry: 100\ndata:\n\n');
    up.end();
  };
  const down = await client.stream('tools/call', CALL.params);
  assert.equal(await down.end(), 'end');
  assert.deepEqual(down.events.filter((e) => e.json), []);
  assert.deepEqual([down.events[0].id, down.events[0].retry], ['s1_0', '100']);
  upstream.onHttp = (r, reply) => {
    if (r.method !== 'GET') return false;
    const up = reply.sse();
    up.event({ jsonrpc: '2.0', id: down.id, result: { content: [] } }, { id: 's1_1' });
    up.end();
    return true;
  };
  const rest = await client.listen({ headers: { 'last-event-id': 's1_0' } });
  assert.equal((await rest.next((e) => e.json?.id === down.id)).id, 's1_1');
});

test('an upstream that goes in the middle of a JSON body: the connection is cut, no half answer passes for a whole one', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply }) => {
    reply.response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
    reply.response.write('{"jsonrpc":"2.0",', () => reply.response.destroy());
  };
  const outcome = await client.send('tools/call', CALL.params).then(
    (answer) => (answer.message?.error ? `error ${answer.message.error.code}` : `whole: ${answer.text}`),
    () => 'cut',
  );
  assert.equal(outcome, 'cut');
});

test('silence ends a forwarded call with -32001 UpstreamTimeout, and upstream is left', async (t) => {
  const { upstream, connect } = await scene(t, { env: { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1' }, upstream: { handlers: { 'tools/call': () => {} } } });
  const client = await connect();
  const answer = await client.send('tools/call', CALL.params);
  assert.equal(answer.status, 200);
  assert.equal(answer.message.error.code, -32001);
  assert.match(answer.message.error.message, /UpstreamTimeout/);
  assert.equal(answer.message.error.data.error_type, 'upstream_timeout');
  await upstream.calls[0].gone;
  assert.equal(upstream.calls[0].left, true);
});

test('any byte of a stream counts as life, also far beyond the silence limit', async (t) => {
  const { upstream, connect } = await scene(t, { env: { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1' } });
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply, id }) => {
    const stream = reply.sse();
    let beats = 0;
    const timer = setInterval(() => {
      if (++beats < 7) return stream.raw(':\n\n');
      clearInterval(timer);
      stream.event({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'late' }] } });
      stream.end();
    }, 400);
  };
  const answer = await client.send('tools/call', CALL.params);
  assert.equal(answer.message.result.content[0].text, 'late');
});

test('the silence limit is for tools/call only', async (t) => {
  const { upstream, connect } = await scene(t, { env: { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1' } });
  const client = await connect();
  upstream.handlers['prompts/get'] = ({ reply }) => setTimeout(() => reply.result({ messages: [] }), 1900);
  assert.deepEqual(await client.result('prompts/get', { name: 'p' }), { messages: [] });
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
  const chunk = `data: ${'x'.repeat(65_536 - 8)}\n\n`;
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

test('the url of a source is used as it is, and THOUGHTGATE_UPSTREAM replaces that of a single source', async (t) => {
  const [named, replaced] = [await startUpstream(t, { sessions: false }), await startUpstream(t, { sessions: false })];
  const url = `http://127.0.0.1:${replaced.port}/deep/path?tenant=7`;
  const gateway = await startGateway(t, { upstream: named.url, env: { THOUGHTGATE_UPSTREAM: url } });
  await exchange(gateway.url, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(CALL) });
  assert.equal(named.requests.length, 0);
  assert.deepEqual([...new Set(replaced.requests.map((r) => r.path))], ['/deep/path?tenant=7']);
});

for (const client of ['auto', 'curl']) {
  test(`odd parts of a url reach the server as they are written (${client})`, async (t) => {
    const upstream = await startUpstream(t, { sessions: false });
    const target = '/a/./b/../mcp//x?q=%7e&r=/../';
    const gateway = await startGateway(t, { upstream: `http://127.0.0.1:${upstream.port}${target}`, env: { THOUGHTGATE_UPSTREAM_CLIENT: client } });
    await exchange(gateway.url, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(CALL) });
    assert.deepEqual([...new Set(upstream.requests.map((r) => r.path))], [target]);
  });

  for (const address of ['127.0.0.1', '::1']) {
    test(`localhost is a server on ${address}, whatever the resolver says (${client})`, async (t) => {
      const upstream = await startUpstream(t, { sessions: false, address }).catch((error) => error);
      if (upstream.code === 'EADDRNOTAVAIL' || upstream.code === 'EAFNOSUPPORT') return t.skip(`this machine has no ${address}`);
      const gateway = await startGateway(t, { upstream: `http://LocalHost:${upstream.port}/mcp`, env: { THOUGHTGATE_UPSTREAM_CLIENT: client } });
      const answer = await exchange(gateway.url, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(CALL) });
      assert.equal((await answer.json()).result.content[0].text, 'did read');
    });
  }
}

test("static headers of a source go upstream, over the client's own", async (t) => {
  const { upstream, connect } = await scene(t, { source: { headers: { 'X-Api-Key': { env: 'UP_KEY' } } }, env: { UP_KEY: 's3cret' } });
  const client = await connect();
  await client.result('tools/call', CALL.params);
  assert.equal(upstream.calls[0].headers['x-api-key'], 's3cret');
  assert.ok(upstream.of('initialize').every((r) => r.headers['x-api-key'] === 's3cret'));
});
