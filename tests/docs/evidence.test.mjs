// The promises of approvals and the audit trail are tried from outside: each key, each refusal, each state and each member occurs in an integration test.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { read, root } from './lib/documents.mjs';

const folders = ['tests/integration', 'tests/integration/page'];
const files = folders.flatMap((folder) => readdirSync(path.join(root, folder)).filter((name) => name.endsWith('.test.mjs')).map((name) => `${folder}/${name}`));
const tests = files.map(read).join('\n');
const occurs = (name) => new RegExp(`(?<![\\w$])${name}(?![\\w$])`).test(tests);
const missing = (names) => names.filter((name) => !occurs(name));

test('each key of workflows, of what approvers are told, and of the trail', () => {
  const rows = [...read('src/config/keys.c').matchAll(/^ {4}\{"((?:approval\.\*(?!\.destination)|audit|governance\.rules\[\]\.show)[^"]*)", "(\w+)",[^]*?\.help = "([^]*?)"\}/gm)];
  const keys = rows.filter(([, , , help]) => !help.includes('has no effect')).map(([, , name]) => name);
  assert.ok(keys.length > 20, `${keys.length}`);
  assert.deepEqual(missing(keys), []);
});

test('the table of codes has each that the gateway answers, with its HTTP status, and no other', () => {
  const pairs = (text, pattern) => [...new Set([...text.matchAll(pattern)].map(([, status, code]) => `${status} ${code}`))].toSorted();
  const known = pairs(read('src/admin/reply.c'), /^ {4}\[REPLY_\w+\] = \{(\d{3}), "(\w+)"\}/gm);
  assert.ok(known.length > 12, `${known.length}`);
  assert.deepEqual(pairs(read('docs/approving-api.md'), /^\| (\d{3}) \| `(\w+)` \|/gm), known);
});

test('each code of the operators\' errors', () => {
  const codes = [...read('docs/approving-api.md').matchAll(/^\| \d{3} \| `(\w+)` \|/gm)].map(([, code]) => code);
  assert.ok(codes.length > 12, `${codes.length}`);
  assert.deepEqual(missing(codes), []);
});

test('each state of a task', () => {
  const states = [...read('src/task/task.c').matchAll(/\[TASK_\w+\] = "(\w+)"/g)].map(([, state]) => state);
  assert.equal(states.length, 8);
  assert.deepEqual(missing(states), []);
});

test('each member of a task, and each member of a row of the trail', () => {
  const [task] = [...read('docs/approving-api.md').matchAll(/^```json\n(\{\n {2}"id": "tg_[^]*?)^```/gm)].map(([, text]) => JSON.parse(text));
  const members = Object.keys(task);
  assert.ok(members.length > 25, `${members.length}`);
  const columns = [...read('src/store/audit_columns.h').matchAll(/^AUDIT_COLUMN\(\w+, "?(\w+)"?,/gm)].map(([, key]) => key);
  assert.ok(columns.length > 20, `${columns.length}`);
  assert.deepEqual(missing([...members, ...columns]), []);
});

test('each parameter of the list of tasks', () => {
  const [, table] = /parameters\[\] = \{\n([^]*?)\n\};/.exec(read('src/admin/query.c'));
  const names = [...table.matchAll(/\{"(\w+)"/g)].map(([, name]) => name);
  assert.ok(names.length > 9, `${names.length}`);
  assert.deepEqual(missing(names), []);
});
