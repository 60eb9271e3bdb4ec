// taskgate login, logout and whoami against a real OpenID provider: by browser and by device.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { run } from './lib/child.mjs';
import { BINARY, workflow } from './lib/gateway.mjs';
import { FormBrowser, startIssuer } from './lib/issuer.mjs';
import { scene } from './lib/scene.mjs';
import { startIssuer as startMetadata } from './lib/token_issuer.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const lib = path.join(path.dirname(fileURLToPath(import.meta.url)), 'lib');

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';

async function stage(t, { configuration = {}, grants = ['authorization_code', DEVICE] } = {}) {
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] } });
  const { gateway } = all;
  const issuer = await startIssuer(t, {
    clients: [
      {
        client_id: 'gateway',
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: grants,
        redirect_uris: [`${gateway.adminUrl}/login/callback`, 'http://127.0.0.1/callback'],
      },
    ],
    configuration,
  });
  gateway.writeConfig({ config: { admin: { public_url: gateway.adminUrl, oidc: { issuer: issuer.url, client_id: 'gateway', roles: { approver: ['dba'] } } } } });
  gateway.hangUp();
  await gateway.logged((entry) => entry.msg === 'Configuration reloaded');
  const browser = path.join(gateway.folder, 'browser.mjs');
  fs.writeFileSync(browser, `#!${process.execPath}\nimport { FormBrowser } from ${JSON.stringify(path.join(lib, 'issuer.mjs'))};\nawait new FormBrowser().signIn(process.argv[2], process.env.PERSON ?? 'alice');\n`, { mode: 0o755 });
  const state = path.join(gateway.folder, 'state');
  const env = { THOUGHTGATE_ADMIN_URL: gateway.adminUrl, TASKGATE_TOKEN: undefined, THOUGHTGATE_ADMIN_TOKEN: undefined, THOUGHTGATE_CONFIG: undefined, XDG_STATE_HOME: state, BROWSER: browser };
  const taskgate = (args, more = {}) => run(BINARY, args, { cwd: gateway.folder, env: { ...env, ...more } });
  return { ...all, issuer, taskgate, state: path.join(state, 'taskgate'), env };
}

test('login by browser: the token is kept for its owner alone, used by every command, and forgotten', async (t) => {
  const { gateway, admin, taskgate, state, connect } = await stage(t);
  const { taskId } = await (await connect()).createTask('delete_user');
  const login = await taskgate(['login']);
  assert.deepEqual([login.code, login.stdout], [0, 'Signed in as alice\n'], login.stderr);
  assert.match(login.stderr, /^Open http:\/\/127\.0\.0\.1:\d+\/auth\?response_type=code&client_id=gateway&redirect_uri=http%3A%2F%2F127\.0\.0\.1%3A\d+%2Fcallback&/);
  const [file, ...others] = fs.readdirSync(state);
  assert.deepEqual(others, []);
  assert.equal(fs.statSync(path.join(state, file)).mode & 0o777, 0o600);
  assert.equal(fs.statSync(state).mode & 0o777, 0o700);
  assert.equal(JSON.parse((await taskgate(['whoami', '--json'])).stdout).via, 'oidc');
  assert.equal((await taskgate(['tasks', 'approve', taskId])).code, 0);
  assert.equal((await admin.inState(taskId, 'completed')).decidedBy, 'alice');
  assert.equal((await taskgate(['whoami'], { THOUGHTGATE_ADMIN_URL: `${gateway.adminUrl.replace('127.0.0.1', 'localhost')}` })).code, 3, 'a token goes to the gateway it is for alone');
  fs.chmodSync(path.join(state, file), 0o644);
  const open = await taskgate(['whoami']);
  assert.equal(open.code, 3);
  assert.match(open.stderr, /is not used: others can read it/);
  assert.equal((await taskgate(['logout'])).code, 0);
  assert.deepEqual(fs.readdirSync(state), []);
  assert.match((await taskgate(['logout'])).stderr, /you were not signed in/);
  assert.equal((await taskgate(['whoami'])).code, 3);
});

test('login by device: the code is entered elsewhere', async (t) => {
  const { env, gateway, taskgate } = await stage(t);
  const child = spawn(BINARY, ['login', '--device'], { cwd: gateway.folder, env: Object.fromEntries(Object.entries({ ...process.env, ...env }).filter(([, value]) => value !== undefined)) });
  let said = '';
  child.stderr.on('data', (bytes) => (said += bytes));
  const ended = new Promise((resolve) => child.on('close', resolve));
  const address = await until(() => /Open (\S+) in any browser, and enter the code (\S+)\n/.exec(said)?.[1], 'the address');
  await new FormBrowser().signIn(address, 'alice');
  assert.equal(await ended, 0, said);
  assert.equal(JSON.parse((await taskgate(['whoami', '--json'])).stdout).person, 'alice');
});

test('login with an issuer that knows no devices goes by browser; with the configuration at hand it asks no gateway', async (t) => {
  const { gateway, taskgate } = await stage(t, { grants: ['authorization_code'], configuration: { features: { devInteractions: { enabled: true }, deviceFlow: { enabled: false } } } });
  const login = await taskgate(['login', '--device', '--config', gateway.configPath]);
  assert.deepEqual([login.code, login.stdout], [0, 'Signed in as alice\n'], login.stderr);
  assert.match(login.stderr, /knows no sign-in by code, so a browser is needed/);
});

test('a token that the gateway refuses is not kept', async (t) => {
  const { taskgate, state } = await stage(t);
  const login = await taskgate(['login'], { PERSON: 'mallory' });
  assert.deepEqual([login.code, login.stdout], [3, '']);
  assert.match(login.stderr, /in no group that has a role here/);
  assert.ok(!fs.existsSync(state) || fs.readdirSync(state).length === 0);
});

test('a gateway without a sign-in says so', async (t) => {
  const { gateway, taskgate } = await stage(t);
  gateway.writeConfig({ config: {} });
  gateway.hangUp();
  await until(async () => (await gateway.admin.get('/api/v1/sign-in')).text === '{}', 'the reload');
  const login = await taskgate(['login']);
  assert.equal(login.code, 3);
  assert.match(login.stderr, /nobody signs in at http:\/\/127\.0\.0\.1:\d+: it has no admin\.oidc/);
});

test('an address of the issuer is one that a browser may be given, and the browser gets nothing of the gateway’s', async (t) => {
  const { gateway } = await scene(t);
  const issuer = await startMetadata(t, { place: '/.well-known/openid-configuration' });
  gateway.writeConfig({ config: { admin: { public_url: gateway.adminUrl, oidc: { issuer: issuer.url, client_id: 'gateway', roles: { approver: ['dba'] } } } } });
  gateway.hangUp();
  await gateway.logged((entry) => entry.msg === 'Configuration reloaded');
  const seen = path.join(gateway.folder, 'seen');
  const browser = path.join(gateway.folder, 'browser.mjs');
  fs.writeFileSync(browser, `#!${process.execPath}\nimport fs from 'node:fs';\nfs.writeFileSync(${JSON.stringify(`${seen}.new`)}, JSON.stringify([process.argv[2], Object.keys(process.env)]));\nfs.renameSync(${JSON.stringify(`${seen}.new`)}, ${JSON.stringify(seen)});\n`, { mode: 0o755 });
  const env = { THOUGHTGATE_ADMIN_URL: gateway.adminUrl, TASKGATE_TOKEN: 'a-secret-token', THOUGHTGATE_ADMIN_TOKEN: 'another', XDG_STATE_HOME: gateway.folder, BROWSER: browser };
  const good = { authorization_endpoint: `${issuer.url}/auth`, token_endpoint: `${issuer.url}/token` };
  const bad = ['--new-window=x', 'file:///etc/passwd', 'javascript:alert(1)', 'http://localhost:x@evil.example/', 'http://127.0.0.1.evil.example/', 'https://evil.example/ --flag', 'http://elsewhere.example/auth'];
  for (const [name, address] of [...bad.map((url) => ['authorization_endpoint', url]), ['token_endpoint', bad[3]], ['device_authorization_endpoint', bad[4]]]) {
    issuer.metadata = { ...good, [name]: address };
    const said = await run(BINARY, ['login'], { cwd: gateway.folder, env });
    assert.notEqual(said.code, 0, address);
    assert.match(said.stderr, new RegExp(`${name} is not one that may be called: `), address);
    assert.doesNotMatch(said.stderr, /Open /, address);
  }
  assert.ok(!fs.existsSync(seen));
  issuer.metadata = good;
  const child = spawn(BINARY, ['login'], { cwd: gateway.folder, env: { ...process.env, ...env }, stdio: 'ignore' });
  await until(() => fs.existsSync(seen), 'the browser');
  child.kill();
  const [address, names] = JSON.parse(fs.readFileSync(seen, 'utf8'));
  assert.ok(address.startsWith(good.authorization_endpoint));
  assert.ok(names.includes('PATH') && names.includes('XDG_STATE_HOME'));
  assert.deepEqual(names.filter((name) => /^(TASKGATE|THOUGHTGATE)_/.test(name)), []);
});
