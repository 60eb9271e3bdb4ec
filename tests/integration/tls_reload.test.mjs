// Certificates that change while the gateway runs, and those that were wrong from the start.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { test } from 'node:test';
import { Authority, gatewayCertificates, tlsBlock } from './lib/certificates.mjs';
import { run } from './lib/child.mjs';
import { BINARY, configuration, temporaryFolder } from './lib/gateway.mjs';
import { exchange, trust } from './lib/http.mjs';
import { defer } from './lib/lifetime.mjs';
import { scene } from './lib/scene.mjs';
import { until, within } from './lib/wait.mjs';
import { toYaml } from './lib/yaml.mjs';

/** A gateway whose files `live.pem` and `live.key` the test replaces. */
async function renewable(t, { proxy = {}, admin = {}, ...options } = {}) {
  const folder = temporaryFolder(t, 'taskgate-tls-');
  const { authority, server } = gatewayCertificates(folder);
  const live = { certFile: path.join(folder, 'live.pem'), keyFile: path.join(folder, 'live.key') };
  const install = ({ cert, key }) => {
    for (const [file, text] of [[live.certFile, cert], [live.keyFile, key]]) {
      if (text === undefined) continue;
      fs.writeFileSync(`${file}.new`, text);
      fs.renameSync(`${file}.new`, file);
    }
  };
  install(server);
  const tls = { proxy: { tls: tlsBlock(live, proxy) }, admin: { tls: tlsBlock(live, admin) } };
  const stage = await scene(t, { ...options, config: tls });
  return { ...stage, folder, authority, server, live, install };
}

/** The common name that the port shows to a new connection. */
const shown = (url) =>
  exchange(`${url}/nothing`, { tls: { session: undefined } }).then(({ socket }) => socket.getPeerCertificate().subject.CN);

test('a renewed pair is shown within 5 s without a signal, and connections and streams live on', async (t) => {
  const { gateway, admin, authority, install } = await renewable(t);
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  defer(t, () => agent.destroy());
  const health = async () => {
    const answer = await exchange(`${gateway.adminUrl}/health`, { agent });
    return [answer.status, answer.socket.localPort, answer.socket.getPeerCertificate().subject.CN];
  };
  const before = await health();
  assert.equal(before[2], 'server');
  const events = await admin.events();
  install(authority.issue('renewed', { endsAt: new Date(Date.now() + 86_400_000) }));
  await until(async () => (await shown(gateway.adminUrl)) === 'renewed', 'the new certificate on the admin port', { deadline: 6_000 });
  await until(async () => (await shown(gateway.origin)) === 'renewed', 'and on the proxy port');
  assert.deepEqual(await health(), before, 'the connection of before, with the certificate of before');
  assert.equal(events.over, null, 'the stream is open');
  const expires = (await admin.metrics())['thoughtgate_tls_certificate_expires_timestamp{port="proxy"}'];
  assert.ok(Math.abs(expires - Date.now() / 1000 - 86_400) < 600, `expires at ${expires}`);
  events.abort();
});

test('SIGHUP reads the pair at once', async (t) => {
  const { gateway, authority, install } = await renewable(t);
  install(authority.issue('renewed'));
  gateway.hangUp();
  await until(async () => (await shown(gateway.origin)) === 'renewed', 'the new certificate');
});

test('once a reload is logged, each of four workers shows the new pair and demands the new authority', async (t) => {
  const folder = temporaryFolder(t);
  const { authority, server } = gatewayCertificates(folder);
  const clients = [new Authority(folder, 'First'), new Authority(folder, 'Second')];
  const agents = clients.map((each) => each.issue('agent', { usage: 'clientAuth' }));
  // One file changes, by rename: no look of the gateway at its files can see a half of it.
  const settings = (pair, client) => ({ config: { workers: 4, proxy: { tls: tlsBlock(pair, { client_ca: client.file }) } } });
  const { gateway } = await scene(t, { ...settings(server, clients[0]), awaitUpstream: false });
  const visit = ({ cert, key }) =>
    exchange(`${gateway.origin}/nothing`, { tls: { ca: authority.pem, cert, key } }).then(
      ({ status, socket }) => `${status} ${socket.getPeerCertificate().subject.CN}`,
      (error) => error.message.match(/unknown ca/)?.[0] ?? error.message,
    );
  const reloads = () => gateway.logs.filter(({ msg }) => msg === 'Configuration reloaded').length;
  for (let round = 1; round <= 3; round++) {
    gateway.writeConfig(settings(authority.issue(`pair-${round}`), clients[round % 2]));
    await until(() => reloads() === round, `reload ${round}`, { every: 1 });
    // The client's port chooses the worker. That 24 connections miss one of the four has a chance of 1 in 250.
    const kinds = Array.from({ length: 24 }, (_, i) => i % 2);
    const seen = await Promise.all(kinds.map((kind) => visit(agents[kind])));
    assert.deepEqual(seen, kinds.map((kind) => (kind === round % 2 ? `404 pair-${round}` : 'unknown ca')), `round ${round}`);
  }
});

test('a pair that does not fit keeps the old one, and says so in /ready, the log and a metric', async (t) => {
  const { gateway, admin, authority, live, install } = await renewable(t);
  const configError = async () => (await admin.get('/ready')).json.config_error;
  const failed = async () => (await admin.metrics())['thoughtgate_config_load_total{status="error"}'] ?? 0;
  const next = authority.issue('next');
  install({ cert: next.cert });
  const told = (words, deadline) => gateway.logged(({ msg, error }) => /^Configuration not reloaded/.test(msg) && words.test(error), deadline);
  const error = await until(configError, 'the error in /ready');
  assert.match(error, /^\S*config\.yaml:\d+:\d+: proxy\.tls\.key\n\S*config\.yaml:\d+:\d+: admin\.tls\.key$/, 'places alone');
  await told(/config\.yaml:\d+:\d+: proxy\.tls\.key: .*live\.key is not the key of the certificate/);
  assert.equal(await shown(gateway.origin), 'server');
  assert.equal((await gateway.logged(/^Configuration not reloaded/)).level, 'error');
  assert.ok((await failed()) >= 1);
  install({ key: next.key });
  await until(async () => (await shown(gateway.origin)) === 'next', 'the whole pair');
  assert.equal(await configError(), undefined);
  for (const [text, words] of [
    ['', /holds no certificate in PEM/],
    ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', /holds a certificate that cannot be read/],
  ]) {
    install({ cert: text });
    await told(words);
    assert.equal(await shown(gateway.origin), 'next');
  }
  install(next);
  await until(async () => (await configError()) === undefined, 'the error to go');
  fs.renameSync(live.keyFile, `${live.keyFile}.away`);
  await told(/live\.key: the file is gone/, 15_000);
  await until(configError, 'the missing key in /ready');
  assert.equal(await shown(gateway.adminUrl), 'next');
  fs.renameSync(`${live.keyFile}.away`, live.keyFile);
  await until(async () => (await configError()) === undefined, 'the error to go');
});

test('another client_ca: clients of the old one are let in no more, and their connections end', async (t) => {
  const folder = temporaryFolder(t);
  const [first, second] = [new Authority(folder, 'First'), new Authority(folder, 'Second')];
  const file = path.join(folder, 'clients.pem');
  fs.writeFileSync(file, first.pem);
  const { gateway, authority } = await renewable(t, { proxy: { client_ca: file }, awaitUpstream: false });
  const old = first.issue('agent', { usage: 'clientAuth' });
  trust({ ca: authority.pem });
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca: authority.pem, cert: old.cert, key: old.key });
  defer(t, () => agent.destroy());
  const answer = await exchange(`${gateway.origin}/nothing`, { agent });
  assert.equal(answer.status, 404);
  const { socket } = answer;
  const ended = new Promise((resolve) => socket.once('close', resolve));
  fs.writeFileSync(`${file}.new`, second.pem);
  fs.renameSync(`${file}.new`, file);
  await within(ended, 'the idle connection to end');
  await gateway.logged(/^Configuration reloaded$/);
  await assert.rejects(exchange(`${gateway.origin}/nothing`, { tls: { ca: authority.pem, cert: old.cert, key: old.key } }), /unknown ca/);
  const fresh = second.issue('agent', { usage: 'clientAuth' });
  assert.equal((await exchange(`${gateway.origin}/nothing`, { tls: { ca: authority.pem, cert: fresh.cert, key: fresh.key } })).status, 404);
});

test('TLS comes and goes with the configuration', async (t) => {
  const { gateway, live, admin } = await renewable(t);
  gateway.writeConfig({ config: { admin: { tls: tlsBlock(live) } } });
  gateway.hangUp();
  const plain = gateway.origin.replace('https:', 'http:');
  await until(async () => (await exchange(`${plain}/nothing`)).status === 404, 'plain HTTP');
  assert.equal((await admin.get('/health')).status, 200);
  gateway.writeConfig({ config: { proxy: { tls: tlsBlock(live) }, admin: { tls: tlsBlock(live) } } });
  gateway.hangUp();
  await until(async () => (await exchange(`${plain}/nothing`)).status === 400, 'no plain HTTP');
  assert.equal(await shown(gateway.origin), 'server');
});

test('mistakes in the file are told with their place, by check and at the start: exit 2', async (t) => {
  const folder = temporaryFolder(t);
  const authority = new Authority(folder);
  const [one, two] = [authority.issue('one'), authority.issue('two')];
  const write = (name, text) => {
    fs.writeFileSync(path.join(folder, name), text);
    return path.join(folder, name);
  };
  const sealed = write('sealed.key', '-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGb\n-----END ENCRYPTED PRIVATE KEY-----\n');
  const cases = [
    [{ cert: '/nowhere.pem', key: one.keyFile }, /:\d+:\d+: proxy\.tls\.cert: \/nowhere\.pem cannot be read: No such file or directory$/m],
    [{ cert: one.certFile, key: '/nowhere.key' }, /: proxy\.tls\.key: \/nowhere\.key cannot be read: No such file/],
    [{ cert: one.certFile, key: folder }, /: proxy\.tls\.key: .* cannot be read: Is a directory/],
    [{ cert: one.certFile, key: two.keyFile }, /: proxy\.tls\.key: .* is not the key of the certificate$/m],
    [{ cert: one.keyFile, key: one.keyFile }, /: proxy\.tls\.cert: .* holds no certificate in PEM$/m],
    [{ cert: one.certFile, key: one.certFile }, /: proxy\.tls\.key: .* holds no private key in PEM$/m],
    [{ cert: one.certFile, key: sealed }, /: proxy\.tls\.key: .* (is protected by a passphrase|holds no private key)/],
    [{ cert: one.certFile, key: one.keyFile, client_ca: '/nowhere.ca' }, /: proxy\.tls\.client_ca: \/nowhere\.ca cannot be read/],
    [{ cert: one.certFile, key: one.keyFile, client_ca: one.keyFile }, /: proxy\.tls\.client_ca: .* holds no certificate/],
    [{ cert: one.certFile, key: one.keyFile, min_version: '1.1' }, /: proxy\.tls\.min_version: "1\.1" is not a version of TLS that is offered/],
    [{ cert: one.certFile }, /: proxy\.tls\.key: the key is missing/],
    [{ cert: one.certFile, key: one.keyFile, ciphers: 'x' }, /: proxy\.tls\.ciphers: unknown key/],
  ];
  for (const [tls, words] of cases) {
    const config = write('config.yaml', toYaml(configuration({ upstream: 'http://127.0.0.1:9/mcp', store: path.join(folder, 'x.db'), config: { proxy: { tls } } })));
    for (const command of ['check', 'serve']) {
      const { code, stderr } = await run(BINARY, [command, '--config', config], { env: { THOUGHTGATE_OUTBOUND_PORT: '0', THOUGHTGATE_ADMIN_PORT: '0' } });
      assert.equal(code, 2, `${command}: ${stderr}`);
      assert.match(stderr, words);
      assert.doesNotMatch(stderr, /PRIVATE KEY/);
    }
  }
  const old = authority.issue('old', { endsAt: new Date(Date.now() - 86_400_000) });
  const relative = { cert: path.basename(old.certFile), key: `./${path.basename(old.keyFile)}` };
  const config = write('config.yaml', toYaml(configuration({ upstream: 'http://127.0.0.1:9/mcp', store: path.join(folder, 'x.db'), config: { admin: { tls: relative } } })));
  const { code, stderr } = await run(BINARY, ['check', '--config', config]);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /warning: .*admin\.tls\.cert: the certificate has expired/);
});
