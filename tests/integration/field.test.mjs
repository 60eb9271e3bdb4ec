// Faults that other gateways had in the field, and that no other file here is about.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fastClock, fastClockMissing, LeapingClock } from './lib/fast_clock.mjs';
import { temporaryFolder, withoutAdvice, workflow } from './lib/gateway.mjs';
import { exchange } from './lib/http.mjs';
import { modernClient } from './lib/modern_client.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const PLAIN = { capabilities: {} };
const held = { rules: [['delete_*', 'approve']], approval: workflow('1h'), upstream: { tools: [tool('delete_user'), tool('read')] }, config: { clients: [{ match: '*', tasks: 'no' }] } };
const DELETE = { name: 'delete_user', arguments: { id: 7 } };

test('a tool that is silent for four minutes after the approval is not cut', { skip: fastClockMissing }, async (t) => {
  const { upstream, admin, connect } = await scene(t, { ...held, config: {}, env: fastClock(60) });
  let answer;
  upstream.handlers['tools/call'] = ({ reply }) => void (answer = () => reply.result({ content: [{ type: 'text', text: 'deleted' }] }));
  const client = await connect();
  const { taskId } = await client.createTask('delete_user', {}, {});
  const before = Date.parse((await admin.task(taskId)).createdAt);
  await admin.approve(taskId);
  await upstream.received('tools/call');
  const now = async () => Date.parse((await admin.get('/health')).headers.date);
  await until(async () => (await now()) - before > 250_000, 'four minutes of the gateway\'s clock', { deadline: 20_000, every: 200 });
  answer();
  await admin.inState(taskId, 'completed');
});

for (const [how, refuse] of Object.entries({ 'HTTP 500': ({ reply }) => reply.http(500, {}, 'broken'), '-32603': ({ reply }) => reply.error(-32603, 'broken') })) {
  for (const of of ['legacy', 'modern']) {
    test(`a server that answers ${how} to all, while its era is found out, gets a call of a ${of} client ${of === 'modern' ? 'never' : 'once'}`, async (t) => {
      const { upstream, gateway, raw } = await scene(t, { upstream: { handlers: Object.fromEntries(['server/discover', 'initialize', 'tools/list', 'tools/call', 'ping'].map((method) => [method, refuse])) }, awaitUpstream: false });
      const client = of === 'modern' ? modernClient(t, gateway.url, PLAIN) : await raw(PLAIN);
      const { status } = await client.send('tools/call', { name: 'read', arguments: {} });
      assert.ok(status > 0);
      assert.equal(upstream.calls.length, of === 'modern' ? 0 : 1);
    });
  }
}

test('three equal calls in parallel, approved once: one execution, and its result for all three', async (t) => {
  const { upstream, admin, connect } = await scene(t, held);
  const client = await connect(PLAIN);
  const calls = [1, 2, 3].map(() => client.result('tools/call', DELETE));
  const { id } = await admin.pending();
  await until(async () => ((await admin.metrics())['thoughtgate_pseudo_waiting{kind="call"}'] ?? 3) >= 3, 'all three to wait');
  await admin.approve(id);
  for (const { content } of await Promise.all(calls)) assert.equal(content[0].text, 'did delete_user');
  assert.equal(upstream.calls.length, 1);
  assert.equal((await admin.get('/api/v1/tasks')).json.tasks.length, 1);
});

test('the server forgets the session while a call waits for a human: the approved call runs once, in a new session', async (t) => {
  const { upstream, admin, connect } = await scene(t, held);
  const client = await connect({ ...PLAIN, token: 'A' });
  const answer = client.result('tools/call', DELETE);
  const { id } = await admin.pending();
  // The owner alone can say what the tools are now, so that its forgotten session is asked for the list, too.
  upstream.authorize = ({ headers }) => (headers.authorization === 'Bearer A' ? 0 : 401);
  await (await connect({ ...PLAIN, token: 'A' })).listen();
  await until(() => upstream.getStreams.size > 0, 'the stream');
  upstream.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  await upstream.received(({ rpc, headers }) => rpc?.method === 'initialize' && !headers.authorization, 2); // the gateway's own fetch has been refused
  upstream.liveSessions.clear();
  await admin.approve(id);
  assert.equal((await answer).content[0].text, 'did delete_user');
  const ran = upstream.calls.at(-1), { session } = client;
  assert.notEqual(ran.headers['mcp-session-id'], session);
  assert.deepEqual([ran.headers.authorization, ran.headers['mcp-protocol-version']], ['Bearer A', '2025-11-25']);
  assert.deepEqual(upstream.calls.map(({ headers }) => headers['mcp-session-id'] === session), [true, false]);
  assert.equal((await admin.task(id)).state, 'completed');
  await until(() => upstream.liveSessions.size === 0, 'the new session to be ended');
});

test('a client that omits its session id fetches its result by its token, for five minutes after the server accepted that, and no other token does', { skip: fastClockMissing }, async (t) => {
  const clock = new LeapingClock(temporaryFolder(t));
  const { upstream, admin, connect, raw } = await scene(t, { ...held, env: clock.environment, config: { ...held.config, pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms' } } });
  const client = await connect({ ...PLAIN, token: 'A', keepAlive: false });
  const { structuredContent } = await client.result('tools/call', DELETE);
  const id = structuredContent.proxy_task.task_id;
  const fetched = (token) => raw({ ...PLAIN, token, keepAlive: false }).send('tools/call', { name: 'get_task_result', arguments: { task_id: id, timeout_ms: 0 } });
  assert.match((await fetched('A')).text, /is still working/);
  await admin.approve(id);
  await admin.inState(id, 'completed');
  assert.equal(upstream.calls.at(-1).headers['mcp-session-id'], client.session, 'the approved call keeps the session that the fetch omitted');
  assert.equal((await fetched('A')).message.result?.content[0].text, 'did delete_user');
  const other = await fetched('B');
  assert.deepEqual([other.status, /did delete_user/.test(other.text)], [404, false]);
  // A token that has been revoked is good no longer than the server's last word on it.
  upstream.authorize = () => 401;
  clock.leap(301);
  assert.equal((await fetched('A')).status, 401);
});

test('one call by MCP, by execute_tool, as a task and at the control plane: the same rule and workflow hold each of them, and one decision is for all', async (t) => {
  const CI = 'field-ci-token-00000000000001';
  const { upstream, admin, connect } = await scene(t, { ...held, env: { CI_TOKEN: CI }, config: { ...held.config, pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms' }, admin: { tokens: [{ name: 'ci', token_env: 'CI_TOKEN', roles: ['caller'] }] } } });
  const client = await connect({ ...PLAIN, token: 'A' });
  const ways = {
    mcp: () => client.result('tools/call', DELETE),
    execute_tool: () => client.result('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: DELETE.name, args: DELETE.arguments, timeout_ms: 200 } }),
    task: () => client.createTask(DELETE.name, DELETE.arguments),
    'control plane': () => admin.as(CI).post('/api/v1/calls', { tool: DELETE.name, arguments: DELETE.arguments }),
  };
  for (const call of Object.values(ways)) await call();
  const { tasks } = await admin.list();
  assert.equal(tasks.length, 3, 'execute_tool joins the call by MCP; a task and a call of another caller are their own');
  for (const { state, tool: name, rule, workflow: by, arguments: args } of tasks) assert.deepEqual([state, name, rule, by, args], ['pending', DELETE.name, 'delete_*', 'default', DELETE.arguments]);
  assert.equal(upstream.calls.length, 0);
  const digests = tasks.filter(({ principal }) => principal.startsWith('raw-client')).map(({ digest }) => digest);
  assert.deepEqual(digests, [digests[0], digests[0]], 'operators see the two calls of the client as one group');
  const { json } = await admin.post('/api/v1/decisions', { ids: tasks.map(({ id }) => id), verb: 'approve' });
  assert.deepEqual(json.results.map(({ status }) => status), [200, 200, 200]);
  for (const { id } of tasks) await admin.inState(id, 'completed');
  assert.equal(upstream.calls.length, 3);
});

test('GET and HEAD of paths that the gateway does not know never reach a server', async (t) => {
  const { upstream, gateway } = await scene(t, {});
  for (const method of ['GET', 'HEAD']) {
    for (const path of ['/favicon.ico', '/robots.txt', '/mcp/', '/mcp/v2', '/mcp/../mcp/x', '/up', '/up/mcp/x', '/other/mcp', '/.well-known/openid-configuration', '/.well-known/oauth-authorization-server', '/sse', '/%6dcp/x', '//mcp/x']) {
      const { status } = await exchange(`${gateway.origin}${path}`, { method, headers: { accept: 'text/event-stream' } });
      assert.equal(status, 404, `${method} ${path}`);
    }
  }
  for (const path of ['/', '/mcp', '/mcp/v1', '/up/mcp']) assert.equal((await exchange(`${gateway.origin}${path}`, { method: 'HEAD' })).status, 405, `HEAD ${path}`);
  assert.deepEqual(upstream.requests.filter(({ method }) => ['GET', 'HEAD'].includes(method)).map(({ path }) => path), []);
});

test('own tool names have 46 characters at most with the longest prefix, and a longer one is refused', async (t) => {
  const prefix = 'Abcdefghij_-12345678';
  const names = [...Array(2).keys()].map((i) => `t.${'x'.repeat(60 + i * 70 - 2)}`);
  const theirs = ['list_tasks', 'get_task', 'get_task_result', 'cancel_task', 'await_activity', 'respond_to_elicitation', 'a.b-c_d', ...names];
  const { gateway, connect } = await scene(t, { ...held, upstream: { tools: theirs.map((name) => tool(name)) }, config: { ...held.config, pseudo_tools: { prefix } } });
  const client = await connect(PLAIN);
  const { tools } = await client.result('tools/list');
  const own = tools.map(({ name }) => name).filter((name) => !theirs.includes(name));
  assert.ok(own.includes(`${prefix}respond_to_elicitation`));
  for (const name of own) assert.match(name, /^[A-Za-z0-9_-]{1,46}$/);
  for (const name of ['a.b-c_d', ...names]) {
    assert.ok(tools.some((one) => one.name === name), name);
    assert.equal((await client.result('tools/call', { name, arguments: {} })).content[0].text, `did ${name}`);
  }
  for (const wrong of [`${prefix}9`, 'a.b', 'a b']) {
    gateway.writeConfig({ config: { ...held.config, pseudo_tools: { prefix: wrong } } });
    const { code, stderr } = await gateway.cli(['check', '--config', gateway.configPath]);
    assert.equal(code, 2, wrong);
    assert.match(stderr, /pseudo_tools\.prefix: .*a prefix is up to 20 letters, digits, "_" and "-"/);
  }
});

test('a file of the older gateway loads, and warns only of what has no effect', async (t) => {
  const { gateway } = await scene(t, {});
  gateway.replaceConfig(`schema: 1
sources: [{id: files, kind: mcp, url: 'http://127.0.0.1:9/mcp', timeout: 45s}]
governance:
  defaults: {action: forward}
  rules:
    - {match: 'drop_*', action: approve, approval: chat, inspectors: [pii], limits: {calls: 3}}
approval: {chat: {destination: {type: slack, channel: '#ops'}, timeout: 5m, on_timeout: deny}}
`);
  const { code, stderr } = await gateway.cli(['check', '--config', gateway.configPath], { env: { SLACK_BOT_TOKEN: 'xoxb-1' } });
  assert.equal(code, 0, stderr);
  assert.equal(withoutAdvice(stderr), '');
});
