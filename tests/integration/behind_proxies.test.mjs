// Event streams behind proxies that buffer, and that cut what is silent: simulated time where a test is about minutes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectedRaw } from './lib/client.mjs';
import { fastClock, fastClockMissing, LeapingClock } from './lib/fast_clock.mjs';
import { ADMIN_TOKEN, temporaryFolder, workflow } from './lib/gateway.mjs';
import { open } from './lib/http.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { nginxMissing, startNginx } from './lib/nginx.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { within } from './lib/wait.mjs';

const PLAIN = { capabilities: {} };
const DELETE = { name: 'delete_user', arguments: { id: 7 } };
const config = { pseudo_tools: { wait: '45s', wait_max: '45s' }, clients: [{ match: '*', tasks: 'no' }] };
const held = { rules: [['delete_*', 'approve']], approval: workflow('1h'), upstream: { tools: [tool('delete_user'), tool('read')] }, config };
const timed = { skip: fastClockMissing };

/** Every event stream tells the proxies on its way to let it pass. */
function passes({ headers }) {
  assert.match(headers['content-type'], /^text\/event-stream/);
  assert.equal(headers['x-accel-buffering'], 'no');
  assert.match(headers['cache-control'], /^(no-store, )?no-cache, no-transform$/);
}

test('every event stream forbids proxies to buffer, to keep and to change it, also one that the server opened otherwise', async (t) => {
  const { upstream, gateway, admin, connect } = await scene(t, held);
  const client = await connect(PLAIN);
  upstream.handlers['tools/call'] = ({ reply }) => reply.sse({ 'cache-control': 'public, max-age=60', 'x-accel-buffering': 'yes' }).event({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 1 } });
  passes((await client.stream('tools/call', { name: 'read' })).response);
  passes((await client.listen()).response);
  passes((await client.stream('tools/call', { ...DELETE, _meta: { progressToken: 1 } })).response);
  passes(await open(`${gateway.adminUrl}/api/v1/events`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } }));
  await admin.reject((await admin.pending()).id);
});

test('the streams of the modern era and of a bridged session, too', async (t) => {
  const { modern, connect } = await modernScene(t, { ...held, upstream: { tools: [tool('delete_user')] } });
  passes((await modern(PLAIN).stream('tools/call', { ...DELETE, _meta: { progressToken: 1 } })).response);
  passes((await modern().stream('subscriptions/listen', { notifications: { toolsListChanged: true } })).response);
  const legacy = await connect(PLAIN);
  passes((await legacy.listen()).response);
});

test('progress and keep-alives pass nginx with its default buffering within 20 s', { skip: nginxMissing || fastClockMissing }, async (t) => {
  const { upstream, gateway, admin } = await scene(t, { ...held, env: fastClock(10) });
  const client = await connectedRaw(t, await startNginx(t, gateway.url), PLAIN);
  const stream = client.stream('tools/call', { ...DELETE, _meta: { progressToken: 'p' } });
  const down = await within(stream, 'the head of the stream of a held call', 2000);
  let last = -1;
  for (const _ of [1, 2]) {
    const { params } = await down.message(({ method }) => method === 'notifications/progress', 'progress', 2000);
    assert.equal(params.progressToken, 'p');
    assert.ok(Number.isInteger(params.progress) && params.progress > last, `${params.progress} after ${last}`);
    last = params.progress;
    await down.next((event) => event.comment !== undefined, 'a comment', 2000);
  }
  const idle = await client.listen();
  await idle.next((event) => event.comment !== undefined, 'a comment on the GET stream', 2000);
  upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'news' } });
  assert.equal((await idle.message(undefined, 'the server\'s own message', 2000)).params.data, 'news');
  await admin.reject((await admin.pending()).id);
});

test('a held call has its first byte on the wire within 15 s, without a progress token', timed, async (t) => {
  const { admin, connect } = await scene(t, { ...held, env: fastClock(10) });
  const client = await connect(PLAIN);
  const stream = await within(client.stream('tools/call', DELETE), 'the head', 1500 + 500);
  await stream.next((event) => event.comment !== undefined, 'a comment', 500);
  await admin.reject((await admin.pending()).id);
});

test('a client that drops silent connections after 60 s gets, with `wait: 30m`, the outcome of a call decided after 20 minutes', timed, async (t) => {
  const clock = new LeapingClock(temporaryFolder(t));
  const { admin, connect } = await scene(t, { ...held, env: clock.environment, config: { ...config, pseudo_tools: { wait: '30m' } } });
  const client = await connect({ ...PLAIN, keepAlive: false });
  const head = client.stream('tools/call', DELETE);
  const { id } = await admin.pending();
  for (let minute = 0; minute < 20; minute++) {
    for (const _ of [1, 2, 3]) {
      clock.leap(20);
      await admin.get('/health'); // timers are looked at
      await (await head).next((event) => event.comment !== undefined, `a byte in minute ${minute}`);
    }
  }
  await admin.approve(id);
  const { result } = await (await head).message();
  assert.equal(result.content[0].text, 'did delete_user');
});

test('a GET stream on which the server is silent has a comment every 15 s, none of them inside an event of the server\'s', timed, async (t) => {
  const { upstream, connect } = await scene(t, { ...held, env: fastClock(30) });
  const client = await connect(PLAIN);
  const stream = await client.listen();
  const [server] = await upstream.received(({ method }) => method === 'GET').then(() => upstream.getStreams);
  for (let i = 0; i < 8; i++) await stream.next((event) => event.comment === 'ping', `comment ${i}: 120 s of silence are bridged`, 1500);
  const other = await (await connect(PLAIN)).listen();
  // An event that is too long to be held until it is whole passes in pieces, and no comment comes between them.
  const long = 'x'.repeat(1_200_000);
  server.raw(`data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"${long}`);
  for (let i = 0; i < 3; i++) await other.next((event) => event.comment === 'ping', 'a comment on the other stream', 1500);
  server.raw('"}}\n\n');
  const { params } = await stream.message(({ method }) => method === 'notifications/message');
  assert.equal(params.data, long);
});

/** Passes when two comments come on the stream, each after the server's silence. */
async function hasComments(stream) {
  for (const which of ['first', 'second']) await stream.next((event) => event.comment === 'ping', `the ${which} comment`, 1500);
}

test('so have a stream of a server that listens for its client, and the streams that one between the eras feeds', timed, async (t) => {
  const honour = ({ reply, id, params }) =>
    reply.sse().event({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: params.notifications, _meta: { 'io.modelcontextprotocol/subscriptionId': id } },
    });
  const { modern, connect } = await modernScene(t, { source: { era: 'modern' }, env: fastClock(30), upstream: { handlers: { 'subscriptions/listen': honour } } });
  const passed = await modern().stream('subscriptions/listen', { notifications: { toolsListChanged: true } });
  await passed.message(({ method }) => method === 'notifications/subscriptions/acknowledged');
  await Promise.all([hasComments(passed), hasComments(await (await connect(PLAIN)).listen())]);
});
