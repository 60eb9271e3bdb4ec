// The ways of a tools/call: each row of the table is one test, which compares whole messages for all kinds of clients, a
// legacy and a modern one that know no tasks, and one of each era that does.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { BRIEF_DRAIN, temporaryFolder, workflow } from './lib/gateway.mjs';
import { masked } from './lib/masked.mjs';
import { modernClient, OWN, WITH_TASKS } from './lib/modern_client.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const TOOLS = ['read', 'delete_user', 'drop_table', 'pay_bill', 'hidden'];
/** The bytes of a result that nobody would write again in this way. */
const ODD = '{ "content" : [{"type":"text","text":"\\u0068i"}] , "x":1.50 ,"resultType":"complete"}';
const odd = (id) => `{ "result" : ${ODD} ,"id":${JSON.stringify(id)}, "jsonrpc":"2.0" }\n`;

/** A gateway before a server of each era, whose calls of `read` the test answers itself. */
async function stage(t, { config = {}, timeout = '10m', ...options } = {}) {
  const file = path.join(temporaryFolder(t), 'policies.cedar');
  fs.writeFileSync(file, 'forbid(principal, action, resource);');
  const held = [];
  const handlers = { 'tools/call': (call) => (call.params.name === 'read' ? held.push(call) : call.reply.http(200, { 'content-type': 'application/json' }, odd(call.id))) };
  const shared = () => ({
    rules: [['delete_*', 'approve'], ['drop_*', 'deny'], { match: 'pay_*', action: 'policy', policy_id: 'all' }],
    approval: workflow(timeout),
    expose: { mode: 'blocklist', tools: ['hidden'] },
    upstream: { tools: TOOLS.map((name) => tool(name)), handlers },
    env: BRIEF_DRAIN,
    ...options,
    config: { cedar: { policies: [file] }, ...config, pseudo_tools: { wait: '20s', wait_max: '20s', ...config.pseudo_tools } },
  });
  const [legacy, modern] = [await scene(t, shared()), await modernScene(t, shared())];
  return {
    held,
    plain: { ...(await opened(legacy, await legacy.connect({ capabilities: {} }))), another: () => legacy.connect({ capabilities: {} }) },
    modern: await opened(modern, modernClient(t, modern.gateway.url, { capabilities: {}, token: 'plain' })),
    tasks: await opened(legacy, await legacy.connect()),
    modernTasks: await opened(modern, modernClient(t, modern.gateway.url, { capabilities: WITH_TASKS, token: 'tasks' })),
  };
}
const opened = async ({ admin, upstream, gateway }, client) => ({ admin, upstream, gateway, client });
const send = ({ client }, name = 'delete_user', more = {}, options = {}) => client.send('tools/call', { name, arguments: {}, ...more }, { deadline: 60_000, ...options });

/** The whole message; the times of a modern task's end are words, too. */
const seen = (message) => masked(JSON.parse(JSON.stringify(message).replace(/"ttlMs":\d+/, '"ttlMs":"MS"')));
const whole = (answer, expected) => assert.deepEqual(seen(answer.message), { jsonrpc: '2.0', id: answer.id, ...expected });
const error = (code, message, data) => ({ error: { code, message, data: { ...data, correlation_id: 'UUID' } } });
/** The error as the result that a plain legacy client gets, whose first sentences are `text`. */
const refusal = (text, { error: inner }) => ({ result: { content: [{ type: 'text', text }], isError: true, _meta: { 'taskgate/error': inner } } });
const answer = (call) => call.reply.http(200, { 'content-type': 'application/json' }, odd(call.id));

test('(a) forwarded and answered in time: byte for byte for everybody', async (t) => {
  const set = await stage(t);
  for (const who of ['plain', 'modern', 'tasks', 'modernTasks']) {
    const waiting = send(set[who], 'read');
    answer(await until(() => set.held.shift(), 'the call'));
    const { text, id } = await waiting;
    assert.equal(text, odd(id), who);
  }
});

test('(a) forwarded and slower: byte for byte, by promote a task for a plain legacy client, -32001 for others after the silence', async (t) => {
  const env = { ...BRIEF_DRAIN, THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '4' };
  const set = await stage(t, { env, config: { pseudo_tools: { wait: '300ms', wait_max: '300ms' } } });
  const others = ['modern', 'tasks', 'modernTasks'];
  const slow = ['plain', ...others].map((who) => send(set[who], 'read'));
  await until(() => set.held.length === slow.length, 'the calls');
  // Each wait is over when that of a call that came later is.
  await Promise.all([send(set.plain), send(set.modern)]);
  for (const call of set.held.splice(0)) answer(call);
  for (const { text, id } of await Promise.all(slow)) assert.equal(text, odd(id));
  for (const reply of await Promise.all(others.map((who) => send(set[who], 'read')))) {
    whole(reply, error(-32001, 'UpstreamTimeout', { tool: 'read', error_type: 'upstream_timeout' }));
  }
  const promoting = await stage(t, { config: { pseudo_tools: { promote: 'wait', wait: '300ms', wait_max: '300ms' } } });
  const task = { task_id: 'ULID', status: 'working', status_message: 'Running', created_at: 'TIME', last_updated_at: 'TIME', server: 'up', tool: 'read', ttl: 300_000 };
  const block = { proxy_task: task, pending_on_server: { tasks: [{ taskId: 'ULID', toolName: 'read', status: 'working' }], elicitations_for_server: [] } };
  const text = 'Tool call exceeded timeout (300ms). Promoted to task ULID. Use get_task_result to retrieve the result when ready.';
  whole(await send(promoting.plain, 'read'), { result: { content: [{ type: 'text', text }, { type: 'text', text: JSON.stringify(block) }], structuredContent: { message: text, ...block }, isError: false } });
});

test('(b) needs a human, and ends in time: the tool’s own result byte for byte; tasks clients need a task, or get one at once', async (t) => {
  const set = await stage(t);
  for (const who of ['plain', 'modern']) {
    const waiting = send(set[who]);
    await set[who].admin.approve((await set[who].admin.pending()).id);
    const { text, id } = await waiting;
    assert.ok(text.includes(`{"jsonrpc":"2.0","id":${id},"result":${ODD}}`), text);
  }
  whole(await send(set.tasks), REQUIRED);
  whole(await send(set.tasks, 'delete_user', { task: {} }), { result: { ...LEGACY, task: LEGACY, _meta: { ...RELATED, 'io.modelcontextprotocol/model-immediate-response': IMMEDIATE } } });
  whole(await send(set.modernTasks), { result: { resultType: 'task', ...MODERN, ...OWN } });
});
const REQUIRED = error(-32009, 'TaskRequired', { tool: 'delete_user', reason: 'This operation requires approval and must be called with task metadata', hint: 'Include task field: { "task": { "ttl": 600000 } }', error_type: 'task_required' });
const related = (taskId) => ({ 'io.modelcontextprotocol/related-task': { taskId } });
const RELATED = related('TASK');
const IMMEDIATE = "The call of delete_user waits for a person's approval. It has not run yet; what comes of it will be the result of task TASK.";
const LEGACY = { taskId: 'TASK', status: 'input_required', statusMessage: 'Awaiting approval', createdAt: 'TIME', lastUpdatedAt: 'TIME', ttl: 900_000, pollInterval: 5000, toolName: 'delete_user' };
const MODERN = { taskId: 'TASK', status: 'working', statusMessage: 'Awaiting approval: workflow default decides until TIME', createdAt: 'TIME', lastUpdatedAt: 'TIME', ttlMs: 'MS', pollIntervalMs: 1000 };

/** The pending answer, first of a call that made its task, or of one that `joined` it. */
function pending({ joined = false, session = ' in this session' } = {}) {
  const task = { task_id: 'TASK', status: 'working', status_message: 'Awaiting approval', created_at: 'TIME', last_updated_at: 'TIME', server: 'up', tool: 'delete_user', ttl: 900_000 };
  const text = `delete_user has not run yet: it waits for a person's approval (task TASK). To get the outcome, call get_task_result with task_id "TASK". Calling delete_user again with the same arguments${session} asks for the same task and does not run it twice.`;
  const block = { proxy_task: task, joined, pending_on_server: { tasks: [{ taskId: 'TASK', toolName: 'delete_user', status: 'working' }], elicitations_for_server: [] } };
  return { content: [{ type: 'text', text }, { type: 'text', text: JSON.stringify(block) }], structuredContent: { message: text, ...block }, isError: false };
}
const STATE = { resultType: 'input_required', inputRequests: {}, requestState: 'STATE', ...OWN };
const hasty = { config: { pseudo_tools: { wait: '300ms', wait_max: '300ms' } } };

test('(c) later: the pending answer, requestState twice before it, a task to poll', async (t) => {
  const set = await stage(t, hasty);
  whole(await send(set.plain), { result: pending() });
  let state = {};
  for (let round = 0; round < 2; round++) {
    const reply = await send(set.modern, 'delete_user', state);
    whole(reply, { result: STATE });
    state = { requestState: reply.message.result.requestState };
  }
  whole(await send(set.modern, 'delete_user', state), { result: { ...pending({ joined: true, session: '' }), ...OWN, resultType: 'complete' } });
  const { taskId } = await set.tasks.client.createTask('delete_user', {}, {});
  whole(await set.tasks.client.send('tasks/get', { taskId }), { result: { ...LEGACY, _meta: RELATED } });
  const made = await set.modernTasks.client.create('delete_user');
  whole(await set.modernTasks.client.send('tasks/get', { taskId: made.taskId }), { result: { resultType: 'complete', ...MODERN, ...OWN } });
});

const ENDS = {
  reject: { error: error(-32007, 'Rejected by: admin: no', { tool: 'delete_user', reason: 'no', gate: 'approval', error_type: 'approval_rejected' }), text: 'delete_user was not run: admin rejected it: no. Do not repeat the call unless the user asks for it.', status: 'failed', message: 'Rejected by admin: no' },
  cancel: { error: error(-32006, 'Task cancelled', { tool: 'delete_user', reason: 'no', error_type: 'task_cancelled' }), text: 'delete_user was not run: the request was cancelled. The same call asks for approval again.', status: 'cancelled', message: 'Cancelled: no' },
  expire: { error: error(-32008, 'Timeout after 5s', { tool: 'delete_user', gate: 'approval', error_type: 'approval_timeout' }), text: 'delete_user was not run: nobody decided within 5 s. The same call asks for approval again.', status: 'failed', message: 'Approval timed out after 5 s', clocks: { ttl: 600_000, pollInterval: 2000 } },
};

test('(d) rejected, cancelled, expired: a refusal in the answer and in get_task_result; an error; a task that has failed', async (t) => {
  const decide = (who, verb, id) => (verb === 'expire' ? who.admin.inState(id, 'expired') : who.admin.decided(verb, id, 'no'));
  await Promise.all(Object.entries(ENDS).map(async ([verb, end]) => {
    const set = await stage(t, verb === 'expire' ? { timeout: '5s' } : {});
    const waits = [send(set.plain), send(set.modern)];
    const [id] = await Promise.all([set.plain, set.modern].map(async (who) => {
      const task = await who.admin.pending();
      await decide(who, verb, task.id);
      return task.id;
    }));
    whole(await waits[0], refusal(end.text, end.error));
    whole(await waits[1], end.error);
    const fetched = await send(set.plain, 'get_task_result', { arguments: { task_id: id } });
    const { content, ...rest } = seen(fetched.message).result;
    const { content: first, ...expected } = refusal(end.text, end.error).result;
    assert.deepEqual([content[0], rest], [first[0], expected]);
    const { taskId } = await set.tasks.client.createTask('delete_user', {}, {}), made = await set.modernTasks.client.create('delete_user');
    await decide(set.tasks, verb, taskId);
    await decide(set.modernTasks, verb, made.taskId);
    whole(await set.tasks.client.send('tasks/result', { taskId }), end.error);
    whole(await set.tasks.client.send('tasks/get', { taskId }), { result: { ...LEGACY, ...end.clocks, status: end.status, statusMessage: end.message, _meta: RELATED } });
    const ended = { resultType: 'complete', ...MODERN, status: end.status, statusMessage: end.message, ...(end.status === 'failed' ? end.error : {}), ...OWN };
    whole(await set.modernTasks.client.send('tasks/get', { taskId: made.taskId }), { result: ended });
  }));
});

test('(e) denied, hidden, refused by a policy: a refusal for a plain legacy client, an error for all others', async (t) => {
  const set = await stage(t);
  const all = {
    drop_table: [error(-32014, 'Denied by a governance rule', { tool: 'drop_table', gate: 'governance', error_type: 'governance_rule_denied' }), 'drop_table was not run: a rule denies it. Calling it again will be denied again.'],
    hidden: [error(-32015, 'Not exposed', { tool: 'hidden', gate: 'visibility', error_type: 'tool_not_exposed' }), 'hidden was not run: it is not available here. Calling it again does not help.'],
    pay_bill: [error(-32003, 'Policy denied', { tool: 'pay_bill', gate: 'policy', error_type: 'policy_denied' }), 'pay_bill was not run: a policy denies this call. The same call will be denied again.'],
  };
  for (const [name, [expected, text]] of Object.entries(all)) {
    whole(await send(set.plain, name), refusal(text, expected));
    whole(await send(set.modern, name), expected);
    whole(await send(set.tasks, name, { task: {} }), expected);
    whole(await send(set.modernTasks, name), expected);
  }
});

const RESULT = JSON.parse(ODD);
const outcome = (id) => ({ ...RESULT, content: [...RESULT.content, { type: 'text', text: `This is the outcome of your earlier call, task ${id}. It was not run again for this one.` }] });

test('(f) the client closes its connection: what was forwarded goes on as a task, or is aborted; what waits runs when approved, or when somebody comes back', async (t) => {
  const set = await stage(t);
  const leave = async (who, name) => {
    send(who, name).catch(() => {});
    const left = name === 'read' ? await until(() => set.held.shift(), 'the call') : await who.admin.pending();
    who.client.close();
    return left;
  };
  // Forwarded.
  const call = await leave(set.plain, 'read');
  const promoted = await until(async () => (await set.plain.admin.list()).tasks[0], 'its task');
  assert.equal(promoted.state, 'executing');
  const again = send(set.plain, 'read');
  answer(call);
  whole(await again, { result: { ...outcome('ULID'), _meta: related('ULID') } });
  for (const who of ['modern', 'tasks', 'modernTasks']) {
    const gone = await leave(set[who], 'read');
    await gone.recorded.gone;
    assert.equal(gone.recorded.left, true, who);
  }
  assert.deepEqual((await set.plain.admin.list()).tasks.map(({ id }) => id), [promoted.id]);
  // Waiting for a human.
  const legacy = await leave(set.plain, 'delete_user');
  await set.plain.admin.approve(legacy.id);
  await set.plain.admin.inState(legacy.id, 'completed');
  whole(await send(set.plain), { result: { ...outcome('TASK'), _meta: RELATED } });
  const modern = await leave(set.modern, 'delete_user');
  await set.modern.admin.approve(modern.id);
  assert.deepEqual([(await set.modern.admin.task(modern.id)).state, set.modern.upstream.calls.filter(({ rpc }) => rpc.params.name === 'delete_user').length], ['approved', 0]);
  whole(await send(set.modern), { result: RESULT });
});

test('(f) notifications/cancelled: ends the call at the server, or the wait alone; a modern one is ignored', async (t) => {
  const set = await stage(t);
  const cancel = ({ client }, requestId) => client.notify('notifications/cancelled', { requestId });
  for (const who of ['plain', 'tasks']) {
    const waiting = send(set[who], 'read', {}, { id: `f-${who}` });
    const call = await until(() => set.held.shift(), 'the call');
    assert.equal((await cancel(set[who], `f-${who}`)).status, 202);
    const told = await set[who].upstream.received((r) => r.rpc?.method === 'notifications/cancelled' && r.rpc.params.requestId === call.id);
    assert.deepEqual(told.rpc, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: call.id } });
    answer(call); // a server that goes on all the same
    await waiting;
  }
  // The wait of a plain call, and nothing of a task.
  const waiting = send(set.plain, 'delete_user', {}, { id: 'w' });
  const { id } = await set.plain.admin.pending();
  await cancel(set.plain, 'w');
  const { status, text } = await waiting;
  assert.deepEqual([status, text], [202, '']);
  assert.equal((await set.plain.admin.task(id)).state, 'pending');
  await set.plain.admin.approve(id);
  assert.equal((await set.plain.admin.task(id)).state, 'approved');
  assert.equal(set.plain.upstream.calls.filter(({ rpc }) => rpc.params.name === 'delete_user').length, 0);
  // Modern.
  const ignored = send(set.modern, 'read', {}, { id: 'm' });
  const call = await until(() => set.held.shift(), 'the call');
  const note = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'm', _meta: set.modern.client.envelope() } };
  const posted = await set.modern.client.post(note, { headers: set.modern.client.mirror(note) });
  assert.deepEqual([posted.status, (await posted.bytes()).length], [202, 0]);
  answer(call);
  assert.equal((await ignored).text, odd('m'));
  assert.deepEqual(set.modern.upstream.of('notifications/cancelled'), []);
});

test('(f) the same call again joins what waits, with credentials in the modern era, too; a tasks client gets a new task', async (t) => {
  const set = await stage(t, hasty);
  whole(await send(set.plain), { result: pending() });
  whole(await send(set.plain), { result: pending({ joined: true }) });
  whole(await send({ client: await set.plain.another() }), { result: pending() });
  whole(await send(set.modern), { result: STATE });
  whole(await send(set.modern), { result: STATE });
  assert.equal((await set.modern.admin.list()).tasks.length, 1);
  const stranger = { client: modernClient(t, set.modern.gateway.url, { capabilities: {} }) };
  for (let i = 0; i < 2; i++) whole(await send(stranger), { result: STATE });
  assert.equal((await set.modern.admin.list()).tasks.length, 3, 'without credentials only the state joins');
  const made = [await set.tasks.client.createTask('delete_user', {}, {}), await set.tasks.client.createTask('delete_user', {}, {})];
  const modern = [await set.modernTasks.client.create('delete_user'), await set.modernTasks.client.create('delete_user')];
  assert.equal(new Set([...made, ...modern].map(({ taskId }) => taskId)).size, 4);
});
