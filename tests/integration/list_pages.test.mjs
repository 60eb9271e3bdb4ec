// The pages of a server's lists: cursors that come again, pages that fail, and lists that are complete in both eras.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { fastClockMissing, LeapingClock } from './lib/fast_clock.mjs';
import { temporaryFolder } from './lib/gateway.mjs';
import { MODERN } from './lib/modern_client.mjs';
import { modernScene } from './lib/modern_scene.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const PLAIN = { capabilities: {} };
const NAMES = ['one', 'two', 'three', 'four', 'five', 'six'];
const config = { pseudo_tools: { only: ['list_tools'] } };

/** The names on all pages, as a client walks them. */
async function walked(client) {
  const names = [];
  for (let cursor; ;) {
    const page = await client.result('tools/list', cursor === undefined ? {} : { cursor });
    names.push(...page.tools.map(({ name }) => name));
    if ((cursor = page.nextCursor) === undefined) return names.filter((name) => name !== 'list_tools');
  }
}

/** The names that the gateway's own tool shows. */
async function shown(client) {
  const { structuredContent, isError, content } = await client.result('tools/call', { name: 'list_tools', arguments: {} });
  assert.ok(!isError, content[0].text);
  return structuredContent.tools.map(({ name }) => name);
}

const known = ({ admin }, count) =>
  until(async () => {
    const metrics = await admin.metrics();
    return ['optional', 'required', 'forbidden'].reduce((sum, annotation) => sum + (sample(metrics, 'thoughtgate_tools_by_annotation', { annotation }) ?? 0), 0) === count;
  }, `${count} tools to be known`);

test('a list of three pages is complete for a client and for the gateway: a legacy server', async (t) => {
  const set = await scene(t, { upstream: { tools: NAMES.map((name) => tool(name)), pageSize: 2 }, config });
  await known(set, 6);
  const client = await set.connect(PLAIN);
  assert.deepEqual(await walked(client), NAMES);
  assert.deepEqual(await shown(client), NAMES);
});

test('a list of three pages is complete for a client and for the gateway: a modern server, a client of each era', async (t) => {
  const set = await modernScene(t, { upstream: { tools: NAMES.map((name) => tool(name)), pageSize: 2 }, config });
  await known(set, 6);
  assert.deepEqual(await walked(set.modern({ protocol: MODERN })), NAMES);
  assert.deepEqual(await walked(await set.connect(PLAIN)), NAMES);
});

test('a cursor that comes again ends each walk, what was read stays, and the log tells it once an hour', { skip: fastClockMissing }, async (t) => {
  const clock = new LeapingClock(temporaryFolder(t));
  const list = ({ params, reply }) => reply.result({ tools: [tool(params?.cursor ?? 'zero')], nextCursor: { undefined: 'one', one: 'two', two: 'one' }[params?.cursor] });
  const set = await scene(t, { upstream: { handlers: { 'tools/list': list } }, config, env: clock.environment });
  const warnings = () => set.gateway.logs.filter(({ level, msg }) => level === 'warn' && /cursor that came before/.test(msg)).length;
  await known(set, 3);
  const client = await set.connect({ ...PLAIN, keepAlive: false }); // a kept connection ends in the leap
  assert.deepEqual(await shown(client), ['zero', 'one', 'two']);
  assert.deepEqual(await shown(client), ['zero', 'one', 'two']);
  await until(() => warnings() === 1, 'one warning for all walks');
  clock.leap(3601);
  assert.deepEqual(await shown(client), ['zero', 'one', 'two']);
  await until(() => warnings() === 2, 'one more after an hour');
});

for (const [how, fail] of Object.entries({
  'an HTTP error': ({ reply }) => reply.http(500, {}, 'broken'),
  'a JSON-RPC error': ({ reply }) => reply.error(-32603, 'broken'),
  'a cut connection': ({ reply }) => reply.cut(),
})) {
  test(`a page that fails once is fetched once more: ${how}`, async (t) => {
    let failures = 0;
    const cursors = [];
    const list = (call) => {
      const { params, reply } = call;
      cursors.push(params?.cursor);
      if (params?.cursor === 'two' && failures > 0 && failures--) return fail(call);
      return reply.result({ tools: [tool(params?.cursor ?? 'one')], nextCursor: { undefined: 'two', two: 'three' }[params?.cursor] });
    };
    const set = await scene(t, { upstream: { handlers: { 'tools/list': list } }, config });
    const client = await set.connect(PLAIN);
    await known(set, 3);
    cursors.length = 0;
    failures = 1;
    assert.deepEqual(await shown(client), ['one', 'two', 'three']);
    assert.deepEqual(cursors, [undefined, 'two', 'two', 'three'], 'that page alone');
    failures = 2;
    const { isError, content } = await client.result('tools/call', { name: 'list_tools', arguments: {} });
    assert.deepEqual([isError, content[0].text], [true, 'The server cannot be asked for its tools now']);
    failures = 1;
    await set.gateway.restart();
    await known(set, 3);
  });
}

test('a list that is refused, or that the server does not have, is not asked for again', async (t) => {
  const set = await scene(t, { config });
  const client = await set.connect(PLAIN);
  for (const refuse of [({ reply }) => reply.http(401, {}, ''), ({ reply }) => reply.error(-32601, 'no tools here')]) {
    set.upstream.handlers['tools/list'] = refuse;
    const before = set.upstream.of('tools/list').length;
    await client.call('tools/call', { name: 'list_tools', arguments: {} });
    assert.equal(set.upstream.of('tools/list').length, before + 1);
  }
});
