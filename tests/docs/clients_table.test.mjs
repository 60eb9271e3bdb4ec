// docs/clients.md has the table of libraries that scripts/clients_table.mjs makes.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { table, written } from '../../scripts/clients_table.mjs';

test('the table of libraries in docs/clients.md is that of tests/clients/libraries.json', () => {
  const page = fs.readFileSync(new URL('../../docs/clients.md', import.meta.url), 'utf8');
  assert.ok(page.includes(table()), 'scripts/clients_table.mjs --write');
  assert.equal(page, written());
});
