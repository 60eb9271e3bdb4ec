// The costs of approvals: durable creates and votes, how soon a decision is everywhere, lists beside a long past, the audit trail's check.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ADMIN_TOKEN, SESSION, program, root, startTaskgate, startUpstream, stop, stopAll } from './subjects.mjs';

const { values: options } = parseArgs({ options: { smoke: { type: 'boolean' }, parts: { type: 'string' }, past: { type: 'string' }, waiting: { type: 'string' }, help: { type: 'boolean', short: 'h' } } });
if (options.help) {
  console.log(`Usage: tests/bench/approvals [--parts PATTERN] [--past N] [--waiting N] [--smoke]

Measures durable creates beside plain SQLite, votes, the time from a decision until the event
stream, the waiting agent and the page have it, lists of tasks beside --past ended tasks (1000000)
and --waiting undecided ones (10000), and the check of an audit trail of as many rows. --parts names
some of creates, decisions and past. --smoke only shows, in seconds, that everything works: its
numbers mean nothing.`);
  process.exit(0);
}
const smoke = options.smoke === true;
const PAST = Number(options.past ?? (smoke ? 2000 : 1_000_000));
const WAITING = Number(options.waiting ?? (smoke ? 200 : 10_000));
const DECISIONS = smoke ? 3 : 100;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-bench-'));
const results = []; // [row, value, unit, wanted, whether it holds]

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const report = (row, value, unit, wanted = '', holds = () => true) => results.push([row, value, unit, wanted, holds(value)]);

async function said(name, ...args) {
  const child = spawn(program(name), args.map(String), { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (more) => (text += more));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${name} ${args.join(' ')} ended with ${code}: ${text}`);
  return text ? JSON.parse(text) : undefined;
}

let files = 0;
function question(lines, body = '') {
  const file = path.join(folder, `question-${files++}`);
  fs.writeFileSync(file, `${[...lines, 'Host: localhost', ...(body ? ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`] : [])].join('\r\n')}\r\n\r\n${body}`);
  return file;
}

const MCP = ['Accept: application/json, text/event-stream', `Mcp-Session-Id: ${SESSION}`, 'MCP-Protocol-Version: 2025-11-25'];
const CALL = { name: 'delete_x', arguments: { name: 'staging', padding: 'p'.repeat(400) }, task: { ttl: 3_600_000 } };
const INITIALIZE = { protocolVersion: '2025-11-25', capabilities: { tasks: {} }, clientInfo: { name: 'bench', version: '1' } };

async function rpc(gateway, method, params) {
  const response = await fetch(`http://127.0.0.1:${gateway.port}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...(method === 'initialize' ? {} : { 'mcp-session-id': SESSION }) },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const text = await response.text();
  return JSON.parse(text.startsWith('{') ? text : /^data: (.*)$/m.exec(text.slice(text.lastIndexOf('data: ')))[1]);
}
const createTask = async (gateway) => (await rpc(gateway, 'tools/call', CALL)).result.taskId;
const admin = (gateway, target, init = {}) => fetch(`http://127.0.0.1:${gateway.adminPort}${target}`, { ...init, headers: { authorization: `Bearer ${init.token ?? ADMIN_TOKEN}`, 'content-type': 'application/json' } });
const decide = (gateway, id, verb, token) => admin(gateway, `/api/v1/tasks/${id}/${verb}`, { method: 'POST', body: '{}', token });

// ---- creates and votes ----

const people = ['alice', 'bob'];
const VOTERS = `admin: {people: [${people.map((name) => `{name: ${name}}`)}], tokens: [${people.map((name) => `{name: ${name}-cli, person: ${name}, token_env: ${name.toUpperCase()}, roles: [approver, auditor]}`)}]}\n`;
const env = Object.fromEntries(people.map((name) => [name.toUpperCase(), `token-of-${name}-000000000000000000000`]));
const SHOW = 'description: Databases hold what customers wrote., show: {summary: "Deletes the database {name}", highlight: [name], risk: medium}';

async function creates(upstream) {
  const gateway = await startTaskgate(folder, upstream, { show: SHOW, workflow: 'quorum: 2', more: VOTERS, env });
  await rpc(gateway, 'initialize', INITIALIZE);
  const rows = smoke ? 64 : 5000, clients = 64;
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: CALL });
  const seen = await said('load', gateway.port, clients, rows, 600_000, question(['POST /mcp HTTP/1.1', ...MCP], body));
  const plain = await said('plain_sqlite', path.join(gateway.folder, 'taskgate.db'), path.join(folder, 'plain.db'), rows, clients);
  const [own, theirs] = [seen.answers / seen.seconds, plain.rows / plain.seconds];
  report('durable creates, 64 clients', own, '/s');
  report('the same rows by plain SQLite', theirs, '/s');
  report('creates over plain SQLite', own / theirs, '', '>= 0.7', (x) => x >= 0.7);
  const { tasks } = await (await admin(gateway, '/api/v1/tasks?limit=100')).json();
  const began = performance.now(); // a person's votes, one request for all
  const answer = await (await admin(gateway, '/api/v1/decisions', { method: 'POST', token: env.ALICE, body: JSON.stringify({ items: tasks.map(({ id, requestDigest }) => ({ id, requestDigest })), verb: 'approve' }) })).json();
  if (!answer.results.every(({ status }) => status === 202)) throw new Error('a vote was refused');
  report('votes of one request, each durable', (tasks.length / (performance.now() - began)) * 1000, '/s');
  await stop(gateway.child);
}

// ---- how soon a decision is everywhere ----

/** The moments at which the event stream had each task in a decided state. */
async function follow(gateway) {
  const response = await admin(gateway, '/api/v1/events');
  const heard = new Map(), waiting = new Map();
  let rest = '';
  (async () => {
    for await (const bytes of response.body) {
      const at = performance.now();
      rest += Buffer.from(bytes).toString();
      const lines = rest.split('\n');
      rest = lines.pop();
      for (const line of lines.filter((text) => text.startsWith('data: '))) {
        const { id, state } = JSON.parse(line.slice(6));
        if (state === 'pending' || heard.has(id)) continue;
        heard.set(id, at);
        waiting.get(id)?.(at);
      }
    }
  })().catch(() => {});
  return (id) => (heard.has(id) ? heard.get(id) : new Promise((resolve) => waiting.set(id, resolve)));
}

const CHROMIUM = process.env.TASKGATE_CHROMIUM ?? '/usr/bin/chromium';
async function openPage(gateway) {
  if (!fs.existsSync(CHROMIUM) || !fs.existsSync(path.join(root, 'tests/integration/node_modules/playwright-core'))) return null;
  const { chromium } = createRequire(path.join(root, 'tests/integration/package.json'))('playwright-core');
  const browser = await chromium.launch({ executablePath: CHROMIUM, headless: true, args: ['--no-sandbox', '--disable-gpu'] });
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${gateway.adminPort}/#token=${ADMIN_TOKEN}`);
  return { browser, page };
}

/** In the page: when the row of this task first looks different. */
const watchRow = (id) => {
  const look = () => document.querySelector(`[data-task-id="${id}"]`)?.outerHTML ?? '';
  const before = look();
  if (!before) return false;
  window.seen = new Promise((resolve) => new MutationObserver((_, observer) => {
    if (look() === before) return;
    observer.disconnect();
    resolve(performance.timeOrigin + performance.now());
  }).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true }));
  return true;
};

async function decisions(upstream) {
  const gateway = await startTaskgate(folder, upstream, { show: SHOW });
  await rpc(gateway, 'initialize', INITIALIZE);
  const heard = await follow(gateway);
  const opened = await openPage(gateway);
  const times = { answer: [], stream: [], agent: [], page: [] };
  for (let i = 0; i < DECISIONS; i++) {
    const id = await createTask(gateway);
    if (opened) await opened.page.waitForFunction(watchRow, id);
    const result = rpc(gateway, 'tasks/result', { taskId: id }).then(() => performance.now());
    const began = performance.now();
    const answered = await decide(gateway, id, 'approve');
    times.answer.push(performance.now() - began);
    if (answered.status !== 200) throw new Error(await answered.text());
    times.stream.push((await heard(id)) - began);
    times.agent.push((await result) - began);
    if (opened) times.page.push((await opened.page.evaluate(() => window.seen)) - (performance.timeOrigin + began));
  }
  await opened?.browser.close();
  for (const [who, list] of [['the approver has the answer', times.answer], ['the event stream has it', times.stream], ['the waiting agent has the result', times.agent], ['the page shows it', times.page]]) {
    if (list.length) report(`from a decision until ${who}, p50`, median(list), 'ms', '< 10', (x) => x < 10);
  }
  await stop(gateway.child);
}

// ---- lists and the trail ----

const LISTS = [
  ['waiting, by deadline', 'state=pending&sort=decideBy'],
  ['waiting, newest first', 'state=pending'],
  ['waiting, that I may vote on', 'mine=true'],
  ['all, newest first', ''],
  ['all, by deadline', 'sort=decideBy'],
  ['ended, newest first', 'state=completed,rejected,expired,failed,cancelled'],
];

/** The admin port listens after the proxy's, for which startTaskgate() waits. */
async function isHealthy(gateway) {
  for (const end = performance.now() + 10_000; performance.now() < end; await pause(5)) if ((await admin(gateway, '/health').catch(() => null))?.ok) return;
  throw new Error(`the admin port does not answer\n${gateway.child.errors}`);
}

async function listRows(gateway) {
  await isHealthy(gateway);
  for (const [name, query] of LISTS) {
    const first = await (await admin(gateway, `/api/v1/tasks?${query}`)).json();
    for (const [kind, cursor] of [['', ''], [', second page', `&cursor=${first.nextCursor}`]]) {
      const file = question([`GET /api/v1/tasks?${query}${cursor} HTTP/1.1`, `Authorization: Bearer ${ADMIN_TOKEN}`]);
      const seen = await said('load', gateway.adminPort, 1, smoke ? 20 : 500, 60_000, file);
      if (seen.failed) throw new Error(`${name}: ${seen.failed} answers failed`);
      report(`list: ${name}${kind}, p50`, seen.p50_us / 1000, 'ms', '< 5', (x) => x < 5);
    }
  }
}

async function pastRows(upstream) {
  let gateway = await startTaskgate(folder, upstream, { show: SHOW, limits: 'store_bytes: 64GiB, ' });
  await rpc(gateway, 'initialize', INITIALIZE);
  const done = await createTask(gateway);
  const result = rpc(gateway, 'tasks/result', { taskId: done });
  await decide(gateway, done, 'approve');
  await result;
  await createTask(gateway);
  const { entries } = await (await admin(gateway, '/api/v1/audit?limit=1000')).json();
  const { hash, ...last } = entries.at(-1);
  await stop(gateway.child, 'SIGTERM');
  const [before, behind] = JSON.stringify(last).split(`"sequence":${last.sequence}`);
  const names = [path.join(folder, 'before'), path.join(folder, 'behind')];
  fs.writeFileSync(names[0], `${before}"sequence":`);
  fs.writeFileSync(names[1], behind);
  const store = path.join(gateway.folder, 'taskgate.db');
  await said('past', store, 'tasks', 1, PAST);
  await said('past', store, 'tasks', 2, WAITING - 1);
  await said('past', store, 'audit', PAST, ...names);
  const began = performance.now();
  const told = execFileSync(path.join(root, 'build-bench/taskgate'), ['audit', 'verify', '--store', store], { encoding: 'utf8' });
  const rows = Number(/^(\d+) rows/.exec(told)[1]);
  if (rows < PAST) throw new Error(`the trail has ${rows} rows`);
  report('audit verify', rows / ((performance.now() - began) / 1000), 'rows/s', '>= 200000', (x) => x >= 200_000);
  gateway = await startTaskgate(folder, upstream, { show: SHOW, limits: 'store_bytes: 64GiB, ', store });
  await listRows(gateway);
  await stop(gateway.child);
}

try {
  const upstream = await startUpstream();
  for (const [name, part] of Object.entries({ creates, decisions, past: pastRows })) if (new RegExp(options.parts ?? '').test(name)) await part(upstream);
  console.log(`| Row | Value | Wanted | |\n|---|---|---|---|`);
  for (const [row, value, unit, wanted, holds] of results) console.log(`| ${row} | ${value >= 100 ? Math.round(value) : value.toFixed(2)}${unit && ` ${unit}`} | ${wanted} | ${wanted && (holds ? 'holds' : '**falls short**')} |`);
} finally {
  await stopAll();
  fs.rmSync(folder, { recursive: true, force: true });
}
