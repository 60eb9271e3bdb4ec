// execute_tool: any tool of the server, called with a patience of the agent's own (behaviour 11.6).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { blocks, PLAIN, promoted, SENTENCE, stage as usual } from './lib/promotion.mjs';
import { eventsOf } from './lib/pseudo.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

/** Only execute_tool promotes here: plain calls wait for long. */
const stage = (t, options = {}) => usual(t, { ...options, config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '30s', wait_max: '30s' }, ...options.config } });
const execute = (client, name, { args, timeout_ms, server = 'up', ...more } = {}, options) => client.result('tools/call', { name: 'execute_tool', arguments: { server, tool: name, ...(args === undefined ? {} : { args }), ...(timeout_ms === undefined ? {} : { timeout_ms }) }, ...more }, options);

test('seed 000, fast tool call: the result is the raw result, and there is no task', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const raw = { content: [{ type: 'text', text: 'raw' }], structuredContent: { a: 1 }, isError: false, other: [1.5] };
  upstream.handlers['tools/call'] = ({ reply }) => reply.result(raw);
  const agent = await connect(PLAIN);
  assert.deepEqual(await execute(agent, 'read', { args: { x: 1 } }), raw);
  assert.deepEqual(upstream.calls[0].rpc.params, { name: 'read', arguments: { x: 1 } });
  assert.equal(upstream.calls[0].rpc.id, agent.lastId);
  assert.deepEqual((await admin.list()).tasks, []);
});

for (const client of ['auto', 'curl']) {
  test(`seed 000, timeout-based promotion: after timeout_ms the call is a task (${client})`, async (t) => {
    const { upstream, admin, connect, held } = await stage(t, { env: { THOUGHTGATE_UPSTREAM_CLIENT: client } });
    const agent = await connect(PLAIN);
    const result = await execute(agent, 'slow', { args: { n: 1 }, timeout_ms: 300 });
    const { id, text, block } = promoted(result);
    assert.match(text, SENTENCE(300, id));
    assert.equal(block.proxy_task.status, 'working');
    assert.deepEqual(block.pending_on_server.tasks, [{ taskId: id, toolName: 'slow', status: 'working' }]);
    held[0].reply.result({ content: [{ type: 'text', text: 'later' }] });
    await admin.inState(id, 'completed');
    assert.deepEqual((await admin.task(id)).arguments, { n: 1 });
    const fetched = await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
    assert.equal(fetched.content[0].text, 'later');
    assert.equal(upstream.calls.length, 1);
  });
}

test('with timeout_ms 0 the call is a task at once', async (t) => {
  const { connect } = await stage(t);
  promoted(await execute(await connect(PLAIN), 'slow', { timeout_ms: 0 }));
});

test('without timeout_ms the configured patience counts', async (t) => {
  const { connect } = await stage(t, { pseudoTasks: { execute_timeout: '200ms' } });
  const { text, id } = promoted(await execute(await connect(PLAIN), 'slow'));
  assert.match(text, SENTENCE(200, id));
});

test('without timeout_ms it waits as a plain call does, and for longer with a progress token', async (t) => {
  const { connect } = await stage(t, { config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms', wait_max: '200ms' }, pseudo_tasks: { execute_timeout: '900ms' } } });
  const agent = await connect(PLAIN);
  const short = promoted(await execute(agent, 'slow'));
  assert.match(short.text, SENTENCE(200, short.id));
  const long = promoted(await execute(agent, 'slow', { _meta: { progressToken: 'p' } }));
  assert.match(long.text, SENTENCE(900, long.id));
});

test('a retry of what execute_tool was left with joins its task', async (t) => {
  const { upstream, admin, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  execute(agent, 'slow', { args: { n: 1 }, timeout_ms: 60_000 }).catch(() => {});
  await upstream.received('tools/call');
  agent.close();
  const { id } = await until(async () => (await admin.list()).tasks[0], 'the task');
  const again = await connect(PLAIN);
  again.session = agent.session;
  const retried = execute(again, 'slow', { args: { n: 1 }, timeout_ms: 60_000 });
  held[0].reply.result({ content: [{ type: 'text', text: 'once' }] });
  const texts = (await retried).content.map((x) => x.text);
  assert.equal(texts[0], 'once');
  assert.ok(texts.includes(`This is the outcome of your earlier call, task ${id}. It was not run again for this one.`), texts.join());
  assert.equal(upstream.calls.length, 1);
});

test('seed 000, multiple concurrent tool calls: two are promoted, one is answered', async (t) => {
  const { admin, connect, held } = await stage(t, { upstream: { tools: ['slow_1', 'read', 'slow_3'].map((name) => tool(name)) } });
  const agent = await connect(PLAIN);
  const [one, two, three] = await Promise.all([execute(agent, 'slow_1', { timeout_ms: 300 }), execute(agent, 'read', { timeout_ms: 30_000 }), execute(agent, 'slow_3', { timeout_ms: 500 })]);
  assert.equal(two.content[0].text, 'did read');
  for (const result of [one, three]) promoted(result);
  for (const call of held) call.reply.result({ content: [{ type: 'text', text: call.params.name }] });
  for (const [result, name] of [[one, 'slow_1'], [three, 'slow_3']]) {
    const { id } = promoted(result);
    await admin.inState(id, 'completed');
    assert.equal((await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: id } })).content[0].text, name);
  }
});

test('faults of the arguments are said in words', async (t) => {
  const { upstream, connect } = await stage(t);
  const agent = await connect(PLAIN);
  const cases = [
    [{}, /server/],
    [{ server: 'up' }, /tool/],
    [{ server: 1, tool: 'read' }, /server/],
    [{ server: 'up', tool: ['read'] }, /tool/],
    [{ server: 'up', tool: 'read', args: 'x=1' }, /args/],
    [{ server: 'up', tool: 'read', args: [] }, /args/],
    [{ server: 'up', tool: 'read', timeout_ms: '5' }, /timeout_ms/],
    [{ server: 'up', tool: 'read', timeout_ms: -1 }, /timeout_ms/],
    [{ server: 'elsewhere', tool: 'read' }, /^Failed to execute tool: 'elsewhere' is no server that can be reached here; see list_servers$/],
    [{ server: 'up', tool: 'execute_tool', args: {} }, /^Failed to execute tool: 'execute_tool' is no server's tool/],
    [{ server: 'up', tool: 'get_task', args: {} }, /^Failed to execute tool: 'get_task' is no server's tool/],
    [{ server: 'up', tool: 'a\u0000b' }, /^Failed to execute tool/],
  ];
  for (const [args, expected] of cases) {
    const result = await agent.result('tools/call', { name: 'execute_tool', arguments: args });
    assert.equal(result.isError, true, JSON.stringify(args));
    assert.match(blocks(result)[0], expected);
  }
  assert.equal(upstream.calls.length, 0);
});

test('the call passes every gate, as a plain one does', async (t) => {
  const { upstream, connect } = await stage(t, { rules: [['drop_*', 'deny']], expose: { mode: 'blocklist', tools: ['hidden'] }, upstream: { tools: ['drop_table', 'hidden', 'read'].map((name) => tool(name)) } });
  const agent = await connect(PLAIN);
  for (const name of ['drop_table', 'hidden']) {
    const plain = await agent.error('tools/call', { name, arguments: {} });
    const executed = await agent.error('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: name, args: {} } });
    assert.deepEqual({ ...executed, data: { ...executed.data, correlation_id: 0 } }, { ...plain, data: { ...plain.data, correlation_id: 0 } });
  }
  assert.equal(upstream.calls.length, 0);
});

test('errors of upstream stay errors of the protocol, -32042 among them', async (t) => {
  const { upstream, connect } = await stage(t);
  const data = { elicitations: [{ mode: 'url', elicitationId: 'e', url: 'https://example.com/', message: 'go' }] };
  const answers = [[-32602, 'Unknown tool: x', undefined], [-32042, 'URL elicitation required', data]];
  const agent = await connect(PLAIN);
  for (const [code, message, more] of answers) {
    upstream.handlers['tools/call'] = ({ reply }) => reply.error(code, message, more);
    const error = await agent.error('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'x' } });
    assert.deepEqual([error.code, error.message, error.data], [code, message, more]);
  }
});

test('a reply that is no JSON-RPC comes down as it is, with the header that tells how to log in', async (t) => {
  const { upstream, connect } = await stage(t);
  const agent = await connect(PLAIN);
  await execute(agent, 'read');
  upstream.handlers['tools/call'] = ({ reply }) => reply.http(401, { 'www-authenticate': 'Bearer realm="x"', 'content-type': 'text/plain' }, 'who are you?');
  const answer = await agent.send('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'read' } });
  assert.deepEqual([answer.status, answer.headers['www-authenticate'], answer.text], [401, 'Bearer realm="x"', 'who are you?']);
  upstream.handlers['tools/call'] = ({ reply }) => reply.cut();
  assert.equal((await agent.error('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'read' } })).code, -32000);
});

test('the id may be a text, and upstream may spell a number otherwise', async (t) => {
  const { upstream, connect } = await stage(t);
  const agent = await connect(PLAIN);
  const answer = await agent.send('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'read' } }, { id: 'a "quoted" id' });
  assert.equal(answer.message.id, 'a "quoted" id');
  upstream.handlers['tools/call'] = ({ reply }) => reply.message('{"jsonrpc":"2.0","id":7.0,"result":{"content":[]}}');
  assert.deepEqual((await agent.call('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'read' } }, { id: 7 })), { jsonrpc: '2.0', id: 7, result: { content: [] } });
});

test("the progress token goes up, and upstream's progress comes down on it", async (t) => {
  const { connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  const streaming = agent.stream('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'slow' }, _meta: { progressToken: 'mine' } });
  const call = await until(() => held[0], 'the call');
  assert.deepEqual(call.params._meta, { progressToken: 'mine' });
  const theirs = call.reply.sse();
  const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'mine', progress: 0.5 } };
  theirs.event(progress);
  const stream = await streaming;
  assert.deepEqual(await stream.message(), progress);
  theirs.event({ jsonrpc: '2.0', id: call.id, result: { content: [{ type: 'text', text: 'end' }] } });
  theirs.end();
  assert.equal((await stream.message((m) => m.id === stream.id)).result.content[0].text, 'end');
  assert.equal(await stream.end(), 'end');
});

test('a client that leaves finds its call in the list of tasks', async (t) => {
  const { admin, connect, held } = await stage(t);
  const agent = await connect(PLAIN);
  agent.send('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'slow', args: { n: 5 } } }).catch(() => {});
  const call = await until(() => held[0], 'the call');
  agent.close();
  const [task] = await until(async () => {
    const { tasks } = await admin.list();
    return tasks.length > 0 && tasks;
  }, 'the task');
  assert.equal(call.recorded.left, false);
  const again = await connect(PLAIN);
  again.session = agent.session;
  const listed = await again.result('tools/call', { name: 'list_tasks', arguments: {} });
  const tasks = JSON.parse(blocks(listed)[0]);
  assert.deepEqual(tasks.map((x) => [x.taskId, x.toolName, x.status, x.toolArgs]), [[task.id, 'slow', 'working', { n: 5 }]]);
  call.reply.result({ content: [{ type: 'text', text: 'for you' }] });
  const result = await again.result('tools/call', { name: 'get_task_result', arguments: { task_id: task.id } });
  assert.equal(result.content[0].text, 'for you');
});

test('a client without a name that leaves takes the call with it', async (t) => {
  const { admin, connect, held } = await stage(t, { upstream: { sessions: false } });
  const agent = await connect(PLAIN);
  agent.send('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'slow' } }).catch(() => {});
  const call = await until(() => held[0], 'the call');
  agent.close();
  await call.recorded.gone;
  assert.deepEqual((await admin.list()).tasks, []);
});

test('upstream may be silent for as long as the patience lasts', async (t) => {
  const { connect, held } = await stage(t, { env: { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1' } });
  const agent = await connect(PLAIN);
  const answer = execute(agent, 'slow', { timeout_ms: 30_000 });
  await until(() => held[0], 'the call');
  const at = performance.now();
  await until(() => performance.now() - at > 1800, 'silence');
  held[0].reply.result({ content: [{ type: 'text', text: 'after all' }] });
  assert.equal((await answer).content[0].text, 'after all');
});

for (const protocol of ['2025-03-26', '2025-06-18', '2025-11-25']) {
  test(`a tool that needs approval, by a client of ${protocol}: pending, approved, fetched`, async (t) => {
    const { admin, connect, upstream } = await stage(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user'), tool('read')] } });
    const agent = await connect({ ...PLAIN, protocol });
    const result = await execute(agent, 'delete_user', { args: { id: 3 }, timeout_ms: 300 });
    assert.equal(result.isError, false);
    const block = JSON.parse(blocks(result).find((text) => text.startsWith('{"proxy_task"')));
    assert.equal(block.proxy_task.status, 'working');
    assert.match(block.proxy_task.task_id, /^tg_/);
    assert.equal(upstream.calls.length, 0);
    await admin.approve(block.proxy_task.task_id);
    const fetched = await agent.result('tools/call', { name: 'get_task_result', arguments: { task_id: block.proxy_task.task_id } });
    assert.equal(fetched.content[0].text, 'did delete_user');
    assert.deepEqual(upstream.calls.map((call) => call.rpc.params), [{ name: 'delete_user', arguments: { id: 3 } }]);
  });
}

test('a tool that needs approval, approved in time: its own result', async (t) => {
  const { admin, connect } = await stage(t, { rules: [['delete_*', 'approve']], approval: workflow('10m'), upstream: { tools: [tool('delete_user')] } });
  const agent = await connect(PLAIN);
  const waiting = execute(agent, 'delete_user', { args: {}, timeout_ms: 60_000 });
  await admin.approve((await admin.pending()).id);
  assert.equal((await waiting).content[0].text, 'did delete_user');
});

for (const workers of [1, 3]) {
  test(`a client that gives up ends the call at the server (${workers} workers)`, async (t) => {
    const { upstream, admin, connect, held } = await stage(t, { config: { workers } });
    const agent = await connect({ ...PLAIN, keepAlive: false });
    const cancel = (requestId) => agent.notify('notifications/cancelled', { requestId, reason: 'McpError: MCP error -32001: Request timed out' });
    const cancelled = () => upstream.of('notifications/cancelled').map((r) => r.rpc.params.requestId);
    const waiting = agent.send('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'slow', args: {}, timeout_ms: 60_000 } });
    const call = await until(() => held[0], 'the call');
    assert.equal((await cancel(call.id)).status, 202);
    assert.deepEqual([(await waiting).status, (await waiting).text], [202, '']);
    await call.recorded.gone;
    await until(() => cancelled().length === 1, 'the server to be notified');
    assert.deepEqual([cancelled(), (await admin.list()).tasks], [[call.id], []]);
    // A pending answer has named this one: its client may cancel the task.
    const { id } = promoted(await execute(agent, 'slow', { timeout_ms: 200 }));
    await cancel(held[1].id);
    await cancel(4711); // of another: the server's own business
    await until(() => cancelled().length === 2, 'the other notification');
    assert.deepEqual(cancelled(), [call.id, 4711]);
    held[1].reply.result({ content: [{ type: 'text', text: 'worth it' }] });
    assert.equal((await admin.inState(id, 'completed', 'cancelled')).state, 'completed');
  });
}
