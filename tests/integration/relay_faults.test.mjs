// The messages to a client about a server that fails, leaves or is silent in a forwarded request.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from './lib/http.mjs';
import { scene } from './lib/scene.mjs';

const CALL = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'read', arguments: {} } };

for (const status of [400, 401, 403, 404, 429, 500, 503]) {
  test(`upstream's HTTP ${status} comes down as it is`, async (t) => {
    const { upstream, connect } = await scene(t);
    const client = await connect();
    upstream.handlers['tools/call'] = ({ reply }) => reply.http(status, { 'content-type': 'text/plain', 'www-authenticate': 'Bearer resource_metadata="https://x/y"', 'retry-after': '7' }, `body of ${status}`);
    const answer = await client.send('tools/call', CALL.params);
    assert.equal(answer.status, status);
    assert.equal(answer.text, `body of ${status}`);
    assert.equal(answer.headers['www-authenticate'], 'Bearer resource_metadata="https://x/y"');
    assert.equal(answer.headers['retry-after'], '7');
  });
}

test('an upstream that refuses connections: requests get -32000 in HTTP 200; GET, DELETE and notifications get 502', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  await upstream.stop();
  const answer = await client.send('tools/call', CALL.params);
  assert.equal(answer.status, 200);
  assert.equal(answer.message.error.code, -32000);
  assert.equal(answer.message.error.data.error_type, 'upstream_connection_failed');
  assert.equal(answer.message.id, answer.id);
  assert.doesNotMatch(answer.text, new RegExp(`:${upstream.port}`));
  assert.equal((await client.send('prompts/list')).message.error.code, -32000);
  assert.equal((await client.notify('notifications/initialized')).status, 502);
  assert.equal((await client.delete()).status, 502);
  const stream = await open(client.url, { headers: { accept: 'text/event-stream', 'mcp-session-id': client.session } });
  assert.equal(stream.status, 502);
  await stream.bytes();
});

test('the gateway serves again as soon as upstream is back', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  await upstream.stop();
  assert.equal((await client.error('tools/call', CALL.params)).code, -32000);
  await upstream.listen();
  assert.ok(await client.result('tools/call', CALL.params));
});

test('an upstream that goes before any byte of its answer: -32000', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply }) => reply.cut();
  const answer = await client.send('tools/call', CALL.params);
  assert.deepEqual([answer.status, answer.message.error.code, answer.message.id], [200, -32000, answer.id]);
  assert.equal(upstream.calls.length, 1, 'a request that may have been seen is not sent again');
});

test('an upstream that goes in the middle of an SSE reply: a last event with -32000 and the id', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  let up;
  upstream.handlers['tools/call'] = ({ reply }) => {
    up = reply.sse();
    up.event({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'first' } }, { id: '1' });
  };
  const down = await client.stream('tools/call', CALL.params);
  await down.next((e) => e.json?.method === 'notifications/message');
  up.raw('data: {"jsonrpc":"2.0","id":'); // half an event, then nothing
  up.cut();
  const last = await down.message((m) => m.error);
  assert.deepEqual([last.id, last.error.code, last.error.data.error_type], [down.id, -32000, 'upstream_connection_failed']);
  await down.end();
});

test('an upstream that goes in the middle of an SSE reply to a response: no message with the id of that', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  let up;
  upstream.onHttp = ({ rpc }, reply) => {
    if (rpc?.id !== 'asked') return false;
    up = reply.sse();
    up.event({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'first' } });
    return true;
  };
  const down = (await client.post({ jsonrpc: '2.0', id: 'asked', result: {} })).sse();
  await down.message((m) => m.params.data === 'first');
  up.cut();
  await down.end();
  assert.doesNotMatch(down.raw, /asked/, 'the client may have a request of its own with this id');
});

test('an upstream that goes after the answer on its SSE reply is no error, wherever that has its id and whatever follows', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  const note = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'late' } };
  const long = { content: [{ type: 'text', text: 'x'.repeat(1000) }] };
  for (const events of [
    (id) => [{ jsonrpc: '2.0', id, result: { content: [] } }],
    (id) => [{ jsonrpc: '2.0', id, result: { content: [] } }, note],
    (id) => [{ jsonrpc: '2.0', result: long, id, more: long }],
  ]) {
    upstream.handlers['tools/call'] = ({ reply, id }) => {
      const up = reply.sse();
      for (const event of events(id)) up.event(event);
      up.response.write('', () => up.cut());
    };
    const down = await client.stream('tools/call', CALL.params);
    await down.end();
    assert.deepEqual(down.events.filter((e) => e.json).map((e) => e.json), events(down.id));
  }
});

test('a stream that upstream ends in good order before its answer is no error: the client comes back for the rest (SEP-1699)', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply }) => {
    const up = reply.sse();
    up.raw('id: s1_0\nretry: 100\ndata:\n\n');
    up.end();
  };
  const down = await client.stream('tools/call', CALL.params);
  assert.equal(await down.end(), 'end');
  assert.deepEqual(down.events.filter((e) => e.json), []);
  assert.deepEqual([down.events[0].id, down.events[0].retry], ['s1_0', '100']);
  upstream.onHttp = (r, reply) => {
    if (r.method !== 'GET') return false;
    const up = reply.sse();
    up.event({ jsonrpc: '2.0', id: down.id, result: { content: [] } }, { id: 's1_1' });
    up.end();
    return true;
  };
  const rest = await client.listen({ headers: { 'last-event-id': 's1_0' } });
  assert.equal((await rest.next((e) => e.json?.id === down.id)).id, 's1_1');
});

test('an upstream that goes in the middle of a JSON body: the connection is cut, no half answer passes for a whole one', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply }) => {
    reply.response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
    reply.response.write('{"jsonrpc":"2.0",', () => reply.response.destroy());
  };
  const outcome = await client.send('tools/call', CALL.params).then(
    (answer) => (answer.message?.error ? `error ${answer.message.error.code}` : `whole: ${answer.text}`),
    () => 'cut',
  );
  assert.equal(outcome, 'cut');
});

test('silence ends a forwarded call with -32001 UpstreamTimeout, and upstream is left', async (t) => {
  const { upstream, connect } = await scene(t, { env: { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1' }, upstream: { handlers: { 'tools/call': () => {} } } });
  const client = await connect();
  const answer = await client.send('tools/call', CALL.params);
  assert.equal(answer.status, 200);
  assert.equal(answer.message.error.code, -32001);
  assert.match(answer.message.error.message, /UpstreamTimeout/);
  assert.equal(answer.message.error.data.error_type, 'upstream_timeout');
  await upstream.calls[0].gone;
  assert.equal(upstream.calls[0].left, true);
});

test('any byte of a stream counts as life, also far beyond the silence limit', async (t) => {
  const { upstream, connect } = await scene(t, { env: { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1' } });
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply, id }) => {
    const stream = reply.sse();
    let beats = 0;
    const timer = setInterval(() => {
      if (++beats < 7) return stream.raw(':\n\n');
      clearInterval(timer);
      stream.event({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'late' }] } });
      stream.end();
    }, 400);
  };
  const answer = await client.send('tools/call', CALL.params);
  assert.equal(answer.message.result.content[0].text, 'late');
});

test('the silence limit is for tools/call only', async (t) => {
  const { upstream, connect } = await scene(t, { env: { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1' } });
  const client = await connect();
  upstream.handlers['prompts/get'] = ({ reply }) => setTimeout(() => reply.result({ messages: [] }), 1900);
  assert.deepEqual(await client.result('prompts/get', { name: 'p' }), { messages: [] });
});
