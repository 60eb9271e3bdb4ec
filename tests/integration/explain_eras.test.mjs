// `explain` says what clients of both eras get of a tool: each word of it is what the gateway does.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectedRaw, errorOf } from './lib/client.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { modernClient } from './lib/modern_client.mjs';
import { startSdk2Server } from './lib/sdk2_server.mjs';

const RULES = [{ match: 'wipe_*', action: 'approve', require_tasks: true }, ['delete_*', 'approve'], ['drop_*', 'deny']];
const tools = Object.fromEntries(['wipe_all', 'delete_user', 'drop_table', 'special'].map((name) => [name, { run: () => ({ content: [{ type: 'text', text: `did ${name}` }] }) }]));

const CODES = { '-32009': 'task_required', '-32010': 'by_server', '-32014': 'deny', '-32021': 'missing_capability' };

/** The word of `explain` for an answer. */
function wordOf(message) {
  const { result } = message, error = errorOf(message);
  if (error) return CODES[error.code] ?? error.code;
  if (result.resultType === 'input_required' || /has not run yet/.test(result.content?.[0]?.text)) return 'held';
  if (result.taskId) return /Awaiting approval/.test(result.statusMessage) ? 'task' : 'task_at_once';
  return 'forward';
}

const stage = async (t, config) => {
  const server = await startSdk2Server(t, { tools });
  const gateway = await startGateway(t, {
    upstream: server.url,
    rules: RULES,
    approval: workflow('10m'),
    forceRequired: ['special'],
    config: { pseudo_tools: { wait: '300ms' }, ...config },
  });
  const explain = async (tool, ...more) => (await gateway.cli(['explain', tool, '--config', gateway.configPath, ...more])).stdout;
  return { gateway, explain };
};

test('each word is what the gateway does', async (t) => {
  const { gateway, explain } = await stage(t);
  // The server has no sessions, so nothing but the configuration says that a client knows tasks.
  const seed = await stage(t, { clients: [{ match: '*', tasks: 'yes' }] });
  const knows = await connectedRaw(t, seed.gateway.url);
  const older = await connectedRaw(t, gateway.url, { protocol: '2025-06-18' });
  const declares = modernClient(t, gateway.url);
  const other = modernClient(t, gateway.url, { capabilities: {} });
  for (const tool of ['read', 'special', 'drop_table', 'delete_user', 'wipe_all']) {
    const { eras } = JSON.parse(await explain(tool, '--json'));
    const word = async (client, more = {}) => wordOf((await client.send('tools/call', { name: tool, arguments: {}, ...more })).message);
    const seen = {
      legacy: { with_task: await word(knows, { task: {} }), plain: await word(knows), plain_without_tasks: await word(older) },
      modern: { declares_tasks: await word(declares), other: await word(other) },
    };
    assert.deepEqual(eras, seen, tool);
  }
});

test('for people it is two lines, and none for a tool that nobody sees', async (t) => {
  const { gateway, explain } = await stage(t);
  const lines = (text) => text.split('\n').filter((line) => /^(Legacy|Modern)/.test(line));
  assert.deepEqual(lines(await explain('delete_user')), [
    'Legacy     with task: a task that waits for a human; plain: refused with -32009, or of a client without tasks held for 300ms, then answered with what is pending',
    'Modern     a task that waits for a human, or of a client that declares no tasks held for 300ms, again after each of 2 repetitions, then answered with what is pending; tools/list has the tool as the server describes it',
  ]);
  gateway.writeConfig({ expose: { mode: 'blocklist', tools: ['delete_*'] } });
  assert.deepEqual(lines(await explain('delete_user')), []);
  assert.equal(JSON.parse(await explain('delete_user', '--json')).eras, null);
});
