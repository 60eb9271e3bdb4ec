// The official client 2 before the gateway, the official server 2 behind it: everything between them in each of the client's modes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { exampleMissing, startExample } from './lib/example_server.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { MODES, modernSdkClient, taskSession } from './lib/modern_sdk.mjs';
import { startSdk2Server } from './lib/sdk2_server.mjs';
import { until, within } from './lib/wait.mjs';

/** A client of 2025-11-25 that knows no tasks is held like an older one only if the operator says so. */
/** The error of a refused call: thrown for a modern client, in the result of a legacy one. */
const refusal = (calling) => calling.then((result) => result._meta['taskgate/error'], (error) => error);
const HELD = { clients: [{ match: '*', tasks: 'no' }] };

/** The SDK's server, the gateway before it, and clients of the given mode. The server learns each call's era. */
async function stage(t, { mode, server: serverOptions = {}, wait = '45s', rounds = 2, timeout = '10m', ...more } = {}) {
  const server = await startSdk2Server(t, { legacy: mode === 'modern' ? 'reject' : 'stateless', ...serverOptions });
  const gateway = await startGateway(t, {
    upstream: server.url,
    rules: [['delete_*', 'approve']],
    approval: workflow(timeout),
    config: { pseudo_tools: { promote: 'wait', only: 'all', wait, rounds }, ...(mode === 'legacy' ? HELD : {}) },
    ...more,
  });
  return { server, gateway, admin: gateway.admin, connect: (options) => modernSdkClient(t, gateway.url, { mode, headers: { authorization: 'Bearer owner' }, ...options }) };
}

const textOf = ({ content }) => content[0].text;
const eraOf = (mode) => (mode === 'legacy' ? 'legacy' : 'modern');

for (const mode of Object.keys(MODES)) {
  test(`${mode} client, server 2: it connects, lists, calls, and hears of progress`, async (t) => {
    const { server, connect } = await stage(t, { mode });
    const client = await connect();
    const { tools } = await client.listTools();
    const names = tools.map(({ name }) => name);
    const theirs = ['read', 'delete_user', 'count', 'ask_name', 'wait'];
    assert.deepEqual(names.slice(0, theirs.length), theirs);
    const own = names.slice(theirs.length).sort();
    if (mode === 'legacy') assert.ok(own.includes('execute_tool') && own.includes('get_task_result'));
    else assert.deepEqual(own, ['await_activity', 'cancel_task', 'get_task_result'], 'what a client without tasks needs for the id that it is told');
    const progress = [];
    const result = await client.callTool({ name: 'count', arguments: { to: 3 } }, { onprogress: (event) => progress.push([event.progress, event.total]) });
    assert.equal(textOf(result), 'counted to 3');
    assert.deepEqual(progress, [[1, 3], [2, 3], [3, 3]]);
    assert.deepEqual(server.calls, [{ tool: 'count', arguments: { to: 3 }, era: eraOf(mode) }]);
  });

  test(`${mode} client, server 2: an approved call runs once, a rejected one never`, async (t) => {
    const { server, admin, connect } = await stage(t, { mode });
    const client = await connect();
    const approved = client.callTool({ name: 'delete_user', arguments: { id: 7 } });
    await admin.approve((await admin.pending()).id);
    assert.equal(textOf(await approved), 'deleted 7');
    const rejected = refusal(client.callTool({ name: 'delete_user', arguments: { id: 8 } }));
    await admin.reject((await admin.pending()).id, 'not today');
    const error = await rejected;
    assert.equal(error.code, -32007);
    assert.match(error.message, /Rejected by: admin/);
    assert.deepEqual(server.calls, [{ tool: 'delete_user', arguments: { id: 7 }, era: eraOf(mode) }]);
  });

  test(`${mode} client, server 2: nobody decides in time`, async (t) => {
    const { server, connect } = await stage(t, { mode, timeout: '5s' });
    const client = await connect();
    assert.equal((await refusal(client.callTool({ name: 'delete_user', arguments: { id: 7 } }))).code, -32008);
    assert.deepEqual(server.calls, []);
  });
}

for (const mode of ['modern', 'auto']) {
  test(`${mode} client, server 2: its questions are answered, or declined`, async (t) => {
    const { server, connect } = await stage(t, { mode });
    const answers = [{ action: 'accept', content: { name: 'Ada' } }, { action: 'decline' }];
    const asked = [];
    const client = await connect({
      capabilities: { elicitation: { form: {} } },
      prepare: (it) => it.setRequestHandler('elicitation/create', ({ params }) => (asked.push(params.message), answers.shift())),
    });
    assert.equal(textOf(await client.callTool({ name: 'ask_name', arguments: {} })), 'Hello Ada');
    assert.equal(textOf(await client.callTool({ name: 'ask_name', arguments: {} })), 'they said decline');
    assert.deepEqual(asked, ['Who are you?', 'Who are you?']);
    assert.equal(server.calls.length, 4, 'each round is a call');
  });

  test(`${mode} client, server 2: a cancelled call is cancelled at the server`, async (t) => {
    const { server, connect } = await stage(t, { mode });
    const client = await connect();
    const aborter = new AbortController();
    const call = client.callTool({ name: 'wait', arguments: {} }, { signal: aborter.signal });
    await until(() => server.events.includes('began'), 'the call at the server');
    aborter.abort();
    await assert.rejects(call);
    await until(() => server.events.includes('cancelled'), 'the end of the call at the server');
    assert.equal(textOf(await client.callTool({ name: 'read', arguments: {} })), 'did read');
  });

  test(`${mode} client, server 2: an approval that takes longer than the client's own limit`, async (t) => {
    const { admin, server, connect } = await stage(t, { mode, wait: '1s', rounds: 9 });
    const client = await connect();
    const limit = 4000;
    const begin = performance.now();
    const call = client.callTool({ name: 'delete_user', arguments: { id: 7 } }, { timeout: limit });
    const { id } = await admin.pending();
    // Each round begins a new limit of the client: after four of them the first one would have been over.
    await until(() => performance.now() - begin > limit + 200, 'the time of the first limit');
    await admin.approve(id);
    assert.equal(textOf(await within(call, 'the outcome', 20_000)), 'deleted 7');
    assert.equal(server.calls.length, 1);
  });
}

for (const tasks of [false, true]) {
  const which = tasks ? 'server 2 with tasks' : 'server 2';
  const open = async (t, options) => {
    const { gateway, ...rest } = await stage(t, { mode: 'modern', server: { tasks }, ...options });
    return { gateway, ...rest, session: await taskSession(t, gateway.url, { capabilities: { elicitation: { form: {} } } }) };
  };
  const outcome = async (execution) => resultFromTaskOutcome((await within(execution.settle(), 'the task to end', 30_000)).outcome);

  test(`45. ext-tasks, ${which}: approved, rejected, and a plain call`, async (t) => {
    const { session, admin, server } = await open(t);
    const approved = await session.callTool('delete_user', { id: 7 });
    await admin.approve((await admin.pending()).id);
    assert.equal(textOf(await outcome(approved)), 'deleted 7');
    const rejected = await session.callTool('delete_user', { id: 8 });
    await admin.reject((await admin.pending()).id, 'not today');
    await assert.rejects(outcome(rejected), /Rejected by: admin/);
    assert.equal(textOf(await outcome(await session.callTool('read', {}))), 'did read');
    assert.deepEqual(server.calls.map(({ tool }) => tool), ['delete_user', 'read']);
  });

  test(`45. ext-tasks, ${which}: the gateway is killed and restarted in the middle`, async (t) => {
    const { gateway, session, admin, server } = await open(t);
    const execution = await session.callTool('delete_user', { id: 7 });
    const { id } = await admin.pending();
    await gateway.kill9();
    await gateway.launch();
    await gateway.admin.approve(id);
    assert.equal(textOf(await outcome(execution)), 'deleted 7');
    assert.equal(server.calls.length, 1);
  });
}

test('45. ext-tasks: nobody decides in time', async (t) => {
  const { gateway, server } = await stage(t, { mode: 'modern', timeout: '5s' });
  const session = await taskSession(t, gateway.url);
  const { outcome } = await (await session.callTool('delete_user', { id: 7 })).settle();
  assert.throws(() => resultFromTaskOutcome(outcome), (error) => /-?32008|expired|not decided|in time/i.test(`${JSON.stringify(error)} ${error.message}`));
  assert.deepEqual(server.calls, []);
});

test('a modern client that is not of tasks goes on after a restart of the gateway', async (t) => {
  const { gateway, admin, server, connect } = await stage(t, { mode: 'modern', wait: '400ms', rounds: 9 });
  const client = await connect();
  assert.equal(textOf(await client.callTool({ name: 'read', arguments: {} })), 'did read');
  await gateway.restart();
  assert.equal(textOf(await client.callTool({ name: 'read', arguments: {} })), 'did read');
  const call = client.callTool({ name: 'delete_user', arguments: { id: 7 } });
  await admin.approve((await admin.pending()).id);
  assert.equal(textOf(await call), 'deleted 7');
  assert.equal(server.calls.length, 3);
});

test('legacy client, a server that is modern alone: it lists, calls, hears of progress, is asked, cancels, and has approvals', async (t) => {
  const { server, admin, connect } = await stage(t, { mode: 'legacy', server: { legacy: 'reject' } });
  const client = await connect({
    capabilities: { elicitation: {} },
    prepare: (it) => it.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } })),
  });
  assert.ok((await client.listTools()).tools.some(({ name }) => name === 'delete_user'));
  const progress = [];
  const counted = await client.callTool({ name: 'count', arguments: { to: 3 } }, { onprogress: (event) => progress.push(event.progress) });
  assert.deepEqual([textOf(counted), progress], ['counted to 3', [1, 2, 3]]);
  assert.equal(textOf(await client.callTool({ name: 'ask_name', arguments: {} })), 'Hello Ada');
  const aborter = new AbortController();
  const waiting = client.callTool({ name: 'wait', arguments: {} }, { signal: aborter.signal });
  await until(() => server.events.includes('began'), 'the call at the server');
  aborter.abort();
  await assert.rejects(waiting);
  await until(() => server.events.includes('cancelled'), 'the end of the call at the server');
  const approved = client.callTool({ name: 'delete_user', arguments: { id: 7 } });
  await admin.approve((await admin.pending()).id);
  assert.equal(textOf(await approved), 'deleted 7');
  assert.deepEqual(new Set(server.calls.map(({ era }) => era)), new Set(['modern']));
});

test('auto client, a server that is legacy alone: it falls back, and goes on as a legacy one', { skip: exampleMissing }, async (t) => {
  const server = await startExample(t);
  const gateway = await startGateway(t, { upstream: server.url });
  const client = await modernSdkClient(t, gateway.url, { mode: 'auto' });
  assert.match(textOf(await client.callTool({ name: 'get_time', arguments: {} })), /^It is 20/);
  assert.equal(client.getNegotiatedProtocolVersion(), '2025-11-25');
});

test('modern client, a server that is legacy alone, bridge: off: it cannot connect', { skip: exampleMissing }, async (t) => {
  const server = await startExample(t);
  const gateway = await startGateway(t, { upstream: server.url, source: { bridge: 'off' } });
  await assert.rejects(modernSdkClient(t, gateway.url), (error) => /-?32601|not found|discover|version/i.test(`${error.code} ${error.message}`));
});
