// Changes of a release: rules are in force without a restart, and a key that only a restart puts into force replaces the pod.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorOf } from '../../integration/lib/client.mjs';
import { until } from '../../integration/lib/wait.mjs';
import { GATEWAY, GOVERNANCE, scene } from './scene.mjs';

export function changeTests(stage) {
  const { skip } = stage;

  test('a changed rule is in force and restarts no pod; a key that needs a restart replaces it', { skip }, async (t) => {
    const { ns, values, client } = await scene(t, stage, 'changed');
    ns.helm(values);
    const before = await ns.ready(GATEWAY);
    const agent = await client(before);
    assert.equal(errorOf(await agent.call('tools/call', { name: 'read', arguments: {} })), undefined);

    const denied = { ...values, config: { ...values.config, governance: { ...GOVERNANCE, rules: [{ match: 'read', action: 'deny' }] } } };
    ns.helm(denied);
    const refusal = () => agent.call('tools/call', { name: 'read', arguments: {} }).then(errorOf);
    const error = await until(refusal, 'the changed rule to be in force', { deadline: 120_000, every: 500 });
    assert.match(error.message, /denied|policy/i);
    const same = await ns.ready(GATEWAY);
    assert.deepEqual([same.uid, same.restarts], [before.uid, 0]);

    ns.helm({ ...denied, config: { ...denied.config, workers: 2 } });
    const after = await ns.ready(GATEWAY, { other: before.uid });
    assert.deepEqual([after.name, after.restarts], [before.name, 0]);
    const next = await client(after);
    assert.ok(errorOf(await next.call('tools/call', { name: 'read', arguments: {} })));
  });
}
