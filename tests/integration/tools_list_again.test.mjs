// A list that the gateway has rewritten before is not read again: it must be what reading it again would give.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { connectedRaw } from './lib/client.mjs';
import { startGateway } from './lib/gateway.mjs';
import { PLAIN } from './lib/promotion.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, startUpstream, tool } from './lib/upstream.mjs';

const RULES = [['delete_*', 'approve'], ['drop_*', 'deny'], ['read_*', 'forward']];
const TOOLS = ['delete_user', 'drop_table', 'read_file', 'other'].map((name) => tool(name));
const names = (result) => result.tools.map(({ name }) => name);
const supports = (result) => Object.fromEntries(result.tools.map((x) => [x.name, x.execution.taskSupport]));

for (const [kind, write] of [
  ['the id first', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`],
  ['the id last', (id, result) => `{"result":${result},"jsonrpc":"2.0","id":${id}}`],
  ['blanks around the id', (id, result) => `{ "id2" : 5 , "id":  ${id} , "result": ${result} }\n`],
  ['another id in the result, before', (id, result) => `{"result":{"id":5,${result.slice(1)},"jsonrpc":"2.0","id":${id}}`],
  ['another id in the result, behind', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result.slice(0, -1)},"id":5}}`],
]) {
  for (const replyAs of ['json', 'sse']) {
    test(`each request gets the list under its own id: ${kind} (${replyAs})`, async (t) => {
      const { upstream, connect } = await scene(t, { upstream: { tools: TOOLS }, rules: RULES });
      upstream.handlers['tools/list'] = ({ reply, rpc }) => {
        const text = write(JSON.stringify(rpc.id), JSON.stringify({ tools: TOOLS }));
        if (replyAs === 'json') return reply.http(200, { 'content-type': 'application/json' }, text);
        return reply.http(200, { 'content-type': 'text/event-stream' }, `data: ${text.trimEnd()}\n\n`);
      };
      const client = await connect();
      for (const id of [1, 5, 6, 5, 'five', 'é"\\', 12345678, 5, '5']) {
        const { message } = await client.send('tools/list', {}, { id });
        assert.deepEqual(message.id, id);
        assert.deepEqual(supports(message.result), { delete_user: 'required', drop_table: 'forbidden', read_file: 'forbidden', other: 'forbidden' });
        assert.equal(message.result.id, kind.startsWith('another') ? 5 : undefined);
      }
    });
  }
}

/** Upstream lists to each token what it is told to; `lists` has the tools by token. */
const byToken = (upstream, lists) =>
  (upstream.handlers['tools/list'] = ({ recorded, reply }) => reply.result({ tools: lists[recorded.headers.authorization?.slice('Bearer '.length)] ?? [] }));

test('each owner gets what the server says to them, however often and in whatever turn', async (t) => {
  const { upstream, connect } = await scene(t, { upstream: { tools: [], capabilities: { tools: {}, tasks: TASKS } } });
  const secret = { A: [tool('shared'), tool('of_anna')], B: [tool('shared'), tool('of_bert')] }; // as long as one another
  byToken(upstream, secret);
  const clients = { A: await connect({ token: 'A' }), B: await connect({ token: 'B' }), C: await connect({ token: 'C' }) };
  for (let round = 0; round < 3; round++) {
    for (const token of ['A', 'B', 'C', 'B', 'A']) {
      const answer = await clients[token].send('tools/list');
      assert.deepEqual(names(answer.message.result), (secret[token] ?? []).map(({ name }) => name), token);
      if (token === 'C') assert.ok(!/of_anna|of_bert|shared/.test(answer.text), answer.text);
    }
  }
});

test('an owner who lists what another has listed is told it, too: kept for them alone, and known of them', async (t) => {
  const { upstream, admin, connect } = await scene(t, { upstream: { tools: [], capabilities: { tools: {}, tasks: TASKS } }, rules: RULES });
  byToken(upstream, { A: TOOLS, B: TOOLS, C: [] });
  const [a, b, c] = await Promise.all(['A', 'B', 'C'].map((token) => connect({ token })));
  for (const client of [a, a, b, c]) await client.result('tools/list');
  assert.equal(sample(await admin.metrics(), 'thoughtgate_tools_by_annotation', { annotation: 'required' }) ?? 0, 0, "the last whole list was C's, without any");
  await b.result('tools/list');
  assert.equal(sample(await admin.metrics(), 'thoughtgate_tools_by_annotation', { annotation: 'required' }), 1, "B's is whole as well");
  await upstream.stop();
  assert.deepEqual(names(await b.result('tools/list')), names({ tools: TOOLS }), 'from what B has fetched');
  assert.deepEqual(names(await c.result('tools/list')), []);
});

test("a list's word of a tool counts again when the list comes back", async (t) => {
  const { upstream, connect } = await scene(t, { upstream: { tools: [], capabilities: { tools: {}, tasks: TASKS } } });
  const client = await connect({ token: 'A' });
  for (const support of ['forbidden', 'required', 'forbidden', 'required', 'required', 'forbidden']) {
    byToken(upstream, { A: [tool('read', { support })] });
    await client.result('tools/list');
    const { task } = await client.createTask('read');
    assert.equal(task.taskId.startsWith('tg_'), support === 'forbidden', `the task is upstream's own when its list says so: ${support}`);
  }
});

test('each kind of client gets its own list of the same bytes, whoever was first', async (t) => {
  const schema = { type: 'object', properties: { x: { type: 'string' } } };
  const tools = [tool('delete_user', { outputSchema: schema }), tool('read_file', { outputSchema: schema })];
  const { upstream, connect } = await scene(t, { upstream: { tools, capabilities: { tools: {}, tasks: TASKS } }, rules: RULES });
  const clients = {
    tasks: await connect(),
    plain: await connect(PLAIN),
    old: await connect({ ...PLAIN, protocol: '2025-06-18' }),
  };
  upstream.capabilities = { tools: {} };
  clients.without = await connect(); // its server runs no tasks
  const seen = async (kind) => {
    const result = await clients[kind].result('tools/list');
    const [deleting, reading] = result.tools;
    return [deleting.execution?.taskSupport, 'outputSchema' in deleting, reading.execution?.taskSupport, 'outputSchema' in reading, result.tools.length > 2];
  };
  const expected = {
    tasks: ['required', true, 'optional', true, false],
    plain: ['optional', false, 'optional', true, true],
    old: [undefined, false, undefined, true, true],
    without: ['required', true, 'forbidden', true, false],
  };
  for (const kind of ['tasks', 'plain', 'old', 'without', 'without', 'old', 'plain', 'tasks', 'plain', 'old']) {
    assert.deepEqual(await seen(kind), expected[kind], kind);
  }
});

test("the gateway's own tools are named by what the owner was told, though another got the same bytes", async (t) => {
  const { upstream, connect } = await scene(t, { upstream: { tools: [], pageSize: 0 } });
  const [a, b] = [await connect({ token: 'A', ...PLAIN }), await connect({ token: 'B', ...PLAIN })];
  const own = (result) => names(result).find((name) => name.endsWith('list_tasks'));
  const list = async (client, tools) => {
    byToken(upstream, { A: tools, B: tools });
    const result = await client.result('tools/list');
    return own({ tools: result.tools.slice(tools.length) });
  };
  const [plain, taken] = [[tool('read')], [tool('list_tasks')]];
  assert.equal(await list(a, plain), 'list_tasks');
  assert.equal(await list(b, plain), 'list_tasks');
  const renamed = await list(a, taken);
  assert.notEqual(renamed, 'list_tasks', 'A’s server has a tool of that name');
  assert.equal(await list(a, plain), renamed, 'which it may still run');
  assert.equal(await list(b, plain), 'list_tasks', 'B was never told of it');
  assert.equal(await list(a, plain), renamed);
});

test('after a reload the same bytes are judged anew: hidden, announced otherwise, and back', async (t) => {
  const { gateway, connect } = await scene(t, { upstream: { tools: TOOLS }, rules: RULES });
  const client = await connect();
  const stream = await client.listen();
  const first = supports(await client.result('tools/list'));
  const install = async (configuration) => {
    gateway.writeConfig(configuration);
    gateway.hangUp();
    await stream.message((m) => m.method === 'notifications/tools/list_changed', 'tools/list_changed');
    return supports(await client.result('tools/list'));
  };
  assert.deepEqual(supports(await client.result('tools/list')), first);
  assert.deepEqual(await install({ rules: [['read_*', 'approve']], expose: { mode: 'blocklist', tools: ['other'] } }), { delete_user: 'forbidden', drop_table: 'forbidden', read_file: 'required' });
  assert.deepEqual(await install({ rules: RULES, expose: undefined }), first);
});

test('a list that changes is another one: a byte within, the order, and the first again', async (t) => {
  const { upstream, connect } = await scene(t, { upstream: { tools: TOOLS }, rules: RULES });
  const client = await connect();
  const other = TOOLS.map((x) => (x.name === 'read_file' ? { ...x, name: 'drop_file' } : x)); // as long as before
  for (const tools of [TOOLS, other, TOOLS, [...TOOLS].reverse(), other, TOOLS, [...TOOLS].reverse()]) {
    upstream.tools = tools;
    const result = await client.result('tools/list');
    assert.deepEqual(names(result), names({ tools }));
    assert.equal(result.tools[0].execution.taskSupport, result.tools[0].name === 'delete_user' ? 'required' : 'forbidden');
  }
});

test('pages are walked again by their cursors, and the whole is known again', async (t) => {
  const { upstream, admin, connect } = await scene(t, { upstream: { tools: TOOLS, pageSize: 2 }, rules: RULES });
  const client = await connect();
  const walk = async () => {
    const seen = [];
    for (let cursor; ;) {
      const page = await client.result('tools/list', cursor === undefined ? {} : { cursor });
      seen.push(names(page));
      if ((cursor = page.nextCursor) === undefined) return seen;
    }
  };
  const counts = async () => {
    const samples = await admin.metrics();
    return ['required', 'forbidden'].map((annotation) => sample(samples, 'thoughtgate_tools_by_annotation', { annotation }));
  };
  const pages = [['delete_user', 'drop_table'], ['read_file', 'other']];
  for (let round = 0; round < 3; round++) {
    assert.deepEqual(await walk(), pages);
    assert.deepEqual(await counts(), [1, 3]);
  }
  upstream.tools = TOOLS.slice(2);
  assert.deepEqual(await walk(), [['read_file', 'other']]);
  assert.deepEqual(await counts(), [0, 2]);
  upstream.tools = TOOLS;
  assert.deepEqual(await walk(), pages);
  assert.deepEqual(await counts(), [1, 3], 'from pages that were read before');
});

test('two sources that say the same are judged by their own rules', async (t) => {
  const upstream = await startUpstream(t, { tools: TOOLS });
  const rules = [{ match: 'delete_*', action: 'approve', source: 'one' }, { match: 'read_*', action: 'approve', source: 'two' }];
  const gateway = await startGateway(t, { upstream: { one: upstream.url, two: upstream.url }, rules });
  const clients = {};
  for (const id of ['one', 'two']) clients[id] = await connectedRaw(t, new URL(`/${id}/mcp`, gateway.url).href);
  for (const id of ['one', 'two', 'two', 'one']) {
    const { delete_user: deleting, read_file: reading } = supports(await clients[id].result('tools/list'));
    assert.deepEqual([deleting, reading], id === 'one' ? ['required', 'forbidden'] : ['forbidden', 'required'], id);
  }
});

test('a client that nothing can be kept for is not offered to wait, though others are for the same bytes', async (t) => {
  const { connect, raw } = await scene(t, { upstream: { tools: TOOLS, sessions: false }, rules: RULES });
  const clients = { known: await connect({ token: 'A', ...PLAIN }), unknown: raw(PLAIN) };
  for (const kind of ['known', 'unknown', 'known', 'known', 'unknown']) {
    assert.equal(names(await clients[kind].result('tools/list')).includes('await_activity'), kind === 'known', kind);
  }
});
