// The gateway as the OAuth resource server of a source: who comes in, who does not, and what each is told.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { test } from 'node:test';
import { connectedRaw, rawClient } from './lib/client.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { exchange } from './lib/http.mjs';
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

test('a token that has ended is refused although it was known', async (t) => {
  const { gateway, token } = await stage(t, { auth: { leeway: '0s' } });
  const short = token({ exp: now() + 2 });
  assert.equal((await ask(gateway, bearer(short))).status, 200);
  await until(async () => (await ask(gateway, bearer(short))).status === 401, 'the end of the token', { every: 200 });
});
