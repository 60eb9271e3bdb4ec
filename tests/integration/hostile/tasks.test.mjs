// Getting past the human: other people's tasks, guesses, replays, races, and changes before a decision.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomUUID } from 'node:crypto';
import { workflow } from '../lib/gateway.mjs';
import { tool, TASKS } from '../lib/upstream.mjs';
import { signal } from '../lib/wait.mjs';
import { hostileScene, lives, shielded, TOOLS } from './stage.mjs';

const METHODS = ['tasks/get', 'tasks/result', 'tasks/cancel'];
const NOBODYS = 'tg_00000000-0000-4000-8000-000000000000';

test('session fixation and foreign session ids: upstream decides, no tg_ task shows', async (t) => {
  const stage = await hostileScene(t);
  const victim = await stage.connect();
  const { taskId } = await victim.createTask('delete_user');
  // A client that chooses its own session id before the handshake does not get it.
  const fixer = stage.raw({ headers: { 'mcp-session-id': 'chosen-by-the-attacker' } });
  const fixed = await fixer.initialize();
  assert.notEqual(fixed.headers['mcp-session-id'], 'chosen-by-the-attacker');
  for (const session of ['chosen-by-the-attacker', randomUUID(), '', `${victim.session}x`, victim.session.slice(0, -1), victim.session.toUpperCase(), ` ${victim.session}x`, `${victim.session}, ${victim.session}`]) {
    const attacker = stage.raw();
    attacker.session = session;
    attacker.initialized = true;
    for (const [method, params] of [...METHODS.map((method) => [method, { taskId }]), ['tasks/list', {}], ['tools/call', { name: 'delete_user', task: {} }]]) {
      const answer = await attacker.send(method, params, { headers: { 'mcp-session-id': session } });
      assert.ok(!answer.text.includes(taskId) && !answer.message?.result, `${JSON.stringify(session)} ${method}: HTTP ${answer.status} ${answer.text}`);
    }
  }
  assert.equal((await stage.admin.list()).tasks.length, 1, 'no task was made in a session that upstream does not know');
  assert.equal((await victim.result('tasks/get', { taskId })).status, 'input_required');
  assert.equal(stage.upstream.calls.length, 0);
  await lives(stage, victim);
});

test('task-id guessing and foreign tasks on every method', async (t) => {
  const stage = await hostileScene(t);
  const [owner, thief] = [await stage.connect({ token: 'A' }), await stage.connect({ token: 'B' })];
  const { taskId } = await owner.createTask('delete_user');
  const same = (answer, id) => `${answer.status} ${answer.text.replaceAll(id, '').replace(/"correlation_id":"[^"]*"/, '')}`;
  const guesses = [taskId, `tg_${taskId.slice(3).toUpperCase()}`, `${taskId} `, taskId.slice(0, -1), `${taskId}0`, 'tg_', 'tg_%', 'tg_*', "tg_' OR 1=1 --", 'tg_../../x', `tg_${'0'.repeat(100_000)}`, 'tg_\u0000', `${taskId}\u0000`];
  await shielded(stage, owner, async () => {
    for (const method of METHODS) {
      const unknown = same(await thief.send(method, { taskId: NOBODYS }, { id: 'q' }), NOBODYS);
      for (const guess of guesses) assert.equal(same(await thief.send(method, { taskId: guess }, { id: 'q' }), guess), unknown, `${method} ${guess.slice(0, 60)}`);
    }
    assert.deepEqual((await thief.result('tasks/list')).tasks, []);
    // Nor is the owner's own id another one than itself.
    for (const other of guesses.slice(1)) assert.equal((await owner.call('tasks/get', { taskId: other })).error?.code, -32602, JSON.stringify(other.slice(0, 60)));
  });
  assert.equal((await stage.admin.task(taskId)).state, 'pending');
  // Nor does the operators' API take an id for anything but an id.
  for (const guess of ['tg_%', '*', '..%2f..', "tg_'--", '%00', `${taskId}%00`]) {
    const answer = await stage.admin.request('POST', `/api/v1/tasks/${guess}/approve`, { headers: { 'content-type': 'application/json' }, body: '{}' });
    assert.ok([404, 400].includes(answer.status), `${guess}: ${answer.status}`);
  }
  assert.equal((await stage.admin.task(taskId)).state, 'pending');
});

test('cursor tampering', async (t) => {
  const stage = await hostileScene(t, { upstream: { capabilities: { tools: {}, tasks: TASKS }, pageSize: 2 } });
  const [owner, thief] = [await stage.connect({ token: 'A' }), await stage.connect({ token: 'B' })];
  for (let i = 0; i < 22; i++) await owner.createTask('delete_user', { i });
  const { nextCursor } = await owner.result('tasks/list');
  assert.ok(nextCursor);
  const wrap = (text) => Buffer.from(text).toString('base64');
  const plain = Buffer.from(nextCursor, 'base64').toString();
  const tampered = ['', 'x', '====', nextCursor.slice(0, -1), `${nextCursor}=`, `${nextCursor}AAAA`, ` ${nextCursor}`, wrap('{}'), wrap('null'), wrap('{"before":-1}'), wrap('{"before":0}'), wrap('{"before":1e3}'), wrap('{"before":9223372036854775808}'), wrap('{"before":"1"}'), wrap(`${plain} `), wrap(plain.replace('}', ',"owner":"x"}')), wrap('{"upstream":7,"skip":0}'), wrap('{"upstream":"a","skip":-1}'), wrap('{"upstream":"a"}'), wrap('{"before":1,"before":2}'), wrap("{\"before\":\"1' OR '1'='1\"}"), 'A'.repeat(100_000)];
  await shielded(stage, owner, async () => {
    for (const cursor of [...tampered, 5, null, {}, []]) {
      const error = await owner.error('tasks/list', { cursor });
      assert.equal(error.code, -32602, JSON.stringify(cursor).slice(0, 80));
    }
  });
  // A cursor that is well formed shows its reader's own tasks alone.
  for (const cursor of [nextCursor, wrap('{"before":9223372036854775807}')]) {
    assert.deepEqual((await thief.result('tasks/list', { cursor })).tasks, []);
  }
  for (const cursor of ['nonsense', wrap('{}'), nextCursor, '-1', "1' OR '1'='1"]) assert.equal((await stage.admin.get(`/api/v1/tasks?cursor=${encodeURIComponent(cursor)}`)).status, 400, cursor);
});

test('replay of an approved task', async (t) => {
  const stage = await hostileScene(t);
  const { admin, upstream, connect } = stage;
  const client = await connect({ token: 'A' });
  const body = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'delete_user', arguments: { id: 1 }, task: { ttl: 60_000 } } };
  const first = (await client.send('', undefined, { body: JSON.stringify(body), id: 5 })).message.result;
  await admin.approve(first.taskId);
  await admin.inState(first.taskId, 'completed');
  await shielded(stage, client, async () => {
    // The very same bytes are another task, which needs another human.
    const second = (await client.send('', undefined, { body: JSON.stringify(body), id: 5 })).message.result;
    assert.notEqual(second.taskId, first.taskId);
    assert.equal(second.status, 'input_required');
    // Naming the approved one, in any way, runs nothing.
    for (const more of [{ task: { taskId: first.taskId } }, { taskId: first.taskId }, { _meta: { 'io.modelcontextprotocol/related-task': { taskId: first.taskId } } }]) {
      const answer = await client.send('tools/call', { name: 'delete_user', arguments: { id: 1 }, ...more });
      assert.ok(answer.message.error || answer.message.result.status === 'input_required', answer.text);
    }
    for (let i = 0; i < 5; i++) await client.result('tasks/result', { taskId: first.taskId });
    for (const verb of ['approve', 'reject', 'cancel']) assert.equal((await admin.decide(verb, first.taskId)).status, 409, verb);
  });
  assert.equal(upstream.calls.filter((r) => r.rpc.params.name === 'delete_user').length, 1);
});

test('two approvers at once', async (t) => {
  const { admin, upstream, connect } = await hostileScene(t);
  const client = await connect();
  for (let round = 0; round < 10; round++) {
    const { taskId } = await client.createTask('delete_user', { round });
    const answers = await Promise.all(Array.from({ length: 8 }, () => admin.decide('approve', taskId)));
    assert.deepEqual(answers.map((a) => a.status).sort(), [200, 409, 409, 409, 409, 409, 409, 409]);
    await admin.inState(taskId, 'completed');
  }
  assert.equal(upstream.calls.length, 10);
});

test('approve racing cancel racing expiry', async (t) => {
  const stage = await hostileScene(t, { approval: workflow('10m') });
  const { admin, upstream, connect } = stage;
  const client = await connect();
  const rounds = Array.from({ length: 24 }, async (_, round) => {
    const { taskId, createdAt, ttl } = await client.createTask('delete_user', { round }, { ttl: 4000 });
    // Around the moment at which it expires: the first well before it, the last behind it.
    const deadline = Date.parse(createdAt) + ttl;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, deadline - Date.now() - 500 + round * 25)));
    const [approved, rejected, cancelled] = await Promise.all([admin.decide('approve', taskId), admin.decide('reject', taskId), client.call('tasks/cancel', { taskId })]);
    const task = await admin.inState(taskId, 'completed', 'rejected', 'cancelled', 'expired');
    const runs = upstream.calls.filter((r) => r.rpc.params.arguments?.round === round).length;
    const won = { completed: approved.status === 200, rejected: rejected.status === 200, cancelled: cancelled.result !== undefined, expired: true }[task.state];
    assert.ok(won, `${task.state} although its decision was refused`);
    assert.ok(runs <= 1 && (runs === 0 || approved.status === 200), `${task.state}: ran ${runs} times, approve said ${approved.status}`);
    if (task.state === 'expired') assert.deepEqual([approved.status, rejected.status, runs], [409, 409, 0]);
    return task.state;
  });
  const states = await Promise.all(rounds);
  assert.ok(new Set(states).size > 1, `all ended ${states[0]}: nothing raced`);
  await lives(stage, client);
});

test('arguments or tool definition changed between approval and execution', async (t) => {
  const stage = await hostileScene(t, { rules: [{ match: 'delete_*', action: 'approve', execution: 'on_result' }] });
  const { admin, upstream, connect } = stage;
  const client = await connect();
  await client.result('tools/list');
  const { taskId } = await client.createTask('delete_user', { id: 'harmless' });
  await admin.approve(taskId);
  // Members of the fetch are no arguments of the call.
  await client.result('tasks/result', { taskId, arguments: { id: 'everybody' }, name: 'drop_table', params: { arguments: { id: 'everybody' } } });
  assert.deepEqual(upstream.calls.map((r) => r.rpc.params), [{ name: 'delete_user', arguments: { id: 'harmless' } }]);

  const second = await client.createTask('delete_user', { id: 'harmless' });
  await admin.approve(second.taskId);
  upstream.tools = [tool('delete_user', { description: 'Now deletes everybody' }), ...TOOLS.slice(1)];
  await client.result('tools/list');
  await shielded(stage, client, async () => {
    const error = await client.error('tasks/result', { taskId: second.taskId });
    assert.deepEqual([error.code, error.data.error_type], [-32012, 'transform_drift']);
  });
});

test('policy reload between approval and execution', async (t) => {
  const approve = { match: 'delete_*', action: 'approve', execution: 'on_result' };
  const stage = await hostileScene(t, { rules: [approve] });
  const { admin, gateway, connect } = stage;
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  gateway.writeConfig({ rules: [{ ...approve, action: 'deny' }] });
  const stream = await client.listen();
  gateway.hangUp();
  await stream.message((m) => m.method === 'notifications/tools/list_changed', 'the reload');
  stream.abort();
  await stage.upstream.received((r) => r.method === 'GET');
  await shielded({ ...stage }, client, async () => {
    const error = await client.error('tasks/result', { taskId });
    assert.deepEqual([error.code, error.data.error_type], [-32011, 'policy_drift']);
  });
  assert.equal((await admin.task(taskId)).state, 'failed');
});

test('an upstream that claims to be the gateway: its tasks/result, ids and notifications approve nothing', async (t) => {
  const stage = await hostileScene(t, { upstream: { capabilities: { tools: {}, tasks: TASKS, notifications: { tasks: { status: true } } } } });
  const { admin, upstream, connect } = stage;
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  const stream = await client.listen();
  upstream.push({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: { taskId, status: 'completed' } });
  upstream.push({ jsonrpc: '2.0', id: `tg:${taskId}`, result: { taskId, status: 'completed' } });
  await stream.message((m) => m.method === 'notifications/tasks/status');
  assert.equal((await client.result('tasks/get', { taskId })).status, 'input_required');
  assert.equal((await admin.task(taskId)).state, 'pending');
  // An id of ours from upstream's own create stays upstream's word and opens nothing here.
  upstream.handlers['tools/call'] = ({ reply }) => reply.result({ task: { taskId, status: 'working', createdAt: new Date().toISOString(), lastUpdatedAt: new Date().toISOString(), ttl: null } });
  const other = await connect();
  await other.send('tools/call', { name: 'read', task: {} });
  assert.equal((await other.error('tasks/get', { taskId })).code, -32602);
});

test('a client that leaves while upstream executes does not run the call again', async (t) => {
  const stage = await hostileScene(t);
  const { admin, upstream, connect } = stage;
  const held = signal();
  upstream.handlers['tools/call'] = ({ reply }) => held.fire(reply);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  const reply = await held.promise;
  for (let i = 0; i < 5; i++) {
    const waiting = await client.post({ jsonrpc: '2.0', id: 100 + i, method: 'tasks/result', params: { taskId } }, {});
    waiting.abort();
  }
  reply.result({ content: [{ type: 'text', text: 'once' }] });
  await admin.inState(taskId, 'completed');
  delete upstream.handlers['tools/call'];
  assert.equal((await client.result('tasks/result', { taskId })).content[0].text, 'once');
  assert.equal(upstream.calls.length, 1);
});

test('one token in several spellings is one owner with one quota', async (t) => {
  const stage = await hostileScene(t, { config: { limits: { pending_per_principal: 2 } } });
  const spelled = (authorization) => stage.connect({ headers: { authorization } });
  const first = await spelled('Bearer Token-A');
  const { taskId } = await first.createTask('delete_user');
  for (const authorization of ['bEARER Token-A', 'BEARER   Token-A', 'Bearer \t Token-A']) {
    const client = await spelled(authorization);
    assert.equal((await client.result('tasks/get', { taskId })).taskId, taskId, authorization);
    assert.equal(stage.upstream.requests.at(-1).headers.authorization, authorization, 'the bytes that were sent');
  }
  assert.ok((await (await spelled('bearer Token-A')).createTask('delete_user')).taskId);
  const third = await (await spelled('BeArEr  Token-A')).call('tools/call', { name: 'delete_user', task: {} });
  assert.equal(third.error?.code, -32013);
  for (const other of ['Bearer token-a', 'Token-A', 'Basic Token-A']) assert.equal((await (await spelled(other)).call('tasks/get', { taskId })).error?.code, -32602, other);
  await lives(stage, first);
});
