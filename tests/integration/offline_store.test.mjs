// Commands that read the store themselves, on PostgreSQL: audit, policy simulate, backup.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { run } from './lib/child.mjs';
import { ADMIN_TOKEN, BINARY, configuration, startGateway, temporaryFolder, workflow } from './lib/gateway.mjs';
import { wholeFile } from './lib/lifetime.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { STATE_KEY } from './lib/relaying.mjs';
import { clientOf, onDatabase, replicas } from './lib/replicas.mjs';
import { until } from './lib/wait.mjs';
import { toYaml } from './lib/yaml.mjs';

const options = { skip: postgresMissing };
const file = wholeFile();
let postgres;
let numbers = 0;
const server = async () => (postgres ??= await startPostgres(file));

/** A gateway on a database of its own, one completed and one rejected call, and the commands beside it. */
async function stage(t, { config = {}, ...more } = {}) {
  const database = `offline_${++numbers}`;
  const url = (await server()).createDatabase(database);
  const { upstream, gateways: [gateway] } = await replicas(t, url, ['a'], { approval: workflow('10m', { redact_fields: ['secret'] }), config: { ...STATE_KEY.config, ...config }, env: STATE_KEY.env, ...more });
  const client = await clientOf(t, gateway);
  const done = (await client.createTask('delete_user', { name: 'x', secret: 'hunter2' })).taskId;
  await gateway.admin.approve(done, 'fine');
  await gateway.admin.inState(done, 'completed');
  const rejected = (await client.createTask('delete_user', { name: 'y' })).taskId;
  await gateway.admin.reject(rejected, 'no');
  const folder = temporaryFolder(t);
  /** Only what is given is in the environment: no token, so that no gateway is asked. */
  const command = (args, env = { GATE_DATABASE: url, ...STATE_KEY.env }) => run(BINARY, args, { cwd: folder, env: { ...env, THOUGHTGATE_ADMIN_TOKEN: undefined, TASKGATE_TOKEN: undefined } });
  const good = async (args, env) => {
    const { code, stdout, stderr } = await command(args, env);
    assert.deepEqual([code, stderr], [0, ''], args.join(' '));
    return stdout;
  };
  return { database, url, upstream, gateway, client, folder, command, good, ids: { done, rejected } };
}

const lines = (text) => text.trim().split('\n').map((line) => JSON.parse(line));

test('audit: every subcommand, by the configuration, by the variable and by --store', options, async (t) => {
  const { url, gateway, good, command, ids } = await stage(t, { config: { audit: { keep_arguments: '1h' } } });
  const config = ['--config', gateway.configPath];
  const online = await gateway.cli(['audit', 'export'], { env: { TASKGATE_TOKEN: ADMIN_TOKEN } });
  assert.equal(online.code, 0, online.stderr);
  const rows = lines(online.stdout);
  assert.deepEqual(rows.filter((row) => row.taskId === ids.done).map((row) => row.event), ['create', 'approve', 'execute', 'complete']);
  for (const [args, env] of [[config], [[], { THOUGHTGATE_STORE_URL: url }], [['--store', '{env: ELSEWHERE}'], { ELSEWHERE: url }], [['--store', url], {}]]) {
    assert.equal(await good(['audit', 'export', ...args], env), online.stdout, args.join(' '));
    assert.equal(await good(['audit', 'verify', ...args], env), `${rows.length} rows, up to row ${rows.length}, hash ${rows.at(-1).hash}\n`);
  }
  assert.deepEqual(lines(await good(['audit', 'list', '--json', '--limit', '2', ...config])).map((row) => row.sequence), [rows.length - 1, rows.length]);
  const shown = await good(['audit', 'show', ids.done, ...config]);
  assert.match(shown, /kept arguments: \{\n\s+"name": "x",\n\s+"secret": "\[REDACTED\]"\n\}/);
  assert.doesNotMatch(shown, /hunter2/);
  const report = JSON.parse(await good(['audit', 'report', '--json', ...config]));
  assert.equal(report.tools[0].calls, 2);
  assert.equal(await good(['audit', 'export', '--since', '2999-01-01', ...config]), '');
  assert.equal((await command(['audit', 'show', 'tg_nothing', ...config])).code, 4);
});

test('audit verify finds a row that was changed in the database', options, async (t) => {
  const { database, gateway, command } = await stage(t);
  postgres.query("ALTER TABLE taskgate_audit DISABLE TRIGGER USER; UPDATE taskgate_audit SET tool = 'read' WHERE sequence = 2", database);
  const { code, stderr } = await command(['audit', 'verify', '--config', gateway.configPath]);
  assert.deepEqual([code, stderr], [1, 'taskgate: the audit trail is not whole: row 2 was changed: its hash is not that of its content\n']);
});

test('a role that may only read is enough, and nothing is written', options, async (t) => {
  const { database, good } = await stage(t);
  postgres.query(`CREATE ROLE reader_${numbers} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader_${numbers}`, database);
  const env = { THOUGHTGATE_STORE_URL: postgres.url(database, { user: `reader_${numbers}` }) };
  assert.match(await good(['audit', 'verify'], env), /rows, up to row/);
  assert.match(await good(['audit', 'list'], env), /delete_user/);
  assert.equal(await good(['backup', 'copy.db'], env), '');
});

test('policy simulate reads the calls of the database that the configuration names', options, async (t) => {
  const { url, upstream, gateway, folder, good } = await stage(t);
  const next = path.join(folder, 'next.yaml');
  const change = (rules) => fs.writeFileSync(next, toYaml(configuration({ store: gateway.storePath, upstream: upstream.url, ...onDatabase(url, { id: 'a', config: STATE_KEY.config }), rules })));
  change([['delete_*', 'deny']]);
  const denied = JSON.parse(await good(['policy', 'simulate', '--json', '--config', next]));
  assert.deepEqual([denied.same, denied.different], [0, 2]);
  assert.equal(denied.changes[0].would_be.outcome, 'deny');
  assert.deepEqual(JSON.parse(await good(['policy', 'simulate', '--json', '--config', next, '--store', '{env: GATE_DATABASE}'])), denied);
  change([['delete_*', 'approve']]);
  assert.equal(JSON.parse(await good(['policy', 'simulate', '--json', '--config', next])).same, 2);
});

test('backup: a private file of one moment while calls go on, which serves', options, async (t) => {
  const { upstream, gateway, client, folder, command, good, ids } = await stage(t, { config: { limits: { pending_per_principal: 100_000, pending_total: 100_000 } } });
  const copy = path.join(folder, 'copy.db');
  let goesOn = true;
  let made = 0;
  const load = Array.from({ length: 8 }, async () => {
    for (; goesOn; made++) await client.createTask('delete_user', { made });
  });
  await until(() => made > 200, 'tasks to copy');
  const before = made;
  assert.equal(await good(['backup', copy, '--config', gateway.configPath]), '');
  const during = made - before;
  goesOn = false;
  await Promise.all(load);
  assert.ok(during > 0, 'calls went on during the backup');
  assert.equal(fs.statSync(copy).mode & 0o777, 0o600);
  assert.deepEqual(fs.readdirSync(folder).filter((name) => name.startsWith('copy')), ['copy.db']);
  const verified = /^(\d+) rows/.exec(await good(['audit', 'verify', '--store', copy], {}));
  const rows = lines(await good(['audit', 'export', '--store', copy], {}));
  assert.equal(rows.length, Number(verified[1]));
  const created = rows.filter((row) => row.event === 'create').map((row) => row.taskId);

  const again = await command(['backup', copy, '--config', gateway.configPath]);
  assert.deepEqual([again.code, /File exists/.test(again.stderr)], [1, true]);

  const served = await startGateway(t, { upstream: upstream.url, rules: [['delete_*', 'approve']], approval: workflow('10m'), env: { THOUGHTGATE_STORE_PATH: copy } });
  const listed = [];
  for (let cursor = ''; cursor !== null;) {
    const page = (await served.admin.get(`/api/v1/tasks?limit=100${cursor && `&cursor=${cursor}`}`)).json;
    listed.push(...page.tasks.map((task) => task.id));
    cursor = page.nextCursor;
  }
  assert.deepEqual(listed.sort(), created.sort(), 'the tasks of the copy are those that its trail has');
  assert.equal((await served.admin.task(ids.done)).state, 'completed');
  assert.equal((await served.admin.task(ids.rejected)).reason, 'no');
});

test('no password is told; what cannot be reached is said; no half of a copy stays', options, async (t) => {
  const { url, database, command, folder } = await stage(t);
  const wrong = [
    ['postgres://gate:s3cret@127.0.0.1:1/gate', /Connection refused/],
    [postgres.url('nowhere', { user: 'postgres', password: 's3cret' }), /"nowhere" does not exist/],
    [postgres.url(database, { user: 'postgres', password: 's3cret' }).replace(`/${database}`, '/postgres'), /has no task store/],
    ['postgres://gate:s3cret@host:port/gate', /not of the form/],
  ];
  for (const [place, said] of wrong) {
    for (const [args, expected] of [[['audit', 'list'], 2], [['audit', 'verify'], 2], [['backup', 'half.db'], 1]]) {
      const { code, stdout, stderr } = await command(args, { THOUGHTGATE_STORE_URL: place });
      assert.deepEqual([code, stdout], [expected, ''], stderr);
      assert.match(stderr, said);
      assert.doesNotMatch(stderr, /s3cret/);
    }
  }
  assert.deepEqual(fs.readdirSync(folder), []);
  const typed = await command(['audit', 'list', '--store', 'postgres://gate:s3cret@host/gate']);
  assert.equal(typed.code, 2);
  assert.match(typed.stderr, /put the URL into an environment variable/);
  assert.doesNotMatch(typed.stderr, /s3cret/);
  const denied = path.join(folder, 'nowhere', 'copy.db');
  assert.match((await command(['backup', denied], { THOUGHTGATE_STORE_URL: url })).stderr, /No such file or directory/);
});
