// Operators by client certificate: the person of the entry in people, their rights, and how they lose them.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Authority, gatewayCertificates, tlsBlock } from './lib/certificates.mjs';
import { run } from './lib/child.mjs';
import { ADMIN_TOKEN, BINARY, configuration, temporaryFolder, workflow } from './lib/gateway.mjs';
import { exchange, open } from './lib/http.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';
import { toYaml } from './lib/yaml.mjs';

const ALICE = { name: 'alice', certificate: 'CN=alice', groups: ['dba'], roles: ['approver'] };
const BOB = { name: 'bob', certificate: 'CN=bob,O=Example', roles: ['viewer', 'caller'] };
const CAROL = { name: 'carol', certificate: 'CN=carol' };
const SUBJECTS = { alice: '/CN=alice', bob: '/O=Example/CN=bob', carol: '/CN=carol', dora: '/CN=dora', 'alice-of-another-place': '/O=Example/CN=alice' };

/** A gateway that asks operators for a certificate. `ask()` sends a request with the certificate of `as`. */
async function stage(t, { admin = {} } = {}) {
  const folder = temporaryFolder(t, 'taskgate-certificates-');
  const { authority, server } = gatewayCertificates(folder);
  const clients = new Authority(folder, 'Clients');
  const file = path.join(folder, 'clients.pem');
  fs.writeFileSync(file, clients.pem);
  const settings = (people, more = {}) => ({ admin: { tls: tlsBlock(server, { client_ca: file }), people, ...admin, ...more } });
  const all = await scene(t, { rules: [['*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] }, config: settings([ALICE, BOB, CAROL]), awaitUpstream: false });
  const { gateway } = all;
  const shown = Object.fromEntries(Object.entries(SUBJECTS).map(([name, subject]) => [name, clients.issue(name, { subject, usage: 'clientAuth' })]));
  const tls = (as) => ({ ca: authority.pem, cert: shown[as].cert, key: shown[as].key });
  const ask = async (as, method, route, { headers = {}, body } = {}) => {
    const answer = await exchange(gateway.adminUrl + route, { method, tls: tls(as), body, headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers } });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, json: text.startsWith('{') ? JSON.parse(text) : undefined };
  };
  const events = async (as, headers = {}) => (await open(`${gateway.adminUrl}/api/v1/events`, { tls: tls(as), headers })).sse();
  const reload = async (config) => {
    const count = () => gateway.logs.filter((entry) => entry.msg === 'Configuration reloaded').length;
    const before = count();
    gateway.writeConfig({ config });
    gateway.hangUp();
    await gateway.logged(() => count() > before);
  };
  const pending = async () => (await (await all.connect()).createTask('delete_user')).taskId;
  return { ...all, authority, server, clients, file, folder, shown, settings, ask, events, reload, tls, pending };
}

const decide = (ask, as, verb, id, headers) => ask(as, 'POST', `/api/v1/tasks/${id}/${verb}`, { body: '{}', headers });

test('a certificate is its person: whoami, roles of the entry, decidedBy; nobody’s is no token', async (t) => {
  const { gateway, ask, pending } = await stage(t);
  assert.deepEqual((await ask('alice', 'GET', '/api/v1/whoami')).json, { name: 'CN=alice', person: 'alice', groups: ['dba'], roles: ['approver'], via: 'certificate' });
  assert.deepEqual((await ask('bob', 'GET', '/api/v1/whoami')).json, { name: 'CN=bob,O=Example', person: 'bob', groups: [], roles: ['viewer', 'caller'], via: 'certificate' });
  const carol = await ask('carol', 'GET', '/api/v1/whoami');
  assert.deepEqual([carol.status, carol.json.error.message], [403, 'your entry in admin.people has no roles']);
  for (const as of ['dora', 'alice-of-another-place']) assert.equal((await ask(as, 'GET', '/api/v1/whoami')).status, 401, as);
  const id = await pending();
  assert.equal((await decide(ask, 'bob', 'approve', id)).status, 403);
  const decided = await decide(ask, 'alice', 'approve', id);
  assert.deepEqual([decided.status, decided.json.decidedBy], [200, 'alice']);
  assert.equal((await gateway.logged((entry) => entry.msg === 'Task approved' && entry.task === id)).by, 'alice');
});

test('a token that is shown counts alone, good or not', async (t) => {
  const { ask } = await stage(t);
  const as = (authorization) => ask('alice', 'GET', '/api/v1/whoami', { headers: { authorization } });
  assert.deepEqual((await as(`Bearer ${ADMIN_TOKEN}`)).json.person, 'admin');
  for (const text of ['Bearer wrong', 'Basic YTpi', 'Bearer ', 'Bearer a, Bearer b']) assert.equal((await as(text)).status, 401, text);
});

test('a cookie of no session leaves the certificate in force', async (t) => {
  const { ask } = await stage(t);
  const answer = await ask('alice', 'GET', '/api/v1/whoami', { headers: { cookie: `taskgate=${'0'.repeat(64)}` } });
  assert.deepEqual([answer.status, answer.json.via], [200, 'certificate']);
});

test('nobody approves their own call by another of their credentials', async (t) => {
  const tokens = [{ name: 'alice-ci', person: 'alice', token_sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', roles: ['caller'] }];
  const { ask, admin } = await stage(t, { admin: { tokens } });
  const called = await ask('dora', 'POST', '/api/v1/calls', { body: JSON.stringify({ tool: 'delete_user', arguments: {} }), headers: { authorization: 'Bearer test' } });
  assert.equal(called.status, 201);
  const refused = await decide(ask, 'alice', 'approve', called.json.id);
  assert.equal(refused.status, 403);
  assert.match(refused.json.error.message, /the person that made this call may not approve it/);
  const own = await ask('bob', 'POST', '/api/v1/calls', { body: JSON.stringify({ tool: 'delete_user', arguments: {} }) });
  assert.equal(own.status, 201);
  const approved = await decide(ask, 'alice', 'approve', own.json.id);
  assert.deepEqual([approved.status, approved.json.principal, approved.json.decidedBy], [200, 'admin:bob', 'alice']);
});

test('a page of another site decides nothing by the certificate that the browser shows', async (t) => {
  const { gateway, ask, pending, reload, settings } = await stage(t);
  await reload(settings([ALICE], { public_url: 'https://gate.example', allowed_origins: ['https://tools.example'] }));
  const id = await pending();
  const own = { origin: 'https://gate.example', 'x-taskgate': '1' };
  const rows = [
    { origin: 'https://evil.example' }, { ...own, origin: 'https://evil.example' }, { origin: 'null', 'x-taskgate': '1' },
    { origin: own.origin }, { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'none' }, { referer: 'https://evil.example/' },
    { 'x-taskgate': '1', 'sec-fetch-site': 'same-site' }, { ...own, origin: 'https://tools.example' }, { origin: gateway.adminUrl, 'x-taskgate': '1' },
  ];
  for (const headers of rows) assert.equal((await decide(ask, 'alice', 'reject', id, headers)).status, 403, JSON.stringify(headers));
  assert.equal((await ask('alice', 'GET', `/api/v1/tasks/${id}`)).json.state, 'pending');
  assert.equal((await decide(ask, 'alice', 'reject', id, own)).status, 200, 'the own page');
  assert.equal((await decide(ask, 'alice', 'reject', await pending())).status, 200, 'a program');
});

test('a reload revokes: streams and waits end with it, and the next request is refused', async (t) => {
  const { ask, events, reload, settings, pending } = await stage(t);
  const id = await pending();
  const [alice, bob] = [await events('alice'), await events('bob')];
  const result = ask('alice', 'GET', `/api/v1/tasks/${id}/result?wait=1m`);
  const began = performance.now();
  await reload(settings([{ ...ALICE, certificate: 'CN=alicia' }, BOB]));
  assert.equal(await alice.end(5_000), 'end');
  assert.equal((await result).status, 401);
  assert.ok(performance.now() - began < 8_000, 'before the first keep-alive');
  assert.equal((await ask('alice', 'GET', '/api/v1/whoami')).status, 401);
  await decide(ask, 'alice', 'approve', id);
  assert.equal((await ask('bob', 'GET', `/api/v1/tasks/${id}`)).json.state, 'pending');
  await reload(settings([ALICE, { ...BOB, roles: ['caller'] }]));
  assert.equal(await bob.end(5_000), 'end', 'the role that reads is gone');
});

test('another client_ca ends streams of the old one at once, by token, too', async (t) => {
  const { events, reload, settings, folder, file, ask } = await stage(t);
  const [alice, token] = [await events('alice'), await events('dora', { authorization: `Bearer ${ADMIN_TOKEN}` })];
  fs.writeFileSync(file, new Authority(folder, 'Others').pem);
  await reload(settings([ALICE, BOB, CAROL]));
  assert.equal(await alice.end(5_000), 'end');
  assert.equal(await token.end(5_000), 'end');
  await assert.rejects(ask('alice', 'GET', '/api/v1/whoami'), /unknown ca/);
});

test('without client_ca a certificate is nobody’s, and check says so', async (t) => {
  const { reload, server, tls, gateway, folder } = await stage(t);
  await reload({ admin: { tls: tlsBlock(server), people: [ALICE] } });
  await until(async () => (await exchange(`${gateway.adminUrl}/api/v1/whoami`, { tls: tls('alice') })).status === 401, 'no client is asked');
  const check = async (people, more = {}) => {
    const config = path.join(folder, 'checked.yaml');
    fs.writeFileSync(config, toYaml(configuration({ upstream: 'http://127.0.0.1:9/mcp', store: path.join(folder, 'x.db'), config: { admin: { people, ...more } } })));
    return run(BINARY, ['check', '--config', config], { env: { THOUGHTGATE_ADMIN_TOKEN: 'x' } });
  };
  const rows = [
    [ALICE, 0, /warning: .*admin\.people\[0\]: no client is asked for a certificate, the key has no effect; add admin\.tls\.client_ca/],
    [{ name: 'x', roles: ['viewer'] }, 0, /warning: .*admin\.people\[0\]: the roles are those of a certificate, which is missing/],
    [{ name: 'x', certificate: '/O=Example/CN=x' }, 2, /admin\.people\[0\]\.certificate: .*begins with a slash; write it as CN=alice,O=Example/],
    [{ name: 'x', certificate: 'x' }, 2, /admin\.people\[0\]\.certificate: .*is not the subject of a certificate, such as CN=alice/],
    [{ name: 'x', certificate: 'CN=x, O=Example' }, 2, /admin\.people\[0\]\.certificate: .*has a blank after a comma; write it as CN=alice,O=Example/],
  ];
  for (const [person, code, words] of rows) {
    const { code: found, stderr } = await check([person]);
    assert.equal(found, code, stderr);
    assert.match(stderr, words);
  }
  const { stderr } = await check([CAROL], { tls: tlsBlock(server, { client_ca: path.join(folder, 'clients.pem') }) });
  assert.match(stderr, /warning: .*admin\.people\[0\]: with the certificate alone the person may do nothing; add roles/);
});

test('a certificate that expires under an open connection ends its stream and its rights', async (t) => {
  const { clients, events, shown, ask, gateway, tls } = await stage(t);
  shown.alice = clients.issue('alice-for-moments', { subject: '/CN=alice', usage: 'clientAuth', endsAt: new Date(Date.now() + 10_000) });
  const stream = await events('alice');
  assert.equal((await ask('alice', 'GET', '/api/v1/whoami')).status, 200);
  assert.equal(await stream.end(30_000), 'end');
  await assert.rejects(exchange(`${gateway.adminUrl}/api/v1/whoami`, { tls: tls('alice') }), /expired/);
});

test('the command line needs no token beside a certificate', async (t) => {
  const { gateway, authority, shown, folder, pending } = await stage(t);
  const ca = path.join(folder, 'ca.pem');
  fs.writeFileSync(ca, authority.pem);
  const env = { THOUGHTGATE_ADMIN_URL: gateway.adminUrl, TASKGATE_CA: ca, TASKGATE_CERT: shown.alice.certFile, TASKGATE_KEY: shown.alice.keyFile, TASKGATE_TOKEN: undefined, THOUGHTGATE_ADMIN_TOKEN: undefined, XDG_STATE_HOME: folder };
  const taskgate = (...args) => run(BINARY, args, { cwd: gateway.folder, env });
  const who = await taskgate('whoami');
  assert.deepEqual([who.code, who.stdout], [0, 'person:  alice\nname:    CN=alice\ngroups:  dba\nroles:   approver\nvia:     certificate\n']);
  const id = await pending();
  assert.equal((await taskgate('tasks', 'approve', id)).code, 0);
});
