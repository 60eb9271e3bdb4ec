// await_activity of official SDK clients of each kind before real servers: woken by each kind of event.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HURRIED, PlainClient, plainGateway, plainKinds } from './lib/plain.mjs';
import { targets } from './lib/targets.mjs';
import { until } from './lib/wait.mjs';

const { taskIn } = PlainClient;
/** Promoted tasks live for so long here. */
const TTL_MS = 3000;

/**
 * Each makes one event happen; `ready` resolves once the client waits in await_activity, and is called after the
 * preparation. They return the expected event.
 */
const causes = {
  task_completed: async ({ client, target, ready }) => {
    const { task_id: taskId } = taskIn(await client.call(target.dangerous));
    await ready();
    await client.admin.approve(taskId);
    const { state } = await client.admin.inState(taskId, 'completed', 'failed');
    return { type: `task_${state}`, data: { taskId, toolName: target.dangerous.name } };
  },
  task_failed: async ({ client, target, ready }) => {
    const { task_id: taskId } = taskIn(await client.call(target.dangerous));
    await ready();
    await client.admin.reject(taskId, 'no');
    return { data: { taskId, toolName: target.dangerous.name } };
  },
  task_cancelled: async ({ client, target, ready }) => {
    const { task_id: taskId } = taskIn(await client.call(target.slow(60)));
    await ready();
    await client.admin.cancel(taskId);
    return { data: { taskId, toolName: target.slow(60).name } };
  },
  task_expired: async ({ client, target, ready }) => {
    const { task_id: taskId } = taskIn(await client.call(target.slow(60)));
    await ready();
    return { data: { taskId, toolName: target.slow(60).name, ttl: TTL_MS } };
  },
  elicitation_request: async ({ client, target, ready, later }) => {
    await ready();
    later(client.call(target.elicits));
    const { elicitations: [asked] } = await until(async () => {
      const answer = (await client.tool('get_elicitations')).structuredContent;
      return answer.elicitations.length > 0 && answer;
    }, 'the question');
    await client.tool('cancel_elicitation_request', { request_id: asked.requestId });
    return { data: { requestId: asked.requestId } };
  },
  sampling_request: async ({ client, target, ready, later }) => {
    await ready();
    later(client.call(target.samples));
    const { sampling_requests: [asked] } = await until(async () => {
      const answer = (await client.tool('get_sampling_requests')).structuredContent;
      return answer.sampling_requests.length > 0 && answer;
    }, 'the request');
    await client.tool('cancel_sampling_request', { request_id: asked.requestId });
    return { data: { requestId: asked.requestId } };
  },
  notification: async ({ client, target, ready, later }) => {
    await ready();
    const data = await target.notify(client.sdk, (call) => client.call(call));
    later(client.call({ name: 'toggle-subscriber-updates', arguments: {} })); // off again
    return { data };
  },
};

/** The client waits; `cause` happens; returns the events in the answer. */
async function woken(t, gateway, kind, target, cause) {
  const client = await PlainClient.connect(t, gateway, kind);
  const active = async () => (await client.admin.metrics())['thoughtgate_active_requests'];
  const open = [];
  let waiting;
  const ready = async () => {
    await client.tool('list_servers'); // all events are taken
    waiting = client.tool('await_activity', { timeout_ms: 50_000 });
    await until(async () => (await active()) === 2, 'the GET stream and the wait are open');
  };
  const expected = await cause({ client, target, ready, later: (promise) => open.push(promise) });
  const told = (await waiting).structuredContent;
  await Promise.all(open);
  return { expected, told };
}

for (const target of targets) {
  test(target.name, { skip: target.skip, timeout: 600_000 }, async (t) => {
    let server = await target.start(t);
    const gateway = await plainGateway(t, target, server, { pseudo_tools: HURRIED, pseudo_tasks: { defaultTtlMs: TTL_MS } });
    for (const [kindName, kind] of Object.entries(plainKinds)) {
      for (const [cause, happen] of Object.entries(causes)) {
        if (cause === 'notification' && !target.notify) continue; // it sends only logs, which end no wait
        await t.test(`${target.name}, ${kindName}: await_activity is woken by ${cause}`, async (t) => {
          const { told, expected: { type = cause, data } } = await woken(t, gateway, kind, target, happen);
          assert.deepEqual(told.triggers, [{ type: 'event', server: 'up', eventType: type }]);
          assert.ok(Array.isArray(told.pending_server) && Array.isArray(told.pending_client.elicitations));
          // Another answer may have told of it before.
          const event = told.events.flatMap((e) => e.events).find((e) => e.type === type);
          if (event) for (const [key, value] of Object.entries(data)) assert.deepEqual(event.data[key], value, key);
        });
      }

      await t.test(`${target.name}, ${kindName}: await_activity is woken by the server's end and return`, async (own) => {
        const client = await PlainClient.connect(own, gateway, kind);
        await client.tool('list_servers');
        const waiting = client.tool('await_activity', { timeout_ms: 50_000 });
        const { port } = server;
        await until(async () => (await client.admin.metrics())['thoughtgate_active_requests'] === 2, 'the GET stream and the wait are open');
        await server.stop();
        await assert.rejects(client.sdk.callTool(target.harmless));
        const { triggers, events } = (await waiting).structuredContent;
        assert.deepEqual(triggers, [{ type: 'server_disconnected', server: 'up' }]);
        assert.deepEqual(events.flatMap((e) => e.events).map((e) => e.type), ['server_disconnected']);
        const again = client.tool('await_activity', { timeout_ms: 50_000 });
        server = await target.start(t, { port });
        await PlainClient.connect(own, gateway, kind);
        assert.equal((await again).structuredContent.triggers[0].eventType ?? 'immediate', 'server_reconnected');
      });
    }
  });
}
