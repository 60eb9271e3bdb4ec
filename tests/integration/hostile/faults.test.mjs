// Faults around the gateway: upstreams, the store's file, signals, and the process itself. A clear error, no call twice, no task lost.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';
import { Child } from '../lib/child.mjs';
import { BINARY, Gateway, temporaryFolder } from '../lib/gateway.mjs';
import { defer } from '../lib/lifetime.mjs';
import { freePort } from '../lib/ports.mjs';
import { generator, seed } from '../lib/random.mjs';
import { until, within } from '../lib/wait.mjs';
import { hostileScene, lives } from './stage.mjs';

const json = (text) => `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
const stream = (text) => `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n${text}`;

/** The bytes of an upstream in answer to a call; `hang`: it then stays silent, else it closes. */
const stages = {
  'before any byte': ['', 'hang'],
  'in the status line': ['HTTP/1.1 2', 'hang'],
  'in the headers': ['HTTP/1.1 200 OK\r\nContent-Type: appl', 'hang'],
  'after the headers': ['HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n', 'hang'],
  'in the body': [json('{"jsonrpc":"2.0","id":1,"result":{}}').slice(0, -10), 'hang'],
  'in an event': [stream('data: {"jsonrpc":"2.0",'), 'hang'],
  'before any byte, then gone': [''],
  'in the headers, then gone': ['HTTP/1.1 200 OK\r\nContent-Ty'],
  'in the body, then gone': [json('{"jsonrpc":"2.0","id":1,"result":{}}').slice(0, -10)],
  'in an event, then gone': [stream('data: {"jsonrpc":"2.0",')],
};

const garbage = {
  noise: ['\x00\x01\x02\xff\xfe garbage\r\n\r\n'],
  'another protocol': ['SSH-2.0-OpenSSH_9.2\r\n'],
  'a status of 99': ['HTTP/1.1 99 Low\r\nContent-Length: 0\r\n\r\n'],
  'a status of four digits': ['HTTP/1.1 2000 High\r\nContent-Length: 0\r\n\r\n'],
  'no JSON': [json('<html>')],
  'an empty body': [json('')],
  "another request's answer": [json('{"jsonrpc":"2.0","id":"other","result":{}}')],
  'a batch': [json('[{"jsonrpc":"2.0","id":1,"result":{}}]')],
  'duplicate keys': [json('{"jsonrpc":"2.0","id":1,"result":{},"result":{"content":[]}}')],
  'a million brackets': [json('['.repeat(1_000_000))],
  'bad UTF-8': ['HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n"\xff\xfe"'],
  'a negative length': ['HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: -5\r\n\r\n{}'],
  'two lengths': ['HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x'],
  'a chunk that wraps': ['HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}'],
  'headers without end': [`HTTP/1.1 200 OK\r\n${'X-A: b\r\n'.repeat(50_000)}`],
  'a redirect to the admin port': ['HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:7469/\r\nContent-Length: 0\r\n\r\n'],
  'a switch of protocols': ['HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'],
  'events that are none': [stream('event: message\ndata: not json\n\n: x\n\ndata\n\n')],
};

/** Puts a server that answers tools/call with raw bytes between the gateway and the scripted upstream. */
async function rawAnswers(t, upstream) {
  const state = { answer: null };
  upstream.onHttp = (request, reply) => {
    if (state.answer === null || request.rpc?.method !== 'tools/call') return false;
    const [text, hang] = state.answer;
    const { socket } = reply.response;
    socket.write(Buffer.from(text, 'latin1'));
    if (!hang) socket.end();
    return true;
  };
  return state;
}

async function showsFault(t, cases, timeouts) {
  const stage = await hostileScene(t, { env: timeouts });
  const { admin, upstream, connect } = stage;
  const client = await connect();
  const state = await rawAnswers(t, upstream);
  await Promise.all(
    Object.entries(cases).map(async ([what, answer], i) => {
      // Forwarded calls one after the other would take a time-out each: one client each, all at once.
      const own = await connect({ token: `t${i}` });
      return { what, answer, own };
    }),
  ).then(async (all) => {
    for (const { what, answer, own } of all) {
      state.answer = answer;
      const forwarded = own.send('tools/call', { name: 'read' }, { id: 1, deadline: 15_000 }).then((a) => a, (error) => ({ error }));
      await upstream.received((r) => r.rpc?.method === 'tools/call' && r.headers.authorization === own.headers.authorization);
      state.answer = null;
      const { taskId } = await own.createTask('delete_user');
      state.answer = answer;
      await admin.approve(taskId);
      await upstream.received((r) => r.rpc?.params?.name === 'delete_user' && r.headers.authorization === own.headers.authorization);
      state.answer = null;
      const [result, task] = await Promise.all([forwarded, admin.inState(taskId, 'failed', 'approved', 'expired')]);
      // A reply to a forwarded call is upstream's word and goes down as it is; an executed one is read.
      if (what !== 'duplicate keys') assert.ok(!result.message?.result?.content, `${what}: a result came out of nothing: ${result.text}`);
      assert.ok(task.state === 'failed', `${what}: ${task.state} (${task.statusMessage})`);
      const executions = upstream.calls.filter((r) => r.rpc.params.name === 'delete_user' && r.headers.authorization === own.headers.authorization);
      assert.equal(executions.length, 1, `${what}: executed ${executions.length} times`);
    }
  });
  await lives(stage, client);
}

test('upstream hanging or leaving at every stage', (t) => showsFault(t, stages, { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '1', THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '1' }));

test('upstream answering garbage', (t) => showsFault(t, garbage, { THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: '2', THOUGHTGATE_EXECUTION_TIMEOUT_SECS: '2' }));

test('an upstream that accepts no connection, or accepts and says nothing, at start', async (t) => {
  const silent = net.createServer(() => {});
  const port = await freePort();
  await new Promise((resolve) => silent.listen(port, '127.0.0.1', resolve));
  defer(t, () => silent.close());
  for (const url of [`http://127.0.0.1:${port}/mcp`, `http://127.0.0.1:${await freePort()}/mcp`, 'http://no-such-host.invalid/mcp']) {
    const gateway = new Gateway(temporaryFolder(t), { upstream: url });
    await gateway.start();
    assert.equal((await gateway.admin.get('/health')).status, 200, url);
    await gateway.stop();
  }
});

test('a store that is no database, a folder, or not to be opened: exit 1, said, and left as it is', async (t) => {
  const folder = temporaryFolder(t);
  const cases = {
    'garbage.db': (file) => fs.writeFileSync(file, Buffer.alloc(20_000, 'no database ')),
    'folder.db': (file) => fs.mkdirSync(file),
    'header.db': (file) => fs.writeFileSync(file, Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(8176, 0xff)])),
  };
  for (const [name, make] of Object.entries(cases)) {
    const file = `${folder}/${name}`;
    make(file);
    const before = fs.statSync(file).isFile() ? fs.readFileSync(file) : null;
    const gateway = new Gateway(temporaryFolder(t), { upstream: 'http://127.0.0.1:1/mcp', config: { store: { path: file } } });
    gateway.port = await freePort();
    gateway.adminPort = await freePort();
    const child = new Child(BINARY, ['serve', '--config', gateway.configPath], { env: gateway.environment(), cwd: gateway.folder, name: 'taskgate' });
    const exit = await within(child.exited, `${name}: the end`, 15_000);
    assert.equal(exit.code, 1, `${name}: ${child.output()}`);
    assert.ok(child.stderr.includes(file), child.stderr);
    child.assertNoSanitizerReport();
    if (before) assert.ok(before.equals(fs.readFileSync(file)), `${name} was changed`);
  }
});

test('a database that is overwritten under the gateway: creates fail closed, nothing runs, forwarding goes on', async (t) => {
  const stage = await hostileScene(t);
  const { gateway, upstream, connect } = stage;
  const client = await connect();
  const { taskId } = await client.createTask('delete_user');
  for (const name of fs.readdirSync(gateway.folder).filter((n) => n.startsWith('taskgate.db') && !n.endsWith('lock'))) {
    const fd = fs.openSync(`${gateway.folder}/${name}`, 'r+');
    fs.writeSync(fd, Buffer.alloc(fs.fstatSync(fd).size, 0xff), 0);
    fs.closeSync(fd);
  }
  for (let i = 0; i < 3; i++) {
    const answer = await client.send('tools/call', { name: 'delete_user', task: {} });
    assert.ok(answer.message.error || answer.message.result?.taskId, answer.text);
    await stage.admin.decide('approve', taskId);
  }
  assert.ok(upstream.calls.length <= 1, 'at most the approved task ran');
  await lives(stage, client);
});

test('a thousand tasks that expire in the same second', async (t) => {
  const stage = await hostileScene(t, { config: { limits: { pending_per_principal: 2000, pending_total: 2000 } } });
  const { admin, upstream, connect } = stage;
  const client = await connect({ token: 'A' });
  const ids = (await Promise.all(Array.from({ length: 1000 }, (_, i) => client.createTask('delete_user', { i }, { ttl: 2500 })))).map((x) => x.taskId);
  await until(async () => (await admin.list({ state: 'pending', limit: 1 })).tasks.length === 0, 'all of them to expire', { deadline: 20_000 });
  const states = await Promise.all([0, 1, 250, 500, 998, 999].map(async (i) => (await admin.task(ids[i])).state));
  assert.ok(states.every((state) => state === 'expired'), states.join());
  const late = await Promise.all(ids.slice(0, 50).map((id) => admin.decide('approve', id)));
  assert.ok(late.every((answer) => answer.status === 409));
  assert.equal(upstream.calls.length, 0);
  await lives(stage, client);
});

test('reload under load: no request is dropped', async (t) => {
  const stage = await hostileScene(t);
  const { gateway, connect } = stage;
  const clients = await Promise.all(Array.from({ length: 4 }, (_, i) => connect({ token: `t${i}` })));
  let over = false;
  let count = 0;
  const load = clients.map(async (client) => {
    while (!over) {
      await client.result('tools/call', { name: 'read' });
      assert.equal((await client.error('tools/call', { name: 'drop_table' })).code, -32014);
      count += 2;
    }
  });
  for (let i = 0; i < 10; i++) {
    const target = count + 20;
    gateway.writeConfig({ rules: [[`other_${i}`, 'forward'], ['delete_*', 'approve'], ['drop_*', 'deny']] });
    gateway.hangUp();
    await Promise.race([until(() => count >= target, 'more answers'), ...load]);
  }
  over = true;
  await Promise.all(load);
});

test('SIGTERM under load: waiting clients are told, what is in flight is answered, exit 0', async (t) => {
  const stage = await hostileScene(t);
  const { gateway, admin, connect } = stage;
  const client = await connect({ token: 'A' });
  const ids = (await Promise.all(Array.from({ length: 20 }, () => client.createTask('delete_user')))).map((x) => x.taskId);
  const waits = ids.map((taskId) => client.call('tasks/result', { taskId }));
  await until(async () => (await admin.list({ state: 'pending', limit: 50 })).tasks.length === 20, 'the tasks');
  const calls = Array.from({ length: 20 }, () => client.send('tools/call', { name: 'read' }).then((a) => a.message?.result !== undefined, () => 'refused'));
  await Promise.all(calls.slice(0, 1));
  const stopped = gateway.stop();
  for (const answer of await Promise.all(waits)) assert.equal(answer.error.code, -32013);
  assert.ok((await Promise.all(calls)).every((outcome) => outcome === true || outcome === 'refused'));
  await stopped;
});

// By hand: TASKGATE_CRASH_POINTS=200 node --test hostile/faults.test.mjs
const POINTS = Number(process.env.TASKGATE_CRASH_POINTS ?? 8);

test(`kill -9 at ${POINTS} random points under load: no task that a client saw is lost, none runs twice or unasked (TASKGATE_SEED=${seed})`, { timeout: 30_000 + POINTS * 3000 }, async (t) => {
  const stage = await hostileScene(t, { config: { limits: { pending_per_principal: 100_000, pending_total: 100_000 } } });
  const { gateway, admin, upstream, connect } = stage;
  const random = generator();
  const seen = new Map(); // id => {n, approved: was an approval ever asked for?}
  let n = 0;
  for (let point = 0; point < POINTS; point++) {
    const client = await connect({ token: `life-${point}` });
    let down = false;
    const forEver = async (step) => {
      while (!down) await step().catch(() => {});
    };
    const work = [
      ...Array.from({ length: 3 }, () =>
        forEver(async () => {
          const mark = ++n;
          const { taskId } = await client.createTask('delete_user', { n: mark });
          seen.set(taskId, { n: mark, approved: false });
        }),
      ),
      ...Array.from({ length: 2 }, () =>
        forEver(async () => {
          const waiting = [...seen].filter(([, task]) => !task.approved);
          const [id, task] = waiting[Math.floor(random() * waiting.length)] ?? [];
          if (!id) return client.result('tools/call', { name: 'read' });
          if (task.n % 3 === 0) return client.call('tasks/cancel', { taskId: id });
          task.approved = task.n % 3 === 1;
          return task.approved ? admin.approve(id) : client.result('tasks/get', { taskId: id });
        }),
      ),
    ];
    // A random moment: after so many bytes of a random life.
    await new Promise((resolve) => setTimeout(resolve, 20 + random() * 250));
    await gateway.kill9();
    down = true;
    client.close();
    await Promise.all(work);
    await gateway.launch();
  }
  const client = await connect({ token: 'after' });
  await until(async () => (await admin.list({ state: 'executing', limit: 1 })).tasks.length === 0, 'nothing left in executing');
  const runs = new Map();
  for (const call of upstream.calls) if (call.rpc.params.name === 'delete_user') runs.set(call.rpc.params.arguments.n, (runs.get(call.rpc.params.arguments.n) ?? 0) + 1);
  for (const [id, { n: mark, approved }] of seen) {
    const task = await admin.task(id);
    const count = runs.get(mark) ?? 0;
    assert.ok(count <= 1, `${id} ran ${count} times`);
    assert.ok(count === 0 || approved, `${id} ran although nobody approved it`);
    assert.ok(approved || ['pending', 'cancelled'].includes(task.state), `${id} is ${task.state} although nobody approved it`);
    assert.ok(task.state !== 'completed' || count === 1, `${id} is completed but never ran`);
    assert.equal(task.arguments.n, mark);
  }
  assert.ok(seen.size > POINTS, `only ${seen.size} tasks`);
  await lives(stage, client);
});
