// Streams that clients open: the GET stream of a session, and subscriptions/listen.
import { elicit } from '../integration/lib/asking.mjs';
import { accept, ALL } from '../integration/lib/bridged_stage.mjs';
import { workflow } from '../integration/lib/gateway.mjs';
import { key, WITH_TASKS } from '../integration/lib/modern_client.mjs';
import { until } from '../integration/lib/wait.mjs';
import { answerTo, log, PAIRS, progress, tools } from './lib/pairs.mjs';
import { scenario } from './lib/scenario.mjs';

const [LL, LM, ML, MM] = PAIRS;
const note = (method, params) => ({ jsonrpc: '2.0', method: `notifications/${method}`, ...(params ? { params } : {}) });
const approving = { rules: [['delete_*', 'approve']], approval: workflow('10m') };
const isMethod = (method) => (message) => message.method === `notifications/${method}`;

/** The stream of a session of `token` at the server, once it is open. */
const sessionStream = (upstream, token, session) => until(() => [...upstream.getStreams].find(({ response }) => response.req.headers.authorization === `Bearer ${token}` && (!session || response.req.headers['mcp-session-id'] === session)), 'the GET stream at the server');

scenario('get_stream_legacy_to_legacy', { title: `messages on the GET stream: ${LL.title}`, ...approving, ...LL.options({ upstream: { tools: tools('delete_user', 'read'), capabilities: { tools: { listChanged: true }, logging: {}, notifications: { tasks: { status: true } } } } }) }, async (stage) => {
  const { upstream } = stage;
  const client = await LL.connect(stage, 'client', { knows: 'tasks asked' });
  const get = await client.listen();
  const theirs = await sessionStream(upstream, 'token of client');
  theirs.event(note('prompts/list_changed', { more: 1 }), { id: 'e-1' });
  await get.message(isMethod('prompts/list_changed'));
  theirs.event(log('error', 'on the stream'), { id: 'e-2', event: 'message' });
  theirs.event(progress('unknown', 1));
  theirs.event({ jsonrpc: '2.0', method: 'notifications/own/thing', params: { odd: [1.5, null] } });
  await get.message(({ method }) => method === 'notifications/own/thing');
  theirs.event({ jsonrpc: '2.0', id: 'ping-1', method: 'ping' });
  await get.message(({ id }) => id === 'ping-1');
  await (await client.post(answerTo('ping-1', {}))).bytes();
  theirs.event({ jsonrpc: '2.0', ...elicit('q-1') });
  await get.message(({ id }) => id === 'q-1');
  await (await client.post(answerTo('q-1', accept()))).bytes();
  theirs.event(note('tools/list_changed'));
  await get.message(isMethod('tools/list_changed'));
  const id = await LL.task(client, 'delete_user', { n: 1 });
  await stage.admin.reject(id, 'no');
  await get.message(({ method, params }) => method === 'notifications/tasks/status' && params.status === 'failed');
  theirs.end();
  await get.end();
  const again = await client.listen({ headers: { 'last-event-id': 'e-2' } });
  const other = await sessionStream(upstream, 'token of client');
  again.abort();
  await until(() => !upstream.getStreams.has(other), 'the end of the second stream at the server');
});

scenario('get_stream_refused_legacy_to_legacy', { title: `a server without GET streams: ${LL.title}`, ...approving, ...LL.options({ upstream: { tools: tools('delete_user'), capabilities: { tools: {}, notifications: { tasks: { status: true } } } } }) }, async (stage) => {
  stage.upstream.onHttp = (recorded, reply) => recorded.method === 'GET' && (reply.http(405, { allow: 'POST, DELETE' }, 'no'), true);
  const client = await LL.connect(stage, 'client', { knows: 'tasks' });
  const get = await client.listen().catch((error) => void stage.note(`the stream: ${error.message}`));
  const id = await LL.task(client, 'delete_user', { n: 1 });
  await stage.admin.reject(id, 'no');
  await get?.message(({ params }) => params?.status === 'failed');
});

/** A modern server whose listen streams the script plays: {id, event(method, params), end()}. */
function listening(honours = (filter) => filter) {
  const streams = [];
  const handlers = {
    'subscriptions/listen': ({ reply, params, id }) => {
      const sse = reply.sse();
      const stamp = { _meta: { [key('subscriptionId')]: id } };
      const stream = { id, event: (method, more = {}) => sse.event(note(method, { ...more, ...stamp })), end: () => (sse.event(answerTo(id, { resultType: 'complete', ...stamp })), sse.end()), cut: sse.cut };
      streams.push(stream);
      stream.acknowledge = () => stream.event('subscriptions/acknowledged', { notifications: honours(params.notifications) });
      if (!params.notifications.held) stream.acknowledge();
    },
  };
  return { streams, upstream: { tools: tools('delete_user', 'read'), capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true } }, handlers } };
}
const opened = (streams, count) => until(() => streams[count - 1], `listen stream ${count} at the server`);

const bridged = listening();
scenario('get_stream_legacy_to_modern', { title: `messages on the GET stream, and subscriptions: ${LM.title}`, ...approving, ...LM.options({ upstream: bridged.upstream }) }, async (stage) => {
  const { streams } = bridged;
  const client = await LM.connect(stage, 'client', { knows: 'tasks' });
  const get = await client.listen();
  const first = await opened(streams, 1);
  first.event('tools/list_changed');
  await get.message(isMethod('tools/list_changed'));
  first.event('prompts/list_changed', { more: 1 });
  first.event('message', { level: 'error', data: 'not asked for' });
  first.event('resources/list_changed');
  await get.message(isMethod('resources/list_changed'));
  await client.send('resources/subscribe', { uri: 'note://1' });
  const second = await opened(streams, 3); // the one before only asks whether the server knows the resource
  second.event('resources/updated', { uri: 'note://1' });
  await get.message(isMethod('resources/updated'));
  const id = await LM.task(client, 'delete_user', { n: 1 });
  await stage.admin.reject(id, 'no');
  await client.send('resources/unsubscribe', { uri: 'note://1' });
  const third = await opened(streams, 4);
  third.event('prompts/list_changed');
  await get.message(isMethod('prompts/list_changed'));
});

const merged = listening();
scenario('listen_modern_to_modern', { title: `subscriptions/listen with the gateway's own tasks: ${MM.title}`, ...approving, order: [/acknowledged/, /> server: POST subscriptions\/listen/], ...MM.options({ upstream: merged.upstream }) }, async (stage) => {
  const { streams } = merged;
  const client = await MM.connect(stage, 'client', { knows: 'tasks' });
  const id = await MM.task(client, 'delete_user', { n: 1 });
  const stream = await client.stream('subscriptions/listen', { notifications: { toolsListChanged: true, taskIds: [id, 'up-1'], resourceSubscriptions: ['a:1'] } }, { id: 'l-1' });
  const theirs = await opened(streams, 1);
  await stream.message(({ params }) => params?.taskId === id);
  theirs.event('tools/list_changed');
  await stream.message(isMethod('tools/list_changed'));
  theirs.event('resources/updated', { uri: 'a:1' });
  await stream.message(isMethod('resources/updated'));
  theirs.event('tasks', { taskId: 'up-1', status: 'working', createdAt: '2026-01-02T03:04:05.000Z', lastUpdatedAt: '2026-01-02T03:04:05.000Z', ttlMs: 60_000 });
  await stream.message(({ params }) => params?.taskId === 'up-1');
  await stage.admin.reject(id, 'no');
  await stream.message(({ params }) => params?.status === 'failed');
  theirs.end();
  await stream.end();
});

const held = listening();
scenario('listen_held_modern_to_modern', { title: `the acknowledgement waits for the server's: ${MM.title}`, ...approving, order: [/acknowledged/, /client: POST subscriptions\/listen/], ...MM.options({ upstream: held.upstream }) }, async (stage) => {
  const client = await MM.connect(stage, 'client', { knows: 'tasks' });
  const id = await MM.task(client, 'delete_user', { n: 1 });
  const answer = client.stream('subscriptions/listen', { notifications: { held: true, promptsListChanged: true, taskIds: [id] } }, { id: 'l-1' });
  const theirs = await opened(held.streams, 1);
  await stage.admin.reject(id, 'no');
  await stage.admin.inState(id, 'rejected', 'failed');
  theirs.acknowledge();
  const stream = await answer;
  await stream.message(({ params }) => params?.status === 'failed');
  theirs.cut();
  await stream.end().catch(() => {});
});

scenario('listen_alone_modern_to_modern', { title: `subscriptions/listen at a server without it: ${MM.title}`, ...approving, ...MM.options({ upstream: { tools: tools('delete_user') } }) }, async (stage) => {
  const client = await MM.connect(stage, 'client', { knows: 'tasks' });
  await client.send('subscriptions/listen', { notifications: { promptsListChanged: true } });
  const id = await MM.task(client, 'delete_user', { n: 1 });
  const stream = await client.stream('subscriptions/listen', { notifications: { toolsListChanged: true, taskIds: [id, 'tg_00000000-0000-4000-8000-000000000000'] } }, { id: 7 });
  await stage.admin.cancel(id, 'no');
  await stream.message(({ params }) => params?.status === 'cancelled');
});

scenario('listen_modern_to_legacy', {
  title: `subscriptions/listen: ${ML.title}`,
  ...approving,
  ...ML.options({ upstream: { tools: tools('delete_user', 'read'), capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, prompts: { listChanged: true } }, handlers: { 'resources/subscribe': ({ reply, params }) => (params.uri === 'a:unknown' ? reply.error(-32002, 'no such resource') : reply.result({})), 'resources/unsubscribe': ({ reply }) => reply.result({}) } } }),
}, async (stage) => {
  const { upstream } = stage;
  const client = await stage.modern('client', { capabilities: { ...ALL, ...WITH_TASKS }, token: 'owner' });
  const id = await ML.task(client, 'delete_user', { n: 1 });
  const stream = await client.stream('subscriptions/listen', { notifications: { promptsListChanged: true, resourceSubscriptions: ['a:1', 'a:unknown'], taskIds: [id] } }, { id: 'l-1' });
  await stream.message(isMethod('subscriptions/acknowledged'));
  const theirs = await sessionStream(upstream, 'owner', upstream.of('resources/subscribe')[0].headers['mcp-session-id']);
  theirs.event(note('prompts/list_changed', { more: 1 }));
  await stream.message(isMethod('prompts/list_changed'));
  theirs.event(note('resources/updated', { uri: 'a:1' }));
  await stream.message(isMethod('resources/updated'));
  theirs.event(note('tools/list_changed'));
  theirs.event(log('error', 'not asked for'));
  await stage.admin.reject(id, 'no');
  await stream.message(({ params }) => params?.status === 'failed');
  stream.abort();
  await upstream.received((r) => r.method === 'DELETE' && r.headers.authorization === 'Bearer owner');
});
