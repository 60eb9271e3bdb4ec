// The stage of the chaos: a database, a server, replicas in networks of their own, a balancer, clients of both eras.
import { setTimeout as pause } from 'node:timers/promises';
import { Clock, clocksMissing } from '../faults/lib/clock.mjs';
import { Ledger } from '../faults/lib/ledger.mjs';
import { Traffic } from '../faults/lib/traffic.mjs';
import { ADMIN_TOKEN, startGateway, temporaryFolder, workflow } from '../integration/lib/gateway.mjs';
import { defer } from '../integration/lib/lifetime.mjs';
import { freePort } from '../integration/lib/ports.mjs';
import { startPostgres } from '../integration/lib/postgres.mjs';
import { generator } from '../integration/lib/random.mjs';
import { onDatabase } from '../integration/lib/replicas.mjs';
import { startUpstream, tool } from '../integration/lib/upstream.mjs';
import { LegacyAgent, ModernAgent, Operator } from './lib/anywhere.mjs';
import { startBalancer } from './lib/balancer.mjs';
import { startNetwork } from './lib/network.mjs';
import { startWire } from './lib/wire.mjs';

export const REPLICAS = 3;
const RULES = [
  { match: 'delete_*', action: 'approve', approval: 'default' },
  { match: 'purge_*', action: 'approve', approval: 'default', execution: 'on_result' },
  { match: 'drop_*', action: 'approve', approval: 'brief' },
];

async function startReplica(t, place, number) {
  const { network } = place;
  const wire = await startWire(t, place.database.socket, network.outside);
  const clock = clocksMissing ? undefined : new Clock(temporaryFolder(t));
  const host = network.host(number);
  const options = onDatabase(`postgres://postgres@${network.outside}:${wire.port}/gate`, {
    rules: RULES,
    approval: { ...workflow('10m'), brief: workflow('5s').default },
    config: {
      proxy: { bind: host },
      state_key: { env: 'STATE_KEY' },
      replica: { id: `replica-${number}`, address: `http://${host}:${await freePort()}`, key_env: 'REPLICA_KEY' },
      limits: { pending_per_principal: 100_000, pending_total: 100_000 },
    },
    env: {
      STATE_KEY: 'ab'.repeat(32),
      REPLICA_KEY: 'cd'.repeat(32),
      THOUGHTGATE_ADMIN_BIND: host,
      THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '2',
      THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '2',
      ...clock?.environment,
    },
  });
  const replica = await startGateway(t, { upstream: place.upstream.url, source: { bridge: 'both' }, host, wrapper: network.wrapper(number), ...options });
  return Object.assign(replica, { number, wire, clock });
}

/** Six clients of the legacy era with a token and two without, and four of the modern era. */
async function admitClients(t, { balancer: { url } }) {
  const clients = [];
  for (const token of ['A', 'B', 'C', 'D', 'E', 'F', undefined, undefined]) {
    const client = new LegacyAgent(url, { token });
    defer(t, () => client.close());
    await client.connect();
    clients.push(client);
  }
  for (const token of ['K', 'L', 'M', 'N']) {
    const client = new ModernAgent(url, { token });
    defer(t, () => client.close());
    await client.discover();
    clients.push(client);
  }
  return clients;
}

export async function setTheStage(t) {
  const place = { t, ledger: new Ledger(), random: generator(), problems: [], executing: new Set(), hits: 0 };
  place.network = startNetwork(t, REPLICAS);
  place.database = await startPostgres(t);
  const tools = ['delete_user', 'purge_user', 'drop_user', 'read'].map((name) => tool(name));
  place.upstream = await startUpstream(t, { tools, address: place.network.outside });
  place.upstream.handlers['tools/call'] = (call) => answerCall(place, call);
  place.replicas = [];
  for (let number = 1; number <= REPLICAS; number++) place.replicas.push(await startReplica(t, place, number));
  place.balancer = await startBalancer(t, place.replicas, place.network);
  place.operator = new Operator(place.balancer.adminUrl, ADMIN_TOKEN);
  place.clients = await admitClients(t, place);
  return place;
}

async function answerCall({ ledger, random, problems, executing }, { recorded, params, reply }) {
  const { marker } = params.arguments;
  try {
    ledger.called(marker);
  } catch (error) {
    problems.push(error);
  }
  const call = { from: recorded.from };
  if (params.name !== 'read') executing.add(call);
  // Many take long enough to be executed while their replica dies.
  await pause(random() * (random() < 0.5 ? 1500 : 20));
  executing.delete(call);
  reply.result({ content: [{ type: 'text', text: `did ${marker}` }] });
}

/** Most tasks are decided at once; no check waits for an undecided one. */
export const ttlOf = (marker) => (Traffic.fate(marker) ? 30_000 : 1500);
