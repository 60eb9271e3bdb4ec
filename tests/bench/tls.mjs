// TLS beside nginx: handshakes a second, requests a second, and the CPU time of each.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { SESSION, cpuSeconds, hasNginx, program, startNginx, startTaskgate, startUpstream, stopAll } from './subjects.mjs';

const { values: options } = parseArgs({ options: { smoke: { type: 'boolean' }, rounds: { type: 'string' }, milliseconds: { type: 'string' }, help: { type: 'boolean', short: 'h' } } });
if (options.help) {
  console.log(`Usage: tests/bench/tls [--rounds N] [--milliseconds N] [--smoke]

Measures nginx and taskgate, both with TLS 1.3 and one P-256 certificate, in N interleaved rounds (5)
on loopback, and prints medians. --milliseconds says how long each measurement takes (1500).
--smoke only shows, in seconds, that everything works: its numbers mean nothing.`);
  process.exit(0);
}
const rounds = Number(options.rounds ?? (options.smoke ? 1 : 5));
const MS = Number(options.milliseconds ?? (options.smoke ? 150 : 1500));
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-bench-'));

const certificate = { cert: path.join(folder, 'cert.pem'), key: path.join(folder, 'key.pem') };
execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-keyout', certificate.key, '-out', certificate.cert], { stdio: 'ignore' });

const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: { padding: 'p'.repeat(500) } } });
const file = path.join(folder, 'question');
fs.writeFileSync(file, `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: ${SESSION}\r\nMCP-Protocol-Version: 2025-11-25\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);

async function measure(subject, threads, kind) {
  const before = cpuSeconds(subject.pids);
  const child = spawn(program('secure'), [subject.port, threads, MS, file, kind].map(String), { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (more) => (text += more));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`secure ended with ${code}: ${text}`);
  const seen = JSON.parse(text);
  if (seen.failed || (kind === 'resumed') !== seen.resumed > 0) throw new Error(`${subject.name}, ${kind}: ${text}`);
  const cpu = cpuSeconds(subject.pids) - before;
  return { rate: seen.answers / seen.seconds, p50: seen.p50_us, p99: seen.p99_us, cpu: (cpu / seen.answers) * 100_000, per: seen.answers / cpu };
}

const rows = [
  ['full handshake and one call, 8 at a time', 8, 'handshakes'],
  ['resumed session and one call, 8 at a time', 8, 'resumed'],
  ['600 B call, 300 B reply, 16 connections', 16, 'requests'],
];
const results = new Map();
try {
  const upstream = await startUpstream();
  const subjects = [...(hasNginx() ? [await startNginx(folder, upstream, certificate)] : []), await startTaskgate(folder, upstream, { tls: certificate, name: 'taskgate' })];
  for (let round = 0; round < rounds; round++) {
    for (const [row, threads, kind] of rows) {
      for (const subject of subjects) {
        const key = `${row} | ${subject.name}`;
        results.set(key, [...(results.get(key) ?? []), await measure(subject, threads, kind)]);
      }
    }
  }
} finally {
  await stopAll();
  fs.rmSync(folder, { recursive: true, force: true });
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
console.log('| Row | Subject | a second (least–most) | p50 µs | p99 µs | CPU s / 100,000 | for one CPU second |\n|---|---|---|---|---|---|---|');
for (const [key, list] of results) {
  const of = (what) => median(list.map((one) => one[what]));
  const rates = list.map((one) => Math.round(one.rate));
  console.log(`| ${key} | ${Math.round(of('rate'))} (${Math.min(...rates)}–${Math.max(...rates)}) | ${of('p50')} | ${of('p99')} | ${of('cpu').toFixed(2)} | ${Math.round(of('per'))} |`);
}
