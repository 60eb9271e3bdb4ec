// Clients that ask for streams that are not there, sessions that nobody ends, and the gateway's own ones, over simulated time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
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

test("the gateway's own sessions at a server: four at most over a day of changed lists, approved calls and new clients", timed, async (t) => {
  const { clock, upstream, gateway, admin, connect } = await leaping(t, { rules: [['delete_*', 'approve']], approval: workflow('1h'), upstream: { tools: [tool('read'), tool('delete_user')] } });
  const own = () => upstream.of('initialize').filter(({ rpc, reply }) => rpc.params.clientInfo.name === 'taskgate' && upstream.liveSessions.has(reply.response.getHeader('mcp-session-id'))).length;
  const lists = () => upstream.of('tools/list').filter(({ isGatewaysOwn }) => isGatewaysOwn).length;
  for (let hour = 0; hour < 24; hour++) {
    const client = await connect({ token: `t${hour}` });
    await client.listen();
    await upstream.received(({ method }) => method === 'GET', hour + 1);
    const before = lists();
    upstream.tools.push(tool(`new_${hour}`));
    upstream.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    await until(() => lists() > before, 'the list to be fetched again');
    const { taskId } = await client.createTask('delete_user', { hour });
    await admin.approve(taskId);
    await admin.inState(taskId, 'completed');
    assert.ok(own() <= 4, `${own()} sessions of the gateway's own`);
    client.close();
    clock.leap(3600);
    await admin.get('/health');
  }
  await until(() => own() === 0, 'the last of them to be ended');
  assert.ok(upstream.of('initialize').filter(({ rpc }) => rpc.params.clientInfo.name === 'taskgate').length > 4, 'that there were some');
  await gateway.kill9(); // the exit handlers of a process whose clock leapt by a day may wait for ever
});
