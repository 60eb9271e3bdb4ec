// A release, by scripts/release: the container image is small, without a shell, and runs without rights on a root that is
// read-only; so is that for arm64, by qemu; and all of it is the same bytes wherever it is made.
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
const here = skip ? '' : spawnSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).stdout.trim();
const missingAcross = ['debootstrap', 'qemu-aarch64-static'].find((program) => !has(program));
const skipAcross = skip || (here !== 'amd64' ? `this machine is ${here}, so nothing is built across` : process.getuid() !== 0 ? 'root alone builds for another architecture' : missingAcross ? `${missingAcross} is not here: apt-get install debootstrap qemu-user-static` : false);
const skipRun = skip || (has('bwrap') ? false : 'bwrap is not here: apt-get install bubblewrap');

let folder, one, archive, tree;
const tag = `v${/version: '(.*)'/.exec(readFileSync(path.join(root, 'meson.build'), 'utf8'))[1]}`;
const cache = path.join(root, 'build-cache'); // as long as it is there, the second run is faster
const architectures = [here, ...(skipAcross ? [] : ['arm64'])].flatMap((arch) => ['--arch', arch]);

function good(words, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(words[0], words.slice(1), { encoding: 'utf8', timeout: 3_600_000, maxBuffer: 64 << 20, ...options });
  assert.equal(error ?? status, 0, `${words.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}
const only = (place, pattern) => path.join(place, readdirSync(place).find((name) => pattern.test(name)));
const blob = (name) => path.join(folder, 'tree-oci/blobs/sha256', name.replace('sha256:', ''));
const json = (file) => JSON.parse(readFileSync(file, 'utf8'));

// release NAME: a clone with a tag, and what scripts/release makes of it there.
function release(name, command, words, options) {
  const clone = path.join(folder, name);
  good(['git', 'clone', '--quiet', one ? path.join(folder, 'one') : root, clone]);
  if (!one) good(['git', '-C', clone, 'tag', tag]);
  const out = path.join(folder, `${name} out`);
  good([...command, path.join(clone, 'scripts/release'), tag, '--out', out, '--cache', cache, ...architectures, ...words], options);
  return out;
}
function unpack(file, name) {
  for (const place of [`${name}-oci`, name]) mkdirSync(path.join(folder, place));
  good(['tar', '-xf', file, '-C', path.join(folder, `${name}-oci`)]);
  const [{ Layers: [layer] }] = json(path.join(folder, `${name}-oci/manifest.json`));
  good(['tar', '-xzf', path.join(folder, `${name}-oci`, layer), '-C', path.join(folder, name)]);
  return path.join(folder, name);
}

before(() => {
  if (skip) return;
  folder = mkdtempSync(path.join(tmpdir(), 'taskgate-image-'));
  one = release('one', [], ['--fetch']);
  archive = only(one, new RegExp(`^taskgate-image_.*_${here}\\.tar$`));
  tree = unpack(archive, 'tree');
});
after(() => folder && rmSync(folder, { recursive: true, force: true }));

test('the archive: digests and sizes are true, 40 MB at most, labels, user and health check', { skip }, () => {
  for (const name of readdirSync(path.join(folder, 'tree-oci/blobs/sha256'))) assert.equal(createHash('sha256').update(readFileSync(blob(name))).digest('hex'), name);
  const [entry] = json(path.join(folder, 'tree-oci/index.json')).manifests;
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

test('arm64: what is built across answers initialize under qemu', { skip: skipAcross }, async (t) => {
  const foreign = unpack(only(one, /^taskgate-image_.*_arm64\.tar$/), 'foreign');
  const [{ platform }] = json(path.join(folder, 'foreign-oci/index.json')).manifests;
  assert.equal(platform.architecture, 'arm64');
  const program = ['qemu-aarch64-static', '-L', foreign, path.join(foreign, 'usr/bin/taskgate')];
  const version = JSON.parse(good([...program, 'version', '--json']));
  assert.equal(version.arch, 'arm64');
  assert.match(version.libraries.libpq, /^15\./);
  assert.match(version.libraries.libcurl, /^7\./);
  const upstream = await startUpstream(t, { sessions: false, tools: [tool('get_time')] });
  const place = path.join(folder, 'foreign-state');
  mkdirSync(place);
  const config = path.join(place, 'config.yaml');
  writeFileSync(config, `schema: 1\nsources: [{id: up, kind: mcp, url: "${upstream.url}"}]\ngovernance: {defaults: {action: forward}}\n`);
  const [port, adminPort] = [await freePort(), await freePort()];
  const env = { ...process.env, THOUGHTGATE_OUTBOUND_PORT: String(port), THOUGHTGATE_ADMIN_PORT: String(adminPort), THOUGHTGATE_STORE_PATH: path.join(place, 'taskgate.db') };
  const gateway = spawn(program[0], [...program.slice(1), 'serve', '--config', config], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  gateway.stderr.on('data', (bytes) => (log += bytes));
  const ended = new Promise((resolve) => gateway.on('close', resolve));
  t.after(() => gateway.kill('SIGKILL'));
  await until(() => /taskgate is ready/.test(log), () => `the gateway to serve\n${log}`);
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'ship', version: '1' } };
  const answer = await fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }) });
  assert.equal((await answer.json()).result.protocolVersion, '2025-11-25', log);
  gateway.kill('SIGTERM');
  assert.equal(await ended, 0, log);
});

test('a release is the same bytes from another clone, umask, zone, locale and number of processors, made without a network', { skip: skip || (process.getuid() !== 0 && 'root alone takes the network away') }, () => {
  const bin = path.join(folder, 'bin');
  mkdirSync(bin);
  writeFileSync(path.join(bin, 'getconf'), '#!/bin/sh\ncase $1 in _NPROCESSORS_ONLN) echo 7 ;; *) exec /usr/bin/getconf "$@" ;; esac\n', { mode: 0o755 });
  const elsewhere = { cwd: '/', env: { ...process.env, PATH: `${bin}:${process.env.PATH}`, TZ: 'Asia/Kathmandu', LC_ALL: 'C', LANG: 'de_DE.UTF-8', TASKGATE_H2O_SOURCE: '' } };
  const two = release('some other clone', ['unshare', '--net', 'sh', '-c', 'umask 077; exec "$0" "$@"'], [], elsewhere);
  const names = readdirSync(one);
  assert.deepEqual(readdirSync(two), names);
  assert.deepEqual(names.filter((name) => spawnSync('cmp', [path.join(one, name), path.join(two, name)]).status !== 0), []);
  const kinds = [/^h2o_.*\.orig\.tar\.xz$/, /^taskgate-[\d.]+\.tar\.gz$/, /^taskgate-chart-.*\.tgz$/, /^taskgate_.*\.deb$/, /^taskgate-dbgsym_.*\.deb$/, /^taskgate_.*\.cdx\.json$/, /^taskgate_.*\.buildinfo$/, /^taskgate-image_.*\.tar$/];
  for (const kind of kinds) assert.ok(names.some((name) => kind.test(name)), String(kind));
  good(['sha256sum', '--check', '--quiet', 'SHA256SUMS'], { cwd: one });
  assert.equal(readFileSync(path.join(one, 'SHA256SUMS'), 'utf8').trim().split('\n').length, names.length - 1);
});

test('a release without a network and with an empty cache says what is missing; so does one of no tag', { skip: skip || (process.getuid() !== 0 && 'root alone takes the network away') }, () => {
  const words = ['--out', path.join(folder, 'none'), '--cache', path.join(folder, 'empty')];
  const refused = (...tag) => spawnSync(path.join(folder, 'one/scripts/release'), [...tag, ...words], { encoding: 'utf8', env: { ...process.env, TASKGATE_H2O_SOURCE: '' } });
  const { status, stderr } = refused(tag);
  assert.equal(status, 1);
  assert.match(stderr, /libh2o's source is not in \S+empty; once with --fetch puts it there/);
  assert.match(refused('v9').stderr, /release: there is no tag v9/);
  assert.equal(existsSync(path.join(folder, 'none/SHA256SUMS')), false);
});
