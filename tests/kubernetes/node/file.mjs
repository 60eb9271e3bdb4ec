// A store that is a file: one process at it, whatever becomes of its pod.
import assert from 'node:assert/strict';
import { chmodSync, statSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { inRoot, run, temporaryFolder } from '../../deploy/lib/tools.mjs';
import { until, signal } from '../../integration/lib/wait.mjs';
import { good } from '../lib/images.mjs';

import { GATEWAY, mcp, scene } from './scene.mjs';

const MODE = 0o777;

/** A call that waits for alice: the client, and the task. */
async function heldCall(place, pod) {
  const client = await place.client(pod);
  const { task } = await client.createTask('write', { text: 'a' }, { ttl: 600_000 });
  return { client, task: task.taskId };
}

/** The call's way to its end, at a later pod: alice approves, and the client gets the answer. */
async function ends({ admin, upstream }, { client, task }, pod) {
  assert.equal((await admin(pod).approve(task)).state, 'approved');
  client.url = mcp(pod);
  const { content } = await client.result('tasks/result', { taskId: task });
  assert.deepEqual([content[0].type, upstream.calls.length], ['text', 1]);
}

/** The pod that follows `before`: the same task and no restart. */
async function follows(place, before, task) {
  const pod = await place.ns.ready(GATEWAY, { other: before.uid });
  assert.deepEqual([pod.restarts, (await place.admin(pod).task(task)).state], [0, 'pending']);
  return pod;
}

/** The chart that had a Deployment, of the history. */
function oldChart(t) {
  const folder = temporaryFolder(t);
  good('sh', ['-c', `git -C "$1" archive ${LAST}^ deploy | tar -x -C "$2"`, 'sh', inRoot('.'), folder]);
  return path.join(folder, 'deploy/helm/taskgate');
}
const LAST = run('git', ['-C', inRoot('.'), 'log', '--diff-filter=DR', '--format=%h', '--', 'deploy/helm/taskgate/templates/deployment.yaml']).stdout.trim();
oldChart.skip = LAST ? false : 'the history, which has the chart of 0.1.0, is not here';

/** The hashes of the audit trail, each of which covers those before it. */
async function hashes(admin) {
  const { status, json } = await admin.get('/api/v1/audit?after=0&limit=1000');
  assert.equal(status, 200);
  return json.entries.map(({ hash }) => hash);
}

export function fileTests(stage) {
  const { skip } = stage;

  test('a pod is deleted three times and evicted once: no restart, the task is there each time', { skip }, async (t) => {
    const place = await scene(t, stage, 'deleted');
    place.ns.helm(place.values);
    let pod = await place.ns.ready(GATEWAY);
    assert.equal(pod.restarts, 0);
    const call = await heldCall(place, pod);
    for (let i = 0; i < 3; i++) {
      place.ns.kubectl('delete', 'pod', pod.name, '--wait=false');
      pod = await follows(place, pod, call.task);
    }
    await stage.node.make(`${place.ns.root}/pods/${pod.name}/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod.name } });
    pod = await follows(place, pod, call.task);
    await ends(place, call, pod);
  });

  test('a volume whose key was made 0660, by hand or by each mount, starts', { skip }, async (t) => {
    const place = await scene(t, stage, 'key');
    place.ns.helm({ ...place.values, podSecurityContext: { fsGroupChangePolicy: 'Always' } });
    const key = path.join(place.volume, 'state.key');
    let pod = await place.ns.ready(GATEWAY);
    assert.equal(statSync(key).mode & MODE, 0o600);
    for (const byHand of [false, true]) {
      if (byHand) chmodSync(key, 0o660);
      place.ns.kubectl('delete', 'pod', pod.name, '--wait=false');
      pod = await place.ns.ready(GATEWAY, { other: pod.uid });
      const lines = place.ns.kubectl('logs', pod.name).split('\n').filter((line) => line.includes('The state key was made private again'));
      assert.deepEqual([pod.restarts, lines.length, statSync(key).mode & MODE], [0, 1, 0o600]);
    }
  });

  test('an upgrade from the Deployment of 0.1.0: the pod waits for the file, the task and the trail are there', { skip: skip || oldChart.skip }, async (t) => {
    const place = await scene(t, stage, 'upgraded');
    const chart = oldChart(t);
    place.ns.helm(place.values, { chart });
    const pod = await place.ns.ready(GATEWAY);
    assert.equal(place.ns.kubectl('get', 'deployments,statefulsets', '--output=name').trim(), 'deployment.apps/gate');
    const call = await heldCall(place, pod);
    const trail = await hashes(place.admin(pod));
    // A call under way holds the old process at the file until it is answered.
    const held = signal();
    place.upstream.handlers['tools/call'] = async ({ reply }) => (await held.promise, reply.result({ content: [{ type: 'text', text: 'late' }] }));
    const open = call.client.result('tools/call', { name: 'read', arguments: {} });
    await place.upstream.received('tools/call');
    place.ns.helm(place.values);
    const waits = () => place.ns.kubectl('logs', 'gate-0', '--ignore-errors').includes('is in use by another taskgate process');
    await until(waits, () => place.ns.events(), { deadline: 60_000, every: 500 });
    held.fire();
    assert.equal((await open).content[0].text, 'late');
    delete place.upstream.handlers['tools/call'];
    place.upstream.requests.length = 0;
    const next = await follows(place, pod, call.task);
    assert.equal(next.name, 'gate-0');
    assert.equal(place.ns.kubectl('get', 'deployments,statefulsets', '--output=name').trim(), 'statefulset.apps/gate');
    const kept = await hashes(place.admin(next));
    assert.ok(trail.length > 0);
    assert.deepEqual(kept.slice(0, trail.length), trail);
    await ends(place, call, next);
  });
}
