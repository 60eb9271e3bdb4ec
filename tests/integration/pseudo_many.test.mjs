// A thousand sessions at once, each with a task that works, a question that waits and a call of await_activity.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { elicit, PARTY } from './lib/asking.mjs';
import { callTool, eventsOf, kinds } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const SESSIONS = Number(process.env.TASKGATE_TEST_SESSIONS ?? 1000);
const ROUNDS = 2;
const AT_ONCE = 50;
/** Connections to the server that two workers may keep for later, at most 256 each, and some to spare. */
const KEPT = 2 * 256 + 32;

/** Runs `work` for each item, a few at a time. */
async function each(items, work) {
  const rest = [...items.entries()];
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let next; (next = rest.shift()); ) await work(next[1], next[0]);
  }));
}

const status = (pid, name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
const residentKiB = (pid) => status(pid, 'VmRSS');
/** Sanitizers reserve terabytes, and keep freed memory for a while. */
const isSanitized = (pid) => status(pid, 'VmSize') > 2 ** 30;
const descriptors = (pid) => fs.readdirSync(`/proc/${pid}/fd`).length;

/** An upstream with one tool that asks its client, and answers with the client's answer. */
function answerAsAsked(upstream) {
  const asked = new Map();
  upstream.handlers['tools/call'] = ({ reply, id, params }) => {
    const stream = reply.sse();
    asked.set(params.arguments.id, { stream, id });
    stream.event({ jsonrpc: '2.0', ...elicit(params.arguments.id, PARTY) });
  };
  upstream.onHttp = ({ rpc }, reply) => {
    const call = rpc?.method === undefined && asked.get(rpc?.id);
    if (!call) return false;
    reply.http(202);
    call.stream.event({ jsonrpc: '2.0', id: call.id, result: { content: [{ type: 'text', text: 'done' }], structuredContent: rpc.result.content } });
    call.stream.end();
    return true;
  };
}

test(`${SESSIONS} sessions, each with a working task, a pending elicitation and an open await_activity: all are woken once, and nothing stays`, { timeout: 300_000 }, async (t) => {
  const { upstream, gateway, connect } = await scene(t, {
    upstream: { tools: [tool('ask')] },
    config: { workers: 2, pseudo_tools: { promote: 'wait', only: 'all' }, pseudo_tasks: { elicitation_timeout: '10m', defaultTtlMs: 1_800_000 } },
  });
  answerAsAsked(upstream);
  const { pid } = gateway.child.process;
  const gauge = async (name) => (await gateway.admin.metrics())[`thoughtgate_${name}`];
  await gauge('active_requests'); // the connection for it is there from now on
  const descriptorsBefore = descriptors(pid);
  const stayed = [];

  for (let round = 0; round < ROUNDS; round++) {
    const atFirst = residentKiB(pid);
    const clients = [];
    await each(Array.from({ length: SESSIONS }), async () => clients.push(await connect(kinds.old.client)));
    const before = residentKiB(pid);
    const tasks = [];
    await each(clients, async (client, n) => {
      const { structuredContent } = await callTool(client, 'execute_tool', { server: 'up', tool: 'ask', args: { id: `q-${round}-${n}` }, timeout_ms: 200 });
      tasks[n] = structuredContent.proxy_task.task_id;
      // All events are taken; the question may come after the promotion.
      await until(async () => (await callTool(client, 'get_elicitations')).structuredContent.elicitations.length === 1, 'the question', { deadline: 60_000 });
    });
    const waiting = clients.map((client) => callTool(client, 'await_activity', { timeout_ms: 280_000 }).then((answer) => answer.structuredContent));
    await until(async () => (await gauge('active_requests')) >= SESSIONS, 'all wait', { deadline: 60_000 });
    assert.equal(await gauge('pseudo_clients'), SESSIONS);
    t.diagnostic(`round ${round + 1}: ${((residentKiB(pid) - before) / SESSIONS).toFixed(1)} KiB for each session with its task, question and wait; ${(before / 1024).toFixed(0)} MiB before`);

    const told = clients.map(() => []);
    await each(clients, async (client, n) => {
      const { structuredContent } = await callTool(client, 'get_elicitations');
      assert.equal(structuredContent.elicitations.length, 1);
      const answer = await callTool(client, 'respond_to_elicitation', { request_id: structuredContent.elicitations[0].requestId, action: 'accept', content: { partySize: (n % 20) + 1 } });
      told[n].push(...eventsOf(answer));
    });
    (await Promise.all(waiting)).forEach(({ triggers, events, pending_server, pending_client }, n) => {
      assert.deepEqual(triggers, [{ type: 'event', server: 'up', eventType: 'task_completed' }], `session ${n}`);
      assert.deepEqual(pending_server, []);
      assert.deepEqual(pending_client.elicitations, []);
      told[n].push(...events.flatMap((e) => e.events));
    });
    await each(clients, async (client, n) => {
      const result = await callTool(client, 'get_task_result', { task_id: tasks[n] });
      assert.deepEqual(result.structuredContent, { partySize: (n % 20) + 1 });
      told[n].push(...eventsOf(result));
      assert.deepEqual(told[n].map((e) => [e.type, e.data.taskId]), [['task_completed', tasks[n]]], `session ${n} is told once, of its own`);
    });
    await each(clients, (client) => client.delete());
    for (const client of clients) client.close();
    assert.equal(await gauge('pseudo_clients'), 0);
    assert.equal(await gauge('active_requests'), 0);
    assert.deepEqual((await gateway.admin.list({ state: 'executing' })).tasks, []);
    stayed.push(residentKiB(pid) - atFirst);
    t.diagnostic(`round ${round + 1}: ${(stayed.at(-1) / SESSIONS).toFixed(1)} KiB for each session more than before it`);
  }
  // Memory that the allocator kept serves the next thousand.
  if (!isSanitized(pid)) assert.ok(stayed[1] < stayed[0] / 2, `${stayed[1]} KiB more after the second round`);
  await until(() => descriptors(pid) <= descriptorsBefore + KEPT, 'the connections of the clients are closed', { deadline: 60_000 });
});
