// The lists of files in docs/architecture.md agree with the tables of methods, routes and states in the source.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lists, methods, routes, withLists } from '../../scripts/places.mjs';
import { exists, read } from './lib/documents.mjs';

test('the lists are of today; scripts/places.mjs --write makes them anew', () => {
  const text = read('docs/architecture.md');
  assert.equal(withLists(text, lists()), text);
});

test('each state of a task is explained once, in the order of the enum, with files that name it', () => {
  const section = /^### Where a task changes its state\n([^]*?)^#{2,3} /m.exec(read('docs/architecture.md'))[1];
  const states = [.../^enum task_state \{([^}]*)\}/m.exec(read('include/taskgate/task/task.h'))[1].matchAll(/TASK_(\w+)/g)];
  const items = [...section.matchAll(/^- `(\w+)`: [^]*?(?=^- |^$)/gm)];
  assert.deepEqual(
    items.map(([, name]) => name),
    states.map(([, name]) => name.toLowerCase()),
  );
  for (const [item, name] of items) {
    const files = [...item.matchAll(/`([\w/]+\.c)`/g)].map(([, file]) => `src/${file}`);
    assert.ok(files.length > 0, `${name} names no file`);
    for (const file of files) {
      assert.ok(exists(file), `${name} names ${file}`);
      assert.match(read(file), new RegExp(`\\bTASK_${name.toUpperCase()}\\b`), `${file} does not name ${name}`);
    }
  }
});

test('a method has the file of its handler in each era that has it; a handler without a file is refused', () => {
  const treatments = 'MCP_TREATMENT_ROW(CALL, old_handle, new_handle) /* a */\n';
  const homes = new Map([['old_handle', 'old.c'], ['new_handle', 'new.c']]);
  const row = (eras) => `${treatments}MCP_METHOD_ROW("tools/call", CALL, ${eras}, NAME)\n`;
  const of = (eras) => methods(row(eras), homes)[0];
  assert.deepEqual(of('BOTH'), { name: 'tools/call', legacy: '`old.c`', modern: '`new.c`' });
  assert.deepEqual(of('LEGACY'), { name: 'tools/call', legacy: '`old.c`', modern: '–' });
  assert.deepEqual(of('MODERN'), { name: 'tools/call', legacy: '–', modern: '`new.c`' });
  assert.throws(() => methods(row('BOTH'), new Map()), /no file defines old_handle/);
  assert.throws(() => methods(treatments, homes), /cannot be read/);
});

test('a request has the file of its handler', () => {
  const source = 'OPEN_ROUTE("GET",  "/health",  true,  probes_health)\nROUTE("GET",  "/api/v1/tasks/{id}",  ALL,  OWN, tasks_get)\n';
  const expected = [{ request: 'GET /health', file: '`probes.c`' }, { request: 'GET /api/v1/tasks/{id}', file: '`tasks.c`' }];
  assert.deepEqual(routes(source, new Map([['probes_health', 'probes.c'], ['tasks_get', 'tasks.c']])), expected);
  assert.throws(() => routes('', new Map()), /cannot be read/);
});
