// Approvals of clients that know no tasks: held calls, their pending results, repeats, late outcomes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { elicit } from './lib/asking.mjs';
import { errorOf } from './lib/client.mjs';
import { workflow } from './lib/gateway.mjs';
import { blocks, callTool, eventsOf, kinds, pendingText } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const stage = (t, { pseudo, clients, workers, ...more } = {}) =>
  scene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    upstream: { tools: [tool('delete_user'), tool('read'), tool('delete_typed', { outputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } })] },
    config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '300ms', ...pseudo }, ...(clients ? { clients } : {}), ...(workers ? { workers } : {}) },
    ...more,
  });

const patient = { pseudo: { wait: '45s' } };
const args = { user: 7 };
const deleteUser = (client, more = {}) => client.call('tools/call', { name: 'delete_user', arguments: args, ...more }, { deadline: 60_000 });

for (const [kind, { client, clients }] of Object.entries(kinds)) {
  test(`${kind}: approved in time gives the tool's own result, untouched`, async (t) => {
    const { upstream, admin, connect } = await stage(t, { ...patient, clients });
    const waiting = deleteUser(await connect(client));
    await admin.approve((await admin.pending()).id);
    assert.deepEqual((await waiting).result, { content: [{ type: 'text', text: 'did delete_user' }], structuredContent: { tool: 'delete_user', arguments: args } });
    assert.equal(upstream.calls.length, 1);
  });

  test(`${kind}: approved late is a result that says what is pending, and get_task_result fetches the outcome, again and again`, async (t) => {
    const { upstream, admin, connect } = await stage(t, { clients });
    const c = await connect(client);
    const { result } = await deleteUser(c);
    const [sentence, block] = blocks(result);
    const task = await admin.pending();
    assert.equal(result.isError, false);
    assert.equal(sentence, pendingText('delete_user', task.id));
    assert.deepEqual(Object.keys(result.structuredContent), ['message', 'proxy_task', 'joined', 'pending_on_server']);
    assert.deepEqual([result.structuredContent.message, result.content.length], [sentence, 2]);
    assert.deepEqual(
      { ...block.proxy_task, created_at: 0, last_updated_at: 0 },
      { task_id: task.id, status: 'working', status_message: 'Awaiting approval', created_at: 0, last_updated_at: 0, server: 'up', tool: 'delete_user', ttl: 900_000 },
    );
    assert.equal(block.joined, false);
    assert.deepEqual(block.pending_on_server, { tasks: [{ taskId: task.id, toolName: 'delete_user', status: 'working' }], elicitations_for_server: [] });
    assert.deepEqual(result.structuredContent.proxy_task, block.proxy_task);
    assert.equal(upstream.calls.length, 0);
    const fetched = callTool(c, 'get_task_result', { task_id: task.id });
    await admin.approve(task.id);
    for (const answer of [await fetched, await callTool(c, 'get_task_result', { task_id: task.id })]) {
      assert.equal(answer.content[0].text, 'did delete_user');
      assert.deepEqual(answer.structuredContent, { tool: 'delete_user', arguments: args });
    }
    assert.equal(upstream.calls.length, 1);
  });
}

test('rejected in time is the error that tasks/result would give', async (t) => {
  const { admin, connect } = await stage(t, patient);
  const waiting = deleteUser(await connect(kinds.old.client));
  await admin.reject((await admin.pending()).id, 'not today');
  const error = errorOf(await waiting);
  assert.equal(error.code, -32007);
  assert.equal(error.data.reason, 'not today');
});

test('cancelled by the client itself while its call is held', async (t) => {
  const { admin, connect } = await stage(t, patient);
  const client = await connect(kinds.old.client);
  const waiting = deleteUser(client);
  const { id } = await admin.pending();
  assert.deepEqual((await callTool(client, 'cancel_task', { task_id: id })).structuredContent.success, true);
  assert.equal(errorOf(await waiting).code, -32006);
  assert.equal((await admin.task(id)).state, 'cancelled');
});

test('rejected late: get_task_result says so', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect(kinds.old.client);
  await deleteUser(client);
  const { id } = await admin.pending();
  await admin.reject(id, 'no');
  const answer = await callTool(client, 'get_task_result', { task_id: id });
  assert.equal(answer.isError, true);
  assert.match(answer.content[0].text, /^delete_user was not run: .* rejected it: no\. /);
});

test('the same call joins its task, whatever the order of the arguments; numbers count as written', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect(kinds.old.client);
  const send = (text) => client.call('tools/call', undefined, { id: 77, body: `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"delete_user","arguments":${text}}}` });
  const idOf = (answer) => answer.result.structuredContent.proxy_task.task_id;
  const first = await send('{"a":1,"b":[2]}');
  const second = await send('{ "b": [2], "\\u0061": 1 }');
  const third = await send('{"a":1.0,"b":[2]}');
  assert.equal(first.result.structuredContent.joined, false);
  assert.equal(second.result.structuredContent.joined, true);
  assert.equal(idOf(second), idOf(first));
  assert.equal(third.result.structuredContent.joined, false);
  assert.notEqual(idOf(third), idOf(first));
  assert.equal((await admin.list({ state: 'pending' })).tasks.length, 2);
});

test('calls of another session, of another tool or with other arguments do not join', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect(kinds.old.client), other = await connect(kinds.old.client);
  await deleteUser(client);
  await deleteUser(other);
  await client.call('tools/call', { name: 'delete_typed', arguments: args });
  await client.call('tools/call', { name: 'delete_user', arguments: { user: 8 } });
  assert.equal((await admin.list({ state: 'pending' })).tasks.length, 4);
});

test('two held calls of the same kind share one task, and both get its result', async (t) => {
  const { upstream, admin, connect } = await stage(t, patient);
  const client = await connect(kinds.old.client);
  const waiting = [deleteUser(client), deleteUser(client), deleteUser(client)];
  const { id } = await admin.pending();
  await until(async () => (await admin.metrics())['thoughtgate_active_requests'] >= 3, 'three held calls');
  await admin.approve(id);
  for (const { result } of await Promise.all(waiting)) assert.equal(result.structuredContent.tool, 'delete_user');
  assert.equal(upstream.calls.length, 1);
  assert.equal((await admin.list()).tasks.length, 1);
});

test('an outcome nobody was there for goes to the next such call, once, and names its task', async (t) => {
  const { upstream, admin, connect } = await stage(t);
  const client = await connect(kinds.old.client);
  await deleteUser(client);
  const { id } = await admin.pending();
  await admin.approve(id);
  await admin.inState(id, 'completed');
  const { result } = await deleteUser(client);
  assert.equal(result.content[0].text, 'did delete_user');
  assert.ok(result.content.at(-1).text.includes(id));
  assert.deepEqual(result._meta['io.modelcontextprotocol/related-task'], { taskId: id });
  assert.deepEqual(result.structuredContent, { tool: 'delete_user', arguments: args });
  const again = await deleteUser(client);
  assert.equal(again.result.structuredContent.joined, false);
  assert.notEqual(again.result.structuredContent.proxy_task.task_id, id);
  assert.equal(upstream.calls.length, 1);
});

test('a late rejection goes to the next such call, once, and names its task', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect(kinds.old.client);
  await deleteUser(client);
  const { id } = await admin.pending();
  await admin.reject(id, 'no');
  const { result } = await deleteUser(client);
  assert.equal(errorOf({ result }).code, -32007);
  assert.ok(result.content.at(-1).text.includes(id));
  assert.equal((await deleteUser(client)).result.structuredContent.joined, false);
});

test('a client that left before the outcome gets it with its next such call', async (t) => {
  const { admin, connect, upstream } = await stage(t, patient);
  const client = await connect(kinds.old.client);
  const gone = client.post({ jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'delete_user', arguments: args } });
  gone.catch(() => {});
  const { id } = await admin.pending();
  client.close();
  await until(async () => (await admin.metrics())['thoughtgate_active_requests'] === 0, 'the client has gone');
  await admin.approve(id);
  await admin.inState(id, 'completed');
  client.agent = new (await import('node:http')).default.Agent({ keepAlive: true });
  const { result } = await deleteUser(client);
  assert.deepEqual(result._meta['io.modelcontextprotocol/related-task'], { taskId: id });
  assert.equal(upstream.calls.length, 1);
});

for (const workers of [1, 3]) {
  test(`a call that its client has given up, as SDK clients do by their own clock, runs when its client comes back (${workers} workers)`, async (t) => {
    const { admin, connect, sdk, upstream } = await stage(t, { pseudo: { wait: '45s' }, clients: [{ match: 'listed-*', tasks: 'no' }], workers });
    const client = await sdk({ name: 'listed-agent' });
    const call = { name: 'delete_user', arguments: args };
    await assert.rejects(client.callTool(call, undefined, { timeout: 300 }), { code: -32001 });
    await until(async () => (await admin.metrics())['thoughtgate_active_requests'] === 1, 'its GET stream alone is left');
    const { id } = await admin.pending();
    await admin.approve(id);
    assert.deepEqual([(await admin.task(id)).state, upstream.calls.length], ['approved', 0]);
    const told = await client.callTool(call);
    assert.deepEqual(told._meta['io.modelcontextprotocol/related-task'], { taskId: id });
    assert.equal(upstream.calls.length, 1);
    // No other client ends it: not another session, and not another id.
    const own = await connect(kinds.old.client), other = await connect(kinds.old.client);
    const waiting = own.call('tools/call', { name: 'delete_user', arguments: { user: 8 } }, { id: 77, deadline: 60_000 });
    const second = await admin.pending();
    await other.notify('notifications/cancelled', { requestId: 77 });
    await own.notify('notifications/cancelled', { requestId: 78 });
    await own.notify('notifications/cancelled', { requestId: '77' });
    await admin.approve(second.id);
    assert.deepEqual((await waiting).result.structuredContent.arguments, { user: 8 });
    // get_task_result runs it as well.
    const given = own.send('tools/call', { name: 'delete_user', arguments: { user: 9 } }, { id: 79 });
    const third = await admin.pending();
    await own.notify('notifications/cancelled', { requestId: 79 });
    assert.deepEqual([(await given).status, (await given).text], [202, '']);
    await admin.approve(third.id);
    assert.deepEqual([(await admin.task(third.id)).state, upstream.calls.length], ['approved', 2]);
    assert.deepEqual((await callTool(own, 'get_task_result', { task_id: third.id })).structuredContent.arguments, { user: 9 });
  });
}

test('an end that get_task_result has told is no news for the next such call', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect(kinds.old.client);
  await deleteUser(client);
  const { id } = await admin.pending();
  await admin.approve(id);
  await callTool(client, 'get_task_result', { task_id: id });
  const { result } = await deleteUser(client);
  assert.notEqual(result.structuredContent.proxy_task.task_id, id);
});

test('after a restart a call joins what is still undecided', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const client = await connect(kinds.old.client);
  await deleteUser(client);
  const { id } = await admin.pending();
  await gateway.restart();
  client.url = gateway.url;
  const { result } = await deleteUser(client);
  assert.equal(result.structuredContent.joined, true);
  assert.equal(result.structuredContent.proxy_task.task_id, id);
  await gateway.admin.approve(id);
  await gateway.admin.inState(id, 'completed');
  assert.deepEqual((await deleteUser(client)).result._meta['io.modelcontextprotocol/related-task'], { taskId: id });
});

test('a tool that needs a human promises no structured content, so that what is pending is no error', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect(kinds.old.client);
  const { tools } = await client.result('tools/list');
  assert.equal('outputSchema' in tools.find((x) => x.name === 'delete_typed'), false);
  const { result } = await client.call('tools/call', { name: 'delete_typed', arguments: {} });
  assert.equal(result.isError, false);
  assert.equal(result.structuredContent.proxy_task.task_id, (await admin.pending()).id);
  assert.deepEqual(blocks(result)[1].proxy_task, result.structuredContent.proxy_task);
  assert.equal(eventsOf(result).length, 0, 'the answer tells of its task itself');
});

test('the answer to a tool of the server has no events and no open question; those wait for the next own tool', async (t) => {
  const { gateway, upstream, admin, connect } = await stage(t, { pseudo: { wait: '200ms', wait_max: '200ms' } });
  let asking;
  upstream.handlers['tools/call'] = ({ reply }) => (asking = reply.sse()).event({ jsonrpc: '2.0', ...elicit('e-1') });
  const client = await connect({ ...kinds.old.client, token: 'A' });
  await callTool(client, 'read');
  await gateway.logged((entry) => entry.msg === 'Upstream asks');
  const { content } = await callTool(client, 'delete_user');
  assert.equal(content.length, 2);
  assert.ok(!/events_since_last_response|pending_client_action/.test(JSON.stringify(content)));
  await admin.pending();
  const { structuredContent, ...own } = await callTool(client, 'execute_tool', { server: 'up', tool: 'delete_user', args: {}, timeout_ms: 100 });
  assert.ok(eventsOf(own).some(({ type }) => type === 'elicitation_request'));
  assert.ok(blocks(own).some((block) => block.pending_client_action?.elicitations.length === 1));
});

test('an output schema is left out where a rule asks for a human, and nowhere else', async (t) => {
  const schema = { type: 'object', properties: { n: { type: 'number' } } };
  const names = ['delete_typed', 'forced', 'read_typed'];
  const { connect } = await scene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    forceRequired: ['forced'],
    upstream: { tools: names.map((name) => tool(name, { outputSchema: schema })) },
  });
  const withSchema = async (options) => (await (await connect(options)).result('tools/list')).tools.filter((x) => x.outputSchema).map((x) => x.name);
  assert.deepEqual(await withSchema(kinds.old.client), ['read_typed']);
  assert.deepEqual(await withSchema({ capabilities: {} }), ['read_typed']);
  assert.deepEqual(await withSchema({ capabilities: { tasks: {} } }), names);
  assert.deepEqual(await withSchema({ capabilities: { tasks: {} }, protocol: '2025-06-18' }), ['read_typed']);
});

test('a client with a progress token hears of progress, and may wait longer', async (t) => {
  const { admin, connect } = await stage(t, { pseudo: { wait: '300ms', wait_max: '30s' } });
  const client = await connect(kinds.old.client);
  const stream = await client.stream('tools/call', { name: 'delete_user', arguments: args, _meta: { progressToken: 'p' } });
  const progress = await stream.message((m) => m.method === 'notifications/progress', 'progress');
  assert.equal(progress.params.progressToken, 'p');
  const { id } = await admin.pending();
  await new Promise((resolve) => setTimeout(resolve, 600)); // longer than `wait`
  await admin.approve(id);
  const answer = await stream.message((m) => m.id === stream.id, 'the result');
  assert.deepEqual(answer.result.structuredContent, { tool: 'delete_user', arguments: args });
});

test('the sentences of an approved call that runs, of an owner with a token, and of a tool with the longest name', async (t) => {
  const name = 'delete_'.padEnd(128, 'x');
  const { upstream, admin, connect } = await stage(t, { upstream: { tools: [tool('delete_user'), tool(name), tool('get_task_result')] }, pseudo: { wait: '300ms', wait_max: '300ms', prefix: 'p'.repeat(20) } });
  upstream.handlers['tools/call'] = () => {};
  const client = await connect({ ...kinds.old.client, token: 'A' });
  const first = await callTool(client, name);
  const { task_id: id } = first.structuredContent.proxy_task;
  const text = { token: true, fetch: `${'p'.repeat(20)}get_task_result` };
  assert.equal(first.content[0].text, pendingText(name, id, text));
  await admin.approve(id);
  await upstream.received('tools/call');
  assert.equal((await callTool(client, name)).content[0].text, pendingText(name, id, { ...text, state: `${name} was approved and is running, but has no result yet` }));
  const session = await connect(kinds.old.client);
  const longest = (await callTool(session, name)).content[0].text;
  assert.equal(longest, pendingText(name, id, { ...text, token: false }).replaceAll(id, /task (\S+)\)/.exec(longest)[1]));
  assert.ok(Buffer.byteLength(longest) <= 600, `${Buffer.byteLength(longest)} bytes`);
});

test('a gateway that stops answers held calls as pending at once; after its start the same call joins', async (t) => {
  const { gateway, admin, connect } = await stage(t, patient);
  const client = await connect(kinds.old.client);
  const waiting = deleteUser(client);
  const { id } = await admin.pending();
  const others = [deleteUser(client), client.call('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'delete_user', args } })];
  const fetching = client.call('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  const held = (count) => until(async () => (await admin.metrics())['thoughtgate_active_requests'] === count, `${count} held calls`);
  await held(4);
  const [answers] = await Promise.all([Promise.all([waiting, ...others]), gateway.stop()]);
  for (const { result } of answers) assert.deepEqual([result.content[0].text, result.structuredContent.proxy_task.task_id], [pendingText('delete_user', id), id]);
  assert.match((await fetching).result.structuredContent.error, /is still working/);
  client.agent.destroy();
  await gateway.launch();
  const again = deleteUser(client);
  await held(1);
  await admin.approve(id);
  assert.equal((await again).result.content[0].text, 'did delete_user');
});

test('without the tools the pending result still says how to ask again', async (t) => {
  const { connect } = await stage(t, { pseudo: { wait: '300ms', mode: 'never' } });
  const client = await connect(kinds.old.client);
  const [sentence] = blocks((await deleteUser(client)).result);
  assert.equal(sentence, pendingText('delete_user', /task (\S+)\)/.exec(sentence)[1], { offered: false }));
  assert.equal((await deleteUser(client)).result.structuredContent.joined, true);
});

test('a client that could neither name its task nor join it is held until the task ends', async (t) => {
  const { admin, connect } = await stage(t, { pseudo: { wait: '300ms', mode: 'never' }, upstream: { sessions: false, tools: [tool('delete_user')] } });
  const waiting = deleteUser(await connect(kinds.old.client));
  const { id } = await admin.pending();
  const { result } = await deleteUser(await connect({ ...kinds.old.client, token: 'A' })); // its wait ends after that of the first
  assert.equal(result.structuredContent.proxy_task.status, 'working');
  await admin.approve(id);
  assert.equal((await waiting).result.content[0].text, 'did delete_user');
});

test('an error about the task field names the tools that do without', async (t) => {
  const { connect } = await stage(t);
  const client = await connect();
  const alternative = (name) => ({ tool: 'execute_tool', arguments: { server: 'up', tool: name }, then: ['get_task_result', 'await_activity', 'list_tasks'] });
  const required = await client.error('tools/call', { name: 'delete_user', arguments: {} });
  assert.equal(required.code, -32009);
  assert.deepEqual(Object.keys(required.data).slice(0, 4), ['tool', 'reason', 'hint', 'alternative']);
  assert.deepEqual(required.data.alternative, alternative('delete_user'));
  const forbidden = await client.error('tools/call', { name: 'get_task', arguments: {}, task: {} });
  assert.equal(forbidden.code, -32010);
  assert.deepEqual(forbidden.data.alternative, alternative('get_task'));
});

test('if the tools are offered to nobody, no error names them', async (t) => {
  const { connect } = await stage(t, { pseudo: { mode: 'never' } });
  const required = await (await connect()).error('tools/call', { name: 'delete_user', arguments: {} });
  assert.equal(required.code, -32009);
  assert.ok(!('alternative' in required.data));
});

test('a 2025-11-25 client as it comes gets through by a plain call, and by execute_tool', async (t) => {
  const { admin, connect, upstream } = await stage(t);
  const client = await connect({ capabilities: {} });
  const held = callTool(client, 'delete_user', args);
  await admin.approve((await admin.pending()).id);
  assert.equal((await held).content[0].text, 'did delete_user');
  const late = await callTool(client, 'execute_tool', { server: 'up', tool: 'delete_user', args, timeout_ms: 100 });
  const { proxy_task: task } = late.structuredContent;
  assert.equal(task.status, 'working');
  const joined = await callTool(client, 'execute_tool', { server: 'up', tool: 'delete_user', args, timeout_ms: 100 });
  assert.equal(joined.structuredContent.joined, true);
  assert.equal(joined.structuredContent.proxy_task.task_id, task.task_id);
  await admin.approve(task.task_id);
  assert.deepEqual((await callTool(client, 'get_task_result', { task_id: task.task_id })).structuredContent.arguments, args);
  assert.equal(upstream.calls.length, 2);
});

test('clients[].wait takes the place of both waits for its clients: shorter for one, longer for another', async (t) => {
  const clients = [{ match: 'hasty*', tasks: 'no', wait: '300ms' }, { match: 'patient*', tasks: 'no', wait: '40s' }];
  const { admin, connect } = await stage(t, { pseudo: { wait: '1s', wait_max: '45s' }, clients });
  const of = (user) => ({ arguments: { user } });
  const isPending = ({ result }) => assert.ok(result.structuredContent.proxy_task?.task_id, JSON.stringify(result));
  const waiting = deleteUser(await connect({ name: 'patient-1', capabilities: {} }), of(1));
  const hasty = await connect({ name: 'hasty-1', capabilities: {} });
  isPending(await deleteUser(hasty, of(2)));
  const stream = await hasty.stream('tools/call', { name: 'delete_user', ...of(3), _meta: { progressToken: 'p' } });
  isPending(await stream.message((m) => m.id === stream.id, 'the answer, before wait_max'));
  isPending(await hasty.call('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'delete_user', args: { user: 4 } }, _meta: { progressToken: 'q' } }, { deadline: 10_000 }));
  isPending(await deleteUser(await connect(kinds.old.client), of(5))); // its second is over
  const { tasks } = await admin.list({ state: 'pending' });
  await admin.approve(tasks.find((task) => task.arguments.user === 1).id);
  assert.deepEqual((await waiting).result.structuredContent.arguments, { user: 1 });
});
