// Official SDK clients that never send `task`, of each kind, before real servers: every way a call can go.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorOf } from './lib/client.mjs';
import { PlainClient, plainKinds, twoPatiences } from './lib/plain.mjs';
import { targets } from './lib/targets.mjs';
import { until } from './lib/wait.mjs';

const { taskIn } = PlainClient;
const textOf = (result) => result.content.map((block) => block.text).join('\n');
const fetch = (client, id) => client.tool('get_task_result', { task_id: id });

/** Each is shown at a gateway of the patience it names, by a client of its own. */
const flows = {
  'a harmless call is answered at once, and makes no task': ['hurried', async (client, { harmless }) => {
    assert.match(textOf(await client.call(harmless)), harmless.text);
    assert.deepEqual((await client.tool('list_tasks', { include_completed: true })).structuredContent.tasks, []);
  }],
  'approved in time: the tool’s own result': ['patient', async (client, { dangerous }) => {
    const waiting = client.call(dangerous);
    await client.admin.approve((await client.admin.pending()).id);
    assert.match(textOf(await waiting), dangerous.text);
  }],
  'approved late: fetched with get_task_result, again and again': ['hurried', async (client, { dangerous }) => {
    const { task_id: id } = taskIn(await client.call(dangerous));
    const fetching = fetch(client, id);
    await client.admin.approve(id);
    assert.match(textOf(await fetching), dangerous.text);
    assert.match(textOf(await fetch(client, id)), dangerous.text);
  }],
  'rejected in time': ['patient', async (client, { dangerous }) => {
    const waiting = client.call(dangerous).then((result) => ({ result }), (error) => ({ error }));
    await client.admin.reject((await client.admin.pending()).id, 'not today');
    const error = errorOf(await waiting);
    assert.equal(error?.code, -32007);
    assert.equal(error.data.reason, 'not today');
  }],
  'rejected late': ['hurried', async (client, { dangerous }) => {
    const { task_id: id } = taskIn(await client.call(dangerous));
    await client.admin.reject(id, 'not today');
    const result = await fetch(client, id);
    assert.equal(result.isError, true);
    assert.equal(result.content[0].text, `${dangerous.name} was not run: admin rejected it: not today. Do not repeat the call unless the user asks for it.`);
  }],
  'cancelled in time': ['patient', async (client, { dangerous }) => {
    const waiting = client.call(dangerous).then((result) => ({ result }), (error) => ({ error }));
    const { id } = await client.admin.pending();
    assert.equal((await client.tool('cancel_task', { task_id: id })).structuredContent.success, true);
    assert.equal(errorOf(await waiting)?.code, -32006);
    assert.equal((await client.admin.task(id)).state, 'cancelled');
  }],
  'cancelled late': ['hurried', async (client, { dangerous }) => {
    const { task_id: id } = taskIn(await client.call(dangerous));
    assert.equal((await client.tool('cancel_task', { task_id: id })).structuredContent.success, true);
    const result = await fetch(client, id);
    assert.equal(result.isError, true);
    assert.equal(result.content[0].text, `${dangerous.name} was not run: the request was cancelled. The same call asks for approval again.`);
  }],
  'a repeated call joins; its outcome is told once': ['hurried', async (client, { dangerous }) => {
    const first = await client.call(dangerous);
    const again = await client.call(dangerous);
    const { task_id: id } = taskIn(first);
    assert.deepEqual([first.structuredContent.joined, again.structuredContent.joined], [false, true]);
    assert.equal(taskIn(again).task_id, id);
    await client.admin.approve(id);
    await client.admin.inState(id, 'completed', 'failed'); // a database can be deleted once
    const told = await client.call(dangerous);
    assert.match(textOf(told), dangerous.text);
    assert.ok(textOf(told).includes(id), 'the outcome names its task');
    const fresh = await client.call(dangerous);
    assert.equal(fresh.structuredContent.joined, false);
    assert.notEqual(taskIn(fresh).task_id, id);
    await client.tool('cancel_task', { task_id: taskIn(fresh).task_id });
  }],
  'a slow forward call is promoted': ['hurried', async (client, { slow }) => {
    const call = slow(2);
    const result = await client.call(call);
    const task = taskIn(result);
    assert.match(result.content[0].text, /^Tool call exceeded timeout \(500ms\)\. Promoted to task /);
    assert.equal(task.tool, call.name);
    assert.deepEqual((await client.tool('list_tasks')).structuredContent.tasks.map((x) => [x.taskId, x.toolName, x.status]), [[task.task_id, call.name, 'working']]);
    assert.match(textOf(await fetch(client, task.task_id)), call.text);
    assert.equal((await client.tool('get_task', { task_id: task.task_id })).structuredContent.task.status, 'completed');
  }],
  'a promoted call is cancelled': ['hurried', async (client, { slow }) => {
    const { task_id: id } = taskIn(await client.call(slow(30)));
    assert.equal((await client.tool('cancel_task', { task_id: id })).structuredContent.success, true);
    assert.equal((await client.admin.task(id)).state, 'cancelled');
    assert.match(textOf(await fetch(client, id)), /^It is not known whether .* ran\. Check its effect before you call it again\./);
  }],
  'an elicitation is answered by the tools': ['hurried', async (client, { elicits }) => {
    const result = await client.call(elicits);
    const { task_id: id } = taskIn(result);
    const [asked] = (await client.tool('get_elicitations')).structuredContent.elicitations;
    assert.deepEqual(result.structuredContent.pending_on_server.elicitations_for_server.map((x) => x.requestId), [asked.requestId]);
    const answered = await client.tool('respond_to_elicitation', { request_id: asked.requestId, action: 'accept', content: elicits.answer });
    assert.ok(!answered.isError, textOf(answered));
    assert.match(textOf(await fetch(client, id)), elicits.text);
  }],
  'an elicitation is declined by the tools': ['hurried', async (client, { elicits }) => {
    const { task_id: id } = taskIn(await client.call(elicits));
    const [asked] = (await client.tool('get_elicitations')).structuredContent.elicitations;
    await client.tool('respond_to_elicitation', { request_id: asked.requestId, action: 'decline' });
    assert.match(textOf(await fetch(client, id)), /declin/i);
  }],
  'sampling is answered by the tools': ['hurried', async (client, { samples }) => {
    const { task_id: id } = taskIn(await client.call(samples));
    const [asked] = (await client.tool('get_sampling_requests')).structuredContent.sampling_requests;
    assert.match(JSON.stringify(asked.messages), samples.prompt);
    const answered = await client.tool('respond_to_sampling', { request_id: asked.requestId, role: 'assistant', content: 'a model wrote this', model: 'model-1' });
    assert.ok(!answered.isError, textOf(answered));
    assert.match(textOf(await fetch(client, id)), /a model wrote this/);
  }],
  'an elicitation is answered while the call waits': ['patient', async (client, { elicits }) => {
    const waiting = client.call(elicits);
    const [asked] = await until(async () => {
      const { elicitations } = (await client.tool('get_elicitations')).structuredContent;
      return elicitations.length > 0 && elicitations;
    }, 'the question');
    await client.tool('respond_to_elicitation', { request_id: asked.requestId, action: 'accept', content: elicits.answer });
    assert.match(textOf(await waiting), elicits.text);
  }],
};

for (const target of targets) {
  test(target.name, { skip: target.skip, timeout: 600_000 }, async (t) => {
    const server = await target.start(t);
    const gateways = await twoPatiences(t, target, server);
    for (const [kindName, kind] of Object.entries(plainKinds)) {
      for (const [flowName, [patience, flow]] of Object.entries(flows)) {
        await t.test(`${target.name}, ${kindName}: ${flowName}`, async (t) => {
          await flow(await PlainClient.connect(t, gateways[patience], kind), target);
        });
      }
    }
  });
}
