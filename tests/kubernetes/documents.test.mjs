// docs/kubernetes.md: the chart and kustomize take its values, and its commands run at an API server where there is one.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gateway, inRoot, missing, read, run, temporaryFolder, withoutGateway } from '../deploy/lib/tools.mjs';
import { blocks } from '../docs/lib/documents.mjs';
import { CHART, complete, ENVIRONMENT } from './lib/chart.mjs';
import { place, startServer } from './lib/cluster.mjs';
import { manifestReader, objectsOf } from './lib/objects.mjs';

const DOCUMENT = 'docs/kubernetes.md';
const found = blocks(read(DOCUMENT));
const values = found.filter(({ language, text }) => language === 'yaml' && !text.startsWith('resources:'));
const kustomizations = found.filter(({ language, text }) => language === 'yaml' && text.startsWith('resources:'));
const withoutHelm = missing('helm', 'the chart is not rendered') || manifestReader().why || false;
const withoutKustomize = missing('kustomize', 'the component is not built') || manifestReader().why || false;

test('the chart takes each block of values, and the gateway the configuration that comes of it', { skip: withoutHelm || withoutGateway }, (t) => {
  assert.ok(values.length >= 3);
  const folder = temporaryFolder(t);
  const own = path.join(folder, 'own.json'), file = path.join(folder, 'values.yaml'), made = path.join(folder, 'made.yaml'), config = path.join(folder, 'config.yaml');
  writeFileSync(own, JSON.stringify(complete({})));
  for (const { text, line } of values) {
    writeFileSync(file, text);
    const { status, stdout, stderr } = run('helm', ['template', 'gate', CHART, '--kube-version', '1.34.0', '--values', own, '--values', file]);
    assert.equal(status, 0, `line ${line}: ${stderr}`);
    writeFileSync(made, stdout);
    writeFileSync(config, objectsOf(made).get('ConfigMap gate').data['config.yaml']);
    const checked = run(gateway, ['check', '--config', config], { env: ENVIRONMENT });
    assert.equal(checked.status, 0, `line ${line}: ${checked.stderr}`);
  }
});

test('the kustomization in it makes what the example makes', { skip: withoutKustomize }, (t) => {
  assert.equal(kustomizations.length, 1);
  const folder = temporaryFolder(t);
  cpSync(inRoot('deploy/kubernetes'), folder, { recursive: true });
  const example = path.join(folder, 'example'), mine = path.join(folder, 'mine');
  cpSync(example, mine, { recursive: true });
  writeFileSync(path.join(mine, 'kustomization.yaml'), kustomizations[0].text);
  const [theirs, ours] = [example, mine].map((name) => run('kustomize', ['build', name]));
  assert.deepEqual([theirs.status, ours.status], [0, 0], theirs.stderr + ours.stderr);
  // The example names another registry.
  assert.equal(ours.stdout, theirs.stdout.replace('registry.example/taskgate', 'example.org/taskgate'));
});

test('its commands make the Secrets and the release, at an API server', { skip: place().why || withoutHelm || missing('kubectl', 'the commands are not run') }, async (t) => {
  const server = await startServer(place());
  t.after(() => server.stop());
  const folder = temporaryFolder(t);
  mkdirSync(path.join(folder, 'deploy'));
  cpSync(CHART, path.join(folder, 'deploy/helm/taskgate'), { recursive: true, dereference: true });
  cpSync(inRoot('deploy/kubernetes'), path.join(folder, 'deploy/kubernetes'), { recursive: true });
  writeFileSync(path.join(folder, 'values.yaml'), values.find(({ text }) => text.startsWith('mode: sidecar')).text);
  const env = { ...process.env, HOME: folder, KUBECONFIG: server.kubeconfig };
  const bash = (text) => run('bash', ['-euc', text], { cwd: folder, env });
  const ran = [];
  for (const { text, line } of found.filter(({ language }) => language === 'sh')) {
    if (text.includes('docker compose')) continue; // deploy/services.test.mjs has its file
    const commands = text.replace(/\\\n */g, '').trimEnd().split('\n');
    for (const command of commands) {
      const forwarded = /^kubectl port-forward (\S+) /.exec(command)?.[1];
      const { status, stderr } = bash(forwarded ? `kubectl get ${forwarded}` : command); // no pod runs to which it could lead
      assert.equal(status, 0, `line ${line}: ${command}\n${stderr}`);
      ran.push(command.split(' ').slice(0, 2).join(' '));
    }
  }
  assert.deepEqual(ran, ['kubectl create', 'helm install', 'kubectl port-forward', 'kubectl create', 'kubectl create']);
  const applied = /`(kubectl apply -k \S+)`/.exec(read(DOCUMENT))[1];
  assert.equal(bash(applied).status, 0, applied);
  const named = JSON.parse(bash('kubectl get secrets,statefulsets -o json').stdout).items.filter(({ type }) => type !== 'helm.sh/release.v1');
  const shown = named.map(({ kind, metadata, data }) => `${kind} ${metadata.name}${data ? `: ${Object.keys(data).sort().join()}` : ''}`);
  assert.deepEqual(shown.sort(), [
    'Secret taskgate-database: url',
    'Secret taskgate-operators: alice',
    'Secret taskgate-replica: replica-key,state-key',
    'StatefulSet gate',
    'StatefulSet mcp-server',
  ]);
});
