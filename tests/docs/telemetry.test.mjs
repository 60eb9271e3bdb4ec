// docs/telemetry.md explains what spans say, and nothing else.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const read = (file) => fs.readFileSync(path.join(root, file), 'utf8');

test('every attribute of a span is explained, once', () => {
  const table = [...read('include/taskgate/telemetry/attribute_table.h').matchAll(/^ATTRIBUTE_ROW\(\w+, "([^"]+)"\)$/gm)].map(([, name]) => name);
  const [list] = /## Attributes\n(.*?)\n## /s.exec(read('docs/telemetry.md'));
  const explained = [...list.matchAll(/^- ((?:`[^`]+`(?:, )?)+):/gm)].flatMap(([, names]) => [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name));
  assert.ok(table.length > 10);
  assert.deepEqual(explained.sort(), table.sort());
});
