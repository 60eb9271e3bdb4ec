// The unit and the files of docker-compose.yaml: systemd, HAProxy, Prometheus and the gateway take them.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gateway, inRoot, missing, read, run, temporaryFolder, withoutGateway } from './lib/tools.mjs';

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
