// scripts/call against the example server alone, and scripts/run with everything, as a first user would.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { exampleMissing, root, startExample, temporaryFolder, until } from './lib/example.mjs';

const gateway = path.join(root, 'build/taskgate');
const options = { skip: exampleMissing, timeout: 60_000 };
const whole = { skip: existsSync(gateway) ? false : `${gateway} is not built`, timeout: 180_000 };

/** Starts a command; `ended` is its exit code, or the signal that ended it. */
function start(t, words, environment = {}) {
  const [command, ...rest] = words;
  const child = spawn(command, rest, { cwd: root, env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'pipe'] });
  const started = { child, stdout: '', stderr: '' };
  child.stdout.on('data', (bytes) => (started.stdout += bytes));
  child.stderr.on('data', (bytes) => (started.stderr += bytes));
  started.ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)));
  t.after(async () => {
    child.kill('SIGTERM');
    await started.ended;
  });
  return started;
}

async function run(t, words, environment) {
  const started = start(t, words, environment);
  const status = await started.ended;
  return { status, stdout: started.stdout, stderr: started.stderr };
}

/** Why there are no replicas here, or false. */
const postgresMissing = ['haproxy', 'initdb'].map(missing).find(Boolean) ?? false;

function missing(program) {
  const found = spawnSync('sh', ['-c', `command -v ${program} || ls /usr/lib/postgresql/*/bin/${program}`]).status === 0;
  return found ? false : `${program} is not installed`;
}

function alive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const given = new Set();

/** Below the ports that the kernel gives to outgoing connections, and never the same twice. */
async function freePort() {
  for (;;) {
    const port = 10_240 + Math.floor(Math.random() * 22_000);
    if (given.has(port)) continue;
    const probe = net.createServer();
    const free = await new Promise((resolve) => {
      probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => probe.close(resolve));
    given.add(port);
    return port;
  }
}

test('scripts/call does the handshake, and prints results, errors and progress', options, async (t) => {
  const server = await startExample(t);
  const environment = { TASKGATE_URL: server.url, TASKGATE_RUN_DIR: temporaryFolder(t) };
  const call = (...words) => run(t, ['scripts/call', ...words], environment);

  const list = await call();
  assert.equal(list.status, 0, list.stderr);
  assert.match(list.stdout, /^TOOL .*\nget_time .*\ndelete_database +forbidden +Deletes one of/);

  const time = await call('get_time', '{}');
  assert.deepEqual([time.status, time.stderr], [0, '']);
  assert.match(JSON.parse(time.stdout).content[0].text, /^It is /);

  const given = '{"name": "orders", "n": 1.50}';
  assert.equal((await call('delete_database', given)).status, 0);
  assert.ok(server.journal().includes(`"arguments":${given}}`), 'the arguments go out as typed');
  const again = await call('delete_database', given);
  assert.deepEqual([again.status, JSON.parse(again.stdout).isError], [1, true]);

  const unknown = await call('no_"such"');
  assert.deepEqual([unknown.status, JSON.parse(unknown.stdout).code], [1, -32602]);
  const slow = await call('slow', '{"seconds": 0.4}');
  assert.equal(slow.status, 0);
  assert.match(slow.stderr, /^(progress: \d+ of 100\n)+$/);
});

test('scripts/call says what to do', options, async (t) => {
  const port = await freePort();
  const nobody = await run(t, ['scripts/call', 'get_time'], { THOUGHTGATE_OUTBOUND_PORT: String(port), TASKGATE_URL: '' });
  assert.equal(nobody.status, 1);
  assert.match(nobody.stderr, new RegExp(`nothing answers at http://127.0.0.1:${port}/mcp; start the gateway with scripts/run`));
  for (const words of [['get_time', '[]'], ['get_time', '{'], ['--task'], ['a', '{}', 'c'], ['--nonsense'], ['--result']]) {
    const wrong = await run(t, ['scripts/call', ...words]);
    assert.deepEqual([wrong.status, wrong.stdout], [2, ''], words.join(' '));
    assert.match(wrong.stderr, /^call: .*; see scripts\/call --help\n$/);
  }
  const foreign = await run(t, ['scripts/call', '--result', 'tg_unknown'], { TASKGATE_RUN_DIR: temporaryFolder(t) });
  assert.equal(foreign.status, 1);
  assert.match(foreign.stderr, /only its own session may read it/);
});

test('scripts/run and scripts/test say what is wrong with their command lines', async (t) => {
  for (const words of [['run', '--upstream', 'localhost:3000'], ['run', '--policy', '/none'], ['run', 'extra'], ['test', 'no-such-stage']]) {
    const [script, ...rest] = words;
    const wrong = await run(t, [`scripts/${script}`, ...rest]);
    assert.equal(wrong.status, 2, words.join(' '));
    assert.match(wrong.stdout + wrong.stderr, new RegExp(`${script}: .*(see scripts/run --help|see above)`));
  }
});

test('the help of each script is on stdout, and fits into a terminal', async (t) => {
  for (const script of ['run', 'call', 'test']) {
    const { status, stdout, stderr } = await run(t, [`scripts/${script}`, '--help']);
    assert.deepEqual([status, stderr], [0, ''], script);
    assert.match(stdout, new RegExp(`^Usage: scripts/${script} `));
    for (const line of stdout.split('\n')) assert.ok([...line].length <= 80, line);
  }
});

test('the scripts for packagers say at --help what they do, and sbom refuses what is no program', async (t) => {
  for (const script of ['h2o-source', 'image', 'package', 'release', 'sbom']) {
    const { status, stdout, stderr } = await run(t, [`scripts/${script}`, '--help']);
    assert.deepEqual([status, stderr], [0, ''], script);
    assert.match(stdout, new RegExp(`^(Makes|Puts|Writes) [^]*\\bscripts/${script}\\b`));
    for (const line of stdout.trimEnd().split('\n')) assert.ok([...line].length <= 80, line);
  }
  const { status, stdout } = await run(t, ['scripts/sbom', 'README.md']);
  assert.deepEqual([status, stdout], [1, '']);
});

/** scripts/run, of the clone at `place`, on free ports, when it has printed its guide. */
async function startAll(t, words = [], environment = {}, place = '.') {
  const names = ['THOUGHTGATE_OUTBOUND_PORT', 'THOUGHTGATE_ADMIN_PORT', 'TASKGATE_EXAMPLE_PORT'];
  const ports = {};
  for (const name of names) ports[name] = String(await freePort());
  const folder = temporaryFolder(t);
  const mine = { ...ports, TASKGATE_RUN_DIR: folder, ...environment };
  const running = start(t, [path.join(place, 'scripts/run'), ...words], mine);
  running.folder = folder;
  running.ports = ports;
  running.environment = mine;
  let over = false;
  running.ended.then(() => (over = true));
  await until(() => over || running.stdout.includes('Ctrl-C stops everything'), 'the guide of scripts/run', 150_000);
  assert.ok(!over, running.stderr);
  return running;
}

/** The commands to paste: the lines with four spaces before them. */
function commands(guide) {
  return guide.split('\n').filter((line) => line.startsWith('    ')).map((line) => line.trim());
}

test('scripts/run prints three commands, and they do what it says, also in a folder whose name has a blank', whole, async (t) => {
  const place = path.join(temporaryFolder(t), 'a clone');
  symlinkSync(root, place);
  const running = await startAll(t, [], {}, place);
  const page = /Operators' page +(http:\/\/127\.0\.0\.1:\d+)\/#token=(\S+)/.exec(running.stdout);
  assert.ok(page, running.stdout);
  assert.deepEqual(running.stderr.split('\n').filter((line) => line && !line.startsWith('== ')), [], 'a line for each step, and no others');
  assert.equal((await fetch(`${page[1]}/`)).status, 200);
  const paste = (command) => run(t, ['bash', '-c', command]);
  const [harmless, dangerous, approve] = commands(running.stdout);

  const time = await paste(harmless);
  assert.equal(time.status, 0, time.stderr);
  assert.match(JSON.parse(time.stdout).content[0].text, /^It is /);

  const asked = await paste(dangerous);
  assert.equal(asked.status, 0, asked.stdout + asked.stderr);
  const id = JSON.parse(asked.stdout).taskId;
  assert.match(id, /^tg_/);
  const log = () => readFileSync(path.join(running.folder, 'example-server.log'), 'utf8');
  assert.doesNotMatch(log(), /executed delete_database/);

  const approved = await paste(approve);
  assert.equal(approved.status, 0, approved.stdout + approved.stderr);
  await until(() => log().includes('executed delete_database {"name": "staging"}') || log().includes('executed delete_database {"name":"staging"}'), 'the execution');
  const result = await run(t, ['scripts/call', '--result', id], running.environment);
  assert.equal(result.status, 0, result.stdout + result.stderr);
  assert.match(JSON.parse(result.stdout).content[0].text, /^Deleted database "staging"/);

  const second = await run(t, ['scripts/run'], running.environment);
  assert.equal(second.status, 1);
  assert.match(second.stderr, /port \d+, for agents, is in use; .*THOUGHTGATE_OUTBOUND_PORT=\d+ scripts\/run/);

  running.child.kill('SIGINT');
  await running.ended;
  for (const port of Object.values(running.ports)) {
    await assert.rejects(fetch(`http://127.0.0.1:${port}/`), 'everything has stopped');
  }
});

test('scripts/run --postgres: three replicas answer as one, and two go on as one', { ...whole, skip: whole.skip || postgresMissing }, async (t) => {
  const running = await startAll(t, ['--postgres']);
  const paste = (command) => run(t, ['bash', '-c', command]);
  const [, dangerous, approve] = commands(running.stdout);
  const replicas = [...running.stdout.matchAll(/replica-\d +process (\d+), page (http:\/\/127\.0\.0\.1:\d+)/g)].map(([, pid, url]) => ({ pid: Number(pid), url }));
  assert.equal(replicas.length, 3, running.stdout);
  const database = /psql (\S+)/.exec(running.stdout)[1];
  const log = () => readFileSync(path.join(running.folder, 'example-server.log'), 'utf8');

  const callAndApprove = async (times) => {
    const asked = await paste(dangerous);
    assert.equal(asked.status, 0, asked.stdout + asked.stderr);
    const approved = await paste(approve);
    assert.equal(approved.status, 0, approved.stdout + approved.stderr);
    await until(() => log().match(/^executed delete_database/gm)?.length === times, 'the execution');
    const { taskId } = JSON.parse(asked.stdout);
    const token = /#token=(\S+)/.exec(running.stdout)[1];
    for (const { url } of replicas.slice(0, 4 - times)) {
      const seen = await fetch(`${url}/api/v1/tasks/${taskId}`, { headers: { authorization: `Bearer ${token}` } });
      assert.deepEqual([seen.status, (await seen.json()).id], [200, taskId], 'each replica knows the task');
    }
  };
  await callAndApprove(1);

  process.kill(replicas[2].pid, 'SIGKILL');
  await until(() => running.stderr.includes(`the replica with process ${replicas[2].pid} has ended`), 'the word of its end');
  await until(async () => readFileSync(path.join(running.folder, 'haproxy.log'), 'utf8').match(/replica-3 is DOWN/g)?.length === 2, 'the balancer to see it');
  await callAndApprove(2);

  running.child.kill('SIGINT');
  assert.equal(await running.ended, 130);
  const folder = /host=(.+)/.exec(database.replaceAll('\\', ''))[1];
  assert.ok(!existsSync(folder), 'the database is gone');
  for (const { pid } of replicas) assert.ok(!alive(pid), 'every replica has stopped');
});

test('scripts/run --postgres refuses rules that name a store', { ...whole, skip: whole.skip || postgresMissing }, async (t) => {
  const policy = path.join(temporaryFolder(t), 'mine.yaml');
  writeFileSync(policy, 'schema: 1\nstore: {path: x.db}\n');
  const refused = await run(t, ['scripts/run', '--postgres', '--policy', policy], { TASKGATE_RUN_DIR: temporaryFolder(t) });
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /--postgres brings a store of its own; take store, replica and state_key out of .*mine\.yaml/);
});

test('scripts/run --upstream --policy stands in front of a server of your own', whole, async (t) => {
  const server = await startExample(t);
  const policy = path.join(temporaryFolder(t), 'mine.yaml');
  const rules = (action) => `schema: 1\nsources:\n  - {id: mine, kind: mcp, url: "http://127.0.0.1:1/mcp"}\ngovernance:\n  defaults: {action: ${action}}\n`;
  writeFileSync(policy, rules('forward'));
  const running = await startAll(t, ['--upstream', server.url, '--policy', policy]);
  const call = () => run(t, ['scripts/call', 'delete_database', '{"name":"orders"}'], running.environment);
  assert.equal((await call()).status, 0);
  assert.equal(server.stderr.match(/^executed delete_database/gm).length, 1);

  // The rules are edited while the gateway runs.
  writeFileSync(policy, rules('deny'));
  await until(async () => JSON.parse((await call()).stdout)._meta?.['taskgate/error'].code === -32014, 'the new rules', 20_000);
});

test('scripts/run --policy: what the file names is found from the file', whole, async (t) => {
  const server = await startExample(t);
  const policy = path.join(temporaryFolder(t), 'mine.yaml');
  writeFileSync(path.join(path.dirname(policy), 'mine.cedar'), 'permit(principal, action == ThoughtGate::Action::"Forward", resource);\n');
  writeFileSync(policy, `schema: 1
sources:
  - {id: mine, kind: mcp, url: "http://127.0.0.1:1/mcp"}
governance:
  defaults: {action: policy}
cedar: {policies: [mine.cedar]}
`);
  const running = await startAll(t, ['--upstream', server.url, '--policy', policy]);
  const called = await run(t, ['scripts/call', 'delete_database', '{"name":"orders"}', '--task'], running.environment);
  assert.equal(called.status, 0, called.stdout + called.stderr);
  await until(() => /^executed delete_database/m.test(server.stderr), 'the call that the policy lets through');
  assert.ok(existsSync(path.join(running.folder, 'taskgate.db')), 'the database is in the run folder');
});

test('scripts/run fails with the words of the gateway when the policy is wrong', whole, async (t) => {
  const policy = path.join(temporaryFolder(t), 'wrong.yaml');
  writeFileSync(policy, 'schema: 1\nsources: []\n');
  const environment = { TASKGATE_RUN_DIR: temporaryFolder(t) };
  for (const name of ['THOUGHTGATE_OUTBOUND_PORT', 'THOUGHTGATE_ADMIN_PORT', 'TASKGATE_EXAMPLE_PORT']) {
    environment[name] = String(await freePort());
  }
  const failed = await run(t, ['scripts/run', '--policy', policy], environment);
  assert.equal(failed.status, 1);
  assert.match(failed.stderr, /wrong\.yaml:2:\d+: sources/);
  assert.match(failed.stderr, /the gateway did not start/);
});
