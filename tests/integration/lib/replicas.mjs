// Several gateways on one database, before one scripted server.
import { startGateway, workflow } from './gateway.mjs';
import { connectedRaw } from './client.mjs';
import { startUpstream, tool } from './upstream.mjs';

/** Options of a gateway whose store is `url`. */
export function onDatabase(url, { id, env = {}, config = {}, ...more }) {
  return {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    ...more,
    config: { store: { url: { env: 'GATE_DATABASE' } }, replica: { id }, ...config },
    env: { GATE_DATABASE: url, ...env },
  };
}

/** The upstream and a gateway for each id. Each is ready. */
export async function replicas(t, url, ids, { upstream: upstreamOptions = {}, ...options } = {}) {
  const upstream = await startUpstream(t, { tools: [tool('delete_user'), tool('read')], ...upstreamOptions });
  const gateways = [];
  for (const id of ids) gateways.push(await startGateway(t, { upstream: upstream.url, ...onDatabase(url, { id, ...options }) }));
  return { upstream, gateways };
}

/** A client of `gateway` with the token that owns its tasks at every replica. */
export const clientOf = (t, gateway, token = 'the-owner') => connectedRaw(t, gateway.url, { token });

