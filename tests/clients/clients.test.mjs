// Clients made with the official SDKs of other languages: through the gateway to the official server 2, in both eras.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Child } from '../integration/lib/child.mjs';
import { startGateway, workflow } from '../integration/lib/gateway.mjs';
import { startSdk2Server } from '../integration/lib/sdk2_server.mjs';
import { until, within } from '../integration/lib/wait.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
/** The server's, and what the gateway shows a modern client without tasks. */
const TOOLS = ['read', 'delete_user', 'count', 'ask_name', 'wait'];
const OWN = ['get_task_result', 'cancel_task', 'await_activity'];

/**
 * A client's behaviour by itself. `long`: how often the gateway has asked for a repetition before somebody decides;
 * Python then waits for longer than its own limit, Go for as often as it repeats a call less one. Rust gives each
 * request a progress token, so it is held for `wait_max`.
 */
const clients = {
  python: { command: ['.venv/bin/python', 'python_client.py'], wait: '700ms', rounds: 9, long: 4, cancelled: { error: { code: -32001 } } },
  go: { command: ['build/go-client'], wait: '2s', rounds: 2, long: 1, cancelled: { failure: 'context deadline exceeded' } },
  rust: { command: ['build/rust-client'], wait: '700ms', rounds: 9, long: 4, cancelled: { failure: 'request timeout after PT1.5S' } },
};

const absent = ({ command: [program] }) => (fs.existsSync(path.join(here, program)) ? false : `${program} was not made: tests/clients/run says why`);

/**
 * As a balancer before a gateway that is replaced: clients keep their connections, and a request waits until somebody
 * listens. Without it a client would have to repeat its call within the second that a gateway waits before it ends.
 * Returns the port.
 */
async function startBalancer(t, port) {
  const server = http.createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const { method, url: path, headers } = request;
    const connect = () => {
      const far = http.request({ host: '127.0.0.1', port, method, path, headers: { ...headers, connection: 'close' }, agent: false });
      response.once('close', () => far.destroy());
      far.once('error', (error) => (error.code === 'ECONNREFUSED' && !response.destroyed ? setTimeout(connect, 50) : response.destroy()));
      far.once('socket', (socket) => socket.once('connect', () => request.pipe(far)));
      far.once('response', (answer) => {
        const { connection, ...others } = answer.headers;
        response.writeHead(answer.statusCode, others).flushHeaders();
        answer.once('error', () => response.destroy());
        answer.pipe(response);
      });
    };
    connect();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  return server.address().port;
}

async function stage(t, { command: [program, ...words], wait, rounds, legacy, rules = [['delete_*', 'approve']], approval = workflow('10m'), isReplaced = false }, mode, steps) {
  const server = await startSdk2Server(t, { legacy });
  const gateway = await startGateway(t, {
    upstream: server.url,
    rules,
    approval,
    config: { pseudo_tools: { wait, wait_max: wait, rounds } },
  });
  const url = new URL(gateway.url);
  if (isReplaced) url.port = await startBalancer(t, url.port);
  const args = [...words.map((word) => path.join(here, word)), url.href, mode, JSON.stringify(steps)];
  const child = new Child(path.join(here, program), args, { name: program, stdin: 'pipe' });
  const lines = () => child.stdout.split('\n').slice(0, -1).map((line) => JSON.parse(line));
  const end = async () => {
    const { code } = await within(child.exited, () => `the client to end\n${child.output()}`, 60_000);
    assert.equal(code, 0, child.output());
    return lines();
  };
  return { server, gateway, admin: gateway.admin, child, lines, end };
}

const answer = (text, isError = false) => ({ text, isError });

for (const [name, client] of Object.entries(clients)) {
  test(`${name}: asks first, turns modern, and does everything`, { skip: absent(client) }, async (t) => {
    const steps = [['list'], ['call', 'read', {}], ['progress', 'count', { to: 3 }], ['call', 'ask_name', {}], ['cancel', 'wait', {}], ['call', 'delete_user', { id: 7 }], ['call', 'delete_user', { id: 8 }]];
    const { server, admin, lines, end } = await stage(t, client, 'auto', steps);
    const { id } = await admin.pending(() => true, 60_000);
    assert.deepEqual(server.events, ['began', 'cancelled'], 'the call that the client gave up');
    await until(async () => ((await admin.metrics())['thoughtgate_pseudo_waits_total{kind="call",outcome="state"}'] ?? 0) >= client.long, 'the repetitions', { deadline: 30_000 });
    assert.equal(lines().length, 6, 'the call waits');
    await admin.approve(id);
    await admin.reject((await admin.pending(() => true, 30_000)).id, 'no');
    const [version, list, read, count, asked, cancelled, approved, rejected, { progress }] = await end();
    assert.deepEqual([version, list], [{ version: '2026-07-28' }, { tools: [...TOOLS, ...OWN] }]);
    assert.deepEqual([read, count, asked], [answer('did read'), answer('counted to 3'), answer('Hello Ada')]);
    assert.deepEqual(progress, [[1, 3], [2, 3], [3, 3]]);
    delete cancelled.error?.message;
    assert.deepEqual(cancelled, client.cancelled);
    assert.deepEqual([approved, rejected], [answer('deleted 7'), { error: { code: -32007, message: 'Rejected by: admin: no' } }]);
    assert.deepEqual(new Set(server.calls.map(({ era }) => era)), new Set(['modern']));
    assert.deepEqual(server.calls.filter(({ tool }) => tool === 'delete_user').map(({ arguments: { id } }) => id), [7], 'once, and the rejected one never');
  });

  test(`${name}: nobody decides in time, then the gateway restarts during a call, and the client goes on`, { skip: absent(client) }, async (t) => {
    const rules = [['delete_*', 'brief'], ['count', 'long']].map(([match, approval]) => ({ match, action: 'approve', approval }));
    const approval = { brief: workflow('5s').default, long: workflow('10m').default };
    const steps = [['call', 'delete_user', { id: 7 }], ['call', 'count', { to: 3 }], ['call', 'read', {}]];
    const { server, gateway, admin, lines, end } = await stage(t, { ...client, rules, approval, isReplaced: true }, 'auto', steps);
    await until(() => lines().length === 2, 'the expiry', { deadline: 30_000 });
    const { id } = await admin.pending(() => true, 30_000);
    await gateway.restart();
    await admin.approve(id);
    const [, expired, restarted, read] = await end();
    assert.equal(expired.error.code, -32008);
    assert.deepEqual([restarted, read], [answer('counted to 3'), answer('did read')]);
    assert.deepEqual(server.calls.map(({ tool }) => tool), ['count', 'read']);
  });

  for (const [legacy, behind, era] of [['stateless', 'a server of both eras', 'legacy'], ['reject', 'a server that is modern alone', 'modern']]) {
    test(`${name}: as a legacy client, ${behind}`, { skip: absent(client) }, async (t) => {
      const steps = [['list'], ['progress', 'count', { to: 3 }], ['call', 'delete_user', { id: 7 }], ['call', 'delete_user', { id: 8 }]];
      const { server, admin, end } = await stage(t, { ...client, wait: '45s', legacy }, 'legacy', steps);
      await admin.approve((await admin.pending(() => true, 60_000)).id);
      await admin.reject((await admin.pending(() => true, 30_000)).id, 'no');
      const [version, { tools }, count, approved, rejected, { progress }] = await end();
      assert.deepEqual(version, { version: '2025-11-25' });
      assert.deepEqual(tools.slice(0, TOOLS.length), TOOLS);
      assert.ok(tools.includes('get_task_result'), 'the tools of the gateway');
      assert.deepEqual([count, approved], [answer('counted to 3'), answer('deleted 7')]);
      assert.deepEqual(progress, [[1, 3], [2, 3], [3, 3]]);
      assert.deepEqual(rejected, answer('delete_user was not run: admin rejected it: no. Do not repeat the call unless the user asks for it.', true));
      assert.deepEqual(new Set(server.calls.map(({ era }) => era)), new Set([era]));
    });
  }
}
