// The instructions and system calls of a forwarded call, and whether loops wait for each other's locks on its way.
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import crypto from 'node:crypto';
import http from 'node:http';
import path from 'node:path';
import { once } from 'node:events';
import { parseArgs, promisify } from 'node:util';
import { ADMIN_TOKEN, SESSION, hasNginx, program, startNginx, startTaskgate, startUpstream, stop, stopAll } from './subjects.mjs';

const run = promisify(execFile);
const { values: options } = parseArgs({ options: { binary: { type: 'string' }, calls: { type: 'string' }, rules: { type: 'string' }, help: { type: 'boolean', short: 'h' } } });
if (options.help) {
  console.log(`Usage: tests/bench/instructions [--binary TASKGATE] [--calls N] [--rules N]

Counts the instructions in user space of a forwarded call of 600 bytes with
N rules (1000), by Callgrind, over N calls (3000) on 8 connections, also while
another caller is blocked, with a verified token that is known, of a modern
client, and with spans that a collector takes; those of a denied call and of
lists of 3 and 1,000 tools; its system calls on 64 connections, beside nginx's where
that is installed; and the futex system calls of a process with 1, 2 and 4
workers during as many, by strace. Needs valgrind and strace.`);
  process.exit(0);
}
const CALLS = Number(options.calls ?? 3000);
const RULES = Number(options.rules ?? 1000);
const binary = options.binary && path.resolve(options.binary);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-instructions-'));

const MODERN = '2026-07-28';
const META = { 'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' }, 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };

/** A modern request has its envelope within the 600 bytes, and the headers that mirror its body in place of the session. */
function question(authorization = '', isModern = false, more = {}, name = 'read') {
  const params = { name, arguments: { padding: '' }, ...(isModern ? { _meta: { ...META, ...more } } : {}) };
  const own = isModern ? `MCP-Protocol-Version: ${MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: ${name}` : `Mcp-Session-Id: ${SESSION}\r\nMCP-Protocol-Version: 2025-11-25`;
  const body = () => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  params.arguments.padding = 'p'.repeat(600 - body().length);
  const file = path.join(folder, `question${authorization.length}${isModern ? 'm' : ''}${Object.keys(more).join('')}${name}`);
  fs.writeFileSync(file, `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n${own}\r\n${authorization && `Authorization: ${authorization}\r\n`}Content-Type: application/json\r\nContent-Length: 600\r\n\r\n${body()}`);
  return file;
}

function listQuestion(fresh) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: fresh ? { _meta: { fresh } } : {} });
  const file = path.join(folder, `list${fresh}`);
  fs.writeFileSync(file, `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: ${SESSION}\r\nMCP-Protocol-Version: 2025-11-25\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  return file;
}

const load = (port, calls, file, connections = 8, ...how) => run(program('load'), [port, connections, calls, 120_000, file, ...how].map(String));

/** Opens the session that the calls are in, as the holder of the token. */
async function openSession(gateway, authorization) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const response = await fetch(`http://127.0.0.1:${gateway.port}/mcp`, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }) });
  if (response.status !== 200) throw new Error(`initialize: HTTP ${response.status} ${await response.text()}`);
  await response.text();
}

/** The profile of `count` calls, and their instructions. */
async function profile(upstream, file, { auth, authorization, more, how = [], warm = 500, count = CALLS, connections = 8, prepare = async () => {} } = {}) {
  const out = path.join(folder, `callgrind.out.${auth ? 'auth' : ''}${authorization ? 'token' : ''}`);
  const under = ['valgrind', '--tool=callgrind', '--instr-atstart=no', `--callgrind-out-file=${out}`];
  const gateway = await startTaskgate(folder, upstream, { rules: RULES, binary, under, auth, more });
  if (authorization) await openSession(gateway, authorization);
  await prepare(gateway);
  if (warm) await load(gateway.port, warm, file, connections, ...how); // connections, lists and counters are there
  await run('callgrind_control', ['-i', 'on', String(gateway.child.pid)]);
  await load(gateway.port, count, file, connections, ...how);
  await run('callgrind_control', ['-i', 'off', String(gateway.child.pid)]);
  await stop(gateway.child, 'SIGTERM');
  const { stdout } = await run('callgrind_annotate', ['--auto=no', out]);
  return { out, total: Number(/^([\d,]+).*PROGRAM TOTALS/m.exec(stdout)[1].replaceAll(',', '')) };
}

async function instructions(upstream, file) {
  const { out, total } = await profile(upstream, file);
  console.log(`| instructions of a forwarded call | ${Math.round(total / CALLS)} |`);
  // The lines of libraries name the library; a function inlined into ours does not.
  const { stdout: all } = await run('callgrind_annotate', ['--auto=no', '--threshold=100', out], { maxBuffer: 1 << 26 });
  let ours = total;
  for (const library of ['libh2o-evloop', 'libc']) {
    const lines = all.matchAll(new RegExp(`^ *([\\d,]+) \\([^\\n]*\\[[^\\]\\n]*/${library}\\.so[^\\]\\n]*\\]$`, 'gm'));
    const sum = [...lines].reduce((more, [, count]) => more + Number(count.replaceAll(',', '')), 0);
    ours -= sum;
    console.log(`| of them in ${library} | ${Math.round(sum / CALLS)} |`);
  }
  console.log(`| of them in taskgate | ${Math.round(ours / CALLS)} |`);
}

/** Lists with the same bytes as before, with new bytes for known tools, and the first of a process. */
async function lists() {
  for (const tools of [3, 1000]) {
    const upstream = await startUpstream(tools);
    for (const [name, fresh, warm, count] of [['the same bytes', false, 20, 100], ['new bytes', true, 20, 100], ['the first', false, 0, 1]]) {
      const { total } = await profile(upstream, listQuestion(fresh), { warm, count, connections: 1 });
      console.log(`| thousands of instructions of a tools/list of ${tools}, ${name} | ${Math.round(total / count / 1e3)} |`);
    }
  }
}

/** An issuer with one key, and a token of it. */
async function startIssuer() {
  const { privateKey, publicKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const server = http.createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'bench', use: 'sig' }] }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: url, aud: 'bench', sub: 'agent', exp: now + 3600, iat: now, groups: ['bench'], scope: 'mcp:use' };
  const input = `${encode({ alg: 'ES256', kid: 'bench', typ: 'at+jwt' })}.${encode(claims)}`;
  const signature = crypto.sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url');
  return { server, auth: { issuer: url, jwks_url: `${url}/keys`, audience: 'bench', scopes: ['mcp:use'] }, authorization: `Bearer ${input}.${signature}` };
}

/** The same request with a token: where it is passed on, and where it is verified (and known). */
async function withToken(upstream) {
  const { server, auth, authorization } = await startIssuer();
  const file = question(authorization);
  const plain = await profile(upstream, file, { authorization });
  const verified = await profile(upstream, file, { auth, authorization });
  console.log(`| instructions with a token, which is passed on | ${Math.round(plain.total / CALLS)} |`);
  console.log(`| with \`auth\`, and the token known | ${Math.round(verified.total / CALLS)} |`);
  console.log(`| more | ${((100 * verified.total) / plain.total - 100).toFixed(1)} % |`);
  server.close();
  return verified.out;
}

/** Two spans for each call, and the thread that encodes and sends them, which are counted as well. */
async function withTelemetry(upstream, file) {
  const collector = http.createServer((request, response) => request.resume().on('end', () => response.end()));
  await new Promise((resolve) => collector.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${collector.address().port}`;
  for (const [name, rate] of [['spans of every call', 1], ['a sampler that takes none', 0]]) {
    const telemetry = { enabled: true, otlp: { endpoint }, sampling: { success_sample_rate: rate }, batch: { max_queue_size: 65536 } };
    const { total } = await profile(upstream, file, { more: `telemetry: ${JSON.stringify(telemetry)}\n` });
    console.log(`| with telemetry, ${name} | ${Math.round(total / CALLS)} |`);
  }
  collector.closeAllConnections();
  collector.close();
}

async function answerOf(port, target, authorization, body) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization };
  const response = await fetch(`http://127.0.0.1:${port}${target}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${target}: HTTP ${response.status} ${text}`);
  return JSON.parse(text);
}

/** While another caller is blocked, and once that block is lifted. */
async function withBlock(upstream, file) {
  const admin = `Bearer ${ADMIN_TOKEN}`;
  const block = async (gateway) => {
    const params = { name: 'delete_it', arguments: {}, task: { ttl: 3_600_000 } };
    const { result } = await answerOf(gateway.port, '/mcp', 'Bearer other', { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    return answerOf(gateway.adminPort, '/api/v1/blocks', admin, { task: result.task.taskId, for: '1h', reason: 'bench' });
  };
  const lift = async (gateway) => answerOf(gateway.adminPort, `/api/v1/blocks/${(await block(gateway)).id}/lift`, admin, {});
  for (const [name, prepare] of [['while another caller is blocked', block], ['once that block is lifted', lift]]) {
    const { total } = await profile(upstream, file, { prepare });
    console.log(`| instructions of a forwarded call ${name} | ${Math.round(total / CALLS)} |`);
  }
}

/** Runs `calls` with strace on all threads of a process; answers what strace has written. */
async function traced(subject, file, connections, calls, args) {
  const out = path.join(folder, `strace-${subject.port}`);
  const tracer = spawn('strace', ['-f', '-qq', ...args, '-o', out, '-p', String(subject.pids[0])], { stdio: 'ignore' });
  await new Promise((resolve) => setTimeout(resolve, 500)); // strace does not say when it has attached
  await load(subject.port, calls, file, connections);
  tracer.kill('SIGINT');
  await once(tracer, 'close');
  return fs.readFileSync(out, 'utf8');
}

/** Those that open connections are among them. */
async function systemCalls(upstream, file) {
  const calls = CALLS * 4;
  const subjects = [await startTaskgate(folder, upstream, { rules: RULES, binary, name: 'taskgate' })];
  if (hasNginx()) subjects.push(await startNginx(folder, upstream));
  for (const subject of subjects) {
    await load(subject.port, 2000, file, 64);
    const rows = (await traced(subject, file, 64, calls, ['-c'])).matchAll(/^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$/gm);
    const counts = [...rows].filter(([, , name]) => name !== 'total').map(([, count, name]) => [name, Number(count) / calls]);
    const sum = counts.reduce((more, [, count]) => more + count, 0);
    const most = counts.filter(([, count]) => count >= 0.02).map(([name, count]) => `${name} ${count.toFixed(2)}`);
    console.log(`| system calls of a forwarded call, 64 connections, ${subject.name} | ${sum.toFixed(2)}: ${most.join(', ')} |`);
    await stop(subject.child, 'SIGTERM');
  }
}

/** The threads that carry calls: the first of the process, and those that are named so. */
const loopsOf = (pid) => new Set(fs.readdirSync(`/proc/${pid}/task`).filter((id) => Number(id) === pid || fs.readFileSync(`/proc/${pid}/task/${id}/comm`, 'utf8').trim() === 'taskgate-loop'));

/**
 * With strace on all threads, which makes each of them wait more often, never less. A loop makes a futex call only
 * when it waits for a lock that another thread holds, or wakes one that waits; the store's thread and the one that
 * watches the configuration sleep by such calls.
 */
async function futexes(upstream, file, workers) {
  const gateway = await startTaskgate(folder, upstream, { rules: RULES, binary, workers });
  await load(gateway.port, 2000, file);
  const loops = loopsOf(gateway.child.pid);
  if (loops.size !== workers) throw new Error(`${workers} workers have ${loops.size} threads with a loop`);
  const lines = (await traced(gateway, file, 8, CALLS, ['-e', 'trace=futex'])).split('\n');
  const callers = lines.filter((line) => line.includes('futex(')).map((line) => line.split(' ')[0]);
  const ofLoops = callers.filter((id) => loops.has(id)).length;
  console.log(`| futex system calls of loops during ${CALLS} forwarded calls, workers: ${workers} | ${ofLoops} |`);
  console.log(`| of other threads meanwhile | ${callers.length - ofLoops} |`);
  await stop(gateway.child, 'SIGTERM');
}

try {
  const upstream = await startUpstream();
  const file = question();
  console.log('| | |\n|---|---|');
  await instructions(upstream, file);
  await withBlock(upstream, file);
  const modern = await profile(upstream, question('', true));
  console.log(`| instructions of a forwarded modern call | ${Math.round(modern.total / CALLS)} |`);
  const changing = await profile(upstream, question('', true, { progressToken: '########' })); // load numbers them
  console.log(`| the same with a progress token that changes | ${Math.round(changing.total / CALLS)} |`);
  const denied = await profile(upstream, question('', false, {}, 'service_1_x_admin'), { how: ['refused'] });
  console.log(`| instructions of a denied call | ${Math.round(denied.total / CALLS)} |`);
  await withTelemetry(upstream, file);
  await withToken(upstream);
  await lists();
  await systemCalls(upstream, file);
  for (const workers of [1, 2, 4]) await futexes(upstream, file, workers);
} finally {
  await stopAll();
  fs.rmSync(folder, { recursive: true, force: true });
}
