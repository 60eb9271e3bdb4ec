// The navigation of docs/site.yml has each document once. The whole site is built by tests/integration/docs_site.test.mjs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { files, read } from './lib/documents.mjs';

test('docs/site.yml has each document once, and no other', () => {
  const named = [...read('docs/site.yml').matchAll(/^ +- ([\w/-]+\.md)$/gm)].map(([, name]) => name);
  assert.deepEqual(named.toSorted(), [...new Set(named)].sort(), 'once');
  const outside = ['changes.md', 'chart.md', 'example-server.md', 'index.md', 'integration-tests.md', 'reporting.md'];
  const documents = files('.md').filter((name) => name.startsWith('docs/')).map((name) => name.slice('docs/'.length));
  assert.deepEqual(named.filter((name) => !outside.includes(name)).sort(), documents.sort());
});
