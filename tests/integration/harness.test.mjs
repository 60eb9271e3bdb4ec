// The harness itself, against real servers and without a gateway: the other files rely on it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ElicitRequestSchema, CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Child, run } from './lib/child.mjs';
import { collectStream, connectedRaw, rawClient, sdkClient, toolStream } from './lib/client.mjs';
import { startEverything } from './lib/everything.mjs';
import { exchange } from './lib/http.mjs';
import { assertSchema } from './lib/schema.mjs';
import { startUpstream, TASKS, tool } from './lib/upstream.mjs';
import { toYaml } from './lib/yaml.mjs';

test('server-everything serves the SDK client directly: tools, elicitation, its own tasks', async (t) => {
  const server = await startEverything(t);
  const client = await sdkClient(t, server.url, {
    capabilities: { elicitation: {}, sampling: {} },
    prepare(c) {
      c.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
      c.setRequestHandler(CreateMessageRequestSchema, () => ({ model: 'm', role: 'assistant', content: { type: 'text', text: 'sampled' } }));
    },
  });
  assert.deepEqual((await client.callTool({ name: 'get-sum', arguments: { a: 2, b: 3 } })).content[0].text, 'The sum of 2 and 3 is 5.');
  const seen = await collectStream(toolStream(client, 'simulate-research-query', { topic: 'x' }));
  assert.match(seen.result.content[0].text, /Research Report: x/);
  assert.ok(seen.statuses.includes('working'));
});

test('the raw client reads JSON and SSE answers of the scripted upstream, which records exact bytes', async (t) => {
  const upstream = await startUpstream(t, { capabilities: { tools: {}, tasks: TASKS }, tools: [tool('a'), tool('b', { support: 'required' })], pageSize: 1 });
  const client = await connectedRaw(t, upstream.url);
  const body = '{ "jsonrpc":"2.0", "id":9 ,"method":"tools/call","params":{"name":"a","arguments":{"x":1.0}}}';
  upstream.replyAs = 'sse';
  const answer = await client.send('tools/call', undefined, { body, id: 9 });
  assert.equal(upstream.calls[0].text, body);
  assert.equal(answer.message.result.content[0].text, 'did a');
  assert.deepEqual((await client.result('tools/list')).tools.map((x) => x.name), ['a']);
  assert.equal((await client.result('tools/list')).nextCursor, 'page-1');
  const { task } = await client.createTask('b');
  assertSchema(t, 'CreateTaskResult', { task });
  assert.equal((await client.result('tasks/get', { taskId: task.taskId })).status, 'working');
  assert.equal((await client.error('tasks/get', { taskId: 'nope' })).code, -32602);
});

test('the scripted upstream pushes on GET streams, ends sessions, disappears and comes back', async (t) => {
  const upstream = await startUpstream(t);
  const client = await connectedRaw(t, upstream.url);
  const stream = await client.listen();
  upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 1 } }, { id: '7' });
  const event = await stream.next((e) => e.json);
  assert.deepEqual([event.id, event.json.params.data], ['7', 1]);
  await upstream.stop();
  assert.equal(await stream.end(), 'cut');
  await assert.rejects(exchange(upstream.url, { method: 'POST', body: '{}' }));
  await upstream.listen();
  assert.equal((await client.delete()).status, 200);
  assert.equal((await client.send('ping')).status, 404);
});

test('an upstream that hangs and a client that leaves are both seen', async (t) => {
  const upstream = await startUpstream(t, { handlers: { 'tools/call': () => {} } });
  const client = await connectedRaw(t, upstream.url);
  const pending = client.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a' } });
  const call = await upstream.received('tools/call');
  pending.abort();
  await assert.rejects(pending);
  await call.gone;
  assert.equal(call.left, true);
});

test('objects are written as block YAML', () => {
  assert.equal(
    toYaml({ schema: 1, list: [{ a: 'x', b: ['*'] }, 'y z'], empty: [], nested: { on: true, off: 'no' } }),
    'schema: 1\nlist:\n  - a: x\n    b:\n      - "*"\n  - "y z"\nempty: []\nnested:\n  "on": true\n  "off": "no"\n',
  );
});

test('a raw client without a handshake sends no session and no version', async (t) => {
  const upstream = await startUpstream(t);
  const client = rawClient(t, upstream.url);
  await client.send('ping');
  assert.equal(upstream.requests[0].headers['mcp-session-id'], undefined);
  assert.equal(upstream.requests[0].headers['mcp-protocol-version'], undefined);
});

test("a sanitizer's report on stderr, and an early end, fail what runs the child", async () => {
  const child = new Child('sh', ['-c', 'echo "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1" >&2; exit 1'], { name: 'faulty' });
  await assert.rejects(child.ready(() => false, 'being ready'), /ended before being ready: exit code 1/);
  assert.throws(() => child.assertNoSanitizerReport(), /heap-use-after-free/);
  const clean = await run('sh', ['-c', 'echo fine >&2; exit 3']);
  assert.deepEqual([clean.code, clean.stderr], [3, 'fine\n']);
});
