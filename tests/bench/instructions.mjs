// The instructions of a forwarded call, and whether loops wait for each other's locks on its way.
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { once } from 'node:events';
import { parseArgs, promisify } from 'node:util';
import { SESSION, program, startTaskgate, startUpstream, stop, stopAll } from './subjects.mjs';

const run = promisify(execFile);
const { values: options } = parseArgs({ options: { binary: { type: 'string' }, calls: { type: 'string' }, help: { type: 'boolean', short: 'h' } } });
if (options.help) {
  console.log(`Usage: tests/bench/instructions [--binary TASKGATE] [--calls N]

Counts the instructions in user space of a forwarded call of 600 bytes with 1,000 rules, by Callgrind, over
N calls (3000) on 8 connections; and the futex system calls of a process with 1, 2 and 4 workers
during as many, by strace. Needs valgrind and strace.`);
  process.exit(0);
}
const CALLS = Number(options.calls ?? 3000);
const binary = options.binary && path.resolve(options.binary);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-instructions-'));

function question() {
  const params = { name: 'read', arguments: { padding: '' } };
  const body = () => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  params.arguments.padding = 'p'.repeat(600 - body().length);
  const file = path.join(folder, 'question');
  fs.writeFileSync(file, `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: ${SESSION}\r\nMCP-Protocol-Version: 2025-11-25\r\nContent-Type: application/json\r\nContent-Length: 600\r\n\r\n${body()}`);
  return file;
}

const load = (port, calls, file) => run(program('load'), [port, 8, calls, 120_000, file].map(String));

async function instructions(upstream, file) {
  const out = path.join(folder, 'callgrind.out');
  const under = ['valgrind', '--tool=callgrind', '--instr-atstart=no', `--callgrind-out-file=${out}`];
  const gateway = await startTaskgate(folder, upstream, { rules: 1000, binary, under });
  await load(gateway.port, 500, file); // connections, lists and counters are there
  await run('callgrind_control', ['-i', 'on', String(gateway.child.pid)]);
  await load(gateway.port, CALLS, file);
  await run('callgrind_control', ['-i', 'off', String(gateway.child.pid)]);
  await stop(gateway.child, 'SIGTERM');
  const { stdout } = await run('callgrind_annotate', ['--auto=no', out]);
  const total = Number(/^([\d,]+).*PROGRAM TOTALS/m.exec(stdout)[1].replaceAll(',', ''));
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

/** The threads that carry calls: the first of the process, and those that are named so. */
const loopsOf = (pid) => new Set(fs.readdirSync(`/proc/${pid}/task`).filter((id) => Number(id) === pid || fs.readFileSync(`/proc/${pid}/task/${id}/comm`, 'utf8').trim() === 'taskgate-loop'));

/**
 * With strace on all threads, which makes each of them wait more often, never less. A loop makes a futex call only
 * when it waits for a lock that another thread holds, or wakes one that waits; the store's thread and the one that
 * watches the configuration sleep by such calls.
 */
async function futexes(upstream, file, workers) {
  const gateway = await startTaskgate(folder, upstream, { rules: 1000, binary, workers });
  await load(gateway.port, 2000, file);
  const loops = loopsOf(gateway.child.pid);
  if (loops.size !== workers) throw new Error(`${workers} workers have ${loops.size} threads with a loop`);
  const out = path.join(folder, `futexes-${workers}`);
  const tracer = spawn('strace', ['-f', '-qq', '-e', 'trace=futex', '-o', out, '-p', String(gateway.child.pid)], { stdio: 'ignore' });
  await new Promise((resolve) => setTimeout(resolve, 500)); // strace does not say when it has attached
  await load(gateway.port, CALLS, file);
  tracer.kill('SIGINT');
  await once(tracer, 'close');
  const callers = fs.readFileSync(out, 'utf8').split('\n').filter((line) => line.includes('futex(')).map((line) => line.split(' ')[0]);
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
  for (const workers of [1, 2, 4]) await futexes(upstream, file, workers);
} finally {
  await stopAll();
  fs.rmSync(folder, { recursive: true, force: true });
}
