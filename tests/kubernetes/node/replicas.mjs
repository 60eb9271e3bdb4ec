// Rolling upgrades of three replicas under load: nothing is lost.
import { test } from 'node:test';
import { AdminClient } from '../../integration/lib/admin.mjs';
import { postgresMissing } from '../../integration/lib/postgres.mjs';
import { startServers, upgradeUnderLoad } from '../../ship/lib/load.mjs';
import { ENVIRONMENT } from '../lib/chart.mjs';
import { IMAGE } from '../lib/node.mjs';
import { GATEWAY, OPERATORS, startDatabase, TOKEN } from './scene.mjs';

const UPGRADES = Number(process.env.TASKGATE_UPGRADES ?? 10);
const REPLICAS = 3;

export function replicaTests(stage) {
  test(`${UPGRADES} rolling upgrades of ${REPLICAS} replicas under load: nothing lost, no outcome unknown, no reset`, { skip: stage.skip || postgresMissing }, async (t) => {
    const { node } = stage;
    const url = await startDatabase(t, node);
    const { old, fresh, runs } = await startServers(t, node.outside);
    const ns = await node.namespace(t, 'replicas');
    await ns.secret('taskgate-operators', { alice: TOKEN });
    await ns.secret('database', { url: url('owner') });
    await ns.secret('between-us', { 'replica-key': ENVIRONMENT.TASKGATE_REPLICA_KEY, 'state-key': ENVIRONMENT.TASKGATE_STATE_KEY });
    const config = {
      sources: [{ id: 'old', kind: 'mcp', url: old.url }, { id: 'fresh', kind: 'mcp', url: fresh.url }],
      governance: { defaults: { action: 'forward' }, rules: [{ match: 'delete_*', action: 'approve' }] },
      pseudo_tools: { wait: '3s', wait_max: '3s' },
    };
    ns.helm({ ...IMAGE, replicas: REPLICAS, operators: OPERATORS, config, store: { postgres: { existingSecret: 'database' } }, replica: { existingSecret: 'between-us' } });
    await ns.allReady(GATEWAY, REPLICAS);
    const agents = await ns.balancer(t, 'gate', 7467), operators = await ns.balancer(t, 'gate', 7469);
    const scene = { runs, urlOf: (source) => `${agents}/${source}/mcp`, admin: new AdminClient(operators, TOKEN) };
    await upgradeUnderLoad(t, scene, UPGRADES, async () => {
      await ns.later('kubectl', 'rollout', 'restart', 'deployment/gate');
      await ns.later('kubectl', 'rollout', 'status', 'deployment/gate', '--timeout=180s');
    });
  });
}
