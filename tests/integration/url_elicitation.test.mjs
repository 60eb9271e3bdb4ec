// -32042, "URL elicitation required": for every way of an answer it stays an error of the protocol, with its elicitations.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js';
import { workflow } from './lib/gateway.mjs';
import { callTool, kinds } from './lib/pseudo.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { signal } from './lib/wait.mjs';

const ERROR = { code: -32042, message: 'sign in first', data: { elicitations: [{ mode: 'url', elicitationId: 'visit-1', url: 'https://sign.in.example/', message: 'Sign in' }], extra: [1.5, null] } };
const PATIENT = { wait: '45s' };
const HASTY = { wait: '300ms' };

/** An upstream with tools that want their user to visit a page; `slow` does so when the test says. */
async function stage(t, { replyAs, wait = PATIENT } = {}) {
  const go = signal();
  const s = await scene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    config: { pseudo_tools: { promote: 'wait', only: 'all', ...wait } },
    upstream: {
      replyAs,
      capabilities: { tools: {}, tasks: TASKS },
      tools: [tool('read', { support: 'forbidden' }), tool('slow'), tool('delete_user')],
      handlers: {
        'tools/call': async ({ params, reply }) => {
          if (params.name === 'slow') await go.promise;
          reply.error(ERROR.code, ERROR.message, ERROR.data);
        },
      },
    },
  });
  return { ...s, go, tasks: () => s.connect(), plain: () => s.connect(kinds.old.client) };
}

/** A failed task whose result get_task_result can fetch. */
async function ended(client, { admin }, answer) {
  const id = answer.structuredContent.proxy_task.task_id;
  if ((await admin.task(id)).state === 'pending') await admin.approve(id);
  await admin.inState(id, 'failed');
  return id;
}

const execute = (name, timeout_ms) => ({ name: 'execute_tool', arguments: { server: 'up', tool: name, args: {}, timeout_ms } });

const paths = {
  'a forwarded call': async (s) => (await s.plain()).error('tools/call', { name: 'read' }),

  'a forwarded call as a task, in tasks/result': async (s) => {
    const client = await s.tasks();
    const { taskId } = await client.createTask('read');
    return client.error('tasks/result', { taskId });
  },

  'an approved task, in tasks/result, again and again': async (s) => {
    const client = await s.tasks();
    const { taskId } = await client.createTask('delete_user');
    await s.admin.approve(taskId);
    await s.admin.inState(taskId, 'failed');
    assert.equal((await client.result('tasks/get', { taskId })).statusMessage, ERROR.message);
    assert.deepEqual(await client.error('tasks/result', { taskId }), ERROR);
    return client.error('tasks/result', { taskId });
  },

  'an approved task, on a waiting stream': async (s) => {
    const client = await s.tasks();
    const { taskId } = await client.createTask('delete_user');
    const waiting = await client.stream('tasks/result', { taskId });
    await s.admin.approve(taskId);
    return (await waiting.message((m) => m.id === waiting.id, 'the error')).error;
  },

  'a plain call that is approved in time': async (s) => {
    const waiting = (await s.plain()).error('tools/call', { name: 'delete_user' });
    await s.admin.approve((await s.admin.pending()).id);
    return waiting;
  },

  'execute_tool, answered at once': async (s) => (await s.plain()).error('tools/call', execute('read', 20_000)),

  'execute_tool, approved in time': async (s) => {
    const waiting = (await s.plain()).error('tools/call', execute('delete_user', 40_000));
    await s.admin.approve((await s.admin.pending()).id);
    return waiting;
  },

  'execute_tool, approved late, in get_task_result': async (s) => {
    const client = await s.plain();
    const id = await ended(client, s, await client.result('tools/call', execute('delete_user', 300)));
    return client.error('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  },

  'execute_tool, promoted, in get_task_result': async (s) => {
    const client = await s.plain();
    const answer = await client.result('tools/call', execute('slow', 300));
    s.go.fire();
    const id = await ended(client, s, answer);
    return client.error('tools/call', { name: 'get_task_result', arguments: { task_id: id } });
  },
};

for (const replyAs of ['json', 'sse']) {
  for (const [name, answerOf] of Object.entries(paths)) {
    test(`${name} (${replyAs})`, async (t) => {
      assert.deepEqual(await answerOf(await stage(t, { replyAs })), ERROR);
    });
  }

  test(`a plain call that is promoted, in a get_task_result that waits (${replyAs})`, async (t) => {
    const s = await stage(t, { replyAs, wait: HASTY });
    const client = await s.plain();
    const { task_id } = (await callTool(client, 'slow')).structuredContent.proxy_task;
    const waiting = client.error('tools/call', { name: 'get_task_result', arguments: { task_id } });
    s.go.fire();
    assert.deepEqual(await waiting, ERROR);
  });

  test(`a plain call that is approved late: the same call gets it, with the task that it is of (${replyAs})`, async (t) => {
    const s = await stage(t, { replyAs, wait: HASTY });
    const client = await s.plain();
    const id = await ended(client, s, await callTool(client, 'delete_user'));
    assert.deepEqual(await client.error('tools/call', { name: 'delete_user', arguments: {} }), { ...ERROR, data: { ...ERROR.data, taskId: id } });
  });
}

test("a tool that is a task at upstream, too: what upstream's tasks/result says", async (t) => {
  const { connect, admin } = await scene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    upstream: {
      capabilities: { tools: {}, tasks: TASKS },
      tools: [tool('delete_user', { support: 'required' })],
      handlers: {
        'tasks/get': ({ upstream, params, reply }) => reply.result({ ...upstream.tasks.get(params.taskId).task, status: 'failed' }),
        'tasks/result': ({ reply }) => reply.error(ERROR.code, ERROR.message, ERROR.data),
      },
    },
  });
  const client = await connect();
  await client.result('tools/list');
  const { taskId } = await client.createTask('delete_user');
  await admin.approve(taskId);
  await admin.inState(taskId, 'failed');
  assert.deepEqual(await client.error('tasks/result', { taskId }), ERROR);
});

test('the official client knows it by its type, from its own call and from get_task_result', async (t) => {
  const s = await stage(t, { wait: HASTY });
  const client = await s.sdk();
  const knows = (error) => {
    assert.ok(error instanceof UrlElicitationRequiredError, String(error));
    assert.deepEqual(error.elicitations, ERROR.data.elicitations);
    return true;
  };
  await assert.rejects(client.callTool({ name: 'read', arguments: {} }), knows);
  const id = await ended(client, s, await client.callTool(execute('delete_user', 300)));
  await assert.rejects(client.callTool({ name: 'get_task_result', arguments: { task_id: id } }), knows);
});
