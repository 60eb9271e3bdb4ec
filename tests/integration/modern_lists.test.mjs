// A modern client's view of a server: server/discover, the lists, and what it may keep of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modernScene, modernServer, PREFIX, TASKS_EXTENSION, VERSION } from './lib/modern.mjs';
import { modernClient } from './lib/modern.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const ui = { name: 'shown', description: 'd', inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } }, $defs: { a: true } }, outputSchema: { type: 'array' }, execution: { taskSupport: 'optional' }, annotations: { readOnlyHint: true }, _meta: { ui: { resourceUri: 'ui://x' } } };

test('1: discover is the server\'s own answer with our version and our extension, private, and without capabilities.tasks', async (t) => {
  const capabilities = { tools: {}, tasks: { list: {} }, extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html'] } } };
  const { modern, upstream } = await modernScene(t, { upstream: { capabilities, handlers: { 'server/discover': ({ reply }) => reply.result({ resultType: 'complete', supportedVersions: ['2025-11-25', VERSION, '2099-01-01'], capabilities, instructions: 'Be kind.', ttlMs: 900_000, cacheScope: 'public', _meta: { [`${PREFIX}serverInfo`]: { name: 's', version: '2' } } }) } } });
  const answer = await modern({ token: 'one' }).send('server/discover');
  assert.equal(answer.status, 200);
  const { result } = answer.message;
  assert.deepEqual(result.supportedVersions, [VERSION]);
  assert.equal(result.resultType, 'complete');
  assert.equal(result.cacheScope, 'private');
  assert.equal(result.ttlMs, 60_000);
  assert.equal(result.instructions, 'Be kind.');
  assert.equal(result.capabilities.tasks, undefined);
  assert.deepEqual(result.capabilities.tools, { listChanged: true });
  assert.deepEqual(result.capabilities.extensions['io.modelcontextprotocol/ui'], { mimeTypes: ['text/html'] });
  assert.deepEqual(result._meta[`${PREFIX}serverInfo`], { name: 's', version: '2' });
  assert.equal(upstream.of('server/discover').at(-1).headers.authorization, 'Bearer one');
  assert.deepEqual(result.capabilities.extensions[TASKS_EXTENSION], {}, 'a rule may make a task of any call');
});

test('24: tools/list is filtered, private, of at most a minute, without execution; inputSchema is untouched', async (t) => {
  const tools = [ui, tool('hidden'), tool('denied')];
  const { modern, upstream } = await modernScene(t, { upstream: { tools, pageSize: 1 }, expose: { mode: 'blocklist', tools: ['hidden'] }, rules: [['denied', 'deny']] });
  const client = modern();
  const seen = [];
  for (let cursor, again = 0; again < 2; cursor = undefined, again++) {
    do {
      const answer = await client.send('tools/list', cursor === undefined ? {} : { cursor });
      const { result } = answer.message;
      assert.equal(result.resultType, 'complete');
      assert.equal(result.cacheScope, 'private');
      assert.equal(result.ttlMs, 60_000);
      seen.push(...result.tools);
      cursor = result.nextCursor;
    } while (cursor !== undefined);
  }
  const { execution: _, ...plain } = ui;
  assert.deepEqual(seen, [plain, tools[2], plain, tools[2]]);
  assert.ok(upstream.of('tools/list').every((r) => r.headers['mcp-method'] === 'tools/list'));
});

test('24: the server\'s own ttlMs holds where it is shorter, and 0 where it gives none', async (t) => {
  const list = (more) => ({ reply }) => reply.result({ resultType: 'complete', tools: [], resources: [], prompts: [], resourceTemplates: [], ...more });
  for (const [given, ttlMs] of [[{ ttlMs: 1500, cacheScope: 'public' }, 1500], [{}, 0], [{ ttlMs: -1 }, 0], [{ ttlMs: 'x' }, 0], [{ ttlMs: 1e30 }, 0]]) {
    const methods = ['tools/list', 'resources/list', 'prompts/list', 'resources/templates/list'];
    const { modern } = await modernScene(t, { upstream: { handlers: Object.fromEntries(methods.map((method) => [method, list(given)])) } });
    const client = modern();
    for (const method of methods) {
      const result = await client.result(method);
      assert.equal(result.ttlMs, ttlMs, `${method} ${JSON.stringify(given)}`);
      assert.equal(result.cacheScope, 'private', method);
      assert.equal(result.resultType, 'complete', method);
    }
  }
});

test('24: for a minute after a reload a list may not be kept', async (t) => {
  const { modern, gateway } = await modernScene(t);
  const client = modern();
  assert.equal((await client.result('tools/list')).ttlMs, 60_000);
  gateway.hangUp();
  await gateway.logged(/reload/i);
  await until(async () => (await client.result('tools/list')).ttlMs === 0, () => 'a ttlMs of 0');
  assert.equal((await client.result('server/discover')).ttlMs, 0);
});

test('25 and 26: each token has its own list, out of the cache too; the cached one may not be kept', async (t) => {
  const { modern, upstream } = await modernScene(t, { upstream: { handlers: { 'tools/list': ({ reply, recorded }) => reply.result({ resultType: 'complete', tools: [tool(`of-${recorded.headers.authorization?.slice(7)}`)], ttlMs: 5, cacheScope: 'public' }) } } });
  const [one, two, three] = ['one', 'two', 'three'].map((token) => modern({ token }));
  const names = async (client) => (await client.result('tools/list')).tools.map((x) => x.name);
  assert.deepEqual(await names(one), ['of-one']);
  assert.deepEqual(await names(two), ['of-two']);
  await upstream.stop();
  for (const [client, name] of [[one, 'of-one'], [two, 'of-two']]) {
    const result = await client.result('tools/list');
    assert.deepEqual(result.tools.map((x) => x.name), [name]);
    assert.deepEqual([result.ttlMs, result.cacheScope, result.resultType], [0, 'private', 'complete']);
  }
  const answer = await three.send('tools/list');
  assert.equal(answer.message.error.code, -32000, 'nobody else\'s list');
});

test('a legacy and a modern client of one owner never get each other\'s list', async (t) => {
  const { modern, connect, upstream } = await modernScene(t, { era: 'both', upstream: { legacy: true, tools: [tool('read', { support: 'optional' })] }, config: { clients: [{ match: '*', tasks: 'yes' }] } });
  const legacy = await connect();
  assert.ok((await legacy.result('tools/list')).tools[0].annotations.taskSupport);
  const shown = await modern().result('tools/list');
  assert.deepEqual(shown.tools, [{ ...tool('read') }]);
  assert.equal(shown.resultType, 'complete');
  await upstream.stop();
  assert.equal((await legacy.result('tools/list')).resultType, undefined);
  assert.equal((await modern().result('tools/list')).resultType, 'complete');
});

test('17: with era: auto the gateway asks the server, and says in the log what it speaks', async (t) => {
  for (const [options, era] of [[modernServer(), 'modern'], [modernServer({ legacy: true }), 'both'], [{}, 'legacy']]) {
    const { gateway, upstream } = await scene(t, { upstream: options });
    const line = await gateway.logged((entry) => entry.msg === 'The protocol of the server is known');
    assert.equal(line.era, era);
    const client = modernClient(t, gateway.url);
    const answer = await client.send('server/discover');
    assert.equal(answer.status, era === 'legacy' ? 400 : 200);
    if (era === 'legacy') assert.equal(answer.message.error.code, -32601);
    const own = upstream.of('server/discover')[0];
    assert.ok(own.isGatewaysOwn);
    assert.equal(own.headers['mcp-method'], 'server/discover');
    assert.equal(own.rpc.params._meta[`${PREFIX}protocolVersion`], VERSION);
    const gone = await client.delete();
    assert.equal(gone.status === 400, era === 'modern', `DELETE ${gone.status}`); // there is no session to end
  }
});

test('a server that was down at the start, or wants a login, is asked by the first modern call', async (t) => {
  const { gateway, upstream } = await scene(t, { upstream: { ...modernServer(), authorize: (r) => (r.headers.authorization ? undefined : 401) } });
  await gateway.logged(/wants a login/);
  const client = modernClient(t, gateway.url, { token: 'good' });
  assert.deepEqual((await client.result('server/discover')).supportedVersions, [VERSION]);
  const unknown = await modernClient(t, gateway.url).send('tools/call', { name: 'read' });
  assert.equal(unknown.status, 401, 'the server\'s own refusal');
  assert.equal(upstream.of('server/discover').filter((r) => r.headers.authorization).length, 2);
});

test('a server that is not modern any more is noticed by its errors', async (t) => {
  const { gateway, upstream } = await scene(t, { upstream: modernServer({ legacy: true }) });
  const client = modernClient(t, gateway.url);
  await client.result('server/discover');
  for (const method of ['server/discover', 'tools/call']) upstream.handlers[method] = ({ reply, id }) => reply.http(404, { 'content-type': 'application/json' }, JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }));
  const refused = await until(async () => {
    const answer = await client.send('tools/call', { name: 'read' });
    return answer.message.error.code === -32022 && answer;
  }, () => 'the verdict to heal', { deadline: 20_000 });
  assert.equal(refused.status, 400);
});

test('a source of the modern era alone opens no session: initialize is refused, and does not go up', async (t) => {
  for (const [bridge, status] of [['off', 400], ['legacy', 200]]) {
    const { raw, upstream } = await scene(t, { source: { era: 'modern', bridge }, upstream: modernServer({ legacy: true }) });
    const { message, status: got } = await raw().send('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'old', version: '1' } });
    assert.equal(got, status, JSON.stringify(message));
    if (bridge === 'off') assert.deepEqual([message.error.code, message.error.data.supported, message.error.data.requested], [-32022, ['2026-07-28'], '2025-11-25']);
    assert.equal(upstream.of('initialize').length, 0);
  }
});

test('a task id of nobody does not go up to a server that makes no tasks, which is asked for that first', async (t) => {
  for (const [makesTasks, isAsked] of [[false, true], [true, true], [false, false], [true, false]]) {
    const extensions = { [TASKS_EXTENSION]: {} };
    const { modern, upstream } = await modernScene(t, { upstream: { capabilities: { tools: {}, ...(makesTasks ? { extensions } : {}) }, handlers: { 'tasks/get': ({ reply }) => reply.error(-32602, 'no such task') } } });
    const client = modern({ capabilities: { extensions }, token: 'owner' });
    if (isAsked) await client.send('server/discover');
    assert.equal((await client.send('tasks/get', { taskId: 'of-nobody' })).message.error.code, -32602);
    assert.equal(upstream.of('tasks/get').length, makesTasks ? 1 : 0);
  }
});
