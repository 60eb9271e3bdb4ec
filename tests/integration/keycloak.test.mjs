// docs/goals/keycloak.md with Keycloak itself, where KEYCLOAK_HOME names one: the realm imported, operators who sign in, the token of an agent.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { blocks, read, root } from '../docs/lib/documents.mjs';
import { Child, run } from './lib/child.mjs';
import { connectedRaw } from './lib/client.mjs';
import { BINARY, temporaryFolder } from './lib/gateway.mjs';
import { FormBrowser } from './lib/issuer.mjs';
import { defer } from './lib/lifetime.mjs';
import { freePort } from './lib/ports.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const KEYCLOAK = process.env.KEYCLOAK_HOME;
const ADMIN = { KC_BOOTSTRAP_ADMIN_USERNAME: 'admin', KC_BOOTSTRAP_ADMIN_PASSWORD: 'password of the admin' };
const SLOW_MS = 900_000; // a first start makes its database
const PASSWORD = 'password of a person';

/** A copy of Keycloak with the realm, as the page imports it: its issuer and its people. */
async function startKeycloak(t, realm, people) {
  const folder = temporaryFolder(t);
  const home = path.join(folder, 'keycloak');
  fs.cpSync(KEYCLOAK, home, { recursive: true });
  fs.rmSync(path.join(home, 'data'), { recursive: true, force: true });
  fs.mkdirSync(path.join(home, 'data/import'), { recursive: true });
  fs.writeFileSync(path.join(home, 'data/import/realm.json'), realm);
  const port = await freePort();
  const child = new Child(path.join(home, 'bin/kc.sh'), ['start-dev', '--import-realm', '--http-host', '127.0.0.1', '--http-port', String(port)], { env: ADMIN });
  defer(t, () => (child.signal('SIGTERM'), child.exited));
  const origin = `http://127.0.0.1:${port}`;
  const issuer = `${origin}/realms/taskgate`;
  await child.ready(() => fetch(issuer).then(({ ok }) => ok, () => false), 'its realm to answer', SLOW_MS);
  const form = new URLSearchParams({ grant_type: 'password', client_id: 'admin-cli', username: ADMIN.KC_BOOTSTRAP_ADMIN_USERNAME, password: ADMIN.KC_BOOTSTRAP_ADMIN_PASSWORD });
  const { access_token } = await (await fetch(`${origin}/realms/master/protocol/openid-connect/token`, { method: 'POST', body: form })).json();
  for (const [username, groups] of Object.entries(people)) {
    const user = { username, email: `${username}@example.org`, emailVerified: true, firstName: username, lastName: 'Test', enabled: true, credentials: [{ type: 'password', value: PASSWORD, temporary: false }], groups };
    const { status } = await fetch(`${origin}/admin/realms/taskgate/users`, { method: 'POST', headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' }, body: JSON.stringify(user) });
    assert.equal(status, 201, username);
  }
  return issuer;
}

const signIn = async (browser, url, username, stopAt) => browser.submit(await browser.follow(url), { username, password: PASSWORD }, stopAt);

/** An access token of the client `agents`, by the code flow. */
async function agentToken(issuer, username) {
  const back = 'http://127.0.0.1/callback';
  const verifier = randomBytes(32).toString('hex');
  const query = new URLSearchParams({ response_type: 'code', client_id: 'agents', redirect_uri: back, scope: 'openid email', code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256' });
  const { location } = await signIn(new FormBrowser(), `${issuer}/protocol/openid-connect/auth?${query}`, username, (to) => to.startsWith(back));
  const form = new URLSearchParams({ grant_type: 'authorization_code', client_id: 'agents', code: new URL(location).searchParams.get('code'), redirect_uri: back, code_verifier: verifier });
  return (await (await fetch(`${issuer}/protocol/openid-connect/token`, { method: 'POST', body: form })).json()).access_token;
}

test('Keycloak has the realm: operators sign in with their roles, an agent has a token, and its person does not decide', { skip: KEYCLOAK ? false : 'Keycloak is not here: set KEYCLOAK_HOME to a folder of its distribution' }, async (t) => {
  const { upstream, gateway } = await scene(t, { upstream: { sessions: false, tools: [tool('delete_user')] } });
  const issuer = await startKeycloak(t, read('deploy/keycloak/realm.json').replaceAll('https://gate.example', gateway.adminUrl), { alice: ['dba'], bob: ['dba'], carol: ['auditors'], dave: [] });
  const page = blocks(read('docs/goals/keycloak.md')).find(({ text }) => text.startsWith('# config.yaml\n')).text;
  const places = { 'https://keycloak.example/realms/taskgate': issuer, 'https://gate.example': gateway.adminUrl, 'http://127.0.0.1:7470/mcp': upstream.url };
  gateway.writeConfig({ yaml: Object.entries(places).reduce((text, [from, to]) => text.replaceAll(from, to), page).replace(/^store: .*\n/m, '') });
  gateway.hangUp();
  await gateway.logged((entry) => entry.msg === 'Configuration reloaded');

  const person = async (username) => {
    const browser = new FormBrowser();
    const home = await signIn(browser, `${gateway.adminUrl}/login`, username);
    const ask = (target, options = {}) => fetch(gateway.adminUrl + target, { ...options, headers: { cookie: browser.header(gateway.adminUrl), 'x-taskgate': '1', origin: gateway.adminUrl, 'content-type': 'application/json' } });
    return { home, ask, who: await (await ask('/api/v1/whoami')).json() };
  };
  const [alice, carol, dave] = [await person('alice'), await person('carol'), await person('dave')];
  assert.deepEqual([alice.home.status, alice.home.url], [200, `${gateway.adminUrl}/`]);
  assert.deepEqual([alice.who.name, alice.who.roles, alice.who.groups, alice.who.via], ['alice@example.org', ['approver'], ['dba'], 'oidc']);
  assert.deepEqual(carol.who.roles, ['auditor']);
  assert.equal(dave.home.status, 403, 'in no group that gives a role');

  const client = await connectedRaw(t, gateway.url, { token: await agentToken(issuer, 'bob') });
  const { taskId } = await client.createTask('delete_user', { id: 7 });
  const decide = (by) => by.ask(`/api/v1/tasks/${taskId}/approve`, { method: 'POST', body: '{}' });
  const bob = await person('bob');
  const refused = await decide(bob);
  assert.deepEqual([refused.status, (await refused.json()).error.code], [403, 'own_call']);
  assert.equal((await decide(alice)).status, 200);
  assert.ok((await client.result('tasks/result', { taskId })).content);
  assert.equal((await (await alice.ask(`/api/v1/tasks/${taskId}`)).json()).decidedBy, alice.who.person);

  // At the command line.
  const browser = path.join(gateway.folder, 'browser.mjs');
  const lib = JSON.stringify(path.join(root, 'tests/integration/lib/issuer.mjs'));
  fs.writeFileSync(browser, `#!${process.execPath}\nimport { FormBrowser } from ${lib};\nconst browser = new FormBrowser();\nawait browser.submit(await browser.follow(process.argv[2]), { username: 'alice', password: '${PASSWORD}' });\n`, { mode: 0o755 });
  const env = { THOUGHTGATE_ADMIN_URL: gateway.adminUrl, TASKGATE_TOKEN: undefined, THOUGHTGATE_ADMIN_TOKEN: undefined, THOUGHTGATE_CONFIG: undefined, XDG_STATE_HOME: path.join(gateway.folder, 'state'), BROWSER: browser };
  const login = await run(BINARY, ['login'], { cwd: gateway.folder, env });
  assert.deepEqual([login.code, login.stdout], [0, `Signed in as ${alice.who.person}\n`], login.stderr);
});
