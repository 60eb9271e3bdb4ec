// A server of the official SDK 2.4 that speaks 2026-07-28 and nothing else.
import http from 'node:http';
import { Readable } from 'node:stream';
import { createMcpHandler, fromJsonSchema, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { defer } from './lifetime.mjs';

/** `register(server)` adds tools, resources and prompts; `{url, handler, requests}` with each request's method, body and end. */
export async function startModernSdkServer(t, register, capabilities = {}) {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'sdk-modern', version: '2.4.0' }, { capabilities, instructions: 'Ask.' });
    register(server);
    return server;
  }, { legacy: 'reject' });
  const requests = [];
  const server = http.createServer((request, response) => void serve(handler, requests, request, response));
  defer(t, async () => {
    await handler.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/mcp`, handler, requests, of: (method) => requests.filter((r) => r.rpc?.method === method) };
}

/** One node exchange by the SDK's web-standard handler. A client that leaves aborts the request. */
async function serve(handler, requests, request, response) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  const recorded = { method: request.method, headers: request.headers, rpc: body.length ? JSON.parse(body.toString('utf8')) : undefined };
  const left = new AbortController();
  recorded.gone = new Promise((resolve) =>
    response.on('close', () => {
      recorded.left = !response.writableFinished;
      left.abort();
      resolve();
    }),
  );
  requests.push(recorded);
  const answer = await handler.fetch(new Request(`http://127.0.0.1${request.url}`, { method: request.method, headers: request.headers, signal: left.signal, ...(body.length ? { body } : {}) }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.flushHeaders();
  if (!answer.body) return response.end();
  const stream = Readable.fromWeb(answer.body);
  stream.on('error', () => response.destroy());
  response.on('close', () => stream.destroy());
  stream.pipe(response);
}

export { fromJsonSchema, inputRequired };
