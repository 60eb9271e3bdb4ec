// An approval covers the whole request: members beside the arguments are shown, and compared.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';

const stage = (t, more = {}) => scene(t, { rules: [['delete_*', 'approve']], approval: workflow('10m', more.approval), ...more.gateway, upstream: { tools: [tool('delete_user'), tool('read')], ...more.upstream } });

/** Calls the tool as a task with more params; returns the operators' task. */
async function asked(client, admin, params = {}, name = 'delete_user') {
  const { task, taskId } = await client.result('tools/call', { name, arguments: { id: 1 }, task: {}, ...params });
  return admin.task(taskId ?? task.taskId);
}

test('_meta and unknown params are shown to operators, and executed as they were shown', async (t) => {
  const { gateway, upstream, admin, connect } = await stage(t);
  const client = await connect();
  const task = await asked(client, admin, { _meta: { progressToken: 'p', tenant: 'prod' }, force: true, deep: { list: [1.50] } });
  assert.deepEqual([task.arguments, task.meta, task.otherParams], [{ id: 1 }, { tenant: 'prod' }, { force: true, deep: { list: [1.5] } }]);
  const { history, ...listed } = task; // a list has no histories
  assert.deepEqual([(await admin.list()).tasks[0], history.days], [listed, 30]);
  const shown = (await gateway.cli(['tasks', 'show', task.id])).stdout;
  assert.match(shown, /^Meta {7}\{\n {2}"tenant": "prod"\n\}$/m);
  assert.match(shown, /^Other {6}\{\n {2}"force": true,$/m);
  assert.ok(shown.includes(task.requestDigest));
  assert.deepEqual(JSON.parse((await gateway.cli(['tasks', 'show', task.id, '--json'])).stdout), task);
  await admin.approve(task.id);
  await admin.inState(task.id, 'completed');
  assert.deepEqual(upstream.calls[0].rpc.params, { name: 'delete_user', arguments: { id: 1 }, _meta: { progressToken: 'p', tenant: 'prod' }, force: true, deep: { list: [1.5] } });
});

test('a call with neither shows them empty', async (t) => {
  const { gateway, admin, connect } = await stage(t);
  const task = await asked(await connect(), admin, { _meta: { progressToken: 7 } });
  assert.deepEqual([task.meta, task.otherParams], [{}, {}]);
  assert.doesNotMatch((await gateway.cli(['tasks', 'show', task.id])).stdout, /^(Meta|Other)/m);
});

test('the other headers of the agent are shown, without the values of credentials, and go up as they were shown', async (t) => {
  const { gateway, upstream, admin, connect } = await stage(t, { gateway: { env: { KEY: 'static' }, source: { headers: { 'x-static': { env: 'KEY' } } } } });
  const sent = { 'x-tenant': 'prod', cookie: 'c=1', 'x-api-key': 'k-1', 'x-static': 'mine', traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'user-agent': 'agent' };
  const client = await connect({ token: 'A', headers: sent });
  const task = await asked(client, admin);
  assert.deepEqual(task.headers, { 'x-tenant': 'prod', cookie: null, 'x-api-key': null });
  const shown = (await gateway.cli(['tasks', 'show', task.id])).stdout;
  assert.match(shown, /^Headers {4}\{\n {2}"x-tenant": "prod",$/m);
  assert.doesNotMatch(JSON.stringify(task) + shown, /c=1|k-1|mine/);
  await admin.approve(task.id);
  await admin.inState(task.id, 'completed');
  const { headers } = upstream.calls[0];
  assert.deepEqual([headers['x-tenant'], headers.cookie, headers['x-api-key'], headers['x-static']], ['prod', 'c=1', 'k-1', 'static']);
});

test('redact_fields hide values of _meta and of other params, too', async (t) => {
  const { gateway, upstream, admin, connect } = await stage(t, { approval: { redact_fields: ['secret', 'user.password'] } });
  const task = await asked(await connect(), admin, { arguments: { secret: 'a1' }, _meta: { secret: 'b2', x: 1 }, user: { password: 'c3', name: 'd' } });
  assert.deepEqual(task.meta, { secret: '[REDACTED]', x: 1 });
  assert.deepEqual(task.otherParams, { user: { password: '[REDACTED]', name: 'd' } });
  assert.doesNotMatch((await gateway.cli(['tasks', 'show', task.id])).stdout, /a1"|b2"|c3"/);
  await admin.approve(task.id);
  await admin.inState(task.id, 'completed');
  assert.equal(upstream.calls[0].rpc.params.user.password, 'c3');
});

test('requestDigest changes with each part of the request, and with nothing else', async (t) => {
  const { admin, connect } = await stage(t, { upstream: { tools: [tool('delete_user'), tool('delete_site')] } });
  const client = await connect();
  const digest = async (...params) => (await asked(client, admin, ...params)).requestDigest;
  const plain = await digest();
  assert.match(plain, /^[0-9a-f]{64}$/);
  assert.equal(await digest(), plain);
  assert.equal(await digest({ _meta: { progressToken: 'p' } }), plain, 'the progress token changes nothing of the call');
  assert.equal(await digest({ task: { ttl: 5000 } }), plain);
  const others = [await digest({ arguments: { id: 2 } }), await digest({ _meta: { a: 1 } }), await digest({ a: 1 }), await digest({}, 'delete_site')];
  assert.equal(new Set([plain, ...others]).size, 5, 'each differs from all others');
  assert.equal(await digest({ _meta: { progressToken: 9, a: 1 } }), others[1]);
});

test('a call that becomes a task has nothing beside params: -32600', async (t) => {
  const { upstream, admin, connect } = await stage(t, { gateway: { rules: [['delete_*', 'approve'], { match: 'read', action: 'forward' }] }, upstream: { capabilities: { tools: {}, tasks: TASKS } } });
  const client = await connect();
  const call = (id, name, more, task = { task: {} }) => client.send('tools/call', undefined, { id, body: { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {}, ...task }, ...more } });
  for (const [id, name] of [[1, 'delete_user'], [2, 'read']]) {
    const { status, message } = await call(id, name, { tenant: 'prod' });
    assert.deepEqual([status, message.id, message.error.code, message.error.data.error_type], [200, id, -32600, 'invalid_request'], name);
    assert.match(message.error.data.details, /"tenant"/);
  }
  const long = 'k'.repeat(5000);
  assert.doesNotMatch((await call(3, 'delete_user', { [long]: 1 })).text, /kkkkk/);
  assert.equal((await admin.list()).tasks.length, 0);
  assert.ok((await call(4, 'read', { tenant: 'prod' }, {})).message.result, 'a plain call is forwarded as it is');
  assert.equal(upstream.calls[0].rpc.tenant, 'prod');
});

test('a plain call that is held is bound by the same rule', async (t) => {
  const { admin, connect } = await stage(t);
  const client = await connect({ capabilities: {}, protocol: '2025-06-18' });
  const refused = (await client.send('tools/call', undefined, { id: 5, body: { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'delete_user', arguments: {} }, tenant: 1 } })).message;
  assert.equal(refused.error.code, -32600);
  const held = client.send('tools/call', { name: 'delete_user', arguments: {}, _meta: { tenant: 'prod' } });
  const { id } = await admin.pending();
  assert.deepEqual((await admin.task(id)).meta, { tenant: 'prod' });
  await admin.approve(id);
  assert.ok((await held).message.result.content);
});
