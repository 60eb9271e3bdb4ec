// The sets of values that the tests of the chart render.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { inRoot, run, temporaryFolder } from '../../deploy/lib/tools.mjs';

export const CHART = inRoot('deploy/helm/taskgate');
const ADDRESS = 'http://mcp-server:3000/mcp';
/** Written by everybody: without it the chart refuses. */
const OWN = { sources: [{ id: 'main', kind: 'mcp', url: ADDRESS }], governance: { defaults: { action: 'approve' }, rules: [{ match: 'get_*', action: 'forward' }] } };
export const SIDECAR = {
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
export const EVERYTHING = {
  ...SIDECAR,
  tls: { proxySecret: 'proxy-tls', adminSecret: 'admin-tls' },
  networkPolicy: { agents: [{ podSelector: { matchLabels: { agent: 'yes' } } }], admin: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }] },
  podDisruptionBudget: { enabled: true },
  metrics: { serviceMonitor: { enabled: true, from: [{ namespaceSelector: { matchLabels: { name: 'prometheus' } } }], labels: { release: 'prometheus' } }, alerts: { enabled: true }, dashboard: { enabled: true } },
  store: { storageClass: 'fast', size: '5Gi' },
  podLabels: { team: 'a' },
  podAnnotations: { note: 'b' },
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ key: 'a', operator: 'Exists' }],
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'disk', operator: 'Exists' }] }] } } },
};

export const REPLICAS = {
  replicas: 3,
  store: { postgres: { existingSecret: 'database', migration: { existingSecret: 'database-owner', urlKey: 'owner-url', grantTo: 'gate' } } },
  replica: { existingSecret: 'between-us' },
  podDisruptionBudget: { enabled: true },
  networkPolicy: { egress: { enabled: true, database: [{ podSelector: { matchLabels: { app: 'postgres' } } }], rules: [{ to: [{ podSelector: { matchLabels: { app: 'mcp-server' } } }], ports: [{ port: 3000 }] }] } },
};
export const KEY = { stateKey: { existingSecret: 'sealing' } };
export const COLLECTOR = { telemetry: { enabled: true, endpoint: 'http://collector:4318', sampleRate: 0.1, resource: { team: 'a' }, headersSecret: 'collector' } };
export const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;
export const MORE = {
  image: { tag: '1.2.3', digest: DIGEST },
  extraEnv: [{ name: 'GREETING', value: 'hello' }],
  envFrom: [{ configMapRef: { name: 'settings' } }],
  extraVolumes: [{ name: 'scratch', emptyDir: {} }],
  extraVolumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
  priorityClassName: 'high',
  serviceAccount: { create: true, annotations: { 'cloud.example/role': 'gate' } },
};
const CEDAR = 'permit (principal, action, resource);\n\n// The end, without a line feed.';
const FILES = { config: { cedar: { policies: ['rules.cedar'] }, governance: { defaults: { action: 'policy' } } }, files: { 'rules.cedar': CEDAR, 'ca.pem': 'a\n' } };
export const OPENSHIFT = { podSecurityContext: { fsGroup: null }, securityContext: { runAsUser: null, runAsGroup: null } };
export const PUBLISHED = {
  service: { type: 'LoadBalancer', annotations: { 'balancer.example/internal': 'true' } },
  ingress: { enabled: true, className: 'nginx', annotations: { 'nginx.ingress.kubernetes.io/proxy-buffering': 'off' }, hosts: ['gate.example'], tls: [{ secretName: 'gate-tls', hosts: ['gate.example'] }] },
  config: { proxy: { allowed_hosts: ['gate.example'] } },
  extraObjects: [
    {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: '{{ .Release.Name }}' },
      spec: { maxReplicas: 5, scaleTargetRef: { apiVersion: 'apps/v1', kind: '{{ include "taskgate.kind" . }}', name: '{{ include "taskgate.name" . }}' } },
    },
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-more\ndata:\n  port: {{ .Values.service.port | quote }}\n',
  ],
};
export const SERVER = {
  ...SIDECAR,
  server: {
    image: 'example.org/server:1',
    args: ['--port', '3000'],
    shareProcessNamespace: true,
    container: { ports: [{ name: 'own', containerPort: 3000 }], args: ['--quiet'], resources: { limits: { memory: '1Gi' } }, lifecycle: { postStart: { exec: { command: ['true'] } } } },
  },
};
export const SETS = {
  gateway: {},
  'a state key': KEY,
  sidecar: SIDECAR,
  'everything at once': EVERYTHING,
  replicas: REPLICAS,
  telemetry: COLLECTOR,
  'variables, volumes, an account': MORE,
  'files beside the configuration': FILES,
  OpenShift: { ...REPLICAS, ...OPENSHIFT },
  'an Ingress and objects': PUBLISHED,
  'more of the server': SERVER,
};

/** The environment that the Secrets and the pod give the gateway. */
export const ENVIRONMENT = {
  PATH: process.env.PATH,
  TASKGATE_TOKEN_ALICE: 'a-token-of-alice-alone',
  TASKGATE_TOKEN_BOB_B: 'a-token-of-bob-alone',
  CRM_KEY: 'key',
  TASKGATE_STORE_URL: 'postgres://gate:secret@db/gate',
  TASKGATE_REPLICA_KEY: '0123456789abcdef'.repeat(4),
  TASKGATE_STATE_KEY: '0123456789abcdef'.repeat(4),
  OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20token',
  POD_NAME: 'gate-5d8f-x2x',
  POD_IP: '10.1.2.3',
};

export const complete = (values) => ({ ...values, config: { ...OWN, ...values.config } });

export function template(t, values, ...more) {
  const file = path.join(temporaryFolder(t), 'values.json');
  writeFileSync(file, JSON.stringify(complete(values)));
  return run('helm', ['template', 'gate', CHART, '--namespace', 'agents', '--kube-version', '1.34.0', '--values', file, ...more]);
}
