// The picture of a call's states in docs/architecture.md is the table of moves in the source.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diagram, readTable, tableOf, withPicture } from '../../scripts/states.mjs';
import { exists, read } from './lib/documents.mjs';

const table = tableOf();

/** The section that has the picture, and the list of the states beneath it. */
const section = () => /^### Where a running call is\n([^]*?)^#{2,3} /m.exec(read('docs/architecture.md'))[1];

test('the picture is of today; scripts/states.mjs --write makes it anew', () => {
  const text = read('docs/architecture.md');
  assert.equal(withPicture(text, table), text);
});

test('each state is explained once, in the order of the table, with a file that there is', () => {
  const items = [...section().matchAll(/^- `(\w+)`: [^]*?(?=^- |^$)/gm)];
  assert.deepEqual(
    items.map(([, name]) => name),
    Object.values(table.states),
  );
  for (const [item, name] of items) {
    const files = [...item.matchAll(/`(\w+\.c)`/g)].map(([, file]) => file);
    assert.ok(files.length > 0, `${name} names no file`);
    for (const file of files) assert.ok(exists(`src/gateway/conversation/${file}`), `${name} names ${file}`);
  }
});

test('a table is drawn state by state and move by move, and a strange one is refused', () => {
  const rows = '    STATE(OFFERED, "offered")  /* a */ \\\n    STATE(RUNNING, "running") \\\n    STATE(ENDED, "ended")\n';
  const drawn = diagram(readTable(`${rows}    MOVE(OFFERED, RUNNING, "run", BOTH) \\\n    MOVE(RUNNING, ENDED, "drop", DETACHED)\n`));
  assert.match(drawn, /^ {2}\[\*\] --> offered: an approved call$/m);
  assert.match(drawn, /^ {2}offered --> running: run \(both\)$/m);
  assert.match(drawn, /^ {2}running --> ended: drop \(detached\)$/m);
  assert.throws(() => readTable(`${rows}    MOVE(OFFERED, NOWHERE, "run", BOTH)\n`), /OFFERED, NOWHERE/);
  assert.throws(() => readTable(`${rows}    MOVE(OFFERED, RUNNING, "run", NOBODY)\n`), /cannot be read/);
  assert.throws(() => readTable(rows), /cannot be read/);
});
