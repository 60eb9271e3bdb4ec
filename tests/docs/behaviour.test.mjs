// docs/behaviour.md has each promise once, and comments cite its numbers and published specifications only.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { files, read } from './lib/documents.mjs';

const numbers = [...read('docs/behaviour.md').matchAll(/^- \*\*(\d+\.\d+)\*\* /gm)].map(([, number]) => number);
/* Comments of a file, each on one line: a citation may go over two lines. */
const COMMENT = /\/\*[^]*?\*\/|(?<![^\s;{}])\/\/.*(?:\n\s*\/\/.*)*/g;
const commentsOf = (name) =>
  [...read(name).matchAll(COMMENT)].map(([text]) => text.replace(/\s*\n\s*(?:\*(?!\/)|\/\/)?\s*/g, ' '));
const sources = ['.c', '.h', '.mjs', '.js'].flatMap(files).filter((name) => name !== 'tests/docs/behaviour.test.mjs');

/* Requirements, designs and issues that are not part of the repository, by the names that comments gave them. */
const ELSEWHERE = [
  /\bcontracts? ["“']/i, /\bthe contract\b/i, /\bseed 0\d\d\b/i, /\bseeds?['’]/i, /\bas the seed\b/i,
  /\bdesign (?:invariants?|§)/i, /\breference §/i, /\bissues? #?\d/i, /\bN?F-\d{3}\b/, /\bEC-SEP-\d/, /\bREQ-CORE/,
];

test('the promises are numbered without a gap, and no number occurs twice', () => {
  const sections = [...read('docs/behaviour.md').matchAll(/^## (\d+) /gm)].map(([, section]) => section);
  const of = (section) => numbers.filter((number) => number.startsWith(`${section}.`));
  assert.deepEqual(sections, sections.map((_, i) => String(i + 1)));
  assert.deepEqual(numbers, sections.flatMap((section) => of(section).map((_, i) => `${section}.${i + 1}`)));
});

test('each number that a comment cites exists', () => {
  const CITATION = /\bbehaviour (\d+\.\d+(?:(?:,| and| to) \d+\.\d+)*)/gi;
  const cited = sources.flatMap((name) =>
    commentsOf(name).flatMap((text) =>
      [...text.matchAll(CITATION)].flatMap(([, list]) => list.match(/\d+\.\d+/g).map((number) => [name, number])),
    ),
  );
  assert.ok(cited.length > 80, `${cited.length} citations`);
  assert.deepEqual(cited.filter(([, number]) => !numbers.includes(number)), []);
});

test('no comment cites a document that is not in the repository', () => {
  const found = sources.flatMap((name) =>
    commentsOf(name).filter((text) => ELSEWHERE.some((pattern) => pattern.test(text))).map((text) => `${name}: ${text}`),
  );
  assert.deepEqual(found, []);
});
