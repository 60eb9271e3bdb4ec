// The gateway's decisions about a call, as the result of the tool (behaviour 11.3): each row of the table is one test,
// which compares the whole result, in both eras.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder, workflow } from './lib/gateway.mjs';
import { masked } from './lib/masked.mjs';
import { modernClient, OWN } from './lib/modern_client.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const PLAIN = { capabilities: {} };
const RULES = [['delete_*', 'approve'], ['drop_*', 'deny'], { match: 'wipe_*', action: 'approve', require_tasks: true }, { match: 'pay_*', action: 'policy', policy_id: 'all' }];
const TOOLS = ['delete_user', 'delete_account', 'drop_table', 'wipe_all', 'pay_bill', 'hidden', 'read'].map((name) => tool(name));
const RESULTS = [{ match: 'modern-*', refusals: 'result' }];

/** A gateway before a legacy server, for clients of both eras. Its held calls wait for `wait`. */
async function stage(t, { wait = '20s', rounds, config = {}, timeout = '10m', more = {}, ...options } = {}) {
  const file = path.join(temporaryFolder(t), 'policies.cedar');
  fs.writeFileSync(file, 'forbid(principal, action, resource);');
  const set = await scene(t, {
    rules: RULES,
    approval: workflow(timeout, more),
    expose: { mode: 'blocklist', tools: ['hidden'] },
    source: { bridge: 'modern' },
    upstream: { tools: TOOLS.map((x) => ({ ...x })) },
    config: { clients: RESULTS, cedar: { policies: [file] }, pseudo_tools: { promote: 'wait', only: 'all', wait, wait_max: wait, ...(rounds === undefined ? {} : { rounds }) }, ...config },
    ...options,
  });
  return { ...set, modern: (options) => modernClient(t, set.gateway.url, { capabilities: {}, token: 'owner', ...options }) };
}
/** One that answers each call that waits as pending, at once. */
const hasty = (t, options = {}) => stage(t, { wait: '200ms', rounds: 0, ...options });

const eras = { legacy: ({ connect }) => connect(PLAIN), modern: ({ modern }) => modern() };
const call = (client, name = 'delete_user', args = {}) => client.result('tools/call', { name, arguments: args }, { deadline: 60_000 });
const fetchOf = (client, id) => call(client, 'get_task_result', { task_id: id });
const isModern = (client) => client.info !== undefined;

/** The row of a code, and the error that a tasks client gets. */
const row = (code, message, error_type, sentence, advice, data = {}) => ({ text: `${sentence} ${advice}`, error: { code, message, data: { ...data, error_type, correlation_id: 'UUID' } } });
const tooled = (name, gate, more = {}) => ({ tool: name, ...(gate ? { gate } : {}), ...more });

/** Asserts the whole result. `blocks` are the texts behind the first. */
function refused(client, result, { text, error }, ...blocks) {
  const own = isModern(client) ? { ...OWN._meta } : {};
  assert.deepEqual(masked(result), {
    content: [text, ...blocks].map((block) => ({ type: 'text', text: block })),
    isError: true,
    _meta: { 'taskgate/error': error, ...own },
    ...(isModern(client) ? { resultType: 'complete' } : {}),
  });
}

/** One row in each era, with a gateway of its own. */
function inBothEras(name, run, start = stage) {
  for (const [era, open] of Object.entries(eras)) {
    test(`${name} (${era})`, async (t) => {
      const set = await start(t);
      await run(await open(set), set, t);
    });
  }
}

/** A task that was answered as pending. */
async function pendingTask(client) {
  return (await call(client)).structuredContent.proxy_task.task_id;
}

/** The events that `get_task_result` tells of behind a refusal. */
const told = (...events) => JSON.stringify({ events_since_last_response: events.map(([type, data]) => ({ id: 'ULID', type, server: 'up', data, createdAt: 'TIME' })) });

const rows = {
  '-32014': ['drop_table', row(-32014, 'Denied by a governance rule', 'governance_rule_denied', 'drop_table was not run: a rule denies it.', 'Calling it again will be denied again.', tooled('drop_table', 'governance'))],
  '-32003': ['pay_bill', row(-32003, 'Policy denied', 'policy_denied', 'pay_bill was not run: a policy denies this call.', 'The same call will be denied again.', tooled('pay_bill', 'policy'))],
  '-32015': ['hidden', row(-32015, 'Not exposed', 'tool_not_exposed', 'hidden was not run: it is not available here.', 'Calling it again does not help.', tooled('hidden', 'visibility'))],
};
for (const [code, [name, expected]] of Object.entries(rows)) {
  inBothEras(code, async (client, { connect }) => {
    const { status, message } = await client.send('tools/call', { name, arguments: {} });
    assert.equal(status, 200);
    refused(client, message.result, expected);
    if (isModern(client)) return;
    refused(client, await call(client, 'execute_tool', { server: 'up', tool: name, args: {} }), expected);
    assert.deepEqual(masked(await (await connect()).call('tools/call', { name, arguments: {}, task: {} })).error, expected.error, 'the error that a tasks client gets');
  });
}

inBothEras('-32014 caller_blocked, with a reason as a rejection has it', async (client, { admin }) => {
  const id = await pendingTask(client);
  for (const [given, reason] of [[' it runs\n wild ', 'it runs wild'], ['é'.repeat(800), 'é'.repeat(512)]]) {
    const made = await admin.post('/api/v1/blocks', { task: id, for: '1h', reason: given });
    assert.equal(made.status, 201, made.text);
    const expected = row(-32014, 'This caller is blocked', 'caller_blocked', `delete_user was not run: this agent has been stopped: ${reason}.`, 'Tell the user.', { tool: 'delete_user', reason });
    refused(client, await call(client), expected);
    assert.equal((await admin.post(`/api/v1/blocks/${made.json.id}/lift`, {})).status, 200);
  }
}, hasty);

test('-32009, of plain legacy clients alone', async (t) => {
  const set = await stage(t);
  const expected = row(-32009, 'TaskRequired', 'task_required', 'wipe_all was not run: it must be called as a task.', 'Call execute_tool with server "up" and tool "wipe_all".', {
    tool: 'wipe_all',
    reason: 'This operation requires approval and must be called with task metadata',
    hint: 'Include task field: { "task": { "ttl": 600000 } }',
    alternative: { tool: 'execute_tool', arguments: { server: 'up', tool: 'wipe_all' }, then: ['get_task_result', 'await_activity', 'list_tasks'] },
  });
  const client = await set.connect(PLAIN);
  refused(client, await call(client, 'wipe_all'), expected);
  const without = await stage(t, { config: { pseudo_tools: { only: ['list_tasks'] } } });
  const other = await without.connect(PLAIN);
  const { alternative, ...data } = expected.error.data;
  refused(other, await call(other, 'wipe_all'), { text: 'wipe_all was not run: it must be called as a task.', error: { ...expected.error, data } });
});

const REJECTED = 'Do not repeat the call unless the user asks for it.';
/** Messages have 1 KB at most. */
const rejected = (reason, name = 'delete_user') => {
  const shown = reason === undefined ? '' : `: ${reason}`;
  return row(-32007, `Rejected by: admin${shown}`.slice(0, 522), 'approval_rejected', `${name} was not run: admin rejected it${shown}.`, REJECTED, { tool: name, ...(reason === undefined ? {} : { reason }), gate: 'approval' });
};

inBothEras('-32007 names the person and the reason, whose white space is folded and which is cut', async (client, { admin }) => {
  const rejection = async (reason) => {
    const waiting = call(client);
    await admin.reject((await admin.pending()).id, reason);
    return waiting;
  };
  refused(client, await rejection(' not\n\n today '), rejected('not today'));
  refused(client, await rejection(), rejected());
  refused(client, await rejection('é'.repeat(800)), rejected('é'.repeat(512)));
});

const AGAIN = 'The same call asks for approval again.';
const UNSENT = 'delete_user was not run:';

inBothEras('-32008 names the whole seconds', async (client) => {
  refused(client, await call(client), row(-32008, 'Timeout after 5s', 'approval_timeout', `${UNSENT} nobody decided within 5 s.`, AGAIN, tooled('delete_user', 'approval')));
}, (t) => stage(t, { timeout: '5s' }));

const EXPIRED = (name) => row(-32005, 'Task expired', 'task_expired', `${name} was not run: it was approved, but nobody came back in time.`, AGAIN, tooled(name, 'approval'));
const TOLD = (name) => ({ taskId: 'TASK', toolName: name, error: 'Approved, but not run within 5 s', ttl: 605_000 });
const brief = (t) => hasty(t, { rules: [{ match: 'delete_user', action: 'approve', execution: 'on_result' }, ...RULES], more: { valid_for: '5s' } });

inBothEras('-32005: approved, and nobody came back', async (client, { admin, upstream }) => {
  const id = await pendingTask(client);
  await admin.decide('approve', id);
  await admin.inState(id, 'expired', 'completed');
  refused(client, await fetchOf(client, id), EXPIRED('delete_user'), told(['task_expired', TOLD('delete_user')]));
  assert.equal(upstream.calls.length, 0);
}, brief);

test('-32005: approved, and the client had given up the call', async (t) => {
  const { connect, admin, upstream } = await brief(t);
  const client = await connect(PLAIN);
  const given = client.send('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'delete_account', args: {}, timeout_ms: 60_000 } }, { id: 77 });
  const left = await until(async () => (await admin.list({ state: 'pending' })).tasks[0], 'its task');
  await (await connect(PLAIN)).notify('notifications/cancelled', { requestId: 77 }); // of another session
  await client.notify('notifications/cancelled', { requestId: 77 });
  assert.deepEqual([(await given).status, (await given).text], [202, '']);
  await admin.decide('approve', left.id);
  await admin.inState(left.id, 'expired', 'completed');
  refused(client, await fetchOf(client, left.id), EXPIRED('delete_account'), told(['task_created', { taskId: 'TASK', toolName: 'delete_account', args: {} }], ['task_expired', TOLD('delete_account')]));
  assert.equal(upstream.calls.length, 0);
});

inBothEras('-32006: cancelled', async (client, { admin }) => {
  const waiting = call(client);
  await admin.cancel((await admin.pending()).id);
  refused(client, await waiting, row(-32006, 'Task cancelled', 'task_cancelled', `${UNSENT} the request was cancelled.`, AGAIN, tooled('delete_user')));
});

const DRIFTED = `${UNSENT} its rule, or its definition, changed after the approval.`;

inBothEras('-32011: another rule', async (client, { admin, gateway }) => {
  const waiting = call(client);
  const { id } = await admin.pending();
  gateway.writeConfig({ rules: [['delete_*', 'deny'], ['read', 'deny']] });
  gateway.hangUp();
  await until(async () => (await call(client, 'read')).isError, 'the new rule');
  await admin.decide('approve', id);
  refused(client, await waiting, row(-32011, 'Policy changed since the approval', 'policy_drift', DRIFTED, AGAIN, tooled('delete_user')));
});

inBothEras('-32012: another definition', async (client, { admin, upstream }) => {
  await client.result('tools/list');
  const id = await pendingTask(client);
  await admin.approve(id);
  upstream.tools[0] = tool('delete_user', { description: 'Now deletes everybody' });
  await client.result('tools/list');
  refused(client, await fetchOf(client, id), row(-32012, 'Tool definition changed since the approval', 'transform_drift', DRIFTED, AGAIN, tooled('delete_user', 'policy')), told(['task_failed', { taskId: 'TASK', toolName: 'delete_user', error: 'Tool definition changed since the approval' }]));
}, (t) => hasty(t, { config: { clients: RESULTS, execution: 'on_result' } }));

inBothEras('-32013 where too many calls wait', async (client, { admin }) => {
  const waiting = call(client);
  const { id } = await admin.pending();
  const expected = row(-32013, 'Too many requests or pending tasks', 'rate_limited', `${UNSENT} too many calls wait for a decision.`, 'Try again in 60 s.', { tool: 'delete_user', details: 'too many pending tasks of this client', retry_after: 60 });
  refused(client, await call(client, 'delete_user', { other: 1 }), expected);
  await admin.reject(id);
  await waiting;
}, (t) => stage(t, { config: { clients: RESULTS, limits: { pending_per_principal: 1 } } }));

inBothEras('-32603: the outcome is unknown', async (client, { admin, gateway, upstream }) => {
  const id = await pendingTask(client);
  upstream.handlers['tools/call'] = () => {};
  await admin.decide('approve', id);
  fetchOf(client, id).catch(() => {});
  await until(() => upstream.calls.length === 1, 'the call under way');
  await gateway.kill9();
  await gateway.launch();
  const expected = row(-32603, 'The outcome of the call is unknown', 'outcome_unknown', 'It is not known whether delete_user ran.', 'Check its effect before you call it again.', tooled('delete_user'));
  refused(client, await fetchOf(client, id), expected);
}, hasty);

inBothEras('a late refusal says that it is the outcome of the earlier call', async (client, { admin }) => {
  const id = await pendingTask(client);
  await admin.reject(id, 'no');
  refused(client, await call(client), rejected('no'), 'This is the outcome of your earlier call, task TASK. It was not run again for this one.');
}, hasty);

inBothEras('get_task_result of a rejected task says the same, without structuredContent', async (client, { admin }) => {
  const id = await pendingTask(client);
  await admin.reject(id, 'no');
  refused(client, await fetchOf(client, id), rejected('no'), told(['task_failed', { taskId: 'TASK', toolName: 'delete_user', error: 'Rejected by admin: no' }]));
}, hasty);

test('refusals: result and error make exceptions, in both eras', async (t) => {
  const set = await stage(t, { config: { clients: [{ match: 'errors', refusals: 'error' }, { match: '*', refusals: 'result' }] } });
  const expected = rows['-32014'][1];
  const [errors, tasks] = [await set.connect({ ...PLAIN, name: 'errors' }), await set.connect()];
  const send = async (client) => masked(await client.call('tools/call', { name: 'drop_table' }));
  assert.deepEqual(await send(errors), { jsonrpc: '2.0', id: errors.lastId, error: expected.error });
  refused(tasks, await call(tasks, 'drop_table'), expected);
  const modern = set.modern();
  refused(modern, await call(modern, 'drop_table'), expected);
});

test('tasks clients and modern clients get errors, and so does everybody for what is no refusal', async (t) => {
  const set = await stage(t);
  const [tasks, modern, plain] = [await set.connect(), set.modern({ info: { name: 'other', version: '1' } }), await set.connect(PLAIN)];
  for (const client of [tasks, modern]) {
    const message = masked(await client.call('tools/call', { name: 'drop_table', arguments: {} }));
    assert.deepEqual(message, { jsonrpc: '2.0', id: client.lastId, error: rows['-32014'][1].error });
  }
  assert.equal((await plain.error('tools/call', { name: 5 })).code, -32602);
  assert.equal((await plain.error('prompts/get', { name: 'hidden' })).code, -32015);
});
