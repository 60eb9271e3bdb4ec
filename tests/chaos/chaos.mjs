// Three replicas on one PostgreSQL behind a balancer, among random faults. Clients of both eras create, wait, decide,
// and a ledger has all that they were told: nothing is lost, executed twice or unapproved, and the audit chain is whole.
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { clocksMissing } from '../faults/lib/clock.mjs';
import { allTasks } from '../faults/lib/ledger.mjs';
import { isCut, Traffic } from '../faults/lib/traffic.mjs';
import { postgresMissing } from '../integration/lib/postgres.mjs';
import { seed } from '../integration/lib/random.mjs';
import { until, within } from '../integration/lib/wait.mjs';
import { accountFor, comeBack, report, SETTLED_MS } from './lib/account.mjs';
import { gaveUp, unanswered } from './lib/anywhere.mjs';
import { AskedTraffic, HeldTraffic } from './lib/asked_traffic.mjs';
import { balancerMissing } from './lib/balancer.mjs';
import { GrantedTraffic } from './lib/granted_traffic.mjs';
import { ModernTraffic } from './lib/modern_traffic.mjs';
import { causeTrouble, census, ENOUGH_S, GRACE_MS } from './lib/trouble.mjs';
import { describe } from './lib/unready.mjs';
import { VotedTraffic } from './lib/voted_traffic.mjs';
import { REPLICAS, setTheStage, ttlOf } from './stage.mjs';

/** Clients and operators end their last request in this time, which is that of the most patient one and some more. */
const DRAINED_MS = 30_000;

/** A replica or the balancer says so, and it is right: the database, a server or the home of a session is gone. */
const EXPECTED_ERRORS = [-32000, -32001, -32002, -32003, -32013];
const EXPECTED_STATUS = [502, 503, 504];
const isTrouble = (error, answer) => EXPECTED_ERRORS.includes(error.code) || EXPECTED_STATUS.includes(answer.status);
const isPassing = (error) => isCut(error) || /HTTP 50[234] |not within/.test(error.message);

const KINDS = {
  legacy: Traffic,
  voted: VotedTraffic,
  granted: GrantedTraffic,
  modern: ModernTraffic,
  asked: AskedTraffic,
  held: HeldTraffic,
};

async function repeatedly(traffic, work) {
  while (!traffic.over) {
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

/** Waits until all are well. If they do not become so, the error describes each of them. */
async function recover(place) {
  try {
    await until(() => allWell(place), 'all replicas to be well again', { deadline: SETTLED_MS, every: 200 });
  } catch (error) {
    throw new Error([error.message, ...(await Promise.all(place.replicas.map(describe)))].join('\n'));
  }
}

const missing = (counts) => Object.keys(counts).filter((name) => counts[name] === 0);

/** A slow machine gets some time more for traffic that has not come to its end. */
async function catchUp({ ledger, replicas }) {
  const isWhole = async () => missing(ledger.kinds(await allTasks(replicas[0].admin))).length === 0;
  await until(isWhole, 'each kind of traffic', { deadline: GRACE_MS, every: 500 }).catch(() => {});
}

/** Traffic of each kind of client; operators and persons decide until `over` is set. */
function startTraffic({ ledger, random, clients, operator, persons }) {
  const options = { ledger, random, ttl: ttlOf, refusals: isTrouble, survives: isPassing };
  const kinds = Object.fromEntries(Object.entries(KINDS).map(([kind, Kind]) => [kind, new Kind(options)]));
  const decisions = { default: new Traffic(options), two: new VotedTraffic(options), granting: new GrantedTraffic(options) };
  const deciding = [
    ...[1, 2, 3, 4].map(() => decisions.default.operator(operator, { rounds: Infinity, query: { workflow: 'default' } })),
    ...[...persons].map(([person, admin]) => decisions.two.voter(person, admin)),
    decisions.two.intruder(operator),
    ...[...persons.values()].map((admin) => decisions.granting.granter(admin)),
  ];
  const of = ({ kind }) => kinds[kind];
  const working = clients.flatMap((client) => {
    const its = of(client);
    return [repeatedly(its, () => its.client(client, { creates: 20, steps: 40 })), repeatedly(its, () => its.waiter(client, { steps: 10 }))];
  });
  return { clients: Object.values(kinds), operators: Object.values(decisions), of, working, deciding };
}

const patient = (work, who) =>
  within(Promise.all(work), who, DRAINED_MS).catch((error) => {
    throw new Error(`${error.message}; without an answer: ${unanswered()}`);
  });

/**
 * Clients send nothing new. Requests under way are answered, or their senders give up. Questions and held calls come to
 * their ends; then operators stop, too. Resolves to what has no end.
 */
async function drain({ clients }, traffic, time) {
  for (const one of traffic.clients) one.over = true;
  await patient(traffic.working, 'the clients to have their answers');
  for (const one of traffic.clients) one.over = false;
  time('clients drained at');
  const endless = await Promise.all(clients.map((client) => traffic.of(client).settle?.(client) ?? []));
  for (const one of traffic.operators) one.over = true;
  await patient(traffic.deciding, 'the operators to be done');
  return endless.flat();
}

/** Traffic among faults; then all is quiet, and everything is compared with what was told. */
async function leg(place, seconds, counts) {
  const began = performance.now();
  const times = [];
  const time = (what) => {
    times.push(`${what} ${Math.round((performance.now() - began) / 1000)} s`);
    if (process.env.TASKGATE_CHAOS_VERBOSE) console.log(`  ${times.at(-1)}`);
  };
  const traffic = startTraffic(place);
  await causeTrouble(place, seconds, began + seconds * 1000, counts);
  time('faults until');
  await recover(place);
  time('well at');
  if (seconds >= ENOUGH_S) await catchUp(place);
  const endless = await drain(place, traffic, time);
  time('drained at');
  await comeBack(place, traffic);
  time('back at');
  const account = await accountFor(place, traffic, endless);
  time('accounted for at');
  console.log(`  ${times.join(', ')}; clients gave up waiting: ${JSON.stringify(gaveUp)}`);
  for (const client of place.clients) client.close();
  place.upstream.requests = [];
  place.asking.requests = [];
  return account;
}

async function chaos(t, seconds) {
  const place = await setTheStage(t);
  console.log(`network: ${place.network.description}`);
  const legs = Math.max(1, Math.round(seconds / ENOUGH_S));
  const counts = {};
  let kinds;
  try {
    for (let i = 1; i <= legs; i++) kinds = report(`leg ${i} of ${legs}`, place, await leg(place, seconds / legs, counts));
  } finally {
    console.log(`faults: ${JSON.stringify(census(place, counts))}; ${place.hits} of them while the replica executed something`);
    console.log(`requests by replica: ${(await place.balancer.requests()).join(', ')}`);
  }
  if (seconds >= ENOUGH_S) {
    assert.deepEqual(missing(census(place, counts)), [], 'each kind of fault has occurred');
    assert.deepEqual(missing(kinds), [], 'each kind of traffic has occurred');
  }
  assert.ok(place.ledger.calls.size > seconds, 'there was traffic');
  for (const count of await place.balancer.requests()) assert.ok(count > seconds, 'each replica was given requests');
}

export async function main([seconds = '600', ...more]) {
  if (!(Number(seconds) >= 5) || more.length > 0) {
    console.error('usage: tests/chaos/run [SECONDS]    at least 5; TASKGATE_BIN names the gateway, TASKGATE_SEED repeats the choices');
    process.exit(2);
  }
  const lacking = postgresMissing || balancerMissing;
  if (lacking) {
    console.log(`chaos: skipped, ${lacking}`);
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
