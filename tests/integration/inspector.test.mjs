// The expectations of a client like the Inspector on a server with tasks: one named test for each.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TaskSchema } from '@modelcontextprotocol/sdk/types.js';
import { elicit, responseTo, sample } from './lib/asking.mjs';
import { startEverything } from './lib/everything.mjs';
import { startGateway, workflow } from './lib/gateway.mjs';
import { inspectorClient, relatedTask } from './lib/inspector_client.mjs';
import { scene } from './lib/scene.mjs';
import { TASKS, tool } from './lib/upstream.mjs';
import { signal, until } from './lib/wait.mjs';

const stage = async (t, { client: clientOptions, upstream, ...more } = {}) => {
  const place = await scene(t, {
    rules: [['delete_*', 'approve']],
    approval: workflow('10m'),
    upstream: { tools: [tool('read'), tool('delete_user')], ...upstream },
    ...more,
  });
  return { ...place, inspector: (options) => inspectorClient(t, place.gateway.url, { ...clientOptions, ...options }) };
};

const text = (result) => result.content[0].text;
const pollsOf = (client) => client.of('taskStatusChange').length;

test('the capability for calls as tasks is an object, and tasks can be listed and cancelled', async (t) => {
  const { inspector } = await stage(t);
  const client = await inspector();
  assert.equal(typeof client.client.getServerCapabilities().tasks.requests.tools.call, 'object');
  assert.deepEqual(client.getTaskCapabilities(), { list: true, cancel: true });
});

test('a list says which tools are tasks: callTool refuses such a tool by itself, and nothing is sent', async (t) => {
  const { inspector, upstream } = await stage(t);
  const client = await inspector();
  const tools = await client.listAllTools();
  assert.equal(tools.find((x) => x.name === 'delete_user').execution.taskSupport, 'required');
  await assert.rejects(client.callTool('delete_user'), /requires task-based execution/);
  assert.equal(upstream.calls.length, 0);
});

test('a tool that a list calls neither optional nor required is called without task', async (t) => {
  const { inspector, upstream } = await stage(t);
  const client = await inspector();
  await client.listAllTools();
  const seen = await client.callToolStream('read');
  assert.equal(text(seen.result), 'did read');
  assert.equal(seen.taskId, undefined);
  assert.equal(upstream.calls[0].rpc.params.task, undefined);
});

test('paging through the tools comes to an end', async (t) => {
  const names = Array.from({ length: 95 }, (_, i) => `tool_${i}`);
  const { inspector } = await stage(t, { upstream: { tools: names.map((name) => tool(name)), pageSize: 1 } });
  const client = await inspector();
  assert.deepEqual((await client.listAllTools()).map((x) => x.name).filter((name) => name.startsWith('tool_')), names);
});

test('a created task has every mandatory field, and the suggested interval is kept', async (t) => {
  const { inspector, admin } = await stage(t);
  const client = await inspector();
  await client.listAllTools();
  const seen = await client.callToolStream('delete_user', {}, { onEvent: (m) => m.type === 'taskCreated' && admin.approve(m.task.taskId) });
  const [{ task }] = client.of('taskCreated');
  assert.ok(TaskSchema.safeParse(task).success, JSON.stringify(task));
  assert.equal(task.ttl, 900_000); // ten minutes to decide, five to be executed
  assert.ok(Number.isInteger(task.pollInterval) && task.pollInterval > 0);
  assert.ok(!Number.isNaN(Date.parse(task.createdAt)) && !Number.isNaN(Date.parse(task.lastUpdatedAt)));
  assert.equal(text(seen.result), 'did delete_user');
});

test('getTask gives a flat task with all fields', async (t) => {
  const { inspector, admin } = await stage(t);
  const client = await inspector();
  await client.listAllTools();
  await client.callToolStream('delete_user', {}, {
    onEvent: async (message) => {
      if (message.type !== 'taskCreated') return;
      const task = await client.getTask(message.task.taskId);
      assert.ok(TaskSchema.safeParse(task).success);
      assert.equal(task.taskId, message.task.taskId);
      assert.equal(task.status, 'input_required');
      assert.equal(task.createdAt, message.task.createdAt);
      assert.equal(relatedTask(task), task.taskId);
      await admin.approve(task.taskId);
    },
  });
});

test('a completed task is followed by its result, which can be fetched again', async (t) => {
  const { inspector, admin } = await stage(t);
  const client = await inspector();
  await client.listAllTools();
  const seen = await client.callToolStream('delete_user', {}, { onEvent: (m) => m.type === 'taskCreated' && admin.approve(m.task.taskId) });
  assert.equal(client.getClientTasks()[0].status, 'completed');
  assert.equal(client.of('taskCompleted').length, 1);
  const again = await client.getTaskResult(seen.taskId);
  assert.deepEqual(again.content, seen.result.content);
  assert.equal(relatedTask(again), seen.taskId);
});

for (const [end, decide, expected] of [
  ['rejected', (place, id) => place.admin.reject(id, 'too risky'), /too risky/],
  ['cancelled by an operator', (place, id) => place.admin.post(`/api/v1/tasks/${id}/cancel`, {}), /[Cc]ancelled/],
]) {
  test(`a task that is ${end} ends in a generic error, with the reason in its last status`, async (t) => {
    const place = await stage(t);
    const client = await place.inspector();
    await client.listAllTools();
    const seen = await client.callToolStream('delete_user', {}, { onEvent: (m) => m.type === 'taskCreated' && decide(place, m.task.taskId) });
    assert.ok(seen.error);
    assert.equal(seen.result, undefined);
    assert.match(client.getClientTasks()[0].statusMessage, expected);
    assert.equal(place.upstream.calls.length, 0);
  });
}

test('a task whose tool failed ends in a generic error, with the words of the tool in its last status', async (t) => {
  const { inspector, admin } = await stage(t, { upstream: { handlers: { 'tools/call': ({ reply }) => reply.result({ content: [{ type: 'text', text: 'no such user' }], isError: true }) } } });
  const client = await inspector();
  await client.listAllTools();
  const seen = await client.callToolStream('delete_user', {}, { onEvent: (m) => m.type === 'taskCreated' && admin.approve(m.task.taskId) });
  assert.match(seen.error.message, /failed/);
  const [task] = client.getClientTasks();
  assert.deepEqual([task.status, task.statusMessage], ['failed', 'no such user']);
  assert.equal(text(await client.getTaskResult(seen.taskId)), 'no such user');
});

test('input_required: the client polls no more and blocks in one tasks/result until the human decides', async (t) => {
  const { inspector, admin } = await stage(t, { config: { pending_status: 'input_required' } });
  const client = await inspector();
  await client.listAllTools();
  const blocked = signal();
  const call = client.callToolStream('delete_user', {}, { onEvent: (m) => m.type === 'taskStatus' && m.task.status === 'input_required' && blocked.fire(m.task.taskId) });
  const id = await blocked.promise;
  const polls = pollsOf(client);
  await admin.approve(id);
  const seen = await call;
  assert.equal(text(seen.result), 'did delete_user');
  assert.deepEqual(seen.statuses, ['input_required']);
  assert.equal(pollsOf(client), polls, 'it asked for no status in between');
});

test('progress reaches the token of a waiting tasks/result well within a minute', { timeout: 90_000 }, async (t) => {
  const { inspector, admin } = await stage(t, { config: { pending_status: 'input_required' } });
  const client = await inspector();
  await client.listAllTools();
  const first = signal();
  const began = performance.now();
  const call = client.callToolStream('delete_user', {}, { resetTimeoutOnProgress: true, onprogress: (progress) => first.fire(progress) });
  const progress = await first.promise;
  assert.ok(performance.now() - began < 60_000);
  assert.ok(progress.progress > 0);
  const [{ taskId }] = client.of('taskCreated');
  await admin.approve(taskId);
  assert.equal(text((await call).result), 'did delete_user');
});

test('tasks are listed whole and page by page, and a cancel answers with the whole task', async (t) => {
  const { inspector } = await stage(t);
  const client = await inspector();
  await client.listAllTools();
  const ids = [];
  for (let i = 0; i < 25; i++) {
    const stream = client.client.experimental.tasks.callToolStream({ name: 'delete_user', arguments: { i } });
    ids.push((await stream.next()).value.task.taskId);
    await stream.return();
  }
  const first = await client.listTasks();
  assert.equal(first.tasks.length, 20);
  const second = await client.listTasks(first.nextCursor);
  assert.equal(second.nextCursor, undefined);
  assert.deepEqual([...first.tasks, ...second.tasks].map((task) => task.taskId), ids.toReversed());
  assert.equal(client.of('tasksChange').length, 2);
  const cancelled = await client.cancelTask(ids[0]);
  assert.ok(TaskSchema.safeParse(cancelled).success);
  assert.equal(cancelled.status, 'cancelled');
});

test('progress of a running task is tied to it', async (t) => {
  const go = signal();
  const { inspector, admin, upstream } = await stage(t, {
    config: { pending_status: 'input_required' },
    upstream: {
      handlers: {
        'tools/call': async ({ reply, rpc, params }) => {
          const stream = reply.sse();
          stream.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: 1, total: 2 } });
          await go.promise;
          stream.event({ jsonrpc: '2.0', id: rpc.id, result: { content: [{ type: 'text', text: 'done' }] } });
          stream.end();
        },
      },
    },
  });
  const client = await inspector();
  await client.listAllTools();
  const seen = [];
  const call = client.callToolStream('delete_user', {}, {
    onprogress: (progress) => {
      seen.push(progress);
      if (progress.total === 2) go.fire();
    },
    onEvent: (m) => m.type === 'taskCreated' && admin.approve(m.task.taskId),
  });
  const { result, taskId } = await call;
  assert.equal(text(result), 'done');
  assert.equal(upstream.calls.length, 1);
  const own = seen.find((progress) => progress.progress === 1 && progress.total === 2);
  assert.ok(own, JSON.stringify(seen));
  assert.equal(relatedTask(own), taskId);
});

test('elicitation and sampling of a task come on the open tasks/result and name the task; its status is working again afterwards', async (t) => {
  const go = signal();
  const { inspector, admin, upstream } = await stage(t, {
    upstream: {
      handlers: {
        'tools/call': async ({ upstream, reply, id }) => {
          const stream = reply.sse();
          for (const request of [elicit('e-1'), sample('s-1')]) {
            stream.event({ jsonrpc: '2.0', ...request });
            await responseTo(upstream, request.id);
          }
          await go.promise;
          stream.event({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }] } });
          stream.end();
        },
      },
    },
  });
  const client = await inspector({
    onElicitation: () => ({ action: 'accept', content: { partySize: 4 } }),
    onSampling: () => ({ role: 'assistant', content: { type: 'text', text: 'hello' }, model: 'm' }),
  });
  await client.listAllTools();
  const call = client.callToolStream('delete_user', {}, { onEvent: (m) => m.type === 'taskCreated' && admin.approve(m.task.taskId) });
  assert.deepEqual((await responseTo(upstream, 'e-1')).result.content, { partySize: 4 });
  assert.equal((await responseTo(upstream, 's-1')).result.model, 'm');
  const [{ taskId }] = client.of('taskCreated');
  await until(async () => (await client.getTask(taskId)).status === 'working', 'the task to go on');
  go.fire();
  const seen = await call;
  assert.equal(text(seen.result), 'done');
  assert.ok(seen.statuses.includes('input_required'), seen.statuses.join());
  assert.deepEqual([...client.of('elicitation'), ...client.of('sampling')].map((asked) => asked.taskId), [taskId, taskId]);
});

test('an optional tool that is called without task answers at once, by both ways of calling', async (t) => {
  const { inspector, upstream } = await stage(t, {
    upstream: {
      tools: [tool('read', { support: 'optional' })],
      capabilities: { tools: {}, tasks: TASKS },
    },
  });
  const client = await inspector();
  const seen = await client.callToolStream('read'); // it has seen no list, so it sends no task
  assert.equal(text(seen.result), 'did read');
  assert.equal(seen.taskId, undefined);
  assert.equal((await client.listAllTools()).find((x) => x.name === 'read').execution.taskSupport, 'optional');
  assert.equal(text(await client.callTool('read')), 'did read');
  assert.deepEqual(upstream.calls.map((call) => call.rpc.params.task), [undefined, undefined]);
});

test('tasks made elsewhere by the same owner are found by a list; the cache is empty after a disconnect', async (t) => {
  const { inspector, connect } = await stage(t);
  const other = await connect({ token: 'A' });
  const { taskId } = await other.createTask('delete_user');
  const client = await inspector({ headers: { authorization: 'Bearer A' } });
  assert.deepEqual(client.getClientTasks(), []);
  await client.listTasks();
  assert.deepEqual(client.getClientTasks().map((task) => task.taskId), [taskId]);
  await client.disconnect();
  assert.deepEqual(client.getClientTasks(), []);
});

test('server-everything asks within a task: the question names the task, comes on the open tasks/result, and the task goes on', async (t) => {
  const server = await startEverything(t);
  const gateway = await startGateway(t, { upstream: server.url, rules: [['trigger-elicitation-request', 'approve']], approval: workflow('10m') });
  const client = await inspectorClient(t, gateway.url, { onElicitation: () => ({ action: 'accept', content: { name: 'Ada' } }) });
  await client.listAllTools();
  const seen = await client.callToolStream('trigger-elicitation-request', {}, { onEvent: (m) => m.type === 'taskCreated' && gateway.admin.approve(m.task.taskId) });
  const [asked] = client.of('elicitation');
  assert.match(JSON.stringify(seen.result?.content ?? seen.error.message), /Ada/);
  assert.equal(asked.taskId, seen.taskId);
  const task = await until(() => client.getTask(seen.taskId), 'the task');
  assert.equal(task.status, 'completed');
});
