// The lists: annotations from the rules, visibility, paging, caching, reloading.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { workflow } from './lib/gateway.mjs';
import { assertSchema } from './lib/schema.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const RULES = [['delete_*', 'approve'], ['drop_*', 'deny'], ['read_*', 'forward']];
const TOOLS = ['delete_user', 'drop_table', 'read_file', 'other'].map((name) => tool(name));

async function supports(client) {
  const { tools } = await client.result('tools/list');
  return Object.fromEntries(tools.map((x) => [x.name, x.execution.taskSupport]));
}

for (const [tasks, forward] of [[true, 'optional'], [false, 'forbidden']]) {
  for (const replyAs of ['json', 'sse']) {
    test(`annotation matrix, upstream ${tasks ? 'with' : 'without'} tasks (${replyAs}): both spellings, schema-valid`, async (t) => {
      const { connect } = await scene(t, { upstream: { tools: TOOLS, replyAs, capabilities: { tools: {}, ...(tasks ? { tasks: TASKS } : {}) } }, rules: RULES });
      const client = await connect();
      const result = await client.result('tools/list');
      const expected = { delete_user: 'required', drop_table: 'forbidden', read_file: forward, other: forward };
      assert.deepEqual(Object.fromEntries(result.tools.map((x) => [x.name, x.execution.taskSupport])), expected);
      assert.deepEqual(Object.fromEntries(result.tools.map((x) => [x.name, x.annotations.taskSupport])), expected);
      assertSchema(t, 'ListToolsResult', result);
    });
  }
}

const LATEST = { capabilities: {} };
const plainRules = [...RULES, { match: 'wipe_*', action: 'approve', require_tasks: true }];
const plainTools = [...TOOLS, tool('wipe_all'), tool('forced'), tool('own_required', { support: 'required' }), tool('own_forbidden', { support: 'forbidden' })];

for (const [kind, client, tasks, expected] of [
  ['a server with tasks', LATEST, true, { delete_user: 'optional', read_file: 'optional', other: 'optional', wipe_all: 'required', forced: 'optional', own_required: 'optional', own_forbidden: 'optional' }],
  ['a server without tasks', LATEST, false, { delete_user: 'optional', wipe_all: 'required', forced: 'optional' }],
  ['a version below 2025-11-25', { capabilities: {}, protocol: '2025-06-18' }, true, {}],
]) {
  test(`a plain client is shown execution.taskSupport alone, and optional in place of required: ${kind}`, async (t) => {
    const { connect } = await scene(t, { upstream: { tools: plainTools, capabilities: { tools: {}, ...(tasks ? { tasks: TASKS } : {}) } }, rules: plainRules, forceRequired: ['forced'], config: { pseudo_tools: { mode: 'never' } } });
    const result = await (await connect(client)).result('tools/list');
    const described = plainTools.map(({ execution, ...described }) => ({ ...described, ...(expected[described.name] ? { execution: { taskSupport: expected[described.name] } } : {}) }));
    assert.deepEqual(result.tools, described);
    assertSchema(t, 'ListToolsResult', result);
    for (const [i, { execution, ...less }] of result.tools.entries()) {
      assert.ok(JSON.stringify(result.tools[i]).length - JSON.stringify(less).length <= 45);
    }
  });
}

test('a plain client may send `task` to any tool, and gets a task', async (t) => {
  const { connect, upstream } = await scene(t, { upstream: { tools: TOOLS }, rules: RULES, approval: workflow('10m') });
  const client = await connect(LATEST);
  for (const [name, status] of [['delete_user', 'input_required'], ['read_file', 'working']]) {
    const { task } = await client.result('tools/call', { name, arguments: {}, task: {} });
    assert.match(task.taskId, /^tg_/);
    assert.equal(task.status, status, name);
  }
  await until(() => upstream.calls.length === 1, 'the call that nobody must approve');
});

test("upstream's explicit optional and required are kept for forward tools, forbidden and nothing become optional", async (t) => {
  const tools = ['optional', 'required', 'forbidden'].map((support) => tool(support, { support }));
  tools.push(tool('nothing'), tool('seed-required', { annotations: { taskSupport: 'required' } }));
  const { upstream, connect } = await scene(t, { upstream: { tools, capabilities: { tools: {}, tasks: TASKS } } });
  assert.deepEqual(await supports(await connect()), { optional: 'optional', required: 'required', forbidden: 'optional', nothing: 'optional', 'seed-required': 'required' });
  upstream.capabilities = { tools: {} };
  const { optional, required } = await supports(await connect());
  assert.deepEqual([optional, required], ['forbidden', 'forbidden'], 'without upstream tasks every forward tool is forbidden');
});

test('the rules win over what upstream says of itself', async (t) => {
  const tools = [tool('delete_user', { support: 'optional', annotations: { taskSupport: 'optional', destructiveHint: true } }), tool('drop_table', { support: 'required' })];
  const { connect } = await scene(t, { upstream: { tools, capabilities: { tools: {}, tasks: TASKS } }, rules: RULES });
  const client = await connect();
  const listed = (await client.result('tools/list')).tools;
  assert.deepEqual(listed[0].annotations, { taskSupport: 'required', destructiveHint: true });
  assert.deepEqual(listed[0].execution, { taskSupport: 'required' });
  assert.equal(listed[1].execution.taskSupport, 'forbidden');
});

test('force_required wins over every action, from the file and from the environment', async (t) => {
  const { connect } = await scene(t, { upstream: { tools: TOOLS }, rules: RULES, forceRequired: ['read_file'], env: { THOUGHTGATE_TASK_FORCE_REQUIRED: 'drop_table,other' } });
  assert.deepEqual(await supports(await connect()), { delete_user: 'required', drop_table: 'required', read_file: 'required', other: 'required' });
});

test('everything but the annotation of a tool is byte-true', async (t) => {
  const { upstream, connect } = await scene(t);
  const client = await connect();
  const definition = '"description":"caf\\u00e9 é","inputSchema":{ "type":"object","properties":{"n":{"default":1.0,"maximum":12345678901234567890}}},"_meta":{"a":[ 1 ]},"title":"T"';
  upstream.handlers['tools/list'] = ({ reply, id }) => reply.http(200, { 'content-type': 'application/json' }, `{"jsonrpc":"2.0","id":${id},"result":{"tools":[{"name":"read",${definition},"execution":{"vendor":7},"annotations":{"readOnlyHint":true}}],"_meta":{"v":2.50}}}`);
  const answer = await client.send('tools/list');
  assert.ok(answer.text.includes(definition), answer.text);
  assert.ok(answer.text.includes('"v":2.50'), answer.text);
  const listed = answer.message.result.tools[0];
  assert.deepEqual(listed.execution, { vendor: 7, taskSupport: 'forbidden' });
  assert.deepEqual(listed.annotations, { readOnlyHint: true, taskSupport: 'forbidden' });
});

test('expose hides tools, prompts and resources from the lists and from use; deny tools stay listed', async (t) => {
  for (const [expose, visible] of [
    [{ mode: 'allowlist', tools: ['read_*', 'drop_*', 'file:///pub/*'] }, ['drop_table', 'read_file']],
    [{ mode: 'blocklist', tools: ['delete_*', 'other', 'file:///priv/*'] }, ['drop_table', 'read_file']],
    [{ mode: 'all' }, ['delete_user', 'drop_table', 'read_file', 'other']],
  ]) {
    const { upstream, connect } = await scene(t, { upstream: { tools: TOOLS }, rules: RULES, expose });
    const client = await connect();
    assert.deepEqual((await client.result('tools/list')).tools.map((x) => x.name), visible, expose.mode);
    upstream.handlers['prompts/list'] = ({ reply }) => reply.result({ prompts: TOOLS.map(({ name }) => ({ name })), nextCursor: 'c' });
    assert.deepEqual(await client.result('prompts/list'), { prompts: visible.map((name) => ({ name })), nextCursor: 'c' });
    const resources = ['file:///pub/a', 'file:///priv/b'].map((uri) => ({ uri, name: uri }));
    upstream.handlers['resources/list'] = ({ reply }) => reply.result({ resources });
    assert.deepEqual((await client.result('resources/list')).resources, expose.mode === 'all' ? resources : resources.slice(0, 1));
    if (expose.mode === 'all') continue;
    for (const [method, params] of [['tools/call', { name: 'delete_user' }], ['tools/call', { name: 'delete_user', task: {} }], ['prompts/get', { name: 'other' }], ['resources/read', { uri: 'file:///priv/b' }], ['resources/subscribe', { uri: 'file:///priv/b' }]]) {
      const error = await client.error(method, params);
      assert.deepEqual([error.code, error.data.error_type], [-32015, 'tool_not_exposed'], method);
      assert.equal(upstream.of(method).length, 0, method);
    }
  }
});

test('a disabled source answers every governed call with -32015', async (t) => {
  const { upstream, raw } = await scene(t, { source: { enabled: false } });
  const error = await raw().error('tools/call', { name: 'read' });
  assert.equal(error.code, -32015);
  assert.equal(upstream.calls.length, 0);
});

test('prompts and resources pass the rules: deny and approve are both -32014 there', async (t) => {
  const { upstream, connect } = await scene(t, { rules: [['secret*', 'deny'], ['file:///etc/*', 'approve']] });
  const client = await connect();
  for (const [method, params] of [['prompts/get', { name: 'secret-plan' }], ['resources/read', { uri: 'file:///etc/passwd' }], ['resources/subscribe', { uri: 'file:///etc/passwd' }]]) {
    const error = await client.error(method, params);
    assert.deepEqual([error.code, error.data.error_type], [-32014, 'governance_rule_denied'], method);
    assert.equal(upstream.of(method).length, 0, method);
  }
  upstream.handlers['resources/read'] = ({ reply }) => reply.result({ contents: [] });
  assert.deepEqual(await client.result('resources/read', { uri: 'file:///home/x' }), { contents: [] });
});

test("clients page through upstream's pages; each page is annotated", async (t) => {
  const { upstream, connect } = await scene(t, { upstream: { tools: TOOLS, pageSize: 1 }, rules: RULES });
  const client = await connect();
  const seen = [];
  let cursor;
  do {
    const page = await client.result('tools/list', cursor === undefined ? {} : { cursor });
    assert.equal(page.tools.length, 1);
    seen.push([page.tools[0].name, page.tools[0].execution.taskSupport]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  assert.deepEqual(seen, [['delete_user', 'required'], ['drop_table', 'forbidden'], ['read_file', 'forbidden'], ['other', 'forbidden']]);
  assert.equal(upstream.of('tools/list', { own: false }).length, 4);
});

test('a page all of whose tools are hidden is empty, and paging goes on', async (t) => {
  const { connect } = await scene(t, { upstream: { tools: TOOLS, pageSize: 1 }, expose: { mode: 'allowlist', tools: ['other'] } });
  const client = await connect();
  const first = await client.result('tools/list');
  assert.deepEqual(first.tools, []);
  assert.equal(typeof first.nextCursor, 'string');
});

test('every page is fetched at start-up, with a session of its own that is ended or kept quiet', async (t) => {
  const tools = Array.from({ length: 7 }, (_, i) => tool(`tool_${i}`));
  const { upstream, gateway } = await scene(t, { upstream: { tools, pageSize: 2 }, rules: [['tool_3', 'approve']] });
  await upstream.received('tools/list', 4);
  await gateway.logged(/^Tool annotation: tool_6 -> forbidden \(yaml_action=forward, upstream_tasks=false\)$/);
  await gateway.logged(/^Tool annotation: tool_3 -> required \(yaml_action=approve\)$/);
  assert.ok(upstream.requests.every((r) => r.rpc?.id === undefined || /^tg:[0-9a-f-]{36}$/.test(r.rpc.id)), "the gateway's own ids are tg:<uuid>");
});

test('a cursor that comes again ends the fetch, and keeps the pages before it', async (t) => {
  const cursors = [];
  const list = ({ params, reply }) => {
    cursors.push(params?.cursor);
    const next = { undefined: 'one', one: 'two', two: 'one' }[params?.cursor];
    reply.result({ tools: [tool(`delete_${params?.cursor ?? 'first'}`)], nextCursor: next });
  };
  const { gateway, admin } = await scene(t, { upstream: { handlers: { 'tools/list': list } }, rules: RULES });
  await gateway.logged(/^Upstream's tools come with a cursor that came before: the list ends there$/);
  assert.deepEqual(cursors, [undefined, 'one', 'two']);
  await until(async () => sample(await admin.metrics(), 'thoughtgate_tools_by_annotation', { annotation: 'required' }) === 3, 'the tools of three pages counted');
});

test('THOUGHTGATE_TOOLS_MAX_PAGES limits the fetch', async (t) => {
  const tools = Array.from({ length: 9 }, (_, i) => tool(`tool_${i}`));
  const { upstream, gateway, admin } = await scene(t, { upstream: { tools, pageSize: 2 }, env: { THOUGHTGATE_TOOLS_MAX_PAGES: '2' } });
  await gateway.logged(/^Tool annotation: tool_3 /);
  await until(async () => sample(await admin.metrics(), 'thoughtgate_tools_by_annotation', { annotation: 'forbidden' }) === 4, 'four tools counted');
  assert.equal(upstream.of('tools/list').length, 2);
});

test('annotations are logged with their reason', async (t) => {
  const { gateway, connect } = await scene(t, { upstream: { tools: TOOLS, capabilities: { tools: {}, tasks: TASKS } }, rules: RULES });
  await (await connect()).result('tools/list');
  await gateway.logged(/^Tool annotation: delete_user -> required \(yaml_action=approve\)$/);
  await gateway.logged(/^Tool annotation: drop_table -> forbidden \(yaml_action=deny\)$/);
  await gateway.logged(/^Tool annotation: read_file -> optional \(yaml_action=forward, upstream_tasks=true\)$/);
});

test('tools_by_annotation counts visible tools, summed over sources', async (t) => {
  const { admin } = await scene(t, { upstream: { tools: TOOLS }, rules: RULES, expose: { mode: 'blocklist', tools: ['other'] } });
  await until(async () => {
    const samples = await admin.metrics();
    return ['required', 'forbidden', 'optional'].map((annotation) => sample(samples, 'thoughtgate_tools_by_annotation', { annotation }) ?? 0).join() === '1,2,0';
  }, 'one required and two forbidden tools');
});

for (const pageSize of [0, 2]) {
  test(`tools_by_annotation counts no tool that upstream lists no longer (${pageSize || 'all'} a page)`, async (t) => {
    const { upstream, admin, connect } = await scene(t, { upstream: { tools: [...TOOLS, tool('delete_all')], pageSize }, rules: RULES });
    const counts = async (expected) => {
      const samples = await admin.metrics();
      return ['required', 'forbidden'].map((annotation) => sample(samples, 'thoughtgate_tools_by_annotation', { annotation })).join() === expected;
    };
    await until(() => counts('2,3'), 'two required and three forbidden tools');
    const client = await connect();
    const list = async () => {
      for (let cursor; ;) {
        const page = await client.result('tools/list', cursor ? { cursor } : {});
        if (!(cursor = page.nextCursor)) return;
      }
    };
    upstream.tools = upstream.tools.filter(({ name }) => name !== 'delete_all' && name !== 'other');
    await list();
    assert.ok(await counts('1,2'), 'two are gone');
    upstream.tools.push(tool('other'));
    await list();
    assert.ok(await counts('1,3'), 'one is back');
  });
}

test('a new tool is annotated on demand, with a warning, and can be called at once', async (t) => {
  const { upstream, gateway, connect } = await scene(t, { rules: RULES });
  const client = await connect();
  await client.result('tools/list');
  upstream.tools.push(tool('delete_all'));
  assert.equal((await supports(client)).delete_all, 'required');
  const entry = await gateway.logged(/^New tool discovered: delete_all, annotation=required$/);
  assert.equal(entry.level.toLowerCase().startsWith('warn'), true);
  assert.ok(await client.result('tools/call', { name: 'never_listed' }));
  assert.equal((await client.error('tools/call', { name: 'delete_never_listed' })).code, -32009);
});

test('with upstream down the list comes from the cache, to the owner that fetched it only', async (t) => {
  const { upstream, connect } = await scene(t, { upstream: { tools: TOOLS }, rules: RULES });
  const owner = await connect({ token: 'owner' });
  const other = await connect({ token: 'other' });
  const before = await supports(owner);
  await upstream.stop();
  assert.deepEqual(await supports(owner), before);
  assert.equal((await other.error('tools/list')).code, -32000);
});

test('a 5xx is answered from the cache, a 4xx comes down as it is', async (t) => {
  const { upstream, connect } = await scene(t, { upstream: { tools: TOOLS } });
  const client = await connect();
  const before = await client.result('tools/list');
  upstream.handlers['tools/list'] = ({ reply }) => reply.http(503, {}, 'busy');
  assert.deepEqual((await client.result('tools/list')).tools, before.tools);
  upstream.handlers['tools/list'] = ({ reply }) => reply.http(401, {}, 'who');
  assert.equal((await client.send('tools/list')).status, 401);
});

for (const method of ['tools/list', 'resources/list', 'prompts/list']) {
  test(`a 5xx to a ${method} that was never fetched before comes down as it is`, async (t) => {
    const { upstream, connect } = await scene(t);
    const client = await connect();
    upstream.handlers[method] = ({ reply }) => reply.http(503, { 'content-type': 'text/plain', 'retry-after': '7' }, 'busy');
    const answer = await client.send(method);
    assert.deepEqual([answer.status, answer.text, answer.headers['retry-after']], [503, 'busy', '7']);
  });
}

test('an empty list is a valid state', async (t) => {
  const { connect } = await scene(t, { upstream: { tools: [] } });
  const result = await (await connect()).result('tools/list');
  assert.deepEqual(result.tools, []);
  assertSchema(t, 'ListToolsResult', result);
});

test('start-up goes on without upstream, and with an upstream that wants credentials', async (t) => {
  const { upstream, admin, connect } = await scene(t, { upstream: { authorize: (r) => (r.headers.authorization === 'Bearer good' ? 0 : 401) }, rules: RULES });
  assert.equal((await admin.get('/ready')).status, 200);
  const client = await connect({ token: 'good' });
  upstream.tools.push(tool('delete_user'));
  assert.equal((await supports(client)).delete_user, 'required');
});

test('after a reload the new rules are in force and open GET streams hear tools/list_changed', async (t) => {
  const { gateway, connect } = await scene(t, { upstream: { tools: TOOLS }, rules: RULES, approval: workflow('10m') });
  const client = await connect();
  const stream = await client.listen();
  assert.equal((await supports(client)).read_file, 'forbidden');
  gateway.writeConfig({ rules: [['read_*', 'approve']] });
  gateway.hangUp();
  await stream.message((m) => m.method === 'notifications/tools/list_changed', 'tools/list_changed');
  assert.deepEqual(await supports(client), { delete_user: 'forbidden', drop_table: 'forbidden', read_file: 'required', other: 'forbidden' });
});

test('a list that comes late, on a GET stream that goes on where the answer broke off, is filtered and announced like any other', async (t) => {
  const { upstream, connect } = await scene(t, { upstream: { tools: TOOLS }, rules: RULES, expose: { mode: 'blocklist', tools: ['other', 'file:///hidden', 'hidden'] } });
  const client = await connect();
  const results = {
    'tools/list': { tools: TOOLS },
    'resources/list': { resources: [{ uri: 'file:///shown', name: 'a' }, { uri: 'file:///hidden', name: 'b' }] },
    'prompts/list': { prompts: [{ name: 'shown' }, { name: 'hidden' }] },
    ping: { note: 'tools and resources', nested: { tools: ['other'] } },
  };
  for (const [method, result] of Object.entries(results)) {
    upstream.handlers[method] = ({ reply }) => {
      const up = reply.sse();
      up.raw('id: s1_0\nretry: 100\ndata:\n\n');
      up.end();
    };
    const down = await client.stream(method, {});
    await down.end();
    upstream.onHttp = (r, reply) => {
      if (r.method !== 'GET') return false;
      const up = reply.sse();
      up.event({ jsonrpc: '2.0', id: down.id, result }, { id: 's1_1' });
      up.end();
      return true;
    };
    const rest = await client.listen({ headers: { 'last-event-id': 's1_0' } });
    const answer = (await rest.next((e) => e.json?.id === down.id)).json.result;
    upstream.onHttp = null;
    if (answer.tools) {
      const theirs = answer.tools.filter((x) => TOOLS.some((mine) => mine.name === x.name));
      assert.deepEqual(theirs.map((x) => [x.name, x.execution.taskSupport]), [['delete_user', 'required'], ['drop_table', 'forbidden'], ['read_file', 'forbidden']]);
    }
    if (answer.resources) assert.deepEqual(answer.resources.map((x) => x.uri), ['file:///shown']);
    if (answer.prompts) assert.deepEqual(answer.prompts, [{ name: 'shown' }]);
    if (method === 'ping') assert.deepEqual(answer, result, 'all else as it came');
    assert.ok(!JSON.stringify(answer).includes(method === 'ping' ? 'no such word' : 'hidden'), method);
  }
});

test('a list in a batch, which no request asked for, does not go down unread', async (t) => {
  const { upstream, connect } = await scene(t, { upstream: { tools: TOOLS }, expose: { mode: 'blocklist', tools: ['other'] } });
  const client = await connect();
  upstream.handlers['tools/list'] = ({ reply, id }) => {
    const up = reply.sse();
    up.event([{ jsonrpc: '2.0', id, result: { tools: TOOLS } }]);
    up.end();
  };
  const answer = await client.send('tools/list');
  assert.equal(answer.message.error.code, -32002);
  assert.ok(!answer.text.includes('other'), answer.text);
});
