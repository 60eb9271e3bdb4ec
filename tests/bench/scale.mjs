// The replicas' cost to the database, and how gateway and database do with many tasks. For numbers, not for verdicts.
import { setTimeout as pause } from 'node:timers/promises';
import { connectedRaw } from '../integration/lib/client.mjs';
import { startGateway, workflow } from '../integration/lib/gateway.mjs';
import { freePort } from '../integration/lib/ports.mjs';
import { postgresMissing, startPostgres } from '../integration/lib/postgres.mjs';
import { onDatabase } from '../integration/lib/replicas.mjs';
import { startUpstream, tool } from '../integration/lib/upstream.mjs';
import { until } from '../integration/lib/wait.mjs';

const CALLS = 200;
const REST_S = 20;

const sql = (place, text) => place.database.query(text)[0]?.[0];
const number = (place, text) => Number(sql(place, text));
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

async function startReplica(t, place, number) {
  const config = {
    state_key: { env: 'KEY' },
    replica: { id: `replica-${number}`, address: `http://127.0.0.1:${await freePort()}`, key_env: 'KEY' },
    limits: { pending_per_principal: 100_000, pending_total: 100_000, store_bytes: 64 * 2 ** 30 },
  };
  return startGateway(t, { upstream: place.upstream.url, ...onDatabase(place.database.url(), { config, approval: workflow('60m'), env: { KEY: 'ab'.repeat(32) } }) });
}

/** Transactions, rows read, and bytes of the write-ahead log so far. */
async function counters(place) {
  await pause(1500); // the statistics of a session arrive when it is idle for a second
  const [transactions, rows, log] = place.database.query("SELECT xact_commit + xact_rollback, tup_fetched, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') FROM pg_stat_database WHERE datname = 'gate'")[0].map(Number);
  return { transactions, rows, log, at: performance.now() };
}

async function during(place, work) {
  const before = await counters(place);
  await work();
  const after = await counters(place);
  return Object.fromEntries(Object.keys(before).map((key) => [key, after[key] - before[key]]));
}

async function rest(place) {
  const spent = await during(place, () => pause(REST_S * 1000));
  const connections = number(place, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'taskgate%'");
  const seconds = spent.at / 1000;
  console.log(`at rest, ${place.replicas.length} replicas: ${connections} connections, ${(spent.transactions / seconds).toFixed(1)} transactions/s, ${(spent.log / seconds / 1000).toFixed(1)} kB/s of log`);
}

/** Times a call, in milliseconds; returns the median of many. */
async function median(times, call) {
  const taken = [];
  for (let i = 0; i < times; i++) {
    const began = performance.now();
    await call(i);
    taken.push(performance.now() - began);
  }
  return taken.sort((a, b) => a - b)[Math.floor(times / 2)].toFixed(1);
}

async function work(place) {
  const { admin } = place.replicas[0];
  const feed = number(place, 'SELECT coalesce(max(sequence), 0) FROM taskgate_feed');
  const audit = number(place, 'SELECT coalesce(max(sequence), 0) FROM taskgate_audit');
  const spent = await during(place, async () => {
    for (let i = 0; i < CALLS; i++) {
      const { task } = await place.client.createTask('delete_user', { name: `user ${i}` }, { ttl: 3_600_000 });
      await admin.approve(task.taskId);
      await admin.inState(task.taskId, 'completed');
    }
  });
  const each = (count) => (count / CALLS).toFixed(1);
  const rows = number(place, 'SELECT max(sequence) FROM taskgate_feed') - feed;
  const trail = number(place, 'SELECT max(sequence) FROM taskgate_audit') - audit;
  console.log(`a task from call to result, ${place.replicas.length} replicas: ${each(spent.transactions)} transactions, ${each(spent.rows)} rows read, ${each(spent.log / 1000)} kB of log, ${each(rows)} rows of the feed, ${each(trail)} of the trail`);
}

/** Copies of an ended task, and of its rows in the trail, written by the database itself. */
function fill(place, tasks) {
  const columns = sql(place, "SELECT string_agg(column_name, ',') FROM information_schema.columns WHERE table_name = 'taskgate_task' AND column_name NOT IN ('sequence', 'id')");
  sql(place, `INSERT INTO taskgate_task (id, ${columns}) SELECT 'tg_' || md5(g::text), ${columns} FROM taskgate_task, generate_series(1, ${tasks}) g WHERE sequence = (SELECT max(sequence) FROM taskgate_task WHERE ended_ms > 0)`);
  sql(place, 'ANALYZE');
}

async function many(place, tasks) {
  const [first] = place.replicas;
  const size = () => number(place, "SELECT pg_total_relation_size('taskgate_task')");
  const before = size();
  fill(place, tasks);
  console.log(`${tasks} tasks: ${megabytes(size() - before)} with indexes, ${((size() - before) / tasks).toFixed(0)} bytes each; a row of the trail has ${number(place, "SELECT pg_total_relation_size('taskgate_audit') / (SELECT count(*) FROM taskgate_audit)")} bytes`);
  await measure(place, 'with them');

  const due = Math.floor(tasks / 10);
  sql(place, `UPDATE taskgate_task SET purge_ms = 1 WHERE sequence IN (SELECT sequence FROM taskgate_task ORDER BY sequence LIMIT ${due})`);
  const began = performance.now();
  const left = () => number(place, 'SELECT count(*) FROM taskgate_task WHERE purge_ms = 1');
  const still = until(async () => left() === 0, 'the sweep to remove what is due', { deadline: 600_000, every: 500 });
  await measure(place, `while ${due} of them are removed`);
  await still;
  console.log(`${due} tasks removed in ${((performance.now() - began) / 1000).toFixed(1)} s`);
  const vacuum = performance.now();
  sql(place, 'VACUUM taskgate_task');
  console.log(`VACUUM of the tasks: ${((performance.now() - vacuum) / 1000).toFixed(1)} s`);
  await first.admin.metrics();
}

async function measure(place, when) {
  const { admin } = place.replicas[0];
  const create = await median(CALLS, (i) => place.client.createTask('delete_user', { name: `more ${i}` }, { ttl: 3_600_000 }));
  const list = await median(20, () => admin.list({ limit: '100' }));
  const pending = await median(20, () => admin.list({ state: 'pending', limit: '100' }));
  const metrics = await median(20, () => admin.metrics());
  console.log(`${when}: a create ${create} ms, a page of all tasks ${list} ms, of pending ones ${pending} ms, /metrics ${metrics} ms (medians, one client)`);
}

/** Pending tasks whose deadline is over, as after a night without a sweep, and what creates wait while they end. */
async function overdue(place, tasks) {
  await place.client.createTask('delete_user', { name: 'to copy' }, { ttl: 3_600_000 });
  const columns = sql(place, "SELECT string_agg(column_name, ',') FROM information_schema.columns WHERE table_name = 'taskgate_task' AND column_name NOT IN ('sequence', 'id', 'deadline_ms', 'decide_by_ms')");
  sql(place, `INSERT INTO taskgate_task (id, deadline_ms, decide_by_ms, ${columns}) SELECT 'tg_late' || md5(g::text), 1, 1, ${columns} FROM taskgate_task, generate_series(1, ${tasks}) g WHERE sequence = (SELECT max(sequence) FROM taskgate_task WHERE state = 0)`);
  sql(place, `UPDATE taskgate_limited SET tasks = tasks + ${tasks} WHERE owner = (SELECT owner FROM taskgate_task WHERE id LIKE 'tg_late%' LIMIT 1)`);
  sql(place, `UPDATE taskgate_totals SET tasks = tasks + ${tasks}, pending = pending + ${tasks}`);
  const began = performance.now();
  const left = () => number(place, 'SELECT count(*) FROM taskgate_task WHERE deadline_ms = 1');
  let isOver = false;
  const over = until(async () => left() === 0, 'the sweep to end what is overdue', { deadline: 1_800_000, every: 1000 }).then(() => (isOver = true));
  const taken = [];
  for (let i = 0; !isOver; i++) {
    const start = performance.now();
    await place.client.createTask('delete_user', { name: `beside ${i}` }, { ttl: 3_600_000 });
    taken.push(performance.now() - start);
  }
  await over;
  taken.sort((a, b) => a - b);
  const at = (share) => taken[Math.floor(taken.length * share)].toFixed(1);
  console.log(`${tasks} overdue tasks ended in ${((performance.now() - began) / 1000).toFixed(1)} s; meanwhile ${taken.length} creates of one client: ${at(0.5)} ms (median), ${at(0.99)} ms (p99), ${taken.at(-1).toFixed(1)} ms (longest)`);
}

async function scale(t, tasks) {
  const place = { database: await startPostgres(t), replicas: [] };
  place.upstream = await startUpstream(t, { tools: [tool('delete_user')] });
  for (const replicas of [1, 3]) {
    while (place.replicas.length < replicas) place.replicas.push(await startReplica(t, place, place.replicas.length + 1));
    place.client ??= await connectedRaw(t, place.replicas[0].url, { token: 'A', keepAlive: false });
    await rest(place);
    await work(place);
  }
  await measure(place, 'without many tasks');
  await overdue(place, Math.floor(tasks / 20));
  await many(place, tasks);
}

export async function main([tasks = '1000000', ...more]) {
  if (!(Number(tasks) >= 1000) || more.length > 0) {
    console.error('usage: tests/bench/scale [TASKS]    at least 1000; TASKGATE_BIN names the gateway');
    process.exit(2);
  }
  if (postgresMissing) {
    console.error(`scale: ${postgresMissing}`);
    process.exit(1);
  }
  const cleanups = [];
  let status = 0;
  try {
    await scale({ after: (cleanup) => cleanups.unshift(cleanup) }, Number(tasks));
  } catch (error) {
    console.error(error);
    status = 1;
  }
  for (const cleanup of cleanups) await cleanup();
  process.exit(status);
}
