// An operator who signs in while a balancer sends each request to another replica.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { open } from './lib/http.mjs';
import { FormBrowser, startIssuer } from './lib/issuer.mjs';
import { defer } from './lib/lifetime.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { clientOf, replicas } from './lib/replicas.mjs';
import { within } from './lib/wait.mjs';

const SECRET = 'a secret of the client';

/** A balancer for the operators' port: `choose` names the gateway of a path. */
async function startBalancer(t, choose) {
  const server = http.createServer((request, response) => {
    const { adminUrl } = choose(request.url.split('?')[0]);
    const onward = http.request(adminUrl + request.url, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.rawHeaders);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  defer(t, () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

async function stage(t) {
  const place = {};
  const url = await startBalancer(t, (path) => (path === '/login' ? place.a : place.b));
  const issuer = await startIssuer(t, { clients: [{ client_id: 'gateway', client_secret: SECRET, redirect_uris: [`${url}/login/callback`], post_logout_redirect_uris: [`${url}/`] }] });
  const postgres = await startPostgres(t);
  const { gateways } = await replicas(t, postgres.url(), ['a', 'b'], {
    approval: workflow('10m'),
    config: { state_key: { env: 'STATE_KEY' }, admin: { public_url: url, oidc: { issuer: issuer.url, client_id: 'gateway', client_secret_env: 'OIDC_SECRET', roles: { approver: ['dba'] } } } },
    env: { OIDC_SECRET: SECRET, STATE_KEY: 'a5'.repeat(32) },
  });
  [place.a, place.b] = gateways;
  const browser = new FormBrowser();
  const ask = (gateway, path, { method = 'GET', headers = {}, body } = {}) => fetch(gateway.adminUrl + path, { method, body, redirect: 'manual', headers: { cookie: browser.header(gateway.adminUrl), ...headers } });
  return { ...place, url, browser, ask, postgres, own: { 'x-taskgate': '1', origin: url } };
}

test('a sign-in that has begun at one replica ends at the other; the session is good at both, until it ends at one', { skip: postgresMissing }, async (t) => {
  const { a, b, url, browser, ask, own } = await stage(t);
  const home = await browser.signIn(`${url}/login`, 'alice');
  assert.deepEqual([home.url, home.status], [`${url}/`, 200], home.text);
  for (const gateway of [a, b]) {
    assert.equal((await (await ask(gateway, '/api/v1/whoami')).json()).person, 'alice');
    assert.match(await (await ask(gateway, '/')).text(), /<!doctype html>/i);
  }
  const { taskId } = await (await clientOf(t, a)).createTask('delete_user');
  const decided = await ask(b, `/api/v1/tasks/${taskId}/reject`, { method: 'POST', headers: { ...own, 'content-type': 'application/json' }, body: '{}' });
  assert.deepEqual([decided.status, (await decided.json()).decidedBy], [200, 'alice']);

  const streams = await Promise.all([a, b].map(async (gateway) => (await open(`${gateway.adminUrl}/api/v1/events`, { headers: { cookie: browser.header(gateway.adminUrl) } })).sse()));
  const out = await ask(a, '/logout', { method: 'POST', headers: own });
  assert.equal(out.status, 200);
  for (const gateway of [a, b]) assert.equal((await ask(gateway, '/api/v1/whoami')).status, 401);
  for (const stream of streams) assert.equal(await within(stream.end(), 'the stream to end with the session', 15_000), 'end');
});

test('a callback is good once, in its own browser, at whichever replica', { skip: postgresMissing }, async (t) => {
  const { a, b, url, browser, postgres } = await stage(t);
  const callback = await browser.signIn(`${url}/login`, 'alice', (at) => at.startsWith(`${url}/login/callback`));
  const { search } = new URL(callback.location);
  assert.deepEqual(postgres.query('SELECT count(*) FROM taskgate_sign_in_attempt'), [['0']], 'nothing of it is stored');
  const cookie = browser.header(a.adminUrl);
  const come = (gateway, header) => fetch(`${gateway.adminUrl}/login/callback${search}`, { redirect: 'manual', headers: header ? { cookie: header } : {} });
  assert.equal((await come(b, undefined)).status, 400);
  assert.equal((await come(b, cookie.replace(/taskgate-sign-in=[0-9a-f]{64}/, `taskgate-sign-in=${'0'.repeat(64)}`))).status, 400);
  assert.equal((await come(b, cookie)).status, 302);
  for (const gateway of [a, b]) assert.equal((await come(gateway, cookie)).status, 400, 'used');
});
