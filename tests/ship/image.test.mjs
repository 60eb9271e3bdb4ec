// The container image: small, without a shell, runs without rights on a root that is read-only; and package and image are
// the same bytes wherever they are made.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { before, after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort } from '../integration/lib/ports.mjs';
import { startUpstream, tool } from '../integration/lib/upstream.mjs';
import { until } from '../integration/lib/wait.mjs';

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const has = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const missing = ['dpkg-buildpackage', 'dh', 'apt-get', 'readelf'].find((program) => !has(program));
const skip = missing ? `${missing} is not here: apt-get install debhelper devscripts` : false;
const skipRun = skip || (has('bwrap') ? false : 'bwrap is not here: apt-get install bubblewrap');

let folder, archive, tree;

function good(words, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(words[0], words.slice(1), { encoding: 'utf8', timeout: 800_000, maxBuffer: 64 << 20, ...options });
  assert.equal(error ?? status, 0, `${words.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}
const only = (place, pattern) => path.join(place, readdirSync(place).find((name) => pattern.test(name)));
const blob = (name) => path.join(folder, 'oci/blobs/sha256', name.replace('sha256:', ''));
const json = (file) => JSON.parse(readFileSync(file, 'utf8'));

before(() => {
  if (skip) return;
  folder = mkdtempSync(path.join(tmpdir(), 'taskgate-image-'));
  good([path.join(root, 'scripts/package'), '--out', path.join(folder, 'one')]);
  good([path.join(root, 'scripts/image'), '--package', only(path.join(folder, 'one'), /^taskgate_.*\.deb$/), '--out', path.join(folder, 'one')]);
  archive = only(path.join(folder, 'one'), /^taskgate-image_.*\.tar$/);
  tree = path.join(folder, 'tree');
  for (const place of ['oci', 'tree']) mkdirSync(path.join(folder, place));
  good(['tar', '-xf', archive, '-C', path.join(folder, 'oci')]);
  const [{ Layers: [layer] }] = json(path.join(folder, 'oci/manifest.json'));
  good(['tar', '-xzf', path.join(folder, 'oci', layer), '-C', tree]);
});
after(() => folder && rmSync(folder, { recursive: true, force: true }));

test('the archive: digests and sizes are true, 40 MB at most, labels, user and health check', { skip }, () => {
  for (const name of readdirSync(path.join(folder, 'oci/blobs/sha256'))) assert.equal(createHash('sha256').update(readFileSync(blob(name))).digest('hex'), name);
  const [entry] = json(path.join(folder, 'oci/index.json')).manifests;
  const manifest = json(blob(entry.digest));
  for (const part of [entry, manifest.config, ...manifest.layers]) assert.equal(statSync(blob(part.digest)).size, part.size);
  assert.ok(manifest.layers[0].size < 40e6, String(manifest.layers[0].size));
  const { config, architecture } = json(blob(manifest.config.digest));
  assert.deepEqual(entry.platform, { architecture, os: 'linux' });
  assert.equal(config.User, '7467:7467');
  assert.deepEqual(config.Healthcheck.Test, ['CMD', '/usr/bin/taskgate', 'health']);
  assert.equal(config.Labels['org.opencontainers.image.revision'], good(['git', '-C', root, 'rev-parse', 'HEAD']).trim());
});

test('the files: no shell, nothing setuid, certificates, a licence and an entry for scanners for each package', { skip }, () => {
  assert.deepEqual(readdirSync(path.join(tree, 'usr/bin')), ['taskgate']);
  assert.equal(good(['find', tree, '-perm', '/6000']), '');
  assert.match(readFileSync(path.join(tree, 'etc/ssl/certs/ca-certificates.crt'), 'utf8'), /BEGIN CERTIFICATE/);
  const packages = readdirSync(path.join(tree, 'var/lib/dpkg/status.d'));
  for (const name of ['libc6', 'libcurl4', 'libpq5', 'libssl3', 'taskgate']) assert.ok(packages.includes(name), name);
  for (const name of packages) {
    assert.ok(existsSync(path.join(tree, 'usr/share/doc', name, 'copyright')), name);
    assert.match(readFileSync(path.join(tree, 'var/lib/dpkg/status.d', name), 'utf8'), new RegExp(`^Package: ${name.replaceAll('+', '\\+')}$[^]*^Version: `, 'm'));
  }
});

test('it serves as 7467 without a capability on a root that is read-only, is asked for its health, and ends at SIGTERM', { skip: skipRun }, async (t) => {
  const upstream = await startUpstream(t, { sessions: false, tools: [tool('get_time')] });
  const state = path.join(folder, 'state');
  mkdirSync(state);
  writeFileSync(path.join(folder, 'config.yaml'), `schema: 1\nsources: [{id: up, kind: mcp, url: "${upstream.url}"}]\ngovernance: {defaults: {action: forward}}\n`);
  const [port, adminPort] = [await freePort(), await freePort()];
  const inside = ['--unshare-user', '--uid', '7467', '--gid', '7467', '--cap-drop', 'ALL', '--ro-bind', tree, '/', '--bind', state, '/var/lib/taskgate', '--ro-bind', path.join(folder, 'config.yaml'), '/etc/thoughtgate/config.yaml', '--tmpfs', '/tmp', '--proc', '/proc', '--dev', '/dev', '--clearenv', '--setenv', 'THOUGHTGATE_OUTBOUND_PORT', String(port), '--setenv', 'THOUGHTGATE_ADMIN_PORT', String(adminPort), '--', '/usr/bin/taskgate'];
  const gateway = spawn('bwrap', ['--die-with-parent', ...inside, 'serve', '--config', '/etc/thoughtgate/config.yaml'], { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  gateway.stderr.on('data', (bytes) => (log += bytes));
  const ended = new Promise((resolve) => gateway.on('close', resolve));
  t.after(() => gateway.kill('SIGKILL'));
  await until(() => /taskgate is ready/.test(log), () => `the gateway to serve\n${log}`);
  good(['bwrap', ...inside, 'health', '--ready', `http://127.0.0.1:${adminPort}`]);
  assert.match(good(['bwrap', ...inside, 'version', '--json']), /"libpq":"15\./);
  const answer = await fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_time', arguments: {} } }) });
  assert.ok((await answer.json()).result.content, log);
  // The program is a child of bwrap's, which passes no signals on.
  const children = good(['pgrep', '-P', String(gateway.pid)]).trim();
  process.kill(Number(children.split('\n')[0]), 'SIGTERM');
  await ended;
  assert.match(log, /"msg":"Stopped"/);
});

test('package and image are the same bytes from another folder, umask, zone and locale', { skip }, () => {
  const clone = path.join(folder, 'some other clone');
  good(['git', 'clone', '--quiet', root, clone]);
  const two = path.join(folder, 'two');
  const elsewhere = { cwd: '/', env: { ...process.env, TZ: 'Asia/Kathmandu', LC_ALL: 'C', LANG: 'de_DE.UTF-8' } };
  const differently = (command) => good(['sh', '-c', `umask 077; ${command}`], elsewhere);
  differently(`'${clone}/scripts/package' --out ${two}`);
  const deb = only(two, /^taskgate_.*\.deb$/);
  assert.ok(readFileSync(deb).equals(readFileSync(path.join(folder, 'one', path.basename(deb)))), 'the packages differ');
  differently(`'${clone}/scripts/image' --package ${deb} --out ${two}`);
  assert.ok(readFileSync(only(two, /^taskgate-image_/)).equals(readFileSync(archive)), 'the images differ');
});
