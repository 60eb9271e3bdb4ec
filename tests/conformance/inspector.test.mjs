// The official Inspector's command line, as its users run it, through the gateway to the example server.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Child } from '../integration/lib/child.mjs';
import { exampleMissing, startExample } from '../integration/lib/example_server.mjs';
import { startGateway, temporaryFolder, workflow } from '../integration/lib/gateway.mjs';
import { startSdk2Server } from '../integration/lib/sdk2_server.mjs';
import { until, within } from '../integration/lib/wait.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const INSPECTOR = path.join(here, 'node_modules/.bin/mcp-inspector');
const MCPDO = path.join(here, 'node_modules/.bin/mcpdo'); // it keeps a connection, so that a question can be answered
const NODE = path.join(here, 'node_modules/node/bin/node'); // the Inspector needs a newer one than Debian's

const options = { skip: exampleMissing || (fs.existsSync(INSPECTOR) ? false : 'npm ci has not run in tests/conformance') };

async function stage(t) {
  const server = await startExample(t);
  const gateway = await startGateway(t, { upstream: server.url, rules: [['delete_*', 'approve'], ['slow', 'deny']], approval: workflow('10m') });
  const home = temporaryFolder(t);
  const begin = (...words) =>
    new Child(NODE, [INSPECTOR, '--cli', '--transport', 'http', '--server-url', gateway.url, ...words], {
      env: { HOME: home, MCP_CATALOG_PATH: path.join(home, 'mcp.json') },
      name: 'mcp-inspector',
    });
  const run = async (...words) => {
    const child = begin(...words);
    const { code } = await within(child.exited, 'the Inspector', 60_000);
    return { code, stdout: child.stdout, stderr: child.stderr };
  };
  return { server, admin: gateway.admin, begin, run };
}

test('the Inspector lists the tools, with what each says of tasks', options, async (t) => {
  const { run } = await stage(t);
  const { code, stdout } = await run('--method', 'tools/list');
  assert.equal(code, 0);
  const support = Object.fromEntries(JSON.parse(stdout).tools.map((tool) => [tool.name, tool.execution?.taskSupport]));
  assert.equal(support.delete_database, 'optional');
  assert.equal(support.get_time, undefined);
});

test('the Inspector calls a harmless tool', options, async (t) => {
  const { run } = await stage(t);
  const { code, stdout } = await run('--method', 'tools/call', '--tool-name', 'get_time');
  assert.equal(code, 0);
  assert.match(JSON.parse(stdout).content[0].text, /^It is 20\d\d-/);
});

test('the Inspector is told why a denied tool is not called', options, async (t) => {
  const { run } = await stage(t);
  const { code, stdout, stderr } = await run('--method', 'tools/call', '--tool-name', 'slow', '--tool-arg', 'seconds=1');
  assert.notEqual(code, 0);
  assert.match(stdout + stderr, /-32014|denied/i);
});

test('the Inspector calls a dangerous tool, waits for the human, and prints what came of it', options, async (t) => {
  const { admin, begin, server } = await stage(t);
  const child = begin('--method', 'tools/call', '--tool-name', 'delete_database', '--tool-arg', 'name=staging');
  const task = await until(async () => (await admin.list()).tasks[0], 'the task', { deadline: 30_000 });
  assert.deepEqual(task.arguments, { name: 'staging' });
  assert.equal(server.journal().length, 0, 'nothing has run yet');
  await admin.approve(task.id);
  const { code } = await within(child.exited, 'the Inspector', 60_000);
  assert.equal(code, 0, child.stderr);
  assert.match(JSON.parse(child.stdout).content[0].text, /staging/);
});

for (const protocolEra of ['modern', 'auto']) {
  test(`the Inspector, protocolEra ${protocolEra}: lists, calls, waits for the human, and says why it was rejected`, options, async (t) => {
    const server = await startSdk2Server(t, { legacy: 'reject' });
    const gateway = await startGateway(t, { upstream: server.url, rules: [['delete_*', 'approve']], approval: workflow('10m') });
    const home = temporaryFolder(t);
    const config = path.join(home, 'servers.json');
    fs.writeFileSync(config, JSON.stringify({ mcpServers: { gateway: { type: 'streamable-http', url: gateway.url, protocolEra } } }));
    const begin = (...words) => new Child(NODE, [INSPECTOR, '--cli', '--config', config, '--server', 'gateway', '--method', ...words], { env: { HOME: home }, name: 'mcp-inspector' });
    const end = async (child) => {
      const { code } = await within(child.exited, 'the Inspector', 60_000);
      return { code, stdout: child.stdout, stderr: child.stderr };
    };
    const decided = async (verb, ...words) => {
      const child = begin('tools/call', '--tool-name', 'delete_user', ...words);
      await gateway.admin[verb]((await gateway.admin.pending(() => true, 30_000)).id, 'not today');
      return end(child);
    };
    const listed = await end(begin('tools/list'));
    assert.equal(listed.code, 0, listed.stderr);
    assert.deepEqual(JSON.parse(listed.stdout).tools.map(({ name, execution }) => [name, execution]), ['read', 'delete_user', 'count', 'ask_name', 'wait'].map((name) => [name, undefined]));
    const counted = await end(begin('tools/call', '--tool-name', 'count', '--tool-arg', 'to=3'));
    assert.equal(JSON.parse(counted.stdout).content[0].text, 'counted to 3');
    const approved = await decided('approve', '--tool-arg', 'id=7');
    assert.equal(approved.code, 0, approved.stderr);
    assert.equal(JSON.parse(approved.stdout).content[0].text, 'deleted 7');
    const rejected = await decided('reject', '--tool-arg', 'id=8');
    assert.notEqual(rejected.code, 0);
    assert.match(rejected.stdout + rejected.stderr, /Rejected by: admin/);
    assert.deepEqual(server.calls.map(({ tool, era }) => [tool, era]), [['count', 'modern'], ['delete_user', 'modern']]);
  });
}

for (const protocolEra of ['legacy', 'modern']) {
  test(`the Inspector, protocolEra ${protocolEra}, before a modern server: it is asked in a call, and answers or declines`, options, async (t) => {
    const server = await startSdk2Server(t, { legacy: 'reject' });
    const gateway = await startGateway(t, { upstream: server.url });
    const home = temporaryFolder(t);
    const config = path.join(home, 'servers.json');
    fs.writeFileSync(config, JSON.stringify({ mcpServers: { gateway: { type: 'streamable-http', url: gateway.url, protocolEra } } }));
    const env = {
      HOME: home, MCP_INSPECTOR_SECRET_STORE: 'memory',
      MCP_INSPECTOR_DAEMON_DIR: path.join(home, 'daemon'), MCP_INSPECTOR_DAEMON_TOKEN: crypto.randomBytes(32).toString('base64url'),
    };
    const run = async (...words) => {
      const child = new Child(NODE, [MCPDO, '--config', config, '--connection', 'gateway', '--format', 'json', ...words], { env, name: 'mcpdo' });
      const { code } = await within(child.exited, `mcpdo ${words[0]}`, 60_000);
      assert.equal(code, 0, `mcpdo ${words[0]}: ${child.stderr}`);
      return JSON.parse(child.stdout);
    };
    try {
      assert.equal((await run('connect', 'gateway')).protocolEra, protocolEra);
      const answered = async (...answer) => {
        const { elicitationPending: asked } = await run('tools/call', 'ask_name');
        assert.equal(asked.message, 'Who are you?');
        return (await run('elicitation/respond', asked.elicitationId, ...answer)).content[0].text;
      };
      assert.equal(await answered('name:=Ada'), 'Hello Ada');
      assert.equal(await answered('--decline'), 'they said decline');
      assert.ok(server.calls.every(({ tool, era }) => tool === 'ask_name' && era === 'modern'));
    } finally {
      await run('daemon', 'stop'); // its socket is in the folder, which goes first of what is cleared up
    }
  });
}
