// The resource of state diagrams: listed and read beside upstream's resources, and where upstream has none.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { assertSchema } from './lib/schema.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';

const SEED = 'emceepee://diagrams';
const OWN = 'taskgate://diagrams';
const THEIRS = ['file:///a', 'file:///b'].map((uri) => ({ uri, name: uri }));

/** An upstream with resources, or without. */
const withResources = { tools: [tool('read')], capabilities: { tools: {}, resources: { subscribe: true } }, handlers: {} };
const without = { tools: [tool('read')], capabilities: { tools: {} } };
const plain = { capabilities: {} };

function serveResources(upstream, resources = THEIRS) {
  upstream.handlers['resources/list'] = ({ reply, params }) => (params.cursor === undefined ? reply.result({ resources: resources.slice(0, 1), nextCursor: 'more', _meta: { kept: 1 } }) : reply.result({ resources: resources.slice(1) }));
  upstream.handlers['resources/templates/list'] = ({ reply }) => reply.result({ resourceTemplates: [{ uriTemplate: 'file:///{path}', name: 'files' }] });
  upstream.handlers['resources/read'] = ({ reply, params }) => reply.result({ contents: [{ uri: params.uri, text: 'theirs' }] });
}

async function diagrams(client, uri) {
  const { contents } = await client.result('resources/read', { uri });
  assert.equal(contents.length, 1);
  assert.deepEqual([contents[0].uri, contents[0].mimeType], [uri, 'application/json']);
  return JSON.parse(contents[0].text);
}

test("the seed's five diagrams are its own, literally", async (t) => {
  const { connect } = await scene(t, { upstream: withResources, config: { pseudo_tools: { only: 'all' } } });
  const client = await connect(plain);
  const seed = await diagrams(client, SEED);
  assert.deepEqual(seed.diagrams.map((d) => d.name), ['proxy_task_states', 'pending_elicitation_states', 'pending_sampling_states', 'tool_call_lifecycle', 'entity_relationships']);
  // Of the fixed example, without the white space between its tokens.
  assert.equal(createHash('sha256').update(JSON.stringify(seed)).digest('hex'), 'c98352032bb3e3707b20f297682bd1d597e9443ccf43f32017de54d1835a53bd');
});

test('our own come from the table of moves', async (t) => {
  const { connect } = await scene(t, { upstream: withResources });
  const own = await diagrams(await connect(plain), OWN);
  assert.deepEqual(own.diagrams.map((d) => d.name), ['task_states', 'task_statuses']);
  for (const diagram of own.diagrams) {
    assert.ok(diagram.description.length > 20);
    assert.deepEqual(Object.keys(diagram), ['name', 'description', 'mermaid']);
  }
  assert.equal(
    own.diagrams[0].mermaid,
    `stateDiagram-v2
    [*] --> pending : a rule says approve
    [*] --> approved : a rule says forward, and the call asks for a task
    [*] --> executing : a forwarded call outlasts its client's patience
    pending --> approved : approve
    pending --> failed : fail
    pending --> cancelled : cancel
    pending --> rejected : reject
    pending --> expired : expire
    approved --> executing : execute
    approved --> failed : fail
    approved --> cancelled : cancel
    approved --> expired : expire
    executing --> approved : give_back
    executing --> completed : complete
    executing --> failed : fail
    executing --> cancelled : cancel
    executing --> expired : expire
    completed --> [*]
    failed --> [*]
    cancelled --> [*]
    rejected --> [*]
    expired --> [*]`,
  );
  assert.equal(
    own.diagrams[1].mermaid,
    `stateDiagram-v2
    [*] --> input_required : a rule says approve
    [*] --> working : a rule says forward, and the call asks for a task
    [*] --> working : a forwarded call outlasts its client's patience
    input_required --> working : approve
    input_required --> failed : fail
    input_required --> cancelled : cancel
    input_required --> failed : reject
    input_required --> failed : expire
    working --> failed : fail
    working --> cancelled : cancel
    working --> failed : expire
    working --> completed : complete
    completed --> [*]
    failed --> [*]
    cancelled --> [*]`,
  );
});

for (const replyAs of ['json', 'sse']) {
  test(`they are listed behind upstream's, on the first page alone (${replyAs})`, async (t) => {
    const { upstream, connect } = await scene(t, { upstream: { ...withResources, replyAs } });
    serveResources(upstream);
    const client = await connect(plain);
    const first = await client.result('resources/list');
    assertSchema(t, 'ListResourcesResult', first);
    assert.deepEqual(first.resources.map((r) => r.uri), [THEIRS[0].uri, SEED, OWN]);
    assert.deepEqual([first.resources[0], first.nextCursor, first._meta], [THEIRS[0], 'more', { kept: 1 }]);
    for (const ours of first.resources.slice(1)) {
      assert.equal(ours.mimeType, 'application/json');
      assert.ok(ours.name && ours.description);
    }
    assert.deepEqual((await client.result('resources/list', { cursor: 'more' })).resources, [THEIRS[1]]);
    assert.equal((await client.result('resources/templates/list')).resourceTemplates.length, 1);
  });
}

test('reading ours never asks upstream; reading theirs does', async (t) => {
  const { upstream, connect } = await scene(t, { upstream: withResources });
  serveResources(upstream);
  const client = await connect(plain);
  const answer = await client.send('resources/read', { uri: SEED });
  assertSchema(t, 'ReadResourceResult', answer.message.result);
  await diagrams(client, OWN);
  for (const uri of [SEED, OWN]) {
    assert.deepEqual(await client.result('resources/subscribe', { uri }), {});
    assert.deepEqual(await client.result('resources/unsubscribe', { uri }), {});
  }
  for (const method of ['resources/read', 'resources/subscribe', 'resources/unsubscribe']) assert.equal(upstream.of(method).length, 0, method);
  upstream.handlers['resources/unsubscribe'] = ({ reply }) => reply.result({});
  assert.deepEqual(await client.result('resources/unsubscribe', { uri: 'file:///a' }), {});
  assert.equal(upstream.of('resources/unsubscribe').length, 1);
  assert.equal((await client.result('resources/read', { uri: 'file:///a' })).contents[0].text, 'theirs');
  assert.equal(upstream.of('resources/read').length, 1);
  assert.equal((await client.result('resources/read', { uri: 'emceepee://other' })).contents[0].text, 'theirs');
});

test('rules and expose do not hide them', async (t) => {
  const { upstream, connect } = await scene(t, { defaultAction: 'deny', expose: { mode: 'allowlist', tools: ['read'] }, upstream: withResources });
  serveResources(upstream);
  const client = await connect(plain);
  assert.deepEqual((await client.result('resources/list')).resources.map((r) => r.uri), [SEED, OWN]);
  assert.equal((await diagrams(client, SEED)).diagrams.length, 5);
  assert.equal((await client.error('resources/read', { uri: 'file:///a' })).code, -32015);
});

test("upstream's resource of the same URI gives way", async (t) => {
  const { upstream, connect } = await scene(t, { upstream: withResources });
  serveResources(upstream, [{ uri: SEED, name: 'theirs' }, { uri: OWN, name: 'theirs' }]);
  const client = await connect(plain);
  assert.deepEqual((await client.result('resources/list')).resources.map((r) => [r.uri, r.name]), [[SEED, 'diagrams'], [OWN, 'taskgate-diagrams']]);
  assert.deepEqual((await client.result('resources/list', { cursor: 'more' })).resources, []);
});

test('when upstream fails they are still beside what was kept', async (t) => {
  const { upstream, connect } = await scene(t, { upstream: withResources });
  serveResources(upstream);
  const client = await connect(plain);
  const before = await client.result('resources/list');
  upstream.onHttp = (recorded, reply) => {
    reply.http(503);
    return true;
  };
  assert.deepEqual(await client.result('resources/list'), before);
  assert.equal((await diagrams(client, SEED)).diagrams.length, 5);
});

for (const replyAs of ['json', 'sse']) {
  test(`if upstream has no resources, the capability and both lists are the gateway's (${replyAs})`, async (t) => {
    const { gateway, raw } = await scene(t, { upstream: { ...without, replyAs } });
    const client = raw(plain);
    const { capabilities } = await client.connect();
    assert.deepEqual(capabilities.resources, {});
    assert.deepEqual(capabilities.tools, {});
    const check = async () => {
      const list = await client.result('resources/list');
      assertSchema(t, 'ListResourcesResult', list);
      assert.deepEqual(list.resources.map((r) => r.uri), [SEED, OWN]);
      assert.deepEqual(await client.result('resources/templates/list'), { resourceTemplates: [] });
      assert.equal((await diagrams(client, SEED)).diagrams.length, 5);
      const unknown = await client.error('resources/read', { uri: 'file:///nothing' });
      assert.deepEqual([unknown.code, unknown.message, unknown.data.error_type, unknown.data.details], [-32002, 'Resource not found', 'resource_not_found', 'file:///nothing']);
    };
    await check();
    await gateway.restart();
    await gateway.logged(/^Upstream capabilities: /);
    await check();
  });
}

test('another error of upstream comes down as it is', async (t) => {
  const { upstream, connect } = await scene(t, { upstream: without });
  for (const method of ['resources/list', 'resources/templates/list', 'resources/read']) upstream.handlers[method] = ({ reply }) => reply.error(-32603, 'out of order', { x: 1 });
  const client = await connect(plain);
  for (const [method, params] of [['resources/list'], ['resources/templates/list'], ['resources/read', { uri: 'file:///a' }]]) {
    assert.deepEqual(await client.error(method, params), { code: -32603, message: 'out of order', data: { x: 1 } }, method);
  }
});

test('an upstream that has resources without saying so keeps them', async (t) => {
  const { upstream, connect } = await scene(t, { upstream: without });
  serveResources(upstream);
  const client = await connect(plain);
  assert.deepEqual((await client.result('resources/list')).resources.map((r) => r.uri), [THEIRS[0].uri, SEED, OWN]);
  assert.equal((await client.result('resources/templates/list')).resourceTemplates.length, 1);
  assert.equal((await client.result('resources/read', { uri: 'file:///a' })).contents[0].text, 'theirs');
});

test('a client that declared tasks sees upstream as it is', async (t) => {
  const { upstream, raw } = await scene(t, { upstream: without });
  const client = raw({ capabilities: { tasks: {} } });
  assert.equal((await client.connect()).capabilities.resources, undefined);
  for (const [method, params] of [['resources/list'], ['resources/templates/list'], ['resources/read', { uri: SEED }]]) {
    assert.equal((await client.error(method, params)).code, -32601, method);
  }
  serveResources(upstream);
  assert.deepEqual((await client.result('resources/list')).resources, [THEIRS[0]]);
  for (const method of ['resources/subscribe', 'resources/unsubscribe']) assert.equal((await client.error(method, { uri: OWN })).code, -32601, method);
});

test('the official client lists and reads them', async (t) => {
  const { sdk } = await scene(t, { upstream: without });
  const client = await sdk();
  assert.ok(client.getServerCapabilities().resources);
  const { resources } = await client.listResources();
  assert.deepEqual(resources.map((r) => r.uri), [SEED, OWN]);
  for (const { uri } of resources) assert.ok(JSON.parse((await client.readResource({ uri })).contents[0].text).diagrams.length > 0);
});
