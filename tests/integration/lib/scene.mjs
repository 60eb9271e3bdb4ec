// The usual stage of a test: a scripted upstream, the gateway before it, clients on demand.
import { connectedRaw, rawClient, sdkClient } from './client.mjs';
import { startGateway } from './gateway.mjs';
import { startUpstream } from './upstream.mjs';

/** `upstream` are the scripted upstream's options; everything else is the gateway's. */
export async function scene(t, { upstream: upstreamOptions, ...gatewayOptions } = {}) {
  const upstream = await startUpstream(t, upstreamOptions);
  const gateway = await startGateway(t, { upstream: upstream.url, ...gatewayOptions });
  return {
    upstream,
    gateway,
    admin: gateway.admin,
    raw: (options) => rawClient(t, gateway.url, options),
    connect: (options) => connectedRaw(t, gateway.url, options),
    sdk: (options) => sdkClient(t, gateway.url, options),
  };
}
