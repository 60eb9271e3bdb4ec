// The requests that share a connection to the server: `sources[].connections`.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { workflow } from './lib/gateway.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const NAMES = ['alice', 'bob', 'carol'];

/** Every client sends who it is; the token goes no further than to the gateway, which puts its own in its place. */
async function stage(t, client, connections, config) {
  const { upstream, admin, connect } = await scene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    config,
    source: { connections, headers: { Authorization: { env: 'SERVICE_TOKEN' } } },
    env: { THOUGHTGATE_UPSTREAM_CLIENT: client, SERVICE_TOKEN: 'Bearer service' },
    upstream: { tools: [tool('read'), tool('delete_user')] },
  });
  const clients = [];
  for (const name of NAMES) clients.push(await connect({ token: name, headers: { 'x-who': name } }));
  return { upstream, admin, clients };
}

/** Names by connection, and connections by name. */
function shares(upstream) {
  const names = new Map();
  const connections = new Map();
  for (const { connection, headers } of upstream.requests) {
    const who = headers['x-who'] ?? 'gateway';
    names.set(connection, (names.get(connection) ?? new Set()).add(who));
    connections.set(who, (connections.get(who) ?? new Set()).add(connection));
  }
  return { names, connections };
}

async function callInTurns(clients) {
  for (let i = 0; i < 4; i++) {
    for (const client of clients) {
      await client.result('tools/call', { name: 'read', arguments: {} });
      await client.result('tools/list');
    }
  }
}

for (const client of ['auto', 'curl']) {
  test(`per_owner: no connection to the server serves two owners, and each owner has its own again (${client})`, async (t) => {
    const { upstream, admin, clients } = await stage(t, client, 'per_owner');
    await callInTurns(clients);
    for (const client of clients) {
      const { taskId } = await client.createTask('delete_user');
      await admin.approve(taskId);
      await until(async () => (await client.result('tasks/get', { taskId })).status === 'completed', 'the task to run');
    }
    await Promise.all([...clients, ...clients].map((client) => client.result('tools/call', { name: 'read', arguments: {} })));
    const { names, connections } = shares(upstream);
    for (const [connection, of] of names) assert.equal(of.size, 1, `connection ${connection} served ${[...of]}`);
    for (const name of NAMES) {
      const requests = upstream.requests.filter((r) => r.headers['x-who'] === name).length;
      assert.ok(requests >= 12, `${name} sent ${requests} requests`);
      assert.ok(connections.get(name).size <= 4, `${name} used ${connections.get(name).size} connections for ${requests} requests`);
    }
    for (const { headers } of upstream.requests) assert.equal(headers.authorization, 'Bearer service');
  });

  test(`shared: one connection serves one owner after the other (${client})`, async (t) => {
    // Each worker has connections of its own, so that one alone serves all three.
    const { upstream, clients } = await stage(t, client, 'shared', { workers: 1 });
    await callInTurns(clients);
    const { names } = shares(upstream);
    assert.ok([...names.values()].some((of) => NAMES.every((name) => of.has(name))), 'a connection that served all three');
  });
}

/** The seconds until the kernel looks whether the other end of each connection to `port` is still there. */
function probedIn(port) {
  const rows = fs.readFileSync('/proc/net/tcp', 'utf8').trim().split('\n').slice(1).map((row) => row.trim().split(/\s+/));
  const of = rows.filter(([, , far, state]) => far.endsWith(`:${port.toString(16).toUpperCase().padStart(4, '0')}`) && state === '01');
  return of.map(([, , , , , timer]) => timer.split(':')).map(([kind, ticks]) => kind === '02' && parseInt(ticks, 16) / 100);
}

for (const client of ['auto', 'curl']) {
  test(`a server that vanishes is looked for after half a minute (${client})`, async (t) => {
    const { upstream, clients: [alice] } = await stage(t, client, 'shared');
    upstream.handlers['tools/call'] = () => {};
    alice.send('tools/call', { name: 'read' }).catch(() => {});
    await upstream.received('tools/call');
    const seconds = await until(() => {
      const all = probedIn(upstream.port);
      return all.some((one) => one > 5) && all.filter(Boolean);
    }, 'the time of a probe');
    assert.ok(seconds.every((one) => one <= 30), seconds.join(', '));
  });
}
