// A server that never answers a call of a tool, and remembers what comes after it.
import { once } from 'node:events';
import http from 'node:http';

const RESULTS = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'silence', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'delete_user', description: 'Deletes a user', inputSchema: { type: 'object', properties: { id: { type: 'integer' } } } }] }),
  ping: () => ({}),
};

/** {url, events: what came since the first call, each {at, what}, close}. */
export async function startSilence() {
  const events = [];
  const remember = (what) => {
    if (events.length > 0 || what === 'tools/call') events.push({ at: Date.now(), what });
  };
  const server = http.createServer(async (request, response) => {
    const answer = (status, json) => response.writeHead(status, { 'content-type': 'application/json', 'mcp-session-id': 'silence' }).end(json && JSON.stringify(json));
    if (request.method === 'DELETE') {
      remember('DELETE');
      return answer(200);
    }
    if (request.method !== 'POST') return answer(405);
    const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()).toString());
    if (method === 'tools/call') {
      response.once('close', () => remember('connection closed'));
      return remember(method);
    }
    if (method !== 'ping') remember(method);
    if (id === undefined) return answer(202);
    const result = RESULTS[method]?.(params);
    return answer(200, { jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'Method not found' } }) });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}/mcp`, events, close };
}
