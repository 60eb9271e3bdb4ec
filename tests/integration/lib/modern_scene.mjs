// The stage of a modern test: a modern-only upstream, the gateway before it, raw modern clients on demand.
import { modernClient } from './modern_client.mjs';
import { modernUpstream } from './modern_upstream.mjs';
import { scene } from './scene.mjs';

/** `upstream` are the options of `modernUpstream`; everything else is the gateway's. */
export async function modernScene(t, { upstream = {}, ...gatewayOptions } = {}) {
  const stage = await scene(t, { upstream: modernUpstream(upstream), ...gatewayOptions });
  return { ...stage, modern: (options) => modernClient(t, stage.gateway.url, options) };
}
