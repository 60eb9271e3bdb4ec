// The compliance harness on endpoints of 2026-07-28: a good one passes, each requirement can fail, and the gateway meets all.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { check } from '../conformance/compliance/check.mjs';
import { parse } from '../conformance/compliance/options.mjs';
import { requirements } from '../conformance/compliance/requirements/index.mjs';
import { modern } from '../conformance/compliance/requirements/modern.mjs';
import { run } from './lib/child.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { defer } from './lib/lifetime.mjs';
import { key } from './lib/modern_client.mjs';
import { sdk2Handler, serve, startSdk2Server, usualTools } from './lib/sdk2_server.mjs';

const HARNESS = path.join(path.dirname(fileURLToPath(import.meta.url)), '../conformance/run');
const NAMES = modern.map(({ name }) => name);
const WORDS = ['--tool', 'delete_user', '--plain-tool', 'read', '--timeout', '5000'];

const failures = (results) => results.filter(({ verdict }) => verdict === 'FAIL').map(({ name, detail }) => [name, detail]);
const skipped = (results) => results.filter(({ verdict }) => verdict === 'SKIP').map(({ name }) => name);

/** A modern-only server with tasks. `meddle(rpc, headers)` may change a request, `change(rpc, answer, headers)` an answer {status, message}. */
async function server(t, { meddle = () => {}, change = () => {}, ...options } = {}) {
  const handler = sdk2Handler({ tools: usualTools(), tasks: true, legacy: 'reject', ...options });
  const fetch = async (request) => {
    const rpc = JSON.parse(await request.text());
    const headers = Object.fromEntries(request.headers);
    meddle(rpc, headers);
    const response = await handler.fetch(new Request(request.url, { method: 'POST', headers, body: JSON.stringify(rpc) }));
    const text = await response.text();
    const answer = { status: response.status, message: text && JSON.parse(text), headers: { 'content-type': 'application/json' } };
    change(rpc, answer, headers);
    return new Response(answer.message ? JSON.stringify(answer.message) : null, { status: answer.status, headers: answer.message ? answer.headers : {} });
  };
  const served = await serve({ fetch, close: () => handler.close() });
  defer(t, () => served.stop());
  return served;
}

const judged = (url) => check(parse([url, ...WORDS], {}));

test('a good server that is modern alone passes everything of its era, and is asked for nothing of the other', async (t) => {
  const results = await judged((await server(t)).url);
  assert.deepEqual([failures(results), skipped(results)], [[], []]);
  assert.deepEqual(results.map(({ name }) => name), NAMES);
});

test('a server of both eras without tasks: its own lines beside those of the other era', async (t) => {
  const { url } = await startSdk2Server(t);
  const results = await judged(url);
  const own = results.filter(({ name }) => NAMES.includes(name));
  assert.deepEqual(results.map(({ name }) => name), [...requirements.map(({ name }) => name), ...NAMES]);
  assert.deepEqual([failures(own), skipped(own)], [[], NAMES.filter((name) => /^modern-task/.test(name))]);
});

test('the gateway before a modern server meets all of them', async (t) => {
  const upstream = await startSdk2Server(t, { legacy: 'reject' });
  const gateway = await startGateway(t, { upstream: upstream.url, rules: [['delete_*', 'approve']], approval: workflow('10m'), source: { bridge: 'off' } });
  const { code, stdout, stderr } = await run(HARNESS, [gateway.url, '--json', ...WORDS]);
  const { results, ...summary } = JSON.parse(stdout);
  assert.deepEqual(failures(results), []);
  assert.deepEqual([summary, code, stderr], [{ url: gateway.url, passed: NAMES.length, failed: 0, skipped: 0 }, 0, '']);
  assert.deepEqual(upstream.calls.map(({ tool }) => tool), ['read'], 'the task was cancelled');
});

const is = (method) => (rpc) => rpc.method === method;
const onAnswer = (fits, change) => ({ change: (rpc, answer, headers) => fits(rpc, answer, headers) && change(answer, rpc) });
const onResult = (method, change) => onAnswer((rpc, { message }) => rpc.method === method && message?.result, ({ message }, rpc) => change(message.result, rpc));
const served = (fits) => onAnswer((rpc, answer, headers) => answer.message?.error && fits(rpc, headers, answer.message.error), (answer, rpc) => Object.assign(answer, { status: 200, message: { jsonrpc: '2.0', id: rpc.id, result: { resultType: 'complete' } } }));
const otherStatus = (code) => onAnswer((_, { message }) => message?.error?.code === code, (answer) => (answer.status = 200));
const meta = (rpc, name) => rpc.params?._meta?.[key(name)];

/** For each requirement a server that misses it, and it alone. */
const FAULTS = {
  'modern-discover': onResult('server/discover', (result) => delete result.ttlMs),
  'modern-discover-no-old-tasks': onResult('server/discover', ({ capabilities }) => (capabilities.tasks = {})),
  'modern-client-info-optional': onAnswer((rpc) => rpc.method === 'server/discover' && meta(rpc, 'clientInfo') === undefined && meta(rpc, 'clientCapabilities') && meta(rpc, 'protocolVersion'), (answer, rpc) => Object.assign(answer, { status: 400, message: { jsonrpc: '2.0', id: rpc.id, error: { code: -32602, message: 'no' } } })),
  'modern-envelope-required': onAnswer((rpc, { message }) => message?.error && rpc.method === 'server/discover' && meta(rpc, 'clientCapabilities') === undefined, (answer) => (answer.status = 200)),
  'modern-version-header-checked': served((rpc, headers, { code }) => code === -32020 && headers['mcp-protocol-version'] === '2025-11-25'),
  'modern-version-unsupported': onAnswer((_, { message }) => message?.error?.code === -32022, ({ message }) => delete message.error.data.requested),
  'modern-method-header-checked': served((rpc, headers) => headers['mcp-method'] === 'TOOLS/LIST'),
  'modern-name-header-checked': served((rpc, headers, { code }) => rpc.method === 'tools/call' && code === -32020),
  'modern-methods-gone': onAnswer(is('ping'), (answer) => (answer.status = 200)),
  'modern-notification-accepted': onAnswer((rpc) => rpc.id === undefined, (answer) => (answer.status = 200)),
  'modern-no-session': onAnswer((rpc, answer, headers) => headers['mcp-session-id'], (answer) => (answer.headers['mcp-session-id'] = 'mine')),
  'modern-tools-list': onResult('tools/list', (result) => (result.cacheScope = 'mine')),
  'modern-tool-unknown-refused': onAnswer((rpc, { message }) => rpc.method === 'tools/call' && message?.error?.code === -32602, ({ message }) => (message.error.code = -32603)),
  'modern-call-shape': onResult('tools/call', (result, rpc) => rpc.params.name === 'read' && delete result.content),
  'modern-tasks-undeclared-refused': otherStatus(-32021),
  'modern-tasks-unknown-refused': onAnswer((rpc, { message }) => rpc.method === 'tasks/get' && message?.error?.code === -32602, ({ message }) => (message.error.code = -32603)),
  'modern-task-create': onResult('tools/call', (result) => result.taskId && (result.pollIntervalMs = 0.5)),
  'modern-task-get': onResult('tasks/get', (result) => (result.createdAt = '2001-01-01T00:00:00Z')),
  'modern-task-name-header-checked': served((rpc, headers, { code }) => rpc.method === 'tasks/get' && code === -32020),
  'modern-task-cancel': onResult('tasks/cancel', (result) => (result.status = 'cancelled')),
};

test('every requirement has a server that misses it', () => assert.deepEqual(Object.keys(FAULTS).sort(), [...NAMES].sort()));

for (const [name, fault] of Object.entries(FAULTS)) {
  test(`a server that misses ${name} fails in that line and in no other`, async (t) => {
    const failed = failures(await judged((await server(t, fault)).url));
    assert.deepEqual(failed.map(([which]) => which), [name], JSON.stringify(failed));
    assert.doesNotMatch(failed[0][1], /^unexpected/, 'a fault that the harness has words for');
  });
}
