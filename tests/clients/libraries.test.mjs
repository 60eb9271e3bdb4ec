// Agents' libraries with what each has by default, and without a line of configuration: a call that a person approves.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Child } from '../integration/lib/child.mjs';
import { workflow } from '../integration/lib/gateway.mjs';
import { scene } from '../integration/lib/scene.mjs';
import { tool } from '../integration/lib/upstream.mjs';
import { within } from '../integration/lib/wait.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const python = path.join(here, '.venv_libraries/bin/python');
const skip = fs.existsSync(path.join(here, '.venv_libraries/done')) ? false : 'the libraries were not installed: tests/clients/run says why';
const libraries = JSON.parse(fs.readFileSync(path.join(here, 'libraries.json'), 'utf8'));
/** How long a person takes. The longer one is for a release: TASKGATE_LONG_APPROVALS=1. */
const seconds = process.env.TASKGATE_LONG_APPROVALS ? [2, 20] : [2];

test('the libraries that are installed are those of the table', { skip }, () => {
  const pinned = fs.readFileSync(path.join(here, 'requirements_libraries.txt'), 'utf8').split('\n');
  for (const { package: name, version } of libraries) assert.ok(pinned.includes(`${name}==${version}`), `${name} ${version}`);
});

for (const { library, limit } of libraries) {
  for (const long of seconds.filter((one) => !/^\d+ s$/.test(limit) || one < parseInt(limit, 10))) {
    test(`${library}: gets the result of a call that is approved after ${long} s`, { skip }, async (t) => {
      const { gateway, admin, upstream } = await scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user'), tool('read')] } });
      const client = new Child(python, [path.join(here, 'library_client.py'), library, gateway.url, 'delete_user', '{"id":7}'], { name: library });
      const { id } = await admin.pending(() => true, 90_000);
      await pause(long * 1000); // the person
      await admin.approve(id);
      const { code } = await within(client.exited, () => `the end of the client\n${client.output()}`, 60_000);
      assert.equal(code, 0, client.output());
      const { text, error } = JSON.parse(client.stdout.trim().split('\n').at(-1));
      assert.equal(error, undefined);
      assert.match(text, /delete_user/);
      assert.doesNotMatch(text, /approval|task/i, 'the result, and nothing about a task');
      assert.deepEqual(upstream.calls.map(({ rpc }) => rpc.params.arguments), [{ id: 7 }]);
    });
  }
}
