// The stage of the chaos: a database, a server, replicas in networks of their own, a balancer, clients of both eras.
import { setTimeout as pause } from 'node:timers/promises';
import { Clock, clocksMissing } from '../faults/lib/clock.mjs';
import { Traffic } from '../faults/lib/traffic.mjs';
import { ADMIN_TOKEN, startGateway, temporaryFolder, workflow } from '../integration/lib/gateway.mjs';
import { defer } from '../integration/lib/lifetime.mjs';
import { freePort } from '../integration/lib/ports.mjs';
import { startPostgres } from '../integration/lib/postgres.mjs';
import { generator } from '../integration/lib/random.mjs';
import { onDatabase } from '../integration/lib/replicas.mjs';
import { startUpstream, tool } from '../integration/lib/upstream.mjs';
import { LegacyAgent, ModernAgent, Operator } from './lib/anywhere.mjs';
import { ASKING, askingUpstream } from './lib/asked_traffic.mjs';
import { startBalancer } from './lib/balancer.mjs';
import { GRANTED_TOOL } from './lib/granted_traffic.mjs';
import { ChaosLedger, GRANT_CALLS, QUORUM } from './lib/ledger.mjs';
import { startNetwork } from './lib/network.mjs';
import { PERSONS, VOTED_TOOL } from './lib/voted_traffic.mjs';
import { startWire } from './lib/wire.mjs';

export const REPLICAS = 3;
const approve = (match, approval, more) => ({ match, action: 'approve', approval, ...more });
const RULES = [
  approve('delete_*', 'default'),
  approve('purge_*', 'default', { execution: 'on_result' }),
  approve('drop_*', 'brief'),
  approve(VOTED_TOOL, 'two'),
  approve(GRANTED_TOOL, 'granting'),
  approve(ASKING.decided, 'default'),
  approve(ASKING.left, 'brief'),
];
const WORKFLOWS = {
  ...workflow('10m'),
  brief: workflow('5s').default,
  two: workflow('10m', { quorum: QUORUM }).default,
  granting: workflow('10m', { grants: { max: '1h', max_calls: GRANT_CALLS, vary: ['marker'] } }).default,
};
const PEOPLE = {
  people: PERSONS.map((name) => ({ name })),
  tokens: PERSONS.map((name) => ({ name: `${name}-cli`, person: name, token_env: name.toUpperCase(), roles: ['approver', 'viewer'] })),
};
const TOKENS = Object.fromEntries(PERSONS.map((name) => [name.toUpperCase(), `the-token-of-the-approver-${name}`]));

async function startReplica(t, place, number) {
  const { network } = place;
  const wire = await startWire(t, place.database.socket, network.outside);
  const clock = clocksMissing ? undefined : new Clock(temporaryFolder(t));
  const host = network.host(number);
  const options = onDatabase(`postgres://postgres@${network.outside}:${wire.port}/gate`, {
    rules: RULES,
    approval: WORKFLOWS,
    config: {
      proxy: { bind: host },
      admin: PEOPLE,
      state_key: { env: 'STATE_KEY' },
      replica: { id: `replica-${number}`, address: `http://${host}:${await freePort()}`, key_env: 'REPLICA_KEY' },
      // Held calls and questions end before the patience of their clients, and before a leg is over.
      pseudo_tools: { promote: 'wait', only: 'all', wait: '2s', wait_max: '2s', rounds: 9 },
      pseudo_tasks: { elicitation_timeout: '15s' },
      limits: { pending_per_principal: 100_000, pending_total: 100_000 },
    },
    env: {
      STATE_KEY: 'ab'.repeat(32),
      REPLICA_KEY: 'cd'.repeat(32),
      THOUGHTGATE_ADMIN_BIND: host,
      THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '2',
      THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '2',
      // Longer than an execution, and shorter than a call waits for its votes.
      THOUGHTGATE_DRAIN_TIMEOUT_SECS: '3',
      ...TOKENS,
      ...clock?.environment,
    },
  });
  const replica = await startGateway(t, { upstream: { plain: place.upstream.url, asking: place.asking.url }, source: { bridge: 'both' }, host, wrapper: network.wrapper(number), ...options });
  return Object.assign(replica, { number, wire, clock });
}

/** Clients of each kind, by their tokens, and whether they are modern. Those that ask for something have a source of their own. */
const CLIENTS = [
  { kind: 'legacy', tokens: ['A', 'B', 'C', 'D', undefined] },
  { kind: 'voted', tokens: ['G', 'H'] },
  { kind: 'granted', tokens: ['I', 'J', 'R', 'S'] },
  { kind: 'modern', tokens: ['K', 'L', 'M'], isModern: true },
  { kind: 'asked', tokens: ['N', 'O'], isModern: true, source: 'asking' },
  { kind: 'held', tokens: ['P', 'Q'], isModern: true, source: 'asking', capabilities: { elicitation: {} } },
];

async function admitClients(t, { balancer }) {
  const clients = [];
  for (const { kind, tokens, isModern = false, source = 'plain', ...more } of CLIENTS)
    for (const token of tokens) {
      const client = new (isModern ? ModernAgent : LegacyAgent)(balancer.urlOf(source), { token, ...more });
      defer(t, () => client.close());
      await (isModern ? client.discover() : client.connect());
      clients.push(Object.assign(client, { kind }));
    }
  return clients;
}

export async function setTheStage(t) {
  const place = { t, ledger: new ChaosLedger(), random: generator(), problems: [], began: performance.now(), executing: new Set(), hits: 0 };
  place.network = startNetwork(t, REPLICAS);
  place.database = await startPostgres(t);
  const tools = ['delete_user', 'purge_user', 'drop_user', 'read', VOTED_TOOL, GRANTED_TOOL].map((name) => tool(name));
  place.upstream = await startUpstream(t, { tools, address: place.network.outside });
  place.upstream.handlers['tools/call'] = (call) => answerCall(place, call);
  place.asking = await startUpstream(t, askingUpstream({ ...place, address: place.network.outside, work: (recorded, name) => workOn(place, recorded, name) }));
  place.replicas = [];
  for (let number = 1; number <= REPLICAS; number++) place.replicas.push(await startReplica(t, place, number));
  place.balancer = await startBalancer(t, place.replicas, place.network);
  place.operator = new Operator(place.balancer.adminUrl, ADMIN_TOKEN);
  place.persons = new Map(PERSONS.map((name) => [name, new Operator(place.balancer.adminUrl, TOKENS[name.toUpperCase()])]));
  place.clients = await admitClients(t, place);
  return place;
}

async function answerCall(place, { recorded, params, reply }) {
  const { marker } = params.arguments;
  try {
    place.ledger.called(marker);
  } catch (error) {
    place.problems.push(error);
  }
  await workOn(place, recorded, params.name);
  reply.result({ content: [{ type: 'text', text: `did ${marker}` }] });
}

/** Many calls take long enough to be executed while their replica dies. */
async function workOn({ random, executing }, { from }, name) {
  const call = { from };
  if (name !== 'read') executing.add(call);
  await pause(random() * (random() < 0.5 ? 1500 : 20));
  executing.delete(call);
}

/** Most tasks are decided at once; no check waits for an undecided one. */
export const ttlOf = (marker) => (Traffic.fate(marker) ? 30_000 : 1500);
