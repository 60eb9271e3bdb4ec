// The manual pages: they are well formed, and the first knows every command and option that the program knows.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { exists, read, root } from './lib/documents.mjs';

const page = 'docs/man/taskgate.1';
const program = path.join(root, 'build/taskgate');
const skip = exists('build/taskgate') ? false : 'build/taskgate is not built';

const run = (...words) => spawnSync(words[0], words.slice(1), { cwd: root, encoding: 'utf8', timeout: 20_000 });

for (const each of [page, 'docs/man/taskgate.yaml.5']) test(`groff has nothing to say of ${each}`, { skip: run('groff', '--version').error ? 'groff is not installed' : false }, () => {
  const { status, stderr } = run('groff', '-k', '-man', '-ww', '-Tutf8', '-z', each);
  assert.deepEqual([status, stderr], [0, '']);
});

test('every command and option is in it', { skip }, () => {
  const text = read(page).replaceAll('\\-', '-');
  const tasks = ['list', 'next', 'show', 'result', 'approve', 'reject', 'cancel', 'watch'].map((name) => ['tasks', name]);
  const audit = ['list', 'show', 'export', 'verify', 'report'].map((name) => ['audit', name]);
  const grants = ['list', 'revoke'].map((name) => ['grants', name]);
  const policy = ['authorize', 'parse', 'simulate', 'test'].map((name) => ['policy', name]);
  for (const words of [['serve'], ['check'], ['explain'], ['call'], ['login'], ['logout'], ['whoami'], ['health'], ['page'], ['schema'], ['version'], ['completion'], ['backup'], ...audit, ...grants, ...tasks, ...policy]) {
    const { status, stdout } = run(program, ...words, '--help');
    assert.equal(status, 0, words.join(' '));
    for (const word of words) assert.match(text, new RegExp(`\\b${word}\\b`), words.join(' '));
    for (const [, option] of stdout.matchAll(/^ +(--[a-z-]+)/gm)) {
      assert.ok(text.includes(option), `${words.join(' ')} ${option}`);
    }
  }
});
