// The agent's reason (`governance.rules[].reason`): asked for in the schemas of tools, shown to those who decide, and no part of the call.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { run } from './lib/child.mjs';
import { call, stage as controlPlane } from './lib/control_plane.mjs';
import { ADMIN_TOKEN, BINARY, temporaryFolder, workflow } from './lib/gateway.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { PLAIN } from './lib/promotion.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const PROPERTY = { type: 'string', minLength: 10, maxLength: 500, description: 'Why you make this call, for the person who decides on it.' };
const WHY = 'the disk is full';
const object = (properties, more = {}) => ({ inputSchema: { type: 'object', properties, ...more } });
const own = object({ taskgate_reason: { type: 'number' } });
const TOOLS = [tool('drop', object({ name: {} }, { required: ['name'] })), tool('ask', object({ name: {} })), tool('own', own), tool('read', object({ name: {} }))];
const rules = [
  { match: 'drop', action: 'approve', reason: 'required' },
  { match: 'ask', action: 'approve', reason: 'optional' },
  { match: 'own', action: 'approve', reason: 'required' },
  { match: 'read', action: 'forward', reason: 'required' },
  { match: 'never', action: 'deny', reason: 'optional' },
];
const schemas = (tools) => Object.fromEntries(tools.filter(({ name }) => TOOLS.some((mine) => mine.name === name)).map(({ name, inputSchema }) => [name, inputSchema]));
const LISTED = {
  drop: { type: 'object', properties: { name: {}, taskgate_reason: PROPERTY }, required: ['name', 'taskgate_reason'] },
  ask: { type: 'object', properties: { name: {}, taskgate_reason: PROPERTY } },
  own: own.inputSchema,
  read: { type: 'object', properties: { name: {} } },
};

const stage = (t, more = {}) => scene(t, { rules, approval: workflow('10m'), upstream: { tools: TOOLS }, ...more });

function refused({ error }) {
  assert.deepEqual([error.code, error.data.error_type], [-32602, 'reason_required']);
  assert.match(error.message, /arguments\.taskgate_reason must be a text of 10 to 500 characters/);
}

test('the property is in the schemas of tools that a rule holds, and the server gets the call without the member', async (t) => {
  const { admin, connect, gateway, upstream } = await stage(t);
  const client = await connect();
  for (let i = 0; i < 2; i++) assert.deepEqual(schemas((await client.result('tools/list')).tools), LISTED);
  const cannot = gateway.logs.filter(({ msg }) => msg === "A tool's schema cannot have the agent's reason");
  assert.deepEqual(cannot.map((line) => [line.source, line.tool]), [['up', 'own']], 'once');
  const plain = await admin.task((await client.createTask('ask', { name: 'x' })).taskId);
  const { taskId } = await client.createTask('ask', { taskgate_reason: `  ${WHY}\n`, name: 'x' });
  const task = await admin.task(taskId);
  assert.deepEqual([plain.reasonOfAgent, task.reasonOfAgent, task.arguments], [null, WHY, { name: 'x' }]);
  assert.deepEqual([task.argumentsDigest, task.requestDigest, task.digest], [plain.argumentsDigest, plain.requestDigest, plain.digest]);
  const shown = await run(BINARY, ['tasks', 'show', taskId], { env: { THOUGHTGATE_ADMIN_URL: gateway.admin.url, TASKGATE_TOKEN: ADMIN_TOKEN } });
  assert.match(shown.stdout, new RegExp(`^Agent says +${WHY}$`, 'm'));
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  assert.deepEqual(upstream.calls.at(-1).rpc.params, { name: 'ask', arguments: { name: 'x' } });
  const mine = await admin.task((await client.createTask('own', { taskgate_reason: 5 })).taskId);
  assert.deepEqual([mine.reasonOfAgent, mine.arguments], [null, { taskgate_reason: 5 }]);
  await client.result('tools/call', { name: 'read', arguments: { taskgate_reason: 1 } });
  assert.deepEqual(upstream.calls.at(-1).rpc.params.arguments, { taskgate_reason: 1 }, 'a forwarded call is not changed');
});

test('the digest of a definition does not know the property', async (t) => {
  const digests = async (more) => {
    const { admin, connect } = await stage(t, more);
    await (await connect()).result('tools/list');
    const read = async () => (await admin.get('/api/v1/definitions')).json.definitions;
    await until(async () => (await read()).length === TOOLS.length, 'all definitions');
    return (await read()).map(({ name, digest }) => `${name} ${digest}`).toSorted();
  };
  const without = await digests({ rules: [['*', 'approve']] });
  assert.deepEqual(await digests({}), without);
  assert.match(without.find((line) => line.startsWith('drop ')), /^drop [0-9a-f]{64}$/);
});

test('the reason is marked where it may be read as something else, and redact_fields hides it', async (t) => {
  const { admin, connect, gateway } = await stage(t, { approval: { open: { timeout: '10m' }, secret: { timeout: '10m', redact_fields: ['taskgate_reason'] } }, rules: [{ match: 'drop', action: 'approve', approval: 'secret', reason: 'required' }, { match: 'ask', action: 'approve', approval: 'open', reason: 'optional' }] });
  const client = await connect();
  const said = 'the d\u0456sk\u202e is\u2003full';
  const show = async (id) => (await run(BINARY, ['tasks', 'show', id], { env: { THOUGHTGATE_ADMIN_URL: gateway.admin.url, TASKGATE_TOKEN: ADMIN_TOKEN } })).stdout;
  const { taskId: open } = await client.createTask('ask', { name: 'x', taskgate_reason: said });
  const task = await admin.task(open);
  const where = 'taskgate_reason';
  assert.deepEqual([task.reasonOfAgent, task.marks], [said, [{ where, what: 'bidi' }, { where, what: 'invisible' }, { where, what: 'mixed_script' }]]);
  assert.match(await show(open), /^Look out +taskgate_reason: characters that change the order of letters$/m);
  const { taskId: hidden } = await client.createTask('drop', { name: 'x', taskgate_reason: said });
  const other = await admin.task(hidden);
  assert.deepEqual([other.reasonOfAgent, other.marks], ['[REDACTED]', []]);
  const text = await show(hidden);
  assert.match(text, /^Agent says +\[REDACTED\]$/m);
  assert.ok(!text.includes('full'));
});

test('a call without a good reason is refused, by whichever way it comes', async (t) => {
  const { admin, ci, connect, gateway } = await controlPlane(t, { rules, upstream: { tools: TOOLS } });
  const client = await connect();
  for (const args of [{ name: 'x' }, { name: 'x', taskgate_reason: 'too short' }, { name: 'x', taskgate_reason: 7 }, { taskgate_reason: `${' '.repeat(20)}brief` }, undefined])
    refused(await client.call('tools/call', { name: 'drop', arguments: args, task: {} }));
  for (const nothing of ['\u200b'.repeat(12), '\u3164\u00a0'.repeat(6), '\u202e \u2066 \ufeff \u00ad \u2800 \u200d', 'because\u0000of it', 'r'.repeat(501), ['because of it'], { text: 'because of it' }, null])
    refused(await client.call('tools/call', { name: 'drop', arguments: { name: 'x', taskgate_reason: nothing }, task: {} }));
  refused(await client.call('tools/call', { name: 'ask', arguments: { taskgate_reason: '' }, task: {} }));
  const escaped = JSON.stringify({ jsonrpc: '2.0', id: 77, method: 'tools/call', params: { name: 'drop', arguments: { name: 'x', taskgate_reason: WHY }, task: {} } }).replace('taskgate_', 'taskgate\\u005f');
  assert.deepEqual((await admin.list()).tasks, []);
  await client.send('tools/call', undefined, { id: 77, body: escaped });
  const [task] = (await admin.list()).tasks;
  assert.deepEqual([task.reasonOfAgent, task.arguments], [WHY, { name: 'x' }]);
  const post = (args) => call(ci, { source: 'up', tool: 'drop', arguments: args });
  const bad = await post({ name: 'x' });
  assert.equal(bad.status, 400);
  assert.match(bad.json.error.message, /arguments\.taskgate_reason must be/);
  const good = await post({ name: 'x', taskgate_reason: WHY });
  assert.deepEqual([good.status, good.json.reasonOfAgent, good.json.arguments], [201, WHY, { name: 'x' }]);
  const check = await run(BINARY, ['check', '--config', gateway.configPath], { env: gateway.environment() });
  assert.match(check.stderr, /governance\.rules\[3\]\.reason: the key has no effect with action: forward/);
  assert.match(check.stderr, /governance\.rules\[4\]\.reason: the key has no effect with action: deny/);
});

/** The argument objects, as texts, that are `{"name":"x"}` without the member; each says another reason. */
const SPELLINGS = [
  '{"taskgate_reason":"reason number 0","name":"x"}',
  '{"name":"x","taskgate_reason":"reason number 1"}',
  '{"taskgate\\u005freason" : "reason number 2","name":"x"}',
  '{"name":"x", "\\u0074\\u0061skgate_reason":"reason number 3"}',
  '{"name":"x","\\u0074\\u0061\\u0073\\u006b\\u0067\\u0061\\u0074\\u0065\\u005F\\u0072\\u0065\\u0061\\u0073\\u006F\\u006e":"\\u0072eason number 4"}',
];
const raw = (name, spelling, more = '') => `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"${name}","arguments":${spelling}${more}}}`;

test('policies, input checks, grants, joins and digests see the call without the member, however it is spelt', async (t) => {
  const folder = temporaryFolder(t), file = path.join(folder, 'policies.cedar');
  fs.writeFileSync(file, ['Forward', 'Approve'].map((action) => `permit(principal, action == ThoughtGate::Action::"${action}", resource) when { ${action === 'Approve' ? '!' : ''}(resource.arguments has taskgate_reason) && resource.arguments has name };\n`).join(''));
  const { admin, ci, connect, gateway, upstream } = await controlPlane(t, {
    rules: [{ match: 'ask', action: 'policy', policy_id: 'p', reason: 'required' }, { match: 'drop', action: 'approve', reason: 'required' }],
    approval: workflow('10m', { grants: { max: '1h', max_calls: 50 } }),
    upstream: { tools: TOOLS },
    config: { cedar: { policies: [file] }, pseudo_tools: { only: 'all', wait: '200ms', wait_max: '200ms' } },
  });
  const client = await connect(PLAIN);
  const digests = new Set(), tasks = new Set();
  const note = async (id, reason) => {
    const task = await admin.task(id);
    assert.deepEqual([task.reasonOfAgent, task.arguments, task.original ?? null], [reason, { name: 'x' }, null]);
    digests.add(`${task.argumentsDigest} ${task.requestDigest}`);
    return task;
  };
  for (const [i, spelling] of SPELLINGS.entries()) {
    const reason = `reason number ${i}`;
    // Cedar approves what has no such member; with it the call would be forwarded.
    const { message } = await client.send('tools/call', undefined, { id: 77, body: raw('ask', spelling, ',"task":{}') });
    await note(message.result.task.taskId, reason);
    await admin.reject(message.result.task.taskId, 'no');
    // By POST /api/v1/calls.
    const posted = await fetch(`${gateway.adminUrl}/api/v1/calls`, { method: 'POST', headers: { authorization: `Bearer ${ci.token}`, 'content-type': 'application/json' }, body: `{"source":"up","tool":"ask","arguments":${spelling}}` });
    const made = await posted.json();
    assert.equal(posted.status, 201, JSON.stringify(made));
    await note(made.id, reason);
    await admin.reject(made.id, 'no');
    // Joins: one task, whatever the reason; by execute_tool another one.
    const held = (await client.send('tools/call', undefined, { id: 77, body: raw('drop', spelling) })).message.result.structuredContent;
    tasks.add(held.proxy_task.task_id);
    assert.equal(held.joined, i > 0);
    const body = raw('execute_tool', `{"server":"up","tool":"drop","args":${spelling},"timeout_ms":0}`);
    tasks.add((await client.send('tools/call', undefined, { id: 77, body })).message.result.structuredContent.proxy_task.task_id);
  }
  assert.deepEqual([tasks.size, digests.size], [1, 1]);
  assert.equal(upstream.calls.length, 0);
  // A grant that was given for the first lets all of them run.
  const [id] = tasks;
  await note(id, 'reason number 0');
  const granted = await admin.post(`/api/v1/tasks/${id}/approve`, { grant: { for: '1h', calls: 50 } });
  assert.equal(granted.status, 200, granted.text);
  await admin.inState(id, 'completed');
  for (const [i, spelling] of SPELLINGS.entries()) {
    const { message } = await client.send('tools/call', undefined, { id: 77, body: raw('drop', spelling, ',"task":{}') });
    const task = await admin.inState(message.result.task.taskId, 'completed');
    assert.deepEqual([task.grant.use, task.reasonOfAgent], [i + 1, `reason number ${i}`]);
  }
  assert.equal(upstream.calls.length, 1 + SPELLINGS.length);
  for (const { rpc } of upstream.calls) assert.deepEqual(rpc.params.arguments, { name: 'x' });
  // The check for keys that look alike does not see it, either; the other key is an argument.
  const { message } = await client.send('tools/call', undefined, { id: 77, body: raw('drop', '{"name":"x","TaskGate_Reason":1,"taskgate_reason":"reason number 9"}', ',"task":{}') });
  assert.deepEqual((await admin.task(message.result.task.taskId)).arguments, { name: 'x', TaskGate_Reason: 1 });
  const twice = await client.call('tools/call', { name: 'drop', arguments: { taskgate_reason: WHY, name: 'x', Name: 'y' }, task: {} });
  assert.equal(twice.error.code, -32602);
});

test('a modern client, a bridged one and execute_tool: the same', async (t) => {
  const { admin, connect, modern, upstream } = await modernScene(t, { rules, approval: workflow('10m'), source: { era: 'modern' }, config: { pseudo_tools: { only: 'all' } }, upstream: { tools: TOOLS } });
  const client = modern({ token: 'owner' });
  assert.deepEqual(schemas((await client.send('tools/list', {})).message.result.tools), LISTED);
  refused((await client.send('tools/call', { name: 'drop', arguments: { name: 'x' } })).message);
  await client.send('tools/call', { name: 'drop', arguments: { name: 'x', taskgate_reason: WHY } });
  const { id } = await admin.pending();
  const task = await admin.task(id);
  assert.deepEqual([task.reasonOfAgent, task.arguments], [WHY, { name: 'x' }]);
  await admin.approve(id);
  await admin.inState(id, 'completed');
  assert.deepEqual(upstream.calls.at(-1).rpc.params.arguments, { name: 'x' });
  const bridged = await connect(PLAIN);
  assert.deepEqual(schemas((await bridged.result('tools/list')).tools), LISTED);
  const execute = (args) => bridged.call('tools/call', { name: 'execute_tool', arguments: { server: 'up', tool: 'drop', args, timeout_ms: 0 } });
  refused(await execute({ name: 'y' }));
  await execute({ taskgate_reason: WHY, name: 'y' });
  const held = await admin.task((await admin.pending()).id);
  assert.deepEqual([held.reasonOfAgent, held.arguments], [WHY, { name: 'y' }]);
  const { structuredContent } = await bridged.result('tools/call', { name: 'list_tools', arguments: {} });
  assert.deepEqual(schemas(structuredContent.tools), LISTED);
});
