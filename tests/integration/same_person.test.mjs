// One person with two subjects, one for agents and one for operators: the verified address tells, at two real providers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { FormBrowser, forResources, startIssuer, tokensOf } from './lib/issuer.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const SECRET = 'a secret of the client';
const AGENT = { client_id: 'agent', client_secret: 'of the agent', redirect_uris: ['http://127.0.0.1:1/back'] };
/** The subjects of the agents' provider. */
const CALLERS = {
  'emp-1': { email: 'Alice@Example.org', email_verified: true },
  'emp-2': { email: 'alice@example.org', email_verified: false },
  'emp-3': { email: 'alice@example.org' },
  'emp-4': { email: 'carol@example.org', email_verified: true },
  'emp-5': {},
};
const OPERATORS = { dora: { email: 'dora@example.org', email_verified: false, name: 'Dora', groups: ['dba'] }, bob: { email: 'bob@example.org', email_verified: true, groups: ['dba'] } };

/** Agents show tokens of one provider, and operators sign in at another. */
async function stage(t, { admin = {}, operators = {} } = {}) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] }, env: { OIDC_SECRET: SECRET, TOKEN_OF_ALICE: 'token-of-alice' } });
  const { gateway } = all;
  const agents = forResources({ scope: 'mcp:use', clients: [AGENT] });
  const claims = (_, { accountId }) => CALLERS[accountId];
  const agentIssuer = await startIssuer(t, { ...agents, people: CALLERS, configuration: { ...agents.configuration, extraTokenClaims: claims } });
  const issuer = await startIssuer(t, { people: OPERATORS, clients: [{ client_id: 'gateway', client_secret: SECRET, redirect_uris: [`${gateway.adminUrl}/login/callback`] }], ...operators });
  const oidc = { issuer: issuer.url, client_id: 'gateway', client_secret_env: 'OIDC_SECRET', roles: { approver: ['dba'] } };
  const count = () => gateway.logs.filter((entry) => entry.msg === 'Configuration reloaded').length;
  const reload = async (more) => {
    const before = count();
    gateway.writeConfig({
      source: { auth: { issuer: agentIssuer.url, audience: gateway.url, scopes: ['mcp:use'] } },
      config: { admin: { public_url: gateway.adminUrl, oidc, ...more } },
    });
    gateway.hangUp();
    await gateway.logged(() => count() > before);
  };
  await reload(admin);
  const callAs = async (subject) => {
    const { access_token: token } = await tokensOf(agentIssuer, AGENT, subject, { scope: 'openid mcp:use', resource: gateway.url });
    const client = await all.connect({ token });
    return (await client.createTask('delete_user')).taskId;
  };
  const signIn = async (login) => {
    const browser = new FormBrowser();
    await browser.signIn(`${gateway.adminUrl}/login`, login);
    const headers = { 'content-type': 'application/json', 'x-taskgate': '1', origin: gateway.adminUrl, cookie: browser.header(gateway.adminUrl) };
    return (verb, id, body = {}) => fetch(`${gateway.adminUrl}/api/v1/${id ? `tasks/${id}/` : ''}${verb}`, { method: 'POST', headers, body: JSON.stringify(body) });
  };
  return { ...all, callAs, signIn, reload, oidc, agentIssuer };
}

async function isOwn(answer) {
  const text = await answer.text();
  assert.equal(answer.status, 403, text);
  assert.match(JSON.parse(text).error.message, /that made this call may not approve it/);
}

test('a verified address makes two subjects one person, who may reject and not approve', async (t) => {
  const { callAs, signIn, gateway } = await stage(t);
  const alice = await signIn('alice');
  const id = await callAs('emp-1');
  await isOwn(await alice('approve', id));
  await gateway.restart();
  await isOwn(await alice('approve', id)); // the store has kept it
  assert.equal((await (await signIn('bob'))('approve', id)).status, 200, 'somebody else may');
  assert.equal((await alice('reject', await callAs('emp-1'))).status, 200, 'one may reject what is one\'s own');
});

test('an address that is not verified on both sides tells nothing', async (t) => {
  const { callAs, signIn } = await stage(t);
  const [alice, dora] = [await signIn('alice'), await signIn('dora')];
  for (const subject of ['emp-2', 'emp-3', 'emp-4', 'emp-5']) assert.equal((await alice('approve', await callAs(subject))).status, 200, subject);
  const ofDora = Object.assign(CALLERS, { 'emp-6': { email: 'dora@example.org', email_verified: true } }) && (await callAs('emp-6'));
  assert.equal((await dora('approve', ofDora)).status, 200, 'the operators\' provider has not verified it');
});

test('userinfo verifies an address that the ID token only names', async (t) => {
  const claims = { openid: ['sub', 'email'], email: ['email_verified'], profile: ['name', 'groups'] };
  const { callAs, signIn } = await stage(t, { operators: { configuration: { claims, conformIdTokenClaims: true } } });
  const alice = await signIn('alice');
  await isOwn(await alice('approve', await callAs('emp-1')));
});

test('the address of an entry counts, whatever shows the person', async (t) => {
  const people = [{ name: 'alice', email: 'alice@EXAMPLE.org' }];
  const tokens = [{ name: 'cli', token_env: 'TOKEN_OF_ALICE', roles: ['approver', 'caller'], person: 'alice' }];
  const { callAs, signIn, admin, reload } = await stage(t, { admin: { people, tokens } });
  const id = await callAs('emp-1');
  const refused = await admin.as('token-of-alice').decide('approve', id);
  assert.equal(refused.status, 403, refused.text);
  assert.match(refused.json.error.message, /the person that made this call/);
  // Their own call with a token of the gateway, and then another subject with the same address.
  const called = await admin.as('token-of-alice').post('/api/v1/calls', { tool: 'delete_user', arguments: {} });
  assert.equal(called.status, 201, called.text);
  await reload({ people: [{ name: 'alice', email: 'alice@example.org', subject: 'another' }], tokens });
  await isOwn(await (await signIn('alice'))('approve', called.json.id));
  assert.equal((await admin.decide('approve', id)).status, 200);
  await reload({ people: [{ name: 'alice', email: 'carol@example.org', subject: 'alice' }] });
  await isOwn(await (await signIn('alice'))('approve', await callAs('emp-4'))); // the entry's, beside what the provider says
});

test('an entry with a subject and an address is one person: both are theirs', async (t) => {
  const tokens = [{ name: 'cli', token_env: 'TOKEN_OF_ALICE', roles: ['approver', 'caller'], person: 'ally' }];
  const { callAs, signIn, admin, reload, agentIssuer } = await stage(t, { admin: { tokens: [], people: [] } });
  const id = await callAs('emp-5'); // its tokens have no address
  await reload({ people: [{ name: 'ally', subject: 'emp-5', issuer: agentIssuer.url, email: 'alice@example.org' }], tokens });
  const alice = await signIn('alice'); // another subject, at another provider, with that address
  await isOwn(await alice('approve', id));
  const called = await admin.as('token-of-alice').post('/api/v1/calls', { tool: 'delete_user', arguments: {} });
  await isOwn(await alice('approve', called.json.id));
  assert.equal((await (await signIn('bob'))('approve', id)).status, 200, 'somebody else may');
});

test('a call at the control plane is its maker’s when a reload says who the subject is', async (t) => {
  const roles = { approver: ['dba'], caller: ['dba'] };
  const { signIn, reload, oidc } = await stage(t, { admin: {} });
  await reload({ oidc: { ...oidc, roles } });
  const alice = await signIn('alice');
  const called = await alice('calls', null, { tool: 'delete_user', arguments: {} });
  assert.equal(called.status, 201);
  const { id } = await called.json();
  await reload({ oidc: { ...oidc, roles }, people: [{ name: 'ally', subject: 'alice' }] });
  await isOwn(await (await signIn('alice'))('approve', id));
});
