// The gateway as the OAuth resource server of a source: who comes in, who does not, and what each is told.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import { test } from 'node:test';
import { connectedRaw, rawClient } from './lib/client.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { exchange } from './lib/http.mjs';
import { defer } from './lib/lifetime.mjs';
import { startIssuer } from './lib/token_issuer.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const AUDIENCE = 'https://gate.example/mcp';

/** An issuer, an upstream, a gateway whose one source has `auth`. */
async function stage(t, { auth = {}, issuer: issuerOptions, upstream: upstreamOptions, ...more } = {}) {
  const issuer = await startIssuer(t, issuerOptions);
  const upstream = await startUpstream(t, { sessions: false, ...upstreamOptions });
  const gateway = await startGateway(t, {
    upstream: upstream.url,
    source: { auth: { issuer: issuer.url, audience: AUDIENCE, ...auth } },
    ...more,
  });
  const token = (claims) => issuer.token(AUDIENCE, claims);
  const connect = (claims, options) => connectedRaw(t, gateway.url, { token: token(claims), ...options });
  return { issuer, upstream, gateway, admin: gateway.admin, token, connect };
}

const ask = (gateway, headers = {}, { method = 'POST', body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }), url = gateway.url } = {}) =>
  exchange(url, { method, headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers }, body: method === 'POST' ? body : undefined });

const bearer = (token) => ({ authorization: `Bearer ${token}` });
const challenge = (response) => response.headers['www-authenticate'];
const forwarded = (upstream) => upstream.requests.filter((request) => !request.isGatewaysOwn && !/^notifications\/initialized$/.test(request.rpc?.method ?? '') && request.rpc?.id === 1).length;

test('without a token: 401 with a challenge that leads to the metadata', async (t) => {
  const { gateway, upstream, issuer } = await stage(t, { auth: { scopes: ['mcp:read', 'mcp:write'] } });
  const refused = await ask(gateway);
  assert.equal(refused.status, 401);
  assert.equal(challenge(refused), `Bearer resource_metadata="${gateway.origin}/.well-known/oauth-protected-resource/mcp", scope="mcp:read mcp:write"`);
  const metadata = await exchange(/resource_metadata="([^"]+)"/.exec(challenge(refused))[1]);
  assert.equal(metadata.status, 200);
  assert.deepEqual(JSON.parse(metadata.body), {
    resource: AUDIENCE,
    authorization_servers: [issuer.url],
    scopes_supported: ['mcp:read', 'mcp:write'],
    bearer_methods_supported: ['header'],
  });
  assert.equal(forwarded(upstream), 0);
});

test('401 comes before 405, 415 and mistakes in the body', async (t) => {
  const { gateway, token } = await stage(t);
  const wrong = [
    [{ method: 'PUT' }, {}, 405],
    [{}, { 'content-type': 'text/plain' }, 415],
    [{ body: '{' }, {}, 400],
  ];
  for (const [options, headers, status] of wrong) {
    assert.equal((await ask(gateway, headers, options)).status, 401);
    assert.equal((await ask(gateway, { ...headers, ...bearer(token()) }, options)).status, status);
  }
  assert.equal((await ask(gateway, {}, { method: 'GET' })).status, 401);
  assert.equal((await ask(gateway, {}, { method: 'DELETE' })).status, 401);
  assert.equal((await ask(gateway, {}, { url: `${gateway.origin}/elsewhere` })).status, 404);
});

test('a good token passes, and the server does not get it', async (t) => {
  const { upstream, connect } = await stage(t);
  const client = await connect();
  assert.ok((await client.result('tools/call', { name: 'read', arguments: {} })).content);
  assert.equal(upstream.calls[0].headers.authorization, undefined);
});

test('upstream: pass sends it on, and check warns', async (t) => {
  const { gateway, upstream, connect } = await stage(t, { auth: { upstream: 'pass' } });
  const client = await connect();
  await client.result('tools/call', { name: 'read', arguments: {} });
  assert.equal(upstream.calls[0].headers.authorization, client.headers.authorization);
  assert.match((await gateway.cli(['check', '--config', gateway.configPath])).stderr, /sources\[0\]\.auth\.upstream: the specification forbids/);
});

const now = () => Math.floor(Date.now() / 1000);
const bad = {
  'no JWT': ['malformed', () => 'opaque'],
  'alg none': ['algorithm', ({ issuer }) => `${issuer.sign(issuer.claims(AUDIENCE), { alg: 'none' }).replace(/[^.]*$/, '')}`],
  'HMAC with the public key': ['algorithm', ({ issuer }) => {
    const input = issuer.sign(issuer.claims(AUDIENCE), { alg: 'HS256' }).replace(/\.[^.]*$/, '');
    return `${input}.${crypto.createHmac('sha256', JSON.stringify(issuer.published[0])).update(input).digest('base64url')}`;
  }],
  'crit': ['critical', ({ issuer }) => issuer.sign(issuer.claims(AUDIENCE), { crit: ['exp'] })],
  'no kid': ['key_missing', ({ issuer }) => issuer.sign(issuer.claims(AUDIENCE), { kid: undefined })],
  'an unknown kid': ['key_unknown', ({ issuer }) => issuer.sign(issuer.claims(AUDIENCE), { kid: 'who' })],
  'a foreign key': ['signature', ({ issuer }) => issuer.sign(issuer.claims(AUDIENCE), {}, crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)],
  'another type': ['type', ({ issuer }) => issuer.sign(issuer.claims(AUDIENCE), { typ: 'logout+jwt' })],
  'another issuer': ['issuer', ({ token }) => token({ iss: 'https://other.example' })],
  'no issuer': ['issuer', ({ token }) => token({ iss: undefined })],
  'another audience': ['audience', ({ token }) => token({ aud: 'https://other.example' })],
  'no audience': ['audience', ({ token }) => token({ aud: undefined })],
  'no subject': ['subject', ({ token }) => token({ sub: '' })],
  'no exp': ['no_expiry', ({ token }) => token({ exp: undefined })],
  'expired': ['expired', ({ token }) => token({ exp: now() - 61 })],
  'not yet valid': ['not_yet', ({ token }) => token({ nbf: now() + 120 })],
  'a JWE': ['encrypted', () => 'e30.e30.e30.e30.e30'],
};

test('each bad token is refused, told in the standard\'s words, counted, and logged without itself', async (t) => {
  const on = await stage(t);
  const { gateway, upstream, admin } = on;
  for (const [name, [reason, make]] of Object.entries(bad)) {
    const token = make(on);
    const refused = await ask(gateway, bearer(token));
    assert.equal(refused.status, 401, name);
    assert.match(challenge(refused), /^Bearer resource_metadata="[^"]+", error="invalid_token", error_description="[^"]+"$/, name);
    assert.equal(JSON.parse(refused.body).error, 'invalid_token', name);
    const entry = await gateway.logged((line) => line.msg === 'Access token refused' && line.reason === reason);
    assert.equal(entry.source, 'up', name);
    assert.match((await admin.get('/metrics')).text, new RegExp(`thoughtgate_tokens_refused_total\\{source="up",reason="${reason}"\\}`), name);
    if (token.length > 20) assert.ok(!gateway.child.stderr.includes(token.slice(-40)), name);
  }
  assert.equal(forwarded(upstream), 0);
});

test('several Authorization headers are 401 where tokens are verified, even if one or all are good', async (t) => {
  const { gateway, upstream, token, admin } = await stage(t);
  const good = `Bearer ${token()}`;
  for (const authorization of [[good, good], [good, 'Bearer other'], ['Basic eDp5', good]]) {
    for (const method of ['POST', 'GET', 'DELETE']) {
      const refused = await ask(gateway, { authorization }, { method });
      assert.equal(refused.status, 401, method);
      assert.match(challenge(refused), /error="invalid_token", error_description="The request has several Authorization headers"/);
    }
  }
  assert.match((await admin.get('/metrics')).text, /thoughtgate_tokens_refused_total\{source="up",reason="several"\} 9\n/);
  assert.equal(forwarded(upstream), 0);
});

test('large tokens and names that differ in more than their bytes: 401, counted, and nothing reaches the server', async (t) => {
  const on = await stage(t);
  const { gateway, upstream, admin, issuer } = on;
  const duplicate = (text) => issuer.signText(text);
  const claims = issuer.claims(AUDIENCE);
  const rows = [
    ['too_large', issuer.token(AUDIENCE, { filler: 'x'.repeat(70_000) })],
    ['claims', duplicate(`${JSON.stringify(claims).slice(0, -1)},"sub":"bob"}`)],
    ['claims', duplicate(`${JSON.stringify(claims).slice(0, -1)},"aud":"${AUDIENCE}"}`)],
    ['audience', issuer.token(`${AUDIENCE}/`)],
    ['issuer', issuer.token(AUDIENCE, { iss: `${issuer.url}/` })],
    ['key_unknown', issuer.token(AUDIENCE)],
  ];
  rows.at(-1)[1] = issuer.sign(claims, { kid: 'small' });
  for (const [reason, token] of rows) {
    const refused = await ask(gateway, bearer(token));
    assert.equal(refused.status, 401, reason);
    await gateway.logged((line) => line.msg === 'Access token refused' && line.reason === reason);
    assert.match((await admin.get('/metrics')).text, new RegExp(`thoughtgate_tokens_refused_total\\{source="up",reason="${reason}"\\}`), reason);
    assert.ok(!gateway.child.stderr.includes(token.slice(-40)), reason);
  }
  assert.equal(forwarded(upstream), 0);
});

test('a token of a megabyte is refused before it is read, and nothing reaches the server', async (t) => {
  const { gateway, upstream, token } = await stage(t);
  const answer = await ask(gateway, bearer(`${'e'.repeat(1 << 20)}.e30.e30`)).then(({ status }) => status, () => 'closed');
  assert.ok([400, 401, 413, 431, 'closed'].includes(answer), String(answer));
  assert.equal((await ask(gateway, bearer(token()))).status, 200, 'the gateway goes on');
  assert.equal(forwarded(upstream), 1);
});

test('keys that cannot sign are none: symmetric, too small, of another use or type', async (t) => {
  const { gateway, upstream, issuer } = await stage(t);
  const secret = crypto.randomBytes(32);
  const small = crypto.generateKeyPairSync('rsa', { modulusLength: 1024 });
  const rsa = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
  const curve = crypto.generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const jwk = (key, more) => ({ ...key.export({ format: 'jwk' }), ...more });
  issuer.published = [
    { kty: 'oct', k: secret.toString('base64url'), kid: 'oct', alg: 'HS256' },
    jwk(small.publicKey, { kid: 'small', use: 'sig' }),
    jwk(rsa.publicKey, { kid: 'enc', use: 'enc' }),
    jwk(curve.publicKey, { kid: 'p384', use: 'sig' }),
    ...issuer.published,
  ];
  await gateway.restart();
  const signed = (header, sign) => {
    const input = issuer.sign(issuer.claims(AUDIENCE), header).replace(/\.[^.]*$/, '');
    return `${input}.${sign(Buffer.from(input)).toString('base64url')}`;
  };
  const tokens = {
    oct: signed({ alg: 'HS256', kid: 'oct' }, (input) => crypto.createHmac('sha256', secret).update(input).digest()),
    'oct as a key of a curve': signed({ alg: 'ES256', kid: 'oct' }, (input) => crypto.createHmac('sha256', secret).update(input).digest()),
    small: signed({ alg: 'RS256', kid: 'small' }, (input) => crypto.sign('sha256', input, small.privateKey)),
    enc: signed({ alg: 'RS256', kid: 'enc' }, (input) => crypto.sign('sha256', input, rsa.privateKey)),
    'another curve': signed({ alg: 'ES256', kid: 'p384' }, (input) => crypto.sign('sha256', input, { key: curve.privateKey, dsaEncoding: 'ieee-p1363' })),
    'another type': signed({ alg: 'RS256', kid: 'first' }, (input) => crypto.sign('sha256', input, rsa.privateKey)),
  };
  for (const [name, token] of Object.entries(tokens)) assert.equal((await ask(gateway, bearer(token))).status, 401, name);
  assert.equal(forwarded(upstream), 0);
  const good = signed({ alg: 'ES384', kid: 'p384' }, (input) => crypto.sign('sha384', input, { key: curve.privateKey, dsaEncoding: 'ieee-p1363' }));
  assert.equal((await ask(gateway, bearer(good))).status, 200, 'the key itself is good');
});

test('a missing scope is 403 and names all that are needed', async (t) => {
  const { gateway, token } = await stage(t, { auth: { scopes: ['mcp:read', 'mcp:write'] } });
  const refused = await ask(gateway, bearer(token({ scope: 'mcp:read other' })));
  assert.equal(refused.status, 403);
  assert.match(challenge(refused), /scope="mcp:read mcp:write", error="insufficient_scope"/);
  assert.equal((await ask(gateway, bearer(token({ scope: 'mcp:write mcp:read' })))).status, 200);
});

test('a refreshed token keeps its tasks; another subject sees nothing, even with the session', async (t) => {
  const { gateway, upstream, admin, token, connect } = await stage(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { sessions: true, tools: [tool('delete_user')] } });
  const alice = await connect({ name: 'Alice' });
  const { taskId } = await alice.createTask('delete_user');
  assert.equal((await admin.task(taskId)).principal, 'alice (Alice, says the issuer)');
  const again = await connect({ name: 'Alice' });
  assert.deepEqual((await again.result('tasks/list')).tasks.map((task) => task.taskId), [taskId]);
  const bob = await connect({ sub: 'bob' });
  assert.equal((await bob.error('tasks/get', { taskId })).code, -32602);
  const thief = rawClient(t, gateway.url, { token: token({ sub: 'bob' }) });
  Object.assign(thief, { session: alice.session, initialized: true });
  const before = upstream.requests.length;
  const stolen = { ...bearer(token({ sub: 'bob' })), 'mcp-session-id': alice.session };
  for (const method of ['POST', 'GET', 'DELETE']) assert.equal((await ask(gateway, stolen, { method })).status, 404, method);
  for (const method of ['tasks/get', 'tasks/cancel']) assert.equal((await thief.send(method, { taskId })).status, 404, method);
  assert.equal(upstream.requests.length, before, 'nothing of the thief reaches the session');
  alice.headers.authorization = `Bearer ${token({ name: 'Alice' })}`;
  assert.equal((await alice.result('tasks/get', { taskId })).status, 'input_required');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.ok((await again.result('tasks/result', { taskId })).content);
});

test('after a restart a client that omits its session id has its approved call run, in a session that the gateway opens and ends', async (t) => {
  const { upstream, gateway, admin, token } = await stage(t, { auth: { upstream: 'pass' }, upstream: { sessions: true, tools: [tool('delete_user')] }, rules: [['delete_*', 'approve']], approval: workflow('1h') });
  const client = await connectedRaw(t, gateway.url, { token: token(), keepAlive: false });
  const { taskId } = await client.createTask('delete_user');
  // The owner alone learns what the tools are, and whether the server has sessions.
  upstream.authorize = ({ headers }) => (headers.authorization ? 0 : 401);
  await gateway.restart();
  // As the protocol asks of servers, and as the official ones answer.
  upstream.onHttp = ({ rpc, headers }, reply) => rpc?.id !== undefined && rpc.method !== 'initialize' && !headers['mcp-session-id'] && (reply.http(400, {}, 'Bad Request: Mcp-Session-Id header is required'), true);
  const poll = rawClient(t, gateway.url, { token: token(), keepAlive: false });
  assert.equal((await poll.result('tasks/get', { taskId })).status, 'input_required');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.deepEqual(upstream.calls.map(({ headers }) => [headers['mcp-session-id'] === client.session, headers['mcp-protocol-version']]), [[false, '2025-11-25']]);
  assert.equal((await poll.result('tasks/result', { taskId })).content[0].text, 'did delete_user');
  await until(() => !upstream.liveSessions.has(upstream.calls[0].headers['mcp-session-id']), 'the new session to be ended');
});

test('keys rotate: an unknown one is fetched at once, then not for a while; the old one goes', async (t) => {
  const { gateway, issuer, token } = await stage(t);
  assert.equal((await ask(gateway, bearer(token()))).status, 200);
  issuer.rotate('second');
  assert.equal((await ask(gateway, bearer(token()))).status, 200);
  const asked = issuer.asked.filter((path) => path === '/keys').length;
  issuer.rotate('third');
  assert.equal((await ask(gateway, bearer(token()))).status, 401);
  assert.equal(issuer.asked.filter((path) => path === '/keys').length, asked);
});

test('the issuer is down: known keys go on; without any it is 503, until the issuer is back', async (t) => {
  const { gateway, issuer, upstream, token } = await stage(t);
  assert.equal((await ask(gateway, bearer(token()))).status, 200);
  await issuer.stop();
  assert.equal((await ask(gateway, bearer(token()))).status, 200);
  const before = forwarded(upstream);
  await gateway.restart();
  const refused = await ask(gateway, bearer(token()));
  assert.equal(refused.status, 503);
  assert.equal(challenge(refused), undefined);
  assert.equal(forwarded(upstream), before);
  await issuer.listen();
  await until(async () => (await ask(gateway, bearer(token()))).status === 200, 'the keys being there', { every: 200 });
});

test('metadata of another issuer is not believed', async (t) => {
  const { gateway, issuer, token } = await stage(t);
  issuer.metadata = { issuer: 'https://other.example' };
  await gateway.restart();
  assert.equal((await ask(gateway, bearer(token()))).status, 503);
});

test('OpenID\'s place of the metadata, and an address of the keys in the configuration', async (t) => {
  const openid = await stage(t, { issuer: { place: '/.well-known/openid-configuration' } });
  assert.equal((await ask(openid.gateway, bearer(openid.token()))).status, 200);
  const issuer = await startIssuer(t, { place: '/nowhere' });
  const upstream = await startUpstream(t, { sessions: false });
  const gateway = await startGateway(t, { upstream: upstream.url, source: { auth: { issuer: issuer.url, audience: 'here', jwks_url: `${issuer.url}/keys` } } });
  assert.equal((await ask(gateway, bearer(issuer.token(['there', 'here'])))).status, 200);
  const metadata = await exchange(`${gateway.origin}/.well-known/oauth-protected-resource/up/mcp`);
  assert.equal(JSON.parse(metadata.body).resource, `${gateway.origin}/up/mcp`);
});

test('sources with and without auth side by side; a token for one is none for the other', async (t) => {
  const issuer = await startIssuer(t);
  const upstreams = await Promise.all([1, 2, 3].map(() => startUpstream(t, { sessions: false })));
  const auth = (audience) => ({ issuer: issuer.url, audience });
  const gateway = await startGateway(t, {
    upstream: upstreams[0].url,
    config: {
      sources: [
        { id: 'open', kind: 'mcp', url: upstreams[0].url },
        { id: 'one', kind: 'mcp', url: upstreams[1].url, auth: auth('one') },
        { id: 'two', kind: 'mcp', url: upstreams[2].url, auth: auth('two') },
      ],
    },
  });
  const at = (id, headers) => ask(gateway, headers, { url: `${gateway.origin}/${id}/mcp` });
  const token = issuer.token('one');
  assert.equal((await at('open')).status, 200);
  assert.equal((await at('one')).status, 401);
  for (let i = 0; i < 2; i++) {
    assert.equal((await at('one', bearer(token))).status, 200);
    assert.equal((await at('two', bearer(token))).status, 401);
  }
});

test('an open stream ends with its token', async (t) => {
  const { upstream, connect } = await stage(t, { auth: { leeway: '0s' }, upstream: { sessions: true } });
  const [short, long] = [await connect({ exp: now() + 4 }), await connect()];
  const [ending, lasting] = [await short.listen(), await long.listen()];
  await until(() => upstream.getStreams.size === 2, 'both streams open upstream');
  let ended = false;
  ending.response.message.on('end', () => (ended = true));
  await until(() => ended, 'the end of the stream', { deadline: 20_000 });
  await until(() => upstream.getStreams.size === 1, 'its end upstream');
  assert.equal(lasting.response.message.complete, false);
});

test('after the end of its token a forwarded answer is delivered, as JSON and on a stream; tasks/result ends', async (t) => {
  const { upstream, admin, connect, gateway } = await stage(t, { auth: { leeway: '0s' }, rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { sessions: true, tools: [tool('read'), tool('delete_user')] } });
  const held = [];
  upstream.handlers['tools/call'] = (call) => void held.push(call);
  const client = await connect({ exp: now() + 4 });
  const { taskId } = await client.createTask('delete_user');
  const calls = ['json', 'stream'].map((x) => client.send('tools/call', { name: 'read', arguments: { x } }));
  await until(() => held.length === 2, 'both calls at the server');
  const [plain, streamed] = ['json', 'stream'].map((x) => held.find(({ params }) => params.arguments.x === x));
  const events = streamed.reply.sse();
  events.event({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'works' } });
  const { status, headers, message } = await client.send('tasks/result', { taskId });
  assert.deepEqual([status, headers['content-type'], message.error.code, message.error.data.details], [200, 'text/event-stream', -32013, 'the access token has expired']);
  assert.equal((await gateway.logged((line) => line.msg === 'A stream ends with its access token')).source, 'up');
  assert.equal((await admin.task(taskId)).state, 'pending', 'the task waits on');
  const result = (text) => ({ content: [{ type: 'text', text }] });
  plain.reply.result(result('as JSON'));
  events.event({ jsonrpc: '2.0', id: streamed.id, result: result('on a stream') });
  events.end();
  assert.deepEqual((await Promise.all(calls)).map((answer) => answer.message.result.content[0].text), ['as JSON', 'on a stream']);
});

test('a held call is answered as pending two seconds before its token ends, and tools that wait answer then', async (t) => {
  const { upstream, admin, connect } = await stage(t, { auth: { leeway: '0s' }, rules: [['delete_*', 'approve']], approval: workflow('10m'), config: { pseudo_tools: { only: 'all' } }, upstream: { sessions: true, tools: [tool('read'), tool('delete_user')] } });
  upstream.handlers['tools/call'] = () => {};
  const call = (client, name, args = {}) => client.result('tools/call', { name, arguments: args });
  const client = await connect({ exp: now() + 6 }, { protocol: '2025-06-18', capabilities: {} });
  const pending = await call(client, 'delete_user');
  const id = pending.structuredContent.proxy_task.task_id;
  assert.equal((await admin.task(id)).state, 'pending');
  // With less than two seconds left each answers at once: before the token's end, after which the client is refused.
  const [again, executed, fetched, awaited] = await Promise.all([
    call(client, 'delete_user'),
    call(client, 'execute_tool', { server: 'up', tool: 'delete_user', args: {} }),
    call(client, 'get_task_result', { task_id: id }),
    call(client, 'await_activity'),
  ]);
  for (const { structuredContent } of [again, executed]) assert.deepEqual([structuredContent.joined, structuredContent.proxy_task.task_id], [true, id]);
  assert.match(fetched.structuredContent.error, /is still working/);
  assert.deepEqual(awaited.structuredContent.triggers, [{ type: 'timeout' }]);
});

test('a session that nobody has opened here is not found, and its request does not reach the server', async (t) => {
  for (const upstreamKeys of [{}, { upstream: 'pass' }]) {
    const { gateway, upstream, token, connect } = await stage(t, { auth: upstreamKeys, upstream: { sessions: true } });
    const client = await connect();
    const good = { authorization: client.headers.authorization };
    const before = upstream.requests.length;
    for (const session of ['nobody-has-opened-it', `${client.session}x`, 'x'.repeat(200)]) {
      for (const method of ['POST', 'GET', 'DELETE']) assert.equal((await ask(gateway, { ...good, 'mcp-session-id': session }, { method })).status, 404, `${method} ${session}`);
    }
    assert.equal(upstream.requests.length, before);
    assert.equal((await ask(gateway, { ...bearer(token()), 'mcp-session-id': client.session })).status, 200, 'one\'s own, with a newer token');
  }
});

test('one token in two sessions: each is known by itself, and the end of one leaves the other', async (t) => {
  const { gateway, upstream, token } = await stage(t, { upstream: { sessions: true } });
  const alice = token();
  const clients = [await connectedRaw(t, gateway.url, { token: alice }), await connectedRaw(t, gateway.url, { token: alice })];
  assert.notEqual(clients[0].session, clients[1].session);
  const statuses = async () => Promise.all(clients.map(async ({ session }) => (await ask(gateway, { ...bearer(alice), 'mcp-session-id': session })).status));
  for (let i = 0; i < 3; i++) assert.deepEqual(await statuses(), [200, 200]);
  assert.equal((await ask(gateway, { ...bearer(alice), 'mcp-session-id': clients[0].session }, { method: 'DELETE' })).status, 200);
  const before = upstream.calls.length;
  assert.deepEqual(await statuses(), [404, 200]);
  assert.equal(upstream.calls.length, before + 1);
  const reduced = token({ sub: 'bob' });
  assert.equal((await ask(gateway, { ...bearer(reduced), 'mcp-session-id': clients[1].session })).status, 404);
});

test('a reload judges known tokens anew', async (t) => {
  const { gateway, issuer, token } = await stage(t);
  const alice = token();
  for (let i = 0; i < 2; i++) assert.equal((await ask(gateway, bearer(alice))).status, 200);
  gateway.writeConfig({ source: { auth: { issuer: issuer.url, audience: AUDIENCE, scopes: ['mcp:use'] } } });
  await gateway.logged((line) => line.msg === 'Configuration reloaded');
  assert.equal((await ask(gateway, bearer(alice))).status, 403);
});

test('a session that cannot be looked up is 503, not 404', async (t) => {
  const { gateway, upstream, connect } = await stage(t, { upstream: { sessions: true } });
  const client = await connect();
  await gateway.restart();
  fs.renameSync(gateway.storePath, `${gateway.storePath}.aside`);
  const before = upstream.requests.length;
  for (const method of ['POST', 'GET', 'DELETE']) {
    const failed = await ask(gateway, { authorization: client.headers.authorization, 'mcp-session-id': client.session }, { method });
    assert.equal(failed.status, 503, method);
    assert.equal(JSON.parse(failed.body).error.code, -32013);
  }
  assert.equal(upstream.requests.filter((request) => request.headers['mcp-session-id'] === client.session).length, upstream.requests.slice(0, before).filter((request) => request.headers['mcp-session-id'] === client.session).length);
  fs.renameSync(`${gateway.storePath}.aside`, gateway.storePath);
  await until(async () => (await ask(gateway, { authorization: client.headers.authorization, 'mcp-session-id': client.session })).status === 200, 'the store to work again', { every: 200 });
});

test('nobody approves the call of their own agent: the person by the verified subject', async (t) => {
  const issuer = await startIssuer(t);
  const upstream = await startUpstream(t, { tools: [tool('delete_user')] });
  const people = [{ name: 'ann', subject: 'alice', issuer: issuer.url }, { name: 'eve', subject: 'alice', issuer: 'https://other.example' }, { name: 'bob' }];
  const gateway = await startGateway(t, {
    upstream: upstream.url,
    source: { auth: { issuer: issuer.url, audience: AUDIENCE } },
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    config: { admin: { people, tokens: people.map(({ name }) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver'] })) } },
    env: { ANN: 'token-of-ann', EVE: 'token-of-eve', BOB: 'token-of-bob' },
  });
  const { admin } = gateway;
  const client = await connectedRaw(t, gateway.url, { token: issuer.token(AUDIENCE) });
  const tasks = [await client.createTask('delete_user'), await client.createTask('delete_user')];
  const refused = await admin.as('token-of-ann').decide('approve', tasks[0].taskId);
  assert.equal(refused.status, 403, refused.text);
  assert.match(refused.json.error.message, /the person that made this call may not approve it/);
  assert.equal((await admin.task(tasks[0].taskId)).state, 'pending');
  await admin.as('token-of-bob').approve(tasks[0].taskId);
  await admin.as('token-of-eve').approve(tasks[1].taskId, 'the same subject of another issuer is somebody else');
});

test('an agent\'s token is none at the operators\' port, and the reverse', async (t) => {
  const issuer = await startIssuer(t, { place: '/.well-known/openid-configuration' });
  issuer.metadata = { authorization_endpoint: `${issuer.url}/auth`, token_endpoint: `${issuer.url}/token`, code_challenge_methods_supported: ['S256'] };
  const upstream = await startUpstream(t, { sessions: false });
  const gateway = await startGateway(t, {
    upstream: upstream.url,
    source: { auth: { issuer: issuer.url, audience: AUDIENCE } },
    config: { admin: { public_url: 'http://127.0.0.1', oidc: { issuer: issuer.url, client_id: 'operators', roles: { approver: ['dba'] } } } },
  });
  const claims = { groups: ['dba'], sub: 'carol' };
  const [agent, operator] = [issuer.token(AUDIENCE, claims), issuer.sign(issuer.claims('operators', claims), { typ: 'JWT' })];
  await until(async () => (await gateway.admin.as(operator).get('/api/v1/whoami')).status === 200, 'the keys at the operators\' port', { every: 200 });
  assert.equal((await gateway.admin.as(agent).get('/api/v1/whoami')).status, 401);
  assert.equal((await gateway.admin.as(agent).get('/api/v1/tasks')).status, 401);
  assert.equal((await ask(gateway, bearer(agent))).status, 200);
  const refused = await ask(gateway, bearer(operator));
  assert.deepEqual([refused.status, JSON.parse(refused.body).error_description], [401, 'The token is not meant for this resource']);
  assert.equal(forwarded(upstream), 1);
});

test('a token that has ended is refused although it was known', async (t) => {
  const { gateway, token } = await stage(t, { auth: { leeway: '0s' } });
  const short = token({ exp: now() + 2 });
  assert.equal((await ask(gateway, bearer(short))).status, 200);
  await until(async () => (await ask(gateway, bearer(short))).status === 401, 'the end of the token', { every: 200 });
});
