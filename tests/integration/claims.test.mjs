// A call whose approval and whose claim share a commit: what is told, when it is not so, and that it runs once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { Child } from './lib/child.mjs';
import { defer } from './lib/lifetime.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { onDatabase } from './lib/replicas.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const NAMES = ['alice', 'bob', 'carol'];
const ADMIN = { people: NAMES.map((name) => ({ name })), tokens: NAMES.map((name) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver'] })) };
const ENV = { RUST_LOG: 'debug', ...Object.fromEntries(NAMES.map((name) => [name.toUpperCase(), `token-of-${name}`])) };

async function stage(t, keys = {}, more = {}) {
  const all = await scene(t, { rules: [['delete_user', 'approve']], approval: workflow('10m', keys), upstream: { tools: [tool('delete_user')] }, env: ENV, config: { admin: ADMIN }, ...more });
  const as = Object.fromEntries(NAMES.map((name) => [name, all.admin.as(`token-of-${name}`)]));
  const client = await all.connect();
  const call = async (args = {}) => (await client.createTask('delete_user', args)).taskId;
  /** The moves of the call's execution, once it has ended. */
  const moves = async (id) => {
    const of = () => all.gateway.logs.filter(({ msg, task }) => msg === 'A call moves' && task === id);
    await until(() => of().at(-1)?.to === 'ended', () => `the end of ${id}; ${JSON.stringify(of())}`);
    return of().map(({ from, to }) => `${from} ${to}`);
  };
  return { ...all, as, client, call, moves };
}

const CLAIMED = ['offered claiming', 'claiming opening', 'opening running', 'running storing', 'storing ended'];
const CHECKED = ['offered checking', 'checking committing', 'committing opening', 'opening running', 'running storing', 'storing ended'];

test('the claim follows the vote: the approver is told approved, others hear approved, then executing', async (t) => {
  const { admin, as, call, client, moves, upstream } = await stage(t);
  const events = await admin.events();
  const id = await call();
  const result = client.result('tasks/result', { taskId: id });
  const answer = await as.alice.decide('approve', id, 'fine');
  assert.deepEqual([answer.status, answer.json.state, answer.json.decidedBy], [200, 'approved', 'alice']);
  await result;
  assert.deepEqual(await moves(id), CLAIMED);
  const heard = [];
  for (const state of ['pending', 'approved', 'executing', 'completed']) heard.push(JSON.parse((await events.next((event) => event.event === 'task' && JSON.parse(event.data).state === state)).data).state);
  assert.deepEqual(heard, ['pending', 'approved', 'executing', 'completed']);
  const { entries } = (await admin.get('/api/v1/audit')).json;
  assert.deepEqual(entries.filter(({ taskId }) => taskId === id).map(({ event }) => event), ['create', 'approve', 'execute', 'complete']);
  assert.equal(upstream.calls.length, 1);
});

test('of a quorum only the vote that may decide brings the claim', async (t) => {
  const { as, call, moves, gateway } = await stage(t, { quorum: 2 });
  const id = await call();
  assert.equal((await as.alice.decide('approve', id)).status, 202);
  assert.ok(!gateway.logs.some(({ msg, task }) => msg === 'A call moves' && task === id), 'one vote is missing still');
  assert.equal((await as.bob.decide('approve', id)).json.state, 'approved');
  assert.deepEqual(await moves(id), CLAIMED);
});

test('with on_result the claim comes if the result is waited for; else the call waits', async (t) => {
  const { admin, as, call, client, moves, upstream } = await stage(t, {}, { rules: [{ match: 'delete_user', action: 'approve', execution: 'on_result' }] });
  const [alone, awaited] = [await call({ n: 1 }), await call({ n: 2 })];
  await as.alice.approve(alone);
  const result = client.result('tasks/result', { taskId: awaited });
  await admin.list(); // it comes behind the wait
  await as.alice.approve(awaited);
  await result;
  assert.deepEqual([(await admin.task(alone)).state, upstream.calls.map(({ rpc }) => rpc.params.arguments.n)], ['approved', [2]]);
  await client.result('tasks/result', { taskId: alone });
  assert.deepEqual(await moves(alone), CHECKED);
});

test('rules that changed before the vote are compared behind it, and nothing runs', async (t) => {
  const { as, call, client, gateway, upstream } = await stage(t);
  const id = await call();
  gateway.writeConfig({ rules: [['delete_user', 'deny']] });
  gateway.hangUp();
  await gateway.logged(/^Configuration reloaded$/);
  assert.equal((await as.alice.decide('approve', id)).json.state, 'approved');
  assert.equal((await client.error('tasks/result', { taskId: id })).code, -32011);
  assert.equal(upstream.calls.length, 0);
});

/** Keeps every transaction that writes waiting, from right after a heartbeat on, until the returned function is called. */
async function holdWriters(t, postgres) {
  const beat = () => postgres.query('SELECT max(alive_ms) FROM taskgate_replica')[0][0];
  const before = beat();
  await until(() => beat() !== before, 'a heartbeat', { deadline: 20_000, every: 50 });
  const writers = "pg_advisory_lock(hashtext('taskgate'), hashtext(current_schema()))";
  const child = new Child('psql', ['-X', '-q', '-h', postgres.folder, '-U', 'postgres', '-d', 'gate', '-c', `SELECT ${writers}`, '-c', 'SELECT pg_sleep(60)'], { name: 'psql' });
  const holders = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'";
  const release = async () => (postgres.query(holders), child.exited);
  defer(t, () => child.stop());
  await until(() => postgres.query("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'").length > 0, 'the lock of the writers');
  return release;
}

test('rules that changed while a plain claim was on its way to the disk are compared behind it, and nothing runs', { skip: postgresMissing }, async (t) => {
  const postgres = await startPostgres(t);
  const { as, call, client, gateway, upstream } = await stage(t, {}, onDatabase(postgres.url(), { id: 'p', rules: [{ match: 'delete_user', action: 'approve', execution: 'on_result' }], approval: workflow('10m'), config: { admin: ADMIN }, env: ENV }));
  const id = await call();
  await as.alice.approve(id);
  const release = await holdWriters(t, postgres);
  const result = client.error('tasks/result', { taskId: id });
  const isCommitting = () => gateway.logs.some(({ msg, task, to }) => msg === 'A call moves' && task === id && to === 'committing');
  await until(isCommitting, 'the claim to be queued');
  gateway.writeConfig({ rules: [['delete_user', 'deny']] });
  gateway.hangUp();
  await gateway.logged(/^Configuration reloaded$/);
  await release();
  assert.equal((await result).code, -32011);
  assert.equal(upstream.calls.length, 0);
});

test('a list of tools that goes out of date while a claim is on its way to the disk is no change of the tool', { skip: postgresMissing }, async (t) => {
  const postgres = await startPostgres(t);
  const { admin, as, call, client, gateway, upstream } = await stage(t, {}, onDatabase(postgres.url(), { id: 'p', rules: [{ match: 'delete_user', action: 'approve', execution: 'on_result' }], approval: workflow('10m'), config: { admin: ADMIN }, env: ENV }));
  const stream = await client.listen();
  await client.result('tools/list');
  const id = await call();
  await as.alice.approve(id);
  const release = await holdWriters(t, postgres);
  const result = client.result('tasks/result', { taskId: id });
  const isCommitting = () => gateway.logs.some(({ msg, task, to }) => msg === 'A call moves' && task === id && to === 'committing');
  await until(isCommitting, 'the claim to be queued');
  upstream.onHttp = ({ rpc }) => rpc?.method === 'tools/list'; // never answered: no list is current any more
  upstream.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  await stream.message((m) => m.method === 'notifications/tools/list_changed');
  await release();
  assert.ok((await result).content);
  assert.equal((await admin.task(id)).state, 'completed');
  assert.equal(upstream.calls.length, 1);
});

test('votes, withdrawals and cancellations that race the claim: each call runs once, or not at all', async (t) => {
  const { admin, as, call, client, upstream } = await stage(t, { quorum: 2 });
  let approved = 0;
  for (let round = 0; round < 20; round++) {
    const id = await call({ round });
    await as.alice.decide('approve', id);
    const rival = [() => as.alice.decide('withdraw', id), () => as.carol.decide('approve', id), () => client.call('tasks/cancel', { taskId: id }), () => as.carol.decide('reject', id)][round % 4];
    await Promise.all(round % 8 < 4 ? [rival(), as.bob.decide('approve', id)] : [as.bob.decide('approve', id), rival()]);
    if ((await admin.task(id)).state === 'pending') await as.carol.approve(id);
    const { state } = await admin.inState(id, 'completed', 'cancelled', 'rejected');
    const runs = upstream.calls.filter(({ rpc }) => rpc.params.arguments.round === round).length;
    if (state === 'cancelled') assert.ok(runs <= 1, `${id}: ${runs}`);
    else assert.equal(runs, state === 'completed' ? 1 : 0, `${id} ${state}`);
    approved += state === 'completed';
  }
  assert.ok(approved >= 10, `${approved} were approved`);
});

// Each connection of a client may end at another worker; the approver's is at the first.
const FOUR_WORKERS = { config: { admin: ADMIN, workers: 4 } };

test('the claim follows the vote at the worker of four that holds the call', async (t) => {
  const { as, connect, moves } = await stage(t, {}, FOUR_WORKERS);
  const ids = [];
  for (let n = 0; n < 12; n++) ids.push((await (await connect()).createTask('delete_user', { n })).taskId);
  const answers = await Promise.all(ids.map((id) => as.alice.decide('approve', id)));
  assert.deepEqual(answers.map(({ status, json }) => [status, json.state]), ids.map(() => [200, 'approved']));
  for (const id of ids) assert.deepEqual(await moves(id), CLAIMED);
});

test('a call whose credentials several of four workers hold runs once', async (t) => {
  const { admin, as, connect, upstream } = await stage(t, {}, FOUR_WORKERS);
  const bearer = { headers: { authorization: 'Bearer one' } };
  const clients = await Promise.all(Array.from({ length: 8 }, () => connect(bearer)));
  for (let n = 0; n < 10; n++) {
    const { taskId } = await clients[n % 8].createTask('delete_user', { n });
    await Promise.all(clients.map((client) => client.result('tasks/get', { taskId })));
    assert.equal((await as.alice.decide('approve', taskId)).json.state, 'approved');
    await admin.inState(taskId, 'completed');
  }
  assert.deepEqual(upstream.calls.map(({ rpc }) => rpc.params.arguments.n), [...Array(10).keys()]);
});
