// The stage of the hostile tests, and the proof that each of them ends with: nothing reached upstream, the gateway lives.
import assert from 'node:assert/strict';
import { workflow } from '../lib/gateway.mjs';
import { socketTo } from '../lib/http.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';

export const TOOLS = [tool('delete_user'), tool('drop_table'), tool('read')];

/** delete_* needs a human, drop_* is denied, everything else is forwarded. */
export const hostileScene = (t, { upstream, ...more } = {}) =>
  scene(t, { rules: [['delete_*', 'approve'], ['drop_*', 'deny']], approval: workflow('10m'), upstream: { tools: TOOLS, ...upstream }, ...more });

export const call = (params, id = 1) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`;

/** The gateway fetches lists, also in sessions of its own, as after a server was away; nothing of that is of a call. */
const isLook = (request, { session }) => {
  if (request.isGatewaysOwn) return ['initialize', 'tools/list'].includes(request.rpc.method);
  return request.headers['mcp-session-id'] !== session && (request.method === 'DELETE' || request.rpc?.method === 'notifications/initialized');
};

/** Runs `attack` and shows that upstream heard nothing of it and that an honest call still passes. */
export async function shielded({ upstream, gateway, admin }, client, attack) {
  const before = upstream.requests.length;
  await attack();
  assert.deepEqual(upstream.requests.slice(before).filter((r) => !isLook(r, client)).map((r) => `${r.method} ${r.text}`.slice(0, 200)), [], 'it reached upstream');
  await lives({ gateway, admin }, client);
}

export async function lives({ gateway, admin }, client) {
  assert.equal(gateway.child.exit, null, gateway.child.output());
  assert.equal((await admin.get('/health')).status, 200);
  assert.ok(await client.result('tools/call', { name: 'read' }), 'an honest call passes');
}

/**
 * Sends exact bytes on a connection of their own. Returns the answer once its head is whole, or the connection is closed.
 * With `mayWait` also after a second without bytes: the gateway then waits for the rest of the announced body.
 */
export async function bytes(t, port, parts, { mayWait = false } = {}) {
  const socket = await socketTo(port);
  t.after(() => socket.destroy());
  let closed = false;
  socket.on('close', () => (closed = true));
  for (const part of [parts].flat()) socket.write(part);
  const began = performance.now();
  await until(() => closed || (mayWait && performance.now() - began > 1000) || /^HTTP\/1\.1 [2-5]\d\d[^]*?\r\n\r\n/.test(socket.received), 'an answer, or the end of the connection', { deadline: 15_000 });
  return { socket, closed: () => closed, status: Number(/^HTTP\/1\.1 (\d+)/.exec(socket.received)?.[1] ?? 0) };
}

export const head = (lines) => `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;
