// A gateway's choice of PostgreSQL at its start, and its behaviour when another one takes over without the last commits.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Authority } from './lib/certificates.mjs';
import { run } from './lib/child.mjs';
import { connectedRaw } from './lib/client.mjs';
import { BINARY, Gateway, startGateway, temporaryFolder } from './lib/gateway.mjs';
import { freePort } from './lib/ports.mjs';
import { postgresMissing, startPostgres, startStandby } from './lib/postgres.mjs';
import { startWire } from './lib/postgres_wire.mjs';
import { kinds } from './lib/pseudo.mjs';
import { clientOf, onDatabase, replicas } from './lib/replicas.mjs';
import { until } from './lib/wait.mjs';

const options = { skip: postgresMissing };

/**
 * A gateway on the URL that is about to end by itself: its exit and the error that it logged. One that has not got an
 * answer of PostgreSQL within ten seconds serves, and tries again: it is no answer, so another gateway asks.
 */
async function refused(t, url, tries = 3) {
  const gateway = new Gateway(temporaryFolder(t), { upstream: 'http://127.0.0.1:9/', awaitUpstream: false, ...onDatabase(url, { id: 'a' }) });
  await gateway.start().catch(() => {});
  gateway.child.checked = true;
  const { exit } = gateway.child;
  if (!exit) await gateway.child.stop('SIGKILL');
  if (!exit && tries > 1 && /it is tried again/.test(gateway.child.output())) return refused(t, url, tries - 1);
  assert.equal(exit?.code, 1, gateway.child.output());
  assert.doesNotMatch(gateway.child.output(), /s3cret/);
  return gateway.logs.find((entry) => /could not start/.test(entry.msg)).error;
}

describe('at the start', { concurrency: true }, () => {
  test('TLS: a certificate that fits is taken; another authority, another name, and none end the process', options, async (t) => {
    const folder = temporaryFolder(t);
    const authority = new Authority(folder);
    const other = new Authority(folder, 'Other Authority');
    const port = await freePort();
    const server = await startPostgres(t, {
      prepare: (postgres) => {
        const { certFile, keyFile } = authority.issue('postgres', { san: 'DNS:localhost' });
        postgres.settings = ['listen_addresses=127.0.0.1', 'ssl=on', `ssl_cert_file=${postgres.give(certFile)}`, `ssl_key_file=${postgres.give(keyFile)}`];
        postgres.port = port;
        postgres.access(['local all all trust', 'hostssl all all 127.0.0.1/32 trust']);
      },
    });
    const plain = await startPostgres(t);
    const wire = await startWire(t, plain.socket);
    const url = (host, file, at = port) => `postgres://postgres:s3cret@${host}:${at}/gate?sslmode=verify-full&sslrootcert=${encodeURIComponent(file)}`;
    const gateway = await startGateway(t, { upstream: 'http://127.0.0.1:9/', awaitUpstream: false, ...onDatabase(url('localhost', authority.file), { id: 'a' }) });
    await until(async () => (await gateway.admin.get('/ready')).json.checks.store, 'the store to work');
    assert.deepEqual(server.query("SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'taskgate%'"), [['t']]);
    assert.match(await refused(t, url('localhost', other.file)), /certificate verify failed/);
    assert.match(await refused(t, url('127.0.0.1', authority.file)), /does not match host name/);
    assert.match(await refused(t, url('localhost', `${folder}/absent.pem`)), /absent\.pem/);
    assert.match(await refused(t, url('127.0.0.1', authority.file, wire.port)), /does not support SSL/);
  });

  test('a server of an older version ends the process, whatever else it says', options, async (t) => {
    const server = await startPostgres(t);
    const wire = await startWire(t, server.socket, { version: '14.9' });
    assert.match(await refused(t, wire.url()), /is a PostgreSQL before version 15; taskgate needs 15 or later/);
    wire.version = '15.1';
    const gateway = await startGateway(t, { upstream: 'http://127.0.0.1:9/', awaitUpstream: false, ...onDatabase(wire.url(), { id: 'a' }) });
    await until(async () => (await gateway.admin.get('/ready')).json.checks.store, 'the store to work');
  });

  test('a standby ends the process with what to name instead, and is good enough to be read', options, async (t) => {
    const server = await startPostgres(t);
    const { gateways: [gateway] } = await replicas(t, server.url(), ['a']);
    const { taskId } = await (await clientOf(t, gateway)).createTask('delete_user');
    const standby = await startStandby(t, server);
    assert.match(await refused(t, standby.url()), /is a standby, where nothing can be written; name the primary/);
    const offline = (args) => run(BINARY, args, { cwd: temporaryFolder(t), env: { THOUGHTGATE_STORE_URL: standby.url() } });
    const listed = await offline(['audit', 'list']);
    assert.deepEqual([listed.code, listed.stderr], [0, '']);
    assert.match(listed.stdout, new RegExp(taskId));
    assert.equal((await offline(['audit', 'verify'])).code, 0);
    assert.equal((await offline(['backup', 'copy.db'])).code, 0);
  });
});

test('a connection that fell silent is given up at the beginning of a transaction, and the call is held by a new one', options, async (t) => {
  const server = await startPostgres(t);
  const wire = await startWire(t, server.socket);
  const { gateways: [gateway] } = await replicas(t, wire.url(), ['a']);
  const client = await clientOf(t, gateway);
  await client.createTask('delete_user');
  let error;
  do { // a beat of the replica may be the first that waits in vain, and the call comes after it
    wire.fallSilent();
    ({ error } = await client.call('tools/call', { name: 'delete_user', arguments: {}, task: {} }));
  } while (!error);
  const { correlation_id: _, ...data } = error.data;
  assert.deepEqual([error.code, error.message, data], [-32013, 'Service unavailable', { details: 'the task store is not available', retry_after: 5, error_type: 'service_unavailable' }]);
  const lost = await gateway.logged(({ error }) => /has not answered for/.test(error));
  assert.match(lost.error, /has not answered for 5000 ms/);
  await until(() => client.createTask('delete_user').catch(() => null), 'a task at the new connection', { deadline: 20_000 });
});

test('a commit whose answer is lost: operator and client read that its fate is not known, and the same call joins the task', options, async (t) => {
  const server = await startPostgres(t);
  const wire = await startWire(t, server.socket);
  const { gateways: [gateway] } = await replicas(t, wire.url(), ['a']);
  const client = await clientOf(t, gateway);
  const { taskId } = await client.createTask('delete_user');
  const back = () => {
    wire.pointTo(server.socket);
    return until(async () => gateway.admin.list({ state: 'pending' }).catch(() => null), 'the database to be read', { deadline: 30_000 });
  };
  wire.loseCommitOf('the reason of the lost answer');
  const { status, json } = await gateway.admin.decide('reject', taskId, 'the reason of the lost answer');
  assert.deepEqual([status, json.error], [503, { code: 'unavailable', message: 'the database does not answer; it is not known whether the change was stored, see the log' }]);
  const later = await gateway.admin.decide('reject', taskId, 'another reason');
  assert.deepEqual([later.status, later.json.error.message], [503, 'the database does not answer; nothing was changed, see the log']);
  await back();
  const { state, reason } = await gateway.admin.task(taskId);
  assert.deepEqual([state, reason], ['rejected', 'the reason of the lost answer']);

  wire.loseCommitOf('the lost user');
  const lostCall = { name: 'delete_user', arguments: { name: 'the lost user' }, task: {} };
  const { error } = await client.call('tools/call', lostCall);
  const { correlation_id: _, ...data } = error.data;
  const { tasks } = await back();
  assert.deepEqual(tasks.map((task) => task.arguments), [{ name: 'the lost user' }], 'it waits for a decision nonetheless');
  const unsure = (id, advice) => [-32013, 'Service unavailable', { details: `the task store does not answer; it is not known whether the task ${id} was stored: ${advice}`, error_type: 'service_unavailable', retry_after: 5 }];
  assert.deepEqual([error.code, error.message, data], unsure(tasks[0].id, 'ask for it by this id; the same call made again joins it if it was'));
  assert.equal((await client.result('tasks/get', { taskId: tasks[0].id })).status, 'input_required');
  // The same call joins it once; the next one is a call of its own.
  assert.equal((await client.result('tools/call', lostCall)).task.taskId, tasks[0].id);
  const another = (await client.result('tools/call', lostCall)).task.taskId;
  assert.notEqual(another, tasks[0].id);
  assert.deepEqual((await gateway.admin.list({ state: 'pending' })).tasks.map(({ id }) => id).sort(), [another, tasks[0].id].sort());
  for (const id of [another, tasks[0].id]) await gateway.admin.reject(id, 'no');

  // What was not stored is stored then.
  const missingCall = { name: 'delete_user', arguments: { name: 'the missing user' }, task: {} };
  wire.loseCommitOf('the missing user', { arrives: false });
  const missing = (await client.call('tools/call', missingCall)).error;
  assert.deepEqual((await back()).tasks, []);
  const stored = (await client.result('tools/call', missingCall)).task.taskId;
  const { correlation_id: _missing, ...missingData } = missing.data;
  const named = /task (\S+) was stored/.exec(missingData.details)[1];
  assert.deepEqual([missing.code, missing.message, missingData], unsure(named, 'ask for it by this id; the same call made again joins it if it was'));
  assert.notEqual(stored, named);
  assert.deepEqual((await gateway.admin.list({ state: 'pending' })).tasks.map(({ id }) => id), [stored]);
  await gateway.admin.reject(stored, 'no');

  // A plain call joins what was stored, so that it is asked for once.
  const plain = await connectedRaw(t, gateway.url, { ...kinds.old.client, token: 'plain' });
  wire.loseCommitOf('the plain user');
  const call = () => plain.call('tools/call', { name: 'delete_user', arguments: { name: 'the plain user' } });
  const lost = (await call()).error;
  const waiting = (await back()).tasks;
  assert.deepEqual(waiting.map((task) => task.arguments), [{ name: 'the plain user' }]);
  const { correlation_id: _id, ...told } = lost.data;
  assert.deepEqual([lost.code, lost.message, told], unsure(waiting[0].id, 'the same call made again joins it if it was'));
  const again = call();
  await until(async () => (await gateway.admin.decide('approve', waiting[0].id)).status === 200, 'the approval', { deadline: 20_000 });
  assert.equal((await again).result.content[0].text, 'did delete_user');
  assert.equal((await gateway.admin.list()).tasks.length, 5);
});

test('a standby takes over without the last commits: nobody decides, and what was claimed never runs again', options, async (t) => {
  const primary = await startPostgres(t);
  const wire = await startWire(t, primary.socket);
  const held = [];
  const { upstream, gateways: [a, b] } = await replicas(t, wire.url(), ['a', 'b'], {
    rules: [{ match: 'delete_*', action: 'approve', execution: 'on_result' }],
    upstream: { handlers: { 'tools/call': (call) => held.push(call) } },
  });
  const client = await clientOf(t, a);
  const runs = (name) => upstream.calls.filter((call) => call.rpc.params.arguments.name === name).length;
  const make = async (name) => (await client.createTask('delete_user', { name })).taskId;
  const kept = await make('kept'), approved = await make('approved'), pending = await make('pending');
  await b.admin.approve(approved);

  const standby = await startStandby(t, primary);
  await until(() => standby.query('SELECT state FROM taskgate_task').length === 3, 'the standby to have the tasks');
  await standby.stop();
  // From here on only the primary has it: two claims, an approval, and a task.
  await b.admin.approve(pending);
  for (const taskId of [approved, pending]) client.call('tasks/result', { taskId }).catch(() => {});
  await until(() => held.length === 2, 'both calls to run');
  const lost = await make('lost');
  await primary.stop('SIGQUIT');
  await standby.start();
  standby.run('pg_ctl', ['promote', '-w', '-s', '-D', standby.data]);
  wire.pointTo(standby.socket);

  for (const gateway of [a, b]) {
    await until(async () => {
      const { status, json } = await gateway.admin.get('/ready');
      return status === 503 && json.reason === 'store_lacks_commits';
    }, '/ready to be 503', { deadline: 30_000 });
    assert.equal((await gateway.admin.decide('approve', kept)).status, 503);
  }
  assert.deepEqual([runs('approved'), runs('pending'), runs('kept')], [1, 1, 0]);
  for (const call of held) call.reply.result({ content: [{ type: 'text', text: 'late' }] });
  const accepted = await run(BINARY, ['store', 'accept-timeline'], { env: { THOUGHTGATE_STORE_URL: wire.url() } });
  assert.match(accepted.stdout, /Accepted/, accepted.stderr);
  for (const gateway of [a, b]) await until(async () => (await gateway.admin.get('/ready')).status === 200, '/ready to be 200', { deadline: 30_000 });

  for (const taskId of [approved, pending]) {
    const task = await b.admin.task(taskId);
    assert.equal(task.state, 'failed', JSON.stringify(task));
    assert.match(task.statusMessage, /outcome unknown/);
    assert.equal((await a.admin.decide('approve', taskId)).status, 409);
    assert.match(JSON.stringify(await client.error('tasks/result', { taskId })), /outcome_unknown/);
  }
  assert.equal((await a.admin.get(`/api/v1/tasks/${lost}`)).status, 404);
  await b.admin.approve(kept);
  const result = client.call('tasks/result', { taskId: kept });
  await until(() => held.length === 3, 'the third call to run');
  held[2].reply.result({ content: [{ type: 'text', text: 'done' }] });
  assert.match(JSON.stringify(await result), /done/);
  assert.deepEqual([runs('approved'), runs('pending'), runs('lost'), runs('kept')], [1, 1, 0, 1]);
  const verified = await run(BINARY, ['audit', 'verify'], { env: { THOUGHTGATE_STORE_URL: wire.url() } });
  assert.equal(verified.code, 0, verified.stderr);
});
