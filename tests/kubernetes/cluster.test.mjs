// A Kubernetes takes what the chart and the manifests make: each object by a dry run at the server, in a namespace that
// enforces PodSecurity's level restricted, and each pod of a workload as a pod, for only pods are refused there.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { inRoot, missing, run, temporaryFolder } from '../deploy/lib/tools.mjs';
import { SETS, template } from './lib/chart.mjs';
import { place, startServer } from './lib/cluster.mjs';
import { manifestReader, objectsOf } from './lib/objects.mjs';

const NAMESPACE = 'agents';
const PLURALS = {
  ConfigMap: 'configmaps',
  Deployment: 'deployments',
  HorizontalPodAutoscaler: 'horizontalpodautoscalers',
  Ingress: 'ingresses',
  Job: 'jobs',
  NetworkPolicy: 'networkpolicies',
  PersistentVolumeClaim: 'persistentvolumeclaims',
  Pod: 'pods',
  PodDisruptionBudget: 'poddisruptionbudgets',
  Service: 'services',
  ServiceAccount: 'serviceaccounts',
  StatefulSet: 'statefulsets',
};
/** Kinds of the Prometheus operator, which this server does not have. */
const FOREIGN = ['ServiceMonitor', 'PrometheusRule'];

const on = place();
const skip = on.why || missing('helm', 'the chart is not rendered') || manifestReader().why || false;
let server;

before(async () => {
  if (skip) return;
  server = await startServer(on);
  const level = { 'pod-security.kubernetes.io/enforce': 'restricted', 'pod-security.kubernetes.io/warn': 'restricted' };
  await made('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE, labels: level } });
  await made('/apis/scheduling.k8s.io/v1/priorityclasses', { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'high' }, value: 1000 });
});
after(() => server?.stop());

async function made(where, object) {
  const { status, body } = await server.ask('POST', where, object);
  assert.equal(status, 201, body);
}

/** Asks the server for the object by a dry run: it is not kept. */
function tried(object) {
  const root = object.apiVersion.includes('/') ? `/apis/${object.apiVersion}` : `/api/${object.apiVersion}`;
  const own = { ...object, metadata: { ...object.metadata, namespace: NAMESPACE } };
  return server.ask('POST', `${root}/namespaces/${NAMESPACE}/${PLURALS[object.kind]}?dryRun=All&fieldValidation=Strict`, own);
}

/** Tries the objects, and the pods of their workloads. Says how many. */
async function take(objects) {
  let count = 0;
  for (const object of objects) {
    if (FOREIGN.includes(object.kind)) continue;
    const { template: pod } = object.kind === 'Pod' ? {} : (object.spec ?? {});
    const pods = pod ? [{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'one', labels: pod.metadata.labels }, spec: pod.spec }] : [];
    for (const each of [object, ...pods]) {
      const { status, warnings, body } = await tried(each);
      assert.deepEqual([object.metadata.name, each.kind, status, warnings], [object.metadata.name, each.kind, 201, ''], body);
      count++;
    }
  }
  return count;
}

function objectsIn(t, text) {
  const file = path.join(temporaryFolder(t), 'objects.yaml');
  writeFileSync(file, text);
  return [...objectsOf(file).values()];
}

test(`the manifests are tried on: ${on.name}`, { skip: on.why ?? false }, async () => {
  const { status, body } = await server.ask('GET', '/version');
  assert.equal(status, 200);
  assert.equal(on.name, `API server, Kubernetes ${JSON.parse(body).gitVersion}`);
});

for (const [name, values] of Object.entries(SETS)) {
  test(`the chart, ${name}: the server takes each object, without a warning`, { skip }, async (t) => {
    const { status, stdout, stderr } = template(t, values);
    assert.equal(status, 0, stderr);
    assert.ok((await take(objectsIn(t, stdout))) >= 7);
  });
}

test('sidecar.yaml: the server takes each object, without a warning', { skip }, async () => {
  assert.equal(await take([...objectsOf(inRoot('deploy/kubernetes/sidecar.yaml')).values()]), 6);
});

test('the component: the server takes each object of the example, without a warning', { skip: skip || missing('kustomize', 'the example is not built') }, async (t) => {
  const { status, stdout, stderr } = run('kustomize', ['build', inRoot('deploy/kubernetes/example')]);
  assert.equal(status, 0, stderr);
  assert.equal(await take(objectsIn(t, stdout)), 5);
});

test('the server refuses a pod with more rights, a misspelt field and a wrong value', { skip }, async () => {
  const { spec } = objectsOf(inRoot('deploy/kubernetes/sidecar.yaml')).get('StatefulSet mcp-server').spec.template;
  const changed = (change) => tried({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'one' }, spec: { ...spec, ...change } });
  const rights = await changed({ hostNetwork: true });
  assert.deepEqual([rights.status, JSON.parse(rights.body).message.includes('violates PodSecurity "restricted:latest": host namespaces')], [403, true], rights.body);
  const misspelt = await changed({ hostNetwrok: true });
  assert.deepEqual([misspelt.status, JSON.parse(misspelt.body).message.includes('unknown field "spec.hostNetwrok"')], [400, true], misspelt.body);
  const [sidecar] = spec.initContainers;
  const wrong = await changed({ initContainers: [{ ...sidecar, volumeMounts: [{ name: 'absent', mountPath: '/absent' }] }] });
  assert.deepEqual([wrong.status, JSON.parse(wrong.body).message.includes('spec.initContainers[0].volumeMounts[0].name: Not found: "absent"')], [422, true], wrong.body);
});
