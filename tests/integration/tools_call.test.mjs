// tools/call: the gates in order, the validation of `task`, the owner of the task, the request to upstream.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { connectedRaw } from './lib/client.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { assertSchema } from './lib/schema.mjs';
import { scene } from './lib/scene.mjs';
import { startUpstream, TASKS, tool } from './lib/upstream.mjs';

const RULES = [['delete_*', 'approve'], ['drop_*', 'deny']];
const TOOLS = ['delete_user', 'drop_table', 'read_file'].map((name) => tool(name));
const CAPABLE = { tools: {}, tasks: TASKS };
/** Decided and executed within less than any ttl here. */
const BRIEF = workflow('30s', { valid_for: '30s' });

const plain = (t, more = {}) => scene(t, { upstream: { tools: TOOLS }, rules: RULES, approval: workflow('10m'), ...more });
const capable = (t, tools = TOOLS, more = {}) => scene(t, { upstream: { tools, capabilities: CAPABLE }, rules: RULES, approval: workflow('10m'), ...more });

test('required without task: TaskRequired, literally as the seed has it', async (t) => {
  const { upstream, connect } = await plain(t);
  const client = await connect();
  const answer = await client.send('tools/call', { name: 'delete_user', arguments: { user_id: '123' } });
  assert.equal(answer.status, 200);
  assert.match(answer.headers['content-type'], /^application\/json/);
  const { error } = answer.message;
  assert.equal(error.code, -32009);
  assert.equal(error.message, 'TaskRequired');
  assert.deepEqual(Object.entries(error.data).slice(0, 3), [
    ['tool', 'delete_user'],
    ['reason', 'This operation requires approval and must be called with task metadata'],
    ['hint', 'Include task field: { "task": { "ttl": 600000 } }'],
  ]);
  assert.equal(typeof error.data.error_type, 'string');
  assertSchema(t, 'JSONRPCErrorResponse', answer.message);
  assert.equal(upstream.calls.length, 0);
});

test('forbidden with task: TaskForbidden, literally as the seed has it', async (t) => {
  const { upstream, connect } = await plain(t);
  const client = await connect();
  const answer = await client.send('tools/call', { name: 'read_file', task: { ttl: 60000 } });
  assert.equal(answer.status, 200);
  const { error } = answer.message;
  assert.deepEqual([error.code, error.message], [-32010, 'TaskForbidden']);
  assert.deepEqual(Object.entries(error.data).slice(0, 2), [['tool', 'read_file'], ['reason', 'This tool does not support task-augmented calls']]);
  assert.equal(typeof error.data.error_type, 'string');
  assert.equal(upstream.calls.length, 0);
});

test('validation errors are counted', async (t) => {
  const { admin, connect } = await plain(t);
  const client = await connect();
  await client.error('tools/call', { name: 'delete_user' });
  await client.error('tools/call', { name: 'delete_user' });
  await client.error('tools/call', { name: 'read_file', task: {} });
  const samples = await admin.metrics();
  assert.equal(sample(samples, 'thoughtgate_task_validation_errors_total', { error: 'required' }), 2);
  assert.equal(sample(samples, 'thoughtgate_task_validation_errors_total', { error: 'forbidden' }), 1);
});

test('gates in order: visibility before deny before task validation', async (t) => {
  const { upstream, connect } = await plain(t, { rules: [['hidden_*', 'deny'], ...RULES], expose: { mode: 'blocklist', tools: ['hidden_*'] } });
  const client = await connect();
  const code = async (name, task) => (await client.error('tools/call', { name, ...(task === undefined ? {} : { task }) })).code;
  assert.equal(await code('hidden_tool'), -32015);
  assert.equal(await code('hidden_tool', 5), -32015);
  assert.equal(await code('drop_table'), -32014);
  assert.equal(await code('drop_table', {}), -32014);
  assert.equal(await code('drop_table', 5), -32014);
  assert.equal(await code('delete_user', 5), -32602);
  assert.equal(upstream.calls.length, 0);
});

test('a denied call says so without naming the rule', async (t) => {
  const { connect } = await plain(t);
  const client = await connect();
  const answer = await client.send('tools/call', { name: 'drop_table' });
  const { code, data } = answer.message.error;
  assert.deepEqual([code, data.error_type, data.gate, data.tool], [-32014, 'governance_rule_denied', 'governance', 'drop_table']);
  assert.doesNotMatch(answer.text, /drop_\*/);
});

for (const task of [5, 'x', true, null, [], [{ ttl: 1 }]]) {
  test(`EC-SEP-001 task ${JSON.stringify(task)} is -32602`, async (t) => {
    const { upstream, connect } = await capable(t);
    const client = await connect();
    for (const name of ['delete_user', 'read_file']) {
      const error = await client.error('tools/call', { name, task });
      assert.deepEqual([error.code, error.data.error_type], [-32602, 'invalid_params'], name);
    }
    assert.equal(upstream.calls.length, 0);
  });
}

test('EC-SEP-002 a ttl that is no positive integer is -32602', async (t) => {
  const { upstream, connect, admin } = await capable(t);
  const client = await connect();
  let id = 100;
  for (const ttl of ['0', '-1', '-0', '1.5', '"60000"', 'null', 'true', '{}', '[]', '0.0', '-12345678901234567890']) {
    id += 1;
    const body = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"delete_user","task":{"ttl":${ttl}}}}`;
    const answer = await client.send('', undefined, { body, id });
    assert.equal(answer.message.error?.code, -32602, `ttl ${ttl}: ${answer.text}`);
  }
  assert.equal(upstream.calls.length, 0);
  assert.deepEqual((await admin.list()).tasks, []);
});

test('EC-SEP-003 a ttl above the maximum is clamped with a warning, beyond 64 bits too', async (t) => {
  const { gateway, connect } = await capable(t);
  const client = await connect();
  let id = 100;
  for (const ttl of ['86400001', '9223372036854775808', '123456789012345678901234567890']) {
    id += 1;
    const body = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"delete_user","task":{"ttl":${ttl}}}}`;
    const { result } = (await client.send('', undefined, { body, id })).message;
    assert.equal(result.task.ttl, 86_400_000, ttl);
    assert.equal(result.ttl, 86_400_000);
  }
  await gateway.logged((entry) => /^warn/i.test(entry.level) && /ttl/i.test(JSON.stringify(entry)));
});

test('the maximum itself is kept; task {} takes the default; both come from the environment', async (t) => {
  const { connect } = await capable(t, TOOLS, { approval: BRIEF, env: { THOUGHTGATE_TASK_DEFAULT_TTL_MS: '120000', THOUGHTGATE_TASK_MAX_TTL_MS: '240000' } });
  const client = await connect();
  const ttl = async (task) => (await client.createTask('delete_user', {}, task)).task.ttl;
  assert.equal(await ttl({}), 120_000);
  assert.equal(await ttl({ ttl: 240_000 }), 240_000);
  assert.equal(await ttl({ ttl: 240_001 }), 240_000);
  assert.equal(await ttl({ ttl: 1000 }), 1000);
});

test('without settings the default ttl is 10 minutes', async (t) => {
  const { connect } = await plain(t, { approval: BRIEF });
  assert.equal((await (await connect()).createTask('delete_user', {}, {})).task.ttl, 600_000);
});

test('_MS variables win over _SECS aliases', async (t) => {
  const { connect } = await plain(t, { approval: BRIEF, env: { THOUGHTGATE_TASK_DEFAULT_TTL_SECS: '50', THOUGHTGATE_TASK_DEFAULT_TTL_MS: '70000', THOUGHTGATE_TASK_MAX_TTL_SECS: '90' } });
  const client = await connect();
  assert.equal((await client.createTask('delete_user', {}, {})).task.ttl, 70_000);
  assert.equal((await client.createTask('delete_user', {}, { ttl: 3_600_000 })).task.ttl, 90_000);
});

test('forward with task to an optional or required upstream tool: upstream owns the task, the bytes are unchanged', async (t) => {
  const { upstream, admin, connect } = await capable(t, [tool('opt', { support: 'optional' }), tool('req', { support: 'required' })]);
  const client = await connect();
  for (const name of ['opt', 'req']) {
    const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"${name}", "task":{ "ttl":60000 },"arguments":{"n":1.0}}}`;
    const { result } = (await client.send('', undefined, { body, id: 7 })).message;
    assert.match(result.task.taskId, /^up-/);
    assert.equal(upstream.calls.at(-1).text, body);
    assert.equal((await client.result('tasks/get', { taskId: result.task.taskId })).status, 'working');
  }
  assert.deepEqual((await admin.list()).tasks, []);
});

test('forward without task is passed through whatever the annotation but required', async (t) => {
  const { upstream, connect } = await capable(t, [tool('opt', { support: 'optional' }), tool('none')]);
  const client = await connect();
  for (const name of ['opt', 'none']) assert.ok((await client.result('tools/call', { name })).content, name);
  assert.equal(upstream.calls.length, 2);
});

test('accelerated: forward with task to a tool that upstream forbids tasks for runs at once as our task, without `task`', async (t) => {
  const { upstream, admin, connect } = await capable(t, [tool('none'), tool('no', { support: 'forbidden' })]);
  const client = await connect();
  for (const name of ['none', 'no']) {
    const created = await client.createTask(name, { x: 1 });
    assert.match(created.taskId, /^tg_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.ok(['working', 'completed'].includes(created.status), created.status);
    assertSchema(t, 'CreateTaskResult', created);
    await admin.inState(created.taskId, 'completed');
    const result = await client.result('tasks/result', { taskId: created.taskId });
    assert.deepEqual(result.structuredContent, { tool: name, arguments: { x: 1 } });
    assert.equal(upstream.calls.at(-1).rpc.params.task, undefined);
  }
});

test('force_required with forward: TaskRequired speaks of the task and not of approval; with task it is accelerated', async (t) => {
  const { upstream, admin, connect } = await plain(t, { forceRequired: ['read_file'] });
  const client = await connect();
  const error = await client.error('tools/call', { name: 'read_file' });
  assert.deepEqual([error.code, error.message, error.data.tool], [-32009, 'TaskRequired', 'read_file']);
  assert.match(error.data.reason, /must be called (as a|with) task/);
  assert.doesNotMatch(error.data.reason, /approval/);
  const created = await client.createTask('read_file');
  assert.match(created.taskId, /^tg_/);
  await admin.inState(created.taskId, 'completed');
  assert.equal(upstream.calls.length, 1);
});

test('force_required with deny is listed as required, and its call is -32014', async (t) => {
  const { connect } = await plain(t, { forceRequired: ['drop_table'] });
  const client = await connect();
  const listed = (await client.result('tools/list')).tools.find((x) => x.name === 'drop_table');
  assert.equal(listed.execution.taskSupport, 'required');
  assert.equal((await client.error('tools/call', { name: 'drop_table', task: {} })).code, -32014);
  assert.equal((await client.error('tools/call', { name: 'drop_table' })).code, -32014);
});

test('the first matching rule decides, globs cross slashes and dots, case counts', async (t) => {
  const { connect } = await plain(t, { rules: [['a*z', 'deny'], ['a*', 'approve'], ['[xy]?.*', 'deny'], ['[!p]q', 'deny'], ['*', 'forward']] });
  const client = await connect();
  const outcome = async (name) => (await client.call('tools/call', { name })).error?.code ?? 'forwarded';
  const expected = { 'a/b.c/z': -32014, 'a/b': -32009, a: -32009, A: 'forwarded', 'x1.anything/else': -32014, 'x.y': 'forwarded', 'z1.x': 'forwarded', aq: -32009, bq: -32014, pq: 'forwarded', 'b{a,z}': 'forwarded' };
  for (const [name, code] of Object.entries(expected)) assert.equal(await outcome(name), code, name);
});

test('a rule for one source does not touch another', async (t) => {
  const [a, b] = [await startUpstream(t), await startUpstream(t)];
  const gateway = await startGateway(t, { upstream: { a: a.url, b: b.url }, rules: [{ match: 'read', action: 'deny', source: 'a' }] });
  assert.equal((await (await connectedRaw(t, `${gateway.origin}/a/mcp`)).error('tools/call', { name: 'read' })).code, -32014);
  assert.ok(await (await connectedRaw(t, `${gateway.origin}/b/mcp`)).result('tools/call', { name: 'read' }));
});

test("upstream's own JSON-RPC errors pass verbatim, -32042 with its elicitations included", async (t) => {
  const { upstream, connect } = await plain(t);
  const client = await connect();
  const error = { code: -32042, message: 'needs you', data: { elicitations: [{ mode: 'url', elicitationId: 'e1', url: 'https://x/y', message: 'sign in' }], extra: [1.5, null] } };
  upstream.handlers['tools/call'] = ({ reply }) => reply.error(error.code, error.message, error.data);
  assert.deepEqual(await client.error('tools/call', { name: 'read_file' }), error);
});

for (const action of ['approve', 'forward']) {
  test(`a client without tasks calls what upstream runs only as a task (${action}): the gateway makes the task`, async (t) => {
    const { upstream, admin, connect } = await scene(t, {
      rules: [['delete_*', action]],
      approval: workflow('10m'),
      config: { pseudo_tools: { only: 'all' } },
      upstream: { capabilities: { tools: {}, tasks: TASKS }, tools: [tool('delete_user', { support: 'required' })] },
    });
    upstream.handlers['tasks/get'] = ({ params, reply }) => reply.result({ ...upstream.tasks.get(params.taskId).task, status: 'completed' });
    const old = await connect({ capabilities: {}, protocol: '2025-06-18' });
    const young = await connect({ capabilities: {} });
    for (const [client, call] of [
      [old, { name: 'delete_user', arguments: { n: 1.50 } }],
      [young, { name: 'execute_tool', arguments: { server: 'up', tool: 'delete_user', args: { n: 1.50 }, timeout_ms: 40_000 } }],
    ]) {
      const answer = client.result('tools/call', call);
      if (action === 'approve') await admin.approve((await admin.pending()).id);
      assert.deepEqual((await answer).structuredContent, { tool: 'delete_user', arguments: { n: 1.5 } });
      const sent = upstream.calls.at(-1).rpc;
      assert.deepEqual(sent.params, { name: 'delete_user', arguments: { n: 1.5 }, task: { ttl: action === 'approve' ? 900_000 : 600_000 } });
      assert.equal(upstream.calls.at(-1).headers['mcp-session-id'], client.session);
    }
    assert.equal(upstream.calls.length, 2);
  });
}
