// A gateway in a small control group among 75 strangers who send large bodies: it lives, and honest calls are answered.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sample } from '../integration/lib/admin.mjs';
import { cgroup, cgroupMissing } from '../integration/lib/cgroup.mjs';
import { scene } from '../integration/lib/scene.mjs';
import { attack } from '../integration/lib/strangers.mjs';
import { tool } from '../integration/lib/upstream.mjs';

const MIB = 1024 * 1024;
const STRANGERS = 75;
const CALLS = 100;
const skip = cgroupMissing();

for (const mebibytes of [64, 128, 256]) {
  test(`a process of ${mebibytes} MiB lives among ${STRANGERS} strangers who send large bodies`, { skip }, async (t) => {
    const group = cgroup(t, mebibytes * MIB);
    const place = await scene(t, { upstream: { tools: [tool('read')] }, wrapper: group.wrapper });
    const client = await place.connect({ token: 'honest' });
    attack(t, { port: place.gateway.port, addresses: Array.from({ length: STRANGERS }, (_, i) => `127.0.1.${i + 1}`) });
    const dropped = async () => sample(await place.admin.metrics(), 'thoughtgate_limits_reached_total', { limit: 'bodies_bytes' });
    await place.gateway.child.ready(async () => (await dropped()) >= STRANGERS, 'reaching the bound', 60_000);
    for (let i = 0; i < CALLS; i++) assert.ok(await client.result('tools/call', { name: 'read', arguments: { i } }));
    assert.equal((await place.admin.get('/health')).status, 200);
    assert.deepEqual([place.gateway.child.exit, group.killed()], [null, 0], place.gateway.child.output());
    t.diagnostic(`at most ${(group.peak() / MIB).toFixed(0)} MiB; ${await dropped()} bodies dropped`);
  });
}
