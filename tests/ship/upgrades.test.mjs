// Ten rolling upgrades of three replicas behind HAProxy, under load of both eras: held calls, streams, calls of 20 s. Nothing is lost.
import { test } from 'node:test';
import { balancerMissing, startBalancer } from '../chaos/lib/balancer.mjs';
import { AdminClient } from '../integration/lib/admin.mjs';
import { ADMIN_TOKEN, workflow } from '../integration/lib/gateway.mjs';
import { postgresMissing, startPostgres } from '../integration/lib/postgres.mjs';
import { meet, startReplica, STATE_KEY } from '../integration/lib/relaying.mjs';
import { pause, startServers, upgradeUnderLoad } from './lib/load.mjs';

const UPGRADES = Number(process.env.TASKGATE_UPGRADES ?? 10);
const skip = postgresMissing || balancerMissing;
const IDS = ['p', 'q', 'r'];

async function stage(t) {
  const postgres = await startPostgres(t);
  const { old, fresh, runs } = await startServers(t);
  const url = postgres.createDatabase('upgrades');
  const gateways = [];
  const settings = { ...STATE_KEY, rules: [['delete_*', 'approve']], approval: workflow('10m'), config: { ...STATE_KEY.config, pseudo_tools: { wait: '3s', wait_max: '3s' } }, env: { ...STATE_KEY.env, THOUGHTGATE_SHUTDOWN_LINGER_SECS: '2' } };
  for (const id of IDS) gateways.push(await startReplica(t, { url: { old: old.url, fresh: fresh.url } }, url, id, settings));
  await meet(gateways);
  const balancer = await startBalancer(t, gateways, { host: () => '127.0.0.1' });
  return { gateways, runs, urlOf: (id) => balancer.urlOf(id), admin: new AdminClient(balancer.adminUrl, ADMIN_TOKEN) };
}

test(`${UPGRADES} rolling upgrades under load: nothing lost, no outcome unknown, no reset, -32013 to tasks/result alone`, { skip }, async (t) => {
  const scene = await stage(t);
  await upgradeUnderLoad(t, scene, UPGRADES, async () => {
    for (const gateway of scene.gateways) {
      await gateway.restart();
      await pause(1500); // until the balancer has seen it
    }
  });
});
