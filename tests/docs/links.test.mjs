// The targets of the documents exist: files, headings, tests.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { anchors, exists, files, prose, read } from './lib/documents.mjs';

const documents = files('.md');

for (const document of documents) {
  test(`${document}: every relative link leads somewhere`, () => {
    for (const [, target] of prose(read(document)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [name, anchor] = target.split('#');
      const file = name ? path.join(path.dirname(document), name) : document;
      assert.ok(exists(file), `${target}: there is no ${file}`);
      if (anchor) assert.ok(anchors(read(file)).has(anchor), `${target}: ${file} has no such heading`);
    }
  });

  // `src/…` and so on in code quotes; "…" and "*" stand for something, and are not looked up.
  test(`${document}: every file it names is there`, () => {
    const base = document.startsWith('docs/') || !document.includes('/') ? '' : null;
    if (base === null) return;
    for (const [, name] of read(document).matchAll(/`((?:src|include|tests|scripts|docs|policy|deploy|examples)\/[\w./-]*)`/g)) {
      assert.ok(exists(name), `${name} is named, and is not there`);
    }
  });
}

/** A document's text without its line ends, because a quotation may go over two lines. */
const flowing = (document) => read(document).replace(/\s+/g, ' ');

/** The names of the tests in a file: the first argument of test(), or of a function that calls it. */
function titles(file) {
  const calls = read(file).matchAll(/^ *(?:test|refuses|errors)\((['"`])((?:\\.|(?!\1).)*)\1/gm);
  return [...calls].map(([, , text]) => text.replaceAll("\\'", "'").replaceAll('\\`', '`'));
}

test('docs/security.md has a row for every hostile test', () => {
  const cited = [...flowing('docs/security.md').matchAll(/`(tests\/integration\/hostile\/[\w.-]+)` “([^”]+)”/g)];
  let count = 0;
  for (const file of files('.test.mjs').filter((name) => name.startsWith('tests/integration/hostile/'))) {
    for (const title of titles(file)) {
      const isCited = title === '${name}' || cited.some(([, at, words]) => at === file && title.includes(words));
      assert.ok(isCited, `no row cites ${file} “${title}”`);
      count++;
    }
  }
  assert.ok(count >= 60, `only ${count} hostile tests`);
});

for (const document of documents.filter((name) => /^(README\.md|(docs|examples|tests)\/.*\.md)$/.test(name))) {
  test(`${document}: no line is wider than 120 columns`, () => {
    for (const line of prose(read(document)).split('\n')) {
      assert.ok([...line].length <= 120, `${[...line].length} columns: ${line}`);
    }
  });
}

test('docs/architecture.md has a heading for each invariant, and beneath it the tests that try to break it', () => {
  const [, part] = /^## Invariants[^\n]*\n([^]*?)^## /m.exec(read('docs/architecture.md'));
  const invariants = part.split(/^### /m).slice(1);
  assert.deepEqual(invariants.map((text) => Number.parseInt(text, 10)), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  for (const text of invariants) assert.match(text, /^- (unit `\w+`|`tests\/)/m, text.split('\n')[0]);
});

test('every test that a document cites exists', () => {
  const unit = files('.c').filter((name) => name.startsWith('tests/')).map(read).join('\n');
  let cited = 0;
  for (const document of documents.filter((name) => name.startsWith('docs/'))) {
    for (const [, name] of flowing(document).matchAll(/unit `(\w+)`/g)) {
      assert.ok(unit.includes(`START_TEST(${name})`), `${document}: there is no unit test ${name}`);
      cited++;
    }
    for (const [, file, title] of flowing(document).matchAll(/`(tests\/[\w./-]+\.mjs)` “([^”]+)”/g)) {
      assert.ok(titles(file).some((text) => text.includes(title)), `${document}: ${file} has no test “${title}”`);
      cited++;
    }
  }
  assert.ok(cited >= 20, `only ${cited} tests are cited`);
});
