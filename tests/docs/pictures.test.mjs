// The pictures of the documents: each is named by one, small, and can be made again from the product.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { missing, PICTURES, take } from '../../scripts/pictures.mjs';
import { exists, files, read, root } from './lib/documents.mjs';

const FOLDER = 'docs/pictures';
const MOST_BYTES = 150_000;

/** The width that the file of a PNG names. */
function widthOf(file) {
  const bytes = readFileSync(file);
  assert.equal(bytes.toString('latin1', 1, 4), 'PNG', file);
  return bytes.readUInt32BE(16);
}

function check(folder) {
  assert.deepEqual(readdirSync(folder).toSorted(), PICTURES.toSorted());
  for (const name of PICTURES) {
    const file = path.join(folder, name);
    assert.ok(statSync(file).size > 5_000 && statSync(file).size < MOST_BYTES, `${name}: ${statSync(file).size} bytes`);
    const [, width] = /^page-(\d+)-/.exec(name) ?? [];
    if (width) assert.equal(widthOf(file), Number(width), name);
    else assert.ok(widthOf(file) >= 700, name);
  }
}

test('docs/pictures has the pictures of scripts/pictures.mjs, and documents name each of them', () => {
  check(path.join(root, FOLDER));
  const documents = files('.md').filter((name) => /^(docs\/|README)/.test(name)).map(read).join('\n');
  for (const name of PICTURES) assert.ok(documents.includes(`(pictures/${name})`), `no document names ${name}`);
});

const skip = missing || (process.env.TASKGATE_BIN || exists('build/taskgate') ? false : 'build/taskgate is not built');

test('scripts/pictures.mjs makes them anew', { skip }, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'taskgate-pictures-'));
  try {
    await take(folder);
    check(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
