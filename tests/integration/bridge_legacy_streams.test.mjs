// The GET stream and the subscriptions of a legacy client in front of a modern-only server (modern.md §4.1).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modernServer, PREFIX } from './lib/modern.mjs';
import { scene } from './lib/scene.mjs';
import { startIssuer } from './lib/token_issuer.mjs';
import { until, within } from './lib/wait.mjs';

const LISTS = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
const stamp = (id) => ({ _meta: { [`${PREFIX}subscriptionId`]: id } });
const note = (method, params) => ({ jsonrpc: '2.0', method: `notifications/${method}`, ...(params ? { params } : {}) });

/**
 * A modern server with listen streams: `streams` are the open ones, each {id, filter, honoured, tell(method, params), end(), cut()}.
 * `honours(filter)` says what it honours; null refuses the request.
 */
function listening(honours = (filter) => filter) {
  const streams = [];
  const upstream = modernServer({
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true } },
    handlers: {
      'subscriptions/listen'({ reply, params, id, recorded }) {
        const honoured = honours(params.notifications);
        if (!honoured) return reply.error(-32601, 'Method not found');
        const sse = reply.sse();
        const stream = { id, filter: params.notifications, honoured, recorded };
        stream.tell = (method, more = {}) => sse.event(note(method, { ...more, ...stamp(id) }));
        stream.end = () => (sse.event({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...stamp(id) } }), sse.end());
        stream.cut = sse.cut;
        stream.tell('subscriptions/acknowledged', { notifications: honoured });
        if (Object.keys(honoured).length === 0) return stream.end();
        streams.push(stream);
        recorded.gone.then(() => streams.splice(streams.indexOf(stream), 1));
      },
    },
  });
  return { upstream, streams };
}

/** A connected client with its GET stream, and the listen that feeds it. */
async function stage(t, server = listening(), options = {}) {
  const { connect, ...rest } = await scene(t, { upstream: server.upstream, source: { era: 'modern' }, ...options });
  const client = await connect({ token: 'mine' });
  const get = await client.listen();
  const first = await until(() => server.streams[0], () => 'a listen stream');
  return { ...rest, connect, client, get, first, streams: server.streams };
}

test('a GET opens one listen with the credentials of the client, whose news come down as legacy notifications', async (t) => {
  const { client, get, first, upstream, streams } = await stage(t, undefined, { expose: { mode: 'blocklist', tools: ['x:*'] } });
  assert.deepEqual(first.filter, LISTS);
  assert.equal(first.recorded.headers.authorization, 'Bearer mine');
  assert.deepEqual(first.recorded.rpc.params._meta[`${PREFIX}clientInfo`], { name: 'raw-client', version: '1.0.0' });
  first.tell('tools/list_changed');
  assert.deepEqual(await get.message(({ method }) => /tools/.test(method)), note('tools/list_changed'));
  first.tell('prompts/list_changed', { more: 1 });
  assert.deepEqual(await get.message(({ method }) => /prompts/.test(method)), note('prompts/list_changed', { more: 1 }));
  first.tell('message', { level: 'error', data: 'no' });
  first.tell('resources/list_changed');
  assert.deepEqual(await get.message(({ method }) => /resources/.test(method)), note('resources/list_changed'));
  assert.equal(get.events.filter(({ json }) => json?.method === 'notifications/message').length, 0);
  assert.equal(upstream.of('subscriptions/listen').length, 1);
  client.close();
  await first.recorded.gone;
  assert.equal(streams.length, 0);
});

test('of two GET streams of a session the newer one has the news; when it goes, the older one goes on', async (t) => {
  const { client, get, first, streams } = await stage(t);
  const newer = await client.listen();
  await within(first.recorded.gone, 'the end of a listen');
  const second = await until(() => streams[0], () => 'the listen of the newer stream');
  second.tell('tools/list_changed');
  await newer.message(({ method }) => /tools/.test(method));
  assert.deepEqual(await client.result('resources/subscribe', { uri: 'note://1' }), {}); // listens anew, on the newer stream alone
  await within(second.recorded.gone, 'the end of a listen');
  await until(() => streams.length === 1 && streams[0].filter.toolsListChanged, () => 'one renewed listen');
  streams[0].tell('resources/updated', { uri: 'note://1' });
  await newer.message(({ method }) => /updated/.test(method));
  assert.deepEqual(get.events.filter(({ json }) => json), []);
  const renewed = streams[0];
  newer.abort();
  await within(renewed.recorded.gone, 'the end of a listen');
  await get.message(({ method }) => /tools/.test(method)); // changes meanwhile are unknown
  assert.deepEqual(streams.map(({ filter }) => filter.resourceSubscriptions), [['note://1']]);
  streams[0].tell('resources/updated', { uri: 'note://1' });
  await get.message(({ method }) => /updated/.test(method));
  assert.equal(newer.events.filter(({ json }) => json?.method === 'notifications/resources/updated').length, 1);
});

test('subscribe changes the set: listened to anew before the old listen ends, told, and taken out again', async (t) => {
  const { client, get, first, streams } = await stage(t);
  assert.deepEqual(await client.result('resources/subscribe', { uri: 'note://1' }), {});
  const wanted = { ...LISTS, resourceSubscriptions: ['note://1'] };
  const renewed = await until(() => streams.find((one) => one.filter.resourceSubscriptions && one.filter.toolsListChanged), () => 'the renewed listen');
  assert.deepEqual(renewed.filter, wanted);
  await first.recorded.gone;
  renewed.tell('resources/updated', { uri: 'note://1' });
  assert.deepEqual(await get.message(({ method }) => /updated/.test(method)), note('resources/updated', { uri: 'note://1' }));
  assert.deepEqual(await client.result('resources/unsubscribe', { uri: 'note://1' }), {});
  await until(() => streams.some((one) => JSON.stringify(one.filter) === JSON.stringify(LISTS)), () => 'the listen without it');
  await renewed.recorded.gone;
});

test('once a stream of the session listens itself the asking one ends: news come once, and none after unsubscribe', async (t) => {
  const { client, get, first, streams } = await stage(t);
  const uris = Array.from({ length: 10 }, (_, i) => `note://${i}`);
  for (const uri of uris) await client.result('resources/subscribe', { uri });
  const told = () => get.events.filter(({ json }) => json?.method === 'notifications/resources/updated').map(({ json }) => json.params.uri);
  await until(() => streams.length === 1 && streams[0].filter.resourceSubscriptions?.length === uris.length, () => 'one listen for all', { deadline: 4000 });
  for (const uri of uris) streams[0].tell('resources/updated', { uri });
  await get.message(({ method, params }) => /updated/.test(method) && params.uri === uris.at(-1));
  assert.deepEqual(told(), uris);
  void first;
});

test('the asking stream of a session without a GET stream ends at once, and the next GET listens by itself', async (t) => {
  const { client, get, first, streams } = await stage(t);
  get.abort();
  await first.recorded.gone;
  for (let i = 0; i < 40; i++) await client.result('resources/subscribe', { uri: `note://${i}` });
  await until(() => streams.length === 0, () => 'the asking streams to end', { deadline: 4000 });
  await client.listen();
  const next = await until(() => streams[0], () => 'the listen of the GET');
  assert.equal(next.filter.resourceSubscriptions.length, 40);
});

test('a resource that was unsubscribed from is not told of by the stream that has asked', async (t) => {
  const server = listening((filter) => (filter.toolsListChanged && filter.resourceSubscriptions ? null : filter)); // the renewed listen is refused
  const { client, get, streams } = await stage(t, server);
  await client.result('resources/subscribe', { uri: 'note://1' });
  const asking = await until(() => streams.find(({ filter }) => filter.resourceSubscriptions), () => 'the asking stream');
  asking.tell('resources/updated', { uri: 'note://1' });
  await get.message(({ method }) => /updated/.test(method));
  await client.result('resources/unsubscribe', { uri: 'note://1' });
  asking.tell('resources/updated', { uri: 'note://1' });
  await until(() => {
    for (const { filter, tell } of streams) if (filter.toolsListChanged && !filter.resourceSubscriptions) tell('tools/list_changed');
    return get.events.some(({ json }) => json?.method === 'notifications/tools/list_changed');
  }, () => 'news of the listen without it, which takes the place of the first');
  assert.equal(get.events.filter(({ json }) => json?.method === 'notifications/resources/updated').length, 1);
});

test('news between the answer to subscribe and the renewed listen are not lost', async (t) => {
  const { client, get, streams } = await stage(t);
  await client.result('resources/subscribe', { uri: 'note://1' });
  for (const stream of streams.filter(({ filter }) => filter.resourceSubscriptions)) stream.tell('resources/updated', { uri: 'note://1' });
  assert.deepEqual(await get.message(({ method }) => /updated/.test(method)), note('resources/updated', { uri: 'note://1' }));
});

test('a resource that the server does not tell of is -32602; one that is hidden never goes up', async (t) => {
  const { client, upstream } = await stage(t, listening(({ resourceSubscriptions, ...lists }) => (resourceSubscriptions?.includes('note://none') ? { ...lists, resourceSubscriptions: [] } : lists)), { expose: { mode: 'blocklist', tools: ['secret:*'] } });
  assert.equal((await client.error('resources/subscribe', { uri: 'note://none' })).code, -32602);
  const before = upstream.of('subscriptions/listen').length;
  assert.equal((await client.error('resources/subscribe', { uri: 'secret://1' })).code, -32015);
  assert.equal((await client.error('resources/subscribe', {})).code, -32602);
  assert.equal(upstream.of('subscriptions/listen').length, before);
});

test('a listen that breaks off is begun anew, and then all lists may have changed, told once', async (t) => {
  const { get, first, streams, upstream } = await stage(t);
  first.cut();
  const again = await until(() => streams.find((one) => one !== first), () => 'the next listen');
  assert.deepEqual(again.filter, LISTS);
  for (const kind of ['tools', 'prompts', 'resources']) await get.message(({ method }) => method === `notifications/${kind}/list_changed`);
  again.tell('prompts/list_changed', { end: true });
  await get.message(({ params }) => params?.end);
  assert.equal(get.events.filter(({ json }) => /list_changed/.test(json?.method)).length, 4);
  assert.equal(upstream.of('subscriptions/listen').length, 2);
});

test('a server that honours nothing is not asked again, and one without listen only after pauses', async (t) => {
  const silent = listening(() => ({}));
  const { connect, upstream } = await scene(t, { upstream: silent.upstream, source: { era: 'modern' } });
  const client = await connect();
  await client.listen();
  await upstream.received('subscriptions/listen');
  await client.result('tools/call', { name: 'read' });
  const without = await scene(t, { upstream: listening(() => null).upstream, source: { era: 'modern' } });
  const other = await without.connect();
  await other.listen();
  await without.upstream.received('subscriptions/listen', 2);
  assert.equal((await other.result('tools/call', { name: 'read' })).content[0].text, 'did read');
  const [first, second] = without.upstream.of('subscriptions/listen');
  assert.ok(second.at - first.at >= 400, 'the pause');
  assert.equal(upstream.of('subscriptions/listen').length, 1);
});

test('DELETE ends the GET stream, its listen, and what is under way; another session hears nothing', async (t) => {
  const { client, get, first, connect, streams, upstream } = await stage(t);
  upstream.handlers['tools/call'] = ({ reply }) => void reply.sse();
  const other = await connect({ token: 'mine' });
  const theirs = await other.listen();
  const second = await until(() => streams[1], () => 'the other listen');
  const hanging = client.send('tools/call', { name: 'read' });
  const call = await upstream.received('tools/call');
  assert.equal((await client.delete()).status, 200);
  await get.end();
  await first.recorded.gone;
  await call.gone;
  assert.equal((await hanging).message, undefined);
  second.tell('tools/list_changed');
  await theirs.message(({ method }) => /tools/.test(method));
});

test('after a restart of the gateway the subscriptions of the session are listened to again', async (t) => {
  const { client, gateway, streams } = await stage(t);
  await client.result('resources/subscribe', { uri: 'note://1' });
  await gateway.kill9();
  await gateway.launch();
  const get = await client.listen();
  const stream = await until(() => streams.find(({ filter }) => filter.toolsListChanged), () => 'the listen');
  assert.deepEqual(stream.filter.resourceSubscriptions, ['note://1']);
  stream.tell('resources/updated', { uri: 'note://1' });
  await get.message(({ method }) => /updated/.test(method));
});

test('a verified subject goes on in its session by a GET, after a restart of the gateway', async (t) => {
  const issuer = await startIssuer(t);
  const server = listening();
  const { connect, gateway } = await scene(t, { upstream: server.upstream, source: { era: 'modern', auth: { issuer: issuer.url, audience: 'gate' } } });
  const client = await connect({ token: issuer.token('gate', { sub: 'ada' }) });
  await client.result('logging/setLevel', { level: 'error' }); // answered once the session is stored
  await gateway.kill9();
  await gateway.launch();
  const get = await client.listen();
  const stream = await until(() => server.streams.find(({ filter }) => filter.toolsListChanged), () => 'the listen');
  stream.tell('tools/list_changed');
  assert.deepEqual(await get.message(({ method }) => /tools/.test(method)), note('tools/list_changed'));
});

test('the gateway\'s own news go on the stream as well', async (t) => {
  const { get, gateway } = await stage(t);
  gateway.hangUp();
  assert.deepEqual(await get.message(({ method }) => /tools/.test(method)), note('tools/list_changed'));
});
