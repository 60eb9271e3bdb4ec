// The inbox before one agent's many calls: the page's first rows, the list, a task's history, decisions. For numbers, not for verdicts.
import { execFile, spawn } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { postgresMissing, startPostgres } from '../integration/lib/postgres.mjs';
import { ADMIN_TOKEN, cpuSeconds, program, root, startTaskgate, startUpstream, stop, stopAll } from './subjects.mjs';

const { values: options } = parseArgs({ options: { smoke: { type: 'boolean' }, parts: { type: 'string' }, databases: { type: 'string' }, calls: { type: 'string' }, large: { type: 'string' }, audit: { type: 'string' }, rounds: { type: 'string' }, help: { type: 'boolean', short: 'h' } } });
if (options.help) {
  console.log(`Usage: tests/bench/inbox [--parts PATTERN] [--databases PATTERN] [--calls N]
                         [--large N] [--audit N] [--rounds N] [--smoke]

Measures the inbox on SQLite and PostgreSQL while --calls calls (3000) of one
agent wait: the page's first rows in Chromium, on loopback and at 1.6 Mbit/s
with a latency of 150 ms, in --rounds rounds (5); GET /api/v1/inbox; decisions.
The parts, of which --parts names some, and --databases some of the databases:

  alike    calls of one tool with short arguments, which are one row
  worst    each of another tool, with arguments of 500 bytes that do not
           compress, under keys with hidden characters
  large    --large calls (3000) of one tool, of 3.5 MB each
  history  the history of a task beside --audit rows (1000000) of the audit
           trail, all of them approvals of the same call

--smoke only shows, in seconds, that everything works: its numbers mean nothing.`);
  process.exit(0);
}
const smoke = options.smoke === true;
const CALLS = Number(options.calls ?? (smoke ? 40 : 3000));
const LARGE = Number(options.large ?? (smoke ? 3 : CALLS));
const AUDIT = Number(options.audit ?? (smoke ? 2000 : 1_000_000));
const ROUNDS = Number(options.rounds ?? (smoke ? 1 : 5));
const DECISIONS = smoke ? 3 : 100;
const LARGE_BYTES = 3_500_000;
const LIMITS = 'store_bytes: 64GiB, pending_bytes_per_principal: 64GiB, ';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-bench-'));
const run = promisify(execFile);
const results = []; // [row, value, unit, least, most, wanted, whether it holds]

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
function report(row, values, unit, wanted = '', holds = () => true) {
  const value = median(values);
  results.push([row, value, unit, Math.min(...values), Math.max(...values), wanted, holds(value)]);
}
const atMost = (limit) => [`<= ${limit}`, (value) => value <= limit];

// ---- the agent ----

async function rpc(gateway, method, params) {
  const response = await fetch(`http://127.0.0.1:${gateway.port}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: 'Bearer agent', 'mcp-protocol-version': '2025-11-25' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const text = await response.text();
  const answer = JSON.parse(text.startsWith('{') ? text : /^data: (.*)$/m.exec(text.slice(text.lastIndexOf('data: ')))[1]);
  if (!answer.result) throw new Error(`${method}: ${text}`);
  return answer.result;
}
const createTask = async (gateway, name, args) => (await rpc(gateway, 'tools/call', { name, arguments: args, task: { ttl: 3_600_000 } })).task.taskId;

/** As large in a row as can be: arguments of nearly 512 bytes, which do not compress, under keys with hidden characters. */
function worst(i) {
  const args = { n: i };
  for (let k = 0; k < 12; k++) args[`k${k}\u200b`] = crypto.randomBytes(18).toString('base64');
  return args;
}

async function fill(gateway, count, call) {
  let next = 0;
  const one = async () => {
    for (let i = next++; i < count; i = next++) await createTask(gateway, ...call(i));
  };
  await Promise.all(Array.from({ length: 8 }, one));
}

// ---- the page ----

const CHROMIUM = process.env.TASKGATE_CHROMIUM ?? '/usr/bin/chromium';
const noChromium = !fs.existsSync(CHROMIUM) || !fs.existsSync(path.join(root, 'tests/integration/node_modules/playwright-core'));
const SLOW = { offline: false, latency: 150, downloadThroughput: 1_600_000 / 8, uploadThroughput: 1_600_000 / 8 };

/** In the page, before any of it: when the first rows are on screen, in ms since the visit began. */
const noteRows = () => {
  new MutationObserver((_, observer) => {
    if (!document.querySelector('#pending > li')) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => (window.firstRows = performance.now())));
  }).observe(document, { subtree: true, childList: true });
};

/** One visit of a browser that has nothing of the page yet. */
async function visit(browser, gateway, network) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  let bytes = 0;
  session.on('Network.dataReceived', ({ encodedDataLength }) => (bytes += encodedDataLength));
  await session.send('Network.enable');
  if (network) await session.send('Network.emulateNetworkConditions', network);
  await page.addInitScript(noteRows);
  await page.goto(`http://127.0.0.1:${gateway.adminPort}/#token=${ADMIN_TOKEN}`);
  const ms = await (await page.waitForFunction(() => window.firstRows, undefined, { timeout: 120_000 })).jsonValue();
  const seen = { ms, kb: bytes / 1024 };
  await context.close();
  return seen;
}

async function pageRows(gateway, what) {
  if (noChromium) return null;
  const { chromium } = createRequire(path.join(root, 'tests/integration/package.json'))('playwright-core');
  const browser = await chromium.launch({ executablePath: CHROMIUM, headless: true, args: ['--no-sandbox', '--disable-gpu'] });
  await visit(browser, gateway); // the browser's own start
  const [near, far] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    near.push(await visit(browser, gateway));
    far.push(await visit(browser, gateway, SLOW));
  }
  await browser.close();
  const [of, kb] = [(list) => list.map(({ ms }) => ms), near.concat(far).map((one) => one.kb)];
  report(`${what}: first rows, loopback`, of(near), 'ms', ...atMost(300));
  report(`${what}: first rows, 1.6 Mbit/s and 150 ms`, of(far), 'ms', ...atMost(2000));
  report(`${what}: received until then`, kb, 'KB', ...atMost(150));
  return [median(of(near)), median(of(far))];
}

// ---- the list, and decisions ----

let files = 0;
/** One request after the other: p50 of a request in ms, and the CPU time of the gateway for one. */
async function asked(gateway, target) {
  const file = path.join(folder, `question-${files++}`);
  fs.writeFileSync(file, `GET ${target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n\r\n`);
  const before = cpuSeconds(gateway.pids);
  const child = spawn(program('load'), [gateway.adminPort, 1, smoke ? 20 : 200, 60_000, file].map(String), { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (more) => (text += more));
  const [code] = await once(child, 'close');
  const seen = JSON.parse(text);
  if (code !== 0 || seen.failed) throw new Error(`${target}: ${text}`);
  return { ms: seen.p50_us / 1000, cpu: ((cpuSeconds(gateway.pids) - before) * 1000) / seen.answers };
}

async function askedRows(gateway, row, target, limit) {
  const seen = [];
  for (let round = 0; round < ROUNDS; round++) seen.push(await asked(gateway, target));
  report(`${row}, p50`, seen.map(({ ms }) => ms), 'ms', ...atMost(limit));
  report(`${row}, CPU time of the gateway`, seen.map(({ cpu }) => cpu), 'ms');
}

async function inboxRows(gateway, what, { count, isStack }) {
  const response = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/inbox`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  const { waiting, rows } = await response.json();
  if (waiting !== count || rows.length !== (isStack ? 1 : Math.min(count, 200))) throw new Error(`${waiting} calls wait, in ${rows.length} rows`);
  await askedRows(gateway, `${what}: GET /api/v1/inbox`, '/api/v1/inbox', 50);
}

async function decisions(gateway, what) {
  const times = [];
  for (let i = 0; i < DECISIONS; i++) {
    const id = await createTask(gateway, 'delete_one', { i });
    const result = rpc(gateway, 'tasks/result', { taskId: id }).then(() => performance.now());
    await rpc(gateway, 'tasks/get', { taskId: id }); // the wait before it has begun
    const began = performance.now();
    const answer = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/tasks/${id}/approve`, { method: 'POST', headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' }, body: '{}' });
    if (answer.status !== 200) throw new Error(await answer.text());
    times.push((await result) - began);
  }
  report(`${what}: from a decision until the waiting agent has the result, p50`, times, 'ms', ...atMost(7.5));
}

// ---- history ----

/** As many rows more, like the last one: an approval of the same call. */
async function lengthen(store, last) {
  if (store.server) {
    const query = (sql) => store.server.query(sql, store.database);
    const [[columns]] = query("SELECT string_agg(column_name, ',') FROM information_schema.columns WHERE table_name = 'taskgate_audit' AND column_name NOT IN ('sequence', 'task_id')");
    query(`SET session_replication_role = replica; INSERT INTO taskgate_audit (sequence, task_id, ${columns}) SELECT sequence + g, 'tg_' || md5(g::text), ${columns} FROM taskgate_audit, generate_series(1, ${AUDIT}) g WHERE sequence = ${last.sequence}`);
    query('ANALYZE taskgate_audit');
    return;
  }
  const { hash, ...row } = last;
  const [before, behind] = JSON.stringify(row).split(`"sequence":${row.sequence}`);
  const names = [path.join(folder, 'before'), path.join(folder, 'behind')];
  fs.writeFileSync(names[0], `${before}"sequence":`);
  fs.writeFileSync(names[1], behind);
  await run(program('past'), [store.path, 'audit', String(AUDIT), ...names]);
}

async function history(place) {
  const store = place.store();
  let gateway = await start(store, { show: 'execution: on_result' });
  const admin = (target, init) => fetch(`http://127.0.0.1:${gateway.adminPort}${target}`, { ...init, headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' } });
  const approved = await createTask(gateway, 'delete_it', { name: 'staging' });
  const id = await createTask(gateway, 'delete_it', { name: 'staging' });
  const answer = await admin(`/api/v1/tasks/${approved}/approve`, { method: 'POST', body: '{}' });
  if (answer.status !== 200) throw new Error(await answer.text());
  const { entries } = await (await admin('/api/v1/audit?limit=1000')).json();
  await stop(gateway.child, 'SIGTERM');
  await lengthen(store, entries.at(-1));
  gateway = await start(store, { show: 'execution: on_result' });
  const task = await (await admin(`/api/v1/tasks/${id}`)).json();
  if (task.history.approved !== 1 || task.history.same.approved < Math.min(AUDIT, place.server ? 1000 : 1)) throw new Error(JSON.stringify(task.history));
  await askedRows(gateway, `${place.name}, ${AUDIT} audit rows: GET /api/v1/tasks/ID with its history`, `/api/v1/tasks/${id}`, 5);
  await stop(gateway.child);
}

// ---- the run ----

/** A gateway whose admin port answers, too: it listens after the proxy's, for which startTaskgate() waits. */
async function start(store, more = {}) {
  const env = store.url ? { THOUGHTGATE_STORE_URL: store.url, HOSTNAME: 'replica-1' } : {};
  const gateway = await startTaskgate(folder, upstream, { limits: LIMITS, env, store: store.path, ...more });
  for (const end = performance.now() + 60_000; performance.now() < end; await pause(5)) if ((await fetch(`http://127.0.0.1:${gateway.adminPort}/ready`).catch(() => null))?.ok) return gateway;
  throw new Error(`the gateway is not ready\n${gateway.child.errors}`);
}

const ALIKE = 'delete_it';
const text = crypto.randomBytes((LARGE_BYTES / 4) * 3).toString('base64');
const KINDS = {
  alike: { count: CALLS, isStack: true, words: 'alike calls', call: (i) => [ALIKE, { n: i }] },
  worst: { count: CALLS, isStack: false, words: 'calls of 500 bytes, each of another tool', call: (i) => [`delete_${i}`, worst(i)] },
  large: { count: LARGE, isStack: true, words: 'alike calls of 3.5 MB', call: (i) => [ALIKE, { n: i, text }] },
};

async function parts(place) {
  const seen = {};
  for (const [name, kind] of Object.entries(KINDS).filter(([name]) => wants(name))) {
    const what = `${place.name}, ${kind.count} ${kind.words}`;
    const store = place.store();
    const gateway = await start(store);
    await fill(gateway, kind.count, kind.call);
    seen[name] = await pageRows(gateway, what);
    await inboxRows(gateway, what, kind);
    if (name !== 'large') await decisions(gateway, what);
    else if (seen.alike && seen.large)
      for (const [i, measure] of ['loopback', '1.6 Mbit/s and 150 ms'].entries()) report(`${what}, over short ones: first rows, ${measure}`, [seen.large[i] / seen.alike[i]], '', ...atMost(1.1));
    await stop(gateway.child);
    if (store.path) fs.rmSync(path.dirname(store.path), { recursive: true });
  }
  if (wants('history')) await history(place);
}

const sqlite = { name: 'SQLite', store: () => ({ path: path.join(fs.mkdtempSync(path.join(folder, 'store-')), 'taskgate.db') }) };

async function onServer() {
  const server = await startPostgres({ after: (cleanup) => cleanups.unshift(cleanup) });
  let count = 0;
  const store = () => {
    const database = `inbox${count++}`;
    return { server, database, url: server.createDatabase(database) };
  };
  return { name: 'PostgreSQL', server, store };
}

function print() {
  const text = (value) => value.toFixed(value >= 100 ? 0 : 2);
  console.log(`${os.cpus().length} × ${os.cpus()[0]?.model.trim()}, Linux ${os.release()}, ${ROUNDS} rounds, load ${os.loadavg()[0].toFixed(1)}, ${new Date().toISOString().slice(0, 10)}\n`);
  console.log('| Row | Median (least–most) | Wanted | |\n|---|---|---|---|');
  for (const [row, value, unit, least, most, wanted, holds] of results) console.log(`| ${row} | ${text(value)}${unit && ` ${unit}`} (${text(least)}–${text(most)}) | ${wanted} | ${wanted && (holds ? 'holds' : '**falls short**')} |`);
}

const wants = (name) => new RegExp(options.parts ?? '').test(name);
const fits = (name) => new RegExp(options.databases ?? '').test(name);
const cleanups = [];
let upstream;
try {
  upstream = await startUpstream();
  if (noChromium) console.log('bench: no Chromium, so no page is measured');
  if (fits('SQLite')) await parts(sqlite);
  if (fits('PostgreSQL') && postgresMissing) console.log(`bench: ${postgresMissing}`);
  else if (fits('PostgreSQL')) await parts(await onServer());
  print();
  if (smoke) console.log('\nbench: works; the numbers of a smoke run mean nothing');
} finally {
  await stopAll();
  for (const cleanup of cleanups) await cleanup();
  fs.rmSync(folder, { recursive: true, force: true });
}
