// The plain manifests and the component: Kubernetes, kustomize and the gateway take them.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gateway, inRoot, missing, read, run, temporaryFolder, withoutGateway } from '../deploy/lib/tools.mjs';
import { manifestReader, objectsOf } from './lib/objects.mjs';

const SIDECAR = inRoot('deploy/kubernetes/sidecar.yaml');
const skip = manifestReader().why || false;

test('sidecar.yaml: every field is one of Kubernetes; a misspelt one is found', { skip }, (t) => {
  assert.deepEqual([...objectsOf(SIDECAR).keys()], ['ConfigMap taskgate', 'StatefulSet mcp-server', 'PersistentVolumeClaim taskgate-store', 'Service mcp-server', 'NetworkPolicy mcp-server']);
  const wrong = path.join(temporaryFolder(t), 'wrong.yaml');
  writeFileSync(wrong, read('deploy/kubernetes/sidecar.yaml').replace('restartPolicy: Always', 'restartPolcy: Always'));
  assert.throws(() => objectsOf(wrong), /restartPolcy/);
});

test('sidecar.yaml: a native sidecar, one token a person, bounds for both, an admin port that no Service has', { skip }, () => {
  const objects = objectsOf(SIDECAR);
  const pod = objects.get('StatefulSet mcp-server').spec.template.spec;
  const [sidecar, server] = [...pod.initContainers, ...pod.containers];
  assert.deepEqual([pod.initContainers.length, pod.containers.length, sidecar.restartPolicy], [1, 1, 'Always']);
  assert.deepEqual(server.lifecycle.preStop.httpGet, { path: '/health/idle?wait=30', port: 7469 });
  assert.equal(pod.terminationGracePeriodSeconds, 30 + 10 + 5);
  for (const { resources } of [sidecar, server]) assert.ok(resources.limits.memory && resources.requests.cpu && resources.requests.memory);
  const keys = sidecar.env.flatMap(({ valueFrom }) => (valueFrom ? [valueFrom.secretKeyRef.key] : []));
  assert.deepEqual(keys, ['alice', 'bob']);
  const config = objects.get('ConfigMap taskgate').data['config.yaml'];
  for (const { name, valueFrom } of sidecar.env) if (valueFrom) assert.ok(config.includes(`token_env: ${name},`), name);
  assert.deepEqual(objects.get('Service mcp-server').spec.ports.map(({ targetPort }) => targetPort), ['mcp']);
  assert.deepEqual(objects.get('NetworkPolicy mcp-server').spec.ingress.map(({ ports }) => ports), [[{ port: 'mcp' }]]);
});

test('kustomize builds the base', { skip: missing('kubectl', 'the base is not built') || skip }, (t) => {
  const { status, stdout, stderr } = run('kubectl', ['kustomize', inRoot('deploy/kubernetes')]);
  assert.equal(status, 0, stderr);
  const file = path.join(temporaryFolder(t), 'built.yaml');
  writeFileSync(file, stdout);
  assert.deepEqual(new Set(objectsOf(file).keys()), new Set(objectsOf(SIDECAR).keys()));
});

/** The objects of the kustomization in `folder`. */
function build(t, folder) {
  const { status, stdout, stderr } = run('kustomize', ['build', folder]);
  assert.equal(status, 0, stderr);
  const file = path.join(temporaryFolder(t), 'built.yaml');
  writeFileSync(file, stdout);
  return objectsOf(file);
}

const withoutKustomize = missing('kustomize', 'go install sigs.k8s.io/kustomize/kustomize/v5@v5.4.3') || skip;
const PRE_STOP = { httpGet: { path: '/health/idle?wait=30', port: 7469 } };

test('the component: gateway, configuration, volume, probes and preStop in the example\'s Deployment', { skip: withoutKustomize }, (t) => {
  const objects = build(t, inRoot('deploy/kubernetes/example'));
  assert.deepEqual([...objects.keys()].sort(), ['ConfigMap taskgate', 'Deployment crm', 'PersistentVolumeClaim taskgate-store', 'Service crm']);
  const { replicas, strategy, selector, template } = objects.get('Deployment crm').spec;
  assert.deepEqual([replicas, strategy, selector], [1, { type: 'Recreate' }, { matchLabels: { app: 'crm' } }]);
  const pod = template.spec, [sidecar, prepare] = pod.initContainers, [server] = pod.containers;
  assert.deepEqual([pod.initContainers.length, pod.containers.length], [2, 1]);
  assert.deepEqual([sidecar.name, sidecar.restartPolicy, sidecar.image], ['taskgate', 'Always', 'registry.example/taskgate:0.1.0']);
  assert.deepEqual(prepare, { name: 'prepare', image: 'registry.example/crm-mcp:3', args: ['prepare'], securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }, resources: {} });
  assert.deepEqual(server.lifecycle, { preStop: PRE_STOP });
  assert.equal(pod.terminationGracePeriodSeconds, 30 + 10 + 5);
  assert.deepEqual(pod.securityContext, { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' }, fsGroup: 7467, fsGroupChangePolicy: 'OnRootMismatch' });
  const admin = sidecar.ports.find(({ containerPort }) => containerPort === 7469).name;
  const probes = [sidecar.startupProbe, sidecar.livenessProbe, sidecar.readinessProbe].map(({ httpGet }) => [httpGet.path, httpGet.port]);
  assert.deepEqual(probes, [['/health', admin], ['/health', admin], ['/ready', admin]]);
  assert.ok(sidecar.startupProbe.periodSeconds * sidecar.startupProbe.failureThreshold >= 60 + 30);
  assert.deepEqual(sidecar.volumeMounts.map(({ name, mountPath }) => [name, mountPath]), [['taskgate-config', '/etc/thoughtgate'], ['taskgate-store', '/var/lib/taskgate']]);
  assert.deepEqual(pod.volumes.map(({ configMap, persistentVolumeClaim }) => configMap?.name ?? persistentVolumeClaim.claimName), ['taskgate', 'taskgate-store']);
  assert.deepEqual(objects.get('Service crm').spec.ports, [{ name: 'mcp', port: 3000, targetPort: 'taskgate' }]);
  assert.ok(sidecar.ports.some(({ name, containerPort }) => name === 'taskgate' && containerPort === 7467));
});

test('the component: each Deployment with the label, whatever it has, and no other', { skip: withoutKustomize }, (t) => {
  const folder = temporaryFolder(t), mine = path.join(folder, 'mine');
  cpSync(inRoot('deploy/kubernetes/component'), path.join(folder, 'component'), { recursive: true });
  mkdirSync(mine);
  const container = (name) => ({ name, image: 'example.org/a:1', securityContext: { runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, seccompProfile: { type: 'RuntimeDefault' } }, resources: {} });
  const deployment = (name, on) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, labels: { 'taskgate.dev/sidecar': on } },
    spec: {
      replicas: 3,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } },
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          initContainers: [{ ...container('one'), restartPolicy: 'Always' }, container('two')],
          containers: [{ ...container('server'), ports: [{ name: 'mcp', containerPort: 3000 }] }, container('beside')],
          volumes: [{ name: 'own', emptyDir: {} }],
        },
      },
    },
  });
  const plain = deployment('plain', 'false');
  const list = [deployment('served', 'true'), plain];
  writeFileSync(path.join(mine, 'deployments.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: list }));
  writeFileSync(path.join(mine, 'kustomization.yaml'), 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamePrefix: a-\nresources: [deployments.json]\ncomponents: [../component]\n');
  const objects = build(t, mine);
  const served = objects.get('Deployment a-served').spec, untouched = objects.get('Deployment a-plain').spec;
  assert.deepEqual([served.replicas, served.strategy], [1, { type: 'Recreate' }]);
  const pod = served.template.spec;
  assert.deepEqual(pod.initContainers.map(({ name }) => name), ['taskgate', 'one', 'two']);
  assert.deepEqual(pod.containers.map(({ name, lifecycle }) => [name, lifecycle]), [['server', { preStop: PRE_STOP }], ['beside', undefined]]);
  assert.deepEqual(pod.volumes.map(({ name }) => name).sort(), ['own', 'taskgate-config', 'taskgate-store']);
  const named = pod.volumes.flatMap(({ configMap, persistentVolumeClaim }) => configMap?.name ?? persistentVolumeClaim?.claimName ?? []);
  assert.deepEqual(named, ['a-taskgate', 'a-taskgate-store'], 'no hash, and the names of this kustomization');
  for (const name of ['ConfigMap a-taskgate', 'PersistentVolumeClaim a-taskgate-store']) assert.ok(objects.has(name), name);
  assert.deepEqual([untouched.replicas, untouched.strategy, untouched.template.spec], [3, plain.spec.strategy, plain.spec.template.spec]);
});

test('the component: the gateway takes its configuration and the example\'s, with the variables of the Secret', { skip: withoutKustomize || withoutGateway }, (t) => {
  const folder = temporaryFolder(t), prefix = build(t, inRoot('deploy/kubernetes/example')).get('Deployment crm').spec.template.spec.initContainers[0].envFrom[0].prefix;
  for (const [place, people] of [['deploy/kubernetes/component/configuration.yaml', ['alice']], ['deploy/kubernetes/example/configuration.yaml', ['alice', 'bob']]]) {
    const file = path.join(folder, 'config.yaml');
    writeFileSync(file, objectsOf(inRoot(place)).get('ConfigMap taskgate').data['config.yaml']);
    const tokens = Object.fromEntries(people.map((name) => [prefix + name, `a-token-of-${name}-alone`]));
    const { status, stderr } = run(gateway, ['check', '--strict', '--config', file], { env: { PATH: process.env.PATH, ...tokens } });
    assert.deepEqual([place, status, stderr.replace(/^.*: a task outlives its owner's token, .*\n/gm, '')], [place, 0, '']);
  }
});
