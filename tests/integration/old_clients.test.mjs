// Clients that know no tasks: they see no `required`, and wait for a result instead of an error.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorOf, rawClient } from './lib/client.mjs';
import { workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const TOOLS = [tool('delete_user'), tool('drop_table'), tool('read')];
const stage = (t, more = {}) => scene(t, { rules: [['delete_*', 'approve'], ['drop_*', 'deny']], approval: workflow('10m'), upstream: { tools: TOOLS }, ...more });

const kinds = {
  'a client that negotiated 2025-06-18': [{ protocol: '2025-06-18', capabilities: {} }, {}],
  'a client of 2025-06-18 that upstream gives no session': [{ protocol: '2025-06-18', capabilities: {} }, { upstream: { tools: TOOLS, sessions: false } }],
  'a client of 2025-11-25 as it comes': [{ capabilities: {} }, {}],
  'a client of 2025-11-25 that declares elicitation and sampling': [{ capabilities: { elicitation: {}, sampling: {} } }, {}],
  'a client that declares tasks to a session of an older version': [{ protocol: '2025-06-18' }, {}],
  'a client that declares tasks, and that upstream gives no session': [{}, { upstream: { tools: TOOLS, sessions: false } }],
  'a client that the configuration marks tasks: no': [{ name: 'legacy-bot', capabilities: {} }, { config: { clients: [{ match: 'legacy-*', tasks: 'no' }] } }],
};

for (const [kind, [options, more]] of Object.entries(kinds)) {
  test(`${kind} sees no required tool`, async (t) => {
    const { connect } = await stage(t, more);
    const { tools } = await (await connect(options)).result('tools/list');
    assert.ok(tools.every((x) => x.execution?.taskSupport !== 'required' && x.annotations?.taskSupport !== 'required'));
    assert.deepEqual(tools.slice(0, 3).map((x) => x.name), ['delete_user', 'drop_table', 'read']);
  });

  test(`${kind} gets the result of an approved call`, async (t) => {
    const { upstream, admin, connect } = await stage(t, more);
    const client = await connect(options);
    const waiting = client.result('tools/call', { name: 'delete_user', arguments: { x: 1 } });
    const task = await admin.pending();
    assert.equal(upstream.calls.length, 0);
    await admin.approve(task.id);
    assert.deepEqual((await waiting).structuredContent, { tool: 'delete_user', arguments: { x: 1 } });
    assert.equal(upstream.calls.length, 1);
  });

  test(`${kind} hears of a rejection`, async (t) => {
    const { upstream, admin, connect } = await stage(t, more);
    const client = await connect(options);
    const waiting = client.call('tools/call', { name: 'delete_user' });
    await admin.reject((await admin.pending()).id, 'no');
    assert.equal(errorOf(await waiting).code, -32007);
    assert.equal(upstream.calls.length, 0);
  });
}

test('without a session, whatever the version says, the call of a client that is marked tasks: yes is refused', async (t) => {
  const { raw } = await stage(t, { upstream: { tools: TOOLS, sessions: false }, config: { clients: [{ match: '*', tasks: 'yes' }] } });
  const client = raw({ capabilities: {} });
  for (const version of [undefined, '2025-11-25', '1', '2025-06-1x', '2025-06-180']) {
    const error = await client.error('tools/call', { name: 'delete_user' }, { headers: { 'mcp-protocol-version': version } });
    assert.equal(error.code, -32009, version);
  }
  // This one has a meaning of its own: its requests say in their bodies what they are.
  const modern = await client.error('tools/call', { name: 'delete_user' }, { headers: { 'mcp-protocol-version': '2026-07-28' } });
  assert.equal(modern.code, -32602);
});

test('tasks: yes keeps TaskRequired for a client of any version', async (t) => {
  const { connect } = await stage(t, { config: { clients: [{ match: 'new-in-old-*', tasks: 'yes' }] } });
  const client = await connect({ name: 'new-in-old-clothes', protocol: '2025-06-18' });
  assert.equal((await client.error('tools/call', { name: 'delete_user' })).code, -32009);
});

test('a GET stream, a name, a list that was fetched, and a session that the gateway has not opened make no tasks client', async (t) => {
  const { upstream, admin, connect, raw } = await stage(t, { config: { pseudo_tools: { wait: '200ms' } } });
  const listening = await connect({ capabilities: { elicitation: {} }, name: 'tasks' });
  await listening.listen();
  const direct = rawClient(t, upstream.url); // it declares tasks to the server alone
  await direct.connect();
  const unknown = raw();
  Object.assign(unknown, { session: direct.session, initialized: true });
  for (const client of [listening, unknown]) {
    const { tools } = await client.result('tools/list');
    assert.equal(tools.find(({ name }) => name === 'delete_user').execution?.taskSupport, 'optional');
    const { structuredContent } = await client.result('tools/call', { name: 'delete_user', arguments: {} });
    assert.equal((await admin.task(structuredContent.proxy_task.task_id)).state, 'pending');
  }
});

test('a client that declares tasks to a session of an older version is served the tools', async (t) => {
  const { connect } = await stage(t);
  const names = async (options) => (await (await connect(options)).result('tools/list')).tools.map((x) => x.name);
  assert.ok((await names({ capabilities: { tasks: {} }, protocol: '2025-06-18' })).includes('get_task_result'));
  assert.equal((await names({ capabilities: { tasks: {} } })).includes('get_task_result'), false);
});
