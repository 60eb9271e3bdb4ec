// The Helm chart: what it makes of values, what it refuses, and that Kubernetes and the gateway take it. Each object that
// is rendered here is read strictly, and its pods are judged by PodSecurity's level restricted.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { readme, values as listed, withConfig } from '../../scripts/chart.mjs';
import { gateway, inRoot, missing, run, temporaryFolder, withoutGateway } from '../deploy/lib/tools.mjs';
import { CHART, COLLECTOR, complete, DIGEST, ENVIRONMENT, EVERYTHING, KEY, MORE, OPENSHIFT, PUBLISHED, REPLICAS, SERVER, SETS, SIDECAR, template } from './lib/chart.mjs';
import { manifestReader, objectsOf } from './lib/objects.mjs';

const why = missing('helm', 'the chart is not rendered');
const skip = why || manifestReader().why || false;

function render(t, values) {
  const { status, stdout, stderr } = template(t, values);
  assert.equal(status, 0, stderr);
  const file = path.join(temporaryFolder(t), 'manifests.yaml');
  writeFileSync(file, stdout);
  return objectsOf(file);
}

const only = (list) => (assert.equal(list.length, 1), list[0]);

const workloadOf = (objects) => [...objects].find(([name]) => /^(StatefulSet|Deployment) /.test(name))[1];
const podOf = (objects) => workloadOf(objects).spec.template.spec;

for (const [name, values] of Object.entries(SETS)) {
  test(`${name}: helm lint finds nothing, and Kubernetes takes each field`, { skip }, (t) => {
    const file = path.join(temporaryFolder(t), 'values.json');
    writeFileSync(file, JSON.stringify(complete(values)));
    const { status, stdout, stderr } = run('helm', ['lint', '--strict', '--kube-version', '1.34.0', '--values', file, CHART]);
    assert.equal(status, 0, stdout + stderr);
    assert.doesNotMatch(stdout, /\[(WARNING|ERROR)\]/);
    const objects = render(t, values);
    const pods = [...objects.values()].flatMap(({ kind, spec }) => (kind === 'Pod' ? [spec] : spec?.template ? [spec.template.spec] : []));
    assert.ok(pods.length >= 2);
    for (const { enableServiceLinks, automountServiceAccountToken } of pods) assert.deepEqual([enableServiceLinks, automountServiceAccountToken], [false, false]);
  });
}

test('a pod with more rights than PodSecurity restricted allows is found', { skip }, (t) => {
  const wrong = [
    [{ securityContext: { allowPrivilegeEscalation: true } }, /StatefulSet gate violates PodSecurity restricted: .*allowPrivilegeEscalation/],
    [{ podSecurityContext: { seccompProfile: null } }, /seccompProfile/],
    [{ extraVolumes: [{ name: 'host', hostPath: { path: '/' } }] }, /hostPath/],
    [{ ...SIDECAR, server: { image: 'a', container: { securityContext: { capabilities: { drop: [] } } } } }, /unrestricted capabilities \(container "server"/],
  ];
  for (const [values, pattern] of wrong) assert.throws(() => render(t, values), pattern);
});

test('the README has each value, its default and its comment; scripts/chart.mjs --write makes it anew', () => {
  const text = readFileSync(path.join(CHART, 'values.yaml'), 'utf8');
  assert.equal(readFileSync(path.join(CHART, 'README.md'), 'utf8'), readme(text));
  const made = listed('# One\n# text.\na:\n  b: [1]  # Beside.\n  # Above.\n  c:\n    d: "x # y"\n\n# Alone.\n\ne: 1\n');
  assert.deepEqual(made, [
    { path: 'a', value: null, comment: 'One text.' },
    { path: 'a.b', value: '[1]', comment: 'Beside.' },
    { path: 'a.c', value: null, comment: 'Above.' },
    { path: 'a.c.d', value: '"x # y"', comment: '' },
    { path: 'e', value: '1', comment: '' },
  ]);
  assert.throws(() => listed('a:\n  - 1\n'), /write a list in one line/);
  const top = listed(text).filter((value) => !value.path.includes('.'));
  for (const value of top) assert.notEqual(value.comment, '', value.path);
});

test('the schema of the values has that of the configuration; scripts/chart.mjs --write makes it anew', { skip: withoutGateway }, () => {
  const { status, stdout, stderr } = run(gateway, ['schema']);
  assert.equal(status, 0, stderr);
  const schema = JSON.parse(readFileSync(path.join(CHART, 'values.schema.json'), 'utf8'));
  assert.deepEqual(schema, withConfig(schema, JSON.parse(stdout)));
  assert.ok(Object.keys(schema.properties.config.properties).length >= 20);
});

test('gateway: a pod of its own, one at a time, and its configuration', { skip }, (t) => {
  const objects = render(t, {});
  assert.deepEqual([...objects.keys()].sort(), ['ConfigMap gate', 'NetworkPolicy gate', 'NetworkPolicy gate-test', 'PersistentVolumeClaim gate', 'Pod gate-test', 'Service gate', 'Service gate-test', 'StatefulSet gate']);
  for (const object of objects.values()) assert.equal(object.metadata.namespace, 'agents');
  const { spec } = objects.get('StatefulSet gate');
  assert.deepEqual([spec.replicas, spec.podManagementPolicy, spec.serviceName, spec.volumeClaimTemplates], [1, 'Parallel', 'gate', undefined]);
  const pod = spec.template.spec;
  assert.equal(pod.initContainers, undefined);
  assert.deepEqual(only(pod.volumes.filter(({ name }) => name === 'store')).persistentVolumeClaim, { claimName: 'gate' }, 'the claim that a Deployment of before had');
  assert.deepEqual([pod.securityContext.fsGroup, pod.securityContext.fsGroupChangePolicy], [7467, 'OnRootMismatch']);
  const container = only(pod.containers);
  // The time that the start may wait for the file (store.lock_wait), and 30 s.
  assert.ok(container.startupProbe.periodSeconds * container.startupProbe.failureThreshold >= 60 + 30);
  assert.equal(container.image, 'example.org/taskgate:0.1.0');
  assert.equal(container.lifecycle, undefined, 'SIGTERM is the drain, and the only one');
  assert.equal(container.env.find(({ name }) => name === 'THOUGHTGATE_SHUTDOWN_LINGER_SECS').value, '5');
  // The linger, the 25 s of the drain, and some to spare.
  assert.equal(pod.terminationGracePeriodSeconds, 5 + 25 + 5);
  assert.ok(container.resources.limits.memory && container.resources.requests.cpu);
  assert.deepEqual([container.securityContext.readOnlyRootFilesystem, pod.securityContext.runAsNonRoot, pod.automountServiceAccountToken], [true, true, false]);
});

test('sidecar: the gateway starts before the server and ends after it, and calls under way may end', { skip }, (t) => {
  const pod = render(t, SIDECAR).get('StatefulSet gate').spec.template.spec;
  const sidecar = only(pod.initContainers), server = only(pod.containers);
  assert.equal(sidecar.restartPolicy, 'Always');
  assert.equal(sidecar.startupProbe.httpGet.path, '/health');
  assert.equal(sidecar.lifecycle, undefined, 'the gateway stops last anyway');
  assert.deepEqual(server.lifecycle.preStop.httpGet, { path: '/health/idle?wait=30', port: 7469, scheme: 'HTTP' });
  assert.equal(pod.shareProcessNamespace, undefined);
  assert.equal(pod.terminationGracePeriodSeconds, 30 + 10 + 5);
  for (const { resources } of [sidecar, server]) assert.ok(resources.limits.memory && resources.requests.cpu && resources.requests.memory);
});

test('one token a person, from an existing Secret; no secret in the manifests', { skip }, (t) => {
  const objects = render(t, SIDECAR);
  const { env } = only(objects.get('StatefulSet gate').spec.template.spec.initContainers);
  const secrets = Object.fromEntries(env.filter(({ valueFrom }) => valueFrom).map(({ name, valueFrom: { secretKeyRef: { name: secret, key } } }) => [name, [secret, key]]));
  assert.deepEqual(secrets, { TASKGATE_TOKEN_ALICE: ['ops', 'alice'], TASKGATE_TOKEN_BOB_B: ['ops', 'bob'], CRM_KEY: ['crm', 'api-key'] });
  assert.ok(![...objects.keys()].some((name) => name.startsWith('Secret')));
});

test('a state key from a Secret, for a store that is a file', { skip }, (t) => {
  const objects = render(t, KEY);
  const variables = only(objects.get('StatefulSet gate').spec.template.spec.containers).env.map(({ name, valueFrom }) => [name, valueFrom?.secretKeyRef]);
  assert.deepEqual(Object.fromEntries(variables).TASKGATE_STATE_KEY, { name: 'sealing', key: 'state-key' });
  assert.match(objects.get('ConfigMap gate').data['config.yaml'], /state_key:\n +env: TASKGATE_STATE_KEY/);
});

for (const [name, values] of Object.entries(SETS)) {
  test(`${name}: the gateway takes the configuration, without a warning`, { skip: skip || withoutGateway }, (t) => {
    const folder = temporaryFolder(t);
    const { 'config.yaml': configuration, ...files } = render(t, values).get('ConfigMap gate').data;
    assert.deepEqual(files, values.files ?? {});
    for (const [file, text] of Object.entries(files)) writeFileSync(path.join(folder, file), text);
    const file = path.join(folder, 'config.yaml');
    // The certificates are on the node alone.
    writeFileSync(file, configuration.replace(/^ +tls:\n +cert: .*\n +key: .*\n/gm, ''));
    const { status, stderr } = run(gateway, ['check', '--strict', '--config', file], { env: ENVIRONMENT });
    assert.deepEqual([status, stderr.replace(/^.*: a task outlives its owner's token, .*\n/gm, '')], [0, '']);
  });
}

test('the rules are the user\'s alone', { skip }, (t) => {
  const config = render(t, { config: { governance: { defaults: { action: 'deny' } } } }).get('ConfigMap gate').data['config.yaml'];
  assert.match(config, /^governance:\n  defaults:\n    action: deny\n[a-z]/m);
  assert.doesNotMatch(config, /rules|match|approval/);
});

test('variables, volumes, an account, a class and a digest', { skip }, (t) => {
  const objects = render(t, MORE), pod = podOf(objects), container = only(pod.containers);
  assert.equal(container.image, `example.org/taskgate@${DIGEST}`);
  assert.equal(only(objects.get('Pod gate-test').spec.containers).image, container.image);
  assert.deepEqual(container.env.at(-1), MORE.extraEnv[0]);
  assert.deepEqual(container.envFrom, MORE.envFrom);
  assert.deepEqual(container.volumeMounts.at(-1), MORE.extraVolumeMounts[0]);
  assert.deepEqual(pod.volumes.at(-1), MORE.extraVolumes[0]);
  assert.deepEqual([pod.priorityClassName, pod.serviceAccountName], ['high', 'gate']);
  const account = objects.get('ServiceAccount gate');
  assert.deepEqual([account.metadata.annotations, account.automountServiceAccountToken], [{ 'cloud.example/role': 'gate' }, false]);
  const mine = render(t, { ...REPLICAS, serviceAccount: { name: 'mine' } });
  assert.deepEqual([podOf(mine).serviceAccountName, mine.get('Job gate-migration').spec.template.spec.serviceAccountName], ['mine', 'mine']);
  assert.ok(!mine.has('ServiceAccount mine'));
  const made = render(t, { ...REPLICAS, serviceAccount: { create: true, name: 'made' } });
  assert.equal(podOf(made).serviceAccountName, 'made');
  assert.ok(made.has('ServiceAccount made'));
  assert.equal(made.get('Job gate-migration').spec.template.spec.serviceAccountName, undefined, 'the account is not there yet');
  assert.equal(podOf(render(t, {})).serviceAccountName, undefined);
});

test('OpenShift: no user and no group in the manifests; the rest of the rights as before', { skip }, (t) => {
  const objects = render(t, { ...REPLICAS, ...OPENSHIFT });
  const pods = [podOf(objects), objects.get('Job gate-migration').spec.template.spec, objects.get('Pod gate-test').spec];
  for (const pod of pods) {
    assert.deepEqual(pod.securityContext, { runAsNonRoot: true, fsGroupChangePolicy: 'OnRootMismatch', seccompProfile: { type: 'RuntimeDefault' } });
    assert.deepEqual(only(pod.containers).securityContext, { runAsNonRoot: true, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
  }
});

test('an Ingress, a balancer, and objects whose templates are filled', { skip }, (t) => {
  const objects = render(t, PUBLISHED);
  const { metadata, spec } = objects.get('Ingress gate');
  assert.deepEqual(metadata.annotations, PUBLISHED.ingress.annotations);
  assert.deepEqual(spec, {
    ingressClassName: 'nginx',
    tls: PUBLISHED.ingress.tls,
    rules: [{ host: 'gate.example', http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'gate', port: { name: 'mcp' } } } }] } }],
  });
  const service = objects.get('Service gate');
  assert.deepEqual([service.spec.type, service.metadata.annotations], ['LoadBalancer', { 'balancer.example/internal': 'true' }]);
  assert.deepEqual(objects.get('HorizontalPodAutoscaler gate').spec.scaleTargetRef, { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'gate' });
  assert.deepEqual(objects.get('ConfigMap gate-more').data, { port: '7467' });
});

test('the rest of the server\'s container is merged over the chart\'s; its preStop stays', { skip }, (t) => {
  const pod = podOf(render(t, SERVER));
  assert.equal(pod.shareProcessNamespace, true);
  assert.deepEqual(only(pod.containers), {
    name: 'server',
    image: 'example.org/server:1',
    args: ['--quiet'],
    ports: [{ name: 'own', containerPort: 3000 }],
    lifecycle: { postStart: { exec: { command: ['true'] } }, preStop: { httpGet: { path: '/health/idle?wait=30', port: 7469, scheme: 'HTTP' } } },
    resources: { limits: { memory: '1Gi' }, requests: { cpu: '50m', memory: '64Mi' } },
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  });
});

test('helm test asks whether it is ready, by a way to the admin port that only its pod has', { skip }, (t) => {
  const objects = render(t, { tls: { adminSecret: 'admin-tls' } });
  const pod = objects.get('Pod gate-test'), service = objects.get('Service gate-test'), policy = objects.get('NetworkPolicy gate-test');
  for (const { metadata } of [pod, service, policy]) {
    assert.equal(metadata.annotations['helm.sh/hook'], 'test');
    assert.equal(metadata.annotations['helm.sh/hook-delete-policy'], 'before-hook-creation,hook-succeeded,hook-failed');
  }
  assert.ok(Number(service.metadata.annotations['helm.sh/hook-weight']) < Number(pod.metadata.annotations['helm.sh/hook-weight']));
  assert.deepEqual(only(pod.spec.containers).args, ['health', '--ready', 'https://gate-test.agents.svc:7469']);
  const gate = objects.get('StatefulSet gate').spec.template.metadata.labels;
  const allowed = only(policy.spec.ingress);
  assert.deepEqual(allowed.ports, [{ port: 'admin' }]);
  for (const [key, value] of Object.entries(only(allowed.from).podSelector.matchLabels)) assert.equal(pod.metadata.labels[key], value);
  for (const [key, value] of Object.entries({ ...service.spec.selector, ...policy.spec.podSelector.matchLabels })) assert.equal(gate[key], value);
  assert.notEqual(pod.metadata.labels['app.kubernetes.io/name'], gate['app.kubernetes.io/name'], 'no Service leads to it');
  assert.ok(!render(t, { networkPolicy: { enabled: false } }).has('NetworkPolicy gate-test'));
});

test('agents reach the MCP port alone; the admin port only who is named', { skip }, (t) => {
  const closed = render(t, {}).get('NetworkPolicy gate').spec;
  assert.deepEqual(closed.policyTypes, ['Ingress']);
  assert.deepEqual(only(closed.ingress), { from: [{ podSelector: {} }], ports: [{ port: 'mcp' }] });
  const [agents, admin] = render(t, EVERYTHING).get('NetworkPolicy gate').spec.ingress;
  assert.deepEqual([agents.ports, admin.ports], [[{ port: 'mcp' }], [{ port: 'admin' }]]);
  assert.deepEqual(admin.from, [...EVERYTHING.networkPolicy.admin, ...EVERYTHING.metrics.serviceMonitor.from]);
});

test('everything at once: TLS, monitoring, alarms, dashboard, disruption budget', { skip }, (t) => {
  const objects = render(t, EVERYTHING);
  const pod = objects.get('StatefulSet gate').spec.template;
  const sidecar = only(pod.spec.initContainers);
  assert.equal(sidecar.readinessProbe.httpGet.scheme, 'HTTPS');
  assert.equal(only(pod.spec.containers).lifecycle.preStop.httpGet.scheme, 'HTTPS');
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
  assert.deepEqual(pod.spec.affinity, EVERYTHING.affinity);
  for (const name of ['StatefulSet gate', 'Service gate', 'Service gate-admin', 'PodDisruptionBudget gate']) {
    const { selector } = objects.get(name).spec;
    for (const [key, value] of Object.entries(selector.matchLabels ?? selector)) assert.equal(pod.metadata.labels[key], value, name);
  }
});

test('replicas: one database, keys from Secrets, names and addresses of the pods', { skip }, (t) => {
  const objects = render(t, REPLICAS);
  assert.ok(!objects.has('PersistentVolumeClaim gate'));
  const { spec } = objects.get('Deployment gate');
  assert.deepEqual([spec.replicas, spec.strategy], [3, { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } }]);
  const pod = spec.template.spec, container = only(pod.containers);
  assert.deepEqual(only(pod.volumes.filter(({ name }) => name === 'store')).emptyDir, {});
  assert.equal(container.lifecycle, undefined);
  assert.deepEqual(only(container.ports.filter(({ name }) => name === 'replica')).containerPort, 7471);
  const from = Object.fromEntries(container.env.map(({ name, valueFrom }) => [name, valueFrom?.secretKeyRef ? `${valueFrom.secretKeyRef.name}/${valueFrom.secretKeyRef.key}` : valueFrom?.fieldRef.fieldPath]));
  assert.deepEqual(from, {
    THOUGHTGATE_ADMIN_BIND: undefined,
    THOUGHTGATE_SHUTDOWN_LINGER_SECS: undefined,
    TASKGATE_TOKEN_ALICE: 'taskgate-operators/alice',
    TASKGATE_STORE_URL: 'database/url',
    TASKGATE_REPLICA_KEY: 'between-us/replica-key',
    TASKGATE_STATE_KEY: 'between-us/state-key',
    POD_IP: 'status.podIP',
    POD_NAME: 'metadata.name',
  });
  const config = objects.get('ConfigMap gate').data['config.yaml'];
  for (const part of [/id: \$\{POD_NAME\}/, /address: http:\/\/\$\{POD_IP\}:7471/, /bind: 0\.0\.0\.0:7471/, /key_env: TASKGATE_REPLICA_KEY/, /url:\n +env: TASKGATE_STORE_URL/, /state_key:\n +env: TASKGATE_STATE_KEY/]) assert.match(config, part);
  assert.doesNotMatch(config, /path: /);
  for (const { labelSelector, maxSkew, whenUnsatisfiable } of pod.topologySpreadConstraints) {
    assert.deepEqual([labelSelector.matchLabels, maxSkew, whenUnsatisfiable], [spec.selector.matchLabels, 1, 'ScheduleAnyway']);
  }
  assert.deepEqual(pod.topologySpreadConstraints.map(({ topologyKey }) => topologyKey), ['topology.kubernetes.io/zone', 'kubernetes.io/hostname']);
  assert.equal(objects.get('PodDisruptionBudget gate').spec.maxUnavailable, 1);
  const six = render(t, { ...REPLICAS, replica: { existingSecret: 'k', ipFamily: 'IPv6' } }).get('ConfigMap gate').data['config.yaml'];
  assert.match(six, /address: http:\/\/\[\$\{POD_IP\}\]:7471\n +bind: '\[::\]:7471'/);
});

test('replicas: only they reach the port between them; out goes what is named', { skip }, (t) => {
  const { policyTypes, podSelector, ingress, egress } = render(t, REPLICAS).get('NetworkPolicy gate').spec;
  assert.deepEqual(policyTypes, ['Ingress', 'Egress']);
  const replicas = [{ podSelector }];
  assert.deepEqual(ingress.map(({ ports }) => only(ports).port), ['mcp', 'replica']);
  assert.deepEqual(ingress[1].from, replicas);
  const [names, others, database, servers] = egress;
  assert.deepEqual([names.to, names.ports.map(({ port }) => port)], [undefined, [53, 53]]);
  assert.deepEqual([others.to, only(others.ports).port], [replicas, 'replica']);
  assert.deepEqual([database.to, only(database.ports).port], [REPLICAS.networkPolicy.egress.database, 5432]);
  assert.deepEqual(servers, REPLICAS.networkPolicy.egress.rules[0]);
  const alone = render(t, { networkPolicy: { egress: { enabled: true } } }).get('NetworkPolicy gate').spec;
  assert.deepEqual([alone.ingress.length, only(alone.egress).ports.length], [1, 2]);
});

test('a change of a key that only a restart puts into force replaces the pods, and of no other', { skip }, (t) => {
  const items = readFileSync(inRoot('docs/configuration.md'), 'utf8').split(/\n(?:- |\n)/).map((item) => item.replace(/\s+/g, ' '));
  const marked = items.filter((item) => /Only a restart changes it\.$/.test(item)).map((item) => /`([^`]+)`/.exec(item)[1]);
  const covered = /range list (("[^"]+" ?)+)/.exec(readFileSync(path.join(CHART, 'templates/_helpers.tpl'), 'utf8'))[1].match(/[\w.]+/g);
  assert.deepEqual(covered.sort(), marked.sort());
  const sum = (values) => workloadOf(render(t, values)).spec.template.metadata.annotations['taskgate.dev/restart-keys'];
  const before = sum({});
  assert.match(before, /^[0-9a-f]{64}$/);
  for (const values of [
    { config: { governance: { defaults: { action: 'deny' } }, limits: { body_bytes: '1MiB' }, proxy: { allowed_hosts: ['a.example'] } } },
    { operators: { people: [{ name: 'bob', key: 'bob', roles: ['viewer'] }] } },
  ]) assert.equal(sum(values), before, JSON.stringify(values));
  const others = [{ config: { workers: 2 } }, { config: { limits: { connections: 50 } } }, KEY, COLLECTOR, { ...REPLICAS, replicas: 1 }].map(sum);
  assert.equal(new Set([before, ...others]).size, others.length + 1);
});

test('replicas: a job with a role of its own migrates, before the pods change', { skip }, (t) => {
  const objects = render(t, REPLICAS);
  const job = objects.get('Job gate-migration'), config = objects.get('ConfigMap gate-migration');
  for (const { metadata } of [job, config]) assert.equal(metadata.annotations['helm.sh/hook'], 'pre-install,pre-upgrade');
  assert.ok(Number(config.metadata.annotations['helm.sh/hook-weight']) < Number(job.metadata.annotations['helm.sh/hook-weight']));
  const pod = job.spec.template, container = only(pod.spec.containers);
  assert.deepEqual(container.args, ['store', 'migrate', '--config', '/etc/thoughtgate/config.yaml', '--grant-to', 'gate']);
  assert.deepEqual(only(container.env).valueFrom.secretKeyRef, { name: 'database-owner', key: 'owner-url' });
  assert.equal(only(pod.spec.volumes).configMap.name, config.metadata.name);
  assert.notEqual(pod.metadata.labels['app.kubernetes.io/name'], objects.get('Service gate').spec.selector['app.kubernetes.io/name'], 'no Service leads to it');
  const mine = JSON.stringify(objects.get('Deployment gate'));
  assert.ok(!mine.includes('database-owner'), 'the gateways do not have its URL');
});

test('replicas: the gateway takes the configuration of the migration', { skip: skip || withoutGateway }, (t) => {
  const file = path.join(temporaryFolder(t), 'config.yaml');
  writeFileSync(file, render(t, REPLICAS).get('ConfigMap gate-migration').data['config.yaml']);
  const { PATH, TASKGATE_STORE_URL } = ENVIRONMENT;
  const { status, stderr } = run(gateway, ['check', '--config', file], { env: { PATH, TASKGATE_STORE_URL } });
  assert.equal(status, 0, stderr);
});

test('telemetry: endpoint and share in the configuration, headers from a Secret', { skip }, (t) => {
  const objects = render(t, COLLECTOR);
  const { env } = only(objects.get('StatefulSet gate').spec.template.spec.containers);
  assert.deepEqual(env.find(({ name }) => name === 'OTEL_EXPORTER_OTLP_HEADERS').valueFrom.secretKeyRef, { name: 'collector', key: 'headers' });
  const facts = env.flatMap(({ name, valueFrom }) => (valueFrom?.fieldRef ? [name] : []));
  assert.deepEqual(facts, ['POD_NAME', 'K8S_NAMESPACE', 'NODE_NAME']);
  const config = objects.get('ConfigMap gate').data['config.yaml'];
  for (const part of [/enabled: true/, /endpoint: http:\/\/collector:4318/, /protocol: http\/protobuf/, /success_sample_rate: 0\.1/, /team: a/]) assert.match(config, part);
});

const refused = {
  'a URL in plain text': [{ store: { url: 'postgres://db/x' } }, /url/],
  'config.store.url': [{ config: { store: { url: { env: 'DATABASE' } } } }, /config\.store, config\.replica: the chart sets them/],
  'config.store.path': [{ config: { store: { path: '/x' } } }, /config\.store, config\.replica: the chart sets them/],
  'config.replica': [{ config: { replica: { id: 'a' } } }, /config\.store, config\.replica: the chart sets them/],
  'more than one replica of a file': [{ replicas: 2 }, /replicas: more than one needs PostgreSQL/],
  'no replica': [{ replicas: 0 }, /replicas/],
  'sidecars that know nothing of each other': [{ ...REPLICAS, ...SIDECAR }, /replicas: with mode sidecar there is one/],
  'PostgreSQL without the shared keys': [{ store: { postgres: { existingSecret: 'database' } } }, /replica\.existingSecret: with PostgreSQL it needs a Secret/],
  'a role that nobody grants to': [{ ...REPLICAS, store: { postgres: { existingSecret: 'database', migration: { grantTo: 'gate' } } } }, /store\.postgres\.migration\.grantTo: it has no effect/],
  'a migration of a file': [{ store: { postgres: { migration: { existingSecret: 'owner' } } } }, /store\.postgres\.migration: it has no effect/],
  'a state key beside that of the replicas': [{ ...REPLICAS, ...KEY }, /stateKey\.existingSecret: with store\.postgres/],
  'a volume beside PostgreSQL': [{ ...REPLICAS, store: { existingClaim: 'mine', postgres: { existingSecret: 'database' } } }, /store\.existingClaim: it has no effect/],
  'no way to the database': [{ ...REPLICAS, networkPolicy: { egress: { enabled: true } } }, /networkPolicy\.egress\.database: nothing is named/],
  'telemetry without a collector': [{ telemetry: { enabled: true } }, /telemetry\.endpoint: name the collector/],
  'telemetry in two places': [{ ...COLLECTOR, config: { telemetry: { enabled: true } } }, /config\.telemetry: write it as telemetry/],
  'a misspelt value': [{ networkPolcy: { enabled: false } }, /networkPolcy/],
  'a misspelt key of the configuration': [{ config: { governance: { defaults: { action: 'deny' }, ruels: [] } } }, /'\/config\/governance': additional properties 'ruels' not allowed/],
  'a word that the configuration does not have': [{ config: { governance: { defaults: { action: 'aprove' } } } }, /\/config\/governance\/defaults\/action/],
  'a number out of its range': [{ config: { workers: 100000 } }, /\/config\/workers/],
  'another mode': [{ mode: 'daemon' }, /mode/],
  'tokens in the configuration': [{ config: { admin: { tokens: [{ name: 'a', token_env: 'A', roles: ['viewer'] }] } } }, /write people and tokens as operators\.people/],
  'tls in the configuration': [{ config: { proxy: { tls: { cert: 'a', key: 'b' } } } }, /tls\.proxySecret/],
  'nobody who decides': [{ operators: { people: [] } }, /operators\.people: nobody may decide/],
  'names that differ only in case': [{ operators: { people: [{ name: 'al', roles: ['viewer'] }, { name: 'AL', roles: ['viewer'] }] } }, /TASKGATE_TOKEN_AL: two values make this variable/],
  'a variable that the chart makes': [{ extraEnv: [{ name: 'THOUGHTGATE_ADMIN_BIND', value: '::' }] }, /THOUGHTGATE_ADMIN_BIND: two values make this variable/],
  'no rules': [{ config: { governance: undefined } }, /config\.governance: the chart has no rules; write yours/],
  'no server': [{ config: { sources: undefined } }, /config\.sources: the chart names no MCP server/],
  'a file in place of the configuration': [{ files: { 'config.yaml': 'schema: 1' } }, /files: config\.yaml is the configuration/],
  'a file with a folder in its name': [{ files: { 'a/b': '' } }, /a\/b/],
  'a digest of another form': [{ image: { digest: 'sha256:ab' } }, /digest/],
  'an Ingress without a host': [{ ingress: { enabled: true } }, /ingress\.hosts: name the host/],
  'an Ingress whose host the gateway refuses': [{ ingress: { enabled: true, hosts: ['b.example'] }, config: { proxy: { allowed_hosts: ['a.example'] } } }, /the gateway would refuse b\.example/],
  'a monitor that the NetworkPolicy shuts out': [{ metrics: { serviceMonitor: { enabled: true } } }, /metrics\.serviceMonitor\.from: the NetworkPolicy lets nobody read/],
  'another preStop of the server': [{ ...SIDECAR, server: { image: 'a', container: { lifecycle: { preStop: { exec: { command: ['true'] } } } } } }, /server\.container\.lifecycle\.preStop: the chart's own/],
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
