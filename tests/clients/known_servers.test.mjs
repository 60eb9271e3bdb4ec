// policy/servers: each tool that the real server lists has a rule of its own, each rule a tool, and what writes waits.
// The servers are installed as those of servers.test.mjs are: TASKGATE_LONG_APPROVALS=1 does.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from '../integration/node_modules/yaml/dist/index.js';
import { BINARY } from '../integration/lib/gateway.mjs';
import { CACHE } from './library.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const servers = JSON.parse(fs.readFileSync(path.join(here, 'servers.json'), 'utf8'));
const folder = path.resolve(here, '../../policy/servers');
const BIN = { npm: path.join(CACHE, 'servers/node_modules/.bin'), PyPI: path.join(CACHE, 'servers/python/bin') };
const NAMES = ['fetch', 'filesystem', 'git', 'memory', 'sequential-thinking', 'time'];
/** Tools that are not marked as reading, and harm nothing: they add, and what they add can be taken away. */
const ADDING = ['create_directory', 'create_entities', 'create_relations', 'add_observations', 'git_add'];

/** The tools that the server lists, over its pipes. */
async function list(t, command, args) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'rules', version: '1' } } });
  let text = '';
  for await (const piece of child.stdout) {
    const lines = (text + piece).split('\n');
    text = lines.pop();
    for (const { id, result } of lines.map((line) => JSON.parse(line))) {
      if (id === 1) send({ method: 'notifications/initialized' });
      if (id === 1) send({ id: 2, method: 'tools/list', params: {} });
      if (id === 2) return result.tools;
    }
  }
  throw new Error(`${command} has ended without a list`);
}

test('there are rules for these servers', () => assert.deepEqual(fs.readdirSync(folder).sort(), NAMES.map((name) => `${name}.yaml`)));

for (const name of NAMES) {
  const server = servers.find((row) => row.name === name);
  const file = path.join(folder, `${name}.yaml`);
  const command = path.join(BIN[server.from], server.stdio[0]);
  const decision = (tool) => JSON.parse(execFileSync(BINARY, ['explain', tool, '--json', '--config', file], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));

  test(`${name}: the rules are valid, of the release that is tried, and deny what they do not name`, () => {
    execFileSync(BINARY, ['check', '--config', file], { stdio: 'ignore' });
    const head = fs.readFileSync(file, 'utf8').split('\nschema')[0].replaceAll('\n# ', ' ');
    assert.ok(head.includes(`${server.package} of ${server.from}`) && head.includes(`Tried with ${server.version}.`), head);
    assert.equal(decision('a_tool_of_tomorrow').action, 'deny');
  });

  test(`${name}: each tool of the real server has its rule, and what may do harm waits`, { skip: fs.existsSync(command) ? false : `${command} is not installed: TASKGATE_LONG_APPROVALS=1` }, async (t) => {
    const tools = await list(t, command, server.stdio.slice(1).map((word) => (word === 'FOLDER' ? fs.realpathSync('/tmp') : word)));
    const { rules } = parse(fs.readFileSync(file, 'utf8')).governance;
    assert.deepEqual(rules.map(({ match }) => match).sort(), tools.map((tool) => tool.name).sort());
    for (const tool of tools) {
      const { action } = decision(tool.name);
      if (name !== 'fetch') assert.equal(action, tool.annotations?.readOnlyHint || ADDING.includes(tool.name) ? 'forward' : 'approve', tool.name);
      // People are shown arguments that the calls have.
      const { show } = rules.find(({ match }) => match === tool.name);
      const shown = [...(show?.summary ?? '').matchAll(/\{([^}]+)\}/g)].map(([, argument]) => argument);
      for (const argument of [...shown, ...(show?.highlight ?? [])]) assert.ok(argument in tool.inputSchema.properties, `${tool.name}: ${argument}`);
    }
    if (name === 'fetch') assert.equal(decision('fetch').action, 'approve');
  });
}
