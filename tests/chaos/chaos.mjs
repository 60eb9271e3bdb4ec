// Three replicas on one PostgreSQL behind a balancer, among random faults. Clients of both eras create, wait, decide,
// and a ledger has all that they were told: nothing is lost, executed twice or unapproved, and the audit chain is whole.
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { clocksMissing } from '../faults/lib/clock.mjs';
import { allTasks } from '../faults/lib/ledger.mjs';
import { isCut, Traffic } from '../faults/lib/traffic.mjs';
import { ADMIN_TOKEN } from '../integration/lib/gateway.mjs';
import { postgresMissing } from '../integration/lib/postgres.mjs';
import { pick, seed } from '../integration/lib/random.mjs';
import { until, within } from '../integration/lib/wait.mjs';
import { faultsOf, longFaultsOf } from './faults.mjs';
import { ModernAgent } from './lib/anywhere.mjs';
import { balancerMissing } from './lib/balancer.mjs';
import { ModernTraffic } from './lib/modern_traffic.mjs';
import { eventsByTask, gapsOfTrail } from './lib/trail.mjs';
import { REPLICAS, setTheStage, ttlOf } from './stage.mjs';

const LEG_S = 60;
/** A replica that says nothing for 20 s is dead to the others, and what it executed ends then. */
const SETTLED_MS = 60_000;
/** Results that each client fetches once more at the end of a leg. */
const FETCHED_AGAIN = 50;
/** Approved calls of each client that are run at the end of a leg. */
const RUN_AT_LAST = 10;

/** A replica or the balancer says so, and it is right: the database, a server or the home of a session is gone. */
const EXPECTED_ERRORS = [-32000, -32001, -32002, -32003, -32013];
const EXPECTED_STATUS = [502, 503, 504];
const isTrouble = (error, answer) => EXPECTED_ERRORS.includes(error.code) || EXPECTED_STATUS.includes(answer.status);
const isPassing = (error) => isCut(error) || /HTTP 50[234] |not within/.test(error.message);
const isModern = (client) => client instanceof ModernAgent;

/** Counts what happens under its name, and says so when it is told to. */
async function cause(place, faults, name, counts, moment) {
  counts[name] = (counts[name] ?? 0) + 1;
  if (process.env.TASKGATE_CHAOS_VERBOSE) console.log(`  ${name}`);
  await faults[name](place, moment);
}

async function causeTrouble(place, end, counts) {
  const faults = faultsOf(place);
  // Each at least once, in a random order, before chance alone decides.
  const first = Object.keys(faults).map((name) => [place.random(), name]).sort(([a], [b]) => a - b).map(([, name]) => name);
  while (performance.now() < end) {
    await cause(place, faults, first.pop() ?? pick(place.random, Object.keys(faults)), counts, 100 + place.random() * 1000);
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

/** Clients that work until `end`, and operators until the traffic is over. */
function startTraffic(place, end) {
  const { ledger, random, clients, operator } = place;
  const options = { ledger, random, ttl: ttlOf, refusals: isTrouble, survives: isPassing };
  const legacy = new Traffic(options);
  const modern = new ModernTraffic(options);
  const operators = [1, 2, 3, 4, 5, 6].map(() => legacy.operator(operator, { rounds: Infinity }));
  const working = clients.flatMap((client) => {
    const traffic = isModern(client) ? modern : legacy;
    return [repeatedly(() => traffic.client(client, { creates: 20, steps: 40 }), end), repeatedly(() => traffic.waiter(client, { steps: 10 }), end)];
  });
  return { legacy, modern, operators, working, of: (client) => (isModern(client) ? modern : legacy) };
}

/** No answer is lost: clients fetch results again that the store says it has, from whatever replica they meet. */
async function fetchAgain(place, traffic, tasks) {
  const { ledger, clients } = place;
  const missing = [];
  let count = 0;
  for (const client of clients) {
    const done = client.tasks.filter((id) => tasks.get(id)?.state === 'completed').slice(-FETCHED_AGAIN);
    for (const id of done) {
      const { marker, text } = ledger.tasks.get(id);
      ledger.tasks.get(id).text = undefined;
      await until(async () => {
        await traffic.of(client).result(client, id);
        return ledger.tasks.get(id).text;
      }, `the result of ${id}`, { deadline: 10_000 }).catch((error) => missing.push(error.message));
      const again = ledger.tasks.get(id).text;
      if (again !== `did ${marker}` || (text ?? again) !== again) missing.push(`the result of ${id} was ${text} and is ${again}; its server said: did ${marker}`);
      count++;
    }
  }
  return { count, missing };
}

/** Owners come back to what was approved and has not run. It runs now; what has run already would run twice. */
async function comeBack(place, traffic) {
  const approved = new Set([...(await allTasks(place.replicas[0].admin)).values()].filter(({ state }) => state === 'approved').map(({ id }) => id));
  const ask = async (client) => {
    for (const id of client.tasks.filter((one) => approved.has(one)).slice(-RUN_AT_LAST)) await traffic.of(client).repeat(1, () => traffic.of(client).result(client, id));
  };
  await Promise.all(place.clients.map(ask));
}

async function chainIsWhole(replica) {
  const { code, stdout, stderr } = await replica.cli(['audit', 'verify'], { env: { TASKGATE_TOKEN: ADMIN_TOKEN } });
  return code === 0 ? [] : [`replica ${replica.number}: ${stdout}${stderr}`];
}

/** Everything that is left, compared with everything that was told. */
async function accountFor(place, traffic) {
  const { ledger, replicas, problems } = place;
  let tasks;
  let found;
  const holds = async () => {
    tasks = await allTasks(replicas[0].admin);
    found = ledger.breaches(tasks);
    const executing = [...tasks.values()].filter(({ state }) => state === 'executing');
    for (const { id } of executing) found.lost.push(`${id} is still executing`);
    return Object.values(found).every((list) => list.length === 0);
  };
  // A call that could not begin is begun some seconds later: the list may be older than the calls.
  await until(holds, 'the tasks to be as everybody was told', { deadline: SETTLED_MS, every: 500 }).catch(() => {});
  for (const other of replicas.slice(1)) {
    const theirs = ledger.breaches(await allTasks(other.admin));
    for (const kind of Object.keys(found)) found[kind].push(...theirs[kind].filter((what) => !found[kind].includes(what)));
  }
  const again = await fetchAgain(place, traffic, tasks);
  found.lost.push(...again.missing);
  const trail = await eventsByTask(replicas[0].admin);
  const broken = [...gapsOfTrail(trail.events, tasks, ledger)];
  for (const replica of replicas) broken.push(...(await chainIsWhole(replica)));
  const others = [...traffic.legacy.problems, ...traffic.modern.problems, ...problems];
  return { tasks, ...found, audit: broken, others, again: again.count, rows: trail.rows };
}

const EXAMPLES = 5;

/** Prints the findings on one line; and an error with examples if there are any. */
function report(name, { ledger }, account) {
  const { tasks, lost, twice, unapproved, audit, others, again, rows } = account;
  console.log(`${name}: ${tasks.size} tasks, ${ledger.calls.size} calls upstream, ${again} results fetched again`);
  console.log(`  tasks: ${JSON.stringify(ledger.counts(tasks))}`);
  console.log(`  ledger: lost ${lost.length}, twice ${twice.length}, unapproved ${unapproved.length}; audit: ${rows} rows, ${audit.length === 0 ? 'the chain is whole' : `${audit.length} BREACHES`}; other complaints: ${others.length}`);
  const all = Object.entries({ lost, twice, unapproved, audit, others }).flatMap(([kind, list]) => list.slice(0, EXAMPLES).map((what) => `  ${kind}: ${what.stack ?? what}`));
  if (all.length > 0) throw new Error(`${name}: the ledger does not hold\n${all.join('\n')}`);
}

/** Traffic among faults; then all is quiet, and everything is compared with what was told. */
async function leg(place, number, seconds, counts) {
  const { clients, replicas } = place;
  const end = performance.now() + seconds * 1000;
  const traffic = startTraffic(place, end);
  const long = longFaultsOf(place);
  const names = Object.keys(long);
  if (seconds >= LEG_S) await cause(place, long, names[number % names.length], counts);
  await causeTrouble(place, end, counts);
  for (const replica of replicas) await replica.coming;
  await until(() => allWell(place), 'all replicas to be well again', { deadline: SETTLED_MS, every: 200 });
  await within(Promise.all(traffic.working), 'the clients to have their answers', 60_000);
  traffic.legacy.over = true;
  await within(Promise.all(traffic.operators), 'the operators to be done', 60_000);
  traffic.legacy.over = false;
  await comeBack(place, traffic);
  const account = await accountFor(place, traffic);
  for (const client of clients) client.close();
  place.upstream.requests = [];
  return account;
}

async function chaos(t, seconds) {
  const place = await setTheStage(t);
  console.log(`network: ${place.network.description}`);
  const legs = Math.max(1, Math.round(seconds / LEG_S));
  const counts = {};
  try {
    for (let i = 1; i <= legs; i++) report(`leg ${i} of ${legs}`, place, await leg(place, i, seconds / legs, counts));
  } finally {
    console.log(`faults: ${JSON.stringify(counts)}; ${place.hits} of them while the replica executed something`);
    console.log(`requests by replica: ${(await place.balancer.requests()).join(', ')}`);
  }
  assert.ok(place.ledger.calls.size > seconds, 'there was traffic');
  for (const count of await place.balancer.requests()) assert.ok(count > seconds, 'each replica was given requests');
}

export async function main([seconds = '600', ...more]) {
  if (!(Number(seconds) >= 5) || more.length > 0) {
    console.error('usage: tests/chaos/run [SECONDS]    at least 5; TASKGATE_BIN names the gateway, TASKGATE_SEED repeats the choices');
    process.exit(2);
  }
  const missing = postgresMissing || balancerMissing;
  if (missing) {
    console.log(`chaos: skipped, ${missing}`);
    process.exit(0);
  }
  const cleanups = [];
  const t = { after: (cleanup) => cleanups.unshift(cleanup) };
  console.log(`chaos: ${seconds} s, TASKGATE_SEED=${seed}${clocksMissing ? `, no clocks leap: ${clocksMissing}` : ''}`);
  let status = 0;
  const stopped = new Promise((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => reject(new Error(`stopped by ${signal}`)));
  });
  try {
    await Promise.race([chaos(t, Number(seconds)), stopped]);
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
