// The ways of a request in and out: paths, verbs, hosts, sources and their urls.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startGateway } from './lib/gateway.mjs';
import { exchange } from './lib/http.mjs';
import { scene } from './lib/scene.mjs';
import { startUpstream } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const CALL = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'read', arguments: {} } };
const JSON_TYPE = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

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
