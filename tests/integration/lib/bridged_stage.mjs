// The stage of modern clients before a server that knows the legacy era alone: `bridge: modern`.
import { modernClient } from './modern_client.mjs';
import { scene } from './scene.mjs';

export const FORMS = { elicitation: { form: {} } };
export const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
export const OWNER = { authorization: 'Bearer owner' };
export const call = { name: 'read', arguments: { n: 1 } };
export const accept = (content = { partySize: 4 }) => ({ action: 'accept', content });

/** The stage before a legacy server. Of its requests those of the gateway's own session are left out. */
export async function stage(t, { source = {}, ...options } = {}) {
  const staged = await scene(t, { source: { bridge: 'modern', ...source }, ...options });
  const { upstream, gateway } = staged;
  const mine = (method) => upstream.requests.filter((r) => r.rpc?.method === method && r.rpc.params?.clientInfo?.name !== 'taskgate');
  return { ...staged, mine, modern: ({ headers = OWNER, ...more } = {}) => modernClient(t, gateway.url, { capabilities: {}, headers, ...more }) };
}
