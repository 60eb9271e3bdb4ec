// TLS toward servers: whom the gateway believes, and what it shows.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Authority } from './lib/certificates.mjs';
import { run } from './lib/child.mjs';
import { BINARY, configuration, temporaryFolder } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { until } from './lib/wait.mjs';
import { toYaml } from './lib/yaml.mjs';

/** A server with a certificate of `servers`; with `demands` it wants one of `clients` in return. */
async function stage(t, { tls, demands = false, ...options } = {}) {
  const folder = temporaryFolder(t, 'taskgate-tls-');
  const servers = new Authority(folder, 'Servers');
  const clients = new Authority(folder, 'Clients');
  const { cert, key } = servers.issue('server');
  const mine = clients.issue('gate', { subject: '/O=Example/CN=gate', usage: 'clientAuth' });
  const upstream = { tls: { cert, key, ...(demands ? { requestCert: true, rejectUnauthorized: true, ca: clients.pem } : {}) } };
  const source = { tls: tls?.({ servers, clients, mine }) };
  const made = await scene(t, { upstream, source, awaitUpstream: false, ...options });
  return { ...made, folder, servers, clients, mine };
}

const pair = ({ certFile, keyFile }) => ({ cert: certFile, key: keyFile });
const outcome = (raw) => raw().send('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }).then(({ message }) => message.error?.code ?? 'reached');

test('a server of an authority that the source names is reached, and nothing changes on the way', async (t) => {
  const { connect, upstream } = await stage(t, { tls: ({ servers }) => ({ ca: servers.file }) });
  const client = await connect();
  assert.deepEqual((await client.result('tools/call', { name: 'read', arguments: { a: 1 } })).structuredContent.arguments, { a: 1 });
  assert.deepEqual(upstream.calls.at(-1).certificate, {}, 'and is shown no certificate');
});

test('a server of an authority that nobody named is not believed', async (t) => {
  const { raw, upstream } = await stage(t);
  assert.equal(await outcome(raw), -32000);
  assert.equal(upstream.requests.length, 0);
});

test('a server of another authority than the one named is not believed', async (t) => {
  const { raw, upstream } = await stage(t, { tls: ({ clients }) => ({ ca: clients.file }) });
  assert.equal(await outcome(raw), -32000);
  assert.equal(upstream.requests.length, 0);
});

test('the certificate of the source is shown to a server that demands one', async (t) => {
  const { connect, upstream } = await stage(t, { demands: true, tls: ({ servers, mine }) => ({ ca: servers.file, ...pair(mine) }) });
  const client = await connect();
  await client.result('tools/call', { name: 'read' });
  assert.equal(upstream.calls.at(-1).certificate.subject.CN, 'gate');
});

test('without it such a server is unreachable, and says why', async (t) => {
  const { raw, upstream } = await stage(t, { demands: true, tls: ({ servers }) => ({ ca: servers.file }) });
  assert.equal(await outcome(raw), -32000);
  assert.equal(upstream.requests.length, 0);
});

test('files that change are read again', async (t) => {
  const folder = temporaryFolder(t);
  const file = path.join(folder, 'believed.pem');
  fs.writeFileSync(file, new Authority(folder, 'Nobody').pem);
  const { raw, servers, gateway } = await stage(t, { tls: () => ({ ca: file }) });
  assert.equal(await outcome(raw), -32000);
  fs.writeFileSync(`${file}.new`, servers.pem);
  fs.renameSync(`${file}.new`, file);
  await until(async () => (await outcome(raw)) === 'reached', 'the server to be believed', { deadline: 8_000 });
  fs.writeFileSync(`${file}.new`, new Authority(folder, 'Other').pem);
  fs.renameSync(`${file}.new`, file);
  gateway.hangUp();
  await until(async () => (await outcome(raw)) === -32000, 'no connection of before to be used', { deadline: 8_000 });
});

test('mistakes are told with their place', async (t) => {
  const folder = temporaryFolder(t);
  const authority = new Authority(folder);
  const [one, two] = [authority.issue('one'), authority.issue('two')];
  const cases = [
    ['https://127.0.0.1:9/mcp', { cert: one.certFile }, /: sources\[0\]\.tls\.key: is missing: a certificate and its key belong together/],
    ['https://127.0.0.1:9/mcp', { key: one.keyFile }, /: sources\[0\]\.tls\.cert: is missing/],
    ['https://127.0.0.1:9/mcp', { cert: one.certFile, key: two.keyFile }, /: sources\[0\]\.tls\.key: .* is not the key of the certificate/],
    ['https://127.0.0.1:9/mcp', { ca: '/nowhere' }, /: sources\[0\]\.tls\.ca: \/nowhere cannot be read: No such file/],
    ['https://127.0.0.1:9/mcp', { ca: one.keyFile }, /: sources\[0\]\.tls\.ca: .* holds no certificate/],
    ['http://127.0.0.1:9/mcp', { ca: authority.file }, /: sources\[0\]\.tls: the source is not called by TLS: its url is not https; write an https url/],
  ];
  for (const [url, tls, words] of cases) {
    const file = path.join(folder, 'config.yaml');
    fs.writeFileSync(file, toYaml(configuration({ upstream: url, store: path.join(folder, 'x.db'), source: { tls } })));
    const { code, stderr } = await run(BINARY, ['check', '--config', file]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, words);
  }
});
