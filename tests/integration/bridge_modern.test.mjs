// Modern clients (2026-07-28) before a server that knows the legacy era alone: `bridge: modern`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { elicit } from './lib/asking.mjs';
import { accept, ALL, call, FORMS, OWNER, stage } from './lib/bridged_stage.mjs';
import { startEverything } from './lib/everything.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { key, modernClient, WITH_TASKS } from './lib/modern_client.mjs';
import { modernSdkClient } from './lib/modern_sdk.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { until, within } from './lib/wait.mjs';

test('discover is answered out of `initialize`, which is asked once', async (t) => {
  const capabilities = { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {}, completions: {}, tasks: { list: {} } };
  const { modern, mine, upstream } = await stage(t, { upstream: { capabilities } });
  const client = modern({ capabilities: FORMS });
  const { status, message } = await client.send('server/discover');
  assert.equal(status, 200);
  assert.deepEqual(message.result, {
    resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {}, completions: {}, ...WITH_TASKS },
    ttlMs: 0, cacheScope: 'private', _meta: { [key('serverInfo')]: { name: 'scripted-upstream', version: '1.0.0' } },
  });
  await client.discover();
  await client.result('tools/list');
  const [initialize, ...others] = mine('initialize');
  assert.equal(others.length, 0);
  assert.deepEqual(initialize.rpc.params, { protocolVersion: '2025-11-25', capabilities: FORMS, clientInfo: client.info });
  assert.equal(initialize.headers.authorization, OWNER.authorization);
  assert.equal(upstream.of('server/discover', { own: false }).length, 0);
});

test('a request goes up without what the era does not have, in a session; its result comes down in the modern form', async (t) => {
  const { modern, mine, upstream } = await stage(t);
  upstream.handlers['tools/call'] = ({ reply, params }) =>
    reply.result({ content: [{ type: 'text', text: `did ${params.name}` }], resultType: 'input_required', _meta: { kept: 1, [key('protocolVersion')]: 'x' } });
  const meta = { progressToken: 'p', traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };
  const result = await modern().result('tools/call', { name: 'read', arguments: { n: 1 }, task: { ttl: 5 } }, { meta, headers: { 'mcp-param-region': 'eu' } });
  assert.deepEqual(result, {
    content: [{ type: 'text', text: 'did read' }], resultType: 'complete',
    _meta: { kept: 1, [key('serverInfo')]: { name: 'scripted-upstream', version: '1.0.0' } },
  });
  const [call] = upstream.calls;
  assert.deepEqual(call.rpc.params, { name: 'read', arguments: { n: 1 }, _meta: meta });
  assert.deepEqual(Object.keys(call.headers).filter((name) => /^mcp-/.test(name)).sort(), ['mcp-protocol-version', 'mcp-session-id']);
  assert.equal(call.headers['mcp-protocol-version'], '2025-11-25');
  assert.ok(upstream.liveSessions.has(call.headers['mcp-session-id']));
  assert.ok(mine('initialize').length === 1 && upstream.of('notifications/initialized').some((r) => r.headers['mcp-session-id'] === call.headers['mcp-session-id']));
});

test('name and arguments go up byte for byte', async (t) => {
  const { modern, upstream } = await stage(t);
  const client = modern();
  const meta = JSON.stringify(client.envelope());
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"a":1e2, "b":"\\u00fc"},"_meta":${meta},"name":"re\\u0061d"}}`;
  await client.send('tools/call', { name: 'read' }, { id: 1, body });
  const { text } = upstream.calls[0];
  assert.ok(text.includes('"params":{"arguments":{"a":1e2, "b":"\\u00fc"},"name":"re\\u0061d"}}'), text);
});

test('lists are filtered, and say how long they may be kept', async (t) => {
  const tools = [tool('read', { support: 'optional' }), tool('secret')];
  const capabilities = { tools: {}, resources: {}, prompts: {} };
  const { modern, upstream } = await stage(t, { upstream: { tools, capabilities }, expose: { mode: 'blocklist', tools: ['secret*'] } });
  upstream.handlers['resources/list'] = ({ reply }) => reply.result({ resources: [{ uri: 'file:///a', name: 'a' }] });
  upstream.handlers['resources/templates/list'] = ({ reply }) => reply.result({ resourceTemplates: [] });
  upstream.handlers['prompts/list'] = ({ reply }) => reply.result({ prompts: [{ name: 'hello' }, { name: 'secret' }] });
  upstream.handlers['resources/read'] = ({ reply, params }) => reply.result({ contents: [{ uri: params.uri, text: 'x' }] });
  const client = modern();
  const cached = ({ resultType, ttlMs, cacheScope, _meta }) => [resultType, ttlMs, cacheScope, _meta[key('serverInfo')].name];
  const expected = ['complete', 0, 'private', 'scripted-upstream'];
  const listed = await client.result('tools/list');
  assert.deepEqual(listed.tools, [{ name: 'read', description: 'The tool read', inputSchema: { type: 'object' } }]);
  assert.deepEqual(cached(listed), expected);
  assert.deepEqual(cached(await client.result('resources/list')), expected);
  assert.deepEqual(cached(await client.result('resources/templates/list')), expected);
  const prompts = await client.result('prompts/list');
  assert.deepEqual([prompts.prompts, cached(prompts)], [[{ name: 'hello' }], expected]);
  assert.deepEqual(cached(await client.result('resources/read', { uri: 'file:///a' })), expected);
});

test('errors are told as the modern era has them', async (t) => {
  const { modern, upstream } = await stage(t, { upstream: { capabilities: { tools: {}, resources: {}, prompts: {} } } });
  const client = modern();
  const fails = async (method, params, code, message, data) => {
    upstream.handlers[method] = ({ reply }) => reply.error(code, message, data);
    const answer = await client.send(method, params);
    return [answer.status, answer.message.error.code, answer.message.error.message, answer.message.error.data];
  };
  assert.deepEqual(await fails('resources/read', { uri: 'a:b' }, -32002, 'gone', { uri: 'a:b' }), [200, -32602, 'gone', { uri: 'a:b' }]);
  assert.deepEqual(await fails('tools/call', { name: 'read' }, -32602, 'bad', { x: 1 }), [200, -32602, 'bad', { x: 1 }]);
  assert.deepEqual(await fails('tools/call', { name: 'read' }, -32021, 'mine'), [200, -32603, 'mine', { original: { code: -32021, message: 'mine' } }]);
  assert.deepEqual(await fails('tools/call', { name: 'read' }, -32002, 'mine'), [200, -32603, 'mine', { original: { code: -32002, message: 'mine' } }]);
  assert.deepEqual(await fails('prompts/get', { name: 'p' }, -32601, 'Method not found'), [404, -32601, 'Method not found', undefined]);
  const urls = { elicitations: [{ mode: 'url', elicitationId: 'e', url: 'https://a.example/', message: 'open' }] };
  const [, code, message] = await fails('tools/call', { name: 'read' }, -32042, 'urls', urls);
  assert.deepEqual([code, /https:\/\/a\.example\//.test(message)], [-32602, true]);
  client.capabilities = ALL;
  const { _meta: meta, ...asked } = await client.result('tools/call', { name: 'read' });
  assert.equal(meta['io.modelcontextprotocol/serverInfo'].name, 'taskgate');
  assert.deepEqual(asked, { resultType: 'input_required', inputRequests: { 'r0.1': { method: 'elicitation/create', params: { mode: 'url', url: 'https://a.example/', message: 'open' } } } });
});

test('calls that policy refuses do not reach the server', async (t) => {
  const { modern, upstream } = await stage(t, { rules: [['write', 'deny']] });
  const error = await modern().error('tools/call', { name: 'write' });
  assert.equal(error.code, -32014);
  assert.equal(upstream.calls.length, 0);
});

test('a session is of one owner, clientInfo and set of capabilities; the same one is used again', async (t) => {
  const { modern, mine, upstream } = await stage(t, { config: { workers: 1 } });
  const call = async (options) => {
    await modern(options).result('tools/call', { name: 'read' });
    return upstream.calls.at(-1).headers['mcp-session-id'];
  };
  const first = await call();
  assert.equal(await call(), first);
  const others = [await call({ headers: { authorization: 'Bearer other' } }), await call({ capabilities: { roots: {} } }), await call({ info: { name: 'x', version: '2' } })];
  assert.equal(new Set([first, ...others]).size, 4);
  assert.equal(mine('initialize').length, 4);
});

test('callers without credentials share no session, and theirs ends with the request', async (t) => {
  const { modern, mine, upstream } = await stage(t);
  const client = modern({ headers: {} });
  await client.result('tools/call', { name: 'read' });
  await client.result('tools/call', { name: 'read' });
  const [a, b] = upstream.calls.map((r) => r.headers['mcp-session-id']);
  assert.notEqual(a, b);
  for (const session of [a, b]) await upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === session);
  assert.equal(mine('initialize').length, 2);
});

test('a session that the server has forgotten: a tool call is refused and not sent again, anything else is', async (t) => {
  const { modern, upstream } = await stage(t);
  const client = modern();
  await client.result('tools/call', { name: 'read' });
  upstream.liveSessions.clear();
  const error = await client.error('tools/call', { name: 'read' });
  assert.deepEqual([error.code, error.data.retryable], [-32000, true]);
  assert.equal(upstream.calls.length, 2);
  await client.result('tools/call', { name: 'read' });
  upstream.liveSessions.clear();
  await client.result('tools/list');
});

test('a server that refuses the credentials: its 401 comes down with its challenge', async (t) => {
  const challenge = 'Bearer resource_metadata="https://a.example/.well-known/oauth-protected-resource"';
  const { modern, upstream } = await stage(t);
  upstream.onHttp = (recorded, reply) => recorded.headers.authorization === 'Bearer bad' && (reply.http(401, { 'www-authenticate': challenge }, 'no'), true);
  const answer = await modern({ headers: { authorization: 'Bearer bad' } }).send('tools/call', { name: 'read' });
  assert.deepEqual([answer.status, answer.headers['www-authenticate'], upstream.calls.length], [401, challenge, 0]);
});

// ---- meanwhile ----

const progress = (token, value) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: token, progress: value } });
const log = (level, data) => ({ jsonrpc: '2.0', method: 'notifications/message', params: { level, data } });

test("an HTTP error of the server's comes down with the headers that tell how to go on, and no others of its era", async (t) => {
  const { modern, upstream } = await stage(t);
  const client = modern();
  const theirs = { 'mcp-session-id': 'of-the-legacy-server', 'set-cookie': 'a=b', 'mcp-protocol-version': '2025-11-25', 'last-event-id': '7', 'x-internal': 'host-17' };
  const told = { 'content-type': 'text/plain', 'www-authenticate': 'Bearer realm="x"', 'retry-after': '7' };
  const shown = ({ headers }) => Object.keys({ ...theirs, ...told }).filter((name) => headers[name] !== undefined);
  // At the opening of the session, and in it.
  for (const method of ['initialize', 'tools/call']) {
    for (const status of [401, 403, 429]) {
      upstream.handlers[method] = ({ reply }) => reply.http(status, { ...theirs, ...told }, 'no');
      const answer = await client.send('tools/call', { name: 'read', arguments: {} });
      assert.deepEqual([answer.status, answer.text], [status, 'no'], method);
      assert.deepEqual(shown(answer), Object.keys(told), `${method} ${status}`);
    }
    delete upstream.handlers[method];
    await client.result('tools/call', { name: 'read', arguments: {} });
  }
});

test('progress comes down on the call\'s stream, after a question with the token of the new request', async (t) => {
  const handler = async ({ upstream, reply, id, params }) => {
    const stream = reply.sse();
    const token = params._meta.progressToken;
    stream.event(progress(token, 1));
    stream.event({ jsonrpc: '2.0', ...elicit('q1') });
    stream.event(progress(token, 2));
    await upstream.received((r) => r.rpc?.id === 'q1' && !r.rpc.method);
    stream.event(progress(token, 3));
    stream.event({ jsonrpc: '2.0', id, result: { content: [] } });
    stream.end();
  };
  const { modern } = await stage(t, { upstream: { handlers: { 'tools/call': handler } } });
  const client = modern({ capabilities: FORMS });
  const values = ({ others }) => others.map(({ params }) => [params.progressToken, params.progress]);
  const first = await client.send('tools/call', call, { meta: { progressToken: 'a' } });
  assert.deepEqual([first.message.result.resultType, first.headers['x-accel-buffering'], values(first).slice(0, 1)], ['input_required', 'no', [['a', 1]]]);
  const { requestState } = first.message.result;
  const last = await client.send('tools/call', { ...call, requestState, inputResponses: { 'r1.1': accept() } }, { meta: { progressToken: 'b' } });
  assert.deepEqual([...values(first), ...values(last)].map(([, value]) => value), [1, 2, 3]);
  assert.deepEqual(values(last).at(-1), ['b', 3]);
});

test('a log level is set in the session before the call; messages come down from that level on, and to no one else', async (t) => {
  const capabilities = { tools: {}, logging: {} };
  const handler = ({ reply, id }) => {
    const stream = reply.sse();
    for (const level of ['debug', 'warning', 'error']) stream.event(log(level, level));
    stream.event({ jsonrpc: '2.0', id, result: { content: [] } });
    stream.end();
  };
  const levels = [];
  const { modern, upstream } = await stage(t, { upstream: { capabilities, handlers: { 'tools/call': handler, 'logging/setLevel': ({ reply, params }) => (levels.push(params.level), reply.result({})) } } });
  const client = modern();
  const heard = async (level) => {
    const { others, message } = await client.send('tools/call', call, { meta: level ? { [key('logLevel')]: level } : {} });
    assert.equal(message.result.resultType, 'complete');
    return others.map(({ params }) => params.level);
  };
  assert.deepEqual(await heard('warning'), ['warning', 'error']);
  assert.deepEqual(await heard('warning'), ['warning', 'error']);
  assert.deepEqual(await heard('error'), ['error']);
  assert.deepEqual(await heard(undefined), []);
  assert.deepEqual(levels, ['warning', 'error']);
  const order = upstream.requests.map((r) => r.rpc?.method).filter((method) => ['logging/setLevel', 'tools/call'].includes(method));
  assert.deepEqual(order.slice(0, 2), ['logging/setLevel', 'tools/call']);
  const wrong = await client.send('tools/call', call, { meta: { [key('logLevel')]: 'loud' } });
  assert.equal(wrong.message.error.code, -32602);
});

test('a client that closes its stream cancels the call; nobody gets its session after it', async (t) => {
  const waiting = ({ reply, params }) => reply.sse().event(progress(params._meta.progressToken, 1));
  const { modern, upstream } = await stage(t, { upstream: { handlers: { 'tools/call': waiting } } });
  const stream = await modern({ capabilities: FORMS }).stream('tools/call', call, { meta: { progressToken: 1 } });
  await stream.message((m) => m.method === 'notifications/progress');
  stream.abort();
  const cancelled = await upstream.received('notifications/cancelled');
  assert.equal(cancelled.rpc.params.requestId, upstream.calls[0].rpc.id);
  await upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === upstream.calls[0].headers['mcp-session-id']);
});

test('a stream that the server closes early is resumed by the gateway', async (t) => {
  const { modern, upstream } = await stage(t);
  upstream.handlers['tools/call'] = ({ reply, id }) => {
    const stream = reply.sse();
    stream.raw('retry: 100\nid: e1\ndata: \n\n');
    stream.end();
    upstream.onHttp = (recorded, resumed) => {
      if (recorded.headers['last-event-id'] !== 'e1') return false;
      const again = resumed.sse();
      again.event({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'resumed' }] } });
      again.end();
      return true;
    };
  };
  const result = await modern().result('tools/call', call);
  assert.equal(result.content[0].text, 'resumed');
  assert.equal(upstream.calls.length, 1);
});

// ---- approvals ----

const approving = { rules: [['delete_*', 'approve']], approval: workflow('10m') };
const hidden = [tool('delete_user'), tool('read')];

test('an approved call of a client with tasks runs in a session of its own, once', async (t) => {
  const { modern, admin, upstream } = await stage(t, { ...approving, upstream: { tools: hidden } });
  const client = modern({ capabilities: WITH_TASKS });
  const { capabilities } = await client.discover();
  assert.deepEqual(capabilities.extensions, WITH_TASKS.extensions);
  const task = await client.create('delete_user', { id: 7 });
  assert.equal((await client.get(task.taskId)).status, 'working');
  await admin.approve(task.taskId);
  const done = await until(async () => {
    const shown = await client.get(task.taskId);
    return shown.status === 'completed' && shown;
  }, 'the outcome');
  assert.deepEqual([done.result.resultType, done.result.structuredContent], ['complete', { tool: 'delete_user', arguments: { id: 7 } }]);
  assert.equal(upstream.calls.length, 1);
  const [{ headers, rpc }] = upstream.calls;
  assert.deepEqual([rpc.params, headers.authorization, headers['mcp-method'], headers['mcp-protocol-version']], [{ name: 'delete_user', arguments: { id: 7 } }, OWNER.authorization, undefined, '2025-11-25']);
  await upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === headers['mcp-session-id']);
});

test('an approved call of a client without tasks is held, and answered', async (t) => {
  const { modern, admin, upstream } = await stage(t, { ...approving, upstream: { tools: hidden } });
  const client = modern();
  const answer = client.result('tools/call', { name: 'delete_user', arguments: { id: 7 } });
  await admin.approve((await admin.pending()).id);
  assert.equal((await answer).content[0].text, 'did delete_user');
  assert.equal(upstream.calls.length, 1);
});

test('an approved call that the server answers with an error fails with it', async (t) => {
  const { modern, admin } = await stage(t, { ...approving, upstream: { tools: hidden, handlers: { 'tools/call': ({ reply }) => reply.error(-32050, 'mine') } } });
  const client = modern({ capabilities: WITH_TASKS });
  const { taskId } = await client.create('delete_user');
  await admin.approve(taskId);
  const failed = await until(async () => {
    const shown = await client.get(taskId);
    return shown.status === 'failed' && shown;
  }, 'the outcome');
  assert.deepEqual([failed.error.code, failed.error.data.original.code], [-32603, -32050]);
  assert.equal((await client.error('tasks/get', { taskId: 'of-the-server' })).code, -32602);
});

// ---- tasks of the server's own ----

test('a tool that the server runs as a task only: the gateway follows that task, in one of its own', async (t) => {
  const handlers = { 'tasks/get': ({ upstream, reply, params }) => reply.result({ ...upstream.tasks.get(params.taskId).task, status: 'completed' }) };
  const { modern, upstream } = await stage(t, { upstream: { capabilities: { tools: {}, tasks: TASKS }, tools: [tool('long', { support: 'required' }), tool('both', { support: 'optional' })], handlers } });
  const client = modern({ capabilities: WITH_TASKS });
  const { taskId } = await client.create('long', { n: 1 });
  const done = await until(async () => {
    const shown = await client.get(taskId);
    return shown.status === 'completed' && shown;
  }, 'the outcome');
  assert.deepEqual([done.result.resultType, done.result.structuredContent], ['complete', { tool: 'long', arguments: { n: 1 } }]);
  const plain = await modern().result('tools/call', { name: 'long', arguments: { n: 2 } });
  assert.deepEqual([plain.resultType, plain.structuredContent.arguments], ['complete', { n: 2 }]);
  assert.deepEqual((await client.result('tools/call', { name: 'both' })).content[0].text, 'did both');
  assert.deepEqual(upstream.calls.map(({ rpc }) => [rpc.params.name, rpc.params.task === undefined]), [['long', false], ['long', false], ['both', true]]);
});

// ---- subscriptions/listen ----

const loud = { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { subscribe: true, listChanged: true } };
const acknowledged = (m) => m.method === 'notifications/subscriptions/acknowledged';

test('listen: the GET stream of a session of its own, and a subscription for each resource', async (t) => {
  const subscribed = [];
  const handlers = { 'resources/subscribe': ({ reply, params }) => (subscribed.push(params.uri), params.uri === 'a:unknown' ? reply.error(-32002, 'no') : reply.result({})) };
  const { modern, upstream } = await stage(t, { upstream: { capabilities: loud, handlers }, expose: { mode: 'blocklist', tools: ['b:*'] } });
  const client = modern();
  const discovered = await client.discover();
  assert.deepEqual([discovered.capabilities.prompts, discovered.capabilities.resources], [loud.prompts, loud.resources]);
  const stream = await client.stream('subscriptions/listen', { notifications: { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: ['a:1', 'a:unknown', 'b:hidden', 'a:2'] } }, { id: 'listen-1' });
  const ack = await stream.message();
  assert.deepEqual(ack, { jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: { notifications: { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: ['a:1', 'a:2'] }, _meta: { [key('subscriptionId')]: 'listen-1' } } });
  assert.deepEqual(subscribed, ['a:1', 'a:unknown', 'a:2']);
  const news = (method, params) => ({ jsonrpc: '2.0', method: `notifications/${method}`, ...(params ? { params } : {}) });
  for (const message of [news('resources/list_changed'), log('error', 'x'), news('resources/updated', { uri: 'b:hidden' }), news('prompts/list_changed'), news('resources/updated', { uri: 'a:2' }), news('tools/list_changed')]) upstream.push(message);
  const heard = [await stream.message(), await stream.message(), await stream.message()];
  assert.deepEqual(heard.map(({ method, params }) => [method, params.uri, params._meta[key('subscriptionId')]]), [['notifications/prompts/list_changed', undefined, 'listen-1'], ['notifications/resources/updated', 'a:2', 'listen-1'], ['notifications/tools/list_changed', undefined, 'listen-1']]);
  upstream.push({ jsonrpc: '2.0', ...elicit('outside') });
  assert.equal((await upstream.received((r) => r.rpc?.id === 'outside' && !r.rpc.method)).rpc.error.code, -32601);
  const session = upstream.of('resources/subscribe')[0].headers['mcp-session-id'];
  stream.abort();
  await upstream.received((r) => r.method === 'DELETE' && r.headers['mcp-session-id'] === session);
});

test('listen: a session that the server has forgotten is not listened on', async (t) => {
  const { modern, upstream } = await stage(t, { upstream: { capabilities: loud, handlers: { 'resources/subscribe': ({ reply }) => reply.result({}) } } });
  const client = modern();
  await client.result('tools/list');
  upstream.liveSessions.clear();
  const stream = await client.stream('subscriptions/listen', { notifications: { promptsListChanged: true, resourceSubscriptions: ['a:1'] } }, { id: 'l' });
  assert.deepEqual((await stream.message()).params.notifications, { promptsListChanged: true, resourceSubscriptions: ['a:1'] });
  upstream.push({ jsonrpc: '2.0', method: 'notifications/prompts/list_changed' });
  assert.equal((await stream.message()).method, 'notifications/prompts/list_changed');
});

test('listen: the server ends its stream, and the client gets the graceful end', async (t) => {
  const { modern, upstream } = await stage(t, { upstream: { capabilities: loud } });
  const stream = await modern().stream('subscriptions/listen', { notifications: { promptsListChanged: true } }, { id: 7 });
  await stream.message(acknowledged);
  for (const open of upstream.getStreams) open.end();
  const { id, result } = await stream.message();
  assert.deepEqual([id, result.resultType, result._meta[key('subscriptionId')], result._meta[key('serverInfo')].name], [7, 'complete', 7, 'taskgate']);
});

test('listen: a server without a GET stream announces nothing, and what it would tell is not honoured', async (t) => {
  const { modern, upstream } = await stage(t, { upstream: { capabilities: loud } });
  upstream.onHttp = (recorded, reply) => recorded.method === 'GET' && (reply.http(405), true);
  const client = modern();
  const { capabilities } = await client.discover();
  assert.deepEqual([capabilities.prompts, capabilities.resources], [{}, {}]);
  const { others, message } = await client.send('subscriptions/listen', { notifications: { promptsListChanged: true, resourceSubscriptions: ['a:1'] } }, { id: 8 });
  assert.deepEqual([others.map(({ params }) => params.notifications), message.result.resultType], [[{}], 'complete']);
});

test('listen: of lists that a server tells nothing of, the tools alone are announced, and their news is a reload of the gateway', async (t) => {
  const { modern, gateway, upstream } = await stage(t, { upstream: { capabilities: { tools: {}, prompts: {}, resources: {} } } });
  const client = modern();
  const { capabilities } = await client.discover();
  assert.deepEqual([capabilities.tools, capabilities.prompts, capabilities.resources], [{ listChanged: true }, {}, {}]);
  const stream = await client.stream('subscriptions/listen', { notifications: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true } }, { id: 'quiet' });
  assert.deepEqual((await stream.message(acknowledged)).params.notifications, { toolsListChanged: true });
  assert.equal(upstream.getStreams.size > 0, true, 'the server has a GET stream, on which it is silent');
  gateway.hangUp();
  assert.deepEqual(await stream.message(), { jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: { _meta: { [key('subscriptionId')]: 'quiet' } } });
});

// ---- the official client before an official server ----

test('58: SDK 2.4, pinned to 2026-07-28, before server-everything: list, call, questions, progress, a log level, listen, cancel', async (t) => {
  const everything = await startEverything(t);
  const gateway = await startGateway(t, { upstream: everything.url, source: { bridge: 'modern' } });
  const asked = [];
  const client = await modernSdkClient(t, gateway.url, {
    capabilities: { elicitation: { form: {} }, sampling: {} },
    headers: OWNER,
    prepare: (c) => {
      c.setRequestHandler('elicitation/create', ({ params }) => (asked.push(params.message), { action: 'accept', content: { name: 'Ada', integer: 7 } }));
      c.setRequestHandler('sampling/createMessage', ({ params }) => (asked.push(params.messages[0].content.text), { role: 'assistant', model: 'm', content: { type: 'text', text: 'sampled' } }));
    },
  });
  const names = (await client.listTools()).tools.map(({ name }) => name);
  assert.ok(names.includes('echo') && names.includes('trigger-elicitation-request') && names.includes('trigger-sampling-request'), names.join());
  const text = async (name, args, options) => (await client.callTool({ name, arguments: args }, options)).content.map((c) => c.text).join('\n');
  assert.match(await text('echo', { message: 'hello' }), /hello/);
  assert.match(await text('trigger-elicitation-request', {}), /Ada/);
  assert.match(await text('trigger-sampling-request', { prompt: 'Say it', maxTokens: 5 }), /sampled/);
  assert.equal(asked.length, 2);
  assert.ok((await client.listResources()).resources.length > 0);
  assert.ok((await client.listPrompts()).prompts.length > 0);

  const values = [];
  assert.match(await text('trigger-long-running-operation', { duration: 0.3, steps: 3 }, { onprogress: ({ progress: value }) => values.push(value) }), /completed/);
  assert.deepEqual(values, [1, 2, 3]);

  const raw = modernClient(t, gateway.url, { capabilities: {}, headers: OWNER });
  const quiet = await raw.result('tools/call', { name: 'echo', arguments: { message: 'x' } }, { meta: { [key('logLevel')]: 'error' } });
  assert.equal(quiet.resultType, 'complete');

  const updated = [];
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => updated.push(params.uri));
  const uri = (await client.listResources()).resources[0].uri;
  const subscription = await client.listen({ resourceSubscriptions: [uri] });
  assert.deepEqual(subscription.honoredFilter, { resourceSubscriptions: [uri] });
  await subscription.close();

  const abort = new AbortController();
  const long = client.callTool({ name: 'trigger-long-running-operation', arguments: { duration: 60, steps: 60 } }, { signal: abort.signal, onprogress: () => abort.abort() });
  await assert.rejects(long);
  assert.match(await text('echo', { message: 'after' }), /after/);
});

test('open calls of one client hold no more than its share of the sessions', async (t) => {
  const { modern, upstream } = await stage(t, { config: { limits: { share_percent: 1 } }, upstream: { handlers: { 'tools/call': ({ params, reply }) => params.name === 'done' && reply.result({ content: [] }) } } });
  const [greedy, modest] = [modern({ headers: {} }), modern({ headers: { authorization: 'Bearer modest' } })];
  assert.ok(await modest.result('tools/list'));
  for (let i = 0; i < 10; i++) greedy.send('tools/call', { name: 'read' }).catch(() => {}); // until the end of the test
  await until(() => upstream.calls.length === 10, 'ten open calls');
  const { message } = await within(greedy.send('tools/call', { name: 'read' }), 'the refusal');
  assert.deepEqual([message.error.code, message.error.data.details], [-32013, 'too many sessions are open at the server']);
  assert.ok(await within(modest.result('tools/call', { name: 'done' }), 'the answer to another'));
});

test('all workers together have a thousand sessions: one more call is refused', async (t) => {
  const { modern, upstream, mine } = await stage(t, { config: { workers: 2, limits: { share_percent: 100 } }, upstream: { handlers: { 'tools/call': () => {} } } });
  const client = modern({ headers: {} });
  const call = () => client.send('tools/call', { name: 'read' });
  for (let i = 0; i < 1000; i++) call().catch(() => {}); // until the end of the test
  await until(() => upstream.calls.length === 1000, 'a thousand open calls', { deadline: 60_000 });
  const { message } = await within(call(), 'the refusal');
  assert.deepEqual([message.error.code, message.error.data.details], [-32013, 'too many sessions are open at the server']);
  assert.equal(mine('initialize').length, 1000);
});
