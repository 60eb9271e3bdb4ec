// The keys of admin.oidc, each seen from outside: what is asked for, which claims count, which roles they give, and for how long.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { open } from './lib/http.mjs';
import { FormBrowser, startIssuer } from './lib/issuer.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const SECRET = 'a secret of the client';
const PEOPLE = {
  audrey: { nick: 'Audrey A.', realm: { roles: ['auditors'] } },
  dora: { nick: 'Dora D.', realm: { roles: ['dba', 'watchers'] } },
  wanda: { nick: 'Wanda W.', realm: { roles: ['watchers'] } },
};
const HTTPS = 'https://gate.example';

/** A gateway whose sign-in has `oidc` laid over the usual; `as(login)` is that person's requests by cookie. */
async function stage(t, oidc = {}, { publicUrl } = {}) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] }, env: { OIDC_SECRET: SECRET } });
  const { gateway } = all;
  const home = publicUrl ?? gateway.adminUrl;
  const issuer = await startIssuer(t, {
    people: PEOPLE,
    clients: [{ client_id: 'gateway', client_secret: SECRET, redirect_uris: [`${home}/login/callback`] }],
    configuration: { scopes: ['openid', 'realm'], claims: { openid: ['sub'], profile: ['nick', 'name', 'groups'], email: ['email', 'email_verified'], realm: ['realm'] } },
  });
  const settings = { issuer: issuer.url, client_id: 'gateway', client_secret_env: 'OIDC_SECRET', roles: { approver: ['dba'] }, ...oidc };
  gateway.writeConfig({ config: { admin: { public_url: home, oidc: settings } } });
  gateway.hangUp();
  await gateway.logged(/^Configuration reloaded$/);
  const as = async (login) => {
    const browser = new FormBrowser();
    await browser.signIn(`${gateway.adminUrl}/login`, login);
    const headers = { 'content-type': 'application/json', 'x-taskgate': '1', origin: gateway.adminUrl, cookie: browser.header(gateway.adminUrl) };
    return async (method, path, body) => {
      const answer = await fetch(gateway.adminUrl + path, { method, headers, body });
      return { status: answer.status, json: await answer.json().catch(() => undefined), headers };
    };
  };
  return { ...all, issuer, as };
}

const OTHER_CLAIMS = { scopes: ['openid', 'realm', 'profile'], groups_claim: 'realm.roles', name_claim: 'nick', roles: { approver: ['dba'], viewer: ['watchers'], auditor: ['auditors'] } };

test('scopes, groups_claim, name_claim and roles are those of the file; each role may what it says', async (t) => {
  const { gateway, as, connect } = await stage(t, OTHER_CLAIMS);
  const begun = await new FormBrowser().request(`${gateway.adminUrl}/login`);
  assert.equal(new URL(begun.location).searchParams.get('scope'), 'openid realm profile');
  const { taskId } = await (await connect()).createTask('delete_user');
  const rows = {
    audrey: ['Audrey A.', ['auditors'], ['auditor'], { list: 200, audit: 200, approve: 403 }],
    wanda: ['Wanda W.', ['watchers'], ['viewer'], { list: 200, audit: 403, approve: 403 }],
    dora: ['Dora D.', ['dba', 'watchers'], ['approver', 'viewer'], { list: 200, audit: 403, approve: 200 }],
  };
  for (const [login, [name, groups, roles, may]] of Object.entries(rows)) {
    const ask = await as(login);
    const { json } = await ask('GET', '/api/v1/whoami');
    assert.deepEqual([json.name, json.person, json.groups, [...json.roles].sort(), json.via], [name, login, groups, roles, 'oidc']);
    assert.equal((await ask('GET', '/api/v1/tasks')).status, may.list, `${login}: list`);
    assert.equal((await ask('GET', '/api/v1/audit')).status, may.audit, `${login}: audit`);
    assert.equal((await ask('POST', `/api/v1/tasks/${taskId}/approve`, '{}')).status, may.approve, `${login}: approve`);
  }
});

test('under an https address the cookie of a session is __Host-taskgate, and no other name is one', async (t) => {
  const { gateway } = await stage(t, {}, { publicUrl: HTTPS });
  const browser = new FormBrowser();
  const isBack = (url) => url.startsWith(`${HTTPS}/login/callback`);
  const { location } = await browser.signIn(`${gateway.adminUrl}/login`, 'alice', isBack);
  const answer = await browser.request(location.replace(HTTPS, gateway.adminUrl));
  const set = answer.headers.getSetCookie().find((line) => line.startsWith('__Host-taskgate='));
  assert.match(set, /^__Host-taskgate=[0-9a-f]{64}; Path=\/; Max-Age=28800; HttpOnly; SameSite=Lax; Secure$/);
  const value = /=([0-9a-f]{64});/.exec(set)[1];
  const status = async (cookie) => (await open(`${gateway.adminUrl}/api/v1/whoami`, { headers: { cookie } })).status;
  assert.deepEqual([await status(`__Host-taskgate=${value}`), await status(`taskgate=${value}`)], [200, 401]);
});

test('a session ends with max_age, and its streams with it', async (t) => {
  const { gateway, as } = await stage(t, { max_age: '1m' });
  const began = Date.now();
  const ask = await as('alice');
  const { status, headers } = await ask('GET', '/api/v1/whoami');
  assert.equal(status, 200);
  const events = (await open(`${gateway.adminUrl}/api/v1/events`, { headers: { cookie: headers.cookie } })).sse();
  await until(async () => (await ask('GET', '/api/v1/whoami')).status === 401, 'the end of the session', { deadline: 90_000, every: 500 });
  assert.ok(Date.now() - began >= 60_000, 'not before its minute');
  assert.equal(await events.end(30_000), 'end');
});
