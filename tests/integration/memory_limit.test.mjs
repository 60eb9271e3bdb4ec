// The memory limit of the control group: the limits that fit are in force, and written ones that do not fit are refused.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { cgroup, cgroupMissing } from './lib/cgroup.mjs';
import { run } from './lib/child.mjs';
import { BINARY, configuration, temporaryFolder, withoutAdvice } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { toYaml } from './lib/yaml.mjs';

const MIB = 1024 * 1024;
const KIB = 1024;
const skip = cgroupMissing();
/** Of 256 MiB; as tests/unit/config/memory_suite.c has them. */
const SHRUNK = { bodies_bytes: 71 * MIB, result_bytes: 4544 * KIB, connections: 2810 };

function inGroup(t, limits, { env = {} } = {}) {
  const group = cgroup(t, 256 * MIB);
  const folder = temporaryFolder(t);
  const file = path.join(folder, 'config.yaml');
  fs.writeFileSync(file, toYaml(configuration({ upstream: 'http://127.0.0.1:1/mcp', store: path.join(folder, 'taskgate.db'), config: limits ? { limits } : {} })));
  const [command, ...words] = group.wrapper;
  const lineOf = (key) => fs.readFileSync(file, 'utf8').split('\n').findIndex((line) => line.includes(key)) + 1;
  return { file, lineOf, taskgate: (args) => run(command, [...words, BINARY, ...args, '--config', file], { env }) };
}

test('check says which limits are in force, as a sentence and as JSON', { skip }, async (t) => {
  const { taskgate } = inGroup(t);
  const { code, stdout } = await taskgate(['check', '--json']);
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(stdout).memory, { limit_bytes: 256 * MIB, worst_case_bytes: SHRUNK.bodies_bytes + 4 * SHRUNK.result_bytes + (SHRUNK.connections + 1000) * 24 * KIB, ...SHRUNK });
  assert.match((await taskgate(['check'])).stdout, /\nMemory: a limit of 256MiB; clients can make the gateway hold \d+KiB:\nlimits\.bodies_bytes 71MiB, limits\.result_bytes 4544KiB, limits\.connections 2810\n/);
});

test('a written value that does not fit: exit 2 with its place, the value and the limit, by check and by serve', { skip }, async (t) => {
  for (const [limits, key, value] of [[{ bodies_bytes: '200MiB' }, 'bodies_bytes', '200MiB'], [{ result_bytes: 67108864 }, 'result_bytes', '67108864'], [{ connections: 9000 }, 'connections', '9000'], [{ body_bytes: '100MiB', connections: 100 }, 'body_bytes', '100MiB']]) {
    const { file, lineOf, taskgate } = inGroup(t, limits);
    for (const command of ['check', 'serve']) {
      const { code, stderr } = await taskgate([command]);
      const [, line, said] = /^.*config\.yaml:(\d+):\d+: (.*)\n$/.exec(withoutAdvice(stderr)) ?? [];
      assert.deepEqual([code, Number(line)], [2, lineOf(key)], `${command} ${key} ${file}\n${stderr}`);
      assert.match(said, new RegExp(`^limits\\.${key}: ${value} is too much: with it the process may need \\d+[KM]iB, and 70 % of its memory limit of 256MiB are 183500KiB; write less, or raise the memory limit$`));
    }
  }
  const { taskgate } = inGroup(t, undefined, { env: { THOUGHTGATE_MAX_REQUEST_BODY_BYTES: '104857600' } });
  const { code, stderr } = await taskgate(['check']);
  assert.equal(code, 2);
  assert.match(stderr, /^THOUGHTGATE_MAX_REQUEST_BODY_BYTES: limits\.body_bytes: 104857600 is too much: /m);
});

test('written values that fit stay, and the log of the start has them in one line', { skip }, async (t) => {
  const group = cgroup(t, 256 * MIB);
  const { gateway } = await scene(t, { wrapper: group.wrapper, config: { limits: { connections: 500, result_bytes: '2MiB' } } });
  const lines = gateway.child.stderr.split('\n').filter((line) => line.includes('"Memory limit"')).map((line) => JSON.parse(line));
  assert.equal(lines.length, 1);
  const { bytes, worst_case, bodies_bytes, result_bytes, connections } = lines[0];
  assert.deepEqual([bytes, result_bytes, connections], [256 * MIB, 2 * MIB, 500]);
  assert.equal(worst_case, bodies_bytes + 4 * 2 * MIB + 2 * 500 * 24 * KIB);
  assert.ok(bodies_bytes > SHRUNK.bodies_bytes && worst_case <= 0.7 * 256 * MIB, String(bodies_bytes));
});

test('a reload counts the connections of the start, which only a restart changes', { skip }, async (t) => {
  const group = cgroup(t, 256 * MIB);
  const { gateway } = await scene(t, { wrapper: group.wrapper });
  gateway.writeConfig({ config: { limits: { bodies_bytes: '120MiB' } } });
  gateway.hangUp();
  const { error } = await gateway.logged(/^Configuration not reloaded/);
  assert.match(error, /limits\.bodies_bytes: 120MiB is too much: with it the process may need .*, and 70 % of its memory limit of 256MiB are 183500KiB; write less, or restart: limits\.connections takes effect then/);
  // A restart has fewer.
  await gateway.stop();
  await gateway.launch();
  const { bodies_bytes, connections } = JSON.parse(gateway.child.stderr.split('\n').find((line) => line.includes('"Memory limit"')));
  assert.equal(bodies_bytes, 120 * MIB);
  assert.ok(connections < SHRUNK.connections, String(connections));
});
