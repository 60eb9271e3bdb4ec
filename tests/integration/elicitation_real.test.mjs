// Real servers that ask on their session's GET stream, as the official SDK's elicitInput() and createMessage() do.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { collectStream, sdkClient, toolStream } from './lib/client.mjs';
import { startEverything } from './lib/everything.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { defer } from './lib/lifetime.mjs';
import { startSdkServer } from './lib/sdk_server.mjs';
import { until } from './lib/wait.mjs';

const PERSON = { username: 'ada', email: 'ada@example.com', password: 'correct horse' };
const run = (client, name, args = {}) => client.callTool({ name, arguments: args });
const asked = (client, name = 'get_elicitations') =>
  until(async () => Object.values((await run(client, name)).structuredContent)[0][0], 'the question');
const answer = (client, { requestId }, content) => run(client, 'respond_to_elicitation', { request_id: requestId, action: 'accept', content });

async function stage(t, name, options = {}) {
  const server = await startSdkServer(t, name);
  const gateway = await startGateway(t, { upstream: server.url, approval: workflow('10m'), config: { pseudo_tools: { promote: 'wait', only: 'all' } }, ...options });
  return { server, gateway, admin: gateway.admin, sdk: (more) => sdkClient(t, gateway.url, { awaitStream: true, ...more }) };
}

/** A client that declares elicitation, with the questions that it got. */
async function able(sdk, content, tasks = {}) {
  const seen = [];
  const client = await sdk({
    capabilities: { elicitation: { form: {} }, sampling: {}, ...tasks },
    prepare: (c) => {
      c.setRequestHandler(ElicitRequestSchema, ({ params }) => (seen.push(params), { action: 'accept', content }));
      c.setRequestHandler(CreateMessageRequestSchema, ({ params }) => (seen.push(params), { role: 'assistant', content: { type: 'text', text: 'An old silent pond' }, model: 'm' }));
    },
  });
  return { client, seen };
}

/** A client that answers questions with tasks of its own, if the server wants that. */
const runsQuestionsAsTasks = (t, url, seen) => {
  const store = new InMemoryTaskStore();
  defer(t, () => store.cleanup());
  return sdkClient(t, url, {
    capabilities: { elicitation: {}, sampling: {}, tasks: { list: {}, cancel: {}, requests: { elicitation: { create: {} }, sampling: { createMessage: {} } } } },
    options: { taskStore: store },
    prepare: (c) => {
      const answers = (result) => async ({ params }, { taskStore, taskRequestedTtl }) => {
        seen.push(params);
        if (!params.task) return result;
        const task = await taskStore.createTask({ ttl: taskRequestedTtl });
        await taskStore.storeTaskResult(task.taskId, 'completed', result);
        return { task };
      };
      c.setRequestHandler(ElicitRequestSchema, answers({ action: 'accept', content: { name: 'Ada' } }));
      c.setRequestHandler(CreateMessageRequestSchema, answers({ role: 'assistant', content: { type: 'text', text: 'An old silent pond' }, model: 'm' }));
    },
  });
};

for (const [tool, args, expected] of [
  ['trigger-elicitation-request-async', {}, /Ada/],
  ['trigger-sampling-request-async', { prompt: 'a haiku', maxTokens: 10 }, /An old silent pond/],
]) {
  for (const action of ['forward', 'approve']) {
    test(`server-everything asks for a task of the client's (${tool}, ${action}): ${action === 'forward' ? 'between the two' : 'from an approved call it gets the answer itself'}`, async (t) => {
      const server = await startEverything(t);
      const gateway = await startGateway(t, { upstream: server.url, rules: [[tool, action]], approval: workflow('10m'), config: { pseudo_tools: { promote: 'wait', only: 'all' } } });
      const seen = [];
      const client = await runsQuestionsAsTasks(t, gateway.url, seen);
      await until(async () => (await client.listTools()).tools.some((x) => x.name === tool), tool);
      const result =
        action === 'forward'
          ? await run(client, tool, args)
          : (await collectStream(toolStream(client, tool, args), (m) => m.type === 'taskCreated' && gateway.admin.approve(m.task.taskId))).result;
      assert.match(JSON.stringify(result?.content), expected);
      assert.equal(seen[0].task !== undefined, action === 'forward');
    });
  }
}

test('a form, for a client that can be asked itself', async (t) => {
  const { sdk } = await stage(t, 'elicitationFormExample');
  const { client, seen } = await able(sdk, PERSON);
  const result = await run(client, 'register_user');
  assert.match(result.content[0].text, /ada@example\.com/);
  assert.match(seen[0].message, /registration/);
});

test('a form, for one that cannot: what does not fit is sent back, what fits reaches the server', async (t) => {
  const { sdk } = await stage(t, 'elicitationFormExample');
  const client = await sdk();
  const call = run(client, 'register_user');
  const question = await asked(client);
  assert.equal((await answer(client, question, { ...PERSON, email: 'ada' })).content[0].text, 'Failed to respond: content.email is not of the format asked for');
  assert.equal((await answer(client, question, { ...PERSON, username: 'a' })).content[0].text, 'Failed to respond: content.username is too short or too long');
  assert.notEqual((await answer(client, question, PERSON)).isError, true);
  assert.match((await call).content[0].text, /ada@example\.com/);
});

test('two forms of one call, which has become a task meanwhile', async (t) => {
  const { sdk } = await stage(t, 'elicitationFormExample');
  const client = await sdk();
  const promotion = await run(client, 'execute_tool', { server: 'up', tool: 'create_event', args: {}, timeout_ms: 500 });
  const { proxy_task, pending_on_server } = promotion.structuredContent;
  const [{ requestId }] = pending_on_server.elicitations_for_server;
  await answer(client, { requestId }, { title: 'Launch' });
  const second = await until(async () => {
    const question = await asked(client);
    return question.requestId !== requestId && question;
  }, 'the second form');
  await answer(client, second, { date: '2026-03-01', startTime: '09:00', duration: 30 });
  assert.match((await run(client, 'get_task_result', { task_id: proxy_task.task_id, timeout_ms: 30_000 })).content[0].text, /Launch/);
});

test('an approved call of a client without tasks', async (t) => {
  const { sdk, admin } = await stage(t, 'elicitationFormExample', { rules: [['register_*', 'approve']] });
  const client = await sdk();
  const call = run(client, 'execute_tool', { server: 'up', tool: 'register_user', args: {}, timeout_ms: 40_000 });
  await admin.approve((await admin.pending()).id);
  await answer(client, await asked(client), PERSON);
  assert.match((await call).content[0].text, /ada@example\.com/);
});

test('an approved task', async (t) => {
  const { sdk, admin } = await stage(t, 'elicitationFormExample', { rules: [['register_*', 'approve']] });
  const { client } = await able(sdk, PERSON, { tasks: {} });
  await client.listTools();
  const seen = await collectStream(toolStream(client, 'register_user', {}), (m) => m.type === 'taskCreated' && admin.approve(m.task.taskId));
  assert.match(seen.result?.content[0].text ?? String(seen.error), /ada@example\.com/);
});

for (const [tool, args, words] of [
  ['confirm_delete', { filename: 'notes.txt' }, /Deleted 'notes\.txt'/],
  ['write_haiku', { topic: 'ponds' }, /An old silent pond/],
]) {
  test(`${tool}, a task at upstream: forwarded, for a client that can be asked itself`, async (t) => {
    const { sdk } = await stage(t, 'simpleTaskInteractive');
    const { client, seen } = await able(sdk, { confirm: true }, { tasks: {} });
    await client.listTools();
    const { result, error } = await collectStream(toolStream(client, tool, args));
    assert.match(result?.content[0].text ?? String(error), words);
    assert.equal(seen.length, 1);
  });

  test(`${tool}, a task at upstream: approved as a task of ours`, async (t) => {
    const { sdk, admin } = await stage(t, 'simpleTaskInteractive', { rules: [['*', 'approve']] });
    const { client, seen } = await able(sdk, { confirm: true }, { tasks: {} });
    await client.listTools();
    const { taskId, result, error, statuses } = await collectStream(toolStream(client, tool, args), (m) => m.type === 'taskCreated' && admin.approve(m.task.taskId));
    assert.match(result?.content[0].text ?? String(error), words);
    assert.deepEqual(seen.map((params) => params._meta['io.modelcontextprotocol/related-task']), [{ taskId }], 'asked once, as of the task that the client knows');
    assert.ok(statuses.includes('input_required'), statuses.join());
  });

  test(`${tool}, a task at upstream: approved, for a client without tasks`, async (t) => {
    const { sdk, admin } = await stage(t, 'simpleTaskInteractive', { rules: [['*', 'approve']] });
    const client = await sdk();
    await client.listTools(); // the gateway knows now how upstream runs them
    const call = run(client, 'execute_tool', { server: 'up', tool, args, timeout_ms: 40_000 });
    await admin.approve((await admin.pending()).id);
    if (tool === 'confirm_delete') await answer(client, await asked(client), { confirm: true });
    else await run(client, 'respond_to_sampling', { request_id: (await asked(client, 'get_sampling_requests')).requestId, role: 'assistant', content: 'An old silent pond', model: 'm' });
    assert.match((await call).content[0].text, words);
  });
}
