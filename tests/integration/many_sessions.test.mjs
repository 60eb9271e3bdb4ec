// Clients that ask for streams that are not there, sessions that nobody ends, and the gateway's own ones, over simulated time.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { sample } from './lib/admin.mjs';
import { fastClockMissing, LeapingClock } from './lib/fast_clock.mjs';
import { temporaryFolder, workflow } from './lib/gateway.mjs';
import { exchange } from './lib/http.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const timed = { skip: fastClockMissing };
const PLAIN = { capabilities: {} };

async function leaping(t, options) {
  const clock = new LeapingClock(temporaryFolder(t));
  return { clock, ...(await scene(t, { ...options, env: { ...clock.environment, ...options.env } })) };
}

test('a server that answers GET with 405 is asked once a minute, by all sessions together, and clients get 405 meanwhile', timed, async (t) => {
  const { clock, upstream, gateway, connect, raw } = await leaping(t, {});
  upstream.onHttp = ({ method }, reply) => method === 'GET' && (reply.http(405, { allow: 'POST, DELETE' }), true);
  const brief = { ...PLAIN, keepAlive: false }; // a kept connection may end in a leap
  const clients = [await connect(brief), await connect(brief), await raw()];
  const gets = () => upstream.requests.filter(({ method }) => method === 'GET').length;
  const ask = async () => {
    for (const client of clients) {
      const { status, headers } = await exchange(gateway.url, { headers: { accept: 'text/event-stream', ...(client.session ? { 'mcp-session-id': client.session } : {}) } });
      assert.deepEqual([status, headers.allow], [405, 'POST, DELETE']);
    }
  };
  await ask();
  await ask();
  assert.equal(gets(), 1);
  clock.leap(59);
  await ask();
  assert.equal(gets(), 1);
  clock.leap(2);
  await ask();
  assert.equal(gets(), 2);
  // A server that has a stream now is asked by each client.
  clock.leap(61);
  upstream.onHttp = null;
  await clients[0].listen();
  await clients[1].listen();
  assert.equal(gets(), 4);
});

for (const refuses of [false, true]) {
  test(`the gateway's own sessions at a server${refuses ? ' that refuses to end any' : ''}: four at most over a day of changed lists, approved calls and new clients`, timed, async (t) => {
    const { clock, upstream, gateway, admin, connect } = await leaping(t, { rules: [['delete_*', 'approve']], approval: workflow('1h'), upstream: { tools: [tool('read'), tool('delete_user')] } });
    if (refuses) upstream.onHttp = ({ method }, reply) => method === 'DELETE' && (reply.http(405, { allow: 'GET, POST' }), true);
    const own = () => new Set(upstream.requests.filter(({ headers }) => !headers.authorization && upstream.liveSessions.has(headers['mcp-session-id'])).map(({ headers }) => headers['mcp-session-id'])).size;
    const lists = () => upstream.of('tools/list').filter(({ isGatewaysOwn }) => isGatewaysOwn).length;
    const hours = refuses ? 4 : 1; // between two changes of the list
    for (let hour = 0; hour < 24; hour += hours) {
      clock.leap(hours * 3600);
      await admin.get('/health');
      const client = await connect({ token: `t${hour}` });
      await client.listen();
      await upstream.received(({ method }) => method === 'GET', hour / hours + 1);
      const before = lists();
      upstream.tools.push(tool(`new_${hour}`));
      upstream.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
      await until(() => lists() > before, 'the list to be fetched again');
      const { taskId } = await client.createTask('delete_user', { hour });
      await admin.approve(taskId);
      await admin.inState(taskId, 'completed');
      assert.ok(own() <= 4, `${own()} sessions of the gateway's own`);
      client.close();
    }
    clock.leap(3600);
    if (refuses) {
      // A session that the server has forgotten is replaced by one other.
      upstream.liveSessions.clear();
      upstream.tools.pop();
      await (await connect({ token: 'last' })).listen();
      await upstream.received(({ method }) => method === 'GET', 24 / hours + 1);
      const before = lists();
      upstream.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
      await until(() => lists() >= before + 2 && own() === 1, 'the list to be fetched in a new session');
    } else {
      await until(() => own() === 0, 'the last of them to be ended');
      assert.ok(upstream.of('initialize').filter(({ rpc }) => rpc.params.clientInfo.name === 'taskgate').length > 4, 'that there were some');
    }
    await gateway.kill9(); // the exit handlers of a process whose clock leapt by a day may wait for ever
  });
}

test('10,000 abandoned sessions of one token take less than 64 MiB, and a call of it that waits gets its outcome', async (t) => {
  // The sanitizer keeps freed memory for a while, which would count.
  const { upstream, gateway, admin, connect } = await scene(t, { rules: [['delete_*', 'approve']], approval: workflow('1h'), config: { pseudo_tools: { wait: '10m' } }, env: { ASAN_OPTIONS: 'quarantine_size_mb=4:thread_local_quarantine_size_kb=64' }, upstream: { tools: [tool('delete_user')] } });
  const resident = () => Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${gateway.child.pid}/status`, 'utf8'))[1]) / 1024;
  const client = await connect({ ...PLAIN, token: 'A' });
  const waiting = client.result('tools/call', { name: 'delete_user', arguments: {} }, { deadline: 300_000 });
  const { id } = await admin.pending();
  const others = await Promise.all(Array.from({ length: 8 }, () => connect({ ...PLAIN, token: 'A' })));
  const before = resident();
  await Promise.all(others.map(async (other) => {
    for (let i = 0; i < 1250; i++) {
      const { status } = await other.initialize();
      assert.equal(status, 200);
      upstream.requests.length = 0;
    }
  }));
  const grown = resident() - before;
  assert.ok(grown < 64, `${grown} MiB more`);
  assert.equal(sample(await admin.metrics(), 'thoughtgate_limits_reached_total', { limit: 'sessions_per_principal' }) > 8000, true);
  await admin.approve(id);
  assert.equal((await waiting).content[0].text, 'did delete_user');
});
