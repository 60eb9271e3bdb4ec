// The component on somebody else's Deployment, as the example has it.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { inRoot, missing, temporaryFolder } from '../../deploy/lib/tools.mjs';
import { errorOf } from '../../integration/lib/client.mjs';
import { until } from '../../integration/lib/wait.mjs';
import { good } from '../lib/images.mjs';
import { IMAGE, SERVER_IMAGE } from '../lib/node.mjs';
import { scene } from './scene.mjs';

const CRM = 'app=crm';

/** The example, with the images of the node, and words that their server knows. */
function manifests(t) {
  const folder = temporaryFolder(t), mine = path.join(folder, 'mine');
  cpSync(inRoot('deploy/kubernetes'), folder, { recursive: true });
  mkdirSync(mine);
  const [server, tag] = SERVER_IMAGE.split(':');
  const words = [
    { op: 'replace', path: '/spec/template/spec/initContainers/1/args', value: ['--help'] },
    { op: 'replace', path: '/spec/template/spec/containers/0/args', value: ['--port', '3000'] },
  ];
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: ['../example'],
    images: [{ name: 'registry.example/taskgate', newName: IMAGE.image.repository, newTag: IMAGE.image.tag }, { name: 'registry.example/crm-mcp', newName: server, newTag: tag }],
    patches: [{ target: { kind: 'Deployment', name: 'crm' }, patch: JSON.stringify(words) }],
  };
  writeFileSync(path.join(mine, 'kustomization.yaml'), JSON.stringify(kustomization));
  const file = path.join(folder, 'built.yaml');
  writeFileSync(file, good('kustomize', ['build', mine]));
  return file;
}

export function componentTests(stage) {
  const { skip } = stage;

  test('the component: gateway before the server in the Deployment of others; deletions without a restart; changed rules, too', { skip: skip || missing('kustomize', 'the example is not built') }, async (t) => {
    const { ns, client, admin } = await scene(t, stage, 'component', { claim: 'taskgate-store', tokens: ['bob'] });
    ns.kubectl('apply', '--filename', manifests(t));
    let pod = await ns.ready(CRM);
    assert.deepEqual([pod.restarts, pod.containers.map(({ name }) => name)], [0, ['taskgate', 'prepare', 'crm']]);
    const agent = await client(pod);
    assert.match((await agent.result('tools/call', { name: 'get_time', arguments: {} })).content[0].text, /\d/);
    await agent.createTask('delete_database', { name: 'a' }, { ttl: 600_000 });
    const { id } = await admin(pod).pending();

    for (let i = 0; i < 3; i++) {
      const { codes, seconds } = await ns.deleted(pod);
      t.diagnostic(`gone in ${seconds.toFixed(1)} s`);
      assert.deepEqual(codes, { taskgate: 0, prepare: 0, crm: 0 });
      pod = await ns.ready(CRM, { other: pod.uid });
      assert.deepEqual([pod.restarts, (await admin(pod).task(id)).state], [0, 'pending']);
    }

    const { data } = await stage.node.get(`${ns.root}/configmaps/taskgate`);
    const file = path.join(temporaryFolder(t), 'changed.json');
    writeFileSync(file, JSON.stringify({ data: { 'config.yaml': data['config.yaml'].replace(/(match: "?get_\*"?\n\s+action: )forward|(action: )forward/, '$1$2deny') } }));
    ns.kubectl('patch', 'configmap', 'taskgate', '--patch-file', file);
    const later = await client(pod);
    const refused = () => later.call('tools/call', { name: 'get_time', arguments: {} }).then(errorOf);
    await until(refused, 'the changed rule to be in force', { deadline: 120_000, every: 500 });
    const same = await ns.ready(CRM);
    assert.deepEqual([same.uid, same.restarts], [pod.uid, 0]);
  });
}
