// Pods of the chart and the manifests on a real node: kubelet and containerd, of $KUBE_BIN or the PATH. One node serves all.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { nodePlace, startNode } from '../lib/node.mjs';
import { changeTests } from './changes.mjs';
import { componentTests } from './component.mjs';
import { fileTests } from './file.mjs';
import { memoryTests } from './memory.mjs';
import { replicaTests } from './replicas.mjs';
import { setTests } from './sets.mjs';
import { sidecarTests } from './sidecar.mjs';

const on = nodePlace();
const stage = { skip: on.why ?? false, node: undefined };

before(async () => {
  if (!stage.skip) stage.node = await startNode(on);
});
after(() => stage.node?.stop());

test(`pods run on: ${on.name}`, { skip: stage.skip }, async () => {
  const { items } = await stage.node.get('/api/v1/nodes');
  const [{ kubeletVersion, containerRuntimeVersion }] = items.map(({ status }) => status.nodeInfo);
  assert.equal(items.length, 1);
  assert.match(on.name, new RegExp(`^node, Kubernetes ${kubeletVersion}, ${containerRuntimeVersion.replace('://', ' ')}`));
});

for (const tests of [fileTests, sidecarTests, changeTests, componentTests, memoryTests, setTests, replicaTests]) tests(stage);
