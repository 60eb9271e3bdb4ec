// Upstream's definition of a tool is known when it counts: learnt for a call before any list, and anew when upstream's tools may have changed.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder, workflow } from './lib/gateway.mjs';
import { PLAIN } from './lib/promotion.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { signal, until } from './lib/wait.mjs';

/** The gateway's own session is refused, so that only a client's brings the tools. */
const forClientsOnly = (recorded) => (recorded.headers.authorization ? undefined : 401);
const TASK_TOOLS = [tool('delete_user', { support: 'required' }), tool('research', { support: 'required' })];

async function unlisted(t, { tools = TASK_TOOLS, upstream = {}, ...more } = {}) {
  const stage = await scene(t, {
    rules: [['delete_*', 'approve'], ['drop_*', 'deny']],
    approval: workflow('10m'),
    upstream: { tools, authorize: forClientsOnly, capabilities: { tools: {}, tasks: TASKS }, ...upstream },
    ...more,
  });
  await stage.gateway.logged(/^Upstream wants a login: its tools come with the first client$/);
  return stage;
}

/** Upstream's own tasks are complete when they are first looked at. */
function completeAtOnce(upstream) {
  upstream.handlers['tasks/get'] = ({ reply, params }) => {
    const { task } = upstream.tasks.get(params.taskId);
    task.status = 'completed';
    reply.result(task);
  };
}

const lists = (upstream) => upstream.of('tools/list').length;

test('an approved call of a tool that nobody listed is run as upstream wants it', async (t) => {
  const { upstream, admin, connect } = await unlisted(t);
  completeAtOnce(upstream);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user', { id: 7 });
  const [listed] = upstream.of('tools/list');
  assert.equal(listed.headers['mcp-session-id'], client.session, "with the client's own session");
  await admin.approve(taskId);
  assert.ok((await client.result('tasks/result', { taskId })).content);
  assert.ok(upstream.calls[0].rpc.params.task, 'upstream runs it as a task only');
  assert.deepEqual(upstream.calls[0].rpc.params.arguments, { id: 7 });
  await client.createTask('delete_user', { id: 8 });
  assert.equal(lists(upstream), 1, 'it is known from then on');
});

test('a client without tasks has a tool run that upstream runs as a task only, though nobody listed it', async (t) => {
  const { upstream, connect } = await unlisted(t);
  completeAtOnce(upstream);
  const client = await connect({ token: 'A', ...PLAIN, protocol: '2025-06-18' });
  const result = await client.result('tools/call', { name: 'research', arguments: { topic: 'x' } });
  assert.equal(result.content[0].text, 'did research');
  assert.ok(upstream.calls[0].rpc.params.task);
});

test('a task of a forwarded tool that nobody listed is upstream’s own', async (t) => {
  const { upstream, connect } = await unlisted(t);
  const client = await connect({ token: 'A' });
  assert.match((await client.createTask('research')).task.taskId, /^up-/);
  assert.equal(lists(upstream), 1);
});

test('policies see what upstream says of a tool that nobody listed', async (t) => {
  const file = path.join(temporaryFolder(t), 'policies.cedar');
  const action = 'action == ThoughtGate::Action::"Forward"';
  fs.writeFileSync(file, `permit(principal, ${action}, resource);\nforbid(principal, ${action}, resource) when { context.annotations has destructiveHint && context.annotations.destructiveHint };\n`);
  const { upstream, connect } = await unlisted(t, { tools: [tool('wipe', { annotations: { destructiveHint: true } }), tool('look')], rules: [{ match: '*', action: 'policy', policy_id: 'all' }], config: { cedar: { policies: [file] } }, upstream: { capabilities: { tools: {} } } });
  const client = await connect({ token: 'A', ...PLAIN, protocol: '2025-06-18' });
  assert.equal((await client.error('tools/call', { name: 'wipe' })).code, -32003);
  assert.equal(upstream.calls.length, 0);
  assert.ok((await client.result('tools/call', { name: 'look' })).content);
});

test('names that are made up have no list fetched again and again, and a denied one none at all', async (t) => {
  const { upstream, connect } = await unlisted(t);
  const client = await connect({ token: 'A' });
  assert.equal((await client.error('tools/call', { name: 'drop_all', task: {} })).code, -32014);
  assert.equal(lists(upstream), 0);
  for (let i = 0; i < 5; i++) assert.ok((await client.createTask(`delete_${i}`)).taskId);
  assert.equal(lists(upstream), 1);
});

test('a look that upstream refuses a stranger takes nobody else’s away', async (t) => {
  const file = path.join(temporaryFolder(t), 'policies.cedar');
  const action = 'action == ThoughtGate::Action::"Forward"';
  fs.writeFileSync(file, `permit(principal, ${action}, resource);\nforbid(principal, ${action}, resource) when { context.annotations has destructiveHint && context.annotations.destructiveHint };\n`);
  const { upstream, connect, raw } = await unlisted(t, { tools: [tool('wipe', { annotations: { destructiveHint: true } })], rules: [{ match: '*', action: 'policy', policy_id: 'all' }], config: { cedar: { policies: [file] } }, upstream: { capabilities: { tools: {} }, sessions: false, authorize: (recorded) => (recorded.headers.authorization === 'Bearer A' ? undefined : 401) } });
  await raw({ token: 'nobody' }).send('tools/call', { name: 'no_such_tool', task: {} });
  assert.equal(lists(upstream), 1);
  const client = await connect({ token: 'A' });
  assert.equal((await client.error('tools/call', { name: 'wipe', task: {} })).code, -32003);
  assert.equal(upstream.calls.length, 0);
});

test('an upstream that will not list its tools holds no call back for good', async (t) => {
  const { upstream, connect } = await unlisted(t, { env: { THOUGHTGATE_TOOLS_FETCH_TIMEOUT_MS: '200' } });
  upstream.handlers['tools/list'] = () => {}; // never answered
  const client = await connect({ token: 'A' });
  assert.match((await client.createTask('delete_user')).taskId, /^tg_/);
  assert.match((await client.createTask('delete_user')).taskId, /^tg_/);
  assert.equal(lists(upstream), 1, 'and none is asked for at once again');
});

test('a client that leaves while the list is fetched has made no task', async (t) => {
  const { upstream, admin, connect } = await unlisted(t);
  const client = await connect({ token: 'A' });
  const asked = signal();
  let answer;
  upstream.handlers['tools/list'] = ({ reply }) => {
    answer = () => reply.result({ tools: upstream.tools });
    asked.fire();
  };
  const leaving = client.post({ jsonrpc: '2.0', id: 99, method: 'tools/call', params: { name: 'delete_user', task: {} } });
  await asked.promise;
  leaving.abort();
  await leaving.catch(() => {});
  await until(async () => (await admin.get('/metrics')).text.includes('thoughtgate_active_requests 0'), 'the gateway to see it leave');
  answer();
  delete upstream.handlers['tools/list'];
  assert.ok((await client.result('tools/list')).tools.length);
  assert.deepEqual((await admin.get('/api/v1/tasks')).json.tasks, []);
});

/** An approved call waits for its result to be asked for; meanwhile `change` happens at upstream. */
async function drifts(t, change) {
  const stage = await scene(t, { rules: [{ match: 'delete_*', action: 'approve', execution: 'on_result' }], approval: workflow('10m'), upstream: { tools: [tool('delete_user')], sessions: false } });
  const { upstream, admin, gateway, connect } = stage;
  await gateway.logged(/^Tool annotation: delete_user -> required/);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  const before = lists(upstream);
  await change(stage, client);
  await until(() => lists(upstream) > before, 'the gateway to ask for the tools again', { deadline: 15_000 });
  const list = upstream.of('tools/list').at(-1);
  assert.ok(list.isGatewaysOwn);
  await list.gone;
  await client.result('ping'); // the answer went down before its reading
  const error = await client.error('tasks/result', { taskId });
  assert.deepEqual([error.code, error.data.error_type], [-32012, 'transform_drift']);
  assert.equal(upstream.calls.length, 0);
}

const CHANGED = [tool('delete_user', { description: 'Now deletes everybody' })];

test('upstream comes back with another definition of an approved tool: -32012, though no client listed it', (t) =>
  drifts(t, async ({ upstream }, client) => {
    await upstream.stop();
    assert.equal((await client.error('ping')).code, -32000);
    upstream.tools = CHANGED;
    await upstream.listen();
    await client.result('ping');
  }));

test('the gateway was away while an approved tool changed, at an upstream that lists its tools to its users only: -32012', async (t) => {
  const { upstream, admin, gateway, connect } = await unlisted(t, { rules: [{ match: 'delete_*', action: 'approve', execution: 'on_result' }], tools: [tool('delete_user'), tool('delete_file')], upstream: { sessions: false, capabilities: { tools: {} } } });
  const client = await connect({ token: 'A' });
  const [changed, same] = [await client.createTask('delete_user'), await client.createTask('delete_file')];
  for (const { taskId } of [changed, same]) await admin.approve(taskId);
  upstream.tools = [...CHANGED, tool('delete_file')];
  await gateway.restart();
  const error = await client.error('tasks/result', { taskId: changed.taskId });
  assert.deepEqual([error.code, error.data.error_type], [-32012, 'transform_drift']);
  assert.equal(upstream.calls.length, 0);
  assert.ok((await client.result('tasks/result', { taskId: same.taskId })).content);
});

test('upstream says that its tools have changed: -32012, though no client listed them', (t) =>
  drifts(t, async ({ upstream }, client) => {
    const stream = await client.listen();
    upstream.tools = CHANGED;
    upstream.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    await stream.message((m) => m.method === 'notifications/tools/list_changed');
  }));

test('an upstream that says so all the time is not asked all the time', async (t) => {
  const { upstream, gateway, connect } = await scene(t, { upstream: { sessions: false } });
  await gateway.logged(/^Tool annotation: read ->/);
  const client = await connect();
  const stream = await client.listen();
  const before = lists(upstream);
  for (let i = 0; i < 50; i++) upstream.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'fence' } });
  await stream.message((m) => m.params?.data === 'fence');
  await until(() => lists(upstream) > before, 'the gateway to ask again', { deadline: 15_000 });
  await client.result('ping');
  assert.ok(lists(upstream) - before <= 2, `asked ${lists(upstream) - before} times`);
});
