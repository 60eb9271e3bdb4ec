// The Helm chart: what it makes of values, what it refuses, and that Kubernetes and the gateway take it.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gateway, inRoot, manifestReader, missing, objectsOf, run, temporaryFolder, withoutGateway } from './lib/tools.mjs';

const CHART = inRoot('deploy/helm/taskgate');
const why = missing('helm', 'the chart is not rendered');
const skip = why || manifestReader().why || false;

const SIDECAR = {
  mode: 'sidecar',
  config: { sources: [{ id: 'main', kind: 'mcp', url: 'http://127.0.0.1:3000/mcp', headers: { 'X-Key': { env: 'CRM_KEY' } } }] },
  server: { image: 'example.org/server:1' },
  secretEnv: [{ name: 'CRM_KEY', secret: 'crm', key: 'api-key' }],
  operators: {
    existingSecret: 'ops',
    people: [
      { name: 'alice', roles: ['approver'], groups: ['dba'] },
      { name: 'bob.b', key: 'bob', roles: ['viewer', 'auditor'] },
    ],
  },
};
const EVERYTHING = {
  ...SIDECAR,
  tls: { proxySecret: 'proxy-tls', adminSecret: 'admin-tls' },
  networkPolicy: { agents: [{ podSelector: { matchLabels: { agent: 'yes' } } }], admin: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }] },
  podDisruptionBudget: { enabled: true },
  metrics: { serviceMonitor: { enabled: true, labels: { release: 'prometheus' } }, alerts: { enabled: true }, dashboard: { enabled: true } },
  store: { storageClass: 'fast', size: '5Gi' },
  podLabels: { team: 'a' },
  podAnnotations: { note: 'b' },
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ key: 'a', operator: 'Exists' }],
};

function template(t, values, ...more) {
  const file = path.join(temporaryFolder(t), 'values.json');
  writeFileSync(file, JSON.stringify(values));
  return run('helm', ['template', 'gate', CHART, '--namespace', 'agents', '--kube-version', '1.31', '--values', file, ...more]);
}

function render(t, values) {
  const { status, stdout, stderr } = template(t, values);
  assert.equal(status, 0, stderr);
  const file = path.join(temporaryFolder(t), 'manifests.yaml');
  writeFileSync(file, stdout);
  return objectsOf(file);
}

const only = (list) => (assert.equal(list.length, 1), list[0]);

test('helm lint finds nothing', { skip: why }, (t) => {
  for (const values of [{}, EVERYTHING]) {
    const file = path.join(temporaryFolder(t), 'values.json');
    writeFileSync(file, JSON.stringify(values));
    const { status, stdout, stderr } = run('helm', ['lint', '--strict', '--kube-version', '1.31', '--values', file, CHART]);
    assert.equal(status, 0, stdout + stderr);
    assert.doesNotMatch(stdout, /\[(WARNING|ERROR)\]/);
  }
});

test('gateway: a pod of its own, one at a time, and its configuration', { skip }, (t) => {
  const objects = render(t, {});
  assert.deepEqual([...objects.keys()].sort(), ['ConfigMap gate', 'Deployment gate', 'NetworkPolicy gate', 'PersistentVolumeClaim gate', 'Service gate']);
  for (const object of objects.values()) assert.equal(object.metadata.namespace, 'agents');
  const { spec } = objects.get('Deployment gate');
  assert.deepEqual([spec.replicas, spec.strategy.type], [1, 'Recreate']);
  const pod = spec.template.spec;
  assert.equal(pod.initContainers, undefined);
  const container = only(pod.containers);
  assert.equal(container.image, 'example.org/taskgate:0.1.0');
  assert.equal(container.lifecycle.preStop.sleep.seconds, 5);
  // The sleep, and the 25 s that the gateway itself may take.
  assert.ok(pod.terminationGracePeriodSeconds > 5 + 25);
  assert.ok(container.resources.limits.memory && container.resources.requests.cpu);
  assert.deepEqual([container.securityContext.readOnlyRootFilesystem, pod.securityContext.runAsNonRoot, pod.automountServiceAccountToken], [true, true, false]);
});

test('sidecar: the gateway starts before the server and ends after it, and calls under way may end', { skip }, (t) => {
  const pod = render(t, SIDECAR).get('Deployment gate').spec.template.spec;
  const sidecar = only(pod.initContainers), server = only(pod.containers);
  assert.equal(sidecar.restartPolicy, 'Always');
  assert.equal(sidecar.startupProbe.httpGet.path, '/health');
  assert.equal(sidecar.lifecycle, undefined, 'the gateway stops last anyway');
  assert.equal(server.lifecycle.preStop.sleep.seconds, 30);
  assert.ok(pod.terminationGracePeriodSeconds > 30 + 30 + 25, `${pod.terminationGracePeriodSeconds}`);
  for (const { resources } of [sidecar, server]) assert.ok(resources.limits.memory && resources.requests.cpu && resources.requests.memory);
});

test('one token a person, from an existing Secret; no secret in the manifests', { skip }, (t) => {
  const objects = render(t, SIDECAR);
  const { env } = only(objects.get('Deployment gate').spec.template.spec.initContainers);
  const secrets = Object.fromEntries(env.filter(({ valueFrom }) => valueFrom).map(({ name, valueFrom: { secretKeyRef: { name: secret, key } } }) => [name, [secret, key]]));
  assert.deepEqual(secrets, { TASKGATE_TOKEN_ALICE: ['ops', 'alice'], TASKGATE_TOKEN_BOB_B: ['ops', 'bob'], CRM_KEY: ['crm', 'api-key'] });
  assert.ok(![...objects.keys()].some((name) => name.startsWith('Secret')));
});

for (const [name, values] of Object.entries({ gateway: {}, sidecar: SIDECAR })) {
  test(`${name}: the gateway takes the configuration, without a warning`, { skip: skip || withoutGateway }, (t) => {
    const file = path.join(temporaryFolder(t), 'config.yaml');
    writeFileSync(file, render(t, values).get('ConfigMap gate').data['config.yaml']);
    const env = { PATH: process.env.PATH, TASKGATE_TOKEN_ALICE: 'a-token-of-alice-alone', TASKGATE_TOKEN_BOB_B: 'a-token-of-bob-alone', CRM_KEY: 'key' };
    const { status, stderr } = run(gateway, ['check', '--strict', '--config', file], { env });
    assert.deepEqual([status, stderr], [0, '']);
  });
}

test('agents reach the MCP port alone; the admin port only who is named', { skip }, (t) => {
  const closed = render(t, {}).get('NetworkPolicy gate').spec;
  assert.deepEqual(closed.policyTypes, ['Ingress']);
  assert.deepEqual(only(closed.ingress), { from: [{ podSelector: {} }], ports: [{ port: 'mcp' }] });
  const [agents, admin] = render(t, EVERYTHING).get('NetworkPolicy gate').spec.ingress;
  assert.deepEqual([agents.ports, admin.ports], [[{ port: 'mcp' }], [{ port: 'admin' }]]);
  assert.deepEqual(admin.from, EVERYTHING.networkPolicy.admin);
});

test('everything at once: TLS, monitoring, alarms, dashboard, disruption budget', { skip }, (t) => {
  const objects = render(t, EVERYTHING);
  const pod = objects.get('Deployment gate').spec.template;
  const sidecar = only(pod.spec.initContainers);
  assert.equal(sidecar.readinessProbe.httpGet.scheme, 'HTTPS');
  assert.ok(sidecar.volumeMounts.some(({ mountPath }) => mountPath === '/etc/taskgate/tls/admin'));
  assert.match(objects.get('ConfigMap gate').data['config.yaml'], /cert: \/etc\/taskgate\/tls\/proxy\/tls\.crt/);
  const labels = objects.get('Service gate-admin').metadata.labels;
  const monitor = objects.get('ServiceMonitor gate');
  for (const [key, value] of Object.entries(monitor.spec.selector.matchLabels)) assert.equal(labels[key], value, 'the monitor finds the Service');
  assert.notEqual(objects.get('Service gate').metadata.labels['app.kubernetes.io/component'], 'admin');
  assert.equal(only(monitor.spec.endpoints).scheme, 'https');
  assert.equal(monitor.metadata.labels.release, 'prometheus');
  // Alarms look for a job of this name.
  assert.equal(labels[monitor.spec.jobLabel], 'taskgate');
  assert.ok(only(objects.get('PrometheusRule gate').spec.groups).rules.length >= 10);
  const dashboard = objects.get('ConfigMap gate-dashboard');
  assert.equal(JSON.parse(dashboard.data['taskgate.json']).title, 'taskgate');
  assert.equal(dashboard.metadata.labels.grafana_dashboard, '1');
  assert.equal(objects.get('PodDisruptionBudget gate').spec.maxUnavailable, 0);
  assert.deepEqual(objects.get('PersistentVolumeClaim gate').spec.storageClassName, 'fast');
  for (const name of ['Deployment gate', 'Service gate', 'Service gate-admin', 'PodDisruptionBudget gate']) {
    const { selector } = objects.get(name).spec;
    for (const [key, value] of Object.entries(selector.matchLabels ?? selector)) assert.equal(pod.metadata.labels[key], value, name);
  }
});

const refused = {
  'store.url': [{ store: { url: 'postgres://db/x' } }, /store\.url: PostgreSQL is not supported yet/],
  'store.url by a variable': [{ store: { url: { env: 'DATABASE' } } }, /store\.url: PostgreSQL is not supported yet/],
  'config.store.url': [{ config: { store: { url: { env: 'DATABASE' } } } }, /store\.url: PostgreSQL is not supported yet/],
  'config.store.path': [{ config: { store: { path: '/x' } } }, /config\.store\.path: the chart sets it/],
  'more than one replica': [{ replicas: 2 }, /replicas/],
  'a misspelt value': [{ networkPolcy: { enabled: false } }, /networkPolcy/],
  'another mode': [{ mode: 'daemon' }, /mode/],
  'tokens in the configuration': [{ config: { admin: { tokens: [{ name: 'a', token_env: 'A', roles: ['viewer'] }] } } }, /write people and tokens as operators\.people/],
  'tls in the configuration': [{ config: { proxy: { tls: { cert: 'a', key: 'b' } } } }, /tls\.proxySecret/],
  'nobody who decides': [{ operators: { people: [] } }, /operators\.people: nobody may decide/],
  'names that differ only in case': [{ operators: { people: [{ name: 'al', roles: ['viewer'] }, { name: 'AL', roles: ['viewer'] }] } }, /two of the names/],
  'a sidecar without a server': [{ ...SIDECAR, server: {} }, /server\.image: mode sidecar needs the image/],
  'a sidecar of a server elsewhere': [{ ...SIDECAR, config: { sources: [{ id: 'main', kind: 'mcp', url: 'http://elsewhere/mcp' }] } }, /with mode sidecar the server is at http:\/\/127\.0\.0\.1/],
  'a gateway in front of its own pod': [{ config: SIDECAR.config }, /with mode gateway nothing listens at http:\/\/127\.0\.0\.1:3000/],
};
for (const [what, [values, pattern]] of Object.entries(refused)) {
  test(`refused, with the reason: ${what}`, { skip: why }, (t) => {
    const { status, stderr } = template(t, values);
    assert.notEqual(status, 0);
    assert.match(stderr, pattern);
  });
}

test('a Kubernetes without native sidecars is refused', { skip: why }, () => {
  const { status, stderr } = run('helm', ['template', 'gate', CHART, '--kube-version', '1.28']);
  assert.notEqual(status, 0);
  assert.match(stderr, /requires kubeVersion: >=1\.30/);
});
