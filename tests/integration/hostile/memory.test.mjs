// One budget for all that strangers and agents make the gateway hold, on both ports: capacity counts, and each has a share.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { ADMIN_TOKEN } from '../lib/gateway.mjs';
import { sample } from '../lib/admin.mjs';
import { exchange, socketTo } from '../lib/http.mjs';
import { defer } from '../lib/lifetime.mjs';
import { until } from '../lib/wait.mjs';
import { call, head, hostileScene, lives } from './stage.mjs';

const MIB = 1024 * 1024;
/** The sanitizer keeps freed memory for a while, which would count. */
const ENV = { ASAN_OPTIONS: 'quarantine_size_mb=4:thread_local_quarantine_size_kb=64' };
const SMALL = { bodies_bytes: 16 * MIB, share_percent: 100 };
const stage = (t, { limits = SMALL, env, ...more } = {}) => hostileScene(t, { config: { limits }, env: { ...ENV, ...env }, ...more });

const resident = ({ gateway }) => Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${gateway.child.pid}/status`, 'utf8'))[1]) * 1024;

/** A socket that knows whether it is open; `bytes` are on their way. */
async function sent(t, port, bytes) {
  const socket = await socketTo(port);
  defer(t, () => socket.destroy());
  socket.isOpen = true;
  for (const event of ['close', 'end']) socket.once(event, () => (socket.isOpen = false));
  if (bytes !== undefined) socket.write(bytes);
  return socket;
}
const openOnes = (sockets) => sockets.filter((socket) => socket.isOpen && socket.received.replace('HTTP/1.1 100 Continue\r\n\r\n', '') === '').length;

/** Whether all that was sent has been taken, or the connection is closed. */
const taken = (sockets) => until(() => sockets.every((socket) => !socket.isOpen || socket.writableLength === 0), 'the bytes to be taken', { deadline: 30_000 });

test('a body after "100 Continue" counts as any other', async (t) => {
  const place = await stage(t);
  const client = await place.connect();
  const sockets = [];
  for (let i = 0; i < 20; i++) {
    const socket = await sent(t, place.gateway.port, head(['Expect: 100-continue', 'Content-Length: 4000000']));
    await until(() => socket.received.includes('100 Continue'), 'to be asked for the body');
    socket.write(Buffer.alloc(3_900_000, 'x'));
    sockets.push(socket);
  }
  await taken(sockets);
  await until(() => openOnes(sockets) <= 4, 'the bound to hold');
  assert.ok(openOnes(sockets) >= 1, 'it is not for nobody');
  await lives(place, client);
});

test('one byte of a next request keeps no buffer of the request before', async (t) => {
  const place = await stage(t, { limits: { bodies_bytes: 64 * MIB, share_percent: 100 } });
  const client = await place.connect();
  const body = call(`{"name":"read","arguments":{"x":"${'x'.repeat(3_900_000)}"}}`);
  const before = resident(place);
  for (let i = 0; i < 30; i++) {
    const socket = await sent(t, place.gateway.port, `${head([`Content-Length: ${body.length}`])}${body}P`);
    await until(() => /^HTTP\/1\.1 \d/.test(socket.received), 'the answer');
  }
  await lives(place, client);
  const grown = resident(place) - before;
  assert.ok(grown < 64 * MIB, `${grown} bytes more`);
});

test('a share is the most for one address, and those at another are not touched', async (t) => {
  const place = await stage(t, { limits: { body_bytes: 1_000_000, bodies_bytes: 16 * MIB, share_percent: 25 } });
  const client = await place.connect();
  const sockets = [];
  for (let i = 0; i < 12; i++) sockets.push(await sent(t, place.gateway.port, head(['Content-Length: 900000']) + 'x'.repeat(800_000)));
  await until(() => openOnes(sockets) <= 4, 'four MiB to be the share');
  // One more may be dropped between the two looks.
  await until(async () => sample(await place.admin.metrics(), 'thoughtgate_limits_reached_total', { limit: 'bodies_bytes' }) === 12 - openOnes(sockets), 'each to be counted');
  assert.ok(openOnes(sockets) >= 3, 'no more than needed');
  await lives(place, client);
});

const post = (lines) => `POST /api/v1/calls HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;

test('the operators\' port reads no long body of a stranger, and that of an operator', async (t) => {
  const place = await stage(t);
  const heads = [[], ['Authorization: Bearer made-up'], ['Cookie: taskgate_session=made-up'], ['Host: elsewhere']];
  for (const lines of heads) {
    const socket = await sent(t, place.gateway.adminPort, post([...lines, 'Content-Length: 4000000']) + 'x'.repeat(100_000));
    await until(() => !socket.isOpen || socket.received, `an answer to ${lines}`);
    assert.match(socket.received, /^HTTP\/1\.1 401 /);
  }
  const chunked = await sent(t, place.gateway.adminPort, `${post(['Transfer-Encoding: chunked'])}40000\r\n${'x'.repeat(0x20000)}`);
  await until(() => !chunked.isOpen || chunked.received, 'an answer');
  assert.match(chunked.received, /^HTTP\/1\.1 401 /);
  const good = await sent(t, place.gateway.adminPort, post([`Authorization: Bearer ${ADMIN_TOKEN}`, 'Content-Length: 300000']) + 'x'.repeat(100_000));
  await taken([good]);
  assert.equal((await place.admin.get('/health')).status, 200);
  good.write('x'.repeat(200_000));
  await until(() => good.received, 'an answer');
  assert.doesNotMatch(good.received, /^HTTP\/1\.1 401 /);
});

test('strangers that fill the operators\' port with silence shut out neither operators nor probes', async (t) => {
  const place = await stage(t);
  for (let i = 0; i < 1100; i += 100) await Promise.all(Array.from({ length: 100 }, () => sent(t, place.gateway.adminPort)));
  const get = (path) => exchange(place.gateway.adminUrl + path, { headers: place.admin.authorization(), deadline: 15_000 }); // silence lasts 30 s
  for (const path of ['/health', '/ready', '/api/v1/tasks']) assert.equal((await get(path)).status, 200, path);
});

test('silent connections make room on the agents\' port', async (t) => {
  const place = await stage(t, { limits: { ...SMALL, connections: 50 } });
  const sockets = await Promise.all(Array.from({ length: 50 }, () => sent(t, place.gateway.port)));
  const client = await place.connect();
  await lives(place, client);
  assert.ok(sockets.some((socket) => !socket.isOpen), 'one of them has made room');
});

test('a call that becomes a task has 16 KiB of headers at most, and so has one that lends credentials to it', async (t) => {
  const place = await stage(t);
  const client = await place.connect({ token: 'A' });
  const long = { 'x-long': 'x'.repeat(20_000) };
  const answer = await client.send('tools/call', { name: 'delete_user', arguments: {}, task: {} }, { headers: long });
  assert.equal(answer.message.error.code, -32600);
  assert.match(answer.message.error.data.details, /16 KiB/);
  const { taskId } = await client.createTask('delete_user');
  await place.admin.approve(taskId);
  await place.admin.inState(taskId, 'completed');
  await lives(place, client);
});

test('the headers of a waiting call are kept once', async (t) => {
  const place = await stage(t, { limits: { ...SMALL, pending_per_principal: 2000 } });
  const client = await place.connect({ token: 'A' });
  const create = () => client.send('tools/call', { name: 'delete_user', arguments: {}, task: {} }, { headers: { 'x-long': 'x'.repeat(14_000) } });
  for (let i = 0; i < 100; i++) await create();
  const before = resident(place);
  for (let i = 0; i < 1000; i++) assert.ok((await create()).message.result);
  const grown = resident(place) - before;
  assert.ok(grown < 1000 * 2.5 * 14_000, `${grown} bytes more`); // the sanitizer's rooms among them; kept twice they are 2.8
  await lives(place, client);
});

test('event streams that nobody reads hold no more than a share, the oldest ends', async (t) => {
  const place = await stage(t, { limits: { body_bytes: MIB, bodies_bytes: 32 * MIB, share_percent: 25 } });
  const client = await place.connect();
  const streams = [];
  for (let i = 0; i < 30; i++) {
    const socket = await sent(t, place.gateway.adminPort, `GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n\r\n`);
    await until(() => socket.received.includes(': open'), 'the stream');
    socket.pause();
    streams.push(socket);
  }
  const before = resident(place);
  // The sockets' buffers are the kernel's memory, the rest is the gateway's.
  for (let i = 0; i < 12; i++) await client.createTask('delete_user', { text: 'x'.repeat(900_000), i });
  const reached = async () => sample(await place.admin.metrics(), 'thoughtgate_limits_reached_total', { limit: 'bodies_bytes' });
  assert.ok((await reached()) > 0);
  const grown = resident(place) - before;
  assert.ok(grown < 100 * MIB, `${grown} bytes more`);
  await lives(place, client);
});
