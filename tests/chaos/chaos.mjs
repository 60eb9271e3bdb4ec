// Three replicas on one PostgreSQL among random faults. Clients create, wait, decide at any of them, and a ledger has
// all that they were told: nothing is lost, executed twice or unapproved, and the audit chain is whole.
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Clock, clocksMissing } from '../faults/lib/clock.mjs';
import { allTasks, Ledger } from '../faults/lib/ledger.mjs';
import { isCut, Traffic } from '../faults/lib/traffic.mjs';
import { ADMIN_TOKEN, startGateway, temporaryFolder } from '../integration/lib/gateway.mjs';
import { defer } from '../integration/lib/lifetime.mjs';
import { freePort } from '../integration/lib/ports.mjs';
import { postgresMissing, startPostgres } from '../integration/lib/postgres.mjs';
import { generator, pick, seed } from '../integration/lib/random.mjs';
import { onDatabase } from '../integration/lib/replicas.mjs';
import { startUpstream, tool } from '../integration/lib/upstream.mjs';
import { until, within } from '../integration/lib/wait.mjs';
import { FAULTS, outlast } from './faults.mjs';
import { AnywhereAdmin, AnywhereClient } from './lib/anywhere.mjs';
import { startWire } from './lib/wire.mjs';

const REPLICAS = 3;
const LEG_S = 60;
/** A replica that says nothing for 20 s is dead to the others, and what it executed ends then. */
const SETTLED_MS = 60_000;

/** A replica says so, and it is right: the database, a server or the home of a session is gone. */
const EXPECTED_ERRORS = [-32000, -32001, -32002, -32003, -32013];
const isTrouble = (error, answer) => EXPECTED_ERRORS.includes(error.code) || [502, 503].includes(answer.status);
const isPassing = (error) => isCut(error) || /HTTP 50[23] |not within/.test(error.message);

/** Most tasks are decided at once; no check waits for an undecided one. */
const ttlOf = (marker) => (Traffic.fate(marker) ? 30_000 : 1500);

async function startReplica(t, place, number) {
  const wire = await startWire(t, place.database.socket);
  const clock = clocksMissing ? undefined : new Clock(temporaryFolder(t));
  const options = onDatabase(`postgres://postgres@127.0.0.1:${wire.port}/gate`, {
    rules: [['delete_*', 'approve'], { match: 'purge_*', action: 'approve', execution: 'on_result' }],
    config: {
      state_key: { env: 'STATE_KEY' },
      replica: { id: `replica-${number}`, address: `http://127.0.0.1:${await freePort()}`, key_env: 'REPLICA_KEY' },
      limits: { pending_per_principal: 100_000, pending_total: 100_000 },
    },
    env: {
      STATE_KEY: 'ab'.repeat(32),
      REPLICA_KEY: 'cd'.repeat(32),
      THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '2',
      THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '2',
      ...clock?.environment,
    },
  });
  const replica = await startGateway(t, { upstream: place.upstream.url, ...options });
  return Object.assign(replica, { wire, clock });
}

async function setTheStage(t) {
  const place = { t, ledger: new Ledger(), random: generator(), problems: [] };
  place.database = await startPostgres(t);
  place.database.socket = `${place.database.folder}/.s.PGSQL.5432`;
  place.upstream = await startUpstream(t, { tools: [tool('delete_user'), tool('purge_user'), tool('read')] });
  place.upstream.handlers['tools/call'] = (call) => answerCall(place, call);
  place.replicas = [];
  for (let number = 1; number <= REPLICAS; number++) place.replicas.push(await startReplica(t, place, number));
  place.admin = new AnywhereAdmin(place.replicas.map(({ adminUrl }) => adminUrl), place.random, ADMIN_TOKEN);
  place.clients = [];
  for (const token of ['A', 'B', 'C', 'D', 'E', 'F', undefined, undefined]) {
    const client = new AnywhereClient(place.replicas.map(({ url }) => url), place.random, { token });
    defer(t, () => client.close());
    await client.connect();
    place.clients.push(client);
  }
  return place;
}

async function answerCall({ ledger, random, problems }, { params, reply }) {
  const { marker } = params.arguments;
  try {
    ledger.called(marker);
  } catch (error) {
    problems.push(error);
  }
  // Some take long enough to be executed while their replica dies.
  await pause(random() * (random() < 0.1 ? 1000 : 20));
  reply.result({ content: [{ type: 'text', text: `did ${marker}` }] });
}

async function causeTrouble(place, end, counts) {
  while (performance.now() < end) {
    const name = pick(place.random, Object.keys(FAULTS));
    counts[name] = (counts[name] ?? 0) + 1;
    if (process.env.TASKGATE_CHAOS_VERBOSE) console.log(`  ${name}`);
    await FAULTS[name](place, 100 + place.random() * 1000);
    await pause(300 + place.random() * 1200);
  }
}

async function repeatedly(work, end) {
  while (performance.now() < end) {
    await work();
    await pause(5);
  }
}

/** Each replica is ready, has its database, and knows the others. */
async function allWell({ replicas }) {
  for (const { admin } of replicas) {
    const { status, json } = await admin.get('/ready');
    if (status !== 200 || json.checks.store !== true || json.replica.peers.length !== REPLICAS - 1) return false;
  }
  return true;
}

/** Traffic among faults; then all is quiet, and everything is compared with what was told. */
async function leg(place, seconds, counts) {
  const { ledger, random, clients, admin, problems, replicas } = place;
  const traffic = new Traffic({ ledger, random, ttl: ttlOf, refusals: isTrouble, survives: isPassing });
  const end = performance.now() + seconds * 1000;
  const operators = [1, 2, 3, 4].map(() => traffic.operator(admin, { rounds: Infinity }));
  const working = clients.flatMap((client) => [repeatedly(() => traffic.client(client, { creates: 20, steps: 40 }), end), repeatedly(() => traffic.waiter(client, { steps: 10 }), end)]);
  if (seconds >= LEG_S) await outlast(place);
  await causeTrouble(place, end, counts);
  for (const replica of replicas) await replica.coming;
  await until(() => allWell(place), 'all replicas to be well again', { deadline: SETTLED_MS, every: 200 });
  await within(Promise.all(working), 'the clients to have their answers', 60_000);
  traffic.over = true;
  await within(Promise.all(operators), 'the operators to be done', 60_000);
  for (const client of clients) client.close();

  let tasks;
  const holds = async () => {
    assert.equal((await replicas[0].admin.list({ state: 'executing' })).tasks.length, 0, 'something is still executed');
    ledger.check((tasks = await allTasks(replicas[0].admin)));
    return true;
  };
  await until(holds, 'the tasks to be as everybody was told', { deadline: SETTLED_MS, every: 500 });
  for (const other of replicas.slice(1)) ledger.check(await allTasks(other.admin));
  assert.deepEqual([...traffic.problems, ...problems], []);
  for (const replica of replicas) {
    const { code, stdout, stderr } = await replica.cli(['audit', 'verify'], { env: { TASKGATE_TOKEN: ADMIN_TOKEN } });
    assert.equal(code, 0, `the audit chain is broken: ${stdout}${stderr}`);
  }
  place.upstream.requests = [];
  return tasks;
}

async function chaos(t, seconds) {
  const place = await setTheStage(t);
  const legs = Math.max(1, Math.round(seconds / LEG_S));
  const counts = {};
  for (let i = 1; i <= legs; i++) {
    const tasks = await leg(place, seconds / legs, counts);
    console.log(`leg ${i} of ${legs}: ${tasks.size} tasks ${JSON.stringify(place.ledger.counts(tasks))}, ${place.ledger.calls.size} calls upstream`);
  }
  console.log(`faults: ${JSON.stringify(counts)}`);
  assert.ok(place.ledger.calls.size > seconds, 'there was traffic');
}

export async function main([seconds = '600', ...more]) {
  if (!(Number(seconds) >= 5) || more.length > 0) {
    console.error('usage: tests/chaos/run [SECONDS]    at least 5; TASKGATE_BIN names the gateway, TASKGATE_SEED repeats the choices');
    process.exit(2);
  }
  if (postgresMissing) {
    console.log(`chaos: skipped, ${postgresMissing}`);
    process.exit(0);
  }
  const cleanups = [];
  const t = { after: (cleanup) => cleanups.unshift(cleanup) };
  console.log(`chaos: ${seconds} s, TASKGATE_SEED=${seed}${clocksMissing ? `, no clocks leap: ${clocksMissing}` : ''}`);
  let status = 0;
  try {
    await chaos(t, Number(seconds));
  } catch (error) {
    console.error('chaos: FAILED\n', error);
    status = 1;
  }
  for (const cleanup of cleanups) {
    await Promise.resolve().then(cleanup).catch((error) => {
      console.error('chaos: FAILED at the end\n', error);
      status = 1;
    });
  }
  if (status === 0) console.log('chaos: passed');
  process.exit(status);
}
