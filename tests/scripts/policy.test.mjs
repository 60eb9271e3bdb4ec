// The shipped policies and the sidecar's: they load, and decide as their comments say.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { root, temporaryFolder } from './lib/example.mjs';

const gateway = path.join(root, 'build/taskgate');
const options = { skip: existsSync(gateway) ? false : `${gateway} is not built`, timeout: 60_000 };

// Tokens that the sidecar's configuration takes from a Secret.
const tokens = { TOKEN_OF_ALICE: 'a-token-of-alice-alone', TOKEN_OF_BOB: 'a-token-of-bob-alone' };

function taskgate(...words) {
  const environment = { PATH: process.env.PATH, ...tokens };
  return spawnSync(gateway, words, { encoding: 'utf8', cwd: root, env: environment, timeout: 20_000 });
}

/** `expected` is the action, and the workflow where there is one. */
function assertActions(file, expected) {
  const checked = taskgate('check', '--config', file);
  assert.equal(checked.status, 0, checked.stderr);
  assert.doesNotMatch(checked.stderr, /warning: (?!sources\[\d+\]: a task outlives its owner's token)/);
  for (const [tool, outcome] of Object.entries(expected)) {
    const explained = taskgate('explain', '--config', file, '--json', tool);
    assert.equal(explained.status, 0, explained.stderr);
    const { action, workflow } = JSON.parse(explained.stdout);
    assert.equal(action === 'approve' ? `${action} ${workflow}` : action, outcome, `${file}: ${tool}`);
  }
}

test('default.yaml lets reading through, and nothing else', options, () => {
  assertActions('policy/default.yaml', {
    get_time: 'forward',
    list_files: 'forward',
    'file:///etc/motd': 'forward',
    get_and_delete: 'approve default',
    drop_table: 'approve default',
    something_new: 'approve default',
  });
});

test('example-server.yaml has a human decide about deletions', options, () => {
  assertActions('policy/example-server.yaml', {
    get_time: 'forward',
    slow: 'forward',
    ask: 'forward',
    delete_database: 'approve operators',
    something_new: 'deny',
  });
});

test('strict.yaml names everything', options, () => {
  assertActions('policy/strict.yaml', {
    query_orders: 'forward',
    query_personal_data: 'deny',
    insert_row: 'approve routine',
    delete_row: 'approve critical',
  });
});

/** Every file that ships is tested by the cases beside it, or by those of the configuration that names it. */
test('the shipped policies do what their cases say, and no case is missing', options, () => {
  const tested = taskgate('policy', 'test', '--strict', '--json', 'policy');
  assert.deepEqual([tested.status, tested.stderr], [0, ''], tested.stdout);
  const { files, cases, failed } = JSON.parse(tested.stdout);
  assert.equal(failed, 0);
  assert.ok(cases >= 40, `${cases} cases`);
  const shipped = readdirSync(path.join(root, 'policy')).filter((name) => /\.(yaml|cedar)$/.test(name) && !name.endsWith('.test.yaml'));
  const covered = files.map((file) => path.basename(file.tests));
  for (const name of shipped) {
    const entry = new RegExp(`^ *- (.*/)?${name.replace('.', '\\.')}$`, 'm');
    const named = covered.some((file) => entry.test(readFileSync(path.join(root, 'policy', file), 'utf8')));
    assert.ok(covered.includes(name) || named, `policy/${name} has no cases`);
  }
  const installed = readFileSync(path.join(root, 'policy/meson.build'), 'utf8');
  for (const name of readdirSync(path.join(root, 'policy'))) assert.ok(name === 'meson.build' || installed.includes(`'${name}'`), `policy/${name} is not installed`);
});

test('the configuration in the sidecar manifest loads', options, (t) => {
  const manifest = readFileSync(path.join(root, 'deploy/kubernetes/sidecar.yaml'), 'utf8');
  const [, block] = /^ {2}config\.yaml: \|\n((?: {4}.*\n|\n)+)/m.exec(manifest);
  const file = path.join(temporaryFolder(t), 'config.yaml');
  writeFileSync(file, block.replace(/^ {4}/gm, ''));
  assertActions(file, { get_time: 'forward', delete_all: 'approve default', something_new: 'approve default' });
});
