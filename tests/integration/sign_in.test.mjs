// Operators who sign in at a real OpenID provider: the page's way, sessions, tokens of the issuer, attacks on each.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { run } from './lib/child.mjs';
import { BINARY, workflow } from './lib/gateway.mjs';
import { open } from './lib/http.mjs';
import { FormBrowser, startIssuer, tokensOf } from './lib/issuer.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const SECRET = 'a secret of/the + client';

export async function reload(gateway, config) {
  const count = () => gateway.logs.filter((entry) => entry.msg === 'Configuration reloaded').length;
  const before = count();
  gateway.writeConfig({ config });
  gateway.hangUp();
  await gateway.logged(() => count() > before);
}

/** A gateway and a provider that know each other. `admin` is laid over the configuration of the operators' side. */
async function stage(t, { oidc = {}, admin = {}, issuer: issuerOptions = {}, client = {} } = {}) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] }, env: { OIDC_SECRET: SECRET } });
  const { gateway } = all;
  const issuer = await startIssuer(t, {
    clients: [{ client_id: 'gateway', client_secret: SECRET, redirect_uris: [`${gateway.adminUrl}/login/callback`], post_logout_redirect_uris: [`${gateway.adminUrl}/`], ...client }],
    ...issuerOptions,
  });
  const config = {
    admin: {
      public_url: gateway.adminUrl,
      oidc: { issuer: issuer.url, client_id: 'gateway', client_secret_env: 'OIDC_SECRET', roles: { approver: ['dba'], viewer: ['watchers'] }, ...oidc },
      ...admin,
    },
  };
  await reload(gateway, config);
  const browser = new FormBrowser();
  const ask = (path, { method = 'GET', headers = {}, body, as = browser } = {}) =>
    fetch(gateway.adminUrl + path, { method, body, redirect: 'manual', headers: { ...(as.header(gateway.adminUrl) ? { cookie: as.header(gateway.adminUrl) } : {}), ...headers } });
  const signIn = (login, as = browser) => as.signIn(`${gateway.adminUrl}/login`, login);
  const own = { 'x-taskgate': '1', origin: gateway.adminUrl };
  return { ...all, issuer, config, browser, ask, signIn, own };
}

const who = async (answer) => (assert.equal(answer.status, 200), answer.json());

test('signing in: code, PKCE, state and nonce; a cookie whose digest alone is kept; who one is', async (t) => {
  const { gateway, issuer, browser, ask, signIn } = await stage(t, { admin: { people: [{ name: 'alice', email: 'alice@example.org', groups: ['oncall'] }] } });
  const begun = await browser.request(`${gateway.adminUrl}/login`);
  assert.equal(begun.status, 302);
  const to = new URL(begun.location);
  assert.equal(to.origin, issuer.url);
  const sent = Object.fromEntries(to.searchParams);
  assert.equal(sent.redirect_uri, `${gateway.adminUrl}/login/callback`);
  assert.deepEqual([sent.response_type, sent.client_id, sent.scope, sent.code_challenge_method], ['code', 'gateway', 'openid profile email', 'S256']);
  for (const key of ['state', 'nonce', 'code_challenge']) assert.ok(sent[key].length >= 43, key);
  const home = await signIn('alice');
  assert.deepEqual([home.url, home.status], [`${gateway.adminUrl}/`, 200]);
  const cookie = browser.cookies.get('127.0.0.1 taskgate');
  assert.match(cookie, /^[0-9a-f]{64}$/);
  assert.deepEqual(await who(await ask('/api/v1/whoami')), { name: 'alice@example.org', person: 'alice', groups: ['oncall', 'dba'], roles: ['approver'], via: 'oidc' });
  const kept = ['', '-wal'].map((suffix) => `${gateway.storePath}${suffix}`).filter(fs.existsSync).map((file) => fs.readFileSync(file, 'latin1')).join('');
  assert.ok(!kept.includes(cookie), 'the cookie is not in the store');
  assert.ok(kept.includes(createHash('sha256').update(cookie).digest('hex')), 'its digest is');
  assert.ok(!gateway.child.stderr.includes(cookie) && !gateway.child.stderr.includes(SECRET));
});

test('the cookie is of this host alone, not for scripts, and ends with max_age', async (t) => {
  const { gateway, browser } = await stage(t, { oidc: { max_age: '2h' } });
  const callback = await browser.signIn(`${gateway.adminUrl}/login`, 'alice', (url) => url.startsWith(`${gateway.adminUrl}/login/callback`));
  const answer = await browser.request(callback.location);
  assert.equal(answer.location, `${gateway.adminUrl}/`);
  const set = answer.headers.getSetCookie().find((line) => line.startsWith('taskgate='));
  assert.match(set, /^taskgate=[0-9a-f]{64}; Path=\/; Max-Age=7200; HttpOnly; SameSite=Lax$/);
});

test('under an https address the cookies have the prefix that other hosts cannot set', async (t) => {
  const { gateway, config, browser } = await stage(t);
  await reload(gateway, { admin: { ...config.admin, public_url: 'https://gate.example' } });
  const begun = await browser.request(`${gateway.adminUrl}/login`);
  assert.equal(new URL(begun.location).searchParams.get('redirect_uri'), 'https://gate.example/login/callback');
  assert.match(begun.headers.getSetCookie()[0], /^__Host-taskgate-sign-in=[0-9a-f]{64}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/);
});

test('a session survives a restart, ends at logout, here and at the provider', async (t) => {
  const { gateway, ask, signIn, own, browser, connect, issuer } = await stage(t);
  await signIn('alice');
  await gateway.restart();
  assert.equal((await who(await ask('/api/v1/whoami'))).person, 'alice');
  const { taskId } = await (await connect()).createTask('delete_user');
  const decided = await ask(`/api/v1/tasks/${taskId}/reject`, { method: 'POST', headers: { ...own, 'content-type': 'application/json' }, body: '{}' });
  assert.deepEqual([decided.status, (await decided.json()).decidedBy], [200, 'alice']);
  const events = (await open(`${gateway.adminUrl}/api/v1/events`, { headers: { cookie: browser.header(gateway.adminUrl) } })).sse();
  await events.next();
  const out = await ask('/logout', { method: 'POST', headers: own });
  assert.equal(out.status, 200);
  assert.match(out.headers.getSetCookie()[0], /^taskgate=; Path=\/; Max-Age=0; /);
  const { location } = await out.json();
  assert.equal(await events.end(), 'end', 'open streams end with the session');
  assert.equal((await ask('/api/v1/whoami')).status, 401);
  const atProvider = await browser.follow(location);
  assert.match(atProvider.url, new RegExp(`^${issuer.url}/session/end`));
  const left = await browser.submit(atProvider, { logout: 'yes' });
  assert.equal(left.url, `${gateway.adminUrl}/`);
});

test('signing out at a provider that demands the ID token: it is kept sealed, for the browser alone', async (t) => {
  const { gateway, ask, signIn, own, browser, issuer } = await stage(t);
  const demanded = [];
  issuer.answer = (request, response) => {
    const url = new URL(request.url, issuer.url);
    if (url.pathname !== '/session/end') return false;
    demanded.push(Object.fromEntries(url.searchParams));
    if (url.searchParams.get('id_token_hint')) return false;
    response.writeHead(400).end('id_token_hint is missing');
    return true;
  };
  await signIn('alice');
  await gateway.restart();
  const { location } = await (await ask('/logout', { method: 'POST', headers: own })).json();
  const atProvider = await browser.follow(location);
  assert.equal(atProvider.status, 200, atProvider.text);
  const [{ id_token_hint: hint, ...rest }] = demanded;
  assert.deepEqual(rest, { client_id: 'gateway', post_logout_redirect_uri: `${gateway.adminUrl}/` });
  const claims = JSON.parse(Buffer.from(hint.split('.')[1], 'base64url'));
  assert.deepEqual([claims.iss, claims.aud, claims.sub], [issuer.url, 'gateway', 'alice']);
  assert.equal((await browser.submit(atProvider, { logout: 'yes' })).url, `${gateway.adminUrl}/`);
  const kept = ['', '-wal'].map((suffix) => `${gateway.storePath}${suffix}`).filter(fs.existsSync).map((file) => fs.readFileSync(file, 'latin1')).join('');
  for (const part of hint.split('.')) assert.ok(!kept.includes(part), 'no part of the token is in the store');
  assert.ok(!gateway.child.stderr.includes(hint.split('.')[1]));
});

test('refused sign-ins and refused credentials are counted by their reason, and logged once in a while', async (t) => {
  const { gateway, admin, browser, signIn, issuer, ask } = await stage(t, { issuer: { clients: [{ client_id: 'gateway', client_secret: SECRET, redirect_uris: ['http://127.0.0.1:1/back'] }] } });
  const sum = async (name, labels) => sample(await admin.metrics(), `thoughtgate_${name}`, labels) ?? 0;
  const callback = async (query, as = browser) => (await as.request(`${gateway.adminUrl}/login/callback?${query}`)).status;
  await browser.request(`${gateway.adminUrl}/login`);
  for (let i = 0; i < 20; i++) assert.equal(await callback(`state=${'0'.repeat(64)}&code=secret-code-${i}`), 400);
  assert.equal(await callback('state=1'), 400);
  assert.equal(await sum('sign_ins_total', { outcome: 'state' }), 20);
  assert.equal(await sum('sign_ins_total', { outcome: 'malformed' }), 1);
  await gateway.logged((entry) => entry.msg === 'Sign-in refused' && entry.reason === 'state');
  const lines = gateway.logs.filter((entry) => entry.msg === 'Sign-in refused' && entry.reason === 'state');
  assert.equal(lines.length, 1, 'twenty do not fill the log');
  assert.equal(lines[0].client, '127.0.0.1');
  assert.ok(!gateway.child.stderr.includes('secret-code'), 'codes are not logged');
  const rows = [
    [{ authorization: 'Bearer wrong-token' }, { via: 'token', reason: 'unknown' }],
    [{ authorization: 'Basic d3JvbmctdG9rZW4=' }, { via: 'token', reason: 'scheme' }],
    [{ authorization: ['Bearer a', 'Bearer b'] }, { via: 'token', reason: 'several' }],
    [{ authorization: 'Bearer eyJhbGciOiJub25lIn0.e30.' }, { via: 'oidc', reason: 'algorithm' }],
    [{ cookie: `taskgate=${'0'.repeat(64)}` }, { via: 'session', reason: 'over' }],
  ];
  for (const [headers, labels] of rows) {
    assert.equal((await open(`${gateway.adminUrl}/api/v1/whoami`, { headers })).status, 401);
    assert.equal(await sum('operators_refused_total', labels), 1, JSON.stringify(labels));
    const said = await gateway.logged((entry) => entry.msg === 'Operator refused' && entry.via === labels.via && entry.reason === labels.reason);
    assert.equal(said.client, '127.0.0.1');
  }
  assert.equal((await open(`${gateway.adminUrl}/api/v1/whoami`, {})).status, 401);
  assert.equal(await sum('operators_refused_total'), rows.length, 'nothing was shown, so nothing is refused');
  assert.doesNotMatch(gateway.child.stderr, /wrong-token|d3Jvbm|eyJhbGci/);
});

test('a person in no mapped group is refused; an address that nobody has verified makes nobody alice', async (t) => {
  const { gateway, ask, signIn, browser } = await stage(t, { admin: { people: [{ name: 'alice', email: 'alice@example.org', groups: ['dba'] }] } });
  const page = await signIn('mallory');
  assert.equal(page.status, 403);
  assert.match(page.text, /You are in no group that has a role here/);
  assert.equal(browser.cookies.get('127.0.0.1 taskgate'), undefined);
  assert.equal((await ask('/api/v1/whoami')).status, 401);
  const said = await gateway.logged((entry) => entry.msg === 'Sign-in refused');
  assert.equal(said.person, 'mallory');
});

test('a viewer looks; a stranger with the name of a person is not taken for that person', async (t) => {
  const { ask, signIn, own, connect } = await stage(t, { admin: { people: [{ name: 'bob', subject: 'somebody-else' }] } });
  await signIn('bob');
  const bob = await who(await ask('/api/v1/whoami'));
  assert.match(bob.person, /^bob \(http:\/\/127\.0\.0\.1:\d+\)$/);
  assert.deepEqual(bob.roles, ['viewer']);
  const { taskId } = await (await connect()).createTask('delete_user');
  const refused = await ask(`/api/v1/tasks/${taskId}/approve`, { method: 'POST', headers: { ...own, 'content-type': 'application/json' }, body: '{}' });
  assert.equal(refused.status, 403);
});

test('claims that the ID token leaves out come from userinfo', async (t) => {
  const { ask, signIn, issuer } = await stage(t, { issuer: { idTokenClaims: false } });
  await signIn('alice');
  assert.deepEqual(await who(await ask('/api/v1/whoami')), { name: 'alice@example.org', person: 'alice', groups: ['dba'], roles: ['approver'], via: 'oidc' });
  assert.ok(issuer.requests.includes('GET /me'));
});

test('a person who is taken out, or a group that loses its role, is void after the reload', async (t) => {
  const people = [{ name: 'alice', email: 'alice@example.org' }];
  const { gateway, config, ask, signIn } = await stage(t, { admin: { people } });
  await signIn('alice');
  assert.equal((await who(await ask('/api/v1/whoami'))).person, 'alice');
  await reload(gateway, { admin: { ...config.admin, people: [{ name: 'carol', email: 'alice@example.org' }] } });
  assert.equal((await ask('/api/v1/whoami')).status, 401, 'the session was of alice, and is not of carol');
  await reload(gateway, { admin: { ...config.admin, people, oidc: { ...config.admin.oidc, roles: { viewer: ['watchers'] } } } });
  assert.equal((await ask('/api/v1/whoami')).status, 403);
});

test('open streams and waits of a session end with the reload that voids it, or shortens it', async (t) => {
  const { gateway, config, signIn, browser, connect, admin } = await stage(t);
  await signIn('alice');
  const { taskId } = await (await connect()).createTask('delete_user');
  const streamOf = async () => (await open(`${gateway.adminUrl}/api/v1/events`, { headers: { cookie: browser.header(gateway.adminUrl) } })).sse();
  const first = await streamOf();
  const { answer } = await admin.as().held(`/api/v1/tasks/${taskId}/result?wait=1m`, { cookie: browser.header(gateway.adminUrl) });
  await reload(gateway, { admin: { ...config.admin, oidc: { ...config.admin.oidc, roles: { caller: ['dba'] } } } });
  assert.equal(await first.end(5_000), 'end');
  assert.equal((await answer).status, 401);
  await reload(gateway, config);
  const second = await streamOf();
  await reload(gateway, { admin: { ...config.admin, people: [{ name: 'carol', email: 'alice@example.org' }] } });
  assert.equal(await second.end(5_000), 'end');
  await reload(gateway, config);
  const third = await streamOf();
  await reload(gateway, { admin: { ...config.admin, oidc: undefined } });
  assert.equal(await third.end(5_000), 'end');
});

test('requests by cookie that change something come from our own page alone', async (t) => {
  const { gateway, ask, signIn, own, connect } = await stage(t);
  await signIn('alice');
  const { taskId } = await (await connect()).createTask('delete_user');
  const decide = (headers) => ask(`/api/v1/tasks/${taskId}/reject`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: '{}' });
  const rows = [{}, { origin: own.origin }, { 'x-taskgate': '1' }, { ...own, 'x-taskgate': '0' }, { ...own, origin: 'https://evil.example' }, { ...own, origin: 'http://127.0.0.1:1' }, { ...own, origin: 'null' }];
  for (const headers of rows) assert.equal((await decide(headers)).status, 403, JSON.stringify(headers));
  for (const headers of rows) assert.equal((await ask('/logout', { method: 'POST', headers })).status, 403, JSON.stringify(headers));
  assert.equal((await gateway.admin.task(taskId)).state, 'pending');
  assert.equal((await ask('/api/v1/whoami')).status, 200, 'still signed in');
  assert.equal((await decide(own)).status, 200);
});

test('state: once, in the browser where it began, and only as it was given', async (t) => {
  const { gateway, browser } = await stage(t);
  const isBack = (url) => url.startsWith(`${gateway.adminUrl}/login/callback`);
  const back = (await browser.signIn(`${gateway.adminUrl}/login`, 'alice', isBack)).location;
  const thief = new FormBrowser();
  await thief.request(`${gateway.adminUrl}/login`);
  for (const [as, url] of [[new FormBrowser(), back], [thief, back], [browser, back.replace(/state=\w{4}/, 'state=0000')], [browser, back.replace(/[?&]state=\w+/, '')], [browser, `${back}&state=1`], [browser, `${back}&code=1`]]) {
    const refused = await as.request(url);
    assert.equal(refused.status, 400, url);
    assert.equal(as.cookies.get('127.0.0.1 taskgate'), undefined);
  }
  assert.equal((await browser.request(back)).status, 302);
  const replayed = new FormBrowser();
  replayed.cookies.set('127.0.0.1 taskgate-sign-in', browser.cookies.get('127.0.0.1 taskgate-sign-in'));
  assert.equal((await replayed.request(back)).status, 400, 'used up');
  assert.equal(replayed.cookies.get('127.0.0.1 taskgate'), undefined);
});

test('sign-ins that strangers begin push out nobody\'s, and are stored nowhere', async (t) => {
  const { gateway, browser } = await stage(t);
  const isBack = (url) => url.startsWith(`${gateway.adminUrl}/login/callback`);
  const back = (await browser.signIn(`${gateway.adminUrl}/login`, 'alice', isBack)).location;
  for (let i = 0; i < 1001; i++) assert.equal((await open(`${gateway.adminUrl}/login`, {})).status, 302);
  await gateway.restart();
  assert.equal((await browser.request(back)).status, 302);
  assert.notEqual(browser.cookies.get('127.0.0.1 taskgate'), undefined);
});

test('mixed-up issuers: an answer that names another, or none where it must, is refused (RFC 9207)', async (t) => {
  const { gateway, browser, issuer } = await stage(t);
  const isBack = (url) => url.startsWith(`${gateway.adminUrl}/login/callback`);
  for (const change of [(url) => url.searchParams.set('iss', 'https://evil.example'), (url) => url.searchParams.delete('iss')]) {
    const url = new URL((await browser.signIn(`${gateway.adminUrl}/login`, 'alice', isBack)).location);
    assert.equal(url.searchParams.get('iss'), issuer.url);
    change(url);
    const before = issuer.requests.filter((line) => line === 'POST /token').length;
    const refused = await browser.request(url.href);
    assert.equal(refused.status, 400);
    assert.match(refused.text, /another identity provider/);
    assert.equal(issuer.requests.filter((line) => line === 'POST /token').length, before, 'the code goes nowhere');
  }
});

test('no parameter sends a browser elsewhere, and no forged Host gets into a link', async (t) => {
  const { gateway, issuer } = await stage(t);
  for (const query of ['?next=https://evil.example', '?redirect_uri=https://evil.example', '?iss=https://evil.example', '//evil.example']) {
    const answer = await open(`${gateway.adminUrl}/login${query}`, {});
    if (answer.status === 404) continue;
    const to = new URL(answer.headers.location);
    assert.equal(to.origin, issuer.url);
    assert.equal(to.searchParams.get('redirect_uri'), `${gateway.adminUrl}/login/callback`);
    assert.ok(!answer.headers.location.includes('evil'));
  }
  const forged = await open(`${gateway.adminUrl}/login`, { headers: { host: 'evil.example' } });
  assert.equal(forged.status, 403);
  const other = await open(`${gateway.adminUrl}/login`, { headers: { host: 'localhost', 'x-forwarded-host': 'evil.example' } });
  assert.equal(new URL(other.headers.location).searchParams.get('redirect_uri'), `${gateway.adminUrl}/login/callback`);
});

test('a cookie of another host, or one of the form alone, is nobody’s; two of the name are none', async (t) => {
  const { gateway, browser, signIn } = await stage(t);
  await signIn('alice');
  const cookie = browser.cookies.get('127.0.0.1 taskgate');
  const status = async (text) => (await open(`${gateway.adminUrl}/api/v1/whoami`, { headers: { cookie: text } })).status;
  assert.equal(await status(`taskgate=${cookie}`), 200);
  for (const text of [`taskgate=${'0'.repeat(64)}`, `taskgate=${cookie.toUpperCase()}x`, `taskgate=${cookie}; taskgate=${'0'.repeat(64)}`, `taskgate=${'0'.repeat(64)}; taskgate=${cookie}`, `__Host-taskgate=${cookie}`, `taskgate="${cookie}"`]) assert.equal(await status(text), 401, text);
  const both = await open(`${gateway.adminUrl}/api/v1/whoami`, { headers: { cookie: `taskgate=${cookie}`, authorization: 'Bearer wrong' } });
  assert.equal(both.status, 401, 'a token that is shown counts alone');
});

test('the provider is down: no new sessions, the others live on, tokens stay', async (t) => {
  const { gateway, issuer, ask, signIn } = await stage(t);
  await signIn('alice');
  await issuer.stop();
  await gateway.restart();
  assert.equal((await ask('/api/v1/whoami')).status, 200);
  assert.equal((await gateway.admin.get('/api/v1/whoami')).status, 200);
  const refused = await ask('/login', { as: new FormBrowser() });
  assert.equal(refused.status, 503);
  assert.match(await refused.text(), /identity provider does not answer/);
  await issuer.start();
  await until(async () => (await ask('/login', { as: new FormBrowser() })).status === 302, 'a sign-in once the provider is back');
});

test('a provider that answers wildly is not believed', async (t) => {
  const { gateway, issuer, browser } = await stage(t);
  const metadata = await (await fetch(`${issuer.url}/.well-known/openid-configuration`)).json();
  const answers = [
    [200, 'not JSON'],
    [200, JSON.stringify({ ...metadata, issuer: 'https://evil.example' })],
    [200, JSON.stringify({ ...metadata, authorization_endpoint: 'javascript:alert(1)' })],
    [200, JSON.stringify({ ...metadata, jwks_uri: undefined })],
    [302, ''],
    [500, '{}'],
    [200, `{"x":"${'x'.repeat(2 * 1024 * 1024)}"}`],
  ];
  for (const [status, body] of answers) {
    issuer.answer = (request, response) => {
      if (!request.url.startsWith('/.well-known/')) return false;
      response.writeHead(status, { 'content-type': 'application/json', ...(status === 302 ? { location: `${issuer.url}/elsewhere` } : {}) });
      response.end(body);
      return true;
    };
    await gateway.restart();
    assert.equal((await browser.request(`${gateway.adminUrl}/login`)).status, 503, body.slice(0, 60));
  }
  assert.ok(!issuer.requests.includes('GET /elsewhere'));
});

test('a token of the issuer: for this client alone, by the roles of its groups, until it ends', async (t) => {
  const other = { client_id: 'other', client_secret: 'other secret', redirect_uris: ['http://127.0.0.1:1/back'] };
  const own = { client_id: 'gateway', client_secret: SECRET, redirect_uris: ['http://127.0.0.1:1/back'] };
  const { gateway, issuer, admin, connect } = await stage(t, { issuer: { clients: [own, other], configuration: { ttl: { IdToken: 6 } } } });
  const alice = await tokensOf(issuer, own, 'alice');
  assert.deepEqual((await admin.as(alice.id_token).get('/api/v1/whoami')).json, { name: 'alice@example.org', person: 'alice', groups: ['dba'], roles: ['approver'], via: 'oidc' });
  const { taskId } = await (await connect()).createTask('delete_user');
  assert.equal((await admin.as(alice.id_token).approve(taskId)).decidedBy, 'alice');
  const refused = {
    'of another client': (await tokensOf(issuer, other, 'alice')).id_token,
    'opaque': alice.access_token,
    'with another signature': alice.id_token.replace(/\.[^.]{8}([^.]*)$/, '.AAAAAAAA$1'),
    'unsigned': `${Buffer.from('{"alg":"none"}').toString('base64url')}.${alice.id_token.split('.')[1]}.`,
  };
  for (const [what, token] of Object.entries(refused)) assert.equal((await admin.as(token).get('/api/v1/whoami')).status, 401, what);
  const mallory = await tokensOf(issuer, own, 'mallory');
  assert.equal((await admin.as(mallory.id_token).get('/api/v1/whoami')).status, 403);
  const twice = await open(`${gateway.adminUrl}/api/v1/whoami`, { headers: { authorization: [`Bearer ${alice.id_token}`, 'Bearer x'] } });
  assert.equal(twice.status, 401, 'two Authorization headers');
  const events = await admin.as(alice.id_token).events();
  await until(async () => (await admin.as(alice.id_token).get('/api/v1/whoami')).status === 401 || null, 'the end of the token', { deadline: 90_000 });
  assert.equal(await events.end(30_000), 'end', 'an open stream ends with its token');
  assert.ok(!gateway.child.stderr.includes(alice.id_token) && !gateway.child.stderr.includes(alice.access_token));
});

test('the audit trail has sign-ins, refusals and sign-outs, as rows of the same chain; never a secret', async (t) => {
  const { gateway, admin, ask, signIn, browser, own, connect } = await stage(t, { admin: { people: [{ name: 'alice', email: 'alice@example.org' }] } });
  await signIn('alice');
  const cookie = browser.header(gateway.adminUrl).split('=').at(-1);
  await (await connect()).createTask('delete_user');
  await signIn('mallory', new FormBrowser());
  for (let i = 0; i < 4; i++) await signIn('mallory', new FormBrowser());
  await ask('/login/callback?state=x&code=y', { as: new FormBrowser() });
  assert.equal((await admin.as('no such token').get('/api/v1/tasks')).status, 401);
  assert.equal((await ask('/logout', { method: 'POST', headers: own })).status, 200);
  assert.equal((await ask('/api/v1/tasks', { headers: { cookie: `taskgate=${cookie}` } })).status, 401, 'a session that is over is no row');
  const { entries } = (await admin.get('/api/v1/audit?limit=1000')).json;
  const about = entries.filter((row) => !row.taskId).map(({ event, actorKind, actor, person, via, reason }) => ({ event, actorKind, actor, person, via, reason }));
  const row = (event, person, via, reason) => ({ event, actorKind: 'operator', actor: person, person, via, reason });
  assert.deepEqual(about, [
    row('sign_in', 'alice', 'oidc'),
    row('sign_in_refused', 'mallory', 'oidc', 'no_role'), // the others are left out for a minute
    row('sign_in_refused', undefined, 'oidc', 'state'),
    row('operator_refused', undefined, 'token', 'unknown'),
    row('sign_out', 'alice', 'oidc'),
  ]);
  assert.deepEqual(entries.map(({ sequence }) => sequence), entries.map((_, index) => index + 1));
  const audit = (args) => run(BINARY, ['audit', ...args, '--store', gateway.storePath], { cwd: gateway.folder });
  assert.match((await audit(['verify'])).stdout, /6 rows, up to row 6/);
  const listed = (await audit(['list'])).stdout;
  assert.match(listed, /sign_in_refused .*mallory +no_role/);
  assert.match(listed, /sign_out .*alice/);
  assert.match((await audit(['export', '--format', 'cef'])).stdout, /\|sign_in_refused\|operator sign_in_refused\|6\|/);
  assert.match((await audit(['export', '--format', 'csv'])).stdout, /"oidc","[0-9a-f]{64}"/);
  assert.equal((await audit(['report'])).code, 0);
  for (const secret of [cookie, 'no such token']) assert.ok(!JSON.stringify(entries).includes(secret));
});
