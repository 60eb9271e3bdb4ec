// docs/clients.md has the tables that scripts/clients_table.mjs makes of the files that the tests of clients read.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { tables, written } from '../../scripts/clients_table.mjs';

test('the tables of docs/clients.md are those of tests/clients/libraries.json and servers.json', () => {
  const page = fs.readFileSync(new URL('../../docs/clients.md', import.meta.url), 'utf8');
  for (const table of Object.values(tables)) assert.ok(page.includes(table()), 'scripts/clients_table.mjs --write');
  assert.equal(page, written());
});
