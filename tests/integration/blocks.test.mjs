// Blocks: a caller is stopped for a while, what waits of theirs ends, and what runs goes on.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { fastClock, fastClockMissing } from './lib/fast_clock.mjs';
import { workflow } from './lib/gateway.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const NAMES = ['alice', 'vic'];
const env = Object.fromEntries(NAMES.map((name) => [name.toUpperCase(), `token-of-${name}`]));
const tokens = [
  { name: 'alice-cli', person: 'alice', token_env: 'ALICE', roles: ['approver', 'viewer', 'auditor', 'caller'] },
  { name: 'vic-cli', person: 'vic', token_env: 'VIC', roles: ['viewer'] },
];
const admin = { people: [{ name: 'alice', groups: ['dba'] }, { name: 'vic' }], tokens };

const noSqlite = spawnSync('sqlite3', ['--version']).status === 0 ? false : 'sqlite3 is not here: apt-get install sqlite3';

async function stage(t, more = {}) {
  const all = await scene(t, {
    rules: [{ match: 'drop*', action: 'approve', execution: 'on_result' }],
    approval: workflow('10m', { grants: { max: '1h', max_calls: 20 }, ...more.workflow }),
    upstream: { tools: [tool('drop'), tool('read')] },
    env: more.env ?? env,
    config: { admin, ...more.config },
  });
  const [alice, vic] = NAMES.map((name) => all.admin.as(`token-of-${name}`));
  const block = (task, body = {}) => alice.post('/api/v1/blocks', { task, for: '1h', reason: 'it runs wild', ...body });
  const audit = async (...events) => (await alice.get('/api/v1/audit?limit=1000')).json.entries.filter(({ event }) => events.includes(event));
  const read = async (client) => (await client.call('tools/call', { name: 'read', arguments: {} })).error?.code ?? 'runs';
  const create = async (client, args = {}) => (await client.createTask('drop', args)).taskId;
  return { ...all, alice, vic, block, audit, read, create };
}

test('a block of an owner: calls are refused with the reason, what waits ends, what others do goes on; lifted, all is as before', async (t) => {
  const { admin, alice, vic, block, audit, read, create, connect, upstream } = await stage(t);
  const [client, other, plain] = [await connect({ token: 'A' }), await connect({ token: 'B' }), await connect({ token: 'A', capabilities: {} })];
  const [pending, approved, granted, foreign] = [await create(client), await create(client, { n: 1 }), await create(client, { n: 2 }), await create(other)];
  await admin.approve(approved);
  const given = await alice.post(`/api/v1/tasks/${granted}/approve`, { grant: { for: '1h', calls: 3 } });
  assert.equal(given.status, 200, given.text);
  const made = await block(pending);
  assert.equal(made.status, 201, made.text);
  const { id, createdAt, until: end, principal, ...rest } = made.json;
  assert.match(id, /^bl_/);
  assert.equal(Date.parse(end) - Date.parse(createdAt), 3_600_000);
  assert.equal(principal, (await admin.task(pending)).principal);
  assert.deepEqual(rest, { scope: 'owner', source: 'up', task: pending, reason: 'it runs wild', by: 'alice', endedAt: null, endedBy: null });
  const before = upstream.calls.length;
  const { error } = await client.call('tools/call', { name: 'read', arguments: {} });
  assert.deepEqual([error.code, error.data.error_type, error.data.reason, error.data.tool], [-32014, 'caller_blocked', 'it runs wild', 'read']);
  assert.equal((await client.error('tools/call', { name: 'drop', task: {} })).data.error_type, 'caller_blocked');
  const told = (await plain.call('tools/call', { name: 'read', arguments: {} })).result;
  assert.deepEqual([told.isError, told.content[0].text], [true, 'read was not run: this agent has been stopped: it runs wild. Tell the user.']);
  assert.equal(upstream.calls.length, before, 'nothing reached the server');
  assert.equal(await read(other), 'runs');
  const task = await admin.task(pending);
  assert.deepEqual([task.state, task.decidedBy, task.reason], ['rejected', 'alice', 'it runs wild']);
  assert.equal((await admin.task(approved)).state, 'cancelled');
  assert.equal((await admin.task(foreign)).state, 'pending');
  const [grant] = (await alice.get('/api/v1/grants')).json.grants;
  assert.deepEqual([grant.state, grant.endCause, grant.endedBy, grant.endReason], ['ended', 'blocked', 'alice', 'it runs wild']);
  assert.equal(sample(await admin.metrics(), 'thoughtgate_blocks_active'), 1);
  assert.deepEqual((await vic.get('/api/v1/blocks?state=active')).json, { blocks: [made.json], nextCursor: null });
  assert.equal((await vic.post(`/api/v1/blocks/${id}/lift`, {})).status, 403);
  const lifted = await alice.post(`/api/v1/blocks/${id}/lift`, {});
  assert.deepEqual([lifted.status, lifted.json.endedBy, typeof lifted.json.endedAt], [200, 'alice', 'string']);
  assert.equal((await alice.post(`/api/v1/blocks/${id}/lift`, {})).status, 409);
  assert.equal((await alice.post('/api/v1/blocks/bl_no/lift', {})).status, 404);
  assert.equal(await read(client), 'runs');
  assert.equal(sample(await admin.metrics(), 'thoughtgate_blocks_active'), 0);
  assert.deepEqual((await vic.get('/api/v1/blocks?state=active')).json.blocks, []);
  assert.equal((await vic.get('/api/v1/blocks')).json.blocks.length, 1);
  assert.deepEqual((await audit('block', 'unblock')).map(({ event, person, taskId, reason }) => [event, person, taskId, reason]), [['block', 'alice', pending, `${id}: owner; it runs wild`], ['unblock', 'alice', pending, `${id}: owner`]]);
});

test('blocks by client and by source survive kill -9, and hold for new sessions and for calls of operators', async (t) => {
  const { gateway, alice, block, read, create, connect } = await stage(t);
  const [bot, again, cat] = [await connect({ name: 'bot' }), await connect({ name: 'bot' }), await connect({ name: 'cat' })];
  const [mine, same, others] = [await create(bot), await create(again), await create(cat)];
  const { json: first } = await block(mine, { scope: 'client', for: '30d' });
  const state = async (id) => (await alice.task(id)).state;
  assert.deepEqual([await state(mine), await state(same), await state(others)], ['rejected', 'rejected', 'pending']);
  assert.deepEqual([await read(bot), await read(again), await read(await connect({ name: 'bot' })), await read(cat)], [-32014, -32014, -32014, 'runs']);
  await gateway.kill9();
  await gateway.launch();
  assert.deepEqual([await read(await connect({ name: 'bot' })), await read(await connect({ name: 'cat' }))], [-32014, 'runs']);
  const { status } = await block(others, { scope: 'source' });
  assert.equal(status, 201);
  assert.equal(await state(others), 'rejected');
  assert.equal(await read(await connect({ name: 'dog' })), -32014);
  assert.equal((await alice.post('/api/v1/calls', { tool: 'read', arguments: {} })).status, 403);
  assert.equal((await alice.post(`/api/v1/blocks/${first.id}/lift`, { reason: 'mended' })).json.endedBy, 'alice');
  assert.equal(await read(await connect({ name: 'bot' })), -32014, 'by its source');
});

test('a block of an owner survives kill -9, and holds for execute_tool, for other sessions and for tasks that are asked for', async (t) => {
  const { gateway, block, create, connect, read, upstream } = await stage(t, { config: { pseudo_tools: { only: 'all' } } });
  const client = await connect({ token: 'A' });
  const { status, json } = await block(await create(client), { reason: '\u0441top \u202eit\u200b' });
  assert.equal(status, 201);
  await gateway.kill9();
  await gateway.launch();
  const [again, other] = [await connect({ token: 'A', name: 'another name' }), await connect({ token: 'B' })];
  const before = upstream.calls.length;
  const calls = [{ name: 'read', arguments: {} }, { name: 'drop', arguments: {}, task: {} }, { name: 'execute_tool', arguments: { server: 'up', tool: 'read', args: {}, timeout_ms: 0 } }, { name: 'no_such_tool', arguments: {} }];
  for (const params of calls) {
    const { error } = await again.call('tools/call', params);
    assert.deepEqual([error?.code, error?.data.error_type, error?.data.reason], [-32014, 'caller_blocked', '\u0441top \\u202eit\\u200b'], params.name);
  }
  assert.equal(upstream.calls.length, before);
  assert.equal(json.reason, '\u0441top \u202eit\u200b', 'the API has it as it was written');
  assert.equal(await read(other), 'runs');
});

test('a block that is no good is refused with its reason, whatever its body; nothing is stopped', async (t) => {
  const { alice, vic, block, create, connect, read, admin } = await stage(t);
  const client = await connect();
  const task = await create(client);
  for (const [body, status, code] of [
    [{ reason: undefined }, 422, 'reason_required'],
    [{ reason: ' \n\u200b' }, 422, 'reason_required'],
    [{ reason: null }, 422, 'reason_required'],
    [{ reason: 'r'.repeat(2001) }, 400, 'invalid_request'],
    [{ reason: 'a\u0000b' }, 400, 'invalid_request'],
    [{ for: '59s' }, 400, 'invalid_request'],
    [{ for: '30d 1s' }, 400, 'invalid_request'],
    [{ for: 3600 }, 400, 'invalid_request'],
    [{ for: undefined }, 400, 'invalid_request'],
    [{ scope: 'everybody' }, 400, 'invalid_request'],
    [{ scope: 'own\u0435r' }, 400, 'invalid_request'],
    [{ scope: null }, 400, 'invalid_request'],
    [{ task: 7 }, 400, 'invalid_request'],
    [{ task: undefined }, 400, 'invalid_request'],
    [{ owner: 'x' }, 400, 'invalid_request'],
    [{ task: 'tg_no' }, 404, 'not_found'],
    [{ task: `${task}\u0000` }, 400, 'invalid_request'],
  ]) {
    const answer = await block(task, body);
    assert.deepEqual([answer.status, answer.json.error.code], [status, code], JSON.stringify(body));
  }
  assert.equal((await alice.post('/api/v1/blocks', '[]')).status, 400);
  assert.equal((await alice.post('/api/v1/blocks', '{"task":')).status, 400);
  assert.equal((await vic.post('/api/v1/blocks', { task, for: '1h', reason: 'r' })).status, 403);
  for (const query of ['state=ended', 'limit=0', 'cursor=zz', 'x=1']) assert.equal((await alice.get(`/api/v1/blocks?${query}`)).status, 400, query);
  assert.deepEqual([(await admin.task(task)).state, await read(client)], ['pending', 'runs']);
  const { status, json } = await block(task, { reason: 'no\u001b[2J\u202e x', for: '1m' });
  assert.equal(status, 201);
  assert.equal((await client.error('tools/call', { name: 'read' })).data.reason, 'no\\u001b[2J\\u202e x');
  assert.equal(json.reason, 'no\u001b[2J\u202e x');
});

test('taskgate block, blocks list and blocks lift do the same at a terminal', async (t) => {
  const { gateway, create, connect, read } = await stage(t);
  const client = await connect();
  const task = await create(client);
  const cli = (...args) => gateway.cli(args, { env: { TASKGATE_TOKEN: 'token-of-alice' } });
  assert.equal((await cli('block', task, '--for', '1h')).code, 2);
  assert.equal((await cli('block', task, '--for', '1s', '--reason', 'r')).code, 2);
  assert.equal((await cli('block', 'tg_0000000000', '--for', '1h', '--reason', 'r')).code, 4);
  const made = await cli('block', task, '--for', '2h', '--reason', 'a\u202eb', '--scope', 'client');
  assert.equal(made.code, 0, made.stderr);
  const id = /^(bl_\S+)$/m.exec(made.stdout)[1];
  assert.match(made.stdout, /scope +client\n[^]*reason +a\\u202eb\n/);
  assert.equal(await read(client), -32014);
  assert.match((await cli('blocks', 'list')).stdout, new RegExp(`^${id}$`, 'm'));
  assert.equal(JSON.parse((await cli('blocks', 'list', '--json')).stdout).blocks[0].id, id);
  assert.equal((await cli('blocks', 'lift', id)).code, 0);
  assert.equal((await cli('blocks', 'lift', id)).code, 5);
  assert.equal((await cli('blocks', 'list')).stdout, 'No blocks.\n');
  assert.match((await cli('blocks', 'list', '--all')).stdout, /lifted +\S+Z by alice/);
  assert.equal(await read(client), 'runs');
});

test('a block ends by its time: calls go on, and the trail says so', { skip: fastClockMissing }, async (t) => {
  const { alice, block, audit, read, create, connect } = await stage(t, { env: { ...env, ...fastClock(60) } });
  const client = await connect();
  const { json } = await block(await create(client), { for: '1m' });
  assert.equal(await read(client), -32014);
  await until(async () => (await read(client)) === 'runs', 'the block has ended', { every: 100 });
  await until(async () => (await audit('block_expired')).some(({ reason, person = '' }) => reason === `${json.id}: owner` && person === ''), 'the row of its end', { every: 100 });
  assert.equal((await alice.post(`/api/v1/blocks/${json.id}/lift`, {})).status, 409);
});

test('at most 1,000 are in force: the next one is 429, and has room once one is lifted', { skip: noSqlite }, async (t) => {
  const { alice, block, create, connect, vic, gateway, read } = await stage(t);
  const task = await create(await connect());
  const { json } = await block(task);
  await gateway.stop();
  const rows = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
    INSERT INTO block (id, task_id, scope, owner, source, client, principal, reason, person, created_ms, until_ms)
    SELECT 'bl_' || i, task_id, 'client', owner, source, 'c' || i, principal, reason, person, created_ms, until_ms FROM n, block`;
  execFileSync('sqlite3', [gateway.storePath, rows]);
  await gateway.launch();
  const refused = await block(task);
  assert.deepEqual([refused.status, refused.json.error.code], [429, 'rate_limited']);
  assert.deepEqual([await read(await connect({ name: 'c999' })), await read(await connect({ name: 'c1000' }))], [-32014, 'runs']);
  const first = (await vic.get('/api/v1/blocks?state=active&limit=100')).json;
  const second = (await vic.get(`/api/v1/blocks?state=active&limit=100&cursor=${first.nextCursor}`)).json;
  assert.equal(new Set([...first.blocks, ...second.blocks].map(({ id }) => id)).size, 200);
  assert.equal((await alice.post(`/api/v1/blocks/${json.id}/lift`, {})).status, 200);
  assert.equal((await block(task)).status, 201);
});

test('a client of the modern era is blocked, too: plain calls, held ones, and their rounds', async (t) => {
  const { modern, admin: approver, upstream } = await modernScene(t, { rules: [{ match: 'drop*', action: 'approve' }], approval: workflow('10m'), upstream: { tools: [tool('drop'), tool('read')] } });
  const client = modern({ capabilities: {}, token: 'A' });
  const call = async (name, more) => (await client.send('tools/call', { name, arguments: {}, ...more })).message;
  assert.ok((await call('read')).result.content);
  const { taskId } = await modern({ token: 'A' }).create('drop');
  const made = await approver.post('/api/v1/blocks', { task: taskId, for: '1h', reason: 'it runs wild' });
  assert.equal(made.status, 201, made.text);
  const before = upstream.calls.length;
  for (const name of ['read', 'drop']) {
    const { error } = await call(name);
    assert.deepEqual([error.code, error.data.error_type, error.data.reason], [-32014, 'caller_blocked', 'it runs wild'], name);
  }
  assert.equal(upstream.calls.length, before, 'nothing reached the server');
  assert.ok((await modern({ capabilities: {}, token: 'B' }).send('tools/call', { name: 'read', arguments: {} })).message.result.content);
});

test('a block lets what runs go on: the result comes to its caller', async (t) => {
  const { admin, block, create, connect, read, upstream } = await stage(t);
  let release;
  upstream.handlers['tools/call'] = ({ reply }) => void (release = () => reply.result({ content: [{ type: 'text', text: 'dropped' }] }));
  const client = await connect({ token: 'A' });
  const taskId = await create(client);
  await admin.approve(taskId);
  const fetched = client.call('tasks/result', { taskId });
  await upstream.received('tools/call');
  assert.equal((await block(taskId)).status, 201);
  assert.equal(await read(client), -32014);
  assert.equal((await admin.task(taskId)).state, 'executing');
  release();
  assert.equal((await fetched).result.content[0].text, 'dropped');
  assert.equal((await admin.task(taskId)).state, 'completed');
});
