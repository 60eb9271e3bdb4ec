// The example server behind the gateway: its journal shows each executed call, byte for byte.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectedRaw } from './lib/client.mjs';
import { exampleMissing, startExample } from './lib/example_server.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { until } from './lib/wait.mjs';

const options = { skip: exampleMissing };

async function stage(t, rules = [['delete_*', 'approve'], ['slow', 'approve']]) {
  const server = await startExample(t);
  const gateway = await startGateway(t, { upstream: server.url, rules, approval: workflow('10m') });
  return { server, gateway, admin: gateway.admin, client: await connectedRaw(t, gateway.url, { token: 'A' }) };
}

test('the journal holds exactly the approved bytes, without task', options, async (t) => {
  const { server, admin, client } = await stage(t);
  const body = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"delete_database","arguments":{"name":"stag\\u0069ng","n":1.0},"task":{"ttl":60000}}}';
  const { taskId } = (await client.send('', undefined, { body, id: 9 })).message.result;
  assert.deepEqual(server.journal(), []);
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  const [line] = server.journal();
  assert.equal(line.replace(/"id":"tg:[0-9a-f-]{36}"/, '"id":9'), '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"delete_database","arguments":{"name":"stag\\u0069ng","n":1.0}}}');
  assert.equal(server.journal().length, 1);
});

test('a refused, rejected, cancelled or expired call leaves no line', options, async (t) => {
  const { server, admin, client } = await stage(t, [['delete_*', 'approve'], ['slow', 'deny']]);
  const call = { name: 'delete_database', arguments: { name: 'staging' } };
  await client.error('tools/call', call);
  await client.error('tools/call', { name: 'slow', arguments: { seconds: 1 } });
  const [rejected, cancelled, expired] = [await client.createTask(call.name, call.arguments), await client.createTask(call.name, call.arguments), await client.createTask(call.name, call.arguments, { ttl: 1000 })];
  await admin.reject(rejected.taskId);
  await client.result('tasks/cancel', { taskId: cancelled.taskId });
  await admin.inState(expired.taskId, 'expired');
  assert.deepEqual(server.journal(), []);
});

test('kill -9 in the middle of an execution, restart, everything asked again: the journal shows one execution', options, async (t) => {
  const { server, gateway, admin, client } = await stage(t);
  const { taskId } = await client.createTask('slow', { seconds: 2 });
  await admin.approve(taskId);
  await until(() => server.journal().length === 1, 'the execution to begin');
  await gateway.kill9();
  client.close();
  await gateway.launch();
  await admin.inState(taskId, 'failed');
  assert.match((await client.result('tasks/get', { taskId })).statusMessage, /outcome unknown/);
  for (let i = 0; i < 3; i++) {
    assert.equal((await client.error('tasks/result', { taskId })).code, -32603);
    assert.equal((await admin.decide('approve', taskId)).status, 409);
  }
  await gateway.restart();
  assert.equal((await client.error('tasks/result', { taskId })).data.error_type, 'outcome_unknown');
  assert.equal(server.journal().length, 1);
});

test('kill -9 at random moments around approvals: each task is executed at most once, and no answered result is lost', options, async (t) => {
  const { server, gateway, admin, client } = await stage(t);
  const completed = new Map();
  const tasks = [];
  for (let round = 0; round < 5; round++) {
    const ids = [];
    for (let i = 0; i < 4; i++) ids.push((await client.createTask('slow', { seconds: 0.05, marker: `r${round}i${i}` })).taskId);
    tasks.push(...ids);
    const decisions = ids.map((id) => admin.decide('approve', id).catch(() => {}));
    await decisions[round % ids.length];
    await gateway.kill9();
    await Promise.all(decisions);
    client.close();
    await gateway.launch();
    for (const id of ids) {
      if ((await admin.task(id)).state === 'completed') completed.set(id, (await client.result('tasks/result', { taskId: id })).content);
    }
  }
  const perMarker = new Map();
  for (const line of server.journal()) {
    const { marker } = JSON.parse(line).params.arguments;
    perMarker.set(marker, (perMarker.get(marker) ?? 0) + 1);
  }
  assert.deepEqual([...perMarker].filter(([, times]) => times > 1), []);
  for (const [taskId, content] of completed) assert.deepEqual((await client.result('tasks/result', { taskId })).content, content);
  assert.equal((await admin.list({ limit: 100 })).tasks.length, tasks.length);
});

test('a cancel during the execution stops the slow tool', options, async (t) => {
  const { server, admin, client } = await stage(t);
  const { taskId } = await client.createTask('slow', { seconds: 600 });
  await admin.approve(taskId);
  await until(() => server.journal().length === 1, 'the execution to begin');
  assert.equal((await client.result('tasks/cancel', { taskId })).status, 'cancelled');
  await until(() => /stopped/.test(server.child.stderr), 'the server to stop its work');
});

test('a client that leaves a forwarded slow call stops it', options, async (t) => {
  const { server, client } = await stage(t, []);
  const pending = client.post({ jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'slow', arguments: { seconds: 600 }, _meta: { progressToken: 1 } } });
  await until(() => server.journal().length === 1, 'the call to begin');
  pending.abort();
  await pending.then((response) => response.abort(), () => {});
  await until(() => /stopped/.test(server.child.stderr), 'the server to stop its work');
});
