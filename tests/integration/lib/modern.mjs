// The modern era (2026-07-28) byte by byte: a client that sends exactly what a test says, and a scripted server.
import { rawClient } from './client.mjs';
import { scene } from './scene.mjs';
import { tool } from './upstream.mjs';

export const VERSION = '2026-07-28';
export const PREFIX = 'io.modelcontextprotocol/';
export const TASKS_EXTENSION = `${PREFIX}tasks`;

/** The `_meta` of a modern request; `undefined` members are left out. */
export function envelope({ version = VERSION, capabilities = {}, client = { name: 'modern-client', version: '1.0.0' }, ...more } = {}) {
  return {
    ...(version === undefined || version === null ? {} : { [`${PREFIX}protocolVersion`]: version }),
    ...(capabilities === null ? {} : { [`${PREFIX}clientCapabilities`]: capabilities }),
    ...(client === null ? {} : { [`${PREFIX}clientInfo`]: client }),
    ...more,
  };
}

const named = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri', 'tasks/get': 'taskId', 'tasks/update': 'taskId', 'tasks/cancel': 'taskId' };

/** The headers that mirror a request; those of `more` win, `undefined` takes one away. */
export function mirrored(method, params = {}, more = {}) {
  const name = named[method] && params[named[method]];
  return { 'mcp-protocol-version': VERSION, 'mcp-method': method, ...(name === undefined ? {} : { 'mcp-name': name }), ...more };
}

/** A raw client whose requests are modern: `send(method, params, {meta, headers, id, body})`. */
export function modernClient(t, url, { capabilities, ...options } = {}) {
  const client = rawClient(t, url, options);
  const send = client.send.bind(client);
  client.declared = capabilities;
  client.send = (method, params = {}, { meta, headers, ...more } = {}) =>
    send(method, meta === null ? params : { ...params, _meta: { ...envelope(client.declared ? { capabilities: client.declared } : {}), ...meta } }, { headers: mirrored(method, params, headers), ...more });
  const stream = client.stream.bind(client);
  client.stream = (method, params = {}, { meta, headers, ...more } = {}) =>
    stream(method, { ...params, _meta: { ...envelope(client.declared ? { capabilities: client.declared } : {}), ...meta } }, { headers: mirrored(method, params, headers), ...more });
  return client;
}

export const SERVER_INFO = { [`${PREFIX}serverInfo`]: { name: 'modern-upstream', version: '1.0.0' } };

/** Options of a scripted server that speaks the modern era alone; `legacy: true` adds the handshake. */
export function modernServer({ tools = [tool('read'), tool('write')], legacy = false, capabilities = { tools: { listChanged: true } }, ttlMs = 300_000, handlers = {}, ...more } = {}) {
  const complete = (result) => ({ resultType: 'complete', ...result, _meta: { ...SERVER_INFO, ...result._meta } });
  const cached = (result) => complete({ ...result, ttlMs, cacheScope: 'public' });
  const refuse = ({ reply, id, params }) => reply.http(400, { 'content-type': 'application/json' }, JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32022, message: 'Unsupported protocol version', data: { supported: [VERSION], requested: String(params.protocolVersion ?? '') } } }));
  return {
    tools,
    sessions: false,
    handlers: {
      ...(legacy ? {} : { initialize: refuse }),
      'server/discover': ({ reply }) => reply.result(cached({ supportedVersions: [VERSION], capabilities, instructions: 'Be kind.' })),
      'tools/list': ({ reply, upstream, params, recorded }) => {
        if (legacy && !recorded.rpc.params?._meta?.[`${PREFIX}protocolVersion`]) return reply.result({ tools: upstream.tools });
        const size = upstream.pageSize || upstream.tools.length;
        const from = Number(params.cursor ?? 0);
        const next = from + size;
        return reply.result(cached({ tools: upstream.tools.slice(from, next), ...(next < upstream.tools.length ? { nextCursor: String(next) } : {}) }));
      },
      'tools/call': ({ reply, params }) => reply.result(complete({ content: [{ type: 'text', text: `did ${params.name}` }] })),
      ...handlers,
    },
    ...more,
  };
}

/** The usual stage before a modern server; `era` is the source's key. */
export async function modernScene(t, { upstream = {}, era = 'modern', source = {}, ...options } = {}) {
  const stage = await scene(t, { upstream: modernServer(upstream), source: { era, ...source }, ...options });
  return { ...stage, modern: (more) => modernClient(t, stage.gateway.url, more) };
}
