// The examples of docs/policies-by-example.md: each policy passes the cases beneath it, which reach all of it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { blocks, exists, read, root } from './lib/documents.mjs';

const program = process.env.TASKGATE_BIN ? path.resolve(process.env.TASKGATE_BIN) : path.join(root, 'build/taskgate');
const skip = process.env.TASKGATE_BIN || exists('build/taskgate') ? false : 'build/taskgate is not built';
const document = 'docs/policies-by-example.md';

/** Of each section its number and its blocks of code. */
const examples = read(document).split(/^## (?=\d+\. )/m).slice(1).map((text) => ({
  title: text.slice(0, text.indexOf('\n')),
  policies: blocks(text).filter(({ language }) => language === 'cedar'),
  cases: blocks(text).filter(({ language }) => language === 'yaml'),
}));

test('there are ten', () => assert.deepEqual(examples.map(({ title }) => Number.parseInt(title, 10)), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]));

for (const { title, policies, cases } of examples) {
  test(title, { skip }, (t) => {
    assert.deepEqual([policies.length, cases.length], [1, 1]);
    const folder = mkdtempSync(path.join(tmpdir(), 'taskgate-docs-'));
    t.after(() => rmSync(folder, { recursive: true }));
    writeFileSync(path.join(folder, 'example.cedar'), policies[0].text);
    writeFileSync(path.join(folder, 'example.test.yaml'), cases[0].text);
    const { status, stdout, stderr } = spawnSync(program, ['policy', 'test', '--strict', folder], { encoding: 'utf8', timeout: 60_000 });
    assert.deepEqual([status, stderr], [0, ''], stdout);
    const decisions = new Set([...cases[0].text.matchAll(/decision: (\w+)/g)].map(([, decision]) => decision));
    assert.ok(decisions.size >= 2, 'more than one thing can come of it');
  });
}
