// A gateway in a small control group among 75 strangers who send large bodies: it lives, and honest calls are answered.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import net from 'node:net';
import { sample } from '../integration/lib/admin.mjs';
import { cgroup, cgroupMissing } from '../integration/lib/cgroup.mjs';
import { defer } from '../integration/lib/lifetime.mjs';
import { scene } from '../integration/lib/scene.mjs';
import { tool } from '../integration/lib/upstream.mjs';

const MIB = 1024 * 1024;
const STRANGERS = 75;
const CALLS = 100;
const skip = cgroupMissing();

const HEAD = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\n\r\n';
const UNFINISHED = Buffer.concat([Buffer.from(HEAD), Buffer.alloc(3_900_000, 'x')]);

/** Each has an address, so that none has a share that bounds the others; one who is turned away comes again. */
function attack(t, port) {
  const sockets = new Set();
  let isOver = false;
  const open = (number) => {
    const socket = net.connect({ port, host: '127.0.0.1', localAddress: `127.0.1.${number}` });
    sockets.add(socket);
    socket.on('error', () => {});
    socket.resume();
    socket.write(UNFINISHED);
    socket.on('close', () => {
      sockets.delete(socket);
      if (!isOver) setTimeout(() => isOver || open(number), 200).unref();
    });
  };
  for (let i = 1; i <= STRANGERS; i++) open(i);
  defer(t, () => ((isOver = true), sockets.forEach((socket) => socket.destroy())));
}

for (const mebibytes of [64, 128, 256]) {
  test(`a process of ${mebibytes} MiB lives among ${STRANGERS} strangers who send large bodies`, { skip }, async (t) => {
    const group = cgroup(t, mebibytes * MIB);
    const place = await scene(t, { upstream: { tools: [tool('read')] }, wrapper: group.wrapper });
    const client = await place.connect({ token: 'honest' });
    attack(t, place.gateway.port);
    const dropped = async () => sample(await place.admin.metrics(), 'thoughtgate_limits_reached_total', { limit: 'bodies_bytes' });
    await place.gateway.child.ready(async () => (await dropped()) >= STRANGERS, 'reaching the bound', 60_000);
    for (let i = 0; i < CALLS; i++) assert.ok(await client.result('tools/call', { name: 'read', arguments: { i } }));
    assert.equal((await place.admin.get('/health')).status, 200);
    assert.deepEqual([place.gateway.child.exit, group.killed()], [null, 0], place.gateway.child.output());
    t.diagnostic(`at most ${(group.peak() / MIB).toFixed(0)} MiB; ${await dropped()} bodies dropped`);
  });
}
