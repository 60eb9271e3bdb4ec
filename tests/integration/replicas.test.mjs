// Gateways that share one PostgreSQL database: any of them answers, decides, and is told.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wholeFile } from './lib/lifetime.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { clientOf, replicas } from './lib/replicas.mjs';
import { until } from './lib/wait.mjs';

const options = { skip: postgresMissing };
let numbers = 0;
let postgres;
const file = wholeFile();

/** A database of the test's own on one server for the file. */
async function database() {
  postgres ??= startPostgres(file);
  return (await postgres).createDatabase(`gate_${++numbers}`);
}

const both = async (t, more) => {
  const { upstream, gateways } = await replicas(t, await database(), ['a', 'b'], more);
  return { upstream, a: gateways[0], b: gateways[1] };
};
const ready = async (gateway) => (await gateway.admin.get('/ready')).json;

test('created at one, decided at the other, the result at the first; every task is read anywhere', options, async (t) => {
  const { upstream, a, b } = await both(t);
  const atA = await clientOf(t, a);
  const atB = await clientOf(t, b);
  const { taskId } = await atA.createTask('delete_user', { id: 7 });
  assert.equal((await atB.result('tasks/get', { taskId })).status, 'input_required');
  const waiting = atA.result('tasks/result', { taskId });
  assert.equal((await b.admin.task(taskId)).state, 'pending');
  await b.admin.approve(taskId, 'fine');
  assert.match(JSON.stringify(await waiting), /delete_user/);
  assert.equal((await atB.result('tasks/get', { taskId })).status, 'completed');
  assert.match(JSON.stringify(await atB.result('tasks/result', { taskId })), /delete_user/);
  assert.equal((await a.admin.task(taskId)).decidedBy, 'admin');
  assert.equal(upstream.calls.length, 1);
  assert.deepEqual((await atB.result('tasks/list')).tasks.map((task) => task.taskId), [taskId]);
});

test('/ready names the replica, its epoch, and the others', options, async (t) => {
  const { a, b } = await both(t);
  const seen = await until(async () => ((await ready(a)).replica.peers.length > 0 ? ready(a) : null), 'a to see b');
  assert.deepEqual(seen.replica, { id: 'a', epoch: 1, peers: [{ id: 'b', state: 'alive' }] });
  assert.equal(seen.checks.store, true);
  await b.stop();
  await until(async () => (await ready(a)).replica.peers[0].state === 'gone', 'a to see that b has left');
});

test('two at once: one of a race of decisions wins, and it runs once', options, async (t) => {
  const { upstream, a, b } = await both(t);
  const client = await clientOf(t, a);
  for (let round = 0; round < 5; round++) {
    const { taskId } = await client.createTask('delete_user', { round });
    const answers = await Promise.all([a.admin.decide('approve', taskId), b.admin.decide('approve', taskId), b.admin.decide('reject', taskId)]);
    assert.equal(answers.filter((answer) => answer.status === 200).length, 1, JSON.stringify(answers.map((answer) => answer.status)));
    const isApproved = answers[2].status !== 200;
    await a.admin.inState(taskId, isApproved ? 'completed' : 'rejected');
    assert.equal(upstream.calls.filter((call) => call.rpc.params.arguments.round === round).length, isApproved ? 1 : 0);
  }
});

test('limits hold over both', options, async (t) => {
  const { a, b } = await both(t, { config: { limits: { pending_per_principal: 3 } } });
  const clients = [await clientOf(t, a), await clientOf(t, b)];
  const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => clients[i % 2].call('tools/call', { name: 'delete_user', arguments: { i }, task: {} })));
  assert.equal(answers.filter((answer) => answer.result).length, 3);
  assert.ok(answers.every((answer) => answer.result || answer.error.code === -32013));
});

test('killed while it executes: the outcome is unknown, and it is never run again', options, async (t) => {
  const { upstream, a, b } = await both(t, { upstream: { handlers: { 'tools/call': () => {} } } });
  const client = await clientOf(t, a);
  const { taskId } = await client.createTask('delete_user');
  await b.admin.approve(taskId);
  await upstream.received('tools/call');
  await a.kill9();
  const task = await until(async () => ((await b.admin.task(taskId)).state === 'failed' ? b.admin.task(taskId) : null), 'b to take a for dead', { deadline: 40_000, every: 200 });
  assert.match(task.statusMessage, /outcome unknown/);
  assert.match(JSON.stringify(await (await clientOf(t, b)).error('tasks/result', { taskId })), /outcome_unknown/);
  assert.equal(upstream.calls.length, 1);
});

test('a process of a name that is taken ends with a sentence, and the first goes on', options, async (t) => {
  const url = await database();
  const { upstream, gateways } = await replicas(t, url, ['a']);
  const { Gateway, temporaryFolder } = await import('./lib/gateway.mjs');
  const { onDatabase } = await import('./lib/replicas.mjs');
  const second = new Gateway(temporaryFolder(t), { upstream: upstream.url, awaitUpstream: false, ...onDatabase(url, { id: 'a' }) });
  await second.start();
  second.child.checked = true;
  assert.equal((await second.admin.get('/ready')).status, 503);
  const exit = await second.child.exited;
  assert.equal(exit.code, 1, second.child.output());
  assert.ok(second.logs.some((entry) => entry.level === 'error' && /name/.test(entry.msg)), second.child.output());
  assert.equal((await ready(gateways[0])).replica.epoch, 1);
});
