// A sidecar stops when it is idle: the server gets SIGTERM once no call is under way, and the gateway ends after it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SERVER_IMAGE } from '../lib/node.mjs';
import { GATEWAY, scene } from './scene.mjs';

const LISTEN = ['--port', '3000'];
const DRAIN_S = 30, STOP_S = 10;
/** An idle pod's end in seconds: 4 on two busy cores. One of them passes without a request; the kubelet has the rest. */
const SOON_S = 10;

/** A pod of the chart's mode sidecar that is ready. */
async function sidecar(t, stage, name, server) {
  const place = await scene(t, stage, name);
  const governance = { defaults: { action: 'forward' } };
  const config = { sources: [{ id: 'main', kind: 'mcp', url: 'http://127.0.0.1:3000/mcp' }], governance };
  place.ns.helm({ ...place.values, mode: 'sidecar', config, server: { image: SERVER_IMAGE, drainSeconds: DRAIN_S, stopSeconds: STOP_S, ...server } });
  const pod = await place.ns.ready(GATEWAY);
  assert.equal(pod.restarts, 0);
  return { ...place, pod };
}

export function sidecarTests(stage) {
  const { skip } = stage;
  const STUBBORN = ['/stubborn', '/server', ...LISTEN];

  for (const [name, what, server] of [
    ['idle', 'a server that ends at SIGTERM', { args: LISTEN }],
    ['shared', 'a server that ignores it as process 1, with shareProcessNamespace', { command: STUBBORN, shareProcessNamespace: true }],
  ]) {
    test(`an idle sidecar with ${what}: the pod is gone in seconds`, { skip }, async (t) => {
      const { ns, pod } = await sidecar(t, stage, name, server);
      const { seconds, codes } = await ns.deleted(pod);
      t.diagnostic(`${seconds.toFixed(1)} s`);
      assert.equal(codes.taskgate, 0);
      assert.ok(seconds < SOON_S, `${seconds} s`);
    });
  }

  test('an idle sidecar with a server that ignores SIGTERM: gone within the grace period, and the gateway ends by itself in the 2 s that are left', { skip }, async (t) => {
    const { ns, pod } = await sidecar(t, stage, 'stubborn', { command: STUBBORN });
    const { seconds, codes } = await ns.deleted(pod);
    t.diagnostic(`${seconds.toFixed(1)} s`);
    assert.deepEqual(codes, { taskgate: 0, server: 137 });
    assert.ok(seconds < DRAIN_S + STOP_S + 5 + SOON_S, `${seconds} s`);
  });

  test('a call of 20 s lives through the end of the pod', { skip }, async (t) => {
    const { ns, pod, client } = await sidecar(t, stage, 'slow', { args: LISTEN });
    const agent = await client(pod);
    const stream = await agent.stream('tools/call', { name: 'slow', arguments: { seconds: 20 }, _meta: { progressToken: 'slow' } });
    await stream.message(({ method }) => method === 'notifications/progress', 'the server to begin');
    const end = ns.deleted(pod);
    const answer = await stream.message(({ id }) => id === stream.id, 'the answer', 60_000);
    assert.equal(answer.result.content[0].text, 'Waited 20 s.');
    const { codes } = await end;
    assert.deepEqual(codes, { taskgate: 0, server: 0 });
  });
}
