// The benchmark: every round runs every row over every subject in turn, so that other load of the machine meets all alike.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { ADMIN_TOKEN, SESSION, cpuSeconds, hasNginx, peakKb, program, rssKb, startNginx, startTaskgate, startUpstream, stop, stopAll, writeConfiguration } from './subjects.mjs';

const { values: options } = parseArgs({
  options: { smoke: { type: 'boolean' }, rounds: { type: 'string' }, milliseconds: { type: 'string' }, earlier: { type: 'string' }, rows: { type: 'string' }, json: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
});
if (options.help) {
  console.log(`Usage: tests/bench/run [--rounds N] [--milliseconds N] [--earlier BINARY] [--rows PATTERN] [--json FILE] [--smoke]

Measures no proxy, nginx and taskgate in N interleaved rounds (5) on loopback, and prints medians
with their spread. --milliseconds says how long each measurement takes at most (1500). --earlier
measures another taskgate binary beside; --rows measures only rows of calls, lists and held streams whose
name matches; --json also writes the numbers; --smoke only shows, in seconds, that everything works: its numbers mean nothing.`);
  process.exit(0);
}
const smoke = options.smoke === true;
const wanted = new RegExp(options.rows ?? '');
const rounds = Number(options.rounds ?? (smoke ? 1 : 5));
const MS = Number(options.milliseconds ?? (smoke ? 150 : 1500)); // at most, for each measurement
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-bench-'));

// ---- questions ----

let files = 0;
/** A file with the bytes of one request; `size` pads the arguments until the body has so many bytes. */
function question(method, params, { size = 0, verb = 'POST', headers = [] } = {}) {
  const body = () => (verb === 'GET' ? '' : JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  if (size) params.arguments.padding = 'p'.repeat(Math.max(0, size - body().length));
  const text = body();
  const lines = [`${verb} /mcp HTTP/1.1`, 'Host: localhost', 'Accept: application/json, text/event-stream', `Mcp-Session-Id: ${SESSION}`, 'MCP-Protocol-Version: 2025-11-25', ...(text ? ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`] : []), ...headers];
  const file = path.join(folder, `question-${files++}`);
  fs.writeFileSync(file, `${lines.join('\r\n')}\r\n\r\n${text}`);
  return file;
}
/** The same of the modern era; `name` is repeated in its header. */
function modernQuestion(method, params, { name, ...more } = {}) {
  const prefix = 'io.modelcontextprotocol/';
  const _meta = { [`${prefix}protocolVersion`]: '2026-07-28', [`${prefix}clientInfo`]: { name: 'bench', version: '1' }, [`${prefix}clientCapabilities`]: {} };
  const file = question(method, { ...params, _meta }, { ...more, headers: [`Mcp-Method: ${method}`, ...(name ? [`Mcp-Name: ${name}`] : [])] });
  const text = fs.readFileSync(file, 'utf8').replace(/Mcp-Session-Id:.*\r\n/, '').replace('MCP-Protocol-Version: 2025-11-25', 'MCP-Protocol-Version: 2026-07-28');
  fs.writeFileSync(file, text);
  return file;
}
const call = (name, size) => question('tools/call', { name, arguments: { padding: '' } }, { size });

// ---- measuring ----

/** The output of one of our programs at its end. */
async function said(name, ...args) {
  const child = spawn(program(name), args.map(String), { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (more) => (text += more));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${name} ${args.join(' ')} ended with ${code}: ${text}`);
  return JSON.parse(text);
}
/** Fails if an answer is an error; with `refused`, unless each is. */
const load = (port, connections, requests, file, ...more) => said('load', port, connections, requests, MS, file, ...more);

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const results = new Map(); // row => subject => list of measurements

function record(row, subject, numbers) {
  if (!results.has(row)) results.set(row, new Map());
  const subjects = results.get(row);
  if (!subjects.has(subject)) subjects.set(subject, []);
  subjects.get(subject).push(numbers);
}

async function measure(row, subject, connections, file, { requests = 10_000_000, more = [] } = {}) {
  if (!wanted.test(row)) return;
  const before = cpuSeconds(subject.pids);
  const seen = await load(subject.port, connections, Math.min(requests, 400_000), file, ...more);
  const cpu = cpuSeconds(subject.pids) - before;
  record(row, subject.name, { rps: seen.answers / seen.seconds, p50: seen.p50_us, p99: seen.p99_us, cpu: subject.pids.length ? (cpu / seen.answers) * 100_000 : undefined });
}

async function rpc(subject, message, headers = {}) {
  const response = await fetch(`http://127.0.0.1:${subject.port}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...(message.method === 'initialize' ? {} : { 'mcp-session-id': SESSION }), ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  });
  const text = await response.text();
  return text ? JSON.parse(text.startsWith('{') ? text : /^data: (.*)$/m.exec(text.slice(text.lastIndexOf('data: ')))[1]) : undefined;
}

const INITIALIZE = { protocolVersion: '2025-11-25', capabilities: { tasks: {} }, clientInfo: { name: 'bench', version: '1' } };
const handshake = (subject) => rpc(subject, { method: 'initialize', params: INITIALIZE });
const createTask = async (subject) => (await rpc(subject, { method: 'tools/call', params: { name: 'delete_x', arguments: {}, task: { ttl: 3_600_000 } } })).result.taskId;

// ---- rows ----

/** Rows where the number of rules is not the question have the gateway with few and with most of them. */
const isSample = (subject) => !/, (1 rule|100 rules)$/.test(subject.name);
const isPlain = (subject) => /^direct|10 rules|^earlier/.test(subject.name);

async function forwardRows(subjects) {
  for (const connections of smoke ? [1, 16] : [1, 16, 64, 256]) {
    const file = call('read', 600);
    for (const subject of subjects) await measure(`600 B call, 300 B reply, ${connections} connections`, subject, connections, file);
  }
  for (const [name, size, connections] of [['10 KB call', 10_000, 16], ['1 MB call', 1_000_000, 4]]) {
    const file = call('read', size);
    for (const subject of subjects) if (isSample(subject)) await measure(`${name}, ${connections} connections`, subject, connections, file);
  }
  const file = call('bytes-1000000');
  for (const subject of subjects) if (isSample(subject)) await measure('1 MB reply, 4 connections', subject, 4, file);
  // A new session each, as clients begin: no session header is sent.
  const begin = question('initialize', INITIALIZE);
  fs.writeFileSync(begin, fs.readFileSync(begin, 'utf8').replace(/Mcp-Session-Id:.*\r\n/, ''));
  for (const subject of subjects) if (isPlain(subject)) await measure('initialize, 1 connection', subject, 1, begin, { requests: 2000 });
  // -32009: the gateway's own answer, so this is reading, judging and answering, and nothing else.
  const refused = question('tools/call', { name: 'delete_x', arguments: { padding: '' } }, { size: 600 });
  for (const subject of subjects) if (subject.adminPort) await measure('call refused by validation, 1 connection', subject, 1, refused, { requests: 2000, more: ['refused'] });
}

const MB = 1_000_000;
const LONG = (smoke ? 6 : 60) * MB;
const SLOW = 20 * MB; // a second

async function longRows(subjects) {
  const file = call(`bytes-${LONG}`);
  for (const subject of subjects.filter(isSample)) {
    const seen = await said('slow', subject.port, file, 0);
    record(`${LONG / MB} MB reply, 1 reader`, subject.name, { mb: seen.bytes / seen.seconds / MB });
  }
}

/** The buffered part of a long reply to a client that reads slowly: in a fresh process, so that its memory is its own. */
async function slowRow(subject) {
  await handshake(subject);
  await rpc(subject, { method: 'tools/call', params: { name: 'read' } });
  const peak = peakKb(subject.pids[0]);
  const seen = await said('slow', subject.port, call(`bytes-${LONG}`), SLOW);
  record(`${LONG / MB} MB reply, a reader of ${SLOW / MB} MB/s`, subject.name, { mb: seen.bytes / seen.seconds / MB, growth: peak() });
  await stop(subject.child);
}

/** Parts of the gateway by themselves. */
async function partRows() {
  const body = path.join(folder, 'body');
  fs.writeFileSync(body, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`field_${i}`, i % 2 ? i * 1000 : `value number ${i}`])), task: { ttl: 3_600_000 } } }));
  for (const rules of [10, 1000]) {
    const { load_ms, judge_us } = await said('parts', writeConfiguration(folder, { port: 1 }, rules), body, smoke ? 3 : 15);
    record(`loading ${rules} rules, alone`, 'taskgate', { ms: load_ms });
    record(`reading and judging a call, alone, ${rules} rules`, 'taskgate', { p50: judge_us });
  }
}

/** Agents that come and go, four at a time: the memory after the first half and after the second. */
async function churnRow(upstream, kind) {
  const gateway = await startTaskgate(folder, upstream, kind);
  const half = async () => {
    const seen = await Promise.all(Array.from({ length: 4 }, () => said('churn', gateway.port, smoke ? 25 : 3750)));
    return { rps: seen.reduce((sum, { cycles }) => sum + cycles, 0) / Math.max(...seen.map(({ seconds }) => seconds)), kb: rssKb(gateway.child.pid) };
  };
  const [first, second] = [await half(), await half()];
  const row = `${smoke ? 200 : '30,000'} cycles of initialize, call, DELETE`;
  record(row, gateway.name, { rps: second.rps, kb: second.kb, growth: second.kb - first.kb });
  await stop(gateway.child);
}

async function listRows(sets) {
  // The second has other bytes in each answer: it is read each time.
  const kinds = [['', question('tools/list', {})], [', new bytes', question('tools/list', { _meta: { fresh: true } })]];
  for (const [tools, subjects] of sets) for (const [kind, file] of kinds) for (const subject of subjects) await measure(`tools/list of ${tools}${kind}, 1 connection`, subject, 1, file);
}

/** The rate of plain SQLite for as many of the gateway's own rows. */
async function plainRow(gateway, rows, clients) {
  const plain = await said('plain_sqlite', path.join(gateway.folder, 'taskgate.db'), path.join(folder, `plain-${files++}.db`), rows, clients);
  record(`durable creates, ${clients} clients`, 'plain SQLite', { rps: plain.rows / plain.seconds });
}

async function taskRows(gateway, isFirst) {
  for (const clients of [1, 64]) {
    const rows = smoke ? 50 : clients === 1 ? 500 : 5000;
    const file = question('tools/call', { name: 'delete_x', arguments: { padding: '' }, task: { ttl: 3_600_000 } }, { size: 600 });
    await measure(`durable creates, ${clients} clients`, gateway, clients, file, { requests: rows });
    if (isFirst) await plainRow(gateway, rows, clients);
  }
  const taskId = await createTask(gateway);
  await measure('tasks/get polls, 16 connections', gateway, 16, question('tasks/get', { taskId }), { requests: smoke ? 200 : 10_000 });
  const times = [];
  for (let i = 0; i < (smoke ? 3 : 30); i++) {
    const id = await createTask(gateway);
    const waiting = rpc(gateway, { method: 'tasks/result', params: { taskId: id } });
    const began = performance.now();
    await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/tasks/${id}/approve`, { method: 'POST', headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' }, body: '{}' });
    if (!(await waiting).result) throw new Error('an approved task has no result');
    times.push((performance.now() - began) * 1000);
  }
  record('from approval to result', gateway.name, { p50: median(times) });
}

/** RSS for each of many open streams: `file` is asked once on each connection, and stays open. */
async function idleRow(row, upstream, kind, count, prepare, isHeld = () => true) {
  if (!wanted.test(row)) return;
  const gateway = await startTaskgate(folder, upstream, kind);
  await handshake(gateway);
  await rpc(gateway, { method: 'tools/call', params: { name: 'read' } });
  const file = await prepare(gateway);
  const before = rssKb(gateway.child.pid);
  const child = spawn(program('load'), [gateway.port, count, count, 60_000, file, 'hold'].map(String), { stdio: ['ignore', 'pipe', 'inherit'] });
  await Promise.race([once(child.stdout, 'data'), once(child, 'close').then(() => { throw new Error(`${row}: the streams did not open`); })]);
  if (!(await isHeld(gateway))) throw new Error(`${row}: they are not open`);
  record(row, gateway.name, { each: (rssKb(gateway.child.pid) - before) / count });
  child.kill('SIGKILL');
  await once(child, 'close');
  await stop(gateway.child);
}

async function processRow(upstream, kind) {
  const gateway = await startTaskgate(folder, upstream, kind);
  record('cold start to ready', gateway.name, { ms: gateway.readyMs });
  await handshake(gateway);
  record('RSS idle', gateway.name, { kb: rssKb(gateway.child.pid) });
  await stop(gateway.child);
}

/** Whether the gateway's metric has at least this value. */
async function hasMetric(gateway, name, least) {
  const text = await (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]) >= least;
}

async function modernIdleRows(upstream, kind, count) {
  const areOpen = (gateway, least = count) => hasMetric(gateway, 'thoughtgate_active_requests', least);
  // Each of them is a task of its own, for nobody says who calls. The server has accepted such callers before.
  const held = async (gateway) => {
    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
    await rpc(gateway, { method: 'tools/list', params: { _meta } }, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' });
    return modernQuestion('tools/call', { name: 'delete_x', arguments: { padding: '' } }, { size: 600, name: 'delete_x' });
  };
  await idleRow(`${count} held modern calls, each`, upstream, kind, count, held, areOpen);
  const listeners = count / 2; // as many as one address may have of those without a principal
  await idleRow(`${listeners} modern listeners, each`, upstream, kind, listeners, () => modernQuestion('subscriptions/listen', { notifications: { toolsListChanged: true } }), (gateway) => areOpen(gateway, listeners));
}

async function idleRows(upstream, kind) {
  const count = smoke ? 50 : 5000;
  await idleRow(`${count} idle proxied streams, each`, upstream, kind, count, async () => question(undefined, undefined, { verb: 'GET' }));
  await idleRow(`${count} waiting tasks/result, each`, upstream, kind, count, async (gateway) => question('tasks/result', { taskId: await createTask(gateway) }));
  if (!kind.binary || options.rows) await modernIdleRows(upstream, kind, count); // an old one may not know that era
}

/** Rows that need a process of their own. */
async function processRows(upstream, kind) {
  await processRow(upstream, kind);
  await slowRow(await startTaskgate(folder, upstream, kind));
  await idleRows(upstream, kind);
  await churnRow(upstream, kind);
}

// ---- the report ----

/** The measured values: in the JSON under these keys, in the table in a column or, with a unit, under "other". */
const OTHERS = [
  ['mb', (x) => `${number(x)} MB/s`],
  ['ms', (x) => `${number(x, 1)} ms`],
  ['kb', (x) => `${number(x)} KB`],
  ['each', (x) => `${number(x, 1)} KB each`],
  ['growth', (x) => `grown by ${number(x)} KB`],
];

const number = (value, digits = 0) => value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits, useGrouping: false });

function summary() {
  const rows = [];
  for (const [row, subjects] of results) {
    for (const [subject, list] of subjects) {
      const entry = { row, subject };
      for (const key of ['rps', 'p50', 'p99', 'cpu', ...OTHERS.map(([other]) => other)]) {
        const values = list.map((x) => x[key]).filter((x) => x !== undefined);
        if (values.length === 0) continue;
        entry[key] = median(values);
        entry[`${key}_spread`] = [Math.min(...values), Math.max(...values)];
      }
      rows.push(entry);
    }
  }
  return rows;
}

function print(rows) {
  console.log('| Row | Subject | requests/s (least–most) | p50 µs | p99 µs | CPU s / 100,000 | other |');
  console.log('|---|---|---|---|---|---|---|');
  for (const r of rows) {
    const rate = r.rps === undefined ? '' : `${number(r.rps)} (${r.rps_spread.map((x) => number(x)).join('–')})`;
    const other = OTHERS.filter(([key]) => r[key] !== undefined).map(([key, write]) => write(r[key])).join(', ');
    console.log(`| ${r.row} | ${r.subject} | ${rate} | ${r.p50 === undefined ? '' : number(r.p50, r.p50 < 10 ? 1 : 0)} | ${r.p99 === undefined ? '' : number(r.p99)} | ${r.cpu === undefined ? '' : number(r.cpu, 2)} | ${other} |`);
  }
}

/** The targets, as ratios of this run; a row that is missing leaves its target out. */
function judge(rows) {
  const find = (row, subject) => rows.find((r) => r.row === row && r.subject === subject) ?? {};
  const at64 = smoke ? '600 B call, 300 B reply, 16 connections' : '600 B call, 300 B reply, 64 connections';
  const at1 = '600 B call, 300 B reply, 1 connections';
  const [nginx, few, many] = [find(at64, 'nginx'), find(at64, 'taskgate, 10 rules'), find(at64, 'taskgate, 1000 rules')];
  const [direct1, nginx1, many1] = [find(at1, 'direct'), find(at1, 'nginx'), find(at1, 'taskgate, 1000 rules')];
  const creates = (clients, subject) => find(`durable creates, ${clients} clients`, subject).rps;
  const targets = [
    ['requests per CPU second, 1000 rules, over nginx', '>= 1.15', nginx.cpu / many.cpu, (x) => x >= 1.15],
    ['added p50 over direct, over what nginx adds (1 connection)', '<= 1.1', (many1.p50 - direct1.p50) / (nginx1.p50 - direct1.p50), (x) => x <= 1.1],
    ['CPU of 1000 rules over 10 rules', '< 1.03', many.cpu / few.cpu, (x) => x < 1.03],
    ['durable creates at 64 clients over plain SQLite', '>= 0.5', creates(64, 'taskgate, 10 rules') / creates(64, 'plain SQLite'), (x) => x >= 0.5],
    ['RSS idle (MB)', '< 12', find('RSS idle', 'taskgate, 10 rules').kb / 1024, (x) => x < 12],
    ['KB for each idle proxied stream', '<= 12', find(rows.find((r) => / idle proxied streams/.test(r.row))?.row, 'taskgate, 10 rules').each, (x) => x <= 12],
    ['KB for each held modern call', '<= 12', find(rows.find((r) => / held modern calls/.test(r.row))?.row, 'taskgate, 10 rules').each, (x) => x <= 12],
    ['growth of RSS over the second half of the churn (KB)', 'none: < 64', find(rows.find((r) => /cycles/.test(r.row))?.row, 'taskgate, 10 rules').growth, (x) => x < 64],
    ['cold start with 1000 rules (ms)', '< 50', find('cold start to ready', 'taskgate, 1000 rules').ms, (x) => x < 50],
    ['loading 1000 rules (ms)', '< 100', find('loading 1000 rules, alone', 'taskgate').ms, (x) => x < 100],
    ['validation, alone, 1000 rules (ms)', '< 1', find('reading and judging a call, alone, 1000 rules', 'taskgate').p50 / 1000, (x) => x < 1],
    ['tools/list of 100 added (ms)', '< 5', (find('tools/list of 100, 1 connection', 'taskgate, 10 rules').p50 - find('tools/list of 100, 1 connection', 'direct').p50) / 1000, (x) => x < 5],
    ['initialize added (ms)', '< 1', (find('initialize, 1 connection', 'taskgate, 10 rules').p50 - find('initialize, 1 connection', 'direct').p50) / 1000, (x) => x < 1],
  ];
  console.log('\n| Target | Wanted | This run | |\n|---|---|---|---|');
  for (const [name, wanted, value, holds] of targets) if (Number.isFinite(value)) console.log(`| ${name} | ${wanted} | ${number(value, 2)} | ${holds(value) ? 'holds' : '**falls short**'} |`);
}

// ---- the run ----

if (!hasNginx()) {
  console.log('bench: skipped, nginx is not installed; on Debian: apt-get install nginx-light');
  process.exit(0);
}
try {
  const upstream = await startUpstream();
  const lists = await Promise.all([100, 1000].map((tools) => startUpstream(tools)));
  const subjects = [upstream, await startNginx(folder, upstream)];
  for (const rules of [1, 10, 100, 1000]) subjects.push(await startTaskgate(folder, upstream, { rules }));
  const earlier = options.earlier && { rules: 1000, binary: path.resolve(options.earlier), name: 'earlier, 1000 rules' };
  if (earlier) subjects.push(await startTaskgate(folder, upstream, earlier));
  const sets = [];
  for (const [i, tools] of [100, 1000].entries()) {
    sets.push([tools, [lists[i], await startTaskgate(folder, lists[i])]]);
    if (earlier) sets.at(-1)[1].push(await startTaskgate(folder, lists[i], earlier));
  }
  for (const subject of [...subjects, ...sets.flatMap(([, list]) => list)]) await handshake(subject);
  for (let round = 1; round <= rounds; round++) {
    if (!smoke) process.stderr.write(`round ${round} of ${rounds}\n`);
    await forwardRows(round % 2 ? subjects : [...subjects].reverse());
    await listRows(sets);
    const kinds = [{ rules: 10 }, earlier].filter(Boolean);
    if (options.rows) {
      for (const kind of kinds) await idleRows(upstream, kind);
      continue;
    }
    await longRows(subjects);
    const gateways = subjects.filter((subject) => subject.adminPort && isPlain(subject));
    for (const gateway of gateways) await taskRows(gateway, gateway === gateways[0]);
    await processRow(upstream, { rules: 1000 });
    await slowRow(await startNginx(folder, upstream));
    for (const kind of kinds) await processRows(upstream, kind);
    await partRows();
  }
  const rows = summary();
  console.log(`${os.cpus().length} × ${os.cpus()[0]?.model.trim()}, Linux ${os.release()}, ${rounds} rounds of ${MS} ms, ${new Date().toISOString().slice(0, 10)}\n`);
  print(rows);
  judge(rows);
  if (options.json) fs.writeFileSync(options.json, `${JSON.stringify({ date: new Date().toISOString(), machine: { cpu: os.cpus()[0]?.model, count: os.cpus().length, kernel: os.release() }, rounds, rows }, null, 2)}\n`);
  if (smoke) console.log('\nbench: works; the numbers of a smoke run mean nothing');
} finally {
  await stopAll();
  fs.rmSync(folder, { recursive: true, force: true });
}
