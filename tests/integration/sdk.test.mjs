// The official SDK 1.x client through the gateway to real servers: an ordinary agent's day, and a human's decisions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, LoggingMessageNotificationSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { collectStream, sdkClient, toolStream } from './lib/client.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { defer } from './lib/lifetime.mjs';
import { targets } from './lib/targets.mjs';
import { startUpstream, tool } from './lib/upstream.mjs';
import { until } from './lib/wait.mjs';

const TTL = { task: { ttl: 60_000 } };

async function stage(t, target, more = {}) {
  const server = await target.start(t);
  defer(t, () => assert.ok(server.alive(), 'the server has died'));
  const gateway = await startGateway(t, { upstream: server.url, rules: [[target.dangerous.name, 'approve']], approval: workflow('10m'), ...more });
  return { server, gateway, admin: gateway.admin, connect: (options) => sdkClient(t, gateway.url, { capabilities: target.capabilities, ...options }) };
}

for (const target of targets) {
  const on = (name, body) => test(`${target.name}: ${name}`, { skip: target.skip }, body);
  const dangerous = (client, options = {}) => toolStream(client, target.dangerous.name, target.dangerous.arguments, { ...TTL, ...options });

  on('connect, list, plain call', async (t) => {
    const { connect } = await stage(t, target);
    const client = await connect();
    assert.deepEqual(client.getServerCapabilities().tasks.requests.tools, { call: {} });
    await client.ping();
    const { tools } = await client.listTools();
    assert.equal(tools.find((x) => x.name === target.dangerous.name).execution.taskSupport, 'optional');
    assert.ok(tools.some((x) => x.name === target.harmless.name));
    const result = await client.callTool(target.harmless);
    assert.match(result.content[0].text, target.harmless.text);
    assert.deepEqual(client.errors, []);
  });

  on('progress of a forwarded call arrives step by step', async (t) => {
    const { connect } = await stage(t, target);
    const client = await connect();
    const seen = [];
    const { text, ...call } = target.slow(2);
    const result = await client.callTool(call, undefined, { onprogress: (p) => seen.push({ ...p, at: performance.now() }) });
    assert.match(result.content[0].text, text);
    assert.ok(seen.length >= 2, JSON.stringify(seen));
    assert.ok(seen.every((p, i) => i === 0 || p.progress > seen[i - 1].progress));
    assert.ok(seen.at(-1).at - seen[0].at > 400, 'they came as they were sent, not all at the end');
  });

  on('an elicitation goes to the client and its answer back', async (t) => {
    const { connect } = await stage(t, target);
    const asked = [];
    const client = await connect({
      prepare: (c) => c.setRequestHandler(ElicitRequestSchema, (request) => (asked.push(request.params), { action: 'accept', content: target.elicits.answer })),
    });
    const { text, answer, ...call } = target.elicits;
    const result = await client.callTool(call);
    assert.equal(asked.length, 1);
    assert.match(JSON.stringify(result.content), text);
  });

  on('callToolStream: approved through the admin API while the client waits', async (t) => {
    const { server, admin, connect } = await stage(t, target);
    const client = await connect();
    await client.listTools();
    const seen = await collectStream(dangerous(client), async (message) => {
      if (message.type !== 'taskCreated') return;
      assert.equal(message.task.status, 'input_required');
      assert.deepEqual((await admin.task(message.task.taskId)).arguments, target.dangerous.arguments);
      await admin.approve(message.task.taskId, 'go');
    });
    assert.equal(seen.error, undefined);
    assert.match(seen.taskId, /^tg_/);
    assert.match(seen.result.content[0].text, target.dangerous.text);
    assert.equal(seen.statuses.at(-1), 'completed');
    if (server.journal) assert.equal(server.journal().filter((line) => line.includes(target.dangerous.name)).length, 1);
  });

  on('callToolStream lives through a human slower than its request time-out', async (t) => {
    const { admin, connect } = await stage(t, target);
    const client = await connect();
    await client.listTools();
    const timeout = 2500;
    const started = performance.now();
    const seen = await collectStream(dangerous(client, { timeout }), async (message) => {
      // The client has been told "still waiting" after its time-out has passed: only now the human decides.
      if (message.type !== 'taskStatus' || performance.now() - started < 2 * timeout) return;
      const task = await admin.task(message.task.taskId);
      if (task.state === 'pending') await admin.approve(task.id);
    });
    assert.equal(seen.error, undefined);
    assert.match(seen.result.content[0].text, target.dangerous.text);
    assert.ok(performance.now() - started > 2 * timeout);
  });

  on('callToolStream: rejected, with the reason in the last status', async (t) => {
    const { server, admin, connect } = await stage(t, target);
    const client = await connect();
    const seen = await collectStream(dangerous(client), (m) => m.type === 'taskCreated' && admin.reject(m.task.taskId, 'not today'));
    assert.ok(seen.error);
    assert.equal(seen.last.status, 'failed');
    assert.match(seen.last.statusMessage, /not today/);
    if (server.journal) assert.equal(server.journal().filter((line) => line.includes(target.dangerous.name)).length, 0);
    await assert.rejects(client.experimental.tasks.getTaskResult(seen.taskId, CallToolResultSchema), (error) => error.code === -32007);
  });

  on('callToolStream: expired', async (t) => {
    const { connect } = await stage(t, target);
    const client = await connect();
    const seen = await collectStream(dangerous(client, { task: { ttl: 1500 } }));
    assert.ok(seen.error);
    assert.equal(seen.last.status, 'failed');
    await assert.rejects(client.experimental.tasks.getTaskResult(seen.taskId, CallToolResultSchema), (error) => error.code === -32008);
  });

  on('callToolStream: cancelled by the agent', async (t) => {
    const { admin, connect } = await stage(t, target);
    const client = await connect();
    const seen = await collectStream(dangerous(client), async (m) => {
      if (m.type === 'taskCreated') assert.equal((await client.experimental.tasks.cancelTask(m.task.taskId)).status, 'cancelled');
    });
    assert.match(seen.error.message, /cancelled/);
    assert.equal((await admin.task(seen.taskId)).state, 'cancelled');
    await assert.rejects(client.experimental.tasks.cancelTask(seen.taskId), (error) => error.code === -32602);
  });

  on('two clients cannot see each other\'s tasks', async (t) => {
    const { admin, connect } = await stage(t, target);
    const [one, two] = [await connect(), await connect()];
    const stream = dangerous(one);
    const { taskId } = (await stream.next()).value.task;
    assert.deepEqual((await one.experimental.tasks.listTasks()).tasks.map((x) => x.taskId), [taskId]);
    assert.deepEqual((await two.experimental.tasks.listTasks()).tasks, []);
    for (const attempt of [() => two.experimental.tasks.getTask(taskId), () => two.experimental.tasks.getTaskResult(taskId, CallToolResultSchema), () => two.experimental.tasks.cancelTask(taskId)]) {
      await assert.rejects(attempt(), (error) => error.code === -32602);
    }
    await admin.approve(taskId);
    assert.match((await collectStream(stream)).result.content[0].text, target.dangerous.text);
  });

  on('the gateway restarts in the middle of waiting: the agent comes back to its task and gets its result', async (t) => {
    const { gateway, admin, connect } = await stage(t, target);
    const client = await connect();
    const stream = dangerous(client);
    const { taskId } = (await stream.next()).value.task;
    await stream.return();
    await gateway.restart();
    assert.ok(['input_required', 'working'].includes((await client.experimental.tasks.getTask(taskId)).status));
    await admin.approve(taskId);
    const task = await until(async () => {
      const now = await client.experimental.tasks.getTask(taskId);
      return now.status === 'completed' && now;
    }, 'the execution');
    assert.equal(task.taskId, taskId);
    assert.match((await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)).content[0].text, target.dangerous.text);
  });

  on('a waiting stream that uses onprogress with resetTimeoutOnProgress is fine too', async (t) => {
    const { admin, connect } = await stage(t, target);
    const client = await connect();
    const seen = await collectStream(dangerous(client, { onprogress: () => {}, resetTimeoutOnProgress: true }), (m) => m.type === 'taskCreated' && admin.approve(m.task.taskId));
    assert.match(seen.result.content[0].text, target.dangerous.text);
  });

  on('callTool of a tool that needs a human waits for the approval', async (t) => {
    const { admin, connect } = await stage(t, target);
    const client = await connect();
    await client.listTools(); // its announcement may keep the SDK from the call
    const calling = client.callTool(target.dangerous);
    await admin.approve((await admin.pending()).id);
    assert.match((await calling).content[0].text, target.dangerous.text);
  });

  on('with tasks: yes for all, callTool of a required tool is answered TaskRequired, code and data included', async (t) => {
    const { connect } = await stage(t, target, { config: { clients: [{ match: '*', tasks: 'yes' }] } });
    const client = await connect();
    await assert.rejects(client.callTool(target.dangerous), (error) => error.code === -32009 && error.data.tool === target.dangerous.name);
  });
}

const everything = targets[0];
const onEverything = (name, body) => test(`server-everything: ${name}`, body);

onEverything('resources, templates, subscriptions, prompts, completion', async (t) => {
  const { connect } = await stage(t, everything);
  const client = await connect();
  const { resources } = await client.listResources();
  assert.ok(resources.length > 0);
  assert.ok((await client.readResource({ uri: resources[0].uri })).contents.length > 0);
  const { resourceTemplates } = await client.listResourceTemplates();
  assert.ok(resourceTemplates.length > 0);
  const { prompts } = await client.listPrompts();
  const simple = prompts.find((x) => !x.arguments?.length);
  assert.ok((await client.getPrompt({ name: simple.name })).messages.length > 0);
  const completable = prompts.find((x) => /complet/.test(x.name));
  const { completion } = await client.complete({ ref: { type: 'ref/prompt', name: completable.name }, argument: { name: completable.arguments[0].name, value: '' } });
  assert.ok(Array.isArray(completion.values));
});

onEverything('resource updates and log messages come on the GET stream', async (t) => {
  const { connect } = await stage(t, everything);
  const [updates, logs] = [[], []];
  const client = await connect({
    prepare(c) {
      c.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => void updates.push(n.params));
      c.setNotificationHandler(LoggingMessageNotificationSchema, (n) => void logs.push(n.params));
    },
  });
  await client.setLoggingLevel('debug');
  const { resources } = await client.listResources();
  await client.subscribeResource({ uri: resources[0].uri });
  await client.callTool({ name: 'toggle-simulated-logging', arguments: {} });
  await client.callTool({ name: 'toggle-subscriber-updates', arguments: {} });
  await until(() => logs.length > 0, 'a log message', { deadline: 20_000 });
  await until(() => updates.some((u) => u.uri === resources[0].uri), 'an update', { deadline: 20_000 });
  await client.unsubscribeResource({ uri: resources[0].uri });
});

onEverything('a sampling round trip, and roots', async (t) => {
  const { connect } = await stage(t, everything);
  const client = await connect({
    prepare(c) {
      c.setRequestHandler(CreateMessageRequestSchema, (request) => ({ model: 'test', role: 'assistant', content: { type: 'text', text: `sampled ${request.params.maxTokens}` } }));
      c.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///home/agent', name: 'agent' }] }));
    },
  });
  const { tools } = await client.listTools();
  assert.ok(tools.some((x) => x.name === 'trigger-sampling-request'));
  const sampled = await client.callTool({ name: 'trigger-sampling-request', arguments: { prompt: 'hi', maxTokens: 17 } });
  assert.match(JSON.stringify(sampled.content), /sampled 17/);
  const roots = await until(async () => {
    const text = JSON.stringify((await client.callTool({ name: 'get-roots-list', arguments: {} })).content);
    return /home\/agent/.test(text) && text;
  }, 'the roots');
  assert.match(roots, /home\/agent/);
});

onEverything('accelerated: an ordinary forwarded tool called as a task is run at once as our task', async (t) => {
  const { admin, connect } = await stage(t, everything);
  const client = await connect();
  const { tools } = await client.listTools();
  assert.equal(tools.find((x) => x.name === 'get-sum').execution.taskSupport, 'optional');
  const seen = await collectStream(toolStream(client, 'get-sum', { a: 20, b: 22 }, TTL));
  assert.match(seen.taskId, /^tg_/);
  assert.match(seen.result.content[0].text, /42/);
  assert.ok(!seen.statuses.includes('input_required'));
  assert.equal((await admin.task(seen.taskId)).state, 'completed');
});

onEverything("upstream's own task tool is untouched: its id, its statuses, its result", async (t) => {
  const { admin, connect } = await stage(t, everything);
  const client = await connect();
  const { tools } = await client.listTools();
  assert.equal(tools.find((x) => x.name === 'simulate-research-query').execution.taskSupport, 'optional');
  const seen = await collectStream(toolStream(client, 'simulate-research-query', { topic: 'bees' }, { task: { ttl: 60_000 } }));
  assert.doesNotMatch(seen.taskId, /^tg_/);
  assert.match(seen.result.content[0].text, /Research Report: bees/);
  assert.ok(seen.statuses.includes('working'));
  assert.deepEqual((await admin.list()).tasks, []);
});

onEverything("upstream's task asks the client in the middle of tasks/result", async (t) => {
  const { connect } = await stage(t, everything);
  const asked = [];
  const client = await connect({
    prepare: (c) => c.setRequestHandler(ElicitRequestSchema, (request) => (asked.push(request.params), { action: 'accept', content: { interpretation: 'historical' } })),
  });
  await client.listTools();
  const seen = await collectStream(toolStream(client, 'simulate-research-query', { topic: 'bees', ambiguous: true }, { task: { ttl: 60_000 } }));
  assert.equal(asked.length, 1);
  assert.match(seen.result.content[0].text, /bees \(historical\)/);
});

onEverything("an upstream's task tool on an approve rule: our task first, upstream's within", async (t) => {
  const { admin, connect } = await stage(t, everything, { rules: [['simulate-*', 'approve']] });
  const client = await connect();
  await client.listTools();
  const seen = await collectStream(toolStream(client, 'simulate-research-query', { topic: 'wasps' }, TTL), (m) => m.type === 'taskCreated' && admin.approve(m.task.taskId));
  assert.match(seen.taskId, /^tg_/);
  assert.match(seen.result.content[0].text, /Research Report: wasps/);
  assert.equal(seen.result._meta['io.modelcontextprotocol/related-task'].taskId, seen.taskId);
});

onEverything('the list merges both owners\' tasks', async (t) => {
  const { connect } = await stage(t, everything);
  const client = await connect();
  await client.listTools();
  const [ours, theirs] = [toolStream(client, 'echo', { message: 'x' }, TTL), toolStream(client, 'simulate-research-query', { topic: 'y' }, TTL)];
  const ids = [(await ours.next()).value.task.taskId, (await theirs.next()).value.task.taskId];
  assert.deepEqual((await client.experimental.tasks.listTasks()).tasks.map((x) => x.taskId), ids);
});

test('progress and answer that leave the server in one write all arrive', async (t) => {
  const STEPS = [1, 2, 3, 4, 5];
  const upstream = await startUpstream(t, {
    tools: [tool('steps')],
    handlers: { 'tools/call': ({ reply, id, params }) => {
      const messages = [...STEPS.map((progress) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress } })), { jsonrpc: '2.0', id, result: { content: [] } }];
      const stream = reply.sse();
      stream.raw(messages.map((message) => `event: message\ndata: ${JSON.stringify(message)}\n\n`).join(''));
      stream.end();
    } },
  });
  const gateway = await startGateway(t, { upstream: upstream.url });
  const client = await sdkClient(t, gateway.url);
  for (let i = 0; i < 20; i++) {
    const seen = [];
    await client.callTool({ name: 'steps' }, undefined, { onprogress: ({ progress }) => seen.push(progress) });
    assert.deepEqual(seen, STEPS);
  }
});
