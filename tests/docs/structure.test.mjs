// The picture of the rooms in docs/architecture.md is the one that the #include lines give.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { callCircles, circles, diagram, structureOf, uncheckedCasts, withPicture } from '../../scripts/structure.mjs';
import { read } from './lib/documents.mjs';

const structure = structureOf();

test('the picture is of today; scripts/structure.mjs --write makes it anew', () => {
  const text = read('docs/architecture.md');
  assert.equal(withPicture(text, structure), text);
});

test('no room holds more than 15 % of the lines', () => {
  const total = [...structure.rooms.values()].reduce((sum, { lines }) => sum + lines, 0);
  for (const [name, { lines }] of structure.rooms) assert.ok(lines <= 0.15 * total, `${name} has ${lines} of ${total} lines`);
});

/* A warning only: a file is as long as the thing that it holds. */
test('files of more than 1,500 lines and functions of more than 120 are reported', (t) => {
  for (const file of structure.units.keys()) {
    const lines = read(file).split('\n');
    if (lines.length > 1501 && !file.endsWith('_table.h')) t.diagnostic(`warning: ${file} has ${lines.length - 1} lines`);
    const begins = lines.flatMap((line, i) => (line === '{' ? [i] : []));
    const long = begins.filter((i) => lines.indexOf('}', i) - i + 2 > 120);
    for (const i of long) t.diagnostic(`warning: ${file}:${i}: ${lines[i - 1]} has more than 120 lines`);
  }
});

test('no circle joins two rooms', () => {
  assert.deepEqual(circles(structure), []);
});

test('a circle is found, and so is the arrow that follows from two others', (t) => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-structure-'));
  t.after(() => fs.rmSync(root, { recursive: true }));
  const write = (name, text) => (fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true }), fs.writeFileSync(path.join(root, name), text));
  write('src/low/a.c', '#include "taskgate/high/c.h"\n');
  write('src/middle/b.c', '#include "taskgate/low/a.h"\n');
  write('src/high/c.c', '#include "taskgate/low/a.h"\n');
  write('src/top/d.c', '#include "taskgate/middle/b.h"\n#include "taskgate/low/a.h"\n');
  for (const name of ['low/a', 'middle/b', 'high/c']) write(`include/taskgate/${name}.h`, '\n');
  const small = structureOf(root);
  assert.deepEqual(circles(small), [['high', 'low']]);
  const drawn = diagram(small);
  assert.match(drawn, /top --> middle/);
  assert.doesNotMatch(drawn, /top --> low/);
});

const WITHOUT_CIRCLES = [
  'core',
  'loop',
  'tls',
  'http',
  'json',
  'config',
  'policy',
  'policy/cedar',
  'task',
  'store',
  'store/postgres',
  'store/sqlite',
  'mcp',
  'upstream',
  'identity',
  'notify',
  'admin',
  'server',
  'cli',
  'gateway',
  'gateway/state',
  'gateway/call',
  'gateway/auth',
  'gateway/gates',
  'gateway/methods',
  'gateway/decision',
  'gateway/server',
  'gateway/inbox',
  'gateway/replicas',
  'gateway/conversation',
  'gateway/tools',
];
for (const room of WITHOUT_CIRCLES) {
  test(`no files of src/${room} call each other in a circle`, () => {
    assert.deepEqual(callCircles(room), []);
  });
}

test('a circle of calls is found; a static name, a type, a comment and a text are no calls', (t) => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-structure-'));
  t.after(() => fs.rmSync(root, { recursive: true }));
  const write = (name, text) => (fs.mkdirSync(path.join(root, 'src/room'), { recursive: true }), fs.writeFileSync(path.join(root, 'src/room', name), text));
  write('a.c', 'void a_run(struct a *a,\n           int b)\n{\n    b_run();\n}\n');
  write('b.c', 'const struct row b_rows[] = {{1}};\nvoid b_run(void)\n{\n    c_run("a_run"); /* a_run */\n}\n');
  write('c.c', 'static void a_run(void)\n{\n}\nvoid c_run(void)\n{\n    a_run();\n}\n');
  assert.deepEqual(callCircles('room', root), []);
  write('c.c', 'void c_run(void)\n{\n    a_run(NULL, b_rows[0]);\n}\n');
  assert.deepEqual(callCircles('room', root), [['a.c', 'b.c', 'c.c']]);
  write('c.c', 'void c_run(void)\n{\n    use(b_rows);\n}\n');
  assert.deepEqual(callCircles('room', root), [['b.c', 'c.c']]);
  write('c.c', 'void c_run(void)\n{\n    struct b_rows rows;\n}\n');
  assert.deepEqual(callCircles('room', root), []);
});

const WITH_MAGIC = ['admin', 'cli', 'gateway', 'http', 'identity', 'loop', 'mcp', 'notify', 'server', 'store', 'store/sqlite', 'upstream'];
for (const room of WITH_MAGIC) {
  test(`long-lived objects of src/${room} are cast where their magic number is checked`, () => {
    assert.deepEqual(uncheckedCasts(room), []);
  });
}

test('an unchecked cast is found; what a callback alone owns, and values of core, need no check', (t) => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-structure-'));
  t.after(() => fs.rmSync(root, { recursive: true }));
  const write = (name, text) => (fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true }), fs.writeFileSync(path.join(root, name), text));
  const cast = (name) => `static void on_${name}(void *context)\n{\n    struct ${name} *it = context;\n}\n`;
  write('include/taskgate/core/buffer.h', 'struct buffer {\n    char *bytes;\n};\n');
  write('src/room/shared.h', 'struct shared {\n    int a;\n};\n');
  const timed = 'struct timed {\n    struct loop_timer timer;\n};\n';
  write('src/room/a.c', `${timed}struct errand {\n    int a;\n};\n${['timed', 'errand', 'shared', 'buffer'].map(cast).join('')}`);
  assert.deepEqual(uncheckedCasts('room', root), ['src/room/a.c: struct timed', 'src/room/a.c: struct shared']);
  write('src/room/a.c', `${timed}${cast('timed').replace('= context', '= timed_from(context)')}`);
  assert.deepEqual(uncheckedCasts('room', root), []);
});
