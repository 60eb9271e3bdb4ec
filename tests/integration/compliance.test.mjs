// The compliance harness (tests/conformance/run URL): everything passes against the gateway, and each requirement can fail.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { check } from '../conformance/compliance/check.mjs';
import { parse } from '../conformance/compliance/options.mjs';
import { requirements } from '../conformance/compliance/requirements/index.mjs';
import { StandIn } from '../conformance/stand_in.mjs';
import { run } from './lib/child.mjs';
import { ADMIN_TOKEN, startGateway, workflow } from './lib/gateway.mjs';
import { defer } from './lib/lifetime.mjs';
import { freePort } from './lib/ports.mjs';
import { targets } from './lib/targets.mjs';

const HARNESS = path.join(path.dirname(fileURLToPath(import.meta.url)), '../conformance/run');
const NAMES = requirements.map(({ name }) => name);

const failures = (results) => results.filter(({ verdict }) => verdict === 'FAIL').map(({ name, detail }) => [name, detail]);
const skipped = (results) => results.filter(({ verdict }) => verdict === 'SKIP').map(({ name }) => name);

// Against the gateway

for (const target of targets) {
  test(`${target.name} behind the gateway: nothing fails, and nothing is left behind`, { skip: target.skip }, async (t) => {
    const everything = target.name === 'server-everything';
    const server = await target.start(t);
    const gateway = await startGateway(t, { upstream: server.url, rules: [[target.dangerous.name, 'approve']], approval: workflow('10m') });
    const { code, stdout, stderr } = await run(HARNESS, [
      gateway.url, '--json', '--upstream', server.url, '--tasks', '25',
      '--tool', target.dangerous.name, '--arguments', JSON.stringify(target.dangerous.arguments),
      ...(everything ? ['--tool', 'simulate-research-query', '--arguments', '{"topic":"tides"}'] : []),
      '--plain-tool', target.harmless.name, '--arguments', JSON.stringify(target.harmless.arguments),
      '--approve-url', gateway.adminUrl, '--approve-token-env', 'DECIDER',
    ], { env: { DECIDER: ADMIN_TOKEN } });
    const { results, ...summary } = JSON.parse(stdout || '{}');
    assert.deepEqual(failures(results), []);
    // In front of a server with tasks no forwarded tool forbids them.
    const unseen = everything ? ['tools-call-forbidden-task-code', 'tools-call-forbidden-task-data'] : [];
    assert.deepEqual(skipped(results), unseen);
    assert.deepEqual(summary, { url: gateway.url, passed: NAMES.length - unseen.length, failed: 0, skipped: unseen.length });
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(results.find(({ name }) => name === 'tasks-list-cursors-end').detail, /^[2-9] pages$/);
    assert.deepEqual((await gateway.admin.list({ state: 'pending' })).tasks, []);
  });
}

// Against a stand-in that does everything right, and one thing wrong

const OPTIONS = ['--tool', 'write', '--tool', 'research', '--plain-tool', 'read', '--tasks', '5', '--patience', '60', '--timeout', '5000', '--approve-token', 'decider'];

async function standIn(t, options) {
  const server = await new StandIn(options).listen();
  defer(t, () => server.stop());
  return server;
}

/** All results against `server`, behind which there is another one like it as it should be. */
async function judged(t, server, more = [], upstream = {}) {
  const behind = await standIn(t, upstream);
  const words = [server.url, ...OPTIONS, '--approve-url', server.origin, '--upstream', behind.url, ...more];
  return check(parse(words, {}));
}

for (const [how, options] of [['as JSON', {}], ['as event streams', { sse: true }], ['with task status events', { advertise: true }], ['without a GET stream', { stream: false }]]) {
  test(`a server that does everything right passes everything: ${how}`, async (t) => {
    const server = await standIn(t, options);
    const results = await judged(t, server, [], options);
    assert.deepEqual([failures(results), skipped(results)], [[], []]);
    assert.deepEqual([...server.tasks.values()].filter(({ task }) => task.status === 'working'), []);
    assert.equal(server.sessions.size, 0);
  });
}

test('a tool that fails is no fault of the server', async (t) => {
  const server = await standIn(t);
  server.toolsFail = true;
  const results = await judged(t, server);
  assert.deepEqual([failures(results), skipped(results)], [[], []]);
  assert.equal(results.find(({ name }) => name === 'task-ends').detail, 'failed (it went wrong)');
});

/** Meddles with the reply to one method: `change(message, request)`. */
const onReply = (method, change) => (server) => {
  server.meddle = async (request, next) => {
    const reply = await next();
    if (request.rpc?.method === method && reply.message) change(reply.message, request, reply, server);
    return reply;
  };
};

const onResult = (method, change) => onReply(method, (message, request, reply, server) => message.result && change(message.result, request, server));
const onCapabilities = (change) => onResult('initialize', ({ capabilities }) => change(capabilities));
const onError = (method, change) => onReply(method, (message, request, reply) => message.error && change(message.error, request, reply));
const onTool = (change) => (server) => change(server.tools[2]);

/** Meddles with requests that `fits`: `change(request, next, server)` gives the reply. */
const onRequest = (fits, change) => (server) => {
  server.meddle = (request, next) => (fits(request, server) ? change(request, next, server) : next());
};

const onMethod = (method, fits, change) => onRequest((request, server) => request.rpc?.method === method && fits(request.rpc.params ?? {}, request, server), change);
const withoutHeader = (name) => onRequest(({ headers }) => name in headers, (request, next) => (delete request.headers[name], next()));
const withResult = (result) => ({ rpc }) => ({ status: 200, message: { jsonrpc: '2.0', id: rpc.id, result } });
const withError = (code, message = 'no') => ({ rpc }) => ({ status: 200, message: { jsonrpc: '2.0', id: rpc.id, error: { code, message } } });
const withTtl = (bad) =>
  onMethod('tools/call', ({ task }) => task?.ttl === bad, (request, next) => ((request.rpc.params.task.ttl = 1000), next()));

const entryOf = (server, { taskId }) => server.tasks.get(taskId);
const isForeign = (params, request, server) => entryOf(server, params) && entryOf(server, params).owner !== request.headers['mcp-session-id'];
const asOwner = (request, next, server) => ((request.headers['mcp-session-id'] = entryOf(server, request.rpc.params).owner), next());
const statusIs = (...statuses) => (params, request, server) => statuses.includes(entryOf(server, params)?.task.status);
const ownWorking = (params, request, server) => statusIs('working')(params, request, server) && !isForeign(params, request, server);
const ofNone = (params, request, server) => typeof params.taskId === 'string' && !entryOf(server, params);

/** For each requirement, the faults of a server that meets all the others; some requirements have several. */
const FAULTS = {
  'initialize-answered': [onResult('initialize', (result) => delete result.capabilities), onRequest(({ rpc }) => rpc?.method === 'initialize', () => ({ status: 404, text: 'not here' }))],
  'initialize-server-info': [onResult('initialize', ({ serverInfo }) => delete serverInfo.version)],
  'initialize-capabilities-objects': [onCapabilities((capabilities) => (capabilities.logging = true))],
  'initialize-version-kept': [onResult('initialize', (result) => (result.protocolVersion = '2025-06-18'))],
  'initialize-version-negotiated': [onResult('initialize', (result, { rpc }) => (result.protocolVersion = rpc.params.protocolVersion))],
  'initialized-accepted': [onMethod('notifications/initialized', () => true, () => ({ status: 200 }))],
  'notification-unanswered': [onMethod('notifications/cancelled', () => true, () => ({ status: 202, text: '{}' }))],
  'ping-empty': [onResult('ping', (result) => (result.pong = true))],
  'unknown-method-refused': [onError('compliance/no-such-method', (error) => (error.code = -32603)), onMethod('compliance/no-such-method', (_, { rpc }) => rpc.id !== 'an error', withResult({}))],
  'unreadable-json-refused': [
    onRequest(({ verb, rpc }) => verb === 'POST' && rpc === undefined, async (_, next) => ({ ...(await next()), status: 200 })),
    onRequest(({ verb, rpc }) => verb === 'POST' && rpc === undefined, async (_, next) => ({ status: 400, message: { ...(await next()).message, id: 1 } })),
  ],
  'batch-refused': [onRequest(({ rpc }) => Array.isArray(rpc), ({ rpc }) => ({ status: 200, message: rpc.map(({ id }) => ({ jsonrpc: '2.0', id, result: {} })) }))],
  'content-type-checked': [onRequest(({ headers }) => headers['content-type'] === 'text/plain', (request, next) => ((request.headers['content-type'] = 'application/json'), next()))],
  'version-header-checked': [withoutHeader('mcp-protocol-version')],
  'origin-checked': [withoutHeader('origin')],
  'get-stream-or-405': [onRequest(({ verb }) => verb === 'GET', () => ({ status: 404 })), onRequest(({ verb }) => verb === 'GET', () => ({ status: 200, text: 'hello' }))],
  'session-id-visible': [(server) => (server.newSession = () => `session ${server.sessions.size}`)],
  'session-ids-distinct': [(server) => (server.newSession = () => 'the-session')],
  'session-missing-refused': [onRequest(({ headers, rpc }) => rpc?.method === 'ping' && !headers['mcp-session-id'], withResult({}))],
  'session-unknown-refused': [onRequest(({ headers }) => headers['mcp-session-id']?.startsWith('00000000-'), withResult({}))],
  'session-ended-refused': [onRequest(({ verb }) => verb === 'DELETE', () => ({ status: 200 })), onRequest(({ verb }) => verb === 'DELETE', () => ({ status: 500 }))],
  'tools-capability': [onCapabilities((capabilities) => delete capabilities.tools)],
  'tools-list-shape': [onTool((tool) => (tool.title = null)), onResult('tools/list', ({ tools }) => (tools[0].execution = null)), onResult('tools/list', ({ tools }) => (tools[0] = 'read')), onResult('tools/list', (result) => (result.tools = {})), onMethod('tools/list', () => true, withError(-32603))],
  'tools-list-cursors-end': [onResult('tools/list', (result) => (result.nextCursor ??= null)), onResult('tools/list', (result) => (result.nextCursor = 'page-2'))],
  'tools-names-unique': [(server) => server.tools.push(server.tools[0])],
  'tools-input-schema': [onTool((tool) => delete tool.inputSchema.type), onTool((tool) => delete tool.inputSchema)],
  'tools-output-schema': [onTool((tool) => (tool.outputSchema = { type: 'array' }))],
  'tools-task-support-present': [(server) => server.tools.push({ name: 'bare', inputSchema: { type: 'object' } })],
  'tools-task-support-closed': [(server) => server.tools.push({ name: 'odd', inputSchema: { type: 'object' }, execution: { taskSupport: 'never' }, annotations: { taskSupport: 'never' } })],
  'tools-task-support-spellings': [onTool((tool) => delete tool.annotations.taskSupport), onTool((tool) => (tool.annotations.taskSupport = 'required'))],
  'tools-call-unknown-refused': [onMethod('tools/call', ({ name }) => name === 'compliance-no-such-tool', withResult({ content: [] }))],
  'tools-call-shape': [
    onMethod('tools/call', ({ name, task }) => name === 'read' && !task, withResult({})),
    onMethod('tools/call', ({ name, task }) => name === 'read' && !task, withResult({ content: [{ text: 'typeless' }] })),
  ],
  'tools-call-forbidden-task-code': [
    onMethod('tools/call', ({ name, task }) => name === 'read' && task, withError(-32601)),
    onMethod('tools/call', ({ name, task }) => name === 'read' && task, withError(-32010, 'Forbidden')),
    onMethod('tools/call', ({ name, task }) => name === 'read' && task, withResult({ content: [] })),
  ],
  'tools-call-forbidden-task-data': [onError('tools/call', ({ code, data }) => code === -32010 && delete data.reason), onError('tools/call', ({ code, data }) => code === -32010 && delete data.tool)],
  'tasks-capability-advertised': [onCapabilities((capabilities) => delete capabilities.tasks), onCapabilities((capabilities) => (capabilities.tasks = true))],
  'tasks-capability-objects': [onCapabilities(({ tasks }) => (tasks.requests.tools.call = true)), onCapabilities(({ tasks }) => (tasks.list = true)), onCapabilities(({ tasks }) => (tasks.cancel = true))],
  'tasks-capability-seed-spelling': [onCapabilities(({ tasks }) => delete tasks.requests['tools/call'])],
  'task-status-capability-shape': [onCapabilities((capabilities) => (capabilities.notifications = { tasks: { status: 'yes' } }))],
  'task-status-as-upstream': [(server) => (server.options.advertise = true)],
  'task-required-refused': [onMethod('tools/call', ({ name, task }) => name === 'write' && task === undefined, withResult({ content: [], isError: true }))],
  'task-required-code': [onError('tools/call', (error) => error.code === -32009 && (error.code = -32601)), onError('tools/call', (error) => error.code === -32009 && (error.message = 'Task required'))],
  'task-required-data': ['tool', 'reason', 'hint'].map((key) => onError('tools/call', ({ code, data }) => code === -32009 && delete data[key])),
  'task-malformed-refused': [
    ...['soon', 5, null, true].map((bad) => onMethod('tools/call', ({ task }) => task === bad, (request, next) => ((request.rpc.params.task = {}), next()))),
    onMethod('tools/call', ({ task }) => Array.isArray(task), (request, next) => ((request.rpc.params.task = {}), next())),
    onMethod('tools/call', ({ task }) => task === 'soon', withError(-32600)),
  ],
  'task-ttl-zero-refused': [withTtl(0)],
  'task-ttl-negative-refused': [withTtl(-1)],
  'task-ttl-string-refused': [withTtl('60000')],
  'task-ttl-fraction-refused': [withTtl(1000.5)],
  'task-id-returned': [
    onMethod('tools/call', ({ name, task }) => name === 'write' && task?.ttl === 60_000, withResult({ content: [] })),
    onMethod('tools/call', ({ name, task }) => name === 'write' && task?.ttl === 60_000, withError(-32601)),
  ],
  'task-create-nested': [onResult('tools/call', (result) => delete result.task), onResult('tools/call', ({ task }) => task && (task.statusMessage = null)), onResult('tools/call', ({ task }) => delete task?.ttl)],
  'task-create-flat': [onResult('tools/call', (result) => delete result.taskId), onResult('tools/call', (result) => delete result.status), onResult('tools/call', (result) => result.task && (result.status = 'input_required'))],
  'task-ttl-clamped': [onResult('tools/call', ({ task }, { rpc }) => task && rpc.params.task.ttl > 86_400_000 && (task.ttl = rpc.params.task.ttl))],
  'task-ttl-default': [onResult('tools/call', ({ task }, { rpc }) => task && rpc.params.task.ttl === undefined && (task.ttl = null))],
  'tasks-get-unknown-refused': [onMethod('tasks/get', ofNone, withError(-32603))],
  'tasks-result-unknown-refused': [onMethod('tasks/result', ofNone, withError(-32603)), onMethod('tasks/result', ofNone, withResult({ content: [] }))],
  'tasks-cancel-unknown-refused': [onMethod('tasks/cancel', ofNone, withError(-32603))],
  'tasks-get-without-id-refused': [onMethod('tasks/get', ({ taskId }) => taskId === undefined, withError(-32603))],
  'tasks-get-shape': [
    ...['status', 'ttl', 'createdAt', 'lastUpdatedAt'].map((key) => onResult('tasks/get', (task) => delete task[key])),
    onResult('tasks/get', (task) => (task.statusMessage = null)),
    onResult('tasks/get', (task) => (task.taskId = 'tg_another')),
    onResult('tasks/get', (task) => ((task.task = { ...task }), delete task.taskId)),
  ],
  'tasks-get-ttl-kept': [onResult('tasks/get', (task) => (task.ttl += 1))],
  'tasks-list-shape': [onResult('tasks/list', ({ tasks }) => delete tasks[0].lastUpdatedAt), onResult('tasks/list', (result) => delete result.tasks)],
  'tasks-list-complete': [onResult('tasks/list', (result, { rpc }) => rpc.params.cursor || result.tasks.shift())],
  'tasks-list-cursors-end': [
    onResult('tasks/list', (result) => (result.nextCursor ??= null)),
    onResult('tasks/list', (result, { rpc }) => (result.nextCursor ??= rpc.params.cursor)),
    onResult('tasks/list', ({ tasks }) => tasks.push(tasks[0])),
  ],
  'tasks-list-cursor-unknown-refused': [onMethod('tasks/list', ({ cursor }) => cursor === 'compliance-no-such-cursor', withResult({ tasks: [] }))],
  'tasks-result-blocks': [onMethod('tasks/result', ownWorking, withResult({ content: [] }))],
  'tasks-cancel-shape': [onResult('tasks/cancel', (task) => delete task.ttl), onResult('tasks/cancel', (task) => (task.status = 'working')), onMethod('tasks/cancel', ownWorking, withResult({}))],
  'tasks-methods-routed': ['tasks/get', 'tasks/cancel'].map((method) => onMethod(method, ({ taskId }) => taskId?.startsWith('up-'), withError(-32601))),
  'tasks-cancel-sticks': [onResult('tasks/get', (task) => task.status === 'cancelled' && (task.status = 'completed'))],
  'tasks-cancel-again-refused': [
    onMethod('tasks/cancel', statusIs('cancelled'), ({ rpc }, next, server) => withResult({ ...entryOf(server, rpc.params).task })({ rpc })),
    onMethod('tasks/cancel', statusIs('cancelled'), withError(-32600)),
  ],
  'tasks-result-ends-with-task': [onReply('tasks/result', (message, request, reply, server) => statusIs('cancelled')(request.rpc.params, request, server) && Object.assign(reply, { message: undefined, status: 200 }))],
  'task-ends': [onResult('tasks/get', (task) => task.status === 'completed' && (task.status = 'failed')), onResult('tasks/get', (task) => task.status === 'completed' && (task.status = 'working')), onMethod('tasks/result', statusIs('completed'), withError(-32603))],
  'tasks-result-shape': [onResult('tasks/result', (result) => delete result.content)],
  'tasks-result-related-task': [onResult('tasks/result', (result) => delete result._meta), onResult('tasks/result', ({ _meta }) => (_meta['io.modelcontextprotocol/related-task'].taskId = 'tg_another'))],
  'tasks-result-repeatable': [onResult('tasks/result', (result, request, server) => (result.at = server.requests.length))],
  'tasks-cancel-ended-refused': [onMethod('tasks/cancel', statusIs('completed'), ({ rpc }, next, server) => withResult({ ...entryOf(server, rpc.params).task })({ rpc }))],
  'task-rejected-fails': [onResult('tasks/get', (task) => task.status === 'failed' && delete task.statusMessage), onResult('tasks/get', (task) => task.status === 'failed' && (task.status = 'completed'))],
  'task-rejected-result': [onMethod('tasks/result', statusIs('failed'), withResult({ content: [] }))],
  'task-status-stream': [
    onResult('tasks/cancel', (task, request, server) => server.tell(task)),
    Object.assign((server) => ((server.options.advertise = true), (server.tell = () => {})), { upstream: { advertise: true } }),
    Object.assign((server) => Object.assign(server.options, { advertise: true, stream: false }), { upstream: { advertise: true } }),
  ],
  'isolation-tasks-get': [onMethod('tasks/get', isForeign, asOwner), onMethod('tasks/get', isForeign, withError(-32003))],
  'isolation-tasks-result': [onMethod('tasks/result', isForeign, withResult({ content: [] }))],
  'isolation-tasks-list': [onMethod('tasks/list', () => true, (request, next, server) => (request.headers['mcp-session-id'] === [...server.tasks.values()][0]?.owner ? next() : withResult({ tasks: [...server.tasks.values()].map(({ task }) => task) })(request)))],
  'isolation-tasks-cancel': [onMethod('tasks/cancel', isForeign, asOwner)],
  'isolation-gives-nothing-away': [onMethod('tasks/get', isForeign, withError(-32602, 'This task is not yours'))],
  'ids-echoed': [onReply('ping', (message) => message.id === 0 && (message.id = '0')), onReply('compliance/no-such-method', (message) => (message.id = null))],
  'envelope-strict': [onReply('ping', (message) => delete message.jsonrpc), onReply('ping', (message) => (message.took = 3)), onReply('ping', (message) => (message.error = null))],
  'errors-well-formed': [onError('tasks/list', (error) => delete error.message)],
  'errors-http-200': [onError('compliance/no-such-method', (error, request, reply) => (reply.status = 400))],
  'answers-content-type': [onReply('ping', (message, request, reply) => (reply.type = 'text/plain'))],
  'task-status-closed': [onResult('tools/call', (result) => result.task && (result.status = result.task.status = 'submitted'))],
  'task-poll-interval': [onResult('tasks/get', (task) => (task.pollInterval = 0)), onResult('tools/call', ({ task }) => task && (task.pollInterval = 0.5))],
  'task-timestamps': [onResult('tools/call', ({ task }) => task && (task.createdAt = 'yesterday')), onResult('tasks/get', (task) => (task.lastUpdatedAt = '2001-01-01T00:00:00Z'))],
  'task-ids-distinct': [(server) => (server.newTaskId = ((right) => (name, task) => (task.ttl === 60_000 ? right(name) : 'tg_the-task'))(server.newTaskId))],
};

test('every requirement has a server that misses it', () => assert.deepEqual(Object.keys(FAULTS).sort(), [...NAMES].sort()));

test('a server that does one thing wrong fails in that line and in no other', { concurrency: 8, timeout: 240_000 }, async (t) => {
  const cases = Object.entries(FAULTS).flatMap(([name, faults]) => faults.map((fault, n) => [faults.length > 1 ? `${name}, ${n + 1}` : name, name, fault]));
  await Promise.all(
    cases.map(([title, name, fault]) =>
      t.test(title, async (inner) => {
        const server = await standIn(inner);
        fault(server);
        const results = await judged(inner, server, [], fault.upstream);
        const failed = failures(results);
        assert.deepEqual(failed.map(([which]) => which), [name], JSON.stringify(failed, null, 1));
        assert.doesNotMatch(failed[0][1], /^unexpected/, 'a fault that the harness has words for');
      }),
    ),
  );
});

// The command

const command = (args, env) => run(HARNESS, args, { env });
const linesOf = (stdout, verdict) => stdout.split('\n').filter((line) => line.startsWith(`${verdict}  `));

test('a line for each requirement with its source, the sum below, and exit code 0', async (t) => {
  const server = await standIn(t);
  const { code, stdout, stderr } = await command([server.url, ...OPTIONS.slice(0, -2), '--approve-url', server.origin, '--approve-token-env=DECIDER'], { DECIDER: 'decider' });
  const lines = stdout.trimEnd().split('\n');
  assert.deepEqual(lines.slice(0, -2).map((line) => line.split(/ {2,}/).slice(0, 3)), requirements.map(({ name, source }) => [name === 'task-status-as-upstream' ? 'SKIP' : 'PASS', name, source]));
  assert.match(lines.find((line) => line.includes('tasks-capability-advertised')), /^PASS {2}tasks-capability-advertised +seed 002 §9\.3 Capability advertisement \/ MCP 2025-11-25 Lifecycle$/);
  assert.equal(lines.at(-1), `${NAMES.length - 1} passed, 0 failed, 1 skipped`);
  assert.deepEqual([code, stderr], [0, '']);
});

test('exit code 1 when something fails, with what came instead; what the server says stays on its line', async (t) => {
  const server = await standIn(t);
  onResult('initialize', ({ serverInfo }) => (serverInfo.name = 'PASS\n\u001b[2Jevil'))(server);
  server.tools[0].inputSchema = { type: 'array' };
  const { code, stdout } = await command([server.url]);
  assert.equal(code, 1);
  assert.deepEqual(linesOf(stdout, 'FAIL').map((line) => line.split(/ {2,}/).slice(1)), [['tools-input-schema', 'MCP 2025-11-25 Tools; schema Tool.inputSchema: type "object"', 'inputSchema of read is no schema with type "object": {"type":"array"}']]);
  assert.match(stdout, /initialize-server-info.*PASS \?\[2Jevil/);
  assert.match(stdout, /\n\d+ passed, 1 failed, \d+ skipped\n$/);
});

test('only what is named, or says that it is read-only, is called', async (t) => {
  const server = await standIn(t);
  const { code, stdout } = await command([server.url, '--json']);
  const called = new Set(server.requests.filter(({ rpc }) => rpc?.method === 'tools/call').map(({ rpc }) => rpc.params.name));
  assert.deepEqual([...called].sort(), ['compliance-no-such-tool', 'read']);
  assert.equal(code, 0);
  const created = JSON.parse(stdout).results.find(({ name }) => name === 'task-id-returned');
  assert.deepEqual([created.verdict, created.detail], ['SKIP', 'no tool that is called as a task is known to be harmless; name one with --tool']);
});

test('a read-only tool without arguments is called as a task unasked', async (t) => {
  const server = await standIn(t);
  server.tools[2].annotations.readOnlyHint = true;
  const { code, stdout } = await command([server.url, '--timeout', '2000']);
  assert.equal(code, 0);
  assert.match(stdout, /SKIP {2}task-ends .* the task is still "working" after 2000 ms; give a longer --timeout, or --approve-url/);
  assert.equal(linesOf(stdout, 'PASS').filter((line) => / task-id-returned .* up-[0-9a-f-]{36}$/.test(line)).length, 1);
});

test('arguments belong to the tool before them', async (t) => {
  const server = await standIn(t);
  await command([server.url, '--timeout', '2000', '--tool', 'write', '--arguments', '{"a":1}', '--plain-tool=read', '--arguments', '{"b":2}']);
  const calls = server.requests.filter(({ rpc }) => rpc?.method === 'tools/call');
  for (const [name, args] of [['write', { a: 1 }], ['read', { b: 2 }]]) {
    const own = calls.filter(({ rpc }) => rpc.params.name === name);
    assert.ok(own.length > 0 && own.every(({ rpc }) => JSON.stringify(rpc.params.arguments) === JSON.stringify(args)), name);
  }
});

test('without --approve-url a task that nobody decides is skipped over, not waited for', async (t) => {
  const server = await standIn(t);
  onResult('tasks/get', (task) => task.status === 'working' && (task.status = 'input_required'))(server);
  const { code, stdout } = await command([server.url, '--tool', 'write']);
  assert.equal(code, 0, stdout);
  assert.deepEqual(linesOf(stdout, 'SKIP').map((line) => line.split(/ {2,}/)).filter(([, name]) => /^task-(ends|rejected-fails)$/.test(name)).map(([, name, , why]) => [name, why]), [
    ['task-ends', 'the task waits for somebody to approve it; give --approve-url'],
    ['task-rejected-fails', 'nobody is there to reject a task; give --approve-url'],
  ]);
});

test('headers go with every request, from variables unseen; a second client has its own', async (t) => {
  const server = await standIn(t, { sessions: false });
  const args = [server.url, '--tool', 'write', '--header', 'X-Tenant: blue', '--header-env', 'Authorization=FIRST', '--timeout', '2000'];
  const alone = await command(args, { FIRST: 'Bearer secret-1' });
  assert.equal(alone.code, 0, alone.stdout);
  assert.match(alone.stdout, /SKIP {2}isolation-tasks-get .*both clients would have the same Authorization/);
  assert.ok(server.requests.every(({ headers }) => headers['x-tenant'] === 'blue' && headers.authorization === 'Bearer secret-1'));

  const both = await command([...args, '--other-header-env', 'Authorization=SECOND'], { FIRST: 'Bearer secret-1', SECOND: 'Bearer secret-2' });
  assert.equal(both.code, 0, both.stdout);
  assert.equal(linesOf(both.stdout, 'PASS').filter((line) => line.includes('  isolation-')).length, 5);
  assert.doesNotMatch(alone.stdout + both.stdout, /secret/);
});

test('a server without sessions, and without anything else to tell clients apart by', async (t) => {
  const { code, stdout } = await command([(await standIn(t, { sessions: false })).url, '--tool', 'write', '--timeout', '2000']);
  assert.equal(code, 0, stdout);
  const skips = linesOf(stdout, 'SKIP').map((line) => line.split(/ {2,}/)[1]);
  for (const name of NAMES.filter((name) => /^(session|isolation)-/.test(name))) assert.ok(skips.includes(name), name);
});

test('--mcp-only leaves out what only the seed asks for', async (t) => {
  const server = await standIn(t);
  for (const tool of server.tools) delete tool.annotations.taskSupport;
  onCapabilities(({ tasks }) => delete tasks.requests['tools/call'])(server);
  const all = await command([server.url, '--tool', 'write', '--timeout', '2000']);
  assert.deepEqual([all.code, linesOf(all.stdout, 'FAIL').map((line) => line.split(/ {2,}/)[1])], [1, ['tools-task-support-spellings', 'tasks-capability-seed-spelling']]);
  const less = await command([server.url, '--tool', 'write', '--timeout', '2000', '--mcp-only']);
  assert.equal(less.code, 0, less.stdout);
  assert.ok(linesOf(less.stdout, 'PASS').every((line) => !/^PASS {2}\S+ +seed 002[^/]*$/.test(line)));
});

test('a server that answers nonsense is judged to the end', async (t) => {
  for (const nonsense of [null, 7, 'x', [], {}, { tools: null, tasks: null, task: null }, { tools: [null], tasks: [null], content: [null], taskId: 5, task: { taskId: 6 } }]) {
    const server = await standIn(t);
    onResult('initialize', ({ capabilities }) => (capabilities.tasks = { list: {}, cancel: {}, requests: {} }))(server);
    const initialize = server.meddle;
    server.meddle = (request, next) => (request.rpc?.id === undefined || request.rpc.method === 'initialize' ? initialize(request, next) : withResult(nonsense)(request));
    const results = await check(parse([server.url, '--tool', 'write', '--timeout', '5000'], {}));
    assert.equal(results.length, NAMES.length);
    assert.ok(failures(results).length > 5, JSON.stringify(nonsense));
    for (const [name, detail] of failures(results)) assert.doesNotMatch(detail, /^unexpected/, `${name} of ${JSON.stringify(nonsense)}`);
  }
});

test('exit code 2: nobody there, nobody let in, no answer', async (t) => {
  const nobody = await command([`http://127.0.0.1:${await freePort()}/mcp`]);
  assert.deepEqual([nobody.code, nobody.stdout], [2, '']);
  assert.match(nobody.stderr, /^conformance: http:\S+ cannot be reached: .*ECONNREFUSED/);

  const server = await standIn(t);
  server.meddle = () => ({ status: 401 });
  const stranger = await command([server.url]);
  assert.deepEqual([stranger.code, stranger.stdout], [2, '']);
  assert.match(stranger.stderr, /refuses initialize with HTTP 401; give credentials with --header-env/);

  server.meddle = () => new Promise(() => {});
  const silent = await command([server.url, '--timeout', '200']);
  assert.deepEqual([silent.code, silent.stdout], [2, '']);
  assert.match(silent.stderr, /cannot be reached: no answer to POST within 200 ms/);
});

test('exit code 2: wrong usage, said without repeating a secret', async () => {
  const url = 'http://127.0.0.1:1/mcp';
  const wrong = [
    [['--json'], 'no URL is given'],
    [['mcp'], 'mcp is not a URL'],
    [['ftp://host/mcp'], 'ftp://host/mcp is neither http: nor https:'],
    [[url, url], `${url} is one URL too many`],
    [[url, '--frobnicate'], '--frobnicate is not an option'],
    [[url, '--tool'], '--tool needs a value'],
    [[url, '--arguments', '{}'], '--arguments has to follow --tool or --plain-tool'],
    [[url, '--tool', 'x', '--arguments', '[]'], '--arguments is no JSON object'],
    [[url, '--tasks', '0'], '--tasks is a positive number: 0'],
    [[url, '--header', 'secret'], "--header is 'Name: value'"],
    [[url, '--header-env', 'Authorization=NOT_SET_ANYWHERE'], 'the variable NOT_SET_ANYWHERE is not set'],
    [[url, '--approve-token', 'secret'], 'a token for approving needs --approve-url'],
  ];
  for (const [args, message] of wrong) {
    assert.deepEqual(await command(args), { code: 2, signal: null, stdout: '', stderr: `conformance: ${message}; see --help\n` }, args.join(' '));
  }
});

test('--help names every option, and is no failure', async () => {
  const { code, stdout, stderr } = await command(['--help']);
  assert.deepEqual([code, stderr], [0, '']);
  for (const option of ['--tool', '--arguments', '--plain-tool', '--approve-url', '--approve-token', '--approve-token-env', '--upstream', '--header', '--header-env', '--other-header', '--other-header-env', '--tasks', '--ttl', '--patience', '--timeout', '--mcp-only', '--json']) {
    assert.match(stdout, new RegExp(`^ +${option}[ ,]|, ${option}$`, 'm'), option);
  }
});
