// deploy/Dockerfile, built by buildah without a registry: the files of scripts/image with the same labels, user, ports and
// health check.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const has = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const missing = ['buildah', 'debootstrap'].find((program) => !has(program));
const skip = missing ? `${missing} is not here: apt-get install buildah debootstrap` : process.getuid() !== 0 && 'root alone builds images here';

function good(...words) {
  const { status, stdout, stderr, error } = spawnSync(words[0], words.slice(1), { encoding: 'utf8', timeout: 3_600_000, maxBuffer: 64 << 20 });
  assert.equal(error ?? status, 0, `${words.join(' ')}\n${stdout}${stderr}`);
  return stdout.trim();
}

test('deploy/Dockerfile makes the image of scripts/image', { skip }, (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'taskgate-dockerfile-'));
  const buildah = (...words) => good('buildah', '--root', path.join(folder, 'storage'), '--runroot', path.join(folder, 'run'), '--storage-driver', 'vfs', ...words);
  t.after(() => {
    buildah('umount', '--all'); // which makes a folder again that is gone
    rmSync(folder, { recursive: true, force: true });
  });

  good('debootstrap', '--variant=minbase', 'bookworm', path.join(folder, 'debian'), 'http://deb.debian.org/debian');
  const base = buildah('from', 'scratch');
  buildah('add', base, path.join(folder, 'debian'), '/');
  buildah('commit', base, 'debian:12-slim');
  good('git', 'clone', '--quiet', root, path.join(folder, 'clone'));
  const revision = good('git', '-C', root, 'rev-parse', 'HEAD');
  buildah('bud', '--isolation', 'chroot', '--layers=false', '--format', 'docker', '--build-arg', `REVISION=${revision}`, '-f', path.join(folder, 'clone/deploy/Dockerfile'), '-t', 'taskgate', path.join(folder, 'clone'));

  const { Docker: { config } } = JSON.parse(buildah('inspect', '--type', 'image', 'taskgate'));
  const [, text] = /<<EOF\n(\{"created"[^]*?)\nEOF/.exec(readFileSync(path.join(root, 'scripts/image'), 'utf8'));
  const expected = JSON.parse(text.replace('$version', /\((.*)\)/.exec(readFileSync(path.join(root, 'debian/changelog'), 'utf8'))[1]).replaceAll('$created', '').replace('$commit', revision)).config;
  for (const part of ['User', 'WorkingDir', 'Entrypoint', 'Cmd', 'ExposedPorts', 'Volumes', 'Healthcheck']) assert.deepEqual(config[part], expected[part], part);
  for (const [name, value] of Object.entries(expected.Labels)) assert.equal(config.Labels[name], value, name);
  assert.ok(config.Env.includes(expected.Env[0]), config.Env.join());

  const tree = buildah('mount', buildah('from', 'localhost/taskgate'));
  assert.deepEqual(readdirSync(path.join(tree, 'usr/bin')), ['taskgate']);
  assert.equal(good('find', tree, '-perm', '/6000'), '');
  const state = statSync(path.join(tree, 'var/lib/taskgate'));
  assert.deepEqual([state.uid, state.gid, state.mode & 0o777], [7467, 7467, 0o700]);
  assert.equal(statSync(path.join(tree, 'tmp')).mode & 0o7777, 0o1777);
  assert.equal(JSON.parse(good('chroot', '--userspec=7467:7467', tree, '/usr/bin/taskgate', 'version', '--json')).libraries.h2o, '2.2.5');
});
