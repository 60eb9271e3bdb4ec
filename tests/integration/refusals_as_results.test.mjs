// The gateway's decisions about a call, as the result of the tool: the sentence and the advice of each decision.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder, workflow } from './lib/gateway.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const PLAIN = { capabilities: {} };
const RULES = [['delete_*', 'approve'], ['drop_*', 'deny'], { match: 'wipe_*', action: 'approve', require_tasks: true }, { match: 'pay_*', action: 'policy', policy_id: 'all' }];
const TOOLS = ['delete_user', 'delete_account', 'drop_table', 'wipe_all', 'pay_bill', 'hidden', 'read'].map((name) => tool(name));

/** A gateway whose held calls wait for `wait`. */
async function stage(t, { wait = '20s', config = {}, timeout = '10m', more = {}, ...options } = {}) {
  const file = path.join(temporaryFolder(t), 'policies.cedar');
  fs.writeFileSync(file, 'forbid(principal, action, resource);');
  return scene(t, {
    rules: RULES,
    approval: workflow(timeout, more),
    expose: { mode: 'blocklist', tools: ['hidden'] },
    upstream: { tools: TOOLS.map((x) => ({ ...x })) },
    config: { cedar: { policies: [file] }, pseudo_tools: { promote: 'wait', only: 'all', wait, wait_max: wait }, ...config },
    ...options,
  });
}

const call = (client, name = 'delete_user', args = {}) => client.result('tools/call', { name, arguments: args }, { deadline: 60_000 });
const fetchOf = (client, id) => call(client, 'get_task_result', { task_id: id });

/** Asserts the whole result but for the error's correlation id. */
function refused(result, text, code, data, message) {
  const error = result._meta['taskgate/error'];
  assert.deepEqual(result.content[0], { type: 'text', text });
  assert.deepEqual(Object.keys(result).sort(), ['_meta', 'content', 'isError']);
  assert.equal(result.isError, true);
  assert.equal(error.code, code);
  const { correlation_id: id, ...rest } = error.data;
  assert.ok(id);
  for (const [key, value] of Object.entries(data)) assert.deepEqual(rest[key], value, key);
  if (message) assert.equal(error.message, message);
}

/** A task that was answered as pending. */
async function pendingTask(client) {
  return (await call(client)).structuredContent.proxy_task.task_id;
}

const atOnce = {
  '-32014': ['drop_table', 'drop_table was not run: a rule denies it. Calling it again will be denied again.', { error_type: 'governance_rule_denied', tool: 'drop_table' }],
  '-32003': ['pay_bill', 'pay_bill was not run: a policy denies this call. The same call will be denied again.', { error_type: 'policy_denied' }],
  '-32015': ['hidden', 'hidden was not run: it is not available here. Calling it again does not help.', { error_type: 'tool_not_exposed' }],
  '-32009': ['wipe_all', 'wipe_all was not run: it must be called as a task. Call execute_tool with server "up" and tool "wipe_all".', { error_type: 'task_required' }],
};
for (const [code, [name, text, data]] of Object.entries(atOnce)) {
  test(`${code}, and by execute_tool`, async (t) => {
    const { connect } = await stage(t);
    const client = await connect(PLAIN);
    const { status, message } = await client.send('tools/call', { name, arguments: {} });
    assert.equal(status, 200);
    assert.equal(message.result.content.length, 1);
    refused(message.result, text, Number(code), data);
    if (code !== '-32009') refused(await call(client, 'execute_tool', { server: 'up', tool: name, args: {} }), text, Number(code), data);
  });
}

test('-32007 names the person and the reason, whose white space is folded and which is cut', async (t) => {
  const { connect, admin } = await stage(t);
  const client = await connect(PLAIN);
  const rejection = async (reason) => {
    const waiting = call(client);
    await admin.reject((await admin.pending()).id, reason);
    return waiting;
  };
  const advice = 'Do not repeat the call unless the user asks for it.';
  refused(await rejection(' not\n\n today '), `delete_user was not run: admin rejected it: not today. ${advice}`, -32007, { reason: 'not today', error_type: 'approval_rejected' }, 'Rejected by: admin: not today');
  refused(await rejection(), `delete_user was not run: admin rejected it. ${advice}`, -32007, { reason: undefined }, 'Rejected by: admin');
  refused(await rejection('é'.repeat(800)), `delete_user was not run: admin rejected it: ${'é'.repeat(512)}. ${advice}`, -32007, { reason: 'é'.repeat(512) });
});

test('-32008 names the whole seconds', async (t) => {
  const { connect } = await stage(t, { timeout: '5s' });
  refused(await call(await connect(PLAIN)), 'delete_user was not run: nobody decided within 5 s. The same call asks for approval again.', -32008, { error_type: 'approval_timeout' });
});

test('-32005: approved, and nobody came back, by the rule or because the client had given up the call', async (t) => {
  const rules = [{ match: 'delete_user', action: 'approve', execution: 'on_result' }, ...RULES];
  const { connect, admin, upstream } = await stage(t, { rules, more: { valid_for: '5s' }, config: { pseudo_tools: { promote: 'wait', only: 'all', wait: '200ms', wait_max: '200ms' } } });
  const client = await connect(PLAIN);
  const id = await pendingTask(client);
  const given = client.send('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'delete_account', args: {}, timeout_ms: 60_000 } }, { id: 77 });
  const left = await until(async () => (await admin.list({ state: 'pending' })).tasks.find((task) => task.tool === 'delete_account'), 'its task');
  await (await connect(PLAIN)).notify('notifications/cancelled', { requestId: 77 }); // of another session
  await client.notify('notifications/cancelled', { requestId: 77 });
  assert.deepEqual([(await given).status, (await given).text], [202, '']);
  for (const task of [id, left.id]) await admin.decide('approve', task);
  for (const [task, name] of [[id, 'delete_user'], [left.id, 'delete_account']]) {
    await admin.inState(task, 'expired', 'completed');
    const text = `${name} was not run: it was approved, but nobody came back in time. The same call asks for approval again.`;
    refused(await fetchOf(client, task), text, -32005, { error_type: 'task_expired' });
  }
  assert.equal(upstream.calls.length, 0);
});

test('-32006: cancelled', async (t) => {
  const { connect, admin } = await stage(t);
  const client = await connect(PLAIN);
  const waiting = call(client);
  await admin.cancel((await admin.pending()).id);
  refused(await waiting, 'delete_user was not run: the request was cancelled. The same call asks for approval again.', -32006, { error_type: 'task_cancelled' });
});

const DRIFTED = 'delete_user was not run: its rule, or its definition, changed after the approval. The same call asks for approval again.';

test('-32011: another rule', async (t) => {
  const { connect, admin, gateway } = await stage(t);
  const client = await connect(PLAIN);
  const waiting = call(client);
  const { id } = await admin.pending();
  gateway.writeConfig({ rules: [['delete_*', 'deny'], ['read', 'deny']] });
  gateway.hangUp();
  await until(async () => (await client.result('tools/call', { name: 'read' })).isError, 'the new rule');
  await admin.decide('approve', id);
  refused(await waiting, DRIFTED, -32011, { error_type: 'policy_drift' });
});

test('-32012: another definition', async (t) => {
  const { connect, admin, upstream } = await stage(t, { wait: '200ms', config: { execution: 'on_result' } });
  const client = await connect(PLAIN);
  await client.result('tools/list');
  const id = await pendingTask(client);
  await admin.approve(id);
  upstream.tools[0] = tool('delete_user', { description: 'Now deletes everybody' });
  await client.result('tools/list');
  refused(await fetchOf(client, id), DRIFTED, -32012, { error_type: 'transform_drift' });
});

test('-32013 where too many calls wait', async (t) => {
  const { connect, admin } = await stage(t, { config: { limits: { pending_per_principal: 1 } } });
  const client = await connect(PLAIN);
  const waiting = call(client);
  const { id } = await admin.pending();
  refused(await call(client, 'delete_user', { other: 1 }), 'delete_user was not run: too many calls wait for a decision. Try again in 60 s.', -32013, { error_type: 'rate_limited', retry_after: 60 });
  await admin.reject(id);
  await waiting;
});

test('-32603: the outcome is unknown', async (t) => {
  const { connect, admin, gateway, upstream } = await stage(t, { wait: '200ms' });
  const client = await connect(PLAIN);
  const id = await pendingTask(client);
  upstream.handlers['tools/call'] = () => {};
  await admin.decide('approve', id);
  await until(() => upstream.calls.length === 1, 'the call under way');
  await gateway.kill9();
  await gateway.launch();
  refused(await fetchOf(client, id), 'It is not known whether delete_user ran. Check its effect before you call it again.', -32603, { error_type: 'outcome_unknown' });
});

test('a late refusal says that it is the outcome of the earlier call', async (t) => {
  const { connect, admin } = await stage(t, { wait: '200ms' });
  const client = await connect(PLAIN);
  const id = await pendingTask(client);
  await admin.reject(id, 'no');
  const result = await call(client);
  refused(result, 'delete_user was not run: admin rejected it: no. Do not repeat the call unless the user asks for it.', -32007, { reason: 'no' });
  assert.equal(result.content[1].text, `This is the outcome of your earlier call, task ${id}. It was not run again for this one.`);
});

test('get_task_result of a rejected task says the same, without structuredContent', async (t) => {
  const { connect, admin } = await stage(t, { wait: '200ms' });
  const client = await connect(PLAIN);
  const id = await pendingTask(client);
  await admin.reject(id, 'no');
  refused(await fetchOf(client, id), 'delete_user was not run: admin rejected it: no. Do not repeat the call unless the user asks for it.', -32007, { reason: 'no' }, 'Rejected by: admin: no');
});

test('refusals: result and error make exceptions, in both eras', async (t) => {
  const clients = [{ match: 'errors', refusals: 'error' }, { match: '*', refusals: 'result' }];
  const { connect } = await stage(t, { config: { clients } });
  assert.equal((await (await connect({ ...PLAIN, name: 'errors' })).error('tools/call', { name: 'drop_table' })).code, -32014);
  refused(await call(await connect(), 'drop_table'), atOnce['-32014'][1], -32014, {});
  const { modern } = await modernScene(t, { rules: [['drop_*', 'deny']], config: { clients } });
  const { resultType, ...result } = await modern().result('tools/call', { name: 'drop_table', arguments: {} });
  assert.equal(resultType, 'complete');
  refused(result, atOnce['-32014'][1], -32014, {});
});

test('tasks clients and modern clients get errors, and so does everybody for what is no refusal', async (t) => {
  const { connect } = await stage(t);
  assert.equal((await (await connect()).error('tools/call', { name: 'drop_table' })).code, -32014);
  const { modern } = await modernScene(t, { rules: [['drop_*', 'deny']] });
  assert.equal((await modern().error('tools/call', { name: 'drop_table', arguments: {} })).code, -32014);
  const plain = await connect(PLAIN);
  assert.equal((await plain.error('tools/call', { name: 5 })).code, -32602);
  assert.equal((await plain.error('prompts/get', { name: 'hidden' })).code, -32015);
});
