// Each call that can fail fails once, while a gateway is busy and while one starts: a clear error or none, no crash, no leak,
// and every acknowledgement still holds.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { generator } from '../integration/lib/random.mjs';
import { FAULTY, faultyMissing, Plan } from './lib/plan.mjs';

process.env.TASKGATE_BIN = FAULTY; // before the next step reads it
const { connectedRaw } = await import('../integration/lib/client.mjs');
const { Child } = await import('../integration/lib/child.mjs');
const { Gateway, temporaryFolder, workflow } = await import('../integration/lib/gateway.mjs');
const { defer } = await import('../integration/lib/lifetime.mjs');
const { SECRET, startReceiver } = await import('../integration/lib/receiver.mjs');
const { startUpstream, tool } = await import('../integration/lib/upstream.mjs');
const { until } = await import('../integration/lib/wait.mjs');
const { allTasks, Ledger } = await import('./lib/ledger.mjs');
const { isCut, Traffic } = await import('./lib/traffic.mjs');

/** How many moments of each kind; by hand as many as there are: TASKGATE_FAULTS_EACH=100000. */
const EACH = Number(process.env.TASKGATE_FAULTS_EACH ?? 25);
const TROUBLE = [-32000, -32001, -32002, -32003, -32013, -32603];
const isTrouble = (error, answer) => TROUBLE.includes(error.code) || [500, 502, 503].includes(answer.status);
/** Kinds without which the gateway ends rather than decide. */
const MEMORY = ['memory of our own', 'calls of SQLite', 'memory inside libcurl'];
/** libcurl 7.88 divides by the size of a table that it could not make. */
const INSIDE_LIBCURL = /AddressSanitizer: \w+ on unknown address[^\n]*\n(?:The signal[^\n]*\n|[^\n]*Hint[^\n]*\n)*\s+#0 0x[0-9a-f]+ +(?:in \w+ +)?\([^\n]*libcurl\.so/;
const OUT_OF_MEMORY = /Out of memory, stopping/;
const ASAN = { ASAN_OPTIONS: [process.env.ASAN_OPTIONS, 'handle_abort=0:allocator_may_return_null=1'].filter(Boolean).join(':') };

async function setTheStage(t, env = {}) {
  const upstream = await startUpstream(t, { tools: [tool('delete_user'), tool('purge_user'), tool('read'), tool('drop_table')] });
  const receiver = await startReceiver(t);
  const plan = new Plan(temporaryFolder(t));
  defer(t, () => plan.close());
  const place = { t, upstream, plan, ledger: new Ledger(), deaths: 0, crashes: 0, problems: [] };
  upstream.handlers['tools/call'] = ({ params, reply }) => {
    try {
      assert.notEqual(params.name, 'drop_table', 'a denied tool was called');
      place.ledger.called(params.arguments.marker);
    } catch (error) {
      place.problems.push(error);
    }
    reply.result({ content: [{ type: 'text', text: `did ${params.arguments.marker}` }] });
  };
  place.gateway = new Gateway(temporaryFolder(t), {
    upstream: upstream.url,
    rules: [['delete_*', 'approve'], { match: 'purge_*', action: 'approve', execution: 'on_result' }, ['drop_*', 'deny']],
    approval: workflow('10m'),
    config: { limits: { pending_per_principal: 100_000, pending_total: 100_000 }, notify: [{ url: receiver.url, secret_env: 'NOTIFY_SECRET' }] },
    env: { ...ASAN, ...plan.environment, NOTIFY_SECRET: SECRET, THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '2', THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '2', ...env },
  });
  defer(t, () => place.gateway.stop());
  await place.gateway.start();
  place.client = await connectedRaw(t, place.gateway.url, { token: 'A' });
  return place;
}

/** One request of each kind. A failure must say so, and the ledger gets every success. */
async function roundTrip(place) {
  const { client, gateway, ledger } = place;
  const { admin } = gateway;
  const traffic = new Traffic({ ledger, random: generator(), refusals: isTrouble, survives: isCut });
  const step = async (work) => {
    try {
      await work();
    } catch (error) {
      if (!isCut(error)) throw error;
    }
  };
  const decided = async (name, verb, more) => {
    const id = await traffic.create(client, name);
    if (!id) return;
    const { marker } = ledger.tasks.get(id);
    await step(() => traffic.decide(admin, { id, arguments: { marker } }, verb));
    if (ledger.tasks.get(id).progress > 0) await step(() => more(id));
  };
  client.tasks ??= [];
  await Promise.all([
    step(() => decided('delete_user', 'approve', (id) => traffic.result(client, id))),
    step(() => decided('purge_user', 'approve', (id) => traffic.result(client, id))),
    step(() => decided('delete_user', 'reject', (id) => traffic.look(client, id))),
    step(async () => {
      const id = await traffic.create(client, 'delete_user');
      if (id) await traffic.cancel(client, id);
    }),
    step(() => traffic.forward(client)),
    step(async () => {
      const answer = await client.send('tools/call', { name: 'drop_table', arguments: {} });
      assert.ok(answer.message?.error?.code === -32014 || isTrouble(answer.message?.error ?? {}, answer), answer.text);
    }),
    step(async () => traffic.refused('tasks/list', await client.send('tasks/list', {}))),
    step(async () => traffic.refused('tools/list', await client.send('tools/list', {}))),
    step(async () => void (await admin.get('/metrics'))),
    step(async () => void (await admin.get('/api/v1/tasks'))),
    step(async () => (await client.listen().catch(() => {}))?.abort()),
  ]);
}

/** The promises hold. A gateway may have died only of a lack of memory, and then it is there again. */
async function recovers(place, kind) {
  const { gateway, plan } = place;
  plan.disarm();
  assert.deepEqual(place.problems, []);
  const isReady = () => gateway.admin.get('/ready').then(({ status }) => status === 200, () => false);
  await until(async () => gateway.child.exit || (await isReady()), () => `the gateway to be ready again; ${gateway.child.output()}`, { deadline: 20_000 });
  if (gateway.child.exit) {
    gateway.child.checked = true;
    assert.ok(MEMORY.includes(kind), `it died: ${gateway.child.output()}`);
    if (kind === 'memory inside libcurl' && INSIDE_LIBCURL.test(gateway.child.stderr)) place.crashes++;
    else {
      gateway.child.assertNoSanitizerReport();
      assert.match(gateway.child.stderr, OUT_OF_MEMORY);
      place.deaths++;
    }
    place.client.close();
    await gateway.launch();
  }
}

async function everythingHolds(place) {
  const { gateway, ledger } = place;
  await until(async () => (await gateway.admin.list({ state: 'executing' })).tasks.length === 0, 'the executions to end', { deadline: 20_000 });
  // A call that could not begin is begun a second later: the list may be older than the calls.
  const holds = async () => (ledger.check(await allTasks(gateway.admin)), true);
  await until(holds, 'the tasks to be as everybody was told', { deadline: 10_000, every: 500 });
  assert.deepEqual(place.problems, []);
}

/** The numbers of the calls that are to fail: spread over all of them, the first and the last among them. */
const moments = (count) => [...new Set(Array.from({ length: Math.min(EACH, count) }, (_, i, { length } = { length: Math.min(EACH, count) }) => 1 + Math.floor((i * (count - 1)) / Math.max(1, length - 1))))];

async function usual(place, kind) {
  const before = place.plan.calls(kind);
  for (let i = 0; i < 3; i++) await roundTrip(place);
  return Math.ceil((place.plan.calls(kind) - before) / 3);
}

async function eachFails(place, kind) {
  const count = await usual(place, kind);
  const failed = {};
  let fired = 0;
  for (const [i, nth] of moments(count).entries()) {
    place.plan.arm(kind, nth);
    try {
      await roundTrip(place);
      if (place.plan.hasFired) {
        fired++;
        failed[place.plan.where] = (failed[place.plan.where] ?? 0) + 1;
      }
      await recovers(place, kind);
      if (i % 10 === 9) await everythingHolds(place);
    } catch (error) {
      error.message = `${kind}, call ${nth} of ${count} (${place.plan.where}): ${error.message}`;
      throw error;
    }
  }
  await everythingHolds(place);
  await roundTrip(place);
  place.t.diagnostic(`${kind}: about ${count} calls, ${fired} failed, ${JSON.stringify(failed)}${place.deaths ? `; it ended for lack of memory ${place.deaths} times` : ''}${place.crashes ? `; libcurl crashed ${place.crashes} times` : ''}`);
  return fired;
}

/** libh2o within the program has its calls fail, too, and ends where one does. */
const hasH2oWithin = !faultyMissing && !execFileSync('ldd', [FAULTY], { encoding: 'utf8' }).includes('libh2o');
const OF_H2O_TOO = ['sockets', 'memory of our own'];
const options = (kind) => ({
  skip: faultyMissing || (hasH2oWithin && OF_H2O_TOO.includes(kind) && 'libh2o is linked statically: its own calls would fail, too'),
  timeout: 280_000 + EACH * 1000,
});

for (const kind of ['files', 'sockets', 'calls of SQLite', 'memory inside SQLite', 'system calls inside SQLite', 'memory of our own']) {
  test(`a busy gateway: ${kind}, each failing once`, options(kind), async (t) => {
    const place = await setTheStage(t);
    assert.ok((await eachFails(place, kind)) > 0, 'something has failed');
  });
}

for (const kind of ['memory inside libcurl', 'files', 'sockets']) {
  test(`a busy gateway that calls servers by libcurl: ${kind}, each failing once`, options(kind), async (t) => {
    const place = await setTheStage(t, { THOUGHTGATE_UPSTREAM_CLIENT: 'curl' });
    assert.ok((await eachFails(place, kind)) > 0, 'something has failed');
  });
}

// ---- the start ----

/** Starts over a store with two tasks; resolves when it is up or has given up. */
async function startOnce(gateway, deadline = 20_000) {
  const child = new Child(FAULTY, ['serve', '--config', gateway.configPath], { env: gateway.environment(), cwd: gateway.folder, name: 'taskgate' });
  gateway.child = child;
  await until(async () => child.exit || (await gateway.admin.get('/health').then((r) => r.status === 200, () => false)), () => `it to start or to give up; ${child.output()}`, { deadline });
  return child;
}

async function startFails(place, kind, nth, ids) {
  const { gateway, plan } = place;
  plan.arm(kind, nth);
  const child = await startOnce(gateway);
  const where = plan.where;
  plan.disarm();
  child.checked = true;
  // It may also be up, and end for lack of memory while it asks for the servers' tools.
  for (const id of ids) await until(async () => child.exit || (await gateway.admin.task(id)).state === 'pending', 'the tasks to be there', { deadline: 10_000 });
  if (!child.exit) {
    await child.stop('SIGTERM');
    assert.deepEqual(child.exit, { code: 0, signal: null }, child.output());
  } else if (OUT_OF_MEMORY.test(child.stderr)) {
    assert.ok(MEMORY.includes(kind), child.output());
  } else {
    assert.ok([1, 2].includes(child.exit.code), child.output());
    assert.match(child.stderr, /"level":"error"|^taskgate: |\.yaml:/m, `it says why: ${child.output()}`);
  }
  child.assertNoSanitizerReport();
  return where;
}

for (const kind of ['files', 'sockets', 'calls of SQLite', 'threads', 'memory inside SQLite', 'system calls inside SQLite', 'memory of our own']) {
  test(`a start: ${kind}, each failing once`, options(kind), async (t) => {
    const place = await setTheStage(t);
    const { gateway, plan, client } = place;
    const ids = [(await client.createTask('delete_user')).taskId, (await client.createTask('delete_user', {}, { ttl: 600_000 })).taskId];
    client.close();
    await gateway.stop();
    const before = plan.calls(kind);
    await (await startOnce(gateway)).stop('SIGTERM');
    const count = plan.calls(kind) - before;
    const failed = {};
    let gaveUp = 0;
    for (const nth of moments(count)) {
      try {
        const where = await startFails(place, kind, nth, ids);
        failed[where] = (failed[where] ?? 0) + 1;
        gaveUp += gateway.child.exit.code !== 0;
      } catch (error) {
        error.message = `${kind}, call ${nth} of ${count} (${plan.where}): ${error.message}`;
        throw error;
      }
    }
    await gateway.launch();
    for (const id of ids) assert.equal((await gateway.admin.task(id)).state, 'pending');
    assert.equal(place.upstream.calls.length, 0, 'nothing was executed');
    t.diagnostic(`${kind}: ${count} calls, it gave up ${gaveUp} times; ${JSON.stringify(failed)}`);
  });
}
