// Bad tokens at the operators' side: each kind refused, said in the standard's words, counted, and logged without itself.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import http from 'node:http';
import { describe, test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { workflow } from './lib/gateway.mjs';
import { exchange } from './lib/http.mjs';
import { FormBrowser } from './lib/issuer.mjs';
import { defer } from './lib/lifetime.mjs';
import { scene } from './lib/scene.mjs';
import { startIssuer } from './lib/token_issuer.mjs';
import { tool } from './lib/upstream.mjs';

const RESOURCE = 'https://gate.example/mcp';
const seconds = () => Math.floor(Date.now() / 1000);
const strangersKey = () => crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

/** An issuer whose every token the test writes, for operators and agents alike; and its token endpoint. */
async function stage(t) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { sessions: false, tools: [tool('delete_user')] } });
  const { gateway } = all;
  const issuer = await startIssuer(t);
  const tokens = { answer: null, asked: 0 };
  const endpoint = http.createServer((request, response) => {
    tokens.asked += 1;
    request.resume();
    const [status, body, headers] = tokens.answer;
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  });
  await new Promise((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  defer(t, () => (endpoint.closeAllConnections(), endpoint.close()));
  const url = `http://127.0.0.1:${endpoint.address().port}`;
  issuer.metadata = { authorization_endpoint: `${issuer.url}/auth`, token_endpoint: `${url}/token`, authorization_response_iss_parameter_supported: true };
  const count = () => gateway.logs.filter((entry) => entry.msg === 'Configuration reloaded').length;
  const before = count();
  gateway.writeConfig({
    source: { auth: { issuer: issuer.url, audience: RESOURCE } },
    config: { admin: { public_url: gateway.adminUrl, oidc: { issuer: issuer.url, client_id: 'gateway', roles: { approver: ['dba'] } } } },
  });
  gateway.hangUp();
  await gateway.logged(() => count() > before);
  const claims = (more) => issuer.claims('gateway', { groups: ['dba'], ...more });
  return { ...all, issuer, tokens, claims, elsewhere: url };
}

/** reason of the log and the metric => how such a token is made. Additional claims do no harm. */
const BAD = {
  'alg none': ['algorithm', ({ issuer, claims }) => issuer.sign(claims(), { alg: 'none' }).replace(/[^.]*$/, '')],
  'HMAC with the public key': ['algorithm', ({ issuer, claims }) => {
    const input = issuer.sign(claims(), { alg: 'HS256' }).replace(/\.[^.]*$/, '');
    return `${input}.${crypto.createHmac('sha256', JSON.stringify(issuer.published[0])).update(input).digest('base64url')}`;
  }],
  'crit': ['critical', ({ issuer, claims }) => issuer.sign(claims(), { crit: ['exp'] })],
  'no kid': ['key_missing', ({ issuer, claims }) => issuer.sign(claims(), { kid: undefined })],
  'an unknown kid': ['key_unknown', ({ issuer, claims }) => issuer.sign(claims(), { kid: 'who' })],
  'a foreign key': ['signature', ({ issuer, claims }) => issuer.sign(claims(), {}, strangersKey())],
  'another type': ['type', ({ issuer, claims }) => issuer.sign(claims(), { typ: 'logout+jwt' })],
  'another issuer': ['issuer', ({ issuer, claims }) => issuer.sign(claims({ iss: 'https://other.example' }))],
  'the issuer with a slash': ['issuer', ({ issuer, claims }) => issuer.sign(claims({ iss: `${issuer.url}/` }))],
  'no issuer': ['issuer', ({ issuer, claims }) => issuer.sign(claims({ iss: undefined }))],
  'a token of agents': ['audience', ({ issuer }) => issuer.token(RESOURCE, { groups: ['dba'] })],
  'no audience': ['audience', ({ issuer, claims }) => issuer.sign(claims({ aud: undefined }))],
  'several audiences without azp': ['client', ({ issuer, claims }) => issuer.sign(claims({ aud: ['gateway', RESOURCE] }))],
  'azp of another client': ['client', ({ issuer, claims }) => issuer.sign(claims({ azp: 'agent' }))],
  'client_id of another client': ['client', ({ issuer, claims }) => issuer.sign(claims({ client_id: 'agent' }))],
  'no subject': ['subject', ({ issuer, claims }) => issuer.sign(claims({ sub: undefined }))],
  'an empty subject': ['subject', ({ issuer, claims }) => issuer.sign(claims({ sub: '' }))],
  'no exp': ['no_expiry', ({ issuer, claims }) => issuer.sign(claims({ exp: undefined }))],
  'expired': ['expired', ({ issuer, claims }) => issuer.sign(claims({ exp: seconds() - 61 }))],
  'not yet valid': ['not_yet', ({ issuer, claims }) => issuer.sign(claims({ nbf: seconds() + 120 }))],
  'a claim twice': ['claims', ({ issuer, claims }) => issuer.sign(JSON.stringify(claims()).replace('{', '{"sub":"mallory",'))],
  'a JWE': ['encrypted', () => 'e30.e30.e30.e30.e30'],
  'no JWT': ['malformed', () => 'two.parts'],
};

test('each bad token at the operators’ port is refused, told in the standard’s words, counted, and logged without itself', async (t) => {
  const on = await stage(t);
  const { gateway, admin, issuer, claims } = on;
  const counted = async (reason) => sample(await admin.metrics(), 'thoughtgate_operators_refused_total', { via: 'oidc', reason }) ?? 0;
  for (const [name, [reason, make]] of Object.entries(BAD)) {
    const token = make(on);
    const before = await counted(reason);
    const refused = await admin.as(token).get('/api/v1/whoami');
    assert.equal(refused.status, 401, name);
    assert.equal(refused.headers['www-authenticate'], 'Bearer realm="taskgate", error="invalid_token"', name);
    assert.equal(await counted(reason), before + 1, `${name}: ${reason}`);
    await gateway.logged((entry) => entry.msg === 'Operator refused' && entry.via === 'oidc' && entry.reason === reason);
    if (token.length > 20) assert.ok(!gateway.child.stderr.includes(token.slice(-40)), name);
  }
  const large = issuer.sign(claims({ filler: 'x'.repeat(1024 * 1024) }));
  const answer = await admin.as(large).get('/api/v1/whoami').catch((error) => error);
  assert.ok(answer instanceof Error || [400, 401, 431].includes(answer.status), `a megabyte: ${answer.status}`);
  const bare = await admin.as(undefined).get('/api/v1/whoami');
  assert.deepEqual([bare.status, bare.headers['www-authenticate']], [401, 'Bearer realm="taskgate"'], 'RFC 6750 §3.1: no error without a token');
  for (const good of [claims(), claims({ azp: 'gateway' }), claims({ aud: ['gateway', RESOURCE], azp: 'gateway' })]) {
    const found = await admin.as(issuer.sign(good)).get('/api/v1/whoami');
    assert.deepEqual([found.status, found.json?.person], [200, 'alice'], 'a good one is good all the while');
  }
});

test('a token of the operators’ client is none at the agents’ port', async (t) => {
  const { gateway, issuer, claims, upstream } = await stage(t);
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } } });
  const ask = (token) => exchange(gateway.url, { method: 'POST', body, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' } });
  const forwarded = () => upstream.requests.filter((request) => request.rpc?.id === 7).length;
  const refused = await ask(issuer.sign(claims({ azp: 'gateway' }), { typ: 'JWT' }));
  assert.equal(refused.status, 401);
  assert.match(refused.headers['www-authenticate'], /error="invalid_token"/);
  assert.equal(forwarded(), 0);
  assert.deepEqual([(await ask(issuer.token(RESOURCE))).status, forwarded()], [200, 1]);
});

describe('answers of the token endpoint at a sign-in', () => {
  /** From /login to the return, with what `answer` makes of the sign-in's nonce. */
  async function signIn({ gateway, issuer, tokens }, answer) {
    const browser = new FormBrowser();
    const begun = await browser.request(`${gateway.adminUrl}/login`);
    const { state, nonce } = Object.fromEntries(new URL(begun.location).searchParams);
    tokens.answer = answer(nonce);
    const back = new URL(`${gateway.adminUrl}/login/callback`);
    back.search = new URLSearchParams({ state, code: 'a-code', iss: issuer.url });
    const page = await browser.request(back.href);
    return { status: page.status, text: page.text, cookie: browser.cookies.get('127.0.0.1 taskgate') };
  }

  const ROWS = {
    'the nonce of another sign-in': ['nonce', ({ issuer, claims }) => issuer.sign(claims({ nonce: 'another' }), { typ: 'JWT' })],
    'no nonce': ['nonce', ({ issuer, claims }) => issuer.sign(claims(), { typ: 'JWT' })],
    'an access token': ['type', ({ issuer, claims }, nonce) => issuer.sign(claims({ nonce }))],
    'another audience': ['audience', ({ issuer, claims }, nonce) => issuer.sign(claims({ nonce, aud: 'agent' }), { typ: 'JWT' })],
    'several audiences without azp': ['client', ({ issuer, claims }, nonce) => issuer.sign(claims({ nonce, aud: ['gateway', 'agent'] }), { typ: 'JWT' })],
    'azp of another client': ['client', ({ issuer, claims }, nonce) => issuer.sign(claims({ nonce, azp: 'agent' }), { typ: 'JWT' })],
    'another issuer': ['issuer', ({ issuer, claims }, nonce) => issuer.sign(claims({ nonce, iss: 'https://evil.example' }), { typ: 'JWT' })],
    'unsigned': ['algorithm', ({ issuer, claims }, nonce) => issuer.sign(claims({ nonce }), { typ: 'JWT', alg: 'none' }).replace(/[^.]*$/, '')],
    'a foreign key': ['signature', ({ issuer, claims }, nonce) => issuer.sign(claims({ nonce }), { typ: 'JWT' }, strangersKey())],
    'expired': ['expired', ({ issuer, claims }, nonce) => issuer.sign(claims({ nonce, exp: seconds() - 61 }), { typ: 'JWT' })],
  };

  test('an ID token that is not of this sign-in signs nobody in', async (t) => {
    const on = await stage(t);
    const { admin, gateway } = on;
    const good = (nonce) => [200, { id_token: on.issuer.sign(on.claims({ nonce }), { typ: 'JWT' }), token_type: 'Bearer', access_token: 'x' }];
    assert.match((await signIn(on, good)).cookie, /^[0-9a-f]{64}$/);
    let refused = 0;
    for (const [name, [reason, make]] of Object.entries(ROWS)) {
      const page = await signIn(on, (nonce) => [200, { id_token: make(on, nonce), token_type: 'Bearer', access_token: 'x' }]);
      assert.deepEqual([page.status, page.cookie], [403, undefined], name);
      assert.match(page.text, /What the identity provider says of you cannot be trusted/, name);
      refused += 1;
      assert.equal(sample(await admin.metrics(), 'thoughtgate_sign_ins_total', { outcome: 'untrusted' }), refused, name);
      assert.ok(reason);
    }
    assert.equal(sample(await admin.metrics(), 'thoughtgate_sign_ins_total', { outcome: 'success' }), 1);
    const said = await gateway.logged((entry) => entry.msg === 'Sign-in refused' && entry.reason === 'untrusted');
    assert.equal(said.detail, 'nonce');
  });

  test('a token endpoint that redirects, or gives none, signs nobody in, and the code goes nowhere else', async (t) => {
    const on = await stage(t);
    const { tokens, elsewhere } = on;
    const rows = [
      [400, () => [400, { error: 'invalid_grant' }]], // as for a code that is used up, which the gateway cannot tell apart
      [403, () => [200, { access_token: 'x' }]],
      [403, () => [200, { id_token: 7 }]],
      [503, () => [500, {}]],
      [403, () => [302, {}, { location: `${elsewhere}/next` }]],
    ];
    for (const [status, answer] of rows) {
      const asked = tokens.asked;
      const page = await signIn(on, answer);
      assert.deepEqual([page.status, page.cookie, tokens.asked], [status, undefined, asked + 1], String(answer));
    }
  });
});
