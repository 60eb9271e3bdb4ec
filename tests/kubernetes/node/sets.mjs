// Each set of values starts, and `helm test` finds it ready.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../deploy/lib/tools.mjs';
import { Authority } from '../../integration/lib/certificates.mjs';
import { connectedRaw } from '../../integration/lib/client.mjs';
import { postgresMissing } from '../../integration/lib/postgres.mjs';
import { complete, ENVIRONMENT, SETS } from '../lib/chart.mjs';
import { IMAGE, SERVER_IMAGE } from '../lib/node.mjs';
import { GATEWAY, mcp, startDatabase } from './scene.mjs';

const LISTEN = ['--port', '3000'];
const RESTRICTED = { runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, seccompProfile: { type: 'RuntimeDefault' } };

/** The Secrets and the rest that the sets name. */
async function surroundings(t, ns, url) {
  const { cert, key: privateKey } = new Authority(temporaryFolder(t)).issue('gate', { san: 'DNS:gate-test' });
  const tls = { 'tls.crt': cert, 'tls.key': privateKey };
  const key = ENVIRONMENT.TASKGATE_STATE_KEY;
  const secrets = {
    'taskgate-operators': { alice: ENVIRONMENT.TASKGATE_TOKEN_ALICE },
    ops: { alice: ENVIRONMENT.TASKGATE_TOKEN_ALICE, bob: ENVIRONMENT.TASKGATE_TOKEN_BOB_B },
    crm: { 'api-key': ENVIRONMENT.CRM_KEY },
    sealing: { 'state-key': key },
    'between-us': { 'replica-key': ENVIRONMENT.TASKGATE_REPLICA_KEY, 'state-key': key },
    collector: { headers: ENVIRONMENT.OTEL_EXPORTER_OTLP_HEADERS },
    database: { url: url?.('gate') ?? '' },
    'database-owner': { 'owner-url': url?.('owner') ?? '' },
    'proxy-tls': tls,
    'admin-tls': tls,
  };
  for (const [name, data] of Object.entries(secrets)) await ns.secret(name, data);
  await ns.make('configmaps', { kind: 'ConfigMap', metadata: { name: 'settings' }, data: { SETTING: 'a' } });
  const labels = { app: 'mcp-server' };
  const container = { name: 'server', image: SERVER_IMAGE, args: ['--host', '0.0.0.0', ...LISTEN], securityContext: RESTRICTED };
  await ns.make('pods', { kind: 'Pod', metadata: { name: 'mcp-server', labels }, spec: { automountServiceAccountToken: false, containers: [container] } });
  await ns.make('services', { kind: 'Service', metadata: { name: 'mcp-server' }, spec: { selector: labels, ports: [{ port: 3000 }] } });
}

/** What the cluster of a set has beside its namespace. */
async function once(node) {
  const crd = (kind, plural) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.monitoring.coreos.com` },
    spec: { group: 'monitoring.coreos.com', scope: 'Namespaced', names: { kind, plural }, versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } } }] },
  });
  for (const [kind, plural] of [['ServiceMonitor', 'servicemonitors'], ['PrometheusRule', 'prometheusrules']]) await node.make('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd(kind, plural));
  for (const plural of ['servicemonitors', 'prometheusrules']) node.kubectl('wait', '--for=condition=Established', `crd/${plural}.monitoring.coreos.com`, '--timeout=60s');
  await node.make('/apis/scheduling.k8s.io/v1/priorityclasses', { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'high' }, value: 1000 });
}

/** The set on this node: its image, its server, and words that this server knows. */
function adapted(values) {
  const made = { ...complete(values), ...IMAGE };
  if (values.server) {
    const { container = {} } = values.server;
    made.server = { ...values.server, image: SERVER_IMAGE, args: LISTEN };
    if (values.server.container) made.server.container = { ...container, args: LISTEN, lifecycle: { postStart: { exec: { command: ['/server', '--help'] } } } };
  }
  return made;
}

export function setTests(stage) {
  const { skip } = stage;
  let isPrepared = false;

  for (const [number, [name, values]] of Object.entries(SETS).entries()) {
    const isShared = values.store?.postgres !== undefined;
    test(`the chart, ${name}: each pod is ready without a restart, and helm test says so`, { skip: skip || (isShared && postgresMissing) }, async (t) => {
      const { node } = stage;
      if (!isPrepared) await once(node);
      isPrepared = true;
      const ns = await node.namespace(t, `set-${number}`);
      await surroundings(t, ns, isShared ? await startDatabase(t, node) : undefined);
      await ns.ready('app=mcp-server');
      if (!isShared) await ns.volume('gate', values.store?.storageClass);
      ns.helm(adapted(values));
      const pods = await ns.allReady(GATEWAY, values.replicas ?? 1);
      assert.deepEqual(pods.map(({ restarts }) => restarts), pods.map(() => 0));
      const { status, text } = await node.later('helm', 'test', 'gate', '--namespace', ns.name, '--timeout', '60s');
      assert.equal(status, 0, text);
      if (values.tls?.proxySecret) return; // the certificate does not name the pod's address
      const [host] = values.config?.proxy?.allowed_hosts ?? [];
      for (const pod of pods) {
        const client = await connectedRaw(t, mcp(pod), host && { headers: { host } });
        const { tools } = await client.result('tools/list', {});
        assert.ok(tools.some((tool) => tool.name === 'get_time'), JSON.stringify(tools));
      }
    });
  }
}
