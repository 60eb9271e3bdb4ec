// RFC 8693 with a real provider (npm oidc-provider, to which the grant is added as its documentation shows): the gateway
// exchanges a person's token for one that the server itself verifies.
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { test } from 'node:test';
import { exchange } from './lib/http.mjs';
import { forResources, startIssuer, tokensOf } from './lib/issuer.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const SERVER = 'https://up.example/mcp';
const SECRET = 'a secret of/the + gateway';
const AGENT = { client_id: 'agent', client_secret: 'of the agent', redirect_uris: ['http://127.0.0.1:1/back'] };
const GATE = { client_id: 'gate', client_secret: SECRET, grant_types: [GRANT], redirect_uris: [], response_types: [] };

const part = (token, index) => JSON.parse(Buffer.from(token.split('.')[index], 'base64url'));

/** The subject of a good token of this issuer for `audience`; null when the token is bad. */
async function subjectOf(issuer, token, audience) {
  const { keys } = await (await fetch(`${issuer.url}/jwks`)).json();
  const jwk = keys.find((key) => key.kid === part(token, 0).kid);
  const [head, claims, signature] = token.split('.');
  const isSigned = jwk && verify('sha256', Buffer.from(`${head}.${claims}`), { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'));
  const { iss, aud, exp, sub } = part(token, 1);
  return isSigned && iss === issuer.url && aud === audience && exp > Date.now() / 1000 ? sub : null;
}

/** The grant. `refused` has the subjects whose tokens are not exchanged any more. */
function addGrant(issuer, audience, refused) {
  const { provider } = issuer;
  const parameters = ['audience', 'requested_token_type', 'resource', 'scope', 'subject_token', 'subject_token_type', 'actor_token', 'actor_token_type'];
  const refuse = (ctx, error) => ((ctx.status = 400), (ctx.body = { error }));
  provider.registerGrantType(
    GRANT,
    async (ctx) => {
      const { client, params } = ctx.oidc;
      issuer.exchanges.push({ ...params });
      const sub = params.subject_token_type === ACCESS_TOKEN && (await subjectOf(issuer, params.subject_token, audience));
      if (params.audience !== SERVER) return refuse(ctx, 'invalid_target');
      if (!sub || refused.has(sub)) return refuse(ctx, 'invalid_grant');
      const token = new provider.AccessToken({ accountId: sub, client, scope: params.scope });
      token.resourceServer = new provider.ResourceServer(SERVER, { scope: 'up:use', accessTokenFormat: 'jwt', accessTokenTTL: 60, jwt: { sign: { alg: 'ES256' } } });
      ctx.body = { access_token: await token.save(), issued_token_type: ACCESS_TOKEN, token_type: 'Bearer', expires_in: 60, scope: params.scope };
    },
    parameters,
  );
}

async function stage(t, exchangeKeys = {}) {
  const all = await scene(t, { upstream: { sessions: false, tools: [tool('read')] }, env: { EXCHANGE_SECRET: SECRET } });
  const { gateway, upstream } = all;
  const resources = forResources({ scope: 'mcp:use', clients: [AGENT, GATE] });
  const issuer = await startIssuer(t, resources);
  const refused = new Set();
  issuer.exchanges = [];
  addGrant(issuer, gateway.url, refused);
  const keys = { token_url: `${issuer.url}/token`, client_id: 'gate', client_secret_env: 'EXCHANGE_SECRET', audience: SERVER, scope: 'up:use', ...exchangeKeys };
  gateway.writeConfig({ source: { auth: { issuer: issuer.url, audience: gateway.url, scopes: ['mcp:use'], upstream: 'exchange', exchange: keys } } });
  await gateway.restart();
  const tokenOf = async (login) => (await tokensOf(issuer, AGENT, login, { scope: 'openid mcp:use', resource: gateway.url })).access_token;
  const read = (token) =>
    exchange(gateway.url, { method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: `Bearer ${token}` }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }) });
  const tokensUp = () => upstream.calls.map((request) => request.headers.authorization.replace(/^Bearer /, ''));
  return { ...all, issuer, refused, tokenOf, read, tokensUp };
}

test('the server gets a token of its own for the same person, which it can verify', async (t) => {
  const { gateway, issuer, tokenOf, read, tokensUp } = await stage(t);
  const [alice, bob] = [await tokenOf('alice'), await tokenOf('bob')];
  for (const token of [alice, bob, alice]) assert.equal((await read(token)).status, 200);
  const up = tokensUp();
  assert.deepEqual(await Promise.all(up.map((token) => subjectOf(issuer, token, SERVER))), ['alice', 'bob', 'alice']);
  assert.equal(up[0], up[2], 'exchanged once');
  assert.equal(issuer.exchanges.length, 2);
  assert.deepEqual([part(up[0], 1).client_id, part(up[0], 1).scope], ['gate', 'up:use']);
  assert.ok(up.every((token) => token !== alice && token !== bob));
  assert.equal(issuer.error, undefined);
  for (const secret of [SECRET, alice.slice(-40), up[0].slice(-40)]) assert.ok(!gateway.child.stderr.includes(secret), 'no secret in the log');
});

test('a person whom the issuer refuses: 401 at once for a while, without asking it each time', async (t) => {
  const { upstream, issuer, refused, tokenOf, read } = await stage(t);
  const [alice, bob] = [await tokenOf('alice'), await tokenOf('bob')];
  refused.add('alice');
  for (let i = 0; i < 5; i++) {
    const answer = await read(alice);
    assert.equal(answer.status, 401);
    assert.match(answer.headers['www-authenticate'], /error="invalid_token"/);
  }
  assert.equal(issuer.exchanges.length, 1, 'asked once');
  assert.equal((await read(bob)).status, 200, 'another token is not concerned');
  assert.equal(upstream.calls.length, 1);
  refused.delete('alice');
  await until(async () => (await read(alice)).status === 200, 'the refusal to be forgotten', { every: 500 });
  assert.equal(issuer.exchanges.length, 3);
});

test('a server that the issuer does not know, and a gateway that it does not know', async (t) => {
  const other = await stage(t, { audience: 'https://other.example' });
  const forbidden = await other.read(await other.tokenOf('alice'));
  assert.equal(forbidden.status, 403);
  assert.match(forbidden.headers['www-authenticate'], /error="insufficient_scope"/);
  const stranger = await stage(t, { client_id: 'agent' });
  const down = await stranger.read(await stranger.tokenOf('alice'));
  assert.equal(down.status, 503);
  assert.equal(other.upstream.calls.length + stranger.upstream.calls.length, 0);
});
