// Gateways that share one PostgreSQL database: any of them answers, decides, and is told.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Gateway, temporaryFolder, workflow } from './lib/gateway.mjs';
import { wholeFile } from './lib/lifetime.mjs';
import { postgresMissing, startPostgres } from './lib/postgres.mjs';
import { clientOf, onDatabase, replicas } from './lib/replicas.mjs';
import { tool } from './lib/upstream.mjs';
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

/** Nobody reads or writes the table until the function that this returns was called. */
const holdTable = async (url, table) => (await postgres).holdTable(/\/(gate_\d+)\?/.exec(url)[1], table);

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

test('events of one replica go on at the other by Last-Event-ID, none missed and none twice', options, async (t) => {
  const { a, b } = await both(t);
  const client = await clientOf(t, a);
  const open = (gateway, last) => gateway.admin.events(last === undefined ? {} : { 'last-event-id': last });
  const take = async (stream) => {
    const event = await stream.next((e) => e.event === 'task', 'an event');
    return { id: event.id, task: event.json.id, state: event.json.state };
  };
  const atA = await open(a);
  const atB = await open(b);
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push((await client.createTask('delete_user', { i })).taskId);
  const seenA = [await take(atA), await take(atA), await take(atA)];
  assert.deepEqual(seenA.map((event) => event.task), ids);
  assert.deepEqual([await take(atB), await take(atB), await take(atB)], seenA, 'the same numbers at both');
  atA.abort();
  await b.admin.reject(ids[0]);
  await a.admin.reject(ids[1]);
  const again = await open(b, seenA[0].id);
  const rest = [await take(again), await take(again), await take(again), await take(again)];
  assert.deepEqual(rest.map((event) => event.task), [ids[1], ids[2], ids[0], ids[1]]);
  assert.ok(rest.every((event, i) => i === 0 || Number(event.id) > Number(rest[i - 1].id)));
  // A replica that was not there then knows them from the database.
  await a.restart();
  await a.child.ready(async () => (await a.admin.get('/ready')).json.checks.store, 'its store');
  const later = await open(a, seenA[2].id);
  assert.deepEqual([await take(later), await take(later)], rest.slice(2));
  await b.admin.reject(ids[2]);
  assert.deepEqual((await take(later)).task, ids[2]);
  const foreign = await open(a, '1790000000000000');
  const { taskId } = await client.createTask('delete_user', { last: true });
  assert.equal((await take(foreign)).task, taskId, 'a number of another database: only new ones');
});

test('event: grant of one replica is told at the other, and the numbers of the changes of tasks go on', options, async (t) => {
  const { a, b } = await both(t, { approval: workflow('10m', { grants: { max: '1h', max_calls: 5 } }) });
  const client = await clientOf(t, a);
  await client.result('tools/list');
  const atB = await b.admin.events();
  const heard = async () => (await atB.next((e) => e.event === 'grant', 'a grant')).json;
  const { taskId } = await client.createTask('delete_user', { id: 1 });
  const { id: last } = await atB.next((e) => e.event === 'task', 'a task');
  const { json } = await a.admin.post(`/api/v1/tasks/${taskId}/approve`, { grant: { for: '1h', calls: 2 } });
  const given = await heard();
  assert.deepEqual([given.id, given.state, given.used], [json.grant.id, 'active', 0]);
  await client.createTask('delete_user', { id: 1 });
  assert.equal((await heard()).used, 1);
  await b.admin.inState(taskId, 'completed');
  const atA = await a.admin.events();
  assert.equal((await b.admin.post(`/api/v1/grants/${given.id}/revoke`)).status, 200);
  for (const stream of [atA, atB]) assert.equal((await stream.next((e) => e.event === 'grant' && e.json.endCause === 'revoked', 'the end')).json.id, given.id);
  const again = await a.admin.events({ 'last-event-id': last });
  const next = await client.createTask('delete_user', { id: 2 });
  await again.next((e) => e.event === 'task' && e.json.id === next.taskId, 'a change behind those of grants');
});

test('limits hold over both', options, async (t) => {
  const { a, b } = await both(t, { config: { limits: { pending_per_principal: 3 } } });
  const clients = [await clientOf(t, a), await clientOf(t, b)];
  const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => clients[i % 2].call('tools/call', { name: 'delete_user', arguments: { i }, task: {} })));
  assert.equal(answers.filter((answer) => answer.result).length, 3);
  assert.ok(answers.every((answer) => answer.result || answer.error.code === -32013));
});

// Most of their time is silence that others must notice, so they wait side by side.
describe('silence', { concurrency: true }, () => {
  test('/ready names the replica, its epoch, and the others', options, async (t) => {
    const { a, b } = await both(t);
    const seen = await until(async () => ((await ready(a)).replica.peers.length > 0 ? ready(a) : null), 'a to see b');
    assert.deepEqual(seen.replica, { id: 'a', epoch: 1, peers: [{ id: 'b', state: 'alive' }] });
    assert.equal(seen.checks.store, true);
    await b.stop();
    await until(async () => (await ready(a)).replica.peers[0].state === 'gone', 'a to see that b has left');
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
    const second = new Gateway(temporaryFolder(t), { upstream: upstream.url, awaitUpstream: false, ...onDatabase(url, { id: 'a' }) });
    await second.start();
    second.child.checked = true;
    assert.equal((await second.admin.get('/ready')).status, 503);
    const exit = await second.child.exited;
    assert.equal(exit.code, 1, second.child.output());
    assert.ok(second.logs.some((entry) => entry.level === 'error' && /name/.test(entry.msg)), second.child.output());
    assert.equal((await ready(gateways[0])).replica.epoch, 1);
  });

  test('the database goes and comes back under load: forwarded calls go on, nothing that was answered is lost', options, async (t) => {
    const server = await startPostgres(t);
    const { upstream, gateways } = await replicas(t, server.url(), ['a', 'b'], { config: { limits: { pending_per_principal: 100_000, pending_total: 100_000 } } });
    const clients = await Promise.all(gateways.map((gateway) => clientOf(t, gateway)));
    const acknowledged = [];
    let goesOn = true;
    const load = clients.map(async (client, which) => {
      for (let i = 0; goesOn; i++) {
        const answer = await client.call('tools/call', { name: 'delete_user', arguments: { which, i }, task: {} });
        if (answer.result) acknowledged.push(answer.result.task.taskId);
        else assert.equal(answer.error.code, -32013, JSON.stringify(answer));
      }
    });
    await until(() => acknowledged.length > 20, 'some tasks');
    await server.stop('SIGQUIT');
    const [a] = gateways;
    // A commit whose answer is lost is looked up for a while first.
    await until(async () => !(await ready(a)).checks.store, 'a to notice', { deadline: 30_000 });
    assert.equal((await a.admin.get('/ready')).status, 200);
    assert.ok(await clients[0].result('tools/call', { name: 'read' }));
    assert.equal((await clients[0].error('tools/call', { name: 'delete_user', task: {} })).code, -32013);
    assert.equal((await a.admin.decide('approve', acknowledged[0])).status, 503);
    await server.start();
    for (const gateway of gateways) await until(async () => (await ready(gateway)).checks.store, 'the store to work again', { deadline: 30_000 });
    const count = acknowledged.length;
    await until(() => acknowledged.length > count, 'tasks again');
    goesOn = false;
    await Promise.all(load);
    const stored = new Set(server.query('SELECT id FROM taskgate_task').map(([id]) => id));
    assert.deepEqual(acknowledged.filter((id) => !stored.has(id)), []);
    const approved = acknowledged[acknowledged.length - 1];
    await gateways[1].admin.approve(approved);
    await a.admin.inState(approved, 'completed');
    assert.equal(upstream.calls.filter((call) => call.rpc.params.name === 'delete_user').length, 1);
  });

  test('at the start: what can never work ends the process with a sentence, what is away is tried again', options, async (t) => {
    const server = await startPostgres(t);
    const start = async (url) => {
      const gateway = new Gateway(temporaryFolder(t), { upstream: 'http://127.0.0.1:9/', awaitUpstream: false, ...onDatabase(url, { id: 'a' }) });
      await gateway.start().catch(() => {});
      gateway.child.checked = true;
      return gateway;
    };
    server.query("CREATE ROLE gate LOGIN PASSWORD 'right-s3cret'; ALTER DATABASE gate OWNER TO gate", 'postgres');
    server.access(['local all postgres trust', 'local all all scram-sha-256']);
    server.query('SELECT pg_reload_conf()', 'postgres');
    for (const [url, said] of [
      [server.url('gate', { user: 'gate', password: 'wrong-s3cret' }), /password/],
      [server.url('nowhere'), /nowhere/],
    ]) {
      const gateway = await start(url);
      const exit = await gateway.child.exited;
      assert.equal(exit.code, 1, gateway.child.output());
      const last = gateway.logs.find((entry) => /could not start/.test(entry.msg));
      assert.match(last.error, said);
      assert.doesNotMatch(gateway.child.output(), /s3cret/);
    }
    await server.stop();
    const gateway = await start(server.url('gate', { user: 'gate', password: 'right-s3cret' }));
    t.after(() => gateway.child.stop('SIGTERM'));
    const answer = await gateway.admin.get('/ready');
    assert.equal(answer.status, 503);
    assert.equal(answer.json.reason, 'store');
    await server.start();
    await until(async () => (await gateway.admin.get('/ready')).status === 200, 'the gateway to be ready', { deadline: 30_000 });
    assert.doesNotMatch(gateway.child.output(), /s3cret/);
  });

  test('stopped beyond the silence: fenced; what it reports late is a row of the trail, and nothing else', options, async (t) => {
    const answers = [];
    const own = await database();
    const { upstream, gateways: [a, b] } = await replicas(t, own, ['a', 'b'], { upstream: { handlers: { 'tools/call': (call) => answers.push(call) } } });
    const client = await clientOf(t, a);
    const { taskId } = await client.createTask('delete_user');
    await a.admin.approve(taskId);
    await upstream.received('tools/call');
    a.child.signal('SIGSTOP');
    t.after(() => a.child.signal('SIGCONT'));
    await until(async () => (await b.admin.task(taskId)).state === 'failed', 'b to take a for dead', { deadline: 40_000, every: 200 });
    // It must read the answer before it learns from the database that the call is over.
    const release = await holdTable(own, 'taskgate_task');
    answers[0].reply.result({ content: [{ type: 'text', text: 'late' }] });
    a.child.signal('SIGCONT');
    for (let i = 0; i < 3; i++) await fetch(a.url, { method: 'POST', body: 'no JSON' }).then((answer) => answer.text());
    await release();
    const trail = () => b.admin.get(`/api/v1/audit?limit=1000`).then((answer) => answer.json.entries.filter((entry) => entry.taskId === taskId));
    await until(async () => (await trail()).some((entry) => entry.event === 'late_outcome'), 'the late outcome in the trail', { deadline: 20_000 });
    assert.match((await a.admin.task(taskId)).statusMessage, /outcome unknown/);
    assert.equal((await ready(a)).replica.epoch > 1, true);
    assert.equal(upstream.calls.length, 1);
  });
});

test('a definition that has changed at one holds the calls at the other, and what is accepted there passes here', options, async (t) => {
  const add = (description) => tool('add', { description });
  const { upstream, a, b } = await both(t, { source: { pin: { tools: 'approve' } }, upstream: { tools: [add('Adds.')] } });
  const atA = await clientOf(t, a);
  const atB = await clientOf(t, b);
  const seen = async (gateway, state) => (await gateway.admin.get('/api/v1/definitions')).json.definitions.find((row) => row.state === state);
  const call = async (client) => (await client.send('tools/call', { name: 'add', arguments: {} })).message.error?.code;
  for (const client of [atA, atB]) await client.result('tools/list');
  await until(() => seen(a, 'accepted'), 'the first one is accepted');
  assert.deepEqual([await call(atA), await call(atB)], [undefined, undefined]);
  upstream.tools = [add('Adds, and more.')];
  await atA.result('tools/list');
  assert.equal(await call(atA), -32009);
  const { source, kind, name, digest } = await until(() => seen(a, 'changed'), 'the change is stored');
  await until(async () => (await call(atB)) === -32009, 'the other one knows');
  assert.equal((await b.admin.post('/api/v1/definitions/accept', { source, kind, name, digest })).status, 200);
  assert.equal(await call(atB), undefined, 'at once where it was accepted');
  await until(async () => (await call(atA)) === undefined, 'and at the other one');
});

test('while the database holds back what was accepted, the process starts and each definition counts as changed', options, async (t) => {
  const own = await database();
  const { gateways: [a] } = await replicas(t, own, ['a'], { source: { pin: { tools: 'approve' } }, config: { pseudo_tasks: { cleanupIntervalMs: 500 } } });
  const call = async () => (await (await clientOf(t, a)).send('tools/call', { name: 'read', arguments: {} })).message.error?.code;
  await (await clientOf(t, a)).result('tools/list');
  await until(async () => (await a.admin.get('/api/v1/definitions')).json.definitions.length === 2, 'all are accepted');
  assert.equal(await call(), undefined);
  await a.stop();
  const release = await holdTable(own, 'taskgate_definition');
  await a.launch();
  assert.ok(a.logs.some(({ msg }) => /Definitions are not read yet/.test(msg)));
  assert.notEqual(await call(), undefined, 'nothing passes');
  await release();
  await until(async () => (await call()) === undefined, 'they are read');
});

test('a block made at one replica holds at the other within a second, and so does its end', options, async (t) => {
  const { a, b } = await both(t);
  const [atA, atB] = [await clientOf(t, a), await clientOf(t, b)];
  const { taskId } = await atA.createTask('delete_user');
  const read = async (client) => (await client.call('tools/call', { name: 'read', arguments: {} })).error?.code ?? 'runs';
  assert.equal(await read(atB), 'runs');
  const made = await a.admin.post('/api/v1/blocks', { task: taskId, for: '1h', reason: 'stop' });
  assert.equal(made.status, 201, made.text);
  await until(async () => (await read(atB)) === -32014, 'the block at the other', { deadline: 1000 });
  assert.equal((await b.admin.task(taskId)).state, 'rejected');
  await b.kill9();
  await b.launch();
  const anew = await clientOf(t, b);
  const answers = new Set(); // until it has read the blocks, it calls nothing
  await until(async () => answers.add(await read(anew)).has(-32014), 'the block after the start');
  assert.ok(!answers.has('runs'), [...answers].join(' '));
  assert.equal((await b.admin.post(`/api/v1/blocks/${made.json.id}/lift`, {})).status, 200);
  await until(async () => (await read(atA)) === 'runs', 'its end at the other', { deadline: 1000 });
});
