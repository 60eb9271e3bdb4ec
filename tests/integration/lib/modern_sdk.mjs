// The official clients of the modern era: SDK 2.4, and its package for the tasks extension.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';
import { defer } from './lifetime.mjs';
import { MODERN, modernClient } from './modern_client.mjs';

const INFO = { name: 'modern-sdk-client', version: '1.0.0' };

/** How the SDK's client may settle on a revision; without a word it speaks the legacy ones alone. */
export const MODES = { modern: { versionNegotiation: { mode: { pin: MODERN } } }, auto: { versionNegotiation: { mode: 'auto' } }, legacy: {} };

/** A connected SDK client, which speaks 2026-07-28 and nothing else unless `mode` says otherwise. */
export async function modernSdkClient(t, url, { mode = 'modern', capabilities = {}, headers = {}, prepare } = {}) {
  const client = new Client(INFO, { capabilities, ...MODES[mode] });
  prepare?.(client);
  defer(t, () => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
}

/** A session of ext-tasks over such a client; its requests of the extension are sent as they are. */
export async function taskSession(t, url, { capabilities = {}, ...options } = {}) {
  const client = await modernSdkClient(t, url, { capabilities });
  const raw = modernClient(t, url, { capabilities, info: INFO });
  const rawDispatch = async ({ method, params }) => {
    const id = ++raw.lastId;
    const { message } = await raw.send(method, {}, { id, body: JSON.stringify({ jsonrpc: '2.0', id, method, params }), headers: raw.mirror({ method, params }) });
    return message.error ? { kind: 'error', error: message.error } : { kind: 'result', result: message.result };
  };
  const session = createTaskSessionFromClient(client, { endpointId: 'taskgate', rawDispatch, v2RequestFraming: { protocolVersion: MODERN, clientInfo: INFO, clientCapabilities: capabilities }, ...options });
  defer(t, () => session.close());
  return session;
}
