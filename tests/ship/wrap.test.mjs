// libh2o from its source, as packages and images have it: the unit tests, in which the address sanitizer sees it, too.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const build = path.join(root, 'build-wrap'); // as long as it is there, the second run is faster
const missing = ['meson', 'ninja', 'apt-get'].find((program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0);
const sanitized = ['-Dbuildtype=debug', '-Doptimization=1', '-Db_sanitize=address,undefined', '-Db_lundef=false'];

function good(...words) {
  const { status, stdout, stderr, error } = spawnSync(words[0], words.slice(1), { encoding: 'utf8', timeout: 3_600_000, maxBuffer: 64 << 20, cwd: root });
  assert.equal(error ?? status, 0, `${words.join(' ')}\n${stdout.slice(-20_000)}${stderr}`);
  return stdout;
}

test('the unit tests with libh2o linked statically, under the sanitizers', { skip: missing ? `${missing} is not here` : false }, () => {
  good('scripts/h2o-source');
  if (!existsSync(path.join(build, 'build.ninja'))) good('meson', 'setup', build, '--force-fallback-for=libh2o-evloop', ...sanitized);
  good('ninja', '-C', build);
  assert.doesNotMatch(good('ldd', path.join(build, 'taskgate')), /libh2o/);
  const { status, stdout } = spawnSync('meson', ['test', '-C', build, '--no-rebuild', '--print-errorlogs', '--timeout-multiplier', '6'], { encoding: 'utf8', timeout: 3_600_000, maxBuffer: 64 << 20 });
  assert.equal(status, 0, stdout.slice(-20_000));
});
