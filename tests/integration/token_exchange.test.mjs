// `upstream: exchange`: the server gets the token that the client's was exchanged for (RFC 8693), and never the client's.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectedRaw } from './lib/client.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { exchange } from './lib/http.mjs';
import { defer } from './lib/lifetime.mjs';
import { modernServer } from './lib/modern.mjs';
import { modernClient } from './lib/modern_client.mjs';
import { freePort } from './lib/ports.mjs';
import { startIssuer } from './lib/token_issuer.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const AUDIENCE = 'https://gate.example/mcp';
const SECRET = 'exchange-secret-7c1';
const now = () => Math.floor(Date.now() / 1000);

/** An issuer that exchanges tokens, an upstream, and a gateway that asks for them. */
async function stage(t, { exchangeKeys = {}, auth = {}, upstream: upstreamOptions, env, source = {}, ...more } = {}) {
  const issuer = await startIssuer(t);
  const upstream = await startUpstream(t, { sessions: false, tools: [tool('read'), tool('delete_user')], ...upstreamOptions });
  const keys = { token_url: `${issuer.url}/token`, client_id: 'gate', client_secret_env: 'EXCHANGE_SECRET', audience: 'https://up.example', scope: 'up:use up:read', ...exchangeKeys };
  const gateway = await startGateway(t, {
    upstream: upstream.url,
    source: { auth: { issuer: issuer.url, audience: AUDIENCE, upstream: 'exchange', exchange: keys, ...auth }, ...source },
    env: { EXCHANGE_SECRET: SECRET, ...env },
    ...more,
  });
  const token = (claims) => issuer.token(AUDIENCE, claims);
  const connect = (claims, options) => connectedRaw(t, gateway.url, { token: token(claims), ...options });
  return { issuer, upstream, gateway, admin: gateway.admin, token, connect, keys };
}

const bearer = (token) => ({ authorization: `Bearer ${token}` });
const read = (gateway, token) =>
  exchange(gateway.url, { method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...bearer(token) }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }) });
const tokensUp = (upstream) => upstream.calls.map((request) => request.headers.authorization);
/** The gateway's own session has no token here. */
const neverTheClients = (upstream) => upstream.requests.every(({ headers }) => [undefined, 'Bearer up'].includes(headers.authorization?.replace(/-\d+$/, '')));

test('the server gets the exchanged token with every request, and the issuer is asked once for each token', async (t) => {
  const { issuer, upstream, gateway, token } = await stage(t);
  const [alice, bob] = [token(), token({ sub: 'bob' })];
  for (const each of [alice, alice, bob, alice]) assert.equal((await read(gateway, each)).status, 200);
  assert.deepEqual(tokensUp(upstream), ['Bearer up-1', 'Bearer up-1', 'Bearer up-2', 'Bearer up-1']);
  assert.deepEqual(issuer.exchanges[0], {
    authorization: `Basic ${Buffer.from(`gate:${SECRET}`).toString('base64')}`,
    form: {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: alice,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      audience: 'https://up.example',
      scope: 'up:use up:read',
    },
  });
  assert.equal(issuer.exchanges.length, 2);
  for (const secret of [SECRET, alice.slice(-40), 'up-1']) assert.ok(!gateway.child.stderr.includes(secret), secret);
});

test('requests that come together share one exchange', async (t) => {
  const { issuer, upstream, gateway, token } = await stage(t);
  let go;
  const gate = new Promise((resolve) => (go = resolve));
  const good = issuer.exchange;
  issuer.exchange = async (...args) => (await gate, good(...args));
  const alice = token();
  const waiting = Array.from({ length: 5 }, () => read(gateway, alice));
  await until(() => issuer.exchanges.length > 0, 'the exchange');
  assert.deepEqual(tokensUp(upstream), [], 'nothing is sent before it is there');
  go();
  assert.deepEqual((await Promise.all(waiting)).map((response) => response.status), [200, 200, 200, 200, 200]);
  assert.equal(issuer.exchanges.length, 1);
  assert.deepEqual(tokensUp(upstream), Array(5).fill('Bearer up-1'));
});

test('four workers share what was exchanged: a token, a refusal, and that the server refused a token', async (t) => {
  const { issuer, upstream, gateway, token } = await stage(t, { config: { workers: 4 } });
  // Each request has a connection of its own, and its port chooses the worker.
  const many = async (of) => [...new Set((await Promise.all(Array.from({ length: 24 }, () => read(gateway, of)))).map(({ status }) => status))];
  const alice = token();
  assert.deepEqual([await many(alice), await many(alice)], [[200], [200]]);
  assert.equal(issuer.exchanges.length, 1);
  assert.deepEqual(tokensUp(upstream), Array(48).fill('Bearer up-1'));
  upstream.authorize = ({ headers }) => (headers.authorization === 'Bearer up-1' ? 401 : 0);
  assert.equal((await read(gateway, alice)).status, 401);
  assert.deepEqual(await many(alice), [200], 'no worker sends the refused token again');
  assert.equal(issuer.exchanges.length, 2);
  assert.deepEqual(tokensUp(upstream).slice(49), Array(24).fill('Bearer up-2'));
  issuer.exchange = async () => ({ status: 400, body: { error: 'invalid_grant' } });
  const bob = token({ sub: 'bob' });
  assert.deepEqual([await many(bob), await many(bob)], [[401], [401]]);
  assert.equal(issuer.exchanges.length, 3);
});

test('an exchanged token that has ended is exchanged anew; a reload keeps one that has not', async (t) => {
  const { issuer, upstream, gateway, token } = await stage(t);
  const alice = token();
  const good = issuer.exchange;
  assert.equal((await read(gateway, alice)).status, 200);
  gateway.writeConfig({ rules: [['other', 'deny']] });
  await gateway.logged((line) => line.msg === 'Configuration reloaded');
  assert.equal((await read(gateway, alice)).status, 200);
  assert.equal(issuer.exchanges.length, 1);
  issuer.exchange = async (...args) => {
    const { status, body } = await good(...args);
    return { status, body: { ...body, expires_in: 1 } };
  };
  const bob = token({ sub: 'bob' });
  await read(gateway, bob);
  await until(async () => (await read(gateway, bob), issuer.exchanges.length > 2), 'a second exchange', { every: 200 });
  assert.equal(tokensUp(upstream).at(-1), 'Bearer up-3');
});

const refusals = {
  'the token is refused': [{ status: 400, body: { error: 'invalid_grant', error_description: 'SENSITIVE' } }, 401, 'invalid_token', 'exchange_refused'],
  'the token is not exchanged for that': [{ status: 400, body: { error: 'invalid_target' } }, 403, 'insufficient_scope', 'exchange_forbidden'],
  'it is forbidden': [{ status: 403, body: {} }, 403, 'insufficient_scope', 'exchange_forbidden'],
  'the gateway is refused': [{ status: 401, body: { error: 'invalid_client' } }, 503, undefined, 'exchange_unavailable'],
  'the endpoint fails': [{ status: 500, body: 'SENSITIVE' }, 503, undefined, 'exchange_unavailable'],
  'it answers nonsense': [{ status: 200, body: 'SENSITIVE' }, 503, undefined, 'exchange_unavailable'],
  'it answers without a token': [{ status: 200, body: { token_type: 'Bearer' } }, 503, undefined, 'exchange_unavailable'],
  'it answers another kind of token': [{ status: 200, body: { access_token: 'SENSITIVE', token_type: 'N_A' } }, 503, undefined, 'exchange_unavailable'],
  'it answers a header\'s end': [{ status: 200, body: { access_token: 'a\r\nX: SENSITIVE', token_type: 'Bearer' } }, 503, undefined, 'exchange_unavailable'],
};

test('a failed exchange: nothing reaches the server, the client is told, it is counted and logged', async (t) => {
  const { issuer, upstream, gateway, admin, token } = await stage(t);
  const good = issuer.exchange;
  const counted = {};
  for (const [name, [answer, status, error, reason]] of Object.entries(refusals)) {
    issuer.exchange = async () => answer;
    const refused = await read(gateway, token());
    assert.equal(refused.status, status, name);
    if (error) assert.match(refused.headers['www-authenticate'], new RegExp(`^Bearer resource_metadata="[^"]+", error="${error}", error_description="[^"]+"$`), name);
    else assert.deepEqual([refused.headers['www-authenticate'], refused.headers['retry-after']], [undefined, '5'], name);
    counted[reason] = (counted[reason] ?? 0) + 1;
    assert.ok((await admin.get('/metrics')).text.includes(`thoughtgate_tokens_refused_total{source="up",reason="${reason}"} ${counted[reason]}\n`), name);
    assert.ok(!refused.body.includes('SENSITIVE') && !gateway.child.stderr.includes('SENSITIVE'), name);
  }
  assert.deepEqual(tokensUp(upstream), []);
  issuer.exchange = good;
  assert.equal((await read(gateway, token())).status, 200);
});

test('the endpoint is down: 503, and nothing reaches the server; it is asked again with the next request', async (t) => {
  const port = await freePort();
  const { issuer, upstream, gateway, token } = await stage(t, { exchangeKeys: { token_url: `http://127.0.0.1:${port}/token` } });
  const alice = token();
  assert.equal((await read(gateway, alice)).status, 503);
  assert.deepEqual(tokensUp(upstream), []);
  await gateway.logged((line) => line.msg === 'A token could not be exchanged' && line.status === 0);
  const endpoint = await startIssuer(t, { port });
  assert.equal((await read(gateway, alice)).status, 200);
  assert.equal(endpoint.exchanges.length, 1);
  assert.equal(issuer.exchanges.length, 0);
});

test('a server that refuses the exchanged token makes the next request exchange anew', async (t) => {
  const { issuer, upstream, gateway, token } = await stage(t);
  const alice = token();
  upstream.authorize = ({ headers }) => (headers.authorization === 'Bearer up-1' ? 401 : 0);
  assert.equal((await read(gateway, alice)).status, 401);
  assert.equal((await read(gateway, alice)).status, 200);
  assert.deepEqual(tokensUp(upstream), ['Bearer up-1', 'Bearer up-2']);
  assert.equal(issuer.exchanges.length, 2);
});

const ERAS = {
  'a legacy client and a modern server': [connectedRaw, { upstream: modernServer(), source: { era: 'modern' } }],
  'a modern client and a modern server': [modernConnected, { upstream: modernServer(), source: { era: 'modern' } }],
  'a modern client and a legacy server': [modernConnected, { upstream: { sessions: true }, source: { bridge: 'modern' } }],
  'a legacy client and a legacy server': [connectedRaw, { upstream: { sessions: true } }],
};
async function modernConnected(t, url, options) {
  return modernClient(t, url, { capabilities: {}, ...options });
}

for (const [eras, [connectAs, options]] of Object.entries(ERAS)) {
  test(`a server that refuses the exchanged token is not sent it again: ${eras}`, async (t) => {
    const { issuer, upstream, gateway, token } = await stage(t, options);
    const client = await connectAs(t, gateway.url, { token: token() });
    const call = () => client.send('tools/call', { name: 'read', arguments: {} });
    assert.ok((await call()).message.result);
    const refused = upstream.calls.at(-1).headers.authorization;
    const before = issuer.exchanges.length;
    upstream.authorize = ({ headers, rpc }) => (rpc?.method === 'tools/call' && headers.authorization === refused ? 401 : 0);
    assert.equal((await call()).status, 401);
    const again = await call();
    assert.ok(again.message?.result, `${again.status} ${again.text}`);
    assert.equal(upstream.calls.at(-1).headers.authorization, `Bearer up-${issuer.exchanges.length}`);
    assert.equal(issuer.exchanges.length, before + 1);
    assert.equal(tokensUp(upstream).filter((sent) => sent === refused).length, 2);
  });
}

test('a server that refuses the exchanged token of a call that has become a task is not sent it again', async (t) => {
  const { issuer, upstream, admin, connect } = await stage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '100ms' } }, upstream: { sessions: true } });
  let held;
  upstream.handlers['tools/call'] = (call) => void (held = call);
  const client = await connect({}, { capabilities: {} });
  await client.result('tools/call', { name: 'read', arguments: {} });
  const { tasks: [{ id }] } = await admin.list();
  held.reply.http(401, { 'content-type': 'text/plain' }, 'no');
  await admin.inState(id, 'failed');
  delete upstream.handlers['tools/call'];
  await client.result('tools/call', { name: 'read', arguments: { again: true } });
  assert.deepEqual(tokensUp(upstream), ['Bearer up-1', 'Bearer up-2']);
  assert.equal(issuer.exchanges.length, 2);
});

const approving = { rules: [['delete_*', 'approve']], approval: workflow('10m') };

test('an approved call gets a token that is good when it runs, not the one of its create', async (t) => {
  const { issuer, upstream, admin, connect } = await stage(t, approving);
  const good = issuer.exchange;
  let lifetime = 1;
  issuer.exchange = async (...args) => {
    const { status, body } = await good(...args);
    return { status, body: { ...body, expires_in: lifetime } };
  };
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const before = issuer.exchanges.length;
  const end = Date.now() + 1100;
  await until(() => Date.now() > end, 'the end of the exchanged token');
  lifetime = 300;
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.ok(issuer.exchanges.length > before, 'exchanged at the execution');
  assert.equal(upstream.calls.at(-1).headers.authorization, `Bearer up-${issuer.exchanges.length}`);
  assert.ok(neverTheClients(upstream), 'never the client\'s own');
});

test('an approved call waits while its token cannot be exchanged, and runs with the next one of its owner', async (t) => {
  const { issuer, upstream, admin, connect, token } = await stage(t, approving);
  const good = issuer.exchange;
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const old = client.headers.authorization;
  // The server refuses the exchanged token from now on, and the issuer the client's token.
  upstream.authorize = ({ headers, rpc }) => (rpc?.method === 'tools/call' && headers.authorization === 'Bearer up-1' ? 401 : 0);
  issuer.exchange = async (form, number) => (`Bearer ${form.subject_token}` === old ? { status: 400, body: { error: 'invalid_grant' } } : good(form, number));
  await admin.approve(taskId);
  await until(() => upstream.calls.length === 1, 'the first try');
  await until(async () => /refused the credentials/.test((await admin.task(taskId)).statusMessage), 'its refusal');
  assert.equal((await client.send('tasks/get', { taskId })).status, 401, 'the token is no good any more');
  client.headers.authorization = `Bearer ${token()}`;
  await client.result('tasks/get', { taskId });
  await admin.inState(taskId, 'completed');
  assert.deepEqual(upstream.calls.map((call) => call.headers.authorization), ['Bearer up-1', `Bearer up-${issuer.exchanges.length}`]);
});

test('the issuer is down when the call is approved: the call waits, and runs when the issuer is back', async (t) => {
  const { issuer, upstream, gateway, admin, connect } = await stage(t, approving);
  const good = issuer.exchange;
  issuer.exchange = async (...args) => {
    const { status, body } = await good(...args);
    return { status, body: { ...body, expires_in: 1 } };
  };
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const end = Date.now() + 1100;
  await until(() => Date.now() > end, 'the end of the exchanged token');
  issuer.exchange = async () => ({ status: 503, body: '' });
  await admin.approve(taskId);
  await gateway.logged((line) => line.msg === 'A token could not be exchanged' && line.status === 503);
  assert.equal((await admin.task(taskId)).state, 'approved');
  assert.equal(upstream.calls.length, 0);
  issuer.exchange = good;
  await admin.inState(taskId, 'completed');
  assert.equal(upstream.calls[0].headers.authorization, `Bearer up-${issuer.exchanges.length}`);
});

test('a client\'s token that has ended is not exchanged for an approved call', async (t) => {
  const { issuer, upstream, gateway, admin, connect, token } = await stage(t, { ...approving, auth: { leeway: '0s' } });
  const client = await connect({ exp: now() + 6 });
  const { taskId } = await client.createTask('delete_user');
  const end = Date.now() + 6100;
  await until(() => Date.now() > end, 'the end of the client\'s token');
  const before = issuer.exchanges.length;
  await admin.approve(taskId);
  await gateway.logged((line) => line.msg === 'An approved call waits: the client\'s token cannot be exchanged');
  await until(async () => /cannot be exchanged/.test((await admin.task(taskId)).statusMessage), 'operators to read it');
  assert.equal(issuer.exchanges.length, before);
  assert.equal(upstream.calls.length, 0);
  client.headers.authorization = `Bearer ${token()}`;
  await client.result('tasks/get', { taskId });
  await admin.inState(taskId, 'completed');
});

test('a call that goes on without its client has the exchanged token', async (t) => {
  const { upstream, gateway, connect } = await stage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '100ms' } }, upstream: { sessions: true } });
  let held;
  upstream.handlers['tools/call'] = (call) => void (held = call);
  defer(t, () => held?.reply.response.writableEnded || held?.reply.cut());
  const client = await connect({}, { capabilities: {} });
  await client.result('tools/call', { name: 'read', arguments: {} });
  assert.ok(held, 'the call still runs');
  assert.equal(upstream.calls.at(-1).headers.authorization, 'Bearer up-1');
  assert.ok(neverTheClients(upstream));
  held.reply.result({ content: [{ type: 'text', text: 'done' }] });
  await gateway.logged((line) => line.msg === 'Promoted call ended');
});

test('the gateway\'s own session has its own credentials, and clients\' requests have the exchanged token', async (t) => {
  const { upstream, gateway, token } = await stage(t, { source: { headers: { Authorization: { env: 'OWN' } } }, env: { OWN: 'Bearer service' } });
  await until(() => upstream.requests.some((request) => request.isGatewaysOwn), 'the gateway\'s own session');
  assert.equal((await read(gateway, token())).status, 200);
  const own = upstream.requests.filter((request) => request.isGatewaysOwn);
  assert.deepEqual([...new Set(own.map((request) => request.headers.authorization))], ['Bearer service']);
  assert.deepEqual(tokensUp(upstream), ['Bearer up-1']);
});

test('a public client, its secret in the body, and the other way to write it', async (t) => {
  const { issuer, gateway, token, keys } = await stage(t, { exchangeKeys: { client_secret_env: undefined } });
  assert.equal((await read(gateway, token())).status, 200);
  assert.deepEqual([issuer.exchanges[0].authorization, issuer.exchanges[0].form.client_id], [undefined, 'gate']);
  issuer.metadata = { token_endpoint: `${issuer.url}/token`, token_endpoint_auth_methods_supported: ['client_secret_post'] };
  gateway.writeConfig({ source: { auth: { issuer: issuer.url, audience: AUDIENCE, upstream: { exchange: { ...keys, client_secret_env: 'EXCHANGE_SECRET' } } } } });
  await gateway.restart();
  assert.equal((await read(gateway, token())).status, 200);
  const { authorization, form } = issuer.exchanges.at(-1);
  assert.deepEqual([authorization, form.client_id, form.client_secret], [undefined, 'gate', SECRET]);
});
