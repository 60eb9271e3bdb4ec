// Hostile or broken peers: nothing reaches upstream unjudged, no client is taken for another, and neither a client that
// stops reading nor an upstream that never stops talking takes the gateway down.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { workflow } from './lib/gateway.mjs';
import { exchange, open, socketTo } from './lib/http.mjs';
import { scene } from './lib/scene.mjs';
import { tool, TASKS } from './lib/upstream.mjs';
import { signal, until, within } from './lib/wait.mjs';

const stage = (t, { upstream, ...more } = {}) =>
  scene(t, { rules: [['delete_*', 'approve'], ['drop_*', 'deny']], approval: workflow('10m'), upstream: { tools: [tool('delete_user'), tool('drop_table'), tool('read')], ...upstream }, ...more });

/** A whole HTTP request as text; the answer's status once its head is there. */
async function raw(t, gateway, text) {
  const socket = await socketTo(gateway.port);
  t.after(() => socket.destroy());
  socket.write(text);
  const head = await until(() => /^HTTP\/1\.1 (\d+)[^]*?\r\n\r\n/.exec(socket.received), () => `an answer; it sent ${socket.received}`);
  return { status: Number(head[1]), socket };
}

const post = (headers, body) =>
  `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers.map((h) => `${h}\r\n`).join('')}\r\n${body}`;

const callOf = (name, id = 1) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {} } });

test('a name without end, of nothing but what a rule looks for, holds nobody up', async (t) => {
  const { upstream, connect } = await stage(t, { rules: [['*_delete', 'deny'], ['*lete?', 'deny']] });
  const [client, other] = [await connect({ token: 'A' }), await connect({ token: 'B' })];
  const long = client.result('tools/call', { name: `${'_delete'.repeat(40_000)}xy` });
  assert.ok((await other.result('tools/call', { name: 'read' })).content);
  assert.ok((await long).content);
  assert.equal((await client.error('tools/call', { name: '_delete'.repeat(40_000) })).code, -32014);
  assert.equal(upstream.calls.length, 2);
});

test('a word of megabytes makes no line of megabytes in the log', async (t) => {
  const { gateway, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  const long = `${'ab'.repeat(8191)}\u20ac${'c'.repeat(3_000_000)}`;
  assert.equal((await client.error(long)).code, -32601);
  const { method } = await gateway.logged(/^Unknown method refused$/);
  assert.equal(method, `${'ab'.repeat(8191)}... (${Buffer.byteLength(long)} bytes)`, 'cut between two characters');
  await client.notify('tools/call', { name: `drop_${long}` });
  await gateway.logged(/^A tools\/call without id was dropped$/);
  assert.ok(gateway.child.stderr.length < 200_000, `${gateway.child.stderr.length} characters`);
});

// ---- upstream gets the judged bytes ----

test('a body in another charset or coding than the one it was judged in is refused', async (t) => {
  const { gateway, upstream, connect } = await stage(t);
  const client = await connect();
  // In UTF-7 "+ACI-" is a quote: a server that believes the charset would read a second, later name.
  const smuggled = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","x":"+ACI-,+ACI-name+ACI-:+ACI-drop_table"}}';
  const session = `mcp-session-id: ${client.session}`;
  const refused = [
    ['content-type: application/json; charset=utf-7'],
    ['content-type: application/json;charset="UTF-16"'],
    ['content-type: application/json; a=b ; charset=ibm037'],
    ['content-type: application/json', 'content-type: application/json; charset=utf-7'],
    ['content-type: application/json', 'content-encoding: deflate'],
  ];
  for (const headers of refused) {
    const { status } = await raw(t, gateway, post([session, ...headers], smuggled));
    assert.ok(status === 415 || status === 400, `${headers}: ${status}`);
  }
  assert.equal(upstream.calls.length, 0);
  for (const type of ['application/json', 'application/json; charset=utf-8', 'application/json; charset="UTF-8"', 'Application/JSON ;charset=utf8'])
    assert.equal((await raw(t, gateway, post([session, `content-type: ${type}`], callOf('read')))).status, 200, type);
  assert.equal(upstream.calls.length, 4);
});

test('a body of a GET or DELETE does not go up', async (t) => {
  const { gateway, upstream, connect } = await stage(t);
  const client = await connect();
  for (const method of ['GET', 'DELETE']) {
    const body = callOf('drop_table');
    const socket = await socketTo(gateway.port);
    t.after(() => socket.destroy());
    socket.write(`${method} /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nmcp-session-id: ${client.session}\r\nX-HTTP-Method-Override: POST\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    const seen = await upstream.received((r) => r.method === method);
    assert.equal(seen.text, '', method);
  }
});

// ---- identities ----

test('a header that says who asks is given once or the request is refused', async (t) => {
  const { gateway, connect } = await stage(t);
  const victim = await connect({ token: 'victim' });
  const { taskId } = await victim.createTask('delete_user');
  const thief = await connect({ token: 'thief' });
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { taskId } });
  const attempts = [
    [`mcp-session-id: ${victim.session}`, `mcp-session-id: ${thief.session}`, 'authorization: Bearer thief'],
    [`mcp-session-id: ${thief.session}`, 'authorization: Bearer victim', 'authorization: Bearer thief'],
  ];
  for (const headers of attempts) {
    const { status, socket } = await raw(t, gateway, post(['content-type: application/json', ...headers], body));
    assert.equal(status, 400, socket.received);
  }
});

test('Connection does not take away what says who asks', async (t) => {
  const { gateway, upstream, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  await raw(t, gateway, post(['content-type: application/json', `mcp-session-id: ${client.session}`, 'authorization: Bearer A', 'connection: mcp-session-id, authorization, x-hop', 'x-hop: 1'], callOf('read')));
  assert.equal(upstream.calls[0].headers['mcp-session-id'], client.session);
  assert.equal(upstream.calls[0].headers.authorization, 'Bearer A');
  assert.equal(upstream.calls[0].headers['x-hop'], undefined);
});

test('only what upstream checks vouches for a session and token', async (t) => {
  const { gateway, upstream, connect } = await stage(t);
  const victim = await connect({ token: 'victim' });
  const { taskId } = await victim.createTask('delete_user');
  const thief = { 'mcp-session-id': victim.session, authorization: 'Bearer thief' };
  // Upstream refuses the thief, but not where it looks at no credentials.
  upstream.authorize = (r) => (r.headers.authorization === 'Bearer thief' && r.rpc?.method !== 'initialize' ? 401 : undefined);
  upstream.onHttp = (r, reply) => r.path.startsWith('/.well-known/') && (reply.http(200, { 'content-type': 'application/json' }, '{}'), true);
  const metadata = await exchange(`${gateway.origin}/.well-known/oauth-protected-resource`, { headers: thief });
  assert.equal(metadata.status, 200);
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'thief', version: '1' } };
  await victim.send('initialize', params, { headers: thief });
  const answer = await victim.send('tasks/get', { taskId }, { headers: thief });
  assert.equal(answer.status, 401, answer.text);
});

test('a session that has ended is not accepted any more', async (t) => {
  const { upstream, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  assert.equal((await client.delete()).status, 200);
  assert.equal((await client.send('tasks/get', { taskId })).status, 404);
  assert.equal(upstream.of('ping').length, 1);
});

test('a redirect is no acceptance', async (t) => {
  const { upstream, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  upstream.authorize = (r) => (r.headers.authorization === 'Bearer B' ? 302 : undefined);
  const answer = await client.send('tasks/get', { taskId }, { headers: { authorization: 'Bearer B' } });
  assert.deepEqual([answer.status, answer.message?.error?.code], [200, -32000], answer.text);
});

test('nobody who gives no name hears of the tasks of others who give none', async (t) => {
  const { admin, upstream, raw: client } = await stage(t, { upstream: { sessions: false, capabilities: { tools: {}, tasks: TASKS, notifications: { tasks: { status: true } } } } });
  const [one, other] = [client(), client()];
  await one.connect();
  await other.connect();
  const stream = await other.listen();
  await until(() => upstream.getStreams.size > 0, 'the stream upstream');
  const { taskId } = await one.createTask('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  upstream.push({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'last' } });
  await stream.message((m) => m.params?.data === 'last');
  assert.ok(!stream.raw.includes(taskId), stream.raw);
});

test('identity: session without a session is anonymous, and lists nothing', async (t) => {
  const { raw: client } = await stage(t, { source: { identity: 'session' }, upstream: { sessions: false } });
  const one = client({ token: 'A' });
  await one.connect();
  const { taskId } = await one.createTask('delete_user');
  assert.equal((await one.result('tasks/get', { taskId })).taskId, taskId);
  const other = client({ token: 'B' });
  await other.connect();
  assert.deepEqual((await other.result('tasks/list', {})).tasks, []);
});

// ---- one approval, one execution ----

test('an approval given by many at once on four workers is executed once', async (t) => {
  const { admin, upstream, connect } = await stage(t, { config: { workers: 4 } });
  const clients = await Promise.all(Array.from({ length: 8 }, () => connect({ token: 'same' })));
  for (let round = 0; round < 10; round++) {
    const { taskId } = await clients[0].createTask('delete_user', { round });
    // Every client has the owner's credentials, on any worker.
    const results = Promise.all(clients.map((c) => c.call('tasks/result', { taskId })));
    await Promise.all(clients.map((c) => c.result('tasks/get', { taskId })));
    const decisions = await Promise.all(Array.from({ length: 6 }, (_, i) => admin.decide(i === 5 ? 'cancel' : 'approve', taskId)));
    assert.ok(decisions.filter((d) => d.status === 200).length >= 1);
    const task = await admin.inState(taskId, 'completed', 'cancelled');
    const answers = await results;
    const sent = upstream.calls.filter((c) => c.rpc.params.arguments.round === round).length;
    assert.ok(sent <= 1, `${sent} executions`);
    assert.ok(answers.every((a) => (a.result !== undefined) === (task.state === 'completed')), task.state);
  }
});

test('a call that upstream runs as its own task is not begun again when a poll is refused', async (t) => {
  const { admin, upstream, connect } = await stage(t, { upstream: { tools: [tool('delete_user', { support: 'required' })], capabilities: { tools: {}, tasks: TASKS } } });
  upstream.handlers['tasks/get'] = ({ reply }) => reply.http(401, { 'content-type': 'text/plain' }, 'expired');
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  const task = await admin.inState(taskId, 'failed', 'approved');
  assert.equal(task.state, 'failed', task.statusMessage);
  await client.send('tasks/get', { taskId });
  assert.equal(upstream.calls.length, 1);
});

// ---- peers that talk too much or read too little ----

test('progress that comes while a wait begins does no harm', async (t) => {
  const { admin, upstream, connect } = await stage(t);
  const call = signal();
  upstream.handlers['tools/call'] = ({ reply }) => call.fire(reply.sse());
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  const stream = await call.promise;
  let n = 0;
  const flood = setInterval(() => {
    for (let i = 0; i < 20; i++) stream.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'x', progress: ++n } });
  }, 1);
  t.after(() => clearInterval(flood));
  const waits = Array.from({ length: 200 }, (_, i) => client.send('tasks/result', { taskId, _meta: { progressToken: `w${i}` } }));
  await upstream.received('tools/call');
  await until(async () => n > 400, 'progress');
  clearInterval(flood);
  await client.result('tasks/get', { taskId });
  stream.event({ jsonrpc: '2.0', id: upstream.calls[0].rpc.id, result: { content: [] } });
  stream.end();
  for (const wait of waits) assert.deepEqual((await wait).message.result.content, []);
});

test('a stream that ends in the middle of a long event, read slowly, ends', async (t) => {
  const { gateway, upstream, connect } = await stage(t);
  const client = await connect();
  upstream.handlers['tools/call'] = ({ reply }) => {
    const stream = reply.sse();
    stream.raw(`data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"${'x'.repeat(700_000)}"}}`);
    stream.end();
  };
  const answers = await Promise.all(Array.from({ length: 4 }, () => client.post(callOf('read'))));
  for (const answer of answers) assert.ok((await answer.bytes()).length >= 700_000);
  assert.equal((await exchange(`${gateway.adminUrl}/health`)).status, 200);
});

// A sanitizer keeps freed memory for a while: here that would look like a leak.
const measured = { env: { ASAN_OPTIONS: [process.env.ASAN_OPTIONS, 'quarantine_size_mb=1'].filter(Boolean).join(':') } };
const memoryOf = (pid) => Number(/^VmRSS:\s+(\d+) kB/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;

test('a waiting client that does not read makes nothing pile up', async (t) => {
  const { admin, gateway, upstream, connect } = await stage(t, measured);
  const call = signal();
  upstream.handlers['tools/call'] = ({ reply }) => call.fire(reply.sse());
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  const stream = await call.promise;
  const lazy = await client.post({ jsonrpc: '2.0', id: 9, method: 'tasks/result', params: { taskId, _meta: { progressToken: 'p' } } });
  lazy.message.pause();
  const before = memoryOf(gateway.child.pid);
  const padding = 'y'.repeat(60_000);
  for (let n = 1; n <= 2000; n++) {
    const more = stream.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'x', progress: n, message: padding } });
    if (!more) await within(new Promise((resolve) => stream.response.once('drain', resolve)), 'the gateway to read on', 30_000);
  }
  await client.result('tasks/get', { taskId });
  const grown = memoryOf(gateway.child.pid) - before;
  assert.ok(grown < 100e6, `${(grown / 1e6).toFixed(0)} MB for 120 MB of progress`);
  lazy.abort();
});

test('an upstream that asks without end during an execution is not answered without end', async (t) => {
  const { admin, upstream, connect } = await stage(t);
  upstream.handlers['tools/call'] = ({ reply, id }) => {
    const stream = reply.sse();
    for (let n = 0; n < 3000; n++) stream.event({ jsonrpc: '2.0', id: n, method: 'sampling/createMessage', params: {} });
    stream.event({ jsonrpc: '2.0', id, result: { content: [] } });
    stream.end();
  };
  upstream.onHttp = (r, reply) => r.rpc?.error !== undefined && (reply.http(202), true);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'completed');
  await client.result('tasks/get', { taskId });
  const refusals = upstream.requests.filter((r) => r.rpc?.error !== undefined);
  assert.ok(refusals.length > 0 && refusals.length <= 200, `${refusals.length} refusals`);
});

test('lists kept for bad times are bounded, whatever cursors clients make up', async (t) => {
  const { gateway, upstream, connect } = await stage(t, measured);
  upstream.handlers['tools/list'] = ({ reply }) => reply.result({ tools: [] });
  const client = await connect({ token: 'A' });
  await client.result('tools/list', {});
  const before = memoryOf(gateway.child.pid);
  for (let n = 0; n < 100; n++) await client.result('tools/list', { cursor: `${n}${'c'.repeat(3_000_000)}` });
  const grown = memoryOf(gateway.child.pid) - before;
  assert.ok(grown < 200e6, `${(grown / 1e6).toFixed(0)} MB for 300 MB of cursors`);
});

test('a list that is spelled or framed oddly is filtered all the same, or refused', async (t) => {
  const { upstream, connect } = await stage(t, { expose: { mode: 'blocklist', tools: ['drop_*'] } });
  const client = await connect({ token: 'A' });
  const list = '{"tools":[{"name":"drop_table","inputSchema":{"type":"object"}},{"name":"read","inputSchema":{"type":"object"}}]}';
  const reply = (message, status = 200) => {
    upstream.handlers['tools/list'] = ({ reply: r, id }) => {
      const text = message(id);
      if (status !== 200) return r.http(status, { 'content-type': 'application/json' }, text);
      const stream = r.sse();
      stream.event(text);
      stream.end();
    };
  };
  reply((id) => `{"jsonrpc":"2.0","id":"${id.replace('\u00e9', '\\u00e9')}","result":${list}}`);
  let answer = await client.send('tools/list', {}, { id: 'caf\u00e9' });
  assert.deepEqual(answer.message.result.tools.map((tool) => tool.name), ['read']);
  reply((id) => `{"jsonrpc":"2.0","id":${id},"result":${list}}`, 201);
  answer = await client.send('tools/list', {});
  assert.deepEqual(answer.message.result.tools.map((tool) => tool.name), ['read']);
  reply((id) => `{"jsonrpc":"2.0","id":${id},"id":${id},"result":${list}}`);
  answer = await client.send('tools/list', {});
  assert.equal(answer.message.error.code, -32002);
  assert.ok(!answer.text.includes('drop_table'));
});

test('events by the hundred thousand hold nobody else up', async (t) => {
  const { gateway, upstream, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  upstream.handlers['tools/list'] = ({ reply, id }) => {
    const stream = reply.sse();
    stream.raw(':\n\n'.repeat(100_000));
    stream.event({ jsonrpc: '2.0', id, result: { tools: [] } });
    stream.end();
  };
  const list = client.result('tools/list', {});
  let longest = 0;
  for (let n = 0; n < 20; n++) {
    const begun = gateway.child.worked;
    await exchange(`${gateway.adminUrl}/health`);
    longest = Math.max(longest, gateway.child.worked - begun);
  }
  await list;
  assert.ok(longest < 1500, `${longest} ms of work before an answer`);
});

// ---- the end of the process ----

test('a wait that begins while the process ends is answered like the others', async (t) => {
  const { gateway, upstream, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  const { taskId } = await client.createTask('delete_user');
  const ping = signal();
  upstream.handlers.ping = ({ reply }) => ping.fire(reply);
  const wait = client.send('tasks/result', { taskId }, { headers: { authorization: 'Bearer B' } });
  const reply = await ping.promise;
  const begun = performance.now();
  const stopped = gateway.stop();
  await gateway.logged(/Shutting down/);
  reply.result({});
  assert.equal((await wait).message.error.code, -32013);
  await stopped;
  assert.ok(performance.now() - begun < 10_000);
});

test('a GET whose stream upstream has not opened yet does not hold the end up', async (t) => {
  const { gateway, upstream, connect } = await stage(t);
  const client = await connect({ token: 'A' });
  upstream.onHttp = (r) => r.method === 'GET';
  const waiting = client.listen().catch((error) => error);
  await upstream.received((r) => r.method === 'GET');
  const begun = performance.now();
  await gateway.stop();
  assert.ok(performance.now() - begun < 10_000, `${performance.now() - begun} ms`);
  await waiting;
});

test('SIGTERM while upstream is still being asked for its tools', async (t) => {
  const asked = signal();
  const { gateway } = await stage(t, { upstream: { handlers: { initialize: () => asked.fire() } } });
  await asked.promise;
  await gateway.stop();
});

test('SIGTERM and SIGHUP under operators and clients that never stop asking', async (t) => {
  const { admin, gateway, connect } = await stage(t, { config: { workers: 2 } });
  const client = await connect({ token: 'A' });
  let over = false;
  const forEver = async (step) => {
    while (!over) await step().catch(() => {});
  };
  const work = [
    ...Array.from({ length: 4 }, () => forEver(async () => (await admin.list({ state: 'pending', limit: 1 })).tasks.forEach(({ id }) => admin.decide('approve', id).catch(() => {})))),
    ...Array.from({ length: 4 }, () => forEver(() => client.send('tasks/list', {}))),
    ...Array.from({ length: 4 }, () => forEver(() => client.send('tools/call', { name: 'delete_user', task: {} }))),
    forEver(async () => open(gateway.url, { headers: { accept: 'text/event-stream', 'mcp-session-id': client.session, authorization: 'Bearer A' } }).then((r) => r.abort())),
    forEver(async () => (gateway.hangUp(), pause(5))),
  ];
  await until(async () => (await admin.list({ state: 'completed' })).tasks.length > 5, 'some work');
  await gateway.stop();
  over = true;
  await Promise.all(work);
});
