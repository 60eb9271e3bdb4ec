// The killed mutations: each can still be planted, its test is there, and docs/testing.md lists it by its promise.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { MUTATIONS } from '../mutations/table.mjs';
import { files, read, root } from './lib/documents.mjs';

test('each mutation has its text exactly once, changes it, and names a test that is there', () => {
  const unit = files('.c').filter((name) => name.startsWith('tests/unit/')).map(read).join('\n');
  for (const { name, file, text, replacement, test: killer } of MUTATIONS) {
    assert.equal(read(file).split(text).length, 2, `${name}: ${file} must have the text of the mutation exactly once; tests/mutations/table.mjs has it`);
    assert.notEqual(text, replacement, name);
    if (killer.file) assert.ok(read(killer.file).includes(killer.name), `${name}: ${killer.file} has no test “${killer.name}”`);
    else assert.ok(unit.includes(`START_TEST(${killer.name})`), `${name}: there is no unit test ${killer.name}`);
  }
  assert.equal(new Set(MUTATIONS.map(({ name }) => name)).size, MUTATIONS.length);
});

test('each promise has a mutation: the invariants, each row of the crashes, the bytes, the sealed state', () => {
  const invariants = [...read('docs/architecture.md').matchAll(/^### (\d)\. /gm)].map(([, number]) => `invariant ${number}`);
  const [, crashes] = /^\| Before the crash [^\n]*\n\|[-|]*\n([^]*?)\n\n/m.exec(read('docs/operating.md'));
  const rows = crashes.split('\n').map((row) => `crash: ${row.split('|')[1].trim()}`);
  assert.deepEqual([invariants.length, rows.length], [9, 7]);
  const promises = [...invariants, 'byte for byte', ...rows, 'sealed state'];
  assert.deepEqual([...new Set(MUTATIONS.map(({ promise }) => promise))], promises);
});

test('docs/testing.md has the table: promise, mutation, the test that it turns red', () => {
  const [, part] = /^## Killed mutations\n([^]*?)^## /m.exec(read('docs/testing.md'));
  const listed = [...part.replace(/\s+/g, ' ').matchAll(/- ([^`]*?): `([\w-]+)`, (?:unit `(\w+)`|`([\w./-]+)` “([^”]+)”)/g)];
  const expected = MUTATIONS.map(({ promise, name, test: killer }) => [promise, name, killer.file ?? killer.name, killer.file ? killer.name : '']);
  assert.deepEqual(listed.map(([, promise, name, unit, file, title]) => [promise, name, unit ?? file, title ?? '']), expected);
});

test('tests/mutations/run says at --help what it does, and refuses names that it does not know', () => {
  const run = (...words) => spawnSync('tests/mutations/run', words, { cwd: root, encoding: 'utf8' });
  const help = run('--help');
  assert.deepEqual([help.status, help.stderr], [0, '']);
  for (const line of help.stdout.split('\n')) assert.ok([...line].length <= 80, line);
  assert.equal(run('--list').stdout, MUTATIONS.map(({ name }) => `${name}\n`).join(''));
  assert.equal(run('no-such').status, 2);
});
