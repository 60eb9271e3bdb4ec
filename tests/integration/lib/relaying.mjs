// Replicas that relay to each other: two gateways that know each other's address, before one scripted server.
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { RawClient } from './client.mjs';
import { startGateway } from './gateway.mjs';
import { defer } from './lifetime.mjs';
import { freePort } from './ports.mjs';
import { onDatabase } from './replicas.mjs';
import { until } from './wait.mjs';

export const RELAY_KEY = 'a key that all replicas share, 0123456789';

/** One key for what modern clients keep, as replicas need it. */
export const STATE_KEY = { config: { state_key: { env: 'STATE_KEY' } }, env: { STATE_KEY: '5'.repeat(64) } };

/** Starts a gateway for each id on the database. They may not have heard of each other yet. `address: false`: they take no calls. */
export async function relaying(t, upstream, url, ids, { address = true, config = {}, env = {}, ...options } = {}) {
  const gateways = {};
  for (const id of ids) gateways[id] = await startReplica(t, upstream, url, id, { address, config, env, ...options });
  return gateways;
}

export async function startReplica(t, upstream, url, id, { address = true, config = {}, env = {}, ...options } = {}) {
  const port = await freePort();
  const replica = { id, ...(address ? { address: `http://127.0.0.1:${port}` } : {}), key_env: 'RELAY_KEY' };
  const gateway = await startGateway(t, { upstream: upstream.url, ...onDatabase(url, { id, ...options, config: { ...config, replica }, env: { RELAY_KEY, ...env } }) });
  gateway.relayPort = port;
  return gateway;
}

/** The same client with the same session, through another gateway. */
export function through(t, client, gateway) {
  const other = new RawClient(gateway.url, { headers: client.headers, capabilities: client.capabilities, protocol: client.protocol });
  other.session = client.session;
  other.initialized = true;
  other.lastId = 1000;
  defer(t, () => other.close());
  return other;
}

/** How often this gateway has relayed, by outcome. */
export async function relayed(gateway, outcome = 'relayed') {
  return (await gateway.admin.metrics())[`thoughtgate_relayed_requests_total{outcome="${outcome}"}`] ?? 0;
}

/** How many news of a kind this gateway has sent, lost or taken. */
export async function news(gateway, kind, outcome) {
  return (await gateway.admin.metrics())[`thoughtgate_replica_news_total{kind="${kind}",outcome="${outcome}"}`] ?? 0;
}

/** Until each knows where it reaches all the others: a reload at it is heard there. */
export async function meet(gateways) {
  for (const gateway of gateways) {
    const others = gateways.filter((other) => other !== gateway);
    const counts = () => Promise.all(others.map((other) => news(other, 'tools_changed', 'taken')));
    const before = await counts();
    await until(async () => {
      gateway.hangUp();
      return (await counts()).every((count, i) => count > before[i]);
    }, 'the replicas to know each other', { deadline: 20_000, every: 300 });
  }
}

const sha256 = (text) => createHash('sha256').update(text).digest('hex');
const part = (text) => `${Buffer.byteLength(text)}:${text}\n`;

/** The signature header of a request, as a replica writes it. `headers`: [[name, value], …] as they are sent. */
export function signature({ from, to, epoch = 1, time = Date.now(), nonce = randomBytes(16).toString('hex'), method, target, headers, body = '', key = RELAY_KEY }) {
  const text = [
    part('taskgate relay v1'),
    part(method),
    part(target),
    part(sha256(body)),
    part(sha256(headers.map(([name, value]) => part(name) + part(value)).join(''))),
    part(from),
    part(to),
    `${epoch}\n${time}\n`,
    part(nonce),
  ].join('');
  return `v1 ${from} ${to} ${epoch} ${time} ${nonce} ${createHmac('sha256', key).update(text).digest('hex')}`;
}
