// The plain manifests and the files of docker-compose.yaml: Kubernetes, kustomize, Prometheus and the gateway take them.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gateway, inRoot, manifestReader, missing, objectsOf, read, run, temporaryFolder, withoutGateway } from './lib/tools.mjs';

const SIDECAR = inRoot('deploy/kubernetes/sidecar.yaml');
const skip = manifestReader().why || false;

test('sidecar.yaml: every field is one of Kubernetes; a misspelt one is found', { skip }, (t) => {
  assert.deepEqual([...objectsOf(SIDECAR).keys()], ['ConfigMap taskgate', 'Deployment mcp-server', 'PersistentVolumeClaim taskgate-store', 'Service mcp-server', 'NetworkPolicy mcp-server']);
  const wrong = path.join(temporaryFolder(t), 'wrong.yaml');
  writeFileSync(wrong, read('deploy/kubernetes/sidecar.yaml').replace('restartPolicy: Always', 'restartPolcy: Always'));
  assert.throws(() => objectsOf(wrong), /restartPolcy/);
});

test('sidecar.yaml: a native sidecar, one token a person, bounds for both, an admin port that no Service has', { skip }, () => {
  const objects = objectsOf(SIDECAR);
  const pod = objects.get('Deployment mcp-server').spec.template.spec;
  const [sidecar, server] = [...pod.initContainers, ...pod.containers];
  assert.deepEqual([pod.initContainers.length, pod.containers.length, sidecar.restartPolicy], [1, 1, 'Always']);
  assert.equal(server.lifecycle.preStop.sleep.seconds, 30);
  assert.ok(pod.terminationGracePeriodSeconds >= 30 + 30 + 25);
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

test('docker-compose.yaml: every file it mounts is there, and every port is on the loopback', () => {
  const compose = read('deploy/docker-compose.yaml');
  const mounted = [...compose.matchAll(/^ +- (\.\/[^:]+):/gm)].map(([, file]) => file);
  assert.ok(mounted.length >= 6);
  for (const file of mounted) assert.ok(existsSync(inRoot('deploy', file)), file);
  const ports = [...compose.matchAll(/"([\d.:]+:\d+)"/g)].map(([, port]) => port);
  assert.ok(ports.length >= 4);
  for (const port of ports) assert.match(port, /^127\.0\.0\.1:/);
  for (const [, target] of compose.matchAll(/target: (\w+)/g)) assert.match(read('deploy/Dockerfile'), new RegExp(`^FROM \\S+ AS ${target}$`, 'm'));
});

test('docker-compose.yaml: the gateway takes its configuration, without a warning', { skip: withoutGateway }, () => {
  const { status, stderr } = run(gateway, ['check', '--strict', '--config', inRoot('deploy/compose/config.yaml')], { env: { PATH: process.env.PATH, OPERATOR_TOKEN: 'a-token-of-some-length' } });
  assert.deepEqual([status, stderr], [0, '']);
});

test('docker-compose.yaml: Prometheus takes its configuration', { skip: missing('promtool', 'apt-get install prometheus') }, () => {
  const { status, stderr } = run('promtool', ['check', 'config', '--syntax-only', inRoot('deploy/compose/prometheus.yaml')]);
  assert.equal(status, 0, stderr);
});
