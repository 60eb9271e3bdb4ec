// A server that mixes up its answers: no client gets another's result.
import assert from 'node:assert/strict';
import net from 'node:net';
import test from 'node:test';
import { startGateway } from '../lib/gateway.mjs';
import { exchange } from '../lib/http.mjs';
import { defer } from '../lib/lifetime.mjs';

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const CLIENTS = [['our client', {}], ['libcurl', { THOUGHTGATE_UPSTREAM_CLIENT: 'curl' }]];

/**
 * A raw HTTP/1.1 server. `answer(request, number)` gives the pieces of each answer to a tools/call, which are
 * written one after the other, or {later, after: ms}; everything else is answered honestly. `seen` are the calls, with the connection of each.
 */
async function rawServer(t, answer) {
  const state = { seen: [], connections: 0, closed: 0 };
  const sockets = new Set();
  const server = net.createServer((socket) => {
    const connection = ++state.connections;
    let received = '';
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => state.closed++);
    socket.on('data', (data) => {
      received += data.toString('latin1');
      for (;;) {
        const end = received.indexOf('\r\n\r\n');
        const length = Number(/content-length: *(\d+)/i.exec(received)?.[1] ?? 0);
        if (end < 0 || received.length < end + 4 + length) return;
        const body = received.slice(end + 4, end + 4 + length);
        received = received.slice(end + 4 + length);
        const request = body ? JSON.parse(body) : {};
        if (request.method !== 'tools/call') {
          socket.write(honest(request));
          continue;
        }
        state.seen.push({ request, connection });
        for (const piece of answer(request, state.seen.length)) {
          if (typeof piece === 'string') socket.write(piece);
          else setTimeout(() => socket.write(piece.later), piece.after);
        }
      }
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  defer(t, () => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return Object.assign(state, { url: `http://127.0.0.1:${server.address().port}/mcp` });
}

const http = (type, body) => `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const json = (message) => http('application/json', JSON.stringify(message));
const text = (value) => ({ content: [{ type: 'text', text: value }] });
const secret = ({ params }) => text(`for ${params.arguments.who}`);

function honest(request) {
  if (request.id === undefined) return 'HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n';
  const result = request.method === 'tools/list' ? { tools: [{ name: 'read', inputSchema: { type: 'object' } }] } : { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'raw', version: '1' } };
  return json({ jsonrpc: '2.0', id: request.id, result });
}

const callOf = (id, who) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'read', arguments: { who } } });
const send = (gateway, body) => exchange(gateway.url, { method: 'POST', headers: HEADERS, body });

for (const [name, env] of CLIENTS) {
  test(`after one doubled answer no client gets another's result (${name})`, async (t) => {
    // The second copy comes with the first, right after it, or while the next call is under way.
    const server = await rawServer(t, (request, number) => {
      const answer = json({ jsonrpc: '2.0', id: request.id, result: secret(request) });
      const copies = { 1: [answer, answer], 11: [answer, { later: answer, after: 0 }], 21: [answer, { later: answer, after: 1 }] };
      return copies[number] ?? [{ later: answer, after: 2 }];
    });
    const gateway = await startGateway(t, { upstream: server.url, env });
    const foreign = [];
    let right = 0;
    const client = async (who) => {
      for (let i = 0; i < 10; i++) {
        const response = await send(gateway, callOf(`${who}-${i}`, who));
        const answer = JSON.parse((await response.text()) || '{}');
        if (answer.result?.content[0].text === `for ${who}`) right++;
        else if (answer.result) foreign.push(answer.result.content[0].text);
      }
    };
    await Promise.all(['ann', 'bob', 'eve', 'joe'].map(client));
    assert.deepEqual(foreign, []);
    assert.ok(right >= 37, `${right} of 40 calls got their results`);
  });

  const shapes = {
    'with its id first': (id, result) => [json({ jsonrpc: '2.0', id, result })],
    'with its id last': (id, result) => [json({ result, jsonrpc: '2.0', id })],
    'with its id in a later piece': (id, result) => {
      const whole = json({ result, jsonrpc: '2.0', id });
      return [whole.slice(0, -8), whole.slice(-8)];
    },
    'as an error': (id) => [json({ jsonrpc: '2.0', id, error: { code: -32603, message: 'for ann' } })],
    'on an event stream': (id, result) => [http('text/event-stream', `event: message\ndata: ${JSON.stringify({ result, jsonrpc: '2.0', id })}\n\n`)],
  };
  for (const [shape, pieces] of Object.entries(shapes)) {
    test(`a reply with another request's id, ${shape}, is -32002 and ends its connection (${name})`, async (t) => {
      const server = await rawServer(t, (request, number) => pieces(number === 1 ? 99 : request.id, text('for ann')));
      const gateway = await startGateway(t, { upstream: server.url, env });
      const first = await send(gateway, callOf(7, 'bob'));
      const said = await first.text();
      assert.equal(first.status, 200);
      assert.ok(!said.includes('for ann'), said);
      const answer = JSON.parse(said.replace(/^[^{]*/, ''));
      assert.equal(answer.id, 7);
      assert.equal(answer.error.code, -32002);
      const second = await (await send(gateway, callOf(8, 'bob'))).text();
      assert.ok(second.includes('for ann') && second.includes('"id":8'), second);
      assert.notEqual(server.seen[1].connection, server.seen[0].connection);
      assert.equal(gateway.logs.filter((entry) => entry.msg === 'Upstream answered with the id of another request').length, 1);
    });
  }

  test(`a large reply whose other id comes last is cut (${name})`, async (t) => {
    const server = await rawServer(t, () => [json({ result: text('a'.repeat(300_000)), jsonrpc: '2.0', id: 99 })]);
    const gateway = await startGateway(t, { upstream: server.url, env });
    const response = await send(gateway, callOf(7, 'bob')).catch((error) => error);
    assert.match(response.message, /cut|aborted|reset|hang up/i);
  });

  test(`replies that are not another's pass as they came (${name})`, async (t) => {
    const bodies = ['{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}', '{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}', '{"result":{},"jsonrpc":"2.0","id":"7"}', '{"id":7.0,"result":{}}', '[{"id":99,"result":{}}]', 'no JSON', ''];
    const server = await rawServer(t, (request, number) => [http('application/json', bodies[(number - 1) % bodies.length])]);
    const gateway = await startGateway(t, { upstream: server.url, env });
    // One call more: a connection that the last body had closed would be seen. A second connection may
    // carry requests of the gateway's own.
    for (const body of [...bodies, bodies[0]]) assert.equal(await (await send(gateway, callOf(7, 'bob'))).text(), body);
    assert.equal(server.closed, 0);
  });
}
