// The plain manifests, the unit and the files of docker-compose.yaml: Kubernetes, kustomize, systemd, Prometheus and
// the gateway take them.
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gateway, inRoot, manifestReader, missing, objectsOf, read, run, temporaryFolder, withoutGateway } from './lib/tools.mjs';

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

test('docker-compose.yaml: every file it mounts is there, and every port is on the loopback', () => {
  const compose = read('deploy/docker-compose.yaml');
  const mounted = [...compose.matchAll(/^ +- (\.\/[^:]+):/gm)].map(([, file]) => file);
  assert.ok(mounted.length >= 7);
  for (const file of mounted) assert.ok(existsSync(inRoot('deploy', file)), file);
  const ports = [...compose.matchAll(/"([\d.:]+:\d+)"/g)].map(([, port]) => port);
  assert.ok(ports.length >= 4);
  for (const port of ports) assert.match(port, /^127\.0\.0\.1:/);
  for (const [, target] of compose.matchAll(/target: (\w+)/g)) assert.match(read('deploy/Dockerfile'), new RegExp(`^FROM \\S+ AS ${target}$`, 'm'));
});

test('docker-compose.yaml: each image has a version, and each host that a file names is a service', () => {
  const compose = read('deploy/docker-compose.yaml');
  const listed = [...compose.slice(compose.indexOf('\nservices:'), compose.indexOf('\nnetworks:')).matchAll(/^  ([a-z0-9-]+):(?: +#.*)?$/gm)].map(([, name]) => name);
  const services = new Set(listed);
  assert.deepEqual(listed, [...services], 'no service is there twice');
  assert.ok(services.size >= 8, listed.join());
  for (const [, image] of compose.matchAll(/^ +image: (\S+)$/gm)) assert.match(image, /^taskgate|:v?\d+\.\d+/, image);
  const files = ['docker-compose.yaml', 'compose/gateway/config.yaml', 'compose/prometheus.yaml', 'compose/grafana-source.yaml', 'compose/haproxy.cfg', 'compose/collector.yaml'];
  const named = files.flatMap((file) => [...read(`deploy/${file}`).matchAll(/(?:https?:\/\/|[ [@])([a-z][a-z0-9-]+)(?::\d{4}\b|\/taskgate$)/gm)].map(([, host]) => host));
  assert.ok(['server', 'collector', 'prometheus', 'gate-1', 'gate-2', 'database'].every((host) => named.includes(host)), named.join());
  for (const host of named) assert.ok(services.has(host), host);
  for (const name of services) if (name.startsWith('gate-')) assert.match(compose, new RegExp(`REPLICA: ${name}$`, 'm'));
});

test('docker-compose.yaml: the gateways send their traces where the collector listens, and share a network with it', () => {
  const compose = read('deploy/docker-compose.yaml');
  const [, port] = /endpoint: http:\/\/collector:(\d+)$/m.exec(read('deploy/compose/gateway/config.yaml'));
  assert.match(read('deploy/compose/collector.yaml'), new RegExp(`^ +http:\n +endpoint: 0\\.0\\.0\\.0:${port}$`, 'm'));
  const networksOf = (name) => new RegExp(`^(?:x-|  )${name}:.*\n(?:[ ]+.*\n)*?[ ]+networks: \\[(.*)\\]`, 'm').exec(compose)[1].split(', ');
  assert.ok(networksOf('gateway').includes('monitoring') && networksOf('collector').includes('monitoring'));
});

const SECRETS = { OPERATOR_TOKEN: 'a', DATABASE_PASSWORD: 'b', SHARED_KEY: 'c' };

test('docker-compose.yaml: docker-compose 1.29 takes it; the gateways have time to drain, come again, and see a file that is replaced', { skip: missing('docker-compose', 'apt-get install docker-compose') }, () => {
  const { status, stdout, stderr } = run('docker-compose', ['-f', inRoot('deploy/docker-compose.yaml'), 'config'], { env: { ...process.env, ...SECRETS } });
  assert.equal(status, 0, stderr);
  const sections = stdout.split(/^(?= {2}\S)/m);
  for (const name of ['gate-1', 'gate-2']) {
    const gate = sections.find((section) => section.startsWith(`  ${name}:`));
    assert.match(gate, /^ {4}restart: unless-stopped$/m);
    assert.match(gate, /^ {4}stop_grace_period: 30s$/m);
    assert.match(gate, new RegExp(`${inRoot('deploy/compose/gateway')}:/etc/thoughtgate:ro`));
  }
  assert.ok(existsSync(inRoot('deploy/compose/gateway/config.yaml')));
});

test('docker-compose.yaml: HAProxy takes its configuration', { skip: missing('haproxy', 'apt-get install haproxy') }, () => {
  const { status, stdout, stderr } = run('haproxy', ['-c', '-f', inRoot('deploy/compose/haproxy.cfg')]);
  assert.equal(status, 0, stdout + stderr);
  assert.doesNotMatch(stdout + stderr, /WARNING|ALERT/);
});

test('docker-compose.yaml: the gateway takes its configuration', { skip: withoutGateway }, () => {
  const environment = { PATH: process.env.PATH, OPERATOR_TOKEN: 'a-token-of-some-length', STORE_URL: 'postgres://taskgate:secret@database/taskgate', REPLICA: 'gate-1', REPLICA_KEY: 'ab'.repeat(32), STATE_KEY: 'ab'.repeat(32) };
  const { status, stderr } = run(gateway, ['check', '--strict', '--config', inRoot('deploy/compose/gateway/config.yaml')], { env: environment });
  assert.equal(status, 0, stderr);
});

test('docker-compose.yaml: Prometheus takes its configuration', { skip: missing('promtool', 'apt-get install prometheus') }, () => {
  const { status, stderr } = run('promtool', ['check', 'config', '--syntax-only', inRoot('deploy/compose/prometheus.yaml')]);
  assert.equal(status, 0, stderr);
});

test('the unit: it says when it is ready, a wrong configuration is not started again, and its times follow from those of the gateway', () => {
  const unit = Object.fromEntries([...read('deploy/taskgate.service').matchAll(/^(\w+)=(.*)$/gm)].map(([, key, value]) => [key, value]));
  const reference = read('docs/configuration.md');
  const seconds = (pattern) => Number(pattern.exec(reference)[1]);
  const lockWait = seconds(/`store\.lock_wait`[^`]*default `(\d+)s`/), drain = seconds(/`THOUGHTGATE_DRAIN_TIMEOUT_SECS` \(default `(\d+)`/), linger = seconds(/`THOUGHTGATE_SHUTDOWN_LINGER_SECS` \(default `(\d+)`/);
  assert.deepEqual([lockWait, drain, linger], [60, 25, 0]);
  const { Type, RestartPreventExitStatus, WatchdogSec, TimeoutStartSec, TimeoutStopSec } = unit;
  assert.deepEqual({ Type, RestartPreventExitStatus, TimeoutStartSec, TimeoutStopSec }, { Type: 'notify', RestartPreventExitStatus: '2', TimeoutStartSec: String(lockWait + 30), TimeoutStopSec: String(linger + drain + 5) });
  assert.ok(Number(WatchdogSec) > 0);
});

test('the unit: systemd takes it, and finds an exposure of at most 1.1', { skip: missing('systemd-analyze', 'apt-get install systemd') }, (t) => {
  const unit = path.join(temporaryFolder(t), 'taskgate.service');
  writeFileSync(unit, read('deploy/taskgate.service').replace('/usr/local/bin/taskgate', '/bin/true'));
  const verified = run('systemd-analyze', ['verify', '--man=no', unit]);
  assert.deepEqual([verified.status, verified.stderr], [0, '']);
  const { status, stdout, stderr } = run('systemd-analyze', ['security', '--offline=true', '--threshold=11', unit]);
  assert.equal(status, 0, stdout + stderr);
});
