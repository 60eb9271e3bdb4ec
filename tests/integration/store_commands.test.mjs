// taskgate store: a copy from a file to PostgreSQL and back, the schema, accepting a timeline.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { run } from './lib/child.mjs';
import { BINARY, Gateway, startGateway, temporaryFolder, workflow } from './lib/gateway.mjs';
import { wholeFile } from './lib/lifetime.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { STATE_KEY } from './lib/relaying.mjs';
import { clientOf, onDatabase } from './lib/replicas.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const file = wholeFile();
let postgres;
const server = async () => (postgres ??= await startPostgres(file));
const store = (args, env = {}) => run(BINARY, ['store', ...args], { env });

test('usage: two places, no password where everybody reads it, no place twice', async (t) => {
  const folder = temporaryFolder(t);
  const a = path.join(folder, 'a.db');
  for (const [args, said] of [
    [['copy', '--from', a], /name one of --to and --to-env/],
    [['copy', '--from', a, '--from-env', 'A', '--to', 'b'], /name one of --from and --from-env/],
    [['copy', '--from', 'postgres://u:s3cret@h/d', '--to', a], /put the URL into an environment variable/],
    [['copy', '--from-env', 'UNSET', '--to', a], /UNSET is not set/],
    [['copy', '--from', a, '--to', a], /the same store/],
    [['copy', '--from', a, '--to', `${a}2`], /cannot be read/],
    [['migrte'], /migrate/],
  ]) {
    const { code, stderr } = await store(args);
    assert.equal(code, 2, stderr);
    assert.match(stderr, said);
    assert.doesNotMatch(stderr, /s3cret/);
  }
  assert.match((await store(['copy', '--help'])).stdout, /--from-env NAME/);
});

/** A gateway with a task in each of several states. */
async function filled(t) {
  const upstream = await startUpstream(t, { tools: [tool('delete_user'), tool('read')] });
  const gateway = await startGateway(t, { upstream: upstream.url, rules: [['delete_*', 'approve']], approval: workflow('10m', { redact_fields: ['secret'] }), ...STATE_KEY }); // by which the digests of what is hidden are made
  const client = await clientOf(t, gateway);
  const ids = {};
  for (const name of ['completed', 'rejected', 'pending']) ids[name] = (await client.createTask('delete_user', { name, secret: 'x' })).taskId;
  await gateway.admin.approve(ids.completed);
  await gateway.admin.reject(ids.rejected, 'no');
  await gateway.admin.inState(ids.completed, 'completed');
  return { upstream, gateway, client, ids };
}

const view = (admin, ids) => Promise.all(Object.values(ids).map((id) => admin.task(id)));

test('a store goes from its file to PostgreSQL and back: tasks, results, the trail and its chain', { skip: postgresMissing }, async (t) => {
  const { upstream, gateway, ids } = await filled(t);
  const url = (await server()).createDatabase('copied');
  const env = { GATE: url };
  const busy = await store(['copy', '--from', gateway.storePath, '--to-env', 'GATE'], env);
  assert.equal(busy.code, 5, busy.stderr);
  assert.match(busy.stderr, /in use by another taskgate process/);
  const before = await view(gateway.admin, ids);
  const trail = (await gateway.admin.get('/api/v1/audit?limit=100')).json.entries;
  await gateway.stop();
  for (const option of [['--print'], ['--grant-to', 'gate']]) {
    const { code, stderr } = await store(['migrate', ...option, '--config', gateway.configPath]);
    assert.deepEqual([code, /--grant-to and --print are for PostgreSQL/.test(stderr)], [1, true], stderr);
  }

  const copied = await store(['copy', '--from', gateway.storePath, '--to', '{env: GATE}'], env);
  assert.equal(copied.code, 0, copied.stderr);
  assert.match(copied.stdout, /Copied 3 tasks, \d+ rows of the audit trail/);
  const again = await store(['copy', '--from', gateway.storePath, '--to-env', 'GATE'], env);
  assert.equal(again.code, 5, again.stderr);
  assert.match(again.stderr, /not empty/);

  const shared = await startGateway(t, { upstream: upstream.url, ...onDatabase(url, { id: 'a', approval: workflow('10m', { redact_fields: ['secret'] }), ...STATE_KEY }) });
  assert.deepEqual(await view(shared.admin, ids), before);
  const entries = (await shared.admin.get('/api/v1/audit?limit=100')).json.entries;
  assert.deepEqual(entries.slice(0, trail.length), trail);
  const client = await clientOf(t, shared);
  assert.match(JSON.stringify(await client.result('tasks/result', { taskId: ids.completed })), /completed/);
  await shared.admin.approve(ids.pending);
  const fresh = (await client.createTask('delete_user', { name: 'fresh' })).taskId;
  const verified = await shared.cli(['audit', 'verify'], { env: { TASKGATE_TOKEN: shared.admin.token } });
  assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  await shared.stop();

  const back = path.join(gateway.folder, 'back.db');
  const returned = await store(['copy', '--from-env', 'GATE', '--to', back], env);
  assert.equal(returned.code, 0, returned.stderr);
  assert.equal(fs.statSync(back).mode & 0o777, 0o600);
  const proof = await run(BINARY, ['audit', 'verify', '--store', back]);
  assert.equal(proof.code, 0, proof.stdout + proof.stderr);
  fs.copyFileSync(back, gateway.storePath);
  for (const part of ['-wal', '-shm']) fs.rmSync(gateway.storePath + part, { force: true });
  await gateway.launch();
  gateway.child.checked = false;
  assert.equal((await gateway.admin.task(fresh)).state, 'pending');
  assert.equal((await gateway.admin.task(ids.rejected)).reason, 'no');
  assert.deepEqual((await gateway.admin.task(ids.completed)).execution, before[0].execution);
});

test('migrate makes the schema; accept-timeline lets the replicas decide again; both say what is wrong', { skip: postgresMissing }, async (t) => {
  const database = await server();
  const url = database.createDatabase('maintained');
  const migrated = await store(['migrate'], { THOUGHTGATE_STORE_URL: url });
  assert.equal(migrated.code, 0, migrated.stderr);
  assert.match(migrated.stdout, /The schema is that of this version/);
  const missing = await store(['migrate'], { THOUGHTGATE_STORE_URL: database.url('nowhere') });
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /nowhere/);
  const nothing = await store(['accept-timeline'], { THOUGHTGATE_STORE_URL: url });
  assert.match(nothing.stdout, /nothing to accept/);

  const upstream = await startUpstream(t, { tools: [tool('delete_user')] });
  const gateway = new Gateway(temporaryFolder(t), { upstream: upstream.url, ...onDatabase(url, { id: 'a' }) });
  t.after(() => gateway.stop());
  await gateway.start();
  const client = await clientOf(t, gateway);
  const { taskId } = await client.createTask('delete_user');
  await client.result('tasks/get', { taskId }); // it has read the change that is to be missing
  // As after a failover to a standby that had not got the last commit.
  database.query('DELETE FROM taskgate_feed', 'maintained');
  const unready = await until(async () => {
    const answer = await gateway.admin.get('/ready');
    return answer.status === 503 && answer.json;
  }, '/ready to be 503');
  assert.equal(unready.reason, 'store_lacks_commits');
  assert.equal((await gateway.admin.decide('approve', taskId)).status, 503);
  await gateway.logged(/lacks changes that were committed before/);
  await until(() => database.query('SELECT count(*) FROM taskgate_hold', 'maintained')[0][0] === '1', 'the database to have it');
  const accepted = await store(['accept-timeline'], { THOUGHTGATE_STORE_URL: url });
  assert.match(accepted.stdout, /Accepted/);
  await until(async () => (await gateway.admin.get('/ready')).status === 200, '/ready to be 200 again');
  await gateway.admin.approve(taskId);
  await gateway.admin.inState(taskId, 'completed');
});

test('two roles: the owner migrates and grants, and the gateway needs no more; a missing right names table, role and command', { skip: postgresMissing }, async (t) => {
  const database = await server();
  database.query('CREATE ROLE owner LOGIN; CREATE ROLE "Gate" LOGIN', 'postgres');
  database.createDatabase('owned');
  database.query('ALTER DATABASE owned OWNER TO owner', 'postgres');
  const owner = { THOUGHTGATE_STORE_URL: database.url('owned', { user: 'owner' }) };
  const gate = { THOUGHTGATE_STORE_URL: database.url('owned', { user: 'Gate' }) };
  const printed = async () => (await store(['migrate', '--print', '--grant-to', 'Gate'], owner)).stdout;
  const whole = await printed();
  assert.match(whole, /^CREATE TABLE taskgate_task \(/m);
  assert.deepEqual(database.query("SELECT relname FROM pg_class WHERE relname LIKE 'taskgate%'", 'owned'), [], 'nothing is changed');
  const migrated = await store(['migrate'], owner);
  assert.equal(migrated.code, 0, migrated.stderr);

  const wanted = /permission denied for table taskgate_schema .*role Gate lacks the right; run taskgate store migrate --grant-to Gate/;
  const refused = await store(['accept-timeline'], gate);
  assert.deepEqual([refused.code, wanted.test(refused.stderr)], [1, true], refused.stderr);
  const upstream = await startUpstream(t, { tools: [tool('delete_user')] });
  const gateway = new Gateway(temporaryFolder(t), { upstream: upstream.url, ...onDatabase(gate.THOUGHTGATE_STORE_URL, { id: 'a' }) });
  t.after(() => gateway.stop());
  await gateway.start().catch(() => {});
  gateway.child.checked = true;
  assert.equal((await gateway.child.exited).code, 1, gateway.child.output());
  assert.match(gateway.logs.find((entry) => /could not start/.test(entry.msg)).error, wanted);
  assert.doesNotMatch(gateway.child.output(), /cannot be reached/);

  const rest = await printed();
  assert.match(rest, /^BEGIN;\nSET LOCAL search_path TO public;\nGRANT SELECT, INSERT, UPDATE, DELETE ON public.taskgate_schema, public.taskgate_task, .* TO "Gate";\nALTER DEFAULT PRIVILEGES .*;\nCOMMIT;\n$/);
  assert.match(whole, /taskgate_block .*\n(?:.*\n)*GRANT SELECT/);
  assert.ok(whole.endsWith(rest.slice(rest.indexOf('GRANT'))), 'the same rights before and after');
  const nobody = await store(['migrate', '--grant-to', 'nobody'], owner);
  assert.deepEqual([nobody.code, /role "nobody" does not exist/.test(nobody.stderr)], [1, true], nobody.stderr);
  const foreign = await store(['migrate', '--grant-to', 'Gate'], gate);
  assert.deepEqual([foreign.code, wanted.test(foreign.stderr)], [1, true], foreign.stderr);
  const granted = await store(['migrate', '--grant-to', 'Gate'], owner);
  assert.deepEqual([granted.code, granted.stdout], [0, 'The schema is that of this version.\nThe role Gate may use it.\n'], granted.stderr);
  database.query('SET ROLE owner; CREATE TABLE taskgate_later (id BIGINT)', 'owned');
  assert.deepEqual(database.query("SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'taskgate%' AND NOT (has_table_privilege('Gate', oid, 'SELECT') AND has_table_privilege('Gate', oid, 'INSERT') AND has_table_privilege('Gate', oid, 'UPDATE') AND has_table_privilege('Gate', oid, 'DELETE'))", 'owned'), [['0']]);

  await gateway.launch();
  const client = await clientOf(t, gateway);
  const { taskId } = await client.createTask('delete_user');
  await gateway.admin.approve(taskId);
  await gateway.admin.inState(taskId, 'completed');
  database.query('REVOKE INSERT ON taskgate_task FROM "Gate"', 'owned');
  await assert.rejects(client.createTask('delete_user'));
  await gateway.logged((entry) => /permission denied for table taskgate_task .*store migrate --grant-to Gate/.test(entry.error));
  assert.doesNotMatch(gateway.child.output(), /cannot be reached/);
});
