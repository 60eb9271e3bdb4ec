// The store on PostgreSQL: creates beside pgbench, decisions at another replica, polls at several. For numbers, not for verdicts.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { setTimeout as pause } from 'node:timers/promises';
import { postgresBinary, postgresMissing, startPostgres } from '../integration/lib/postgres.mjs';
import { ADMIN_TOKEN, program, root, startTaskgate, startUpstream, stopAll } from './subjects.mjs';

const { values: options } = parseArgs({ options: { smoke: { type: 'boolean' }, rounds: { type: 'string' }, milliseconds: { type: 'string' }, help: { type: 'boolean', short: 'h' } } });
if (options.help) {
  console.log(`Usage: tests/bench/postgres [--rounds N] [--milliseconds N] [--smoke]

Measures durable creates on PostgreSQL beside pgbench, which inserts the same rows with as many
clients in the same round; the time from an approval at one replica until the agent that waits at
another one has its answer; polls at one, two and three replicas. Prints medians of N rounds (5)
with their spread. --milliseconds says how long each measurement takes at most (3000). --smoke only
shows, in seconds, that everything works: its numbers mean nothing.`);
  process.exit(0);
}
const smoke = options.smoke === true;
const rounds = Number(options.rounds ?? (smoke ? 1 : 5));
const MS = Number(options.milliseconds ?? (smoke ? 1000 : 3000));
const CLIENTS = smoke ? [4] : [1, 16, 64];
const DECISIONS = smoke ? 3 : 40;
const REPLICAS = 3;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-bench-'));
const run = promisify(execFile);

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const results = new Map(); // row => { unit, wanted, holds, values }
function record(row, value, unit = '', wanted = '', holds = () => true) {
  if (!results.has(row)) results.set(row, { unit, wanted, holds, values: [] });
  results.get(row).values.push(value);
}

// ---- asking a gateway, as agents do that have a token and no session ----

const TOKEN = 'Authorization: Bearer agent';
const CALL = { name: 'delete_x', arguments: { name: 'staging', padding: 'p'.repeat(400) }, task: { ttl: 3_600_000 } };

let files = 0;
function question(method, params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const file = path.join(folder, `question-${files++}`);
  const lines = ['POST /mcp HTTP/1.1', 'Host: localhost', 'Accept: application/json, text/event-stream', 'Content-Type: application/json', 'MCP-Protocol-Version: 2025-11-25', TOKEN, `Content-Length: ${Buffer.byteLength(body)}`];
  fs.writeFileSync(file, `${lines.join('\r\n')}\r\n\r\n${body}`);
  return file;
}

/** The rate of answers. Fails if one of them is an error; with `refused`, unless each is. */
async function load(gateway, connections, file, ...more) {
  const { stdout } = await run(program('load'), [gateway.port, connections, 10_000_000, MS, file, ...more].map(String));
  const seen = JSON.parse(stdout);
  return seen.answers / seen.seconds;
}

async function rpc(gateway, method, params) {
  const response = await fetch(`http://127.0.0.1:${gateway.port}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: 'Bearer agent' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const text = await response.text();
  const answer = JSON.parse(text.startsWith('{') ? text : /^data: (.*)$/m.exec(text.slice(text.lastIndexOf('data: ')))[1]);
  if (!answer.result) throw new Error(`${method}: ${text}`);
  return answer.result;
}
const createTask = async (gateway) => (await rpc(gateway, 'tools/call', CALL)).task.taskId;

// ---- creates ----

/** An insert of what the query gives, one row, with other expressions for some of its columns. */
function insertOf(database, table, condition, instead) {
  const columns = database.query(`SELECT column_name FROM information_schema.columns WHERE table_name = '${table}' AND is_identity = 'NO' ORDER BY ordinal_position`).map(([name]) => name);
  const [literals] = database.query(`SELECT ${columns.map((name) => `quote_nullable(${name}::text)`)} FROM ${table} WHERE ${condition}`);
  if (literals.length !== columns.length) throw new Error(`a value of ${table} has a tab`);
  // pgbench takes a colon before a letter for a variable.
  const values = columns.map((name, i) => instead[name] ?? literals[i].replace(/:(?=[A-Za-z_])/g, "'||chr(58)||'"));
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${values.join(', ')});`;
}

/** A script for pgbench: the rows of a create of the gateway's, in a database beside with the same tables. */
async function pgbenchScript(database, gateway) {
  const id = await createTask(gateway);
  const own = `'tg_' || CAST(:number AS text)`;
  const lines = ['\\set number random(1, 9000000000000000000)', 'BEGIN;', insertOf(database, 'taskgate_task', `id = '${id}'`, { id: own }), insertOf(database, 'taskgate_task_claim', `task = (SELECT sequence FROM taskgate_task WHERE id = '${id}')`, { task: 'lastval()' }), insertOf(database, 'taskgate_audit', `task_id = '${id}'`, { task_id: own, sequence: "nextval('numbers')" }), insertOf(database, 'taskgate_feed', `task_id = '${id}'`, { task_id: own }), 'END;'];
  const file = path.join(folder, 'pgbench.sql');
  fs.writeFileSync(file, `${lines.join('\n')}\n`);
  const url = database.createDatabase('beside');
  await run(path.join(root, 'build-bench/taskgate'), ['store', 'migrate'], { env: { ...process.env, THOUGHTGATE_STORE_URL: url } });
  database.query('CREATE SEQUENCE numbers', 'beside');
  return file;
}

async function pgbench(database, clients, script) {
  const { stdout } = await run(postgresBinary('pgbench'), ['-h', database.folder, '-U', 'postgres', '-n', '-M', 'prepared', '-c', clients, '-j', Math.min(2, clients), '-T', Math.ceil(MS / 1000), '-f', script, 'beside'].map(String), { cwd: '/' });
  return Number(/^tps = ([\d.]+)/m.exec(stdout)[1]);
}

async function createRows(database, gateway, script, isEven) {
  const file = question('tools/call', CALL);
  for (const clients of CLIENTS) {
    const [own, theirs] = [() => load(gateway, clients, file), () => pgbench(database, clients, script)];
    const first = await (isEven ? own() : theirs());
    const second = await (isEven ? theirs() : own());
    const [rate, other] = isEven ? [first, second] : [second, first];
    record(`creates, ${clients} clients`, rate, '/s');
    record(`the same rows by pgbench, ${clients} clients`, other, '/s');
    record(`creates over pgbench, ${clients} clients`, rate / other, '', '>= 0.7', (x) => x >= 0.7);
  }
}

/** Creates that a limit refuses are no creates: nothing of them reaches the database. */
async function refusedRow(database, gateway) {
  const count = () => Number(database.query('SELECT count(*) FROM taskgate_task')[0][0]);
  const before = count();
  const rate = await load(gateway, 4, question('tools/call', { ...CALL, task: { ttl: -1 } }), 'refused');
  if (count() !== before) throw new Error('a refused create was stored');
  record('refused creates, 4 clients', rate, '/s');
}

// ---- a decision at another replica ----

async function decide(gateway, id) {
  const response = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/tasks/${id}/approve`, { method: 'POST', headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' }, body: '{}' });
  if (response.status !== 200) throw new Error(await response.text());
}

async function decisionRow(row, waiting, deciding) {
  const times = [];
  for (let i = 0; i < DECISIONS; i++) {
    const id = await createTask(waiting);
    const result = rpc(waiting, 'tasks/result', { taskId: id });
    await rpc(waiting, 'tasks/get', { taskId: id }); // the wait before it has begun
    const began = performance.now();
    await decide(deciding, id);
    await result;
    times.push(performance.now() - began);
  }
  record(row, median(times), 'ms', '<= 15', (x) => x <= 15);
}

// ---- polls ----

async function pollRow(gateways) {
  const file = question('tasks/get', { taskId: await createTask(gateways[0]) });
  const rates = await Promise.all(gateways.map((gateway) => load(gateway, 16, file)));
  record(`polls of all, ${gateways.length} ${gateways.length === 1 ? 'replica' : 'replicas'}, 16 connections each`, rates.reduce((sum, rate) => sum + rate, 0), '/s');
}

// ---- the run ----

function print() {
  const text = (value) => value.toFixed(value >= 100 ? 0 : 2);
  console.log(`${os.cpus().length} × ${os.cpus()[0]?.model.trim()}, Linux ${os.release()}, ${rounds} rounds of ${MS} ms, load ${os.loadavg()[0].toFixed(1)}, ${new Date().toISOString().slice(0, 10)}\n`);
  console.log('| Row | Median (least–most) | Wanted | |\n|---|---|---|---|');
  for (const [row, { unit, wanted, holds, values }] of results) {
    const value = median(values);
    console.log(`| ${row} | ${text(value)}${unit && ` ${unit}`} (${text(Math.min(...values))}–${text(Math.max(...values))}) | ${wanted} | ${wanted && (holds(value) ? 'holds' : '**falls short**')} |`);
  }
}

async function startReplicas(database, upstream) {
  const gateways = [];
  for (let i = 1; i <= REPLICAS; i++) gateways.push(await startTaskgate(folder, upstream, { limits: 'store_bytes: 64GiB, ', env: { THOUGHTGATE_STORE_URL: database.url(), HOSTNAME: `replica-${i}` } }));
  return gateways;
}

/** Waits until the work beside a start is over, and each replica has heard of the others. */
async function settled(gateway) {
  for (const end = performance.now() + 30_000; performance.now() < end; await pause(50)) {
    const answer = await fetch(`http://127.0.0.1:${gateway.adminPort}/ready`).catch(() => null);
    const ready = answer && (await answer.json());
    if (ready?.replica?.peers.filter((peer) => peer.state === 'alive').length === REPLICAS - 1) return;
  }
  throw new Error(`a replica does not see the others\n${gateway.child.errors}`);
}

if (postgresMissing) {
  console.log(`bench: skipped, ${postgresMissing}`);
  process.exit(0);
}
const cleanups = [];
try {
  const database = await startPostgres({ after: (cleanup) => cleanups.unshift(cleanup) });
  const gateways = await startReplicas(database, await startUpstream());
  const script = await pgbenchScript(database, gateways[0]);
  for (const gateway of gateways) await settled(gateway);
  for (let round = 1; round <= rounds; round++) {
    if (!smoke) process.stderr.write(`round ${round} of ${rounds}\n`);
    await refusedRow(database, gateways[0]); // first: the creates that end a row unanswered are stored later
    await createRows(database, gateways[0], script, round % 2 === 0);
    await decisionRow('from an approval at the same replica to the answer, p50', gateways[0], gateways[0]);
    await decisionRow('from an approval at another replica to the answer, p50', gateways[0], gateways[1]);
    for (let count = 1; count <= REPLICAS; count++) await pollRow(gateways.slice(0, count));
  }
  print();
  if (smoke) console.log('\nbench: works; the numbers of a smoke run mean nothing');
} finally {
  await stopAll();
  for (const cleanup of cleanups) await cleanup();
  fs.rmSync(folder, { recursive: true, force: true });
}
