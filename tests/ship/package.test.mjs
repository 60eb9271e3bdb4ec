// The Debian package: lintian finds nothing, and on small systems of Debian 12 and 13 it installs, runs, keeps a changed
// configuration, and leaves nothing behind.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { before, after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Authority } from '../integration/lib/certificates.mjs';
import { freePort } from '../integration/lib/ports.mjs';
import { startUpstream, tool } from '../integration/lib/upstream.mjs';
import { until } from '../integration/lib/wait.mjs';

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const has = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const missing = ['dpkg-buildpackage', 'dh', 'lintian', 'hardening-check', 'openssl'].find((program) => !has(program));
const skip = missing ? `${missing} is not here: apt-get install debhelper devscripts lintian openssl` : false;
const skipRoots = skip || (process.getuid() !== 0 ? 'only root makes small systems' : !has('debootstrap') && 'debootstrap is not here: apt-get install debootstrap');

let folder, packages, deb;

function run(command, ...words) {
  const { status, stdout, stderr, error } = spawnSync(command, words, { encoding: 'utf8', timeout: 3_600_000, maxBuffer: 256 << 20, cwd: folder });
  return { status: error ? -1 : status, stdout: stdout ?? '', stderr: error ? String(error) : stderr };
}
function good(command, ...words) {
  const { status, stdout, stderr } = run(command, ...words);
  assert.equal(status, 0, `${command} ${words.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}

before(() => {
  if (skip) return;
  folder = mkdtempSync(path.join(tmpdir(), 'taskgate-package-'));
  // From a clone whose path has a blank, and from another working directory.
  good('git', 'clone', '--quiet', root, 'a clone');
  good('a clone/scripts/package', '--out', 'the packages');
  packages = path.join(folder, 'the packages');
  deb = path.join(packages, readdirSync(packages).find((name) => /^taskgate_.*\.deb$/.test(name)));
});
after(() => folder && rmSync(folder, { recursive: true, force: true }));

test('lintian finds neither errors nor warnings', { skip }, () => {
  const changes = readdirSync(packages).find((name) => name.endsWith('.changes'));
  assert.equal(good('lintian', '--allow-root', '--fail-on', 'error,warning', path.join(packages, changes)).trim(), '');
});

test('the program is hardened, and carries its own libh2o', { skip }, () => {
  good('dpkg-deb', '--extract', deb, path.join(folder, 'content'));
  const program = path.join(folder, 'content/usr/bin/taskgate');
  const found = run('hardening-check', program).stdout;
  for (const what of ['Position Independent Executable', 'Stack protected', 'Fortify Source functions', 'Read-only relocations', 'Immediate binding', 'Stack clash protection']) assert.match(found, new RegExp(`${what}: yes`));
  const machine = good('uname', '-m').trim();
  if (machine === 'x86_64') assert.ok(good('objdump', '-d', program).split('endbr64').length > 1000);
  assert.doesNotMatch(good('readelf', '-d', program), /libh2o/);
  assert.ok(good('ldd', program).trim().split('\n').length <= 13, 'libpq and libcurl are loaded when they are needed');
  for (const file of ['usr/share/man/man5/taskgate.yaml.5.gz', 'usr/share/bash-completion/completions/taskgate', 'lib/systemd/system/taskgate.service', 'usr/lib/sysusers.d/taskgate.conf', 'usr/share/doc/taskgate/copyright']) assert.ok(existsSync(path.join(folder, 'content', file)), file);
});

test('libh2o inside is hardened like the program', { skip }, () => {
  const place = path.join(folder, 'debug');
  good('dpkg-deb', '--extract', path.join(packages, readdirSync(packages).find((name) => name.startsWith('taskgate-dbgsym_'))), place);
  const debug = good('find', place, '-name', '*.debug').trim();
  const units = [...good('readelf', '--debug-dump=info', '--dwarf-depth=1', debug).matchAll(/DW_AT_producer.*: (GNU .*)\n.*\n.*DW_AT_name.*: (.*)/g)].filter(([, , name]) => name.includes('/h2o-'));
  assert.ok(units.length > 40, String(units.length));
  for (const [, options, name] of units) assert.deepEqual(options.match(/ -O\w*/g), [' -O3'], name);
  const protection = { x86_64: '-fcf-protection=full', aarch64: '-mbranch-protection=standard' }[good('uname', '-m').trim()];
  for (const [, options, name] of units) for (const option of ['-fstack-protector-strong', '-fstack-clash-protection', protection]) assert.ok(options.split(' ').includes(option), `${name}: ${option}`);

  // And so is its code after the optimiser of the whole program: canaries, checked copies, landing pads.
  const functions = [...good('nm', '-S', debug).matchAll(/^([0-9a-f]+) ([0-9a-f]+) [tT] h2o_/gm)].map(([, at, size]) => [Number(`0x${at}`), Number(`0x${size}`)]);
  const lines = [...good('objdump', '-d', '--no-show-raw-insn', path.join(folder, 'content/usr/bin/taskgate')).matchAll(/^ *([0-9a-f]+):\t(.*)$/gm)].map(([, at, text]) => [Number(`0x${at}`), text]);
  const bodies = functions.map(([at, size]) => lines.filter(([place]) => place >= at && place < at + size).map(([, text]) => text));
  const count = (what) => bodies.filter((body) => body.some((text) => what.test(text))).length;
  assert.ok(bodies.length > 60, String(bodies.length));
  assert.ok(count(/__stack_chk_fail/) >= 10, `${count(/__stack_chk_fail/)} functions with a canary`);
  assert.ok(count(/__mem(cpy|set|move)_chk/) >= 1);
  const pads = bodies.filter(([first]) => /endbr64|bti|paciasp/.test(first)).length;
  assert.ok(pads >= 40, `${pads} functions with a landing pad`);
});

test('the bill of materials is valid, and names each library that is linked or loaded, and h2o with its patch', { skip: skip || !has('python3') && 'python3 is not here' }, () => {
  const file = path.join(folder, 'content/usr/share/taskgate/sbom.cdx.json');
  const { components } = JSON.parse(readFileSync(file, 'utf8'));
  const named = components.flatMap(({ properties }) => properties?.[0].value.split(' ') ?? []);
  const linked = [...good('readelf', '-d', path.join(folder, 'content/usr/bin/taskgate')).matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, soname]) => soname);
  for (const soname of [...linked, 'libcurl.so.4', 'libpq.so.5']) assert.ok(named.includes(soname), soname);
  // And what these need in turn, as the loader finds it, and nothing else.
  const libraries = path.join('/usr/lib', good('dpkg-architecture', '-qDEB_HOST_MULTIARCH').trim());
  const files = [path.join(folder, 'content/usr/bin/taskgate'), ...['libcurl.so.4', 'libpq.so.5'].map((name) => path.join(libraries, name))];
  const loaded = files.flatMap((each) => [...good('ldd', each).matchAll(/^\s(\S+)/gm)].map(([, name]) => path.basename(name))).filter((name) => !/^linux-vdso/.test(name));
  assert.deepEqual([...new Set(named)].sort(), [...new Set([...loaded, 'libcurl.so.4', 'libpq.so.5'])].sort());
  const h2o = components.find(({ name }) => name === 'h2o');
  assert.match(readFileSync(path.join(root, 'subprojects/h2o.wrap'), 'utf8'), new RegExp(`source_hash = ${h2o.hashes[0].content}\n`));
  assert.ok(existsSync(path.join(root, h2o.pedigree.patches[0].diff.url)));
  for (const { name, version, licenses } of components) assert.ok(version && licenses[0].license, name);
  good('python3', '-m', 'venv', 'venv');
  good('venv/bin/pip', 'install', '--quiet', 'cyclonedx-python-lib[json-validation]');
  const validate = 'import sys\nfrom cyclonedx.validation.json import JsonStrictValidator\nfrom cyclonedx.schema import SchemaVersion\nsys.exit(JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read()))';
  good('venv/bin/python', '-c', validate, file);
});

test('the image is made from there, too', { skip }, () => {
  const [made] = good('a clone/scripts/image', '--package', `the packages/${path.basename(deb)}`, '--out', 'the image').trim().split('\n').slice(-1);
  assert.match(good('tar', '-tf', path.resolve(folder, made)), /^\.\/manifest\.json$/m);
});

for (const release of ['bookworm', 'trixie']) {
  test(`${release}: install, a call to an https server, a changed configuration stays, purge leaves nothing`, { skip: skipRoots }, async (t) => {
    const system = path.join(folder, release);
    good('debootstrap', '--variant=minbase', release, system, 'http://deb.debian.org/debian');
    const inside = (...words) => good('chroot', system, ...words);
    t.after(() => run('umount', path.join(system, 'proc')));
    good('mount', '-t', 'proc', 'proc', path.join(system, 'proc'));
    const before = new Set(inside('find', '/', '-xdev', '(', '-path', '/proc', '-o', '-path', '/var/cache', '-o', '-path', '/var/log', '-o', '-path', '/var/lib/apt', '-o', '-path', '/var/lib/dpkg', ')', '-prune', '-o', '-print').split('\n'));
    cpSync(deb, path.join(system, 'taskgate.deb'));
    inside('apt-get', 'update', '-qq');
    inside('env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', 'install', '-y', '-qq', '--no-install-recommends', '/taskgate.deb');
    assert.equal(JSON.parse(inside('taskgate', 'version', '--json')).libraries.h2o, '2.2.5');
    assert.match(inside('getent', 'passwd', 'taskgate'), /^taskgate:/);
    inside('taskgate', 'check');

    const authority = new Authority(folder, `Authority ${release}`);
    const upstream = await startUpstream(t, { tls: authority.issue('far'), sessions: false, tools: [tool('get_time')] });
    cpSync(authority.file, path.join(system, 'etc/thoughtgate/ca.pem'));
    const config = path.join(system, 'etc/thoughtgate/config.yaml');
    writeFileSync(config, `schema: 1\nsources:\n  - {id: far, kind: mcp, url: "${upstream.url}", tls: {ca: /etc/thoughtgate/ca.pem}}\ngovernance: {defaults: {action: forward}}\n`);
    const [port, adminPort] = [await freePort(), await freePort()];
    const gateway = spawn('chroot', ['--userspec=taskgate:taskgate', system, 'env', `THOUGHTGATE_OUTBOUND_PORT=${port}`, `THOUGHTGATE_ADMIN_PORT=${adminPort}`, 'THOUGHTGATE_STORE_PATH=/tmp/taskgate.db', 'taskgate', 'serve'], { stdio: ['ignore', 'ignore', 'pipe'] });
    let log = '';
    gateway.stderr.on('data', (bytes) => (log += bytes));
    const ended = new Promise((resolve) => gateway.on('close', resolve));
    t.after(() => gateway.kill());
    await until(() => /taskgate is ready/.test(log), () => `the gateway to serve\n${log}`);
    assert.equal(run('chroot', system, 'taskgate', 'health', `http://127.0.0.1:${adminPort}`).status, 0);
    const answer = await fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_time', arguments: {} } }) });
    assert.ok((await answer.json()).result.content, log);
    assert.equal(upstream.calls.length, 1);
    gateway.kill('SIGTERM');
    assert.equal(await ended, 0, log);

    const changed = readFileSync(config, 'utf8');
    inside('dpkg', '--install', '--force-confdef', '--force-confold', '/taskgate.deb');
    assert.equal(readFileSync(config, 'utf8'), changed);
    rmSync(path.join(system, 'etc/thoughtgate/ca.pem'));
    inside('sh', '-c', 'rm -f /tmp/taskgate.db* /tmp/state.key /tmp/admin-token; mkdir -p /var/lib/taskgate; touch /var/lib/taskgate/taskgate.db');
    inside('dpkg', '--purge', 'taskgate');
    const left = inside('find', '/', '-xdev', '(', '-path', '/proc', '-o', '-path', '/var/cache', '-o', '-path', '/var/log', '-o', '-path', '/var/lib/apt', '-o', '-path', '/var/lib/dpkg', ')', '-prune', '-o', '-print').split('\n');
    assert.deepEqual(left.filter((name) => !before.has(name) && /taskgate|thoughtgate/.test(name)), ['/taskgate.deb']);
  });
}
