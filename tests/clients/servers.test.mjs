// Public servers, started for real: what a client gets through the gateway is what it gets directly, byte by byte.
// They are not installed for each test run: TASKGATE_LONG_APPROVALS=1 does.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Child } from '../integration/lib/child.mjs';
import { startGateway } from '../integration/lib/gateway.mjs';
import { freePort } from '../integration/lib/ports.mjs';
import { defer } from '../integration/lib/lifetime.mjs';
import { CACHE, LONG } from './library.mjs';

const servers = JSON.parse(fs.readFileSync(path.join(path.dirname(fileURLToPath(import.meta.url)), 'servers.json'), 'utf8'));
const NPM = path.join(CACHE, 'servers/node_modules/.bin');
const PYPI = path.join(CACHE, 'servers/python/bin');
const LISTS = { tools: ['tools/list'], prompts: ['prompts/list'], resources: ['resources/list', 'resources/templates/list'] };
/** The wrappers number the events of a session with names of their own. */
const EVENT_LINE = /^(data|event): ?(.*)$/;

const wrappers = {
  'mcp-proxy': (port, command) => [path.join(NPM, 'mcp-proxy'), '--host', '127.0.0.1', '--port', port, '--server', 'stream', '--', ...command],
  supergateway: (port, command) => [path.join(NPM, 'supergateway'), '--stdio', command.join(' '), '--outputTransport', 'streamableHttp', '--stateful', '--port', port, '--logLevel', 'none'],
};

/** A client that keeps the text of each message as it came. */
class Exact {
  #id = 0;
  #session = {};
  constructor(url) {
    this.url = url;
  }

  async #post(message) {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25', ...this.#session };
    const response = await fetch(this.url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }), signal: AbortSignal.timeout(30_000) });
    const session = response.headers.get('mcp-session-id');
    if (session) this.#session = { 'mcp-session-id': session };
    const text = await response.text();
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return [text];
    return text.split('\n').map((line) => EVENT_LINE.exec(line)).filter((line) => line?.[1] === 'data' && line[2] !== '').map((line) => line[2]);
  }

  request(method, params = {}) {
    this.#id += 1;
    return this.#post({ id: this.#id, method, params });
  }

  notify(method) {
    return this.#post({ method });
  }

  /** The first message of `method` on the stream of notifications. */
  async pushed(method) {
    const response = await fetch(this.url, { headers: { accept: 'text/event-stream', 'mcp-protocol-version': '2025-11-25', ...this.#session }, signal: AbortSignal.timeout(30_000) });
    let text = '';
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      text += piece;
      const line = text.split('\n').slice(0, -1).find((one) => one.startsWith('data:') && JSON.parse(one.slice(5) || '{}').method === method);
      if (line) return line;
    }
    throw new Error(`the stream ended before ${method}`);
  }
}

/** A list without the gateway's own: whether each tool may be a task, and its resources. */
const ofTheServer = (text) => text.replaceAll(/,"execution":\{"taskSupport":"[a-z]+"\}/g, '').replaceAll(/,?\{"uri":"(emceepee|taskgate):\/\/[^}]*\}/g, '');

/** Everything of a server: what it can, its lists, a resource and a prompt, calls with their progress, a notification. */
async function conversation(url, { calls, pushed }, kinds) {
  const client = new Exact(url);
  const got = {};
  const take = async (name, method, params) => (got[name] = await client.request(method, params));
  const [initialized] = await client.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'agent', version: '1' } });
  await client.notify('notifications/initialized');
  const { capabilities, ...rest } = JSON.parse(initialized).result;
  const its = Object.entries(capabilities).filter(([kind]) => kind !== 'tasks' && (kinds ?? [kind]).includes(kind));
  got.initialize = { capabilities: Object.fromEntries(its), ...rest };
  for (const [kind] of its) for (const method of LISTS[kind] ?? []) got[method] = (await client.request(method)).map(ofTheServer);
  const first = (method, key) => JSON.parse(got[method]?.at(-1) ?? '{}').result?.[key]?.[0];
  const [resource, prompt] = [first('resources/list', 'resources'), first('prompts/list', 'prompts')];
  if (resource) await take('resources/read', 'resources/read', { uri: resource.uri });
  if (prompt) await take('prompts/get', 'prompts/get', { name: prompt.name });
  for (const [i, [name, args]] of calls.entries()) await take(`${i} ${name}`, 'tools/call', { name, arguments: args, _meta: { progressToken: `p${i}` } });
  await take('ping', 'ping');
  if (pushed) {
    const message = client.pushed(pushed.method);
    for (const [method, params] of pushed.after) await client.request(method, params);
    got[pushed.method] = await message;
  }
  return got;
}

async function startServer(t, { stdio, http, wrapper, from, name }, folder) {
  const port = String(await freePort());
  const [program, ...words] = (stdio ?? http).map((word) => word.replace('FOLDER', folder));
  const command = [path.join(from === 'npm' ? NPM : PYPI, program), ...words];
  const [binary, ...args] = wrapper ? wrappers[wrapper](port, command) : command;
  const child = new Child(binary, args, { name, cwd: folder, env: { PORT: port, MEMORY_FILE_PATH: path.join(folder, '../memory.jsonl') } });
  defer(t, () => child.stop('SIGKILL'));
  await child.ready(() => fetch(`http://127.0.0.1:${port}/mcp`, { method: 'OPTIONS' }).then(() => true, () => false), 'listening');
  return `http://127.0.0.1:${port}/mcp`;
}

/** A folder with two files, which is a repository, too: the same each time. */
function makeFolder(t) {
  const top = fs.mkdtempSync(path.join(os.tmpdir(), 'taskgate-servers-'));
  defer(t, () => fs.rmSync(top, { recursive: true, force: true }));
  const folder = path.join(top, 'work');
  fs.mkdirSync(folder);
  for (const name of ['a.txt', 'b.txt']) fs.writeFileSync(path.join(folder, name), `${name}: höre\n`);
  const git = (...words) => execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...words], { cwd: folder });
  git('init', '--quiet');
  git('add', '.');
  git('commit', '--quiet', '--message', 'first');
  return folder;
}

for (const server of servers) {
  test(`${server.package} ${server.version}: the same through the gateway as directly`, { skip: LONG ? false : 'TASKGATE_LONG_APPROVALS=1 runs it' }, async (t) => {
    const folder = makeFolder(t);
    const url = await startServer(t, server, folder);
    const gateway = await startGateway(t, { upstream: url, config: { pseudo_tools: { mode: 'never' } } });
    const steps = JSON.parse(JSON.stringify(server).replaceAll('FOLDER', folder));
    const direct = await conversation(url, steps);
    const through = await conversation(gateway.url, steps, Object.keys(direct.initialize.capabilities));
    assert.deepEqual(through, direct);
    assert.ok(JSON.parse(direct['tools/list'].at(-1)).result.tools.length > 0, 'the server has tools');
  });
}
