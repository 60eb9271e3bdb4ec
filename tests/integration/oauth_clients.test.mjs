// The OAuth flows of the official clients, end to end: gateway, real provider, the SDKs of both generations.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client as NewClient, StreamableHTTPClientTransport as NewTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { workflow } from './lib/gateway.mjs';
import { exchange } from './lib/http.mjs';
import { FormBrowser, forResources, startIssuer } from './lib/issuer.mjs';
import { defer } from './lib/lifetime.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const CALLBACK = 'http://127.0.0.1/callback';
const SDKS = {
  // With a refresh token it answers a missing scope by a refresh, which cannot bring more: it steps up without one alone.
  'SDK 1.x': { Client: OldClient, Transport: OldTransport, finish: (transport, parameters) => transport.finishAuth(parameters.get('code')), stepsUpWith: ['authorization_code'] },
  'SDK 2.x': { Client: NewClient, Transport: NewTransport, finish: (transport, parameters) => transport.finishAuth(parameters), stepsUpWith: ['authorization_code', 'refresh_token'] },
};
const KNOWN = { client_id: 'known', client_secret: 'a secret', redirect_uris: [CALLBACK], application_type: 'native', grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'client_secret_basic' };
const claimsOf = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url'));
const headOf = (token) => JSON.parse(Buffer.from(token.split('.')[0], 'base64url'));

/** A gateway whose source asks for tokens of a real provider that are meant for it alone. */
async function stage(t, { scopes = ['mcp:read'], issuer: issuerOptions } = {}) {
  const all = await scene(t, { upstream: { tools: [tool('read'), tool('delete_user')] }, rules: [['delete_user', 'approve']], approval: workflow('10m'), config: { pseudo_tools: { only: 'all' } } });
  const { gateway, upstream } = all;
  const issuer = await startIssuer(t, forResources(issuerOptions));
  const reload = async (more) => {
    const count = () => gateway.logs.filter((entry) => entry.msg === 'Configuration reloaded').length;
    const before = count();
    gateway.writeConfig({ source: { auth: { issuer: issuer.url, audience: gateway.url, scopes, leeway: '0s', ...more } } });
    gateway.hangUp();
    await gateway.logged(() => count() > before);
  };
  await reload();
  const calls = () => upstream.calls.filter((call) => call.rpc.params.name === 'read').length;
  return { ...all, issuer, reload, calls };
}

/** A program's OAuth state, and the person at its browser. */
class Keeper {
  constructor(client) {
    this.client = client;
    this.browser = new FormBrowser();
    this.saved = []; // every token answer
    this.authorizations = []; // every address that the person was sent to
  }

  get redirectUrl() {
    return CALLBACK;
  }

  get clientMetadata() {
    return { client_name: 'a test', redirect_uris: [CALLBACK], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'none', application_type: 'native' };
  }

  clientInformation() {
    return this.client;
  }

  saveClientInformation(client) {
    this.client = client;
  }

  tokens() {
    return this.saved.at(-1);
  }

  saveTokens(tokens) {
    this.saved.push(tokens);
  }

  redirectToAuthorization(url) {
    this.authorizations.push(url);
  }

  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }

  codeVerifier() {
    return this.verifier;
  }

  /** Signs in where the client was sent to last; the parameters of the return. */
  async consent(login = 'alice') {
    const page = await this.browser.signIn(this.authorizations.at(-1).href, login, (url) => url.startsWith(CALLBACK));
    assert.ok(page.location, `no return from the provider: HTTP ${page.status}\n${page.text.slice(0, 500)}`);
    return new URL(page.location).searchParams;
  }
}

const parameters = (url) => Object.fromEntries(url.searchParams);
const isUnauthorized = (error) => error.constructor.name === 'UnauthorizedError' || /Unauthorized/.test(error.message);

for (const [name, sdk] of Object.entries(SDKS)) {
  /** A client that has signed in and is connected. */
  async function connected(t, { gateway }, keeper, login) {
    const open = () => new sdk.Transport(new URL(gateway.url), { authProvider: keeper });
    const first = open();
    const before = new sdk.Client({ name: 'oauth', version: '1' });
    await assert.rejects(before.connect(first), isUnauthorized);
    await sdk.finish(first, await keeper.consent(login));
    await before.close();
    const transport = open();
    const client = new sdk.Client({ name: 'oauth', version: '1' });
    defer(t, () => client.close());
    await client.connect(transport);
    return { client, transport };
  }

  test(`${name}: from the gateway's 401 to a call: discovery, registration, PKCE, a token for this resource alone`, async (t) => {
    const all = await stage(t, { scopes: ['mcp:read', 'mcp:write'] });
    const { gateway, issuer, upstream, calls } = all;
    const keeper = new Keeper();
    const { client } = await connected(t, all, keeper);
    assert.ok(issuer.requests.includes('POST /reg'), 'registered by itself');
    const sent = parameters(keeper.authorizations[0]);
    assert.deepEqual([sent.resource, sent.code_challenge_method, sent.response_type, sent.client_id], [gateway.url, 'S256', 'code', keeper.client.client_id]);
    assert.ok('mcp:read mcp:write'.split(' ').every((scope) => sent.scope.split(' ').includes(scope)), sent.scope);
    const token = keeper.saved[0].access_token;
    const { iss, aud, sub, scope } = claimsOf(token);
    assert.deepEqual([iss, aud, sub, scope], [issuer.url, gateway.url, 'alice', 'mcp:read mcp:write']);
    assert.equal(headOf(token).typ, 'at+jwt');
    assert.ok((await client.listTools()).tools.some((each) => each.name === 'read'));
    assert.equal((await client.callTool({ name: 'read', arguments: {} })).isError ?? false, false);
    assert.equal(calls(), 1);
    assert.ok(upstream.requests.every((request) => request.headers.authorization === undefined), 'the server gets no token');
    assert.ok(!gateway.child.stderr.includes(token));
  });

  test(`${name}: a client that the provider knows; a token that is over is refreshed, and keeps its tasks`, async (t) => {
    const all = await stage(t, { issuer: { ttl: 4, registration: false, clients: [KNOWN] } });
    const { issuer, admin, calls } = all;
    const keeper = new Keeper({ client_id: 'known', client_secret: 'a secret' });
    const { client } = await connected(t, all, keeper);
    assert.ok(!issuer.requests.includes('POST /reg'));
    const waiting = client.callTool({ name: 'execute_tool', arguments: { server: 'up', tool: 'delete_user', args: {} } });
    const { id } = await admin.pending((task) => task.tool === 'delete_user');
    const { exp } = claimsOf(keeper.saved[0].access_token);
    await until(() => Date.now() / 1000 > exp, 'the end of the first token', { deadline: 15_000 });
    await client.callTool({ name: 'read', arguments: {} });
    assert.equal(calls(), 1);
    assert.equal(keeper.authorizations.length, 1, 'nobody had to sign in again');
    assert.ok(keeper.saved.length >= 2);
    const [before, after] = [keeper.saved[0], keeper.saved.at(-1)].map(({ access_token: token }) => token);
    assert.notEqual(after, before);
    assert.deepEqual([claimsOf(after).sub, claimsOf(after).aud], [claimsOf(before).sub, claimsOf(before).aud]);
    await admin.approve(id);
    assert.equal((await waiting).isError ?? false, false);
  });

  test(`${name}: a scope that is missing leads to one sign-in with all scopes`, async (t) => {
    const all = await stage(t, { issuer: { clients: [{ ...KNOWN, grant_types: sdk.stepsUpWith }] } });
    const { gateway, reload, calls } = all;
    const keeper = new Keeper({ client_id: 'known', client_secret: 'a secret' });
    const { client, transport } = await connected(t, all, keeper);
    await client.callTool({ name: 'read', arguments: {} });
    assert.equal(claimsOf(keeper.saved[0].access_token).scope, 'mcp:read');
    await reload({ scopes: ['mcp:read', 'mcp:write'] });
    const refused = await exchange(gateway.url, { method: 'POST', headers: { authorization: `Bearer ${keeper.saved[0].access_token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' }, body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' });
    assert.equal(refused.status, 403);
    assert.match(refused.headers['www-authenticate'], /error="insufficient_scope".*scope="mcp:read mcp:write"|scope="mcp:read mcp:write".*error="insufficient_scope"/);
    const before = keeper.authorizations.length;
    await assert.rejects(client.callTool({ name: 'read', arguments: {} }), isUnauthorized);
    assert.equal(keeper.authorizations.length, before + 1);
    assert.deepEqual(new Set(parameters(keeper.authorizations.at(-1)).scope.split(' ').filter((scope) => scope.startsWith('mcp:'))), new Set(['mcp:read', 'mcp:write']));
    await sdk.finish(transport, await keeper.consent());
    await client.callTool({ name: 'read', arguments: {} });
    assert.equal(calls(), 2);
    assert.equal(claimsOf(keeper.saved.at(-1).access_token).scope, 'mcp:read mcp:write');
  });

  test(`${name}: the provider takes other keys: refreshed tokens are good at once, forged ones are not`, async (t) => {
    const all = await stage(t);
    const { gateway, issuer, calls } = all;
    const keeper = new Keeper();
    const { client } = await connected(t, all, keeper);
    const old = keeper.saved[0];
    assert.equal(headOf(old.access_token).kid, 'first');
    await issuer.rotate('third');
    keeper.saveTokens({ ...old, access_token: `${old.access_token.slice(0, -8)}AAAAAAAA` });
    await client.callTool({ name: 'read', arguments: {} });
    assert.equal(calls(), 1);
    assert.equal(headOf(keeper.saved.at(-1).access_token).kid, 'third');
    assert.equal(keeper.authorizations.length, 1);
    assert.ok((await gateway.admin.metrics())['thoughtgate_tokens_refused_total{source="up",reason="signature"}'] >= 1);
  });
}

const INITIALIZE = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'service', version: '1' } } });

test('a token for another resource of the same provider is refused, and leads nowhere', async (t) => {
  const { gateway, issuer, upstream } = await stage(t, { issuer: { registration: false, clients: [{ client_id: 'service', client_secret: 'a secret', redirect_uris: [], response_types: [], grant_types: ['client_credentials'] }] } });

  const ask = async (resource) => {
    const form = new URLSearchParams({ grant_type: 'client_credentials', resource, scope: 'mcp:read' });
    const answer = await fetch(`${issuer.url}/token`, { method: 'POST', body: form, headers: { authorization: `Basic ${btoa('service:a%20secret')}` } });
    return (await answer.json()).access_token;
  };
  const status = async (token) => (await exchange(gateway.url, { method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' }, body: INITIALIZE })).status;
  const forwarded = () => upstream.requests.filter((request) => request.rpc?.id === 7).length;
  const [right, wrong] = [await ask(gateway.url), await ask(`${gateway.url}/other`)];
  assert.deepEqual([claimsOf(right).aud, claimsOf(wrong).aud], [gateway.url, `${gateway.url}/other`]);
  assert.deepEqual([await status(wrong), forwarded()], [401, 0]);
  assert.deepEqual([await status(right), forwarded()], [200, 1]);
});
