// A hostile stranger, a hostile agent, a hostile server and a dead notifier at once: an honest agent and an operator must notice nothing.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RawClient } from '../integration/lib/client.mjs';
import { startGateway, workflow } from '../integration/lib/gateway.mjs';
import { SECRET } from '../integration/lib/receiver.mjs';
import { startUpstream, tool } from '../integration/lib/upstream.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const MIB = 1024 * 1024;
const MOST_BYTES = 256 * MIB;
/** The honest call's p99 may be three times that of the quiet part of the run. If that is less, it may be this
 * much: a busy machine takes the processor away for as long. */
const MOST_TIMES = 3;
const LEAST_MS = 150;

/** Accepts connections, and says nothing. */
async function deadNotifier(t) {
  const sockets = new Set();
  const server = net.createServer((socket) => sockets.add(socket.on('error', () => {})));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => (sockets.forEach((socket) => socket.destroy()), server.close()));
  return `http://127.0.0.1:${server.address().port}/`;
}

/** The attackers' process, with its server, which waits for the gateway's ports. */
async function startAttackers(t) {
  const child = fork(path.join(here, 'attackers.mjs'));
  t.after(() => child.kill('SIGKILL'));
  const [url] = await once(child, 'message');
  return { child, url };
}

async function setTheStage(t) {
  const attackers = await startAttackers(t);
  const upstream = await startUpstream(t, { tools: [tool('approved'), tool('read')] });
  const gateway = await startGateway(t, {
    upstream: { honest: upstream.url, hostile: attackers.url },
    rules: [['delete_*', 'approve'], ['approved', 'approve']],
    approval: workflow('10m'),
    config: { limits: { bodies_bytes: 96 * MIB }, notify: [{ url: await deadNotifier(t), secret_env: 'NOTIFY_SECRET' }] },
    env: { NOTIFY_SECRET: SECRET, THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '5', THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '5' },
  });
  const honest = new RawClient(`${gateway.origin}/honest/mcp`, { token: 'honest' });
  t.after(() => honest.close());
  await honest.connect();
  await honest.result('tools/list');
  return { gateway, upstream, honest, attackers: attackers.child };
}

const residentOf = ({ gateway }) => Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${gateway.child.pid}/status`, 'utf8'))[1]) * 1024;
const p99 = (times) => times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1];

/** The honest agent for so long: each call must succeed. Returns how long they took. */
async function honestCalls({ honest }, until_ms) {
  const times = [];
  while (performance.now() < until_ms) {
    const began = performance.now();
    await honest.result('tools/call', { name: 'read', arguments: {} });
    times.push(performance.now() - began);
    await pause(20);
  }
  return times;
}

/** Tasks of the honest agent, decided by an operator, who is always answered. */
async function approvals({ honest, gateway, upstream }, until_ms) {
  let done = 0;
  for (; performance.now() < until_ms; done++) {
    for (const place of ['/health', '/ready', '/api/v1/tasks?limit=5']) assert.equal((await gateway.admin.get(place)).status, 200, place);
    const { taskId } = await honest.createTask('approved');
    await gateway.admin.approve(taskId);
    await gateway.admin.inState(taskId, 'completed');
    upstream.requests = [];
    await pause(500);
  }
  return done;
}

async function memory(place, until_ms) {
  const samples = [];
  while (performance.now() < until_ms) {
    samples.push(residentOf(place));
    await pause(500);
  }
  return samples;
}

function checkFlat(samples) {
  const most = (from, to) => Math.max(...samples.slice(Math.floor(samples.length * from), Math.floor(samples.length * to)));
  const [middle, end] = [most(0.25, 0.6), most(0.6, 1)];
  assert.ok(Math.max(...samples) <= MOST_BYTES, `${(Math.max(...samples) / MIB).toFixed(0)} MiB are more than ${MOST_BYTES / MIB}`);
  assert.ok(end <= middle * 1.15 + 8 * MIB, `memory grew from ${(middle / MIB).toFixed(0)} to ${(end / MIB).toFixed(0)} MiB`);
}

export async function hostileSoak(t, seconds) {
  const place = await setTheStage(t);
  const idle = p99(await honestCalls(place, performance.now() + Math.max(5, seconds / 6) * 1000));
  const { attackers, gateway } = place;
  attackers.send({ port: gateway.port, adminPort: gateway.adminPort, address: '127.0.0.2' });
  const end = performance.now() + seconds * 1000;
  const [times, decided, samples] = await Promise.all([honestCalls(place, end), approvals(place, end), memory(place, end)]);
  assert.equal(attackers.exitCode, null, 'the attackers are still there');
  const busy = p99(times);
  console.log(`honest: ${times.length} calls, p99 ${idle.toFixed(1)} ms in quiet and ${busy.toFixed(1)} ms under attack; ${decided} decided; memory ${(Math.max(...samples) / MIB).toFixed(0)} MiB at most`);
  checkFlat(samples);
  assert.ok(busy <= Math.max(MOST_TIMES * idle, LEAST_MS), `p99 went from ${idle.toFixed(1)} to ${busy.toFixed(1)} ms`);
  assert.ok(decided > 0);
  attackers.kill('SIGKILL');
}
