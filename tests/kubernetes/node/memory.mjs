// A pod of little memory among 75 strangers who send large bodies, each with an address of their own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sample } from '../../integration/lib/admin.mjs';
import { attack } from '../../integration/lib/strangers.mjs';
import { until } from '../../integration/lib/wait.mjs';
import { GATEWAY, scene } from './scene.mjs';

const STRANGERS = 75;
const CALLS = 100;

export function memoryTests(stage) {
  const { skip } = stage;

  for (const mebibytes of [128, 256]) {
    test(`a pod of ${mebibytes}Mi lives among ${STRANGERS} strangers who send large bodies`, { skip }, async (t) => {
      const { ns, values, client, admin } = await scene(t, stage, `memory-${mebibytes}`);
      ns.helm({ ...values, gateway: { resources: { limits: { memory: `${mebibytes}Mi` } } } });
      const before = await ns.ready(GATEWAY);
      const honest = await client(before);
      attack(t, { host: before.address, port: 7467, addresses: stage.node.strangers(STRANGERS) });
      const dropped = async () => sample(await admin(before).metrics(), 'thoughtgate_limits_reached_total', { limit: 'bodies_bytes' });
      await until(async () => (await dropped()) >= STRANGERS, () => ns.events(), { deadline: 120_000, every: 500 });
      for (let i = 0; i < CALLS; i++) assert.ok(await honest.result('tools/call', { name: 'read', arguments: { i } }));
      const after = await ns.ready(GATEWAY);
      assert.deepEqual([after.uid, after.restarts, after.containers[0].lastState], [before.uid, 0, {}]);
      t.diagnostic(`${await dropped()} bodies dropped; at most ${stage.node.memoryPeak(after)} MiB`);
    });
  }
}
