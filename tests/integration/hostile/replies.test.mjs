// A server that mixes up its answers: no client gets another's result.
import assert from 'node:assert/strict';
import net from 'node:net';
import test from 'node:test';
import zlib from 'node:zlib';
import { startGateway, workflow } from '../lib/gateway.mjs';
import { exchange } from '../lib/http.mjs';
import { defer } from '../lib/lifetime.mjs';
import { modernClient, modernScene } from '../lib/modern.mjs';
import { scene } from '../lib/scene.mjs';
import { tool } from '../lib/upstream.mjs';
import { until } from '../lib/wait.mjs';

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
      await until(() => gateway.logs.filter((entry) => entry.msg === 'Upstream answered with the id of another request').length === 1, 'one log line');
    });
  }

  test(`a large reply whose other id comes last is cut (${name})`, async (t) => {
    const server = await rawServer(t, () => [json({ result: text('a'.repeat(300_000)), jsonrpc: '2.0', id: 99 })]);
    const gateway = await startGateway(t, { upstream: server.url, env });
    const response = await send(gateway, callOf(7, 'bob')).catch((error) => error);
    assert.match(response.message, /cut|aborted|reset|hang up/i);
  });
}

const JSON_TYPE = { 'content-type': 'application/json' };
const SECRET = 'of-another-client';
const anothers = (id) => JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: SECRET }] } });
const replying = (status, text, headers = JSON_TYPE) => ({ reply }) => reply.http(status, headers, text);
const events = (...texts) => ({ reply }) => {
  const stream = reply.sse();
  for (const text of texts) stream.raw(text);
  stream.end();
};
const gzipped = (status, text, type = 'application/json') => ({ reply }) => {
  const body = zlib.gzipSync(text);
  reply.response.writeHead(status, { 'content-type': type, 'content-encoding': 'gzip', 'content-length': body.length });
  reply.response.end(body);
};
/** In two pieces, so that the first has gone down when the second comes. */
const inPieces = (first, second) => ({ reply }) => {
  reply.response.writeHead(200, JSON_TYPE);
  reply.response.write(first);
  setTimeout(() => reply.response.end(second), 20);
};

/** None of these is the response to the request with the id 7. */
const NO_RESPONSE = {
  'an object without an id': replying(200, '{}'),
  'a result without an id': replying(200, `{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"${SECRET}"}]}}`),
  'an error without an id': replying(200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"${SECRET}"}}`),
  'an id alone': replying(200, '{"jsonrpc":"2.0","id":7}'),
  'a batch': replying(200, `[${anothers(7)}]`),
  'no JSON': replying(200, SECRET, { 'content-type': 'text/plain' }),
  'nothing at all': replying(202, '', {}),
  'another id': replying(200, anothers(8)),
  'an id that is no number': replying(200, anothers('nan')),
  'a number in hex': replying(200, anothers('0x7')),
  'another id in an HTTP error': replying(400, `{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"${SECRET}"}}`),
  'another id in an HTTP error of the server': replying(500, anothers(8)),
  'another id in a 300': replying(300, anothers(8)),
  'a redirect': replying(307, '', { location: `https://${SECRET}.example/` }),
  'an encoding': gzipped(200, anothers(7)),
  'an encoded HTTP error': gzipped(404, anothers(8)),
  'an id behind a byte order mark': events(`\ufeffdata: ${anothers(8)}\n\n`),
  'an event with another id': events(`data: ${anothers(8)}\n\n`),
  'an event without an id': events('data: {}\n\n'),
  'an event of no JSON': events(`data: ${SECRET}\n\n`),
  'an event with another id that is not ended': events(`data: ${anothers(8)}`),
  'two ids': replying(200, `{"id":7,"jsonrpc":"2.0","result":{},"id":8}`),
  'two results': replying(200, `{"id":7,"jsonrpc":"2.0","result":{},"result":{"a":"${SECRET}"}}`),
  'a result beside an error': replying(200, `{"id":7,"jsonrpc":"2.0","result":{},"error":{"code":1,"message":"${SECRET}"}}`),
  'two messages': replying(200, `{"id":7,"jsonrpc":"2.0","result":{}}${anothers(8)}`),
};

/** HTTP errors that say nothing of another request; they go down as they are. */
const HTTP_ERRORS = {
  'a text': [401, 'who are you?', { 'content-type': 'text/plain', 'www-authenticate': 'Bearer realm="x"' }],
  'no body': [403, '', {}],
  'a page': [502, '<html>', { 'content-type': 'text/html' }],
  'an object that is no JSON-RPC': [400, '{"message":"no"}', JSON_TYPE],
  'an error without an id': [404, '{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"}}', JSON_TYPE],
  'an error with the id null': [404, '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}', JSON_TYPE],
  "an error with the id of Python's SDK for none": [400, '{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no"}}', JSON_TYPE],
  'an error with an empty id': [400, '{"jsonrpc":"2.0","id":"","error":{"code":-32600,"message":"no"}}', JSON_TYPE],
};

for (const [name, env] of CLIENTS) {
  test(`a reply that is not the response to its request is -32002, and its connection carries nothing more (${name})`, async (t) => {
    const { upstream, connect, gateway } = await scene(t, { env });
    const client = await connect();
    for (const [what, answer] of Object.entries(NO_RESPONSE)) {
      upstream.handlers['tools/call'] = answer;
      const { status, message, text, headers } = await client.send('tools/call', { name: 'read' }, { id: 7 });
      assert.deepEqual([status, message?.id, message?.error?.code], [200, 7, -32002], `${what}: ${status} ${text}`);
      assert.ok(!text.includes(SECRET) && !JSON.stringify(headers).includes(SECRET), what);
      const { connection } = upstream.calls.at(-1);
      delete upstream.handlers['tools/call'];
      assert.ok(await client.result('tools/call', { name: 'read' }, { id: 7 }), what);
      assert.notEqual(upstream.calls.at(-1).connection, connection, `${what}: the connection is used again`);
    }
    await gateway.logged((line) => line.msg === 'Upstream redirects, which is not followed' && line.location.includes(SECRET));
  });

  test(`a reply that turns out to be none after its beginning has gone down: the client's connection is cut (${name})`, async (t) => {
    const { upstream, connect } = await scene(t, { env });
    const client = await connect();
    const padding = 'p'.repeat(70_000);
    const broken = {
      'another id behind much': inPieces(`{"jsonrpc":"2.0","result":{"a":"${padding}"},`, '"id":8}'),
      'a second id': inPieces(`{"jsonrpc":"2.0","id":7,"result":{"a":"${padding}"},`, '"id":8}'),
      'no end': inPieces(`{"jsonrpc":"2.0","id":7,"result":{"a":"${padding}"`, '}'),
    };
    for (const [what, answer] of Object.entries(broken)) {
      upstream.handlers['tools/call'] = answer;
      await assert.rejects(client.send('tools/call', { name: 'read' }, { id: 7 }), undefined, what);
      const { connection } = upstream.calls.at(-1);
      delete upstream.handlers['tools/call'];
      assert.ok(await client.result('tools/call', { name: 'read' }, { id: 7 }), what);
      assert.notEqual(upstream.calls.at(-1).connection, connection, what);
    }
  });

  test(`an HTTP error that is no JSON-RPC goes down as it is, and its connection carries nothing more (${name})`, async (t) => {
    const { upstream, connect } = await scene(t, { env });
    const client = await connect();
    for (const [what, [status, body, headers]] of Object.entries(HTTP_ERRORS)) {
      upstream.handlers['tools/call'] = replying(status, body, headers);
      const answer = await client.send('tools/call', { name: 'read' }, { id: 7 });
      assert.deepEqual([answer.status, answer.text, answer.headers['www-authenticate']], [status, body, headers['www-authenticate']], what);
      const { connection } = upstream.calls.at(-1);
      delete upstream.handlers['tools/call'];
      await client.result('tools/call', { name: 'read' });
      assert.notEqual(upstream.calls.at(-1).connection, connection, what);
    }
  });

  test(`responses keep their connection: as JSON, as events, as errors of both kinds (${name})`, async (t) => {
    const { upstream, connect } = await scene(t, { env });
    const client = await connect();
    const error = '{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}';
    const good = {
      'a result': ({ reply }) => reply.result({}),
      'a result in pieces': inPieces('{"jsonrpc":"2.0","result":{"a":[1,{"id":8}]', '},"id":7}  \n'),
      'a result in an event': events('event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n', 'event: ping\ndata: now\n\n', `data: {"jsonrpc":"2.0","id":7,"result":{}}\n\n`),
      'a result in an event behind a byte order mark': events('\ufeffdata: {"jsonrpc":"2.0","id":7,"result":{}}\n\n'),
      'an error': replying(200, error),
      'an error in HTTP 400': replying(400, error),
    };
    const used = new Set();
    for (const [what, answer] of Object.entries(good)) {
      upstream.handlers['tools/call'] = answer;
      const { text } = await client.send('tools/call', { name: 'read' }, { id: 7 });
      assert.match(text, /"id":7\b/, what);
      used.add(upstream.calls.at(-1).connection);
    }
    assert.equal(used.size, 1, [...used].join());
  });
}

test("the gateway's own requests: a bridged, a detached and an approved call get no other request's answer", async (t) => {
  const tools = [tool('delete_user'), tool('read')];
  const rules = { rules: [['delete_*', 'approve']], approval: workflow('10m') };
  const wrong = {
    'another id': replying(200, anothers('tg:other')),
    'another id in an HTTP error': replying(401, `{"jsonrpc":"2.0","id":"tg:other","error":{"code":1,"message":"${SECRET}"}}`),
    'an object without an id': replying(200, '{}'),
  };
  for (const [what, answer] of Object.entries(wrong)) {
    const up = await modernScene(t, { source: { era: 'modern' }, upstream: { tools } });
    const legacy = await up.connect({ capabilities: {} });
    up.upstream.handlers['tools/call'] = answer;
    const bridged = await legacy.send('tools/call', { name: 'read' });
    assert.deepEqual([bridged.status, bridged.message?.error?.code], [200, -32002], `a legacy client, ${what}: ${bridged.text}`);

    const down = await scene(t, { source: { bridge: 'modern' }, upstream: { tools }, ...rules });
    const modern = modernClient(t, down.gateway.url, { capabilities: {} });
    down.upstream.handlers['tools/call'] = answer;
    const other = await modern.send('tools/call', { name: 'read' });
    assert.equal(other.message?.error?.data.error_type, 'upstream_error', `a modern client, ${what}: ${other.text}`);
    assert.ok(!other.text.includes(SECRET) && !bridged.text.includes(SECRET));

    const client = await down.connect();
    const { task } = await client.createTask('delete_user');
    await down.admin.approve(task.taskId);
    const { statusMessage } = await down.admin.inState(task.taskId, 'failed');
    assert.ok(!statusMessage.includes(SECRET), statusMessage);
  }
});
