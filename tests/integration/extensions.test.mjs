// Extensions of the protocol: what clients see of those that a server offers, and methods that `methods.allow` lets pass.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { stage as bridgedStage } from './lib/bridged_stage.mjs';
import { run } from './lib/child.mjs';
import { BINARY, temporaryFolder } from './lib/gateway.mjs';
import { key } from './lib/modern_client.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { scene } from './lib/scene.mjs';
import { until } from './lib/wait.mjs';

const KNOWN = ['tasks', 'ui', 'skills', 'oauth-client-credentials', 'enterprise-managed-authorization'].map(key);
const settings = (names) => Object.fromEntries(names.map((name) => [name, { of: name }]));
const offered = (names = [...KNOWN, 'com.example/good', 'com.example/bad', 'other']) => ({ tools: {}, resources: {}, experimental: { odd: { n: 1 } }, extensions: settings(names) });
const hidden = (gateway) => gateway.admin.metrics().then((all) => Object.entries(all).filter(([name]) => name.includes('extensions_hidden_total')).map(([name, value]) => `${/source="(\w*)"/.exec(name)[1]} ${value}`));
const lines = (gateway) => gateway.logs.filter((line) => line.msg === 'An extension of the server is left out').map((line) => line.extension).sort();

test('initialize: the extensions of the table and those that are allowed stay as they are, deny wins, the others are left out and said once', async (t) => {
  const { gateway, raw } = await scene(t, { source: { extensions: { allow: ['com.example/*', 'other'], deny: ['com.*/bad', 'io.*/ui'] } }, upstream: { capabilities: offered([...KNOWN, 'com.example/good', 'com.example/bad', 'other', 'unknown']) } });
  for (let times = 1; times <= 2; times++) {
    const { capabilities } = await raw().connect();
    assert.deepEqual(capabilities.extensions, settings([...KNOWN.filter((name) => name !== key('ui')), 'com.example/good', 'other']));
    assert.deepEqual(capabilities.experimental, { odd: { n: 1 } });
    assert.deepEqual(await hidden(gateway), [`up ${3 * times}`]);
  }
  await until(() => lines(gateway).length === 3, 'a line for each');
  assert.deepEqual(lines(gateway), ['com.example/bad', key('ui'), 'unknown']);
});

test('server/discover: the same, also of the answer that was kept, and through the bridges', async (t) => {
  const { modern, gateway, upstream } = await modernScene(t, { upstream: { capabilities: offered() } });
  const client = modern({ token: 'a' });
  for (const stopped of [false, true]) {
    const { extensions } = (await client.discover()).capabilities;
    assert.deepEqual(extensions, { ...settings(KNOWN), [key('tasks')]: {} });
    if (!stopped) await upstream.stop();
  }
  await until(() => lines(gateway).length === 3, 'a line for each');
  assert.deepEqual(lines(gateway), ['com.example/bad', 'com.example/good', 'other']);

  const up = await modernScene(t, { source: { era: 'modern', bridge: 'legacy' }, upstream: { capabilities: offered() } });
  const { [key('tasks')]: _, ...others } = settings(KNOWN);
  assert.deepEqual((await up.raw().connect()).capabilities.extensions, others, 'a legacy client before a modern server');

  const down = await bridgedStage(t, { upstream: { capabilities: offered() } });
  const seen = (await down.modern().discover()).capabilities.extensions;
  const { [key('skills')]: __, ...bridged } = { ...settings(KNOWN), [key('tasks')]: {} };
  assert.deepEqual(seen, bridged, 'a modern client before a legacy server sees no skills');
});

test('extensions that are no object are left out, and names with escapes are read as they mean', async (t) => {
  const raw = (extensions) => ({ reply, id }) => reply.http(200, { 'content-type': 'application/json', 'mcp-session-id': 's' }, `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"extensions":${extensions}},"serverInfo":{"name":"s","version":"1"}}}`);
  const { upstream, raw: client } = await scene(t, { source: { extensions: { deny: ['io.modelcontextprotocol/ui'] } } });
  for (const [extensions, expected] of [['[1]', undefined], ['null', undefined], ['"io.modelcontextprotocol/skills"', undefined], ['{}', {}], ['{"io.modelcontextprotocol\\/ui":{},"\\u0069o.modelcontextprotocol/skills":{"a":[1,{}]}}', { [key('skills')]: { a: [1, {}] } }], ['{"":{},"\\u0000":1}', {}]]) {
    upstream.handlers.initialize = raw(extensions);
    assert.deepEqual((await client().connect()).capabilities.extensions, expected, extensions);
  }
});

// ---- digests of lists ----

const TAGS = { digest: 'sha256:1', tag: 't1' };
const RESULTS = {
  'tools/list': { tools: [{ name: 'read', inputSchema: { type: 'object', properties: { tag: { type: 'string' }, digest: {} } }, tag: 'inner' }] },
  'prompts/list': { prompts: [{ name: 'p', tag: 'inner' }] },
  'resources/list': { resources: [{ uri: 'a:b', name: 'r', digest: 'inner' }] },
  'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'a:{b}', name: 't', tag: 'inner' }] },
};
const KEPT = { ttlMs: 1000, cacheScope: 'private' };
const handlersOf = (more) => Object.fromEntries(Object.entries(RESULTS).map(([method, result]) => [method, ({ reply }) => reply.result({ ...TAGS, ...result, ...more })]));
const tagsOf = ({ digest, tag }) => [digest, tag];

test('a list that passes byte for byte keeps its digest and its tag; one that is changed, filtered or merged has none', async (t) => {
  const discover = ({ reply }) => reply.result({ resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: {}, ...TAGS, ...KEPT });
  const { modern, upstream } = await modernScene(t, { expose: { mode: 'blocklist', tools: ['hidden'] }, upstream: { handlers: { ...handlersOf({ resultType: 'complete', ...KEPT }), 'server/discover': discover } } });
  const client = modern();
  for (const [method, result] of Object.entries(RESULTS)) assert.deepEqual(await client.result(method), { ...TAGS, ...result, resultType: 'complete', ...KEPT }, `${method} is the server's`);
  assert.deepEqual(tagsOf(await client.discover()), [undefined, undefined], 'discover offers tasks');
  upstream.handlers['prompts/list'] = ({ reply }) => reply.result({ resultType: 'complete', prompts: [{ name: 'hidden' }], ...TAGS, ...KEPT });
  assert.deepEqual(await client.result('prompts/list'), { resultType: 'complete', prompts: [], ...KEPT });
  Object.assign(upstream.handlers, handlersOf({ resultType: 'complete', ttlMs: 99_000, cacheScope: 'public' }));
  for (const [method, result] of Object.entries(RESULTS)) assert.deepEqual(await client.result(method), { ...result, resultType: 'complete', ttlMs: 60_000, cacheScope: 'private' }, `${method} is changed`);
  const plain = modern({ capabilities: {} });
  assert.deepEqual(tagsOf(await plain.result('resources/list')), [undefined, undefined], "the gateway's own are merged");
});

test('the same of legacy clients, and no bridge leaves a digest or a tag', async (t) => {
  const capabilities = { tools: {}, prompts: {}, resources: {} };
  const legacy = await scene(t, { expose: { mode: 'blocklist', tools: ['hidden'] }, upstream: { capabilities, handlers: handlersOf({}) } });
  const client = await legacy.connect({ capabilities: { tasks: {} } });
  for (const method of ['prompts/list', 'resources/list', 'resources/templates/list']) assert.deepEqual(await client.result(method), { ...TAGS, ...RESULTS[method] }, method);
  assert.deepEqual(tagsOf(await client.result('tools/list')), [undefined, undefined], 'each tool has its taskSupport');
  assert.deepEqual(tagsOf(await client.result('tools/list')), [undefined, undefined], 'also when it is known by its bytes');
  legacy.upstream.handlers['resources/list'] = ({ reply, id }) => reply.http(200, { 'content-type': 'application/json' }, `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"resources":[{"uri":"hidden"}],"\\u0074ag":"x","d\\u0069gest":"y"}}`);
  assert.deepEqual(await client.result('resources/list'), { resources: [] });

  const up = await modernScene(t, { source: { era: 'modern' }, upstream: { capabilities, handlers: handlersOf({ resultType: 'complete', ...KEPT }) } });
  const down = await bridgedStage(t, { upstream: { capabilities, handlers: handlersOf({}) } });
  for (const [one, server] of [[await up.connect({ capabilities: { tasks: {} } }), up.upstream], [down.modern(), down.upstream]]) {
    const lists = {};
    for (const method of Object.keys(RESULTS)) assert.deepEqual(tagsOf((lists[method] = await one.result(method))), [undefined, undefined], method);
    await server.stop();
    for (const method of ['tools/list', 'prompts/list', 'resources/list']) assert.deepEqual({ ...(await one.result(method)), ttlMs: 0 }, { ...lists[method], ttlMs: 0 }, `${method}, as it was kept`);
  }
});

// ---- methods.allow ----

const allowing = { config: { methods: { allow: ['vendor/*', 'prompts/vendor', 'skills/*', 'tools/*'] } }, defaultAction: 'deny', expose: { mode: 'blocklist', tools: ['hidden*', 'x://hidden*'] }, rules: [['good', 'forward'], ['x://h/good/**', 'forward'], ['asks', 'approve'], ['x://asks', 'approve']] };
const CASES = [
  [{}, undefined],
  [{ name: 'good' }, undefined],
  [{ uri: 'x://h/good/a' }, undefined],
  [{ uri: 'x://h/good/a', name: 'good' }, undefined],
  [{ uri: 'x://h/good/a', name: 'bad' }, -32014],
  [{ uri: 'x://bad', name: 'good' }, -32014],
  [{ uri: 'x://h/good/../bad' }, -32014],
  [{ uri: 'X://hidden/a' }, -32015],
  [{ name: 'hidden' }, -32015],
  [{ uri: 'x://h/good/a', name: 'hidden' }, -32015],
  [{ name: 'asks' }, -32014],
  [{ uri: 'x://asks' }, -32014],
  [{ uri: ['x://h/good/a'] }, -32602],
  [{ name: 7 }, -32602],
  [{ uri: null, name: 'good' }, -32602],
];

test('a method that passes by methods.allow is judged by its uri and its name, in both eras', async (t) => {
  const legacy = await scene(t, allowing);
  const modern = await modernScene(t, allowing);
  const clients = [[legacy, await legacy.connect()], [modern, modern.modern()]];
  for (const [{ upstream }, client] of clients) {
    for (const method of ['vendor/thing', 'prompts/vendor']) {
      upstream.handlers[method] = ({ reply }) => reply.result({ resultType: 'complete', ok: true });
      for (const [params, code] of CASES) {
        const before = upstream.of(method).length;
        const { message } = await client.send(method, params);
        assert.deepEqual([message.error?.code, message.result?.ok, upstream.of(method).length - before], code ? [code, undefined, 0] : [undefined, true, 1], `${method} ${JSON.stringify(params)}`);
      }
    }
  }
});

test('methods.allow has no effect on a method that the gateway knows, in any era, and check says so with its place', async (t) => {
  const { upstream, connect } = await scene(t, { config: { methods: { allow: ['*'] } } });
  const client = await connect();
  upstream.handlers['tasks/update'] = ({ reply }) => reply.result({});
  for (const method of ['tasks/update', 'subscriptions/listen']) assert.equal((await client.error(method, { uri: 'a:b' })).code, -32601, method);
  assert.equal(upstream.of('tasks/update').length, 0);

  const file = path.join(temporaryFolder(t), 'config.yaml');
  const checked = (allow) => {
    fs.writeFileSync(file, `schema: 1\nsources: [{id: up, kind: mcp, url: 'http://h/'}]\ngovernance: {defaults: {action: forward}}\nmethods:\n  allow:\n    - vendor/*\n    - ${allow}\n`);
    return run(BINARY, ['check', '--config', file], {});
  };
  assert.match((await checked('prompts/g*')).stderr, /config\.yaml:7:7: warning: methods\.allow\[1\]: the glob has no effect on prompts\/get: the gateway knows this method/);
  assert.doesNotMatch((await checked('prompts/x*')).stderr, /methods/);
});
